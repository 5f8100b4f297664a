"""Bounds that need no lattice: the exact rational routes, and the largest loss of pure events."""

from __future__ import annotations

import math
from fractions import Fraction

from hubbub.accounting import events as ev
from hubbub.accounting.exact import cost
from hubbub.accounting.rounding import float_down, float_up
from hubbub.accounting.zcdp import delta_of_rho, epsilon_of_rho

__all__ = ["known_delta", "known_epsilon", "pure_bounds"]

UNIT = 2.0**-53


def known_epsilon(event: ev.Event, delta: Fraction) -> float:
    """The exact rational routes: pure sum, zCDP conversion."""
    whole = cost(event)
    best = math.inf if whole.epsilon is None else float_up(whole.epsilon)
    if whole.delta < delta:
        best = min(best, float_up(epsilon_of_rho(whole.rho, delta - whole.delta)))
    return best


def known_delta(event: ev.Event, epsilon: Fraction) -> float:
    whole = cost(event)
    if whole.epsilon is not None and whole.epsilon <= epsilon:
        return 0.0
    return min(1.0, math.nextafter(delta_of_rho(whole.rho, epsilon) + float_up(whole.delta), math.inf))


def pure_bounds(event: ev.Event) -> tuple[float, float]:
    """(lower, upper) on the smallest pure epsilon: the largest loss. Infinite where there is none."""
    whole = cost(event).epsilon
    if whole is None:
        return math.inf, math.inf
    low, high = _largest_loss(event)
    return float_down(min(low, whole)), float_up(min(high, whole))


def _largest_loss(event: ev.Event) -> tuple[Fraction, Fraction]:
    """The largest loss of a pure event, from below and from above: sums, maxima, and for samples of a rate
    ln(1 + rate (e^loss - 1)), which is the removal side, the larger one.
    """
    match event:
        case ev.PoissonSampled() | ev.SampledWithoutReplacement():
            low, high = _largest_loss(event.event)
            return _sampled_loss(low, event.rate)[0], _sampled_loss(high, event.rate)[1]
        case ev.Composed():
            losses = [_largest_loss(e) for e in event.events]
            return sum((f[0] for f in losses), Fraction(0)), sum((f[1] for f in losses), Fraction(0))
        case ev.Parallel():
            losses = [_largest_loss(e) for e in event.events]
            return max(f[0] for f in losses), max(f[1] for f in losses)
        case ev.Repeated():
            low, high = _largest_loss(event.event)
            return event.times * low, event.times * high
        case _:
            epsilon = cost(event).epsilon
            assert epsilon is not None
            return epsilon, epsilon


def _sampled_loss(loss: Fraction, rate: Fraction) -> tuple[Fraction, Fraction]:
    if rate == 0 or loss == 0:
        return Fraction(0), Fraction(0)
    if rate == 1 or loss > 600:
        # ln(rate) below the loss itself at most, and the loss itself.
        low = loss if rate == 1 else max(Fraction(0), loss - Fraction(math.ceil(-_log_down(rate))))
        return low, loss
    sampled = Fraction(math.log1p(float(rate) * math.expm1(float(loss))))
    slack = Fraction(64 * UNIT)
    return min(loss, sampled * (1 - slack)), min(loss, sampled * (1 + slack) + Fraction(1, 10**300))


def _log_down(x: Fraction) -> float:
    """ln of a rational, however small, less a hair."""
    return math.log(x.numerator) - math.log(x.denominator) - 1e-9
