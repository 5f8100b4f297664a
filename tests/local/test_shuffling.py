"""Shuffling and asking again: bounds from both sides, against brute force."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from hubbub import local
from hubbub.accounting import PureDP, ZCDPFilter, cost
from hubbub.errors import ParameterError
from hubbub.local.shuffling import _clones
from seeded import SeededBits


def hockey_stick(p: Counter, q: Counter, epsilon: float) -> float:
    return sum(max(0.0, p[x] - math.exp(epsilon) * q[x]) for x in p)


def shuffled_law(rows: list[list[float]]) -> Counter:
    """The law of the counts of reports, when person i reports y with probability rows[i][y]."""
    law: Counter = Counter({(0,) * len(rows[0]): 1.0})
    for row in rows:
        following: Counter = Counter()
        for counts, chance in law.items():
            for y, p in enumerate(row):
                following[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += chance * p
        law = following
    return law


def clones_by_hand(epsilon: float, epsilon0: float, others: int, rate: float) -> float:
    """The pair of the module's docstring, summed over all (c, a)."""
    yes = math.exp(epsilon0) / (math.exp(epsilon0) + 1)
    total = 0.0
    for c in range(others + 1):
        weight = binom.pmf(c, others, rate)
        for a in range(c + 2):
            with_, without = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
            p, q = yes * with_ + (1 - yes) * without, (1 - yes) * with_ + yes * without
            total += weight * max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [2, 7, 60])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.29, 0.9])
def test_the_clones_are_summed_rightly_and_never_below(epsilon0: float, n: int, epsilon: float) -> None:
    rate = math.exp(-epsilon0)
    truth, found = clones_by_hand(epsilon, epsilon0, n - 1, rate), _clones(epsilon0, n - 1, rate)(epsilon)
    assert truth - 1e-15 <= found <= truth * (1 + 1e-7) + 1e-14


@pytest.mark.parametrize("epsilon0", ["1/2", 1, 2])
@pytest.mark.parametrize("k", [2, 3])
def test_no_shuffled_survey_beats_the_upper_bound(epsilon0: object, k: int) -> None:
    # Every data set of 6 people, in both directions.
    oracle = local.DirectEncoding(epsilon0, k)
    p, q = float(oracle.randomizer.p), float(oracle.randomizer.q)
    rows = [[p if y == x else q for y in range(k)] for x in range(k)]
    for others in {tuple(sorted(t)) for t in product(range(k), repeat=5)}:
        a = shuffled_law([rows[x] for x in (0, *others)])
        b = shuffled_law([rows[x] for x in (1, *others)])
        for epsilon in (0.0, 0.2, 0.4):
            truth = max(hockey_stick(a, b, epsilon), hockey_stick(b, a, epsilon))
            assert truth <= local.shuffled_delta(epsilon, epsilon0, 6) + 1e-15
            assert truth <= local.shuffled_delta(epsilon, epsilon0, 6, categories=k) + 1e-15
            if k == 2 and others == (0,) * 5:
                lower = local.shuffled_delta_lower(epsilon, epsilon0, 6)
                assert lower <= truth <= lower * (1 + 1e-8) + 1e-15


def test_bounds_bracket_and_shrink_with_n() -> None:
    before = None
    for n in (100, 10_000, 1_000_000):
        found = local.shuffle(1, n, "1e-6")
        assert 0 < found.lower < found.upper <= 1
        assert found.upper < 2 * found.lower
        assert local.shuffled_delta(found.upper, 1, n) <= 1e-6 <= local.shuffled_delta(found.upper * 0.999, 1, n)
        assert before is None or found.upper < before / 5
        before = found.upper
    for epsilon0, k in ((1, 2), (4, 3)):
        kary = local.shuffle(epsilon0, 10_000, "1e-6", categories=k)
        assert kary.upper < 0.9 * local.shuffle(epsilon0, 10_000, "1e-6").upper


def test_a_shuffle_is_charged_through_accounting() -> None:
    found = local.shuffle(1, 10_000, "1e-6")
    assert float(found.loss.epsilon) >= found.upper
    assert found.loss.delta == found.delta
    assert cost(found.loss) is not None
    assert ZCDPFilter is not None
    assert local.shuffle(1, 2, "1e-9").loss.epsilon <= 1


def test_bad_shuffles_are_refused() -> None:
    for arguments in ((0, 10, "1e-6"), (1, 1, "1e-6"), (1, 10, 0), (1, 10, 1), (1, 10, 2), (float("nan"), 10, 0.1)):
        with pytest.raises(ParameterError):
            local.shuffle(*arguments)


def test_a_memory_repeats_itself_and_survives_its_state() -> None:
    oracle = local.DirectEncoding(1, 50)
    memory = local.Memory(oracle)
    bits = SeededBits("memory")
    first = [int(memory.report(v, bits=bits)) for v in (3, 7, 3, 3, 7)]
    assert first[0] == first[2] == first[3]
    assert first[1] == first[4]
    assert memory.loss == PureDP(2)
    again = local.Memory(oracle, json.loads(json.dumps(memory.state())))
    assert [int(again.report(v)) for v in (3, 7)] == first[:2]
    assert again.loss == PureDP(2)
    for state in ({"99": "AA=="}, {"x": "AA=="}, {"1": "AAAA"}, {"1": "*"}):
        with pytest.raises(ParameterError):
            local.Memory(oracle, state)


def test_a_memory_of_rappor_keeps_the_permanent_response_only() -> None:
    oracle = local.Rappor(4, 10)
    memory = local.Memory(oracle)
    bits = SeededBits("rappor")
    reports = [memory.report(2, bits=bits).tobytes() for _ in range(20)]
    # 32 bits, each redrawn with chances 3/4 and 1/2: that 20 agree has chance below 1e-9.
    assert len(set(reports)) > 1
    assert len({r[:2] for r in reports}) == 1
    assert len(memory.state()) == 1


def test_averaging_fresh_reports_finds_the_answer_and_memoised_ones_do_not_move() -> None:
    # 2,000 rounds at epsilon 1, k = 4: the truth leads by 700 reports on average, sd 35.
    oracle = local.DirectEncoding(1, 4)
    fresh = oracle.privatize(np.full(2000, 2), bits=SeededBits("average"))
    assert int(np.bincount(fresh).argmax()) == 2
    assert local.repeated_loss(1, 2000, memoised=False).times == 2000  # type: ignore[attr-defined]
    assert local.repeated_loss(1, 2000, memoised=True, values=3) == PureDP(3)
    assert local.repeated_loss(1, 2, memoised=True, values=3) == PureDP(2)
