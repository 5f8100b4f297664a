"""A key that leads to the unit is told apart as a unit is: of two keys that the sources tell apart, none is the other.

With keys compared as numbers, a row of one person would be another's too: adding a person would move two.
"""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from engines.places import Embedded, Postgres, Spark, answer
from hubbub.tables.relations import leaves

APART: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimals beyond doubles": (pa.decimal128(20, 0), [Decimal(2**53), Decimal(2**53 + 1)]),
    "whole numbers beyond doubles": (pa.int64(), [2**53, 2**53 + 1]),
    "nanoseconds": (pa.timestamp("ns"), [1_000_000_000_000_000_001, 1_000_000_000_000_000_002]),
    "long texts": (pa.string(), ["x" * 70_000 + "a", "x" * 70_000 + "b"]),
    "texts": (pa.string(), ["1", "01"]),
    "days": (pa.date32(), [dt.date(2025, 1, 1), dt.date(2025, 1, 2)]),
}


def counted(orders: Any, lines: Any, **types: Any) -> int:
    """How many rows all units have together in lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = {
            "orders": hb.table(orders, unit="person", max_total=1, **types),
            "lines": hb.table(lines, unit="orders.person", through="key", max_total=50, **types),
        }
        with hb.Session(tables, budget=hb.Budget(10**6), ledger=None) as asked:
            return asked.sql("SELECT COUNT(*) AS n FROM lines", epsilon=100_000).rows()[0][0]


@pytest.mark.parametrize("kind", APART)
def test_two_keys_that_a_file_tells_apart_lead_to_two_people(tmp_path: Path, kind: str) -> None:
    arrow, keys = APART[kind]
    pq.write_table(pa.table({"key": pa.array(keys, arrow), "person": ["ada", "bob"]}), tmp_path / "orders.parquet")
    pq.write_table(pa.table({"key": pa.array([keys[0]] * 3 + [keys[1]] * 4, arrow)}), tmp_path / "lines.parquet")
    # Merged, each of the two would own all seven: fourteen.
    assert counted(tmp_path / "orders.parquet", tmp_path / "lines.parquet") == 7


def test_keys_of_two_types_are_refused(tmp_path: Path) -> None:
    for name, arrow in (("orders", pa.decimal128(20, 0)), ("lines", pa.float64())):
        pq.write_table(pa.table({"key": pa.array([1], arrow), "person": ["ada"]}), tmp_path / f"{name}.parquet")
    with pytest.raises(hb.PolicyError, match="several keys could become one"):
        counted(tmp_path / "orders.parquet", tmp_path / "lines.parquet")


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_two_keys_that_a_server_tells_apart_lead_to_two_people(engine: str, request: pytest.FixtureRequest) -> None:
    """The exact integers of one plan; of the two units one has three rows and one four."""
    arrow = pa.decimal128(20, 0)
    keys = [Decimal(2**53), Decimal(2**53 + 1)]
    frames = {
        "orders": pa.table({"key": pa.array(keys, arrow), "person": ["ada", "bob"]}),
        "lines": pa.table({"key": pa.array([keys[0]] * 3 + [keys[1]] * 4, arrow)}),
    }
    tables = {
        "orders": hb.table(frames["orders"], unit="person", max_total=1),
        "lines": hb.table(frames["lines"], unit="orders.person", through="key", max_total=50),
    }
    here = Embedded(tables, frames)
    if engine == "postgres":
        there: Any = Postgres(request.getfixturevalue("postgres_server"), tables, frames)
    else:
        there = Spark(request.getfixturevalue("spark"), tables, frames)
    try:
        (plan,) = here.desk.plans("SELECT COUNT(*) AS n FROM lines")
        for place in (here, there):
            assert [list(vector) for vector in answer(place.engine, plan, {})] == [[7]]
    finally:
        here.close()
        there.close()


def test_a_numeric_key_of_sqlite_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    with sqlite3.connect(path) as con:
        con.execute("CREATE TABLE orders (key NUMERIC, person TEXT)")
        con.execute("CREATE TABLE lines (key NUMERIC)")
    con.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = {
            "orders": hb.table(path, table="orders", unit="person", max_total=1),
            "lines": hb.table(path, table="lines", unit="orders.person", through="key", max_total=1),
        }
        with hb.Session(tables, budget=hb.Budget(1), ledger=None) as asked:
            with pytest.raises(hb.PolicyError, match="different values could become one"):
                asked.check("SELECT COUNT(*) AS n FROM lines", epsilon=1)


@pytest.mark.parametrize("engine", ["embedded", "postgres", "spark"])
def test_a_line_is_one_row_of_each_owner_however_often_its_key_stands_there(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """A line whose key stands there three times for one person was three rows of that person."""
    frames = {
        "orders": pa.table({"key": [1, 1, 1, 2, 1, None], "person": ["ada", "ada", "ada", "ada", "bob", "eve"]}),
        "lines": pa.table({"key": [1, 1, 2, 3, None], "x": [1, 2, 4, 8, 16]}),
    }
    tables = {
        "orders": hb.table(frames["orders"], unit="person", max_total=9),
        "lines": hb.table(
            frames["lines"], unit="orders.person", through="key", max_total=50, columns={"x": hb.between(0, 16)}
        ),
    }
    here = Embedded(tables, frames)
    there: Any = here
    if engine == "postgres":
        there = Postgres(request.getfixturevalue("postgres_server"), tables, frames)
    elif engine == "spark":
        there = Spark(request.getfixturevalue("spark"), tables, frames)
    try:
        for sql, counts in (
            ("SELECT COUNT(*) AS n FROM lines", [5]),
            ("SELECT COUNT(*) AS n FROM lines WHERE x = 2", [2]),
            # As SQL has it, a line meets each of its owner's orders.
            ("SELECT COUNT(*) AS n FROM lines l JOIN orders o ON l.key = o.key", [9]),
        ):
            (plan,) = here.desk.plans(sql)
            assert [sum(vector) for vector in answer(there.engine, plan, {})] == counts, sql
    finally:
        here.close()
        if there is not here:
            there.close()


def test_a_persons_rows_of_one_key_are_added_and_not_multiplied() -> None:
    """As many rows as 20,000 times 20,000 took seconds, and of ten times as many an engine's disk."""
    many = 20_000
    frames = {
        "orders": pa.table({"key": [1] * many, "person": ["ada"] * many}),
        "lines": pa.table({"key": [1] * many}),
    }
    tables = {
        "orders": hb.table(frames["orders"], unit="person", max_total=1),
        "lines": hb.table(frames["lines"], unit="orders.person", through="key", max_total=10**9),
    }
    here = Embedded(tables, frames)
    try:
        (plan,) = here.desk.plans("SELECT COUNT(*) AS n FROM lines")
        assert [list(vector) for vector in answer(here.engine, plan, {})] == [[many]]
    finally:
        here.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM lines l JOIN orders o ON l.key = o.key",
        "SELECT COUNT(*) AS n FROM orders o JOIN lines l ON l.key = o.key AND o.person <> 'bob'",
        "SELECT COUNT(*) AS n FROM lines l JOIN orders o ON l.key = o.key JOIN p ON o.key = p.key",
        "SELECT COUNT(*) AS n FROM (SELECT person, key FROM orders GROUP BY 1, 2) a "
        "JOIN orders o ON a.person = o.person AND a.key = o.key JOIN lines l ON l.key = o.key",
    ],
)
def test_joins_are_made_as_they_are_written(sql: str) -> None:
    """In another order all rows of one person met all others of it first, and were held: of 30,000, a full disk."""
    many = 500
    frames = {
        "orders": pa.table({"key": range(many), "person": ["ada"] * many}),
        "lines": pa.table({"key": range(many)}),
    }
    public = pa.table({"key": range(many)})
    tables: dict[str, Any] = {
        "orders": hb.table(frames["orders"], unit="person", max_total=1),
        "lines": hb.table(frames["lines"], unit="orders.person", through="key", max_total=many),
        "p": hb.public(public),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        desk = Desk(tables)
    try:
        (plan,) = desk.plans(sql)
        with desk.engine._con.cursor() as cursor:
            for name, frame in frames.items():
                cursor.register(desk.engine._known[name].relation, frame)
            for leaf in leaves(plan.question.relation):
                cursor.register(leaf.place, public)
            ((_, shown),) = cursor.execute(f"EXPLAIN ANALYZE {desk.engine.compile(plan)}").fetchall()
        rows = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) rows?", shown)]
        assert many <= max(rows) <= 2 * many, shown
    finally:
        desk.engine.close()
