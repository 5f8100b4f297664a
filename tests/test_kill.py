"""kill -9 at random moments of a question: never an answer without its charge, never a stuck ledger."""

from __future__ import annotations

import os
import random
import signal
import time
from fractions import Fraction
from pathlib import Path

import pytest

import hubbub.engines.duckdb.engine  # noqa: F401  (the parent is warm: children import nothing)
from hubbub.ledger.store import Ledger
from people import session

SQL = "SELECT ward, COUNT(*) AS c, AVG(age) AS a FROM visits GROUP BY ward"
EPSILON = Fraction(1, 1000)


def ask_for_ever(ledger: Path, out: int) -> None:
    """A child: open a session, say so, ask again and again, and hand each answer out at once."""
    with session(epsilon=1000, ledger=ledger) as s:
        os.write(out, b"open\n")
        while True:
            release = s.sql(SQL, epsilon=EPSILON, fresh=True)
            os.write(out, f"{release.charge_id} {release.rows()[0][1]}\n".encode())


def answers_before_a_kill(ledger: Path, wait: float, *, answered: bool = False) -> list[str]:
    """Fork a child, kill it `wait` seconds after its session stands; the charge ids it handed out.

    answered: leave it alone until it has answered once, however slow the machine is.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            ask_for_ever(ledger, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.readline() == b"open\n"
        first = pipe.readline().decode().split("\n")[:1] if answered else []
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        lines = first + pipe.read().decode().split("\n")
    return [line.split()[0] for line in lines[:-1]]


def kill_many(tmp_path: Path, times: int) -> set[str]:
    """Kill `times` children over one ledger; the states in which charges were left behind."""
    ledger = tmp_path / "budget.db"
    moments = random.Random(20261121)
    seen: set[str] = set()
    handed_out: list[str] = []
    with session(epsilon=1000, ledger=ledger) as s:
        s.sql(SQL, epsilon=EPSILON)
    for number in range(times):
        handed_out += answers_before_a_kill(ledger, moments.uniform(0, 0.08), answered=number % 10 == 0)
        with Ledger.inspect(ledger) as book:
            entries = {entry.id: entry for entry in book.record.history()}
            (space,) = book.balance.spaces()
            assert book.balance.spent(space) == len(entries) * EPSILON
        with Ledger.manage(ledger) as book:  # what died undrawn counts toward the lock, and a steward clears it
            for analyst in {entry.analyst for entry in entries.values()}:
                book.steward.unlock(space, analyst, author="steward")
            book.steward.unlock_all(space, author="steward")
        seen |= {entry.state for entry in entries.values()}
        for charge in handed_out:
            assert entries[charge].state == "shown"
            assert entries[charge].epsilon == EPSILON
    with session(epsilon=1000, ledger=ledger) as s:
        assert s.sql(SQL, epsilon=EPSILON, fresh=True).charged
    assert handed_out  # the children did get to answer
    return seen


def test_no_kill_leaves_an_answer_without_its_charge(tmp_path: Path) -> None:
    kill_many(tmp_path, 20)


@pytest.mark.soak
def test_no_kill_of_two_hundred_does(tmp_path: Path) -> None:
    seen = kill_many(tmp_path, 200)
    assert {"charged", "lost", "drawing"} & seen, "no kill fell between charge and answer"
