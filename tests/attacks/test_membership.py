"""Frequencies say who is in the group; private frequencies do not."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.mechanisms import GaussianMechanism, LaplaceMechanism
from hubbub.noise import uniform_below
from seeded import SeededBits

METHODS = ("inner_product", "likelihood_ratio", "homer")


def study(n: int, d: int, others: int, bits: SeededBits, low: int = 20):
    """n members, `others` outsiders, d attributes with frequencies from low % to 100 - low %."""
    p = (low + uniform_below(101 - 2 * low, d, bits=bits)) / 100
    members, outsiders = attacks.people(p, n, bits=bits), attacks.people(p, others, bits=bits)
    return p, np.concatenate([members, outsiders]), np.arange(n + others) < n


@pytest.mark.parametrize("method", METHODS)
def test_a_hundred_people_in_2500_exact_frequencies_are_found_with_99_of_100_at_one_false(method):
    bits = SeededBits(f"exact {method}")
    p, people, members = study(100, 2500, 2000, bits, low=50)
    found = attacks.find_members(people, people[members].mean(axis=0), p, members=members, method=method)
    assert attacks.membership_power(2500, 100, "0.01") > 0.99
    assert found.true_positives("0.01") >= 0.99 - 0.02
    assert found.false_positives("0.01") <= 0.01 + 0.02
    assert found.success > 0.97
    assert len(found.plot().lines) == 3


def test_scores_are_root_d_over_n_apart():
    bits, d, n = SeededBits("apart"), 4000, 200
    p, people, members = study(n, d, 3000, bits, low=50)
    found = attacks.find_members(people, people[members].mean(axis=0), p, members=members)
    inside, outside = found.scores[members], found.scores[~members]
    assert attacks.membership_z(d, n) == pytest.approx(math.sqrt(d / n))
    # Means of 200 and 3,000 scores of standard deviation near 1: 6.1 standard errors are a false alarm of 1e-9.
    assert abs(inside.mean() - math.sqrt(d / n)) <= 6.1 / math.sqrt(n) + 0.1
    assert abs(outside.mean()) <= 6.1 / math.sqrt(3000)
    assert abs(outside.std() - 1) <= 0.1


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
def test_noise_divides_the_distance_as_stated(noise):
    """Gaussian noise of sigma on each mean: root of 1 + n sigma^2/v."""
    bits, d, n = SeededBits(f"noise {noise}"), 4000, 200
    p, people, members = study(n, d, 1000, bits, low=50)
    counts = people[members].sum(axis=0)
    published = (counts + GaussianMechanism(squared_sensitivity=d, sigma=int(noise * n), cells=d)
                 .error().sample(d, bits=bits)) / n  # fmt: skip
    found = attacks.find_members(people, published, p, members=members)
    z = attacks.membership_z(d, n, noise=noise)
    assert z < math.sqrt(d / n) / 1.2
    assert abs(found.scores[members].mean() - z) <= 6.1 / math.sqrt(n) + 0.1
    power = attacks.membership_power(d, n, "0.01", noise=noise)
    assert power == pytest.approx(NormalDist().cdf(z - NormalDist().inv_cdf(0.99)))
    assert abs(found.true_positives("0.01") - power) <= slack(n, 5e-10) + 0.02


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", ["0.5", "1"])
def test_private_frequencies_stay_below_the_ceiling(method, epsilon):
    """d counts of which a person moves up to d: scale d/epsilon. 100 members, 800 others."""
    bits, d, n, others = SeededBits(f"private {method} {epsilon}"), 1600, 100, 800
    p, people, members = study(n, d, others, bits)
    counts = people[members].sum(axis=0)
    exact = attacks.find_members(people, counts / n, p, members=members, method=method)
    noisy = LaplaceMechanism(sensitivity=d, epsilon=epsilon, cells=d).release(counts, bits=bits) / n
    private = attacks.find_members(people, noisy, p, members=members, method=method)
    most = private.ceiling(epsilon) + slack(n)
    assert private.advantage("0.05") <= most < exact.advantage("0.05")
    hits = private.hit_ceiling(private.false_positives("0.05"), epsilon) + slack(n)
    assert private.true_positives("0.05") <= hits < exact.true_positives("0.05")


def test_exact_frequencies_exceed_the_ceiling_of_epsilon_one():
    bits = SeededBits("exceed")
    p, people, members = study(100, 1500, 2000, bits)
    exact = attacks.find_members(people, people[members].mean(axis=0), p, members=members)
    assert exact.advantage("0.05") > exact.ceiling(1) + 0.3


def test_for_bits_homer_s_score_is_the_inner_product():
    bits = SeededBits("homer")
    p, people, members = study(50, 300, 50, bits)
    q = people[members].mean(axis=0)
    one, other = (attacks.find_members(people, q, p, method=m).scores for m in ("inner_product", "homer"))
    assert np.allclose(one, other)


def test_people_have_the_frequencies_asked_for():
    p = np.array([0.1, 0.5, 0.9])
    found = attacks.people(p, 40_000, bits=SeededBits("people"))
    assert found.shape == (40_000, 3)
    assert np.abs(found.mean(axis=0) - p).max() <= slack(40_000, 1e-10)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "magic"},
        {"population": [0.5, 1.0]},
        {"population": [0.5]},
        {"targets": [[2, 0]]},
        {"members": [1, 0]},
    ],
)
def test_what_does_not_fit_is_refused(changes):
    given = {"targets": [[1, 0]], "published": [0.5, 0.5], "population": [0.5, 0.5]} | changes
    with pytest.raises(ParameterError):
        attacks.find_members(**given)
    with pytest.raises(ParameterError, match="members"):
        attacks.find_members([[1, 0]], [0.5, 0.6], [0.5, 0.5]).advantage()
