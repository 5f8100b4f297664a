"""`hubbub synth`: the plan costs nothing, the charge comes before the rows, the table keeps what was declared."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.helpers import shell
from hubbub.cli import synth
from hubbub.cli.main import run

POLICY = """\
[ledger]
file = "budget.db"
[budget]
epsilon = 3
delta = 1e-6
[tables.people]
source = "people.csv"
unit = "person_id"
max_total = 2
[tables.people.types]
person_id = "integer"
age = "integer"
ward = "text"
married = "boolean"
[tables.people.columns]
age = { between = [0, 99], nullable = false }
ward = { one_of = ["A", "B|C"], null = true }
married = { one_of = [true, false] }
"""


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Run a command where a policy with a delta and 2,000 people with two rows each are."""
    rows = [f"{i // 2},{(i * 7) % 100},{'A' if i % 3 else 'B|C'},{'true' if i % 5 else 'false'}" for i in range(4000)]
    (tmp_path / "people.csv").write_text("person_id,age,ward,married\n" + "\n".join(rows) + "\n")
    (tmp_path / "hubbub.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    assert call("ledger", "create")[0] == 0
    return call


def charges(ask) -> list[dict[str, str]]:
    return list(csv.DictReader(ask("history", "--format", "csv")[1].splitlines()))


def test_without_an_output_only_the_plan_is_shown(ask):
    code, out, err = ask("synth", "people.csv", "--epsilon", "1")
    assert (code, out) == (0, "")
    assert "predicted mean distance" in err
    assert "Nothing was charged" in err
    assert charges(ask) == []


def test_a_table_is_charged_once_and_keeps_what_is_declared(ask):
    options = ["--edges", "age=0,18,65,100", "--constraint", "age < 18 implies married = false"]
    code, out, err = ask("synth", "people", "--epsilon", "1", "-o", "out.parquet", "--yes", *options)
    assert code == 0, err
    assert "2-way marginals: mean" in out
    found = pq.read_table("out.parquet").to_pydict()
    assert set(found) == {"age", "ward", "married"}
    assert all(0 <= age < 100 for age in found["age"])
    assert set(found["ward"]) <= {"A", "B|C", None}
    assert all(age >= 18 or married is False for age, married in zip(found["age"], found["married"], strict=True))
    (charge,) = charges(ask)
    assert (charge["state"], charge["epsilon"], charge["unit_space"]) == ("shown", "1", "person_id")


def test_csv_is_written_too_and_columns_can_be_picked(ask):
    assert ask("synth", "people", "--epsilon", "1/2", "-o", "out.csv", "--yes", "--columns", "ward,married")[0] == 0
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert set(rows[0]) == {"ward", "married"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["others.csv", "--epsilon", "1"], 3, "never read from private rows"),
        (["people", "--epsilon", "0"], 2, "greater than zero"),
        (
            ["people", "--epsilon", "1", "--columns", "height"],
            3,
            "'height' is not declared. Known: 'age', 'married', 'ward'.",
        ),
        (["people", "--epsilon", "1", "--columns", "age,wrad"], 3, "'wrad' is not declared. Did you mean 'ward'?"),
        (["people", "--epsilon", "1", "--edges", "agee=0,9"], 3, "'agee' is not declared. Did you mean 'age'?"),
        (["people", "--epsilon", "1", "--method", "magic"], 2, "'tree'"),
        (["people", "--epsilon", "1", "--constraint", "age < 18"], 2, "implies"),
        (["people", "--epsilon", "1", "--edges", "age=a,b"], 2, "with numbers"),
        (["people", "--epsilon", "1", "-o", "out.xlsx"], 2, ".parquet or .csv"),
        (["people", "--epsilon", "1", "-o", "no/out.csv"], 2, "no folder"),
        (["people", "--epsilon", "9", "-o", "out.csv", "--yes"], 4, "BudgetError"),
        (["people", "--epsilon", "1", "-o", "out.csv"], 2, "add --yes"),
    ],
)
def test_refusals_cost_nothing(ask, arguments, code, message):
    found, out, err = ask("synth", *arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert charges(ask) == []
    assert not Path("out.csv").exists()


def test_a_pure_budget_says_what_to_declare(ask):
    Path("hubbub.toml").write_text(POLICY.replace("delta = 1e-6\n", ""))
    code, _, err = ask("synth", "people", "--epsilon", "1")
    assert code == 3
    assert "delta = 1e-6" in err


def test_rows_that_cannot_be_read_are_charged_and_said_with_an_id_only(ask, monkeypatch):
    def fail(table, columns):
        raise RuntimeError("person 42")

    monkeypatch.setattr(synth, "_rows", fail)
    code, out, err = ask("synth", "people", "--epsilon", "1", "-o", "out.csv", "--yes")
    assert (code, out) == (5, "")
    assert "person 42" not in err
    assert charges(ask)[0]["state"] == "failed"


def test_odd_fields_never_change_what_is_said(ask):
    with open("people.csv", "a", encoding="utf-8") as file:
        file.write('9999,"x",,maybe\n9998,1e999,Z,true\n9997\n,,,,,,\n')
    code, out, err = ask("synth", "people", "--epsilon", "1", "-o", "out.csv", "--yes")
    assert code == 0, err
    assert "Traceback" not in out + err


def test_nobody_there_means_nothing_spent(ask):
    done = shell("synth", "people", "--epsilon", "1", "-o", "out.csv", cwd=Path.cwd())
    assert done.returncode == 2
    assert charges(ask) == []
