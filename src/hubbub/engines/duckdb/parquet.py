"""Parquet files: DuckDB reads them; a value on which it fails is NULL, and changes nothing about any other value.

DuckDB's reader stops at a text that is not UTF-8, a time beyond a day, or a moment of milliseconds that microseconds do
not hold: one person's value would turn an answer into an error. Where a question fails, it is asked again with exactly
the columns of those types (`Patient`) taken from Arrow's reading and joined by the row's number in the file; all other
columns still come from DuckDB. The engine sees that the file stayed as it was meanwhile: joined by number, the rows of
two files would give one person another's values. A column is therefore of one type in both readings, and its values,
hence the hash of a unit, are equal bit for bit:

- text: the same bytes; both call the same ones UTF-8;
- time of day: the stored number, from 0 to a day, else NULL;
- moment in milliseconds: a thousand times the stored number, NULL where 64 bits do not hold it; the two numbers that
  stand for infinity stand for it.

Where a footer says of a part of a column that it is all NULL, DuckDB makes it so and Arrow looks: there the patient
reading has NULL, too. A file whose footer names another number of rows than its parts have is refused: at it one of
the two readings would fail.

A decimal whose stored bytes may be more than its digits need can make DuckDB fail as well, and is not a type that the
two readers agree on where the digits are too many: such a column is refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from hubbub.engines.duckdb.dialect import DUCKDB, quote
from hubbub.engines.duckdb.parquet_footer import Leaf, Part, footer_of, parts_of
from hubbub.engines.duckdb.utf8 import as_utf8
from hubbub.engines.fields import CUT, usable
from hubbub.errors import PolicyError
from hubbub.late import late

__all__ = ["NUMBERS", "Patient", "by_name", "parquet_columns", "read_parquet"]

pc = late("pyarrow.compute")
pq = late("pyarrow.parquet")

_ROW = "file_row_number"
"""What DuckDB calls the number of a row in its file."""
_FILE = "file_of_row"
"""What we let it call the file's name."""
NUMBERS = (_FILE, _ROW)

INT96_FAILS = duckdb.__version__ != "2.0.0"
"""Whether DuckDB's reader fails at a moment of 96 bits that microseconds do not hold, which Arrow cannot tell. Such a
version is not installed with hubbub; where it is there all the same, no question can use such a column."""

_DAY = {"MILLIS": 86_400_000, "MICROS": 86_400_000_000}
_LAST = 2**63 - 1


@dataclass(frozen=True)
class Patient:
    """The reading of a file that fails on no value. columns: all of the file; fallible: those that Arrow reads.

    What Arrow reads stands in tables of one connection (`fill`), which DuckDB holds within its limit of memory, and
    beyond it on disk: of each row its number, times, and of texts the number of one. Each text of a dictionary stands
    there once: written out for each of its rows, the long one of one person would be larger than the disk.
    """

    files: tuple[str, ...]
    columns: tuple[str, ...]
    fallible: Mapping[str, str]

    def relation(self, view: str, asked: Collection[str] | None = None, *, numbered: bool = False) -> str:
        """What to write after FROM, where `fill` has filled `view`. asked: as there; of the others there is NULL.

        numbered: as in `read_parquet`.
        """
        read, shown = self._read(asked), [f"quick.{number}" for number in NUMBERS if numbered]
        if not read:
            return read_parquet(self.files, numbered=numbered)
        for column in self.columns:
            word = self.fallible.get(column)
            place = f"quick.{quote(column)}"
            if column in read:
                n = list(read).index(column)
                place = f"text{n}.value" if word == "text" else f"patient.c{n}"
            elif word is not None:
                place = f"CAST(NULL AS {_AS[word].told})"
            shown.append(f"{place} AS {quote(column)}")
        texts = "".join(
            f" LEFT JOIN {view}_text{n} AS text{n} ON patient.c{n} = text{n}.code"
            for n, word in enumerate(read.values())
            if word == "text"
        )
        return (
            f"(SELECT {', '.join(shown)} FROM {read_parquet(self.files, numbered=True)} AS quick "
            f"JOIN {view}_files AS files ON quick.{_FILE} = files.path "
            f"JOIN {view} AS patient ON quick.{_ROW} = patient.{_ROW} AND files.{_FILE} = patient.{_FILE}{texts}"
            ") AS patient_reading"
        )

    def fill(
        self,
        con: Any,
        view: str,
        asked: Collection[str] | None = None,
        *,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make the tables that `relation` reads, in a connection, one part of a file after another.

        asked: the columns that a question reads, of which Arrow reads no other: one that is damaged or encrypted, or
        larger than memory, fails in no question without it. Raises OSError once it is stopped.
        """
        read = self._read(asked)
        if not read:
            return
        kinds = ["BIGINT" if word == "text" else _AS[word].told for word in read.values()]
        columns = "".join(f", c{n} {kind}" for n, kind in enumerate(kinds))
        con.execute(f"CREATE TEMP TABLE {view} ({_FILE} INTEGER, {_ROW} BIGINT{columns})")
        con.execute(f"CREATE TEMP TABLE {view}_files ({_FILE} INTEGER, path VARCHAR)")
        for n, word in enumerate(read.values()):
            if word == "text":
                con.execute(f"CREATE TEMP TABLE {view}_text{n} (code BIGINT, value VARCHAR)")
        _insert(con, f"{view}_files", {_FILE: pa.array(range(len(self.files)), pa.int32()), "path": self.files})
        codes = [0] * len(read)
        for i, path in enumerate(self.files):
            for first, columns_of in _parts_read(path, read):
                if stopped():
                    raise OSError("the question was stopped")
                table, rows = dict[str, Any](), len(columns_of[0])
                for n, (word, column) in enumerate(zip(read.values(), columns_of, strict=True)):
                    if word == "text":
                        column, texts = _coded(column, codes[n])
                        for some in texts:
                            places = np.arange(codes[n], codes[n] + len(some))
                            codes[n] += len(some)
                            _insert(con, f"{view}_text{n}", {"code": places, "value": some})
                    table[f"c{n}"] = column
                numbers = {_FILE: pa.array(np.full(rows, i, np.int32)), _ROW: np.arange(first, first + rows)}
                _insert(con, view, {**numbers, **table})

    def _read(self, asked: Collection[str] | None) -> dict[str, str]:
        called = {column.lower() for column in (self.fallible if asked is None else asked)}
        return {column: word for column, word in self.fallible.items() if column.lower() in called}


def _insert(con: Any, table: str, rows: Mapping[str, Any]) -> None:
    con.register("patient_part", pa.table(dict(rows)))
    try:
        con.execute(f"INSERT INTO {table} FROM patient_part")
    finally:
        con.unregister("patient_part")


def read_parquet(files: Sequence[str], *, numbered: bool = False) -> str:
    """What to write after FROM. A folder named year=2020 is not a column: DuckDB and Arrow differ there.

    numbered: with a column for a row's file and one for its number there (`NUMBERS`).
    """
    numbers = f", file_row_number=true, filename={_text(_FILE)}" if numbered else ""
    return f"read_parquet({_listed(files)}, hive_partitioning=false{numbers})"


def patient_reading(
    name: str, files: Sequence[str], physical: Mapping[str, str], fallible: Mapping[str, str]
) -> Patient | None:
    """The reading of files of these columns that fails on no value; None where the quick one fails on none.

    Raises PolicyError where a column of several files is called what the engine calls the name of a file.
    """
    if not fallible:
        return None
    if _FILE in {column.lower() for column in physical}:
        raise PolicyError(
            f"table {name!r}: a column is called {_FILE}, which is what the engine calls the name of a file; rename it."
        )
    return Patient(tuple(files), tuple(physical), fallible)


def parquet_columns(name: str, path: str, described: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The physical type of each column as DuckDB described it, or a word that no question can use where a value could
    make its reader fail for good; and the columns of which a value can make the quick reading fail.

    Raises PolicyError for a file whose columns cannot be told apart by their names, or whose footer contradicts itself.
    """
    problem = None
    try:
        with _opened(path) as file:
            leaves, top = _leaves(file), list(file.schema_arrow.names)
        _parts(path, leaves)
    except (pa.ArrowException, OSError, ValueError):
        problem = "its footer cannot be read, or contradicts itself on how many rows and values there are"
    else:
        if len({column.lower() for column in top}) < len(top):
            problem = "two of its columns have the same name (case aside); rename one"
        elif top != list(described):
            problem = "its columns cannot be told apart by their names; rename them"
        elif _ROW in {column.lower() for column in top}:
            problem = (
                f"a column is called {_ROW} (case aside), which is what the engine calls the number of a row; rename it"
            )
    if problem:
        raise PolicyError(f"table {name!r}: {path!r} cannot be used: {problem}.")
    at, times = {leaf.path: leaf for leaf in leaves}, Counter(leaf.path for leaf in leaves)
    physical, fallible = dict(described), dict[str, str]()
    for column, kind in described.items():
        base, leaf = kind.split("(")[0], at[column] if times[column] == 1 else None
        may_fail = base in ("DECIMAL", *_WITH_UNIT, "VARCHAR") and not kind.endswith("]")
        if leaf is None or kind.endswith("]"):
            physical[column] = f"nested {kind}" if may_fail else kind
            continue
        if (base == "DECIMAL" and not _exactly_wide(leaf)) or (leaf.physical_type == "INT96" and INT96_FAILS):
            physical[column] = f"{leaf.physical_type} {kind}"
        elif not _told_apart(leaf, kind) and usable(kind, DUCKDB):
            physical[column] = f"{kind}{CUT}"
        elif base == "VARCHAR":
            fallible[column] = "text"
        elif may_fail and (unit := _unit(leaf)) is not None:
            fallible[column] = f"{_WITH_UNIT[base]} {unit}"
    return physical, fallible


def _opened(path: str, as_dictionaries: Sequence[str] = ()) -> Any:
    """A file as Arrow reads it by what Parquet itself says of the columns, without the types of Arrow that a program
    has written beside: of a text that was one of a dictionary, Arrow checks the bytes, and one person's bad ones would
    make it fail for all.
    """
    footer = footer_of(path).replace(b"ARROW:schema", b"arrow.schema")
    told = pq.read_metadata(pa.BufferReader(b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))))
    return pq.ParquetFile(path, metadata=told, read_dictionary=list(as_dictionaries))


_MAGIC = b"PAR1"


def _parts(path: str, leaves: Sequence[Any]) -> list[Part]:
    return parts_of(path, [Leaf(leaf.max_definition_level, leaf.max_repetition_level) for leaf in leaves])


_WITH_UNIT = {"TIME": "time", "TIMESTAMP": "moment", "TIMESTAMP WITH TIME ZONE": "instant"}
"""Types of DuckDB that can come from stored numbers of another unit."""


def _leaves(file: Any) -> list[Any]:
    return [file.schema.column(i) for i in range(len(file.schema))]


def _unit(leaf: Any) -> str | None:
    """The unit of a stored time or moment where some stored number makes DuckDB's reader fail; None where none does."""
    if leaf.physical_type == "INT96":
        return None
    logical_type = json.loads(leaf.logical_type.to_json())
    unit = {"milliseconds": "MILLIS", "microseconds": "MICROS"}.get(logical_type.get("timeUnit", ""))
    return unit if logical_type.get("Type") == "Time" or unit == "MILLIS" else None


def _exactly_wide(leaf: Any) -> bool:
    """Whether DuckDB holds whatever the stored bytes of a decimal say: it takes 2, 4, 8 or 16 by the digits."""
    width = next(width for digits, width in ((4, 2), (9, 4), (18, 8), (38, 16)) if leaf.precision <= digits)
    if leaf.physical_type in ("INT32", "INT64"):
        return True
    return bool(leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.length <= width)


_MOMENTS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
_AS_STORED: Mapping[str, tuple[str, ...]] = {
    "BOOLEAN": ("BOOLEAN",),
    "INT32": ("INTEGER", "UINTEGER", "DATE", "TIME"),
    "INT64": ("BIGINT", "UBIGINT", "TIME", *_MOMENTS),
    "FLOAT": ("FLOAT",),
    "DOUBLE": ("DOUBLE",),
    "BYTE_ARRAY": ("VARCHAR", "BLOB"),
    "FIXED_LEN_BYTE_ARRAY": ("VARCHAR", "BLOB", "UUID", "DECIMAL", "FLOAT"),
}
"""By how a value is stored, the types of DuckDB in which no two are one. What is not listed is cut: moments of 96 bits
to microseconds, decimals of more than 38 digits to doubles, numbers of 32 bits that are declared as of 8 or 16
(or, decimals, of four digits) to these.
"""

_MORE_DIGITS_THAN = {"INT32": 4, "INT64": 9, "FIXED_LEN_BYTE_ARRAY": 3}
"""By how a decimal is stored, the digits from beyond which it names units. With fewer it is cut; of three or fewer
DuckDB counts groups by the values that its type can have, and at another that a file stores it ends with an error.
"""


def _told_apart(leaf: Any, kind: str) -> bool:
    """Whether any two values that a file may store, whatever it says of them, are two in DuckDB's type."""
    base, _, digits = kind.partition("(")
    if base == "DECIMAL" and leaf.physical_type in _MORE_DIGITS_THAN:
        return int(digits.split(",")[0]) > _MORE_DIGITS_THAN[leaf.physical_type]
    return base == "NULL" or base in _AS_STORED.get(leaf.physical_type, ())


def _stored(column: Any) -> Any:
    """The stored numbers of a column of times."""
    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return column.cast(width).cast(pa.int64())


def _time(column: Any, unit: str) -> Any:
    stored = _stored(column)
    fits = pc.and_(pc.greater_equal(stored, 0), pc.less_equal(stored, _DAY[unit]))
    kept = pc.if_else(fits, stored, pa.scalar(None, pa.int64()))
    return pc.multiply(kept, 1000 if unit == "MILLIS" else 1).cast(pa.time64("us"))


def _microseconds(column: Any) -> Any:
    """Stored milliseconds in microseconds, NULL where they are too many."""
    stored = _stored(column)
    most = _LAST // 1000
    fits = pc.and_(pc.greater_equal(stored, -most), pc.less_equal(stored, most))
    within = pc.multiply(pc.if_else(fits, stored, pa.scalar(None, pa.int64())), 1000)
    endless = pc.or_(pc.equal(stored, _LAST), pc.equal(stored, -_LAST))
    return pc.if_else(endless, stored, within)


@dataclass(frozen=True)
class _As:
    """How a column comes from Arrow's to what DuckDB's reader would have given: Arrow's type, DuckDB's, and how."""

    kind: pa.DataType
    told: str
    made: Callable[[Any], Any]


_MOMENT, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
_AS: Mapping[str, _As] = {
    "text": _As(pa.large_binary(), "VARCHAR", lambda column: column),  # its dictionary, or bytes; see `_coded`
    "time MILLIS": _As(pa.time64("us"), "TIME", lambda column: _time(column, "MILLIS")),
    "time MICROS": _As(pa.time64("us"), "TIME", lambda column: _time(column, "MICROS")),
    "moment MILLIS": _As(_MOMENT, "TIMESTAMP", lambda column: _microseconds(column).cast(_MOMENT)),
    "instant MILLIS": _As(_INSTANT, "TIMESTAMP WITH TIME ZONE", lambda column: _microseconds(column).cast(_INSTANT)),
}


def _parts_read(path: str, read: Mapping[str, str]) -> Iterator[tuple[int, list[Any]]]:
    """The number of the first row of each part that has any, and its columns. Each part is read alone: Arrow takes
    what one has beyond its rows for the next one's.
    """
    with _opened(path, [name for name, word in read.items() if word == "text"]) as file:
        leaves = _leaves(file)
        names = [leaf.path for leaf in leaves]
        first = 0
        for i, part in enumerate(_parts(path, leaves)):
            columns = []
            for name, word in read.items() if part.rows else ():
                at, how = names.index(name), _AS[word]
                null = at in part.null
                columns.append(pa.nulls(part.rows, how.kind) if null else how.made(_one(path, file, i, at)))
            if any(len(column) != part.rows for column in columns):
                raise OSError("a part of a file has not as many rows as its footer says")
            if part.rows:
                yield first, columns
            first += part.rows


def _one(path: str, file: Any, part: int, at: int) -> Any:
    """A column of one part; of texts as a dictionary where one holds them, which has 2 GiB at most."""
    try:
        return file.reader.read_row_group(part, column_indices=[at]).column(0)
    except pa.ArrowException:
        with _opened(path) as plainly:
            return plainly.reader.read_row_group(part, column_indices=[at]).column(0)


def _coded(column: Any, first: int) -> tuple[Any, list[Any]]:
    """A column of texts as numbers, from `first` on, and the texts that these number, NULL where one is not UTF-8."""
    codes, texts = list[Any](), list[Any]()
    for chunk in _chunks(column):
        dictionary = pa.types.is_dictionary(chunk.type)
        values = chunk.dictionary if dictionary else chunk
        places = chunk.indices.cast(pa.int64()) if dictionary else pa.array(np.arange(len(chunk)))
        known = pc.and_(pc.greater_equal(places, 0), pc.less(places, len(values)))
        codes.append(pc.if_else(known, pc.add(places, first), pa.scalar(None, pa.int64())))
        texts.append(as_utf8(values.cast(pa.large_binary())))
        first += len(values)
    return pa.chunked_array(codes, pa.int64()), texts


def _chunks(column: Any) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _listed(files: Sequence[str]) -> str:
    return f"[{', '.join(_text(by_name(file)) for file in files)}]"


def by_name(path: str) -> str:
    """What DuckDB's readers are told of a file: its own name, of which they would take `*`, `?` and `[` for others'.

    >>> by_name("/data/visits[1].parquet")
    '/data/visits[[]1].parquet'
    """
    return re.sub(r"[*?[]", r"[\g<0>]", path)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
