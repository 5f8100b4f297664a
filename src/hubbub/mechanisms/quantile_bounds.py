"""A value that lies below a quantile, whatever the data are, but for a chance that is chosen.

Exponential mechanism (McSherry, Talwar 2007) on the values low .. high. With L(t) rows below t and G(t) above, of n,
share p and margin k >= 0, candidate t is

    d(t) = max(0, L(t) - p n + k, G(t) - (1-p) n - k)

ranks away from the value k ranks below a p-quantile; at t = low the second term is left out, because `low` lies
below every quantile. A row moves L - pn and G - (1-p)n by at most max(p, 1-p), so d has that sensitivity per row, and
P(t) proportional to exp(-r d(t)), r = epsilon / (2 rows max(p, 1-p)), is epsilon-bounded range, hence epsilon-DP and
epsilon^2/8-zCDP (Durfee, Rogers 2019).

Why it is a bound. Let q be a p-quantile: L(q) <= p n, G(q) <= (1-p) n. Every t > q has L(t) >= n - G(q) >= p n, so
d(t) >= k; and some t has d = 0: `low` if p n <= k (its last term is at most p n - k), else a value of
rank p n - k. So P(t > q) <= (high - low + 1) exp(-r k), which is beta for k = (ln(high - low + 1) + ln(1 / beta)) / r.
p = 1 is the maximum: the value returned lies below it with probability 1 - beta, about k ranks from the top. An upper
bound is a lower bound of the share 1 - p among the negated values. Neighbours: add/remove of one unit with at most
`rows` rows (give twice as many for replace).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.mechanisms.quantiles import repeated, runs
from hubbub.mechanisms.recording import through
from hubbub.mechanisms.weighted import log_weights, weighted_choice
from hubbub.noise import Bits, uniform_below

__all__ = ["QuantileBound"]

Integers = NDArray[np.int64]
_GRAIN = 16


@dataclass(frozen=True)
class QuantileBound:
    """A lower bound (or `upper` bound) of the quantile `share` in [0, 1] of integers in low .. high.

    >>> QuantileBound(share=Fraction(1, 2), low=0, high=120, epsilon=Fraction(1)).margin
    Fraction(147, 16)
    """

    share: Fraction
    low: int
    high: int
    epsilon: Fraction
    rows: int = 1
    beta: Fraction = Fraction(1, 80)
    upper: bool = False

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.BoundedRange(self.epsilon)

    @property
    def rate(self) -> Fraction:
        """r: what one rank costs in the exponent."""
        return self.epsilon / (2 * self.rows * max(self.share, 1 - self.share))

    @property
    def margin(self) -> Fraction:
        """k, in ranks: a multiple of 1/16, rounded up."""
        size = math.log(self.high - self.low + 1) + math.log(self.beta.denominator / self.beta.numerator)
        return Fraction(math.floor(size / float(self.rate) * _GRAIN) + 1, _GRAIN)

    def release(self, points: Integers, heights: Integers, *, bits: Bits | None = None) -> int:
        """One draw. points: the distinct values of the rows, increasing; heights: how many rows have each."""

        def draw() -> int:
            starts, counts, steps, grain = self._scored(points, heights)
            i = weighted_choice(steps, self.rate / grain, counts=counts, bits=bits)
            place = int(starts[i]) + uniform_below(int(counts[i]), bits=bits)
            return -place if self.upper else place

        return through(repeated(points, heights), sensitivity=self.rows, norm="rows", law=self, draw=draw)

    def log_prob(self, output: int, points: Integers, heights: Integers) -> float:
        """ln P(release(points, heights) = output)."""
        if not self.low <= output <= self.high:
            return -math.inf
        starts, counts, steps, grain = self._scored(points, heights)
        value = -output if self.upper else output
        logs = log_weights(steps, self.rate / grain, counts)
        i = int(np.flatnonzero((starts <= value) & (value < starts + counts))[0])
        top = float(logs.max())
        return float(-float(self.rate / grain) * int(steps[i]) - top - math.log(float(np.exp(logs - top).sum())))

    def _scored(self, points: Integers, heights: Integers) -> tuple[Integers, Integers, Any, int]:
        """Runs of equal score: first value, how many, and d in units of 1 / (16 * the share's denominator)."""
        low, high, share = self.low, self.high, self.share
        if self.upper:
            points, heights, low, high, share = -points[::-1], heights[::-1], -high, -low, 1 - share
        starts, counts, less, more = _with_floor(runs(points, heights, low, high))
        p, q = share.numerator, share.denominator
        n, k = int(heights.sum()), int(self.margin * _GRAIN) * q
        if (n + 1) * q * _GRAIN + k >= 2**62:
            less, more = less.astype(object), more.astype(object)
        over = _GRAIN * (q * less - p * n) + k
        over[starts == low] = 0
        steps = np.maximum(0, np.maximum(over, _GRAIN * (q * more - (q - p) * n) - k))
        return starts, counts, steps - steps[counts > 0].min(), q * _GRAIN


def _with_floor(
    intervals: tuple[Integers, Integers, Integers, Integers],
) -> tuple[Integers, Integers, Integers, Integers]:
    """The runs with the first value in a run of its own."""
    starts, counts, less, more = intervals
    if counts[0] <= 1:
        return intervals
    first = [np.concatenate(([a[0]], a)) for a in (starts, counts, less, more)]
    first[0][1] += 1
    first[1][0], first[1][1] = 1, counts[0] - 1
    return first[0], first[1], first[2], first[3]
