"""Filters: what may still be charged, when every question may depend on all answers before it.

A filter holds a ceiling and what was spent, in exact rationals, and admits a charge only if the sum stays
within. That is sound when the analyst, and so the data, chooses each next cost after seeing the answers:
- pure: sum of epsilons (Rogers, Roth, Ullman, Vadhan 2016);
- approximate, by basic composition: sum of epsilons and sum of deltas (the same, Theorem 3.6);
- approximate zCDP: sum of rhos and sum of deltas (Whitehouse, Ramdas, Rogers, Wu 2023);
- Gaussian DP: sum of mu^2 (Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2022), by way of its rho = mu^2
  / 2.
Adding up loss *distributions* of adaptively chosen parameters is not sound, and is not offered.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.accounting.amounts import Number, amount, probability
from hubbub.accounting.events import Composed, Event, Gaussian, GaussianDP, Group, Repeated
from hubbub.accounting.exact import Cost, cost
from hubbub.accounting.rounding import digits_down
from hubbub.accounting.zcdp import epsilon_of_rho, rho_of_epsilon
from hubbub.errors import BudgetError, ParameterError

__all__ = ["BasicFilter", "Filter", "GaussianFilter", "PureFilter", "ZCDPFilter"]

_NOTHING = Cost(Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Filter(ABC):
    """The base of filters: a value; `charge` gives the next one."""

    spent: Cost = _NOTHING

    def admits(self, charge: Event | Cost) -> bool:
        """Whether the charge fits into what is left. Decided in exact rationals."""
        return self._within(self.spent + self._cost(charge))

    def holds(self, total: Cost) -> bool:
        """Whether a whole sum of costs, what was spent included, lies within the ceiling."""
        return self._within(total)

    def charge(self, charge: Event | Cost) -> Filter:
        """The filter after the charge. Raises BudgetError if it does not fit."""
        if not self.admits(charge):
            asked, left = self._shown(self._cost(charge)), self._left()
            raise BudgetError(
                f"the charge does not fit: asked {asked}, left {left}. Ask with a smaller epsilon, or ask for less.",
                asked=asked,
                left=left,
            )
        return replace(self, spent=self.spent + self._cost(charge))

    def how_many(self, charge: Event | Cost) -> int | None:
        """How many such charges fit, one after another; None if without end (a charge that costs nothing)."""
        one = self._cost(charge)
        if one.rho == 0 and one.delta == 0 and one.epsilon == 0:
            return None
        if not self._within(self.spent + one):
            return 0
        # The quotients of what is left say it at once; two sums prove it, else it is searched for.
        guess = self._guess(one)
        fits = guess > 1 and self._within(self.spent + one.times(guess))
        if fits and not self._within(self.spent + one.times(guess + 1)):
            return guess
        low, high = 1, 2
        while self._within(self.spent + one.times(high)):
            low, high = high, 2 * high
            if high > 2**200:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._within(self.spent + one.times(middle)) else (low, middle)
        return low

    def _cost(self, charge: Event | Cost) -> Cost:
        return charge if isinstance(charge, Cost) else cost(charge)

    def _guess(self, one: Cost) -> int:
        """How many such costs fit, as far as a quotient can say; 0 if it cannot."""
        return 0

    @abstractmethod
    def _within(self, total: Cost) -> bool:
        """Whether a total cost is within the ceiling."""

    @abstractmethod
    def _shown(self, charge: Cost) -> str:
        """A charge in the filter's own unit, for messages."""

    @abstractmethod
    def _left(self) -> str:
        """What is left in the filter's own unit, for messages."""


def _unspent(epsilon: Fraction, spent: Cost) -> Fraction:
    """What a sum of epsilons leaves of a ceiling: nothing, if what was spent has no finite epsilon."""
    return Fraction(0) if spent.epsilon is None else epsilon - spent.epsilon


@dataclass(frozen=True)
class PureFilter(Filter):
    """Epsilons add up, to at most `epsilon`.

    >>> f = PureFilter.of(1)
    >>> for _ in range(10):
    ...     f = f.charge(Cost(Fraction(1, 10), Fraction(1, 200)))
    >>> f.left, f.admits(Cost(Fraction(1, 10**30), Fraction(0)))
    (Fraction(0, 1), False)
    """

    epsilon: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Number) -> PureFilter:
        """An empty filter. Raises ParameterError for a negative or non-finite epsilon."""
        return cls(epsilon=amount(epsilon, "epsilon"))

    @property
    def left(self) -> Fraction:
        """The largest next charge, as a pure epsilon."""
        return _unspent(self.epsilon, self.spent)

    def _guess(self, one: Cost) -> int:
        return _quotient(self.left, one.epsilon)

    def _within(self, total: Cost) -> bool:
        return total.epsilon is not None and total.delta == 0 and total.epsilon <= self.epsilon

    def _shown(self, charge: Cost) -> str:
        return "no finite pure epsilon" if charge.epsilon is None else f"epsilon {_text(charge.epsilon)}"

    def _left(self) -> str:
        return f"epsilon {_text(self.left)}"


@dataclass(frozen=True)
class BasicFilter(Filter):
    """Epsilons add up to at most `epsilon`, and deltas to at most `delta`: for blocks that are (epsilon, delta)-DP.

    >>> f = BasicFilter(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    >>> f.admits(Cost(Fraction(1), Fraction(1, 2), Fraction(1, 10**6)))
    True
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """The largest next charge: an epsilon and a delta."""
        return _unspent(self.epsilon, self.spent), self.delta - self.spent.delta

    def _within(self, total: Cost) -> bool:
        return total.epsilon is not None and total.epsilon <= self.epsilon and total.delta <= self.delta

    def _shown(self, charge: Cost) -> str:
        epsilon = "no finite epsilon" if charge.epsilon is None else f"epsilon {_text(charge.epsilon)}"
        return f"{epsilon} and delta {_text(charge.delta)}"

    def _left(self) -> str:
        epsilon, delta = self.left
        return f"epsilon {_text(epsilon)} and delta {_text(delta)}"


@dataclass(frozen=True)
class ZCDPFilter(Filter):
    """Rhos add up to at most `rho` and deltas to at most `delta_threshold`; or all is pure and within
    `epsilon`.

    The whole is (epsilon, delta_conversion + delta_threshold)-DP. The either-or form is sound: transcripts
    that end within the pure ceiling, and those that end within rho, are separate events, and on each the
    filter is the plain one stopped early.

    >>> f = ZCDPFilter.of(3, "1e-6")
    >>> f.how_many(Cost(None, f.rho / 10))
    10
    """

    rho: Fraction = Fraction(0)
    delta_threshold: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta_conversion: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Number, delta: Number, *, delta_threshold: Number | None = None) -> ZCDPFilter:
        """The filter of an (epsilon, delta) budget; `delta_threshold`, half of delta unless said, is for
        thresholds.

        Raises ParameterError for delta outside (0, 1), or a threshold share that leaves nothing for the
        conversion.
        """
        whole, total = amount(epsilon, "epsilon"), probability(delta, "delta")
        share = total / 2 if delta_threshold is None else probability(delta_threshold, "delta_threshold")
        if share >= total:
            raise ParameterError(
                f"delta_threshold = {float(share):g} was asked of delta = {float(total):g}; it must "
                "be smaller, because "
                "the rest pays for the conversion from rho. Ask for half of delta."
            )
        conversion = total - share
        return cls(
            rho=rho_of_epsilon(whole, conversion),
            delta_threshold=share,
            epsilon=whole,
            delta_conversion=conversion,
        )

    @property
    def left(self) -> Cost:
        """What one more charge may cost: rho and delta, and the pure epsilon while all was pure."""
        pure = None if self.spent.epsilon is None or self.spent.delta else self.epsilon - self.spent.epsilon
        zero = Fraction(0)
        return Cost(
            None if pure is None or pure < 0 else pure,
            max(zero, self.rho - self.spent.rho),
            max(zero, self.delta_threshold - self.spent.delta),
        )

    @property
    def largest(self) -> Fraction:
        """The largest epsilon at which one more question fits, by `rho_of_epsilon` at the budget's own
        delta.
        """
        left = self.left
        by_rho = epsilon_of_rho(left.rho, self.delta_conversion) if left.rho else Fraction(0)
        # Two roundings of 15 digits lie between; step down until the question's own charge fits.
        while by_rho and rho_of_epsilon(by_rho, self.delta_conversion) > left.rho:
            by_rho = digits_down(by_rho * (1 - Fraction(1, 10**14)), 15)
        return max(by_rho, left.epsilon or Fraction(0))

    def question(self, epsilon: Number) -> Cost:
        """What a Gaussian question asked at `epsilon` costs: the rho of one (epsilon, delta_conversion)
        release.
        """
        return Cost(None, rho_of_epsilon(epsilon, self.delta_conversion))

    def _guess(self, one: Cost) -> int:
        left = self.left
        pure = _quotient(left.epsilon, one.epsilon) if one.delta == 0 else 0
        both = [_quotient(*pair) for pair in ((left.rho, one.rho), (left.delta, one.delta)) if pair[1]]
        return max(pure, min(both, default=0))

    def _within(self, total: Cost) -> bool:
        if total.epsilon is not None and total.delta == 0 and total.epsilon <= self.epsilon:
            return True
        return total.rho <= self.rho and total.delta <= self.delta_threshold

    def _shown(self, charge: Cost) -> str:
        return f"rho {_text(charge.rho)} and delta {_text(charge.delta)}"

    def _left(self) -> str:
        return self._shown(self.left)


@dataclass(frozen=True)
class GaussianFilter(Filter):
    """Squares of mu add up, to at most mu^2; only Gaussian events and what is built of them are admitted.

    >>> GaussianFilter.of(1).how_many(GaussianDP("1/2"))
    4
    """

    mu: Fraction = Fraction(0)

    @classmethod
    def of(cls, mu: Number) -> GaussianFilter:
        """An empty filter. Raises ParameterError for a negative or non-finite mu."""
        return cls(mu=amount(mu, "mu"))

    @property
    def left(self) -> Fraction:
        """The square of the largest mu that still fits."""
        return self.mu**2 - 2 * self.spent.rho

    def _cost(self, charge: Event | Cost) -> Cost:
        if isinstance(charge, Cost):
            raise ParameterError("a GaussianFilter charges events. Give GaussianDP(mu) or Gaussian(sigma), not a Cost.")
        return cost(_gaussian_only(charge))

    def _within(self, total: Cost) -> bool:
        return 2 * total.rho <= self.mu**2

    def _shown(self, charge: Cost) -> str:
        return f"mu {math.sqrt(2 * charge.rho):.6g}"

    def _left(self) -> str:
        return f"mu {math.sqrt(self.left):.6g}"


def _quotient(left: Fraction | None, each: Fraction | None) -> int:
    return left // each if left is not None and each else 0


def _gaussian_only(event: Event) -> Event:
    inner = event.children if isinstance(event, Composed | Repeated | Group) else ()
    if not isinstance(event, Gaussian | GaussianDP) and not inner:
        raise ParameterError(
            f"{type(event).__name__} has no exact mu, so a GaussianFilter cannot add it. Use a ZCDPFilter."
        )
    for child in inner:
        _gaussian_only(child)
    return event


def _text(x: Fraction) -> str:
    """A rational as a short decimal; exact where few digits suffice."""
    if x == 0:
        return "0"
    short = f"{float(x):.12g}"
    return short if Fraction(short) == x else f"{float(x):.6g}"
