"""What callers may pass, read exactly.

A float is the dyadic rational it stands for, an int or a Fraction is itself; nothing is rounded. Scales
that are zero, negative, NaN or infinite have no distribution, and scales above `MAX_SCALE` could leave
int64, so both are errors. With scale <= 2^53 the probability that a draw leaves int64 is below exp(-2^10)
for the discrete Laplace and below exp(-2^19) for the discrete Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given

Number = int | float | Fraction
Size = int | tuple[int, ...] | None
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

MAX_SCALE = 2**53

_GREATEST = 2**500

_NUMBERS = "give an int, a float or a Fraction"

# A Decimal of a few characters may stand for a ratio that fills the memory.
_MOST_DIGITS = 10_000

# Every law below this has all its float mass at 0; clipping the *approximation* keeps reciprocals finite.
_LEAST_APPROXIMATION = 2.0**-250


def exact(value: Any, name: str) -> Fraction:
    """The rational a number stands for. Raises ParameterError for NaN, infinities and things that are not
    number.

    >>> exact(0.5, "scale")
    Fraction(1, 2)
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} is {what_was_given(value)}, a truth value; {_NUMBERS}")
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float | np.floating | Decimal):
        # Not float(value): a long double or a Decimal holds more digits than a float does.
        if not (value.is_finite() if isinstance(value, Decimal) else np.isfinite(value)):
            raise ParameterError(f"{name} is {what_was_given(value)}; it must be finite")
        if isinstance(value, Decimal) and value and abs(value.adjusted()) > _MOST_DIGITS:
            raise ParameterError(
                f"{name} is {what_was_given(value)}; give a number between 1e-{_MOST_DIGITS} and 1e{_MOST_DIGITS}"
            )
        return Fraction(*value.as_integer_ratio())
    # The type alone, of a text too: it may be one of an array.
    raise ParameterError(f"{name} is a {type(value).__name__}; {_NUMBERS}")


def positive(value: Any, name: str) -> Fraction:
    """`exact`, and greater than zero."""
    number = exact(value, name)
    # By numerators, here and below: comparing fractions would take longer than a draw.
    if number.numerator <= 0:
        raise ParameterError(f"{name} is {what_was_given(value)}; it must be greater than zero")
    if number.numerator > _GREATEST * number.denominator:
        raise ParameterError(f"{name} is above 2^500, where floats end; use a coarser grid")
    return number


def drawable(scale: Fraction, name: str) -> Fraction:
    """The scale, if its draws fit in int64."""
    if scale.numerator > MAX_SCALE * scale.denominator:
        raise ParameterError(
            f"{name} is about 2^{math.ceil(scale).bit_length() - 1}; draws are int64, so it may be at most "
            "2^53. Use a coarser grid"
        )
    return scale


def approximation(value: Fraction) -> float:
    """A float within one unit in the last place of the value, kept away from zero."""
    return max(float(value), _LEAST_APPROXIMATION)


@dataclass(frozen=True)
class Cells:
    """One positive parameter for each of many cells: floats to work with, rationals to decide with.

    `approximate` has shape (n,) or () and relative error at most 2^-52 where it exceeds 2^-250;
    `exactly(i)` is the parameter of cell i.
    """

    approximate: Floats
    exactly: Callable[[int], Fraction]

    def part(self, start: int, stop: int) -> Cells:
        """Cells start .. stop-1."""
        if self.approximate.ndim == 0:
            return self
        exactly = self.exactly
        return Cells(self.approximate[start:stop], lambda i: exactly(start + i))

    def at(self, index: Integers) -> Cells:
        """The cells at the given places, with repeats."""
        exactly = self.exactly
        approximate = self.approximate if self.approximate.ndim == 0 else self.approximate[index]
        return Cells(approximate, lambda i: exactly(int(index[i])))


def one_cell(value: Fraction) -> Cells:
    """The same parameter in every cell."""
    return Cells(np.asarray(approximation(value)), lambda _: value)


def many_cells(values: Any, shape: tuple[int, ...], name: str, limit: int) -> Cells:
    """A parameter per cell, broadcast to `shape` and flattened. Raises ParameterError naming the first bad
    cell.
    """
    array = np.asarray(values)
    if array.dtype == object:
        rationals: Sequence[Fraction] = [positive(v, name) for v in np.broadcast_to(array, shape).ravel()]
        for value in rationals:
            if value > limit:
                raise _too_large(name)
        floats = np.array([approximation(v) for v in rationals], dtype=np.float64)
        return Cells(floats, lambda i: rationals[i])
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise ParameterError(f"{name} is an array of {array.dtype}; give ints, floats or an object array of Fractions")
    # Ints are compared as ints: 2^53 + 1 is 2^53 as a float.
    wide = array.astype(np.float64) if array.dtype.kind == "f" else array
    flat = np.broadcast_to(wide, shape).ravel()
    if not bool(np.all(np.isfinite(flat) & (flat > 0))):
        place = int(np.flatnonzero(~(np.isfinite(flat) & (flat > 0)))[0])
        raise ParameterError(
            f"{name} of cell {place} is {what_was_given(flat[place])}; it must be finite and greater than zero"
        )
    if bool(np.any(flat > limit)):
        raise _too_large(name)
    return Cells(np.maximum(flat.astype(np.float64), _LEAST_APPROXIMATION), lambda i: Fraction(flat[i].item()))


def _too_large(name: str) -> ParameterError:
    return ParameterError(
        f"{name} of some cell exceeds 2^53 (2^106 for a variance); draws are int64. Use a coarser grid"
    )


def shape_of(size: Any) -> tuple[int, ...]:
    """The shape that a `size` argument asks for. Raises ParameterError for negative or non-integer sizes."""
    lengths = size if isinstance(size, tuple) else (size,)
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, Integral) or length < 0:
            raise ParameterError(
                f"size is {what_was_given(size)}; give a non-negative int, a tuple of them, or None for one draw"
            )
    return tuple(int(length) for length in lengths if length is not None)


def cell_shape(values: Any, size: Size) -> tuple[int, ...]:
    """The shape of draws with a parameter for every cell."""
    shape = np.shape(values) if size is None else shape_of(size)
    try:
        np.broadcast_to(np.empty(np.shape(values), np.bool_), shape)
    except ValueError as error:
        raise ParameterError(
            f"parameters of shape {np.shape(values)} do not fit size {shape}; give one for every draw"
        ) from error
    return shape


def is_array(value: Any) -> bool:
    """Whether a parameter is given per cell."""
    try:
        return isinstance(value, np.ndarray | list | tuple) and np.ndim(value) > 0
    except ValueError:
        raise ParameterError(f"{what_was_given(value)} is not an array: its rows differ in length") from None
