"""Estimates to about ten digits where losses have atoms: few outcomes, native lattices, extrapolated lattices.

Where every jump of a loss density, and every atom, lies on the lattice hZ, the lattice's delta at a lattice point
is the true one plus c_1 h^2 + c_2 h^4 + ...; from h, h/2 and h/4 two terms go (Richardson). Between lattice points
ln delta is a polynomial, within one cell of the atoms' own lattice, where delta has no kink. Not certified: what
two and three lattices say is compared, and None returned where they disagree.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hubbub.accounting.certify import Goal, Plan, invert
from hubbub.accounting.convolution import Convolved
from hubbub.accounting.decompose import Flat
from hubbub.accounting.outcomes import crossing
from hubbub.errors import ParameterError

__all__ = ["delta_near", "epsilon_near"]

_NODES = 7


def epsilon_near(flat: Flat, delta: Fraction) -> float | None:
    """The epsilon at delta, or None where the methods of this file do not apply."""
    plan, d = Plan(flat, Goal(delta=delta)), float(delta)
    if (few := plan.few()) is not None:
        return max(crossing(o.middle, d, plan.top(), up=True) for o in few)
    by_lattice = [_epsilon(tops, d, plan.native) for tops in _lattices(plan)]
    return max((e for e in by_lattice if e is not None), default=None) if None not in by_lattice else None


def delta_near(flat: Flat, epsilon: Fraction) -> float | None:
    """The delta at epsilon, or None where the methods of this file do not apply."""
    plan, e = Plan(flat, Goal(epsilon=epsilon)), float(epsilon)
    if (few := plan.few()) is not None:
        return min(1.0, max(o.middle(e) for o in few))
    by_lattice = [_delta(tops, e, plan.native) for tops in _lattices(plan)]
    if not by_lattice or None in by_lattice:
        return None
    return min(1.0, max(x for x in by_lattice if x is not None))


def _lattices(plan: Plan) -> list[list[Convolved]]:
    """Per direction the composition on one native lattice, or on three, each half as wide as the one before."""
    if plan.flat.rho or plan.flat.ranges:
        return []
    h = plan.first_step()
    if plan.times <= 10 and not plan.exact(h):
        h = plan.next_step(h, 200.0)
    steps: list[Fraction | float] = [h] if plan.exact(h) else [h, h / 2, h / 4]
    try:
        every = [plan.composed(step, only_above=True) for step in steps]
    except ParameterError:
        return []
    return [[level[i][1] for level in every] for i in range(len(plan.directions))]


def _epsilon(tops: list[Convolved], delta: float, native: Fraction | None) -> float | None:
    # The certified inversion keeps its head far left of the tilted bulk, where `middle` is magnified round-off.
    sure = rough = invert(tops[-1].above, tops[-1], delta, up=True)
    if rough == 0.0 or not math.isfinite(rough):
        return rough
    if len(tops) == 1:
        for _ in range(4):
            middle, tilt = tops[0].middle(rough)
            if not (middle > 0 and tilt < 0):
                return None
            rough += math.log(middle / delta) / -tilt
        return rough if 0.9 * sure <= rough <= sure else None
    line = _line(tops, rough, native)
    if line is None:
        return None
    at, value, slope = line
    goal = math.log(delta)
    x = rough
    for _ in range(20):
        # Newton on the polynomial; rough is within h^2 of the answer.
        x -= (float(value(x)) - goal) / float(slope(x))
    return x if at[0] <= x <= at[1] and 0.9 * sure <= x <= sure * (1 + 1e-9) else None


def _delta(tops: list[Convolved], epsilon: float, native: Fraction | None) -> float | None:
    if len(tops) == 1:
        return tops[0].middle(epsilon)[0]
    line = _line(tops, epsilon, native)
    return None if line is None else math.exp(float(line[1](epsilon)))


def _line(
    tops: list[Convolved], near: float, native: Fraction | None
) -> tuple[tuple[float, float], np.polynomial.Polynomial, np.polynomial.Polynomial] | None:
    """ln delta as a polynomial around `near`, where it holds, and its derivative."""
    h = tops[0].h
    first = math.floor(near / h) - _NODES // 2
    if native is not None:
        # Atoms lie at native multiples: stay between two of them.
        per = round(float(native) / h)
        cell = math.floor(near / float(native) * (1 + 1e-12)) * per
        if per < _NODES - 1:
            first = max(0, math.floor(near / h)) if per == 1 else cell
        else:
            first = min(max(first, cell), cell + per - _NODES + 1)
    first = max(first, 0)
    count = _NODES if native is None else min(_NODES, round(float(native) / h) + 1)
    if count < 5:
        return None
    nodes = [(first + i) * h for i in range(count)]
    with np.errstate(divide="ignore", invalid="ignore"):
        v0, v1, v2 = (np.log([top.middle(e)[0] for e in nodes]) for top in tops)
    if not np.all(np.isfinite([v0, v1, v2])):
        return None
    two, three = (4 * v2 - v1) / 3, (64 * v2 - 20 * v1 + v0) / 45
    if np.max(np.abs(three - two)) > 3e-7:
        return None
    value = np.polynomial.Polynomial.fit(nodes, three, count - 1)
    # The same without the outer nodes: where ln delta bends too much for a polynomial, they differ.
    less = np.polynomial.Polynomial.fit(nodes[1:-1], three[1:-1], count - 3)
    if abs(float(value(near)) - float(less(near))) > 1e-5:
        return None
    return (nodes[0] - h, nodes[-1] + h), value, value.deriv()
