"""The privacy of every client, exactly: its whole output distribution, in rationals, against e^epsilon."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from hubbub import local
from hubbub.local.draws import at_most_exp, lie_chance, uniform
from local.reports import all_reports, small_oracles
from seeded import Bits, ReplayBits, SeededBits

EPSILONS = ["1/1000", "1/4", 1, "2.5", 8]
NAMES = ["direct", "symmetric", "optimized", "subset", "hashing", "binary", "hadamard", "sketch", "rappor"]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("which", range(len(NAMES)), ids=NAMES)
def test_no_report_is_more_than_e_to_the_epsilon_likelier_under_another_answer(which: int, epsilon: object) -> None:
    oracle = small_oracles(epsilon, 5)[which]
    reports = all_reports(oracle)
    laws = [[oracle.randomizer.chance(report, value) for report in reports] for value in range(oracle.size)]
    whole = Fraction(1, 1 << 126) if isinstance(oracle, local.LocalHashing) else Fraction(1)
    assert all(sum(law) == whole for law in laws)
    largest = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert at_most_exp(largest, oracle.epsilon)
    # RAPPOR's single report costs less than its permanent response; Bloom filters may share bits in the sketch.
    claim = oracle.randomizer.loss.epsilon if isinstance(oracle, local.Rappor) else oracle.epsilon
    assert at_most_exp(largest, claim)
    if not isinstance(oracle, local.Rappor):
        assert largest >= Fraction(1) + (Fraction(float(mpmath.expm1(float(claim)))) * Fraction(999999, 1000000))


@pytest.mark.parametrize("epsilon", ["1/4", 4])
def test_rappors_permanent_response_costs_at_most_epsilon(epsilon: object) -> None:
    oracle = local.Rappor(epsilon, 40, bloom_bits=16, cohorts=4, hashes=3)
    filters = oracle.randomizer.filters(np.repeat(np.arange(4), 40), np.tile(np.arange(40), 4)).reshape(4, 40, 16)
    apart = max(int((a != b).sum()) for cohort in filters for a in cohort for b in cohort)
    assert filters.sum(axis=2).min() == filters.sum(axis=2).max() == 3
    assert apart == 6
    assert at_most_exp(((1 - oracle.randomizer.flip) / oracle.randomizer.flip) ** apart, oracle.epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_means_are_private_at_every_step_of_the_grid(epsilon: object) -> None:
    for oracle in (local.OneBitMean(epsilon), local.PiecewiseMean(epsilon), local.HybridMean(epsilon)):
        steps = [0, 1, 2**19, 2**20 - 1, 2**20]
        client = oracle.randomizer
        window = getattr(getattr(client, "piecewise", client), "window", 1)
        places = {0, 1, client.report_count - 1, client.report_count - 2, window, window - 1, 2**19, 2**20}
        reports = sorted(p for p in places if 0 <= p < client.report_count)
        for report in reports:
            chances = [client.chance(report, step) for step in steps]
            assert min(chances) >= 0
            assert max(chances) == 0 or at_most_exp(max(chances) / min(chances), oracle.epsilon)


@pytest.mark.parametrize("epsilon", ["1/3", 2])
def test_the_chances_of_means_add_to_one_and_the_estimate_is_unbiased_exactly(epsilon: object) -> None:
    one_bit, piecewise = local.OneBitMean(epsilon).randomizer, local.PiecewiseMean(epsilon).randomizer
    for step in (0, 12345, 2**20):
        ((_, alpha, beta),) = one_bit.lines
        assert one_bit.chance(0, step) + one_bit.chance(1, step) == 1
        assert one_bit.chance(1, step) == alpha + beta * step
        # Piecewise: the chance is constant before, in and after the window.
        w, count = piecewise.window, piecewise.report_count
        parts = [(0, step), (step, step + w), (step + w, count)]
        total = first = Fraction(0)
        for start, stop in parts:
            if stop > start:
                chance = piecewise.chance(start, step)
                total += chance * (stop - start)
                first += chance * (stop - start) * Fraction(start + stop - 1, 2)
        ((_, alpha, beta),) = piecewise.lines
        assert total == 1
        assert first == alpha + beta * step


def test_vectors_cost_epsilon_whatever_they_are() -> None:
    oracle = local.BallMean("3/2", 3)
    vectors = np.array([[1, 0, 0], [-1, 0, 0], [0.5, 0.5, 0.1], [0, 0, 0], [np.nan, np.inf, 3]], float)
    steps = oracle.steps(vectors)
    laws = [[oracle.randomizer.chance(report, row) for report in range(2 * oracle.randomizer.padded)] for row in steps]
    assert all(sum(law) == 1 for law in laws)
    assert at_most_exp(max(max(c) / min(c) for c in zip(*laws, strict=True)), oracle.epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**30), Fraction(1, 7), Fraction(3), Fraction(40), Fraction(400)])
@pytest.mark.parametrize("weight", [Fraction(1), Fraction(127), Fraction(12, 4), Fraction(1, 9)])
def test_chances_of_lying_are_the_next_multiple_of_two_to_the_minus_64(epsilon: Fraction, weight: Fraction) -> None:
    chance = lie_chance(weight, epsilon)
    with mpmath.workprec(2000):
        w = mpmath.mpf(weight.numerator) / weight.denominator
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        true = w / (w + mpmath.exp(e))
        value = mpmath.mpf(chance.numerator) / chance.denominator
        assert value >= true
        assert value - true <= mpmath.mpf(2) ** -64 * (1 + mpmath.mpf(2) ** -60)
    assert 0 < chance <= weight / (1 + weight)


class Words(Bits):
    """Hands out given 16-bit words, three to each draw below 2^48, then zeros."""

    def __init__(self, words: np.ndarray) -> None:
        padded = np.zeros((-(-words.size // 3), 4), np.uint16)
        padded.reshape(-1, 4)[:, :3].flat[: words.size] = words
        self.bytes = padded.tobytes()

    def fill(self, buffer: np.ndarray) -> None:
        given, self.bytes = self.bytes[: buffer.size], self.bytes[buffer.size :]
        buffer[:] = 0
        buffer[: len(given)] = np.frombuffer(given, np.uint8)


@pytest.mark.parametrize("below", [1, 2, 3, 15, 16, 127, 1000, 4096])
def test_small_uniforms_hit_every_number_equally_often_over_all_words(below: int) -> None:
    # All 2^16 words once, then zeros: rejected words are drawn anew and come out as 0 (word 0 is rejected for ever
    # where it is below the threshold, so those words are left out).
    threshold = (1 << 16) % below
    words = np.arange(1 << 16, dtype=np.uint32)
    kept = words[(words * below & 0xFFFF) >= threshold].astype(np.uint16)
    out = uniform(below, kept.size, Words(kept))
    assert set(np.bincount(out, minlength=below)) == {(1 << 16) // below}


def test_rejected_words_are_drawn_anew() -> None:
    again = np.array([0, 0, 0], np.uint16), np.array([40000, 40000, 40000], np.uint16)
    first = np.zeros(4, np.uint16)
    first[:3] = again[0]
    second = np.zeros(4, np.uint16)
    second[:3] = again[1]
    out = uniform(3, 3, ReplayBits(first.tobytes() + second.tobytes()))
    assert out.tolist() == [40000 * 3 >> 16] * 3


@pytest.mark.parametrize("which", range(len(NAMES)), ids=NAMES)
def test_clients_draw_from_the_law_they_state(which: int) -> None:
    # n = 200,000 reports of one answer; chi-square at 1e-9.
    oracle = small_oracles(1, 5)[which]
    client, n, value = oracle.randomizer, 200_000, 3
    reports = oracle.privatize(np.full(n, value), bits=SeededBits(f"law {which}"))
    if isinstance(oracle, local.LocalHashing):
        from hubbub.local.hashes import bucket

        hit = bucket(reports["a"], reports["b"], value, client.buckets) == reports["y"]
        seen, expected = np.array([hit.sum(), n - hit.sum()]), n * np.array([float(client.p), float(1 - client.p)])
    else:
        table = {np.asarray(r, client.report_type.base).tobytes(): i for i, r in enumerate(all_reports(oracle))}
        places = [table[r.tobytes()] for r in reports]
        seen = np.bincount(places, minlength=len(table))
        expected = n * np.array([float(client.chance(r, value)) for r in all_reports(oracle)])
        # Rare reports are taken together, at least five expected in each cell.
        order = np.argsort(expected)
        groups = np.cumsum(expected[order]) // 20
        seen = np.bincount(groups.astype(int), weights=seen[order])
        expected = np.bincount(groups.astype(int), weights=expected[order])
        seen, expected = seen[expected > 5], expected[expected > 5]
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert statistic < chi2.isf(1e-9, len(seen) - 1)


def test_the_bytes_drawn_do_not_depend_on_the_answer() -> None:
    for oracle in small_oracles(1, 5):
        drawn = set()
        for value in range(5):
            bits = SeededBits("same")
            oracle.privatize(np.full(1000, value), bits=bits)
            drawn.add(bits.drawn)
        assert len(drawn) == 1, oracle.name
