"""Frames of windows: which rows a value is taken from, and those that no engine takes."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.errors import QueryError
from people import HUGE

ROWS = pa.table(
    {
        "id": [1, 1, 1, 1, 2, 2, 2, 3],
        "day": [1, 1, 2, None, 5, 5, None, 4],
        "n": [1, 2, 3, 4, 7, 5, 6, 8],
        "of_day": [9, 9, 8, 7, 6, 6, 5, 4],
    }
)
COLUMNS: dict[str, Any] = {"n": hb.between(0, 9), "of_day": hb.between(0, 9), "day": hb.between(0, 9)}
ENDS = [
    "UNBOUNDED PRECEDING", "2 PRECEDING", "0 PRECEDING", "CURRENT ROW", "0 FOLLOWING", "2 FOLLOWING",
    "UNBOUNDED FOLLOWING",
]  # fmt: skip
RANGES = [
    "",
    "RANGE UNBOUNDED PRECEDING",
    "RANGE CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
]
CALLS = ["LAST_VALUE", "FIRST_VALUE", "MIN", "MAX", "SUM", "COUNT"]


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk({"t": hb.table(ROWS, unit="id", max_groups=9, max_rows=9, max_total=20, columns=COLUMNS)})


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.register("t", ROWS)
    return made


@pytest.mark.parametrize("order", ["", "ORDER BY day", "ORDER BY day DESC"])
@pytest.mark.parametrize("frame", RANGES)
def test_rows_that_an_order_leaves_equal_are_in_each_others_frames(desk: Desk, order: str, frame: str) -> None:
    """They are told apart to choose among them, and not to leave one out: each has the same last value."""
    for call in CALLS:
        over = f"{call}(n) OVER (PARTITION BY id {order} {frame})"
        key, rows = "day" if order else "1", f"(SELECT id, day, {over} AS l FROM t)"
        apart = f"SELECT id, {key} AS k, COUNT(DISTINCT l) AS c FROM {rows}"
        answer = desk.ask(f"SELECT COUNT(*) AS n FROM ({apart} GROUP BY id, k) WHERE c <> 1", HUGE)
        assert answer.rows() == [(0,)], over


@pytest.mark.parametrize("frame", RANGES)
def test_values_that_equal_rows_have_alike_are_those_of_duckdb(
    desk: Desk, con: duckdb.DuckDBPyConnection, frame: str
) -> None:
    for call, down in itertools.product(CALLS, ("", "DESC", "NULLS FIRST")):
        over = f"{call}(of_day) OVER (PARTITION BY id ORDER BY day {down} {frame})"
        asked = f"SELECT SUM(l * n) AS s FROM (SELECT n, {over} AS l FROM t) WHERE l BETWEEN 0 AND 99"
        assert desk.ask(asked, HUGE).rows() == con.execute(asked).fetchall(), asked


def test_a_frame_that_ends_before_it_starts_is_refused_before_the_charge(
    desk: Desk, con: duckdb.DuckDBPyConnection
) -> None:
    """An engine would say so when the question is charged already."""
    for start, end in itertools.product(ENDS, ENDS):
        over = f"SUM(n) OVER (PARTITION BY id ORDER BY n ROWS BETWEEN {start} AND {end})"
        asked = f"SELECT COUNT(l) AS n FROM (SELECT {over} AS l FROM t)"
        try:
            meant = con.execute(asked).fetchall()
        except duckdb.Error:
            meant = [(0,)]
        try:
            desk.statement(asked)
        except QueryError as error:
            assert "this frame is not supported" in str(error)
            assert meant == [(0,)], over  # what is refused has no rows
            continue
        assert desk.ask(asked, HUGE).rows() == meant, over
    with pytest.raises(QueryError, match="this frame is not supported"):
        desk.statement("SELECT COUNT(l) AS n FROM (SELECT SUM(n) OVER (PARTITION BY id ROWS 2 FOLLOWING) AS l FROM t)")


BARE = ["2", "BETWEEN 2 AND CURRENT ROW", "BETWEEN 1 PRECEDING AND 2", "BETWEEN 2 AND 1", "BETWEEN 2 AND 1 PRECEDING"]


@pytest.mark.parametrize("frame", BARE)
def test_a_number_that_says_no_side_is_refused_in_words(desk: Desk, frame: str) -> None:
    with pytest.raises(QueryError, match="a frame counts ROWS by whole numbers"):
        desk.statement(
            f"SELECT SUM(l) AS n FROM (SELECT MAX(n) OVER (PARTITION BY id ORDER BY n ROWS {frame}) AS l FROM t)"
        )


@pytest.mark.parametrize("call", ["RANK", "DENSE_RANK"])
@pytest.mark.parametrize("order", ["day", "day DESC", "day + of_day", "of_day % 2"])
@pytest.mark.parametrize("frame", ["", "RANGE CURRENT ROW", "ROWS UNBOUNDED PRECEDING", "ROWS 2 PRECEDING"])
def test_a_frame_changes_no_rank(call: str, order: str, frame: str) -> None:
    """Rows that ORDER BY leaves equal had ranks of their own under ROWS, where frames tell them apart."""
    desk = Desk({"t": hb.table(ROWS, unit="id", max_total=20, columns=COLUMNS)})
    inner = f"SELECT id, {call}() OVER (PARTITION BY id ORDER BY {order} {frame}) AS v FROM t"
    text = f"SELECT SUM(v) AS s FROM ({inner})"
    with duckdb.connect() as plain:
        plain.register("t", ROWS)
        assert [*desk.ask(text, epsilon=HUGE)["s"]] == pytest.approx(
            [s for (s,) in plain.sql(text).fetchall()], abs=0.01
        )
