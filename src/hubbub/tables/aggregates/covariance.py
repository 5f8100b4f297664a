"""Covariances and correlations, of the rows where both arguments are there: P / N - Sx Sy / N^2, and its quotient by
the two deviations, each held inside what the declared ranges allow.

Intervals: Fieller's idea, as for variances, for F(v) = P - v N - Sx Sy / N, whose noise is P' - theta_y Sx' - theta_x
Sy' + (theta_x theta_y - v) N' to first order; the whole range where N is within three of its own half-widths of 0.
Of a correlation its first-order noise, likewise, and the whole range where a variance is within two half-widths of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from hubbub.tables.aggregates.base import Aggregate, Computed, Current, Declared, Family, Floats, Names, Reading, Slope
from hubbub.tables.aggregates.moments import Moments, ends, largest, limits, scaled, scenes, slope
from hubbub.tables.measure import Measurement, count_of, product_of, sum_of, where_known

__all__ = ["CORR", "COVAR_POP", "COVAR_SAMP", "FAMILY", "Joint"]


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Computed):
    """What is made of the moments of two arguments, over the rows where both are there.

    squares: whether those of both are measured too.
    """

    squares: bool = False

    ratio: ClassVar[str] = "values"

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The two sums, the count, the product; and the squares of both."""
        x, y = aggregate.arguments
        first, second = where_known(x, y, declared), where_known(y, x, declared)
        a, b = sum_of(first, declared), sum_of(second, declared)
        sums = (a, b, count_of(first, declared), product_of(a.values[0], b.values[0]))
        if not self.squares:
            return sums
        return (*sums, product_of(a.values[0], a.values[0]), product_of(b.values[0], b.values[0]))

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        x, y, count, product = parts[:4]
        slopes = [slope(x, y, count, product, sign) for sign in (1, -1)]
        if not self.squares:
            return slopes
        # At correlation +-1/2: dr = dC / (sx sy) - r/2 (dVx / Vx + dVy / Vy), with s a quarter of the range.
        sx, sy = (max(Fraction(1), Fraction(m.high - m.low, 4)) for m in (x, y))
        for sign, by in zip((1, -1), slopes, strict=True):
            for quantity in by:
                by[quantity] /= sx * sy
            for total, square, s in ((x, parts[4], sx), (y, parts[5], sy)):
                for quantity, value in slope(total, total, count, square, sign).items():
                    by[quantity] = by.get(quantity, Fraction(0)) - Fraction(sign, 4) * value / s**2
        return slopes


@dataclass(frozen=True, eq=False, repr=False)
class Covariance(Joint):
    """A covariance; of a sample, or of the whole population."""

    sample: bool = False

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        least, most = limits(parts[0], parts[1])
        moments = Moments(parts, current)
        estimate = np.where(moments.count > 0, np.clip(moments.estimate(), least, most), (least + most) / 2)
        return self._scaled(parts, estimate, moments.count)

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        return ends(parts, reading, level, partial(self._scaled, parts))

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """The largest over means and spreads that the ranges allow."""
        least, most = limits(parts[0], parts[1])
        current, spread = scenes(parts, rows)
        worst = largest(Moments(parts, current, reading).reach(spread, level))
        return min(worst, most - least) * (float(parts[0].step) * float(parts[1].step))

    def _scaled(self, parts: Sequence[Measurement], spread: Floats, count: Floats) -> Floats:
        return scaled(parts[0], parts[1], spread, count, sample=self.sample)


@dataclass(frozen=True, eq=False, repr=False)
class Correlation(Joint):
    """Pearson's correlation."""

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        moments = Moments(parts, current, correlation=True)
        return np.asarray(np.where(moments.count > 0, np.clip(moments.estimate(), -1.0, 1.0), 0.0))

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        moments = Moments(parts, {m: reading.value_of(m) for m in parts}, reading, correlation=True)
        low, high = moments.interval(level)
        few = moments.few(level) | moments.flat(level)
        return np.where(few, -1.0, low), np.where(few, 1.0, high)

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """The largest over means that the ranges allow, where both deviations are a quarter of the range."""
        current, spread = scenes(parts, rows, correlation=True)
        worst = largest(Moments(parts, current, reading, correlation=True).reach(spread, level))
        return min(worst, 2.0)


COVAR_POP = Covariance(Names("COVAR_POP", "COVAR_POP", "covar_pop", ("COVAR_POP",)), arity=2)
COVAR_SAMP = Covariance(
    Names("COVAR_SAMP", "COVAR_SAMP", "covar", ("COVAR_SAMP",), ("COVAR_SAMP(x, y)",)), arity=2, sample=True
)
CORR = Correlation(Names("CORR", "CORR", "corr", ("CORR",), ("CORR(x, y)",)), arity=2, squares=True)

FAMILY = Family(
    (COVAR_SAMP, COVAR_POP, CORR),
    (("`COVAR_POP(y, x)`, `COVAR_SAMP(y, x)`, `CORR(y, x)`", "of rows where both are there", "bounds of both"),),
    ("COVAR_POP(x, n)", "COVAR_SAMP(n, must)", "CORR(x, n)"),
)
