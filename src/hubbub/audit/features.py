"""Numbers about an output that may tell on its data: its values, and what they have in common.

Columns of the matrix of `outputs` that vary are values. Of several values: their sum, extremes and where they are,
sum of squares, middle, how many are positive or missing, and the first that is positive. Where the bits of floats are
looked at, the exponent of the lowest set bit, which says on which grid a float lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.outputs import HEAD

__all__ = ["Cells", "Features", "Seen", "apart", "cells_of", "features_of", "fineness", "lowest_bit", "row_codes"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_MOST_VALUES = 64
_GLANCE = 5000
_NO_BIT = 2000.0


@dataclass(frozen=True)
class Cells:
    """A partition of the reals, NaN and the infinities included: open intervals, and each edge by itself."""

    edges: Floats

    @property
    def count(self) -> int:
        """How many cells there are."""
        return 2 * self.edges.size + 2

    def __call__(self, values: Floats) -> Codes:
        """The cell of each value: 2i + 1 at edge i, 2i below it, the last for NaN."""
        place = np.searchsorted(self.edges, values)
        at = np.minimum(place, self.edges.size - 1)
        return np.where(np.isnan(values), self.count - 1, 2 * place + (self.edges[at] == values))


def cells_of(values: Floats, count: int) -> Cells:
    """Cells at `count` quantiles of the values, finer toward both ends; a value that repeats is an edge."""
    known = np.sort(values[np.isfinite(values)])
    if known.size == 0:
        return Cells(np.array([-np.inf, np.inf]))
    tails = 10.0 / known.size * 2.0 ** np.arange(max(1.0, np.log2(known.size / (20.0 * count))))
    shares = np.concatenate([[0.0, 1.0], np.linspace(0, 1, count), tails, 1 - tails])
    places = np.clip((shares * (known.size - 1)).astype(np.int64), 0, known.size - 1)
    return Cells(np.unique(np.concatenate([[-np.inf, np.inf], known[places]])))


def lowest_bit(values: Floats) -> Floats:
    """log2 of the lowest set bit of each float: the coarsest power of two of which it is a multiple.

    >>> lowest_bit(np.array([1.0, 0.75, 12.0])).tolist()
    [0.0, -2.0, 2.0]
    """
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    bit = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.where(whole > 0, exponent - 53 + bit, _NO_BIT)


def fineness(values: Floats) -> NDArray[np.uint64]:
    """A code for (sign, exponent, lowest set bit): on which grid a float lies, and in which binade."""
    exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))[1]
    parts = lowest_bit(values) + 2500 + 5000 * (exponent + 2500.0)
    return np.asarray(np.where(values < 0, 2 * parts + 1, 2 * parts), dtype=np.uint64)


def row_codes(rows: Floats) -> NDArray[np.uint64]:
    """A 64-bit code of each row, equal for equal rows (and for NaN and NaN)."""
    words = np.where(np.isnan(rows), np.nan, rows).view(np.uint64)
    code = np.full(len(rows), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(words.shape[1]):
        code = (code ^ words[:, j]) * np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(31)
    return code


@dataclass(frozen=True)
class Features:
    """Which columns of an output are looked at, and whether they are summed up as well."""

    columns: tuple[int, ...]
    values: tuple[int, ...]
    names: tuple[str, ...]
    bits: bool = False

    def is_value(self, j: int) -> bool:
        """Whether feature j is a value of the output itself."""
        return j < len(self.columns)

    def __call__(self, rows: Floats) -> Floats:
        """All features, shape (n, len(names))."""
        parts = [rows[:, self.columns]]
        if len(self.values) > 1:
            parts.append(_joint(rows[:, self.values]))
        if self.bits:
            parts += [lowest_bit(rows[:, j])[:, None] for j in self.values[:4]]
        return np.concatenate(parts, axis=1)


class Seen:
    """Outputs and, once they are asked for, their features."""

    def __init__(self, rows: Floats, features: Features) -> None:
        self.rows, self._features = rows, features
        self._matrix: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def matrix(self) -> Floats:
        """All features, shape (n, features)."""
        if self._matrix is None:
            self._matrix = self._features(self.rows)
        return self._matrix

    def column(self, j: int) -> Floats:
        """Feature j."""
        if j < len(self._features.columns):
            return self.rows[:, self._features.columns[j]]
        return self.matrix[:, j]


_JOINT = (
    "sum", "largest", "smallest", "place of the largest", "place of the smallest", "sum of squares", "middle",
    "positive ones", "missing ones", "first positive one", "spread of the two largest",
)  # fmt: skip


def _joint(values: Floats) -> Floats:
    missing = np.isnan(values)
    with np.errstate(all="ignore"):
        filled = np.clip(np.where(missing, 0.0, values), -1e150, 1e150)
        high, low = np.where(missing, -np.inf, values), np.where(missing, np.inf, values)
        positive = filled > 0
        top = np.partition(high, -2, axis=1)
        first = np.where(positive.any(axis=1), positive.argmax(axis=1), values.shape[1])
        columns = [
            filled.sum(axis=1), high.max(axis=1), low.min(axis=1), high.argmax(axis=1), low.argmin(axis=1),
            (filled * filled).sum(axis=1), np.partition(filled, values.shape[1] // 2, axis=1)[:, values.shape[1] // 2],
            positive.sum(axis=1), missing.sum(axis=1), first, top[:, -1] - top[:, -2],
        ]  # fmt: skip
    return np.stack([np.asarray(c, dtype=np.float64) for c in columns], axis=1)


def features_of(p: Floats, q: Floats, *, bits: bool = False) -> Features:
    """The features of outputs seen on D (p) and on D' (q): columns that vary; with `bits`, how fine floats are."""
    varying = [j for j in range(p.shape[1]) if _varies(p[:, j], q[:, j])]
    values = [j for j in varying if j >= HEAD]
    # The most telling ones first, because time may end before the last of them is tried.
    few = (p[:_GLANCE], q[:_GLANCE])
    values = sorted(values, key=lambda j: -apart(few[0][:, j], few[1][:, j]))[:_MOST_VALUES]
    columns = [j for j in varying if j < HEAD] + values or [HEAD]
    names = [_name(j) for j in columns]
    names += list(_JOINT) if len(values) > 1 else []
    names += [f"lowest bit of value {j - HEAD}" for j in values[:4]] if bits else []
    return Features(tuple(columns), tuple(values), tuple(names), bits)


def _varies(a: Floats, b: Floats) -> bool:
    first = a[0]
    if np.isnan(first):
        return not bool(np.isnan(a).all() and np.isnan(b).all())
    # -0.0 equals 0.0, and may tell all the same.
    return not bool((a == first).all() and (b == first).all() and _one_sign(a, b))


def _one_sign(a: Floats, b: Floats) -> bool:
    return bool((np.signbit(a) == np.signbit(a[0])).all() and (np.signbit(b) == np.signbit(a[0])).all())


def _name(column: int) -> str:
    return ("what was raised", "kind", "length")[column] if column < HEAD else f"value {column - HEAD}"


def apart(a: Floats, b: Floats) -> float:
    """How far apart the distributions of one column are."""
    cells = cells_of(np.concatenate([a, b]), 30)
    p, q = (np.bincount(cells(c), minlength=cells.count) / len(c) for c in (a, b))
    return float(np.abs(p - q).sum())
