"""Many processes, threads and forks share a ledger; any of them may be killed at any moment."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import BudgetError, PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, wait


def opened(path: Path | str, epsilon: str = "1") -> Ledger:
    # Their charges stay open, of one analyst in many processes: more than may fail.
    return Ledger.open(path, budgets={SPACE: Budget(epsilon)}, max_failures=10**9, max_failures_all=10**9)


def spend(place: str, epsilon: Fraction, won: int) -> None:
    """Charge until refused; a byte to `won` for each."""
    with opened(place) as ledger:
        try:
            while True:
                charge(ledger, epsilon)
                os.write(won, b"x")
        except BudgetError:
            pass


def spent_together(place: str, processes: int, charges: int) -> None:
    """Many processes race for one budget: exactly `charges` are won, none is lost, none is over."""
    epsilon = Fraction(1, charges)
    opened(place).close()
    read, write = os.pipe()
    children = [fork(lambda: spend(place, epsilon, write)) for _ in range(processes)]
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert len(pipe.read()) == charges
    assert wait(*children) == [0] * processes
    with opened(place) as ledger:
        assert (ledger.balance.remaining(SPACE), len(ledger.record.history())) == (0, charges)
        assert len(ledger.record.refusals()) == processes
        assert ledger.record.verify().problems == ()


def test_sixteen_processes_spend_the_last_of_it_exactly(place):
    spent_together(place, 16, 200)


@pytest.mark.soak
def test_sixteen_processes_spend_twenty_thousand_charges_exactly(place):
    spent_together(place, 16, 20_000)


@pytest.mark.parametrize("attempt", range(2))
def test_eight_processes_create_one_ledger(place, attempt):
    read, write = os.pipe()

    def start() -> None:
        os.read(read, 1)  # all eight stand here until the pipe closes
        with opened(place) as ledger:
            charge(ledger, "0.125")
            ledger.versions.data_version(SPACE, "visits")

    def child() -> None:
        os.close(write)
        start()

    children = [fork(child) for _ in range(8)]
    os.close(write)
    assert wait(*children) == [0] * 8
    os.close(read)
    with opened(place) as ledger:
        assert ledger.balance.remaining(SPACE) == 0
        assert len(ledger.record.history()) == 8
        assert ledger.record.verify().sound


def test_eight_processes_with_two_budgets_agree_on_one(tmp_path):
    def child(epsilon: str) -> None:
        try:
            opened(tmp_path / "b.db", epsilon).close()
        except PolicyError:
            os._exit(7)

    codes = wait(*(fork(lambda e=e: child(e)) for e in ("1", "2") * 4))
    assert sorted(codes) == [0] * 4 + [7] * 4
    assert len(set(codes[::2])) == len(set(codes[1::2])) == 1


def test_threads_share_a_ledger(place):
    ledger = opened(place)
    won: list[str] = []

    def work() -> None:
        try:
            while True:
                won.append(charge(ledger, "0.02"))
        except BudgetError:
            pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(set(won)) == 50
    ledger.close()


def test_a_fork_carries_no_open_file_and_both_sides_go_on(tmp_path):
    ledger = opened(tmp_path / "b.db")
    charge(ledger, "0.25")

    def child() -> None:
        held = [os.readlink(link.path) for link in os.scandir("/proc/self/fd") if os.path.exists(link.path)]
        assert not any(str(tmp_path) in name for name in held), held
        charge(ledger, "0.25")

    assert wait(fork(child)) == [0]
    charge(ledger, "0.25")
    assert ledger.balance.remaining(SPACE) == Fraction(1, 4)
    ledger.close()


def test_forking_while_threads_charge_loses_nothing(tmp_path):
    ledger = opened(tmp_path / "b.db", "10")
    stop = threading.Event()
    charged: list[str] = []

    def work() -> None:
        while not stop.is_set():
            charged.append(charge(ledger, "0.001"))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    # Nine processes with a question under way, this one included: at ten failures of all, a tenth would wait.
    children = [fork(lambda: charge(ledger, "0.001")) for _ in range(8)]
    assert wait(*children) == [0] * 8
    stop.set()
    for thread in threads:
        thread.join()
    assert len(ledger.record.history()) == len(charged) + 8
    assert ledger.balance.spent(SPACE) == (len(charged) + 8) * Fraction(1, 1000)
    ledger.close()


def test_a_budget_in_memory_is_not_forked(tmp_path):
    ledger = Ledger.in_memory({SPACE: Budget(1)})

    def child() -> None:
        with pytest.raises(PolicyError, match=r"spent twice.*ledger file"):
            charge(ledger, "0.5")
        with pytest.raises(PolicyError):
            ledger.balance.remaining(SPACE)

    assert wait(fork(child)) == [0]
    charge(ledger, "1")


def life(ledger: Ledger, shown: int) -> None:
    """One question from charge to show; its id goes to `shown` where the answer would leave."""
    charge_id = charge(ledger, "0.01")
    ledger.charges.advance(charge_id, "drawing")
    ledger.charges.store(charge_id, "answer")
    os.write(shown, charge_id.encode() + b"\n")
    ledger.charges.advance(charge_id, "shown")


def check_after_kill(path: Path | str, shown: list[str], ceiling: int) -> None:
    """Nothing overspent, no answer without its charge, the sum right, and no lock stuck."""
    with Ledger.open(path, budgets={SPACE: Budget(ceiling)}, patience=1.0) as ledger:
        entries = {entry.id: entry for entry in ledger.record.history()}
        assert ledger.balance.spent(SPACE) == sum(entry.epsilon for entry in entries.values()) <= ceiling
        for charge_id in shown:
            assert entries[charge_id].state in ("stored", "shown")
            assert ledger.record.release(charge_id).payload == "answer"
        assert ledger.record.verify().problems == ()
        ledger.steward.unlock(SPACE, "ada", author="steward")  # what died undrawn counts as a failure
        left = ledger.balance.remaining(SPACE)
        life(ledger, os.open(os.devnull, os.O_WRONLY))
        assert ledger.balance.remaining(SPACE) == left - Fraction(1, 100)


STATEMENTS_OF_A_LIFE = 51


def test_a_life_has_as_many_statements_as_are_tried(tmp_path):
    count: list[str] = []
    opened(tmp_path / "b.db").close()
    with opened(tmp_path / "b.db") as ledger:
        with ledger._handle.store.reading() as connection:
            pass
        connection.set_trace_callback(count.append)
        life(ledger, os.open(os.devnull, os.O_WRONLY))
        connection.set_trace_callback(None)
    assert len(count) == STATEMENTS_OF_A_LIFE


@pytest.mark.parametrize("fatal", range(1, STATEMENTS_OF_A_LIFE + 1))
def test_killed_before_any_statement_the_ledger_is_right(tmp_path, fatal):
    """`kill -9` just before the n-th SQL statement of a question's life, for every n."""
    path = tmp_path / "b.db"
    opened(path, "5").close()
    read, write = os.pipe()

    def child() -> None:
        with opened(path, "5") as ledger:
            count = 0

            def before(_statement: str) -> None:
                nonlocal count
                count += 1
                if count == fatal:
                    os.kill(os.getpid(), signal.SIGKILL)

            with ledger._handle.store.reading() as connection:
                pass
            connection.set_trace_callback(before)
            life(ledger, write)

    code = wait(fork(child))[0]
    os.close(write)
    assert code == -signal.SIGKILL
    with os.fdopen(read) as pipe:
        check_after_kill(path, pipe.read().split(), 5)


@pytest.mark.parametrize("after", [False, True])
def test_killed_while_creating_there_is_nothing_or_a_whole_ledger(tmp_path, monkeypatch, after):
    path = tmp_path / "b.db"
    link = os.link

    def fatal(source: Path, target: Path) -> None:
        if after:
            link(source, target)
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", fatal)
        assert wait(fork(lambda: opened(path))) == [-signal.SIGKILL]
    assert path.exists() == after
    with opened(path) as ledger:
        charge(ledger, 1)
        assert ledger.balance.remaining(SPACE) == 0


def killed_at_random(places: Callable[[], str], count: int) -> int:
    """Kill `count` children while each asks question after question; how many answers were seen."""
    seen = 0
    for number in range(count):
        if number % 10 == 0:  # start anew before the budget is spent
            place = places()
            opened(place, "50").close()
        read, write = os.pipe()

        def child(place: str = place, write: int = write) -> None:
            with opened(place, "50") as ledger:
                os.write(write, b"\n")
                while True:
                    life(ledger, write)

        pid = fork(child)
        os.close(write)
        with os.fdopen(read) as pipe:
            pipe.readline()
            # Every tenth child is left alone until it has answered once, however slow the machine is.
            first = pipe.readline().split() if number % 10 == 0 else []
            time.sleep((number * 61 % 100) / 100 * 0.02)
            os.kill(pid, signal.SIGKILL)
            wait(pid)
            shown = [line for line in (*first, *pipe.read().split()) if len(line) == 32]
        seen += len(shown)
        check_after_kill(place, shown, 50)
    return seen


def test_killed_at_random_moments_no_answer_lacks_its_charge(tmp_path):
    numbers = itertools.count()
    assert killed_at_random(lambda: str(tmp_path / f"{next(numbers)}.db"), 30) > 0


def test_killed_at_random_moments_postgres_keeps_every_charge(database):
    assert killed_at_random(database, 10) > 0


@pytest.mark.soak
def test_killed_at_a_thousand_random_moments_no_answer_lacks_its_charge(tmp_path):
    numbers = itertools.count()
    assert killed_at_random(lambda: str(tmp_path / f"{next(numbers)}.db"), 1000) >= 100


@pytest.mark.soak
def test_killed_at_two_hundred_random_moments_postgres_keeps_every_charge(database):
    assert killed_at_random(database, 200) >= 20
