"""A ledger of many entries: a charge costs as in a small one, a walk goes on from a checkpoint that is trusted."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.accounting import Cost
from hubbub.errors import PolicyError
from hubbub.ledger.accounts import pure_cost
from hubbub.ledger.budget import Budget
from hubbub.ledger.charging import Request, record
from hubbub.ledger.rules import Rules
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, asked, charge, resume

BUDGETS = {SPACE: Budget(10**6)}
EPSILON = Fraction(1, 1000)
MANY = {"max_failures": 10**9, "max_failures_all": 10**9}


def opened(place: object) -> Ledger:
    return Ledger.open(place, budgets=BUDGETS, **MANY)  # type: ignore[arg-type]


def fill(ledger: Ledger, charges: int) -> None:
    """So many charges, each given up, a tenth of them answered; in transactions of a hundred."""
    cost = pure_cost(EPSILON)
    for begin in range(0, charges, 100):
        with ledger._handle.writing() as writer:
            books = ledger.charges._books.begin(writer.connection, writer.head)
            for number in range(begin, min(charges, begin + 100)):
                said = asked(EPSILON, analyst=f"a{number % 7}", question_key=f"k{number}", cost=cost)
                made = Request.of(said, Rules(**MANY))
                assert record(writer, books, made, ledger.charges._under_way) is None
                serial = writer.head.serial
                if number % 10 == 0:
                    writer.append("step", serial, "drawing", None, None)
                    writer.append("release", serial, "answer")
                writer.append("step", serial, "stored" if number % 10 == 0 else "withdrawn", None, None)
            ledger.charges._under_way._fresh.clear()
            books.end(writer.head)


def statements(ledger: Ledger) -> list[str]:
    """The statements of a question's whole life, of looking for its answer, and of what is left."""
    found: list[str] = []
    with ledger._handle.reading() as connection:
        connection.set_trace_callback(found.append)
    for number in range(2):  # the second knows what the first has read
        made = charge(ledger, EPSILON, question_key=f"k{number + 1}", analyst="a1", request=str(number))
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, "answer")
        ledger.charges.advance(made, "shown")
        ledger.record.find_release(space=SPACE, question_key="k3", at_least=EPSILON)
        ledger.balance.remaining(SPACE, dataset="visits", analyst="a1")
    with ledger._handle.reading() as connection:
        connection.set_trace_callback(None)
    return found


def rows_read(path: Path, texts: list[str]) -> list[str]:
    """Of the statements those that walk over a whole table that grows, as SQLite plans them."""
    slow = []
    with closing(sqlite3.connect(path)) as connection:
        for text in texts:
            if text.startswith(("SELECT", "INSERT")) and not text.endswith("ORDER BY serial DESC LIMIT 1"):
                for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {text}").fetchall():
                    table = re.match(r"SCAN (\w+)", step)
                    if table and table[1] in ("charge", "step", "journal", "release", "refusal", "account", "last"):
                        slow.append(f"{step}: {text[:200]}")
    return slow


def instructions(path: Path, charges: int) -> int:
    """The instructions of SQLite's machine that a life takes in a ledger of so many charges."""
    with opened(path) as ledger:
        fill(ledger, charges)
        said = statements(ledger)
        assert rows_read(path, said) == []
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        with ledger._handle.reading() as connection:
            connection.set_progress_handler(count, 1)
        made = charge(ledger, EPSILON, question_key="again", analyst="a1")
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, "answer")
        with ledger._handle.reading() as connection:
            connection.set_progress_handler(None, 0)
        return counted


def test_a_charge_among_many_costs_as_among_few(tmp_path):
    """No statement of a life walks over a table that grows, and SQLite's machine does as much for each."""
    few, many = instructions(tmp_path / "few.db", 100), instructions(tmp_path / "many.db", 2000)
    assert few == many > 100


@pytest.mark.soak
def test_a_charge_among_a_million_entries_costs_as_among_a_thousand(tmp_path):
    few, many = instructions(tmp_path / "few.db", 400), instructions(tmp_path / "many.db", 400_000)
    assert few == many


@pytest.fixture(params=["sqlite", "postgres"])
def grown(request, tmp_path):
    """A ledger with open ends at its checkpoint, the checkpoint, and what happens to them afterwards."""
    where = tmp_path / "b.db" if request.param == "sqlite" else request.getfixturevalue("database")()
    with opened(where) as ledger:
        fill(ledger, 30)
        drawing, retried = charge(ledger, "1/2", question_key="d"), charge(ledger, "1/2", question_key="r")
        ledger.charges.advance(drawing, "drawing")
        ledger.charges.let_go(retried)
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(5))
        charge(ledger, "1", block=block)
        early = ledger.record.verify()
        kept = ledger.record.checkpoint(early)
        ledger.charges.give_back(drawing, used=Cost(Fraction(1, 4), Fraction(1, 32)))
        ledger.charges.store(drawing, "answer")
        assert resume(ledger, space=SPACE, question_key="r", analyst="ada", epsilon=Fraction(1, 2)) == retried
        ledger.charges.advance(retried, "drawing")
        charge(ledger, "1", block=block, question_key="b")
        ledger.charges.close_block(block)
        fill(ledger, 10)
        yield ledger, early, kept


def test_a_walk_from_a_checkpoint_ends_where_a_whole_one_does(grown):
    ledger, early, kept = grown
    whole, rest = ledger.record.verify(), ledger.record.verify(checkpoint=kept)
    assert (whole.problems, rest.problems) == ((), ())
    assert (rest.rows, rest.head, ledger.record.checkpoint(rest)) == (
        whole.rows,
        whole.head,
        ledger.record.checkpoint(whole),
    )
    assert whole.notes == ()
    assert f"before line {early.serial} was not looked at" in rest.notes[0]
    assert ledger.record.verify(checkpoint=ledger.record.checkpoint(whole)).sound


def tampered(path: Path, statement: str, line: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement, (line,)).rowcount > 0


LATER = [
    "UPDATE charge SET sql = 'other' WHERE serial = (SELECT max(serial) FROM charge WHERE serial > ?)",
    "UPDATE journal SET time = '2001' WHERE serial > ?",
    "DELETE FROM step WHERE serial = (SELECT max(serial) FROM step WHERE serial > ?)",
    "UPDATE step SET state = 'shown' WHERE serial = (SELECT min(serial) FROM step WHERE serial > ?)",
    "DELETE FROM charge WHERE serial < ? AND serial % 2",  # what stood before is counted all the same
    "UPDATE account SET charge = charge - 1 WHERE charge > ?",
    "UPDATE journal SET hash = 'x' WHERE serial = ?",
]


@pytest.mark.parametrize("statement", LATER)
def test_what_was_changed_since_a_checkpoint_is_found_from_there(tmp_path, statement):
    path = tmp_path / "b.db"
    with opened(path) as ledger:
        fill(ledger, 20)
        early = ledger.record.verify()
        kept = ledger.record.checkpoint(early)
        fill(ledger, 5)
    tampered(path, statement, early.serial)
    with Ledger.inspect(path) as ledger:
        assert ledger.record.verify(checkpoint=kept).problems


def test_what_was_changed_before_a_checkpoint_is_found_by_a_whole_walk_alone(tmp_path):
    """It is trusted because one was told so; the answer says that it was."""
    path = tmp_path / "b.db"
    with opened(path) as ledger:
        fill(ledger, 20)
        early = ledger.record.verify()
        kept = ledger.record.checkpoint(early)
    tampered(path, "UPDATE charge SET sql = 'other' WHERE serial < ?", early.serial)
    with Ledger.inspect(path) as ledger:
        assert ledger.record.verify(checkpoint=kept).sound
        assert not ledger.record.verify().sound
        with pytest.raises(PolicyError, match="sound"):
            ledger.record.checkpoint(ledger.record.verify())


def test_a_checkpoint_that_is_foreign_forged_or_of_a_newer_copy_is_refused(tmp_path):
    key, path, other = b"sixteen bytes at least", tmp_path / "b.db", tmp_path / "c.db"
    with Ledger.open(path, budgets=BUDGETS, key=key) as ledger:
        charge(ledger, "1")
        ledger.record.backup(tmp_path / "old.db")
        charge(ledger, "1", question_key="later")
        kept = ledger.record.checkpoint(ledger.record.verify())
    for text in ("", "{}", "[]", "[" * 10**5, kept.replace('"checkpoint": 1', '"checkpoint": 2')):
        with Ledger.inspect(path, key=key) as ledger, pytest.raises(PolicyError, match="not a checkpoint"):
            ledger.record.verify(checkpoint=text)
    content = json.loads(kept)
    for change in ({"rows": 1}, {"accounts": []}, {"mac": None}, {"kinds": {}}):
        with Ledger.inspect(path, key=key) as ledger, pytest.raises(PolicyError, match="not written with"):
            ledger.record.verify(checkpoint=json.dumps(content | change))
    with Ledger.inspect(tmp_path / "old.db", key=key) as ledger:
        assert any("the checkpoint (line" in problem for problem in ledger.record.verify(checkpoint=kept).problems)
    opened(other).close()
    with Ledger.inspect(other) as ledger, pytest.raises(PolicyError, match="another ledger's"):
        ledger.record.verify(checkpoint=kept)
