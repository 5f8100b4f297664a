"""One changed row of what decides a block, a draw or a failure gives nothing back: it is compared with its line."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge, fork, resume, wait
from ledger.test_chain import tamper

KEY = b"a key of enough bytes"
BUDGETS = {SPACE: Budget(1)}
WORDS = "damaged, or somebody else wrote into it"


def with_a_closed_block(path: Path, key: bytes | None = None) -> str:
    """A ledger whose block of all gave it back, and all was spent since; the block."""
    with Ledger.open(path, budgets=BUDGETS, key=key) as ledger:
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
        ledger.charges.close_block(block)
        charge(ledger, 1)
    return block


CLOSED = {
    "is none": "UPDATE step SET state = 'cmosed' WHERE state = 'closed'",
    "is another": "UPDATE step SET state = 'shown' WHERE state = 'closed'",
    "is another charge's": "UPDATE step SET charge = (SELECT max(serial) FROM charge) WHERE state = 'closed'",
    "is no charge's": "UPDATE step SET charge = 999 WHERE state = 'closed'",
    "is of another line": "UPDATE step SET serial = 999 WHERE state = 'closed'",
    "is gone": "DELETE FROM step WHERE state = 'closed'",
}


@pytest.mark.parametrize("key", [None, KEY], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize("end", CLOSED)
def test_a_block_whose_end_was_changed_pays_nothing_and_gives_nothing_back(tmp_path, end, key):
    path = tmp_path / "b.db"
    block = with_a_closed_block(path, key)
    tamper(path, CLOSED[end])
    for work in (
        lambda ledger: charge(ledger, 1, block=block, dataset="labs", question_key="again"),
        lambda ledger: ledger.charges.close_block(block),
    ):
        with pytest.raises(PolicyError, match=WORDS), Ledger.manage(path, key=key) as ledger:
            work(ledger)
    with suppress(HubbubError), Ledger.manage(path, key=key) as ledger:
        assert ledger.balance.spent(SPACE) == 1


HELD = {
    "its epsilon": "pure = '9/10'",
    "its rho": "rho = '9/10'",
    "its parts": """details = '{"parts": ["9/10", "9/10", "0/1", 0]}'""",
    "its analyst": "analyst = 'eve'",
}


@pytest.mark.parametrize("key", [None, KEY], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize("held", HELD)
def test_a_block_holds_what_its_line_says(tmp_path, held, key):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS, key=key) as ledger:
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1, 10))
        charge(ledger, "1/2", question_key="x")
        charge(ledger, "2/5", question_key="y")
    tamper(path, f"UPDATE charge SET {HELD[held]} WHERE kind = 'block'")
    for work in (
        lambda ledger: charge(ledger, "9/10", block=block, dataset="labs", analyst="eve" if "ana" in held else "ada"),
        lambda ledger: ledger.charges.close_block(block),
    ):
        with pytest.raises(PolicyError, match=WORDS), Ledger.manage(path, key=key) as ledger:
            work(ledger)
    with Ledger.inspect(path, key=key) as ledger:
        assert ledger.balance.spent(SPACE) == 1


DRAWN = {
    "is none": "UPDATE step SET state = 'drawinf' WHERE state = 'drawing'",
    "is another": "UPDATE step SET state = 'withdrawn' WHERE state = 'drawing'",
    "is another charge's": "UPDATE step SET charge = (SELECT max(serial) FROM charge) WHERE state = 'drawing'",
    "is no charge's": "UPDATE step SET charge = 999 WHERE state = 'drawing'",
    "is gone": "DELETE FROM step WHERE state = 'drawing'",
}


@pytest.mark.parametrize("drawn", DRAWN)
def test_what_was_drawn_is_not_taken_over_whatever_becomes_of_the_row_that_says_so(tmp_path, drawn):
    path = tmp_path / "b.db"

    def child() -> None:
        ledger = Ledger.open(path, budgets=BUDGETS, max_failures=9)
        made = charge(ledger, "1/2")
        charge(ledger, "1/4", question_key="another")
        ledger.charges.advance(made, "drawing")

    assert wait(fork(child)) == [0]
    Ledger.inspect(path).close()
    tamper(path, DRAWN[drawn])
    with (
        pytest.raises(PolicyError, match=WORDS),
        Ledger.open(path, budgets=BUDGETS, create=False, max_failures=9) as ledger,
    ):
        resume(ledger, epsilon=Fraction(1, 2))


def test_a_failure_is_that_of_its_line(tmp_path):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS, max_failures=1) as ledger:
        made = charge(ledger, "1/4")
        ledger.charges.advance(made, "failed", incident="x")
        charge(ledger, "1/4", analyst="eve", question_key="another")
    tamper(path, "UPDATE step SET charge = (SELECT max(serial) FROM charge) WHERE state = 'failed'")
    with (
        pytest.raises(PolicyError, match=WORDS),
        Ledger.open(path, budgets=BUDGETS, create=False, max_failures=1) as ledger,
    ):
        charge(ledger, "1/4", question_key="new")


def test_what_a_reading_costs_is_what_its_line_says(tmp_path):
    """A reading that was paid for stands in a row: one of another answer's would be free to read."""
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets={SPACE: Budget(4)}) as ledger:
        made = [charge(ledger, 1, question_key="k", purpose=text) for text in ("a", "b")]
        for each in made:
            ledger.charges.advance(each, "drawing")
            ledger.charges.store(each, "answer")
        ledger.charges.share(ledger.record.release(made[0]), "eve")
    tamper(path, f"UPDATE charge SET details = replace(details, '{made[0]}', '{made[1]}') WHERE kind = 'reading'")
    with pytest.raises(PolicyError, match=WORDS), Ledger.manage(path) as ledger:
        ledger.charges.share(ledger.record.release(made[1]), "eve")
