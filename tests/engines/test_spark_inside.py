"""Spark: what stands inside a column, under another name, or in a file that has changed, is looked at as well.

A mend looked at the columns of a file alone, by their names, once: one row decided whether there was an answer, or two
people were one, where a frame takes a field out of a column, or Spark reads columns by their places.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

import hubbub as hb
from engines.test_spark_files import FAR, asked, moments, written
from hubbub.engines.spark.files import Files
from hubbub.engines.spark.frames import _form, _Leaf, _read_by_rows
from hubbub.engines.spark.session import FILTERED, PRUNED

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")

COUNTED = "SELECT COUNT(*) AS n FROM v WHERE x IS NOT NULL OR id > 0"
UNITS = "SELECT COUNT(DISTINCT u) AS n FROM v"


@pytest.fixture
def theirs(spark: Any) -> Any:
    return spark.newSession()


def struct(column: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([column], ["x"])


INSIDE = {"struct": (struct, "c.x"), "both": (lambda x: struct(struct(x)), "c.x.x")}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize(("unit", "fine"), [("ms", False), ("us", True)])
def test_a_moment_that_is_taken_out_of_a_column_decides_nothing(
    theirs: Any, tmp_path: Path, inside: str, unit: str, fine: bool
) -> None:
    made, taken = INSIDE[inside]
    for last in (1, FAR):
        column = made(moments(unit, None, last))
        frame = theirs.read.parquet(written(tmp_path / str(last), "parquet", pa.table({"id": [1, 2, 3], "c": column})))
        assert asked(frame.selectExpr("id", f"{taken} AS x"), COUNTED) == (3 if fine else "PolicyError")
        assert asked(frame, "SELECT COUNT(*) AS n FROM v") == 3  # where nobody can read it


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize(
    ("form", "stored", "told", "fine"),
    [
        ("parquet", pa.array([0, 256], pa.int32()), "TINYINT", False),
        ("parquet", pa.array([0, 256], pa.int32()), "BIGINT", True),
        ("orc", pa.array([1, 2**32 + 1], pa.int64()), "INT", False),
    ],
)
def test_a_number_that_is_taken_out_of_a_column_is_as_wide_as_it_is_stored(
    theirs: Any, tmp_path: Path, inside: str, form: str, stored: pa.Array, told: str, fine: bool
) -> None:
    made, taken = INSIDE[inside]
    kind = {"struct": f"STRUCT<x: {told}>", "both": f"STRUCT<x: STRUCT<x: {told}>>"}[inside]
    folder = written(tmp_path / "rows", form, pa.table({"n": [1, 2], "c": made(stored)}))
    frame = theirs.read.schema(f"n BIGINT, c {kind}").format(form).load(folder)
    assert asked(frame.selectExpr("n", f"{taken} AS u"), UNITS, unit="u") == (2 if fine else "PolicyError")


def test_columns_that_orc_reads_by_their_places_are_as_wide_as_they_are_stored(theirs: Any, tmp_path: Path) -> None:
    ids = pa.array([1, 2**32 + 1], pa.int64())
    for names in (("_col0", "_col1"), ("n", "u")):
        folder = written(tmp_path / names[0], "orc", pa.table(dict(zip(names, (ids, [1, 2]), strict=True))))
        reader = theirs.read.schema("u INT, n BIGINT")
        assert asked(reader.orc(folder), UNITS, unit="u") == "PolicyError"
        assert asked(theirs.read.orc(folder), "SELECT COUNT(*) AS n FROM v", unit=names[0]) == 2
        by_place = reader.option("orc.force.positional.evolution", "true").orc(folder)
        assert asked(by_place, UNITS, unit="u") == "PolicyError"


def test_columns_that_are_read_by_their_numbers_are_refused(theirs: Any, tmp_path: Path) -> None:
    kinds = [pa.field("other", pa.int32(), metadata={"PARQUET:field_id": "1"}), pa.field("n", pa.int64())]
    folder = written(tmp_path / "rows", "parquet", pa.table([[0, 256], [1, 2]], schema=pa.schema(kinds)))
    types = theirs._jvm.org.apache.spark.sql.types.DataType
    told = '{"type":"struct","fields":[{"name":"u","type":"byte","nullable":true,"metadata":{"parquet.field.id":1}}]}'
    reader = theirs.read
    reader._jreader = reader._jreader.schema(types.fromJson(told))
    theirs.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    assert asked(reader.parquet(folder), UNITS, unit="u") == "PolicyError"


@pytest.mark.parametrize("name", ["t[1]", "t{1}", "t*", "t?", "t 1", "t%5B"])
def test_a_file_is_looked_at_whatever_it_is_called(theirs: Any, tmp_path: Path, name: str) -> None:
    """A name that Spark takes for a pattern hid what stands in the file; of two such files nothing was answered."""
    table = pa.table({"u": pa.array([0, 256], pa.int32()), "n": [1, 2]})
    folder = written(tmp_path / "rows", "parquet", table, name)
    assert asked(theirs.read.schema("u TINYINT, n BIGINT").parquet(folder), UNITS, unit="u") == "PolicyError"
    written(tmp_path / "rows", "parquet", table, f"{name} too")
    assert asked(theirs.read.parquet(folder), "SELECT COUNT(*) AS n FROM v", unit="n", max_total=2) == 4


def test_each_of_a_table_s_files_of_several_types_is_looked_at(theirs: Any, tmp_path: Path) -> None:
    """Of such files there is no one schema, and a table's name was passed by."""
    for wide, answer in ((pa.int32(), 3), (pa.int64(), "PolicyError")):
        folder = written(tmp_path / str(wide), "orc", pa.table({"n": [1], "u": pa.array([1], pa.int16())}))
        written(tmp_path / str(wide), "orc", pa.table({"n": [2, 3], "u": pa.array([2, 2**31 - 1], wide)}), "b")
        theirs.sql(f"CREATE TABLE several (n BIGINT, u INT) USING orc LOCATION '{folder}'")
        try:
            assert asked("spark:several", UNITS, unit="n") == answer
        finally:
            theirs.sql("DROP TABLE several")


def test_a_file_that_has_changed_is_looked_at_anew(theirs: Any, tmp_path: Path) -> None:
    folder = written(tmp_path / "rows", "parquet", pa.table({"id": [1, 2, 3], "x": moments("us", None, 1)}))
    theirs.sql(f"CREATE TABLE changed (id BIGINT, x TIMESTAMP_NTZ) USING parquet LOCATION '{folder}'")
    declared = hb.table("spark:changed", unit="id", max_total=1)
    try:
        with hb.Session({"v": declared}, budget=hb.Budget(10**9), ledger=None) as session:
            assert session.sql(COUNTED, epsilon=10**6).rows() == [(3,)]
            written(tmp_path / "rows", "parquet", pa.table({"id": [1, 2, 3], "x": moments("ms", None, FAR)}))
            with pytest.raises(hb.PolicyError, match="whose column 'x' may hold what Spark cannot"):
                session.sql(COUNTED + " OR id > 1", epsilon=10**6)
    finally:
        theirs.sql("DROP TABLE changed")


@pytest.mark.parametrize(("kind", "fine"), [("MILLIS", False), ("MICROS", True)])
def test_the_least_moment_that_spark_has_written_decides_nothing(
    theirs: Any, tmp_path: Path, kind: str, fine: bool
) -> None:
    """Of it Spark makes milliseconds that it cannot read."""
    theirs.conf.set("spark.sql.parquet.outputTimestampType", f"TIMESTAMP_{kind}")
    for least in ("0", "-9223372036854775807L - 1L"):
        made = theirs.range(3).selectExpr("id", f"timestamp_micros(if(id = 2, {least}, id)) AS x")
        made.coalesce(1).write.parquet(str(tmp_path / least))
        frame = theirs.read.parquet(str(tmp_path / least))
        assert asked(frame, COUNTED) == (3 if fine else "PolicyError")
        assert asked(frame.drop("x"), "SELECT COUNT(*) AS n FROM v") == 3


def test_rows_that_hide_what_they_are_read_from_are_refused(theirs: Any, tmp_path: Path) -> None:
    theirs.sparkContext.setCheckpointDir(str(tmp_path / "kept"))
    for more in ("", "," * 25_000):
        (tmp_path / "t.csv").write_text(f"a,1\nb,2\nc,3{',' if more else ''}{more}\n")
        frame = theirs.read.schema("x STRING, id BIGINT").csv(str(tmp_path / "t.csv"))
        kept = "PolicyError"
        for hidden in (
            frame.checkpoint(eager=False),
            frame.localCheckpoint(eager=False),
            theirs.createDataFrame(frame.rdd, frame.schema),
            theirs.createDataFrame(
                theirs.sparkContext.textFile(str(tmp_path)).map(lambda t: (t, 1)), "x STRING, id INT"
            ),
        ):
            assert asked(hidden, COUNTED) == kept


@pytest.mark.parametrize("odd", [False, True])
def test_rows_that_are_made_anew_for_each_question_are_refused_until_they_are_kept(theirs: Any, odd: bool) -> None:
    """A row of an RDD, or of a list, ended every question, moved another's out, or was another's."""
    context, kinds = theirs.sparkContext, "id BIGINT, x STRING"
    texts = context.parallelize([("1", "a"), ("2", "b"), ("three" if odd else "3", "c")])
    numbered = context.parallelize([0] * odd + [1, 2, 3], 1).zipWithIndex().filter(lambda row: row[1] < 2)
    far = Decimal("1e38") if odd else Decimal(2)
    for made in (
        theirs.createDataFrame(texts.map(lambda row: (int(row[0]), row[1])), kinds),
        theirs.createDataFrame(numbered.map(lambda row: (row[0],)), "id BIGINT"),
        theirs.createDataFrame([(1, (Decimal(1),)), (2, (far,))], "id BIGINT, c STRUCT<x: DECIMAL(38, 0)>"),
        theirs.createDataFrame([(1, "a"), (2,) if odd else (2, "b")], kinds, verifySchema=False),
        theirs.createDataFrame([(1,), (2**32 + 1 if odd else 2,)], "id INT", verifySchema=False),
        theirs.createDataFrame([("1",), (1 if odd else "2",)], "id STRING", verifySchema=False),
        theirs.createDataFrame([(16777216.0,), (16777217.0 if odd else 2.0,)], "id FLOAT"),
        theirs.createDataFrame([], kinds),
    ):
        with pytest.raises(hb.PolicyError, match=r"localCheckpoint.*Parquet.*Arrow.*Nothing was charged"):
            hb.Session({"v": hb.table(made, unit="id", max_total=1)}, budget=hb.Budget(1), ledger=None)
    rows = context.parallelize([("a", 1), ("b", 2)])
    kept = theirs.createDataFrame(rows.union(rows).distinct(), "x STRING, id INT").localCheckpoint()
    assert asked(kept, COUNTED) == 2


def test_an_arrow_table_is_rows_in_memory_while_it_is_small(theirs: Any) -> None:
    small = pa.table({"id": [1, 2], "x": pa.array([Decimal(1), Decimal(2)], pa.decimal128(38, 0))})
    assert asked(theirs.createDataFrame(small), COUNTED) == 2
    theirs.conf.set("spark.sql.execution.arrow.localRelationThreshold", "0")
    large = theirs.createDataFrame(small)
    assert asked(large, COUNTED) == "PolicyError"
    assert asked(large.localCheckpoint(), COUNTED) == 2


def test_a_folder_of_a_parted_table_is_a_table_without_parts(theirs: Any, tmp_path: Path) -> None:
    """It has no column that folders name, so there is no type to guess."""
    theirs.range(4).selectExpr("id", "id % 2 AS part").write.partitionBy("part").parquet(str(tmp_path / "rows"))
    assert asked(theirs.read.parquet(str(tmp_path / "rows")), "SELECT COUNT(*) AS n FROM v") == "PolicyError"
    assert asked(theirs.read.parquet(str(tmp_path / "rows" / "part=1")), "SELECT COUNT(*) AS n FROM v") == 2


def test_a_column_that_is_left_out_of_what_is_cached_decides_nothing(theirs: Any, tmp_path: Path) -> None:
    """Spark reads all columns of what it is to keep, also of one that was cached since the table was declared."""
    counted = "SELECT COUNT(*) AS n FROM v"
    for key in (FILTERED["parquet"], PRUNED):
        theirs.conf.set(key, "false")
    for last in (1, FAR):
        table = pa.table({"id": [1, 2, 3], "x": moments("ms", None, last)})
        frame = theirs.read.parquet(written(tmp_path / str(last), "parquet", table))
        kept = frame.select("id").filter("id < 9").cache()
        assert asked(kept, counted) == asked(kept.filter("id > 0").cache(), counted) == 3
        short = frame.drop("x")
        with hb.Session(
            {"v": hb.table(short, unit="id", max_total=1)}, budget=hb.Budget(10**9), ledger=None
        ) as session:
            assert session.sql(counted, epsilon=10**6).rows() == [(3,)]
            frame.cache()
            try:
                assert asked(short, counted) == "PolicyError"
                with pytest.raises(hb.PolicyError, match="whose column 'x' may hold what Spark cannot"):
                    session.sql(f"{counted} WHERE id > 0", epsilon=10**6)
            finally:
                frame.unpersist()


def test_what_hive_s_own_classes_read_is_refused() -> None:
    """With convertMetastoreParquet = false a far decimal was an error; of ORC two people were one INT."""
    theirs = MagicMock()
    for name, fine in (("execution.datasources.orc.OrcFileFormat", True), ("hive.orc.OrcFileFormat", False)):
        theirs.getClass().getName.return_value = f"org.apache.spark.sql.{name}"
        assert (_form(theirs) == "orcfileformat") == fine
    why = _read_by_rows(_Leaf("HiveTableRelation", "", {}, {"id": "BIGINT"}, Files("")))
    assert "convertMetastoreParquet" in str(why)
