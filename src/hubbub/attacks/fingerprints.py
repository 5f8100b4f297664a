"""Fingerprinting codes (Tardos 2003), which trace with O~(c^2) columns where the staircase needs O~(n^3).

Position j of the code has a secret bias p_j, and each user's bit there is 1 with chance p_j, independently. A
coalition of c users puts together a word; where all its bits agree, that bit is all it can write (the *marking
assumption*, which a cooperative decoder of ciphertexts obeys). Biases are sin^2 of a uniform angle, between t and 1 -
t, t = 1/(300 c). Scores are the symmetric ones of Skoric, Katzenbeisser, Celik (2008): a user's score is the sum over
positions of

    sqrt((1-p)/p) where word and user have a 1,        -sqrt(p/(1-p)) where only the word has,

and the same with 1 - p where the word has a 0. An innocent's score has mean 0 and variance L whatever the word is,
since their bits are independent of it given the biases: a sum of independent terms of two values each, which the
tracer knows. So P(score >= Z) <= e^(-l Z) prod_j E e^(l term_j) for every l > 0 (Chernoff); the least Z that brings
this down to error/users is the threshold, and nobody innocent is accused with probability 1 - error. The coalition's
scores add up to about 2 L/pi for every strategy, so somebody passes Z once 2 L/(pi c) does: L near (pi^2/2) c^2
ln(users/error), which is 4.93 % of Tardos' own 100 c^2 ln(users/error) (Laarhoven, de Weger 2012, have that length as
the limit for large c).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, probability
from hubbub.attacks.inputs import Floats, Integers, zeros_ones
from hubbub.attacks.tracing import Decoder, TracingScheme
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms.calibrate import whole_number
from hubbub.noise import Bits, uniform_below

__all__ = ["TardosCode", "tardos_length"]

_FINE = 1 << 40


def tardos_length(users: int, coalition: int, error: Number, *, kind: str = "tardos") -> int:
    """The length of a code: "tardos", 100 c^2 ceil(ln(users/error)), or "asymptotic", (pi^2/2) c^2 ln(users/error).

    >>> tardos_length(1000, 5, "0.001"), tardos_length(1000, 5, "0.001", kind="asymptotic")
    (35000, 1705)
    """
    c, log = whole_number(coalition, "coalition"), _log(users, error)
    if kind not in ("tardos", "asymptotic"):
        raise ParameterError(f"kind = {what_was_given(kind)} was asked; allowed are 'tardos' and 'asymptotic'.")
    return 100 * c * c * math.ceil(log) if kind == "tardos" else math.ceil(math.pi**2 / 2 * c * c * log)


def _log(users: int, error: Number) -> float:
    allowed = float(probability(error, "error"))
    if allowed <= 0:
        raise ParameterError(f"error = {error} was asked; give a chance above 0.")
    return math.log(whole_number(users, "users") / allowed)


@dataclass(frozen=True, eq=False)
class TardosCode:
    """A code for `users` users against coalitions of up to `coalition`, who accuses innocents with chance `error`.

    words: bits of shape (users, length), row i - 1 for user i. biases: the tracer's secret. length: by default twice
    the asymptotic one.
    """

    users: int
    coalition: int
    error: Fraction
    words: Integers
    biases: Floats

    def __init__(
        self, *, users: int, coalition: int, error: Number, length: int | None = None, bits: Bits | None = None
    ) -> None:
        n, c = whole_number(users, "users"), whole_number(coalition, "coalition")
        usual = 2 * tardos_length(n, c, error, kind="asymptotic")
        size = usual if length is None else whole_number(length, "length")
        if n * size > 200_000_000:
            raise ParameterError(f"{n:,} users with {size:,} positions were asked; at most 2e8 bits are made.")
        low = math.asin(math.sqrt(1 / (300 * c)))
        angles = low + (math.pi / 2 - 2 * low) * (uniform_below(_FINE, size, bits=bits) + 0.5) / _FINE
        biases = np.sin(angles) ** 2
        below = np.rint(biases * _FINE).astype(np.int64)
        words = np.stack([uniform_below(_FINE, size, bits=bits) < below for _ in range(n)]).astype(np.int64)
        for name, value in {
            "users": n,
            "coalition": c,
            "error": probability(error, "error"),
            "words": words,
            "biases": below / _FINE,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def length(self) -> int:
        """The number of positions, and of queries that a trace asks."""
        return int(self.words.shape[1])

    def scores(self, word: Any) -> Floats:
        """Each user's score for a pirate's word; innocents' have mean 0 and standard deviation sqrt(length)."""
        one, zero = self._terms(word)
        return np.asarray(self.words @ one + (1 - self.words) @ zero)

    def _terms(self, word: Any) -> tuple[Floats, Floats]:
        """For each position: what a user with a 1 gets, and what one with a 0 gets."""
        y = zeros_ones(word, "word")
        if y.shape != (self.length,):
            raise ParameterError(f"the word has shape {y.shape}; give {self.length} bits.")
        odds = np.sqrt((1 - self.biases) / self.biases)
        return np.where(y == 1, odds, -odds), np.where(y == 1, -1 / odds, 1 / odds)

    def threshold(self, word: Any) -> float:
        """The least score that accuses: Chernoff's bound at error/users, a theorem for every word and strategy."""
        from scipy.optimize import minimize_scalar

        one, zero = self._terms(word)
        log = _log(self.users, self.error)
        share = np.log(self.biases), np.log1p(-self.biases)

        def least(exponent: float) -> float:
            rate = math.exp(exponent)
            return (float(np.logaddexp(share[0] + rate * one, share[1] + rate * zero).sum()) + log) / rate

        # Every rate gives a bound that holds; the search looks for the smallest.
        middle = math.log(math.sqrt(2 * log / self.length))
        return float(minimize_scalar(least, bounds=(middle - 5, middle + 1), method="bounded").fun)

    def accuse(self, word: Any) -> tuple[int, ...]:
        """The users whose score reaches the threshold."""
        return tuple(int(i) + 1 for i in np.flatnonzero(self.scores(word) >= self.threshold(word)))

    def trace(self, scheme: TracingScheme, pirate: Decoder, *, bits: Bits | None = None) -> tuple[int, ...]:
        """Sends each user their own code bit, `length` ciphertexts in all, and accuses by the decoder's answers."""
        if scheme.users != self.users:
            raise ParameterError(f"the scheme has {scheme.users} users and the code {self.users}; make them equal.")
        return self.accuse(pirate(scheme.encrypt(self.words.T.astype(np.uint8), bits=bits)))

    def collude(self, users: Sequence[int], strategy: str = "majority", *, bits: Bits | None = None) -> Integers:
        """The word that some users put together, without any cipher."""
        from hubbub.attacks.tracing import STRATEGIES

        if strategy not in STRATEGIES or not set(users) <= set(range(1, self.users + 1)) or not users:
            raise ParameterError(f"give users from 1 to {self.users} and one of {', '.join(STRATEGIES)}.")
        return STRATEGIES[strategy](self.words[[u - 1 for u in users]].T, bits)
