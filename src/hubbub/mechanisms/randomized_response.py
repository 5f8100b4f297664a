"""Randomised response: each person randomises the own answer, and nobody has to be trusted.

A person whose truth is Yes reports Yes with probability p, one whose truth is No with probability q < p. From y Yes
among n reports, (y/n - q) / (p - q) is an unbiased estimate of the share of Yes. Privacy, for one person (replace
neighbours: the answer changes), is the larger of |ln p/q| and |ln (1-q)/(1-p)|. The four forms:

- forced Yes (Warner as in many lecture notes): with probability s say Yes, else the truth: p = 1, q = s. A No is then
  proof of the truth, so no finite epsilon holds; it is (0, 1-s)-DP: delta(epsilon) = 1 - s for every epsilon.
- two coins: with probability s answer at random, else the truth: p = 1 - s/2, q = s/2. For s = 1/2: 3/4 and ln 3.
- bias (Warner 1965): the truth with probability 1/2 + b: epsilon = ln((1/2 + b) / (1/2 - b)).
- epsilon: the truth with probability e^epsilon / (1 + e^epsilon), the best of all epsilon-DP forms.

Given the true answers, Var(estimate) = (t p(1-p) + (1-t) q(1-q)) / (n (p-q)^2) for a true share t. For the bias form
that is (1/4 - b^2) / (4 b^2 n) <= 1 / (16 b^2 n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, amount, probability
from hubbub.accounting.rounding import digits_up, ln
from hubbub.errors import ParameterError
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, one_of, whole_number
from hubbub.mechanisms.weighted import weighted_choice
from hubbub.noise import Bits, bernoulli, choice, uniform_below

__all__ = ["KaryResponse", "RandomizedResponse", "response_sample_size"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SMALL = Fraction(1, 10**10)
_MOST = 2**62


@dataclass(frozen=True, init=False)
class RandomizedResponse:
    """Yes-or-no randomised response. Give exactly one of the four forms.

    forced_yes: the share s of forced Yes. random_share: the share s of random answers. bias: b. epsilon: the loss.

    >>> two_coins = RandomizedResponse(random_share="1/2")
    >>> two_coins.odds, two_coins.estimate(400, 1000)
    (Fraction(3, 1), 0.3)
    >>> RandomizedResponse(forced_yes="1/2").loss
    ApproxDP(epsilon=Fraction(0, 1), delta=Fraction(1, 2))

    Raises ParameterError for shares outside (0, 1), a bias outside (0, 1/2), epsilon <= 0.
    """

    form: str
    parameter: Fraction

    def __init__(
        self,
        *,
        forced_yes: Number | None = None,
        random_share: Number | None = None,
        bias: Number | None = None,
        epsilon: Number | None = None,
    ) -> None:
        form = one_of(
            "randomised response", forced_yes=forced_yes, random_share=random_share, bias=bias, epsilon=epsilon
        )
        given = next(v for v in (forced_yes, random_share, bias, epsilon) if v is not None)
        value = epsilon_of(given) if form == "epsilon" else probability(given, form)
        limit = Fraction(1, 2) if form == "bias" else Fraction(1)
        if form != "epsilon" and not 0 < value < limit:
            raise ParameterError(f"{form} = {given} was asked; it must lie strictly between 0 and {limit}.")
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "parameter", value)

    @property
    def yes_given_yes(self) -> float:
        """p, as a float."""
        return float(self._rates()[0])

    @property
    def yes_given_no(self) -> float:
        """q, as a float."""
        return float(self._rates()[1])

    @property
    def odds(self) -> Fraction | None:
        """e^epsilon exactly, where it is rational; None for the forced Yes and for the epsilon form."""
        s = self.parameter
        if self.form == "random_share":
            return (2 - s) / s
        return (1 + 2 * s) / (1 - 2 * s) if self.form == "bias" else None

    @property
    def loss(self) -> ev.Event:
        """The event of one report; epsilon is rounded up to 16 digits where it is a logarithm."""
        if self.form == "forced_yes":
            return ev.ApproxDP(0, 1 - self.parameter)
        if self.odds is None:
            return ev.RandomizedResponse(self.parameter)
        gap = self._gap()
        if gap < _SMALL:  # ln((1 + g) / (1 - g)) = 2 (g + g^3/3 + ...); digits of odds next to 1 say nothing of it
            return ev.RandomizedResponse(digits_up(2 * gap * (1 + gap**2)))
        return ev.RandomizedResponse(digits_up(Fraction(ln(self.odds)) * (1 + Fraction(1, 10**40))))

    def release(self, answers: Any, *, bits: Bits | None = None) -> Any:
        """Reports for true answers (a bool, or an array of them): a bool, or an array of the same shape."""
        truth = np.asarray(answers)
        if truth.dtype != np.bool_:
            raise ParameterError(f"answers are {truth.dtype}; randomised response is of True and False.")
        # Everybody draws the same coins, whatever the truth, so time and bytes say nothing about it.
        lie = self._coins(truth.size, bits).reshape(truth.shape)
        reports = truth | lie if self.form == "forced_yes" else truth ^ lie
        return bool(reports) if truth.ndim == 0 else reports

    def estimate(self, yes: int, n: int) -> float:
        """(yes/n - q) / (p - q), unbiased for the share of true Yes; it may leave [0, 1]."""
        share, gap = _share(yes, n), self._gap()
        q = (1 - gap) / 2 if self.form == "epsilon" else self._rates()[1]  # the q of that gap, to the last digit
        return float((share - q) / gap)

    def variance(self, n: int, share: float) -> float:
        """Var(estimate) over the coins, for n people of whom `share` are truly Yes."""
        if not 0 <= share <= 1:
            raise ParameterError(f"share = {share} was asked; the share of true Yes lies between 0 and 1.")
        p, q = self._rates()
        spread = share * float(p * (1 - p)) + (1 - share) * float(q * (1 - q))
        return spread / whole_number(n, "n") / float(self._gap()) ** 2

    def interval(self, yes: int, n: int, level: Number) -> tuple[float, float]:
        """A Clopper-Pearson interval for the share of Yes, mapped through the estimator and cut to [0, 1].

        Covers with probability at least `level` for people drawn at random from a population; for the people asked
        themselves, reports vary less than binomially, so it covers up to one report (Hoeffding 1956, Theorem 4).
        """
        from scipy.stats import beta as beta_law

        _share(yes, n)
        rest = beta_of(1 - amount(level, "level")) / 2
        low = 0.0 if yes == 0 else float(beta_law.ppf(rest, yes, n - yes + 1))
        high = 1.0 if yes == n else float(beta_law.isf(rest, yes + 1, n - yes))
        q, gap = self.yes_given_no, float(self._gap())
        return max(0.0, min(1.0, (low - q) / gap)), max(0.0, min(1.0, (high - q) / gap))

    def accuracy(self, beta: Number, *, n: int) -> float:
        """sqrt(ln(2/beta) / 2n) / (p - q): the share is within it with probability 1 - beta (Hoeffding 1963)."""
        return _hoeffding(1, beta, n) / float(self._gap())

    def log_prob(self, output: bool, data: bool) -> float:
        """ln P(report = output | truth = data)."""
        yes = self._rates()[0 if data else 1]
        chance = Fraction(yes if output else 1 - yes)
        if self.form == "epsilon":
            other = math.log1p(math.exp(-float(self.parameter)))
            return -other if output == data else -other - float(self.parameter)
        return math.log(chance.numerator) - math.log(chance.denominator) if chance > 0 else -math.inf

    def _rates(self) -> tuple[Fraction | float, Fraction | float]:
        """p and q: exact where they are rational."""
        s = self.parameter
        if self.form == "forced_yes":
            return Fraction(1), s
        if self.form == "random_share":
            return 1 - s / 2, s / 2
        if self.form == "bias":
            return Fraction(1, 2) + s, Fraction(1, 2) - s
        lie = math.exp(-float(s))
        return 1 / (1 + math.exp(-float(s))), lie / (1 + lie)

    def _gap(self) -> Fraction:
        """p - q, exact where it is rational: floats of p and q near 1/2 would lose it."""
        if self.form == "epsilon":
            return Fraction(math.tanh(float(self.parameter) / 2))
        p, q = self._rates()
        return Fraction(p) - Fraction(q)

    def _coins(self, n: int, bits: Bits | None) -> Flags:
        """For each person: say Yes whatever is true (forced Yes), or say the opposite of the truth (the others)."""
        s = self.parameter
        if self.form == "epsilon":
            return np.asarray(choice(log_weights=[0, -s], size=n, bits=bits) == 1)
        chance = {"forced_yes": s, "random_share": s / 2, "bias": Fraction(1, 2) - s}[self.form]
        return np.asarray(bernoulli(chance, n, bits=bits))


@dataclass(frozen=True, init=False)
class KaryResponse:
    """k-ary randomised response: the truth with e^epsilon times the probability of each other category.

    >>> round(KaryResponse(categories=4, epsilon=1).truth, 6)
    0.475367

    Raises ParameterError for fewer than 2 categories or more than 2^62, whose sums would leave int64.
    """

    categories: int
    epsilon: Fraction

    def __init__(self, *, categories: int, epsilon: Number) -> None:
        if whole_number(categories, "categories", least=2) > _MOST:
            raise ParameterError(f"categories = {categories} was asked; reports are int64, which hold 2^62 of them.")
        object.__setattr__(self, "categories", int(categories))
        object.__setattr__(self, "epsilon", epsilon_of(epsilon))

    @property
    def loss(self) -> ev.Event:
        """The event of one report."""
        return ev.RandomizedResponse(self.epsilon, self.categories)

    @property
    def truth(self) -> float:
        """e^epsilon / (e^epsilon + k - 1)."""
        return 1 / self._total

    @property
    def other(self) -> float:
        """The probability of each other category."""
        return math.exp(-float(self.epsilon)) / self._total

    @property
    def _total(self) -> float:
        return 1 + (self.categories - 1) * math.exp(-float(self.epsilon))

    @property
    def _gap(self) -> float:
        """truth - other."""
        return -math.expm1(-float(self.epsilon)) / self._total

    def release(self, answers: Any, *, bits: Bits | None = None) -> Integers:
        """Reports 0 .. k-1 for true categories 0 .. k-1, an int array of shape (n,)."""
        truth = np.asarray(answers)
        if truth.dtype.kind not in "iu" or (truth.size and not 0 <= truth.min() <= truth.max() < self.categories):
            raise ParameterError(f"answers are categories 0 .. {self.categories - 1}, as integers.")
        truth = truth.astype(np.int64)  # numpy adds uint64 and int64 as floats
        if self.categories > 64:
            return self._many(truth, bits)
        weights = [Fraction(0)] + [-self.epsilon] * (self.categories - 1)
        shift = choice(log_weights=weights, size=truth.size, bits=bits).reshape(truth.shape)
        return np.asarray((truth + shift) % self.categories, dtype=np.int64)

    def _many(self, truth: Any, bits: Bits | None) -> Integers:
        """For many categories: whether to lie, k - 1 times e^-epsilon to 1, and a lie, drawn by everybody."""
        ways = np.array([1, self.categories - 1])
        lies = weighted_choice(np.arange(2), self.epsilon, counts=ways, size=truth.size, bits=bits)
        shift = lies * (1 + uniform_below(self.categories - 1, truth.size, bits=bits))
        return np.asarray((truth + shift.reshape(truth.shape)) % self.categories, dtype=np.int64)

    def estimate(self, counts: Any) -> NDArray[np.float64]:
        """Unbiased estimates of how many people are in each category, from the reports per category."""
        seen = np.asarray(counts, dtype=np.float64)
        return np.asarray((seen - seen.sum() * self.other) / self._gap)

    def accuracy(self, beta: Number, *, n: int) -> float:
        """A bound on the error of every category's share with probability 1 - beta (Hoeffding, union bound)."""
        return _hoeffding(self.categories, beta, n) / self._gap

    def log_prob(self, output: int, data: int) -> float:
        """ln P(report = output | truth = data)."""
        return math.log(self.truth) - (0.0 if output == data else float(self.epsilon))


def response_sample_size(*, k: int, within: Number, beta: Number, epsilon: Number) -> int:
    """How many people answer k yes-no questions at epsilon/k each, all shares within `within` with chance 1 - beta.

    n = ln(2k/beta) / (2 within^2 tanh(epsilon/2k)^2), which is about 2 k^2 ln(2k/beta) / (within epsilon)^2: the
    source's n >> k^2 log(k/delta) / (alpha^2 epsilon^2) with its constant.
    """
    each, error = epsilon_of(epsilon) / whole_number(k, "k"), amount(within, "within")
    reach = float(error) * math.tanh(float(each) / 2)
    if error == 0 or reach < 1e-150:
        raise ParameterError(
            f"within = {float(error):g} was asked of {k} questions at epsilon {float(each):.3g} each; nobody has so "
            "many people. Give a larger error or epsilon, or fewer questions."
        )
    return math.ceil((math.log(2 * k) - math.log(beta_of(beta))) / (2 * reach**2))


def _hoeffding(shares: int, beta: Number, n: int) -> float:
    """How far so many shares of n reports are off at most, with probability 1 - beta."""
    return math.sqrt((math.log(2 * shares) - math.log(beta_of(beta))) / (2 * whole_number(n, "n")))


def _share(yes: int, n: int) -> Fraction:
    if whole_number(yes, "yes", least=0) > whole_number(n, "n"):
        raise ParameterError(f"yes = {yes} of n = {n} was given; there are between 0 and n Yes.")
    return Fraction(int(yes), int(n))
