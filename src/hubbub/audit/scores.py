"""Scores that order outputs from the likeliest on D' to the likeliest on D, learnt from samples that are not counted.

By the Neyman-Pearson lemma the best event of a size is {ln P(y)/P'(y) >= t}. A *scorer* is a finite partition of
outputs with its cells in the order of an estimated log-likelihood ratio: the events are the first cells of that order
(for D' over D) and the last ones (for D over D'). Several are learnt, because none sees every flaw:

    column      one number of the output, or of its features, cut at quantiles; values that repeat are cells. The cells
                are ordered by their ratios, and by the values themselves: a tail has few outputs, and one direction
    sum         naive Bayes: ratios of the columns that tell, added
    atoms       rows that repeat, exactly as they are: finite outputs, and grids that move with the data
    fineness    exponent and lowest set bit of a float: the grid on which its noise lives (Mironov 2012)
    within      one column, where another is in its tail
    smooth      logistic regression on ranks and their products (`smooth`): corners and tails that few outputs reach
    tree        one deep tree: "all No, and then a value below t"
    boosted     gradient-boosted trees: all that is joint
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.audit import trees
from hubbub.audit.clock import Deadline
from hubbub.audit.features import Column, Features, Seen, apart, cells_of, column_of, fineness, row_codes
from hubbub.audit.outputs import HEAD
from hubbub.audit.smooth import Smooth, corrected, smooth

__all__ = ["Learnt", "Scorer", "joint_scorers", "learnt", "scorers"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_CELLS = 512
_MOST_ATOMS, _FEW_CELLS, _OFTEN = 1 << 18, 40, 5
_COLUMNS, _CROSSED, _ADDED, _IN_TREES, _IN_CORNERS = 24, 4, 24, 24, 6
_SURELY, _ALIKE = 3.0, 0.98
_PARTS = (0.1, 0.02)
_TAILS, _LEAST_IN_TAIL, _IN_TAIL = (0.03, 0.01, 0.005, 0.002, 0.001), 200, 2


@dataclass(frozen=True, eq=False)
class Scorer:
    """A partition of outputs: `codes` gives the cell of each row; each of `orders` lists cells, those of D last.

    stiff: so few numbers were learnt that the outputs they were learnt from may judge it as well.
    """

    name: str
    codes: Callable[[Seen], Codes]
    orders: tuple[Codes, ...]
    stiff: bool = False


@dataclass(frozen=True)
class Learnt:
    """What the samples to learn from gave: outputs, features, and the columns looked at, the most telling first."""

    p: Seen
    q: Seen
    features: Features
    columns: tuple[Column, ...]

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns that are values and tell: at least two, if there are two."""
        known = dict(zip(self.features.all, self.features.told, strict=True))
        values = [c for c in self.columns if c.feature.value]
        return tuple(c for i, c in enumerate(values) if i < 2 or known[c.feature] > _SURELY)

    def distinct(self, count: int) -> tuple[Column, ...]:
        """The most telling columns that do not say nearly the same, two values first."""
        chosen: list[Column] = []
        ranks: list[Floats] = []
        first = [c for c in self.columns if c.feature.value][:2]
        for column in [*first, *(c for c in self.columns if c not in first)]:
            values = np.nan_to_num(self.p.column(column.feature)[:2000], nan=-1e300)
            rank = np.argsort(np.argsort(values, kind="stable")).astype(np.float64)
            rank -= rank.mean()
            rank /= np.sqrt((rank * rank).sum()) + 1e-300
            if all(abs(float(rank @ other)) < _ALIKE for other in ranks):
                chosen.append(column)
                ranks.append(rank)
            if len(chosen) == count:
                break
        return tuple(chosen)


def learnt(features: Features, p: Seen, q: Seen) -> Learnt:
    """The columns of the most telling features, and of all values that may tell together."""
    known = [f for i, f in enumerate(features.all) if i < _COLUMNS or (f.value and features.told[i] > _SURELY)]
    values = [f for f in features.all if f.value]
    return Learnt(p, q, features, tuple(column_of(f, p, q) for f in dict.fromkeys([*known, *values[:2]])))


def scorers(known: Learnt, deadline: Deadline) -> Iterator[Scorer]:
    """Scorers that need no fitting, the cheap ones first; at least one, whatever the deadline."""
    p, q = known.p, known.q
    for column in known.columns[:_COLUMNS]:
        order, _ = _by_ratio(column.codes(p), column.codes(q), column.cells.count)
        # As they are: the last cell, of NaN, goes to either end.
        inner = np.arange(column.cells.count - 1)
        nan = [column.cells.count - 1]
        yield Scorer(column.name, column.codes, (order,), stiff=_few_cells(column.codes(p), column.codes(q)))
        orders = np.concatenate([nan, inner]), np.concatenate([inner[::-1], nan])
        yield Scorer(f"{column.name}, cut", column.codes, orders, stiff=True)
        if deadline.passed:
            return
    yield from _atoms("atoms", lambda seen: row_codes(seen.rows), p, q)
    for j in known.features.values[:4] if known.features.bits else ():
        yield from _atoms(f"fineness of value {j - HEAD}", _fineness(j), p, q)
    if len(known.values) > 1:
        yield _summed(known.values, p, q)
    if len(known.columns) > 1 and not deadline.passed:
        yield from _within(known)


def joint_scorers(known: Learnt, deadline: Deadline) -> Iterator[Scorer]:
    """Scorers that take longer to learn: smooth ones and trees."""
    yield from _smoothed(known, deadline)
    if len(known.columns) > 1 and not deadline.passed:
        yield from _trees(known, deadline)


def _fineness(j: int) -> Callable[[Seen], NDArray[np.uint64]]:
    return lambda seen: fineness(seen.rows[:, j])


def _by_ratio(a: Codes, b: Codes, count: int) -> tuple[Codes, Floats]:
    """Cells in the order of their log-likelihood ratio, smoothed by half an output each, and the ratios."""
    p, q = (np.bincount(codes, minlength=count).astype(np.float64) for codes in (a, b))
    ratio = np.log((p + 0.5) / (len(a) + 1)) - np.log((q + 0.5) / (len(b) + 1))
    # Rare cells may look extreme by chance: they are ordered by a cautious ratio.
    cautious = np.sign(ratio) * np.maximum(0.0, np.abs(ratio) - np.sqrt(1 / (p + 0.5) + 1 / (q + 0.5)) / 2)
    return np.argsort(cautious + 1e-9 * ratio, kind="stable"), ratio


def _few_cells(a: Codes, b: Codes) -> bool:
    count = int(max(a.max(), b.max())) + 1
    held = np.bincount(a, minlength=count) + np.bincount(b, minlength=count)
    return int(np.count_nonzero(held)) <= _FEW_CELLS


def _atoms(name: str, code: Callable[[Seen], NDArray[np.uint64]], p: Seen, q: Seen) -> Iterator[Scorer]:
    """Values that repeat, as cells of their own; all others are one cell. Nothing where hardly any repeats."""
    values, counts = np.unique(np.concatenate([code(p), code(q)]), return_counts=True)
    common = counts > 1
    known = values[common]
    # A value that comes often tells, however rare repeats are.
    if not 1 <= known.size <= _MOST_ATOMS or (
        counts[common].sum() < 0.01 * (len(p) + len(q)) and counts.max() < _OFTEN
    ):
        return

    def codes(seen: Seen) -> Codes:
        code_of_seen = code(seen)
        place = np.minimum(np.searchsorted(known, code_of_seen), known.size - 1)
        return np.where(known[place] == code_of_seen, place, known.size)

    order, _ = _by_ratio(codes(p), codes(q), known.size + 1)
    yield Scorer(name, codes, (order,), stiff=known.size <= _FEW_CELLS)


def _scored(name: str, score: Callable[[Seen], Floats], p: Seen, q: Seen, *, stiff: bool = False) -> Scorer:
    """A real score, cut into cells at its quantiles; its own order is kept."""
    cells = cells_of(np.concatenate([score(p), score(q)]), _CELLS)
    return Scorer(name, lambda seen: cells(score(seen)), (np.arange(cells.count),), stiff)


def _summed(columns: tuple[Column, ...], p: Seen, q: Seen) -> Scorer:
    ratios = [_by_ratio(c.codes(p), c.codes(q), c.cells.count)[1] for c in columns]

    def add(seen: Seen) -> Floats:
        return np.asarray(sum(ratio[c.codes(seen)] for c, ratio in zip(columns, ratios, strict=True)))

    return _scored("sum of log-ratios", add, p, q)


def _within(known: Learnt) -> Iterator[Scorer]:
    """For each tail of the most telling columns, those other columns that tell most there."""
    chosen = known.distinct(_IN_CORNERS)
    sides = known.p, known.q
    for column in chosen:
        ranks = column.ranks(np.concatenate([column.codes(s) for s in sides]))
        for share in _TAILS:
            for high in (False, True):
                known_ranks = np.nan_to_num(ranks, nan=0.5)
                tail = known_ranks > 1 - share if high else known_ranks < share
                inside = [tail[column.codes(s)] for s in sides]
                if min(int(i.sum()) for i in inside) < _LEAST_IN_TAIL:
                    continue
                told = [(_told(c, sides, inside), k) for k, c in enumerate(chosen) if c is not column]
                for told_there, k in sorted(told, reverse=True)[:_IN_TAIL]:
                    if told_there > _SURELY:
                        yield from _inside(f"{column.name} {'high' if high else 'low'}", column, tail, chosen[k], sides)


def _told(column: Column, sides: tuple[Seen, Seen], inside: list[NDArray[np.bool_]]) -> float:
    a, b = (s.column(column.feature)[i] for s, i in zip(sides, inside, strict=True))
    return apart(a, b)


def _inside(
    where: str, column: Column, tail: NDArray[np.bool_], other: Column, sides: tuple[Seen, Seen]
) -> Iterator[Scorer]:
    """The cells of `other` where `column` is in its tail; all other outputs are one cell more."""
    count = other.cells.count

    def codes(seen: Seen) -> Codes:
        return np.where(tail[column.codes(seen)], other.codes(seen), count)

    order, _ = _by_ratio(codes(sides[0]), codes(sides[1]), count + 1)
    inner = np.arange(count)
    yield Scorer(f"{where}, then {other.name}", codes, (order,))
    # Cut from either end, for either side; what lies outside the tail comes last.
    ways = (
        [np.append(count, way) for way in (inner, inner[::-1])],
        [np.append(way, count) for way in (inner, inner[::-1])],
    )
    yield Scorer(f"{where}, then {other.name}, cut", codes, (*ways[0], *ways[1]), stiff=True)


def _smoothed(known: Learnt, deadline: Deadline) -> Iterator[Scorer]:
    p, q = known.p, known.q
    few, many = known.distinct(_CROSSED), known.values[:_ADDED]
    sets = [("smooth sum", many, 0)] if len(many) > 2 else []
    sets.append(("smooth", few, len(few)))
    smooth_odds = []
    for name, chosen, crossed in sets:
        if deadline.passed:
            return
        smooth_odds.append((name, smooth(p, q, chosen, crossed=crossed)))
        yield _scored(name, _score(smooth_odds[-1][1]), p, q, stiff=True)
    for name, score in smooth_odds:
        for share in _PARTS:
            for up in (True, False):
                inner = None if deadline.passed else corrected(score, p, q, share=share, up=up)
                if inner is not None:
                    yield _scored(f"{name}, {'highest' if up else 'lowest'} {share:.0%}", _score(inner), p, q)


def _score(score: Smooth) -> Callable[[Seen], Floats]:
    return lambda seen: seen.once(score, score)


def _trees(known: Learnt, deadline: Deadline) -> Iterator[Scorer]:
    p, q = known.p, known.q
    cuts = [
        (c, c.coarse(np.concatenate([c.codes(p), c.codes(q)]), 30)[1].astype(np.uint8))
        for c in known.columns[:_IN_TREES]
    ]

    def codes(seen: Seen) -> NDArray[np.uint8]:
        return np.stack([merged[c.codes(seen)] for c, merged in cuts], axis=1)

    def cut(seen: Seen) -> NDArray[np.uint8]:
        return seen.once(cuts, codes)

    a, b = cut(p), cut(q)
    tree = trees.deep(a, b, depth=8)
    order, _ = _by_ratio(tree(a), tree(b), tree.leaves)
    yield Scorer("tree", lambda seen: tree(cut(seen)), (order,))
    if not deadline.passed:
        boosted = trees.boosted(a, b, deadline=deadline)
        yield _scored("boosted trees", lambda seen: boosted(cut(seen)), p, q)
