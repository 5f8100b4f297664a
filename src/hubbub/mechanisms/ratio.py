"""The interval of a quotient of two sums that carry independent Laplace noise.

Fieller's method (Fieller 1954, "Some problems in interval estimation") with the exact law instead of the normal one.
Let s' = s + X and n' = n + Y, X and Y independent Laplace of scales a and b, and theta = s / n. Then
s' - theta n' = X - theta Y has a known law, symmetric about 0, so
{theta : |s' - theta n'| <= q(theta)}, with P(|X - theta Y| <= q(theta)) = level, holds s / n with probability
`level`, whatever s and n are. For a sum of Laplace variables of scales a != c,
P(|X + Z| > t) = (a^2 e^(-t/a) - c^2 e^(-t/c)) / (a^2 - c^2), and (1 + t / 2a) e^(-t/a) for a = c.

The noise is discrete Laplace X', Y' on the integers. P(|X'| >= k) = 2 q^k / (1 + q) <= q^(k - 1/2) = P(|X| + 1/2 >= k),
so |X'| is at most |X| + 1/2 in law, and |X' - theta Y'| at most |X - theta Y| + (1 + |theta|) / 2. The interval is
widened by that much: it covers with probability `level` or more at every scale.

Many terms. A sum of independent terms, Laplace or normal, has a law between the normal (excess kurtosis 0) and a
single Laplace (3); its standardised quantile is read from those of sums of k equal Laplace variables, whose excess
kurtosis is 3 / k and whose law is a closed form, by interpolation in the kurtosis.

Far out the kurtosis no longer tells: Laplace(1) + N(0, 2) is beyond the point that is read for 0.9999 with probability
1.5e-4. Above level 0.99 the tail is that of Lugannani and Rice 1980, with K(s) = -sum ln(1 - a^2 s^2) + v s^2 / 2:
P(sum > K'(s)) = 1 - Phi(w) + phi(w) (1/u - 1/w), w^2 = 2 (s K' - K), u^2 = s^2 K'', which is within 7 % of the exact
tail there (7 % of a probability of 1e-4 are 0.8 % of t); it is taken 8 % larger than it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "half_widths",
    "ratio_interval",
    "ratio_intervals",
    "two_laplace_half_width",
    "two_laplace_half_widths",
    "two_laplace_tail",
]

Floats = NDArray[np.float64]

_RATIOS = 1025
_MOST_TERMS = 16
_FAR = 0.99
_ROOM = 1.08


def two_laplace_tail(t: float, a: float, c: float) -> float:
    """P(|X + Z| > t) for independent Laplace X, Z of scales a > 0, c >= 0; t >= 0."""
    a, c = max(a, c), min(a, c)
    x = t / a
    if c <= a * 1e-12:
        return math.exp(-x)
    r = c / a
    if 1 - r < 1e-6:
        return (1 + x / 2) * math.exp(-x)
    return (math.exp(-x) - r * r * math.exp(-x / r)) / (1 - r * r)


def two_laplace_half_width(level: float, a: float, c: float) -> float:
    """The t with P(|X + Z| <= t) = level, 0 < level < 1."""
    low, high = 0.0, max(a, c)
    while two_laplace_tail(high, a, c) > 1 - level:
        high *= 2
    for _ in range(200):
        mid = (low + high) / 2
        if not low < mid < high:
            break
        if two_laplace_tail(mid, a, c) > 1 - level:
            low = mid
        else:
            high = mid
    return high


def ratio_interval(
    total: float,
    count: float,
    *,
    total_scale: float,
    count_scale: float,
    low: float,
    high: float,
    level: float,
) -> tuple[float, float]:
    """The interval for (true total) / (true count), which is known to lie in [low, high].

    total, count: the noisy sums. total_scale, count_scale: scales of their Laplace noise, in the same units.
    A count of 0 or less, or noisy sums that no value in [low, high] explains, give [low, high].
    """
    if count <= 0:
        return low, high
    estimate = min(max(total / count, low), high)

    def inside(theta: float) -> bool:
        distance = abs(total - theta * count) - (1 + abs(theta)) / 2
        return two_laplace_tail(max(0.0, distance), total_scale, abs(theta) * count_scale) >= 1 - level

    if not inside(estimate):
        return low, high
    return _edge(estimate, low, inside), _edge(estimate, high, inside)


def _edge(inner: float, end: float, inside: Callable[[float], bool]) -> float:
    """The last point of the set on the way from `inner` to `end`; if `end` is in it, a gap between is filled."""
    if inside(end):
        return end
    outer = end
    for _ in range(60):
        mid = (inner + outer) / 2
        if inside(mid):
            inner = mid
        else:
            outer = mid
    return outer


@lru_cache(maxsize=64)
def _two_laplace_table(level: float) -> Floats:
    """The half-widths of X + r Z, X and Z Laplace of scale 1, for r = 0 .. 1 in equal steps."""
    r = np.linspace(0.0, 1.0, _RATIOS)
    low, high = np.zeros_like(r), np.full_like(r, 4.0 - 4.0 * math.log1p(-level))
    near, safe = 1 - r < 1e-6, np.clip(r, 1e-12, 1 - 1e-6)
    for _ in range(60):
        x = (low + high) / 2
        apart = (np.exp(-x) - safe**2 * np.exp(-x / safe)) / (1 - safe**2)
        tail = np.where(near, (1 + x / 2) * np.exp(-x), apart)
        low, high = np.where(tail > 1 - level, x, low), np.where(tail > 1 - level, high, x)
    return high


def two_laplace_half_widths(level: float, a: Any, c: Any) -> Floats:
    """`two_laplace_half_width`, elementwise, to about 1e-6 relative (read from a table)."""
    first, second = np.abs(np.asarray(a, np.float64)), np.abs(np.asarray(c, np.float64))
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    ratio = np.divide(smaller, larger, out=np.zeros_like(larger), where=larger > 0)
    return np.asarray(larger * np.interp(ratio, np.linspace(0.0, 1.0, _RATIOS), _two_laplace_table(level)))


def _equal_laplace_tail(x: float, k: int) -> float:
    """P(|X_1 + ... + X_k| > x) for Laplace variables of scale 1."""
    total = 0.0
    for j in range(k):
        m = k - 1 - j
        weight = math.comb(k - 1, j) * math.factorial(k - 1 + j) * math.factorial(m) / 2 ** (k + j)
        total += weight * sum(x**i / math.factorial(i) for i in range(m + 1))
    return 2 * math.exp(-x) * total / math.factorial(k - 1) ** 2


def _normal_half_width(level: float) -> float:
    # From below: (1 + level) / 2 may round to 1.
    return -NormalDist().inv_cdf((1 - level) / 2)


@lru_cache(maxsize=64)
def _standard_table(level: float) -> tuple[Floats, Floats]:
    """Excess kurtosis, increasing, and the half-width in standard deviations."""
    points = [(0.0, _normal_half_width(level))]
    for k in range(_MOST_TERMS, 0, -1):
        low, high = 0.0, 50.0 - 4.0 * math.log1p(-level)
        for _ in range(80):
            x = (low + high) / 2
            low, high = (x, high) if _equal_laplace_tail(x, k) > 1 - level else (low, x)
        points.append((3 / k, high / math.sqrt(2 * k)))
    return np.array([f[0] for f in points]), np.array([f[1] for f in points])


def half_widths(level: float, laplace: Any, variance: Any = 0.0) -> Floats:
    """The t with P(|sum| <= t) = level for independent Laplace terms and a normal one, elementwise.

    laplace: the scales, shape (terms, ...); variance: of the normal term. One Laplace term and two are exact to 1e-6,
    others to about 1 % of t; above level 0.99 they are too wide rather than too narrow.
    """
    scales = np.abs(np.asarray(laplace, np.float64))
    normal = np.asarray(variance, np.float64)
    if scales.shape[0] in (1, 2) and not np.any(normal):
        return two_laplace_half_widths(level, scales[0], scales[-1] if scales.shape[0] == 2 else 0.0 * scales[0])
    if not np.any(scales):
        return np.asarray(np.sqrt(normal + scales.sum(axis=0)) * _normal_half_width(level))
    total = 2 * (scales**2).sum(axis=0) + normal
    # Relative to the largest, so that fourth powers stay within floats.
    deviation = np.sqrt(np.where(total > 0, total, 1.0))
    standard = scales / deviation
    if level > _FAR:
        return np.asarray(np.sqrt(total) * _far_half_widths(level, standard))
    return np.asarray(np.sqrt(total) * np.interp(12 * (standard**4).sum(axis=0), *_standard_table(level)))


def _far_half_widths(level: float, standard: Floats) -> Floats:
    """In standard deviations, for the scales of the Laplace terms in them; what is missing to 1 is a normal term."""
    from scipy.special import log_ndtr

    squares = standard**2
    normal = np.maximum(0.0, 1 - 2 * squares.sum(axis=0))
    wanted = math.log((1 - level) / 2 / _ROOM)
    # K'' grows, so w <= u: the tail lies below that of a normal variable, and s below its quantile.
    largest = np.maximum(standard.max(axis=0), 1e-300)
    low, high = np.zeros_like(normal), np.minimum(1 / largest, _normal_half_width(1 - (1 - level) / _ROOM))
    for _ in range(60):
        s = (low + high) / 2
        with np.errstate(all="ignore"):
            x = squares * s**2
            size = -np.log1p(-x).sum(axis=0) + normal * s**2 / 2
            t = s * (2 * squares / (1 - x)).sum(axis=0) + normal * s
            bend = (2 * squares * (1 + x) / (1 - x) ** 2).sum(axis=0) + normal
            w, u = np.sqrt(2 * (s * t - size)), s * np.sqrt(bend)
            log_density = -(w**2) / 2 - math.log(2 * math.pi) / 2
            share = np.exp(log_ndtr(-w) - log_density) + 1 / u - 1 / w
            beyond = ~(log_density + np.log(share) > wanted)
        low, high = np.where(beyond, low, s), np.where(beyond, s, high)
    return np.asarray(np.where(np.isfinite(t), t, 0.0))


def ratio_intervals(
    total: Floats, count: Floats, *, reach: Callable[[Floats], Floats], low: float, high: float, points: int = 2049
) -> tuple[Floats, Floats]:
    """Fieller's intervals of total / count in [low, high], elementwise.

    reach: for an array of theta, the half-width of the noise of (total - theta count), discreteness included. It is
    convex in theta, so its chords between `points` places lie above it and the intervals cover.
    """
    places = np.linspace(low, high, points)
    heights = np.asarray(reach(places))
    step = (high - low) / (points - 1) or 1.0

    def inside(theta: Floats) -> NDArray[np.bool_]:
        at = np.clip(((theta - low) / step).astype(np.int64), 0, points - 2)
        share = (theta - places[at]) / step
        return np.asarray(np.abs(total - theta * count) <= heights[at] * (1 - share) + heights[at + 1] * share)

    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.clip(np.where(count > 0, total / count, low), low, high)
    known = (count > 0) & inside(estimate)
    ends = []
    for end in (low, high):
        inner, outer = estimate.copy(), np.full_like(estimate, end)
        whole = ~known | inside(outer)
        for _ in range(40):
            middle = (inner + outer) / 2
            keep = inside(middle)
            inner, outer = np.where(keep, middle, inner), np.where(keep, outer, middle)
        ends.append(np.where(whole, end, outer))
    return ends[0], ends[1]
