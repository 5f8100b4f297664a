"""From counts to a bound on epsilon that holds with stated confidence.

(epsilon, delta)-DP gives P(D in S) <= e^epsilon P(D' in S) + delta for every event S. Let S be fixed before the
counting samples are drawn, k of n outputs on D and k' of n' outputs on D' fall in S, and alpha = 1 - confidence. With
the one-sided Clopper-Pearson bounds (Clopper, Pearson 1934) at alpha/2 each, p >= p_low and p' <= p_high hold
together with probability at least 1 - alpha, and then

    epsilon >= ln((p_low - delta) / p_high).

The largest value that n and n' samples can ever show, its *ceiling*, is the bound at k = n, k' = 0: about
ln(n / ln(2/alpha)). An auditor that finds nothing has shown nothing above its ceiling to be absent, and nothing below.

Two intervals that hold together are wasteful where S is rare. If n and n' are not fixed but Poisson variables of the
same mean, independent of the outputs and of each other, then k and k' are Poisson variables of means in the ratio
p : p', and given m = k + k' the law of k is binomial with m and share = p / (p + p') (Przyborowski, Wilenski 1940).
With share_low the Clopper-Pearson bound at alpha, whatever m is,

    epsilon >= ln(p / p') >= ln(share_low / (1 - share_low))    with probability at least 1 - alpha.

`ratio_bound` is this one. It is the better one where S is rare on both sides and delta = 0; where S is common, the
Poisson sizes add noise that `epsilon_bound` does not have. `expected_bounds` says in advance which is better. Both grow
with k and fall with k', so that hits may be left out on the side of p and made up on the side of p'.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

__all__ = [
    "at_least", "at_most", "ceiling", "epsilon_bound", "expected_bounds", "likely_bounds", "probability_of",
    "ratio_bound",
]  # fmt: skip

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


def ratio_bound(k: int, k_other: int, *, confidence: float) -> float:
    """The bound for Poisson sizes of the module's head, at least 0; it needs delta = 0.

    >>> round(epsilon_bound(900, 10**6, 300, 10**6, confidence=0.99, delta=0), 3)
    0.864
    >>> round(ratio_bound(900, 300, confidence=0.99), 3)
    0.943
    """
    share = at_least(k, k + k_other, 1 - confidence)
    return max(0.0, math.log(share) - math.log1p(-share)) if share > 0.5 else 0.0


def expected_bounds(p: Any, p_other: Any, n: int, *, confidence: float, delta: float) -> tuple[Floats, Floats]:
    """What `epsilon_bound` and `ratio_bound` show where n outputs a side hit as often as expected, for many events.

    Not cut off at 0, so that events can be ordered that promise nothing; -inf where nothing can be shown at all.
    """
    from scipy.special import betaincinv

    k, other = (n * np.clip(np.asarray(some, dtype=np.float64), 0.0, 1.0) for some in (p, p_other))
    k = np.maximum(k, 1e-9)
    alpha = 1 - confidence
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (
            betaincinv(k, n - k + 1, alpha / 2),
            betaincinv(other + 1, np.maximum(n - other, 1e-9), 1 - alpha / 2),
        )
        two = np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)
        if delta > 0:
            return two, np.full_like(two, -np.inf)
        share = betaincinv(k, other + 1, alpha)
        return two, np.where(share > 0, np.log(share) - np.log1p(-share), -np.inf)


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
