"""Spark: no part of a file, or of what is cached, is skipped by statistics, which compare in another way than Spark.

With one row more in that part those of everybody else were seen, too.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import hubbub as hb
from engines.test_spark_files import asked, theirs, written
from hubbub.engines.spark.engine import SparkEngine
from hubbub.engines.spark.frames import read_by_rows
from hubbub.engines.spark.session import FILTERED, FRAMES, PRUNED

__all__ = ["theirs"]
pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")
COUNTED = "SELECT COUNT(*) AS n FROM v"
NAN = float("nan")


def rows(others: float, *one: float) -> pa.Table:
    values = [others] * 20 + [-1.0, *one]
    return pa.table({"id": range(len(values)), "x": values})


SKIPPED = [(-0.0, 0.0, "x >= 0"), (-0.0, 0.0, "x = 0D"), (NAN, 10.0, "x > 5"), (NAN, 10.0, "NOT (x <= 5)")]


@pytest.mark.parametrize("sources", ["parquet,orc", pytest.param("", marks=pytest.mark.soak)])
@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_one_row_in_a_file_shows_nobody_else_s(theirs: Any, tmp_path: Path, form: str, sources: str) -> None:
    theirs.conf.set("spark.sql.sources.useV1SourceList", sources)
    for i, (others, one, text) in enumerate(SKIPPED[::2]):
        for more in ((), (one,)):
            made = theirs.createDataFrame(rows(others, *more)).coalesce(1)
            made.write.format(form).save(f"{tmp_path}/{i}{len(more)}")
            frame = theirs.read.format(form).load(f"{tmp_path}/{i}{len(more)}")
            truth = 20 + len(more)
            theirs.conf.set(FILTERED[form], "true")
            for filtered in (frame.filter(text), frame.unionByName(frame).filter(text).drop("x")):
                assert FILTERED[form] in str(read_by_rows(filtered, theirs))
            # What the question says is compared in Spark, also where it is the frame's own column.
            assert asked(frame.withColumn("fits", f.expr(text)), f"{COUNTED} WHERE fits") == truth
            theirs.conf.set(FILTERED[form], "false")
            assert asked(frame.filter(text), COUNTED) == truth


def test_a_filter_that_is_skipped_by_is_told_and_looked_at_again(theirs: Any, tmp_path: Path) -> None:
    frame = theirs.read.parquet(written(tmp_path / "rows", "parquet", rows(1.0))).filter("x > 0")
    declared = {"v": hb.table(frame, unit="id", max_total=1)}
    with pytest.raises(hb.PolicyError, match=f"Set {FILTERED['parquet']} to false.*Nothing was charged"):
        hb.Session(declared, budget=hb.Budget(1), ledger=None)
    theirs.conf.set(FILTERED["parquet"], "false")
    with hb.Session(declared, budget=hb.Budget(10**9), ledger=None) as session:
        assert session.sql(COUNTED, epsilon=10**6).rows() == [(20,)]
        theirs.conf.set(FILTERED["parquet"], "true")
        with pytest.raises(hb.PolicyError, match=FILTERED["parquet"]):
            session.sql(f"{COUNTED} WHERE id >= 0", epsilon=10**6)


@pytest.mark.parametrize(("others", "one", "text"), SKIPPED[1:3])
def test_one_row_in_what_is_cached_shows_nobody_else_s(theirs: Any, others: float, one: float, text: str) -> None:
    """Ours is the setting that counts, unless the filter is cached itself."""
    for more in ((), (one,)):
        first = theirs.createDataFrame(rows(others, *more)).coalesce(1).cache()
        assert asked(first.filter(text), COUNTED) == 20 + len(more)
        again = first.filter(text).cache()
        assert asked(again, COUNTED) == "PolicyError"
        again.unpersist()
        theirs.conf.set(PRUNED, "false")
        again = first.filter(text).cache()
        assert asked(again, COUNTED) == 20 + len(more)
        for kept in (again, first):
            kept.unpersist()
        theirs.conf.set(PRUNED, "true")


def test_files_that_are_read_by_another_session_are_read_by_settings_that_are_allowed(
    theirs: Any, tmp_path: Path
) -> None:
    """A global view brings the settings of the session that made it."""
    other = theirs.newSession()
    frame = other.read.parquet(written(tmp_path / "rows", "parquet", rows(1.0)))
    frame.createOrReplaceGlobalTempView("brought")
    frame.filter("x > 0").createOrReplaceGlobalTempView("brought_filtered")
    theirs.conf.set(FILTERED["parquet"], "false")
    try:
        brought, filtered = (theirs.table(f"global_temp.{name}") for name in ("brought", "brought_filtered"))
        assert asked(brought, COUNTED) == 21
        assert asked(filtered, COUNTED) == "PolicyError"
        for key, (refused, allowed) in FRAMES.items():
            other.conf.set(key, refused.split()[-1])
            assert asked(brought, COUNTED) == "PolicyError"
            other.conf.set(key, allowed)
        other.conf.set(FILTERED["parquet"], "false")
        assert asked(filtered, COUNTED) == 20
    finally:
        for name in ("brought", "brought_filtered"):
            theirs.catalog.dropGlobalTempView(name)


CONDITIONS = [
    "t = 'b'", "t >= 'b'", "t IN ('b', 'c')", "t LIKE 'abc%'", "t IS NULL", "d = DATE '2000-01-02'", "d IS NOT NULL",
    "n > TIMESTAMP '2001-01-01 00:00:00'", "s = 5", "b", "NOT b", "x = 0", "x BETWEEN -1 AND 1", "id = 7", "x = id",
]  # fmt: skip


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_no_condition_of_a_question_is_left_to_a_file_s_statistics(
    theirs: Any, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What WHERE says stands in coalesce(..., FALSE), which Spark hands on to no reader; that a unit is there is."""
    pushed: list[str] = []
    answers = SparkEngine._answers

    def looked(self: SparkEngine, texts: Any, public: Any) -> Any:
        for text in texts if self._session is not None else ():
            plan = self._session.sql(text)._jdf.queryExecution().executedPlan().toString()
            pushed.extend(re.findall(r"PushedFilters: \[([^\]]*)\]", plan))
        return answers(self, texts, public)

    monkeypatch.setattr(SparkEngine, "_answers", looked)
    kinds = "id bigint, t string, d date, n timestamp_ntz, s smallint, b boolean, x double"
    row = (1, "a", dt.date(2000, 1, 1), dt.datetime(2000, 1, 1), 1, True, 1.0)
    theirs.createDataFrame([row], kinds).write.format(form).save(f"{tmp_path}/rows")
    frame = theirs.read.format(form).load(f"{tmp_path}/rows")
    for condition in CONDITIONS:
        asked(frame, f"{COUNTED} WHERE {condition}")
        asked(frame, f"SELECT COUNT(*) AS n FROM (SELECT * FROM v WHERE {condition}) AS w JOIN v USING (id)")
    assert len(pushed) >= 2 * len(CONDITIONS)
    assert {one.strip() for line in pushed for one in line.split(",")} <= {"IsNotNull(id)", ""}
