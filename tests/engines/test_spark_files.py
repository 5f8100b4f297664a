"""Spark: no value of a file makes reading fail for one person, or makes two people one; nor what a frame is read from.

Spark's own types are narrower than those of the formats that it reads: one row decided whether there was an answer.
"""

from __future__ import annotations

import datetime as dt
import os
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

import hubbub as hb
from engines.footer import changed
from hubbub.engines.spark.files import _fails, _of_parquet

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")

FAR, DAY_0 = 2**63 - 1, 2_440_588


@pytest.fixture
def theirs(spark: Any) -> Any:
    return spark.newSession()


def asked(source: Any, sql: str, **options: Any) -> Any:
    """The answer; or the word of a refusal."""
    declared = hb.table(source, **{"unit": "id", "max_total": 1, **options})
    try:
        with hb.Session({"v": declared}, budget=hb.Budget(10**9), ledger=None) as session:
            ((number,),) = session.sql(sql, epsilon=10**6).rows()
            return number
    except (hb.PolicyError, hb.EngineError) as error:
        return type(error).__name__


def moments(unit: str, zone: str | None, last: int) -> pa.Array:
    return pa.array([0, 1000, last], pa.int64()).view(pa.timestamp(unit, zone))


def decimals(digits: int, last: int) -> pa.Array:
    """As Arrow stores them: it checks no digits."""
    parts = b"".join(v.to_bytes(16, "little", signed=True) for v in (1, 2, last))
    return pa.Array.from_buffers(pa.decimal128(digits, 0), 3, [None, pa.py_buffer(parts)])


Made = Callable[[int], pa.Array]
"""A column whose last value is so large."""
COLUMNS: dict[str, tuple[str, Made, int, bool]] = {
    "milliseconds": ("parquet", lambda last: moments("ms", None, last), FAR, False),
    "milliseconds of a zone": ("parquet", lambda last: moments("ms", "UTC", last), FAR, False),
    "microseconds": ("parquet", lambda last: moments("us", None, last), FAR, True),
    "38 digits": ("parquet", lambda last: decimals(38, last), 2**127 - 1, False),
    "18 digits": ("parquet", lambda last: decimals(18, last), 10**18 - 1, True),
    "whole numbers of 64 bits": ("parquet", lambda last: pa.array([0, 1, last], pa.uint64()), 2**64 - 1, True),
    "moments of ORC": ("orc", lambda last: moments("ms", None, last), FAR, False),
    "seconds of ORC": ("orc", lambda last: moments("s", None, last), 10**15, False),
    "decimals of ORC": ("orc", lambda last: decimals(9, last), 10**12, False),
}
"""How a column is stored, a value of one person's, and whether Spark can hold every one."""


def written(folder: Path, form: str, table: pa.Table, name: str = "a") -> str:
    folder.mkdir(exist_ok=True)
    {"parquet": pq.write_table, "orc": orc.write_table}[form](table, str(folder / f"{name}.{form}"))
    return str(folder)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("column", COLUMNS)
def test_no_value_of_a_column_decides_whether_there_is_an_answer(
    theirs: Any, tmp_path: Path, column: str, by_name: bool
) -> None:
    form, made, worst, fine = COLUMNS[column]
    answers, name = [], f"of_{os.getpid()}_{abs(hash((column, by_name)))}"
    for last in (1, worst):
        table = pa.table({"id": [1, 2, 3], "x": made(last), "n": [1, 2, 3]})
        source: Any = theirs.read.format(form).load(written(tmp_path / str(last), form, table))
        kind = dict(source.dtypes)["x"]
        if by_name:
            folder = tmp_path / str(last)
            theirs.sql(f"CREATE TABLE {name} (id BIGINT, x {kind}, n BIGINT) USING {form} LOCATION '{folder}'")
            source = f"spark:{name}"
        sql = "SELECT COUNT(*) AS n FROM v WHERE x IS NOT NULL OR n > 0"
        answers.append([asked(source, sql), asked(source, "SELECT COUNT(DISTINCT x) AS n FROM v", unit="x")])
        if by_name:
            theirs.sql(f"DROP TABLE {name}")
        else:
            assert asked(source.drop("x"), "SELECT COUNT(*) AS n FROM v") == 3
    assert answers[0][0] == answers[1][0] == (3 if fine else "PolicyError")
    assert answers[1][1] == (3 if fine else "PolicyError")


def moments_of_96_bits(path: Path, nanoseconds: tuple[int, ...]) -> str:
    """A file whose moments are so many nanoseconds after each other."""
    days = [dt.datetime(2020, 1, d) for d in range(1, len(nanoseconds) + 1)]
    table = pa.table({"id": range(len(days)), "at": pa.array(days, pa.timestamp("ns"))})
    pq.write_table(
        table, path, use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none",
        write_statistics=False,
    )  # fmt: skip
    whole = path.read_bytes()
    for day, n in zip(days, nanoseconds, strict=True):
        stored = struct.pack("<qi", 0, (day - dt.datetime(1970, 1, 1)).days + DAY_0)
        assert whole.count(stored) == 1
        whole = whole.replace(stored, struct.pack("<qi", n, DAY_0))
    path.write_bytes(whole)
    return str(path)


def test_moments_that_spark_makes_one_name_nobody(theirs: Any, tmp_path: Path) -> None:
    frame = theirs.read.parquet(moments_of_96_bits(tmp_path / "t.parquet", (0, 1, 2)))
    counted = "SELECT COUNT(DISTINCT at) AS n FROM v"
    assert [row[0] for row in frame.selectExpr("count(DISTINCT at)").collect()] == [1]
    assert asked(frame, counted, unit="at") == "PolicyError"
    assert asked(frame, counted, unit="at", trusted_view=True) == "PolicyError"
    assert asked(frame, "SELECT COUNT(at) AS n FROM v") == 3


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_what_spark_has_written_it_can_read(theirs: Any, tmp_path: Path, form: str) -> None:
    """Of three microseconds it makes three moments of 96 bits, or of nanoseconds."""
    made = "id", "timestamp_micros(id) AS at", "CAST(id AS DECIMAL(38, 0)) AS x"
    theirs.range(3).selectExpr(*made).coalesce(1).write.format(form).save(str(tmp_path / "rows"))
    frame = theirs.read.format(form).load(str(tmp_path / "rows"))
    for unit in ("id", "at", "x"):
        assert asked(frame, f"SELECT COUNT(DISTINCT {unit}) AS n FROM v WHERE x < 9", unit=unit) == 3
    if form == "parquet":  # Arrow hands on that Spark wrote them, and checks no digits
        (file,) = (tmp_path / "rows").glob("*.parquet")
        again = pq.read_table(file)
        assert b"org.apache.spark.version" in (again.schema.metadata or {})
        pq.write_table(again.set_column(2, "x", decimals(38, 2**127 - 1)), tmp_path / "again.parquet")
        again = theirs.read.parquet(str(tmp_path / "again.parquet"))
        assert asked(again, "SELECT COUNT(*) AS n FROM v WHERE x < 9") == "PolicyError"


def test_what_a_frame_does_not_read_does_not_matter(theirs: Any, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "at": moments("ms", None, FAR), "n": [1, 2, 3]})
    frame = theirs.read.parquet(written(tmp_path / "rows", "parquet", table))
    counted = "SELECT COUNT(*) AS n FROM v WHERE n > 0"
    theirs.conf.set("spark.sql.parquet.filterPushdown", "false")
    short = frame.select("id", "n")
    for fine in (
        short,
        frame.filter("n > 0").drop("at"),
        frame.withColumnRenamed("at", "then").drop("then"),
        short.filter("id IS NOT NULL").select("*"),
    ):
        assert asked(fine, counted) == 3
    for bad in (frame, frame.filter("at IS NOT NULL").drop("at"), frame.union(frame).drop("at")):
        assert asked(bad, counted, max_total=2) == "PolicyError"


@pytest.mark.parametrize(("form", "ending"), [("parquet", "parq"), ("parquet", "data"), ("orc", "orc")])
def test_files_of_several_types_are_refused_whatever_they_are_called(
    theirs: Any, tmp_path: Path, form: str, ending: str
) -> None:
    """A unit that is NULL in all rows of the one of other types: it is not read, until there is somebody in it."""
    for somebody in (None, 9):
        folder = tmp_path / str(somebody)
        written(folder, form, pa.table({"id": [1, 2], "x": [1, 2]}))
        ids = pa.array([None, somebody], pa.int64())
        written(folder, form, pa.table({"id": ids, "x": ["one", "two"]}), "b")
        for file in folder.iterdir():
            file.rename(file.with_suffix(f".{ending}"))
        frame = theirs.read.schema("id BIGINT, x BIGINT").format(form).load(str(folder))
        assert asked(frame, "SELECT COUNT(x) AS n FROM v") == "PolicyError"


@pytest.mark.parametrize(
    ("form", "stored", "told", "fine"),
    [
        ("parquet", pa.array([0, 256], pa.int32()), "TINYINT", False),  # two people, and one number
        ("parquet", pa.array([0, 256], pa.int32()), "BIGINT", True),
        ("parquet", pa.array([0, 256], pa.int32()), "DOUBLE", True),
        ("parquet", pa.array([0, 2**53 + 1], pa.int64()), "DECIMAL(20, 0)", True),
        ("parquet", pa.array([0.5, 1.5], pa.float32()), "DOUBLE", True),
        ("parquet", pa.array([1, 2**31 - 1], pa.int32()).view(pa.date32()), "TIMESTAMP_NTZ", False),  # beyond them
        ("parquet", pa.array([Decimal(1), Decimal(2)], pa.decimal128(18, 2)), "DECIMAL(20, 4)", False),
        ("parquet", pa.array([Decimal(1), Decimal(2)], pa.decimal128(9, 2)), "DECIMAL(12, 2)", True),
        ("orc", pa.array([1, 2], pa.int64()), "BOOLEAN", False),
        ("orc", pa.array([1, 2**32 + 1], pa.int64()), "INT", False),
        ("orc", pa.array(["1", "1.0"]), "BIGINT", False),
        ("orc", pa.array([1, 2], pa.int32()), "BIGINT", True),
    ],
)
def test_a_type_that_is_narrower_than_the_file_s_is_refused(
    theirs: Any, tmp_path: Path, form: str, stored: pa.Array, told: str, fine: bool
) -> None:
    folder = written(tmp_path / "rows", form, pa.table({"u": stored, "n": [1, 2]}))
    frame = theirs.read.schema(f"u {told}, n BIGINT").format(form).load(folder)
    answer = asked(frame, "SELECT COUNT(DISTINCT u) AS n FROM v", unit="u")
    assert answer == (2 if fine else "PolicyError")
    assert asked(frame.drop("u"), "SELECT COUNT(DISTINCT n) AS n FROM v", unit="n") == 2


@pytest.mark.parametrize("far", [10**18 - 1, 2**63 - 1])
def test_a_decimal_that_is_stored_with_a_digit_more_decides_nothing(theirs: Any, tmp_path: Path, far: int) -> None:
    table = pa.table({"id": [1, 2, 3], "x": decimals(18, far)})
    pq.write_table(table, tmp_path / "t.parquet", store_decimal_as_integer=True)
    counted = "SELECT COUNT(*) AS n FROM v WHERE x IS NOT NULL OR id > 0"
    for told, answer in (("20, 2", "PolicyError"), ("18, 0", 3)):
        frame = theirs.read.schema(f"id BIGINT, x DECIMAL({told})").parquet(str(tmp_path))
        assert asked(frame, counted) == answer


def test_a_line_of_many_values_and_a_row_that_is_left_open_decide_nothing(theirs: Any, tmp_path: Path) -> None:
    """A line of CSV with 20,481 values is an error, and a row of XML that is not closed hides the next ones."""
    schema = "x STRING, id BIGINT"
    for last in ("3", f"3,{',' * 25_000}"):
        (tmp_path / "t.csv").write_text(f"a,1\nb,2\nc,{last}\n")
        frame = theirs.read.schema(schema).csv(str(tmp_path / "t.csv"))
        assert asked(frame, "SELECT COUNT(*) AS n FROM v") == "PolicyError"
    for more in ("", "<row><id>3</id><x>"):
        rows = "".join(f"<row><id>{i}</id><x>a</x></row>{more if i == 2 else ''}\n" for i in range(1, 5))
        (tmp_path / "t.xml").write_text(f"<rows>{rows}</rows>")
        frame = theirs.read.schema(schema).option("rowTag", "row").xml(str(tmp_path / "t.xml"))
        assert asked(frame, "SELECT COUNT(*) AS n FROM v") == "PolicyError"


@pytest.mark.parametrize("form", ["json", "csv", "xml", "text"])
def test_files_of_texts_are_refused_until_they_are_kept(theirs: Any, tmp_path: Path, form: str) -> None:
    """-1 and 255 are one TINYINT of JSON, half a character is a question mark, 1e999999999 is never read to its end."""
    text = {"json": '{"id": 1}\n{"id": 2}\n', "csv": "1\n2\n", "text": "1\n2\n"}.get(form, "<r><id>1</id></r>")
    (tmp_path / "t").write_text(text)
    schema = "id STRING" if form == "text" else "id BIGINT"
    frame = theirs.read.schema(schema).options(rowTag="r").format(form).load(str(tmp_path / "t"))
    counted = "SELECT COUNT(*) AS n FROM v"
    assert asked(frame, counted) == "PolicyError"
    assert asked(frame.localCheckpoint(), counted) == (1 if form == "xml" else 2)
    assert asked(frame, counted, trusted_view=True) == (1 if form == "xml" else 2)


@pytest.mark.parametrize("last", ["1", "Infinity", "1e38"])
def test_objects_that_are_made_decimals_where_they_are_read_are_refused(theirs: Any, last: str) -> None:
    rows, kinds = [(1, Decimal(1)), (2, Decimal(last))], "id BIGINT, x DECIMAL(38, 0)"
    assert asked(theirs.createDataFrame(rows, kinds), "SELECT COUNT(x) AS n FROM v") == "PolicyError"
    whole = pa.table({"id": [1, 2], "x": pa.array([Decimal(1), Decimal(2)], pa.decimal128(38, 0))})
    assert asked(theirs.createDataFrame(whole), "SELECT COUNT(x) AS n FROM v") == 2


@pytest.mark.parametrize("last", ["c", None])
def test_no_null_where_none_can_be_makes_reading_fail_or_is_somebody(theirs: Any, tmp_path: Path, last: Any) -> None:
    """Spark asks no row of a column that is said to have no NULL: a text is an error, a number 0."""
    rows = [(1, "a"), (2, "b"), (3 if last else None, last)]
    never = "id BIGINT NOT NULL, t STRING NOT NULL"
    counted = "SELECT COUNT(*) AS n FROM v WHERE t <> 'z'"
    assert asked(theirs.createDataFrame(rows, never, verifySchema=False), counted) == "PolicyError"
    frame = theirs.createDataFrame(rows, never.replace(" NOT NULL", "")).localCheckpoint()
    assert asked(frame, counted) == (3 if last else 2)
    theirs.sparkContext.setCheckpointDir(str(tmp_path))
    ones = frame.selectExpr("coalesce(id, 9L) AS id", "coalesce(t, 'y') AS t")
    for kept in (ones.checkpoint(), ones.localCheckpoint()):
        assert not kept.schema["t"].nullable
        assert asked(kept, counted) == 3


def test_a_reader_of_which_nothing_is_known_needs_the_steward_s_word(theirs: Any, tmp_path: Path) -> None:
    """A database may raise where a value does not fit, and compares as it likes."""
    theirs._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    reader = theirs.read.format("jdbc").option("url", "jdbc:derby:memory:hubbub;create=true")
    reader = reader.option("driver", "org.apache.derby.jdbc.EmbeddedDriver")
    frame = reader.option("query", "SELECT ibmreqd AS id FROM sysibm.sysdummy1").load()
    assert asked(frame, "SELECT COUNT(*) AS n FROM v") == "PolicyError"
    assert asked(frame, "SELECT COUNT(*) AS n FROM v", trusted_view=True) == 1


def test_no_row_is_counted_by_what_a_file_says_of_itself(theirs: Any, tmp_path: Path) -> None:
    """With this setting Spark answers COUNT(*) by a footer, which says what it likes."""
    folder = written(tmp_path / "rows", "parquet", pa.table({"id": [1, 2]}))
    for form in ("parquet", "orc"):
        theirs.conf.set("spark.sql.sources.useV1SourceList", "")
        theirs.conf.set(f"spark.sql.{form}.aggregatePushdown", "true")
        frame = theirs.read.parquet(folder)
        assert asked(frame, "SELECT COUNT(*) AS n FROM v") == "PolicyError"
        theirs.conf.unset(f"spark.sql.{form}.aggregatePushdown")
        assert asked(frame, "SELECT COUNT(*) AS n FROM v") == 2


def test_a_name_that_looks_like_a_type_hides_none(theirs: Any, tmp_path: Path) -> None:
    name = "at (TIMESTAMP(MICROS,true))"
    pq.write_table(pa.table({name: moments("ms", None, FAR), "b": [1, 2, 3]}), tmp_path / "t.parquet")
    java = theirs._jvm
    place = java.org.apache.hadoop.fs.Path(str(tmp_path / "t.parquet"))
    stored = _of_parquet(java, place, theirs._jsparkSession.sessionState())
    assert _fails("parquetfileformat", "TIMESTAMP", stored.get(name.lower()))
    pq.write_table(pa.table({"at": moments("us", None, 1), "b": [1, 2, 3]}), tmp_path / "t.parquet")
    stored = _of_parquet(java, place, theirs._jsparkSession.sessionState())
    assert not _fails("parquetfileformat", "TIMESTAMP", stored.get("at"))


def test_folders_that_are_read_as_numbers_name_no_unit(theirs: Any, tmp_path: Path) -> None:
    """The folders `g=1` and `g=01` are two people; as an INT they would be one."""
    theirs.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    theirs.conf.set("spark.sql.parquet.filterPushdown", "false")
    rows = theirs.createDataFrame(pa.table({"id": [1, 2, 3], "g": ["1", "2", "01"]}))
    rows.write.partitionBy("g").parquet(str(tmp_path / "t"))
    texts, numbers = (
        theirs.read.schema(f"id BIGINT, g {kind}").parquet(str(tmp_path / "t")) for kind in ("STRING", "INT")
    )
    people = "SELECT COUNT(DISTINCT g) AS n FROM v"
    assert asked(texts, people, unit="g") == 3
    made = numbers.withColumn("g", functions.col("g").cast("bigint"))
    others = theirs.createDataFrame(pa.table({"id": [7, 8], "g": pa.array([7, 8], pa.int32())}))
    others = others.localCheckpoint()
    for merged in (numbers, made, numbers.filter("id > 0").unionByName(numbers), others.unionByName(numbers)):
        assert asked(merged, people, unit="g") == "PolicyError"
    assert asked(numbers, people) == 2
    numbers.cache()
    anew = theirs.read.schema("id BIGINT, g INT").parquet(str(tmp_path / "t"))  # read from what is cached, too
    assert asked(anew, people, unit="g") == "PolicyError"
    numbers.unpersist()


NARROW = {
    (8, True): "TINYINT", (8, False): "SMALLINT", (16, True): "SMALLINT", (16, False): "INT", (32, False): "BIGINT",
}  # fmt: skip
"""Spark's types for whole numbers of so many bits, with a sign or without."""


@pytest.mark.parametrize(("bits", "signed"), NARROW)
def test_whole_numbers_of_which_spark_reads_the_last_bits_name_nobody(
    theirs: Any, tmp_path: Path, bits: int, signed: bool
) -> None:
    """A Parquet file stores them in 32 bits: 1 and 65,537 are two people, and Spark makes one of them."""
    path, kind = tmp_path / "t.parquet", NARROW[bits, signed]
    ids = pa.array([1, 65_537, 2], pa.int32())
    pq.write_table(pa.table({"id": ids, "s": pa.StructArray.from_arrays([ids], ["id"])}), path)

    def marked(footer: Any) -> None:
        columns = [column for column in footer[2][1][1] if column[4][1] == b"id"]
        for column in columns:
            column[10] = (12, {10: (12, {1: (3, bytes([bits])), 2: (1 if signed else 2, signed)})})

    changed(path, marked)
    frame = theirs.read.parquet(str(path))
    assert frame.dtypes[0] == ("id", kind.lower())
    inside = frame.select("s.id")
    people = "SELECT COUNT(DISTINCT id) AS n FROM v"
    two = kind in ("TINYINT", "SMALLINT")
    for one in (frame, frame.withColumn("id", functions.col("id").cast("bigint")), frame.union(frame), inside):
        assert asked(one, people) == ("PolicyError" if two else 3)
    frame.write.parquet(str(tmp_path / "anew"))
    assert asked(theirs.read.parquet(str(tmp_path / "anew")), people) == (2 if two else 3), "Spark has written it"
