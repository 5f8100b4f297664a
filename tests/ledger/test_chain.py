"""The chain: whatever is changed, added, removed or put back, `verify` says so."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import analyst_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.schema import HASHED
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge

BUDGETS = {SPACE: Budget(3)}
KEY = b"sixteen bytes at least"


def fill(ledger: Ledger) -> list[str]:
    """One of everything; the charges."""
    ledger.steward.grant(SPACE, analyst_account("bob"), 1, author="steward")
    ledger.versions.data_version(SPACE, "visits", fingerprint="1")
    charges = []
    for number in range(3):
        policy = ledger.versions.remember_policy("the policy")
        charge_id = charge(ledger, "0.1", question_key=str(number), policy=policy,
                           details='{"neighbours": "add_remove"}')  # fmt: skip
        ledger.charges.advance(charge_id, "drawing")
        ledger.charges.store(charge_id, f"answer {number}")
        ledger.charges.advance(charge_id, "shown")
        charges.append(charge_id)
    ledger.charges.share(ledger.record.release(charges[0]), "bob")
    block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
    charge(ledger, "0.25", block=block)
    ledger.charges.close_block(block)
    with pytest.raises(Exception, match="asks for epsilon 9"):
        charge(ledger, 9)
    ledger.steward.unlock(SPACE, "ada", author="steward")
    ledger.steward.unlock_all(SPACE, author="steward")
    ledger.versions.remember_sources({("visits.parquet", "patient_id"): SPACE})
    ledger.steward.redact(charges[1], author="steward")
    return charges


@pytest.fixture
def path(tmp_path) -> Path:
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        fill(ledger)
    return tmp_path / "b.db"


def verified(path: Path, **more):
    with Ledger.inspect(path) as ledger:
        return ledger.record.verify(**more)


def tamper(path: Path, *statements: str) -> None:
    """Change rows behind the ledger's back, as somebody with the file could."""
    connection = sqlite3.connect(path)
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_ledger_with_one_of_everything_is_sound(place):
    nets = Budget(2, "1e-6", training=("0.5", "1e-7"))
    with Ledger.open(place, budgets={**BUDGETS, "nets": nets}) as ledger:
        fill(ledger)
        found = ledger.record.verify()
        assert found.sound, found.problems
        with ledger._handle.reading() as connection:
            kinds = {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM journal").fetchall()}
        # With an anchor; of the service; with keys; of a restored one.
        assert kinds == set(HASHED) - {"anchoring", "schedule", "silence", "rekeying", "restoring"}
        assert found.rows == len(list(ledger.record.export()))


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE charge SET epsilon = '1/100' WHERE question_key = '1'", "this charge or its link was changed"),
        ("UPDATE charge SET sql = 'SELECT 2' WHERE question_key = '1'", "this charge or its link was changed"),
        ("UPDATE release SET payload = 'other' WHERE serial = (SELECT min(serial) FROM release)",
         "this release or its link was changed"),
        ("UPDATE wording SET content = 'x' WHERE content = 'answer 1'", "its words are not those that it commits to"),
        ("UPDATE wording SET salt = '0' WHERE content = 'answer 1'", "its words are not those that it commits to"),
        ("DELETE FROM wording WHERE content = 'answer 1'", "its words are gone, and nobody removed them"),
        ("INSERT INTO wording VALUES (1, '0', 'x')", "it commits to no words, and has some"),
        ("DELETE FROM redaction", "its row in 'redaction' is missing"),
        ("UPDATE charge SET sums = replace(sums, '1/10', '0/1') WHERE question_key = '0'",
         "the sum of 'everyone' is not that"),
        ("UPDATE charge SET sums = 'x' WHERE question_key = '0'", "not posted to the accounts"),
        ("UPDATE account SET charge = charge - 3 WHERE name = 'everyone'", "the last charge of everyone is another"),
        ("DELETE FROM account WHERE name = 'table:visits'", "the last charge of table:visits is another"),
        ("UPDATE relation SET neighbours = 'replace'", "this relation or its link was changed"),
        ("UPDATE step SET state = 'failed' WHERE state = 'stored'", "'failed' became 'shown'"),
        ("UPDATE allowance SET epsilon = '3/1'", "this allowance or its link was changed"),
        ("UPDATE unit_space SET epsilon = '9/1'", "this unit_space or its link was changed"),
        ("UPDATE policy SET content = 'x'", "this policy or its link was changed"),
        ("UPDATE refusal SET asked = '1'", "this refusal or its link was changed"),
        ("UPDATE journal SET time = '2020-01-01T00:00:00.000000Z' WHERE serial = 9", "lies before"),
        ("DELETE FROM charge WHERE question_key = '2'", "its row in 'charge' is missing"),
        ("DELETE FROM journal WHERE serial = 9", "line 9: missing, the next one is 10"),
        ("DELETE FROM clearance", "its row in 'clearance' is missing"),
        ("INSERT INTO step VALUES (999, 1, 'shown', NULL, NULL)", "step: 1. rows, and"),
    ],
)  # fmt: skip
def test_a_tampered_row_is_found(path, statement, says):
    tamper(path, statement)
    problems = "\n".join(verified(path).problems)
    assert re.search(says, problems), problems


def test_every_row_of_every_table_is_under_the_chain(path):
    """A changed value in any text column of any journaled row breaks the chain."""
    connection = sqlite3.connect(path)
    rows = [(t, s) for t in HASHED for (s,) in connection.execute(f"SELECT serial FROM {t}").fetchall()]
    connection.close()
    columns = {"ledger": "secret", "unit_space": "epsilon", "allowance": "reason", "policy": "content",
               "data_version": "reason", "charge": "details", "step": "incident", "release": "payload",
               "refusal": "sql", "clearance": "author", "relation": "neighbours",
                   "joint_clearance": "author", "source": "place", "redaction": "author"}  # fmt: skip
    for number, (table, serial) in enumerate(rows):
        copy = path.with_name(f"copy{number}.db")
        shutil.copy(path, copy)
        tamper(copy, f"UPDATE {table} SET {columns[table]} = 'x' WHERE serial = {serial}")
        assert not verified(copy).sound, (table, serial)


def test_a_receipt_finds_a_ledger_that_was_put_back(path, tmp_path):
    shutil.copy(path, tmp_path / "old.db")
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        receipt = ledger.record.receipt(charge(ledger, "0.5"))
    assert verified(path, receipt=receipt).sound
    problems = verified(tmp_path / "old.db", receipt=receipt).problems
    assert any("an earlier state of the ledger was put back" in problem for problem in problems)


def test_a_receipt_finds_a_ledger_that_was_written_anew(path, tmp_path):
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        receipt = ledger.record.receipt(ledger.record.history()[-1].id)
    with Ledger.open(tmp_path / "other.db", budgets=BUDGETS) as other:
        fill(other)
    assert "another ledger's" in verified(tmp_path / "other.db", receipt=receipt).problems[0]
    receipt["chain"]["head"]["hash"] = "0" * 64
    assert "the ledger was rewritten" in verified(path, receipt=json.loads(json.dumps(receipt))).problems[0]
    with pytest.raises(PolicyError, match="not a receipt"):
        verified(path, receipt={"chain": 1})


def test_a_keyed_chain_needs_its_key(tmp_path):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS, key=KEY) as ledger:
        fill(ledger)
        assert ledger.record.verify().sound
    with pytest.raises(PolicyError, match="is keyed: name its key file"):
        Ledger.open(path, budgets=BUDGETS)
    with pytest.raises(PolicyError, match="the key is not that of the ledger"):
        Ledger.open(path, budgets=BUDGETS, key=b"another key of some length")
    assert "no key was given" in verified(path).problems[0]
    with Ledger.inspect(path, key=KEY) as ledger:
        assert ledger.record.verify().sound
    with Ledger.open(tmp_path / "plain.db", budgets=BUDGETS) as ledger:
        ledger.balance.spaces()
    with pytest.raises(PolicyError, match="has no key, and one was named"):
        Ledger.open(tmp_path / "plain.db", budgets=BUDGETS, key=KEY)


def test_a_backup_is_a_whole_ledger_and_overwrites_nothing(path, tmp_path):
    with Ledger.inspect(path) as ledger:
        ledger.record.backup(tmp_path / "copy.db")
        with pytest.raises(PolicyError, match="exists and is left as it is"):
            ledger.record.backup(tmp_path / "copy.db")
        with pytest.raises(PolicyError, match="no folder"):
            ledger.record.backup(tmp_path / "none" / "copy.db")
        head = ledger.record.verify()
    assert verified(tmp_path / "copy.db") == head


def test_an_export_holds_every_row_and_no_secret(path):
    with Ledger.inspect(path) as ledger:
        lines = [json.loads(line) for line in ledger.record.export()]
        secret = next(ledger._handle.store.reading().__enter__().execute("SELECT secret FROM ledger"))[0]
    assert [line["serial"] for line in lines] == list(range(1, len(lines) + 1))
    assert secret not in json.dumps(lines)
    assert {line.get("words", {}).get("text") for line in lines} >= {"answer 0", "answer 1", "answer 2"}


def test_a_receipt_says_what_was_asked_and_what_it_cost(path):
    with Ledger.inspect(path) as ledger:
        receipt = ledger.record.receipt(ledger.record.history()[0].id)
        assert ledger.record.policy_text(receipt["policy"][:12]) == "the policy"
        with pytest.raises(PolicyError, match="no policy"):
            ledger.record.policy_text("ffff")
    assert (receipt["epsilon"], receipt["charged"]) == (
        "0.1",
        {"epsilon": "0.1", "rho": "0.005", "delta": "0", "to": "the joint budget"},
    )
    assert receipt["chain"]["head"]["serial"] > receipt["chain"]["charge"]["serial"]


def test_two_copies_in_turn_keep_a_version_each_until_a_refresh_is_declared(tmp_path):
    """Before, each use of one copy after the other was a refresh, and nothing stored was found again."""
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        seen = [ledger.versions.data_version(SPACE, "visits", fingerprint=copy) for copy in "aabbabcab"]
        first, second, third = seen[0], seen[2], seen[6]
        assert seen == [first, first, second, second, first, second, third, first, second]
        assert ledger.versions.data_version(SPACE, "visits") == third
        for reason in ("declared", "the source changed", "first asked for"):
            declared = ledger.steward.refresh(SPACE, "visits", reason=reason)
            again = [ledger.versions.data_version(SPACE, "visits", fingerprint=copy) for copy in "abcab"]
            assert declared in again  # of the copy that was new last
            assert again[:2] == again[3:]
            assert not {*again} & {*seen}
            seen += again
        assert len({*seen}) == 3 + 3 * 3
        assert ledger.record.verify().problems == ()


def test_a_refresh_is_a_new_version_and_gives_no_budget_back(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        charge(ledger, 1)
        first = ledger.versions.data_version(SPACE, "visits", fingerprint="10 rows")
        assert ledger.versions.data_version(SPACE, "visits", fingerprint="10 rows") == first
        assert ledger.versions.data_version(SPACE, "visits") == first
        second = ledger.versions.data_version(SPACE, "visits", fingerprint="11 rows")
        third = ledger.steward.refresh(SPACE, "visits")
        assert len({first, second, third}) == 3
        assert ledger.versions.data_version(SPACE, "visits", fingerprint="11 rows") == third
        assert ledger.balance.remaining(SPACE) == 2
        assert "11 rows" not in "".join(ledger.record.export())
    assert b"11 rows" not in (tmp_path / "b.db").read_bytes()
