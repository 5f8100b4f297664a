"""A sheet of a spreadsheet (.xlsx, .xls, .ods), read once into this process: a table whose first row names the columns.

Each cell has a type of its own, so a column's kind is what is declared (text where nothing is), and a cell of another
type is NULL. A number is text as it would be typed: a ZIP code that was stored as the number 2138 is "2138". A row of
empty cells is not a row.

Cells to the right of the last name are not read: the reader gives every row the width of the longest one, so a note
beside one person's row would be a column without a name. A row with a cell that the reader cannot hold (a moment or a
time span beyond all dates) is left out, alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hubbub.engines.duckdb.fitted import OBJECTS, rows_as_table
from hubbub.errors import PolicyError
from hubbub.tables.kinds import Kind

__all__ = ["read_sheet", "sheet_columns", "sheet_values"]


def sheet_columns(name: str, path: str, sheet: str | None) -> list[str]:
    """The column names in the first row of a sheet: the one that is named, or the only one.

    Raises PolicyError where the extra `excel` is not there, and for a file without such a sheet or a usable first row.
    """
    rows, problem = [], None
    try:
        rows = _rows(path, sheet)
    except PolicyError as error:
        problem = str(error)
    except Exception:  # a file may be broken in any way, and the words of its reader may hold rows
        problem = "it cannot be read as a spreadsheet"
    header = _header(rows)
    if problem is None and (not header or not all(header)):
        problem = "the first row of the sheet must name every column"
    if problem is None and len({column.lower() for column in header}) < len(header):
        problem = "two columns have the same name (case aside); rename one"
    if problem:
        raise PolicyError(f"table {name!r}: {path!r}: {problem}.")
    return header


def read_sheet(path: str, sheet: str | None, schema: pa.Schema, types: Mapping[str, Kind]) -> pa.Table:
    """The rows of a sheet, of the schema that was promised.

    Raises PolicyError where its first row has changed.
    """
    rows = _rows(path, sheet)
    if _header(rows) != schema.names:
        raise PolicyError("the columns of a sheet have changed")
    fits = [_FITS[types.get(column, Kind.TEXT)] for column in schema.names]
    return rows_as_table(_filled(rows, len(fits)), schema, fits)


def sheet_values(path: str, sheet: str | None, columns: Sequence[str]) -> dict[str, int]:
    """How many rows of a sheet have anything in each column, of whatever type."""
    filled = _filled(_rows(path, sheet), len(columns))
    return {c: sum(i < len(row) and row[i] not in (None, "") for row in filled) for i, c in enumerate(columns)}


def _filled(rows: list[list[Any]], width: int) -> list[list[Any]]:
    """The rows below the first with anything in their named columns; what stands right of these is nobody's."""
    named = (row[:width] for row in rows[1:])
    return [row for row in named if any(cell not in (None, "") for cell in row)]


def _header(rows: list[list[Any]]) -> list[str]:
    """The names in the first row, up to the last cell of it that holds anything."""
    first = list(rows[0]) if rows else []
    while first and first[-1] in (None, ""):
        first.pop()
    return [cell.strip() if isinstance(cell, str) else "" for cell in first]


def _rows(path: str, sheet: str | None) -> list[list[Any]]:
    """All cells, the first row first; of a row that the reader cannot hold none.

    Raises PolicyError where there is no such sheet.
    """
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise PolicyError(
            "a spreadsheet needs the package python-calamine, the extra `excel` of hubbub; or save the sheet as a CSV"
        ) from None
    with CalamineWorkbook.from_path(path) as book:
        names = book.sheet_names
        if sheet is None and len(names) > 1:
            raise PolicyError(f"it has the sheets {', '.join(names)}; say which with table=")
        if sheet is not None and sheet not in names:
            raise PolicyError(f"it has no sheet {sheet!r}; it has {', '.join(names)}")
        cells = book.get_sheet_by_name(sheet or names[0])
        before = [""] * cells.start[1] if cells.start else []  # empty columns, which are left out row by row
        return [before + row for row in _one_by_one(cells.iter_rows(), cells.end[0] + 1 if cells.end else 0)]


def _one_by_one(rows: Iterator[list[Any]], count: int) -> Iterator[list[Any]]:
    """The rows of a sheet; an empty one in place of each that the reader fails on."""
    for _ in range(count):
        row: list[Any] | None = []
        try:
            row = next(rows, None)
        except Exception:  # its words may hold the cell
            pass
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # what a library in Rust raises where it gives up
                raise
        if row is None:
            return
        yield row


def _plain(value: Any) -> str | None:
    """A text, or what somebody would type for a number or a date."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return value.isoformat() if isinstance(value, dt.date) else repr(value) if isinstance(value, int | float) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    number: int | None = OBJECTS[Kind.INTEGER][1](value)
    return number


def _day(value: Any) -> dt.date | None:
    if isinstance(value, dt.datetime):
        return value.date()
    return value if isinstance(value, dt.date) else None


def _moment(value: Any) -> dt.datetime | None:
    if type(value) is dt.date:
        return dt.datetime(value.year, value.month, value.day)
    moment: dt.datetime | None = OBJECTS[Kind.TIMESTAMP][1](value)
    return moment


_FITS: Mapping[Kind, Any] = {
    Kind.INTEGER: _whole,
    Kind.NUMBER: OBJECTS[Kind.NUMBER][1],
    Kind.TEXT: _plain,
    Kind.BOOLEAN: OBJECTS[Kind.BOOLEAN][1],
    Kind.DATE: _day,
    Kind.TIMESTAMP: _moment,
}
