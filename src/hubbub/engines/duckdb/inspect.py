"""What the rows of a declared file hold beside what was declared of them: for a steward, who may see rows.

No noise, no charge, and shares in bands alone: none, below 1 %, 1 to 10 %, more. So one line of it, passed on by
mistake, holds no count and no value; that it depends on the rows it does not hide. What is then declared anew is taken
from the rows, so the policy marks its table with `looked_at_rows = true`. No session, no service and no other engine
reaches this module: what it says must not go to an analyst.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import duckdb

from hubbub.engines.duckdb.csv_files import csv_header, lines_of, read_csv
from hubbub.engines.duckdb.dialect import DUCKDB, quote
from hubbub.engines.duckdb.relations import _SHUT, _relation
from hubbub.engines.duckdb.sheets import sheet_values
from hubbub.engines.duckdb.sources import CsvFile, Sheet, Source, SqliteFile, source_of
from hubbub.engines.duckdb.sqlite_file import sqlite_values
from hubbub.engines.fields import Fields
from hubbub.tables.columns import Between, Declaration, Edges, OneOf
from hubbub.tables.declare import PrivateTable

__all__ = ["BANDS", "ColumnReport", "TableReport", "band", "inspect_rows"]


BANDS: Final = ("none", "below 1 %", "1 to 10 %", "above 10 %")
"""How large a share is told to be."""


@dataclass(frozen=True)
class ColumnReport:
    """One column: the bands of its shares of all rows.

    failing: values that are not of its kind, and so NULL; outside: values outside what is declared, None where nothing
    is.
    """

    name: str
    kind: str
    null: str
    failing: str
    outside: str | None


@dataclass(frozen=True)
class TableReport:
    """A table. left_out: the share of the lines of a CSV that are not rows; None for other files."""

    name: str
    left_out: str | None
    columns: tuple[ColumnReport, ...]


def band(part: int, whole: int) -> str:
    """How large a share is.

    >>> band(0, 10), band(1, 200), band(1, 100), band(1, 10), band(2, 10)
    ('none', 'below 1 %', '1 to 10 %', '1 to 10 %', 'above 10 %')
    """
    if not part:
        return BANDS[0]
    return BANDS[1] if 100 * part < whole else BANDS[2] if 10 * part <= whole else BANDS[3]


def inspect_rows(name: str, table: PrivateTable) -> TableReport:
    """See, column by column, how large a share of the rows does not fit the declarations.

    Raises PolicyError for a source that cannot be read, or is not a file of this machine.
    """
    source = source_of(name, table)
    with duckdb.connect(config=_SHUT) as con:
        relation, physical, held, _ = _relation(con, "source", name, table)
        if held is not None:
            con.register("source", held.table())
        fields = Fields(name, physical, dict(table.types), table.columns, DUCKDB)
        fields.check_names()
        kinds, read = fields.kinds(), fields.expressions()
        reports, rows = [], _one(con, f"SELECT COUNT(*) FROM {relation}")
        there = _there(con, name, source, relation, list(physical))
        for column in physical:
            values = _one(con, f"SELECT COUNT({read[column]}) FROM {relation}")
            outside = _outside(con, relation, read[column], table.columns.get(column))
            null, failing = band(rows - there[column], rows), band(there[column] - values, rows)
            beyond = None if outside is None else band(outside, rows)
            reports.append(ColumnReport(column, kinds[column].value, null, failing, beyond))
        left_out = None
        if isinstance(source, CsvFile):
            lines = lines_of(source.path, source.how)
            left_out = band(lines - rows, lines)
        return TableReport(name, left_out, tuple(reports))


def _there(con: Any, name: str, source: Source, relation: str, columns: list[str]) -> Mapping[str, int]:
    """How many rows have anything in each column, whatever it is: as the file has it, before it is read as a kind."""
    match source:
        case CsvFile(path=path, how=how):
            plain = replace(how, decimal=".", thousands=None, formats={})
            fields = read_csv(path, csv_header(name, path, plain), plain, {})
            return {column: len(fields) - fields.column(column).null_count for column in columns}
        case SqliteFile(path=path, table=table):
            return sqlite_values(path, table, columns)
        case Sheet(path=path, table=sheet):
            return sheet_values(path, sheet, columns)
    return {column: _one(con, f"SELECT COUNT({quote(column)}) FROM {relation}") for column in columns}


def _one(con: Any, sql: str, given: list[Any] | None = None) -> int:
    return int(con.execute(sql, given or []).fetchall()[0][0])


def _outside(con: Any, relation: str, read: str, what: Declaration | None) -> int | None:
    """How many values lie outside a range, or are none of a list; None where neither is declared."""
    match what:
        case Between() | Edges():
            low, high = _plain(what.low), _plain(what.high)
            if type(high) is dt.date:  # of times it stands for its whole day
                high = dt.datetime.combine(high, dt.time.max)
            return _counted(con, relation, f"{read} < $1 OR {read} > $2", [low, high])
        case OneOf(values=values):
            listed = [_plain(v) for v in values if v is not None]
            return _counted(con, relation, f"{read} NOT IN (SELECT unnest($1))", [listed])
    return None


def _counted(con: Any, relation: str, condition: str, given: list[Any]) -> int:
    """For how many rows a condition holds. Inside another expression it reaches no reader of files, which would pass
    over rows by what a footer says of them.
    """
    return _one(con, f"SELECT COUNT(*) FROM {relation} WHERE coalesce({condition}, FALSE)", given)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value
