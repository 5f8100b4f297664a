"""Exact draws in bulk: the inverse distribution function, U revealed 16, then 48, then 64 bits at a time.

1. A table over the 2^16 prefixes of U. A prefix whose cell holds no step of F answers at once.
2. Otherwise 64 bits of U against floor(2^64 F) by binary search; undecided only if U's 64 bits *equal* such a
   floor, or are the last cell, which holds the far tail.
3. Otherwise (once in 2^50 draws or so) both U and F to more bits, by integers.

Each answers only if the whole dyadic cell of U lies between two steps, so the result is F^-1(U) exactly.

Wide laws are split at binary digit w. *Geometric and discrete Laplace*: the high part from a table, the
digits below a uniform d kept with probability exp(-d/b); a rejected d is redrawn alone, because the parts
are independent. *Discrete Gaussian*: a block from a table of largest masses, a uniform point x in it, kept
with probability exp(-(x^2 - m^2)/(2s)), where m is the point of the block nearest 0; a rejection redraws
the block too. Both tests need the first 16 bits of their uniform only, most times: it is surely below a
stored floor of the smallest chance.

A table is immutable, and buffers belong to one call, so threads share tables freely.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InternalError
from hubbub.noise.bits import Bits
from hubbub.noise.certified import Uniform, exp_bounds
from hubbub.noise.direct import Uniforms, accept_exp
from hubbub.noise.parameters import Cells, Flags, Integers, Words, one_cell
from hubbub.noise.steps import BlockSteps, GaussianSteps, LaplaceSteps, Steps

__all__ = ["GaussianTable", "InverseTable", "LaplaceTable", "gaussian_table", "laplace_table"]

_PREFIXES = 1 << 16
_SPLIT_CHUNK = 1 << 16
_BLOCK = 1 << 19
_GUARD = 32
# A single table up to here, a split with a high part of scale 32 to 64 beyond.
_WIDEST_LAPLACE = 128
_WIDEST_GAUSSIAN = 300
_HIGH_BITS = 6


@dataclass(frozen=True, slots=True)
class InverseTable:
    """F^-1 over the symbols first, first + 1, ...: `cuts[i]` is floor(2^64 F(first + i))."""

    steps: Callable[[int], Steps]
    first: int
    cuts: Words
    mixed: Flags
    """Of each 16-bit prefix: whether a step of F falls inside its cell."""
    symbols: Integers
    """Of each 16-bit prefix: the symbol, where it is not mixed."""

    @classmethod
    def build(cls, steps: Callable[[int], Steps]) -> InverseTable:
        """The table of a certified distribution function."""
        guard = _GUARD
        while True:
            known = steps(64 + guard)
            # F lies strictly between 0 and 1, though its enclosure need not.
            lows = [max(v - known.error, 0) >> guard for v in known.values]
            highs = [min((v + known.error) >> guard, 2**64 - 1) for v in known.values]
            if lows == highs:
                break
            guard += 64
        if lows[0] != 0 or lows[-1] != 2**64 - 1:
            raise InternalError("a distribution table does not reach into both tails")
        cuts = np.array(lows, np.uint64)
        inside = np.bincount((cuts >> np.uint64(48)).astype(np.int64), minlength=_PREFIXES)
        before = np.cumsum(inside) - inside
        return cls(steps, known.first, cuts, inside > 0, before + known.first)

    def finish(self, prefixes: NDArray[np.uint16], bits: Bits) -> Integers:
        """The symbols of draws whose first 16 bits are given."""
        words = (prefixes.astype(np.uint64) << np.uint64(48)) | (bits.u64(prefixes.size) >> np.uint64(16))
        # Most mixed cells hold one cut, so one comparison counts the cuts at or below the word.
        place = self.symbols[prefixes] - self.first
        place += self.cuts[place] <= words
        more = np.flatnonzero(self.cuts[np.minimum(place, self.cuts.size - 1)] <= words)
        place[more] = np.searchsorted(self.cuts, words[more], "right")
        out: Integers = place + self.first
        # The first and the last cut are 0 and 2^64 - 1, so the end cells, with the far tails, are undecided too.
        for i in np.flatnonzero(self.cuts[place - 1] == words):
            out[i] = self._refine(Uniform(int(words[i]), 64, bits))
        return out

    def _refine(self, u: Uniform) -> int:
        while True:
            u.extend()
            known = self.steps(u.length + _GUARD)
            low, high = u.prefix << _GUARD, (u.prefix + 1) << _GUARD
            place = bisect_right(known.values, low)
            if (
                0 < place < len(known.values)
                and known.values[place - 1] + known.error <= low
                and high <= known.values[place] - known.error
            ):
                return known.first + place


def _narrow(values: Integers, mixed: Flags) -> tuple[NDArray[np.signedinteger], int]:
    """The values in the smallest integer type, with its least value as the mark of a mixed prefix."""
    for kind in (np.int16, np.int32, np.int64):
        mark = int(np.iinfo(kind).min)
        pure = values[~mixed]
        if not pure.size or (mark < int(pure.min()) and int(pure.max()) < -mark):
            return np.where(mixed, mark, values).astype(kind), mark
    raise InternalError("the values of a table exceed int64")


class _Late:
    """Draws of one block that the first step left open: their places, and arrays that go along."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.signedinteger], ...]] = []

    def add(self, *part: NDArray) -> None:  # type: ignore[type-arg]
        self._parts.append(part)

    def all(self) -> tuple[NDArray, ...]:  # type: ignore[type-arg]
        return tuple(np.concatenate(column) for column in zip(*self._parts, strict=True))


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A law whose values are the symbols themselves."""

    inverse: InverseTable
    values: NDArray[np.signedinteger]
    mark: int

    @classmethod
    def build(cls, steps: Callable[[int], Steps]) -> PlainTable:
        """The table of a certified distribution function."""
        inverse = InverseTable.build(steps)
        return cls(inverse, *_narrow(inverse.symbols, inverse.mixed))

    def fill(self, out: Integers, bits: Bits) -> None:
        """Overwrite `out` with draws."""
        for start in range(0, out.size, _BLOCK):
            self._block(out[start : start + _BLOCK], bits)

    def _block(self, out: Integers, bits: Bits) -> None:
        prefixes = bits.u16(out.size)
        # Every 16-bit index is in range; of take's modes, `wrap` is the quickest.
        values = self.values.take(prefixes, mode="wrap")
        mixed = (values == self.mark).nonzero()[0]
        out[:] = values
        if mixed.size:
            out[mixed] = self.inverse.finish(prefixes[mixed], bits)


@dataclass(frozen=True, slots=True)
class LaplaceTable:
    """A wide discrete Laplace or geometric law: high part by table, `digits` low bits by rejection."""

    scale: Fraction
    digits: int
    inverse: InverseTable
    values: Integers
    """Of each prefix, the value with digits all 0 (x >= 0) or all 1 (x < 0), so that XOR sets the digits."""
    sure: int
    """floor(2^16 exp(-(2^digits - 1)/b)): a uniform with a smaller 16-bit prefix keeps any digits."""

    @classmethod
    def build(cls, scale: Fraction, digits: int, two_sided: bool) -> LaplaceTable:
        """The table for one scale."""
        inverse = InverseTable.build(LaplaceSteps(scale, digits, two_sided))
        values = np.where(inverse.mixed, _MARK, _joined(inverse.symbols, digits))
        sure = exp_bounds(Fraction((1 << digits) - 1) / scale, 64)[0] >> 48
        return cls(scale, digits, inverse, values, sure)

    def fill(self, out: Integers, bits: Bits) -> None:
        """Overwrite `out` with draws."""
        for start in range(0, out.size, _BLOCK):
            self._block(out[start : start + _BLOCK], bits)

    def _block(self, out: Integers, bits: Bits) -> None:
        late_high, late_low = _Late(), _Late()
        mask, sure = np.uint64((1 << self.digits) - 1), np.uint64(self.sure << 48)
        buffer = np.empty(10 * min(_SPLIT_CHUNK, out.size), np.uint8)
        for start in range(0, out.size, _SPLIT_CHUNK):
            part = out[start : start + _SPLIT_CHUNK]
            raw = buffer[: 10 * part.size]
            bits.fill(raw)
            words, prefixes = raw[: 8 * part.size].view(np.uint64), raw[8 * part.size :].view(np.uint16)
            values = self.values.take(prefixes)
            mixed = (values == _MARK).nonzero()[0]
            late_high.add(mixed + start, prefixes[mixed])
            undecided = (words >= sure).nonzero()[0]
            late_low.add(undecided + start, words[undecided])
            words &= mask
            np.bitwise_xor(values, words.view(np.int64), out=part)
        places, prefixes = late_high.all()
        if places.size:
            out[places] ^= _joined(self.inverse.finish(prefixes, bits), self.digits) ^ _MARK
        self._settle_digits(out, bits, *late_low.all())

    def _settle_digits(self, out: Integers, bits: Bits, places: Integers, words: Words) -> None:
        """Keep or redraw the digits of the draws at `places`, whose words are given."""
        mask = np.uint64((1 << self.digits) - 1)
        scale = one_cell(self.scale)
        current = (words & mask).view(np.int64)
        while places.size:
            d = (words & mask).view(np.int64)

            def exponent(i: int, d: Integers = d) -> Fraction:
                return int(d[i]) / self.scale

            kept = accept_exp(_continued(words, bits), d / scale.approximate, exponent)
            out[places[kept]] ^= current[kept] ^ d[kept]
            places, current = places[~kept], current[~kept]
            words = bits.u64(places.size)


@dataclass(frozen=True, slots=True)
class GaussianTable:
    """A wide discrete Gaussian: blocks of 2^digits by table, points in them by rejection."""

    s: Cells
    digits: int
    inverse: InverseTable
    packed: Integers
    """Of each prefix, 2^16 block + a floor of 2^16 the smallest chance to keep a point (0 where mixed)."""

    @classmethod
    def build(cls, s: Fraction, digits: int) -> GaussianTable:
        """The table for one parameter s = sigma^2."""
        inverse = InverseTable.build(BlockSteps(s, digits))
        width = 1 << digits
        near = _nearest(inverse.symbols, digits).astype(np.float64)
        least = np.exp(-(width - 1.0) * (2 * near + (width - 1.0)) / (2 * float(s)))
        # The float is good to 2^-40, so the factor makes it a floor.
        sure = np.minimum(np.floor(least * (1 - 2.0**-30) * 65536), 65535).astype(np.int64)
        packed = (inverse.symbols << 16) | np.where(inverse.mixed, 0, sure)
        return cls(one_cell(s), digits, inverse, packed)

    def fill(self, out: Integers, bits: Bits) -> None:
        """Overwrite `out` with draws."""
        for start in range(0, out.size, _BLOCK):
            self._block(out[start : start + _BLOCK], bits)

    def _block(self, out: Integers, bits: Bits) -> None:
        late = _Late()
        mask = np.uint64((1 << self.digits) - 1)
        buffer = np.empty(10 * min(_SPLIT_CHUNK, out.size), np.uint8)
        for start in range(0, out.size, _SPLIT_CHUNK):
            part = out[start : start + _SPLIT_CHUNK]
            raw = buffer[: 10 * part.size]
            bits.fill(raw)
            words, prefixes = raw[: 8 * part.size].view(np.uint64), raw[8 * part.size :].view(np.uint16)
            packed = self.packed.take(prefixes)
            np.right_shift(packed, 16, out=part)
            np.left_shift(part, self.digits, out=part)
            packed &= 0xFFFF
            undecided = ((words >> np.uint64(48)).view(np.int64) >= packed).nonzero()[0]
            late.add(undecided + start, prefixes[undecided], words[undecided])
            words &= mask
            part |= words.view(np.int64)
        self._settle(out, bits, *late.all())

    def _settle(self, out: Integers, bits: Bits, places: Integers, prefixes: NDArray[np.uint16], words: Words) -> None:
        """Keep or redraw the draws at `places`, whose prefixes and words are given."""
        mask = np.uint64((1 << self.digits) - 1)
        while places.size:
            blocks = self.inverse.symbols[prefixes]
            mixed = np.flatnonzero(self.inverse.mixed[prefixes])
            if mixed.size:
                blocks[mixed] = self.inverse.finish(prefixes[mixed], bits)
            x = (blocks << self.digits) | (words & mask).view(np.int64)
            kept = self._keep(np.abs(x), _nearest(blocks, self.digits), _continued(words, bits))
            out[places[kept]] = x[kept]
            places = places[~kept]
            prefixes, words = bits.u16(places.size), bits.u64(places.size)

    def _keep(self, x: Integers, near: Integers, draws: Uniforms) -> Flags:
        """U < exp(-(x^2 - m^2)/(2s)) for absolute values x of points and m of the nearest points of their
        blocks.
        """

        def exponent(i: int) -> Fraction:
            return (int(x[i]) ** 2 - int(near[i]) ** 2) / (2 * self.s.exactly(i))

        # Differences and sums of integers first, so that nothing cancels in floats.
        product = (x - near).astype(np.float64) * (x + near).astype(np.float64)
        return accept_exp(draws, product / (2 * self.s.approximate), exponent)


_MARK = np.iinfo(np.int64).min


def _joined(symbols: Integers, digits: int) -> Integers:
    """High parts with low digits 0 for values >= 0 and 1 for values below."""
    return np.where(symbols < 0, ((symbols + 1) << digits) - 1, symbols << digits)


def _nearest(blocks: Integers, digits: int) -> Integers:
    """The least absolute value in each block."""
    low = blocks << digits
    return np.where(blocks >= 0, low, -(low + ((1 << digits) - 1)))


def _continued(words: Words, bits: Bits) -> Uniforms:
    """Uniforms whose first 16 bits are the top ones of the words, and the other 48 fresh."""
    fresh = bits.u64(words.size) >> np.uint64(16)
    return Uniforms((words & np.uint64(0xFFFF << 48)) | fresh, None, bits)


def laplace_table(scale: Fraction, *, two_sided: bool) -> PlainTable | LaplaceTable:
    """The table of a discrete Laplace or geometric law."""
    if scale < _WIDEST_LAPLACE:
        return PlainTable.build(LaplaceSteps(scale, 0, two_sided))
    return LaplaceTable.build(scale, math.floor(scale).bit_length() - _HIGH_BITS, two_sided)


def gaussian_table(s: Fraction) -> PlainTable | GaussianTable:
    """The table of a discrete Gaussian with parameter s = sigma^2."""
    if s < _WIDEST_GAUSSIAN**2:
        return PlainTable.build(GaussianSteps(s))
    return GaussianTable.build(s, math.isqrt(math.floor(s)).bit_length() - _HIGH_BITS)
