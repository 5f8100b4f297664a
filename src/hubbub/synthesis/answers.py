"""A noisy answer that is a sum of independent discrete Gaussian draws, and its interval.

Let the error be sum_i c_i Z_i, Z_i discrete Gaussian of parameter s_i^2. Its variance is at most V = sum c_i^2 s_i^2
(Canonne, Kamath, Steinke 2020, Corollary 9; equal to ten digits from s_i = 1.3 on). Intervals are the normal quantile
of V plus half the coarsest step max |c_i|: for one draw that is proved to cover, at confidence from .69 on, because

    P(Z >= k) <= integral from k - 1/2 of the normal density      wherever k - 1/2 >= s:

the lattice's normalising sum is at least sqrt(2 pi) s (Poisson summation), and the density is convex there. For sums of
several draws it is the normal approximation with a continuity correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from hubbub.accounting import Number
from hubbub.accounting.amounts import probability
from hubbub.errors import ParameterError

__all__ = ["Answer", "half_width"]


def half_width(variance: float, step: float, confidence: Number) -> float:
    """How far the truth may be, with this confidence. Raises ParameterError for one outside (0, 1).

    >>> round(half_width(100.0, 1.0, "0.95"), 3)
    20.1
    """
    level = probability(confidence, "confidence")
    if level == 0:
        raise ParameterError("confidence = 0 was asked; give one between 0 and 1, such as 0.95.")
    beta = float((1 - level) / 2)
    return -NormalDist().inv_cdf(beta) * math.sqrt(variance) + step / 2


@dataclass(frozen=True)
class Answer:
    """A noisy number: value, variance of its noise, and the coarsest lattice step in it."""

    value: float
    variance: float
    step: float = 0.0

    @property
    def sd(self) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(self.variance)

    def interval(self, confidence: Number = Fraction(95, 100)) -> tuple[float, float]:
        """(low, high), which hold the truth with this confidence."""
        reach = half_width(self.variance, self.step, confidence)
        return self.value - reach, self.value + reach
