"""Damage of any kind is a refusal or a finding in our words; clocks and refusals do no lasting harm."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import sqlite3
import time
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import BudgetError, HubbubError, ParameterError, PolicyError, QueryError
from hubbub.ledger import blocks, budget as budgets, hash_chain as journal
from hubbub.ledger.accounts import EVERYONE
from hubbub.ledger.budget import Budget, parse_epsilon
from hubbub.ledger.policy import read_policy
from hubbub.ledger.removing import days_ago
from hubbub.ledger.schema import COLUMNS
from hubbub.ledger.steward import moment_of
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge
from ledger.test_chain import BUDGETS, fill, tamper, verified

CASES, MANY_CASES = 20, 2000


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "b.db"
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        fill(ledger)
    return path


def used(path: Path) -> None:
    """Whatever may be done with a ledger; what is wrong with it comes out as a HubbubError."""
    for work in (
        lambda: [ledger.record.verify() for ledger in [Ledger.inspect(path)]],
        lambda: charge(Ledger.open(path, budgets=BUDGETS), "0.01"),
        lambda: Ledger.inspect(path).record.history(),
        lambda: Ledger.inspect(path).record.refusals(),
        lambda: Ledger.inspect(path).balance.allowances(SPACE),
    ):
        with contextlib.suppress(HubbubError):
            work()


def damaged_pages(whole: Path, path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(whole.read_bytes())
    for _ in range(chance.choice((1, 1, 3, 20))):
        at = chance.randrange(100, len(content) - 64)
        content[at : at + 64] = chance.choice((chance.randbytes(64), bytes(64), b"\xff" * 64))
    path.write_bytes(content)


def damaged_rows(whole: Path, path: Path, seed: int) -> None:
    chance = random.Random(seed)
    shutil.copyfile(whole, path)
    table = chance.choice([*COLUMNS, "journal"])
    column = chance.choice(COLUMNS.get(table, ("time", "kind", "hash")))
    values = ("x'00ff'", "CAST(x'ff41' AS TEXT)", "0.5", "''", "'x'", "9e99", "-1", "'[[1]]'", "'{'", "zeroblob(9)")
    row = f"(SELECT serial FROM {table} ORDER BY serial LIMIT 1 OFFSET {chance.randrange(3)})"
    with contextlib.suppress(sqlite3.IntegrityError):
        tamper(path, f"UPDATE {table} SET {column} = {chance.choice(values)} WHERE serial = {row}")


def none_but_ours(whole: Path, folder: Path, cases: int) -> None:
    for seed in range(cases):
        for damage in (damaged_pages, damaged_rows):
            path = folder / f"{damage.__name__}{seed}.db"
            damage(whole, path, seed)
            used(path)
            for file in folder.glob(f"{path.name}*"):
                file.unlink()


def test_damaged_pages_and_rows_raise_none_but_our_errors(whole, tmp_path):
    none_but_ours(whole, tmp_path, CASES)


@pytest.mark.soak
def test_thousands_of_damaged_pages_and_rows_raise_none_but_our_errors(whole, tmp_path):
    none_but_ours(whole, tmp_path, MANY_CASES)


def test_a_page_for_which_sqlite_asks_too_much_memory_is_refused_in_our_words(whole, tmp_path):
    """Damage to the length of a row of SQLite's own list of tables and rules; of 4,000 damaged files one was such."""
    content, path, refused = whole.read_bytes(), tmp_path / "b.db", 0
    for row in re.finditer(rb"CT RAISE\(ABORT, 'ledger is append-only'\); END", content):
        path.write_bytes(content[: row.start()] + b"\xff" * 64 + content[row.start() + 64 :])
        for opened in (Ledger.inspect, lambda where: Ledger.open(where, budgets=BUDGETS)):
            with pytest.raises(PolicyError) as refusal:
                opened(path)
            refused += "more memory than there is, as it does where a page is damaged" in str(refusal.value)
        for file in tmp_path.glob("b.db*"):
            file.unlink()
    assert refused >= 2


@pytest.mark.parametrize("value", ["x'00ff'", "CAST(x'ff41' AS TEXT)"])
@pytest.mark.parametrize("place", ["charge.sql", "charge.details", "release.payload", "journal.hash", "journal.time"])
def test_bytes_where_text_belongs_are_found_with_their_line(whole, tmp_path, place, value):
    path = tmp_path / "b.db"
    shutil.copyfile(whole, path)
    table, column = place.split(".")
    tamper(path, f"UPDATE {table} SET {column} = {value} WHERE serial = (SELECT max(serial) FROM {table})")
    with sqlite3.connect(path) as connection:
        (line,) = connection.execute(f"SELECT max(serial) FROM {table}").fetchone()
    assert any(problem.startswith(f"line {line}: ") for problem in verified(path).problems)


@pytest.mark.parametrize("name", ["evil_no_update", "charge_no_update", "account_no_return"])
def test_a_trigger_is_a_ledgers_own_by_its_text_and_not_by_its_name(whole, tmp_path, name):
    """Before, any trigger with such a name was let in, and charges were made under it."""
    path = tmp_path / "b.db"
    shutil.copyfile(whole, path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute(f"CREATE TRIGGER {name} AFTER INSERT ON charge BEGIN SELECT 1; END")
    with pytest.raises(PolicyError, match=f"rules that are not its own \\({name}\\)"):
        Ledger.open(path, budgets=BUDGETS)


@pytest.mark.parametrize("name", ["evil", "account_grows"])
def test_a_foreign_trigger_is_refused_and_a_dropped_one_found(whole, tmp_path, name):
    path = tmp_path / "b.db"
    shutil.copyfile(whole, path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER charge_no_update")
    with Ledger.inspect(path) as ledger:
        assert "its rules were changed: charge_no_update" in ledger.record.integrity()
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TRIGGER {name} AFTER INSERT ON account BEGIN SELECT 1; END")
    with pytest.raises(PolicyError, match=f"rules that are not its own \\({name}\\)"):
        Ledger.open(path, budgets=BUDGETS)
    with Ledger.inspect(path) as ledger:
        assert name in ledger.record.integrity()


def test_refused_questions_are_kept_short_and_so_many_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_REFUSALS", 5)
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        for _ in range(8):
            with pytest.raises(BudgetError):
                charge(ledger, 2, sql="x" * 90_000)
        with pytest.raises(BudgetError):
            charge(ledger, 2, analyst="bob")
        kept = ledger.record.refusals()
        assert [one.analyst for one in kept] == ["ada"] * 5 + ["bob"]
        assert len(kept[0].sql) < 2000
        assert "(90000 characters, SHA-256 " in kept[0].sql
        assert ledger.record.verify().sound


def test_two_hundred_refusals_of_one_analyst_are_kept_a_day():
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        for _ in range(202):
            with pytest.raises(BudgetError):
                charge(ledger, 2)
        assert len(ledger.record.refusals()) == 200


def test_the_name_of_who_asks_is_short_so_that_refusals_are():
    """Before, a name of any length was written with every refusal, each under a name of its own."""
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        for ask in (
            lambda name: charge(ledger, 2, analyst=name),
            lambda name: ledger.charges.reserve(space=SPACE, analyst=name, epsilon=Fraction(2)),
        ):
            with pytest.raises(QueryError, match="201 characters; 200 are allowed"):
                ask("a" * 201)
            with pytest.raises(BudgetError):
                ask("a" * 200)
        assert [len(one.analyst) for one in ledger.record.refusals()] == [200, 200]


def test_a_grant_that_is_over_by_the_ledgers_time_is_refused_and_the_time_is_named(monkeypatch):
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        with monkeypatch.context() as wrong:
            wrong.setattr(journal, "now", lambda: "2099-01-01T00:00:00.000000Z")
            charge(ledger, "0.1")
        with pytest.raises(PolicyError, match=r"over before it begins: the ledger's time is 2099-01-01T00:00"):
            ledger.steward.grant(SPACE, EVERYONE, "0.5", until="2027-12-31", author="steward")
        ledger.steward.grant(SPACE, EVERYONE, "0.5", until="2100-01-01", author="steward")
        found = ledger.record.verify()
        assert found.sound
        assert "its last entry is of 2099-01-01T00:00" in found.notes[0]


def test_a_clock_that_jumps_forward_while_a_program_runs_records_nothing(monkeypatch):
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger:
        before, real = ledger.record.verify().serial, time.time
        with monkeypatch.context() as wrong:
            wrong.setattr(time, "time", lambda: real() + 2 * 86_400)
            with pytest.raises(PolicyError, match=r"set forward by 2\.0 days while this program ran"):
                charge(ledger, "0.1")
        assert ledger.record.verify().serial == before
        charge(ledger, "0.1")


@pytest.mark.parametrize(
    "amount",
    [Fraction(1, 2**4001), Fraction(1, 10**5000), 10**5000, Fraction(10**5000, 3), "١", "1/٣", "1e١"],
    ids=range(7),
)
def test_an_amount_without_measure_or_in_other_digits_is_none(amount):
    with pytest.raises(ParameterError, match=r"thousands of digits|is not a number"):
        parse_epsilon(amount)


@pytest.mark.parametrize(
    "text", [f"x = {'9' * 5000}", f"x = {'[' * 20_000}{']' * 20_000}", "x = 2026-99-99"], ids=range(3)
)
def test_a_policy_that_no_reader_takes_is_refused(text):
    with pytest.raises(PolicyError, match=r"/hubbub\.toml: (not valid TOML|cannot be read)"):
        read_policy(f"x = {text}", Path("/hubbub.toml"))


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, "1e-6")], ids=["pure", "with delta"])
def test_the_longest_amount_that_is_taken_can_be_written(budget):
    """Before, half the square of a longer one was an error of Python's inside the transaction."""
    longest = budgets._LONGEST_BITS
    with Ledger.in_memory({SPACE: budget}) as ledger:
        amount = parse_epsilon(Fraction(2 ** (longest - 1) - 1, 2**longest - 3))
        charge(ledger, amount, cost=ledger.balance.question(SPACE, amount))
        assert ledger.record.verify().sound


@pytest.mark.parametrize(
    "when", ["9999-12-31T23:59-01:00", "0001-01-01T00:00+23:00", "2026-02-30", 5, None], ids=range(5)
)
def test_a_moment_that_there_is_not_is_refused(when):
    with pytest.raises(ParameterError, match="is not a date as ISO 8601 writes it"):
        moment_of(when)


def test_words_older_than_all_time_are_none(whole, tmp_path):
    path = tmp_path / "b.db"
    shutil.copyfile(whole, path)
    assert days_ago(10**6) == days_ago(10**12) == "0001-01-01T00:00:00.000000Z"
    with Ledger.open(path, budgets=BUDGETS) as ledger:
        assert ledger.steward.redact_before(days_ago(800_000), author="steward") == 0


@pytest.mark.parametrize("serial", [10**30, float("inf"), float("nan"), "x", -5, None], ids=range(6))
def test_a_receipt_or_checkpoint_of_no_line_is_a_finding_or_a_refusal(whole, serial):
    with Ledger.inspect(whole) as ledger:
        receipt = ledger.record.receipt(ledger.record.history()[0].id)
        checkpoint = json.loads(ledger.record.checkpoint(ledger.record.verify()))
        receipt["chain"]["charge"]["serial"] = serial
        with contextlib.suppress(PolicyError):
            assert ledger.record.verify(receipt).problems
        checkpoint["head"][0] = serial
        with pytest.raises(PolicyError, match="is not a checkpoint"):
            ledger.record.verify(checkpoint=json.dumps(checkpoint))
        assert ledger.record.verify(head=(10**30, "a" * 16)).problems


@pytest.mark.parametrize("digest", ["", "a", "0123456789abcdeg", "\ud800" * 16, None, 5], ids=range(6))
@pytest.mark.parametrize("alone", [True, False])
def test_a_receipt_with_a_hash_that_is_none_is_not_found_in_the_chain(whole, digest, alone):
    """Before, the empty text was the beginning of every hash."""
    with Ledger.inspect(whole) as ledger:
        receipt = ledger.record.receipt(ledger.record.history()[0].id)
        receipt["chain"]["charge"]["hash"] = digest
        if alone:
            del receipt["chain"]["charge"]["serial"]
        with pytest.raises(PolicyError, match="is not a receipt"):
            ledger.record.verify(receipt)
        head = ledger.record.verify()
        assert not ledger.record.verify(head=(head.serial, head.head[:16])).problems
        assert ledger.record.verify(head=(head.serial, str(digest))).problems


@pytest.mark.parametrize("name", [["a"], None, 5], ids=range(3))
def test_a_checkpoint_of_an_account_without_a_name_is_refused(whole, name):
    with Ledger.inspect(whole) as ledger:
        checkpoint = json.loads(ledger.record.checkpoint(ledger.record.verify()))
        checkpoint["accounts"][0][1] = name
        with pytest.raises(PolicyError, match="is not a checkpoint"):
            ledger.record.verify(checkpoint=json.dumps(checkpoint))
