"""Two readings of one Parquet file: what one bad value changes is that value.

A question that meets a value on which DuckDB's reader fails is asked again in the patient reading. Whatever type a
column has, whoever wrote the file, and whatever its bytes say, the two readings give every other row the same value and
the same hash of its unit; and a question is answered, or refused, with the bad value as without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from engines.parquet_columns import BAD, ROWS, arrow_columns, duckdb_columns, lying_files, write
from hubbub.engines.duckdb import parquet
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.parquet import Patient
from hubbub.errors import HubbubError, PolicyError
from people import HUGE

COLUMNS: dict[str, tuple[Any, dict[str, Any]]] = {
    **arrow_columns(),
    **{n: (v, {}) for n, v in duckdb_columns().items()},
}
SHORT = {
    *("boolean", "half", "uint64", "date32", "bool8", "uuid", "text", "text view", "coded text", "binary", "nothing"),
    *("moment ms None", "moment ms UTC", "moment us UTC", "moment ns None", "int96 us", "duration us", "time us"),
    *("decimal128 4", "decimal256 18", "decimal256 50", "decimal32 4 whole", "list", "json"),
    *("duckdb HUGEINT", "duckdb UUID", "duckdb TIMESTAMP_MS", "duckdb TIMETZ", "duckdb enum"),
}
"""Asked on every run; the others with the soak tests."""

N = pa.array([1000 + i for i in range(ROWS)])
GROUPS = pa.array(["a" if i % 3 else "b" for i in range(ROWS)])


assert set(COLUMNS) >= SHORT

READER = duckdb.connect()
"""Reads for all tests: a new one takes longer than what it reads."""


def notes(bad: int | None) -> pa.Array:
    return pa.array([BAD if i == bad else "ok" for i in range(ROWS)])


def both(path: Path) -> tuple[list[Any], list[Any]] | None:
    """In each reading: the types, then of each row n, the value of x, x as a unit, and that unit's hash; None where
    there is one reading only.
    """
    engine = DuckDBEngine()
    try:
        try:
            engine.add("t", hb.table(str(path), unit="x", max_total=1))
            unit = engine._known["t"].unit
        except PolicyError:  # x can be no unit
            engine._known.clear()
            engine.add("t", hb.table(str(path), unit="n", max_total=1))
            unit = "n"
        known = engine._known["t"]
        if known.patient is None:
            return None
        text = f"SELECT n, {known.columns['x']}, typeof({known.columns['x']}), typeof({unit}), hash({unit}) FROM {{}}"
        found = []
        for relation, patient in ((known.relation, None), (known.patient.relation("patient0"), known.patient)):
            cursor = READER.cursor()
            if patient is not None:
                patient.fill(cursor, "patient0")
            try:
                found.append(sorted(cursor.execute(text.format(relation)).fetchall()))
            except duckdb.Error:
                found.append([])
        return found[0], found[1]
    finally:
        engine.close()


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # NaN is NaN


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_is_the_same_in_both_readings(name: str, tmp_path: Path) -> None:
    value, how = COLUMNS[name]
    path = tmp_path / "t.parquet"
    write(path, {"n": N, "g": GROUPS, "note": notes(7)}, value, **how)
    found = both(path)
    assert found is not None  # "note" is a text
    quick, patient = found
    assert len(patient) == ROWS
    if quick:
        assert same(quick, patient)
    else:  # some value of x itself makes the quick reader fail: the others are those of a file without it
        assert name.startswith(("moment", "time", "coded moment")), name


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.soak) for name in COLUMNS]
)
def test_a_bad_text_beside_a_column_changes_nothing_but_its_own_row(name: str, tmp_path: Path) -> None:
    """D' is D with one more row, of a unit of its own, whose text is not UTF-8 and which every question drops."""
    value, how = COLUMNS[name]
    found = []
    for bad in (None, 4):
        path = tmp_path / f"{bad}.parquet"
        write(path, {"n": N, "g": GROUPS, "note": notes(bad)}, value, **how)
        # Both files have the row; in D' alone its text is bad. What drops it drops it in both.
        found.append(answers(path))
    assert same(*found)


def answers(path: Path) -> list[Any]:
    """What questions say of rows other than that of n = 1004: x as a value, as a key, and as the unit."""
    keep = "note = 'ok' AND n <> 1004"
    asked = {
        "n": [
            f"SELECT COUNT(*) AS c FROM t WHERE {keep} AND x IS NOT NULL",
            f"SELECT COUNT(DISTINCT x) AS c FROM t WHERE {keep} AND x > 0",
        ],
        "x": [f"SELECT g, COUNT(*) AS c FROM t WHERE {keep} GROUP BY g", f"SELECT COUNT(*) AS c FROM t WHERE {keep}"],
    }
    said: list[Any] = []
    for unit, questions in asked.items():
        columns = {"g": hb.one_of("a", "b")}
        try:
            desk = Desk({"t": hb.table(str(path), unit=unit, max_groups=1, max_rows=1, max_total=3, columns=columns)})
        except HubbubError as error:
            said.append((type(error).__name__, str(error).replace(path.name, "")))
            continue
        for sql in questions:
            try:
                said.append(desk.ask(sql, HUGE).rows())
            except HubbubError as error:
                # An engine error would be one for D and for D', and is said of neither.
                assert type(error).__name__ != "EngineError", (sql, error)
                said.append(type(error).__name__)
        desk.engine.close()
    return said


def test_whatever_the_stored_bytes_say_both_readings_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    tried = 0
    for case in lying_files(path):
        found = both(path)
        assert found is not None
        quick, patient = found
        assert len(patient) == 3, case
        assert not quick or same(quick, patient), case
        tried += 1
    assert tried > 90


def test_where_a_moment_of_96_bits_makes_the_reader_fail_no_question_can_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "INT96_FAILS", True)
    path = tmp_path / "t.parquet"
    for how in ({}, {"use_deprecated_int96_timestamps": True}):
        write(path, {"n": N, "note": notes(None)}, pa.array([1] * ROWS, pa.timestamp("us")), **how)
        desk = Desk({"t": hb.table(str(path), unit="n", max_total=1)})
        sql = "SELECT COUNT(x) AS c FROM t"
        if how:
            with pytest.raises(HubbubError, match="of a type that questions cannot use"):
                desk.ask(sql, HUGE)
        else:
            assert desk.ask(sql, HUGE).rows() == [(ROWS,)]
        desk.engine.close()


def test_of_moments_and_times_that_the_quick_reader_refuses_the_others_stay(tmp_path: Path) -> None:
    """The refused value is NULL, and so no unit; what other rows hold is what they hold without it."""
    for bad, kind in ((2**62, pa.timestamp("ms")), (-(2**63), pa.timestamp("ms", "UTC")), (-1, pa.time64("us"))):
        path, found = tmp_path / "t.parquet", []
        for values in ([5, 6, 7], [5, bad, 7]):
            write(path, {"n": pa.array([1, 2, 3]), "note": pa.array(["ok", "ok", "ok"])}, pa.array(values).view(kind))
            read = both(path)
            assert read is not None
            found.append(read)
        (quick, patient), (refused, other) = found
        assert same(quick, patient)
        assert not refused
        assert same([patient[0], patient[2]], [other[0], other[2]])


def test_two_readers_call_the_same_bytes_text() -> None:
    """Every sequence of two bytes, and those of three and four at the ends of what UTF-8 allows: DuckDB's verdict is
    Python's, which is Arrow's.
    """
    second, third = (0, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF), (0, 0x41, 0x7F, 0x80, 0xBF, 0xC0)
    tried = [bytes((a, b)) for a in range(256) for b in range(256)]
    tried += [bytes((a, b, c)) for a in range(0xC0, 0x100) for b in second for c in third]
    tried += [
        bytes((a, b, c, d)) for a in range(0xE0, 0x100) for b in second for c in third for d in (0x41, 0x80, 0xBF)
    ]

    def valid(raw: bytes) -> bool:
        try:
            return bool(raw.decode("utf-8") or True)
        except UnicodeDecodeError:
            return False

    expected = [valid(raw) for raw in tried]
    with duckdb.connect() as con:
        con.register("tried", pa.table({"raw": pa.array(tried, pa.binary())}))
        engine = [text is not None for (text,) in con.execute("SELECT TRY(decode(raw)) FROM tried").fetchall()]
    assert engine == expected
    arrow = []
    for raw in tried[::97]:
        try:
            pa.array([raw], pa.binary()).cast(pa.string())
            arrow.append(True)
        except pa.ArrowInvalid:
            arrow.append(False)
    assert arrow == expected[::97]


def test_decimals_wider_than_their_digits_and_names_that_are_no_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for columns, said in (
        ([pa.array([1]), pa.array([2])], "the same name"),
        ([pa.array([1])], "file_row_number"),
    ):
        names = ["A", "a"] if len(columns) == 2 else ["file_row_number"]
        pq.write_table(pa.table(columns, names=names), path)
        with pytest.raises(PolicyError, match=said):
            Desk({"t": hb.table(str(path), unit=names[-1], max_total=1)})


def test_only_the_columns_that_can_fail_are_read_by_arrow(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = {"n": [1, 2], "x": [0.5, 1.5], "note": ["a", "b"], "at": pa.array([1, 2], pa.timestamp("ms"))}
    pq.write_table(pa.table(table), path)
    engine = DuckDBEngine()
    engine.add("t", hb.table(str(path), unit="n", max_total=1))
    patient = engine._known["t"].patient
    assert isinstance(patient, Patient)
    engine.close()
    for asked, columns in ((None, ["c0", "c1"]), (("AT",), ["c0"]), ((), [])):
        cursor = READER.cursor()
        patient.fill(cursor, "patient0", asked)
        kept = cursor.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = 'patient0'").fetchall()
        assert [name for (name,) in kept] == (["file_of_row", "file_row_number", *columns] if columns else [])
        read = f'SELECT n, x, note, "at" FROM {patient.relation("patient0", asked)} WHERE n = 2'
        ((n, x, note, at),) = cursor.execute(read).fetchall()
        assert (n, x, note is None, at is None) == (2, 1.5, asked == ("AT",), False)


def coded(kind: pa.DataType, bad: bytes) -> pa.Array:
    """Texts that are written as entries of a dictionary, of which nobody has checked the bytes."""
    raw = pa.array([b"v0", b"v1", b"v2", bad], pa.large_binary() if kind == pa.large_string() else pa.binary())
    entries = pa.Array.from_buffers(kind, 4, raw.buffers())
    return pa.DictionaryArray.from_arrays(pa.array([3 if i == 13 else i % 3 for i in range(300)], pa.int8()), entries)


@pytest.mark.parametrize("used", [True, False], ids=["a row has it", "no row has it"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_bad_text_of_a_dictionary_is_null_and_changes_no_other(tmp_path: Path, kind: pa.DataType, used: bool) -> None:
    """Arrow writes beside a column that it was a dictionary's, and then checks all entries where it reads it."""
    column = coded(kind, b"\xff")
    if not used:
        column = pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in range(300)], pa.int8()), column.dictionary)
    pq.write_table(pa.table({"u": range(300), "c": column}), tmp_path / "t.parquet", row_group_size=100)
    assert pa.types.is_dictionary(pq.read_schema(tmp_path / "t.parquet").field("c").type)
    desk = Desk({"t": hb.table(str(tmp_path / "t.parquet"), unit="u", max_rows=1, max_groups=1)})
    questions = ("SELECT COUNT(c) AS n FROM t", "SELECT COUNT(*) AS n FROM t WHERE c = 'v1'")
    answers = [desk.ask(sql, HUGE).rows()[0][0] for sql in questions]
    desk.engine.close()
    assert answers == ([299, 99] if used else [300, 100])


@pytest.mark.parametrize("name", ["file_row_number", "File_Row_Number", "FILE_ROW_NUMBER", "File_Of_Row"])
def test_a_column_of_the_engine_s_own_names_is_refused_whatever_the_case(tmp_path: Path, name: str) -> None:
    """DuckDB refuses it only in the patient reading: one person's bad text made an error for everybody."""
    pq.write_table(pa.table({"u": [1, 2], name: [1, 2], "c": ["a", "b"]}), tmp_path / "t.parquet")
    with pytest.raises(hb.PolicyError, match="rename it"):
        Desk({"t": hb.table(str(tmp_path / "t.parquet"), unit="u", max_rows=1, max_groups=1)})
