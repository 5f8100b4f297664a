"""No attack exceeds its ceiling: the ceilings are reached exactly by the mechanisms that are worst."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from hubbub.attacks import advantage_ceiling, bit_ceiling, guess_ceiling, hit_ceiling, row_ceiling
from hubbub.errors import ParameterError


@pytest.mark.parametrize(("epsilon", "advantage"), [(0.5, 0.245), (1, 0.462)])
def test_the_advantage_is_at_most_the_hyperbolic_tangent_of_half_epsilon(epsilon, advantage):
    assert round(advantage_ceiling(epsilon), 3) == advantage
    assert advantage_ceiling(epsilon) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
    assert advantage_ceiling(epsilon, 0.1) == pytest.approx((math.exp(epsilon) - 1 + 0.2) / (math.exp(epsilon) + 1))


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_a_bit_is_guessed_as_often_as_randomised_response_tells_the_truth(epsilon):
    assert bit_ceiling(epsilon) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)), rel=1e-12)
    assert bit_ceiling(epsilon) == pytest.approx((1 + advantage_ceiling(epsilon)) / 2, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.7, 0.3], [0.25] * 4, [0.6, 0.2, 0.1, 0.1]])
def test_no_guess_beats_the_ceiling_of_the_best_guess_from_randomised_response(prior, delta):
    """By enumeration: with probability delta the truth is told, else k-ary randomised response answers."""
    e, k = 1.2, len(prior)
    honest, other = math.exp(e) / (k - 1 + math.exp(e)), 1 / (k - 1 + math.exp(e))
    answers = [[delta * (x == y) for y in range(k)] for x in range(k)]  # seen to be the truth
    noisy = [[(1 - delta) * (honest if x == y else other) for y in range(k)] for x in range(k)]
    best = sum(max(prior[x] * table[x][y] for x in range(k)) for table in (answers, noisy) for y in range(k))
    ceiling = guess_ceiling(max(prior), e, delta)
    assert best <= ceiling + 1e-12
    if len(set(prior)) == 1:
        assert best == pytest.approx(ceiling, rel=1e-12)  # and for equal values nothing less would do


def test_true_positives_stay_on_the_trade_off_curve():
    assert hit_ceiling(0, 1) == 0
    assert hit_ceiling(1, 1) == 1
    assert hit_ceiling("0.01", 1) == pytest.approx(0.01 * math.e)
    assert max(hit_ceiling(a / 1000, 1) - a / 1000 for a in range(1001)) <= advantage_ceiling(1) + 1e-12


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_row_is_named_more_often_than_its_ceiling_says(epsilon):
    """By enumeration: the target's bit is 1, the two others' are 0; each row is randomised, then shuffled."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    best = 0.0
    for seen in itertools.product((0, 1), repeat=3):
        likelihood = [
            math.prod(truth if seen[i] == (i == place) else 1 - truth for i in range(3)) for place in range(3)
        ]
        best += max(likelihood) / 3
    assert 1 / 3 < best <= row_ceiling(3, epsilon)
    assert row_ceiling(3, epsilon) == pytest.approx(math.exp(2 * epsilon) / (2 + math.exp(2 * epsilon)))


def test_ceilings_at_the_ends():
    assert guess_ceiling(Fraction(1, 3), 0) == pytest.approx(1 / 3)
    assert guess_ceiling(0, 5) == 0
    assert guess_ceiling(1, 0) == 1
    assert bit_ceiling(10_000) == 1
    for bad in ((-1, 0), (1, 1), (1, -0.1), ("x", 0)):
        with pytest.raises(ParameterError):
            bit_ceiling(*bad)
    with pytest.raises(ParameterError):
        guess_ceiling(1.5, 1)
