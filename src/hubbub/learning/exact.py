"""Rows as codes, and the whole numbers that a model asks of them: scores, residuals, sums. No float is ever added up.

**Why integers.** A row of a private table may move its own summand only. A score computed by a product of matrices of
floats depends on where the row stands and on how many rows there are: the order in which floats are added changes their
last bits, and with them the residual of rows that other people own. Here every step is exact:

- Weights are whole numbers, multiples of 2^-16, of at most 2^32, so that the score, a sum of at most 2^12 features of
  at most 2^8 times such weights, is a whole number below 2^52, in multiples of 2^-24. Integer sums have no order.
- The residual of a row is read from one public table of integers (`sigmoid`, `softmax`: steps of 2^-10,
  interpolated in integers; the ends beyond +-16) at its score. The tables are computed in integers too, so that no
  platform has others.
- Rows are added up in blocks of 2^16, always: within one a sum is at most 2^28 2^16 = 2^44, which a float64 holds
  exactly in any order; sums of blocks are added as 64-bit integers. That there is more than one block is never looked
  at.

So a row's residual is a function of public weights and of that row alone, whatever other rows there are, in whatever
order, and with however many threads.

**Bounds.** A residual of the logistic loss lies within +-2^20. Of the softmax, with p_k = floor(2^20 e_k / sum e), the
residual is p_k for the other classes and -(the sum of these) for the row's own: its squared length is at most
2 (sum of the others)^2 <= 2 2^40. The gradient of a row is residual x features, whose squared length is the product of
the two: at most 2^40 `Design.norm2`, or twice that; times W^2 with whole weights of rows of at most W. Of x x^T only
the upper triangle is released, which moves less than the whole matrix (`triangle_squared`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Final, TypeVar

import numpy as np

from hubbub.learning.features import ONE, Design, Integers, Scoring

T = TypeVar("T")
K = TypeVar("K")

__all__ = [
    "GRAIN",
    "HEAVIEST",
    "SCALE",
    "WEIGHT_ONE",
    "Coded",
    "Sums",
    "kept",
    "on_grid",
    "sigmoid",
    "sigmoid_steps",
    "softmax",
    "triangle_squared",
]

SCALE: Final = 1 << 20
"""The residual 1 on its grid."""
WEIGHT_ONE: Final = 1 << 16
"""The weight 1 on the public grid of weights."""
HEAVIEST: Final = 1 << 8
"""The largest weight of a row on its grid."""
_LARGEST: Final = 1 << 32
_STEP: Final = 14
GRAIN: Final = 1 << _STEP
"""2^-10 of a score, in multiples of 2^-24."""
_END: Final = 16 * ONE * WEIGHT_ONE
_BLOCK: Final = 1 << 16
_MOST_CELLS: Final = 1 << 13
_PRECISION: Final = 80


@cache
def _powers() -> tuple[int, ...]:
    """2^80 exp(-i / 1024), i from 0 to 2^14 + 1, rounded down in integers; right to a part in 2^60."""
    one = 1 << _PRECISION
    step, term = 0, one
    for k in range(1, 20):  # the series of exp(-1/1024)
        step, term = step + term, -term // (1024 * k)
    powers, value = [], one
    for _ in range((1 << 14) + 2):
        powers.append(value)
        value = value * step >> _PRECISION
    return tuple(powers)


@cache
def exponential() -> Integers:
    """floor(2^30 exp(-i / 1024)), i from 0 to 2^14 + 1."""
    return np.array([v >> (_PRECISION - 30) for v in _powers()], np.int64)


@cache
def _sigmoids() -> Integers:
    """floor(2^20 / (1 + exp(-x))), x from -16 in steps of 2^-10 to 16, and one more."""
    one = 1 << _PRECISION
    upper = [SCALE * one // (one + v) for v in _powers()]
    lower = [SCALE * v // (one + v) for v in _powers()[1 : (1 << 14) + 1]]
    return np.array([*lower[::-1], *upper], np.int64)


def _read(table: Integers, at: Integers) -> Integers:
    """A table of steps of 2^-10, between them on a line, in integers. at: from its start, in multiples of 2^-24."""
    place = at >> _STEP
    low: Integers = table[place]
    low += (table[place + 1] - low) * (at & (GRAIN - 1)) >> _STEP
    return low


def sigmoid(scores: Integers) -> Integers:
    """2^20 / (1 + exp(-score)) in integers, from 0 to 2^20. scores: in multiples of 2^-24.

    >>> sigmoid(np.array([0, 1 << 60, -1 << 60])).tolist()
    [524288, 1048575, 0]
    """
    return _read(_sigmoids(), np.clip(scores, -_END, _END) + _END)


def sigmoid_steps() -> tuple[Integers, Integers, int, int]:
    """The table that `sigmoid` reads, as where each step begins and what it adds; the score at which it ends, and the
    width of a step, both in multiples of 2^-24."""
    table = _sigmoids()
    return table[:-1], np.diff(table), _END, GRAIN


def softmax(scores: Integers) -> Integers:
    """floor(2^20 exp(s_k) / sum exp(s)) of each column of (K, n) scores; at most 2^20 in all.

    >>> softmax(np.zeros((3, 1), np.int64)).ravel().tolist()
    [349525, 349525, 349525]
    """
    below = np.minimum(scores.max(axis=0) - scores, _END)
    parts = _read(exponential(), below)
    shares: Integers = parts * SCALE // parts.sum(axis=0)
    return shares


def on_grid(weights: Iterable[float]) -> Integers:
    """Weights as whole numbers on the public grid, none beyond 2^32.

    >>> on_grid([0.5, 1e30]).tolist()
    [32768, 4294967296]
    """
    multiples = np.asarray(list(weights), np.float64) * WEIGHT_ONE
    return np.rint(np.clip(np.nan_to_num(multiples), -_LARGEST, _LARGEST)).astype(np.int64)


def triangle_squared(design: Design) -> int:
    """How far a row of weight 1 moves the upper triangle of the sum of x x^T, in squared l2, at most: rounded up.

    Two features of 1 move three sums by 1, not four: their product stands in the triangle once. In all, the sum over
    i <= j of (x_i x_j)^2 is ((sum x_i^2)^2 + sum x_i^4) / 2, as the square of the first sum has every product of two
    different features twice, and those of a feature with itself once. The features of a row are one row of each
    column's table beside the intercept (of declared values, one feature of many), so neither sum exceeds that of the
    columns' largest: `Design.norm2` and its like of fourth powers. So at least a half of `Design.norm2` squared, and at
    most all of it. Dwork, Talwar, Thakurta, Zhang 2014, "Analyze Gauss", put noise on the upper triangle alike, and
    bound it by the whole matrix.

    Of two rows the triangles have the inner product ((x . y)^2 + sum x_i^2 y_i^2) / 2, never below 0: a row that takes
    another's place moves the sum by twice this in squared l2 at most, not by four times (`Problem.moved`, acute).

    >>> from hubbub.learning.features import Categories
    >>> triangle_squared(Design({"sex": Categories(("f", "m"))})) == 3 * ONE**4
    True
    """
    fourth = ONE**4 + sum(int((c.features**4).sum(axis=1).max()) for c in design.columns.values())
    return -(-(design.norm2**2 + fourth) // 2)


@dataclass(frozen=True)
class Sums:
    """Exact sums over rows: of the numbers themselves, and for each column of those in the rows of each code."""

    total: int = field(repr=False)
    of_code: tuple[Integers, ...] = field(repr=False)

    def __reduce__(self) -> str:
        raise TypeError("exact sums over people cannot be pickled")


@dataclass(frozen=True, eq=False)
class Coded:
    """The rows of a private table as codes; nothing of them can be printed or pickled.

    design: what the codes are of. codes: an array for each column, with an entry for each row. label: a whole number
    for each row. weights: from 0 to `HEAVIEST` for each row, or None for 1. threads: how many blocks are worked on at
    once.
    """

    design: Design
    codes: Sequence[Integers] = field(repr=False)
    label: Integers = field(repr=False)
    weights: Integers | None = field(default=None, repr=False)
    threads: int = 2

    def __repr__(self) -> str:
        return "Coded(not shown)"

    def __reduce__(self) -> str:
        raise TypeError("the rows of people cannot be pickled")

    @cached_property
    def _groups(self) -> list[tuple[int, ...]]:
        """Columns that are looked up together: as long as all combinations of their codes are few."""
        sizes = [c.size for c in self.design.columns.values()]
        groups: list[list[int]] = []
        for place in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
            room = (g for g in groups if sizes[place] * int(np.prod([sizes[i] for i in g])) <= _MOST_CELLS)
            group = next(room, None)
            if group is None:
                groups.append([place])
            else:
                group.append(place)
        return [tuple(g) for g in groups]

    def _shape(self, group: tuple[int, ...]) -> tuple[int, ...]:
        columns = list(self.design.columns.values())
        return tuple(columns[i].size for i in group)

    @cached_property
    def _flat(self) -> list[Integers]:
        """For each group of columns, one code of all of them for each row."""
        codes = []
        for group in self._groups:
            flat: Integers = np.zeros(len(self.label), np.int64)
            for place, size in zip(group, self._shape(group), strict=True):
                flat *= size
                flat += self.codes[place]
            codes.append(flat)
        return codes

    def _tables(self, lookups: Sequence[Integers]) -> list[Integers]:
        """What each combination of codes of a group adds to a score. lookups: what each code of each column adds."""
        tables = []
        for group in self._groups:
            table: Integers = np.zeros((), np.int64)
            for place in group:
                table = np.add.outer(table, lookups[place])
            tables.append(table.ravel())
        return tables

    def blocks(self) -> list[slice]:
        """Blocks of 2^16 rows: at least one, if only an empty one."""
        return [slice(a, a + _BLOCK) for a in range(0, max(1, len(self.label)), _BLOCK)]

    def _of_outputs(self, scoring: Scoring) -> list[list[Integers]]:
        return [self._tables([t[output] for t in scoring.tables]) for output in range(len(scoring.starts))]

    def _score(self, tables: Sequence[Sequence[Integers]], first: Sequence[int], at: slice) -> Integers:
        scores = np.empty((len(tables), len(self.label[at])), np.int64)
        for row, (of_groups, start) in enumerate(zip(tables, first, strict=True)):
            scores[row] = start
            for flat, table in zip(self._flat, of_groups, strict=True):
                scores[row] += table[flat[at]]
        return scores

    def scores(self, weights: Integers) -> Integers:
        """The score of each row under each of (K, width) whole weights, in multiples of 2^-24: (K, n)."""
        return self.scored(self.design.scoring(weights))

    def scored(self, scoring: Scoring) -> Integers:
        """The scores of each row: (outputs, n)."""
        tables = self._of_outputs(scoring)
        return np.hstack([self._score(tables, scoring.starts, at) for at in self.blocks()])

    def by_score(self, scoring: Scoring, step: int, ends: int) -> list[int]:
        """How many rows there are of each label, 0 or 1, and each number of edges below the score.

        The edges are the multiples of `step`, from -ends to ends of them. Rows count once, whatever they weigh.
        """
        edges, size = step * np.arange(-ends, ends + 1), 2 * ends + 2
        place = self.label * size + np.searchsorted(edges, self.scored(scoring)[0], "left")
        return [int(count) for count in np.bincount(place, minlength=2 * size)]

    def by_best(self, scoring: Scoring) -> list[int]:
        """How many rows there are of each label and each best output, the first of those that are equal."""
        outputs = len(scoring.starts)
        place = self.label * outputs + self.scored(scoring).argmax(axis=0)
        return [int(count) for count in np.bincount(place, minlength=outputs**2)]

    def errors(self, scoring: Scoring, half: int) -> list[int]:
        """The sums over rows of 4 half^2, 4 half y, 4 y^2 and e^2. y: the label less half.

        e: the score, in steps of 2^-10 and within +-half, less y.
        """
        y = self.label - half
        e = np.clip(self.scored(scoring)[0] >> _STEP, -half, half) - y
        return [4 * half**2 * len(y), 4 * half * int(y.sum()), 4 * int((y * y).sum()), int((e * e).sum())]

    def sums(self, weights: Integers, residual: Callable[[Integers, Integers], Integers]) -> list[list[int]]:
        """The sum over rows of residual x features, for each of the residuals that a row has: a list of `width`
        integers.

        weights: (K, width) whole numbers. residual: of (K, m) scores and m labels, (J, m) whole numbers within +-2^20.
        """
        scoring = self.design.scoring(weights)
        tables = self._of_outputs(scoring)

        def one(at: slice) -> tuple[Integers, list[list[Integers]]]:
            residuals = residual(self._score(tables, scoring.starts, at), self.label[at])
            if self.weights is not None:
                residuals = residuals * self.weights[at]
            return residuals.sum(axis=1), [
                [self._by_code(g, at, r) for g in range(len(self._groups))] for r in residuals
            ]

        parts = self._over_blocks(one)
        rows = len(parts[0][0])
        return [self._gathered(int(sum(p[0][j] for p in parts)), [p[1][j] for p in parts]) for j in range(rows)]

    def _of_groups(self, values: Integers, at: slice) -> list[Integers]:
        return self._of_groups_at(values[at], at)

    def _of_groups_at(self, values: Integers, at: slice) -> list[Integers]:
        return [self._by_code(group, at, values) for group in range(len(self._groups))]

    def _by_code(self, group: int, at: slice, values: Integers) -> Integers:
        """The sum of the values over the rows of each combination of codes: exact, as below 2^53."""
        size = int(np.prod(self._shape(self._groups[group])))
        return np.bincount(self._flat[group][at], weights=values, minlength=size).astype(np.int64)

    def summed(self, values: Integers, codes: Integers, size: int) -> Integers:
        """The sum of the values, within +-2^28, over the rows of each code: exact, as below 2^53 in each block."""
        total: Integers = np.zeros(size, np.int64)
        for at in self.blocks():
            total += np.bincount(codes[at], weights=values[at], minlength=size).astype(np.int64)
        return total

    def _gathered(self, total: int, parts: Sequence[Sequence[Integers]]) -> list[int]:
        return self.design.gathered(total, self._columns([np.sum(p, axis=0) for p in zip(*parts, strict=True)]))

    def _columns(self, of_groups: Sequence[Integers]) -> list[Integers]:
        """Sums by combinations of codes as sums by the code of each column."""
        by_column: list[Integers] = [np.zeros(0, np.int64)] * len(self.design.columns)
        for group, values in zip(self._groups, of_groups, strict=True):
            shaped = values.reshape(self._shape(group))
            for axis, place in enumerate(group):
                by_column[place] = shaped.sum(axis=tuple(a for a in range(len(group)) if a != axis))
        return by_column

    def mass(self) -> int:
        """The number of rows, or the sum of their weights."""
        return len(self.label) if self.weights is None else int(self.weights.sum())

    def by_class(self, classes: int) -> list[Sums]:
        """`histograms` by label."""
        return self.histograms(self.label, classes)

    def target_sum(self, middle: int) -> int:
        """The sum over rows of (label - middle)."""
        return int(((self.label - middle) * (1 if self.weights is None else self.weights)).sum())

    def beside_target(self, design: Design) -> Coded:
        """The same rows with half of the target's step as one more column. design: with that column."""
        return Coded(design, [*self.codes, (self.label + 1) // 2], self.label, self.weights, threads=self.threads)

    def logistic_sums(self, weights: Integers) -> list[int]:
        """`sums` of the residual p - y of two classes."""
        return self.sums(weights[None], lambda scores, label: sigmoid(scores) - label * SCALE)[0]

    def histograms(self, place: Integers, groups: int) -> list[Sums]:
        """How many rows (or how much of their weights) of each code there are, for each value of `place` from 0.

        place: a whole number below `groups` for each row.
        """
        mass = np.ones(len(place), np.int64) if self.weights is None else self.weights
        histograms = []
        for value in range(groups):
            held = np.where(place == value, mass, 0)
            parts = self._over_blocks(partial(self._of_groups, held))
            columns = self._columns([np.sum(p, axis=0) for p in zip(*parts, strict=True)])
            histograms.append(Sums(int(held.sum()), tuple(columns)))
        return histograms

    def second_moment(self) -> Integers:
        """The sum over rows of x x^T (times the row's weight), x the row's features: (width, width).

        From the counts of every two columns' codes. All products and sums are whole numbers below 2^53 (a count of rows
        times 2^8, and times 2^16), which floats hold exactly, in whatever order they are added.
        """
        ends = [(0, np.full((1, 1), float(ONE)), np.zeros(len(self.label), np.int64))]
        for start, column, codes in zip(self.design.starts, self.design.columns.values(), self.codes, strict=True):
            ends.append((start, column.features.astype(np.float64), codes))

        def one(pair: tuple[int, int]) -> Integers:
            (_, left, a), (_, right, b) = ends[pair[0]], ends[pair[1]]
            flat = a * len(right) + b
            counts = np.bincount(flat, weights=self.weights, minlength=len(left) * len(right))
            block = left.T @ counts.reshape(len(left), len(right)) @ right
            whole: Integers = np.rint(block).astype(np.int64)
            return whole

        pairs = [(i, j) for i in range(len(ends)) for j in range(i, len(ends))]
        moment: Integers = np.zeros((self.design.width, self.design.width), np.int64)
        for (i, j), block in zip(pairs, self._each(one, pairs), strict=True):
            at = np.ix_(ends[i][0] + np.arange(len(block)), ends[j][0] + np.arange(len(block.T)))
            moment[at] = block
            moment.T[at] = block
        return moment

    def _over_blocks(self, one: Callable[[slice], T]) -> list[T]:
        """What `one` makes of each block, in order."""
        return self._each(one, self.blocks())

    def _each(self, one: Callable[[K], T], things: Sequence[K]) -> list[T]:
        """What `one` makes of each thing, in order; with several threads."""
        _ = self._flat
        if self.threads == 1:
            return [one(thing) for thing in things]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(one, things))


def kept(keys: Sequence[Integers], units: Integers | None, rows_per_unit: int) -> Integers:
    """The places of at most `rows_per_unit` rows of each unit: a choice that depends on that unit's rows alone.

    The first by a hash of the row's codes, ties by the codes themselves, which leaves equal rows. keys: all that is
    used of a row, as whole numbers. units: a number for each row, -1 for none, whose rows are dropped; None: each row
    is its own unit.
    """
    if units is None:
        return np.arange(len(keys[0]))
    places = np.flatnonzero(units >= 0)
    columns = [k[places] for k in keys]
    order = np.lexsort((*columns[::-1], _hashed(columns), units[places]))
    owners = units[places][order]
    new = np.r_[True, owners[1:] != owners[:-1]] if len(order) else np.zeros(0, bool)
    starts = np.flatnonzero(new)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return np.sort(places[order[rank < rows_per_unit]])


def _hashed(columns: Sequence[Integers]) -> Integers:
    """A 64-bit mix of each row's codes (the finaliser of SplitMix64)."""
    mixed = np.full(len(columns[0]), 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(31)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(29)
    return mixed.astype(np.int64)
