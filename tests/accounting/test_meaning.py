"""The textbook's statements as numbers (`docs/theorems.md`, D1-D12), and the words for an epsilon."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub import accounting as acc
from hubbub.accounting import generalisation, losses, meaning, theorems
from hubbub.errors import ParameterError


def test_basic_and_parallel_composition():
    assert theorems.basic_composition([(0.5, 1e-6), (0.25, 1e-6)]) == (0.75, 2e-6)
    assert theorems.parallel_composition([(0.5, 1e-6), (0.25, 1e-5)]) == (0.5, 1e-5)


@pytest.mark.parametrize(("epsilon", "delta", "k"), [(0.1, 0.0, 100), (0.01, 1e-9, 1000), (1.0, 1e-8, 10)])
def test_advanced_composition_is_never_below_the_optimal_one(epsilon, delta, k):
    advanced, total = theorems.advanced_composition(epsilon, delta, k, 1e-6)
    assert advanced >= theorems.optimal_composition(epsilon, delta, k, total)


@pytest.mark.parametrize(("epsilon", "delta", "k"), [("0.1", "1e-8", 20), ("1", "0", 5), ("0.3", "1e-9", 50)])
def test_the_canonical_pair_in_closed_form_is_its_exact_convolution(epsilon, delta, k):
    closed = theorems.optimal_composition(float(epsilon), float(delta), k, 1e-6)
    low, high = acc.bounds(acc.Repeated(acc.ApproxDP(epsilon, delta), k), "1e-6")
    assert low * (1 - 1e-10) <= closed <= high * (1 + 1e-10)
    assert high - low < 1e-9


def test_group_privacy_is_the_scaled_sensitivity():
    assert acc.bounds(acc.Group(acc.Gaussian(6), 3), "1e-6") == acc.bounds(acc.Gaussian(2), "1e-6")
    assert theorems.group_privacy(0.5, 1e-6, 3) == (1.5, 3 * 1e-6 * math.exp(1.0))


def test_amplification_by_poisson_sampling_is_that_of_the_exact_loss():
    epsilon, _ = theorems.poisson_amplification(1.0, 0.0, 0.1)
    assert acc.bounds(acc.PoissonSampled(acc.PureDP(1), "0.1"), 0)[1] == pytest.approx(epsilon, rel=1e-12)


def test_shuffling_amplifies_and_never_harms():
    assert theorems.shuffle_amplification(1.0, 10**6, 1e-6) < 0.1
    assert theorems.shuffle_amplification(10.0, 100, 1e-6) == 10.0


def test_the_loss_of_randomised_response_has_the_textbook_mean():
    e = 0.7
    loss = acc.loss(acc.RandomizedResponse("0.7"))
    assert loss.mean == pytest.approx(e * math.expm1(e) / (math.exp(e) + 1), rel=1e-9)
    assert set(np.round(loss.values, 12)) == {-0.7, 0.7}


def test_the_loss_of_gaussian_noise_is_normal():
    loss = acc.loss(acc.Gaussian(2))
    assert loss.mean == pytest.approx(1 / 8, rel=2e-2)
    assert loss.variance == pytest.approx(1 / 4, rel=2e-2)


def test_azuma_bounds_the_tail_of_fifty_responses():
    event, e = acc.Repeated(acc.RandomizedResponse("0.1"), 50), 0.1
    loss = acc.loss(event)
    for t in (0.5, 1.5, 3.0):
        assert loss.tail(loss.mean + t) <= losses.azuma_tail([e] * 50, t)


def test_loss_samples_invert_the_distribution():
    loss = acc.loss(acc.RandomizedResponse(1))
    low = float(loss.masses[0])
    assert loss.samples(2, np.array([low / 2, (1 + low) / 2])).tolist() == [-1.0, 1.0]


def test_posterior_of_the_thesis():
    # From 50 % to between 25 % and 75 % at ln 3; from 10 % to 94 % at epsilon = 5.
    assert meaning.posterior(0.5, math.log(3)) == pytest.approx((0.25, 0.75))
    assert meaning.posterior(0.1, 5.0)[1] == pytest.approx(0.94, abs=0.005)
    assert meaning.posterior(0.5, 1e4) == (0.0, 1.0)


def test_posterior_changes_odds_by_at_most_e_to_the_epsilon():
    for prior in (0.01, 0.5, 0.9):
        low, high = meaning.posterior(prior, 2.0)
        before = prior / (1 - prior)
        assert high / (1 - high) / before == pytest.approx(meaning.odds(2.0))
        assert before / (low / (1 - low)) == pytest.approx(meaning.odds(2.0))


@pytest.mark.parametrize(("epsilon", "ceiling"), [(0.5, 0.245), (1.0, 0.462)])
def test_the_best_attack_reaches_tanh_of_half_epsilon(epsilon, ceiling):
    assert meaning.advantage(epsilon) == pytest.approx(ceiling, abs=5e-4)
    gaps = [1 - a - meaning.tradeoff_line(a, epsilon) for a in np.linspace(0, 1, 2001)]
    assert max(gaps) == pytest.approx(meaning.advantage(epsilon), abs=1e-3)
    # The advantage is delta at epsilon = 0: the total variation distance.
    assert acc.delta(acc.PureDP(str(epsilon)), 0) == pytest.approx(meaning.advantage(epsilon), rel=2e-2)


def test_trade_off_of_gaussian_noise_is_the_gaussian_one():
    from scipy.special import ndtr, ndtri

    curve = acc.tradeoff(acc.Gaussian(1))
    exact = ndtr(ndtri(1 - curve.x) - 1)
    assert np.all(curve.y <= exact + 1e-9)
    assert np.max(exact - curve.y) < 2e-2


def test_explain_says_the_numbers_and_refuses_nonsense():
    text = acc.explain("1.0986122886681098", prior="0.5")
    assert "between 25 % and 75 %" in text
    assert "at most 50 percentage points" in text
    assert "25 of 100" in text
    assert "1 in 1,000,000" in acc.explain(1, "1e-6")
    assert "more than 99.9 %" in acc.explain(50)
    for wrong in ((-1,), (1, 1), (1, 0, 2)):
        with pytest.raises(ParameterError):
            acc.explain(*wrong)


def test_generalisation_in_expectation_is_within_twice_epsilon_and_delta():
    for epsilon in (0.01, 0.5, 0.99):
        assert generalisation.expected_gap(epsilon, 1e-3) <= 2 * epsilon + 1e-3
    assert 0.84 < generalisation.expected_gap(5.0) < generalisation.expected_gap(50.0) <= 1.0


def test_generalisation_with_high_probability_needs_its_sample():
    n = generalisation.sample_size(0.01, 1e-6)
    assert generalisation.tail(0.01, 1e-6, n) == pytest.approx((0.18, 1e-4))
    with pytest.raises(ParameterError, match="at least"):
        generalisation.tail(0.01, 1e-6, n - 1)


@pytest.mark.parametrize(
    ("make", "epsilon", "delta"),
    [
        (lambda x: acc.Gaussian(x), 1, "1e-6"),
        (lambda x: acc.Repeated(acc.Laplace(x), 10), 1, 0),
        (lambda x: acc.Repeated(acc.GaussianDP(x), 7), 2, "1e-9"),
        (lambda x: acc.Repeated(acc.PoissonSampled(acc.Gaussian(x), "0.02"), 300), 3, "1e-5"),
        (lambda x: acc.Repeated(acc.Laplace(x), 30), 1, "1e-5"),
    ],
    ids=["sigma", "scale", "mu falls", "sampled", "laplace"],
)
def test_calibration_is_on_the_safe_side_and_tight(make, epsilon, delta):
    from hubbub.accounting.amounts import amount
    from hubbub.accounting.certify import lattice_step, upper_epsilon

    x = acc.calibrate(make, epsilon, delta)
    d = amount(delta, "delta")
    step = lattice_step(make(x), d)
    assert upper_epsilon(make(x), d, step) <= epsilon * (1 + 1e-3)
    assert acc.bounds(make(x), d)[0] <= epsilon
    # Less noise by one part in a thousand is proved too little: the lower bound exceeds the goal.
    assert max(acc.bounds(make(x * f), d, width=2e-4)[0] for f in (1 - 2e-3, 1 + 2e-3)) > epsilon


def test_gaussian_calibration_is_the_reference_to_the_last_digits():
    assert acc.calibrate(lambda s: acc.Gaussian(s), 1, "1e-6") == pytest.approx(4.22467888932683, rel=5e-14)


def test_calibration_refuses_the_impossible():
    with pytest.raises(ParameterError, match="nothing to calibrate"):
        acc.calibrate(lambda x: acc.PureDP(5), 1, 0)
    with pytest.raises(ParameterError, match="no noise"):
        acc.calibrate(lambda x: acc.Gaussian(x), 0, "1e-6")


def test_renyi_orders_of_known_mechanisms():
    assert acc.renyi(acc.Gaussian(2), [2, 8]) == pytest.approx([0.25, 1.0], rel=1e-4)
    e = 1.0
    p = 1 / (1 + math.exp(-e))
    exact = math.log(p**2 / (1 - p) + (1 - p) ** 2 / p)
    assert acc.renyi(acc.PureDP(1), [2]) == pytest.approx([exact], rel=1e-3)
    with pytest.raises(ParameterError):
        acc.renyi(acc.Gaussian(2), [1])
