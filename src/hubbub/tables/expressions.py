"""Row expressions: typed, total, and read by every room without a ladder.

A node is its fields, an integrity check and its kind. `children` and `rebuild` are the one generic walk.

Totality. For every row an expression has a value or is NULL; it never raises. Arithmetic is done in 64-bit
floating point, row by row (nothing is accumulated); a result that is not finite is NULL, and a NaN in a column
counts as NULL. There are no implicit casts between text, numbers, booleans and dates. Truth is three-valued as
in SQL.

Bounds. `interval` gives the range an expression takes if its columns keep to their declared bounds. It decides
where a value is clamped at the aggregate, so a column that does not keep to them costs accuracy, never privacy.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Literal as OneWord, TypeAlias

from hubbub.errors import InternalError
from hubbub.tables.declare import Between, Declaration, OneOf
from hubbub.tables.kinds import COMPARABLE, NUMERIC, Kind

__all__ = [
    "Arithmetic",
    "Case",
    "Column",
    "Compare",
    "Expression",
    "InList",
    "Interval",
    "IsNull",
    "Like",
    "Literal",
    "Logic",
    "Negate",
    "Not",
    "canonical",
    "children",
    "columns_of",
    "comparable",
    "interval",
    "rebuild",
    "whole",
]

Value: TypeAlias = bool | int | Fraction | str | dt.date | dt.datetime | None
ArithmeticOp: TypeAlias = OneWord["+", "-", "*", "/", "//", "%"]
CompareOp: TypeAlias = OneWord["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Column:
    """A column of the owned relation."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Literal:
    """A constant. Numbers are kept exactly: int, or Fraction for decimals."""

    value: Value

    @property
    def kind(self) -> Kind:
        match self.value:
            case None:
                return Kind.NULL
            case bool():
                return Kind.BOOLEAN
            case int():
                return Kind.INTEGER
            case Fraction():
                return Kind.NUMBER
            case str():
                return Kind.TEXT
            case dt.datetime():
                return Kind.TIMESTAMP
            case _:
                return Kind.DATE


@dataclass(frozen=True)
class Arithmetic:
    """`left op right` in 64-bit floating point; `//` rounds toward minus infinity, `%` has the sign of the divisor."""

    op: ArithmeticOp
    left: Expression
    right: Expression

    @property
    def kind(self) -> Kind:
        return Kind.NUMBER


@dataclass(frozen=True)
class Negate:
    """`-operand`."""

    operand: Expression

    @property
    def kind(self) -> Kind:
        return self.operand.kind


@dataclass(frozen=True)
class Compare:
    """`left op right`; NULL if a side is NULL."""

    op: CompareOp
    left: Expression
    right: Expression
    kind = Kind.BOOLEAN


@dataclass(frozen=True)
class Logic:
    """All terms joined by AND, or all by OR; three-valued."""

    op: OneWord["AND", "OR"]
    terms: tuple[Expression, ...]
    kind = Kind.BOOLEAN


@dataclass(frozen=True)
class Not:
    """`NOT operand`."""

    operand: Expression
    kind = Kind.BOOLEAN


@dataclass(frozen=True)
class IsNull:
    """`operand IS NULL`: never NULL itself."""

    operand: Expression
    kind = Kind.BOOLEAN


@dataclass(frozen=True)
class InList:
    """`operand IN (constants)`."""

    operand: Expression
    values: tuple[Literal, ...]
    kind = Kind.BOOLEAN


@dataclass(frozen=True)
class Like:
    """`operand LIKE pattern`, with % and _; `escape` is one character or none."""

    operand: Expression
    pattern: str
    escape: str | None
    ignore_case: bool
    kind = Kind.BOOLEAN


@dataclass(frozen=True)
class Case:
    """`CASE WHEN condition THEN value ... ELSE default END`."""

    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]
    default: Expression

    @property
    def kind(self) -> Kind:
        kinds = {v.kind for v in (*self.values, self.default)} - {Kind.NULL}
        if kinds <= NUMERIC and len(kinds) > 1:
            return Kind.NUMBER
        return next(iter(kinds), Kind.NULL)


Expression: TypeAlias = Column | Literal | Arithmetic | Negate | Compare | Logic | Not | IsNull | InList | Like | Case
_NODES = (Column, Literal, Arithmetic, Negate, Compare, Logic, Not, IsNull, InList, Like, Case)


def children(node: Expression) -> Iterator[Expression]:
    """The expressions directly below `node`, left to right."""
    for field in fields(node):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, _NODES):
                yield item


def rebuild(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """`node` with `change` applied to each expression directly below it."""
    new: dict[str, object] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple):
            new[field.name] = tuple(change(v) if isinstance(v, _NODES) else v for v in value)
        elif isinstance(value, _NODES):
            new[field.name] = change(value)
    return replace(node, **new) if new else node  # type: ignore[arg-type]


def columns_of(node: Expression) -> frozenset[str]:
    """The names of all columns an expression reads."""
    if isinstance(node, Column):
        return frozenset({node.name})
    return frozenset().union(*map(columns_of, children(node)))


def comparable(left: Kind, right: Kind) -> bool:
    """Whether values of the two kinds can be compared without a cast."""
    if Kind.NULL in (left, right):
        return Kind.OTHER not in (left, right)
    return any(left in family and right in family for family in COMPARABLE)


def canonical(node: Expression) -> object:
    """A JSON-ready form of `node`: two expressions with the same form are the same question."""
    if isinstance(node, Literal):
        return ["Literal", node.kind.value, None if node.value is None else str(node.value)]
    parts: list[object] = [type(node).__name__]
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple):
            parts.append([canonical(v) for v in value])
        elif isinstance(value, _NODES):
            parts.append(canonical(value))
        else:
            parts.append(value.value if isinstance(value, Kind) else value)
    return parts


@dataclass(frozen=True)
class Interval:
    """A closed range of numbers, exact. `low <= high`."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise InternalError(f"an interval from {self.low} to {self.high}")

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))


def interval(node: Expression, declared: Mapping[str, Declaration]) -> Interval | str | None:
    """The range of a numeric expression from the declared bounds of its columns.

    Returns the Interval; None for an expression that is always NULL; or, where there is no range, the name of
    the column that lacks bounds, or "" when the operation itself has none (a division by a range).
    """
    match node:
        case Literal(value=None):
            return None
        case Literal(value=int() | Fraction() as value):
            return Interval(Fraction(value), Fraction(value))
        case Column(name=name):
            return _declared(name, declared.get(name))
        case Negate(operand=operand):
            inner = interval(operand, declared)
            return Interval(-inner.high, -inner.low) if isinstance(inner, Interval) else inner
        case Arithmetic(op=op, left=left, right=right):
            a, b = interval(left, declared), interval(right, declared)
            for side in (a, b):
                if not isinstance(side, Interval):
                    return side
            assert isinstance(a, Interval)
            assert isinstance(b, Interval)
            return _combine(op, a, b)
        case Case(values=values, default=default):
            return _union([interval(v, declared) for v in (*values, default)])
        case _:
            return ""


def _declared(name: str, what: Declaration | None) -> Interval | str:
    match what:
        case Between(low=Fraction() as low, high=Fraction() as high):
            return Interval(low, high)
        case OneOf(values=values):
            numbers = [Fraction(str(v)) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
            if numbers:
                return Interval(min(numbers), max(numbers))
    return name


def _combine(op: ArithmeticOp, a: Interval, b: Interval) -> Interval | str:
    match op:
        case "+":
            return Interval(a.low + b.low, a.high + b.high)
        case "-":
            return Interval(a.low - b.high, a.high - b.low)
        case "*":
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Interval(min(ends), max(ends))
        case "/" | "//" if b.low > 0 or b.high < 0:
            ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
            if op == "//":
                ends = [Fraction(e.__floor__()) for e in ends]
            return Interval(min(ends), max(ends))
        case "%" if b.low > 0:
            return Interval(Fraction(0), b.high)
        case _:
            return ""


def _union(parts: list[Interval | str | None]) -> Interval | str | None:
    ranges: list[Interval] = []
    for part in parts:
        if isinstance(part, str):
            return part
        if part is not None:
            ranges.append(part)
    if not ranges:
        return None
    total = ranges[0]
    for part in ranges[1:]:
        total = total.hull(part)
    return total


def whole(node: Expression) -> bool:
    """Whether a numeric expression takes whole numbers only (or NULL), so that a step of 1 loses nothing."""
    match node:
        case Column(kind=kind):
            return kind is Kind.INTEGER
        case Literal(value=value):
            return value is None or isinstance(value, int)
        case Negate(operand=operand):
            return whole(operand)
        case Arithmetic(op=op, left=left, right=right):
            return op != "/" and whole(left) and whole(right)
        case Case(values=values, default=default):
            return all(map(whole, (*values, default)))
        case _:
            return False
