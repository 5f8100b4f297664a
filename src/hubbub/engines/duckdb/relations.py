"""What DuckDB is told of a source: the relation it is read from, its columns as they are stored, public values."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from hubbub.engines.duckdb.attached import check_base_table
from hubbub.engines.duckdb.dialect import DUCKDB, quote
from hubbub.engines.duckdb.parquet import Patient, by_name, parquet_columns, patient_reading, read_parquet
from hubbub.engines.duckdb.sources import (
    CsvFile,
    DuckDBFile,
    Frame,
    Held,
    ParquetFile,
    Sheet,
    SqliteFile,
    hold,
    source_of,
)
from hubbub.engines.duckdb.sqlite_file import sqlite_tables
from hubbub.engines.fields import CUT, Fields, normalised
from hubbub.engines.outer_engine import SHUT, locked
from hubbub.errors import PolicyError
from hubbub.file_formats import Csv, kind_of_file
from hubbub.remedies import DeclareTypes
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.lists import beside, stored
from hubbub.sql.emit.plan import image_sql
from hubbub.tables.columns import Scalar
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.expressions import Column, Expression
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Plan

__all__ = ["LEFT_OUT", "arrow_type", "describe", "image", "lists_of", "tables_in"]


LEFT_OUT: Final = "common_subexpressions,join_filter_pushdown,join_order,statistics_propagation"
"""Optimisers that are off wherever rows are read: one that computes a part of an expression before the rest of it, out
of a TRY that was around it, too; two that believe a Parquet file's footer: where it has 5 as the largest value, a clamp
to 10 goes; and one that joins in another order than is written: rows of which each meets one may first meet all others
of their unit, and how many rows one row becomes is told of the stages that are written (`hubbub.tables.repeats`).
"""
_SHUT: Final = {**SHUT, "disabled_optimizers": LEFT_OUT}

_NO_SUCH_FORM = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.NotImplementedException,
    duckdb.ParserException,
    duckdb.SyntaxException,
    duckdb.TypeMismatchException,
)
"""What DuckDB says of a text, not of what it reads."""


def _bytes(limit: str) -> int:
    """A size as DuckDB writes it."""
    number, unit = limit.split()
    return int(float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit))


def _whole(kind: object) -> bool:
    """Whether a type of DuckDB is one of whole numbers of at most 64 bits."""
    return str(kind).lower().removeprefix("u") in ("bigint", "integer", "smallint", "tinyint")


Found = tuple[str, dict[str, str], Held | None, Patient | None]


def _relation(con: duckdb.DuckDBPyConnection, place: str, name: str, table: PrivateTable | PublicTable) -> Found:
    """What to write after FROM, the physical type of each column, and how rows come in that DuckDB does not fetch."""
    source = source_of(name, table)
    match source:
        case ParquetFile():
            relation, physical, patient = _parquet(con, name, source)
            return relation, physical, None, patient
        case CsvFile(path=path) if isinstance(table, PublicTable) and not table.types and table.csv is None:
            relation = f"read_csv({_text(by_name(path))})"
            return relation, _described(con, relation, name, source), None, None
        case DuckDBFile(path=path, table=inner):
            _attach(con, path, place, name)
            check_base_table(con, place, inner, name, trusted=isinstance(table, PrivateTable) and table.trusted_view)
            relation = f"{place}.main.{quote(inner)}"
            return relation, _described(con, relation, name, source), None, None
        case CsvFile() | SqliteFile() | Sheet() | Frame():
            trusted = isinstance(table, PrivateTable) and table.trusted_view
            held = hold(name, source, table.types, trusted=trusted)
            if isinstance(source, CsvFile | Sheet) and not table.types and isinstance(table, PrivateTable):
                raise _untyped(name, held.schema.names)
            con.register(place, held.empty())
            try:
                return place, _described(con, place, name, source), held, None
            finally:
                con.unregister(place)


def _parquet(
    con: duckdb.DuckDBPyConnection, name: str, source: ParquetFile
) -> tuple[str, dict[str, str], Patient | None]:
    """What to write after FROM, the physical types by the file's footer, and the patient reading, if one is needed."""
    relation = read_parquet(source.files)
    first, cut = None, set[str]()
    for file in source.files:
        described = _described(con, read_parquet([file]), name, source)
        physical, fallible = parquet_columns(name, file, described)
        cut |= {column for column, kind in physical.items() if kind.endswith(CUT)}
        columns = {column: kind.removesuffix(CUT) for column, kind in physical.items()}, fallible
        if first is not None and columns != first:
            raise PolicyError(
                f"table {name!r}: the files of {source.path!r} have different columns, or types; the first by name and "
                f"{os.path.basename(file)!r} do. Give each a table of its own, or write them anew."
            )
        first = columns
    assert first is not None
    physical, fallible = first
    physical |= {column: f"{physical[column]}{CUT}" for column in cut}
    return relation, physical, patient_reading(name, source.files, physical, fallible)


def _described(con: duckdb.DuckDBPyConnection, relation: str, name: str, source: object) -> dict[str, str]:
    described = None
    with contextlib.suppress(duckdb.Error):
        described = con.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    if described is None:
        shown = getattr(source, "path", source)
        raise PolicyError(f"table {name!r}: the source cannot be read as what its name says ({shown}).")
    return {column: kind for column, kind, *_ in described}


def _untyped(name: str, header: Sequence[str]) -> PolicyError:
    way = DeclareTypes(tuple(header), table=name)
    return PolicyError(
        f"table {name!r}: a CSV or a sheet has no types, and guessing them would read the rows. Declare them: "
        f"{way.in_python()} (integer, number, text, boolean, date, timestamp; a column not named is text).",
        remedy=way,
    )


def _attach(con: duckdb.DuckDBPyConnection, path: str, alias: str, name: str) -> None:
    try:
        con.execute(f"ATTACH {_text(path)} AS {alias} (READ_ONLY)")
    except duckdb.Error:
        raise PolicyError(
            f"table {name!r}: {path!r} cannot be opened as a DuckDB file: it is not one, is of a newer DuckDB, or is "
            "locked by another program."
        ) from None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def describe(source: str | Path, table: str | None = None, csv: Csv | None = None) -> list[tuple[str, str]]:
    """Column names and kinds of a file, from its metadata; every column of a CSV is text.

    csv: how a CSV is written.

    Raises PolicyError for a file that is missing or of another type.
    """
    declared = PublicTable(source=os.fspath(source), inner_table=table, types={"": Kind.TEXT}, csv=csv)
    with duckdb.connect(config=_SHUT) as con:
        physical = _relation(con, "source", Path(source).stem, declared)[1]
    return [(name, normalised(kind, "", DUCKDB)[0].value) for name, kind in physical.items()]


def never_null(path: str | Path, table: str) -> frozenset[str]:
    """The columns of a table in a DuckDB file that a constraint keeps from being NULL, by its catalogue.

    Raises PolicyError for a file that cannot be opened.
    """
    with duckdb.connect(config=_SHUT) as con:
        _attach(con, os.fspath(path), "source", Path(path).stem)
        said = con.execute(
            "SELECT c.column_name FROM duckdb_columns() AS c JOIN duckdb_tables() AS t "
            "USING (table_oid, database_name) WHERE c.database_name = 'source' AND c.schema_name = 'main' "
            "AND c.table_name = ? AND NOT c.is_nullable",
            [table],
        ).fetchall()
    return frozenset(str(name) for (name,) in said)


def tables_in(path: str | Path) -> list[str]:
    """The base tables of a DuckDB or SQLite file, by its catalogue.

    Raises PolicyError for a file that cannot be opened.
    """
    if kind_of_file(path) == "sqlite":
        return sqlite_tables(Path(path).stem, os.fspath(path))
    with duckdb.connect(config=_SHUT) as con:
        _attach(con, os.fspath(path), "source", Path(path).stem)
        said = con.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'source' AND schema_name = 'main' ORDER BY 1"
        ).fetchall()
    return [str(name) for (name,) in said]


def load_public(tables: Mapping[str, PublicTable]) -> dict[str, pa.Table]:
    """The rows of public tables, as Arrow."""
    with duckdb.connect(config=_SHUT) as reader:
        loaded = {}
        for i, (name, table) in enumerate(tables.items()):
            relation, physical, held, _ = _relation(reader, f"source{i}", name, table)
            if held is not None:
                reader.register(relation, held.table())
            fields = Fields(name, physical, dict(table.types), {}, DUCKDB)
            columns = ", ".join(
                f"{fields.expressions()[c] if table.types else quote(c)} AS {quote(c)}" for c in physical
            )
            loaded[name] = reader.sql(f"SELECT {columns} FROM {relation}").to_arrow_table()
        return loaded


def image(expression: Expression, columns: Mapping[Column, tuple[Scalar, ...]]) -> list[Scalar]:
    """The value of an expression for every combination of declared values, the last column fastest."""
    tables = {
        f"values{i}": pa.table({"place": range(len(values)), "value": pa.array(values, arrow_type(column.kind))})
        for i, (column, values) in enumerate(columns.items())
    }
    with locked(tables) as con:
        rows = con.execute(image_sql(expression, list(columns), DUCKDB)).fetchall()
    return [row[0] for row in rows]


def lists_of(plan: Plan, dialect: Dialect) -> dict[str, Callable[[], pa.Table]]:
    """What makes the tables of declared values that a plan's texts read, by their names."""
    plan = plan if plan.search is None else plan.search.plan  # a search reads the rows of another plan
    return {name: partial(_listed, plan.domains[i], plan.keys[i].kind) for i, name in beside(plan, dialect).items()}


def _listed(domain: tuple[Scalar, ...] | None, kind: Kind) -> pa.Table:
    assert domain is not None
    places = pa.array(np.arange(len(domain), dtype=np.int32))
    return pa.table({"key": pa.array(stored(domain, kind), arrow_type(kind)), "g": places})


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type that holds values of a kind."""
    return {
        Kind.NUMBER: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
    }.get(kind, pa.int64())
