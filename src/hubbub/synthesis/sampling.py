"""Records from a model, with as little sampling noise as records allow.

Cliques are walked from the root of the junction tree; the columns that are new in a clique are drawn given its
separator. m records with the same separator get the cells of the conditional distribution q by *systematic rounding*:
cell i takes floor(m Q_i + u) - floor(m Q_{i-1} + u) of them, Q the cumulative shares and u one uniform number, so each
cell is within 1 of m q_i and right on average (Madow 1949). The records that take them are a random permutation.
Independent draws would add their own noise, which at 50,000 records is as large as that of a budget of epsilon 1.

Within a coarse part a value is drawn in the same way, from the column's own shares.

All of it follows the releases: post-processing, at no cost. Randomness is that of `noise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InternalError
from hubbub.noise import Bits, system_bits
from hubbub.synthesis.graphical import Model

__all__ = ["draw_records", "refine", "systematic"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def draw_records(model: Model, rows: int, *, bits: Bits | None = None) -> Integers:
    """`rows` records of the model's columns, int64 of shape (rows, d)."""
    tree = model.tree
    out: Integers = np.zeros((rows, len(tree.sizes)), np.int64, order="F")
    done: set[int] = set()
    for i, clique in enumerate(tree.cliques):
        separator = tree.separators[i]
        fresh = tuple(a for a in clique if a not in done)
        done.update(fresh)
        axes = [clique.index(a) for a in (*separator, *fresh)]
        given = math.prod(tree.sizes[a] for a in separator)
        table = model.tables[i].transpose(axes).reshape(given, -1)
        cells = _draw(table, _flat(out, separator, tree.sizes), bits)
        for a in reversed(fresh):
            out[:, a] = cells % tree.sizes[a]
            cells //= tree.sizes[a]
    return out


def refine(coarse: Integers, parts: Integers, shares: Floats, *, bits: Bits | None = None) -> Integers:
    """A value for each record of a column, given its part. shares: of the values, shape (size,)."""
    values = np.arange(len(parts))
    if np.array_equal(parts, values):
        return coarse
    table = np.zeros((int(parts.max()) + 1, len(parts)))
    # Shares of zero are estimates; where a part has nothing else, its values are equally likely.
    table[parts, values] = np.maximum(shares, 1e-12)
    return _draw(table, coarse, bits)


def systematic(shares: Floats, total: int, start: float) -> Integers:
    """`total` items in proportion to `shares`, each count within 1 of its share; start: uniform in [0, 1).

    >>> systematic(np.array([0.5, 0.25, 0.25]), 4, 0.5)
    array([2, 1, 1])
    """
    # Only cells with mass: rounding must not give a record to a cell that is impossible.
    cells = np.flatnonzero(shares > 0)
    if not len(cells):
        raise InternalError("a model gives no mass to a record that it has drawn")
    ends = np.cumsum(shares[cells])
    steps = np.minimum(np.floor(ends / ends[-1] * total + start), total)
    steps[-1] = total
    out: Integers = np.zeros(len(shares), np.int64)
    out[cells] = np.diff(steps, prepend=0)
    return out


def _flat(records: Integers, columns: Sequence[int], sizes: Sequence[int]) -> Integers:
    out: Integers = np.zeros(len(records), np.int64)
    for a in columns:
        out *= sizes[a]
        out += records[:, a]
    return out


def _draw(table: Floats, given: Integers, bits: Bits | None) -> Integers:
    """For each record a column of `table`, by the row that it is given."""
    n = len(given)
    source = system_bits() if bits is None else bits
    shuffled = np.argsort(source.u64(n), kind="stable") if n else np.zeros(0, np.int64)
    order = shuffled[np.argsort(given[shuffled], kind="stable")]
    rows, counts = np.unique(given, return_counts=True)
    starts = (source.u64(max(1, len(rows))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    drawn: list[Integers] = []
    for row, count, start in zip(rows, counts, starts, strict=False):
        drawn.append(np.repeat(np.arange(table.shape[1]), systematic(table[row], int(count), float(start))))
    out: Integers = np.zeros(n, np.int64)
    if drawn:
        out[order] = np.concatenate(drawn)
    return out
