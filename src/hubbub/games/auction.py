"""The digital-goods auction (McSherry, Talwar 2007): one price for unlimited copies, by the exponential mechanism.

Buyer i would pay up to v_i in [0, V]. A price p earns p * #{i : v_i >= p} (some texts print v_i <= p, which is
wrong). The optimum is fragile: for 1, 1, 3.01 the price 1 earns 3, 1.01 earns 1.01, 3.01 earns 3.01. Let R = {a,
2a, ..., V} with a = alpha V. One buyer moves the revenue of p by at most p <= V, and a new buyer only upwards, so
under add/remove the scores are monotone and r = epsilon / V; under replace r = epsilon / 2V. With OPT over all
prices and
|R| = 1/alpha,

    E revenue >= OPT - alpha n V - ln(1/alpha) / r,      P(revenue <= OPT - alpha n V - (ln(1/alpha) + t) / r) <=
    e^-t.

For V = 1 under replace this is OPT - alpha n - 2 ln(1/alpha)/epsilon: a bound in expectation. Truthfulness: if the
choice is e-DP when one bid is replaced, then lying multiplies a buyer's expected gain (v - p)_+ by at most e^e.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev
from hubbub.accounting.amounts import scale
from hubbub.accounting.rounding import float_up
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms import ExponentialMechanism
from hubbub.mechanisms.calibrate import whole_number
from hubbub.noise import Bits
from hubbub.noise.parameters import exact
from hubbub.queries import Neighbours

__all__ = ["DigitalGoodsAuction", "revenue"]

_ENDLESS = Fraction(2**2000)


def revenue(valuations: Any, price: Number) -> Fraction:
    """price * #{i : v_i >= price}, exactly.

    >>> [str(revenue(["1", "1", "3.01"], p)) for p in ("1", "1.01", "3.01")]
    ['3', '101/100', '301/100']
    """
    asked = _price(price, "price")
    return asked * sum(_bid(v) >= asked for v in valuations)


@dataclass(frozen=True, init=False)
class DigitalGoodsAuction:
    """A price from the grid alpha V, 2 alpha V, ..., V; `steps` = 1/alpha of them.

    highest: V, which no valuation counts beyond. neighbours: "add_remove" (a buyer joins) or "replace" (a bid
    changes).
    """

    steps: int
    highest: Fraction
    mechanism: ExponentialMechanism
    neighbours: Neighbours

    def __init__(self, *, steps: int, highest: Number, epsilon: Number, neighbours: Neighbours = "add_remove") -> None:
        top, number = _price(highest, "highest"), whole_number(steps, "steps")
        if top <= 0:
            raise ParameterError(f"highest = {highest} was asked; give a price above 0.")
        if neighbours not in ("add_remove", "replace"):
            raise ParameterError(
                f"neighbours = {what_was_given(neighbours)} was asked; it is 'add_remove' or 'replace'."
            )
        # Scores are j * count: revenue in units of alpha V, which one buyer moves by at most `steps`.
        chosen = ExponentialMechanism(epsilon=epsilon, sensitivity=number, monotone=neighbours == "add_remove")
        for name, value in {
            "steps": number,
            "highest": top,
            "mechanism": chosen,
            "neighbours": neighbours,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def prices(self) -> tuple[Fraction, ...]:
        """The grid of prices."""
        return tuple(self.highest * j / self.steps for j in range(1, self.steps + 1))

    @property
    def loss(self) -> ev.Event:
        """The event to charge."""
        return self.mechanism.loss

    def scores(self, valuations: Any) -> NDArray[np.int64]:
        """Revenues of all prices in units of alpha V, int64 of shape (steps,).

        Bids are compared exactly, texts and Fractions too. One that is not a number (NaN, a word) buys nothing.
        """
        given = valuations if isinstance(valuations, np.ndarray) else list(valuations)
        if isinstance(given, list) and all(type(v) is float for v in given):
            given = np.array(given, dtype=np.float64)
        if isinstance(given, np.ndarray) and given.dtype.kind == "f" and given.dtype.itemsize <= 8:
            bids = np.sort(given.ravel().astype(np.float64))
            bids = bids[~np.isnan(bids)]
            # v >= p for a rational p exactly when v >= the smallest float at or above p.
            bars = np.array([float_up(p) for p in self.prices])
            buyers = bids.size - np.searchsorted(bids, bars, "left")
        else:
            sold = Counter(min(self.steps, math.floor(_bid(v) * self.steps / self.highest)) for v in given)
            buyers = np.cumsum([sold[j] for j in range(self.steps, 0, -1)])[::-1]
        return np.asarray(np.arange(1, self.steps + 1) * buyers, dtype=np.int64)

    def release(self, valuations: Any, *, bits: Bits | None = None) -> Fraction:
        """The price."""
        return self.prices[self.mechanism.release(self.scores(valuations), bits=bits)]

    def accuracy(self, beta: Number, *, n: int) -> float:
        """How far below OPT the revenue may be with probability 1 - beta."""
        gap = self.mechanism.accuracy(beta, candidates=self.steps)
        return float(self.highest) / self.steps * (n + gap)

    def expected_gap(self, *, n: int) -> float:
        """alpha n V + ln(1/alpha) / r: how far below OPT the expected revenue may be."""
        return float(self.highest) / self.steps * (n + math.log(self.steps) / float(self.mechanism.rate))

    def expected_revenue(self, valuations: Any) -> float:
        """The exact expectation over the draw."""
        scores = self.scores(valuations)
        with np.errstate(all="ignore"):
            chances = np.exp(self.mechanism.log_probs(scores))
        return float(chances @ scores) * float(self.highest) / self.steps

    def log_prob(self, output: Fraction, data: Any) -> float:
        """ln P(price = output | valuations = data)."""
        return float(self.mechanism.log_probs(self.scores(data))[self.prices.index(Fraction(output))])

    def log_probs(self, data: Any) -> NDArray[np.float64]:
        """ln P(price) for all prices of the grid."""
        with np.errstate(all="ignore"):
            return self.mechanism.log_probs(self.scores(data))

    def expected_gain(
        self, *, valuation: float, bid: float, others: Any, coalition: Sequence[tuple[float, float]] = ()
    ) -> float:
        """E (valuation - price)_+ of a buyer who bids `bid` next to `others`, exactly.

        coalition: (valuation, bid) of buyers who collude with this one; the gain is then that of all of them
        together.
        """
        members = [(valuation, bid), *coalition]
        chances = np.exp(self.log_probs([*others, *(offered for _, offered in members)]))
        gains = [0.0] * self.steps
        for worth, offered in ((_bid(v), _bid(b)) for v, b in members):
            for i, price in enumerate(self.prices):
                gains[i] += float(max(Fraction(0), worth - price)) if offered >= price else 0.0
        return float(chances @ np.array(gains))


def _price(value: Any, name: str) -> Fraction:
    """A public price >= 0, exactly; a float means that float."""
    return scale(value, name, zero=True) if isinstance(value, str) else exact(value, name)


def _bid(value: Any) -> Fraction:
    """A private bid, exactly; total: no number and a negative one are 0, and infinity is more than any price."""
    if isinstance(value, float | np.floating) and value == math.inf:
        return _ENDLESS
    try:
        return max(Fraction(0), _price(value, "bid"))
    except ParameterError:
        return Fraction(0)
