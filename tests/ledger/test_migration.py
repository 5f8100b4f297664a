"""An old ledger opens, holds what it held, and is as sound as a new one."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger import migrate
from hubbub.ledger.accounts import analyst_account, table_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, wait

BUDGETS = {SPACE: Budget(1)}


@pytest.fixture
def path(tmp_path) -> Path:
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript((Path(__file__).parent / "version1.sql").read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return tmp_path / "old.db"


def test_an_old_ledger_opens_and_holds_what_it_held(path):
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert ledger.verify().problems == ()
        assert ledger.spaces() == ["household", SPACE]
        assert (ledger.ceiling("household"), ledger.remaining(SPACE)) == (2, Fraction(11, 30))
        assert [(e.id, e.epsilon, e.state, e.incident, e.analyst) for e in ledger.history()] == [
            ("c1", Fraction(1, 10), "shown", None, "ada"),
            ("c2", Fraction(1, 3), "stored", None, "bob"),
            ("c3", Fraction(1, 10), "failed", "i17", "ada"),
            ("c4", Fraction(1, 10), "charged", None, "ada"),
        ]
        assert [ledger.release(c).payload for c in ("c1", "c2")] == ["answer 1", "answer 2"]
        assert ledger.total(SPACE, analyst_account("ada")).epsilon == Fraction(3, 10)
        assert ledger.total(SPACE, table_account("visits")).epsilon == Fraction(19, 30)
        assert ledger.data_version(SPACE, "visits") == "0123456789abcdef0123456789abcdef"
        assert ledger.resume(space=SPACE, question_key="k4", analyst="ada", epsilon=Fraction(1, 10)) is None
        charge(ledger, "1/30")
        assert ledger.remaining(SPACE) == Fraction(1, 3)


def test_reading_an_old_ledger_says_how_to_bring_it_up_to_date(path):
    before = path.read_bytes()
    with pytest.raises(PolicyError, match=r"schema version 1; this hubbub reads version 3\..*hubbub ledger migrate"):
        Ledger.inspect(path)
    assert path.read_bytes() == before


def test_an_old_ledger_whose_sums_are_wrong_is_left_as_it_is(path):
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO charge VALUES (9, 'c9', '2026-02-01T00:00:00.000000Z', 'patient_id', 'visits', "
                       "'a', 'k', 's', '1/10', '9/10', '{}', '{}')")  # fmt: skip
    connection.commit()
    connection.close()
    for _ in range(2):
        with pytest.raises(PolicyError, match="sums do not add up"):
            Ledger.open(path, budgets=BUDGETS)
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (1,)


def test_six_that_migrate_at_once_migrate_once(path):
    def child() -> None:
        with Ledger.open(path, budgets=BUDGETS) as ledger:
            charge(ledger, "1/60")

    assert wait(*(fork(child) for _ in range(6))) == [0] * 6
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert ledger.verify().sound
        assert ledger.remaining(SPACE) == Fraction(11, 30) - Fraction(1, 10)


def test_killed_while_migrating_the_old_ledger_stays(path, monkeypatch):
    def fatal(*_: object) -> int:
        import os

        os._exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "_charge", fatal)
        assert wait(fork(lambda: Ledger.open(path, budgets=BUDGETS))) == [9]
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert len(ledger.history()) == 4
