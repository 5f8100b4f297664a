"""The Gaussian mechanism with exact discrete Gaussian noise.

Let f have squared l2 sensitivity Delta^2 = max ||f(D) - f(D')||_2^2 on the integers (or a grid). Adding independent
P(Z_i = z) proportional to exp(-z^2 / 2 sigma^2) is Delta^2/(2 sigma^2)-zCDP, exactly (Canonne, Kamath, Steinke 2020,
Theorem 14). Three ways from (epsilon, delta) to sigma^2:

- "zcdp": rho from (epsilon, delta) by their Proposition 12, rounded down; sigma^2 = Delta^2 / 2 rho. Any vector.
- "classic": sigma^2 = 2 ln(1.25/delta) Delta^2 / epsilon^2 (Dwork, Roth 2014, Theorem A.1). The formula is a
  *variance*, and is proved for epsilon <= 1 only (the sources leave that out).
- "exact": the least sigma with delta(epsilon) <= delta, where at most one cell changes, by an integer d <= Delta:

    delta_d(epsilon) = P(Z > epsilon sigma^2/d - d/2) - e^epsilon P(Z > epsilon sigma^2/d + d/2).

  For real values it is the analytic Gaussian mechanism (Balle, Wang 2018, Theorem 8), `gaussian_sigma`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, probability, scale as positive
from hubbub.accounting.rounding import digits_up, float_down, ln, root_up
from hubbub.accounting.zcdp import rho_of_epsilon
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import add_noise
from hubbub.mechanisms.calibrate import (
    beta_of,
    chosen,
    differences,
    epsilon_of,
    integers,
    like,
    one_of,
    private_integers,
    sensitivity_of,
    whole_number,
)
from hubbub.mechanisms.calibration import Spend, calibrated
from hubbub.noise import Bits, DiscreteGaussian, Grid
from hubbub.noise.parameters import drawable

__all__ = ["GaussianMechanism", "classic_variance", "discrete_gaussian_delta", "gaussian_delta", "gaussian_sigma"]


def classic_variance(epsilon: Number, delta: Number, sensitivity: Number = 1) -> Fraction:
    """2 ln(1.25/delta) Delta^2 / epsilon^2, rounded up: the variance of Dwork and Roth's theorem.

    Raises ParameterError for epsilon > 1, where the theorem says nothing and the formula is too small.
    """
    e, d = epsilon_of(epsilon), _delta(delta)
    if e > 1:
        raise ParameterError(
            f"epsilon = {e} was asked of the classic Gaussian formula, which is proved for epsilon <= 1 only; "
            "use calibration='zcdp' or 'exact'."
        )
    return digits_up(2 * Fraction(ln(Fraction(5, 4) / d)) * positive(sensitivity, "sensitivity") ** 2 / e**2)


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """delta(epsilon) of normal noise on sensitivity 1 (Balle, Wang 2018): Phi(a) - e^epsilon Phi(b)."""
    from scipy.special import erfcx

    upper, lower = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    root = math.sqrt(2)
    # e^epsilon phi(lower) = phi(upper): e^epsilon Phi(lower) has the factor exp(-upper^2 / 2) and cannot overflow.
    if upper < 0:
        return 0.5 * math.exp(-upper * upper / 2) * float(erfcx(-upper / root) - erfcx(-lower / root))
    return 0.5 * math.erfc(-upper / root) - 0.5 * math.exp(-upper * upper / 2) * float(erfcx(-lower / root))


def gaussian_sigma(epsilon: Number, delta: Number) -> float:
    """The least sigma of normal noise on sensitivity 1 that is (epsilon, delta)-DP, to 14 digits.

    >>> round(gaussian_sigma(1, "1e-6"), 10)
    4.2246788893
    """
    e, d = float(epsilon_of(epsilon)), float(_delta(delta))
    return _least(lambda sigma: gaussian_delta(e, sigma) <= d)


def _delta_above(epsilon: Fraction, variance: Fraction, sensitivity: int) -> float:
    """A bound from above on delta(epsilon) of `discrete_gaussian_delta`, whatever its floats cancel.

    With x the first output whose loss exceeds epsilon, both tails and e^epsilon have a relative error below
    2^-48 (8 + x^2 / 2 variance + epsilon), the tails by the bound of `DiscreteGaussian`.
    """
    law = DiscreteGaussian.from_variance(variance)
    first = math.floor(epsilon * variance / sensitivity - Fraction(sensitivity, 2))
    above, shifted = float(law.tail(first)), float(law.tail(first + sensitivity))
    reach = float(max(abs(first), abs(first + sensitivity)) ** 2 / (2 * variance) + epsilon)
    error = 2.0**-48 * (16 + reach)
    # Floats below 2^-1022 have fewer digits; that much is added outright.
    return max(0.0, above * (1 + error) - _times_exp(shifted, float(epsilon)) * (1 - 2 * error)) + 2.0**-1000


def _times_exp(value: float, epsilon: float) -> float:
    """value * e^epsilon <= 1 from below, in halves so that neither factor overflows; 0 where it cannot be told."""
    half = math.exp(min(epsilon, 1400.0) / 2) if value > 0 else 0.0
    return value * half * half if value >= 2.0**-1000 else 0.0


def discrete_gaussian_delta(epsilon: float, variance: Fraction, sensitivity: int) -> float:
    """delta(epsilon) of discrete Gaussian noise on one integer that neighbours move by exactly `sensitivity`."""
    law = DiscreteGaussian.from_variance(variance)
    middle = epsilon * float(variance) / sensitivity
    # The outputs whose loss exceeds epsilon are the integers x > middle - d/2; under the neighbour they shift by d.
    first = math.floor(middle - sensitivity / 2)
    above, shifted = float(law.tail(first)), float(law.tail(first + sensitivity))
    # A tail too small for floats counts as none, which can only make delta larger.
    return max(0.0, above - (math.exp(epsilon + math.log(shifted)) if shifted > 0 else 0.0))


@dataclass(frozen=True, init=False)
class GaussianMechanism:
    """Exact discrete Gaussian noise on a value, or on each of `cells` values with a joint l2 sensitivity.

    sensitivity: the l2 sensitivity, or squared_sensitivity: its square (the l2 norm of counts is a root of an
    integer). Give exactly one of rho; sigma; epsilon with delta (and `calibration`); within with confidence.

    >>> GaussianMechanism(sensitivity=1, rho="1/8").variance
    Fraction(4, 1)
    """

    squared_steps: int
    variance_steps: Fraction
    cells: int
    grid: Grid | None

    def __init__(
        self,
        *,
        sensitivity: Number | None = None,
        squared_sensitivity: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: Number | None = None,
        calibration: str = "zcdp",
        cells: int = 1,
        grid: Grid | None = None,
    ) -> None:
        way = one_of("the Gaussian mechanism", rho=rho, sigma=sigma, epsilon=epsilon, within=within)
        number = whole_number(cells, "cells")
        squared = _squared(sensitivity, squared_sensitivity, grid, number)
        step = Fraction(1) if grid is None else grid.step
        if way == "rho" and rho is not None:
            variance = _variance_of(epsilon_of(rho, name="rho"), squared)
        elif way == "sigma" and sigma is not None:
            variance = (positive(sigma, "sigma") / step) ** 2
        elif way == "within":
            variance = _variance_within(within, confidence, step, number)
        else:
            variance = _calibrated(calibration, epsilon, delta, squared, number)
        for name, value in {
            "squared_steps": squared,
            "variance_steps": variance,
            "cells": number,
            "grid": grid,
        }.items():
            object.__setattr__(self, name, value)
        drawable(root_up(variance), "sigma of the noise, in steps,")

    @property
    def step(self) -> Fraction:
        """The grid's step; 1 for integers."""
        return Fraction(1) if self.grid is None else self.grid.step

    @property
    def variance(self) -> Fraction:
        """sigma^2 in the unit of the values (the law's parameter)."""
        return self.variance_steps * self.step**2

    @property
    def rho(self) -> Fraction:
        """Delta^2 / 2 sigma^2, exactly."""
        return self.squared_steps / (2 * self.variance_steps)

    @property
    def loss(self) -> ev.Event:
        """The event to charge: the discrete Gaussian where it is one cell with rational sigma, else zCDP."""
        shift, sigma = math.isqrt(self.squared_steps), _root(self.variance_steps)
        if self.cells == 1 and shift**2 == self.squared_steps and sigma is not None:
            return ev.DiscreteGaussian(sigma, sensitivity=shift)
        return ev.ZCDP(self.rho)

    def release(self, values: Any, *, bits: Bits | None = None) -> Any:
        """The noisy value, or array of values: ints without a grid; on a grid a Fraction, or floats."""
        exact = private_integers(values, self.grid, self.cells)
        noisy = add_noise(exact, sensitivity=self.squared_steps, distribution=self.error(), bits=bits)
        return like(values, noisy, self.grid)

    def error(self) -> DiscreteGaussian:
        """The exact law of the error of one cell, in steps."""
        return DiscreteGaussian.from_variance(self.variance_steps)

    def accuracy(self, beta: Number) -> Fraction:
        """A bound on the error of all cells that holds with probability 1 - beta: sigma sqrt(2 ln(2 cells / beta)).

        The discrete Gaussian is sub-Gaussian with parameter sigma (Canonne, Kamath, Steinke 2020, Corollary 17).
        """
        reach = math.sqrt(2 * float(self.variance_steps) * math.log(2 * self.cells / beta_of(beta)))
        return math.ceil(reach - 1e-9) * self.step

    def log_prob(self, output: Any, data: Any) -> float:
        """ln P(release(data) = output)."""
        shift = differences(integers(output, self.grid, self.cells), integers(data, self.grid, self.cells))
        return float(np.sum(self.error().log_pmf(shift)))


def _delta(value: Number | None) -> Fraction:
    if value is None:
        raise ParameterError("epsilon= was given without delta=; Gaussian noise is never pure: give a delta above 0.")
    delta = probability(value, "delta")
    if delta == 0:
        raise ParameterError("delta = 0 was asked of Gaussian noise, which is never pure; use the Laplace mechanism.")
    return delta


def _squared(sensitivity: Number | None, squared: Number | None, grid: Grid | None, cells: int) -> int:
    if (sensitivity is None) == (squared is None):
        raise ParameterError(
            "give exactly one of sensitivity= and squared_sensitivity=: how far one unit can move the values, in l2. "
            "If nothing bounds that, declare bounds for the values and for the rows of a unit first."
        )
    if squared is not None:
        exact = sensitivity_of(squared)
        if grid is None:
            if exact.denominator != 1:
                raise ParameterError(f"squared_sensitivity = {exact} was asked of integers, where it is whole.")
            return exact.numerator
        return grid.sensitivity2(root_up(exact), cells) ** 2
    declared = sensitivity_of(sensitivity)
    if grid is not None:
        return grid.sensitivity2(declared, cells) ** 2
    if declared.denominator != 1:
        raise ParameterError(f"sensitivity = {declared} was asked of integers; give squared_sensitivity= or grid=.")
    return declared.numerator**2


def _variance_of(rho: Fraction, squared: int) -> Fraction:
    return calibrated(spend=Spend(rho=rho), l2_squared=squared).sigma2


def _calibrated(calibration: str, epsilon: Number | None, delta: Number | None, squared: int, cells: int) -> Fraction:
    assert epsilon is not None
    e, d = epsilon_of(epsilon), _delta(delta)

    def exact() -> Fraction:
        shift = math.isqrt(squared)
        if shift**2 != squared or (cells > 1 and squared != 1):
            raise ParameterError(
                "calibration='exact' was asked where several cells may change together; it is for one cell, or for "
                "counts of which one changes by 1. Use calibration='zcdp'."
            )
        return _exact_variance(e, float_down(d), shift)

    ways: dict[str, Callable[[], Fraction]] = {
        "zcdp": lambda: _variance_of(rho_of_epsilon(e, d), squared),
        "classic": lambda: classic_variance(e, d) * squared,
        "exact": exact,
    }
    return chosen(ways, calibration, "calibration")()


def _exact_variance(epsilon: Fraction, delta: float, shift: int) -> Fraction:
    """The least variance at which no shift up to `shift` exceeds delta; the worst is nearly always the largest.

    Deltas are bounded from above. Where epsilon sigma^2 is so large beside Delta that the two tails nearly cancel, that
    costs noise (sigma grows by 3e-4 at epsilon 1e-9 and delta 1e-18, by a twelfth at 1e-12 and 1e-20), never privacy.
    """
    if delta < 2.0**-990:
        raise ParameterError(
            "calibration='exact' was asked of a delta that floats cannot hold; give delta >= 1e-298, or use 'zcdp'."
        )
    shifts = sorted({shift, max(1, shift - 1), max(1, shift // 2), 1})

    def enough(sigma: float) -> bool:
        variance = Fraction(sigma) ** 2
        return all(_delta_above(epsilon, variance, d) <= delta for d in shifts)

    # The profile of a lattice law moves in small jumps with sigma: take the first sigma beyond which it stays below.
    sigma = _least(enough) * (1 + 1e-9)
    return Fraction(sigma) ** 2


def _least(enough: Callable[[float], bool]) -> float:
    """The least sigma at which `enough` holds, to the last bit; it must hold from some sigma on."""
    low, high = 1e-3, 1.0
    while enough(low):
        low, high = low / 2, low
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _variance_within(within: Number | None, confidence: Number | None, step: Fraction, cells: int) -> Fraction:
    """The largest sigma^2 (12 digits) with P(max |Z| <= within) >= confidence."""
    if within is None or confidence is None:
        raise ParameterError("within= was given without confidence=; say how often the error is to be within it.")
    reach = math.floor(positive(within, "within") / step)
    failing = beta_of(1 - Fraction(str(confidence)))
    per_cell = -math.expm1(math.log1p(-failing) / cells)
    low, high = 1e-3, 2.0**52

    def enough(sigma: float) -> bool:
        return 2 * float(DiscreteGaussian(sigma).tail(reach)) <= per_cell

    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return Fraction(low) ** 2


def _root(x: Fraction) -> Fraction | None:
    """The rational square root of x, if it has one."""
    n, d = math.isqrt(x.numerator), math.isqrt(x.denominator)
    return Fraction(n, d) if n * n == x.numerator and d * d == x.denominator else None
