"""Frames that hand out streams of Arrow, and what is no frame: each reading has all rows, and no row decides which."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.engines.duckdb.sources import Frame, hold
from hubbub.tables.kinds import Kind
from people import HUGE, session

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


class Failing:
    """A frame that somebody else wrote, whose first reading breaks off."""

    def __init__(self) -> None:
        self.failures = 1

    def batches(self) -> Iterator[pa.RecordBatch]:
        for i in range(10):
            if i == 6 and self.failures:
                self.failures -= 1
                raise OSError("the network is down")
            ids = pa.array(range(i * 100, i * 100 + 100))
            yield pa.record_batch([ids, ids], schema=SCHEMA)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(SCHEMA, self.batches()).__arrow_c_stream__()


def declared(frame: Any, **options: Any) -> hb.PrivateTable:
    return hb.table(frame, **{"unit": "id", "max_rows": 1, "max_groups": 1, **options})


def test_a_stream_that_broke_off_is_read_from_its_beginning() -> None:
    """Its rest, of no rows, answered all questions that came then, and each was charged."""
    with session(epsilon=HUGE**3, t=declared(Failing())) as s:
        with pytest.raises(hb.EngineError):
            s.sql("SELECT COUNT(*) AS n FROM t", epsilon=HUGE)
        for limit in (5000, 6000):
            assert s.sql(f"SELECT COUNT(*) AS n FROM t WHERE n < {limit}", epsilon=HUGE).rows() == [(1000,)]


ONCE = pa.RecordBatchReader.from_batches(SCHEMA, iter(()))
NO_FRAMES: dict[str, tuple[Any, str]] = {
    "a reader": (ONCE, "it can be read once"),
    "a column of Arrow": (pa.chunked_array([[{"id": 1}, None]]), "it is a column"),
    "a column of pandas": (pd.Series([1], name="id"), "it is a column"),
    "a column of polars": (pl.Series("id", [{"id": 1}]), "it is a column"),
    "no columns of Arrow": (pa.table({}), "it has no columns"),
    "no columns of pandas": (pd.DataFrame(), "it has no columns"),
}


@pytest.mark.parametrize("name", NO_FRAMES)
def test_what_is_no_frame_is_refused_in_words(name: str) -> None:
    frame, says = NO_FRAMES[name]
    with pytest.raises(hb.PolicyError, match=says), session(epsilon=1, t=declared(frame)):
        pass


def test_objects_of_polars_are_no_units_and_no_values() -> None:
    """They are handed out as places in memory: 300 rows of one person were 300 people."""
    people = [uuid.UUID(int=7)] * 300 + [uuid.UUID(int=i) for i in range(10)]
    frame = pl.DataFrame({"id": people, "n": range(310)})
    assert str(frame.schema["id"]) == "Object"
    with pytest.raises(hb.PolicyError, match="a unit is named by"), session(epsilon=1, t=declared(frame)):
        pass
    with session(epsilon=HUGE, t=declared(frame, unit="n")) as s:
        assert s.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e6).rows() == [(310,)]
        with pytest.raises(hb.QueryError):
            s.sql("SELECT COUNT(id) AS n FROM t", epsilon=1)


class Shapes(pd.DataFrame):
    """A data frame of another package, as GeoPandas has one."""


@pytest.mark.parametrize("odd", [2.5, "x", True, b"x", None])
def test_a_subclass_of_pandas_is_read_value_by_value(odd: Any) -> None:
    """Of all its objects together Arrow made one type: with one person's 2.5 all others' numbers were doubles."""
    declared_as = {"n": Kind.INTEGER}
    columns = [pd.DataFrame({"n": pd.Series([1, 2, 3, *more], dtype="object")}) for more in ((), (odd,))]
    for frame in columns:
        kept = [hold("t", Frame(one), declared_as).table().column("n") for one in (frame, Shapes(frame))]
        assert kept[0].equals(kept[1])
        assert kept[1].to_pylist()[:3] == [1, 2, 3]


def test_objects_that_are_moments_name_no_unit() -> None:
    """With a zone and without one, two objects that differ were one moment."""
    moments = [pd.Timestamp("2024-01-01 10:00"), pd.Timestamp("2024-01-01 10:00", tz="UTC")]
    frame = pd.DataFrame({"id": pd.Series(moments, dtype="object")})
    with (
        pytest.raises(hb.PolicyError, match="could become one unit"),
        session(epsilon=1, t=declared(frame, types={"id": "timestamp"})),
    ):
        pass
