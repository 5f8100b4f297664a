"""IN with a sub-query of the same owner, inside an expression: as DuckDB answers it, names and NULLs included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.errors import QueryError
from people import HUGE

VISITS = pa.table(
    {
        "id": [1, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6],
        "n": [1, 2, 3, 4, 5, 6, 2, 2, None, 3, None],
        "m": [2, 2, 1, 4, None, 6, 1, 3, 9, None, None],
        "s": ["a", "b", "a", None, "b", "b", "a", "a", "b", None, "a"],
    }
)
PEOPLE = pa.table({"id": [1, 2, 3, 4], "n": [10, 3, None, 5], "s": ["a", "b", "a", None]})
"""Columns of the same names in both, and of units 5 and 6 no row here."""


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    columns: dict[str, Any] = {"n": hb.between(0, 99), "m": hb.between(0, 99), "s": hb.one_of("a", "b", None)}
    limits: dict[str, Any] = {"max_groups": 9, "max_rows": 20, "max_total": 100}
    people = {name: columns[name] for name in ("n", "s")}
    opened = Desk(
        {
            "visits": hb.table(VISITS, unit="id", columns=columns, **limits),
            "people": hb.table(PEOPLE, unit="id", columns=people, **limits),
        }
    )
    yield opened
    opened.engine.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.register("visits", VISITS)
        con.register("people", PEOPLE)
        yield con


VALUES = ["n", "v.n", "m + 1", "m", "s", "'a'", "3", "NULL", "id", "v.id"]
QUERIES = [
    *(
        f"SELECT {item} FROM visits w WHERE w.id = v.id"
        for item in ("n", "m", "m + 1", "w.s", "3", "'a'", "NULL", "id")
    ),
    *(f"SELECT {item} FROM people w WHERE w.id = v.id AND w.n > 4" for item in ("n", "s", "n - 1")),
    "SELECT DISTINCT n FROM people WHERE id = v.id",
    "SELECT id FROM people",
]
PLACES = [
    "({} IN ({})) IS NOT TRUE",
    "({} IN ({})) IS NULL",
    "{} NOT IN ({}) OR n = 77",
    "CASE WHEN {} IN ({}) THEN n > 2 ELSE m > 2 END",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_value_among_those_of_its_owner_is_what_sql_says(
    desk: Desk, plain: duckdb.DuckDBPyConnection, query: str
) -> None:
    """The value is read outside, whatever is called so inside; it is unknown among NULLs, and of none."""
    answered = 0
    for value in VALUES:
        for place in PLACES:
            sql = f"SELECT COUNT(*) AS c FROM visits v WHERE {place.format(value, query)}"
            try:
                asked = desk.ask(sql, HUGE).rows()
            except QueryError:
                continue
            answered += 1
            meant = plain.execute(sql).fetchall()
            assert [[float(n) for n in row] for row in asked] == [[float(n) for n in row] for row in meant], sql
    assert answered >= (8 if query == "SELECT id FROM people" else 12), query


def test_a_value_of_the_unit_hidden_by_a_table_inside_is_refused(desk: Desk) -> None:
    with pytest.raises(QueryError, match="look at the same owner's rows"):
        desk.statement("SELECT COUNT(*) AS c FROM visits WHERE id IN (SELECT id FROM visits WHERE n > 3) OR n = 77")


@pytest.mark.parametrize("value", ["x", "x + 0", "k"])
@pytest.mark.parametrize("item", ["w.k", "w.x"])
def test_numbers_that_are_one_when_they_are_met_repeat_no_row(value: str, item: str) -> None:
    """2^53 and 2^53 + 1 are two whole numbers and one double: the row that met both counted twice."""
    v = pa.table({"id": [1, 1, 2], "k": [2**53, 2**53 + 1, 5], "x": [2.0**53, 1.0, 5.0]})
    desk = Desk({"v": hb.table(v, unit="id", max_groups=10, max_rows=100, max_total=100)})
    among = f"{value} IN (SELECT {item} FROM v AS w WHERE w.id = v.id)"
    with duckdb.connect() as con:
        con.register("v", v)
        for condition in (f"{among} OR x = 77", f"CASE WHEN {among} THEN TRUE ELSE TRUE END"):
            sql = f"SELECT COUNT(*) AS c FROM v WHERE {condition}"
            assert [int(n) for (n,) in desk.ask(sql, HUGE).rows()] == [n for (n,) in con.execute(sql).fetchall()]
    desk.engine.close()
