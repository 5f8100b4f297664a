"""The theorems of the field as functions: what a textbook states, as numbers one can compare.

The exact accountant is never worse; these are for teaching, for checking, and for quick sums. Floats in,
floats out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hubbub.errors import ParameterError

__all__ = [
    "advanced_composition",
    "basic_composition",
    "convexity",
    "group_privacy",
    "optimal_composition",
    "parallel_composition",
    "poisson_amplification",
    "shuffle_amplification",
    "without_replacement_amplification",
]


def _check(epsilon: float, delta: float = 0.0) -> None:
    if not (0 <= epsilon < math.inf):
        raise ParameterError(f"epsilon = {epsilon} was asked; allowed are finite numbers >= 0.")
    if not (0 <= delta < 1):
        raise ParameterError(f"delta = {delta} was asked; allowed is [0, 1).")


def basic_composition(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(epsilon_i, delta_i)-DP mechanisms, adaptively composed: the sums (Dwork, Kenthapadi et al. 2006,
    Theorem 1).

    >>> basic_composition([(0.5, 0.0), (0.25, 0.0)])
    (0.75, 0.0)
    """
    for part in parts:
        _check(*part)
    return math.fsum(e for e, _ in parts), min(1.0, math.fsum(d for _, d in parts))


def parallel_composition(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Mechanisms on disjoint units, add/remove neighbours: the maxima (McSherry 2009, Theorem 4)."""
    for part in parts:
        _check(*part)
    return max(e for e, _ in parts), max(d for _, d in parts)


def advanced_composition(epsilon: float, delta: float, k: int, slack: float) -> tuple[float, float]:
    """k-fold adaptive composition (Dwork, Rothblum, Vadhan 2010, Theorem III.3, with the tight mean loss):

    epsilon sqrt(2 k ln(1/slack)) + k epsilon (e^epsilon - 1)/(e^epsilon + 1), k delta + slack.
    """
    _check(epsilon, delta)
    if not 0 < slack < 1:
        raise ParameterError(f"slack = {slack} was asked; allowed is (0, 1).")
    spread = epsilon * math.sqrt(2 * k * math.log(1 / slack))
    return spread + k * epsilon * math.tanh(epsilon / 2), min(1.0, k * delta + slack)


def optimal_composition(epsilon: float, delta: float, k: int, total_delta: float) -> float:
    """The least epsilon of k-fold composition of (epsilon, delta)-DP (Kairouz, Oh, Viswanath 2015,
    Theorem 3.3).

    The worst mechanism is the four-outcome table: loss infinite with probability delta, else +epsilon or
    -epsilon. With the binomial law of the signs, delta(e) = 1 - (1 - delta)^k (1 - sum_i (1 - e^(e - (2i-k)
    epsilon))_+ P(i)). inf if total_delta cannot be reached.
    """
    _check(epsilon, delta)
    _check(epsilon, total_delta)
    lost = -math.expm1(k * math.log1p(-delta))
    if total_delta <= lost:
        return math.inf if total_delta < lost or lost > 0 else k * epsilon
    low, high = 0.0, k * epsilon
    if _binomial_delta(epsilon, k, 0.0) * (1 - lost) + lost <= total_delta:
        return 0.0
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        over = _binomial_delta(epsilon, k, middle) * (1 - lost) + lost > total_delta
        low, high = (middle, high) if over else (low, middle)
    return high


def _binomial_delta(epsilon: float, k: int, at: float) -> float:
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
    terms = []
    for i in range(k + 1):
        loss = (2 * i - k) * epsilon
        if loss > at:
            choose = math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1)
            terms.append(math.exp(choose + i * log_p + (k - i) * log_q) * -math.expm1(at - loss))
    return math.fsum(terms)


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Groups of `size`: (k epsilon, k delta e^((k-1) epsilon)) (Vadhan 2017)."""
    _check(epsilon, delta)
    return size * epsilon, min(1.0, size * delta * math.exp((size - 1) * epsilon))


def convexity(epsilon: float, delta: float) -> tuple[float, float]:
    """A random choice, independent of the data, between (epsilon, delta)-DP mechanisms is (epsilon,
    delta)-DP.
    """
    _check(epsilon, delta)
    return epsilon, delta


def poisson_amplification(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Poisson sampling, add/remove: (ln(1 + q(e^epsilon - 1)), q delta) (Balle, Barthe, Gaboardi 2018,
    Theorem 8).
    """
    _check(epsilon, delta)
    if not 0 <= rate <= 1:
        raise ParameterError(f"rate = {rate} was asked; allowed is [0, 1].")
    return math.log1p(rate * math.expm1(epsilon)), rate * delta


def without_replacement_amplification(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Sampling rate * n of n units, replace neighbours: the same numbers (same paper, Theorem 9)."""
    return poisson_amplification(epsilon, delta, rate)


def shuffle_amplification(epsilon: float, n: int, delta: float) -> float:
    """The central epsilon of n shuffled epsilon-DP reports (Feldman, McMillan, Talwar 2021, Theorem 3.1).

    ln(1 + (e^epsilon - 1)/(e^epsilon + 1) (8 sqrt(e^epsilon ln(4/delta))/sqrt(n) + 8 e^epsilon/n)), for
    epsilon <= ln(n / (16 ln(2/delta))); the local epsilon where the theorem does not apply or does not help.
    Replace neighbours. A closed form, not the numerical optimum.
    """
    _check(epsilon, delta)
    if delta == 0 or n <= 16 * math.log(2 / delta) or epsilon > math.log(n / (16 * math.log(2 / delta))):
        return epsilon
    grown = 8 * math.sqrt(math.exp(epsilon) * math.log(4 / delta) / n) + 8 * math.exp(epsilon) / n
    return min(epsilon, math.log1p(math.tanh(epsilon / 2) * grown))
