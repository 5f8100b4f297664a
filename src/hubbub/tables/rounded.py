"""How far a rounded sum of discrete noise is off: the half-width of a count that was put together from several draws.

A count n is whole, so that rounding its estimate n + Z gives n + round(Z): its error is that of the noise rounded,
which is a law of its own on the whole numbers, whatever n is. One term and two are computed exactly, up to 1e-13 of
mass that is left out and counted as beyond; of more, or of very wide ones, None.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from hubbub.tables.price import Noise

__all__ = ["rounded_half_width"]

_LEFT_OUT = 1e-13
_WIDEST = 20_000


@lru_cache(maxsize=4096)
def rounded_half_width(level: float, terms: tuple[tuple[Noise, float], ...]) -> int | None:
    """The smallest t with P(|round(c1 X1 + c2 X2)| <= t) >= level; a half is taken to be rounded away from 0.

    >>> from hubbub.noise import DiscreteLaplace
    >>> law = DiscreteLaplace(10)
    >>> rounded_half_width(0.95, ((law, 1.0),)) == law.half_width(0.95)
    True
    >>> rounded_half_width(0.95, ((law, 0.5), (law, 0.5)))
    21
    """
    if len(terms) == 1:
        ((law, coefficient),) = terms
        return max(0, math.floor(abs(coefficient) * law.half_width(level) - 0.5) + 1)
    if len(terms) != 2 or 1 - level < 100 * _LEFT_OUT:
        return None
    (first, a), (second, b) = sorted(((law, abs(c)) for law, c in terms), key=lambda t: t[0].half_width(level))
    reach = first.half_width(1 - _LEFT_OUT)
    if reach > _WIDEST or not a or not b:
        return None
    x = np.arange(-reach, reach + 1)
    chance = np.asarray(first.pmf(x))
    # Beside a far more precise draw b is as small as 1e-24, and an end beyond any whole number of 64 bits.
    beyond = second.half_width(1 - _LEFT_OUT) + 1

    def within(t: int) -> bool:
        ends = t + 0.5
        most, least = np.ceil((ends - a * x) / b) - 1, np.floor((-ends - a * x) / b) + 1
        most, least = (np.clip(end, -beyond - 1, beyond).astype(np.int64) for end in (most, least))
        inside = np.where(most >= least, second.cdf(most) - second.cdf(least - 1), 0.0)
        return float(chance @ inside) - _LEFT_OUT >= level

    low, high = -1, 1
    while not within(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
    return high
