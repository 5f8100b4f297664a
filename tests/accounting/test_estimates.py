"""Estimates never leave what is certified, and what is certified is returned: over a wide family, and by construction.

The family is the same in every run; nothing is statistical.
"""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction as F
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from hubbub import accounting as acc
from hubbub.accounting import certify, contour, convolution, lattice, normal, questions
from hubbub.accounting.questions import bounds, delta_bounds
from hubbub.errors import ParameterError

# Those that take less than a second, of every kind; the others are soaked.
CASES, MANY = (1, 5, 6, 8, 10, 15, 17, 19, 20, 29, 30, 34, 37), 1200
DELTAS = ["1e-2", "1e-5", "1e-9", "1e-15", "1e-40", "1e-100"]


def _part(rng, kinds):
    match rng.choice(kinds):
        case "sampled":
            sigma = F(rng.randint(4, 400), rng.choice([10, 10, 100]))
            event = acc.PoissonSampled(acc.Gaussian(sigma), F(1, rng.choice([2, 3, 20, 100, 1000, 10**4])))
            return acc.Repeated(event, rng.choice([1, 20, 500, 3000, 10**5, 10**6]))
        case "gaussian":
            return acc.Gaussian(F(rng.randint(5, 60), 2))
        case "laplace":
            return acc.Repeated(acc.Laplace(F(rng.randint(3, 60), rng.randint(1, 5))), rng.choice([1, 5, 300, 10**6]))
        case "discrete laplace":
            event = acc.DiscreteLaplace(F(rng.randint(3, 60), rng.randint(1, 5)), rng.randint(1, 3))
            return acc.Repeated(event, rng.choice([1, 5, 40, 300]))
        case "discrete gaussian":
            return acc.Repeated(
                acc.DiscreteGaussian(F(rng.randint(5, 60), 5), rng.randint(1, 2)), rng.choice([1, 2, 30])
            )
        case "response":
            event = acc.RandomizedResponse(F(rng.randint(1, 40), rng.randint(5, 30)), rng.randint(2, 5))
            return acc.Repeated(event, rng.choice([1, 5, 40, 300]))
        case _:
            return acc.Repeated(acc.ApproxDP(F(rng.randint(1, 40), 20), "1e-9"), rng.choice([1, 2, 40]))


def _event(rng):
    kinds = ["sampled"] * 3 + [
        "gaussian",
        "laplace",
        "discrete laplace",
        "discrete gaussian",
        "response",
        "approximate",
    ]
    chosen = ["sampled", "gaussian"] if rng.random() < 0.5 else kinds
    return acc.Composed([_part(rng, chosen) for _ in range(rng.choice([1, 1, 2]))])


SOAKED = [pytest.param(s, marks=pytest.mark.soak) for s in range(MANY) if s not in CASES]


def _forget():
    certify.certified_epsilon.cache_clear()
    certify.certified_delta.cache_clear()
    certify._certified.clear()


def _holds(event, delta, estimate, widths):
    """Whether bounds of every width hold the estimate.

    One that is an upper bound may lie above narrower ones, which are returned from then on for every width.
    """
    upper = questions._quick_epsilon(event, delta) is None and questions._dear_epsilon(event, delta) is None
    narrower = False
    for part in widths:
        width = part and part * max(estimate, 1e-9)
        try:
            low, high = bounds(event, delta, width=width)
            narrower |= part is not None
        except ParameterError as error:
            assert part, (event, delta)
            assert "width" in str(error)
            continue
        assert low <= estimate, (event, delta, estimate, width, low, high)
        assert estimate <= high or (upper and narrower), (event, delta, estimate, width, low, high)


@pytest.mark.parametrize("seed", [*CASES, *SOAKED])
def test_estimates_of_random_events_lie_in_bounds_that_are_asked_later_and_earlier(seed):
    rng = random.Random(seed)
    event, delta = _event(rng), F(rng.choice(DELTAS))
    widths = [None, *rng.sample([0.5, 3e-2, 1e-3], 1 if seed in CASES else 3), *([] if seed in CASES else [1e-4])]
    rng.shuffle(widths)
    _forget()
    first = acc.epsilon(event, delta)
    _holds(event, delta, first, widths)
    again = acc.epsilon(event, delta)
    _holds(event, delta, again, widths)
    _forget()
    low, high = bounds(event, delta)
    # Bounds themselves first: what is certified without an estimate is nearly as narrow.
    assert low * (1 - 1e-9) <= again <= first * (1 + 1e-9) <= high * (1 + 2e-9), (event, delta, first, low, high)
    if low > 0 and high < math.inf:
        at = F(f"{(low + high) / 2:.12g}")
        found = acc.delta(event, at)
        for relative in [0.3, 1e-2] if seed in CASES else rng.sample([0.3, 1e-2, 1e-3], 2):
            least, most = delta_bounds(event, at, relative)
            assert least <= found <= most or relative < 1e-2, (event, at, found, least, most)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("wrong", [1e-3, 1 + 1e-6, 30.0])
def test_no_estimate_however_wrong_lies_outside_bounds_asked_after_it(monkeypatch, seed, wrong):
    """By construction: the clip of any number to one true interval is in the hull of it and any other."""
    rng = random.Random(1000 + seed)
    event = [
        acc.Repeated(acc.PoissonSampled(acc.Gaussian(2), "0.5"), 3),
        acc.Composed([acc.Gaussian(4), acc.Repeated(acc.PoissonSampled(acc.Gaussian(2), "0.5"), 2)]),
        acc.Repeated(acc.Laplace(10), 99),
        acc.Repeated(acc.DiscreteGaussian(5, 2), 3),
        acc.Gaussian("7.25"),
        acc.Parallel([acc.Gaussian(3), acc.Repeated(acc.RandomizedResponse("0.2"), 90)]),
    ][seed]
    delta, widths = F(rng.choice(DELTAS[:3])), [None, 1.0, 3e-3]
    truth = [bounds(event, delta), delta_bounds(event, 1, 1e-2)]
    originals = {name: getattr(questions, name) for name in WRONG}
    for name, original in originals.items():
        monkeypatch.setattr(questions, name, lambda *a, f=original: None if (x := f(*a)) is None else wrong * x)
    _forget()
    first = acc.epsilon(event, delta)
    for part in widths:
        try:
            low, high = bounds(event, delta, width=part and part * first)
        except ParameterError as error:
            assert "width" in str(error)
            continue
        assert low <= first <= high
        # True all the same.
        assert low <= truth[0][1]
        assert high >= truth[0][0]
        assert low <= acc.epsilon(event, delta) <= high
    at_one = acc.delta(event, 1)
    for relative in (0.3, 1e-2):
        low, high = delta_bounds(event, 1, relative)
        assert low <= at_one <= high
        assert low <= truth[1][1]
        assert high >= truth[1][0]


WRONG = [
    "epsilon_estimate",
    "delta_estimate",
    "epsilon_near",
    "delta_near",
    "epsilon_of_mu",
    "delta_of_mu",
]


def test_the_bounds_that_a_contour_is_held_to_enclose_the_closed_form():
    """Chernoff above, Chebyshev below, on a Gaussian of known delta: never three times the logarithm away."""
    for sigma, delta in (("0.7", 1e-3), ("3", 1e-9), ("20", 1e-40)):
        mu = 1 / float(sigma)
        epsilon = normal.epsilon_of_mu(mu, delta)
        line = contour._Inversion([contour.Term(1 / mu, 1.0, 1.0)], adding=False)
        low, high = contour._saddle(line, math.log(delta), None).delta(epsilon)
        assert 3 * math.log(delta) < low < math.log(delta) < high < math.log(delta) / 2


def _convolved(sigma, rate, times, epsilon, step):
    """delta(epsilon) of the removal direction from below: losses rounded down to a grid, positive terms throughout."""
    edges = np.arange(math.floor(math.log1p(-rate) / step), math.ceil(0.04 / step)) * step
    with mp.workdps(30):
        at = [
            mp.mpf("0.5") + sigma**2 * mp.log((mp.exp(mp.mpf(e)) - 1 + rate) / rate)
            if math.exp(e) > 1 - rate
            else -mp.inf
            for e in edges
        ]
        above = [
            (1 - rate) * mp.ncdf(-x / sigma) + rate * mp.ncdf((1 - x) / sigma) if x > -mp.inf else mp.mpf(1) for x in at
        ]
        mass = np.array([float(a - b) for a, b in zip(above, [*above[1:], mp.mpf(0)], strict=True)])
    total, first = mass, round(edges[0] / step)
    start = first
    for _ in range(times - 1):
        total, start = np.convolve(total, mass), start + first
    loss = (start + np.arange(total.size)) * step
    over = loss > epsilon
    return float(np.sum(total[over] * -np.expm1(epsilon - loss[over])))


def test_epsilon_of_rare_samples_is_not_the_end_of_a_search_interval():
    """delta at what was returned exceeded what was asked seven times: at least three times on this grid."""
    event = acc.Repeated(acc.PoissonSampled(acc.Gaussian("3.2"), "0.001"), 20)
    found = acc.epsilon(event, "1e-15")
    assert _convolved(3.2, 0.001, 20, 0.0119738, 4e-5) > 3.5e-15
    assert _convolved(3.2, 0.001, 20, found, 4e-5) < 1e-15
    low, high = bounds(event, "1e-15")
    assert low <= found <= high
    assert high - low <= 1e-3 * high


def test_epsilon_of_many_rare_samples_is_not_above_its_certified_interval():
    event = acc.Repeated(acc.PoissonSampled(acc.Gaussian("3.1"), "0.001"), 3000)
    found = acc.epsilon(event, "1e-15")
    low, high = bounds(event, "1e-15", width=3e-5)
    assert low <= found <= high


def test_a_contour_that_is_not_sure_says_so():
    """Too few steps, a tilt far from the answer, or none that encloses delta: never a number."""
    line = contour._Inversion([contour.Term(3.2, 0.001, 20.0)], adding=False)
    saddle = contour._saddle(line, math.log(1e-15), None)
    inverse = contour._inverse(line, saddle, math.log(1e-15)) if saddle.spread > 1 else None
    assert inverse is None
    with pytest.raises(ParameterError):
        contour.epsilon_estimate([contour.Term(3.2, 0.001, 20.0)], 1e-15)
    wide = contour._Inversion([contour.Term(1.1, 0.01, 10000.0)], adding=False)
    near = contour._saddle(wide, math.log(1e-5), None)
    steps = contour._inverse(wide, near, math.log(1e-5))
    root = contour._root(steps, 1e-5)
    assert root is not None
    assert steps.alias(root, math.log(1e-5)) < contour._ALIASED
    coarse = contour._inverse(wide, near, math.log(1e-5), 0.2)
    assert coarse.alias(root, math.log(1e-5)) > contour._ALIASED
    assert steps.cancelled(root + 12 * near.spread, math.log(1e-40)) > contour._CANCELLED


REFERENCES = json.loads(Path(__file__).with_name("references.json").read_text())


def test_delta_of_sampled_gaussians_has_nine_digits_against_the_stored_truths():
    truths: dict = {}
    for r in REFERENCES:
        if r["kind"] == "sampled":
            key = tuple(r["args"][:4])
            truths[key] = max(truths.get(key, mp.mpf(0)), mp.mpf(r["delta"]))
    assert len(truths) >= 5
    for (sigma, rate, times, at), truth in truths.items():
        event = acc.Repeated(acc.PoissonSampled(acc.Gaussian(sigma), rate), times)
        # The logarithm of one characteristic function is rounded once, and multiplied by `times`.
        assert acc.delta(event, F(at)) == pytest.approx(float(truth), rel=1e-9 + times * 2e-14)
        if truth < 1:
            assert acc.epsilon(event, F(mp.nstr(truth, 17))) == pytest.approx(float(at), rel=1e-9)


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (acc.SampledWithoutReplacement(acc.RandomizedResponse("0.5"), "0.1"), "0.13"),
        (acc.Repeated(acc.PoissonSampled(acc.Laplace(2), "0.1"), 50), "6.3"),
        (acc.Repeated(acc.PoissonSampled(acc.PureDP(2), "0.01"), 3), "5"),
        (acc.PureDP(1), "1"),
    ],
    ids=str,
)
def test_delta_beyond_the_largest_loss_is_zero(event, epsilon):
    assert acc.bounds(event, 0)[1] <= float(epsilon)
    assert delta_bounds(event, F(epsilon), 1e-2) == (0.0, 0.0)
    assert acc.delta(event, epsilon) == 0.0


def test_a_delta_beyond_floats_is_an_interval_from_zero():
    event = acc.PoissonSampled(acc.Gaussian(38), "0.99")
    low, high = delta_bounds(event, F(1), 1e-2)
    with mp.workdps(60):
        x, s = mp.mpf("0.5") + 38**2 * mp.log((mp.e - mp.mpf("0.01")) / mp.mpf("0.99")), 38
        truth = mp.mpf("0.01") * mp.ncdf(-x / s) + mp.mpf("0.99") * mp.ncdf((1 - x) / s) - mp.e * mp.ncdf(-x / s)
    assert low <= truth <= high <= 1e-270
    assert low <= acc.delta(event, 1) <= high


@pytest.mark.parametrize("sigma", ["1.5", "4", "9"])
def test_deltas_far_below_the_first_tail_are_as_narrow_as_asked(sigma):
    event, s = acc.PoissonSampled(acc.Gaussian(sigma), "0.5"), mp.mpf(sigma)
    with mp.workdps(60):
        for e in (2, 4, 8):
            x = mp.mpf("0.5") + s**2 * mp.log((mp.exp(e) - mp.mpf("0.5")) / mp.mpf("0.5"))
            removed = (mp.ncdf(-x / s) + mp.ncdf((1 - x) / s)) / 2 - mp.exp(e) * mp.ncdf(-x / s)
            low, high = delta_bounds(event, F(e), 1e-2)
            assert low <= removed <= high
            if removed > mp.mpf(10) ** -260:
                assert high - low <= 1.01e-2 * high


@pytest.mark.parametrize(
    ("parts", "delta", "truth"),
    [
        ([(acc.RandomizedResponse(F(38, 9), 5), 5), (acc.DiscreteGaussian(F(21, 5), 2), 2)], "1e-40", 30.1435265165),
        ([(acc.RandomizedResponse(F(35, 9), 3), 1), (acc.DiscreteGaussian(F(26, 9)), 2)], "1e-100", 14.3123265983),
    ],
    ids=["1e-40", "1e-100"],
)
def test_losses_with_a_lattice_of_their_own_keep_the_width_rule(parts, delta, truth):
    """Refining changes nothing there; what was too coarse was the tilt."""
    low, high = bounds(acc.Composed([acc.Repeated(e, n) for e, n in parts]), delta)
    assert low <= truth * (1 + 1e-10)
    assert high >= truth * (1 - 1e-10)
    assert high - low <= 1e-3 * high


def test_default_bounds_return_an_honest_interval_where_the_width_is_out_of_reach(monkeypatch):
    event = acc.Composed(
        [
            acc.ApproxDP(F(41, 23), "1e-12"),
            acc.Repeated(acc.DiscreteGaussian(F(21, 5), 2), 2),
            acc.Repeated(acc.ApproxDP(F(43, 20), "1e-5"), 2),
        ]
    )
    low, high = bounds(event, "0.01")
    assert 7.330 < low <= high < 7.338
    for module in (lattice, convolution, certify):
        # Memory ends sooner.
        monkeypatch.setattr(module, "MOST_POINTS", 2**18)
    with pytest.raises(ParameterError, match="width"):
        bounds(event, "0.01", width=1e-7)


def test_what_was_certified_before_only_gets_narrower():
    event = acc.Repeated(acc.PoissonSampled(acc.Gaussian("1.3"), "0.02"), 700)
    wide = bounds(event, "1e-6", width=0.3)
    fine = bounds(event, "1e-6", width=1e-3)
    assert wide[0] <= fine[0] <= fine[1] <= wide[1]
    assert certify.certified_before(event, F("1e-6")) == fine
    assert fine[0] <= acc.epsilon(event, "1e-6") <= fine[1]
