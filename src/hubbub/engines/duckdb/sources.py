"""Declared sources: which file, which frame; their columns without their rows, and their rows without surprises.

Columns are told from metadata alone (a header line, a Parquet footer, dtypes). Rows are read when a question runs, and
reading is total: a value that does not fit its column's type is NULL, a text that is not UTF-8 is NULL, and a row of
one person never changes how another person's row is read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from hubbub.addresses import looks_like_connection, masked
from hubbub.engines.duckdb.arrow_columns import UNUSABLE, safe_schema, safe_table, with_zone
from hubbub.engines.duckdb.csv_files import csv_header, read_csv
from hubbub.engines.duckdb.fitted import OBJECTS
from hubbub.engines.duckdb.pandas_columns import of_objects, pandas_type, read_pandas
from hubbub.engines.duckdb.sheets import read_sheet, sheet_columns
from hubbub.engines.duckdb.sqlite_file import read_sqlite, sqlite_columns
from hubbub.errors import PolicyError
from hubbub.file_formats import FILES, Csv, files_of, kind_of_file, several_files
from hubbub.remedies import CorrectName, DeclareOption, DeclareType, DeclareWithout
from hubbub.spelling import meant_by
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.kinds import Kind
from hubbub.tables.remote import is_remote

__all__ = [
    "READINGS",
    "CsvFile",
    "DuckDBFile",
    "Frame",
    "Held",
    "ParquetFile",
    "Sheet",
    "Source",
    "SqliteFile",
    "has_objects",
    "hold",
    "overwritten",
    "source_of",
    "stamp_of",
    "stats_of",
]


@dataclass(frozen=True)
class ParquetFile:
    """One file, or several of the same columns: a folder, or a pattern."""

    path: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class CsvFile:
    path: str
    how: Csv = field(default_factory=Csv)


@dataclass(frozen=True)
class DuckDBFile:
    path: str
    table: str


@dataclass(frozen=True)
class SqliteFile:
    path: str
    table: str


@dataclass(frozen=True)
class Sheet:
    path: str
    table: str | None


@dataclass(frozen=True)
class Frame:
    frame: Any

    def __repr__(self) -> str:
        return f"a {type(self.frame).__name__}"


Source = ParquetFile | CsvFile | DuckDBFile | SqliteFile | Sheet | Frame

READINGS = 3
"""How often a file is read, or a question, where files are written anew meanwhile."""


def source_of(name: str, table: PrivateTable | PublicTable) -> Source:
    """What a declared table's source is.

    Raises PolicyError for a file that is missing or of an unknown type, and for a source that is elsewhere.
    """
    if is_remote(table.source):
        raise PolicyError(f"table {name!r}: {table.source} holds private tables alone; write public rows to a file.")
    if not isinstance(table.source, str):
        return Frame(table.source)
    path = Path(table.source)
    if several_files(path) and not looks_like_connection(table.source):
        files = tuple(files_of(path))
        if not files:
            raise PolicyError(f"table {name!r}: no file of {masked(str(path))!r} ends in .parquet.")
        return ParquetFile(str(path), files)
    if not os.path.exists(path):  # False, too, for a name that no file can have
        if looks_like_connection(table.source):
            raise PolicyError(
                f"table {name!r}: its source looks like an address or settings of a connection that hubbub does not "
                "read, and is not shown. Write postgresql://user@host/database, env:NAME, spark:TABLE, or a file. "
                "Nothing was charged."
            )
        raise PolicyError(f"table {name!r}: there is no file {masked(str(path))!r}.")
    kind = kind_of_file(path)
    if table.csv is not None and kind not in (None, "csv"):
        plain = DeclareWithout("csv", table=name)
        raise PolicyError(
            f"table {name!r}: csv= says how a CSV is written, and {path.name!r} is not one: declare it "
            f"{plain.in_python()}.",
            remedy=plain,
        )
    match kind or (table.csv and "csv"):
        case "parquet":
            return ParquetFile(str(path.resolve()), (str(path.resolve()),))
        case "csv":
            return CsvFile(str(path.resolve()), table.csv or Csv())
        case "sheet":
            return Sheet(str(path.resolve()), table.inner_table)
        case "duckdb" | "sqlite":
            if not table.inner_table:
                way = DeclareOption("table", tables=(name,))
                raise PolicyError(
                    f"table {name!r}: which table of {str(path)!r}? Declare {way.in_python()}.", remedy=way
                )
            of_kind = DuckDBFile if kind == "duckdb" else SqliteFile
            return of_kind(str(path.resolve()), table.inner_table)
    raise PolicyError(f"table {name!r}: {path.name!r} is not a known file type; expected {FILES}.")


@dataclass
class Held:
    """Rows that the program holds or parses itself: known by their schema, read when first asked for.

    They are read again when `stamp` says that their file has changed, and once more when it changes while it is read:
    half of one file and half of another is nobody's rows. `unchanged` says whether its columns are still those of the
    schema. zoned: the columns whose own type is of times with a zone; here they are in UTC.
    """

    schema: pa.Schema
    load: Callable[[], pa.Table]
    stamp: Callable[[], object] = lambda: None
    unchanged: Callable[[], bool] = lambda: True
    zoned: frozenset[str] = frozenset()
    _table: pa.Table | None = None
    _read_at: object = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def empty(self) -> pa.Table:
        """The table without rows."""
        return self.schema.empty_table()

    def table(self) -> pa.Table:
        """The table, of the schema that was promised.

        Raises PolicyError for a file whose columns have changed, or that changes at each reading.
        """
        with self._lock:
            for _ in range(READINGS):
                now = self.stamp()
                if self._table is not None and now == self._read_at:
                    return self._table
                self._table = None
                table = self.load()
                if self.stamp() == now:
                    self._table, self._read_at = table, now
                    return table
            raise PolicyError("a file was written anew while it was read")


def hold(
    name: str, source: CsvFile | SqliteFile | Sheet | Frame, types: Mapping[str, Kind], *, trusted: bool = False
) -> Held:
    """A file that this process reads, or a frame, held by its schema; no row is read here, but of a spreadsheet, which
    cannot be read in part. trusted: whether a view may stand for a base table.

    Raises PolicyError for a source that has no usable schema.
    """
    if isinstance(source, CsvFile):
        how = source.how
        header = csv_header(name, source.path, how)
        _check_formats(name, how, header, types)
        schema = pa.schema([(column, pa.string()) for column in header])
        return Held(
            schema,
            lambda: read_csv(source.path, header, how, types),
            lambda: stamp_of(source.path),
            lambda: csv_header(name, source.path, how) == header,
        )
    if isinstance(source, SqliteFile):
        return _hold_sqlite(name, source, types, trusted=trusted)
    if isinstance(source, Sheet):
        return _hold_sheet(name, source, types)
    pandas = _of_pandas(source.frame)
    return _hold_stream(name, source.frame) if pandas is None else _hold_pandas(name, pandas, types)


def _of_pandas(frame: Any) -> Any:
    """A data frame of pandas, of its own class and with columns that stay in their places, whatever becomes of the
    program's; None for any other frame. A subclass, as GeoPandas has one, is one of its rows' columns as well: what it
    makes of itself for Arrow follows from all of its objects together.
    """
    made = (c for c in type(frame).__mro__ if (c.__module__.split(".")[0], c.__name__) == ("pandas", "DataFrame"))
    plain = next(made, None)
    return None if plain is None else plain(frame).copy(deep=False)


def _hold_pandas(name: str, frame: Any, types: Mapping[str, Kind]) -> Held:
    labels = [str(label) for label in frame.columns]
    _check_labels(name, frame, labels)
    places = list(enumerate(labels))
    schema = pa.schema([(label, pandas_type(frame.iloc[:0, i], types.get(label))) for i, label in places])
    safe = safe_schema(schema)
    return Held(safe, lambda: safe_table(read_pandas(frame, schema), safe), zoned=with_zone(schema))


def _hold_stream(name: str, frame: Any) -> Held:
    """A frame that hands out streams of Arrow. Each reading is of a stream of its own: one that ended half way has no
    rows any more.
    """
    problem, begun = None, list[Any]()
    if isinstance(frame, pa.RecordBatchReader):
        problem = "it can be read once; read it into a table first (`reader.read_all()`)"
    elif isinstance(frame, pa.ChunkedArray) or any(c.__name__ == "Series" for c in type(frame).__mro__):
        problem = "it is a column; make a frame of it"  # of structs it is read like a frame, but for a row that is NULL
    elif not _MADE.isdisjoint(_makers(frame)):
        problem = (
            "another library makes its rows, and their types, anew each time; hand over the rows as Arrow or polars"
        )
    else:
        try:
            begun.append(frame if isinstance(frame, pa.Table) else pa.RecordBatchReader.from_stream(frame))
        except Exception:  # a frame is somebody else's code, and its words may hold rows
            problem = "it cannot be read as Arrow"
    if problem:
        raise PolicyError(f"table {name!r}: the frame ({type(frame).__name__}) cannot be used: {problem}.")
    schema = begun[0].schema
    _check_labels(name, frame, schema.names)
    odd = _objects_of_polars(frame)
    usable = pa.schema([(f.name, UNUSABLE) if f.name in odd else f for f in schema])
    safe = safe_schema(usable)

    def load() -> pa.Table:
        if isinstance(frame, pa.Table):
            return safe_table(frame, safe)
        rows = (begun.pop() if begun else pa.RecordBatchReader.from_stream(frame)).read_all()
        if rows.schema != schema:
            raise OSError("the columns of a frame have changed")
        return safe_table(rows, safe)

    return Held(safe, load, zoned=with_zone(usable))


_MADE: Final = frozenset(("duckdb", "_duckdb", "narwhals", "ibis", "datafusion"))
"""Whose frames are questions to something else: one row may decide of what type all others are."""


def _makers(frame: Any) -> frozenset[str]:
    """The packages of a frame's class and of those that it is made of: a subclass is what they are."""
    return frozenset(c.__module__.split(".")[0] for c in type(frame).__mro__)


def _objects_of_polars(frame: Any) -> frozenset[str]:
    """The columns of a frame of polars that are objects of Python: it hands out where they stand in memory, so that
    each row would be a unit of its own.
    """
    if "polars" not in _makers(frame):
        return frozenset()
    return frozenset(n for n, kind in zip(frame.columns, frame.dtypes, strict=True) if str(kind) == "Object")


def _check_labels(name: str, frame: Any, labels: list[str]) -> None:
    """Raises PolicyError for a frame whose columns cannot be told apart by their names, or that has none."""
    problem = None
    if len(set(labels)) < len(labels):
        problem = "two of its columns have the same name; rename one"
    elif not labels:
        problem = "it has no columns"
    if problem:
        raise PolicyError(f"table {name!r}: the frame ({type(frame).__name__}) cannot be used: {problem}.")


def _hold_sqlite(name: str, source: SqliteFile, types: Mapping[str, Kind], *, trusted: bool) -> Held:
    path, inner = source.path, source.table
    columns = partial(sqlite_columns, name, path, inner, types, trusted=trusted)
    kinds = columns()
    schema = pa.schema([(column, OBJECTS[kind][0] if kind else UNUSABLE) for column, kind in kinds.items()])
    return Held(
        schema, lambda: read_sqlite(path, inner, schema, kinds, columns), lambda: stamp_of(path),
        lambda: columns() == kinds,
    )  # fmt: skip


def _hold_sheet(name: str, source: Sheet, types: Mapping[str, Kind]) -> Held:
    path, inner = source.path, source.table
    header = sheet_columns(name, path, inner)
    schema = pa.schema([(column, OBJECTS[types.get(column, Kind.TEXT)][0]) for column in header])
    return Held(
        schema,
        lambda: read_sheet(path, inner, schema, types),
        lambda: stamp_of(path),
        lambda: sheet_columns(name, path, inner) == header,
    )


def _check_formats(name: str, how: Csv, header: list[str], types: Mapping[str, Kind]) -> None:
    """Raises PolicyError for the format of a column that is not there, or holds no dates."""
    for column in how.formats:
        if column not in header:
            near = meant_by(column, [known for known in header if known not in how.formats])
            raise PolicyError(
                f"table {name!r}: csv has a format for {column!r}; the columns are {', '.join(map(repr, header))}.",
                remedy=() if near is None else CorrectName(near, column, name),
            )
        if types and types.get(column) not in (Kind.DATE, Kind.TIMESTAMP):
            ways = [DeclareType(column, kind, table=name) for kind in ("date", "timestamp")]
            raise PolicyError(
                f"table {name!r}: csv has a format for {column!r}, which is not declared as a date or a timestamp. "
                f"Add {' or '.join(way.in_python() for way in ways)}.",
                remedy=ways,
            )


def stamp_of(path: str) -> tuple[int, ...]:
    """What changes when a file is written or replaced, though its size and time be set to what they were; or when one
    of several files is, or comes, or goes.
    """
    files = stats_of(path)
    if not files:
        raise FileNotFoundError(path)
    return tuple(n for f in files for n in (f.st_dev, f.st_ino, f.st_size, f.st_mtime_ns, f.st_ctime_ns))


def overwritten(path: str, then: tuple[int, ...]) -> bool:
    """Whether a file was written in its place since its stamp was `then`; one that was replaced is open as it was."""
    try:
        now = stamp_of(path)
    except OSError:  # one that is gone is open as it was, too
        return False
    return now[:2] == then[:2] and now != then


def stats_of(path: str) -> list[os.stat_result]:
    """What the system says of each file that a path names; of a DuckDB file's log, too, in which rows stand that a
    program left there when it died.
    """
    files = files_of(path)
    logs = [f"{file}.wal" for file in files if kind_of_file(file) == "duckdb"]
    return [os.stat(file) for file in (*files, *filter(os.path.exists, logs))]


def has_objects(source: Frame, column: str) -> bool:
    """Whether a column of a frame is of objects, each of a type of its own."""
    frame = _of_pandas(source.frame)
    if frame is None:
        return False
    return any(str(label) == column and of_objects(frame.iloc[:0, i]) for i, label in enumerate(frame.columns))
