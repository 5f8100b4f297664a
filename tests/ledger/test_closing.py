"""An older ledger that is accepted gives nothing back: no budget, no block, no retry, no run of the schedule."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hubbub.accounting import Cost
from hubbub.errors import BudgetError, PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Queue
from ledger.helpers import SPACE, asked, charge, resume

BUDGETS = {SPACE: Budget(3), "household": Budget(1)}
TENTH = Fraction(1, 10)


def opened(path) -> Ledger:
    return Ledger.open(path, budgets=BUDGETS)


def test_nothing_that_an_older_ledger_takes_for_open_is_given_again(place):
    with opened(place) as ledger:
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
        charge(ledger, TENTH, question_key="given up")
        drawing = charge(ledger, TENTH, question_key="drawing")
        ledger.charges.advance(drawing, "drawing")
        stored = charge(ledger, TENTH, question_key="stored")
        ledger.charges.advance(stored, "drawing")
        ledger.charges.store(stored, "the answer")
        scheduled = [
            ledger.timetable.submit(
                asked(TENTH, question_key=f"s{n}", request=str(n)), ask="{}", length=60 * SECOND, queue=Queue()
            )
            for n in range(2)
        ]
        ledger.timetable.tick()  # the first one runs
    with opened(place) as ledger:
        known = ledger.steward.accept_older(author="steward", reason="the disk died")
        assert ledger.record.verify().problems == ()
        assert ledger.record.verify().serial > known
        with ledger._handle.reading() as connection:
            lines = connection.execute("SELECT line, author, reason FROM restoring").fetchall()
        assert [tuple(line) for line in lines] == [(known, "steward", "the disk died")]
        states = {entry.question_key: entry.state for entry in ledger.record.history() if entry.kind == "question"}
        told = {key: state for key, state in states.items() if key != "stored"}
        assert set(told.values()) == {"withdrawn"}, "a question that had begun is still under way"
        with ledger._handle.reading() as connection:  # those of the service are told so at their releases
            assert connection.execute("SELECT count(*) FROM silence").fetchone()[0] == 2
        for space in BUDGETS:
            with pytest.raises(BudgetError, match="was revoked"):
                charge(ledger, "0.001", space=space, dataset="", question_key="new")
        with pytest.raises(PolicyError, match="is closed"):
            charge(ledger, TENTH, block=block)
        for key in ("given up", "drawing", "s0", "s1"):
            assert resume(ledger, space=SPACE, question_key=key, analyst="ada", epsilon=TENTH) is None
        assert ledger.timetable.tick() == []
        ledger.timetable.restart(Queue())
        assert (ledger.timetable.next_time(), ledger.timetable.tick()) == (None, [])
        assert not ledger.timetable.stage(scheduled[0].id, "late")
        assert ledger.balance.failures(SPACE)[None][0] == 0
        assert ledger.balance.spent(SPACE) == 1 + 5 * TENTH  # the block's too
        assert ledger.record.release(stored).payload == "the answer"
        ledger.steward.grant(SPACE, "everyone", "1.6", author="steward", reason="receipts of 0 since")
        charge(ledger, TENTH, question_key="new")
        assert ledger.record.verify().problems == ()


@pytest.mark.parametrize("author", ["policy", "steward"])
@pytest.mark.parametrize("until", [None, "2999-01-01"])
def test_whoever_accepts_an_older_ledger_nothing_is_left(place, author, until):
    """ "policy" is the name under which the policy file's limits stand, and may be somebody's."""
    with opened(place) as ledger:
        ledger.steward.grant(SPACE, "everyone", "0.5", until=until, author="steward")
        ledger.steward.accept_older(author=author, reason="the disk died")
        assert ledger.balance.left(SPACE, granted=True).epsilon == 0
        with pytest.raises(BudgetError, match="was revoked"):
            charge(ledger, "0.001")


def test_what_is_set_aside_for_training_is_not_given_again(place):
    """An older copy may lack a training: after a grant to `everyone`, it would be paid a second time."""
    half = Fraction(1, 2)
    budgets = {SPACE: Budget(3, "1e-6", training=(1, "1e-7"))}
    paid = {
        "details": '{"kind": "training", "paid_from": "training"}',
        "cost": Cost(half, half**2 / 2, Fraction(1, 10**8)),
    }
    with Ledger.open(place, budgets=budgets) as ledger:
        charge(ledger, half, question_key="one", **paid)
        assert ledger.balance.training(SPACE) == (half, Fraction(9, 10**8))
        ledger.steward.accept_older(author="steward", reason="the disk died")
        assert ledger.balance.training(SPACE) == (0, 0)
        ledger.steward.grant(SPACE, "everyone", 1, author="steward", reason="receipts of 0 since")
        with pytest.raises(BudgetError, match=r"put back, so what .* is not known. Fit a model of sums"):
            charge(ledger, half, question_key="two", **paid)
        charge(ledger, Fraction(1, 100), question_key="three")
        assert ledger.record.verify().problems == ()
    with Ledger.open(place, budgets=budgets) as ledger:
        assert ledger.balance.training(SPACE) == (0, 0)


def test_nothing_that_was_revoked_or_refreshed_since_is_given_again(place):
    with opened(place) as ledger:
        ledger.steward.grant(SPACE, "analyst:ada", Fraction(1), author="steward")
        ledger.steward.grant(SPACE, "table:visits", Fraction(1), author="steward")
        old = {
            (space, dataset, mark): ledger.versions.data_version(space, dataset, fingerprint=mark)
            for space in BUDGETS
            for dataset, mark in (("visits", "a"), ("visits", "b"), ("stays", None))
        }
    with opened(place) as ledger:
        ledger.steward.accept_older(author="steward", reason="the disk died")
        for space, dataset, mark in old:
            new = ledger.versions.data_version(space, dataset, fingerprint=mark)
            assert new not in old.values(), f"{dataset} of {space} stands as it did"
        ledger.steward.grant(SPACE, "everyone", Fraction(3), author="steward")
        for told in ({"analyst": "ada", "dataset": ""}, {"analyst": "eve", "dataset": "visits"}):
            with pytest.raises(BudgetError, match="was revoked"):
                charge(ledger, TENTH, question_key="new", **told)
        assert charge(ledger, TENTH, question_key="new", analyst="eve", dataset="")
        assert ledger.record.verify().problems == ()
