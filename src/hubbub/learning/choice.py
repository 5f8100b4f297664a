"""Which of several models suits the rows: each is tried on a synthetic table, and the best is fitted on the rows.

The synthetic table is released with noise, so all that is computed from it is free. What is charged is
Composed([synthesis, fit]): a fifth of rho for the table, the rest for the one fit, the same rest for whichever model is
chosen. So it costs the same whatever the table says.

**A trial.** The table's rows are split in two. A model is fitted on one half with the noise that it would have, and its
figure is taken on the other half; then the halves change places. Half of the rows at four times the rho have as many
rows against noise (n sqrt(2 rho)) as all of them have at rho, so that a model which needs little noise is not put at a
disadvantage. The figure is the area under the curve of two classes, accuracy of more, R squared of a number. Of equal
figures the earlier model has it.

What a synthetic table does not hold, it cannot tell: it keeps the relations that were measured, mostly of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.exact import Coded
from hubbub.learning.features import Integers
from hubbub.learning.model import LEVELS, Classes, Problem, fitted_of
from hubbub.learning.pairs import in_design
from hubbub.mechanisms.calibration import Spend
from hubbub.noise import Bits

__all__ = ["SHARE", "Candidates", "figure_of"]

SHARE: Final = Fraction(1, 5)
"""The part of rho that buys the synthetic table."""
_TRIALS: Final = 2


@dataclass(frozen=True, eq=False)
class Candidates:
    """Models of the same target, each priced at what is left for the fit.

    Raises ParameterError for fewer than two, for one that stands twice, that predicts nothing, or another column.
    """

    problems: tuple[Problem, ...]

    def __post_init__(self) -> None:
        if len(self.problems) < 2:
            raise ParameterError("give at least two models to choose from, or one that is not in a list.")
        if len({problem.key for problem in self.problems}) < len(self.problems):
            raise ParameterError("a model stands twice in the list to choose from.")
        ends = {(_named(problem.target), _named(problem.weight)) for problem in self.problems}
        if len(ends) > 1 or None in next(iter(ends))[:1]:
            raise ParameterError(
                "models to choose from predict the same column, with the same weights: these have "
                f"target {', '.join(sorted(str(target) for target, _ in ends))}."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Which columns are read, each once."""
        return tuple(dict.fromkeys(name for problem in self.problems for name in problem.columns))

    @property
    def figure(self) -> str:
        """By which figure is chosen."""
        target = self.problems[0].target
        if not isinstance(target, Classes):
            return "r2"
        return "auc" if len(target.values) == 2 else "accuracy"

    def figures(self, synthetic: Any, *, bits: Bits | None = None) -> list[float]:
        """The figure of each model, from trials on a synthetic table (of Arrow)."""
        return [_tried(problem, synthetic, bits) for problem in self.problems]


def _named(what: Any) -> str | None:
    return None if what is None else str(what.name)


def _tried(problem: Problem, synthetic: Any, bits: Bits | None) -> float:
    rows = problem.encode(synthetic, None)
    figures = []
    for trial in range(_TRIALS):
        learned, held = _half(rows, trial % 2), _half(rows, 1 - trial % 2)
        if not len(learned.label) or not len(held.label):
            return 0.0
        half = replace(problem, spend=Spend(rho=4 * problem.spend.amount), rows=len(learned.label))
        steps = half.steps(learned, bits=bits)
        try:
            while True:  # the events are those of a synthetic table, which costs nothing more
                next(steps)
        except StopIteration as done:
            fitted = fitted_of(problem.estimator, done.value)
            held = in_design(held, fitted.design_)
            figures.append(figure_of(problem, held.scored(fitted._scoring()), held))
    return sum(figures) / len(figures)


def _half(rows: Coded, which: int) -> Coded:
    at = slice(which, None, 2)
    weights = None if rows.weights is None else rows.weights[at]
    return replace(rows, codes=[c[at] for c in rows.codes], label=rows.label[at], weights=weights)


def figure_of(problem: Problem, margins: Integers, rows: Coded) -> float:
    """How well margins (`Estimator._scoring`) tell the labels of rows: the figure of `Candidates.figure`."""
    mass = np.ones(len(rows.label)) if rows.weights is None else rows.weights.astype(np.float64)
    total = max(float(mass.sum()), 1e-9)
    if not isinstance(problem.target, Classes):
        y = (rows.label - LEVELS // 2) / LEVELS
        left = float((mass * (margins[0] / (1 << 24) - y) ** 2).sum())
        return 1 - left / max(float((mass * (y - (mass * y).sum() / total) ** 2).sum()), 1e-9)
    if len(problem.target.values) > 2:
        return float((mass * (margins.argmax(axis=0) == rows.label)).sum()) / total
    _, place = np.unique(margins[0], return_inverse=True)
    negative = np.bincount(place, weights=mass * (rows.label == 0))
    positive = np.bincount(place, weights=mass * (rows.label == 1), minlength=len(negative))
    below = np.cumsum(negative) - negative / 2
    pairs = float(negative.sum() * positive.sum())
    return float((positive * below).sum()) / pairs if pairs else 0.5
