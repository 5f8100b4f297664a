"""Reals on a grid of power-of-two step, so that noise is added to integers and scaling comes last.

A value v becomes floor(v / 2^k + 1/2), computed without rounding error for every float: scaling by a power
of two is exact, and so are the comparisons. Rounding half *up* moves two reals that differ by at most d
steps to integers that differ by at most ceil(d), because floor(a + d) - floor(a) <= ceil(d); rounding half
to even can give d + 1 (0.5 -> 0, 1.5 -> 2). A private column passes its declared bounds, and then every
float has an image: values outside are clamped, NaN becomes the midpoint, and nothing raises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from hubbub.errors import ParameterError, what_was_given
from hubbub.noise.certified import ceil_sqrt
from hubbub.noise.parameters import Floats, Integers, Number, exact

__all__ = ["Grid"]


@cache
def _power_of_two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of 2^exponent.

    >>> grid = Grid(-2)
    >>> grid.to_integers([0.1, 0.125, -0.125])
    array([0, 1, 0])
    >>> grid.sensitivity(Fraction(1, 3))
    2
    """

    exponent: int

    def __post_init__(self) -> None:
        if isinstance(self.exponent, bool) or not isinstance(self.exponent, int) or abs(self.exponent) > 1000:
            raise ParameterError(f"exponent is {what_was_given(self.exponent)}; give an int between -1000 and 1000")

    @classmethod
    def of_range(cls, lower: Number, upper: Number, steps: int = 2**20) -> Grid:
        """The coarsest grid with at least `steps` steps between two bounds."""
        width = exact(upper, "upper") - exact(lower, "lower")
        if width <= 0 or steps < 1:
            raise ParameterError(
                f"a grid needs lower < upper and steps >= 1; found {what_was_given(lower)}, "
                f"{what_was_given(upper)}, {what_was_given(steps)}"
            )
        step = width / steps
        exponent = step.numerator.bit_length() - step.denominator.bit_length()
        return cls(exponent if Fraction(2) ** exponent <= step else exponent - 1)

    @property
    def step(self) -> Fraction:
        """2^exponent."""
        return _power_of_two(self.exponent)

    def nearest(self, value: Number) -> int:
        """The grid point of one exactly given number, in steps."""
        return math.floor(exact(value, "value") / self.step + Fraction(1, 2))

    def to_integers(self, values: Any, lower: Number | None = None, upper: Number | None = None) -> Integers:
        """Values in steps, int64, of the same shape.

        With bounds, total: values are clamped to the bounds' grid points and NaN becomes their midpoint.
        Without bounds, for public values only: raises ParameterError for NaN, infinities and what int64
        cannot hold.
        """
        array = _numbers(values)
        # A caller's np.seterr must not turn a private value that overflows or underflows into an exception.
        with np.errstate(all="ignore"):
            if lower is not None and upper is not None:
                return self._clamped(array, lower, upper)
            if lower is not None or upper is not None:
                raise ParameterError("give both bounds or neither")
            if array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > 2**53:
                raise ParameterError("ints beyond 2^53 are not exact as floats; give them in steps already, or bounds")
            scaled = np.asarray(np.ldexp(array.astype(np.float64), -self.exponent))
            if not bool(np.all(np.abs(scaled) < 2.0**62)):
                raise ParameterError(
                    "some value is not finite or beyond int64 on this grid; give bounds or a coarser grid"
                )
            return _half_up(scaled)

    def _clamped(self, array: Any, lower: Number, upper: Number) -> Integers:
        low, high = self.nearest(lower), self.nearest(upper)
        if low > high or max(abs(low), abs(high)) > 2**53:
            raise ParameterError(
                f"bounds {what_was_given(lower)}, {what_was_given(upper)} are {low} and {high} steps; give them "
                "in order, within 2^53"
            )
        if array.dtype.kind in "iu":
            if self.exponent > 0:
                return _clip(_shifted(array, self.exponent), low, high)
            # Steps are at least as many as units here, so that no bound lies beyond 2^53 units.
            array = _clip(array, -(2**53), 2**53)
        scaled = np.ldexp(array.astype(np.float64), -self.exponent)
        middle = (low + high) // 2
        return _half_up(np.clip(np.where(np.isnan(scaled), float(middle), scaled), float(low), float(high)))

    def from_integers(self, integers: Any) -> Any:
        """Steps back to floats, each rounded once; a Python int gives the exact Fraction."""
        if isinstance(integers, int):
            return integers * self.step
        array = np.asarray(integers)
        if array.dtype == object:  # Python ints that int64 does not hold, whose floats may not exist either
            return np.vectorize(lambda steps: _float(steps * self.step), otypes=[np.float64])(array)
        return np.ldexp(array.astype(np.float64), self.exponent)

    def sensitivity(self, sensitivity: Number, coordinates: int = 1) -> int:
        """The l1 sensitivity in steps of a function whose real l1 sensitivity is given, after rounding each
        coordinate.

        One coordinate that moves by d steps moves by at most ceil(d) after rounding; m coordinates that
        move by d in all, by at most ceil(d) + m - 1.
        """
        steps = exact(sensitivity, "sensitivity") / self.step
        self._check(steps, coordinates)
        return math.ceil(steps) + coordinates - 1

    def sensitivity2(self, sensitivity: Number, coordinates: int = 1) -> int:
        """An integer at or above the l2 sensitivity in steps, rounding included."""
        steps = exact(sensitivity, "sensitivity") / self.step
        self._check(steps, coordinates)
        return math.ceil(steps) if coordinates == 1 else math.ceil(steps) + ceil_sqrt(Fraction(coordinates))

    def _check(self, steps: Fraction, coordinates: int) -> None:
        if steps < 0 or coordinates < 1:
            raise ParameterError(f"sensitivity {steps} steps over {coordinates} coordinates; give >= 0 and >= 1")


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _numbers(values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise ParameterError(f"values of {array.dtype} have no place on a grid; give ints or floats")
    return array


def _clip(array: Any, low: int, high: int) -> Integers:
    """Ints of any type within low .. high, both within 2^53, as int64."""
    wide = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
    if array.dtype.kind == "u":
        wide = np.minimum(wide, np.uint64(2**53)).astype(np.int64)
    return np.asarray(np.clip(wide, low, high))


def _shifted(array: Any, digits: int) -> Any:
    """floor(v / 2^digits + 1/2) of ints for digits > 0, without a sum that could overflow."""
    wide = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
    if digits > 64:
        return np.zeros_like(wide)  # |v| < 2^64 is less than half a step
    one = wide.dtype.type(1)
    half = (wide >> wide.dtype.type(min(digits - 1, 63))) & one
    if digits == 64 and wide.dtype.kind == "i":
        return np.zeros_like(wide)  # v >= -2^63 is half a step below 0 at most
    whole = wide >> wide.dtype.type(digits) if digits < 64 else np.zeros_like(wide)
    return whole + half


def _half_up(scaled: Floats) -> Integers:
    """floor(v + 1/2), without the rounding error of the sum."""
    down = np.floor(scaled)
    return (down + (scaled - down >= 0.5)).astype(np.int64)
