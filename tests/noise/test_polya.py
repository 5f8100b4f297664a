"""Polya noise: shares sum to discrete Laplace noise exactly, and draws follow the law."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from hubbub import noise
from hubbub.errors import ParameterError
from hubbub.noise import DiscreteLaplace, Polya, direct, polya as module
from seeded import SeededBits

Fits = Callable[[np.ndarray, Any], None]
polya_module = __import__("importlib").import_module("hubbub.noise.polya")


def chance(r: Fraction, k: int) -> Fraction:
    """c_k = r (r+1) ... (r+k-1) / k!."""
    out = Fraction(1)
    for j in range(k):
        out *= (r + j) / (1 + Fraction(j))
    return out


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
def test_shares_of_the_negative_binomial_sum_to_the_geometric_exactly(shares: int) -> None:
    """Their generating functions (1 - qz)^(-1/h) multiply to (1 - qz)^(-1): all coefficients 1, in rationals."""
    r, length = Fraction(1, shares), 40
    one = [chance(r, k) for k in range(length)]
    total = [Fraction(1)] + [Fraction(0)] * (length - 1)
    for _ in range(shares):
        total = [sum(total[i] * one[k - i] for i in range(k + 1)) for k in range(length)]
    assert total == [1] * length


@pytest.mark.parametrize("r", [Fraction(1, 2), Fraction(1, 50), Fraction(999, 1000), Fraction(1, 10**9)])
def test_chances_are_certified_and_the_floats_are_near_enough_for_the_band(r: Fraction) -> None:
    for k in (0, 1, 5, 100, 4095):
        exact = chance(r, k)
        for precision in (20, 80, 200):
            low, high = polya_module._chance_bounds(r, k)(precision)
            assert low <= exact * 2**precision <= high
            assert high - low <= 2
    points = np.array([0, 1, 7, 4095, 4096, 5000, 10**6, 10**9])
    with mpmath.workdps(50):
        s = mpmath.mpf(r.numerator) / r.denominator
        for k, found in zip(points.tolist(), polya_module._chance_floats(r, points), strict=True):
            truth = (
                mpmath.gamma(k + s) / (mpmath.gamma(k + 1) * mpmath.gamma(s))
                if k < 10**5
                else mpmath.exp(mpmath.loggamma(k + s) - mpmath.loggamma(k + 1) - mpmath.loggamma(s))
            )
            assert abs(found - truth) <= 2.0**-47


@pytest.mark.parametrize(("scale", "shape"), [(0.4, "1/3"), (1, "1/2"), (3, "1/50"), (10, "7/10"), (2, "5/2"), (1, 3)])
@pytest.mark.parametrize("mode", ["fast", "hardened"])
def test_draws_follow_the_law(scale: float, shape: str | int, mode: Any, fits: Fits) -> None:
    """n = 2e5, false alarm 1e-9."""
    law = Polya(scale, shape)
    fits(law.sample(200_000, bits=SeededBits(f"{scale} {shape} {mode}"), mode=mode), law)


@pytest.mark.parametrize(("scale", "shares"), [(1, 5), (7, 3)])
def test_the_sum_of_shares_follows_the_discrete_laplace_law(scale: int, shares: int, fits: Fits) -> None:
    """n = 2e5, false alarm 1e-9."""
    draws = noise.polya(scale, Fraction(1, shares), (shares, 200_000), bits=SeededBits(f"sum {scale}"))
    fits(draws.sum(axis=0), DiscreteLaplace(scale))


def test_a_wide_scale_is_drawn_through_the_series_too() -> None:
    """Scale 2^14, shape 1/2: variance within 7 standard errors (fourth moment below 40 variance^2), 2,000 draws."""
    law = Polya(2**14, "1/2")
    draws = law.sample(2000, bits=SeededBits("wide")).astype(float)
    assert abs(np.mean(draws**2) / law.variance - 1) < 7 * math.sqrt(40 / 2000)
    assert (np.abs(draws) > 4096).any()


def test_inside_the_band_integers_decide(monkeypatch: pytest.MonkeyPatch, fits: Fits) -> None:
    """With floats that decide nothing the law is the same: n = 2e4, false alarm 1e-9."""
    asked = []

    def slowly(draws: Any, p: Any, exactly: Any) -> np.ndarray:
        asked.append(p.size)
        return np.array([exactly(i, draws.uniform(i)) for i in range(p.size)])

    monkeypatch.setattr(direct, "decide", slowly)
    fits(polya_module._negative_binomial(Fraction(2), Fraction(1, 3), 20_000, SeededBits("band"), False), _One())
    assert asked


class _One:
    """The negative binomial law of scale 2 and shape 1/3, on its own."""

    masses = np.array([float(chance(Fraction(1, 3), k)) * math.exp(-k / 2) for k in range(120)])
    cumulative = np.cumsum(masses) / masses.sum()

    def cdf(self, x: Any) -> Any:
        at = np.asarray(x)
        return np.where(at < 0, 0.0, self.cumulative[np.clip(at, 0, 119)])

    def tail(self, x: Any) -> Any:
        return 1 - self.cdf(x)

    def quantile(self, p: float) -> int:
        return int(np.searchsorted(self.cumulative, p))


@pytest.mark.parametrize("scale", [0.3, 1, 10, 300])
def test_shape_one_is_the_discrete_laplace_law(scale: float) -> None:
    law, known = Polya(scale, 1), DiscreteLaplace(scale)
    x = np.arange(-3000, 3000)
    assert np.abs(law.pmf(x) - known.pmf(x)).max() < 1e-13
    assert np.abs(law.tail(x) - known.tail(x)).max() < 1e-13
    assert np.abs(law.cdf(x) - known.cdf(x)).max() < 1e-13
    assert law.variance == pytest.approx(known.variance, rel=1e-14)
    assert [law.half_width(p) for p in (0, 0.5, 0.95, 0.999)] == [known.half_width(p) for p in (0, 0.5, 0.95, 0.999)]
    assert [law.quantile(p) for p in (0.01, 0.3, 0.7, 0.99)] == [known.quantile(p) for p in (0.01, 0.3, 0.7, 0.99)]


@pytest.mark.parametrize(("scale", "shape"), [(1, 2), (5, 3)])
def test_a_whole_shape_is_the_convolution(scale: int, shape: int) -> None:
    x = np.arange(-400, 401)
    one = DiscreteLaplace(scale).pmf(x)
    total = one
    for _ in range(shape - 1):
        total = np.convolve(total, one, "same")
    assert np.abs(Polya(scale, shape).pmf(x) - total).max() < 1e-13


def test_wide_half_widths_are_the_narrow_ones_scaled() -> None:
    narrow, wide = Polya(2**14, 2).half_width(0.95), Polya(2**24, 2).half_width(0.95)
    assert wide == pytest.approx(narrow * 2**10, rel=1e-4)
    assert Polya(2**40, 1).half_width(0.95) == pytest.approx(DiscreteLaplace(2**40).half_width(0.95), rel=1e-4)
    assert Polya(2**40, 1).half_width(0.95) >= DiscreteLaplace(2**40).half_width(0.95)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Polya(0, 1),
        lambda: Polya(1, 0),
        lambda: Polya(1, -1),
        lambda: noise.polya(2**21, Fraction(1, 2)),
        lambda: noise.polya(1, 10**6),
        lambda: Polya(2**15, 1).pmf(0),
        lambda: Polya(2**15, "1/2").half_width(0.5),
        lambda: Polya(1, 10**9).half_width(0.5),
    ],
)
def test_what_is_not_offered_is_refused(ask: Any) -> None:
    with pytest.raises(ParameterError):
        ask()


def test_one_draw_is_an_int_and_arrays_have_their_shape() -> None:
    assert isinstance(noise.polya(3, Fraction(1, 4)), int)
    assert noise.polya(3, Fraction(1, 4), (2, 5)).shape == (2, 5)
    assert noise.polya(3, 2, 0).shape == (0,)
    assert module is noise.polya
