"""A table whose source, unit, name or unit space is not what the declaration says: the remedy is what was meant."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from engines.test_sqlite_and_sheets import sheet
from hubbub.engines.duckdb.kept import write_kept
from hubbub.errors import PolicyError
from hubbub.remedies import Attempt, CorrectName
from remedied import PEOPLE, PURE, Case, N, answered_after, table

COUNT = "SELECT COUNT(*) AS x FROM t"
LIMITS: dict[str, Any] = {"unit": "id", "max_groups": 1, "max_rows": 1}


@functools.cache
def _files() -> Path:
    """A Parquet file, and two workbooks: one of one sheet, one of two."""
    folder = Path(tempfile.mkdtemp())
    pq.write_table(PEOPLE.select(["id", "n"]), folder / "people.parquet")
    pq.write_table(pa.table({"person": range(N)}), folder / "persons.parquet")
    rows: list[list[Any]] = [["id", "n"], *([i, i % 5] for i in range(40))]
    sheet(folder / "one.xlsx", rows)
    sheet(folder / "two.xlsx", [["note"], ["of whom"]], rows)
    return folder


def of_file(name: str, **declared: Any) -> Any:
    types = {"id": "integer", "n": "integer"} if name.endswith("xlsx") else None
    return hb.table(_files() / name, **{**LIMITS, "types": types, **declared})


def _limited(place: Path) -> None:
    """A ledger with a limit for the table T."""
    with hb.Session({"T": table()}, budget=PURE, ledger=place) as session:
        session._ledger.steward.grant(space="id", account="table:T", epsilon=30, reason="a limit", author="a steward")


def _in_two_spaces(place: Path) -> None:
    tables = {"t": of_file("people.parquet", unit_space="patients"), "u": table(unit_space="others")}
    hb.Session(tables, budget=PURE, ledger=place).close()


def _in_a_folder(place: Path) -> None:
    """A folder with a link to the file, in a unit space of its own."""
    folder = _files() / "linked"
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.link(_files() / "people.parquet", folder / "again.parquet")
    tables = {"t": of_file("linked", unit_space="patients"), "u": table(unit_space="others")}
    hb.Session(tables, budget=PURE, ledger=place).close()


def _copied(unit: str) -> Any:
    source = _files() / "persons.parquet"
    write_kept("t", [str(source)], unit, 2, _files() / "kept" / "t.parquet")
    return of_file("persons.parquet", unit=unit)


ORDERS = pa.table({"order_no": range(N), "code": [f"c{i}" for i in range(N)], "person": range(N)})
ITEMS = ORDERS.select(["order_no", "code"]).append_column("digits", [[str(i) for i in range(N)]])


def items(**declared: Any) -> Any:
    """Rows whose unit stands in the table `orders`."""
    return hb.table(ITEMS, **{**LIMITS, "unit": "orders.person", "through": "order_no", **declared})


def orders(**declared: Any) -> dict[str, Any]:
    return {"orders": hb.table(ORDERS, **{**LIMITS, "unit": "person", **declared})}


def by_path(site: str, unit: dict[str, Any], holder: dict[str, Any] | None = None) -> Case:
    return Case(site, COUNT, {0: {}}, table=lambda: items(**unit), beside=lambda: orders(**(holder or {})))


TRIMMED = {"columns": {"code": hb.text(trim=True)}}
CASES = {
    "a unit in a table by another name": by_path("session/open.py:_leads_nowhere", {"unit": "order.person"}),
    "a unit of another table by another name": by_path(
        "session/open.py:resolved_paths", {"unit": "orders.persons"}
    ),
    "neighbours that are not those of the other table": by_path(
        "session/open.py:resolved_paths", {}, {"neighbours": "replace"}
    ),
    "a unit space that is not that of the other table": by_path(
        "session/open.py:resolved_paths", {"unit_space": "customers"}
    ),
    "blanks that would be cut off a key": by_path("session/open.py:_keep_keys", {"through": "code"}, TRIMMED),
    "a column that leads to the unit by another name": by_path(
        "sql/bind/context.py:_path", {"through": {"ordr_no": "order_no"}}
    ),
    "a key of another table by another name": by_path(
        "sql/bind/context.py:_path", {"through": {"order_no": "ordr_no"}}
    ),
    "a key of texts that leads to whole numbers": by_path(
        "sql/bind/context.py:_path", {"through": {"digits": "order_no"}}
    ),
    "blanks that would be cut off units": Case(
        "tables/declare.py:_keep_units", COUNT, {0: {}},
        table=lambda: table(unit="kind", columns={"kind": hb.text(trim=True)}),
        without=lambda: table(unit="kind", columns={"kind": hb.text()}),
    ),
    "a copy whose unit has another name": Case(
        "engines/duckdb/kept.py:_owner", COUNT, {0: {}}, table=lambda: _copied("persn"),
        without=lambda: of_file("persons.parquet", unit="persn"),
    ),
    "which sheet": Case(
        "engines/duckdb/sheets.py:_chosen", COUNT, {0: {"value": "Sheet2"}}, table=lambda: of_file("two.xlsx")
    ),
    "a sheet by another name": Case(
        "engines/duckdb/sheets.py:_chosen", COUNT, {0: {}}, table=lambda: of_file("one.xlsx", table="Shet1")
    ),
    "bounds that no grid has": Case(
        "tables/measure.py:_beyond", "SELECT SUM(n) AS x FROM t", {0: {"low": 0, "high": 4}},
        table=lambda: table(columns={"n": hb.between(0, 1e300)}),
    ),
    "a product that no grid has": Case(
        "tables/measure.py:_beyond", "SELECT SUM(n * 1e300) AS x FROM t",
        {0: {"sql": "SELECT SUM(LEAST(GREATEST(n * 1e300, 0), 9)) AS x FROM t"}},
        table=lambda: table(columns={"n": hb.between(0, 4)}),
    ),
    "a table by another spelling of a name that has a limit": Case(
        "ledger/versions.py:check_tables", COUNT, {0: {}}, before=_limited
    ),
    "a source in another unit space": Case(
        "ledger/versions.py:_another_promise", COUNT, {0: {}}, before=_in_two_spaces,
        table=lambda: of_file("people.parquet", unit_space="others"),
    ),
    "rows in the unit space of people": Case(
        "ledger/versions.py:_another_promise", COUNT, {0: {}}, before=_in_two_spaces,
        table=lambda: of_file("people.parquet", unit=hb.EACH_ROW, max_rows=None, unit_space="patients"),
        without=lambda: of_file("people.parquet", unit_space="patients"),
    ),
    "a file by a link, in another unit space": Case(
        "ledger/versions.py:_another_promise", COUNT, {0: {}}, before=_in_a_folder,
        table=lambda: of_file("people.parquet", unit_space="others"),
    ),
    "two new budgets for one source": Case(
        "session/sources.py:check_new", COUNT, {0: {}}, table=lambda: table(unit="n", max_rows=N),
        beside=lambda: {"another": table()},
    ),
    "the form of a CSV of a file that is none": Case(
        "engines/duckdb/sources.py:source_of", COUNT, {0: {}},
        table=lambda: of_file("people.parquet", csv=hb.Csv(delimiter=";")),
    ),
}  # fmt: skip
EACH = [(name, at) for name, case in CASES.items() for at in case.fill]


@pytest.mark.parametrize(("name", "at"), EACH, ids=[f"{name}, {at}" for name, at in EACH])
def test_a_remedy_that_is_applied_is_answered(name: str, at: int, tmp_path: Path) -> None:
    case = CASES[name]
    assert answered_after(case, at, tmp_path / "another.db") == (case.columns, case.groups)


def _lists(folder: Path, **declared: Any) -> Any:
    with sqlite3.connect(folder / "lists.sqlite") as lite:
        lite.execute("CREATE TABLE wards (ward TEXT)")
        lite.execute("INSERT INTO wards VALUES ('A')")
    lite.close()
    return hb.public(folder / "lists.sqlite", **declared)


def test_a_public_table_is_put_right_too(tmp_path: Path) -> None:
    """A public table of a file has names and types to put right, as a private one has."""
    tables = {"t": table(), "lists": _lists(tmp_path, table="wrads")}
    with pytest.raises(PolicyError) as refused:
        hb.Session(tables, budget=PURE, ledger=None)
    [remedy] = refused.value.remedies
    assert isinstance(remedy, CorrectName)
    _, put_right = remedy.apply(Attempt(COUNT), tables)
    with hb.Session(put_right, budget=PURE, ledger=tmp_path / "a.db") as session:
        assert session.sql("SELECT ward FROM lists", epsilon=1).rows() == [("A",)]


def test_neighbours_that_another_session_settled(tmp_path: Path) -> None:
    """Two sessions are opened on an empty ledger; the first charge settles the relation for both."""
    place, declared = tmp_path / "a.db", {"t": table(neighbours="replace")}
    with hb.Session(declared, budget=PURE, ledger=place) as late:
        with hb.Session({"t": table()}, budget=PURE, ledger=place) as early:
            early.sql(COUNT, epsilon=1)
        with pytest.raises(PolicyError, match="Losses under two relations") as refused:
            late.sql(COUNT, epsilon=1)
    [remedy] = refused.value.remedies
    assert remedy.in_python() in str(refused.value)
    attempt, tables = remedy.apply(Attempt(COUNT, {"epsilon": 2}), declared)
    with hb.Session(tables, budget=PURE, ledger=place) as again:
        assert again.sql(attempt.sql, **attempt.options).columns == ("x",)


@pytest.mark.parametrize(
    ("unit", "through", "says"),
    [
        (
            "orders.parson",
            "order_no",
            "the path ends at the unit 'person'",
        ),  # another word: who is protected, who knows
        ("wards.person", "order_no", "which is not a private table"),
        ("orders.person", {"ordr_no": "ordr_no"}, "no such column"),  # two slips
        ("orders.person", {"order_no": "code"}, "of two types"),  # '7' and '07' would be one key
    ],
)
def test_a_path_that_may_mean_several_has_no_remedy(unit: str, through: Any, says: str) -> None:
    tables = {"t": items(unit=unit, through=through), **orders()}
    with pytest.raises(hb.HubbubError, match=says) as refused, hb.Session(tables, budget=PURE, ledger=None) as session:
        session.sql(COUNT, epsilon=1)
    assert not refused.value.remedies
