"""The discrete Laplace and the geometric law.

Discrete Laplace of scale b, with q = exp(-1/b), on the integers (Ghosh, Roughgarden, Sundararajan 2012):

    P(X = x) = (1-q)/(1+q) q^|x|          P(X > x) = q^(x+1)/(1+q)  for x >= -1          Var X = 2q/(1-q)^2

Geometric of scale b, on k >= 0: P(K = k) = (1-q) q^k, P(K > k) = q^(k+1), Var K = q/(1-q)^2.

Adding discrete Laplace noise of scale Delta/eps to an integer of sensitivity Delta is eps-differentially
private. Floats here serve error bars and accounting; relative error is below 2^-49 (8 + |x|/b). Draws never
use them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np

from hubbub.noise import draw
from hubbub.noise.bits import Bits
from hubbub.noise.laws import confidence, plain, probability, quantile, quiet, smallest, whole
from hubbub.noise.parameters import Integers, Number, approximation, positive

__all__ = ["DiscreteLaplace", "Geometric"]


def _log_gap(b: float) -> float:
    """ln(1 - q), accurate for every b > 0."""
    y = 1 / b
    return math.log(-math.expm1(-y)) if y < math.log(2) else math.log1p(-math.exp(-y))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace:
    """P(X = x) proportional to exp(-|x|/scale) on the integers; `scale` is kept as an exact rational.

    >>> DiscreteLaplace(10).half_width(0.95)
    30
    >>> round(DiscreteLaplace(1).pmf(0), 6)
    0.462117
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))

    @property
    def _b(self) -> float:
        return approximation(self.scale)

    @overload
    def sample(self, size: None = None, *, bits: Bits | None = None) -> int: ...
    @overload
    def sample(self, size: int | tuple[int, ...], *, bits: Bits | None = None) -> Integers: ...
    def sample(self, size: Any = None, *, bits: Bits | None = None) -> int | Integers:
        """Exact draws: an int, or an int64 array of shape `size`."""
        return draw.laplace_draws(self.scale, size, bits, None)

    @property
    def variance(self) -> float:
        """2q/(1-q)^2 = 1/(2 sinh^2(1/(2b)))."""
        y = 1 / self._b
        return 2 * math.exp(-y) / math.expm1(-y) ** 2

    @quiet
    def log_pmf(self, x: Any) -> Any:
        """ln P(X = x), elementwise."""
        b = self._b
        top = _log_gap(b) - math.log1p(math.exp(-1 / b))
        return plain(top - np.abs(whole(x)) / b)

    @quiet
    def pmf(self, x: Any) -> Any:
        """P(X = x), elementwise."""
        b = self._b
        return plain(math.tanh(1 / (2 * b)) * np.exp(-np.abs(whole(x)) / b))

    @quiet
    def tail(self, x: Any) -> Any:
        """P(X > x), elementwise."""
        b = self._b
        points = whole(x)
        smaller = np.exp(-np.where(points >= 0, points + 1, -points) / b) / (1 + math.exp(-1 / b))
        return plain(np.where(points >= 0, smaller, 1 - smaller))

    @quiet
    def cdf(self, x: Any) -> Any:
        """P(X <= x), elementwise."""
        return self.tail(-whole(x) - 1)

    def quantile(self, p: Number) -> int:
        """The smallest x with P(X <= x) >= p, 0 < p < 1."""
        mass = probability(p)
        b = self._b
        rest = float(min(mass, 1 - mass))
        guess = max(0, math.floor(-b * math.log(max(2 * rest, 5e-324))))
        return quantile(self._tail, self._cdf, mass, guess if mass > Fraction(1, 2) else -guess)

    def half_width(self, level: Number) -> int:
        """The smallest t >= 0 with P(|X| <= t) >= level."""
        rest = confidence(level)
        guess = math.floor(-self._b * math.log(max(rest, 5e-324)))
        return smallest(lambda t: t >= 0 and 2 * self._tail(t) <= rest, max(0, guess))

    def _tail(self, x: int) -> float:
        b = self._b
        q = math.exp(-1 / b)
        return math.exp(-(x + 1) / b) / (1 + q) if x >= 0 else 1 - math.exp(x / b) / (1 + q)

    def _cdf(self, x: int) -> float:
        return self._tail(-x - 1)


@dataclass(frozen=True, slots=True, init=False)
class Geometric:
    """P(K = k) proportional to exp(-k/scale) on k >= 0; `scale` is kept as an exact rational.

    >>> Geometric(10).quantile(0.5)
    6
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))

    @property
    def _b(self) -> float:
        return approximation(self.scale)

    @overload
    def sample(self, size: None = None, *, bits: Bits | None = None) -> int: ...
    @overload
    def sample(self, size: int | tuple[int, ...], *, bits: Bits | None = None) -> Integers: ...
    def sample(self, size: Any = None, *, bits: Bits | None = None) -> int | Integers:
        """Exact draws: an int, or an int64 array of shape `size`."""
        return draw.geometric_draws(self.scale, size, bits, None)

    @property
    def mean(self) -> float:
        """q/(1-q)."""
        y = 1 / self._b
        return math.exp(-y) / -math.expm1(-y)

    @property
    def variance(self) -> float:
        """q/(1-q)^2."""
        y = 1 / self._b
        return math.exp(-y) / math.expm1(-y) ** 2

    @quiet
    def log_pmf(self, x: Any) -> Any:
        """ln P(K = x), elementwise; minus infinity below 0."""
        points = whole(x)
        b = self._b
        return plain(np.where(points >= 0, _log_gap(b) - np.abs(points) / b, -np.inf))

    @quiet
    def pmf(self, x: Any) -> Any:
        """P(K = x), elementwise."""
        points = whole(x)
        b = self._b
        return plain(np.where(points >= 0, -math.expm1(-1 / b) * np.exp(-np.abs(points) / b), 0.0))

    @quiet
    def tail(self, x: Any) -> Any:
        """P(K > x), elementwise."""
        return plain(np.exp(-np.maximum(whole(x) + 1, 0) / self._b))

    @quiet
    def cdf(self, x: Any) -> Any:
        """P(K <= x), elementwise."""
        return plain(-np.expm1(-np.maximum(whole(x) + 1, 0) / self._b))

    def quantile(self, p: Number) -> int:
        """The smallest k with P(K <= k) >= p, 0 < p < 1."""
        mass = probability(p)
        b = self._b
        guess = max(0, math.floor(-b * math.log(max(float(1 - mass), 5e-324))))
        return quantile(lambda k: math.exp(-max(k + 1, 0) / b), lambda k: -math.expm1(-max(k + 1, 0) / b), mass, guess)
