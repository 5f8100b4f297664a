"""Coarse parts of columns: neighbouring values measured together where a budget cannot tell them apart.

A pair of columns with 85 and 99 values has 8,415 cells; noise of a few dozen on each would drown the counts. Every
column is therefore cut into parts of neighbouring values of about equal (noisy, hence public) mass; joint marginals are
measured over parts, and within a part a value is drawn from the column's own marginal, independently of the rest given
the part. A value heavier than its share of the mass is a part by itself, so that no common value is blurred.

Values that a structural constraint tells apart never share a part, so that a constraint on values is one on parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cut", "part_sizes", "projected"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def cut(mass: Floats, parts: int, classes: Integers | None = None) -> Integers:
    """The part of each value, 0 .. k - 1 in order: about `parts` parts of about equal mass.

    mass: shape (size,), non-negative. classes: values of different classes never share a part.

    >>> cut(np.array([8.0, 1, 1, 1, 5]), 3)
    array([0, 1, 1, 1, 2])
    """
    shares = mass / mass.sum() if mass.sum() > 0 else np.full(len(mass), 1 / len(mass))
    goal = 1 / max(1, parts)
    groups = np.zeros(len(mass), np.int64) if classes is None else classes
    if parts >= len(mass):
        return np.arange(len(mass), dtype=np.int64)
    if parts <= 1:
        return np.unique(groups, return_inverse=True)[1].astype(np.int64)
    out = np.zeros(len(mass), np.int64)
    labels, held = 0, dict[int, tuple[int, float]]()
    for value, (share, group) in enumerate(zip(shares, groups, strict=True)):
        label, filled = held.get(int(group), (-1, 0.0))
        heavy = share >= goal or filled + share / 2 > goal
        if label < 0 or (filled > 0 and heavy):
            label, filled = labels, 0.0
            labels += 1
        out[value] = label
        held[int(group)] = (label, filled + float(share))
    return out


def part_sizes(parts: Integers) -> int:
    """How many parts there are."""
    return int(parts.max()) + 1


def projected(counts: Floats, total: float) -> Floats:
    """The nearest non-negative counts (in l2) with the given sum: projection onto a simplex (Held et al. 1974).

    >>> projected(np.array([3.0, -1, 1]), 3.0)
    array([2.5, 0. , 0.5])
    """
    flat = counts.ravel()
    if total <= 0:
        return np.zeros_like(counts)
    ordered = np.sort(flat)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(flat) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(flat - excess[last], 0).reshape(counts.shape))
