"""Workloads answer what they say, with the sensitivities that trying every row finds."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hubbub.errors import ParameterError
from hubbub.queries import (
    AttributeMeans,
    Conjunctions,
    InnerProducts,
    Linear,
    Marginals,
    Points,
    Predicates,
    Ranges,
    Stack,
    Thresholds,
    Workload,
    brute_force,
)

FAMILIES: list[Workload] = [
    *(family(m) for family in (Points, Thresholds, Ranges) for m in (1, 2, 3, 6, 7)),
    *(AttributeMeans(d) for d in (1, 4)),
    *(Conjunctions(d, t=t) for d, t in [(1, 1), (4, 0), (4, 2), (4, 4), (5, 2)]),
    *(Marginals(shape, t=t) for shape, t in [((2, 3), 1), ((2, 3, 4), 2), ((1, 3, 1), 1), ((1, 1), 2), ((2, 2), 0)]),
    Stack([Points(4), Thresholds(4), Ranges(4)]),
]


def name(workload: Workload) -> str:
    return f"{type(workload).__name__}-{workload.size}-{workload.universe}"


@pytest.mark.parametrize("workload", FAMILIES, ids=name)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_sensitivity_from_structure_equals_trying_every_row(workload: Workload, neighbours: str) -> None:
    assert workload.sensitivity(neighbours) == brute_force(workload.columns(), neighbours)  # type: ignore[arg-type]


@pytest.mark.parametrize("workload", FAMILIES, ids=name)
def test_evaluate_answers_and_adjoint_agree_with_the_dense_matrix(workload: Workload) -> None:
    generator = np.random.default_rng(5)
    assert workload.universe is not None
    columns = workload.columns()
    picked = generator.integers(0, workload.universe, 50)
    rows = picked
    if isinstance(workload, Marginals):
        rows = np.stack(np.unravel_index(picked, workload.shape), axis=1)
    if isinstance(workload, AttributeMeans):
        rows = columns[picked]
    histogram = np.bincount(picked, minlength=workload.universe)
    weights = generator.integers(-5, 6, workload.size)
    expected = columns[picked].sum(axis=0)
    assert np.array_equal(workload.evaluate(rows), expected)
    assert np.array_equal(workload.answers(histogram), expected)
    assert np.array_equal(workload.adjoint(weights), columns @ weights)
    assert np.allclose(workload.shares(rows), expected / 50)
    assert np.array_equal(workload.evaluate(rows[:0]), np.zeros(workload.size))


def test_k_counting_queries_have_sensitivity_k_over_n_under_replace() -> None:
    predicates = [lambda age, t=t: age > t for t in (20, 40, 60)]
    bounded = Predicates(predicates).sensitivity("replace")
    assert not bounded.attained
    assert bounded.of_shares(1000).l1 == Fraction(3, 1000)
    exact = Predicates(predicates, universe=np.arange(121)).sensitivity("replace")
    assert exact.attained
    assert exact.l1 == 3


def test_a_partition_has_two_over_n_under_replace_and_one_under_add_remove() -> None:
    assert Points(338).sensitivity("replace").of_shares(50).l1 == Fraction(2, 50)
    assert Points(338).sensitivity("add_remove").l1 == 1
    assert Points(338).sensitivity("replace").l2_squared == 2
    young = Predicates([lambda a: a < 30, lambda a: a >= 30], universe=np.arange(121))
    assert young.sensitivity("replace").l1 == 2
    assert young.sensitivity("add_remove").l1 == 1


def test_the_mean_of_d_bits_has_l1_d_over_n_and_l2_root_d_over_n() -> None:
    found = AttributeMeans(100).sensitivity("replace").of_shares(1000)
    assert found.l1 == Fraction(100, 1000)
    assert found.l2_squared == Fraction(100, 1000**2)
    assert found.l2 == pytest.approx(10 / 1000, rel=1e-15)
    assert found.l2 <= float(found.l1) <= math.sqrt(found.l0) * found.l2


def test_conjunctions_of_two_literals_on_five_bits_are_forty_and_sum_per_pair_to_n() -> None:
    workload = Conjunctions(5, t=2)
    rows = np.random.default_rng(1).integers(0, 2, (100, 5))
    answers = workload.evaluate(rows)
    assert workload.size == 40 == math.comb(5, 2) * 4
    assert answers.reshape(10, 4).sum(axis=1).tolist() == [100] * 10
    # w_2 and not w_4 (the source's example): pair (1, 3), pattern (1, 0).
    table = next(t for t in workload.tables() if t.attributes == (1, 3))
    assert answers[table.at + 2] == int(((rows[:, 1] == 1) & (rows[:, 3] == 0)).sum())


def test_a_million_queries_need_no_dense_matrix() -> None:
    rows = np.random.default_rng(2).integers(0, 1413, 10_000)
    tracemalloc.start()
    ranges = Ranges(1413)
    answers, moved = ranges.evaluate(rows), ranges.sensitivity("replace")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ranges.size == 998_991 == answers.size
    assert moved.l1 == 707 * 707
    assert answers[1412] == 10_000
    # The matrix would hold 1.4e9 numbers; what is held is a few vectors of a million.
    assert peak < 100e6
    assert Thresholds(10**6).sensitivity("add_remove").l1 == 10**6
    with pytest.raises(ParameterError, match="dense matrix"):
        ranges.columns()


def test_linear_queries_are_exact_rationals() -> None:
    workload = Linear([[0, Fraction(1, 3), 1], [1, "1/2", 0]])
    assert (workload.evaluate(np.array([1, 1, 2])) * workload.unit).tolist() == [Fraction(5, 3), Fraction(1)]
    assert workload.sensitivity("add_remove").l1 == 1
    assert workload.sensitivity("replace").l1 == 2
    assert workload.sensitivity("replace").l2_squared == 2
    assert workload.sensitivity("add_remove").l2_squared == 1


def test_inner_products_with_private_bits_move_by_one_column() -> None:
    subsets = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    workload = InnerProducts(subsets)
    assert workload.evaluate(np.array([1, 0, 1])).tolist() == [1, 1, 2]
    assert workload.sensitivity("replace").l1 == 3
    assert workload.sensitivity("add_remove") == workload.sensitivity("replace")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=4))
def test_brute_force_is_the_maximum_over_pairs_of_tables(matrix: list[list[int]]) -> None:
    workload = Linear(matrix)
    array = np.array(matrix)
    moves = [array[:, i] - array[:, j] for i in range(3) for j in range(3)]
    found = workload.sensitivity("replace")
    assert found.l1 == max(int(np.abs(m).sum()) for m in moves)
    assert found.l2_squared == max(int((m * m).sum()) for m in moves)
    assert found.l0 == max(int((m != 0).sum()) for m in moves)
    assert found.linf == max(int(np.abs(m).max()) for m in moves)


def test_a_unit_of_five_rows_moves_a_count_by_five() -> None:
    found = Points(10).sensitivity("add_remove").of_rows(5)
    assert (found.l1, found.l2_squared, found.linf) == (5, 25, 5)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: Points(0), "at least 1"),
        (lambda: Points(3).evaluate([3]), "rows are integers"),
        (lambda: Points(3).evaluate([0.5]), "rows are integers"),
        (lambda: Points(3).sensitivity("both"), "add_remove"),
        (lambda: Points(3).shares([]), "empty table"),
        (lambda: Marginals([2, 3], t=3), "0 <= t <= 2"),
        (lambda: Marginals([2, 3], t=1).evaluate([[0, 3]]), "rows are integers"),
        (lambda: AttributeMeans(2).evaluate([[0, 2]]), "zeros and ones"),
        (lambda: Predicates([]), "at least one"),
        (lambda: Predicates([lambda x: x]).evaluate(np.arange(3)), "one truth value per row"),
        (lambda: Predicates([lambda x: x > 1]).columns(), "universe="),
        (lambda: Linear([[float("inf")]]), "unbounded"),
        (lambda: Linear([]), "above 0"),
        (lambda: InnerProducts([[1, 0]]).evaluate([1, 2]), "zeros and ones"),
        (lambda: Stack([Points(2), Points(3)]), "one universe"),
        (lambda: Points(3).sensitivity("replace").of_shares(0), "n >= 1"),
        (lambda: Points(3).sensitivity("replace").of_rows(0), ">= 1"),
    ],
)
def test_bad_parameters_say_what_is_allowed(act: object, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        act()  # type: ignore[operator]
