"""Distribution functions as certified integers: F(x) = P(X <= x) to P bits, over all x that P bits can see.

*Discrete Laplace and geometric, split at digit w*: with q = exp(-1/b), Q = q^(2^w), the symbol h stands for
the 2^w values whose higher digits are h. Two-sided, F(h) = q/(1+q) Q^(-1-h) for h < 0 and 1 - Q^(h+1)/(1+q)
for h >= 0 (the sign is Bernoulli(q/(1+q)) with q, not Q: the digits are split, the sign is not). One-sided,
F(h) = 1 - Q^(h+1).

*Discrete Gaussian*: F(x) as sums of g(x) = exp(-x^2/(2s)) over their total. *In blocks of 2^w*: the weight
of block h is the largest g in it, so that a uniform point of the block is to be kept with probability g /
largest.

Powers are products of 2^W-scaled integers; each product is low by less than one unit, and the bounds below
add those up. W is chosen so that they come to less than one unit of 2^-P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hubbub.errors import InternalError
from hubbub.noise.certified import exp_bounds

__all__ = ["BlockSteps", "GaussianSteps", "LaplaceSteps", "Steps"]

_SPARE_BITS = 16


@dataclass(frozen=True, slots=True)
class Steps:
    """|values[i] - 2^P F(first + i)| <= error. F(first) < 2^-P, and 1 - F < 2^-P at the last."""

    first: int
    values: list[int]
    error: int


@dataclass(frozen=True, slots=True)
class LaplaceSteps:
    """The high part of a discrete Laplace (`two_sided`) or geometric variable of rational scale."""

    scale: Fraction
    digits: int
    two_sided: bool

    def __call__(self, precision: int) -> Steps:
        high = self.scale / (1 << self.digits)
        # Q^count < 2^-(precision + 8), as 7/10 > ln 2.
        count = math.ceil(high * (precision + 8) * Fraction(7, 10)) + 1
        work = precision + _SPARE_BITS + count.bit_length()
        one = 1 << work
        q, _ = exp_bounds(1 / self.scale, work)
        ratio, _ = exp_bounds(1 / high, work)  # both at most 4 units low
        powers = [one]
        for _ in range(count):
            powers.append(powers[-1] * ratio >> work)
        # Power i is low by at most 5 i units, products with q by 5 more, 1 + q by 4.
        if 4 * (5 * count + 10) >> (work - precision):
            raise InternalError("the working precision of LaplaceSteps is too small")
        shift = work - precision
        if not self.two_sided:
            return Steps(-1, [(one - power) >> shift for power in powers], 2)
        total = one + q
        below = [((power * q >> work) << precision) // total for power in reversed(powers)]
        above = [((total - power) << precision) // total for power in powers[1:]]
        return Steps(-1 - count, below + above, 2)


@dataclass(frozen=True, slots=True)
class GaussianSteps:
    """The discrete Gaussian with rational parameter s = sigma^2."""

    s: Fraction

    def __call__(self, precision: int) -> Steps:
        count = _reach(self.s, precision) + 2
        work = precision + _SPARE_BITS + 10 + 3 * count.bit_length()
        c = 1 / (2 * self.s)
        masses = _bell(Fraction(0), c, 2 * c, count, work)
        return _cumulated(masses[:0:-1] + masses, -count, count, work, precision)


@dataclass(frozen=True, slots=True)
class BlockSteps:
    """Blocks [h 2^w, (h+1) 2^w) of the discrete Gaussian, weighted by the largest exp(-x^2/(2s)) in each."""

    s: Fraction
    digits: int

    def __call__(self, precision: int) -> Steps:
        width = 1 << self.digits
        count = (_reach(self.s, precision) >> self.digits) + 3
        work = precision + _SPARE_BITS + 10 + 3 * count.bit_length()
        c = 1 / (2 * self.s)
        # h >= 0 is nearest to 0 at h width, h < 0 at 1 + (-1 - h) width.
        sides = [
            _bell(c * near * near, c * (2 * near * width + width * width), 2 * c * width * width, count, work)
            for near in (0, 1)
        ]
        return _cumulated(sides[1][::-1] + sides[0], -count - 1, count, work, precision)


def _reach(s: Fraction, precision: int) -> int:
    """Beyond this x, the tail of exp(-x^2/(2s)) is below 2^-(precision + 8) of the whole."""
    return math.isqrt(math.ceil(2 * s * (precision + 24) * Fraction(7, 10))) + 1


def _bell(start: Fraction, slope: Fraction, bend: Fraction, count: int, work: int) -> list[int]:
    """2^work exp(-(start + i slope + i(i-1)/2 bend)) for i = 0 .. count, each low by at most 5 (i + 2)^2
    units.
    """
    value, ratio, change = (exp_bounds(x, work)[0] for x in (start, slope, bend))
    values = [value]
    for _ in range(count):
        value = value * ratio >> work
        ratio = ratio * change >> work
        values.append(value)
    return values


def _cumulated(masses: list[int], first: int, count: int, work: int, precision: int) -> Steps:
    """Cumulative shares of the masses; the first mass stands for nothing below it."""
    total = sum(masses)
    # Each of at most 2 count + 2 masses is low by 5 (count + 2)^2 units; total >= 2^work (g(0) = 1).
    if 4 * (2 * count + 2) * 5 * (count + 2) ** 2 >> (work - precision):
        raise InternalError("the working precision of the Gaussian steps is too small")
    values, running = [], 0
    for mass in masses:
        running += mass
        values.append((running << precision) // total)
    return Steps(first, values, 3)
