"""Declared sources: which file, which frame; their columns without their rows, and their rows without surprises.

Columns are told from metadata alone (a header line, a Parquet footer, dtypes). Rows are read when a question runs, and
reading is total: a value that does not fit its column's type is NULL, a text that is not UTF-8 is NULL, and a row of
one person never changes how another person's row is read.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from hubbub.addresses import looks_like_connection, masked
from hubbub.errors import PolicyError
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.kinds import Kind
from hubbub.tables.remote import PostgresAddress, SparkFrame, SparkName

__all__ = [
    "CsvFile",
    "DuckDBFile",
    "Frame",
    "Held",
    "ParquetFile",
    "csv_header",
    "hold",
    "not_trusted",
    "safe_table",
    "source_of",
]


@dataclass(frozen=True)
class ParquetFile:
    path: str


@dataclass(frozen=True)
class CsvFile:
    path: str


@dataclass(frozen=True)
class DuckDBFile:
    path: str
    table: str


@dataclass(frozen=True)
class Frame:
    frame: Any

    def __repr__(self) -> str:
        return f"a {type(self.frame).__name__}"


Source = ParquetFile | CsvFile | DuckDBFile | Frame

UNUSABLE = pa.list_(pa.null())
"""The type of a column that no question can use."""

# What conversions of single values raise; anything else is a defect and becomes an incident of the engine.
_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeError, NotImplementedError, AttributeError)


def source_of(name: str, table: PrivateTable | PublicTable) -> Source:
    """What a declared table's source is.

    Raises PolicyError for a file that is missing or of an unknown type, and for a source that is elsewhere.
    """
    if isinstance(table.source, PostgresAddress | SparkName | SparkFrame):
        raise PolicyError(f"table {name!r}: {table.source} holds private tables alone; write public rows to a file.")
    if not isinstance(table.source, str):
        return Frame(table.source)
    path = Path(table.source)
    if not os.path.exists(path):  # False, too, for a name that no file can have
        if looks_like_connection(table.source):
            raise PolicyError(
                f"table {name!r}: its source looks like an address or settings of a connection that hubbub does not "
                "read, and is not shown. Write postgresql://user@host/database, env:NAME, spark:TABLE, or a file. "
                "Nothing was charged."
            )
        raise PolicyError(f"table {name!r}: there is no file {masked(str(path))!r}.")
    if path.is_dir():
        raise PolicyError(f"table {name!r}: {str(path)!r} is a folder; name one .parquet, .csv or .duckdb file.")
    match path.suffix.lower():
        case ".parquet" | ".pq":
            return ParquetFile(str(path.resolve()))
        case ".csv":
            return CsvFile(str(path.resolve()))
        case ".duckdb" | ".ddb" | ".db":
            if not table.inner_table:
                raise PolicyError(f"table {name!r}: which table of {str(path)!r}? Declare table='...'.")
            return DuckDBFile(str(path.resolve()), table.inner_table)
    raise PolicyError(
        f"table {name!r}: {path.name!r} is no file type that is known; expected .parquet, .csv or .duckdb."
    )


def not_trusted(name: str, inner: str, what: str) -> PolicyError:
    """The refusal of a source that is no base table. what: such as "is a view"."""
    return PolicyError(
        f"table {name!r}: {inner!r} {what}, which can mix rows of several people. Name a base table; or, where each "
        "row belongs to one unit and depends on nobody else's rows, declare trusted_view = true."
    )


@dataclass
class Held:
    """Rows that the program holds or parses itself: known by their schema, read when first asked for.

    They are read again when `stamp` says that their file has changed; `unchanged` says whether its columns are still
    those of the schema.
    """

    schema: pa.Schema
    load: Callable[[], pa.Table]
    stamp: Callable[[], object] = lambda: None
    unchanged: Callable[[], bool] = lambda: True
    _table: pa.Table | None = None
    _read_at: object = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def empty(self) -> pa.Table:
        """The table without rows."""
        return self.schema.empty_table()

    def table(self) -> pa.Table:
        """The table, of the schema that was promised."""
        with self._lock:
            now = self.stamp()
            if self._table is None or now != self._read_at:
                self._table, self._read_at = self.load(), now
            return self._table


def hold(name: str, source: CsvFile | Frame, types: Mapping[str, Kind]) -> Held:
    """A CSV file or a frame, held by its schema; no row is read here.

    Raises PolicyError for a source that has no usable schema.
    """
    if isinstance(source, CsvFile):
        header = csv_header(name, source.path)
        schema = pa.schema([(column, pa.string()) for column in header])
        return Held(
            schema,
            lambda: _read_csv(source.path, header),
            lambda: _stamp(source.path),
            lambda: csv_header(name, source.path) == header,
        )
    frame = source.frame
    if type(frame).__module__.split(".")[0] == "pandas":
        labels = [str(label) for label in frame.columns]
        if len(set(labels)) < len(labels):
            raise PolicyError(f"table {name!r}: two columns of the frame have the same name; rename one.")
        places = list(enumerate(labels))
        schema = pa.schema([(label, _pandas_type(frame.iloc[:0, i], types.get(label))) for i, label in places])
        return Held(_safe_schema(schema), lambda: safe_table(_read_pandas(frame, schema)))
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
    return Held(_safe_schema(schema), lambda: safe_table(reader if isinstance(reader, pa.Table) else reader.read_all()))


def _stamp(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns


def csv_header(name: str, path: str) -> list[str]:
    """The column names in the first line of a CSV.

    Raises PolicyError for a file without a usable header.
    """
    problem = None
    try:
        # As bytes: decoding a buffer of text would look at rows, and fail on them.
        with open(path, "rb") as file:
            line = file.readline(1 << 20).decode("utf-8-sig")
        header = next(csv.reader([line], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        problem = "the first line of the CSV is not a UTF-8 header"
    else:
        if not header or any(not column.strip() for column in header):
            problem = "the first line of the CSV must name every column"
        elif len({c.lower() for c in header}) < len(header):
            problem = "two columns of the CSV have the same name (case aside); rename one"
    if problem:
        raise PolicyError(f"table {name!r}: {problem}.")
    return header


_SLICE = 1 << 26


def _read_csv(path: str, header: list[str]) -> pa.Table:
    """The rows of a CSV, every field a text: one line is one row, whatever stands in the lines around it.

    By rule: fields are divided by commas and may stand in double quotes, a doubled quote inside them is one; a line
    break always ends a row; a line with another number of fields, or with a quote that is not closed, is left out; an
    empty field, or one that is not UTF-8, is NULL.
    """
    tables: list[pa.Table] = []
    with open(path, "rb") as file:
        file.readline(1 << 20)
        tables += [_parse(piece, header) for piece in _pieces(file)]
    return pa.concat_tables(tables) if tables else pa.schema([(c, pa.string()) for c in header]).empty_table()


def _pieces(file: Any) -> Iterator[bytes]:
    """The rest of a file in pieces of whole lines."""
    rest = b""
    while chunk := file.read(_SLICE):
        whole, end, rest_of_chunk = chunk.rpartition(b"\n")
        if end:
            yield rest + whole + end
            rest = rest_of_chunk
        else:
            rest += chunk
    if rest:
        yield rest


def _parse(piece: bytes, header: list[str]) -> pa.Table:
    """The rows of whole lines: those without quotes together, by Arrow; the others one by one."""
    plain, quoted = [], []
    for line in piece.split(b"\n"):
        bare = line.removesuffix(b"\r")
        if b'"' in bare:
            fields = _fields(bare)
            if fields is not None and len(fields) == len(header):
                quoted.append([_decoded(field) for field in fields])
        elif bare.count(b",") == len(header) - 1 and b"\r" not in bare and bare:
            plain.append(bare)
    columns = zip(*quoted, strict=True) if quoted else [[]] * len(header)
    one_by_one = pa.table([pa.array(column, pa.string()) for column in columns], names=header)
    return pa.concat_tables([_split(plain, header), one_by_one])


def _split(lines: list[bytes], header: list[str]) -> pa.Table:
    """Lines that have one field for each column and no quotes, as a table. Arrow divides them; it drops none.

    A line of our own stands first and is cut off again: Arrow would take a byte order mark off the first line it sees.
    """
    text = b"\n".join([b",".join([b"x"] * len(header)), *lines, b""])
    parsed = arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=header, block_size=len(text) + 1, use_threads=False),
        parse_options=arrow_csv.ParseOptions(
            delimiter=",", quote_char=False, double_quote=False, escape_char=False, newlines_in_values=False
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types={column: pa.binary() for column in header}, strings_can_be_null=True, null_values=[""]
        ),
    )
    return pa.table([_as_utf8(column.slice(1)) for column in parsed.columns], names=header)


def _fields(line: bytes) -> list[str] | None:
    """The fields of one line; None if its quotes do not pair up."""
    with contextlib.suppress(csv.Error):
        return next(csv.reader([line.decode("utf-8", "surrogateescape")], strict=True), None)
    return None


def _decoded(text: str) -> str | None:
    with contextlib.suppress(UnicodeEncodeError):
        text.encode("utf-8")
        return text or None
    return None


def _as_utf8(column: Any) -> Any:
    """Bytes as text; what is not UTF-8 is NULL."""
    with contextlib.suppress(pa.ArrowInvalid):
        return column.cast(pa.string())
    return pa.array([None if v is None else _decoded(v.decode("utf-8", "surrogateescape")) for v in column.to_pylist()])


def _pandas_type(column: Any, declared: Kind | None) -> pa.DataType:
    """The Arrow type of a pandas column, from its dtype and the declaration; `column` has no rows."""
    dtype = str(column.dtype)
    if dtype == "object":
        return _OBJECTS.get(declared, (UNUSABLE, None))[0] if declared else UNUSABLE
    try:
        if dtype == "category":
            dtype = str(column.cat.categories.dtype)
            texts = dtype in ("object", "str") or dtype.startswith("string")
            return pa.string() if texts else pa.array(column.cat.categories[:0], from_pandas=True).type
        return pa.array(column, from_pandas=True).type
    except _UNFIT:
        return UNUSABLE


def _read_pandas(frame: Any, schema: pa.Schema) -> pa.Table:
    columns = []
    for i, wanted in enumerate(schema.types):
        series = frame.iloc[:, i]
        if wanted == UNUSABLE:
            columns.append(pa.nulls(len(frame), UNUSABLE))
            continue
        if str(series.dtype) != "object":
            with contextlib.suppress(*_UNFIT):
                columns.append(pa.array(series, wanted, from_pandas=True))
                continue
        fit = next((fit for kind, fit in _OBJECTS.values() if kind == wanted), lambda _: None)
        columns.append(pa.array([fit(value) for value in series.tolist()], wanted))
    return pa.table(columns, names=schema.names)


def _fit_integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63 else None


def _fit_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _fit_text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    with contextlib.suppress(UnicodeEncodeError):
        value.encode()
        return str(value)
    return None


def _fit_date(value: Any) -> dt.date | None:
    return value if type(value) is dt.date else None


def _fit_moment(value: Any) -> dt.datetime | None:
    if not isinstance(value, dt.datetime):
        return None
    with contextlib.suppress(ValueError, OverflowError, TypeError, AttributeError):
        plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return dt.datetime(*plain.timetuple()[:6], plain.microsecond)
    return None


_OBJECTS: dict[Kind | None, tuple[pa.DataType, Callable[[Any], Any]]] = {
    Kind.INTEGER: (pa.int64(), _fit_integer),
    Kind.NUMBER: (pa.float64(), _fit_number),
    Kind.TEXT: (pa.string(), _fit_text),
    Kind.BOOLEAN: (pa.bool_(), lambda value: value if isinstance(value, bool) else None),
    Kind.DATE: (pa.date32(), _fit_date),
    Kind.TIMESTAMP: (pa.timestamp("us"), _fit_moment),
}
"""For a column of objects with a declared kind: its Arrow type, and what becomes of each object."""


def _safe_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(f.name, safe_table(pa.schema([f]).empty_table()).schema.types[0]) for f in schema])


def safe_table(table: pa.Table) -> pa.Table:
    """A table on whose values no engine fails: texts are UTF-8 or NULL, times are in UTC."""
    return pa.table([_safe_column(column) for column in table.columns], names=table.column_names)


def _safe_column(column: Any) -> Any:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.UuidType | pa.Bool8Type):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        kind = column.type
    if pa.types.is_run_end_encoded(kind):
        column, kind = pc.run_end_decode(column), kind.value_type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind):
        # The instants as they are, in UTC; which of them a question can use, the engine's expression decides.
        return column.cast(pa.timestamp(kind.unit))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return _as_utf8(column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()))
        return column
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal256(kind) or pa.types.is_union(kind):
        return pa.nulls(len(column), UNUSABLE)
    return column
