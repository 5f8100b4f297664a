"""Prefix and range queries on one ordered column: a plan with the least noise, the draw, every range's answer.

For k queries q_i on n values (`Thresholds`: all prefixes; `Ranges`: all ranges; `ChosenRanges`) the root mean squared
error of a strategy is sqrt(tr(G X^-1) / k), with the Gram matrix G = sum_i q_i q_i^T in closed form:

    prefixes: G_xy = n - max(x, y)          all ranges: G_xy = (min(x, y) + 1) (n - max(x, y)).

Up to 1024 values the optimised strategy is found, within a gap that is reported; beyond, the best hierarchy among
branchings 2 .. 16 (`strategies` has the mathematics). Every answer is an unbiased linear function of one noisy
histogram, so ranges add up; its variance is exact and states nothing about the data.

Neighbours: one row added or removed; a unit of up to `unit_rows` rows is planned for. Units: rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms.calibrate import chosen, whole_number
from hubbub.noise import Bits
from hubbub.queries import Points, Ranges, Thresholds
from hubbub.synthesis.answers import Answer
from hubbub.synthesis.domain import MAX_CELLS
from hubbub.synthesis.marginals import rho_from, within_bits
from hubbub.synthesis.strategies import Strategy, carried_weights, fixed_point, hierarchy, optimised

__all__ = ["ChosenRanges", "RangePlan", "RangeRelease", "plan_ranges"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DENSE = 1024
_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 16)


@dataclass(frozen=True)
class ChosenRanges:
    """Some ranges of one column of `values` values: pairs (first, last), both included.

    >>> ChosenRanges(24, [(0, 11), (12, 23), (6, 17)]).size
    3
    """

    values: int
    pairs: tuple[tuple[int, int], ...]

    def __init__(self, values: int, pairs: Sequence[tuple[int, int]]) -> None:
        n = whole_number(values, "values")
        given = tuple((int(a), int(b)) for a, b in pairs)
        for a, b in given:
            if not 0 <= a <= b < n:
                raise ParameterError(
                    f"the range {a} .. {b} was asked of values 0 .. {n - 1}; give first <= last within."
                )
        if not given:
            raise ParameterError("no ranges were asked; give at least one pair (first, last).")
        object.__setattr__(self, "values", n)
        object.__setattr__(self, "pairs", given)

    @property
    def size(self) -> int:
        """How many queries."""
        return len(self.pairs)


Workload = Thresholds | Ranges | ChosenRanges


@dataclass(frozen=True)
class RangePlan:
    """What a release of ranges costs and how exact it will be, before any row is read.

    bound: the root mean squared error that no unbiased Gaussian strategy beats, where it is known.
    """

    values: int
    queries: int
    rho: Fraction
    unit_rows: int
    method: str
    rmse: float
    bound: float | None
    strategy: Strategy = field(repr=False)

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.ZCDP(self.rho)

    @property
    def row_rho(self) -> Fraction:
        """What a single row costs: rho over the squared number of rows of a unit."""
        return self.rho / self.unit_rows**2

    def variance(self, first: int, last: int) -> float:
        """The variance of the answer to one range, asked or not."""
        return self.strategy.variance(_indicator(self.values, first, last), self.row_rho)[0]

    def release(self, rows: Any, *, bits: Bits | None = None) -> RangeRelease:
        """Draw. rows: integer codes below `values`, shape (n,). Charge `loss` first."""
        counts = Points(self.values).evaluate(rows)
        return RangeRelease(self, self.strategy.measure(counts, self.row_rho, bits, self.unit_rows))


@dataclass(frozen=True)
class RangeRelease:
    """A noisy histogram (floats, maybe negative), best for the ranges it was planned for. Reading costs nothing."""

    plan: RangePlan
    histogram: Floats = field(repr=False)

    @property
    def loss(self) -> ev.Event:
        """What was spent."""
        return self.plan.loss

    def prefixes(self) -> Floats:
        """How many rows are at most y, for every y."""
        return np.asarray(np.cumsum(self.histogram))

    def range(self, first: int, last: int) -> Answer:
        """How many rows lie in first .. last, both included."""
        return self.sum(_indicator(self.plan.values, first, last))

    def sum(self, weights: Any) -> Answer:
        """A weighted sum of the histogram, with its exact variance. weights: shape (values,)."""
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (self.plan.values,) or not bool(np.isfinite(given).all()):
            raise ParameterError(f"weights of shape {given.shape} were given; give {self.plan.values} finite numbers.")
        variance, step = self.plan.strategy.variance(given, self.plan.row_rho)
        return Answer(float(given @ self.histogram), variance, step)


def plan_ranges(
    workload: Workload,
    *,
    rho: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    unit_rows: int = 1,
    method: Literal["best", "optimised", "hierarchy"] = "best",
) -> RangePlan:
    """The plan with the least mean squared error over the queries of a workload.

    method: "best" takes "optimised" up to 1024 values, "hierarchy" beyond.

    >>> plan = plan_ranges(Thresholds(16), rho="1/2")
    >>> plan.method, round(plan.rmse, 3), plan.rmse < 1.002 * plan.bound
    ('optimised', 1.689, True)

    Raises ParameterError for anything that is not a workload of ranges, or too many values for the method.
    """
    amount, most = rho_from(rho, epsilon, delta), whole_number(unit_rows, "unit_rows")
    if not isinstance(workload, Thresholds | Ranges | ChosenRanges):
        raise ParameterError(
            f"a {type(workload).__name__} was given; ranges are Thresholds(values), Ranges(values) or "
            "ChosenRanges(values, pairs)."
        )
    chosen(dict.fromkeys(("best", "optimised", "hierarchy")), method, "method")
    n = workload.values
    if n > MAX_CELLS or (method == "optimised" and n > 2 * _DENSE):
        raise ParameterError(
            f"{n} values were asked of method {what_was_given(method)}, which holds at most "
            f"{MAX_CELLS if n > MAX_CELLS else 2 * _DENSE}; use method='hierarchy', or declare coarser edges."
        )
    if method == "optimised" or (method == "best" and n <= _DENSE):
        dense, scales, least = optimised(_gram(workload, n), _weights(workload))
        return _plan(workload, amount, most, "optimised", dense, scales, least)
    tried = [(b, *hierarchy(n, b, lambda size: _mass(workload, size))) for b in _BRANCHINGS]
    branching, tree, trace = min(tried, key=lambda t: t[2])
    return _plan(workload, amount, most, f"hierarchy of branching {branching}", tree, trace, None)


def _plan(
    workload: Workload, rho: Fraction, most: int, method: str, strategy: Strategy, trace: float, least: float | None
) -> RangePlan:
    def error(total: float) -> float:
        return most * math.sqrt(total / workload.size / (2 * float(rho)))

    within_bits(strategy.noises(rho / most**2, most), most)
    bound = None if least is None else error(least)
    return RangePlan(workload.values, workload.size, rho, most, method, error(trace), bound, strategy)


def _indicator(values: int, first: int, last: int) -> Floats:
    if not 0 <= first <= last < values:
        raise ParameterError(f"the range {first} .. {last} was asked of values 0 .. {values - 1}; give both within.")
    query: Floats = np.zeros(values)
    query[first : last + 1] = 1.0
    return query


def _gram(workload: Workload, n: int) -> Floats:
    """G, shape (n, n); of prefixes and of all ranges, on n values."""
    place = np.arange(n, dtype=np.float64)
    least, most = np.minimum.outer(place, place), np.maximum.outer(place, place)
    if isinstance(workload, Thresholds):
        return np.asarray(n - most)
    if isinstance(workload, Ranges):
        return np.asarray((least + 1) * (n - most))
    # How many ranges begin at or before the one value and end at or after the other: a double cumulative sum.
    covering: Floats = np.zeros((n, n))
    np.add.at(covering, tuple(np.array(workload.pairs).T), 1.0)
    covering = np.cumsum(np.cumsum(covering, axis=0)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(covering[least.astype(np.int64), most.astype(np.int64)])


def _weights(workload: Workload) -> Floats:
    """v. Values that no chosen range tells apart share theirs: the fixed point is that of the segments."""
    if not isinstance(workload, ChosenRanges):
        return carried_weights(workload.values, lambda size: _gram(workload, size))
    ends = {e for first, last in workload.pairs for e in (first, last + 1)} | {0, workload.values}
    cuts = np.array(sorted(ends))
    places = {int(cut): i for i, cut in enumerate(cuts)}
    merged = [(places[first], places[last + 1] - 1) for first, last in workload.pairs]
    segments = len(cuts) - 1
    rounds = 60 if segments <= 256 else 8
    weights = fixed_point(_gram(ChosenRanges(segments, merged), segments), np.ones(segments), rounds)
    return np.repeat(weights / np.diff(cuts), np.diff(cuts))


def _mass(workload: Workload, block: int) -> float:
    """Sum over blocks of (1^T G 1) / block, from sums of powers; the last block may reach beyond the values."""
    n = workload.values
    if isinstance(workload, ChosenRanges):
        return _chosen_mass(workload, block)
    start = np.arange(0, n, block, dtype=np.float64)
    size = np.minimum(start + block, n) - start
    # Sums over pairs i, j < size of min(i, j), of max(i, j), and of their product.
    least, most = size * (size - 1) * (2 * size - 1) / 6, size * (size - 1) * (4 * size + 1) / 6
    if isinstance(workload, Thresholds):
        total = size**2 * (n - start) - most
    else:
        total = (start + 1) * (n - start) * size**2 - (start + 1) * most + (n - start) * least
        total -= (size * (size - 1) / 2) ** 2
    return float(total.sum()) / block


def _chosen_mass(workload: ChosenRanges, block: int) -> float:
    """Sum over ranges of the squared norm of their block means: whole blocks, and the parts at both ends."""
    first, last = np.array(workload.pairs, dtype=np.int64).T
    left, right = first // block, last // block
    inside = np.where(left == right, (last - first + 1) ** 2, 0)
    head, tail = (left + 1) * block - first, last - right * block + 1
    across = np.where(left != right, head**2 + tail**2 + (right - left - 1) * block**2, 0)
    return float((inside + across).sum()) / block
