"""The chain gets another key: no link changes, the new key verifies all of it, and nobody goes on with the old one."""

from __future__ import annotations

import os
import signal

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
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


def test_the_anchor_follows_and_one_of_the_old_key_is_known_from_a_forged_one(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    with opened(path, OLD, anchor=anchor) as ledger:
        charge(ledger, "0.1")
        before = anchor.read_text()
        ledger.steward.rekey(NEW, author="steward")
    opened(path, NEW, anchor=anchor).close()
    anchor.write_text(before)  # as a process leaves it that was killed between the two
    with opened(path, NEW, anchor=anchor) as ledger:
        charge(ledger, "0.1", question_key="2")
    anchor.write_text(before.replace('"line": ', '"line": 1'))
    with pytest.raises(PolicyError, match="not written with the ledger's key"):
        opened(path, NEW, anchor=anchor)


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


def test_a_key_that_is_short_or_the_same_is_refused(place):
    with opened(place, OLD) as ledger:
        for key, said in ((b"short", "16 or more"), (OLD, "this is the ledger's key already")):
            with pytest.raises(PolicyError, match=said):
                ledger.steward.rekey(key, author="steward")
