"""Values of an answer that Python, Arrow and a terminal can all show; what they cannot is NULL.

A date lies in the years 1 to 9999 (an infinite one does not), an instant with a zone a day further in, so that it has a
date in every zone; a time of day is before 24:00; times are kept to the microsecond. The rule is the one that private
columns follow (`hubbub.engines.fields`), so that no answer depends on who reads it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from hubbub.late import late

__all__ = ["shown"]

pc = late("pyarrow.compute")

_DAY = 86_400_000_000
_FIRST_DATE, _LAST_DATE = (d.toordinal() - dt.date(1970, 1, 1).toordinal() for d in (dt.date.min, dt.date.max))
_FIRST, _LAST = _FIRST_DATE * _DAY, (_LAST_DATE + 1) * _DAY - 1


def shown(table: pa.Table) -> pa.Table:
    """A table with NULL in place of what cannot be shown.

    >>> far = pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())
    >>> shown(pa.table({"day": far}))["day"].to_pylist()
    [datetime.date(1970, 1, 1), None]
    """
    for i, field in enumerate(table.schema):
        if _may_not_show(field.type):
            table = table.set_column(i, field.name, _column(table.column(i)))
    return table


def _may_not_show(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_may_not_show(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind))


def _column(column: Any) -> Any:
    kind = column.type
    if pa.types.is_nested(kind):
        return pa.chunked_array([pa.array([_value(v) for v in column], kind)])
    if pa.types.is_timestamp(kind):
        margin = 0 if kind.tz is None else _DAY
        return _within(
            column.cast(pa.timestamp("us", kind.tz), safe=False), pa.int64(), _FIRST + margin, _LAST - margin
        )
    if pa.types.is_time(kind):
        return _within(column.cast(pa.time64("us"), safe=False), pa.int64(), 0, _DAY - 1)
    return _within(column.cast(pa.date32()), pa.int32(), _FIRST_DATE, _LAST_DATE)


def _within(column: Any, whole: pa.DataType, low: int, high: int) -> Any:
    steps = column.cast(whole)
    fits = pc.and_(pc.greater_equal(steps, low), pc.less_equal(steps, high))
    return pc.if_else(fits, column, pa.scalar(None, column.type))


def _value(value: Any) -> Any:
    """A list or a structure as Python has it; NULL where it holds a time that Python has not."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return None
