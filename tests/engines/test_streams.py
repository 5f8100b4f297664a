"""Frames that hand out streams of Arrow, and what is no frame: each reading has all rows, and no row decides which."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
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
MADE = "makes its rows, and their types, anew"


def narwhals(name: str) -> type:
    """A class of this name as narwhals has one."""
    return type(name, (Failing,), {"__module__": "narwhals.dataframe"})


NO_FRAMES: dict[str, tuple[Any, str]] = {
    "a question to DuckDB": (duckdb.sql("SELECT 1 AS id"), MADE),  # of a file, or of a frame, whose types it finds
    "a frame of narwhals": (narwhals("DataFrame")(), MADE),
    "a subclass of one": (type("Mine", (narwhals("LazyFrame"),), {})(), MADE),
    "a reader": (ONCE, "it can be read once"),
    "a column of Arrow": (pa.chunked_array([[{"id": 1}, None]]), "it is a column"),
    "a column of pandas": (pd.Series([1], name="id"), "it is a column"),
    "a column of polars": (pl.Series("id", [{"id": 1}]), "it is a column"),
    "a subclass of one of polars": (type("Mine", (pl.Series,), {})("id", [{"id": 1}]), "it is a column"),
    "no columns of Arrow": (pa.table({}), "it has no columns"),
    "no columns of pandas": (pd.DataFrame(), "it has no columns"),
}


@pytest.mark.parametrize("name", NO_FRAMES)
def test_what_is_no_frame_is_refused_in_words(name: str) -> None:
    frame, says = NO_FRAMES[name]
    with pytest.raises(hb.PolicyError, match=says), session(epsilon=1, t=declared(frame)):
        pass


class Models(pl.DataFrame):
    """A data frame of another package, as patito has one."""


class Wards(Models):
    """A program's own."""


@pytest.mark.parametrize("made", [pl.DataFrame, Models, Wards])
def test_objects_of_polars_are_no_units_and_no_values(made: Any) -> None:
    """They are handed out as places in memory: 300 rows of one person were 300 people."""
    people = [uuid.UUID(int=7)] * 300 + [uuid.UUID(int=i) for i in range(10)]
    frame = made({"id": people, "n": range(310)})
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


SAME: list[tuple[Kind, Any, Any]] = [
    (Kind.INTEGER, np.int64(5), 5), (Kind.INTEGER, np.uint8(7), 7), (Kind.INTEGER, np.uint64(2**63), None),
    (Kind.NUMBER, np.float32(1.5), 1.5), (Kind.NUMBER, np.int16(3), 3.0), (Kind.NUMBER, Decimal("1.25"), 1.25),
    (Kind.BOOLEAN, np.bool_(True), True), (Kind.DATE, np.datetime64("2024-01-02"), dt.date(2024, 1, 2)),
    (Kind.TIMESTAMP, np.datetime64("2024-01-02T03:04:05"), dt.datetime(2024, 1, 2, 3, 4, 5)),
    (Kind.TIMESTAMP, np.datetime64("2024-01-02T03:04:05", "ns"), None), (Kind.INTEGER, np.datetime64(5, "ns"), None),
    (Kind.INTEGER, np.timedelta64(5, "ns"), None), (Kind.TEXT, np.str_("a"), "a"), (Kind.NUMBER, np.complex64(1), None),
    (Kind.NUMBER, Decimal("NaN"), math.nan), (Kind.NUMBER, Decimal("sNaN"), None), (Kind.INTEGER, np.float64(3), None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "meant"), SAME)
def test_objects_of_numpy_are_what_they_say(kind: Kind, value: Any, meant: Any) -> None:
    """All rows of a column of `numpy.int64` objects were NULL, without a word."""
    frame = pd.DataFrame({"n": pd.Series([value, object()], dtype="object")})
    read, odd = hold("t", Frame(frame), {"n": kind}).table().column("n").to_pylist()
    assert (
        (read, odd) == (pytest.approx(meant, nan_ok=True), None)
        if kind is Kind.NUMBER
        else (read, odd) == (meant, None)
    )
