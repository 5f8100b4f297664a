"""Retries, failures and idempotency keys: what a crash costs, and what it never gives away."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from fractions import Fraction

import pytest

from hubbub.accounting import Cost
from hubbub.errors import BudgetError, PolicyError, QueryError
from hubbub.ledger import process as owner
from hubbub.ledger.accounts import Total
from hubbub.ledger.budget import Budget
from hubbub.ledger.charging import Request
from hubbub.ledger.rules import Rules
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, asked, charge, fork, resume, wait

BUDGETS = {SPACE: Budget(1)}
QUESTION = {"space": SPACE, "question_key": "k", "analyst": "ada", "epsilon": Fraction(1, 10)}


def die_at(place: str, *steps: str) -> None:
    """A child charges a question, goes so far with it, and is killed."""

    def child() -> None:
        with Ledger.open(place, budgets=BUDGETS) as ledger:
            charge_id = charge(ledger, "0.1")
            for step in steps:
                ledger.charges.advance(charge_id, step)
            os.kill(os.getpid(), signal.SIGKILL)

    assert wait(fork(child)) == [-signal.SIGKILL]


@pytest.fixture
def ledger(place):
    with Ledger.open(place, budgets=BUDGETS) as opened:
        yield opened


def test_a_charge_of_a_ledger_that_knew_no_owners_goes_on(ledger):
    made = replace(Request.of(asked("0.1"), Rules()), owner=None)
    ledger.charges._charge(made)
    ledger.charges.advance(made.id, "drawing")
    ledger.charges.store(made.id, "answer")
    assert ledger.record.release(made.id).payload == "answer"


def test_a_crash_before_the_draw_allows_one_free_retry(ledger, place):
    die_at(place)
    charge_id = resume(ledger, **QUESTION)
    assert [entry.id for entry in ledger.record.history()] == [charge_id]
    assert ledger.record.entry(charge_id).state == "retried"
    assert resume(ledger, **QUESTION) is None
    ledger.charges.advance(charge_id, "drawing")
    ledger.charges.store(charge_id, "answer")
    assert ledger.balance.remaining(SPACE) == Fraction(9, 10)
    assert ledger.record.verify().sound


def test_a_crash_during_the_retry_allows_no_second_one(ledger, place):
    die_at(place)

    def child() -> None:
        with Ledger.open(place, budgets=BUDGETS) as other:
            assert resume(other, **QUESTION)
            os.kill(os.getpid(), signal.SIGKILL)

    assert wait(fork(child)) == [-signal.SIGKILL]
    assert resume(ledger, **QUESTION) is None


def test_a_crash_while_drawing_allows_no_retry(ledger, place):
    die_at(place, "drawing")
    assert resume(ledger, **QUESTION) is None


@pytest.mark.parametrize("hair", [Fraction(0), Fraction(1, 10**15), Fraction(-1, 10**30)])
def test_a_retry_costs_exactly_what_was_charged_not_what_rounds_to_it(ledger, hair):
    """Two rhos a hair apart share the rounded epsilon that was asked for: the larger is not drawn for the smaller."""
    rho = Fraction(1, 200)
    charge_id = charge(ledger, "0.1", cost=Cost(Fraction(1, 10), rho))
    ledger.charges._withdraw([charge_id])
    ledger.charges._put_down(charge_id)
    found = resume(ledger, **QUESTION, spend=Total.of(Cost(Fraction(1, 10), rho + hair)))
    assert found == (None if hair else charge_id)


@pytest.mark.parametrize("change", [{"analyst": "bob"}, {"epsilon": Fraction(1, 5)}, {"question_key": "other"}])
def test_only_the_very_question_is_retried(ledger, place, change):
    die_at(place)
    assert resume(ledger, **(QUESTION | change)) is None


def test_a_question_under_way_is_not_taken_over(ledger, place):
    charge_id = charge(ledger, "0.1")
    assert resume(ledger, **QUESTION) is None

    def child() -> None:
        with Ledger.open(place, budgets=BUDGETS) as other:
            assert resume(other, **QUESTION) is None

    assert wait(fork(child)) == [0]
    ledger.charges.let_go(charge_id)
    assert resume(ledger, **QUESTION) == charge_id


def test_a_question_that_was_taken_over_is_not_drawn_by_its_first_owner(ledger, place, monkeypatch):
    charge_id = charge(ledger, "0.1")

    def child() -> None:
        monkeypatch.setattr("hubbub.ledger.life.is_gone", lambda *a: True)
        monkeypatch.setattr("hubbub.ledger.life._UNDER_WAY", set())
        with Ledger.open(place, budgets=BUDGETS) as other:
            assert resume(other, **QUESTION) == charge_id
            os._exit(0)

    assert wait(fork(child)) == [0]
    with pytest.raises(PolicyError, match="another process has taken this question over"):
        ledger.charges.advance(charge_id, "drawing")


def test_two_that_retry_at_once_get_one_charge(ledger, place):
    die_at(place)
    read, write = os.pipe()

    def child() -> None:
        with Ledger.open(place, budgets=BUDGETS) as other:
            os.write(write, b"x" if resume(other, **QUESTION) else b"-")
            os.close(write)
            os.read(os.open("/dev/null", os.O_RDONLY), 1)

    assert wait(*(fork(child) for _ in range(6))) == [0] * 6
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert sorted(pipe.read()) == sorted(b"x-----")


def test_a_dead_process_is_known_by_its_start_and_a_far_one_by_its_silence():
    mine = owner.this_process()
    old, new = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:59:00.000000Z"
    assert not owner.is_gone(mine, old, new)
    *place, pid, start = mine.split("/")
    assert owner.is_gone("/".join([*place, pid, str(int(start) + 1)]), old, new)
    assert not owner.is_gone("another-boot/pid:[1]/1/2", old, new)
    assert owner.is_gone("another-boot/pid:[1]/1/2", old, "2026-01-01T01:00:01.000000Z")


def test_after_a_few_engine_failures_an_analyst_waits_for_a_steward(ledger):
    for _ in range(3):
        ledger.charges.advance(charge(ledger, "0.1"), "failed", incident="i")
    with pytest.raises(PolicyError, match=r"3 questions of the analyst 'ada' failed.*hubbub ledger unlock ada"):
        charge(ledger, "0.1")
    charge(ledger, "0.1", analyst="bob")
    ledger.steward.unlock(SPACE, "ada", author="steward")
    charge(ledger, "0.1")
    assert ledger.balance.remaining(SPACE) == Fraction(1, 2)


def test_how_many_failures_is_a_setting(place):
    with Ledger.open(place, budgets=BUDGETS, max_failures=1) as ledger:
        ledger.charges.advance(charge(ledger, "0.1"), "failed")
        with pytest.raises(PolicyError, match="and 1 are allowed"):
            charge(ledger, "0.1")


def test_an_idempotency_key_is_charged_once(ledger):
    charge_id = charge(ledger, "0.1", request="r1")
    with pytest.raises(QueryError, match=f"used for charge {charge_id}"):
        charge(ledger, "0.1", request="r1")
    charge(ledger, "0.1", request="r1", analyst="bob")
    assert ledger.record.requested(space=SPACE, analyst="ada", request="r1").id == charge_id
    assert ledger.record.requested(space=SPACE, analyst="ada", request="r2") is None
    assert len(ledger.record.history()) == 2


def test_a_refused_request_may_be_sent_again(ledger):
    with pytest.raises(BudgetError):
        charge(ledger, 2, request="r1")
    charge(ledger, 1, request="r1")


def test_what_nobody_else_changed_is_read_once_and_not_for_every_step_of_a_charge(tmp_path):
    """Each step reads the head, and what is open or its own charge; nothing more while nobody else writes."""

    def live(key: str) -> None:
        made = charge(ledger, "0.1", question_key=key)
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, "answer")

    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        live("first")
        said: list[str] = []
        ledger._handle.store._connected().set_trace_callback(said.append)
        live("another")
        assert len([text for text in said if text.startswith("SELECT")]) == 2 + 2 + 2
        assert not [text for text in said if text.startswith("PRAGMA")]
        ledger.charges.advance(charge(ledger, "0.1", question_key="a third"), "failed")
        assert ledger.balance.failures(SPACE)["ada"][0] == 1
        with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as other:
            charge(other, "0.1")
        charge(ledger, "0.6", question_key="what another spent is seen")
        with pytest.raises(BudgetError):
            charge(ledger, "0.1", question_key="too much")


def test_who_waits_for_the_same_question_waits_as_long_as_the_ledger_does_and_does_not_pay_again():
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        made = charge(ledger, "0.1")
        ledger._handle.patience = 0.05
        with pytest.raises(PolicyError, match=r"under way .* has no answer yet"):
            ledger.record.await_release(made)
        ledger.charges.let_go(made)
        assert ledger.record.await_release(made) is None
