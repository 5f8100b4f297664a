"""The cells of an answer as text: a value with its error, or for a quantile with the ends of its interval.

A cell whose error is a large part of it begins with ~. The interval of a quantile is seldom as wide above as below, and
where little is known it is the whole declared range: it is written as its two ends, and says so. And the names of what
is written beside them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hubbub.tables.columns import Scalar
from hubbub.tables.functions import DAY

__all__ = ["free_name", "label", "number", "unreliable", "with_ends", "with_reach"]

_EPOCH = dt.datetime(1970, 1, 1)


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name that no other one has: with a further `_` where one does."""
    while name in taken:
        name += "_"
    return name


def unreliable(value: Scalar, reach: float, reliable: float) -> bool:
    """Whether an error is more than this part of a value; of dates and times, which have no zero, never."""
    measured = isinstance(value, int | float) and not isinstance(value, bool)
    return measured and not reach <= reliable * abs(float(value))  # type: ignore[arg-type]


def label(value: Scalar) -> str:
    """A value without an error."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else str(value)


def with_reach(value: Scalar, reach: float) -> str:
    """A value and the half-width of its interval: of dates in days, of times in seconds."""
    if value is None:
        return "NULL"
    if isinstance(value, dt.date | dt.timedelta):
        is_day = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        return f"{label(value)} ± {'?' if math.isnan(reach) else _days(reach) if is_day else _duration(reach)}"
    if math.isnan(reach):
        return f"{number(value, 0.0)} ± ?"
    return f"{number(value, reach)} ± {number(reach, reach)}"


def with_ends(value: Scalar, ends: Sequence[float], whole: Sequence[float], kind: pa.DataType) -> str:
    """A quantile with the ends of its interval, and whether they are those of the whole range it lies in.

    ends, whole: of dates in days, of times in microseconds since 1970-01-01.
    """
    if value is None or any(map(math.isnan, ends)):
        return label(value)
    shown = [_end(end, ends[1] - ends[0], kind) for end in ends]
    everything = ", the whole range" if ends[0] <= whole[0] and ends[1] >= whole[1] else ""
    middle = label(value) if pa.types.is_temporal(kind) else number(value, ends[1] - ends[0])
    return f"{middle} ({'..'.join(shown)}{everything})"


def _end(end: float, width: float, kind: pa.DataType) -> str:
    if not pa.types.is_temporal(kind):
        return number(end, width)
    moment = _EPOCH + dt.timedelta(microseconds=round(end * DAY if pa.types.is_date(kind) else end))
    return str(moment.date()) if pa.types.is_date(kind) else moment.isoformat(sep=" ")


def _days(days: float) -> str:
    return f"{math.ceil(days):,} day{'s' * (math.ceil(days) != 1)}"


def _duration(seconds: float) -> str:
    """A length of time in the largest unit of which it has two."""
    per, unit = next(((n, u) for n, u in ((86400, "days"), (3600, "h"), (60, "min")) if seconds >= 2 * n), (1, "s"))
    return f"{seconds / per:,.3g} {unit}" if seconds < 1000 * per else f"{seconds / per:,.0f} {unit}"


def number(value: Any, reach: float) -> str:
    """A number with as many decimals as its error makes sense of."""
    if isinstance(value, int):
        return f"{value:,}"
    if not reach > 0:
        return f"{value:,.6g}"
    decimals = 0
    while decimals < 9 and 0 < reach * 10**decimals < 10:
        decimals += 1
    return f"{value:,.{decimals}f}"
