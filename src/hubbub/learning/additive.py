"""Additive models: an effect for each column, of its declared values or bins, which can be looked at and drawn.

The model is logistic regression (a target of classes) or linear regression (a target of declared range) with a feature
for each bin beside the number itself; sensitivity, steps and noise are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.bases import either
from hubbub.learning.descent import Floats
from hubbub.learning.exact import WEIGHT_ONE, Coded
from hubbub.learning.features import ONE, Categories, Design, Scoring
from hubbub.learning.linear import LinearRegression, draw_numbers, excess_of_numbers, mean_alone, predicted_numbers
from hubbub.learning.logistic import LogisticRegression, draw_classes, excess_of_classes, predicted_classes
from hubbub.learning.model import Classes, Estimator, Fit, Problem
from hubbub.noise import Bits

__all__ = ["AdditiveModel"]


class AdditiveModel(Estimator):
    """A sum of effects, one of each column, for two or more classes, or for a number.

    features, target, positive, weight, rows: as of `LogisticRegression`. bins: of columns of numbers: their number or
    edges, by name or for all.

    After a fit: what `LogisticRegression` or `LinearRegression` have, and `effects_`.
    """

    _tasks: ClassVar[tuple[str, ...]] = ("classes", "numbers")

    def __init__(
        self,
        features: Sequence[str] | None = None,
        target: str | None = None,
        *,
        positive: Any = None,
        bins: int | Mapping[str, Any] = 16,
        weight: str | None = None,
        rows: int | None = None,
    ) -> None:
        self.features, self.target, self.positive = features, target, positive
        self.bins, self.weight, self.rows = bins, weight, rows

    def _bins(self, name: str) -> Any:
        return self.bins.get(name, 16) if isinstance(self.bins, Mapping) else self.bins

    def _coordinates(self, problem: Problem) -> tuple[Design, ...]:
        return either(problem.design)

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        if isinstance(problem.target, Classes):
            return predicted_classes(problem, rows)
        return predicted_numbers(problem, rows, "auto", None)

    def _excess(self, problem: Problem, rows: int) -> float | None:
        if isinstance(problem.target, Classes):
            return excess_of_classes(problem, rows)
        return excess_of_numbers(problem, rows, "auto", None)

    def _learns_mean_alone(self, problem: Problem, rows: int) -> bool:
        return not isinstance(problem.target, Classes) and mean_alone(problem, rows, "auto")

    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
        if isinstance(problem.target, Classes):
            return draw_classes(problem, rows, n, bits)
        return draw_numbers(problem, rows, n, bits, "auto", None)

    def _scoring(self) -> Scoring:
        return self._inner._scoring()

    def _exported(self) -> Estimator:
        return self._inner

    def _load(self, kept: Mapping[str, Any]) -> None:
        kind = LinearRegression if kept["classes"] is None else LogisticRegression
        self._inner = kind(self.features, self.target)._take(kept)
        for name in ("coef_", "intercept_", "feature_names_", "n_iter_"):
            setattr(self, name, getattr(self._inner, name))
        if isinstance(self._inner, LinearRegression):
            self.method_ = self._inner.method_
        self.effects_ = self._effects()

    def _effects(self) -> dict[str, dict[str, Floats]]:
        """For each column, what each of its values or bins adds to the score of each class: centred on their mean."""
        weights = self._inner._weights / WEIGHT_ONE
        effects = {}
        for start, (name, column) in zip(self.design_.starts, self.design_.columns.items(), strict=True):
            own = weights[:, start : start + len(column.names)]
            adds = (column.features / ONE) @ own.T
            if isinstance(column, Categories):
                at = {label: adds[i] for i, label in enumerate(column.names)}
            else:
                first = int(column.linear)
                places = [np.flatnonzero(column.features[:-1, first + i]) for i in range(column.bins)]
                labels = column.names[first : first + column.bins]
                at = {label: adds[p].mean(axis=0) for label, p in zip(labels, places, strict=True) if len(p)}
            middle = np.mean(list(at.values()), axis=0)
            effects[name] = {label: effect - middle for label, effect in at.items()}
        return effects

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, or the number predicted for it."""
        return self._fitted()._inner.predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`: (n, classes).

        Raises ParameterError where the target is a number.
        """
        return self._classifier().predict_proba(X)

    def decision_function(self, X: Any) -> Floats:
        """The score of each row, as of `LogisticRegression`."""
        return self._classifier().decision_function(X)

    def _classifier(self) -> LogisticRegression:
        inner = self._fitted()._inner
        if not isinstance(inner, LogisticRegression):
            raise ParameterError(f"{self.target!r} is a number, and has no classes: use predict.")
        return inner

    def plot(self, column: str, *, ax: Any = None) -> Any:
        """The effects of a column's values or bins on the score (needs matplotlib); returns the Axes.

        Raises ParameterError for a column that the model does not look at.
        """
        if column not in self._fitted().effects_:
            raise ParameterError(f"{column!r} is not a column of this model; it has {', '.join(self.effects_)}.")
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if ax is None else ax
        effects = self.effects_[column]
        heights = np.array(list(effects.values()))
        for k in range(heights.shape[1]):
            label = str(self.classes_[k]) if heights.shape[1] > 1 else None
            axes.step(range(len(effects)), heights[:, k], where="mid", label=label)
        if heights.shape[1] > 1:
            axes.legend()
        axes.set_xticks(range(len(effects)), list(effects), rotation=45, ha="right")
        axes.set_ylabel("added to the score")
        return axes
