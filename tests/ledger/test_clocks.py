"""Clocks that differ, and blocks whose end was interrupted: what is counted stays right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from hubbub.ledger import hash_chain, process
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, wait

BUDGETS = {SPACE: Budget(10)}


def ahead() -> str:
    """A clock that is three hours ahead."""
    return (datetime.now(UTC) + timedelta(hours=3)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def test_a_clock_that_is_ahead_on_another_machine_loses_no_live_question(database, monkeypatch):
    """Before, whatever that machine looked at was hours old to it: 'lost', and counted as a failure."""
    address = database()
    with Ledger.open(address, budgets=BUDGETS) as ledger:
        made = charge(ledger, "0.1")

        def elsewhere() -> None:
            process._place = lambda: "another machine/1"
            hash_chain.now = ahead
            with Ledger.open(address, budgets=BUDGETS) as other:
                assert other.charges.mark_lost() == 0
                charge(other, "0.1", analyst="bob")

        assert wait(fork(elsewhere)) == [0]
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, "answer")
        assert {entry.state for entry in ledger.record.history(analyst="ada")} == {"stored"}
        assert max(entry.time for entry in ledger.record.history()) < ahead()


def stopped(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_block_whose_end_was_interrupted_is_closed_with_the_next_charge_or_the_ledger(tmp_path, monkeypatch, moment):
    place = tmp_path / "b.db"
    for end in (lambda ledger: charge(ledger, "0.1", question_key="next"), Ledger.close):
        ledger = Ledger.open(place, budgets=BUDGETS)
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
        charge(ledger, "0.25", block=block)
        with monkeypatch.context() as patch:
            if moment == "before":
                patch.setattr(ledger._handle.store, "writing", stopped)
            else:
                patch.setattr(ledger._handle.store, "_after_commit", stopped)
            with pytest.raises(KeyboardInterrupt):
                ledger.charges.close_block(block)
        end(ledger)
        ledger.close()
        with Ledger.inspect(place) as found:
            assert not found.record.open_blocks()
            assert found.record.verify().problems == ()
