"""Norm clipping: the claimed sensitivities by brute force and through the engine, and what it is good for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import hubbub as hb
from hubbub.engines.duckdb.relations import image
from hubbub.errors import InternalError
from hubbub.noise import Grid
from hubbub.tables import clipping
from hubbub.tables.clipping import Norm
from hubbub.tables.declare import Limits, Neighbours
from hubbub.tables.measure import Bounds, Measurement, MeasurementKind, Value
from hubbub.tables.parts import Sums, build, options
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.price import Spend, make_price
from people import HUGE, engine, session, visits
from tables.made import X

Units = dict[int, list[Any]]
NORMS: list[Norm] = ["l1", "l2"]
BOTH: list[Neighbours] = ["add_remove", "replace"]
WARDS = ["A", "B", "C", "D"]
COLUMNS = {
    "ward": hb.one_of(*WARDS),
    "x": hb.between(0, 100),
    "n": hb.between(-5, 10),
    "far": hb.between(10**9, 10**9 + 1),
    "must": hb.between(-3, 50, nullable=False),
}


def frame(units: Units) -> pa.Table:
    rows = [(u, *r) for u, of_unit in units.items() for r in of_unit]
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 6
    kinds = {"id": pa.int64(), "ward": pa.string(), "x": pa.float64(), "n": pa.int64()}
    kinds |= {"far": pa.float64(), "must": pa.float64()}
    return pa.table({c: pa.array(v, k) for (c, k), v in zip(kinds.items(), columns, strict=True)})


def total(low: int, high: int, *, alone: bool = False) -> Measurement:
    return Measurement(MeasurementKind.SUM, values=(Value(X, Grid(0), low, high),), alone=alone)


# -- the formulas -----------------------------------------------------------------------------------------------------


def weight(sizes: list[int], limit: int, norm: Norm) -> int:
    """The definition: the largest k <= 2^16 with k ||a|| <= the numerator, from whole numbers alone."""
    if norm == "l1":
        return min(2**16, limit // max(1, sum(sizes)))
    return min(2**16, math.isqrt(limit // max(1, sum(a * a for a in sizes))))


def contributions(m: Measurement, bounds: Bounds, groups: int, norm: Norm) -> set[tuple[int, ...]]:
    """Everything a unit with up to 3 rows in each group can have, all of its rows at an end of the range, or at 0."""
    found = set()
    limit = clipping.numerator(m, bounds, groups, norm)
    each = [(n, s) for n in range(4) for s in {k * m.low + (n - k) * m.high for k in range(n + 1)} | {0}]
    for chosen in itertools.product(each, repeat=groups):
        sizes = [abs(s) for _, s in chosen] if m.alone else [n for n, _ in chosen]
        found.add(tuple(weight(sizes, limit, norm) * s for _, s in chosen))
    return found


def furthest(parts: set[tuple[int, ...]], neighbours: Neighbours, power: int) -> int:
    pairs = ((p, (0,) * len(p)) for p in parts) if neighbours == "add_remove" else itertools.product(parts, parts)
    return max(sum(abs(a - b) ** power for a, b in zip(p, q, strict=True)) for p, q in pairs)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("alone", [False, True], ids=["by rows", "alone"])
@pytest.mark.parametrize(("low", "high"), [(1, 1), (-1, 2), (-2, -1), (0, 2), (-2, 2)])
@pytest.mark.parametrize("groups", [1, 2])
def test_no_unit_moves_further_than_claimed_and_some_nearly_do(
    groups: int, low: int, high: int, alone: bool, norm: Norm, neighbours: Neighbours
) -> None:
    """Over all shapes of up to 3 rows a group, whose norms reach 3 and more times what is allowed."""
    m, bounds = total(low, high, alone=alone), Bounds(2, 1)
    parts = contributions(m, bounds, groups, norm)
    claims = {1: clipping.l1, 2: clipping.l2_squared}
    for power, claimed_by in claims.items():
        claimed = claimed_by(m, bounds, groups, neighbours, norm)
        reached = furthest(parts, neighbours, power)
        assert reached <= claimed, power
        if (power == 1) == (norm == "l1"):
            # With signs mixed and l2, the worst direction lies between those of whole rows.
            assert reached >= (0.97 if norm == "l2" and neighbours == "replace" else 0.999) * claimed, power


def test_the_diameter_under_replace_in_l2_is_reached_between_the_axes() -> None:
    """The claim 2 (p^2 + q^2) of the module's head, by a fine grid of directions in two groups."""
    for p, q in [(1, 0), (2, 1), (3, 2), (1, 1)]:
        angles = [math.pi / 2 * i / 400 for i in range(401)]
        most = max(
            (p * math.cos(s) + q * math.sin(t)) ** 2 + (q * math.sin(s) + p * math.cos(t)) ** 2
            for s in angles
            for t in angles
        )
        assert most == pytest.approx(2 * (p * p + q * q), rel=1e-4)


@pytest.mark.parametrize("norm", NORMS)
def test_under_add_remove_the_noise_is_that_of_dropping_groups(norm: Norm) -> None:
    bounds, m = Bounds(3, 2), total(-1, 2)
    assert clipping.l1(m, bounds, 9, "add_remove", "l1") == 2**16 * 3 * 2 * 2
    assert clipping.l2_squared(m, bounds, 9, "add_remove", "l2") == 4**16 * 3 * (2 * 2) ** 2
    assert clipping.l1(Measurement(MeasurementKind.UNITS), bounds, 2, "add_remove", "l1") == 2**16 * 2


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("most", [1, 5, 2**22, 2**30, 2**40])
def test_numerators_and_steps_stay_within_what_engines_hold(most: int, alone: bool) -> None:
    m, vast = total(0, most, alone=alone), Bounds(2**31 - 1, 2**31 - 1)
    for norm in NORMS:
        assert clipping.numerator(m, vast, None, norm) <= 2**126 < 10**38
    assert most << clipping.fineness(m) <= (2**40 if alone else 2**56)


# -- through the engine -----------------------------------------------------------------------------------------------

a_row = st.tuples(
    st.sampled_from([*WARDS, "A", "A", None, "undeclared"]),
    st.sampled_from([0.0, 0.5, 33.3, 100.0, 1e308, float("nan"), float("-inf"), None]),
    st.sampled_from([0, -5, 10, 3, 2**63 - 1, -(2**63), None]),
    st.sampled_from([1e9, 1e9 + 0.25, 0.0, None]),
    st.sampled_from([-3.0, 50.0, 7.5, None]),
)
a_unit = st.lists(a_row, max_size=7).flatmap(lambda rows: st.integers(1, 4).map(lambda k: rows + rows[:2] * k))
MEASURES = [
    "COUNT(*)",
    "COUNT(x)",
    "COUNT(DISTINCT id)",
    "COUNT(DISTINCT CASE WHEN x > 1 THEN id END)",
    *(f"{f}({c})" for f in ("SUM", "AVG", "VAR_POP") for c in ("x", "n", "must")),
    "SUM(far)",
    "AVG(far)",
    "SUM(x / 7 - n)",
    "COVAR_POP(x, n)",
    "CORR(must, n)",
    "COUNT(DISTINCT n)",
    "SUM(CASE WHEN x > 50 THEN 1 ELSE 0 END)",
]


def vectors(plan: Plan, world: Any, units: Units) -> dict[Measurement, tuple[int, ...]]:
    world._known["t"].held._table = frame(units)
    return dict(zip(plan.measurements, world.run(plan).vectors, strict=True))


def parts_of(
    plan: Plan, vectors: dict[Measurement, tuple[int, ...]], *, pure: bool
) -> Iterator[tuple[Sums, list[int]]]:
    """Every part of every strategy with its entries, whichever would be chosen."""
    aggregates = tuple(dict.fromkeys(plan.question.aggregates))
    for choices in options(plan, aggregates, pairs=pure):
        for part in build(plan, aggregates, choices).parts:
            if isinstance(part, Sums):
                size = range(plan.group_count or 0)
                yield part, [sum(vectors[m][i] * c for m, c in vector) for vector in part.vectors for i in size]


def plan_of(parse: Any, sql: str, groups: int, rows: int, norm: Norm) -> Plan:
    asked = Limits(groups, rows, None, "norm")
    (found,) = make_plans(parse(sql).question, image, limits=asked, norm=norm)
    return found


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, tuple[Any, Any]]]:
    tables = {n: hb.table(frame({}), unit="id", columns=COLUMNS, neighbours=n, max_groups=1, max_rows=1) for n in BOTH}
    with engine("t", tables["add_remove"]) as first, engine("t", tables["replace"]) as second:
        yield {"add_remove": first, "replace": second}


CASE: dict[str, Any] = {
    "units": st.lists(a_unit, max_size=3),
    "newcomer": a_unit,
    "aggregates": st.lists(st.sampled_from(MEASURES), min_size=1, max_size=3, unique=True),
    "key": st.sampled_from(["ward", "ward", "n > 3", None]),
    "limits": st.tuples(st.integers(1, 5), st.integers(1, 3)),
    "norm": st.sampled_from(NORMS),
    "neighbours": st.sampled_from(BOTH),
}


def check_pair(
    engines: dict[str, tuple[Any, Any]],
    units: list[list[Any]],
    newcomer: list[Any],
    aggregates: list[str],
    key: str | None,
    limits: tuple[int, int],
    norm: Norm,
    neighbours: Neighbours,
) -> None:
    duck, parse = engines[neighbours]
    sql = f"SELECT {', '.join(aggregates)} FROM t" + (f" GROUP BY {key}" if key else "")
    plan = plan_of(parse, sql, *limits, norm)
    base = dict(enumerate(units))
    other = {**base, (0 if neighbours == "replace" else 99): newcomer}
    before, after = (vectors(plan, duck, people) for people in (base, other))
    for m in plan.measurements:
        moved = [b - a for a, b in zip(before[m], after[m], strict=True)]
        assert sum(map(abs, moved)) <= plan.sensitivity(m), (sql, m)
        assert sum(d * d for d in moved) <= plan.squared_sensitivity(m), (sql, m)
    pure = norm == "l1"
    for (part, x), (_, y) in zip(parts_of(plan, before, pure=pure), parts_of(plan, after, pure=pure), strict=True):
        moved = [b - a for a, b in zip(x, y, strict=True)]
        assert sum(map(abs, moved)) <= part.l1, (sql, part)
        assert sum(d * d for d in moved) <= part.l2_squared, (sql, part)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(**CASE)
def test_one_unit_moves_integers_and_parts_by_at_most_the_claimed_sensitivity(
    engines: dict[str, tuple[Any, Any]], **case: Any
) -> None:
    check_pair(engines, **case)


@pytest.mark.soak
@settings(max_examples=5_000, deadline=None)
@given(**CASE)
def test_the_same_in_thousands_of_cases(engines: dict[str, tuple[Any, Any]], **case: Any) -> None:
    check_pair(engines, **case)


@pytest.mark.parametrize("neighbours", BOTH)
def test_sums_of_two_columns_count_the_same_rows_though_one_is_declared_to_have_no_nulls(
    engines: dict[str, tuple[Any, Any]], neighbours: Neighbours
) -> None:
    unit = [("A", 0.0, 10, None, None)] * 2
    check_pair(engines, [], unit, ["COUNT(*)", "CORR(must, n)"], "ward", (1, 1), "l1", neighbours)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (3, 2), (2**31 - 1, 2**31 - 1)])
def test_the_engine_weighs_as_the_definition_says(
    engines: dict[str, tuple[Any, Any]], groups: int, rows: int, norm: Norm
) -> None:
    """Weights from whole numbers of any size, against those of 128 bits and the square root of a double."""
    duck, parse = engines["add_remove"]
    plan = plan_of(parse, "SELECT ward, COUNT(*), COUNT(DISTINCT id), SUM(x) FROM t GROUP BY ward", groups, rows, norm)
    for copies in ([1, 0, 0, 0], [3, 2, 1, 1], [1000, 1, 0, 7], [65536, 3, 3, 3]):
        rows_of = [(w, 33.0, 1, None, 0.0) for w, k in zip(WARDS, copies, strict=True) for _ in range(k)]
        found = vectors(plan, duck, {1: rows_of})
        for m in plan.measurements:
            sizes = {
                MeasurementKind.ROWS: copies,
                MeasurementKind.UNITS: [min(k, 1) for k in copies],
                MeasurementKind.SUM: [-(-k * (33 << 15) // clipping.coarseness(m)) for k in copies],
            }[m.counting]
            k = weight(sizes, clipping.numerator(m, plan.bounds, 4, norm), norm)
            integers = [c * (33 << 15) for c in copies] if m.counting is MeasurementKind.SUM else sizes
            if m.counting is MeasurementKind.SUM:
                assert m.values[0].grid.step == Fraction(1, 2**15)
                assert clipping.coarseness(m) == (100 << 15) // 1024  # a row's size is told to a thousandth
            coarser = 16 - plan.fineness(m)
            assert found[m] == tuple(k * i >> coarser for i in integers), (m.counting, copies)


# -- what it is good for ----------------------------------------------------------------------------------------------

PLAIN = [
    "SELECT ward, COUNT(*) AS a, COUNT(age) AS b, COUNT(DISTINCT id) AS c FROM visits GROUP BY ward",
    "SELECT ward, SUM(n) AS a FROM visits GROUP BY ward",
    "SELECT ward, SUM(n) AS a, AVG(n) AS b, VAR_POP(n) AS c FROM visits WHERE ward = 'A' OR ok GROUP BY ward",
    "SELECT ok, COUNT(*) AS a, SUM(n * 2) AS b FROM visits GROUP BY ok",
    "SELECT SUM(n) AS a FROM visits",
]


@pytest.mark.parametrize("sql", PLAIN)
@pytest.mark.parametrize("budget", [hb.Budget(9 * HUGE**2), hb.Budget(9 * HUGE**2, 1e-6)], ids=["laplace", "gaussian"])
def test_where_nothing_exceeds_the_norm_answers_are_those_of_plain_sql(budget: hb.Budget, sql: str) -> None:
    table = visits(bounding="norm")
    with pytest.warns(UserWarning, match="memory"), hb.Session({"visits": table}, budget=budget, ledger=None) as s:
        clipped, dropped = s.sql(sql, epsilon=HUGE**2), s.sql(sql, epsilon=HUGE**2, bounding="groups")
    assert clipped.receipt["bounding"].endswith("norm")
    for column in "abc"[: len(clipped.rows()[0]) - ("BY" in sql)]:
        assert clipped.to_dict()[column] == pytest.approx(dropped.to_dict()[column], rel=1e-4, abs=1e-3)


def skewed() -> pa.Table:
    """A hundred units with one small row in each of 12 months, and one with 40 rows in a single one."""
    rows = [(u, month, 1.0) for u in range(100) for month in range(12)] + [(100, 0, 100.0)] * 40
    return pa.table(dict(zip(("id", "month", "cost"), map(list, zip(*rows, strict=True)), strict=True)))


def errors(sql: str, noise: str) -> dict[str, float]:
    """The largest error of a column over the months, by bounding, without noise to speak of."""
    columns = {"month": hb.one_of(*range(12)), "cost": hb.between(0, 100)}
    table = hb.table(skewed(), unit="id", max_groups=4, max_rows=2, columns=columns)
    truth = [1.0 + 0 * month for month in range(12)]
    with pytest.warns(UserWarning, match="memory"):
        opened = hb.Session({"t": table}, budget=hb.Budget(9 * HUGE, 1e-6), ledger=None)
    found = {}
    with opened:
        for bounding in ("groups", "norm"):
            rows = opened.sql(sql, epsilon=HUGE, noise=noise, bounding=bounding).rows()  # type: ignore[arg-type]
            found[bounding] = max(abs(v / 100 - t) for (_, v), t in list(zip(rows, truth, strict=True))[1:])
    return found


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("what", ["SUM(cost)", "COUNT(*)", "COUNT(DISTINCT id)"])
def test_a_skewed_table_is_less_biased_at_the_same_noise(what: str, noise: str) -> None:
    """Every unit is in 12 groups, of which 4 would be kept: dropping loses two thirds, the norms of SUM nothing.

    COUNT: l1 keeps 8 of 12 rows' weight where groups keep 4; l2 keeps sqrt(4) * 2 / sqrt(12) > 1, all of it. For
    COUNT(DISTINCT id) l1 keeps 4 / 12 as dropping does, and l2 sqrt(4 / 12).
    """
    found = errors(f"SELECT month, {what} AS v FROM t GROUP BY month", noise)
    kept = {("COUNT(*)", "laplace"): 8 / 12, ("COUNT(DISTINCT id)", "gaussian"): math.sqrt(4 / 12)}
    kept |= {("COUNT(DISTINCT id)", "laplace"): 4 / 12}
    assert found["norm"] == pytest.approx(1 - kept.get((what, noise), 1.0), abs=0.01)
    assert found["norm"] <= found["groups"] + 0.01
    assert what == "COUNT(DISTINCT id)" or found["norm"] < found["groups"] / 1.9


def test_clipping_keeps_a_units_mean() -> None:
    """Sum and count of one argument share the unit's weight, in every group."""
    frame = pa.table({"id": [1] * 9, "ward": ["A"] * 6 + ["B"] * 3, "x": [10.0] * 6 + [90.0] * 3})
    table = hb.table(
        frame, unit="id", max_groups=1, max_rows=1, bounding="norm",
        columns={"ward": hb.one_of("A", "B"), "x": hb.between(0, 100)},
    )  # fmt: skip
    with session(t=table) as opened:
        rows = opened.sql("SELECT ward, AVG(x) AS m, COUNT(x) AS n, SUM(x) AS s FROM t GROUP BY ward", epsilon=HUGE)
    for (_, mean, _, total), expected in zip(rows.rows(), (10, 90), strict=True):
        assert mean == pytest.approx(expected, rel=1e-3)
        assert total < 61


# -- what is said of it -----------------------------------------------------------------------------------------------


def test_check_and_receipt_say_which_bounding_is_used() -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    with session(visits=visits(max_groups=4, max_rows=3)) as opened:
        assert "with at most 3 rows in each of 4 groups" in str(opened.check(sql, epsilon=1))
        shown = opened.check(sql, epsilon=1, bounding="norm")
        assert "weighted down to an l1 norm of at most 12" in str(shown)
        assert shown.columns == pytest.approx(opened.check(sql, epsilon=1).columns) or (
            shown.columns[0].plus_minus == pytest.approx(opened.check(sql, epsilon=1).columns[0].plus_minus, rel=0.05)
        )
        assert opened.sql(sql, epsilon=1, bounding="norm").receipt["bounding"] == "l1 norm"
        assert opened.sql(sql, epsilon=1).receipt["bounding"] == "groups"
        alone = opened.check("SELECT ward, SUM(n) FROM visits GROUP BY ward", epsilon=1, bounding="norm")
        assert "sums of one id are clipped to the l1 norm of 3 rows in each of 4 groups" in str(alone)
        mixed = opened.check("SELECT ward, COUNT(*), MEDIAN(n) FROM visits GROUP BY ward", epsilon=1, bounding="norm")
        assert "no norm to clip" in str(mixed)


def test_under_a_delta_the_norm_is_that_of_the_noise_and_both_are_priced() -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    table = visits(max_groups=4, max_rows=3, bounding="norm")
    with pytest.warns(UserWarning, match="memory"):
        opened = hb.Session({"visits": table}, budget=hb.Budget(5, 1e-6), ledger=None)
    with opened:
        gaussian, laplace = opened.check(sql, epsilon=1), opened.check(sql, epsilon=1, noise="laplace")
        assert "l2 norm of at most 6" in str(gaussian)
        assert "l1 norm of at most 12" in str(laplace)
        assert [s.columns for s in gaussian.sides] == [s.columns for s in laplace.sides]
        assert {s.columns for s in gaussian.sides} == {gaussian.columns, laplace.columns}
        private = opened.check("SELECT day, COUNT(*) FROM visits GROUP BY day", epsilon=1)
        assert "no norm is clipped" in str(private)
        assert "at most 3 rows in each of 4 groups" in str(private)
        assert opened.sql(sql, epsilon=1).receipt["bounding"] == "l2 norm"


def test_another_bounding_is_another_question() -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    with session() as opened:
        assert opened.sql(sql, epsilon=1).charged
        assert opened.sql(sql, epsilon=1, bounding="norm").charged
        assert not opened.sql(sql, epsilon=1, bounding="norm").charged
        # In one group both ways are the same for a count, so it is the same question.
        assert opened.sql("SELECT COUNT(*) FROM visits", epsilon=1).charged
        assert not opened.sql("SELECT COUNT(*) FROM visits", epsilon=1, bounding="norm").charged


def test_a_clipped_answer_is_refined_and_read_again() -> None:
    sql = "SELECT ward, COUNT(*) AS n, AVG(n) AS m, SUM(age) AS s FROM visits GROUP BY ward"
    with session(visits=visits(bounding="norm")) as opened:
        first = opened.sql(sql, epsilon=1)
        again = opened.sql(sql, epsilon=1)
        assert not again.charged
        assert again.rows() == first.rows()
        assert first.refine(HUGE).rows()[0][1:3] == pytest.approx((3, 10 / 3), rel=1e-3)


def test_what_is_refused() -> None:
    with pytest.raises(hb.PolicyError, match="'groups' or 'norm'"):
        visits(bounding="l1")
    with session() as opened, pytest.raises(hb.QueryError, match=r'bounding="groups" or bounding="norm"'):
        opened.check("SELECT COUNT(*) FROM visits", epsilon=1, bounding="clip")  # type: ignore[arg-type]
    with engine("visits", visits(bounding="norm")) as (_, plan):
        clipped = plan("SELECT ward, COUNT(*) FROM visits GROUP BY ward")
    make_price([clipped], Spend(epsilon=Fraction(1)))
    with pytest.raises(InternalError, match="not the noise's"):
        make_price([clipped], Spend(rho=Fraction(1)))
    make_price([clipped.for_noise(pure=False)], Spend(rho=Fraction(1)))
    assert replace(clipped, norm="l2") == clipped.for_noise(pure=False)


def test_a_join_clips_norms_where_both_tables_say_so() -> None:
    sql = "SELECT a.ward, COUNT(*) AS n FROM a JOIN b ON a.id = b.id GROUP BY a.ward"
    for second, word in (("norm", "l1 norm"), ("groups", "in each of 4 groups")):
        with session(a=visits(bounding="norm"), b=visits(bounding=second)) as opened:
            assert word in str(opened.check(sql, epsilon=1))
