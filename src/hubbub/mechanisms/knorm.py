"""The K-norm mechanism on integer vectors (Hardt, Talwar 2010), for l1, l2, l-infinity and polytopes.

Let K be a symmetric convex body that holds every difference f(D) - f(D') of neighbours, scaled so that the gauge
g(v) = min {t : v in t K} is at most Delta on them. Then P(output = f(D) + z) proportional to exp(-g(z) / b) is
(Delta / b)-DP, by the triangle inequality; on the integers the normaliser does not depend on f(D) either. The better
K fits, the smaller the error: with the sensitivity polytope conv{+-a_x} of a workload it is the K-norm mechanism
proper.

Exact draws on the integers:
- l1: independent discrete Laplace.
- l-infinity: {-M .. M}^d uniform, P(M = m) proportional to (2m+1)^d q^m, q = exp(-1/b). By the type-B Worpitzky
  identity (2m+1)^d = sum_j B(d, j) C(m + d - j, d), so M = J + (d+1 geometric draws), P(J = j) proportional to
  B(d, j) q^j (Brenti 1994).
- l2 and polytopes: rejection from the l1 or the l-infinity law, whose gauge is smaller. The l2 gauge is rounded up to
  a multiple of 2^-16, which keeps it subadditive; a polytope is given by exactly checked rational facets.

Accuracy in the gauge: with c = g(1/2, ..., 1/2) at its worst signs, P(g(Z) > t) <= e^(2c/b) P(Gamma(d, b) > t - c),
because Z plus a uniform point of the unit cube has a density within e^(c/b) of exp(-g/b) either way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number
from hubbub.accounting.rounding import root_up
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms.calibrate import (
    beta_of,
    epsilon_of,
    integers,
    like,
    private_integers,
    sensitivity_of,
    whole_number,
)
from hubbub.mechanisms.recording import through
from hubbub.mechanisms.weighted import weighted_choice
from hubbub.noise import Bits, DiscreteLaplace, Geometric, Grid, bernoulli_exp, uniform_below
from hubbub.noise.parameters import drawable
from hubbub.queries.sensitivity import exact_integers

__all__ = ["KNormMechanism", "Polytope"]

Integers = NDArray[np.int64]
_L2_GRAIN = 2**16
_MOST = {"l1": 2**20, "linf": 100, "l2": 24, "polytope": 6}
_BATCH = 16
_POINTS = 2**23


@dataclass(frozen=True)
class Polytope:
    """{v : |f . v| <= 1 for every facet f}: rational facets, shape (facets, d), closed under sign by definition.

    Envelopes: radius, the largest coordinate of a vertex, and reach, the largest l1 norm of one.
    """

    facets: tuple[tuple[Fraction, ...], ...]
    radius: int
    reach: int

    @classmethod
    def of(cls, differences: Any) -> Polytope:
        """conv of +- the rows of an integer matrix, shape (m, d), d <= 6: what neighbours may differ by.

        Facets are found in floats, made rational, and kept only if every row satisfies them exactly; one that is
        lost makes the body larger, never the promise weaker.

        Raises ParameterError where the rows are not integers below 2^31, do not span all d dimensions, or d > 6.
        """
        from scipy.spatial import ConvexHull, QhullError

        matrix = exact_integers(differences)
        if matrix.ndim != 2 or matrix.dtype == object or not matrix.any():
            raise ParameterError(
                f"differences of shape {matrix.shape} were given; give integers of shape (moves, queries), below 2^31, "
                "not all zero (answers that no neighbour moves need no noise)."
            )
        matrix = np.unique(matrix, axis=0)
        d = matrix.shape[1]
        if d > _MOST["polytope"]:
            raise ParameterError(f"a polytope in {d} dimensions was asked; at most 6. Use norm='l1', 'l2' or 'linf'.")
        radius, reach = int(np.abs(matrix).max()), int(np.abs(matrix).sum(axis=1).max())
        # With both envelopes among the facets, rejection from either is valid.
        facets = {_unit(d, i, radius) for i in range(d)} | {
            tuple(Fraction(s, reach) for s in (1, *signs)) for signs in itertools.product((1, -1), repeat=d - 1)
        }
        if d > 1:
            points = np.unique(np.concatenate([matrix, -matrix]), axis=0)
            try:
                simplices = ConvexHull(points).simplices
            except QhullError:
                raise ParameterError(
                    f"the differences span fewer than {d} dimensions; drop a query that the others determine."
                ) from None
            halfspaces = (_through([[int(c) for c in points[i]] for i in s]) for s in simplices)
            facets |= {max(f, tuple(-c for c in f)) for f in halfspaces if f is not None}
        kept = tuple(f for f in sorted(facets) if all(abs(_dot(f, [int(c) for c in row])) <= 1 for row in matrix))
        return cls(kept, radius, reach)

    def gauge(self, v: Sequence[int]) -> Fraction:
        """max over facets of |f . v|."""
        return max(abs(_dot(f, v)) for f in self.facets)


@dataclass(frozen=True, init=False)
class KNormMechanism:
    """Noise with probability proportional to exp(-epsilon ||z|| / Delta) on each vector of `cells` integers.

    norm: "l1", "l2", "linf", or a Polytope. sensitivity: Delta in that norm (for a polytope usually 1); for "l2",
    squared_sensitivity may be given instead. With a grid, values and sensitivity are reals in the user's unit (not for
    polytopes), and the noise lives on the grid.

    >>> KNormMechanism(norm="linf", sensitivity=1, cells=3, epsilon="1/2").scale
    Fraction(2, 1)
    """

    norm: Literal["l1", "l2", "linf"] | Polytope
    sensitivity: Fraction
    cells: int
    epsilon: Fraction
    grid: Grid | None

    def __init__(
        self,
        *,
        norm: Literal["l1", "l2", "linf"] | Polytope,
        cells: int,
        epsilon: Number,
        sensitivity: Number | None = None,
        squared_sensitivity: Number | None = None,
        grid: Grid | None = None,
    ) -> None:
        d, kind = whole_number(cells, "cells"), norm if isinstance(norm, str) else "polytope"
        if kind not in _MOST:
            raise ParameterError(f"norm = {what_was_given(norm)} was asked; it is 'l1', 'l2', 'linf' or a Polytope.")
        if d > _MOST[kind]:
            raise ParameterError(
                f"cells = {d} was asked; exact draws for {kind} are practical up to {_MOST[kind]} cells. Use the "
                "Laplace mechanism (l1), or the Gaussian mechanism (l2)."
            )
        if isinstance(norm, Polytope) and len(norm.facets[0]) != d:
            raise ParameterError(f"cells = {d}, but the polytope has {len(norm.facets[0])} dimensions.")
        delta = _sensitivity(kind, sensitivity, squared_sensitivity, d, grid)
        for name, value in {
            "norm": norm,
            "sensitivity": delta,
            "cells": d,
            "epsilon": epsilon_of(epsilon),
            "grid": grid,
        }.items():
            object.__setattr__(self, name, value)
        drawable(self._cover()[1], "the scale of the noise")

    @property
    def scale(self) -> Fraction:
        """b = Delta / epsilon, in steps."""
        return self.sensitivity / self.epsilon

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.PureDP(self.epsilon)

    def gauge(self, v: Sequence[int]) -> Fraction:
        """||v|| in the norm of the mechanism, exactly (l2: rounded up to a multiple of 2^-16)."""
        if isinstance(self.norm, Polytope):
            return self.norm.gauge(v)
        if self.norm == "l1":
            return Fraction(sum(abs(x) for x in v))
        return Fraction(max(abs(x) for x in v)) if self.norm == "linf" else _ceil_root(Fraction(sum(x * x for x in v)))

    def release(self, values: Any, *, bits: Bits | None = None) -> Any:
        """The noisy vector of shape (cells,): int64, or floats on a grid."""
        exact = private_integers(values, self.grid, self.cells)

        def draw() -> tuple[int, ...]:
            return tuple(v + int(z) for v, z in zip(exact, self.noise(bits=bits), strict=True))

        released = through(exact, sensitivity=self.sensitivity, norm="gauge", law=self, draw=draw)
        return like(exact, released, self.grid)

    def noise(self, *, bits: Bits | None = None) -> Integers:
        """One draw of the noise vector, in steps."""
        b, d = self.scale, self.cells
        if self.norm == "l1":
            return np.asarray(DiscreteLaplace(b).sample(d, bits=bits))
        if self.norm == "linf":
            return np.asarray(_cube(b, d, 1, bits)[0])
        n = _BATCH
        while True:
            batch, excess = self._outer(n, bits)
            kept = np.flatnonzero(bernoulli_exp(excess, bits=bits))
            if kept.size:
                return np.asarray(batch[kept[0]])
            n = min(2 * n, 1024)

    def _outer(self, n: int, bits: Bits | None) -> tuple[Integers, NDArray[np.object_]]:
        """n draws from a law that covers this one, and how much more the gauge weighs each: (n, d) and (n,)."""
        b, d = self.scale, self.cells
        flat, outer = self._cover()
        batch = _cube(outer, d, n, bits) if flat else DiscreteLaplace(outer).sample((n, d), bits=bits)
        sizes = np.abs(batch).max(axis=1) if flat else np.abs(batch).sum(axis=1)
        excess = np.empty(n, dtype=object)
        for i in range(n):
            excess[i] = self.gauge([int(x) for x in batch[i]]) / b - int(sizes[i]) / outer
        return batch, excess

    def _cover(self) -> tuple[bool, Fraction]:
        """Whether draws come from the l-infinity law or else from the l1 law, and its scale in steps."""
        b, d = self.scale, self.cells
        if isinstance(self.norm, Polytope):
            flat = self.norm.radius**d * math.factorial(d) <= self.norm.reach**d
            return flat, b * (self.norm.radius if flat else self.norm.reach)
        return self.norm == "linf", b * root_up(Fraction(d), bits=32) if self.norm == "l2" else b

    def accuracy(self, beta: Number) -> float:
        """t with P(||noise|| > t) <= beta in the norm of the mechanism, by the bound of the module's text."""
        from scipy.special import gammainccinv

        b, c = float(self.scale), self._half_cube()
        chance = beta_of(beta) * math.exp(-2 * c / b)
        steps = c + b * float(gammainccinv(self.cells, chance)) if chance > 0 else math.inf
        return steps if self.grid is None else steps * float(self.grid.step)

    def log_ratio(self, output: Any, data: Any, other: Any) -> float:
        """ln of P(output | data) / P(output | other): the privacy loss, in which the normaliser cancels."""
        y, first, second = (integers(v, self.grid, self.cells) for v in (output, data, other))
        near = self.gauge([a - b for a, b in zip(y, first, strict=True)])
        far = self.gauge([a - b for a, b in zip(y, second, strict=True)])
        return float((far - near) / self.scale)

    def log_prob(self, output: Any, data: Any) -> float:
        """ln P(release(data) = output), for at most 3 cells and 2^23 points of the lattice; l1 for any number."""
        y, exact = (integers(v, self.grid, self.cells) for v in (output, data))
        shift = [a - b for a, b in zip(y, exact, strict=True)]
        if self.norm == "l1":
            return float(np.sum(DiscreteLaplace(self.scale).log_pmf(np.array(shift))))
        if self.cells > 3:
            raise ParameterError("the normaliser is summed for at most 3 cells; log_ratio holds for any number.")
        return -float(self.gauge(shift) / self.scale) - _log_mass(self)

    def _half_cube(self) -> float:
        corners = (
            itertools.product((1, -1), repeat=self.cells) if isinstance(self.norm, Polytope) else [[1] * self.cells]
        )
        return max(float(self.gauge(list(corner))) for corner in corners) / 2


def _sensitivity(kind: str, declared: Number | None, squared: Number | None, cells: int, grid: Grid | None) -> Fraction:
    """Delta in steps, rounded up to what the gauge can be."""
    if grid is not None and kind == "polytope":
        raise ParameterError("a polytope holds differences of integers; put them on the grid, and give no grid=.")
    if squared is not None:
        if kind != "l2" or declared is not None:
            raise ParameterError("squared_sensitivity= is for norm='l2', in place of sensitivity=.")
        square = sensitivity_of(squared)
        return _ceil_root(square) if grid is None else Fraction(grid.sensitivity2(root_up(square), cells))
    plain = sensitivity_of(declared)
    if grid is None:
        return _ceil_root(plain**2) if kind == "l2" else plain
    if kind == "l2":
        return Fraction(grid.sensitivity2(plain, cells))
    # In l-infinity each coordinate moves, and is rounded, on its own.
    return Fraction(grid.sensitivity(plain, cells if kind == "l1" else 1))


def _cube(b: Fraction, d: int, n: int, bits: Bits | None) -> Integers:
    """n draws with probability proportional to exp(-||z||_inf / b), shape (n, d)."""
    first = weighted_choice(np.arange(d + 1), 1 / b, counts=_cube_numbers(d), size=n, bits=bits)
    half = first + Geometric(b).sample((n, d + 1), bits=bits).sum(axis=1)
    width = np.broadcast_to((2 * half + 1)[:, None], (n, d))
    return np.asarray(uniform_below(width, bits=bits) - half[:, None])


def _cube_numbers(d: int) -> NDArray[np.object_]:
    """The Eulerian numbers of type B, B(d, 0) .. B(d, d)."""
    row = [1]
    for n in range(1, d + 1):
        padded = [0, *row, 0]
        row = [(2 * k + 1) * padded[k + 1] + (2 * n - 2 * k + 1) * padded[k] for k in range(n + 1)]
    return np.array(row, dtype=object)


def _log_mass(mechanism: KNormMechanism) -> float:
    """ln sum_z exp(-||z|| / b) over the lattice, out to where the rest is below 1e-12 of it."""
    d = mechanism.cells
    unit = [[int(i == j) for j in range(d)] for i in range(d)]
    reach = math.ceil(40 * float(mechanism.scale) / min(float(mechanism.gauge(u)) for u in unit)) + 1
    if (2 * reach + 1) ** d > _POINTS:
        raise ParameterError(
            f"the normaliser is a sum over {float((2 * reach + 1) ** d):.2g} points; at most {_POINTS} are summed. "
            "log_ratio holds for any number."
        )
    axis = np.arange(-reach, reach + 1)
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    if isinstance(mechanism.norm, Polytope):
        facets = np.array([[float(c) for c in f] for f in mechanism.norm.facets])
        sizes = np.zeros(len(points))
        for facet in facets:
            sizes = np.maximum(sizes, np.abs(points @ facet))
    elif mechanism.norm == "linf":
        sizes = np.abs(points).max(axis=1).astype(float)
    else:
        sizes = np.ceil(np.sqrt((points**2).sum(axis=1)) * _L2_GRAIN - 1e-9) / _L2_GRAIN
    return math.log(float(np.exp(-sizes / float(mechanism.scale)).sum()))


def _ceil_root(square: Fraction) -> Fraction:
    """The square root, rounded up to a multiple of 2^-16."""
    wide = math.ceil(square * _L2_GRAIN**2)
    root = math.isqrt(wide)
    return Fraction(root + (root * root < wide), _L2_GRAIN)


def _dot(f: Sequence[Fraction], v: Sequence[int]) -> Fraction:
    return sum((a * b for a, b in zip(f, v, strict=True)), Fraction(0))


def _unit(d: int, i: int, radius: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(int(i == j), radius) for j in range(d))


def _through(points: list[list[int]]) -> tuple[Fraction, ...] | None:
    """The f with f . p = 1 for d points in d dimensions, by elimination; None where there is no single one."""
    d = len(points)
    rows = [[Fraction(c) for c in p] + [Fraction(1)] for p in points]
    for column in range(d):
        pivot = next((r for r in range(column, d) if rows[r][column] != 0), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column][column]
        rows[column] = [c / head for c in rows[column]]
        for r in range(d):
            if r != column and rows[r][column] != 0:
                factor = rows[r][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[column], strict=True)]
    return tuple(row[d] for row in rows)
