"""The values that an expression can take, from declarations alone: those of its columns, or those of its steps.

- A column with declared values, or whole numbers or days of a range, has these.
- A date or time with a declared range, of which an expression sees no more than its day (its hour, its minute), takes
  the starts of all days (hours, minutes) of that range.
- What is left are columns whose values cannot be listed. The lowest part of the expression above such a column that
  has few values by its form (a whole number within a range that follows, a rounded one, a condition) is a *step*, and
  the expression is evaluated over the values of its steps: `FLOOR(x / 500) * 500` over 0, 1, ... for `FLOOR(x / 500)`.

Evaluating over combinations of parts gives every value that can occur, and may give some that cannot. A row whose
columns keep to their declarations so finds its group, and no row makes one. The rest of the expression is computed on
the same doubles as in the rows, step for step, so the label of a group is equal to what a row gives.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from hubbub.tables.columns import Between, Counted, Declaration, OneOf, Scalar
from hubbub.tables.expressions import (
    Arithmetic,
    Call,
    Case,
    Column,
    Compare,
    Expression,
    Literal,
    children,
    rebuild,
    whole,
)
from hubbub.tables.functions import DAY, EPOCH, UNITS_OF_TIME
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.spans import span

__all__ = ["MOST_IN_A_RANGE", "MOST_MOMENTS", "Parts", "finest", "moments", "parts_of"]

MOST_IN_A_RANGE: Final = 10_000
MOST_MOMENTS: Final = 100_000
"""The days of 273 years, the hours of 11."""
_HOUR: Final = UNITS_OF_TIME["HOUR"]


@dataclass
class Parts:
    """An expression over parts whose values are listed: its own columns, and steps.

    values: of each part, in the order in which they are met.
    """

    expression: Expression
    values: dict[Column, tuple[Scalar, ...]]

    @property
    def combinations(self) -> int:
        return math.prod(map(len, self.values.values()))

    def null_by_chance(self, declared: Mapping[str, Declaration]) -> Iterator[bool]:
        """For every combination, the last part fastest, whether it holds a NULL that is not declared as a value."""
        told = [
            [v is None and not isinstance(declared.get(part.name), OneOf) for v in values]
            for part, values in self.values.items()
        ]
        chances = [False]
        for part in told:
            chances = [a or b for a in chances for b in part]
        yield from chances


def parts_of(
    expression: Expression, listed: Mapping[Column, tuple[Scalar, ...]], declared: Mapping[str, Declaration]
) -> Parts | None:
    """An expression over parts with values; None where a part has none. listed: the columns whose values are known."""
    cut = _Cut(listed, declared)
    parts = cut.cut(expression)
    return Parts(parts, cut.values) if parts is not None and cut.values else None


@dataclass
class _Cut:
    listed: Mapping[Column, tuple[Scalar, ...]]
    declared: Mapping[str, Declaration]
    steps: dict[Expression, Column] = field(default_factory=dict)
    values: dict[Column, tuple[Scalar, ...]] = field(default_factory=dict)

    def cut(self, node: Expression) -> Expression | None:
        """The node over parts; None where it has a column that is in no part."""
        if isinstance(node, Literal):
            return node
        if isinstance(node, Column):
            if node in self.listed:
                self.values[node] = self.listed[node]
            return node if node in self.listed else None
        before = dict(self.values)
        below = [self.cut(child) for child in children(node)]
        if None not in below:
            each = iter(below)
            return rebuild(node, lambda _: next(each))  # type: ignore[arg-type,return-value]
        self.values = before  # the parts below belong to the step now
        if node not in self.steps:
            values = _values(node, self.declared)
            if values is None:
                return None
            self.steps[node] = Column(f"step.{len(self.steps)}", node.kind)
            self.values[self.steps[node]] = values
        self.values.setdefault(self.steps[node], _values(node, self.declared) or ())
        return self.steps[node]


def _values(node: Expression, declared: Mapping[str, Declaration]) -> tuple[Scalar, ...] | None:
    """What a part takes by its form: false and true, or the multiples of a step in a range that follows; and NULL."""
    if node.kind is Kind.BOOLEAN:
        return (*_truths(node, declared), None)
    step = _step(node)
    low, high = (span(node, declared) or (None, None)) if step is not None else (None, None)
    if isinstance(node, Call) and node.name == "ROUND":
        low, high = span(node.arguments[0], declared) or (None, None)
    if step is None or low is None or high is None or (high - low) / step >= MOST_IN_A_RANGE:
        return None
    half = Fraction(1, 2) if isinstance(node, Call) and node.name == "ROUND" else 0
    numbers = range(math.ceil(low / step - half), math.floor(high / step + half) + 1)
    if node.kind is Kind.INTEGER:
        return (*(int(n * step) for n in numbers), None)
    return (*(float(n * step) for n in numbers), None)


def _truths(node: Expression, declared: Mapping[str, Declaration]) -> tuple[bool, ...]:
    """Which of false and true a condition can be within the ranges of its two sides."""
    if not isinstance(node, Compare) or node.op not in ("<", "<=", ">", ">="):
        return False, True
    if any(isinstance(declared.get(column.name), Counted) for column in _columns(node)):
        return False, True
    less = node.op in ("<", "<=")
    a, b = (span(side, declared) or (None, None) for side in (node.left, node.right))
    (low, high), (least, most) = (a, b) if less else (b, a)
    strictly = node.op in ("<", ">")
    always = high is not None and least is not None and (high < least or (high == least and not strictly))
    never = low is not None and most is not None and (low > most or (low == most and strictly))
    return (True,) if always else (False,) if never else (False, True)


def _step(node: Expression) -> Fraction | None:
    """The number that every value of a part is a multiple of; None where there is none."""
    match node:
        case Call(name="ROUND", arguments=(_, Literal(value=int() as places))):
            return Fraction(10) ** -max(-15, min(places, 15))
        case Call(name="ROUND", arguments=(_,)) | Arithmetic(op="//" | "DIV"):
            return Fraction(1)
    return Fraction(1) if node.kind in NUMERIC and whole(node) else None


def finest(node: Expression, column: Column, seen: int | None = None) -> int | None:
    """The length, in microseconds, of the stretches of time on which an expression cannot tell a column's values apart.

    They begin at midnight, and divide a day. None where the expression sees the time itself. seen: the length of the
    stretches of the expression's own values that what stands around it tells apart, None for each value by itself.
    """
    if column not in tuple(_columns(node)):
        return DAY
    if node == column:
        return DAY if column.kind is Kind.DATE else seen
    match node:
        case Compare(op="<" | ">=", left=left, right=Literal(value=dt.datetime() as moment)) if left == column:
            return math.gcd(DAY, (moment - EPOCH) // dt.timedelta(microseconds=1))
        case Call(name="DATE_ADD", arguments=(Literal(value="SECOND"), Literal(value=int() as by), moved)):
            return finest(moved, column, None if seen is None else math.gcd(seen, by * UNITS_OF_TIME["SECOND"]))
        case Case(conditions=conditions, values=values, default=default):
            each = [finest(c, column) for c in conditions]
            each += [finest(value, column, seen) for value in (*values, default)]
        case _:
            own = _own(node)
            each = [finest(child, column, own if child.kind in TEMPORAL else None) for child in children(node)]
    return None if None in each else math.gcd(*(n for n in each if n is not None))


def _columns(node: Expression) -> Iterator[Column]:
    if isinstance(node, Column):
        yield node
    for child in children(node):
        yield from _columns(child)


def _own(node: Expression) -> int | None:
    """What a function sees of the time that it is given."""
    match node:
        case Call(name="DATE_TRUNC" | "EXTRACT" | "DATE_DIFF", arguments=(Literal(value=str() as part), *_)):
            return min(UNITS_OF_TIME.get(part, DAY), DAY)
        case Call(name="TIME_BUCKET", arguments=(Literal(value=int() as width), _)):
            return math.gcd(width, DAY)
        case Call(name="CAST_DATE" | "LAST_DAY"):
            return DAY
    return None


def moments(column: Column, expression: Expression, declared: Mapping[str, Declaration]) -> tuple[Scalar, ...] | None:
    """The starts of the stretches that an expression tells apart in a range of dates or times; None for too many."""
    if column.kind not in TEMPORAL:
        return None
    step = finest(expression, column)
    low, high = span(column, declared) or (None, None)
    if step is None or low is None or high is None or (high - low) // step >= MOST_MOMENTS:
        return None
    each = [EPOCH + dt.timedelta(microseconds=n * step) for n in range(int(low // step), int(high // step) + 1)]
    what = declared.get(column.name)
    missing = () if isinstance(what, Between) and not what.nullable else (None,)
    return (*(e.date() if column.kind is Kind.DATE else e for e in each), *missing)
