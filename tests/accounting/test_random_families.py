"""Random laws, counts and mixtures, held to the oracles of `oracles.py`: seeded, so that each run has the same.

Every run has a few seconds of each family, the soak has forty cases of each.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction as F

import mpmath as mp
import pytest

from accounting.oracles import (
    check_answers,
    discrete_gaussian,
    exactly,
    inverted,
    laplace_moment,
    mpf,
    sampled,
    sampled_moment,
    tilted_mean,
)
from hubbub import accounting as acc


def seeds(*always):
    return [s if s in always else pytest.param(s, marks=pytest.mark.soak) for s in range(40)]


def rounded(x):
    """A rational of three digits near x."""
    return F(f"{float(x):.3g}")


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


# -- one law, often ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(0, 1))
def test_sampled_gaussians(seed):
    rng = random.Random(seed)
    times = round(log_uniform(rng, 10, 10**6))
    rate = rounded(log_uniform(rng, max(1e-3, 6 / times), 0.7))
    # Noise with which the losses deviate by between .3 and 2: rate sqrt(times (e^(1 / sigma^2) - 1)).
    spread = log_uniform(rng, 0.3, 2) / float(rate)
    sigma = rounded(min(60, max(0.8, 1 / math.sqrt(math.log1p(spread**2 / times)))))
    theta = mp.mpf(log_uniform(rng, 1.5, 40))
    with mp.workdps(45):
        epsilon, truth = sampled(mpf(sigma), mpf(rate), times, theta)
        check_answers(acc.Repeated(acc.PoissonSampled(acc.Gaussian(sigma), rate), times), epsilon, truth)


@pytest.mark.parametrize("seed", seeds(0, 1))
def test_many_laplaces(seed):
    rng = random.Random(100 + seed)
    spread = log_uniform(rng, 0.3, 3)
    # The inversion wants times / scale > 100.
    times = round(log_uniform(rng, max(2e4, (120 / spread) ** 2), 10**6))
    scale = rounded(math.sqrt(times) / spread)
    with mp.workdps(60):
        moment, theta = laplace_moment(1 / mpf(scale)), mp.mpf(log_uniform(rng, 0.7, 20))
        epsilon = tilted_mean(moment, times, theta)
        truth = inverted(moment, times, theta, mpf(epsilon))
        check_answers(acc.Repeated(acc.Laplace(scale), times), epsilon, truth, apart=5e-9)


def laplaces(one, times, epsilon):
    """delta of a few Laplace draws of pure epsilon `one`, with no integral.

    A loss is +one with chance 1/2, -one with e^-one / 2, and else l with density e^((l - one) / 2) / 4. Of m losses of
    the last kind the sum is m one - v, where v has the density of a sum of m uniform numbers on [0, 2 one], tilted:
    an alternating sum of powers of v - 2 one i, whose integrals with e^(+-v/2) are power series.
    """
    total = mp.mpf(0)
    for m in range(times + 1):
        for k in range(times - m + 1):
            j = times - m - k
            ways = mp.factorial(times) / mp.factorial(m) / mp.factorial(k) / mp.factorial(j)
            chance = ways * mp.mpf(2) ** -k * (mp.exp(-one) / 2) ** j
            top = (k - j + m) * one - epsilon
            if top <= 0:
                continue
            if m == 0:
                total += chance * -mp.expm1(-top)
                continue
            total += chance * mp.mpf(4) ** -m * _tilted_uniforms(one, m, top)
    return total


def _tilted_uniforms(one, m, top):
    """Int_0^top e^(-v/2) (1 - e^(v - top)) u(v) dv, u the volume of m numbers on [0, 2 one] whose sum is v."""
    whole = mp.mpf(0)
    for i in range(m + 1):
        c = 2 * one * i
        if c >= top:
            break
        sign, w = (-1) ** i * mp.binomial(m, i) / mp.factorial(m - 1), top - c
        whole += (
            sign * mp.exp(-c / 2) * (_powers(-mp.mpf(1) / 2, m, w) - mp.exp(c - top) * _powers(mp.mpf(1) / 2, m, w))
        )
    return whole


def _powers(a, m, w):
    """Int_0^w e^(a u) u^(m - 1) du."""
    total, term, r = mp.mpf(0), w**m, 0
    while abs(term) > mp.mpf(10) ** -140 * w**m or r < abs(a) * w:
        total += term / (m + r)
        r += 1
        term *= a * w / r
    return total


@pytest.mark.parametrize("seed", seeds(*range(4)))
def test_a_few_laplaces(seed):
    rng = random.Random(200 + seed)
    times, scale = rng.randint(2, 12), rounded(log_uniform(rng, 0.3, 30))
    epsilon = rounded(float(times / scale) * rng.choice([0.1, 0.3, 0.7, 0.95, 0.999]))
    with mp.workdps(160):
        truth = laplaces(1 / mpf(scale), times, mpf(epsilon))
        check_answers(acc.Repeated(acc.Laplace(scale), times), epsilon, truth, apart=5e-9)


def test_two_laplaces_are_what_a_quadrature_says():
    """The oracle of the test above, by the law of two losses itself."""
    with mp.workdps(30):
        one, epsilon = mp.mpf(1) / 3, mp.mpf(1) / 4

        def over(loss):
            return mp.quad(
                lambda x: mp.exp((x - one) / 2) / 4 * _positive(epsilon, loss + x), _knots(epsilon - loss, one)
            )

        ends = [(one, mp.mpf(1) / 2), (-one, mp.exp(-one) / 2)]
        truth = mp.fsum(p * q * _positive(epsilon, a + b) for a, p in ends for b, q in ends)
        truth += 2 * mp.fsum(p * over(a) for a, p in ends)
        truth += mp.quad(lambda x: mp.exp((x - one) / 2) / 4 * over(x), [-one, epsilon - one, 0, one])
        assert abs(truth - laplaces(one, 2, epsilon)) < mp.mpf(10) ** -15


def _positive(epsilon, loss):
    return max(mp.mpf(0), -mp.expm1(epsilon - loss))


def _knots(at, one):
    return [-one, at, one] if -one < at < one else [-one, one]


@pytest.mark.parametrize("seed", seeds(*range(3)))
def test_a_few_discrete_gaussians(seed):
    rng = random.Random(300 + seed)
    times = rng.randint(2, 5)
    sigma = rounded(rng.uniform(0.4, 3.5 / math.sqrt(times)))
    _discrete_gaussians(sigma, times, rng.uniform(1, 12), many=False)


@pytest.mark.parametrize("seed", seeds(*range(3)))
def test_many_discrete_gaussians(seed):
    rng = random.Random(400 + seed)
    sigma = rounded(log_uniform(rng, 6, 120))
    times = round(log_uniform(rng, 6, float(min(10**5, 50 * sigma * sigma))))
    _discrete_gaussians(sigma, times, rng.uniform(1, 20), many=True)


def _discrete_gaussians(sigma, times, far, *, many):
    with mp.workdps(60):
        mu = mp.sqrt(times) / mpf(sigma)
        epsilon = F(mp.nstr(mu * mu / 2 + far * mu, 9))
        truth = discrete_gaussian(mpf(sigma), times, mpf(epsilon), many=many)
        check_answers(acc.Repeated(acc.DiscreteGaussian(sigma), times), epsilon, truth)


# -- mixtures ---------------------------------------------------------------------------------------------------------


def mixture(rng, theta):
    """An event of two to four different laws, each many times, and ln E[e^(s L)] of its loss, both ways.

    One is Gaussian noise: with it the integrand of the inversion falls fast, whatever the others are.
    """
    times = round(log_uniform(rng, 4, 10**5))
    sigma = rounded(math.sqrt(times) / rng.uniform(0.3, 2))
    mu_squared = times / mpf(sigma) ** 2
    parts = [(acc.Repeated(acc.Gaussian(sigma), times), *[lambda s: mu_squared * (s * s + s) / 2] * 2)]
    kinds = [_response, _integers, _laplace, _discrete, _pure, _sampled]
    parts += [kind(rng, theta) for kind in rng.sample(kinds, rng.randint(1, 3))]
    rng.shuffle(parts)
    events, forth, back = zip(*parts, strict=True)
    return acc.Composed(events), lambda s: mp.fsum(k(s) for k in forth), lambda s: mp.fsum(k(s) for k in back)


def _often(event, times, k):
    return acc.Repeated(event, times), *[lambda s: times * k(s)] * 2


def _three(p, unit):
    """ln E[e^(s L)] of losses unit, 0 and -unit."""
    return lambda s: mp.log(p[0] * mp.exp(s * unit) + p[1] + p[2] * mp.exp(-s * unit))


def _response(rng, theta):
    times, kinds = round(log_uniform(rng, 4, 10**4)), rng.randint(2, 6)
    one = rounded(rng.uniform(0.2, 2) / math.sqrt(times))
    e = mp.exp(mpf(one))
    p = [e / (e + kinds - 1), mp.mpf(kinds - 2) / (e + kinds - 1), 1 / (e + kinds - 1)]
    return _often(acc.RandomizedResponse(one, kinds), times, _three(p, mpf(one)))


def _pure(rng, theta):
    times = rng.randint(4, 60)
    one = rounded(rng.uniform(0.2, 2) / math.sqrt(times))
    e = mp.exp(mpf(one))
    return _often(acc.PureDP(one), times, _three([e / (e + 1), mp.mpf(0), 1 / (e + 1)], mpf(one)))


def _integers(rng, theta):
    times = round(log_uniform(rng, 4, 10**4))
    scale = rounded(math.sqrt(times) / rng.uniform(0.2, 2))
    a = mp.exp(-1 / mpf(scale))
    return _often(acc.DiscreteLaplace(scale, 1), times, _three([1 / (1 + a), mp.mpf(0), a / (1 + a)], 1 / mpf(scale)))


def _laplace(rng, theta):
    times = round(log_uniform(rng, 4, 10**4))
    scale = rounded(math.sqrt(times) / rng.uniform(0.2, 2))
    return _often(acc.Laplace(scale), times, laplace_moment(1 / mpf(scale)))


def _discrete(rng, theta):
    times, sigma = rng.randint(4, 12), rounded(rng.uniform(1.5, 4))
    v, side = mpf(sigma) ** 2, int(16 * sigma) + 1
    weights = [mp.exp(-mp.mpf(x * x) / (2 * v)) for x in range(-side, side + 1)]
    whole = mp.fsum(weights)

    def k(s):
        step = mp.exp(s / v)
        powers = mp.exp(s * (1 - 2 * side) / (2 * v))
        total = mp.mpf(0)
        for w in weights:
            total += w * powers
            powers *= step
        return mp.log(total / whole)

    return _often(acc.DiscreteGaussian(sigma), times, k)


def _sampled(rng, theta):
    times = rng.randint(4, 500)
    sigma, rate = rounded(rng.uniform(1, 6)), rounded(rng.uniform(0.02, 0.3))
    event = acc.Repeated(acc.PoissonSampled(acc.Gaussian(sigma), rate), times)
    out, back = (sampled_moment(mpf(sigma), mpf(rate), theta, adding=adding) for adding in (False, True))
    return event, lambda s: times * out(s), lambda s: times * back(s)


@pytest.mark.parametrize("seed", seeds(0, 1, 3, 4))
def test_mixtures_of_laws_with_large_counts(seed):
    rng = random.Random(500 + seed)
    with mp.workdps(45):
        theta = mp.mpf(log_uniform(rng, 1.5, 15))
        event, forth, back = mixture(rng, theta)
        epsilon = tilted_mean(forth, 1, theta)
        truth = inverted(forth, 1, theta, mpf(epsilon))
        if back(theta) != forth(theta):
            truth = max(truth, inverted(back, 1, theta, mpf(epsilon)))
        check_answers(event, epsilon, truth, apart=5e-9)
        assert exactly(truth) > 0
