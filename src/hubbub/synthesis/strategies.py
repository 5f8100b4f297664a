"""Strategies for range queries: what is measured, on integers, so that ranges can be put together with little noise.

A strategy is an integer matrix A with n columns. Measure y = A h + Z, Z discrete Gaussian of one parameter s^2 per row;
then X = A^T S^-1 A (S = diag s^2) gives the least-squares histogram X^-1 A^T S^-1 y, in which a query q has variance
q^T X^-1 q. One row of the table costs max_x (A^T S^-1 A)_xx / 2 = rho, exactly, because A and S are.

*Optimised.* Among all X with diagonal at most 2 rho, tr(G X^-1) is least, G the Gram matrix of the queries, where

    X = V^-1/2 (V^1/2 G V^1/2)^1/2 V^-1/2   and   v = diag((V^1/2 G V^1/2)^1/2),   V = diag(v)

(Denisov, McMahan, Rush, Smith, Thakurta 2022, Theorem 3.2). For every v >= 0, (tr (V^1/2 G V^1/2)^1/2)^2 / sum v bounds
2 rho tr(G X^-1) from below, so the gap is known. The fixed point is found for the same kind of queries on few values,
carried over to twice as many, and so on; v depends on the distance from the ends, by which it is carried over there.
A is the Cholesky factor of X in steps of 2^-20, rounded; its sensitivity is that of the rounded integers.

*Hierarchy.* Histograms of blocks of 1, b, b^2, ... values, level j with share v_j of rho (Hay et al. 2010; Qardaji,
Yang, Li 2013; here the shares are optimised). X = 2 rho sum_j v_j (block ones of level j) has block-constant vectors as
its eigenspaces, with eigenvalues 2 rho mu_j, mu_j = sum_{i <= j} v_i b^i. So variances and least squares take O(n)
per level, and tr(G X^-1) = (2 rho)^-1 sum_j t_j / mu_j, a convex function of the shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.noise import Bits

__all__ = ["Hierarchy", "Optimised", "Strategy", "carried_weights", "fixed_point", "hierarchy", "optimised"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_UNIT = 2**20
_SHARES = 2**40
_COARSE = 128
_GAP = 1e-3
_RIDGE = 1e-4
_LEAST = 1e-12


class Strategy(Protocol):
    """What both offer. rho is of one row; histograms are integers of shape (n,)."""

    def measure(self, histogram: Integers, rho: Fraction, bits: Bits | None, rows: int = 1) -> Floats:
        """Draw, and give the least-squares histogram."""

    def variance(self, query: Floats, rho: Fraction) -> tuple[float, float]:
        """Variance of a query's answer, and its coarsest lattice step."""

    def noises(self, rho: Fraction, rows: int = 1) -> list[Calibrated]:
        """All noise that `measure` draws."""

    def cost(self, rho: Fraction) -> Fraction:
        """What one row costs when rho is meant: exactly rho."""


@dataclass(frozen=True)
class Optimised:
    """An upper triangular integer matrix, shape (n, n), and the largest squared norm of its columns."""

    matrix: Integers = field(repr=False)
    squared: int

    def noise(self, rho: Fraction, rows: int = 1) -> Calibrated:
        """The noise, the same for all rows of the matrix, where a unit has `rows` rows of the table."""
        return calibrated(spend=Spend(rho=rho * rows**2), l2_squared=self.squared * rows**2)

    def noises(self, rho: Fraction, rows: int = 1) -> list[Calibrated]:
        return [self.noise(rho, rows)]

    def parameter(self, rho: Fraction) -> Fraction:
        """s^2, the same for all rows."""
        return self.noise(rho).sigma2

    def cost(self, rho: Fraction) -> Fraction:
        largest = max(sum(int(v) ** 2 for v in column) for column in self.matrix.T)
        return Fraction(largest) / (2 * self.parameter(rho))

    def measure(self, histogram: Integers, rho: Fraction, bits: Bits | None, rows: int = 1) -> Floats:
        from scipy.linalg import solve_triangular

        noisy = self.noise(rho, rows).release_array(self.matrix @ histogram, bits=bits)
        return np.asarray(solve_triangular(self.matrix.astype(np.float64), noisy.astype(np.float64)))

    def variance(self, query: Floats, rho: Fraction) -> tuple[float, float]:
        from scipy.linalg import solve_triangular

        parts = solve_triangular(self.matrix.astype(np.float64), query, trans="T")
        return float(parts @ parts) * float(self.parameter(rho)), float(np.abs(parts).max())


@dataclass(frozen=True)
class Hierarchy:
    """Levels of blocks, finest first: their sizes (powers of the branching) and their shares of rho, which sum to 1."""

    values: int
    blocks: tuple[int, ...]
    shares: tuple[Fraction, ...]

    def noise(self, level: int, rho: Fraction, rows: int = 1) -> Calibrated:
        """The noise on one level's counts, of which a row moves one by 1, where a unit has `rows` rows."""
        return calibrated(spend=Spend(rho=rho * self.shares[level] * rows**2), l2_squared=rows**2)

    def noises(self, rho: Fraction, rows: int = 1) -> list[Calibrated]:
        return [self.noise(j, rho, rows) for j, share in enumerate(self.shares) if share]

    def parameter(self, level: int, rho: Fraction) -> Fraction:
        """s^2 of one level's counts."""
        return self.noise(level, rho).sigma2

    def cost(self, rho: Fraction) -> Fraction:
        # A row is in one block of each level.
        return sum((1 / (2 * self.parameter(j, rho)) for j, v in enumerate(self.shares) if v), Fraction(0))

    def measure(self, histogram: Integers, rho: Fraction, bits: Bits | None, rows: int = 1) -> Floats:
        padded = np.zeros(self.blocks[-1], np.int64)
        padded[: self.values] = histogram
        total: Floats = np.zeros(len(padded))
        for j, block in enumerate(self.blocks):
            if self.shares[j]:
                counts = padded.reshape(-1, block).sum(axis=1)
                noisy = self.noise(j, rho, rows).release_array(counts, bits=bits)
                total += np.repeat(noisy * float(self.shares[j]), block)
        return np.asarray(self._solve(total)[: self.values])

    def variance(self, query: Floats, rho: Fraction) -> tuple[float, float]:
        padded: Floats = np.zeros(self.blocks[-1])
        padded[: self.values] = query
        solved = self._solve(padded)
        weights = [
            np.abs(solved.reshape(-1, b).sum(axis=1)).max() * float(v)
            for b, v in zip(self.blocks, self.shares, strict=True)
        ]
        return float(padded @ solved) / (2 * float(rho)), float(max(weights))

    def _solve(self, vector: Floats) -> Floats:
        """(sum_j v_j block ones)^-1 applied, by the eigenspaces."""
        means = [vector.reshape(-1, b).mean(axis=1) for b in self.blocks]
        out: Floats = np.zeros(len(vector))
        for j, mu in enumerate(_eigenvalues(self.blocks, np.array([float(v) for v in self.shares]))):
            own = np.repeat(means[j], self.blocks[j])
            if j + 1 < len(self.blocks):
                own -= np.repeat(means[j + 1], self.blocks[j + 1])
            out += own / mu
        return out


def optimised(gram: Floats, weights: Floats) -> tuple[Optimised, float, float]:
    """The strategy, tr(G X^-1) of its integers at rho = 1/2, and the bound from below on that of any strategy.

    gram: the queries' Gram matrix, shape (n, n). weights: v, near the fixed point.
    """
    from scipy.linalg import cho_solve, cholesky

    best, nuclear = _given(gram, weights)
    bound = nuclear**2 / float(weights.sum())
    # Filling the diagonal up to its largest entry costs nothing and can only help; where the queries leave X singular,
    # a part of 1e-4 keeps the rounded factor far from it.
    best *= (1 - _RIDGE) / float(np.diag(best).max())
    best[np.diag_indices(len(best))] = 1.0
    matrix = np.rint(_UNIT * cholesky(best)).astype(np.int64)
    squared = max(sum(v * v for v in column) for column in matrix.T.tolist())
    inverse = cho_solve((matrix.astype(np.float64), False), np.eye(len(best)))
    return Optimised(matrix, squared), float((gram * inverse).sum()) * squared, bound


def _given(gram: Floats, weights: Floats) -> tuple[Floats, float]:
    """X for these v, and tr (V^1/2 G V^1/2)^1/2."""
    roots = np.sqrt(np.maximum(weights, _LEAST * float(weights.max())))
    values, vectors = np.linalg.eigh(gram * np.outer(roots, roots))
    kept = np.sqrt(np.maximum(values, 0.0))
    return ((vectors * kept) @ vectors.T) / np.outer(roots, roots), float(kept.sum())


def fixed_point(gram: Floats, weights: Floats, rounds: int) -> Floats:
    """v after up to so many rounds, or once its strategy is within 0.1 % of the bound."""
    for _ in range(rounds):
        best, nuclear = _given(gram, weights)
        diagonal = np.diag(best)
        if float(diagonal.max()) * float(weights.sum()) <= (1 + _GAP) * nuclear:
            break
        weights = np.maximum(weights * diagonal, _LEAST * float((weights * diagonal).max()))
    return weights


def carried_weights(values: int, gram_of: Callable[[int], Floats]) -> Floats:
    """v of queries that look alike at every size: iterated on few values, carried over to more, up to all.

    gram_of: number of values -> Gram matrix.
    """
    sizes = [values]
    while sizes[-1] > _COARSE:
        sizes.append(-(-sizes[-1] // 2))
    weights = fixed_point(gram_of(sizes[-1]), np.ones(sizes[-1]), 60)
    for size in reversed(sizes[:-1]):
        weights = _carried(weights, size)
        # The largest size is not iterated: X itself costs as much as all smaller rounds together.
        if size < values:
            weights = fixed_point(gram_of(size), weights, 4)
    return weights


def _carried(weights: Floats, size: int) -> Floats:
    """v on more values: by distance from the end within a quarter at both ends, stretched in between."""
    few = len(weights)
    edge, logs = few // 4, np.log(weights)
    inner = np.interp((np.arange(size) + 0.5) / size, (np.arange(few) + 0.5) / few, logs)
    inner[:edge] = logs[:edge] + inner[edge] - logs[edge]
    inner[size - edge :] = logs[few - edge :] + inner[size - 1 - edge] - logs[few - 1 - edge]
    return np.asarray(np.exp(inner))


def hierarchy(values: int, branching: int, masses: Any) -> tuple[Hierarchy, float]:
    """The hierarchy with the best shares, and its tr(G X^-1) at rho = 1/2.

    masses: block size -> sum over blocks of (1^T G 1) / size, that is tr(G Pi) for the block means Pi.
    """
    blocks = [1]
    while blocks[-1] < values:
        blocks.append(blocks[-1] * branching)
    projected = np.array([*(masses(b) for b in blocks), 0.0])
    gains = np.maximum(projected[:-1] - projected[1:], 0.0)
    sizes = np.array(blocks, dtype=np.float64)
    shares = np.full(len(blocks), 1 / len(blocks))
    for _ in range(20_000):
        mu = np.cumsum(shares * sizes)
        error = float((gains / mu).sum())
        slopes = sizes * np.cumsum((gains / mu**2)[::-1])[::-1]
        # At the optimum every slope is at most the error (Kiefer's condition); the excess bounds the gap.
        if float(slopes.max()) <= error * (1 + _GAP / 10):
            break
        shares = shares * np.sqrt(slopes / error)
        shares /= shares.sum()
    whole = [math.floor(v * _SHARES) for v in shares]
    # The finest level is always measured, so that every value has an estimate.
    whole[0] = max(1, whole[0])
    whole[int(np.argmax(shares))] += _SHARES - sum(whole)
    exact = tuple(Fraction(k, _SHARES) for k in whole)
    mu = _eigenvalues(tuple(blocks), np.array([float(v) for v in exact]))
    return Hierarchy(values, tuple(blocks), exact), float((gains / mu).sum())


def _eigenvalues(blocks: tuple[int, ...], shares: Floats) -> Floats:
    return np.asarray(np.cumsum(shares * np.array(blocks, dtype=np.float64)))
