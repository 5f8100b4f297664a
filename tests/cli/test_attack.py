"""`hubbub attack`: every attack runs on a file, says both sides, charges nothing and shows no row."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from hubbub.cli.main import run

ATTACKS = {
    "linkage": ["people.csv", "--columns", "age,street,job", "--secret", "ill"],
    "anonymity": ["people.csv", "--columns", "age, street", "--secret", "job", "--k", "4"],
    "ratings": ["loans.csv", "--user", "reader", "--item", "book", "--day", "day", "--known", "4", "--targets", "20"],
    "hashes": ["people.csv", "--column", "badge", "--pattern", "X99"],
    "differencing": ["people.csv", "--columns", "age,street,job", "--secret", "ill", "--value", "yes"],
    "averaging": ["people.csv", "--column", "job"],
    "membership": ["people.csv", "--columns", "age,street,job", "--members", "40"],
    "reconstruction": ["people.csv", "--secret", "ill", "--people", "60"],
    "inversion": ["people.csv", "--columns", "job,street", "--secret", "ill", "--outcome", "age"],
    "leaderboard": ["people.csv", "--label", "ill", "--submissions", "50"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """300 people, and the loans of 80 readers."""
    rows = "".join(
        f"{20 + i * 7 % 50},{i * 13 % 23},{'abc'[i % 3]}{i % 4},{'yes' if i * i % 7 < 3 else 'no'},K{i % 100:02}\n"
        for i in range(300)
    )
    (tmp_path / "people.csv").write_text("age,street,job,ill,badge\n" + rows)
    loans = "".join(f"r{i},{(i * j * j + j) % 40},2025-01-{1 + (i + j) % 28:02}\n" for i in range(80) for j in range(9))
    (tmp_path / "loans.csv").write_text("reader,book,day\n" + loans)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_says_both_sides_and_charges_nothing(name, folder, capsys):
    before = sorted(folder.iterdir())
    assert run(["attack", name, *ATTACKS[name], "--epsilon", "0.5", "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    head, *rows = csv.reader(io.StringIO(out))
    assert head == ["an_outsider_learns", "exact_answers", "private_answers", "ceiling"]
    assert any("-" not in row[1:] for row in rows), rows  # both sides and a ceiling
    assert err.strip()
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", ["reconstruction", "differencing", "membership"])
def test_runs_that_are_repeated_show_their_mean_and_spread(name, folder, capsys):
    assert run(["attack", name, *ATTACKS[name], "--epsilon", "0.5", "--format", "csv", "--repeat", "4"]) == 0
    out, err = capsys.readouterr()
    assert "4 runs, each with a fresh sample and fresh noise" in " ".join(err.split())
    private = [row[2] for row in csv.reader(io.StringIO(out))][1:]
    spread = next(text for text in private if "(" in text)
    mean, least, most = (float(x) for x in re.fullmatch(r"([\d.]+) \((-?[\d.]+) to ([\d.]+)\)", spread).groups())
    assert least <= mean <= most
    assert run(["attack", name, *ATTACKS[name], "--epsilon", "0.5"]) == 0
    assert "One run" in capsys.readouterr().err


def test_what_no_run_finds_otherwise_is_told_once():
    from fractions import Fraction

    from hubbub.attacks.report import Finding, Report, Spread, repeated
    from hubbub.errors import ParameterError

    found = iter([0.25, 0.75, 0.5])
    report = repeated(lambda: Report((Finding("share", 1.0, next(found), None), Finding("k", 3)), ("said",), None), 3)
    assert report.findings == (Finding("share", 1.0, Spread(0.5, 0.25, 0.75), None), Finding("k", 3))
    assert report.findings[0].texts() == ("share", "1.000", "0.500 (0.250 to 0.750)", "-")
    for runs in (0, -1, True, 10_001, 1.5, Fraction(2)):
        with pytest.raises(ParameterError, match="repeat"):
            repeated(lambda: report, runs)
    words = iter("ab")
    with pytest.raises(ParameterError, match="same things"):
        repeated(lambda: Report((Finding(next(words), 1.0),), (), None), 2)


@pytest.mark.parametrize("form", ["table", "json", "md"])
def test_the_formats_say_the_same(form, folder, capsys):
    assert run(["attack", "hashes", *ATTACKS["hashes"], "--epsilon", "1/2", "--format", form]) == 0
    out = capsys.readouterr().out
    assert "identifiers found" in out
    assert "1.000" in out
    if form == "json":
        assert json.loads(out)[0]["exact_answers"] == "1.000"


def test_the_whole_of_a_format_is_tried_where_the_file_holds_hashes(folder, capsys):
    import hashlib

    (folder / "h.csv").write_text("badge\n" + hashlib.md5(b"Q42").hexdigest() + "\n")
    assert run(["attack", "hashes", "h.csv", "--column", "badge", "--pattern", "X99", "--epsilon", "1"]) == 0
    out, err = capsys.readouterr()
    assert "identifiers found,1.000," in out
    assert "2,600 identifiers tried" in err


def test_a_file_with_semicolons_and_decimal_commas_is_read(folder, capsys):
    rows = "".join(f"{1 + i % 28:02}.03.2025;{i},5;{'ab'[i % 2]};{i % 7}\n" for i in range(200))
    (folder / "besuche.csv").write_bytes(f"Datum;Kosten;Geschlecht;Straße\n{rows}".encode("cp1252"))
    for columns in ("Datum,Geschlecht", "Kosten", "Straße"):
        given = ["besuche.csv", "--columns", columns, "--members", "30", "--epsilon", "1", "--format", "csv"]
        assert run(["attack", "membership", *given]) == 0, columns
        assert "members found" in capsys.readouterr().out


def test_a_picture_is_drawn(folder):
    pytest.importorskip("matplotlib")
    for name in ("membership", "linkage"):
        assert run(["attack", name, *ATTACKS[name], "--epsilon", "1", "--plot", f"{name}.svg"]) == 0
        assert (folder / f"{name}.svg").read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["linkage", "none.csv", "--columns", "a", "--secret", "b", "--epsilon", "1"], 3, "there is no file"),
        (
            ["linkage", "people.csv", "--columns", "a", "--secret", "ill", "--epsilon", "1"],
            2,
            "columns 'a' were asked, which the table has not. Known: 'age', ",
        ),
        (
            ["linkage", "people.csv", "--columns", "age,stret", "--secret", "ill", "--epsilon", "1"],
            2,
            "columns 'stret' were asked, which the table has not. Did you mean 'street'?",
        ),
        (
            ["linkage", "people.csv", "--columns", "age", "--secret", "il", "--epsilon", "1"],
            2,
            "columns 'il' were asked, which the table has not. Did you mean 'ill'?",
        ),
        (
            ["averaging", "people.csv", "--column", "stret", "--epsilon", "1"],
            2,
            "column 'stret' was asked, which the table has not. Did you mean 'street'?",
        ),
        (["linkage", "people.csv", "--columns", "age", "--secret", "ill"], 2, "Missing option '--epsilon'"),
        (["linkage", "people.csv", "--columns", "age", "--secret", "ill", "--epsilon", "-1"], 2, "epsilon"),
        (
            ["differencing", "people.csv", "--columns", "age,street,job", "--secret", "job", "--epsilon", "1"],
            2,
            "--value",
        ),
        (["hashes", "people.csv", "--column", "badge", "--pattern", "", "--epsilon", "1"], 2, "the format is empty"),
        (["linkag"], 2, "No such command"),
    ],
)
def test_a_refusal_has_its_code_and_its_line(arguments, code, message, folder, capsys):
    assert run(["attack", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err
