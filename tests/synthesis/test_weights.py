"""Multiplicative weights (M13), online and offline: cost, selection, and errors within their own theorem."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.accounting import cost
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.check import examine
from hubbub.queries import Linear, Marginals, Points, Predicates, Stack, Thresholds
from hubbub.synthesis.multiplicative_weights import OnlineWeights, root_below
from hubbub.synthesis.mwem import OfflineWeights
from seeded import SeededBits


def skewed(n: int, universe: int, seed: int = 0) -> Any:
    """Rows that crowd at small values."""
    uniform = (SeededBits(seed).u64(n) / 2.0**64) ** 3
    return np.minimum(universe - 1, (uniform * universe).astype(np.int64))


def prefix(universe: int, last: int) -> Any:
    return np.arange(universe) <= last


def test_m13_online_costs_exactly_its_rho() -> None:
    run = OnlineWeights(skewed(1000, 8), universe=8, queries=50, rho="1/7", updates=6)
    assert cost(run.loss).rho == Fraction(1, 7)
    # Six answers of sensitivity 1 each: their noise and the sparse vector's are what was charged.
    assert run.answers.squared_steps == 6
    assert run.sparse.positives == 6
    assert run.answers.rho + run.sparse.epsilon**2 / 2 == Fraction(1, 7)


def test_m13_offline_costs_its_rho_and_never_more() -> None:
    weights = OfflineWeights(workload=Thresholds(16), n=1000, rho="1/7", rounds=9)
    assert cost(weights.loss).rho == Fraction(1, 7)
    assert weights.select.epsilon**2 / 8 <= Fraction(1, 126) <= weights.select.epsilon**2 / 8 * (1 + Fraction(1, 10**9))
    assert weights.measure.rho == Fraction(1, 63) - weights.select.epsilon**2 / 8
    for x in (Fraction(2), Fraction(1, 3 * 10**12), Fraction(10**9, 7)):
        assert x * (1 - Fraction(1, 10**15)) <= root_below(x) ** 2 <= x


@pytest.mark.parametrize("workload", [Points(3), Thresholds(4), Linear([["0", "1/2", "1"], ["1", "0", "1/4"]])])
def test_m13_every_choice_is_as_private_as_its_event_says(workload: Any) -> None:
    """All pairs of tables of four rows that differ in one, against several public histograms."""
    weights = OfflineWeights(workload=workload, n=4, rho=4, rounds=2)
    universe = workload.universe
    for public in (np.full(universe, 1 / universe), np.arange(1, universe + 1) / sum(range(1, universe + 1))):
        guesses = 4 * workload.answers(public)
        pairs = [
            (np.array([*rest, a]), np.array([*rest, b]))
            for rest in itertools.combinations_with_replacement(range(universe), 3)
            for a, b in itertools.combinations(range(universe), 2)
        ]
        law = lambda rows, g=guesses: weights.select.log_probs(weights.scores(workload.evaluate(rows), g))  # noqa: E731
        assert examine(law, pairs).epsilon <= float(weights.select.epsilon) * (1 + 1e-9)


def test_m13_online_answers_stay_within_the_theorem_and_most_are_free() -> None:
    """1000 adaptive queries; each run fails with probability at most 0.001; fixed bits."""
    n, universe, bits = 200_000, 64, SeededBits(1)
    rows = skewed(n, universe)
    run = OnlineWeights(rows, universe=universe, queries=1000, rho="0.5", beta="0.001", bits=bits)
    worst, drawn, last = 0.0, 0, 0
    for k in range(1000):
        query = prefix(universe, (7 * k + last) % universe) if k % 2 else np.arange(universe) % (2 + k % 9) == 0
        answer = run.ask(query)
        drawn, last = drawn + answer.drawn, round(answer.value) % 5
        worst = max(worst, abs(answer.value - int(query[rows].sum())) / n)
    assert worst <= run.bound < 0.2
    assert 1 <= drawn <= 20
    assert run.left == run.updates - drawn
    # A uniform histogram would be off by far more.
    assert abs(prefix(universe, 20)[rows].mean() - 21 / 64) > 0.3


def test_m13_a_drawn_answer_moves_the_histogram_to_it_and_lowers_the_relative_entropy() -> None:
    n, universe = 100_000, 32
    rows = skewed(n, universe)
    truth = np.bincount(rows, minlength=universe) / n
    run = OnlineWeights(rows, universe=universe, queries=10, rho=1, updates=5, threshold=1000, bits=SeededBits(2))

    def entropy() -> float:
        kept = truth > 0
        return float((truth[kept] * np.log(truth[kept] / run.histogram[kept])).sum())

    query, before = prefix(universe, 3), entropy()
    gap = abs(query[rows].mean() - run.estimate(query) / n)
    assert run.ask(query).drawn
    # Within the noise, the fall that the docstring promises: 2 g^2.
    assert before - entropy() >= 2 * gap**2 * 0.99
    assert abs(run.estimate(query) / n - query[rows].mean()) < gap
    assert run.histogram.sum() == pytest.approx(1.0)


def test_m13_an_online_run_ends_when_its_answers_are_drawn() -> None:
    run = OnlineWeights(skewed(10_000, 16), universe=16, queries=20, rho=1, updates=1, threshold=1, bits=SeededBits(3))
    assert run.ask(prefix(16, 2)).drawn
    with pytest.raises(QueryError, match="used"):
        run.ask(prefix(16, 5))
    assert run.estimate(prefix(16, 15)) == pytest.approx(10_000)
    asked = OnlineWeights(np.zeros(9, int), universe=4, queries=1, rho=1, threshold=10**6, bits=SeededBits(4))
    assert not asked.ask(prefix(4, 1)).drawn
    with pytest.raises(QueryError, match="all 1 queries"):
        asked.ask(prefix(4, 1))


@pytest.mark.parametrize(("workload", "n"), [(Thresholds(64), 50_000), (Marginals([2] * 6, t=3), 50_000)])
def test_m13_offline_error_stays_within_the_theorem(workload: Any, n: int) -> None:
    """Five runs, each beyond its bound with probability at most 0.001; fixed bits."""
    flat = skewed(n, 64)
    rows = flat if isinstance(workload, Thresholds) else (flat[:, None] >> np.arange(6)) & 1
    truth, bits = workload.shares(rows), SeededBits(5)
    start = float(np.abs(workload.answers(np.full(64, 1 / 64)) - truth).max())
    weights = OfflineWeights(workload=workload, n=n, rho="0.1", rounds=30, beta="0.001")
    for _ in range(5):
        release = weights.release(rows, bits=bits)
        mean = float(np.abs(release.shares(workload) - truth).max())
        last = float(np.abs(release.shares(workload, last=True) - truth).max())
        assert mean <= weights.bound
        assert last < start / 5
        assert len(release.chosen) == len(release.measured) == 30
    # The bound is the theorem's, an order of magnitude above what is seen.
    assert weights.bound < 0.45
    assert weights.bound > 3 * mean


def test_m13_the_default_number_of_rounds_has_the_least_bound() -> None:
    weights = OfflineWeights(workload=Thresholds(64), n=20_000, rho="0.1")
    assert weights.bound == min(weights.bound_at(t) for t in (1, 5, 20, 50, 100, 150, 200, 300, 400, weights.rounds))
    run = OnlineWeights(skewed(50_000, 64), universe=64, queries=500, rho="0.1")
    others = [
        OnlineWeights(skewed(50_000, 64), universe=64, queries=500, rho="0.1", updates=c) for c in (1, 10, 100, 400)
    ]
    assert run.bound <= min(o.bound for o in others)


def test_linear_queries_are_measured_in_their_own_unit() -> None:
    workload = Linear([["0", "1/2", "1"], ["1", "0", "1/4"]])
    rows = np.array([0] * 700 + [1] * 200 + [2] * 100)
    release = OfflineWeights(workload=workload, n=1000, rho=1000, rounds=25).release(rows, bits=SeededBits(6))
    np.testing.assert_allclose(release.shares(workload, last=True), workload.shares(rows), atol=0.02)
    np.testing.assert_allclose(release.answers(workload), 1000 * release.shares(workload))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: OnlineWeights(np.zeros(0, int), universe=4, queries=3, rho=1), "at least one row"),
        (lambda: OnlineWeights(np.array([4]), universe=4, queries=3, rho=1), "0 .. 3"),
        (lambda: OnlineWeights(np.array([0]), universe=2**30, queries=3, rho=1), "synthetic table"),
        (lambda: OnlineWeights(np.array([0]), universe=1, queries=3, rho=1), "universe = 1"),
        (lambda: OnlineWeights(np.array([0]), universe=4, queries=0, rho=1), "queries = 0"),
        (lambda: OnlineWeights(np.array([0]), universe=4, queries=3, rho=-1), "negative"),
        (lambda: OnlineWeights(np.array([0]), universe=4, queries=3, rho=1).ask([1, 0]), "4 zeros and ones"),
        (lambda: OnlineWeights(np.array([0]), universe=4, queries=3, rho=1).ask([0, 1, 2, 0]), "4 zeros and ones"),
        (lambda: pickle.dumps(OnlineWeights(np.array([0]), universe=4, queries=3, rho=1)), "pickled"),
        (lambda: OfflineWeights(workload=Predicates([lambda x: x > 0]), n=5, rho=1), "universe"),
        (lambda: OfflineWeights(workload=Marginals([64] * 8, t=2), n=5, rho=1), "coarser"),
        (lambda: OfflineWeights(workload=Points(1), n=5, rho=1), "nothing private"),
        (lambda: OfflineWeights(workload=Points(2**20), n=5, rho=1, rounds=100), "64 rounds"),
        (lambda: OfflineWeights(workload=Points(4), n=5, rho=1).release(np.array([0])), "n = 5"),
    ],
)
def test_bad_input_is_refused_in_words(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


def test_a_single_row_and_a_constant_column_are_tables() -> None:
    release = OfflineWeights(workload=Stack([Points(3), Thresholds(3)]), n=1, rho=1).release(
        np.array([2]), bits=SeededBits(7)
    )
    assert release.histogram.sum() == pytest.approx(1.0)
    constant = OfflineWeights(workload=Marginals([1, 3], t=2), n=200, rho=10)
    drawn = constant.release(np.array([[0, 1]] * 200), bits=SeededBits(8))
    assert drawn.shares(Marginals([1, 3], t=2), last=True)[1] > 0.8


def test_m13_a_run_reads_the_universe_a_few_times_for_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """|Q| questions cost of the order |Q| |X|: each makes the public histogram anew once, and no other pass grows."""
    from hubbub.synthesis import multiplicative_weights as module

    made: list[int] = []
    whole = module.normalised

    def counted(logs: Any) -> Any:
        made.append(len(logs))
        return whole(logs)

    monkeypatch.setattr(module, "normalised", counted)
    for universe in (16, 256):
        made.clear()
        run = OnlineWeights(skewed(5000, universe), universe=universe, queries=40, rho=1, bits=SeededBits(universe))
        for k in range(40):
            run.ask(prefix(universe, k * universe // 40))
        assert sum(made) <= 2 * 40 * universe
