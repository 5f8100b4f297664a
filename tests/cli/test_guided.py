"""`hubbub init` asks in turn on a terminal, takes options elsewhere, and prices three questions; it reads no row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from hubbub.cli import init
from hubbub.cli.main import run
from hubbub.ledger.policy import load_policy

SECRET = "Secretward"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"pid": [1, 2], "ward": [SECRET, "B"], "age": [987654.0, 2], "ill": [True, False], "year": [2024, 2025]}
    pq.write_table(pa.table(rows), "visits.parquet")
    return tmp_path


OPTIONS = [
    "--values", "ward=A, B", "--values", "year=2024,2025", "--bounds", "age=0,120",
    "--max-groups", "3", "--max-rows", "2", "--epsilon", "4", "--delta", "1e-6",
]  # fmt: skip


def test_options_say_what_would_be_asked(folder, capsys):
    assert run(["init", "visits.parquet", "--unit", "pid", *OPTIONS]) == 0
    out, err = capsys.readouterr()
    policy = load_policy("hubbub.toml")
    visits = policy.tables["visits"]
    assert (visits.max_groups, visits.max_rows) == (3, 2)
    assert (policy.budget.epsilon, float(policy.budget.delta)) == (4, 1e-6)
    text = (folder / "hubbub.toml").read_text()
    assert 'ward = { one_of = ["A", "B"] }' in text
    assert "year = { one_of = [2024, 2025] }" in text
    assert "age = { between = [0, 120] }" in text
    assert "# ill = " in text
    for shown in (
        "SELECT COUNT(*) AS n FROM visits",
        "GROUP BY 1",
        "SELECT AVG(age) AS mean",
        "epsilon 0.1",
        "epsilon 1",
    ):
        assert shown in out, out
    assert out.count("±") == 9
    for secret in (SECRET, "987654"):
        assert secret not in text + out + err
    assert not (folder / "budget.db").exists()


def test_on_a_terminal_it_asks_in_turn(folder, monkeypatch):
    monkeypatch.setattr(init, "on_terminal", lambda _: True)
    answers = ["nobody", "pid", "A,B", "0", "0,120", "", "2", "1", "2", "n"]
    done = CliRunner().invoke(init.command, ["visits.parquet"], input="\n".join(answers) + "\n")
    assert done.exit_code == 0, (done.output, done.exception)
    visits = load_policy("hubbub.toml").tables["visits"]
    assert (visits.unit, visits.max_groups, visits.max_rows) == ("pid", 2, 1)
    text = (folder / "hubbub.toml").read_text()
    assert 'ward = { one_of = ["A", "B"] }' in text
    assert "age = { between = [0, 120] }" in text
    assert "ill = { one_of = [false, true] }" in text
    assert "# year = " in text
    assert "epsilon = 2 " in text
    assert "write two bounds" in done.stderr
    assert SECRET not in text + done.output


@pytest.mark.parametrize(
    "wrong",
    [
        ["--values", "ward"], ["--values", "wrad=A"], ["--bounds", "age=1"], ["--values", "year=A"],
        ["--values", "ill=yes"], ["--epsilon", "-1"],
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_anything_is_written(folder, wrong):
    assert run(["init", "visits.parquet", "--unit", "pid", *wrong]) == 2
    assert not (folder / "hubbub.toml").exists()


def test_without_a_terminal_nobody_is_asked(folder, capsys):
    assert run(["init", "visits.parquet"]) == 2
    assert "say who is protected" in capsys.readouterr().err
    assert run(["init", "visits.parquet", "--unit", "pid", "--yes"]) == 0
    assert capsys.readouterr().out == ""
