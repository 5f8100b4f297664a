"""Renyi divergences are from above, and within 2e-9 of the truth: against sums and integrals of 40 digits.

The oracles are this file's own: binomial sums for sampled Gaussians at whole orders (Mironov, Talwar, Zhang 2019,
section 3.3), trapezoid sums of an analytic integrand elsewhere, sums over outcomes. Nothing is statistical; the random
family is the same in every run.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction as F

import mpmath as mp
import numpy as np
import pytest

from hubbub import accounting as acc
from hubbub.errors import ParameterError

WIDTH = 2e-9
CASES, MANY = 6, 120


def _q(x):
    return mp.mpf(x.numerator) / x.denominator


def _order(rng, *, whole=False, most=10**4):
    alpha = math.exp(rng.uniform(0, math.log(most)))
    if whole:
        return float(max(2, round(alpha)))
    return rng.choice([1 + 2.0**-20, 1.5, 2.0, alpha + 1e-3, float(max(2, round(alpha)))])


def _sampled(points, rate):
    return [((1 - rate) * q + rate * p, q) for p, q in points]


def _of_points(points, alpha):
    """The larger direction of D_alpha, over finitely many (P, Q) masses."""
    a = mp.mpf(alpha)

    def one(pairs):
        if any(p > 0 and q == 0 for p, q in pairs):
            return mp.inf
        return mp.log(mp.fsum(mp.power(p, a) * mp.power(q, 1 - a) for p, q in pairs if p > 0)) / (a - 1)

    return max(one(points), one([(q, p) for p, q in points]))


def _binomial(mu, rate, alpha):
    """Sampled Gaussian noise at a whole order."""
    n, total, term = int(alpha), mp.mpf(0), (1 - rate) ** int(alpha)
    for k in range(n + 1):
        total += term * mp.exp(mp.mpf(k * (k - 1)) / 2 * mu * mu)
        term *= mp.mpf(n - k) / (k + 1) * rate / (1 - rate)
    return mp.log(total) / (n - 1)


def _trapezoid(log_weight, power, low, high, step):
    """E_Q[power(x)] for an analytic integrand: the sum over the steps converges geometrically."""
    n = int((high - low) / step) + 2
    return mp.fsum(mp.exp(log_weight(low + i * step)) * power(low + i * step) for i in range(n)) * step


def _gaussian(mu, rate, alpha):
    """Both directions of sampled Gaussian noise at any order."""
    a, step = mp.mpf(alpha), min(mp.mpf("0.25"), mp.mpf("0.15") / mu)

    def m(x):
        return 1 - rate + rate * mp.exp(mu * x - mu * mu / 2)

    def bell(x):
        return -x * x / 2 - mp.log(2 * mp.pi) / 2

    def divergence(p, left, right):
        return mp.log(_trapezoid(bell, lambda x: m(x) ** p, -25 - left * mu, 25 + right * mu, step)) / (a - 1)

    values = divergence(a, 0, a), divergence(1 - a, a, 0)
    # The theorem that removal is the worse direction, which the accountant relies on.
    assert values[0] >= values[1] * (1 - mp.mpf(10) ** -25)
    return values[0]


def _laplace(epsilon, rate, alpha):
    """Sampled Laplace noise, in closed form but for one integral over the losses between the atoms."""
    a = mp.mpf(alpha)

    def moment(p):
        m = [1 - rate + rate * mp.exp(x) for x in (-epsilon, epsilon)]
        ends = m[0] ** p / 2 + m[1] ** p * mp.exp(-epsilon) / 2
        cuts = [-epsilon, *(epsilon - epsilon * 2 * mp.mpf(2) ** -i for i in range(1, 12)), epsilon]
        inner = mp.quad(lambda x: mp.exp(-(x + epsilon) / 2) * (1 - rate + rate * mp.exp(x)) ** p / 4, cuts)
        return ends + inner

    return max(mp.log(moment(p)) / (a - 1) for p in (a, 1 - a))


def _response(epsilon, k):
    e = mp.exp(-_q(epsilon))
    whole = 1 + (k - 1) * e
    return [(1 / whole, e / whole), (e / whole, 1 / whole)] + [(e / whole, e / whole)] * (k - 2)


def _discrete_laplace(scale, s):
    b = _q(scale)
    head, end = mp.tanh(1 / (2 * b)), 1 / (1 + mp.exp(-1 / b))
    inner = [(head * mp.exp((x - s) / b), head * mp.exp(-x / b)) for x in range(1, s)]
    return [(end * mp.exp(-s / b), end), *inner, (end, end * mp.exp(-s / b))]


def _discrete_gaussian(sigma, s, alpha):
    v, reach = 2 * _q(sigma) ** 2, math.ceil(16 * sigma)
    low, high = -reach - math.ceil(alpha * s), reach + math.ceil(alpha * s)
    w = {x: mp.exp(-mp.mpf(x * x) / v) for x in range(low, high + s + 1)}
    whole = mp.fsum(w.values())
    return [(w[x - s] / whole, w[x] / whole) for x in range(low + s, high + 1)]


def _leaf(rng):
    """A random mechanism, an order, and its divergence there."""
    rate = F(1) if rng.random() < 0.4 else rng.choice([F(1, 2), F(1, 100), F(99, 100), F(1, 10**7), F(3, 1000)])
    epsilon = rng.choice([F(rng.randint(1, 60), 10), F(1, 10**4), F(rng.randint(7, 30))])

    def wrapped(event):
        return event if rate == 1 else acc.PoissonSampled(event, rate)

    kind = rng.randint(0, 6)
    if kind <= 1:
        sigma = F(rng.randint(3, 300), rng.choice([10, 20, 100]))
        event, mu = wrapped(acc.Gaussian(sigma)), 1 / _q(sigma)
        if rate == 1:
            alpha = _order(rng)
            return event, alpha, mp.mpf(alpha) * mu * mu / 2
        if kind == 0:
            alpha = _order(rng, whole=True)
            return event, alpha, _binomial(mu, _q(rate), alpha)
        alpha = _order(rng, most=max(3.0, min(60.0, float(40 / mu))))
        return event, alpha, _gaussian(mu, _q(rate), alpha)
    if kind == 2:
        alpha, b = _order(rng, most=500), max(F(1, 12), 1 / epsilon)
        return wrapped(acc.Laplace(b)), alpha, _laplace(1 / _q(b), _q(rate), alpha)
    if kind == 3:
        alpha, k = _order(rng), rng.randint(2, 9)
        return (
            wrapped(acc.RandomizedResponse(epsilon, k)),
            alpha,
            _of_points(_sampled(_response(epsilon, k), _q(rate)), alpha),
        )
    if kind == 4:
        alpha, s, b = _order(rng), rng.randint(1, 5), max(F(1, 12), 1 / epsilon)
        return wrapped(acc.DiscreteLaplace(b, s)), alpha, _of_points(_sampled(_discrete_laplace(b, s), _q(rate)), alpha)
    if kind == 5:
        alpha = _order(rng)
        return wrapped(acc.PureDP(epsilon)), alpha, _of_points(_sampled(_response(epsilon, 2), _q(rate)), alpha)
    alpha, s, sigma = _order(rng, most=40), rng.randint(1, 2), rng.choice([F(1, 2), F(1), F(11, 5), F(9, 2)])
    points = _sampled(_discrete_gaussian(sigma, s, alpha), _q(rate))
    return wrapped(acc.DiscreteGaussian(sigma, s)), alpha, _of_points(points, alpha)


@pytest.mark.parametrize(
    "seed", [*range(CASES), *(pytest.param(s, marks=pytest.mark.soak) for s in range(CASES, MANY))]
)
def test_renyi_of_random_mechanisms_is_at_least_the_truth_and_no_more_than_its_width_above(seed):
    rng = random.Random(seed)
    with mp.workdps(40):
        for _ in range(10):
            event, alpha, truth = _leaf(rng)
            found = mp.mpf(float(acc.renyi(event, [alpha])[0]))
            assert truth <= found <= truth * (1 + mp.mpf(WIDTH)), (event, alpha, truth, found)


@pytest.mark.parametrize(
    ("mu", "rate", "alpha"), [(20, "0.01", 7010), (20, "0.5", 3), (200, "0.003", 50), (1000, "1e-7", 2)]
)
def test_renyi_of_rare_samples_with_hardly_any_noise_is_as_near(mu, rate, alpha):
    """Losses of 400 and a million: alpha rho, which was all that was told there, is too large by the sample's ln."""
    found = mp.mpf(float(acc.renyi(acc.PoissonSampled(acc.Gaussian(F(1, mu)), rate), [alpha])[0]))
    with mp.workdps(40):
        truth = _binomial(mp.mpf(mu), _q(F(rate)), alpha)
        assert truth <= found <= truth * (1 + mp.mpf(WIDTH))


@pytest.mark.parametrize("seed", range(3))
def test_renyi_adds_over_compositions_and_takes_the_worst_direction_and_part(seed):
    rng = random.Random(100 + seed)
    with mp.workdps(40):
        for _ in range(4):
            (one, alpha, first), n = _leaf(rng), rng.choice([1, 40, 10**6])
            second = mp.mpf(alpha) * 9 / 2
            event = acc.Composed([acc.Repeated(one, n), acc.Repeated(acc.Gaussian(2), 36)])
            found = mp.mpf(float(acc.renyi(event, [alpha])[0]))
            assert n * first + second <= found <= (n * first + second) * (1 + mp.mpf(WIDTH))
            worst = mp.mpf(float(acc.renyi(acc.Parallel([one, acc.GaussianDP(3)]), [alpha])[0]))
            assert max(first, second) <= worst <= max(first, second) * (1 + mp.mpf(WIDTH))


@pytest.mark.parametrize(
    ("event", "alpha", "truth"),
    [
        (acc.Gaussian(1), 64, 32.0),
        (acc.Gaussian(1), 256, 128.0),
        (acc.GaussianDP(3), 8, 36.0),
        (acc.GaussianDP(3), 14, 63.0),
        (acc.Gaussian("0.5"), 32, 64.0),
        (acc.DiscreteGaussian(2), 60, 7.5),
        (acc.Gaussian(1), 10**4, 5000.0),
    ],
    ids=str,
)
def test_renyi_of_gaussian_noise_is_alpha_mu_squared_over_two(event, alpha, truth):
    assert truth <= acc.renyi(event, [alpha])[0] <= truth * (1 + WIDTH)


def test_renyi_without_replacement_is_that_of_the_mirrored_pair_and_above_two_actual_data_sets():
    with mp.workdps(40):
        for mu, rate, alpha in ((mp.mpf(1), mp.mpf("0.1"), 6.5), (mp.mpf(1) / 2, mp.mpf("0.3"), 30.0)):
            found = acc.renyi(acc.SampledWithoutReplacement(acc.GaussianDP(str(mu)), str(rate)), [alpha])[0]

            def gain(x, mu=mu, rate=rate, alpha=alpha):
                m = 1 - rate + rate * mp.exp(mu * x - mu * mu / 2)
                return mp.npdf(x) * (m ** mp.mpf(alpha) + m ** (1 - mp.mpf(alpha)) - m - 1)

            cuts = [mu / 2, *(mu / 2 + i for i in range(1, 50, 2))]
            truth = mp.log1p(mp.quad(gain, cuts)) / (alpha - 1)
            assert truth <= found <= truth * (1 + mp.mpf(WIDTH))
            assert found >= _gaussian(mu, rate, alpha)


def test_renyi_never_exceeds_the_largest_loss_nor_alpha_rho():
    orders = [1 + 2.0**-30, 1.25, 2, 30, 1e4, 1e8, 1e300]
    for event in (
        acc.PureDP(1),
        acc.Repeated(acc.PoissonSampled(acc.Laplace("0.5"), "0.2"), 7),
        acc.Composed([acc.RandomizedResponse(3, 5), acc.DiscreteLaplace(2, 3)]),
        acc.PureDP("1e-150"),
        acc.PureDP(1000),
        acc.PoissonSampled(acc.PureDP(1000), "0.5"),
    ):
        found = acc.renyi(event, orders)
        assert np.all(found > 0)
        assert np.all(found <= acc.bounds(event, 0)[1])
        assert np.all(found <= np.asarray(orders) * float(acc.rho(event)) * (1 + 1e-15) + 5e-324)
        assert np.all(np.diff(found) >= -1e-8 * found[1:])


def test_renyi_is_infinite_where_the_mechanism_may_fail_and_refuses_classes():
    assert acc.renyi(acc.ApproxDP(1, "1e-9"), [2]) == [math.inf]
    assert acc.renyi(acc.PoissonSampled(acc.ApproxDP(1, "1e-9"), "0.1"), [2]) == [math.inf]
    for event in (acc.ZCDP(1), acc.BoundedRange(1)):
        with pytest.raises(ParameterError, match="rho"):
            acc.renyi(event, [2])


def test_the_epsilon_of_the_renyi_curve_is_above_the_certified_one():
    """D_alpha gives (D_alpha + ln(1/delta)/(alpha - 1))-DP: with orders of every size never below the truth."""
    event = acc.Repeated(acc.PoissonSampled(acc.Gaussian("1.1"), "0.01"), 10**4)
    orders = np.concatenate((np.linspace(1.5, 64, 60), np.geomspace(65, 1e4, 20)))
    for delta in (1e-5, 1e-30, 1e-100):
        converted = np.min(acc.renyi(event, orders) - math.log(delta) / (orders - 1))
        low, _ = acc.bounds(event, str(delta))
        assert low <= converted <= 1.5 * low
