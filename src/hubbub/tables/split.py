"""How a budget is split between the parts of a statement: by predicted error, never by private sizes.

Part i gets the share x_i of the budget, and its noise then has variance V_i / x_i^2 (Laplace; x of epsilon) or
V_i / x_i (Gaussian; x of rho). An aggregate a moves by g_ai for each step of noise in part i, so the sum of the
weighted relative variances of all aggregates is sum_i c_i / x_i^p with c_i = sum_a weight_a g_ai^2 V_i / norm_a and
p = 2 or 1, where norm_a is the least variance that a alone could have. Under sum x_i = 1 it is least at x_i
proportional to c_i^(1 / (p+1)), where it is (sum_i c_i^(1 / (p+1)))^(p+1) (Lagrange; Hoelder's inequality). Roots are
taken in integers, so that a split is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

__all__ = ["best", "least", "root"]

PARTS = 2**16
"""Shares are multiples of 1/65,536."""

_BITS = 64


def root(x: Fraction, order: int) -> Fraction:
    """The square root (order 2) or cube root (order 3) of x >= 0, to 2^-64 of the next power of two, rounded down.

    >>> root(Fraction(27, 8), 3)
    Fraction(3, 2)
    """
    if x <= 0:
        return Fraction(0)
    size = (x.numerator.bit_length() - x.denominator.bit_length()) // order
    shift = _BITS - size
    up = order * shift
    whole = (x.numerator << max(up, 0)) // (x.denominator << max(-up, 0))
    rooted = math.isqrt(whole) if order == 2 else _cube_root(whole)
    return Fraction(rooted << max(-shift, 0), 1 << max(shift, 0))


def _cube_root(n: int) -> int:
    high = 1 << -(-n.bit_length() // 3)
    while True:
        closer = (2 * high + n // (high * high)) // 3
        if closer >= high:
            return high
        high = closer


def least(costs: Sequence[Fraction], power: int) -> Fraction:
    """The least value of sum c_i / x_i^power over shares x_i that sum to 1."""
    return sum((root(c, power + 1) for c in costs), Fraction(0)) ** (power + 1)


def best(costs: Sequence[Fraction], power: int) -> tuple[Fraction, ...]:
    """The shares that reach it, rounded to multiples of 1/65,536, none 0, which sum to exactly 1.

    >>> best([Fraction(1), Fraction(8)], 2)
    (Fraction(21845, 65536), Fraction(43691, 65536))
    """
    roots = [root(c, power + 1) for c in costs]
    total = sum(roots, Fraction(0))
    if not total:
        roots, total = [Fraction(1)] * len(costs), Fraction(len(costs))
    parts = [max(1, math.floor(r / total * PARTS)) for r in roots]
    largest = max(range(len(parts)), key=lambda i: (parts[i], -i))
    parts[largest] += PARTS - sum(parts)
    return tuple(Fraction(n, PARTS) for n in parts)
