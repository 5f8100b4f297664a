"""Naive Bayes: one noisy histogram of classes and columns, or their noisy moments. Pure budgets too.

**CategoricalNB.** A row adds 1 to its class's count, and for each of k columns 1 to one count of its class: k + 1
counts in all, so it moves the vector of all counts by k + 1 in l1 and by sqrt(k + 1) in l2. A unit with R rows moves it
by R times that; under replace by twice as much in l1, and by sqrt 2 as much in l2, for counts only grow.

**GaussianNB.** A row adds to its class's sums 2^16 (1, x_j, x_j^2), where x_j lies in [-1, 1] in steps of 2^-8: whole
numbers of at most 2^16, 1 + 2 d of them, so 2^16 (1 + 2 d) in l1 and 2^16 sqrt(1 + 2 d) in l2. The square comes from a
public table. No square is rounded, for that would take from every variance.

Noise: `hubbub.mechanisms.calibration`. Probabilities and moments are post-processing.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import ParameterError, PolicyError, what_was_given
from hubbub.learning.descent import Floats, whole_variance, within_bits
from hubbub.learning.exact import Coded
from hubbub.learning.features import ONE, Integers, Numbers, Scoring
from hubbub.learning.model import Classes, Estimator, Fit, Problem
from hubbub.mechanisms.calibration import Calibrated, calibrated
from hubbub.noise import Bits

__all__ = ["CategoricalNB", "GaussianNB"]

_LEAST_VARIANCE = 1e-4
_FINE = 1 << 24
_UNIT = ONE**2
"""What a row adds to the number of rows of its class, beside its moments."""


class _NaiveBayes(Estimator):
    """What both have in common: class counts, and log likelihoods that are looked up by code."""

    _tasks: ClassVar[tuple[str, ...]] = ("classes",)
    _buys_rows: ClassVar[bool] = False

    _tables: list[Floats]
    _prior: Floats

    @abstractmethod
    def noise(self, problem: Problem) -> Calibrated:
        """The noise on every sum."""

    def _checked(self, problem: Problem) -> None:
        """Any budget will do."""

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        noise = self.noise(problem)
        return 1, deviation(noise) / problem.heaviest

    def _likelihoods(self) -> Scoring:
        """The logarithm of prior times likelihood of each class, in multiples of 2^-24."""
        return Scoring(tuple(_whole(self._prior).tolist()), tuple(_whole(table) for table in self._tables))

    def _scoring(self) -> Scoring:
        each = self._likelihoods()
        if len(each.starts) != 2:
            return each
        return Scoring((each.starts[1] - each.starts[0],), tuple(t[1:] - t[:1] for t in each.tables))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class, in the order of `classes_`: (n, classes)."""
        scores = self._fitted()._codes(X).scored(self._likelihoods()).T / _FINE
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.array(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`: (n, classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]


def _whole(logs: Floats) -> Integers:
    """Logarithms as whole numbers, in multiples of 2^-24; none beyond 2^10."""
    return np.asarray(np.rint(np.clip(logs, -1024, 1024) * _FINE), np.int64)


def deviation(noise: Calibrated) -> float:
    """The standard deviation of the noise."""
    return math.sqrt(noise.law.variance)


class CategoricalNB(_NaiveBayes):
    """Naive Bayes of declared values and of numbers in bins.

    features, target, positive, weight: as of `LogisticRegression`. bins: of columns of numbers: their number or edges.
    alpha: what is added to every count, beside as much as the noise makes likely.

    After a fit: `classes_`, `class_log_prior_`, `feature_log_prob_` (an array for each column, (classes, codes)).
    """

    _linear: ClassVar[bool] = False

    def __init__(
        self,
        features: Sequence[str] | None = None,
        target: str | None = None,
        *,
        positive: Any = None,
        bins: int | Mapping[str, Any] = 5,
        alpha: float = 1.0,
        weight: str | None = None,
    ) -> None:
        self.features, self.target, self.positive = features, target, positive
        self.bins, self.alpha, self.weight = bins, alpha, weight

    def _bins(self, name: str) -> Any:
        return self.bins.get(name, 5) if isinstance(self.bins, Mapping) else self.bins

    def _checked(self, problem: Problem) -> None:
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not self.alpha > 0:
            raise ParameterError(f"alpha={what_was_given(self.alpha)}: expected a number above 0, such as 1.")

    def noise(self, problem: Problem) -> Calibrated:
        """The noise on every count."""
        counts = len(problem.design.columns) + 1
        noise = calibrated(
            spend=problem.spend.of_amount(problem.parts[1]),
            l1=counts * problem.reach,
            l2_squared=problem.moved(counts, acute=True),
        )
        return within_bits(noise)

    def _in_place(self, problem: Problem) -> str | None:
        return None

    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
        assert isinstance(problem.target, Classes)
        noise = self.noise(problem)
        yield noise.event
        exact: list[int] = []
        for sums in rows.by_class(len(problem.target.values)):
            exact += [sums.total, *(int(v) for of_code in sums.of_code for v in of_code)]
        noisy = noise.release(exact, bits=bits)
        return {"counts": list(noisy), "deviation": deviation(noise)}

    def _load(self, kept: Mapping[str, Any]) -> None:
        counts = np.array(kept["fit"]["counts"], np.float64).reshape(len(self.classes_), -1)
        smooth = self.alpha + float(kept["fit"]["deviation"])
        self.class_log_prior_ = self._prior = _logs(counts[:, :1].T, smooth)[0]
        ends = np.cumsum([1, *(c.size for c in self.design_.columns.values())])
        self.feature_log_prob_ = [_logs(counts[:, a:b], smooth) for a, b in itertools.pairwise(ends)]
        self._tables = self.feature_log_prob_


def _logs(counts: Floats, smooth: float) -> Floats:
    """The logarithms of the shares of each row's counts, none below 0."""
    parts = np.maximum(counts, 0) + smooth
    return np.array(np.log(parts / parts.sum(axis=1, keepdims=True)))


class GaussianNB(_NaiveBayes):
    """Naive Bayes of numbers, each with a normal law in each class.

    features, target, positive, weight: as of `LogisticRegression`; all features are columns of numbers.

    After a fit: `classes_`, `class_prior_`, `theta_` and `var_`, the means and variances of each class and column, in
    the columns' own units.
    """

    _counterpart: ClassVar[str | None] = "GaussianNB"

    def __init__(
        self,
        features: Sequence[str] | None = None,
        target: str | None = None,
        *,
        positive: Any = None,
        weight: str | None = None,
    ) -> None:
        self.features, self.target, self.positive, self.weight = features, target, positive, weight

    def _checked(self, problem: Problem) -> None:
        other = [n for n, c in problem.design.columns.items() if not isinstance(c, Numbers)]
        if other:
            raise PolicyError(
                f"GaussianNB takes columns of numbers, and {other[0]!r} is not one: use CategoricalNB, or leave it out."
            )

    def noise(self, problem: Problem) -> Calibrated:
        """The noise on every sum."""
        sums = 1 + 2 * len(problem.design.columns)
        noise = calibrated(
            spend=problem.spend.of_amount(problem.parts[1]),
            l1=_UNIT * sums * problem.reach,
            l2_squared=problem.moved(_UNIT**2 * sums),
            rounded=whole_variance,
        )
        return within_bits(noise)

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        return 1, deviation(self.noise(problem)) / (problem.heaviest * _UNIT)

    def _in_place(self, problem: Problem) -> str | None:
        return None

    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
        assert isinstance(problem.target, Classes)
        noise = self.noise(problem)
        yield noise.event
        tables = [_moments(c) for c in problem.design.columns.values() if isinstance(c, Numbers)]
        exact: list[int] = []
        for sums in rows.by_class(len(problem.target.values)):
            exact.append(_UNIT * sums.total)
            for of_code, table in zip(sums.of_code, tables, strict=True):
                exact += [int(v) for v in table.T @ of_code]
        return {"sums": list(noise.release(exact, bits=bits)), "deviation": deviation(noise), "unit": _UNIT}

    def _load(self, kept: Mapping[str, Any]) -> None:
        unit = int(kept["fit"].get("unit", ONE))  # what was stored before it was said
        sums = np.array(kept["fit"]["sums"], np.float64).reshape(len(self.classes_), -1) / unit
        noise = float(kept["fit"]["deviation"]) / unit
        counts = np.maximum(sums[:, :1], max(noise, 1.0))
        mean = np.clip(sums[:, 1::2] / counts, -1, 1)
        # A class of few rows has the moments that any would: the noise on them is as large as they are.
        trust = counts**2 / (counts**2 + (noise * 4) ** 2)
        spread = np.clip(sums[:, 2::2] / counts - mean**2, _LEAST_VARIANCE, 1)
        variance = trust * spread + (1 - trust) / 3
        mean = trust * mean
        self.class_prior_ = (counts / counts.sum()).ravel()
        self._prior = np.log(self.class_prior_)
        columns = [c for c in self.design_.columns.values() if isinstance(c, Numbers)]
        half = np.array([float(c.high - c.low) / 2 for c in columns])
        middle = np.array([float(c.high + c.low) / 2 for c in columns])
        self.theta_, self.var_ = mean * half + middle, variance * half**2
        self._tables = []
        for j, column in enumerate(columns):
            x = column.features[:, 0] / ONE
            law = -((x - mean[:, j : j + 1]) ** 2) / (2 * variance[:, j : j + 1]) - np.log(variance[:, j : j + 1]) / 2
            law[:, -1] = 0  # a missing number says nothing
            self._tables.append(law)


def _moments(column: Numbers) -> Integers:
    """x and x^2 of each code, in whole numbers within +-2^16; a missing number has neither."""
    x = column.features[:, 0]
    table = np.stack([ONE * x, x * x], axis=1)
    table[-1] = 0
    return table
