"""The same tables in DuckDB, Postgres and Spark, for tests that hold every engine to one contract."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from answers import Desk
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.tables.declare import PrivateTable
from hubbub.tables.relations import leaves
from hubbub.tables.remote import remote

_TYPES = {"int64": "bigint", "double": "double precision", "string": "text", "bool": "boolean", "date32[day]": "date"}
_NUMBERS = itertools.count()


def postgres_type(kind: Any) -> str:
    named = "timestamp" if str(kind).startswith("timestamp") else _TYPES.get(str(kind))
    return named or _decimal(kind) or _TYPES[str(kind)]


def _decimal(kind: Any) -> str | None:
    return f"DECIMAL({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else None


def fill(con: Any, name: str, table: pa.Table) -> None:
    """The rows of a table, in place of those there were."""
    con.execute(f'DELETE FROM "{name}"')
    with con.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            copy.write_row(row)


class Postgres:
    """Private tables in a database of their own; `fill` puts rows there."""

    def __init__(self, server: str, tables: Mapping[str, Any], frames: Mapping[str, pa.Table]) -> None:
        import psycopg

        from hubbub.engines.postgres.engine import PostgresEngine

        self.database = f"rows{os.getpid()}_{next(_NUMBERS)}"
        self.admin = f"postgresql://hubbub@/{self.database}?host={server}"
        self.url = f"postgresql://reader@/{self.database}?host={server}"
        with psycopg.connect(f"postgresql://hubbub@/postgres?host={server}", autocommit=True) as con:
            con.execute(f"CREATE DATABASE {self.database}")
            if con.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone() is None:
                con.execute("CREATE ROLE reader LOGIN")
        self.con = psycopg.connect(self.admin, autocommit=True)
        self.con.execute("SET synchronous_commit = off")
        # No right but to look: not even temporary tables.
        self.con.execute(f"REVOKE ALL ON DATABASE {self.database} FROM PUBLIC")
        self.con.execute(f"GRANT CONNECT ON DATABASE {self.database} TO reader")
        self.tables = {}
        for name, table in tables.items():
            if isinstance(table, PrivateTable):
                fields = ", ".join(f'"{f.name}" {postgres_type(f.type)}' for f in frames[name].schema)
                self.con.execute(f'CREATE TABLE "{name}" ({fields})')
                self.con.execute(f'GRANT SELECT ON "{name}" TO reader')
                table = replace(table, source=remote(self.url), inner_table=name)
            self.tables[name] = table
        self.engine = PostgresEngine()
        for name, table in self.tables.items():
            self.engine.add(name, table)
        self.engine.seal()
        self.fill(frames)

    def fill(self, frames: Mapping[str, pa.Table]) -> None:
        with self.con.transaction():
            for name, table in self.tables.items():
                if isinstance(table, PrivateTable):
                    fill(self.con, name, frames[name])

    def close(self) -> None:
        self.engine.close()
        self.con.close()


class Spark:
    """Private tables in a local Spark, as data frames."""

    def __init__(self, spark: Any, tables: Mapping[str, Any], frames: Mapping[str, pa.Table]) -> None:
        from hubbub.engines.spark.engine import SparkEngine

        self.spark, self.tables, self.engine = spark, dict(tables), SparkEngine()
        for name, table in tables.items():
            if isinstance(table, PrivateTable):
                self.tables[name] = replace(table, source=remote(self.frame(frames[name]).localCheckpoint()))
            self.engine.add(name, self.tables[name])
        self.engine.seal()

    def frame(self, table: pa.Table) -> Any:
        from hubbub.engines.spark.engine import _spark_type

        if any(map(pa.types.is_decimal, table.schema.types)):  # objects of Python may hold another number than this
            return self.spark.createDataFrame(table).coalesce(1)
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        kinds = ", ".join(f"`{f.name}` {_decimal(f.type) or _spark_type(str(f.type))}" for f in table.schema)
        return self.spark.createDataFrame(rows, kinds).coalesce(1)

    def fill(self, frames: Mapping[str, pa.Table]) -> None:
        for name, known in self.engine._known.items():
            self.engine.show(self.frame(frames[name]), known.view)

    def set(self, key: str, value: str) -> None:
        """A setting of the session in which texts run, in place of ours."""
        self.engine._session.conf.set(key, value)

    def close(self) -> None:
        self.engine.close()


class Embedded:
    """The same in DuckDB, which chooses groups by the hash that the others have."""

    def __init__(self, tables: Mapping[str, Any], frames: Mapping[str, pa.Table]) -> None:
        self.desk = Desk(tables)
        self.desk.engine.close()
        self.engine = self.desk.engine = DuckDBEngine(portable=True)
        for name, table in tables.items():
            self.engine.add(name, table)
        self.engine.seal()
        self.fill(frames)

    def fill(self, frames: Mapping[str, pa.Table]) -> None:
        for name, known in self.engine._known.items():
            if known.held is not None and isinstance(self.desk.tables[name], PrivateTable):
                known.held._table = frames[name]

    def public(self, plan: Any) -> dict[str, Any]:
        return {leaf.place: self.desk.outer.leaf(leaf, {}) for leaf in leaves(plan.question.relation)}

    def close(self) -> None:
        self.engine.close()


def answer(engine: Any, plan: Any, public: Mapping[str, Any]) -> tuple[Any, ...]:
    """The exact integers of a plan, by group where groups are found privately."""
    found = engine.run(plan, public)
    if found.groups is None:
        return found.vectors
    return tuple(dict(zip(found.groups, v, strict=True)) for v in found.vectors)
