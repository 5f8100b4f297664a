"""What a ledger keeps of an account between two transactions, and whose question counts as asked already."""

from __future__ import annotations

import pytest

from hubbub.errors import BudgetError
from hubbub.ledger.budget import Budget
from hubbub.ledger.rules import Rules
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, asked, charge


def test_a_charge_that_could_not_be_committed_leaves_no_sum_behind(monkeypatch):
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        charge(ledger, "0.25", question_key="first")
        ends = type(ledger.charges._books).end

        def full_disk(self, head):
            raise OSError("no space left on the device")

        monkeypatch.setattr(type(ledger.charges._books), "end", full_disk)
        with pytest.raises(OSError):
            charge(ledger, "0.75", question_key="second")
        monkeypatch.setattr(type(ledger.charges._books), "end", ends)
        assert ledger.balance.remaining(SPACE) == 1 - asked("0.25").epsilon
        charge(ledger, "0.75", question_key="third")
        with pytest.raises(BudgetError):
            charge(ledger, "0.01", question_key="fourth")


@pytest.mark.parametrize("shared", [True, False])
def test_another_analyst_s_question_is_charged_once_more_if_answers_are_not_shared(shared):
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        ledger._handle.rules = Rules(shared_answers=shared)
        first, new = ledger.charges.charge_once(asked("0.125"))
        assert new
        assert ledger.charges.charge_once(asked("0.125")) == (first, False)
        second, new = ledger.charges.charge_once(asked("0.125", analyst="bob"))
        assert new is (not shared)
        assert (second == first) is shared
        assert ledger.balance.remaining(SPACE) == 1 - (1 if shared else 2) * asked("0.125").epsilon
