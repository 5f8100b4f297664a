"""Paying for bits that nobody can verify: private peer prediction (Ghosh, Ligett, Roth, Schoenebeck 2014; G3).

Each of n people has a bit; given an unknown share they are independent, and the law of the share is common knowledge.
Who has a 1 expects another share p1 among the others than who has a 0, who expects p0 < p1. They report; the survey
publishes N, the number of reported ones with discrete Laplace noise of scale 1/epsilon. For person i, who reported r,

    x = (N - r)/(n - 1)                 an unbiased estimate of the share among the *others*, not clamped, and
    payment = a - b (x - 2 x p_r + p_r^2),         a quadratic (Brier) score of the prediction p_r.

If the others are true, who has the bit t expects x to be p_t, so the payment is a - b (p_t - 2 p_t p_r + p_r^2) in
expectation: a lie loses exactly b (p1 - p0)^2. Truth is a strict Bayes-Nash equilibrium for whom this exceeds the
extra cost of privacy: b > cost/(p1 - p0)^2. Expected payments are a - b p_t (1 - p_t) >= a - b/4.

Clamping x to [0, 1] would bend this (.372 for .5 with four people, epsilon 1, b 8), so payments are not bounded,
only their moments are.

**Privacy.** N is epsilon-DP (a report exchanged moves the count by 1). Everything but i's own payment is a function
of N and of the others' reports: epsilon-DP for i against everybody who sees the estimate and all other payments.
Own payments tell the own report, and are to be handed over alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.accounting import Number, events as ev
from hubbub.accounting.amounts import amount, probability
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import Bits

__all__ = ["PeerPrediction", "Survey"]


@dataclass(frozen=True)
class Survey:
    """The noisy number of ones, and each person's payment, to be told to that person alone."""

    ones: int
    payments: tuple[Fraction, ...]
    loss: ev.Event

    @property
    def estimate(self) -> Fraction:
        """The share of ones, not clamped."""
        return Fraction(self.ones, len(self.payments))

    @property
    def paid(self) -> Fraction:
        """The sum of the payments."""
        return sum(self.payments, start=Fraction(0))


@dataclass(frozen=True, init=False)
class PeerPrediction:
    """A survey that pays for predictions of the others.

    prior: share -> its probability, the common belief about the share of ones. epsilon: of the published count.
    payment: b. base: a; b/4 unless given, so that nobody expects to lose.
    """

    prior: tuple[tuple[Fraction, Fraction], ...]
    epsilon: Fraction
    payment: Fraction
    base: Fraction

    def __init__(
        self, *, prior: Mapping[Number, Number], epsilon: Number, payment: Number, base: Number | None = None
    ) -> None:
        law = tuple((probability(s, "share", one=True), amount(p, "probability")) for s, p in prior.items())
        scale = amount(payment, "payment")
        if sum(p for _, p in law) != 1 or sum(s * p for s, p in law) in (0, 1):
            raise ParameterError("a prior's probabilities add to 1, and bits are not all 0 or all 1 under it.")
        e = amount(epsilon, "epsilon")
        if e <= 0 or scale <= 0:
            raise ParameterError(f"epsilon = {epsilon}, payment = {payment}: both must be above 0.")
        for name, value in {
            "prior": law,
            "epsilon": e,
            "payment": scale,
            "base": scale / 4 if base is None else amount(base, "base"),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def predictions(self) -> tuple[Fraction, Fraction]:
        """p0 and p1: the share of ones among the others that somebody with a 0, with a 1, expects.

        >>> coins = {"1/4": "1/2", "3/4": "1/2"}
        >>> [str(p) for p in PeerPrediction(prior=coins, epsilon=1, payment=1).predictions]
        ['3/8', '5/8']
        """
        ones = sum((s * p for s, p in self.prior), start=Fraction(0))
        both = sum((s * s * p for s, p in self.prior), start=Fraction(0))
        return (ones - both) / (1 - ones), both / ones

    @property
    def lie_loses(self) -> Fraction:
        """b (p1 - p0)^2, exactly."""
        low, high = self.predictions
        return self.payment * (high - low) ** 2

    def payment_for(self, cost: Number) -> Fraction:
        """The b beyond which the truth is strictly best for whom the extra privacy loss costs `cost` at most."""
        low, high = self.predictions
        if low == high:
            raise ParameterError("under this prior a bit says nothing about the others'; no payment tells lies apart.")
        return amount(cost, "cost") / (high - low) ** 2

    @property
    def loss(self) -> ev.Event:
        """The event to charge; replace neighbours."""
        return LaplaceMechanism(sensitivity=1, epsilon=self.epsilon).loss

    def pay(self, report: int, share: Fraction) -> Fraction:
        """a - b (x - 2 x p_r + p_r^2) for a report r and an estimate x of the others' share."""
        p = self.predictions[report]
        return self.base - self.payment * (share - 2 * share * p + p * p)

    def expected(self, bit: int, report: int) -> Fraction:
        """What somebody with a bit expects to be paid for a report, the others being true."""
        return self.pay(report, self.predictions[bit])

    def release(self, reports: Any, *, noise: Bits | None = None) -> Survey:
        """Publishes the noisy count and computes the payments."""
        given = [int(r) for r in reports]
        if len(given) < 2 or not set(given) <= {0, 1}:
            raise ParameterError(f"{len(given)} reports were given; give 0 or 1 from each of 2 or more people.")
        mechanism = LaplaceMechanism(sensitivity=1, epsilon=self.epsilon)
        ones = mechanism.release(sum(given), bits=noise)
        payments = tuple(self.pay(r, Fraction(ones - r, len(given) - 1)) for r in given)
        return Survey(ones, payments, mechanism.loss)
