"""The exact checker on every mechanism: never above the claim, and tight where the theory says so."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub.accounting import delta, events as ev, pure_epsilon
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
    Polytope,
    QuantileMechanism,
    RandomizedResponse,
    SparseVector,
    StaircaseMechanism,
    claimed_delta,
    delta_between,
    epsilon_between,
    examine,
)
from mechanisms.laws import integer_pairs, over, reach, row_pairs, score_pairs, yes_no_strings

ROUND = 1 + 1e-9


def claim(mechanism: object) -> float:
    """The pure epsilon that the mechanism's event claims."""
    epsilon = pure_epsilon(mechanism.loss)  # type: ignore[attr-defined]
    assert epsilon is not None
    return float(epsilon)


@pytest.mark.parametrize("sensitivity", [1, 2, 5])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 3])
def test_laplace_and_staircase_reach_their_epsilon_exactly(sensitivity: int, epsilon: str) -> None:
    for mechanism in (
        LaplaceMechanism(sensitivity=sensitivity, epsilon=epsilon),
        StaircaseMechanism(sensitivity=sensitivity, epsilon=epsilon),
    ):
        width = reach(sensitivity / float(Fraction(epsilon)))
        outputs, law = np.arange(-width, width + 1), mechanism.error()
        found = examine(lambda d, law=law, y=outputs: law.log_pmf(y - d), integer_pairs(sensitivity))
        assert mechanism.log_prob(3, 1) == law.log_pmf(2)
        assert claim(mechanism) == pytest.approx(float(Fraction(epsilon)), rel=1e-12)
        assert claim(mechanism) / 1.000001 <= found.epsilon <= claim(mechanism) * ROUND


def test_laplace_on_a_vector_spends_its_l1_sensitivity_once() -> None:
    mechanism = LaplaceMechanism(sensitivity=2, epsilon=1, cells=2)
    outputs = list(itertools.product(range(-3, 6), repeat=2))
    moves = [((0, 0), (a, b)) for a in range(-2, 3) for b in range(-2, 3) if abs(a) + abs(b) <= 2]
    found = examine(over(mechanism.log_prob, outputs), moves)
    assert found.epsilon == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("sensitivity", "rho"), [(1, "1/2"), (1, "1/50"), (3, "1/8")])
def test_gaussian_delta_stays_below_its_zcdp_claim_and_renyi_meets_it(sensitivity: int, rho: str) -> None:
    mechanism = GaussianMechanism(sensitivity=sensitivity, rho=rho)
    width = math.ceil(40 * math.sqrt(mechanism.variance)) + 60
    outputs = np.arange(-width, width + 1)
    epsilons = [0.1, 0.5, 1.0, 2.0, 4.0]

    def law(shift: int) -> np.ndarray:
        return np.asarray(mechanism.error().log_pmf(outputs - shift))

    found = examine(law, integer_pairs(sensitivity), epsilons=epsilons)
    for epsilon in epsilons:
        assert found.deltas[epsilon] <= claimed_delta(mechanism.loss, epsilon)
    for alpha in (1.5, 2, 5, 16):
        divergence = np.logaddexp.reduce(alpha * law(sensitivity) + (1 - alpha) * law(0)) / (alpha - 1)
        bound = alpha * float(Fraction(rho))
        assert 0.9 * bound <= divergence <= bound * ROUND
    assert claimed_delta(mechanism.loss, 1.0) <= 40 * found.deltas[1.0] + 1e-12


@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-6"), (1, "1e-6"), (1, "1e-2"), (4, "1e-9")])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_exact_gaussian_calibration_meets_its_delta_and_one_percent_less_noise_does_not(
    epsilon: str, delta: str, sensitivity: int
) -> None:
    mechanism = GaussianMechanism(sensitivity=sensitivity, epsilon=epsilon, delta=delta, calibration="exact")
    width = math.ceil(12 * math.sqrt(mechanism.variance)) + 10
    outputs, at = np.arange(-width, width + 1), float(Fraction(epsilon))

    def worst(variance: Fraction) -> float:
        law = GaussianMechanism(sensitivity=sensitivity, sigma=1).error().from_variance(variance).log_pmf
        return max(delta_between(law(outputs), law(outputs - d), at) for d in range(1, sensitivity + 1))

    assert worst(mechanism.variance) <= float(Fraction(delta)) * (1 + 1e-6)
    assert worst(mechanism.variance * Fraction(98, 100)) > float(Fraction(delta))


@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip, NoisyMax])
@pytest.mark.parametrize("monotone", [False, True])
def test_selection_never_exceeds_its_epsilon_and_reaches_it_in_the_limit(kind: type, monotone: bool) -> None:
    mechanism = kind(epsilon=1, sensitivity=1, monotone=monotone)
    moves = (0, 1) if monotone else (-1, 0, 1)
    pairs = score_pairs((0, 1, 3), 3, moves)
    found = examine(mechanism.log_probs, pairs)
    assert 0.7 < found.epsilon <= ROUND
    # Far behind, a candidate's chance moves by the whole of epsilon.
    behind = [((0, 60), (-1, 61)), ((0, 60), (1, 59))] if not monotone else [((0, 60), (1, 60)), ((0, 60), (0, 61))]
    assert examine(mechanism.log_probs, behind).epsilon == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("monotone", [False, True])
def test_noisy_max_with_laplace_noise_never_exceeds_its_epsilon_and_comes_within_a_tenth(monotone: bool) -> None:
    mechanism = NoisyMax(epsilon=1, sensitivity=1, monotone=monotone, noise="laplace")
    moves = (0, 1) if monotone else (-1, 0, 1)
    assert examine(mechanism.log_probs, score_pairs((0, 1, 3), 3, moves)).epsilon <= ROUND
    far = ((0, 40), (-1, 41)) if not monotone else ((0, 40), (0, 41))
    assert 0.9 <= examine(mechanism.log_probs, [far]).epsilon <= ROUND


def test_the_exponential_mechanism_is_bounded_range_and_permute_and_flip_is_not() -> None:
    """The loss of the exponential mechanism spans epsilon = 1; that of permute-and-flip more, hence PureDP."""
    spans = {}
    for kind in (ExponentialMechanism, PermuteAndFlip):
        mechanism = kind(epsilon=1, sensitivity=1)
        losses = [mechanism.log_probs(a) - mechanism.log_probs(b) for a, b in score_pairs((0, 1, 3), 3, (-1, 0, 1))]
        spans[kind] = max(float(np.ptp(loss)) for loss in losses)
    assert spans[ExponentialMechanism] <= ROUND
    assert spans[PermuteAndFlip] > 1.2
    assert isinstance(ExponentialMechanism(epsilon=1, sensitivity=1).loss, ev.BoundedRange)
    assert isinstance(PermuteAndFlip(epsilon=1, sensitivity=1).loss, ev.PureDP)


@pytest.mark.parametrize(("monotone", "positives"), [(False, 1), (False, 2), (True, 1), (True, 2)])
def test_sparse_vector_never_exceeds_its_epsilon(monotone: bool, positives: int) -> None:
    mechanism = SparseVector(epsilon=1, positives=positives, sensitivity=1, monotone=monotone)
    moves = (0, 1) if monotone else (-1, 0, 1)
    law = over(mechanism.log_prob, yes_no_strings(3), threshold=0)
    pairs = score_pairs((-2, 0, 1), 3, moves)[:: 1 if monotone else 3]
    assert 0.2 < examine(law, pairs).epsilon <= ROUND


def test_sparse_vector_is_tight_in_the_limit() -> None:
    """Values 0 seen as No, one far below as Yes: the loss comes within 2 % of epsilon."""
    mechanism = SparseVector(epsilon=1, positives=1, sensitivity=1)
    output = (False,) * 400 + (True,)
    near = mechanism.log_prob(output, [0] * 400 + [-100], threshold=0)
    far = mechanism.log_prob(output, [1] * 400 + [-101], threshold=0)
    assert 0.98 <= abs(near - far) <= ROUND


def test_sparse_vector_pays_for_numeric_answers_apart() -> None:
    mechanism = SparseVector(epsilon=1, positives=1, sensitivity=1, answers_epsilon="1/2")
    assert claim(mechanism) == 1.5
    outputs = [(False,) * k + (v,) for k in range(2) for v in range(-30, 30)] + [(False,) * 2]
    law = over(mechanism.log_prob, outputs, threshold=0)
    assert 0.9 < examine(law, score_pairs((-2, 1), 2, (-1, 0, 1))).epsilon <= 1.5 * ROUND


@pytest.mark.parametrize("shares", [["1/2"], ["1/10"], ["1/4", "1/2", "3/4"], ["1/3", "2/3"]])
def test_quantiles_never_exceed_their_epsilon_over_all_small_tables(shares: list[str]) -> None:
    mechanism = QuantileMechanism(shares=shares, lower=0, upper=3, epsilon=1)
    outputs = [o for o in itertools.product(range(4), repeat=len(shares)) if list(o) == sorted(o)]
    law = over(mechanism.log_prob, [list(o) for o in outputs])
    found = examine(law, row_pairs((0, 1, 3), 4))
    assert 0.4 < found.epsilon <= ROUND
    assert claim(mechanism) == 1


def test_quantiles_of_units_with_two_rows_and_of_replaced_rows_never_exceed_their_epsilon() -> None:
    """rows=2 covers a unit that adds two rows anywhere, and one row that becomes another."""
    mechanism = QuantileMechanism(shares=["1/4", "3/4"], lower=0, upper=3, epsilon=1, rows=2)
    law = over(mechanism.log_prob, [[a, b] for a in range(4) for b in range(a, 4)])
    tables = [t for n in range(4) for t in itertools.combinations_with_replacement((0, 1, 3), n)]
    two = list(itertools.combinations_with_replacement((0, 1, 3), 2))
    added = [(table, (*table, *rows)) for table in tables for rows in two]
    replaced = [((*table, a), (*table, b)) for table in tables for a, b in two]
    assert 0.2 < examine(law, added).epsilon <= ROUND
    assert 0.2 < examine(law, replaced).epsilon <= ROUND


def test_one_quantile_comes_close_to_its_epsilon_where_ranks_move_apart() -> None:
    """Most values lie below the median's row; a row at 0 moves them a half rank nearer, those above a half away."""
    mechanism = QuantileMechanism(shares=["1/2"], lower=0, upper=100_000, epsilon=1)
    law = over(mechanism.log_prob, [10, 99_990])
    table = [0] * 3 + [99_900] * 4 + [100_000] * 3
    found = examine(law, [(table, [*table, 0])])
    assert 0.9 <= found.epsilon <= ROUND


@pytest.mark.parametrize("epsilon", ["1/2", 2])
def test_the_optimal_group_selection_meets_epsilon_and_delta_at_every_size(epsilon: str) -> None:
    mechanism = OptimalGroupSelection(epsilon=epsilon, delta="1e-4")
    at = float(Fraction(epsilon))
    for n in range(mechanism.always + 2):
        chances = [[float(mechanism.probability(m)), float(1 - mechanism.probability(m))] for m in (n, n + 1)]
        with np.errstate(divide="ignore"):
            assert 0.999e-4 <= delta_between(*np.log(chances), at) <= 1e-4 * (1 + 1e-9) or n >= mechanism.always - 1


@pytest.mark.parametrize("noise", [{"epsilon": 1}, {"rho": "1/10"}])
def test_group_thresholds_spend_delta_only_on_a_unit_alone_in_its_group(noise: dict[str, str]) -> None:
    mechanism = GroupThreshold(delta="1e-3", **noise)  # type: ignore[arg-type]
    outputs = [None, *range(mechanism.threshold, mechanism.threshold + 120)]
    law = over(mechanism.log_prob, outputs)
    assert delta_between(law(0), law(1), 0.0) == pytest.approx(mechanism.one_unit, rel=1e-9)
    assert 0.3e-3 < mechanism.one_unit <= 1e-3
    epsilons = [0.5, 1.0, 1.5]
    found = examine(law, [(n, n + 1) for n in range(1, 25)], epsilons=epsilons)
    for epsilon in epsilons:
        assert found.deltas[epsilon] <= claimed_delta(mechanism.loss, epsilon) + 1e-12
    loosened = GroupThreshold(delta="1e-3", **noise)  # type: ignore[arg-type]
    object.__setattr__(loosened, "threshold", mechanism.threshold - 1)
    assert loosened.one_unit > 1e-3


def test_several_groups_of_a_unit_share_epsilon_and_delta() -> None:
    mechanism = GroupThreshold(epsilon=1, delta="1e-6", groups=4)
    assert mechanism.noise.scale == 4  # type: ignore[union-attr]
    assert 1 - (1 - mechanism.one_unit) ** 4 <= 1e-6
    assert mechanism.loss == ev.Threshold("1/4", "2.5e-7", 4)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "polytope"])
def test_k_norm_reaches_its_epsilon_and_never_exceeds_it(norm: str) -> None:
    columns = [[1, 1], [1, 0], [0, 1]]
    body = Polytope.of(columns) if norm == "polytope" else norm
    mechanism = KNormMechanism(norm=body, sensitivity=1, cells=2, epsilon=1)  # type: ignore[arg-type]
    outputs = list(itertools.product(range(-12, 13), repeat=2))
    inside = {"l1": [[1, 0], [0, -1]], "l2": [[0, 1], [-1, 0]], "linf": [[1, 1], [1, -1], [1, 0]], "polytope": columns}
    found = examine(over(mechanism.log_prob, outputs), [((0, 0), tuple(v)) for v in inside[norm]])
    assert 1 / ROUND <= found.epsilon <= ROUND
    ratio = mechanism.log_ratio((3, -2), (0, 0), (1, 0))
    assert ratio == pytest.approx(mechanism.log_prob((3, -2), (0, 0)) - mechanism.log_prob((3, -2), (1, 0)), abs=1e-9)


def test_randomised_response_laws_are_tight_in_all_forms() -> None:
    def law(m: RandomizedResponse, truth: bool) -> list[float]:
        return [m.log_prob(y, truth) for y in (False, True)]

    for mechanism, epsilon in [
        (RandomizedResponse(random_share="1/2"), math.log(3)),
        (RandomizedResponse(bias="1/8"), math.log((1 / 2 + 1 / 8) / (1 / 2 - 1 / 8))),
        (RandomizedResponse(epsilon="7/10"), 0.7),
    ]:
        assert epsilon_between(law(mechanism, False), law(mechanism, True)) == pytest.approx(epsilon, rel=1e-12)
        assert epsilon <= claim(mechanism) * (1 + 1e-15) <= epsilon * ROUND
    forced = RandomizedResponse(forced_yes="1/2")
    assert epsilon_between(law(forced, False), law(forced, True)) == math.inf
    for epsilon in (0.0, 1.0, 20.0):
        assert delta_between(law(forced, False), law(forced, True), epsilon) == pytest.approx(0.5, abs=1e-12)
    kary = KaryResponse(categories=5, epsilon=1)
    assert np.exp(over(kary.log_prob, range(5))(0)).sum() == pytest.approx(1, rel=1e-12)
    found = examine(over(kary.log_prob, range(5)), itertools.product(range(5), repeat=2))
    assert found.epsilon == pytest.approx(1, rel=1e-12)


ACCOUNTED = [
    (LaplaceMechanism(sensitivity=3, epsilon=1), [0.0, 0.4, 0.9], 1e-9),
    (GaussianMechanism(sensitivity=1, sigma=2), [0.0, 0.5, 1.5], 1e-9),
    (GaussianMechanism(sensitivity=3, sigma=5), [0.1, 1.0], 1e-9),
    (RandomizedResponse(epsilon=1), [0.0, 0.5, 0.9], 1e-9),
    (StaircaseMechanism(sensitivity=4, epsilon=1), [0.0, 0.5], None),
]


@pytest.mark.parametrize(("mechanism", "epsilons", "tight"), ACCOUNTED, ids=lambda v: type(v).__name__)
def test_the_accountant_agrees_with_the_exact_law(mechanism, epsilons, tight) -> None:  # type: ignore[no-untyped-def]
    """delta(epsilon) of the event is that of the law, and never below it."""
    if isinstance(mechanism, RandomizedResponse):
        law, pairs = over(mechanism.log_prob, [False, True]), [(False, True)]
    else:
        outputs, noise = np.arange(-400, 401), mechanism.error()
        shift = 4 if tight is None else int(mechanism.loss.sensitivity)
        law, pairs = (lambda d: noise.log_pmf(outputs - d)), integer_pairs(shift)
    found = examine(law, pairs, epsilons=epsilons)
    for epsilon in epsilons:
        promised = delta(mechanism.loss, epsilon)
        assert found.deltas[epsilon] <= promised * (1 + 1e-9) + 1e-12
        if tight is not None:
            assert found.deltas[epsilon] == pytest.approx(promised, rel=tight, abs=1e-12)


def test_the_checker_itself_needs_pairs_and_matching_outputs() -> None:
    with pytest.raises(ParameterError, match="no pair"):
        examine(lambda d: d, [])
    with pytest.raises(ParameterError, match="one list of outputs"):
        epsilon_between([0.0], [0.0, 0.0])
    assert delta_between(np.log([0.5, 0.2]), np.log([0.5, 0.2]), 0.0) == pytest.approx(0.3)
