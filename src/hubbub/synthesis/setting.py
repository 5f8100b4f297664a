"""What every strategy begins with: noisy single columns, coarse parts, and constraints on them.

All here is public once the single columns have been bought: parts, base distributions and masks are functions of noisy
counts and declarations. `Setting.fit` turns measurements over parts into a model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.synthesis.constraints import Constraint
from hubbub.synthesis.domain import MAX_CELLS, Domain
from hubbub.synthesis.graphical import Clique, JunctionTree, Model, Target, cliques_of, estimate, grow
from hubbub.synthesis.measurements import Curator, Measurement, shares
from hubbub.synthesis.parts import cut, part_sizes, projected

__all__ = ["Fitted", "Setting", "Support", "begin"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """Columns are places 0 .. d - 1 here.

    total: the (noisy or declared) number of rows. singles: each column's shares by value. deviations: of a single's
    share, from its noise. parts: by name. sizes: parts per column. masks: possible cells over parts. cells: the most
    that a clique may have.
    """

    domain: Domain
    total: float
    singles: tuple[Floats, ...]
    deviations: tuple[float, ...]
    parts: Mapping[str, Integers]
    sizes: tuple[int, ...]
    masks: Mapping[tuple[int, ...], NDArray[np.bool_]]
    cells: int

    @property
    def base(self) -> list[Floats]:
        """Each column's shares by part."""
        return [
            np.bincount(self.parts[c], weights=s, minlength=k).astype(np.float64)
            for c, s, k in zip(self.domain.columns, self.singles, self.sizes, strict=True)
        ]

    def places(self, columns: Sequence[str]) -> tuple[int, ...]:
        """Names as places, ascending as `Domain.marginal` orders them."""
        return tuple(self.domain.place(c) for c in columns)

    def names(self, places: Sequence[int]) -> tuple[str, ...]:
        """Places as names."""
        return tuple(self.domain.columns[a] for a in places)

    def targets(self, measured: Sequence[Measurement]) -> list[Target]:
        """Single columns and measurements as shares of the total."""
        scale = max(self.total, 1.0)
        # A part of k values carries the noise of all k.
        alone = [
            Target((j,), share, self.deviations[j] * np.sqrt(np.bincount(self.parts[name], minlength=size)))
            for j, (name, share, size) in enumerate(zip(self.domain.columns, self.base, self.sizes, strict=True))
        ]
        joint = [Target(self.places(m.columns), m.counts / scale, m.variance**0.5 / scale) for m in measured]
        return alone + joint

    def graph(self, wanted: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Those of the wanted marginals, in order, that fit into a graph beside the constraints."""
        return grow(wanted, self.sizes, cells=self.cells, start=list(self.masks))[0]

    def fit(
        self,
        measured: Sequence[Measurement],
        *,
        start: Mapping[tuple[Clique, bool], Floats] | None = None,
        iterations: int = 100,
    ) -> Model:
        """The model of the measurements, all of which must fit into the graph together."""
        targets = self.targets(measured)
        tree = JunctionTree.of([*self.masks, *(t.columns for t in targets)], self.sizes)
        return estimate(tree, targets, self.base, masks=self.masks, start=start, iterations=iterations)


@dataclass(frozen=True)
class Fitted:
    """A strategy's outcome: the model, the measurements that it used, and all that were bought."""

    model: Model
    used: tuple[Measurement, ...]
    bought: tuple[Measurement, ...]


def begin(
    curator: Curator,
    rho: Fraction,
    total: float,
    *,
    parts: int,
    cells: int,
    constraints: Sequence[Constraint] = (),
) -> Setting:
    """Buy the single columns at rho and cut them into parts: at most about `parts` in each."""
    domain = curator.domain
    measured = curator.measure([(c,) for c in domain.columns], None, shares(rho, domain.sizes))
    singles = tuple(projected(m.counts, max(total, 1.0)) / max(total, 1.0) for m in measured)
    deviations = tuple(m.variance**0.5 / max(total, 1.0) for m in measured)
    cuts = {
        name: cut(share, parts, _classes(domain, name, constraints))
        for name, share in zip(domain.columns, singles, strict=True)
    }
    sizes = tuple(part_sizes(cuts[name]) for name in domain.columns)
    masks = _masks(domain, cuts, constraints)
    return Setting(domain, total, singles, deviations, cuts, sizes, masks, cells)


@dataclass(frozen=True)
class Support:
    """What constraints allow, over the classes of values that they tell apart: public, known before anything is bought.

    Raises ParameterError, on `check`, for constraints that together allow nothing or need a table too wide.
    """

    domain: Domain
    constraints: tuple[Constraint, ...]

    @property
    def parts(self) -> dict[str, Integers]:
        """Each column's values by class."""
        return {
            name: cut(np.ones(size), 1, _classes(self.domain, name, self.constraints))
            for name, size in zip(self.domain.columns, self.domain.sizes, strict=True)
        }

    def check(self, parts: int) -> None:
        """Refuse before anything is bought; parts: about how many a column will be cut into."""
        classes = self.parts
        wide = [min(n, 2 * parts + part_sizes(classes[c])) for c, n in zip(*self._columns, strict=True)]
        masks = _masks(self.domain, classes, self.constraints)
        cells = max((math.prod(wide[a] for a in c) for c in cliques_of(masks, wide)), default=1)
        if masks and cells > MAX_CELLS:
            raise ParameterError(
                f"the constraints join so many columns that a table of {cells} cells is needed; at most {MAX_CELLS} "
                "are laid out. State them over fewer columns, or declare coarser values."
            )
        self.uniform()

    def uniform(self) -> Model:
        """Records uniform over the classes' values, given the constraints."""
        classes = self.parts
        sizes = [part_sizes(classes[c]) for c in self.domain.columns]
        masks = _masks(self.domain, classes, self.constraints)
        base = [np.bincount(classes[c], minlength=k) / n for c, n, k in zip(*self._columns, sizes, strict=True)]
        return estimate(JunctionTree.of(masks, sizes), [], base, masks=masks)

    @property
    def _columns(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        return self.domain.columns, self.domain.sizes


def _classes(domain: Domain, column: str, constraints: Sequence[Constraint]) -> Integers | None:
    """Codes that some constraint tells apart, in different classes."""
    concerned = [c.classes(column) for c in constraints if column in c.columns]
    if not concerned:
        return None
    return np.unique(np.stack(concerned, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _masks(
    domain: Domain, parts: Mapping[str, Integers], constraints: Sequence[Constraint]
) -> dict[tuple[int, ...], NDArray[np.bool_]]:
    """The constraints over parts; several over the same columns are one."""
    masks: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for constraint in constraints:
        first = [np.unique(parts[c], return_index=True)[1] for c in constraint.columns]
        places = tuple(domain.place(c) for c in constraint.columns)
        allowed = constraint.allowed[np.ix_(*first)]
        masks[places] = masks.get(places, np.ones_like(allowed)) & allowed
    return masks
