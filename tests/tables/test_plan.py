"""Sensitivities, derived twice: by the formula and by brute force over everything one unit can contribute."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import NoReturn

import pytest

import hubbub as hb
from hubbub.accounting import pure_epsilon
from hubbub.noise import Grid
from hubbub.tables.declare import Neighbours, PrivateTable
from hubbub.tables.expressions import Arithmetic, Case, Column, Compare, Literal
from hubbub.tables.groups import fitted
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Bounds, Counting, Plan, make_plan, sensitivity
from hubbub.tables.price import make_price
from hubbub.tables.question import Aggregate, Function, Key, Output, Question

AGE = Column("age", Kind.NUMBER)


def question(*aggregates: Aggregate, keys: tuple[str, ...] = ()) -> Question:
    return Question(
        table="t",
        where=None,
        keys=tuple(Key(Column(k, Kind.NUMBER if k == "age" else Kind.TEXT)) for k in keys),
        aggregates=aggregates,
        outputs=tuple(Output(f"x{i}", a) for i, a in enumerate(aggregates)),
    )


def declared(**changes: object) -> PrivateTable:
    arguments: dict[str, object] = {
        "unit": "id",
        "max_groups": 2,
        "max_rows": 3,
        "columns": {"age": hb.between(-10, 100), "ward": hb.one_of("A", "B", "C")},
    }
    return hb.table("t.parquet", **(arguments | changes))  # type: ignore[arg-type]


def brute_force(bounds: Bounds, low: int, high: int, groups: int, neighbours: Neighbours) -> int:
    """The largest l1 distance between two parts one unit can contribute, over all such parts."""
    values = range(min(0, bounds.rows * low), max(0, bounds.rows * high) + 1)
    parts = [p for p in itertools.product(values, repeat=groups) if sum(v != 0 for v in p) <= bounds.groups]
    if neighbours == "add_remove":
        return max(sum(map(abs, p)) for p in parts)
    return max(sum(abs(a - b) for a, b in zip(p, q, strict=True)) for p in parts for q in parts)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(("low", "high"), [(1, 1), (-1, 2), (-2, -1), (0, 2), (1, 2)])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_formula_is_the_brute_force_maximum(
    limit: int, groups: int, low: int, high: int, neighbours: Neighbours
) -> None:
    bounds = Bounds(limit, 2)
    assert sensitivity(bounds, low, high, groups, neighbours) == brute_force(bounds, low, high, groups, neighbours)


def nothing_computed(*_: object) -> NoReturn:
    raise AssertionError("no key here is an expression")


def plan(*aggregates: Aggregate, keys: tuple[str, ...] = (), **changes: object) -> Plan:
    return make_plan(question(*aggregates, keys=keys), declared(**changes), nothing_computed)


def test_counts_move_by_groups_times_rows() -> None:
    grouped = plan(Aggregate(Function.COUNT_ROWS), keys=("ward",))
    assert [grouped.sensitivity(m) for m in grouped.measurements] == [6]
    whole = plan(Aggregate(Function.COUNT_ROWS))
    assert [whole.sensitivity(m) for m in whole.measurements] == [6]
    assert plan(Aggregate(Function.COUNT_ROWS), max_total=5).bounds == Bounds(1, 5)
    units = plan(Aggregate(Function.COUNT_UNITS), keys=("ward",), max_rows=None)
    assert [units.sensitivity(m) for m in units.measurements] == [2]


def test_a_row_that_is_its_own_unit_moves_a_count_by_one() -> None:
    rows = plan(Aggregate(Function.COUNT_ROWS), keys=("ward",), unit=hb.EACH_ROW)
    assert [rows.sensitivity(m) for m in rows.measurements] == [1]
    replaced = plan(Aggregate(Function.COUNT_ROWS), keys=("ward",), unit=hb.EACH_ROW, neighbours="replace")
    assert [replaced.sensitivity(m) for m in replaced.measurements] == [2]


def test_a_sum_moves_by_its_bounds_on_the_grid() -> None:
    found = plan(Aggregate(Function.SUM, AGE), keys=("ward",))
    (m,) = found.measurements
    assert m.counting is Counting.SUM
    assert m.floor * m.grid.step <= -10
    assert m.ceiling * m.grid.step >= 100
    assert 2**21 <= m.ceiling - m.floor <= 2**22 + 2
    assert found.sensitivity(m) == 6 * m.ceiling


def test_a_mean_is_a_centred_sum_and_a_count_that_others_share() -> None:
    found = plan(Aggregate(Function.AVG, AGE), Aggregate(Function.COUNT_VALUES, AGE), keys=("ward",))
    assert len(found.measurements) == 2
    total, count = found.measurement_of(Aggregate(Function.AVG, AGE))
    assert abs(total.low + total.high) <= 1
    assert count.counting is Counting.VALUES
    sure = plan(
        Aggregate(Function.AVG, AGE), Aggregate(Function.COUNT_ROWS), columns={"age": hb.between(0, 1, nullable=False)}
    )
    assert {m.counting for m in sure.measurements} == {Counting.SUM, Counting.ROWS}


def test_whole_numbers_lose_nothing_on_the_grid() -> None:
    yes = Case((Compare(">", AGE, Literal(50)),), (Literal(1),), Literal(0))
    (m,) = plan(Aggregate(Function.SUM, yes)).measurements
    assert (m.grid, m.floor, m.ceiling) == (Grid(0), 0, 1)
    wide = plan(Aggregate(Function.SUM, Column("n", Kind.INTEGER)), columns={"n": hb.between(0, 2**62)})
    assert wide.measurements[0].ceiling <= 2**23


@pytest.mark.parametrize("high", [5e-324, 1e-300, 1e-3, 1, 1e12, 1e288])
def test_any_finite_bounds_find_a_grid(high: float) -> None:
    (m,) = plan(Aggregate(Function.SUM, AGE), columns={"age": hb.between(0, high)}).measurements
    assert 1 <= m.ceiling <= 2**22 + 1


def test_far_away_bounds_stay_inside_64_bits() -> None:
    (m,) = plan(Aggregate(Function.SUM, AGE), columns={"age": hb.between(10**15, 10**15 + 1)}).measurements
    assert m.ceiling <= 2**41


@pytest.mark.parametrize(
    ("aggregate", "keys", "changes", "says"),
    [
        (Aggregate(Function.SUM, Column("height", Kind.NUMBER)), (), {}, r"height has no declared bounds"),
        (Aggregate(Function.COUNT_ROWS), ("age",), {}, r"hb\.one_of"),
        (Aggregate(Function.COUNT_ROWS), ("ward",), {"max_groups": None}, "max_groups"),
        (Aggregate(Function.COUNT_ROWS), ("ward",), {"max_rows": None}, "max_rows"),
        (Aggregate(Function.COUNT_ROWS), (), {"max_rows": None}, "max_total"),
    ],
)
def test_what_is_not_declared_is_named(
    aggregate: Aggregate, keys: tuple[str, ...], changes: dict[str, object], says: str
) -> None:
    with pytest.raises(hb.PolicyError, match=says):
        plan(aggregate, keys=keys, **changes)


def test_a_sum_without_a_range_is_refused() -> None:
    with pytest.raises(hb.QueryError, match="may be 0"):
        plan(Aggregate(Function.SUM, Arithmetic("/", Literal(1), AGE)))


@pytest.mark.parametrize(
    ("value", "kind"),
    [("A", Kind.INTEGER), (1.5, Kind.INTEGER), (True, Kind.INTEGER), (1, Kind.TEXT), (2**70, Kind.INTEGER)],
)
def test_a_value_the_column_cannot_hold_is_refused(value: object, kind: Kind) -> None:
    with pytest.raises(hb.PolicyError, match="never equal"):
        fitted(value, kind, "c")  # type: ignore[arg-type]


def test_the_charge_is_the_loss_of_the_noise_exactly() -> None:
    asked = Fraction(1, 3)
    priced = make_price(plan(Aggregate(Function.AVG, AGE), Aggregate(Function.COUNT_UNITS), keys=("ward",)), asked)
    assert len(priced.parts) == 3
    assert pure_epsilon(priced.event) == asked
    assert sum(p.epsilon for p in priced.parts) == asked
    assert all(p.sensitivity / p.noise.scale == p.epsilon for p in priced.parts)


def test_noise_beyond_64_bits_is_refused_with_the_way_out() -> None:
    with pytest.raises(hb.QueryError, match="larger epsilon"):
        make_price(plan(Aggregate(Function.COUNT_ROWS)), Fraction(1, 10**30))
