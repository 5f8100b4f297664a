"""The walk by a handle of its own: it sees one state, charges go on meanwhile, and it finds what the other finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger, verify_beside
from ledger.helpers import SPACE, charge

KEY = b"a key of twenty bytes"


def opened(path: Path, anchor: Path | None) -> Ledger:
    return Ledger.open(path, budgets={SPACE: Budget(3)}, key=KEY, anchor=anchor)


@pytest.mark.parametrize("anchored", [True, False])
def test_charges_go_on_while_it_walks(tmp_path: Path, anchored: bool) -> None:
    path, anchor = tmp_path / "l.db", tmp_path / "anchor" if anchored else None
    with opened(path, anchor) as ledger:
        first = charge(ledger, "0.5", question_key="first")
        before, seen = ledger.chain.lines(), []

        def told(lines: int) -> None:
            seen.append(lines)
            charge(ledger, "0.5", question_key=f"while {lines} were seen")

        found = verify_beside(ledger, path, told=told)
        assert (found.sound, found.rows, found.notes) == (True, before, ()), found
        assert seen == [before]
        assert ledger.chain.lines() > before
        assert ledger.record.entry(first).state == "charged", "what is under way here is not given up by it"
        assert ledger.record.verify().sound


def test_words_are_removed_without_waiting_for_a_walk(tmp_path: Path) -> None:
    """A walk reads for minutes, and what waited for it would hold the ledger that questions are charged in."""
    with opened(tmp_path / "l.db", None) as ledger:
        charge(ledger, "0.5", question_key="first")
        store = ledger._handle.store

        def told(lines: int) -> None:
            store.forget()
            assert store._connected().execute("PRAGMA busy_timeout").fetchone() == (0,)
            charge(ledger, "0.5", question_key=f"after {lines} lines")

        assert verify_beside(ledger, tmp_path / "l.db", told=told).sound
        assert len(ledger.record.history()) == 2


def test_an_older_copy_that_was_put_back_is_found_by_the_anchor(tmp_path: Path) -> None:
    path, anchor = tmp_path / "l.db", tmp_path / "anchor"
    with opened(path, anchor) as ledger:
        charge(ledger, "0.5", question_key="first")
    shutil.copy(path, tmp_path / "old.db")
    with opened(path, anchor) as ledger:
        charge(ledger, "0.5", question_key="second")
        assert not verify_beside(ledger, tmp_path / "old.db").sound
        with pytest.raises(PolicyError):
            verify_beside(ledger, tmp_path / "none.db")
