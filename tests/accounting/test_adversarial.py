"""Attempts to break lower <= truth <= upper: random small compositions against exact enumeration with 50 digits.

Every finite mechanism is written down a second time here, as pairs of P- and Q-masses of mpmath numbers; nothing of
the accountant is used. Derandomised: the cases are the same in every run.
"""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
from fractions import Fraction as F

import mpmath as mp
import numpy as np
import pytest

from hubbub import accounting as acc
from hubbub.accounting import pairs, ranges
from hubbub.accounting.certify import upper_epsilon
from hubbub.accounting.outcomes import outcomes
from hubbub.accounting.questions import bounds, delta_bounds
from hubbub.errors import ParameterError


def _q(x):
    return mp.mpf(x.numerator) / x.denominator


def _response(epsilon, k=2):
    e = mp.exp(-_q(epsilon))
    whole = 1 + (k - 1) * e
    return [(1 / whole, e / whole), (e / whole, 1 / whole)] + [(e / whole, e / whole)] * (k - 2)


def _approximate(epsilon, delta):
    kept = [((1 - _q(delta)) * a, (1 - _q(delta)) * b) for a, b in _response(epsilon)]
    return [*kept, (_q(delta), mp.mpf(0)), (mp.mpf(0), _q(delta))]


def _discrete_laplace(scale, s):
    b = _q(scale)
    head, end = mp.tanh(1 / (2 * b)), 1 / (1 + mp.exp(-1 / b))
    inner = [(head * mp.exp((x - s) / b), head * mp.exp(-x / b)) for x in range(1, s)]
    return [(end * mp.exp(-s / b), end), *inner, (end, end * mp.exp(-s / b))]


def _discrete_gaussian(sigma, s):
    v, reach = 2 * _q(sigma) ** 2, math.ceil(sigma * 20) + s
    w = {y: mp.exp(-mp.mpf(y * y) / v) for y in range(-reach, reach + s + 1)}
    whole = sum(w.values())
    return [(w[y] / whole, w[y + s] / whole) for y in range(-reach, reach + 1)]


def _sampled(points, rate):
    return [((1 - _q(rate)) * b + _q(rate) * a, b) for a, b in points]


def _compose(x, y):
    merged: dict = {}
    for (a, b), (c, d) in itertools.product(x, y):
        key = "+" if b * d == 0 else ("-" if a * c == 0 else mp.nstr(mp.log(a * c / (b * d)), 25))
        p, q = merged.get(key, (mp.mpf(0), mp.mpf(0)))
        merged[key] = (p + a * c, q + b * d)
    return list(merged.values())


def _delta(points, epsilon):
    grow = mp.exp(_q(epsilon))
    return mp.fsum(a - grow * b for a, b in points if a > grow * b)


def _leaf(rng):
    epsilon = rng.choice([F(rng.randint(1, 30), 10), F(rng.randint(1, 999), 7919), F(1, 10**5), F(rng.randint(3, 25))])
    match rng.randint(0, 4):
        case 0:
            return acc.PureDP(epsilon), _response(epsilon)
        case 1:
            lost = rng.choice([F(1, 10**20), F(1, 10**9), F(1, 100), F(1, 2)])
            return acc.ApproxDP(epsilon, lost), _approximate(epsilon, lost)
        case 2:
            k = rng.randint(2, 9)
            return acc.RandomizedResponse(epsilon, k), _response(epsilon, k)
        case 3:
            s, scale = rng.randint(1, 4), max(F(1, 20), 1 / epsilon)
            return acc.DiscreteLaplace(scale, s), _discrete_laplace(scale, s)
        case _:
            s, sigma = rng.randint(1, 2), rng.choice([F(1, 2), F(1), F(11, 5)])
            return acc.DiscreteGaussian(sigma, s), _discrete_gaussian(sigma, s)


def _composition(rng):
    parts, adding, removing = [], [(mp.mpf(1), mp.mpf(1))], [(mp.mpf(1), mp.mpf(1))]
    for _ in range(rng.randint(1, 3)):
        event, points = _leaf(rng)
        there, back = points, [(b, a) for a, b in points]
        if rng.random() < 0.4:
            rate = rng.choice([F(1, 2), F(1, 100), F(99, 100), F(1, 10**6), 1 - F(1, 10**9)])
            event = acc.PoissonSampled(event, rate)
            there = _sampled(points, rate)
            back = [(b, a) for a, b in there]
        times = rng.choice([1, 2, 3]) if len(points) < 12 else 1
        parts.append(acc.Repeated(event, times))
        for _ in range(times):
            removing, adding = _compose(removing, there), _compose(adding, back)
        if len(removing) > 400:
            break
    return acc.Composed(parts), removing, adding


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.soak) for s in range(12, 120))])
def test_random_finite_compositions_never_leave_their_bounds(seed):
    rng = random.Random(seed)
    with mp.workdps(50):
        for _ in range(3):
            event, removing, adding = _composition(rng)
            top = max(float(mp.log(a / b)) for a, b in removing + adding if a > 0 and b > 0)
            for share in (0.0, rng.random() / 2, 1 - 1e-6):
                epsilon = F(f"{max(0.0, top * share):.12g}")
                truth = max(_delta(removing, epsilon), _delta(adding, epsilon))
                if truth < mp.mpf(10) ** -80:
                    continue
                low, high = delta_bounds(event, epsilon, 1e-1)
                assert low <= truth <= high * (1 + 1e-15)
                if truth < 1:
                    more, less = (F(str(min(float(truth) * s, 1 - 1e-15))) for s in (1 + 1e-14, 1 - 1e-14))
                    try:
                        assert bounds(event, more)[0] <= float(epsilon) * (1 + 1e-15)
                    except ParameterError as error:
                        assert "width" in str(error)
                    assert upper_epsilon(event, less) >= float(epsilon) * (1 - 1e-15)


@pytest.mark.parametrize(
    "event",
    [
        acc.PoissonSampled(acc.DiscreteGaussian("0.02"), "0.5"),
        acc.PoissonSampled(acc.PureDP(1000), "0.5"),
        acc.PoissonSampled(acc.Laplace("0.001"), "0.5"),
        acc.PoissonSampled(acc.Gaussian("0.001"), "0.5"),
        acc.SampledWithoutReplacement(acc.PureDP(1000), "0.5"),
        acc.PureDP(1000),
        acc.DiscreteLaplace("0.001"),
    ],
    ids=str,
)
def test_losses_beyond_floats_are_bounded_by_the_rational_routes(event):
    # All of these are told apart with probability near 1/2 or 1: an upper bound near 0 would be a disaster.
    low, high = bounds(event, "1e-6")
    assert low == 0.0
    assert high > 400
    assert acc.epsilon(event, "1e-6") == high
    assert delta_bounds(event, F(1), 1e-2)[1] == 1.0


@pytest.mark.parametrize("name", ["1e-400", "1e400"])
def test_scales_beyond_floats_answer(name):
    for event in (acc.Gaussian(name), acc.Laplace(name)):
        low, high = bounds(event, "1e-6")
        assert (low, high) == ((0.0, math.inf) if name == "1e-400" else (0.0, 0.0))


def test_a_delta_below_floats_keeps_a_true_interval():
    low, high = bounds(acc.Gaussian(2), "1e-400")
    # By the closed form in 60 digits.
    with mp.workdps(460):
        mu = mp.mpf(1) / 2

        def excess(e):
            return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu) - mp.mpf(10) ** -400

        assert excess(mp.mpf(low)) > 0
        assert excess(mp.mpf(high)) <= 0


@pytest.mark.parametrize("rate", ["0.9999999999", 1 - F(1, 10**20), "0.3", "1e-9"])
def test_sampled_losses_are_right_at_rates_near_their_ends(rate):
    exact = F(rate)
    points = np.array([-60.0, -30.0, -2.0, -1e-9, 1e-12, 0.7, 3.0, 80.0])
    found = pairs.mixed(points, float(exact), float(1 - exact))
    with mp.workdps(60):
        for x, y in zip(points, found, strict=True):
            truth = mp.log(1 - _q(exact) + _q(exact) * mp.exp(mp.mpf(float(x))))
            assert abs(mp.mpf(float(y)) - truth) <= 8 * 2**-53 * (1 + abs(truth))


def test_nested_samples_at_delta_zero_multiply():
    low, high = bounds(acc.SampledWithoutReplacement(acc.SampledWithoutReplacement(acc.PureDP(1), "0.5"), "0.5"), 0)
    assert low <= math.log1p(0.25 * math.expm1(1)) <= high
    assert high - low < 1e-12


def test_sampling_without_replacement_is_bounded_below_by_two_actual_data_sets():
    event = acc.Repeated(acc.SampledWithoutReplacement(acc.PureDP(1), "0.3"), 3)
    one = _sampled(_response(F(1)), F(3, 10))
    with mp.workdps(40):
        removing = _compose(_compose(one, one), one)
        adding = [(b, a) for a, b in removing]
        for e in (F(1, 10), F(1, 2), F(1)):
            truth = max(_delta(removing, e), _delta(adding, e))
            low, high = delta_bounds(event, e, 1e-2)
            # These two data sets are allowed, so no lower bound may count more than the worst mechanism known to exist.
            assert low <= truth * (1 + 1e-12) <= high * (1 + 1e-11)


def _range_tree(epsilon, times, at, grid):
    """The best adaptive strategy over a grid of intervals, by recursion in plain floats: a true lower bound."""
    if times == 0:
        return max(0.0, 1 - math.exp(at))
    best = 0.0
    for t in np.linspace(0, epsilon, grid):
        p = (1 - math.exp(t - epsilon)) / (1 - math.exp(-epsilon))
        value = p * _range_tree(epsilon, times - 1, at - t, grid)
        value += (1 - p) * _range_tree(epsilon, times - 1, at - t + epsilon, grid)
        best = max(best, value)
    return best


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.05, 0.31, 0.77])
def test_no_adaptive_strategy_beats_the_range_bound(epsilon, share):
    event = acc.Repeated(acc.BoundedRange(epsilon), 2)
    at = F(str(2 * epsilon * share))
    low, high = delta_bounds(event, at, 1e-2)
    tried = _range_tree(epsilon, 2, float(at), 120)
    assert tried <= high * (1 + 1e-12)
    assert low <= tried * 1.01 + 1e-6


def test_the_profile_of_ranges_from_below_stays_below_between_lattice_points():
    coarse, fine = ranges.adaptive([(1.0, 3)], 1 / 8), ranges.adaptive([(1.0, 3)], 1 / 64)
    down = ranges.from_profile(coarse)[1]
    loss = (down.first + np.arange(down.mass.size)) * down.h
    for k in range(fine.above.size):
        e = (fine.first + k) * fine.h
        value = float(np.sum(down.mass * np.maximum(-np.expm1(np.minimum(e - loss, 0.0)), 0.0)))
        assert value <= fine.above[k] * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize(
    ("epsilon", "times"), [(0.2, 50), (1.5, 4), (0.02, 60), pytest.param(0.01, 300, marks=pytest.mark.soak)]
)
def test_fixed_ranges_are_the_supremum_over_the_interval(epsilon, times):
    for at in (0.0, 0.1 * epsilon * times, 0.41 * epsilon * times):
        value, error = ranges.fixed_delta(epsilon, times, at)
        assert error <= 1e-7 * value + 1e-15
        with mp.workdps(40):
            for t in np.linspace(0, epsilon, 41):
                x, w = mp.mpf(float(t)), mp.exp(-mp.mpf(epsilon))
                p = (1 - w * mp.exp(x)) / (1 - w)
                tried = mp.fsum(
                    mp.binomial(times, i)
                    * p ** (times - i)
                    * (1 - p) ** i
                    * max(0, 1 - mp.exp(at - times * x + i * mp.mpf(epsilon)))
                    for i in range(times + 1)
                )
                assert tried <= (value + error) * (1 + 1e-12)


def test_fixed_ranges_beside_others_lie_between_a_member_and_the_adaptive_ones():
    event = acc.Composed([acc.Repeated(acc.BoundedRange("0.3", adaptive=False), 3), acc.Laplace(2)])
    low, high = bounds(event, "1e-3")
    member = acc.Composed([acc.Repeated(acc.PureDP("0.15"), 3), acc.Laplace(2)])
    assert low <= bounds(member, "1e-3")[1]
    assert high >= bounds(acc.Composed([acc.Repeated(acc.BoundedRange("0.3"), 3), acc.Laplace(2)]), "1e-3")[0]


def test_a_wide_zcdp_event_is_bounded_on_both_sides():
    low, high = bounds(acc.ZCDP("1e6"), "1e-6")
    assert low <= high <= 1.001 * low


def test_outcomes_one_by_one_equal_the_enumeration():
    pair = pairs.AtomicPair(pairs.Atoms(np.array([-1.0, 0.5]), np.array([0.3, 0.7]), np.zeros(2)))
    found = outcomes([(pair, 7)])
    assert found is not None
    truth = sum(math.comb(7, i) * 0.7**i * 0.3 ** (7 - i) * max(0, 1 - math.exp(0.4 - (1.5 * i - 7))) for i in range(8))
    assert found.below(0.4) <= truth * (1 + 1e-14)
    assert found.above(0.4) >= truth * (1 - 1e-14)
    assert found.above(0.4) - found.below(0.4) < 1e-10


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is Linux's")
def test_the_widest_composition_stays_below_500_megabytes_of_process_memory():
    # VmHWM is this program's alone; ru_maxrss starts at what the process held that began it.
    script = """
from hubbub import accounting as acc
try:
    acc.bounds(acc.Repeated(acc.PoissonSampled(acc.Gaussian("0.8"), "0.001"), 10**6), "1e-6", width=1e-9)
except acc.events.ParameterError as error:
    assert "Ask for width >=" in str(error) and "relax delta" in str(error), error
    held = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(int(held.split()[1]) * 1024)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 50e6 < int(done.stdout) < 500e6


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (acc.Repeated(acc.Laplace("0.01", 2), 1000), "1e-6"),
        (acc.Repeated(acc.Laplace(3), 10**6), "1e-12"),
        (acc.Repeated(acc.Laplace(1), 2), "1e-30"),
        (acc.Repeated(acc.PoissonSampled(acc.Laplace("0.05"), "0.9"), 2), "1e-12"),
        (acc.Repeated(acc.DiscreteLaplace(1, 2), 10**6), "1e-6"),
        (
            acc.Composed([acc.Repeated(acc.PoissonSampled(acc.Gaussian(10000), "0.001"), 30), acc.Gaussian(30000)]),
            "1e-12",
        ),
    ],
    ids=["wide", "million", "end", "sampled", "discrete million", "narrow"],
)
def test_estimates_lie_between_the_bounds_where_losses_are_wide(event, delta):
    low, high = bounds(event, delta, width=max(1e-9, 1e-2 * upper_epsilon(event, F(delta))))
    assert low * (1 - 1e-9) - 1e-11 <= acc.epsilon(event, delta) <= high * (1 + 1e-9) + 1e-11
