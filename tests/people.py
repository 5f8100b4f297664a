"""Small tables about people, and sessions over them, for tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import hubbub as hb
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import image
from hubbub.session import Session
from hubbub.sql.bind.query import TableInfo, parse
from hubbub.tables.aggregate_query import Statement
from hubbub.tables.declare import EachRow, PrivateTable
from hubbub.tables.plan import Plan, make_plans

HUGE = 10**9
"""An epsilon at which noise is 0 for all practical purposes; only for tables that no one lives in."""


def visits(**changes: Any) -> PrivateTable:
    """Six rows of four people, every limit beyond what they did."""
    frame = pa.table(
        {
            "id": [1, 1, 2, 3, 4, 4],
            "ward": ["A", "B", "A", None, "C", "A"],
            "age": [30.0, 31.5, 77.0, 64.25, None, 18.0],
            "n": [1, 2, 3, 4, 5, 6],
            "ok": [True, False, None, True, False, True],
            "day": pa.array([0, 40, 80, 120, None, 200], pa.date32()),
        }
    )
    arguments: dict[str, Any] = {
        "unit": "id",
        "max_groups": 4,
        "max_rows": 10,
        "columns": {
            "age": hb.between(0, 128),
            "ward": hb.one_of("A", "B", "C", None),
            "n": hb.between(0, 100),
            "ok": hb.one_of(True, False, None),
        },
    }
    return hb.table(changes.pop("source", frame), **(arguments | changes))


@contextmanager
def session(epsilon: Any = 10 * HUGE, *, bits: Any = None, ledger: Any = None, **tables: Any) -> Iterator[Session]:
    """A session over `tables` (by default the visits), in memory unless a ledger is named."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        opened = Session(tables or {"visits": visits()}, budget=hb.Budget(epsilon), ledger=ledger, _bits=bits)
    with opened:
        yield opened


@contextmanager
def engine(name: str, table: PrivateTable, *, portable: bool = False) -> Iterator[tuple[DuckDBEngine, Any]]:
    """An engine that knows one table, and a function from SQL text to the plan of a question on it."""
    opened = DuckDBEngine(portable=portable)
    try:
        schema = opened.add(name, table)
        opened.seal()
        unit = None if isinstance(table.unit, EachRow) else table.unit
        catalog = {name: TableInfo(schema.columns, private=True, unit=unit, table=table.without_source())}

        def plan(sql: str) -> Plan:
            statement = parse(sql, catalog)
            assert isinstance(statement, Statement)
            (found,) = make_plans(statement.questions[0], image)
            return found

        yield opened, plan
    finally:
        opened.close()
