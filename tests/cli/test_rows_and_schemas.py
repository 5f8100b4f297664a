"""`hubbub steward check-data` counts what does not fit; `hubbub policy drift` tells what moved, from schemas."""

from __future__ import annotations

import ast
import json
import sqlite3
from pathlib import Path

import duckdb
import pytest

from hubbub.cli.main import run

POLICY = """
[ledger]
file = "budget.db"
[budget]
epsilon = 1
[tables.visits]
source = "visits.csv"
unit = "id"
max_groups = 1
max_rows = 1
[tables.visits.csv]
delimiter = ";"
decimal = ","
formats = { day = "%d.%m.%Y" }
[tables.visits.types]
id = "integer"
ward = "text"
cost = "number"
day = "date"
[tables.visits.columns]
ward = { one_of = ["A", "B"] }
cost = { between = [0, 100] }
day = { between = ["2025-01-01", "2025-12-31"] }
"""
ROWS = """id;ward;cost;day
1;A;10,5;03.04.2025
1;a;1.5;2025-04-03
2;B;200;31.12.2024
3;;;
x;C;-1;31.02.2025
4;B;5
5;"B;5;01.01.2025
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hubbub.toml").write_text(POLICY)
    (tmp_path / "visits.csv").write_text(ROWS)
    return tmp_path


def test_what_does_not_fit_is_counted_by_column(folder: Path, capsys) -> None:
    assert run(["steward", "check-data", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    counted = {
        row["column"]: tuple(int(row[c] or -1) for c in ("values", "null", "failing", "outside"))
        for row in json.loads(out)
    }
    # id x is no whole number; 1.5 is none with a decimal comma; a day in the wrong order, and one that is not there.
    assert counted == {"id": (4, 0, 1, -1), "ward": (4, 1, 0, 2), "cost": (3, 1, 1, 2), "day": (2, 1, 2, 1)}
    assert "visits: 5 rows; of 3 units, at most 2 of one; 2 lines are not rows" in err
    assert "for a steward alone" in err
    assert not (folder / "budget.db").exists()


def test_what_fails_in_a_sqlite_file_is_counted_too(folder: Path, capsys) -> None:
    """Each value has a type of its own there, and one of another is NULL before any text of ours reads it."""
    with sqlite3.connect(folder / "v.sqlite") as con:
        con.execute("CREATE TABLE visits (id INTEGER, ward TEXT, cost REAL, day DATE)")
        rows = [(1, "A", 10.5, "2025-04-03"), ("x", "B", "much", "3.4.25"), (2, None, 200, None)]
        con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    con.close()
    text = POLICY.replace('"visits.csv"', '"v.sqlite"\ntable = "visits"')
    before, _, rest = text.partition("[tables.visits.csv]")
    (folder / "hubbub.toml").write_text(
        before + "[tables.visits.columns]" + rest.partition("[tables.visits.columns]")[2]
    )
    assert run(["steward", "check-data", "--format", "json"]) == 0
    told = {row["column"]: (row["values"], row["null"], row["failing"]) for row in json.loads(capsys.readouterr().out)}
    assert told == {"id": ("2", "0", "1"), "ward": ("2", "1", "0"), "cost": ("2", "0", "1"), "day": ("1", "1", "1")}


def test_no_session_and_no_service_reaches_what_counts_rows() -> None:
    """It is imported by the steward's command and by nothing else."""
    root = Path(__file__).parents[2] / "src/hubbub"
    importers = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any("duckdb.inspect" in name for name in names):
                importers.add(file.relative_to(root).as_posix())
    assert importers == {"cli/steward.py"}


def test_what_moved_is_told_before_a_question_fails(folder: Path, capsys) -> None:
    assert run(["policy", "drift"]) == 0
    assert "every column that the policy names" in capsys.readouterr().err
    (folder / "visits.csv").write_text("id;Ward;cost;late\n1;A;1;2\n")
    assert run(["policy", "drift"]) == 3
    out, err = capsys.readouterr()
    assert "visits.ward: gone, and named in columns; it has Ward, in other letters." in out
    assert "visits.day: gone, and named in columns." in out
    assert "nothing is declared of late" in out
    assert "2 of these would refuse questions" in err


def test_a_type_that_moved_is_told_for_a_database_too(folder: Path, capsys) -> None:
    text = POLICY.split("[tables.visits.csv]")[0].replace('"visits.csv"', '"v.duckdb"\ntable = "visits"')
    (folder / "hubbub.toml").write_text(text + "[tables.visits.columns]\ncost = { between = [0, 100] }\n")
    for kind, code in (("1.5", 0), ("'much'", 3)):
        with duckdb.connect(folder / "v.duckdb") as con:
            con.execute(f"CREATE OR REPLACE TABLE visits AS SELECT 1 AS id, {kind} AS cost, 2 AS more")
        assert run(["policy", "drift"]) == code
        out = capsys.readouterr().out
        assert "nothing is declared of more" in out
        assert ("holds values of type text" in out) == bool(code)
        assert run(["steward", "check-data"]) == code
        capsys.readouterr()
