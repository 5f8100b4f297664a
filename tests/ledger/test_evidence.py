"""Evidence: the same bytes for the same ledger, checked without hubbub, and no answers unless they are asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.evidence import write_evidence
from hubbub.ledger.evidence_check import COLUMNS, link
from hubbub.ledger.schema import COLUMNS as KEPT
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, charge
from ledger.test_chain import BUDGETS, KEY, fill


def unpacked(ledger: Ledger, folder: Path, **more) -> Path:
    write_evidence(ledger, folder / "out.zip", **more)
    with zipfile.ZipFile(folder / "out.zip") as file:
        file.extractall(folder / "out")
    return folder / "out"


def checked(folder: Path, *arguments: str) -> tuple[int, str]:
    """What the program in the zip says, in an interpreter that has no other packages."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "verify.py", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("with_answers", [False, True])
def test_evidence_is_checked_without_hubbub(place, tmp_path, with_answers):
    with Ledger.open(place, budgets=BUDGETS) as ledger:
        fill(ledger)
        folder = unpacked(ledger, tmp_path, with_answers=with_answers)
        head = ledger.record.verify()
        charges = {entry.id for entry in ledger.record.history()}
    code, said = checked(folder, "--head", f"{head.serial}:{head.head[:16]}")
    assert (code, f"head {head.serial}:{head.head}: nothing is wrong." in said) == (0, True), said
    everything = "".join(file.read_text() for file in folder.rglob("*") if file.is_file())
    assert ("answer 0" in everything) == with_answers
    assert {file.stem for file in (folder / "receipts").iterdir()} == charges
    assert [file.read_text() for file in (folder / "policies").iterdir()] == ["the policy"]
    assert "cost epsilon" in (folder / "totals.txt").read_text()
    assert checked(folder, "--head", f"{head.serial}:{'0' * 16}")[0] == 1
    assert checked(folder, "--head", f"{head.serial + 1}:{head.head[:16]}")[0] == 1


def test_the_same_state_gives_the_same_bytes(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        fill(ledger)
    for name in ("one.zip", "two.zip"):
        with Ledger.inspect(tmp_path / "b.db") as ledger:
            write_evidence(ledger, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert (tmp_path / "one.zip").stat().st_mode & 0o777 == 0o600
    with Ledger.inspect(tmp_path / "b.db") as ledger, pytest.raises(PolicyError, match="is left as it is"):
        write_evidence(ledger, tmp_path / "one.zip")


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("charge", {"epsilon": "1/100"}, "this charge or its link was changed"),
        ("charge", {"pure": "0/1"}, "the sum of everyone is not that of its charges"),
        ("allowance", {"epsilon": "3/1"}, "this allowance or its link was changed"),
        ("unit_space", {"epsilon": "1/100"}, "is overspent"),
        ("return", "1/1000", "and was not being drawn"),
        ("return", "9/1", "is more than was charged"),
        ("words", "SELECT 2", "its words are not those that it commits to"),
        ("removed", None, "its words are gone, and nobody removed them"),
        ("line", None, "is missing"),
    ],
)
def test_the_program_finds_what_was_changed(tmp_path, kind, change, said):
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        fill(ledger)
        folder = unpacked(ledger, tmp_path)
    lines = [json.loads(text) for text in (folder / "chain.jsonl").read_text().splitlines()]
    with_words = next(line for line in lines if line["kind"] == "charge" and "words" in line)
    match kind:
        case "words":
            with_words["words"]["text"] = change
        case "removed":
            del with_words["words"]
        case "line":
            lines.pop(7)
        case "return":  # behind a question, of what it did not use
            row = with_words["row"]
            given_back = row | {"kind": "return", "id": "f" * 32, "block": row["id"], "pure": change}
            lines.insert(lines.index(with_words) + 1, {"kind": "charge", "serial": 0, "row": given_back, "hash": "0"})
        case _:
            next(line for line in lines if line["kind"] == kind)["row"].update(change)
    (folder / "chain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, found = checked(folder)
    assert (code, said in found) == (1, True), found


def test_a_keyed_chain_is_checked_with_its_last_key(tmp_path):
    new = b"another key of some length"
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS, key=KEY) as ledger:
        fill(ledger)
        ledger.steward.rekey(new, author="steward")
        charge(ledger, "0.1", question_key="later")
        folder = unpacked(ledger, tmp_path)
    (folder / "key").write_bytes(new + b"\n")
    (folder / "old").write_bytes(KEY)
    code, said = checked(folder, "--key", "key")
    assert (code, "nothing is wrong" in said, "was given" in said) == (0, True, False), said
    assert "links are not computed anew" in checked(folder)[1]
    assert checked(folder, "--key", "old")[0] == 1
    # Whoever has the key before leaves out what was charged, and all that came after the key was changed.
    lines = [json.loads(line) for line in (folder / "chain.jsonl").read_text().splitlines()]
    change = next(line for line in lines if line["kind"] == "rekeying")
    forged = {**change, "serial": 3, "hash": link(lines[1]["hash"], change, KEY)}
    (folder / "chain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*lines[:2], forged)))
    code, said = checked(folder, "--key", "key")
    assert (code, "not one of those that stood before the chain got another key" in said) == (1, True), said
    (folder / "chain.jsonl").write_text("")
    assert checked(folder, "--key", "key") == (1, "chain.jsonl holds no line: what stood there is gone.\n")


def test_totals_of_a_budget_with_delta_are_in_epsilon_and_delta(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(3, "1e-6")}) as ledger:
        cost = ledger.balance.question(SPACE, "0.5")
        charge(ledger, "0.5", cost=cost)
        folder = unpacked(ledger, tmp_path)
    (total,) = json.loads((folder / "totals.json").read_text())
    assert 0.49 < float(total["charged"]["epsilon"]) <= 0.51
    assert float(total["charged"]["delta"]) == pytest.approx(5e-7)
    assert "and delta" in (folder / "totals.txt").read_text()


def chain_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "chain.jsonl").read_text("utf-8").splitlines()]


def _hidden(line: dict[str, Any]) -> None:
    line.pop("words", None)
    line |= {"kind": "release", "row": None, "withheld": ["payload"]}


def _version(line: dict[str, Any]) -> None:
    line.pop("words", None)
    row = {"unit_space": SPACE, "dataset": "visits", "id": "made up", "reason": "first asked for"}
    line |= {"kind": "data_version", "row": row, "withheld": ["fingerprint"]}


def _ledger(line: dict[str, Any]) -> None:
    line.pop("words", None)
    line |= {"kind": "ledger", "row": {"id": "made up", "key_check": None}, "withheld": ["secret"]}


def _ceiling(line: dict[str, Any]) -> None:
    line["row"]["epsilon"], line["withheld"] = "5/1", ["fingerprint"]


def _swapped(line: dict[str, Any]) -> None:
    names = [{"details": "sums", "sums": "details"}.get(name, name) for name in line["row"]]
    line["row"] = dict(zip(names, line["row"].values(), strict=True))


@pytest.mark.parametrize(
    ("kinds", "forge"),
    [
        *((("allowance", "charge"), hidden) for hidden in (_hidden, _version, _ledger)),
        (("unit_space",), _ceiling),
        (("charge",), _swapped),
    ],
)
def test_lines_do_not_pass_as_what_they_are_not(tmp_path, kinds, forge):
    """A hash is of a line's values: their names, its kind and what it held back were believed, with key and head."""
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}, key=KEY) as ledger:
        charge(ledger, "1/2")
        ledger.steward.raise_ceiling(SPACE, 5, author="steward", reason="more")
        charge(ledger, 3, question_key="more")
        folder, head = unpacked(ledger, tmp_path), ledger.record.verify()
    (folder / "key").write_bytes(KEY)
    given = ("--key", "key", "--head", f"{head.serial}:{head.head}")
    assert checked(folder, *given)[0] == 0
    lines = chain_of(folder)
    for line in [line for line in lines if line["kind"] in kinds][-2:]:
        forge(line)
    (folder / "chain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    code, said = checked(folder, *given)
    assert (code, "nothing is wrong" in said) == (1, False), said


FORGED = {
    "no account pays": [{"pure": "5/1", "rho": "25/2", "sums": []}],
    "a cost that is not pure": [
        {"pure": "0/1", "rho": "100/1", "impure": 1, "sums": [["everyone", "3/4", "3205/32", "0/1", 1]]},
    ],
    "an amount below zero": [
        {"pure": "-10/1", "rho": "0/1", "sums": [["everyone", "-37/4", "5/32", "0/1", 0]]},
        {"pure": "10/1", "rho": "0/1", "sums": [["everyone", "3/4", "5/32", "0/1", 0]]},
    ],
    "more than a block holds": [
        {"pure": "5/1", "rho": "25/2", "block": "BLOCK", "sums": [["block:BLOCK", "5/1", "25/2", "0/1", 0]]},
    ],
    "nothing is set aside": [
        {"pure": "5/1", "rho": "25/2", "details": '{"training":1,"paid_from":"training"}',
         "sums": [["training", "5/1", "25/2", "0/1", 0]]}
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_chain_whose_links_fit_does_not_pass_with_amounts_that_nobody_may_pay(tmp_path, name):
    """Whoever may write a chain can compute its links; what `verify` refuses, the program without hubbub does, too."""
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        charge(ledger, "1/2")
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon="1/4")
        folder = unpacked(ledger, tmp_path)
    assert checked(folder)[0] == 0
    lines = chain_of(folder)
    first = next(line for line in lines if line["kind"] == "charge")
    for number, forged in enumerate(FORGED[name]):
        line = json.loads(json.dumps(first).replace("BLOCK", block))
        sums = json.dumps([[SPACE, *one] for one in forged["sums"]])
        line["row"] |= {**forged, "id": f"forged{number}", "sql": "a question", "sums": sums}
        line = json.loads(json.dumps(line).replace("BLOCK", block))
        line |= {"time": lines[-1]["time"], "serial": len(lines) + 1}
        line.pop("words", None)
        line["hash"] = link(lines[-1]["hash"], line, None)
        lines.append(line)
    (folder / "chain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    code, said = checked(folder)
    assert (code, "nothing is wrong" in said, "link was changed" in said) == (1, False, False), said


def test_sums_that_were_rounded_are_sound(tmp_path):
    """An analyst may choose an epsilon of any denominator, and a sum is rounded where its own is out of hand."""
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        for number in range(40):
            charge(ledger, Fraction(1, 10**30 + 2 * number + 1), question_key=str(number))
        assert ledger.record.verify().problems == ()
        assert checked(unpacked(ledger, tmp_path))[0] == 0


def test_a_ceiling_that_was_raised_stays_so_in_an_older_copy(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        ledger.steward.raise_ceiling(SPACE, 3, author="steward", reason="more")
        charge(ledger, 2)
    with Ledger.manage(tmp_path / "b.db") as ledger:
        ledger.steward.accept_older(author="steward", reason="lost")
        assert ledger.balance.budget(SPACE) == Budget(3)
        assert ledger.balance.left(SPACE, analyst="ada").epsilon == 0
        assert ledger.record.verify().problems == ()
        assert checked(unpacked(ledger, tmp_path))[0] == 0


def test_a_block_that_counts_by_rho_gives_back_what_it_did_not_use(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(3, "1e-6")}) as ledger:
        block = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=1)
        charge(ledger, "1/10", block=block)
        ledger.charges.close_block(block)
        assert ledger.record.verify().problems == ()
        code, said = checked(unpacked(ledger, tmp_path))
        assert code == 0, said


@pytest.mark.parametrize("what", ["totals", "receipts", "a receipt", "questions"])
def test_what_stands_beside_the_chain_says_what_it_says(tmp_path, what):
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        charge(ledger, "1/2")
        charge(ledger, "1/4", question_key="more")
        folder = unpacked(ledger, tmp_path)
    assert checked(folder)[0] == 0
    totals, receipts = folder / "totals.json", sorted((folder / "receipts").iterdir())
    match what:
        case "totals":
            totals.write_text(totals.read_text("utf-8").replace('"0.75"', '"0.01"'), "utf-8")
        case "questions":
            totals.write_text(totals.read_text("utf-8").replace('"questions": 2', '"questions": 1'), "utf-8")
        case "receipts":
            receipts[0].unlink()
        case _:
            receipts[0].write_bytes(receipts[1].read_bytes())
    code, said = checked(folder)
    assert (code, "nothing is wrong" in said) == (1, False), said


def test_evidence_is_of_one_moment(tmp_path, monkeypatch):
    """What is charged while it is written stood in its totals and receipts, and not in its chain."""
    path = tmp_path / "b.db"
    with Ledger.open(path, budgets={SPACE: Budget(1)}) as ledger:
        charge(ledger, "1/10")
        verified = ledger.record.verify()
        charge(ledger, "8/10", question_key="meanwhile")
        monkeypatch.setattr(type(ledger.record), "verify", lambda self, *args, **more: verified)
        folder = unpacked(ledger, tmp_path)
    code, said = checked(folder)
    assert (code, "epsilon 1/10" in said) == (0, True), said
    assert json.loads((folder / "totals.json").read_text("utf-8"))[0]["charged"]["epsilon"] == "0.1"
    assert len(list((folder / "receipts").iterdir())) == 1


def test_the_program_knows_every_kind_of_line():
    """It stands alone, so it says again what a ledger's lines hold."""
    assert {kind: tuple(columns.split(",")) for kind, columns in COLUMNS.items()} == {
        kind: (*columns, "sums") if kind == "charge" else columns for kind, columns in KEPT.items()
    }
