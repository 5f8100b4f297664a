"""Columns of Arrow on whose values no engine fails, of types that DuckDB takes; a row's value from that row alone.

Nobody has checked what a frame holds: texts that are not UTF-8, decimals of more digits than their type, places beyond
a dictionary. Such a value is NULL, and no other changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hubbub.engines.duckdb.utf8 import as_utf8, utf8_texts
from hubbub.late import late

__all__ = ["UNUSABLE", "coded_type", "placed", "safe_schema", "safe_table", "with_zone"]

pc = late("pyarrow.compute")

_DAY: Final = 86_400_000  # milliseconds
UNUSABLE: Final = pa.list_(pa.null())
"""The type of a column that no question can use; it is left without values."""


def safe_schema(schema: pa.Schema) -> pa.Schema:
    """The types that `safe_table` gives; decided by the types alone."""
    return pa.schema([(field.name, _type_after(_safe_column, field, UNUSABLE)) for field in schema])


def with_zone(schema: pa.Schema) -> frozenset[str]:
    """The columns of times with a zone, by the types alone."""
    kinds = [(field.name, _type_after(_unwrapped, field, field.type)) for field in schema]
    return frozenset(n for n, kind in kinds if pa.types.is_timestamp(kind) and kind.tz is not None)


def _type_after(
    change: Callable[[pa.ChunkedArray], pa.ChunkedArray], field: pa.Field, otherwise: pa.DataType
) -> pa.DataType:
    """The type of a column once it is changed; otherwise: where that cannot be, whatever the values."""
    try:
        return change(pa.schema([field]).empty_table().column(0)).type
    except pa.ArrowNotImplementedError:
        return otherwise


def safe_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table on whose values no engine fails: texts are UTF-8 or NULL, times are in UTC, and nothing is left of types
    that DuckDB does not take. schema: what `safe_schema` gives for the table's.
    """
    columns = [
        pa.nulls(len(column), UNUSABLE) if kind == UNUSABLE else _safe_column(column)
        for column, kind in zip(table.columns, schema.types, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _safe_column(column: Any) -> Any:
    column = _unwrapped(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column
    if not _taken(kind):
        return pa.nulls(len(column), UNUSABLE)
    if pa.types.is_timestamp(kind):
        # The instants as they are, in UTC; which of them a question can use, the engine's expression decides.
        return column.cast(pa.timestamp(kind.unit))
    if pa.types.is_date64(kind):
        return _days(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return utf8_texts(column)
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal(kind):
        return _within_digits(column)
    return column


def _within_digits(column: Any) -> Any:
    """Decimals, NULL where one has more digits than its type: a frame may hold it, and nobody has checked. DuckDB cuts
    it to its own width, where two people would be one, or ends a question with an error.
    """
    with contextlib.suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return column
    kind, stored = column.type, column
    ends: list[Any] = [Decimal((sign, (9,) * kind.precision, -kind.scale)) for sign in (1, 0)]
    if kind.bit_width < 128:  # as the whole numbers that they are: Arrow compares none of these widths
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        stored = pa.chunked_array([chunk.view(whole) for chunk in column.chunks], whole)
        ends = [1 - 10**kind.precision, 10**kind.precision - 1]
    least, most = (pa.scalar(end, stored.type) for end in ends)
    fits = pc.and_(pc.greater_equal(stored, least), pc.less_equal(stored, most))
    kept = pc.if_else(fits, stored, pa.scalar(None, stored.type))
    return pa.chunked_array([chunk.view(kind) for chunk in kept.chunks], kind)


def _days(column: Any) -> Any:
    """Days of milliseconds, each of which is one of 32 bits or NULL: DuckDB cuts what is beyond a day off, and what is
    beyond 32 bits, and two people would be one.
    """
    stored = column.cast(pa.int64())
    days = pc.divide(stored, _DAY)
    least, most = -(2**31), 2**31 - 1
    within = pc.and_(pc.greater_equal(days, least), pc.less_equal(days, most))
    fits = pc.and_(within, pc.equal(pc.multiply(pc.if_else(within, days, 0), _DAY), stored))
    return pc.if_else(fits, days, pa.scalar(None, pa.int64())).cast(pa.int32()).cast(pa.date32())


def _unwrapped(column: Any) -> Any:
    """The values of a column, however they are coded: dictionaries (pandas and polars categories), runs, extensions.
    Texts and bytes that were coded are a dictionary of their values then (`placed`).
    """
    while True:
        kind = column.type
        if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.UuidType | pa.Bool8Type):
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        elif pa.types.is_run_end_encoded(kind):
            column = _of_parts([_runs(chunk) for chunk in column.chunks], kind.value_type)
        elif pa.types.is_dictionary(kind):
            column = _of_parts([placed(chunk.indices, chunk.dictionary) for chunk in column.chunks], kind.value_type)
        else:
            return column
        if pa.types.is_dictionary(column.type) and column.type == coded_type(column.type.value_type):
            return column


def _of_parts(parts: list[list[Any]], kind: pa.DataType) -> Any:
    return pa.chunked_array([chunk for part in parts for chunk in part], coded_type(kind))


def coded_type(kind: pa.DataType) -> pa.DataType:
    """The type that `placed` gives values of a type."""
    plain = listed(_none_of(kind)).type
    return pa.dictionary(pa.int32(), plain) if _long(plain) else plain


def _long(kind: pa.DataType) -> bool:
    """Whether one value may take any memory."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


_ROWS: Final = 1 << 17
"""DuckDB reads a dictionary once for so many rows: one of more entries than rows is made one of those that they have.
"""


def placed(places: Any, values: Any) -> list[Any]:
    """The values at places, NULL at one that is none, in chunks. Texts and bytes stay entries of a dictionary: one long
    text of a person would be written out for each row that has it.
    """
    values = listed(values)
    if not _long(values.type):
        return [standing_at(places, values)]
    if pa.types.is_large_string(values.type):
        values = listed(utf8_texts(values))
    numbers = standing_at(places, pa.array(np.arange(len(values), dtype=np.int32)))
    return [_fewest(numbers[at : at + _ROWS], values) for at in range(0, len(numbers), _ROWS)]


def _fewest(numbers: Any, values: Any) -> Any:
    if len(values) > len(numbers):
        used = numbers.unique().drop_null()
        numbers, values = pc.index_in(numbers, value_set=used), values.take(used)
    return pa.DictionaryArray.from_arrays(numbers, values)


def standing_at(places: Any, values: Any) -> Any:
    """The values at places, NULL at one that is none: of a frame nobody has checked them."""
    with contextlib.suppress(pa.ArrowIndexError):
        return values.take(places)
    whole = places.cast(pa.int64(), safe=False)  # below 0 where 64 bits do not hold it
    known = pc.and_(pc.greater_equal(whole, 0), pc.less(whole, len(values)))
    return values.take(pc.if_else(known, whole, pa.scalar(None, pa.int64())))


def _runs(chunk: Any) -> list[Any]:
    """The values of runs, each as often as it stands there.

    pyarrow's own decoding writes beyond what it has of short places, and fails for all rows at one value that is not
    of its type, as no dictionary does.
    """
    rows = np.arange(chunk.offset, chunk.offset + len(chunk))
    runs = np.searchsorted(chunk.run_ends.to_numpy(), rows, side="right")
    return placed(pa.array(runs), chunk.values)


def _none_of(kind: pa.DataType) -> Any:
    return pa.schema([("x", kind)]).empty_table().column(0).combine_chunks()


def listed(values: Any) -> Any:
    """The values of a dictionary, out of views: polars has them, and Arrow takes nothing from them.

    Written out, a few long texts may be beyond the 2 GiB that a plain column of texts or bytes holds.
    """
    if pa.types.is_string(values.type):
        values = values.cast(pa.large_string())
    elif pa.types.is_binary(values.type):
        values = values.cast(pa.large_binary())
    elif pa.types.is_string_view(values.type):
        values = as_utf8(values.cast(pa.binary_view()).cast(pa.large_binary()))
    elif pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _taken(kind: pa.DataType) -> bool:
    """Whether DuckDB takes the type; a column of texts, numbers or moments."""
    plain = pa.types.is_primitive(kind) or pa.types.is_null(kind) or pa.types.is_boolean(kind)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    blobs = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    if isinstance(kind, pa.UuidType | pa.Bool8Type) or any(test(kind) for test in (*texts, *blobs)):
        return True
    if pa.types.is_decimal(kind):
        return not pa.types.is_decimal256(kind) and 0 <= kind.scale <= kind.precision
    return plain and not pa.types.is_interval(kind)
