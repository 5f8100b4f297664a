"""The range of an expression, from the declared bounds of its columns.

`span` gives the least and largest value that an expression takes if its columns keep to their declared bounds. It
decides where a value is clamped at the aggregate, so a column that does not keep to them costs accuracy, never privacy.

What a condition implies narrows that range: `Known` holds, beside declarations, the ranges in which expressions lie in
every row that passes. They never widen it, nor stand in for it where the two do not meet.

A row passes where the condition is true, so no side of a comparison is NULL there: of `a < b`, a is below all that b
can be, and b above all that a can be; of AND every term tells, of OR what all terms tell of one expression. Under NOT
a comparison is the opposite one. What is implied of a function is implied of its argument where it never falls: of
`CAST(at AS DATE)`, `YEAR(at)`, `DATE_TRUNC('month', at)`, `-x`, `x + 1`, `ABS(x)`.

The same holds of values in FILTER and in the branches of CASE. Nothing here rests on rows, and privacy rests on
nothing here: values are clamped to what follows, whatever they are.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from hubbub.tables.columns import Between, Declaration, Edges, OneOf, Ranged, UpTo, plain_moment
from hubbub.tables.expressions import (
    Arithmetic,
    ArithmeticOp,
    Call,
    Case,
    Column,
    Compare,
    Expression,
    InList,
    Literal,
    Logic,
    Negate,
    Not,
    whole,
)
from hubbub.tables.functions import (
    DAY,
    EPOCH,
    FUNCTIONS,
    PARTS,
    UNITS_OF_TIME,
    Range,
    difference,
    greatest,
    least,
    shifted,
    truncated,
    union,
)
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.zones import in_utc

__all__ = ["Known", "implied", "known", "met", "span"]


class Known(dict[str, Declaration]):
    """What is declared of columns, and what conditions imply: `columns`, by name, and `expressions`, other ones.

    A value that is not NULL lies in these ranges; of columns that is so wherever they are read further on.
    """

    def __init__(
        self,
        declared: Mapping[str, Declaration],
        columns: Mapping[str, Range] | None = None,
        expressions: Mapping[Expression, Range] | None = None,
    ) -> None:
        super().__init__(declared)
        self.columns: dict[str, Range] = dict(columns or {})
        self.expressions: dict[Expression, Range] = dict(expressions or {})

    def told(self, node: Expression) -> Range | None:
        """What conditions imply of an expression."""
        return self.columns.get(node.name) if isinstance(node, Column) else self.expressions.get(node)

    def also(self, implied: Mapping[Expression, Range]) -> Known:
        """The same, with what one more condition implies."""
        wider = Known(self, self.columns, self.expressions)
        for node, new in implied.items():
            old = self.told(node)
            ends = new if old is None else met(old, new) or old
            if isinstance(node, Column):
                wider.columns[node.name] = ends
            else:
                wider.expressions[node] = ends
        return wider


def known(declared: Mapping[str, Declaration]) -> Known:
    """Declarations, with what is implied beside them where anything is."""
    return declared if isinstance(declared, Known) else Known(declared)


def met(a: Range, b: Range) -> Range | None:
    """The values in both ranges; None where there are none."""
    low = a[0] if b[0] is None else b[0] if a[0] is None else max(a[0], b[0])
    high = a[1] if b[1] is None else b[1] if a[1] is None else min(a[1], b[1])
    return None if low is not None and high is not None and low > high else (low, high)


def span(node: Expression, declared: Mapping[str, Declaration]) -> Range | None:
    """The least and largest value of an expression, from the declared bounds of its columns.

    Of dates and times in microseconds since 1970-01-01. An end is None where nothing bounds it. The whole is None for
    an expression that is always NULL.
    """
    ends = _span(node, declared)
    told = declared.told(node) if isinstance(declared, Known) else None
    return ends if ends is None or told is None else met(ends, told) or ends


def _span(node: Expression, declared: Mapping[str, Declaration]) -> Range | None:
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
            if a is not None and b is not None and op == "MOD":
                return _remainder(a, b, 1 if whole(left) and whole(right) else 0)
            return None if a is None or b is None else _combine(op, a, b)
        case Case():
            return _of_case(node, declared)
        case Call(name="NULLIF", arguments=(argument, Literal(value=value))) if whole(argument):
            return _without(span(argument, declared), value)
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
            return _one_of_several(name, arguments, declared)
        case Call(name=name, arguments=arguments):
            parts = [span(a, declared) for a in arguments]
            return FUNCTIONS[name].span([(None, None) if p is None else p for p in parts])
        case _:
            return None, None


def _one_of_several(name: str, arguments: Iterable[Expression], declared: Mapping[str, Declaration]) -> Range | None:
    """The range of LEAST, GREATEST and COALESCE."""
    spans = {a: s for a in arguments if (s := span(a, declared)) is not None}
    if not spans:
        return None
    sure = [s for a, s in spans.items() if _sure(a)]
    match name:
        case "LEAST":
            return least(list(spans.values()), sure)
        case "GREATEST":
            return greatest(list(spans.values()), sure)
    return union(list(spans.values()))


def _sure(node: Expression) -> bool:
    """Whether an expression is never NULL: a constant, or what total functions make of some. A column may be NULL.

    `24*60*60` and `CAST(5 AS DOUBLE)` are sure; `1/0`, and a cast of a text, are not.
    """
    match node:
        case Literal(value=value):
            return value is not None and (not isinstance(value, int | Fraction) or _within(node, _SURE))
        case Negate(operand=operand):
            return _sure(operand)
        case Arithmetic(op="+" | "-" | "*", left=left, right=right):
            return _sure(left) and _sure(right) and _within(node, _SURE**2)
        case Arithmetic(op="/", left=left, right=right):
            by = Arithmetic("/", Literal(1), right)
            return _sure(left) and _sure(right) and _within(by, _SURE) and _within(node, _SURE**2)
        case Call(name=name, arguments=(argument, *more)) if name in _TOTAL:
            return _sure(argument) and all(isinstance(m, Literal) for m in more) and _within(node, _WHOLE)
    return False


def _within(node: Expression, most: int) -> bool:
    low, high = span(node, {}) or (None, None)
    return low is not None and high is not None and -most <= low and high <= most


_SURE: Final = 2**100
"""A number of this size is no NULL in any dialect's arithmetic, and neither is a product of two."""
_WHOLE: Final = 2**62
"""Nor is a number of this size when it is made a whole one."""
_TOTAL: Final = frozenset({"ABS", "CAST_INTEGER", "CAST_NUMBER", "CEIL", "FLOOR", "ROUND", "SIGN"})
"""Functions that are NULL of no number of that size."""


def _of_case(node: Case, declared: Mapping[str, Declaration]) -> Range | None:
    """The range of a CASE: each value's where its condition is true, the default's where none is."""
    parts, here = [], known(declared)
    for condition, value in zip(node.conditions, node.values, strict=True):
        if not excluded(condition, here):
            parts.append(span(value, here.also(implied(condition, here))))
        here = here.also(untrue(condition, here))
    return _union([*parts, span(node.default, here)])


def _without(ends: Range | None, value: object) -> Range | None:
    """A range of whole numbers without one of them, where it is an end."""
    match ends:
        case (Fraction() as low, high) if low == value and high != low:
            return low + 1, high
        case (low, Fraction() as high) if high == value and high != low:
            return low, high - 1
    return ends


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
        case Between(low=dt.date() as first, high=dt.date() as last, tz=str() as zone) if kind is Kind.TIMESTAMP:
            return _in_zone(first, last, zone)
        case Between(low=dt.date() as first, high=dt.date() as last):
            return _temporal(first, last, kind)
        case UpTo(low=low):
            return low, None
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


def _in_zone(first: dt.date, last: dt.date, zone: str) -> Range:
    """The moments in UTC from one end to the other, as the zone's clocks show them."""
    ends = _temporal(first, last, Kind.TIMESTAMP)
    low, high = (EPOCH + dt.timedelta(microseconds=int(end)) for end in ends if end is not None)
    return _moment(in_utc(low, zone, last=False)), _moment(in_utc(high, zone, last=True))


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
    if op != "*" and not (b[0] > 0 or b[1] < 0):
        return None, None
    pairs = [(x, y) for x in (a[0], a[1]) for y in (b[0], b[1])]
    ends = [x * y if op == "*" else x / y for x, y in pairs]
    ends += [e for x, y in pairs if (e := _in_doubles(op, x, y)) is not None]
    if op in ("//", "DIV"):
        ends = [Fraction(math.floor(e) if op == "//" else math.trunc(e)) for e in ends]
    return min(ends), max(ends)


def _remainder(a: Range, b: Range, grain: int) -> Range:
    """Of a quotient that is cut off: no larger than what is divided, with its sign, and smaller than the divisor."""
    none = Fraction(0)
    most = None if b[0] is None or b[1] is None else max(none, max(-b[0], b[1]) - grain)
    down, up = None if a[0] is None else max(none, -a[0]), None if a[1] is None else max(none, a[1])
    low, high = (end if most is None else most if end is None else min(end, most) for end in (down, up))
    return _minus(low), high


def _in_doubles(op: ArithmeticOp, x: Fraction, y: Fraction) -> Fraction | None:
    """What a row's doubles make of an end: 0.3 / 0.1 is below 3. Each operation is monotone there, too."""
    try:
        end = float(x) * float(y) if op == "*" else float(x) / float(y)
    except (OverflowError, ZeroDivisionError):
        return None
    return Fraction(end) if math.isfinite(end) else None


def _union(parts: list[Range | None]) -> Range | None:
    spans = [part for part in parts if part is not None]
    return union(spans) if spans else None


# -- what conditions imply --------------------------------------------------------------------------------------------

Implied = dict[Expression, Range]

_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_EXACT: Final = 2**53
"""Up to here whole numbers are compared as they are."""


def implied(condition: Expression, declared: Mapping[str, Declaration], *, true: bool = True) -> Implied:
    """The ranges of expressions where a condition is true; where it is false for `true=False`."""
    match condition:
        case Not(operand=operand):
            return implied(operand, declared, true=not true)
        case Logic(op=op, terms=terms):
            each = [implied(term, declared, true=true) for term in terms]
            return _all(each) if (op == "AND") is true else _any(each)
        case Compare(op=op, left=left, right=right):
            return _compared(op if true else _OPPOSITE[op], left, right, declared)
        case InList(operand=operand, values=values) if true:
            ends = [e for e in (span(v, declared) for v in values) if e is not None]
            if ends and operand.kind in NUMERIC | TEMPORAL:
                return _through(operand, union(ends))
    return {}


def untrue(condition: Expression, declared: Mapping[str, Declaration]) -> Implied:
    """The ranges of values that are not NULL where a condition is not true: false, or NULL."""
    match condition:
        case Compare(left=left, right=right) if isinstance(left, Literal) or isinstance(right, Literal):
            return implied(condition, declared, true=False)
        case Logic(op="OR", terms=terms):
            return _all([untrue(term, declared) for term in terms])
    return {}


def excluded(condition: Expression, here: Known) -> bool:
    """Whether a condition cannot be true by what is implied already; what is declared alone excludes nothing."""
    told = ((here.told(node), ends) for node, ends in implied(condition, {}).items())
    return any(before is not None and met(before, ends) is None for before, ends in told)


def _all(parts: Iterable[Implied]) -> Implied:
    """What holds where every part does. Where two do not meet, nothing passes: the first one stands."""
    both: Implied = {}
    for part in parts:
        for node, ends in part.items():
            both[node] = met(both[node], ends) or both[node] if node in both else ends
    return both


def _any(parts: list[Implied]) -> Implied:
    """What holds where one of the parts does."""
    first, *rest = parts
    return {node: union([p[node] for p in parts]) for node in first if all(node in p for p in rest)}


def _compared(op: str, left: Expression, right: Expression, declared: Mapping[str, Declaration]) -> Implied:
    if op == "<>" or not {left.kind, right.kind} <= NUMERIC | TEMPORAL:
        return {}
    a, b = span(left, declared), span(right, declared)
    if a is None or b is None:
        return {}
    return _all([_through(left, _beside(op, left, b)), _through(right, _beside(_MIRRORED[op], right, a))])


def _beside(op: str, node: Expression, other: Range) -> Range:
    """The range of an expression that stands left of `op`, from the range of what stands right of it."""
    low, high = other
    grain = _grain(node)
    return (
        None if low is None or op in ("<", "<=") else _at_least(low, grain, strict=op == ">"),
        None if high is None or op in (">", ">=") else -_at_least(-high, grain, strict=op == "<"),
    )


def _grain(node: Expression) -> int:
    """The number that all values of an expression are multiples of; 0 for none."""
    if node.kind in TEMPORAL:
        return DAY if node.kind is Kind.DATE else 1
    return int(whole(node))


def _at_least(low: Fraction, grain: int, *, strict: bool) -> Fraction:
    """The least multiple that is not below (strict: above) a number."""
    if grain == 0 or (grain == 1 and abs(low) > _EXACT and low.denominator != 1):
        return low
    place = low / grain
    return Fraction((math.floor(place) + 1 if strict else math.ceil(place)) * grain)


def _through(node: Expression, ends: Range) -> Implied:
    """What a range of an expression says of it, and of what it is made of."""
    if isinstance(node, Literal) or ends == (None, None):
        return {}
    here: Implied = {node: ends}
    below = _inside(node, ends)
    return here if below is None else {**here, **_through(*below)}


def _inside(node: Expression, ends: Range) -> tuple[Expression, Range] | None:
    """An argument, and its range, where it follows."""
    low, high = ends
    match node:
        case Negate(operand=x):
            return x, (None if high is None else -high, None if low is None else -low)
        case Arithmetic(op="+" | "-" as op, left=x, right=Literal(value=int() as n)) if whole(x):
            by = -n if op == "+" else n
            return x, (None if low is None else low + by, None if high is None else high + by)
        case Call(name="ABS", arguments=(x,)) if high is not None:
            return x, (-high, high)
        case Call(name="CAST_NUMBER", arguments=(x,)) if x.kind in NUMERIC:
            return x, ends
        case Case(values=values, default=default):
            return _shifted_back((*values, default), ends)
        case Call(name="CAST_TIMESTAMP", arguments=(x,)) if x.kind in TEMPORAL:
            day = _grain(x)
            return x, (
                None if low is None else _at_least(low, day, strict=False),
                None if high is None else -_at_least(-high, day, strict=False),
            )
        case Call(name="CAST_DATE", arguments=(x,)) if x.kind in TEMPORAL:
            return x, _whole_units("DAY", ends, x)
        case Call(name="DATE_TRUNC", arguments=(Literal(value=str() as unit), x)):
            return x, _whole_units(unit, ends, x)
        case Call(name="EXTRACT", arguments=(Literal(value="YEAR"), x)):
            return x, _whole_units("YEAR", (_new_year(low), _new_year(high)), x)
    return None


def _shifted_back(values: tuple[Expression, ...], ends: Range) -> tuple[Expression, Range] | None:
    """What a local time (`hubbub.tables.zones`) is made of, and its range: clocks are set by some seconds."""
    moved, seconds = set(), []
    for value in values:
        match value:
            case Call(name="DATE_ADD", arguments=(Literal(value="SECOND"), Literal(value=int() as by), x)):
                moved.add(x)
                seconds.append(by)
            case _:
                return None
    low, high = ends
    second = UNITS_OF_TIME["SECOND"]
    back = None if low is None else low - max(seconds) * second, None if high is None else high - min(seconds) * second
    return (moved.pop(), back) if len(moved) == 1 else None


def _new_year(year: Fraction | None) -> Fraction | None:
    if year is None or not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    return Fraction((dt.datetime(int(year), 1, 1) - EPOCH) // dt.timedelta(microseconds=1))


def _whole_units(unit: str, ends: Range, x: Expression) -> Range:
    """The moments whose unit of time begins within a range."""
    low, high = ends
    if high is not None:
        start = truncated(unit, high)
        # The first moment of the next unit: months differ in length, all are shorter than 32 days.
        longest = 32 * _MONTHS[unit] * DAY if unit in _MONTHS else UNITS_OF_TIME[unit]
        beyond = _within_years(start + longest)
        high = None if beyond is None else -_at_least(-truncated(unit, beyond), _grain(x), strict=True)
    return low, high


def _within_years(moment: Fraction) -> Fraction | None:
    last = Fraction((dt.datetime.max - EPOCH) // dt.timedelta(microseconds=1))
    return None if moment > last else moment
