"""Statements of the sources that need no mechanism: what is impossible, single outcomes, losses, overfitting."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from hubbub import accounting as acc
from hubbub.accounting import generalisation, meaning, theorems
from hubbub.mechanisms import (
    LaplaceMechanism,
    RandomizedResponse,
    delta_between,
    draw_laws,
    epsilon_between,
    gaussian_delta,
    gaussian_sigma,
)
from hubbub.synthesis import promises


def test_pointwise_delta_is_not_delta() -> None:
    """Publishing the data beside one of 1/delta numbers: within delta at every outcome, and 1 apart as a set."""
    numbers = 1000
    first = np.log(np.r_[np.full(numbers, 1 / numbers), np.full(numbers, 1e-300)])
    second = first[::-1]
    assert max(np.exp(first) - np.exp(second)) <= 1 / numbers + 1e-15
    assert delta_between(first, second, 0.0) == pytest.approx(1)
    # At delta = 0 outcomes are enough: sets are sums of them.
    p, q = np.log([0.5, 0.3, 0.2]), np.log([0.25, 0.4, 0.35])
    epsilon = epsilon_between(p, q)
    sets = [list(s) for r in (1, 2, 3) for s in itertools.combinations(range(3), r)]
    ratios = [abs(math.log(np.exp(p[s]).sum() / np.exp(q[s]).sum())) for s in sets]
    assert max(ratios) <= epsilon + 1e-12
    assert epsilon == pytest.approx(math.log(2))


def test_a_mechanism_that_no_neighbour_moves_is_constant() -> None:
    """Dalenius' goal: at epsilon 0 a group of any size has 0, so all data sets give one law."""
    assert [theorems.group_privacy(0.0, 0.0, n)[0] for n in (1, 10, 10**9)] == [0, 0, 0]
    assert acc.bounds(acc.Group(acc.PureDP(0), 10**6), 0) == (0, 0)
    assert theorems.group_privacy(0.1, 0.0, 1000)[0] == pytest.approx(100)


@pytest.mark.parametrize(("epsilon", "part"), [(math.log(2), 1 / 3), (math.log(3), 1 / 2), (math.log(5), 2 / 3)])
def test_uncertainty_is_reduced_by_a_third_a_half_and_two_thirds(epsilon: float, part: float) -> None:
    """Of the chance 1/2 of being wrong, the least that is left is 1/(1 + e^epsilon): less by tanh(epsilon/2)."""
    low, high = meaning.posterior(0.5, epsilon)
    assert 1 - (1 - high) / 0.5 == pytest.approx(part)
    assert low == pytest.approx(1 - high)
    assert meaning.advantage(epsilon) == pytest.approx(part)


def test_merging_outcomes_and_choosing_between_mechanisms_costs_nothing() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        p, q, other, beside = (rng.dirichlet(np.ones(6)) for _ in range(4))
        mapped = rng.dirichlet(np.ones(4), size=6)  # a randomised function of six outcomes
        epsilon, delta = epsilon_between(np.log(p), np.log(q)), delta_between(np.log(p), np.log(q), 0.3)
        assert epsilon_between(np.log(p @ mapped), np.log(q @ mapped)) <= epsilon + 1e-12
        assert delta_between(np.log(p @ mapped), np.log(q @ mapped), 0.3) <= delta + 1e-12
        share = rng.uniform()
        mixed = share * p + (1 - share) * other, share * q + (1 - share) * beside
        both = max(epsilon, epsilon_between(np.log(other), np.log(beside)))
        assert epsilon_between(*(np.log(m) for m in mixed)) <= theorems.convexity(both, 0.0)[0] + 1e-12


def test_people_drawn_at_random_add_their_own_variance() -> None:
    """p(1-p)/n for who is asked, 3/(4n) for the coins: exactly, over all answers and coins of n people."""
    coins = RandomizedResponse(random_share="1/2")
    for n, share in ((1, 0.3), (50, 0.1), (7, 0.5)):
        mean_yes = share * 0.75 + (1 - share) * 0.25
        # Yes answers are binomial; the estimate is 2 n'/n - 1/2.
        assert coins.estimate(n, n) == pytest.approx(2 - 0.5)
        variance = 4 * mean_yes * (1 - mean_yes) / n
        assert variance == pytest.approx(share * (1 - share) / n + 3 / (4 * n))
        # The coins alone, with these very people: 3/(4n) whatever their answers.
        assert coins.variance(n, share) == pytest.approx(3 / (4 * n))


def test_a_loss_below_epsilon_but_for_delta_is_more_than_delta() -> None:
    """Gaussian noise that is (1, 1e-6)-DP exceeds a loss of 1 with probability 5.7e-6; the converse always holds."""
    sigma = gaussian_sigma(1, "1e-6")
    beyond = float(norm.sf(sigma - 1 / (2 * sigma)))
    assert gaussian_delta(1.0, sigma) == pytest.approx(1e-6, rel=1e-9)
    assert beyond > 5 * 1e-6
    for epsilon in (0.1, 1.0, 3.0):
        for s in (0.5, 1.0, 4.0):
            assert gaussian_delta(epsilon, s) <= norm.sf(epsilon * s - 1 / (2 * s))


def test_the_expected_gap_is_exact_and_within_epsilon_and_delta() -> None:
    for epsilon in (0.01, 0.1, 0.5, 0.99, 3.0):
        assert generalisation.expected_gap(epsilon) == pytest.approx(math.tanh(epsilon / 4))
        for delta in (0.0, 1e-6, 0.1):
            gap = generalisation.expected_gap(epsilon, delta)
            assert (
                gap
                <= (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1) + 1e-15
                <= epsilon / 2 + delta + 2e-15
            )
            assert gap <= math.expm1(epsilon) + delta
    # Reached: one row of 1,000 equal values, and a set of m of them, e^epsilon times likelier if it holds the row.
    epsilon = 0.7
    reached = max(m * math.exp(epsilon) / (m * math.exp(epsilon) + 1000 - m) - m / 1000 for m in range(1, 1000))
    assert reached == pytest.approx(generalisation.expected_gap(epsilon), rel=1e-6)
    # Never exceeded: random mechanisms on one row of four values, each with its best h.
    rng = np.random.default_rng(12)
    for _ in range(200):
        population, law = rng.dirichlet(np.ones(4)), rng.dirichlet(np.full(3, 5.0), size=4)
        widest = max(float(np.abs(np.log(a) - np.log(b)).max()) for a, b in itertools.combinations(law, 2))
        joint = population[:, None] * law
        gap = np.maximum(joint - population[:, None] * joint.sum(axis=0), 0).sum()
        assert gap <= generalisation.expected_gap(widest) + 1e-12


def test_the_small_term_of_the_gaussian_proof_may_not_be_dropped_at_every_epsilon() -> None:
    for delta in (1e-3, 1e-6, 1e-9):
        t = math.sqrt(2 * math.log(2 / delta))
        assert gaussian_delta(1.0, t / 1.0) <= delta
    t = math.sqrt(2 * math.log(2 / 1e-6))
    assert gaussian_delta(10.0, t / 10) == pytest.approx(1.149e-6, rel=1e-3)


def test_all_conjunctions_need_d_squared_over_epsilon_rows() -> None:
    """SmallDB's promise for the 3^d conjunctions of d bits: with n = c d^2/epsilon it stays, with d^2.5 it falls."""

    def promised(n: int, d: int) -> float:
        found = promises(n=n, universe=2**d, queries=[3**d], epsilon=1)
        return found.errors["small database"][0]

    stays = [promised(1000 * d * d, d) for d in (10, 20, 40, 80)]
    assert max(stays) / min(stays) < 1.05
    falls = [promised(1000 * int(d**2.5), d) for d in (10, 20, 40, 80)]
    assert all(b < 0.93 * a for a, b in itertools.pairwise(falls))


def test_two_counts_one_apart_are_drawn_with_their_ratio() -> None:
    """The thesis' Figures 2.3 to 2.6: scale 1/ln 3, one apart 3, five apart 3^5; five times the noise 3 again."""
    pytest.importorskip("matplotlib")
    outputs = range(990, 1016)
    once = LaplaceMechanism(sensitivity=1, scale=Fraction(1 / math.log(3)))
    five = LaplaceMechanism(sensitivity=5, scale=Fraction(5 / math.log(3)))
    for mechanism, data, factor in ((once, (1000, 1001), 3), (once, (1000, 1005), 3**5), (five, (1000, 1005), 3)):
        one, other = (np.asarray(line.get_ydata()) for line in draw_laws(mechanism, data, outputs).lines)
        assert max((one / other).max(), (other / one).max()) == pytest.approx(factor)
    assert draw_laws(once, [0], range(-5, 6), log=True).get_yscale() == "log"
