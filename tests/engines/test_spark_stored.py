"""What a file stores in more bits than Spark reads, or otherwise than it says: such a column names nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from engines.footer import changed
from engines.test_spark_files import asked, written
from hubbub.engines.spark.frames import _BY_PLACE, read_by_rows

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")
UNITS = "SELECT COUNT(*) AS n FROM v"


@pytest.fixture
def theirs(spark: Any) -> Any:
    return spark.newSession()


def decimals(digits: int, scale: int, values: list[int]) -> pa.Array:
    """As Arrow stores them: it checks no digits."""
    parts = b"".join(v.to_bytes(16, "little", signed=True) for v in values)
    return pa.Array.from_buffers(pa.decimal128(digits, scale), len(values), [None, pa.py_buffer(parts)])


def narrowed(path: Path, stored: int, to: int, values: list[int], *, whole: bool) -> str:
    """A file of decimals, written with so many digits, that says it has fewer."""
    table = pa.table({"u": decimals(stored, 0, values)})
    pq.write_table(table, path, store_decimal_as_integer=whole, write_statistics=False)

    def change(footer: Any) -> None:
        column = footer[2][1][1][1]
        column[8] = (column[8][0], to)
        logical = column[10][1][5][1]
        logical[2] = (logical[2][0], to)

    changed(path, change)
    return str(path)


DECIMALS = [(18, 9, True, 32), (18, 9, False, 32), (38, 9, False, 32), (38, 18, False, 64)]
"""Digits that are stored and said, whether as a whole number, and which bit Spark does not read."""


@pytest.mark.parametrize(("stored", "said", "whole", "bit"), DECIMALS)
def test_decimals_in_more_bytes_than_spark_reads_name_nobody(
    theirs: Any, tmp_path: Path, stored: int, said: int, whole: bool, bit: int
) -> None:
    frame = theirs.read.parquet(narrowed(tmp_path / "t.parquet", stored, said, [5, 2**bit + 5, 7], whole=whole))
    assert [int(row[0]) for row in frame.collect()] == [5, 5, 7]
    assert asked(frame, UNITS, unit="u") == "PolicyError"
    assert asked(frame.selectExpr("u AS w"), UNITS, unit="w") == "PolicyError"


@pytest.mark.parametrize("said", [9, 18])
@pytest.mark.parametrize("whole", [True, False])
def test_decimals_in_no_more_bytes_than_that_name_people(theirs: Any, tmp_path: Path, said: int, whole: bool) -> None:
    pq.write_table(pa.table({"u": decimals(said, 0, [5, 6, 7])}), tmp_path / "t", store_decimal_as_integer=whole)
    assert asked(theirs.read.parquet(str(tmp_path / "t")), UNITS, unit="u") == 3


def orc_of(java: Any, path: Path, kind: str, values: list[int]) -> str:
    """A file of one column, written by ORC's own writer, which checks no bits."""
    orc, array = java.org.apache.orc, java.java.lang.reflect.Array
    schema = orc.TypeDescription.fromString(f"struct<u:{kind}>")
    options = orc.OrcFile.writerOptions(java.org.apache.hadoop.conf.Configuration()).setSchema(schema)
    writer = orc.OrcFile.createWriter(java.org.apache.hadoop.fs.Path(str(path)), options)
    batch = schema.createRowBatch()
    column = array.get(batch.getClass().getField("cols").get(batch), 0)
    vector = column.getClass().getField("vector").get(column)
    for i, value in enumerate(values):
        array.setLong(vector, i, value)
    batch.getClass().getField("size").setInt(batch, len(values))
    writer.addRowBatch(batch)
    writer.close()
    return str(path)


@pytest.mark.parametrize("kind", ["int", "date", "bigint"])
@pytest.mark.parametrize("version", ["orc", ""])
def test_numbers_of_orc_in_more_bits_than_spark_reads_name_nobody(
    theirs: Any, tmp_path: Path, kind: str, version: str
) -> None:
    theirs.conf.set("spark.sql.sources.useV1SourceList", version)
    frame = theirs.read.orc(orc_of(theirs._jvm, tmp_path / "t.orc", kind, [5, 2**32 + 5, 7]))
    assert len({row[0] for row in frame.collect()}) == (3 if kind == "bigint" else 2)
    assert asked(frame, UNITS, unit="u") == (3 if kind == "bigint" else "PolicyError")


def days(values: list[int]) -> pa.Array:
    return pa.array(values, pa.int32()).view(pa.date32())


TOLD: dict[str, tuple[str, pa.Array]] = {
    "a moment": ("TIMESTAMP_NTZ '2020-01-01 00:00:00'", days([1, 2, 2**31 - 1])),
    "a moment of a zone": ("TIMESTAMP '2020-01-01 00:00:00'", days([1, 2, 3])),
    "more digits": ("CAST(1 AS DECIMAL(20, 4))", decimals(18, 2, [1, 2, 2**63 - 1])),
    "another scale": ("CAST(1 AS DECIMAL(18, 4))", decimals(16, 2, [5, 6, 5 + 2**62])),
    "fewer bits": ("CAST(1 AS INT)", pa.array([1, 2, 2**31 + 1])),
    "a decimal": ("CAST(1 AS DECIMAL(20, 2))", pa.array([1, 2, 3])),
}


@pytest.mark.parametrize("told", TOLD)
def test_what_a_file_says_of_itself_is_compared_with_what_it_stores(theirs: Any, tmp_path: Path, told: str) -> None:
    """Arrow hands on Spark's words of a file, and Spark believes them: the row that does not fit was an error."""
    made, stored = TOLD[told]
    theirs.sql(f"SELECT CAST(1 AS BIGINT) AS id, {made} AS x").coalesce(1).write.parquet(str(tmp_path / "s"))
    words = pq.read_table(tmp_path / "s").schema.metadata
    whole = told in ("more digits", "another scale")
    table = pa.table({"id": [1, 2, 3], "x": stored}).replace_schema_metadata(words)
    pq.write_table(table, tmp_path / "t", store_decimal_as_integer=whole)
    frame = theirs.read.parquet(str(tmp_path / "t"))
    assert asked(frame, "SELECT COUNT(*) AS n FROM v WHERE x IS NOT NULL OR id > 0") == "PolicyError"
    assert asked(frame.drop("x"), "SELECT COUNT(*) AS n FROM v") == 3


def test_words_that_fit_what_a_file_stores_are_believed(theirs: Any, tmp_path: Path) -> None:
    theirs.sql(
        "SELECT id, timestamp_micros(id) AS x, CAST(id AS DECIMAL(12, 2)) AS y, array(id) AS z FROM range(3)"
    ).coalesce(1).write.parquet(str(tmp_path / "s"))
    pq.write_table(pq.read_table(tmp_path / "s"), tmp_path / "t", coerce_timestamps="us")
    frame = theirs.read.parquet(str(tmp_path / "t"))
    assert asked(frame, "SELECT COUNT(*) AS n FROM v WHERE x IS NOT NULL AND y < 9") == 3


def test_days_of_another_calendar_name_nobody(theirs: Any, tmp_path: Path) -> None:
    """The 29th of February 1500 was a day of that one alone, and Spark makes the next one of it."""
    table = pa.table({"u": days([-171600 + k for k in range(9)]), "n": range(9)})
    pq.write_table(table, tmp_path / "t")
    mode = "spark.sql.parquet.datetimeRebaseModeInRead"
    theirs.conf.set(mode, "LEGACY")
    frame = theirs.read.parquet(str(tmp_path / "t"))
    assert frame.select("u").distinct().count() == 8
    assert asked(frame, UNITS, unit="u") == "PolicyError"
    theirs.conf.unset(mode)
    frame = theirs.read.option("datetimeRebaseMode", "LEGACY").parquet(str(tmp_path / "t"))
    assert asked(frame, UNITS, unit="u") == "PolicyError"
    assert asked(theirs.read.parquet(str(tmp_path / "t")), UNITS, unit="u") == 9
    said = {"org.apache.spark.version": "2.4.8"}
    pq.write_table(table.replace_schema_metadata(said), tmp_path / "old")
    frame = theirs.read.parquet(str(tmp_path / "old"))
    assert frame.select("u").distinct().count() == 8
    assert asked(frame, UNITS, unit="u") == "PolicyError"
    assert asked(frame, "SELECT COUNT(u) AS n FROM v", unit="n") == 9


def test_types_of_folders_that_were_guessed_stay_guessed(theirs: Any, tmp_path: Path) -> None:
    """What was set when the frame was read decides, and not what is set when it is declared."""
    guess = "spark.sql.sources.partitionColumnTypeInference.enabled"
    theirs.range(4).selectExpr("id", "id % 2 AS ward").write.partitionBy("ward").parquet(str(tmp_path / "t"))
    counted, given = "SELECT COUNT(*) AS n FROM v", theirs.read.schema("id BIGINT, ward INT")
    theirs.conf.set(guess, "true")
    guessed = [theirs.read.parquet(str(tmp_path / "t")), theirs.read.schema("id BIGINT").parquet(str(tmp_path / "t"))]
    theirs.conf.set("spark.sql.sources.useV1SourceList", "")
    guessed.append(theirs.read.parquet(str(tmp_path / "t")))
    theirs.conf.set(guess, "false")
    for frame in guessed:
        assert dict(frame.dtypes).get("ward", "int") == "int"
        expected = "PolicyError" if "ward" in frame.columns else 4
        assert asked(frame, counted) == expected
    for version in ("parquet", ""):
        theirs.conf.set("spark.sql.sources.useV1SourceList", version)
        assert asked(given.parquet(str(tmp_path / "t")), counted) == 4
        assert asked(theirs.read.parquet(str(tmp_path / "t")), counted) == 4


def test_the_place_of_a_row_in_its_file_is_not_a_column(theirs: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [4, 5, 6]}), tmp_path / "t")
    frame = theirs.read.schema("id BIGINT, _tmp_metadata_row_index BIGINT").parquet(str(tmp_path / "t"))
    assert [row[1] for row in frame.collect()] == [0, 1, 2]
    assert asked(frame, "SELECT COUNT(*) AS n FROM v") == "PolicyError"


WHOLE = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
}
READ = [
    "SMALLINT",
    "INT",
    "BIGINT",
    "DECIMAL(3, 0)",
    "DECIMAL(5, 0)",
    "DECIMAL(10, 0)",
    "DECIMAL(12, 2)",
    "DECIMAL(20, 0)",
    "DECIMAL(22, 2)",
]


def test_a_type_that_is_told_is_one_that_can_be_read(theirs: Any, tmp_path: Path) -> None:
    """Of 36 pairs Spark could not read a row, so that a file of one person's was an error for everybody."""
    whole = {name: pa.array([1, 2, 3], kind) for name, kind in WHOLE.items()}
    stored = whole | {f"decimal{n}": decimals(n, 0, [1, 2, 3]) for n in (4, 9, 18, 20)}
    allowed = 0
    for name, values in stored.items():
        pq.write_table(pa.table({"x": values, "u": ["a", "b", "c"]}), tmp_path / name)
        for told in READ:
            frame = theirs.read.schema(f"x {told}, u STRING").parquet(str(tmp_path / name))
            if read_by_rows(frame, theirs) is None:
                allowed += 1
                assert [int(row[0]) for row in frame.select("x").collect()] == [1, 2, 3], (name, told)
    path = narrowed(tmp_path / "t.parquet", 18, 9, [5, 6, 7], whole=True)
    assert read_by_rows(theirs.read.schema("u DECIMAL(18, 0)").parquet(path), theirs)
    assert allowed > 20


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("version", [None, ""])
def test_a_file_that_has_grown_is_not_read_by_its_old_length(
    theirs: Any, tmp_path: Path, form: str, version: str | None
) -> None:
    """Spark reads what lies within the length that it has listed: with one person's long text none of 1,000 rows."""
    theirs.conf.set("spark.sql.sources.useV1SourceList", form if version is None else version)
    ids, texts = list(range(1000)), ["a"] * 1000
    folder = written(tmp_path / "rows", form, pa.table({"id": ids, "x": texts}))
    counted, frame = "SELECT COUNT(*) AS n FROM v WHERE x = 'a'", theirs.read.format(form).load(folder)
    declared = hb.table(frame, unit="id", max_total=1)
    with hb.Session({"v": declared}, budget=hb.Budget(10**9), ledger=None) as session:
        assert session.sql(counted, epsilon=10**6).rows() == [(1000,)]
        written(tmp_path / "rows", form, pa.table({"id": [*ids, 1000], "x": [*texts, "z" * 60000]}))
        with pytest.raises(hb.PolicyError, match="changed since the frame was made"):
            session.sql(counted + " OR id > 5000", epsilon=10**6)
    assert asked(frame, counted) == "PolicyError"  # made before, and declared after
    assert asked(theirs.read.format(form).load(folder), counted) == 1000


@pytest.mark.parametrize("by_name", [True, False])
def test_a_bucket_is_not_believed_of_the_name_of_its_file(theirs: Any, tmp_path: Path, by_name: bool) -> None:
    """A row of another bucket's was a person of its own."""
    theirs.sql("DROP TABLE IF EXISTS in_buckets")
    made = theirs.range(40).selectExpr("id", "id AS n").repartition(1)
    made.write.bucketBy(4, "id").option("path", str(tmp_path / "t")).saveAsTable("in_buckets")
    files = sorted((tmp_path / "t").glob("*.parquet"))
    rows = [pq.read_table(file) for file in files]
    for file, one in zip(files, rows, strict=True):
        theirs.createDataFrame([*map(tuple, one.to_pandas().to_numpy().tolist()), (7, 7)], "id LONG, n LONG").coalesce(
            1
        ).write.parquet(str(tmp_path / "o"), mode="overwrite")
        (new,) = (tmp_path / "o").glob("*.parquet")
        file.write_bytes(new.read_bytes())
        for check in file.parent.glob(".*.crc"):
            check.unlink()
    theirs.sql("REFRESH TABLE in_buckets")
    try:
        if by_name:
            assert asked("spark:in_buckets", "SELECT COUNT(DISTINCT id) AS n FROM v") == 40
        else:
            counted = "SELECT COUNT(*) AS n FROM (SELECT id, COUNT(*) AS c FROM v GROUP BY id)"
            assert asked(theirs.table("in_buckets"), counted) == "PolicyError"
            theirs.conf.set("spark.sql.sources.bucketing.enabled", "false")
            assert asked(theirs.table("in_buckets"), counted) == 40
    finally:
        theirs.sql("DROP TABLE in_buckets")


@pytest.mark.parametrize("kind", ["VARCHAR(3)", "CHAR(3)"])
@pytest.mark.parametrize("by_name", [True, False])
def test_orc_cuts_no_text_of_a_length(theirs: Any, tmp_path: Path, kind: str, by_name: bool) -> None:
    """Where VARCHAR(n) is a type, 'abcd' and 'abce' were one person."""
    folder = written(tmp_path / "rows", "orc", pa.table({"u": ["abcd", "abce", "x"], "n": [1, 2, 3]}))
    theirs.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    theirs.sql("DROP TABLE IF EXISTS of_a_length")
    try:
        theirs.sql(f"CREATE TABLE of_a_length (u {kind}, n BIGINT) USING orc LOCATION '{folder}'")
        if by_name:
            assert asked("spark:of_a_length", UNITS, unit="u") in (3, "PolicyError")
        else:
            assert asked(theirs.table("of_a_length"), UNITS, unit="u") == "PolicyError"
    finally:
        theirs.sql("DROP TABLE IF EXISTS of_a_length")


def test_columns_by_their_places_are_noticed_when_they_are_switched_on(theirs: Any, tmp_path: Path) -> None:
    folder, by_place = written(tmp_path / "rows", "orc", pa.table({"id": [1, 2, 3], "x": [5, 6, 7]})), _BY_PLACE
    declared = hb.table(theirs.read.schema("id BIGINT, y BIGINT").orc(folder), unit="id", max_total=1)
    with hb.Session({"v": declared}, budget=hb.Budget(10**9), ledger=None) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM v WHERE y IS NOT NULL", epsilon=10**6).rows() == [(0,)]
        theirs.conf.set(by_place, "true")
        with pytest.raises(hb.PolicyError, match=by_place):
            session.sql("SELECT COUNT(*) AS n FROM v WHERE y IS NOT NULL OR id < 0", epsilon=10**6)
