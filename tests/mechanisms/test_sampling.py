"""Every mechanism draws from the law that its `log_prob` states: chi-square, n stated, false alarm 1e-9, fixed bits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hubbub.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GroupThreshold,
    KaryResponse,
    KNormMechanism,
    LaplaceMechanism,
    NoisyMax,
    OptimalGroupSelection,
    PermuteAndFlip,
    Polytope,
    QuantileMechanism,
    RandomizedResponse,
    SparseVector,
    StaircaseMechanism,
    weighted_choice,
)
from hubbub.mechanisms.weighted import envelope
from mechanisms.goodness import chi_square_fits
from seeded import SeededBits

SCORES = [3, 1, 5, 5, 0]


@pytest.mark.parametrize(
    "mechanism",
    [
        ExponentialMechanism(epsilon=1, sensitivity=1),
        ExponentialMechanism(epsilon=1, sensitivity="1/3", monotone=True),
        PermuteAndFlip(epsilon=1, sensitivity=1),
        NoisyMax(epsilon=1, sensitivity=1),
        NoisyMax(epsilon=1, sensitivity=1, noise="laplace"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_selection_draws_from_its_law(mechanism: ExponentialMechanism) -> None:
    bits = SeededBits("selection")
    draws = [mechanism.release(SCORES, bits=bits) for _ in range(3000)]
    assert chi_square_fits(draws, range(5), lambda i: mechanism.log_prob(i, SCORES))


def test_weighted_choice_follows_counts_and_exponents_over_two_hundred_thousand_draws() -> None:
    counts, steps, rate = np.array([1, 0, 50, 7, 10**9]), np.array([0, 0, 3, 2, 60]), Fraction(1, 3)
    masses = counts * np.exp(-steps / 3)
    logs = np.log(np.maximum(masses, 1e-300) / masses.sum())
    draws = weighted_choice(steps, rate, counts=counts, size=200_000, bits=SeededBits("weighted")).tolist()
    assert 1 not in draws
    assert chi_square_fits(draws, range(5), lambda i: float(logs[i]))


def test_weighted_choice_decides_the_band_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a band so wide that half of all draws need the certified way, the law is the same (n = 20,000)."""
    monkeypatch.setattr("hubbub.mechanisms.weighted._BAND", 0.5)
    steps = np.array([0, 1, 2, 5])
    logs = -steps / 2 - math.log(np.exp(-steps / 2).sum())
    draws = weighted_choice(steps, Fraction(1, 2), size=20_000, bits=SeededBits("band")).tolist()
    assert chi_square_fits(draws, range(4), lambda i: float(logs[i]))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**53), st.integers(0, 10**6)), min_size=1, max_size=6),
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(10)),
)
def test_the_envelope_holds_every_weight(pairs: list[tuple[int, int]], rate: Fraction) -> None:
    """Against 60-digit arithmetic: sure <= 2^k c exp(-r s) < upper, and the sum stays inside int64."""
    counts, steps = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    counts[0] += counts[0] == 0
    steps -= steps[counts > 0].min()
    steps = np.maximum(steps, 0)
    upper, sure, shift = envelope(steps, rate, counts)
    assert sum(int(u) for u in upper) < 2**62
    with mpmath.workdps(60):
        for count, step, most, least in zip(*(a.tolist() for a in (counts, steps, upper, sure)), strict=True):
            exponent = mpmath.mpf(rate.numerator * step) / rate.denominator
            weight = mpmath.ldexp(count * mpmath.exp(-exponent), shift)
            assert least <= weight < most or count == most == 0


def test_weighted_choice_with_enormous_exponents_never_takes_the_hopeless() -> None:
    draws = weighted_choice(np.array([0, 10**17]), Fraction(10**6), size=2000, bits=SeededBits("far"))
    assert draws.sum() == 0


@pytest.mark.parametrize(
    ("norm", "n"), [("l1", 3000), ("linf", 3000), ("l2", 1500), (Polytope.of([[1, 1], [1, 0], [0, 1]]), 1500)]
)
def test_k_norm_draws_from_its_law(norm: str, n: int) -> None:
    mechanism = KNormMechanism(norm=norm, sensitivity=1, cells=2, epsilon=1)  # type: ignore[arg-type]
    bits = SeededBits("knorm")
    draws = [tuple(mechanism.noise(bits=bits).tolist()) for _ in range(n)]
    outputs = list(itertools.product(range(-6, 7), repeat=2))
    assert chi_square_fits(draws, outputs, lambda z: mechanism.log_prob(list(z), [0, 0]))


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(2, 5), ("1/2", 3), (1, 1)])
def test_staircase_draws_from_its_law(epsilon: str, sensitivity: int) -> None:
    law = StaircaseMechanism(sensitivity=sensitivity, epsilon=epsilon).error()
    draws = law.sample(50_000, bits=SeededBits("stairs")).tolist()
    assert chi_square_fits(draws, range(-60, 61), law.log_pmf)
    assert math.isclose(float(np.exp(law.log_pmf(np.arange(-400, 401))).sum()), 1, rel_tol=1e-12)
    assert math.isclose(law.tail(7), float(np.exp(law.log_pmf(np.arange(8, 800))).sum()), rel_tol=1e-12)
    sizes = np.abs(np.arange(-800, 801))
    assert math.isclose(law.mean_size, float((sizes * np.exp(law.log_pmf(sizes))).sum()), rel_tol=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [LaplaceMechanism(sensitivity=3, epsilon=1), GaussianMechanism(sensitivity=1, rho="1/8")],
    ids=["laplace", "gaussian"],
)
def test_noise_on_a_number_follows_its_law(mechanism: LaplaceMechanism) -> None:
    bits = SeededBits("additive")
    draws = [mechanism.release(7, bits=bits) for _ in range(4000)]
    assert chi_square_fits(draws, range(-40, 55), lambda y: mechanism.log_prob(y, 7))


def test_sparse_vector_draws_from_its_law_with_and_without_numbers() -> None:
    values, bits = [0, 3, -2, 4], SeededBits("sparse")
    plain = SparseVector(epsilon=2, positives=2, sensitivity=1)
    outputs = [o for k in range(1, 5) for o in itertools.product((False, True), repeat=k)]
    draws = [plain.release(values, threshold=2, bits=bits) for _ in range(4000)]
    assert chi_square_fits(draws, outputs, lambda o: plain.log_prob(o, values, threshold=2))
    numeric = SparseVector(epsilon=2, positives=1, sensitivity=1, monotone=True, answers_epsilon=1)
    answers = [(False,) * k + (v,) for k in range(4) for v in range(-9, 15)] + [(False,) * 4]
    draws = [numeric.release(values, threshold=2, bits=bits) for _ in range(4000)]
    assert chi_square_fits(draws, answers, lambda o: numeric.log_prob(o, values, threshold=2))


def test_quantiles_draw_from_their_law() -> None:
    mechanism = QuantileMechanism(shares=["1/4", "1/2", "3/4"], lower=0, upper=6, epsilon=2)
    values, bits = [1, 1, 4, 5, 5], SeededBits("quantiles")
    draws = [tuple(mechanism.release(values, bits=bits).tolist()) for _ in range(4000)]
    outputs = list(itertools.product(range(7), repeat=3))
    logs = {o: mechanism.log_prob(list(o), values) for o in outputs}
    assert math.isclose(math.fsum(math.exp(v) for v in logs.values()), 1, rel_tol=1e-12)
    assert chi_square_fits(draws, outputs, logs.__getitem__)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(forced_yes="1/2"),
        RandomizedResponse(random_share="1/2"),
        RandomizedResponse(bias="1/8"),
        RandomizedResponse(epsilon=1),
    ],
    ids=lambda m: m.form,
)
@pytest.mark.parametrize("truth", [False, True])
def test_randomised_response_draws_from_its_law(mechanism: RandomizedResponse, truth: bool) -> None:
    reports = mechanism.release(np.full(100_000, truth), bits=SeededBits("coins")).tolist()
    assert chi_square_fits(reports, [False, True], lambda y: mechanism.log_prob(bool(y), truth))
    assert isinstance(mechanism.release(np.True_, bits=SeededBits(1)), bool)


@pytest.mark.parametrize("categories", [3, 80])
def test_kary_response_draws_from_its_law_for_few_and_many_categories(categories: int) -> None:
    mechanism = KaryResponse(categories=categories, epsilon=2)
    reports = mechanism.release(np.full(100_000, 2), bits=SeededBits("kary"))
    assert chi_square_fits(reports.tolist(), range(categories), lambda y: mechanism.log_prob(int(y), 2))
    estimate = mechanism.estimate(np.bincount(reports, minlength=categories))
    assert math.isclose(estimate.sum(), 100_000, rel_tol=1e-9)
    assert abs(estimate[2] / 100_000 - 1) <= mechanism.accuracy(1e-9, n=100_000)


def test_group_selection_draws_from_its_law() -> None:
    optimal = OptimalGroupSelection(epsilon=1, delta="1/100")
    shown = optimal.release(np.full(50_000, 4), bits=SeededBits("groups")).tolist()
    assert chi_square_fits(shown, [False, True], lambda y: optimal.log_prob(bool(y), 4))
    threshold = GroupThreshold(epsilon=1, delta="1/100")
    counts = threshold.release(np.full(50_000, 4), bits=SeededBits("groups"))
    draws = [counts.get(i) for i in range(50_000)]
    assert chi_square_fits(draws, [None, *range(60)], lambda y: threshold.log_prob(y, 4))  # type: ignore[arg-type]
    assert GroupThreshold(epsilon=1, delta="1/2").release(np.zeros(1000, int), bits=SeededBits(1)) == {}
