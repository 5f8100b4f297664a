"""Calibrated noise: from a sensitivity and an amount to the law that is drawn and the event that is charged.

All noise on numbers is calibrated here: that of SQL (`hubbub.tables.price`), of thresholds for groups, of marginals and
of synthetic tables, of the mechanisms for one's own numbers. What the tests of this room prove is therefore what runs.

For f from tables to Z^d, and an amount that is spent on the whole vector:

- Pure epsilon, ||f(D) - f(D')||_1 <= s: discrete Laplace noise of scale b = s / epsilon on every entry. For each output
  y the ratio of probabilities is exp((||y - f(D')||_1 - ||y - f(D)||_1) / b) <= exp(s / b), by the triangle inequality
  (Ghosh, Roughgarden, Sundararajan 2009; Dwork, McSherry, Nissim, Smith 2006, Theorem 3.6). Charged: the law itself.
- rho, ||f(D) - f(D')||_2^2 <= S: discrete Gaussian noise of parameter sigma^2 = S / (2 rho). The Renyi divergence of
  order a between N_Z(0, sigma^2) and N_Z(x, sigma^2), x a whole number, is at most a x^2 / (2 sigma^2), and those of
  independent entries add up: a S / (2 sigma^2) = a rho (Canonne, Kamath, Steinke 2020, Theorem 14). Charged: rho.

Scales are rationals and nothing is rounded. A caller whose sampler takes rounder ones says how (`rounded`): a larger
scale is allowed, is what is drawn, and the event is computed from it; a smaller one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.errors import InternalError
from hubbub.mechanisms.additive import add_noise
from hubbub.mechanisms.recording import Norm, through
from hubbub.noise import Bits, DiscreteGaussian, DiscreteLaplace

__all__ = ["Calibrated", "Noise", "Spend", "calibrated"]

Noise: TypeAlias = DiscreteLaplace | DiscreteGaussian


@dataclass(frozen=True)
class Spend:
    """What a statement may cost: a pure `epsilon` or a zCDP `rho`, and `delta` for groups found privately.

    >>> Spend(epsilon=Fraction(1, 2)).pure
    True
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        amounts = [a for a in (self.epsilon, self.rho) if a is not None]
        if len(amounts) != 1 or amounts[0] <= 0 or not 0 <= self.delta < 1:
            raise InternalError("a spend is one positive amount, epsilon or rho, and a delta in [0, 1)")

    @property
    def pure(self) -> bool:
        """Whether noise is Laplace."""
        return self.epsilon is not None

    @property
    def amount(self) -> Fraction:
        """The epsilon, or the rho."""
        amount = self.epsilon if self.epsilon is not None else self.rho
        assert amount is not None
        return amount

    def part(self, share: Fraction) -> Spend:
        """A share of the amount, without the delta.

        >>> Spend(epsilon=Fraction(1)).part(Fraction(1, 4)).amount
        Fraction(1, 4)
        """
        return self.of_amount(share * self.amount)

    def of_amount(self, amount: Fraction) -> Spend:
        """Another amount in the same terms, without the delta."""
        return Spend(epsilon=amount) if self.pure else Spend(rho=amount)


@dataclass(frozen=True)
class Calibrated:
    """The law of the noise on each entry of a vector, and the event to charge for the whole vector.

    sensitivity: of the vector, in l1 for Laplace noise, squared in l2 for Gaussian noise.
    """

    law: Noise
    event: ev.Event
    sensitivity: int

    def release(self, values: Sequence[int], *, bits: Bits | None = None) -> tuple[int, ...]:
        """The values, each with a draw of its own. bits: a bit source for tests."""
        return add_noise(values, sensitivity=self.sensitivity, distribution=self.law, bits=bits)

    def release_array(self, values: NDArray[np.int64], *, bits: Bits | None = None) -> NDArray[np.int64]:
        """The same of an array of integers, whose sums with the noise fit into 64 bits; of the same shape."""
        flat = values.ravel()
        norm: Norm = "l1" if isinstance(self.law, DiscreteLaplace) else "l2_squared"
        noisy = through(
            flat,
            sensitivity=self.sensitivity,
            norm=norm,
            law=self.law,
            draw=lambda: flat + self.law.sample(flat.size, bits=bits),
        )
        return np.array(noisy).reshape(values.shape)

    @property
    def sigma2(self) -> Fraction:
        """The parameter of Gaussian noise. Raises InternalError for Laplace noise."""
        if isinstance(self.law, DiscreteLaplace):
            raise InternalError("Laplace noise has a scale, not a sigma")
        return self.law.sigma2

    @property
    def scale(self) -> Fraction:
        """The scale of Laplace noise. Raises InternalError for Gaussian noise."""
        if isinstance(self.law, DiscreteGaussian):
            raise InternalError("Gaussian noise has a sigma, not a scale")
        return self.law.scale


def calibrated(
    *,
    spend: Spend,
    l1: int | None = None,
    l2_squared: int | None = None,
    rounded: Callable[[Fraction], Fraction] | None = None,
) -> Calibrated:
    """The noise that costs `spend` (its delta aside) on integers of a sensitivity, as the module's head proves.

    l1: needed for a pure spend. l2_squared: the square of the l2 sensitivity, needed for a rho. rounded: what the scale
    (of Laplace noise) or the variance (of Gaussian noise) is rounded up to.

    Raises InternalError where the sensitivity that is needed is missing or below 1, and for a rounding down.

    >>> calibrated(spend=Spend(epsilon=Fraction(1, 2)), l1=3).law
    DiscreteLaplace(scale=Fraction(6, 1))
    >>> calibrated(spend=Spend(rho=Fraction(1, 2)), l2_squared=9).event
    ZCDP(rho=Fraction(1, 2))
    """
    needed = l1 if spend.pure else l2_squared
    if type(needed) is not int or needed < 1:
        raise InternalError(f"noise was asked for a sensitivity of {needed!r}; it is a whole number of at least 1")
    least = Fraction(needed) / (spend.amount if spend.pure else 2 * spend.amount)
    scale = least if rounded is None else rounded(least)
    if scale < least:
        raise InternalError("a scale was rounded down: that would be less noise than is charged for")
    if spend.pure:
        return Calibrated(DiscreteLaplace(scale), ev.DiscreteLaplace(scale, sensitivity=needed), needed)
    return Calibrated(DiscreteGaussian.from_variance(scale), ev.ZCDP(needed / (2 * scale)), needed)
