"""What the catalogue of a Postgres database says of a table: where it is, its columns, whether it may be a source.

What may be one is a list: ordinary and partitioned tables that people made, stored as the server stores them itself
(`heap`), with parts of the same sort, without generated columns, bound by no row security. Anything else (views,
foreign tables, tables of other storage) needs `trusted_view`, or is none. Types are known by the catalogue they
come from, not by name alone: a type that somebody calls "text" is not one. Columns that the role may not read are
left out. All of it is asked for under the settings that questions have (`postgres_settings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from hubbub.engines.postgres_settings import Kept, begin
from hubbub.engines.sources import not_trusted
from hubbub.errors import PolicyError
from hubbub.sql.dialect_postgres import POSTGRES
from hubbub.sql.scope import did_you_mean

__all__ = ["TYPES", "Found", "look", "refuse_hidden"]

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
  CASE WHEN c.relkind IN ('v', 'm') THEN md5(pg_get_viewdef(c.oid)) END
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
_NAMES = """SELECT DISTINCT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND CAST(n.nspname AS text) = ANY(CAST(%s AS text[]))"""
_SCHEMAS = b"SELECT pg_catalog.current_schemas(false)"
_KINDS = {"v": "is a view", "m": "is a materialised view", "f": "is a foreign table"}


@dataclass(frozen=True)
class Found:
    """A table of the database: where, the types of the columns that this role may read, the others' names, and a text
    that changes when it is emptied or written anew."""

    relation: str
    physical: dict[str, str]
    hidden: tuple[str, ...]
    mark: str


def look(con: psycopg.Connection[Any], name: str, inner: str, *, trusted: bool) -> Found:
    """A table by its name in the database, from the catalogue; it leaves the connection in a transaction of ours.

    Raises PolicyError for one that is missing, or is no base table and not trusted, or where the server is not as
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
    schemas = [space] if space else own
    row = con.execute(_TABLE, {"schemas": schemas, "name": bare}).fetchone()
    if row is None:
        names = [r[0] for r in con.execute(_NAMES, [schemas]).fetchall()]
        raise PolicyError(f"table {name!r}: the database has no table {inner!r}. {did_you_mean(bare, names)}")
    oid, schema, relname, relkind, filenode, secured, foreign, unusual, generated, defined = row
    columns = con.execute(_COLUMNS, [oid]).fetchall()
    if relkind not in _KINDS and relkind not in ("r", "p"):
        raise PolicyError(f"table {name!r}: {inner!r} is no table.")
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
    return Found(f"{POSTGRES.quote(schema)}.{POSTGRES.quote(relname)}", physical, hidden, mark)


def _problem(relkind: str, foreign: bool, unusual: bool, generated: bool, own_generated: bool) -> str | None:
    """Why something is no base table."""
    if relkind in _KINDS:
        return _KINDS[relkind]
    if foreign:
        return "has parts that are foreign tables"
    if unusual:
        return "is, or has parts that are, of the system, temporary or of a storage that is not the server's own"
    if generated:
        return "has generated columns" if own_generated else "has parts with generated columns"
    return None


def refuse_hidden(name: str, inner: str, found: Found, wanted: Sequence[str]) -> None:
    """Raises PolicyError where a declaration names a column that the role may not read."""
    hidden = sorted({h for h in found.hidden for w in wanted if h.lower() == w.lower()} - set(found.physical))
    if hidden:
        raise PolicyError(
            f"table {name!r}: this role may not read the column {hidden[0]!r} of {inner!r}, which is declared. "
            "GRANT SELECT on it, or leave it out of the declaration. Nothing was charged."
        )
    if not found.physical:
        raise PolicyError(f"table {name!r}: this role may not read {inner!r}. GRANT SELECT on it. Nothing was charged.")
