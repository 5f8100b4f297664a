"""Losses on a lattice hZ, from above and from below.

A pair is cut into cells [l_i, l_i + h], l_i = i h, with P-mass A_i and Q-mass B_i. Write, per cell,

    right_i = (A_i - e^(l_i) B_i) / (1 - e^(-h)),     left_i = A_i - right_i,     both in [0, A_i].

Above. Sending `left` to l_i and `right` to l_i + h keeps both masses and spreads e^(-L), of which (1 -
e^epsilon e^(-L))_+ is convex: delta never decreases ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi 2022).

Below. Merging outcomes is post-processing: delta never increases. A fraction f_(i-1) of cell i-1 and a
fraction 1 - f_i of cell i, merged, have likelihood ratio at least e^(l_i) iff

    f_(i-1) e^h left_(i-1) <= (1 - f_i) right_i,

and are then counted at exactly l_i (lowering a loss lowers delta). The fractions are chosen from the top
cell down, each as large as the inequality allows, so almost nothing is lowered: the error is of second
order in h, as above.

Both are measures of P-mass; delta is monotone in each mass, so masses are rounded up above and down below.
What lies beyond the lattice is infinite above and missing below; what lies under it is counted at its
lowest point above, and missing below. Point masses on the lattice stay where they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.pairs import FAR, UNIT, Atoms, Pair, WithoutReplacement, moved
from hubbub.errors import ParameterError

__all__ = ["Cells", "Measure", "cells", "lower", "measure_above", "measure_below", "too_wide", "upper"]

Array = NDArray[np.float64]
# 2^21 points keep every step of a composition under 300 MB.
MOST_POINTS = 1 << 21
TINY = 1e-280


@dataclass(frozen=True)
class Measure:
    """P-masses on the lattice: mass[k] at (first + k) h, and `infinite` at infinity; losses known within
    `moved`.
    """

    h: float
    first: int
    mass: Array
    infinite: float
    moved: float


@dataclass(frozen=True)
class Cells:
    """A pair cut into cells: see the head of this file. Errors are absolute; `fixed` holds the lattice's
    own atoms.
    """

    h: float
    first: int
    mass: Array
    mass_error: Array
    right: Array
    right_error: Array
    fixed: Array
    fixed_error: Array
    under: float
    beyond: float
    infinite: float


def too_wide(points: float, what: str) -> ParameterError:
    """The error for what would not fit into memory."""
    return ParameterError(
        f"{what} needs about {points:.2g} lattice points; allowed are {MOST_POINTS} (about 300 MB). "
        "Ask for a larger "
        "width, compose fewer or less spread-out losses, or take rho by `cost(event)`, which needs "
        "no lattice."
    )


def cells(pair: Pair, h: Fraction | float, log_tail: float) -> Cells:
    """The cells of a pair; P beyond the lattice is about e^log_tail.

    Raises ParameterError if more than MOST_POINTS cells would be needed.
    """
    if isinstance(pair, WithoutReplacement):
        return _mirrored(cells(pair.removal, h, log_tail))
    step, points = float(h), pair.atoms
    low, high = _range(pair, points, log_tail)
    if (high - low) / step > MOST_POINTS:
        raise too_wide((high - low) / step, "one loss distribution")
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    edges: Array = np.arange(first, last + 1, dtype=np.float64) * step
    n = last - first
    mass, error, right, right_error = (np.zeros(n) for _ in range(4))
    under = beyond = 0.0
    if pair.continuous:
        tails = pair.tails(edges)
        slack = tails.slack + moved(max(abs(low), abs(high)))
        mass, error = _between(tails.p_above, tails.p_below, slack)
        q, q_error = _between(tails.q_above, tails.q_below, slack)
        grow = np.exp(edges[:-1])
        shrink = -math.expm1(-step)
        right = np.clip((mass - grow * q) / shrink, 0.0, mass)
        right_error = (error + grow * q_error + 8 * UNIT * mass) / shrink
        under, beyond = float(tails.p_below[0]), float(tails.p_above[-1])
    beyond += points.missing
    built = Cells(
        step, first, mass, error, right, right_error, np.zeros(n + 1), np.zeros(n + 1), under, beyond, points.p_only
    )
    return _with_atoms(built, points, h)


def _range(pair: Pair, points: Atoms, log_tail: float) -> tuple[float, float]:
    ends = list(pair.span(log_tail)) if pair.continuous else []
    if points.loss.size:
        ends += [float(points.loss.min()), float(points.loss.max())]
    return max(min(ends), -FAR), min(max(ends), FAR)


def _between(above: Array, below: Array, slack: Array) -> tuple[Array, Array]:
    """Masses between neighbouring points with absolute errors, from whichever tail is the smaller."""
    high, low = above[:-1] - above[1:], below[1:] - below[:-1]
    high_error = slack[:-1] * above[:-1] + slack[1:] * above[1:]
    low_error = slack[:-1] * below[:-1] + slack[1:] * below[1:]
    use_high = high_error <= low_error
    mass = np.where(use_high, high, low)
    return np.maximum(mass, 0.0), np.where(use_high, high_error, low_error) + UNIT * np.abs(mass)


def _with_atoms(c: Cells, points: Atoms, h: Fraction | float) -> Cells:
    """Adds point masses: on the lattice exactly if the lattice divides their unit, else into their cells."""
    if not points.loss.size:
        return c
    n, under, beyond = c.mass.size, c.under, c.beyond
    if points.unit is not None and points.index is not None and isinstance(h, Fraction):
        multiple = points.unit / h
        if multiple.denominator == 1:
            where = points.index * multiple.numerator - c.first
            kept = (where >= 0) & (where <= n)
            np.add.at(c.fixed, where[kept], points.p[kept])
            np.add.at(c.fixed_error, where[kept], (points.slack * points.p)[kept])
            under += float(points.p[where < 0].sum())
            beyond += float(points.p[where > n].sum())
            return replace(c, under=under, beyond=beyond)
    where = np.floor(points.loss / c.h).astype(np.int64) - c.first
    kept = (where >= 0) & (where < n)
    k, p, loss = where[kept], points.p[kept], points.loss[kept]
    share = p * np.clip(-np.expm1((k + c.first) * c.h - loss) / -math.expm1(-c.h), 0.0, 1.0)
    error = (points.slack * points.p)[kept]
    for total, part in (
        (c.mass, p),
        (c.mass_error, error),
        (c.right, share),
        # Where in its cell an atom lies is known within `moved`, that is within moved / h of its share.
        (c.right_error, error + p * 4 * moved(FAR) / c.h),
    ):
        np.add.at(total, k, part)
    under += float(points.p[where < 0].sum())
    beyond += float(points.p[where >= n].sum())
    return replace(c, under=under, beyond=beyond)


def _mirrored(c: Cells) -> Cells:
    """Cells of the symmetric pair with this one's profile for epsilon >= 0 (sampling without replacement).

    The mirror of cell [l, l + h] holds P-mass B, of which e^(-l) left goes to its right end.
    """
    start = max(0, -c.first)
    mass, mass_error = c.mass[start:], c.mass_error[start:]
    right, right_error, fixed = c.right[start:], c.right_error[start:], c.fixed[start:].copy()
    n = mass.size
    at = np.arange(n) * c.h
    shrink = -math.expm1(-c.h)
    q = np.exp(-at) * (mass - right * shrink)
    q_error = np.exp(-at) * (mass_error + right_error * shrink) + 4 * UNIT * q
    left = np.exp(-at) * np.maximum(mass - right, 0.0)
    left_error = np.exp(-at) * (mass_error + right_error) + 4 * UNIT * left
    weight = np.exp(-np.arange(n + 1) * c.h)
    fixed_error = c.fixed_error[start:].copy()
    fixed[0] = fixed_error[0] = 0.0
    both = np.concatenate(((fixed * weight)[::-1], fixed[1:]))
    both_error = np.concatenate((((fixed_error + 8 * UNIT * fixed) * weight)[::-1], fixed_error[1:]))
    # The rest of P sits at loss 0; what lies beyond the lattice may or may not be part of it.
    both[n] = max(0.0, 1.0 - mass.sum() - q.sum() - both.sum() - c.infinite)
    both_error[n] = mass_error.sum() + q_error.sum() + both_error.sum() + 2 * c.beyond + 64 * UNIT
    flip = slice(None, None, -1)
    return Cells(
        c.h,
        -n,
        np.concatenate((q[flip], mass)),
        np.concatenate((q_error[flip], mass_error)),
        np.concatenate((left[flip], right)),
        np.concatenate((left_error[flip], right_error)),
        both,
        both_error,
        c.beyond,
        c.beyond,
        c.infinite,
    )


def upper(c: Cells) -> Measure:
    """A lattice measure whose delta is at least the pair's, at every epsilon and in every composition."""
    mass = c.mass + c.mass_error
    right = np.minimum(c.right + c.right_error, mass)
    out = c.fixed + c.fixed_error
    out[:-1] += mass - right
    out[1:] += right
    out[0] += c.under * (1 + 1e-9)
    infinite = c.infinite * (1 + 64 * UNIT) + c.beyond * (1 + 1e-9)
    return measure_above(c.h, c.first, out * (1 + 8 * UNIT), infinite, _moved(c))


def lower(c: Cells) -> Measure:
    """A lattice measure whose delta is at most the pair's, at every epsilon and in every composition."""
    mass = np.maximum(c.mass - c.mass_error, 0.0)
    right = np.maximum(c.right - c.right_error, 0.0)
    shrink = -math.expm1(-c.h)
    # Q-mass of a cell times e^(l_i), from below and from above; the second is at most the first's P-mass.
    least = np.maximum(mass - (c.right + c.right_error) * shrink - c.mass_error, 0.0)
    most = np.minimum(c.mass + c.mass_error - right * shrink, c.mass + c.mass_error)
    # Start from the end that is further from the bulk: what is lost, is lost at the far end.
    upward = int(np.argmax(mass)) * 2 < mass.size
    merge = _merge_up if upward else _merge_down
    out = np.maximum(c.fixed - c.fixed_error, 0.0)
    out += merge(mass, right * shrink, least, most, c.h)
    return measure_below(c.h, c.first, out * (1 - 8 * UNIT), c.infinite * (1 - 64 * UNIT), _moved(c))


def measure_above(h: float, first: int, mass: Array, infinite: float, moved: float) -> Measure:
    """A measure whose tiniest masses are counted as infinite, so that tilting never overflows."""
    tiny = mass < TINY
    return Measure(h, first, np.where(tiny, 0.0, mass), infinite + float(mass[tiny].sum()), moved)


def measure_below(h: float, first: int, mass: Array, infinite: float, moved: float) -> Measure:
    """A measure whose tiniest masses are left out."""
    return Measure(h, first, np.where(mass < TINY, 0.0, mass), infinite, moved)


def _moved(c: Cells) -> float:
    return moved(max(abs(c.first), abs(c.first + c.mass.size)) * c.h)


_SAFE = 1.0 - 2.0**-40


def _merge_up(masses: Array, surplus: Array, least: Array, most: Array, h: float) -> Array:
    """Bins from the bottom: what is left of cell j-1 is lifted to l_j by surplus of cells j, j+1, ... in
    turn.
    """
    mass, n = masses.tolist(), masses.size
    price: list[float] = np.maximum(math.exp(h) * most - masses, 0.0).tolist()
    gains: list[float] = (surplus * _SAFE).tolist()
    more, low, rise = surplus.tolist(), least.tolist(), [-math.expm1(-i * h) for i in range(64)]
    out, free = [0.0] * (n + 1), [1.0] * n
    for j in range(1, n + 1):
        rest = free[j - 1]
        if rest <= 0.0 or mass[j - 1] <= 0.0:
            continue
        need = rest * price[j - 1]
        if need > 0.0 and j < n and free[j] * gains[j] >= need:
            # The next cell alone lifts it, as it does almost everywhere.
            part = need / gains[j]
            out[j] = out[j] + rest * mass[j - 1] + part * mass[j]
            left = free[j] - part
            free[j] = left if left > 0.0 else 0.0
            continue
        taken, need = _lifted(j, need, free, (more, low, rise)) if need > 0.0 else ([], 0.0)
        if need > 0.0:
            # Nothing is left above to lift it with: it is lowered.
            out[j - 1] += rest * mass[j - 1]
            continue
        out[j] += rest * mass[j - 1]
        for k, part in taken:
            out[j] += part * mass[k]
            free[k] = max(0.0, free[k] - part)
    return np.asarray(out) * _SAFE


def _lifted(
    j: int, need: float, free: list[float], gains: tuple[list[float], list[float], list[float]]
) -> tuple[list[tuple[int, float]], float]:
    """Which parts of cells j, j+1, ... lift what needs that much, and what it needs still.

    gains: the cells' surplus, their Q-mass from below, and 1 - e^(-i h) for a lift over i cells.
    """
    surplus, least, rise = gains
    taken = []
    for k in range(j, min(len(free), j + 64)):
        gain = (surplus[k] + least[k] * rise[k - j]) * _SAFE
        all_of_it = free[k] * gain
        if all_of_it >= need:
            taken.append((k, need / gain))
            return taken, 0.0
        if all_of_it > 0.0:
            taken.append((k, free[k]))
            need -= all_of_it
    return taken, need


def _merge_down(masses: Array, surplus: Array, least: Array, most: Array, h: float) -> Array:
    """Bins from the top: what is left of cell j comes down to l_j and lifts cells j-1, j-2, ... in turn."""
    mass, more, heights, n = masses.tolist(), surplus.tolist(), most.tolist(), masses.size
    growth = [math.exp(i * h) for i in range(66)]
    out, free = [0.0] * (n + 1), [1.0] * n
    del least
    for j in range(n - 1, -1, -1):
        rest = free[j]
        if rest <= 0.0:
            continue
        out[j] += rest * mass[j]
        offer, k = rest * more[j] * _SAFE, j - 1
        while offer > 0.0 and k >= 0 and k >= j - 64:
            price = growth[j - k] * heights[k] - mass[k]
            if free[k] * price > offer:
                part = offer / price
                offer = 0.0
            else:
                part = free[k]
                if price > 0.0:
                    offer -= part * price
            out[j] += part * mass[k]
            left = free[k] - part
            free[k] = left if left > 0.0 else 0.0
            k -= 1
    return np.asarray(out) * _SAFE
