"""A holdout and a leaderboard that are asked too often mislead; reusable ones do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError, QueryError
from hubbub.noise import uniform_below
from seeded import SeededBits


def test_a_standard_holdout_says_63_percent_where_half_is_true():
    found = attacks.overfit_holdout(n=10_000, d=10_000, selected=(100, 500), bits=SeededBits("holdout"))
    assert found.truth == 0.5
    assert abs(found.reported[1] - 0.63) <= 0.02
    assert found.reported.tolist() == found.holdout.tolist()
    assert found.success > 0.1
    assert len(found.plot().lines) == 2


def test_thresholdout_says_half_within_four_hundredths():
    bits = SeededBits("thresholdout")
    holdout = attacks.Thresholdout(10_000, threshold="0.04", noise="0.001", overflows=20, bits=bits)
    found = attacks.overfit_holdout(n=10_000, d=10_000, selected=(100, 500), holdout=holdout, bits=bits)
    assert found.success <= 0.04
    assert np.abs(found.holdout - 0.5).max() <= 0.04
    assert found.epsilon == Fraction(2 * 20, 10) == holdout.epsilon
    assert 0 < holdout.left < 20


def test_thresholdout_repeats_the_training_data_until_the_holdout_disagrees():
    holdout = attacks.Thresholdout(1000, threshold="0.1", noise="0.0001", overflows=2, bits=SeededBits(1))
    assert holdout.ask(600, 590) == Fraction(600, 1000)
    assert holdout.left == 2
    said = holdout.ask(900, 500)
    assert holdout.left == 1
    assert abs(said - Fraction(1, 2)) < Fraction(1, 100)
    holdout.ask(900, 500)
    with pytest.raises(QueryError, match="fresh holdout"):
        holdout.ask(600, 600)


def test_exact_scores_lift_random_submissions_to_what_the_formula_says():
    bits = SeededBits("board")
    shares = []
    for _ in range(4):
        found = attacks.overfit_leaderboard(uniform_below(2, 4000, bits=bits), 1000, bits=bits)
        shares.append(found.board)
    assert attacks.leaderboard_accuracy(1000, 4000) == pytest.approx(0.656, abs=0.002)
    assert abs(np.mean(shares) - 0.656) <= 0.01  # 16,000 rows: one standard deviation is .004
    assert found.success > 0.13
    assert len(found.plot().lines) == 2


def test_the_ladder_holds_random_submissions_near_half():
    bits = SeededBits("ladder")
    shares = [
        attacks.overfit_leaderboard(uniform_below(2, 4000, bits=bits), 1000, board=attacks.Ladder(), bits=bits).board
        for _ in range(6)
    ]
    assert abs(np.mean(shares) - 0.517) <= 0.012
    assert max(shares) < 0.55


@pytest.mark.parametrize("epsilon", ["0.05", "0.1"])
def test_a_private_board_misleads_less_than_privacy_allows(epsilon):
    """D12: the expected overstatement of a (epsilon, 0)-DP board is at most e^epsilon - 1. Four boards, 16,000 rows."""
    bits = SeededBits(f"private board {epsilon}")
    private, exact = [], []
    for _ in range(4):
        labels = uniform_below(2, 4000, bits=bits)
        board = attacks.private_board(4000, 1000, epsilon, bits=bits)
        found = attacks.overfit_leaderboard(labels, 1000, board=board, bits=bits)
        private.append(found.success)
        exact.append(attacks.overfit_leaderboard(labels, 1000, bits=bits).success)
    assert np.mean(private) <= found.ceiling(epsilon) + slack(16_000)
    assert np.mean(exact) > found.ceiling(epsilon) + slack(16_000)
    with pytest.raises(QueryError):
        board(labels)


def test_the_ladder_shows_a_score_only_where_it_is_better_by_a_step():
    ladder = attacks.Ladder(step="0.1")
    assert ladder.submit([1] * 52 + [0] * 48) == Fraction(1, 2)
    assert ladder.submit([1] * 60 + [0] * 40) == Fraction(1, 2)
    assert ladder.submit([1] * 63 + [0] * 37) == Fraction(6, 10)
    assert ladder.submit([0] * 100) == Fraction(6, 10)


def test_the_ladder_without_a_step_asks_for_one_standard_error_of_the_paired_difference():
    n, ladder = 10_000, attacks.Ladder()
    first = np.arange(n) < 5000
    assert ladder.submit(first) == Fraction(1, 2)
    # Two rows gained, one lost: the gain is 1/n, the standard deviation of the difference over sqrt n is sqrt(3)/n.
    one_more = (np.arange(n) < 5002) & (np.arange(n) != 0)
    assert ladder.submit(one_more) == Fraction(1, 2)
    hundred_more = np.arange(n) < 5100
    assert ladder.submit(hundred_more) == Fraction(5100, n)


def test_numbers_that_say_nothing_are_refused():
    with pytest.raises(ParameterError):
        attacks.Thresholdout(10, threshold=-1, noise="0.1", overflows=1)
    with pytest.raises(ParameterError):
        attacks.Thresholdout(10, threshold="0.1", noise=0, overflows=1)
    with pytest.raises(ParameterError):
        attacks.overfit_leaderboard([0, 2], 5)
    with pytest.raises(ParameterError):
        attacks.leaderboard_accuracy(0, 5)
