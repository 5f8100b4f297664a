"""The toy's engine: the whole interface of an engine, and no more. DuckDB, behind it, does the arithmetic."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from engines.toy.place import ROWS, ToyTable
from hubbub.engines.base import Exact, Located, Schema
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.errors import PolicyError
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.plan import Plan
from hubbub.tables.relations import Scan


class ToyEngine:
    """Private tables of the toy's dictionary. It inherits nothing: all that a session needs of an engine is here."""

    returns_rows = True

    def __init__(self, *, portable: bool = False) -> None:
        self._inner = DuckDBEngine(portable=portable)
        self._toys: dict[str, pa.Table] = {}
        self._sources: dict[str, ToyTable] = {}

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        if not isinstance(table.source, ToyTable):
            return self._inner.add(name, table)
        rows = ROWS.get(table.source.name)
        if rows is None:
            raise PolicyError(f"table {name!r}: the toy has no table {table.source.name!r}.")
        self._toys[name], self._sources[name] = rows, table.source
        return self._inner.add(name, replace(table, source=rows))

    def located(self, name: str) -> Located:
        return Located(here=self._sources[name]) if name in self._sources else self._inner.located(name)

    def seal(self) -> None:
        self._inner.seal()

    def recheck(self, name: str) -> None:
        self._inner.recheck(name)

    def mark(self, name: str) -> str | None:
        if name not in self._toys:
            return self._inner.mark(name)
        return hashlib.sha256(repr(self._toys[name].to_pydict()).encode()).hexdigest()

    def rows(self, scan: Scan, columns: Sequence[str]) -> Any:
        return self._inner.rows(scan, columns)

    def compile(self, plan: Plan) -> str:
        return self._inner.compile(plan)

    def prepare(self, plan: Plan) -> None:
        self._inner.prepare(plan)

    def run(self, plan: Plan, public: Mapping[str, Any] | None = None) -> Exact:
        return self._inner.run(plan, public)

    def words(self, incident: str) -> str | None:
        return self._inner.words(incident)

    def interrupt(self, asker: object = None) -> None:
        self._inner.interrupt(asker)

    def close(self) -> None:
        self._inner.close()

    def fill(self, name: str, rows: pa.Table) -> None:
        """Other rows of the same columns, for a test."""
        held = self._inner._known[name].held
        assert held is not None
        self._toys[name] = held._table = rows
