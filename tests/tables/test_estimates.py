"""Estimates are functions of noisy integers alone; without noise they are what plain arithmetic says."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import numpy as np
import pytest

import hubbub as hb
from hubbub.accounting import cost
from hubbub.ledger.budget import Budget
from hubbub.mechanisms.ratio import half_widths, ratio_interval, ratio_intervals, two_laplace_half_width
from hubbub.noise import DiscreteLaplace
from hubbub.session.check import details, how_many, mechanism, notes, predicted, sides, smallest_spend, spends
from hubbub.tables.aggregate_query import Aggregate, Output
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.aggregates.moments import Moments, scenes
from hubbub.tables.draw_release import draw
from hubbub.tables.estimates import Estimates, expected, read
from hubbub.tables.expressions import Column
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Bounds, MeasurementKind
from hubbub.tables.price import Spend, make_price
from seeded import SeededBits
from tables.made import AVG, COUNT, MEDIAN, SUM, UNITS, VAR, Exact, Row, X, Y, measured, plan

HUGE, ONE = Spend(epsilon=Fraction(10**9)), Spend(epsilon=Fraction(1))
OTHERS = [
    Aggregate(FUNCTIONS["VAR_SAMP"], (X,)),
    Aggregate(FUNCTIONS["STDDEV_POP"], (X,)),
    Aggregate(FUNCTIONS["COVAR_SAMP"], (X, Y)),
    Aggregate(FUNCTIONS["CORR"], (X, Y)),
    Aggregate(FUNCTIONS["COUNT_VALUES"], (Y,)),
    Aggregate(FUNCTIONS["COUNT_DISTINCT"], (Y,)),
    Aggregate(FUNCTIONS["AVG"], (Y,)),
    Aggregate(FUNCTIONS["SUM"], (Y,)),
]
EVERY = [COUNT, UNITS, SUM, AVG, VAR, MEDIAN, *OTHERS]


def rows_of_one_each(n: int) -> list[tuple[int, str, Row]]:
    generator = np.random.default_rng(7)
    x, y = generator.uniform(0, 100, n), generator.integers(-4, 5, n)
    return [
        (i, "w000000", {"x": float(a), "y": None if b == 4 else float(b)})
        for i, (a, b) in enumerate(zip(x, y, strict=True))
    ]


def answered(spend: Spend = HUGE, n: int = 300) -> Estimates:
    made = plan(*EVERY, groups=2, bounds=Bounds(1, 1))
    price = make_price([made], spend)
    return read(price, draw(price, [measured(made, rows_of_one_each(n))], SeededBits(1)))[0]


def test_without_noise_every_aggregate_is_plain_arithmetic() -> None:
    rows = [row for _, _, row in rows_of_one_each(300)]
    x = np.array([row["x"] for row in rows], float)
    both = np.array([(row["x"], row["y"]) for row in rows if row["y"] is not None], float)
    truth = {
        COUNT: 300,
        UNITS: 300,
        SUM: x.sum(),
        AVG: x.mean(),
        VAR: x.var(),
        MEDIAN: np.median(x),
        OTHERS[0]: x.var(ddof=1),
        OTHERS[1]: x.std(),
        OTHERS[2]: np.cov(both.T)[0, 1],
        OTHERS[3]: np.corrcoef(both.T)[0, 1],
        OTHERS[4]: len(both),
        OTHERS[5]: len(set(both[:, 1])),
        OTHERS[6]: both[:, 1].mean(),
        OTHERS[7]: both[:, 1].sum(),
    }
    found = answered()
    for aggregate, value in truth.items():
        slack = 0.5 if aggregate is MEDIAN else 1e-3 * max(1, abs(value))
        assert found.values(aggregate)[0] == pytest.approx(value, abs=slack), aggregate.function
        low, high = found.intervals(aggregate, 0.95)
        assert low[0] - slack <= value <= high[0] + slack, aggregate.function


def test_an_empty_group_gives_the_middle_and_the_whole_range() -> None:
    found = answered()
    assert found.values(COUNT)[1] == 0
    assert found.values(AVG)[1] == 50
    assert [float(e[1]) for e in found.intervals(AVG, 0.95)] == [0, 100]
    assert found.values(VAR)[1] == 1250
    assert [float(e[1]) for e in found.intervals(VAR, 0.95)] == [0, 2500]
    assert [float(e[1]) for e in found.intervals(OTHERS[3], 0.95)] == [-1, 1]


def test_counts_are_whole_and_may_be_negative() -> None:
    found = answered(Spend(epsilon=Fraction(1, 100)), n=3)
    values = np.array([found.values(a) for a in (COUNT, UNITS, OTHERS[4])])
    assert values.dtype == np.int64
    assert (values < 0).any()


def test_a_count_has_the_exact_interval_of_its_noise() -> None:
    made = plan(UNITS, bounds=Bounds(3, 2), groups=4)
    price = make_price([made], ONE)
    found = read(price, draw(price, [Exact(([9] * 4,))], SeededBits(1)))[0]
    low, high = found.intervals(UNITS, 0.95)
    assert set(high - low) == {2 * DiscreteLaplace(3).half_width(0.95)}


def test_wider_levels_contain_narrower_ones_and_the_estimate() -> None:
    found = answered(ONE)
    for aggregate in EVERY:
        inner, outer = found.intervals(aggregate, 0.8), found.intervals(aggregate, 0.99)
        value = found.values(aggregate).astype(float)
        assert np.all(outer[0] <= inner[0] + 1e-9), aggregate.function
        assert np.all(inner[1] <= outer[1] + 1e-9), aggregate.function
        assert np.all((inner[0] - 0.5 <= value) & (value <= inner[1] + 0.5)), aggregate.function
        assert np.all(found.half_widths(aggregate, 0.8) >= 0)


def test_other_draws_of_the_noise_spread_like_the_interval() -> None:
    """2,000 other draws: their middle 95 % is the interval of a count, a sum and a mean within a tenth."""
    found = answered(ONE)
    noise = found.noise(2_000, [0], bits=SeededBits(9))
    for aggregate in (COUNT, SUM, AVG, VAR):
        drawn = found.redrawn(aggregate, noise, [0])
        assert drawn.shape == (2_000, 1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        ends = found.intervals(aggregate, 0.95)
        assert high - low == pytest.approx(float(ends[1][0] - ends[0][0]), rel=0.12), aggregate.function


def test_a_hundred_thousand_groups_take_under_a_second() -> None:
    """Told, not decided: the clock never fails a test here; the answer must be right for all groups at once."""
    made = plan(COUNT, AVG, groups=100_000, bounds=Bounds(3, 2))
    price = make_price([made], ONE)
    total = next(m for m in made.measurements if m.counting is MeasurementKind.SUM)
    vectors = tuple([0 if m is total else 1_000] * 100_000 for m in made.measurements)
    found = read(price, draw(price, [Exact(vectors)], SeededBits(3)))[0]
    start = time.perf_counter()
    low, high = found.intervals(AVG, 0.95)
    print(f"{time.perf_counter() - start:.2f} s")
    assert np.mean((low <= 50) & (high >= 50)) == pytest.approx(0.95, abs=0.01)


def test_fieller_for_arrays_is_fieller_for_numbers() -> None:
    generator = np.random.default_rng(2)
    total, count = generator.normal(0, 2_000, 50), generator.normal(40, 30, 50)

    def reach(theta: np.ndarray) -> np.ndarray:
        scales = np.array([np.full_like(theta, 300.0), 5 * np.abs(theta)])
        return half_widths(0.9, scales) + (1 + np.abs(theta)) / 2

    low, high = ratio_intervals(total, count, reach=reach, low=-100, high=100)
    for i in range(50):
        one = ratio_interval(total[i], count[i], total_scale=300, count_scale=5, low=-100, high=100, level=0.9)
        assert (low[i], high[i]) == pytest.approx(one, abs=1e-2)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_half_widths_of_many_terms(level: float) -> None:
    """Two Laplace terms against the closed form; three and a normal one against 400,000 draws, within .006."""
    assert half_widths(level, np.array([[3.0], [2.0]]))[0] == pytest.approx(
        two_laplace_half_width(level, 3, 2), rel=1e-5
    )
    generator = np.random.default_rng(1)
    for scales, variance in (((3, 2, 1), 0.0), ((1, 0.3, 0.3), 0.5), ((1,), 1.0)):
        drawn = sum(generator.laplace(0, s, 400_000) for s in scales)
        drawn = drawn + generator.normal(0, variance**0.5, 400_000)
        t = half_widths(level, np.array(scales, float)[:, None], np.array([variance]))[0]
        assert np.mean(np.abs(drawn) <= t) == pytest.approx(level, abs=0.006)


OUTPUTS = [Output(a.function.names.sql, 0, a) for a in (COUNT, AVG, VAR, MEDIAN)] + [Output("ratio")]


def test_check_predicts_what_the_intervals_are() -> None:
    made = plan(COUNT, AVG, VAR, MEDIAN, groups=3, bounds=Bounds(2, 1))
    price = make_price([made], ONE)
    columns = {c.name: c for c in predicted(price, OUTPUTS, ((0,),), 1_000)}
    total = {
        m: [0 if m.counting in (MeasurementKind.SUM, MeasurementKind.PRODUCT) else 1_000] * 3 for m in made.measurements
    }
    exact = Exact(
        tuple([((500, 9),)] * 3 if m.counting is MeasurementKind.QUANTILES else total[m] for m in made.measurements)
    )
    found = read(price, draw(price, [exact], SeededBits(8)))[0]
    assert columns["COUNT(*)"].plus_minus == pytest.approx(found.half_widths(COUNT, 0.95).mean(), rel=0.1)
    for aggregate in (AVG, VAR):
        told = columns[aggregate.function.names.sql].plus_minus
        assert told is not None
        assert found.half_widths(aggregate, 0.95).max() <= told * 1.1
    assert columns["QUANTILE_CONT"].plus_minus is None
    assert columns["QUANTILE_CONT"].ranks > 0  # type: ignore[operator]
    assert columns["ratio"].plus_minus is None
    assert "pair of sums" in mechanism(price) or "sum" in mechanism(price)
    assert any("at most 1 row" in note for note in notes(price))
    receipt = details(price)
    assert receipt["max_groups"] == 2
    assert sum(Fraction(m["epsilon"]) for m in receipt["measurements"]) == 1


@pytest.mark.parametrize("spend", [{"epsilon": Fraction(1)}, {"rho": Fraction(1, 20)}])
def test_a_receipt_shows_every_part_and_adds_up(spend: dict[str, Fraction]) -> None:
    made = plan(COUNT, AVG, VAR, MEDIAN, groups=None, bounds=Bounds(2, 2))
    price = make_price([made], Spend(**spend, delta=Fraction(1, 10**6)))
    receipt = json.loads(json.dumps(details(price)))
    name = "epsilon" if "epsilon" in spend else "rho"
    assert sum(Fraction(m[name]) for m in receipt["measurements"]) == spend[name]
    shown = {m["counts"] for m in receipt["measurements"]}
    assert {"units, to find the groups", "quantiles", "products"} <= shown
    assert receipt["delta"] == "1/1000000"
    assert receipt["groups"] is None
    words = mechanism(price)
    assert "exponential mechanism for a quantile" in words
    assert "groups shown from" in words
    assert any("small groups are left out" in note for note in notes(price))


def test_many_arguments_are_priced_without_trying_every_way() -> None:
    declared = {f"t0.c{i}": hb.between(0, 10 + i, nullable=i % 2 == 0) for i in range(12)}
    means = [Aggregate(FUNCTIONS["AVG"], (Column(name, Kind.NUMBER),)) for name in declared]
    made = plan(COUNT, *means, declared=declared, groups=3, bounds=Bounds(2, 2))
    price = make_price([made], ONE)
    assert cost(price.event).epsilon == 1
    assert len(predicted(price, [Output(str(i), 0, a) for i, a in enumerate(means)], ((0,),), 100)) == 12


def test_both_kinds_of_noise_stand_side_by_side_under_a_delta() -> None:
    """A unit count at .5 in a (3, 1e-6) budget: sd 2.8 pure, 9.0 Gaussian (the design's example)."""
    made = plan(UNITS)
    budget = Budget(3, delta="1e-6")
    found = sides([made], [Output("n", 0, UNITS)], ((0,),), epsilon=Fraction(1, 2), budget=budget, assume_rows=10)
    assert [side.name for side in found] == ["gaussian", "pure"]
    deviations = [make_price([made], s).parts[0].noise.variance ** 0.5 for s in spends(Fraction(1, 2), budget).values()]
    assert deviations == pytest.approx([9.0, 2.8], abs=0.1)
    assert found[0].fits > found[1].fits == 6  # type: ignore[operator]
    assert how_many(Budget(1), cost(make_price([made], ONE).event)) == 1


def test_the_smallest_epsilon_within_a_width_is_just_enough() -> None:
    made = plan(COUNT, AVG, bounds=Bounds(3, 2), groups=5)
    outputs = OUTPUTS[:2]

    def width(epsilon: Fraction) -> float:
        return predicted(make_price([made], Spend(epsilon=epsilon)), outputs, ((0,),), 1_000)[0].plus_minus or 0.0

    found = smallest_spend(
        [made],
        outputs,
        ((0,),),
        within={"COUNT(*)": 50},
        at_most=Fraction(5),
        spend_of=lambda e: Spend(epsilon=e),
        assume_rows=1_000,
    )
    assert width(found) <= 50 < width(found * Fraction(98, 100))
    for within, at_most, says in (({"COUNT(*)": 1}, Fraction(1), "at_most"), ({"nothing": 1}, Fraction(1), "nothing")):
        with pytest.raises(hb.QueryError, match=says):
            smallest_spend(
                [made],
                outputs,
                ((0,),),
                within=within,
                at_most=at_most,
                spend_of=lambda e: Spend(epsilon=e),
                assume_rows=1_000,
            )


def test_predictions_need_no_values() -> None:
    made = plan(*[a for a in EVERY if a is not MEDIAN], bounds=Bounds(1, 1))
    (scales,) = expected(make_price([made], ONE))
    for aggregate in made.question.aggregates:
        assert 0 < scales.predicted(aggregate, 0.95, 500) < float("inf")


COVAR, CORR = (Aggregate(f, (X, Y)) for f in (FUNCTIONS["COVAR_POP"], FUNCTIONS["CORR"]))


@pytest.mark.parametrize("aggregate", [VAR, COVAR, CORR], ids=lambda a: a.function.names.sql)
def test_the_scenes_of_a_prediction_are_tables_that_there_could_be(aggregate: Aggregate) -> None:
    """Means within the declared range, the spread that is said of them, and squares no smaller than they can be."""
    parts = plan(aggregate).measurement_of(aggregate)
    together, values = scenes(parts, 100, correlation=aggregate == CORR)
    assert len(values) == (15 if aggregate == VAR else 30)
    assert len({round(float(value)) for value in values}) == {VAR: 4, CORR: 1}.get(aggregate, 7)
    for i, value in enumerate(values):
        current = {quantity: several[i : i + 1] for quantity, several in together.items()}
        moments = Moments(parts, current, correlation=aggregate == CORR)
        assert moments.count == 100
        of_x, of_y = ((m.high - m.low) / 2 for m in (moments.x, moments.y))
        for of, at, half in ((moments.x, moments.at_x, of_x), (moments.y, moments.at_y, of_y)):
            assert abs(at - (of.low + of.high) / 2) <= half + 1e-9
            assert current[of] == pytest.approx(at * 100)
        if aggregate != CORR:
            assert moments.estimate() == pytest.approx(value, rel=1e-6, abs=1e-3)
            continue
        assert value == 0
        # Each variance is that of a spread a quarter of the range wide.
        assert moments.of_x == pytest.approx(of_x**2 / 4, rel=1e-3)
        assert moments.of_y == pytest.approx(of_y**2 / 4, rel=1e-3)
