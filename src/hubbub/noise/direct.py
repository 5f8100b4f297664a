"""Exact draws without tables, for few draws or for a scale of its own in every cell.

*Geometric.* With U uniform, floor(-b ln U) is k with probability exp(-k/b) - exp(-(k+1)/b): the geometric
law with ratio q = exp(-1/b). The logarithm is taken in floating point from the first 52 bits of U; where
its error bound reaches an integer, more bits and integer arithmetic decide. For b >= 2^12 the low w binary
digits are drawn apart: G = 2^w H + D, where H is geometric with scale b / 2^w and D on [0, 2^w) has P(D =
d) ~ exp(-d/b), drawn by rejection from a uniform (the digits of a geometric are independent).

*Discrete Laplace.* S ~ Bernoulli(q/(1+q)), G geometric, X = G if not S else -1-G. Then P(X = x) ~ q^|x|.

*Discrete Gaussian.* Canonne, Kamath, Steinke 2020, Algorithm 3: Y discrete Laplace of scale t, kept with
probability exp(-(|Y| - sigma^2/t)^2 / (2 sigma^2)); right for any integer t >= 1, quick for t =
floor(sigma) + 1.

*Float bounds.* `exp` and `log` of the platform are taken to be within 2^6 units in the last place (they are
within 4; tests compare them with certified values). The bands below are wider than that by another factor
of 2^2 or more; inside a band, `certified` decides.

With `spare` each uniform comes with a second word drawn beforehand, so that the number of bytes drawn does
not depend on which draws fell inside a band (`hardened` mode). Rejections go on as before: the number of
trials and the value kept at last are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.noise.bits import Bits
from hubbub.noise.certified import Uniform, odds_bounds
from hubbub.noise.parameters import Cells, Flags, Floats, Integers, Words

CHUNK = 1 << 15
_BAND = 2.0**-44
_ULP = 2.0**-53
_LOG_SLACK = 2.0**-45
_HIGH_BITS = 12
_FEW = 1024


@dataclass(frozen=True, slots=True)
class Uniforms:
    """n uniforms with 64 known bits each; `spare`, if any, holds words drawn beforehand to continue them."""

    words: Words
    spare: Words | None
    bits: Bits

    @classmethod
    def draw(cls, n: int, bits: Bits, spare: bool) -> Uniforms:
        """n fresh ones."""
        return cls(bits.u64(n), bits.u64(n) if spare else None, bits)

    def floats(self) -> Floats:
        """Lower ends of the 53-bit cells."""
        return (self.words >> np.uint64(11)).astype(np.float64) * _ULP

    def uniform(self, i: int) -> Uniform:
        """The i-th, to be revealed further."""
        return Uniform(int(self.words[i]), 64, self.bits, None if self.spare is None else int(self.spare[i]))


def decide(draws: Uniforms, p: Floats, exactly: Callable[[int, Uniform], bool]) -> Flags:
    """U < p for each draw, where p is known to 2^-46; `exactly(i, U)` decides inside the band."""
    low = draws.floats()
    yes: Flags = low + (_ULP + _BAND) <= p
    for i in np.flatnonzero(~yes & (low < p + _BAND)):
        yes[i] = exactly(int(i), draws.uniform(int(i)))
    return yes


def accept_exp(draws: Uniforms, x: Floats, exactly: Callable[[int], Fraction]) -> Flags:
    """U < exp(-x_i) for each draw, where the error of the float x_i is below 2^-47 exp(x_i)."""
    return decide(draws, np.exp(-x), lambda i, u: u.below_exp(exactly(i)))


def geometric(scale: Cells, n: int, bits: Bits, spare: bool) -> Integers:
    """n draws with P(k) ~ exp(-k/b_i), k >= 0."""
    _, exponent = np.frexp(scale.approximate)
    digits = np.maximum(exponent.astype(np.int64) - _HIGH_BITS, 0)
    high = np.ldexp(scale.approximate, -digits)  # exact: a change of exponent
    draws = Uniforms.draw(n, bits, spare)
    prefix = draws.words >> np.uint64(12)
    middle = prefix.astype(np.float64) + 0.5  # exact: 53 bits
    log = -np.log(middle * 2.0**-52)
    slack = log * _LOG_SLACK + 1 / middle  # float error, and half the width of the cell of U
    low = np.floor((log - slack) * high)
    doubt = (low != np.floor((log + slack) * high)) | (prefix == 0)
    out: Integers = low.astype(np.int64)
    for i in np.flatnonzero(doubt):
        whole = 1 << int(digits if digits.ndim == 0 else digits[i])
        out[i] = draws.uniform(int(i)).floor_log(scale.exactly(int(i)) / whole)
    if bool(np.any(digits)):
        out <<= digits
        out += _low_digits(scale, np.broadcast_to(digits, (n,)), bits, spare)
    return out


def _low_digits(scale: Cells, digits: Integers, bits: Bits, spare: bool) -> Integers:
    """D on [0, 2^w_i) with P(D = d) ~ exp(-d/b_i): a uniform d, kept with probability exp(-d/b_i) > .99."""
    out: Integers = np.zeros(digits.size, np.int64)
    todo: Integers = np.flatnonzero(digits)
    while todo.size:
        mask = (np.int64(1) << digits[todo]) - np.int64(1)
        d = bits.u64(todo.size).view(np.int64) & mask
        cells = scale.at(todo)

        def exponent(i: int, d: Integers = d, cells: Cells = cells) -> Fraction:
            return int(d[i]) / cells.exactly(i)

        kept = accept_exp(Uniforms.draw(d.size, bits, spare), d / cells.approximate, exponent)
        out[todo[kept]] = d[kept]
        todo = todo[~kept]
    return out


def laplace(scale: Cells, n: int, bits: Bits, spare: bool) -> Integers:
    """n draws with P(x) ~ exp(-|x|/b_i)."""
    q = np.exp(-1 / scale.approximate)
    signs = Uniforms.draw(n, bits, spare)
    negative = decide(
        signs,
        np.broadcast_to(q / (1 + q), (n,)),
        lambda i, u: u.below(lambda precision: odds_bounds(1 / scale.exactly(i), precision)),
    )
    out = geometric(scale, n, bits, spare)
    np.bitwise_xor(out, -negative.astype(np.int64), out=out)
    return out


def gaussian(variance: Cells, n: int, bits: Bits, spare: bool) -> Integers:
    """n draws with P(x) ~ exp(-x^2 / (2 s_i)), for parameters s_i = sigma_i^2."""
    out: Integers = np.zeros(n, np.int64)
    todo: Integers = np.arange(n)
    while todo.size:
        # Several proposals at once save rounds where rounds, not draws, cost; the first one kept is taken.
        repeats = 4 if todo.size < _FEW else 1
        cells = variance.at(np.tile(todo, repeats))
        proposals, kept = _gaussian_trials(cells, todo.size * repeats, bits, spare)
        first = kept.reshape(repeats, -1).argmax(axis=0) * todo.size + np.arange(todo.size)
        done = kept[first]
        out[todo[done]] = proposals[first[done]]
        todo = todo[~done]
    return out


def _gaussian_trials(variance: Cells, n: int, bits: Bits, spare: bool) -> tuple[Integers, Flags]:
    """n proposals, and which of them are kept."""
    s = variance.approximate
    t = np.floor(np.sqrt(s)) + 1

    def t_exactly(i: int) -> Fraction:
        return Fraction(float(t if t.ndim == 0 else t[i]))

    proposals = laplace(Cells(t, t_exactly), n, bits, spare)

    def exponent(i: int) -> Fraction:
        exact_s = variance.exactly(i)
        return (abs(int(proposals[i])) - exact_s / t_exactly(i)) ** 2 / (2 * exact_s)

    draws = Uniforms.draw(n, bits, spare)
    kept = accept_exp(draws, (np.abs(proposals) - s / t) ** 2 / (2 * s), exponent)
    return proposals, kept


def geometric_one(b: float, exactly: Callable[[], Fraction], bits: Bits) -> int:
    """One geometric draw in plain Python; the same method as `geometric`."""
    digits = max(0, math.frexp(b)[1] - _HIGH_BITS)
    high = math.ldexp(b, -digits)
    word = bits.word()
    prefix = word >> 12
    middle = prefix + 0.5
    log = -math.log(middle * 2.0**-52)
    slack = log * _LOG_SLACK + 1 / middle
    value = math.floor((log - slack) * high)
    if prefix == 0 or value != math.floor((log + slack) * high):
        value = Uniform(word, 64, bits).floor_log(exactly() / (1 << digits))
    if not digits:
        return value
    while True:
        d = bits.word() & ((1 << digits) - 1)

        def exponent(d: int = d) -> Fraction:
            return d / exactly()

        if bernoulli_exp_one(d / b, exponent, bits):
            return (value << digits) | d


def bernoulli_exp_one(x: float, exactly: Callable[[], Fraction], bits: Bits) -> bool:
    """One draw that is 1 with probability exp(-x)."""
    word = bits.word()
    low = (word >> 11) * _ULP
    p = math.exp(-x)
    if low + (_ULP + _BAND) <= p:
        return True
    if low >= p + _BAND:
        return False
    return Uniform(word, 64, bits).below_exp(exactly())


def laplace_one(b: float, exactly: Callable[[], Fraction], bits: Bits) -> int:
    """One discrete Laplace draw in plain Python."""
    q = math.exp(-1 / b)
    word = bits.word()
    low = (word >> 11) * _ULP
    p = q / (1 + q)
    if low + (_ULP + _BAND) <= p:
        negative = True
    elif low >= p + _BAND:
        negative = False
    else:
        negative = Uniform(word, 64, bits).below(lambda precision: odds_bounds(1 / exactly(), precision))
    value = geometric_one(b, exactly, bits)
    return -1 - value if negative else value


def gaussian_one(s: float, exactly: Callable[[], Fraction], bits: Bits) -> int:
    """One discrete Gaussian draw in plain Python, s = sigma^2."""
    t = math.floor(math.sqrt(s)) + 1
    b = float(t)
    t = int(b)
    while True:
        y = laplace_one(b, lambda: Fraction(t), bits)

        def exponent(y: int = y) -> Fraction:
            return (abs(y) - exactly() / t) ** 2 / (2 * exactly())

        if bernoulli_exp_one((abs(y) - s / t) ** 2 / (2 * s), exponent, bits):
            return y
