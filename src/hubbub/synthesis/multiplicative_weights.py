"""Private multiplicative weights: a synthetic histogram that learns from few noisy answers to serve many queries.

Universe X, n rows, n public, neighbours replace one row; queries with values in [0, 1] on X, counts q(x) of sensitivity
1. A public histogram p over X begins uniform. Given a noisy count a = q(x) + z whose estimate was n q(p), one *update*
is p(v) <- p(v) exp(4 (a - n q(p)) q(v) / n), normalised.

**Each update pays.** With g = (q(x) - n q(p)) / n and z' = z / n, the relative entropy of the true histogram to p falls
by at least 4 (g + z') g - 2 (g + z')^2 = 2 g^2 - 2 z'^2 (Hoeffding's lemma: ln E exp(eta q) <= eta E q + eta^2 / 8). It
begins at most ln|X| and is never negative. This is Hardt, Rothblum 2010 and Hardt, Ligett, McSherry 2012 with the step
that is best for Hoeffding's lemma; their constants are larger.

*Online* (`OnlineWeights`). A sparse vector (c Yes, e-DP) asks whether |q(x) - round(n q(p))| is above T. No: the
estimate is the answer, and free. Yes: a fresh answer with discrete Gaussian noise of variance s^2, then an update. With
alpha_V, alpha_G the bounds on the noise of the sparse vector and of c answers, each with probability 1 - beta/2, and
gamma^2 = ln|X| / 2c, take T = ceil(sqrt((n gamma)^2 + alpha_G^2) + alpha_V + 1/2). Then every update lowers the entropy
by 2 gamma^2, so there are at most c; and every answer is within max(T + alpha_V + 1/2, alpha_G) of the truth. Cost:
rho = e^2/2 + c / 2 s^2, split in half; charged in full when opened. c is the number that makes the bound least.

*Offline*: `mwem`.

Answers are free once the histogram is there. Its floats are functions of released numbers only.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms import GaussianMechanism, SparseVector
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, whole_number
from hubbub.noise import Bits
from hubbub.queries import Points

__all__ = ["MAX_UNIVERSE", "OnlineAnswer", "OnlineWeights", "held_universe", "normalised", "root_below", "tried"]

Floats = NDArray[np.float64]

MAX_UNIVERSE = 2**22


@dataclass(frozen=True)
class OnlineAnswer:
    """A count, and whether it was drawn (True) or came free from the histogram."""

    value: float
    drawn: bool


class OnlineWeights:
    """An open run on private rows (indices into the universe): answers queries one by one, chosen adaptively.

    queries: how many may be asked. updates: how many of them may be drawn; by default the number with the least bound.
    threshold: T, by default the theorem's; a lower one serves the first queries better, and the run ends sooner.
    The whole `loss` is charged when it is opened.

    >>> run = OnlineWeights(np.zeros(100_000, int), universe=64, queries=1000, rho="1/8")
    >>> run.updates, round(run.bound, 3), run.ask(np.arange(64) > 31).drawn
    (66, 0.272, True)
    """

    def __init__(
        self,
        rows: Any,
        *,
        universe: int,
        queries: int,
        rho: Number,
        updates: int | None = None,
        threshold: int | None = None,
        beta: Number = "0.05",
        bits: Bits | None = None,
    ) -> None:
        self.universe = held_universe(universe)
        self._histogram = Points(self.universe).evaluate(rows)
        self.n = int(self._histogram.sum())
        self.queries, self.rho = whole_number(queries, "queries"), epsilon_of(rho, name="rho")
        if self.n == 0:
            raise ParameterError("multiplicative weights need at least one row (n is public).")
        self.beta = beta_of(beta)
        count = self._best_updates() if updates is None else min(whole_number(updates, "updates"), self.queries)
        self._set(count)
        self.threshold = self._threshold() if threshold is None else whole_number(threshold, "threshold")
        self._asked, self._lock, self._bits = 0, threading.RLock(), bits
        self._logs: Floats = np.zeros(self.universe)
        self._run = self.sparse.open(self.threshold, bits=bits)

    @property
    def loss(self) -> ev.Event:
        """The event to charge: the sparse vector, and all answers that may be drawn."""
        return ev.Composed([self.sparse.loss, ev.ZCDP(self.answers.rho)])

    @property
    def bound(self) -> float:
        """The largest error of a share over all queries, with probability 1 - beta (at the theorem's threshold)."""
        return max(self.threshold + self._slack + 0.5, self._noise) / self.n

    @property
    def left(self) -> int:
        """How many answers may still be drawn."""
        return self._run.left

    @property
    def histogram(self) -> Floats:
        """The public histogram p, which sums to 1. Reading costs nothing."""
        return normalised(self._logs)

    def estimate(self, query: Any) -> float:
        """The histogram's count for a query, free and without promise."""
        return self.n * float(_values(query, self.universe) @ self.histogram)

    def ask(self, query: Any) -> OnlineAnswer:
        """The count of rows that satisfy a query: zeros and ones (or truth values) over the universe.

        Raises QueryError once all queries are asked, or all answers drawn.
        """
        with self._lock:
            values = _values(query, self.universe)
            if self._asked == self.queries:
                raise QueryError(f"all {self.queries} queries of this run are asked; open, and pay for, another one.")
            self._asked += 1
            guess = self.estimate(query)
            exact = int(self._histogram @ values.astype(np.int64))
            if not self._run.ask(abs(exact - round(guess))):
                return OnlineAnswer(guess, drawn=False)
            answer = int(self._answer.release(exact, bits=self._bits))
            self._logs += 4 * (answer - guess) / self.n * values
            self._logs -= self._logs.max()
            return OnlineAnswer(float(answer), drawn=True)

    def _set(self, updates: int) -> None:
        self.updates = updates
        self.sparse = SparseVector(epsilon=root_below(self.rho), sensitivity=1, positives=updates)
        left = self.rho - self.sparse.epsilon**2 / 2
        self._answer = GaussianMechanism(sensitivity=1, rho=left / updates)
        self.answers = GaussianMechanism(squared_sensitivity=updates, cells=updates, rho=left)
        self._slack = self.sparse.accuracy(Fraction(self.beta) / 2, questions=self.queries)
        self._noise = float(self.answers.accuracy(Fraction(self.beta) / 2))

    def _threshold(self) -> int:
        gap = self.n * math.sqrt(math.log(self.universe) / (2 * self.updates))
        return math.ceil(math.hypot(gap, self._noise) + self._slack + 0.5)

    def _best_updates(self) -> int:
        def error(count: int) -> float:
            self._set(count)
            return max(self._threshold() + self._slack + 0.5, self._noise)

        return min(tried(self.queries), key=error)

    def __reduce__(self) -> str:
        raise ParameterError("an open run holds private rows and a secret threshold, and cannot be pickled.")

    def __repr__(self) -> str:
        return f"OnlineWeights(queries={self.queries}, updates={self.updates}, left={self.left})"


def held_universe(universe: int) -> int:
    """The number of possible rows, if a histogram of them can be held."""
    size = whole_number(universe, "universe", least=2)
    if size > MAX_UNIVERSE:
        raise ParameterError(
            f"a universe of {size} possible rows was given; multiplicative weights hold at most {MAX_UNIVERSE}. "
            "Declare coarser values, or use marginals or a synthetic table, which never lay out the universe."
        )
    return size


def normalised(logs: Floats) -> Floats:
    """The histogram of sum 1 whose logarithms differ as these do."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def root_below(x: Fraction) -> Fraction:
    """A rational at most the square root of x, and within 2^-60 of it in ratio."""
    shift = 120 + max(0, x.denominator.bit_length() - x.numerator.bit_length()) // 2 * 2
    return Fraction(math.isqrt((x.numerator << shift) // x.denominator), 1 << (shift // 2))


def tried(most: int) -> list[int]:
    """Whole numbers up to `most`, each about a tenth above the one before."""
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, sizes[-1] * 11 // 10)))
    return sizes


def _values(query: Any, universe: int) -> Floats:
    values = np.asarray(query)
    if values.shape != (universe,) or not bool(np.isin(values, (0, 1)).all()):
        raise ParameterError(f"a query is {universe} zeros and ones, one for each possible row.")
    return np.asarray(values, dtype=np.float64)
