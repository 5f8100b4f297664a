"""Prefixes and ranges: exact cost, stated variances, and errors at the best that is known."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from counts import part
from hubbub.accounting import ZCDP
from hubbub.errors import ParameterError
from hubbub.queries import Points, Ranges, Thresholds
from hubbub.synthesis.ranges import ChosenRanges, RangePlan, plan_ranges
from hubbub.synthesis.strategies import Hierarchy, Optimised
from seeded import SeededBits

WORKLOADS: list[Any] = [Thresholds(27), Ranges(27), ChosenRanges(27, [(0, 8), (5, 20), (9, 9), (3, 26)])]


def queries(workload: Any) -> Any:
    """The query matrix, shape (k, n)."""
    if isinstance(workload, ChosenRanges):
        return np.array([[a <= x <= b for x in range(workload.values)] for a, b in workload.pairs], dtype=float)
    return np.asarray(workload.columns().T, dtype=float)


def information(plan: RangePlan) -> Any:
    """X = A^T S^-1 A from what is drawn, densely."""
    n = plan.values
    if isinstance(plan.strategy, Optimised):
        matrix = plan.strategy.matrix.astype(float)
        return matrix.T @ matrix / float(plan.strategy.parameter(plan.row_rho))
    assert isinstance(plan.strategy, Hierarchy)
    total = np.zeros((n, n))
    for j, block in enumerate(plan.strategy.blocks):
        if plan.strategy.shares[j]:
            same = np.equal.outer(np.arange(n) // block, np.arange(n) // block)
            total += same / float(plan.strategy.parameter(j, plan.row_rho))
    return total


@pytest.mark.parametrize(("workload", "method"), list(itertools.product(WORKLOADS, ("optimised", "hierarchy"))))
def test_the_stated_error_is_that_of_the_dense_least_squares(workload: Any, method: Any) -> None:
    plan = plan_ranges(workload, rho="0.3", unit_rows=2, method=method)
    asked = queries(workload)
    # A padded value holds no row, and what is measured about it tells nothing about the others: no case here has any.
    if isinstance(plan.strategy, Hierarchy) and plan.strategy.blocks[-1] != plan.values:
        plan = _of_branching(plan, workload)
    inverse = np.linalg.inv(information(plan))
    variances = np.einsum("ij,jk,ik->i", asked, inverse, asked)
    assert plan.rmse == pytest.approx(math.sqrt(variances.mean()), rel=1e-5)
    some = np.flatnonzero(asked[len(asked) // 2])
    assert plan.variance(int(some[0]), int(some[-1])) == pytest.approx(variances[len(asked) // 2], rel=1e-5)


def _of_branching(plan: RangePlan, workload: Any) -> RangePlan:
    from hubbub.synthesis.ranges import _mass, _plan
    from hubbub.synthesis.strategies import hierarchy

    tree, trace = hierarchy(plan.values, 3, lambda size: _mass(workload, size))
    return _plan(workload, plan.rho, plan.unit_rows, "hierarchy", tree, trace, None)


@pytest.mark.parametrize(("workload", "method"), list(itertools.product(WORKLOADS, ("optimised", "hierarchy"))))
def test_one_row_costs_exactly_rho(workload: Any, method: Any) -> None:
    plan = plan_ranges(workload, rho="3/10", method=method)
    assert plan.strategy.cost(plan.row_rho) == Fraction(3, 10)
    assert plan.loss == ZCDP(Fraction(3, 10))
    assert float(np.diag(information(plan)).max()) == pytest.approx(0.6, rel=1e-9)
    assert plan_ranges(workload, rho="3/10", unit_rows=3, method=method).row_rho == Fraction(1, 30)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_optimised_strategy_is_at_the_bound_of_all_strategies(workload: Any) -> None:
    plan = plan_ranges(workload, rho=1)
    assert plan.bound is not None
    assert plan.bound <= plan.rmse <= plan.bound * 1.002
    # The bound is one: a histogram, all prefixes, and random strategies do no better.
    asked = queries(workload)
    words = SeededBits(1).u64(27 * 27 * 20).reshape(20, 27, 27) / 2.0**63 - 1
    for matrix in (np.eye(27), np.tril(np.ones((27, 27))), *words):
        scaled = matrix / np.sqrt((matrix**2).sum(axis=0).max())
        found = np.einsum("ij,jk,ik->i", asked, np.linalg.inv(2 * scaled.T @ scaled), asked)
        assert math.sqrt(found.mean()) >= plan.bound * (1 - 1e-9)


@pytest.mark.parametrize("method", ["optimised", "hierarchy"])
def test_without_noise_to_speak_of_ranges_are_the_truth(method: Any) -> None:
    rows = (SeededBits(2).u64(1000) % np.uint64(100)).astype(np.int64)
    release = plan_ranges(Ranges(100), rho=10**9, method=method).release(rows, bits=SeededBits(3))
    assert np.abs(release.prefixes() - Thresholds(100).evaluate(rows)).max() < 0.05
    assert release.range(10, 37).value == pytest.approx(((rows >= 10) & (rows <= 37)).sum(), abs=0.05)
    assert release.sum(np.arange(100)).value == pytest.approx(rows.sum(), abs=10)


@pytest.mark.parametrize("method", ["optimised", "hierarchy"])
def test_answers_vary_as_stated(method: Any) -> None:
    """Draws of one range: the sample's variance and mean are within 6.2 standard deviations of theirs; fixed bits."""
    draws = part(2000)
    plan = plan_ranges(Thresholds(16), rho="1/2", method=method)
    bits = SeededBits(4)
    answers = [plan.release(np.array([3, 3, 9]), bits=bits).range(2, 9) for _ in range(draws)]
    errors = np.array([a.value for a in answers]) - 3
    assert errors.var() == pytest.approx(plan.variance(2, 9), rel=6.2 * math.sqrt(2 / draws))
    assert abs(errors.mean()) <= 6.2 * math.sqrt(plan.variance(2, 9) / draws)
    held = np.mean([low <= 3 <= high for low, high in (a.interval("0.9") for a in answers)])
    assert 0.85 <= held <= 0.98


@pytest.mark.parametrize("workload", [Thresholds(301), Ranges(300)])
def test_what_is_carried_over_from_fewer_values_stays_at_the_bound(workload: Any) -> None:
    plan = plan_ranges(workload, rho="1/2")
    assert plan.bound is not None
    assert plan.bound <= plan.rmse <= plan.bound * 1.003


@pytest.mark.soak
def test_w4_a_thousand_values_beat_the_published_search() -> None:
    """HDMM reaches 3.065 for prefixes and 3.568 for all ranges of 1024 values, at sensitivity and sigma 1."""
    for workload, published in ((Thresholds(1024), 3.065), (Ranges(1024), 3.568)):
        plan = plan_ranges(workload, rho="1/2")
        assert plan.bound is not None
        assert plan.rmse <= 1.02 * published
        assert plan.rmse <= 1.002 * plan.bound


def test_many_values_take_a_hierarchy_whose_shares_are_optimal() -> None:
    plan = plan_ranges(Ranges(2**16), rho="1/2")
    assert plan.method == "hierarchy of branching 2"
    assert isinstance(plan.strategy, Hierarchy)
    equal = Hierarchy(2**16, plan.strategy.blocks, (Fraction(1, 17),) * 17)
    own, other = 0.0, 0.0
    for first, last in np.sort((SeededBits(7).u64(120) % np.uint64(2**16)).reshape(60, 2), axis=1).astype(int):
        query = (np.arange(2**16) >= first) & (np.arange(2**16) <= last)
        own += plan.strategy.variance(query.astype(float), plan.row_rho)[0] / 60
        other += equal.variance(query.astype(float), plan.row_rho)[0] / 60
    assert own == pytest.approx(plan.rmse**2, rel=0.15)
    assert own < 0.97 * other
    release = plan.release(np.zeros(0, np.int64), bits=SeededBits(5))
    assert release.histogram.shape == (2**16,)


def test_a_workload_of_one_value_is_a_count() -> None:
    for workload in (Ranges(1), Thresholds(1), ChosenRanges(1, [(0, 0)])):
        plan = plan_ranges(workload, rho="1/2")
        assert plan.rmse == pytest.approx(1.0, rel=1e-6)
        assert plan.release(np.array([0, 0]), bits=SeededBits(6)).range(0, 0).variance == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: plan_ranges(Points(4), rho=1), "Points was given"),  # type: ignore[arg-type]
        (lambda: plan_ranges(Ranges(4), rho=1, method="tree"), "method"),  # type: ignore[arg-type]
        (lambda: plan_ranges(Ranges(4)), "exactly one"),
        (lambda: plan_ranges(Ranges(4096), rho=1, method="optimised"), "hierarchy"),
        (lambda: plan_ranges(Ranges(2**30), rho=1), "coarser"),
        (lambda: ChosenRanges(4, []), "no ranges"),
        (lambda: ChosenRanges(4, [(2, 4)]), "2 .. 4"),
        (lambda: plan_ranges(Ranges(4), rho=1).variance(3, 2), "3 .. 2"),
        (lambda: plan_ranges(Ranges(4), rho=1).release(np.array([4])), "0 .. 3"),
        (lambda: plan_ranges(Ranges(4), rho=1).release(np.array([1])).sum([1.0]), "4 finite"),
    ],
)
def test_bad_input_is_refused_in_words(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


@pytest.mark.parametrize("method", ["optimised", "hierarchy"])
def test_noise_that_cannot_be_drawn_is_refused_when_it_is_planned(method: Any) -> None:
    for options in ({"rho": 1, "unit_rows": 2**62}, {"rho": "1e-40"}):
        with pytest.raises(ParameterError, match="64 bits"):
            plan_ranges(Thresholds(16), method=method, **options)
    assert plan_ranges(Thresholds(16), rho=1, unit_rows=2**31, method=method).release([0, 1]).prefixes().shape == (16,)
