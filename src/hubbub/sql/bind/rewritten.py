"""Functions as people write them that are read as others: no engine is told of these.

A time less a time is a duration, which no column holds. It can be taken apart (EPOCH, EXTRACT) and compared with an
INTERVAL; what is made of it is a number of microseconds, by DATE_DIFF.
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.calendars import formatted_as_mysql
from hubbub.sql.bind.zoned import by_moments, compared_with_moment, in_utc, of_one_clock, says_moment, zoned, zoned_call
from hubbub.sql.text.functions import MOVES
from hubbub.tables.expressions import (
    Arithmetic,
    ArithmeticOp,
    Call,
    Case,
    Compare,
    CompareOp,
    Expression,
    InList,
    IsNull,
    Literal,
    Logic,
    Negate,
    Not,
)
from hubbub.tables.functions import EPOCH
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.patterns import BadPattern, parsed

if TYPE_CHECKING:
    from hubbub.sql.bind.expression import ExpressionReader

__all__ = ["check_pattern", "compared", "constant_date", "extracted", "rewritten", "with_interval"]

_MOST_YEARS: Final = 4000
_LONGEST: Final = {"MONTH": 12 * _MOST_YEARS, "DAY": 366 * _MOST_YEARS, "SECOND": 366 * 86_400 * _MOST_YEARS}
_MICROSECONDS: Final = {"DAY": 86_400 * 10**6, "SECOND": 10**6}
_LARGEST_BASE: Final = 10**6

_WRITTEN_ALIKE: Final = frozenset({Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP})
_ANONYMOUS: Final = frozenset({"IFF", "DATEADD"})
_ROUNDED_DOWN: Final[dict[str, ArithmeticOp]] = {"FDIV": "//", "FMOD": "%"}


def rewritten(reader: ExpressionReader, node: exp.Expr) -> Expression | None:
    """A call of this page; None for another one."""
    at = zoned_call(node)
    if at is not None:
        return zoned(reader, at, reader.moments)
    match node:
        case exp.Pow():
            return _power(reader, node)
        case exp.ConcatWs():  # a kind of exp.Concat
            return _concat_with(reader, node)
        case exp.Concat():
            return _concat(reader, node.expressions)
        case exp.DPipe():
            return _beside_text(reader, node)
        case exp.ArrayContains():
            return _in_list(reader, node)
        case exp.In(this=exp.Tuple()) if node.expressions:
            return _among_rows(reader, node)
        case exp.Like() | exp.ILike():
            return _like_listed(reader, node)
        case exp.TimeToUnix():
            return epoch(reader, node.this)
        case exp.SimilarTo() if _is_text(node.expression) and set("%_") & set(node.expression.name):
            words = (
                "SIMILAR TO reads a regular expression, in which % and _ stand for themselves; write LIKE, or .* and ."
            )
            raise reader.refuse(words, node, remedy=Rewrite("LIKE"))
        case exp.RegexpFullMatch() | exp.SimilarTo():
            whole = (
                exp.Literal.string(f"^(?:{node.expression.name})$") if _is_text(node.expression) else node.expression
            )
            return reader.call(node, "REGEXP_MATCHES", [node.this, whole])
        case exp.RegexpLike():
            return reader.call(node, "REGEXP_MATCHES", [node.this, node.expression])
        case exp.DateAdd() | exp.DateSub() if isinstance(node.expression, exp.Interval):
            sign = 1 if isinstance(node, exp.DateAdd) else -1
            return moved(reader, reader.read(node.this), interval_of(reader, node.expression), sign, node)
        case exp.Anonymous(this=str() as name) if name.upper() == "DATE_FORMAT" and len(node.expressions) == 2:
            return formatted_as_mysql(reader, *node.expressions)
        case exp.Anonymous(this=str() as name) if name.upper() in _ROUNDED_DOWN and len(node.expressions) == 2:
            sides = exp.Div(this=node.expressions[0], expression=node.expressions[1])
            return reader.arithmetic(_ROUNDED_DOWN[name.upper()], sides)
        case exp.Anonymous(this=str() as name) if name.upper() in _ANONYMOUS and len(node.expressions) == 3:
            if name.upper() == "IFF":
                condition, yes, no = node.expressions
                return reader.read(exp.If(this=condition, true=yes, false=no))
            unit, amount, start = node.expressions
            by = _amount(unit.name.upper(), reader.read(amount))
            return None if by is None else moved(reader, reader.read(start), by, 1, node)
    return None


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _power(reader: ExpressionReader, node: exp.Pow) -> Expression:
    """A constant exponent, or a constant base above 0: the range of anything else would follow from nothing."""
    base, exponent = reader.number(node.this, "POWER"), reader.number(node.expression, "POWER")
    if isinstance(exponent, Literal):
        n = exponent.value
        if n is None:
            return Arithmetic("*", base, Literal(None))
        exact = Fraction(n) if isinstance(n, int | Fraction) else Fraction(65)
        if abs(exact) <= 64:
            size = abs(exact)
            power = Call("POWER", (base, Literal(int(size) if size.denominator == 1 else size)))
            return Arithmetic("/", Literal(1), power) if exact < 0 else power
        end = Rewrite("-64" if exact < 0 else "64")
        raise reader.refuse("POWER takes an exponent between -64 and 64.", node.expression, remedy=end)
    if isinstance(base, Literal) and isinstance(base.value, int | Fraction) and 0 < base.value <= _LARGEST_BASE:
        logarithm = Fraction(math.log(base.value))
        return Call("EXP", (Arithmetic("*", Literal(logarithm), exponent),))
    of_both = Rewrite("EXP(y * LN(x))")
    raise reader.refuse(
        "POWER takes a constant exponent, POWER(x, 2), or a constant base above 0, POWER(2, x); for others write "
        f"{of_both.in_python()}.",
        node,
        remedy=(of_both,),
    )


def _text_of(reader: ExpressionReader, node: exp.Expr) -> Expression | None:
    """A value as a text; None for NULL."""
    read = reader.read(node)
    if read.kind is Kind.NULL:
        return None
    if read.kind is Kind.OTHER:
        raise reader.refuse("CONCAT takes no values of this type.", node)
    if read.kind is Kind.NUMBER:
        raise reader.refuse(
            "engines write numbers that are not whole in different ways; write CAST(x AS BIGINT), or CAST(x AS "
            "VARCHAR).",
            node,
            remedy=Rewrite("CAST(x AS BIGINT)"),
        )
    return read if read.kind is Kind.TEXT else Call("CAST_TEXT", (read,))


def _beside_text(reader: ExpressionReader, node: exp.DPipe) -> Expression:
    """`||`: beside a text stands what every engine writes alike."""
    sides = [reader.read(node.this), reader.read(node.expression)]
    if any(side.kind is Kind.TEXT for side in sides):
        sides = [Call("CAST_TEXT", (s,)) if s.kind in _WRITTEN_ALIKE else s for s in sides]
    return reader.applied(node, "CONCAT", [node.this, node.expression], tuple(sides))


def _joined(reader: ExpressionReader, parts: list[Expression], node: exp.Expr) -> Expression:
    if not parts:
        return Literal("")
    call = Call("CONCAT", tuple(parts))
    reader.check_length(call, node)
    return call


def _concat(reader: ExpressionReader, nodes: list[exp.Expr]) -> Expression:
    """CONCAT leaves NULLs out, where || gives NULL."""
    texts = [t for t in (_text_of(reader, n) for n in nodes) if t is not None]
    return _joined(reader, [Call("COALESCE", (t, Literal(""))) for t in texts], nodes[0])


def _concat_with(reader: ExpressionReader, node: exp.ConcatWs) -> Expression:
    """CONCAT_WS: each text that is there behind the separator; the first separator is cut off."""
    between, *nodes = node.expressions
    if not _is_text(between) or not nodes:
        raise reader.refuse(
            "CONCAT_WS takes a constant separator and values: CONCAT_WS('-', a, b).",
            node,
            remedy=Rewrite("CONCAT_WS('-', a, b)"),
        )
    mark = Literal(str(between.this))
    texts = [t for t in (_text_of(reader, n) for n in nodes) if t is not None]
    parts: list[Expression] = [Case((IsNull(t),), (Literal(""),), Call("CONCAT", (mark, t))) for t in texts]
    joined = _joined(reader, parts, node)
    return Call("SUBSTR", (joined, Literal(len(between.this) + 1)))


def _in_list(reader: ExpressionReader, node: exp.ArrayContains) -> Expression:
    """LIST_CONTAINS of constants is IN, but that it is never unknown because of a NULL in the list."""
    if not isinstance(node.this, exp.Array) or not node.this.expressions:
        raise reader.refuse(
            "LIST_CONTAINS takes a list of constants: LIST_CONTAINS(['a', 'b'], ward).",
            node,
            remedy=Rewrite("LIST_CONTAINS(['a', 'b'], ward)"),
        )
    listed = [e for e in node.this.expressions if not isinstance(e, exp.Null)]
    membership = reader.read(exp.In(this=node.expression, expressions=listed or [exp.Null()]))
    if isinstance(membership, InList) and not listed:
        return Compare("<>", membership.operand, membership.operand)
    return membership


def _among_rows(reader: ExpressionReader, node: exp.In) -> Expression:
    """`(a, b) IN ((1, 2), (3, 4))`: one of the rows is the same in every place."""
    return Logic("OR", tuple(_same_row(reader, node.this, row) for row in node.expressions))


def _listed(reader: ExpressionReader, node: exp.Expr) -> list[exp.Expr]:
    """What stands in `ANY (a, b)` or `ANY ([a, b])`."""
    inner = node.this.unnest()
    if not isinstance(inner, exp.Tuple | exp.Array | exp.Literal):
        raise reader.refuse(
            "ANY and ALL take a list of constants; write x IN (...) for others.", node, remedy=Rewrite("x IN (...)")
        )
    listed = [inner] if isinstance(inner, exp.Literal) else list(inner.expressions)
    if not listed:
        raise reader.refuse("ANY and ALL take at least one value.", node)
    return listed


def _like_listed(reader: ExpressionReader, node: exp.Like | exp.ILike) -> Expression:
    """`x LIKE ANY ('a%', 'b%')`, and ALL."""
    if node.args.get("negate"):
        raise reader.refuse(
            "engines read NOT LIKE ANY in two ways; write NOT (x LIKE ANY ('a%', 'b%')).",
            node,
            remedy=Rewrite("NOT (x LIKE ANY ('a%', 'b%'))"),
        )
    likes = tuple(reader.read(type(node)(this=node.this, expression=e)) for e in _listed(reader, node.expression))
    return Logic("OR" if isinstance(node.expression, exp.Any) else "AND", likes)


def _same_row(reader: ExpressionReader, left: exp.Expr, right: exp.Expr) -> Expression:
    """`(a, b) = (1, 2)`."""
    if not isinstance(right, exp.Tuple) or len(left.expressions) != len(right.expressions):
        raise reader.refuse(
            "rows are compared with rows of as many values: (a, b) = (1, 2).", right, remedy=Rewrite("(a, b) = (1, 2)")
        )
    pairs = zip(left.expressions, right.expressions, strict=True)
    return Logic("AND", tuple(reader.read(exp.EQ(this=a, expression=b)) for a, b in pairs))


# -- times ------------------------------------------------------------------------------------------------------


def interval_of(reader: ExpressionReader, node: exp.Interval) -> tuple[str, int]:
    """An INTERVAL as a number of months, days or seconds."""
    unit = str(node.args["unit"].name).upper() if node.args.get("unit") is not None else ""
    amount = node.this
    while isinstance(amount, exp.Paren):
        amount = amount.this
    if _is_text(amount):
        text = str(amount.this).strip()
        sign, digits = (-1, text[1:]) if text[:1] in ("-", "+") and text[0] == "-" else (1, text.lstrip("+"))
        value: Expression = (
            Literal(sign * int(digits))
            if digits.isascii() and digits.isdecimal() and len(digits) < 19
            else Literal(None)
        )
    else:
        value = Literal(None) if amount is None else reader.read(amount)
    interval = _amount(unit, value)
    if interval is None:
        raise reader.refuse(
            "INTERVAL takes a constant whole number and a unit, up to 4,000 years: INTERVAL '90' DAY. For a number of "
            "a column compare with DATE_DIFF('day', a, b).",
            node,
            remedy=Rewrite("INTERVAL '90' DAY"),
        )
    return interval


def _amount(unit: str, value: Expression) -> tuple[str, int] | None:
    if isinstance(value, Negate):
        value = value.operand
    unit = unit if unit in MOVES else unit.removesuffix("S")
    if not isinstance(value, Literal) or not isinstance(value.value, int) or unit not in MOVES:
        return None
    step, times = MOVES[unit]
    amount = value.value * times
    return (step, amount) if abs(amount) <= _LONGEST[step] else None


def moved(reader: ExpressionReader, start: Expression, by: tuple[str, int], sign: int, node: exp.Expr) -> Expression:
    """A date or time, an INTERVAL on. As in DuckDB, a date becomes a time."""
    if start.kind not in TEMPORAL and start.kind is not Kind.NULL:
        raise reader.refuse(
            "INTERVAL moves a date or a time; write CAST(x AS TIMESTAMP) for a text.",
            node,
            remedy=Rewrite("CAST(x AS TIMESTAMP)"),
        )
    unit, amount = by
    if start.kind is Kind.NULL:
        return Call("CAST_TIMESTAMP", (start,))
    return Call("DATE_ADD", (Literal(unit), Literal(sign * amount), start))


def with_interval(reader: ExpressionReader, op: str, node: exp.Expr) -> Expression:
    """`day + INTERVAL '3' DAY`: a constant where the day is one."""
    if op not in "+-":
        raise reader.refuse(
            "INTERVAL is added or taken away: x + INTERVAL '1' DAY.", node, remedy=Rewrite("x + INTERVAL '1' DAY")
        )
    start, by = reader.read(node.this), interval_of(reader, node.expression)
    if not isinstance(start, Literal) or not isinstance(start.value, dt.date):
        return moved(reader, start, by, 1 if op == "+" else -1, node)
    shifted = _move(start.value, by[0], by[1] if op == "+" else -by[1])
    if shifted is None:
        raise reader.refuse("this date is out of range.", node)
    return Literal(shifted)


def _move(start: dt.date, unit: str, amount: int) -> dt.date | None:
    """A date some months, days or seconds on; the last day of the month where that month is shorter.

    None out of range. A date stays one where it is moved by days and months.
    """
    try:
        if unit == "SECOND":
            moment = start if isinstance(start, dt.datetime) else dt.datetime(start.year, start.month, start.day)
            return moment + dt.timedelta(seconds=amount)
        if unit == "DAY":
            return start + dt.timedelta(days=amount)
        year, month = divmod(start.year * 12 + start.month - 1 + amount, 12)
        return start.replace(year=year, month=month + 1, day=min(start.day, calendar.monthrange(year, month + 1)[1]))
    except (ValueError, OverflowError):
        return None


def a_duration(reader: ExpressionReader, node: exp.Expr) -> tuple[Expression, Expression] | None:
    """The end and the start of a time less a time; None for anything else. Two dates are a number of days."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Sub) or isinstance(node.expression, exp.Interval):
        return None
    if isinstance(node.this, exp.Literal) or isinstance(node.expression, exp.Literal):
        return None
    end, start = reader.read(node.this), reader.read(node.expression)
    if {end.kind, start.kind} <= TEMPORAL and Kind.TIMESTAMP in (end.kind, start.kind):
        moments = by_moments(reader, end, start, node)
        if moments is None:
            of_one_clock(reader, node, end, start)
        return moments or (end, start)
    return None


def _microseconds(end: Expression, start: Expression) -> Expression:
    return Call("DATE_DIFF", (Literal("MICROSECOND"), start, end))


def epoch(reader: ExpressionReader, node: exp.Expr) -> Expression:
    """The seconds since 1970-01-01, or of a duration, with their fractions."""
    duration = a_duration(reader, node)
    if duration is not None:
        return Arithmetic("/", _microseconds(*duration), Literal(10**6))
    moment = reader.read(node)
    if moment.kind not in TEMPORAL and moment.kind is not Kind.NULL:
        raise reader.refuse(
            "EPOCH takes a date, a time, or a time less a time; of a text CAST(x AS TIMESTAMP).",
            node,
            remedy=Rewrite("CAST(x AS TIMESTAMP)"),
        )
    return Arithmetic("/", _microseconds(in_utc(reader, moment), Literal(EPOCH)), Literal(10**6))


def extracted(reader: ExpressionReader, part: str, node: exp.Expr) -> Expression | None:
    """EXTRACT(EPOCH FROM x), and EXTRACT(DAY FROM a - b), whole days toward zero; None for any other."""
    if part == "EPOCH":
        return epoch(reader, node)
    if isinstance(node, exp.Anonymous) and node.name.upper() == "AGE":
        return _age(reader, part, node)
    duration = a_duration(reader, node)
    if duration is None:
        return None
    if part != "DAY":
        raise reader.refuse(
            f"of a time less a time there are EPOCH and DAY; write DATE_DIFF('{part.lower()}', b, a).",
            node,
            remedy=Rewrite(f"DATE_DIFF('{part.lower()}', b, a)"),
        )
    days = Arithmetic("/", _microseconds(*duration), Literal(_MICROSECONDS["DAY"]))
    whole = Arithmetic("*", Call("SIGN", (days,)), Call("FLOOR", (Call("ABS", (days,)),)))
    return Call("CAST_INTEGER", (whole,))


def _age(reader: ExpressionReader, part: str, node: exp.Anonymous) -> Expression:
    """EXTRACT(YEAR FROM AGE(end, start)): whole years, counted from the earlier of the two."""
    moments = tuple(reader.read(e) for e in node.expressions)
    if part != "YEAR" or len(moments) != 2 or not {m.kind for m in moments} <= TEMPORAL:
        raise reader.refuse(
            "of AGE there is EXTRACT(YEAR FROM AGE(end, start)), of two dates or times; for others write "
            "DATE_DIFF('month', start, end).",
            node,
            remedy=Rewrite("DATE_DIFF('month', start, end)"),
        )
    end, start = moments
    of_one_clock(reader, node, end, start)
    return Case((Compare(">=", end, start),), (_years(end, start),), Negate(_years(start, end)))


def _years(end: Expression, start: Expression) -> Expression:
    """The birthdays from a day to a later one."""
    years = Arithmetic("-", *(Call("EXTRACT", (Literal("YEAR"), m)) for m in (end, start)))
    not_yet = Compare("<", *map(_in_its_year, (end, start)))
    return Arithmetic("-", years, Case((not_yet,), (Literal(1),), Literal(0)))


def _in_its_year(moment: Expression) -> Expression:
    """A number that grows with month, day and time of day."""
    day = Arithmetic(
        "+",
        Arithmetic("*", Call("EXTRACT", (Literal("MONTH"), moment)), Literal(100)),
        Call("EXTRACT", (Literal("DAY"), moment)),
    )
    whole = Arithmetic("*", day, Literal(_MICROSECONDS["DAY"]))
    if moment.kind is Kind.DATE:
        return whole
    return Arithmetic("+", whole, _microseconds(moment, Call("DATE_TRUNC", (Literal("DAY"), moment))))


def compared(reader: ExpressionReader, op: CompareOp, node: exp.Expr) -> Expression | None:
    """`a - b > INTERVAL '2' DAY`, and a column against a moment; None for any other comparison."""
    left, right = node.this, node.expression
    if isinstance(left, exp.Tuple) and op in ("=", "<>"):
        same = _same_row(reader, left, right)
        return same if op == "=" else Not(same)
    if isinstance(right, exp.Any) and op == "=":
        return reader.read(exp.In(this=left, expressions=_listed(reader, right)))
    if says_moment(reader, left) or says_moment(reader, right):
        return compared_with_moment(reader, op, left, right, reader.moments)
    if isinstance(left, exp.Interval) and not isinstance(right, exp.Interval):
        left, right, op = right, left, _TURNED[op]
    if not isinstance(right, exp.Interval) or isinstance(left, exp.Interval):
        return None
    duration, (unit, amount) = a_duration(reader, left), interval_of(reader, right)
    if duration is None:
        raise reader.refuse(
            "INTERVAL is compared with a time less a time: a - b > INTERVAL '2' DAY.",
            node,
            remedy=Rewrite("a - b > INTERVAL '2' DAY"),
        )
    if unit not in _MICROSECONDS:
        raise reader.refuse(
            "months have no one length; compare days, or moments: a > b + INTERVAL '2' MONTH.",
            right,
            remedy=Rewrite("a > b + INTERVAL '2' MONTH"),
        )
    return Compare(op, _microseconds(*duration), Literal(amount * _MICROSECONDS[unit]))


_TURNED: Final[dict[CompareOp, CompareOp]] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def constant_date(moment: Expression, days: Expression, sign: int) -> Expression | None:
    """`day + 7`: a date some days on; None where it is not that."""
    if moment.kind is not Kind.DATE or days.kind not in NUMERIC or not isinstance(days, Literal):
        return None
    if not isinstance(days.value, int) or abs(days.value) > _LONGEST["DAY"]:
        return None
    if isinstance(moment, Literal) and isinstance(moment.value, dt.date):
        try:
            return Literal(moment.value + dt.timedelta(days=sign * days.value))
        except OverflowError:
            return Literal(None)
    return Call("CAST_DATE", (Call("DATE_ADD", (Literal("DAY"), Literal(sign * days.value), moment)),))


def check_pattern(reader: ExpressionReader, value: object, node: exp.Expr) -> None:
    """Refuse a regular expression that engines do not all read alike, or not in time."""
    try:
        parsed(value if isinstance(value, str) else "")
        fine = isinstance(value, str)
        why = "it is a text"
    except BadPattern as bad:
        fine, why = False, str(bad)
    if not fine:
        raise reader.refuse(
            f"this regular expression is not supported: {why}. There are characters, classes, ^, $, ?, one * or + "
            "on a character or class, and alternatives.",
            node,
        )
