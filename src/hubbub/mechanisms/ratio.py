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
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["ratio_interval", "two_laplace_half_width", "two_laplace_tail"]


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
