"""Variances and standard deviations: Q / N - (S / N)^2, held inside what the declared range allows.

Interval: Fieller's idea for F(v) = Q - v N - S^2 / N, whose noise is Q' - 2 theta S' + (theta^2 - v) N' but for a term
of the size of noise^2 / N; so where N is within three of its own half-widths of 0, it is the whole range. What is of a
sample, n / (n - 1) times that, takes each end at the end of N that moves it outward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from hubbub.tables.aggregates.base import Aggregate, Computed, Current, Declared, Family, Floats, Names, Reading, Slope
from hubbub.tables.aggregates.moments import Moments, ends, largest, limits, scaled, scenes, slope
from hubbub.tables.measure import Measurement, count_of, product_of, sum_of

__all__ = ["FAMILY", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP"]


@dataclass(frozen=True, eq=False, repr=False)
class Spread(Computed):
    """A variance, or its root; of a sample, or of the whole population."""

    sample: bool = False
    root: bool = False

    ratio: ClassVar[str] = "values"

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The centred sum, the count, the centred squares."""
        (argument,) = aggregate.arguments
        total = sum_of(argument, declared)
        return total, count_of(argument, declared), product_of(total.values[0], total.values[0])

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        total, count, square = parts
        return [slope(total, total, count, square, sign) for sign in (1, -1)]

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        least, most = limits(parts[0], None)
        moments = Moments(parts, current)
        estimate = np.where(moments.count > 0, np.clip(moments.estimate(), least, most), (least + most) / 2)
        return self._scaled(parts, estimate, moments.count)

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        return ends(parts, reading, level, partial(self._scaled, parts))

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """The largest over means and spreads that the range allows; of a root, at a quarter of the range."""
        least, most = limits(parts[0], None)
        current, spread = scenes(parts, rows)
        worst = largest(Moments(parts, current, reading).reach(spread, level))
        step = float(parts[0].step)
        if self.root:
            quarter = (parts[0].high - parts[0].low) / 4 or 1.0
            return min(worst / (2 * quarter), float(np.sqrt(most))) * step
        return min(worst, most - least) * (step * float(parts[-1].values[1].grid.step))

    def _scaled(self, parts: Sequence[Measurement], spread: Floats, count: Floats) -> Floats:
        return scaled(parts[0], parts[0], spread, count, sample=self.sample, root=self.root)


VAR_POP = Spread(Names("VAR_POP", "VAR_POP", "var_pop", ("VAR_POP", "VARIANCE_POP"), ("VAR_POP(x)",)))
VAR_SAMP = Spread(Names("VAR_SAMP", "VAR_SAMP", "var_samp", ("VAR_SAMP", "VARIANCE"), ("VAR_SAMP(x)",)), sample=True)
STDDEV_POP = Spread(Names("STDDEV_POP", "STDDEV_POP", "stddev_pop", ("STDDEV_POP",)), root=True)
STDDEV_SAMP = Spread(
    Names("STDDEV_SAMP", "STDDEV_SAMP", "stddev", ("STDDEV_SAMP", "STDDEV"), ("STDDEV(x)",)), sample=True, root=True
)

FAMILY = Family(
    (VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP),
    (("`VAR_POP`, `VAR_SAMP`, `VARIANCE`, `STDDEV`, `STDDEV_POP`, `STDDEV_SAMP`", "spread", "bounds"),),
    ("VAR_POP(x)", "VAR_SAMP(n)", "STDDEV_POP(must)", "STDDEV_SAMP(x)"),
)
