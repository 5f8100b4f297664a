"""What the rows of a declared file hold beside what was declared of them: for a steward, who may see rows.

Exact counts, no noise, no charge. No session, no service and no other engine reaches this module: what it says must not
go to an analyst.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

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

__all__ = ["ColumnReport", "TableReport", "inspect_rows"]


@dataclass(frozen=True)
class ColumnReport:
    """One column. failing: values that are not of its kind, and so NULL; outside: values outside what is declared."""

    name: str
    kind: str
    values: int
    null: int
    failing: int
    outside: int | None


@dataclass(frozen=True)
class TableReport:
    """A table. left_out: lines of a CSV that are no row; None for other files."""

    name: str
    rows: int
    units: int | None
    largest: int | None
    left_out: int | None
    columns: tuple[ColumnReport, ...]


def inspect_rows(name: str, table: PrivateTable) -> TableReport:
    """Count, column by column, what does not fit the declarations.

    Raises PolicyError for a source that cannot be read, or is no file of this machine.
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
            null, failing = rows - there[column], there[column] - values
            reports.append(ColumnReport(column, kinds[column].value, values, null, failing, outside))
        left_out = lines_of(source.path, source.how) - rows if isinstance(source, CsvFile) else None
        units, largest = None, None
        if isinstance(table.unit, str) and table.path is None:
            unit = fields.unit(table.unit)[1]
            by_unit = f"SELECT COUNT(*) AS n FROM {relation} WHERE {unit} IS NOT NULL GROUP BY {unit}"
            units, largest = con.execute(f"SELECT COUNT(*), coalesce(max(n), 0) FROM ({by_unit})").fetchall()[0]
        return TableReport(name, rows, units, largest, left_out, tuple(reports))


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
            return _one(con, f"SELECT COUNT(*) FROM {relation} WHERE {read} < $1 OR {read} > $2", [low, high])
        case OneOf(values=values):
            listed = [_plain(v) for v in values if v is not None]
            return _one(con, f"SELECT COUNT(*) FROM {relation} WHERE {read} NOT IN (SELECT unnest($1))", [listed])
    return None


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value
