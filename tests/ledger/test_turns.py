"""Charges of many processes in one transaction: each made once, durable before it is said, whoever dies."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.accounting import Cost
from hubbub.errors import BudgetError, PolicyError, QueryError
from hubbub.ledger.accounts import Total
from hubbub.ledger.budget import Budget
from hubbub.ledger.charging import Request
from hubbub.ledger.database import Database
from hubbub.ledger.store import Ledger
from hubbub.ledger.turns import DONE, FREE, RETURNED, WAITING, Turns
from ledger.helpers import SPACE, charge, fork, wait

BUDGETS = {SPACE: Budget(10)}


def opened(path: Path, **more: object) -> Ledger:
    return Ledger.open(path, budgets=BUDGETS, max_failures=10**9, max_failures_all=10**9, **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path):
    opened(tmp_path / "b.db").close()
    return tmp_path / "b.db"


def waiting(turns: Turns, count: int = 1) -> list[tuple[int, str, bool]]:
    """What waits, once `count` texts do."""
    for _ in range(2000):
        found = turns.waiting(())
        if len(found) >= count:
            return found
        time.sleep(0.001)
    raise AssertionError("nothing came")


def together(path: Path, count: int, work: Callable[[Ledger, int], object]) -> list[Ledger]:
    """Hold the turn until `count` threads, each with a ledger of its own, wait; then let one of them lead."""
    ledgers = [opened(path) for _ in range(count)]
    holder = Turns(path)
    assert holder.take()
    threads = [threading.Thread(target=work, args=(ledger, number)) for number, ledger in enumerate(ledgers)]
    for thread in threads:
        thread.start()
    waiting(holder, count)
    holder.leave()
    for thread in threads:
        thread.join()
    holder.close()
    return ledgers


def transactions(path: Path) -> int:
    """How many moments the journal knows: each write transaction has one."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT count(DISTINCT time) FROM journal WHERE kind = 'charge'").fetchone()[0]
    connection.close()
    return int(found)


def test_charges_that_wait_are_recorded_in_one_transaction(path):
    made: list[str] = []
    ledgers = together(path, 6, lambda ledger, n: made.append(charge(ledger, "0.1", question_key=str(n))))
    assert len(set(made)) == 6
    with opened(path) as ledger:
        assert {entry.id for entry in ledger.history()} == set(made)
        assert ledger.spent(SPACE) == Fraction(6, 10)
        assert ledger.verify().problems == ()
    assert transactions(path) < 6
    for ledger in ledgers:
        ledger.close()
    assert os.listdir(path.parent) == ["b.db"]


def test_of_those_that_wait_each_gets_its_own_refusal(path):
    said: dict[int, object] = {}

    def work(ledger: Ledger, number: int) -> None:
        try:
            if number == 3:
                charge(ledger, "0.1", request="known")
            else:
                said[number] = charge(ledger, "4", question_key=str(number))
        except (BudgetError, QueryError) as error:
            said[number] = error

    with opened(path) as ledger:
        charge(ledger, "1", request="known")
        for other in together(path, 4, work):
            other.close()
        assert sorted(type(outcome).__name__ for outcome in said.values()) == [
            "BudgetError",
            "QueryError",
            "str",
            "str",
        ]
        assert ledger.spent(SPACE) == 9
        assert len(ledger.refusals()) == 1
        assert ledger.verify().sound


def lay_and_die(path: Path, text: str) -> None:
    turns = Turns(path)
    assert turns.lay(text) is not None
    os.kill(os.getpid(), signal.SIGKILL)


def request_text(ledger: Ledger) -> tuple[str, str]:
    """A charge as it would lie in a slot, and its id."""
    made = ledger._question(
        space=SPACE, dataset="visits", analyst="ada", question_key="k", sql="s", epsilon=Fraction(1), cost=None,
        event="{}", details="{}", policy=None, data_version=None, request=None, block=None,
    )  # fmt: skip
    return made.text, made.id


def test_what_a_dead_process_laid_down_is_not_charged(path):
    with opened(path) as ledger:
        text, charge_id = request_text(ledger)
        with opened(path) as keeper:
            keeper.data_version(SPACE, "visits")  # somebody keeps the file from going away
            assert wait(fork(lambda: lay_and_die(path, text))) == [-signal.SIGKILL]
            charge(ledger, 1)
        assert charge_id not in {entry.id for entry in ledger.history()}
        assert ledger.spent(SPACE) == 1


def test_a_leader_that_dies_after_its_commit_leaves_no_charge_twice(path, monkeypatch):
    """It recorded a waiting charge and was killed before it said so: the waiting one finds it in the ledger."""
    holder = Turns(path)
    done: list[str] = []
    with opened(path) as ledger:
        assert holder.take()
        waiter = threading.Thread(target=lambda: done.append(charge(ledger, 1, question_key="waits")))
        waiter.start()
        waiting(holder)
        # A fork would let go of the waiting thread's slot, so the one that dies is played here.
        leader = Ledger(Database(path), path)
        with monkeypatch.context() as patch:
            turns = leader._database._turns
            patch.setattr(turns, "take", lambda: turns._open() is not None)
            patch.setattr(turns, "leave", lambda: None)
            patch.setattr(turns, "answer", lambda _: None)  # it dies here
            charge(leader, 1, question_key="leads")
        assert done == []
        assert len(ledger.history()) == 2
        holder.leave()
        waiter.join()
        assert {entry.id for entry in ledger.history()} >= set(done)
        assert (len(ledger.history()), ledger.spent(SPACE)) == (2, 2)
        assert ledger.verify().problems == ()
        leader.close()
    holder.close()


def test_a_slot_that_changed_hands_tells_its_new_owner_nothing(path):
    turns = Turns(path)
    slot = turns.lay("text")
    assert turns.state(slot, "a" * 32) == WAITING
    turns.answer([(slot.number, "b" * 32, True)])
    assert turns.state(slot, "a" * 32) == RETURNED
    assert turns.state(slot, "b" * 32) == DONE
    turns.answer([(slot.number, "a" * 32, False)])
    assert turns.state(slot, "a" * 32) == RETURNED
    turns.clear(slot)
    assert turns.state(slot, "a" * 32) == FREE
    turns.close()
    assert turns.state(slot, "a" * 32) == RETURNED


def test_a_request_is_read_as_it_was_made_and_anothers_is_refused():
    cost = Cost(None, Fraction(1, 7), Fraction(1, 9))
    made = Request.of("question", space=SPACE, analyst="ada", epsilon=Fraction(1, 3), cost=cost, sql="s",
                      details='{"neighbours": "replace"}', max_failures=3, max_failures_all=10, once=True)  # fmt: skip
    again = Request.read(made.text)
    assert replace(again, written="") == made
    assert (again.spend, again.neighbours, again.once) == (Total.of(cost), "replace", True)
    row, rest = made.text.split("\n")
    said, columns = json.loads(rest), json.loads(row)
    for others, more in (
        (columns[:-1], said),
        ([*columns, None], said),
        (columns, ["3", *said[1:]]),
        (columns, [3, None, *said[2:]]),
        (columns, said[:-1]),
    ):
        with pytest.raises((ValueError, TypeError)):
            Request.read(f"{json.dumps(others)}\n{json.dumps(more)}")


def test_a_torn_text_is_left_alone(path):
    one, two = Turns(path), Turns(path)
    assert two.take()
    slot = one.lay("a text that is torn")
    assert [text for _, text, _ in two.waiting(())] == ["a text that is torn"]
    with open(path.with_name("b.db-turns"), "r+b") as file:
        file.seek(4096 + slot.number * 16384 + 12)
        file.write(b"X")
    assert two.waiting(()) == []
    assert one.lay("x" * 20_000) is None
    one.close()
    two.close()


def test_without_the_file_of_turns_everybody_still_charges(path):
    path.with_name("b.db-turns").mkdir()  # it cannot be opened
    assert wait(*(fork(lambda: many(path, 20)) for _ in range(4))) == [0] * 4
    with opened(path) as ledger:
        assert ledger.spent(SPACE) == Fraction(80, 100)
        assert ledger.verify().sound


def many(path: Path, count: int) -> None:
    with opened(path) as ledger:
        for _ in range(count):
            charge(ledger, "0.01")


def test_whoever_holds_the_turn_for_too_long_is_said(path):
    holder = Turns(path)
    with opened(path, patience=0.05) as ledger:
        assert holder.take()
        with pytest.raises(PolicyError, match="held by another process for too long"):
            charge(ledger, 1)
        with pytest.raises(PolicyError, match="held by another process for too long"):
            ledger.data_version(SPACE, "visits")
        assert ledger.remaining(SPACE) == 10
        holder.leave()
        charge(ledger, 1)
    holder.close()


def killed_while_leading(path: Path, kills: int) -> None:
    """Children charge without end and are killed, again and again; nothing that was told is lost, none made twice."""
    read, write = os.pipe()

    def child() -> None:
        with opened(path) as ledger:
            while True:
                os.write(write, charge(ledger, "0.0001", analyst=str(os.getpid())).encode() + b"\n")

    children = [fork(child) for _ in range(4)]
    for number in range(kills):
        time.sleep(0.01 + number * 37 % 20 / 1000)
        os.kill(children[0], signal.SIGKILL)
        wait(children.pop(0))
        children.append(fork(child))
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    wait(*children)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = [line for line in pipe.read().split() if len(line) == 32]
    with opened(path) as ledger:
        made = [entry.id for entry in ledger.history()]
        assert len(told) == len(set(told)) > 0
        assert set(told) <= set(made)
        assert ledger.spent(SPACE) == len(made) * Fraction(1, 10_000)
        assert ledger.verify().problems == ()
        charge(ledger, "0.1")


def test_killed_while_leading_others_nothing_told_is_lost(path):
    killed_while_leading(path, 15)


@pytest.mark.soak
def test_killed_a_thousand_times_while_leading_nothing_told_is_lost(tmp_path):
    Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1000)}).close()
    BUDGETS[SPACE] = Budget(1000)
    try:
        killed_while_leading(tmp_path / "b.db", 1000)
    finally:
        BUDGETS[SPACE] = Budget(10)
