"""`hubbub init` on files as people have them: the policy loads, and what it declares is what the file holds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pytest

from hubbub.cli.main import run
from hubbub.ledger.policy import load_policy

ROWS = """patient;ward;aufgenommen;kosten;zip;entlassen
7;A;03.04.2025;1.234,50;02138;03.04.2025 17:30
8;B;24.12.2024;80,00;10115;24.12.2024 09:05
8;B;01.01.2025;0,75;10115;02.01.2025 00:00
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_continental_file_is_declared_by_one_command(folder: Path, encoding: str, capsys) -> None:
    (folder / "besuche.csv").write_bytes(ROWS.replace("ward", "café").encode(encoding))
    assert run(["init", "besuche.csv", "--unit", "patient", "--sniff", "--max-rows", "1"]) == 0
    table = load_policy("hubbub.toml").tables["besuche"]
    assert table.csv is not None
    assert (table.csv.delimiter, table.csv.decimal, table.csv.thousands) == (";", ",", ".")
    assert table.csv.encoding == encoding.removesuffix("-sig")
    assert dict(table.csv.formats) == {"aufgenommen": "%d.%m.%Y", "entlassen": "%d.%m.%Y %H:%M"}
    assert dict(table.types) == {
        "patient": "integer", "café": "text", "aufgenommen": "date", "kosten": "number", "zip": "text",
        "entlassen": "timestamp",
    }  # fmt: skip
    capsys.readouterr()
    # A question is priced before there is a ledger; then one is made, and it is asked.
    question = ["SELECT COUNT(*) AS n, COUNT(aufgenommen) AS days FROM besuche", "--epsilon", "1"]
    assert run(["check", *question]) == 0
    assert "There is no ledger yet" in capsys.readouterr().err
    assert not (folder / "budget.db").exists()
    assert run(["ledger", "create"]) == 0
    assert run(["query", *question, "--yes"]) == 0


def test_without_sniff_the_header_alone_is_read(folder: Path) -> None:
    """What stands in the rows changes no byte of the policy."""
    written = []
    for rows in (ROWS, ROWS.splitlines()[0] + "\n1,2,3,4,5,6\n" * 3, ROWS.splitlines()[0]):
        (folder / "besuche.csv").write_text(rows)
        assert run(["init", "besuche.csv", "--unit", "patient", "-o", "p.toml"]) == 0
        written.append((folder / "p.toml").read_text())
        (folder / "p.toml").unlink()
    assert len(set(written)) == 1
    assert 'delimiter = ";"' in written[0]


def test_days_that_could_be_months_are_said(folder: Path, capsys) -> None:
    (folder / "v.csv").write_text("id,day,late\n1,03/04/2025,13/04/2025\n2,05/06/2025,01/02/2025\n")
    assert run(["init", "v.csv", "--unit", "id", "--sniff"]) == 0
    said = capsys.readouterr().err
    assert "day is taken as %d/%m/%Y; %m/%d/%Y would fit as well" in said
    assert "late is taken" not in said


def test_words_and_codes_stay_text(folder: Path) -> None:
    (folder / "v.csv").write_text("id,ok,code,n,empty\n1,yes,007,1e3,\n2,no,123,-0.5,\n")
    assert run(["init", "v.csv", "--unit", "id", "--sniff"]) == 0
    types = load_policy("hubbub.toml").tables["v"].types
    assert dict(types) == {"id": "integer", "ok": "text", "code": "text", "n": "number", "empty": "text"}


def test_several_tables_stand_in_one_policy(folder: Path) -> None:
    (folder / "visits.csv").write_text("id,ward\n1,A\n")
    (folder / "patients.tsv").write_text("id\tage\n1\t30\n")
    (folder / "wards.csv").write_text("ward,beds\nA,3\n")
    with sqlite3.connect(folder / "more.sqlite") as con:
        con.execute("CREATE TABLE stays (id INTEGER, days INTEGER)")
    assert run(["init", "visits.csv", "patients.tsv", "--public", "wards.csv", "--unit", "id"]) == 0
    policy = load_policy("hubbub.toml")
    assert (sorted(policy.tables), sorted(policy.public)) == (["patients", "visits"], ["wards"])
    assert run(["init", "more.sqlite", "--table", "stays", "--unit", "id", "-o", "other.toml"]) == 0
    assert load_policy("other.toml").tables["stays"].table == "stays"
    assert run(["init", "visits.csv", "./visits.csv", "--unit", "id", "-o", "third.toml"]) == 3


def test_a_policy_is_written_over_only_while_nothing_is_charged(folder: Path, capsys) -> None:
    (folder / "v.csv").write_text("id,x\n1,2\n")
    with duckdb.connect(folder / "v.duckdb") as con:
        con.execute("CREATE TABLE visits AS SELECT 1 AS id")
    assert run(["init", "v.csv", "--unit", "id"]) == 0
    assert run(["init", "v.csv", "--unit", "id"]) == 3
    assert "--force writes over it while nothing is charged" in capsys.readouterr().err
    assert run(["init", "v.duckdb", "--table", "visits", "--unit", "id", "--force"]) == 0
    assert run(["ledger", "create"]) == 0
    assert run(["init", "v.csv", "--unit", "id", "--max-rows", "1", "--force"]) == 0
    assert run(["query", "SELECT COUNT(*) AS n FROM v", "--epsilon", "0.5", "--yes"]) == 0
    text = (folder / "hubbub.toml").read_text()
    capsys.readouterr()
    assert run(["init", "v.csv", "--unit", "id", "--force"]) == 3
    assert "its ledger holds charges" in capsys.readouterr().err
    assert (folder / "hubbub.toml").read_text() == text


@pytest.mark.parametrize(
    ("name", "encoding"), [("Åsa", "cp1252"), ("\x81sa", "latin-1"), ("Åsa", "utf-8"), ("Asa", "utf-8")]
)
def test_an_encoding_that_only_the_rows_show_is_proposed(folder: Path, name: str, encoding: str, capsys) -> None:
    (folder / "names.csv").write_bytes(("id,name\n" + "1,Ann\n" * 5000 + f"2,{name}\n").encode(encoding))
    assert run(["init", "names.csv", "--unit", "id", "--no-ledger"]) == 0
    table = load_policy("hubbub.toml").tables["names"]
    shown = encoding != "utf-8"
    assert (table.csv is not None and table.csv.encoding == encoding) == shown
    assert table.looked_at_rows == shown
    assert ("not UTF-8" in capsys.readouterr().err) == shown
    assert ("Nothing but the encoding was read from the rows" in (folder / "hubbub.toml").read_text()) == shown
