"""The checker catches every known broken variant, and says by how much; the correct ones beside them pass."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.mechanisms import LaplaceMechanism, SparseVector, epsilon_between, examine
from hubbub.noise import DiscreteLaplace, Geometric
from mechanisms import broken

CLAIM = Fraction(1, 10)


def loss(mechanism: broken.BrokenSparseVector, output: list, data: list[int], other: list[int]) -> float:
    """|ln P(output | data) - ln P(output | other)|; infinite where only one is possible."""
    first, second = mechanism.log_prob(output, data), mechanism.log_prob(output, other)
    return math.inf if (first == -math.inf) != (second == -math.inf) else abs(first - second)


def test_sparse_vector_that_shows_the_value_has_no_epsilon() -> None:
    """Algorithm 3: the shown value bounds the noisy threshold, so every No costs epsilon/2 more, without end."""
    mechanism = broken.algorithm_3(CLAIM, c=1)
    losses = [loss(mechanism, [False] * m + [-400], [0] * m + [-400], [1] * m + [-400]) for m in (10, 100, 1000)]
    assert losses[0] > 4 * CLAIM
    assert losses[1] > 9 * losses[0]
    assert losses[2] > 9 * losses[1]


def test_sparse_vector_with_too_little_answer_noise_costs_seven_quarters() -> None:
    """Algorithm 4 at c = 1: 0.175 for a claim of 0.1, approached from below."""
    mechanism = broken.algorithm_4(CLAIM)
    found = loss(mechanism, [False] * 60 + [True], [0] * 60 + [-200], [1] * 60 + [-201])
    assert 1.5 * CLAIM < found <= 1.75 * float(CLAIM) * (1 + 1e-9)


def test_sparse_vector_without_answer_noise_has_no_epsilon() -> None:
    """Algorithm 5: the order of two values shows."""
    assert loss(broken.algorithm_5(CLAIM), [False, True], [0, 1], [1, 0]) == math.inf


@pytest.mark.parametrize("split", [(CLAIM / 2, CLAIM / 2), (CLAIM / 4, 3 * CLAIM / 4)])
def test_sparse_vector_without_an_end_has_no_epsilon(split: tuple[Fraction, Fraction]) -> None:
    """Algorithm 6 and generalised private threshold testing: the loss grows with the number of questions."""
    mechanism = broken.generalised_threshold_testing(*split)
    losses = [loss(mechanism, [False] * m + [True] * m, [0] * 2 * m, [1] * m + [-1] * m) for m in (5, 50, 500)]
    assert losses[0] > 3 * CLAIM
    assert losses[1] > 4 * losses[0]
    assert losses[2] > 4 * losses[1]
    if split[0] == split[1]:
        assert mechanism == broken.algorithm_6(CLAIM)
        assert losses[0] == pytest.approx(0.42, abs=0.01)


def test_the_correct_sparse_vector_passes_all_the_same_traps() -> None:
    mechanism = SparseVector(epsilon=CLAIM, positives=1, sensitivity=1)
    for m in (2, 50, 500):
        for output, data, other in [
            ((False,) * m + (True,), [0] * m + [-200], [1] * m + [-201]),
            ((False,) * m + (True,), [0] * (m + 1), [1] * m + [-1]),
            ((False, True), [0, 1], [1, 0]),
        ]:
            first = mechanism.log_prob(output, data, threshold=0)
            second = mechanism.log_prob(output, other, threshold=0)
            assert abs(first - second) <= CLAIM * (1 + 1e-9)


def test_noisy_max_that_shows_the_value_costs_half_epsilon_per_question() -> None:
    """Laplace 2/epsilon, 5 questions: 0.25 for a claim of 0.1; with exponential noise, no epsilon at all."""
    outputs = np.arange(-300, 300)
    laplace, geometric = DiscreteLaplace(2 / CLAIM), Geometric(2 / CLAIM)
    first, second = [0] * 5, [1] * 5
    found = epsilon_between(
        broken.noisy_max_with_value(first, laplace, outputs), broken.noisy_max_with_value(second, laplace, outputs)
    )
    assert found == pytest.approx(0.25, rel=1e-6)
    found = epsilon_between(
        broken.noisy_max_with_value(first, geometric, outputs), broken.noisy_max_with_value(second, geometric, outputs)
    )
    assert found == math.inf


def test_a_histogram_with_scale_epsilon_costs_one_over_epsilon() -> None:
    law = DiscreteLaplace(CLAIM)
    outputs = np.arange(-20, 22)
    assert examine(lambda n: law.log_pmf(outputs - n), [(0, 1)]).epsilon == pytest.approx(10, rel=1e-12)
    right = LaplaceMechanism(sensitivity=1, epsilon=CLAIM).error()
    assert examine(lambda n: right.log_pmf(outputs - n), [(0, 1)]).epsilon == pytest.approx(0.1, rel=1e-12)


def test_small_database_without_the_factor_two_exceeds_its_claim() -> None:
    """Replace neighbours of 40 rows: the source's weight claims epsilon and reaches nearly twice that."""

    def worst(factor: float) -> float:
        def law(ones: int) -> np.ndarray:
            return broken.small_database((ones, 40 - ones), epsilon=1.0, size=4, factor=factor)

        return examine(law, [(k, k + 1) for k in range(40)]).epsilon

    assert 1.4 < worst(1.0) <= 2
    assert worst(2.0) <= 1


@pytest.mark.parametrize(("cells", "moved"), [(10, 10), (2, 2)])
def test_noise_for_one_cell_on_many_that_move_together_costs_as_many_times(cells: int, moved: int) -> None:
    """Prefix sums of 10 at Laplace 1/epsilon, and two answers charged once."""
    law = LaplaceMechanism(sensitivity=1, epsilon=CLAIM, cells=cells)
    found = law.log_prob([0] * cells, [0] * cells) - law.log_prob([0] * cells, [1] * moved)
    assert found == pytest.approx(moved * float(CLAIM), rel=1e-12)
