"""Which engine a session has: where its private tables are decides."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hubbub.errors import PolicyError, how_to_install
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.remote import PostgresAddress, SparkFrame, SparkName

if TYPE_CHECKING:
    from hubbub.engines.base import Engine

__all__ = ["engine_for"]


def engine_for(tables: Mapping[str, PrivateTable | PublicTable]) -> Engine:
    """The engine of a session with these tables: Postgres or Spark where its private tables are there, else DuckDB.

    Raises PolicyError where they are in several places, or the engine's extra is not installed.
    """
    kinds = {_kind(t.source) for t in tables.values() if isinstance(t, PrivateTable)}
    if len(kinds) > 1:
        raise PolicyError(
            f"the private tables of one session are in one place; these are in {' and '.join(sorted(kinds))}. Open a "
            "session for each; they can share one ledger."
        )
    kind = kinds.pop() if kinds else "DuckDB"
    if kind == "Postgres":
        _needs("psycopg", "postgres")
        from hubbub.engines.postgres.engine import PostgresEngine

        return PostgresEngine()
    if kind == "Spark":
        _needs("pyspark", "spark")
        from hubbub.engines.spark.engine import SparkEngine

        return SparkEngine()
    from hubbub.engines.duckdb.engine import DuckDBEngine

    return DuckDBEngine()


def _kind(source: object) -> str:
    match source:
        case PostgresAddress():
            return "Postgres"
        case SparkName() | SparkFrame():
            return "Spark"
    return "DuckDB"


def _needs(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise PolicyError(f"this table needs {module}, which is not installed. {how_to_install(extra)}")
