"""Choosing which groups may be shown, where the set of groups itself is private.

Add/remove neighbours; one unit is in at most C groups, and counts are of *units*. Two ways:

*Optimal, C = 1* (Desfontaines, Voss, Gipson, Mandayam 2022, Theorem 1): show a group of n units with probability

    pi(0) = 0,  pi(n) = min(e^epsilon pi(n-1) + delta, 1 - e^-epsilon (1 - pi(n-1) - delta), 1),

the largest that (epsilon, delta)-DP allows at every n. Here e^epsilon is a rational rounded down, and every pi(n) is
rounded down to a multiple of about 2^-200 delta: smaller probabilities still obey both inequalities, so the proof
stands, exactly.
Closed form until the two branches meet: pi(n) = delta (e^(n epsilon) - 1) / (e^epsilon - 1).

*Threshold*: show a group with its noisy count n + Z if that is at least tau, Z discrete Laplace of scale C/epsilon,
or discrete Gaussian. An empty group is never shown; a group of one unit is, with probability p = P(Z >= tau - 1), so
delta = C p bounds it (exactly 1 - (1-p)^C). tau is the least whole number that keeps the declared delta, decided
with certified exponentials for Laplace noise, and outside a proven error band of the tail for Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, probability
from hubbub.accounting.rounding import exp_down, exp_up, float_down, ln
from hubbub.errors import ParameterError
from hubbub.mechanisms.calibrate import capped_counts, epsilon_of, one_of, whole_number
from hubbub.mechanisms.calibration import Noise, Spend, calibrated
from hubbub.mechanisms.recording import through
from hubbub.noise import Bits, DiscreteGaussian, DiscreteLaplace, bernoulli

__all__ = ["GroupThreshold", "OptimalGroupSelection"]

_GRAIN_BITS = 200
_LONGEST = 100_000
_LEAST_DELTA = Fraction(1, 10**300)
# Counts stop here: noise of scale up to 2^53 stays within int64, and a unit still moves a count by one at most.
_MOST_UNITS = 2**62


@dataclass(frozen=True, init=False)
class OptimalGroupSelection:
    """Show each group with the largest probability that (epsilon, delta)-DP allows; one group per unit.

    >>> float(OptimalGroupSelection(epsilon=1, delta="1e-5").probability(1))
    1e-05
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, *, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", epsilon_of(epsilon))
        object.__setattr__(self, "delta", _delta(delta))

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return ev.ApproxDP(self.epsilon, self.delta)

    def probability(self, n: int) -> Fraction:
        """pi(n) for a group of n >= 0 units."""
        table = _optimal(self.epsilon, self.delta)
        return table[n] if n < len(table) else Fraction(1)

    @property
    def always(self) -> int:
        """The least n with pi(n) = 1."""
        return len(_optimal(self.epsilon, self.delta))

    def release(
        self, counts: Any, *, keys: Iterable[Hashable] | None = None, bits: Bits | None = None
    ) -> NDArray[np.bool_]:
        """Which groups are shown, for their exact unit counts, an int array of shape (groups,).

        keys: what the groups are called, for the auditor alone.
        """
        exact = _unit_counts(counts)

        def draw() -> NDArray[np.bool_]:
            chances = np.array([self.probability(int(n)) for n in exact], dtype=object)
            return np.asarray(bernoulli(chances, bits=bits)) if exact.size else np.zeros(0, np.bool_)

        return through(exact, sensitivity=1, norm="groups", law=self, draw=draw, keys=keys)

    def log_prob(self, output: bool, data: int) -> float:
        """ln P(a group of `data` units is shown, or not)."""
        chance = self.probability(data)
        chance = chance if output else 1 - chance
        return math.log(chance) if chance > 0 else -math.inf


@lru_cache(maxsize=64)
def _optimal(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    # Each branch takes about (1/epsilon) ln(1 + (e^epsilon - 1) / 2 delta) steps to reach the middle.
    # In logarithms, because the quotient may be beyond floats.
    e = max(float(epsilon), 1e-300)
    size = e + math.log(-math.expm1(-e)) - float(ln(2 * delta))
    if 2 / e * (max(size, 0.0) + math.log1p(math.exp(-abs(size)))) > _LONGEST:
        raise ParameterError(
            f"epsilon = {float(epsilon):g} with delta = {float(delta):g} shows no group for certain below {_LONGEST} "
            "units; give a larger epsilon or delta."
        )
    growth = exp_down(epsilon)
    table = [Fraction(0)]
    grain = 2 ** (_GRAIN_BITS + (1 / delta).__ceil__().bit_length())
    while True:
        before = table[-1]
        most = min(growth * before + delta, 1 - (1 - before - delta) / growth)
        if most >= 1:
            return tuple(table)
        table.append(Fraction(math.floor(most * grain), grain) if len(table) > 1 else delta)


@dataclass(frozen=True, init=False)
class GroupThreshold:
    """Show groups whose noisy count of units is at least a threshold, with that count.

    delta: for the whole selection. groups: the most groups of one unit. Give exactly one of epsilon (Laplace noise)
    and rho (Gaussian noise), both for the whole selection.

    >>> GroupThreshold(epsilon=1, delta="1e-5").threshold
    13
    """

    delta: Fraction
    groups: int
    noise: Noise
    threshold: int

    def __init__(
        self, *, delta: Number, groups: int = 1, epsilon: Number | None = None, rho: Number | None = None
    ) -> None:
        one_of("group selection", epsilon=epsilon, rho=rho)
        most, declared = whole_number(groups, "groups"), _delta(delta)
        if epsilon is not None:
            spend = Spend(epsilon=epsilon_of(epsilon))
        else:
            assert rho is not None
            spend = Spend(rho=epsilon_of(rho, name="rho"))
        # A unit moves the counts of `most` groups by 1 each: l1 and l2 squared are the same number.
        noise = calibrated(spend=spend, l1=most, l2_squared=most).law
        if isinstance(noise, DiscreteLaplace):
            threshold = _laplace_threshold(noise.scale, declared / most)
        else:
            threshold = _gaussian_threshold(noise.sigma2, declared / most)
        for name, value in {"delta": declared, "groups": most, "noise": noise, "threshold": threshold}.items():
            object.__setattr__(self, name, value)

    @property
    def loss(self) -> ev.Event:
        """The event to charge: both the noise and the chance that a group of one unit shows."""
        if isinstance(self.noise, DiscreteLaplace):
            return ev.Threshold(1 / self.noise.scale, self.delta / self.groups, self.groups)
        return ev.Composed([ev.ZCDP(self.groups / (2 * self.noise.sigma2)), ev.ApproxDP(0, self.delta)])

    @property
    def one_unit(self) -> float:
        """p: the exact chance that a group of one unit is shown."""
        return float(self.noise.tail(self.threshold - 2))

    def release(
        self, counts: Any, *, keys: Iterable[Hashable] | None = None, bits: Bits | None = None
    ) -> dict[int, int]:
        """Shown groups: position -> noisy count, in order of position. counts: exact unit counts, shape (groups,).

        keys: what the groups are called, for the auditor alone.
        """
        exact = _unit_counts(counts)

        def draw() -> dict[int, int]:
            noisy = exact + self.noise.sample(exact.size, bits=bits)
            shown = np.flatnonzero((exact > 0) & (noisy >= self.threshold))
            return {int(i): int(noisy[i]) for i in shown}

        return through(exact, sensitivity=self.groups, norm="groups", law=self, draw=draw, keys=keys)

    def log_prob(self, output: int | None, data: int) -> float:
        """ln P(a group of `data` units shows the count `output`, or does not show: None)."""
        if data == 0:
            return 0.0 if output is None else -math.inf
        if output is None:
            return math.log(float(self.noise.cdf(self.threshold - 1 - data)))
        return float(self.noise.log_pmf(output - data)) if output >= self.threshold else -math.inf


def _laplace_threshold(scale: Fraction, delta: Fraction) -> int:
    """The least tau with P(Z >= tau - 1) = q^(tau-1) / (1+q) <= delta, decided in rationals."""
    q_up, q_down = exp_up(-1 / scale), exp_down(-1 / scale)

    def enough(tau: int) -> bool:
        if tau < 2:
            # P(Z >= tau - 1) = 1 - q^(2-tau)/(1+q) for tau <= 1.
            return 1 - q_down ** (2 - tau) / (1 + q_up) <= delta
        return exp_up(-(tau - 1) / scale) / (1 + q_down) <= delta

    tau = math.floor(-float(scale) * float(ln(2 * delta))) if delta < Fraction(1, 2) else 0
    while not enough(tau):
        tau += 1
    while enough(tau - 1):
        tau -= 1
    return tau


def _gaussian_threshold(variance: Fraction, delta: Fraction) -> int:
    """The least tau with P(Z >= tau - 1) <= delta. The tail's floats are good to 1e-10; they are given 1e-9."""
    if delta < _LEAST_DELTA:
        raise ParameterError(
            "delta below 1e-300 a group was asked of Gaussian noise, whose tails are floats; give a larger delta, or "
            "epsilon= (Laplace noise, whose tail is exact)."
        )
    law, most = DiscreteGaussian.from_variance(variance), float_down(delta) * (1 - 1e-9)
    low, high = -1, 1
    while float(law.tail(high - 2)) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if float(law.tail(middle - 2)) > most else (low, middle)
    return high


def _delta(value: Number) -> Fraction:
    delta = probability(value, "delta")
    if delta == 0:
        raise ParameterError(
            "delta = 0 was asked where the groups are private: that a group exists would tell that a unit is in it. "
            "Give a delta above 0, or declare the groups."
        )
    return delta


def _unit_counts(counts: Any) -> NDArray[np.int64]:
    exact = capped_counts(counts, _MOST_UNITS)
    if exact is None:
        raise ParameterError("counts are whole numbers of units >= 0, one per group.")
    return exact
