"""A new engine is one folder: the toy keeps the contract of every engine, and people use it as they use any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import hubbub as hb
from asked import frames, tables as asked_tables
from engines.places import Embedded, answer
from engines.test_contract import CASE, SETTINGS, _golden, _located, _reads_releases, hold
from engines.toy import ROWS, ToyPlace
from engines.toy.engine import ToyEngine
from golden.queries import QUERIES
from golden.shop import FRAMES, tables
from hubbub.engines import registry
from hubbub.engines.base import Engine
from hubbub.tables.declare import PrivateTable
from hubbub.tables.remote import remote


@pytest.fixture(scope="module", autouse=True)
def _toy() -> Iterator[None]:
    registry.add_engine(ToyPlace())
    ROWS.update(FRAMES)
    yield
    ROWS.clear()


@pytest.fixture(scope="module")
def engines(_toy: None) -> Iterator[tuple[Embedded, Engine]]:
    declared = {
        name: replace(t, source=remote(f"toy:{name}")) if isinstance(t, PrivateTable) else t
        for name, t in tables().items()
    }
    here, there = Embedded(tables(), FRAMES), registry.engine_for(declared)
    for name, table in declared.items():
        there.add(name, table)
    there.seal()
    yield here, there
    here.close()
    there.close()


@pytest.mark.parametrize(("sql", "more"), QUERIES, ids=[sql[:60] for sql, _ in QUERIES])
def test_the_golden_list_gives_the_same_integers(
    engines: tuple[Embedded, Engine], sql: str, more: dict[str, Any]
) -> None:
    here, there = engines
    for plan in _golden(here, sql, more):
        if not _reads_releases(plan):
            public = here.public(plan)
            assert answer(there, plan, public) == answer(here.engine, plan, public)


class Toy:
    """The tables of random questions in the toy, as `engines.places` has them in each other engine."""

    def __init__(self, declared: dict[str, Any], empty: dict[str, pa.Table]) -> None:
        ROWS.update(empty)
        self.private = [name for name, table in declared.items() if isinstance(table, PrivateTable)]
        self.engine = ToyEngine(portable=True)
        for name, table in declared.items():
            self.engine.add(name, replace(table, source=remote(f"toy:{name}")) if name in self.private else table)
        self.engine.seal()

    def fill(self, rows: dict[str, pa.Table]) -> None:
        for name in self.private:
            self.engine.fill(name, rows[name])


@pytest.fixture(scope="module")
def worlds(_toy: None) -> Iterator[tuple[Embedded, Toy]]:
    declared, empty = asked_tables("add_remove"), frames({})
    here, there = Embedded(declared, empty), Toy(declared, empty)
    yield here, there
    here.close()
    there.engine.close()


@settings(max_examples=20, **SETTINGS)
@given(**CASE)
def test_neighbours_are_as_near_in_the_toy_as_claimed(
    worlds: tuple[Embedded, Toy], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]
) -> None:
    hold(worlds, sql, units, newcomer, limits)


def test_the_toy_says_where_it_found_each_table(engines: tuple[Embedded, Engine]) -> None:
    _located(engines[1], ["customer", "orders", "lineitem"])
    one = engines[1].located("orders").here
    assert one == remote("toy:orders")  # whatever a session calls it


def test_the_toy_inherits_nothing_and_has_the_whole_interface() -> None:
    """What a session used of an engine beside its interface would be missed here."""
    assert ToyEngine.__bases__ == (object,)
    interface = {name for name in (*vars(Engine), *Engine.__annotations__) if not name.startswith("_")}
    assert {name for name in dir(ToyEngine) if not name.startswith("_")} == interface | {"fill"}


COUNT = "SELECT COUNT(DISTINCT person) AS n FROM visits"


def visits(**declared: Any) -> PrivateTable:
    ROWS["visits"] = pa.table({"person": list(range(500))})
    return hb.table("toy:visits", unit="person", max_groups=1, max_rows=1, **declared)


def test_people_ask_it_as_any_other(tmp_path: Path) -> None:
    with hb.Session({"visits": visits()}, budget=hb.Budget(100), ledger=tmp_path / "l.db") as s:
        assert abs(s.sql(COUNT, epsilon=50).rows()[0][0] - 500) < 5
        assert not s.sql(COUNT, epsilon=50).charged
        ROWS["visits"] = ROWS["visits"].slice(1)
        assert "toy:visits" in str(s.ledger.record.policy_text(s.receipt(s.history()[0].id)["policy"]))


def test_a_policy_file_names_its_tables(tmp_path: Path) -> None:
    visits()
    (tmp_path / "hubbub.toml").write_text(
        '[ledger]\nfile = "l.db"\n[budget]\nepsilon = 2\n[tables.visits]\nsource = "toy:visits"\nunit = "person"\n'
        "max_groups = 1\nmax_rows = 1\n"
    )
    with hb.Session.from_policy(tmp_path / "hubbub.toml", create_ledger=True) as s:
        assert s.check(COUNT, epsilon=1).fits


def test_one_table_is_one_budget(tmp_path: Path) -> None:
    two = {"visits": visits(), "again": visits(unit_space="others")}
    with pytest.raises(hb.PolicyError, match=r"second budget|two budgets"):
        hb.Session(two, budget=hb.Budget(1), ledger=tmp_path / "l.db")


def test_tables_of_two_engines_are_two_sessions(tmp_path: Path) -> None:
    other = hb.table(pa.table({"person": [1]}), unit="person", max_groups=1, max_rows=1)
    with pytest.raises(hb.PolicyError, match="DuckDB and Toy"):
        hb.Session({"visits": visits(), "other": other}, budget=hb.Budget(1), ledger=tmp_path / "l.db")


@pytest.mark.parametrize("source", ["toy:", "toy:nothing"])
def test_what_is_not_there_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(hb.PolicyError, match="toy"):
        hb.Session(
            {"visits": hb.table(source, unit="person", max_groups=1, max_rows=1)},
            budget=hb.Budget(1),
            ledger=tmp_path / "l.db",
        )
