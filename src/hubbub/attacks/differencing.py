"""Differencing and averaging: small questions that add up to one person (`docs/theorems.md`, A4).

**Differencing.** "How many have it?" and "how many other than the speaker?": exact answers differ by the speaker's bit.
An average before and after one of n people leaves gives n a - (n-1) a', the leaver's value. With two noisy counts the
attacker guesses Yes where the difference, less 1/2, is positive. Right, for either bit, with probability

    1/2 + (1-q)(1+q^2)/(2(1+q)^3), q = e^(-1/b)       discrete Laplace noise of scale b,
    1 - e^(-1/2b) (1/2 + 1/8b)                        continuous Laplace noise.

Ceiling: the target's bit moves the first count by one and is not in the second, so e^(1/b)/(1 + e^(1/b)).

**Averaging.** The mean of k independent answers of scale b = 1/epsilon has the standard deviation sqrt(2/k) b. With
k = 31/epsilon^2 repeats it rounds to the true count with probability about .95; by then k epsilon = 31/epsilon has been
paid. hubbub stores answers: the same question, asked again, gets the same answer at no cost, and a fresh draw is
charged like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, amount, count, scale as positive
from hubbub.attacks.ceilings import bit_ceiling
from hubbub.attacks.inputs import Flags, Integers, numbers, same_length, zeros_ones
from hubbub.errors import ParameterError

__all__ = [
    "Averaged",
    "Differenced",
    "average",
    "averaging_repeats",
    "difference",
    "difference_of_means",
    "right_by_averaging",
    "right_by_differencing",
    "right_by_differencing_continuous",
]


@dataclass(frozen=True, eq=False)
class Differenced:
    """Bits guessed from pairs of counts. guesses: True for Yes. right: which hold."""

    guesses: Flags
    right: Flags

    @property
    def success(self) -> float:
        """The share of people whose bit was guessed rightly."""
        return float(self.right.mean())

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The largest expected success for bits that are fair beforehand; epsilon of *one* of the two answers.

        Both are paid for, but only one of them is about the target.
        """
        return bit_ceiling(epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The success beside theory and ceiling over epsilon of one answer."""
        from hubbub import plots

        grid = [i / 25 for i in range(1, 101)]
        lines = [
            ("ceiling for private answers", grid, [self.ceiling(e) for e in grid]),
            ("discrete Laplace, in theory", grid, [right_by_differencing(1 / Fraction(str(e))) for e in grid]),
            ("these answers", grid, [self.success] * len(grid)),
        ]
        return plots.curves(lines, title="All but one", xlabel="epsilon of an answer", ylabel="share right", ax=ax)


def difference(everybody: Any, all_but_one: Any, truth: Any) -> Differenced:
    """Guesses each target's bit from the count of everybody and the count of all but the target.

    >>> difference([10, 10], [9, 10], truth=[1, 0]).success
    1.0
    """
    with_target, without, bits = (
        numbers(everybody, "everybody"),
        numbers(all_but_one, "all_but_one"),
        zeros_ones(truth, "truth"),
    )
    same_length(everybody=with_target, all_but_one=without, truth=bits)
    guesses = with_target - without > 0.5
    return Differenced(guesses, guesses == (bits == 1))


def difference_of_means(n: int, before: Number, after: Number) -> Fraction:
    """The value of the one who left: n a - (n-1) a', from the mean of n people and of the n - 1 that remain.

    >>> difference_of_means(3, before=200, after=150)
    Fraction(300, 1)
    """
    a, b = (Fraction(v) if isinstance(v, Fraction | int) else Fraction(str(v)) for v in (before, after))
    return count(n, "n", least=2) * a - (n - 1) * b


def right_by_differencing(scale: Number) -> float:
    """How often two discrete Laplace counts of this scale give the bit away.

    >>> round(right_by_differencing(1), 3), round(right_by_differencing(10), 3)
    (0.64, 0.513)
    """
    q = math.exp(-1 / float(positive(scale, "scale")))
    return 0.5 + (1 - q) * (1 + q * q) / (2 * (1 + q) ** 3)


def right_by_differencing_continuous(scale: Number) -> float:
    """The same for continuous Laplace noise: 1 - e^(-1/2b)(1/2 + 1/8b).

    >>> round(right_by_differencing_continuous(1), 3)
    0.621
    """
    b = float(positive(scale, "scale"))
    return 1 - math.exp(-1 / (2 * b)) * (0.5 + 1 / (8 * b))


@dataclass(frozen=True, eq=False)
class Averaged:
    """Counts recovered from repeated answers. guesses: the rounded means. right: which are the true counts."""

    guesses: Integers
    right: Flags
    repeats: int

    @property
    def success(self) -> float:
        """The share of counts recovered exactly."""
        return float(self.right.mean())

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """For telling two neighbouring counts apart, where all the repeats *together* cost epsilon."""
        return bit_ceiling(epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """In theory: the chance of the exact count over the repeats, for three epsilons of one answer."""
        from hubbub import plots

        grid = [round(10 ** (i / 20)) for i in range(1, 81)]
        lines = [
            (f"epsilon {e} a draw", [float(k) for k in grid], [right_by_averaging(k, e) for k in grid])
            for e in ("1/10", "1/2", "1")
        ]
        title = "The exact count from repeated draws"
        return plots.curves(lines, title=title, xlabel="fresh draws", ylabel="chance of the exact count", ax=ax)


def average(answers: Any, truth: Any) -> Averaged:
    """Recovers counts from answers of shape (counts, repeats).

    >>> average([[9, 12, 9], [4, 4, 4]], truth=[10, 5]).success
    0.5
    """
    array, known = numbers(answers, "answers", dimensions=2), numbers(truth, "truth")
    same_length(answers=array, truth=known)
    guesses = np.rint(array.mean(axis=1)).astype(np.int64)
    return Averaged(guesses, guesses == known, array.shape[1])


def averaging_repeats(epsilon: Number) -> int:
    """How many fresh draws at epsilon each recover a count about 95 times in 100: 31/epsilon^2, rounded up.

    >>> averaging_repeats(0.1)
    3100
    """
    e = amount(epsilon, "epsilon")
    if e == 0:
        raise ParameterError("epsilon = 0 was asked; answers that say nothing can be averaged for ever. Give more.")
    return math.ceil(31 / e**2)


def right_by_averaging(repeats: int, epsilon: Number) -> float:
    """About how often the mean of so many draws rounds to the count: P(|N(0, 1)| < sqrt(k / Var) / 2).

    Var = 2q/(1-q)^2, q = e^-epsilon, the variance of a discrete Laplace draw.
    """
    q = math.exp(-float(amount(epsilon, "epsilon")))
    return math.erf(math.sqrt(count(repeats, "repeats") / (2 * q)) * (1 - q) / math.sqrt(2) / 2)
