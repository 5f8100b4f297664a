"""Sensitive yes-no questions, and how many people to ask.

The two classic surveys as plain functions, and a planner. A report is 1 for Yes. Both are randomised response with
P(report = truth) = 1/2 + b:

- *Warner* (1965): answer the question with probability 1/2 + b, its opposite otherwise; epsilon = ln((1/2+b)/(1/2-b)).
- *Two coins*: heads, answer truly; tails, say what a second coin says. A share s of random answers has b = (1-s)/2;
  two fair coins have s = 1/2, chances 3/4 and 1/4, epsilon = ln 3. 400 Yes of 1000 mean (0.4 - 1/4)/(1/2) = 30 %.

*Planning.* An estimate f of variance (A + B f)/n over the coins (`estimate`), plus f(1-f)/n over who happens to be
asked, is within `within` of the truth with probability `level` if n >= z^2 max_f (A + B f + f(1-f)) / within^2, where
the maximum over f in [0, 1] is at f = (1+B)/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, amount, probability
from hubbub.accounting.events import Event, RandomizedResponse
from hubbub.accounting.rounding import digits_up, ln
from hubbub.errors import ParameterError
from hubbub.local.choose import best_oracle
from hubbub.local.draws import Flags, coins
from hubbub.local.estimate import Estimate, normal_quantile
from hubbub.local.oracle import FrequencyOracle
from hubbub.noise import Bits

__all__ = ["SurveyPlan", "plan", "two_coins", "two_coins_share", "warner", "warner_share", "yes_no_loss"]


def _bias(bias: Number) -> Fraction:
    value = amount(bias, "bias")
    if not 0 < value < Fraction(1, 2):
        raise ParameterError(f"bias = {bias} was asked; it lies strictly between 0 and 1/2.")
    return value


def _random_share(share: Number) -> Fraction:
    value = probability(share, "random_share")
    if value == 0:
        raise ParameterError("random_share = 0 was asked, and everybody would tell the truth; give a share above 0.")
    return value


def _truths(answers: Any) -> Flags:
    truth = np.asarray(answers)
    if truth.dtype != np.bool_:
        raise ParameterError(f"answers are {truth.dtype}; yes-no answers are True and False.")
    return truth


def warner(answers: Any, *, bias: Number, bits: Bits | None = None) -> Flags:
    """Reports that equal the answer with probability 1/2 + bias."""
    truth = _truths(answers)
    return truth ^ coins(Fraction(1, 2) - _bias(bias), truth.size, bits).reshape(truth.shape)


def two_coins(answers: Any, *, random_share: Number = "1/2", bits: Bits | None = None) -> Flags:
    """Reports that are a fair coin with probability `random_share`, else the answer."""
    truth = _truths(answers)
    return truth ^ coins(_random_share(random_share) / 2, truth.size, bits).reshape(truth.shape)


def warner_share(yes: int, n: int, *, bias: Number) -> Estimate:
    """The estimated share of Yes, as `Estimate` of ("no", "yes"), from `yes` reports of Yes among n.

    >>> warner_share(400, 1000, bias="1/4").shares[1]
    np.float64(0.3)
    """
    if not 0 <= yes <= n or n < 1:
        raise ParameterError(f"yes = {yes} of n = {n} was given; there are between 0 and n Yes, and n >= 1.")
    p = Fraction(1, 2) + _bias(bias)
    share = float((Fraction(yes, n) - (1 - p)) / (2 * p - 1))
    base = float(p * (1 - p) / (2 * p - 1) ** 2)
    shares = np.array([1 - share, share])
    return Estimate(("no", "yes"), n, 0, shares, np.full(2, base / n), base, 0.0)


def two_coins_share(yes: int, n: int, *, random_share: Number = "1/2") -> Estimate:
    """The estimated share of Yes from `yes` reports of Yes among n.

    >>> two_coins_share(400, 1000).shares[1]
    np.float64(0.3)
    """
    return warner_share(yes, n, bias=(1 - _random_share(random_share)) / 2)


def yes_no_loss(*, bias: Number) -> Event:
    """ln((1/2+b)/(1/2-b)), rounded up, as an event; two coins with a random share s are bias (1-s)/2.

    >>> round(float(yes_no_loss(bias="1/4").epsilon), 12)
    1.098612288668
    """
    b = _bias(bias)
    odds = Fraction(ln((1 + 2 * b) / (1 - 2 * b))) * (1 + Fraction(1, 10**40))
    return RandomizedResponse(digits_up(odds))


@dataclass(frozen=True)
class SurveyPlan:
    """How many people to ask for every share to be within `within` with probability `level` (of each, not of all).

    `n` for the population they are drawn from; `n_respondents` for the share among those asked.
    """

    oracle: FrequencyOracle
    within: float
    level: float
    n: int
    n_respondents: int
    n_without_privacy: int


def plan(epsilon: Number, categories: Any = 2, *, within: Number, level: float = 0.95) -> SurveyPlan:
    """Plan a survey: the best oracle, and how many people.

    >>> plan(1, 2, within="0.02").n, plan(1, 2, within="0.02").n_without_privacy
    (11243, 2401)
    """
    return plan_with(best_oracle(epsilon, categories), within=within, level=level)


def plan_with(oracle: FrequencyOracle, *, within: Number, level: float = 0.95) -> SurveyPlan:
    """The same for a given oracle."""
    reach = float(amount(within, "within"))
    if not 0 < reach < 1:
        raise ParameterError(f"within = {within} was asked; it is an error of a share: give 0 < within < 1.")
    square = (normal_quantile(level) / reach) ** 2
    base = oracle.variance_factor
    slope = oracle.variance(1, 1.0) - base
    worst = min(max((1 + slope) / 2, 0.0), 1.0)
    population = base + slope * worst + worst * (1 - worst)
    counts = (population, base + max(slope, 0.0), 0.25)
    return SurveyPlan(oracle, reach, float(level), *(math.ceil(square * v) for v in counts))
