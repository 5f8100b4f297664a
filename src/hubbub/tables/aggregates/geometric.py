"""The geometric mean: exp of the mean of logarithms.

LN(x) of a value within its declared range [low, high], low > 0, lies in [ln low, ln high]; a value of 0 or less counts
as low, as every value below the range does. What is measured is the centred sum of logarithms, and their count
(`hubbub.tables.aggregates.mean`); the exponential function is increasing, so the ends of the interval of the mean of
logarithms are mapped to those of an interval that is held as often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.tables.aggregates.base import Aggregate, Current, Declared, Family, Floats, Names, Reading
from hubbub.tables.aggregates.mean import Mean
from hubbub.tables.expressions import Call, Case, Compare, Expression, Literal
from hubbub.tables.measure import Measurement, count_of, sum_of
from hubbub.tables.spans import span

__all__ = ["FAMILY", "GEOMEAN"]


@dataclass(frozen=True, eq=False, repr=False)
class GeometricMean(Mean):
    """The geometric mean of numbers above 0."""

    conditions: ClassVar[bool] = False

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The centred sum of logarithms, and their count.

        Raises QueryError for a range that is not above 0.
        """
        (argument,) = aggregate.arguments
        logarithm = _logarithm(argument, declared)
        return sum_of(logarithm, declared), count_of(logarithm, declared)

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        return np.exp(super().estimate(parts, current))

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        low, high = super().interval(parts, reading, level)
        return np.exp(low), np.exp(high)

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """At the upper end, where a step of the mean of logarithms is the largest."""
        value = parts[0].values[0]
        low, high = (math.exp(end * float(parts[0].step)) for end in (value.floor, value.ceiling))
        reach = super().predicted(parts, reading, level, rows)
        return min(high * -math.expm1(-reach), high - low)


def _logarithm(argument: Expression, declared: Declared) -> Expression:
    ends = span(argument, declared)
    low = None if ends is None else ends[0]
    if low is None:
        return Call("LN", (argument,))
    if low <= 0:
        above = Rewrite("GEOMEAN(GREATEST(x, 1))")
        raise QueryError(
            f"GEOMEAN needs a range above 0, and this one begins at {float(low):g}. Declare one that does, or write it "
            f"in the question: {above.in_python()}.",
            remedy=above,
        )
    least = Literal(int(low) if low.denominator == 1 else low)
    return Call("LN", (Case((Compare("<=", argument, Literal(0)),), (least,), argument),))


GEOMEAN = GeometricMean(
    Names("GEOMEAN", "GEOMEAN", "geomean", ("GEOMEAN", "GEOMETRIC_MEAN"), ("GEOMEAN(x)",), verb="geomean")
)

FAMILY = Family(
    (GEOMEAN,),
    (("`GEOMEAN(x)`", "the geometric mean", "bounds above 0"),),
    ("GEOMEAN(GREATEST(x, 1))", "GEOMEAN(LEAST(GREATEST(n + 7, 1), 9))"),
)
