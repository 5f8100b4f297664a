"""What both builders share: putting terms into each other, and the end of a SELECT."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from hubbub.errors import QueryError, what_was_given
from hubbub.verbs.terms import COMPOUND, Term, operand, quoted

__all__ = ["Tail", "has_window", "in_place", "named_terms", "ordered", "printed", "source"]


def printed(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The SQL text of a tree."""
    return tree.sql(dialect="duckdb", pretty=pretty)


def in_place(
    node: exp.Expr, meanings: Mapping[str, exp.Expr], hides: Callable[[str, str], bool] = operator.eq
) -> exp.Expr:
    """`node` with each bare column that is a name of `meanings` replaced by what it means; sub-queries stay.

    hides: whether a name of `meanings` stands for a column of another spelling.
    """

    def meaning(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Subquery):
            return node.copy()
        meant = None
        if isinstance(node, exp.Column) and not node.table:
            meant = node.name if node.name in meanings else next((n for n in meanings if hides(n, node.name)), None)
        if meant is not None:
            inner = meanings[meant].copy()
            return operand(Term(inner)) if isinstance(node.parent, COMPOUND) else inner
        return node

    return node.copy().transform(meaning, copy=False) if meanings else node.copy()


def has_window(nodes: Iterable[exp.Expr]) -> bool:
    """Whether some node holds a window function."""
    return any(node.find(exp.Window) is not None for node in nodes)


def named_terms(terms: Sequence[object], named: Mapping[str, object], what: str) -> list[tuple[str, exp.Expr]]:
    """Names and trees of terms, column names and keyword arguments.

    Raises QueryError for a term without a name, and for a name that stands twice.
    """
    named_so_far: list[tuple[str, exp.Expr]] = []
    for term in [*terms, *(Term(_node(t, what)).alias(n) for n, t in named.items())]:
        node = _node(term, what)
        name = term if isinstance(term, str) else term.name if isinstance(term, Term) else None
        if name is None:
            raise QueryError(f"{what}: {printed(node)} has no name. Give it one: .alias('name').")
        if name.lower() in {n.lower() for n, _ in named_so_far}:
            raise QueryError(f"{what}: two columns are named {what_was_given(name)}. Rename one: .alias('name').")
        named_so_far.append((name, node))
    return named_so_far


def _node(term: object, what: str) -> exp.Expr:
    if isinstance(term, Term):
        return term.node
    if isinstance(term, str):
        return exp.column(quoted(term))
    raise QueryError(f"{what} takes columns and terms; found {type(term).__name__}. A constant is hb.lit(value).")


def ordered(terms: Sequence[object], descending: object, nulls_first: object) -> tuple[exp.Ordered, ...]:
    """Terms of ORDER BY; each flag is one for all, or one for each."""
    flags = [_each(descending, len(terms)), _each(nulls_first, len(terms))]
    return tuple(
        exp.Ordered(this=_node(t, "order_by"), desc=down, nulls_first=first)
        for t, down, first in zip(terms, *flags, strict=True)
    )


def _each(flag: object, size: int) -> list[bool]:
    given = list(flag) if isinstance(flag, list | tuple) else [flag] * size
    flags = [f for f in given if isinstance(f, bool)]
    if not len(flags) == len(given) == size:
        raise QueryError(f"order_by: {what_was_given(flag)} is not true or false for each of {size} terms.")
    return flags


@dataclass(frozen=True)
class Tail:
    """What is done to the rows of a SELECT once they are chosen: DISTINCT, ORDER BY, LIMIT and OFFSET."""

    order: tuple[exp.Ordered, ...] = ()
    rows: int | None = None
    offset: int = 0
    unique: bool = False

    def __bool__(self) -> bool:
        return self.unique or self.written_last

    @property
    def written_last(self) -> bool:
        """Whether ORDER BY, LIMIT or OFFSET stands at the end of the text."""
        return bool(self.order) or self.rows is not None or self.offset > 0

    def limited(self, rows: int | None, offset: int) -> Tail:
        for name, value in (("limit", rows), ("offset", offset)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise QueryError(f"{name}={what_was_given(value)}: expected a whole number from 0.")
        return replace(self, rows=rows, offset=offset)

    def on(self, query: Any) -> Any:
        """A SELECT with this end."""
        if self.unique:
            query = query.distinct()
        if self.order:
            query.set("order", exp.Order(expressions=[o.copy() for o in self.order]))
        if self.rows is not None:
            query.set("limit", exp.Limit(expression=exp.Literal.number(str(self.rows))))
        if self.offset:
            query.set("offset", exp.Offset(expression=exp.Literal.number(str(self.offset))))
        return query


def source(query: exp.Expr, alias: str) -> exp.Subquery:
    """A query as an item of FROM."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=quoted(alias)))
