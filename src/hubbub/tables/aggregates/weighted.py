"""Weighted counts, sums and means: each row counts as much as a column says, as in a survey.

A weight w lies in [0, W], by its declaration; a negative one counts as 0, a larger one as W, and a row without one not
at all. Values and weights are whole steps of their grids, and w x is their product, floor(w x / 2^shift)
(`hubbub.tables.measure`): sums of integers, so a unit's part is bounded by its rows times the largest product. The
sensitivity of a weighted count is W times that of a count, of a weighted sum W times that of a sum.

With c the middle of the range of x, S = sum w (x - c) and N = sum w, over the rows where both are there, the weighted
mean is c + S / N. Its interval is Fieller's (`hubbub.mechanisms.ratio`), as of a mean. The mean of Horvitz and Thompson
(1952) divides by a known number in place of N; this one, of Hajek (1971), does not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hubbub.errors import PolicyError
from hubbub.mechanisms.ratio import ratio_intervals
from hubbub.remedies import DeclareRange, Rewrite
from hubbub.tables.aggregates.base import (
    Aggregate,
    Computed,
    Current,
    Declared,
    Family,
    Floats,
    Names,
    Quantity,
    Reading,
    Slope,
    Total,
)
from hubbub.tables.aggregates.sum import Sum
from hubbub.tables.expressions import Expression, columns_in
from hubbub.tables.measure import GRID_BITS, Measurement, Value, count_of, product_of, sum_of, value_of, where_known

__all__ = ["FAMILY", "WEIGHTED_AVG", "WEIGHTED_COUNT", "WEIGHTED_SUM"]


_PRODUCT_BITS = 62
"""Engines multiply in 64 bits: a product that left them would be an error, no number, or one of the other sign."""


def _weight(argument: Expression, declared: Declared, beside: Value | None = None) -> Value:
    """A weight in whole steps, coarser ones where its product with the value beside it would not fit into 64 bits.

    Raises PolicyError where it has no range, or one that begins below 0.
    """
    value = value_of(argument, declared, bits=GRID_BITS, centred=False)
    largest = 0 if beside is None else max(abs(beside.low), abs(beside.high))
    if value.ceiling * largest > 2**_PRODUCT_BITS:
        left = _PRODUCT_BITS - largest.bit_length()
        value = value_of(argument, declared, bits=GRID_BITS, centred=False, largest_bits=left)
    if value.floor < 0 or value.ceiling <= 0:
        names = [column.called for column in columns_in(argument)]
        called = names[0] if names else "the weight"
        limits, clamp = DeclareRange(called, 0, 20), Rewrite(f"GREATEST({called}, 0)")
        raise PolicyError(
            f"a weight is at least 0, and {called} may be less: declare it, {limits.in_python()}; or write "
            f"{clamp.in_python()}.",
            remedy=(limits, clamp) if names else clamp,
        )
    return value


def _products(x: Value, weight: Value) -> Measurement:
    """The products of values and weights, not centred."""
    return replace(product_of(x, weight), centre=0)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedCount(Sum):
    """A sum of weights."""

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """As of a sum. Raises PolicyError for a weight that may be below 0."""
        _weight(aggregate.arguments[0], declared)
        return super().measured(aggregate, declared)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSum(Computed):
    """A sum of weighted numbers; a condition counts as 1 and 0."""

    conditions: ClassVar[bool] = True

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The products of values and weights."""
        x, w = aggregate.arguments
        value = value_of(where_known(x, w, declared), declared, bits=GRID_BITS, centred=False)
        return (_products(value, _weight(where_known(w, x, declared), declared, value)),)

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        return [{parts[0]: Fraction(1)}]

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        return np.asarray(np.asarray(current[parts[0]], np.float64) * float(parts[0].step))

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        step = float(parts[0].step)
        values, reach = reading.value_of(parts[0]), reading.reach(reading.terms_of(parts[0]), level)
        return (values - reach) * step, (values + reach) * step

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        return reading.reach(reading.terms_of(parts[0]), level) * float(parts[0].step)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedMean(Computed):
    """The weighted mean of numbers; a condition counts as 1 and 0."""

    conditions: ClassVar[bool] = True
    ratio: ClassVar[str] = "values, their weights half of the largest on average"

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """S and N, of the rows where value and weight are there."""
        x, w = aggregate.arguments
        value = value_of(where_known(x, w, declared), declared, bits=GRID_BITS, centred=True)
        known = where_known(w, x, declared)
        return _products(value, _weight(known, declared)), sum_of(known, declared), count_of(known, declared)

    def quantities(self, parts: Sequence[Measurement]) -> tuple[Quantity, ...]:
        return parts[0], Total(parts[1])

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        """As of a mean: the weighted mean is taken uniform in the range."""
        value, per = _value(parts)
        width = (value.high - value.low) / per
        return [{parts[0]: Fraction(1), Total(parts[1]): -t * width} for t in (Fraction(-7, 24), Fraction(7, 24))]

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        total, weight = (np.asarray(current[m], np.float64) for m in self.quantities(parts))
        value, per = _value(parts)
        low, high = float(value.low), float(value.high)
        with np.errstate(divide="ignore", invalid="ignore"):
            offset = np.where(weight > 0, np.clip(total / weight * float(per), low, high), (low + high) / 2)
        return np.asarray((offset + value.centre) * float(value.grid.step))

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        value, per = _value(parts)
        low, high = ratio_intervals(
            reading.value_of(parts[0]),
            reading.value_of(Total(parts[1])),
            reach=_reach(parts, reading, level),
            low=float(value.low / per),
            high=float(value.high / per),
        )
        step = float(value.grid.step)
        return (low * float(per) + value.centre) * step, (high * float(per) + value.centre) * step

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """Where the weights are half of the largest one, on average."""
        value, per = _value(parts)
        ends = np.array([value.low / per, 0, value.high / per], np.float64)
        reach = (
            float(_reach(parts, reading, level)(ends).max())
            / (rows * max(parts[1].values[0].ceiling / 2, 1))
            * float(per)
        )
        return min(reach, value.high - value.low) * float(value.grid.step)


def _value(parts: Sequence[Measurement]) -> tuple[Value, Fraction]:
    """The value of S and N's mean, and how many of its steps S / N = 1 is."""
    weight = replace(parts[1].values[0], centre=0)
    value = next((v for v in parts[0].values if v != weight), weight)
    return value, Fraction(2 ** parts[0].shift)


def _reach(parts: Sequence[Measurement], reading: Reading, level: float) -> Callable[[Floats], Floats]:
    """The half-width of the noise of S - theta N."""
    total, weight = reading.terms_of(parts[0]), reading.terms_of(Total(parts[1]))

    def reach(theta: Floats) -> Floats:
        both = {t: total.get(t, 0.0) - theta * weight.get(t, 0.0) for t in {**total, **weight}}
        return reading.spread(both, level)

    return reach


WEIGHTED_COUNT = WeightedCount(
    Names(
        "WEIGHTED_COUNT",
        "WEIGHTED_COUNT",
        "weighted_count",
        ("WEIGHTED_COUNT",),
        ("WEIGHTED_COUNT(w)",),
        verb="weighted_count",
    )
)
WEIGHTED_SUM = WeightedSum(
    Names(
        "WEIGHTED_SUM", "WEIGHTED_SUM", "weighted_sum", ("WEIGHTED_SUM",), ("WEIGHTED_SUM(x, w)",), verb="weighted_sum"
    ),
    arity=2,
)
WEIGHTED_AVG = WeightedMean(
    Names(
        "WEIGHTED_AVG", "WEIGHTED_AVG", "weighted_avg", ("WEIGHTED_AVG",), ("WEIGHTED_AVG(x, w)",), verb="weighted_mean"
    ),
    arity=2,
)

FAMILY = Family(
    (WEIGHTED_COUNT, WEIGHTED_SUM, WEIGHTED_AVG),
    (
        ("`WEIGHTED_COUNT(w)`", "the sum of weights: how many people the rows stand for", "bounds of `w`, from 0 on"),
        (
            "`WEIGHTED_SUM(x, w)`, `WEIGHTED_AVG(x, w)`",
            "the sum of `x * w`, and it by that of `w`, where both are there; a condition counts as 1 and 0",
            "bounds of `x`, and of `w` from 0 on",
        ),
    ),
    (
        "WEIGHTED_COUNT(ABS(n))",
        "WEIGHTED_SUM(x, ABS(n))",
        "WEIGHTED_AVG(x, GREATEST(must, 0))",
        "WEIGHTED_AVG(x > 50, ABS(n))",
    ),
)
