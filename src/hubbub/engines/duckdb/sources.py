"""Declared sources: which file, which frame; their columns without their rows, and their rows without surprises.

Columns are told from metadata alone (a header line, a Parquet footer, dtypes). Rows are read when a question runs, and
reading is total: a value that does not fit its column's type is NULL, a text that is not UTF-8 is NULL, and a row of
one person never changes how another person's row is read.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hubbub.addresses import looks_like_connection, masked
from hubbub.engines.duckdb.csv_files import csv_header, read_csv
from hubbub.engines.duckdb.fitted import OBJECTS, fitted
from hubbub.engines.duckdb.sheets import read_sheet, sheet_columns
from hubbub.engines.duckdb.sqlite_file import read_sqlite, sqlite_columns
from hubbub.engines.duckdb.utf8 import as_utf8, utf8_texts
from hubbub.errors import PolicyError
from hubbub.file_formats import FILES, Csv, files_of, kind_of_file, several_files
from hubbub.late import late
from hubbub.plain import quick
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
    "safe_table",
    "source_of",
    "stamp_of",
    "stats_of",
]

pc = late("pyarrow.compute")


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
_DAY = 86_400_000  # milliseconds
UNUSABLE = pa.list_(pa.null())
"""The type of a column that no question can use."""


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
    frame = source.frame
    if type(frame).__module__.split(".")[0] == "pandas":
        frame = frame.copy(deep=False)  # its columns stay in their places, whatever becomes of the program's own frame
        labels = [str(label) for label in frame.columns]
        if len(set(labels)) < len(labels):
            raise PolicyError(f"table {name!r}: two columns of the frame have the same name; rename one.")
        places = list(enumerate(labels))
        schema = pa.schema([(label, _pandas_type(frame.iloc[:0, i], types.get(label))) for i, label in places])
        safe = _safe_schema(schema)
        return Held(safe, lambda: safe_table(_read_pandas(frame, schema), safe), zoned=_with_zone(schema))
    problem = None
    try:
        reader = frame if isinstance(frame, pa.Table) else pa.RecordBatchReader.from_stream(frame)
        schema = reader.schema
        if len(set(schema.names)) < len(schema.names):
            problem = "two of its columns have the same name; rename one"
    except Exception:  # a frame is somebody else's code, and its words may hold rows
        problem = "it cannot be read as Arrow"
    if problem:
        raise PolicyError(f"table {name!r}: the frame ({type(frame).__name__}) cannot be used: {problem}.")
    safe = _safe_schema(schema)
    return Held(
        safe,
        lambda: safe_table(reader if isinstance(reader, pa.Table) else reader.read_all(), safe),
        zoned=_with_zone(schema),
    )


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


def stats_of(path: str) -> list[os.stat_result]:
    """What the system says of each file that a path names; of a DuckDB file's log, too, in which rows stand that a
    program left there when it died.
    """
    files = files_of(path)
    logs = [f"{file}.wal" for file in files if kind_of_file(file) == "duckdb"]
    return [os.stat(file) for file in (*files, *filter(os.path.exists, logs))]


def _pandas_type(column: Any, declared: Kind | None) -> pa.DataType:
    """The Arrow type of a pandas column, from its dtype and the declaration; `column` has no rows."""
    dtype = str(column.dtype)
    if dtype == "object":
        return OBJECTS.get(declared, (UNUSABLE, None))[0] if declared else UNUSABLE
    if _made_float(dtype) and declared is Kind.INTEGER:
        return pa.int64()
    try:
        if dtype == "category":
            dtype = str(column.cat.categories.dtype)
            texts = dtype in ("object", "str") or dtype.startswith("string")
            return pa.string() if texts else pa.array(column.cat.categories[:0], from_pandas=True).type
        return pa.array(column, from_pandas=True).type
    except (pa.ArrowException, TypeError, ValueError):  # values of several kinds, or of one that Arrow does not have
        return UNUSABLE


def _read_pandas(frame: Any, schema: pa.Schema) -> pa.Table:
    return pa.table([_read_series(frame.iloc[:, i], kind) for i, kind in enumerate(schema.types)], names=schema.names)


def _read_series(series: Any, wanted: pa.DataType) -> Any:
    """A pandas column as one of an Arrow type. Of categories each is read once, as a column of them would be: pyarrow
    makes objects of those that are moments, and one that has none is NULL, or an error, for all rows.
    """
    if wanted == UNUSABLE:
        return pa.nulls(len(series), UNUSABLE)
    if _made_float(str(series.dtype)) and wanted == pa.int64():
        return _whole(series)
    if str(series.dtype) == "category" and not _of_objects(series):
        known = _read_series(series.cat.categories.to_series(), wanted)
        return pa.chunked_array(_in_parts(pa.array(series.cat.codes.to_numpy()), _listed(known), wanted), wanted)
    if not _of_objects(series) and (quick("pandas") or all(kind != wanted for kind, _ in OBJECTS.values())):
        with contextlib.suppress(Exception):
            return pa.array(series, wanted, from_pandas=True)
    fit = next((fit for kind, fit in OBJECTS.values() if kind == wanted), lambda _: None)
    return pa.array(_each_fitted(series, fit), wanted)


_PART = 2**30  # bytes


def _in_parts(places: Any, values: Any, wanted: pa.DataType) -> list[Any]:
    """The values at places, of a type, in parts that are within the 2 GiB that a plain column of texts holds."""
    rows = _standing_at(places, values)
    if rows.nbytes <= _PART or len(rows) < 2:
        return [rows.cast(wanted)]
    half = len(places) // 2
    return [*_in_parts(places[:half], values, wanted), *_in_parts(places[half:], values, wanted)]


def has_objects(source: Frame, column: str) -> bool:
    """Whether a column of a frame is of objects, each of a type of its own."""
    frame = source.frame
    if type(frame).__module__.split(".")[0] != "pandas":
        return False
    return any(str(label) == column and _of_objects(frame.iloc[:0, i]) for i, label in enumerate(frame.columns))


def _of_objects(series: Any) -> bool:
    """Whether a column is of objects, or of categories that are: these are somebody else's code. pyarrow takes some of
    them, such as bytes, in a column where it takes all, and none where one person's is another.
    """
    dtype = series.cat.categories.dtype if str(series.dtype) == "category" else series.dtype
    return str(dtype) == "object"


def _each_fitted(series: Any, fit: Callable[[Any], Any]) -> list[Any]:
    """What becomes of each value; of categories, of each of these once."""
    if str(series.dtype) != "category":
        return [fitted(value, fit) for value in series.tolist()]
    known = [*(fitted(value, fit) for value in series.cat.categories.tolist()), None]
    return [known[code] for code in series.cat.codes.tolist()]  # -1 for what is missing


def _made_float(dtype: str) -> bool:
    """Whether pandas may have made a column of whole numbers one of this dtype, for a value that is missing."""
    return dtype in ("float16", "float32", "float64")


def _whole(series: Any) -> pa.Array:
    """Floats as whole numbers, NULL where one is none, or so large that it may stand for several (2^53 and beyond).

    Value by value: Arrow's own cast fails for the whole column at the first fraction.
    """
    floats = series.to_numpy(dtype="float64")
    near = abs(floats) < 2.0**53  # False for NaN
    kept = floats.copy()
    kept[~near] = 0.0
    steps = kept.astype("int64")
    return pa.array(steps, pa.int64(), mask=~(near & (steps == floats)))


def _safe_schema(schema: pa.Schema) -> pa.Schema:
    """The types that `safe_table` gives; decided by the types alone."""
    return pa.schema([(field.name, _type_after(_safe_column, field, UNUSABLE)) for field in schema])


def _with_zone(schema: pa.Schema) -> frozenset[str]:
    """The columns of times with a zone, by the types alone."""
    kinds = [(field.name, _type_after(_unwrapped, field, field.type)) for field in schema]
    return frozenset(n for n, kind in kinds if pa.types.is_timestamp(kind) and kind.tz is not None)


def _type_after(
    change: Callable[[pa.ChunkedArray], pa.ChunkedArray], field: pa.Field, otherwise: pa.DataType
) -> pa.DataType:
    """The type of a column once it is changed; otherwise: where that cannot be, whatever the values."""
    try:
        return change(pa.schema([field]).empty_table().column(0)).type
    except pa.ArrowNotImplementedError:
        return otherwise


def safe_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table on whose values no engine fails: texts are UTF-8 or NULL, times are in UTC, and nothing is left of types
    that DuckDB does not take. schema: what `_safe_schema` gives for the table's.
    """
    columns = [
        pa.nulls(len(column), UNUSABLE) if kind == UNUSABLE else _safe_column(column)
        for column, kind in zip(table.columns, schema.types, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _safe_column(column: Any) -> Any:
    column = _unwrapped(column)
    kind = column.type
    if not _taken(kind):
        return pa.nulls(len(column), UNUSABLE)
    if pa.types.is_timestamp(kind):
        # The instants as they are, in UTC; which of them a question can use, the engine's expression decides.
        return column.cast(pa.timestamp(kind.unit))
    if pa.types.is_date64(kind):
        return _days(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return utf8_texts(column)
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal(kind):
        return _within_digits(column)
    return column


def _within_digits(column: Any) -> Any:
    """Decimals, NULL where one has more digits than its type: a frame may hold it, and nobody has checked. DuckDB cuts
    it to its own width, where two people would be one, or ends a question with an error.
    """
    with contextlib.suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return column
    kind, stored = column.type, column
    ends: list[Any] = [Decimal((sign, (9,) * kind.precision, -kind.scale)) for sign in (1, 0)]
    if kind.bit_width < 128:  # as the whole numbers that they are: Arrow compares none of these widths
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        stored = pa.chunked_array([chunk.view(whole) for chunk in column.chunks], whole)
        ends = [1 - 10**kind.precision, 10**kind.precision - 1]
    least, most = (pa.scalar(end, stored.type) for end in ends)
    fits = pc.and_(pc.greater_equal(stored, least), pc.less_equal(stored, most))
    kept = pc.if_else(fits, stored, pa.scalar(None, stored.type))
    return pa.chunked_array([chunk.view(kind) for chunk in kept.chunks], kind)


def _days(column: Any) -> Any:
    """Days of milliseconds, each of which is one of 32 bits or NULL: DuckDB cuts what is beyond a day off, and what is
    beyond 32 bits, and two people would be one.
    """
    stored = column.cast(pa.int64())
    days = pc.divide(stored, _DAY)
    least, most = -(2**31), 2**31 - 1
    within = pc.and_(pc.greater_equal(days, least), pc.less_equal(days, most))
    fits = pc.and_(within, pc.equal(pc.multiply(pc.if_else(within, days, 0), _DAY), stored))
    return pc.if_else(fits, days, pa.scalar(None, pa.int64())).cast(pa.int32()).cast(pa.date32())


def _unwrapped(column: Any) -> Any:
    """The values of a column, however they are coded: dictionaries (pandas and polars categories), runs, extensions."""
    while True:
        kind = column.type
        if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.UuidType | pa.Bool8Type):
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        elif pa.types.is_run_end_encoded(kind):
            column = pa.chunked_array(
                [_runs(chunk) for chunk in column.chunks], _listed(_none_of(kind.value_type)).type
            )
        elif pa.types.is_dictionary(kind):
            chunks = [_standing_at(chunk.indices, _listed(chunk.dictionary)) for chunk in column.chunks]
            column = pa.chunked_array(chunks, _listed(_none_of(kind.value_type)).type)
        else:
            return column


def _standing_at(places: Any, values: Any) -> Any:
    """The values at places, NULL at one that is none: of a frame nobody has checked them."""
    with contextlib.suppress(pa.ArrowIndexError):
        return values.take(places)
    whole = places.cast(pa.int64(), safe=False)  # below 0 where 64 bits do not hold it
    known = pc.and_(pc.greater_equal(whole, 0), pc.less(whole, len(values)))
    return values.take(pc.if_else(known, whole, pa.scalar(None, pa.int64())))


def _runs(chunk: Any) -> Any:
    """The values of runs, each as often as it stands there.

    pyarrow's own decoding writes beyond what it has of short places, and fails for all rows at one value that is not
    of its type, as no dictionary does.
    """
    rows = np.arange(chunk.offset, chunk.offset + len(chunk))
    runs = np.searchsorted(chunk.run_ends.to_numpy(), rows, side="right")
    return _standing_at(pa.array(runs), _listed(chunk.values))


def _none_of(kind: pa.DataType) -> Any:
    return pa.schema([("x", kind)]).empty_table().column(0).combine_chunks()


def _listed(values: Any) -> Any:
    """The values of a dictionary, out of views: polars has them, and Arrow takes nothing from them.

    Written out, a few long texts may be beyond the 2 GiB that a plain column of texts or bytes holds.
    """
    if pa.types.is_string(values.type):
        values = values.cast(pa.large_string())
    elif pa.types.is_binary(values.type):
        values = values.cast(pa.large_binary())
    elif pa.types.is_string_view(values.type):
        values = as_utf8(values.cast(pa.binary_view()).cast(pa.large_binary()))
    elif pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _taken(kind: pa.DataType) -> bool:
    """Whether DuckDB takes the type; a column of texts, numbers or moments."""
    plain = pa.types.is_primitive(kind) or pa.types.is_null(kind) or pa.types.is_boolean(kind)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    blobs = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    if isinstance(kind, pa.UuidType | pa.Bool8Type) or any(test(kind) for test in (*texts, *blobs)):
        return True
    if pa.types.is_decimal(kind):
        return not pa.types.is_decimal256(kind) and 0 <= kind.scale <= kind.precision
    return plain and not pa.types.is_interval(kind)
