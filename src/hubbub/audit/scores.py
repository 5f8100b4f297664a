"""Events that tell two data sets apart, learnt from samples that are not counted later.

By the Neyman-Pearson lemma the best event of a size is {ln P(y)/P'(y) >= t}. A *scorer* is a finite partition of
outputs with its cells in the order of an estimated log-likelihood ratio: the events are the first cells of that order
(for D' over D) and the last ones (for D over D'). Several are learnt, because none sees every flaw:

    column      one number of the output, or of its features, cut at quantiles; values that repeat are cells
    sum         naive Bayes: ratios of the columns, added
    atoms       rows that repeat, exactly as they are: finite outputs, and grids that move with the data
    fineness    exponent and lowest set bit of a float: the grid on which its noise lives (Mironov 2012)
    tree        one deep tree: "all No, and then a value below t"
    boosted     gradient-boosted trees: all that is smooth and joint
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.audit import trees
from hubbub.audit.bounds import likely_bounds
from hubbub.audit.features import Cells, Features, Seen, apart, cells_of, features_of, fineness, row_codes
from hubbub.audit.outputs import HEAD

__all__ = ["Event", "best_event"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_CELLS = 256
_MOST_ATOMS = 1 << 18
# Scorers are compared on a few outputs, the best of them on all.
_FEW, _FINALISTS = 100_000, 4
# Of thousands of events the luckiest is chosen: its luck is worth some standard deviations.
_LUCK, _HOPE, _PROMISED = 1.8, 0.7, 1e3


@dataclass(frozen=True)
class Scorer:
    """A partition of outputs: `codes` gives the cell of each row; `order` lists cells, those of D last."""

    name: str
    codes: Callable[[Seen], Codes]
    order: Codes


@dataclass(frozen=True)
class Event:
    """A set of cells. `forward`: it is likelier on D; else on D'. `expected`: what it promised."""

    features: Features
    scorer: Scorer
    cells: NDArray[np.bool_]
    forward: bool
    expected: float

    def hits(self, rows: Floats) -> int:
        """How many rows are in the event."""
        return int(np.count_nonzero(self.cells[self.scorer.codes(Seen(rows, self.features))]))


def best_event(
    train: tuple[Floats, Floats],
    test: tuple[Floats, Floats],
    *,
    countable: Callable[[float], int],
    delta: float,
    deadline: float,
    bits: bool = False,
) -> tuple[Event, float]:
    """The event that promises the highest bound, and the seconds it takes for one pair of outputs.

    train, test: rows on D, rows on D': to learn from, and to choose by. countable: seconds that an event takes for a
    pair of outputs -> how many pairs there will be time to count. deadline: of `time.monotonic`. bits: look at the bits
    of floats as well.
    """
    features = features_of(*train, bits=bits)
    p, q = (Seen(rows, features) for rows in train)

    def rank(scorer: Scorer, some: list[Seen], pace: float) -> Event:
        # Standard deviations of these shares that the counting will take off.
        z = 2.0 * math.sqrt(min(1.0, min(map(len, some)) / countable(pace)))
        return _choose(features, scorer, some, z, delta)

    few = [Seen(rows[:_FEW], features) for rows in test]
    ahead = [rank(scorer, few, 0.0) for scorer in _scorers(features, p, q, deadline)]
    best: tuple[Event, float] | None = None
    for event in sorted(ahead, key=lambda event: -event.expected)[:_FINALISTS]:
        pace = _pace(event, test)
        if best is None or time.monotonic() < deadline:
            # All of the test rows where they can be had in time; a finalist that is slow is counted less often.
            size = _FEW if time.monotonic() > deadline else max(_FEW, int((deadline - time.monotonic()) / 4 / pace))
            final = rank(event.scorer, [Seen(rows[:size], features) for rows in test], pace)
            if best is None or final.expected > best[0].expected:
                best = final, pace
    assert best is not None
    return best


def _pace(event: Event, test: tuple[Floats, Floats]) -> float:
    """Seconds for one pair of outputs."""
    part, began = test[0][:10_000], time.monotonic()
    event.hits(part)
    return max(1e-9, 2 * (time.monotonic() - began) / len(part))


def _choose(features: Features, scorer: Scorer, test: list[Seen], z: float, delta: float) -> Event:
    sizes = [len(rows) for rows in test]
    counts = [np.bincount(scorer.codes(rows), minlength=scorer.order.size)[scorer.order] for rows in test]
    found = []
    for forward in (True, False):
        # The last cells are those of D; for D' the order is read from its other end.
        mine, other = (counts[0][::-1], counts[1][::-1]) if forward else (counts[1], counts[0])
        n, m = sizes if forward else sizes[::-1]
        cautious, bold = (_bounds(np.cumsum(mine), n, np.cumsum(other), m, z, delta, luck) for luck in (_LUCK, _HOPE))
        # Where nothing is promised with caution, the best hope is counted.
        bounds = np.where(cautious > 0, _PROMISED + cautious, bold)
        last = int(np.argmax(bounds))
        ordered = scorer.order[::-1] if forward else scorer.order
        cells = np.zeros(scorer.order.size, dtype=np.bool_)
        cells[ordered[: last + 1]] = True
        found.append(Event(features, scorer, cells, forward, float(bounds[last])))
    return max(found, key=lambda event: event.expected)


def _bounds(mine: Codes, n: int, other: Codes, m: int, z: float, delta: float, luck: float) -> Floats:
    """The bounds that counting will show, less `luck` standard deviations of the log-ratio seen here."""
    low, _ = likely_bounds(mine, n, z)
    _, high = likely_bounds(other, m, z)
    with np.errstate(divide="ignore", invalid="ignore"):
        lucky = luck * np.sqrt(1 / (mine + 1) + 1 / (other + 1))
        return np.where(low > delta, np.log((low - delta) / high) - lucky, -np.inf)


def _scorers(features: Features, p: Seen, q: Seen, deadline: float) -> Iterator[Scorer]:
    """Scorers, the cheap ones first; at least one, whatever the deadline."""
    ratios: list[tuple[int, Cells, Floats]] = []
    for j, name in enumerate(features.names):
        cells = cells_of(np.concatenate([p.column(j), q.column(j)]), _CELLS)
        order, ratio = _by_ratio(cells(p.column(j)), cells(q.column(j)), cells.count)
        ratios.append((j, cells, ratio))
        yield Scorer(name, _column(j, cells), order)
        if time.monotonic() > deadline:
            return
    yield from _atoms("atoms", lambda seen: row_codes(seen.rows), p, q)
    for j in features.values[:4] if features.bits else ():
        yield from _atoms(f"fineness of value {j - HEAD}", _fineness(j), p, q)
    values = [r for r in ratios if features.is_value(r[0])]
    if len(values) > 1:
        yield _summed(values, p, q)
    yield from _learnt(p, q, deadline)


def _column(j: int, cells: Cells) -> Callable[[Seen], Codes]:
    return lambda seen: cells(seen.column(j))


def _fineness(j: int) -> Callable[[Seen], NDArray[np.uint64]]:
    return lambda seen: fineness(seen.rows[:, j])


def _by_ratio(a: Codes, b: Codes, count: int) -> tuple[Codes, Floats]:
    """Cells in the order of their log-likelihood ratio, smoothed by half an output each, and the ratios."""
    p, q = (np.bincount(codes, minlength=count).astype(np.float64) for codes in (a, b))
    ratio = np.log((p + 0.5) / (len(a) + 1)) - np.log((q + 0.5) / (len(b) + 1))
    # Rare cells may look extreme by chance: they are ordered by a cautious ratio.
    cautious = np.sign(ratio) * np.maximum(0.0, np.abs(ratio) - np.sqrt(1 / (p + 0.5) + 1 / (q + 0.5)) / 2)
    return np.argsort(cautious + 1e-9 * ratio, kind="stable"), ratio


def _atoms(name: str, code: Callable[[Seen], NDArray[np.uint64]], p: Seen, q: Seen) -> Iterator[Scorer]:
    """Values that repeat, as cells of their own; all others are one cell. Nothing where few repeat."""
    values, counts = np.unique(np.concatenate([code(p), code(q)]), return_counts=True)
    common = counts > 1
    known = values[common]
    if not 1 <= known.size <= _MOST_ATOMS or counts[common].sum() < 0.01 * (len(p) + len(q)):
        return

    def codes(seen: Seen) -> Codes:
        found = code(seen)
        place = np.minimum(np.searchsorted(known, found), known.size - 1)
        return np.where(known[place] == found, place, known.size)

    order, _ = _by_ratio(codes(p), codes(q), known.size + 1)
    yield Scorer(name, codes, order)


def _scored(name: str, score: Callable[[Seen], Floats], p: Seen, q: Seen) -> Scorer:
    """A real score, cut into cells at its quantiles; its own order is kept."""
    cells = cells_of(np.concatenate([score(p), score(q)]), 2 * _CELLS)
    return Scorer(name, lambda seen: cells(score(seen)), np.arange(cells.count))


def _summed(ratios: list[tuple[int, Cells, Floats]], p: Seen, q: Seen) -> Scorer:
    def add(seen: Seen) -> Floats:
        return np.asarray(sum(ratio[cells(seen.column(j))] for j, cells, ratio in ratios))

    return _scored("sum of log-ratios", add, p, q)


def _learnt(p: Seen, q: Seen, deadline: float) -> Iterator[Scorer]:
    if p.matrix.shape[1] < 2 or time.monotonic() > deadline:
        return
    chosen = _strong(p.matrix, q.matrix)
    cuts = [(j, cells_of(np.concatenate([p.column(j), q.column(j)]), 30)) for j in chosen]

    def cut(seen: Seen) -> NDArray[np.uint8]:
        return np.stack([cells(seen.column(j)).astype(np.uint8) for j, cells in cuts], axis=1)

    a, b = cut(p), cut(q)
    tree = trees.deep(a, b, depth=8)
    order, _ = _by_ratio(tree(a), tree(b), tree.leaves)
    yield Scorer("tree", lambda seen: tree(cut(seen)), order)
    if time.monotonic() < deadline:
        boosted = trees.boosted(a, b, deadline=deadline)
        yield _scored("boosted trees", lambda seen: boosted(cut(seen)), p, q)


def _strong(f: Floats, g: Floats) -> list[int]:
    """The 40 columns that differ most."""
    gaps = [apart(f[:, j], g[:, j]) for j in range(f.shape[1])]
    return sorted(np.argsort(gaps)[::-1][:40].tolist())
