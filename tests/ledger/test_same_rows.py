"""A stored answer is given for the same rows, read in the same way: whatever a declaration says of that is in the name
of the question, or of the version of its rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from engines.test_sqlite_and_sheets import sheet
from hubbub.session.data import OpenTables
from hubbub.tables.declare import PrivateTable
from people import HUGE, session

Pair = tuple[PrivateTable, PrivateTable]
SUM = "SELECT SUM(age) AS s FROM t"


def table(source: object, **more: Any) -> PrivateTable:
    given = {"unit": "id", "max_groups": 1, "max_rows": 4, "columns": {"age": hb.between(0, 64)}}
    return hb.table(source, **(given | more))


def parquet(file: Path, age: int) -> Path:
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "other": [1, 1, 1, 2], "age": [age] * 4, "word": ["1"] * 4}), file)
    return file


def by_source(folder: Path) -> Pair:
    return table(parquet(folder / "one.parquet", 10)), table(parquet(folder / "two.parquet", 20))


def by_copy(folder: Path) -> Pair:
    read = table(parquet(folder / "one.parquet", 10))
    return read, replace(read, copy=str(parquet(folder / "copy.parquet", 20)))


def of_one_file(folder: Path, **more: Any) -> Pair:
    file = parquet(folder / "one.parquet", 10)
    return table(file, unit_space="u", max_rows=1), table(file, **({"unit_space": "u", "max_rows": 1} | more))


def by_unit(folder: Path) -> Pair:
    return of_one_file(folder, unit="other")


def by_columns(folder: Path) -> Pair:
    return of_one_file(folder, columns={"age": hb.between(0, 8)})


def in_duckdb(folder: Path) -> Pair:
    file = folder / "f.duckdb"
    with duckdb.connect(str(file)) as made:
        for name, age in (("one", 10), ("two", 20)):
            made.execute(f"CREATE TABLE {name} AS SELECT range AS id, {age} AS age FROM range(4)")
    return table(file, table="one"), table(file, table="two")


def in_sqlite(folder: Path) -> Pair:
    file = folder / "f.sqlite"
    made = sqlite3.connect(file)
    for name, age in (("one", 10), ("two", 20)):
        made.execute(f"CREATE TABLE {name} (id INTEGER, age INTEGER)")
        made.executemany(f"INSERT INTO {name} VALUES (?, ?)", [(unit, age) for unit in range(4)])
    made.commit()
    made.close()
    return table(file, table="one"), table(file, table="two")


def in_a_workbook(folder: Path) -> Pair:
    file = sheet(folder / "f.xlsx", *([["id", "age"], *([unit, age] for unit in range(4))] for age in (10, 20)))
    types = {"id": "integer", "age": "integer"}
    return table(file, table="Sheet1", types=types), table(file, table="Sheet2", types=types)


def by_csv(folder: Path) -> Pair:
    file = folder / "f.csv"
    file.write_text("id;age\n1;1.500\n2;1.500\n")
    types = {"id": "integer", "age": "number"}
    return tuple(  # type: ignore[return-value]
        table(file, types=types, csv=hb.Csv(delimiter=";", **more)) for more in ({}, {"decimal": ",", "thousands": "."})
    )


def by_types(folder: Path) -> Pair:
    file = folder / "f.csv"
    file.write_text("id,age\n01,10\n1,10\n001,10\n")
    return tuple(  # type: ignore[return-value]
        table(file, types={"id": kind, "age": "integer"}, max_rows=1) for kind in ("text", "integer")
    )


PAIRS: dict[str, list[Callable[[Path], Pair]]] = {
    "source": [by_source],
    "copy": [by_copy],
    "inner_table": [in_duckdb, in_sqlite, in_a_workbook],
    "unit": [by_unit],
    "columns": [by_columns],
    "types": [by_types],
    "csv": [by_csv],
}
"""For each part of a declaration, two that differ in it, and of which the same question has two answers."""

BOUNDS = {"max_groups", "max_rows", "max_total", "bounding"}
"""What bounds one unit: in a question's own name, as `tests/test_door.py` and others hold."""

NO_ROWS = {"neighbours", "unit_space", "trusted_view", "rows_per_unit_at_most", "through"}
"""What does not change which rows of one table are read; a path to the unit is another relation."""


def test_every_part_of_a_declaration_is_looked_at_here():
    assert PAIRS.keys() | BOUNDS | NO_ROWS == {field.name for field in fields(PrivateTable)}


@pytest.mark.parametrize("both", [pytest.param(one, id=one.__name__) for each in PAIRS.values() for one in each])
def test_a_table_that_is_declared_otherwise_is_asked_anew(tmp_path, both):
    answers = []
    for declared in both(tmp_path):
        with session(ledger=tmp_path / "l.db", t=declared) as s:
            told = s.sql(SUM, epsilon=HUGE)
            assert told.charged
            assert not s.sql(SUM, epsilon=HUGE).charged
            answers.append(round(float(told.rows()[0][0]), 3))
    assert answers[0] != answers[1]


def test_a_table_of_spark_by_another_name_is_another_version():
    """Spark does not tell when rows change; the declaration tells that another table is meant."""
    marks = []
    for source in ("spark:clinic.one", "spark:clinic.two", "spark:clinic.one"):
        data = object.__new__(OpenTables)
        data.engine, data.tables = Mock(mark=lambda _: None), {"t": table(source)}
        data._marks, data.versions = {"t": None}, None
        marks.append(data.mark("t"))
    assert marks[0] == marks[2] != marks[1]
