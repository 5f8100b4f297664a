"""One SELECT, or a set operation: owned, outer, or the private aggregate in which one becomes the other."""

from __future__ import annotations

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.aggregate import private
from hubbub.sql.bind.clauses import check_clauses
from hubbub.sql.bind.context import Cte, PrivateRelation, PublicQuery, Reader, same_units
from hubbub.sql.bind.entropy import entropy
from hubbub.sql.bind.from_ import read_from
from hubbub.sql.bind.group_by import has_aggregate, no_order
from hubbub.sql.bind.kinds import ONE_KIND
from hubbub.sql.bind.outer import outer_tree, resolve_inside
from hubbub.sql.bind.per_unit import grouped_by_unit
from hubbub.sql.bind.projection import projection
from hubbub.sql.bind.undeclared_top import top_of_undeclared
from hubbub.sql.bind.window import column_kind
from hubbub.tables.expressions import Column, common_kind, comparable
from hubbub.tables.relations import (
    Combine,
    scans,
)

__all__ = ["select", "set_operation"]


def select(reader: Reader, node: exp.Select, ctes: dict[str, Cte]) -> PrivateRelation | PublicQuery:
    """What one SELECT is.

    Raises QueryError for whatever it may not hold.
    """
    rows = read_from(reader, node, ctes)
    of_counts = None if rows is None else entropy(reader, node)
    if of_counts is not None:
        return PublicQuery(outer_tree(reader, of_counts, ctes))
    if rows is None:
        return PublicQuery(outer_tree(reader, node, ctes))
    check_clauses(reader, node)
    if _aggregates(node):
        per_unit = grouped_by_unit(rows, node)
        return per_unit or top_of_undeclared(rows, node) or private(rows, node)
    if rows.kept is not None:
        raise reader.refuse(
            "a public table LEFT JOIN people's rows is for GROUP BY on its columns.", node, remedy=Rewrite("GROUP BY")
        )
    return projection(rows, node)


def _aggregates(node: exp.Select) -> bool:
    """Whether a SELECT groups its rows: GROUP BY, HAVING, or an aggregate that is not a window's function."""
    if node.args.get("group") is not None or node.args.get("having") is not None:
        return True
    return any(has_aggregate(item) for item in node.expressions)


# -- set operations -----------------------------------------------------------------------------------------------


def set_operation(reader: Reader, node: exp.SetOperation, ctes: dict[str, Cte]) -> PrivateRelation | PublicQuery:
    """UNION, INTERSECT, EXCEPT: of owned relations of one unit space, or of releases and public tables."""
    word = type(node).__name__.upper()
    sides = [reader.resolve(side.copy(), ctes) for side in (node.this, node.expression)]
    left, right = sides
    if isinstance(left, PublicQuery) and isinstance(right, PublicQuery):
        copy = node.copy()
        copy.set("with_", None)
        copy.set("this", left.tree)
        copy.set("expression", right.tree)
        for name in ("order", "limit", "offset"):
            if copy.args.get(name) is not None:
                resolve_inside(reader, copy.args[name], ctes)
        return PublicQuery(copy)
    if not (isinstance(left, PrivateRelation) and isinstance(right, PrivateRelation)):
        raise reader.refuse(f"{word} of people's rows with public or released ones is not supported.", node, word=word)
    no_order(reader, node)
    for name, value in node.args.items():
        if value and name not in ("this", "expression", "distinct", "with_"):
            raise reader.refuse(f"{name.strip('_').upper()} is not supported with {word} of people's rows.", node)
    same_units(reader, left.relation, right.relation, node)
    if scans(left.relation)[0].each_row or scans(right.relation)[0].each_row:
        raise reader.refuse(f"{word} needs rows with a unit column; here each row is a unit of its own.", node)
    if len(left.columns) != len(right.columns):
        raise reader.refuse(f"{word}: {len(left.columns)} columns and {len(right.columns)}.", node)
    place = reader.place("s")
    columns = []
    for i, (name, x, y) in enumerate(zip(left.columns, left.columns.values(), right.columns.values(), strict=True)):
        if not comparable(x.kind, y.kind):
            raise reader.refuse(
                f"{word}: the column {name!r} has two kinds of values; write {ONE_KIND.example}.",
                node,
                remedy=ONE_KIND,
            )
        kind = common_kind((column_kind(x), column_kind(y)))
        columns.append(Column(f"{place}.{i}", kind, name))
    op = f"{word}{'' if node.args.get('distinct') else ' ALL'}"
    relation = Combine(
        op,  # type: ignore[arg-type]
        left.relation,
        right.relation,
        tuple(columns),
        tuple(left.columns.values()),
        tuple(right.columns.values()),
    )
    return PrivateRelation(relation, dict(zip(left.columns, columns, strict=True)))
