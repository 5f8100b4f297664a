"""Ctrl-C at any moment leaves no lock held: others charge on, in this process and in any other."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.charging import Request, record
from hubbub.ledger.fair_queue import Tickets
from hubbub.ledger.interrupts import Undisturbed
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, apart, charge, fork, resume, wait

BUDGETS = {SPACE: Budget(10**6)}
SIGNALS, MANY_SIGNALS = 120, 3000


def interrupted(place: str, signals: int) -> None:
    """A child's main thread charges, reads and grants under a rain of real signals; a thread of it charges beside."""
    ledger = Ledger.open(place, budgets=BUDGETS, patience=60)
    armed, beside = False, 0

    def come(*_: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    def charge_beside() -> None:
        nonlocal beside
        while True:
            charge(ledger, "0.001", analyst="beside")
            beside += 1

    def rain() -> None:
        for number in range(signals):
            time.sleep(0.001 + number * 61 % 97 / 97 * 0.015)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    signal.signal(signal.SIGINT, come)
    threading.Thread(target=charge_beside, daemon=True).start()
    rainer = threading.Thread(target=rain, daemon=True)
    rainer.start()
    came = 0
    while rainer.is_alive():
        try:
            armed = True
            for number in range(1000):
                charge(ledger, "0.001", question_key=str(number))
                ledger.balance.remaining(SPACE)
                ledger.versions.data_version(SPACE, "visits", fingerprint=str(number))
        except KeyboardInterrupt:
            came += 1
        armed = False
    assert came > 0
    # The main thread rests; whatever it left held would stop the other one now.
    before, deadline = beside, time.monotonic() + 60
    while beside < before + 3:
        assert time.monotonic() < deadline, "the other thread hangs"
        time.sleep(0.01)
    assert signal.getsignal(signal.SIGINT) is come

    def elsewhere() -> None:
        with Ledger.open(place, budgets=BUDGETS, patience=60) as other:
            charge(other, "0.001", analyst="elsewhere")

    assert wait(fork(elsewhere)) == [0]
    assert ledger.record.verify().problems == ()


def test_a_rain_of_interrupts_leaves_no_lock_held(tmp_path):
    """Before, after some hundred of them the other thread stood still for ever, whatever the patience."""
    assert wait(fork(lambda: interrupted(str(tmp_path / "b.db"), SIGNALS))) == [0]


@pytest.mark.soak
def test_a_long_rain_of_interrupts_leaves_no_lock_held(tmp_path):
    assert wait(fork(lambda: interrupted(str(tmp_path / "b.db"), MANY_SIGNALS))) == [0]


class At:
    """Sends this process a real signal just before the n-th step of Python that runs in the ledger's code."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: object, event: str, _: object) -> object:
        name = Path(frame.f_code.co_filename)  # type: ignore[attr-defined]
        if name.parent.name != "ledger" or name.parent.parent.name != "hubbub":
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGINT)
        return self


@pytest.mark.parametrize("part", range(4))
def test_an_interrupt_before_any_line_of_a_charge_leaves_no_lock_held(tmp_path, part):
    """Every line that a charge runs in the ledger, one after the other."""
    path = tmp_path / "b.db"
    import sys

    with (
        Ledger.open(path, budgets=BUDGETS, patience=1) as ledger,
        Ledger.open(path, budgets=BUDGETS, patience=1) as two,
    ):
        ledger.charges._looked = two.charges._looked = time.monotonic() + 10**6
        charge(ledger, "0.001")
        number = part + 1
        while True:
            at, done = At(number), False
            try:
                sys.settrace(at)
                try:
                    apart(lambda number=number: charge(ledger, "0.001", question_key=str(number)))
                    done = at.left > 0
                finally:
                    sys.settrace(None)
            except KeyboardInterrupt:
                pass
            got: list[object] = []
            thread = threading.Thread(
                target=lambda got=got: got.extend((ledger.balance.remaining(SPACE), charge(two, "0.001"))), daemon=True
            )
            thread.start()
            thread.join(20)
            assert len(got) == 2, f"line {number}"
            if done:
                break
            number += 4 * 4
        assert number > 150
        assert ledger.record.verify().problems == ()


@pytest.mark.usefixtures("ctrl_c")
def test_what_comes_meanwhile_is_seen_to_at_the_end_once():
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
    try:
        with Undisturbed(), Undisturbed() as inner:
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.01)
            assert came == []
            inner.check()
            assert came == [signal.SIGUSR1]
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.01)
        assert came == [signal.SIGUSR1] * 2

        def hit() -> None:
            with Undisturbed():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
                came.append(0)

        with pytest.raises(KeyboardInterrupt):
            hit()
        assert came[-1] == 0
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_thread_that_waits_for_another_says_so_after_its_patience(place):
    with Ledger.open(place, budgets=BUDGETS, patience=0.2) as ledger:
        inside, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with ledger._handle.reading():
                inside.set()
                leave.wait(30)

        holder = threading.Thread(target=hold)
        holder.start()
        inside.wait(30)
        begun = time.monotonic()
        for step in (
            lambda: charge(ledger, "0.1"),
            lambda: ledger.balance.remaining(SPACE),
            lambda: ledger.charges.mark_lost(),
        ):
            with pytest.raises(PolicyError, match="for too long"):
                step()
        assert time.monotonic() < begun + 20
        leave.set()
        holder.join()
        charge(ledger, "0.1")


@pytest.mark.usefixtures("ctrl_c")
def test_who_waits_in_the_queue_is_interrupted_at_once_and_leaves_it(tmp_path):
    """For the lock of the ledger's threads, then for its ticket."""
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS, patience=600) as ledger:
        lock, holder = ledger._handle.store._lock, Tickets(tmp_path / "b.db")

        def hold_the_lock(held: threading.Event, over: threading.Event) -> None:
            with lock.held(Undisturbed()):
                held.set()
                over.wait(60)

        def interrupted(step: Callable[[], object], over: threading.Event) -> None:
            def interrupt() -> None:
                os.kill(os.getpid(), signal.SIGINT)
                threading.Timer(0.2, over.set).start()  # to let go of a charge takes a look at the ledger

            threading.Timer(0.1, interrupt).start()
            begun = time.monotonic()
            with pytest.raises((KeyboardInterrupt, HubbubError)) as found:
                step()
            assert found.type is KeyboardInterrupt
            assert time.monotonic() < begun + 40
            over.wait(60)

        for held in (True, False):
            for step in (lambda: charge(ledger, "0.1"), lambda: ledger.steward.refresh(SPACE, "visits")):
                got, over = threading.Event(), threading.Event()
                thread = threading.Thread(target=hold_the_lock, args=(got, over))
                if held:
                    thread.start()
                    got.wait(60)
                else:
                    holder.enter(Undisturbed(), time.monotonic())
                interrupted(step, over)
                if held:
                    thread.join()
                else:
                    holder.leave()
                assert (lock._owner, list(lock._waiting), ledger._handle.store._queue._file) == (None, [], None)
        charge(ledger, "0.1")


@pytest.mark.parametrize("error", [KeyboardInterrupt, PolicyError])
def test_what_a_server_recorded_after_it_was_given_up_is_withdrawn_and_is_no_death(tmp_path, monkeypatch, error):
    """The answer to a COMMIT was lost, the charge could not be looked up, and the server records it afterwards."""
    place = tmp_path / "l.db"
    mine, other = (Ledger.open(place, budgets=BUDGETS) for _ in "ab")
    sent: list[Request] = []

    def lost(made: Request) -> None:
        sent.append(made)
        mine.charges._doubtful.add(made.id)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(mine.charges, "_recorded", lost)
        with pytest.raises(error):
            charge(mine, "0.1")
    assert not mine.record.history()
    with other._handle.writing() as writer:
        books = other.charges._books.begin(writer.connection, writer.head)
        assert record(writer, books, sent[0], other.charges._under_way.look(writer.connection)) is None
    assert [entry.state for entry in other.record.history()] == ["charged"]
    charge(mine, "0.2", question_key="another")
    assert [entry.state for entry in other.record.history()] == ["withdrawn", "charged"]
    mine.close()
    assert not other.balance.failures(SPACE).get("ada", (0, 3))[0]
    other.close()


def test_a_charge_is_given_up_at_the_end_where_that_failed_before(tmp_path, monkeypatch):
    place = tmp_path / "l.db"
    ledger = Ledger.open(place, budgets=BUDGETS)
    made = charge(ledger, "0.1")

    def refused(*_: object) -> bool:
        raise PolicyError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(ledger.charges, "_withdraw", refused)
        ledger.charges.let_go(made)
    ledger.close()
    with Ledger.inspect(place) as found:
        assert [entry.state for entry in found.record.history()] == ["withdrawn"]


@pytest.fixture
def interrupting(monkeypatch, ctrl_c):
    """Makes Ctrl-C come while the next transaction that writes is being committed: it is raised once that stands."""

    def at_the_next_commit(ledger):
        real = ledger._handle.store._after_commit

        def once():
            monkeypatch.setattr(ledger._handle.store, "_after_commit", real)
            os.kill(os.getpid(), signal.SIGINT)
            real()

        monkeypatch.setattr(ledger._handle.store, "_after_commit", once)

    return at_the_next_commit


def test_a_free_retry_that_is_interrupted_at_its_commit_is_withdrawn(tmp_path, interrupting):
    place = tmp_path / "l.db"
    ledger = Ledger.open(place, budgets=BUDGETS)
    ledger.charges.let_go(charge(ledger, "0.1"))
    interrupting(ledger)
    with pytest.raises(KeyboardInterrupt):
        resume(ledger, space=SPACE, question_key="k", analyst="ada", epsilon=Fraction(1, 10))
    assert [entry.state for entry in ledger.record.history()] == ["withdrawn"]
    ledger.close()


@pytest.mark.parametrize("plan", [None, "two questions"])
def test_a_block_that_is_interrupted_at_its_commit_gives_its_budget_back(tmp_path, interrupting, plan):
    with Ledger.open(tmp_path / "l.db", budgets={SPACE: Budget(1)}) as ledger:
        interrupting(ledger)
        with pytest.raises(KeyboardInterrupt):
            ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1), plan=plan)
        assert not ledger.record.open_blocks()
        assert ledger.balance.remaining(SPACE) == 1
