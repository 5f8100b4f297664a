"""The commands by which a ledger is kept: backup and restore, another key, texts that go, a witness."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from cli.helpers import COUNT, WARDS
from hubbub.ledger.store import Ledger


@pytest.fixture
def asked(cli):
    """A ledger with one answer at a quarter; the charge's id."""
    assert cli("query", COUNT, "--epsilon", "0.25", "--yes")[0] == 0
    return json.loads(cli("history", "--format", "json")[1])[0]["id"]


def declare(people, line: str) -> None:
    policy = people / "hubbub.toml"
    policy.write_text(policy.read_text().replace("[budget]", f"{line}\n[budget]", 1))


def gone(people) -> None:
    for suffix in ("", "-wal", "-shm", "-queue"):
        (people / f"budget.db{suffix}").unlink(missing_ok=True)


def test_a_backup_is_put_back_with_nothing_left_and_a_steward_says_how_much_is(cli, asked, people):
    assert "up to line" in cli("ledger", "backup", "copy")[2]
    assert cli("ledger", "backup", "copy")[0] == 3
    gone(people)
    assert "no anchor tells" in cli("ledger", "restore", "copy")[2]
    assert cli("ledger", "restore")[0] == cli("ledger", "restore", "copy", "--accept-older")[0] == 2
    code, _, err = cli("ledger", "restore", "copy", "--accept-older", "--reason", "the disk died")
    assert (code, "nothing is left to spend" in err) == (0, True)
    assert cli("query", WARDS, "--epsilon", "0.1", "--yes")[0] == 4
    assert cli("query", COUNT, "--epsilon", "0.25", "--yes")[0] == 4  # its rows may have been refreshed since
    assert cli("grant", "everyone", "--epsilon", "1", "--reason", "nothing since")[0] == 0
    assert cli("query", WARDS, "--epsilon", "0.1", "--yes")[0] == 0
    assert cli("ledger", "restore", "--accept-older", "--reason", "pg_restore, say")[0] == 0
    assert cli("query", COUNT, "--epsilon", "0.3", "--yes")[0] == 4
    assert cli("ledger", "verify")[0] == 0


def test_a_backup_that_the_anchor_vouches_for_is_taken_as_it_is(cli, asked, people):
    declare(people, 'anchor = "elsewhere"')
    assert cli("ledger", "anchor")[0] == 0
    assert cli("ledger", "backup", "copy")[0] == 0
    gone(people)
    assert "its anchor shows that nothing was charged since" in cli("ledger", "restore", "copy")[2]
    assert cli("query", WARDS, "--epsilon", "0.1", "--yes")[0] == 0


@pytest.mark.parametrize("killed", ["no", "before", "after"])
def test_a_key_is_changed_and_what_was_begun_is_ended(cli, asked, people, killed):
    kept = cli("receipt", asked, "--format", "json")[1]
    (people / "receipt.json").write_text(kept)
    declare(people, 'key_file = "key"')
    assert "its key" in cli("budget")[2] or cli("budget")[0] == 3
    assert cli("ledger", "rekey")[0] == 0  # its first one
    first = (people / "key").read_text()
    assert (people / "key").stat().st_mode & 0o777 == 0o600
    if killed != "no":  # with the next key written, and perhaps in the chain
        (people / "key.next").write_text("f" * 64)
    if killed == "after":
        with Ledger.manage(people / "budget.db", key=first.strip().encode()) as ledger:
            ledger.steward.rekey(b"f" * 64, author="a")
        assert cli("budget")[0] == 3
    code, _, err = cli("ledger", "rekey")
    assert (code, "holds the new key" in err) == (0, True), err
    assert (people / "key").read_text() != first
    assert [file.read_text() for file in people.glob("key.until-*")] == [first]
    assert cli("ledger", "verify", "--receipt", "receipt.json")[0] == 0
    assert cli("query", WARDS, "--epsilon", "0.1", "--yes")[0] == 0
    assert not (people / "key.next").exists()


def test_the_text_of_a_question_goes_by_its_charge_or_its_age(cli, asked, people):
    assert "is removed" not in cli("history")[1]
    assert cli("ledger", "redact")[0] == cli("ledger", "redact", asked, "--older-than", "3")[0] == 2
    assert "The words of 1 lines" in cli("ledger", "redact", asked)[2]
    assert "(removed)" in cli("history")[1]
    declare(people, "keep_texts = 30")
    assert "The words of 0 lines" in cli("ledger", "redact")[2]
    assert cli("query", WARDS, "--epsilon", "0.1", "--yes")[0] == 0
    assert "The words of 1 lines" in cli("ledger", "redact", "--older-than", "0")[2]
    assert cli("ledger", "verify")[0] == 0
    assert cli("query", COUNT, "--epsilon", "0.25", "--yes")[0] == 0  # its answer is found as before


def test_a_witness_finds_a_ledger_that_was_put_back(cli, asked, people, monkeypatch):
    assert cli("ledger", "witness")[0] == 3
    declare(people, 'witness = "elsewhere"')
    (people / "elsewhere").mkdir()
    shutil.copyfile(people / "budget.db", people / "old.db")
    assert cli("query", WARDS, "--epsilon", "0.1", "--yes")[0] == 0
    assert "nothing to send" in cli("ledger", "witness")[2]  # the ledger began today
    monkeypatch.setattr("hubbub.ledger.chain_state.now_at", lambda _: "9000-01-01T00:00:00.000000Z")
    assert "The witness has line" in cli("ledger", "witness")[2]
    assert len(os.listdir(people / "elsewhere")) == 1
    assert cli("ledger", "verify", "--witness", "elsewhere")[0] == 0
    gone(people)
    shutil.copyfile(people / "old.db", people / "budget.db")
    code, _, err = cli("ledger", "verify", "--witness", "elsewhere")
    assert (code, "the witness of 9000-01-01 (line" in err) == (3, True)
    assert cli("ledger", "verify")[0] == 0
