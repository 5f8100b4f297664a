"""AT TIME ZONE, where it means one thing: of moments, as what the clocks of a zone show; of a constant, as a moment.

In SQL these words are two functions. Of a column with a zone they give the time that clocks show there; of one without
a zone they give the moment at which clocks show that time. The type of the column decides, which stands in its source
or its declaration (`tz=`), never in its rows. So `at AT TIME ZONE 'Europe/Rome'` is read where `at` holds moments, and
`at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Rome'` where it holds times without a zone, which are in UTC here. The other
way round each is refused, with the one that is meant.

What is shown is a CASE over the moments at which clocks are set (`hubbub.tables.zones`): the same on every engine,
without its zone data, row by row and total.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from sqlglot import exp

from hubbub.errors import PolicyError
from hubbub.remedies import DeclareRange, Rewrite
from hubbub.sql.text.locate import in_place, refuse
from hubbub.tables.columns import Between
from hubbub.tables.expressions import Column, Compare, CompareOp, Expression, Literal, children
from hubbub.tables.functions import EPOCH
from hubbub.tables.kinds import TEMPORAL, Kind
from hubbub.tables.spans import span
from hubbub.tables.zone_names import a_zone, zone_meant
from hubbub.tables.zones import local

if TYPE_CHECKING:
    from hubbub.sql.bind.expression import ExpressionReader

__all__ = [
    "NOW", "Moments", "by_moments", "cast_moment", "compared_with_moment", "in_utc", "moments_of", "no_offset",
    "of_one_clock", "only_here", "same_moment", "says_moment", "says_offset", "zoned", "zoned_call",
]  # fmt: skip

_HERE: Final = "UTC"
"""The clocks that times show unless something else is said."""
NOW: Final = "now"
"""The mark of a constant that is what now() or current_date said when the question was asked."""
_UTC: Final = frozenset({"UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "Zulu", "Universal"})
_CALLS: Final = frozenset({"TIMEZONE", "FROM_UTC_TIMESTAMP"})


@dataclass(frozen=True)
class Moments:
    """A column of times. shown: what questions see of it. first, last: its range in UTC, None where it is not known.

    zoned: whether it is of moments, by its source's type or by `tz=`; else of times without a zone, in UTC.
    clock: the zone whose clocks it shows. asked: that is so by AT TIME ZONE, so a question means these clocks.
    """

    column: Column
    name: str
    shown: Expression
    first: dt.datetime | None
    last: dt.datetime | None
    zoned: bool
    clock: str = _HERE
    asked: bool = False


def moments_of(column: Column, name: str, what: object, *, zoned: bool, hidden: bool) -> Moments:
    """What is known of a column of times. what: its declaration. hidden: it is seen in UTC in any case (a unit)."""
    ends = span(column, {column.name: what}) or (None, None) if isinstance(what, Between) else (None, None)
    first, last = (None if end is None else EPOCH + dt.timedelta(microseconds=int(end)) for end in ends)
    zone = what.tz if isinstance(what, Between) and not hidden else None
    if zone is None or first is None or last is None:
        return Moments(column, name, column, first, last, zoned)
    return Moments(column, name, local(column, zone, first, last), first, last, zoned=True, clock=zone)


def zoned_call(node: exp.Expr) -> exp.AtTimeZone | None:
    """TIMEZONE(zone, x), FROM_UTC_TIMESTAMP(x, zone), CONVERT_TIMEZONE(from, to, x), written as AT TIME ZONE."""
    match node:
        case exp.AtTimeZone():
            return node
        case exp.ConvertTimezone():
            source, target, moment = node.args.get("source_tz"), node.args["target_tz"], node.args["timestamp"]
            return _at(moment if source is None else _at(moment, source), target)
        case exp.Anonymous(this=str() as name) if name.upper() in _CALLS and len(node.expressions) == 2:
            first, second = node.expressions
            return (
                _at(second, first) if name.upper() == "TIMEZONE" else _at(_at(first, exp.Literal.string("UTC")), second)
            )
    return None


def _at(moment: exp.Expr, zone: exp.Expr) -> exp.AtTimeZone:
    return exp.AtTimeZone(this=moment, zone=zone)


def zoned(reader: ExpressionReader, node: exp.AtTimeZone, known: Mapping[str, Moments]) -> Expression:
    """What the clocks of a zone show.

    Raises QueryError where that is not what the words mean, or cannot be known before rows are read.
    """
    inner = _bare(node.this)
    zone, inner = _zone(reader, node), zoned_call(inner) or inner
    if _is_moment(inner) and not isinstance(inner, exp.AtTimeZone):
        return Literal(_instant(reader, inner).replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None))
    if isinstance(inner, exp.AtTimeZone):
        if _constant(inner.this):
            moment = _instant(reader, inner)
            return Literal(moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None))
        source, column = _zone(reader, inner), _moments(reader, reader.read(inner.this), inner.this, known)
        if column.zoned:
            raise reader.refuse(
                f"{column.name!r} holds moments, so AT TIME ZONE twice would set its clocks back; write it once: "
                f"{column.name} AT TIME ZONE '{zone}'.",
                node,
                remedy=Rewrite(f"{column.name} AT TIME ZONE '{zone}'"),
            )
        if source not in _UTC:
            raise reader.refuse(
                f"{column.name!r} holds times without a zone, which are in UTC here; write {column.name} AT TIME ZONE "
                f"'UTC' AT TIME ZONE '{zone}'.",
                inner,
                remedy=Rewrite(f"{column.name} AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'"),
            )
        return _shown(reader, column, zone, node)
    if _constant(inner):
        raise reader.refuse(
            "a constant AT TIME ZONE is a moment; compare a column with it, or write the time itself in UTC: "
            "TIMESTAMP '2024-07-01 00:00:00'.",
            node,
            remedy=Rewrite("TIMESTAMP '2024-07-01 00:00:00'"),
        )
    column = _moments(reader, reader.read(inner), inner, known)
    if not column.zoned:
        raise reader.refuse(
            f"{column.name!r} holds times without a zone, in UTC; of these AT TIME ZONE means the moment that clocks "
            f"show so. For what clocks show at a moment write {column.name} AT TIME ZONE 'UTC' AT TIME ZONE '{zone}', "
            f'or declare the column with its zone: hb.between("2022-01-01", "2024-12-31", tz="{zone}").',
            node,
            remedy=Rewrite(f"{column.name} AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'"),
        )
    return _shown(reader, column, zone, node)


def _shown(reader: ExpressionReader, column: Moments, zone: str, node: exp.Expr) -> Expression:
    if column.first is None or column.last is None:
        remedy = DeclareRange(column.name, temporal=True)
        raise refuse(
            "when clocks are set differs from year to year, so AT TIME ZONE needs the range of the column: "
            f"{remedy.in_python()}.",
            reader.text,
            node,
            remedy=remedy,
        )
    shown = local(column.column, zone, column.first, column.last)
    asked = replace(column, shown=shown, clock=zone, asked=True)
    reader.moments.setdefault(f"{column.column.name} AT {zone}", asked)
    return shown


def _moments(reader: ExpressionReader, read: Expression, node: exp.Expr, known: Mapping[str, Moments]) -> Moments:
    """The column of times that a piece of SQL is, which was read."""
    moments = _moments_of(read, known)
    if moments is not None:
        return moments
    if read.kind not in TEMPORAL:
        raise reader.refuse("AT TIME ZONE takes a column of times.", node)
    raise reader.refuse(
        "AT TIME ZONE takes a column of a table, before anything is computed of it; write it inside: DATE_TRUNC('day', "
        "at AT TIME ZONE 'Europe/Rome'), MIN(at AT TIME ZONE 'Europe/Rome').",
        node,
        remedy=Rewrite("DATE_TRUNC('day', at AT TIME ZONE 'Europe/Rome')"),
    )


def _moments_of(read: Expression, known: Mapping[str, Moments]) -> Moments | None:
    return next((moments for moments in known.values() if read == moments.shown and not moments.asked), None)


def _zone(reader: ExpressionReader, node: exp.AtTimeZone) -> str:
    zone = node.args.get("zone")
    if not (isinstance(zone, exp.Literal) and zone.is_string):
        raise reader.refuse(
            "AT TIME ZONE takes a constant, such as 'Europe/Rome'.", zone or node, remedy=Rewrite("'Europe/Rome'")
        )
    try:
        return a_zone(str(zone.this))
    except PolicyError:
        near = zone_meant(str(zone.this))
        way = Rewrite("'Europe/Rome'") if near is None else in_place(f"'{near}'", reader.text, zone)
        raise reader.refuse(
            f"no zone {str(zone.this)[:60]!r} is known here; write it as {way.example} or 'UTC'.", zone, remedy=way
        ) from None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _constant(node: exp.Expr) -> bool:
    node = _bare(node)
    if isinstance(node, exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal)


# -- constants: a moment, which is compared with columns ------------------------------------------------------


def _is_moment(node: exp.Expr) -> bool:
    """Whether a constant says a moment and no time of a clock: AT TIME ZONE once, TIMESTAMPTZ '...', now(), or a time
    before or after one of these.
    """
    node = _bare(node)
    if isinstance(node, exp.Add | exp.Sub):
        return _is_moment(node.this) and isinstance(node.expression, exp.Interval)
    if isinstance(node, exp.AtTimeZone):
        return _constant(node.this) and not _is_moment(node.this)
    if not isinstance(node, exp.Cast) or not _constant(node):
        return False
    kind = node.args["to"].this
    return kind is exp.DType.TIMESTAMPTZ or (kind is exp.DType.TIMESTAMP and _of_now(node))


def says_moment(reader: ExpressionReader, node: exp.Expr) -> bool:
    """Whether a constant says a moment, where that is not the same as what clocks show."""
    if not _is_moment(node):
        return False
    bare = _bare(node)
    while isinstance(bare, exp.Add | exp.Sub):
        bare = _bare(bare.this)
    return not (_of_now(bare) and only_here(reader))


def _of_now(node: exp.Expr) -> bool:
    """Whether a constant is what now() or current_date said when the question was asked."""
    return bool(node.meta.get(NOW))


def cast_moment(reader: ExpressionReader, node: exp.Expr, target: str | None) -> Expression | None:
    """A cast whose constant says a moment, where it is the time of UTC's clocks; None for any other cast. target: to
    what it is cast, as the functions name it.

    Raises QueryError where other clocks are shown as well, or a time without a zone says how far from UTC it is.
    """
    if only_here(reader) and says_moment(reader, node):
        return _moment_of(reader, node)
    if _of_now(node) and not only_here(reader):
        way = Rewrite(
            "CAST(now() AT TIME ZONE 'Europe/Rome' AS DATE)"
            if target == "CAST_DATE"
            else "now() AT TIME ZONE 'Europe/Rome'"
        )
        raise reader.refuse(
            f"here columns show the clocks of a zone; say by which now() is read: {way.example}.", node, remedy=way
        )
    if target == "CAST_TIMESTAMP" and _constant(node):
        no_offset(reader, str(node.this.this), node)
    return None


def no_offset(reader: ExpressionReader, text: str, node: exp.Expr) -> None:
    """Refuse a time that says how far from UTC it is where what a clock shows is meant. Raises QueryError."""
    if says_offset(text):
        way = Rewrite(f"TIMESTAMPTZ '{text[:40]}'")
        raise reader.refuse(
            f"{text[:40]!r} is a moment, and here the time of a clock is meant; compare a column of times with "
            f"{way.example}.",
            node,
            remedy=way,
        )


def in_utc(reader: ExpressionReader, read: Expression) -> Expression:
    """A column of moments by its moments; anything else as it is."""
    moments = _moments_of(read, reader.moments)
    return read if moments is None else moments.column


def says_offset(value: object) -> bool:
    """Whether a text is a time that says how far from UTC it is.

    >>> says_offset("2024-07-01 00:00:00+02"), says_offset("2024-07-01 00:00:00"), says_offset("a+02")
    (True, False, False)
    """
    if not isinstance(value, str) or len(value) <= len("2024-07-01"):
        return False
    try:
        return dt.datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _moment_of(reader: ExpressionReader, node: exp.Expr) -> Expression:
    """A constant that says a moment, in UTC."""
    bare = _bare(node)
    if isinstance(bare, exp.Add | exp.Sub):
        return replace(reader, moments={}).read(bare)
    return Literal(_instant(reader, bare))


def _with_offset(reader: ExpressionReader, text: str, node: exp.Expr) -> dt.datetime:
    """The moment of a time that says how far from UTC it is, in UTC. Raises QueryError for a text that is none."""
    try:
        moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise reader.refuse(
                "a TIMESTAMPTZ says how far from UTC it is: '2024-07-01 00:00:00+02'.",
                node,
                remedy=Rewrite("'2024-07-01 00:00:00+02'"),
            )
        return moment.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise reader.refuse(
            f"{text[:60]!r} is not a time such as '2024-07-01 00:00:00+02', in the years 1 to 9999 of UTC.",
            node,
            remedy=Rewrite("'2024-07-01 00:00:00+02'"),
        ) from None


def by_moments(
    reader: ExpressionReader, left: Expression, right: Expression, node: exp.Expr
) -> tuple[Expression, Expression] | None:
    """The two sides of a comparison by moments: a column beside a text that says how far from UTC it is, or two columns
    that show other clocks; None for any others.
    """
    one, other = (_moments_of(side, reader.moments) for side in (left, right))
    if one is not None and other is not None:
        return None if one.clock == other.clock else (one.column, other.column)
    if one is not None and isinstance(right, Literal) and says_offset(right.value):
        return one.column, Literal(_with_offset(reader, str(right.value), node))
    if other is not None and isinstance(left, Literal) and says_offset(left.value):
        return Literal(_with_offset(reader, str(left.value), node)), other.column
    return None


def same_moment(reader: ExpressionReader, read: Expression, item: exp.Expr, node: exp.Expr) -> Expression:
    """Whether what stands before IN is the moment that an item of it says. node: where it stands."""
    return Compare("=", _in_utc(reader, read, node, reader.moments), _moment_of(reader, item))


def only_here(reader: ExpressionReader) -> bool:
    """Whether no column that a question sees shows other clocks than UTC's."""
    return all(moments.clock == _HERE for moments in reader.moments.values() if not moments.asked)


def of_one_clock(reader: ExpressionReader, node: exp.Expr, *sides: Expression) -> None:
    """Refuse times of several zones' clocks beside each other: an hour here is another hour there.

    Raises QueryError.
    """
    if only_here(reader):
        return
    clocks = {clock: name for side in sides for clock, name in _clocks(side, reader.moments).items()}
    if len(clocks) > 1:
        (one, name), (other, its) = sorted(clocks.items(), key=lambda item: item[0] == _HERE)[:2]
        raise reader.refuse(
            f"{name!r} shows clocks of {one}, and {its!r} those of {other}: their hours cannot be taken together. "
            f"Write {its} AT TIME ZONE '{one}' where it holds moments, or declare both with one zone (`tz=`).",
            node,
            remedy=Rewrite(f"{its} AT TIME ZONE '{one}'"),
        )


def _clocks(side: Expression, known: Mapping[str, Moments]) -> dict[str, str]:
    """The zones whose clocks an expression of times shows, each with a column that does."""
    if side.kind is not Kind.TIMESTAMP:
        return {}
    for moments in known.values():
        if side == moments.shown:
            return {moments.clock: moments.name}
    return {clock: name for child in children(side) for clock, name in _clocks(child, known).items()}


def _instant(reader: ExpressionReader, node: exp.Expr) -> dt.datetime:
    """The moment that a constant says, in UTC."""
    node = _bare(node)
    if isinstance(node, exp.Add | exp.Sub):
        raise reader.refuse(
            "say first which clocks show it: now() AT TIME ZONE 'Europe/Rome' - INTERVAL 1 DAY.",
            node,
            remedy=Rewrite("now() AT TIME ZONE 'Europe/Rome' - INTERVAL 1 DAY"),
        )
    if _of_now(node):
        return dt.datetime.fromisoformat(str(node.this.this))
    if not isinstance(node, exp.AtTimeZone):
        return _with_offset(reader, str(node.this.this), node)
    zone = ZoneInfo(_zone(reader, node))
    written = _bare(node.this)
    read = reader.read(
        exp.cast(written.copy(), "TIMESTAMP") if isinstance(written, exp.Literal) and written.is_string else written
    )
    shown = read.value if isinstance(read, Literal) else None
    if isinstance(shown, dt.date) and not isinstance(shown, dt.datetime):
        shown = dt.datetime(shown.year, shown.month, shown.day)
    if not isinstance(shown, dt.datetime):
        raise reader.refuse(
            "AT TIME ZONE takes a time such as TIMESTAMP '2024-07-01 00:00:00'.",
            node,
            remedy=Rewrite("TIMESTAMP '2024-07-01 00:00:00'"),
        )
    try:
        early, late = (shown.replace(tzinfo=zone, fold=fold).astimezone(dt.UTC).replace(tzinfo=None) for fold in (0, 1))
    except OverflowError:
        raise reader.refuse("this time lies beyond the years 1 to 9999.", node) from None
    if early != late:
        often = "twice" if early < late else "never"
        raise reader.refuse(
            f"clocks in {zone.key} show {shown} {often}; write the moment: TIMESTAMPTZ '{early}+00'.",
            node,
            remedy=Rewrite(f"TIMESTAMPTZ '{early}+00'"),
        )
    return early


def compared_with_moment(
    reader: ExpressionReader, op: CompareOp, left: exp.Expr, right: exp.Expr, known: Mapping[str, Moments]
) -> Expression:
    """A column against a moment: by moments, whatever clocks show. One of the two sides is a moment."""
    if _is_moment(left) and _is_moment(right):
        return Compare(op, _moment_of(reader, left), _moment_of(reader, right))
    if _is_moment(left):
        return Compare(op, _moment_of(reader, left), _column_in_utc(reader, right, known))
    return Compare(op, _column_in_utc(reader, left, known), _moment_of(reader, right))


def _column_in_utc(reader: ExpressionReader, node: exp.Expr, known: Mapping[str, Moments]) -> Expression:
    if _constant(node):
        raise reader.refuse("a moment is compared with a column of times, or with another moment.", node)
    return _in_utc(reader, reader.read(node), node, known)


def _in_utc(reader: ExpressionReader, read: Expression, node: exp.Expr, known: Mapping[str, Moments]) -> Expression:
    if not only_here(reader) and _moments_of(read, known) is None:
        raise reader.refuse(
            "a moment is compared with a column of times, before anything is computed of it; or say which clocks show "
            "it: now() AT TIME ZONE 'Europe/Rome'.",
            node,
            remedy=Rewrite("now() AT TIME ZONE 'Europe/Rome'"),
        )
    column = _moments(reader, read, node, known).column
    if column.kind is not Kind.TIMESTAMP:
        raise reader.refuse("a moment is compared with a column of times.", node)
    return column
