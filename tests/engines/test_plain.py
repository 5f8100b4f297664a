"""Quick paths and the plain ones: the same values, on whatever bytes; and the register is the page and the code."""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

import hubbub as hb
from hubbub import noise, plain
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


TAKEN = {
    "ranking": ("hubbub.engines.duckdb.engine", "bounded"),
    "units by name": ("hubbub.engines.duckdb.engine", "bounded"),
    "found groups": ("hubbub.engines.duckdb.engine", "bounded"),
    "listed values": ("hubbub.engines.duckdb.engine", "bounded"),
    "declared lists": ("hubbub.engines.duckdb.relations", "_listed"),
    "columns alone": ("hubbub.engines.columns_alone", "_named"),
    "noise tables": ("hubbub.noise.draw", "_table"),
    "noise threads": ("hubbub.noise.workers", "_idle"),
}
"""What each path goes through that the plain way does not. Of CSV, UTF-8 and pandas the tests above see it, of Parquet
its own."""
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(200)]
QUESTIONS = [
    "SELECT g, SUM(v) AS s, AVG(v) AS a, COUNT(*) AS n FROM t GROUP BY g",
    "SELECT g, MEDIAN(v) AS m FROM t GROUP BY g",
    "SELECT w, SUM(v) AS s, MEDIAN(v) AS m FROM named GROUP BY w",
    "SELECT day, COUNT(*) AS n FROM t GROUP BY day",
]


@pytest.mark.filterwarnings("ignore:ledger=None")
def test_with_the_switch_no_quick_path_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """One question at least for each path: with the switch off it is taken, with the switch on it is not."""
    n = 400
    rows = {
        "u": [i % 40 for i in range(n)],
        "g": [i % 5 for i in range(n)],
        "v": [i % 11 for i in range(n)],
        "w": [f"w{i % 3}" for i in range(n)],
        "day": [DAYS[i % 200] for i in range(n)],
    }
    t = pa.table(rows)
    limits: dict[str, Any] = {"unit": "u", "max_groups": 2, "max_rows": 2}
    columns = {"g": hb.one_of(*range(5)), "v": hb.between(0, 10), "day": hb.one_of(*DAYS)}
    tables = {
        "t": hb.table(t, columns=columns, **limits),
        "named": hb.table(t.set_column(0, "u", pa.array([f"u{i % 40}" for i in range(n)])), columns=columns, **limits),
    }
    taken: list[str] = []
    for name, (module, attribute) in TAKEN.items():
        owner = importlib.import_module(module)
        real = getattr(owner, attribute)

        def seen(*arguments: Any, name: str = name, real: Any = real, **named: Any) -> Any:
            taken.append(name)
            return real(*arguments, **named)

        monkeypatch.setattr(owner, attribute, seen)

    def asked() -> set[str]:
        taken.clear()
        with hb.Session(tables, budget=hb.Budget(10**9, "1e-5"), ledger=None) as session:
            for sql in QUESTIONS:
                session.sql(sql, epsilon=10).to_dict()
        noise.laplace(10, 2**20)
        return set(taken)

    with plain.only(plain=False):
        assert asked() == {*TAKEN}
    with plain.only(plain=True):
        assert asked() == set()


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for value, expected in (("1", False), ("0", True), ("", True)):
            monkeypatch.setenv("HUBBUB_PLAIN", value)
            assert importlib.reload(plain).quick("ranking") is expected
    finally:
        monkeypatch.undo()
        importlib.reload(plain)
