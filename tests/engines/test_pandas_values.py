"""A value of one person in a column of pandas changes no other's, whatever the dtype: all bad values in all."""

from __future__ import annotations

import contextlib
import datetime as dt
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hubbub.engines.duckdb.sources import Frame, hold

DAY = pd.Timestamp("2020-01-01")
OTHERS: dict[str, list[Any]] = {
    "texts": ["a", "b"],
    "bytes": [b"a", b"b"],
    "texts and bytes": ["a", b"b"],
    "whole numbers": [1, 2],
    "numbers": [1.0, 2.5],
    "moments": [DAY, DAY],
    "instants": [DAY.tz_localize("Europe/Rome")] * 2,
    "days": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)],
    "truths": [True, False],
    "decimals": [Decimal("1.5"), Decimal(2)],
    "spans": [pd.Timedelta(1), pd.Timedelta(2)],
}
BAD: list[Any] = [
    *("x", "\ud800", b"a", b"\xff", 5, 2**70, 1.5, float("nan"), None, True, object(), [1], 1j, Decimal("NaN")),
    *(dt.date(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
    *(dt.timedelta(days=1), np.datetime64("NaT"), pd.Period("2020-01"), pd.Interval(0, 1)),
]
DTYPES: list[Any] = [
    *("object", "string", "string[pyarrow]", "str", "category", "category of objects", "Int64", "Int8", "Float32"),
    *("boolean", "datetime64[ns]", "datetime64[s]", "timedelta64[ns]", "complex128", pd.SparseDtype("float64")),
    *map(pd.ArrowDtype, (pa.string(), pa.large_string(), pa.int64(), pa.timestamp("us"), pa.date32(), pa.binary())),
]


def column(values: list[Any], dtype: Any) -> Any:
    """A column of this dtype; None where it cannot hold these."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a cast loses something
        if dtype == "category of objects":
            known = pd.Index(pd.unique(pd.Series(values, dtype="object").dropna()), dtype="object")
            return pd.Series(pd.Categorical(values, known))
        return pd.Series(values, dtype=dtype)
    return None


def dtypes_of(series: Any) -> list[str]:
    return [str(series.dtype), *([str(series.cat.categories.dtype)] if str(series.dtype) == "category" else [])]


def pairs(dtype: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Columns of others' values, without and with a bad one, where the dtype stays the same: that is public."""
    for name, values in OTHERS.items():
        before = column(values, dtype)
        for bad in BAD if before is not None else ():
            after = column([*values, bad], dtype)
            if after is not None and dtypes_of(after) == dtypes_of(before):
                yield name, bad, before, after


def read(series: Any) -> tuple[pa.DataType, list[str]]:
    held = hold("t", Frame(pd.DataFrame({"x": series})), {})
    return held.schema.field("x").type, [repr(value) for value in held.table().column("x").to_pylist()]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_bad_value_in_a_column_of_pandas_changes_no_other(dtype: Any) -> None:
    tried = 0
    for name, bad, before, after in pairs(dtype):
        (kind, known), (same, met) = read(before), read(after)
        assert (same, met[:-1]) == (kind, known), (name, bad)
        tried += 1
    assert tried or dtype == "complex128"


class Degrees(pd.api.extensions.ExtensionDtype):
    """A type of columns that somebody else wrote."""

    name, type, na_value = "degrees", float, float("nan")

    @classmethod
    def construct_array_type(cls) -> Any:
        return Thermometers


class Thermometers(pd.api.extensions.ExtensionArray):
    """Its code fails for a whole column at one value, and is read as one of `kind`."""

    kind: pa.DataType
    dtype: Any = Degrees()

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: Any) -> Any:
        there = self.values[place]
        return there if np.isscalar(there) else Thermometers(there)

    def copy(self) -> Any:
        return Thermometers(self.values.copy())

    def __arrow_array__(self, type: Any = None) -> Any:
        if (self.values == -1.0).any():
            raise RuntimeError(str(self.values))
        return pa.array(self.values, pa.float64()).cast(type or self.kind)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int64(), pa.int16()], ids=str)
def test_a_value_at_which_the_code_of_a_dtype_fails_changes_no_other(kind: pa.DataType) -> None:
    """All rows were NULL then, or what others made of each value."""
    Thermometers.kind = kind
    others = [1.0, 2.0, 3.0, 4.0, 5.0]
    for values in (others, [*others, -1.0], [-1.0, *others, -1.0, 7.0], [-1.0]):
        column = pd.Series(Thermometers(np.array(values)))
        assert str(column.dtype) == "degrees"
        of_type, met = read(column)
        assert of_type == kind
        assert met == [repr(None if v == -1.0 else pa.scalar(v).cast(kind).as_py()) for v in values]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_categories_of_moments_are_the_moments(kind: str, unit: str, zone: str | None) -> None:
    """As a column of them has them: with one category beyond what Python knows all were NULL, or an error."""
    for far in (5, 2**63 - 1, 1 - 2**63, 2**62):
        plain = pd.Series(np.array([3, 1, 3, far], "int64").view(f"{kind}[{unit}]"))
        plain = plain.dt.tz_localize("UTC").dt.tz_convert(zone) if zone and kind == "datetime64" else plain
        coded: Any = pd.Series(pd.Categorical.from_codes([1, 0, 1, 2], plain.iloc[[1, 0, 3]].reset_index(drop=True)))
        one, other = (
            hold("t", Frame(pd.DataFrame({"x": column})), {}).table().column("x") for column in (plain, coded)
        )
        assert other.type == one.type
        assert other.combine_chunks().equals(one.combine_chunks())
        gone = hold("t", Frame(pd.DataFrame({"x": coded.mask([False, True, False, False])})), {}).table().column("x")
        assert gone.is_null().to_pylist() == [False, True, *one.is_null().to_pylist()[2:]]
