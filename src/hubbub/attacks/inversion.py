"""Model inversion: a linear model, a person's outcome and the rest of their record give a secret attribute (A9).

Fredrikson, Lantz, Jha, Lin, Page, Ristenpart 2014 ("Privacy in pharmacogenetics"), for a model y = b + w . x + error:
the attacker knows a target's y and all attributes but x_j, and takes the value v with the largest

    prior(v) exp(-(y - b - w . x[x_j = v])^2 / (2 sigma^2)).

Some of that is science: a model that is right about the population predicts for anybody. What training gives away is
the difference between people in the training data and others (Yeom, Giacomelli, Fredrikson, Jha 2018, "attribute
advantage"). A model with at least as many weights as people fits them exactly; the true value leaves no residual, and
every secret is found.

**Ceiling.** A model that is (epsilon, delta)-DP under replace: |P(right | in) - P(right | out)| is at most
(e^epsilon - 1 + 2 delta)/(e^epsilon + 1).

**A private model** (`fit_linear` with epsilon): X^T X and X^T y of whole numbers with |x_j| <= 1, |y| <= B, plus
discrete Laplace noise, then ridge regression. One row moves the d(d+1)/2 products and the d moments by at most
d(d+1)/2 + dB in l1 (add/remove), twice that under replace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, amount, count
from hubbub.attacks.ceilings import advantage_ceiling
from hubbub.attacks.inputs import Flags, Floats, numbers, same_length
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import Bits

__all__ = ["LinearModel", "ModelInversion", "fit_linear", "invert_model"]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """y = intercept + weights . x."""

    weights: Floats
    intercept: float = 0.0

    def predict(self, features: Any) -> Floats:
        """Outcomes for features of shape (people, d)."""
        return np.asarray(self.intercept + numbers(features, "features", dimensions=2) @ self.weights)


@dataclass(frozen=True, eq=False)
class ModelInversion:
    """Guesses of a secret attribute. right: which hold. members: who was trained on, where that was given."""

    guesses: Floats
    right: Flags
    members: Flags | None

    @property
    def success(self) -> float:
        """The share of targets whose attribute was guessed rightly; of members where they are known."""
        return float(self.right.mean() if self.members is None else self.right[self.members].mean())

    @property
    def advantage(self) -> float:
        """The share right among members less that among others: what being trained on gave away."""
        if self.members is None:
            raise ParameterError("members= was not given, so members cannot be compared with others. Give it.")
        return self.success - float(self.right[~self.members].mean())

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected `advantage` where replacing a row costs epsilon."""
        return advantage_ceiling(epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The advantage beside its ceiling over epsilon."""
        from hubbub import plots

        grid = [i / 25 for i in range(151)]
        lines = [
            ("ceiling for private answers", grid, [self.ceiling(e) for e in grid]),
            ("this model", grid, [self.advantage] * len(grid)),
        ]
        title = "What training gave away"
        return plots.curves(lines, title=title, xlabel="epsilon (replace)", ylabel="advantage", ax=ax)


def invert_model(
    model: LinearModel,
    features: Any,
    outcomes: Any,
    *,
    position: int,
    values: Sequence[float],
    prior: Sequence[float] | None = None,
    sigma: float | None = None,
    members: Any = None,
) -> ModelInversion:
    """Guesses the attribute at `position` of every target from a linear model, the outcome and the other attributes.

    features: shape (people, d); the column at `position` is the truth, to count what is right. values: what the
    attribute may be. prior: their probabilities, with sigma, the standard deviation of the model's error; without a
    prior all are alike and sigma does not matter. members: which people the model was trained on.

    >>> model = LinearModel(np.array([1.0, 10.0]))
    >>> invert_model(model, [[3, 0], [3, 1]], [3, 13], position=1, values=[0, 1]).success
    1.0
    """
    x, y = numbers(features, "features", dimensions=2), numbers(outcomes, "outcomes")
    same_length(features=x, outcomes=y)
    if x.shape[1] != len(model.weights) or not 0 <= position < x.shape[1] or not len(values):
        raise ParameterError(
            f"features of {x.shape[1]} columns, position {position} were given; the model has {len(model.weights)} "
            "weights. Give one column for each, and at least one value."
        )
    if (prior is None) != (sigma is None) or (prior is not None and len(prior) != len(values)):
        raise ParameterError("give prior, one probability for each value, together with sigma; or neither.")
    others = y - model.predict(x) + x[:, position] * model.weights[position]
    residuals = others[:, None] - np.asarray(values, dtype=np.float64)[None, :] * model.weights[position]
    score = -(residuals**2)
    if prior is not None and sigma is not None:
        with np.errstate(divide="ignore"):
            score = np.log(numbers(prior, "prior")) + score / (2 * sigma**2)
    guesses = np.asarray(values, dtype=np.float64)[np.argmax(score, axis=1)]
    inside = None if members is None else np.asarray(members, dtype=bool)
    if inside is not None:
        same_length(features=x, members=inside)
    return ModelInversion(guesses, guesses == x[:, position], inside)


def fit_linear(
    features: Any,
    outcomes: Any,
    *,
    epsilon: Number | None = None,
    bound: int | None = None,
    ridge: float = 1.0,
    bits: Bits | None = None,
) -> LinearModel:
    """The linear model of least squares, exact (the shortest one that fits best), or private at `epsilon` (replace).

    For a private model features are whole numbers in [-1, 1] and outcomes whole numbers in [-bound, bound]; `ridge` is
    added to the diagonal in units of the noise's scale.

    Raises ParameterError for numbers outside these bounds: they would not be protected.
    """
    x, y = numbers(features, "features", dimensions=2), numbers(outcomes, "outcomes")
    same_length(features=x, outcomes=y)
    if epsilon is None:
        return LinearModel(np.asarray(np.linalg.lstsq(x, y, rcond=None)[0]))
    most = count(bound if bound is not None else 0, "bound")
    if not (bool(np.isin(x, (-1, 0, 1)).all()) and bool((y == np.rint(y)).all()) and bool((np.abs(y) <= most).all())):
        raise ParameterError(
            f"a private model takes features -1, 0, 1 and whole outcomes up to {most}; round and clamp."
        )
    d = x.shape[1]
    upper = np.triu_indices(d)
    exact = np.concatenate([(x.T @ x)[upper], x.T @ y]).astype(np.int64)
    sensitivity = 2 * (len(upper[0]) + d * most)
    noise = LaplaceMechanism(sensitivity=sensitivity, epsilon=epsilon, cells=len(exact))
    noisy = np.asarray(noise.release(exact, bits=bits), dtype=np.float64)
    gram = np.zeros((d, d))
    gram[upper] = noisy[: len(upper[0])]
    gram = gram + np.triu(gram, 1).T
    # The spectrum of a symmetric noise matrix reaches about 2 sd sqrt(d); that much keeps the system positive.
    floor = ridge * 2 * float(sensitivity / amount(epsilon, "epsilon")) * np.sqrt(2 * d)
    return LinearModel(np.asarray(np.linalg.solve(gram + floor * np.eye(d), noisy[len(upper[0]) :])))
