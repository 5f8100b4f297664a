"""Marginals: the optimum, its exact cost, its exact variances."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.accounting import ZCDP, rho_of_epsilon
from hubbub.errors import ParameterError
from hubbub.noise import DiscreteGaussian
from hubbub.synthesis.answers import half_width
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.marginals import MarginalPlan, MarginalRelease, all_marginals, plan_marginals
from hubbub.synthesis.residuals import centre, project, subsets
from seeded import SeededBits

SMALL = Domain(("a", "b", "c"), (2, 3, 4))
ADULT = Path(__file__).parents[2] / ".." / "shared" / "data" / "adult"


def rows(domain: Domain, n: int, seed: int = 0) -> Any:
    words = SeededBits(seed).u64(n * len(domain)).reshape(n, len(domain))
    return (words % np.array(domain.sizes, np.uint64)).astype(np.int64)


def workload_matrix(domain: Domain, marginals: Any) -> Any:
    """Every cell of every marginal as a row over the universe."""
    universe = np.array(list(itertools.product(*map(range, domain.sizes))))
    tables = [np.eye(domain.cells(m))[domain.index(universe, m)].T for m in marginals]
    return np.concatenate(tables)


@pytest.mark.parametrize("ways", [(1,), (2,), (3,), (1, 2), (0, 1, 2, 3)])
def test_the_optimum_is_the_singular_value_bound(ways: tuple[int, ...]) -> None:
    plan = plan_marginals(SMALL, all_marginals(SMALL, *ways), rho="1/2")
    matrix = workload_matrix(SMALL, plan.marginals)
    # Li, Miklau 2013: at sensitivity 1 and sigma 1 the total variance is at least (sum of singular values)^2 / |X|.
    bound = np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / SMALL.universe
    assert plan.rmse() ** 2 * len(matrix) == pytest.approx(bound, rel=1e-6)


def test_weights_shift_the_noise_and_the_weighted_total_stays_optimal() -> None:
    plan = plan_marginals(SMALL, [("a",), ("b",)], rho="1/2", weights=[9, 1])
    matrix = workload_matrix(SMALL, plan.marginals) * np.repeat([3.0, 1.0], [2, 3])[:, None]
    total = 9 * 2 * plan.variance(("a",)) + 3 * plan.variance(("b",))
    assert total == pytest.approx(np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / SMALL.universe, rel=1e-6)
    assert plan.variance(("a",)) < plan_marginals(SMALL, [("a",), ("b",)], rho="1/2").variance(("a",))


def test_one_row_moves_the_integers_by_exactly_the_planned_rho() -> None:
    plan = plan_marginals(SMALL, all_marginals(SMALL, 1, 2, 3), rho="3/7", unit_rows=2)
    for row in itertools.product(*map(range, SMALL.sizes)):
        moved = Fraction(0)
        for columns in plan.shares:
            step = centre(SMALL.count(np.array([row, row]), columns))
            moved += Fraction(int((step**2).sum())) / (2 * plan.parameter(columns))
        assert moved == Fraction(3, 7)
    assert sum(plan.shares.values()) == plan.rho == Fraction(3, 7)
    assert plan.loss == ZCDP(Fraction(3, 7))


def test_renyi_divergence_of_the_drawn_integers_stays_below_rho_alpha() -> None:
    """Summed over all integers of all residuals from the exact pmf, for every row that may be added."""
    domain = Domain(("a", "b"), (2, 2))
    plan = plan_marginals(domain, [("a", "b")], rho=2)
    for row, alpha in itertools.product(itertools.product(range(2), repeat=2), (1.5, 2.0, 6.0)):
        total = 0.0
        for columns in plan.shares:
            law, z = DiscreteGaussian.from_variance(plan.parameter(columns)), np.arange(-400, 401)
            for shift in centre(domain.count(np.array([row]), columns)).ravel().tolist():
                p, q = np.asarray(law.log_pmf(z)), np.asarray(law.log_pmf(z - shift))
                total += math.log(float(np.exp(alpha * p + (1 - alpha) * q).sum())) / (alpha - 1)
        assert total <= 2 * alpha * (1 + 1e-9)
        assert total >= 2 * alpha * 0.99


def test_without_noise_to_speak_of_the_tables_are_the_truth() -> None:
    plan = plan_marginals(SMALL, all_marginals(SMALL, 2, 3), rho=10**9)
    data = rows(SMALL, 500)
    release = plan.release(data, bits=SeededBits(1))
    for columns in [("a", "b"), ("c", "a"), ("b",), (), ("a", "b", "c")]:
        assert np.abs(release.table(columns) - SMALL.count(data, columns)).max() < 0.01
    assert release.sum(("c", "a"), np.eye(4)[:, :2]).value == pytest.approx(
        SMALL.count(data, ("c", "a"))[[0, 1], [0, 1]].sum(), abs=0.01
    )


def test_tables_of_one_release_agree_with_each_other() -> None:
    release = plan_marginals(SMALL, all_marginals(SMALL, 1, 2), rho="0.1").release(rows(SMALL, 50), bits=SeededBits(2))
    a = release.table(("a",))
    np.testing.assert_allclose(release.table(("a", "b")).sum(axis=1), a, atol=1e-9)
    np.testing.assert_allclose(release.table(("c", "a")).sum(axis=0), a, atol=1e-9)
    np.testing.assert_allclose(a.sum(), release.total().value, atol=1e-9)


def test_stated_variances_are_those_of_the_linear_map_from_integers_to_answers() -> None:
    plan = plan_marginals(SMALL, all_marginals(SMALL, 2), rho="0.001")
    names, weights = ("b", "a"), np.array([[1.0, 0.0], [0.0, -2.0], [0.5, 0.5]])
    cell, summed = 0.0, 0.0
    zeros = {b: np.zeros(SMALL.shape(b)) for b in plan.shares}
    for columns in plan.shares:
        for place in itertools.product(*map(range, SMALL.shape(columns))):
            unit = np.zeros(SMALL.shape(columns))
            unit[place] = 1.0
            moved = MarginalRelease(plan, zeros | {columns: project(unit) / SMALL.cells(columns)})
            s2 = float(plan.parameter(columns))
            cell += s2 * moved.table(names)[2, 1] ** 2
            summed += s2 * moved.sum(names, weights).value ** 2
    assert plan.variance(names) == pytest.approx(cell, rel=1e-9)
    release = plan.release(rows(SMALL, 9), bits=SeededBits(3))
    assert release.sum(names, weights).variance == pytest.approx(summed, rel=1e-9)
    one = np.zeros((3, 2))
    one[2, 1] = 1
    assert release.sum(names, one).variance == pytest.approx(plan.variance(names), rel=1e-9)


def test_noise_varies_as_stated_within_one_percent() -> None:
    """1.2 million degrees of freedom: the sample variance is within 1 % but for a chance of 1e-13; fixed bits."""
    domain = Domain(("a", "b"), (1100, 1100))
    plan = plan_marginals(domain, [("a", "b")], rho="1/8")
    release = plan.release(np.zeros((0, 2), np.int64), bits=SeededBits(4))
    residual = release.residuals[("a", "b")]
    assert (residual**2).sum() == pytest.approx(1099**2 * plan.sigma2(("a", "b")), rel=0.01)
    # Cells are nearly independent here: the smaller residuals hold 0.4 % of the variance.
    assert (release.table(("a", "b")) ** 2).mean() == pytest.approx(plan.variance(("a", "b")), rel=0.01)


def test_intervals_of_one_draw_cover_at_every_confidence() -> None:
    for variance, confidence in itertools.product(
        ("0.01", "0.3", "1", "4", "30"), ("0.7", "0.95", "0.999", "0.999999")
    ):
        law = DiscreteGaussian.from_variance(Fraction(variance))
        missed = 2 * float(law.tail(math.floor(half_width(float(law.variance), 1.0, confidence))))
        assert missed <= 1 - float(Fraction(confidence))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """60,000 cells of one release at 95 %: 94.45 to 95.55 % hold, but for a chance of 1e-9; fixed bits."""
    domain = Domain(("a", "b"), (300, 200))
    data = rows(domain, 10_000)
    release = plan_marginals(domain, [("a", "b")], epsilon=1, delta="1e-6").release(data, bits=SeededBits(5))
    low, high = release.interval(("b", "a"), "0.95")
    truth = domain.count(data, ("b", "a"))
    assert 0.9445 <= ((low <= truth) & (truth <= high)).mean() <= 0.9555
    assert release.plan.rho == rho_of_epsilon(1, "1e-6")


def test_the_largest_variance_is_within_a_thousandth_of_its_dual_bound() -> None:
    plan = plan_marginals(SMALL, all_marginals(SMALL, 1, 2, 3), rho="1/2", objective="largest")
    worst = max(plan.variance(m) for m in plan.marginals)
    # Any other split of rho has a larger worst cell: try many.
    total = plan_marginals(SMALL, all_marginals(SMALL, 1, 2, 3), rho="1/2")
    assert worst < max(total.variance(m) for m in total.marginals)
    words = SeededBits(6).u64(200 * len(plan.shares)).reshape(200, -1) / 2.0**64
    for noise in words:
        shares = {b: s * Fraction(0.9 + 0.2 * x) for (b, s), x in zip(plan.shares.items(), noise, strict=True)}
        scale = plan.rho / sum(shares.values())
        other = MarginalPlan(SMALL, plan.marginals, plan.rho, 1, {b: s * scale for b, s in shares.items()})
        assert max(other.variance(m) for m in plan.marginals) >= worst * (1 - 1.01e-3)


def test_a_constant_column_costs_nothing_and_an_empty_table_is_a_table() -> None:
    domain = Domain(("only", "a"), (1, 3))
    plan = plan_marginals(domain, [("only", "a"), ("only",)], rho=1)
    assert set(plan.shares) == {(), ("a",)}
    for data in (np.zeros((0, 2), np.int64), np.array([[0, 2]])):
        table = plan.release(data, bits=SeededBits(7)).table(("a", "only"))
        assert table.shape == (3, 1)
        assert np.isfinite(table).all()


def test_a_budget_too_small_says_so_before_any_row_is_read() -> None:
    plan = plan_marginals(SMALL, [("a", "b"), ("a",)], rho="1e-9")
    assert plan.hopeless(100) == (("a", "b"), ("a",))
    assert plan_marginals(SMALL, [("a", "b")], rho=1).hopeless(10_000) == ()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: plan_marginals(SMALL, [], rho=1), "no marginals"),
        (lambda: plan_marginals(SMALL, [("a", "x")], rho=1), "'x' was asked"),
        (lambda: plan_marginals(SMALL, [("a", "a")], rho=1), "different columns"),
        (lambda: plan_marginals(SMALL, ["abc"], rho=1), "tuple of different columns"),
        (lambda: plan_marginals(SMALL, [("a",)], rho=0), "above 0"),
        (lambda: plan_marginals(SMALL, [("a",)], rho="nan"), "finite"),
        (lambda: plan_marginals(SMALL, [("a",)], epsilon=1), "delta="),
        (lambda: plan_marginals(SMALL, [("a",)]), "exactly one"),
        (lambda: plan_marginals(SMALL, [("a",)], rho=1, weights=[-1]), "above 0"),
        (lambda: plan_marginals(SMALL, [("a",)], rho=1, objective="best"), "'total' or 'largest'"),  # type: ignore[arg-type]
        (lambda: plan_marginals(Domain(("a", "b"), (9999, 9999)), [("a", "b")], rho=1), "synthetic records"),
        (lambda: plan_marginals(SMALL, [("a", "b")], rho=1, unit_rows=2**62), "64 bits"),
        (lambda: plan_marginals(SMALL, [("a",)], rho="1e-40"), "64 bits"),
        (lambda: plan_marginals(SMALL, [("a",)], rho=1, unit_rows=2**600), "coarser grid"),
        (lambda: all_marginals(SMALL, 4), "columns"),
        (lambda: Domain((), ()), "at least one column"),
        (lambda: Domain(("a",), (0,)), "Declare"),
        (lambda: SMALL.records(np.array([[0, 3, 0]])), "outside"),
        (lambda: SMALL.records(np.array([[0.0, 1.0, 0.0]])), "integer codes"),
        (lambda: plan_marginals(SMALL, [("a",)], rho=1).variance(("b",)), "Ask for it"),
    ],
)
def test_bad_input_is_refused_in_words(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


def test_sums_refuse_weights_of_another_shape() -> None:
    release = plan_marginals(SMALL, [("a", "b")], rho=1).release(rows(SMALL, 3), bits=SeededBits(8))
    with pytest.raises(ParameterError, match="shape"):
        release.sum(("a", "b"), np.ones((3, 2)))


@pytest.mark.skipif(not ADULT.exists(), reason="the shared data folder is not here")
def test_w1_adult_reaches_the_published_optimum() -> None:
    """3.047, 6.359, 10.515: the singular-value bounds of Xiao et al. 2023, Table 3, at one unit of pcost."""
    sizes = json.loads((ADULT / "adult_mbi-domain.json").read_text())
    domain = Domain(tuple(sizes), tuple(sizes.values()))
    for k, optimum in [(1, 3.047), (2, 6.359), (3, 10.515)]:
        plan = plan_marginals(domain, all_marginals(domain, k), rho="1/2")
        assert plan.rmse() == pytest.approx(optimum, abs=5e-4)
        # The same bound from eigenvalues in closed form, for this domain.
        mass: dict[tuple[str, ...], float] = {}
        for m in plan.marginals:
            for b in subsets(m):
                mass[b] = mass.get(b, 0.0) + 1 / domain.cells(m)
        nuclear = sum(math.sqrt(v) * math.prod(n - 1 for n in domain.shape(b)) for b, v in mass.items())
        assert plan.rmse() ** 2 * sum(map(domain.cells, plan.marginals)) == pytest.approx(nuclear**2, rel=1e-3)
