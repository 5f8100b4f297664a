"""Two people are never one because of how the engine reads the column that names them: as many units as there are
values, of every type of a frame and of a Parquet file; or the column is refused, or a value names nobody, alone.
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.errors import PolicyError
from people import HUGE

DAY = 86_400_000
SMALL, ENDS = [0, 1, 2, 999, 1000, DAY, DAY + 1], [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**62]


def _stored(values: list[int], kind: Any) -> pa.Array:
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array([v for v in values if v.bit_length() < kind.bit_width], width).view(kind)


COLUMNS: dict[str, pa.Array] = {
    str(kind): _stored([*SMALL, *ENDS, DAY * 2**32, DAY * (2**32 + 1), 2**31 - 1, -(2**31)], kind)
    for kind in (
        *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    )
}
COLUMNS |= {
    "uint64": pa.array([0, 2**63 - 1, 2**63, 2**64 - 1], pa.uint64()),
    "half": pa.array([1.0, 1.001, 65504.0, float("inf"), float("-inf")], pa.float16()),
    "decimal": pa.array([Decimal(10**37), Decimal(10**37 + 1), Decimal(1)], pa.decimal128(38, 0)),
    "uuid": pa.array([b"a" * 16, b"b" * 16, b"\0" * 16], pa.uuid()),
    "text": pa.array(["a", "A", "a ", " a", "e\u0301", "\u00e9", "", "\0", "a\0", "1", "1.0", "01"]),
    "view": pa.array(["a" * 20, "a" * 20 + " ", "a" * 20 + "\0", "A" * 20], pa.string_view()),
    "bytes": pa.array([b"a", b"A", b"a\0", b"\xff", b""]),
    "bytes 3": pa.array([b"abc", b"abd", b"\0\0\0"], pa.binary(3)),
}
FORMS: dict[str, dict[str, Any] | None] = {
    "frame": None,
    "file": {},
    "file of 96 bits": {"use_deprecated_int96_timestamps": True},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COLUMNS)
def test_as_many_units_as_values(name: str, form: str, tmp_path: Path) -> None:
    """No two values that name somebody name the same one."""
    column, how = COLUMNS[name], FORMS[form]
    source: Any = pa.table({"u": column})
    if how is not None:
        try:
            pq.write_table(source, tmp_path / "t.parquet", **how)
        except pa.ArrowInvalid:
            pytest.skip("pyarrow writes no such numbers")
        if name.startswith("date64"):
            pytest.skip("pyarrow itself writes days")
        source = str(tmp_path / "t.parquet")
    engine = DuckDBEngine()
    try:
        engine.add("t", hb.table(source, unit="u", max_groups=1, max_rows=1))
    except PolicyError as error:
        assert "the unit column 'u' is " in str(error)
        return
    finally:
        engine.close()
    known = engine._known["t"]
    relation = known.relation
    if known.patient is not None:
        relation = known.patient.relation("rows")
    with duckdb.connect() as con:
        if known.held is not None:
            con.register(relation, known.held.table())
        elif known.patient is not None:
            known.patient.fill(con, "rows")
        counted = f"SELECT count({known.unit}), count(DISTINCT {known.unit}) FROM {relation}"
        ((named, units),) = con.execute(counted).fetchall()
    assert 1 < named == units


def test_a_moment_of_96_bits_is_a_value_as_any_other(tmp_path: Path) -> None:
    columns = {"u": [1, 2, 3], "at": pa.array([5000, 6000, None], pa.timestamp("ns"))}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    desk = Desk({"t": hb.table(str(tmp_path / "t.parquet"), unit="u", max_groups=1, max_rows=1)})
    sql = "SELECT COUNT(*) AS c FROM t WHERE at > TIMESTAMP '1970-01-01 00:00:00.000005'"
    assert desk.ask(sql, HUGE).rows() == [(1,)]
    desk.engine.close()


def test_files_of_both_sorts_of_moments_are_one_table_and_their_moments_name_nobody(tmp_path: Path) -> None:
    moments = pa.array([5000, 6000], pa.timestamp("us"))
    for name, old in (("a", False), ("b", True), ("c", False)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"u": [1, 2], "at": moments}), path, use_deprecated_int96_timestamps=old)
    desk = Desk({"t": hb.table(str(tmp_path), unit="u", max_groups=1, max_rows=3)})
    assert desk.ask("SELECT COUNT(at) AS c FROM t", HUGE).rows() == [(6,)]
    desk.engine.close()
    with pytest.raises(PolicyError, match="in which two values that the file may hold are one"):
        Desk({"t": hb.table(str(tmp_path), unit="at", max_groups=1, max_rows=3)})


def test_a_day_that_is_none_is_null_and_changes_no_other() -> None:
    days = _stored([0, DAY, DAY + 1, DAY * 2**32], pa.date64())
    table = hb.table(pa.table({"u": [1, 2, 3, 4], "day": days}), unit="u", max_groups=1, max_rows=1)
    desk = Desk({"t": table})
    for sql, count in (("COUNT(day)", 2), ("COUNT(CASE WHEN day = DATE '1970-01-01' THEN 1 END)", 1)):
        assert desk.ask(f"SELECT {sql} AS c FROM t", HUGE).rows() == [(count,)]
    desk.engine.close()


def test_objects_that_would_be_one_number_name_nobody() -> None:
    column = pd.Series([2**53, 2**53 + 1], dtype=object)
    for numbers in (column, pd.Series(pd.Categorical.from_codes([0, 1], pd.Index(column)))):
        table = hb.table(pd.DataFrame({"u": numbers}), unit="u", max_groups=1, max_rows=1, types={"u": "number"})
        with pytest.raises(PolicyError, match="could become one unit"):
            Desk({"t": table})


def test_a_moment_of_nanoseconds_among_objects_is_none() -> None:
    moments = [pd.Timestamp(2025, 1, 1, nanosecond=n) for n in (0, 1, 2)]
    frame = pd.DataFrame({"u": [1, 2, 3], "at": pd.Series(moments, dtype=object)})
    desk = Desk({"t": hb.table(frame, unit="u", max_groups=1, max_rows=1, types={"at": "timestamp"})})
    assert desk.ask("SELECT COUNT(at) AS c FROM t", HUGE).rows() == [(1,)]
    desk.engine.close()


@pytest.mark.parametrize("kind", ["integer", "text", "boolean", "date"])
def test_objects_of_kinds_that_keep_them_apart_name_people(kind: str) -> None:
    values = {"integer": [2**53, 2**53 + 1], "text": ["1", "1.0"], "boolean": [True, False]}.get(kind)
    values = values or [dt.date(2025, 1, 1), dt.date(2025, 1, 2)]
    frame = pd.DataFrame({"u": pd.Series(values, dtype=object)})
    desk = Desk({"t": hb.table(frame, unit="u", max_groups=1, max_rows=1, types={"u": kind})})
    assert desk.ask("SELECT COUNT(*) AS c FROM t", HUGE).rows() == [(2,)]
    desk.engine.close()


def _beyond(column: pa.Array, width: str, values: list[int], path: Path) -> str:
    """A file in which a column of the numbers 44, 45, 46, 47 stores others, which its type does not hold."""
    table = pa.table({"u": column, "n": [1, 2, 3, 4]})
    plain: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    pq.write_table(table, path, store_decimal_as_integer=True, **plain)
    written, before = path.read_bytes(), struct.pack(width, 44, 45, 46, 47)
    assert written.count(before) == 1
    path.write_bytes(written.replace(before, struct.pack(width, *values)))
    return str(path)


FORTIES = [Decimal(n) for n in (44, 45, 46, 47)]
NARROW: dict[str, tuple[pa.Array, str, list[int]]] = {
    **{
        str(kind): (pa.array([44, 45, 46, 47], kind), "<4i", [44, 256 + 44, 2**16 + 44, 2**24 + 44])
        for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32())
    },
    "decimal of 4": (pa.array(FORTIES, pa.decimal128(4, 0)), "<4i", [44, 2**16 + 44, 2**17 + 44, -1]),
    "decimal of 9": (pa.array(FORTIES, pa.decimal128(9, 0)), "<4i", [44, 2**31 - 1, -(2**31), -1]),
    "decimal of 18": (pa.array(FORTIES, pa.decimal128(18, 0)), "<4q", [44, 2**63 - 1, -(2**63), -1]),
}


@pytest.mark.parametrize("name", NARROW)
def test_numbers_beyond_their_declared_width_name_as_many_units(name: str, tmp_path: Path) -> None:
    """A writer may store 300 in a column of 8 bits; DuckDB reads 44 there, and another person is 44."""
    column, width, values = NARROW[name]
    path = _beyond(column, width, values, tmp_path / "t.parquet")
    try:
        desk = Desk({"t": hb.table(path, unit="u", max_groups=1, max_rows=1)})
    except PolicyError as error:
        assert "in which two values that the file may hold are one" in str(error)
        assert name not in ("int32", "decimal of 9", "decimal of 18")
    else:
        assert desk.ask("SELECT COUNT(DISTINCT u) AS c FROM t", HUGE).rows() == [(len(values),)]
        desk.engine.close()
    desk = Desk({"t": hb.table(path, unit="n", max_groups=1, max_rows=1)})  # a value as any other
    assert desk.ask("SELECT COUNT(u) AS c FROM t", HUGE).rows() == [(len(values),)]
    desk.engine.close()


def test_decimals_beyond_38_digits_name_nobody(tmp_path: Path) -> None:
    """DuckDB reads doubles there: three people were one."""
    large = [Decimal(10**35), Decimal(10**35 + 1), Decimal(10**35 + 2)]
    pq.write_table(pa.table({"u": pa.array(large, pa.decimal256(40, 2)), "n": [1, 2, 3]}), tmp_path / "t.parquet")
    with pytest.raises(PolicyError, match="in which two values that the file may hold are one"):
        Desk({"t": hb.table(str(tmp_path / "t.parquet"), unit="u", max_groups=1, max_rows=1)})
    desk = Desk({"t": hb.table(str(tmp_path / "t.parquet"), unit="n", max_groups=1, max_rows=1)})
    assert desk.ask("SELECT COUNT(u) AS c FROM t", HUGE).rows() == [(3,)]
    desk.engine.close()


WIDTHS = {pa.decimal32: 4, pa.decimal64: 8, pa.decimal128: 16}
DIGITS = [(pa.decimal32, 3), (pa.decimal32, 9), (pa.decimal64, 10), (pa.decimal64, 18)]
DIGITS += [(pa.decimal128, digits) for digits in (1, 2, 3, 4, 5, 9, 10, 18, 19, 37, 38)]


def _stored_decimals(make: Any, digits: int, end: int) -> pa.Array:
    """-1, 1 and 2, and of each sign the largest of these digits, the next ones and the end of what is held."""
    most = 10**digits - 1
    values = [-1, 1, 2, most, -most, *dict.fromkeys([most + 1, most + 2**32, most + 2**64, end, -most - 1, -end - 1])]
    held = [n.to_bytes(WIDTHS[make], "little", signed=True) for n in values if -end - 1 <= n <= end]
    return pa.Array.from_buffers(make(digits, 1), len(held), [None, pa.py_buffer(b"".join(held))])


@pytest.mark.parametrize(("make", "digits"), DIGITS, ids=lambda made: getattr(made, "__name__", made))
def test_a_frame_s_decimals_beyond_their_digits_are_null_and_change_no_other(make: Any, digits: int) -> None:
    """DuckDB cuts them to 16, 32 or 64 bits, or ends a question at them."""
    stored = _stored_decimals(make, digits, 2 ** (8 * WIDTHS[make] - 1) - 1)
    frame = pa.table({"u": stored, "n": pa.array(range(len(stored)), pa.int64())})
    for unit, sql in (("u", "SELECT COUNT(DISTINCT u) AS c FROM t"), ("n", "SELECT COUNT(u) AS c FROM t")):
        desk = Desk({"t": hb.table(frame, unit=unit, max_groups=1, max_rows=1)})
        assert desk.ask(sql, HUGE).rows() == [(5,)]
        desk.engine.close()


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5, 9, 10, 18, 19, 38])
def test_a_file_s_decimals_beyond_their_digits_name_as_many_units_or_none(digits: int, tmp_path: Path) -> None:
    """Of three digits or fewer DuckDB counts groups by the values that there can be, and failed at any other."""
    size = (10**digits - 1).bit_length() // 8 + 1  # the bytes that a writer gives them
    stored = _stored_decimals(pa.decimal128, digits, 2 ** (8 * size - 1) - 1)
    frame = pa.table({"u": stored, "n": pa.array(range(len(stored)), pa.int64())})
    pq.write_table(frame, tmp_path / "t.parquet", write_statistics=False)
    try:
        desk = Desk({"t": hb.table(str(tmp_path / "t.parquet"), unit="u", max_groups=1, max_rows=1)})
    except PolicyError as error:
        assert "in which two values that the file may hold are one" in str(error)
        assert digits <= 3
        return
    assert desk.ask("SELECT COUNT(DISTINCT u) AS c FROM t", HUGE).rows() == [(len(stored),)]
    desk.engine.close()
