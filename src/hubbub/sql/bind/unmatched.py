"""What an aggregate would say of a public row that no row of people meets.

`public LEFT JOIN people ... GROUP BY` a public column answers every public key. SQL keeps a public row without a match
once, the people's columns NULL: `COUNT(*)` counts it, `COUNT(people.x)` does not. Whether there is such a row depends
on private rows, so it cannot be counted apart; only aggregates that leave it out are answered.
"""

from __future__ import annotations

from typing import assert_never

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.from_ import Rows
from hubbub.tables.aggregates import Aggregate
from hubbub.tables.aggregates.count import COUNT_ROWS, COUNT_UNITS
from hubbub.tables.expressions import (
    Arithmetic,
    Call,
    Case,
    Column,
    Compare,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Logic,
    Negate,
    Not,
    columns_of,
)
from hubbub.tables.relations import leaves

__all__ = ["leaves_out", "refuse_unmatched"]

_LENIENT = frozenset({"COALESCE", "LEAST", "GREATEST", "CONCAT"})
"""Functions that are NULL where all they look at is; any other is where one thing is."""


def refuse_unmatched(rows: Rows, aggregate: Aggregate, node: exp.Expr) -> None:
    """Raises QueryError where SQL would count a public row that meets no row of people."""
    relation = rows.relation
    if rows.kept is None:
        return
    public = frozenset(leaf.place for leaf in leaves(relation))
    if leaves_out(aggregate, public):
        return
    names = [
        f"{source.alias}.{name}"
        for source in rows.scope.sources
        for name, e in source.columns.items()
        if columns_of(e) and not any(c.partition(".")[0] in public for c in columns_of(e))
    ]
    if aggregate.function is COUNT_ROWS:
        counted = Rewrite(f"COUNT({names[0]})")
        raise rows.reader.refuse(
            "COUNT(*) would count the public row too, where no row of people meets it: LEFT JOIN keeps it once. "
            f"Count a column of the private table: {counted.in_python()}.",
            node,
            remedy=(counted,),
        )
    raise rows.reader.refuse(
        "this aggregate would look at the public row too, where no row of people meets it: LEFT JOIN keeps it "
        f"once, with NULL for people's columns. Let it look at a column of the private table, such as {names[0]}, "
        "that is NULL there, or write JOIN.",
        node,
        remedy=Rewrite("JOIN"),
    )


def leaves_out(aggregate: Aggregate, public: frozenset[str]) -> bool:
    """Whether an aggregate is the same without rows on which all columns are NULL, but those of these places."""
    if aggregate.function is COUNT_UNITS and not aggregate.arguments:
        return True
    if aggregate.function.zero_adds_nothing and _none(aggregate.arguments[0], public, or_zero=True):
        return True
    return any(_none(argument, public) for argument in aggregate.arguments)


def _none(node: Expression, public: frozenset[str], *, or_zero: bool = False) -> bool:
    """Whether an expression is surely NULL (or 0) on such a row."""

    def null(one: Expression) -> bool:
        return _none(one, public, or_zero=or_zero)

    match node:
        case Column(name=name):
            return name.partition(".")[0] not in public
        case Literal(value=value):
            return value is None or (or_zero and value == 0 and not isinstance(value, bool))
        case Case(conditions=conditions, values=values, default=default):
            taken = [v for c, v in zip(conditions, values, strict=True) if not _never(c, public)]
            return all(map(null, (*taken, default)))
        case Call(name=name, arguments=arguments) if name in _LENIENT:
            return all(map(null, arguments))
        case Call(name="NULLIF", arguments=arguments):
            return null(arguments[0])
        case Call(arguments=arguments):
            return any(_none(one, public) for one in arguments)
        case Arithmetic(left=left, right=right) | Compare(left=left, right=right):
            return _none(left, public) or _none(right, public)
        case Logic(terms=terms):
            return all(_none(one, public) for one in terms)
        case Negate(operand=operand) | Not(operand=operand) | InList(operand=operand) | Like(operand=operand):
            return _none(operand, public)
        case IsNull():
            return False
        case _:
            assert_never(node)


def _never(node: Expression, public: frozenset[str]) -> bool:
    """Whether a condition is surely not true on such a row."""
    match node:
        case Not(operand=IsNull(operand=operand)):
            return _none(operand, public)
        case Logic(op="AND", terms=terms):
            return any(_never(one, public) for one in terms)
        case Logic(terms=terms):
            return all(_never(one, public) for one in terms)
    return _none(node, public)
