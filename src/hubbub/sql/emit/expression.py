"""Row expressions as SQL text, total on every row: what has no answer is NULL, whatever the row holds.

The text is in one of the dialects of `hubbub.sql.emit.dialect`; DuckDB's where none is named. An engine that meets two
types makes one of them the other by a cast of its own, which raises. So nothing is left to it:

- The text of an expression has the SQL type of its kind. (INTEGER is 64 bits, or 128 where a column is so wide.)
- An operand that meets another, or stands in a place of a kind, is written in that kind (`_operand_of`), by a cast
  that gives NULL where a value has no counterpart.
- Dates and times that are made lie in the years 1 to 9999, as those of columns do, so that each has a counterpart.

Below that, on DuckDB, `TRY` stands around each node that would raise if one of these rules were broken (`RAISES`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import assert_never

from hubbub.errors import QueryError
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.net import raises
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
    common_kind,
    rebuild,
    whole,
)
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.patterns import LOOKED_AT, printed
from hubbub.tables.written_out import WRITTEN_OUT, written_out

__all__ = ["Together", "expression_sql", "renamed"]

MAX_EXPRESSION = 200_000
MAX_TOGETHER = 1_000_000
"""The expressions of one text have no more characters: DuckDB binds a million in some seconds."""
_FLOAT_FUNCTIONS = {"ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SQRT", "EXP", "LN", "LOG10"}


def expression_sql(node: Expression, dialect: Dialect) -> str:
    """A row expression; total on every row (see `hubbub.tables.expressions`).

    Raises QueryError where the text would grow beyond all use.
    """
    return _Expressions(dialect).sql(node)


def _too_complex(parts: str, what: str = "this expression is", way_out: str = "") -> QueryError:
    return QueryError(f"{what} too complex: {parts} are nested too deeply{way_out}.")


class Together:
    """Writes the expressions of one text, and counts them: each is short, and thousands may be asked."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect, self.characters = dialect, 0

    def sql(self, node: Expression) -> str:
        """Raises QueryError where all that were written are beyond `MAX_TOGETHER` characters."""
        sql = expression_sql(node, self.dialect)
        self.characters += len(sql)
        if self.characters > MAX_TOGETHER:
            parts = "divisions, remainders, POWER or CASE"
            raise _too_complex(parts, "the expressions of this question are", "; ask fewer of them at once")
        return sql


class _Expressions:
    """The writer of expressions in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def sql(self, node: Expression) -> str:
        sql = self._expression(node)
        if len(sql) > MAX_EXPRESSION:
            raise _too_complex("divisions, remainders or CASE")
        return sql

    def _expression(self, node: Expression) -> str:
        d = self.dialect
        if node.kind is Kind.NULL:
            # Without a type of its own: a typed NULL beside a text would make the engine cast the text, and fail on it.
            return "NULL"
        match node:
            case Column(name=name):
                return d.quote(name)
            case Literal(value=value):
                return d.typed(value)
            case Negate() if node.kind is Kind.INTEGER:
                # -(-2^63) is not a whole number of 64 bits: as a double it would make a later cast raise.
                return d.cast(self._raw(node), Kind.NUMBER, Kind.INTEGER)
            case Negate(operand=operand) if d.checked and not _bounded_by_form(operand):
                x = self._raw(operand)  # a sign is not arithmetic that raises: of any size, but not infinite
                return f"(CASE WHEN abs({x}) < {d.real(math.inf)} THEN -{x} END)"
            case Arithmetic() | Negate():
                return d.finite(self._raw(node))
            case Compare(op=op, left=left, right=right):
                a, b = self._aligned((left, right))
                return self._tried(node, f"({a} {op} {b})")
            case Logic(op=op, terms=terms):
                return f"({f' {op} '.join(self._operand_of(t, Kind.BOOLEAN) for t in terms)})"
            case Not(operand=operand):
                return f"(NOT {self._operand_of(operand, Kind.BOOLEAN)})"
            case IsNull(operand=operand):
                return f"({self.sql(operand)} IS NULL)"
            case InList(operand=operand, values=values):
                a, *listed = self._aligned((operand, *values))
                return self._tried(node, f"({a} IN ({', '.join(listed)}))")
            case Like(operand=operand, pattern=pattern, ignore_case=ignore_case):
                return self._tried(node, d.like(self._operand_of(operand, Kind.TEXT), pattern, ignore_case))
            case Case():
                return self._tried(node, self._case(node))
            case Call(name=name) if name in WRITTEN_OUT:
                return self.sql(written_out(node))
            case Call(name=name):
                if name in _FLOAT_FUNCTIONS:
                    return d.finite(self._raw(node))
                return self._call(node)
        assert_never(node)

    def _raw(self, node: Expression) -> str:
        """A number as a double that may be infinite or NaN. Through + - * and a sign, what is not finite stays so."""
        sql = self._raw_unchecked(node)
        if len(sql) > MAX_EXPRESSION:
            raise _too_complex("divisions or remainders")
        return sql

    def _raw_unchecked(self, node: Expression) -> str:
        d = self.dialect
        match node:
            case Negate(operand=operand):
                return self._tried(node, f"(-{self._raw(operand)})")
            case Literal(value=value):
                return d.double(d.constant(value))
            case Arithmetic(op=op, right=right):
                a, b = self._operands(node)
                if op in ("+", "-", "*"):
                    return self._tried(node, f"({a} {op} {b})")
                b = b if isinstance(right, Literal) and self._value(right) else d.divisor(b)
                quotient = self._tried(node, f"({a} / {b})")
                if op == "/":
                    return quotient
                whole_quotient = d.floor(quotient, toward_zero=op in ("DIV", "MOD"))
                return whole_quotient if op in ("//", "DIV") else self._tried(node, f"({a} - {b} * {whole_quotient})")
            case Call(name="SIGN" | "EXP", arguments=(first, *_)):
                # Of what is not finite they have a finite value.
                return self._function(node, [d.finite(self._operand(first))])
            case Call(name="ROUND", arguments=(first, *_)) if d.checked and not _fits(_reach(first), room=ROUNDED):
                return self._function(node, [self._within(first)])
            case Call(name=name, arguments=(first, *_)) if name in _FLOAT_FUNCTIONS:
                return self._function(node, [self._operand(first)])
            case _:
                sql = self.sql(node)
                return d.double(sql) if d.casts or node.kind is Kind.NULL else sql

    def _function(self, node: Call, texts: list[str]) -> str:
        """A function of numbers whose first arguments are written; the others are constants."""
        texts += [self._constant(c) for c in node.arguments[len(texts) :]]
        return self._tried(node, self.dialect.call(node.name, texts, [Kind.NUMBER] * len(texts)))

    def _operands(self, node: Arithmetic) -> tuple[str, str]:
        """Both sides; where the engine raises on what is too large or too small, within a range that is safe."""
        if self.dialect.checked and not _fits(_reach_of(node.op, _reach(node.left), _reach(node.right))):
            return self._within(node.left), self._within(node.right)
        return self._operand(node.left), self._operand(node.right)

    def _operand(self, node: Expression) -> str:
        """A number as an operand: a double of any size may stand in a column, and is kept in a range first."""
        if not self.dialect.checked or _bounded_by_form(node):
            return self._raw(node)
        return self._within(node)

    def _within(self, node: Expression) -> str:
        """A number that is 0 where it is below 2^-SAFE in magnitude, and NULL where it is above 2^SAFE."""
        if isinstance(node, Literal):
            return self.dialect.double(self.dialect.constant(self._value(node)))
        x = self._raw(node)
        low, high = self.dialect.real(2.0**-SAFE), self.dialect.real(2.0**SAFE)
        return f"(CASE WHEN abs({x}) < {low} THEN 0 WHEN abs({x}) <= {high} THEN {x} END)"

    def _value(self, node: Literal) -> int | Fraction | None:
        """A constant as the engine's arithmetic sees it."""
        value = _number(node)
        if value is None or not self.dialect.checked:
            return value if value is None or float(value) else 0
        return _safe(value)

    def _call(self, node: Call) -> str:
        """A function whose arguments are values or NULL; where it may give any of them, they have one type."""
        d, arguments = self.dialect, node.arguments
        kinds = [a.kind for a in arguments]
        function = FUNCTIONS[node.name]
        if function.result_kind is None and node.name != "DATE_TRUNC":
            texts = [self._operand_of(a, node.kind) for a in arguments]
            return self._tried(node, d.call(node.name, texts, [node.kind] * len(kinds)))
        texts = []
        for i, argument in enumerate(arguments):
            takes = function.takes[min(i, len(function.takes) - 1)]
            if node.name == "REGEXP_MATCHES" and isinstance(argument, Literal) and isinstance(argument.value, str):
                texts.append(d.literal(printed(argument.value, d.spelling.end_of_text) if i else argument.value))
            elif i in function.constants and argument.kind is not Kind.NULL:
                texts.append(self._constant(argument))
            elif node.name in ("DATE_DIFF", "DATE_ADD"):
                texts.append(self._operand_of(argument, Kind.TIMESTAMP))
            else:
                texts.append(self._argument(argument, takes))
        if node.name == "CONTAINS" and not _is_short(arguments[1]):
            # Postgres takes the length of a text times that of what it looks for, which one row has in its hands.
            length = d.call("LENGTH", [texts[1]], [Kind.TEXT])
            texts[1] = f"(CASE WHEN {length} <= {LOOKED_AT} THEN {texts[1]} END)"
        sql = self._tried(node, d.call(node.name, texts, kinds))
        match node.name:
            case "DATE_TRUNC" if node.kind is Kind.DATE:
                return d.cast(sql, Kind.TIMESTAMP, Kind.DATE)
            case "CAST_NUMBER":
                return d.finite(sql)
        return sql

    def _constant(self, node: Expression) -> str:
        """An argument that is a constant: how many places or characters, or the name of a part of time, in quotes."""
        if not isinstance(node, Literal):
            return self.sql(node)
        return self.dialect.literal(node.value) if isinstance(node.value, str) else self.dialect.constant(node.value)

    def _argument(self, node: Expression, takes: frozenset[Kind]) -> str:
        """An argument; where it is NULL itself, of a type that the function takes."""
        if node.kind is not Kind.NULL:
            return self.sql(node)
        return self.dialect.null(next(k for k in (Kind.TEXT, Kind.TIMESTAMP, Kind.NUMBER) if k in takes))

    def _operand_of(self, node: Expression, kind: Kind) -> str:
        """An expression in the type of a kind that holds all of its own."""
        if isinstance(node, Literal) and kind is Kind.NUMBER and node.kind in NUMERIC:
            return self.dialect.double(self.dialect.constant(node.value))
        return self.dialect.operand(self.sql(node), node.kind, kind)

    def _aligned(self, operands: tuple[Expression, ...]) -> list[str]:
        """Operands that meet, in one type."""
        kind = common_kind(o.kind for o in operands)
        return [self._operand_of(o, kind) for o in operands]

    def _case(self, node: Case) -> str:
        parts = " ".join(
            f"WHEN {self._operand_of(condition, Kind.BOOLEAN)} THEN {self._operand_of(value, node.kind)}"
            for condition, value in zip(node.conditions, node.values, strict=True)
        )
        return f"(CASE {parts} ELSE {self._operand_of(node.default, node.kind)} END)"

    def _tried(self, node: Expression, sql: str) -> str:
        return self.dialect.tried(sql) if raises(node) else sql


def renamed(node: Expression, names: Mapping[str, str]) -> Expression:
    """An expression whose columns have other names."""
    if isinstance(node, Column):
        return Column(names[node.name], node.kind)
    return rebuild(node, lambda child: renamed(child, names))


SAFE = 300
"""Where an engine raises on overflow and underflow, operands have magnitudes from 2^-SAFE to 2^SAFE, or are 0."""
ROUNDED = 52
"""ROUND multiplies and divides by up to 10^15, below 2^50."""

_Reach = tuple[int, int]
"""Exponents (low, high), low <= high: a value is NULL, 0, or of a magnitude from 2^low to 2^high."""


def _number(node: Literal) -> int | Fraction | None:
    """The number of a constant that stands where a number does; None for NULL."""
    return node.value if isinstance(node.value, int | Fraction) else None


def _safe(value: int | Fraction) -> int | Fraction | None:
    """A constant that takes part in arithmetic where an engine is checked: as a row's value would."""
    size = abs(Fraction(value))
    if size > 2**SAFE:
        return None
    return 0 if size < Fraction(1, 2**SAFE) else value


def _is_short(text: Expression) -> bool:
    """Whether a text is a constant of no more characters than are looked for."""
    return isinstance(text, Literal) and len(str(text.value)) <= LOOKED_AT


def _bounded_by_form(node: Expression) -> bool:
    """Whether `_reach` knows a number's magnitude from its form; else it is kept in the range of SAFE."""
    match node:
        case Literal():
            return False
        case Arithmetic():
            return True
        case Negate(operand=operand):
            return _bounded_by_form(operand)
        case Call(name=name) if name in _FLOAT_FUNCTIONS:
            return True
        case Call(name=name) if name in WRITTEN_OUT:
            return _bounded_by_form(written_out(node))
    return node.kind is not Kind.NUMBER


def _reach(node: Expression) -> _Reach:
    """Of a number as an operand (`_operand`)."""
    match node:
        case Literal():
            value = _safe(_number(node) or 0)
            exponent = math.frexp(float(value))[1] if value else 0
            return exponent - 1, exponent
        case Negate(operand=operand):
            return _reach(operand)
        case Arithmetic(op=op, left=left, right=right):
            reach = _reach_of(op, _reach(left), _reach(right))
            reach = reach if _fits(reach) else _reach_of(op, (-SAFE, SAFE), (-SAFE, SAFE))
            return (0, reach[1]) if whole(node) else reach
        case Call(name=name, arguments=(first, *_)) if name in _FLOAT_FUNCTIONS:
            return _reach_of_function(name, _reach(first))
        case Call(name=name) if name in WRITTEN_OUT:
            return _reach(written_out(node))
    return (0, 64) if node.kind is not Kind.NUMBER else (-SAFE, SAFE)


def _reach_of_function(name: str, reach: _Reach) -> _Reach:
    """Of one of `_FLOAT_FUNCTIONS`, from that of its argument."""
    low, high = reach
    match name:
        case "ABS":
            return low, high
        case "SQRT":
            return min(low, low // 2), max(high, high // 2 + 1)
        case "FLOOR" | "CEIL":
            return 0, max(high, 1)
        case "SIGN":
            return 0, 0
        case "EXP":
            return -1000, 1024
        case "LN" | "LOG10":
            return -60, 11
    low, high = reach if _fits(reach, room=ROUNDED) else (-SAFE, SAFE)
    return min(low, -60), max(high, ROUNDED) + 1


def _reach_of(op: str, a: _Reach, b: _Reach) -> _Reach:
    """Of a result and of what is computed on the way, from the operands.

    The difference of two doubles is 0 or no smaller than the last place of one. A quotient of any size may be rounded
    down to 0 or -1, and a remainder is a - b floor(a / b), or cut off to 0.
    """
    match op:
        case "+" | "-":
            return min(a[0], b[0]) - 53, max(a[1], b[1]) + 1
        case "*":
            return a[0] + b[0] - 1, a[1] + b[1] + 1
        case "/":
            return a[0] - b[1] - 1, a[1] - b[0] + 1
        case "//" | "DIV":
            return min(0, a[0] - b[1] - 1), max(0, a[1] - b[0]) + 1
    quotient = max(0, a[1] - b[0]) + 1
    return min(a[0] - b[1], a[0] - 53, b[0] - 53) - 1, max(a[1], quotient, b[1] + quotient) + 2


def _fits(reach: _Reach, room: int = 0) -> bool:
    return reach[0] >= -1000 + room and reach[1] <= 1000 - room
