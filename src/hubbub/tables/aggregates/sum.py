"""The sum: centred sum and count, or the total itself, whichever is predicted to be better.

Estimate: the noisy total, unbiased around the bounded truth. Interval: quantiles of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

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
from hubbub.tables.measure import Measurement, bounded_sum, count_of, sum_of

__all__ = ["FAMILY", "SUM"]


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Computed):
    """A sum of numbers; a condition counts as 1 and 0."""

    conditions: ClassVar[bool] = True
    zero_adds_nothing: ClassVar[bool] = True

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The centred sum, and the count that its centre is taken off by; alone where a unit's sum is clipped."""
        (argument,) = aggregate.arguments
        capped = bounded_sum(argument, declared)
        if capped is not None:
            return (capped,)
        return sum_of(argument, declared), count_of(argument, declared)

    def quantities(self, parts: Sequence[Measurement]) -> tuple[Quantity, ...]:
        return (Total(parts[0]),)

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        return [{Total(parts[0]): Fraction(1)}]

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        return np.asarray(current[Total(parts[0])] * float(parts[0].step))

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        total, step = Total(parts[0]), float(parts[0].step)
        values, reach = reading.value_of(total), reading.reach(reading.terms_of(total), level)
        return (values - reach) * step, (values + reach) * step

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        return reading.reach(reading.terms_of(Total(parts[0])), level) * float(parts[0].step)


SUM = Sum(Names("SUM", "SUM", "sum", ("SUM",), ("SUM(x)",)))

FAMILY = Family(
    (SUM,),
    (("`SUM(x)`", "the sum of numbers; a condition counts as 1 and 0", "bounds"),),
    (
        "SUM(x)",
        "SUM(n) FILTER (WHERE ok)",
        "SUM(must)",
        "SUM(CASE WHEN x > 50 THEN 1 ELSE 0 END)",
        "SUM(LEAST(GREATEST(x * n, -5), 5))",
        "SUM(LEAST(LENGTH(ward), 4) + ABS(n))",
    ),
)
