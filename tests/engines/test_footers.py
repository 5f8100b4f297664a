"""Parquet files whose footers say what is not so of the rows: the rows count."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from engines.footer import emptied
from hubbub.engines.duckdb.inspect import inspect_rows

ROWS = 4000
FAR, DAY, REAL, TEXT = 7_777_777, dt.date(2024, 5, 6), 123456.75, "zzzzzzzz"
LIES = {
    struct.pack("<q", FAR): struct.pack("<q", 5),
    struct.pack("<i", (DAY - dt.date(1970, 1, 1)).days): struct.pack("<i", 18_263),
    struct.pack("<d", REAL): struct.pack("<d", 2.5),
    TEXT.encode(): b"aaaaaaab",
}
"""The largest value of a column, and what the footer says instead: less than the rows hold, or just above the least."""


def lying(path: Path) -> str:
    """A file in which one row has all that is far away, and whose footer has nothing of it."""
    columns = {"x": (1, FAR), "d": (dt.date(2020, 1, 1), DAY), "f": (1.5, REAL), "t": ("aaaaaaaa", TEXT)}
    table = pa.table({"id": range(ROWS), **{name: [a] * (ROWS - 1) + [b] for name, (a, b) in columns.items()}})
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=1000)
    whole = path.read_bytes()
    at = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    footer = whole[at:]
    for old, new in LIES.items():
        assert old in footer
        footer = footer.replace(old, new)
    path.write_bytes(whole[:at] + footer)
    assert pq.ParquetFile(path).metadata.row_group(3).column(1).statistics.max == 5
    return str(path)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Session]:
    source = lying(tmp_path_factory.mktemp("footers") / "t.parquet")
    table = hb.table(source, unit="id", max_groups=1, max_rows=1, columns={"x": hb.between(0, 10)})
    listed = hb.public(pa.table({"k": [FAR, 6_000_000], "t": [TEXT, "y"], "d": [DAY, DAY], "f": [REAL, 7.5]}))
    with (
        pytest.warns(UserWarning, match="ledger=None"),
        hb.Session({"t": table, "p": listed}, budget=hb.Budget(10**9), ledger=None) as session,
    ):
        yield session


@pytest.mark.parametrize(
    "rest",
    [
        "FROM t WHERE x > 100",
        "FROM t WHERE x = 7777777",
        "FROM t WHERE x IN (7777777, 8888888)",
        "FROM t WHERE d > DATE '2023-01-01'",
        "FROM t WHERE f BETWEEN 100 AND 1e6",
        "FROM t WHERE t > 'c'",
        "FROM t WHERE t = 'zzzzzzzz'",
        "FROM t JOIN p ON t.x = p.k",
        "FROM t JOIN p ON t.t = p.t",
        "FROM t WHERE f IN (SELECT f FROM p)",
        "FROM t WHERE x IN (SELECT k FROM p)",
        "FROM t WHERE x NOT IN (SELECT k - 7777776 FROM p)",
        "FROM t AS a JOIN t AS b ON a.id = b.id AND a.x = b.x WHERE a.x > 100",
        "FROM (SELECT id, MAX(x) AS m FROM t GROUP BY id) WHERE m > 100",
    ],
)
def test_a_row_beyond_what_the_footer_says_is_counted(asked: hb.Session, rest: str) -> None:
    assert asked.sql(f"SELECT COUNT(*) AS n {rest}", epsilon=10**5).to_pandas()["n"].tolist() == [1]


@pytest.mark.parametrize(("sum_of", "right"), [("x", ROWS - 1 + 10), ("LEAST(x, 3)", ROWS - 1 + 3)])
def test_a_declared_bound_holds_whatever_the_footer_says(asked: hb.Session, sum_of: str, right: int) -> None:
    """The optimiser left the clamp out: one person moved the sum by 7,777,777."""
    answer = asked.sql(f"SELECT SUM({sum_of}) AS s FROM t", epsilon=10**6).to_pandas()["s"][0]
    assert answer == pytest.approx(right, abs=1)


def test_groups_are_those_of_the_rows(asked: hb.Session) -> None:
    given = {"x": [1, FAR], "t": ["aaaaaaaa", TEXT], "d": [dt.date(2020, 1, 1), DAY]}
    for key, values in given.items():
        text = f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY {key} ORDER BY n"
        assert asked.sql(text, keys={key: values}, epsilon=10**5).to_pandas()["n"].tolist() == [1, ROWS - 1]
    assert asked.sql("SELECT MAX(x) AS m, MEDIAN(x) AS h FROM t", epsilon=10**5).to_pandas()["h"][0] == 1


def test_a_report_on_the_rows_has_those_outside_the_declared_range(tmp_path: Path) -> None:
    table = hb.table(lying(tmp_path / "t.parquet"), unit="id", columns={"x": hb.between(0, 10)}, max_total=1)
    (report,) = (column for column in inspect_rows("t", table).columns if column.name == "x")
    assert report.outside == "below 1 %"


def test_a_bloom_filter_that_knows_no_value_hides_no_row(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with duckdb.connect() as con:
        rows = "SELECT range AS id, range % 7 AS n, 'ABCDEFG'[1 + range % 7] AS g FROM range(7000)"
        con.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
        assert emptied(path) > 0
        believed = con.execute(f"SELECT count(*) FROM '{path}' WHERE n = 3").fetchall()
        assert believed == [(0,)]  # DuckDB by itself
    table = hb.table(str(path), unit="id", max_groups=1, max_rows=1)
    listed = hb.public(pa.table({"n": [3], "g": ["D"]}))
    with (
        pytest.warns(UserWarning, match="ledger=None"),
        hb.Session({"t": table, "p": listed}, budget=hb.Budget(10**9), ledger=None) as asked,
    ):
        for rest in (
            *("WHERE n = 3", "WHERE g = 'D'", "WHERE n IN (3, 9)", "WHERE g IN ('D', 'H')"),
            *("JOIN p ON t.n = p.n", "WHERE g IN (SELECT g FROM p)", "AS a JOIN t AS b ON a.id = b.id WHERE a.n = 3"),
        ):
            assert asked.sql(f"SELECT COUNT(*) AS n FROM t {rest}", epsilon=10**5).rows() == [(1000,)], rest
