"""Row expressions: typed, total, and read by every room without a ladder.

A node is its fields, an integrity check and its kind. `children` and `rebuild` are the one generic walk.

Totality. For every row an expression has a value or is NULL; it never raises. Arithmetic is done in 64-bit
floating point, row by row (nothing is accumulated); a result that is not finite is NULL, and a NaN in a column
counts as NULL. There are no implicit casts between text, numbers, booleans and dates. Truth is three-valued as
in SQL.

Bounds. `span` gives the range an expression takes if its columns keep to their declared bounds. It decides
where a value is clamped at the aggregate, so a column that does not keep to them costs accuracy, never privacy.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Literal as OneWord, TypeAlias

from hubbub.errors import InternalError
from hubbub.tables.columns import Between, Declaration, Edges, OneOf, Ranged, plain_moment
from hubbub.tables.functions import DAY, EPOCH, FUNCTIONS, PARTS, Range, difference, shifted, truncated, union
from hubbub.tables.kinds import COMPARABLE, NUMERIC, TEMPORAL, Kind

__all__ = [
    "Arithmetic",
    "Call",
    "Case",
    "Column",
    "Compare",
    "Expression",
    "InList",
    "IsNull",
    "Like",
    "Literal",
    "Logic",
    "Negate",
    "Not",
    "canonical",
    "children",
    "columns_in",
    "columns_of",
    "common_kind",
    "comparable",
    "rebuild",
    "span",
    "whole",
]

Value: TypeAlias = bool | int | Fraction | str | dt.date | dt.datetime | None
ArithmeticOp: TypeAlias = OneWord["+", "-", "*", "/", "//", "%"]
CompareOp: TypeAlias = OneWord["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Column:
    """A column of the owned relation.

    name: ours, with the place where the column stands (`t0.age`). shown: what a computed column is called in the
    question; it is for messages alone, and part of no column's identity.
    """

    name: str
    kind: Kind
    shown: str = field(default="", compare=False, repr=False)

    @property
    def called(self) -> str:
        """What people call it: messages say this, never `name`."""
        return self.shown or self.name.partition(".")[2] or self.name


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant. Numbers are kept exactly: int, or Fraction for decimals. 1, 1.0 and TRUE are three constants."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

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
    """`operand LIKE pattern`. The pattern is in parts: "%", "_", or "=" followed by a text that stands for itself."""

    operand: Expression
    pattern: tuple[str, ...]
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
        return common_kind(v.kind for v in (*self.values, self.default))


@dataclass(frozen=True)
class Call:
    """A function of `hubbub.tables.functions`, with arguments that it takes."""

    name: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        function = FUNCTIONS.get(self.name)
        if function is None or len(self.arguments) < function.least:
            raise InternalError(f"no function {self.name} of {len(self.arguments)} arguments")

    @property
    def kind(self) -> Kind:
        kind = FUNCTIONS[self.name].result_kind
        if kind is not None:
            return kind
        if self.name == "DATE_TRUNC":
            return self.arguments[1].kind
        return common_kind(a.kind for a in self.arguments)


Expression: TypeAlias = (
    Column | Literal | Arithmetic | Negate | Compare | Logic | Not | IsNull | InList | Like | Case | Call
)
_NODES = (Column, Literal, Arithmetic, Negate, Compare, Logic, Not, IsNull, InList, Like, Case, Call)


def common_kind(kinds: Iterable[Kind]) -> Kind:
    """The kind of a value that is one of several: a number where whole and other numbers meet.

    Of kinds that cannot be compared the first one: what then asks whether each can be is told that one cannot.
    """
    kinds_there = list(dict.fromkeys(kind for kind in kinds if kind is not Kind.NULL))
    if len(kinds_there) == 2 and NUMERIC.issuperset(kinds_there):
        return Kind.NUMBER
    if len(kinds_there) == 2 and set(kinds_there) == {Kind.DATE, Kind.TIMESTAMP}:
        return Kind.TIMESTAMP
    return kinds_there[0] if kinds_there else Kind.NULL


def children(node: Expression) -> Iterator[Expression]:
    """The expressions directly below `node`, left to right."""
    for part in fields(node):
        value = getattr(node, part.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, _NODES):
                yield item


def rebuild(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """`node` with `change` applied to each expression directly below it."""
    new: dict[str, object] = {}
    for part in fields(node):
        value = getattr(node, part.name)
        if isinstance(value, tuple):
            new[part.name] = tuple(change(v) if isinstance(v, _NODES) else v for v in value)
        elif isinstance(value, _NODES):
            new[part.name] = change(value)
    return replace(node, **new) if new else node  # type: ignore[arg-type]


def columns_of(node: Expression) -> frozenset[str]:
    """The names of all columns an expression reads."""
    if isinstance(node, Column):
        return frozenset({node.name})
    return frozenset().union(*map(columns_of, children(node)))


def columns_in(node: Expression) -> tuple[Column, ...]:
    """The columns an expression reads, each once, in the order in which it names them."""
    if isinstance(node, Column):
        return (node,)
    return tuple(dict.fromkeys(column for child in children(node) for column in columns_in(child)))


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
    for part in fields(node):
        if not part.compare:
            continue
        value = getattr(node, part.name)
        if isinstance(value, tuple):
            parts.append([canonical(v) if isinstance(v, _NODES) else v for v in value])
        elif isinstance(value, _NODES):
            parts.append(canonical(value))
        else:
            parts.append(value.value if isinstance(value, Kind) else value)
    return parts


def span(node: Expression, declared: Mapping[str, Declaration]) -> Range | None:
    """The least and largest value of an expression, from the declared bounds of its columns.

    Of dates and times in microseconds since 1970-01-01. An end is None where nothing bounds it. The whole is None for
    an expression that is always NULL.
    """
    match node:
        case Literal(value=None):
            return None
        case Literal(value=int() | Fraction() as value):
            return Fraction(value), Fraction(value)
        case Literal(value=dt.date() as value):
            return _moment(value), _moment(value)
        case Column(name=name, kind=kind):
            return _declared(declared.get(name), kind)
        case Negate(operand=operand):
            inner = span(operand, declared)
            return None if inner is None else (_minus(inner[1]), _minus(inner[0]))
        case Arithmetic(op=op, left=left, right=right):
            a, b = span(left, declared), span(right, declared)
            return None if a is None or b is None else _combine(op, a, b)
        case Case(values=values, default=default):
            return _union([span(v, declared) for v in (*values, default)])
        case Call(name="EXTRACT" | "DATE_TRUNC" | "TIME_BUCKET" | "DATE_DIFF" | "DATE_ADD"):
            return _of_units_of_time(node, declared)
        case Call(name="CAST_DATE" | "CAST_TIMESTAMP" | "LAST_DAY" as name, arguments=(argument,)) if (
            argument.kind in TEMPORAL
        ):
            inner = span(argument, declared)
            return None if inner is None else FUNCTIONS[name].span([inner])
        case Call(name=name, arguments=(argument, *_)) if argument.kind in TEMPORAL and node.kind not in TEMPORAL:
            return None, None
        case Call(name="CAST_INTEGER" | "CAST_NUMBER", arguments=(argument,)) if argument.kind is Kind.BOOLEAN:
            return Fraction(0), Fraction(1)
        case Call(name="LENGTH", arguments=(Call(name="LEFT" | "RIGHT" | "SUBSTR", arguments=(_, *rest)) as cut,)):
            # In characters, in every dialect; a negative number counts from the other end.
            most = rest[-1].value if isinstance(rest[-1], Literal) and (cut.name != "SUBSTR" or len(rest) > 1) else None
            return Fraction(0), Fraction(most) if isinstance(most, int) and most >= 0 else None
        case Call(name="LEAST" | "GREATEST" | "COALESCE" as name, arguments=arguments):
            spans = [s for s in (span(a, declared) for a in arguments) if s is not None]
            return FUNCTIONS[name].span(spans) if spans else None
        case Call(name=name, arguments=arguments):
            parts = [span(a, declared) for a in arguments]
            return FUNCTIONS[name].span([(None, None) if p is None else p for p in parts])
        case _:
            return None, None


def _of_units_of_time(node: Call, declared: Mapping[str, Declaration]) -> Range | None:
    """The range of a function whose first argument is a unit of time, or a width."""
    match node:
        case Call(name="EXTRACT", arguments=(Literal(value=str() as part), argument)):
            return PARTS[part]([span(argument, declared) or (None, None)])
        case Call(name="DATE_TRUNC", arguments=(Literal(value=str() as part), argument)):
            inner = span(argument, declared)
            return None if inner is None else (None if inner[0] is None else truncated(part, inner[0]), inner[1])
        case Call(name="TIME_BUCKET", arguments=(Literal(value=int() as width), argument)):
            inner = span(argument, declared)
            return None if inner is None else (None if inner[0] is None else inner[0] - width, inner[1])
        case Call(name="DATE_DIFF", arguments=(Literal(value=str() as part), first, second)):
            a, b = span(first, declared), span(second, declared)
            return None if a is None or b is None else difference(part, a, b)
        case Call(name="DATE_ADD", arguments=(Literal(value=str() as part), Literal(value=int() as by), argument)):
            inner = span(argument, declared)
            return None if inner is None else shifted(part, by, inner)
    return None, None


def _minus(end: Fraction | None) -> Fraction | None:
    return None if end is None else -end


def _declared(what: Declaration | None, kind: Kind) -> Range:
    match what:
        case Between(low=Fraction() as low, high=Fraction() as high):
            return low, high
        case Between(low=dt.date() as first, high=dt.date() as last):
            return _temporal(first, last, kind)
        case Edges(low=low, high=high) | Ranged(low=low, high=high):
            return low, high
        case OneOf(values=values) if kind in TEMPORAL:
            moments = [v for v in values if isinstance(v, dt.date)]
            if moments and len(moments) == len([v for v in values if v is not None]):
                return _temporal(min(moments, key=_moment), max(moments, key=_moment), kind)
        case OneOf(values=values):
            numbers = [Fraction(str(v)) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
            if numbers:
                return min(numbers), max(numbers)
    return None, None


def _temporal(first: dt.date, last: dt.date, kind: Kind) -> Range:
    """The moments from one declared end to the other: a last day is there to its end."""
    low, high = _moment(first), _moment(last)
    if kind is Kind.DATE:
        return truncated("DAY", low), truncated("DAY", high)
    return low, high if isinstance(last, dt.datetime) else high + DAY - 1


def _moment(value: dt.date) -> Fraction:
    """A date or time in microseconds since 1970-01-01."""
    time = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    return Fraction((plain_moment(time) - EPOCH) // dt.timedelta(microseconds=1))


def _sum(x: Fraction | None, y: Fraction | None) -> Fraction | None:
    return None if x is None or y is None else x + y


def _combine(op: ArithmeticOp, a: Range, b: Range) -> Range:
    if op == "+":
        return _sum(a[0], b[0]), _sum(a[1], b[1])
    if op == "-":
        return _sum(a[0], _minus(b[1])), _sum(a[1], _minus(b[0]))
    if op == "%":
        return (Fraction(0), b[1]) if b[0] is not None and b[0] > 0 else (None, None)
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        return None, None
    if op == "*":
        ends = [x * y for x in (a[0], a[1]) for y in (b[0], b[1])]
        return min(ends), max(ends)
    if not (b[0] > 0 or b[1] < 0):
        return None, None
    ends = [x / y for x in (a[0], a[1]) for y in (b[0], b[1])]
    if op == "//":
        ends = [Fraction(math.floor(e)) for e in ends]
    return min(ends), max(ends)


def _union(parts: list[Range | None]) -> Range | None:
    parts_there = [part for part in parts if part is not None]
    return union(parts_there) if parts_there else None


def whole(node: Expression) -> bool:
    """Whether a numeric expression takes whole numbers only (or NULL), so that a step of 1 loses nothing."""
    match node:
        case Column(kind=kind):
            return kind is Kind.INTEGER
        case Literal(value=value):
            return value is None or (isinstance(value, int) and not isinstance(value, bool))
        case Negate(operand=operand):
            return whole(operand)
        case Arithmetic(op=op, left=left, right=right):
            return op != "/" and whole(left) and whole(right)
        case Case(values=values, default=default):
            return all(map(whole, (*values, default)))
        case Call(name="FLOOR" | "CEIL" | "SIGN" | "LENGTH" | "EXTRACT" | "DATE_DIFF" | "CAST_INTEGER"):
            return True
        case Call(name="POWER", arguments=(base, Literal(value=n))):
            return isinstance(n, int) and n <= 8 and whole(base)
        case Call(name=name, arguments=arguments):
            return FUNCTIONS[name].whole and all(map(whole, arguments))
        case _:
            return False
