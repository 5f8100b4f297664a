"""The least-squares line y = a + b x, of the rows where both are there: its slope, its intercept, and R squared.

With C the covariance, V the variance of x, theta the means: b = C / V, a = theta_y - b theta_x, R^2 = C^2 / (Vx Vy).
NULL where the noisy count, or n V, is 0 or less: the data do not say, as in SQL where x is constant.

Intervals of b and a: Fieller's idea. b is in its interval if F(b) = n C - b n V is within the half-width of its own
noise, which is, to first order, the noise of n C (that of COVAR at spread 0) less b times that of n V. For a,
F(a) = (theta_y - a) n V - theta_x n C, likewise. The half-width grows with |b| by that of n V at most, so where n V is
beyond `FLAT` times its half-width the ends are the limit of a contraction; elsewhere, and where the count says little,
nothing is known of b: the interval has no end. R^2: the square of the correlation's interval.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.tables.aggregates.base import Aggregate, Current, Declared, Family, Floats, Names, Reading, Slope
from hubbub.tables.aggregates.covariance import CORR, Joint
from hubbub.tables.aggregates.moments import Moments, largest, scenes, slope
from hubbub.tables.measure import Measurement, product_of

__all__ = ["FAMILY", "REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE"]

FLAT = 2.5
"""A variance within so many half-widths of 0 gives a line no interval with ends."""

_ROUNDS = 40

Terms = Mapping[Hashable, Any]


class Line:
    """A noisy line: parts are the sums of y and x, their count, their product, the squares of x. In steps."""

    def __init__(self, parts: Sequence[Measurement], current: Current, reading: Reading | None = None) -> None:
        y, x, n, product, squares = parts
        self.reading, self.n = reading, n
        self.joint = Moments((x, y, n, product), current, reading)
        self.own = Moments((x, n, squares), current, reading)
        self.count, safe = self.joint.count, self.joint.safe
        self.covariance, self.variance = safe * self.joint.spread, safe * self.own.spread
        self.x, self.y = self.joint.at_x, self.joint.at_y
        known = (self.count > 0) & (self.variance > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.slope = np.where(known, self.covariance / self.variance, np.nan)

    def flat(self, level: float) -> Any:
        """Where the noise hides whether x varies."""
        assert self.reading is not None
        reach = self.reading.spread(self.own.moved(), level)
        return self.joint.few(level) | ~(self.variance > FLAT * reach)

    def ends(self, estimate: Floats, noise: Callable[[Floats], Terms], level: float) -> tuple[Floats, Floats]:
        """The ends v of |estimate - v| n V = the half-width of `noise` at v."""
        assert self.reading is not None
        flat = self.flat(level) | ~np.isfinite(estimate)
        start, below = np.where(flat, 0.0, estimate), np.where(flat, 1.0, self.variance)
        ends = []
        for sign in (-1.0, 1.0):
            end = start
            for _ in range(_ROUNDS):
                end = start + sign * np.where(flat, 0.0, self.reading.spread(noise(end), level) / below)
            ends.append(np.where(flat, sign * np.inf, end))
        return ends[0], ends[1]

    def noise_of_slope(self, at: Floats) -> Terms:
        """Of n C - b n V, at b."""
        return _sum((1.0, self.joint.moved()), (-at, self.own.moved()))

    def noise_of_intercept(self, at: Floats, x: Floats, y: Floats) -> Terms:
        """Of (theta_y - a) n V - theta_x n C, at a. x, y: the means from 0, and not from the centres."""
        assert self.reading is not None
        of_x, of_y, of_n = (self.reading.terms_of(m) for m in (self.joint.x, self.joint.y, self.n))
        mean_x = _sum((1.0, of_x), (-self.x, of_n))
        mean_y = _sum((1.0, of_y), (-self.y, of_n))
        v, c = self.variance / self.joint.safe, self.covariance / self.joint.safe
        return _sum((v, mean_y), (y - at, self.own.moved()), (-x, self.joint.moved()), (-c, mean_x))


def _sum(*terms: tuple[Any, Terms]) -> dict[Hashable, Any]:
    total: dict[Hashable, Any] = {}
    for factor, slopes in terms:
        for term, coefficient in slopes.items():
            total[term] = total.get(term, 0.0) + factor * coefficient
    return total


@dataclass(frozen=True, eq=False, repr=False)
class OfLine(Joint):
    """A number of the line. Arguments: y, x."""

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """The sums of y and x, the count, the product, the squares of x."""
        sums = super().measured(aggregate, declared)
        return (*sums, product_of(sums[1].values[0], sums[1].values[0]))

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        """At correlation +-1/2, deviations a quarter of the range: db sx / sy = dC / (sx sy) - b' dV / sx^2."""
        y, x, count, product, squares = parts
        sx, sy = (max(Fraction(1), Fraction(m.high - m.low, 4)) for m in (x, y))
        slopes = []
        for sign in (1, -1):
            by = {q: value / (sx * sy) for q, value in slope(x, y, count, product, sign).items()}
            for quantity, value in slope(x, x, count, squares, sign).items():
                by[quantity] = by.get(quantity, Fraction(0)) - Fraction(sign, 2) * value / sx**2
            slopes.append(by)
        return slopes

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        return self._scaled(parts, self._value(parts, Line(parts, current)))

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        line = Line(parts, {m: reading.value_of(m) for m in parts}, reading)
        low, high = self._ends(parts, line, level)
        return self._scaled(parts, low), self._scaled(parts, high)

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """The largest over means and slopes that the ranges allow, where x deviates by a quarter of its range."""
        y, x, n, product, squares = parts
        current, _ = scenes((x, y, n, product, squares), rows)
        low, high = self._ends(parts, Line(parts, current, reading), level)
        return float(self._scaled(parts, np.array([largest(high - low) / 2]))[0])

    @abstractmethod
    def _value(self, parts: Sequence[Measurement], line: Line) -> Floats:
        """The estimate, in steps."""

    @abstractmethod
    def _ends(self, parts: Sequence[Measurement], line: Line, level: float) -> tuple[Floats, Floats]:
        """The ends of its interval, in steps."""

    @abstractmethod
    def _scaled(self, parts: Sequence[Measurement], steps: Floats) -> Floats:
        """Steps in the unit of the answer."""


class SlopeOfLine(OfLine):
    """b."""

    def _value(self, parts: Sequence[Measurement], line: Line) -> Floats:
        return line.slope

    def _ends(self, parts: Sequence[Measurement], line: Line, level: float) -> tuple[Floats, Floats]:
        return line.ends(line.slope, line.noise_of_slope, level)

    def _scaled(self, parts: Sequence[Measurement], steps: Floats) -> Floats:
        return np.asarray(steps * (float(parts[0].step) / float(parts[1].step)))


class InterceptOfLine(OfLine):
    """a."""

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        """da = d theta_y - b d theta_x - x db, in deviations of y."""
        y, x = parts[:2]
        sx, sy = (max(Fraction(1), Fraction(m.high - m.low, 4)) for m in (x, y))
        slopes = []
        for sign, of_slope in zip((1, -1), super().gradients(parts), strict=True):
            at_x = Fraction(x.high - x.low, 8) + x.values[0].centre
            by = {q: -at_x / sx * value for q, value in of_slope.items()}
            for quantity, value in ((y, 1 / sy), (x, -Fraction(sign, 2) / sx)):
                by[quantity] = by.get(quantity, Fraction(0)) + value
            slopes.append(by)
        return slopes

    def _means(self, parts: Sequence[Measurement], line: Line) -> tuple[Floats, Floats]:
        y, x = (m.values[0].centre for m in parts[:2])
        return line.x + x, line.y + y

    def _value(self, parts: Sequence[Measurement], line: Line) -> Floats:
        x, y = self._means(parts, line)
        return np.asarray(y - line.slope * x)

    def _ends(self, parts: Sequence[Measurement], line: Line, level: float) -> tuple[Floats, Floats]:
        x, y = self._means(parts, line)
        return line.ends(self._value(parts, line), lambda at: line.noise_of_intercept(at, x, y), level)

    def _scaled(self, parts: Sequence[Measurement], steps: Floats) -> Floats:
        return np.asarray(steps * float(parts[0].step))


@dataclass(frozen=True, eq=False, repr=False)
class Determination(Joint):
    """R squared: the square of the correlation."""

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        return np.asarray(CORR.estimate(parts, current) ** 2)

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        low, high = CORR.interval(parts, reading, level)
        least, most = np.minimum(low**2, high**2), np.maximum(low**2, high**2)
        return np.where((low <= 0) & (high >= 0), 0.0, least), most

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """|r^2 - s^2| = |r + s| |r - s|, at most twice the correlation's."""
        return min(2 * CORR.predicted(parts, reading, level, rows), 1.0)


REGR_SLOPE = SlopeOfLine(
    Names("REGR_SLOPE", "REGR_SLOPE", "slope", ("REGR_SLOPE",), ("REGR_SLOPE(y, x)",), verb="regr_slope"), arity=2
)
REGR_INTERCEPT = InterceptOfLine(
    Names(
        "REGR_INTERCEPT",
        "REGR_INTERCEPT",
        "intercept",
        ("REGR_INTERCEPT",),
        ("REGR_INTERCEPT(y, x)",),
        verb="regr_intercept",
    ),
    arity=2,
)
REGR_R2 = Determination(
    Names("REGR_R2", "REGR_R2", "r2", ("REGR_R2",), ("REGR_R2(y, x)",), verb="regr_r2"), arity=2, squares=True
)

FAMILY = Family(
    (REGR_SLOPE, REGR_INTERCEPT, REGR_R2),
    (
        (
            "`REGR_SLOPE(y, x)`, `REGR_INTERCEPT(y, x)`, `REGR_R2(y, x)`",
            "the least-squares line, of rows where both are there; NULL, or an interval without ends, where the noise "
            "hides whether `x` varies",
            "bounds of both",
        ),
    ),
    ("REGR_SLOPE(x, n)", "REGR_INTERCEPT(x, must)", "REGR_R2(n, x)"),
)
