"""Trees over cells: one deep tree, and gradient boosting, for telling outputs on D from outputs on D'.

Inputs are matrices of cell numbers (uint8), shape (n, features). A split sends cells up to some number to the left.
The deep tree minimises the entropy of the class in its leaves; boosting takes Newton steps on the logistic loss
(Friedman 2001; Chen, Guestrin 2016), so that its score estimates ln P(y)/P'(y).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.clock import Deadline

__all__ = ["Boosted", "Tree", "boosted", "deep"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Matrix = NDArray[np.uint8]

_CELLS = 256
_LEAST = 40
_MOST_ROWS = 80_000


@dataclass(frozen=True)
class Tree:
    """A full binary tree, level by level: node k asks whether feature[k] <= cut[k]; its children are 2k+1, 2k+2."""

    depth: int
    feature: Codes
    cut: Codes

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 << self.depth

    def __call__(self, rows: Matrix) -> Codes:
        """The leaf of each row."""
        node = np.zeros(len(rows), dtype=np.int64)
        index = np.arange(len(rows))
        for _ in range(self.depth):
            node = 2 * node + 1 + (rows[index, self.feature[node]] > self.cut[node])
        return node - (self.leaves - 1)


@dataclass(frozen=True)
class Boosted:
    """A sum of trees, each with a value for every leaf."""

    trees: tuple[tuple[Tree, Floats], ...]

    def __call__(self, rows: Matrix) -> Floats:
        """The score of each row: higher on D."""
        total = np.zeros(len(rows))
        for tree, values in self.trees:
            total += values[tree(rows)]
        return total


def _split(rows: Matrix, node: Codes, nodes: int, g: Floats, h: Floats, entropy: bool) -> tuple[Codes, Codes]:
    """The best feature and cut of each node; a node that should not be split sends all to the left."""
    best = np.full(nodes, 1e-9)
    feature, cut = np.zeros(nodes, dtype=np.int64), np.full(nodes, _CELLS, dtype=np.int64)
    everyone = np.arange(nodes)
    for j in range(rows.shape[1]):
        width = int(rows[:, j].max()) + 1
        place = node * width + rows[:, j]
        a, b = (np.bincount(place, w, minlength=nodes * width).reshape(nodes, width).cumsum(axis=1) for w in (g, h))
        gain = _gain(a, b, entropy)
        at = gain.argmax(axis=1)
        better = gain[everyone, at] > best
        best[better], feature[better], cut[better] = gain[everyone, at][better], j, at[better]
    return feature, cut


def _gain(g: Floats, h: Floats, entropy: bool) -> Floats:
    """What splitting after each cell gains. g, h: cumulated over cells; counts of both classes, or gradients."""
    g_all, h_all = g[:, -1:], h[:, -1:]
    if entropy:
        parts = _information(g, h) + _information(g_all - g, h_all - h) - _information(g_all, h_all)
        enough = (g + h >= _LEAST) & (g_all - g + h_all - h >= _LEAST)
        return np.where(enough, parts, -np.inf)
    right = h_all - h
    parts = g**2 / (h + 1) + (g_all - g) ** 2 / (right + 1) - g_all**2 / (h_all + 1)
    return np.where((h >= _LEAST / 4) & (right >= _LEAST / 4), parts, -np.inf)


def _information(a: Floats, b: Floats) -> Floats:
    """a ln(a / (a + b)) + b ln(b / (a + b)): minus the entropy of the class, times the number of rows."""
    total = np.maximum(a + b, 1e-12)
    return a * np.log(np.maximum(a, 1e-12) / total) + b * np.log(np.maximum(b, 1e-12) / total)


def _grow(rows: Matrix, depth: int, g: Floats, h: Floats, *, entropy: bool) -> Tree:
    feature = np.zeros((1 << depth) - 1, dtype=np.int64)
    cut = np.full((1 << depth) - 1, _CELLS, dtype=np.int64)
    node = np.zeros(len(rows), dtype=np.int64)
    index = np.arange(len(rows))
    for level in range(depth):
        start, nodes = (1 << level) - 1, 1 << level
        f, c = _split(rows, node - start, nodes, g, h, entropy)
        feature[start : start + nodes], cut[start : start + nodes] = f, c
        node = 2 * node + 1 + (rows[index, feature[node]] > cut[node])
    return Tree(depth, feature, cut)


def deep(p: Matrix, q: Matrix, *, depth: int) -> Tree:
    """A tree that tells rows on D (p) from rows on D' (q)."""
    p, q = p[:_MOST_ROWS], q[:_MOST_ROWS]
    rows = np.concatenate([p, q])
    mine = np.repeat([1.0, 0.0], [len(p), len(q)])
    return _grow(rows, depth, mine, 1 - mine, entropy=True)


def boosted(
    p: Matrix, q: Matrix, *, deadline: Deadline, rounds: int = 20, depth: int = 3, rate: float = 0.3
) -> Boosted:
    """Boosted trees; as many rounds as the deadline allows, at least one."""
    p, q = p[:_MOST_ROWS], q[:_MOST_ROWS]
    rows = np.concatenate([p, q])
    mine = np.repeat([1.0, 0.0], [len(p), len(q)])
    weight = np.repeat([1.0, len(p) / len(q)], [len(p), len(q)])
    score = np.zeros(len(rows))
    forest: list[tuple[Tree, Floats]] = []
    while len(forest) < rounds and (not forest or not deadline.passed):
        chance = 1 / (1 + np.exp(-score))
        g, h = weight * (mine - chance), weight * chance * (1 - chance)
        tree = _grow(rows, depth, g, h, entropy=False)
        leaf = tree(rows)
        up, down = (np.bincount(leaf, w, minlength=tree.leaves) for w in (g, h))
        values = rate * up / (down + 1)
        score += values[leaf]
        forest.append((tree, values))
    return Boosted(tuple(forest))
