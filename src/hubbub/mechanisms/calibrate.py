"""What the mechanisms share: exactly one statement of how much noise, read exactly, and integer vectors.

A mechanism is calibrated by exactly one of: a loss (`epsilon`, `rho`), a `scale`, or an accuracy that is wanted
(`within` with `confidence`). There is no default: a missing one is an error that says what to give.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.amounts import Number, amount, scale as positive
from hubbub.accounting.rounding import digits_up
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms.weighted import as_integers
from hubbub.noise import Grid

T = TypeVar("T")

_LEAST = Fraction(1, 10**150)
_LEAST_DECIMAL = Decimal("1e-400")  # below half a step of every grid

__all__ = [
    "beta_of",
    "capped_counts",
    "differences",
    "epsilon_of",
    "flag",
    "integers",
    "like",
    "one_of",
    "private_integers",
    "sensitivity_of",
    "smallest_epsilon",
    "whole_number",
]


def one_of(what: str, **given: object) -> str:
    """The name of the only argument that is not None. Raises ParameterError if there is none, or several."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) == 1:
        return names[0]
    allowed = ", ".join(f"{name}=" for name in given)
    named = "nothing" if not names else " and ".join(f"{name}=" for name in names)
    raise ParameterError(f"{what} was given {named} to say how much noise; give exactly one of {allowed}.")


def epsilon_of(value: Number, *, name: str = "epsilon") -> Fraction:
    """A budget amount above zero, exactly as written."""
    epsilon = amount(value, name)
    if epsilon == 0:
        raise ParameterError(f"{name} = 0 was asked, which no useful answer has; give a {name} above 0.")
    return within_floats(epsilon, name)


def within_floats(value: Fraction, name: str) -> Fraction:
    """The value, where exponentials, quotients and squares of it are floats."""
    if not _LEAST <= value <= 1 / _LEAST:
        raise ParameterError(f"{name} is below 1e-150 or above 1e150, which no useful answer has.")
    return value


def beta_of(value: Number) -> float:
    """A failure probability, strictly between 0 and 1."""
    beta = float(amount(value, "beta"))
    if not 0 < beta < 1:
        raise ParameterError(
            f"beta = {what_was_given(value)} was asked; it is the chance that the bound fails: give 0 < beta < 1."
        )
    return beta


def flag(value: bool, name: str) -> bool:
    """True or False. Raises ParameterError for what is merely truthy: "no" is, and would halve the noise."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} = {what_was_given(value)} was asked; it is True or False.")
    return bool(value)


def whole_number(value: int, name: str, *, least: int = 1) -> int:
    """An int >= least. Raises ParameterError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} = {what_was_given(value)} was asked; give a whole number of at least {least}.")
    return int(value)


def sensitivity_of(value: Number | None) -> Fraction:
    """A declared sensitivity: finite and above zero.

    Raises ParameterError for None, infinities and NaN, which mean that nobody bounded what one unit adds.
    """
    unbounded = value is None or (isinstance(value, float) and not math.isfinite(value))
    if unbounded:
        raise ParameterError(
            f"the sensitivity is {what_was_given(value)}: one unit could move the value without bound, and no noise "
            "hides that. Declare bounds for the values (clamp them to [low, high]) and for how many rows one unit adds."
        )
    assert value is not None
    return positive(value, "sensitivity")


def steps_of(sensitivity: Fraction, grid: Grid | None, cells: int) -> int:
    """An l1 sensitivity in steps of the grid; without a grid it must be whole already."""
    if grid is not None:
        return grid.sensitivity(sensitivity, cells)
    if sensitivity.denominator != 1:
        raise ParameterError(
            f"sensitivity = {sensitivity} was asked of integers, whose sensitivity is whole; "
            "give grid=hubbub.noise.Grid(exponent) for values that are not integers."
        )
    return sensitivity.numerator


def integers(values: Any, grid: Grid | None, cells: int) -> tuple[int, ...]:
    """Exact values as Python ints, in steps of the grid. `cells` of them.

    Raises ParameterError for floats without a grid, or another number of values.
    """
    array = np.atleast_1d(_exact_array(values) if grid is not None else as_integers(values))
    if grid is not None:
        array = _on_grid(array, grid)
    elif array.dtype.kind not in "iuO" or not all(isinstance(v, int | np.integer) for v in array.ravel().tolist()):
        raise ParameterError(
            f"values of {array.dtype} were given where exact integers are needed; "
            "give counts, or grid=hubbub.noise.Grid(exponent) for real values."
        )
    if array.shape != (cells,):
        raise ParameterError(f"values have shape {np.shape(values)}; the mechanism was built for cells={cells}.")
    return tuple(int(v) for v in array)


def private_integers(values: Any, grid: Grid | None, cells: int) -> tuple[int, ...]:
    """`integers` of private values: on a grid every float has a place, so that no error tells which values there were.

    NaN counts as 0, an infinity as the largest float of its sign.
    """
    return integers(values if grid is None else _finite(_exact_array(values)), grid, cells)


def _finite(array: Any) -> Any:
    if array.dtype.kind == "f":
        return np.nan_to_num(array)
    if array.dtype.kind != "O":
        return array
    finite = np.empty(array.shape, dtype=object)
    for place, value in np.ndenumerate(array):
        finite[place] = _finite_number(value) if isinstance(value, float | np.floating | Decimal) else value
    return finite


def _finite_number(value: Any) -> Any:
    if isinstance(value, np.floating) and value.dtype.itemsize < 8:
        value = float(value)  # numpy would compare with the other side rounded to as few bits, where it is infinite
    if value.is_nan() if isinstance(value, Decimal) else value != value:
        return 0
    if abs(value) > sys.float_info.max:
        return sys.float_info.max if value > 0 else -sys.float_info.max
    return 0 if isinstance(value, Decimal) and abs(value) < _LEAST_DECIMAL else value


def capped_counts(counts: Any, most: int) -> NDArray[np.int64] | None:
    """Private counts as int64, those above `most` as `most`; None unless they are whole numbers of at least 0.

    One unit moves a capped count no farther than the count itself, and no size of a count makes an error.
    """
    exact = as_integers(counts)
    if exact.dtype == object and all(isinstance(n, int | np.integer) for n in exact.ravel()):
        exact = np.clip(exact, -1, most).astype(np.int64)
    if exact.dtype.kind not in "iu" or exact.ndim != 1 or (exact.size and int(exact.min()) < 0):
        return None
    top = np.asarray(min(most, np.iinfo(exact.dtype).max), exact.dtype)
    return np.asarray(np.minimum(exact, top), dtype=np.int64)


def _exact_array(values: Any) -> Any:
    """An array that keeps every number as it was given: numpy would round ints among floats to floats."""
    return values if isinstance(values, np.ndarray) else np.array(values, dtype=object)


def _on_grid(array: Any, grid: Grid) -> Any:
    floats = array.dtype.kind == "f" and array.dtype.itemsize <= 8 and _within_int64(array, grid)
    small = array.dtype.kind in "iu" and (array.size == 0 or -(2**53) <= int(array.min()) <= int(array.max()) <= 2**53)
    if floats or small:
        return grid.to_integers(array)
    steps = np.empty(array.shape, dtype=object)
    for place, value in np.ndenumerate(array):
        steps[place] = grid.nearest(value)
    return steps


def _within_int64(array: Any, grid: Grid) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.all(np.abs(np.ldexp(array.astype(np.float64), -grid.exponent)) < 2.0**62))


def like(values: Any, released: Any, grid: Grid | None) -> Any:
    """Released steps in the shape and unit of what was asked: an int, Fraction, or an array."""
    if np.ndim(values) == 0:
        only = int(released[0])
        return only if grid is None else grid.from_integers(only)
    small = all(abs(int(v)) < 2**63 for v in released)
    array = np.array([int(v) for v in released], dtype=np.int64 if small else object)
    return array if grid is None else grid.from_integers(array)


def differences(first: Sequence[int], second: Sequence[int]) -> NDArray[np.float64]:
    """first - second, subtracted as Python ints and then rounded once."""
    return np.array([float(a - b) for a, b in zip(first, second, strict=True)])


def smallest_epsilon(enough: Callable[[Fraction], bool], what: str) -> Fraction:
    """The smallest epsilon of 6 digits at which `enough` holds (it must hold from some epsilon on)."""
    low, high = Fraction(1, 10**9), Fraction(1)
    while not enough(high):
        high *= 2
        if high > 10**9:
            raise ParameterError(f"{what} needs an epsilon above 1e9; ask for less accuracy or confidence.")
    if enough(low):
        return low
    for _ in range(60):
        middle = digits_up((low + high) / 2, 12)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return digits_up(high, 6)


def chosen(options: Mapping[str, T], name: str, what: str) -> T:
    """options[name]. Raises ParameterError that lists the names."""
    if name not in options:
        raise ParameterError(
            f"{what} = {what_was_given(name)} was asked; it is one of {', '.join(map(repr, options))}."
        )
    return options[name]
