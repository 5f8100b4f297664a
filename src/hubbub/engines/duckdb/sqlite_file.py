"""A table of a SQLite file, read once into this process by the standard library.

SQLite gives each value a type of its own. A column's kind is that of its declared type, by SQLite's rule of affinity
(https://sqlite.org/datatype3.html, 3.1), or as the policy says; a value of another type is NULL, and so is a text that
is not in the file's encoding. SQLite checks no text: of a file in UTF-16 it makes one character of several that are
none, so the bytes are taken as they are stored. Dates and times are texts in ISO form.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote as percent

import pyarrow as pa

from hubbub.engines.base_tables import not_trusted
from hubbub.engines.duckdb.dialect import quote as quoted
from hubbub.engines.duckdb.fitted import OBJECTS, rows_as_table
from hubbub.errors import PolicyError
from hubbub.sql.bind.scope import did_you_mean, inner_table_meant
from hubbub.tables.kinds import Kind

__all__ = ["read_sqlite", "sqlite_columns", "sqlite_tables", "sqlite_values"]

_MANY = 1 << 16
"""Rows at a time."""
_WIDE: Final[Mapping[str, str]] = {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}
"""What SQLite calls the encodings of 16 bits, and Python."""
_STORED: Final = "CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) WHEN 'blob' THEN NULL ELSE {0} END"
"""The bytes of a text as they are stored; no kind takes a blob."""


def sqlite_columns(
    name: str, path: str, inner: str, types: Mapping[str, Kind], *, trusted: bool
) -> Mapping[str, Kind | None]:
    """The kind of each column of a table; None for one that no question can use.

    Raises PolicyError for what is not a base table and not trusted, and for a file that is being written.
    """
    problem = None
    try:
        with _opened(path) as con:
            named = "SELECT name, type || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE type IN ('table', 'view')"
            tables = dict(con.execute(named).fetchall())
            columns = con.execute("SELECT name, type, hidden FROM pragma_table_xinfo(?)", [inner]).fetchall()
    except (sqlite3.Error, OSError):
        problem = "it cannot be opened as a SQLite file, or another program holds it"
    if problem is None and _writing(path):
        problem = "a file -wal beside it holds what is not written into it yet; close the program that writes it"
    if problem:
        raise PolicyError(f"table {name!r}: {path!r} cannot be read: {problem}.")
    what = tables.get(inner, "")
    if not what.startswith(("table", "view")):
        raise PolicyError(
            f"table {name!r}: the file has no table {inner!r}. {did_you_mean(inner, tables)}",
            remedy=inner_table_meant(inner, [n for n, what in tables.items() if what.startswith("table")], name),
        )
    odd = (
        "is a view" if what.startswith("view")
        else "is a virtual table" if what.upper().startswith("TABLE CREATE VIRTUAL ")
        else "has generated columns" if any(hidden in (2, 3) for *_, hidden in columns)
        else None
    )  # fmt: skip
    if odd is not None and not trusted:
        raise not_trusted(name, inner, odd)
    return {column: types.get(column) or _affinity(kind) for column, kind, hidden in columns if hidden != 1}


def sqlite_tables(name: str, path: str) -> list[str]:
    """The base tables of a file, by its catalogue.

    Raises PolicyError for one that cannot be opened.
    """
    with contextlib.suppress(sqlite3.Error, OSError), _opened(path) as con:
        named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        return [str(table) for (table,) in con.execute(named).fetchall()]
    raise PolicyError(f"table {name!r}: {path!r} cannot be opened as a SQLite file, or another program holds it.")


def read_sqlite(
    path: str,
    inner: str,
    schema: pa.Schema,
    kinds: Mapping[str, Kind | None],
    now: Callable[[], Mapping[str, Kind | None]],
) -> pa.Table:
    """The rows of a table, of the schema that was promised, as they are in one transaction. kinds: of its columns when
    the schema was made. now: looks at them again. Of a column that is gone SQLite takes the quoted name for a text: all
    rows would be one unit's.

    Raises OSError where the file is being written, or its columns have changed.
    """
    if now() != kinds:
        raise OSError("the columns of a SQLite table have changed")
    fits = [_FITS.get(kinds[column], lambda _: None) for column in schema.names]
    columns = [f"{quoted(inner)}.{quoted(column)}" for column in schema.names]  # never a text
    tables = [schema.empty_table()]
    with _opened(path) as con:
        wide = _WIDE.get(con.execute("PRAGMA encoding").fetchone()[0])
        if wide is not None:
            columns, fits = [_STORED.format(column) for column in columns], [_of_wide(fit, wide) for fit in fits]
        cursor = con.execute(f"SELECT {', '.join(columns)} FROM {quoted(inner)}")
        while rows := cursor.fetchmany(_MANY):
            tables.append(rows_as_table(rows, schema, fits))
    if _writing(path):
        raise OSError("the file is being written")
    return pa.concat_tables(tables)


def sqlite_values(path: str, inner: str, columns: Sequence[str]) -> dict[str, int]:
    """How many rows of a table have anything in each column, of whatever type."""
    counts = ", ".join(f"COUNT({quoted(column)})" for column in columns)
    with _opened(path) as con:
        return dict(zip(columns, con.execute(f"SELECT {counts} FROM {quoted(inner)}").fetchone(), strict=True))


def _writing(path: str) -> bool:
    """Whether rows stand in a log beside the file: which of them are read would depend on who has it open."""
    with contextlib.suppress(OSError):
        return os.path.getsize(f"{path}-wal") > 0
    return False


@contextlib.contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(f"file:{percent(path)}?mode=ro", uri=True)) as con:
        con.text_factory = _text
        con.execute("PRAGMA trusted_schema = OFF")
        con.execute("BEGIN")
        yield con


def _text(value: bytes) -> str | None:
    with contextlib.suppress(UnicodeDecodeError):
        return value.decode("utf-8")
    return None


def _of_wide(fit: Callable[[Any], Any], encoding: str) -> Callable[[Any], Any]:
    """What becomes of a value where the bytes of a text stand for it; raises where these are not in the encoding."""
    return lambda value: fit(value.decode(encoding) if isinstance(value, bytes) else value)


def _affinity(declared: str) -> Kind | None:
    """The kind of a declared type. `BOOLEAN` and the types of times are those of SQL, of which SQLite knows nothing."""
    word = (declared or "").upper()
    for part, kind in _AFFINITIES.items():
        if part in word:
            return kind
    return None


_AFFINITIES: Mapping[str, Kind] = {
    "BOOL": Kind.BOOLEAN,
    "DATETIME": Kind.TIMESTAMP,
    "TIMESTAMP": Kind.TIMESTAMP,
    "DATE": Kind.DATE,
    "INT": Kind.INTEGER,
    "CHAR": Kind.TEXT,
    "CLOB": Kind.TEXT,
    "TEXT": Kind.TEXT,
    "REAL": Kind.NUMBER,
    "FLOA": Kind.NUMBER,
    "DOUB": Kind.NUMBER,
    "NUMERIC": Kind.NUMBER,
    "DECIMAL": Kind.NUMBER,
}


def _whole_or_text(value: Any) -> str | None:
    """A text; a whole number as it is written, since a column without a type keeps the one that was given."""
    return str(value) if isinstance(value, str) or type(value) is int else None


def _day(value: Any) -> dt.date | None:
    return dt.date.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None


def _moment(value: Any) -> dt.datetime | None:
    if not isinstance(value, str):
        return None
    moment: dt.datetime | None = OBJECTS[Kind.TIMESTAMP][1](dt.datetime.fromisoformat(value))
    return moment


_FITS: Mapping[Kind | None, Any] = {
    Kind.INTEGER: OBJECTS[Kind.INTEGER][1],
    Kind.NUMBER: OBJECTS[Kind.NUMBER][1],
    Kind.TEXT: _whole_or_text,
    Kind.BOOLEAN: lambda value: bool(value) if type(value) is int and value in (0, 1) else None,
    Kind.DATE: _day,
    Kind.TIMESTAMP: _moment,
}
