"""`hubbub init` reads dates and numbers as people write them, and writes no policy that cannot be read back."""

from __future__ import annotations

import datetime as dt
import sqlite3
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

import hubbub as hb
from hubbub.cli import init
from hubbub.cli.declared import between_toml, date_format, number_signs
from hubbub.cli.main import run
from hubbub.ledger.policy import load_policy, read_policy
from hubbub.session import Session

ROWS = "patient;station;kosten;tag\n" + "".join(
    f"{i};{'AB'[i % 2]};{i},5;{1 + i % 28:02}.{1 + i % 12:02}.2024\n" for i in range(1, 241)
)
KINDS = ["--kind", "tag=date,31.12.2025", "--kind", "kosten=number,1.234,5"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "besuche.csv").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize("how", [KINDS, ["--sniff"]], ids=["said", "guessed"])
def test_bounds_are_read_as_the_file_writes_its_dates(folder: Path, how: list[str]) -> None:
    bounds = ["--bounds", "tag=01.01.2024,31.12.2024", "--bounds", "kosten=0;1000,5"]
    assert run(["init", "besuche.csv", "--unit", "patient", *how, *bounds, "--max-rows", "1", "--max-groups", "1"]) == 0
    table = load_policy("hubbub.toml").tables["besuche"]
    assert table.columns["tag"]["between"] == ["2024-01-01", "2024-12-31"]
    assert table.columns["kosten"]["between"] == [0, 1000.5]
    assert table.csv is not None
    assert (table.csv.delimiter, table.csv.decimal, dict(table.csv.formats)) == (";", ",", {"tag": "%d.%m.%Y"})
    with Session.from_policy("hubbub.toml", create_ledger=True) as session:
        months = session.sql("SELECT DATE_TRUNC('month', tag) AS m, COUNT(*) AS n FROM besuche GROUP BY 1", epsilon=1)
    assert [m for m, _ in months.rows()] == [dt.date(2024, m, 1) for m in range(1, 13)]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--bounds", "tag=01.01.2024,31.12.2024"], "a column of type text has no bounds.*--kind COLUMN="),
        ([*KINDS, "--bounds", "tag=31.12.2024,01.01.2024"], "the first bound must be below the second"),
        ([*KINDS, "--bounds", "tag=1/2/2024,3/2/2024"], "read in one way only; write it as 2025-12-31"),
        ([*KINDS, "--bounds", "tag=30.02.2024,31.12.2024"], "30.02.2024 is not a day"),
        ([*KINDS, "--bounds", "kosten=0,viel"], "'viel' is not a number"),
        ([*KINDS, "--values", "tag=heute"], "heute is not a day"),
        (["--kind", "tag=day"], "the kinds are integer, number"),
        (["--kind", "tag=date,1.2.2025"], "write 31 December 2025"),
        (["--kind", "kosten=number,12"], "write 1234.5 as the file would"),
        (["--kind", "station=text,A"], "leave the example out"),
        (["--kind", "ort=text"], "no private table has a column 'ort'"),
    ],
)
def test_what_cannot_be_read_is_refused_before_a_file_is_written(
    folder: Path, wrong: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    assert run(["init", "besuche.csv", "--unit", "patient", *wrong]) == 2
    assert re.search(said, " ".join(capsys.readouterr().err.split()))
    assert not (folder / "hubbub.toml").exists()


def test_on_a_terminal_kind_and_form_of_each_column_are_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "on_terminal", lambda _: True)
    answers = [
        "patient", "", "number", "", "date", "31/31/2025", "31.12.2025",  # who; the kinds, and how they are written
        "A,B", "0;1000", "gestern,heute", "01.01.2024,31.12.2024", "1", "1", "3", "y",
    ]  # fmt: skip
    done = CliRunner().invoke(init.command, ["besuche.csv"], input="\n".join(answers) + "\n")
    assert done.exit_code == 0, (done.output, done.stderr, done.exception)
    assert "as 01.01.2025,31.12.2025" in done.stderr
    assert "The ledger is ready: epsilon 3 of 3 is left." in done.stderr
    policy = load_policy("hubbub.toml")
    table = policy.tables["besuche"]
    assert dict(table.types) == {"patient": "text", "station": "text", "kosten": "number", "tag": "date"}
    assert table.columns["tag"]["between"] == ["2024-01-01", "2024-12-31"]
    assert table.csv is not None
    assert table.csv.decimal == ","
    assert policy.ledger == folder / "budget.db"
    assert (folder / "budget.db").exists()
    assert not table.looked_at_rows


@given(day=st.dates(dt.date(1970, 1, 1), dt.date(2060, 12, 30)), form=st.sampled_from(
    ["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y%m%d", "%d.%m.%y", "%d %b %Y"]))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_every_day_comes_back_in_every_form(day: dt.date, form: str) -> None:
    later = day + dt.timedelta(1)
    said = f"{day.strftime(form)},{later.strftime(form)}"
    assert between_toml(said, "date", form) == f'{{ between = ["{day}", "{later}"] }}'
    example = dt.date(2025, 12, 31).strftime(form)
    assert date_format(example) == form


def test_a_time_beside_a_day_makes_both_times() -> None:
    said = between_toml("01.02.2024, 03.02.2024 18:05", "timestamp")
    assert said == '{ between = ["2024-02-01 00:00:00", "2024-02-03 18:05:00"] }'
    assert number_signs("1'234,5") == (",", "'")
    assert date_format("31.12.2025 18:05") == "%d.%m.%Y %H:%M"
    assert date_format("2025-12-31T18:05") is None


def _database(path: Path) -> None:
    with duckdb.connect(path) as con:
        con.execute("CREATE TABLE visits AS SELECT 1 AS pid, 'A' AS ward, DATE '2024-02-03' AS day")
        con.execute("CREATE TABLE patients AS SELECT 1 AS pid, 40 AS age")


def test_several_tables_of_one_database_stand_in_one_policy(folder: Path) -> None:
    _database(folder / "clinic.duckdb")
    named = ["--table", "visits", "--table", "patients"]
    assert run(["init", "clinic.duckdb", *named, "--unit", "pid", "--yes", "--epsilon", "2"]) == 0
    policy = load_policy("hubbub.toml")
    assert {name: table.table for name, table in policy.tables.items()} == {"visits": "visits", "patients": "patients"}
    assert (folder / "budget.db").exists()
    assert run(["init", "clinic.duckdb", "besuche.csv", *named, "--unit", "pid", "-o", "two.toml"]) == 2


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_the_tables_of_a_database_are_named_when_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file = f"clinic.{kind}"
    if kind == "duckdb":
        _database(folder / file)
    else:
        with sqlite3.connect(folder / file) as con:
            con.execute("CREATE TABLE visits (pid INTEGER, ward TEXT)")
            con.execute("CREATE TABLE patients (pid INTEGER, age INTEGER)")
        con.close()
    monkeypatch.setattr(init, "on_terminal", lambda _: True)
    answers = ["wards", "", "pid", "pid", *[""] * 9]
    done = CliRunner().invoke(init.command, [file, "--no-ledger"], input="\n".join(answers) + "\n")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "holds patients, visits" in done.stderr
    assert "has no table 'wards'" in done.stderr
    assert set(load_policy("hubbub.toml").tables) == {"visits", "patients"}
    assert not (folder / "budget.db").exists()


def test_a_ledger_with_another_ceiling_is_told_before_the_policy_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "besuche.csv", "--unit", "patient", "--epsilon", "3", "--yes"]) == 0
    before = (folder / "hubbub.toml").read_text()
    assert run(["init", "besuche.csv", "--unit", "patient", "--epsilon", "5", "--yes", "--force"]) == 3
    assert "was made with another budget" in capsys.readouterr().err
    assert (folder / "hubbub.toml").read_text() == before
    assert run(["init", "besuche.csv", "--unit", "patient", "--epsilon", "3", "--yes", "--force"]) == 0


def test_what_was_guessed_from_rows_is_marked(folder: Path) -> None:
    assert run(["init", "besuche.csv", "--unit", "patient", "--sniff"]) == 0
    assert load_policy("hubbub.toml").tables["besuche"].looked_at_rows
    text = (folder / "hubbub.toml").read_text()
    assert "# Nothing but types was read from the rows" in text
    text = text.replace("looked_at_rows = true", "looked_at_rows = 1")
    with pytest.raises(hb.PolicyError, match=r"looked_at_rows: found 1; allowed: true or false"):
        read_policy(text, folder / "hubbub.toml")


def test_a_limit_that_is_found_is_priced_for_two_bounds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As dear as the same limit said, at the part of the epsilon that the search leaves."""
    assert run(["init", "besuche.csv", "--unit", "patient", "--values", "station=A,B"]) == 0
    counts = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("SELECT COUNT(*)")]
    said = [(line[-7], float(line[-5].replace(",", ""))) for line in counts]
    with Session.from_policy("hubbub.toml", create_ledger=True) as session:
        for bound, width in said:
            cost = session.check("SELECT COUNT(*) AS n FROM besuche", epsilon="0.07", max_total=int(bound))
            assert cost.columns[0].plus_minus == pytest.approx(width, rel=1e-3)
    assert [bound for bound, _ in said] == ["1", "10"]
