"""The toy's engine: its rows go to DuckDB, which does the arithmetic."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from engines.toy.place import ROWS, ToyTable
from hubbub.engines.base import Schema
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.errors import PolicyError
from hubbub.tables.declare import PrivateTable, PublicTable


class ToyEngine(DuckDBEngine):
    """Private tables of the toy's dictionary."""

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        if not isinstance(table.source, ToyTable):
            return super().add(name, table)
        rows = ROWS.get(table.source.name)
        if rows is None:
            raise PolicyError(f"table {name!r}: the toy has no table {table.source.name!r}.")
        self._toys = {**getattr(self, "_toys", {}), name: rows}
        return super().add(name, replace(table, source=rows))

    def mark(self, name: str) -> str | None:
        rows = getattr(self, "_toys", {}).get(name)
        if rows is None:
            return super().mark(name)
        return hashlib.sha256(repr(rows.to_pydict()).encode()).hexdigest()
