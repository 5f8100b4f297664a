"""A sheet of a spreadsheet (.xlsx, .xls, .ods), read once into this process: a table whose first row names the columns.

Each cell has a type of its own, so a column's kind is what is declared (text where nothing is), and a cell of another
type is NULL. A number is text as it would be typed: a ZIP code that was stored as the number 2138 is "2138". A row of
empty cells is not a row. Cells to the right of the last name are not read: a note beside one person's row would be a
column without a name.

.xlsx and .ods are read here, row by row (`xlsx_file`, `ods_file`): a cell far to the right or far below costs nothing
but itself. .xls is read by calamine, which gives every row the width of the longest one, of 65,536 rows and 256 columns
at most, and leaves out a row with a moment or a time span beyond all dates.
"""

from __future__ import annotations

import datetime as dt
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import Any, Final

import pyarrow as pa

from hubbub.engines.duckdb.fitted import OBJECTS, fitted, rows_as_table
from hubbub.engines.duckdb.ods_file import OdsFile
from hubbub.engines.duckdb.xlsx_file import XlsxFile
from hubbub.engines.duckdb.xml_parts import Cut
from hubbub.errors import PolicyError
from hubbub.remedies import CorrectName, DeclareOption, Remedy
from hubbub.spelling import meant_by
from hubbub.tables.kinds import Kind

__all__ = ["only_sheet", "read_sheet", "sheet_columns", "sheet_values"]

_ROWS: Final = 1 << 14
"""Rows that become columns together."""


def sheet_columns(name: str, path: str, sheet: str | None) -> list[str]:
    """The column names in the first row of a sheet: the one that is named, or the only one. The others are looked
    through, so that a file that is damaged is refused here.

    Raises PolicyError where the extra `excel` is not there, and for a file without such a sheet or a usable first row.
    """
    header, problem, ways = list[str](), None, list[Remedy]()
    try:
        header = _header(_first_row(path, sheet))
    except PolicyError as error:
        problem, ways = str(error), [_of(name, way) for way in error.remedies]
    except Exception:  # a file may be broken in any way, and the words of its reader may hold rows
        problem = "it cannot be read as a spreadsheet"
    if problem is None and (not header or not all(header)):
        problem = "the first row of the sheet must name every column"
    if problem is None and len({column.lower() for column in header}) < len(header):
        problem = "two columns have the same name (case aside); rename one"
    if problem:
        raise PolicyError(f"table {name!r}: {path!r}: {problem}.", remedy=ways)
    return header


def _of(name: str, way: Remedy) -> Remedy:
    """A way out of a file's refusal, of the table that is read from it."""
    return way.fill(tables=(name,)) if isinstance(way, DeclareOption) else way.fill(table=name)


def read_sheet(path: str, sheet: str | None, schema: pa.Schema, types: Mapping[str, Kind]) -> pa.Table:
    """The rows of a sheet, of the schema that was promised.

    Raises PolicyError where its first row has changed.
    """
    rows = _rows(path, sheet)
    if _header(next(rows, [])) != schema.names:
        raise PolicyError("the columns of a sheet have changed")
    fits = [_FITS[types.get(column, Kind.TEXT)] for column in schema.names]
    filled, tables = _filled(rows, len(fits)), [schema.empty_table()]
    while some := list(islice(filled, _ROWS)):
        tables.append(rows_as_table(some, schema, fits))
    return pa.concat_tables(tables)


def only_sheet(path: str) -> str | None:
    """The name of a workbook's only sheet; None where there are several, or it cannot be read."""
    try:
        at = os.stat(path)
        names = _sheets(path, (at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns))
    except Exception:  # as in `sheet_columns`, which says so
        return None
    return names[0] if len(names) == 1 else None


@lru_cache(maxsize=32)
def _sheets(path: str, stamp: tuple[int, ...]) -> tuple[str, ...]:
    """The names of a workbook's sheets, looked up once while the file is as it was."""
    if path.lower().endswith(".xls"):
        with _old_book(path) as old:
            return tuple(old.sheet_names)
    with _opened(path) as book:
        return tuple(book.sheets)


def sheet_values(path: str, sheet: str | None, columns: Sequence[str]) -> dict[str, int]:
    """How many rows of a sheet have anything in each column, of whatever type."""
    rows = _rows(path, sheet)
    next(rows, None)
    counts = [0] * len(columns)
    for row in _filled(rows, len(columns)):
        for i, cell in enumerate(row):
            counts[i] += cell not in (None, "")
    return dict(zip(columns, counts, strict=True))


def _filled(rows: Iterable[list[Any]], width: int) -> Iterator[list[Any]]:
    """The rows with anything in their named columns; what stands right of these is nobody's."""
    named = (row[:width] for row in rows)
    return (row for row in named if any(cell not in (None, "") for cell in row))


def _header(first: list[Any]) -> list[str]:
    """The names in the first row, up to the last cell of it that holds anything."""
    names = list(first)
    while names and names[-1] in (None, ""):
        names.pop()
    return [fitted(cell, _plain).strip() if isinstance(cell, str) and fitted(cell, _plain) else "" for cell in names]


def _rows(path: str, sheet: str | None) -> Iterator[list[Any]]:
    """All rows, the one with the names first; one that holds nothing may be left out.

    Raises PolicyError where there is no such sheet.
    """
    if path.lower().endswith(".xls"):
        yield from _old_rows(path, sheet)
        return
    with _opened(path) as book:
        yield from book.rows(_chosen(list(book.sheets), sheet))


def _first_row(path: str, sheet: str | None) -> list[Any]:
    """The row with the names of a sheet that can be read to its end."""
    if path.lower().endswith(".xls"):
        return next(_old_rows(path, sheet), [])
    with _opened(path) as book:
        return book.first(_chosen(list(book.sheets), sheet))


@contextmanager
def _opened(path: str) -> Iterator[XlsxFile | OdsFile]:
    with zipfile.ZipFile(path) as archive:
        yield XlsxFile(archive) if path.lower().endswith(".xlsx") else OdsFile(archive)


def _chosen(names: list[str], sheet: str | None) -> str:
    if sheet is None and len(names) > 1:
        way = DeclareOption("table")
        raise PolicyError(f"it has the sheets {', '.join(names)}; say which with {way.in_python()}", remedy=way)
    if sheet is not None and sheet not in names:
        near = meant_by(sheet, names)
        raise PolicyError(
            f"it has no sheet {sheet!r}; it has {', '.join(map(repr, names))}",
            remedy=() if near is None else CorrectName(near, sheet, inner=True),
        )
    return sheet or names[0]


@contextmanager
def _old_book(path: str) -> Iterator[Any]:
    """An .xls; raises PolicyError where its reader is not installed, OSError where it gives up."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise PolicyError(
            "an .xls needs the package python-calamine, the extra `excel` of hubbub; or save it as an .xlsx"
        ) from None
    with _or_given_up(CalamineWorkbook.from_path, path) as book:
        yield book


def _or_given_up(ask: Callable[..., Any], *of_what: Any) -> Any:
    """What a reader in Rust returns; raises OSError where it gives up, which is not an Exception of Python's."""
    try:
        return ask(*of_what)
    except BaseException as error:
        if not _gave_up(error):
            raise
    raise OSError("the reader of an .xls gave up")


def _gave_up(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"  # what a library in Rust raises; it can be imported from nowhere


def _old_rows(path: str, sheet: str | None) -> Iterator[list[Any]]:
    """The rows of an .xls; of a row that the reader cannot hold no cells."""
    with _old_book(path) as book:
        cells = _or_given_up(book.get_sheet_by_name, _chosen(book.sheet_names, sheet))
        before = [""] * cells.start[1] if cells.start else []  # empty columns, which are left out row by row
        for row in _one_by_one(_or_given_up(cells.iter_rows), cells.end[0] + 1 if cells.end else 0):
            yield before + row


def _one_by_one(rows: Iterator[list[Any]], count: int) -> Iterator[list[Any]]:
    """The rows of a sheet; an empty one in place of each that the reader fails on."""
    for _ in range(count):
        row: list[Any] | None = []
        try:
            row = next(rows, None)
        except Exception:  # its words may hold the cell
            pass
        except BaseException as error:
            if not _gave_up(error):
                raise
        if row is None:
            return
        yield row


def _plain(value: Any) -> str | None:
    """A text, or what somebody would type for a number or a date: two cells that hold two of them have two texts.

    Raises UnicodeEncodeError for half a character.
    """
    if isinstance(value, str):
        text: str | None = OBJECTS[Kind.TEXT][1](value)
        return text or None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, float) and not isfinite(value):  # two numbers beyond all
        return None
    if isinstance(value, Cut):
        return value.written
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
