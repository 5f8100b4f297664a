"""Local times: a column of moments in UTC, read as the clocks of one zone show them.

A column declared with `tz` is a table of offsets in the question's own text: `CASE WHEN at < t1 THEN at + o0 WHEN at <
t2 THEN at + o1 ... END`, with t1, t2, ... the moments within its declared range at which the zone's clocks are set. So
no engine's zone data are used, all engines agree, and another edition of the zone data is another question. Beyond the
range the offset is that of its nearer end. The data are those of this machine (`zoneinfo`), when the question is asked.

In autumn an hour is shown twice, and both are one local hour; in spring one is missing, and is an empty group.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from hubbub.errors import QueryError
from hubbub.remedies import DeclareRange
from hubbub.tables.expressions import Call, Case, Column, Compare, Expression, Literal

__all__ = ["in_utc", "local"]


def in_utc(moment: dt.datetime, zone: str, *, last: bool) -> dt.datetime:
    """The moment at which the zone's clocks show a time; the last one (or first), where they show it twice."""
    known = moment.replace(tzinfo=ZoneInfo(zone), fold=int(last))
    try:
        return known.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:  # at the ends of the years 1 and 9999
        return moment


def local(column: Column, zone: str, first: dt.datetime, end: dt.datetime) -> Expression:
    """The column's moments as the zone's clocks show them, between two moments in UTC.

    Raises QueryError where clocks are set more often than a question's text can hold.
    """
    known = _offsets(zone, first, end)
    if known is None:
        remedy = DeclareRange(column.called, temporal=True)
        raise QueryError(
            f"clocks in {zone} are set more than {_MOST_OFTEN} times in the declared range of {column.called!r}, and a "
            f"question lists each time; declare a shorter one, with tz= if it has one: {remedy.in_python()}.",
            remedy=remedy,
        )
    set_at, offsets = known
    shown = tuple(Call("DATE_ADD", (Literal("SECOND"), Literal(seconds), column)) for seconds in offsets)
    if not set_at:
        return shown[0]
    return Case(tuple(Compare("<", column, Literal(moment)) for moment in set_at), shown[:-1], shown[-1])


@lru_cache(maxsize=256)
def _offsets(zone: str, first: dt.datetime, end: dt.datetime) -> tuple[tuple[dt.datetime, ...], tuple[int, ...]] | None:
    """When clocks are set, and the seconds that they are ahead of UTC before, between and after.

    None where they are set more often than a question's text can hold.
    """
    known = ZoneInfo(zone)

    def ahead(moment: dt.datetime) -> int:
        inside = min(max(moment, dt.datetime.min + 2 * _DAY), dt.datetime.max - 2 * _DAY)
        offset = inside.replace(tzinfo=dt.UTC).astimezone(known).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    set_at, offsets = list[dt.datetime](), [ahead(first)]
    here = last = min(max(first, _SET_FROM), end)
    while here < end and not (here > _BY_RULE and here - last > 400 * _DAY):
        beyond = here + min(_STEP, end - here)
        if ahead(beyond) != offsets[-1]:
            low, high = here, beyond
            while high - low > dt.timedelta(microseconds=1):
                middle = low + (high - low) / 2
                low, high = (middle, high) if ahead(middle) == offsets[-1] else (low, middle)
            set_at.append(high)
            offsets.append(ahead(beyond))
            last = beyond
        if len(set_at) > _MOST_OFTEN:
            return None
        here = beyond
    return tuple(set_at), tuple(offsets)


_DAY: Final = dt.timedelta(days=1)
_STEP: Final = 3 * _DAY
"""Clocks are not set and set back within three days. In Recife they were within seven: on 8 and 15 October 2000."""
_SET_FROM: Final = dt.datetime(1800, 1, 1)
"""No zone's clocks were set before."""
_BY_RULE: Final = dt.datetime(2150, 1, 1)
"""From here on clocks are set in each year, or never."""
_MOST_OFTEN: Final = 500
