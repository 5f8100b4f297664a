"""Paying for data that can be verified (Ghosh, Roth 2011), and a share of commitment (`docs/theorems.md`, G3).

Each of n people has a bit, which the buyer can verify once it is bought, and a value v: what a unit of epsilon
costs them, so that being used in an epsilon-DP estimate costs v epsilon. The buyer wants the number of ones. Both
mechanisms below buy from the cheapest, count their ones, add half of the number left out (which is then within half
of that number of the truth) and discrete Laplace noise. The bits are protected: changing one moves the count by 1.

`MinCostAuction`: |error| <= alpha n with probability 2/3 at least, at the least cost of an envy-free sale. It
leaves out k people, buys from the n - k cheapest at 1/k-DP and pays each v_(n-k+1)/k, the first price not bought.
With noise of scale k, P(|Z| > m) = 2 q^(m+1)/(1 + q), q = e^(-1/k), and m = floor(alpha n - k/2) is what the noise
may use: k is the largest number for which this is 1/3 at most. (The paper's k = floor(alpha n/(1/2 + ln 3)) is for
continuous noise.)

`FairQuery`: at most B is paid in all. Buys from the k cheapest, k the largest number below n with v_k/(n - k) <=
B/k, at 1/(n - k)-DP, and pays each min(B/k, v_(k+1)/(n - k)).

In both the price does not depend on the own bid of who is bought, and is no less than the own cost: bidding the true
value is dominant, and nobody loses (enumerated in the tests; the constants are derived, not copied).

**What is not protected.** Who is bought, and the payments, depend on the values. Where values tell of bits, so do
they: no individually rational mechanism that protects values as well as bits, whatever these are, learns anything
(Ghosh, Roth 2011; with unbounded values every finite payment leaves somebody out).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.accounting import Number, events as ev
from hubbub.accounting.amounts import amount
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.mechanisms.calibrate import whole_number
from hubbub.noise import Bits
from hubbub.noise.parameters import exact

__all__ = ["FairQuery", "MinCostAuction", "Sale", "commitment_share"]


@dataclass(frozen=True)
class Sale:
    """What was bought.

    estimate: of the number of ones. payments: to each person, 0 where the bit was not bought. bought: who. epsilon:
    of each one bought. scale: of the noise.
    """

    estimate: Fraction
    payments: tuple[Fraction, ...]
    bought: frozenset[int]
    epsilon: Fraction
    scale: int

    @property
    def paid(self) -> Fraction:
        """The sum of the payments."""
        return sum(self.payments, start=Fraction(0))

    @property
    def loss(self) -> ev.Event:
        """Of each person's bit (replace neighbours); a buyer's ledger charges the largest, which is this."""
        return ev.PureDP(self.epsilon)


def _values(values: Any, bits: Any) -> tuple[list[Fraction], list[int]]:
    costs, ones = [_cost(v) for v in values], [int(b) for b in bits]
    if len(costs) != len(ones) or len(costs) < 2 or not set(ones) <= {0, 1}:
        raise ParameterError(f"{len(costs)} values and {len(ones)} bits; give a value and a bit of each of 2 or more.")
    return costs, ones


def _cost(value: Any) -> Fraction:
    price = amount(value, "value") if isinstance(value, str) else exact(value, "value")
    if price < 0:
        raise ParameterError("a value is below 0; what privacy costs somebody is 0 or more.")
    return price


def _cheapest(costs: Sequence[Fraction]) -> list[int]:
    """People from the cheapest on; among equals by their place."""
    return sorted(range(len(costs)), key=lambda i: (costs[i], i))


def _sold(ones: Sequence[int], buyers: Sequence[int], price: Fraction, left: int, noise: Bits | None) -> Sale:
    count = sum(ones[i] for i in buyers)
    noisy = LaplaceMechanism(sensitivity=1, scale=left).release(count, bits=noise)
    chosen = frozenset(buyers)
    payments = tuple(price if i in chosen else Fraction(0) for i in range(len(ones)))
    epsilon = Fraction(1, left) if buyers else Fraction(0)
    return Sale(noisy + Fraction(left, 2), payments, chosen, epsilon, left)


@dataclass(frozen=True, init=False)
class MinCostAuction:
    """|error| <= alpha n with probability 2/3, at the least cost. alpha in (0, 1)."""

    alpha: Fraction

    def __init__(self, *, alpha: Number) -> None:
        share = amount(alpha, "alpha")
        if not 0 < share < 1:
            raise ParameterError(f"alpha = {alpha} was asked; give a share between 0 and 1.")
        object.__setattr__(self, "alpha", share)

    def left_out(self, n: int) -> int:
        """k: how many are not bought, the scale of the noise.

        >>> MinCostAuction(alpha="0.05").left_out(10_000)
        312
        """
        number = whole_number(n, "n")
        # Beyond 2 alpha n the bias alone is too large.
        for k in range(min(number - 1, math.floor(2 * self.alpha * number)), 0, -1):
            if self._fails(number, k) <= 1 / 3:
                return k
        raise ParameterError(f"alpha = {self.alpha} of {number} people is too little for any noise; ask for less.")

    def _fails(self, n: int, k: int) -> float:
        """P(|Z| > m) for noise of scale k."""
        m = math.floor(self.alpha * n - Fraction(k, 2))
        return 1.0 if m < 0 else 2 * math.exp(-(m + 1) / k) / (1 + math.exp(-1 / k))

    def success(self, n: int) -> float:
        """The exact chance that the noise leaves the error within alpha n, whatever the bits are."""
        return 1 - self._fails(n, self.left_out(n))

    def release(self, values: Any, bits: Any, *, noise: Bits | None = None) -> Sale:
        """Buys. values: what a unit of epsilon costs each, bits: 0 or 1 of each; noise: a source of bits for tests."""
        costs, ones = _values(values, bits)
        k, order = self.left_out(len(ones)), _cheapest(costs)
        return _sold(ones, order[:-k], costs[order[-k]] / k, k, noise)


@dataclass(frozen=True, init=False)
class FairQuery:
    """As exact an estimate as `budget` buys."""

    budget: Fraction

    def __init__(self, *, budget: Number) -> None:
        money = amount(budget, "budget")
        if money <= 0:
            raise ParameterError(f"budget = {budget} was asked; give an amount above 0.")
        object.__setattr__(self, "budget", money)

    def release(self, values: Any, bits: Any, *, noise: Bits | None = None) -> Sale:
        """Buys from as many as the budget reaches, at most n - 1; from nobody where it reaches none."""
        costs, ones = _values(values, bits)
        n, order = len(ones), _cheapest(costs)
        k = max((j for j in range(1, n) if costs[order[j - 1]] * j <= self.budget * (n - j)), default=0)
        if k == 0:
            return _sold(ones, (), Fraction(0), n, noise)
        price = min(self.budget / k, costs[order[k]] / (n - k))
        return _sold(ones, order[:k], price, n - k, noise)


def commitment_share(gain: float, gap: float) -> float:
    """gain/(gain + gap): how often to commit, so that the truth is best for people who care about the outcome.

    With this chance the outcome is chosen by a rule under which every lie loses `gap` at least; else by a private
    mechanism under which it gains at most `gain`. With any larger share every lie loses (Nissim, Smorodinsky,
    Tennenholtz 2012).

    >>> commitment_share(0.05, 0.2)
    0.2
    """
    if not (0 <= gain <= 1 and 0 < gap <= 1):
        raise ParameterError(f"gain = {gain}, gap = {gap}: give a gain in [0, 1] and a gap in (0, 1].")
    return gain / (gain + gap)
