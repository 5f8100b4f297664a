"""Intervals hold the bounded truth as often as they say, aggregate by aggregate, at known exact integers.

Each case is one plan with many groups that all have the same exact integers, so its groups are independent repetitions.
With n groups and coverage .95 the observed share is off by more than 6.2 sqrt(.95 * .05 / n) with probability below
1e-9: .0096 for n = 20,000, .0043 for n = 100,000.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.mechanisms.quantile_bounds import QuantileBound
from hubbub.session.check import predicted
from hubbub.tables.aggregate_query import Aggregate, Output
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.draw_release import draw
from hubbub.tables.estimates import Estimates, read
from hubbub.tables.measure import Bounds, Measurement
from hubbub.tables.plan import Plan
from hubbub.tables.price import Spend, make_price
from seeded import SeededBits
from tables.made import AVG, COUNT, MEDIAN, SUM, VAR, Exact, Row, X, Y, plan, row_integer

PURE, GAUSSIAN = Spend(epsilon=Fraction(1, 5)), Spend(rho=Fraction(1, 200))
STD = Aggregate(FUNCTIONS["STDDEV_SAMP"], (X,))
COVAR, CORR = Aggregate(FUNCTIONS["COVAR_POP"], (X, Y)), Aggregate(FUNCTIONS["CORR"], (X, Y))
LEAN, FULL = 20_000, 100_000


def people(n: int, seed: int = 1) -> list[Row]:
    generator = np.random.default_rng(seed)
    x = generator.beta(2, 3, n) * 100
    y = np.clip((x - 40) / 25 + generator.normal(0, 0.8, n), -4, 4)
    return [{"x": float(a), "y": float(b)} for a, b in zip(x, y, strict=True)]


def truths(rows: list[Row]) -> dict[Aggregate, float]:
    x, y = (np.array([row[c] for row in rows], float) for c in "xy")
    return {
        COUNT: len(rows),
        SUM: x.sum(),
        AVG: x.mean(),
        VAR: x.var(),
        STD: x.std(ddof=1),
        COVAR: float(np.mean(x * y) - x.mean() * y.mean()),
        CORR: float(np.corrcoef(x, y)[0, 1]),
    }


def answered(made: Plan, rows: list[Row], spend: Spend, seed: str) -> Estimates:
    def vector(m: Measurement) -> list[int]:
        return [sum(v for v in (row_integer(m, row) for row in rows) if v is not None)] * (made.group_count or 0)

    exact = Exact(tuple(vector(m) for m in made.measurements))
    price = make_price([made], spend)
    return read(price, draw(price, [exact], SeededBits(seed)))[0]


def covered(found: Estimates, aggregate: Aggregate, truth: float, level: float = 0.95) -> float:
    low, high = found.intervals(aggregate, level)
    slack = 1e-4 * abs(truth)  # values on the grid against values in floats
    return float(np.mean((low <= truth + slack) & (high >= truth - slack)))


OF_SAMPLES = [
    *(Aggregate(FUNCTIONS[name], (X,)) for name in ("VAR_SAMP", "STDDEV_SAMP", "VAR_POP")),
    *(Aggregate(FUNCTIONS[name], (X, Y)) for name in ("COVAR_SAMP", "COVAR_POP")),
]


@pytest.mark.parametrize("spend", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize("n", [2, 4, 30, 400])
@pytest.mark.parametrize("apart", [1, -1], ids=["together", "apart"])
def test_spreads_of_values_at_both_ends_are_covered(n: int, apart: int, spend: Spend) -> None:
    """As of a column of truths of which half are true: no population's spread can be larger, and a sample's is, by a
    factor of the true count, n / (n - 1). At the noisy one half of the upper ends lay below it.
    """
    rows = [{"x": 100.0 * (i % 2), "y": 4.0 * apart * (2 * (i % 2) - 1)} for i in range(n)]
    made = plan(*OF_SAMPLES, groups=2_000, bounds=Bounds(1, 1))
    estimates = answered(made, rows, spend, f"ends {n} {apart}")
    x, y = (np.array([row[c] for row in rows], float) for c in "xy")
    factor, covariance = n / (n - 1), float(np.mean(x * y) - x.mean() * y.mean())
    spreads = [x.var() * factor, math.sqrt(x.var() * factor), x.var(), covariance * factor, covariance]
    for aggregate, truth in zip(OF_SAMPLES, spreads, strict=True):
        assert covered(estimates, aggregate, truth) > 0.93, aggregate.function.names.key
        low, high = estimates.intervals(aggregate, 0.95)
        value = np.asarray(estimates.values(aggregate), float)
        assert ((low <= value) & (value <= high)).all()


CASES = [
    pytest.param(n, groups, marks=[pytest.mark.soak] if groups == FULL else [])
    for groups in (LEAN, FULL)
    for n in (400, 2_000, 10_000)
]


@pytest.mark.parametrize("spend", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize(("n", "groups"), CASES)
def test_counts_sums_means_and_variances_are_covered_95_percent(n: int, groups: int, spend: Spend) -> None:
    made = plan(COUNT, SUM, AVG, VAR, STD, groups=groups, bounds=Bounds(1, 1))
    rows = people(n)
    found = answered(made, rows, spend, f"coverage {n}")
    noise = 6.2 * math.sqrt(0.95 * 0.05 / groups)
    for aggregate, truth in truths(rows).items():
        if aggregate in made.question.aggregates:
            share = covered(found, aggregate, truth)
            assert 0.94 - noise <= share <= 0.96 + noise, (aggregate.function, share)


@pytest.mark.parametrize("spend", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize("n", [20, 80])
def test_small_groups_are_covered_at_least_as_often(n: int, spend: Spend) -> None:
    """Where the noise is as large as the group, ratios may be wider, never narrower."""
    made = plan(COUNT, AVG, VAR, groups=LEAN, bounds=Bounds(1, 1))
    rows = people(n)
    found = answered(made, rows, spend, f"small {n}")
    for aggregate in (COUNT, AVG, VAR):
        assert covered(found, aggregate, truths(rows)[aggregate]) >= 0.94


@pytest.mark.parametrize("spend", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize("n", [300, 3_000, 20_000])
def test_covariances_and_correlations_are_covered(n: int, spend: Spend) -> None:
    made = plan(COVAR, CORR, groups=LEAN, bounds=Bounds(1, 1))
    rows = people(n)
    found = answered(made, rows, spend, f"joint {n}")
    for aggregate in (COVAR, CORR):
        assert covered(found, aggregate, truths(rows)[aggregate]) >= 0.94


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_other_levels_hold_too(level: float) -> None:
    """n = 20,000: a share below level - .02 has probability below 1e-9 where the coverage is the level."""
    made = plan(COUNT, SUM, AVG, VAR, groups=LEAN, bounds=Bounds(1, 1))
    rows = people(2_000)
    found = answered(made, rows, PURE, "levels")
    for aggregate in (COUNT, SUM, AVG, VAR):
        share = covered(found, aggregate, truths(rows)[aggregate], level)
        assert level - 0.025 <= share <= level + 0.05, (aggregate.function, share)


SHAPES = {
    "smooth": np.arange(0, 50_000, 47),
    "two lumps": np.array([1_000] * 300 + [50_000] * 301),
    "one value": np.array([777] * 500),
    "few": np.array([3, 40_000]),
    "none": np.array([], int),
}


@pytest.mark.parametrize("spend", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles_lie_in_their_brackets(shape: str, spend: Spend) -> None:
    """150 groups of each shape: 95 % claimed, about 99 % in fact; fewer than 125 of 150 has probability below 1e-9."""
    end = [Aggregate(f, (X,)) for f in (FUNCTIONS["MIN"], FUNCTIONS["MAX"])]
    quartile = Aggregate(FUNCTIONS["QUANTILE"], (X,), Fraction(1, 4))
    made = plan(quartile, MEDIAN, *end, groups=150, bounds=Bounds(1, 1))
    steps = SHAPES[shape]
    table = tuple((int(v), int(c)) for v, c in zip(*np.unique(steps, return_counts=True), strict=True))
    price = make_price([made], spend)
    found = read(price, draw(price, [Exact(([table] * 150,))], SeededBits(shape)))[0]
    step = float(made.measurements[0].step)
    for aggregate, share in ((quartile, 0.25), (MEDIAN, 0.5), (end[0], 0.0), (end[1], 1.0)):
        low, high = found.intervals(aggregate, 0.95)
        values = found.values(aggregate)
        assert np.all((low <= values) & (values <= high))
        if steps.size:
            truth = float(np.quantile(steps, share)) * step
            assert np.sum((low <= truth) & (truth <= high)) >= 125
    whole = found.intervals(MEDIAN, 0.999)
    assert whole[0].min() == 0
    assert whole[1].min() >= 100


def test_quantiles_are_off_by_no_more_ranks_than_check_says() -> None:
    """150 groups of 1,000 distinct values: 95 % claimed; fewer than 125 of 150 has probability below 1e-9."""
    ends = [Aggregate(f, (X,)) for f in (FUNCTIONS["MIN"], FUNCTIONS["MAX"])]
    made = plan(MEDIAN, *ends, groups=150, bounds=Bounds(1, 1))
    price = make_price([made], Spend(epsilon=Fraction(1)))
    table = tuple((51 * i, 1) for i in range(1_000))
    found = read(price, draw(price, [Exact(([table] * 150,))], SeededBits("ranks")))[0]
    told = predicted(price, [Output(str(i), 0, a) for i, a in enumerate((MEDIAN, *ends))], ((0,),), 1_000)
    step = float(made.measurements[0].step)
    for aggregate, rank, column in zip((MEDIAN, *ends), (500, 0, 999), told, strict=True):
        off = np.abs(found.values(aggregate) / step / 51 - rank)
        assert column.ranks is not None
        assert np.sum(off <= column.ranks) >= 125
        assert off.max() > column.ranks / 50  # and it is not an empty promise


def test_a_huge_amount_gives_quantiles_exactly() -> None:
    ends = [Aggregate(f, (X,)) for f in (FUNCTIONS["MIN"], FUNCTIONS["MAX"])]
    made = plan(MEDIAN, *ends, bounds=Bounds(1, 1))
    table = ((5, 2), (100, 1), (50_000, 4))
    price = make_price([made], Spend(epsilon=Fraction(10**6)))
    found = read(price, draw(price, [Exact(([table],))], SeededBits(1)))[0]
    step = float(made.measurements[0].step)
    assert [found.values(a)[0] / step for a in (MEDIAN, *ends)] == [50_000, 5, 50_000]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)])
def test_a_quantile_bound_is_private_and_misses_with_its_beta(share: Fraction, upper: bool) -> None:
    """Exact, over all tables of up to 5 rows on 6 values: the loss of one row, its range, and the chance of a miss."""
    bound = QuantileBound(share, 0, 5, Fraction(2), beta=Fraction(1, 10), upper=upper)

    def law(heights: tuple[int, ...]) -> np.ndarray:
        points = np.flatnonzero(heights)
        return np.array([bound.log_prob(v, points, np.array(heights)[points]) for v in range(6)])

    tables = [t for t in np.ndindex(*[3] * 6) if sum(t) <= 5]
    laws = {t: law(t) for t in tables}
    for t, logs in laws.items():
        assert np.exp(logs).sum() == pytest.approx(1)
        for i in range(6):
            more = tuple(n + (j == i) for j, n in enumerate(t))
            if more in laws:
                loss = laws[more] - logs
                assert loss.max() - loss.min() <= 2 + 1e-9
        rows = np.repeat(np.arange(6), t)
        if rows.size:
            truth = np.quantile(rows, float(share))
            wrong = np.arange(6) < truth if upper else np.arange(6) > truth
            assert np.exp(logs)[wrong].sum() <= 0.1
