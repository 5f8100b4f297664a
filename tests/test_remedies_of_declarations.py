"""A declaration that cannot be made, or that the source contradicts: the remedy is what was meant, and is answered."""

from __future__ import annotations

import functools
import math
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.errors import PolicyError
from hubbub.ledger.policy import read_policy
from hubbub.remedies import Attempt
from remedied import PEOPLE, PURE, SEEN, Case, N, answered_after, table

COUNT, SUM, BY_WARD = (
    "SELECT COUNT(*) AS x FROM t",
    "SELECT SUM(n) AS x FROM t",
    "SELECT ward, COUNT(*) AS x FROM t GROUP BY ward",
)
WARDS, YEAR = hb.one_of("A", "B", "C"), hb.between("2024-01-01", "2024-12-31")
TEXTS = pa.table({"id": [str(i) for i in range(N)], "n": ["1"] * N, "day": ["2024-01-02"] * N})


@functools.cache
def _files() -> Path:
    """A CSV, and a table `visits` in a file of DuckDB and in one of SQLite."""
    folder = Path(tempfile.mkdtemp())
    rows = "".join(f"{i},{'ABC'[i % 3]},{i % 5},0{1 + i % 9}.02.2024\n" for i in range(N))
    (folder / "visits.csv").write_text(f"id,ward,n,day\n{rows}")
    with duckdb.connect(str(folder / "visits.duckdb")) as con:
        con.execute("CREATE TABLE visits AS SELECT 1 AS id, 2 AS n")
    with sqlite3.connect(folder / "visits.sqlite") as lite:
        lite.execute("CREATE TABLE visits (id INTEGER, n INTEGER, seen REAL)")
        lite.execute("INSERT INTO visits VALUES (1, 2, 3)")
    lite.close()
    return folder


def of_texts(**declared: Any) -> Any:
    return hb.table(TEXTS, **{"unit": "id", "max_groups": 1, "max_rows": 1, **declared})


def of_file(name: str, **declared: Any) -> Any:
    return hb.table(_files() / name, **{"unit": "id", "max_groups": 1, "max_rows": 1, **declared})


def _charged(place: Path) -> None:
    with hb.Session({"t": table()}, budget=PURE, ledger=place) as session:
        session.sql(COUNT, epsilon=1)


def refused_by(
    site: str, made: Callable[[], Any], *fills: dict[str, Any], sql: str = COUNT, columns: tuple[str, ...] = ("x",),
    groups: int = 1, without: Callable[[], Any] | None = None,
) -> Case:  # fmt: skip
    return Case(site, sql, dict(enumerate(fills)), columns, groups, made, without=without)


SEEN_BY: dict[str, Any] = {"unit": "id", "max_groups": 1, "max_rows": 1}
AT_N, AT_WARD = {"column": "n"}, {"column": "ward"}
BY: dict[str, Any] = {"sql": BY_WARD, "columns": ("ward", "x"), "groups": 3, "without": table}
CASES = {
    "a column by another name": refused_by(
        "engines/fields.py:check_names", lambda: table(columns={"n": hb.between(0, 4), "wrad": WARDS}),
        {}, sql=BY_WARD, columns=("ward", "x"), groups=3,
    ),
    "a type of a column by another name": refused_by(
        "engines/fields.py:check_names", lambda: table(types={"kinds": "text"}), {}
    ),
    "a unit by another name": refused_by("engines/fields.py:unit", lambda: table(unit="i_d"), {}),
    "a unit of texts as numbers": refused_by(
        "engines/fields.py:_units_in_one", lambda: of_texts(types={"id": "number"}), {}, {}
    ),
    "a unit of whole numbers as numbers": refused_by(
        "engines/fields.py:_units_in_one", lambda: table(types={"id": "number"}), {}, {}
    ),
    "blanks around numbers": refused_by(
        "engines/fields.py:_check_declaration", lambda: table(columns={"n": hb.text(trim=True)}), {}
    ),
    "a range of texts": refused_by(
        "engines/fields.py:_check_declaration", lambda: of_texts(columns={"n": hb.between(0, 4)}), {}, sql=SUM
    ),
    "days that are texts": refused_by(
        "engines/fields.py:_check_declaration", lambda: of_texts(columns={"day": YEAR}),
        {}, sql="SELECT MEDIAN(day) AS x FROM t",
    ),
    "a type that the source has not": refused_by(
        "engines/fields.py:_kind_and_sql", lambda: table(types={"n": "date"}), {}
    ),
    "a CSV without types": refused_by(
        "engines/duckdb/relations.py:_untyped", lambda: of_file("visits.csv", columns={"n": hb.between(0, 4)}),
        {"types": ("integer", "text", "integer", "text")}, sql=SUM,
    ),
    "a format of a column by another name": refused_by(
        "engines/duckdb/sources.py:_check_formats",
        lambda: of_file("visits.csv", types={"day": "date"}, csv=hb.Csv(formats={"days": "%d.%m.%Y"})), {},
    ),
    "a format of a column that is no date": refused_by(
        "engines/duckdb/sources.py:_check_formats",
        lambda: of_file("visits.csv", types={"n": "integer"}, csv=hb.Csv(formats={"day": "%d.%m.%Y"})), {}, {},
    ),
    "no table of a file": refused_by(
        "engines/duckdb/sources.py:source_of", lambda: of_file("visits.duckdb"), {"value": "visits"}
    ),
    "a table of a file by another name": refused_by(
        "engines/duckdb/attached.py:check_base_table", lambda: of_file("visits.duckdb", table="visit"), {}
    ),
    "a table of SQLite by another name": refused_by(
        "engines/duckdb/sqlite_file.py:sqlite_columns", lambda: of_file("visits.sqlite", table="vists"), {}
    ),
    "a unit of SQLite that is read as a number": refused_by(
        "engines/duckdb/known.py:_check_single", lambda: of_file("visits.sqlite", table="visits", unit="seen"), {}, {}
    ),
    "bounds the other way round": refused_by(
        "tables/columns.py:between", lambda: table(columns={"n": hb.between(4, 0, nullable=False)}), AT_N,
        sql=SUM, without=table,
    ),
    "days the other way round": refused_by(
        "tables/columns.py:between", lambda: table(columns={"day": hb.between("2024-12-31", "2024-01-01")}),
        {"column": "day"}, sql="SELECT MEDIAN(day) AS x FROM t", without=table,
    ),
    "bounds in quotes": refused_by(
        "tables/columns.py:_check_unquoted", lambda: table(columns={"n": hb.between("0", "4.5")}), AT_N,
        sql=SUM, without=table,
    ),
    "days with another sign between": refused_by(
        "tables/columns.py:_check_iso", lambda: table(columns={"day": hb.between("2024/1/1", "2024/12/31")}),
        {"column": "day"}, sql="SELECT MEDIAN(day) AS x FROM t", without=table,
    ),
    "a zone by another name": refused_by(
        "tables/columns.py:_check_zone",
        lambda: hb.table(SEEN, **SEEN_BY, columns={"seen": hb.between("2024-01-01", "2024-12-31", tz="europe/rome")}),
        {"column": "seen"}, sql="SELECT MEDIAN(seen) AS x FROM t", without=lambda: hb.table(SEEN, **SEEN_BY),
    ),
    "a zone of numbers": refused_by(
        "tables/columns.py:between", lambda: table(columns={"n": hb.between(0, 4, tz="Europe/Rome")}), AT_N,
        sql=SUM, without=table,
    ),
    "a zone of sums whose bound is found": refused_by(
        "tables/columns.py:_up_to", lambda: table(columns={"n": hb.between(0, "auto", tz="Europe/Rome")}), AT_N,
        sql=SUM, without=table,
    ),
    "blanks that would be cut off numbers": refused_by(
        "tables/columns.py:one_of", lambda: table(columns={"n": hb.one_of(0, 1, trim=True)}), AT_N,
        sql="SELECT n, COUNT(*) AS x FROM t GROUP BY n", columns=("n", "x"), groups=2, without=table,
    ),
    "limits that are found where norms are clipped": refused_by(
        "tables/declare.py:table", lambda: table(bounding="norm", max_rows="auto"), {"values": (2,)}, {}, without=table,
    ),
    "a value that never matches": refused_by(
        "tables/columns.py:one_of", lambda: table(columns={"n": hb.one_of(0, math.nan, 1)}), AT_N,
        sql="SELECT n, COUNT(*) AS x FROM t GROUP BY n", columns=("n", "x"), groups=2, without=table,
    ),
    "values in a list": refused_by(
        "tables/columns.py:one_of", lambda: table(columns={"ward": hb.one_of(["A", "B", "C"])}), AT_WARD, **BY
    ),
    "a value twice": refused_by(
        "tables/columns.py:one_of", lambda: table(columns={"ward": hb.one_of("A", "B", "A", "C")}), AT_WARD, **BY
    ),
    "a value with a blank": refused_by(
        "tables/columns.py:one_of", lambda: table(columns={"ward": hb.one_of("A ", "B", "C", trim=True)}), AT_WARD, **BY
    ),
    "a column that is declared as no domain": refused_by(
        "tables/declare.py:table", lambda: table(columns={"n": (0, 4)}),
        {"low": 0, "high": 4}, {"values": (0, 1, 2, 3, 4)}, sql="SELECT MODE(n) AS x FROM t", without=table,
    ),
    "a limit of none": refused_by(
        "tables/declare.py:_limit", lambda: table(max_rows=0), {"values": (2,)}, without=table
    ),
    "another limit of none": refused_by(
        "tables/declare.py:_limit", lambda: table(rows_per_unit_at_most=0), {"value": 2}, without=table
    ),
    "neighbours by another word": refused_by(
        "tables/declare.py:_one_word", lambda: table(neighbours="add-remove"), {}, without=table
    ),
    "bounding by another word": refused_by(
        "tables/declare.py:_one_word", lambda: table(bounding="Groups"), {}, without=table
    ),
    "a type by another word": refused_by(
        "tables/declare.py:_types", lambda: table(types={"n": "float"}), {}, without=table
    ),
}  # fmt: skip
CASES["neighbours that the ledger does not know"] = Case(
    "session/open.py:check_neighbours",
    COUNT,
    {0: {}},
    table=lambda: table(neighbours="replace"),
    before=_charged,
)
EACH = [(name, at) for name, case in CASES.items() for at in case.fill]


@pytest.mark.parametrize(("name", "at"), EACH, ids=[f"{name}, {at}" for name, at in EACH])
def test_a_remedy_that_is_applied_is_answered(name: str, at: int, tmp_path: Path) -> None:
    case = CASES[name]
    assert answered_after(case, at, tmp_path / "another.db") == (case.columns, case.groups)


POLICY = """
[ledger]
file = "budget.db"
[budget]
epsilon = 3
[tables.t]
source = "people.parquet"
unit = "id"
max_rows = 1
max_groups = 1
neighbours = "add_remove"
[tables.t.columns]
n = { between = [0, 4] }
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[budget]", "[budgets]"),
        ("max_rows = 1", "max_row = 1"),
        ("{ between", "{ betwen"),
        ("[0, 4]", "[4, 0]"),
        ('"add_remove"', "'add-remove'"),
    ],
)
def test_a_policy_that_is_put_right_is_read(right: str, wrong: str, tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    file = tmp_path / "hubbub.toml"
    with pytest.raises(PolicyError) as refused:
        read_policy(POLICY.replace(right, wrong), file)
    [remedy] = refused.value.remedies
    attempt, _ = remedy.apply(Attempt(SUM, {"epsilon": 1}, policy=POLICY.replace(right, wrong)), {})
    file.write_text(attempt.policy or "")
    with hb.Session.from_policy(file, create_ledger=True) as session:
        assert session.sql(attempt.sql, **attempt.options).columns == ("x",)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("max_rows = 1", "max_rows = 1\nmax_row = 2"),
        ("max_rows = 1", "rows = 1"),
        ("max_rows = 1", "max_row = 1  # was max_row = 2"),
        ("[0, 4]", "[4, 4]"),
        ('"add_remove"', '"remove"'),
    ],
)
def test_a_policy_that_may_mean_two_has_no_remedy(right: str, wrong: str) -> None:
    with pytest.raises(PolicyError) as refused:
        read_policy(POLICY.replace(right, wrong), Path("hubbub.toml"))
    assert not refused.value.remedies


@pytest.mark.parametrize(
    "made",
    [
        lambda: hb.between("2020", "2024"),
        lambda: hb.between("9", "1"),
        lambda: hb.between(1, 1),
        lambda: hb.between(0, "1e9"),
        lambda: hb.one_of({"A", "B"}),
        lambda: hb.one_of([object()]),
        lambda: hb.one_of(list(range(100))),
        lambda: hb.edges(0, 65, 18),
        lambda: table(types={"n": "time"}),
        lambda: table(neighbours="remove"),
    ],
)
def test_a_declaration_that_may_mean_several_has_no_remedy(made: Callable[[], Any]) -> None:
    with pytest.raises(PolicyError) as refused:
        made()
    assert not refused.value.remedies
