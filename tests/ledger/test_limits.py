"""Limits below the joint budget, grants, blocks, and budgets with delta: what each account may spend, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hubbub.accounting import Cost, PureDP, rho_of_epsilon
from hubbub.errors import BudgetError, ParameterError, PolicyError
from hubbub.ledger import hash_chain as journal
from hubbub.ledger.accounts import (
    EVERYONE,
    Total,
    analyst_account,
    empty_filter,
    largest_question,
    pure_cost,
    table_account,
)
from hubbub.ledger.budget import Budget
from hubbub.ledger.charging import pays_training
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge

ADA, BOB, EACH = analyst_account("ada"), analyst_account("bob"), analyst_account("*")


@pytest.fixture
def ledger():
    with Ledger.in_memory({SPACE: Budget(1)}) as opened:
        yield opened


def grant(ledger: Ledger, account: str, epsilon: str, **more: str) -> None:
    ledger.steward.grant(SPACE, account, epsilon, author="steward", **more)


def answered(ledger: Ledger, epsilon: str, **changes: str) -> str:
    charge_id = charge(ledger, epsilon, **changes)
    ledger.charges.advance(charge_id, "drawing")
    ledger.charges.store(charge_id, "answer")
    return charge_id


def test_an_analyst_stays_within_a_grant_and_the_sum_within_the_ceiling(ledger):
    grant(ledger, ADA, "0.5")
    grant(ledger, BOB, "0.75")
    charge(ledger, "0.5")
    with pytest.raises(BudgetError, match=r"0 of 0\.5 is left for the analyst 'ada'"):
        charge(ledger, "0.01")
    with pytest.raises(BudgetError, match=r"0\.5 of 1 is left for the unit space"):
        charge(ledger, "0.6", analyst="bob")
    charge(ledger, "0.5", analyst="bob")
    assert ledger.balance.remaining(SPACE) == 0


def test_each_analyst_has_the_common_limit_unless_granted_another(ledger):
    grant(ledger, EACH, "0.1")
    grant(ledger, ADA, "0.3")
    charge(ledger, "0.3")
    charge(ledger, "0.1", analyst="bob")
    for analyst in ("ada", "bob", "eve"):
        with pytest.raises(BudgetError):
            charge(ledger, "0.11", analyst=analyst)
    assert ledger.balance.remaining(SPACE, analyst="eve") == Fraction(1, 10)
    assert ledger.balance.remaining(SPACE) == Fraction(6, 10)


def test_n_analysts_at_their_own_limits_do_not_pass_the_joint_one(ledger):
    grant(ledger, EACH, "0.3")
    won = 0
    for number in range(10):
        try:
            charge(ledger, "0.3", analyst=f"analyst {number}")
            won += 1
        except BudgetError:
            pass
    assert (won, ledger.balance.remaining(SPACE)) == (3, Fraction(1, 10))


def test_a_refusal_names_what_would_fit_whatever_is_full(ledger):
    grant(ledger, ADA, "0.25")
    charge(ledger, "0.125", analyst="bob")
    with pytest.raises(BudgetError, match=r"0\.25 of 0\.25 is left for the analyst 'ada'\. Ask with epsilon 0\.25"):
        charge(ledger, "2")  # more than is left for everybody, too
    charge(ledger, "0.25")


def test_a_table_has_a_limit_of_its_own(ledger):
    grant(ledger, table_account("visits"), "0.25")
    charge(ledger, "0.25")
    with pytest.raises(BudgetError, match="for the table 'visits'"):
        charge(ledger, "0.01")
    charge(ledger, "0.75", dataset="wards")


def test_a_grant_for_all_lies_below_the_ceiling(ledger):
    grant(ledger, EVERYONE, "0.5")
    with pytest.raises(BudgetError, match=r"0\.5 of 0\.5 is left for the unit space"):
        charge(ledger, "0.6")
    grant(ledger, EVERYONE, "1")
    charge(ledger, "0.6")


@pytest.mark.parametrize("account", [ADA, EACH, table_account("visits"), EVERYONE])
def test_no_grant_passes_the_ceiling(ledger, account):
    with pytest.raises(PolicyError, match="above the ceiling"):
        grant(ledger, account, "1.01")


@pytest.mark.parametrize("account", ["ada", "", "analyst:", "block:x", "ceiling", "everyone:x"])
def test_only_accounts_are_granted(ledger, account):
    with pytest.raises(ParameterError, match="is not an account"):
        grant(ledger, account, "0.5")


def test_a_revocation_touches_only_what_is_unspent(ledger):
    grant(ledger, ADA, "0.5")
    kept = answered(ledger, "0.25")
    ledger.steward.revoke(SPACE, ADA, author="steward", reason="left")
    with pytest.raises(BudgetError, match="what the analyst 'ada' was granted was revoked"):
        charge(ledger, "0.01")
    assert ledger.record.release(kept).payload == "answer"
    assert ledger.balance.spent(SPACE) == Fraction(1, 4)
    grant(ledger, ADA, "0.5")
    charge(ledger, "0.25")


def test_a_grant_expires_and_a_clock_set_back_does_not_revive_it(ledger, monkeypatch):
    grant(ledger, ADA, "0.5", until="2090-06-01")
    charge(ledger, "0.1")
    for moment in ("2090-06-01T00:00:00.000000Z", "2026-02-01T00:00:00.000000Z"):
        monkeypatch.setattr(journal, "now", lambda moment=moment: moment)
        with pytest.raises(BudgetError, match="expired at 2090-06-01"):
            charge(ledger, "0.1")
    charge(ledger, "0.1", analyst="bob")


@pytest.mark.parametrize("how", ["was revoked", "expired at 2090-06-01"])
def test_what_is_unspent_of_a_block_ends_with_its_grant_and_it_is_said_how(ledger, monkeypatch, how):
    grant(ledger, ADA, "0.5", until="2090-06-01")
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(2, 5))
    charge(ledger, "0.1", block=block)
    if how == "was revoked":
        ledger.steward.revoke(SPACE, ADA, author="steward", reason="left")
    else:
        monkeypatch.setattr(journal, "now", lambda: "2090-06-02T00:00:00.000000Z")
    with pytest.raises(PolicyError, match=f"is reserved, but what 'analyst:ada' was granted {how}"):
        charge(ledger, "0.1", question_key="another", block=block)


@pytest.mark.parametrize(
    ("details", "pays"),
    [
        ('{"kind": "training", "paid_from": "training"}', True),
        ('{"kind": "training", "paid_from": "questions"}', False),
        ('{"model": "training"}', False),
        ('["training"]', False),
        ("", False),
    ],
)
def test_a_charge_is_paid_from_what_is_set_aside_for_training_if_it_says_so(details, pays):
    assert pays_training(details) is pays


def test_a_ceiling_is_raised_on_the_record_and_never_lowered(ledger):
    with pytest.raises(PolicyError, match="give the reason"):
        ledger.steward.raise_ceiling(SPACE, 2, author="steward", reason=" ")
    with pytest.raises(PolicyError, match="not above it"):
        ledger.steward.raise_ceiling(SPACE, 1, author="steward", reason="x")
    assert ledger.steward.raise_ceiling(SPACE, 2, author="steward", reason="board, 3 May") == Budget(2)
    charge(ledger, "1.5")
    assert [(a.account, a.epsilon, a.reason) for a in ledger.balance.allowances(SPACE)] == [
        ("ceiling", 2, "board, 3 May")
    ]


def test_limits_of_the_policy_are_recorded_once_and_a_grant_by_hand_lasts(ledger):
    assert ledger.steward.record_limits(SPACE, {EACH: Fraction(1, 2)}) == [EACH]
    assert ledger.steward.record_limits(SPACE, {EACH: Fraction(1, 2)}) == []
    grant(ledger, ADA, "0.75")
    assert ledger.balance.policy_limits(SPACE) == {EACH: Fraction(1, 2)}
    assert ledger.steward.record_limits(SPACE, {}) == [EACH]
    assert ledger.balance.policy_limits(SPACE) == {}
    assert ledger.balance.remaining(SPACE, analyst="bob") == 1


def test_a_refusal_is_on_the_record(ledger):
    with pytest.raises(BudgetError):
        charge(ledger, "1.5", sql="SELECT 1")
    (refusal,) = ledger.record.refusals()
    assert (refusal.analyst, refusal.sql, refusal.account, refusal.asked, refusal.left) == (
        "ada", "SELECT 1", "everyone", "1.5", "1",
    )  # fmt: skip
    assert ledger.record.history() == []


def test_reading_anothers_answer_is_free_for_all_and_charged_once_to_the_reader(ledger):
    grant(ledger, BOB, "0.5")
    release = ledger.record.release(answered(ledger, "0.4"))
    ledger.charges.share(release, "ada")
    ledger.charges.share(release, "bob")
    ledger.charges.share(release, "bob")
    assert (ledger.balance.spent(SPACE), ledger.balance.total(SPACE, BOB).epsilon) == (Fraction(4, 10), Fraction(4, 10))
    other = ledger.record.release(answered(ledger, "0.2", question_key="other"))
    with pytest.raises(
        BudgetError, match=r"reading it counts epsilon 0\.2 against your own limit, and 0\.1 of 0\.5 is left"
    ):
        ledger.charges.share(other, "bob")


@pytest.mark.parametrize("here", [None, "1f0c5a7e"])
@pytest.mark.parametrize("there", [None, "1f0c5a7e", "2f0c5a7e"])
def test_a_reading_that_another_process_pays_meanwhile_is_charged_once(tmp_path, monkeypatch, here, there):
    with open_at(tmp_path) as ledger, open_at(tmp_path) as other:
        for token in ("1f0c5a7e", "2f0c5a7e"):
            grant(ledger, f"token:{token}", "0.9")
        release = ledger.record.release(answered(ledger, "0.4"))
        charged = ledger.charges._charge

        def charged_after_the_other(request):
            if not other.record.has_read(release.entry, "bob", token=there):
                other.charges.share(release, "bob", token=there)
            return charged(request)

        monkeypatch.setattr(ledger.charges, "_charge", charged_after_the_other)
        ledger.charges.share(release, "bob", token=here)
        accounts = [BOB, *{f"token:{token}" for token in (here, there) if token is not None}]
        assert {ledger.balance.total(SPACE, account).epsilon for account in accounts} == {Fraction(4, 10)}
        assert ledger.record.verify().sound


def open_at(folder) -> Ledger:
    return Ledger.open(folder / "ledger.db", budgets={SPACE: Budget(1)})


def test_a_block_holds_its_part_and_gives_back_the_rest(ledger):
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(6, 10))
    assert ledger.balance.remaining(SPACE) == Fraction(4, 10)
    charge(ledger, "0.2", block=block)
    with pytest.raises(BudgetError, match=r"0\.4 is left for the reserved block"):
        charge(ledger, "0.5", block=block)
    with pytest.raises(BudgetError):
        charge(ledger, "0.5")
    assert [entry.id for entry in ledger.record.open_blocks()] == [block]
    ledger.charges.close_block(block)
    ledger.charges.close_block(block)
    assert ledger.record.open_blocks() == []
    assert (ledger.balance.spent(SPACE), ledger.balance.total(SPACE, ADA).epsilon) == (Fraction(2, 10), Fraction(2, 10))
    with pytest.raises(PolicyError, match="is closed"):
        charge(ledger, "0.1", block=block)
    with pytest.raises(PolicyError, match="no reserved block"):
        charge(ledger, "0.1", block="x")
    assert ledger.record.verify().sound


DELTA = Fraction(1, 10**6)


def test_under_a_budget_with_delta_either_epsilons_or_rhos_stay_within():
    budget = Budget(1, DELTA)
    rho = rho_of_epsilon(1, DELTA / 2)
    with Ledger.in_memory({SPACE: budget}) as ledger:
        charge(ledger, "1")  # pure: 1 within 1, though its rho 1/2 is far beyond
        assert rho < Fraction(1, 2)
        with pytest.raises(BudgetError):
            charge(ledger, "1e-9")
    with Ledger.in_memory({SPACE: budget}) as ledger:
        count = 0
        while ledger.balance.admits(pure_cost(Fraction(1, 50)), space=SPACE, dataset="visits", analyst="ada"):
            charge(ledger, "1/50")
            count += 1
        assert count == int(rho / Fraction(1, 5000)) > 50
        assert ledger.balance.total(SPACE).rho <= rho


def test_gaussian_costs_and_thresholds_are_added_exactly():
    budget = Budget(1, DELTA)
    rho = rho_of_epsilon(1, DELTA / 2)
    with Ledger.in_memory({SPACE: budget}) as ledger:
        for _ in range(10):
            charge(ledger, "0.3", cost=Cost(None, rho / 10, DELTA / 20))
        assert ledger.balance.total(SPACE) == Total(Fraction(0), rho, DELTA / 2, 10)
        with pytest.raises(BudgetError):
            charge(ledger, "0.3", cost=Cost(None, Fraction(0), Fraction(1, 10**12)))
        with pytest.raises(BudgetError):
            charge(ledger, "0.3", cost=Cost(None, Fraction(1, 10**12)))
        assert ledger.record.verify().sound


def test_once_a_cost_had_no_epsilon_what_is_left_is_what_the_rho_allows():
    with Ledger.in_memory({SPACE: Budget(1, DELTA)}) as ledger:
        rho = rho_of_epsilon(1, DELTA / 2)
        charge(ledger, "0.3", cost=Cost(None, rho / 2))
        left = ledger.balance.remaining(SPACE)
        assert 0 <= rho / 2 - left**2 / 2 < Fraction(1, 10**12)
        charge(ledger, left)
        assert ledger.balance.remaining(SPACE) < Fraction(1, 10**6)


def test_a_pure_budget_refuses_what_has_no_pure_loss(ledger):
    with pytest.raises(BudgetError):
        charge(ledger, "0.1", cost=Cost(None, Fraction(1, 10**9)))


def test_a_limit_under_delta_has_the_rho_of_its_epsilon_at_the_data_sets_delta():
    with Ledger.in_memory({SPACE: Budget(2, DELTA)}) as ledger:
        grant(ledger, ADA, "1")
        rho = rho_of_epsilon(1, DELTA / 2)
        charge(ledger, "0.5", cost=Cost(None, rho))
        with pytest.raises(BudgetError, match="the analyst 'ada'"):
            charge(ledger, "0.5", cost=Cost(None, Fraction(1, 10**12)))
        charge(ledger, "0.5", cost=Cost(None, rho), analyst="bob")


def test_a_block_under_delta_holds_the_rho_of_one_release_and_comes_back_pure():
    with Ledger.in_memory({SPACE: Budget(2, DELTA)}) as ledger:
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
        assert ledger.balance.total(SPACE) == Total(Fraction(0), rho_of_epsilon(1, DELTA / 2), Fraction(0), 1)
        charge(ledger, "0.1", block=block)
        ledger.charges.close_block(block)
        assert ledger.balance.total(SPACE) == Total.of(pure_cost(Fraction(1, 10)))
        assert ledger.record.verify().sound


def test_a_pure_plan_under_delta_holds_its_questions_to_its_epsilon_and_to_its_rho():
    """Two filters, and both must admit: small questions would fit its rho long after its epsilon is spent."""
    with Ledger.in_memory({SPACE: Budget(2, DELTA)}) as ledger:
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1), plan="one", events=[PureDP(1)])
        for _ in range(5):
            charge(ledger, "0.2", block=block)
        with pytest.raises(BudgetError, match="the reserved block"):
            charge(ledger, "0.01", block=block)
        with pytest.raises(BudgetError, match="the reserved block"):
            charge(ledger, "0.01", block=block, cost=Cost(None, Fraction(1, 10**9)))
        assert ledger.record.verify().sound


def test_sums_of_unruly_fractions_are_rounded_against_the_spender():
    huge = Fraction(1, 3 * 7**1000)
    total = Total.of(pure_cost(Fraction(1, 5**900))) + Total.of(pure_cost(huge))
    assert total.epsilon > Fraction(1, 5**900) + huge
    assert total.epsilon.denominator.bit_length() <= 2048
    assert total.epsilon - (Fraction(1, 5**900) + huge) < Fraction(1, 10**59)


class BlocksAndLimitsAgreeWithALittleModel(RuleBasedStateMachine):
    """The model: what each analyst spent, and what the open block holds and has used."""

    amounts = st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(1, 7), Fraction(2, 5)])

    def __init__(self):
        super().__init__()
        self.ledger = Ledger.in_memory({SPACE: Budget(2)})
        self.limits = dict.fromkeys(["ada", "bob"], Fraction(2))
        self.spent = dict.fromkeys(["ada", "bob"], Fraction(0))
        self.block = None
        self.revoked = set()

    def held(self):
        return self.block[2] if self.block else Fraction(0)

    def fits(self, analyst, epsilon):
        own = self.spent[analyst] + (self.held() if self.block and self.block[1] == analyst else 0)
        return own + epsilon <= self.limits[analyst] and sum(self.spent.values()) + self.held() + epsilon <= 2

    @rule(analyst=st.sampled_from(["ada", "bob"]), epsilon=amounts)
    def ask(self, analyst, epsilon):
        fits = self.fits(analyst, epsilon)
        try:
            charge(self.ledger, epsilon, analyst=analyst)
            self.spent[analyst] += epsilon
        except BudgetError:
            assert not fits
        else:
            assert fits

    @rule(analyst=st.sampled_from(["ada", "bob"]), epsilon=st.fractions(Fraction(1, 100), 2, max_denominator=100))
    def grant(self, analyst, epsilon):
        self.ledger.steward.grant(SPACE, analyst_account(analyst), epsilon, author="s")
        self.revoked.discard(analyst)
        self.limits[analyst] = epsilon

    @rule(analyst=st.sampled_from(["ada", "bob"]))
    def revoke(self, analyst):
        self.ledger.steward.revoke(SPACE, analyst_account(analyst), author="s")
        self.revoked.add(analyst)
        self.limits[analyst] = Fraction(0)

    @precondition(lambda self: self.block is None)
    @rule(analyst=st.sampled_from(["ada", "bob"]), epsilon=amounts)
    def reserve(self, analyst, epsilon):
        fits = self.fits(analyst, epsilon)
        try:
            block = self.ledger.charges.reserve(space=SPACE, analyst=analyst, epsilon=epsilon)
        except BudgetError:
            assert not fits
        else:
            assert fits
            self.block = [block, analyst, epsilon, Fraction(0)]

    @precondition(lambda self: self.block is not None)
    @rule(epsilon=amounts)
    def ask_in_block(self, epsilon):
        fits = self.block[3] + epsilon <= self.block[2]
        try:
            charge(self.ledger, epsilon, analyst=self.block[1], block=self.block[0])
        except PolicyError:
            assert self.block[1] in self.revoked
        except BudgetError:
            assert not fits
        else:
            assert fits
            assert self.block[1] not in self.revoked
            self.block[3] += epsilon

    @precondition(lambda self: self.block is not None)
    @rule()
    def close(self):
        self.ledger.charges.close_block(self.block[0])
        self.spent[self.block[1]] += self.block[3]
        self.block = None

    @invariant()
    def same(self):
        assert self.ledger.balance.spent(SPACE) == sum(self.spent.values()) + self.held()

    def teardown(self):
        assert self.ledger.record.verify().problems == ()
        self.ledger.close()


BlocksAndLimitsAgreeWithALittleModel.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None
)
test_blocks_and_limits_agree_with_a_little_model = BlocksAndLimitsAgreeWithALittleModel.TestCase


def test_the_largest_question_of_a_pure_budget_is_what_is_left_of_it() -> None:
    filled = empty_filter(Budget(epsilon=1), Fraction(1)).charge(Cost(Fraction(3, 4), Fraction(9, 32)))
    assert largest_question(filled) == Fraction(1, 4)
    assert largest_question(filled.charge(Cost(Fraction(1, 4), Fraction(1, 32)))) == 0
