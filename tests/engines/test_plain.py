"""Quick paths and the plain ones: the same values, on whatever bytes; and the register is the page and the code."""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

from hubbub import plain
from hubbub.engines.duckdb import csv_files, sources
from hubbub.engines.duckdb.utf8 import as_utf8

ROOT = Path(__file__).parents[2]
LINES = st.lists(
    st.lists(
        st.sampled_from([b"a", b"1", b",", b",", b'"', b"\r", b"\xff", b"\xc3\xa9", b"\x00", b" ", b"\xef\xbb\xbf"])
    ).map(b"".join),
    max_size=8,
).map(b"\n".join)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@given(LINES)
@example(b",\r\r")
@example(b"\r,\r\r")
@settings(max_examples=400, deadline=None)
def test_lines_of_a_csv_are_the_same_rows_by_arrow_and_one_by_one(piece: bytes) -> None:
    with plain.only(plain=False):
        quick = rows(csv_files._parse(piece.split(b"\n"), ["x", "y"], ","))
    with plain.only(plain=True):
        assert rows(csv_files._parse(piece.split(b"\n"), ["x", "y"], ",")) == quick


@given(st.lists(st.one_of(st.none(), st.binary(max_size=5), st.text(max_size=3).map(str.encode)), max_size=600))
@settings(max_examples=100, deadline=None)
def test_bytes_are_the_same_texts_together_and_one_by_one(values: list[bytes | None]) -> None:
    column = pa.chunked_array([pa.array(values, pa.binary())])
    with plain.only(plain=False):
        quick = as_utf8(column).to_pylist()
    with plain.only(plain=True):
        assert as_utf8(column).to_pylist() == quick
    assert quick == [None if v is None or not _is_text(v) else v.decode() for v in values]


def _is_text(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2**62, -5]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1.5, float("inf"), None]),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series(["a", None, "\u00e9"], dtype="string"),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series([dt.datetime(2020, 1, 1), None, dt.datetime(1, 1, 1)], dtype="datetime64[us]"),
        pd.Series([1, 0, 3], dtype="Sparse[int64]"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_columns_of_pandas_are_the_same_together_and_object_by_object(column: pd.Series) -> None:
    frame = pd.DataFrame({"x": column})
    found = []
    for mode in (False, True):
        with plain.only(plain=mode):
            held = sources.hold("t", sources.Frame(frame), {})
            read = held.table()
            assert read.schema.types == held.schema.types
            found.append([None if value != value else value for value in read["x"].to_pylist()])
    assert found[0] == found[1]


def test_the_page_says_what_the_register_says() -> None:
    page = (ROOT / "docs/contributing/quick-paths.md").read_text("utf-8")
    written = [
        tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in page.splitlines() if line.startswith("| ")
    ]
    known = [(n, f"`{q.module}`", q.when, q.why, f"`{q.held_by}`") for n, q in plain.QUICK_PATHS.items()]
    assert written[1:] == known
    assert "{toctree}" in (ROOT / "docs/index.md").read_text("utf-8")


def test_each_quick_path_is_chosen_where_the_register_says_and_held_by_a_test_that_is_there() -> None:
    asked = {}
    for file in (ROOT / "src/hubbub").rglob("*.py"):
        for name in re.findall(r'quick\("([^"]+)"\)', file.read_text("utf-8")):
            if file.name != "plain.py":
                asked.setdefault(name, set()).add(".".join(file.relative_to(ROOT / "src").with_suffix("").parts))
    assert asked == {name: {path.module} for name, path in plain.QUICK_PATHS.items()}
    for path in plain.QUICK_PATHS.values():
        assert (ROOT / path.held_by).exists()
        assert "quick(" in inspect.getsource(importlib.import_module(path.module))
    with pytest.raises(KeyError):
        plain.quick("a path that nobody registered")


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for value, expected in (("1", False), ("0", True), ("", True)):
            monkeypatch.setenv("HUBBUB_PLAIN", value)
            assert importlib.reload(plain).quick("ranking") is expected
    finally:
        monkeypatch.undo()
        importlib.reload(plain)
