"""`hubbub shell`, at a prompt and from a pipe; questions from files, parameters, and files that answers go to."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from cli.helpers import COUNT, WARDS, shell, terminal
from hubbub.cli.options import parameter
from hubbub.cli.shell import command


def piped(folder, text: str, *more: str):
    return shell("shell", "--epsilon", "0.1", *more, cwd=folder, stdin=text)


def test_a_pipe_asks_question_after_question(cli, people):
    done = piped(people, f"{COUNT};\n.epsilon 0.2\nSELECT AVG(age) AS age\nFROM people;\n.budget\n", "--yes")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "people,people_low,people_high"
    assert lines[2] == "age,age_low,age_high"
    assert lines[4].startswith("epsilon 0.7 is left")
    assert "Each question may cost epsilon 0.2." in done.stderr
    assert "Charged epsilon 0.1; 0.9 is left." in done.stderr
    assert cli("budget", "--format", "csv")[1].splitlines()[1] == "person_id,1,0.3,0.7,2"


def test_the_last_question_needs_no_semicolon_and_quit_ends_the_rest(cli, people):
    assert piped(people, COUNT, "--yes").stdout.startswith("people,")
    done = piped(people, f".quit\n{COUNT};\n", "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_check_costs_nothing_and_tables_names_declarations_alone(cli, people):
    done = piped(people, f".check {WARDS};\n.check\nSELECT 1;\n", "--format", "csv")
    assert "cost: epsilon 0.1" in done.stdout
    assert done.returncode == 2
    assert ".check takes a question" in done.stderr
    done = piped(people, ".tables\n.schema people\n.history\n.help\n.format json\n")
    assert done.stdout.splitlines()[2].split()[:2] == ["people", "person_id"]
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ward ")] == ["text"]
    assert "between(" in done.stdout
    assert "nothing was asked yet" in done.stdout
    assert "Did you mean 'people'?" in piped(people, ".schema peopel\n").stderr
    assert cli("budget", "--format", "csv")[1].splitlines()[1] == "person_id,1,0,1,0"


def test_a_question_over_several_lines_may_begin_with_check(cli, people):
    done = piped(people, f".check SELECT COUNT(*) AS n\nFROM people;\n{COUNT};\n", "--yes")
    assert done.returncode == 0, done.stderr
    assert "cost: epsilon 0.1" in done.stdout


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("SELECT 1 +;\n" + COUNT + ";\n", 2, "QueryError"),
        (".nothing\n", 2, ".nothing is not a command of the shell"),
        (".epsilon -1\n", 2, "ParameterError"),
        (".epsilon 2\n" + COUNT + ";\n", 4, "BudgetError"),
        (".format arrow\n", 2, ".format takes one of"),
    ],
)
def test_from_a_pipe_the_first_error_ends_the_shell_with_its_code(cli, people, text, code, message):
    done = piped(people, text, "--yes")
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert cli("budget", "--format", "csv")[1].splitlines()[1] == "person_id,1,0,1,0"


def test_without_consent_nothing_is_asked(cli, people):
    done = piped(people, f"{COUNT};\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "add --yes" in done.stderr
    assert cli("budget", "--format", "csv")[1].splitlines()[1] == "person_id,1,0,1,0"


def test_at_a_prompt_an_error_leaves_the_shell_open(cli, people):
    code, screen = terminal(
        "shell", "--epsilon", "0.1", "--yes", cwd=people, prompt="hubbub> ",
        answer=f"SELECT nothing FROM people;\n{COUNT};\n.quit\n", HOME=str(people),
    )  # fmt: skip
    assert code == 0, screen
    assert "QueryError: " in screen
    assert "Charged epsilon 0.1" in screen
    kept = people / ".hubbub_history"
    assert kept.stat().st_mode & 0o077 == 0


def test_an_error_shows_no_row(cli, people):
    done = piped(people, "SELECT COUNT(*) FROM people WHERE CAST(ward AS INTEGER) / 0 = 1;\n", "--yes")
    assert "B|C" not in done.stdout + done.stderr


def test_the_shell_is_a_command_of_its_own():
    assert command.name == "shell"


def test_a_question_is_read_from_a_file_and_from_stdin(cli, people):
    (people / "count.sql").write_text(COUNT)
    code, out, _ = cli("query", "-f", "count.sql", "--epsilon", "0.1", "--yes", "--format", "csv")
    assert (code, out.splitlines()[0]) == (0, "people,people_low,people_high")
    done = shell("query", "-f", "-", "--epsilon", "0.1", "--format", "csv", cwd=people, stdin=COUNT)
    assert done.stdout == out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the question once"),
        ([COUNT, "-f", "count.sql"], "give the question once"),
        (["-f", "none.sql"], "cannot read none.sql"),
        (["-f", "latin.sql"], "is not UTF-8 text"),
    ],
)
def test_a_question_is_given_once_and_can_be_read(cli, people, arguments, message):
    (people / "latin.sql").write_bytes(b"SELECT '\xe9'")
    code, _, err = cli("query", *arguments, "--epsilon", "0.1", "--yes")
    assert code == 2
    assert message in err


def test_parameters_are_values(cli, people):
    asked = "SELECT COUNT(*) AS n FROM people WHERE ward = $ward AND age > $least"
    code, out, err = cli("query", asked, "-p", "ward", "B|C", "-p", "least", "30", "--epsilon", "0.5", "--yes")
    assert code == 0, err
    same = "SELECT COUNT(*) AS n FROM people WHERE ward = 'B|C' AND age > 30"
    assert cli("query", same, "--epsilon", "0.5", "--yes")[1] == out
    code, _, err = cli("query", asked, "-p", "ward", "x' OR 1=1 --", "--epsilon", "0.1", "--yes")
    assert code == 2
    assert "'least' has no value" in err


def test_what_a_parameter_means():
    texts = ["3", "-3", "0.5", "1e3", "true", "NULL", "'3'", "A", "1_000", "nan", "-", "'"]
    assert [parameter(t) for t in texts] == [3, -3, 0.5, 1000.0, True, None, "3", "A", "1_000", "nan", "-", "'"]


def test_the_name_of_the_file_says_its_format(cli, people):
    for ending in ("parquet", "csv", "json", "md"):
        assert cli("query", WARDS, "--epsilon", "0.5", "--yes", "-o", f"out.{ending}")[0] == 0
    names = ["ward", "people", "people_low", "people_high", "age", "age_low", "age_high"]
    assert pq.read_table(people / "out.parquet").column_names == names
    assert (people / "out.csv").read_text().splitlines()[0].split(",") == names
    assert list(json.loads((people / "out.json").read_text())["rows"][0]) == names
    assert (people / "out.md").read_text().startswith("| ward | people |")
    assert cli("query", WARDS, "--epsilon", "0.5", "-o", "out")[0] == 0
    assert (people / "out").read_text() == (people / "out.csv").read_text()
    piped = shell("query", WARDS, "--epsilon", "0.5", "--format", "json", cwd=people)
    assert json.loads(piped.stdout)["rows"] == json.loads((people / "out.json").read_text())["rows"]


def test_an_ending_that_is_no_format_is_refused_before_the_charge(cli, people):
    code, _, err = cli("query", COUNT, "--epsilon", "0.5", "--yes", "-o", "out.xlsx")
    assert code == 2
    assert "-o out.xlsx: .xlsx is not a format's ending. Known: .csv, .json, .md, .arrow, .parquet" in err
    assert not (people / "out.xlsx").exists()
    assert cli("history", "--format", "json")[1] == "[]\n"
    assert cli("query", COUNT, "--epsilon", "0.5", "--yes", "-o", "out.xlsx", "--format", "csv")[0] == 0
