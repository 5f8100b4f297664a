"""Groups ranked in this process give the integers of the SQL text, whatever shares its bits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import hubbub as hb
from asked import everybody, frames, questions, tables as asked_tables
from engines.places import Embedded, answer
from golden.queries import QUERIES
from golden.shop import FRAMES, tables as shop_tables
from hubbub.engines.duckdb import engine as engine_module, ranking
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import image
from hubbub.errors import EngineError, HubbubError
from hubbub.sql.bind.query import PublicQuestion, parse
from hubbub.sql.emit.plan import ranks_groups
from hubbub.tables.declare import Limits
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import leaves

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")
SETTINGS: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


class Own(Embedded):
    """The embedded engine with its own hash, as sessions have it."""

    def __init__(self, tables: Mapping[str, Any], frames: Mapping[str, pa.Table]) -> None:
        super().__init__(tables, frames)
        self.engine._dialect = DUCKDB


def by_text(engine: DuckDBEngine, plan: Plan, public: Mapping[str, Any]) -> Any:
    """What the SQL text alone answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "ranks_groups", lambda plan: False)
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
    here, ranked = Own(shop_tables(), FRAMES), 0
    for sql, more in QUERIES:
        options = {name: more[name] for name in ("params", "keys") if name in more}
        for groups, rows in ((1, 1), (2, 3)):
            for plan in plans_of(here, sql, Limits(groups, rows, None), **options):
                if ranks_groups(plan) and not any(leaf.released for leaf in leaves(plan.question.relation)):
                    ranked += 1
                    public = here.public(plan)
                    assert answer(here.engine, plan, public) == by_text(here.engine, plan, public), sql
    here.close()
    assert ranked >= 140


@pytest.fixture(scope="module")
def world() -> Iterator[Own]:
    here = Own(asked_tables("add_remove"), frames({}))
    yield here
    here.close()


CASE: dict[str, Any] = {
    "sql": questions(),
    "units": everybody,
    "limits": st.sampled_from([(1, 1), (1, 3), (2, 2), (3, 1)]),
    "few": st.booleans(),
}


def the_same(world: Own, sql: str, units: Any, limits: tuple[int, int], few: bool) -> None:
    world.fill(frames(units))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "FEW_ROWS", 10**6 if few else 2)
        for plan in plans_of(world, sql, Limits(*limits, None)):
            public = world.public(plan)
            assert answer(world.engine, plan, public) == by_text(world.engine, plan, public), sql


@settings(max_examples=40, **SETTINGS)
@given(**CASE)
def test_random_questions_are_the_same_ranked_here_and_in_sql(
    world: Own, sql: str, units: Any, limits: tuple[int, int], few: bool
) -> None:
    the_same(world, sql, units, limits, few)


@pytest.mark.soak
@settings(max_examples=3_000, **SETTINGS)
@given(**CASE)
def test_many_random_questions_are_the_same_ranked_here_and_in_sql(
    world: Own, sql: str, units: Any, limits: tuple[int, int], few: bool
) -> None:
    the_same(world, sql, units, limits, few)


BACK = pow(int(ranking.ODD), -1, 2**64)
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
        kept = (ranking._mixed(unit) >> np.uint64(58)) == 0
        unit, n = unit[kept], int(kept.sum())
        assert n > 1_000
    group = rng.integers(0, 9, n).astype(np.int32)
    # Hashes of a unit and a group: the same highest bits for most, the very same hash for some.
    hashed = (unit.view(np.uint64) % np.uint64(2)) + (group.astype(np.uint64) // np.uint64(2))
    hashed[group == 8] = 2**64 - 1
    order = ranking._order(unit, group, hashed, split)
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
    found = ranking._bounded(sums.measurements[0], 2, np.array(count), np.array(total))
    exact = [t if c <= 2 else int(abs(t) * 2 // c) * (1 if t > 0 else -1) for t, c in zip(total, count, strict=True)]
    assert found.tolist() == exact == [4, -4, 9, -(2**32) + 1]


def _rows(units: list[int], values: list[int]) -> list[pa.RecordBatch]:
    n = len(units)
    columns = {"unit": units, "g": pa.array([0] * n, pa.int32()), "h": pa.array([1] * n, pa.uint64()), "s0": values}
    ones = pa.array([1] * n, pa.int8())
    return list(pa.table({**columns, "n0": ones, "n1": ones}).to_batches())


def test_rows_that_do_not_fit_are_left_to_the_engine(sums: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "FEW_ROWS", 1)
    rows = _rows([1, 2, 1], [3, 4, 5])
    assert ranking.bounded_sums(rows, sums, 10) is None
    assert ranking.bounded_sums(rows, sums, 10**6) == [(0, 12, 3)]
    assert ranking.bounded_sums([], sums, 10**6) == []


def test_a_unit_with_very_many_rows_is_left_to_the_engine(sums: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "FEW_ROWS", 10)
    units, room = list(range(50)) * 20, 100_000
    assert ranking.bounded_sums(_rows(units, [1] * 1000), sums, room) is not None
    assert (
        ranking.bounded_sums(_rows([7] * 1000, [1] * 1000), sums, room) is None
    )  # sorting it takes several times that


def test_a_question_that_is_to_end_ends(sums: Plan) -> None:
    asked = itertools.chain([False], itertools.repeat(True))
    for stopped in (lambda: True, lambda: next(asked)):
        with pytest.raises(ranking.Stopped):
            ranking.bounded_sums(_rows([1, 2], [3, 4]), sums, 10**6, stopped)


def test_an_engine_that_refuses_everything_is_opened_again() -> None:
    frame = pa.table({"u": [1, 2, 2], "g": ["a", "b", "a"]})
    table = hb.table(frame, unit="u", max_groups=1, max_rows=1, columns={"g": hb.one_of("a", "b")})
    with hb.Session({"t": table}, budget=hb.Budget(10**12), ledger=None) as session:
        engine = session._engine
        engine._con.close()  # as after an error inside DuckDB, which rows that come in batches do not name
        with pytest.raises(EngineError):
            session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=10**8)
        assert session.sql("SELECT COUNT(DISTINCT u) AS n FROM t", epsilon=10**8).to_dict() == {"n": [2]}
        assert not engine._running


def test_sums_that_might_not_fit_are_left_to_the_engine(sums: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _rows([1] * 40, [3] * 40)
    assert ranking.bounded_sums(rows, sums, 10**6) == [(0, 6, 2)]
    monkeypatch.setattr(type(sums.measurements[0]), "high", property(lambda self: 2**57))
    assert ranking.bounded_sums(rows, sums, 10**6) is None


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
