"""One shape for all mechanisms, and what they refuse."""

from __future__ import annotations

import dataclasses
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub.accounting import cost, events as ev, from_json, to_json
from hubbub.errors import InternalError, ParameterError, QueryError
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
    above_threshold,
    draw_local_and_central,
    draw_plans,
    error_curves,
    gaussian_delta,
    gaussian_for,
    gaussian_sigma,
    k_norm_for,
    laplace_for,
    plan,
    recording,
    weighted_choice,
)
from hubbub.mechanisms.weighted import integer_steps
from hubbub.noise import Grid
from hubbub.queries import AttributeMeans, Linear, Points, Thresholds
from seeded import SeededBits

# (mechanism, data, options of release and log_prob, options of accuracy or None where there is none)
ALL: list[tuple[Any, Any, dict[str, Any], dict[str, Any] | None]] = [
    (LaplaceMechanism(sensitivity=1, epsilon=1), 5, {}, {}),
    (LaplaceMechanism(sensitivity=2, epsilon=1, cells=3), [5, -1, 0], {}, {}),
    (GaussianMechanism(sensitivity=1, rho="1/8"), 5, {}, {}),
    (GaussianMechanism(squared_sensitivity=2, rho="1/8", cells=3), [5, 0, 1], {}, {}),
    (StaircaseMechanism(sensitivity=3, epsilon=1), 5, {}, {}),
    (KNormMechanism(norm="l2", squared_sensitivity=2, cells=2, epsilon=1), [1, 2], {}, {}),
    (KNormMechanism(norm=Polytope.of([[1, 0], [1, 1]]), sensitivity=1, cells=2, epsilon=1), [1, 2], {}, {}),
    (RandomizedResponse(random_share="1/2"), True, {}, {"n": 100}),
    (KaryResponse(categories=3, epsilon=1), np.array([1]), {}, {"n": 100}),
    (ExponentialMechanism(epsilon=1, sensitivity=1), [1, 2, 3], {}, {"candidates": 3}),
    (PermuteAndFlip(epsilon=1, sensitivity=1), [1, 2, 3], {}, {"candidates": 3}),
    (NoisyMax(epsilon=1, sensitivity=1), [1, 2, 3], {}, {"candidates": 3}),
    (QuantileMechanism(shares=["1/2"], lower=0, upper=9, epsilon=1), [1, 2, 3], {}, {}),
    (SparseVector(epsilon=1, positives=2, sensitivity=1), [1, 2, 3], {"threshold": 2}, {"questions": 3}),
    (OptimalGroupSelection(epsilon=1, delta="1e-2"), np.array([3]), {}, None),
    (GroupThreshold(epsilon=1, delta="1e-2"), np.array([3]), {}, None),
]
NAMES = [f"{type(m).__name__}-{i}" for i, (m, *_) in enumerate(ALL)]


@pytest.mark.parametrize(("mechanism", "data", "options", "more"), ALL, ids=NAMES)
def test_every_mechanism_has_a_loss_that_a_ledger_can_write_and_price(
    mechanism: Any, data: Any, options: Any, more: Any
) -> None:
    assert from_json(to_json(mechanism.loss)) == mechanism.loss
    price = cost(mechanism.loss)
    assert price.epsilon is not None or price.rho > 0 or price.delta > 0


@pytest.mark.parametrize(("mechanism", "data", "options", "more"), ALL, ids=NAMES)
def test_every_release_is_a_fresh_draw_of_the_same_bits_and_possible_under_its_law(
    mechanism: Any, data: Any, options: Any, more: Any
) -> None:
    first, second = (mechanism.release(data, bits=SeededBits("shape"), **options) for _ in range(2))
    assert np.array_equal(np.asarray(first), np.asarray(second))
    draws = {str(mechanism.release(data, bits=SeededBits(i), **options)) for i in range(60)}
    assert len(draws) > 1
    if isinstance(mechanism, KaryResponse | OptimalGroupSelection | GroupThreshold):
        return
    assert -60 < mechanism.log_prob(first, data, **options) <= 0


@pytest.mark.parametrize(("mechanism", "data", "options", "more"), ALL, ids=NAMES)
def test_every_accuracy_shrinks_as_more_failure_is_allowed_and_needs_a_probability(
    mechanism: Any, data: Any, options: Any, more: Any
) -> None:
    if more is None:
        assert not hasattr(mechanism, "accuracy")
        return
    assert mechanism.accuracy("0.5", **more) < mechanism.accuracy("0.001", **more)
    for beta in (0, 1, -1, 2):
        with pytest.raises(ParameterError):
            mechanism.accuracy(beta, **more)


@pytest.mark.parametrize(("mechanism", "data", "options", "more"), ALL, ids=NAMES)
def test_mechanisms_are_frozen_values(mechanism: Any, data: Any, options: Any, more: Any) -> None:
    name = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, name, 3)
    assert mechanism == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_reals_go_through_a_grid_and_come_back_on_it() -> None:
    grid = Grid(-4)
    laplace = LaplaceMechanism(sensitivity="1/2", epsilon=1, grid=grid)
    answer = laplace.release(2.5, bits=SeededBits(1))
    assert isinstance(answer, Fraction)
    assert (answer * 16).denominator == 1
    assert laplace.steps == 8
    vector = GaussianMechanism(sensitivity=1, rho="1/2", cells=4, grid=grid)
    assert vector.squared_steps == 18**2
    released = vector.release([0.1, 0.2, 0.3, 0.4], bits=SeededBits(1))
    assert released.dtype == np.float64
    assert np.array_equal(released * 16, np.rint(released * 16))
    staircase = StaircaseMechanism(sensitivity=1, epsilon=1, grid=grid)
    assert staircase.steps == 16
    assert staircase.release(0.25, bits=SeededBits(1)) % Fraction(1, 16) == 0
    moved = {"l1": 17, "linf": 16, "l2": 18}
    for norm, steps in moved.items():
        cells = KNormMechanism(norm=norm, sensitivity=1, cells=2, epsilon=1, grid=grid)  # type: ignore[arg-type]
        assert cells.sensitivity == steps
        released = cells.release([0.25, 0.5], bits=SeededBits(1))
        assert np.array_equal(released * 16, np.rint(released * 16))
        assert abs(cells.log_ratio(released, [0.25, 0.5], [0.25, 0.5])) == 0
    ages = QuantileMechanism(shares=["1/2"], lower=0, upper=1, epsilon=5, grid=grid)
    assert ages.release([0.5] * 50 + [float("nan"), -3.0, 9.0], bits=SeededBits(1)).tolist() == [0.5]


def test_enormous_values_neither_wrap_nor_lose_a_bit() -> None:
    mechanism = LaplaceMechanism(sensitivity=1, epsilon=1, cells=2)
    released = mechanism.release([10**30, -(10**30)], bits=SeededBits(1))
    assert abs(released[0] - 10**30) < 100
    assert abs(released[1] + 10**30) < 100
    steps, unit = integer_steps([2**63, 0, 2**63 - 1])
    assert [int(s) for s in steps] == [0, 2**63, 1]
    assert unit == 1
    steps, unit = integer_steps([Fraction(1, 3), Fraction(1, 2)])
    assert (steps.tolist(), unit) == ([1, 0], Fraction(1, 6))
    assert integer_steps(np.array([-(2**62), 2**62], dtype=object))[0].tolist() == [2**63, 0]


def test_an_empty_table_gives_a_uniform_quantile_and_costs_the_same() -> None:
    mechanism = QuantileMechanism(shares=["1/2"], lower=0, upper=3, epsilon=1)
    assert [round(math.exp(mechanism.log_prob([v], [])), 12) for v in range(4)] == [0.25] * 4
    assert mechanism.release([], bits=SeededBits(1))[0] in range(4)
    assert mechanism.log_prob([4], []) == -math.inf
    assert RandomizedResponse(epsilon=1).release(np.zeros(0, bool), bits=SeededBits(1)).shape == (0,)
    assert OptimalGroupSelection(epsilon=1, delta="1e-6").release(np.zeros(0, int)).shape == (0,)


def test_laplace_noise_passes_through_the_one_door() -> None:
    with recording() as records:
        LaplaceMechanism(sensitivity=3, epsilon=1).release(7, bits=SeededBits(1))
    assert [(r.values, r.sensitivity) for r in records] == [((7,), 3)]


def test_workload_mechanisms_take_the_exact_sensitivity_of_their_neighbours() -> None:
    assert laplace_for(Points(9), neighbours="add_remove", epsilon=1).scale == 1
    assert laplace_for(Points(9), neighbours="replace", epsilon=1).scale == 2
    assert gaussian_for(Points(9), neighbours="replace", rho="1/2").variance == 2
    assert gaussian_for(Thresholds(9), neighbours="add_remove", rows=2, rho="1/2").variance == 36
    thirds = Linear([[0, Fraction(1, 3), Fraction(2, 3)]])
    assert laplace_for(thirds, neighbours="add_remove", epsilon=1).scale == 2
    bits = k_norm_for(AttributeMeans(2), neighbours="replace", epsilon=1)
    assert bits.gauge([1, -1]) == 1
    assert k_norm_for(AttributeMeans(2), neighbours="add_remove", epsilon=1).gauge([1, -1]) == 2
    with pytest.raises(ParameterError, match="span fewer"):
        k_norm_for(Thresholds(3), neighbours="replace", epsilon=1)


def test_a_polytope_holds_all_its_points_exactly_and_keeps_its_facets() -> None:
    rows = [[2, 1, 0], [0, 1, 3], [1, 1, 1], [-1, 2, 0]]
    body = Polytope.of(rows)
    assert max(body.gauge(r) for r in rows) == 1
    assert body.gauge([0, 0, 0]) == 0
    assert body.gauge([4, 2, 0]) == 2 * body.gauge([2, 1, 0])
    assert Polytope.of([[1]]).facets == ((Fraction(1),),)


def test_a_sparse_vector_run_stops_and_keeps_its_secret() -> None:
    run = above_threshold(epsilon=1, sensitivity=1).open(0, bits=SeededBits(1))
    assert run.ask(10**6) is True
    assert repr(run) == "SparseVectorRun(left=0)"
    with pytest.raises(QueryError, match="used"):
        run.ask(3)
    with pytest.raises(ParameterError, match="pickled"):
        pickle.dumps(run)


def test_curves_of_plans_are_cut_at_one_and_ordered() -> None:
    plans = [plan(n=1000, universe=2**10, epsilon=1, delta="1e-6", queries=k) for k in (100, 1, 10)]
    ks, curves = error_curves(plans)
    assert ks == [1, 10, 100]
    assert set(curves) == {p.strategy for p in plans[0].predictions}
    assert all(0 < v <= 1 for line in curves.values() for v in line)
    with pytest.raises(ParameterError, match="all with a delta"):
        error_curves([*plans, plan(n=1000, universe=4, epsilon=1, queries=3)])


def test_pictures_show_every_strategy_and_both_models() -> None:
    plans = [plan(n=10**6, universe=2**10, epsilon=1, delta="1e-6", queries=k) for k in (1, 100, 10**4)]
    axes = draw_plans(plans)
    assert len(axes.lines) == 5
    laplace = next(line for line in axes.lines if line.get_label() == "laplace")
    assert list(laplace.get_ydata()) == error_curves(plans)[1]["laplace"]
    axes = draw_local_and_central(epsilon="1/2", people=[100, 10_000])
    local, central = (list(line.get_ydata()) for line in axes.lines)
    assert local[0] / local[1] == pytest.approx(10)
    assert central[0] / central[1] == pytest.approx(100)


def test_the_room_is_light_to_import() -> None:
    heavy = ("scipy", "duckdb", "pandas", "matplotlib")
    code = f"import sys, hubbub.mechanisms; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-3", "50", "1000", "1e6"])
def test_tiny_and_huge_epsilons_are_valid_and_finite(epsilon: str) -> None:
    """Every law stays a law: what it draws is possible under it, and under the neighbour within epsilon."""
    e, bits = float(epsilon), SeededBits("extreme")
    cases: list[tuple[Any, Any, Any, dict[str, Any]]] = [
        (LaplaceMechanism(sensitivity=1, epsilon=epsilon), 5, 6, {}),
        (StaircaseMechanism(sensitivity=3, epsilon=epsilon), 5, 8, {}),
        (RandomizedResponse(epsilon=epsilon), True, False, {}),
        (ExponentialMechanism(epsilon=epsilon, sensitivity=1), [1, 2], [2, 1], {}),
        (PermuteAndFlip(epsilon=epsilon, sensitivity=1), [1, 2], [2, 1], {}),
        (QuantileMechanism(shares=["1/2"], lower=0, upper=9, epsilon=epsilon), [1, 2, 3], [1, 2, 3, 3], {}),
        (KNormMechanism(norm="l1", sensitivity=1, cells=2, epsilon=epsilon), [1, 2], [1, 3], {}),
    ]
    for mechanism, data, other, options in cases:
        output = mechanism.release(data, bits=bits, **options)
        first, second = (mechanism.log_prob(output, d, **options) for d in (data, other))
        assert -math.inf < first <= 1e-12, mechanism
        assert abs(first - second) <= e * (1 + 1e-6) + 1e-9, mechanism
    kary = KaryResponse(categories=3, epsilon=epsilon)
    assert kary.truth + 2 * kary.other == pytest.approx(1)
    assert 0 <= kary.log_prob(1, 1) - kary.log_prob(2, 1) <= e * (1 + 1e-9) + 1e-15
    assert KNormMechanism(norm="linf", sensitivity=1, cells=2, epsilon=epsilon).noise(bits=bits).shape == (2,)
    assert 0 < gaussian_sigma(epsilon, "1e-6") < math.inf
    assert gaussian_delta(e, gaussian_sigma(epsilon, "1e-6")) == pytest.approx(1e-6, rel=1e-6)
    assert all(p.max_error > 0 for p in plan(n=100, universe=9, epsilon=epsilon, delta="1e-6", queries=7).predictions)


REFUSED: list[tuple[Any, str]] = [
    (lambda: LaplaceMechanism(sensitivity=1), "nothing"),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=1, scale=2), "epsilon= and scale="),
    (lambda: LaplaceMechanism(sensitivity=None, epsilon=1), "without bound"),
    (lambda: LaplaceMechanism(sensitivity=math.inf, epsilon=1), "Declare bounds"),
    (lambda: LaplaceMechanism(sensitivity=math.nan, epsilon=1), "Declare bounds"),
    (lambda: LaplaceMechanism(sensitivity=0, epsilon=1), "positive"),
    (lambda: LaplaceMechanism(sensitivity=-1, epsilon=1), "not be negative"),
    (lambda: LaplaceMechanism(sensitivity="1/2", epsilon=1), "grid="),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=0), "above 0"),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=math.nan), "finite"),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=math.inf), "finite"),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=1, cells=0), "at least 1"),
    (lambda: LaplaceMechanism(sensitivity=1, within=50), "confidence="),
    (lambda: LaplaceMechanism(sensitivity=1, within=50, confidence=1), "0 < beta < 1"),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=1).release(0.5), "exact integers"),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=1).release(True), "exact integers"),
    (lambda: LaplaceMechanism(sensitivity=1, epsilon=1).release([1, 2]), "cells=1"),
    (lambda: GaussianMechanism(sensitivity=1, epsilon=1), "delta"),
    (lambda: GaussianMechanism(sensitivity=1, epsilon=1, delta=0), "never pure"),
    (lambda: GaussianMechanism(sensitivity=1, epsilon=1, delta=1), "allowed"),
    (lambda: GaussianMechanism(sensitivity=1, epsilon=2, delta="1e-6", calibration="classic"), "epsilon <= 1"),
    (lambda: GaussianMechanism(sensitivity=1, epsilon=1, delta="1e-6", calibration="best"), "'zcdp'"),
    (
        lambda: GaussianMechanism(squared_sensitivity=2, epsilon=1, delta="1e-6", calibration="exact", cells=2),
        "several cells",
    ),
    (lambda: GaussianMechanism(rho=1), "squared_sensitivity="),
    (lambda: GaussianMechanism(squared_sensitivity=math.inf, rho=1), "Declare bounds"),
    (lambda: GaussianMechanism(squared_sensitivity="1/2", rho=1), "whole"),
    (lambda: GaussianMechanism(sensitivity="1/2", rho=1), "grid="),
    (lambda: GaussianMechanism(sensitivity=1, within=0, confidence="0.99"), "positive"),
    (lambda: StaircaseMechanism(sensitivity=None, epsilon=1), "Declare bounds"),
    (lambda: KNormMechanism(norm="l3", sensitivity=1, cells=2, epsilon=1), "'linf'"),  # type: ignore[arg-type]
    (lambda: KNormMechanism(norm="l2", sensitivity=1, cells=25, epsilon=1), "Gaussian"),
    (lambda: KNormMechanism(norm="l1", squared_sensitivity=1, cells=2, epsilon=1), "norm='l2'"),
    (lambda: KNormMechanism(norm=Polytope.of([[1]]), sensitivity=1, cells=2, epsilon=1), "dimensions"),
    (
        lambda: KNormMechanism(norm=Polytope.of([[1]]), sensitivity=1, cells=1, epsilon=1, grid=Grid(0)),
        "differences of integers",
    ),
    (lambda: Polytope.of([[1, 0], [2, 0]]), "span fewer"),
    (lambda: Polytope.of([[1] * 7]), "at most 6"),
    (lambda: RandomizedResponse(), "nothing"),
    (lambda: RandomizedResponse(bias="1/2"), "strictly between"),
    (lambda: RandomizedResponse(random_share=0), "strictly between"),
    (lambda: RandomizedResponse(epsilon=1).release([1, 0]), "True and False"),
    (lambda: RandomizedResponse(epsilon=1).estimate(11, 10), "between 0 and n"),
    (lambda: KaryResponse(categories=3, epsilon=1).release([3]), "categories 0 .. 2"),
    (lambda: KaryResponse(categories=1, epsilon=1), "at least 2"),
    (lambda: ExponentialMechanism(epsilon=1, sensitivity=None), "Declare bounds"),
    (lambda: ExponentialMechanism(epsilon=1, sensitivity=1).release([0.5, 1.0]), "integers or Fractions"),
    (lambda: ExponentialMechanism(epsilon=1, sensitivity=1).release([]), "at least one score"),
    (lambda: ExponentialMechanism(epsilon=1, sensitivity=1).accuracy("0.1", candidates=2, best=3), "1 <= best"),
    (lambda: NoisyMax(epsilon=1, sensitivity=1, noise="gumbel"), "'exponential'"),
    (lambda: NoisyMax(epsilon=1, sensitivity="1/2"), "whole"),
    (lambda: NoisyMax(epsilon=1, sensitivity=1).release([Fraction(1, 2), 0]), "integer scores"),
    (lambda: SparseVector(epsilon=1, sensitivity=1, positives=0), "at least 1"),
    (lambda: SparseVector(epsilon=1, sensitivity=1, positives=1).answer_noise, "answers_epsilon="),
    (lambda: above_threshold(epsilon=1, sensitivity=1).open(0.5), "exact integers"),  # type: ignore[arg-type]
    (lambda: above_threshold(epsilon=1, sensitivity=1).release([0.5], threshold=1), "exact integers"),  # type: ignore[list-item]
    (lambda: QuantileMechanism(shares=[0.5, 0.5], lower=0, upper=9, epsilon=1), "increasing"),
    (lambda: QuantileMechanism(shares=[0], lower=0, upper=9, epsilon=1), "between 0 and 1"),
    (lambda: QuantileMechanism(shares=[0.5], lower=9, upper=0, epsilon=1), "lower <= upper"),
    (lambda: QuantileMechanism(shares=[0.5], lower=None, upper=0, epsilon=1), "declare the range"),  # type: ignore[arg-type]
    (lambda: QuantileMechanism(shares=[0.5], lower=0, upper="1/2", epsilon=1), "grid"),
    (lambda: QuantileMechanism(shares=[0.5], lower=0, upper=9, epsilon=1).release([0.5]), "grid="),
    (lambda: QuantileMechanism(shares=[0.5], lower=0, upper=9, epsilon=1).log_prob([1, 2], [3]), "cells=1"),
    (lambda: OptimalGroupSelection(epsilon=1, delta=0), "declare the groups"),
    (lambda: OptimalGroupSelection(epsilon="1e-6", delta="1e-9").probability(1), "100000 units"),
    (lambda: GroupThreshold(delta="1e-6"), "nothing"),
    (lambda: GroupThreshold(epsilon=1, delta="1e-6").release([-1]), ">= 0"),
    (lambda: plan(n=10, universe=4, epsilon=1), "exactly one"),
]


@pytest.mark.parametrize(("act", "text"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_bad_parameters_say_what_is_allowed(act: Any, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        act()


def test_weights_that_are_all_zero_are_our_own_defect() -> None:
    with pytest.raises(InternalError):
        weighted_choice(np.array([0, 1]), Fraction(1), counts=np.array([0, 0]))


def test_events_are_the_tightest_that_is_proved() -> None:
    assert isinstance(ExponentialMechanism(epsilon=1, sensitivity=1).loss, ev.BoundedRange)
    assert GaussianMechanism(sensitivity=3, sigma=2).loss == ev.DiscreteGaussian(2, sensitivity=3)
    assert GaussianMechanism(sensitivity=3, rho="1/3").loss == ev.ZCDP("1/3")
    assert LaplaceMechanism(sensitivity=3, scale=2).loss == ev.DiscreteLaplace(2, sensitivity=3)
    quantiles = QuantileMechanism(shares=["1/4", "1/2", "3/4"], lower=0, upper=9, epsilon=1)
    assert quantiles.loss == ev.Repeated(ev.BoundedRange("1/2"), 2)
