"""Compositions of few outcomes, one by one: no lattice, so nothing to refine.

A mechanism of m outcomes, n times, has C(n + m - 1, m - 1) losses, with multinomial masses; several
mechanisms have products of these. While there are at most MOST of them, delta(epsilon) = E(1 - e^(epsilon - L))_+
is a plain sum, to about ten digits and better, however small it is and however little the losses have in common.

Certified: masses carry a relative error (logarithms of factorials and of masses, each a few units in the last place
of their size, times how often they occur), losses an absolute one, and what an infinite table leaves out is
infinite above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hubbub.accounting.pairs import UNIT, Atoms, Pair, moved

__all__ = ["Outcomes", "crossing", "outcomes"]

Array = NDArray[np.float64]
MOST = 20_000


@dataclass(frozen=True)
class Outcomes:
    """All finite losses of a composition with their log masses, and the errors of both."""

    loss: Array
    log_p: Array
    infinite: float
    missing: float
    relative: float
    moved: float

    def middle(self, epsilon: float) -> float:
        """delta(epsilon), without its errors."""
        over = self.loss > epsilon
        gain = np.exp(self.log_p[over]) * -np.expm1(epsilon - self.loss[over])
        return float(np.sum(gain)) + self.infinite

    def above(self, epsilon: float) -> float:
        """At least delta(epsilon)."""
        return min(1.0, self.middle(epsilon - self.moved) * (1 + self.relative) + self.missing)

    def below(self, epsilon: float) -> float:
        """At most delta(epsilon)."""
        return max(0.0, self.middle(epsilon + self.moved) * (1 - self.relative) - 1e-307)


def outcomes(direction: Sequence[tuple[Pair, int]]) -> Outcomes | None:
    """The outcomes of a direction, or None where there are too many, or a continuous part."""
    if any(pair.continuous for pair, _ in direction):
        return None
    parts = [(pair.atoms, n) for pair, n in direction]
    if math.prod(math.comb(n + a.loss.size - 1, a.loss.size - 1) for a, n in parts) > MOST:
        return None
    loss, log_p = np.zeros(1), np.zeros(1)
    relative, far, missing, infinite = 64 * UNIT, 0.0, 0.0, 0.0
    for a, n in parts:
        more, log_q, error = _power(a, n)
        loss, log_p = np.add.outer(loss, more).ravel(), np.add.outer(log_p, log_q).ravel()
        relative += error + n * float(np.max(a.slack, initial=0.0))
        far += n * moved(float(np.max(np.abs(a.loss), initial=0.0)))
        missing += 2 * n * a.missing
        infinite += n * math.log1p(-a.p_only)
    # Sums of positive terms: a few units times the logarithm of their number, and 1e-300 for what underflows.
    return Outcomes(loss, log_p, -math.expm1(infinite), missing + 1e-300, relative, far)


def _power(a: Atoms, n: int) -> tuple[Array, Array, float]:
    """Losses and log masses of n independent draws, and the relative error of the masses."""
    with np.errstate(divide="ignore"):
        log_a = np.maximum(np.log(a.p), -1e6)
    left, loss, log_p = np.array([n]), np.zeros(1), np.array([float(gammaln(n + 1.0))])
    last = a.loss.size - 1
    for i in range(last + 1):
        if i < last:
            sizes = left + 1
            taken = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            left, loss, log_p = (np.repeat(v, sizes) for v in (left, loss, log_p))
        else:
            taken = left
        left = left - taken
        loss, log_p = loss + taken * a.loss[i], log_p + taken * log_a[i] - gammaln(taken + 1.0)
    # Masses below e^-800 underflow, so only exponents up to that, and their parts, need to be right.
    size = 4 * float(gammaln(n + 1.0)) + 2 * n * float(np.max(np.abs(np.maximum(log_a, -800.0)))) + 800.0
    return loss, log_p, 8 * UNIT * size


def crossing(delta_at: Callable[[float], float], delta: float, top: float, *, up: bool) -> float:
    """Where a falling delta_at passes delta: the first float that fits (`up`), or the last that does not, or 0."""
    if delta_at(0.0) <= delta:
        return 0.0
    low, high = 0.0, top
    if delta_at(high) > delta:
        return math.inf if up else high
    while True:
        middle = (low + high) / 2
        if middle in (low, high) or high - low <= 1e-15 * high:
            return high if up else low
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
