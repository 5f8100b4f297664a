"""What is declared of a column: a range, listed values, edges, or that it is a text."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final, Literal, overload
from zoneinfo import ZoneInfo

from hubbub.errors import PolicyError, what_was_given
from hubbub.keywords import named
from hubbub.remedies import DeclareColumn
from hubbub.tables.zone_names import a_zone, zone_meant

__all__ = [
    "BLANKS",
    "Between",
    "Counted",
    "Declaration",
    "Edges",
    "OneOf",
    "Ranged",
    "Scalar",
    "Text",
    "UpTo",
    "between",
    "edges",
    "one_of",
    "plain_moment",
    "text",
    "trimmed",
]


Scalar = bool | int | float | str | dt.date | dt.datetime | None


@dataclass(frozen=True)
class Between:
    """Declared bounds of a column, in the column's own unit. Build it with `between`.

    tz: the zone whose clocks questions see, and the bounds are in; the column's moments are in UTC.
    """

    low: Fraction | dt.date | dt.datetime
    high: Fraction | dt.date | dt.datetime
    nullable: bool = True
    tz: str | None = None

    @property
    def numeric(self) -> bool:
        return isinstance(self.low, Fraction)

    def __repr__(self) -> str:
        tail = "" if self.nullable else ", nullable=False"
        tail += "" if self.tz is None else f", tz={self.tz!r}"
        return f"between({_plain(self.low)}, {_plain(self.high)}{tail})"


@dataclass(frozen=True)
class UpTo:
    """A column whose sums get an upper bound that is found: `between(0, "auto")`.

    low: values below are clamped to it; 0 or more. bound: of one unit's sum within a group, once it was found.
    """

    low: Fraction
    bound: Fraction | None = None

    def __repr__(self) -> str:
        return f"between({_plain(self.low)}, 'auto')"


@dataclass(frozen=True)
class OneOf:
    """Declared values of a column, in the order in which answers list them. Build it with `one_of`.

    other: the group of every value that is not declared, NULL too unless it is; None for no such group. others: whether
    questions may compare the column with values that are not declared. trim: whether blanks around a text are cut off
    before it is looked at.
    """

    values: tuple[Scalar, ...]
    other: str | None = None
    others: bool = False
    trim: bool = False

    @property
    def open(self) -> bool:
        """Whether values that are not declared are known to occur: `other` groups them, `others` leaves them."""
        return self.others or self.other is not None

    def joined(self, more: OneOf) -> OneOf:
        """What is known of a column that has the values of two: what neither declares is the `other` of either.

        >>> one_of("A", other="rest").joined(one_of("A", "B"))
        one_of('A', 'B', other='rest')
        """
        other = more.other if self.other is None else self.other
        values = dict.fromkeys(v for v in (*self.values, *more.values) if v is None or v != other)
        return OneOf(tuple(values), other, self.others or more.others)

    def __repr__(self) -> str:
        tail = "" if self.other is None else f", other={self.other!r}"
        tail += ", others=True" if self.others else ""
        tail += ", trim=True" if self.trim else ""
        return f"one_of({', '.join(map(repr, self.values))}{tail})"


@dataclass(frozen=True)
class Text:
    """A column of text of which no values are declared. Build it with `text`."""

    trim: bool = False

    def __repr__(self) -> str:
        return f"text({'trim=True' if self.trim else ''})"


@dataclass(frozen=True)
class Edges:
    """Declared bounds of a numeric column, with the edges of the groups it falls into. Build it with `edges`."""

    ends: tuple[Fraction, ...]
    nullable: bool = True

    @property
    def low(self) -> Fraction:
        return self.ends[0]

    @property
    def high(self) -> Fraction:
        return self.ends[-1]

    def labels(self) -> tuple[str, ...]:
        """The groups: half-open, the last one closed."""
        texts = [_plain(end) for end in self.ends]
        last = len(texts) - 2
        return tuple(f"[{a}, {b}{']' if i == last else ')'}" for i, (a, b) in enumerate(itertools.pairwise(texts)))

    def __repr__(self) -> str:
        tail = "" if self.nullable else ", nullable=False"
        return f"edges({', '.join(map(_plain, self.ends))}{tail})"


@dataclass(frozen=True)
class Ranged:
    """What follows for a computed column: its least and largest value where there are any. Never declared."""

    low: Fraction | None
    high: Fraction | None


@dataclass(frozen=True)
class Counted(Ranged):
    """What follows for a number of one unit's rows: the limit that is declared of it, which is a choice and no fact."""


Declaration = Between | OneOf | Edges | Ranged | Text | UpTo

BLANKS: Final = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
"""Unicode's space separators, which TRIM removes, on every engine."""


def trimmed(what: Declaration | None) -> bool:
    """Whether blanks around the texts of a column are cut off as it is read."""
    return isinstance(what, OneOf | Text) and what.trim


def _plain(bound: object) -> str:
    if isinstance(bound, Fraction):
        return str(bound.numerator) if bound.denominator == 1 else repr(float(bound))
    return repr(str(bound))


def _of_python(value: object) -> object:
    """A value of numpy as Python has it; a time of nanoseconds where it is one of whole microseconds."""
    item = getattr(value, "item", None)
    if type(value).__module__ != "numpy" or not callable(item) or getattr(value, "shape", None) != ():
        return value
    plain = item()
    if plain is None:  # NaT, which declares no NULL
        return value
    if type(value).__name__ != "datetime64" or not isinstance(plain, int):
        return plain
    whole = value.astype("datetime64[us]")  # type: ignore[attr-defined]
    return whole.item() if whole == value else value


def _finite(value: float | Decimal | Fraction) -> bool:
    """Whether a number is one that a double can be: no NaN, no infinity, none beyond 1.79e308."""
    try:
        return math.isfinite(float(value))
    except (OverflowError, ValueError):  # a signalling NaN is no double
        return False


def _read(value: object) -> str:
    """A value in a message; of a number that no double can be not its thousands of digits."""
    return "a number beyond 1.79e308" if isinstance(value, int | Fraction) and not _finite(value) else repr(value)


def _bound(value: object, which: str) -> Fraction | dt.date | dt.datetime:
    """One end of `between`: numbers are read as written (0.1 is one tenth), text as an ISO date or time."""
    value = _of_python(value)
    if isinstance(value, str):
        value = _temporal(value, which)
    if isinstance(value, dt.datetime) and value == value:  # NaT is not
        return value
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise PolicyError(
            f"between(): {which} bound is {what_was_given(value)}; expected a number, a date or an ISO string."
        )
    if not _finite(value):
        raise PolicyError(
            f"between(): {which} bound is {_read(value)}; bounds are finite. Declare the range you would believe."
        )
    return Fraction(repr(value) if type(value) is float else repr(float(value)) if isinstance(value, float) else value)


def _in_clock(bound: Fraction | dt.date | dt.datetime, tz: str | None) -> Fraction | dt.date | dt.datetime:
    """A bound that is a moment of its own zone, as the column's clock shows it: in UTC, or in the zone of `tz`."""
    if not isinstance(bound, dt.datetime):
        return bound
    return plain_moment(bound, dt.UTC if tz is None else ZoneInfo(tz))


def _temporal(text: str, which: str) -> dt.date | dt.datetime:
    try:
        return dt.date.fromisoformat(text) if len(text) <= 10 else dt.datetime.fromisoformat(text)
    except ValueError:
        raise PolicyError(
            f"between(): {which} bound {text!r} is not an ISO date or time such as '2025-01-31'. "
            "Write numbers without quotes."
        ) from None


@overload
def between(low: object, high: Literal["auto"], *, nullable: bool = True) -> UpTo: ...  # type: ignore[overload-overlap]
@overload
def between(low: object, high: object, *, nullable: bool = True, tz: str | None = None) -> Between: ...
@named
def between(low: object, high: object, *, nullable: bool = True, tz: str | None = None) -> Between | UpTo:
    """Declare that a column's values lie between `low` and `high`, ends included.

    Values outside are clamped when they are aggregated, NaN counts as NULL. A NULL is left out of SUM, AVG and
    COUNT(column); with `nullable=False` it counts as the midpoint.

    low, high: numbers, dates, datetimes or ISO strings, low < high. With high="auto", and low a number of 0 or more,
    the column may be summed without a bound: how much one unit adds to a group at most is found in the same charge
    (`hubbub.mechanisms.place_search`), and NULL is left out. tz: a zone such as "Europe/Rome": the column holds moments
    in UTC, and questions see the time that clocks show there, as do the two bounds (one with an offset of its own is
    the moment that it names).

    Raises PolicyError for bounds that are missing, infinite, NaN, of two kinds, or not in order.

    >>> between(0, 120)
    between(0, 120)
    """
    if isinstance(high, str) and high == "auto":
        return _up_to(low, nullable, tz)
    if tz is not None:
        _check_zone(low, high, nullable, tz)
    _check_unquoted(low, high, nullable)
    _check_iso(low, high, nullable, tz)
    lo, hi = _in_clock(_bound(low, "lower"), tz), _in_clock(_bound(high, "upper"), tz)
    if isinstance(lo, Fraction) != isinstance(hi, Fraction) or isinstance(lo, dt.datetime) != isinstance(
        hi, dt.datetime
    ):
        raise PolicyError(f"between({low!r}, {high!r}): the bounds are of two kinds; give two of one kind.")
    if not lo < hi or _one_double(lo, hi):  # type: ignore[operator]
        turned = () if _one_double(lo, hi) or lo == hi else _so("between", (high, low), nullable=nullable, tz=tz)
        raise PolicyError(
            f"between({low!r}, {high!r}): the lower bound must be below the upper one, and not the same double."
            f"{_as_written(turned)}",
            remedy=turned,
        )
    if tz is not None and isinstance(lo, Fraction):
        plain = _working(low, high, nullable=nullable, tz=None)
        raise PolicyError(
            f"between({low!r}, {high!r}, tz={tz!r}): a zone is for times; the bounds are numbers.{_as_written(plain)}",
            remedy=plain,
        )
    return Between(lo, hi, _choice("between", "nullable", nullable), tz)


_WRITTEN: Final = re.compile(r"-?\d{1,7}(\.\d{1,9})?")
_MOST_WRITTEN: Final = 20


def _check_unquoted(low: object, high: object, nullable: object) -> None:
    """Raises PolicyError for numbers in quotes, with the numbers: two of four digits may be years as well."""
    quoted = [end for end in (low, high) if isinstance(end, str) and _WRITTEN.fullmatch(end)]
    if not quoted:
        return
    ends = [json.loads(str(Decimal(end))) if end in quoted else _of_python(end) for end in (low, high)]
    numbers = [end for end in ends if isinstance(end, int | float)]
    plain = len(numbers) == 2 and numbers[0] < numbers[1] and any(len(end) != 4 for end in quoted)
    way = _so("between", numbers, nullable=nullable) if plain else ()
    raise PolicyError(
        f"between(): the bound {quoted[0]!r} is not an ISO date or time such as '2025-01-31'. Write numbers without "
        f"quotes.{_as_written(way)}",
        remedy=way,
    )


_YEAR_FIRST: Final = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})")


def _check_iso(low: object, high: object, nullable: bool, tz: str | None) -> None:
    """Raises PolicyError for a day that is written from the year to the day, but not as ISO writes it, with ISO's."""
    texts = [end if isinstance(end, str) else "" for end in (low, high)]
    days = [f"{day[1]}-{day[3]:0>2}-{day[4]:0>2}" if (day := _YEAR_FIRST.fullmatch(text)) else text for text in texts]
    other = [text for text, day in zip(texts, days, strict=True) if text != day]
    if other:
        ways = _working(days[0] or low, days[1] or high, nullable=nullable, tz=tz)
        raise PolicyError(
            f"between(): the bound {other[0]!r} is not an ISO date or time such as '2025-01-31'.{_as_written(ways)}",
            remedy=ways,
        )


def _check_zone(low: object, high: object, nullable: bool, tz: str) -> None:
    """Raises PolicyError for a zone that is not known here, with the one that was meant."""
    try:
        a_zone(tz)
    except PolicyError as error:
        near = zone_meant(tz)
        ways = () if near is None else _working(low, high, nullable=nullable, tz=near)
        raise PolicyError(f"{error}{_as_written(ways)}", remedy=ways) from None


def _working(low: object, high: object, *, nullable: bool, tz: str | None) -> tuple[DeclareColumn, ...]:
    """A range as it was meant; nothing where it cannot be declared either."""
    try:
        between(low, high, nullable=nullable, tz=tz)
    except PolicyError:
        return ()
    return _so("between", (low, high), nullable=nullable, tz=tz)


def _so(how: str, values: Iterable[object], **flags: object) -> tuple[DeclareColumn, ...]:
    """A declaration of a column as it was meant; nothing where it holds more, or other, than a message should."""
    written = tuple(map(_of_python, values))
    if len(written) > _MOST_WRITTEN or not all(isinstance(v, str | int | float | dt.date | None) for v in written):
        return ()
    usual = {"nullable": True, "tz": None, "other": None, "others": False, "trim": False}
    return (DeclareColumn(how, written, tuple((n, v) for n, v in flags.items() if v is not usual[n])),)


def _as_written(ways: Sequence[DeclareColumn]) -> str:
    return f" Write {ways[0].in_python()}." if ways else ""


def _one_double(low: Fraction | dt.date, high: Fraction | dt.date) -> bool:
    """Whether no double lies apart from both; whole numbers may stand in a column of integers."""
    if not (isinstance(low, Fraction) and isinstance(high, Fraction)):
        return False
    return float(low) == float(high) and not low.denominator == high.denominator == 1


def _up_to(low: object, nullable: object, tz: object) -> UpTo:
    if tz is not None:
        plain = _working(low, "auto", nullable=nullable is True, tz=None)
        raise PolicyError(
            f"between({low!r}, 'auto', tz={tz!r}): a zone is for times; a bound is found of sums.{_as_written(plain)}",
            remedy=plain,
        )
    if isinstance(low, str) and low == "auto":
        raise PolicyError(
            "between('auto', 'auto'): a search finds one bound, of sums of values of 0 or more. Values of both signs "
            "have two, and a unit's sum near 0 may hide large ones. Buy both ends, session.suggest_bounds(table, "
            "column, epsilon=...), and declare them; or keep what is above 0 and what is below it in two columns, each "
            "declared between(0, 'auto')."
        )
    least = _bound(low, "lower")
    if not isinstance(least, Fraction) or least < 0:
        raise PolicyError(
            f"between({low!r}, 'auto'): the lower bound is a number of 0 or more. If values may be below 0, declare "
            "both bounds, or sum GREATEST(x, 0) and GREATEST(-x, 0) of two columns."
        )
    if nullable is not True:
        raise PolicyError(f"between({low!r}, 'auto', nullable={nullable!r}): without bounds a NULL has no midpoint.")
    return UpTo(least)


@named
def edges(*ends: object, nullable: bool = True) -> Edges:
    """Declare a numeric column's bounds, and the edges of the groups that GROUP BY on it has.

    ends: at least two numbers in increasing order. Values outside the first and the last are clamped when they are
    aggregated, and dropped when they are grouped.

    Raises PolicyError for fewer than two edges, for edges out of order (as doubles), or that are not numbers.

    >>> edges(0, 18, 65, 120).labels()
    ('[0, 18)', '[18, 65)', '[65, 120]')
    """
    bounds = tuple(_bound(end, "an") for end in ends)
    numbers = tuple(e for e in bounds if isinstance(e, Fraction))
    if len(numbers) < len(bounds) or len(numbers) < 2:
        raise PolicyError(f"edges{ends!r}: give at least two numbers, as in hb.edges(0, 18, 65, 120).")
    if any(float(a) >= float(b) for a, b in itertools.pairwise(numbers)):  # values are doubles, and so are labels
        raise PolicyError(f"edges{ends!r}: the edges must increase.")
    return Edges(numbers, _choice("edges", "nullable", nullable))


@named
def text(*, trim: bool = False) -> Text:
    """Declare a column of text whose values are not declared.

    trim: cut off blanks (Unicode's space separators) around each text as it is read, before anything looks at it.

    Raises PolicyError where trim is neither True nor False.

    >>> text(trim=True)
    text(trim=True)
    """
    return Text(_choice("text", "trim", trim))


def _choice(whose: str, name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"{whose}: {name}={what_was_given(value)}: expected True or False.")
    return value


@named
def one_of(*values: Scalar, other: str | None = None, others: bool = False, trim: bool = False) -> OneOf:
    """Declare all values of a column that an answer may name as a group, in the order of the answer.

    Any values, None included (then NULL is a group). Rows with another value are dropped from grouped answers; with
    `other`, a text, they form a last group of that name, for columns of text.

    A question that looks for a value which is not declared (`ward = 'cardiology'`) is refused before it costs anything:
    it is spelt wrongly, more often than not. others: such values occur, and may be asked for; they are not groups.
    `other` implies it.

    trim: cut off blanks (Unicode's space separators) around each text as it is read: " A" is "A".

    Raises PolicyError for no values, a value twice, NaN, values of mixed kinds, and with `trim` for values that are not
    text or begin or end with a blank.

    >>> one_of("A", "B", None)
    one_of('A', 'B', None)
    """
    so = partial(_so, "one_of", other=other, others=others, trim=trim)
    first: Any = values[0] if len(values) == 1 else None
    if isinstance(first, Iterable) and not isinstance(first, str | bytes):
        listed = so(first) if isinstance(first, list | tuple) and first else ()
        raise PolicyError(
            f"one_of takes the values themselves: one_of(*{type(first).__name__}), not one_of(...)."
            f"{_as_written(listed)}",
            remedy=listed,
        )
    if not values:
        raise PolicyError("one_of() needs at least one value: the groups an answer may name.")
    try:
        cleaned = tuple(_category(v) for v in values)
    except PolicyError as error:
        rest = [v for v in map(_of_python, values) if not isinstance(v, int | float) or _finite(v)]
        fewer = so(rest) if rest and len(rest) < len(values) else ()
        raise PolicyError(f"{error}{_as_written(fewer)}", remedy=fewer) from None
    families = {_family(v) for v in cleaned if v is not None}
    if len(families) > 1:
        raise PolicyError(f"one_of: values of mixed kinds ({', '.join(sorted(families))}); give values of one kind.")
    if len(set(cleaned)) < len(cleaned):
        twice = next(v for i, v in enumerate(cleaned) if v in cleaned[:i])
        once = so(dict.fromkeys(cleaned))
        raise PolicyError(
            f"one_of: the value {twice!r} stands twice; each group is named once.{_as_written(once)}", remedy=once
        )
    other = other if other is None else _category(other)  # type: ignore[assignment]
    if other is not None and (not isinstance(other, str) or families - {"text"} or other in cleaned):
        raise PolicyError(f"one_of: other={other!r}: expected a text beside texts, and not one of them.")
    domain = OneOf(cleaned, other, _choice("one_of", "others", others), _choice("one_of", "trim", trim))
    if trim and families - {"text"}:
        plain = _so("one_of", cleaned, other=other, others=others)
        raise PolicyError(
            f"one_of: trim=True is for texts; the values are of kind {', '.join(families)}.{_as_written(plain)}",
            remedy=plain,
        )
    never = [v for v in cleaned if isinstance(v, str) and v != v.strip(BLANKS)]
    if trim and never:
        cut = so(dict.fromkeys(v.strip(BLANKS) if isinstance(v, str) else v for v in cleaned))
        raise PolicyError(
            f"one_of: {never[0]!r} begins or ends with a blank, which trim=True cuts off: write "
            f"{never[0].strip(BLANKS)!r}.{_as_written(cut)}",
            remedy=cut,
        )
    return domain


def _category(value: object) -> Scalar:
    value = _of_python(value)
    if isinstance(value, int | float) and not _finite(value):
        raise PolicyError(f"one_of: {_read(value)} cannot be a group; NaN and infinities never match. Leave it out.")
    if isinstance(value, float) and value == 0:
        return 0.0
    if isinstance(value, dt.datetime):
        value = plain_moment(value)
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise PolicyError(f"one_of: {value!r} holds half a character, which no column of text does.") from None
    if value is None or isinstance(value, bool | int | float | str | dt.date):
        return value
    raise PolicyError(
        f"one_of: a value is {what_was_given(value)}; expected text, a number, a boolean, a date or None."
    )


def plain_moment(value: dt.datetime, zone: dt.tzinfo = dt.UTC) -> dt.datetime:
    """A time as columns hold it: in UTC, or in `zone`, without a zone of its own, of whole microseconds.

    Raises PolicyError for one that is not such a time: nanoseconds, NaT.
    """
    try:
        if getattr(value, "nanosecond", 0):
            raise ValueError
        moved = value.astimezone(zone).replace(tzinfo=None) if value.tzinfo is not None else value
        return dt.datetime(*moved.timetuple()[:6], moved.microsecond)
    except (ValueError, TypeError, OverflowError):
        raise PolicyError(
            f"{value!r} is not a time of whole microseconds in the years 1 to 9999, which is what can be declared."
        ) from None


def _family(value: Scalar) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "date"
