"""Columns of pandas as columns of Arrow, of a type that follows from the dtype and the declaration alone.

A value that does not fit is NULL, and makes no other so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from hubbub.engines.duckdb.arrow_columns import UNUSABLE, coded_type, placed
from hubbub.engines.duckdb.fitted import OBJECTS, fitted
from hubbub.plain import quick
from hubbub.tables.kinds import Kind

__all__ = ["of_objects", "pandas_type", "read_pandas"]


def pandas_type(column: Any, declared: Kind | None) -> pa.DataType:
    """The Arrow type of a pandas column, from its dtype and the declaration; `column` has no rows."""
    dtype = str(column.dtype)
    if dtype == "object":
        return OBJECTS.get(declared, (UNUSABLE, None))[0] if declared else UNUSABLE
    if _made_float(dtype) and declared is Kind.INTEGER:
        return pa.int64()
    try:
        if dtype == "category":
            dtype = str(column.cat.categories.dtype)
            texts = dtype in ("object", "str") or dtype.startswith("string")
            return coded_type(pa.string() if texts else pa.array(column.cat.categories[:0], from_pandas=True).type)
        return pa.array(column, from_pandas=True).type
    except (pa.ArrowException, TypeError, ValueError):  # values of several kinds, or of one that Arrow does not have
        return UNUSABLE


def read_pandas(frame: Any, schema: pa.Schema) -> pa.Table:
    return pa.table([_read_series(frame.iloc[:, i], kind) for i, kind in enumerate(schema.types)], names=schema.names)


def _read_series(series: Any, wanted: pa.DataType) -> Any:
    """A pandas column as one of an Arrow type. Of categories each is read once, as a column of them would be: pyarrow
    makes objects of those that are moments, and one that has none is NULL, or an error, for all rows.
    """
    if wanted == UNUSABLE:
        return pa.nulls(len(series), UNUSABLE)
    if _made_float(str(series.dtype)) and wanted == pa.int64():
        return _whole(series)
    if str(series.dtype) == "category" and not of_objects(series):
        coded = pa.types.is_dictionary(wanted)
        known = _read_series(series.cat.categories.to_series(), wanted.value_type if coded else wanted)
        return pa.chunked_array(placed(pa.array(series.cat.codes.to_numpy()), known), wanted)
    if of_objects(series):
        fit = next((fit for kind, fit in OBJECTS.values() if kind == wanted), lambda _: None)
        return pa.array(_each_fitted(series, fit), wanted)
    return pa.chunked_array(_as_pyarrow_has_it(series, wanted), wanted)


def _as_pyarrow_has_it(series: Any, wanted: pa.DataType) -> list[Any]:
    """What pyarrow makes of a column, in chunks: NULL for a row that it does not take alone, so that no row decides
    about another's. Such are texts that are not UTF-8; and pandas lets anybody write a type of columns.
    """
    if quick("pandas") or len(series) < 2:
        with contextlib.suppress(Exception):
            made = pa.array(series, wanted, from_pandas=True)
            parts = made.chunks if isinstance(made, pa.ChunkedArray) else [made]
            # Of an extension's type pyarrow returns what is stored.
            return [p if p.type == wanted else pa.ExtensionArray.from_storage(wanted, p) for p in parts]
    if len(series) < 2:
        return [pa.nulls(len(series), wanted)]
    half = len(series) // 2
    return [*_as_pyarrow_has_it(series.iloc[:half], wanted), *_as_pyarrow_has_it(series.iloc[half:], wanted)]


def of_objects(series: Any) -> bool:
    """Whether a column is of objects, or of categories that are: these are somebody else's code. pyarrow takes some of
    them, such as bytes, in a column where it takes all, and none where one person's is another.
    """
    dtype = series.cat.categories.dtype if str(series.dtype) == "category" else series.dtype
    return str(dtype) == "object"


def _each_fitted(series: Any, fit: Callable[[Any], Any]) -> list[Any]:
    """What becomes of each value; of categories, of each of these once."""
    if str(series.dtype) != "category":
        return [fitted(value, fit) for value in series.tolist()]
    known = [*(fitted(value, fit) for value in series.cat.categories.tolist()), None]
    return [known[code] for code in series.cat.codes.tolist()]  # -1 for what is missing


def _made_float(dtype: str) -> bool:
    """Whether pandas may have made a column of whole numbers one of this dtype, for a value that is missing."""
    return dtype in ("float16", "float32", "float64")


def _whole(series: Any) -> pa.Array:
    """Floats as whole numbers, NULL where one is none, or so large that it may stand for several (2^53 and beyond).

    Value by value: Arrow's own cast fails for the whole column at the first fraction.
    """
    floats = series.to_numpy(dtype="float64")
    near = abs(floats) < 2.0**53  # False for NaN
    kept = floats.copy()
    kept[~near] = 0.0
    steps = kept.astype("int64")
    return pa.array(steps, pa.int64(), mask=~(near & (steps == floats)))
