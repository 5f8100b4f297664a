"""Quantiles by the exponential mechanism on a grid of values, one or many at once.

One (Smith 2011; the score of Kaplan, Schnapp, Stemmer 2022): values lie in low .. high, a share p is asked. With L(t)
rows below t and G(t) above, of n, candidate t is

    d(t) = max(0, L(t) - p n, G(t) - (1-p) n)

ranks away from a true p-quantile. Adding a row moves L - pn by -p or 1-p and G - (1-p)n by p-1 or p, so d has
sensitivity max(p, 1-p) per row, 1/2 for a median. P(t) is proportional to exp(-epsilon d(t) / (2 max(p, 1-p))).
Values between two neighbouring rows have the same score: 2n+1 candidates with multiplicities, drawn exactly.

Many (Kaplan, Schnapp, Stemmer 2022, Algorithm 1): ask for the middle share first, split the rows at the answer, and
recurse into both parts with the shares rescaled. m quantiles take D = floor(log2 m) + 1 rounds; a row is in one part
of each round, so each round costs epsilon / D, and each is bounded range. Neighbours: add/remove of one unit with at
most `rows` rows (replacing a row is two rows). An error is measured in ranks; what it is in values depends on the
data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, probability
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, integers, whole_number
from hubbub.mechanisms.recording import through
from hubbub.mechanisms.weighted import log_weights, quiet, weighted_choice
from hubbub.noise import Bits, Grid, uniform_below

__all__ = ["QuantileMechanism", "rank_error", "repeated", "runs"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, init=False)
class QuantileMechanism:
    """The quantiles `shares` of values in [lower, upper], on integers or on a grid.

    shares: probabilities in (0, 1), in increasing order. rows: how many rows one unit has at most.

    >>> QuantileMechanism(shares=["1/4", "1/2", "3/4"], lower=0, upper=120, epsilon=1).rounds
    2

    Raises ParameterError for shares out of order or range, and for missing or reversed bounds.
    """

    shares: tuple[Fraction, ...]
    low: int
    high: int
    epsilon: Fraction
    rows: int
    grid: Grid | None

    def __init__(
        self,
        *,
        shares: Sequence[Number],
        lower: Number,
        upper: Number,
        epsilon: Number,
        rows: int = 1,
        grid: Grid | None = None,
    ) -> None:
        exact = tuple(probability(s, "a share") for s in shares)
        ordered = all(a < b for a, b in itertools.pairwise(exact))
        if not exact or not ordered or exact[0] == 0:
            raise ParameterError(
                f"shares = {what_was_given(shares)}; give increasing numbers strictly between 0 and 1."
            )
        values = {
            "shares": exact,
            "low": _bound(lower, "lower", grid),
            "high": _bound(upper, "upper", grid),
            "epsilon": epsilon_of(epsilon),
            "rows": whole_number(rows, "rows"),
            "grid": grid,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not 0 <= self.high - self.low < 2**53:
            raise ParameterError(f"lower = {lower}, upper = {upper}; give lower <= upper, within 2^53 steps.")

    @property
    def rounds(self) -> int:
        """D: how many times the rows are split."""
        return len(self.shares).bit_length()

    @property
    def loss(self) -> ev.Event:
        """The event to charge: D adaptive bounded-range mechanisms of epsilon / D."""
        each = ev.BoundedRange(self.epsilon / self.rounds)
        return each if self.rounds == 1 else ev.Repeated(each, self.rounds)

    def release(self, values: Any, *, bits: Bits | None = None) -> Any:
        """One value per share, in increasing order: int64 of shape (shares,), or floats on a grid.

        values: shape (n,), n >= 0; those outside the bounds are clamped to them, NaN goes to the middle.
        """
        return self.release_counted(*np.unique(self._sorted(values), return_counts=True), bits=bits)

    def release_counted(self, points: Integers, heights: Integers, *, bits: Bits | None = None) -> Any:
        """The same of rows that are counted already: their distinct values within the bounds, increasing, in steps;
        and how many rows have each."""
        splits = through(
            repeated(points, heights),
            sensitivity=self.rows,
            norm="rows",
            law=self,
            draw=lambda: self._splits(points, heights, bits),
        )
        out = np.array(splits, dtype=np.int64)
        return out if self.grid is None else self.grid.from_integers(out)

    def _splits(self, points: Integers, heights: Integers, bits: Bits | None) -> list[int]:
        splits: list[int] = [0] * len(self.shares)
        for index, share, first, last, low, high in self._plan(splits):
            splits[index] = self._draw(*_between(points, heights, first, last), share, low, high, bits)
        return splits

    def accuracy(self, beta: Number) -> float:
        """A bound in ranks on the error of one round, with probability 1 - beta, whatever the data.

        (ln(candidates) + ln(1/beta)) / r for r = epsilon / (2 D rows max(p, 1-p)), at the worst share. The candidates
        are counted as values of the domain; errors of the rounds add up.
        """
        worst = max(max(s, 1 - s) for _, s, *_ in self._plan([self.low] * len(self.shares)))
        rate = float(self._rate(worst))
        return (math.log(self.high - self.low + 1) - math.log(beta_of(beta))) / rate

    def log_prob(self, output: Any, data: Any) -> float:
        """ln P(release(data) = output): the answers fix the parts, so the rounds multiply."""
        splits = list(integers(output, self.grid, len(self.shares)))
        points, heights = np.unique(self._sorted(data), return_counts=True)
        total = 0.0
        for index, share, first, last, low, high in self._plan(splits):
            total += self._log_draw(*_between(points, heights, first, last), share, low, high, splits[index])
        return total

    def _plan(self, splits: list[int]) -> Any:
        """The splits in order: (index, relative share, first and last row value of the part, low, high).

        Lazily: `found` is filled in by the caller between two splits.
        """
        todo = [(0, len(self.shares), Fraction(0), Fraction(1), self.low, self.high, self.low, self.high)]
        while todo:
            start, stop, under, over, first, last, low, high = todo.pop(0)
            middle = (start + stop) // 2
            share = (self.shares[middle] - under) / (over - under)
            yield middle, share, first, last, low, high
            here = splits[middle]
            # Rows below the answer go left, the others right; answers stay in order, so the domains share it.
            if start < middle:
                todo.append((start, middle, under, self.shares[middle], first, here - 1, low, here))
            if middle + 1 < stop:
                todo.append((middle + 1, stop, self.shares[middle], over, here, last, here, high))

    def _rate(self, share: Fraction) -> Fraction:
        return self.epsilon / (self.rounds * 2 * self.rows * max(share, 1 - share))

    def _draw(
        self, points: Integers, heights: Integers, share: Fraction, low: int, high: int, bits: Bits | None
    ) -> int:
        starts, counts, steps = _candidates(points, heights, share, low, high)
        i = weighted_choice(steps, self._rate(share) / share.denominator, counts=counts, bits=bits)
        return int(starts[i]) + uniform_below(int(counts[i]), bits=bits)

    @quiet
    def _log_draw(self, points: Integers, heights: Integers, share: Fraction, low: int, high: int, value: int) -> float:
        if not low <= value <= high:
            return -math.inf
        starts, counts, steps = _candidates(points, heights, share, low, high)
        rate = self._rate(share) / share.denominator
        logs = log_weights(steps, rate, counts)
        top = float(logs.max())
        i = int(np.flatnonzero((starts <= value) & (value < starts + counts))[0])
        return -float(rate) * int(steps[i]) - top - math.log(float(np.exp(logs - top).sum()))

    def _clamped(self, values: Any) -> Integers:
        array = values if isinstance(values, np.ndarray) else _listed(values)
        if array.dtype == object and (
            self.grid is not None or all(isinstance(v, int | np.integer) for v in array.flat)
        ):
            return np.array([self._place(v) for v in array.flat], dtype=np.int64)
        if self.grid is not None:
            step = self.grid.step
            return self.grid.to_integers(array, self.low * step, self.high * step)
        if array.dtype.kind not in "iu" and array.size:
            raise ParameterError(f"values are {array.dtype}; give integers, or grid=hubbub.noise.Grid(exponent).")
        return np.asarray(np.clip(array, self.low, self.high), dtype=np.int64)

    def _place(self, value: Any) -> int:
        """One value, exactly, whatever stands beside it: clamped to the bounds, and no number in the middle."""
        if isinstance(value, float | np.floating) and math.isinf(value):
            return self.high if value > 0 else self.low
        try:
            steps = int(value) if self.grid is None else self.grid.nearest(value)
        except ParameterError:
            steps = (self.low + self.high) // 2
        return min(max(steps, self.low), self.high)

    def _sorted(self, values: Any) -> Integers:
        return np.sort(np.atleast_1d(self._clamped(values)))


def _listed(values: Any) -> NDArray[Any]:
    """An array of a list; of Python objects where numpy would round ints beside floats, or beyond int64, to floats."""
    array = np.asarray(values)
    mixed = array.dtype.kind == "f" and array.ndim == 1 and not all(isinstance(v, float) for v in values)
    return np.array(values, dtype=object) if mixed else array


def _bound(value: Number, name: str, grid: Grid | None) -> int:
    if value is None:
        raise ParameterError(f"{name} is missing; declare the range that values lie in, for it may not come from rows.")
    if grid is not None:
        return grid.nearest(Fraction(value))
    exact = Fraction(value)
    if exact.denominator != 1:
        raise ParameterError(f"{name} = {value} is not whole; give whole bounds, or a grid for real values.")
    return exact.numerator


def repeated(points: Integers, heights: Integers) -> Iterator[int]:
    """The rows that were counted; nothing is made of them until somebody looks at one."""
    for point, height in zip(points.tolist(), heights.tolist(), strict=True):
        yield from itertools.repeat(point, height)


def _between(points: Integers, heights: Integers, first: int, last: int) -> tuple[Integers, Integers]:
    """The counted rows from one value to another."""
    part = slice(int(np.searchsorted(points, first)), int(np.searchsorted(points, last, "right")))
    return points[part], heights[part]


def _candidates(
    points: Integers, heights: Integers, share: Fraction, low: int, high: int
) -> tuple[Integers, Integers, Integers]:
    """Runs of values of equal score: (first value, how many, distance in ranks times the share's denominator).

    points, heights: counted rows, all in low .. high.
    """
    starts, counts, less, more = runs(points, heights, low, high)
    n, p, q = int(heights.sum()), share.numerator, share.denominator
    if q * (n + 1) < 2**62:
        steps = np.maximum(0, np.maximum(q * less - p * n, q * more - (q - p) * n))
    else:
        wide_less, wide_more = less.astype(object), more.astype(object)
        steps = np.maximum(0, np.maximum(q * wide_less - p * n, q * wide_more - (q - p) * n))
    return starts, counts, steps - steps[counts > 0].min()


def runs(points: Integers, heights: Integers, low: int, high: int) -> tuple[Integers, Integers, Integers, Integers]:
    """The values low .. high in runs that the rows do not tell apart: (first value, how many, rows below, rows above).

    points: the distinct values of the rows, increasing, in low .. high. heights: how many rows have each.
    """
    below = np.concatenate(([0], np.cumsum(heights)))
    n = int(below[-1])
    # Runs alternate: a gap (possibly empty) before each point, the point itself, and the gap after the last.
    starts = np.empty(2 * points.size + 1, np.int64)
    counts = np.empty_like(starts)
    ends = np.concatenate(([low - 1], points, [high + 1]))
    starts[0::2], counts[0::2] = ends[:-1] + 1, ends[1:] - ends[:-1] - 1
    starts[1::2], counts[1::2] = points, 1
    less, more = np.empty_like(starts), np.empty_like(starts)
    less[0::2], more[0::2] = below, n - below
    less[1::2], more[1::2] = below[:-1], n - below[1:]
    return starts, counts, less, more


def rank_error(values: Any, found: Any, shares: Sequence[Number]) -> NDArray[np.float64]:
    """How far each found value is from a true quantile, as a share of the rows (0 where it is one)."""
    rows, points = np.sort(np.asarray(values)), np.asarray(found)
    if rows.size == 0:
        raise ParameterError("rank errors in a table of no rows were asked; give at least one value.")
    targets = np.array([float(Fraction(s)) for s in shares])
    below = np.searchsorted(rows, points, "left") / rows.size
    upto = np.searchsorted(rows, points, "right") / rows.size
    return np.asarray(np.maximum(0.0, np.maximum(below - targets, targets - upto)))
