"""Chances that are rational numbers on the private side of e^epsilon, and uniforms below small numbers.

A client's chances involve e^epsilon, which no finite number of bits draws. Each is therefore replaced by a multiple of
2^-64 *rounded towards more privacy* by certified integer arithmetic. The client then draws exactly from a rational law
whose loss is at most epsilon, its law can be enumerated in rationals, and a client in another language needs nothing
but integers: "lie iff 64 random bits are below this number".

Every chance of a lie here has the form w t / (1 + w t), t = e^-epsilon, w > 0 rational, the odds of lying to telling
the truth being w : e^epsilon. It increases with t, so an upper bound of t gives an upper bound of the chance. Lying
with chance w / (1 + w) would be epsilon = 0, so that is never exceeded.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.noise import Bits, bernoulli, uniform_below
from hubbub.noise.certified import exp_bounds

__all__ = ["CHANCE_BITS", "Bytes", "Flags", "Floats", "Integers", "at_most_exp", "coins", "lie_chance", "uniform"]

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CHANCE_BITS = 64
_PRECISION = 192


def lie_chance(weight: Fraction | int, epsilon: Fraction) -> Fraction:
    """The least multiple of 2^-64 at or above w / (w + e^epsilon), at most w / (1 + w).

    >>> chance = lie_chance(1, Fraction(1))
    >>> float(chance), chance.denominator <= 2**64
    (0.2689414213699951, True)
    """
    w = Fraction(weight)
    _, high = exp_bounds(epsilon, _PRECISION)
    top = w * high
    share = top / ((1 << _PRECISION) + top)
    up = Fraction(-((-share.numerator << CHANCE_BITS) // share.denominator), 1 << CHANCE_BITS)
    return min(up, w / (1 + w))


def at_most_exp(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether ratio <= e^epsilon for certain.

    >>> at_most_exp(Fraction(271828, 100000), Fraction(1)), at_most_exp(Fraction(271829, 100000), Fraction(1))
    (True, False)
    """
    _, high = exp_bounds(epsilon, _PRECISION)
    return ratio * high <= 1 << _PRECISION


def coins(chance: Fraction, n: int, bits: Bits | None) -> Flags:
    """n exact flips of a coin."""
    return bernoulli(chance, n, bits=bits)


def uniform(below: int, n: int, bits: Bits | None) -> Array:
    """n uniforms on 0 .. below-1: uint16 for below <= 2^12, else int64.

    Small ones take 16 bits each (Lemire 2019, "Fast random integer generation in an interval"): of x below, x uniform
    on 2^16, the high half is the answer unless the low half is under 2^16 mod below. Each kept answer has equally many
    x, so it is exactly uniform.
    """
    if below > 1 << 12:
        return uniform_below(below, n, bits=bits)
    out = np.empty(n, np.uint16)
    threshold = (1 << 16) % below
    words = _words(n, bits) * np.uint32(below)
    np.right_shift(words, np.uint32(16), out=out, casting="unsafe")
    if threshold:
        again = np.flatnonzero((words & np.uint32(0xFFFF)) < threshold)
        while again.size:
            words = _words(again.size, bits) * np.uint32(below)
            out[again] = words >> np.uint32(16)
            again = again[(words & np.uint32(0xFFFF)) < threshold]
    return out


def _words(n: int, bits: Bits | None) -> NDArray[np.uint32]:
    """n uniforms on 0 .. 2^16 - 1: three from each uniform below 2^48."""
    threes = uniform_below(1 << 48, -(-n // 3), bits=bits).astype("<i8", copy=False)
    return threes.view("<u2").reshape(-1, 4)[:, :3].reshape(-1)[:n].astype(np.uint32)
