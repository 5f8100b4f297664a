"""Second moments of a noisy release: variances, standard deviations, covariances, correlations, and their errors.

In squared steps of the grids. With means theta = S / N the spread is P / N - theta_x theta_y (`hubbub.tables.estimates`
says how intervals follow). Errors are linear combinations of noise terms: a mapping of term to coefficient by group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InternalError
from hubbub.tables.aggregates.base import Quantity, Reading, Slope
from hubbub.tables.measure import Measurement

__all__ = ["FEW", "Moments", "ends", "largest", "limits", "scaled", "scenes", "slope"]

Floats: TypeAlias = NDArray[np.float64]
Term: TypeAlias = Hashable

FLAT = 2.0
"""A variance within so many half-widths of 0 gives a correlation its whole range."""

FEW = 3.0
"""A noisy count within so many half-widths of 0 says little: ratios of products are then given their whole range."""


class Moments:
    """Second moments in squared steps: of x and y (the same for a variance), their count and products.

    parts: sum, count, square of one argument; or the two sums, count, product, and the squares where they were
    measured. correlation: whether the spread is the quotient by both deviations. current: the quantities, by group.
    reading: of the noise; without it there are estimates only.
    """

    def __init__(
        self,
        parts: Sequence[Measurement],
        current: Mapping[Quantity, Any],
        reading: Reading | None = None,
        *,
        correlation: bool = False,
    ) -> None:
        self.correlation, self._reading = correlation, reading
        self.pair = len(parts) > 3
        if not self.pair:
            self.x, self.n, self.product = parts[:3]
            self.y = self.x
        else:
            self.x, self.y, self.n, self.product = parts[:4]
        self.squares = tuple(parts[4:]) if self.pair else ()
        self.count = np.asarray(current[self.n], np.float64)
        self.safe = np.maximum(self.count, 1.0)
        self.at_x, self.at_y = (np.clip(current[m] / self.safe, m.low, m.high) for m in (self.x, self.y))
        self.spread = self._second(self.product, current) - self.at_x * self.at_y
        if self.squares:
            first, second = self.squares
            self.of_x = np.maximum(self._second(first, current) - self.at_x**2, 1e-9)
            self.of_y = np.maximum(self._second(second, current) - self.at_y**2, 1e-9)

    def _second(self, product: Measurement, current: Mapping[Quantity, Any]) -> Floats:
        return np.asarray((current[product] / self.safe + product.centre) * 2.0**product.shift)

    def _add(self, terms: dict[Term, Any], measurement: Quantity, factor: Any) -> None:
        for term, coefficient in self._noise.terms_of(measurement).items():
            terms[term] = terms.get(term, 0.0) + factor * coefficient

    @property
    def _noise(self) -> Reading:
        if self._reading is None:
            raise InternalError("moments without noise terms have no error")
        return self._reading

    def _reach_of(self, terms: Mapping[Term, Any], level: float) -> Floats:
        return self._noise.spread(terms, level)

    def few(self, level: float) -> NDArray[np.bool_]:
        """Where the noisy count says little."""
        return np.asarray(self.count <= FEW * self._reach_of_count(level))

    def counts(self, level: float) -> tuple[Floats, Floats]:
        """The ends of the count."""
        reach = self._reach_of_count(level)
        return self.count - reach, self.count + reach

    def _reach_of_count(self, level: float) -> Any:
        return self._noise.reach(self._noise.terms_of(self.n), level)

    def _errors(self, x: Measurement, y: Measurement, product: Measurement, spread: Any, at: tuple[Any, Any]) -> Any:
        """The noise of n times (E xy - E x E y), first order, at a hypothetical spread."""
        terms: dict[Term, Any] = {}
        unit = 2.0**product.shift
        at_x, at_y = at
        self._add(terms, product, unit + 0 * spread)
        self._add(terms, x, -at_y + 0 * spread)
        self._add(terms, y, -at_x + 0 * spread)
        # From F(v): the product's own centre adds centre * count to it.
        self._add(terms, self.n, product.centre * unit + at_x * at_y - spread)
        return terms

    def moved(self) -> dict[Term, Any]:
        """The noise of n (E xy - E x E y), first order: the coefficient of each term."""
        terms: dict[Term, Any] = self._errors(self.x, self.y, self.product, 0 * self.count, (self.at_x, self.at_y))
        return terms

    def reach(self, spread: Any, level: float) -> Floats:
        """The half-width at a hypothetical spread (covariance in squared steps, or correlation)."""
        if not self.correlation:
            terms = self._errors(self.x, self.y, self.product, spread, (self.at_x, self.at_y))
            return np.asarray(self._reach_of(terms, level) / self.safe)
        scale = np.sqrt(self.of_x * self.of_y)
        terms = self._errors(self.x, self.y, self.product, spread * scale, (self.at_x, self.at_y))
        whole = {t: c / scale for t, c in terms.items()}
        for m, square, variance, at in self._under:
            for t, c in self._errors(m, m, square, variance, (at, at)).items():
                whole[t] = whole.get(t, 0.0) - spread / 2 * c / variance
        return np.asarray(self._reach_of(whole, level) / self.safe)

    def flat(self, level: float) -> NDArray[np.bool_]:
        """Where a variance below a correlation is not far enough from 0 for its first-order noise to do."""
        flat = np.zeros(self.count.shape, np.bool_)
        for m, square, variance, at in self._under:
            terms = self._errors(m, m, square, variance, (at, at))
            flat |= variance * self.safe <= FLAT * self._reach_of(terms, level)
        return flat

    @property
    def _under(self) -> list[tuple[Measurement, Measurement, Any, Any]]:
        """Of a correlation: each argument with its square, variance and mean."""
        if not self.squares:
            return []
        first, second = self.squares
        return [(self.x, first, self.of_x, self.at_x), (self.y, second, self.of_y, self.at_y)]

    def estimate(self) -> Floats:
        if not self.correlation:
            return np.asarray(self.spread)
        return np.asarray(self.spread / np.sqrt(self.of_x * self.of_y))

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The ends solve |estimate - v| = reach(v); the reach varies slowly with v."""
        least, most = limits(self.x, self.y if self.pair else None, correlation=self.correlation)
        estimate = self.estimate()
        ends = []
        for sign in (-1.0, 1.0):
            end = np.clip(estimate, least, most)
            for _ in range(1 if self.correlation else 4):
                end = np.clip(estimate + sign * self.reach(end, level), least, most)
            ends.append(end)
        return ends[0], ends[1]


def ends(
    parts: Sequence[Measurement], reading: Reading, level: float, scale: Callable[[Floats, Floats], Floats]
) -> tuple[Floats, Floats]:
    """The interval of a variance or covariance. scale: a population's, and a count, to what was asked.

    What is of a sample is n / (n - 1) times what is of all: each end is taken at that end of the count which moves it
    outward. At the noisy count the largest spread that there can be would lie beyond the upper end half of the time.
    """
    moments = Moments(parts, {m: reading.value_of(m) for m in parts}, reading)
    low, high = moments.interval(level)
    least, most = limits(moments.x, moments.y if moments.pair else None)
    few = moments.few(level)
    low, high = np.where(few, least, low), np.where(few, most, high)
    fewest, many = moments.counts(level)
    return scale(low, np.where(low < 0, fewest, many)), scale(high, np.where(high > 0, fewest, many))


def limits(x: Measurement, y: Measurement | None, *, correlation: bool = False) -> tuple[float, float]:
    """What a spread can be within declared ranges, in squared steps: |cov| <= wx wy / 4 (Popoviciu, Cauchy-Schwarz).

    y: None for a variance.
    """
    if correlation:
        return -1.0, 1.0
    other = x if y is None else y
    most = (x.high - x.low) * (other.high - other.low) / 4
    return (0.0 if y is None else -most), most


def scaled(
    x: Measurement, y: Measurement, spread: Any, count: Any, *, sample: bool = False, root: bool = False
) -> Floats:
    """A population spread in squared steps, in the unit of the arguments; of a sample, or its root, where asked."""
    scaled_spread = spread * (float(x.step) * float(y.step))
    if sample:
        n = np.maximum(count, 2.0)
        scaled_spread = scaled_spread * (n / (n - 1))
    return np.asarray(np.sqrt(np.maximum(scaled_spread, 0.0)) if root else scaled_spread)


def slope(x: Measurement, y: Measurement, count: Measurement, product: Measurement, sign: int) -> Slope:
    """The slopes of E xy - E x E y, times the number of rows: at a spread a quarter of the range wide, around a mean
    w / 8 off the middle.
    """
    unit = 2**product.shift
    at_x, at_y = Fraction(x.high - x.low, 8), sign * Fraction(y.high - y.low, 8)
    spread = Fraction((x.high - x.low) * (y.high - y.low), 16) if x == y else Fraction(0)
    if x == y:
        at_x = at_y
    mean = spread + at_x * at_y
    slopes: Slope = {product: Fraction(unit)}
    slopes[count] = -(mean - product.centre * unit) + 2 * at_x * at_y
    for quantity, by in ((x, -at_y), (y, -at_x)):
        slopes[quantity] = slopes.get(quantity, Fraction(0)) + by
    return slopes


def largest(errors: Floats) -> float:
    """The largest of errors at several scenes; one that is not a number does not count."""
    return float(np.fmax.reduce(errors, initial=0.0))


def scenes(
    parts: Sequence[Measurement], rows: int, *, correlation: bool = False
) -> tuple[dict[Quantity, Floats], Floats]:
    """Means and spreads across the range, as quantities of a group of `rows` values: arrays of one item for each."""
    variance = len(parts) == 3
    x, y = parts[0], parts[0] if variance else parts[1]
    n, product = (parts[1], parts[2]) if variance else (parts[2], parts[3])
    wx, wy = (max(m.high - m.low, 1) for m in (x, y))
    at, spread, sign = (
        np.array(ends, np.float64)
        for ends in zip(
            *(
                (at, spread, sign)
                for at in (-0.5, -0.25, 0.0, 0.25, 0.5)
                for spread in (0.0, 1 / 16, 0.25 - at**2)
                for sign in ((1,) if variance else (1, -1))
            ),
            strict=True,
        )
    )
    tx, ty = (x.low + x.high) / 2 + at * wx, (y.low + y.high) / 2 + sign * at * wy
    value = sign * spread * wx * wy
    current: dict[Quantity, Floats] = {n: np.full(len(at), float(rows)), x: tx * rows, y: ty * rows}
    current[product] = ((value + tx * ty) / 2.0**product.shift - product.centre) * rows
    for t, w, square in ((tx, wx, parts[4:5]), (ty, wy, parts[5:6])):
        for q in square:
            current[q] = ((w * w / 16 + t * t) / 2.0**q.shift - q.centre) * rows
    return current, 0 * value if correlation else value
