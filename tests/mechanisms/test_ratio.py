"""The interval of a quotient of two noisy sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import erfc, mp, mpf, quad

from hubbub.mechanisms.ratio import half_widths, ratio_interval, two_laplace_half_width, two_laplace_tail
from hubbub.noise import DiscreteLaplace
from seeded import SeededBits


@pytest.mark.parametrize(("a", "c"), [(1.0, 0.0), (1.0, 1.0), (1.0, 1 - 1e-7), (2.0, 0.5), (0.1, 30.0), (1.0, 1e-9)])
@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 40.0])
def test_the_tail_of_a_sum_is_its_integral(t: float, a: float, c: float) -> None:
    """Against mpmath: P(|X + Z| > t) = 2 Int_0^inf P(X > t - z) f(z) dz, by symmetry in z."""
    mp.dps = 30

    def upper(x: mpf) -> mpf:
        return mp.exp(-x / a) / 2 if x >= 0 else 1 - mp.exp(x / a) / 2

    if c == 0:
        exact = 2 * upper(mpf(t))
    else:
        points = sorted({-mp.inf, mpf(0), mpf(t), mp.inf, *(mpf(k * c) for k in (-40, -3, 3, 40))})
        exact = 2 * quad(lambda z: upper(mpf(t) - z) * mp.exp(-abs(z) / c) / (2 * c), points)
    assert two_laplace_tail(t, a, c) == pytest.approx(float(min(exact, 1)), rel=1e-6)


@pytest.mark.parametrize(("a", "c"), [(3.0, 1.0), (5.0, 5.0), (1.0, 0.0)])
def test_the_half_width_inverts_the_tail(a: float, c: float) -> None:
    assert two_laplace_tail(two_laplace_half_width(0.95, a, c), a, c) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize(("total", "count"), [(2_000, 500), (-400, 60), (9_000, 100), (0, 30)])
def test_the_interval_covers_the_true_mean_as_often_as_it_says(total: int, count: int) -> None:
    """n = 4,000 draws; the share lies within 5.6 standard deviations of [0.95, 1], false alarm below 1e-8 a case."""
    low, high, n = -100, 100, 4_000
    xs = DiscreteLaplace(200).sample(n, bits=SeededBits(("s", total).__repr__()))
    ys = DiscreteLaplace(8).sample(n, bits=SeededBits(("n", count).__repr__()))
    inside = 0
    for x, y in zip(np.asarray(xs).tolist(), np.asarray(ys).tolist(), strict=True):
        a, b = ratio_interval(total + x, count + y, total_scale=200, count_scale=8, low=low, high=high, level=0.95)
        inside += a <= total / count <= b
    slack = 5.7 * math.sqrt(0.95 * 0.05 / n)
    assert inside / n >= 0.95 - slack
    # It is exact, not just safe, wherever the ends of the range are out of reach.
    if count >= 100 and abs(total / count) < 50:
        assert inside / n <= 0.95 + slack


def test_a_count_that_says_nothing_gives_the_whole_range() -> None:
    whole = (-5.0, 7.0)
    for count in (0, -3, 0.5):
        found = ratio_interval(2, count, total_scale=10, count_scale=10, low=-5, high=7, level=0.95)
        assert found == whole
    assert ratio_interval(10**9, 5, total_scale=1, count_scale=1, low=-5, high=7, level=0.95) == whole


def laplace_and_normal(t: float, variance: float) -> float:
    """P(|X + G| > t) for Laplace X of scale 1: the normal law folded with both exponentials, in closed form."""
    mp.dps = 50
    x, v = mpf(t), mpf(variance)

    def upper(z: mpf) -> mpf:
        return erfc(z / mp.sqrt(2)) / 2

    root = mp.sqrt(v)
    tilted = mp.exp(v / 2 - x) * upper(root - x / root) - mp.exp(v / 2 + x) * upper(root + x / root)
    return float(2 * upper(x / root) + tilted)


def unequal_laplaces(t: float, scales: list[float]) -> float:
    """P(|sum| > t) for different scales, by partial fractions of the characteristic function."""
    mp.dps = 80
    squares = [mpf(a) ** 2 for a in scales]
    total = mpf(0)
    for i, (a, square) in enumerate(zip(scales, squares, strict=True)):
        weight = mp.fprod(square / (square - other) for j, other in enumerate(squares) if j != i)
        total += weight * mp.exp(-mpf(t) / mpf(a))
    return float(total)


@pytest.mark.parametrize("level", [0.991, 0.999, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 2**-53])
def test_far_out_half_widths_are_not_too_narrow(level: float) -> None:
    """By the exact law, the chance to be beyond is at most 1 - level, and at least five sixths of it.

    Read from the kurtosis alone, Laplace(1) + N(0, 2) was beyond 1.5 times as often as it said at 0.9999.
    """
    missed = []
    for variance in (0.001, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 1000.0):
        t = half_widths(level, np.array([[1.0]]), np.array([variance]))[0]
        missed.append(laplace_and_normal(t, variance))
    many = [1.0, *(0.1 + i / 10_000 for i in range(40))]
    for scales in ([1, 0.9, 0.8], [1, 0.3, 0.2], [1, 0.01, 0.005], [1, 0.99, 0.98, 0.97], [7, 6.9, 0.1, 0.2], many):
        t = half_widths(level, np.array(scales, float)[:, None])[0]
        missed.append(unequal_laplaces(float(t), scales))
    shares = np.array(missed) / (1 - level)
    assert shares.max() <= 1
    assert shares.min() >= 5 / 6


def test_a_normal_term_alone_is_exact_at_every_level() -> None:
    for level in (0.5, 0.95, 0.999, 1 - 2**-53):
        t = half_widths(level, np.zeros((2, 1)), np.array([4.0]))[0]
        assert math.erfc(t / 2 / math.sqrt(2)) == pytest.approx(1 - level, rel=1e-9)
    assert half_widths(0.999, np.zeros((3, 1)))[0] == 0
