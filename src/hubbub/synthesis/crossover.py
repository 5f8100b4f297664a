"""Which way wins with how many queries: the error of k answers, promised and seen, for each way and for the planner.

Largest error of a share over k counting queries on n rows (replace, n public), not exceeded with probability 1 - beta.
The promises of Laplace and Gaussian noise and of SmallDB are those of `mechanisms.plan`; multiplicative weights, where
there is a delta, are promised the bound of `mwem`, sharper than the textbook's. Noise grows with k (linearly at pure
epsilon, as sqrt(k) with a delta), synthetic data with a power of log k: so the curves cross, and the planner, which
takes the least promise at each k, follows their lower envelope.

A promise is a theorem's, whether or not the way can be run. That of multiplicative weights is for up to 4,096 rounds;
`OfflineWeights` runs as many as it can hold (64 over 2^20 possible rows), and promises less: at n = 10^6, epsilon 1 and
a billion queries .33 where the curve says .06.

What is seen on a table is far below the promises of SmallDB and of multiplicative weights, whose theorems hold for
every table; `observe` runs each way and compares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting import Number, rho_of_epsilon
from hubbub.errors import ParameterError
from hubbub.mechanisms import gaussian_for, laplace_for, plan
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, whole_number
from hubbub.noise import Bits
from hubbub.queries import Workload
from hubbub.synthesis.multiplicative_weights import tried
from hubbub.synthesis.mwem import OfflineWeights, weights_bound
from hubbub.synthesis.smalldb import SmallDB

__all__ = ["Crossover", "observe", "promises"]

WAYS = ("laplace", "gaussian", "small database", "multiplicative weights")


@dataclass(frozen=True)
class Crossover:
    """Promised errors by way, one for each number of queries, cut at 1; and which way the planner takes."""

    queries: tuple[int, ...]
    errors: Mapping[str, tuple[float, ...]]
    picked: tuple[str, ...]

    @property
    def planner(self) -> tuple[float, ...]:
        """The planner's promise: the lower envelope."""
        return tuple(self.errors[way][i] for i, way in enumerate(self.picked))

    def crossings(self) -> tuple[tuple[int, str, str], ...]:
        """Where the planner changes its mind: (number of queries, from, to)."""
        steps = zip(self.queries[1:], self.picked, self.picked[1:], strict=False)
        return tuple((k, before, after) for k, before, after in steps if before != after)

    def draw(self, *, ax: Any = None) -> Any:
        """A picture of the curves, both axes logarithmic. Gives the Axes; needs matplotlib."""
        from hubbub import plots

        lines = [(way, self.queries, values) for way, values in self.errors.items()]
        drawn = plots.curves(
            [*lines, ("planner", self.queries, [0.97 * e for e in self.planner])],
            title="The largest error of k answers",
            xlabel="number of queries k",
            ylabel="largest error of a share",
            log=True,
            ax=ax,
        )
        drawn.set_xscale("log")
        return drawn


def promises(
    *,
    n: int,
    universe: int,
    queries: Sequence[int],
    epsilon: Number,
    delta: Number | None = None,
    beta: Number = "0.05",
) -> Crossover:
    """Promises for any k counting queries, for each k in `queries`. delta=None: pure privacy, without the Gaussian.

    >>> promises(n=100_000, universe=2**10, queries=[10, 10_000, 10**9], epsilon=1, delta="1e-9").picked
    ('laplace', 'gaussian', 'multiplicative weights')
    """
    ks = tuple(whole_number(k, "queries") for k in queries)
    if not ks or list(ks) != sorted(set(ks)):
        raise ParameterError("give numbers of queries in rising order, at least one.")
    rho = None if delta is None else rho_of_epsilon(epsilon_of(epsilon), delta)
    columns: dict[str, list[float]] = {way: [] for way in WAYS if way != "gaussian" or rho is not None}
    for k in ks:
        promised = plan(n=n, universe=universe, epsilon=epsilon, delta=delta, beta=beta, queries=k).predictions
        errors = {p.strategy: p.max_error for p in promised}
        if rho is not None:
            own = _weights_promise(k, n, universe, rho, beta)
            errors["multiplicative weights"] = min(own, errors["multiplicative weights"])
        for way, values in columns.items():
            values.append(min(1.0, errors[way]))
    picked = tuple(min(columns, key=lambda way: columns[way][i]) for i in range(len(ks)))
    return Crossover(ks, {way: tuple(values) for way, values in columns.items()}, picked)


def _weights_promise(k: int, n: int, universe: int, rho: Fraction, beta: Number) -> float:
    each = Fraction(beta_of(beta))
    return min(weights_bound(k, n, universe, rho, each, rounds) for rounds in tried(4096))


def observe(
    workload: Workload,
    rows: Any,
    *,
    epsilon: Number,
    delta: Number,
    small_rows: int = 8,
    beta: Number = "0.05",
    bits: Bits | None = None,
) -> dict[str, tuple[float, float]]:
    """Run every way once on a public (or made-up) table: way -> (largest error of a share seen, promised).

    SmallDB, drawn exactly at pure epsilon with tables of `small_rows` rows, is left out where its universe is too big.
    The errors compare with the exact answers, so they are for tables that are not secret.
    """
    n, truth = len(rows), workload.shares(rows)
    rho = rho_of_epsilon(epsilon_of(epsilon), delta)
    exact = workload.evaluate(rows)
    unit = float(workload.unit) / n
    laplace = laplace_for(workload, neighbours="replace", epsilon=epsilon)
    gaussian = gaussian_for(workload, neighbours="replace", rho=rho)
    weights = OfflineWeights(workload=workload, n=n, rho=rho, beta=beta)
    observed = {
        "laplace": (_error(laplace.release(exact, bits=bits), exact, unit), float(laplace.accuracy(beta)) * unit),
        "gaussian": (_error(gaussian.release(exact, bits=bits), exact, unit), float(gaussian.accuracy(beta)) * unit),
    }
    released = weights.release(rows, bits=bits)
    observed["multiplicative weights"] = float(np.abs(released.shares(workload) - truth).max()), weights.bound
    if workload.universe is not None and math.comb(workload.universe + small_rows - 1, small_rows) <= 2**18:
        small = SmallDB(workload=workload, n=n, rows=small_rows, epsilon=epsilon)
        drawn = small.release(rows, bits=bits).shares(workload)
        observed["small database"] = float(np.abs(drawn - truth).max()), small.accuracy(beta)
    return observed


def _error(noisy: Any, exact: Any, unit: float) -> float:
    return float(np.abs(np.asarray(noisy, dtype=np.float64) - np.asarray(exact, dtype=np.float64)).max()) * unit
