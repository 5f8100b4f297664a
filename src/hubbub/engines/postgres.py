"""Postgres: rows stay in the database; the question goes there, and bounded integers by group come back.

A role that may only SELECT is enough: no table is made, no function. Each question runs in a transaction of its own,
READ ONLY and REPEATABLE READ, so that all its texts see one state, with settings of its own (`SETTINGS`): only
`pg_catalog` is searched, so an operator of the database's owner is never met. Public relations travel as parameters.

Base tables only, unless the declaration says `trusted_view`: a view, a foreign table or a generated column can mix rows
of several people. A table whose row security binds the role is refused in any case. Units and texts are compared byte
by byte (COLLATE "C"), whatever the database's collation.

A password is read from the address, `PGPASSWORD`, a service file or `~/.pgpass`, and never shown: an error of the
server is told as an incident alone.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import psycopg.rows

from hubbub.addresses import raise_alone
from hubbub.engines.contract import Exact, Schema
from hubbub.engines.duckdb import DuckDBEngine
from hubbub.engines.exact import exact
from hubbub.engines.fields import Fields
from hubbub.engines.sources import not_trusted
from hubbub.errors import EngineError, PolicyError, QueryError
from hubbub.sql.compile import Place, aggregate_sql, listed_sql, summed
from hubbub.sql.dialect_postgres import Postgres
from hubbub.sql.scope import did_you_mean
from hubbub.tables.declare import EachRow, PrivateTable, PublicTable
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Plan
from hubbub.tables.relations import Scan, leaves, scans
from hubbub.tables.remote import PostgresAddress

__all__ = ["PostgresEngine"]

SETTINGS = """SET LOCAL search_path = pg_catalog;
SET LOCAL timezone = 'UTC';
SET LOCAL datestyle = 'ISO, YMD';
SET LOCAL extra_float_digits = 1;
SET LOCAL standard_conforming_strings = on;
SET LOCAL row_security = off;
SET LOCAL client_min_messages = error"""

_PHYSICAL = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "numeric": "DECIMAL",
    "text": "VARCHAR",
    "character varying": "VARCHAR",
    "character": "VARCHAR",
    "name": "VARCHAR",
    "citext": "VARCHAR",
    "uuid": "UUID",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP WITH TIME ZONE",
    "time without time zone": "TIME",
    "bytea": "BLOB",
}
"""Postgres's types under the names that `hubbub.engines.fields` knows; any other cannot be named by a question."""

_BELOW = """EXISTS (WITH RECURSIVE below AS (
      SELECT c.oid AS part UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN below ON i.inhparent = below.part)
    SELECT 1 FROM below JOIN {})"""
"""Whether a table or one of its children and partitions, of any depth, has something: SELECT reads them all."""
_TABLE = f"""SELECT c.oid, n.nspname, c.relname, c.relkind, c.relfilenode, row_security_active(c.oid),
  {_BELOW.format("pg_class AS p ON p.oid = below.part WHERE p.relkind = 'f'")},
  {_BELOW.format("pg_attribute AS a ON a.attrelid = below.part WHERE a.attgenerated <> '' AND NOT a.attisdropped")},
  CASE WHEN c.relkind IN ('v', 'm') THEN md5(pg_get_viewdef(c.oid)) END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(CASE WHEN %(schema)s = '' THEN format('%%I', %(name)s::text)
                               ELSE format('%%I.%%I', %(schema)s::text, %(name)s::text) END)"""
_COLUMNS = """SELECT a.attname, CASE WHEN t.typtype = 'e' THEN 'text'
    ELSE format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL) END, a.attgenerated <> ''
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_NAMES = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = to_regnamespace(%s)"
_TOO_MUCH = "54"
"""The class of what the server says of a text with too many columns, or nested too deeply."""
_NOT_BOUND = ("0A", "42")
"""The classes of what it says of a text that it cannot bind."""
_BYTEWISE = ' COLLATE "C"'
_KINDS = {"v": "is a view", "m": "is a materialised view", "f": "is a foreign table"}


@dataclass(frozen=True)
class _Known:
    """A table of the database: where, its columns and unit as expressions, and what it looked like."""

    address: PostgresAddress
    table: str
    relation: str
    columns: Mapping[str, str]
    unit: str | None
    physical: Mapping[str, str]
    trusted: bool


@dataclass(frozen=True)
class _Found:
    relation: str
    physical: dict[str, str]
    mark: str


class PostgresEngine:
    """The engine of a session whose private tables are in one Postgres database. Safe to use from several threads."""

    def __init__(self) -> None:
        self._local = DuckDBEngine()  # for public tables, which may be files
        self._known: dict[str, _Known] = {}
        self._running: set[psycopg.Connection[Any]] = set()
        self._lock = threading.Lock()
        self._dialect: Postgres | None = None

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        """Make a declared table known; reads the catalogue, no rows.

        Raises PolicyError where the database cannot be reached, or the table is missing, is no base table, or
        contradicts its declaration.
        """
        if isinstance(table, PublicTable):
            return self._local.add(name, table)
        address, inner = table.source, table.inner_table
        if not isinstance(address, PostgresAddress):
            raise PolicyError(f"table {name!r}: a session's private tables are all in Postgres, or none is.")
        if not inner:
            raise PolicyError(f"table {name!r}: which table of {address}? Declare table='schema.name'.")
        if any(known.address.url != address.url for known in self._known.values()):
            raise PolicyError(f"table {name!r} is in another database than the session's other private tables.")
        with self._reading(address, name) as con:
            if self._dialect is None:
                self._dialect = Postgres("und-x-icu" if _has_icu(con) else "C")
            found = self._look(con, name, inner, trusted=table.trusted_view)
            if table.trusted_view:
                _try(con, name, inner, found)
        fields = Fields(name, found.physical, dict(table.types), table.columns, self._dialect)
        fields.check_names()
        unit, unit_column = None, None
        if not isinstance(table.unit, EachRow) and table.path is None:
            unit_column, unit = fields.unit(table.unit)
        self._known[name] = _Known(
            address, inner, found.relation, fields.expressions(), unit, found.physical, table.trusted_view
        )
        unit_type = fields.unit_type(unit_column) if unit_column is not None else None
        return Schema(fields.kinds(), unit_column, unit_type)

    def seal(self) -> None:
        """After the last `add`."""
        self._local.seal()

    def recheck(self, name: str) -> None:
        """Raises PolicyError where the columns of a table are no longer those that the session was opened on."""
        self.mark(name)

    def mark(self, name: str) -> str | None:
        """What changes when a table is emptied or written anew (its file in the database); no rows are read.

        Raises PolicyError where its columns have changed.
        """
        known = self._known.get(name)
        if known is None:
            return None
        with self._reading(known.address, name) as con:
            found = self._look(con, name, known.table, trusted=known.trusted)
        if found.physical != known.physical or found.relation != known.relation:
            raise PolicyError(
                f"the columns of the table {name!r} have changed; open a new session. Nothing was charged."
            )
        return found.mark

    def compile(self, plan: Plan) -> str:
        """The SQL text that `run` runs (beside one for each list of values, if quantiles are asked)."""
        return aggregate_sql(plan, self._places(plan), self._written())

    def texts(self, plan: Plan) -> tuple[list[int], list[str]]:
        """The measurements that are no sums, and the texts: one for each of them, then that of the sums if any."""
        places, dialect = self._places(plan), self._written()
        listed = [i for i, m in enumerate(plan.measurements) if not summed(m)]
        texts = [listed_sql(plan, places, i, dialect) for i in listed]
        if len(listed) < len(plan.measurements) or plan.private_keys:
            texts.append(aggregate_sql(plan, places, dialect))
        return listed, texts

    def _written(self) -> Postgres:
        return self._dialect or Postgres()

    def _places(self, plan: Plan) -> dict[str, Place]:
        names = {scan.table for scan in scans(plan.question.relation)}
        return {n: Place(k.relation, k.columns, k.unit) for n, k in self._known.items() if n in names}

    def prepare(self, plan: Plan) -> None:
        """Whether the server takes every text of a plan: it reads and binds them, and plans and runs none.

        It may not: a text has more columns than a row can hold, or is nested deeper than its stack. A server that
        cannot be asked is for `run` to find.

        Raises QueryError where a text would grow beyond all use, or the server does not take it.
        """
        _, texts = self.texts(plan)
        stubs = {leaf.place: leaf.columns for leaf in leaves(plan.question.relation)}
        con = None
        try:
            con = _connect(self._known[plan.tables[0]].address)
            with self._lock:
                self._running.add(con)
            con.execute("BEGIN READ ONLY")
            con.execute(f"{SETTINGS}; SET LOCAL lock_timeout = '1s'")  # a table that is locked is for `run` to wait for
            for i, text in enumerate(texts):
                con.execute(f"PREPARE asked{i} AS {_with_stubs(text, stubs, self._written())}".encode())
        except psycopg.Error as error:
            # Data exceptions and lost connections have other classes; here no row was read.
            state = error.sqlstate or ""
            if state.startswith(_TOO_MUCH):
                raise QueryError(
                    "this question is larger than the server takes (at most 1,664 columns in each step, and a limited "
                    f"depth; {state}). Ask for fewer aggregates at a time. Nothing was charged."
                ) from None
            if state.startswith(_NOT_BOUND):
                raise QueryError(
                    f"the server does not take this form of question ({state}); ask in another way. Nothing was "
                    "charged."
                ) from None
        finally:
            self._let_go(con)

    def run(self, plan: Plan, public: Mapping[str, Any] | None = None) -> Exact:
        """Run the private part of a question.

        Raises EngineError, with an incident id alone, whatever the server says: its words may hold rows.
        """
        listed, texts = self.texts(plan)
        found = self._answers(plan, [_with_public(text, public or {}, self._written()) for text in texts])
        if found is None:
            raise EngineError(uuid.uuid4().hex[:12])
        main = found[-1] if len(texts) > len(listed) else []
        return exact(plan, main, dict(zip(listed, found, strict=False)))

    def _answers(self, plan: Plan, statements: Sequence[tuple[str, list[Any]]]) -> list[list[tuple[Any, ...]]] | None:
        """The rows of each statement, in one state of the database; None if it failed, for whatever reason."""
        address = self._known[plan.tables[0]].address
        con = None
        try:
            con = _connect(address)
            with self._lock:
                self._running.add(con)
            con.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            con.execute(SETTINGS)
            cursor = psycopg.RawCursor(con)
            return [cursor.execute(text.encode(), values).fetchall() for text, values in statements]
        except Exception:  # its words may hold rows: nothing of it goes further
            return None
        finally:
            self._let_go(con)

    def _let_go(self, con: psycopg.Connection[Any] | None) -> None:
        if con is not None:
            with self._lock:
                self._running.discard(con)
            con.close()

    def words(self, incident: str) -> str | None:
        """What the database said of an incident is in its own log."""
        return None

    def rows(self, scan: Scan, columns: Sequence[str]) -> Any:
        """Raises PolicyError: rows never leave the database."""
        raise PolicyError(
            f"the rows of {scan.table!r} stay in their database: synthetic tables and sets of marginals are made of "
            "files and frames."
        )

    def interrupt(self) -> None:
        """Stop what is running."""
        with self._lock:
            running = list(self._running)
        for con in running:
            with contextlib.suppress(psycopg.Error):
                con.cancel_safe(timeout=5)

    def close(self) -> None:
        """Stop what is running and release everything."""
        self.interrupt()
        self._local.close()

    @contextlib.contextmanager
    def _reading(self, address: PostgresAddress, name: str) -> Iterator[psycopg.Connection[Any]]:
        """A connection to look at the catalogue with."""
        con = state = None
        try:
            con = _connect(address)
            yield con
        except psycopg.Error as error:
            state = error.sqlstate or "no answer"
        except ValueError:
            if con is not None:
                raise
            state = "the host's name in it is not one"  # Python's own words here hold the whole address
        finally:
            if con is not None:
                con.close()
        if state is not None:
            raise_alone(
                PolicyError(
                    f"table {name!r}: {address} cannot be read ({state}). Is the server up, may this role connect and "
                    "SELECT, and is a password in PGPASSWORD, a service file or ~/.pgpass? Nothing was charged."
                )
            )

    def _look(self, con: psycopg.Connection[Any], name: str, inner: str, *, trusted: bool) -> _Found:
        """A table by its name in the database, from the catalogue.

        Raises PolicyError for one that is missing, or is no base table and not trusted.
        """
        schema, _, bare = inner.rpartition(".")
        row = con.execute(_TABLE, {"schema": schema, "name": bare}).fetchone()
        if row is None:
            names = [r[0] for r in con.execute(_NAMES, [schema or "public"]).fetchall()]
            raise PolicyError(f"table {name!r}: the database has no table {inner!r}. {did_you_mean(bare, names)}")
        oid, space, relname, relkind, filenode, secured, foreign, generated, defined = row
        columns = con.execute(_COLUMNS, [oid]).fetchall()
        if relkind not in _KINDS and relkind not in ("r", "p"):
            raise PolicyError(f"table {name!r}: {inner!r} is no table.")
        if secured:
            raise PolicyError(
                f"table {name!r}: {inner!r} has row security for this role, whose policies can look at other people's "
                "rows; name a role that it does not bind."
            )
        problem = _KINDS.get(relkind)
        if foreign and problem is None:
            problem = "has parts that are foreign tables"
        if generated and problem is None:
            own = any(generated_here for _, _, generated_here in columns)
            problem = "has generated columns" if own else "has parts with generated columns"
        if problem is not None and not trusted:
            raise not_trusted(name, inner, problem)
        dialect = self._written()
        physical = {column: _PHYSICAL.get(kind, kind) for column, kind, _ in columns}
        mark = f"{oid} {filenode}" if defined is None else f"{oid} {filenode} {defined}"
        return _Found(f"{dialect.quote(space)}.{dialect.quote(relname)}", physical, mark)


def _try(con: psycopg.Connection[Any], name: str, inner: str, found: _Found) -> None:
    """A view as a question will read it, without its rows: what cannot work is refused before it is charged.

    Raises PolicyError where the server refuses: rights, row security below the view, a name that is not found.
    """
    state = None
    try:
        con.execute("BEGIN READ ONLY")
        con.execute(SETTINGS)
        con.execute(f"SELECT * FROM {found.relation} LIMIT 0".encode())
    except psycopg.Error as error:
        state = error.sqlstate or "no answer"
    finally:
        con.execute("ROLLBACK")
    if state is not None:
        raise PolicyError(
            f"table {name!r}: {inner!r} cannot be read as questions read it ({state}). May this role SELECT from it, "
            "is it filled, does row security bind nobody below it, and does it name its schemas? Nothing was charged."
        )


def _connect(address: PostgresAddress) -> psycopg.Connection[Any]:
    return psycopg.connect(address.url, autocommit=True, connect_timeout=10, application_name="hubbub")


def _has_icu(con: psycopg.Connection[Any]) -> bool:
    return con.execute("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'").fetchone() is not None


def _with_public(text: str, public: Mapping[str, Any], dialect: Postgres) -> tuple[str, list[Any]]:
    """A statement with each public relation as a stage before its own, whose rows are parameters."""
    stages, values = [], []
    for place, table in public.items():
        arrays = []
        for field, column in zip(table.schema, table.columns, strict=True):
            values.append([_sendable(v) for v in column.to_pylist()])
            arrays.append(f"${len(values)}::{_array_of(str(field.type))}[]")
        names = ", ".join(dialect.quote(n) for n in table.column_names)
        shown = ", ".join(
            f"{dialect.column_text(dialect.quote(f.name))} AS {dialect.quote(f.name)}"
            if _array_of(str(f.type)) == "text"
            else dialect.quote(f.name)
            for f in table.schema
        )
        stages.append(f"{place} AS (\n  SELECT {shown}\n  FROM unnest({', '.join(arrays)}) AS u({names})\n),\n")
    return f"WITH {''.join(stages)}{text.removeprefix('WITH ')}", values


def _with_stubs(text: str, stubs: Mapping[str, Mapping[str, Kind]], dialect: Postgres) -> str:
    """A statement with each public relation as a stage without rows."""
    stages = []
    for place, columns in stubs.items():
        shown = ", ".join(
            f"{dialect.null(kind)}{_BYTEWISE if kind is Kind.TEXT else ''} AS {dialect.quote(name)}"
            for name, kind in columns.items()
        )
        stages.append(f"{place} AS (\n  SELECT {shown}\n),\n")
    return f"WITH {''.join(stages)}{text.removeprefix('WITH ')}"


def _sendable(value: Any) -> Any:
    return value.replace("\0", "\uffff") if isinstance(value, str) else value


def _array_of(arrow: str) -> str:
    """The type of a public column, from that of Arrow (one of those of the six kinds)."""
    found = {"int64": "bigint", "double": "double precision", "bool": "boolean", "date32[day]": "date"}
    return "timestamp" if arrow.startswith("timestamp") else found.get(arrow, "text")
