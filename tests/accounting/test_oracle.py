"""What the accountant says at its wide corners, held to oracles that share nothing with it (`oracles.py`).

Orders to 1e4, deltas to 1e-100, counts to 1e6. An epsilon is chosen, the truth is delta there; then all answers are
asked for both. Nothing is statistical.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction as F

import mpmath as mp
import pytest

from accounting.oracles import (
    DIGITS,
    check_answers,
    discrete_gaussian,
    few_outcomes,
    gaussian,
    inverted,
    laplace_moment,
    mpf,
    sampled,
    sampled_once,
    tilted_mean,
)
from hubbub import accounting as acc

COUNTS = [1, 2, 30, 10**3, 10**4, 10**6]


@pytest.mark.parametrize("goal", [-2, -12, -40, -100])
@pytest.mark.parametrize("times", [1, 30, 10**6])
def test_any_number_of_gaussians_is_one_gaussian(times, goal):
    rng = random.Random(times + goal)
    with mp.workdps(DIGITS + 120):
        sigma = F(rng.randint(3, 400), 10) * math.isqrt(times)
        mu = mp.sqrt(times) / mpf(sigma)
        # An epsilon at which delta is about 10^goal.
        epsilon = F(mp.nstr(mu * mu / 2 + mu * mp.sqrt(2 * -goal * mp.log(10)), 12))
        event = acc.Repeated(acc.Gaussian(sigma), times)
        check_answers(event, epsilon, gaussian(mu, mpf(epsilon)), digits=1e-12)
        for alpha in (1.5, 2.0, 1e4):
            truth = mp.mpf(alpha) * mu * mu / 2
            assert truth <= acc.renyi(event, [alpha])[0] <= truth * (1 + mp.mpf("2e-9"))


def _response(rng, times):
    k = rng.randint(2, 6) if times <= 1000 else 2
    one = F(max(1, round(rng.uniform(0.3, 3) * 1000 / math.sqrt(times))), 1000)
    e = mp.exp(mpf(one))
    p = [e / (e + k - 1), mp.mpf(k - 2) / (e + k - 1), 1 / (e + k - 1)]
    return acc.RandomizedResponse(one, k), p, mpf(one)


def _noise(rng, times):
    b, s = F(max(1, round(rng.uniform(0.3, 3) * 100 * math.sqrt(times))), 100), rng.choice([1, 2])
    s = s if times <= 1000 else 1
    a = mp.exp(-1 / mpf(b))
    # Integers at most 0 have loss s / b, those at least s the opposite; the one between, for s = 2, has none.
    end = 1 / (1 + a)
    p = [end, (1 - a) / (1 + a) * a, end * a**2] if s == 2 else [end, mp.mpf(0), end * a]
    return acc.DiscreteLaplace(b, s), p, s / mpf(b)


def _few_case(seed, times):
    rng = random.Random(seed)
    with mp.workdps(DIGITS):
        inner, p, unit = (_response if rng.random() < 0.5 else _noise)(rng, times)
        assert abs(sum(p) - 1) < mp.mpf(10) ** -50
        mean = times * unit * (p[0] - p[2])
        spread = unit * mp.sqrt(times * (p[0] + p[2] - (p[0] - p[2]) ** 2))
        goal = rng.choice([2, 9, 30, 90])
        epsilon = mean + spread * mp.sqrt(2 * goal * mp.log(10))
        epsilon = F(mp.nstr(min(epsilon, times * unit * mp.mpf("0.9")), 9))
        event = acc.Repeated(inner, times)
        check_answers(event, epsilon, few_outcomes(p, unit, times, mpf(epsilon)))
        for alpha in (1.25, 30.0, 1e4):
            forth, back = (
                mp.log(mp.fsum(x**a * y ** (1 - a) for x, y in zip(p, p[::-1], strict=True) if x)) / (a - 1)
                for a in (mp.mpf(alpha), mp.mpf(alpha))
            )
            truth = times * max(forth, back)
            assert truth <= acc.renyi(event, [alpha])[0] <= truth * (1 + mp.mpf("2e-9"))


@pytest.mark.parametrize("times", COUNTS)
def test_outcomes_of_few_kinds_are_binomial_and_trinomial_sums(times):
    _few_case(times, times)


@pytest.mark.parametrize("seed", [s if s % 10 == 0 else pytest.param(s, marks=pytest.mark.soak) for s in range(300)])
def test_outcomes_of_few_kinds_are_such_sums_over_a_wide_family(seed):
    """Three hundred, of which each tenth is run every time."""
    _few_case(1000 + seed, random.Random(seed).choice(COUNTS))


@pytest.mark.parametrize(
    ("sigma", "times", "far", "many"),
    [
        ("2.5", 1, 6, False),
        ("1.3", 3, 12, False),
        ("30", 900, 20, True),
        *(
            pytest.param(str(s), n, far, True, marks=pytest.mark.soak)
            for s in (7, 30, 100, 120)
            for n in (300, 10**4, 10**5)
            for far in (2, 9, 20)
            if n < 60 * s * s
        ),
    ],
)
def test_sums_of_discrete_gaussians(sigma, times, far, many):
    """`far`: how many deviations above its mean the loss is asked about."""
    with mp.workdps(DIGITS):
        s = mpf(sigma)
        mu = mp.sqrt(times) / s
        epsilon = F(mp.nstr(mu * mu / 2 + far * mu, 9))
        truth = discrete_gaussian(s, times, mpf(epsilon), many=many)
        check_answers(acc.Repeated(acc.DiscreteGaussian(sigma), times), epsilon, truth)


@pytest.mark.parametrize(
    ("scale", "times", "theta"),
    [
        ("20", 2000, "8"),
        ("1000", 10**6, "4"),
        *(
            pytest.param(str(b), n, theta, marks=pytest.mark.soak)
            for b, n in ((3, 300), (30, 3000), (90, 10**4), (9000, 10**6), (1000, 10**6))
            for theta in ("0.7", "3", "20")
            if (b, theta) != (3, "20")
        ),
    ],
)
def test_many_laplaces_by_inversion_of_their_closed_form(scale, times, theta):
    with mp.workdps(DIGITS):
        moment, at = laplace_moment(1 / mpf(scale)), mp.mpf(theta)
        epsilon = tilted_mean(moment, times, at)
        truth = inverted(moment, times, at, mpf(epsilon))
        check_answers(acc.Repeated(acc.Laplace(scale), times), epsilon, truth, apart=5e-9)


def test_one_laplace_and_one_sampled_gaussian_have_closed_forms():
    with mp.workdps(DIGITS + 60):
        for b in (F(1, 3), F(2), F(70)):
            for part in (F(1, 10), F(9, 10)):
                epsilon = F(str(float(part / b)))
                check_answers(acc.Laplace(b), epsilon, -mp.expm1((mpf(epsilon) - 1 / mpf(b)) / 2))
        for sigma, rate, e in (("0.7", "0.01", "3"), ("1", "0.5", "20"), ("5", "1e-3", "0.01"), ("2", "0.9", "8")):
            truth = sampled_once(mpf(sigma), mpf(rate), mpf(e))
            check_answers(acc.PoissonSampled(acc.Gaussian(sigma), rate), F(e), truth)


SAMPLED = [
    ("4", "0.1", 300, "40"),
    *(
        pytest.param(sigma, rate, n, theta, marks=pytest.mark.soak)
        for sigma, rate, n in (
            ("0.9", "0.02", 2000),
            ("1.1", "0.01", 10**4),
            ("2", "0.3", 20),
            ("8", "0.5", 1000),
            ("1.5", "0.001", 10**6),
            ("30", "0.02", 10**6),
        )
        for theta in ("1.5", "9", "40")
    ),
]


@pytest.mark.parametrize(("sigma", "rate", "times", "theta"), SAMPLED)
def test_many_sampled_gaussians_by_inversion_of_a_long_quadrature(sigma, rate, times, theta):
    with mp.workdps(45):
        epsilon, truth = sampled(mpf(sigma), mpf(rate), times, mp.mpf(theta))
        check_answers(acc.Repeated(acc.PoissonSampled(acc.Gaussian(sigma), rate), times), epsilon, truth)
