"""APPROX_TOP_K(x, k) of a column whose values nobody declared: the most frequent ones, found privately.

    SELECT APPROX_TOP_K(word, 3) AS words FROM notes

asks which three groups of `word` have the most rows (`hubbub.tables.aggregates.top_place`), and of their release

    SELECT LIST(word ORDER BY place) AS words

It needs a delta, and stands alone: k choices are all that is paid for. Values that are declared are chosen from as they
are (`hubbub.tables.aggregates.top_k`). NULL is not a value.
"""

from __future__ import annotations

from sqlglot import exp

from hubbub.errors import PolicyError, QueryError
from hubbub.sql.bind.aggregate import arguments_of, function_of, released_table
from hubbub.sql.bind.context import PublicQuery
from hubbub.sql.bind.from_ import Rows
from hubbub.tables.aggregate_query import AggregateQuery, Key
from hubbub.tables.aggregates.mode import values_of
from hubbub.tables.aggregates.top_k import APPROX_TOP_K
from hubbub.tables.aggregates.top_place import TOP_BY_ROWS
from hubbub.tables.expressions import Column, Expression, IsNull, Literal, Logic, Not, columns_in, columns_of
from hubbub.tables.growth import too_large
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Filter, declared_in, names_read
from hubbub.tables.repeats import repeats_too_much

__all__ = ["top_of_undeclared"]

_BESIDE = ("group", "having", "qualify", "order", "limit", "offset", "distinct", "windows")


def top_of_undeclared(rows: Rows, node: exp.Select) -> PublicQuery | None:
    """The question of a SELECT of APPROX_TOP_K alone, whose values are not declared; None for any other SELECT.

    Raises QueryError for another number of places than it takes.
    """
    reader = rows.reader
    call, where = _alone(node)
    if call is None or rows.kept is not None or reader.weight is not None:
        return None
    given, read = arguments_of(call), rows.expressions()
    if len(given) != 2:
        return None
    value, k = read.read(given[0]), read.read(given[1])
    if not _undeclared(value, rows):
        return None
    try:
        aggregate = TOP_BY_ROWS.made((), (k.value if isinstance(k, Literal) else k,))
    except QueryError as error:
        raise reader.refuse(str(error), call, remedy=error.remedies) from None
    there: Expression = Not(IsNull(value))
    there = there if where is None else Logic("AND", (read.condition(where, "FILTER"), there))
    name = value.called if isinstance(value, Column) else ""
    relation = Filter(rows.relation, there)
    question = AggregateQuery(relation, (Key(value),), (aggregate,), ((0,),), (name,))
    reason = too_large(question) or repeats_too_much(question)
    if reason is not None:
        raise reader.refuse(reason, node)
    number, (place,) = reader.ask(question)
    return PublicQuery(_listed(number, place, node.expressions[0].alias or "_".join(filter(None, ("top", name)))))


def _alone(node: exp.Select) -> tuple[exp.Expr | None, exp.Expr | None]:
    """The call of APPROX_TOP_K that a SELECT is of, and the condition of its FILTER, if it has one."""
    if len(node.expressions) != 1 or any(node.args.get(clause) for clause in _BESIDE):
        return None, None
    item, where = node.expressions[0].unalias(), None
    if isinstance(item, exp.Filter):
        item, where = item.this, item.expression.this
    return (item, where) if function_of(item) is APPROX_TOP_K else (None, None)


def _undeclared(value: Expression, rows: Rows) -> bool:
    """Whether an argument is of columns, and has no values that can be listed."""
    if value.kind in (Kind.OTHER, Kind.NULL) or not columns_in(value):
        return False
    declared = declared_in(rows.relation, names_read(rows.relation) | columns_of(value))
    try:
        values_of(value, declared, APPROX_TOP_K.names.sql)
    except PolicyError:
        return True
    except QueryError:
        return False  # refused where the question is planned
    return False


def _listed(number: int, place: int, name: str) -> exp.Select:
    """The names of a release in the order of their places, as a list."""
    ordered = exp.Order(
        this=exp.column("k0", "r", quoted=True),
        expressions=[exp.Ordered(this=exp.column(f"a{place}", "r", quoted=True), nulls_first=False)],
    )
    names = exp.Coalesce(this=exp.Anonymous(this="LIST", expressions=[ordered]), expressions=[exp.Array()])
    return exp.Select(expressions=[exp.alias_(names, name, quoted=True)]).from_(released_table(number))
