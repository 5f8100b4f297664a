"""What is added up is exact before it is added, on every engine, whatever is declared.

Postgres and DuckDB say of which types each aggregate and window of a text is (the bound tree of one, the plan of the
other); Spark is held to the same integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import hubbub as hb
from asked import frames, questions, tables as asked_tables
from counts import part
from engines.places import Embedded, Postgres, Spark, answer
from engines.test_contract import CASE, SETTINGS as LEAN, _golden, _plans, hold as hold_any, near
from golden.queries import QUERIES
from golden.shop import FRAMES, tables as shop_tables
from hubbub.engines.duckdb.dialect import DUCKDB, DUCKDB_PORTABLE
from hubbub.engines.postgres.engine import _with_stubs
from hubbub.engines.postgres.settings import statements
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql, listed_sql, summed
from hubbub.tables.relations import leaves, scans

EXACT = {"smallint", "integer", "bigint", "numeric"}
ADDING = {
    "sum",
    "avg",
    "var_pop",
    "var_samp",
    "variance",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "corr",
    "covar_pop",
    "covar_samp",
}
OTHERS = {
    "count",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "percentile_cont",
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "ntile",
    "percent_rank",
    "cume_dist",
    "nth_value",
    "rank_dense",
}
"""Aggregates and windows whose answer does not depend on the order of the rows, or is ordered by every column."""


def signatures(con: Any, text: str) -> set[str]:
    """Every aggregate and window of a text with the types of its arguments, as Postgres has bound them."""
    with con.transaction(force_rollback=True):
        con.execute(statements(con.info.server_version).encode())
        con.execute(f"CREATE VIEW public.probe AS {text}".encode())
        ((tree,),) = con.execute("SELECT ev_action FROM pg_rewrite WHERE ev_class = 'public.probe'::regclass")
        numbers = sorted(set(map(int, re.findall(r":(?:aggfnoid|winfnoid) (\d+)", tree))))
        return {name for (name,) in con.execute("SELECT unnest(%s::oid[])::regprocedure::text", [numbers])}


def not_exact(found: set[str]) -> set[str]:
    """Those that add up floats, and those that nobody has said anything about."""
    wrong = set()
    for signature in found:
        name, _, types = signature.rstrip(")").partition("(")
        adds_exactly = name in ADDING and set(types.split(",")) <= EXACT
        if not adds_exactly and name not in OTHERS:
            wrong.add(signature)
    return wrong


def stubbed(place: Postgres, plan: Any) -> list[str]:
    _, texts = place.engine.texts(plan)
    stubs = {leaf.place: leaf.columns for leaf in leaves(plan.question.relation)}
    return [_with_stubs(text, stubs, place.engine._written()) for text in texts]


@pytest.fixture(scope="module")
def shops(postgres_server: str) -> Iterator[tuple[Embedded, Postgres]]:
    here, there = Embedded(shop_tables(), FRAMES), Postgres(postgres_server, shop_tables(), FRAMES)
    yield here, there
    here.close()
    there.close()


def test_the_server_names_a_sum_of_floats_as_one(shops: tuple[Embedded, Postgres]) -> None:
    """The check below fails where it should."""
    text = (
        "WITH r AS (SELECT 0.5::float8 AS x) SELECT sum(x) OVER () a, avg(x::real) OVER () b, sum(1) OVER () c FROM r"
    )
    assert not_exact(signatures(shops[1].con, text)) == {"sum(double precision)", "avg(real)"}


def test_no_golden_text_of_postgres_adds_up_floats(shops: tuple[Embedded, Postgres]) -> None:
    seen: set[str] = set()
    for sql, more in QUERIES:
        for plan in _golden(shops[0], sql, more):
            for text in stubbed(shops[1], plan):
                found = signatures(shops[1].con, text)
                assert not not_exact(found), sql
                seen |= found
    assert {"sum(bigint)", "sum(numeric)"} <= seen


@pytest.fixture(scope="module")
def bare(postgres_server: str) -> Iterator[tuple[Embedded, Postgres]]:
    """The tables of the grammar with nothing declared of their numbers."""
    declared, empty = asked_tables("add_remove", undeclared=True), frames({})
    here, there = Embedded(declared, empty), Postgres(postgres_server, declared, empty)
    yield here, there
    here.close()
    there.close()


@settings(max_examples=part(60, 3), **LEAN)
@given(sql=questions())
def test_no_random_text_adds_up_floats(bare: tuple[Embedded, Postgres], sql: str) -> None:
    for plan in _plans(bare[0], sql, (2, 2)):
        for text in stubbed(bare[1], plan):
            assert not not_exact(signatures(bare[1].con, text)), sql
        for text in in_duckdb(bare[0], plan):
            assert not not_exact(bound_in_duckdb(*text)), sql


_DUCK = {"TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint", "HUGEINT": "numeric",
         "DECIMAL": "numeric"}  # fmt: skip
_DUCK_NAMES = {"count_star": "count", "median": "percentile_cont", "quantile_cont": "percentile_cont"}


def in_duckdb(here: Embedded, plan: Any) -> Iterator[tuple[str, list[str]]]:
    """DuckDB's texts of a plan, each beside the statements that make empty tables in the place of its own."""
    engine: Any = here.engine
    tables = {scan.table for scan in scans(plan.question.relation)}
    made, places = [], {}
    for name in tables:
        known = engine._known[name]
        places[name] = Place(known.relation, known.columns, known.unit, known.key)
        columns = ", ".join(f'"{f.name}" {_DUCK_TYPES[str(f.type)]}' for f in known.held._table.schema)
        made.append(f"CREATE TABLE {known.relation} ({columns})")
    for leaf in leaves(plan.question.relation):
        columns = ", ".join(f"{DUCKDB.quote(n)} {DUCKDB.types.get(k, 'BIGINT')}" for n, k in leaf.columns.items())
        made.append(f"CREATE TABLE {leaf.place} ({columns})")
    for i, measurement in enumerate(plan.measurements):
        if not summed(measurement):
            yield listed_sql(plan, places, i, DUCKDB_PORTABLE), made
    yield aggregate_sql(plan, places, DUCKDB_PORTABLE), made


_DUCK_TYPES = {"int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN", "date32[day]": "DATE",
               "timestamp[us]": "TIMESTAMP"}  # fmt: skip


@cache
def _con() -> duckdb.DuckDBPyConnection:
    """One for all texts, whose tables are taken back after each: to open one takes longer than to bind a text."""
    return duckdb.connect()


def bound_in_duckdb(text: str, made: list[str]) -> set[str]:
    """As `signatures`, from the plan that DuckDB has bound."""
    con = _con()
    con.begin()
    try:
        for statement in made:
            con.execute(statement)
        found = con.execute("SELECT json_serialize_plan(?::VARCHAR, skip_null := true)", [text]).fetchone()
    finally:
        con.rollback()
    assert found is not None
    plan = json.loads(found[0])
    assert not plan["error"], plan
    seen: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("expression_class") in ("BOUND_AGGREGATE", "BOUND_WINDOW"):
                name = node["qname"]["path"][-1] if "qname" in node else node["type"].removeprefix("WINDOW_").lower()
                kinds = [(c["value"]["type"] if "value" in c else c["return_type"])["id"] for c in node["children"]]
                types = [_DUCK.get(kind, kind) for kind in kinds]
                seen.add(f"{_DUCK_NAMES.get(name, name)}({','.join(types)})")
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(plan["plans"])
    return seen


def test_duckdb_names_a_sum_of_floats_as_one() -> None:
    text = "SELECT sum(x), avg(x) OVER (), sum(CAST(x AS DECIMAL(18, 6))) OVER (), sum(1) FROM t GROUP BY x"
    assert not_exact(bound_in_duckdb(text, ["CREATE TABLE t (x DOUBLE)"])) == {"sum(DOUBLE)", "avg(DOUBLE)"}


def test_no_golden_text_of_duckdb_adds_up_floats(shops: tuple[Embedded, Postgres]) -> None:
    seen: set[str] = set()
    for sql, more in QUERIES:
        for plan in _golden(shops[0], sql, more):
            for text, made in in_duckdb(shops[0], plan):
                found = bound_in_duckdb(text, made)
                assert not not_exact(found), sql
                seen |= found
    assert {"sum(bigint)", "sum(numeric)"} <= seen


# Sums of these depend on the order in which floats are added: 5e-6 is lost beside 1e11.
HARD = [1e11, -1e11, 5e-6, 0.1, -0.3, 2.5e-7, 999999999999.75, 1e12, -1e12, 5e-7, 1.5, 0.25, None]
INSIDE = ["SUM({})", "AVG({})", "SUM({0} / 7)", "SUM({0}) - MIN({0})", "AVG(CASE WHEN n > 0 THEN {0} ELSE -{0} END)"]
WINDOWED = ["SUM({}) OVER (PARTITION BY id)", "AVG({}) OVER (PARTITION BY id, ward)",
            "SUM({}) OVER (PARTITION BY id ORDER BY n, day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"]  # fmt: skip
hard_visits = st.lists(
    st.tuples(st.just(0), st.sampled_from(["A", "B"]), st.sampled_from(HARD), st.integers(-3, 3), st.booleans(),
              st.none()),
    max_size=6,
)  # fmt: skip


def inside(expression: str, at: str) -> list[str]:
    """A question on each side of a sum inside a unit, and the sum as a key."""
    source = (
        f"(SELECT id, {expression.format('x')} AS s FROM visits{' GROUP BY id' if 'OVER' not in expression else ''})"
    )
    return [
        f"SELECT COUNT(*) FROM {source} AS p WHERE s > {at}",
        f"SELECT SUM(LEAST(GREATEST(s, -50), 50)) FROM {source} AS p",
        f"SELECT s, COUNT(*) FROM {source} AS p GROUP BY s",
    ]


SUMS: dict[str, Any] = {
    "units": st.lists(hard_visits, max_size=4),
    "newcomer": hard_visits,
    "expression": st.sampled_from(INSIDE + WINDOWED),
    "at": st.sampled_from(["0", "1.7", "0.000004", "99999999999.9"]),
    "seed": st.randoms(use_true_random=False),
}


def _people(rows: list[list[Any]]) -> dict[int, Any]:
    return {i: {"visits": visits, "people": [], "items": []} for i, visits in enumerate(rows)}


def hold(worlds: tuple[Embedded, Any], units: Any, newcomer: Any, expression: str, at: str, seed: Any) -> None:
    """The same integers on both engines, in whatever order the rows stand; one person more changes his own alone."""
    here, there = worlds
    for sql in inside(expression, at):
        for plan in _plans(here, sql, (9, 9)):
            found = []
            for people in (_people(units), _people([*units, newcomer])):
                rows = frames(people)
                here.fill(rows)
                expected = answer(here.engine, plan, {})
                for _ in range(2):
                    order = list(range(rows["visits"].num_rows))
                    seed.shuffle(order)
                    there.fill(rows | {"visits": rows["visits"].take(pa.array(order, pa.int64()))})
                    assert answer(there.engine, plan, {}) == expected, sql
                found.append(expected)
            near(plan, found[0], found[1], sql)


@settings(max_examples=6, **LEAN)
@given(**SUMS)
def test_undeclared_fractions_have_the_same_sums_in_postgres(
    bare: tuple[Embedded, Postgres], units: Any, newcomer: Any, expression: str, at: str, seed: Any
) -> None:
    hold(bare, units, newcomer, expression, at, seed)


@pytest.mark.soak
@settings(max_examples=1_500, **LEAN)
@given(**SUMS)
def test_undeclared_fractions_have_the_same_sums_in_postgres_at_length(
    bare: tuple[Embedded, Postgres], units: Any, newcomer: Any, expression: str, at: str, seed: Any
) -> None:
    hold(bare, units, newcomer, expression, at, seed)


@pytest.fixture(scope="module")
def bare_spark(spark: Any) -> Iterator[tuple[Embedded, Spark]]:
    declared, empty = asked_tables("add_remove", undeclared=True), frames({})
    here, there = Embedded(declared, empty), Spark(spark, declared, empty)
    yield here, there
    here.close()
    there.close()


@settings(max_examples=1, **LEAN)
@given(**SUMS)
def test_undeclared_fractions_have_the_same_sums_in_spark(
    bare_spark: tuple[Embedded, Spark], units: Any, newcomer: Any, expression: str, at: str, seed: Any
) -> None:
    hold(bare_spark, units, newcomer, expression, at, seed)


@pytest.mark.soak
@settings(max_examples=60, **LEAN)
@given(**SUMS)
def test_undeclared_fractions_have_the_same_sums_in_spark_at_length(
    bare_spark: tuple[Embedded, Spark], units: Any, newcomer: Any, expression: str, at: str, seed: Any
) -> None:
    hold(bare_spark, units, newcomer, expression, at, seed)


INFINITE = _people([[(0, "A", float(x), 1, True, None) for x in ("-inf", "inf")]])
BETWEEN = "SELECT COUNT(*) FROM (SELECT id, MEDIAN(x) AS m FROM visits GROUP BY id) AS p WHERE m IS NULL"


def test_the_middle_of_minus_and_plus_infinity_is_null(bare: tuple[Embedded, Postgres]) -> None:
    (plan,) = _plans(bare[0], BETWEEN, (9, 9))
    for world in bare:
        world.fill(frames(INFINITE))
        assert answer(world.engine, plan, {}) == ((1,),)


def test_the_middle_of_minus_and_plus_infinity_is_null_in_spark(bare_spark: tuple[Embedded, Spark]) -> None:
    (plan,) = _plans(bare_spark[0], BETWEEN, (9, 9))
    bare_spark[1].fill(frames(INFINITE))
    assert answer(bare_spark[1].engine, plan, {}) == ((1,),)


@settings(max_examples=6, **LEAN)
@given(**CASE)
def test_neighbours_are_as_near_in_postgres_as_claimed_with_nothing_declared(
    bare: tuple[Embedded, Postgres], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]
) -> None:
    hold_any(bare, sql, units, newcomer, limits)


@pytest.mark.soak
@settings(max_examples=1_000, **LEAN)
@given(**CASE)
def test_neighbours_are_as_near_in_postgres_as_claimed_with_nothing_declared_at_length(
    bare: tuple[Embedded, Postgres], sql: str, units: Any, newcomer: Any, limits: tuple[int, int]
) -> None:
    hold_any(bare, sql, units, newcomer, limits)


def test_a_table_that_grows_past_a_parallel_plan_changes_nobodys_sum(postgres_server: str) -> None:
    """At 1,024 blocks the server reads a table with several workers, each of which adds up its part."""
    empty = pa.schema([("id", pa.int64()), ("x", pa.float64())]).empty_table()
    declared = {"v": hb.table(empty, unit="id", max_total=1)}
    here, there = Embedded(declared, {"v": empty}), Postgres(postgres_server, declared, {"v": empty})
    (plan,) = here.desk.plans("SELECT COUNT(*) FROM (SELECT id, SUM(x) AS s FROM v GROUP BY id) AS p WHERE s > 0")
    for x in ("1e11", "-1e11", "0.000005"):
        there.con.execute(f"INSERT INTO v SELECT i % 200, {x} FROM generate_series(1, 59000) AS i".encode())
    found = []
    for more in (12_150, 400):
        there.con.execute(f"INSERT INTO v SELECT 1000, 0 FROM generate_series(1, {more})".encode())
        with there.con.transaction(force_rollback=True):
            there.con.execute(statements(there.con.info.server_version).encode())
            (_, (text, *_)) = there.engine.texts(plan)
            explained = there.con.execute(f"EXPLAIN {text}".encode()).fetchall()
        ((blocks,),) = there.con.execute("SELECT pg_relation_size('v') / 8192").fetchall()
        found.append((answer(there.engine, plan, {}), "Gather" in str(explained), blocks >= 1024))
    assert found == [(((200,),), False, False), (((200,),), True, True)]
    here.close()
    there.close()
