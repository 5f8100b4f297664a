"""`hubbub synth`: the plan costs nothing, the charge comes before the rows, the table keeps what was declared;
and it is `Session.synthesize`, charge for charge and refusal for refusal, on whatever bytes the file holds.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from cli.helpers import shell
from hubbub.cli.main import run
from hubbub.engines.duckdb.engine import DuckDBEngine

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
    asked = ["synth", "people", "--epsilon", "1", "-o", "out.parquet", "--yes", "--plot", "out.png"]
    code, out, err = ask(*asked, *options)
    assert code == 0, err
    assert Path("out.png").read_bytes().startswith(b"\x89PNG")
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
    Path("hubbub.toml").write_text(POLICY.replace("delta = 1e-6\n", "").replace("budget.db", "pure.db"))
    assert ask("ledger", "create")[0] == 0
    code, _, err = ask("synth", "people", "--epsilon", "1")
    assert code == 3
    assert "delta = 1e-6" in err


def test_rows_that_cannot_be_read_are_charged_and_said_with_an_id_only(ask, monkeypatch):
    def fail(engine, scan, columns):
        raise hb.EngineError("a1b2c3") from RuntimeError("person 42")

    monkeypatch.setattr(DuckDBEngine, "rows", fail)
    code, out, err = ask("synth", "people", "--epsilon", "1", "-o", "out.csv", "--yes")
    assert (code, out) == (5, "")
    assert "person 42" not in err
    assert charges(ask)[0]["state"] == "failed"


def test_asked_again_it_is_free_and_needs_nobody_to_agree_and_fresh_pays_again(ask):
    assert ask("synth", "people", "--epsilon", "1", "-o", "out.csv", "--yes")[0] == 0
    code, out, err = ask("synth", "people.csv", "--epsilon", "1", "-o", "again.parquet")
    assert code == 0, err
    assert "2-way marginals" in out
    assert "nothing charged" in err
    assert len(charges(ask)) == 1
    assert len(pq.read_table("again.parquet")) == len(Path("out.csv").read_text().splitlines()) - 1
    assert ask("synth", "people", "--epsilon", "1", "-o", "new.csv", "--fresh", "--yes")[0] == 0
    assert len(charges(ask)) == 2


def test_a_file_that_is_there_is_replaced_by_force_alone_and_a_source_never(ask):
    Path("out.csv").write_text("mine")
    asked = ["synth", "people", "--epsilon", "1", "--yes", "-o"]
    for output, how in (("out.csv", []), ("people.csv", ["--force"]), ("../" + Path.cwd().name + "/people.csv", [])):
        before = Path(output).read_bytes()
        code, out, err = ask(*asked, output, *how)
        assert (code, out) == (2, "")
        assert ("add --force" if output == "out.csv" else "a source of the policy") in err
        assert Path(output).read_bytes() == before
    assert charges(ask) == []
    assert ask(*asked, "out.csv", "--force")[0] == 0
    assert Path("out.csv").read_text() != "mine"


def broken_bytes(folder: Path) -> Path:
    """A CSV whose ids are 16 different texts that are not UTF-8, each with ten rows, beside others that are."""
    lines = [b"p%d,%d,A,true" % (i, i % 90) for i in range(300)]
    lines += [b"\xff" + bytes([128 + k]) + b",20,A,true" for k in range(16) for _ in range(10)]
    (folder / "people.csv").write_bytes(b"person_id,age,ward,married\n" + b"\n".join(lines) + b"\n")
    return folder / "people.csv"


def as_parquet(folder: Path) -> Path:
    """The same as Parquet, where a text of one person is not UTF-8."""
    ids = [b"p%d" % i for i in range(300)] + [b"\xff" + bytes([128 + k]) for k in range(16) for _ in range(10)]
    raw = pa.array(ids, pa.binary())
    columns = {"person_id": pa.Array.from_buffers(pa.string(), len(ids), raw.buffers())}
    columns |= {"age": pa.array([i % 90 for i in range(len(ids))])}
    columns |= {"ward": pa.array(["A"] * len(ids)), "married": pa.array([True] * len(ids))}
    pq.write_table(pa.table(columns), folder / "people.parquet")
    return folder / "people.parquet"


def cut_off(folder: Path) -> Path:
    """A Parquet file whose pages are overwritten: its footer is well."""
    place = as_parquet(folder)
    found = bytearray(place.read_bytes())
    found[4:400] = b"\xee" * 396
    place.write_bytes(bytes(found))
    return place


@pytest.mark.parametrize("source", ["whole", broken_bytes, as_parquet, cut_off])
@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({}, {}),
        ({"--columns": "age,ward"}, {"columns": ["age", "ward"]}),
        ({"--rows": "300", "--max-rows": "1"}, {"rows": 300, "rows_per_unit": 1}),
        (
            {"--edges": "age=0,50,100", "--method": "independent"},
            {"edges": {"age": [0, 50, 100]}, "method": "independent"},
        ),
        ({"--rows": "10", "--epsilon": "1/1000"}, {"rows": 10, "epsilon": "1/1000"}),
        ({"--epsilon": "4"}, {"epsilon": 4}),
        ({"--columns": "nothing"}, {"columns": ["nothing"]}),
    ],
)
def test_both_doors_charge_and_refuse_alike_on_whole_and_on_broken_files(ask, source, options, given):
    """Two ledgers, one policy: what the command leaves behind is what the session leaves behind."""
    if source != "whole":
        place = source(Path.cwd())
        text = POLICY.replace('person_id = "integer"', 'person_id = "text"').replace("people.csv", place.name)
        head, _, rest = text.partition("[tables.people.types]")
        types, _, columns = rest.partition("[tables.people.columns]")
        kept = "[tables.people.types]" + types if place.suffix == ".csv" else ""
        Path("hubbub.toml").write_text(head + kept + "[tables.people.columns]" + columns)
    here = Path("hubbub.toml").read_text()
    Path("other.toml").write_text(here.replace("budget.db", "other.db"))
    assert ask("ledger", "create", "--policy", "other.toml")[0] == 0
    flags = [part for pair in {"--epsilon": "1", **options}.items() for part in pair]

    code = ask("synth", "people", *flags, "-o", "out.csv", "--yes")[0]
    refused = None
    with hb.Session.from_policy("other.toml") as session:
        try:
            session.synthesize("people", **{"epsilon": 1, **given})
        except hb.HubbubError as error:
            refused = error.exit_code
    assert code == (refused or 0)

    def left(policy: str) -> list[tuple[str, ...]]:
        found = ask("history", "--policy", policy, "--format", "json")[1]
        return [(e["state"], str(e["epsilon"]), e["unit_space"], e["sql"]) for e in json.loads(found)]

    assert left("hubbub.toml") == left("other.toml")


def test_no_command_reads_rows_or_charges_by_itself():
    """One door: nothing in `cli` reads a private source, draws for one, or writes a charge."""
    import hubbub.cli

    words = ("ledger.charge", ".advance(", " bounded(", "read_table(", "DictReader", 'errors="replace", newline')
    found = {
        (file.name, word)
        for file in Path(hubbub.cli.__file__).parent.glob("*.py")
        for word in words
        if word in file.read_text()
    }
    # A steward's own attack on his own file, and a model applied to rows of one's own: nothing private is answered.
    assert found <= {("attack.py", "read_table("), ("predict.py", "read_table(")}


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


def test_a_file_with_blanks_before_its_values_is_said_to_have_them(ask):
    """As a public data set has them, ', ' between its fields; and `trim = true` in the policy mends it."""
    source = Path("people.csv")
    source.write_text(source.read_text().replace(",A,", ", A,").replace(",B|C,", ", B|C,"))
    options = ["synth", "people", "--epsilon", "1", "-o", "out.csv", "--yes"]
    code, out, err = ask(*options)
    assert (code, out) == (2, "")
    assert "hardly any row has declared values: check spelling and blanks." in err
    assert "(trim = true beside a column's one_of in the policy file cuts off blanks)" in err
    assert not Path("out.csv").exists()
    charge, back = charges(ask)
    assert (charge["epsilon"], back["sql"]) == ("1", "(what the charge used)")
    assert float(back["epsilon"]) < 0.2  # a fiftieth of the amount, which is in rho
    (line,) = csv.DictReader(ask("budget", "--format", "csv")[1].splitlines())
    assert line["charges"] == "1"
    policy = Path("hubbub.toml")
    policy.write_text(policy.read_text().replace("null = true }", "null = true, trim = true }"))
    code, out, err = ask(*options)
    assert code == 0, err
    assert Path("out.csv").exists()
