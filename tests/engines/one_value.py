"""Columns of every Arrow type in which one person's value is far from all others, and the ways to hand them over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "FORMS", "PEOPLE", "table_of"]

PEOPLE: Final = 1500
ROWS: Final = 2 * PEOPLE
"""More than DuckDB reads at a time, so that all the rest of a piece is read beside the odd row."""
ODD: Final = 1333
Make = Callable[[Any], Any]
"""A column whose odd row has a value; ... for that of others."""


def _of(kind: pa.DataType, usual: Callable[[int], Any]) -> Make:
    def make(odd: Any) -> Any:
        values = [usual(i % 3) for i in range(ROWS)]
        if odd is not ...:
            values[ODD] = odd
        return pa.array(values, kind)

    return make


def _bits(kind: pa.DataType, width: int, usual: Callable[[int], int]) -> Make:
    """A column by how its values are stored, which Arrow does not check."""

    def make(odd: Any) -> Any:
        values = [usual(i % 3) for i in range(ROWS)]
        if odd is not ...:
            values[ODD] = odd
        raw = b"".join(v.to_bytes(width, "little", signed=True) for v in values)
        return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(raw)])

    return make


def _coded(values: pa.Array) -> Make:
    """Codes of a dictionary, of which one row alone has the fourth and further."""

    def make(odd: Any) -> Any:
        codes = [i % 3 for i in range(ROWS)]
        if odd is not ...:
            codes[ODD] = odd
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values)

    return make


def _runs(odd: Any) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, ROWS + 1), pa.int32()), _of(pa.string(), _text)(odd))


def _extension(kind: Any, storage: pa.DataType, usual: Callable[[int], Any]) -> Make:
    return lambda odd: pa.ExtensionArray.from_storage(kind, _of(storage, usual)(odd))


def _text(i: int) -> str:
    return f"v{i}"


def _raw_texts(odd: Any) -> Any:
    raw = _of(pa.binary(), lambda i: _text(i).encode())(odd)
    return pa.Array.from_buffers(pa.string(), ROWS, raw.buffers())


_STEPS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ENDS: Final = (2**63 - 1, -(2**63), 1 - 2**63, 2**62)
_LONG: Final = "x" * 300_000
_FIRST: Final = 1_704_067_200
_DECIMALS: Final = (
    *((pa.decimal32, 4, 9, 2), (pa.decimal64, 8, 18, 2), (pa.decimal64, 8, 9, 0)),
    *((pa.decimal128, 16, 38, 10), (pa.decimal128, 16, 18, 2), (pa.decimal128, 16, 9, 0)),
    *((pa.decimal256, 32, 76, 0), (pa.decimal256, 32, 38, 5)),
)
COLUMNS: Final[dict[str, tuple[Make, tuple[Any, ...]]]] = {
    **{
        f"moments in {unit}, {zone}": (
            _bits(pa.timestamp(unit, zone), 8, lambda i, step=step: (_FIRST + 86_400 * i) * step),  # type: ignore[misc]
            (*_ENDS, min(253_402_300_800 * step, 2**63 - 1), max(-62_135_596_801 * step, -(2**63))),
        )
        for unit, step in _STEPS.items()
        for zone in (None, "UTC", "Europe/Rome")
    },
    **{f"durations in {unit}": (_bits(pa.duration(unit), 8, lambda i: i), _ENDS) for unit in _STEPS},
    "days": (_bits(pa.date32(), 4, lambda i: 19_723 + i), (2**31 - 1, -(2**31), -719_163, 2_932_897)),
    "days in ms": (_bits(pa.date64(), 8, lambda i: (19_723 + i) * 86_400_000), (*_ENDS, 86_400_000 * 3_000_000 + 1)),
    "times in s": (_bits(pa.time32("s"), 4, lambda i: i), (2**31 - 1, -1, 86_400)),
    "times in us": (_bits(pa.time64("us"), 8, lambda i: i), (2**63 - 1, -1, 86_400 * 10**6)),
    "times in ns": (_bits(pa.time64("ns"), 8, lambda i: i), (2**63 - 1, -1, 86_400 * 10**9)),
    **{
        f"decimals of {digits} digits in {width} bytes": (
            _bits(kind(digits, scale), width, lambda i: i),
            (10**digits - 1, 1 - 10**digits, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1))),
        )
        for kind, width, digits, scale in _DECIMALS
    },
    **{
        f"{'u' * (low == 0)}int{bits}": (
            _of(getattr(pa, f"{'u' * (low == 0)}int{bits}")(), lambda i: i),
            (low, 2 ** (bits - (low < 0)) - 1),
        )
        for bits in (8, 16, 32, 64)
        for low in (0, -(2 ** (bits - 1)))
    },
    "float16": (_of(pa.float16(), lambda i: np.float16(i)), (np.float16("nan"), np.float16("inf"))),
    "float32": (_of(pa.float32(), float), (float("nan"), float("-inf"), 3.4e38, -0.0)),
    "float64": (_of(pa.float64(), float), (float("nan"), float("inf"), 1.7e308, 5e-324, -0.0)),
    "texts": (_raw_texts, (b"\xff", b"\xed\xa0\x80", b"a\0b", _LONG.encode(), b"", b"1e999", b"infinity")),
    "large texts": (_of(pa.large_string(), _text), ("", "a\0", _LONG)),
    "views of texts": (_of(pa.string_view(), _text), ("", "a\0", _LONG)),
    "bytes": (_of(pa.binary(), lambda i: _text(i).encode()), (b"", b"\xff" * 100_000)),
    "views of bytes": (_of(pa.binary_view(), lambda i: _text(i).encode()), (b"", b"\xff" * 100_000)),
    "four bytes": (_of(pa.binary(4), lambda i: _text(i).encode() * 2), (b"\xff" * 4, b"\0" * 4)),
    "codes of texts": (_coded(pa.array(["v0", "v1", "v2", None, "v0", "", _LONG])), (3, 4, 5, 6)),
    "codes of numbers": (_coded(pa.array([1, 2, 3, 2**63 - 1, -(2**63)])), (3, 4)),
    "codes of moments": (_coded(pa.array([1, 2, 3, *_ENDS]).view(pa.timestamp("us"))), (3, 4)),
    "codes of seconds": (_coded(pa.array([1, 2, 3, *_ENDS]).view(pa.timestamp("s", "UTC"))), (3, 4)),
    "runs": (_runs, ("", "a\0", None)),
    "truths": (_of(pa.bool_(), lambda i: i == 1), (None,)),
    "truths of 8 bits": (_extension(pa.bool8(), pa.int8(), lambda i: int(i == 1)), (-128, 2)),
    "uuids": (_extension(pa.uuid(), pa.binary(16), lambda i: bytes([i]) * 16), (b"\xff" * 16,)),
    "JSON": (_extension(pa.json_(), pa.string(), lambda i: f'{{"a": {i}}}'), ("{", "1e999", "x")),
    "lists": (_of(pa.list_(pa.int64()), lambda i: [i]), ([], [2**63 - 1] * 1000)),
    "structs": (_of(pa.struct([("a", pa.int64())]), lambda i: {"a": i}), ({"a": 2**63 - 1}, None)),
    "maps": (_of(pa.map_(pa.string(), pa.int64()), lambda i: [("k", i)]), ([], None)),
    "intervals": (_of(pa.month_day_nano_interval(), lambda i: (1, i, 0)), ((2**31 - 1, 2**31 - 1, 2**63 - 1),)),
}
"""How a column is made, and the odd values of it."""


def table_of(column: Any) -> pa.Table:
    """Two rows for each person, of whom one has the odd value."""
    rows = range(ROWS)
    return pa.table(
        {"id": [i // 2 for i in rows], "g": ["xy"[i % 2] for i in rows], "n": [1 + i % 4 for i in rows], "c": column}
    )


def _written(**options: Any) -> Callable[[pa.Table, Path], str]:
    def write(table: pa.Table, path: Path) -> str:
        pq.write_table(table, path, **options)
        return str(path)

    return write


def _by_polars(table: pa.Table, path: Path) -> str:
    pl.DataFrame(pl.from_arrow(table)).write_parquet(path, row_group_size=2048)
    return str(path)


def _by_duckdb(table: pa.Table, path: Path) -> str:
    with duckdb.connect() as con:
        con.register("rows", table)
        con.execute(f"COPY (SELECT * FROM rows) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return str(path)


def _in_chunks(table: pa.Table, _: Path) -> Any:
    return pa.concat_tables([table.slice(0, 1100), table.slice(1100, 400), table.slice(1500)])


FORMS: Final[Mapping[str, Callable[[pa.Table, Path], Any]]] = {
    "an Arrow table": lambda table, _: table,
    "an Arrow table in chunks": _in_chunks,
    "pandas": lambda table, _: table.to_pandas(),
    "pandas of Arrow's types": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas categories": lambda table, _: table.to_pandas().astype({"c": "category"}),
    "pandas objects": lambda table, _: table.to_pandas().astype({"c": object}),
    "polars": lambda table, _: pl.from_arrow(table),
    "a Parquet file": _written(row_group_size=2048),
    "one without dictionaries": _written(row_group_size=2048, use_dictionary=False, data_page_version="2.0"),
    "one of version 1.0": _written(row_group_size=1000, version="1.0"),
    "one with an index of pages": _written(write_page_index=True, store_decimal_as_integer=True),
    "one without Arrow's schema": _written(store_schema=False, use_deprecated_int96_timestamps=True),
    "one by polars": _by_polars,
    "one by DuckDB": _by_duckdb,
}
"""How such rows are handed over; a way that does not have a type, or a value, raises."""
