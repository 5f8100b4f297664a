"""Means of numbers and vectors: the published variances, and simulations that hold them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub import local
from hubbub.errors import ParameterError
from hubbub.local.means import GRID
from hubbub.local.vectors import rotate
from seeded import SeededBits

KINDS = [local.OneBitMean, local.PiecewiseMean, local.HybridMean]


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 5])
@pytest.mark.parametrize("x", [-1.0, 0.0, 0.5, 1.0])
def test_the_variances_are_those_of_the_papers(epsilon: float, x: float) -> None:
    e, h = math.exp(epsilon), math.exp(epsilon / 2)
    one_bit = ((e + 1) / (e - 1)) ** 2 - x * x
    piecewise = x * x / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)
    # Wang et al. 2019, equation 8 and Lemma 1; integers instead of reals change them by about 1/GRID.
    assert local.OneBitMean(epsilon).variance(x) == pytest.approx(one_bit, rel=1e-5)
    assert local.PiecewiseMean(epsilon).variance(x) == pytest.approx(piecewise, rel=1e-5)
    share = 0 if epsilon <= 0.61 else 1 - 1 / h
    hybrid = share * piecewise + (1 - share) * one_bit
    assert local.HybridMean(epsilon).variance(x) == pytest.approx(hybrid, rel=1e-5)


def test_the_hybrid_is_never_worse_than_either_at_its_worst() -> None:
    for epsilon in (0.1, 0.6, 0.62, 1, 1.29, 2, 4, 8):
        worst = [max(kind(epsilon).variance(x) for x in (0.0, 1.0)) for kind in KINDS]
        assert worst[2] <= min(worst[:2]) * (1 + 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x", [-1.0, 0.3])
def test_means_are_unbiased_and_vary_as_stated(kind: type[local.OneBitMean], x: float) -> None:
    # 200,000 reports: the mean within 6.2 sd (6e-10). A sample variance of bounded reports has relative sd below
    # sqrt((kurtosis - 1)/n), kurtosis below 3 here: 3 % is beyond 9 sd.
    oracle, n = kind(1, -1, 1), 200_000
    estimate = oracle.estimate(oracle.privatize(np.full(n, x), bits=SeededBits(f"{kind.name} {x}")))
    theory = oracle.variance(x) / n
    assert abs(estimate.mean - x) < 6.2 * math.sqrt(theory)
    assert estimate.variance == pytest.approx(theory, rel=0.03)
    low, high = estimate.interval(0.95)
    assert -1 <= low <= x + 6.2 * math.sqrt(theory)
    assert low < high <= 1


def test_intervals_of_means_cover() -> None:
    # 4,000 surveys of 500 people: coverage has sd .34 %; 2.2 % is 6.4 sd.
    oracle = local.HybridMean(1, 0, 100)
    values = np.tile(np.linspace(20, 60, 500), 4000)
    reports = oracle.privatize(values, bits=SeededBits("cover")).reshape(4000, 500)
    covered = 0
    for row in reports:
        low, high = oracle.estimate(row).interval(0.95)
        covered += low <= 40 <= high
    assert abs(covered / 4000 - 0.95) < 0.022


def test_numbers_outside_are_clamped_and_nan_is_the_middle() -> None:
    oracle = local.OneBitMean(1, 10, 20)
    steps = oracle.steps([10, 20, 15, -5, 1e308, np.inf, -np.inf, np.nan, 10.000001])
    assert steps.tolist() == [0, GRID, GRID // 2, 0, GRID, GRID, 0, GRID // 2, 0]
    for bounds in ((1, 1), (2, 1), (0, float("inf")), (float("nan"), 1)):
        with pytest.raises(ParameterError):
            local.OneBitMean(1, *bounds)


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_of_means_add_exactly(kind: type[local.OneBitMean]) -> None:
    oracle = kind(2)
    reports = oracle.privatize(np.linspace(-1, 1, 5000), bits=SeededBits("add"))
    parts = [oracle.aggregate(part) for part in np.array_split(reports, 9)]
    assert sum(reversed(parts), oracle.empty()) == oracle.aggregate(reports)
    assert oracle.aggregate(np.array([oracle.randomizer.report_count, -1])).dropped == 2
    assert oracle.estimate(reports[:0]).n == 0
    if kind is not local.OneBitMean:
        squares = sum(int(r) ** 2 for r in reports.tolist() if r < oracle.randomizer.report_count - 2)
        assert oracle.aggregate(reports).parts[0][2] == squares or kind is local.PiecewiseMean


def test_rotation_is_orthogonal_and_its_own_inverse() -> None:
    rows = np.random.default_rng(1).normal(size=(5, 16))
    assert np.allclose(rotate(rotate(rows)), rows)
    assert np.allclose(np.linalg.norm(rotate(rows), axis=1), np.linalg.norm(rows, axis=1))


def test_vector_means_are_unbiased_with_the_stated_error() -> None:
    # 400 runs of 500 vectors in 24 dimensions: the squared error has relative sd sqrt(2/24)/20 = 1.4 %; 10 % is 7 sd.
    oracle = local.BallMean(2, 24)
    spread = np.random.default_rng(2).normal(size=(500, 24))
    vectors = spread / np.linalg.norm(spread, axis=1, keepdims=True) * 0.6 + 0.05
    truth = vectors.mean(axis=0)
    runs = [oracle.estimate(oracle.privatize(vectors, bits=SeededBits(f"ball {i}"))) for i in range(400)]
    errors = np.array([((run.mean - truth) ** 2).sum() for run in runs])
    assert errors.mean() == pytest.approx(runs[0].squared_error, rel=0.1)
    bias = np.mean([run.mean for run in runs], axis=0) - truth
    assert np.abs(bias).max() < 6.5 * math.sqrt(runs[0].squared_error / 24 / 400)


def test_long_vectors_are_shrunk_to_the_ball() -> None:
    oracle = local.BallMean(1, 4, radius=2)
    middle = GRID / 2
    inside, outside = oracle.steps([[2.0, 0, 0, 0]]), oracle.steps([[2e300, 0, 0, 0]])
    assert np.array_equal(inside, outside)
    lengths = np.linalg.norm((oracle.steps(np.eye(4) * 7) - middle) / middle * oracle.randomizer.clamp, axis=1)
    assert np.all(lengths < 1.001)
    assert (oracle.steps([[np.nan] * 4]) == middle).all()
    with pytest.raises(ParameterError, match="numbers each"):
        oracle.privatize(np.zeros((2, 3)))


@pytest.mark.parametrize("step", [0, 1, 1000, GRID - 1, GRID])
def test_misses_of_the_window_fall_on_every_other_report_once(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The client with its draws replaced: all misses, and every uniform below 2^20 in turn.
    client = local.PiecewiseMean(3).randomizer
    monkeypatch.setattr("hubbub.local.means.coins", lambda chance, n, bits: np.ones(n, bool))
    monkeypatch.setattr("hubbub.local.means.uniform", lambda below, n, bits: np.arange(n) % below)
    reports = client._client(np.full(GRID, step), None)
    others = np.r_[0:step, step + client.window : client.report_count]
    assert np.array_equal(np.sort(reports), others)
    # And all hits.
    monkeypatch.setattr("hubbub.local.means.coins", lambda chance, n, bits: np.zeros(n, bool))
    reports = client._client(np.full(client.window, step), None)
    assert np.array_equal(reports, np.arange(step, step + client.window))
    assert all(client.chance(int(r), step) == (1 - client.miss) / client.window for r in (reports[0], reports[-1]))


EXTREMES = [0.0, -0.0, 5e-324, -1e-300, 1e-11, 1.0, -3.5, 1e150, 1e155, -1e308, 1.7976931348623157e308]
EXTREMES += [math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("radius", ["1e-300", "1e-10", 1, "1e154", "1e300"])
def test_every_vector_has_a_report_whatever_its_size_and_the_radius(radius: object) -> None:
    """One row that raises would fail a whole batch, and so tell of one person."""
    client = local.BallMean(1, 4, radius)
    rows = np.array([np.roll([x, y, 0.0, 1e-11], i) for i, x in enumerate(EXTREMES) for y in EXTREMES])
    with np.errstate(all="raise"):
        steps = client.steps(rows)
        reports = client.privatize(rows, bits=SeededBits("extremes"))
    assert steps.min() >= 0
    assert steps.max() <= GRID
    assert client.aggregate(reports).dropped == 0
    # NaN and infinities count as 0, and a longer vector as the one of the same direction on the sphere.
    plain = np.where(np.isfinite(rows), rows, 0)
    assert np.array_equal(steps, client.steps(plain))
    far = np.array([[3.0, -4.0, 0.0, 0.0]]) * float(client.radius)
    assert np.array_equal(client.steps(far / 5), client.steps(far))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), ("-1e300", "1e300"), (0, "1e-300"), ("1e299", "1e300"), (1, 1 + Fraction(1, 10**290))]
)
def test_every_number_has_a_report_whatever_its_size_and_the_range(kind: type, low: object, high: object) -> None:
    client = kind(1, Fraction(low), Fraction(high))
    with np.errstate(all="raise"):
        steps = client.steps(EXTREMES)
        client.privatize(np.array(EXTREMES), bits=SeededBits("extremes"))
    assert steps.min() >= 0
    assert steps.max() <= GRID


def test_ranges_and_radii_beyond_floats_are_refused() -> None:
    for kind in KINDS:
        for low, high in ((Fraction(-(10**400)), 0), (0, Fraction(10**400)), (0, Fraction(1, 10**400))):
            with pytest.raises(ParameterError, match="unit"):
                kind(1, low, high)
    for radius in ("1e-400", "1e400"):
        with pytest.raises(ParameterError, match="unit"):
            local.BallMean(1, 4, radius)
