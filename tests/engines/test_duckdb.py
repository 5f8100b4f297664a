"""The embedded engine: every source gives the same integers, and rows decide nothing else."""

from __future__ import annotations

import datetime as dt
import os
import pickle
import uuid
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.relations import describe
from hubbub.tables.declare import PrivateTable
from hubbub.tables.kinds import Kind
from people import engine, visits

ROWS = visits().source
SQL = "SELECT ward, COUNT(*), COUNT(age), SUM(n), AVG(age), COUNT(DISTINCT id) FROM visits GROUP BY ward"
TYPES = {"id": "integer", "age": "number", "n": "integer", "ok": "boolean", "day": "date", "ward": "text"}


def integers(table: PrivateTable, sql: str = SQL) -> tuple[tuple[int, ...], ...]:
    with engine("visits", table) as (duck, plan):
        return duck.run(plan(sql)).vectors


def write_csv(path: Path) -> Path:
    ROWS.to_pandas().to_csv(path, index=False)
    return path


def test_every_source_gives_the_same_integers(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "v.parquet")
    with duckdb.connect(str(tmp_path / "v.duckdb")) as con:
        con.register("rows", ROWS)
        con.execute("CREATE TABLE inner_visits AS SELECT * FROM rows")
    objects = ROWS.to_pandas().astype(object)
    objects["day"] = [d if isinstance(d, dt.date) else None for d in ROWS.column("day").to_pylist()]
    objects = objects.map(lambda v: None if v is None or v is pd.NaT or v != v else v)
    expected = integers(visits())
    assert expected[0] != (0,) * 4
    assert integers(visits(source=tmp_path / "v.parquet")) == expected
    assert integers(visits(source=str(tmp_path / "v.duckdb"), table="inner_visits")) == expected
    assert integers(visits(source=write_csv(tmp_path / "v.csv"), types=TYPES)) == expected
    assert integers(visits(source=pl.DataFrame(ROWS))) == expected
    assert integers(visits(source=ROWS.to_pandas())) == expected
    assert integers(visits(source=objects, types=TYPES)) == expected
    assert integers(visits(source=ROWS.to_reader().read_all())) == expected


def test_rows_without_a_unit_are_dropped() -> None:
    lost = ROWS.set_column(0, "id", pa.array([1, 1, None, 3, 4, 4], pa.int64()))
    assert integers(visits(source=lost), "SELECT COUNT(*) FROM visits") == ((5,),)
    nobody = ROWS.set_column(0, "id", pa.array([None] * 6, pa.int64()))
    assert integers(visits(source=nobody), "SELECT COUNT(*), COUNT(DISTINCT id) FROM visits") == ((0,), (0,))


def test_float_ids_differ_by_value_alone() -> None:
    ids = ROWS.set_column(0, "id", pa.array([0.0, -0.0, 1.0, float("nan"), None, 1.5]))
    assert integers(visits(source=ids), "SELECT COUNT(DISTINCT id) FROM visits") == ((3,),)


def test_text_ids_differ_by_case_and_spaces() -> None:
    ids = ROWS.set_column(0, "id", pa.array(["a", "A", "a ", "", None, "a"]))
    assert integers(visits(source=ids), "SELECT COUNT(DISTINCT id) FROM visits") == ((4,),)


def test_an_empty_table_and_an_all_null_column_answer_like_any_other() -> None:
    empty = integers(visits(source=ROWS.slice(0, 0)))
    assert [len(v) for v in empty] == [4] * len(empty)
    assert all(x == 0 for v in empty for x in v)
    hollow = ROWS.set_column(2, "age", pa.nulls(6))
    assert integers(visits(source=hollow), "SELECT SUM(age), COUNT(age) FROM visits") == ((0,), (0,))
    objects = ROWS.to_pandas()
    objects["age"] = pd.Series([None] * 6, dtype=object)
    assert integers(visits(source=objects, types={"age": "number"}), "SELECT SUM(age) FROM visits") == ((0,), (0,))


def test_a_value_is_clamped_and_nan_is_null() -> None:
    ages = pa.array([float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 64.0])
    hard = ROWS.set_column(2, "age", ages)
    found = integers(visits(source=hard, max_rows=100), "SELECT SUM(age), COUNT(age) FROM visits")
    step = 2**22 // 128
    # Less the centre 64 of each: 128 + 0 + 128 + 0 + 64 - 5 * 64 = 0.
    assert sorted(found) == sorted(((5,), ((128 + 0 + 128 + 0 + 64 - 5 * 64) * step,)))


def test_a_null_counts_as_the_midpoint_where_it_is_declared_not_to_occur() -> None:
    sure = visits(columns={"age": hb.between(0, 128, nullable=False)})
    found = integers(sure, "SELECT SUM(age) FROM visits")
    # The NULL is the centre, so it adds nothing, and counts as a row.
    assert sorted(found) == sorted(((6,), (round((30 + 31.5 + 77 + 64.25 + 64 + 18 - 6 * 64) * 2**22 / 128),)))


def test_a_unit_beyond_its_rows_keeps_its_mean() -> None:
    """Four rows 10, 20, 30, 40 and max_rows 2: the sum (less the centre) is twice its mean, the count is 2."""
    many = pa.table({"id": [7] * 4, "v": [10, 20, 30, 40]})
    table = hb.table(many, unit="id", max_total=2, columns={"v": hb.between(0, 100)})
    with engine("t", table) as (duck, plan):
        asked = plan("SELECT SUM(v), COUNT(*), COUNT(v) FROM t")
        found = dict(zip([m.counting.value for m in asked.measurements], duck.run(asked).vectors, strict=True))
    assert found == {"sum": (2 * (25 - 50),), "rows": (2,), "values": (2,)}


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
def test_a_unit_in_four_groups_counts_in_exactly_as_many_as_allowed(keep: int) -> None:
    people, groups = 50, ["a", "b", "c", "d"]
    frame = pa.table({"id": [i for i in range(people) for _ in groups], "g": groups * people})
    table = hb.table(frame, unit="id", max_groups=keep, max_rows=1, columns={"g": hb.one_of(*groups)})
    with engine("t", table) as (duck, plan):
        (found,) = duck.run(plan("SELECT g, COUNT(*) FROM t GROUP BY g")).vectors
    assert sum(found) == keep * people
    if keep < 4:
        assert max(found) < people  # chosen by a hash, not always the same groups


def test_undeclared_groups_take_no_place_of_declared_ones() -> None:
    frame = pa.table({"id": [1] * 40, "g": [*(f"x{i}" for i in range(39)), "a"]})
    table = hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"g": hb.one_of("b", "a")})
    with engine("t", table) as (duck, plan):
        assert duck.run(plan("SELECT g, COUNT(*) FROM t GROUP BY g")).vectors == ((0, 1),)


def test_groups_match_declared_values_exactly() -> None:
    frame = pa.table({"id": list(range(9)), "g": ["A", "a", "A ", "", "\u00e9", "e\u0301", None, "A\0", "NULL"]})
    table = hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"g": hb.one_of("A", "\u00e9", None, "")})
    with engine("t", table) as (duck, plan):
        assert duck.run(plan("SELECT g, COUNT(*) FROM t GROUP BY g")).vectors == ((1, 1, 1, 1),)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (pa.array([0.0, -0.0, 1.0, float("nan"), None]), (0.0, 1, None), (2, 1, 2)),
        (pa.array([1, 2, 2, None, 2**63 - 1], pa.int64()), (1.0, 2, 2**63 - 1), (1, 2, 1)),
        (pa.array([1, 2, 2, None, 2**64 - 1], pa.uint64()), (2, None), (2, 1)),
        (pa.array([True, True, False, None, None]), (False, True), (1, 2)),
        (pa.array([0, 1, 1, None, 5], pa.date32()), ("1970-01-02", "1970-01-01"), (2, 1)),
        (pa.array([0, 10**6, None, 1, 2], pa.timestamp("us", "Europe/Paris")), ("1970-01-01 00:00:01",), (1,)),
        (pa.array(["x", "y", "x", None, "z"]).dictionary_encode(), ("x", "z"), (2, 1)),
        (pa.array([Decimal("1.50"), Decimal("2"), None, Decimal("1.5"), None]), (1.5, 2), (2, 1)),
    ],
    ids=["float", "integer", "unsigned", "boolean", "date", "instant", "dictionary", "decimal"],
)
def test_groups_of_every_kind(column: pa.Array, values: tuple[Any, ...], expected: tuple[int, ...]) -> None:
    frame = pa.table({"id": list(range(5)), "g": column})
    table = hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"g": hb.one_of(*values)})
    with engine("t", table) as (duck, plan):
        assert duck.run(plan("SELECT g, COUNT(*) FROM t GROUP BY g")).vectors == (expected,)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**63 - 1, -(2**63), 0, 1, None], pa.int64()),
        pa.array([2**64 - 1, 0, 1, 2, None], pa.uint64()),
        pa.array([127, -128, 100, 100, None], pa.int8()),
        pa.array([Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(0), Decimal(1), None], pa.decimal128(38, 0)),
        pa.array([3e38, float("nan"), float("inf"), -0.0, None], pa.float32()),
    ],
    ids=["int64", "uint64", "int8", "decimal", "float32"],
)
def test_the_widest_values_of_every_type_are_clamped_not_wrapped(column: pa.Array) -> None:
    frame = pa.table({"id": list(range(5)), "v": column})
    table = hb.table(frame, unit="id", max_total=1, columns={"v": hb.between(-1000, 1000)})
    with engine("t", table) as (duck, plan):
        asked = plan("SELECT SUM(v), SUM(-v), SUM(v + v) FROM t")
        for vector in duck.run(asked).vectors:
            assert abs(vector[0]) <= 5 * 2**22


def test_a_uuid_can_name_a_unit() -> None:
    path_table = pa.table({"id": pa.array([uuid.UUID(int=i).bytes for i in (1, 2, 2)], pa.uuid()), "v": [1, 2, 3]})
    table = hb.table(path_table, unit="id", max_total=5)
    with engine("t", table) as (duck, plan):
        assert duck.run(plan("SELECT COUNT(DISTINCT id) FROM t")).vectors == ((2,),)


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMPTZ"])
def test_a_stored_time_outside_the_years_1_to_9999_is_null(tmp_path: Path, kind: str) -> None:
    times = ["2020-01-01", "infinity", "-infinity", "20000-01-01", "0100-01-01 (BC)"]
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        rows = f"SELECT unnest(range(5)) AS id, unnest({times!r}) AS d"
        con.execute(f"CREATE TABLE t AS SELECT id, CAST(d AS {kind}) AS d FROM ({rows})")
    table = hb.table(tmp_path / "t.duckdb", table="t", unit="id", max_total=1)
    assert integers(table, "SELECT COUNT(d) FROM visits") == ((1,),)
    assert integers(table, "SELECT COUNT(DISTINCT d) FROM visits") == ((1,),)


def test_the_order_and_partition_of_rows_do_not_matter() -> None:
    rng = np.random.default_rng(7)  # test data, not noise
    n = 3_000
    frame = pa.table(
        {
            "id": rng.integers(0, 300, n),
            "ward": rng.choice(["A", "B", "C", "D"], n),
            "age": rng.choice([0.1, 0.7, 2.0**53, 1e-9, float("nan")], n),
        }
    )
    shuffled = frame.take(rng.permutation(n))
    pieces = pa.concat_tables([shuffled.slice(i, 100) for i in range(0, n, 100)])
    sql = "SELECT ward, AVG(age), SUM(age), COUNT(*) FROM visits GROUP BY ward"
    columns = {"age": hb.between(0, 128), "ward": hb.one_of("A", "B", "C")}
    bounded: dict[str, Any] = {"max_groups": 2, "max_rows": 2, "columns": columns}
    first = integers(visits(source=frame, **bounded), sql)
    assert integers(visits(source=shuffled, **bounded), sql) == first
    assert integers(visits(source=pieces, **bounded), sql) == first


def test_a_csv_is_read_as_declared(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b'id,ward,age\n01,A,5\n1,"B",x\n2,A,NaN\n3,A\n4,B,1,2\n5,\xff,1\n6,"A\n",7\n,A,1\n7,A,1e999\n')
    text = visits(source=path, types={"id": "text", "age": "number"}, columns={"age": hb.between(0, 10)})
    with engine("visits", text) as (duck, plan):
        asked = plan("SELECT COUNT(DISTINCT id), COUNT(age), COUNT(*) FROM visits")
        found = dict(zip([m.counting.value for m in asked.measurements], duck.run(asked).vectors, strict=True))
    # Kept: 01, 1, 2, 5, 7. Left out: a field short, a field too many, no unit, a quote that its line does not close.
    # x and NaN are NULL, and so is the ward that is not UTF-8.
    assert found == {"units": (5,), "values": (3,), "rows": (5,)}
    assert integers(text, "SELECT COUNT(DISTINCT id) FROM visits WHERE ward <> 'x'") == ((4,),)
    numbers = visits(source=path, types={"id": "integer", "age": "number"}, columns={"age": hb.between(0, 10)})
    assert integers(numbers, "SELECT COUNT(DISTINCT id) FROM visits") == ((4,),)  # 01 is 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"source": "nowhere.parquet"}, "there is no file 'nowhere.parquet'"),
    ({"source": "."}, r"no file of '.*' ends in \.parquet"),
    ({"unit": "idd"}, r"no column 'idd' to be its unit. Did you mean 'id'\?"),
    ({"columns": {"agee": hb.between(0, 1)}}, r"no column 'agee', which is declared. Did you mean 'age'\?"),
    ({"types": {"x": "text"}}, "no column 'x'"),
    ({"columns": {"ward": hb.between(0, 1)}}, "holds values of type text"),
    ({"columns": {"day": hb.between(0, 1)}}, "holds values of type date"),
    ({"columns": {"n": hb.between("2025-01-01", "2025-02-01")}}, "holds values of type integer"),
    ({"types": {"day": "number"}}, "the source says date"),
]


@pytest.mark.parametrize(("changes", "says"), REFUSED, ids=[says[:30] for _, says in REFUSED])
def test_a_declaration_the_source_contradicts_is_refused(changes: dict[str, Any], says: str) -> None:
    duck = DuckDBEngine()
    with pytest.raises(hb.PolicyError, match=says):
        duck.add("visits", visits(**changes))
    duck.close()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("v.csv", "id,v\n1,2\n", "a CSV or a sheet has no types"),
        ("v.csv", "id,,v\n", "must name every column"),
        ("v.csv", "id,ID\n", "same name"),
        ("v.csv", "", "must name every column"),
        ("v.parquet", "not parquet", "cannot be read"),
        ("v.doc", "x", "not a known file type"),
        ("v.xlsx", "x", "cannot be read as a spreadsheet"),
        ("v.duckdb", "x", "which table"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(tmp_path: Path, name: str, content: str, says: str) -> None:
    (tmp_path / name).write_text(content)
    types = {"id": "text"} if "same" in says or "must" in says else {}
    duck = DuckDBEngine()
    with pytest.raises(hb.PolicyError, match=says):
        duck.add("t", hb.table(tmp_path / name, unit="id", types=types))
    duck.close()


def test_a_broken_duckdb_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v.duckdb").write_text("not a database")
    duck = DuckDBEngine()
    with pytest.raises(hb.PolicyError, match="cannot be"):
        duck.add("t", hb.table(tmp_path / "v.duckdb", table="x", unit="id"))
    duck.close()


def test_views_and_generated_columns_are_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as con:
        con.execute("CREATE TABLE base (id INTEGER, v INTEGER)")
        con.execute("CREATE VIEW mixed AS SELECT id, sum(v) OVER () AS v FROM base")
        con.execute("CREATE TABLE made (id INTEGER, v INTEGER GENERATED ALWAYS AS (id + 1))")
    for inner, says in (("mixed", "is a view"), ("made", "generated columns"), ("bas", "Did you mean 'base'")):
        duck = DuckDBEngine()
        with pytest.raises(hb.PolicyError, match=says):
            duck.add("t", hb.table(tmp_path / "v.duckdb", table=inner, unit="id"))
        duck.close()


def test_objects_without_a_declared_type_cannot_be_named() -> None:
    frame = pd.DataFrame({"id": [1, 2], "v": pd.Series([1, "x"], dtype=object)})
    duck = DuckDBEngine()
    assert duck.add("t", hb.table(frame, unit="id")).columns["v"] is Kind.OTHER
    duck.close()
    words = ("integer", "number", "text", "boolean", "date", "timestamp")
    for junk in (1, "x", b"\xff", None, 2**80, float("nan"), "\ud800", object(), True, dt.datetime(2025, 1, 1)):
        odd = {f"v{i}": pd.Series([junk], dtype=object) for i in range(len(words))}
        types = {f"v{i}": word for i, word in enumerate(words)}
        with engine("t", hb.table(pd.DataFrame({"id": [1], **odd}), unit="id", types=types, max_total=1)) as (
            other,
            plan,
        ):
            assert other.run(plan("SELECT COUNT(*) FROM t")).vectors == ((1,),)


def test_a_sealed_engine_opens_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with engine("visits", visits()) as (duck, _):
        con = duck._con.cursor()
        for sql in (
            f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
            f"ATTACH '{tmp_path}/x.db'",
            "INSTALL httpfs",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            "SET enable_external_access = true",
            "SELECT * FROM ROWS",
        ):
            with pytest.raises(duckdb.Error):
                con.execute(sql)


def test_what_an_engine_cannot_do_is_an_incident_without_words() -> None:
    with engine("visits", visits()) as (duck, plan):
        asked = plan(SQL)
        known = duck._known["visits"]
        broken = dict.fromkeys(known.columns, "CAST('secret 4711' AS INTEGER)")
        duck._known["visits"] = replace(known, columns=broken)
        with pytest.raises(hb.EngineError) as caught:
            duck.run(asked)
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_exact_integers_neither_print_nor_pickle() -> None:
    with engine("visits", visits()) as (duck, plan):
        exact = duck.run(plan(SQL))
    assert "not shown" in repr(exact)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(exact)


def test_the_spill_folder_is_this_users_alone_and_goes_with_the_engine() -> None:
    duck = DuckDBEngine()
    folder = Path(duck._folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    duck.close()
    assert not folder.exists()


def test_describe_tells_names_and_kinds_and_no_values(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "v.parquet")
    assert dict(describe(tmp_path / "v.parquet"))["day"] == "date"
    assert set(dict(describe(write_csv(tmp_path / "v.csv"))).values()) == {"text"}
    assert os.listdir(tmp_path)
