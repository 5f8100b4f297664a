"""Row expressions: typed, total, and read by every room without a ladder.

A node is its fields, an integrity check and its kind. `children` and `rebuild` are the one generic walk.

Totality. For every row an expression has a value or is NULL; it never raises. Arithmetic is done in 64-bit
floating point, row by row (nothing is accumulated); a result that is not finite is NULL, and a NaN in a column
counts as NULL. There are no implicit casts between text, numbers, booleans and dates. Truth is three-valued as
in SQL.

The range that an expression takes follows from declarations: `hubbub.tables.spans`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Literal as OneWord, TypeAlias

from hubbub.errors import InternalError
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.kinds import COMPARABLE, NUMERIC, Kind

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
    "whole",
]

Value: TypeAlias = bool | int | Fraction | str | dt.date | dt.datetime | None
ArithmeticOp: TypeAlias = OneWord["+", "-", "*", "/", "//", "%", "DIV", "MOD"]
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
    """`left op right` in 64-bit floating point.

    The whole quotient of -7 and 2 is -3 in SQL, whose `//` is DIV here, and -4 in Python, whose `//` rounds down. The
    remainder is what is missing: of SQL's `%`, MOD here, it is -1, with the sign of the left side; of Python's `%` it
    is 1, with the sign of the right side.
    """

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
