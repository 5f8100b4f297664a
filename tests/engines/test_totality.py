"""No row makes DuckDB raise: what a question asks of a row is a value or NULL (P2, P10, P12, P15, P33, P52)."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from engines.corpus import FORMS, bound, rows, some
from hubbub.engines.duckdb.relations import LEFT_OUT
from hubbub.tables.expressions import _NODES, Call, Expression, children
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.measure import VALUE_BITS
from people import engine

FAR = "'5881580-07-10'"
"""A day that DuckDB has as a date, and not as a time."""
BAD = f"CAST(CASE WHEN id = 'bob' AND ill THEN {FAR} ELSE '2020-01-01' END AS DATE)"
LATER = "TIMESTAMP '2020-01-01 00:00:00'"


def person(ill: bool) -> Any:
    rows = pa.table({"id": ["ann", "bob", "eve"], "ill": [False, ill, False]})
    return hb.table(rows, unit="id", max_groups=2, max_rows=2)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM p WHERE CASE WHEN id <> '' THEN {BAD} ELSE {LATER} END IS NOT NULL",
        f"SELECT COUNT(*) FROM p WHERE IF(id <> '', {BAD}, {LATER}) IS NOT NULL",
        f"SELECT COUNT(CASE WHEN id <> '' THEN {BAD} ELSE {LATER} END) FROM p",
        f"SELECT COUNT(DISTINCT CASE WHEN id <> '' THEN {BAD} ELSE {LATER} END) FROM p",
        f"SELECT COUNT(m) FROM (SELECT id, MAX(IF(id <> '', {BAD}, {LATER})) AS m FROM p GROUP BY id)",
        f"SELECT COUNT(k) FROM (SELECT id, IF(id <> '', {BAD}, {LATER}) AS k FROM p GROUP BY id, 2)",
        f"SELECT COUNT(d) FROM (SELECT id, {BAD} AS d FROM p UNION ALL SELECT id, {LATER} FROM p)",
    ],
)
def test_one_row_makes_no_difference_to_whether_there_is_an_answer(sql: str) -> None:
    for ill in (False, True):
        with engine("p", person(ill)) as (duck, plan):
            assert duck.run(plan(sql)).vectors


def test_a_date_made_of_a_text_lies_in_the_years_1_to_9999() -> None:
    texts = ["0001-01-01", "9999-12-31", "10000-01-01", "5881580-07-10", "infinity", "-infinity", "0044-03-15 (BC)"]
    table = hb.table(pa.table({"id": list(range(7)), "s": texts}), unit="id", max_total=1)
    for target in ("DATE", "TIMESTAMP"):
        with engine("t", table) as (duck, plan):
            assert duck.run(plan(f"SELECT COUNT(CAST(s AS {target})) FROM t")).vectors == ((2,),)


def test_the_engine_takes_no_part_out_of_a_try() -> None:
    with engine("p", person(True)) as (duck, _):
        ((off,),) = duck._con.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        assert sorted(off.split(",")) == sorted(LEFT_OUT.split(","))


@pytest.mark.parametrize("left_out", ["", LEFT_OUT])
def test_what_that_optimiser_does_to_a_try(left_out: str) -> None:
    """Why it is switched off: when DuckDB no longer does so, this says it. 2.0.1 keeps this pair in its TRY."""
    with duckdb.connect() as con:
        con.execute(f"SET disabled_optimizers = '{left_out}'")
        con.execute("CREATE TABLE t AS SELECT 'x' AS s")
        text = "SELECT TRY(CAST(s AS INT) + 1), TRY(CAST(s AS INT) * 2) FROM t"
        if left_out or duckdb.__version__ == "2.0.1":
            assert con.execute(text).fetchall() == [(None, None)]
        else:
            with pytest.raises(duckdb.ConversionException):
                con.execute(text).fetchall()


def nodes(text: str) -> set[str]:
    """The types of the nodes of an expression, and the names of its functions."""

    def below(node: Expression) -> set[str]:
        name = node.name if isinstance(node, Call) else type(node).__name__
        return {name}.union(*map(below, children(node)))

    node = bound(text)
    assert node is not None
    return below(node)


def test_the_corpus_has_every_node_and_every_function() -> None:
    found = set().union(*map(nodes, some(6 * len(FORMS), depth=1)))
    assert found >= {n.__name__ for n in _NODES} - {"Call"} | set(FUNCTIONS)
    assert some(50, seed=3) == some(50, seed=3) != some(50, seed=4)


@pytest.mark.parametrize("call", ["LAG(s, 1, x)", "LEAD(x, 1, s)", "LAG(d, 1, x)", "LAG(s, 1, DATE '2025-01-31')"])
def test_a_default_of_another_kind_is_refused(call: str) -> None:
    """The engine would make one of them the other, row by row."""
    table = hb.table(rows(8), unit="id", max_total=1)
    sql = f"SELECT COUNT(c) FROM (SELECT id, {call} OVER (PARTITION BY id ORDER BY i) AS c FROM p)"
    with engine("p", table) as (_, plan), pytest.raises(hb.QueryError, match="must be of one kind"):
        plan(sql)


@pytest.mark.parametrize("listed", ["1, 'a'", "'a', DATE '2025-01-31'", "TRUE, 1"])
def test_a_list_of_two_kinds_is_refused_beside_null_too(listed: str) -> None:
    assert bound(f"NULL IN ({listed})") is None
    assert bound("NULL IN (1, 0.5, NULL)") is not None


@pytest.mark.parametrize("low", [0, 10**6, 10**12])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_sums_have_room_in_128_bits_whatever_is_declared(neighbours: Any, low: int) -> None:
    """TRY does not reach aggregates. With the largest limits and the most groups there may be, sums over 2^34 units
    have room, and a unit's own over 2^48 rows."""
    units, most_rows, limit, step = 2**34, 2**48, 2**31 - 1, 2 ** (VALUE_BITS + 1)
    assert step * most_rows * limit < 2**127  # one unit's sum, scaled to its rows
    assert limit * step * units < 2**127  # the sum over units of what is not clipped
    assert (2048 * most_rows) ** 2 < 2**127  # the square of one unit's norm
    places = hb.one_of(*map(str, range(1000)))
    columns = {"x": hb.between(low, low + 1), "g": places, "h": places}
    table = hb.table(
        pa.table({"id": [1], "x": [1.0], "g": ["1"], "h": ["1"]}),
        unit="id",
        max_groups=limit,
        max_rows=limit,
        bounding="norm",
        columns=columns,
        neighbours=neighbours,
    )
    for shown in ("COUNT(*), SUM(x)", "AVG(x)", "SUM(x)", "VAR_POP(x), COVAR_POP(x, x + 1)"):
        with engine("t", table) as (_, plan):
            found = plan(f"SELECT g, h, {shown} FROM t GROUP BY g, h")
            assert max(map(found.sensitivity, found.measurements)) * units < 2**127
