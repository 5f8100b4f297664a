"""Declared sources, looked at from outside: which file, which frame. Nothing here reads a row of a private file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub.errors import PolicyError
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.kinds import Kind

__all__ = ["CsvFile", "DuckDBFile", "Frame", "ParquetFile", "csv_header", "frame_to_arrow", "source_of"]


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


def source_of(name: str, table: PrivateTable | PublicTable) -> Source:
    """What a declared table's source is.

    Raises PolicyError for a file that is missing or of an unknown type.
    """
    if not isinstance(table.source, str):
        return Frame(table.source)
    path = Path(table.source)
    if not path.exists():
        raise PolicyError(f"table {name!r}: there is no file {str(path)!r}.")
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


def csv_header(name: str, path: str) -> list[str]:
    """The column names in the first line of a CSV.

    Raises PolicyError for a file without a usable header.
    """
    try:
        # As bytes: decoding a buffer of text would look at rows, and fail on them.
        with open(path, "rb") as file:
            line = file.readline(1 << 20).decode("utf-8-sig")
        header = next(csv.reader([line], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        raise PolicyError(f"table {name!r}: the first line of the CSV is not a UTF-8 header.") from None
    if not header or any(not column.strip() for column in header):
        raise PolicyError(f"table {name!r}: the first line of the CSV must name every column.")
    if len({c.lower() for c in header}) < len(header):
        raise PolicyError(f"table {name!r}: two columns of the CSV have the same name (case aside); rename one.")
    return header


def frame_to_arrow(name: str, frame: Any, types: Mapping[str, Kind]) -> Any:
    """A frame as an Arrow table; in place where the frame's library allows it.

    Columns of a pandas frame with dtype object are converted by their declared type, a value of another type being
    NULL; without a declared type they are left out of questions, because looking for one would read the rows.

    Raises PolicyError for a frame that cannot be handed over.
    """
    import pyarrow as pa

    if type(frame).__module__.split(".")[0] == "pandas":
        return _pandas_to_arrow(frame, types)
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException):
        raise PolicyError(f"table {name!r}: the frame ({type(frame).__name__}) cannot be read as Arrow.") from None


def _pandas_to_arrow(frame: Any, types: Mapping[str, Kind]) -> Any:
    import pyarrow as pa

    columns = {}
    for label in frame.columns:
        series = frame[label]
        if str(series.dtype) == "object":
            columns[str(label)] = _object_column(list(series), types.get(str(label)))
        else:
            columns[str(label)] = pa.array(series, from_pandas=True)
    return pa.table(columns)


def _object_column(values: list[Any], kind: Kind | None) -> Any:
    """Objects by their declared type; what does not fit is NULL."""
    import datetime as dt

    import pyarrow as pa

    match kind:
        case Kind.INTEGER:
            kept: list[Any] = [v if _is_integer(v) else None for v in values]
            return pa.array(kept, pa.int64())
        case Kind.NUMBER:
            return pa.array([_as_float(v) for v in values], pa.float64())
        case Kind.TEXT:
            return pa.array([_as_text(v) for v in values], pa.string())
        case Kind.BOOLEAN:
            return pa.array([v if isinstance(v, bool) else None for v in values], pa.bool_())
        case Kind.DATE:
            dates = [v if isinstance(v, dt.date) and not isinstance(v, dt.datetime) else None for v in values]
            return pa.array(dates, pa.date32())
        case Kind.TIMESTAMP:
            return pa.array([_as_moment(v) for v in values], pa.timestamp("us"))
    # A type that no question can use, whatever the objects are.
    return pa.array([None] * len(values), pa.list_(pa.null()))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _as_float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _as_text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _as_moment(value: Any) -> Any:
    import datetime as dt

    if not isinstance(value, dt.datetime):
        return None
    plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return plain if type(plain) is dt.datetime else dt.datetime(*plain.timetuple()[:6], plain.microsecond)
