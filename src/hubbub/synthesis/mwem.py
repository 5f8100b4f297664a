"""MWEM: multiplicative weights with the exponential mechanism, for a workload known in advance.

Hardt, Ligett, McSherry 2012, with zCDP costs and the constants of `multiplicative_weights`, whose setting and potential
argument this file shares: universe X, n rows, n public, neighbours replace one row, queries whose values on X range
over at most R (1 for counts).

T rounds, each for rho / T: the exponential mechanism (epsilon_0, so epsilon_0^2/8-zCDP) picks a query by
|q(x) - round(n q(p))|, it is measured with discrete Gaussian noise, and p is updated. Half of rho goes to either.
Summing the entropy's falls over rounds (g_t the true gap of the query measured, z_t its noise), sum 2 (g_t^2 - z_t^2)
<= ln|X|, so by Cauchy's inequality the mean of the T histograms p has, with probability 1 - beta,

    max over q of |q(x) - n q(mean p)| / n  <=  R sqrt(ln|X| / 2T + (alpha_G / n)^2) + (alpha_E + 1) / n,

alpha_E and alpha_G the bounds on all choices and on all noise, with probability 1 - beta/2 each. Past answers are
replayed in between where they are off by more than 2 alpha_G: then |g| >= |z|, so that a replay never raises the
entropy, and the bound stands. By default T is the number with the least bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev
from hubbub.errors import ParameterError
from hubbub.mechanisms import ExponentialMechanism, GaussianMechanism
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, whole_number
from hubbub.noise import Bits
from hubbub.queries import Workload
from hubbub.synthesis.multiplicative_weights import held_universe, normalised, root_below, tried

__all__ = ["OfflineWeights", "WeightsRelease", "weights_bound"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_ROUNDS = 512
# The measured queries are held as vectors over the universe: half a gigabyte at most.
_HELD = 2**26


@dataclass(frozen=True)
class WeightsRelease:
    """Two public histograms over the universe, each of sum 1: the mean of all rounds, which the theorem is about, and
    the last, which is usually nearer. `chosen` are the queries measured, `measured` their noisy counts.
    """

    histogram: Floats = field(repr=False)
    last: Floats = field(repr=False)
    n: int
    chosen: tuple[int, ...]
    measured: tuple[float, ...]

    def shares(self, workload: Workload, *, last: bool = False) -> Floats:
        """Answers as shares."""
        return np.asarray(workload.answers(self.last if last else self.histogram) * float(workload.unit))

    def answers(self, workload: Workload, *, last: bool = False) -> Floats:
        """Answers as counts of n rows."""
        return np.asarray(self.shares(workload, last=last) * self.n)


@dataclass(frozen=True, init=False)
class OfflineWeights:
    """MWEM for one workload: `rounds` choices and measurements for one rho. n rows, n public.

    rounds: by default the number with the least bound. replays: how many past answers may be learnt again after each.

    >>> from hubbub.queries import Thresholds
    >>> weights = OfflineWeights(workload=Thresholds(64), n=10_000, rho="1/8", rounds=20)
    >>> weights.select.epsilon**2 / 8 + weights.measure.rho == Fraction(1, 8) / 20
    True

    Raises ParameterError without a universe, for one too large to hold, or for queries that tell no rows apart.
    """

    workload: Workload
    n: int
    rho: Fraction
    beta: Fraction
    replays: int
    moved: Fraction
    rounds: int

    def __init__(
        self,
        *,
        workload: Workload,
        n: int,
        rho: Number,
        rounds: int | None = None,
        beta: Number = "0.05",
        replays: int = 10,
    ) -> None:
        if workload.universe is None:
            raise ParameterError("multiplicative weights need a universe: declare every column's values.")
        moved = workload.sensitivity("replace").linf / workload.unit
        if moved == 0:
            raise ParameterError("no query tells two rows of the universe apart: nothing private is asked.")
        most = max(1, _HELD // held_universe(workload.universe))
        fields: dict[str, object] = {
            "workload": workload,
            "n": whole_number(n, "n"),
            "rho": epsilon_of(rho, name="rho"),
            "beta": Fraction(beta_of(beta)),
            "replays": whole_number(replays, "replays", least=0),
            "moved": moved,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        choices = tried(min(_MOST_ROUNDS, most))
        best = min(choices, key=self.bound_at) if rounds is None else whole_number(rounds, "rounds")
        if best > most:
            raise ParameterError(
                f"{best} rounds over {workload.universe} possible rows were asked; so many measured queries do not "
                f"fit. Ask at most {most} rounds, or declare coarser values."
            )
        object.__setattr__(self, "rounds", best)

    @property
    def select(self) -> ExponentialMechanism:
        """How a round chooses a query."""
        return _mechanisms(self.rho / self.rounds, self.moved)[0]

    @property
    def measure(self) -> GaussianMechanism:
        """How a round measures it."""
        return _mechanisms(self.rho / self.rounds, self.moved)[1]

    @property
    def loss(self) -> ev.Event:
        """The event to charge: all rounds, rho together."""
        return ev.Repeated(ev.Composed([self.select.loss, ev.ZCDP(self.measure.rho)]), self.rounds)

    @property
    def bound(self) -> float:
        """The largest error of a share over all queries, with probability 1 - beta, for the mean histogram."""
        return self.bound_at(self.rounds)

    def bound_at(self, rounds: int) -> float:
        """The bound with so many rounds."""
        assert self.workload.universe is not None
        size, universe = self.workload.size, self.workload.universe
        shares = weights_bound(size, self.n, universe, self.rho, self.beta, rounds, self.moved)
        return float(self.moved * self.workload.unit) * shares

    def scores(self, truth: Any, guesses: Any) -> Integers:
        """|exact - rounded guess| of every query, in units of the answers: what a choice is made by."""
        return np.asarray(np.abs(np.asarray(truth, dtype=np.int64) - np.rint(guesses).astype(np.int64)))

    def release(self, rows: Any, *, bits: Bits | None = None) -> WeightsRelease:
        """Draw. rows: n rows, as the workload reads them."""
        if len(rows) != self.n:
            raise ParameterError(f"the table does not have the public number of rows n = {self.n} that was declared.")
        truth, learner = self.workload.evaluate(rows), _Learner(self)
        total = np.zeros(learner.logs.shape)
        select, measure = self.select, self.measure
        for _ in range(self.rounds):
            now = normalised(learner.logs)
            total = total + now
            chosen = select.release(self.scores(truth, self.n * self.workload.answers(now)), bits=bits)
            learner.learn(chosen, float(measure.release(int(truth[chosen]), bits=bits)))
        measured = tuple(answer * float(self.workload.unit) for answer in learner.measured)
        last = normalised(learner.logs)
        return WeightsRelease(np.asarray(total / self.rounds), last, self.n, tuple(learner.chosen), measured)


class _Learner:
    """The logarithms of p, and what was measured. All public."""

    def __init__(self, plan: OfflineWeights) -> None:
        assert plan.workload.universe is not None
        self._plan, self.logs = plan, np.zeros(plan.workload.universe)
        self._queries = np.empty((plan.rounds, plan.workload.universe))
        self.chosen: list[int] = []
        self.measured: list[float] = []
        self._patience = 2 * float(plan.measure.accuracy(plan.beta / (2 * plan.rounds)))

    def learn(self, chosen: int, measured: float) -> None:
        """Update by a new answer, then learn again what is far off, the farthest first."""
        weights = np.zeros(self._plan.workload.size)
        weights[chosen] = 1.0
        self._queries[len(self.chosen)] = self._plan.workload.adjoint(weights)
        self.chosen.append(chosen)
        self.measured.append(measured)
        self._update(len(self.chosen) - 1, self._gaps()[-1])
        for _ in range(self._plan.replays):
            gaps = self._gaps()
            farthest = int(np.argmax(np.abs(gaps)))
            if abs(gaps[farthest]) <= self._patience:
                break
            self._update(farthest, gaps[farthest])

    def _gaps(self) -> Floats:
        known = self._queries[: len(self.chosen)]
        return np.asarray(np.array(self.measured) - self._plan.n * (known @ normalised(self.logs)))

    def _update(self, place: int, gap: float) -> None:
        self.logs += 4 * gap / (self._plan.n * float(self._plan.moved) ** 2) * self._queries[place]
        self.logs -= self.logs.max()


def weights_bound(
    queries: int, n: int, universe: int, rho: Fraction, beta: Fraction, rounds: int, moved: Fraction = Fraction(1)
) -> float:
    """The bound of this module for `queries` queries, in multiples of their range R."""
    select, measure = _mechanisms(rho / rounds, moved)
    each, scale = beta / (2 * rounds), n * float(moved)
    learnt = math.hypot(math.sqrt(math.log(universe) / (2 * rounds)), float(measure.accuracy(each)) / scale)
    return learnt + (select.accuracy(each, candidates=queries) + 1) / scale


def _mechanisms(rho: Fraction, moved: Fraction) -> tuple[ExponentialMechanism, GaussianMechanism]:
    """One round's choice and measurement, half of rho each."""
    epsilon = root_below(4 * rho)
    measure = GaussianMechanism(squared_sensitivity=moved**2, rho=rho - epsilon**2 / 8)
    return ExponentialMechanism(epsilon=epsilon, sensitivity=moved), measure
