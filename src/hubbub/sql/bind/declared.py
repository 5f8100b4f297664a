"""DESCRIBE, SHOW TABLES and SUMMARIZE: what is declared, as a public question that reads no row and costs nothing.

Each becomes a SELECT over VALUES that hold the declarations. Minima and maxima are those that a steward declared, never
those of the rows; a column of which nothing is declared has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import sqlglot
from sqlglot.errors import SqlglotError

from hubbub.remedies import Rewrite
from hubbub.spelling import meant_by
from hubbub.sql.bind.scope import Catalog, TableInfo, did_you_mean, find_name
from hubbub.sql.text.locate import marked
from hubbub.sql.text.texts import as_name
from hubbub.tables.columns import Between, Declaration, Edges, OneOf

__all__ = ["about_declarations"]

_DESCRIBED: Final = ("column_name", "column_type", "declared", "role")
_SUMMARIZED: Final = ("column_name", "column_type", "min", "max", "groups", "may_be_null")
_SHOWN: Final = ("name", "kind", "unit", "columns", "max_groups", "max_rows", "max_total", "neighbours")

_FIRST: Final = [["DESCRIBE"], ["DESC"], ["SUMMARIZE"], ["SHOW"]]

Cell = str | int | bool | None


def about_declarations(text: str, catalog: Catalog) -> str | None:
    """A SELECT that answers a statement about declarations; None for any other statement.

    Raises QueryError, with a caret, for a table that is not known, and for more than one name.
    """
    if not isinstance(text, str) or text.lstrip()[:9].upper().split(maxsplit=1)[:1] not in _FIRST:
        return None
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except SqlglotError:
        return None
    while tokens and tokens[-1].token_type.name == "SEMICOLON":
        tokens.pop()
    words = [t.text.upper() for t in tokens]
    if words[:2] == ["SHOW", "TABLES"] and len(words) == 2:
        return _values(_SHOWN, [_table(name, info) for name, info in sorted(catalog.items())])
    if not words or words[0] not in ("DESCRIBE", "DESC", "SUMMARIZE", "SHOW"):
        return None
    rest = tokens[2:] if words[1:2] == ["TABLE"] else tokens[1:]
    if len(rest) != 1:
        at = tokens[0]
        message = f"{words[0]} takes the name of a table: DESCRIBE visits; or SHOW TABLES; or SUMMARIZE visits."
        raise marked(message, text, at.start, at.end)
    name = find_name(rest[0].text, catalog)
    if name is None:
        message = f"unknown table {rest[0].text!r}. {did_you_mean(rest[0].text, catalog)}"
        near = meant_by(rest[0].text, catalog)
        whole = near and f"{text[: rest[0].start]}{as_name(near)}{text[rest[0].end + 1 :]}"
        raise marked(message, text, rest[0].start, rest[0].end, remedy=Rewrite(near, whole) if near else ())
    info = catalog[name]
    if words[0] == "SUMMARIZE":
        return _values(_SUMMARIZED, [_summary(column, info) for column in info.columns])
    return _values(_DESCRIBED, [_description(column, info) for column in info.columns])


def _declaration(column: str, info: TableInfo) -> Declaration | None:
    return info.declaration.columns.get(column) if info.private else None


def _table(name: str, info: TableInfo) -> tuple[Cell, ...]:
    if not info.private:
        return name, "public", None, ", ".join(info.columns), None, None, None, None
    table = info.declaration
    unit = info.unit or "each row"
    return (
        name,
        "private",
        unit,
        ", ".join(info.columns),
        table.max_groups,
        table.max_rows,
        table.max_total,
        table.neighbours,
    )


def _description(column: str, info: TableInfo) -> tuple[Cell, ...]:
    declared = _declaration(column, info)
    role = "unit" if column == info.unit else None
    return column, info.columns[column].value, None if declared is None else repr(declared), role


def _summary(column: str, info: TableInfo) -> tuple[Cell, ...]:
    declared = _declaration(column, info)
    low = high = groups = None
    nulls: bool | None = None
    match declared:
        case Between(low=least, high=most, nullable=nullable):
            low, high, nulls = _plain(least), _plain(most), nullable
        case Edges(nullable=nullable):
            low, high, groups = _plain(declared.low), _plain(declared.high), len(declared.labels())
            nulls = nullable
        case OneOf(values=values):
            groups = len(values) + (declared.other is not None)
            nulls = None in values
    return column, info.columns[column].value, low, high, groups, nulls


def _plain(end: object) -> str:
    return str(end if not isinstance(end, Fraction) or end.denominator == 1 else float(end))


def _values(names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A SELECT that gives these rows, as texts and whole numbers."""
    kinds = [next((type(row[i]) for row in rows if row[i] is not None), str) for i in range(len(names))]
    words = {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN"}
    columns = ", ".join(
        f'CAST(v.c{i} AS {words[kind]}) AS "{n}"' for i, (n, kind) in enumerate(zip(names, kinds, strict=True))
    )
    listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"SELECT {columns} FROM (VALUES {listed}) AS v({', '.join(f'c{i}' for i in range(len(names)))})"


def _literal(cell: Cell) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, str):
        return "'" + cell.replace("'", "''").replace("\0", "") + "'"
    return str(cell).upper()
