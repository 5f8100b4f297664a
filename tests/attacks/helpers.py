"""What the tests of attacks share."""

from __future__ import annotations

import math


def slack(n: int, chance: float = 1e-9) -> float:
    """Hoeffding: the mean of n values in [0, 1] exceeds its expectation by more with at most this probability."""
    return math.sqrt(math.log(1 / chance) / (2 * n))
