"""Which columns of an answer are exact, which hand on noisy numbers as they are, and which are computed from them.

The names of the outer part are resolved by sqlglot (stars, USING, sub-queries, WITH). A column that is nothing but
another one is followed down to a release: to a key, or to an aggregate. Filters, joins, windows beside it, LIMIT,
DISTINCT and set operations choose rows and change no value. What an aggregate, a window or a sub-query makes of a
release, and what is computed from a noisy number, is noisy for certain, whatever its values are. Whatever is not
understood counts as computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.tables.aggregate_query import Aggregate, AggregateQuery, Output
from hubbub.tables.kinds import Kind

__all__ = ["noisy_outputs", "traced"]

_AGGREGATE = re.compile(r"a\d+")
_RELEASE = re.compile(r"released\d+")

_Cell = tuple[int, int] | str
"""(question, aggregate), "exact", "null", or "noisy": computed, and from a noisy number for certain."""

_NOISY: Final[frozenset[_Cell]] = frozenset({"noisy"})
_PLAIN: Final = (
    exp.Identifier | exp.Literal | exp.Null | exp.Boolean | exp.Binary | exp.Unary | exp.Paren | exp.Cast | exp.DataType
)
_PLAIN_TOO: Final = exp.DataTypeParam | exp.Case | exp.If | exp.Coalesce | exp.Upper | exp.Lower | exp.Between | exp.In


def noisy_outputs(rowwise: exp.Select) -> list[bool]:
    """For each column of a row-wise outer part, whether an aggregate stands in it.

    >>> text = 'SELECT "r"."k0" AS "ward", 2 * "r"."a1" AS "twice" FROM "released0" AS "r"'
    >>> noisy_outputs(sqlglot.parse_one(text, read="duckdb"))
    [False, True]
    """
    return [
        any(_AGGREGATE.fullmatch(column.name) for column in item.find_all(exp.Column)) for item in rowwise.expressions
    ]


def traced(
    sql: str,
    outputs: Sequence[Output],
    questions: Sequence[AggregateQuery],
    schemas: Mapping[str, Mapping[str, Kind]],
) -> tuple[Output, ...]:
    """The columns of an answer, with the aggregates whose values they hand on; or exact; or, computed, unchanged.

    sql: the outer part. schemas: the columns of the releases and of the public tables that it reads.
    """
    traces = _traces(sql, schemas)
    if len(traces) != len(outputs):
        return tuple(outputs)
    return tuple(_told(output, cells, questions) for output, cells in zip(outputs, traces, strict=True))


def _told(output: Output, reached: frozenset[_Cell] | None, questions: Sequence[AggregateQuery]) -> Output:
    kinds = None if reached is None else reached - {"null"}
    if kinds is None:
        return output
    if "noisy" in kinds or ("exact" in kinds and len(kinds) > 1):
        return replace(output, noisy=True)
    cells = sorted(cell for cell in kinds if not isinstance(cell, str))
    if not cells:
        return replace(output, exact=True)
    (first, what), *others = [(number, _aggregate(questions, number, at)) for number, at in cells]
    return replace(output, question=first, what=what, others=tuple(others))


def _aggregate(questions: Sequence[AggregateQuery], number: int, at: int) -> Aggregate:
    return questions[number].aggregates[at]


def _traces(sql: str, schemas: Mapping[str, Mapping[str, Kind]]) -> list[frozenset[_Cell] | None]:
    # Imported where it is needed: sqlglot's optimizer is slow to load, and most questions need none.
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import build_scope

    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
        if next(tree.find_all(exp.Pivot), None) is not None:
            return []
        typed: dict[str, object] = {name: dict.fromkeys(columns, "TEXT") for name, columns in schemas.items()}
        qualified = qualify(tree, schema=typed, dialect="duckdb", validate_qualify_columns=False)
        scope = build_scope(qualified)
        if scope is None or not isinstance(scope.expression, exp.Query):
            return []
        return [_trace(scope, at, schemas) for at in range(len(scope.expression.selects))]
    except (SqlglotError, KeyError, ValueError, RecursionError):
        return []


def _trace(scope, at: int, schemas: Mapping[str, Mapping[str, Kind]]) -> frozenset[_Cell] | None:  # type: ignore[no-untyped-def]
    """Where the values of one column of a query come from; None where they are computed."""
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        if query.args.get("by_name") or len(scope.set_operation_scopes) != 2:
            return None
        left, right = (_trace(side, at, schemas) for side in scope.set_operation_scopes)
        if left is None or right is None:
            return _NOISY if any(side is not None and _is_noisy(side) for side in (left, right)) else None
        return left | right
    if not isinstance(query, exp.Select) or at >= len(query.selects):
        return None
    value = query.selects[at].unalias()
    while isinstance(value, exp.Paren):
        value = value.this
    if isinstance(value, exp.Null):
        return frozenset({"null"})
    if isinstance(value, exp.Column):
        return _column(scope, value, schemas)
    if next(value.find_all(exp.AggFunc, exp.Window, exp.Query), None) is not None:
        return _NOISY if _reads_release(scope) else None
    sides = [_column(scope, column, schemas) for column in value.find_all(exp.Column)]
    if any(side is not None and _is_noisy(side) for side in sides):
        return _NOISY
    if all(isinstance(node, _PLAIN | _PLAIN_TOO | exp.Column) for node in value.walk()) and all(
        side is not None and side <= {"exact", "null"} for side in sides
    ):
        return frozenset({"exact"})
    return None


def _is_noisy(reached: frozenset[_Cell]) -> bool:
    return not reached <= {"exact", "null"}


def _reads_release(scope) -> bool:  # type: ignore[no-untyped-def]
    """Whether a query, or one inside it, reads a release."""
    sources = (source for part in scope.traverse() for source in part.sources.values())
    return any(isinstance(source, exp.Table) and _RELEASE.fullmatch(source.name) is not None for source in sources)


def _column(scope, column: exp.Column, schemas: Mapping[str, Mapping[str, Kind]]) -> frozenset[_Cell] | None:  # type: ignore[no-untyped-def]
    source = scope.sources.get(column.table)
    if isinstance(source, exp.Table):
        if source.name not in schemas:
            return None
        if _RELEASE.fullmatch(source.name) and _AGGREGATE.fullmatch(column.name):
            return frozenset({(int(source.name[8:]), int(column.name[1:]))})
        return frozenset({"exact"})
    query = getattr(source, "expression", None)
    if not isinstance(query, exp.Query):
        return None
    places = [i for i, item in enumerate(query.selects) if item.alias_or_name.lower() == column.name.lower()]
    return _trace(source, places[0], schemas) if len(places) == 1 else None
