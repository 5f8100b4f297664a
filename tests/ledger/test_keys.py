"""The chain gets another key: no link changes, the new key verifies all of it, and nobody goes on with the old one."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.hash_chain import Writer
from hubbub.ledger.keys import epochs_of
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, wait

BUDGETS = {SPACE: Budget(3)}
OLD, NEW, NEXT = b"an old key of some length", b"a new key, of another length", b"the third key of this ledger"


def opened(path, key=None, **more) -> Ledger:
    return Ledger.open(path, budgets=BUDGETS, key=key, **more)


@pytest.mark.parametrize("first", [None, OLD])
def test_a_chain_that_got_other_keys_verifies_with_the_last_one(place, first):
    with opened(place, first) as ledger:
        kept = ledger.record.receipt(charge(ledger, "0.1", question_key="1"))
        line = ledger.steward.rekey(NEW, author="steward")
        charge(ledger, "0.1", question_key="2")
        ledger.steward.rekey(NEXT, author="steward")
        charge(ledger, "0.1", question_key="3")
        assert ledger.record.verify(kept).problems == ()
        with ledger._handle.reading() as connection:
            assert [key for _, key in epochs_of(connection, NEXT)] == [first, NEW, NEXT]
    for wrong in (first, NEW):
        with pytest.raises(PolicyError, match=r"key is not that of|is keyed"):
            opened(place, wrong)
    with Ledger.inspect(place, key=NEXT) as ledger:
        verified = ledger.record.verify(kept)
        assert (verified.problems, line < verified.serial) == ((), True)


def test_who_has_it_open_with_the_old_key_records_nothing_more(place):
    with opened(place, OLD) as slow:
        charge(slow, "0.1")
        with opened(place, OLD) as other:
            other.steward.rekey(NEW, author="steward")
        with pytest.raises(PolicyError, match="got another key while it was open here"):
            charge(slow, "0.1", question_key="2")
    with opened(place, NEW) as ledger:
        assert len(ledger.record.history()) == 1
        assert ledger.record.verify().sound


def test_a_key_before_that_was_changed_is_found(tmp_path):
    import sqlite3

    with opened(tmp_path / "b.db", OLD) as ledger:
        ledger.steward.rekey(NEW, author="steward")
    connection = sqlite3.connect(tmp_path / "b.db")
    connection.execute("DROP TRIGGER rekeying_no_update")
    connection.execute("UPDATE rekeying SET wrapped = substr(wrapped, 1, 40)")
    connection.commit()
    connection.close()
    with Ledger.inspect(tmp_path / "b.db", key=NEW) as ledger:
        assert "the key that the chain had before it cannot be read" in ledger.record.verify().problems[0]


@pytest.mark.parametrize("first", [None, OLD])
@pytest.mark.parametrize("more", [True, False])
def test_who_has_the_key_before_writes_no_chain_that_the_new_one_verifies(tmp_path, first, more):
    """He leaves out what was charged, writes the line that changed the key anew, and leaves out all that follow."""
    import sqlite3

    with opened(tmp_path / "b.db", first) as ledger:
        charge(ledger, "0.1")
        ledger.steward.rekey(NEW, author="steward")
        if more:
            charge(ledger, "0.1", question_key="2")
    connection = sqlite3.connect(tmp_path / "b.db", isolation_level=None)
    line = connection.execute("SELECT * FROM rekeying ORDER BY serial").fetchone()
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    (begun,) = connection.execute("SELECT min(serial) FROM charge").fetchone()
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if any(row[1] == "serial" for row in connection.execute(f"PRAGMA table_info({table})").fetchall()):
            connection.execute(f"DELETE FROM {table} WHERE serial >= ?", (begun,))
    connection.execute("DELETE FROM account")
    writer = Writer(connection, first)
    writer.append("rekeying", *line[1:])
    writer.finish()
    for _, made in triggers:
        connection.execute(made)
    connection.close()
    with Ledger.inspect(tmp_path / "b.db", key=NEW) as ledger:
        assert ledger.record.history() == []
        verified = ledger.record.verify()
        assert not verified.sound
        assert "the lines before it are others" in verified.problems[0]


def test_the_anchor_follows_the_key_and_one_of_the_old_key_holds_no_more(tmp_path):
    """Before, whoever had the key before wrote one of a line before the change, and an older copy fitted it."""
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    with opened(path, OLD, anchor=anchor) as ledger:
        charge(ledger, "0.1")
        before = anchor.read_text()
        real = ledger._handle.store.committed
        between: list[str] = []

        def committed() -> None:
            between.append(anchor.read_text())  # as a process leaves it that is killed between the two
            real()

        ledger._handle.store.committed = committed
        ledger.steward.rekey(NEW, author="steward")
    opened(path, NEW, anchor=anchor).close()
    anchor.write_text(between[0])
    with opened(path, NEW, anchor=anchor) as ledger:
        charge(ledger, "0.1", question_key="2")
    for forged in (before, before.replace('"line": ', '"line": 1'), between[0].replace('"next": "', '"next": "0')):
        anchor.write_text(forged)
        with pytest.raises(PolicyError, match="not written with the ledger's key"):
            opened(path, NEW, anchor=anchor)


def test_a_key_is_not_changed_where_the_anchor_cannot_be_written(tmp_path, monkeypatch):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    with opened(path, OLD, anchor=anchor) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr("hubbub.ledger.anchor.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
            with pytest.raises(PolicyError, match=r"cannot write the anchor.*keeps the key that it has"):
                ledger.steward.rekey(NEW, author="steward")
        charge(ledger, "0.1")
    with opened(path, OLD, anchor=anchor) as ledger:
        ledger.steward.rekey(NEW, author="steward")
    opened(path, NEW, anchor=anchor).close()


def test_a_checkpoint_of_the_old_key_is_not_trusted(tmp_path):
    with opened(tmp_path / "b.db", OLD) as ledger:
        kept = ledger.record.checkpoint(ledger.record.verify())
        ledger.steward.rekey(NEW, author="steward")
        with pytest.raises(PolicyError, match="checkpoint was not written with the ledger's key"):
            ledger.record.verify(checkpoint=kept)
        assert ledger.record.verify(checkpoint=ledger.record.checkpoint(ledger.record.verify())).sound


def test_a_ledger_whose_rekeying_was_killed_has_one_key_or_the_other(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    opened(path, OLD, anchor=anchor).close()

    def child(after_commit: bool) -> None:
        ledger = opened(path, OLD, anchor=anchor)
        if after_commit:
            ledger._handle.store.committed = lambda: os.kill(os.getpid(), signal.SIGKILL)
        else:
            ledger._handle.store._check_place = lambda: os.kill(os.getpid(), signal.SIGKILL)
        ledger.steward.rekey(NEW, author="steward")

    for after_commit, key in ((False, OLD), (True, NEW)):
        assert wait(fork(lambda at=after_commit: child(at))) == [-signal.SIGKILL]
        with opened(path, key, anchor=anchor) as ledger:
            assert ledger.record.verify().sound


def counted(then: Callable[[int], None]) -> Callable[..., None]:
    """A profiler that counts calls, of Python and of C."""
    calls = itertools.count()

    def profile(_frame: object, event: str, _what: object) -> None:
        if event in ("call", "c_call"):
            then(next(calls))

    return profile


def killed_rekeyings(folder: Path, count: int) -> set[bool]:
    """Kill a rekeying at any of its calls, so often; the ledger has then one of both keys, and goes on with it. Which
    it had: whether the new one, of each.
    """
    path, anchor, coin = folder / "b.db", folder / "anchor", random.Random(11)
    with Ledger.open(path, budgets={SPACE: Budget(1000)}, key=OLD, anchor=anchor) as ledger:
        charge(ledger, "0.1", question_key="first")
    whole, was_new = [0], set()
    with Ledger.open(folder / "other.db", budgets=BUDGETS, key=OLD, anchor=folder / "other") as other:
        sys.setprofile(counted(lambda call: whole.__setitem__(0, call)))
        other.steward.rekey(NEW, author="steward")
        sys.setprofile(None)
    key = OLD

    def child(following: bytes, last: int) -> None:
        ledger = Ledger.open(path, budgets={}, create=False, key=key, anchor=anchor)
        sys.setprofile(counted(lambda call: os.kill(os.getpid(), signal.SIGKILL) if call == last else None))
        ledger.steward.rekey(following, author="steward")

    for number in range(count):
        following, last = b"key number %d of this ledger" % number, coin.randrange(whole[0])
        assert wait(fork(partial(child, following, last))) == [-signal.SIGKILL]
        known = []
        for each in (key, following):
            with suppress(PolicyError), Ledger.open(path, budgets={}, create=False, key=each, anchor=anchor) as ledger:
                charge(ledger, "0.1", question_key=f"after {number}")
                assert ledger.record.verify().problems == ()
                known.append(each)
        assert len(known) == 1
        was_new.add(known[0] == following)
        (key,) = known
    with Ledger.inspect(path, key=key) as ledger:
        assert len(ledger.record.history()) == 1 + count
    return was_new


def test_a_few_rekeyings_that_are_killed_at_any_call(tmp_path):
    killed_rekeyings(tmp_path, 10)


@pytest.mark.soak
def test_many_rekeyings_that_are_killed_at_any_call(tmp_path):
    assert killed_rekeyings(tmp_path, 300) == {True, False}


def test_a_key_that_is_short_or_the_same_is_refused(place):
    with opened(place, OLD) as ledger:
        for key, said in ((b"short", "16 or more"), (OLD, "this is the ledger's key already")):
            with pytest.raises(PolicyError, match=said):
                ledger.steward.rekey(key, author="steward")
