"""Sensitivities, derived twice: by the formula and by brute force over everything one unit can contribute."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

import hubbub as hb
from hubbub.noise import Grid
from hubbub.tables import measure
from hubbub.tables.aggregate_query import Aggregate
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.aggregates.base import measurements, measurements_of
from hubbub.tables.declare import Neighbours
from hubbub.tables.expressions import Arithmetic, Case, Column, Compare, Literal
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import (
    Bounds,
    Measurement,
    MeasurementKind,
    Value,
    l1,
    l2_squared,
)
from hubbub.tables.parts import Sums, build
from people import engine, visits
from tables.made import AVG, COUNT, DECLARED, MEDIAN, SUM, VAR, Row, X, Y, measured, part_of, plan, row_integer

Vector = tuple[int, ...]


def total(low: int, high: int) -> Measurement:
    return Measurement(MeasurementKind.SUM, values=(Value(X, Grid(0), low, high),))


def furthest(parts: list[Vector], neighbours: Neighbours, power: int) -> int:
    pairs = ((p, (0,) * len(p)) for p in parts) if neighbours == "add_remove" else itertools.product(parts, parts)
    return max(sum(abs(a - b) ** power for a, b in zip(p, q, strict=True)) for p, q in pairs)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(("low", "high"), [(1, 1), (-1, 2), (-2, -1), (0, 2), (1, 2), (-2, 2), (0, 0)])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_formulas_are_the_brute_force_maxima(
    limit: int, groups: int, low: int, high: int, neighbours: Neighbours
) -> None:
    bounds, m = Bounds(limit, 2), total(low, high)
    values = range(min(0, 2 * low), max(0, 2 * high) + 1)
    parts = [p for p in itertools.product(values, repeat=groups) if sum(v != 0 for v in p) <= limit]
    assert l1(m, bounds, groups, neighbours) == furthest(parts, neighbours, 1)
    assert l2_squared(m, bounds, groups, neighbours) == furthest(parts, neighbours, 2)


def test_private_groups_are_as_many_as_needed() -> None:
    m = total(-1, 2)
    for neighbours in ("add_remove", "replace"):
        assert l1(m, Bounds(2, 3), None, neighbours) == l1(m, Bounds(2, 3), 100, neighbours)  # type: ignore[arg-type]
        many = l2_squared(m, Bounds(2, 3), 100, neighbours)  # type: ignore[arg-type]
        assert l2_squared(m, Bounds(2, 3), None, neighbours) == many  # type: ignore[arg-type]


ROWS: list[Row] = [{"x": x, "y": y} for x in (0.0, 2.0) for y in (None, -1.0, 1.0)]
SMALL = {"t0.x": hb.between(0, 2), "t0.y": hb.between(-1, 1)}
EVERY = [
    COUNT,
    Aggregate(FUNCTIONS["COUNT_UNITS"]),
    Aggregate(FUNCTIONS["COUNT_UNITS"], (Y,)),
    Aggregate(FUNCTIONS["COUNT_VALUES"], (Y,)),
    Aggregate(FUNCTIONS["COUNT_DISTINCT"], (Y,)),
    SUM,
    AVG,
    VAR,
    Aggregate(FUNCTIONS["COVAR_POP"], (X, Y)),
    Aggregate(FUNCTIONS["CORR"], (X, Y)),
]


def contributions(limit: int, groups: int) -> list[list[tuple[int, str, Row]]]:
    """Everything one unit can have: up to limit + 1 rows in each group."""
    each = [c for k in range(limit + 2) for c in itertools.combinations_with_replacement(ROWS, k)]
    return [
        [(0, f"w{i:06d}", row) for i, rows in enumerate(chosen) for row in rows]
        for chosen in itertools.product(each, repeat=groups)
    ]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("groups", [1, 2])
def test_no_unit_moves_any_measurement_further_and_some_reach_it(groups: int, neighbours: Neighbours) -> None:
    """Every aggregate over all tables of one unit, with unknown values and more rows than allowed."""
    made = plan(*EVERY, groups=groups, bounds=Bounds(1, 1), neighbours=neighbours, declared=SMALL)
    found = [measured(made, rows) for rows in contributions(1 if groups == 1 else 0, groups)]
    for i, m in enumerate(made.measurements):
        parts = list({tuple(e.vectors[i]) for e in found})
        reached = furthest(parts, neighbours, 1), furthest(parts, neighbours, 2)  # type: ignore[arg-type]
        claimed = l1(m, made.bounds, groups, neighbours), l2_squared(m, made.bounds, groups, neighbours)
        assert max(r - c for r, c in zip(reached, claimed, strict=True)) <= 0, m.counting
        if m.counting is not MeasurementKind.PRODUCT:
            assert reached == claimed, m.counting


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("choice", ["pair", "centred", "total"])
def test_no_unit_moves_a_released_part_further(choice: str, neighbours: Neighbours) -> None:
    """The joint sensitivity of every part of every strategy, by brute force; a pair reaches its own."""
    by_y = Aggregate(FUNCTIONS["AVG"], (Y,))
    made = plan(
        COUNT, by_y, Aggregate(FUNCTIONS["SUM"], (Y,)), bounds=Bounds(1, 2), neighbours=neighbours, declared=SMALL
    )
    strategy = build(made, made.question.aggregates, (choice,))  # type: ignore[arg-type]
    found = [measured(made, rows) for rows in contributions(2, 1)]
    for part in strategy.parts:
        assert isinstance(part, Sums)
        parts = set()
        for exact in found:
            values = dict(zip(made.measurements, exact.vectors, strict=True))
            parts.add(tuple(sum(values[m][0] * c for m, c in vector) for vector in part.vectors))  # type: ignore[operator,misc]
        assert furthest(list(parts), neighbours, 1) == part.l1
        assert furthest(list(parts), neighbours, 2) == part.l2_squared


def test_scaled_sums_stay_inside_what_the_capped_count_allows() -> None:
    """R rows' worth at most, toward zero, beside a count of R: the pair's terms are never negative."""
    total_of_y = measurements_of(Aggregate(FUNCTIONS["SUM"], (Y,)), SMALL)[0]
    for k in range(1, 6):
        for rows in itertools.combinations_with_replacement(ROWS, k):
            count = part_of(Measurement(MeasurementKind.VALUES, Y), rows, 2)
            s = part_of(total_of_y, rows, 2)
            assert count * total_of_y.low <= s <= count * total_of_y.high


def test_aggregates_share_measurements() -> None:
    found = measurements([SUM, AVG, VAR, Aggregate(FUNCTIONS["STDDEV_SAMP"], (X,)), COUNT], DECLARED)
    assert sorted(m.counting.value for m in found) == ["product", "rows", "sum"]
    nullable = measurements([Aggregate(FUNCTIONS["AVG"], (Y,)), COUNT], DECLARED)
    assert sorted(m.counting.value for m in nullable) == ["rows", "sum", "values"]
    quartiles = [Aggregate(FUNCTIONS["QUANTILE"], (X,), Fraction(k, 4)) for k in (1, 2, 3)]
    assert len(measurements([*quartiles, Aggregate(FUNCTIONS["MAX"], (X,))], DECLARED)) == 1
    assert Measurement(MeasurementKind.UNITS) in measurements([COUNT], DECLARED, private_keys=True)
    assert measurements([SUM, COUNT], DECLARED) == measurements([COUNT, SUM], DECLARED)


def test_a_covariance_looks_at_rows_where_both_are_known() -> None:
    declared = {"t0.x": hb.between(0, 2), "t0.y": hb.between(-1, 1)}
    first, second, count, product = measurements_of(Aggregate(FUNCTIONS["COVAR_POP"], (X, Y)), declared)
    for row, there in ((ROWS[0], 0), (ROWS[1], 1), ({"x": None, "y": 1.0}, 0)):
        assert [row_integer(m, row) is not None for m in (first, second, count, product)] == [bool(there)] * 4
    swapped = measurements_of(Aggregate(FUNCTIONS["COVAR_POP"], (Y, X)), declared)
    assert swapped[3] == product


def test_products_stay_on_few_steps_and_are_exact_for_small_whole_numbers() -> None:
    wide = measurements_of(Aggregate(FUNCTIONS["VAR_POP"], (Y,)), {"t0.y": hb.between(-1e6, 1e6)})[2]
    assert 2**20 <= wide.high - wide.low <= 2**22
    assert abs(wide.high + wide.low) <= 1
    n = Column("t0.n", Kind.INTEGER)
    small = measurements_of(Aggregate(FUNCTIONS["VAR_POP"], (n,)), {"t0.n": hb.between(0, 100)})[2]
    assert (small.shift, small.step) == (0, 1)


def test_quantiles_have_at_most_65536_steps_and_whole_numbers_stay_whole() -> None:
    (m,) = measurements_of(MEDIAN, DECLARED)
    assert 2**15 <= m.values[0].ceiling - m.values[0].floor <= 2**16
    n = Column("t0.n", Kind.INTEGER)
    (whole,) = measurements_of(Aggregate(FUNCTIONS["MIN"], (n,)), {"t0.n": hb.between(18, 120)})
    value = whole.values[0]
    assert (value.grid, value.floor, value.ceiling, value.centre) == (Grid(0), 18, 120, 0)


def test_a_whole_number_loses_nothing_on_the_grid() -> None:
    yes = Case((Compare(">", X, Literal(50)),), (Literal(1),), Literal(0))
    value = measurements_of(Aggregate(FUNCTIONS["SUM"], (yes,)), DECLARED)[0].values[0]
    assert (value.grid, value.floor, value.ceiling) == (Grid(0), 0, 1)


@pytest.mark.parametrize("high", [5e-324, 1e-300, 1e-3, 1, 1e12, 1e288])
def test_any_finite_bounds_find_a_grid(high: float) -> None:
    value = measurements_of(SUM, {"t0.x": hb.between(0, high)})[0].values[0]
    assert 1 <= value.ceiling <= 2**22 + 1


def test_far_away_bounds_stay_inside_64_bits() -> None:
    value = measurements_of(SUM, {"t0.x": hb.between(10**15, 10**15 + 1)})[0].values[0]
    assert value.ceiling <= 2**41


def test_missing_bounds_are_named_with_both_ways_out() -> None:
    with pytest.raises(hb.PolicyError, match=r"hb\.between.*LEAST\(GREATEST"):
        measurements_of(AVG, {})
    with pytest.raises(hb.QueryError, match="may be 0"):
        measurements_of(Aggregate(FUNCTIONS["SUM"], (Arithmetic("/", Literal(1), X),)), DECLARED)


def test_a_sum_of_nothing_is_allowed_and_one_of_texts_is_not() -> None:
    """NULL alone is a sum that never moves; what is not a number has none."""
    nothing, *_ = measurements_of(Aggregate(FUNCTIONS["SUM"], (Literal(None),)), DECLARED)
    assert (nothing.low, nothing.high) == (0, 0)
    for kind in (Kind.TEXT, Kind.BOOLEAN):
        with pytest.raises(hb.QueryError, match=f"needs a number; found {kind.value}"):
            measurements_of(Aggregate(FUNCTIONS["AVG"], (Column("t0.s", kind),)), DECLARED)


@pytest.mark.parametrize("half", ["LEAST", "GREATEST"])
def test_a_range_that_is_open_at_one_end_is_no_range(half: str) -> None:
    """LEAST(n, 5) of a column without bounds ends above alone, GREATEST(n, 5) below alone."""
    with (
        engine("visits", visits(columns={})) as (_, planned),
        pytest.raises(hb.PolicyError, match="no declared bounds"),
    ):
        planned(f"SELECT SUM({half}(n, 5)) FROM visits")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_grid_ends_at_steps_of_two_to_960(sign: int) -> None:
    """Beyond that a step, or the number of steps in one, is not a double: the engines could not place values."""
    ends = sorted((Fraction(0), sign * Fraction(2) ** 976))
    assert measure._exponent(*ends, 16, whole_numbers=False) == 960
    with pytest.raises(OverflowError):
        measure._exponent(*(2 * end for end in ends), 16, whole_numbers=False)
    tiny = sorted((Fraction(0), sign * Fraction(2) ** -2000))
    assert measure._exponent(*tiny, 16, whole_numbers=False) == -960


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(("groups", "kept", "cap"), [(1, 1, 3), (3, 2, 2), (2, 2, 3), (4, 1, 2)])
def test_the_sensitivity_of_a_clipped_sum_is_that_of_trying_every_unit(
    neighbours: Neighbours, groups: int, kept: int, cap: int
) -> None:
    """A unit adds 0 .. cap to each of at most `kept` groups; neighbours exchange one for another, or for none."""
    summed = replace(total(0, cap), cap=cap)
    units = [v for v in itertools.product(range(cap + 1), repeat=groups) if sum(x > 0 for x in v) <= kept]
    others = units if neighbours == "replace" else [(0,) * groups]
    moves = [[a - b for a, b in zip(one, other, strict=True)] for one in units for other in others]
    bounds = Bounds(kept, 99)  # how many rows a unit has does not matter
    assert l1(summed, bounds, groups, neighbours) == max(sum(map(abs, m)) for m in moves)
    assert l2_squared(summed, bounds, groups, neighbours) == max(sum(x * x for x in m) for m in moves)
