"""What a hostile caller tries: threads, re-entry, huge numbers, numpy's error state, typos. Each was a defect once."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GroupThreshold,
    LaplaceMechanism,
    NoisyMax,
    OptimalGroupSelection,
    PermuteAndFlip,
    Polytope,
    QuantileMechanism,
    SparseVector,
    SparseVectorRun,
    StaircaseLaw,
    StaircaseMechanism,
    above_threshold,
    k_norm_for,
    laplace_for,
    rank_error,
)
from hubbub.mechanisms.calibrate import integers
from hubbub.noise import Grid
from hubbub.queries import InnerProducts, Points, Stack, Thresholds
from seeded import SeededBits

FAR = 10**6


class AsksAgain(SeededBits):
    """Bits whose drawing asks the same run once more, as a signal handler might."""

    def __init__(self) -> None:
        super().__init__("again")
        self.run: SparseVectorRun | None = None
        self.yes = 0

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        super().fill(buffer)
        if self.run is not None:
            run, self.run = self.run, None
            with contextlib.suppress(QueryError):
                self.yes += bool(run.ask(FAR))


class Slow(SeededBits):
    """Bits that let other threads run before they come."""

    def __init__(self) -> None:
        super().__init__("slow")
        self._pause = threading.Event()

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        self._pause.wait(0.002)
        super().fill(buffer)


@pytest.mark.parametrize("positives", [1, 3])
def test_a_question_within_a_question_gets_no_yes_too_many(positives: int) -> None:
    bits = AsksAgain()
    run = SparseVector(epsilon=1, sensitivity=1, positives=positives).open(0, bits=bits)
    yes = 0
    for _ in range(positives + 2):
        bits.run = run
        try:
            yes += bool(run.ask(FAR))
        except QueryError:
            bits.run = None
    assert yes + bits.yes == positives
    assert run.left == 0
    with pytest.raises(QueryError, match="all positive answers"):
        run.ask(FAR)


def test_eight_threads_get_no_yes_too_many() -> None:
    run, got = SparseVector(epsilon=1, sensitivity=1, positives=2).open(0, bits=Slow()), []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        try:
            while True:
                got.append(run.ask(FAR))
        except QueryError:
            pass

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [True, True]
    assert run.left == 0


def test_a_no_leaves_the_slot_and_a_bad_question_too() -> None:
    run = SparseVector(epsilon=1, sensitivity=1, positives=1).open(0, bits=SeededBits(1))
    assert [run.ask(-FAR) for _ in range(5)] == [False] * 5
    with pytest.raises(ParameterError, match="exact integers"):
        run.ask(0.5)  # type: ignore[arg-type]
    assert run.left == 1
    assert run.ask(FAR) is True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_no_second_set_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SparseVector(epsilon=1, sensitivity=1, positives=1).open(0, bits=SeededBits(1))
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(QueryError, match="another process"):
        run.ask(FAR)


@pytest.mark.parametrize(
    "options",
    [
        {"sensitivity": 2**60, "epsilon": 1},
        {"sensitivity": 2**53, "epsilon": "1/1000"},
        {"sensitivity": 2**60, "epsilon": 1, "width": 1},
        {"sensitivity": 2**54, "epsilon": 50},
    ],
)
def test_staircase_noise_beyond_int64_is_refused(options: dict) -> None:
    with pytest.raises(ParameterError, match="coarser grid"):
        StaircaseMechanism(**options)


def test_staircase_noise_at_the_limit_stays_within_int64() -> None:
    law = StaircaseLaw(Fraction(1), 2**53, 2**52)
    drawn = law.sample(2000, bits=SeededBits("stairs"))
    # P(|Z| > 60 Delta) < 2000 e^-60 < 1e-22 for all draws together.
    assert int(np.abs(drawn).max()) <= 60 * 2**53


def test_k_norm_takes_what_neighbours_move_from_the_workload() -> None:
    flips = InnerProducts([[3, 4]])
    for workload in (flips, Stack([flips])):
        body = k_norm_for(workload, neighbours="replace", epsilon=1)
        assert body.log_ratio([4], [4], [0]) == pytest.approx(1.0)
        assert laplace_for(workload, neighbours="replace", epsilon=1).scale == 4
    assert k_norm_for(Thresholds(3), neighbours="add_remove", epsilon=1, rows=5).scale == 5
    with pytest.raises(ParameterError, match="'Replace' was asked"):
        k_norm_for(Points(2), neighbours="Replace", epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="not all zero"):
        k_norm_for(Points(1), neighbours="replace", epsilon=1)


def test_a_polytope_takes_integers_only() -> None:
    with pytest.raises(ParameterError, match="whole numbers"):
        Polytope.of([[1.9, 0], [0, 1.9]])
    with pytest.raises(ParameterError, match="below 2\\^31"):
        Polytope.of([[2**62, 0], [0, 1]])


@pytest.fixture
def raising() -> Iterator[None]:
    old = np.seterr(all="raise")
    yield
    np.seterr(**old)


@pytest.mark.usefixtures("raising")
@pytest.mark.parametrize("gap", [700, 1410, 1418, 1440, 5000, 10**6, 2**61])
def test_numpys_error_state_does_not_tell_about_scores(gap: int) -> None:
    for mechanism in (ExponentialMechanism, PermuteAndFlip, NoisyMax):
        selection = mechanism(epsilon=1, sensitivity=1)
        assert selection.release([0, gap], bits=SeededBits(gap)) == 1
        if gap <= 5000:
            assert np.isfinite(selection.log_probs([0, gap])[1])
    quantile = QuantileMechanism(shares=["1/2"], lower=0, upper=9, epsilon=1)
    rows = np.zeros(min(gap, 10**5), np.int64)
    assert quantile.release(rows, bits=SeededBits(gap)).tolist() == [0]
    assert quantile.log_prob([9], rows) < -300


def test_ints_on_a_grid_stay_exact_beside_floats() -> None:
    first, second = integers([2**56 + 8, 0.5], Grid(0), 2), integers([2**56 + 9, 0.5], Grid(0), 2)
    assert (first, second) == ((2**56 + 8, 1), (2**56 + 9, 1))
    assert integers(np.array([2**60 + 1]), Grid(0), 1) == (2**60 + 1,)
    assert integers([2**63 + 1025, -1], Grid(0), 2) == (2**63 + 1025, -1)
    assert integers([Fraction(1, 3), 0.75], Grid(-2), 2) == (1, 3)
    two = LaplaceMechanism(sensitivity=1, epsilon=1, cells=2, grid=Grid(0))
    assert two.release([2**56 + 8, 0.5], bits=SeededBits(3)).shape == (2,)
    with pytest.raises(ParameterError, match="finite"):
        integers([float("nan"), 1], Grid(0), 2)


def normal_delta(epsilon: Decimal, sigma: Decimal) -> Decimal:
    """Phi(1/2sigma - epsilon sigma) - e^epsilon Phi(-1/2sigma - epsilon sigma), with 60 digits."""
    with localcontext() as context:
        context.prec = 100
        a, half = epsilon * sigma, 1 / (2 * sigma)
        return upper(a - half) - epsilon.exp() * upper(a + half)


def upper(x: Decimal) -> Decimal:
    """P(N(0, 1) > x) for 0 < x < 12: 1/2 - phi(x) sum_k x^(2k+1) / (1 3 5 ...)."""
    pi = Decimal(
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
    )
    term = total = x
    for k in range(3, 900, 2):
        term = term * x * x / k
        total += term
    return Decimal("0.5") - total * (-x * x / 2).exp() / (2 * pi).sqrt()


@pytest.mark.parametrize(
    ("epsilon", "delta", "tight"),
    [
        ("1e-12", "1e-24", False),
        ("1e-12", "1e-20", False),
        ("1e-9", "1e-22", True),
        ("1e-6", "1e-20", True),
        ("1e-3", "1e-15", True),
    ],
)
def test_exact_gaussian_calibration_keeps_delta_where_floats_cancel(epsilon: str, delta: str, tight: bool) -> None:
    """At sigma > 1000 the discrete law is the normal one to within e^(-2 pi^2 sigma^2)-like terms and 1/sigma^2."""
    variance = GaussianMechanism(sensitivity=1, epsilon=epsilon, delta=delta, calibration="exact").variance
    with localcontext() as context:
        context.prec = 100
        sigma = (Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt()
    used = float(normal_delta(Decimal(epsilon), sigma) / Decimal(delta))
    assert used <= 1 + 1e-9
    assert used >= (0.97 if tight else 0.01)


def test_a_delta_that_floats_cannot_hold_is_refused() -> None:
    with pytest.raises(ParameterError, match="1e-300"):
        GroupThreshold(rho=1, delta="1e-400")
    with pytest.raises(ParameterError, match="1e-298"):
        GaussianMechanism(sensitivity=1, epsilon=1, delta="1e-310", calibration="exact")
    assert GroupThreshold(rho=1, delta="1e-299").threshold > 20
    assert GroupThreshold(epsilon=1, delta="1e-400").threshold == 922


@pytest.mark.parametrize(("epsilon", "delta"), [(50, "1e-290"), (700, "1e-300"), (1, "1e-400"), (1, "1e-5")])
def test_optimal_group_selection_of_any_delta_obeys_both_inequalities(epsilon: int, delta: str) -> None:
    selection, small = OptimalGroupSelection(epsilon=epsilon, delta=delta), Fraction(delta)
    assert selection.probability(1) == small
    with localcontext() as context:
        context.prec = 400
        growth = Fraction(Decimal(epsilon).exp())
    table = [selection.probability(n) for n in range(selection.always + 1)]
    for low, high in itertools.pairwise(table):
        assert high <= growth * low + small
        assert 1 - low <= growth * (1 - high) + small
    assert table[-1] == 1


@pytest.mark.parametrize("counts", [np.array([2**63 - 1]), np.array([2**64 - 1], np.uint64), [2**70], [2**62]])
def test_huge_counts_are_shown(counts: object) -> None:
    groups = GroupThreshold(epsilon=1, delta="1e-5")
    for seed in range(20):
        # Negative noise of 2^61 has a chance below e^(-2^61).
        assert groups.release(counts, bits=SeededBits(seed))[0] > 2**61


@pytest.mark.parametrize("value", ["no", 1, 0, None, "False"])
def test_monotone_is_true_or_false(value: object) -> None:
    for mechanism in (ExponentialMechanism, PermuteAndFlip, NoisyMax, above_threshold):
        with pytest.raises(ParameterError, match="True or False"):
            mechanism(epsilon=1, sensitivity=1, monotone=value)  # type: ignore[arg-type]


def test_rank_errors_of_no_rows_are_refused() -> None:
    with pytest.raises(ParameterError, match="no rows"):
        rank_error([], [1], ["1/2"])


def test_a_row_of_a_quantile_lies_where_it_would_without_the_others() -> None:
    """numpy makes one float of a list that holds one: then 2^56 + 511 would round up to another step of 2^10."""
    low, high = 2**56, 2**56 + 2**12
    one = QuantileMechanism(shares=["1/2"], lower=low, upper=high, epsilon=1, grid=Grid(10))
    alone, beside = one._sorted([low + 511]), one._sorted([low + 511, 0.5])
    assert alone.tolist() == [2**46]
    assert beside.tolist() == [2**46, 2**46]
    whole = QuantileMechanism(shares=["1/2"], lower=0, upper=1000, epsilon=1)
    assert whole._sorted([2**70, 1]).tolist() == whole._sorted([2**63, 1]).tolist() == [1, 1000]
    assert whole._sorted([2**63, -1]).tolist() == [0, 1000]
    assert one._sorted([float("nan"), low, float("inf")]).tolist() == [2**46, 2**46 + 2, 2**46 + 4]
    with pytest.raises(ParameterError, match="values are"):
        whole.release([0.5, 1])
