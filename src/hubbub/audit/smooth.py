"""A smooth estimate of ln P(y)/P'(y): logistic regression on ranks, which reaches into corners that few outputs fill.

A histogram or a tree says nothing about a place where it saw no output. What is smooth does: each column is taken by
its rank u among the outputs seen, and by -ln u and -ln(1 - u), its rank from either end, in which the log-ratios of
exponential tails are straight lines. With their squares, and the products of the columns that tell most, the score is

    s(y) = a + sum_j b_j . f(u_j) + sum_{i<j} z(u_i)' C_ij z(u_j),    z(u) = (u, -ln u, -ln(1 - u)), f(u) = (z, z^2),

fitted by Newton steps on the logistic loss with a small ridge. A second fit sees only the outputs that score highest,
or lowest, and corrects the score there: the bulk of the outputs, where nothing is to be found, no longer decides it.
Ranks are those of cells, so that a score is a sum of table entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.audit.features import Column, Seen

__all__ = ["Smooth", "corrected", "smooth"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STEPS, _LAST, _SPARSE, _ENOUGH = 8, 2, 8, 100
_RIDGE, _FIRMLY = 3.0, 10.0
_MOST_CELLS = 12_000_000
_LEAST_IN_CORNER = 500
_ALONE, _TOGETHER = 7, 9


@dataclass(frozen=True, eq=False)
class Smooth:
    """The score s(y) of the head, higher on D.

    alone: for each of `columns`, its part in each cell. crossed: for pairs of columns, by both cells. corner: beyond
    this score, upwards or downwards, `inner` is added.
    """

    columns: tuple[Column, ...]
    alone: tuple[Floats, ...]
    crossed: tuple[tuple[int, int, Floats], ...]
    start: float
    corner: tuple[float, bool] | None = None
    inner: Smooth | None = None

    def __call__(self, seen: Seen) -> Floats:
        """The score of each output."""
        if self.inner is None or self.corner is None:
            return self.plain(seen, None)
        cut, up = self.corner
        score = seen.once(self.columns, lambda these: self.plain(these, None))
        within = score >= cut if up else score <= cut
        more = score[within] + self.inner.plain(seen, within)
        out = score.copy()
        # Nothing within goes back outside: what the cut split stays split.
        out[within] = np.maximum(more, cut) if up else np.minimum(more, cut)
        return out

    def plain(self, seen: Seen, within: Mask | None) -> Floats:
        """The score without the correction, of the outputs within."""
        codes = [c.codes(seen) if within is None else c.codes(seen)[within] for c in self.columns]
        total = np.full(len(codes[0]) if codes else len(seen), self.start)
        for code, parts in zip(codes, self.alone, strict=True):
            total += parts[code]
        for i, j, parts in self.crossed:
            total += parts[codes[i], codes[j]]
        return total


@dataclass(frozen=True)
class _Basis:
    """f and z of the head for each cell of each column; the one more in f says that a value is missing."""

    alone: tuple[Floats, ...]
    ends: tuple[Floats, ...]

    def design(self, codes: list[NDArray[np.int64]]) -> Floats:
        """Shape (features, n)."""
        parts = [np.ones((1, len(codes[0])))]
        parts += [alone[:, code] for alone, code in zip(self.alone, codes, strict=True)]
        ends = [end[:, code] for end, code in zip(self.ends, codes, strict=False)]
        parts += [(a[:, None, :] * b[None, :, :]).reshape(_TOGETHER, -1) for a, b in combinations(ends, 2)]
        return np.concatenate(parts)

    def unfold(self, weights: Floats, columns: tuple[Column, ...]) -> Smooth:
        """The score with these coefficients."""
        alone = tuple(weights[1 + _ALONE * k : 1 + _ALONE * (k + 1)] @ part for k, part in enumerate(self.alone))
        at, crossed = 1 + _ALONE * len(columns), []
        for i, j in combinations(range(len(self.ends)), 2):
            crossed.append((i, j, self.ends[i].T @ weights[at : at + _TOGETHER].reshape(3, 3) @ self.ends[j]))
            at += _TOGETHER
        return Smooth(columns, alone, tuple(crossed), float(weights[0]))


def _basis(columns: tuple[Column, ...], codes: list[NDArray[np.int64]], crossed: int) -> _Basis:
    alone, ends = [], []
    for column, code in zip(columns, codes, strict=True):
        u = column.ranks(code)
        missing = np.isnan(u)
        z = np.where(missing, 0.0, np.stack([2 * u - 1, -0.5 * np.log(u), -0.5 * np.log1p(-u)]))
        alone.append(np.concatenate([z, z * z, missing[None, :]]))
        ends.append(z)
    return _Basis(tuple(alone), tuple(ends[:crossed]))


def _fit(design: Floats, mine: Floats, offset: Floats, ridge: float) -> Floats:
    """Coefficients by Newton steps; design (features, n). A part of the outputs leads near, all of them decide."""
    scale = np.sqrt(np.einsum("ij,ij->i", design, design) / design.shape[1]) + 1e-9
    x = design / scale[:, None]
    weights = np.zeros(len(x))
    penalty = np.full(len(x), ridge)
    penalty[0] = 1e-6
    part = slice(None, None, _SPARSE) if x.shape[1] > _SPARSE * _ENOUGH * len(x) else slice(None)
    weights = _newton(x[:, part], mine[part], offset[part], penalty, weights, _STEPS)
    if part.step:
        weights = _newton(x, mine, offset, penalty, weights, _LAST)
    return np.asarray(weights / scale)


def _newton(x: Floats, mine: Floats, offset: Floats, penalty: Floats, weights: Floats, steps: int) -> Floats:
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(weights @ x + offset, -30, 30)))
        gradient = x @ (mine - chance) - penalty * weights
        step = np.linalg.solve((x * (chance * (1 - chance))) @ x.T + np.diag(penalty), gradient)
        weights = weights + np.clip(step, -3, 3)
        if np.abs(step).max() < 3e-3:
            break
    return weights


def _together(
    columns: tuple[Column, ...], sides: tuple[Seen, Seen], within: tuple[Mask, Mask]
) -> list[NDArray[np.int64]]:
    return [np.concatenate([c.codes(s)[w] for s, w in zip(sides, within, strict=True)]) for c in columns]


def smooth(p: Seen, q: Seen, columns: tuple[Column, ...], *, crossed: int) -> Smooth:
    """The smooth score of outputs on D (p) and on D' (q). crossed: of how many first columns products are taken."""
    width = 1 + _ALONE * len(columns) + _TOGETHER * crossed * (crossed - 1) // 2
    size = max(1000, _MOST_CELLS // width // 2)
    few = np.arange(len(p)) < size, np.arange(len(q)) < size
    codes = _together(columns, (p, q), few)
    basis = _basis(columns, codes, crossed)
    mine = np.repeat([1.0, 0.0], [int(f.sum()) for f in few])
    return basis.unfold(_fit(basis.design(codes), mine, np.zeros(mine.size), _RIDGE), columns)


def corrected(first: Smooth, p: Seen, q: Seen, *, share: float, up: bool) -> Smooth | None:
    """The score, corrected where it is among the highest `share` (or lowest); None where few outputs are there."""
    scores = [s.once(first.columns, lambda these: first.plain(these, None)) for s in (p, q)]
    cut = float(np.quantile(np.concatenate(scores), 1 - share if up else share))
    within = tuple(score >= cut if up else score <= cut for score in scores)
    sizes = [int(w.sum()) for w in within]
    if min(sizes) < _LEAST_IN_CORNER:
        return None
    codes = _together(first.columns, (p, q), (within[0], within[1]))
    basis = _basis(first.columns, codes, 1 + max((j for _, j, _ in first.crossed), default=-1))
    offset = np.concatenate([score[w] for score, w in zip(scores, within, strict=True)])
    weights = _fit(basis.design(codes), np.repeat([1.0, 0.0], sizes), offset, _FIRMLY)
    return replace(first, corner=(cut, up), inner=basis.unfold(weights, first.columns))
