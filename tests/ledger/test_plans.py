"""Under a budget with delta: what one more question may cost, how many fit, and plans below the sum of their parts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from click.testing import CliRunner

from hubbub.accounting import Cost, DiscreteGaussian, Gaussian, PureDP, Threshold, epsilon_of_rho, rho_of_epsilon
from hubbub.accounting.plans import plan_cost
from hubbub.cli.budget import command
from hubbub.errors import BudgetError, ParameterError
from hubbub.ledger.accounts import Total, analyst_account, pure_cost, table_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.remainder import question_cost
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge

DELTA = Fraction(1, 10**6)
BUDGET = Budget(3, DELTA)
RHO = rho_of_epsilon(3, DELTA / 2)


@pytest.fixture
def ledger():
    with Ledger.in_memory({SPACE: BUDGET}) as opened:
        yield opened


def test_a_question_costs_the_rho_of_one_release_at_the_data_sets_delta(ledger):
    assert ledger.balance.question(SPACE, 1) == Cost(None, rho_of_epsilon(1, DELTA / 2)) == question_cost(BUDGET, 1)
    assert ledger.balance.question(SPACE, 1, delta=Fraction(1, 10**7)).delta == Fraction(1, 10**7)
    assert ledger.balance.question(SPACE, 3).rho == RHO
    with Ledger.in_memory({SPACE: Budget(3)}) as pure:
        assert pure.balance.question(SPACE, "0.1") == pure_cost(Fraction(1, 10))


def test_the_conversion_agrees_with_dp_accounting_to_nine_digits():
    """Its RDP accountant searches the same bound over orders; ours may be no smaller, and at most 1e-9 larger."""
    privacy = pytest.importorskip("dp_accounting")
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        rho = float(rho_of_epsilon(str(epsilon), DELTA / 2))
        orders = [1 + math.exp(x / 200) for x in range(-600, 2400)]
        accountant = privacy.rdp.RdpAccountant(orders)
        accountant.compose(privacy.GaussianDpEvent(math.sqrt(1 / (2 * rho))))
        theirs = accountant.get_epsilon(float(DELTA / 2))
        assert theirs == pytest.approx(epsilon, rel=1e-4)
        assert theirs >= epsilon * (1 - 1e-9)


def test_what_is_left_is_told_as_rho_delta_and_the_next_question(ledger):
    left = ledger.balance.left(SPACE)
    assert (left.rho, left.delta, left.epsilon) == (RHO, DELTA / 2, 3)
    assert left.question == pytest.approx(3, rel=1e-12)
    assert left.question <= 3
    charge(ledger, "0.5", cost=ledger.balance.question(SPACE, "0.5", delta=Fraction(1, 10**7)))
    left = ledger.balance.left(SPACE, dataset="visits", analyst="ada")
    assert (left.rho, left.delta) == (RHO - rho_of_epsilon("0.5", DELTA / 2), DELTA / 2 - Fraction(1, 10**7))
    assert float(left.question) == pytest.approx(float(epsilon_of_rho(left.rho, DELTA / 2)), rel=1e-12)
    assert ledger.balance.admits(
        ledger.balance.question(SPACE, left.question), space=SPACE, dataset="visits", analyst="ada"
    )
    assert not ledger.balance.admits(ledger.balance.question(SPACE, left.question * Fraction(1001, 1000)), space=SPACE,
                             dataset="visits", analyst="ada")  # fmt: skip


def test_as_many_questions_fit_as_were_foretold(ledger):
    cost = ledger.balance.question(SPACE, "0.5")
    count = ledger.balance.left(SPACE).how_many(cost)
    assert count == RHO // cost.rho > 3 / 0.5
    for _ in range(count):
        charge(ledger, "0.5", cost=cost)
    with pytest.raises(BudgetError):
        charge(ledger, "0.5", cost=cost)
    assert ledger.balance.left(SPACE).how_many(cost) == 0
    assert ledger.balance.left(SPACE).how_many(Cost(Fraction(0), Fraction(0))) is None
    assert ledger.record.verify().sound


def test_limits_of_an_analyst_and_a_table_count_under_delta_too(ledger):
    ledger.steward.grant(SPACE, analyst_account("ada"), 1, author="steward")
    ledger.steward.grant(SPACE, table_account("visits"), 2, author="steward")
    one = rho_of_epsilon(1, DELTA / 2)
    assert ledger.balance.left(SPACE, analyst="ada").rho == one
    assert ledger.balance.left(SPACE, analyst="ada", dataset="visits").rho == one
    assert ledger.balance.left(SPACE, dataset="visits").rho == rho_of_epsilon(2, DELTA / 2)
    charge(ledger, 1, cost=ledger.balance.question(SPACE, 1))
    assert (ledger.balance.left(SPACE, analyst="ada").rho, ledger.balance.left(SPACE, analyst="ada").question) == (0, 0)
    assert ledger.balance.left(SPACE, analyst="bob").rho == RHO - one


def test_a_refusal_under_delta_says_what_would_fit(ledger):
    charge(ledger, "2", cost=ledger.balance.question(SPACE, 2))
    with pytest.raises(
        BudgetError,
        match=r"not enough budget: the question asks for epsilon 2\.5, and at most \d\.\d+ of 3 is left for "
        r"the unit space.* \(with Laplace noise \d\.\d+\)\. Ask with less",
    ) as error:
        charge(ledger, "2.5", cost=ledger.balance.question(SPACE, "2.5"))
    left = Fraction(error.value.left)
    assert left == max(ledger.balance.left(SPACE).question, ledger.balance.left(SPACE).epsilon)
    charge(ledger, left, cost=ledger.balance.question(SPACE, ledger.balance.left(SPACE).question))
    with pytest.raises(BudgetError, match="the block asks for epsilon 1, and "):
        ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
    with pytest.raises(BudgetError, match="its thresholds ask for delta 6e-07, and 5e-07 of delta is left"):
        charge(ledger, "0.1", cost=Cost(None, Fraction(0), Fraction(6, 10**7)))


def test_a_block_under_delta_tells_what_it_holds(ledger):
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
    left = ledger.balance.left(SPACE, analyst="ada", block=block)
    assert left.rho == rho_of_epsilon(1, DELTA / 2)
    charge(ledger, "0.5", block=block, cost=ledger.balance.question(SPACE, "0.5"))
    assert ledger.balance.left(SPACE, analyst="ada", block=block).rho == left.rho - rho_of_epsilon("0.5", DELTA / 2)


def divergence(epsilon, alpha):
    """The Renyi divergence of randomised response, with fifty digits."""
    import mpmath

    with mpmath.workdps(50):
        p = mpmath.e ** mpmath.mpf(epsilon) / (1 + mpmath.e ** mpmath.mpf(epsilon))
        a = mpmath.mpf(alpha)
        return mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


@pytest.mark.parametrize("epsilons", [["1"], ["0.1"] * 5, ["3", "0.5", "0.01"], ["8"]])
def test_the_rho_of_a_plan_bounds_its_divergence_at_every_order_and_no_less_would(epsilons):
    rho = plan_cost([PureDP(e) for e in epsilons]).rho
    quotients = [sum(divergence(e, alpha) for e in epsilons) / alpha
                 for alpha in (1 + 10 ** (k / 8) for k in range(-40, 33))]  # fmt: skip
    assert max(quotients) <= rho
    assert rho <= max(quotients) * 1.003
    assert rho <= sum(Fraction(e) ** 2 for e in epsilons) / 2


def test_a_gaussian_plan_costs_the_sum_exactly():
    assert plan_cost([Gaussian(2), DiscreteGaussian(4)] * 3) == Cost(None, Fraction(3, 8) + Fraction(3, 32))
    mixed = plan_cost([Gaussian(2), PureDP(1)])
    assert Fraction(1, 8) + Fraction(462, 1000) < mixed.rho < Fraction(1, 8) + Fraction(464, 1000)
    kept = plan_cost([PureDP(1), Threshold(1, "1e-9", 2)])
    assert (kept.epsilon, kept.delta) == (None, Fraction(2, 10**9))
    for wrong in ([], [1]):
        with pytest.raises(ParameterError, match="a plan is a list"):
            plan_cost(wrong)


def test_a_plan_enters_at_its_own_rho_and_its_questions_draw_on_their_sum(ledger):
    events = [PureDP(1), PureDP(1)]
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(2), plan="two", events=events)
    whole = plan_cost(events)
    assert ledger.balance.total(SPACE) == Total.of(whole)
    assert whole.rho < 1
    for number in range(2):
        charge(ledger, 1, block=block, question_key=str(number))
    with pytest.raises(BudgetError, match="the reserved block"):
        charge(ledger, "0.01", block=block)
    ledger.charges.close_block(block)
    assert ledger.balance.total(SPACE) == Total.of(whole)
    assert ledger.record.verify().problems == ()


def test_what_a_plan_did_not_run_comes_back(ledger):
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1, 2), plan="five",
                           events=[PureDP("0.1")] * 5)  # fmt: skip
    charge(ledger, "0.1", block=block)
    ledger.charges.close_block(block)
    assert ledger.balance.total(SPACE) == Total.of(pure_cost(Fraction(1, 10)))
    assert ledger.record.verify().sound


def test_the_command_line_tells_what_is_left_under_delta(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: BUDGET}) as ledger:
        cost = ledger.balance.question(SPACE, 1)
        charge(ledger, 1, cost=cost)
        left = ledger.balance.left(SPACE)
        count = left.how_many(ledger.balance.question(SPACE, "0.3"))
    found = CliRunner().invoke(command, ["--ledger", str(tmp_path / "b.db"), "--format", "csv"])
    assert found.exit_code == 0, found.output
    assert f"for {count} questions at epsilon 0.3 with Gaussian noise" in found.output
    row = next(line for line in found.output.splitlines() if line.startswith(f"{SPACE},")).split(",")
    assert row[1] == "3"
    assert float(row[3]) == pytest.approx(float(left.question), abs=1e-6)
    assert Fraction(row[3]) <= left.question
