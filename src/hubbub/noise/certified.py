"""Decisions that no rounding can change: certified exponentials and uniforms revealed bit by bit.

For rational x >= 0, `exp_bounds` encloses 2^P exp(-x) between integers, by x = 2^k y with y < 2^-8, the
Taylor series of exp(-y) and k squarings, with every rounding counted in units of the last place. A
`Uniform` is a real U in [0, 1) of which only the first bits are known; `U < p` is answered once the known
dyadic cell of U lies on one side of an enclosure of p, and asks for 64 more bits until then. So P(U < p) =
p exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from hubbub.noise.bits import Bits

Bounds = Callable[[int], tuple[int, int]]
"""For a precision P, integers lo <= 2^P p <= hi with hi - lo at most a few units."""

_MARGIN = 16


def exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers lo <= 2^precision exp(-x) <= hi, at most 4 apart, for rational x >= 0.

    >>> exp_bounds(Fraction(0), 8)
    (256, 256)
    """
    if x == 0:
        return 1 << precision, 1 << precision
    if 10 * x > 7 * precision:  # 7/10 > ln 2, so exp(-x) < 2^-precision
        return 0, 1
    halvings = (x.numerator // x.denominator).bit_length() + 8
    work = precision + halvings + 32
    y = (x.numerator << work) // (x.denominator << halvings)  # at most one unit below 2^work x / 2^halvings
    total = term = 1 << work
    n = 0
    while term:
        n += 1
        term = (term * y >> work) // n
        total += -term if n & 1 else term
    # Each term is low by at most 2 units, y by one (slope at most 1), the series stops below one unit.
    error = 2 * n + 4
    for _ in range(halvings):
        total = total * total >> work
        error = 2 * error + 2
    shift = work - precision
    if error >> shift:
        raise AssertionError("the working precision of exp_bounds is too small")
    return max(0, (total - error) >> shift), min(1 << precision, ((total + error) >> shift) + 1)


def odds_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers lo <= 2^precision q/(1+q) <= hi with q = exp(-x): the chance that a discrete Laplace is
    negative.
    """
    low, high = exp_bounds(x, precision + 2)
    one = 1 << (precision + 2)
    return (low << precision) // (one + low), -((-high << precision) // (one + high))


class Uniform:
    """A uniform real in [0, 1), known up to its dyadic cell [prefix, prefix + 1) / 2^length.

    `spare` holds bits that were drawn beforehand and continue the prefix, so that going on costs no new
    bytes.
    """

    __slots__ = ("_bits", "_spare", "length", "prefix")

    def __init__(self, prefix: int, length: int, bits: Bits, spare: int | None = None) -> None:
        self.prefix = prefix
        self.length = length
        self._bits = bits
        self._spare = spare

    def extend(self) -> None:
        """Reveal 64 more bits."""
        more = self._bits.word() if self._spare is None else self._spare
        self._spare = None
        self.prefix = (self.prefix << 64) | more
        self.length += 64

    def below(self, bounds: Bounds) -> bool:
        """Whether U < p."""
        while True:
            low, high = bounds(self.length + _MARGIN)
            if (self.prefix + 1) << _MARGIN <= low:
                return True
            if self.prefix << _MARGIN >= high:
                return False
            self.extend()

    def below_exp(self, x: Fraction) -> bool:
        """Whether U < exp(-x)."""
        return self.below(lambda precision: exp_bounds(x, precision))

    def below_rational(self, p: Fraction) -> bool:
        """Whether U < p."""
        return self.below(lambda precision: rational_bounds(p, precision))

    def floor_log(self, scale: Fraction) -> int:
        """floor(-scale ln U): the largest k with U < exp(-k / scale). It is geometric with ratio
        exp(-1/scale).
        """
        step = 1 / scale
        low, width = 0, 1
        while self.below_exp((low + width) * step):
            low, width = low + width, 2 * width
        # Now U < exp(-low step) and not U < exp(-(low + width) step).
        while width > 1:
            half = width // 2
            if self.below_exp((low + half) * step):
                low, width = low + half, width - half
            else:
                width = half
        return low


def rational_bounds(p: Fraction, precision: int) -> tuple[int, int]:
    """Integers lo <= 2^precision p <= hi, at most one apart."""
    low, rest = divmod(p.numerator << precision, p.denominator)
    return low, low + (rest > 0)


def ceil_sqrt(x: Fraction) -> int:
    """The smallest integer at or above the square root of x >= 0."""
    whole = -(-x.numerator // x.denominator)
    root = math.isqrt(whole)
    return root + (root * root < whole)
