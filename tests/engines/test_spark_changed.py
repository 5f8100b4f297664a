"""Spark: a table that is replaced after the look before the charge is read as it was meant, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from engines.footer import changed
from engines.places import answer
from hubbub.engines.spark import engine as engine_of_spark
from hubbub.engines.spark.engine import SparkEngine
from hubbub.errors import EngineError, PolicyError

INT = pa.int32()
ROWS = pa.table({"id": pa.array(range(50), INT), "g": ["a", "b"] * 25, "x": pa.array([7] * 50, INT)})
LIMITS: dict[str, Any] = {"unit": "id", "max_groups": 1, "max_rows": 1, "max_total": 1}
QUESTIONS = ("SELECT COUNT(*) AS n FROM v WHERE x = 7", "SELECT COUNT(DISTINCT id) AS n FROM v")


@pytest.fixture(scope="module")
def theirs(spark: Any) -> Iterator[Any]:
    found = spark.newSession()
    made = "CAST(id AS INT) AS id", "IF(id % 2 = 0, 'a', 'b') AS g", "CAST(7 AS INT) AS x"
    found.range(50).selectExpr(*made).createOrReplaceTempView("rows")
    found.sql("CREATE TABLE kept_rows USING parquet AS SELECT * FROM rows")
    yield found
    found.sql("DROP TABLE kept_rows")


def opened(source: Any) -> SparkEngine:
    engine = SparkEngine()
    engine.add("v", hb.table(source, **LIMITS))
    engine.seal()
    return engine


def answered(engine: SparkEngine) -> list[Any]:
    """The count of each question; None where it fails."""
    desk, found = Desk({"v": hb.table(ROWS, **LIMITS)}), []
    for sql in QUESTIONS:
        (plan,) = desk.plans(sql)
        try:
            found.append(answer(engine, plan, {})[0][0])
        except EngineError:
            found.append(None)
    desk.engine.close()
    return found


# What stands in the table's place, and what the next look before a charge says of it.
CHANGES = {
    "other types": ("TABLE {} USING parquet AS SELECT id, g, IF(id = 1, 'y', '7') AS x FROM rows", "have changed"),
    "a format in which a line hides others": ("TABLE {} USING csv AS SELECT * FROM rows", "format 'csv'"),
    "a view": ("VIEW {} AS SELECT CAST(COUNT(*) OVER () AS INT) AS id, g, x FROM kept_rows", "is a view"),
    "wider types": ("TABLE {} USING parquet AS SELECT id, g, CAST(x AS BIGINT) AS x FROM rows", "have changed"),
    "a column less": ("TABLE {} USING parquet AS SELECT id, g FROM rows", "have changed"),
    "another order": ("TABLE {} USING parquet AS SELECT x, g, id FROM rows", "have changed"),
    "another format": ("TABLE {} USING orc AS SELECT * FROM rows", None),
    "other rows": ("TABLE {} USING parquet AS SELECT * FROM rows WHERE id < 20", None),
}
IN_CI = ("other types", "a format in which a line hides others", "a view")
SOME = [c if c in IN_CI else pytest.param(c, marks=pytest.mark.soak) for c in CHANGES]


@pytest.mark.parametrize("change", SOME)
def test_a_view_holds_the_table_of_the_catalogue_that_was_looked_at(theirs: Any, change: str) -> None:
    """Its files are gone with it: nothing else that has its name is read."""
    text, says = CHANGES[change]
    theirs.sql("CREATE TABLE v_rows USING parquet AS SELECT * FROM rows")
    try:
        engine = opened("spark:v_rows")
        engine.recheck("v")
        theirs.sql("DROP TABLE v_rows")
        theirs.sql(f"CREATE {text.format('v_rows')}")
        assert answered(engine) == [None, None]
        if says is None:
            engine.recheck("v")
            assert answered(engine) == ([20, 20] if change == "other rows" else [50, 50])
        else:
            with pytest.raises(PolicyError, match=says):
                engine.recheck("v")
        engine.close()
    finally:
        theirs.sql(f"DROP {'VIEW' if change == 'a view' else 'TABLE'} IF EXISTS v_rows")


def test_a_table_that_is_replaced_while_it_is_looked_at_is_refused(
    theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its format was told of the one, and the other was read: a CSV passed as a base table."""
    look = engine_of_spark.details

    def details(session: Any, name: str) -> dict[str, str]:
        found = look(session, name)
        if found.get("Provider") == "parquet":
            theirs.sql("DROP TABLE v_rows")
            theirs.sql("CREATE TABLE v_rows USING csv AS SELECT * FROM rows")
        return found

    theirs.sql("CREATE TABLE v_rows USING parquet AS SELECT * FROM rows")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(engine_of_spark, "details", details)
            with pytest.raises(PolicyError, match="was changed while it was looked at"):
                opened("spark:v_rows")
    finally:
        theirs.sql("DROP TABLE IF EXISTS v_rows")


FILES: dict[str, tuple[pa.Table, list[Any]]] = {
    "texts": (ROWS.set_column(2, "x", pa.array(["7"] * 49 + ["seven"])), [None, 50]),
    "wider numbers": (ROWS.set_column(2, "x", pa.array([7] * 50)), [None, 50]),
    "a unit that is a text": (ROWS.set_column(0, "id", pa.array(["q"] * 50)), [None, None]),
    "a column less": (ROWS.select(["id", "g"]), [0, 50]),
    "another order": (ROWS.select(["x", "g", "id"]), [50, 50]),
    "other rows": (ROWS.slice(0, 20), [20, 20]),
}
"""Another file in the folder of a data frame, and what is read of it: columns by their names, of the types that the
frame has. One of another type is an error, whatever its values; one that is missing is NULL."""


@pytest.mark.parametrize("change", FILES)
def test_a_file_of_a_frame_is_read_by_the_types_of_the_frame(theirs: Any, tmp_path: Path, change: str) -> None:
    path = tmp_path / "rows"
    path.mkdir()
    pq.write_table(ROWS, path / "a.parquet")
    engine = opened(theirs.read.parquet(str(path)))
    after, truth = FILES[change]
    pq.write_table(after, path / "a.parquet")
    assert answered(engine) == truth
    engine.close()


def marked(path: Path, bits: int) -> None:
    """Say of the whole numbers of a Parquet file that they are of so many bits."""

    def say(footer: Any) -> None:
        for column in (one for one in footer[2][1][1] if one[4][1] == b"id"):
            column[10] = (12, {10: (12, {1: (3, bytes([bits])), 2: (1, True)})})

    changed(path, say)


def moments(unit: str, last: int) -> pa.Table:
    values = pa.array([0, 1000, last], pa.int64()).view(pa.timestamp(unit))
    return pa.table({"id": pa.array([1, 2, 3], INT), "x": values})


@pytest.mark.parametrize("far", [2000, 2**63 - 1])
@pytest.mark.parametrize("trusted", [False, True])
def test_a_file_of_a_frame_that_is_written_anew_is_looked_at_anew(
    theirs: Any, tmp_path: Path, trusted: bool, far: int
) -> None:
    """Spark lists a frame's files once: by its listing the far moment in the same file was never looked at."""
    pq.write_table(moments("us", 2000), tmp_path / "a.parquet")
    engine = SparkEngine()
    engine.add("v", hb.table(theirs.read.parquet(str(tmp_path)), unit="id", max_total=1, trusted_view=trusted))
    engine.recheck("v")
    pq.write_table(moments("us", 3000), tmp_path / "a.parquet")
    engine.recheck("v")
    pq.write_table(moments("ms", far), tmp_path / "a.parquet")
    if trusted:
        engine.recheck("v")
    else:
        with pytest.raises(PolicyError, match="column 'x' may hold what Spark cannot"):
            engine.recheck("v")
    engine.close()


def test_a_unit_of_a_frame_is_still_as_long_as_its_files_have_it(theirs: Any, tmp_path: Path) -> None:
    """32 bits that are said to be 16: of 1 and 65,537 Spark makes one."""
    path = tmp_path / "a.parquet"
    theirs.sql("SELECT CAST(id AS SMALLINT) AS id, timestamp_micros(id) AS x FROM rows").coalesce(1).write.parquet(
        str(tmp_path / "of_spark")
    )
    (made,) = (tmp_path / "of_spark").glob("*.parquet")
    path.write_bytes(made.read_bytes())
    frame = theirs.read.parquet(str(path))
    assert frame.dtypes[0] == ("id", "smallint")
    engine = SparkEngine()
    engine.add("v", hb.table(frame, unit="id", max_total=1))
    engine.recheck("v")
    pq.write_table(moments("us", 3000), path)
    marked(path, 16)
    with pytest.raises(PolicyError, match=r"its files have changed.*Nothing was charged"):
        engine.recheck("v")
    engine.close()
