"""Long lists of declared values stand beside a text, and mean what they mean within it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub import plain
from hubbub.engines.duckdb.dialect import DUCKDB, DuckDB
from hubbub.session.options import Options
from hubbub.sql.emit.lists import MANY, beside, stored
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql
from hubbub.tables.kinds import Kind

N = MANY + 50
DAY = dt.date(2020, 2, 27)
LISTS = {
    "whole": (pa.int32(), [None, -(2**31), *range(N)]),
    "wide": (pa.int64(), [-(2**63), 2**63 - 1, *range(N)]),
    "real": (pa.float64(), [-0.0, 0.1 + 0.2, 1e300, *(i / 7 for i in range(1, N))]),
    "text": (pa.string(), [None, "", "'", "a\0b", "é", "𝄞", "\\", *(f"v{i}" for i in range(N))]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), *(DAY + dt.timedelta(days=i) for i in range(N))]),
    "moment": (pa.timestamp("us"), [dt.datetime.max, *(dt.datetime(2020, 1, 1, 0, 0, i % 60, i) for i in range(N))]),
}


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with plain.only(plain=False):
        yield


@pytest.fixture(scope="module", params=LISTS)
def session(request: Any) -> Any:
    kind, values = LISTS[request.param]
    rows = [*values[:40], *values[:20], *values[-30:], None]
    table = pa.table({"u": [i % 30 for i in range(len(rows))], "k": pa.array(rows, kind), "x": range(len(rows))})
    columns = {"k": hb.one_of(*values), "x": hb.between(0, 100)}
    declared = hb.table(table, unit="u", max_groups=2, max_rows=2, columns=columns)
    with pytest.warns(UserWarning, match="ledger=None"):
        opened = hb.Session({"t": declared}, budget=hb.Budget(10**6), ledger=None)
    with opened:
        yield opened


def plans_of(session: hb.Session, sql: str, **more: Any) -> Any:
    asked: Any = session._data.ask(sql, Options.of({"epsilon": 1, **more}), session._ledger.balance.budget)
    return asked.price.plans


def test_values_beside_a_text_give_the_integers_of_those_in_it(session: hb.Session) -> None:
    engine: Any = session._data.engine
    for asked in ("COUNT(*) AS n, SUM(x) AS s", "MEDIAN(x) AS m", "COUNT(DISTINCT x) AS d"):
        for limits in ({}, {"max_groups": 1000}):
            (plan,) = plans_of(session, f"SELECT k, {asked} FROM t GROUP BY k", **limits)
            assert beside(plan, engine._dialect), "nothing stands beside"
            apart = engine.run(plan, {})
            engine._dialect = DUCKDB
            try:
                assert engine.run(plan, {}) == apart
            finally:
                engine._dialect = DuckDB(lists_beside=True)
            assert sum(v != 0 and v != () for v in apart.vectors[0]) > 20


def test_a_text_does_not_grow_with_the_values_beside_it(session: hb.Session) -> None:
    lengths = set()
    for count in (MANY + 1, 2 * MANY, 10 * MANY):
        keys = {"x": list(range(count))}
        (plan,) = plans_of(session, "SELECT x, COUNT(*) AS n FROM t GROUP BY x", keys=keys)
        place = Place("t", {"x": "x"}, "u", lambda c: (c, "integer"))
        lengths.add(len(aggregate_sql(plan, {"t": place}, DuckDB(lists_beside=True)).replace(f"{count}", "")))
    assert len(lengths) == 1


def test_what_no_column_of_its_kind_holds_stays_in_the_text() -> None:
    class Plan:
        domains = (tuple(range(2**63, 2**63 + N)), ("far", *[DAY] * N), tuple(Fraction(i, 3) for i in range(N)), None)
        keys = tuple(type("Key", (), {"kind": k}) for k in (Kind.INTEGER, Kind.DATE, Kind.NUMBER, Kind.TEXT))

    assert beside(Plan(), DuckDB(lists_beside=True)) == {2: "listed2"}  # type: ignore[arg-type]
    assert beside(Plan(), DUCKDB) == {}  # type: ignore[arg-type]


class Keyed:
    """A plan as far as it is looked at: the kind and the values of each key."""

    def __init__(self, *keys: tuple[Kind, tuple[Any, ...] | None]) -> None:
        self.keys = tuple(type("Key", (), {"kind": kind}) for kind, _ in keys)
        self.domains = tuple(domain for _, domain in keys)


def names(*keys: tuple[Kind, tuple[Any, ...] | None]) -> dict[int, str]:
    return beside(Keyed(*keys), DuckDB(lists_beside=True))  # type: ignore[arg-type]


def test_more_than_a_hundred_values_stand_beside() -> None:
    whole = tuple(range(MANY))
    assert MANY == 100
    assert names((Kind.INTEGER, whole)) == {}
    more = (Kind.INTEGER, (*whole, MANY))
    assert names(more) == {0: "listed0"}
    assert names((Kind.TEXT, None), more, (Kind.INTEGER, whole), more) == {1: "listed1", 3: "listed3"}
    with plain.only(plain=True):
        assert names(more) == {}


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        (Kind.INTEGER, 2**63 - 1, True), (Kind.INTEGER, 2**63, False), (Kind.INTEGER, -(2**63), True),
        (Kind.INTEGER, -(2**63) - 1, False), (Kind.INTEGER, 1.5, False), (Kind.INTEGER, True, False),
        (Kind.INTEGER, None, True), (Kind.NUMBER, 2**80, True), (Kind.NUMBER, 1.5, True),
        (Kind.NUMBER, Fraction(1, 3), True), (Kind.NUMBER, True, False), (Kind.NUMBER, "1", False),
        (Kind.BOOLEAN, True, False),
    ],
)  # fmt: skip
def test_values_of_one_kind_stand_beside_and_others_in_the_text(kind: Kind, value: Any, fits: bool) -> None:
    assert bool(names((kind, (*range(N), value)))) == fits


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.TIMESTAMP])
def test_days_and_moments_stand_beside_each_other(kind: Kind) -> None:
    moment = dt.datetime(2020, 2, 29, 13, 5)
    assert names((kind, (*[DAY] * N, moment, None))) == {0: "listed0"}
    assert names((kind, (*[DAY] * N, "far"))) == {}
    assert names((Kind.TEXT, (*"x" * N, DAY))) == {}
    midnight = dt.datetime(DAY.year, DAY.month, DAY.day)
    expected = [DAY, moment.date(), None] if kind is Kind.DATE else [midnight, moment, None]
    assert stored((DAY, moment, None), kind) == expected
    assert [type(v) for v in stored((DAY, moment, None), kind)] == [type(v) for v in expected]


def test_nothing_but_null_is_no_list() -> None:
    assert names((Kind.INTEGER, (None,) * N)) == names((Kind.TEXT, (None,) * N)) == {}


def test_what_is_stored_is_what_the_text_would_say() -> None:
    assert stored((1, 2.5, Fraction(1, 3), None), Kind.NUMBER) == [1.0, 2.5, 1 / 3, None]
    assert all(type(v) is float for v in stored((1, Fraction(1, 3)), Kind.NUMBER))
    assert stored(("a", None), Kind.TEXT) == ["a", None]
    assert stored((2**63 - 1, None), Kind.INTEGER) == [2**63 - 1, None]
