"""Where a SELECT groups: which of its terms are aggregates, and what a term of GROUP BY names."""

from __future__ import annotations

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import Reader
from hubbub.sql.bind.from_ import Rows
from hubbub.sql.text.repairs import without_before

__all__ = ["children", "group_term", "has_aggregate", "no_order", "same_without_distinct"]


def has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inner = node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.Filter) else node.this
        parts = [*children(inner), *(node.args.get("partition_by") or [])]
        parts += [node.args["order"]] if node.args.get("order") else []
        return any(map(has_aggregate, parts))
    if isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping):
        return True
    return any(map(has_aggregate, children(node)))


def children(node: exp.Expr) -> list[exp.Expr]:
    nodes: list[exp.Expr] = []
    for value in node.args.values():
        nodes += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
    return nodes


def no_order(reader: Reader, node: exp.Query) -> None:
    """Refuse an order of rows that nobody sees. Where an order means something it stands in a window's OVER."""
    if node.args.get("order") is not None and not (node.args.get("limit") or node.args.get("offset")):
        raise reader.refuse(
            "ORDER BY below an aggregate orders rows that nobody sees: leave it out, or order the answer, outside: "
            "GROUP BY k ORDER BY k.",
            node.args["order"],
            word="ORDER BY",
            remedy=Rewrite("GROUP BY k ORDER BY k"),
        )


def same_without_distinct(reader: Reader, node: exp.Expr, name: str) -> QueryError:
    """What refuses DISTINCT where it changes nothing: the smallest of different values is the smallest of all."""
    value = node.this.expressions[0]
    way = without_before(reader.text, "DISTINCT", value, f"{name}({value.sql()})")
    return reader.refuse(f"DISTINCT changes nothing inside {name}; write {way.example}.", node, remedy=way)


def group_term(rows: Rows, term: exp.Expr, select: exp.Select) -> exp.Expr:
    """What a term of GROUP BY names: itself, or a column of SELECT by position or alias."""
    while isinstance(term, exp.Paren):
        term = term.this
    if isinstance(term, exp.Literal) and not term.is_string and str(term.this).isdigit():
        place = int(term.this)
        if not 1 <= place <= len(select.expressions):
            raise rows.reader.refuse(
                f"GROUP BY {place}: SELECT has {len(select.expressions)} columns. Or write GROUP BY ALL.",
                term,
                remedy=Rewrite("GROUP BY ALL"),
            )
        chosen: exp.Expr = select.expressions[place - 1].unalias()
        return chosen
    if isinstance(term, exp.Column) and not rows.scope.knows(term):
        named = [i for i in select.expressions if isinstance(i, exp.Alias) and i.alias.lower() == term.name.lower()]
        if named and not term.table:
            return named[0].unalias()
    return term
