"""Names, formats and stretches of time, and numbered bins, as expressions of what every dialect writes alike.

STRFTIME and TO_CHAR are joined from the numbers that EXTRACT gives, padded with zeros; the names of days and months are
a CASE over them, in English as DuckDB has them; TIME_BUCKET is DATE_TRUNC where it can be. Nothing here depends on an
engine's locale, its first day of a week, or its time zone. Weeks are those of ISO 8601, with their own year.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.kinds import wrong_kind
from hubbub.tables.expressions import Arithmetic, Call, Case, Compare, Expression, Literal, Logic
from hubbub.tables.functions import DAY, UNITS_OF_TIME
from hubbub.tables.kinds import NUMERIC, TEMPORAL

__all__ = ["calendar_call", "formatted_as_mysql", "iso_year"]

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    "December",
)
_BUCKETS: Final = (
    "TIME_BUCKET takes what divides a day ('15 minutes', '12 hours'), or 1 day, 7 days, 1, 3 or 12 months."
)
_READ: Final = {"this", "format", "expression", "min_value", "max_value", "num_buckets"}
"""The arguments that are read; a call with others is refused elsewhere."""


def calendar_call(reader: Any, node: exp.Expr) -> Expression | None:
    """A call of one of these functions as an expression; None for another node. reader: an `ExpressionReader`.

    Raises QueryError for arguments that it does not take.
    """
    if any(value is not None and value != [] for name, value in node.args.items() if name not in _READ):
        return None
    match node:
        case exp.Date():
            return reader.read(exp.Cast(this=node.this, to=exp.DataType.build("DATE")))  # type: ignore[no-any-return]
        case exp.Dayname():
            return _name_of(_part("ISODOW", _moment(reader, node.this)), _DAYS)
        case exp.Monthname():
            return _name_of(_part("MONTH", _moment(reader, node.this)), _MONTHS)
        case exp.LastDay():
            return Call("LAST_DAY", (_moment(reader, node.this),))
        case exp.TimeToStr():
            first, second = node.this, node.args["format"]
            if isinstance(first, exp.Literal) and not isinstance(second, exp.Literal):
                first, second = second, first  # STRFTIME('%Y', x), as SQLite has it
            return _formatted(reader, first, second, _PERCENT, _CODES)
        case exp.ToChar():
            return _formatted(reader, node.this, node.args.get("format"), _WORDS, _NAMED)
        case exp.DateBin():
            return _bucket(reader, node)
        case exp.WidthBucket():
            return _bin(reader, node)
    return None


def formatted_as_mysql(reader: Any, moment: exp.Expr, written: exp.Expr) -> Expression:
    """DATE_FORMAT(x, '%Y-%m'), whose %M is a month's name and %i a minute.

    Raises QueryError for a format without codes, such as Spark's 'yyyy-MM': it would be the same text for every row.
    """
    if isinstance(written, exp.Literal) and "%" not in str(written.this):
        raise reader.refuse(
            "DATE_FORMAT reads MySQL's codes, such as '%Y-%m'; TO_CHAR reads 'YYYY-MM'.",
            written,
            remedy=Rewrite("'%Y-%m'"),
        )
    return _formatted(reader, moment, written, _PERCENT, _MYSQL)


def _moment(reader: Any, node: exp.Expr) -> Expression:
    moment: Expression = reader.read(node)
    if moment.kind not in TEMPORAL:
        raise reader.refuse(
            "a date or a time is needed here; write CAST(x AS DATE) for a text.",
            node,
            remedy=Rewrite("CAST(x AS DATE)"),
        )
    return moment


def _part(name: str, moment: Expression) -> Expression:
    return Call("EXTRACT", (Literal(name), moment))


def _name_of(number: Expression, names: tuple[str, ...], length: int = 20) -> Case:
    conditions = tuple(Compare("=", number, Literal(i)) for i in range(1, len(names) + 1))
    return Case(conditions, tuple(Literal(name[:length]) for name in names), Literal(None))


def iso_year(moment: Expression) -> Expression:
    """The year that the ISO week of a day belongs to: 2024-12-30 is in week 1 of 2025."""
    year, month, week = (_part(name, moment) for name in ("YEAR", "MONTH", "WEEK"))
    january = Logic("AND", (Compare("=", month, Literal(1)), Compare(">=", week, Literal(52))))
    december = Logic("AND", (Compare("=", month, Literal(12)), Compare("=", week, Literal(1))))
    moved = tuple(Call("CAST_INTEGER", (Arithmetic(op, year, Literal(1)),)) for op in ("-", "+"))
    return Case((january, december), moved, year)


def _digits(number: Expression, length: int) -> Expression:
    """A whole number as text of at least so many digits."""
    text = Call("CAST_TEXT", (number,))
    return Call("RIGHT", (Call("CONCAT", (Literal("0" * (length - 1)), text)), Literal(length))) if length > 1 else text


def _padded(name: str, length: int) -> Callable[[Expression], Expression]:
    return lambda moment: _digits(_part(name, moment), length)


_ISO_YEAR: Final[Callable[[Expression], Expression]] = lambda moment: _digits(iso_year(moment), 4)  # noqa: E731
_CODES: Final[Mapping[str, Callable[[Expression], Expression]]] = {
    "%Y": _padded("YEAR", 4),
    "%y": lambda moment: Call("RIGHT", (_digits(_part("YEAR", moment), 4), Literal(2))),
    "%m": _padded("MONTH", 2),
    "%-m": _padded("MONTH", 1),
    "%d": _padded("DAY", 2),
    "%-d": _padded("DAY", 1),
    "%H": _padded("HOUR", 2),
    "%-H": _padded("HOUR", 1),
    "%M": _padded("MINUTE", 2),
    "%S": _padded("SECOND", 2),
    "%j": _padded("DOY", 3),
    "%u": _padded("ISODOW", 1),
    "%w": _padded("DOW", 1),
    "%G": _ISO_YEAR,
    "%V": _padded("WEEK", 2),
    "%A": lambda moment: _name_of(_part("ISODOW", moment), _DAYS),
    "%a": lambda moment: _name_of(_part("ISODOW", moment), _DAYS, 3),
    "%B": lambda moment: _name_of(_part("MONTH", moment), _MONTHS),
    "%b": lambda moment: _name_of(_part("MONTH", moment), _MONTHS, 3),
    "%%": lambda _: Literal("%"),
}
_NAMED: Final[Mapping[str, Callable[[Expression], Expression]]] = {
    "YYYY": _CODES["%Y"],
    "YY": _CODES["%y"],
    "MM": _CODES["%m"],
    "DDD": _CODES["%j"],
    "DD": _CODES["%d"],
    "HH24": _CODES["%H"],
    "MI": _CODES["%M"],
    "SS": _CODES["%S"],
    "Q": _padded("QUARTER", 1),
    "IYYY": _ISO_YEAR,
    "IW": _CODES["%V"],
    "Mon": _CODES["%b"],
    "FMMonth": _CODES["%B"],
    "Dy": _CODES["%a"],
    "FMDay": _CODES["%A"],
}
_MYSQL: Final = {
    **{code: _CODES[code] for code in ("%Y", "%y", "%m", "%d", "%H", "%S", "%j", "%a", "%b", "%%")},
    "%c": _CODES["%-m"],
    "%e": _CODES["%-d"],
    "%k": _CODES["%-H"],
    "%i": _CODES["%M"],
    "%s": _CODES["%S"],
    "%M": _CODES["%B"],
    "%W": _CODES["%A"],
}
_PERCENT: Final = re.compile(r"%-?.|[^%]+", re.DOTALL)
_WORDS: Final = re.compile(r"IYYY|YYYY|HH24|FMMonth|FMDay|DDD|Mon|MM|DD|MI|SS|IW|YY|Dy|Q|[A-Za-z]+|[^A-Za-z]+")


def _formatted(
    reader: Any,
    moment: exp.Expr,
    written: exp.Expr | None,
    pieces: re.Pattern[str],
    codes: Mapping[str, Callable[[Expression], Expression]],
) -> Expression:
    """A date or time as text, by a constant format."""
    if not (isinstance(written, exp.Literal) and written.is_string and 0 < len(str(written.this)) <= 100):
        raise reader.refuse(
            "the format is a constant text, such as '%Y-%m'.", written or moment, remedy=Rewrite("'%Y-%m'")
        )
    read, parts = _moment(reader, moment), list[Expression]()
    for piece in pieces.findall(str(written.this)):
        if piece in codes:
            parts.append(codes[piece](read))
        elif piece.startswith("%") or (codes is _NAMED and piece[0].isalpha()):
            known = ", ".join(codes)
            raise reader.refuse(
                f"the format knows {known}; {piece!r} is not one of them. Write such as '%Y-%m'.",
                written,
                remedy=Rewrite("'%Y-%m'"),
            )
        else:
            parts.append(Literal(piece))
    joined = parts[0]
    for part in parts[1:]:
        joined = Call("CONCAT", (joined, part))
    return joined


_WIDTH: Final = re.compile(r"(\d{1,6})\s+([a-z]+?)s?", re.IGNORECASE)


def _bucket(reader: Any, node: exp.DateBin) -> Expression:
    """TIME_BUCKET of a width that gives the same stretches whatever they are counted from."""
    moment, width = _moment(reader, node.expression), node.this
    text = str(width.this.this if isinstance(width, exp.Interval) and width.this is not None else width.this)
    if isinstance(width, exp.Interval) and width.args.get("unit") is not None:
        text = f"{text} {width.args['unit'].name}"
    match = _WIDTH.fullmatch(text.strip())
    if match is None:
        raise reader.refuse(_BUCKETS, node, remedy=Rewrite("'15 minutes'"))
    number, unit = int(match[1]), match[2].upper()
    if unit in ("MONTH", "QUARTER", "YEAR"):
        months = number * {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[unit]
        named = {1: "MONTH", 3: "QUARTER", 12: "YEAR"}.get(months)
    else:
        micros = number * UNITS_OF_TIME.get(unit, 0)
        named = {DAY: "DAY", 7 * DAY: "WEEK"}.get(micros)
        if 0 < micros < DAY and DAY % micros == 0:
            return Call("TIME_BUCKET", (Literal(micros), moment))
    if named is None:
        raise reader.refuse(_BUCKETS, node, remedy=Rewrite("'15 minutes'"))
    return Call("DATE_TRUNC", (Literal(named), moment))


def _bin(reader: Any, node: exp.WidthBucket) -> Expression:
    """WIDTH_BUCKET(x, low, high, n): 1 to n for n equal bins from low up to high, 0 below, n + 1 from high on."""
    given = [node.args.get(a) for a in ("this", "min_value", "max_value", "num_buckets")]
    x, low, high, count = (Literal(None) if one is None else reader.read(one) for one in given)
    ends = [Fraction(e.value) for e in (low, high) if isinstance(e, Literal) and isinstance(e.value, int | Fraction)]
    number = count.value if isinstance(count, Literal) else None
    if x.kind not in NUMERIC:
        says, way = wrong_kind("WIDTH_BUCKET takes a number here", x.kind, NUMERIC)
        raise reader.refuse(says, node, remedy=way)
    if len(ends) < 2 or not ends[0] < ends[1] or not isinstance(number, int) or not 1 <= number <= 10_000:
        raise reader.refuse(
            "WIDTH_BUCKET(x, low, high, n) takes constants, low < high, and n from 1 to 10,000: WIDTH_BUCKET(x, 0, "
            "100, 10).",
            node,
            remedy=Rewrite("WIDTH_BUCKET(x, 0, 100, 10)"),
        )
    scaled = Arithmetic("/", Arithmetic("*", Arithmetic("-", x, low), count), _constant(ends[1] - ends[0]))
    inside = Call("LEAST", (Call("FLOOR", (scaled,)), Literal(number - 1)))
    place = Call("CAST_INTEGER", (Arithmetic("+", inside, Literal(1)),))
    return Case((Compare("<", x, low), Compare(">=", x, high)), (Literal(0), Literal(number + 1)), place)


def _constant(value: Fraction) -> Literal:
    return Literal(int(value)) if value.denominator == 1 else Literal(value)
