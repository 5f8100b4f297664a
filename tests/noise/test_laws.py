"""pmf, cdf, tails, quantiles and moments against 50-digit arithmetic."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.noise import DiscreteGaussian, DiscreteLaplace, Geometric

SCALES = [1e-9, 0.05, 0.3, 1, Fraction(7, 3), 10, 63.9, 64.1, 1000, 123456.789, 1e9, 1e12]
# Deviations in units of the scale; beyond 700 (Laplace) or 38 (Gaussian) floats underflow.
DEVIATIONS = [0, 0.3, 1, 5, 20, 37, 300, 690]


def _mp(x: Fraction | float | int) -> mpmath.mpf:
    value = Fraction(x)
    return mpmath.mpf(value.numerator) / value.denominator


def _close(found: float, truth: mpmath.mpf, relative: float) -> None:
    if abs(truth) < mpmath.mpf("1e-307"):
        assert abs(found) <= 1e-300
    else:
        assert abs(mpmath.mpf(found) - truth) <= relative * abs(truth), (found, truth)


def _points(scale: float | Fraction) -> list[int]:
    return sorted({int(float(scale) * d) for d in DEVIATIONS} | {1, 2})


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_masses_and_tails(scale: float | Fraction) -> None:
    law = DiscreteLaplace(scale)
    with mpmath.workdps(60):
        b = _mp(scale)
        q = mpmath.exp(-1 / b)
        for x in _points(scale):
            power = mpmath.exp(-x / b)
            # Far out the float exponent x/b itself is good to 2^-53 of its size only.
            tolerance = 1e-15 * (8 + float(x / b if x / b < 750 else 0))
            _close(law.pmf(x), (1 - q) / (1 + q) * power, tolerance)
            _close(law.pmf(-x), (1 - q) / (1 + q) * power, tolerance)
            _close(law.log_pmf(x), mpmath.log((1 - q) / (1 + q)) - x / b, 1e-14)
            _close(law.tail(x), power * q / (1 + q), tolerance)
            _close(law.cdf(-x - 1), power * q / (1 + q), tolerance)
            _close(law.cdf(x), 1 - power * q / (1 + q), 1e-15)
            _close(law.tail(-x), 1 - power / (1 + q) if x else q / (1 + q), 1e-14)
        _close(law.variance, 2 * q / (1 - q) ** 2, 1e-14)


@pytest.mark.parametrize("scale", SCALES)
def test_geometric_masses_and_tails(scale: float | Fraction) -> None:
    law = Geometric(scale)
    with mpmath.workdps(60):
        b = _mp(scale)
        q = mpmath.exp(-1 / b)
        for k in _points(scale):
            tolerance = 1e-15 * (8 + float(k / b if k / b < 750 else 0))
            _close(law.pmf(k), (1 - q) * mpmath.exp(-k / b), tolerance)
            _close(law.tail(k), mpmath.exp(-(k + 1) / b), tolerance)
            _close(law.cdf(k), 1 - mpmath.exp(-(k + 1) / b), tolerance)
        _close(law.mean, q / (1 - q), 1e-14)
        _close(law.variance, q / (1 - q) ** 2, 1e-14)
    assert law.pmf(-1) == 0
    assert law.cdf(-1) == 0
    assert law.tail(-1) == 1
    assert law.log_pmf(-5) == -np.inf


def _gaussian_sum(s: mpmath.mpf, start: int) -> mpmath.mpf:
    """sum_{k >= start} exp(-k^2/2s) by mpmath: direct for narrow laws, Euler-Maclaurin of its own for wide ones."""
    if s < 10**5:
        total, k = mpmath.mpf(0), start
        first = mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s))
        while True:
            term = mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s))
            total += term
            if term < first * mpmath.mpf("1e-40"):
                return total
            k += 1
    # Trapezoid form (endpoint, not midpoint, corrections), with mpmath's derivatives: another formula than ours.
    y = mpmath.mpf(start)
    f = mpmath.exp(-y * y / (2 * s))
    total = mpmath.sqrt(mpmath.pi * s / 2) * mpmath.erfc(y / mpmath.sqrt(2 * s)) + f / 2
    z, root = y / mpmath.sqrt(s), mpmath.sqrt(s)
    for j in range(1, 9):
        n = 2 * j - 1
        hermite = mpmath.hermite(n, z / mpmath.sqrt(2)) / mpmath.mpf(2) ** (mpmath.mpf(n) / 2)
        derivative = (-1) ** n * hermite * f / root**n
        total -= mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) * derivative
    return total


@pytest.mark.parametrize("sigma", SCALES)
def test_gaussian_masses_and_tails(sigma: float | Fraction) -> None:
    law = DiscreteGaussian(sigma)
    with mpmath.workdps(50):
        s = _mp(sigma) ** 2
        z = 2 * _gaussian_sum(s, 1) + 1
        for x in _points(sigma):
            exponent = mpmath.mpf(x) ** 2 / (2 * s)
            if exponent > 700:
                assert law.tail(x) == 0 or law.tail(x) < 1e-300
                continue
            tolerance = 2e-15 * (8 + float(exponent))
            _close(law.pmf(x), mpmath.exp(-exponent) / z, tolerance)
            _close(law.log_pmf(-x), -exponent - mpmath.log(z), 1e-14)
            upper = _gaussian_sum(s, x + 1) / z
            _close(law.tail(x), upper, tolerance)
            _close(law.cdf(-x - 1), upper, tolerance)
            _close(law.cdf(x), 1 - upper, 1e-14)
    assert law.sigma2 == Fraction(sigma) ** 2


@pytest.mark.parametrize("sigma2", [Fraction(1, 100), Fraction(1, 3), 1, 2, 50])
def test_gaussian_variance(sigma2: Fraction | int) -> None:
    with mpmath.workdps(50):
        s = _mp(sigma2)
        z = mpmath.nsum(lambda k: mpmath.exp(-k * k / (2 * s)), [-100, 100])
        second = mpmath.nsum(lambda k: k * k * mpmath.exp(-k * k / (2 * s)), [-100, 100])
        _close(DiscreteGaussian.from_variance(sigma2).variance, second / z, 1e-13)
    assert DiscreteGaussian(1e6).variance == pytest.approx(1e12, rel=1e-15)


def test_the_two_tail_formulas_meet_where_they_change() -> None:
    below, above = DiscreteGaussian(Fraction(64) - Fraction(1, 10**12)), DiscreteGaussian(64)
    x = np.arange(0, 2300, 7)
    assert np.allclose(below.tail(x), above.tail(x), rtol=1e-8, atol=0)


LAWS = [law(scale) for law in (DiscreteLaplace, DiscreteGaussian, Geometric) for scale in (1e-9, 0.4, 3, 50, 1000, 1e6)]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("p", [1e-12, 0.001, 0.3, 0.5, Fraction(2, 3), 0.95, 1 - 1e-12])
def test_quantile_is_the_first_point_that_reaches_p(law: DiscreteLaplace, p: float) -> None:
    x = law.quantile(p)
    rest = float(1 - Fraction(p))
    assert law.cdf(x) >= float(p) or law.tail(x) <= rest
    assert law.cdf(x - 1) < float(p) or law.tail(x - 1) > rest


@pytest.mark.parametrize("law", [x for x in LAWS if not isinstance(x, Geometric)], ids=str)
@pytest.mark.parametrize("level", [0, 0.5, 0.9, 0.95, Fraction(99, 100), 1 - 1e-9])
def test_half_width_is_the_smallest_that_covers(law: DiscreteLaplace, level: float) -> None:
    t = law.half_width(level)
    rest = float(1 - Fraction(level))
    assert 2 * law.tail(t) <= rest
    assert t == 0 or 2 * law.tail(t - 1) > rest


def test_half_widths_by_hand() -> None:
    # 2 q^(t+1)/(1+q) <= .05 at b = 10: t = 29 gives .05226, t = 30 gives .04729.
    assert DiscreteLaplace(10).half_width(0.95) == 30
    assert DiscreteLaplace(1e-9).half_width(0.999999) == 0
    assert DiscreteGaussian(1000).half_width(0.95) == 1960


@pytest.mark.parametrize("law", [DiscreteLaplace(2), DiscreteGaussian(2), Geometric(2), DiscreteGaussian(1e6)])
def test_points_beyond_int64_have_no_mass(law: DiscreteLaplace) -> None:
    for huge in (2**70, 10**400):
        assert law.pmf(huge) == 0
        assert law.tail(huge) == 0
        assert law.cdf(huge) == 1
        assert law.log_pmf(huge) < -1e17
        assert law.cdf(-huge) == 0


def test_arrays_in_arrays_out_and_scalars_in_floats_out() -> None:
    law = DiscreteLaplace(3)
    x = np.arange(-4, 5).reshape(3, 3)
    assert law.pmf(x).shape == (3, 3)
    assert isinstance(law.pmf(2), float)
    assert law.pmf(np.arange(-2000, 2001)).sum() == pytest.approx(1, abs=1e-12)
    assert DiscreteGaussian(80).pmf(np.arange(-2000, 2001)).sum() == pytest.approx(1, abs=1e-12)
    assert np.array_equal(law.pmf(x.astype(float)), law.pmf(x))


@pytest.mark.parametrize("x", [0.5, float("nan"), "three", [1, 2.5]])
def test_points_between_the_integers_are_refused(x: object) -> None:
    with pytest.raises(ParameterError):
        DiscreteGaussian(2).pmf(x)


@pytest.mark.parametrize("p", [0, 1, -0.1, 1.5, float("nan")])
def test_quantiles_need_a_probability_inside(p: float) -> None:
    with pytest.raises(ParameterError):
        DiscreteLaplace(2).quantile(p)


@pytest.mark.parametrize("level", [1, -0.1, float("nan")])
def test_half_widths_need_a_level_below_one(level: float) -> None:
    with pytest.raises(ParameterError):
        DiscreteGaussian(2).half_width(level)


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian, Geometric, DiscreteGaussian.from_variance])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_scales_that_are_no_scale_are_refused_when_built(law: type[DiscreteLaplace], bad: float) -> None:
    with pytest.raises(ParameterError):
        law(bad)


def test_parameters_are_kept_exactly() -> None:
    assert DiscreteLaplace(0.1).scale == Fraction(0.1) != Fraction(1, 10)
    assert DiscreteLaplace(Fraction(1, 10)).scale == Fraction(1, 10)
    assert DiscreteLaplace(np.float32(0.1)).scale == Fraction(float(np.float32(0.1)))
    assert DiscreteLaplace(10**30).scale == 10**30
    assert DiscreteGaussian(Fraction(1, 3)) == DiscreteGaussian.from_variance(Fraction(1, 9))
    assert len({DiscreteLaplace(2), DiscreteLaplace(2.0), DiscreteLaplace(Fraction(2))}) == 1


def test_laws_are_frozen() -> None:
    with pytest.raises(AttributeError):
        DiscreteLaplace(2).scale = Fraction(1)  # type: ignore[misc]


def test_the_midpoint_series_has_the_coefficients_of_its_function() -> None:
    """(D/2)/sinh(D/2) = sum_j (2^(1-2j) - 1) B_2j / (2j)! D^2j."""
    from math import factorial

    from hubbub.noise.gaussian_law import _MIDPOINT

    for j, coefficient in enumerate(_MIDPOINT, 1):
        bernoulli = Fraction(*map(int, mpmath.bernfrac(2 * j)))
        assert coefficient == float((Fraction(2, 4**j) - 1) * bernoulli / factorial(2 * j))


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian, Geometric])
def test_a_callers_error_state_stops_no_law(law: type[DiscreteLaplace]) -> None:
    with np.errstate(all="raise"):
        for scale in (1e-9, 1, 1000):
            for name in ("pmf", "tail", "cdf", "log_pmf"):
                assert np.all(~np.isnan(getattr(law(scale), name)([0, 5, 10**6, 10**18])))
