"""`hubbub init` writes names and types, never values, and never over a file."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from cli.helpers import write_people
from hubbub.cli.init import policy_text
from hubbub.cli.main import run
from hubbub.ledger.policy import load_policy
from people import HUGE, session

SECRET = 987654321


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pa.table({
        "person_id": pa.array([SECRET, SECRET + 1], pa.int64()),
        "weight": pa.array([66.25, 77.5]),
        "ward": ["Secretward", "B"],
        "ill": [True, False],
        "blob": pa.array([b"Secretblob", b""]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "people.csv").write_text(f'person_id,Ward Name,"od""d"\n{SECRET},Secretward,3.5\n')
    with duckdb.connect(tmp_path / "people.duckdb") as database:
        database.execute("CREATE TABLE visits AS SELECT 987654321 AS person_id, DATE '2025-02-03' AS day")
    return tmp_path


def test_a_parquet_file_gives_a_policy_that_loads(folder, capsys):
    assert run(["init", "people.parquet", "--unit", "person_id"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "Wrote hubbub.toml" in err
    policy = load_policy("hubbub.toml")
    people = policy.tables["people"]
    assert (people.unit, people.max_groups, people.max_rows) == ("person_id", "auto", "auto")
    assert people.source == folder / "people.parquet"
    assert policy.ledger == folder / "budget.db"
    text = (folder / "hubbub.toml").read_text()
    assert "# weight = { between = [0.0, 1.0] }" in text
    assert '# ward = { one_of = ["A", "B", "C"] }' in text
    assert "# ill = { one_of = [false, true] }" in text
    assert "blob" not in text  # no question can name it


@pytest.mark.parametrize("sniff", [[], ["--sniff"]])
@pytest.mark.parametrize("source", ["people.parquet", "people.csv"])
def test_no_value_of_any_row_is_written(folder, source, sniff, capsys):
    assert run(["init", source, "--unit", "person_id", *sniff]) == 0
    everything = (folder / "hubbub.toml").read_text() + "".join(capsys.readouterr())
    for value in (str(SECRET), "Secret", "66.25", "3.5"):
        assert value not in everything


def test_a_csv_is_text_until_somebody_says_otherwise(folder, capsys):
    assert run(["init", "people.csv", "--unit", "person_id"]) == 0
    assert dict(load_policy("hubbub.toml").tables["people"].types) == {
        "person_id": "text",
        "Ward Name": "text",
        'od"d': "text",
    }
    assert "every column stands as text" in capsys.readouterr().err


def test_types_are_guessed_only_when_asked_and_said(folder, capsys):
    assert run(["init", "people.csv", "--unit", "person_id", "--sniff"]) == 0
    assert dict(load_policy("hubbub.toml").tables["people"].types) == {
        "person_id": "integer",
        "Ward Name": "text",
        'od"d': "number",
    }
    assert "guessed from the file's rows: a steward's action" in capsys.readouterr().err


def test_a_duckdb_file_needs_its_table(folder, capsys):
    assert run(["init", "people.duckdb", "--unit", "person_id"]) == 3
    assert run(["init", "people.duckdb", "--table", "visits", "--unit", "person_id"]) == 0
    visits = load_policy("hubbub.toml").tables["visits"]
    assert (visits.table, visits.source.name) == ("visits", "people.duckdb")
    assert '# day = { between = ["2025-01-01", "2025-12-31"] }' in (folder / "hubbub.toml").read_text()


def test_each_row_may_be_the_unit(folder):
    assert run(["init", "people.parquet", "--each-row"]) == 0
    assert load_policy("hubbub.toml").tables["people"].unit is None


def test_nothing_is_overwritten(folder, capsys):
    (folder / "hubbub.toml").write_text("mine")
    assert run(["init", "people.parquet", "--unit", "person_id"]) == 3
    assert "hubbub.toml exists and is left as it is" in capsys.readouterr().err
    assert (folder / "hubbub.toml").read_text() == "mine"
    assert run(["init", "people.parquet", "--unit", "person_id", "-o", "other.toml"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["people.parquet"], 2, "--unit COLUMN for a column that names a person, or --each-row"),
        (["people.parquet", "--unit", "person_id", "--each-row"], 2, "--unit COLUMN"),
        (["people.parquet", "--unit", "persn_id"], 3, "has no column 'persn_id'.*Did you mean 'person_id'"),
        (["none.parquet", "--unit", "x"], 3, "no file"),
        (["people.parquet", "--unit", "person_id", "-o", "no/where.toml"], 3, "cannot write"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_written(folder, arguments, code, message, capsys):
    import re

    assert run(["init", *arguments]) == code
    assert re.search(message, capsys.readouterr().err)
    assert not (folder / "hubbub.toml").exists()


@pytest.mark.parametrize(
    "name", ["plain", "two words", 'quo"te', "dot.ted", "new\nline", "\x7f", "ünï", "1", "back\\slash"]
)
def test_any_name_survives_the_file(tmp_path, name):
    path = tmp_path / "hubbub.toml"
    path.write_text(policy_text(f"{name}.csv", [(name, "integer"), ("b", "text")], unit=name, table=None), "utf-8")
    (table,) = load_policy(path).tables.values()
    assert table.unit == name
    assert dict(table.types) == {name: "integer", "b": "text"}
    assert table.source == tmp_path / f"{name}.csv"


def test_the_three_commands_of_the_demo_work(tmp_path, monkeypatch, capsys):
    from hubbub.cli.demo import OWN

    write_people(tmp_path)
    (tmp_path / "hubbub.toml").unlink()
    monkeypatch.chdir(tmp_path)
    import shlex

    for line, _ in OWN:
        program, *arguments = shlex.split(line)
        assert program == "hubbub"
        assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("n,n_low,n_high\n")
    assert "Charged epsilon 0.1; 0.9 is left." in err


def test_a_constraint_of_a_database_is_written_into_the_policy_and_a_files_schema_never(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("shop.duckdb") as database:
        database.execute(
            "CREATE TABLE visits (id BIGINT NOT NULL, age BIGINT NOT NULL, cost DOUBLE, day DATE NOT NULL)"
        )
        database.execute("CREATE VIEW seen AS SELECT * FROM visits")
    assert run(["init", "shop.duckdb", "--table", "visits", "--unit", "id"]) == 0
    text = (tmp_path / "hubbub.toml").read_text()
    assert "# age = { between = [0, 100], nullable = false }" in text
    assert "# cost = { between = [0.0, 1.0] }" in text
    assert '# day = { between = ["2025-01-01", "2025-12-31"], nullable = false }' in text
    policy = text.replace("# age", "age").replace("# day", "day")
    (tmp_path / "hubbub.toml").write_text(policy)
    assert load_policy("hubbub.toml").tables["visits"].columns["age"]["nullable"] is False
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("age", pa.int64(), False)])
    pq.write_table(pa.table({"id": [1], "age": [2]}, schema=schema), "people.parquet")
    assert run(["init", "people.parquet", "--unit", "id", "-o", "people.toml"]) == 0
    assert "nullable" not in (tmp_path / "people.toml").read_text()


def test_a_null_that_comes_all_the_same_counts_as_the_midpoint(tmp_path):
    rows = pa.table({"id": list(range(4)), "age": pa.array([10, 20, None, 30], pa.int64())})
    table = hb.table(rows, unit="id", max_total=1, columns={"age": hb.between(0, 100, nullable=False)})
    with session(epsilon=10**6 * HUGE, v=table) as s:
        mean, count, known = s.sql("SELECT AVG(age), COUNT(*), COUNT(age) FROM v", epsilon=HUGE).rows()[0]
        assert (round(mean, 3), count, known) == ((10 + 20 + 50 + 30) / 4, 4, 4)
