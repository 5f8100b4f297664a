"""What the embedded engine knows of a table and of a question at work, and what it refuses of either."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from hubbub.engines.duckdb.parquet import Patient
from hubbub.engines.duckdb.sources import Frame, Held, Sheet, Source, SqliteFile, has_objects
from hubbub.engines.stopping import asker
from hubbub.errors import PolicyError
from hubbub.remedies import DeclareType
from hubbub.sql.emit.place import Place
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Relation, scans

__all__: list[str] = []


@dataclass(frozen=True)
class _Patiently:
    """A patient reading of the columns that a question reads."""

    patient: Patient
    asked: Collection[str]


Views = Mapping[str, Callable[[], Any] | _Patiently]
"""By its name, what makes the rows that are registered, or fills tables with them."""


@dataclass(frozen=True)
class _Known:
    """A table the engine can read: where, which expression gives each column, and the unit.

    held: rows that are registered for each question. patient: a slower reading that fails on no value, if any.
    physical: the type of each column of a file that others may write meanwhile.
    """

    relation: str
    columns: Mapping[str, str]
    unit: str | None
    key: Callable[[str], tuple[str, str]]
    held: Held | None = None
    patient: Patient | None = None
    physical: Mapping[str, str] | None = None

    def place(self, view: str | None, asked: Collection[str] = ()) -> Place:
        """Where its rows are. view: what the patient reading fills, where it is that one; asked: what it reads."""
        patient = None if view is None else self.patient
        relation = self.relation if patient is None or view is None else patient.relation(view, asked)
        return Place(relation, self.columns, self.unit, self.key)

    def patiently(self, asked: Collection[str]) -> _Patiently:
        """The patient reading of some columns, of a table that has one."""
        assert self.patient is not None
        return _Patiently(self.patient, asked)


def _columns_read(node: Relation, names: Collection[str]) -> dict[str, frozenset[str]]:
    """Of each declared table the columns of these names, and those that name its units or lead to them."""
    columns: dict[str, frozenset[str]] = {}
    for scan in scans(node):
        paths = [] if scan.path is None else [(scan.table, scan.path.column), (scan.path.scan.table, scan.path.key)]
        read = [(scan.table, column) for column in scan.columns if f"{scan.place}.{column}" in names]
        for table, column in [*read, *paths, *([(scan.table, scan.unit)] if scan.unit is not None else [])]:
            columns[table] = columns.get(table, frozenset()) | {column}
    return columns


def _fill(cursor: Any, views: Views, stopped: Callable[[], bool]) -> None:
    """Give a connection what it is to read: rows as they are, or those of a patient reading."""
    for view, load in views.items():
        if isinstance(load, _Patiently):
            load.patient.fill(cursor, view, load.asked, stopped=stopped)
        else:
            cursor.register(view, load())


class _Failed(Exception):
    """The engine failed. How is never said."""


@dataclass
class _Call:
    """One question at work: for whom, whether it is to stop, the connection it has, and what the engine last said."""

    whose: object = field(default_factory=asker)
    stopped: threading.Event = field(default_factory=threading.Event)
    cursor: Any = None
    words: str | None = None


def _check_single(name: str, unit: str, kind: Kind, source: Source) -> None:
    """Raises PolicyError where values that a source tells apart would be one unit: of SQLite, of sheets and of objects
    in a frame each value has a type of its own, and as a number, a day or a moment several of them are one.
    """
    match source:
        case SqliteFile() | Sheet():
            apart = kind in (Kind.INTEGER, Kind.TEXT)
        case Frame():
            apart = kind not in (Kind.NUMBER, Kind.TIMESTAMP) or not has_objects(source, unit)
        case _:
            apart = True
    if not apart:
        ways = [DeclareType(unit, as_what, table=name) for as_what in ("integer", "text")]
        raise PolicyError(
            f"table {name!r}: the unit column {unit!r} is read as a {kind.value}; different values could become one "
            f"unit. Declare {' or '.join(way.in_python() for way in ways)}.",
            remedy=ways,
        )


def _replaced(name: str) -> PolicyError:
    return PolicyError(
        f"the source of the table {name!r} was replaced while this session had it open, or written; open a new "
        "session. Nothing was charged."
    )
