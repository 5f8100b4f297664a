"""Groups ranked in this process give the integers of the SQL text, whatever shares its bits."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import counts
import hubbub as hb
from asked import everybody, frames, questions, tables as asked_tables
from engines.places import Embedded, answer
from golden.queries import QUERIES
from golden.shop import FRAMES, tables as shop_tables
from hubbub import plain
from hubbub.engines.duckdb import engine as engine_module, pieces, ranking
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import image
from hubbub.engines.duckdb.room import Room
from hubbub.errors import EngineError, HubbubError
from hubbub.noise import Grid
from hubbub.sql.bind.query import PublicQuestion, parse
from hubbub.sql.emit.ranked import ranks
from hubbub.tables.declare import Limits, PrivateTable
from hubbub.tables.expressions import Literal
from hubbub.tables.measure import Value
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import leaves

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")
SETTINGS: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@pytest.fixture(autouse=True)
def quickly() -> Iterator[None]:
    """Quick paths are taken here, whatever the environment says: these are their tests."""
    with plain.only(plain=False):
        yield


LISTED = ["MEDIAN(x)", "QUANTILE_CONT(x, 0.9)", "VARIANCE(x)", "CORR(x, n)", "SUM(x)", "COUNT(n)", "MODE(ward)"]


@st.composite
def found_questions(draw: Any) -> str:
    """Questions of one table whose groups are found privately, or that look at several values at once."""
    shown = draw(st.lists(st.sampled_from(LISTED), min_size=1, max_size=4, unique=True))
    key = draw(st.sampled_from(["", "ward", "ok", "day", "n", "ward, day", "UPPER(ward)", "n > 3"]))
    where = draw(st.sampled_from(["", " WHERE x > 1", " WHERE n IS NOT NULL"]))
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(shown))
    return f"SELECT {columns} FROM visits{where}{f' GROUP BY {key}' if key else ''}"


class Own(Embedded):
    """The embedded engine with its own hash, as sessions have it."""

    def __init__(self, tables: Mapping[str, Any], frames: Mapping[str, pa.Table]) -> None:
        super().__init__(tables, frames)
        self.engine._dialect = DUCKDB


def by_text(engine: DuckDBEngine, plan: Plan, public: Mapping[str, Any]) -> Any:
    """What the SQL text alone answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "ranks", lambda plan: False)
        return answer(engine, plan, public)


def plans_of(here: Own, sql: str, limits: Limits, **options: Any) -> list[Plan]:
    try:
        statement = parse(sql, here.desk.catalog, public=here.desk.outer, **options)
        if isinstance(statement, PublicQuestion):
            return []
        return [p for q in statement.questions for p in make_plans(q, image, limits=limits, private_keys=True)]
    except HubbubError:
        return []


def test_the_golden_list_is_the_same_ranked_here_and_in_sql() -> None:
    """Each question at limits of one or of several, by turns; the soak asks each at both."""
    here, ranked = Own(shop_tables(), FRAMES), 0
    for turn, (sql, more) in enumerate(QUERIES):
        options = {name: more[name] for name in ("params", "keys") if name in more}
        for groups, rows in ((1, 1), (2, 3)) if counts.SOAK else (((1, 1), (2, 3))[turn % 2],):
            for plan in plans_of(here, sql, Limits(groups, rows, None), **options):
                if ranks(plan) and not any(leaf.released for leaf in leaves(plan.question.relation)):
                    ranked += 1
                    public = here.public(plan)
                    assert answer(here.engine, plan, public) == by_text(here.engine, plan, public), sql
    here.close()
    assert ranked >= counts.part(140, 2)


def by_text_units(table: pa.Table) -> pa.Table:
    """The same table with its unit, or what leads to it, as texts of one long beginning."""
    i = next((i for i, n in enumerate(table.column_names) if n == "id"), None)
    if i is None:
        return table
    texts = pa.array([None if v is None else "unit number " * 3 + str(v) for v in table["id"].to_pylist()], pa.string())
    return table.set_column(i, "id", texts)


class ByText(Own):
    """The same people, named by texts."""

    def __init__(self) -> None:
        named = {
            name: replace(t, source=by_text_units(t.source)) if isinstance(t, PrivateTable) else t
            for name, t in asked_tables("add_remove").items()
        }
        super().__init__(named, frames({}))

    def fill(self, frames: Mapping[str, pa.Table]) -> None:
        super().fill({name: by_text_units(table) for name, table in frames.items()})


@pytest.fixture(scope="module")
def world() -> Iterator[Own]:
    here = Own(asked_tables("add_remove"), frames({}))
    yield here
    here.close()


@pytest.fixture(scope="module")
def named() -> Iterator[Own]:
    here = ByText()
    yield here
    here.close()


@pytest.fixture(scope="module")
def rows_as_units() -> Iterator[Own]:
    here = Own(asked_tables("add_remove", each_row=True), frames({}))
    yield here
    here.close()


CASE: dict[str, Any] = {
    "sql": st.one_of(questions(), found_questions()),
    "units": everybody,
    "limits": st.sampled_from([(1, 1), (1, 3), (2, 2), (3, 1)]),
    "few": st.booleans(),
}


def the_same(world: Own, sql: str, units: Any, limits: tuple[int, int], few: bool) -> None:
    world.fill(frames(units))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "FEW_ROWS", 10**6 if few else 2)
        for plan in plans_of(world, sql, Limits(*limits, None)):
            public = world.public(plan)
            assert answer(world.engine, plan, public) == by_text(world.engine, plan, public), sql


@settings(max_examples=counts.part(40, 2), **SETTINGS)
@given(**CASE)
def test_random_questions_are_the_same_ranked_here_and_in_sql(
    world: Own, sql: str, units: Any, limits: tuple[int, int], few: bool
) -> None:
    the_same(world, sql, units, limits, few)


@settings(max_examples=counts.part(40, 2), **SETTINGS)
@given(**CASE)
def test_random_questions_of_units_named_by_texts_are_the_same(
    named: Own, sql: str, units: Any, limits: tuple[int, int], few: bool
) -> None:
    the_same(named, sql, units, limits, few)


@settings(max_examples=counts.part(20, 2), **SETTINGS)
@given(**{**CASE, "sql": questions(each_row=True)})
def test_random_questions_of_rows_as_units_are_the_same(
    rows_as_units: Own, sql: str, units: Any, limits: tuple[int, int], few: bool
) -> None:
    the_same(rows_as_units, sql, units, limits, few)


@pytest.mark.soak
@settings(max_examples=5_000, **SETTINGS)
@given(**CASE)
def test_many_random_questions_are_the_same_ranked_here_and_in_sql(
    world: Own, sql: str, units: Any, limits: tuple[int, int], few: bool
) -> None:
    the_same(world, sql, units, limits, few)


@pytest.mark.soak
@settings(max_examples=5_000, **SETTINGS)
@given(**CASE)
def test_many_random_questions_of_units_named_by_texts_are_the_same(
    named: Own, sql: str, units: Any, limits: tuple[int, int], few: bool
) -> None:
    the_same(named, sql, units, limits, few)


BACK = pow(int(pieces.ODD), -1, 2**64)
"""A unit of this many times i is mixed to i: all of them share their highest bits."""


@pytest.mark.parametrize("split", [0, 6])
@pytest.mark.parametrize("signed", [True, False])
def test_units_and_groups_that_share_their_bits_are_put_in_order(split: int, signed: bool) -> None:
    rng = np.random.default_rng(7)
    n, number = 3_000, 40
    who = rng.integers(0, number, n)
    units = np.array([i * BACK % 2**64 if i % 3 else i for i in range(number)], np.uint64)
    unit = units[who].view(np.int64) if signed else units[who]
    if split:  # as in a part: those units that share the highest bits
        kept = (pieces.mixed(unit) >> np.uint64(58)) == 0
        unit, n = unit[kept], int(kept.sum())
        assert n > 1_000
    group = rng.integers(0, 9, n).astype(np.int32)
    # Hashes of a unit and a group: the same highest bits for most, the very same hash for some.
    hashed = (unit.view(np.uint64) % np.uint64(2)) + (group.astype(np.uint64) // np.uint64(2))
    hashed[group == 8] = 2**64 - 1
    alone, ordered = ranking._order(unit, group, None, split)  # as where all rows are of one group
    assert sorted(alone.tolist()) == list(range(n))
    assert ordered.tolist() == unit[alone].tolist()
    assert len(list(itertools.groupby(ordered.tolist()))) == len(set(unit.tolist()))
    order, ordered = ranking._order(unit, group, hashed, split)
    assert ordered.tolist() == unit[order].tolist()
    assert sorted(order.tolist()) == list(range(n))
    rows = list(zip(unit[order].tolist(), hashed[order].tolist(), group[order].tolist(), strict=True))
    seen: dict[int, list[tuple[int, int]]] = {}
    last = None
    for u, *pair in rows:
        assert u == last or u not in seen, "the rows of a unit stand apart"
        seen.setdefault(u, []).append((pair[0], pair[1]))
        last = u
    assert all(pairs == sorted(pairs) for pairs in seen.values())
    assert len(seen) > 5


def test_units_that_share_their_bits_are_bounded_apart() -> None:
    units = [(i * BACK % 2**64) - 2**63 for i in range(64)]
    rows = [(u, g, (g * 7 + i) % 11) for i, u in enumerate(units) for g in range(6) for _ in range(1 + i % 3)]
    u, g, v = (list(c) for c in zip(*rows, strict=True))
    frame = pa.table({"u": pa.array(u, pa.int64()), "g": g, "v": v})
    columns = {"g": hb.one_of(*range(6)), "v": hb.between(0, 10)}
    table = hb.table(frame, unit="u", max_groups=2, max_rows=2, columns=columns)
    with hb.Session({"t": table}, budget=hb.Budget(10**12), ledger=None) as session:
        counts = session.sql("SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g", epsilon=10**8).to_dict()
        totals = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=10**8).to_dict()
    assert sum(counts["n"]) == 64 * 2
    assert sum(totals["n"]) == 2 * sum(min(2, 1 + i % 3) for i in range(64))


@pytest.mark.parametrize(
    "parts",
    [[0, -1, 1], [2**62, -(2**62), 5, -(2**22)], [2**22, 2**22 - 1, -(2**44) - 3], []],
)
def test_limbs_are_the_number(parts: list[int]) -> None:
    found = sum(limb.astype(object) * 2**shift for shift, limb in ranking._limbs(np.array(parts, np.int64)))
    assert list(np.atleast_1d(found)) == parts
    assert all(abs(limb).max(initial=0) <= 2**22 for _, limb in ranking._limbs(np.array(parts, np.int64)))


@pytest.fixture(scope="module")
def sums() -> Plan:
    """A sum by group, of which a customer counts in one, with two rows."""
    here = Own(shop_tables(), FRAMES)
    (plan,) = plans_of(here, "SELECT segment, SUM(balance) AS s FROM customer GROUP BY segment", Limits(1, 2, None))
    here.close()
    return plan


def test_rows_over_the_limit_are_scaled_without_rounding(sums: Plan) -> None:
    count, total = [3, 3, 2, 2**31], [7, -7, 9, -(2**62) + 1]
    for size in (2, 4):  # the smaller ones alone are divided in one step
        some = zip(total[:size], count[:size], strict=True)
        found = ranking._bounded_part(sums.measurements[0], 2, np.array(count[:size]), np.array(total[:size]))
        exact = [t if c <= 2 else int(abs(t) * 2 // c) * (1 if t > 0 else -1) for t, c in some]
        assert found.tolist() == exact == [4, -4, 9, -(2**32) + 1][:size]
    for t in (2**63 // 3 - 1, 2**63 // 3, 2**63 // 3 + 1):
        found = ranking._bounded_part(sums.measurements[0], 3, np.array([7]), np.array([-t]))
        assert found.tolist() == [-(t * 3 // 7)]


def _rows(units: list[Any], values: list[int]) -> list[pa.RecordBatch]:
    n = len(units)
    names = pa.array(units)
    part = {} if pa.types.is_integer(names.type) else {"u": pa.array([0] * n, pa.uint8())}
    keys = {"g": pa.array([0] * n, pa.int32()), "h": pa.array([1] * n, pa.uint64())}
    return list(pa.table({"unit": names, **part, **keys, "x0": pa.array(values, pa.float64())}).to_batches())


def _no_places(value: Any) -> Any:
    raise AssertionError("nothing is listed")


def bounded(rows: Iterable[pa.RecordBatch], plan: Plan, size: int, stopped: Any = lambda: False) -> Any:
    with Room(size).share() as share:
        found = ranking.bounded(rows, plan, share, _no_places, stopped)
    return None if found is None else found.sums


def centred(plan: Plan, total: int, count: int) -> list[tuple[int, ...]]:
    """The sum as it is measured, and the count beside it."""
    steps = total * 2 ** -plan.measurements[0].values[0].grid.exponent - count * plan.measurements[0].values[0].centre
    return [(0, int(steps), count)]


def in_steps(plan: Plan, values: list[int]) -> list[int]:
    return [v * 2 ** -plan.measurements[0].values[0].grid.exponent for v in values]


def test_rows_that_do_not_fit_are_left_to_the_engine(sums: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "FEW_ROWS", 1)
    rows = _rows([1, 2, 1], in_steps(sums, [3, 4, 5]))
    assert bounded(rows, sums, 10) is None
    assert bounded(rows, sums, 10**6) == centred(sums, 12, 3)
    assert bounded([], sums, 10**6) == []


def test_sessions_share_one_room() -> None:
    room = Room(100)
    with room.share() as one, room.share() as two:
        assert one.holds(60)
        assert not two.holds(60), "two questions hold more than there is"
        assert two.holds(40)
        assert one.holds(10)
        assert two.holds(90)
        assert not one.holds(11)
        assert room.held == 100
    assert room.held == 0
    assert DuckDBEngine()._dialect is not None
    assert engine_module.ROOM.size > 10**6


def test_what_others_hold_decides_the_way_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pa.table(
        {"u": [i % 7 for i in range(60)], "g": [i % 5 for i in range(60)], "v": [i % 11 for i in range(60)]}
    )
    columns = {"g": hb.one_of(*range(5)), "v": hb.between(0, 10)}
    table = hb.table(frame, unit="u", max_groups=2, max_rows=2, columns=columns)
    ways: list[bool] = []
    monkeypatch.setattr(
        engine_module, "bounded", lambda *a: (found := ranking.bounded(*a), ways.append(found is not None))[0]
    )
    with hb.Session({"t": table}, budget=hb.Budget(10**12), ledger=None) as session:
        asked = "SELECT g, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY g"
        free = session.sql(asked, epsilon=10**9, fresh=True).to_dict()
        with engine_module.ROOM.share() as other:
            assert other.holds(engine_module.ROOM.size - 10)
            assert session.sql(asked, epsilon=10**9, fresh=True).to_dict() == free
        monkeypatch.setattr(ranking, "parts_of", _out_of_memory)
        assert session.sql(asked, epsilon=10**9, fresh=True).to_dict() == free
    assert ways == [True, False, False]
    assert engine_module.ROOM.held == 0


def _out_of_memory(*_: Any) -> Any:
    raise MemoryError


def test_a_unit_with_very_many_rows_is_left_to_the_engine(sums: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "FEW_ROWS", 10)
    units, room = list(range(50)) * 20, 100_000
    assert bounded(_rows(units, [1] * 1000), sums, room) is not None
    assert bounded(_rows([7] * 1000, [1] * 1000), sums, room) is None  # sorting it takes several times that
    assert bounded(_rows([7] * 1000, [1] * 1000), sums, 10**7) is not None
    monkeypatch.setattr(ranking, "LARGEST", 1000)
    assert bounded(_rows([7] * 1000, [1] * 1000), sums, 10**7) is not None
    monkeypatch.setattr(ranking, "LARGEST", 999)
    assert bounded(_rows([7] * 1000, [1] * 1000), sums, 10**7) is None  # nor does any sort go on for long


def test_a_question_that_is_to_end_ends(sums: Plan) -> None:
    asked = itertools.chain([False], itertools.repeat(True))
    for stopped in (lambda: True, lambda: next(asked)):
        with pytest.raises(pieces.Stopped):
            bounded(_rows([1, 2], [3, 4]), sums, 10**6, stopped)


NAMES = ["a", "b", "a\0", "aa", "", "\u00e9", "e\u0301", "x" * 300 + "1", "x" * 300 + "2", " a", "A"]


@pytest.mark.parametrize("few", [True, False])
def test_texts_are_one_unit_only_where_all_of_their_bytes_are(
    sums: Plan, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All in one part, as if every one of them had the same hash.
    monkeypatch.setattr(pieces, "FEW_ROWS", 10**6 if few else 1)
    rows = _rows(NAMES * 3, in_steps(sums, [1] * 3 * len(NAMES)))
    assert bounded(rows, sums, 10**6) == centred(sums, 2 * len(NAMES), 2 * len(NAMES))


def test_a_clamped_value_is_that_of_the_text() -> None:
    here = Own(asked_tables("add_remove"), frames({}))
    values = [0.0, -0.0, 1.5, 2.5, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"), None, 2.0**53 + 2]
    (plan,) = plans_of(here, "SELECT SUM(x) AS s, AVG(x) AS m FROM visits", Limits(1, 50, None))
    (value,) = plan.values
    exponent = value.grid.exponent
    rounded = DUCKDB.steps("x", exponent)
    text = DUCKDB.clamped("y", exponent, value.floor, value.ceiling, value.centre, "NULL")
    halves = [(i + 0.5) * 2.0**exponent for i in range(-3, 4)]
    numbers = pa.array([*values, *halves, *(v * 49 for v in halves), *(math.nextafter(v, 0.0) for v in halves)])
    con = here.engine._con.cursor()
    con.register("numbers", pa.table({"x": numbers}))
    sql = f"SELECT {text}, x * {2.0**-exponent!r} FROM (SELECT x, {rounded} AS y FROM numbers)"
    expected, steps = zip(*con.execute(sql).fetchall(), strict=True)
    whole, there = pieces._clamped(pa.array(steps, pa.float64()), value)
    assert [int(v) if t else None for v, t in zip(whole, there, strict=True)] == list(expected)
    here.close()


@pytest.mark.parametrize("ends", [(0, 51200), (-7, 3), (2**40, 2**40 + 99)])
def test_the_order_of_steps_is_that_of_the_window(ends: tuple[int, int]) -> None:
    engine = DuckDBEngine()
    value = replace_ends(ends)
    places = engine._order_of_steps(value)
    rows = engine._con.execute(
        f"SELECT x FROM (SELECT CAST(range AS BIGINT) AS x FROM range({ends[0]}, {ends[1]} + 1)) ORDER BY hash(x), x"
    ).fetchall()
    assert (places.steps + ends[0]).tolist() == [x for (x,) in rows]
    engine.close()


def replace_ends(ends: tuple[int, int]) -> Value:
    return Value(Literal(0), Grid(0), *ends)


def test_an_engine_that_refuses_everything_is_opened_again() -> None:
    frame = pa.table({"u": [1, 2, 2], "g": ["a", "b", "a"]})
    table = hb.table(frame, unit="u", max_groups=1, max_rows=1, columns={"g": hb.one_of("a", "b")})
    with hb.Session({"t": table}, budget=hb.Budget(10**12), ledger=None) as session:
        engine = session._engine
        engine._con.close()  # as after an error inside DuckDB, which rows that come in batches do not name
        found = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=10**8).to_dict()["n"]
        assert sum(found) == 2  # by the text, on the new connection
        engine._con.close()
        with plain.only(plain=True), pytest.raises(EngineError):
            session.sql("SELECT g, COUNT(u) AS n FROM t GROUP BY g", epsilon=10**8)
        assert session.sql("SELECT COUNT(DISTINCT u) AS n FROM t", epsilon=10**8).to_dict() == {"n": [2]}
        assert not engine._running


def test_sums_that_might_not_fit_are_left_to_the_engine(sums: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _rows([1] * 40, in_steps(sums, [3] * 40))
    assert bounded(rows, sums, 10**6) == centred(sums, 6, 2)
    monkeypatch.setattr(type(sums.measurements[0]), "high", property(lambda self: 2**57))
    assert bounded(rows, sums, 10**6) is None


def found(limits: dict[str, int], frame: pa.Table, sql: str) -> tuple[Any, Any]:
    """The integers of a question whose groups are found privately: ranked here, and by the text."""
    table = hb.table(frame, unit="u", columns={"v": hb.between(0, 9)})
    here = Own({"t": table}, {"t": frame})
    found = []
    for plan in plans_of(here, sql, Limits(limits["groups"], limits["rows"], None)):
        assert ranks(plan)
        found += [(as_groups(here.engine.run(plan)), as_groups(by_text_exact(here.engine, plan)))]
    here.close()
    return found[0]


def by_text_exact(engine: DuckDBEngine, plan: Plan) -> Any:
    with plain.only(plain=True):
        return engine.run(plan)


def as_groups(exact: Any) -> dict[Any, Any]:
    return dict(zip(exact.groups, zip(*exact.vectors, strict=True), strict=True))


@pytest.mark.parametrize("most", [1 << 16, 3])
@pytest.mark.parametrize("keys", ["day", "name", "name, day", "number", "yes, number"])
def test_groups_that_are_found_are_those_of_the_text(keys: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_FOUND", most)
    monkeypatch.setattr(pieces, "FEW_ROWS", 50)
    rng = np.random.default_rng(3)
    n = 400
    days = [None, dt.date(1, 1, 1), dt.date(2025, 1, 1), dt.date(9999, 12, 31)]
    names = [None, "", "a", "a\0", "A", "\u00e9", "e\u0301", "a "]
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), n)]  # noqa: E731
    frame = pa.table(
        {
            "u": pick([*"abcdefgh", "i" * 40]),
            "v": pick([0, 1, 5, 9, 100, None]),
            "day": pa.array(pick(days), pa.date32()),
            "name": pick(names),
            "number": pa.array(pick([None, 2**63 - 1, -(2**63), 0, 2**53, 2**53 + 1]), pa.int64()),
            "yes": pick([True, False, None]),
        }
    )
    sql = f"SELECT {keys}, COUNT(*) AS n, SUM(v) AS s, MEDIAN(v) AS m FROM t GROUP BY {keys}"
    ours, text = found({"groups": 2, "rows": 2}, frame, sql)
    assert ours == text
    assert len(ours) > 2


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.uint64(), pa.int64(), pa.string(), pa.float64(), pa.date32(), pa.decimal128(38)]
)
def test_units_of_any_type_are_bounded(kind: pa.DataType) -> None:
    units = pa.array([i % 5 for i in range(40)], pa.int32()).cast(
        pa.int64() if kind == pa.decimal128(38) else pa.int32()
    )
    frame = pa.table({"u": units.cast(kind), "g": [i % 4 for i in range(40)]})
    table = hb.table(frame, unit="u", max_groups=3, max_rows=1, columns={"g": hb.one_of(0, 1, 2, 3)})
    with hb.Session({"t": table}, budget=hb.Budget(10**9), ledger=None) as session:
        found = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=10**8).to_dict()
    assert sum(found["n"]) == 5 * 3


def test_a_cast_rounds_as_round_even_does() -> None:
    """What `DuckDB.on_grid` leaves out: random doubles of every size, halves, and the ends of 64 bits."""
    rng = np.random.default_rng(11)
    numbers = np.concatenate(
        [
            rng.integers(0, 2**64, 20_000, np.uint64).view(np.float64),
            rng.integers(-(2**53), 2**53, 20_000) / 2.0,
            rng.integers(-1000, 1000, 2_000) + 0.5,
            [s * np.ldexp(1.0, k) + d for s in (1, -1) for k in range(50, 66) for d in (-0.5, 0.0, 0.5, -1.0, 1.0)],
        ]
    )
    engine = DuckDBEngine()
    con = engine._con.cursor()
    con.register("numbers", pa.table({"x": numbers}))
    differ = "TRY_CAST(x AS BIGINT) IS DISTINCT FROM TRY_CAST(round_even(x, 0) AS BIGINT)"
    assert con.execute(f"SELECT count(*) FROM numbers WHERE {differ}").fetchone() == (0,)
    assert con.execute("SELECT count(*) FROM numbers WHERE TRY_CAST(x AS BIGINT) IS NULL").fetchone()[0] > 1_000
    engine.close()


@pytest.mark.parametrize("failure", [MemoryError, pa.ArrowInvalid, OverflowError])
@pytest.mark.parametrize("where", ["parts_of", "_need", "_order"])
def test_what_fails_in_ranking_is_answered_by_the_text(
    where: str, failure: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure may depend on rows; where the other way answers, it is none."""
    frame = pa.table({"u": np.arange(60) % 6, "g": np.arange(60) % 7, "v": np.arange(60) % 11})
    columns = {"g": hb.one_of(*range(7)), "v": hb.between(0, 10)}
    here = Own({"t": hb.table(frame, unit="u", columns=columns)}, {"t": frame})
    (plan,) = plans_of(here, "SELECT g, SUM(v), COUNT(*), MEDIAN(v) FROM t GROUP BY g", Limits(2, 2, None))
    assert ranks(plan)
    before, called = here.engine.run(plan), []

    def failing(*arguments: Any) -> Any:
        called.append(arguments)
        raise failure("of a row")

    monkeypatch.setattr(ranking, where, failing)
    assert here.engine.run(plan) == before
    assert called
    assert engine_module.ROOM.held == 0
    here.close()


@pytest.mark.parametrize("where", ["reading", "sorting"])
def test_an_interrupt_ends_a_question_at_the_next_batch_or_part(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes as `interrupt` from another thread: what goes on is at most what each processor is at."""
    n = 60_000
    frame = pa.table({"u": np.arange(n) % 6_000, "g": np.arange(n) % 7, "v": np.arange(n) % 11})
    columns = {"g": hb.one_of(*range(7)), "v": hb.between(0, 10)}
    table = hb.table(frame, unit="u", max_groups=2, max_rows=2, columns=columns)
    monkeypatch.setattr(pieces, "FEW_ROWS", 1)
    monkeypatch.setattr(engine_module, "BATCH", 2_048)
    begun: list[float] = []
    module, name = (pieces, "_cut") if where == "reading" else (ranking, "_order")
    plain_way = getattr(module, name)

    def interrupting(*arguments: Any) -> Any:
        if not begun:
            session._engine.interrupt()
        begun.append(time.process_time())
        return plain_way(*arguments)

    monkeypatch.setattr(module, name, interrupting)
    with hb.Session({"t": table}, budget=hb.Budget(10**12), ledger=None) as session:
        with pytest.raises(EngineError):
            session.sql("SELECT g, SUM(v) AS s FROM t GROUP BY g", epsilon=10**8)
        assert 1 <= len(begun) <= 1 + (os.cpu_count() or 1)
        assert time.process_time() - begun[0] < 1
        monkeypatch.undo()
        counts = session.sql("SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g", epsilon=10**8).to_dict()["n"]
        assert sum(counts) == 6_000 * 2
    assert engine_module.ROOM.held == 0


def test_the_largest_sort_is_over_within_a_second_or_so() -> None:
    """A part has at most LARGEST rows, whatever one unit has."""
    rows = np.random.default_rng(5).integers(0, 2**63, ranking.LARGEST // 8).astype(np.uint64)
    start = time.process_time()
    rows.sort()
    assert 8 * (time.process_time() - start) < 1.5


@pytest.mark.parametrize(
    ("rows", "ends", "fits"),
    [
        (2**31, [(-1, 1), (0, 2**30)], True),
        (2**31, [(-1, 1), (0, 2**31)], False),
        (2**31, [(-(2**31), 5), (0, 1)], False),
        (2**62 - 1, [], True),
        (2**62, [], False),
        (2**62, [(0, 0)], False),
    ],
)
def test_sums_are_made_here_only_if_those_of_the_largest_values_fit(
    rows: int, ends: list[tuple[int, int]], fits: bool
) -> None:
    held = object.__new__(ranking._Rows)
    held.counts = np.array([1, rows, 3])
    assert held.fits([SimpleNamespace(low=low, high=high) for low, high in ends]) is fits  # type: ignore[misc]
