"""Families of counting queries with known structure, and their sensitivities in closed form.

One ordered attribute with m values (rows 0 .. m-1):

| family | queries | add/remove l1 | replace l1 |
|---|---|---|---|
| points (histogram) | w = y | 1 | 2 |
| thresholds (prefixes, CDF) | w <= y | m | m - 1 |
| ranges | a <= w <= b, m(m+1)/2 of them | floor((m+1)^2/4) | the same for m > 1 |

Several attributes (rows of shape (n, d)):

| family | queries | add/remove l1 | replace l1 |
|---|---|---|---|
| attribute means | w_j = 1 for d bits | d | d |
| conjunctions of t literals | C(d,t) 2^t of them | C(d,t) | 2 C(d,t) |
| t-way marginals | all cells of all t-way tables | C(d,t) | 2 C(d,t), over attributes with more than one value |

All entries are 0 or 1, so l0 = l2^2 = l1 and linf = 1. A row of the universe lies in exactly one cell of each table.
Replacing row w by w' changes d(m+1-d) ranges for d = |w - w'|, largest at d = floor((m+1)/2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given
from hubbub.queries.sensitivity import Neighbours, Sensitivity, checked
from hubbub.queries.workload import Integers, Workload, indices

__all__ = ["AttributeMeans", "Conjunctions", "Marginals", "Points", "Ranges", "Thresholds"]


class _Ordered(Workload):
    """A family on one ordered attribute of `values` values."""

    def __init__(self, values: int) -> None:
        self.values = _whole(values, "values")
        self.universe = self.values
        self.size = self._count(self.values)

    def _count(self, m: int) -> int:
        return m

    @property
    def domain(self) -> Hashable | None:
        return "values", self.values

    def evaluate(self, rows: Any) -> Integers:
        return np.asarray(self.answers(np.bincount(indices(rows, self.values), minlength=self.values)))

    def column(self, x: int) -> Integers:
        histogram = np.zeros(self.values, np.int64)
        histogram[x] = 1
        return np.asarray(self.answers(histogram))


class Points(_Ordered):
    """The histogram: one query per value.

    >>> Points(3).evaluate(np.array([0, 2, 2]))
    array([1, 0, 2])
    """

    def answers(self, histogram: Any) -> NDArray[Any]:
        return np.asarray(histogram)

    def adjoint(self, weights: Any) -> NDArray[Any]:
        return np.asarray(weights)

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        return _ones(1 if checked(neighbours) == "add_remove" else 2 * (self.values > 1))


class Thresholds(_Ordered):
    """How many rows are at most y, for every y: the distribution function, all prefixes.

    >>> Thresholds(3).evaluate(np.array([0, 2, 2])), Thresholds(3).sensitivity("replace").l1
    (array([1, 1, 3]), Fraction(2, 1))
    """

    def answers(self, histogram: Any) -> NDArray[Any]:
        return np.asarray(np.cumsum(histogram))

    def adjoint(self, weights: Any) -> NDArray[Any]:
        return np.asarray(np.cumsum(np.asarray(weights)[::-1])[::-1])

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        return _ones(self.values if checked(neighbours) == "add_remove" else self.values - 1)


class Ranges(_Ordered):
    """How many rows lie in first .. last, for all first <= last, in that order."""

    def _count(self, m: int) -> int:
        return m * (m + 1) // 2

    def bounds(self) -> tuple[Integers, Integers]:
        """First and last value of every range, two arrays of shape (k,)."""
        first, last = np.triu_indices(self.values)
        return first.astype(np.int64), last.astype(np.int64)

    def answers(self, histogram: Any) -> NDArray[Any]:
        before = np.concatenate(([0], np.cumsum(histogram)))
        first, last = self.bounds()
        return np.asarray(before[last + 1] - before[first])

    def adjoint(self, weights: Any) -> NDArray[Any]:
        first, last = self.bounds()
        steps = np.zeros(self.values + 1, dtype=np.asarray(weights).dtype)
        np.add.at(steps, first, weights)
        np.subtract.at(steps, last + 1, weights)
        return np.asarray(np.cumsum(steps)[:-1])

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        m = self.values
        middle = (m + 1) // 2
        moved = middle * (m + 1 - middle)
        return _ones(moved if checked(neighbours) == "add_remove" or m > 1 else 0)


@dataclass(frozen=True)
class _Table:
    """The queries of one set of attributes: `at` the first of them, over cells of `shape`."""

    attributes: tuple[int, ...]
    shape: tuple[int, ...]
    at: int

    @property
    def cells(self) -> int:
        return math.prod(self.shape)


class Marginals(Workload):
    """All t-way contingency tables of attributes with the given numbers of values; rows have shape (n, d).

    t = 1 .. d. Cells of a table are in row-major order, tables in the order of their attributes.

    >>> Marginals([2, 3], t=1).evaluate(np.array([[0, 2], [1, 2]]))
    array([1, 1, 0, 0, 2])
    """

    def __init__(self, shape: Sequence[int], *, t: int) -> None:
        self.shape = tuple(_whole(m, "a number of values") for m in shape)
        d = len(self.shape)
        if not 0 <= t <= d:
            raise ParameterError(f"t = {t} was asked of {d} attributes; give 0 <= t <= {d}.")
        self.t, self.universe = t, math.prod(self.shape)
        self.size = sum(math.prod(self.shape[j] for j in s) for s in itertools.combinations(range(d), t))

    @property
    def domain(self) -> Hashable | None:
        return "attributes", self.shape

    def tables(self) -> Iterator[_Table]:
        """One by one, so that a million queries never stand in memory."""
        at = 0
        for attributes in itertools.combinations(range(len(self.shape)), self.t):
            table = _Table(attributes, tuple(self.shape[j] for j in attributes), at)
            yield table
            at += table.cells

    def evaluate(self, rows: Any) -> Integers:
        array = self._rows(rows)
        out: Integers = np.empty(self.size, np.int64)
        for table in self.tables():
            out[table.at : table.at + table.cells] = np.bincount(_cell(table, array), minlength=table.cells)
        return out

    def column(self, x: int) -> Integers:
        return self.evaluate(np.array([np.unravel_index(x, self.shape)], dtype=np.int64).reshape(1, -1))

    def answers(self, histogram: Any) -> NDArray[Any]:
        cube = np.asarray(histogram).reshape(self.shape)
        parts = []
        for table in self.tables():
            others = tuple(j for j in range(len(self.shape)) if j not in table.attributes)
            parts.append(cube.sum(axis=others).ravel())
        return np.concatenate(parts)

    def adjoint(self, weights: Any) -> NDArray[Any]:
        given = np.asarray(weights)
        total = np.zeros(self.shape, dtype=given.dtype)
        for table in self.tables():
            wide = [self.shape[j] if j in table.attributes else 1 for j in range(len(self.shape))]
            total += given[table.at : table.at + table.cells].reshape(wide)
        return total.ravel()

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        d, single = len(self.shape), sum(m == 1 for m in self.shape)
        tables = math.comb(d, self.t)
        if checked(neighbours) == "add_remove":
            return _ones(tables)
        # Tables over attributes with one value each never change when a row is replaced.
        return _ones(2 * (tables - math.comb(single, self.t)))

    def _rows(self, rows: Any) -> Integers:
        array = np.asarray(rows)
        if array.size == 0:
            return np.zeros((0, len(self.shape)), np.int64)
        fits = array.ndim == 2 and array.shape[1] == len(self.shape) and array.dtype.kind in "iub"
        if not fits or bool((array < 0).any()) or bool((array >= np.array(self.shape)).any()):
            raise ParameterError(f"rows are integers of shape (n, {len(self.shape)}), below {self.shape} each.")
        return array.astype(np.int64)


class Conjunctions(Marginals):
    """All conjunctions of t literals on d bits: w_2 and not w_4, ...; the same queries as the t-way tables of bits.

    >>> Conjunctions(5, t=2).size, Conjunctions(5, t=2).sensitivity("replace").l1
    (40, Fraction(20, 1))
    """

    def __init__(self, d: int, *, t: int) -> None:
        super().__init__([2] * _whole(d, "d"), t=t)


class AttributeMeans(Workload):
    """How many rows have each of d bits; rows have shape (n, d).

    >>> means = AttributeMeans(9).sensitivity("replace").of_shares(100)
    >>> means.l1, means.l2
    (Fraction(9, 100), 0.03)
    """

    def __init__(self, d: int) -> None:
        self.size, self.universe = _whole(d, "d"), 2 ** _whole(d, "d")

    @property
    def domain(self) -> Hashable | None:
        return "attributes", (2,) * self.size

    def evaluate(self, rows: Any) -> Integers:
        array = np.asarray(rows)
        if array.size == 0:
            return np.zeros(self.size, np.int64)
        if array.ndim != 2 or array.shape[1] != self.size or not bool(np.isin(array, (0, 1)).all()):
            raise ParameterError(f"rows are zeros and ones of shape (n, {self.size}).")
        return np.asarray(array.sum(axis=0, dtype=np.int64))

    def column(self, x: int) -> Integers:
        return np.array([(x >> (self.size - 1 - j)) & 1 for j in range(self.size)], dtype=np.int64)

    def sensitivity(self, neighbours: Neighbours) -> Sensitivity:
        checked(neighbours)
        return _ones(self.size)


def _cell(table: _Table, rows: Integers) -> Integers:
    if not table.attributes:
        return np.zeros(len(rows), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(rows[:, j] for j in table.attributes), table.shape), dtype=np.int64)


def _ones(moved: int) -> Sensitivity:
    """Of a workload of zeros and ones in which `moved` answers change by one."""
    return Sensitivity(moved, Fraction(moved), Fraction(moved), Fraction(int(moved > 0)))


def _whole(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(f"{name} = {what_was_given(value)} was given; give a whole number of at least 1.")
    return int(value)
