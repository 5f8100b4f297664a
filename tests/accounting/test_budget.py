"""Exact costs, the zCDP conversion, and filters: what a ledger decides with."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from hubbub import accounting as acc
from hubbub.accounting import zcdp
from hubbub.errors import BudgetError, ParameterError


@pytest.mark.parametrize(
    ("event", "epsilon", "rho", "delta"),
    [
        (acc.Laplace(2, 3), Fraction(3, 2), Fraction(9, 8), 0),
        (acc.Repeated(acc.DiscreteLaplace(10, 2), 5), Fraction(1), Fraction(1, 10), 0),
        (acc.Gaussian(2, 4), None, Fraction(2), 0),
        (acc.BoundedRange(2), Fraction(2), Fraction(1, 2), 0),
        (acc.Threshold(1, "1e-6", groups=3), None, Fraction(3, 2), Fraction(3, 10**6)),
        (acc.Parallel([acc.PureDP(1), acc.PureDP(2)]), Fraction(2), Fraction(2), 0),
        (acc.Group(acc.Gaussian(1), 3), None, Fraction(9, 2), 0),
        (acc.PoissonSampled(acc.ApproxDP(1, "0.01"), "0.1"), None, Fraction(1, 2), Fraction(1, 1000)),
        (acc.PoissonSampled(acc.Gaussian(1), 0), Fraction(0), Fraction(0), 0),
    ],
)
def test_costs_are_exact(event, epsilon, rho, delta):
    assert acc.cost(event) == acc.Cost(epsilon, rho, Fraction(delta))


def test_group_of_approximate_is_at_least_its_sum_and_at_most_the_textbook():
    inner = acc.cost(acc.Group(acc.ApproxDP(1, "1e-6"), 3))
    exact = Fraction(1, 10**6) * sum(Fraction(str(mpmath.exp(i))) for i in range(3))
    assert exact * (1 - Fraction(1, 10**12)) <= inner.delta <= 3 * Fraction(1, 10**6) * Fraction(str(mpmath.exp(2)))


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000),
    st.sampled_from(["1e-2", "1e-6", "1e-12", "1e-30", "1e-200"]),
)
def test_a_question_at_epsilon_costs_a_rho_that_never_exceeds_it(epsilon, delta):
    rho = acc.rho_of_epsilon(epsilon, delta)
    assert zcdp._holds(rho, epsilon, Fraction(delta))
    # epsilon_of_rho itself is rounded up, in its 15th digit or later.
    assert acc.epsilon_of_rho(rho, delta) <= epsilon * (1 + Fraction(1, 10**14))
    # Not needlessly small: a little more rho would exceed epsilon.
    assert acc.epsilon_of_rho(rho * (1 + Fraction(1, 10**13)), delta) > epsilon * (1 - Fraction(1, 10**12))


def test_the_conversion_is_proposition_12_minimised():
    with mpmath.workdps(40):
        rho, e = mpmath.mpf(1) / 8, mpmath.mpf("2.4190931768672")

        def bound(log_excess):
            x = mpmath.exp(log_excess)
            a = 1 + x
            return mpmath.exp(x * (a * rho - e)) / a * (1 - 1 / a) ** x

        best = min(bound(mpmath.mpf(i) / 1000) for i in range(5000))
    assert float(best) == pytest.approx(1e-6, rel=1e-6)


def test_sigma_is_rounded_up_and_the_variance_is_exact():
    rho = acc.rho_of_epsilon(1, "1e-6")
    assert acc.rho_of_sigma(acc.sigma_of_rho(rho)) <= rho
    assert 1 / (2 * acc.variance_of_rho(rho)) == rho


def test_ten_tenths_fill_a_budget_of_one_exactly():
    f = acc.PureFilter.of(1)
    for _ in range(10):
        f = f.charge(acc.PureDP(0.1))
    assert f.left == 0
    with pytest.raises(BudgetError, match=r"asked epsilon .* left epsilon 0"):
        f.charge(acc.PureDP(Fraction(1, 10**40)))
    assert acc.PureFilter.of(1).how_many(acc.PureDP(0.1)) == 10
    assert acc.PureFilter.of(1).how_many(acc.PureDP(0)) is None


@pytest.mark.parametrize("count", [2, 10, 10**6, 10**12])
@pytest.mark.parametrize(
    "kind", ["epsilon", "epsilon or rho", "rho or epsilon", "rho", "rho and delta", "delta and rho"]
)
def test_how_many_charges_fit_is_said_by_a_quotient_and_three_looks(kind, count, monkeypatch):
    """However many they are, where a search would look some forty times."""
    looks, one, each = [], Fraction(1), Fraction(1, count)
    either = acc.ZCDPFilter(rho=one, delta_threshold=one / 4, epsilon=one)
    full, cost = {
        "epsilon": (acc.PureFilter.of(1), acc.Cost(each, Fraction(0))),
        "epsilon or rho": (either, acc.Cost(each, each * 2)),
        "rho or epsilon": (either, acc.Cost(each * 2, each)),
        "rho": (acc.ZCDPFilter(rho=one, delta_threshold=Fraction(0)), acc.Cost(None, each)),
        "rho and delta": (either, acc.Cost(each / 9, each, each / 9)),
        "delta and rho": (either, acc.Cost(None, each / 3, each / 4)),
    }[kind]
    within = type(full)._within
    monkeypatch.setattr(type(full), "_within", lambda f, total: looks.append(total) or within(f, total))
    assert full.how_many(cost) == count
    assert len(looks) == 3


def test_only_what_costs_nothing_in_every_unit_fits_without_end():
    """A cost may have one amount alone; what has an infinite epsilon fits into no filter of epsilons."""
    zero, quarter, one = Fraction(0), Fraction(1, 4), Fraction(1)
    pure, basic = acc.PureFilter.of(1), acc.BasicFilter(epsilon=one, delta=quarter)
    impure = acc.ZCDPFilter(rho=Fraction(2), delta_threshold=quarter).charge(acc.Cost(None, one))
    for amount, times in ((quarter, 4), (one, 1)):
        assert pure.how_many(acc.Cost(amount, zero)) == times
        assert basic.how_many(acc.Cost(amount, zero)) == times
        assert impure.how_many(acc.Cost(zero, amount)) == times
        assert impure.how_many(acc.Cost(None, amount)) == times
        assert basic.how_many(acc.Cost(zero, zero, amount / 4)) == times
    assert pure.how_many(acc.Cost(None, zero)) == 0
    assert basic.how_many(acc.Cost(zero, zero, one)) == impure.how_many(acc.Cost(zero, zero, one)) == 0
    assert all(f.how_many(acc.Cost(zero, zero)) is None for f in (pure, basic, impure))
    assert acc.GaussianFilter.of(1).how_many(acc.GaussianDP(0)) is None


def test_what_was_spent_without_a_finite_epsilon_leaves_nothing_of_a_sum_of_epsilons():
    spent = acc.Cost(None, Fraction(1, 8), Fraction(1, 10**6))
    ceiling = Fraction(1, 10**5)
    assert acc.PureFilter(epsilon=Fraction(1), spent=spent).left == 0
    assert acc.BasicFilter(epsilon=Fraction(1), delta=ceiling, spent=spent).left == (0, ceiling - spent.delta)
    assert not acc.BasicFilter(epsilon=Fraction(1), delta=ceiling, spent=spent).admits(acc.Cost(Fraction(0), spent.rho))


@pytest.mark.parametrize("pure", [True, False])
def test_what_does_not_fit_is_told_in_the_filter_s_own_unit(pure):
    one = Fraction(1)
    ceiling = acc.PureFilter.of(1) if pure else acc.BasicFilter(epsilon=one, delta=Fraction(1, 4))
    rest = "epsilon 1" if pure else "epsilon 1 and delta 0.25"
    for spent, told in (
        (
            acc.Cost(None, one, Fraction(1, 8)),
            "no finite pure epsilon" if pure else "no finite epsilon and delta 0.125",
        ),
        (acc.Cost(2 * one, one), "epsilon 2" if pure else "epsilon 2 and delta 0"),
    ):
        with pytest.raises(BudgetError, match=f"asked {told}, left {rest}\\."):
            ceiling.charge(spent)


def test_the_pure_filter_refuses_what_is_not_pure():
    assert not acc.PureFilter.of(100).admits(acc.Gaussian(1000))
    assert not acc.PureFilter.of(100).admits(acc.ApproxDP(1, "1e-9"))


def test_one_question_at_the_whole_epsilon_fits_once_and_small_ones_far_more_often():
    f = acc.ZCDPFilter.of(3, "1e-6")
    assert f.how_many(f.question(3)) == 1
    assert f.how_many(f.question("0.5")) > 2 * 6
    after = f.charge(f.question(1))
    assert after.admits(after.question(after.largest))
    assert not after.admits(after.question(after.largest * Fraction(101, 100)))


@pytest.mark.parametrize("epsilon", ["1/10", "1/4", "1/2", "1", "3/2"])
def test_the_largest_question_is_the_one_that_fills_what_is_left(epsilon):
    whole = acc.ZCDPFilter.of(8, "1e-6")
    last = whole.question(Fraction(epsilon))
    assert whole.charge(acc.Cost(None, whole.rho - last.rho)).largest == Fraction(epsilon)


def test_the_either_or_filter_lets_pure_events_add_up_to_epsilon():
    f = acc.ZCDPFilter.of(3, "1e-6")
    for _ in range(3):
        f = f.charge(acc.PureDP(1))
    assert f.spent.rho > f.rho
    assert not f.admits(acc.PureDP("1e-20"))
    assert not f.admits(acc.Gaussian(10**6))


def test_thresholds_use_their_own_share_of_delta():
    f = acc.ZCDPFilter.of(3, "1e-6", delta_threshold="4e-7")
    f = f.charge(acc.Threshold("0.1", "2e-7", groups=2))
    assert f.left.delta == 0
    assert not f.admits(acc.Threshold("0.001", "1e-12"))
    assert f.admits(f.question("0.1"))
    with pytest.raises(ParameterError, match=r"leaves nothing|smaller"):
        acc.ZCDPFilter.of(3, "1e-6", delta_threshold="1e-6")


def test_gaussian_filter_adds_squares_and_only_gaussians():
    assert acc.GaussianFilter.of(1).how_many(acc.Gaussian(4)) == 16
    with pytest.raises(ParameterError, match="mu"):
        acc.GaussianFilter.of(1).admits(acc.Laplace(1))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), max_size=12))
def test_a_filter_never_lets_the_sum_pass_its_ceiling(charges):
    f = acc.PureFilter.of("3/2")
    for c in charges:
        if f.admits(acc.PureDP(c)):
            f = f.charge(acc.PureDP(c))
    assert f.spent.epsilon <= Fraction(3, 2)


def test_how_many_fit_is_the_largest_number_that_is_within():
    """By its quotients and by a search: the same, whatever was spent and whichever of the two ways is the wider."""
    rng = random.Random(4)
    for _ in range(300):
        f = acc.ZCDPFilter.of(rng.choice(["0.5", 3, 10**6]), "1e-6")
        pure = acc.PureFilter.of(rng.choice(["0.5", 3, 10**6]))
        epsilon = Fraction(rng.randint(1, 200), rng.choice([100, 997]))
        costs = [
            acc.cost(acc.PureDP(epsilon)),
            acc.Cost(None, f.rho / rng.randint(1, 9) ** rng.randint(1, 9)),
            acc.Cost(None, f.rho / 7, Fraction(1, 10**7) * rng.randint(1, 3)),
            acc.Cost(epsilon, epsilon / 3),
        ]
        spent, one = rng.sample(costs, 2)
        for one_filter in (f, pure):
            before = one_filter.charge(spent) if one_filter.admits(spent) else one_filter
            found = before.how_many(one)
            assert found is not None
            assert found == 0 or before.admits(one.times(found))
            assert not before.admits(one.times(found + 1))
