"""The embedded engine: DuckDB in this process, reading Parquet, CSV, DuckDB files and frames in place.

Shut in: no extension is loaded, variables of the program are not visible as tables, and once a session's tables
are known the engine can open nothing else (`enable_external_access = false`), and its settings are locked.
Spilled rows go to a folder that only this user can read, removed on close.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from hubbub.engines.contract import Exact, Schema
from hubbub.engines.sources import (
    CsvFile,
    DuckDBFile,
    Frame,
    ParquetFile,
    csv_header,
    frame_to_arrow,
    source_of,
)
from hubbub.errors import EngineError, PolicyError, QueryError
from hubbub.sql.compile import aggregate_sql, image_sql, quote
from hubbub.sql.parse import did_you_mean, find_name
from hubbub.tables.declare import Between, Declaration, EachRow, OneOf, PrivateTable, PublicTable, Scalar
from hubbub.tables.expressions import Column, Expression
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Plan

__all__ = ["DuckDBEngine", "arrow_type", "describe", "image", "locked_memory", "public_tables"]

_SHUT: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


@dataclass(frozen=True)
class _Known:
    """A table the engine can read: where, which expression gives each column, and the unit."""

    relation: str
    columns: Mapping[str, str]
    unit: str | None


class DuckDBEngine:
    """The embedded engine of one session. Safe to use from several threads."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="hubbub-")  # mode 0700
        self._con = duckdb.connect(
            config={**_SHUT, "temp_directory": self._folder, "preserve_insertion_order": "false"}
        )
        self._con.execute("SET enable_progress_bar = false")
        self._known: dict[str, _Known] = {}
        self._frames: dict[str, Any] = {}
        self._paths: list[str] = []

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        """Make a declared table known; reads its schema, no rows.

        Raises PolicyError for a source that is missing or whose schema contradicts the declaration.
        """
        relation, physical = _relation(self._con, len(self._known), name, table, self._frames)
        self._paths += [os.path.realpath(table.source)] if isinstance(table.source, str) else []
        declared = table.columns if isinstance(table, PrivateTable) else {}
        fields = _Fields(name, physical, dict(table.types), declared)
        fields.check_names()
        unit = None
        if isinstance(table, PrivateTable) and not isinstance(table.unit, EachRow):
            unit = fields.unit(table.unit)
        self._known[name] = _Known(relation, fields.expressions(), unit)
        return Schema(fields.kinds())

    def seal(self) -> None:
        """After the last `add`: nothing else can be opened, no setting changed."""
        paths = ", ".join("'" + p.replace("'", "''") + "'" for p in [*self._paths, self._folder])
        self._con.execute(f"SET allowed_paths = [{paths}]")
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET lock_configuration = true")

    def compile(self, plan: Plan) -> str:
        """The SQL text that `run` runs."""
        known = self._known[plan.question.table]
        return aggregate_sql(plan, known.relation, known.columns, known.unit)

    def run(self, plan: Plan) -> Exact:
        """Run the private part of a question.

        Raises EngineError, with an incident id alone, if DuckDB fails.
        """
        sql = self.compile(plan)
        with _only_an_incident():
            rows = self._cursor().execute(sql).fetchall()
        places = len(plan.domains)
        sizes = [len(d) for d in plan.domains]
        vectors = [[0] * plan.group_count for _ in plan.measurements]
        for row in rows:
            at = 0
            for size, position in zip(sizes, row[:places], strict=True):
                at = at * size + position
            for vector, value in zip(vectors, row[places:], strict=True):
                vector[at] = int(value)
        return Exact(tuple(map(tuple, vectors)))

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of this call's own: threads do not wait for each other. Frames are not shared by DuckDB."""
        cursor = self._con.cursor()
        for view, frame in self._frames.items():
            cursor.register(view, frame)
        return cursor

    def interrupt(self) -> None:
        """Stop what is running."""
        self._con.interrupt()

    def close(self) -> None:
        """Close the engine and remove what it spilled."""
        self._con.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def _only_an_incident() -> Iterator[None]:
    """How an engine fails can depend on the rows, so its text goes no further."""
    try:
        yield
    except (duckdb.Error, MemoryError, UnicodeError, OverflowError):
        raise EngineError(uuid.uuid4().hex[:12]) from None


def _relation(
    con: duckdb.DuckDBPyConnection,
    number: int,
    name: str,
    table: PrivateTable | PublicTable,
    frames: dict[str, Any],
) -> tuple[str, dict[str, str]]:
    """What to write after FROM, and the physical type of each column, by name."""
    source = source_of(name, table)
    match source:
        case ParquetFile(path=path):
            relation = f"read_parquet({_text(path)})"
        case CsvFile(path=path):
            if isinstance(table, PublicTable) and not table.types:
                relation = f"read_csv({_text(path)})"
            else:
                return _declared_csv(name, path, table)
        case DuckDBFile(path=path, table=inner):
            _attach(con, path, f"source{number}", name)
            _check_base_table(con, f"source{number}", inner, name)
            relation = f"source{number}.main.{quote(inner)}"
        case Frame(frame=frame):
            relation = f"frame{number}"
            frames[relation] = frame_to_arrow(name, frame, table.types)
            con.register(relation, frames[relation])
    try:
        described = con.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    except duckdb.Error:
        raise PolicyError(f"table {name!r}: the source cannot be read as what its name says ({source}).") from None
    return relation, {column: kind for column, kind, *_ in described}


def _attach(con: duckdb.DuckDBPyConnection, path: str, alias: str, name: str) -> None:
    try:
        con.execute(f"ATTACH {_text(path)} AS {alias} (READ_ONLY)")
    except duckdb.Error:
        raise PolicyError(
            f"table {name!r}: {path!r} cannot be opened as a DuckDB file: it is none, is of a newer DuckDB, or is "
            "locked by another program."
        ) from None


def _declared_csv(name: str, path: str, table: PrivateTable | PublicTable) -> tuple[str, dict[str, str]]:
    """A CSV as declared: every field is text, types come from `types=`; only the header line is read here.

    By rule, a line that has not as many fields as the header is left out, and so is a row from questions that read
    a field of it which is not UTF-8.
    """
    header = csv_header(name, path)
    if not table.types:
        example = ", ".join(f'"{c}": "text"' for c in header[:3])
        raise PolicyError(
            f"table {name!r}: a CSV has no types, and guessing them would read the rows. Declare them, as in "
            f"types={{{example}{', ...' if len(header) > 3 else ''}}} "
            "(integer, number, text, boolean, date, timestamp; a column not named is text)."
        )
    columns = ", ".join(f"{_text(c)}: 'VARCHAR'" for c in header)
    relation = (
        f"read_csv({_text(path)}, auto_detect=false, header=true, delim=',', quote='\"', escape='\"', nullstr='', "
        f"ignore_errors=true, parallel=false, columns={{{columns}}})"
    )
    return relation, dict.fromkeys(header, "VARCHAR")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _check_base_table(con: duckdb.DuckDBPyConnection, database: str, inner: str, name: str) -> None:
    """Base tables only: a view could mix rows of several units."""
    rows = con.execute(
        "SELECT table_name, sql FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main'",
        [database],
    ).fetchall()
    tables = {row[0]: row[1] for row in rows}
    if inner not in tables:
        views = con.execute("SELECT view_name FROM duckdb_views() WHERE database_name = ?", [database]).fetchall()
        if (inner,) in views:
            raise PolicyError(
                f"table {name!r}: {inner!r} is a view. A view can mix rows of several people; name a base table."
            )
        raise PolicyError(f"table {name!r}: the file has no table {inner!r}. {did_you_mean(inner, tables)}")
    if "GENERATED ALWAYS" in (tables[inner] or "").upper():
        raise PolicyError(f"table {name!r}: {inner!r} has generated columns, which can fail on a row; copy the table.")


_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_CASTS = {
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


@dataclass(frozen=True)
class _Fields:
    """The columns of one table: physical types, declared types, and what follows for questions."""

    name: str
    physical: Mapping[str, str]
    types: Mapping[str, Kind]
    declared: Mapping[str, Declaration]

    def check_names(self) -> None:
        for column in (*self.declared, *self.types):
            if column not in self.physical:
                raise PolicyError(
                    f"table {self.name!r} has no column {column!r}, which is declared. "
                    f"{did_you_mean(column, self.physical)}"
                )
        folded = [c.lower() for c in self.physical]
        if len(set(folded)) < len(folded):
            raise PolicyError(f"table {self.name!r} has two columns whose names differ in case alone; rename one.")
        for column, what in self.declared.items():
            self._check_declaration(column, what)

    def _check_declaration(self, column: str, what: Declaration) -> None:
        kind = self._kind_and_sql(column)[0]
        if isinstance(what, Between) and kind is not Kind.OTHER:
            numeric = kind in (Kind.INTEGER, Kind.NUMBER)
            temporal = kind in (Kind.DATE, Kind.TIMESTAMP)
            if not (numeric if what.numeric else temporal):
                raise PolicyError(
                    f"table {self.name!r}: column {column!r} is declared as {what!r}, but it holds values of type "
                    f"{kind.value}."
                )

    def kinds(self) -> dict[str, Kind]:
        return {column: self._kind_and_sql(column)[0] for column in self.physical}

    def expressions(self) -> dict[str, str]:
        return {column: self._kind_and_sql(column)[1] for column in self.physical}

    def unit(self, column: str) -> str:
        found = find_name(column, self.physical)
        if found is None:
            raise PolicyError(
                f"table {self.name!r} has no column {column!r} to be its unit. {did_you_mean(column, self.physical)}"
            )
        kind, sql = self._kind_and_sql(found)
        if kind is Kind.OTHER:
            raise PolicyError(
                f"table {self.name!r}: the unit column {column!r} is of type {self.physical[found]}; a unit is named "
                "by text, whole numbers, a UUID or a date."
            )
        # 0.0 and -0.0 are one unit.
        return f"({sql} + 0.0)" if kind is Kind.NUMBER else sql

    def _kind_and_sql(self, column: str) -> tuple[Kind, str]:
        kind, sql = _normalised(self.physical[column], quote(column))
        wanted = self.types.get(column)
        if kind is Kind.NULL and wanted is None:
            wanted = _kind_declared(self.declared.get(column))
        if wanted is None or wanted is kind:
            return kind, sql
        if kind is Kind.NULL:
            return wanted, f"CAST(NULL AS {_CASTS[wanted]})"
        if kind is Kind.TEXT:
            return wanted, _not_nan(f"TRY_CAST({sql} AS {_CASTS[wanted]})", wanted)
        if (kind, wanted) in (
            (Kind.INTEGER, Kind.NUMBER),
            (Kind.DATE, Kind.TIMESTAMP),
        ) or wanted is Kind.TEXT:
            return wanted, f"TRY_CAST({sql} AS {_CASTS[wanted]})"
        raise PolicyError(
            f"table {self.name!r}: column {column!r} is declared as {wanted.value}, but the source says {kind.value}."
        )


def _kind_declared(what: Declaration | None) -> Kind | None:
    match what:
        case Between(numeric=True):
            return Kind.NUMBER
        case Between():
            return Kind.TIMESTAMP
        case OneOf(values=values):
            first = next((v for v in values if v is not None), None)
            if isinstance(first, bool):
                return Kind.BOOLEAN
            if isinstance(first, int | float):
                return Kind.NUMBER
            return Kind.TEXT if isinstance(first, str) or first is None else Kind.TIMESTAMP
    return None


def _not_nan(sql: str, kind: Kind) -> str:
    return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END)" if kind is Kind.NUMBER else sql


def _normalised(physical: str, sql: str) -> tuple[Kind, str]:
    """The kind of a physical type, and an expression that is total: NaN is NULL, wide types are cast safely."""
    base = physical.split("(")[0].strip('"').upper()
    if base in _INTEGERS:
        return Kind.INTEGER, f"CAST({sql} AS BIGINT)"
    if base in ("UBIGINT", "HUGEINT"):
        return Kind.INTEGER, f"CAST({sql} AS HUGEINT)"
    if base in ("DOUBLE", "FLOAT"):
        return Kind.NUMBER, _not_nan(f"CAST({sql} AS DOUBLE)", Kind.NUMBER)
    if base in ("DECIMAL", "UHUGEINT"):
        return Kind.NUMBER, f"TRY_CAST({sql} AS DOUBLE)"
    if base in ("VARCHAR", "ENUM", "UUID"):
        return Kind.TEXT, f"CAST({sql} AS VARCHAR)"
    if base == "BOOLEAN":
        return Kind.BOOLEAN, sql
    if base == "DATE":
        return Kind.DATE, sql
    if base in _TIMESTAMPS:
        return Kind.TIMESTAMP, f"TRY_CAST({sql} AS TIMESTAMP)"
    if base == "TIMESTAMP WITH TIME ZONE":
        return Kind.TIMESTAMP, f"make_timestamp(epoch_us({sql}))"
    if base == "NULL":
        return Kind.NULL, "NULL"
    return Kind.OTHER, "NULL"


def describe(source: str | Path, table: str | None = None) -> list[tuple[str, str]]:
    """Column names and kinds of a file, from its metadata; every column of a CSV is text.

    Raises PolicyError for a file that is missing or of another type.
    """
    declared = PublicTable(source=os.fspath(source), inner_table=table, types={"": Kind.TEXT})
    with duckdb.connect(config=_SHUT) as con:
        _, physical = _relation(con, 0, Path(source).stem, declared, {})
    return [(name, _normalised(kind, "")[0].value) for name, kind in physical.items()]


def locked_memory(tables: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """A separate in-memory DuckDB that holds the given Arrow tables and can reach nothing else."""
    con = duckdb.connect(config=_SHUT)
    for i, (name, arrow) in enumerate(tables.items()):
        con.register(f"incoming{i}", arrow)
        con.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM incoming{i}")
        con.unregister(f"incoming{i}")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
    return con


def public_tables(tables: Mapping[str, PublicTable], sql: str) -> Any:
    """Run a statement over public tables in a DuckDB that holds only them; an Arrow table.

    Raises QueryError with DuckDB's own words: nothing here is private.
    """
    with duckdb.connect(config=_SHUT) as reader:
        loaded = {}
        for i, (name, table) in enumerate(tables.items()):
            relation, physical = _relation(reader, i, name, table, {})
            fields = _Fields(name, physical, dict(table.types), {})
            columns = ", ".join(
                f"{fields.expressions()[c] if table.types else quote(c)} AS {quote(c)}" for c in physical
            )
            loaded[name] = reader.sql(f"SELECT {columns} FROM {relation}").to_arrow_table()
    with locked_memory(loaded) as con:
        try:
            return con.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(f"the engine refuses this statement: {str(error).splitlines()[0]}") from None


def image(expression: Expression, columns: Mapping[Column, tuple[Scalar, ...]]) -> list[Scalar]:
    """The value of an expression for every combination of declared values, the last column fastest."""
    tables = {
        f"values{i}": pa.table({"place": range(len(values)), "value": pa.array(values, arrow_type(column.kind))})
        for i, (column, values) in enumerate(columns.items())
    }
    with locked_memory(tables) as con:
        rows = con.execute(image_sql(expression, list(columns))).fetchall()
    return [row[0] for row in rows]


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type that holds values of a kind."""
    return {
        Kind.INTEGER: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
    }[kind]
