"""k-means: rounds of assigning rows to centres on a public grid, and of noisy sums by cluster.

**A round.** Every row goes to the nearest centre, by whole numbers: the score of a centre c is 2 x.c - |c|^2, an exact
integer (`hubbub.learning.exact`); ties go to the first. The row then adds (1, x) to the sums of its cluster: at most
sqrt N in l2, N = `Design.norm2`, in which the 1 is counted. Which cluster that is depends on public centres and on the
row alone. A unit of R rows moves the sums of all clusters by at most R sqrt N; twice that under replace.

**What counts.** Rows hardly change clusters in late rounds, so what earlier rounds said of a cluster still holds: sums
are averaged over rounds, by the inverse of their variance, an earlier round counting three tenths as much as the next.
Each of the first eight rounds has a fifth more of the amount than the one before it, and later ones as much as the
eighth. That is fixed before the first; the rest is post-processing.

**Where it begins.** A tenth of the amount buys a histogram of each column, of which a row adds 1 to each: k columns,
so sqrt k in l2. Rows drawn from these, column by column, are clustered without noise, and give the first centres. A
cluster whose noisy size is below twice its noise gets a centre beside that of the largest one. All that is
post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.amounts import count
from hubbub.errors import PolicyError
from hubbub.learning.descent import Floats, noise_of
from hubbub.learning.exact import WEIGHT_ONE, Coded, on_grid
from hubbub.learning.features import ONE, Design, Integers, Numbers
from hubbub.learning.model import Estimator, Fit, Problem
from hubbub.mechanisms.calibration import Calibrated, calibrated
from hubbub.noise import Bits
from hubbub.noise.public import public_generator

__all__ = ["KMeans", "nearest"]

Places: TypeAlias = NDArray[np.intp]

_FIRST = Fraction(1, 10)
_MORE = Fraction(6, 5)
_GROWING = 8
_REMEMBERED = 0.3
_BINS = 32
_DRAWN = 4096
_FREE_ROUNDS = 10


def nearest(centres: Floats, rows: Coded) -> Integers:
    """The place of each row's nearest centre, exactly. centres: (k, width - 1), of features where 1 is 1."""
    on = np.array([on_grid(c) for c in centres])
    # |c|^2 in the scale of a score whose intercept is 1.
    bias = np.rint(np.array([(c.astype(object) ** 2).sum() / WEIGHT_ONE for c in on], float)).astype(np.int64)
    return np.asarray(rows.scores(np.hstack([-bias[:, None], 2 * on])).argmax(axis=0), np.int64)


class KMeans(Estimator):
    """k-means clustering of declared columns; numbers are moved to [-1, 1], values have a feature each.

    features: columns; by default all that are declared. n_clusters: how many centres. rounds: how often they move.
    weight: a column of weights.

    After a fit: `cluster_centers_`, (n_clusters, features), in the features' units; `centers_`, the same for columns of
    numbers in the columns' own units, by column; `sizes_`, the noisy number of rows of each.
    """

    _buys_rows: ClassVar[bool] = False
    _counterpart: ClassVar[str | None] = "KMeans"

    def __init__(
        self,
        features: Sequence[str] | None = None,
        *,
        n_clusters: int = 8,
        rounds: int = 8,
        weight: str | None = None,
    ) -> None:
        self.features, self.n_clusters, self.rounds, self.weight = features, n_clusters, rounds, weight

    def _checked(self, problem: Problem) -> None:
        super()._checked(problem)
        count(self.n_clusters, "n_clusters")
        count(self.rounds, "rounds")
        if self.n_clusters > 1000 or self.rounds > 100:
            raise PolicyError("at most 1000 clusters and 100 rounds.")

    def _noises(self, problem: Problem) -> tuple[Calibrated, list[Calibrated]]:
        """Of the histograms, and of each round's sums."""
        first = problem.rho * _FIRST
        columns = len(problem.design.columns)
        histogram = calibrated(spend=problem.spend.of_amount(first), l2_squared=problem.moved(columns, acute=True))
        squared = problem.moved(problem.design.norm2)
        return histogram, [noise_of((problem.rho - first) * part, squared) for part in _parts(self.rounds)]

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        self._noises(problem)  # those of any round fit
        even = problem.rho * (1 - _FIRST) / self.rounds
        sigma = math.sqrt(noise_of(even, problem.moved(problem.design.norm2)).sigma2)
        return 1 + self.rounds, sigma / (ONE * problem.heaviest)

    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
        histogram, noises = self._noises(problem)
        yield histogram.event
        cells = [_cells(c.size) for c in problem.design.columns.values()]
        (whole,) = rows.histograms(np.zeros(len(rows.label), np.int64), 1)
        exact = [int(v) for cell, held in zip(cells, whole.of_code, strict=True) for v in _gathered(cell, held)]
        noisy = np.array(histogram.release(exact, bits=bits), np.float64)
        centres = _begun(problem.design, cells, noisy, self.n_clusters)
        memory = _Memory()
        for noise in noises:
            yield noise.event
            held = rows.histograms(nearest(centres, rows), self.n_clusters)
            sums = [problem.design.gathered(one.total, one.of_code) for one in held]
            moved = np.array(noise.release([v for s in sums for v in s], bits=bits), np.float64)
            mean, deviation = memory.with_round(moved.reshape(self.n_clusters, -1) / ONE, float(noise.sigma2))
            sizes = mean[:, 0]
            centres = _moved(mean, centres, 2 * deviation / ONE)
        return {
            "centres": [on_grid(c).tolist() for c in centres],
            "sizes": [float(s) / problem.heaviest for s in sizes],
        }

    def _load(self, kept: Mapping[str, Any]) -> None:
        self.cluster_centers_ = np.array(kept["fit"]["centres"], np.float64) / WEIGHT_ONE
        self.sizes_ = np.array(kept["fit"]["sizes"])
        self.feature_names_ = list(self.design_.names[1:])
        self.centers_ = {}
        for start, (name, column) in zip(self.design_.starts, self.design_.columns.items(), strict=True):
            if isinstance(column, Numbers):
                low, high = float(column.low), float(column.high)
                self.centers_[name] = (self.cluster_centers_[:, start - 1] + 1) / 2 * (high - low) + low

    def predict(self, X: Any) -> Integers:
        """The nearest centre of each row."""
        return nearest(self._fitted().cluster_centers_, self._codes(X))

    def transform(self, X: Any) -> Floats:
        """The distance of each row from each centre, in the features' units: (n, n_clusters)."""
        codes = self._fitted()._codes(X).codes
        columns = self.design_.columns.values()
        x = np.hstack([c.features[k] for c, k in zip(columns, codes, strict=True)]) / ONE
        squared = (x**2).sum(axis=1)[:, None] - 2 * x @ self.cluster_centers_.T + (self.cluster_centers_**2).sum(axis=1)
        return np.array(np.sqrt(np.maximum(squared, 0)))


def _parts(rounds: int) -> list[Fraction]:
    """The part of what is left that each round has: 1 in all.

    >>> [str(part) for part in _parts(3)]
    ['25/91', '30/91', '36/91']
    """
    each = [_MORE ** min(k, _GROWING - 1) for k in range(rounds)]
    return [part / sum(each) for part in each]


class _Memory:
    """The mean of noisy sums over rounds, earlier ones counting ever less."""

    def __init__(self) -> None:
        self._sums: Floats | float = 0.0
        self._total = self._squares = 0.0

    def with_round(self, sums: Floats, variance: float) -> tuple[Floats, float]:
        """The mean with one round more, and the deviation that noise gives it.

        >>> memory = _Memory()
        >>> _ = memory.with_round(np.array([[1.0]]), 4.0)
        >>> [float(np.round(v, 3).item()) for v in map(np.array, memory.with_round(np.array([[2.0]]), 4.0))]
        [1.769, 1.606]
        """
        self._sums = _REMEMBERED * self._sums + sums / variance
        self._total = _REMEMBERED * self._total + 1 / variance
        self._squares = _REMEMBERED**2 * self._squares + 1 / variance
        return np.asarray(self._sums / self._total), math.sqrt(self._squares) / self._total


def _cells(size: int) -> Places:
    """The coarse cell of each code: at most 32 of neighbouring codes, and one of the last code."""
    coarse = np.minimum(np.arange(size) * _BINS // max(size - 1, _BINS), _BINS - 1)
    return np.asarray(coarse + (np.arange(size) == size - 1), np.intp)


def _gathered(cell: Places, held: Integers) -> Integers:
    return np.bincount(cell, weights=held, minlength=int(cell[-1]) + 1).astype(np.int64)


def _begun(design: Design, cells: Sequence[Places], noisy: Floats, k: int) -> Floats:
    """The first centres: those of rows drawn from noisy histograms, column by column, clustered without noise."""
    rng = public_generator(noisy.tobytes())
    parts, at = [], 0
    for cell, column in zip(cells, design.columns.values(), strict=True):
        size = int(cell[-1]) + 1
        held = np.maximum(noisy[at : at + size], 0)
        at += size
        shares = held / held.sum() if held.sum() > 0 else np.full(size, 1 / size)
        drawn = rng.choice(size, _DRAWN, p=shares)
        starts = np.searchsorted(cell, np.arange(size))
        width = np.bincount(cell, minlength=size)
        codes = starts[drawn] + (rng.random(_DRAWN) * width[drawn]).astype(np.int64)
        parts.append(column.features[np.minimum(codes, column.size - 1)] / ONE)
    rows = np.hstack(parts)
    centres = [rows[0]]
    for _ in range(1, k):  # k-means++ (Arthur, Vassilvitskii 2007), of drawn rows
        far = np.min([((rows - c) ** 2).sum(axis=1) for c in centres], axis=0)
        centres.append(rows[rng.choice(_DRAWN, p=far / far.sum() if far.sum() > 0 else None)])
    centres_so_far = np.array(centres)
    for _ in range(_FREE_ROUNDS):
        place = ((rows[:, None] - centres_so_far[None]) ** 2).sum(axis=2).argmin(axis=1)
        centres_so_far = np.array(
            [rows[place == j].mean(axis=0) if (place == j).any() else centres_so_far[j] for j in range(k)]
        )
    return centres_so_far


def _moved(sums: Floats, centres: Floats, least: float) -> Floats:
    """The new centres: of noisy sums, within the range; beside the largest cluster's where one has hardly any rows."""
    rng = public_generator(sums.tobytes())
    sizes = sums[:, 0]
    new = np.clip(sums[:, 1:] / np.maximum(sizes, 1)[:, None], -1, 1)
    # Where the noise is as large as the cluster, the old centre counts as well.
    trust = (sizes**2 / (sizes**2 + least**2))[:, None]
    new = np.where(sizes[:, None] > least, trust * new + (1 - trust) * centres, centres)
    largest = int(sizes.argmax())
    for j in itertools.compress(range(len(sizes)), sizes <= least):
        new[j] = np.clip(new[largest] + rng.normal(0, 0.1, new.shape[1]), -1, 1)
    return new
