"""Spark ends by itself what has no time left, so that little of it goes on beside the next question of the service."""

from __future__ import annotations

import time
from typing import Any

import pytest

import hubbub as hb
from hubbub.engines.base import Elsewhere
from hubbub.engines.spark.engine import SparkEngine
from people import visits

SLEEPS = "SELECT java_method('java.lang.Thread', 'sleep', id + 600000L) AS s FROM range(0, 4, 1, 1)"


@pytest.fixture
def engine(spark: Any) -> Any:
    declared = visits()
    frame = spark.createDataFrame(declared.source)
    made = SparkEngine()
    made.add("visits", hb.table(frame, unit=declared.unit, columns=declared.columns, max_groups=1, max_rows=1))
    yield made
    made.close()


def active(spark: Any) -> int:
    return len(spark.sparkContext.statusTracker().getActiveJobsIds())


def test_what_runs_is_ended_when_its_time_is_over_and_nothing_begins_after_it(spark: Any, engine: SparkEngine) -> None:
    assert isinstance(engine, Elsewhere)
    assert engine._answers(["WITH t AS (SELECT 1 AS a) SELECT a FROM t"], {}) == [[(1,)]]
    engine.end_earlier()
    engine.limit(2.0)
    began = time.monotonic()
    assert engine._answers([f"WITH t AS ({SLEEPS}) SELECT count(s) AS n FROM t"], {}) is None
    assert time.monotonic() - began < 300  # of the ten minutes that it sleeps
    until = time.monotonic() + 60
    while active(spark) and time.monotonic() < until:
        time.sleep(0.05)
    assert active(spark) == 0
    assert engine._answers(["WITH t AS (SELECT 1 AS a) SELECT a FROM t"], {}) is None
