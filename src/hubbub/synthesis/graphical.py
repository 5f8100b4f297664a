"""Graphical models: the distribution of greatest entropy, near a base, that agrees with noisy marginals.

*Model.* Let p_j be public distributions of single columns, and C a set of marginals with tables theta_C. The model is

    P(x) = exp(sum_C theta_C(x_C)) prod_j p_j(x_j) / Z,

a product over the cliques of a graph in which the columns of each C are joined. Triangulating the graph (least clique
first) and joining its cliques into a *junction tree* makes all marginals of cliques computable by two sweeps of
messages (Lauritzen, Spiegelhalter 1988; Jensen et al. 1990), in time linear in the cells of the cliques.

*Estimation* (the problem of McKenna, Sheldon, Miklau 2019, "Graphical-model based estimation and inference for
differential privacy", here regularised). For measured shares y_C with noise of standard deviation s_C per cell, take

    minimise  sum_C ||mu_C - y_C||^2 / (2 s_C)  +  KL(P || prod_j p_j)

over all distributions P with marginals mu_C. The optimum has the form above, and its dual is smooth and without
constraints (maximum entropy with quadratic relaxation: Dudik, Phillips, Schapire 2007):

    minimise  log Z(theta) - sum_C <theta_C, y_C> + sum_C s_C ||theta_C||^2 / 2,   gradient  mu_C - y_C + s_C theta_C,

solved by L-BFGS. A log-ratio of size 1 is paid with a misfit of one standard deviation: noise is not followed. Where a
target is a residual (`residuals`), mu_C is projected, and theta_C never leaves the residual's space.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InternalError, ParameterError
from hubbub.synthesis.minimise import minimise
from hubbub.synthesis.residuals import project

__all__ = ["Clique", "JunctionTree", "Model", "Target", "cliques_of", "estimate", "grow"]

Floats = NDArray[np.float64]
Clique = tuple[int, ...]
_MOST_CELLS = 300_000
_FAR = 1e300


def cliques_of(edges: Iterable[Clique], sizes: Sequence[int]) -> list[Clique]:
    """The maximal cliques of a triangulation in which each of the given sets of columns is joined.

    Columns are eliminated in the order of the cells of the clique that it makes, the smallest first.

    >>> cliques_of([(0, 1), (1, 2)], (2, 2, 2))
    [(0, 1), (1, 2)]
    """
    near: list[set[int]] = [set() for _ in sizes]
    for clique in edges:
        for a in clique:
            near[a].update(b for b in clique if b != a)
    left, cliques = set(range(len(sizes))), list[frozenset[int]]()
    while left:
        cells = {v: sizes[v] * math.prod(sizes[a] for a in near[v]) for v in left}
        first = min(left, key=lambda v: (cells[v], v))
        joined = frozenset(near[first] | {first})
        if not any(joined <= other for other in cliques):
            cliques.append(joined)
        for a in near[first]:
            near[a] |= near[first] - {a}
            near[a].discard(first)
        left.discard(first)
    return sorted(tuple(sorted(clique)) for clique in cliques)


def grow(
    wanted: Sequence[Clique], sizes: Sequence[int], *, cells: int, start: Sequence[Clique] = ()
) -> tuple[list[Clique], list[Clique]]:
    """Take marginals into a graph, in order, while no clique exceeds `cells`: (those taken, those left out)."""
    taken, left = list(start), list[Clique]()
    cliques = cliques_of(taken, sizes)
    for clique in wanted:
        if any(set(clique) <= set(other) for other in cliques):
            taken.append(clique)
            continue
        tried = cliques_of([*taken, clique], sizes)
        if max(math.prod(sizes[a] for a in c) for c in tried) <= cells:
            taken.append(clique)
            cliques = tried
        else:
            left.append(clique)
    return taken[len(start) :], left


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each meets the earlier ones in its separator with its parent.

    Built by `of`: a maximum spanning tree on the sizes of separators (Jensen, Jensen 1994).
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]

    @classmethod
    def of(cls, edges: Iterable[Clique], sizes: Sequence[int]) -> JunctionTree:
        """The tree of a triangulated graph."""
        cliques = cliques_of(edges, sizes)
        best = [(-1, -1)] * len(cliques)
        left, order, parents = set(range(len(cliques))), list[int](), list[int]()
        now = max(left, key=lambda i: math.prod(sizes[a] for a in cliques[i]))
        while True:
            left.discard(now)
            parents.append(order.index(best[now][1]) if order else -1)
            order.append(now)
            for i in left:
                best[i] = max(best[i], (len(set(cliques[i]) & set(cliques[now])), now))
            if not left:
                break
            now = max(left, key=lambda i: (best[i], -i))
        ordered = [cliques[i] for i in order]
        separators = [tuple(a for a in c if p >= 0 and a in ordered[p]) for c, p in zip(ordered, parents, strict=True)]
        return cls(tuple(sizes), tuple(ordered), tuple(parents), tuple(separators))

    def shape(self, clique: int) -> tuple[int, ...]:
        """The shape of a clique's table."""
        return tuple(self.sizes[a] for a in self.cliques[clique])

    @property
    def cells(self) -> int:
        """The cells of all cliques together."""
        return sum(math.prod(self.shape(i)) for i in range(len(self.cliques)))

    def home(self, columns: Clique) -> int | None:
        """The smallest clique that holds these columns, or None."""
        homes = [i for i, c in enumerate(self.cliques) if set(columns) <= set(c)]
        return min(homes, key=lambda i: math.prod(self.shape(i)), default=None)

    def spread(self, table: NDArray[Any], columns: Clique, clique: int) -> NDArray[Any]:
        """A table over some columns (ascending) with the axes of a clique that holds them."""
        return table.reshape([self.sizes[a] if a in columns else 1 for a in self.cliques[clique]])

    def summed(self, table: Floats, clique: int, columns: Clique) -> Floats:
        """A clique's table summed to some of its columns."""
        return np.asarray(table.sum(axis=tuple(k for k, a in enumerate(self.cliques[clique]) if a not in columns)))

    def beliefs(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """log Z and the marginal of each clique, for P proportional to the product of exp(potentials).

        -inf is allowed and means impossible. Raises ParameterError where everything is impossible: where no record has
        finite potentials in all cliques, however far apart these are. For a message is carried as a logarithm, and a
        clique's table is scaled for each value of its separator: what is likely in one clique and forbidden by the next
        would else leave nothing, by underflow.
        """
        logs, tables = list(potentials), list[Floats]()
        for i in range(len(logs) - 1, -1, -1):
            rest = tuple(k for k, a in enumerate(self.cliques[i]) if a not in self.separators[i])
            top = np.maximum(logs[i].max(axis=rest, keepdims=True), -_FAR)
            table = np.exp(logs[i] - top)
            # 0 where nothing is possible, else at least 1.
            total = table.sum(axis=rest, keepdims=True)
            tables.insert(0, table / np.maximum(total, 1.0))
            message = np.where(total > 0, np.log(np.maximum(total, 1.0)) + top, -math.inf)
            if i > 0:
                parent = self.parents[i]
                shape = [self.sizes[a] for a in self.separators[i]]
                logs[parent] = logs[parent] + self.spread(message.reshape(shape), self.separators[i], parent)
            elif message == -math.inf:
                raise ParameterError("the constraints allow no record at all; drop one of them.")
        for i in range(1, len(tables)):
            fresh = self.summed(tables[self.parents[i]], self.parents[i], self.separators[i])
            tables[i] *= self.spread(fresh, self.separators[i], i)
        return float(message.reshape(())), tables


@dataclass(frozen=True)
class Target:
    """What a model should agree with: shares of some columns (ascending), and the noise's deviation, of each cell.

    centred: the shares are those of the residual, the marginal less what its own marginals say (`residuals.project`).
    """

    columns: Clique
    shares: Floats
    deviation: float | Floats
    centred: bool = False


@dataclass(frozen=True)
class Model:
    """A junction tree with the marginal of each clique."""

    tree: JunctionTree
    tables: tuple[Floats, ...]
    misfit: float
    theta: Mapping[tuple[Clique, bool], Floats] = field(default_factory=dict)

    def marginal(self, columns: Clique) -> Floats:
        """The shares of some columns (ascending), whether or not a clique holds them all.

        Columns of different cliques: summed along the path between them; given up for the product of single columns
        where a table on that path would exceed 300,000 cells.
        """
        home = self.tree.home(columns)
        if home is not None:
            return self.tree.summed(self.tables[home], home, columns)
        return _across(self, columns)


def _across(model: Model, columns: Clique) -> Floats:
    """The marginal of columns in several cliques: conditionals are carried from the leaves of the tree to its root."""
    tree = model.tree
    scopes, tables = list(tree.cliques), list(model.tables)
    for i in range(len(scopes) - 1, -1, -1):
        separator, parent = tree.separators[i], tree.parents[i]
        keep = tuple(a for a in scopes[i] if a in columns or (a in separator and parent >= 0))
        table = tables[i].sum(axis=tuple(k for k, a in enumerate(scopes[i]) if a not in keep))
        if parent < 0:
            return np.asarray(np.transpose(table, [keep.index(a) for a in columns]))
        if set(keep) == set(separator):
            continue
        shared = _axes(tree.summed(model.tables[i], i, separator), separator, keep)
        given = np.divide(table, shared, out=np.zeros_like(table), where=shared > 0)
        joint = tuple(sorted({*scopes[parent], *keep}))
        if math.prod(tree.sizes[a] for a in joint) > _MOST_CELLS:
            return _product(model, columns)
        tables[parent] = _axes(tables[parent], scopes[parent], joint) * _axes(given, keep, joint)
        scopes[parent] = joint
    raise InternalError("a junction tree has a root")


def _axes(table: Floats, held: Clique, wanted: Clique) -> Floats:
    sizes = dict(zip(held, table.shape, strict=True))
    return table.reshape([sizes.get(a, 1) for a in wanted])


def _product(model: Model, columns: Clique) -> Floats:
    out = np.ones(())
    for a in columns:
        out = np.multiply.outer(out, model.marginal((a,)))
    return np.asarray(out)


def estimate(
    tree: JunctionTree,
    targets: Sequence[Target],
    base: Sequence[Floats],
    *,
    masks: Mapping[Clique, NDArray[np.bool_]] | None = None,
    start: Mapping[tuple[Clique, bool], Floats] | None = None,
    iterations: int = 100,
) -> Model:
    """The regularised maximum-entropy model of the module's text.

    base: for each column, its share of mass by value. masks: for some sets of columns, which cells are possible.
    start: `theta` of an earlier model, to begin from.
    `misfit` is the mean of (mu - y)^2 / s^2: about 1 where the model explains all but the noise.

    Raises ParameterError where a target lies in no clique of the tree, or the masks leave nothing.
    """
    homes = [tree.home(t.columns) for t in targets]
    if any(home is None for home in homes):
        raise ParameterError("a target's columns lie in no clique of the tree; build the tree from all targets.")
    places = [home for home in homes if home is not None]
    ends = np.cumsum([0, *(t.shares.size for t in targets)])
    if not targets:
        return Model(tree, tuple(tree.beliefs(_base(tree, base, masks or {}))[1]), 0.0)
    wanted = np.concatenate([t.shares.ravel() for t in targets])
    deviation = np.concatenate([np.broadcast_to(t.deviation, t.shares.shape).ravel() for t in targets])
    potentials = _base(tree, base, masks or {})

    def model(theta: Floats) -> tuple[float, list[Floats], Floats]:
        tables = [p.copy() for p in potentials]
        for k, (target, home) in enumerate(zip(targets, places, strict=True)):
            tables[home] += tree.spread(theta[ends[k] : ends[k + 1]], target.columns, home)
        log_z, beliefs = tree.beliefs(tables)
        seen = (tree.summed(beliefs[home], home, t.columns) for t, home in zip(targets, places, strict=True))
        marginals = [(project(m) if t.centred else m).ravel() for t, m in zip(targets, seen, strict=True)]
        return log_z, beliefs, np.concatenate(marginals)

    def dual(theta: Floats) -> tuple[float, Floats]:
        log_z, _, mu = model(theta)
        value = log_z - theta @ wanted + 0.5 * float(deviation @ (theta * theta))
        return value, mu - wanted + deviation * theta

    known = start or {}
    first = np.concatenate([known.get((t.columns, t.centred), np.zeros(t.shares.shape)).ravel() for t in targets])
    theta = minimise(dual, first, iterations=iterations)
    _, tables, mu = model(theta)
    misfit = float(np.mean(((mu - wanted) / deviation) ** 2))
    fitted = {
        (t.columns, t.centred): theta[ends[k] : ends[k + 1]].reshape(t.shares.shape) for k, t in enumerate(targets)
    }
    return Model(tree, tuple(tables), misfit, fitted)


def _base(tree: JunctionTree, base: Sequence[Floats], masks: Mapping[Clique, NDArray[np.bool_]]) -> list[Floats]:
    """The fixed part of the potentials: each column's own log-shares once, and -inf where a mask forbids."""
    potentials = [np.zeros(tree.shape(i)) for i in range(len(tree.cliques))]
    for column, shares in enumerate(base):
        home = tree.home((column,))
        assert home is not None
        # A share of zero is an estimate, not a fact: it keeps a little mass.
        potentials[home] += tree.spread(np.log(np.maximum(shares / shares.sum(), 1e-9)), (column,), home)
    for columns, allowed in masks.items():
        home = tree.home(columns)
        if home is None:
            raise ParameterError("a constraint's columns lie in no clique of the tree; build the tree from it too.")
        potentials[home] = np.where(tree.spread(allowed, columns, home), potentials[home], -math.inf)
    return potentials
