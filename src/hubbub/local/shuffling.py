"""Shuffling: n local reports whose senders are hidden cost each person less.

*Upper bound* (Feldman, McMillan, Talwar 2021, "Hiding among the clones", Theorem 3.1; replace neighbours). Let every
report be epsilon0-LDP. Each of the other n-1 people sends, with probability r = e^(-epsilon0), a report distributed as
one of the two that the first person may send, each half the time. So the shuffled reports are at most as telling as
the pair

    (A + D, C - A + 1 - D)  against  (A + 1 - D, C - A + D),
    C ~ Bin(n-1, r), A ~ Bin(C, 1/2), D ~ Bernoulli(P),  P = e^epsilon0 / (e^epsilon0 + 1).

*k-ary response* does better: another person's report is, whatever their answer, each of the two categories in question
with probability at least 1/(e^epsilon0 + k-1), so r = 2/(e^epsilon0 + k-1); and the first person names one of the two
with probability v = (e^epsilon0 + 1)/(e^epsilon0 + k-1) only, else the two cases do not differ, so delta is v times
that of the pair (joint convexity).

*Computing it.* Given C = c the likelihood ratio at A' = a is (E a + b)/(a + E b), b = c + 1 - a, E = e^epsilon0; it
grows with a. So delta(epsilon) = sum over c of P(C=c) times two binomial tails, beyond
a* = (c+1) (e^epsilon E - 1) / ((e^epsilon + 1)(E - 1)). Both directions agree by symmetry. Neighbouring c are taken
together at the smallest of them, C outside a window is added as if it gave everything away, and rounding errors at 1e-9
of all terms: the result is an upper bound.

*Lower bound*: binary response, where n-1 people answer No and one Yes or No: the number of Yes reports is
Bin(n-1, 1-P) + Bernoulli(P or 1-P); its delta is summed over outcomes, in both directions. No analysis that holds for
every epsilon0-LDP report can claim less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.accounting.amounts import Number, amount, probability
from hubbub.accounting.events import ApproxDP
from hubbub.accounting.rounding import digits_up
from hubbub.errors import ParameterError
from hubbub.local.draws import Integers
from hubbub.local.oracle import epsilon_above_zero, whole

__all__ = ["Shuffled", "shuffle", "shuffled_delta", "shuffled_delta_lower"]

_SLACK = 1e-9
_LOG_TAIL = 70.0
_BLOCKS = 256


def _window(n: int, p: float) -> Integers:
    """Where all but about 1e-30 of Bin(n, p) lies (Bernstein)."""
    reach = math.sqrt(2 * _LOG_TAIL * n * p * (1 - p)) + _LOG_TAIL
    return np.arange(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1)


def _clones(epsilon0: float, others: int, rate: float) -> Callable[[float], float]:
    """An upper bound of delta as a function of epsilon, for the clones' pair with C ~ Bin(others, rate)."""
    from scipy.stats import binom

    every = _window(others, rate)
    missing = float(binom.cdf(every[0] - 1, others, rate) + binom.sf(every[-1], others, rate))
    # One more clone is post-processing, so delta falls as c grows: a block of c is bounded by its first.
    starts = np.unique(np.linspace(0, every.size, _BLOCKS, endpoint=False).astype(np.int64))
    weights = np.add.reduceat(binom.pmf(every, others, rate), starts)
    c = every[starts].astype(np.float64)
    yes = 1 / (1 + math.exp(-epsilon0))

    def delta(epsilon: float) -> float:
        if epsilon >= epsilon0:
            return 0.0
        factor = math.exp(epsilon)
        edge = (c + 1) * math.expm1(epsilon + epsilon0) / ((factor + 1) * math.expm1(epsilon0))
        first = np.floor(edge) + 1
        gain, cost = yes - factor * (1 - yes), (1 - yes) - factor * yes
        terms = weights * gain * binom.sf(first - 2, c, 0.5), weights * cost * binom.sf(first - 1, c, 0.5)
        size = float(np.abs(terms[0]).sum() + np.abs(terms[1]).sum())
        return min(1.0, max(0.0, float(terms[0].sum() + terms[1].sum())) + _SLACK * size + missing)

    return delta


def _upper(epsilon0: float, n: int, categories: int | None) -> Callable[[float], float]:
    """The best upper bound of delta as a function of epsilon."""
    general = _clones(epsilon0, n - 1, math.exp(-epsilon0))
    if categories is None:
        return general
    spread = math.exp(epsilon0) + whole(categories, "categories", 2, 1 << 40) - 1
    kary = _clones(epsilon0, n - 1, 2 / spread)
    named = (math.exp(epsilon0) + 1) / spread * (1 + _SLACK)
    return lambda epsilon: min(general(epsilon), named * kary(epsilon))


def _binary(epsilon0: float, n: int) -> Callable[[float], float]:
    """A lower bound of delta as a function of epsilon: n - 1 people answer No, and tails of the number of Yes."""
    from scipy.stats import binom

    yes = 1 / (1 + math.exp(-epsilon0))
    others = binom.pmf(_window(n - 1, 1 - yes), n - 1, 1 - yes)
    law_yes = yes * np.append(0.0, others) + (1 - yes) * np.append(others, 0.0)
    law_no = (1 - yes) * np.append(0.0, others) + yes * np.append(others, 0.0)

    def delta(epsilon: float) -> float:
        factor = math.exp(epsilon)
        sides = (law_yes - factor * law_no, law_no - factor * law_yes)
        return max(0.0, max(float(np.maximum(side, 0).sum()) for side in sides) * (1 - _SLACK))

    return delta


def shuffled_delta(epsilon: float, epsilon0: Number, n: int, *, categories: int | None = None) -> float:
    """An upper bound of delta at `epsilon` for n shuffled epsilon0-LDP reports; for k-ary response, give `categories`.

    >>> shuffled_delta(0.5, 1, 1000) < 1e-6
    True
    """
    local = float(epsilon_above_zero(epsilon0, "epsilon0"))
    return _upper(local, whole(n, "n", 2, 1 << 40), categories)(epsilon)


def shuffled_delta_lower(epsilon: float, epsilon0: Number, n: int) -> float:
    """A lower bound of delta at `epsilon`: exact for n shuffled binary responses, all others answering No."""
    return _binary(float(epsilon_above_zero(epsilon0, "epsilon0")), whole(n, "n", 2, 1 << 40))(epsilon)


@dataclass(frozen=True)
class Shuffled:
    """What shuffling gives each of n people: `upper` holds, and no bound for every such report is below `lower`."""

    epsilon0: Fraction
    n: int
    delta: Fraction
    lower: float
    upper: float

    @property
    def loss(self) -> ApproxDP:
        """The event to charge, replace neighbours: the upper bound, rounded up."""
        return ApproxDP(digits_up(Fraction(self.upper)), self.delta)


def _crossing(delta_at: Callable[[float], float], delta: float, most: float) -> tuple[float, float]:
    """An epsilon where delta_at is above delta, and one where it is not, close together."""
    low, high = 0.0, most
    if delta_at(low) <= delta:
        return 0.0, 0.0
    while high - low > 1e-6 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return low, high


def shuffle(epsilon0: Number, n: int, delta: Number, *, categories: int | None = None) -> Shuffled:
    """The epsilon at `delta` of n shuffled epsilon0-LDP reports, from both sides.

    `n` counts honest reports only. `categories`: for k-ary response with so many categories (a tighter upper bound; the
    lower bound is about binary response, and is left at 0 for k > 2).

    >>> found = shuffle(1, 10_000, "1e-6")
    >>> 0.03 < found.lower < found.upper < 0.06
    True

    Raises ParameterError for delta outside (0, 1).
    """
    local, target = epsilon_above_zero(epsilon0, "epsilon0"), probability(delta, "delta")
    if target == 0:
        raise ParameterError("delta = 0 was asked; shuffling lowers epsilon only at a delta above 0.")
    goal, most = float(target) * (1 - 1e-12), float(amount(local, "epsilon0"))
    people = whole(n, "n", 2, 1 << 40)
    _, upper = _crossing(_upper(float(local), people, categories), goal, most)
    lower = 0.0
    if categories in (None, 2):
        lower, _ = _crossing(_binary(float(local), people), goal, most)
    return Shuffled(local, n, target, min(lower, upper), min(upper, most))
