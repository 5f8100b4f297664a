"""What takes too long is given up: also where it catches every exception, and never in what its thread does next."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time

import pytest

import hubbub as hb
from hubbub.ledger.budget import Budget
from hubbub.service import clerk
from hubbub.service.clerk import Clerk
from hubbub.service.in_time import TooLong, in_time
from hubbub.session.options import Options
from service.helpers import empty


def work(seconds: float) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(100))
    return "done"


def test_what_is_in_time_is_done_and_its_own_errors_are_its_own():
    assert in_time(60, lambda: work(0)) == "done"
    with pytest.raises(KeyError):
        in_time(60, lambda: {}["none"])
    with pytest.raises(TooLong):
        in_time(0.05, lambda: work(60))


def test_what_catches_every_exception_and_goes_on_is_given_up_too():
    tried = []

    def stubborn() -> str:
        for _ in range(3):
            try:
                work(60)
            except BaseException as error:
                tried.append(type(error).__name__)
        return work(60)

    with pytest.raises(TooLong):
        in_time(0.05, stubborn)
    assert tried == ["_GivenUp"] * 3
    assert work(0.6) == "done"  # it came every quarter of a second


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_ends_too_late_is_given_up_even_where_the_exception_was_lost():
    """One that comes in a callback of the garbage collector is dropped: what ended too late was then answered."""

    class Gone:
        def __del__(self) -> None:
            work(0.1)  # what is raised here is dropped, as in a callback

    def collected() -> str:
        gone = Gone()
        del gone
        return "done"

    with pytest.raises(TooLong):
        in_time(0.02, collected)


def test_nothing_is_given_up_in_what_a_thread_does_next():
    """An act that ends at the moment when it would be given up, a few hundred times."""
    coin = random.Random(7)
    ended = []
    for _ in range(300):
        try:
            ended.append(in_time(0.002, lambda: work(coin.uniform(0.001, 0.003))))
        except TooLong:
            ended.append("given up")
    assert set(ended) <= {"done", "given up"}
    assert work(0.3) == "done"
    assert threading.active_count() < 50


AFTERWARDS = """
import sys, time
from hubbub.service.in_time import TooLong, in_time

def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(100))

def once(seconds):
    try:
        in_time(seconds, lambda: work(0.01))
    except TooLong:
        pass

for seconds in (60, 0.001, *[0.01] * 50):  # in time, late, and as it ends
    once(seconds)
    sys.setprofile(lambda frame, event, arg: None)
    work(0)
    sys.setprofile(None)
print("went on")
"""


def test_a_thread_that_was_given_up_in_can_be_profiled_afterwards():
    """An exception that is taken back leaves CPython looking for it for ever: a profiled function never began."""
    done = subprocess.run([sys.executable, "-c", AFTERWARDS], capture_output=True, text=True, timeout=60)
    assert done.stdout == "went on\n", done.stderr


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS n FROM v WHERE {'+'.join(['x'] * 49_000)} < 3",  # it is read for long
        "SELECT COUNT(*) AS n FROM v WHERE " + " OR ".join(["x < 1"] * 300),  # or planned for long
    ],
)
def test_a_question_that_takes_too_long_to_plan_is_told_so_and_not_that_it_cannot_be_read(monkeypatch, sql):
    monkeypatch.setattr(clerk, "_PATIENCE", 0.02)
    made = object.__new__(Clerk)
    made._planning = threading.Lock()
    plan = lambda: empty().ask(sql, Options.from_wire({"epsilon": "1"}), lambda _: Budget(30))  # noqa: E731
    with pytest.raises(hb.QueryError, match=r"longer than 0\.02 seconds to plan"):
        made._in_time(plan)
    assert not made._planning.locked()
