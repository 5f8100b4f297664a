"""Sums of a ledger: exact, never rounded in the spender's favour; what is given back is never more than was held."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product
from random import Random

import pytest

from hubbub.accounting import Cost
from hubbub.errors import BudgetError, PolicyError
from hubbub.ledger import accounts
from hubbub.ledger.accounts import Total, empty_filter, largest_question, pure_cost, rho_at
from hubbub.ledger.budget import Budget

FEW = [F(0), F(1, 3), F(1, 2)]
TOTALS = [Total(e, r, d, n) for e, r, d, n in product(FEW, FEW[:2], FEW[:2], (0, 1))]


def amounts(total: Total) -> tuple[F, F, F]:
    return total.epsilon, total.rho, total.delta


@pytest.mark.parametrize("one", TOTALS, ids=str)
def test_a_sum_is_that_of_each_amount_and_a_rest_is_never_below_zero(one: Total) -> None:
    for other in TOTALS:
        both = one + other
        assert amounts(both) == tuple(a + b for a, b in zip(amounts(one), amounts(other), strict=True))
        assert both.impure == one.impure + other.impure
        rest = one - other
        assert amounts(rest) == tuple(max(F(0), a - b) for a, b in zip(amounts(one), amounts(other), strict=True))
        assert both - other == one


@pytest.mark.parametrize("used", TOTALS, ids=str)
def test_what_was_used_of_a_plan_costs_no_more_than_its_parts_nor_than_the_whole(used: Total) -> None:
    for held in TOTALS:
        least = used.within(held)
        assert (least.rho, least.delta) == (min(used.rho, held.rho), min(used.delta, held.delta))
        # A plan that has no pure epsilon bounds none.
        assert least.epsilon == (used.epsilon if held.impure else min(used.epsilon, held.epsilon))
        assert least.impure == used.impure
        pure = bool(held.impure) or (not used.impure and used.epsilon <= held.epsilon)
        others = used.rho <= held.rho and used.delta <= held.delta and used.impure <= held.impure
        assert used.is_within(held) == (pure and others)


def test_what_has_no_pure_epsilon_makes_a_sum_that_has_none() -> None:
    half = F(1, 2)
    assert Total.of(Cost(half, half)) == Total(half, half, F(0), 0)
    assert Total.of(Cost(None, half, F(1, 9))) == Total(F(0), half, F(1, 9), 1)
    assert Total(half, half).cost == Cost(half, half)
    assert Total(half, half, F(1, 9), 2).cost == Cost(None, half, F(1, 9))
    assert Total(F(0), half, F(7, 5), 1).cost.delta == 1, "a delta is a probability"


def test_what_is_written_is_read() -> None:
    rng = Random(5)
    for _ in range(100):
        parts = [F(rng.getrandbits(40), rng.getrandbits(30) + 1) for _ in range(3)]
        total = Total(*parts, rng.randrange(3))
        assert Total.read(*total.written) == total
    for wrong in ("a", "1/0", "", None, "1.5", "1e999999999", " 1", "1/-2", "٣", "1/2\n"):
        with pytest.raises(PolicyError, match="not a ratio"):
            accounts.read_amount(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["epsilon", "rho", "delta"])
def test_a_long_sum_is_rounded_up_and_by_less_than_a_grid_step(name: str) -> None:
    """Many amounts of coprime denominators: against the spender, and no longer than so many digits."""
    rng, exact, held = Random(7), F(0), Total()
    for _ in range(200):
        one = F(rng.randrange(1, 10**20), rng.randrange(10**20, 10**21))
        exact, held = exact + one, held + Total(**{name: one})
        kept = getattr(held, name)
        assert exact <= kept <= exact + 200 * F(1, 10**60)
        assert kept.denominator.bit_length() <= 2048 + 71
    assert kept != exact
    edge = F(1, 2**2047 - 1)
    assert accounts._held(edge) == edge  # of 2,047 bits
    assert accounts._held(F(1, 2**2047)) == F(1, 2**2047)  # of 2,048
    assert accounts._held(F(1, 2**2048)) == F(1, 10**60)  # of 2,049
    assert accounts._held(F(-1, 2**2048)) == 0
    # What is left is rounded up as well: the sum that it is taken from was.
    assert (Total(rho=F(1, 3)) - Total(rho=F(1, 3**1400))).rho >= F(1, 3) - F(1, 3**1400)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_the_largest_question_fits_and_the_next_one_does_not(epsilon: str) -> None:
    step = F(1, 10**15)
    pure = empty_filter(Budget(epsilon), F(epsilon))
    assert largest_question(pure) == F(epsilon)
    approximate = empty_filter(Budget(epsilon, "1e-6"), F(epsilon))
    for spent in (Cost(None, F(0)), Cost(None, F(1, 1000)), Cost(F(1, 7), F(1, 98))):
        filled = approximate.charge(spent)
        most = largest_question(filled)
        assert most > 0
        filled.charge(pure_cost(most))
        with pytest.raises(BudgetError):
            filled.charge(pure_cost(most + step))


def test_the_rho_of_a_limit_is_that_of_its_epsilon_at_the_data_sets_own_delta() -> None:
    from hubbub.accounting import epsilon_of_rho

    budget = Budget(3, "1e-6")
    for epsilon in (F(1, 10), F(1), F(3)):
        rho = rho_at(budget, epsilon)
        assert epsilon_of_rho(rho, budget.delta_conversion) <= epsilon
        assert epsilon_of_rho(rho * (1 + F(1, 10**6)), budget.delta_conversion) > epsilon
    nothing = empty_filter(budget, F(0))
    with pytest.raises(BudgetError):
        nothing.charge(pure_cost(F(1, 10**9)))
    assert pure_cost(F(1, 2)) == Cost(F(1, 2), F(1, 8))


def test_the_accounts_of_what_is_read_together() -> None:
    assert accounts.table_accounts("a + b + a") == ("table:a", "table:b")
    assert accounts.is_token(accounts.token_account("7"))
    for other in ("7", "table:token:7", "analyst:token:7"):
        assert not accounts.is_token(other)
    named = accounts.table_account, accounts.analyst_account, accounts.token_account, accounts.block_account
    names = {account(name) for account in named for name in ("x", "y")}
    assert len({*names, accounts.EVERYONE, accounts.EACH_ANALYST}) == 10
    assert all(isinstance(name, str) for name in names)
