"""Row expressions as SQL text, total on every row: what has no answer is NULL, whatever the row holds."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import assert_never

from hubbub.errors import InternalError, QueryError
from hubbub.sql.functions import WRITE
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
    rebuild,
)
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.kinds import NUMERIC, Kind

__all__ = ["TYPES", "constant_sql", "expression_sql", "quote", "renamed"]

MAX_EXPRESSION = 200_000
_FLOAT_FUNCTIONS = {"ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SQRT", "EXP", "LN", "LOG10"}
TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


def quote(name: str) -> str:
    """A name as a quoted identifier.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def constant_sql(value: object) -> str:
    """A constant, printed from its value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"({value})" if value < 0 else str(value)
        case Fraction() | float():
            return f"CAST('{float(value)!r}' AS DOUBLE)"
        case str():
            return _text_sql(value)
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise InternalError(f"a constant of type {type(value).__name__}")


def _text_sql(value: str) -> str:
    if "\0" in value:
        return "(" + " || chr(0) || ".join(_text_sql(part) for part in value.split("\0")) + ")"
    return "'" + value.replace("'", "''") + "'"


def _double(sql: str) -> str:
    return f"CAST({sql} AS DOUBLE)"


def expression_sql(node: Expression) -> str:
    """A row expression; total on every row (see `hubbub.tables.expressions`).

    Raises QueryError where the text would grow beyond all use.
    """
    sql = _expression(node)
    if len(sql) > MAX_EXPRESSION:
        raise QueryError("this expression is too complex: divisions, remainders or CASE are nested too deeply.")
    return sql


def _expression(node: Expression) -> str:
    if node.kind is Kind.NULL:
        # Without a type of its own: a typed NULL beside a text would make the engine cast the text, and fail on it.
        return "NULL"
    match node:
        case Column(name=name):
            return quote(name)
        case Literal(value=value):
            return constant_sql(value)
        case Arithmetic() | Negate():
            raw = _raw(node)
            return f"(CASE WHEN isfinite({raw}) THEN {raw} END)"
        case Compare(op=op, left=left, right=right):
            a, b = _aligned(left, right)
            return f"({a} {op} {b})"
        case Logic(op=op, terms=terms):
            return f"({f' {op} '.join(map(expression_sql, terms))})"
        case Not(operand=operand):
            return f"(NOT {expression_sql(operand)})"
        case IsNull(operand=operand):
            return f"({expression_sql(operand)} IS NULL)"
        case InList(operand=operand, values=values):
            return f"({_in_terms(operand, values)})"
        case Like(operand=operand, pattern=pattern, ignore_case=ignore_case):
            word = "ILIKE" if ignore_case else "LIKE"
            return f"({expression_sql(operand)} {word} {_pattern_sql(pattern)})"
        case Case():
            return _case(node)
        case Call(name=name):
            if name in _FLOAT_FUNCTIONS:
                raw = _raw(node)
                return f"(CASE WHEN isfinite({raw}) THEN {raw} END)"
            return _call(node)
    assert_never(node)


def _pattern_sql(parts: tuple[str, ...]) -> str:
    """A pattern, with one escape character that no engine changes, and only where it is needed.

    DuckDB looks at the escape character row by row and fails on the first row that meets a wrong one, so a user's own
    never reaches it.
    """
    texts = [part[1:] for part in parts if part[0] == "="]
    if not any(c in text for text in texts for c in "%_"):
        return _text_sql("".join(part[1:] if part[0] == "=" else part for part in parts))
    escaped = "".join(re.sub(r"([\\%_])", r"\\\1", part[1:]) if part[0] == "=" else part for part in parts)
    return f"{_text_sql(escaped)} ESCAPE '\\'"


def _raw(node: Expression) -> str:
    """A number as a double that may be infinite or NaN. Through + - * and a sign, what is not finite stays so."""
    sql = _raw_unchecked(node)
    if len(sql) > MAX_EXPRESSION:
        raise QueryError("this expression is too complex: divisions or remainders are nested too deeply.")
    return sql


def _raw_unchecked(node: Expression) -> str:
    match node:
        case Negate(operand=operand):
            return f"(-{_raw(operand)})"
        case Arithmetic(op=("+" | "-" | "*") as op, left=left, right=right):
            return f"({_raw(left)} {op} {_raw(right)})"
        case Arithmetic(op="/", left=left, right=right):
            return f"({_raw(left)} / {_divisor(right)})"
        case Arithmetic(op="//", left=left, right=right):
            return f"floor({_raw(left)} / {_divisor(right)})"
        case Arithmetic(left=left, right=right):
            a, b = _raw(left), _divisor(right)
            return f"({a} - {b} * floor({a} / {b}))"
        case Call(name=name, arguments=(first, *rest)) if name in _FLOAT_FUNCTIONS:
            return WRITE[name]([_raw(first), *map(expression_sql, rest)])
        case _:
            return _double(expression_sql(node))


def _call(node: Call) -> str:
    """A function whose arguments are values or NULL; where it may give any of them, they have one type."""
    arguments = node.arguments
    if FUNCTIONS[node.name].gives is None and node.name != "DATE_TRUNC":
        return WRITE[node.name]([_as_kind(a, node.kind) for a in arguments])
    if node.name == "DATE_DIFF":
        return WRITE[node.name]([expression_sql(arguments[0]), *(_as_kind(a, Kind.TIMESTAMP) for a in arguments[1:])])
    takes = FUNCTIONS[node.name].takes
    sql = WRITE[node.name]([_argument(a, takes[min(i, len(takes) - 1)]) for i, a in enumerate(arguments)])
    if node.name == "DATE_TRUNC" and node.kind is Kind.DATE:
        return f"TRY_CAST({sql} AS DATE)"
    return f"(CASE WHEN isfinite({sql}) THEN {sql} END)" if node.name == "CAST_NUMBER" else sql


def _argument(node: Expression, takes: frozenset[Kind]) -> str:
    """An argument; where it is NULL itself, of a type that the function takes."""
    if node.kind is not Kind.NULL:
        return expression_sql(node)
    return f"CAST(NULL AS {TYPES[next(k for k in (Kind.TEXT, Kind.TIMESTAMP, Kind.NUMBER) if k in takes)]})"


def _as_kind(node: Expression, kind: Kind) -> str:
    """An expression as a value of a kind that holds all of its own."""
    sql = expression_sql(node)
    if kind in (Kind.NULL, node.kind):
        return _double(sql) if kind is Kind.NUMBER else sql
    return f"TRY_CAST({sql} AS {TYPES[kind]})"


def _divisor(node: Expression) -> str:
    """A finite number other than 0, or NULL."""
    if isinstance(node, Literal) and node.value:
        return _double(constant_sql(node.value))
    raw = _raw(node)
    return f"(CASE WHEN isfinite({raw}) AND {raw} <> 0 THEN {raw} END)"


def _in_terms(operand: Expression, values: tuple[Literal, ...]) -> str:
    """`operand IN (...)` with all sides in one type, by casts that cannot fail."""
    widest = Literal(next((v.value for v in values if v.kind in (Kind.NUMBER, Kind.TIMESTAMP)), None))
    a = _aligned(operand, widest)[0] if widest.value is not None else expression_sql(operand)
    target: Expression = widest if widest.value is not None else operand
    return f"{a} IN ({', '.join(_aligned(v, target)[0] for v in values)})"


def _aligned(left: Expression, right: Expression) -> tuple[str, str]:
    """Both sides in one type, by casts that cannot fail."""
    a, b = expression_sql(left), expression_sql(right)
    kinds = {left.kind, right.kind}
    if Kind.NUMBER in kinds and kinds <= NUMERIC:
        return _double(a), _double(b)
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return f"TRY_CAST({a} AS TIMESTAMP)", f"TRY_CAST({b} AS TIMESTAMP)"
    return a, b


def _case(node: Case) -> str:
    as_double = node.kind is Kind.NUMBER

    def branch(value: Expression) -> str:
        sql = expression_sql(value)
        return _double(sql) if as_double else sql

    parts = " ".join(
        f"WHEN {expression_sql(condition)} THEN {branch(value)}"
        for condition, value in zip(node.conditions, node.values, strict=True)
    )
    return f"(CASE {parts} ELSE {branch(node.default)} END)"


def renamed(node: Expression, names: Mapping[str, str]) -> Expression:
    """An expression whose columns have other names."""
    if isinstance(node, Column):
        return Column(names[node.name], node.kind)
    return rebuild(node, lambda child: renamed(child, names))
