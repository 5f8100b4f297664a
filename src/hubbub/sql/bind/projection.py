"""A SELECT without aggregates: expressions, windows over one owner's rows, DISTINCT within the owner."""

from __future__ import annotations

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import PrivateRelation, Reader
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.from_ import Rows
from hubbub.sql.bind.group_by import no_order
from hubbub.sql.bind.scope import Scope, did_you_mean, meant
from hubbub.sql.bind.window import Windows, column_kind
from hubbub.sql.text.repairs import star_with
from hubbub.tables.expressions import Column, Expression
from hubbub.tables.relations import (
    Distinct,
    Relation,
)

__all__ = ["distinct", "projection"]


def projection(rows: Rows, node: exp.Select) -> PrivateRelation:
    """Columns of the same rows: expressions, windows over one owner's rows, DISTINCT within the owner."""
    reader = rows.reader
    no_order(reader, node)
    for name in ("limit", "offset"):
        if node.args.get(name) is not None:
            raise reader.refuse(
                f"{name.upper()} below an aggregate would let one person's row decide whether another's is there. Of "
                "each one's rows the first few are ROW_NUMBER() OVER (PARTITION BY id ORDER BY x).",
                node.args[name],
                word=name,
                remedy=Rewrite("ROW_NUMBER() OVER (PARTITION BY id ORDER BY x)"),
            )
    windows = Windows(rows, node)
    columns: dict[str, Expression] = {}
    for item in node.expressions:
        for name, expression in _item(rows, item, windows.reader()):
            unique, i = name, 1
            while unique in columns:
                unique, i = f"{name}_{i}", i + 1
            columns[unique] = expression
    qualify = node.args.get("qualify")
    if qualify is not None:
        named = {n.lower(): e for n, e in columns.items()}

        def column(at: exp.Column) -> Expression:
            if not at.table and not rows.scope.knows(at) and at.name.lower() in named:
                return named[at.name.lower()]
            return rows.scope.column(at)

        condition = windows.reader(column).condition(qualify.this, "QUALIFY")
        windows.attach()
        rows.keep(condition)
    windows.attach()
    relation = rows.relation
    if node.args.get("distinct") is not None:
        relation, columns = distinct(reader, relation, columns)
    return PrivateRelation(relation, columns)


def _item(rows: Rows, item: exp.Expr, read: ExpressionReader) -> list[tuple[str, Expression]]:
    """The columns of one term of SELECT: one, or those of a star."""
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        scope = rows.scope
        if isinstance(item, exp.Column):
            source = scope.source(item.table)
            if source is None:
                aliases = [s.alias for s in scope.sources]
                raise rows.reader.refuse(
                    f"{item.table!r}: no such table in this question. {did_you_mean(item.table, aliases)}",
                    item,
                    remedy=meant(item.table, aliases, rows.reader.text, item.args["table"]),
                )
            scope = Scope(rows.reader.text, [source])
        left_out = _left_out(rows.reader, scope, star)
        for name, value in star.args.items():
            if value and name != "except_":
                raise _star_refused(rows.reader, star, name, item)
        return list(scope.every(left_out).items())
    if isinstance(item, exp.Alias):
        read.only_known_arguments(item)
    name = item.alias_or_name or f"column{len(rows.reader.text)}"
    return [(name, read.read(item.unalias()))]


def _left_out(reader: Reader, scope: Scope, star: exp.Star) -> set[tuple[str, str]]:
    """What EXCLUDE leaves out: of a name that several tables have, as in DuckDB, the column of each.

    Raises QueryError for a name that no column has.
    """
    left_out: set[tuple[str, str]] = set()
    for one in star.args.get("except_") or []:
        held = scope.held(one.name, one.table if isinstance(one, exp.Column) else "")
        if not held:
            every = list(dict.fromkeys(c for s in scope.sources for c in s.columns))
            raise reader.refuse(
                f"EXCLUDE: there is no column {one.name!r} to leave out. {did_you_mean(one.name, every)}",
                one,
                remedy=meant(one.name, every, reader.text, one.this if isinstance(one, exp.Column) else one),
            )
        left_out.update(held)
    return left_out


def _star_refused(reader: Reader, star: exp.Star, part: str, item: exp.Expr) -> QueryError:
    """What refuses a part of a star: columns that it replaces or renames can stand behind it."""
    listed = {"replace": lambda alias: alias.alias, "rename": lambda alias: alias.this.name}.get(part)
    plain = listed is not None and not star.args.get("except_")
    ways = star_with(reader.text, star, map(listed, star.args[part])) if plain and listed else ()
    hint = "".join(f" Write {way.example}." for way in ways)
    return reader.refuse(f"{part.strip('_').upper()} is not supported here.{hint}", item, remedy=ways)


def distinct(
    reader: Reader, relation: Relation, columns: dict[str, Expression]
) -> tuple[Relation, dict[str, Expression]]:
    place = reader.place("d")
    named = tuple((f"{place}.{i}", expression) for i, expression in enumerate(columns.values()))
    of_result = {name: Column(own, column_kind(e), name) for (own, e), name in zip(named, columns, strict=True)}
    return Distinct(relation, named), dict(of_result)
