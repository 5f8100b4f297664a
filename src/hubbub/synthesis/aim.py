"""Adaptive choice of marginals (AIM: McKenna, Mullins, Sheldon, Miklau 2022, "AIM: an adaptive and iterative mechanism
for differentially private synthetic data").

In each round: choose, by the exponential mechanism, a marginal r that the model of the answers so far gets wrong,

    score(r) = w_r (||n_r - m_r||_1 - sqrt(2/pi) sigma c_r),

n_r exact and m_r the model's counts over its c_r cells, sigma the noise that a measurement of this round would have,
w_r = sum over the workload's s of |r intersect s|; the penalty and the weights are public, so one unit moves a score by
at most R max w (2 R max w under replace). Measure it, fit again. Where a round changed the model less than its noise
would, the next rounds cost four times as much (annealing); the last one spends what is left.

Candidates are pairs and triples over parts whose graph keeps its cliques small. The workload is all pairs and triples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.synthesis.graphical import Model, cliques_of
from hubbub.synthesis.measurements import Curator, Measurement
from hubbub.synthesis.setting import Fitted, Setting

__all__ = ["candidates_of", "fit_adaptive"]

Clique = tuple[int, ...]
_CHOOSING = Fraction(1, 10)
_ANNEAL = 4


@dataclass
class _Run:
    """The state of the rounds; all of it is public."""

    setting: Setting
    model: Model
    measured: list[Measurement] = field(default_factory=list)

    @property
    def graph(self) -> list[Clique]:
        return [*self.setting.masks, *(self.setting.places(m.columns) for m in self.measured)]

    def refit(self, iterations: int) -> None:
        self.model = self.setting.fit(self.measured, start=self.model.theta, iterations=iterations)

    def counts(self, clique: Clique) -> NDArray[np.float64]:
        return max(self.setting.total, 0.0) * self.model.marginal(clique)


def candidates_of(setting: Setting) -> list[Clique]:
    """All pairs and triples of columns with two parts at least, whose table fits into a clique."""
    varied = [j for j, size in enumerate(setting.sizes) if size > 1]
    sets_of_columns = [*combinations(varied, 2), *combinations(varied, 3)]
    return [c for c in sets_of_columns if math.prod(setting.sizes[a] for a in c) <= setting.cells]


def fit_adaptive(
    curator: Curator,
    setting: Setting,
    rho: Fraction,
    *,
    rounds: int | None = None,
    seed: Sequence[Measurement] = (),
    iterations: int = 100,
) -> Fitted:
    """Spend rho on marginals chosen one after another, in at most `rounds` rounds (default: two for each column).

    seed: measurements that the first model starts from.
    """
    run = _Run(setting, setting.fit(seed, iterations=iterations), list(seed))
    weights = _weights(candidates_of(setting), len(setting.sizes))
    each = rho / (rounds or 2 * len(setting.sizes))
    left = rho
    while left > 0:
        fitting = _fitting(run, list(weights))
        if not fitting:
            break
        step = left if left < 2 * each else each
        left -= step
        before, answer = _round(curator, run, fitting, weights, step)
        run.refit(iterations if left == 0 else max(20, iterations // 4))
        after = run.counts(setting.places(answer.columns))
        # The same marginal moved less than noise moves it: the steps are too small to see anything.
        if np.abs(after - before).sum() < _expected(answer.variance, answer.counts.size):
            each *= _ANNEAL
    return Fitted(run.model, tuple(run.measured), tuple(run.measured))


def _round(
    curator: Curator, run: _Run, candidates: Sequence[Clique], weights: Mapping[Clique, int], rho: Fraction
) -> tuple[NDArray[np.float64], Measurement]:
    """One choice and its measurement, at rho together; the model's counts before it, and the answer."""
    measuring = rho * (1 - _CHOOSING)
    noise = float(curator.noise(measuring).sigma2)
    models = [run.counts(c) for c in candidates]
    penalties = [round(_expected(noise, m.size)) for m in models]
    chosen = curator.choose(
        [run.setting.names(c) for c in candidates],
        [np.rint(m).astype(np.int64) for m in models],
        penalties,
        run.setting.parts,
        rho * _CHOOSING,
        weights=[weights[c] for c in candidates],
    )
    (answer,) = curator.measure([run.setting.names(candidates[chosen])], run.setting.parts, [measuring])
    run.measured.append(answer)
    return models[chosen], answer


def _fitting(run: _Run, candidates: Sequence[Clique]) -> list[Clique]:
    """Those candidates whose graph, with all measured so far, keeps its cliques small."""
    sizes, graph = run.setting.sizes, run.graph
    cliques = cliques_of(graph, sizes)
    return [
        c
        for c in candidates
        if any(set(c) <= set(k) for k in cliques)
        or max(math.prod(sizes[a] for a in k) for k in cliques_of([*graph, c], sizes)) <= run.setting.cells
    ]


def _weights(candidates: Sequence[Clique], columns: int) -> dict[Clique, int]:
    """w_r for the workload of all pairs and triples of `columns` columns, over their common divisor."""
    others = columns - 1
    # Each column of r is in that many pairs and triples.
    each = others + others * (others - 1) // 2
    raw = {c: len(c) * each for c in candidates}
    common = math.gcd(*raw.values()) if raw else 1
    return {c: w // max(1, common) for c, w in raw.items()}


def _expected(variance: float, cells: int) -> float:
    """E||Z||_1 of normal noise on so many cells."""
    return math.sqrt(2 * variance / math.pi) * cells
