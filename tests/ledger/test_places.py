"""A ledger is the file at its path, whole and up to date, or there is no answer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.errors import BudgetError, PolicyError
from hubbub.ledger import life
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, resume, wait

BUDGETS = {SPACE: Budget(1)}
KEY = b"sixteen bytes at least"


def opened(path: Path, **more: object) -> Ledger:
    return Ledger.open(path, budgets=BUDGETS, **more)  # type: ignore[arg-type]


def remove(path: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        os.unlink(f"{path}{suffix}")


def anew(path: Path) -> None:
    remove(path, "", "-wal", "-shm")
    opened(path).close()


def replaced(path: Path) -> None:
    """By an older copy, in one step."""
    os.rename(path.with_name("old.db"), path)


def overwritten(path: Path) -> None:
    """By an older copy, in its own place, under its log."""
    remove(path, "-wal", "-shm")
    shutil.copyfile(path.with_name("old.db"), path)


HOW = {
    "deleted": lambda path: remove(path, ""),
    "deleted with its log": lambda path: remove(path, "", "-wal", "-shm"),
    "its log deleted": lambda path: remove(path, "-wal"),
    "its lock file deleted": lambda path: remove(path, "-shm"),
    "made anew": anew,
    "replaced": replaced,
    "overwritten": overwritten,
}


@pytest.mark.parametrize("how", HOW)
def test_a_ledger_that_is_deleted_or_replaced_while_it_is_open_takes_no_charge(tmp_path, how):
    """Before, what was charged then was in a file that nobody finds again: 1.89 of 1 was spent."""
    path = tmp_path / "b.db"
    ledger = opened(path)
    ledger.record.backup(tmp_path / "old.db")
    charge(ledger, "0.4")
    known = ledger.record.entry(charge(ledger, "0.1", question_key="2")).id
    ledger.charges.advance(known, "drawing")
    HOW[how](path)
    for _ in range(2):
        for step in (
            lambda: charge(ledger, "0.05"),
            lambda: ledger.charges.store(known, "answer"),
            lambda: ledger.steward.grant(SPACE, "everyone", "0.5", author="steward"),
        ):
            with pytest.raises(PolicyError, match=r"deleted or replaced|older copy was put|could not be|damaged"):
                step()
    ledger._handle.store.close()


def test_a_ledger_that_goes_between_begin_and_commit_gives_no_answer(tmp_path, monkeypatch):
    path = tmp_path / "b.db"
    with opened(path) as ledger:
        charge(ledger, "0.1")
        with monkeypatch.context() as patch:
            from hubbub.ledger import life

            record = life.record
            patch.setattr(life, "record", lambda *a: (record(*a), remove(path, ""))[0])
            with pytest.raises(PolicyError, match="deleted or replaced"):
                charge(ledger, "0.1")


def test_an_older_copy_put_back_while_it_was_closed_is_noticed_by_who_knew_better(tmp_path):
    """A process that had it open before: after a fork, or after it closed the file."""
    path = tmp_path / "b.db"
    ledger = opened(path)
    ledger.close()
    shutil.copyfile(path, tmp_path / "old.db")
    charge(ledger, "0.4")
    ledger.close()
    shutil.copyfile(tmp_path / "old.db", path)  # in place: the same file by its number
    with pytest.raises(PolicyError, match=r"no longer holds line \d+.*older copy was put in its place"):
        charge(ledger, "0.4")


def test_a_hard_link_is_refused_and_what_a_crash_left_is_not(tmp_path):
    path = tmp_path / "b.db"
    with opened(path) as ledger:
        os.link(path, tmp_path / "other.db")
        with pytest.raises(PolicyError, match="hard link"):
            charge(ledger, "0.1")
    for name in ("b.db", "other.db"):
        with pytest.raises(PolicyError, match=r"another name too \(a hard link\).*symbolic link does no harm"):
            opened(tmp_path / name)
    (tmp_path / "other.db").rename(tmp_path / ".b.db.0123.new")  # as if whoever made it died just then
    with opened(path) as ledger:
        charge(ledger, "0.1")
    assert os.listdir(tmp_path) == ["b.db"]


def test_the_files_of_a_ledger_are_its_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        with opened(tmp_path / "b.db", anchor=tmp_path / "anchor") as ledger:
            charge(ledger, "0.1")
            ledger.record.backup(tmp_path / "backup.db")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(
        ("b.db", "b.db-wal", "b.db-shm", "b.db-queue", "backup.db", "anchor", "anchor-lock"), 0o600
    )


def cut(path: Path, lines: int) -> None:
    """Cut off the end of a ledger as somebody would who knows its tables: what is left fits link by link."""
    connection = sqlite3.connect(path)
    ask = connection.execute
    triggers = ask("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        ask(f"DROP TRIGGER {name}")
    (last,) = ask("SELECT max(serial) FROM journal").fetchone()
    tables = [
        n
        for (n,) in ask("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if n not in ("account", "pending")
    ]
    for table in tables:
        ask(f"DELETE FROM {table} WHERE serial > {last - lines}")
    ask("DELETE FROM account")
    ask(f"DELETE FROM pending WHERE charge > {last - lines}")
    for serial, sums in ask("SELECT serial, sums FROM charge ORDER BY serial").fetchall():
        for space, account, *_ in json.loads(sums):
            ask("INSERT OR REPLACE INTO account VALUES (?, ?, ?)", (space, account, serial))
    for _, statement in triggers:
        ask(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("key", [None, KEY])
def test_a_ledger_whose_end_was_cut_off_is_found_by_a_head_or_an_anchor_alone(tmp_path, key):
    path, anchor = tmp_path / "b.db", tmp_path / "elsewhere"
    with opened(path, key=key, anchor=anchor) as ledger:
        charge(ledger, "0.25")
        early = ledger.record.verify()
        for n in range(3):
            charge(ledger, "0.25", question_key=str(n))
        late = ledger.record.verify()
        ledger._handle.store.close()
    cut(path, 6)  # the charges that were given up when it was closed, and two more
    with Ledger.inspect(path, key=key) as ledger:
        assert ledger.record.verify().sound  # what is left is a chain that fits, with a key or without
        assert ledger.record.verify(head=(early.serial, early.head)).sound
        (problem,) = ledger.record.verify(head=(late.serial, late.head[:16])).problems
        assert "an earlier state of the ledger was put back" in problem
        ledger.name_anchor(anchor)
        assert any("the anchor (line" in problem for problem in ledger.record.verify().problems)
    for open_it in (opened, lambda path, **more: Ledger.inspect(path, **more)):
        with pytest.raises(PolicyError, match=r"does not hold line \d+ that its anchor.*newest copy.*--accept-older"):
            open_it(path, key=key, anchor=anchor)


def test_the_anchor_moves_with_every_commit_and_never_back(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"

    def child() -> None:
        with opened(path, anchor=anchor) as ledger:
            for _ in range(10):
                charge(ledger, "0.01", analyst=str(os.getpid()))
                line = json.loads(anchor.read_text())["line"]
                with ledger._handle.reading() as connection:
                    (at,) = connection.execute("SELECT max(serial) FROM charge WHERE owner = ?", (owner(),)).fetchone()
                assert line >= at

    from hubbub.ledger.process import this_process as owner

    opened(path, anchor=anchor).close()
    assert wait(*(fork(child) for _ in range(4))) == [0] * 4
    with opened(path, anchor=anchor) as ledger:
        assert json.loads(anchor.read_text())["line"] == ledger.record.verify().serial
        assert len(ledger.record.history()) == 40
        assert ledger.record.verify().problems == ()


def put_back(path: Path) -> None:
    """An older copy into the open file itself, as `.restore` of sqlite3 does: the file and its log stay the same."""
    with closing(sqlite3.connect(path.with_name("old.db"))) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)


def test_an_older_copy_put_back_into_an_open_ledger_is_found_before_the_first_line_that_is_added(tmp_path):
    """Before, what a handle had not written or read itself was not a loss to it: 0.9 was spent twice."""
    path = tmp_path / "b.db"
    opened(path).close()
    shutil.copyfile(path, tmp_path / "old.db")
    with opened(path) as other:
        charge(other, "0.9")
    ledger = opened(path)
    put_back(path)
    with pytest.raises(PolicyError, match="an older copy was put"):
        charge(ledger, "0.9")
    ledger._handle.store.close()


@pytest.mark.parametrize("key", [None, KEY])
def test_an_older_copy_put_back_is_found_by_the_anchor_whoever_added_the_lines_that_are_gone(tmp_path, key):
    """Before, the anchor was compared at opening alone, and moved on with the older copy: no trace was left."""
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    ledger = opened(path, key=key, anchor=anchor)
    charge(ledger, "0.05")
    ledger.record.backup(tmp_path / "old.db")
    with opened(path, key=key, anchor=anchor) as other:
        charge(other, "0.9")
    put_back(path)
    for step in (
        lambda: charge(ledger, "0.9"),
        lambda: ledger.steward.grant(SPACE, "everyone", "0.5", author="steward"),
        lambda: ledger.steward.refresh(SPACE, "visits"),
    ):
        before = anchor.read_text()
        with pytest.raises(PolicyError, match=r"does not hold line \d+ that its anchor"):
            step()
        assert anchor.read_text() == before
    ledger._handle.store.close()


def test_an_anchor_that_is_missing_foreign_or_forged_is_refused(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    opened(path, key=KEY).close()
    with pytest.raises(PolicyError, match=r"anchor .* is missing.*hubbub ledger anchor"):
        opened(path, key=KEY, anchor=anchor)
    with Ledger.manage(path, key=KEY) as ledger:
        ledger.name_anchor(anchor)
        ledger.steward.make_anchor()
    with opened(path, key=KEY, anchor=anchor) as ledger:
        charge(ledger, "0.1")
        good = anchor.read_text()
        anchor.unlink()
        with pytest.raises(PolicyError, match="is missing"):
            charge(ledger, "0.1")
    for text in ("", "{", "[1]", '{"ledger": 1}', "\xff", "[" * 100_000):
        anchor.write_text(text, "latin-1")
        with pytest.raises(PolicyError, match=r"not an anchor of a ledger|it is not text"):
            opened(path, key=KEY, anchor=anchor)
    content = json.loads(good)
    for odd in ({"mac": "\xe9"}, {"next": "\ud800"}, {"hash": "\ud800"}, {"line": 2**63}, {"line": -1}):
        anchor.write_text(json.dumps(content | odd))
        with pytest.raises(PolicyError, match="not an anchor of a ledger"):
            opened(path, key=KEY, anchor=anchor)
    for change in ({"line": content["line"] - 1}, {"mac": None}, {"hash": "0" * 64}):
        anchor.write_text(json.dumps(content | change))
        with pytest.raises(PolicyError, match="not written with the ledger's key"):
            opened(path, key=KEY, anchor=anchor)
    anchor.write_text(good)
    opened(path, key=KEY, anchor=anchor).close()
    opened(tmp_path / "c.db", anchor=tmp_path / "other").close()
    with pytest.raises(PolicyError, match="is another ledger's"):
        opened(tmp_path / "c.db", anchor=anchor)


def test_an_anchor_that_cannot_be_written_gives_no_answer_and_charges_once(tmp_path, monkeypatch):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    with opened(path, anchor=anchor) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr("hubbub.ledger.anchor.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
            with pytest.raises(PolicyError, match=r"cannot write the anchor.*recorded.*not charged twice"):
                charge(ledger, "0.1")
        again = resume(ledger, space=SPACE, question_key="k", analyst="ada", epsilon=ledger.record.history()[0].epsilon)
        assert again == ledger.record.history()[0].id
        assert json.loads(anchor.read_text())["line"] == ledger.record.verify().serial


def test_a_steward_accepts_an_older_ledger_where_no_newer_one_is_left(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    with opened(path, anchor=anchor) as ledger:
        ledger.record.backup(tmp_path / "old.db")
        charge(ledger, "0.5")
    shutil.copyfile(tmp_path / "old.db", path)
    with Ledger.manage(path, unanchored=True) as ledger:
        ledger.name_anchor(anchor)
        with pytest.raises(PolicyError, match="--accept-older"):
            ledger.steward.make_anchor()
        ledger.steward.make_anchor(accept_older=True)
    with opened(path, anchor=anchor) as ledger:
        with pytest.raises(BudgetError, match="was revoked"):  # what was spent since is not known
            charge(ledger, "0.5")
        ledger.steward.grant(SPACE, "everyone", "0.5", author="steward", reason="no later receipt was found")
        charge(ledger, "0.5")
        assert ledger.record.verify().sound


def test_a_killed_writer_leaves_an_anchor_that_opens(tmp_path):
    """Between COMMIT and anchor: the anchor is behind, which is not an alarm."""
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    opened(path, anchor=anchor).close()

    def child() -> None:
        ledger = opened(path, anchor=anchor)
        ledger._handle.store.committed = lambda: os.kill(os.getpid(), signal.SIGKILL)
        charge(ledger, "0.5")

    assert wait(fork(child)) == [-signal.SIGKILL]
    with opened(path, anchor=anchor) as ledger:
        assert ledger.balance.remaining(SPACE) == Budget("0.5").epsilon


def test_a_ledger_that_has_an_anchor_is_not_opened_without_it(tmp_path):
    """Before, whoever left `anchor` out spent an older copy that was put back."""
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    with opened(path, anchor=anchor) as ledger:
        charge(ledger, "0.1")
    with pytest.raises(PolicyError, match=r"has an anchor, and was opened without it.*ledger anchor --remove"):
        opened(path)
    with pytest.raises(PolicyError, match="has an anchor, and was opened without it"):
        Ledger.manage(path)
    with Ledger.inspect(path) as ledger:  # a copy may be read anywhere; that the anchor is not looked at is said
        (said,) = ledger.record.verify().notes
        assert "it has an anchor, and was read without it" in said
    with Ledger.inspect(path, anchor=anchor) as ledger:
        assert ledger.record.verify().notes == ()
    with Ledger.manage(path, anchor=anchor) as ledger:
        ledger.steward.remove_anchor(author="steward")
    with opened(path) as ledger:
        charge(ledger, "0.1")
        assert ledger.record.verify().problems == ledger.record.verify().notes == ()
        with pytest.raises(PolicyError, match="no anchor is named"):
            ledger.steward.remove_anchor(author="steward")
    with opened(path, anchor=anchor):
        pass
    with pytest.raises(PolicyError, match="has an anchor"):
        opened(path)
    with Ledger.inspect(path) as ledger:
        rows = [json.loads(line)["row"] for line in ledger.record.export() if '"anchoring"' in line]
        assert rows == [
            {"kept": 1, "author": "hubbub"},
            {"kept": 0, "author": "steward"},
            {"kept": 1, "author": "hubbub"},
        ]


def test_a_ledger_that_gets_an_anchor_is_not_written_to_without_it_where_it_is_open(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    with opened(path) as before:
        charge(before, "0.1")
        with Ledger.manage(path) as ledger:
            ledger.name_anchor(anchor)
            ledger.steward.make_anchor(author="steward")
        with pytest.raises(PolicyError, match="has an anchor, and was opened without it"):
            charge(before, "0.1")
        assert before.balance.remaining(SPACE) == Budget("0.9").epsilon


def test_only_who_has_the_anchor_removes_it(tmp_path):
    path, anchor = tmp_path / "b.db", tmp_path / "anchor"
    opened(path, anchor=anchor).close()
    good = anchor.read_text()
    for spoil in (anchor.unlink, lambda: anchor.write_text(good.replace('"line": ', '"line": 9'))):
        spoil()
        with Ledger.manage(path, unanchored=True) as ledger:
            ledger.name_anchor(anchor)
            with pytest.raises(PolicyError, match=r"is missing|does not hold line"):
                ledger.steward.remove_anchor(author="mallory")
    anchor.write_text(good)
    with pytest.raises(PolicyError, match="has an anchor"):
        opened(path)


@pytest.mark.parametrize("more", [0, 1], ids=["one line", "more lines"])
def test_two_copies_that_are_written_to_at_once_under_one_anchor_do_not_both_answer(tmp_path, monkeypatch, more):
    """The transaction of one had read the anchor before the other moved it."""
    place = tmp_path / "anchor"
    budgets = {SPACE: Budget(3)}
    Ledger.open(tmp_path / "a.db", budgets=budgets, anchor=place).close()
    shutil.copyfile(tmp_path / "a.db", tmp_path / "b.db")
    with (
        Ledger.open(tmp_path / "a.db", budgets=budgets, anchor=place) as ledger,
        Ledger.open(tmp_path / "b.db", budgets=budgets, anchor=place) as copy,
    ):
        plain = life.record

        def slow(writer, books, request, under_way):
            recorded = plain(writer, books, request, under_way)
            if request.charge.analyst == "bob":
                for number in range(1 + more):
                    charge(ledger, 1, question_key=str(number))
            return recorded

        monkeypatch.setattr(life, "record", slow)
        with pytest.raises(PolicyError, match=r"does not hold line \d+ that its anchor .* names"):
            charge(copy, 1, analyst="bob")
        charge(ledger, 1, question_key="goes on")


def test_an_anchor_that_is_a_link_to_another_disk_stays_there(tmp_path):
    """The first charge put a file in place of the link: beside the ledger, which is put back with it."""
    there, path, link = tmp_path / "elsewhere" / "anchor", tmp_path / "b.db", tmp_path / "anchor"
    there.parent.mkdir()
    link.symlink_to(there)
    for number in range(3):
        with opened(path, anchor=link) as ledger:
            charge(ledger, "0.1", question_key=str(number))
        assert link.is_symlink()
        with Ledger.inspect(path) as ledger:
            assert json.loads(there.read_text("utf-8"))["line"] == ledger.chain.lines()
    with opened(path, anchor=there) as ledger:
        charge(ledger, "0.1", question_key="by its own name")
