"""Whole numbers of every type that an engine or a frame has: whatever takes rows counts what GROUP BY counts."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub import learning

EPSILON = 10**6
ROWS = 200
VALUES = [n % 3 for n in range(ROWS)]
CLASSES = ["x" if n % 3 == 0 else "y" for n in range(ROWS)]
ARROW = (
    *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)),
    "float32", "float64", "decimal32(5, 0)", "decimal128(9, 0)", "decimal128(38, 0)", "decimal128(20, 3)",
)  # fmt: skip
DUCKDB = (
    *(f"{u}{t}" for u in ("", "U") for t in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")),
    "DECIMAL(4, 0)", "DECIMAL(38, 0)", "DECIMAL(20, 3)", "DOUBLE", "FLOAT",
)  # fmt: skip
DECIMALS = [Decimal(n) for n in (0, 1, 2)]


def arrow_type(name: str) -> Any:
    kind, _, digits = name.partition("(")
    return getattr(pa, kind)(*map(int, digits.rstrip(")").split(","))) if digits else getattr(pa, kind)()


def arrow(name: str) -> pa.Table:
    values = [Decimal(v) for v in VALUES] if name.startswith("decimal") else VALUES
    return pa.table({"id": range(ROWS), "v": pa.array(values, arrow_type(name)), "g": CLASSES})


def session(source: Any, value: Any, **more: Any) -> hb.Session:
    columns = {"v": value, "g": hb.one_of("x", "y")}
    table = hb.table(source, unit="id", max_groups=1, max_rows=1, max_total=1, columns=columns, **more)
    return hb.Session({"t": table}, budget=hb.Budget(epsilon=10**12, delta="0.1"), ledger=None)


def counted(source: Any, values: tuple[Any, ...] = (0, 1, 2), **more: Any) -> None:
    """Marginals, a synthetic table, a fit and its evaluation meet each value as GROUP BY does."""
    with session(source, hb.one_of(*values), **more) as s:
        grouped = [n for _, n in s.sql("SELECT v, COUNT(*) AS n FROM t GROUP BY v", epsilon=EPSILON).rows()]
        assert grouped == [67, 67, 66]
        marginal = s.marginals("t", [("v",)], epsilon=EPSILON).table("v")["count"]
        assert [round(n) for n in marginal.to_pylist()] == grouped
        model = s.fit(learning.CategoricalNB(["v"], "g"), "t", epsilon=EPSILON)
        assert s.evaluate(model, "t", epsilon=EPSILON).accuracy == pytest.approx(1, abs=0.01)
        made = s.synthesize("t", columns=["v", "g"], epsilon=EPSILON).to_pandas()
        assert made.groupby("v").size().tolist() == pytest.approx(grouped, abs=2)
        target = s.fit(learning.CategoricalNB(["g"], "v"), "t", epsilon=EPSILON).predict({"g": ["x"]})
        assert list(target) == [values[0]]


@pytest.mark.parametrize("name", ARROW)
def test_every_type_of_arrow(name: str) -> None:
    counted(arrow(name))


@pytest.mark.parametrize("name", ["uint64", "decimal128(38, 0)", "int64"])
@pytest.mark.parametrize("frame", [pl.from_arrow, lambda t: t.to_pandas()])
def test_frames(name: str, frame: Any) -> None:
    if name.startswith("decimal") and frame is not pl.from_arrow:
        pytest.skip("pandas holds decimals as objects")
    counted(frame(arrow(name)))


@pytest.mark.parametrize("name", DUCKDB)
def test_every_type_of_duckdb(tmp_path: Path, name: str) -> None:
    place = tmp_path / "t.duckdb"
    with duckdb.connect(str(place)) as made:
        made.execute(f"CREATE TABLE t (id INT, v {name}, g TEXT)")
        made.execute("INSERT INTO t SELECT r, r % 3, CASE WHEN r % 3 = 0 THEN 'x' ELSE 'y' END FROM range(200) s(r)")
    counted(str(place), table="t")


@pytest.mark.parametrize("far", [2**53 + 1, 2**63 - 1])
def test_the_widest_are_exact(tmp_path: Path, far: int) -> None:
    """No double holds them: their neighbours are other values."""
    rows = arrow("uint64").set_column(1, "v", pa.array([(0, far, far - 1)[v] for v in VALUES], pa.uint64()))
    with session(rows, hb.one_of(0, far)) as s:
        marginal = s.marginals("t", [("v",)], epsilon=EPSILON).table("v")["count"]
        assert [round(n) for n in marginal.to_pylist()] == [67, 67]


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.5, 2.0],
        [0, Decimal("1.5"), 2],
        [Decimal(0), Decimal("1.50"), Decimal("2.000")],
        pa.array([Decimal(0), Decimal("1.5"), Decimal(2)]),
        pa.array([0, 1.5, 2], pa.float32()),
        pd.Series([Decimal(0), Decimal("1.5"), Decimal(2)]),
        pl.Series([Decimal(0), Decimal("1.5"), Decimal(2)]),
        np.array([0, 1.5, 2]),
    ],
)
def test_a_fitted_model_predicts_for_every_spelling_of_a_number(values: Any) -> None:
    rows = arrow("float64").set_column(1, "v", pa.array([(0, 1.5, 2)[v] for v in VALUES]))
    with session(rows, hb.one_of(0, 1.5, 2)) as s:
        model = s.fit(learning.CategoricalNB(["v"], "g"), "t", epsilon=EPSILON)
    frame = {
        "v": values
        if not isinstance(values, list) or not any(isinstance(v, Decimal) for v in values)
        else pa.array([None if v is None else Decimal(v) for v in values])
    }
    assert list(model.predict(frame)) == ["x", "y", "y"]


@pytest.mark.parametrize("odd", ["NaN", "sNaN", "Infinity", "-Infinity", "1e999999", "1e-999999999", "-0", "7"])
def test_no_decimal_is_an_exception(odd: str) -> None:
    from hubbub.learning.features import Categories as Learned, identity
    from hubbub.synthesis.records import Categories

    assert Categories("a", 1).codes([Decimal(odd), Decimal(1)])[1] == 1
    assert Learned(("a", 1)).places[identity(Decimal(1))] == 1
    assert identity(Decimal(odd)) is not None
