"""What the three laws share: checks of arguments, and quantiles found from tails."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.errors import ParameterError, what_was_given
from hubbub.noise.parameters import Floats, exact

quiet = np.errstate(all="ignore")
"""For what underflows by right, whatever the caller's np.seterr says; decorates a function."""


def whole(x: Any) -> Floats:
    """Points of the integer lattice as floats. Raises ParameterError for points between.

    Python ints of any size are allowed; those beyond the floats become infinite, where every law is 0.
    """
    try:
        points = np.asarray(x, dtype=np.float64)
    except OverflowError:
        points = np.vectorize(_float, otypes=[np.float64])(np.asarray(x, dtype=object))
    except (TypeError, ValueError):
        raise ParameterError(f"x is {what_was_given(x)}; give an int or an array of ints") from None
    if not bool(np.all(np.floor(points) == points)):
        raise ParameterError("some x is not an integer; these laws live on the integers, so give ints")
    return points


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def plain(values: Any) -> Any:
    """A Python float where a scalar was asked, the array otherwise."""
    return values if isinstance(values, np.ndarray) and values.ndim else float(values)


def probability(p: Any) -> Fraction:
    """A probability strictly between 0 and 1, exactly."""
    value = exact(p, "p")
    if not 0 < value < 1:
        raise ParameterError(f"p is {what_was_given(p)}; a quantile needs 0 < p < 1")
    return value


def confidence(level: Any) -> float:
    """1 - level, for a level in [0, 1)."""
    value = exact(level, "level")
    if not 0 <= value < 1:
        raise ParameterError(f"level is {what_was_given(level)}; it must be at least 0 and below 1, as 0.95")
    return float(1 - value)


def smallest(holds: Callable[[int], bool], guess: int) -> int:
    """The smallest integer where a monotone condition (false, then true) holds, searched outwards from a
    guess.
    """
    step = 1
    if holds(guess):
        high = guess
        while holds(high - step):
            high, step = high - step, 2 * step
        low = high - step
    else:
        low = guess
        while not holds(low + step):
            low, step = low + step, 2 * step
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def quantile(tail: Callable[[int], float], cdf: Callable[[int], float], p: Fraction, guess: int) -> int:
    """The smallest x with P(X <= x) >= p, judged in whichever tail is the smaller."""
    if p > Fraction(1, 2):
        rest = float(1 - p)
        return smallest(lambda x: tail(x) <= rest, guess)
    mass = float(p)
    return smallest(lambda x: cdf(x) >= mass, guess)
