"""Corners of two columns: events {x <= a or x >= a, and y <= b or y >= b} for every pair of the most telling columns.

Both columns are cut at quantiles, finer toward both ends. The outputs are counted in the cells of the plane, and cells
summed from each of the four corners give the counts of all quadrants at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.features import Cells, Column, Feature, Seen

__all__ = ["Corner", "corners"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Promise = Callable[[Floats, Floats], Floats]

_CUTS = 40
_OF_EACH, _APART = 2, 8


@dataclass(frozen=True)
class Side:
    """One column on one side of a value, the value included."""

    feature: Feature
    low: bool
    cut: float

    def __call__(self, seen: Seen) -> NDArray[np.bool_]:
        values = seen.column(self.feature)
        return np.asarray(values <= self.cut if self.low else values >= self.cut)

    def __str__(self) -> str:
        return f"{self.feature.name} {'<=' if self.low else '>='} {self.cut:g}"


@dataclass(frozen=True)
class Corner:
    """The outputs that lie on one side of a value in each of two columns. forward: they are likelier on D."""

    sides: tuple[Side, Side]
    forward: bool
    promise: float

    def __call__(self, seen: Seen) -> NDArray[np.bool_]:
        """Which outputs lie in it."""
        return self.sides[0](seen) & self.sides[1](seen)

    def __str__(self) -> str:
        return f"{self.sides[0]} and {self.sides[1]}"


def corners(p: Seen, q: Seen, columns: tuple[Column, ...], promise: Promise) -> Iterator[Corner]:
    """The best corners of all pairs of columns. promise: counts on the likelier and on the other side -> its worth."""
    cut = [_cut(column, p, q) for column in columns]
    for pair in combinations(range(len(columns)), 2):
        one, two = cut[pair[0]], cut[pair[1]]
        counts = tuple(_table(one[1][side], two[1][side], one[0].count, two[0].count) for side in (0, 1))
        for lows in ((a, b) for a in (True, False) for b in (True, False)):
            sums = [_from_corner(c, lows) for c in counts]
            for forward in (True, False):
                worth = promise(*(sums if forward else sums[::-1]))
                ends = columns[pair[0]].feature, columns[pair[1]].feature
                yield from _best(worth, ends, (one[0], two[0]), lows, forward)


def _cut(column: Column, p: Seen, q: Seen) -> tuple[Cells, tuple[Codes, Codes]]:
    cells, merged = column.coarse(np.concatenate([column.codes(p), column.codes(q)]), _CUTS)
    return cells, (merged[column.codes(p)], merged[column.codes(q)])


def _table(one: Codes, two: Codes, height: int, width: int) -> Floats:
    """Counts by cell of both columns, without NaN."""
    flat = np.bincount(one * width + two, minlength=height * width)
    return np.asarray(flat.reshape(height, width)[:-1, :-1], dtype=np.float64)


def _from_corner(counts: Floats, lows: tuple[bool, bool]) -> Floats:
    """Cumulated counts at the edges: of the cells up to each, or from each on."""
    for axis, low in enumerate(lows):
        moved = np.flip(np.flip(counts, axis).cumsum(axis=axis), axis) if not low else counts.cumsum(axis=axis)
        counts = np.take(moved, np.arange(1, counts.shape[axis], 2), axis=axis)
    return counts


def _best(
    worth: Floats, pair: tuple[Feature, Feature], cells: tuple[Cells, Cells], lows: tuple[bool, bool], forward: bool
) -> Iterator[Corner]:
    left = worth.copy()
    for _ in range(_OF_EACH):
        i, j = np.unravel_index(int(left.argmax()), left.shape)
        if not np.isfinite(left[i, j]):
            return
        ends = tuple(Side(f, low, float(c.edges[k])) for f, low, c, k in zip(pair, lows, cells, (i, j), strict=True))
        yield Corner((ends[0], ends[1]), forward, float(left[i, j]))
        left[max(0, i - _APART) : i + _APART + 1, max(0, j - _APART) : j + _APART + 1] = -np.inf
