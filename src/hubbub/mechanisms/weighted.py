"""Exact draws of an index whose weight is an integer times an exponential, from many candidates at once.

P(i) = c_i exp(-r s_i) / sum_j c_j exp(-r s_j), for integers c_i, s_i >= 0 and a rational r >= 0. Floats only make an
*envelope*: integers u_i >= w_i = 2^k c_i exp(-r s_i), a relative 2^-30 too large, and one more. A uniform integer
below sum u_j falls on a candidate i and on an offset in 0 .. u_i - 1; it is taken with probability w_i / u_i, by
asking whether a uniform point of the cell [offset, offset + 1) lies below w_i. Nearly always the whole cell does;
else w_i is enclosed with certified exponentials and the point revealed lazily. So the law is exact, one draw costs
two array passes, and a rejection (chance about 2^-30) says nothing about which candidate the next draw takes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InternalError, ParameterError
from hubbub.noise import Bits, choice, uniform_below
from hubbub.noise.certified import exp_bounds

__all__ = ["as_integers", "integer_steps", "log_weights", "quiet", "weighted_choice"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# exp in double precision, its argument and the product are good to 2^-38 for exponents up to 2^13; the band is wider.
_BAND = 2.0**-30
_TOTAL_BITS = 60
_FAR = 8000.0

# The state of np.seterr is the caller's: it must not turn a private score that underflows into an exception.
quiet = np.errstate(all="ignore")


def integer_steps(scores: Any) -> tuple[Any, Fraction]:
    """Distances below the best score as integers, and the unit they are multiples of.

    scores: integers or Fractions, shape (n,), n >= 1. Returns (steps, unit) with best - scores = unit * steps.

    Raises ParameterError for floats: a score must be exact, because its last bit may depend on one person.

    >>> integer_steps([3, 1, 2])
    (array([0, 2, 1]), Fraction(1, 1))
    """
    array = as_integers(scores)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(f"scores have shape {array.shape}; give a list of at least one score, one per candidate.")
    if array.dtype.kind in "iu":
        top, bottom = int(array.max()), int(array.min())
        if top - bottom < 2**62:
            wide = array.astype(object) if max(abs(top), abs(bottom)) > 2**62 else array.astype(np.int64)
            return np.asarray(top - wide, dtype=np.int64), Fraction(1)
        array = array.astype(object)
    if array.dtype != object or not all(isinstance(s, int | Fraction | np.integer) for s in array):
        raise ParameterError(
            "scores are integers or Fractions, because the last bit of a float may depend on one person; "
            "count rows, or put the scores on a grid (`hubbub.noise.Grid`) first."
        )
    exact = [s if isinstance(s, Fraction) else Fraction(int(s)) for s in array]
    unit = Fraction(1, math.lcm(*(s.denominator for s in exact)))
    best = max(exact)
    steps = [int((best - s) / unit) for s in exact]
    return np.array(steps, dtype=np.int64 if max(steps) < 2**62 else object), unit


def as_integers(values: Any) -> NDArray[Any]:
    """An array that keeps large Python ints, which numpy would turn into floats among small ones."""
    if isinstance(values, np.ndarray):
        return values
    array = np.asarray(values)
    return np.array(values, dtype=object) if array.dtype.kind == "f" else array


@quiet
def log_weights(steps: Any, rate: Fraction, counts: Any = None) -> Floats:
    """ln(c_i exp(-r s_i)), not normalised, as floats."""
    exponents = _exponents(steps, rate)
    if counts is None:
        return -exponents
    return np.asarray(np.log(np.asarray(counts, dtype=np.float64)) - exponents)


def weighted_choice(
    steps: Any, rate: Fraction, *, counts: Any = None, size: int | None = None, bits: Bits | None = None
) -> Any:
    """An index drawn with probability proportional to counts[i] * exp(-rate * steps[i]), exactly.

    steps: integers >= 0, shape (n,). counts: integers >= 0, shape (n,), some positive; None means all one.
    Returns an int, or int64 of shape (size,). Raises InternalError where all weights are zero.
    """
    weights = np.ones(len(steps), np.int64) if counts is None else np.asarray(counts)
    upper, sure, shift = envelope(steps, rate, weights)
    ends = np.cumsum(upper)
    out: Integers = np.empty(1 if size is None else size, np.int64)
    todo = np.arange(out.size)
    while todo.size:
        drawn = uniform_below(int(ends[-1]), todo.size, bits=bits)
        index = np.searchsorted(ends, drawn, "right")
        offset = drawn - (ends[index] - upper[index])
        taken = offset < sure[index]
        for k in np.flatnonzero(~taken):
            i = int(index[k])
            taken[k] = _below(int(offset[k]), int(weights[i]), rate * int(steps[i]), shift, bits)
        out[todo[taken]] = index[taken]
        todo = todo[~taken]
    return int(out[0]) if size is None else out


@quiet
def envelope(steps: Any, rate: Fraction, counts: Any) -> tuple[Integers, Integers, int]:
    """Integers upper > w >= sure, and k, for the weights w = 2^k counts exp(-rate steps); upper = 0 where counts = 0.

    k is such that sum upper stays below 2^62. Exponents beyond 8000 have w < 1, and upper = 1.
    """
    masses = np.asarray(counts, dtype=np.float64) * np.exp(-np.minimum(_exponents(steps, rate), _FAR))
    top = float(masses.max(initial=0.0))
    if not 0 < top < math.inf:
        raise InternalError("no candidate has a weight that floats can hold next to the others")
    shift = _TOTAL_BITS - math.ceil(math.log2(len(masses))) - math.frexp(top)[1]
    scaled = np.ldexp(masses, shift)
    upper = np.where(counts > 0, np.floor(scaled * (1 + _BAND)).astype(np.int64) + 1, 0)
    return upper, np.floor(scaled * (1 - _BAND)).astype(np.int64), shift


def _exponents(steps: Any, rate: Fraction) -> Floats:
    array = np.asarray(steps)
    if array.dtype == object:
        return np.array([float(min(rate * int(s), Fraction(10) ** 300)) for s in array])
    return np.asarray(array * float(rate), dtype=np.float64)


def _below(offset: int, count: int, exponent: Fraction, shift: int, bits: Bits | None) -> bool:
    """Whether a uniform point of [offset, offset + 1) lies below count * exp(-exponent) * 2^shift."""
    low, high = Fraction(offset), Fraction(offset + 1)
    precision = 128
    while True:
        unit = Fraction(count) * Fraction(2) ** (shift - precision)
        least, most = (min(max(unit * bound, low), high) for bound in exp_bounds(exponent, precision))
        outcome = choice([least - low, high - most, most - least], bits=bits)
        if outcome < 2:
            return outcome == 0
        low, high, precision = least, most, 2 * precision
