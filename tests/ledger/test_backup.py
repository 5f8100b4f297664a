"""A backup is whole, and is put back only so that nothing is given twice; whoever is killed on the way does no harm."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import time
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import BudgetError, PolicyError
from hubbub.ledger.backup import back_up, put_back, read_backup
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, wait

BUDGETS = {SPACE: Budget(3)}
KEY = b"a key of twenty bytes"


def opened(path: Path, **more) -> Ledger:
    return Ledger.open(path, budgets=BUDGETS, key=KEY, **more)


def made(path: Path, anchor: Path | None = None) -> None:
    with opened(path, anchor=anchor) as ledger:
        charge(ledger, "0.5", question_key="before")
    with Ledger.inspect(path, key=KEY) as ledger:  # which has given that question up by now
        back_up(ledger, path.with_name("copy"))


def gone(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-queue"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def put(path: Path, anchor: Path | None = None, **more) -> bool:
    return put_back(read_backup(path.with_name("copy")), path, key=KEY, anchor_at=anchor, **more)


def test_a_backup_whose_anchor_names_its_last_line_is_taken_as_it_is(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    made(path, anchor)
    gone(path)
    assert put(path, anchor)
    assert path.stat().st_mode & 0o777 == 0o600
    with opened(path, anchor=anchor) as ledger:
        charge(ledger, "2.5")
        assert ledger.record.verify().sound
    assert [file for file in os.listdir(tmp_path) if ".new" in file] == []


@pytest.mark.parametrize("anchored", [True, False])
def test_a_backup_that_may_be_older_is_refused_or_has_nothing_left(tmp_path, anchored):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor" if anchored else None
    made(path, anchor)
    with opened(path, anchor=anchor) as ledger:
        charge(ledger, "2", question_key="after")
    gone(path)
    with pytest.raises(PolicyError, match=r"its anchor names line|no anchor tells"):
        put(path, anchor)
    assert not path.exists()
    assert not put(path, anchor, accept_older=True, author="steward", reason="the disk died")
    with opened(path, anchor=anchor) as ledger:
        assert ledger.record.verify().problems == ()
        with pytest.raises(BudgetError, match="was revoked"):
            charge(ledger, "0.01")
        said = ledger.record.history()
        assert [entry.state for entry in said] == ["withdrawn"]
        ledger.steward.grant(SPACE, "everyone", "1", author="steward", reason="receipts: 2 since")
        charge(ledger, "0.5")


def test_a_backup_of_before_another_key_needs_the_key_of_its_time_and_has_nothing_left(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    made(path, anchor)
    new = b"the next key of this ledger"
    with opened(path, anchor=anchor) as ledger:
        ledger.steward.rekey(new, author="steward")
    gone(path)
    backup = read_backup(tmp_path / "copy")
    with pytest.raises(PolicyError, match="bears another key"):
        put_back(backup, path, key=new, anchor_at=anchor, accept_older=True, reason="r")
    with pytest.raises(PolicyError, match="was not written with the backup's key"):
        put(path, anchor)
    put(path, anchor, accept_older=True, reason="r")
    with opened(path, anchor=anchor) as ledger, pytest.raises(BudgetError, match="was revoked"):
        charge(ledger, "0.01")


def test_a_backup_of_before_the_first_key_has_none(tmp_path):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        back_up(ledger, tmp_path / "copy")
        ledger.steward.rekey(KEY, author="steward")
    gone(path)
    put(path, accept_older=True, reason="r")
    with Ledger.manage(path) as ledger:
        ledger.steward.rekey(KEY, author="steward")
    with opened(path) as ledger, pytest.raises(BudgetError, match="was revoked"):
        charge(ledger, "0.01")


def test_another_ledgers_anchor_is_never_taken(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    made(path)
    gone(path)
    with opened(tmp_path / "c.db", anchor=anchor):
        before = anchor.read_text()
    with pytest.raises(PolicyError, match="is another ledger's"):
        put(path, anchor, accept_older=True, reason="r")
    assert anchor.read_text() == before


def test_nothing_is_put_over_a_ledger_nor_beside_its_log(tmp_path):
    path = tmp_path / "b.db"
    made(path)
    with pytest.raises(PolicyError, match="is there"):
        put(path, accept_older=True, reason="r")
    log = path.with_name("b.db-wal")
    gone(path)
    log.write_bytes(b"what was charged last")
    with pytest.raises(PolicyError, match=r"b\.db-wal is there"):
        put(path, accept_older=True, reason="r")
    assert log.read_bytes() == b"what was charged last"


def test_a_backup_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "b.db"
    made(path)
    gone(path)
    copy = tmp_path / "copy" / "ledger.db"
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE pending SET state = 'x'")
    connection.execute("CREATE TABLE more (x)")
    connection.commit()
    connection.close()
    with pytest.raises(PolicyError, match="is not what was written"):
        put(path, accept_older=True, reason="r")
    for wrong in (tmp_path, tmp_path / "none"):
        with pytest.raises(PolicyError, match="is not a backup"):
            read_backup(wrong)


def test_people_go_with_the_ledger_and_are_settled_before_they_are_there(tmp_path):
    path, people = tmp_path / "b.db", tmp_path / "service.db"
    connection = sqlite3.connect(people)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE person (name TEXT)")
    connection.execute("INSERT INTO person VALUES ('ada')")
    connection.commit()
    with opened(path) as ledger:
        assert back_up(ledger, tmp_path / "copy", people).people
    connection.close()
    gone(path)
    people.unlink()
    seen = []

    def settle(file: Path) -> None:
        with sqlite3.connect(file) as copy:
            seen.extend(copy.execute("SELECT name FROM person").fetchall())
        assert not people.exists()

    put(path, people=people, settle=settle, accept_older=True, reason="r")
    assert seen == [("ada",)]
    assert people.exists()


def test_a_ledger_in_memory_has_no_backup(tmp_path):
    with pytest.raises(PolicyError, match="pg_dump"):
        back_up(Ledger.in_memory(BUDGETS), tmp_path / "copy")


def at_a_random_moment(work, seed: int, longest: float) -> None:
    """Run `work` in a child that is killed at some moment, or ends."""
    pid = fork(work)
    time.sleep(random.Random(seed).uniform(0.0, longest))
    os.kill(pid, signal.SIGKILL)
    wait(pid)


def killed_backups(folder: Path, rounds: int) -> None:
    """While one process charges, others back up and are killed: what stands is whole, and holds all from before it."""
    path, anchor = folder / "b.db", folder / "anchor"
    opened(path, anchor=anchor).close()
    for number in range(rounds):
        with opened(path, anchor=anchor, max_failures=10**6, max_failures_all=10**6) as ledger:
            before = charge(ledger, Fraction(1, 10**6), question_key=str(number))
            target = folder / f"copy{number}"

            def work(at: Path = target) -> None:
                with Ledger.inspect(path, key=KEY) as book:
                    back_up(book, at)

            pid = fork(work)
            time.sleep(random.Random(number).uniform(0.0, 0.06))
            charge(ledger, Fraction(1, 10**6), question_key=f"{number} during")
            os.kill(pid, signal.SIGKILL)
            wait(pid)
        if target.exists():
            backup = read_backup(target)
            with Ledger.inspect(target / "ledger.db", key=KEY) as copy:
                assert copy.record.verify(head=(backup.line, backup.hash)).problems == ()
                assert copy.record.entry(before).id == before
            shutil.rmtree(target)
        for left in folder.glob(".copy*.new"):
            shutil.rmtree(left)
    with Ledger.inspect(path, key=KEY, anchor=anchor) as ledger:
        assert ledger.record.verify().problems == ()


def killed_restores(folder: Path, rounds: int) -> None:
    """A restore of an older copy that is killed and run again: no ledger, or one that has nothing left; never more."""
    path, anchor = folder / "b.db", folder / "anchor"
    made(path, anchor)
    with opened(path, anchor=anchor) as ledger:
        charge(ledger, "2", question_key="after")
    beyond = anchor.read_text()

    def work() -> None:
        put(path, anchor, accept_older=True, author="steward", reason="the disk died")

    for number in range(rounds):
        gone(path)
        anchor.write_text(beyond)
        at_a_random_moment(work, number, 0.12)
        if not path.exists():
            work()
        with opened(path, anchor=anchor) as ledger:
            assert ledger.record.verify().problems == ()
            with pytest.raises(BudgetError, match="was revoked"):
                charge(ledger, "0.01")
        for left in folder.glob(".b.db.*"):
            left.unlink()


def test_killed_backups_leave_whole_ones_or_none(tmp_path):
    killed_backups(tmp_path, 10)


def test_killed_restores_give_nothing_back(tmp_path):
    killed_restores(tmp_path, 10)


@pytest.mark.soak
def test_many_killed_backups_and_restores(tmp_path):
    for name, work in (("backups", killed_backups), ("restores", killed_restores)):
        (tmp_path / name).mkdir()
        work(tmp_path / name, 100)


@pytest.mark.parametrize("replaced", [False, True])
def test_an_anchor_that_was_given_up_vouches_for_no_backup(tmp_path, replaced):
    """Its file stands still: a later backup holds its line, and what was charged since would be forgotten."""
    old, path = tmp_path / "anchor", tmp_path / "b.db"
    another = tmp_path / "another" if replaced else None
    with Ledger.open(path, budgets=BUDGETS, anchor=old) as ledger:
        charge(ledger, "1/10", question_key="1")
    with Ledger.manage(path, anchor=None if replaced else old, unanchored=replaced) as ledger:
        if another is None:
            ledger.steward.remove_anchor(author="steward")
        else:
            ledger.name_anchor(another)
            ledger.steward.make_anchor(author="steward")
    with Ledger.open(path, budgets=BUDGETS, anchor=another) as ledger:
        charge(ledger, "1/10", question_key="2")
        back_up(ledger, tmp_path / "backup")
        charge(ledger, "7/10", question_key="3")
    for file in tmp_path.glob("b.db*"):
        file.unlink()
    with pytest.raises(PolicyError, match="may be older than"):
        put_back(read_backup(tmp_path / "backup"), path, key=None, anchor_at=old)
