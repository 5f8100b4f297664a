"""Gaussian noise in closed form: mu = sensitivity / sigma, composed by adding mu^2.

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)     (Balle, Wang 2018, Theorem 8).

With a = epsilon/mu - mu/2 and the Mills ratio R = Phi(-a)/phi(a) this is phi(a) (R(a) - R(a + mu)), which
does not underflow. Either neighbour relation, whichever the sensitivity is for.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction

from scipy.special import erfcx, ndtr

from hubbub.accounting.pairs import UNIT

__all__ = ["decidable", "delta_of_mu", "epsilon_of_mu", "gaussian_fits", "log_delta_of_mu", "mu_of"]


def log_delta_of_mu(mu: float, epsilon: float) -> tuple[float, float]:
    """ln delta of mu-Gaussian DP at epsilon >= 0, and a bound on its absolute error."""
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    if a < -5:
        inner, outer = float(ndtr(-a)), math.exp(-a * a / 2) * _mills(b) / math.sqrt(2 * math.pi)
        value = inner - outer
        return math.log(value), UNIT * (64 + 8 * b * b * outer + 8 * a * a) / value
    ra, rb = _mills(a), _mills(b)
    # a is known within a few units of its parts, which moves ln phi(a) by |a| times as much.
    inexact = 4 * UNIT * (abs(epsilon / mu) + mu) * (abs(a) + 1)
    gap = ra - rb
    if gap <= 0:
        return -math.inf, math.inf
    relative = 16 * UNIT * (ra + rb) / gap + inexact * (1 + ra / gap * min(1.0, mu)) + 4 * UNIT * a * a
    return -a * a / 2 - 0.5 * math.log(2 * math.pi) + math.log(gap), relative


def _mills(a: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(a / math.sqrt(2)))


def delta_of_mu(mu: float, epsilon: float) -> float:
    """delta of mu-Gaussian DP at epsilon."""
    return math.exp(log_delta_of_mu(mu, epsilon)[0]) if mu > 0 else 0.0


def epsilon_of_mu(mu: float, delta: float, *, side: int = 0) -> float:
    """The epsilon at which mu-Gaussian DP has delta > 0: nearest float, or certified above (side 1) or
    below (-1).
    """
    if mu == 0:
        return 0.0
    target = math.log(delta)

    def excess(epsilon: float) -> float:
        value, error = log_delta_of_mu(mu, epsilon)
        return value + side * error * (1 if side else 0) - target if error < math.inf else -math.inf

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * target) + 1e-300
    while excess(high) > 0:
        high *= 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return high if side >= 0 else low
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian DP is (epsilon, delta)-DP, to the last floats, from below."""
    low, high = 0.0, 1.0
    target = math.log(delta)

    def fits(mu: float) -> bool:
        value, error = log_delta_of_mu(mu, epsilon)
        return value + (error if error < math.inf else 0.0) <= target

    while fits(high):
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return low
        low, high = (middle, high) if fits(middle) else (low, middle)


def decidable(mu_squared: Fraction, epsilon: Fraction) -> bool:
    """Whether `gaussian_fits` needs at most some hundred digits."""
    m, e = float(mu_squared), float(epsilon)
    return 1e-12 < m < 1e6 and e * e / m < 1e3 and m < 1e3 and e < 1e3


def gaussian_fits(mu_squared: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise of that mu^2 is (epsilon, delta)-DP, decided in decimals of ample length."""
    if mu_squared == 0:
        return True
    e, m = float(epsilon), float(mu_squared)
    # Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/15 + ...) loses x^2/2 nats to cancellation, at most this many digits.
    digits = 60 + int(0.44 * (e * e / m + e + m / 4)) - min(0, int(math.log10(delta)))
    with localcontext(Context(prec=digits, Emax=10**9, Emin=-(10**9))):
        root = (Decimal(mu_squared.numerator) / Decimal(mu_squared.denominator)).sqrt()
        near = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        value = _phi(root / 2 - near / root) - near.exp() * _phi(-root / 2 - near / root)
        goal = Decimal(delta.numerator) / Decimal(delta.denominator)
        return value * (1 + Decimal(10) ** -40) <= goal


def _phi(x: Decimal) -> Decimal:
    """The normal distribution, by its series about 0, inside a decimal context."""
    term = total = x
    n = 1
    while abs(term) > abs(total) * Decimal(10) ** -(_precision() + 2):
        n += 2
        term *= x * x / n
        total += term
    return Decimal("0.5") + total * (-x * x / 2).exp() / (2 * _pi()).sqrt()


def _pi() -> Decimal:
    """pi by Machin's formula, to the context's digits."""
    return 4 * (4 * _arctan_of_inverse(5) - _arctan_of_inverse(239))


def _arctan_of_inverse(n: int) -> Decimal:
    term = total = Decimal(1) / n
    k = 1
    while abs(term) > Decimal(10) ** -(_precision() + 3):
        term /= -n * n
        k += 2
        total += term / k
    return total


def _precision() -> int:
    return getcontext().prec
