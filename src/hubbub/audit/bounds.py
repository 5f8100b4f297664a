"""From counts to a bound on epsilon that holds with stated confidence.

(epsilon, delta)-DP gives P(D in S) <= e^epsilon P(D' in S) + delta for every event S. Let S be fixed before the
counting samples are drawn, k of n outputs on D and k' of n' outputs on D' fall in S, and alpha = 1 - confidence. With
the one-sided Clopper-Pearson bounds (Clopper, Pearson 1934) at alpha/2 each, p >= p_low and p' <= p_high hold
together with probability at least 1 - alpha, and then

    epsilon >= ln((p_low - delta) / p_high).

The largest value that n and n' samples can ever show, its *ceiling*, is the bound at k = n, k' = 0: about
ln(n / ln(2/alpha)). An auditor that finds nothing has shown nothing above its ceiling to be absent, and nothing below.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

__all__ = ["at_least", "at_most", "ceiling", "epsilon_bound", "likely_bounds", "probability_of"]

Floats = NDArray[np.float64]


def probability_of(value: float, name: str, *, least: float = 0.0) -> float:
    """A float in (least, 1), or least itself where it is 0. Raises ParameterError."""
    number = float(value)
    if not (least < number < 1 or number == least == 0):
        raise ParameterError(f"{name} = {value} was given; it is a probability, {least:g} or more and below 1.")
    return number


def at_least(k: int, n: int, alpha: float) -> float:
    """p_low: the true probability is at least this, with probability 1 - alpha, where k of n were seen.

    >>> round(at_least(731, 1000, 0.05), 4)
    0.7069
    """
    from scipy.special import betaincinv

    return 0.0 if k == 0 else float(betaincinv(k, n - k + 1, alpha))


def at_most(k: int, n: int, alpha: float) -> float:
    """p_high: the true probability is at most this, with probability 1 - alpha, where k of n were seen."""
    from scipy.special import betaincinv

    return 1.0 if k >= n else float(betaincinv(k + 1, n - k, 1 - alpha))


def epsilon_bound(k: int, n: int, k_other: int, n_other: int, *, confidence: float, delta: float) -> float:
    """The bound of the module's head, at least 0.

    k of n: outputs in S on one data set; k_other of n_other: on its neighbour.
    """
    half = (1 - confidence) / 2
    low, high = at_least(k, n, half), at_most(k_other, n_other, half)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def ceiling(n: int, *, confidence: float = 0.95, delta: float = 0.0, n_other: int | None = None) -> float:
    """The most that n samples on each side can show.

    >>> [round(ceiling(n), 2) for n in (1000, 10_000, 1_000_000)]
    [5.6, 7.9, 12.51]
    """
    other = n if n_other is None else n_other
    return 0.0 if min(n, other) < 1 else epsilon_bound(n, n, 0, other, confidence=confidence, delta=delta)


def likely_bounds(k: Any, n: int, z: float) -> tuple[Floats, Floats]:
    """Quick bounds z standard deviations below and above k/n, for many k; they choose events and decide nothing.

    Wilson and Hilferty's cube root for the rarer outcome, whose deviation is that of a Poisson count times sqrt(1 - p).
    """
    count = np.asarray(k, dtype=np.float64)
    low, high = _cubed(count, n, z)
    rest_low, rest_high = _cubed(n - count, n, z)
    common = count > n / 2
    return np.where(common, 1 - rest_high / n, low / n), np.where(common, 1 - rest_low / n, high / n)


def _cubed(k: Floats, n: int, z: float) -> tuple[Floats, Floats]:
    reach = z * np.sqrt(np.clip(1 - k / n, 0.0, 1.0))
    some = np.maximum(k, 1.0)
    low = np.where(k > 0, some * np.maximum(0.0, 1 - 1 / (9 * some) - reach / (3 * np.sqrt(some))) ** 3, 0.0)
    more = k + 1
    return low, more * (1 - 1 / (9 * more) + reach / (3 * np.sqrt(more))) ** 3
