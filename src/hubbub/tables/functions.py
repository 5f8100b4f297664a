"""The row functions a question may use: their arguments, their kind, and the range of their values.

Every function is total: where mathematics has no answer (the logarithm of 0, a text that is not a date) it is NULL.
How each is written in an engine's dialect stands in `hubbub.sql.text.functions`.
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind

__all__ = [
    "DAY",
    "EPOCH",
    "FUNCTIONS",
    "PARTS",
    "UNITS_OF_TIME",
    "Function",
    "Range",
    "difference",
    "greatest",
    "least",
    "shifted",
    "truncated",
    "union",
]

Range = tuple[Fraction | None, Fraction | None]
"""The least and the largest value; None where there is no end."""

RangeRule = Callable[[list[Range]], Range]

EPOCH: Final = dt.datetime(1970, 1, 1)
DAY: Final = 24 * 3600 * 10**6
"""A day in microseconds, in which the range of a date or time is counted from 1970-01-01 on."""
_SECOND: Final = 10**6
UNITS_OF_TIME: Final = {
    "WEEK": 7 * DAY,
    "DAY": DAY,
    "HOUR": 3600 * _SECOND,
    "MINUTE": 60 * _SECOND,
    "SECOND": _SECOND,
    "MICROSECOND": 1,
}
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}

ANY: Final = frozenset(Kind)
NUMBER: Final = NUMERIC | {Kind.NULL}
TEXT: Final = frozenset({Kind.TEXT, Kind.NULL})
MOMENT: Final = TEMPORAL | {Kind.NULL}
UNKNOWN: Final[Range] = (None, None)
_SLACK: Final = Fraction(1, 10**9)
"""More than what EXP and LN may be wrong by, relative to their value."""
_HALF: Final = Fraction(1, 2)


@dataclass(frozen=True)
class Function:
    """One function: what it takes, what it returns.

    takes: the kinds of each argument; the last entry stands for all further ones where `more` is true.
    least: how many arguments there must be at least. result_kind: what it returns; None for the kind of its arguments.
    constants: the positions that must be constants. span: the range of its value from those of its arguments.
    """

    takes: tuple[frozenset[Kind], ...]
    result_kind: Kind | None
    least: int = 0
    more: bool = False
    constants: frozenset[int] = frozenset()
    span: RangeRule = lambda _: UNKNOWN
    whole: bool = False


def _ends(change: Callable[[Fraction], Fraction]) -> RangeRule:
    """The rule of a function that never falls."""

    def rule(spans: list[Range]) -> Range:
        low, high = spans[0]
        return (None if low is None else change(low), None if high is None else change(high))

    return rule


def _through_floats(function: Callable[[float], float], low: Fraction | None, high: Fraction | None) -> RangeRule:
    """The rule of a rising function computed in floats: ends rounded outward; `low`, `high` hold whatever comes."""

    def end(x: Fraction | None, fallback: Fraction | None, direction: float) -> Fraction | None:
        if x is None:
            return fallback
        try:
            value = function(float(x))
        except (ValueError, OverflowError):
            return fallback
        for _ in range(4):
            value = math.nextafter(value, direction)
        return Fraction(value) if math.isfinite(value) else fallback

    def rule(spans: list[Range]) -> Range:
        return end(spans[0][0], low, -math.inf), end(spans[0][1], high, math.inf)

    return rule


def _absolute(spans: list[Range]) -> Range:
    low, high = spans[0]
    if low is None or high is None:
        return Fraction(0), None
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def union(spans: list[Range]) -> Range:
    """The range of a value that is one of several; at least one."""
    lows, highs = [s[0] for s in spans], [s[1] for s in spans]
    return (
        None if None in lows else min(x for x in lows if x is not None),
        None if None in highs else max(x for x in highs if x is not None),
    )


def least(spans: list[Range], sure: list[Range]) -> Range:
    """LEAST leaves NULLs out, so its value is one of its arguments': within the union, and at most each that is sure.

    sure: the ranges of those that are never NULL. `LEAST(x, CASE WHEN b THEN 5 END)` is at most all that x can be.
    """
    low, high = union(spans)
    highs = [end for _, end in sure if end is not None]
    return low, min(highs) if highs else high


def greatest(spans: list[Range], sure: list[Range]) -> Range:
    """GREATEST, the same turned round."""
    low, high = union(spans)
    lows = [end for end, _ in sure if end is not None]
    return max(lows) if lows else low, high


def _rounded(spans: list[Range]) -> Range:
    """The range of ROUND: the next whole numbers, or the multiples of 1000 next to the ends for ROUND(x, -3)."""
    (low, high), *places = spans
    last = places[0][0] if places else Fraction(0)
    if last is None:
        return UNKNOWN
    if last >= 0:
        return (
            None if low is None else Fraction(math.floor(low)) - 1,
            None if high is None else Fraction(math.ceil(high)) + 1,
        )
    unit: int = 10 ** -int(last)

    def multiple(end: Fraction) -> Fraction:
        """The largest multiple that an end may be rounded to: a half up, and what a double may take for one."""
        return Fraction(math.floor(end / unit + _HALF + _SLACK * (1 + abs(end / unit))) * unit)

    return None if low is None else -multiple(-low), None if high is None else multiple(high)


def truncated(unit: str, moment: Fraction) -> Fraction:
    """The start of the unit of time that a moment lies in, both in microseconds since 1970-01-01."""
    day = math.floor(moment / DAY)
    if unit in _MONTHS:
        date = (EPOCH + dt.timedelta(days=day)).date()
        first = date.replace(day=1, month=date.month - (date.month - 1) % _MONTHS[unit])
        return Fraction((first - EPOCH.date()).days * DAY)
    if unit == "WEEK":
        return Fraction((day - (day + 3) % 7) * DAY)  # 1970-01-01 was a Thursday; weeks begin on Monday
    return Fraction(moment // UNITS_OF_TIME[unit] * UNITS_OF_TIME[unit])


def difference(unit: str, first: Range, second: Range) -> Range:
    """The range of DATE_DIFF, how many units begin between two moments, from theirs."""

    def number(moment: Fraction) -> int:
        if unit in _MONTHS:
            date = EPOCH + dt.timedelta(days=math.floor(moment / DAY))
            return (12 * date.year + date.month - 1) // _MONTHS[unit]
        return math.floor(moment / UNITS_OF_TIME[unit])

    def between(a: Fraction | None, b: Fraction | None, wider: int) -> Fraction | None:
        return None if a is None or b is None else Fraction(number(b) - number(a) + wider)

    more = int(unit == "WEEK")  # dialects differ in where a week begins
    return between(first[1], second[0], -more), between(first[0], second[1], more)


def shifted(unit: str, by: int, moments: Range) -> Range:
    """The range of DATE_ADD: moments some months, days or seconds on, in microseconds; those in the years 1 to 9999.

    The last days of a month may become one day, so a number of months counts whole days.
    """

    def moved(moment: Fraction, end: int) -> Fraction:
        if unit != "MONTH":
            end_of_step = moment + by * UNITS_OF_TIME[unit]
        else:
            day = EPOCH + dt.timedelta(days=math.floor(moment / DAY))
            year, month = divmod(12 * day.year + day.month - 1 + by, 12)
            if not dt.MINYEAR <= year <= dt.MAXYEAR:
                return first if year < dt.MINYEAR else last
            last_day = calendar.monthrange(year, month + 1)[1]
            start = dt.datetime(year, month + 1, min(day.day, last_day)) - EPOCH
            end_of_step = Fraction(start // dt.timedelta(microseconds=1) + end)
        return min(max(end_of_step, first), last)

    first, last = (Fraction((m - EPOCH) // dt.timedelta(microseconds=1)) for m in (dt.datetime.min, dt.datetime.max))
    low, high = moments
    return None if low is None else moved(low, 0), None if high is None else moved(high, DAY - 1)


def _power(spans: list[Range]) -> Range:
    """The range of POWER, of which the exponent is a constant and at least 0."""
    (low, high), (n, _) = spans
    if n is None:
        return UNKNOWN
    if n.denominator == 1 and n <= 8:
        return _whole_power(low, high, int(n))
    if n.denominator == 1:
        _, most = _through_floats(lambda x: x ** float(n), None, None)([_absolute([(low, high)])])
        return (None if most is None else -most * (1 + _SLACK), None if most is None else most * (1 + _SLACK))
    most = _through_floats(lambda x: max(x, 0) ** float(n), None, None)([(low, high)])[1]
    return Fraction(0), None if most is None else most * (1 + _SLACK)


def _whole_power(low: Fraction | None, high: Fraction | None, n: int) -> Range:
    if n == 0:
        return Fraction(1), Fraction(1)
    if n % 2 == 0:
        low, high = _absolute([(low, high)])
    return None if low is None else low**n, None if high is None else high**n


def _year(spans: list[Range]) -> Range:
    """The years of a date or time."""
    low, high = (None if x is None else EPOCH + dt.timedelta(days=math.floor(x / DAY)) for x in spans[0])
    return None if low is None else Fraction(low.year), None if high is None else Fraction(high.year)


def _days(spans: list[Range]) -> Range:
    """The range of a time as a date."""
    low, high = spans[0]
    return None if low is None else truncated("DAY", low), None if high is None else truncated("DAY", high)


def _month_ends(spans: list[Range]) -> Range:
    """The range of the last days of months."""
    low, high = _days(spans)
    return low, None if high is None else high + 30 * DAY


def _fixed(low: int, high: int) -> RangeRule:
    return lambda _: (Fraction(low), Fraction(high))


def _first(spans: list[Range]) -> Range:
    return spans[0]


_number = (NUMBER,)
_text = (TEXT,)
_time = (MOMENT,)

PARTS: Final[dict[str, RangeRule]] = {
    "YEAR": _year,
    "QUARTER": _fixed(1, 4),
    "MONTH": _fixed(1, 12),
    "WEEK": _fixed(1, 53),
    "DAY": _fixed(1, 31),
    "DOW": _fixed(0, 6),
    "ISODOW": _fixed(1, 7),
    "DOY": _fixed(1, 366),
    "HOUR": _fixed(0, 23),
    "MINUTE": _fixed(0, 59),
    "SECOND": _fixed(0, 59),
}
"""What EXTRACT can take out of a date or time, and the values it can have."""

FUNCTIONS: Final[dict[str, Function]] = {
    "ABS": Function(_number, Kind.NUMBER, 1, span=_absolute, whole=True),
    "SIGN": Function(_number, Kind.NUMBER, 1, span=_fixed(-1, 1), whole=True),
    "FLOOR": Function(_number, Kind.NUMBER, 1, span=_ends(lambda x: Fraction(math.floor(x))), whole=True),
    "CEIL": Function(_number, Kind.NUMBER, 1, span=_ends(lambda x: Fraction(math.ceil(x))), whole=True),
    "ROUND": Function((NUMBER, NUMBER), Kind.NUMBER, 1, constants=frozenset({1}), span=_rounded),
    "SQRT": Function(_number, Kind.NUMBER, 1, span=_through_floats(lambda x: math.sqrt(max(x, 0)), Fraction(0), None)),
    "EXP": Function(_number, Kind.NUMBER, 1, span=_through_floats(math.exp, Fraction(0), None)),
    "LN": Function(_number, Kind.NUMBER, 1, span=_through_floats(math.log, None, None)),
    "LOG10": Function(_number, Kind.NUMBER, 1, span=_through_floats(math.log10, None, None)),
    "POWER": Function((NUMBER, NUMBER), Kind.NUMBER, 2, constants=frozenset({1}), span=_power, whole=True),
    "LEAST": Function((ANY,), None, 1, more=True, span=union, whole=True),
    "GREATEST": Function((ANY,), None, 1, more=True, span=union, whole=True),
    "COALESCE": Function((ANY,), None, 1, more=True, span=union, whole=True),
    "NULLIF": Function((ANY, ANY), None, 2, span=_first),
    "LOWER": Function(_text, Kind.TEXT, 1),
    "UPPER": Function(_text, Kind.TEXT, 1),
    "TRIM": Function(_text, Kind.TEXT, 1),
    "LTRIM": Function(_text, Kind.TEXT, 1),
    "RTRIM": Function(_text, Kind.TEXT, 1),
    "REVERSE": Function(_text, Kind.TEXT, 1),
    "LENGTH": Function(_text, Kind.INTEGER, 1, span=lambda _: (Fraction(0), None), whole=True),
    "SUBSTR": Function((TEXT, NUMBER, NUMBER), Kind.TEXT, 2, constants=frozenset({1, 2})),
    "LEFT": Function((TEXT, NUMBER), Kind.TEXT, 2, constants=frozenset({1})),
    "RIGHT": Function((TEXT, NUMBER), Kind.TEXT, 2, constants=frozenset({1})),
    "REPLACE": Function((TEXT, TEXT, TEXT), Kind.TEXT, 3, constants=frozenset({1, 2})),
    "CONCAT": Function((TEXT,), Kind.TEXT, 1, more=True),
    "SPLIT_PART": Function((TEXT, TEXT, NUMBER), Kind.TEXT, 3, constants=frozenset({1, 2})),
    "REGEXP_MATCHES": Function((TEXT, TEXT), Kind.BOOLEAN, 2, constants=frozenset({1})),
    "STARTS_WITH": Function((TEXT, TEXT), Kind.BOOLEAN, 2),
    "ENDS_WITH": Function((TEXT, TEXT), Kind.BOOLEAN, 2),
    "CONTAINS": Function((TEXT, TEXT), Kind.BOOLEAN, 2),
    "DATE_TRUNC": Function((TEXT, MOMENT), None, 2, constants=frozenset({0})),
    "TIME_BUCKET": Function((NUMBER, MOMENT), Kind.TIMESTAMP, 2, constants=frozenset({0})),
    "LAST_DAY": Function(_time, Kind.DATE, 1, span=_month_ends),
    "EXTRACT": Function((TEXT, MOMENT), Kind.INTEGER, 2, constants=frozenset({0}), whole=True),
    "DATE_DIFF": Function((TEXT, MOMENT, MOMENT), Kind.INTEGER, 3, constants=frozenset({0}), whole=True),
    "DATE_ADD": Function((TEXT, NUMBER, MOMENT), Kind.TIMESTAMP, 3, constants=frozenset({0, 1})),
    "CAST_INTEGER": Function(
        (ANY,),
        Kind.INTEGER,
        1,
        span=lambda s: (
            None if s[0][0] is None else Fraction(math.floor(s[0][0])),
            None if s[0][1] is None else Fraction(math.ceil(s[0][1])),
        ),
        whole=True,
    ),
    "CAST_NUMBER": Function((ANY,), Kind.NUMBER, 1, span=_first),
    "CAST_TEXT": Function((ANY,), Kind.TEXT, 1),
    "CAST_BOOLEAN": Function((ANY,), Kind.BOOLEAN, 1),
    "CAST_DATE": Function((ANY,), Kind.DATE, 1, span=_days),
    "CAST_TIMESTAMP": Function((ANY,), Kind.TIMESTAMP, 1, span=_first),
}
