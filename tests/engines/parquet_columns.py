"""Columns of every type that Arrow and DuckDB write to Parquet, at all ends, and files whose stored bytes lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["BAD", "ROWS", "arrow_columns", "duckdb_columns", "lying_files", "write"]

ROWS = 12
"""Each column has so many values."""

_ENDS = [0, 1, -1, 5, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, -(2**63), 10**15, 1577836800123, None]
_TEXTS = ["a", "b", "", "é", "\x00", "🙂", None, "0", "-0", "1", "x" * 40, "\ufeffx"]


def _cycled(values: list[Any]) -> list[Any]:
    return [values[i % len(values)] for i in range(ROWS)]


def arrow_columns() -> dict[str, tuple[pa.Array, dict[str, Any]]]:
    """By name: a column, and how it is written."""
    found: dict[str, tuple[pa.Array, dict[str, Any]]] = {}

    def add(name: str, values: Any, kind: Any = None, **how: Any) -> None:
        column = values if isinstance(values, pa.Array | pa.ExtensionArray) else pa.array(_cycled(values), kind)
        found[name] = column, how

    for width in (8, 16, 32, 64):
        most = 2 ** (width - 1)
        add(f"int{width}", [0, 1, -1, most - 1, -most, None, 5], getattr(pa, f"int{width}")())
        add(f"uint{width}", [0, 1, 2 * most - 1, most, None, 5], getattr(pa, f"uint{width}")())
    for name, kind in (("half", pa.float16()), ("single", pa.float32()), ("double", pa.float64())):
        add(name, [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), None], kind)
    add("boolean", [True, False, None], pa.bool_())
    for unit in ("s", "ms", "us", "ns"):
        ends = [None if v is None or (unit == "s" and abs(v) > 2**53) else v for v in _ENDS]
        for zone in (None, "UTC", "Europe/Berlin", "+02:00"):
            add(f"moment {unit} {zone}", pa.array(ends, pa.int64()).view(pa.timestamp(unit, zone)))
            if unit == "us":
                how: dict[str, Any] = {"coerce_timestamps": "ms", "allow_truncated_timestamps": True}
                add(f"moment us as ms {zone}", found[f"moment us {zone}"][0], **how)
        if unit in ("us", "ns"):
            near = pa.array(_cycled([0, 1, -1, 10**15, -(10**15), None]), pa.int64()).view(pa.timestamp(unit))
            add(f"int96 {unit}", near, use_deprecated_int96_timestamps=True)
        add(f"duration {unit}", pa.array(_cycled([0, 1, -1, 5, None]), pa.duration(unit)))
    add("date32", pa.array(_cycled([0, 1, -1, 2**31 - 1, -(2**31), -(2**31) + 1, None]), pa.int32()).view(pa.date32()))
    add("date64", pa.array(_cycled([0, 86400000, -86400000, None]), pa.int64()).view(pa.date64()))
    for unit, kind, stored in (("s", pa.time32, pa.int32()), ("ms", pa.time32, pa.int32())):
        most = {"s": 86_399, "ms": 86_400_001}[unit]
        add(f"time {unit}", pa.array(_cycled([0, 1, most, most - 1, None]), stored).view(kind(unit)))
    for unit, most in (("us", 86_400_000_001), ("ns", 86_400_000_000_001)):
        add(
            f"time {unit}",
            pa.array(_cycled([0, 1, -1, most, most - 1, 2**63 - 1, None]), pa.int64()).view(pa.time64(unit)),
        )
    for kind in (pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256):
        for digits in (4, 9, 18, 38, 50, 76):
            if digits > {pa.decimal32: 9, pa.decimal64: 18, pa.decimal128: 38, pa.decimal256: 76}[kind]:
                continue
            values = [Decimal(0), Decimal("1.25"), Decimal("-" + "9" * (digits - 2) + ".99"), None]
            add(f"{kind.__name__} {digits}", values, kind(digits, 2))
            if digits <= 18:
                add(f"{kind.__name__} {digits} whole", values, kind(digits, 2), store_decimal_as_integer=True)
    for name, kind in (("binary", pa.binary()), ("large binary", pa.large_binary()), ("binary view", pa.binary_view())):
        add(name, [b"a", b"\xff", b"", None], kind)
    add("bytes 3", [b"abc", b"\xff\x00\x01", None], pa.binary(3))
    add("bytes 16", [b"a" * 16, b"\xff" * 16, None], pa.binary(16))
    for name, kind in (("text", pa.string()), ("large text", pa.large_string()), ("text view", pa.string_view())):
        add(name, _TEXTS, kind)
        add(f"{name} plain", _TEXTS, kind, use_dictionary=False, compression="none", data_page_version="2.0")
    add("coded text", pa.array(_cycled(["a", "b", None])).dictionary_encode())
    add("coded whole", pa.array(_cycled([5, 6, None])).dictionary_encode())
    add("coded moment", pa.array(_cycled([5, 6, None]), pa.timestamp("ms")).dictionary_encode())
    add("nothing", pa.nulls(ROWS))
    add("uuid", [b"\x00" * 16, b"\xff" * 16, b"a" * 16, None], pa.uuid())
    add("bool8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array(_cycled([0, 1, 2, -1, None]), pa.int8())))
    add("json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(_cycled(['{"a":1}', "1", "no json", None]))))
    opaque = pa.opaque(pa.int32(), "x", "y")
    add("opaque", pa.ExtensionArray.from_storage(opaque, pa.array(_cycled([1, 2, None]), pa.int32())))
    tensor = pa.fixed_shape_tensor(pa.int32(), [2])
    add("tensor", pa.ExtensionArray.from_storage(tensor, pa.array(_cycled([[1, 2], [3, 4]]), pa.list_(pa.int32(), 2))))
    add("list", [[1], [], None], pa.list_(pa.int64()))
    add("list of texts", [["a"], ["b", None], None], pa.large_list(pa.string()))
    add("list of decimals", [[Decimal("1.5")], None], pa.list_(pa.decimal128(4, 1)))
    add("structure", [{"text": "a"}, None], pa.struct([("text", pa.string())]))
    add("map", [[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    for name in list(found):
        column, how = found[name]
        found[f"{name}, no schema"] = column, how | {"store_schema": False}
    return found


def duckdb_columns() -> dict[str, str]:
    """By name: an expression of DuckDB's that is NULL for some i, of each of its types."""
    kinds = {
        "TINYINT": "i", "UBIGINT": "i", "HUGEINT": "i", "UHUGEINT": "i", "FLOAT": "i / 2", "DECIMAL(4,1)": "i / 2",
        "DECIMAL(9,1)": "i / 2", "DECIMAL(18,1)": "i / 2", "DECIMAL(38,1)": "i / 2", "VARCHAR": "'t' || i",
        "BLOB": "'t' || i", "BIT": "'101'", "UUID": "'00000000-0000-0000-0000-0000000000' || lpad(i::VARCHAR, 2, '0')",
        "BOOLEAN": "i % 2", "TIME": "TIME '10:00:00' + to_minutes(i)", "INTERVAL": "to_days(i::INTEGER)",
        "DATE": "DATE '2020-01-01' + i::INTEGER", "TIMESTAMP": "TIMESTAMP '2020-01-01' + to_days(i::INTEGER)",
        "TIMESTAMPTZ": "TIMESTAMP '2020-01-01' + to_days(i::INTEGER)", "JSON": "'{}'",
        "TIMESTAMP_S": "TIMESTAMP '2020-01-01' + to_days(i::INTEGER)",
        "TIMESTAMP_MS": "TIMESTAMP '2020-01-01' + to_days(i::INTEGER)",
        "TIMESTAMP_NS": "TIMESTAMP '2020-01-01' + to_days(i::INTEGER)",
        "TIMETZ": "'10:00:00+01'", "BIGNUM": "i", "INTEGER[]": "[i]", "VARCHAR[]": "['t']",
    }  # fmt: skip
    found = {f"duckdb {kind}": f"CASE WHEN i <> 3 THEN ({value})::{kind} END" for kind, value in kinds.items()}
    return found | {"duckdb enum": "'a'::ENUM ('a', 'b')", "duckdb struct": "{'text': 'x'}", "duckdb null": "NULL"}


BAD = "baaaad"
"""A text that `write` makes one that is not UTF-8."""


def write(path: Path, columns: dict[str, Any], value: Any, **how: Any) -> None:
    """A file of some columns and `x`, which is a column of Arrow's or an expression of DuckDB's in `i`, the row."""
    if isinstance(value, str):
        with duckdb.connect() as con:
            con.register("given", pa.table({"i": range(ROWS), **columns}))
            read = f"SELECT * EXCLUDE (i), {value} AS x FROM given ORDER BY i"
            con.execute(f"COPY ({read}) TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)")
    else:
        pq.write_table(pa.table(columns | {"x": value}), path, row_group_size=5, **({"compression": "none"} | how))
    path.write_bytes(path.read_bytes().replace(BAD.encode(), b"\xff" * len(BAD)))


def lying_files(path: Path) -> Iterator[str]:
    """Files whose stored numbers are none that their column's type allows, one after the other, at the same path.

    The columns are `n`, the row's number; `x`, of which one value lies; and `note`, of which one text is not UTF-8.
    """
    i32, i64 = (lambda v: struct.pack("<i", v)), (lambda v: struct.pack("<q", v))
    cases: list[tuple[Any, bytes, list[bytes], dict[str, Any]]] = []
    over = [i32(v) for v in (2**31 - 1, -(2**31), 300, -1, 70000)]
    whole_kinds = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.uint32())
    cases += [(pa.array([77, 78, 79], kind), i32(77), over, {}) for kind in whole_kinds]
    cases.append((pa.array([77, 78, 79], pa.int32()).view(pa.date32()), i32(77), [i32(2**31 - 1), i32(-(2**31))], {}))
    days = [i32(v) for v in (2**31 - 1, -(2**31), -1, 86_400_000, 86_400_001)]
    cases.append((pa.array([77, 78, 79], pa.time32("ms")), i32(77), days, {}))
    far = [i64(v) for v in (2**63 - 1, -(2**63), -(2**63) + 1, 2**62, -(2**62), 10**16, -1, 86_400_000_001)]
    moments = [pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")]
    cases += [(pa.array([77, 78, 79], kind), i64(77), far, {}) for kind in (pa.time64("us"), pa.time64("ns"), *moments)]
    cents = [Decimal("0.77"), Decimal("0.78"), Decimal("0.79")]
    whole = {"store_decimal_as_integer": True}
    small = [i32(v) for v in (2**31 - 1, -(2**31), 10000, 32768, 65613, 100000)]
    cases.append((pa.array(cents, pa.decimal128(4, 2)), i32(77), small, whole))
    cases.append((pa.array(cents, pa.decimal128(9, 2)), i32(77), small, whole))
    cases.append((pa.array(cents, pa.decimal128(12, 2)), i64(77), far[:4], whole))
    cases.append((pa.array(cents, pa.decimal128(4, 2)), b"\0\x4d\0\x4e", [b"\x7f\xff\0\x4e", b"\x80\0\0\x4e"], {}))
    cases.append(
        (pa.array(cents, pa.decimal128(38, 2)), b"\0" * 15 + b"\x4d", [b"\x7f" * 16, b"\x80" + b"\0" * 15], {})
    )
    cases.append(
        (pa.array(cents, pa.decimal256(50, 2)), b"\0" * 20 + b"\x4d", [b"\x7f" * 21, b"\x80" + b"\0" * 20], {})
    )
    halves = pa.array([1.5, 2.5, 3.5], pa.float16())
    cases.append((halves, b"\x00\x3e\x00\x41", [b"\x01\x7e\0\x41", b"\x00\xfc\0\x41", b"\x00\x80\0\x41"], {}))
    legacy = {"use_deprecated_int96_timestamps": True}
    julian = [
        struct.pack("<qi", *v) for v in ((-1, 2440588), (2**63 - 1, 0), (0, 0), (0, 2**31 - 1), (-(2**63), -(2**31)))
    ]
    cases.append((pa.array([77000, 78, 79], pa.timestamp("ns")), struct.pack("<qi", 77000, 2440588), julian, legacy))
    for column, honest, lies, how in cases:
        columns = {"n": pa.array([1000, 1001, 1002]), "note": pa.array(["ok", BAD, "ok"])}
        write(path, columns, column, use_dictionary=False, write_statistics=False, **how)
        stored = path.read_bytes()
        assert honest in stored, column.type
        for lie in lies:
            path.write_bytes(stored.replace(honest, lie, 1))
            yield f"{column.type} {how or ''} {lie.hex()}"
