"""Published and well-known broken mechanisms, as exact output laws. Each claims epsilon; none keeps it.

Sparse vector, as numbered by Lyu, Su, Li 2017 (sensitivity 1): 3 (Roth's 2011 notes), 4 (Lee, Clifton 2014), 5
(Stoddard et al. 2014), 6 (Chen et al. 2015), and generalised private threshold testing (Chen, Machanavajjhala 2015).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.noise import DiscreteLaplace, Geometric

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BrokenSparseVector:
    """Threshold 0, noise on the threshold and on the answers (None: no noise), and what a Yes shows."""

    threshold: Fraction
    answer: Fraction | None
    shows_value: bool = False

    def log_prob(self, output: Sequence[bool | int], data: Sequence[int]) -> float:
        """ln P(output): a sum over the noisy threshold. A numeric answer is the very value that was compared."""
        law = DiscreteLaplace(self.threshold)
        width = math.ceil(60 * float(self.threshold)) + len(data)
        r = np.arange(-width, width + 1)
        logs = np.asarray(law.log_pmf(r))
        with np.errstate(divide="ignore"):
            for answer, value in zip(output, data, strict=True):
                logs = logs + self._answer(answer, value, r)
        top = float(logs.max())
        return -math.inf if top == -math.inf else top + math.log(float(np.exp(logs - top).sum()))

    def _answer(self, answer: bool | int, value: int, r: NDArray[np.int64]) -> Floats:
        if self.answer is None:
            return np.where((value >= r) == answer, 0.0, -np.inf)
        law = DiscreteLaplace(self.answer)
        if type(answer) is not bool:
            return np.where(answer >= r, float(law.log_pmf(answer - value)), -np.inf)
        return np.log(np.asarray(law.tail(r - value - 1) if answer else law.cdf(r - value - 1)))


def algorithm_3(epsilon: Fraction, c: int) -> BrokenSparseVector:
    """Shows the noisy value that passed."""
    return BrokenSparseVector(2 / epsilon, 2 * c / epsilon, shows_value=True)


def algorithm_4(epsilon: Fraction) -> BrokenSparseVector:
    """Noise on the answers does not grow with c: epsilon (1 + 6c) / 4."""
    return BrokenSparseVector(4 / epsilon, 4 / (3 * epsilon))


def algorithm_5(epsilon: Fraction) -> BrokenSparseVector:
    """No noise on the answers, no end."""
    return BrokenSparseVector(2 / epsilon, None)


def algorithm_6(epsilon: Fraction) -> BrokenSparseVector:
    """Noise as if for one answer, no end."""
    return BrokenSparseVector(2 / epsilon, 2 / epsilon)


def generalised_threshold_testing(first: Fraction, second: Fraction) -> BrokenSparseVector:
    """Any split of epsilon, no end: the same flaw as algorithm 6."""
    return BrokenSparseVector(1 / first, 1 / second)


def noisy_max_with_value(scores: Sequence[int], law: DiscreteLaplace | Geometric, outputs: NDArray[np.int64]) -> Floats:
    """ln P(largest noisy score = output): it gives the value away."""
    with np.errstate(divide="ignore", invalid="ignore"):
        upto = sum(np.log(np.asarray(law.cdf(outputs - s))) for s in scores)
        below = sum(np.log(np.asarray(law.cdf(outputs - s - 1))) for s in scores)
        logs = upto + np.log(-np.expm1(np.minimum(below - upto, 0.0)))
        return np.asarray(np.where(upto > -np.inf, logs, -np.inf))


def small_database(row_counts: Sequence[int], *, epsilon: float, size: int, factor: float) -> Floats:
    """ln P(y) over all synthetic tables of `size` rows from two values.

    The weight of y is exp(-epsilon n max_q |q(y) - q(x)| / factor).
    Queries: the share of each value. With factor 2 it is the exponential mechanism; the sources' weight has factor 1.
    """
    n = sum(row_counts)
    errors = np.array([abs(k / size - row_counts[0] / n) for k in range(size + 1)])
    tables = np.array([math.comb(size, k) for k in range(size + 1)])
    logs = np.log(tables) - epsilon * n * errors / factor
    return np.asarray(logs - np.log(np.exp(logs).sum()))
