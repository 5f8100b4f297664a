"""What a question that stopped early did not use comes back, exactly, once, and `verify` follows."""

from __future__ import annotations

import sqlite3
from fractions import Fraction

import pytest

from hubbub.accounting import ZCDP, cost
from hubbub.errors import BudgetError, InternalError, PolicyError
from hubbub.ledger.accounts import EVERYONE, Total, analyst_account, table_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge

BUDGET = Budget(3, "1e-6")
WHOLE, USED = cost(ZCDP(Fraction(1, 7))), cost(ZCDP(Fraction(1, 7) / 50))


def drawing(ledger: Ledger, **changes) -> str:
    made = charge(ledger, 1, cost=changes.pop("cost", WHOLE), **changes)
    ledger.charges.advance(made, "drawing")
    return made


@pytest.fixture
def ledger():
    with Ledger.in_memory({SPACE: BUDGET}) as opened:
        yield opened


def test_every_account_has_exactly_what_was_used(ledger):
    before = charge(ledger, "0.25", dataset="others", question_key="before")
    ledger.charges.let_go(before)
    first = {a: ledger.balance.total(SPACE, a) for a in (EVERYONE, table_account("visits"), analyst_account("ada"))}
    made = drawing(ledger)
    ledger.charges.give_back(made, used=USED)
    for account, total in first.items():
        assert ledger.balance.total(SPACE, account) == total + Total.of(USED)
    ledger.charges.store(made, "{}")
    ledger.charges.advance(made, "shown")
    last = ledger.record.history()[-1]
    assert (last.kind, last.block, last.spend) == ("return", made, Total.of(USED))
    assert ledger.record.verify().sound
    assert ledger.record.find_release(space=SPACE, question_key="k", at_least=Fraction(1)) is not None


def test_what_came_back_can_be_spent_and_no_more(ledger):
    left = ledger.balance.left(SPACE).rho
    ledger.charges.give_back(drawing(ledger), used=USED)
    assert ledger.balance.left(SPACE).rho == left - USED.rho
    charge(ledger, 2, cost=cost(ZCDP(left - USED.rho)), question_key="rest")
    with pytest.raises(BudgetError):
        charge(ledger, 2, cost=cost(ZCDP(Fraction(1, 10**9))), question_key="more")
    assert ledger.record.verify().sound


def test_it_comes_back_once_while_drawing_and_never_more_than_was_charged(ledger):
    made = charge(ledger, 1, cost=WHOLE)
    with pytest.raises(InternalError, match="not being drawn"):
        ledger.charges.give_back(made, used=USED)
    ledger.charges.advance(made, "drawing")
    with pytest.raises(InternalError, match="more than was charged"):
        ledger.charges.give_back(made, used=cost(ZCDP(Fraction(1, 6))))
    ledger.charges.give_back(made, used=USED)
    with pytest.raises(InternalError, match="gave back"):
        ledger.charges.give_back(made, used=USED)
    ledger.charges.store(made, "{}")
    with pytest.raises(InternalError, match="not being drawn"):
        ledger.charges.give_back(made, used=USED)
    with pytest.raises(PolicyError, match="there is no"):
        ledger.charges.give_back("f" * 32, used=USED)
    assert ledger.balance.total(SPACE) == Total.of(USED)


def test_inside_a_block_it_comes_back_to_the_block_and_then_to_all(ledger):
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(2))
    small = cost(ZCDP(Fraction(1, 20)))
    ledger.charges.give_back(drawing(ledger, block=block, cost=small), used=USED)
    ledger.charges.close_block(block)
    assert ledger.balance.total(SPACE) == Total.of(USED)
    assert ledger.balance.total(SPACE, table_account("visits")) == Total.of(USED)
    assert ledger.record.verify().sound


def test_whoever_reads_it_pays_from_their_own_limit_what_was_used(ledger):
    made = drawing(ledger)
    ledger.charges.give_back(made, used=USED)
    ledger.charges.store(made, "{}")
    ledger.charges.share(ledger.record.release(made), "bob")
    assert ledger.balance.total(SPACE, analyst_account("bob")) == Total.of(USED)
    assert ledger.record.verify().sound


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE charge SET rho = '1/10000' WHERE kind = 'return'", "was changed"),
        ("DELETE FROM charge WHERE kind = 'return'", "is missing"),
    ],
)
def test_a_return_that_was_written_by_hand_is_found(tmp_path, change, said):
    path = tmp_path / "l.db"
    with Ledger.open(path, budgets={SPACE: BUDGET}) as opened:
        opened.charges.give_back(drawing(opened), used=USED)
        assert opened.record.verify().sound
    with sqlite3.connect(path) as con:
        for (trigger,) in con.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            con.execute(f'DROP TRIGGER "{trigger}"')
        con.execute(change)
    with Ledger.inspect(path) as opened:
        assert any(said in problem for problem in opened.record.verify().problems)
