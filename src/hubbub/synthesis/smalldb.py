"""SmallDB: a synthetic table of m rows, picked by the exponential mechanism (Blum, Ligett, Roth 2008).

k queries on a universe X; n rows, n public, neighbours replace one row. A candidate is a sequence y of m rows of X,
with score -max_q |m q(x) - n q(y)|: whole numbers, for counts q. Replacing a row of x moves every m q(x) by at most m
Delta, Delta the largest difference of a query between two rows, so choosing y with probability proportional to

    exp(-epsilon / (2 m Delta) max_q |m q(x) - n q(y)|)

is epsilon-DP (and epsilon-bounded range): epsilon, not 2 epsilon, because the score is not taken twice. With
probability 1 - beta the shares of y are within sqrt(ln(2k) / 2m) + (2 Delta / (epsilon n)) (m ln|X| + ln(1/beta)) of
those of x, and m = O(log k / alpha^2) rows suffice for alpha (their Theorem 4; Dwork, Roth 2014, Theorem 4.5).

*Exactly*: sequences with the same rows have the same score, so the law is that of multisets, each weighed by its number
of orders; there are C(|X| + m - 1, m) of them.
*By a Markov chain* (`steps`): begin with a uniform sequence; replace a uniform row by a uniform row of X with
Metropolis' probability, by exact coins. Its law after t steps is not the law above, and how fast it comes near is not
known in general. If the total variation distance is at most eta for all tables, the release is (epsilon, (1 +
e^epsilon) eta)-DP; `chain_distance` computes it for one table of a small universe. No eta, no claim: `loss` then
refuses.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev
from hubbub.accounting.amounts import probability
from hubbub.accounting.rounding import digits_up, exp_up
from hubbub.errors import ParameterError
from hubbub.mechanisms import ExponentialMechanism
from hubbub.mechanisms.calibrate import beta_of, whole_number
from hubbub.mechanisms.weighted import log_weights, weighted_choice
from hubbub.noise import Bits, bernoulli_exp, uniform_below
from hubbub.queries import Workload

__all__ = ["SmallDB", "SmallTable"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_CANDIDATES = 2**20
_ENTRIES = 2**25
_CHAIN = 1500


@dataclass(frozen=True)
class SmallTable:
    """A synthetic table: how often each row of the universe occurs among its m rows; it stands for n rows."""

    counts: Integers
    n: int

    def shares(self, workload: Workload) -> Floats:
        """Answers as shares."""
        exact = np.asarray(workload.answers(self.counts), dtype=np.float64)
        return np.asarray(exact * float(workload.unit) / int(self.counts.sum()))

    def answers(self, workload: Workload) -> Floats:
        """Answers as counts of n rows."""
        return np.asarray(self.shares(workload) * self.n)


@dataclass(frozen=True, init=False)
class SmallDB:
    """Picks a table of `rows` rows for a workload. With `steps`, by a Markov chain of so many steps.

    distance: a bound on the chain's total variation distance for every table, which the caller answers for.

    >>> from hubbub.queries import Thresholds
    >>> SmallDB(workload=Thresholds(4), n=100, rows=5, epsilon=1).loss
    BoundedRange(epsilon=Fraction(1, 1), adaptive=True)

    Raises ParameterError without a universe, or where it is too large for this way of drawing.
    """

    workload: Workload
    n: int
    rows: int
    steps: int | None
    distance: Fraction | None
    mechanism: ExponentialMechanism

    def __init__(
        self,
        *,
        workload: Workload,
        n: int,
        rows: int,
        epsilon: Number,
        steps: int | None = None,
        distance: Number | None = None,
    ) -> None:
        size, public = whole_number(rows, "rows"), whole_number(n, "n")
        if workload.universe is None:
            raise ParameterError("SmallDB needs a universe: all rows that are possible. Declare every column's values.")
        moved = workload.sensitivity("replace").linf / workload.unit
        if moved == 0:
            raise ParameterError("no query tells two rows of the universe apart: nothing private is asked.")
        if steps is None:
            _check_candidates(workload, size)
        mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=size * moved)
        fields = {
            "workload": workload,
            "n": public,
            "rows": size,
            "steps": None if steps is None else whole_number(steps, "steps"),
            "distance": None if distance is None else probability(distance, "distance"),
            "mechanism": mechanism,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def loss(self) -> ev.Event:
        """The event to charge. Raises ParameterError for a chain whose distance is not stated."""
        if self.steps is None:
            return self.mechanism.loss
        if self.distance is None:
            raise ParameterError(
                "a Markov chain of finitely many steps has no privacy guarantee of its own; state distance=, a bound "
                "on its total variation distance for every table, or leave steps= out where the universe is small. "
                "Multiplicative weights need no chain."
            )
        epsilon = self.mechanism.epsilon
        delta = digits_up((1 + exp_up(epsilon)) * self.distance)
        if delta >= 1:
            raise ParameterError(
                f"a distance of {float(self.distance):.3g} adds a delta of at least 1, which protects nobody; more "
                "steps bring the chain nearer."
            )
        return ev.ApproxDP(epsilon, delta)

    def release(self, data: Any, *, bits: Bits | None = None) -> SmallTable:
        """Draw. data: n rows, as the workload reads them."""
        truth = self._truth(data)
        if self.steps is not None:
            return SmallTable(self._chain(truth, bits), self.n)
        tables = candidates(self._universe, self.rows)
        scores = self.scores(truth, tables)
        chosen = weighted_choice(scores.max() - scores, self.mechanism.rate, counts=orders(tables), bits=bits)
        return SmallTable(tables[int(chosen)], self.n)

    def scores(self, truth: Any, tables: Integers) -> Integers:
        """-max_q |m q(x) - n q(y)| for tables y of shape (c, |X|), given the exact answers q(x)."""
        worst = np.empty(len(tables), np.int64)
        block = max(1, _ENTRIES // max(1, self.workload.size))
        columns = self.workload.columns()
        for start in range(0, len(tables), block):
            gaps = self.rows * truth[None, :] - self.n * (tables[start : start + block] @ columns)
            worst[start : start + block] = np.abs(gaps).max(axis=1)
        return -worst

    def log_probs(self, data: Any) -> Floats:
        """ln P(table) for all candidates, in the order of `candidates`: the exact law."""
        tables = candidates(self._universe, self.rows)
        scores = self.scores(self._truth(data), tables)
        logs = log_weights(scores.max() - scores, self.mechanism.rate, orders(tables))
        top = float(logs.max())
        return np.asarray(logs - top - math.log(float(np.exp(logs - top).sum())))

    def accuracy(self, beta: Number) -> float:
        """The largest error of a share, with probability 1 - beta: Hoeffding's, and the exponential mechanism's."""
        moved = float(self.workload.sensitivity("replace").linf)
        sampling = moved * math.sqrt(math.log(2 * self.workload.size) / (2 * self.rows))
        choices = self.rows * math.log(self._universe) - math.log(beta_of(beta))
        return sampling + 2 * moved * choices / (float(self.mechanism.epsilon) * self.n)

    def chain_distance(self, data: Any, *, steps: int | None = None) -> float:
        """The total variation distance between the chain after `steps` and its limit, for this table, computed.

        It depends on the table: compute it for tables that are public or made up. Small universes only.
        """
        _check_candidates(self.workload, self.rows, most=_CHAIN)
        tables = candidates(self._universe, self.rows)
        scores = self.scores(self._truth(data), tables)
        moves = _transitions(tables, np.exp(np.minimum(0.0, _gaps(scores) * float(self.mechanism.rate))))
        start = np.array([float(w) for w in orders(tables)])
        count = self.steps if steps is None else whole_number(steps, "steps", least=0)
        if count is None:
            raise ParameterError("how many steps? Give steps=.")
        law = (start / start.sum()) @ np.linalg.matrix_power(moves, count)
        return float(np.abs(law - np.exp(self.log_probs(data))).sum() / 2)

    @property
    def _universe(self) -> int:
        assert self.workload.universe is not None
        return self.workload.universe

    def _truth(self, data: Any) -> Integers:
        if len(data) != self.n:
            raise ParameterError(f"the table does not have the public number of rows n = {self.n} that was declared.")
        return self.workload.evaluate(data)

    def _chain(self, truth: Integers, bits: Bits | None) -> Integers:
        assert self.steps is not None
        universe = self._universe
        state = np.asarray(uniform_below(universe, self.rows, bits=bits))
        counts = np.bincount(state, minlength=universe)
        answers = self.workload.answers(counts).astype(np.int64)
        score = -int(np.abs(self.rows * truth - self.n * answers).max())
        places = uniform_below(self.rows, self.steps, bits=bits)
        values = uniform_below(universe, self.steps, bits=bits)
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            moved = answers - self.workload.column(int(state[place])) + self.workload.column(value)
            penalty = -int(np.abs(self.rows * truth - self.n * moved).max())
            if penalty >= score or bernoulli_exp(self.mechanism.rate * (score - penalty), bits=bits):
                state[place], answers, score = value, moved, penalty
        return np.bincount(state, minlength=universe)


def candidates(universe: int, rows: int) -> Integers:
    """All multisets of `rows` rows, as counts of shape (C(universe + rows - 1, rows), universe)."""
    listed = np.array(list(itertools.combinations_with_replacement(range(universe), rows)), dtype=np.int64)
    flat = (np.arange(len(listed))[:, None] * universe + listed).ravel()
    return np.bincount(flat, minlength=len(listed) * universe).reshape(len(listed), universe)


def orders(tables: Integers) -> NDArray[Any]:
    """How many sequences have these counts: multinomial coefficients, Python integers."""
    rows = int(tables[0].sum())
    factorials = np.array([math.factorial(i) for i in range(rows + 1)], dtype=object)
    return np.asarray(factorials[rows] // np.prod(factorials[tables], axis=1))


def _gaps(scores: Integers) -> Floats:
    return np.asarray(np.subtract.outer(scores, scores).T, dtype=np.float64)


def _transitions(tables: Integers, accepted: Floats) -> Floats:
    """The chain on multisets: take a row a (by its count), put a uniform b, accept or stay. Shape (c, c)."""
    places = {tuple(t): i for i, t in enumerate(tables.tolist())}
    rows, universe = int(tables[0].sum()), tables.shape[1]
    moves = np.zeros((len(tables), len(tables)))
    for i, table in enumerate(tables.tolist()):
        for a, b in itertools.product(range(universe), repeat=2):
            if table[a] and a != b:
                other = table.copy()
                other[a], other[b] = other[a] - 1, other[b] + 1
                j = places[tuple(other)]
                moves[i, j] += table[a] / rows / universe * accepted[i, j]
    moves[np.diag_indices(len(tables))] += 1 - moves.sum(axis=1)
    return moves


def _check_candidates(workload: Workload, rows: int, most: int = _CANDIDATES) -> None:
    universe = workload.universe or 0
    count = math.comb(universe + rows - 1, rows)
    if count > most or count * universe > _ENTRIES or rows > 150:
        size = f"2^{round(math.log2(count))}" if count > 2**20 else f"{count}"
        raise ParameterError(
            f"{size} tables of {rows} rows over {universe} possible rows would be tried one by one; allowed are "
            f"{most}, {_ENTRIES} counts in them, and 150 rows. Ask fewer rows, draw by a Markov chain (steps=), or use "
            "multiplicative weights, which hold the universe only once."
        )
