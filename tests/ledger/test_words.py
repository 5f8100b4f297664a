"""The words of a line can be removed: the chain verifies, budget and answer stay, the file holds them no more."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hubbub.errors import BudgetError, PolicyError
from hubbub.ledger.accounts import analyst_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Queue
from ledger.helpers import SPACE, asked, charge
from service.helpers import QUEUE, Clock, ledger_at

BUDGETS = {SPACE: Budget(3)}
SQL = "SELECT COUNT(*) FROM visits WHERE name = 'Zoe Zimmermann'"


def answered(ledger: Ledger) -> str:
    made = charge(ledger, "0.1", sql=SQL)
    ledger.charges.advance(made, "drawing")
    ledger.charges.store(made, "the answer")
    return made


def test_a_removed_text_is_nowhere_in_the_file_and_the_chain_stays(tmp_path):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        made = answered(ledger)
        ledger.charges.share(ledger.record.release(made), "bob")
        with pytest.raises(BudgetError):
            charge(ledger, 9, sql=SQL)
        receipt = ledger.record.receipt(made)
        assert b"Zimmermann" in path.read_bytes() + path.with_name("b.db-wal").read_bytes()
        assert ledger.steward.redact(made, author="steward") == 3  # the charge, the reading, the refusal
        assert b"Zimmermann" not in path.read_bytes() + path.with_name("b.db-wal").read_bytes()
        assert ledger.record.verify(receipt).problems == ()
        assert {entry.sql for entry in ledger.record.history()} == {"(removed)"}
        assert [told.sql for told in ledger.record.refusals()] == ["(removed)"]
        assert "Zimmermann" not in "".join(ledger.record.export())
        assert ledger.steward.redact(made, author="steward") == 0
        assert ledger.balance.spent(SPACE) == Fraction("0.1")
        assert ledger.balance.total(SPACE, analyst_account("bob")).epsilon == Fraction("0.1")
        found = ledger.record.find_release(space=SPACE, question_key="k", at_least=Fraction("0.1"))
        assert found is not None
        assert found.payload == "the answer"


def test_two_equal_texts_are_committed_to_by_different_salts(place):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        for key in "12":
            charge(ledger, "0.1", sql=SQL, question_key=key)
        with ledger._handle.reading() as connection:
            held = [sql for (sql,) in connection.execute("SELECT sql FROM charge").fetchall()]
    assert len(set(held)) == 2
    assert not any("Zoe" in sql for sql in held)


def test_what_is_under_way_keeps_its_words(place):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        made = charge(ledger, "0.1", sql=SQL)
        with pytest.raises(PolicyError, match="is under way"):
            ledger.steward.redact(made, author="steward")
        one = ledger.timetable.submit(
            asked("0.1", question_key="s", sql=SQL, request="r"), ask='{"sql": "Zoe"}', length=SECOND, queue=Queue()
        )
        with pytest.raises(PolicyError, match="is under way"):
            ledger.steward.redact(one.id, author="steward")
        with pytest.raises(PolicyError, match="there is no charge"):
            ledger.steward.redact("none", author="steward")
        ledger.steward.redact_before("9999", author="the policy")
        told = ledger.timetable.find(one.id)
        assert told is not None
        assert (told.sql, told.ask) == (SQL, '{"sql": "Zoe"}')


def test_texts_older_than_a_time_go_and_answers_stay(place):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        made = answered(ledger)
        assert ledger.steward.redact_before("2020-01-01T00:00:00.000000Z", author="the policy") == 0
        assert ledger.steward.redact_before("9999", author="the policy") == 1
        assert ledger.steward.redact_before("9999", author="the policy") == 0
        assert ledger.record.release(made).payload == "the answer"
        assert ledger.record.verify().problems == ()


@pytest.mark.parametrize("by", ["its number", "its time"])
def test_the_words_of_a_scheduled_question_go_with_it(tmp_path, monkeypatch, by):
    clock = Clock()
    with ledger_at(tmp_path / "b.db", clock, monkeypatch) as ledger:
        one = ledger.timetable.submit(
            asked("0.1", question_key="s", sql=SQL, request="r"), ask=f'{{"sql": "{SQL}"}}', length=SECOND, queue=QUEUE
        )
        ledger.timetable.tick()
        assert ledger.timetable.stage(one.id, "the answer")
        clock.seconds = 5
        ledger.timetable.tick()
        steward = ledger.steward
        gone = steward.redact(one.id, author="s") if by == "its number" else steward.redact_before("9999", author="s")
        assert gone == 2  # the charge, and its place in the schedule
        found = ledger.timetable.find(one.id)
        assert "Zimmermann" not in found.sql + found.ask
        assert "Zimmermann" not in "".join(ledger.record.export())
        assert ledger.record.release(one.id).payload == "the answer"
