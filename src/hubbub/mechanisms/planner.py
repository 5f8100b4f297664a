"""Which way to answer k counting queries: the error that each strategy promises, and the least.

All errors are of *shares* (answers divided by n): the largest over the k queries, not exceeded with probability
1 - beta, and the mean squared one. Replace neighbours, n public. D1, D2 are the l1 and l2 sensitivity of the counts.

- laplace: noise of scale D1/epsilon: max D1 ln(k/beta) / (epsilon n), the k log k / (epsilon n) of basic composition.
- gaussian: rho from (epsilon, delta): max sqrt(2 ln(2k/beta)) D2 / (n sqrt(2 rho)).
- randomised response: epsilon/k a question, nobody trusted: max sqrt(ln(2k/beta) / 2n) / tanh(epsilon / 2k).
- small database (Blum, Ligett, Roth 2008): the exponential mechanism over tables of m rows. Some table is within
  a = sqrt(ln(2k) / 2m) (Hoeffding); max a + (2 / (epsilon n)) (m ln|X| + ln(1/beta)), at the best m. This is
  O((log|X| log k / (epsilon n))^(1/3)).
- multiplicative weights (Hardt, Ligett, McSherry 2012, proof of Theorem 2.2, with its logarithms kept): T rounds of
  which each is e-DP, half for selecting and half for measuring:
  max 2 sqrt(ln|X| / T) + (4 ln(2kT/beta) + 2 ln(2T/beta)) / (e n), at the best T. e = epsilon / T, or with delta
  e = sqrt(32 rho / 5T), since a round costs rho = e^2/32 + e^2/8. This is
  O((sqrt(log|X| log(1/delta)) log k / (epsilon n))^(1/2)).

The last two are theorems' bounds, much larger than what happens; their mean squared error is bounded by max^2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.accounting.amounts import Number, probability
from hubbub.accounting.zcdp import rho_of_epsilon
from hubbub.errors import ParameterError
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, whole_number
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.queries import Workload

__all__ = [
    "Plan",
    "Prediction",
    "draw_local_and_central",
    "draw_plans",
    "error_curves",
    "local_and_central_error",
    "plan",
]

_MOST = 10**100


@dataclass(frozen=True)
class Prediction:
    """One strategy: the largest error of a share, the mean squared one, and whether these are theorems' bounds."""

    strategy: str
    max_error: float
    mean_squared_error: float
    bound: bool


@dataclass(frozen=True)
class Plan:
    """Predictions for one workload, best first."""

    queries: int
    predictions: tuple[Prediction, ...]

    @property
    def best(self) -> Prediction:
        """The strategy with the least largest error."""
        return self.predictions[0]

    def table(self) -> str:
        """The predictions as text, one line each."""
        lines = [f"{'strategy':<24} {'max error':>10} {'rms error':>10}"]
        for p in self.predictions:
            note = "  (bound)" if p.bound else ""
            lines.append(f"{p.strategy:<24} {p.max_error:>10.4g} {math.sqrt(p.mean_squared_error):>10.4g}{note}")
        return "\n".join(lines)


def plan(
    *,
    n: int,
    universe: int,
    epsilon: Number,
    delta: Number | None = None,
    beta: Number = "0.05",
    workload: Workload | None = None,
    queries: int | None = None,
) -> Plan:
    """Predictions for k counting queries on n rows. Give a workload, or queries: any k predicates.

    delta=None asks for pure privacy, which leaves the Gaussian mechanism out.

    >>> plan(n=10_000, universe=2**10, queries=5, epsilon=1).best.strategy
    'laplace'

    Raises ParameterError where neither or both of workload and queries are given.
    """
    if (workload is None) == (queries is None):
        raise ParameterError("give exactly one of workload= and queries= (the number of counting queries).")
    k = _countable(workload.size if workload is not None else queries or 0, "queries")
    rows, values, chance = _countable(n, "n"), whole_number(universe, "universe", least=2), beta_of(beta)
    exact, room = epsilon_of(epsilon), None if delta is None else probability(delta, "delta")
    rho = None if room is None else float(rho_of_epsilon(exact, room))
    e = float(exact)
    l1, l2_squared = float(k), float(k)
    if workload is not None:
        change = workload.sensitivity("replace")
        l1, l2_squared = float(change.l1), float(change.l2_squared)
    made = [
        _noisy("laplace", l1 / (e * rows) * math.log(k / chance), 2 * _squared(l1 / (e * rows))),
        _response(k, rows, e, chance),
        _small_database(k, rows, values, e, chance),
        _multiplicative_weights(k, rows, values, e, rho, chance),
    ]
    if rho is not None:
        variance = l2_squared / (2 * rho) / rows**2
        made.append(_noisy("gaussian", math.sqrt(2 * variance * math.log(2 * k / chance)), variance))
    return Plan(k, tuple(sorted(made, key=lambda p: p.max_error)))


def local_and_central_error(*, n: int, epsilon: Number) -> tuple[float, float]:
    """Standard deviations of a share of n people: by randomised response, and by one Laplace draw at the centre.

    For small epsilon they are 1/(epsilon sqrt(n)) (at its worst, a share of one half) and sqrt(2)/(epsilon n).
    """
    response = RandomizedResponse(epsilon=epsilon)
    rows = _countable(n, "n")
    return math.sqrt(response.variance(rows, 0.5)), math.sqrt(2) / (float(epsilon_of(epsilon)) * rows)


def error_curves(plans: Iterable[Plan]) -> tuple[list[int], dict[str, list[float]]]:
    """For a picture over k: the numbers of queries in order, and the largest error of each strategy, cut at 1.

    Raises ParameterError where the plans do not all hold the same strategies.
    """
    made: Sequence[Plan] = sorted(plans, key=lambda p: p.queries)
    names = {tuple(sorted(p.strategy for p in each.predictions)) for each in made}
    if len(names) != 1:
        raise ParameterError("give at least one plan, all with a delta or all without.")
    errors = [{p.strategy: min(1.0, p.max_error) for p in each.predictions} for each in made]
    return [each.queries for each in made], {name: [e[name] for e in errors] for name in names.pop()}


def draw_plans(plans: Iterable[Plan], *, ax: Any = None) -> Any:
    """A picture: the largest error of each strategy over the number of queries, both logarithmic. Gives the Axes."""
    from hubbub import plots

    ks, lines = error_curves(plans)
    drawn = plots.curves(
        [(name, ks, errors) for name, errors in lines.items()],
        title="The largest error of k answers",
        xlabel="number of queries k",
        ylabel="largest error of a share",
        log=True,
        ax=ax,
    )
    drawn.set_xscale("log")
    return drawn


def draw_local_and_central(*, epsilon: Number, people: Sequence[int], ax: Any = None) -> Any:
    """A picture: the standard error of a share, by randomised response and at the centre, over the number of people."""
    from hubbub import plots

    pairs = [local_and_central_error(n=n, epsilon=epsilon) for n in people]
    drawn = plots.curves(
        [
            ("local: everybody randomises", people, [local for local, _ in pairs]),
            ("central: one draw of Laplace noise", people, [central for _, central in pairs]),
        ],
        title=f"One share at epsilon {float(epsilon_of(epsilon)):g}",
        xlabel="number of people n",
        ylabel="standard error of the share",
        log=True,
        ax=ax,
    )
    drawn.set_xscale("log")
    return drawn


def _countable(value: int, name: str) -> int:
    if whole_number(value, name) > _MOST:
        raise ParameterError(f"{name} above 1e100 were asked; a plan holds for at most so many.")
    return int(value)


def _squared(x: float) -> float:
    """x * x, which is infinite where x ** 2 raises."""
    return x * x


def _noisy(strategy: str, largest: float, mean_square: float) -> Prediction:
    return Prediction(strategy, largest, mean_square, bound=False)


def _response(k: int, n: int, epsilon: float, beta: float) -> Prediction:
    slope = math.tanh(epsilon / (2 * k))
    largest = math.sqrt(math.log(2 * k / beta) / (2 * n)) / slope
    return _noisy("randomised response", largest, 1 / (4 * n) / slope / slope)


def _small_database(k: int, n: int, universe: int, epsilon: float, beta: float) -> Prediction:
    def error(m: int) -> float:
        noise = 2 / (epsilon * n) * (m * math.log(universe) + math.log(1 / beta))
        return math.sqrt(math.log(2 * k) / (2 * m)) + noise

    largest = error(_least(error))
    return Prediction("small database", largest, _squared(largest), bound=True)


def _multiplicative_weights(
    k: int, n: int, universe: int, epsilon: float, rho: float | None, beta: float
) -> Prediction:
    def error(rounds: int) -> float:
        each = epsilon / rounds if rho is None else math.sqrt(32 * rho / (5 * rounds))
        gap = 4 * math.log(2 * k * rounds / beta) + 2 * math.log(2 * rounds / beta)
        return 2 * math.sqrt(math.log(universe) / rounds) + gap / (each * n)

    largest = error(_least(error))
    return Prediction("multiplicative weights", largest, _squared(largest), bound=True)


def _least(error: object) -> int:
    """The whole number >= 1 that minimises a convex function."""
    assert callable(error)
    low, high = 1, 2
    while error(high) < error(high // 2):
        high *= 2
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if error(left) <= error(right) else (left, high)
    return min(range(low, high + 1), key=error)
