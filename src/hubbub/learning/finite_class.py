"""Private PAC learning of a finite class by the exponential mechanism (Kasiviswanathan et al. 2011, Theorem 3.4).

A class C of functions x -> {0, 1}, n labelled examples from an unknown law. The score of h is minus its number of
mistakes; one example moves it by at most 1. With r = epsilon / 2 (replace; epsilon under add/remove),

    mistakes(chosen) <= mistakes(best) + (ln|C| + ln(1/beta)) / r       with probability 1 - beta.

If the labels come from some c* in C, the true error of the chosen h is at most alpha with probability 1 - beta once

    n >= 2 ln(4|C|/beta) / alpha^2      (all true errors within alpha/2 of the empirical ones, Hoeffding), and
    n >= 4 (ln|C| + ln(2/beta)) / (alpha epsilon)      (the chosen h errs on at most alpha n / 2 examples).

The second is 4 ln|C| / (alpha epsilon), not ln|C| / (4 alpha epsilon) as one of the sources prints.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev
from hubbub.accounting.amounts import amount
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms import ExponentialMechanism
from hubbub.mechanisms.calibrate import whole_number
from hubbub.noise import Bits
from hubbub.queries import Neighbours

__all__ = ["FiniteClassLearner", "Hypothesis", "halfspaces", "learning_sample_size"]

Hypothesis = Callable[[Any], Any]


@dataclass(frozen=True, init=False)
class FiniteClassLearner:
    """Picks one of finitely many hypotheses, each a function from an array of n examples to n truth values.

    A hypothesis must be row-wise: its answer for an example may depend on that example alone, or one example could
    change every mistake. Only the shape can be checked.
    """

    hypotheses: tuple[Hypothesis, ...]
    mechanism: ExponentialMechanism

    def __init__(
        self, *, hypotheses: Sequence[Hypothesis], epsilon: Number, neighbours: Neighbours = "replace"
    ) -> None:
        if not hypotheses:
            raise ParameterError("a class of no hypotheses was given; give at least one.")
        if neighbours not in ("add_remove", "replace"):
            raise ParameterError(
                f"neighbours = {what_was_given(neighbours)} was asked; it is 'add_remove' or 'replace'."
            )
        chosen = ExponentialMechanism(epsilon=epsilon, sensitivity=1, monotone=neighbours == "add_remove")
        object.__setattr__(self, "hypotheses", tuple(hypotheses))
        object.__setattr__(self, "mechanism", chosen)

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return self.mechanism.loss

    def mistakes(self, examples: Any, labels: Any) -> NDArray[np.int64]:
        """How many labels each hypothesis gets wrong, int64 of shape (|C|,). labels: n truth values."""
        truth = np.asarray(labels)
        if truth.dtype != np.bool_:
            raise ParameterError(f"labels are {truth.dtype}; give truth values.")
        guesses = [np.asarray(h(examples)) for h in self.hypotheses]
        for predictions in guesses:
            if predictions.dtype != np.bool_ or predictions.shape != truth.shape:
                raise ParameterError("a hypothesis gives one truth value per example.")
        return np.array([int((predictions != truth).sum()) for predictions in guesses], dtype=np.int64)

    def release(self, examples: Any, labels: Any, *, bits: Bits | None = None) -> int:
        """The index of the hypothesis chosen."""
        return self.mechanism.release(-self.mistakes(examples, labels), bits=bits)

    def accuracy(self, beta: Number, *, n: int) -> float:
        """How much larger the share of mistakes may be than that of the best hypothesis, with probability 1 - beta."""
        return self.mechanism.accuracy(beta, candidates=len(self.hypotheses)) / whole_number(n, "n")

    def log_prob(self, output: int, data: tuple[Any, Any]) -> float:
        """ln P(hypothesis `output` | (examples, labels))."""
        return float(self.mechanism.log_probs(-self.mistakes(*data))[output])


def learning_sample_size(*, hypotheses: int, alpha: Number, beta: Number, epsilon: Number) -> int:
    """Examples that suffice for a true error of at most alpha with probability 1 - beta; replace neighbours.

    >>> learning_sample_size(hypotheses=1000, alpha="0.1", beta="0.05", epsilon=1)
    2258
    """
    a, b, e = float(amount(alpha, "alpha")), float(amount(beta, "beta")), float(amount(epsilon, "epsilon"))
    if not (0 < a < 1 and 0 < b < 1 and e > 0 and hypotheses >= 1):
        raise ParameterError("give hypotheses >= 1, alpha and beta between 0 and 1, and epsilon above 0.")
    same = 2 * math.log(4 * hypotheses / b) / a**2
    private = 4 * (math.log(hypotheses) + math.log(2 / b)) / (a * e)
    return math.ceil(max(same, private))


def halfspaces(d: int, *, steps: int) -> tuple[Hypothesis, ...]:
    """The halfspaces w . x >= c on [-1, 1]^d with w (not zero) and c from the grid -1, ..., 1 of 2 steps + 1 values."""
    grid = range(-steps, steps + 1)
    return tuple(_halfspace(np.array(w), c) for w in itertools.product(grid, repeat=d) if any(w) for c in grid)


def _halfspace(w: NDArray[np.int64], c: int) -> Hypothesis:
    return lambda x: np.asarray(x) @ w >= c
