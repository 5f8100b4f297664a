"""What stands in an attached DuckDB file: a base table, or a view that a steward vouches for."""

from __future__ import annotations

import re

import duckdb

from hubbub.engines.base_tables import not_trusted
from hubbub.engines.duckdb.dialect import quote
from hubbub.errors import PolicyError
from hubbub.sql.bind.scope import did_you_mean, inner_table_meant

__all__ = ["check_base_table"]

_GENERATED = "GENERATED ALWAYS"
_OURS = re.compile(r"(source|patient|listed|p)\d+(_files|_text\d+)?|patient_part")
"""What stands beside attached files: the names that a view says are looked for there first."""


def check_base_table(
    con: duckdb.DuckDBPyConnection, database: str, inner: str, name: str, *, trusted: bool = False
) -> None:
    """Raises PolicyError for what is missing from an attached file, or is not a base table and not trusted."""
    texts = {}
    for kind in ("table", "view"):
        definitions = con.execute(
            f"SELECT schema_name, {kind}_name, sql FROM duckdb_{kind}s() WHERE database_name = ? AND NOT internal",
            [database],
        ).fetchall()
        texts[kind] = {(schema, name): (sql or "").upper() for schema, name, sql in definitions}
    tables, views = ({n: sql for (s, n), sql in texts[k].items() if s == "main"} for k in ("table", "view"))
    if inner not in tables | views:
        raise PolicyError(
            f"table {name!r}: the file has no table {inner!r}. {did_you_mean(inner, tables)}",
            remedy=inner_table_meant(inner, tables, name),
        )
    problem = "is a view" if inner in views else "has generated columns" if _GENERATED in tables[inner] else None
    if problem is not None and not trusted:
        raise not_trusted(name, inner, problem)
    ours = sorted(n for n in (*tables, *views) if _OURS.fullmatch(n.lower())) if inner in views else []
    hidden = None
    if ours:
        hidden = f"may read {ours[0]!r}, which is what the engine calls a table of its own; rename it there"
    elif "COLLATE" in (_made_of_view(con, database, inner, name) if inner in views else tables[inner]):
        hidden = "has columns with a collation, under which different texts are equal; copy the table without it"
    if hidden:
        raise PolicyError(f"table {name!r}: {inner!r} {hidden}.")


def _made_of_view(con: duckdb.DuckDBPyConnection, database: str, inner: str, name: str) -> str:
    """The definition of a table that has the columns of a view: it says which have a collation, whatever gave it to
    them (a table below, a macro, a text that is only put together there).

    Raises PolicyError for a view that reads more than its own file: the engine can open no other once it is sealed.
    """
    row = con.execute("SELECT path FROM duckdb_databases() WHERE database_name = ?", [database]).fetchone()
    assert row is not None
    with duckdb.connect(config={"python_enable_replacements": "false"}) as shut:
        try:
            shut.execute(f"ATTACH '{row[0].replace(chr(39), 2 * chr(39))}' AS {database} (READ_ONLY)")
            shut.execute("SET enable_external_access = false")
            shut.execute(f"CREATE TEMP TABLE made AS SELECT * FROM {database}.main.{quote(inner)} LIMIT 0")
            made = shut.execute("SELECT sql FROM duckdb_tables() WHERE temporary AND table_name = 'made'").fetchall()
            return str(made[0][0]).upper()
        except duckdb.Error:
            pass
    raise PolicyError(
        f"table {name!r}: the view {inner!r} cannot be read from its file alone; what it reads has to be in there. "
        "Nothing was charged."
    )
