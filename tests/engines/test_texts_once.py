"""A long text is held once for all the rows that share it, wherever they come from: written out for each, that of one
person would be more than memory holds, and no answer for anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from engines import test_sheet_cells as cells
from hubbub.engines.duckdb import arrow_columns
from hubbub.engines.duckdb.arrow_columns import safe_schema, safe_table
from hubbub.engines.duckdb.sources import Frame, Sheet, hold
from hubbub.tables.kinds import Kind

LONG = "n" * 20_000
ROWS = 1_000
MIB = 2**20
CODES = pa.array([0, 1, None, *[2] * ROWS], pa.int8())
ENTRIES = ["a", "b", LONG]
TEXTS = ["a", "b", None, *[LONG] * ROWS]


def coded(entries: pa.Array) -> pa.Table:
    return pa.table({"x": pa.DictionaryArray.from_arrays(CODES, entries)})


def sheet(path: Path, written: bytes) -> Sheet:
    path.write_bytes(written)
    return Sheet(str(path), None)


def xlsx(folder: Path) -> Sheet:
    cell = "<c t='inlineStr'><is><t>{}</t></is></c>"
    rows = [f"<row>{cell.format(text)}<c><v>1</v></c></row>" for text in ("x", "a", "b")]
    shared = "<row><c t='s'><v>0</v></c><c><v>1</v></c></row>" * ROWS
    named = rows[0].replace("<c><v>1</v></c>", cell.format("n"))
    return sheet(folder / "t.xlsx", cells.xlsx(named + "".join(rows[1:]) + "<row><c/><c><v>1</v></c></row>" + shared))


def ods(folder: Path) -> Sheet:
    def row(text: str, beside: str = cells.cell("float", "1")) -> str:
        return cells.row_of_ods((cells.cell("string", inner=f"<text:p>{text}</text:p>") if text else "") + beside)

    names = row("x", cells.cell("string", inner="<text:p>n</text:p>"))
    many = row(LONG).replace("<table:table-row", f'<table:table-row table:number-rows-repeated="{ROWS}"', 1)
    empty = cells.row_of_ods("<table:table-cell/>" + cells.cell("float", "1"))
    return sheet(folder / "t.ods", cells.ods(names + row("a") + row("b") + empty + many))


MADE: dict[str, Callable[[Path], Any]] = {
    "a dictionary of Arrow": lambda _: Frame(coded(pa.array(ENTRIES))),
    "of large texts": lambda _: Frame(coded(pa.array(ENTRIES, pa.large_string()))),
    "of views": lambda _: Frame(coded(pa.array(ENTRIES, pa.string_view()))),
    "runs": lambda _: Frame(
        pa.table({"x": pa.RunEndEncodedArray.from_arrays([1, 2, 3, 3 + ROWS], ["a", "b", None, LONG])})
    ),
    "polars categories": lambda _: Frame(pl.DataFrame({"x": pl.Series(TEXTS, dtype=pl.Categorical)})),
    "polars enum": lambda _: Frame(pl.DataFrame({"x": pl.Series(TEXTS, dtype=pl.Enum(ENTRIES))})),
    "pandas categories": lambda _: Frame(pd.DataFrame({"x": pd.Series(TEXTS, dtype="category")})),
    "pandas categories of objects": lambda _: Frame(
        pd.DataFrame({"x": pd.Categorical.from_codes([0, 1, -1, *[2] * ROWS], pd.Index(ENTRIES, dtype=object))})
    ),
    "pandas objects": lambda _: Frame(pd.DataFrame({"x": pd.Series(TEXTS, dtype=object)})),
    "a sheet of Excel": xlsx,
    "a sheet of OpenDocument": ods,
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_a_text_is_held_once_for_the_rows_that_share_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "SHARED", f"<si><t>{LONG}</t></si>")
    table = hold("t", MADE[name](tmp_path), {"x": Kind.TEXT, "n": Kind.INTEGER}).table()
    assert table.column("x").to_pylist() == TEXTS
    assert table.nbytes < MIB


@pytest.mark.parametrize("rows", [2, 7, 1000])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()], ids=str)
def test_a_dictionary_has_no_more_entries_than_rows(
    rows: int, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB reads all entries of each chunk. One that is not UTF-8 is NULL, as is a place beyond the last."""
    monkeypatch.setattr(arrow_columns, "_ROWS", rows)
    entries = pa.array([b"a", b"b", b"\xff", *(b"%d" % i for i in range(97))], pa.binary())
    values = entries.cast(pa.large_binary()) if kind == pa.large_string() else entries
    if kind == pa.string_view():
        values = pa.array(["a", "b", None, *(str(i) for i in range(97))], kind)
    elif kind != pa.binary():
        values = pa.Array.from_buffers(kind, 100, values.buffers())
    places = [None if i % 11 == 0 else i * 7 % 103 for i in range(50)]
    numbers = pa.array([0 if p is None else p for p in places], pa.int32())
    valid = pa.array([p is not None for p in places]).buffers()[1]
    indices = pa.Array.from_buffers(pa.int32(), 50, [valid, numbers.buffers()[1]])
    table = pa.table({"x": pa.DictionaryArray.from_arrays(indices, values, safe=False)})
    safe = safe_table(table, safe_schema(table.schema)).column("x")
    assert all(len(chunk.dictionary) <= max(len(chunk), 0) or rows == 1000 for chunk in safe.chunks)
    known = [None if kind != pa.binary() and i == 2 else value for i, value in enumerate(entries.to_pylist())]
    expected = [None if p is None or p >= 100 else known[p] for p in places]
    assert safe.to_pylist() == [v if v is None or kind == pa.binary() else v.decode() for v in expected]
