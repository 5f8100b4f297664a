"""Values of a program as values of a column: each from itself alone, NULL where it does not fit."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hubbub.tables.kinds import Kind

__all__ = ["OBJECTS", "fitted", "rows_as_table"]

_LONGEST: Final = 1 << 29
"""Bytes of a text in UTF-8, at most: one of 2 GiB does not fit an Arrow column, and refuses all rows beside it. It is
what a line of a CSV may have."""


def fitted(value: Any, fit: Callable[[Any], Any]) -> Any:
    """What becomes of an object; NULL where it does not let itself be looked at: whatever its code raises."""
    with contextlib.suppress(Exception):
        return fit(_of_numpy(value) if type(value).__module__ == "numpy" else value)
    return None


def _of_numpy(value: Any) -> Any:
    """A value of numpy's own as Python's that says the same; of nanoseconds there is none."""
    made = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, np.datetime64 | np.timedelta64) and isinstance(made, int) else made


def rows_as_table(rows: Sequence[Sequence[Any]], schema: pa.Schema, fits: Sequence[Callable[[Any], Any]]) -> pa.Table:
    """Rows of objects as a table; a row that is shorter has NULL at its end."""
    columns = []
    for i, (kind, fit) in enumerate(zip(schema.types, fits, strict=True)):
        values = [fitted(row[i], fit) if i < len(row) else None for row in rows]
        columns.append(pa.array(values, kind))
    return pa.table(columns, schema=schema)


# Of a subclass its value as it is stored: what it says of itself, how it compares, is its own code.


def _fit_integer(value: Any) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    plain = int.__index__(value)
    return plain if -(2**63) <= plain < 2**63 else None


def _fit_number(value: Any) -> float | None:
    if isinstance(value, Decimal):
        return Decimal.__float__(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        return float.__float__(value)
    plain = int.__index__(value)
    try:
        return float(plain)
    except OverflowError:
        return float("inf") if plain > 0 else float("-inf")


def _fit_text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    plain = str.__str__(value)
    length = len(plain.encode())  # raises where it is no UTF-8
    return plain if length <= _LONGEST else None


def _fit_date(value: Any) -> dt.date | None:
    return value if type(value) is dt.date else None


def _fit_moment(value: Any) -> dt.datetime | None:
    if not isinstance(value, dt.datetime):
        return None
    if getattr(value, "nanosecond", 0):  # pandas' moments: two of one microsecond would be one
        return None
    plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return dt.datetime(*plain.timetuple()[:6], plain.microsecond)


OBJECTS: Final[Mapping[Kind | None, tuple[pa.DataType, Callable[[Any], Any]]]] = {
    Kind.INTEGER: (pa.int64(), _fit_integer),
    Kind.NUMBER: (pa.float64(), _fit_number),
    # As entries of a dictionary: one long text of a person would be written out for each row that has it.
    Kind.TEXT: (pa.dictionary(pa.int32(), pa.large_string()), _fit_text),
    Kind.BOOLEAN: (pa.bool_(), lambda value: value if isinstance(value, bool) else None),
    Kind.DATE: (pa.date32(), _fit_date),
    Kind.TIMESTAMP: (pa.timestamp("us"), _fit_moment),
}
"""For a column of objects with a declared kind: its Arrow type, and what becomes of each object."""
