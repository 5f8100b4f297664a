"""The discrete Gaussian: P(X = x) = exp(-x^2/(2s)) / Z(s) on the integers, s = sigma^2 (Canonne, Kamath,
Steinke 2020).

Adding it to an integer of sensitivity Delta is (Delta^2 / (2s))-zero-concentrated private, exactly (their
Theorem 4). Note that s is the parameter; the variance is s for s > 1 to many digits and smaller for small
s.

*Normaliser.* Z = sqrt(2 pi s) sum_k exp(-2 pi^2 k^2 s) by Poisson summation for s >= 1, the plain sum
below.

*Tails.* For sigma < 64, suffix sums of the mass. Above, with y = x + 1/2 and f(u) = exp(-u^2/(2s)), the
midpoint Euler-Maclaurin series

    sum_{k > x} f(k) = int_y^inf f - sum_j c_j f^(2j-1)(y),       (D/2)/sinh(D/2) = 1 + sum_j c_j D^(2j),

whose terms fall like (x / (2 pi s))^(2j) <= 0.1^(2j) over the range of floats, so eight of them leave less
than 2^-52. Relative error is below 2^-48 (8 + x^2/(2s)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, overload

import numpy as np

from hubbub.noise import draw
from hubbub.noise.bits import Bits
from hubbub.noise.laws import confidence, plain, probability, quantile, quiet, smallest, whole
from hubbub.noise.parameters import Floats, Integers, Number, approximation, positive

__all__ = ["DiscreteGaussian"]

_SUMMED = 64.0
# Taylor coefficients of (D/2)/sinh(D/2) in D^2: (2^(1-2j) - 1) B_2j / (2j)!.
_MIDPOINT = (
    -1 / 24,
    7 / 5760,
    -31 / 967680,
    127 / 154828800,
    -73 / 3503554560,
    1414477 / 2678117105664000,
    -8191 / 612141052723200,
    16931177 / 49950709902213120000,
)


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian:
    """P(X = x) proportional to exp(-x^2/(2 sigma2)) on the integers; `sigma2` is kept as an exact rational.

    >>> DiscreteGaussian(10).half_width(0.95)
    20
    >>> DiscreteGaussian.from_variance(Fraction(1, 2)).sigma2
    Fraction(1, 2)
    """

    sigma2: Fraction

    def __init__(self, sigma: Number) -> None:
        object.__setattr__(self, "sigma2", positive(sigma, "sigma") ** 2)

    @classmethod
    def from_variance(cls, sigma2: Number) -> DiscreteGaussian:
        """The law whose parameter sigma^2 is the given rational, though sigma may be none."""
        law = cls.__new__(cls)
        object.__setattr__(law, "sigma2", positive(sigma2, "sigma2"))
        return law

    @property
    def sigma(self) -> float:
        """The parameter's square root, as a float."""
        return math.sqrt(approximation(self.sigma2))

    @overload
    def sample(self, size: None = None, *, bits: Bits | None = None) -> int: ...
    @overload
    def sample(self, size: int | tuple[int, ...], *, bits: Bits | None = None) -> Integers: ...
    def sample(self, size: Any = None, *, bits: Bits | None = None) -> int | Integers:
        """Exact draws: an int, or an int64 array of shape `size`."""
        return draw.gaussian_draws(self.sigma2, size, bits, None)

    @property
    def variance(self) -> float:
        """E X^2; close to sigma^2 for sigma > 1, far below it for sigma < 1/2."""
        return _moments(approximation(self.sigma2))[1]

    @quiet
    def log_pmf(self, x: Any) -> Any:
        """ln P(X = x), elementwise."""
        s = approximation(self.sigma2)
        return plain(-(whole(x) ** 2) / (2 * s) - _moments(s)[0])

    @quiet
    def pmf(self, x: Any) -> Any:
        """P(X = x), elementwise."""
        return plain(np.exp(self.log_pmf(x)))

    @quiet
    def tail(self, x: Any) -> Any:
        """P(X > x), elementwise."""
        points = whole(x)
        upper = _upper(approximation(self.sigma2), np.where(points >= 0, points, -points - 1))
        return plain(np.where(points >= 0, upper, 1 - upper))

    @quiet
    def cdf(self, x: Any) -> Any:
        """P(X <= x), elementwise."""
        return self.tail(-whole(x) - 1)

    def quantile(self, p: Number) -> int:
        """The smallest x with P(X <= x) >= p, 0 < p < 1."""
        mass = probability(p)
        rest = max(float(min(mass, 1 - mass)), 1e-300)
        guess = max(0, math.floor(-self.sigma * NormalDist().inv_cdf(rest))) if rest < 0.5 else 0
        return quantile(self.tail, self.cdf, mass, guess if mass > Fraction(1, 2) else -guess)

    def half_width(self, level: Number) -> int:
        """The smallest t >= 0 with P(|X| <= t) >= level."""
        rest = confidence(level)
        half = max(rest / 2, 1e-300)
        guess = max(0, math.floor(-self.sigma * NormalDist().inv_cdf(half))) if half < 0.5 else 0
        return smallest(lambda t: t >= 0 and 2 * self.tail(t) <= rest, guess)


@lru_cache(maxsize=1024)
def _moments(s: float) -> tuple[float, float]:
    """(ln Z, E X^2) of the law with parameter s."""
    if s >= 1:
        waves = [math.exp(-2 * math.pi**2 * k * k * s) for k in (1, 2, 3)]
        total = 1 + 2 * math.fsum(waves)
        bend = math.fsum(k * k * wave for k, wave in zip((1, 2, 3), waves, strict=True))
        return (
            0.5 * math.log(2 * math.pi * s) + math.log1p(total - 1),
            s - 8 * math.pi**2 * (bend * s) * s / total,
        )
    masses = [math.exp(-k * k / (2 * s)) for k in range(1, 41)]
    total = 1 + 2 * math.fsum(masses)
    second = 2 * math.fsum(k * k * mass for k, mass in enumerate(masses, 1))
    return math.log1p(total - 1), second / total


@lru_cache(maxsize=64)
def _suffix_sums(s: float) -> Floats:
    """P(X > x) for x = 0, 1, ... until it underflows."""
    k = np.arange(1, math.ceil(39 * math.sqrt(s)) + 3, dtype=np.float64)
    masses = np.exp(-k * k / (2 * s) - _moments(s)[0])
    # From the far end, so that small terms are added first and every tail keeps its relative accuracy.
    sums = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    sums.setflags(write=False)
    return sums


def _upper(s: float, points: Floats) -> Floats:
    """P(X > x) for x >= 0."""
    sigma = math.sqrt(s)
    if sigma < _SUMMED:
        sums = _suffix_sums(s)
        return np.asarray(sums[np.minimum(points, sums.size - 1).astype(np.int64)])
    from scipy.special import erfcx

    z = (np.minimum(points, 40 * sigma) + 0.5) / sigma
    series = math.sqrt(math.pi / 2) * sigma * erfcx(z / math.sqrt(2))
    before, hermite, power = np.ones_like(z), z, 1 / sigma
    for j, coefficient in enumerate(_MIDPOINT, 1):
        # f^(2j-1) = -He_(2j-1)(z) f / sigma^(2j-1).
        series = series + coefficient * hermite * power
        for n in (2 * j - 1, 2 * j):
            before, hermite = hermite, z * hermite - n * before
        power /= s
    return np.asarray(np.exp(-z * z / 2 - _moments(s)[0]) * series)
