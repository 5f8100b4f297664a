"""What delta is, by ways that share nothing with the accountant: mpmath in as many digits as the caller works with.

- Gaussian noise: a million of them are one, of mu sqrt(n); the normal distribution's closed form.
- Outcomes of few kinds (randomised response, discrete Laplace noise): sums over binomial and trinomial counts.
- Discrete Gaussian noise: the sum of n integers, by convolution of positive terms; for many of them by Poisson's
  summation formula, which makes the sum's law the normal density at the integers but for e^(-2 pi^2 sigma^2).
- Laplace and sampled Gaussian noise, once: closed forms. Many times: Laplace inversion of the moment generating
  function, whose characteristic function has a closed form (Laplace) or is a trapezoid sum (sampled Gaussian).
"""

from __future__ import annotations

import math
from fractions import Fraction as F

import mpmath as mp
import pytest

from hubbub import accounting as acc

DIGITS = 60


def mpf(x):
    return mp.mpf(F(x).numerator) / F(x).denominator


def exactly(x):
    """A rational within 1e-40 of x."""
    return F(mp.nstr(x, 42))


def check_answers(event, epsilon, truth, *, digits=1e-9, apart=0.0, width=None):
    """All answers about an event whose delta at epsilon is `truth`."""
    e, d = float(epsilon), exactly(truth)
    low, high = acc.bounds(event, d, width=width)
    assert low <= e * (1 + 1e-15), (event, e, truth, low, high)
    assert high >= e * (1 - 1e-15), (event, e, truth, low, high)
    found = acc.epsilon(event, d)
    assert low <= found <= high
    assert found == pytest.approx(e, rel=digits, abs=apart) or found == high, (event, e, truth, found)
    assert found >= e * (1 - digits) - apart
    least, most = acc.delta_bounds(event, epsilon, 1e-2)
    assert least <= truth <= most, (event, e, truth, least, most)
    if truth > mp.mpf(10) ** -280:
        at = acc.delta(event, epsilon)
        # delta moves by |ln delta| times as much as epsilon.
        assert at == pytest.approx(float(truth), rel=1e3 * digits) or at == most, (event, e, truth, at)
        assert at >= truth * (1 - 1e3 * digits)


def gaussian(mu, epsilon):
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def few_outcomes(p, unit, times, epsilon):
    """delta of n outcomes with losses unit, 0 and -unit, of probabilities p[0], p[1] and p[2]: sums over counts.

    With m of loss 0, and k of loss +unit among the n - m others, the loss is (2 k - n + m) unit.
    """
    total, ln = mp.mpf(0), [mp.log(x) if x else None for x in p]
    step, odds, tiny = mp.exp(-2 * unit), p[0] / p[2], mp.mpf(10) ** -50
    for m in range(times + 1 if p[1] else 1):
        rest = times - m
        k = max(0, int(mp.floor((rest + epsilon / unit) / 2)) + 1)
        if k > rest:
            break
        if m and _rare(times, m, k, p) < mp.log(total) - 140:
            continue
        log = mp.loggamma(times + 1) - mp.loggamma(m + 1) - mp.loggamma(k + 1) - mp.loggamma(rest - k + 1)
        term = mp.exp(log + (m * ln[1] if m else 0) + k * ln[0] + (rest - k) * ln[2])
        part, over = mp.mpf(0), mp.exp(epsilon - (2 * k - rest) * unit)
        while k <= rest:
            part += term * (1 - over)
            if term < part * tiny:
                break
            term *= odds * (rest - k) / (k + 1)
            over *= step
            k += 1
        total += part
    return total


def _rare(times, m, first, p):
    """A float above the logarithm of the chance of m losses of 0, and at least `first` of +unit among the others."""
    rest = times - m
    k = max(first, round(rest * float(p[0] / (p[0] + p[2]))))
    ways = math.lgamma(times + 1) - math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(rest - k + 1)
    logs = m * math.log(p[1]) + k * math.log(p[0]) + (rest - k) * math.log(p[2])
    return ways + logs + math.log(times + 1) + 1


def discrete_gaussian(sigma, times, epsilon, *, many=False):
    """Sensitivity 1. The loss of a sum x of n integers around 0 is x / sigma^2 + n / 2 sigma^2."""
    v = sigma**2
    first = int(mp.floor(epsilon * v - mp.mpf(times) / 2)) + 1
    if many:
        variance = times * v
        reach = range(first, first + int(40 * mp.sqrt(variance)))

        def mass(x):
            return mp.exp(-(mp.mpf(x) ** 2) / (2 * variance)) / mp.sqrt(2 * mp.pi * variance)
    else:
        side = int(26 * sigma * mp.sqrt(times)) + 1
        one = [mp.exp(-(mp.mpf(x) ** 2) / (2 * v)) for x in range(-side, side + 1)]
        whole = mp.fsum(one)
        one, sums = [w / whole for w in one], {0: mp.mpf(1)}
        for _ in range(times):
            grown = {}
            for s, a in sums.items():
                for i, b in enumerate(one):
                    grown[s + i - side] = grown.get(s + i - side, mp.mpf(0)) + a * b
            sums = grown
        reach, mass = range(first, max(sums) + 1), lambda x: sums.get(x, mp.mpf(0))
    total = mp.mpf(0)
    for x in reach:
        term = mass(x) * -mp.expm1(epsilon - (x / v + mp.mpf(times) / (2 * v)))
        total += term
        if term < total * mp.mpf(10) ** -45 and x > 0:
            break
    return total


def inverted(log_moment, times, theta, epsilon):
    """delta by two-sided Laplace inversion at theta: (1/pi) Int Re e^(n k(s) - s epsilon) / (s (s + 1)) dt.

    Steps alias delta at distances 2 pi / dt: they are halved until that changes nothing.
    """

    def integrand(t):
        s = mp.mpc(theta, t)
        return (mp.exp(times * log_moment(s) - s * epsilon) / (s * (s + 1))).real

    def sum_from(first, dt, scale):
        total, j, small = mp.mpf(0), 0, 0
        while small < 12:
            assert j < 3000, "the oracle's integral is too long"
            value = integrand(first + j * dt)
            total += value / 2 if first + j * dt == 0 else value
            small = small + 1 if abs(value) < scale * mp.mpf(10) ** -20 else 0
            j += 1
        return total

    scale = abs(integrand(mp.mpf(0)))
    dt = 2 * mp.pi * theta / (60 + max(mp.mpf(0), -mp.log(scale)))
    total = sum_from(mp.mpf(0), dt, scale)
    for _ in range(8):
        more = (total + sum_from(dt / 2, dt, scale)) / 2
        if abs(more - total) < abs(more) * mp.mpf(10) ** -15:
            return more * dt / mp.pi
        total, dt = 2 * more, dt / 2
    raise AssertionError("the oracle's steps do not converge")


def tilted_mean(log_moment, times, theta):
    """An epsilon of twelve digits where the integrand is short: the derivative of n k at theta."""
    h = theta * mp.mpf(10) ** -12
    slope = times * (log_moment(theta + h) - log_moment(theta - h)).real / (2 * h)
    return F(mp.nstr(slope, 12))


def laplace_moment(one):
    """ln E_P[e^(s L)] of Laplace noise of pure epsilon `one`: atoms at both ends, and e^((l - one)/2) / 4 between.

    The atoms alone are never far from a lattice, where the integrand comes back: n one / 2 > 50 keeps that below e^-50.
    """

    def k(s):
        half = s + mp.mpf(1) / 2
        between = (mp.exp(half * one) - mp.exp(-half * one)) / half * mp.exp(-one / 2) / 4
        return mp.log((mp.exp(s * one) + mp.exp(-one - s * one)) / 2 + between)

    return k


def sampled_moment(sigma, rate, theta, *, adding):
    """ln E_Q[m^(1 + s)], or ln E_Q[m^(-s)] where a unit is added, as a trapezoid sum over x / sigma in 40 digits."""
    mu = 1 / sigma
    # m is 0 at height pi / mu, and the bell grows like e^(height^2 / 2).
    height = min(mp.mpf("0.8") * mp.pi / mu, mp.mpf(15))
    step = 2 * mp.pi * height / (110 + height**2 / 2 + 3 * theta)
    low, high = (-theta * mu, 0) if adding else (0, (1 + theta) * mu)
    count = int((high - low + 30) / step) + 2
    xs = [low - 15 + i * step for i in range(count)]
    m = [mp.log(1 - rate + rate * mp.exp(mu * x - mu * mu / 2)) for x in xs]
    weight = [mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) * step for x in xs]

    def k(s):
        power = -s if adding else 1 + s
        return mp.log(mp.fsum(w * mp.exp(power * u) for w, u in zip(weight, m, strict=True)))

    return k


def sampled(sigma, rate, times, theta):
    """(epsilon, delta) of sampled Gaussian noise: the larger of both directions, at an epsilon that theta chooses."""
    out = sampled_moment(sigma, rate, theta, adding=False)
    epsilon = tilted_mean(out, times, theta)
    truth = inverted(out, times, theta, mpf(epsilon))
    back = sampled_moment(sigma, rate, theta, adding=True)
    # Chernoff: where losses end below epsilon the other direction is not worth an integral, and has no short one.
    tilts = [theta * 2**i for i in range(6)]
    ends = [sampled_moment(sigma, rate, t, adding=True)(t).real * times - t * mpf(epsilon) for t in tilts]
    if mp.exp(min(ends)) > truth * mp.mpf(10) ** -20:
        truth = max(truth, inverted(back, times, theta, mpf(epsilon)))
    return epsilon, truth


def sampled_once(sigma, rate, epsilon):
    """Both directions in closed form (Balle, Barthe, Gaboardi 2018, Theorem 8)."""
    mu = 1 / sigma
    removed = rate * gaussian(mu, mp.log1p(mp.expm1(epsilon) / rate))
    gone = mp.mpf(0)
    if mp.exp(-epsilon) > 1 - rate:
        x = mp.log((mp.exp(-epsilon) - 1 + rate) / rate) / mu + mu / 2
        gone = mp.ncdf(x) - mp.exp(epsilon) * ((1 - rate) * mp.ncdf(x) + rate * mp.ncdf(x - mu))
    return max(removed, gone)
