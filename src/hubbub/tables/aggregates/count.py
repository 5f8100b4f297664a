"""Counts: of rows, of rows with a value, of units, of different values.

Estimate: the noisy count, rounded; it can be negative. Interval: quantiles of the noise, rounded as the count is
(`hubbub.tables.rounded`). A whole noisy number is off by as much in every group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hubbub.tables.aggregates.base import (
    ANY_KIND,
    Aggregate,
    Computed,
    Current,
    Declared,
    Family,
    Floats,
    Names,
    Reading,
    Slope,
)
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Measurement, MeasurementKind, count_of

__all__ = ["COUNT_DISTINCT", "COUNT_ROWS", "COUNT_UNITS", "COUNT_VALUES", "FAMILY"]


@dataclass(frozen=True, eq=False, repr=False)
class Count(Computed):
    """A count of one kind."""

    counting: MeasurementKind = MeasurementKind.ROWS

    kinds: ClassVar[frozenset[Kind]] = ANY_KIND
    whole: ClassVar[bool] = True

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """COUNT(x) of a column declared nullable=False is COUNT(*)."""
        argument = aggregate.argument
        if self.counting is MeasurementKind.VALUES and argument is not None:
            return (count_of(argument, declared),)
        return (Measurement(self.counting, argument),)

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        return [{parts[0]: Fraction(1)}]

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        return np.asarray(current[parts[0]], np.float64)

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        counts = np.asarray(reading.value_of(parts[0]), np.float64)
        middle, reach = np.rint(np.clip(counts, -(2.0**62), 2.0**62)), reading.count_reach(parts[0], level)
        return middle - reach, middle + reach

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        return reading.count_reach(parts[0], level)


COUNT_ROWS = Count(Names("COUNT_ROWS", "COUNT(*)", "count", ("COUNT",), ("COUNT(*)",)), arity=0)
COUNT_VALUES = Count(
    Names("COUNT_VALUES", "COUNT", "count", ("COUNT_IF",), ("COUNT(x)",)), counting=MeasurementKind.VALUES
)
COUNT_UNITS = Count(Names("COUNT_UNITS", "COUNT(DISTINCT unit)", "units"), arity=0, counting=MeasurementKind.UNITS)
COUNT_DISTINCT = Count(
    Names("COUNT_DISTINCT", "COUNT(DISTINCT ...)", "distinct", forms=("COUNT(DISTINCT x)",)),
    counting=MeasurementKind.DISTINCT,
)

FAMILY = Family(
    (COUNT_ROWS, COUNT_VALUES, COUNT_UNITS, COUNT_DISTINCT),
    (
        ("`COUNT(*)`", "rows", ""),
        (
            "`COUNT(x)`, `COUNT_IF(condition)`",
            "rows where `x` is not NULL; rows where the condition is true",
            "",
        ),
        ("`COUNT(DISTINCT patient_id)`", "units: the column is the unit's", ""),
        (
            "`COUNT(DISTINCT x)`",
            "different values of any other expression, of which one unit brings at most `max_rows` to a group",
            "",
        ),
    ),
    (
        "COUNT(*)",
        "COUNT(x)",
        "COUNT(must)",
        "COUNT(*) FILTER (WHERE x > 50)",
        "COUNT_IF(ok)",
        "COUNT(DISTINCT ward)",
        "COUNT(DISTINCT n)",
        "COUNT(DISTINCT x)",
        "COUNT(DISTINCT ward || ward)",
    ),
)
