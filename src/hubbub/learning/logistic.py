"""Logistic regression and additive models, by private gradient descent.

**Binary.** The residual p - y lies within +-1, so one row moves the sum of (residual x features) by at most 2^20 sqrt N
on the grid, N = `Design.norm2` of the coordinates in which it is learned (`hubbub.learning.bases`).

**More classes.** The softmax has a residual for each class, p - e_y, of squared length at most 2: with a the other
classes' probabilities it is |a|^2 + (sum a)^2 <= 2 (sum a)^2 <= 2. In integers, p_k is rounded down for the other
classes and the own class's residual is minus their sum, so the same proof holds of what is computed. One row moves the
sums by at most sqrt 2 2^20 sqrt N, all classes together.

The rest is `hubbub.learning.descent`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import ParameterError, what_was_given
from hubbub.learning.bases import either, turned
from hubbub.learning.descent import Floats, Plan, descend, even_noise, expected_excess, noise_of, plan_descent
from hubbub.learning.exact import SCALE, WEIGHT_ONE, Coded, on_grid, sigmoid, softmax, triangle_squared
from hubbub.learning.features import ONE, Design, Integers, Scoring
from hubbub.learning.model import Classes, Estimator, Fit, Problem
from hubbub.learning.newton import PASSES, newton
from hubbub.noise import Bits

__all__ = ["LogisticRegression", "binary_residual", "softmax_residual"]


def binary_residual(scores: Integers, label: Integers) -> Integers:
    """p - y of each row, within +-2^20: (1, n)."""
    return sigmoid(scores) - label * SCALE


def softmax_residual(scores: Integers, label: Integers) -> Integers:
    """p - e_y of each row, (K, n): rounded toward 0, so that its squared length is at most 2 2^40.

    >>> softmax_residual(np.array([[0], [0]]), np.array([1])).ravel().tolist()
    [524288, -524288]
    """
    residuals = softmax(scores)
    at = np.arange(len(label))
    residuals[label, at] = 0
    residuals[label, at] = -residuals.sum(axis=0)
    return residuals


def descent_squared(problem: Problem, *, fine: bool = False) -> int:
    """The squared sensitivity of one step."""
    assert isinstance(problem.target, Classes)
    residual = 1 if len(problem.target.values) == 2 else 2
    return problem.moved(residual * SCALE**2 * turned(problem.design, fine=fine).norm2)


def plan_classes(problem: Problem, n: float) -> Plan:
    """How descent goes with about n rows."""
    return plan_descent(n / problem.rows_per_unit, float(problem.rho))


def predicted_classes(problem: Problem, rows: int) -> tuple[int, float]:
    """How many passes, and the noise on a sum over rows in one of them, in rows."""
    plan = plan_classes(problem, rows)
    noise = even_noise(problem.rho, plan.steps, descent_squared(problem, fine=plan.fine))
    return plan.steps, math.sqrt(noise.sigma2) / (SCALE * ONE * problem.heaviest)


def excess_of_classes(problem: Problem, rows: int) -> float:
    """How far the logistic loss of a row is expected above the best, per unit of length of the best weights."""
    assert isinstance(problem.target, Classes)
    outputs = len(problem.target.values) if len(problem.target.values) > 2 else 1
    design = turned(problem.design, fine=plan_classes(problem, rows).fine)
    return expected_excess(rows, outputs * design.width, *predicted_classes(problem, rows))


def draw_classes(problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
    """Draw the weights of a target of classes."""
    assert isinstance(problem.target, Classes)
    outputs = len(problem.target.values)
    plan = plan_classes(problem, n)
    weights = yield from descend(
        rows,
        binary_residual if outputs == 2 else softmax_residual,
        outputs=1 if outputs == 2 else outputs,
        rho=problem.rho,
        squared=descent_squared(problem, fine=plan.fine),
        plan=plan,
        n=n * problem.heaviest,
        shares=problem.shares,
        bits=bits,
    )
    return {"weights": [on_grid(w).tolist() for w in weights], "steps": plan.steps}


def draw_newton(problem: Problem, rows: Coded, bits: Bits | None) -> Fit:
    """Draw the weights of two classes in few passes."""
    weights = yield from newton(
        rows,
        rho=problem.rho,
        moment_squared=problem.moved(triangle_squared(turned(problem.design)), acute=True),
        step_squared=descent_squared(problem),
        bits=bits,
    )
    return {"weights": [on_grid(w).tolist() for w in weights], "steps": PASSES}


class LogisticRegression(Estimator):
    """Logistic regression, binary or of several classes.

    features: columns; by default all that are declared. target: a column of declared classes. positive: which of two
    classes figures of `evaluate` are about; by default the last. bins: of columns of numbers, by name or for all: their
    number or edges; a feature each, beside the number itself. method: "descent", or "newton", of nine passes, which can
    also be made where rows stay in Postgres or Spark (two classes). weight: a column of weights. rows: how many there
    are, where that is public; else it is bought.

    After a fit: `classes_` sorted; `coef_` (1 row for two classes, else one a class) and `intercept_`, of the features
    `feature_names_`; `n_iter_`.
    """

    _tasks: ClassVar[tuple[str, ...]] = ("classes",)
    _counterpart: ClassVar[str | None] = "LogisticRegression"

    def __init__(
        self,
        features: Sequence[str] | None = None,
        target: str | None = None,
        *,
        positive: Any = None,
        bins: int | Mapping[str, Any] | None = None,
        method: str = "descent",
        weight: str | None = None,
        rows: int | None = None,
    ) -> None:
        self.features, self.target, self.positive = features, target, positive
        self.bins, self.method, self.weight, self.rows = bins, method, weight, rows

    def _bins(self, name: str) -> Any:
        return self.bins.get(name) if isinstance(self.bins, Mapping) else self.bins

    def _checked(self, problem: Problem) -> None:
        super()._checked(problem)
        assert isinstance(problem.target, Classes)
        if self.method not in ("descent", "newton") or (self.method == "newton" and len(problem.target.values) > 2):
            raise ParameterError(
                f'method={what_was_given(self.method)}: expected "descent", or "newton" for two classes.'
            )

    @property
    def _buys_rows(self) -> bool:  # type: ignore[override]  # Newton's steps are as long as the moments say
        return self.method == "descent"

    def _in_place(self, problem: Problem) -> str | None:
        return None if self.method == "newton" else "method='newton', for two classes"

    def _coordinates(self, problem: Problem) -> tuple[Design, ...]:
        return (turned(problem.design),) if self.method == "newton" else either(problem.design)

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        if self.method == "newton":
            noise = noise_of(problem.rho * Fraction(4, 5) / PASSES, descent_squared(problem))
            return PASSES + 1, math.sqrt(noise.sigma2) / (SCALE * ONE * problem.heaviest)
        return predicted_classes(problem, rows)

    def _excess(self, problem: Problem, rows: int) -> float | None:
        return excess_of_classes(problem, rows) if self.method == "descent" else None

    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
        return draw_newton(problem, rows, bits) if self.method == "newton" else draw_classes(problem, rows, n, bits)

    def _scoring(self) -> Scoring:
        return self.design_.scoring(self._weights)

    def _load(self, kept: Mapping[str, Any]) -> None:
        self._weights = np.array(kept["fit"]["weights"], np.int64)
        self.n_iter_ = int(kept["fit"]["steps"])
        self.feature_names_ = list(self.design_.names[1:])
        self.coef_ = self._weights[:, 1:] / WEIGHT_ONE
        self.intercept_ = self._weights[:, 0] / WEIGHT_ONE

    def decision_function(self, X: Any) -> Floats:
        """The score of each row: n numbers for two classes, else (n, classes)."""
        scores = self._fitted()._codes(X).scores(self._weights) / (ONE * WEIGHT_ONE)
        return np.array(scores[0] if len(scores) == 1 else scores.T)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`: (n, classes)."""
        scores = self.decision_function(X)
        both = np.stack([np.zeros(len(scores)), scores], axis=1) if scores.ndim == 1 else scores
        parts = np.exp(both - both.max(axis=1, keepdims=True))
        return np.array(parts / parts.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
