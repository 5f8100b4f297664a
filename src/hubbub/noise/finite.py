"""Bernoulli, uniform and finite draws with exact rational or exponential weights.

*Bernoulli(p)* and *Bernoulli(exp(-x))*: U < p with U revealed lazily. *Uniform below n*: as many bits as n
- 1 has, rejected while they are n or more. *Choice*: inverse distribution function over cumulative weights;
floats decide outside a proven band, exact rationals or certified exponentials inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import Any, overload

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise.bits import Bits, system_bits
from hubbub.noise.certified import Bounds, Uniform, exp_bounds, rational_bounds
from hubbub.noise.direct import CHUNK, Uniforms, decide
from hubbub.noise.draw import Mode, checked_mode
from hubbub.noise.parameters import Flags, Floats, Integers, Number, Size, exact, is_array, shape_of

__all__ = ["bernoulli", "bernoulli_exp", "choice", "uniform_below"]

# Weights good to 2^-46, summed in long double and divided, leave cumulative probabilities good to 2^-45
# where it has 64 bits; where it has 53, to 2^-41 for up to 2^12 weights.
_CHOICE_BAND = 2.0**-40


def _probability(value: Any) -> Fraction:
    p = exact(value, "p")
    if not 0 <= p <= 1:
        raise ParameterError(f"p is {value!r}; a probability lies between 0 and 1")
    return p


def _exponent(value: Any) -> Fraction:
    x = exact(value, "x")
    if x < 0:
        raise ParameterError(f"x is {value!r}; exp(-x) is a probability only for x >= 0")
    return x


def _coin(bounds: Bounds, size: Size, bits: Bits | None, mode: Mode | None) -> bool | Flags:
    """Draws of U < p, for one p given by certified bounds."""
    source = system_bits() if bits is None else bits
    if size is None:
        return Uniform(source.word(), 64, source).below(bounds)
    shape = shape_of(size)
    hardened = checked_mode(mode) == "hardened"
    low, high = bounds(64)
    n = math.prod(shape)
    out: Flags = np.empty(n, np.bool_)
    for start in range(0, n, CHUNK):
        part = out[start : start + CHUNK]
        if hardened:
            _coin_words(part, low, high, bounds, source)
        else:
            _coin_halves(part, low, high, bounds, source)
    return out.reshape(shape)


def _coin_words(out: Flags, low: int, high: int, bounds: Bounds, bits: Bits) -> None:
    """128 bits for every draw."""
    draws = Uniforms.draw(out.size, bits, spare=True)
    # v + 1 <= low is surely below p, v >= high surely not.
    out[:] = draws.words < np.uint64(min(low, 2**64 - 1))
    top = np.uint64(min(high, 2**64 - 1))
    for i in np.flatnonzero(~out & (draws.words <= top)):
        out[i] = draws.uniform(int(i)).below(bounds)


def _coin_halves(out: Flags, low: int, high: int, bounds: Bounds, bits: Bits) -> None:
    """16 bits for every draw, the rest for those that need them."""
    prefix = bits.u16(out.size)
    sure = low >> 48
    if sure > 0xFFFF:
        out[:] = True
        return
    out[:] = prefix < np.uint16(sure)
    for i in np.flatnonzero((prefix >= sure) & (prefix <= high >> 48)):
        out[i] = Uniform(int(prefix[i]), 16, bits).below(bounds)


def _rationals(values: Any, shape: tuple[int, ...], check: Callable[[Any], Fraction]) -> tuple[Floats, Any]:
    array = np.broadcast_to(np.asarray(values), shape).ravel()
    if array.dtype == object:
        exactly = [check(v) for v in array]
        return np.array([float(v) for v in exactly]), exactly.__getitem__
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise ParameterError(
            f"an array of {array.dtype} holds no numbers of use here; give ints, floats or Fractions"
        )
    if array.size:
        # NaN is neither least nor greatest, so it is looked for first.
        check(array[int(np.argmax(~np.isfinite(array)))])
        check(array.min())
        check(array.max())
    return array.astype(np.float64), lambda i: Fraction(array[i].item())


def _cell_coins(
    values: Any,
    size: Size,
    bits: Bits | None,
    mode: Mode | None,
    check: Callable[[Any], Fraction],
    decay: bool,
) -> Flags:
    shape = np.shape(values) if size is None else shape_of(size)
    floats, exactly = _rationals(values, shape, check)
    if decay:
        floats = np.exp(-floats)
    source = system_bits() if bits is None else bits
    spare = checked_mode(mode) == "hardened"
    out: Flags = np.empty(floats.size, np.bool_)
    for start in range(0, floats.size, CHUNK):
        draws = Uniforms.draw(min(CHUNK, floats.size - start), source, spare)

        def settle(i: int, u: Uniform, start: int = start) -> bool:
            value = exactly(start + i)
            return u.below_exp(value) if decay else u.below_rational(value)

        out[start : start + CHUNK] = decide(draws, floats[start : start + CHUNK], settle)
    return out.reshape(shape)


@overload
def bernoulli(
    p: Number, size: None = None, *, bits: Bits | None = None, mode: Mode | None = None
) -> bool: ...
@overload
def bernoulli(p: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> Flags: ...
def bernoulli(
    p: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None
) -> bool | Flags:
    """True with probability p, exactly the rational given; p may be an array. Raises ParameterError outside
    [0, 1].
    """
    if is_array(p):
        return _cell_coins(p, size, bits, mode, _probability, decay=False)
    chance = _probability(p)
    return _coin(lambda precision: rational_bounds(chance, precision), size, bits, mode)


@overload
def bernoulli_exp(
    x: Number, size: None = None, *, bits: Bits | None = None, mode: Mode | None = None
) -> bool: ...
@overload
def bernoulli_exp(
    x: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None
) -> Flags: ...
def bernoulli_exp(
    x: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None
) -> bool | Flags:
    """True with probability exp(-x), x >= 0 rational or an array of them. ParameterError for x < 0."""
    if is_array(x):
        return _cell_coins(x, size, bits, mode, _exponent, decay=True)
    rate = _exponent(x)
    return _coin(lambda precision: exp_bounds(rate, precision), size, bits, mode)


def _count(n: Any) -> int:
    count = exact(n, "n")
    if count.denominator != 1 or count < 1:
        raise ParameterError(f"n is {n!r}; uniform_below needs an integer n >= 1")
    return int(count)


@overload
def uniform_below(n: int, size: None = None, *, bits: Bits | None = None) -> int: ...
@overload
def uniform_below(n: Any, size: Any = None, *, bits: Bits | None = None) -> Integers: ...
def uniform_below(n: Any, size: Any = None, *, bits: Bits | None = None) -> int | Integers:
    """Uniform on 0 .. n-1: a Python int for any n >= 1, or int64 of shape `size` for n <= 2^63; n may be an
    array.

    The number of bytes drawn is independent of the values: a rejected candidate says nothing about the
    next.
    """
    source = system_bits() if bits is None else bits
    if size is None and not is_array(n):
        below = _count(n)
        width = (below - 1).bit_length()
        while True:
            candidate = source.bits(width) if width else 0
            if candidate < below:
                return candidate
    shape = np.shape(n) if size is None else shape_of(size)
    counts = np.array([_count(v) for v in np.asarray(n, dtype=object).ravel()], dtype=object)
    if counts.size and max(counts) > 2**63:
        raise ParameterError("n is above 2^63; draws in arrays are int64. Draw one at a time, as Python ints")
    last = np.broadcast_to((counts - 1).astype(np.uint64).reshape(np.shape(n)), shape).ravel()
    out: Integers = np.empty(last.size, np.int64)
    for start in range(0, last.size, CHUNK):
        out[start : start + CHUNK] = _uniform_part(last[start : start + CHUNK], source)
    return out.reshape(shape)


def _uniform_part(last: Any, bits: Bits) -> Integers:
    """Uniforms on 0 .. last_i."""
    mask = last.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    out: Integers = np.empty(last.size, np.int64)
    todo = np.arange(last.size)
    while todo.size:
        candidate = bits.u64(todo.size) & mask[todo]
        good = candidate <= last[todo]
        out[todo[good]] = candidate[good].view(np.int64)
        todo = todo[~good]
    return out


class _Weights:
    """Weights in proportion, as floats for the short cut and with certified cumulative sums for the rest."""

    def __init__(self, weights: Any, log_weights: Any) -> None:
        given = weights if weights is not None else log_weights
        if given is None or (weights is not None and log_weights is not None):
            raise ParameterError("give exactly one of weights and log_weights")
        self._decay = weights is None
        values = given.ravel() if isinstance(given, np.ndarray) else given
        self._values = [exact(v, "a weight") for v in values]
        if not self._values:
            raise ParameterError("there are no weights; choice needs at least one")
        if self._decay:
            top = max(self._values)
            # exp(-x) with x the distance from the largest exponent.
            self._values = [top - v for v in self._values]
            masses = np.exp(-np.array([min(float(v), 1e300) if v < 10**300 else 1e300 for v in self._values]))
        else:
            if min(self._values) < 0 or max(self._values) == 0:
                raise ParameterError("weights may not be negative and not all zero")
            top = max(self._values)
            masses = np.array([float(v / top) for v in self._values])
        sums = np.cumsum(masses, dtype=np.longdouble)
        self.cumulative: Floats = (sums / sums[-1]).astype(np.float64)

    def settle(self, u: Uniform) -> int:
        """The index that U selects, decided exactly."""
        while True:
            precision = u.length + 16 + len(self._values).bit_length()
            lows, highs = self._sums(precision)
            total_low, total_high = lows[-1], highs[-1]
            # U Z lies in [prefix total_low, (prefix + 1) total_high] / 2^length.
            below, above = u.prefix * total_low, (u.prefix + 1) * total_high
            index = next(i for i, high in enumerate(highs) if high << u.length > below)
            ends = index == len(lows) - 1 or above <= lows[index] << u.length
            if ends and (index == 0 or highs[index - 1] << u.length <= below):
                return index
            u.extend()

    def _sums(self, precision: int) -> tuple[list[int], list[int]]:
        if self._decay:
            bounds = [exp_bounds(v, precision) for v in self._values]
        else:
            top = max(self._values)
            bounds = [rational_bounds(v / top, precision) for v in self._values]
        return list(accumulate(low for low, _ in bounds)), list(accumulate(high for _, high in bounds))


@overload
def choice(
    weights: Any = None,
    size: None = None,
    *,
    log_weights: Any = None,
    bits: Bits | None = None,
    mode: Mode | None = None,
) -> int: ...
@overload
def choice(
    weights: Any = None,
    size: Any = None,
    *,
    log_weights: Any = None,
    bits: Bits | None = None,
    mode: Mode | None = None,
) -> Integers: ...
def choice(
    weights: Any = None,
    size: Any = None,
    *,
    log_weights: Any = None,
    bits: Bits | None = None,
    mode: Mode | None = None,
) -> int | Integers:
    """An index drawn with probability proportional to `weights` (rationals >= 0) or to exp(`log_weights`)
    (rationals).

    The exponential mechanism with integer scores u and a rational epsilon is
    `choice(log_weights=[epsilon * u / (2 * sensitivity) for u in scores])`.
    """
    source = system_bits() if bits is None else bits
    table = _Weights(weights, log_weights)
    spare = checked_mode(mode) == "hardened"
    shape = () if size is None else shape_of(size)
    out: Integers = np.empty(math.prod(shape), np.int64)
    for start in range(0, out.size, CHUNK):
        _choose(out[start : start + CHUNK], table, source, spare)
    return int(out[0]) if size is None else out.reshape(shape)


def _choose(out: Integers, table: _Weights, bits: Bits, spare: bool) -> None:
    draws = Uniforms.draw(out.size, bits, spare)
    low = draws.floats()
    first = np.searchsorted(table.cumulative, low - _CHOICE_BAND, "right")
    last = np.searchsorted(table.cumulative, low + (2.0**-53 + _CHOICE_BAND), "right")
    out[:] = first
    for i in np.flatnonzero((first != last) | (first == table.cumulative.size)):
        out[i] = table.settle(draws.uniform(int(i)))
