"""A key that leads to the unit is told apart as a unit is: of two keys that the sources tell apart, none is the other.

With keys compared as numbers, a row of one person would be another's too: adding a person would move two.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from engines.places import Embedded, Postgres, Spark, answer

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
