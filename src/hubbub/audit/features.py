"""Numbers about an output that may tell on its data: its values, and what they have in common.

Columns of the matrix of `outputs` that vary are values. Of several values: their sum, extremes and where they are,
sum of squares, middle, how many are positive or missing, the first that is positive, how many equal the one before,
differences of two, and sums of runs of neighbours. Where the bits of floats are looked at, the exponent of the lowest
set bit, which says on which grid a float lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.outputs import HEAD

__all__ = [
    "Cells", "Column", "Feature", "Features", "Seen", "apart", "cells_of", "column_of", "features_of", "fineness",
    "lowest_bit", "row_codes",
]  # fmt: skip

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_MOST_VALUES = 64
_GLANCE = 60_000
_CELLS_AT_A_GLANCE = 1 << 21
_OFTEN = 5
_CELLS = 256
_ALL_PAIRS, _MOST_DIFFERENCES, _RUNS = 5, 10, 3
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
    """Cells at `count` quantiles of the values, finer toward both ends; values that repeat often are edges."""
    known = np.sort(values[np.isfinite(values)])
    if known.size == 0:
        return Cells(np.array([-np.inf, np.inf]))
    steps = max(1.0, 4 * np.log2(known.size / (4.0 * count)))
    tails = 4.0 / known.size * 2.0 ** (np.arange(steps) / 4)
    shares = np.concatenate([[0.0, 1.0], np.linspace(0, 1, count), tails, 1 - tails])
    places = np.clip((shares * (known.size - 1)).astype(np.int64), 0, known.size - 1)
    return Cells(np.unique(np.concatenate([[-np.inf, np.inf], known[places], _repeated(known, count)])))


def _repeated(known: Floats, count: int) -> Floats:
    """The values that come most often, of those that come five times."""
    starts = np.flatnonzero(np.concatenate([[True], known[1:] != known[:-1]]))
    often = np.diff(np.append(starts, known.size))
    some = np.flatnonzero(often >= _OFTEN)
    return known[starts[some[np.argsort(-often[some], kind="stable")[:count]]]]


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
class Feature:
    """A number about an output. `of` computes it for many; `value`: it is a value of the output itself."""

    name: str
    values: Callable[[Seen], Floats]
    value: bool = False


@dataclass(frozen=True, eq=False)
class Column:
    """A feature, cut into cells."""

    feature: Feature
    cells: Cells

    @property
    def name(self) -> str:
        """That of the feature."""
        return self.feature.name

    def codes(self, seen: Seen) -> Codes:
        """The cell of each output, computed once."""
        return seen.once(self, lambda these: self.cells(these.column(self.feature)))

    def ranks(self, codes: Codes) -> Floats:
        """The middle rank in (0, 1) of each cell among outputs with these cells; NaN for the cell of NaN."""
        counts = np.bincount(codes, minlength=self.cells.count)[:-1].astype(np.float64)
        middle = (np.cumsum(counts) - counts / 2 + 0.5) / (counts.sum() + 1)
        return np.append(middle, np.nan)

    def coarse(self, codes: Codes, count: int) -> tuple[Cells, Codes]:
        """Fewer cells, at about `count` quantiles and the tails of outputs with these cells, and the one each is in."""
        shares = self.ranks(codes)[1:-1:2]
        tails = 2.0 ** -np.arange(np.log2(count), 18, 0.5)
        wanted = np.concatenate([[0, 1], np.linspace(0, 1, count), tails, 1 - tails])
        places = np.unique(np.searchsorted(shares, wanted).clip(0, shares.size - 1))
        cells = Cells(self.cells.edges[np.union1d(places, [0, shares.size - 1])])
        merged = np.empty(self.cells.count, dtype=np.int64)
        merged[1:-1:2] = cells(self.cells.edges)
        merged[:-2:2] = 2 * np.searchsorted(cells.edges, self.cells.edges)
        merged[-2:] = cells.count - 2, cells.count - 1
        return cells, merged


def column_of(feature: Feature, p: Seen, q: Seen) -> Column:
    """A feature cut at quantiles of both sides, and where one side ends."""
    a, b = p.column(feature), q.column(feature)
    ends = [end for side in (a, b) for end in _ends_of(side)]
    edges = cells_of(np.concatenate([a, b]), _CELLS).edges
    return Column(feature, Cells(np.unique(np.concatenate([edges, ends]))))


def _ends_of(values: Floats) -> list[float]:
    known = values[np.isfinite(values)]
    return [float(known.min()), float(known.max())] if known.size else []


@dataclass(frozen=True)
class Features:
    """What is looked at, the most telling first, and how surely each tells; the values' columns in their order."""

    all: tuple[Feature, ...]
    values: tuple[int, ...]
    told: tuple[float, ...]
    bits: bool = False


@dataclass
class Seen:
    """Outputs and, once they are asked for, numbers about them: each is computed once."""

    rows: Floats
    values: tuple[int, ...]
    _known: dict[int, tuple[object, NDArray[Any]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def once(self, key: object, compute: Callable[[Seen], NDArray[Any]]) -> NDArray[Any]:
        """`compute` of these outputs, remembered under `key`, which is kept alive with it."""
        if id(key) not in self._known:
            self._known[id(key)] = key, compute(self)
        return self._known[id(key)][1]

    def column(self, feature: Feature) -> Floats:
        """One feature."""
        return self.once(feature, feature.values)

    @property
    def block(self) -> Floats:
        """The values, shape (n, values), with 0 for NaN and huge values cut."""
        block: Floats = self.once(_BLOCK, _filled)
        return block


_BLOCK = object()


def _filled(seen: Seen) -> Floats:
    return np.clip(np.nan_to_num(seen.rows[:, seen.values], nan=0.0, posinf=1e150, neginf=-1e150), -1e150, 1e150)


def _missing(fill: float) -> Callable[[Seen], Floats]:
    def values(seen: Seen) -> Floats:
        given = seen.rows[:, seen.values]
        return np.where(np.isnan(given), fill, given)

    return values


def _two_largest(seen: Seen) -> Floats:
    top = np.partition(_missing(-np.inf)(seen), -2, axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(top[:, -1] - top[:, -2])


def _first_positive(seen: Seen) -> Floats:
    positive = seen.block > 0
    first = np.where(positive.any(axis=1), positive.argmax(axis=1), positive.shape[1])
    return np.asarray(first, dtype=np.float64)


_JOINT: tuple[tuple[str, Callable[[Seen], Any]], ...] = (
    ("sum", lambda s: s.block.sum(axis=1)),
    ("largest", lambda s: _missing(-np.inf)(s).max(axis=1)),
    ("smallest", lambda s: _missing(np.inf)(s).min(axis=1)),
    ("place of the largest", lambda s: _missing(-np.inf)(s).argmax(axis=1)),
    ("place of the smallest", lambda s: _missing(np.inf)(s).argmin(axis=1)),
    ("sum of squares", lambda s: np.einsum("ij,ij->i", s.block, s.block)),
    ("middle", lambda s: np.partition(s.block, s.block.shape[1] // 2, axis=1)[:, s.block.shape[1] // 2]),
    ("positive ones", lambda s: (s.block > 0).sum(axis=1)),
    ("missing ones", lambda s: np.isnan(s.rows[:, s.values]).sum(axis=1)),
    ("first positive one", _first_positive),
    ("spread of the two largest", _two_largest),
    ("those that equal the one before", lambda s: (s.block[:, 1:] == s.block[:, :-1]).sum(axis=1)),
)


def _floats(compute: Callable[[Seen], Any]) -> Callable[[Seen], Floats]:
    return lambda seen: np.asarray(compute(seen), dtype=np.float64)


def _plain(j: int) -> Feature:
    name = ("raised", "what was raised", "kind", "length")[j] if j < HEAD else f"value {j - HEAD}"
    return Feature(name, lambda seen: np.ascontiguousarray(seen.rows[:, j]), value=j >= HEAD)


def _difference(i: int, j: int) -> Feature:
    def values(seen: Seen) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.asarray(seen.rows[:, i] - seen.rows[:, j])

    return Feature(f"value {i - HEAD} less value {j - HEAD}", values)


def _run(values: tuple[int, ...], first: int, end: int) -> Feature:
    name = f"sum of values {values[first] - HEAD} to {values[end - 1] - HEAD}"
    return Feature(name, lambda seen: seen.block[:, first:end].sum(axis=1))


def features_of(p: Floats, q: Floats, *, bits: bool = False) -> Features:
    """The features of outputs seen on D (p) and on D' (q): columns that vary and what is made of them.

    The most telling ones first, because time may end before the last of them is tried. bits: how fine floats are.
    """
    varying = [j for j in range(p.shape[1]) if _varies(p[:, j], q[:, j])]
    inner = [j for j in varying if j >= HEAD]
    if len(inner) > _MOST_VALUES:
        inner = sorted(inner, key=lambda j: -apart(p[:2000, j], q[:2000, j]))[:_MOST_VALUES]
    values = tuple(sorted(inner)) or (HEAD,)
    size = max(2000, min(_GLANCE, _CELLS_AT_A_GLANCE // (len(values) + 30)))
    few = Seen(p[:size], values), Seen(q[:size], values)
    scored = [(_told(f, few), f) for f in (_plain(j) for j in [*(j for j in varying if j < HEAD), *values])]
    if len(values) > 1:
        scored += [(_told(f, few), f) for f in (Feature(name, _floats(joint)) for name, joint in _JOINT)]
        scored += sorted(((_told(f, few), f) for f in _differences(values)), key=_by_telling)[:_MOST_DIFFERENCES]
    if len(values) > 2:
        scored += [(_told(f, few), f) for f in _runs(values, few)]
    if bits:
        finest = [Feature(f"lowest bit of value {j - HEAD}", _bit(j)) for j in values[:4]]
        scored += [(_told(f, few), f) for f in finest]
    scored.sort(key=_by_telling)
    return Features(tuple(f for _, f in scored), values, tuple(told for told, _ in scored), bits)


def _by_telling(scored: tuple[float, Feature]) -> float:
    return -scored[0]


def _bit(j: int) -> Callable[[Seen], Floats]:
    return lambda seen: lowest_bit(seen.rows[:, j])


def _told(feature: Feature, few: tuple[Seen, Seen]) -> float:
    return apart(feature.values(few[0]), feature.values(few[1]))


def _differences(values: tuple[int, ...]) -> list[Feature]:
    """Of all pairs of a few values; of neighbours among many."""
    if len(values) <= _ALL_PAIRS:
        return [_difference(j, i) for n, i in enumerate(values) for j in values[n + 1 :]]
    return [_difference(j, i) for i, j in pairwise(values)]


def _runs(values: tuple[int, ...], few: tuple[Seen, Seen]) -> list[Feature]:
    """Runs of neighbours whose means move most together, by standard deviations of their sum."""
    p, q = (np.tanh((s.block - few[0].block.mean(axis=0)) / (few[0].block.std(axis=0) + 1e-300)) for s in few)
    moved = np.concatenate([[0.0], np.cumsum(p.mean(axis=0) - q.mean(axis=0))])
    count = len(values)
    some = [
        (abs(moved[end] - moved[first]) / np.sqrt(end - first), first, end)
        for first in range(count - 1)
        for end in range(first + 2, count + 1)
        if end - first < count
    ]
    best: list[tuple[int, int]] = []
    for _, first, end in sorted(some, reverse=True):
        if all(end <= a or first >= b for a, b in best):
            best.append((first, end))
        if len(best) == _RUNS:
            break
    return [_run(values, first, end) for first, end in best]


def _varies(a: Floats, b: Floats) -> bool:
    first = a[0]
    if np.isnan(first):
        return not bool(np.isnan(a).all() and np.isnan(b).all())
    # -0.0 equals 0.0, and may tell all the same.
    return not bool((a == first).all() and (b == first).all() and _one_sign(a, b))


def _one_sign(a: Floats, b: Floats) -> bool:
    return bool((np.signbit(a) == np.signbit(a[0])).all() and (np.signbit(b) == np.signbit(a[0])).all())


def apart(a: Floats, b: Floats) -> float:
    """How surely the distributions of one column differ: chi-square in standard deviations above its mean."""
    cells = cells_of(np.concatenate([a, b]), 30)
    x, y = (np.bincount(cells(c), minlength=cells.count).astype(np.float64) for c in (a, b))
    some = x + y > 0
    r = np.sqrt(len(b) / len(a))
    distance = ((r * x - y / r) ** 2)[some] / (x + y)[some]
    free = max(int(some.sum()) - 1, 1)
    return float((distance.sum() - free) / np.sqrt(2 * free))
