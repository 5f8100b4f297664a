"""A question with `weight=`: its counts, sums and means are weighted ones."""

from __future__ import annotations

from sqlglot import exp

from hubbub.remedies import GiveOptions, Rewrite
from hubbub.sql.bind.from_ import Rows
from hubbub.tables.aggregates import Aggregate
from hubbub.tables.aggregates.count import COUNT_ROWS, COUNT_VALUES
from hubbub.tables.aggregates.mean import AVG
from hubbub.tables.aggregates.sum import SUM
from hubbub.tables.aggregates.weighted import WEIGHTED_AVG, WEIGHTED_COUNT, WEIGHTED_SUM
from hubbub.tables.expressions import Case, Expression, IsNull, Literal, Not
from hubbub.tables.kinds import NUMERIC

__all__ = ["weighted"]

_WEIGHTED = (WEIGHTED_COUNT, WEIGHTED_SUM, WEIGHTED_AVG)


def weighted(aggregate: Aggregate, rows: Rows, node: exp.Expr) -> Aggregate:
    """An aggregate in which each row counts by the question's weight.

    Raises QueryError for an aggregate that has no weighted form, and for a weight that is not a column of numbers.
    """
    if rows.reader.weight is None or aggregate.function in _WEIGHTED:
        return aggregate
    weight = _column(rows, rows.reader.weight, node)
    arguments = aggregate.arguments
    if aggregate.function is COUNT_ROWS:
        return Aggregate(WEIGHTED_COUNT, (weight,))
    if aggregate.function is COUNT_VALUES:
        counted = Case((Not(IsNull(arguments[0])),), (weight,), Literal(None))
        return Aggregate(WEIGHTED_COUNT, (counted,))
    if aggregate.function in (SUM, AVG):
        return Aggregate(WEIGHTED_SUM if aggregate.function is SUM else WEIGHTED_AVG, (*arguments, weight))
    raise rows.reader.refuse(
        f"{aggregate.function.names.sql} has no weighted form: weight= is for COUNT(*), COUNT(x), SUM and AVG. Ask for "
        "it in a question without a weight, or leave weight= out and write WEIGHTED_COUNT(w), WEIGHTED_SUM(x, w) and "
        "WEIGHTED_AVG(x, w) beside it.",
        node,
        remedy=Rewrite("WEIGHTED_SUM(x, w)"),
    )


def _column(rows: Rows, name: str, node: exp.Expr) -> Expression:
    column = exp.column(name, quoted=True)
    if not rows.scope.knows(column):
        raise rows.reader.refuse(
            f"weight: there is no column {name!r} here. A sub-query has to hand it on: SELECT ..., {name}.",
            node,
            remedy=Rewrite(f"SELECT ..., {name}"),
        )
    weight = rows.scope.column(column)
    if weight.kind not in NUMERIC:
        way = GiveOptions(("weight",))
        said = f"weight: {name!r} is a {weight.kind.value}; a weight is a number: {way.in_python()}."
        raise rows.reader.refuse(said, node, remedy=way)
    return weight
