"""One flipped bit gives nothing back: what decides a charge is compared with the chain before it is believed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import BudgetError, PolicyError
from hubbub.ledger import database
from hubbub.ledger.accounts import EVERYONE, Total, analyst_account, block_account, pure_cost
from hubbub.ledger.blocks import return_unused
from hubbub.ledger.budget import Budget
from hubbub.ledger.rules import Rules
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, asked, charge
from ledger.test_chain import tamper

KEY = b"a key of enough bytes"
BUDGETS = {SPACE: Budget(10, "1e-6", training=("1", "1e-7")), "other": Budget(1)}
DAMAGE = {
    "an account is gone": "DELETE FROM account WHERE name = 'everyone'",
    "an account has another name": "UPDATE account SET name = 'everyonf' WHERE name = 'everyone'",
    "an account has another space": "UPDATE account SET unit_space = 'patient_if' WHERE name = 'everyone'",
    "an account points to an older charge": "UPDATE account SET charge = (SELECT min(serial) FROM charge)",
    "an account points to no charge": "UPDATE account SET charge = 999 WHERE name = 'everyone'",
    "an account points to text": "UPDATE account SET charge = 'x' WHERE name = 'everyone'",
    "a sum is less": """UPDATE charge SET sums = replace(sums, '"everyone","4', '"everyone","0')""",
    "sums are none": "UPDATE charge SET sums = 'x'",
    "a limit is more": "UPDATE allowance SET epsilon = '9/4'",
    "a limit is another's": "UPDATE allowance SET account = 'analyst:boc'",
    "a limit is of another space": "UPDATE allowance SET unit_space = 'other'",
    "a budget is more": "UPDATE unit_space SET epsilon = '90/1'",
    "a budget is another's": "UPDATE unit_space SET name = 'othes' WHERE name = 'other'",
    "nothing is set aside": "UPDATE training SET unit_space = 'other'",
    "a clearance is another's": "UPDATE clearance SET analyst = 'bob'",
    "a clearance is of another space": "UPDATE joint_clearance SET unit_space = 'other'",
    "a relation is another": "UPDATE relation SET neighbours = 'add_remove'",
    "a line has another kind": "UPDATE journal SET kind = 'refusal' WHERE kind = 'allowance'",
}


def filled(path, key=None) -> None:
    with Ledger.open(path, budgets=BUDGETS, key=key) as ledger:
        ledger.steward.grant(SPACE, analyst_account("bob"), "0.25", author="steward")
        ledger.steward.unlock(SPACE, "ada", author="steward")
        ledger.steward.unlock_all(SPACE, author="steward")
        for number in range(4):
            charge(ledger, 1, question_key=str(number), details='{"neighbours": "replace"}')


@pytest.mark.parametrize("key", [None, KEY], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_that_decides_a_charge_is_refused(tmp_path, damage, key):
    path = tmp_path / "b.db"
    filled(path, key)
    tamper(path, DAMAGE[damage])
    with (
        pytest.raises(PolicyError, match="damaged, or somebody else wrote into it"),
        Ledger.manage(path, key=key) as ledger,
    ):
        charge(ledger, "0.5", analyst="bob" if "limit" in damage else "eve")
    with Ledger.inspect(path, key=key) as ledger:
        assert not ledger.record.verify().sound


def test_a_database_s_rows_are_compared_too(database):
    import psycopg

    place = database()
    filled(place)
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM hubbub.account WHERE name = 'everyone'")
    with pytest.raises(PolicyError, match="paid for more charges"), Ledger.manage(place) as ledger:
        charge(ledger, "0.5", analyst="eve")


def traced(ledger, work) -> list[str]:
    statements: list[str] = []
    with ledger._handle.reading() as connection:
        connection.set_trace_callback(statements.append)
    work()
    with ledger._handle.reading() as connection:
        connection.set_trace_callback(None)
    return statements


def test_each_line_is_looked_at_once(tmp_path):
    path = tmp_path / "b.db"
    filled(path)
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        first = traced(ledger, lambda: charge(ledger, "0.1", analyst="eve"))
        assert sum("SELECT serial, sums FROM charge" in text for text in first)
        charge(ledger, "0.1", analyst="eve")
        again = traced(ledger, lambda: charge(ledger, "0.1", analyst="eve"))
        assert not [text for text in again if "SELECT serial, sums FROM charge" in text or " AS above " in text]
        with Ledger.open(path, budgets=BUDGETS) as other:
            line = charge(other, "0.1", analyst="dan") and other.chain.lines()
        later = traced(ledger, lambda: charge(ledger, "0.1", analyst="fay"))
        (looked,) = [text for text in later if "SELECT serial, sums FROM charge" in text]
        assert int(looked.split("serial > ")[1].split()[0]) > line - 5


def test_what_was_rolled_back_is_not_remembered(tmp_path):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS) as ledger, Ledger.open(path, budgets=BUDGETS) as other:
        charge(ledger, 1)
        made = ledger.charges._request(asked(1, question_key="gone"))
        with suppress(OSError), ledger._handle.writing() as writer:
            writer.append_charge(made.row, [(SPACE, EVERYONE, "9/1", "0/1", "0/1", 0)])
            writer.finish()
            ledger._handle.store.proofs.look(writer.connection)
            raise OSError
        charge(other, 2)
        assert ledger.balance.total(SPACE).epsilon == 3
        charge(ledger, 1, question_key="another")
        assert other.balance.total(SPACE).epsilon == 4


def test_whoever_has_no_key_or_an_older_one_reads_on(tmp_path):
    path = tmp_path / "b.db"
    filled(path, KEY)
    with Ledger.open(path, budgets=BUDGETS, key=KEY) as older:
        with Ledger.manage(path, key=KEY) as ledger:
            ledger.steward.rekey(b"another key of enough bytes", author="steward")
            ledger.steward.grant(SPACE, EVERYONE, 5, author="steward")
            charge(ledger, 1)
        assert older.balance.total(SPACE).epsilon == 5
    with Ledger.inspect(path) as ledger:
        assert ledger.balance.total(SPACE).epsilon == 5
        assert ledger.record.verify().problems


def test_the_first_question_of_a_block_looks_at_what_follows_the_block(tmp_path):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets={SPACE: Budget(10)}) as ledger:
        for number in range(5):
            charge(ledger, "0.5", question_key=str(number))
    with Ledger.open(path, budgets={SPACE: Budget(10)}) as ledger:
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
        looked = traced(ledger, lambda: charge(ledger, "0.25", block=block))
        assert not [text for text in looked if "SELECT serial, sums FROM charge WHERE serial > 0" in text]
        assert ledger.balance.total(SPACE, block_account(block)).epsilon == Fraction(1, 4)
        ledger.charges.close_block(block)
        with pytest.raises(BudgetError):
            charge(ledger, 9)
        assert ledger.record.verify().sound


def test_two_that_give_back_in_one_transaction_both_count():
    """As two releases of one tick: the second overwrote what the first had given back."""
    with Ledger.in_memory({SPACE: Budget(10)}) as ledger:
        made = [charge(ledger, 2, question_key=str(number)) for number in range(2)]
        for one in made:
            ledger.charges.advance(one, "drawing")
        with ledger._handle.writing() as writer:
            for one in made:
                return_unused(writer, one, Total.of(pure_cost(Fraction(1))), Budget(10), Rules())
        assert ledger.balance.total(SPACE).epsilon == 2
        assert ledger.record.verify().sound


STORED = {
    "its words": "UPDATE wording SET content = replace(content, '21', '31')",
    "its salt": "UPDATE wording SET salt = 'x'",
    "its commitment": "UPDATE release SET payload = replace(payload, '#', '#0')",
    "whose it is": "UPDATE release SET charge = (SELECT max(serial) FROM charge)",
}


@pytest.mark.parametrize("damage", STORED)
def test_a_stored_answer_is_given_only_as_it_was_stored(tmp_path, damage):
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        made = charge(ledger, 1, details='{"sums_to_bound": 1}', data_version="v")
        ledger.charges.advance(made, "drawing")
        ledger.charges.store(made, '{"s": 21}')
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert ledger.record.release(made).payload == '{"s": 21}'
        other = charge(ledger, 1, question_key="another", details='{"sums_to_bound": 1}', data_version="v")
    tamper(path, STORED[damage])
    with Ledger.inspect(path) as ledger:
        for ask in (
            lambda: ledger.record.release(other if damage == "whose it is" else made),
            lambda: ledger.record.bounds_found(space=SPACE, analyst="ada", version="v"),
        ):
            with pytest.raises(PolicyError, match="damaged, or somebody else wrote into it"):
                ask()


def ends_of_entries(content: bytes) -> Iterator[int]:
    """Where each entry of an index of one page ends: with the row that it points to."""
    size = int.from_bytes(content[16:18], "big")
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(content)
        pages = [page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'")]
    for start in [(page - 1) * size for page in pages]:
        assert content[start] == 10, "an index has more than one page"
        for number in range(int.from_bytes(content[start + 3 : start + 5], "big")):
            cell = start + int.from_bytes(content[start + 8 + 2 * number : start + 10 + 2 * number], "big")
            assert content[cell] < 128, "an entry is long"
            yield cell + content[cell]


def test_an_index_that_points_to_another_row_is_seen_at_the_opening(tmp_path):
    path = tmp_path / "b.db"
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    whole = path.read_bytes()
    ends = list(ends_of_entries(whole))
    assert len(ends) > 10
    for end in ends:
        path.write_bytes(whole[:end] + bytes([whole[end] ^ 4]) + whole[end + 1 :])
        with pytest.raises(PolicyError, match="damaged"):
            Ledger.manage(path).close()


INDEXED = {
    "the key, to be read": ("charge_of_question", lambda ledger: ledger.record.find_release(
        space=SPACE, question_key="2", at_least=Fraction(1))),
    "the key, to be charged": ("charge_of_question", lambda ledger: ledger.charges.charge_once(
        asked(1, question_key="2"))),
    "the id": ("sqlite_autoindex_charge_1", lambda ledger: ledger.record.release(IDS["2"])),
    "the charge of an answer": ("sqlite_autoindex_release_1", lambda ledger: ledger.record.release(IDS["2"])),
}  # fmt: skip
IDS: dict[str, str] = {}


@pytest.mark.parametrize("index", INDEXED)
def test_a_row_that_an_index_names_is_compared_in_an_open_ledger(tmp_path, monkeypatch, index):
    path = tmp_path / "b.db"
    name, ask = INDEXED[index]
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        for key in ("1", "2"):
            IDS[key] = charge(ledger, 1, question_key=key)
            ledger.charges.advance(IDS[key], "drawing")
            ledger.charges.store(IDS[key], f'{{"s": {key}}}')
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    swap_rows(path, name, IDS["1"], IDS["2"])
    monkeypatch.setattr(database, "check_contents", lambda *_: None)  # as if it had been open before
    with (
        Ledger.open(path, budgets=BUDGETS) as ledger,
        pytest.raises(PolicyError, match="damaged, or somebody else wrote into it"),
    ):
        ask(ledger)


def swap_rows(path: Path, index: str, *charges: str) -> None:
    """Let the entries of an index that belong to two charges, or to their answers, point to one another's rows."""
    with sqlite3.connect(path) as connection:
        table = "release" if "release" in index else "charge"
        ask = "SELECT r.serial FROM release AS r JOIN charge ON charge.serial = r.charge WHERE charge.id = ?"
        ask = ask if table == "release" else "SELECT serial FROM charge WHERE id = ?"
        rows = [connection.execute(ask, (each,)).fetchone()[0] for each in charges]
        page, size = (
            connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (index,)).fetchone()[0],
            connection.execute("PRAGMA page_size").fetchone()[0],
        )
    connection.close()
    content = bytearray(path.read_bytes())
    start = (page - 1) * size
    others = {rows[0]: rows[1], rows[1]: rows[0]}
    for number in range(int.from_bytes(content[start + 3 : start + 5], "big")):
        cell = start + int.from_bytes(content[start + 8 + 2 * number : start + 10 + 2 * number], "big")
        end = cell + content[cell]
        content[end] = others.get(content[end], content[end])
    path.write_bytes(content)


GONE = {
    "the last charges": (
        "DELETE FROM charge WHERE serial > (SELECT min(serial) FROM charge)",
        "UPDATE account SET charge = (SELECT min(serial) FROM charge)",
    ),
    "a limit": ("DELETE FROM allowance WHERE account = 'analyst:bob'",),
    "a clearance": ("DELETE FROM clearance",),
    "a relation": ("DELETE FROM relation",),
    "what is set aside": ("DELETE FROM training",),
}


@pytest.mark.parametrize("key", [None, KEY], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize("gone", GONE)
def test_a_row_that_is_gone_from_under_its_line_gives_nothing_back(tmp_path, gone, key):
    path = tmp_path / "b.db"
    filled(path, key)
    tamper(path, *GONE[gone])
    with (
        pytest.raises(PolicyError, match="damaged, or somebody else wrote into it"),
        Ledger.manage(path, key=key) as ledger,
    ):
        charge(ledger, "0.5", analyst="eve", question_key="new")
