"""Threads and processes write in the order in which they came; whoever dies leaves the queue at once."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger import fair_queue
from hubbub.ledger.budget import Budget
from hubbub.ledger.fair_queue import FairLock, Tickets
from hubbub.ledger.interrupts import Undisturbed
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, wait

BUDGETS = {SPACE: Budget(10)}


def opened(path: Path, **more: object) -> Ledger:
    return Ledger.open(path, budgets=BUDGETS, max_failures=10**9, max_failures_all=10**9, **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path):
    opened(tmp_path / "b.db").close()
    return tmp_path / "b.db"


def enter(tickets: Tickets, patience: float = 30.0) -> bool:
    return tickets.enter(Undisturbed(), time.monotonic() + patience)


def drawn(path: Path) -> int:
    """How many tickets were drawn."""
    with suppress(FileNotFoundError):
        return struct.unpack("<q", path.with_name("b.db-queue").read_bytes()[:8])[0]
    return 0


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def in_order(path: Path, ledgers: list[Ledger], waiting: Callable[[int], bool]) -> list[str]:
    """Threads that charge while another has the turn, each once the one before it waits; in what order they did."""
    holder = Tickets(path)
    assert enter(holder)
    threads = []
    for number, ledger in enumerate(ledgers):
        threads.append(threading.Thread(target=charge, args=(ledger, "0.1"), kwargs={"analyst": str(number)}))
        threads[-1].start()
        until(lambda number=number: waiting(number + 1))
    holder.leave()
    for thread in threads:
        thread.join()
    with Ledger.inspect(path) as found:
        return [entry.analyst for entry in found.record.history()]


def test_whoever_came_first_charges_first(path):
    ledgers = [opened(path) for _ in range(8)]
    before = drawn(path)
    assert in_order(path, ledgers, lambda count: drawn(path) == before + 1 + count) == list("01234567")
    for ledger in ledgers:
        ledger.close()
    assert os.listdir(path.parent) == ["b.db"]


def test_threads_of_one_ledger_charge_in_the_order_in_which_they_came(path):
    with opened(path) as ledger:
        lock, before = ledger._handle.store._lock, drawn(path)

        def waiting(count: int) -> bool:
            # The first has its ticket, behind the holder's: before that it had the lock to read, and gave it back.
            return drawn(path) == before + 2 and len(lock._waiting) == count - 1

        assert in_order(path, [ledger] * 6, waiting) == list("012345")


def shares(path: Path, charges: int) -> list[int]:
    """Eight processes charge without pause until there are so many charges; how many each got."""
    read, write = os.pipe()

    def child(number: int) -> None:
        with opened(path, patience=120.0) as ledger:
            ledger.balance.remaining(SPACE)
            os.write(write, b"x")
            while True:
                charge(ledger, "0.0001", analyst=str(number))

    children = [fork(lambda number=number: child(number)) for number in range(8)]
    for _ in children:
        os.read(read, 1)  # all of them are there
    with Ledger.inspect(path) as ledger:
        first = len(ledger.record.history())
        until(lambda: len(ledger.record.history()) >= first + charges)
        found = Counter(entry.analyst for entry in ledger.record.history()[first : first + charges])
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    wait(*children)
    os.close(read)
    os.close(write)
    return sorted(found[str(number)] for number in range(8))


def test_of_eight_processes_that_charge_without_pause_each_gets_its_share(path):
    """A queue gives 25 of 200 to each. Without it some got none, and one got 162."""
    assert shares(path, 200)[0] >= 12


def test_a_process_that_is_killed_in_the_queue_leaves_it_at_once(path):
    def child() -> None:
        assert enter(Tickets(path))
        os.kill(os.getpid(), signal.SIGKILL)

    holder = Tickets(path)
    assert enter(holder)  # the file stays
    holder.leave()
    assert wait(fork(child)) == [-signal.SIGKILL]
    begun = time.monotonic()
    with opened(path, patience=200.0) as ledger:
        charge(ledger, 1)
    assert time.monotonic() < begun + 60


def test_one_that_was_stopped_with_its_ticket_holds_nobody_up_for_long(path):
    """SQLite's lock decides: after half of its patience a charge goes there, past the queue."""
    read, write = os.pipe()

    def child() -> None:
        tickets = Tickets(path)
        enter(tickets)
        os.write(write, b"x")
        time.sleep(600)

    pid = fork(child)
    os.read(read, 1)
    os.kill(pid, signal.SIGSTOP)
    with opened(path, patience=0.4) as ledger:
        begun = time.monotonic()
        charge(ledger, 1)
        assert time.monotonic() > begun + 0.19
    os.kill(pid, signal.SIGKILL)
    wait(pid)
    os.close(read)
    os.close(write)


def test_whoever_holds_sqlites_lock_for_too_long_is_said(path):
    with opened(path) as other, opened(path, patience=0.05) as ledger:
        with other._handle.writing():
            with pytest.raises(PolicyError, match="held by another process for too long"):
                charge(ledger, 1)
            with pytest.raises(PolicyError, match="held by another process for too long"):
                ledger.versions.data_version(SPACE, "visits")
            assert ledger.balance.remaining(SPACE) == 10
        charge(ledger, 1)


def many(path: Path, count: int) -> None:
    for _ in range(count):
        with opened(path) as ledger:
            charge(ledger, "0.01")


def test_the_file_of_the_queue_comes_and_goes_and_every_charge_is_made(path):
    """Whoever closes removes it where nobody queues; one that opened it just before draws its ticket anew."""
    assert wait(*(fork(lambda: many(path, 10)) for _ in range(4))) == [0] * 4
    with opened(path) as ledger:
        assert ledger.balance.spent(SPACE) == Fraction(40, 100)
        assert ledger.record.verify().sound
    assert os.listdir(path.parent) == ["b.db"]


def test_a_ticket_of_a_file_that_was_removed_is_drawn_anew(path, monkeypatch):
    real, times = fair_queue._lock, []

    def removed(file: int, start: int, length: int = 1) -> None:
        times.append(start)
        if len(times) == 1:
            path.with_name("b.db-queue").unlink()
        real(file, start, length)

    monkeypatch.setattr(fair_queue, "_lock", removed)
    tickets = Tickets(path)
    assert enter(tickets)
    assert len(times) == 2
    assert os.fstat(tickets._file).st_nlink == 1
    tickets.remove()  # not while one queues oneself
    other = Tickets(path)
    other.remove()  # nor another
    assert path.with_name("b.db-queue").exists()
    tickets.leave()
    other.remove()
    assert not path.with_name("b.db-queue").exists()


@pytest.mark.parametrize("content", [b"", b"abc", b"\xff" * 8, struct.pack("<q", 2**62), b"\0" * 8])
def test_whatever_stands_in_the_file_everybody_gets_a_ticket_of_their_own(path, content):
    file = path.with_name("b.db-queue")
    file.write_bytes(content)
    one, two = Tickets(path), Tickets(path)
    assert enter(one)
    file.write_bytes(content)
    assert two._ticket(Undisturbed(), time.monotonic() + 30) is not None
    ahead, behind = (fair_queue._is_locked(tickets._file, 10) for tickets in (one, two))
    assert (ahead, behind) == (True, True)
    two.leave()
    one.leave()


@pytest.mark.parametrize("how", ["a folder", "no such locks", "locks refused"])
def test_without_the_queue_everybody_still_charges(path, monkeypatch, how):
    def refused(*_: object) -> int:
        raise OSError(38, "Function not implemented")

    if how == "a folder":
        path.with_name("b.db-queue").mkdir()
    elif how == "no such locks":
        monkeypatch.setattr(fair_queue, "_KNOWN", False)
    else:
        monkeypatch.setattr(fcntl, "fcntl", refused)
    assert wait(*(fork(lambda: many(path, 5)) for _ in range(4))) == [0] * 4
    with opened(path) as ledger:
        assert ledger.balance.spent(SPACE) == Fraction(20, 100)
        assert ledger.record.verify().sound


def test_a_handler_that_uses_the_ledger_while_it_waits_does_not_wait_for_itself(path):
    """In the queue of the processes, and for the lock of the threads."""
    with opened(path, patience=120.0) as ledger:
        holder = Tickets(path)
        for hold, leave in (
            (lambda: enter(holder), holder.leave),
            (ledger._handle.store._lock.acquire, ledger._handle.store._lock.release),
        ):
            held, over = threading.Event(), threading.Event()

            def keep(hold=hold, leave=leave, held=held, over=over) -> None:
                hold()
                held.set()
                over.wait(60)
                leave()

            def come(*_: object) -> None:
                charge(ledger, "0.1", analyst="handler")

            threads = [threading.Thread(target=keep), threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))]
            before = signal.signal(signal.SIGUSR1, come)
            try:
                threads[0].start()
                held.wait(60)
                threads.append(threading.Timer(0.5, over.set))
                for thread in threads[1:]:
                    thread.start()
                begun = time.monotonic()
                charge(ledger, "0.1")
                assert time.monotonic() < begun + 50
                for thread in threads:
                    thread.join()
            finally:
                signal.signal(signal.SIGUSR1, before)
        assert Counter(entry.analyst for entry in ledger.record.history()) == {"ada": 2, "handler": 2}


def test_a_fork_finds_the_lock_free_whoever_held_it():
    lock, held, over = FairLock(), threading.Event(), threading.Event()

    def keep() -> None:
        with lock.held(Undisturbed()):
            held.set()
            over.wait(60)

    thread = threading.Thread(target=keep)
    thread.start()
    held.wait(60)

    def child() -> None:
        lock.acquire(until=time.monotonic() + 30)
        lock.acquire()
        lock.release()
        lock.release()
        assert (lock._owner, lock._depth) == (None, 0)

    assert wait(fork(child)) == [0]
    with pytest.raises(TimeoutError):
        lock.acquire(until=time.monotonic())
    assert not lock._waiting
    over.set()
    thread.join()
    lock.acquire()
    lock.release()


def test_a_child_shares_and_reads_whatever_another_thread_was_at(place):
    """The one waited for ever for a thread that it does not have; the other, of Postgres, for all of its patience."""
    with Ledger.open(place, budgets={SPACE: Budget(5)}, patience=20) as ledger:
        made = charge(ledger, 1)
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, "{}")
        release = ledger.record.release(made)
        held, over = threading.Event(), threading.Event()

        def keep() -> None:
            with ledger.charges._sharing:
                held.set()
                over.wait(60)

        def read() -> None:
            while not over.is_set():
                ledger.balance.total(SPACE)

        def child() -> None:
            signal.alarm(10)
            ledger.charges.share(release, "bob")

        threads = [threading.Thread(target=work) for work in (keep, read)]
        for thread in threads:
            thread.start()
        held.wait(60)
        try:
            for _ in range(3):
                assert wait(fork(child)) == [0]
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert ledger.balance.total(SPACE, "analyst:bob").epsilon == 1


def killed_while_charging(path: Path, kills: int) -> None:
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
        made = [entry.id for entry in ledger.record.history()]
        assert len(told) == len(set(told)) > 0
        assert set(told) <= set(made)
        assert ledger.balance.spent(SPACE) == len(made) * Fraction(1, 10_000)
        assert ledger.record.verify().problems == ()
        charge(ledger, "0.1")


def test_killed_in_the_queue_or_at_its_head_nothing_told_is_lost(path):
    killed_while_charging(path, 15)


@pytest.mark.soak
def test_killed_a_thousand_times_in_the_queue_nothing_told_is_lost(tmp_path):
    Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1000)}).close()
    BUDGETS[SPACE] = Budget(1000)
    try:
        killed_while_charging(tmp_path / "b.db", 1000)
    finally:
        BUDGETS[SPACE] = Budget(10)


def test_a_lock_that_is_given_at_the_end_of_a_wait_is_held_once(monkeypatch):
    """Between the end of a slice of waiting and the look at who owns it, whoever held it may have given it on."""
    lock, plain = FairLock(), threading.Lock

    class Late:
        """Says that the wait is over; before that is looked at, the other one gives the lock on."""

        def __init__(self):
            self._lock, self._waits = plain(), 0

        def acquire(self, timeout=None):
            if timeout is None:
                return self._lock.acquire()
            self._waits += 1
            if self._waits == 1:
                given_on.set()
                released.wait(5)
                return False
            return self._lock.acquire(timeout=timeout)

        def release(self):
            self._lock.release()

    given_on, released, told = threading.Event(), threading.Event(), []

    def other():
        monkeypatch.setattr(threading, "Lock", Late)
        try:
            lock.acquire()
        finally:
            monkeypatch.setattr(threading, "Lock", plain)
        told.append(lock._depth)
        lock.release()

    lock.acquire()
    waiting = threading.Thread(target=other)
    waiting.start()
    assert given_on.wait(5)
    lock.release()
    released.set()
    waiting.join(5)
    assert told == [1]
    assert lock._owner is None
