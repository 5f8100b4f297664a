"""Minimising a smooth convex function of many variables: L-BFGS (Liu, Nocedal 1989).

The direction is the two-loop recursion over the last `memory` steps; the step length meets the weak Wolfe conditions,
found by doubling and bisection (Lewis, Overton 2013). Without bounds on the variables this is several times quicker
than a bounded solver, whose bookkeeping would exceed the work of the function itself here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["minimise"]

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]

_DECREASE, _CURVATURE = 1e-4, 0.9
_TRIES = 30


def minimise(
    function: Function, start: Floats, *, iterations: int, memory: int = 40, tolerance: float = 1e-7
) -> Floats:
    """The point reached after at most `iterations` steps, or where no gradient entry exceeds `tolerance`.

    function: the value and the gradient at a point.

    >>> found = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), iterations=20)
    >>> found.round(6).tolist()
    [3.0, 3.0]
    """
    point = start.copy()
    value, gradient = function(point)
    steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
    for _ in range(iterations):
        if np.abs(gradient).max(initial=0.0) <= tolerance:
            break
        direction = _direction(gradient, steps)
        step_found = _search(function, point, value, gradient, direction, first=not steps)
        if step_found is None:
            # Rounding hides what is left to gain along this direction.
            if not steps:
                break
            steps.clear()
            continue
        fresh, value, slope = step_found
        moved, bent = fresh - point, slope - gradient
        curvature = float(moved @ bent)
        if curvature > 0:
            steps.append((moved, bent, 1 / curvature))
        point, gradient = fresh, slope
    return point


def _direction(gradient: Floats, steps: deque[tuple[Floats, Floats, float]]) -> Floats:
    out = -gradient
    weights = []
    for moved, bent, inverse in reversed(steps):
        weight = inverse * float(moved @ out)
        weights.append(weight)
        out -= weight * bent
    if steps:
        moved, bent, inverse = steps[-1]
        out *= 1 / (inverse * float(bent @ bent))
    for (moved, bent, inverse), weight in zip(steps, reversed(weights), strict=True):
        out += (weight - inverse * float(bent @ out)) * moved
    return out


def _search(
    function: Function, point: Floats, value: float, gradient: Floats, direction: Floats, *, first: bool
) -> tuple[Floats, float, Floats] | None:
    """A point along the direction that meets the weak Wolfe conditions; None where no decrease is found."""
    slope = float(gradient @ direction)
    if slope >= 0:
        return None
    low, high = 0.0, np.inf
    step = min(1.0, 1 / float(np.abs(direction).sum())) if first else 1.0
    best: tuple[Floats, float, Floats] | None = None
    for _ in range(_TRIES):
        tried = point + step * direction
        reached, bend = function(tried)
        if not reached <= value + _DECREASE * step * slope:
            high = step
        else:
            best = (tried, reached, bend)
            if float(bend @ direction) >= _CURVATURE * slope:
                return best
            low = step
        step = 2 * low if high == np.inf else (low + high) / 2
    return best
