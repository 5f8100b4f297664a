"""What a question is asked for stands with its charge, under the chain; a policy may want it said."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction

import pytest

from hubbub.errors import BudgetError, QueryError
from hubbub.ledger.budget import Budget
from hubbub.ledger.hash_chain import compact, linked_row
from hubbub.ledger.policy import load_policy
from hubbub.ledger.schema import COLUMNS
from hubbub.ledger.store import Charge, Ledger
from ledger.helpers import SPACE, charge

BUDGETS = {SPACE: Budget(1)}
WHY = "the yearly report,\nward by ward"


def test_a_purpose_stands_in_history_receipt_and_export(place):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        said = charge(ledger, "0.1", purpose=WHY)
        silent = charge(ledger, "0.1", question_key="other")
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1, 2), purpose="a course")
        assert [entry.purpose for entry in ledger.record.history()] == [WHY, None, "a course"]
        assert ledger.record.receipt(said)["purpose"] == WHY
        assert "purpose" not in ledger.record.receipt(silent)
        assert ledger.record.entry(block).purpose == "a course"
        rows = [json.loads(line)["row"] for line in ledger.record.export()]
        assert [row["purpose"] for row in rows if "purpose" in row] == [WHY, None, "a course"]
        assert ledger.record.verify().problems == ()


@pytest.mark.parametrize("found", ["", "  \n", 7, b"x", "x" * 201, "\ud800"])
def test_a_purpose_is_a_text_of_two_hundred_characters(place, found):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        with pytest.raises(QueryError):
            charge(ledger, "0.1", purpose=found)
        with pytest.raises(QueryError):
            ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1, 2), purpose=found)
        charge(ledger, "0.1", purpose="\u00e9" * 200)
        assert ledger.balance.spent(SPACE) == Fraction(1, 10)


def test_where_the_policy_wants_a_purpose_no_question_is_charged_without_one(place):
    with Ledger.open(place, budgets=BUDGETS, require_purpose=True) as ledger:
        columns = {"space": SPACE, "dataset": "visits", "analyst": "ada", "question_key": "k", "sql": "s",
                   "epsilon": Fraction(1, 10), "event": "{}", "details": "{}"}  # fmt: skip
        for step in (
            lambda: ledger.charges.charge(Charge(**columns)),
            lambda: ledger.charges.charge_once(Charge(**columns)),
            lambda: ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1, 10)),
        ):
            with pytest.raises(QueryError, match=r"wants to know what a question is asked for.*Nothing was charged"):
                step()
        assert not ledger.record.history()
        made, new = ledger.charges.charge_once(Charge(**columns, purpose="why"))
        assert new
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, "answer")
        ledger.charges.share(ledger.record.release(made), "bob")  # to read what is there is no question
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1, 10), purpose="why")
        ledger.charges.close_block(block)
        with pytest.raises(BudgetError):
            ledger.charges.charge(Charge(**columns | {"epsilon": Fraction(2)}, purpose="too much"))


def test_a_purpose_that_was_changed_added_or_taken_away_is_found(tmp_path):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        charge(ledger, "0.1", purpose="why")
        charge(ledger, "0.1", question_key="other")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER charge_no_update")
    for before, after in (("why", "another"), ("why", None), (None, "invented"), (None, "")):
        (serial,) = connection.execute("SELECT serial FROM charge WHERE purpose IS ?", (before,)).fetchone()
        connection.execute("UPDATE charge SET purpose = ? WHERE serial = ?", (after, serial))
        with Ledger.inspect(path) as ledger:
            assert any("charge or its link was changed" in problem for problem in ledger.record.verify().problems)
        connection.execute("UPDATE charge SET purpose = ? WHERE serial = ?", (before, serial))
    with Ledger.inspect(path) as ledger:
        assert ledger.record.verify().problems == ()


def test_no_two_charges_have_one_text_in_the_chain():
    """One without a purpose is written as before there were any; what follows it is a list."""
    row = ["x"] * (len(COLUMNS["charge"]) - 1)
    sums = [["space", "everyone", "1/2", "1/8", "0/1", 0]]
    texts = {compact([*linked_row("charge", [*row, said]), *sums]) for said in (None, "", "x", compact(sums[0]))}
    assert len(texts) == 4
    assert [*linked_row("release", ["a", None])] == ["a", None]


def test_the_policy_says_whether_a_purpose_is_wanted(tmp_path):
    text = '[ledger]\nfile = "b.db"\n{}\n[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "pid"\n'
    policy = tmp_path / "hubbub.toml"
    for line, wanted in (("", False), ("require_purpose = true", True), ("require_purpose = false", False)):
        policy.write_text(text.format(line))
        assert load_policy(policy).require_purpose is wanted
    policy.write_text(text.format('require_purpose = "yes"'))
    with pytest.raises(Exception, match=r"hubbub.toml:3.*found 'yes'; allowed: true or false"):
        load_policy(policy)
