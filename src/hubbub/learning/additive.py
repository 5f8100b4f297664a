"""Additive models: an effect for each column, of its declared values or bins, which can be looked at and drawn.

A pair of columns can be looked at as a column of its own: what a value or bin of the one adds beside each of the other.
Its code is a function of one row, and the longest row of all columns and pairs is known exactly (`Design.norm2`): so
sensitivity, steps and noise are those of a model with one more column, and one unit moves no sum further. Which pairs
there are is said by the caller, before any row is read; or they are looked for with a part of the amount
(`hubbub.learning.pairs`).

The model is logistic regression (a target of classes) or linear regression (a target of declared range) with a feature
for each bin beside the number itself; sensitivity, steps and noise are theirs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting import Event
from hubbub.errors import ParameterError, what_was_given
from hubbub.learning.bases import either
from hubbub.learning.cells import AUTO, EQUAL, bins_are_bought, cut, in_equal_bins, longest, the_rest, with_cells
from hubbub.learning.descent import Floats
from hubbub.learning.exact import WEIGHT_ONE, Coded
from hubbub.learning.features import ONE, Categories, Column, Design, Numbers, Pair, Scoring, column_of
from hubbub.learning.linear import (
    LinearRegression,
    check_noise_of_numbers,
    draw_numbers,
    excess_of_numbers,
    mean_alone,
    predicted_numbers,
)
from hubbub.learning.logistic import LogisticRegression, draw_classes, excess_of_classes, predicted_classes
from hubbub.learning.model import Classes, Estimator, Fit, Problem
from hubbub.learning.pairs import check_noise_of_tables, first_of, longest_pairs, pairs_are_sought, rest_of, seek
from hubbub.noise import Bits
from hubbub.tables.columns import Between, Declaration

__all__ = ["AdditiveModel"]

_PAIR_BINS = 6


class AdditiveModel(Estimator):
    """A sum of effects, one of each column, for two or more classes, or for a number.

    features, target, positive, weight, rows: as of `LogisticRegression`. bins: of columns of numbers: their number or
    edges, by name or for all; "auto": 16 equal ones, 32 where rows tell so many apart, and with many rows more, where
    the rows are (`hubbub.learning.cells`). pairs: two columns each that are also looked at together, as in
    pairs=[("age", "job")]: numbers in 6 bins at most, or in the edges that `bins` says. Name those that are known to
    act together: nothing is looked up in the rows. "auto": those of which noisy tables say so, which a quarter of the
    cost buys where rows are many (`hubbub.learning.pairs`).

    After a fit: what `LogisticRegression` or `LinearRegression` have, `effects_`, and in `pairs_` its pairs.
    """

    _tasks: ClassVar[tuple[str, ...]] = ("classes", "numbers")

    def __init__(
        self,
        features: Sequence[str] | None = None,
        target: str | None = None,
        *,
        positive: Any = None,
        bins: int | str | Mapping[str, Any] = AUTO,
        weight: str | None = None,
        rows: int | None = None,
        pairs: Sequence[Sequence[str]] | str | None = None,
    ) -> None:
        self.features, self.target, self.positive = features, target, positive
        self.bins, self.weight, self.rows, self.pairs = bins, weight, rows, pairs

    def _bins(self, name: str) -> Any:
        return self.bins.get(name, AUTO) if isinstance(self.bins, Mapping) else self.bins

    def _column(self, name: str, declared: Declaration | None, whole: bool) -> Column:
        bins = self._bins(name)
        if bins != AUTO:
            return column_of(name, declared, linear=True, bins=bins, whole=whole)
        column = column_of(name, declared, linear=True, bins=EQUAL, whole=whole)
        # Declared edges stay, and so does a bin for each whole number, which ends beyond the range.
        if isinstance(declared, Between) and isinstance(column, Numbers) and column.edges[-1] == column.high:
            return with_cells(column, whole)
        return column

    def _pairs(
        self, columns: Mapping[str, Declaration], used: Sequence[str], whole: frozenset[str]
    ) -> dict[str, Column]:
        pairs: dict[str, Column] = {}
        for pair in [] if self._seeks else _listed(self.pairs):
            names = _listed(pair)
            key, back = " x ".join(map(str, names)), " x ".join(map(str, names[::-1]))
            known = all(isinstance(n, str) and n in used for n in names)
            if len(names) != 2 or not known or names[0] == names[1] or {key, back} & {*used, *pairs}:
                said = ", ".join(map(what_was_given, names[:3]))
                raise ParameterError(
                    f'pairs: ({said:.80}) is not a pair of features, or stands twice. Write pairs=[("age", "job")].'
                )
            first, second = (self._part(n, columns[n], n in whole) for n in names)
            pairs[key] = Pair((names[0], names[1]), (first, second))
        return pairs

    @property
    def _seeks(self) -> bool:
        """Whether pairs are looked for, if rows are many."""
        return isinstance(self.pairs, str) and self.pairs == AUTO

    def _part(self, name: str, declared: Declaration, whole: bool) -> Any:
        bins = self._bins(name)
        few = min(_PAIR_BINS, bins) if isinstance(bins, int) else _PAIR_BINS if bins in (None, AUTO) else bins
        return column_of(name, declared, linear=False, bins=few, whole=whole)

    def _coordinates(self, problem: Problem) -> tuple[Design, ...]:
        paired = either(longest_pairs(problem.design)) if self._seeks else ()
        return (*either(problem.design), *either(longest(problem.design)), *paired)

    def _stages(self, problem: Problem, rows: float) -> list[Problem]:
        """The models that are drawn one after another with about so many rows, the last of which is kept; each as long
        as it can be."""
        settled = _forecast(problem, rows)
        if not self._seeks or not pairs_are_sought(settled, rows):
            return [settled]
        return [first_of(settled), rest_of(settled, longest_pairs(settled.design, wide=True))]

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        stages = self._stages(problem, rows)
        each = [_predicted_once(stage, rows) for stage in stages]
        passes = sum(steps for steps, _ in each) + len(stages) - 1 + int(bins_are_bought(problem, rows))
        return passes, each[-1][1]

    def _check_noise(self, problem: Problem, rows: int) -> None:
        stages = self._stages(problem, rows)
        if len(stages) > 1:
            check_noise_of_tables(_forecast(problem, rows))
        for stage in stages:
            if isinstance(problem.target, Classes):
                predicted_classes(stage, rows)
            else:
                check_noise_of_numbers(stage, rows, "auto", None)

    def _excess(self, problem: Problem, rows: int) -> float | None:
        last = self._stages(problem, rows)[-1]
        if isinstance(problem.target, Classes):
            return excess_of_classes(last, rows)
        return excess_of_numbers(last, rows, "auto", None)

    def _learns_mean_alone(self, problem: Problem, rows: int) -> bool:
        return not isinstance(problem.target, Classes) and mean_alone(problem, rows, "auto")

    def _settled(
        self, problem: Problem, rows: Coded, n: float, bits: Bits | None
    ) -> Generator[Event, None, tuple[Problem, Coded]]:
        problem, rows = yield from cut(problem, rows, n, bits)
        return (yield from seek(problem, rows, n, bits)) if self._seeks else (problem, rows)

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
        self.pairs_ = [name for name, column in self.design_.columns.items() if isinstance(column, Pair)]

    def _effects(self) -> dict[str, dict[str, Floats]]:
        """For each column, what each of its values or bins adds to the score of each class: centred on their mean."""
        weights = self._inner._weights / WEIGHT_ONE
        effects = {}
        for start, (name, column) in zip(self.design_.starts, self.design_.columns.items(), strict=True):
            own = weights[:, start : start + len(column.names)]
            adds = (column.features / ONE) @ own.T
            if isinstance(column, Pair):
                at = {label: own[:, i] for i, label in enumerate(column.names)}
            elif isinstance(column, Categories):
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
            raise ParameterError(f"{what_was_given(self.target)} is a number, and has no classes: use predict.")
        return inner

    def plot(self, column: str, *, ax: Any = None) -> Any:
        """The effects of a column's values or bins on the score (needs matplotlib), of a pair ("age x job") as a map;
        returns the Axes.

        Raises ParameterError for a column that the model does not look at.
        """
        if column not in self._fitted().effects_:
            raise ParameterError(
                f"{what_was_given(column)} is not a column of this model; it has {', '.join(self.effects_)}."
            )
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if ax is None else ax
        effects = self.effects_[column]
        heights = np.array(list(effects.values()))
        pair = self.design_.columns[column]
        if isinstance(pair, Pair) and heights.shape == (len(pair.names), 1):
            return _map(axes, pair, heights)
        for k in range(heights.shape[1]):
            label = str(self.classes_[k]) if heights.shape[1] > 1 else None
            axes.step(range(len(effects)), heights[:, k], where="mid", label=label)
        if heights.shape[1] > 1:
            axes.legend()
        axes.set_xticks(range(len(effects)), list(effects), rotation=45, ha="right")
        axes.set_ylabel("added to the score")
        return axes


def _predicted_once(problem: Problem, rows: int) -> tuple[int, float]:
    if isinstance(problem.target, Classes):
        return predicted_classes(problem, rows)
    return predicted_numbers(problem, rows, "auto", None)


def _forecast(problem: Problem, rows: float) -> Problem:
    """What is drawn with about so many rows: after edges were bought, if they are, of as many bins as there are in any
    case."""
    if not bins_are_bought(problem, rows):
        return in_equal_bins(problem, rows)
    return the_rest(replace(problem, design=longest(problem.design)))


def _listed(what: Any) -> list[Any]:
    """What is in a list; anything else is one thing."""
    return [] if what is None else list(what) if isinstance(what, list | tuple) else [what]


def _map(axes: Any, pair: Pair, heights: Floats) -> Any:
    """What each two values or bins add, the first column's from top to bottom."""
    first, second = (part.names for part in pair.parts)
    image = axes.imshow(heights.reshape(len(first), len(second)), aspect="auto")
    axes.set_yticks(range(len(first)), list(first))
    axes.set_xticks(range(len(second)), list(second), rotation=45, ha="right")
    axes.set_ylabel(pair.names_in[0])
    axes.set_xlabel(pair.names_in[1])
    axes.figure.colorbar(image, ax=axes, label="added to the score")
    return axes
