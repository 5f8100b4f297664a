"""The embedded engine over copies of objects, which are looked at again before each question."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hubbub.addresses import ObjectAddress
from hubbub.engines.base import Located, Schema
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.sheets import only_sheet
from hubbub.engines.objects.copies import Copy, copy_of, inner_of
from hubbub.file_formats import kind_of_file
from hubbub.ledger.places import INSIDE
from hubbub.tables.declare import PrivateTable, PublicTable

__all__ = ["ObjectsEngine"]


class ObjectsEngine(DuckDBEngine):
    """The engine of a session of which some tables are in an object store; the others are files and frames.

    A table's copies lie in the engine's own folder, which is this user's alone and goes with the session. When a
    question is prepared the store is asked for the edition; a new one is copied, and is new data to the ledger.
    """

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[str, Copy] = {}
        self._inner: dict[str, str | None] = {}
        self._headers: dict[str, tuple[str, ...]] = {}
        self._copying = threading.RLock()

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        """Make a declared table known; copies its objects.

        Raises PolicyError for objects that are missing or cannot be read, or whose schema contradicts the declaration.
        """
        if isinstance(table.source, ObjectAddress):
            folder = Path(self._folder) / f"objects-{len(self._copies)}"
            copy = self._copies[name] = copy_of(table.source, folder, csv=table.csv is not None)
            self._inner[name] = inner_of(table.source, table.inner_table)
            table = replace(table, source=copy.path)
        schema = super().add(name, table)
        if name in self._copies and kind_of_file(self._copies[name].path) in ("csv", None):
            self._headers[name] = tuple(column.lower() for column in schema.columns)
        return schema

    def located(self, name: str) -> Located:
        """Each object by its server and key; a workbook with the name of its only sheet, where none is said."""
        copy = self._copies.get(name)
        if copy is None:
            return super().located(name)
        address, inner, place = copy.address, self._inner[name], None
        if inner is None and not address.several and kind_of_file(copy.path) == "sheet":
            inner = only_sheet(copy.path)
            place = f"{address.kept}{INSIDE}{inner}" if inner else None
        keys = frozenset(("object", *address.around, key, (inner or "").lower()) for key, *_ in copy.edition)
        return Located(place, here=keys, header=self._headers.get(name, ()))

    def recheck(self, name: str) -> None:
        """Raises PolicyError where the objects are gone, or their columns are no longer those of the session."""
        self._renew(name)
        super().recheck(name)

    def mark(self, name: str) -> str | None:
        """A text that changes when an object is replaced."""
        self._renew(name)
        mark, copied = super().mark(name), self.copied(name)
        return mark if copied is None else copied[0]

    def copied(self, name: str) -> tuple[str, int] | None:
        """The mark of the copy that is here, and how often one was taken; None of a source that is not copied."""
        copy = self._copies.get(name)
        if copy is None:
            return None
        with self._copying:
            return f"{copy.edition} {copy.address.kept}{self._read_as[name]}", copy.taken

    def _stamps(self, files: Sequence[str]) -> list[tuple[int, ...]] | None:
        """As for files; not between the first and the last of several that another question copies anew: what was read
        there, of two editions, would have one stamp before and after.
        """
        with self._copying:
            return super()._stamps(files)

    def _renew(self, name: str) -> None:
        copy = self._copies.get(name)
        if copy is not None:
            with self._copying:
                copy.renew()
