"""The mean: centre + S / N, held inside the declared range; the middle of it where the noisy count N is 0 or less.

Interval: Fieller's method (`hubbub.mechanisms.ratio`), which is exact: theta is in it if S - theta N, whose noise is
S' - theta N', is within that noise's half-width of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hubbub.mechanisms.ratio import ratio_intervals
from hubbub.tables.aggregates.base import Aggregate, Computed, Current, Declared, Family, Floats, Names, Reading, Slope
from hubbub.tables.measure import Measurement, count_of, sum_of

__all__ = ["AVG", "FAMILY", "Mean"]


@dataclass(frozen=True, eq=False, repr=False)
class Mean(Computed):
    """The mean of numbers; a condition counts as 1 and 0."""

    conditions: ClassVar[bool] = True
    ratio: ClassVar[str] = "values"

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The centred sum, and the count."""
        (argument,) = aggregate.arguments
        return sum_of(argument, declared), count_of(argument, declared)

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        """A mean theta (centred) is taken uniform in the range: E theta^2 = w^2 / 12."""
        width = parts[0].high - parts[0].low
        return [{parts[0]: Fraction(1), parts[1]: -t * width} for t in (Fraction(-7, 24), Fraction(7, 24))]

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        total, count = (np.asarray(current[m], np.float64) for m in parts)
        low, high = parts[0].low, parts[0].high
        with np.errstate(divide="ignore", invalid="ignore"):
            offset = np.where(count > 0, np.clip(total / count, low, high), (low + high) / 2)
        return np.asarray((offset + parts[0].values[0].centre) * float(parts[0].step))

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        low, high = ratio_intervals(
            reading.value_of(parts[0]),
            reading.value_of(parts[1]),
            reach=_reach(parts, reading, level),
            low=float(parts[0].low),
            high=float(parts[0].high),
        )
        centre, step = parts[0].values[0].centre, float(parts[0].step)
        return (low + centre) * step, (high + centre) * step

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        ends = np.array([parts[0].low, 0, parts[0].high], np.float64)
        reach = float(_reach(parts, reading, level)(ends).max()) / rows
        return min(reach, parts[0].high - parts[0].low) * float(parts[0].step)


def _reach(parts: Sequence[Measurement], reading: Reading, level: float) -> Callable[[Floats], Floats]:
    """The half-width of the noise of S - theta N."""
    total, count = (reading.terms_of(m) for m in parts[:2])

    def reach(theta: Floats) -> Floats:
        both = {t: total.get(t, 0.0) - theta * count.get(t, 0.0) for t in {**total, **count}}
        return reading.spread(both, level)

    return reach


AVG = Mean(Names("AVG", "AVG", "avg", ("AVG",), ("AVG(x)",)))

FAMILY = Family(
    (AVG,),
    (("`AVG(x)`", "the mean of numbers; a condition counts as 1 and 0", "bounds"),),
    ("AVG(x)", "AVG(n - x)", "AVG(must)", "AVG(ROUND(x / 3, 1))"),
)
