"""What the catalogue of a Postgres database says of a table: where it is, its columns, whether it may be a source.

What may be one is a list: ordinary and partitioned tables that people made, stored as the server stores them itself
(`heap`), with parts of the same sort, without generated columns, bound by no row security. Anything else (views,
foreign tables, tables of other storage) needs `trusted_view`, or is none. Types are known by the catalogue they
come from, not by name alone: a type that somebody calls "text" is not one. Columns that the role may not read are
left out. All of it is asked for under the settings that questions have (`postgres_settings`).

What was seen before a charge may be something else when its question runs, so a run looks again (`steady`), and says
at its end whether it read what it had looked at and nothing else (`strayed`). In a REPEATABLE READ transaction the
catalogue that a SELECT shows is that of the transaction's snapshot, and the one by which texts are read is the newest.
The snapshot is taken before a table is locked, and the wait for the lock may be long. So a look is believed only if
the transaction before it saw the same *versions* of the same rows of the catalogue: xmin, and xmax, which is read as
it stands on the page, not as of the snapshot. Then nothing was changed between snapshot and lock, and the lock keeps
it so. LOCK TABLE, which needs no snapshot, does not serve: it asks for a right on the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from hubbub.engines.base_tables import not_trusted
from hubbub.engines.postgres.dialect import POSTGRES
from hubbub.engines.postgres.settings import Kept, begin
from hubbub.errors import PolicyError
from hubbub.remedies import CorrectName
from hubbub.spelling import meant_by
from hubbub.sql.bind.scope import did_you_mean

__all__ = ["TYPES", "Found", "kin_of", "look", "never_null", "refuse_hidden", "server_of", "steady", "strayed"]

TYPES = {
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
    "enum": "ENUM",
    "uuid": "UUID",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP WITH TIME ZONE",
    "time without time zone": "TIME",
    "bytea": "BLOB",
}
"""Postgres's types under the names that `hubbub.engines.fields` knows; any other cannot be named by a question."""

_PARTS = """WITH RECURSIVE below AS (
      SELECT c.oid AS part UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN below ON i.inhparent = below.part)"""
"""A table, its children and its partitions, of any depth: SELECT reads them all."""
_STORED = """p.relkind IN ('r', 'p') AND p.relpersistence IN ('p', 'u') AND p.oid >= 16384 AND p.relam IN (
      SELECT oid FROM pg_am WHERE amname = 'heap' UNION SELECT 0 WHERE p.relkind = 'p')"""
_TABLE = f"""SELECT c.oid, n.nspname, c.relname, c.relkind, c.relfilenode, row_security_active(c.oid),
  EXISTS ({_PARTS} SELECT 1 FROM below JOIN pg_class AS p ON p.oid = below.part WHERE p.relkind = 'f'),
  EXISTS ({_PARTS} SELECT 1 FROM below JOIN pg_class AS p ON p.oid = below.part WHERE NOT ({_STORED})),
  EXISTS ({_PARTS} SELECT 1 FROM below JOIN pg_attribute AS a ON a.attrelid = below.part
          WHERE a.attgenerated <> '' AND NOT a.attisdropped),
  CASE WHEN c.relkind IN ('v', 'm') THEN md5(pg_get_viewdef(c.oid)) END, (
    {_PARTS}, versions AS (
      SELECT format('c %%s %%s %%s', p.oid, p.xmin, p.xmax) AS v FROM below JOIN pg_class AS p ON p.oid = below.part
      UNION ALL SELECT format('a %%s %%s %%s %%s', a.attrelid, a.attnum, a.xmin, a.xmax)
      FROM below JOIN pg_attribute AS a ON a.attrelid = below.part
      UNION ALL SELECT format('i %%s %%s %%s', i.inhrelid, i.xmin, i.xmax)
      FROM below JOIN pg_inherits AS i ON i.inhrelid = below.part
      UNION ALL SELECT format('r %%s %%s %%s', r.oid, r.xmin, r.xmax) FROM pg_rewrite AS r WHERE r.ev_class = c.oid
      UNION ALL SELECT format('n %%s %%s %%s', n.oid, n.xmin, n.xmax))
    SELECT md5(string_agg(v, ';' ORDER BY v)) FROM versions)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE CAST(c.relname AS text) = CAST(%(name)s AS text) AND CAST(n.nspname AS text) = ANY(CAST(%(schemas)s AS text[]))
ORDER BY array_position(CAST(%(schemas)s AS text[]), CAST(n.nspname AS text)) LIMIT 1"""
_COLUMNS = """SELECT a.attname,
  CASE WHEN t.typtype = 'e' AND NOT EXISTS (SELECT 1 FROM pg_cast AS c WHERE c.castsource = t.oid) THEN 'enum'
       WHEN t.typtype = 'b' AND t.typnamespace = CAST('pg_catalog' AS regnamespace) THEN format_type(t.oid, NULL)
       WHEN t.typname = 'citext' AND EXISTS (
         SELECT 1 FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'citext'
         WHERE d.classid = CAST('pg_type' AS regclass) AND d.objid = t.oid AND d.deptype = 'e') THEN 'citext'
       ELSE 'another: ' || format_type(t.oid, NULL) END,
  a.attgenerated <> '', has_column_privilege(a.attrelid, a.attnum, 'SELECT')
FROM pg_attribute AS a CROSS JOIN LATERAL (
  WITH RECURSIVE base AS (
    SELECT t.oid, t.typtype, t.typbasetype FROM pg_type AS t WHERE t.oid = a.atttypid UNION ALL
    SELECT t.oid, t.typtype, t.typbasetype FROM base JOIN pg_type AS t ON t.oid = base.typbasetype
    WHERE base.typtype = 'd')
  SELECT oid FROM base WHERE typtype <> 'd') AS of JOIN pg_type AS t ON t.oid = of.oid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_NEVER_NULL = f"""SELECT o.attname FROM pg_class AS c JOIN pg_attribute AS o ON o.attrelid = c.oid
WHERE c.oid = %s AND o.attnum > 0 AND NOT o.attisdropped AND NOT EXISTS ({_PARTS}
  SELECT 1 FROM below JOIN pg_class AS p ON p.oid = below.part
  JOIN pg_attribute AS a ON a.attrelid = p.oid AND a.attname = o.attname
  WHERE p.relkind NOT IN ('r', 'p') OR NOT a.attnotnull OR EXISTS (
    SELECT 1 FROM pg_constraint AS n
    WHERE n.conrelid = p.oid AND n.contype = 'n' AND a.attnum = ANY(n.conkey) AND NOT n.convalidated))"""
"""Since Postgres 18 a constraint may be NOT VALID: older rows may hold NULL, and the column counts as not null.
A foreign table's is a promise that nobody keeps."""
_NAMES = """SELECT DISTINCT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND CAST(n.nspname AS text) = ANY(CAST(%s AS text[]))"""
_LOCKED = """SELECT DISTINCT relation FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation >= 16384"""
_STRAYED = f"""SELECT EXISTS (SELECT 1 FROM ({_LOCKED}) AS l WHERE relation <> ALL (%s)
  AND (pg_identify_object(CAST('pg_class' AS regclass), relation, 0)).type NOT IN ('index', 'toast table'))"""
"""What it is that is locked is told by the newest catalogue: it may have been made after the snapshot."""
_MAY_ASK = "SELECT has_function_privilege(to_regprocedure('pg_catalog.pg_control_system()'), 'EXECUTE')"
_SYSTEM = "SELECT current_database(), format('system %s', system_identifier) FROM pg_catalog.pg_control_system()"
_ADDRESS = """SELECT current_database(),
  format('server %s:%s', coalesce(host(inet_server_addr()), 'local'), current_setting('port'))"""
"""Of a server that does not say which one it is."""
_KIN = f"""WITH RECURSIVE above AS (
  SELECT CAST(%(oid)s AS oid) AS part UNION
  SELECT i.inhparent FROM pg_inherits AS i JOIN above ON i.inhrelid = above.part)
SELECT part FROM above WHERE NOT EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhrelid = above.part) UNION
SELECT b.part FROM pg_class AS c CROSS JOIN LATERAL ({_PARTS} SELECT part FROM below) AS b WHERE c.oid = %(oid)s"""
_LOOKS = 5
_SCHEMAS = b"SELECT pg_catalog.current_schemas(false)"
_KINDS = {"v": "is a view", "m": "is a materialised view", "f": "is a foreign table"}


@dataclass(frozen=True)
class Found:
    """A table of the database: where, what it is, the types of the columns that this role may read, the others' names.

    mark: a text that changes when it is emptied or written anew. version: one that changes with all that the catalogue
    says of it.
    """

    schema: str
    table: str
    kind: str
    physical: dict[str, str]
    hidden: tuple[str, ...]
    mark: str
    version: str

    @property
    def relation(self) -> str:
        return f"{POSTGRES.quote(self.schema)}.{POSTGRES.quote(self.table)}"

    def reads_as(self, other: Found) -> bool:
        """Whether a text written for the one says the same of the other: the same columns in the same order.

        In another order, two columns may have changed names.
        """
        mine, others = [(f.schema, f.table, f.kind, [*f.physical.items()]) for f in (self, other)]
        return mine == others

    def empty(self) -> bytes:
        """A text that reads it as questions do, without its rows: it locks the table, its parts, what a view reads."""
        return f"SELECT {', '.join(map(POSTGRES.quote, self.physical))} FROM {self.relation} LIMIT 0".encode()


def look(con: psycopg.Connection[Any], name: str, inner: str, *, trusted: bool) -> Found:
    """A table by its name in the database, from the catalogue; it leaves the connection in a transaction of ours.

    Raises PolicyError for one that is missing, or is not a base table and not trusted, or where the server is not as
    questions need it.
    """
    space, _, bare = inner.rpartition(".")
    # Asked before the settings: which schemas a bare name is looked for in is the role's own.
    ((own,),) = con.execute(_SCHEMAS).fetchall()
    try:
        begin(con)
    except Kept as kept:
        raise PolicyError(
            f"table {name!r}: the database cannot be asked as answers need it: {kept.words}. Nothing was charged."
        ) from None
    return _found(con, name, inner, [space] if space else own, bare, trusted=trusted)


def _missing(name: str, inner: str, bare: str, known: Sequence[str]) -> PolicyError:
    """What refuses a table that is not there, with the one of the same schema that was meant."""
    near = meant_by(bare, [table for table in known if "." not in table])
    ways = [] if near is None else [CorrectName(inner.removesuffix(bare) + near, inner, name, inner=True)]
    hint = f"Did you mean {ways[0].in_python()}?" if ways else did_you_mean(bare, known)
    return PolicyError(f"table {name!r}: the database has no table {inner!r}. {hint}", remedy=ways)


def _found(
    con: psycopg.Connection[Any], name: str, inner: str, schemas: list[str], bare: str, *, trusted: bool
) -> Found:
    """A table of the first schema that has it, in a transaction of ours. Raises as `look` does."""
    row = con.execute(_TABLE, {"schemas": schemas, "name": bare}).fetchone()
    if row is None:
        names = [r[0] for r in con.execute(_NAMES, [schemas]).fetchall()]
        raise _missing(name, inner, bare, names)
    oid, schema, relname, relkind, filenode, secured, foreign, unusual, generated, defined, version = row
    columns = con.execute(_COLUMNS, [oid]).fetchall()
    if relkind not in _KINDS and relkind not in ("r", "p"):
        raise PolicyError(f"table {name!r}: {inner!r} is not a table.")
    if secured:
        raise PolicyError(
            f"table {name!r}: {inner!r} has row security for this role, whose policies can look at other people's "
            "rows; name a role that it does not bind."
        )
    problem = _problem(relkind, foreign, unusual, generated, any(own_generated for _, _, own_generated, _ in columns))
    if problem is not None and not trusted:
        raise not_trusted(name, inner, problem)
    physical = {column: TYPES.get(kind, kind) for column, kind, _, readable in columns if readable}
    hidden = tuple(column for column, _, _, readable in columns if not readable)
    mark = f"{oid} {filenode}" if defined is None else f"{oid} {filenode} {defined}"
    return Found(schema, relname, relkind, physical, hidden, mark, version)


def server_of(con: psycopg.Connection[Any]) -> str:
    """Which database this is, whatever its address: by the number that a server was given when it was made.

    A replica, and a copy that was restored, have their original's. In a transaction of ours.
    """
    ((may_ask,),) = con.execute(_MAY_ASK).fetchall()
    ((database, server),) = con.execute(_SYSTEM if may_ask else _ADDRESS).fetchall()
    return f"the database {database!r} of the Postgres {server}"


def kin_of(con: psycopg.Connection[Any], relation: Found) -> frozenset[int]:
    """The tables on top of the one that was found, and those whose rows it shows: of a partition its parent, of a table
    without either itself. Two with one in common have people in common.
    """
    return frozenset(part for (part,) in con.execute(_KIN, {"oid": int(relation.mark.split()[0])}).fetchall())


def never_null(con: psycopg.Connection[Any], relation: Found) -> frozenset[str]:
    """The columns that validated constraints keep from being NULL, in the table and in each of its parts."""
    named = con.execute(_NEVER_NULL, [int(relation.mark.split()[0])])
    return frozenset(str(name) for (name,) in named.fetchall()) & relation.physical.keys()


def steady(con: psycopg.Connection[Any], known: Sequence[tuple[Found, bool]]) -> list[int] | None:
    """Begin the transaction of a question, with its tables locked; gives what is locked.

    known: each table as it was when it was declared, and whether it is trusted. None where one of them is no longer
    what texts were written for, or does not stand still.

    Raises PolicyError as `look` does, Kept and psycopg.Error as `begin` does.
    """
    before = None
    for _ in range(_LOOKS):
        begin(con)
        for was, _ in known:
            con.execute(was.empty())
        now = [_found(con, "", was.table, [was.schema], was.table, trusted=trusted) for was, trusted in known]
        versions = [one.version for one in now]
        if versions == before:
            if not all(one.reads_as(was) for one, (was, _) in zip(now, known, strict=True)):
                return None
            return [relation for (relation,) in con.execute(_LOCKED).fetchall()]
        before = versions
        con.execute("ROLLBACK")
    return None


def strayed(con: psycopg.Connection[Any], locked: Sequence[int]) -> bool:
    """Whether the transaction has read a table that it had not locked at its beginning.

    A lock on a table holds neither the name of its schema nor the list of its parts.
    """
    ((strayed,),) = con.execute(_STRAYED, [locked]).fetchall()
    return bool(strayed)


def _problem(relkind: str, foreign: bool, unusual: bool, generated: bool, own_generated: bool) -> str | None:
    """Why something is not a base table."""
    if relkind in _KINDS:
        return _KINDS[relkind]
    if foreign:
        return "has parts that are foreign tables"
    if unusual:
        return "is, or has parts that are, of the system, temporary or of a storage that is not the server's own"
    if generated:
        return "has generated columns" if own_generated else "has parts with generated columns"
    return None


def refuse_hidden(name: str, inner: str, relation: Found, wanted: Sequence[str]) -> None:
    """Raises PolicyError where a declaration names a column that the role may not read."""
    hidden = sorted({h for h in relation.hidden for w in wanted if h.lower() == w.lower()} - set(relation.physical))
    if hidden:
        raise PolicyError(
            f"table {name!r}: this role may not read the column {hidden[0]!r} of {inner!r}, which is declared. "
            "GRANT SELECT on it, or leave it out of the declaration. Nothing was charged."
        )
    if not relation.physical:
        raise PolicyError(f"table {name!r}: this role may not read {inner!r}. GRANT SELECT on it. Nothing was charged.")
