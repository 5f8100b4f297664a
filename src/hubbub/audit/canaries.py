"""An audit from one run of the program (Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run", 2023).

m canaries are each put into the data with probability 1/2, independently. From the program's single output an attacker
guesses for r of them whether they were in, and is right v times. If the program is (epsilon, delta)-DP with respect to
adding or removing one canary, then (their Theorem 2.1 for delta = 0, 5.2 in general) with B ~ Binomial(r, e^epsilon /
(1 + e^epsilon)),

    P(right >= v) <= P(B >= v) + 2 m delta max over i in 1..v of P(v - i <= B < v) / i.

The largest epsilon for which the right side is at most 1 - confidence is refuted, and so a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.audit.bounds import probability_of
from hubbub.errors import ParameterError
from hubbub.noise import Bits, bernoulli

__all__ = ["OneRun", "one_run", "one_run_bound"]


@dataclass(frozen=True)
class OneRun:
    """What one run shows. ceiling: the bound if every guess had been right."""

    epsilon: float
    ceiling: float
    right: int
    guesses: int
    canaries: int
    delta: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"epsilon >= {self.epsilon:.4g} with confidence {self.confidence:g}: {self.right} of {self.guesses} "
            f"guesses about {self.canaries} canaries were right (all right would show {self.ceiling:.4g})"
        )


def one_run_bound(right: int, guesses: int, canaries: int, *, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The lower bound on epsilon that `right` of `guesses` about `canaries` canaries show.

    Raises ParameterError unless 0 <= right <= guesses <= canaries.

    >>> [round(one_run_bound(v, 1000, 1000), 3) for v in (731, 982)]
    [0.881, 3.601]
    """
    if not 0 <= right <= guesses <= canaries or guesses < 1:
        raise ParameterError(
            f"right = {right}, guesses = {guesses}, canaries = {canaries}; give 0 <= right <= guesses <= canaries."
        )
    probability_of(delta, "delta")
    low, high = 0.0, 60.0
    if _chance(right, guesses, canaries, low, delta) > 1 - confidence:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        refuted = _chance(right, guesses, canaries, middle, delta) <= 1 - confidence
        low, high = (middle, high) if refuted else (low, middle)
    return low


def _chance(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    from scipy.stats import binom

    law = binom(guesses, 1 / (1 + math.exp(-epsilon)))
    tail = float(law.sf(right - 1))
    if delta == 0 or right == 0:
        return tail
    below = np.cumsum(law.pmf(np.arange(right - 1, -1, -1)))
    return min(1.0, tail + 2 * canaries * delta * float((below / np.arange(1, right + 1)).max()))


def one_run(
    run: Callable[[Any], Any],
    canaries: int,
    *,
    guesses: int | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    bits: Bits | None = None,
) -> OneRun:
    """Audit a program by running it once.

    run: a boolean array of shape (canaries,), which of them to put in -> a score for each, higher where the output
    looks as if it was in. guesses: how many to guess, the highest half as in and the lowest as out; all by default. It
    has to be fixed before the run. bits: a bit source for tests.

    Raises ParameterError for scores of another shape, and for more guesses than canaries.
    """
    asked = canaries if guesses is None else guesses
    if not 1 <= asked <= canaries:
        raise ParameterError(f"guesses = {asked} of {canaries} canaries; give 1 <= guesses <= canaries.")
    inside = np.asarray(bernoulli(Fraction(1, 2), canaries, bits=bits))
    scores = np.asarray(run(inside.copy()), dtype=np.float64)
    if scores.shape != (canaries,):
        raise ParameterError(f"run gave scores of shape {scores.shape}; give one for each of {canaries} canaries.")
    order = np.argsort(np.where(np.isnan(scores), -np.inf, scores), kind="stable")
    out, guessed_in = order[: asked - asked // 2], order[canaries - asked // 2 :]
    right = int(np.count_nonzero(inside[guessed_in]) + np.count_nonzero(~inside[out]))
    return OneRun(
        one_run_bound(right, asked, canaries, delta=delta, confidence=confidence),
        one_run_bound(asked, asked, canaries, delta=delta, confidence=confidence),
        right,
        asked,
        canaries,
        delta,
        confidence,
    )
