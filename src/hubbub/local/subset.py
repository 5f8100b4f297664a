"""Subset selection: report a set of w of the k categories (Ye, Barg 2018; Wang et al. 2016, "Mutual information").

The true category is in the set with probability p, the rest of the set is a uniform subset of the others. So a set has
probability p / C(k-1, w-1) if it holds the truth and (1-p) / C(k-1, w) if not, in the ratio p (k-w) / ((1-p) w), which
is e^epsilon for p = w e^epsilon / (w e^epsilon + k - w); here 1 - p is rounded up. Another category is in the set with
probability q = (p (w-1) + (1-p) w) / (k-1). The best w is next to k / (e^epsilon + 1). For w = 1 this is k-ary
response. No locally private way to report one of k categories has a smaller worst-case error, up to lower-order terms
(Ye, Barg 2018, Theorem IV.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.local.bitmaps import bitmap_type, byte_rows, column_sums, contains
from hubbub.local.draws import Array, Flags, Integers, coins, lie_chance, uniform
from hubbub.local.oracle import Categories, FrequencyOracle, chunks, epsilon_above_zero, named_categories, whole
from hubbub.local.randomizer import CategoryRandomizer
from hubbub.noise import Bits

__all__ = ["SubsetSelection"]

_CELLS = 1 << 21


def _rates(size: int, width: int, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """p and q for subsets of `width`."""
    out = lie_chance(Fraction(size - width, width), epsilon)
    return 1 - out, ((1 - out) * (width - 1) + out * width) / (size - 1)


def _best_width(size: int, epsilon: Fraction) -> int:
    near = int(size / (math.exp(min(float(epsilon), 700.0)) + 1))
    candidates = [w for w in (near, near + 1) if 1 <= w < size] or [1]

    def factor(width: int) -> Fraction:
        p, q = _rates(size, width, epsilon)
        return q * (1 - q) / (p - q) ** 2

    return min(candidates, key=factor)


def random_subsets(n: int, among: int, width: int, bits: Bits | None) -> Flags:
    """n uniform subsets of `width` of 0 .. among-1, as flags of shape (n, among): Floyd's algorithm, column-wise.

    For j = among-width .. among-1 draw t below j+1 and insert it, or j if t is in already (Bentley, Floyd 1987).
    """
    taken = np.zeros(n * among, np.bool_)
    start = np.arange(n, dtype=np.int64) * among
    for j in range(among - width, among):
        t = start + uniform(j + 1, n, bits)
        place = np.where(taken[t], start + j, t)
        taken[place] = True
    return taken.reshape(n, among)


@dataclass(frozen=True)
class SubsetRandomizer(CategoryRandomizer):
    """A packed set of `width` categories."""

    width: int

    @property
    def p(self) -> Fraction:
        return _rates(self.size, self.width, self.epsilon)[0]

    @property
    def q(self) -> Fraction:
        return _rates(self.size, self.width, self.epsilon)[1]

    @property
    def report_type(self) -> np.dtype[Any]:
        return bitmap_type(self.size)

    @property
    def parameters(self) -> dict[str, object]:
        return {"truth_left_out": str(1 - self.p)}

    def chance(self, report: Any, data: int) -> Fraction:
        if int(np.bitwise_count(np.asarray(report)).sum()) != self.width:
            return Fraction(0)
        if contains(report, data):
            return self.p / math.comb(self.size - 1, self.width - 1)
        return (1 - self.p) / math.comb(self.size - 1, self.width)

    def _client(self, places: Array, bits: Bits | None) -> Array:
        out = np.empty((len(places), -(-self.size // 8)), np.uint8)
        for part in chunks(len(places), max(1, _CELLS // self.size)):
            out[part] = np.packbits(self._sets(places[part].astype(np.int64), bits), axis=1)
        return out

    def _sets(self, truth: Integers, bits: Bits | None) -> Flags:
        """Flags of shape (n, k): the others are numbered from the truth on, so that they are 0 .. k-2."""
        left_out = coins(1 - self.p, truth.size, bits)
        sets = np.zeros((truth.size, self.size), np.bool_)
        sets[~left_out, 0] = True
        for group, width in ((~left_out, self.width - 1), (left_out, self.width)):
            rows = np.flatnonzero(group)
            sets[rows, 1:] = random_subsets(rows.size, self.size - 1, width, bits)
        columns = np.arange(self.size) - truth[:, None]
        columns[columns < 0] += self.size
        return np.take_along_axis(sets, columns, axis=1)

    def _valid(self, reports: Any) -> tuple[Array, int]:
        rows, lost = byte_rows(reports, self.size)
        right = np.bitwise_count(rows).sum(axis=1, dtype=np.int64) == self.width
        return (rows, lost) if bool(right.all()) else (rows[right], lost + int(np.count_nonzero(~right)))

    def _supporters(self, reports: Array) -> Integers:
        return column_sums(reports, self.size)


class SubsetSelection(FrequencyOracle):
    """Subset selection; `width` is w, the best one unless given. A report is a packed set of w categories.

    >>> oracle = SubsetSelection(1, 16)
    >>> oracle.randomizer.width, round(oracle.variance_factor, 2)
    (4, 3.11)
    """

    name: ClassVar[str] = "subset"

    randomizer: SubsetRandomizer

    def __init__(self, epsilon: Number, categories: Categories, *, width: int | None = None) -> None:
        size, labels = named_categories(categories, 1 << 16)
        exact = epsilon_above_zero(epsilon)
        best = _best_width(size, exact) if width is None else whole(width, "width", 1, size - 1)
        super().__init__(SubsetRandomizer(exact, size, best), labels)
