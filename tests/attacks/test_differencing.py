"""Two exact counts tell a secret; two private ones hardly; asking again and again tells hubbub's one answer."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import DiscreteLaplace, uniform_below
from seeded import SeededBits


def test_exact_counts_tell_every_secret():
    truth = np.array([0, 1, 1, 0])
    found = attacks.difference(np.full(4, 2), 2 - truth, truth)
    assert found.success == 1
    assert len(found.plot().lines) == 3


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2"])
def test_private_counts_tell_as_much_as_the_theorem_says_and_less_than_the_ceiling(epsilon):
    n, bits = 200_000, SeededBits(f"difference {epsilon}")
    truth = uniform_below(2, n, bits=bits)
    noisy = LaplaceMechanism(sensitivity=1, epsilon=epsilon, cells=n)
    everybody, others = noisy.release(40 + truth, bits=bits), noisy.release(np.full(n, 40), bits=bits)
    found = attacks.difference(everybody, others, truth)
    theory = attacks.right_by_differencing(1 / Fraction(epsilon))
    assert abs(found.success - theory) <= slack(n, 5e-10)
    assert found.success <= found.ceiling(epsilon) + slack(n)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(2), Fraction(10)])
def test_the_chance_of_differencing_is_that_of_the_exact_law(scale):
    """Summed over both draws: P(D >= 1) for bit 0 wrong; D + 1 >= 1 for bit 1 right."""
    law, reach = DiscreteLaplace(scale), math.ceil(60 * scale)
    x = np.arange(-reach, reach + 1)
    mass = np.exp(np.asarray(law.log_pmf(x)))
    difference = np.convolve(mass, mass[::-1])
    d = np.arange(-2 * reach, 2 * reach + 1)
    right = difference[d + 1 > 0.5].sum() / 2 + difference[d <= 0.5].sum() / 2
    assert attacks.right_by_differencing(scale) == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize("b", [0.5, 1.0, 3.0])
def test_the_chance_for_continuous_noise_is_its_integral(b):
    """P(L1 - L2 > -1/2) by quadrature of the density e^(-|t|/b)(1 + |t|/b)/4b."""
    t = np.linspace(-0.5, 60 * b, 2_000_001)
    density = np.exp(-np.abs(t) / b) * (1 + np.abs(t) / b) / (4 * b)
    assert attacks.right_by_differencing_continuous(b) == pytest.approx(np.trapezoid(density, t), abs=1e-7)


def test_the_salary_of_the_one_who_left():
    assert attacks.difference_of_means(101, before=Fraction(5_100_000, 101), after=50_000) == 100_000
    with pytest.raises(ParameterError):
        attacks.difference_of_means(1, 3, 3)


@pytest.mark.parametrize("epsilon", ["0.5", "1"])
def test_thirty_one_over_epsilon_squared_repeats_recover_a_count_19_times_in_20(epsilon):
    n, bits, repeats = 4000, SeededBits(f"average {epsilon}"), attacks.averaging_repeats(epsilon)
    assert repeats == 31 / Fraction(epsilon) ** 2
    truth = uniform_below(100, n, bits=bits)
    noisy = LaplaceMechanism(sensitivity=1, epsilon=epsilon, cells=n * repeats)
    found = attacks.average(noisy.release(np.repeat(truth, repeats), bits=bits).reshape(n, repeats), truth)
    assert attacks.right_by_averaging(repeats, epsilon) == pytest.approx(0.95, abs=0.015)
    assert abs(found.success - attacks.right_by_averaging(repeats, epsilon)) <= slack(n, 5e-10)
    # What was paid: 31/epsilon in all, at which the ceiling says nothing any more.
    assert found.ceiling(repeats * Fraction(epsilon)) == pytest.approx(1, abs=1e-9)
    assert len(found.plot().lines) == 3


def test_averaging_in_one_budget_stays_below_the_ceiling():
    """Two neighbouring counts told apart by the mean of 100 answers that share epsilon 1."""
    n, repeats, bits = 4000, 100, SeededBits("shared")
    truth = uniform_below(2, n, bits=bits)
    noisy = LaplaceMechanism(sensitivity=1, epsilon=Fraction(1, repeats), cells=n * repeats)
    answers = noisy.release(np.repeat(truth, repeats), bits=bits).reshape(n, repeats)
    guesses = answers.mean(axis=1) > 0.5
    assert float((guesses == (truth == 1)).mean()) <= attacks.bit_ceiling(1) + slack(n)


@pytest.fixture
def session():
    """Forty people; whoever has a number divisible by three is ill."""
    rows = pa.table({"person": list(range(40)), "ill": [i % 3 == 0 for i in range(40)]})
    declared = hb.table(rows, unit="person", max_groups=1, max_rows=1)
    with (
        warnings.catch_warnings(action="ignore"),
        hb.Session({"people": declared}, budget=hb.Budget(20), ledger=None) as opened,
    ):
        yield opened


def answer(session: hb.Session, where: str, **options) -> int:
    sql = f"SELECT COUNT(*) AS n FROM people WHERE {where}"
    return session.sql(sql, epsilon="0.2", **options).to_arrow().to_pylist()[0]["n"]


def test_hubbub_s_own_answers_differ_by_more_than_one_person(session):
    """Not all 40 are told rightly, else a false alarm.

    Given the noise z of the count of everybody, the 14 ill are told with p and the 26 others with p', each alone, and
    p + p' = 1 + P(noise = z) <= 1.1: all 40 with probability at most p^14 p'^26 < 1e-9.
    """
    truth = np.array([i % 3 == 0 for i in range(40)], dtype=int)
    everybody = answer(session, "ill")
    without = [answer(session, f"ill AND person <> {i}") for i in range(40)]
    exact = attacks.difference(np.full(40, truth.sum()), truth.sum() - truth, truth)
    assert exact.success == 1
    assert attacks.difference(np.full(40, everybody), without, truth).right.sum() < 40


def test_hubbub_answers_the_same_question_with_the_same_answer(session):
    first = answer(session, "ill")
    left = session.remaining
    answers = [answer(session, "ill") for _ in range(30)]
    assert set(answers) == {first}
    assert session.remaining == left


def test_fresh_draws_end_with_the_budget(session):
    for _ in range(100):  # of the 775 that averaging needs
        answer(session, "ill", fresh=True)
    assert attacks.averaging_repeats("0.2") == 775
    with pytest.raises(hb.BudgetError):
        answer(session, "ill", fresh=True)
