"""The Polya law: shares of discrete Laplace noise, and sums of it.

With q = exp(-1/b) and a shape r > 0, X = A - B for independent negative binomial A, B,

    P(A = k) = (1-q)^r q^k c_k,    c_k = (r)(r+1)...(r+k-1) / k!,    E exp(itX) = ((1-q)^2 / (1 - 2q cos t + q^2))^r.

So shapes add: independent X of shapes r and s sum to one of shape r + s. Shape 1 is the discrete Laplace law of scale
b: h shares of shape 1/h sum to it exactly, and the sum of m full draws has shape m. Var X = 2 r q/(1-q)^2.

*Exact draws.* The whole part of r is drawn as discrete Laplace noise. For r < 1: c_k <= 1, so a geometric k, kept with
probability c_k, has P(A = k), and one trial in (1-q)^(r-1) is kept: about one in b^(1-r). c_k is a rational; floats
decide outside a proven band, integers inside it.

*Floats* (pmf, cdf, quantiles, for error bars): the inverse Fourier transform over a period that holds all but 1e-18
of the law, right to 1e-13 absolutely. Scales above 2^14 are looked up at 2^14, relative error below 1e-4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np

from hubbub.errors import ParameterError
from hubbub.noise import direct, draw
from hubbub.noise.bits import Bits, system_bits
from hubbub.noise.certified import Bounds
from hubbub.noise.laws import confidence, plain, probability, quiet, whole
from hubbub.noise.parameters import Floats, Integers, Number, Size, approximation, one_cell, positive, shape_of

__all__ = ["MAX_SHARED_SCALE", "Polya", "polya"]

MAX_SHARED_SCALE = 1 << 20
"""The widest scale of shares: a draw takes about so many trials."""

_TABLE = 4096
_WORK = 192
_MOST_TRIALS = 1 << 18
_WIDEST = 1 << 14
_MOST_WHOLE = 1 << 12


def _chances(r: Fraction, count: int, work: int) -> list[int]:
    """2^work c_k for k < count, each low by at most k units: every step rounds down once, by factors of at most 1."""
    num, den = r.numerator, r.denominator
    value, out = 1 << work, [1 << work]
    for k in range(1, count):
        value = value * (num + (k - 1) * den) // (k * den)
        out.append(value)
    return out


def _chance_bounds(r: Fraction, k: int) -> Bounds:
    """Certified bounds of c_k."""

    def bounds(precision: int) -> tuple[int, int]:
        spare = k.bit_length() + 2
        value = _chances(r, k + 1, precision + spare)[k]
        return value >> spare, ((value + k) >> spare) + 1

    return bounds


@lru_cache(maxsize=16)
def _chance_table(r: Fraction) -> Floats:
    """c_k for k < 4096 as floats, relative error 2^-53."""
    return np.array([math.ldexp(float(v), -_WORK) for v in _chances(r, _TABLE, _WORK)])


def _chance_floats(r: Fraction, k: Integers) -> Floats:
    """c_k as floats, error below 2^-47: from the table, or beyond it Stirling's series for both Gammas.

    ln c_k = (r-1) ln(k+1) + (k+r-1/2) ln(1 + (r-1)/(k+1)) + (1-r) + (1/(k+r) - 1/(k+1))/12 - ln Gamma(r), up to 1e-16.
    """
    table = _chance_table(r)
    out = table[np.minimum(k, _TABLE - 1)]
    far = np.flatnonzero(k >= _TABLE)
    if far.size:
        x, s = k[far].astype(np.float64), float(r)
        log = (s - 1) * np.log(x + 1) + (x + s - 0.5) * np.log1p((s - 1) / (x + 1)) + (1 - s)
        out[far] = np.exp(log + (1 / (x + s) - 1 / (x + 1)) / 12 - math.lgamma(s))
    return out


def _negative_binomial(scale: Fraction, r: Fraction, n: int, bits: Bits, spare: bool) -> Integers:
    """n draws of A for 0 < r < 1."""
    out: Integers = np.zeros(n, np.int64)
    todo: Integers = np.arange(n)
    b = approximation(scale)
    trials = math.ceil((-math.expm1(-1 / b)) ** (float(r) - 1))
    while todo.size:
        repeats = max(1, min(trials, _MOST_TRIALS // todo.size))
        proposals = draw._in_chunks(direct.geometric, one_cell(scale), (todo.size * repeats,), bits, spare)
        draws = direct.Uniforms.draw(proposals.size, bits, spare)

        def exactly(i: int, u: Any, k: Integers = proposals) -> bool:
            return bool(u.below(_chance_bounds(r, int(k[i]))))

        kept = direct.decide(draws, _chance_floats(r, proposals), exactly).reshape(repeats, todo.size)
        first = kept.argmax(axis=0) * todo.size + np.arange(todo.size)
        done = kept.ravel()[first]
        out[todo[done]] = proposals[first[done]]
        todo = todo[~done]
    return out


def _draws(scale: Fraction, shape: Fraction, size: Size, bits: Bits | None, mode: draw.Mode | None) -> int | Integers:
    dimensions = () if size is None else shape_of(size)
    full, part = divmod(shape, 1)
    if part and scale > MAX_SHARED_SCALE:
        raise ParameterError("the scale is above 2^20, too wide for shares of noise. Use a coarser grid.")
    if full > _MOST_WHOLE:
        raise ParameterError(f"shape is {shape}; draws are made for shapes up to {_MOST_WHOLE}.")
    source = system_bits() if bits is None else bits
    spare = draw.checked_mode(mode) == "hardened"
    n = math.prod(dimensions)
    out: Integers = np.zeros(n, np.int64)
    for _ in range(full):
        out += np.asarray(draw.laplace_draws(scale, n, source, mode))
    if part:
        out += _negative_binomial(scale, part, n, source, spare) - _negative_binomial(scale, part, n, source, spare)
    return int(out[0]) if size is None else out.reshape(dimensions)


@overload
def polya(
    scale: Number, shape: Number, size: None = None, *, bits: Bits | None = None, mode: draw.Mode | None = None
) -> int: ...
@overload
def polya(
    scale: Number, shape: Number, size: Any = None, *, bits: Bits | None = None, mode: draw.Mode | None = None
) -> Integers: ...
def polya(
    scale: Number, shape: Number, size: Any = None, *, bits: Bits | None = None, mode: draw.Mode | None = None
) -> int | Integers:
    """Polya noise: shape 1 is discrete Laplace noise of this scale, and h draws of shape 1/h sum to it exactly.

    Raises ParameterError unless 0 < scale <= 2^53 (2^20 where the shape is not a whole number), 0 < shape <= 4096.
    """
    law = Polya(scale, shape)
    return _draws(law.scale, law.shape, size, bits, mode)


@dataclass(frozen=True, slots=True, init=False)
class Polya:
    """The law of `shape` discrete Laplace draws of this scale, added up; `shape` may be any fraction above 0.

    >>> Polya(10, 1).half_width(0.95), Polya(10, 2).half_width(0.95)
    (30, 41)
    >>> Polya(10, "1/5").shape
    Fraction(1, 5)
    """

    scale: Fraction
    shape: Fraction

    def __init__(self, scale: Number, shape: Number | str) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "shape", positive(Fraction(shape) if isinstance(shape, str) else shape, "shape"))

    @overload
    def sample(self, size: None = None, *, bits: Bits | None = None, mode: draw.Mode | None = None) -> int: ...
    @overload
    def sample(self, size: Any, *, bits: Bits | None = None, mode: draw.Mode | None = None) -> Integers: ...
    def sample(self, size: Any = None, *, bits: Bits | None = None, mode: draw.Mode | None = None) -> int | Integers:
        """Exact draws: an int, or an int64 array of shape `size`."""
        return _draws(self.scale, self.shape, size, bits, mode)

    @property
    def variance(self) -> float:
        """2 r q/(1-q)^2."""
        y = 1 / approximation(self.scale)
        return float(self.shape) * 2 * math.exp(-y) / math.expm1(-y) ** 2

    @quiet
    def pmf(self, x: Any) -> Any:
        """P(X = x), elementwise, for scales up to 2^14."""
        table, points = self._narrow()[0], np.abs(whole(x))
        inside = points < table.size
        return plain(np.where(inside, table[np.where(inside, points, 0).astype(np.int64)], 0.0))

    @quiet
    def tail(self, x: Any) -> Any:
        """P(X > x), elementwise, for scales up to 2^14."""
        _, above = self._narrow()
        points = whole(x)
        places = np.minimum(np.where(points >= 0, points, -points - 1), above.size - 1).astype(np.int64)
        return plain(np.where(points >= 0, above[places], 1 - above[places]))

    @quiet
    def cdf(self, x: Any) -> Any:
        """P(X <= x), elementwise, for scales up to 2^14."""
        return self.tail(-whole(x) - 1)

    def quantile(self, p: Number) -> int:
        """The smallest x with P(X <= x) >= p, 0 < p < 1."""
        mass = probability(p)
        if mass > Fraction(1, 2):
            return self._reach(float(1 - mass))
        (_, above), factor = self._table()
        # X is symmetric: P(X <= -x) = P(X > x - 1), which has to reach the mass.
        place = int(np.searchsorted(-above, -float(mass), "right"))
        return -math.floor(place * factor)

    def half_width(self, level: Number) -> int:
        """The smallest t >= 0 with P(|X| <= t) >= level; beyond a scale of 2^14 rounded up."""
        return self._reach(confidence(level) / 2)

    def _reach(self, rest: float) -> int:
        """The smallest t >= 0 with P(X > t) <= rest."""
        (_, above), factor = self._table()
        place = int(np.searchsorted(-above, -rest, "left"))
        return place if factor == 1 else math.ceil((place + 1) * factor)

    def _narrow(self) -> tuple[Floats, Floats]:
        table, factor = self._table()
        if factor != 1:
            raise ParameterError("the scale is above 2^14; of such a law there are quantiles and half widths alone.")
        return table

    def _table(self) -> tuple[tuple[Floats, Floats], Fraction]:
        """P(X = x) and P(X > x) for x >= 0, and by what to multiply x."""
        if self.scale <= _WIDEST:
            return _tabulated(self.scale, self.shape), Fraction(1)
        if self.shape < 1:
            raise ParameterError("the scale is above 2^14 and the shape below 1; of such a law there are draws alone.")
        return _tabulated(Fraction(_WIDEST), self.shape), self.scale / _WIDEST


@lru_cache(maxsize=16)
def _tabulated(scale: Fraction, shape: Fraction) -> tuple[Floats, Floats]:
    """The law over a period by the transform of its characteristic function. X > x has Chernoff's bound at t = 1/2b:
    (4/3)^r exp(-x/2b), which is below 1e-18 beyond x = 2b (42 + .29 r)."""
    b, r = approximation(scale), float(shape)
    reach = math.ceil(2 * b * (42 + 0.29 * r)) + 64
    period = 1 << (2 * reach).bit_length()
    if period > 1 << 24:
        raise ParameterError(f"scale {b:g} and shape {r:g} make a law too wide to tabulate; use a coarser grid.")
    t = np.arange(period // 2 + 1) * (2 * math.pi / period)
    # (1-q)^2 / ((1-q)^2 + 4 q sin^2(t/2)), without cancellation.
    q = math.exp(-1 / b)
    characteristic = (1 / (1 + 4 * q * np.sin(t / 2) ** 2 / math.expm1(-1 / b) ** 2)) ** r
    pmf = np.maximum(np.fft.irfft(characteristic, period)[:reach], 0.0)
    above = np.cumsum(pmf[::-1])[::-1] - pmf
    return pmf, above
