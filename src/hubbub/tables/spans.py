"""The range of an expression, from the declared bounds of its columns.

`span` gives the least and largest value that an expression takes if its columns keep to their declared bounds. It
decides where a value is clamped at the aggregate, so a column that does not keep to them costs accuracy, never privacy.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from fractions import Fraction

from hubbub.tables.columns import Between, Declaration, Edges, OneOf, Ranged, plain_moment
from hubbub.tables.expressions import Arithmetic, ArithmeticOp, Call, Case, Column, Expression, Literal, Negate
from hubbub.tables.functions import DAY, EPOCH, FUNCTIONS, PARTS, Range, difference, shifted, truncated, union
from hubbub.tables.kinds import TEMPORAL, Kind

__all__ = ["span"]


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
    found = [part for part in parts if part is not None]
    return union(found) if found else None
