"""Between rho and (epsilon, delta), each rounded once, in the safe direction.

A rho-zCDP mechanism is (epsilon, delta)-DP for (Canonne, Kamath, Steinke 2020, Proposition 12)

    delta = inf over alpha > 1 of  exp((alpha - 1)(alpha rho - epsilon)) / alpha * (1 - 1/alpha)^(alpha - 1).

Any alpha gives a true bound, so alpha is chosen in floating point, and the bound at that alpha is then
decided in 60-digit decimals. Neighbours: whichever rho is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from hubbub.accounting.amounts import Number, amount, probability, scale
from hubbub.accounting.rounding import context, decimal, digits_down, digits_up, root_up
from hubbub.errors import ParameterError

__all__ = [
    "delta_of_rho",
    "epsilon_of_rho",
    "rho_of_epsilon",
    "rho_of_sigma",
    "sigma_of_rho",
    "variance_of_rho",
]

# The decided inequality keeps this much room, above every rounding of 60-digit arithmetic on amounts
# below 1e9.
_FAR = Fraction(10**300)
_ROOM = Decimal("1e-30")


def epsilon_of_rho(rho: Number, delta: Number) -> Fraction:
    """The epsilon of a rho-zCDP mechanism at delta > 0, rounded up to 15 digits.

    >>> round(float(epsilon_of_rho("1/8", "1e-6")), 13)
    2.4190931768672

    Raises ParameterError for rho < 0 or delta outside (0, 1).
    """
    return _epsilon_of_rho(amount(rho, "rho"), _positive(delta))


@lru_cache(maxsize=512)
def _epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    if rho == 0 or _holds(rho, Fraction(0), delta):
        return Fraction(0)
    high = rho + 1
    while not _holds(rho, high, delta):
        high *= 2
    _, high = _bisect(lambda e: not _holds(rho, e, delta), Fraction(0), high)
    return digits_up(high)


def rho_of_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """The largest rho of 15 digits that one (epsilon, delta) release may cost: rounded down.

    Raises ParameterError for epsilon < 0 or delta outside (0, 1).
    """
    return _rho_of_epsilon(amount(epsilon, "epsilon"), _positive(delta))


@lru_cache(maxsize=512)
def _rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    if epsilon == 0:
        return Fraction(0)
    high = epsilon + 1
    while _holds(high, epsilon, delta):
        high *= 2
    low, _ = _bisect(lambda r: _holds(r, epsilon, delta), Fraction(0), high)
    return digits_down(low)


def _bisect(left: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Halves [low, high] until it is narrow beyond 15 digits; `left(low)` stays true, `left(high)` false."""
    while high - low > high / 10**20 and high > Fraction(1, 10**60):
        middle = digits_down((low + high) / 2, 24)
        low, high = (middle, high) if left(middle) else (low, middle)
    return low, high


def delta_of_rho(rho: Number, epsilon: Number) -> float:
    """The delta of a rho-zCDP mechanism at epsilon, rounded up."""
    r, e = amount(rho, "rho"), amount(epsilon, "epsilon")
    if r == 0:
        return 0.0
    alpha = _order(r, e)
    with localcontext(context()):
        log_delta = _log_delta(r, e, Fraction(alpha)) + _ROOM
        return min(1.0, math.nextafter(float(log_delta.exp()), math.inf)) if log_delta < 0 else 1.0


def variance_of_rho(rho: Number, sensitivity: Number = 1) -> Fraction:
    """sigma^2 = sensitivity^2 / (2 rho), exactly: the variance of Gaussian noise (also discrete) that
    costs rho.
    """
    return scale(sensitivity, "sensitivity", zero=True) ** 2 / (2 * scale(rho, "rho"))


def sigma_of_rho(rho: Number, sensitivity: Number = 1) -> Fraction:
    """The standard deviation of Gaussian noise that costs at most rho, rounded up once.

    >>> sigma_of_rho("1/8")
    Fraction(2, 1)
    """
    return root_up(variance_of_rho(amount(rho, "rho"), sensitivity))


def rho_of_sigma(sigma: Number, sensitivity: Number = 1) -> Fraction:
    """rho = sensitivity^2 / (2 sigma^2), exactly."""
    return (scale(sensitivity, "sensitivity", zero=True) / scale(sigma, "sigma")) ** 2 / 2


def _positive(delta: Number) -> Fraction:
    d = probability(delta, "delta")
    if d == 0:
        raise ParameterError(
            "delta = 0 was asked of a zCDP cost, which has no finite epsilon there. Give a delta "
            "above 0, or use a pure "
            "budget and pure mechanisms."
        )
    return d


def _holds(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether rho-zCDP is shown to imply (epsilon, delta)-DP."""
    if rho == 0:
        return True
    alpha = Fraction(_order(rho, epsilon))
    with localcontext(context()):
        return _log_delta(rho, epsilon, alpha) + _ROOM <= decimal(delta).ln()


def _log_delta(rho: Fraction, epsilon: Fraction, alpha: Fraction) -> Decimal:
    """(alpha - 1)(alpha rho - epsilon) - ln alpha + (alpha - 1) ln(1 - 1/alpha); inside a local context."""
    linear = decimal((alpha - 1) * (alpha * rho - epsilon))
    return linear - decimal(alpha).ln() + decimal(alpha - 1) * decimal(1 - 1 / alpha).ln()


def _order(exact_rho: Fraction, exact_epsilon: Fraction) -> float:
    """The alpha that minimises the bound: a zero of its increasing derivative, by bisection on ln(alpha
    - 1).
    """
    rho, epsilon = float(min(exact_rho, _FAR)), float(min(exact_epsilon, _FAR))
    low, high = -40.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        excess = math.exp(middle)
        # d/d alpha of the log bound: (2 alpha - 1) rho - epsilon + ln(1 - 1/alpha)
        slope = (2 * excess + 1) * rho - epsilon - math.log1p(1 / excess)
        low, high = (middle, high) if slope < 0 else (low, middle)
    return 1 + max(math.exp(low), 2.0**-40)
