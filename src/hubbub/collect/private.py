"""Differential privacy on a sum that several aggregators hold in shares.

*Neighbours*: replace; one report says something else. The number of reports is public. A client who may send k reports
pays `Group(event, k)`.

**Statement.** Every aggregator adds noise of its *own*, in full, to its aggregate share: discrete Laplace of scale
D1/epsilon on every number, or discrete Gaussian of variance D2^2/(2 rho), D1 and D2 the l1 and l2 sensitivity of the
sum. Then what any m - 1 of the m aggregators and the collector learn about one report of an honest client is at most
the event, if the one aggregator left is honest; up to what breaks the secret sharing's expansion, which is hard to
compute for an adversary that cannot break TurboSHAKE128.

*Proof.* Let aggregator j be honest and S the sum of the counted reports. The others know all shares but j's, their own
noise, and j's noisy share s_j + N_j modulo p. Shares of one report other than j's are uniform whatever it says, and
verification shows validity alone (Boneh et al. 2019, Theorem 4.3). Since s_j = S - sum of the others' shares, j's share
is a function of S + N_j and of what is known already: adding known numbers and reducing modulo p are post-processing.
S + N_j is the Laplace (Gaussian) mechanism on integers, whatever the colluders' noise is, none included. Reports of
colluding clients move S by a fixed amount.

*Error.* With all m honest the total has the noise of all m: the m-fold convolution, discrete Laplace noise of shape m
(`noise.Polya`), or the sum of m discrete Gaussians; that is `error`, and intervals are taken from it. The collector
reads integers modulo p as those between -p/2 and p/2; the sum of n reports and its noise have to lie between these,
which `checked_count` sees to but for a probability of 2^-60.

Shares of noise that sum to one draw are not enough here: with a share of shape 1/m alone, the loss of what m - 1
colluders see is several times epsilon; they are for `secure_sum`, where more are sure to be honest than one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import ZCDP, DiscreteLaplace, Event, Group, Number
from hubbub.accounting.amounts import amount
from hubbub.collect.circuits import Circuit, whole
from hubbub.errors import ParameterError, PolicyError
from hubbub.noise import Bits, DiscreteGaussian, Polya, gaussian, laplace

__all__ = ["GaussianSum", "PrivateSum", "PrivateTotal"]

_WIDE = 50


@dataclass(frozen=True)
class GaussianSum:
    """The law of `times` independent discrete Gaussian draws of one variance, added up.

    From variance 2500 on it is the discrete Gaussian of `times` the variance, up to 10 times exp(-pi^2 2500) (Kairouz,
    Liu, Steinke 2021, on sums of discrete Gaussians); below that, the convolution itself, right to 1e-13.
    """

    sigma2: Fraction
    times: int

    @property
    def variance(self) -> float:
        """times the variance of one draw."""
        return self.times * DiscreteGaussian.from_variance(self.sigma2).variance

    def half_width(self, level: Number) -> int:
        """The smallest t >= 0 with P(|X| <= t) >= level."""
        if self.sigma2 >= _WIDE**2 or self.times == 1:
            return DiscreteGaussian.from_variance(self.times * self.sigma2).half_width(Fraction(level))
        masses = self.masses()
        middle = masses.size // 2
        inside = masses[middle] + 2 * np.cumsum(np.append(0.0, masses[middle + 1 :]))
        return int(np.searchsorted(inside, float(Fraction(level)), "left"))

    def masses(self) -> NDArray[np.float64]:
        """P(X = x) for x = -t .. t, with t beyond which there is less than 1e-18."""
        return _gaussian_masses(self.sigma2, self.times)


@lru_cache(maxsize=16)
def _gaussian_masses(sigma2: Fraction, times: int) -> NDArray[np.float64]:
    reach = math.ceil(10 * math.sqrt(float(sigma2))) + 3
    one = DiscreteGaussian.from_variance(sigma2).pmf(np.arange(-reach, reach + 1))
    total = np.ones(1)
    for _ in range(times):
        total = np.convolve(total, one)
    return total


@dataclass(frozen=True)
class PrivateTotal:
    """What the collector publishes: unbiased totals of `reports` reports, and their error's law."""

    values: tuple[int, ...]
    reports: int
    law: Polya | GaussianSum

    def half_width(self, level: Number = 0.95) -> int:
        """Each true total lies within so much of its value with probability `level` or more."""
        return self.law.half_width(Fraction(level))

    def intervals(self, level: Number = 0.95) -> list[tuple[int, int]]:
        """Lower and upper end for each total."""
        width = self.half_width(level)
        return [(value - width, value + width) for value in self.values]


@dataclass(frozen=True, init=False)
class PrivateSum:
    """The noise of each aggregator, what one report costs, and the error of the total.

    Give exactly one of `epsilon` (discrete Laplace noise) and `rho` (discrete Gaussian noise, rho-zCDP).

    >>> from hubbub.collect import Histogram
    >>> plan = PrivateSum(Histogram(length=10, chunk_length=4), epsilon=1)
    >>> plan.loss, plan.error.half_width(0.95)
    (DiscreteLaplace(scale=Fraction(2, 1), sensitivity=2), 8)
    """

    circuit: Circuit
    epsilon: Fraction | None
    rho: Fraction | None
    aggregators: int

    def __init__(
        self, circuit: Circuit, *, epsilon: Number | None = None, rho: Number | None = None, aggregators: int = 2
    ) -> None:
        if (epsilon is None) == (rho is None):
            raise ParameterError("give exactly one of epsilon and rho.")
        object.__setattr__(self, "circuit", circuit)
        object.__setattr__(self, "epsilon", None if epsilon is None else amount(epsilon, "epsilon"))
        object.__setattr__(self, "rho", None if rho is None else amount(rho, "rho"))
        object.__setattr__(self, "aggregators", whole(aggregators, "aggregators", 2, 255))
        if not (self.epsilon or self.rho):
            raise ParameterError("epsilon or rho is 0: that needs infinite noise. Give one above 0.")

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise: D1/epsilon."""
        if self.epsilon is None:
            raise ParameterError("this plan has Gaussian noise; ask for its variance.")
        return self.circuit.change.l1 / self.epsilon

    @property
    def variance(self) -> Fraction:
        """Of the discrete Gaussian noise, its parameter: D2^2/(2 rho)."""
        if self.rho is None:
            raise ParameterError("this plan has Laplace noise; ask for its scale.")
        return self.circuit.change.l2_squared / (2 * self.rho)

    @property
    def loss(self) -> Event:
        """What one report costs its client, against all aggregators but one and the collector."""
        if self.rho is not None:
            return ZCDP(self.rho)
        return DiscreteLaplace(self.scale, self.circuit.change.l1)

    def loss_of(self, reports: int) -> Event:
        """What `reports` reports of one client cost."""
        return self.loss if reports == 1 else Group(self.loss, reports)

    @property
    def error(self) -> Polya | GaussianSum:
        """The law of the error of each total: the noise of all aggregators."""
        if self.rho is not None:
            return GaussianSum(self.variance, self.aggregators)
        return Polya(self.scale, self.aggregators)

    def noise(self, *, bits: Bits | None = None) -> list[int]:
        """One aggregator's noise, a number for each output; drawn once for a batch."""
        n = self.circuit.outputs
        if self.rho is not None:
            return [int(v) for v in gaussian(variance=self.variance, size=n, bits=bits)]
        return [int(v) for v in laplace(self.scale, n, bits=bits)]

    def noisy(self, share: Sequence[int], *, bits: Bits | None = None) -> list[int]:
        """An aggregate share with this aggregator's noise, modulo p: what may leave it."""
        p = self.circuit.field.modulus
        return [(v + e) % p for v, e in zip(share, self.noise(bits=bits), strict=True)]

    def checked_count(self, reports: int) -> None:
        """See that the sum of so many reports, and its noise, fit the field.

        Raises:
            PolicyError: they do not.
        """
        largest = self.circuit.parameters.get("max_measurement", 1) * reports
        width = 64 * self.aggregators * (self.scale if self.epsilon else Fraction(math.isqrt(int(self.variance)) + 1))
        if 2 * (largest + width) >= self.circuit.field.modulus:
            raise PolicyError(
                f"the sum of {reports} reports of {self.circuit.name} and its noise do not fit the field; take smaller "
                "batches, a smaller largest measurement, or more epsilon."
            )

    def total(self, shares: Sequence[Sequence[int]], reports: int) -> PrivateTotal:
        """The total of all aggregators' noisy shares: integers between -p/2 and p/2."""
        if len(shares) != self.aggregators:
            raise ParameterError(f"{len(shares)} shares were given; there are {self.aggregators} aggregators.")
        self.checked_count(reports)
        p = self.circuit.field.modulus
        sums: list[Any] = [sum(column) % p for column in zip(*shares, strict=True)]
        return PrivateTotal(tuple(v - p if v > p // 2 else v for v in sums), reports, self.error)
