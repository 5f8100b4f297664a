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

from hubbub.errors import ParameterError, what_was_given
from hubbub.noise.bits import Bits, system_bits
from hubbub.noise.certified import Bounds, Uniform, exp_bounds, rational_bounds
from hubbub.noise.direct import CHUNK, Uniforms, decide
from hubbub.noise.draw import Mode, checked_mode
from hubbub.noise.parameters import Flags, Floats, Integers, Number, Size, Words, cell_shape, exact, is_array, shape_of

__all__ = ["bernoulli", "bernoulli_exp", "choice", "uniform_below"]


def _probability(value: Any) -> Fraction:
    p = exact(value, "p")
    if not 0 <= p <= 1:
        raise ParameterError(f"p is {what_was_given(value)}; a probability lies between 0 and 1")
    return p


def _exponent(value: Any) -> Fraction:
    x = exact(value, "x")
    if x < 0:
        raise ParameterError(f"x is {what_was_given(value)}; exp(-x) is a probability only for x >= 0")
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


def _float(value: Fraction) -> float:
    """The nearest float; far beyond them, one large enough for exp(-x) = 0."""
    return float(value) if value < 10**300 else 1e300


def _rationals(values: Any, shape: tuple[int, ...], check: Callable[[Any], Fraction]) -> tuple[Floats, Any]:
    array = np.broadcast_to(np.asarray(values), shape).ravel()
    if array.dtype == object:
        exactly = [check(v) for v in array]
        return np.array([_float(v) for v in exactly], np.float64), exactly.__getitem__
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise ParameterError(f"an array of {array.dtype} holds no numbers of use here; give ints, floats or Fractions")
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
    shape = cell_shape(values, size)
    floats, exactly = _rationals(values, shape, check)
    if decay:
        with np.errstate(under="ignore"):
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
def bernoulli(p: Number, size: None = None, *, bits: Bits | None = None, mode: Mode | None = None) -> bool: ...
@overload
def bernoulli(p: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> Flags: ...
def bernoulli(p: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> bool | Flags:
    """True with probability p, exactly the rational given; p may be an array. Raises ParameterError outside
    [0, 1].
    """
    if is_array(p):
        return _cell_coins(p, size, bits, mode, _probability, decay=False)
    chance = _probability(p)
    return _coin(lambda precision: rational_bounds(chance, precision), size, bits, mode)


@overload
def bernoulli_exp(x: Number, size: None = None, *, bits: Bits | None = None, mode: Mode | None = None) -> bool: ...
@overload
def bernoulli_exp(x: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> Flags: ...
def bernoulli_exp(x: Any, size: Any = None, *, bits: Bits | None = None, mode: Mode | None = None) -> bool | Flags:
    """True with probability exp(-x), x >= 0 rational or an array of them. ParameterError for x < 0."""
    if is_array(x):
        return _cell_coins(x, size, bits, mode, _exponent, decay=True)
    rate = _exponent(x)
    return _coin(lambda precision: exp_bounds(rate, precision), size, bits, mode)


def _count(n: Any) -> int:
    count = exact(n, "n")
    if count.denominator != 1 or count < 1:
        raise ParameterError(f"n is {what_was_given(n)}; uniform_below needs an integer n >= 1")
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
    shape = cell_shape(n, size)
    last = np.broadcast_to(_last(np.asarray(n)), shape).ravel()
    out: Integers = np.empty(last.size, np.int64)
    for start in range(0, last.size, CHUNK):
        out[start : start + CHUNK] = _uniform_part(last[start : start + CHUNK], source)
    return out.reshape(shape)


def _last(n: Any) -> Words:
    """n - 1 for counts in 1 .. 2^63."""
    if n.dtype.kind not in "iu":
        n = np.array([_count(v) for v in n.ravel()], dtype=object).reshape(n.shape)
    if n.size and n.min() < 1:
        _count(n.min())
    if n.size and n.max() > 2**63:
        raise ParameterError("n is above 2^63; draws in arrays are int64. Draw one at a time, as Python ints")
    return np.asarray(n - 1).astype(np.uint64)


def _uniform_part(last: Words, bits: Bits) -> Integers:
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
    """Weights in proportion: floats for the short cut, certified cumulative sums for the rest."""

    def __init__(self, weights: Any, log_weights: Any) -> None:
        given = weights if weights is not None else log_weights
        if given is None or (weights is not None and log_weights is not None):
            raise ParameterError("give exactly one of weights and log_weights")
        self._decay = weights is None
        flat = given.ravel() if isinstance(given, np.ndarray) else list(given)
        if not len(flat):
            raise ParameterError("there are no weights; choice needs at least one")
        self._given = flat
        with np.errstate(all="ignore"):
            masses = _masses(flat, self._decay)
        # Masses are good to 2^-46 of themselves or of the largest; the sum adds a rounding for each.
        sums = np.cumsum(masses, dtype=np.longdouble)
        self.band = 2.0**-44 + 4 * masses.size * float(np.finfo(np.longdouble).eps)
        self.cumulative: Floats = (sums / sums[-1]).astype(np.float64)

    def settle(self, u: Uniform) -> int:
        """The index that U selects, decided exactly."""
        while True:
            precision = u.length + 16 + len(self._given).bit_length()
            lows, highs = self._sums(precision)
            total_low, total_high = lows[-1], highs[-1]
            # U Z lies in [prefix total_low, (prefix + 1) total_high] / 2^length.
            below, above = u.prefix * total_low, (u.prefix + 1) * total_high
            # The first sum that may exceed U Z; every sum before it surely does not.
            index = next(i for i, high in enumerate(highs) if high << u.length > below)
            if index == len(lows) - 1 or above <= lows[index] << u.length:
                return index
            u.extend()

    def _sums(self, precision: int) -> tuple[list[int], list[int]]:
        values = [exact(v.item() if isinstance(v, np.generic) else v, "a weight") for v in self._given]
        top = max(values)
        if self._decay:
            bounds = [exp_bounds(top - v, precision) for v in values]
        else:
            bounds = [rational_bounds(v / top, precision) for v in values]
        return list(accumulate(low for low, _ in bounds)), list(accumulate(high for _, high in bounds))


def _masses(given: Any, decay: bool) -> Floats:
    """Weights over the largest, as floats with relative error below 2^-46, or that much of the largest."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "iuf" and given.dtype.itemsize <= 8:
        values = given.astype(np.float64)
        least, top = values.min(), values.max()
        _check_weights(exact(least, "a weight"), exact(top, "a weight"), decay)
        if max(abs(least), abs(top)) <= 2**53:  # so that ints are exact as floats
            return np.asarray(np.exp(values - top) if decay else values / top)
    rationals = [exact(v, "a weight") for v in given]
    greatest = max(rationals)
    _check_weights(min(rationals), greatest, decay)
    if decay:
        # exp(-x), x the distance from the largest exponent.
        return np.asarray(np.exp(-np.array([_float(greatest - v) for v in rationals])))
    return np.array([float(v / greatest) for v in rationals])


def _check_weights(least: Any, greatest: Any, decay: bool) -> None:
    if not decay and (least < 0 or greatest == 0):
        raise ParameterError("weights may not be negative, and not all zero")


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
    """An index drawn with probability proportional to `weights`, rationals >= 0, or to exp of rational `log_weights`.

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


def _count_sorted(steps: Floats, at: Floats) -> Integers:
    """How many of the ascending steps lie at or below each point."""
    return np.searchsorted(steps, at, "right")


def _count_all(steps: Floats, at: Floats) -> Integers:
    """The same, looking at every step for every point."""
    out: Integers = np.empty(at.size, np.int64)
    rows = max(1, CHUNK // steps.size)
    for start in range(0, at.size, rows):
        part = at[start : start + rows, None]
        out[start : start + rows] = np.count_nonzero(steps <= part, axis=1)
    return out


def _choose(out: Integers, table: _Weights, bits: Bits, spare: bool) -> None:
    draws = Uniforms.draw(out.size, bits, spare)
    low = draws.floats()
    count = _count_all if spare else _count_sorted
    first = count(table.cumulative, low - table.band)
    last = count(table.cumulative, low + (2.0**-53 + table.band))
    out[:] = first
    for i in np.flatnonzero((first != last) | (first == table.cumulative.size)):
        out[i] = table.settle(draws.uniform(int(i)))
