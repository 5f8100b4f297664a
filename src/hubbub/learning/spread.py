"""Where a target that is a number lies and how far it spreads, bought before descent from a small share of the amount.

A row with target y, in 1024ths of the range and from -512 to 512, adds y and floor(y^2 / 512), each within +-512: so
the two sums move by at most 512 sqrt 2 in l2, times the rows of a unit, and twice that under replace. Descent then
begins at the mean instead of the middle of the range, and cuts residuals off at about one standard deviation of the
target: noise is as large as the cut. That is adaptive composition (Bun, Steinke 2016, Lemma 2.3): what descent costs is
fixed before, and the sensitivity of its steps is a function of a released number.

**The share** is 5 / kappa, from a 20th to a half; kappa = n sqrt(2 rho), n the number of rows, public or bought.

**Shrinkage.** The mean counts by m^2 / (m^2 + the variance of its noise). The variance is drawn to .15^2, as if it were
known beforehand to +-.03. Both are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.accounting import Event
from hubbub.learning.descent import noise_of
from hubbub.learning.exact import SCALE, Coded
from hubbub.learning.features import Integers
from hubbub.learning.model import LEVELS, Problem
from hubbub.noise import Bits

__all__ = ["USUAL", "Spread", "bought_spread", "share_of_spread", "spread_squared"]

_HALF = LEVELS // 2
USUAL = 0.15
"""The deviation that a target has before anything is known of it."""
_UNSURE = 0.03**2
_LEAST, _MOST = 1 / 32, 1 / 2


@dataclass(frozen=True)
class Spread:
    """The target's mean from the middle of its range, and its standard deviation, as shares of the range."""

    mean: float
    deviation: float

    def clamp(self, deviations: float) -> int:
        """So many standard deviations on the grid of residuals, from a 32nd of the range to a half.

        >>> Spread(0.0, 0.125).clamp(2) * 4 == SCALE
        True
        """
        return round(min(max(deviations * self.deviation, _LEAST), _MOST) * SCALE)


def share_of_spread(kappa: float) -> Fraction:
    """The share of the amount that it costs.

    >>> share_of_spread(40), share_of_spread(10_000)
    (Fraction(1, 8), Fraction(1, 20))
    """
    return Fraction(round(1000 * min(max(5 / kappa, 0.05), 0.5)), 1000)


def spread_squared(problem: Problem) -> int:
    """The squared sensitivity of the two sums."""
    return problem.moved(2 * _HALF**2)


def spread_sums(rows: Coded) -> list[int]:
    """The sums over rows of y and of floor(y^2 / 512)."""
    y = rows.label - _HALF
    mass: Integers = np.ones(len(y), np.int64) if rows.weights is None else rows.weights
    return [int((y * mass).sum()), int((y * y // _HALF * mass).sum())]


def bought_spread(
    problem: Problem, rows: Coded, n: float, rho: Fraction, bits: Bits | None
) -> Generator[Event, None, Spread]:
    """Yields the event before the sums are drawn. n: the number of rows, public or bought."""
    noise = noise_of(rho, spread_squared(problem))
    yield noise.event
    one = max(n, 1.0) * problem.heaviest * LEVELS
    first, second = (float(v) / one for v in noise.release(spread_sums(rows), bits=bits))
    sigma = math.sqrt(noise.sigma2) / one
    mean = min(max(first * first**2 / (first**2 + sigma**2), -0.5), 0.5)
    # y^2 is half of the second sum; that of the mean is known as badly as the mean.
    unsure = (sigma / 2) ** 2 + (2 * mean * sigma) ** 2
    variance = ((second / 2 - mean**2) * _UNSURE + USUAL**2 * unsure) / (_UNSURE + unsure)
    return Spread(mean, math.sqrt(min(max(variance, 0.0), 0.25)))
