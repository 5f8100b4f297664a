"""The statistical-query oracle STAT (Kearns 1998), answered privately (Blum, Dwork, McSherry, Nissim 2005).

STAT(q, D) gives E_D q within a tolerance tau. From n rows, a public number, each of at most k adaptively chosen
predicates is answered by its noisy share: (count + Z) / n, Z discrete Laplace of scale k / epsilon. Replacing a row
moves a count by at most 1, so the k answers together are epsilon-DP. With probability 1 - beta all k answers are within

    ceil(k ln(k / beta) / epsilon) / n        of the share of the rows, and
    sqrt(ln(4k / beta) / 2n) + ceil(k ln(2k / beta) / epsilon) / n

of the truth under D, for queries fixed in advance (Hoeffding). Noise on counts is whole, so its bound k ln(k / beta) /
epsilon holds rounded up to a whole count, not always without. Exact answers give a person away: the average salary of
n people before, and of n - 1 after one has left, is that person's salary, n a - (n-1) a'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting import Number, events as ev
from hubbub.accounting.amounts import amount
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.mechanisms.calibrate import whole_number
from hubbub.mechanisms.slots import Slots
from hubbub.noise import Bits

__all__ = ["StatisticalQueryOracle", "oracle_sample_size"]


class StatisticalQueryOracle:
    """Answers up to `queries` predicates on private rows; the whole loss is charged when it is opened."""

    def __init__(self, rows: Any, *, queries: int, epsilon: Number, bits: Bits | None = None) -> None:
        self._rows, self._bits = rows, bits
        self.n = len(rows)
        self.queries = whole_number(queries, "queries")
        if self.n == 0:
            raise ParameterError("the oracle needs at least one row (n is public).")
        self.mechanism = LaplaceMechanism(sensitivity=1, epsilon=amount(epsilon, "epsilon") / self.queries)
        self._slots = Slots(self.queries, "all queries of this oracle are used; open, and pay for, another one.")

    @property
    def left(self) -> int:
        """How many queries may still be asked."""
        return self._slots.left

    @property
    def loss(self) -> ev.Event:
        """The event to charge: all queries."""
        return ev.Repeated(self.mechanism.loss, self.queries)

    def stat(self, predicate: Callable[[Any], Any]) -> Fraction:
        """The noisy share of rows that satisfy the predicate (an array of n rows -> n truth values).

        The predicate must be row-wise: the truth of a row may depend on that row and on public values alone. That is
        what makes the sensitivity 1, and only the shape can be checked: `lambda x: x > x.mean()` has every row's truth
        depend on everybody, and is not private.

        Raises QueryError once all queries are used up, and in a forked process.
        """
        truth = np.asarray(predicate(self._rows))
        if truth.dtype != np.bool_ or truth.shape != (self.n,):
            raise ParameterError("a predicate gives one truth value per row.")
        with self._slots.taken():
            return Fraction(int(self.mechanism.release(int(truth.sum()), bits=self._bits)), self.n)

    def accuracy(self, beta: Number) -> float:
        """The tolerance to the share of the rows, for all queries together with probability 1 - beta."""
        return float(self.mechanism.accuracy(amount(beta, "beta") / self.queries)) / self.n

    def __reduce__(self) -> str:
        raise ParameterError("an oracle holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        return f"StatisticalQueryOracle(n={self.n}, left={self.left})"


def oracle_sample_size(*, tolerance: Number, queries: int, beta: Number, epsilon: Number) -> int:
    """Rows that suffice for every answer to be within `tolerance` of the truth under D with probability 1 - beta.

    Half of beta for sampling, half for noise: the least n with
    sqrt(ln(4k/beta)/2n) + ceil(k ln(2k/beta)/epsilon)/n <= tau.
    """
    tau, b, e = float(amount(tolerance, "tolerance")), float(amount(beta, "beta")), float(amount(epsilon, "epsilon"))
    if not (tau > 0 and 0 < b < 1 and e > 0 and queries >= 1):
        raise ParameterError("give tolerance and epsilon above 0, beta between 0 and 1, and queries >= 1.")
    sampling, noise = math.sqrt(math.log(4 * queries / b) / 2), math.ceil(queries * math.log(2 * queries / b) / e)
    # tau n - sampling sqrt(n) - noise >= 0, a quadratic in sqrt(n).
    root = (sampling + math.sqrt(sampling**2 + 4 * tau * noise)) / (2 * tau)
    return math.ceil(root**2)
