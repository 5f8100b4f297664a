"""Postgres: rows stay in the database; the question goes there, and bounded integers by group come back.

A role that may only SELECT is enough: no table is made, no function. Each question runs in a transaction of its own,
READ ONLY and REPEATABLE READ, so that all its texts see one state, under settings of its own, which are read back
(`hubbub.engines.postgres.settings`). Public relations travel as parameters.

What may be a table is a list (`hubbub.engines.postgres.catalog`): base tables, unless the declaration says
`trusted_view`. Units and texts are compared byte by byte (COLLATE "C"), whatever the database's collation.

A password is read from the address, `PGPASSWORD`, a service file or `~/.pgpass`, and never shown: an error of the
server is told as an incident alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import psycopg.rows

from hubbub.addresses import raise_alone
from hubbub.engines.base import Exact, Located, Schema
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.exact import exact
from hubbub.engines.fields import Fields
from hubbub.engines.postgres.catalog import Found, kin_of, look, never_null, refuse_hidden, server_of, steady, strayed
from hubbub.engines.postgres.dialect import Postgres
from hubbub.engines.postgres.settings import ALONE, COLUMNS, LONG, MANY, NAME, SORTED, Kept, begin, connect, limit
from hubbub.engines.stopping import asker
from hubbub.errors import EngineError, PolicyError, QueryError
from hubbub.ledger.places import INSIDE
from hubbub.remedies import DeclareOption
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql, listed_sql, summed
from hubbub.sql.emit.rows import rows_sql
from hubbub.sql.emit.widest import widest
from hubbub.tables.declare import EachRow, PrivateTable, PublicTable
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Plan
from hubbub.tables.relations import Combine, PublicRelation, Relation, Scan, below, leaves, scans
from hubbub.tables.remote import PostgresAddress

__all__ = ["PostgresEngine"]

_TOO_MUCH = "54"
"""The class of what the server says of a text with too many columns, or nested too deeply."""
_NOT_BOUND = ("0A", "42")
"""The classes of what it says of a text that it cannot bind."""
_PATIENCE, _PAUSE = 30.0, 0.05
_END_EARLIER = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = %s AND usename = session_user AND pid <> pg_backend_pid()"""
_BYTEWISE = ' COLLATE "C"'


@dataclass(frozen=True)
class _Known:
    """A table of the database: where, its columns and unit as expressions, and what it looked like."""

    address: PostgresAddress
    table: str
    columns: Mapping[str, str]
    unit: str | None
    fields: Fields
    relation: Found
    trusted: bool
    server: str
    kin: frozenset[int]


class PostgresEngine:
    """The engine of a session whose private tables are in one Postgres database. Safe to use from several threads."""

    returns_rows = False

    def __init__(self) -> None:
        self._local = DuckDBEngine()  # for public tables, which may be files
        self._known: dict[str, _Known] = {}
        self._running: dict[psycopg.Connection[Any], object] = {}  # each with its asker
        self._lock = threading.Lock()
        self._dialect: Postgres | None = None
        self._until: float | None = None  # by when the server ends what it runs for us

    def limit(self, seconds: float) -> None:
        """From here on, have the server end a statement so many seconds from now."""
        self._until = time.monotonic() + seconds

    def end_earlier(self) -> None:
        """End what earlier processes under this one's name left running in the server, and wait until it has ended.

        Only where this process has a name of its own (`settings.NAME`).

        Raises PolicyError where it does not end.
        """
        name, known = os.environ.get(NAME), next(iter(self._known.values()), None)
        if name is None or known is None:
            return
        until = time.monotonic() + _PATIENCE
        with self._reading(known.address, known.table) as con:
            while con.execute(_END_EARLIER, (name[:63],)).fetchall():
                if time.monotonic() > until:
                    raise PolicyError(
                        f"a statement of an earlier run does not end in {known.address}. See to the server, and start "
                        "again."
                    )
                time.sleep(_PAUSE)

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        """Make a declared table known; reads the catalogue, no rows.

        Raises PolicyError where the database cannot be reached, or the table is missing, is not a base table, or
        contradicts its declaration.
        """
        if isinstance(table, PublicTable):
            return self._local.add(name, table)
        address, inner = table.source, table.inner_table
        if not isinstance(address, PostgresAddress):
            raise PolicyError(f"table {name!r}: a session's private tables are all in Postgres, or none is.")
        if not inner:
            way = DeclareOption("table", tables=(name,))
            raise PolicyError(
                f"table {name!r}: which table of {address}? Declare {way.in_python()}, as in 'schema.name'.", remedy=way
            )
        if any(known.address.url != address.url for known in self._known.values()):
            raise PolicyError(f"table {name!r} is in another database than the session's other private tables.")
        with self._reading(address, name) as con:
            relation = look(con, name, inner, trusted=table.trusted_view)
            if self._dialect is None:
                encoding = con.info.parameter_status("server_encoding") or ""
                self._dialect = Postgres("und-x-icu" if _has_icu(con) else "C", encoding=encoding)
            server, kin = server_of(con), kin_of(con, relation)
            kept = never_null(con, relation)
            if table.trusted_view:
                _try(con, name, inner, relation)
        named = [] if isinstance(table.unit, EachRow) or table.path is not None else [table.unit]
        named += [table.path[0]] if table.path is not None else []
        refuse_hidden(name, inner, relation, [*table.columns, *table.types, *named])
        fields = Fields(name, relation.physical, dict(table.types), table.columns, self._dialect)
        fields.check_names()
        unit, unit_column = None, None
        if not isinstance(table.unit, EachRow) and table.path is None:
            unit_column, unit = fields.unit(table.unit)
        self._known[name] = _Known(
            address, inner, fields.expressions(), unit, fields, relation, table.trusted_view, server, kin
        )
        unit_type = fields.unit_type(unit_column) if unit_column is not None else None
        return Schema(fields.kinds(), unit_column, unit_type, kept, fields.zoned())

    def located(self, name: str) -> Located:
        """Where the server says that a table is: by every address, and with or without its schema, it is one place."""
        known = self._known.get(name)
        if known is None:
            return Located()
        relation = known.relation
        older = (f"{relation.schema}.{relation.table}", *([relation.table] if relation.schema == "public" else []))
        # The rows of a partition are rows of its parent, and its people are those of the other partitions.
        here = frozenset((known.server, part) for part in known.kin)
        return Located(f"{known.server}{INSIDE}{relation.relation}", relation.relation, older, here)

    def seal(self) -> None:
        """After the last `add`."""
        self._local.seal()

    def recheck(self, name: str) -> None:
        """Raises PolicyError where the columns of a table are no longer those that the session was opened on."""
        self.mark(name)

    def mark(self, name: str) -> str | None:
        """What changes when a table is emptied or written anew (its file in the database), and with the database.

        No rows are read.

        Raises PolicyError where its columns have changed.
        """
        known = self._known.get(name)
        if known is None:
            return None
        with self._reading(known.address, name) as con:
            relation = look(con, name, known.table, trusted=known.trusted)
        if not relation.reads_as(known.relation):
            raise PolicyError(
                f"the columns of the table {name!r} have changed; open a new session. Nothing was charged."
            )
        # Numbers of tables and files are a database's own, and those of one that was copied are its original's.
        return f"{known.server} {relation.relation} {relation.mark}"

    def compile(self, plan: Plan) -> str:
        """The SQL text that `run` runs (beside one for each list of values, if quantiles are asked)."""
        return aggregate_sql(plan, self._places(plan), self._written())

    def texts(self, plan: Plan) -> tuple[list[int], list[str]]:
        """The measurements that are not sums, and the texts: one for each of them, then that of the sums if any."""
        places, dialect = self._places(plan), self._written()
        listed = [i for i, m in enumerate(plan.measurements) if not summed(m)]
        texts = [listed_sql(plan, places, i, dialect) for i in listed]
        if len(listed) < len(plan.measurements) or plan.private_keys:
            texts.append(aggregate_sql(plan, places, dialect))
        return listed, texts

    def _written(self) -> Postgres:
        return self._dialect or Postgres()

    def _places(self, plan: Plan) -> dict[str, Place]:
        return self._places_of({scan.table for scan in scans(plan.question.relation)})

    def _places_of(self, names: Collection[str]) -> dict[str, Place]:
        return {
            n: Place(k.relation.relation, k.columns, k.unit, k.fields.key) for n, k in self._known.items() if n in names
        }

    def prepare(self, plan: Plan) -> None:
        """Whether the server takes every text of a plan: it reads and binds them, and plans and runs none.

        It may not: a text has more columns than a row can hold, or is nested deeper than its stack. A server that
        cannot be asked is for `run` to find.

        Raises QueryError where a text would grow beyond all use, or the server does not take it.
        """
        _, texts = self.texts(plan)
        if any(widest(text) > COLUMNS for text in texts):
            raise _too_large("54011")
        stubs = {leaf.place: leaf.columns for leaf in leaves(plan.question.relation)}
        con = None
        try:
            con = connect(self._known[plan.question.tables[0]].address.url)
            with self._lock:
                self._running[con] = asker()
            begin(con, lock_timeout="1s")  # a table that is locked is for `run` to wait for
            for i, text in enumerate(texts):
                con.execute(f"PREPARE asked{i} AS {_with_stubs(text, stubs, self._written())}".encode())
        except Kept as kept:
            raise QueryError(
                f"the database cannot be asked as answers need it: {kept.words}. Nothing was charged."
            ) from None
        except psycopg.Error as error:
            # Data exceptions and lost connections have other classes; here no row was read.
            state = error.sqlstate or ""
            if state.startswith(_TOO_MUCH):
                raise _too_large(state) from None
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
        names = sorted({scan.table for scan in scans(plan.question.relation)})
        statements = [_with_public(text, public or {}, self._written()) for text in texts]
        answers = self._answers(names, statements, compares=_compares(plan.question.relation))
        if answers is None:
            raise EngineError(uuid.uuid4().hex[:12])
        main = answers[-1] if len(texts) > len(listed) else []
        return exact(plan, main, dict(zip(listed, answers, strict=False)))

    def totals(
        self, scan: Scan, columns: Sequence[str], write: Callable[[str, Any], str], public: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """The rows of a text of sums over the owned rows of a table (`InPlace`).

        Raises EngineError, with an incident id alone, if the server fails.
        """
        names, dialect = sorted({one.table for one in scans(scan)}), self._written()
        text = write(rows_sql(scan, self._places_of(names), columns, dialect), dialect)
        answers = self._answers(names, [_with_public(text, public, dialect)])
        if answers is None:
            raise EngineError(uuid.uuid4().hex[:12])
        return answers[0]

    def _answers(
        self, names: Sequence[str], statements: Sequence[tuple[str, list[Any]]], *, compares: bool = False
    ) -> list[list[tuple[Any, ...]]] | None:
        """The rows of each statement, in one state of the database; None if it failed, for whatever reason.

        A table that has changed since it was looked at before the charge is such a reason. compares: whether they have
        INTERSECT or EXCEPT.
        """
        address = self._known[names[0]].address
        known = [(self._known[name].relation, self._known[name].trusted) for name in names]
        con = None
        try:
            con = connect(address.url)
            with self._lock:
                self._running[con] = asker()
            locked = steady(con, known)
            if locked is None:
                return None
            if compares:
                con.execute(SORTED)
            if any(len(text) > LONG or _bytes(values) > MANY for text, values in statements):
                con.execute(ALONE)
            cursor, tables = psycopg.RawCursor(con), []
            for text, values in statements:
                if self._until is not None:
                    limit(con, self._until - time.monotonic())
                tables.append(cursor.execute(text.encode(), values).fetchall())
            # What a trusted view calls may read tables of its own.
            return None if strayed(con, locked) and not any(trusted for _, trusted in known) else tables
        except Exception:  # its words may hold rows: nothing of it goes further
            return None
        finally:
            self._let_go(con)

    def _let_go(self, con: psycopg.Connection[Any] | None) -> None:
        if con is not None:
            with self._lock:
                self._running.pop(con, None)
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

    def interrupt(self, asker: object = None) -> None:
        """Stop what is running; or, of that, only what runs for one asker."""
        with self._lock:
            running = [con for con, whose in self._running.items() if asker is None or whose is asker]
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
            con = connect(address.url)
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


def _compares(node: Relation | PublicRelation) -> bool:
    """Whether a relation has INTERSECT or EXCEPT somewhere."""
    own = isinstance(node, Combine) and node.op not in ("UNION", "UNION ALL")
    return own or any(map(_compares, below(node)))


def _try(con: psycopg.Connection[Any], name: str, inner: str, relation: Found) -> None:
    """A view as a question will read it, without its rows: what cannot work is refused before it is charged.

    Raises PolicyError where the server refuses: rights, row security below the view, a name that is not found.
    """
    state = None
    try:
        con.execute(relation.empty())
    except psycopg.Error as error:
        state = error.sqlstate or "no answer"
    if state is not None:
        raise PolicyError(
            f"table {name!r}: {inner!r} cannot be read as questions read it ({state}). May this role SELECT from it, "
            "is it filled, does row security bind nobody below it, and does it name its schemas? Nothing was charged."
        )


def _has_icu(con: psycopg.Connection[Any]) -> bool:
    return con.execute("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'").fetchone() is not None


def _too_large(state: str) -> QueryError:
    return QueryError(
        "this question is larger than the server takes (at most 1,664 columns in each step, with what rows are sorted "
        f"by, and a limited depth; {state}). Ask for fewer aggregates at a time. Nothing was charged."
    )


def _bytes(values: Sequence[Any]) -> int:
    """About how many bytes the columns of public tables have that are sent with a text."""
    columns = [column for column in values if isinstance(column, list)]
    return sum(16 * len(column) + sum(len(one) for one in column if isinstance(one, str | bytes)) for column in columns)


def _with_public(text: str, public: Mapping[str, Any], dialect: Postgres) -> tuple[str, list[Any]]:
    """A statement with each public relation as a stage before its own, whose rows are parameters."""
    stages, values = [], []
    for place, table in public.items():
        arrays, shown = [], []
        for i, (field, column) in enumerate(zip(table.schema, table.columns, strict=True)):
            values.append([_sendable(v, dialect) for v in column.to_pylist()])
            kind, own = _array_of(str(field.type)), dialect.leaf_column(field.name, i)
            arrays.append(f"${len(values)}::{kind}[]")
            shown.append(f"{dialect.column_text(own)} AS {own}" if kind == "text" else own)
        names = ", ".join(dialect.leaf_column(n, i) for i, n in enumerate(table.column_names))
        stages.append(
            f"{place} AS (\n  SELECT {', '.join(shown)}\n  FROM unnest({', '.join(arrays)}) AS u({names})\n),\n"
        )
    return f"WITH {''.join(stages)}{text.removeprefix('WITH ')}", values


def _with_stubs(text: str, stubs: Mapping[str, Mapping[str, Kind]], dialect: Postgres) -> str:
    """A statement with each public relation as a stage without rows."""
    stages = []
    for place, columns in stubs.items():
        shown = ", ".join(
            f"{dialect.null(kind)}{_BYTEWISE if kind is Kind.TEXT else ''} AS {dialect.leaf_column(name, i)}"
            for i, (name, kind) in enumerate(columns.items())
        )
        stages.append(f"{place} AS (\n  SELECT {shown}\n),\n")
    return f"WITH {''.join(stages)}{text.removeprefix('WITH ')}"


def _sendable(value: Any, dialect: Postgres) -> Any:
    """A public value; NULL for a text that the database cannot hold, which no row of it is equal to."""
    return None if isinstance(value, str) and not dialect.holds(value) else value


def _array_of(arrow: str) -> str:
    """The type of a public column, from that of Arrow (one of those of the six kinds)."""
    types = {"int64": "bigint", "double": "double precision", "bool": "boolean", "date32[day]": "date"}
    return "timestamp" if arrow.startswith("timestamp") else types.get(arrow, "text")
