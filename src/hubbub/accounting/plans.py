"""What a plan costs: several events fixed in advance, composed and charged as one.

A mechanism is rho-zCDP if its Renyi divergence is at most rho alpha at every order alpha > 1 (Bun, Steinke 2016,
Definition 1.1). The plan as a whole needs only

    rho = sup over alpha > 1 of  (1/alpha) sum_i D_i(alpha),

because Renyi divergences of one order add up. For an event with a pure epsilon, D_i is that of randomised response at
epsilon, which is the worst of all epsilon-DP mechanisms (Kairouz, Oh, Viswanath 2015, Theorem 8); for every event
also D_i <= rho_i alpha. The gain over the sum of the rhos is made in each event by itself: the quotient D_i/alpha of
randomised response is largest as alpha falls to 1, where it is the Kullback-Leibler divergence epsilon tanh(epsilon/2),
which is less than the epsilon^2/2 that is charged for epsilon-DP alone.

**A bound, not an estimate.** D(alpha) grows with alpha, so on [a, b] the quotient is at most D(b)/a. Orders are taken
in steps of 0.2 %, until the sum of epsilons over a cannot pass what was found. Each value is rounded up by far more
than floats can be wrong. Gaussian parts are linear in alpha and are added exactly. The result lies within 0.3 % of the
supremum. Neighbours: the events'.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction

from hubbub.accounting import events as ev
from hubbub.accounting.exact import Cost, cost
from hubbub.accounting.rounding import digits_up
from hubbub.errors import ParameterError

__all__ = ["plan_cost"]

_STEP = 1.002
_FIRST = 1.001
_LEAST = 1e-5  # below this epsilon, epsilon^2/2 is as good and no float is asked
_ROOM = 1e-9


def plan_cost(plan: Iterable[ev.Event]) -> Cost:
    """The cost of events that were fixed in advance: epsilons and deltas add, and rho is the smaller of two bounds.

    >>> whole = plan_cost([ev.PureDP(1)] * 4)
    >>> whole.epsilon, whole.rho < 2, round(float(whole.rho), 2)
    (Fraction(4, 1), True, 1.85)

    Raises ParameterError for an empty plan, or for what is not an event.
    """
    events = list(plan)
    if not events or not all(isinstance(event, ev.Event) for event in events):
        raise ParameterError("a plan is a list of at least one event. Give events, as in [PureDP(1), Gaussian(2)].")
    costs = [cost(event) for event in events]
    whole = sum(costs[1:], costs[0])
    parts: Counter[tuple[Fraction | None, Fraction]] = Counter()
    for event in events:
        for part, times in _parts(event):
            parts[part] += times
    return Cost(whole.epsilon, min(whole.rho, _numeric(parts)), whole.delta)


def _parts(event: ev.Event) -> Iterator[tuple[tuple[Fraction | None, Fraction], int]]:
    """(epsilon, rho) of every part that runs by itself, and how often; an approximate part counts by its rho."""
    match event:
        case ev.Composed():
            for inner in event.events:
                yield from _parts(inner)
        case ev.Repeated():
            for part, times in _parts(event.event):
                yield part, times * event.times
        case _:
            price = cost(event)
            yield (None if price.delta else price.epsilon, price.rho), 1


def _numeric(parts: Counter[tuple[Fraction | None, Fraction]]) -> Fraction:
    """A bound on sup (1/alpha) sum D_i(alpha): the linear part exactly, the pure part over a grid of orders."""
    linear, pure = Fraction(0), []
    for (epsilon, rho), times in parts.items():
        if epsilon is None or epsilon < _LEAST or epsilon > 100 or rho <= 0:
            linear += rho * times
        else:
            pure.append((float(epsilon), float(rho), times))
    if not pure:
        return linear
    return linear + digits_up(Fraction(_worst(pure)))


def _worst(pure: list[tuple[float, float, int]]) -> float:
    most = sum(epsilon * times for epsilon, _, times in pure)
    largest, low, high = 0.0, 1.0, _FIRST
    while most / low > largest:
        value = sum(times * min(_response(epsilon, high), rho * high) for epsilon, rho, times in pure) / low
        largest = max(largest, value * (1 + _ROOM))
        low, high = high, high * _STEP
    return largest


def _response(epsilon: float, alpha: float) -> float:
    """The Renyi divergence of order alpha of randomised response at epsilon, rounded up.

    ln(p^alpha q^(1-alpha) + q^alpha p^(1-alpha)) / (alpha - 1) with p = e^epsilon q; the logarithm is off by less than
    1e-14, which is added before the division.
    """
    miss = math.exp(-epsilon)
    log = (alpha - 1) * epsilon + math.log1p(math.exp(-(2 * alpha - 1) * epsilon)) - math.log1p(miss)
    return min(epsilon, (log + 1e-14 * (1 + alpha * epsilon)) / (alpha - 1))
