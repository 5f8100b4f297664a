"""The ends of what the mechanisms take: nearly fair coins, very many categories, epsilons that floats do not hold.

What cannot be drawn is refused before anybody charges for it, in words; what can be is drawn in few steps.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import atanh, mp, mpf
from numpy.typing import NDArray

from hubbub.errors import ParameterError
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
    RandomizedResponse,
    SparseVector,
    StaircaseLaw,
    StaircaseMechanism,
    UnknownTopK,
    local_and_central_error,
    plan,
    response_sample_size,
)
from hubbub.noise import Grid
from seeded import SeededBits

TINY = Fraction(1, 10**30)


class FewBits(SeededBits):
    """Bits that end after so many requests: a draw that rejects nearly everything asks for more."""

    left = 500

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        self.left -= 1
        assert self.left, "too many draws"
        super().fill(buffer)


@pytest.mark.parametrize("digits", [3, 9, 10, 11, 20, 34, 40, 60, 300])
@pytest.mark.parametrize("form", ["bias", "random_share"])
def test_the_loss_of_a_nearly_fair_coin_is_not_below_its_odds(form: str, digits: int) -> None:
    """epsilon = 2 atanh(p - q); digits of odds next to 1 once gave 0 for a bias of 1e-60."""
    mp.dps = 700
    small = Fraction(1, 10**digits)
    response = RandomizedResponse(bias=small) if form == "bias" else RandomizedResponse(random_share=1 - small)
    gap = 2 * small if form == "bias" else small
    exact = 2 * atanh(mpf(gap.numerator) / gap.denominator)
    claimed = response.loss.epsilon
    claimed = mpf(claimed.numerator) / claimed.denominator
    assert exact <= claimed <= exact * (1 + mpf(10) ** -14)


def test_estimates_of_nearly_fair_coins_keep_their_digits() -> None:
    response = RandomizedResponse(epsilon=Fraction(1, 10**20))
    assert response.estimate(500_001, 10**6) == pytest.approx(0.5 + 1e-6 / 5e-21, rel=1e-9)
    assert response.interval(500_001, 10**6, 0.95) == (0.0, 1.0)
    assert response.accuracy("0.05", n=100) == pytest.approx(math.sqrt(math.log(40) / 200) / 5e-21)
    kary = KaryResponse(categories=3, epsilon=Fraction(1, 10**20))
    assert kary.estimate([30, 30, 33]) == pytest.approx([-3e20, -3e20, 6e20], rel=1e-9)
    rare = RandomizedResponse(random_share=Fraction(1, 10**400))
    assert rare.log_prob(True, False) == pytest.approx(-400 * math.log(10) - math.log(2))


@pytest.mark.parametrize(("categories", "epsilon"), [(10**6, 14), (2**40, 1000), (2**62, 60)])
def test_many_categories_at_a_large_epsilon_take_few_draws(categories: int, epsilon: int) -> None:
    mechanism = KaryResponse(categories=categories, epsilon=epsilon)
    truth = np.full(20, categories - 1, np.uint64)
    reports = mechanism.release(truth, bits=FewBits("many"))
    assert reports.dtype == np.int64
    assert 0 <= reports.min() <= reports.max() < categories
    if epsilon == 1000:
        assert reports.tolist() == truth.tolist()  # a lie has probability 1e-400


def test_more_categories_than_int64_can_add_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"2\^62"):
        KaryResponse(categories=2**62 + 1, epsilon=1)


def test_narrow_steps_of_a_staircase_are_drawn_without_rejection() -> None:
    """At epsilon 60 the best high step is e^-30 of all places."""
    mechanism = StaircaseMechanism(sensitivity=2**53, epsilon=60)
    assert mechanism.width < 2**53 / 1e12
    bits = FewBits("narrow")
    assert max(abs(mechanism.release(0, bits=bits)) for _ in range(20)) < mechanism.accuracy("1e-9")


@pytest.mark.parametrize("width", [0, 6])
def test_a_staircase_has_steps_within_its_sensitivity(width: int) -> None:
    with pytest.raises(ParameterError, match="width"):
        StaircaseLaw(Fraction(1), 5, width)


def test_the_chance_of_numbers_beyond_int64_is_told() -> None:
    mechanism = StaircaseMechanism(sensitivity=5, epsilon=1)
    assert mechanism.log_prob(2**80, 0) == pytest.approx(-(2**80) / 5, rel=1e-9)
    assert mechanism.log_prob(2**80 + 7, 2**80) == pytest.approx(float(mechanism.error().log_pmf(np.array([7]))[0]))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (LaplaceMechanism, {"sensitivity": 1}),
        (NoisyMax, {"sensitivity": 1}),
        (NoisyMax, {"sensitivity": 1, "noise": "laplace"}),
        (SparseVector, {"sensitivity": 1, "positives": 1}),
        (KNormMechanism, {"norm": "l1", "cells": 2, "sensitivity": 1}),
        (KNormMechanism, {"norm": "l2", "cells": 2, "sensitivity": 1}),
        (KNormMechanism, {"norm": "linf", "cells": 2, "sensitivity": 1}),
    ],
)
def test_noise_beyond_int64_is_refused_before_it_is_charged(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="int64"):
        kind(epsilon=TINY, **options)


def test_noise_of_a_scale_of_2_to_the_53_is_the_most_that_is_taken() -> None:
    for grid, most in ((None, 2**53), (Grid(-4), 2**49)):
        assert LaplaceMechanism(sensitivity=1, scale=most, grid=grid).scale == most
        assert GaussianMechanism(sensitivity=1, sigma=most, grid=grid).variance == most**2
        for kind, options in (
            (LaplaceMechanism, {"scale": most + 1}),
            (GaussianMechanism, {"sigma": most + 1}),
            (GaussianMechanism, {"rho": "1e-40"}),
        ):
            with pytest.raises(ParameterError, match="int64"):
                kind(sensitivity=1, grid=grid, **options)


NOT_FINITE = [
    *map(float, ("nan", "inf", "-inf", "1e308")),
    *map(Decimal, ("nan", "sNaN", "inf", "1e99999", "-1e-99999")),
]


OF_NUMPY = [
    kind(text)
    for kind in (np.float16, np.float32, np.float64, np.longdouble)
    for text in ("nan", "inf", "-inf", "0.1", "-0.0", "6e-5")
]


@pytest.mark.parametrize("value", [*NOT_FINITE, *OF_NUMPY, np.longdouble("1e4000"), np.longdouble("1e-4900")], ids=repr)
def test_no_private_value_on_a_grid_is_the_cause_of_an_error(value: Any) -> None:
    grid = Grid(-1000)
    tiny: Any = {"sensitivity": Fraction(1, 2**990), "grid": grid}
    for alone in (LaplaceMechanism(epsilon=1, **tiny), GaussianMechanism(rho=1, **tiny)):
        assert isinstance(alone.release(value), Fraction)
    for vector in (
        LaplaceMechanism(epsilon=1, cells=2, **tiny),
        GaussianMechanism(rho=1, cells=2, **tiny),
        KNormMechanism(norm="linf", epsilon=1, cells=2, **tiny),
    ):
        for values in ([value, 1], np.array([value, 1])):
            assert vector.release(values).dtype == np.float64
    assert isinstance(StaircaseMechanism(sensitivity=1, epsilon=1, grid=Grid(-4)).release(value), Fraction)


def test_nan_counts_as_0_on_a_grid_and_an_infinity_as_the_largest_float() -> None:
    sharp = LaplaceMechanism(sensitivity=1, epsilon=10**6, grid=Grid(-4), cells=3)
    assert sharp.release([math.nan, math.inf, Decimal("-inf")]).tolist() == [0, sys.float_info.max, -sys.float_info.max]
    assert sharp.release(np.array([math.nan, 2.0, -math.inf])).tolist() == [0, 2, -sys.float_info.max]


def test_an_infinity_of_few_bits_counts_as_the_largest_float_too() -> None:
    sharp = LaplaceMechanism(sensitivity=1, epsilon=10**6, grid=Grid(-4))
    for kind in (np.float16, np.float32, np.longdouble):
        assert float(sharp.release(kind("-inf"))) == -sys.float_info.max
        assert sharp.release(kind("0.5")) == Fraction(1, 2)


@pytest.mark.parametrize(
    "far", [2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**400], ids=lambda far: f"about 2^{far.bit_length()}"
)
@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_no_score_is_so_far_from_the_best_that_noisy_max_refuses(noise: str, far: int) -> None:
    mechanism = NoisyMax(epsilon=1, sensitivity=1, noise=noise)
    assert mechanism.release([0, far, -far]) == 1
    assert mechanism.log_prob(1, [0, far, -far]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("kind", [*map(np.dtype, "bhilqBHILQ"), np.dtype(object)], ids=str)
def test_counts_of_items_and_groups_are_integers_of_any_type_and_size(kind: Any) -> None:
    largest = 10**30 if kind.hasobject else np.iinfo(kind).max
    mechanisms: list[Any] = [
        UnknownTopK(2, epsilon=10, delta="1/10"),
        GroupThreshold(epsilon=10, delta="1/10"),
        OptimalGroupSelection(epsilon=10, delta="1/10"),
    ]
    shown = [m.release(np.array([largest, 0], kind)) for m in mechanisms]
    assert shown[0] == [0]
    assert list(shown[1]) == [0]
    assert shown[2].tolist() == [True, False]
    for mechanism in mechanisms:
        assert len(mechanism.release([])) == 0
        with pytest.raises(ParameterError, match="whole numbers"):
            mechanism.release([-(10**30), 1])


def test_a_yes_is_never_the_first_to_show_that_its_number_cannot_be_drawn() -> None:
    with pytest.raises(ParameterError, match="int64"):
        SparseVector(epsilon=1, sensitivity=1, positives=1, answers_epsilon=TINY)
    with pytest.raises(ParameterError, match="positives"):
        SparseVector(epsilon=1, sensitivity=1, positives=10**320)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**400), Fraction(10) ** 400])
@pytest.mark.parametrize(
    "make",
    [
        lambda e: RandomizedResponse(epsilon=e),
        lambda e: KaryResponse(categories=3, epsilon=e),
        lambda e: ExponentialMechanism(epsilon=e, sensitivity=1),
        lambda e: PermuteAndFlip(epsilon=e, sensitivity=1),
        lambda e: StaircaseMechanism(sensitivity=1, epsilon=e),
        lambda e: KNormMechanism(norm="linf", cells=3, sensitivity=1, epsilon=e),
        lambda e: UnknownTopK(2, epsilon=e, delta="1e-6"),
        lambda e: plan(n=10, universe=4, queries=3, epsilon=e),
        lambda e: local_and_central_error(n=10, epsilon=e),
    ],
)
def test_an_epsilon_that_floats_cannot_hold_is_refused_in_words(make: Any, epsilon: Fraction) -> None:
    with pytest.raises(ParameterError, match="no useful answer"):
        make(epsilon)


@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip, NoisyMax])
def test_a_sensitivity_that_floats_cannot_hold_is_refused_in_words(kind: Any) -> None:
    with pytest.raises(ParameterError, match="epsilon / sensitivity"):
        kind(epsilon=1, sensitivity=10**400)


def test_what_was_seen_of_randomised_response_is_whole_and_a_share_a_share() -> None:
    response = RandomizedResponse(epsilon=1)
    for yes, n in ((1.5, 10), (True, 10), (-1, 10), (11, 10), (3, 0), (np.float64(3), 10)):
        with pytest.raises(ParameterError):
            response.estimate(yes, n)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            response.interval(yes, n, 0.95)  # type: ignore[arg-type]
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="share"):
            response.variance(10, share)


def test_how_many_people_are_needed_is_a_number_or_refused() -> None:
    assert response_sample_size(k=1, within=".1", beta=Fraction(1, 10**320), epsilon=1) == pytest.approx(
        math.ceil((321 * math.log(10) + math.log(0.2)) / (0.02 * math.tanh(0.5) ** 2)), abs=1
    )
    for k, within in ((10**170, "0.01"), (1, Fraction(1, 10**200)), (1, 0)):
        with pytest.raises(ParameterError, match="people"):
            response_sample_size(k=k, within=within, beta="0.05", epsilon=1)


def test_a_plan_of_extremes_is_a_table_or_refused() -> None:
    assert "laplace" in plan(n=1, universe=2, queries=10**100, epsilon=Fraction(1, 10**150)).table()
    assert "laplace" in plan(n=10**100, universe=2, queries=1, epsilon=10**150, delta="1e-6").table()
    for wrong in ({"n": 10**400, "queries": 1}, {"n": 1, "queries": 10**200}):
        with pytest.raises(ParameterError, match="1e100"):
            plan(universe=2, epsilon=1, **wrong)


def test_a_normaliser_of_too_many_points_is_refused_before_the_memory_is_gone() -> None:
    wide = KNormMechanism(norm="linf", cells=3, sensitivity=1, epsilon="1/10")
    with pytest.raises(ParameterError, match="normaliser"):
        wide.log_prob([0, 0, 0], [0, 0, 0])
    assert wide.log_ratio([0, 0, 0], [0, 0, 0], [1, 1, 1]) == pytest.approx(0.1)
