"""Rounds of k-means: what each is given, and that earlier ones still count."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.accounting import cost, rho_of_epsilon
from hubbub.learning import KMeans
from hubbub.learning.clusters import _Memory, _parts
from hubbub.mechanisms.recording import recording
from seeded import SeededBits

DECLARED: dict[str, Any] = {"x": hb.between(0, 1), "y": hb.between(0, 1)}


def points(n: int = 900) -> dict[str, Any]:
    """About (.2, .2), (.8, .2) and (.5, .8)."""
    rng = np.random.default_rng(2)
    middle = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])[rng.integers(0, 3, n)]
    x, y = np.clip(middle + rng.normal(0, 0.03, (n, 2)), 0, 1).T
    return {"x": x, "y": y}


@pytest.mark.parametrize("rounds", [1, 2, 8, 30, 100])
def test_rounds_have_the_whole_a_fifth_more_each_up_to_the_eighth(rounds: int) -> None:
    parts = _parts(rounds)
    assert sum(parts) == 1
    for k, (one, other) in enumerate(pairwise(parts)):
        assert other / one == (Fraction(6, 5) if k < 7 else 1)


@pytest.mark.parametrize("rounds", [1, 8, 100])
def test_what_is_drawn_is_what_was_asked_for(rounds: int) -> None:
    with recording() as records:
        loss = KMeans(n_clusters=3, rounds=rounds).fit(
            points(), columns=DECLARED, epsilon=5, delta="1e-6", bits=SeededBits(1)
        ).loss_  # fmt: skip
    each = [Fraction(r.sensitivity) / (2 * r.distribution.sigma2) for r in records]
    rho = rho_of_epsilon(5, "1e-6")
    assert len(each) == 1 + rounds
    assert rho * Fraction(999, 1000) < sum(each) == cost(loss).rho <= rho
    assert float(each[0] / rho) == pytest.approx(0.1, rel=1e-3)
    for spent, part in zip(each[1:], _parts(rounds), strict=True):
        assert float(spent / rho) == pytest.approx(0.9 * float(part), rel=1e-3)


def test_the_mean_over_rounds_has_the_deviation_that_is_said() -> None:
    """Of equal sums it is the sum itself, and noise on it is as large as draws of it are."""
    rng, variances = np.random.default_rng(3), [9.0, 4.0, 4.0, 1.0]
    drawn = []
    for _ in range(4000):
        memory = _Memory()
        for variance in variances:
            mean, deviation = memory.with_round(np.full((1, 1), 50.0) + rng.normal(0, variance**0.5), variance)
        drawn.append(mean.item())
    assert np.mean(drawn) == pytest.approx(50, abs=0.1)
    assert np.std(drawn) == pytest.approx(deviation, rel=0.05)
    assert deviation < 1


def test_three_clusters_are_where_the_points_are() -> None:
    fit = KMeans(n_clusters=3).fit(points(), columns=DECLARED, epsilon=8, delta="1e-6", bits=SeededBits(5))
    centres = sorted(zip(fit.centers_["x"], fit.centers_["y"], strict=True))
    assert np.abs(np.array(centres) - [[0.2, 0.2], [0.5, 0.8], [0.8, 0.2]]).max() < 0.03
    assert np.abs(fit.sizes_ - 300).max() < 60
