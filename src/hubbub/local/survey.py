"""Sensitive yes-no questions, and how many people to ask.

The two classic surveys as plain functions over `mechanisms.RandomizedResponse`, whose `loss` is theirs, and a planner.
A report is True for Yes. Both are randomised response with P(report = truth) = 1/2 + b:

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

from hubbub.accounting.amounts import Number, amount
from hubbub.errors import ParameterError
from hubbub.local.choose import best_oracle
from hubbub.local.estimate import Estimate, normal_quantile
from hubbub.local.oracle import FrequencyOracle
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.noise import Bits

__all__ = ["SurveyPlan", "plan", "plan_with", "sample_size", "two_coins", "two_coins_share", "warner", "warner_share"]


def _response(bias: Number) -> RandomizedResponse:
    return RandomizedResponse(bias=bias)


def _bias_of_share(random_share: Number) -> Fraction:
    return (1 - RandomizedResponse(random_share=random_share).parameter) / 2


def warner(answers: Any, *, bias: Number, bits: Bits | None = None) -> Any:
    """Reports that equal the answer with probability 1/2 + bias: a bool for a bool, or an array of the same shape."""
    return _response(bias).release(answers, bits=bits)


def two_coins(answers: Any, *, random_share: Number = "1/2", bits: Bits | None = None) -> Any:
    """Reports that are a fair coin with probability `random_share`, else the answer."""
    return RandomizedResponse(random_share=random_share).release(answers, bits=bits)


def warner_share(yes: int, n: int, *, bias: Number) -> Estimate:
    """The estimated share of Yes, as `Estimate` of ("no", "yes"), from `yes` reports of Yes among n.

    >>> float(warner_share(400, 1000, bias="1/4").shares[1])
    0.3
    """
    response = _response(bias)
    share = response.estimate(yes, n)
    base = response.variance(1, 0.0)
    return Estimate(("no", "yes"), n, 0, np.array([1 - share, share]), np.full(2, base / n), base, 0.0)


def two_coins_share(yes: int, n: int, *, random_share: Number = "1/2") -> Estimate:
    """The estimated share of Yes from `yes` reports of Yes among n.

    >>> float(two_coins_share(400, 1000).shares[1])
    0.3
    """
    return warner_share(yes, n, bias=_bias_of_share(random_share))


def sample_size(
    *, within: Number, level: float = 0.95, bias: Number | None = None, random_share: Number | None = None
) -> int:
    """How many people a Warner (`bias`) or two-coin (`random_share`) survey needs for the population's share of Yes.

    >>> sample_size(random_share="1/2", within="0.02")
    9604
    """
    response = RandomizedResponse(bias=bias, random_share=random_share)
    return math.ceil((response.variance(1, 0.5) + 0.25) * (normal_quantile(level) / _within(within)) ** 2)


def _within(within: Number) -> float:
    reach = float(amount(within, "within"))
    if not 0 < reach < 1:
        raise ParameterError(f"within = {within} was asked; it is an error of a share: give 0 < within < 1.")
    return reach


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
    reach = _within(within)
    square = (normal_quantile(level) / reach) ** 2
    base = oracle.variance_factor
    slope = oracle.variance(1, 1.0) - base
    worst = min(max((1 + slope) / 2, 0.0), 1.0)
    population = base + slope * worst + worst * (1 - worst)
    counts = (population, base + max(slope, 0.0), 0.25)
    return SurveyPlan(oracle, reach, float(level), *(math.ceil(square * v) for v in counts))
