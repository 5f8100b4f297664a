"""k-anonymity: counted rightly, lost in many columns, undone by a second release."""

from __future__ import annotations

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import uniform_below
from seeded import SeededBits


def test_k_and_l_are_the_least_class_and_the_least_diverse_one():
    table = {"age": [30, 30, 30, 40, 40], "sex": list("ffmmm"), "ill": [1, 0, 1, 1, 1]}
    assert attacks.k_anonymity(table, ["age"]).k == 2
    assert attacks.k_anonymity(table, ["age", "sex"]).k == 1
    found = attacks.k_anonymity(table, ["age"], "ill")
    assert (found.classes, found.l, found.exposed) == (2, 1, 0.4)


def test_k_falls_to_one_as_columns_are_added():
    bits = SeededBits("curse")
    table = {f"c{i}": uniform_below(4, 3000, bits=bits) for i in range(10)}
    found = attacks.dimension_curse(table, list(table))
    assert found.k[0] > 600
    assert found.k[-1] == 1
    assert list(found.alone) == sorted(found.alone)
    assert found.success > 0.98  # exp(-2999/4^10) = .997
    for d in (5, 6, 8):
        expected = attacks.expected_uniqueness(3000, 4**d)
        assert abs(found.alone[d - 1] - expected) <= 2 * slack(3000, 5e-10)
    assert len(found.plot().lines) == 1


@pytest.mark.parametrize("k", [2, 5, 20])
def test_mondrian_makes_every_class_at_least_k(k):
    points = np.stack([uniform_below(1000, 700, bits=SeededBits(k)), uniform_below(50, 700, bits=SeededBits(-k))], 1)
    classes = attacks.mondrian(points, k)
    sizes = np.bincount(classes)
    assert sizes.min() >= k
    assert sizes.max() < 4 * k  # and it cuts as long as it can: distinct values on both axes
    assert len(sizes) > 700 / (4 * k)


def hospitals(n: int, shared: int, secrets: int, k: int, bits: SeededBits):
    """Two hospitals' people: positions in the plane and illnesses; the first `shared` went to both."""
    places = uniform_below(10_000, 2 * (2 * n - shared), bits=bits).reshape(-1, 2)
    ill = uniform_below(secrets, 2 * n - shared, bits=bits)
    first = np.arange(n)
    second = np.concatenate([np.arange(shared), np.arange(n, 2 * n - shared)])
    releases = [(attacks.mondrian(places[rows], k), ill[rows]) for rows in (first, second)]
    return releases, [classes[:shared] for classes, _ in releases], ill[:shared]


def test_two_k_anonymous_releases_name_the_secrets_of_those_in_both():
    bits = SeededBits("hospitals")
    releases, targets, truth = hospitals(2000, 200, 300, 5, bits)
    for classes, _ in releases:
        assert attacks.k_anonymity({"class": classes}, ["class"]).k >= 5
    alone = attacks.intersect(releases[:1], targets[:1], truth)
    both = attacks.intersect(releases, targets, truth)
    assert alone.pinned < 0.02
    assert both.pinned > 0.4
    assert both.success > 0.7
    assert (both.candidates >= 1).all()
    assert len(both.plot().lines) == 1


@pytest.mark.parametrize("epsilon", ["0.1", "0.25"])
def test_two_private_releases_compose_and_stay_below_the_ceiling(epsilon):
    """Replacing a secret moves two counts of each release: 2 epsilon each, 4 epsilon in all."""
    bits = SeededBits(f"two {epsilon}")
    n, shared, secrets = 3000, 1500, 40
    releases, targets, truth = hospitals(n, shared, secrets, 5, bits)
    noisy, exact = [], []
    for classes, ill in releases:
        counts = np.zeros((classes.max() + 1, secrets), np.int64)
        np.add.at(counts, (classes, ill), 1)
        exact.append(counts)
        noise = LaplaceMechanism(sensitivity=1, epsilon=epsilon, cells=counts.size)
        noisy.append(noise.release(counts.ravel(), bits=bits).reshape(counts.shape))
    private = attacks.intersect_counts(noisy, targets, truth)
    ceiling = private.ceiling(4 * float(epsilon))
    assert private.success <= ceiling + slack(shared)
    assert attacks.intersect_counts(exact, targets, truth).success > ceiling + slack(shared)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError):
        attacks.mondrian([[1.0]], 2)
    with pytest.raises(ParameterError):
        attacks.intersect_counts([[[1, 2]]], [[0], [0]], [1])
