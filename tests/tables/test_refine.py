"""Two draws of one answer together are the best linear estimate: exactly, of every combination, and told before."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.noise import DiscreteGaussian, DiscreteLaplace
from hubbub.remedies import Attempt
from hubbub.tables.aggregate_query import Aggregate
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.estimates import Estimates, Linear, combine, expected
from hubbub.tables.price import Spend, make_price
from hubbub.tables.rounded import rounded_half_width
from people import HUGE, session, visits
from seeded import SeededBits
from tables.made import AVG, COUNT, SUM, UNITS, VAR, Bounds, X, Y, plan

COVAR, CORR = Aggregate(FUNCTIONS["COVAR_POP"], (X, Y)), Aggregate(FUNCTIONS["CORR"], (X, Y))
EVERY = [(COUNT,), (SUM,), (AVG,), (COUNT, SUM, AVG), (UNITS, COUNT, SUM, AVG, VAR, COVAR, CORR)]
SPENDS = [
    (Spend(epsilon=Fraction(5)), Spend(epsilon=Fraction(1))),
    (Spend(epsilon=Fraction(1, 3)), Spend(epsilon=Fraction(2))),
    (Spend(rho=Fraction(1, 2)), Spend(rho=Fraction(1, 50))),
]


def covariance(one: Estimates) -> Any:
    rows = np.array([[q.terms.get(t, 0.0) for t in one.laws] for q in one.quantities.values()])
    return rows @ np.diag([float(law.variance) for law in one.laws.values()]) @ rows.T


def pair(aggregates: tuple[Aggregate, ...], spends: tuple[Spend, Spend], **more: Any) -> list[Estimates]:
    made = plan(*aggregates, groups=1, bounds=Bounds(2, 3), **more)
    return [expected(make_price([made], spend))[0] for spend in spends]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("spends", SPENDS, ids=["5 and 1", "1/3 and 2", "gaussian"])
@pytest.mark.parametrize("aggregates", EVERY, ids=len)
def test_no_combination_of_quantities_has_a_larger_error_than_in_either_draw(aggregates, spends, neighbours) -> None:
    """As matrices: C1 - C and C2 - C are positive semidefinite; and C is that of weighted least squares."""
    draws = pair(aggregates, spends, neighbours=neighbours)
    both = combine(draws)
    unit = np.sqrt(np.diag(covariance(draws[0]) + covariance(draws[1])))
    found, first, second = (covariance(d) / np.outer(unit, unit) for d in (both, *draws))  # of very different scales
    for one in (first, second):
        assert np.linalg.eigvalsh(one - found).min() > -1e-9
    wanted = first - first @ np.linalg.pinv(first + second, rcond=1e-10) @ first
    assert np.abs(found - wanted).max() < 1e-8
    for i, quantity in enumerate(both.quantities):
        v1, v2 = first[i, i], second[i, i]
        uncorrelated = not any(np.delete(c[i], i).any() for c in (first, second))
        assert found[i, i] <= v1 * v2 / (v1 + v2) * (1 + 1e-9)
        if uncorrelated:
            assert found[i, i] == pytest.approx(v1 * v2 / (v1 + v2), rel=1e-12), quantity


def test_correlated_errors_are_weighted_by_their_covariances() -> None:
    """Two sums that share one noise term in the first draw only: with 1 / variance of each, their difference would have
    a larger error than in the first draw alone."""
    (one, _) = pair((COUNT, SUM), SPENDS[0])
    names = list(one.quantities)[:2]
    law = DiscreteLaplace(5)

    def made(terms: list[dict[str, float]]) -> Estimates:
        linear = {n: Linear(np.array([100.0]), of) for n, of in zip(names, terms, strict=True)}
        return Estimates(one.plan, one.groups, linear, dict.fromkeys(("common", "a", "b"), law), {})

    first = made([{"common": 10.0, "a": 1.0}, {"common": 10.0, "b": 1.0}])
    second = made([{"a": 3.0}, {"b": 3.0}])
    found = covariance(combine([first, second]))
    difference = np.array([1.0, -1.0])
    plain = np.zeros((2, 2))
    for c, weights in zip(map(covariance, (first, second)), (9 / 110, 101 / 110), strict=True):
        plain += np.diag([weights] * 2) @ c @ np.diag([weights] * 2)
    best = min(difference @ covariance(d) @ difference for d in (first, second))
    assert difference @ found @ difference <= best < difference @ plain @ difference


def test_the_order_of_draws_changes_no_estimate() -> None:
    for aggregates in EVERY:
        a, b = pair(aggregates, SPENDS[0])
        first, second = covariance(combine([a, b])), covariance(combine([b, a]))
        assert np.allclose(first, second, rtol=1e-9, atol=1e-9 * np.abs(first).max())


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    "terms",
    [
        ((DiscreteLaplace(3), 1.0),),
        ((DiscreteLaplace(3), 0.4),),
        ((DiscreteLaplace(Fraction(1, 5)), 0.96), (DiscreteLaplace(1), 0.04)),
        ((DiscreteLaplace(2), 0.5), (DiscreteLaplace(2), 0.5)),
        ((DiscreteLaplace(7), 0.7), (DiscreteLaplace(4), 0.3)),
        ((DiscreteLaplace(Fraction(1, 50)), 1.0), (DiscreteLaplace(1), 2.1e-22)),
        ((DiscreteLaplace(10), 2e-24), (DiscreteLaplace(Fraction(1, 50)), 1.0)),
        ((DiscreteGaussian(3), 0.8), (DiscreteGaussian(6), 0.2)),
        ((DiscreteGaussian(4), 0.25), (DiscreteLaplace(2), 0.75)),
    ],
)
def test_the_half_width_of_a_rounded_sum_is_that_of_its_law(terms, level) -> None:
    """Against all pairs of outcomes within 200: the smallest t that keeps the level, a half rounded away from 0."""
    x = np.arange(-200, 201)
    values, chances = np.zeros(1), np.ones(1)
    for law, c in terms:
        values = np.add.outer(values, c * x).ravel()
        chances = np.multiply.outer(chances, law.pmf(x)).ravel()
    size = np.abs(np.floor(np.abs(values) + 0.5))
    found = rounded_half_width(level, terms)
    assert found is not None
    assert chances[size <= found].sum() >= level - 1e-9
    assert found == 0 or chances[size <= found - 1].sum() < level + 1e-9


def test_counts_of_one_law_have_one_half_width() -> None:
    """Of six groups, refined or not, pure and Gaussian: no two differ, and `check_refine` told it."""
    wards = "SELECT ward, ok, COUNT(*) AS c, COUNT(DISTINCT id) AS u FROM visits GROUP BY ward, ok"
    for budget, amounts in ((hb.Budget(100), (5, 2)), (hb.Budget(100, "1e-6"), (2, 3))):
        with hb.Session({"visits": visits()}, budget=budget, ledger=None, _bits=SeededBits(2)) as s:
            answer = s.sql(wards, epsilon=amounts[0])
            told = s.check(wards, epsilon=amounts[0]).columns
            foreseen = answer.refine.check(amounts[1])
            better = answer.refine(amounts[1])
        for column, (name, now, then, unit) in zip(told, foreseen.columns, strict=True):
            assert (column.name, unit) == (name, "")
            assert set(answer.error.half_widths()[name]) == {now} == {column.plus_minus}
            assert set(better.error.half_widths()[name]) == {then}
            assert then < now


def test_a_refined_count_holds_the_truth_as_often_as_it_says() -> None:
    """20,000 groups at 95 %: below .945 with probability below 1e-3 of 1e-9 (its law is discrete, so above .95)."""
    from hubbub.tables.draw_release import draw
    from hubbub.tables.estimates import read
    from tables.made import Exact

    made = plan(COUNT, groups=20_000)
    prices = [make_price([made], Spend(epsilon=Fraction(e))) for e in (1, Fraction(1, 3))]
    exact = Exact(tuple([400] * 20_000 for _ in made.measurements))
    both = combine([read(p, draw(p, [exact], SeededBits(i)))[0] for i, p in enumerate(prices)])
    low, high = both.intervals(COUNT, 0.95)
    assert np.mean((low <= 400) & (high >= 400)) >= 0.94
    assert len(set((high - low).tolist())) == 1


def test_refine_is_refused_before_the_charge_where_it_would_not_help() -> None:
    with session(epsilon=50, bits=SeededBits(4)) as s:
        answer = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=5)
        assert not answer.refine.check("0.1").helps
        with pytest.raises(
            hb.QueryError, match=r"would not make this answer better\. With epsilon=.* it would\. Nothing"
        ) as refused:
            answer.refine("0.1")
        assert len(s.history()) == 1
        [more] = refused.value.remedies
        attempt, _ = more.apply(Attempt("", {"epsilon": "0.1"}), {})
        assert answer.refine.check(**attempt.options).helps
        check = answer.refine.check(10)
        assert (check.epsilon, check.left, check.helps, check.fits) == (10, 45, True, True)
        assert "refined" in str(check)
        assert not answer.refine.check(46).fits
        assert len(s.history()) == 1
        assert answer.refine(10).error.half_widths()["c"] == [check.columns[0][2]] * 4


def test_a_quantile_is_that_of_the_dearer_draw() -> None:
    with session(epsilon=10 * HUGE) as s:
        sure = s.sql("SELECT MEDIAN(n) AS m, COUNT(*) AS c FROM visits", epsilon=HUGE)
        assert sure.refine.check(1).columns[0][1] == sure.refine.check(1).columns[0][2]
        vague = s.sql("SELECT MEDIAN(n) AS m, COUNT(*) AS c FROM visits", epsilon="0.01", fresh=True)
        assert vague.refine.check(HUGE).columns[0][2] < vague.refine.check(HUGE).columns[0][1]
        assert vague.refine(HUGE).rows()[0][0] in (3, 4)  # the two in the middle
        assert sure.rows()[0][0] in (3, 4)


def test_what_cannot_be_refined_has_no_check_either() -> None:
    with session(epsilon=9, visits=visits(), wards=hb.public(pa.table({"ward": ["A"]}))) as s:
        answer = s.sql("SELECT COUNT(*) AS c FROM visits", epsilon=1)
        for one in (answer.refine(2), s.sql("SELECT ward FROM wards", epsilon=1)):
            with pytest.raises(hb.QueryError, match="cannot be refined"):
                one.refine.check(1)
