"""No sum of texts is too long: one person's rows may hold more than the 2 GiB of a plain column of Arrow's."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.engines.duckdb.arrow_columns import safe_schema, safe_table

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")

VIEWS = [pa.string(), pa.large_string(), pa.string_view()]


@pytest.mark.parametrize("kind", VIEWS, ids=str)
def test_coded_texts_have_long_places_and_bad_bytes_are_null(kind: pa.DataType) -> None:
    raw = pa.array([b"a", b"\xff", b"c"], pa.binary())
    codes = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    codes = codes.cast(kind) if kind != pa.string_view() else pa.array(["a", None, "c"], kind)
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, None, 0]), codes)
    table = pa.table({"x": pa.chunked_array([column, column])})
    found = safe_table(table, safe_schema(table.schema)).column("x")
    assert found.type.value_type == pa.large_string()
    assert found.to_pylist() == ["c", "a", None, None, "a"] * 2
    assert safe_schema(table.schema).field("x").type.value_type == pa.large_string()


@pytest.mark.parametrize("places", [pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_runs_have_long_places(places: pa.DataType) -> None:
    """Of short places pyarrow writes beyond what it has, where runs are of more than 2 GiB: the process ends."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], places), pa.array(["a", None, "c"]))
    table = pa.table({"x": pa.chunked_array([runs.slice(1, 4), runs, runs.slice(7)])})
    found = safe_table(table, safe_schema(table.schema)).column("x")
    assert safe_schema(table.schema).field("x").type == found.type == pa.dictionary(pa.int32(), pa.large_string())
    assert found.to_pylist() == ["a", None, "c", "c", "a", "a", None, "c", "c", "c", "c"]


@pytest.mark.soak
def test_runs_of_more_than_two_gibibytes_end_no_process() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**16 + 1], pa.int32()), pa.array(["x" * 2**15]))
    table = pa.table({"x": pa.chunked_array([runs])})
    assert len(safe_table(table, safe_schema(table.schema)).column("x")) == 2**16 + 1


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_texts_of_which_one_is_bad_stay_in_pieces_that_hold_them(kind: pa.DataType) -> None:
    bytes_of = pa.large_binary() if kind == pa.large_string() else pa.binary()
    raw = [pa.array(values, bytes_of).view(kind) for values in ([b"a", b"\xff"], [b"b"])]
    table = pa.table({"x": pa.chunked_array(raw)})
    found = safe_table(table, safe_schema(table.schema)).column("x")
    assert [chunk.to_pylist() for chunk in found.chunks] == [["a", None], ["b"]]
    assert found.type == kind


@pytest.mark.soak
def test_one_bad_text_among_more_than_two_gibibytes_is_null_and_no_error() -> None:
    whole = pa.array([b"x" * 2**29] * 2, pa.binary()).view(pa.string())
    table = pa.table({"x": pa.chunked_array([whole, whole, pa.array([b"\xff"]).view(pa.string())])})
    found = safe_table(table, safe_schema(table.schema)).column("x")
    assert (found.null_count, len(found)) == (1, 5)


def opened(path, rows: int, size: int) -> hb.Session:
    with duckdb.connect(str(path)) as con:
        con.execute(f"CREATE TABLE v AS SELECT 1 AS id, repeat('x', {size}) AS a FROM range({rows})")
    declared = hb.table(path, table="v", unit="id", max_total=1, columns={"a": hb.one_of("x", "y")})
    return hb.Session({"v": declared}, budget=hb.Budget(epsilon=3, delta="1e-6"), ledger=None)


def test_rows_come_with_long_places(tmp_path) -> None:
    with opened(tmp_path / "v.duckdb", 2, 3) as session:
        assert session._engine.rows(session._data.scan("v"), ["a"]).schema.field("a").type == pa.large_string()


@pytest.mark.soak
def test_a_person_with_more_than_two_gibibytes_of_texts_is_answered(tmp_path) -> None:
    with opened(tmp_path / "v.duckdb", 2**15 + 1, 2**16) as session:
        assert session.marginals("v", [("a",)], epsilon=1).charged
