"""Bounds for mechanisms whose epsilon is in a range: the worst of each range, for all of them together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hubbub.accounting import events as ev, ranges
from hubbub.accounting.decompose import Flat
from hubbub.accounting.outcomes import crossing
from hubbub.accounting.pairs import UNIT
from hubbub.accounting.rounding import float_down, float_up

__all__ = ["fixed_epsilon", "fixed_ranges", "open_ranges", "ranges_delta", "ranges_epsilon"]


_MOST_FIXED = 400


def ranges_epsilon(flat: Flat, delta: float, width: float | None) -> tuple[float, float]:
    repeated = [(float(e.epsilon), n) for e, n in flat.ranges]
    top = sum(e * n for e, n in repeated)

    def ask(profile: ranges.Profile) -> tuple[float, float]:
        return _cross(profile, delta, down=True), _cross(profile, delta, down=False)

    low, high = _ranges_refined(repeated, ask, lambda h: width if width is not None else 1e-3 * h)
    return min(low, top * (1 - 4 * UNIT)), min(high, top * (1 + 4 * UNIT))


def ranges_delta(flat: Flat, epsilon: float, relative: float) -> tuple[float, float]:
    repeated = [(float(e.epsilon), n) for e, n in flat.ranges]

    def ask(profile: ranges.Profile) -> tuple[float, float]:
        e = (profile.first + np.arange(profile.above.size)) * profile.h
        k = min(int(np.searchsorted(e, epsilon, side="right")), e.size - 1)
        x = (math.exp(epsilon) - math.exp(e[k - 1])) / (math.exp(e[k]) - math.exp(e[k - 1]))
        x = min(max(x, 0.0), 1.0)
        top = (1 - x) * profile.above[k - 1] + x * profile.above[k]
        return float(profile.below[k]), float(top) * (1 + 1e-12)

    return _ranges_refined(repeated, ask, lambda h: relative * h)


def _ranges_refined(
    repeated: list[tuple[float, int]],
    ask: Callable[[ranges.Profile], tuple[float, float]],
    wanted: Callable[[float], float],
) -> tuple[float, float]:
    """Finer lattices, as common parts of the smallest range, until narrow enough or too much work."""
    smallest = Fraction(min(e for e, _ in repeated)).limit_denominator(10**6)
    low, high, m = 0.0, math.inf, 8
    while True:
        h = float(smallest) / m
        if ranges.work(repeated, h) > 6e8:
            return low, high
        pair = ask(ranges.adaptive(repeated, h))
        low, high = max(low, pair[0]), min(high, pair[1])
        if high - low <= wanted(high):
            return low, high
        m *= 2


def _cross(profile: ranges.Profile, delta: float, *, down: bool) -> float:
    """Where the profile falls through delta. It is convex in x = e^e: above on the chord; below on what its
    neighbouring chords leave possible.
    """
    v = profile.below if down else profile.above
    over = np.flatnonzero(v > delta)
    if not over.size:
        return 0.0
    k = int(over[-1])
    if k + 2 >= v.size or k == 0:
        return profile.h * (profile.first + k) * (1 - 4 * UNIT) if down else math.inf
    x = [math.exp((profile.first + k + i) * profile.h) for i in (-1, 0, 1, 2)]
    if not down:
        return max(0.0, math.log(x[1] + (v[k] - delta) / (v[k] - v[k + 1]) * (x[2] - x[1])) * (1 + 8 * UNIT) + 4 * UNIT)
    left = (profile.above[k - 1] - v[k]) / (x[1] - x[0])
    right = (v[k + 1] - profile.above[k + 2]) / (x[3] - x[2])
    best = x[1] + (v[k] - delta) / left if left > 0 else x[2]
    if right > 0:
        best = max(best, x[2] - (delta - v[k + 1]) / right)
    return max(0.0, math.log(min(max(best, x[1]), x[2])) * (1 - 8 * UNIT) - 4 * UNIT)


def fixed_ranges(flat: Flat) -> tuple[float, int] | None:
    """(epsilon, times) where the event is one fixed bounded range, not too often; its closed form is quadratic."""
    if len(flat.leaves) != 1 or flat.mu_squared or flat.rho:
        return None
    ((event, n),) = flat.leaves
    fixed = isinstance(event, ev.BoundedRange) and not event.adaptive and n <= _MOST_FIXED
    return (float(event.epsilon), n) if fixed and isinstance(event, ev.BoundedRange) else None


def open_ranges(flat: Flat) -> tuple[Flat, Flat] | None:
    """For fixed ranges beside other mechanisms: a member from below (randomised response of half the width),
    adaptive ranges from above.
    """
    if all(e.adaptive for e, _ in flat.ranges):
        return None
    low: Counter[ev.Event] = Counter()
    high: Counter[ev.Event] = Counter()
    for e, n in flat.leaves:
        low[ev.PureDP(e.epsilon / 2) if isinstance(e, ev.BoundedRange) else e] += n
        high[ev.BoundedRange(e.epsilon) if isinstance(e, ev.BoundedRange) else e] += n
    return Flat(flat.mu_squared, flat.rho, tuple(low.items())), Flat(flat.mu_squared, flat.rho, tuple(high.items()))


def fixed_epsilon(epsilon: float, times: int, delta: Fraction) -> tuple[float, float]:
    def above(e: float) -> float:
        return sum(ranges.fixed_delta(epsilon, times, e))

    def below(e: float) -> float:
        value, error = ranges.fixed_delta(epsilon, times, e)
        return value - error

    top = epsilon * times * (1 + 4 * UNIT)
    low = crossing(below, float_up(delta), top, up=False)
    return low * (1 - 4 * UNIT), crossing(above, float_down(delta), top, up=True) * (1 + 4 * UNIT)
