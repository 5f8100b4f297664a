"""`hubbub steward check-data` says how much does not fit, in bands; `hubbub policy drift` what moved, from schemas."""

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


def _bands(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str, str]]:
    rows = json.loads(capsys.readouterr().out)
    assert all(set(row) == {"table", "column", "kind", "null", "failing", "outside"} for row in rows)
    return {row["column"]: (row["null"], row["failing"], row["outside"]) for row in rows}


MUCH = "above 10 %"


def test_what_does_not_fit_is_told_in_bands_by_column(folder: Path, capsys) -> None:
    assert run(["steward", "check-data", "--may-see-rows", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    told = {row["column"]: (row["null"], row["failing"], row["outside"]) for row in json.loads(out)}
    # id x is no whole number; 1.5 is none with a decimal comma; a day in the wrong order, and one that is not there.
    assert told == {
        "id": ("none", MUCH, ""), "ward": (MUCH, "none", MUCH), "cost": (MUCH, MUCH, MUCH), "day": (MUCH, MUCH, MUCH)
    }  # fmt: skip
    assert f"visits: {MUCH} of its lines are not rows" in err
    assert "for a steward alone" in err
    assert "looked_at_rows = true" in err
    assert not (folder / "budget.db").exists()


def test_no_count_and_no_value_is_told_whatever_the_rows_are(folder: Path, capsys) -> None:
    """Where the bands are the same, the words are: one row more, or another value, changes nothing."""
    said = set()
    for rows in (400, 401, 437):
        lines = [f"{i};A;{i % 90};01.02.2025" for i in range(rows)] + ["1;B;7654321;01.02.2025"]
        (folder / "visits.csv").write_text("id;ward;cost;day\n" + "\n".join(lines) + "\n")
        assert run(["steward", "check-data", "--may-see-rows"]) == 0
        said.add("".join(capsys.readouterr()))
    assert len(said) == 1
    assert "below 1 %" in (text := said.pop())
    assert "7654321" not in text


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [(0, 0, "none"), (0, 9, "none"), (1, 101, "below 1 %"), (1, 100, "1 to 10 %"), (10, 100, "1 to 10 %"),
     (11, 100, "above 10 %"), (5, 5, "above 10 %")],
)  # fmt: skip
def test_the_bands_are_those_that_the_reference_names(part: int, whole: int, words: str) -> None:
    from hubbub.engines.duckdb.inspect import BANDS, band

    assert band(part, whole) == words
    page = (Path(__file__).parents[2] / "docs/reference/command-line.md").read_text("utf-8")
    assert all(name in page for name in BANDS)


def test_rows_are_looked_at_by_who_says_that_he_may(folder: Path, capsys, monkeypatch) -> None:
    from hubbub.cli import steward

    monkeypatch.setattr("hubbub.engines.duckdb.inspect.inspect_rows", lambda *_: pytest.fail("rows were read"))
    assert run(["steward", "check-data"]) == 3
    assert "--may-see-rows" in capsys.readouterr().err
    monkeypatch.setattr(steward, "on_terminal", lambda _: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert run(["steward", "check-data"]) == 3
    assert "nothing was read" in capsys.readouterr().err


def test_a_receipt_shows_that_somebody_looked_at_the_rows(folder: Path) -> None:
    import hubbub as hb

    (folder / "visits.csv").write_text("id;ward;cost;day\n" + "".join(f"{i};A;5;01.02.2025\n" for i in range(50)))
    for mark, seen in (("", None), ("looked_at_rows = true\n", ["visits"])):
        text = POLICY.replace("max_rows = 1\n", f"max_rows = 1\n{mark}")
        (folder / "hubbub.toml").write_text(text)
        with hb.Session.from_policy("hubbub.toml", create_ledger=True) as session:
            answer = session.sql("SELECT COUNT(*) FROM visits WHERE cost > " + str(len(mark)), epsilon="0.1")
            assert answer.receipt.get("looked_at_rows") == seen
            assert session.receipt(answer.charge_id).get("looked_at_rows") == seen


def test_what_fails_in_a_sqlite_file_is_told_too(folder: Path, capsys) -> None:
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
    assert run(["steward", "check-data", "--may-see-rows", "--format", "json"]) == 0
    told = {column: both[:2] for column, both in _bands(capsys).items()}
    assert told == {"id": ("none", MUCH), "ward": (MUCH, "none"), "cost": ("none", MUCH), "day": (MUCH, MUCH)}


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
        assert run(["steward", "check-data", "--may-see-rows"]) == code
        capsys.readouterr()


def test_a_public_table_that_moved_is_told_too(folder: Path, capsys) -> None:
    more = '[public.wards]\nsource = "wards.csv"\ntypes = { ward = "text", beds = "integer" }\n'
    (folder / "hubbub.toml").write_text(POLICY + more)
    assert run(["policy", "drift"]) == 3
    assert "wards.csv" in capsys.readouterr().out
    for header, code in (("ward,beds,floor", 0), ("ward,Beds", 3)):
        (folder / "wards.csv").write_text(f"{header}\nA,3,1\n")
        assert run(["policy", "drift"]) == code
        assert ("wards.beds: gone, and named in types; it has Beds" in capsys.readouterr().out) == bool(code)
