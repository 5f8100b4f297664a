"""Streams, exit codes, colour, and what an error may say."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys

import pytest

import hubbub
from cli.helpers import COUNT, PROGRAM, shell
from hubbub.cli import budget
from hubbub.cli.console import printable
from hubbub.cli.main import COMMANDS, run
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.errors import EngineError
from hubbub.session import Session

HEAVY = {"numpy", "pandas", "polars", "scipy", "duckdb", "pyarrow", "sqlglot", "matplotlib", "cryptography", "rich"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["no-such-command"]])
def test_help_loads_nothing_heavy(arguments):
    program = (
        f"import sys; from hubbub.cli.main import run; run({arguments!r}); "
        f"sys.exit(' '.join({HEAVY!r} & set(sys.modules)) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_help_lists_every_command_with_its_line(capsys):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name} " in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name, capsys):
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: hubbub {name}")


@pytest.mark.parametrize("arguments", [[], ["ledger"]])
def test_a_group_alone_shows_its_help(arguments, capsys):
    assert run(arguments) in (0, 2)  # click's own choice differs between its versions
    shown = "".join(capsys.readouterr())
    assert shown.count("Usage: hubbub") == 1
    assert "Commands:" in shown


def test_python_runs_the_package_as_the_command():
    done = subprocess.run([sys.executable, "-m", "hubbub", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hubbub ")
    assert subprocess.run([sys.executable, "-m", "hubbub", "nothing"], capture_output=True, check=False).returncode == 2


def test_the_version_is_said(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"hubbub {hubbub.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["query", "SELECT 1 +", "--epsilon", "0.1", "--yes"], 2, "QueryError: "),
        (["query", "SELECT COUNT(*) AS n FROM peple", "--epsilon", "0.1", "--yes"], 2, "people"),
        (["query", COUNT, "--epsilon", "nan", "--yes"], 2, "ParameterError: epsilon = 'nan' is not a number"),
        (["query", COUNT, "--epsilon=-1", "--yes"], 2, "ParameterError: epsilon = -1 is not allowed"),
        (["query", COUNT, "--epsilon", "0", "--yes"], 2, "must be greater than zero"),
        (["query", COUNT, "--yes"], 2, "say what the question may cost: --epsilon"),
        (["query", COUNT, "--epsilon", "1", "--yes", "--level", "2"], 2, "--level 2.0: allowed is"),
        (["query", COUNT, "--epsilon", "1", "--yes", "-o", "missing/x.csv"], 2, "there is no folder missing"),
        (["query", "SELECT AVG(x) AS a FROM people", "--epsilon", "0.1", "--yes"], 2, "QueryError: "),
        (["query", COUNT, "--epsilon", "0.1", "--policy", "none.toml"], 3, "PolicyError: cannot read the policy"),
        (
            ["query", COUNT, "--epsilon", "1.5", "--yes"],
            4,
            "BudgetError: not enough budget: the question asks for epsilon 1.5, and 1 of",
        ),
        (["budget", "--ledger", "none.db"], 3, "PolicyError: there is no ledger"),
        (["budgt"], 2, "no such command 'budgt'. Did you mean 'budget'?"),
        (["init", "people.csv"], 2, "say who is protected"),
    ],
)
def test_a_refusal_has_its_code_and_its_line_and_costs_nothing(cli, arguments, code, message):
    found, out, err = cli(*arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
    assert cli("budget", "--format", "csv")[1].splitlines()[1] == "person_id,1,0,1,0"


def test_an_error_in_the_question_has_a_caret_under_its_place(cli):
    _, _, err = cli("query", "SELECT COUNT(*) AS n FROM people LIMIT x", "--epsilon", "0.1", "--yes")
    lines = err.splitlines()
    assert lines[0].startswith("QueryError: ")
    place = lines[1].index("LIMIT")
    assert "^" in lines[2]
    assert lines[2].index("^") >= place


def test_without_a_ledger_nothing_is_asked(people, capsys):
    assert run(["query", COUNT, "--epsilon", "0.1", "--yes"]) == 3
    assert "hubbub ledger create" in capsys.readouterr().err
    assert not (people / "budget.db").exists()


def test_without_a_policy_the_way_to_one_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["budget"]) == 3
    assert "hubbub init FILE --unit COLUMN" in capsys.readouterr().err


def test_an_engine_failure_says_only_an_incident(cli, monkeypatch):
    def fail(self, plan, public=None):
        raise EngineError("abc123")

    monkeypatch.setattr(DuckDBEngine, "run", fail)
    code, out, err = cli("query", COUNT, "--epsilon", "0.25", "--yes")
    assert (code, out) == (5, "")
    assert "incident abc123" in err
    assert cli("budget", "--format", "csv")[1].splitlines()[1] == "person_id,1,0.25,0.75,1"
    assert ",failed,abc123," in cli("history", "--format", "csv")[1]


def test_a_defect_shows_an_id_and_no_row(cli, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("person 42 is in ward A")

    monkeypatch.setattr(Session, "check", fail)
    code, out, err = cli("check", COUNT, "--epsilon", "0.1")
    assert (code, out) == (1, "")
    assert "InternalError: something went wrong inside hubbub (incident " in err
    assert "person 42" not in err
    assert "Traceback" not in err
    monkeypatch.setenv("HUBBUB_DEBUG", "1")
    err = cli("check", COUNT, "--epsilon", "0.1")[2]
    assert err.index("may hold private rows") < err.index("person 42 is in ward A")


def test_an_interrupt_is_130_and_one_word(cli, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "sql", interrupt)
    code, out, err = cli("query", COUNT, "--epsilon", "0.1", "--yes")
    assert (code, out, err.strip()) == (130, "", "Interrupted.")


def test_ctrl_c_in_a_running_program_is_clean(people):
    program = (
        "import time, hubbub.session as s\n"
        "s.Session.check = lambda *a, **k: (print('here', flush=True), time.sleep(60))\n"
        "from hubbub.cli.main import main; main()"
    )
    run(["ledger", "create"])
    child = subprocess.Popen(
        [sys.executable, "-c", program, "check", COUNT, "--epsilon", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=people,
    )  # fmt: skip
    assert child.stdout.readline() == "here\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err.strip()) == (130, "Interrupted.")


def test_a_reader_that_stops_early_is_no_error(cli, people):
    child = subprocess.Popen(
        [*PROGRAM, "budget", "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=people
    )
    child.stdout.close()
    err = child.stderr.read()
    assert (child.wait(timeout=30), err) == (0, b"")


def test_errors_away_from_a_terminal_have_no_colour(people):
    found = shell("budget", "--ledger", "none.db", cwd=people)
    assert found.returncode == 3
    assert "\x1b" not in found.stderr


def test_a_narrow_encoding_shows_question_marks_and_does_not_fail(cli, people):
    found = shell("query", COUNT, "--epsilon", "0.1", "--yes", "--format", "table", cwd=people, PYTHONUTF8="0",
                  PYTHONIOENCODING="ascii")  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stdout.isascii()
    assert " ? " in found.stdout


def test_what_another_analyst_wrote_does_not_steer_this_terminal(cli):
    assert cli("query", COUNT + " -- \x1b[2J\x07\u202e", "--epsilon", "0.1", "--yes")[0] == 0
    out = cli("history", "--format", "table")[1]
    assert "\x1b[2J" not in out
    assert "\x07" not in out
    assert "\u202e" not in out
    assert printable("\x1b[2J") == "\\x1b[2J"


def test_budget_is_loaded_by_its_name():
    assert budget.command.name == "budget"
    assert os.path.basename(budget.__file__) == "budget.py"


class Full(io.StringIO):
    """A file on a full disk."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("arguments", [["query", COUNT, "--epsilon", "0.1", "--yes"], ["budget"], ["history"]])
def test_an_output_that_cannot_be_written_is_not_a_defect_of_ours(cli, monkeypatch, capsys, arguments):
    with monkeypatch.context() as there:
        there.setattr(sys, "stdout", Full())
        assert run(arguments) == 3
    assert "the output cannot be written: No space left on device. What was charged is free" in capsys.readouterr().err


def test_without_an_output_what_was_asked_is_charged_and_nothing_is_wrong_in_hubbub(cli, monkeypatch, capsys):
    with monkeypatch.context() as there:
        there.setattr(sys, "stdout", None)
        assert run(["query", COUNT, "--epsilon", "0.1", "--yes"]) == 0
    assert "wrong inside hubbub" not in capsys.readouterr().err
