"""Private learning of a finite class, and the statistical-query oracle."""

from __future__ import annotations

import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

from hubbub.accounting import pure_epsilon
from hubbub.errors import ParameterError, QueryError
from hubbub.learning import (
    FiniteClassLearner,
    StatisticalQueryOracle,
    halfspaces,
    learning_sample_size,
    oracle_sample_size,
)
from hubbub.mechanisms import epsilon_between
from seeded import SeededBits

THRESHOLDS = [lambda x, c=c: np.asarray(x) >= c for c in range(101)]


def test_m14_excess_mistakes_stay_within_two_ln_c_over_epsilon_n() -> None:
    """Exactly, on 400 examples of a threshold with a tenth of the labels wrong."""
    generator = np.random.default_rng(14)
    examples = generator.integers(0, 101, 400)
    labels = (examples >= 37) ^ (generator.uniform(size=400) < 0.1)
    for neighbours, factor in (("replace", 2), ("add_remove", 1)):
        learner = FiniteClassLearner(hypotheses=THRESHOLDS, epsilon=1, neighbours=neighbours)  # type: ignore[arg-type]
        gap = learner.accuracy("0.05", n=400)
        assert gap == pytest.approx(factor * (math.log(101) + math.log(20)) / 400, rel=1e-12)
        mistakes = learner.mistakes(examples, labels)
        chances = np.exp(learner.mechanism.log_probs(-mistakes))
        assert float(chances[(mistakes - mistakes.min()) / 400 > gap].sum()) <= 0.05


def test_m14_sample_size_has_both_terms() -> None:
    def size(epsilon: str) -> int:
        return learning_sample_size(hypotheses=1000, alpha="0.1", beta="0.05", epsilon=epsilon)

    assert size("1000") == math.ceil(2 * math.log(4 * 1000 / 0.05) / 0.1**2)
    assert size("0.01") == math.ceil(4 * (math.log(1000) + math.log(2 / 0.05)) / (0.1 * 0.01))


def test_m14_four_ln_c_over_alpha_epsilon_suffices_and_a_sixteenth_does_not() -> None:
    """Exactly: 1000 hypotheses of which all but one err on every other example. The source's figure is 1/(4 ...)."""
    size, alpha, epsilon, beta = 1000, 0.1, 0.05, 0.05

    def failing(n: int) -> float:
        return failing_by_hypotheses(n, size, epsilon)

    enough = math.ceil(4 * (math.log(size) + math.log(2 / beta)) / (alpha * epsilon))
    printed = math.ceil(math.log(size) / (4 * alpha * epsilon))
    assert failing(enough) <= beta / 2
    assert failing(printed) > 0.99


def failing_by_hypotheses(n: int, size: int, epsilon: float) -> float:
    """P(a hypothesis with n/20 + 1 mistakes is chosen) when one has none and all others that many."""
    from hubbub.mechanisms import ExponentialMechanism

    scores = np.full(size, -(n // 20 + 1))
    scores[0] = 0
    return 1 - math.exp(ExponentialMechanism(epsilon=str(epsilon), sensitivity=1).log_prob(0, scores))


def test_one_example_moves_the_choice_by_at_most_epsilon() -> None:
    learner = FiniteClassLearner(hypotheses=THRESHOLDS[::20], epsilon=1)
    assert pure_epsilon(learner.loss) == 1
    worst = 0.0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        examples, labels = generator.integers(0, 101, 12), generator.uniform(size=12) < 0.5
        other, flipped = examples.copy(), labels.copy()
        other[0], flipped[0] = generator.integers(0, 101), not labels[0]
        laws = [[learner.log_prob(h, data) for h in range(6)] for data in ((examples, labels), (other, flipped))]
        worst = max(worst, epsilon_between(*laws))
    assert 0.4 < worst <= 1 + 1e-9


def test_a_halfspace_is_learned_privately() -> None:
    """All 8 x 3 halfspaces of step 1 in the plane; 3000 examples at epsilon 1 leave one sensible choice."""
    generator = np.random.default_rng(3)
    points = generator.uniform(-1, 1, (3000, 2))
    labels = points @ np.array([1, -1]) >= 0
    learner = FiniteClassLearner(hypotheses=halfspaces(2, steps=1), epsilon=1)
    assert len(learner.hypotheses) == 24
    chosen = learner.release(points, labels, bits=SeededBits("halfspace"))
    assert learner.mistakes(points, labels)[chosen] == 0
    with pytest.raises(ParameterError, match="truth values"):
        learner.release(points, labels.astype(int))


def test_q7_the_oracle_answers_within_its_tolerance() -> None:
    ages = np.random.default_rng(7).integers(0, 121, 5000)
    oracle = StatisticalQueryOracle(ages, queries=50, epsilon=1, bits=SeededBits("oracle"))
    assert pure_epsilon(oracle.loss) == 1
    assert oracle.accuracy("0.01") == math.ceil(50 * math.log(50 / 0.01)) / 5000
    errors = [abs(float(oracle.stat(lambda x, t=t: x > t)) - float((ages > t).mean())) for t in range(0, 100, 2)]
    assert max(errors) <= oracle.accuracy("0.01")
    assert oracle.left == 0
    with pytest.raises(QueryError, match="all queries"):
        oracle.stat(lambda x: x > 3)


def test_q7_tolerance_needs_rows_for_sampling_and_for_noise() -> None:
    tau, k, beta, epsilon = 0.05, 20, 0.05, 0.5
    n = oracle_sample_size(tolerance="0.05", queries=k, beta="0.05", epsilon="0.5")

    def error(rows: int) -> float:
        return math.sqrt(math.log(4 * k / beta) / (2 * rows)) + math.ceil(k * math.log(2 * k / beta) / epsilon) / rows

    assert error(n) <= tau < error(n - 1)


def test_q7_the_average_salary_before_and_after_one_leaves_is_that_salary_unless_noise_hides_it() -> None:
    salaries = np.random.default_rng(8).integers(20, 100, 40)
    before, after = Fraction(int(salaries.sum()), 40), Fraction(int(salaries[:-1].sum()), 39)
    assert 40 * before - 39 * after == salaries[-1]
    # Shares above each level, asked twice with noise: the difference of two answers has the noise of both.
    oracles = [
        StatisticalQueryOracle(rows, queries=1, epsilon="1/2", bits=SeededBits(f"salary{i}"))
        for i, rows in enumerate((salaries, salaries[:-1]))
    ]
    answers = [oracle.stat(lambda x: x > 60) * oracle.n for oracle in oracles]
    assert answers[0].denominator == answers[1].denominator == 1
    laws = [[oracles[0].mechanism.log_prob(y, c) for y in range(-60, 100)] for c in (10, 11)]
    assert epsilon_between(*laws) == pytest.approx(0.5, rel=1e-9)


def test_an_oracle_holds_private_rows_and_never_shows_them() -> None:
    oracle = StatisticalQueryOracle(np.array([3, 4]), queries=1, epsilon=1)
    assert repr(oracle) == "StatisticalQueryOracle(n=2, left=1)"
    with pytest.raises(ParameterError, match="cannot be pickled"):
        pickle.dumps(oracle)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: FiniteClassLearner(hypotheses=[], epsilon=1), "at least one"),
        (lambda: FiniteClassLearner(hypotheses=THRESHOLDS, epsilon=1, neighbours="x"), "add_remove"),  # type: ignore[arg-type]
        (lambda: FiniteClassLearner(hypotheses=[lambda x: 1], epsilon=1).mistakes([1], [True]), "one truth value"),
        (lambda: learning_sample_size(hypotheses=10, alpha=0, beta="0.1", epsilon=1), "alpha and beta"),
        (lambda: oracle_sample_size(tolerance=0, queries=1, beta="0.1", epsilon=1), "tolerance"),
        (lambda: StatisticalQueryOracle([1], queries=2.5, epsilon=1), "whole number"),  # type: ignore[arg-type]
        (lambda: StatisticalQueryOracle([1], queries=0, epsilon=1), "at least 1"),
        (lambda: FiniteClassLearner(hypotheses=THRESHOLDS, epsilon=1).accuracy("0.1", n=0), "at least 1"),
        (lambda: StatisticalQueryOracle([], queries=1, epsilon=1), "at least one row"),
        (lambda: StatisticalQueryOracle([1], queries=1, epsilon=1).stat(lambda x: 1), "one truth value"),
    ],
)
def test_bad_parameters_say_what_is_allowed(act: object, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        act()  # type: ignore[operator]


def test_an_oracle_gives_no_answer_too_many_to_threads_or_from_within() -> None:
    class Again(SeededBits):
        oracle: StatisticalQueryOracle | None = None
        answers = 0

        def fill(self, buffer: object) -> None:
            super().fill(buffer)  # type: ignore[arg-type]
            inner, self.oracle = self.oracle, None
            if inner is not None:
                try:
                    inner.stat(lambda x: x > 3)
                    self.answers += 1
                except QueryError:
                    pass

    bits = Again("again")
    oracle = StatisticalQueryOracle(np.arange(10), queries=1, epsilon=1, bits=bits)
    bits.oracle = oracle
    oracle.stat(lambda x: x > 3)
    assert (bits.answers, oracle.left) == (0, 0)
    with pytest.raises(QueryError, match="all queries"):
        oracle.stat(lambda x: x > 3)

    shared, got = StatisticalQueryOracle(np.arange(10), queries=3, epsilon=1), []
    ready = threading.Barrier(8)

    def slow(x: np.ndarray) -> np.ndarray:
        pause.wait(0.001)
        return x > 3

    def ask() -> None:
        ready.wait()
        try:
            while True:
                got.append(shared.stat(slow))
        except QueryError:
            pass

    pause = threading.Event()
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 3


def test_q7_the_oracles_bound_is_a_whole_count() -> None:
    """k ln(k/beta)/epsilon unrounded is exceeded more often than beta says; rounded up it is not, exactly."""
    oracle = StatisticalQueryOracle(np.arange(100), queries=1, epsilon="2")
    law, beta = oracle.mechanism.error(), 0.2
    plain = math.log(1 / beta) / 2
    reach = round(oracle.accuracy("0.2") * 100)
    assert reach == math.ceil(plain) == 1
    assert 2 * float(law.tail(reach)) <= beta < 2 * float(law.tail(math.floor(plain)))
