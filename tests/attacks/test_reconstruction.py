"""Too many answers that are too exact give everybody's bit back."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from attacks.helpers import slack
from hubbub import attacks
from hubbub.errors import ParameterError
from hubbub.mechanisms import LaplaceMechanism
from hubbub.noise import gaussian, uniform_below
from hubbub.queries import InnerProducts
from seeded import SeededBits

N, M = 100, 400


def survey(seed: object, n: int = N, m: int = M):
    bits = SeededBits(f"survey {seed}")
    truth = uniform_below(2, n, bits=bits)
    queries = attacks.random_subsets(m, n, bits=bits)
    return bits, truth, queries, queries @ truth


@pytest.mark.parametrize("method", ["least_squares", "lp"])
@pytest.mark.parametrize(
    ("factor", "low", "high"), [(0.1, 0.995, 1.0), (0.25, 0.9, 1.0), (1.0, 0.58, 0.74), (2.0, 0.5, 0.65)]
)
def test_k1_a_hundred_bits_from_400_noisy_subset_counts(method, factor, low, high):
    """Target K1: at least .90 right at noise .25 sqrt n, at most .65 at 2 sqrt n (means of 8 runs, 800 bits)."""
    shares = []
    for seed in range(8):
        bits, truth, queries, exact = survey((method, factor, seed))
        answers = exact + gaussian(sigma=factor * math.sqrt(N), size=M, bits=bits)
        shares.append(attacks.reconstruct(queries, answers, method=method, truth=truth).success)
    assert low <= np.mean(shares) <= high


@pytest.mark.parametrize("factor", [0.1, 0.25, 1.0, 2.0])
def test_least_squares_is_right_as_often_as_phi_says(factor):
    """Within .04 of Phi(.25 sqrt(m-n)/sigma): 12 runs of 100 bits, 3 standard deviations; fixed bits."""
    shares = []
    for seed in range(12):
        bits, truth, queries, exact = survey(("phi", factor, seed))
        answers = exact + gaussian(sigma=factor * math.sqrt(N), size=M, bits=bits)
        shares.append(attacks.reconstruct(queries, answers, method="least_squares", truth=truth).success)
    assert abs(np.mean(shares) - attacks.least_squares_accuracy(N, M, factor * math.sqrt(N))) <= 0.04


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_lp_survives_arbitrary_answers_and_least_squares_does_not(share):
    for seed in range(2):
        bits, truth, queries, exact = survey((share, seed), n=60, m=480)
        answers = exact.copy()
        answers[: int(share * len(exact))] = uniform_below(10**6, int(share * len(exact)), bits=bits)
        assert attacks.reconstruct(queries, answers, method="lp", truth=truth).success == 1
        assert attacks.reconstruct(queries, answers, method="least_squares", truth=truth).success < 0.8


@pytest.mark.parametrize("n", [8, 12])
@pytest.mark.parametrize("errors", [0, 1, 2, 3])
def test_adversarial_answers_exercise_the_four_alpha_n_bound_exactly(n, errors):
    """Answers (q.x + q.x')/2: within alpha n = errors/2 of both, so the certificate is 4 alpha n = 2 errors: met."""
    truth = np.array([0, 1] * (n // 2))
    queries = attacks.all_subsets(n)
    answers, other = attacks.adversarial_answers(queries, truth, errors)
    alpha_n = errors / 2
    assert np.abs(answers - queries @ truth).max() <= alpha_n
    assert int((truth != other).sum()) == 4 * alpha_n
    found = attacks.reconstruct(queries, answers, method="brute_force", within=alpha_n, truth=truth)
    assert found.error <= alpha_n
    assert int((found.bits != truth).sum()) <= found.wrong_at_most <= 4 * alpha_n
    # Wherever between x and x' it settled, one of the two worlds is at least 2 alpha n away.
    assert max((found.bits != truth).sum(), (found.bits != other).sum()) >= 2 * alpha_n


@pytest.mark.parametrize("within", [0, 1, 2])
def test_random_errors_within_alpha_n_never_break_the_certificate(within):
    n, queries = 10, attacks.all_subsets(10)
    for seed in range(5):
        bits = SeededBits(f"certificate {within} {seed}")
        truth = uniform_below(2, n, bits=bits)
        answers = queries @ truth + uniform_below(2 * within + 1, len(queries), bits=bits) - within
        found = attacks.reconstruct(queries, answers, method="brute_force", within=within, truth=truth)
        assert int((found.bits != truth).sum()) <= found.wrong_at_most <= 4 * within


def test_the_certificate_holds_for_few_queries_too():
    bits = SeededBits("few")
    truth = uniform_below(2, 14, bits=bits)
    queries = attacks.random_subsets(20, 14, bits=bits)
    found = attacks.reconstruct(queries, queries @ truth, method="brute_force", within=1, truth=truth)
    wrong = int((found.bits != truth).sum())
    assert found.error == 0
    assert wrong <= found.wrong_at_most
    assert attacks.reconstruct(queries, queries @ truth, method="brute_force").wrong_at_most is None


@pytest.mark.parametrize("t", [2, 3])
def test_overlapping_tables_give_the_depression_column_back(t):
    """The big bang: public attributes of everybody, and how many in each cell of each t-way table are depressed."""
    bits, n = SeededBits(f"tables {t}"), 80
    attributes = [uniform_below(4, n, bits=bits) for _ in range(9)]
    truth = uniform_below(2, n, bits=bits)
    queries = attacks.contingency_queries(attributes, t=t)
    assert (queries.sum(axis=0) == math.comb(9, t)).all()
    for method in ("lp", "least_squares"):
        assert attacks.reconstruct(queries, queries @ truth, method=method, truth=truth).success == 1


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
@pytest.mark.parametrize("method", ["least_squares", "lp"])
def test_private_tables_stay_below_the_ceiling(method, epsilon):
    """Each person is in one cell of every table: l1 sensitivity comb(9, 2) = 36 tables."""
    right = []
    for seed in range(5):
        bits, n = SeededBits(f"private {method} {epsilon} {seed}"), 80
        attributes = [uniform_below(4, n, bits=bits) for _ in range(9)]
        truth = uniform_below(2, n, bits=bits)
        queries = attacks.contingency_queries(attributes, t=2)
        noise = LaplaceMechanism(sensitivity=36, epsilon=epsilon, cells=len(queries))
        found = attacks.reconstruct(queries, noise.release(queries @ truth, bits=bits), method=method, truth=truth)
        right.append(found.success)
    assert np.mean(right) <= found.ceiling(epsilon) + slack(400) < 1


def test_the_tables_a_session_answers_do_not_give_the_column_back():
    """All 2-way tables of six attributes through SQL, epsilon 1 in all: fewer than 97 of 100 bits.

    Each bit is right with at most .731 in expectation; 97 of 100 has a probability below 1e-9 for independent guesses.
    """
    n, bits = 100, SeededBits("session")
    attributes = {f"a{i}": uniform_below(4, n, bits=bits) for i in range(6)}
    truth = uniform_below(2, n, bits=bits)
    rows = pa.table({"person": np.arange(n), "ill": truth == 1, **attributes})
    declared = hb.table(
        rows, unit="person", max_groups=1, max_rows=1, columns={name: hb.one_of(0, 1, 2, 3) for name in attributes}
    )
    queries, answers = [], []
    with warnings.catch_warnings(action="ignore"):
        session = hb.Session({"people": declared}, budget=hb.Budget(epsilon=1), ledger=None)
    with session:
        for a, b in itertools.combinations(attributes, 2):
            sql = f"SELECT {a}, {b}, COUNT(*) AS n FROM people WHERE ill GROUP BY {a}, {b}"
            for cell in session.sql(sql, epsilon="1/15").to_arrow().to_pylist():
                queries.append((attributes[a] == cell[a]) & (attributes[b] == cell[b]))
                answers.append(cell["n"])
        assert session.remaining == 0
    assert len(answers) == 15 * 16
    matrix = np.array(queries, dtype=int)
    assert attacks.reconstruct(matrix, matrix @ truth, truth=truth).success == 1
    assert attacks.reconstruct(matrix, answers, truth=truth).right.sum() < 97


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_private_subset_counts_stay_below_the_ceiling(epsilon):
    right = []
    for seed in range(4):
        bits, truth, queries, exact = survey((epsilon, seed))
        noise = LaplaceMechanism(sensitivity=int(queries.sum(axis=0).max()), epsilon=epsilon, cells=M)
        found = attacks.reconstruct(queries, noise.release(exact, bits=bits), method="lp", truth=truth)
        right.append(found.success)
    assert np.mean(right) <= found.ceiling(epsilon) + slack(400) < 1
    assert attacks.reconstruct(queries, exact, truth=truth).success == 1


def test_a_workload_will_do_for_queries_and_a_result_plots():
    _, truth, queries, _ = survey("workload", n=20, m=60)
    workload = InnerProducts(queries)
    found = attacks.reconstruct(workload, workload.evaluate(truth), truth=truth)
    assert found.success == 1
    assert len(found.plot().lines) == 2
    blind = attacks.reconstruct(queries, workload.evaluate(truth))
    assert len(blind.plot().lines) == 1
    with pytest.raises(ParameterError, match="truth"):
        _ = blind.success


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError, match="22"):
        attacks.reconstruct(np.ones((1, 23)), [1], method="brute_force")
    with pytest.raises(ParameterError, match="method"):
        attacks.reconstruct([[1]], [1], method="guess")
    with pytest.raises(ParameterError, match="within"):
        attacks.reconstruct([[1]], [5], method="brute_force", within=1)
    with pytest.raises(ParameterError, match="lengths"):
        attacks.reconstruct([[1], [1]], [5])
    with pytest.raises(ParameterError, match="0 and 1"):
        attacks.reconstruct([[2]], [5])
    with pytest.raises(ParameterError, match="ones"):
        attacks.adversarial_answers([[1, 1]], [1, 1], 1)
    with pytest.raises(ParameterError):
        attacks.least_squares_accuracy(5, 5, 1)


@pytest.mark.soak
@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0, 2.0])
def test_least_squares_is_phi_to_two_hundredths_over_two_hundred_runs(factor):
    shares = []
    for seed in range(200):
        bits, truth, queries, exact = survey(("soak", factor, seed))
        answers = exact + gaussian(sigma=factor * math.sqrt(N), size=M, bits=bits)
        shares.append(attacks.reconstruct(queries, answers, method="least_squares", truth=truth).success)
    assert abs(np.mean(shares) - attacks.least_squares_accuracy(N, M, factor * math.sqrt(N))) <= 0.02


def test_a_private_mechanism_is_not_blatantly_non_private():
    """(1, .1)-DP: no attacker has nine tenths of fair bits right on average; ln 9 is the least that allows it."""
    assert attacks.bit_ceiling(1, "0.1") == pytest.approx((math.e + 0.1) / (math.e + 1))
    assert attacks.bit_ceiling(1, "0.1") < 0.76 < 0.9
    assert attacks.bit_ceiling(math.log(9)) == pytest.approx(0.9)


def test_an_error_of_a_fortieth_gives_nine_tenths_of_the_bits():
    """All subsets of ten people within n/40: at most 4 n/40 = n/10 bits are wrong, whatever the answers within it."""
    bits = SeededBits("a fortieth")
    truth, queries = uniform_below(2, 10, bits=bits), attacks.all_subsets(10)
    for _ in range(3):
        answers = queries @ truth + (uniform_below(1001, len(queries), bits=bits) - 500) / 2000
        found = attacks.reconstruct(queries, answers, method="brute_force", within=0.25, truth=truth)
        assert (found.bits != truth).sum() <= found.wrong_at_most <= 1
