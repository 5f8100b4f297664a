"""What stays SQL of the user's own: a query over public and released tables, its sub-queries resolved."""

from __future__ import annotations

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import Cte, PrivateRelation, PublicQuery, Reader
from hubbub.sql.bind.group_by import children

__all__ = ["outer_tree", "resolve_inside"]


def outer_tree(reader: Reader, node: exp.Query, ctes: dict[str, Cte]) -> exp.Query:
    """A query over public and released tables: its sub-queries resolved, its WITH moved to the top."""
    copy = node.copy()
    copy.set("with_", None)
    for child in children(copy):
        resolve_inside(reader, child, ctes)
    return copy


def resolve_inside(reader: Reader, node: exp.Expr, ctes: dict[str, Cte]) -> None:
    if isinstance(node, exp.Select | exp.SetOperation):
        relation = reader.resolve(node, ctes)
        if isinstance(relation, PrivateRelation):
            raise reader.refuse(
                "rows of people are never shown: this part reads them without an aggregate such as COUNT(*).",
                _first_shown(node),
                remedy=Rewrite("COUNT(*)"),
            )
        node.replace(relation.tree)
        return
    if isinstance(node, exp.Table):
        _outer_table(reader, node, ctes)
        return
    for child in children(node):
        resolve_inside(reader, child, ctes)


def _first_shown(node: exp.Expr) -> exp.Expr:
    selects = node.selects if isinstance(node, exp.Query) else []
    return selects[0] if selects else node


def _outer_table(reader: Reader, node: exp.Table, ctes: dict[str, Cte]) -> None:
    table = reader.named(node, ctes)
    if isinstance(table, str):
        name = table
    elif isinstance(table, PublicQuery):
        name = table.tree.args["from_"].this.name
    else:
        raise reader.refuse("rows of people are never shown: this part reads them without an aggregate.", node)
    if node.name != name:
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        node.set("this", exp.to_identifier(name, quoted=True))
