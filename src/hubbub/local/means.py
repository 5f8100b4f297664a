"""Means of bounded numbers: one-bit, piecewise and hybrid reports.

A value in [lower, upper] is put on a grid of G = 2^20 steps, j = 0 .. G; outside values are clamped, NaN becomes the
midpoint. Every report r is then a whole number with E[r] = alpha + beta j exactly, alpha and beta rational, so
(r - alpha) / beta is unbiased for j.

*One bit* (Duchi, Jordan, Wainwright 2018, section 3.2): round j/G at random to 0 or 1, and flip that bit with
probability L = 1/(1+e^epsilon), rounded up. alpha = L, beta = (1-2L)/G. n times the variance, for values in [-1, 1] and
mean x, is ((e^epsilon+1)/(e^epsilon-1))^2 - x^2.

*Piecewise* (Wang et al. 2019, "Collecting and analyzing multidimensional data with local differential privacy",
Algorithm 2), on integers: r is uniform on the window [j, j+W) with probability p, else uniform on the rest of [0, G+W).
The ratio of chances is p G / ((1-p) W) <= e^epsilon; W is next to G e^(-epsilon/2). Better than one bit for
epsilon above 1.29.

*Hybrid* (the same paper, section III-C): piecewise with probability 1 - e^(-epsilon/2), as a float's rational, else one
bit; only one bit for epsilon <= 0.61. Never worse than either, in the worst case over values.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number
from hubbub.errors import ParameterError
from hubbub.local.direct import integer_type
from hubbub.local.draws import Array, Integers, coins, lie_chance, uniform
from hubbub.local.estimate import MeanEstimate
from hubbub.local.oracle import CHUNK, chunks, epsilon_above_zero, integer_reports
from hubbub.local.randomizer import LocalOracle, Randomizer
from hubbub.noise import Bits, bernoulli
from hubbub.noise.parameters import exact

__all__ = [
    "GRID",
    "LARGEST",
    "HybridMean",
    "MeanOracle",
    "MeanRandomizer",
    "MeanTally",
    "OneBitMean",
    "PiecewiseMean",
    "check_steps",
]

GRID = 1 << 20
# Ends and radii lie between 1 / LARGEST and LARGEST, so that their floats, and quotients of these, are sound.
LARGEST = 10**300


def _sum_and_squares(start: int, stop: int) -> tuple[int, int]:
    """Sums of r and r^2 over start <= r < stop."""

    def up_to(n: int) -> tuple[int, int]:
        return n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6

    (a, b), (c, d) = up_to(start), up_to(stop)
    return c - a, d - b


def check_steps(steps: Integers) -> None:
    """Refuse steps that are not on the grid."""
    if steps.size and not 0 <= steps.min() <= steps.max() <= GRID:
        raise ParameterError(f"some step is outside 0 .. {GRID}.")


@dataclass(frozen=True)
class MeanRandomizer(Randomizer):
    """The base of clients for steps 0 .. G of the grid. A report is a whole number below `report_count`."""

    @property
    @abstractmethod
    def report_count(self) -> int:
        """How many different reports there are."""

    @property
    @abstractmethod
    def lines(self) -> tuple[tuple[int, Fraction, Fraction], ...]:
        """For each kind of report: its first number, alpha and beta (about the number less the first)."""

    @property
    def report_type(self) -> np.dtype[Any]:
        return integer_type(self.report_count)

    @abstractmethod
    def chance(self, report: int, data: int) -> Fraction:
        """P(report | the value is at the step `data` of the grid), exactly."""

    @abstractmethod
    def second_moment(self, step: int) -> Fraction:
        """E[((r - alpha) / beta)^2] for a value at `step`, in steps squared."""

    @abstractmethod
    def _client(self, steps: Integers, bits: Bits | None) -> Array:
        """Reports for steps 0 .. G."""

    def release(self, data: Integers, *, bits: Bits | None = None) -> Array:
        """Reports for steps, shape (n,).

        Raises:
            ParameterError: a step is not one of 0 .. G.
        """
        check_steps(data)
        out = np.empty(data.size, self.report_type)
        for part in chunks(data.size, CHUNK):
            out[part] = self._client(data[part], bits)
        return out


class OneBitRandomizer(MeanRandomizer):
    """The value rounded at random to a bit, and that bit flipped."""

    @property
    def lie(self) -> Fraction:
        """L, the chance that the bit is flipped."""
        return lie_chance(1, self.epsilon)

    @property
    def report_count(self) -> int:
        return 2

    @property
    def parameters(self) -> dict[str, object]:
        return {"steps": GRID, "lie": str(self.lie)}

    @property
    def lines(self) -> tuple[tuple[int, Fraction, Fraction], ...]:
        return ((0, self.lie, (1 - 2 * self.lie) / GRID),)

    def chance(self, report: int, data: int) -> Fraction:
        one = self.lie + (1 - 2 * self.lie) * Fraction(
            int(data), GRID
        )  # of a step of numpy, products would leave 64 bits
        return one if report == 1 else 1 - one

    def second_moment(self, step: int) -> Fraction:
        (_, alpha, beta), one = self.lines[0], self.chance(1, step)
        return (one * (1 - alpha) ** 2 + (1 - one) * alpha**2) / beta**2

    def _client(self, steps: Integers, bits: Bits | None) -> Array:
        # step / 2^20 is exact as a float, and so is the chance that is drawn.
        return bernoulli(steps / GRID, bits=bits) ^ coins(self.lie, steps.size, bits)


class PiecewiseRandomizer(MeanRandomizer):
    """A number in the window from the value on, or one outside."""

    @property
    def window(self) -> int:
        """W, the length of the likely window."""
        return max(1, round(GRID * math.exp(-min(float(self.epsilon), 100.0) / 2)))

    @property
    def miss(self) -> Fraction:
        """1 - p, the chance of a report outside the window."""
        return lie_chance(Fraction(GRID, self.window), self.epsilon)

    @property
    def report_count(self) -> int:
        return GRID + self.window

    @property
    def parameters(self) -> dict[str, object]:
        return {"steps": GRID, "window": self.window, "miss": str(self.miss)}

    @property
    def lines(self) -> tuple[tuple[int, Fraction, Fraction], ...]:
        at_zero = self._moments(0)[0]
        return ((0, at_zero, self._moments(1)[0] - at_zero),)

    def _moments(self, step: int) -> tuple[Fraction, Fraction]:
        """E[r] and E[r^2]."""
        step = int(step)
        inside, everything = _sum_and_squares(step, step + self.window), _sum_and_squares(0, self.report_count)
        hit, miss = (1 - self.miss) / self.window, self.miss / GRID
        first, second = (hit * a + miss * (b - a) for a, b in zip(inside, everything, strict=True))
        return first, second

    def chance(self, report: int, data: int) -> Fraction:
        return (1 - self.miss) / self.window if data <= report < data + self.window else self.miss / GRID

    def second_moment(self, step: int) -> Fraction:
        (_, alpha, beta), (first, second) = self.lines[0], self._moments(step)
        return (second - 2 * alpha * first + alpha**2) / beta**2

    def _client(self, steps: Integers, bits: Bits | None) -> Array:
        inside = steps + uniform(self.window, steps.size, bits)
        outside = uniform(GRID, steps.size, bits).astype(np.int64)
        outside += np.where(outside >= steps, self.window, 0)
        return np.where(coins(self.miss, steps.size, bits), outside, inside)


class HybridRandomizer(MeanRandomizer):
    """A public coin between piecewise and one bit. Reports G + W and G + W + 1 are the two of the one bit."""

    @property
    def piecewise_share(self) -> Fraction:
        """The chance of a piecewise report: 1 - e^(-epsilon/2) for epsilon above 0.61, else 0."""
        if self.epsilon <= Fraction(61, 100):
            return Fraction(0)
        return Fraction(round(-math.expm1(-float(self.epsilon) / 2) * (1 << 32)), 1 << 32)

    @property
    def piecewise(self) -> PiecewiseRandomizer:
        """The one half."""
        return PiecewiseRandomizer(self.epsilon)

    @property
    def one_bit(self) -> OneBitRandomizer:
        """The other half."""
        return OneBitRandomizer(self.epsilon)

    @property
    def report_count(self) -> int:
        return self.piecewise.report_count + 2

    @property
    def parameters(self) -> dict[str, object]:
        both = self.piecewise.parameters | self.one_bit.parameters
        return both | {"piecewise_share": str(self.piecewise_share)}

    @property
    def lines(self) -> tuple[tuple[int, Fraction, Fraction], ...]:
        ((_, alpha, beta),) = self.one_bit.lines
        return (*self.piecewise.lines, (self.piecewise.report_count, alpha, beta))

    def chance(self, report: int, data: int) -> Fraction:
        first = self.piecewise.report_count
        if report < first:
            return self.piecewise_share * self.piecewise.chance(report, data)
        return (1 - self.piecewise_share) * self.one_bit.chance(report - first, data)

    def second_moment(self, step: int) -> Fraction:
        share = self.piecewise_share
        return share * self.piecewise.second_moment(step) + (1 - share) * self.one_bit.second_moment(step)

    def _client(self, steps: Integers, bits: Bits | None) -> Array:
        piecewise, one_bit = self.piecewise, self.one_bit
        chosen = coins(self.piecewise_share, steps.size, bits)
        ones = one_bit._client(steps, bits).astype(np.int64) + piecewise.report_count
        return np.where(chosen, piecewise._client(steps, bits), ones)


@dataclass(frozen=True)
class MeanTally:
    """For each kind of report: how many, their sum, the sum of their squares. Tallies of one oracle add."""

    oracle: MeanOracle
    parts: tuple[tuple[int, int, int], ...]
    dropped: int

    @property
    def n(self) -> int:
        """Valid reports."""
        return sum(part[0] for part in self.parts)

    def __add__(self, other: MeanTally) -> MeanTally:
        if not isinstance(other, MeanTally) or other.oracle != self.oracle:
            raise ParameterError("tallies of different oracles were added; add those of one oracle.")
        pairs = zip(self.parts, other.parts, strict=True)
        parts = tuple((a[0] + b[0], a[1] + b[1], a[2] + b[2]) for a, b in pairs)
        return MeanTally(self.oracle, parts, self.dropped + other.dropped)

    def __radd__(self, other: object) -> MeanTally:
        if other == 0:  # so that sum() works
            return self
        return NotImplemented

    def estimate(self) -> MeanEstimate:
        """The unbiased mean, with its variance as the reports show it."""
        return self.oracle._estimate(self)


@dataclass(frozen=True, init=False, repr=False)
class MeanOracle(LocalOracle):
    """The base of oracles for numbers in [lower, upper]: a client for steps of the grid, and the numbers they are."""

    randomizer: MeanRandomizer
    lower: Fraction
    upper: Fraction

    name: ClassVar[str]
    _kind: ClassVar[type[MeanRandomizer]]

    def __init__(self, epsilon: Number, lower: Number = -1, upper: Number = 1) -> None:
        low, high = exact(lower, "lower"), exact(upper, "upper")
        if low >= high:
            raise ParameterError(f"lower = {lower} and upper = {upper} were asked; give lower < upper.")
        if max(abs(low), abs(high)) > LARGEST or high - low < Fraction(1, LARGEST):
            raise ParameterError("lower and upper were asked beyond 1e300, or closer than 1e-300; use another unit.")
        object.__setattr__(self, "randomizer", self._kind(epsilon_above_zero(epsilon)))
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}(epsilon={self.epsilon!r}, lower={self.lower!r}, upper={self.upper!r})"

    @property
    def arguments(self) -> dict[str, object]:
        """What the constructor was given, as plain values."""
        return {"epsilon": str(self.epsilon), "lower": str(self.lower), "upper": str(self.upper)}

    def steps(self, values: Any) -> Integers:
        """Values on the grid; total: clamped, NaN to the middle."""
        array = np.asarray(values, np.float64)
        # A caller's np.seterr must not turn an overflow, which depends on a person's value, into an exception.
        with np.errstate(all="ignore"):
            share = (array - float(self.lower)) / float(self.upper - self.lower)
        share = np.clip(np.where(np.isnan(share), 0.5, share), 0, 1)
        return np.floor(share * GRID + 0.5).astype(np.int64)

    def variance(self, value: float) -> float:
        """The variance of one report's unbiased value for a person whose number is `value`, in units squared."""
        step = int(self.steps([value])[0])
        return float((self.randomizer.second_moment(step) - step**2) * (self.upper - self.lower) ** 2 / GRID**2)

    def privatize(self, values: Any, *, bits: Bits | None = None) -> Array:
        """Reports for numbers, of shape (n,), or one report for one number."""
        out = self.randomizer.release(np.atleast_1d(self.steps(values)), bits=bits)
        return out if np.ndim(values) else out[0]

    def empty(self) -> MeanTally:
        """A tally of no reports."""
        return MeanTally(self, ((0, 0, 0),) * len(self.randomizer.lines), 0)

    def aggregate(self, reports: Any) -> MeanTally:
        """Count reports; what no client can have sent is dropped and counted."""
        lines, count = self.randomizer.lines, self.randomizer.report_count
        valid, dropped = integer_reports(reports, count)
        totals = [(0, 0, 0)] * len(lines)
        firsts = [line[0] for line in lines] + [count]
        for part in chunks(len(valid), 1 << 16):
            some = valid[part].astype(np.int64)
            for i in range(len(totals)):
                own = some[(some >= firsts[i]) & (some < firsts[i + 1])] - firsts[i]
                n, total, squares = totals[i]
                # 2^16 squares below 2^63 / 2^16: whole numbers are exact; larger ones go through Python's.
                square = int(own @ own) if count < 1 << 23 else sum(v * v for v in own.tolist())
                totals[i] = (n + own.size, total + int(own.sum()), squares + square)
        return MeanTally(self, tuple(totals), dropped)

    def estimate(self, reports: Any) -> MeanEstimate:
        """`aggregate` and `MeanTally.estimate` at once."""
        return self.aggregate(reports).estimate()

    def _estimate(self, tally: MeanTally) -> MeanEstimate:
        n, width = tally.n, self.upper - self.lower
        low, high = float(self.lower), float(self.upper)
        if n < 2:
            return MeanEstimate((low + high) / 2, math.inf, n, tally.dropped, low, high)
        first = second = Fraction(0)
        for (count, total, squares), (_, alpha, beta) in zip(tally.parts, self.randomizer.lines, strict=True):
            first += (total - count * alpha) / beta
            second += (squares - 2 * alpha * total + count * alpha**2) / beta**2
        mean = first / n
        spread = (second - n * mean**2) / (n - 1) / n
        scale = width / GRID
        return MeanEstimate(float(self.lower + mean * scale), float(spread * scale**2), n, tally.dropped, low, high)


class OneBitMean(MeanOracle):
    """One bit per number (Duchi, Jordan, Wainwright).

    >>> round(OneBitMean(1).variance(0.0), 3)
    4.683
    """

    name: ClassVar[str] = "one_bit_mean"
    _kind = OneBitRandomizer

    randomizer: OneBitRandomizer


class PiecewiseMean(MeanOracle):
    """The piecewise mechanism on integers.

    >>> round(PiecewiseMean(2).variance(0.0), 3)
    0.646
    """

    name: ClassVar[str] = "piecewise_mean"
    _kind = PiecewiseRandomizer

    randomizer: PiecewiseRandomizer


class HybridMean(MeanOracle):
    """A public coin between piecewise and one bit. Reports G + W and G + W + 1 are the two of the one bit.

    >>> round(HybridMean(1).variance(0.0), 3), round(HybridMean(1).variance(1.0), 3)
    (4.289, 4.289)
    """

    name: ClassVar[str] = "hybrid_mean"
    _kind = HybridRandomizer

    randomizer: HybridRandomizer
