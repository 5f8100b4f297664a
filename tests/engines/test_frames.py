"""Columns of frames: whatever type pandas, polars or Arrow has, a column is of use in a question, or is refused in our
words before anything is charged. As a value, as a key, and as the unit.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from engines.parquet_columns import ROWS, arrow_columns
from hubbub.errors import EngineError, HubbubError
from people import HUGE

DAY = dt.datetime(2020, 1, 1)


def polars_columns() -> dict[str, Any]:
    found = {
        **{str(kind): pl.Series([1, 2, None], dtype=kind) for kind in (
            pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32,
            pl.Float64, pl.Decimal(10, 2),
        )},
        **{f"Datetime {unit} {zone}": pl.Series([DAY, DAY, None], dtype=pl.Datetime(unit, zone))
           for unit in ("ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin")},
        **{f"Duration {unit}": pl.Series([dt.timedelta(1), None], dtype=pl.Duration(unit)) for unit in ("ms", "ns")},
        "String": pl.Series(["a", "b", None]),
        "Boolean": pl.Series([True, False, None]),
        "Date": pl.Series([DAY.date(), DAY.date(), None]),
        "Time": pl.Series([dt.time(1), dt.time(2), None]),
        "Categorical": pl.Series(["a", "b", None], dtype=pl.Categorical),
        "Enum": pl.Series(["a", "b", None], dtype=pl.Enum(["a", "b", "c"])),
        "Binary": pl.Series([b"a", b"\xff", None]),
        "Null": pl.Series([None, None, None]),
        "List": pl.Series([[1], [2, 3], None]),
        "List of Categorical": pl.Series([["a"], ["b"], None], dtype=pl.List(pl.Categorical)),
        "Array": pl.Series([[1, 2], [3, 4], None], dtype=pl.Array(pl.Int64, 2)),
        "Struct": pl.Series([{"a": "x"}, {"a": "y"}, None]),
        "Object": pl.Series([object(), object(), None], dtype=pl.Object),
    }  # fmt: skip
    for name in ("UInt128", "Float16"):
        if hasattr(pl, name):
            found[name] = pl.Series([1, 2, None], dtype=getattr(pl, name))
    return {name: pl.DataFrame({"x": column}) for name, column in found.items()}


def pandas_columns() -> dict[str, Any]:
    kinds = (
        *("int8", "uint64", "float32", "float64", "bool", "object", "complex128"),
        *("Int64", "UInt8", "Float32", "boolean", "string", "string[pyarrow]", "category"),
        *("datetime64[ns]", "datetime64[s]", "datetime64[us, Europe/Berlin]", "timedelta64[ns]", "period[D]"),
        *("Sparse[int64]", "Sparse[float64]"),
        *("int64[pyarrow]", "timestamp[ms][pyarrow]", "large_string[pyarrow]"),
    )
    found: dict[str, Any] = {kind: _as(pd.Series([1, 2, 3]), kind) for kind in kinds}
    found |= {
        "category of texts": pd.Series(["a", "b", None], dtype="category"),
        "category of moments": pd.Series([DAY, DAY, None], dtype="category"),
        "category of anything": pd.Series(["a", 1, None], dtype="category"),
        "interval": pd.Series(pd.interval_range(0, 3)),
        "decimals": pd.Series([Decimal("1.5"), None, Decimal(2)]),
        "lists": pd.Series([[1], None, "x"]),
        "half": pd.Series([1.5, 2.5, 3.5], dtype=np.float16),
        "long": pd.Series(np.array([1.5, 2.5, 3.5], dtype=np.longdouble)),
    }
    return {name: pd.DataFrame({"x": column}) for name, column in found.items()}


def _as(column: Any, kind: str) -> Any:
    if kind.startswith(("datetime64[us", "period")):
        moments = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]))
        return moments.dt.tz_localize("Europe/Berlin") if kind.startswith("date") else moments.dt.to_period("D")
    if kind == "boolean":
        return pd.Series([True, False, None], dtype="boolean")
    return column.astype(kind)


def arrow_frames() -> dict[str, Any]:
    found = {name: column for name, (column, _) in arrow_columns().items() if ", no schema" not in name}
    found |= {
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["a", "b"])),
        "runs of codes": pa.RunEndEncodedArray.from_arrays(
            pa.array([1, 3], pa.int32()), pa.array(["a", "b"]).dictionary_encode()
        ),
        "codes of views": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None]), pa.array(["a", "b"], pa.string_view())
        ),
        "codes that are not UTF-8": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None]),
            pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff"], pa.binary()).buffers()),
        ),
        "union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
        "dense union": pa.UnionArray.from_dense(
            pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["b"])]
        ),
        "interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        "list view": pa.array([[1], None], pa.list_view(pa.int64())),
        "fixed list": pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
    }
    return {name: pa.table({"x": column}) for name, column in found.items()}


FRAMES = {
    f"{library} {name}": frame
    for library, frames in (("polars", polars_columns()), ("pandas", pandas_columns()), ("arrow", arrow_frames()))
    for name, frame in frames.items()
}
TEXTS = {
    *("polars String", "polars Categorical", "polars Enum", "pandas category of texts", "pandas string", "arrow text"),
    *("arrow codes of views", "arrow runs", "arrow coded text", "arrow text view"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_column_of_a_frame_is_of_use_or_refused_in_our_words(name: str) -> None:
    frame = FRAMES[name]
    values = ["SELECT COUNT(x) AS c FROM t", "SELECT COUNT(DISTINCT x) AS c FROM t"]
    keys = ["SELECT COUNT(*) AS c FROM t WHERE x = 'a'", "SELECT COUNT(*) AS c FROM t WHERE x > 1"]
    answered = 0
    for unit, questions in ((hb.EACH_ROW, [*values, *keys]), ("x", ["SELECT COUNT(*) AS c FROM t"])):
        desk = None
        try:
            desk = Desk({"t": hb.table(frame, unit=unit, max_total=1)})
            for sql in questions:
                try:
                    desk.ask(sql, HUGE)
                    answered += 1
                except EngineError as error:
                    raise AssertionError(f"{sql} was charged and failed: {desk.engine.words(error.incident)}") from None
                except HubbubError:
                    continue
        except HubbubError as error:
            assert not isinstance(error, EngineError), error
            assert str(error)
        finally:
            if desk is not None:
                desk.engine.close()
    assert answered >= (3 if name in TEXTS else 0)


@pytest.mark.parametrize(
    "name", ["polars Categorical", "polars Enum", "arrow codes of views", "pandas category of texts"]
)
def test_categories_are_texts(name: str) -> None:
    frame = FRAMES[name]
    desk = Desk({"t": hb.table(frame, unit=hb.EACH_ROW, columns={"x": hb.one_of("a", "b")})})
    assert desk.ask("SELECT x, COUNT(*) AS c FROM t GROUP BY x", HUGE).rows() == [("a", 1), ("b", 1)]
    desk = Desk({"t": hb.table(frame, unit="x", max_total=1)})
    assert desk.ask("SELECT COUNT(*) AS c FROM t", HUGE).rows() == [(2,)]


def test_the_columns_are_as_long_as_they_say() -> None:
    assert len(FRAMES["arrow text"]) == ROWS


# -- what one row may not do to another --------------------------------------------------------------------------------


class Hostile(Exception):
    """What the objects below raise: of no class that a conversion expects."""


def _raise(*_: object) -> Any:
    raise Hostile


_METHODS = (
    "__eq__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__bool__",
    "__hash__",
    "__str__",
    "__repr__",
    "__index__",
)
_METHODS += ("__int__", "__float__", "__add__", "__neg__", "__format__", "__len__", "__iter__", "__array__")


def _hostile(base: type, **more: Any) -> type:
    return type("Raising", (base,), dict.fromkeys(_METHODS, _raise) | more)


class _Zone(dt.tzinfo):
    utcoffset = dst = tzname = fromutc = _raise


class _Unreadable:
    @property
    def __class__(self) -> Any:
        raise Hostile


RAISING: dict[str, tuple[list[Any], list[Any]]] = {  # each kind: values that fit, and objects that raise
    "integer": ([5, -(2**63), 2**63 - 1], [_hostile(int)(7), _hostile(object)(), _Unreadable()]),
    "number": ([1.5, -0.0, 10**400], [_hostile(float)(1.5), _hostile(int)(7), _hostile(object)(), _Unreadable()]),
    "text": (["a", "", "\U0001f600"], [_hostile(str, encode=_raise)("a"), "\ud800", _hostile(object)(), _Unreadable()]),
    "boolean": ([True, False], [_hostile(int)(1), _hostile(object)(), _Unreadable()]),
    "date": ([DAY.date(), dt.date.max], [_hostile(object)(), _Unreadable()]),
    "timestamp": ([DAY, dt.datetime.max], [DAY.replace(tzinfo=_Zone()), _hostile(object)(), _Unreadable()]),
}


@pytest.mark.parametrize("kind", RAISING)
def test_an_object_whose_code_raises_changes_no_other_row(kind: str) -> None:
    good, bad = RAISING[kind]

    def answer(values: list[Any]) -> Any:
        frame = pd.DataFrame({"id": [str(i) for i in range(len(values))]})
        frame["x"] = pd.Series(values, dtype=object)
        table = hb.table(frame, unit="id", max_total=1, types={"id": "text", "x": kind})
        with hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None) as s:
            texts = "SELECT CAST(x AS VARCHAR) AS t, COUNT(*) AS n FROM v GROUP BY t"
            known = s.sql("SELECT COUNT(x) AS n FROM v", epsilon=10**6).rows()
            keys = {"x" if kind == "text" else "t": ["1", "5", "7", "1.5", "a", "true"]}
            return known, s.sql(texts, epsilon=10**6, keys=keys, max_groups=1, max_rows=1).rows()

    (((before,),), texts) = answer(good)
    assert before == len(good)
    for one in bad:
        ((after,),), others = answer([*good, one])
        assert after in (before, before + 1)  # an object may have a value of its own, by its class alone
        if after == before:
            assert others == texts


ENDS = [0, 1, -1, 7, 2**53 - 1, -(2**53) + 1]


@pytest.mark.parametrize("missing", [None, float("nan"), 1.5, float("inf"), 2.0**53, 1e300])
def test_a_missing_value_changes_no_type_where_whole_numbers_are_declared(missing: Any) -> None:
    """Without it pandas has int64, with it float64; texts, remainders and quotients of the others stay as they are."""

    def answer(values: list[Any]) -> Any:
        frame = pd.DataFrame({"id": range(len(values)), "x": values})
        table = hb.table(frame, unit="id", max_groups=1, max_rows=1, types={"x": "integer"})
        with hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None) as s:
            keys = {"t": [str(v) for v in ENDS]}
            sql = "SELECT CAST(x AS VARCHAR) AS t, COUNT(*) AS n FROM v GROUP BY t"
            where = ("x % 2 = 1", "x // 2 = 3", "x > 9007199254740990", "x + 1 = -9007199254740990", "x = x")
            counts = [s.sql(f"SELECT COUNT(*) AS n FROM v WHERE {w}", epsilon=10**6).rows() for w in where]
            return [s.sql(sql, epsilon=10**6, keys=keys).rows(), *counts]

    alone = answer(ENDS)
    assert {n for _, n in alone[0]} == {1}
    assert str(pd.Series([*ENDS, missing]).dtype) == "float64"
    assert answer([*ENDS, missing]) == alone


CHANGES: dict[str, Any] = {
    "a column comes first": lambda frame: frame.insert(0, "other", 9),
    "columns change names": lambda frame: setattr(frame, "columns", ["x", "u"]),
    "a column goes": lambda frame: frame.drop(columns="u", inplace=True),
    "a column has other values": lambda frame: frame.__setitem__("u", 9),
    "a column has texts": lambda frame: frame.__setitem__("u", "a"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_frame_that_its_program_changes_keeps_its_people_apart(change: str) -> None:
    """Columns were taken by their places when the first question came: all rows were one person's."""
    frame = pd.DataFrame({"u": [1, 2, 3], "x": [1.5, 2.5, 3.5]})
    desk = Desk({"t": hb.table(frame, unit="u", max_groups=1, max_rows=1)})
    CHANGES[change](frame)
    assert desk.ask("SELECT COUNT(*) AS c FROM t WHERE x > 2", HUGE).rows() == [(2,)]
    desk.engine.close()


@pytest.mark.parametrize("scale", [-2, 0, 5, 7])
def test_a_frame_s_decimals_that_duckdb_has_no_type_for_are_as_if_they_were_not_there(scale: int) -> None:
    """Of a negative scale, or one beyond the digits: DuckDB ended with an error of its own as the session opened."""
    columns = {"id": [1, 2, 3], "x": pa.array([None] * 3, pa.decimal128(5, scale))}
    table = hb.table(pa.table(columns), unit="id", max_total=1)
    with hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None) as s:
        assert s.sql("SELECT COUNT(*) AS n FROM v", epsilon=1000).rows() == [(3,)]
        if not 0 <= scale <= 5:
            with pytest.raises(hb.QueryError, match="x"):
                s.check("SELECT COUNT(x) AS n FROM v", epsilon=1)


@pytest.mark.parametrize("width", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_a_place_beyond_a_dictionary_is_null_and_no_error(width: str) -> None:
    """Nobody has checked the places of a frame: one row's would end every question, also about other columns."""
    number = np.dtype(width)
    beyond = {2, 300, 2**31, int(np.iinfo(number).max), *([] if width[0] == "u" else [-1, int(np.iinfo(number).min)])}
    odd = [place for place in sorted(beyond) if place <= np.iinfo(number).max]
    places = pa.array([*odd, *([0, 1] * 30), None], pa.from_numpy_dtype(number))
    texts = pa.DictionaryArray.from_arrays(pa.array([1, 9], pa.int8()), pa.array(["?", "A"]), safe=False)
    for values, known in (
        (pa.array(["A", "B"]), 60),
        (pa.array([DAY, None]), 30),
        (texts, 30),
        (pa.array([], "str"), 0),
    ):
        column = pa.DictionaryArray.from_arrays(places, values, safe=False)
        frame = pa.table({"id": range(len(places)), "c": pa.chunked_array([column, column[:0]])})
        desk = Desk({"t": hb.table(frame, unit="id", max_groups=1, max_rows=1)})
        assert desk.ask(f"SELECT COUNT(*) AS c FROM t WHERE id >= {len(odd)}", HUGE).rows() == [(61,)]
        assert desk.ask("SELECT COUNT(*) AS c FROM t WHERE c IS NOT NULL", HUGE).rows() == [(known,)]
        desk.engine.close()


def _held_in(kind: pa.DataType, values: list[bytes]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(b"".join(values))])


def _numbers(kind: pa.DataType, *numbers: int) -> pa.Array:
    return _held_in(kind, [n.to_bytes(kind.bit_width // 8, "little", signed=True) for n in numbers])


UNCHECKED = {
    "text": pa.array([b"\xff", b"A", b"B"]).view(pa.string()),
    "long text": pa.array([b"\xff", b"A", b"B"], pa.large_binary()).view(pa.large_string()),
    "days": _numbers(pa.date64(), 1, 86_400_000, 0),
    "time": _numbers(pa.time64("us"), 2**63 - 1, 1, 2),
    "decimal": _numbers(pa.decimal128(38, 2), 2**127 - 1, 1, 2),
    "short decimal": _numbers(pa.decimal128(5, 2), 10**5, 1, 2),
    "places": pa.DictionaryArray.from_arrays(pa.array([9, 0, 1]), pa.array(["A", "B"]), safe=False),
}


@pytest.mark.parametrize("name", UNCHECKED)
@pytest.mark.parametrize("coded", ["runs", "dictionary"])
def test_one_value_that_is_not_of_its_type_ends_no_question_however_it_is_coded(name: str, coded: str) -> None:
    """Runs and dictionaries are written out before their values are looked at; nothing may fail there."""
    values = UNCHECKED[name]
    if coded == "runs":
        kind = pa.run_end_encoded(pa.int32(), values.type)
        ends = pa.array([1, 31, 61], pa.int32())
        column = pa.Array.from_buffers(kind, 61, [None], children=[ends, values])
    else:
        column = pa.DictionaryArray.from_arrays(pa.array([0, *([1, 2] * 30)]), values)
    frame = pa.table({"id": range(61), "c": pa.chunked_array([column[:40], column[40:]])})
    desk = Desk({"t": hb.table(frame, unit="id", max_groups=1, max_rows=1)})
    assert desk.ask("SELECT COUNT(*) AS c FROM t", HUGE).rows() == [(61,)]
    if name != "time" and (coded, name) != ("runs", "places"):  # which no question can use
        assert desk.ask("SELECT COUNT(c) AS c FROM t", HUGE).rows() == [(60,)]
    desk.engine.close()


@pytest.mark.parametrize("ends", [[31, 1, 31, 61], [1, -5, 61], [100]], ids=str)
def test_runs_that_end_where_none_can_are_read_without_harm(ends: list[int]) -> None:
    kind = pa.run_end_encoded(pa.int32(), pa.string())
    values = pa.array(["A"] * len(ends), pa.string())
    column = pa.Array.from_buffers(kind, 61, [None], children=[pa.array(ends, pa.int32()), values])
    desk = Desk({"t": hb.table(pa.table({"id": range(61), "c": column}), unit="id", max_groups=1, max_rows=1)})
    assert desk.ask("SELECT COUNT(*) AS c FROM t", HUGE).rows() == [(61,)]
    desk.engine.close()
