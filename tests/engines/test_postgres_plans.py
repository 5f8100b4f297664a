"""A plan of Postgres is about as long as the text that asks for it: expressions are not written out again and again."""

from __future__ import annotations

from typing import Any

import psycopg
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from engines.places import answer
from hubbub.engines.duckdb.relations import image
from hubbub.engines.postgres import engine as engine_of_postgres
from hubbub.engines.postgres.catalog import strayed
from hubbub.engines.postgres.engine import PostgresEngine
from hubbub.engines.postgres.settings import begin, connect
from hubbub.sql.bind.query import TableInfo
from hubbub.tables.plan import make_plans

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")
MADE = "CREATE TABLE written_out AS SELECT i::int AS id, (i % 3)::float8 AS x FROM generate_series(1, 90) AS i"


def unions(levels: int) -> str:
    """A UNION ALL whose one side is computed from another, and so on."""
    inner = "SELECT id, x FROM v"
    for i in range(levels):
        inner = f"SELECT id, x * 1.5 AS x FROM ({inner}) AS t{i} UNION ALL SELECT id, x FROM v WHERE x > {i}"
    return f"SELECT SUM(LEAST(GREATEST(x, 0), 1)) AS c FROM ({inner}) AS z"


def added(terms: int) -> str:
    return "x" if terms == 1 else f"({added(terms // 2)} + {added(terms - terms // 2)})"


def nested(levels: int) -> str:
    inner = "SELECT id, x FROM v"
    for i in range(levels):
        inner = f"SELECT id, x * 1.5 AS x FROM ({inner}) AS t{i} WHERE x < 5{i}"
    return f"SELECT SUM(LEAST(GREATEST(x, 0), 1)) AS c FROM ({inner}) AS z"


CASTS = {
    "BOOLEAN": ("x > 1", ("INTEGER", "VARCHAR")),
    "DOUBLE": ("x", ("INTEGER", "VARCHAR")),
    "INTEGER": ("id", ("DOUBLE", "VARCHAR", "BOOLEAN")),
    "VARCHAR": ("CAST(x AS VARCHAR)", ("INTEGER", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")),
}


def casts(levels: int, kind: str, other: str) -> str:
    """Short texts, whose casts to another kind and back write what they cast two, three or four times each."""
    first = CASTS[kind][0]
    inner, there = f"SELECT id, {first} AS b FROM v", "CAST(CAST({} AS " + other + ") AS " + kind + ")"
    for i in range(levels):
        inner = f"SELECT id, {there.format(there.format('b'))} AS b FROM ({inner}) AS t{i}"
        inner += f" UNION ALL SELECT id, {first} AS b FROM v"
    return f"SELECT COUNT(*) AS c FROM ({inner}) AS z WHERE b IS NULL"


def hidden(levels: int, made: str, above: str) -> str:
    """Casts of a truth there and back, with a word of SQL in a constant of the third level, or below DISTINCT."""
    there = "CAST(CAST({} AS INTEGER) AS BOOLEAN)"
    inner = "SELECT id, x > 1 AS b FROM v"
    for i in range(levels):
        cast = f"({there.format(there.format('b'))} {above if i in (3, 6) else ''})"
        inner = f"SELECT {made} id, {cast} AS b FROM ({inner}) AS t{i}"
        inner += "" if made else " UNION ALL SELECT id, x > 1 AS b FROM v"
    return f"SELECT COUNT(*) AS c FROM ({inner}) AS z WHERE b IS NULL"


QUESTIONS = {
    "a word in a constant": hidden(8, "", "OR 'OVER' > 'Y'"),
    "below DISTINCT": hidden(7, "DISTINCT", "") + " OR b",
    "a long constant": hidden(4, "", f"OR '{'€' * 250}' > 'Y'") + " OR NOT b" * 6,
    "unions": unions(8),
    "a few unions": unions(3),
    "a long sum": f"SELECT STDDEV(LEAST(GREATEST({added(200)}, 0), 1)) AS c FROM v",
    "sub-queries": nested(8),
    **{
        f"{levels} casts of {kind} to {other}": casts(levels, kind, other)
        for kind, (_, others) in CASTS.items()
        for other in others
        for levels in (2, 6)
    },
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_plan_is_not_many_times_as_long_as_its_text(postgres_server: str, name: str) -> None:
    """Ten UNION ALLs in 850 characters were a plan of 290 MB, thirteen one of gigabytes. And a plan of 96 MB that goes
    to parallel workers, which the number of a table's pages decides, was an error where shared memory is small.
    """
    address = f"postgresql://hubbub@/postgres?host={postgres_server}"
    with psycopg.connect(address, autocommit=True) as con:
        con.execute("DROP TABLE IF EXISTS written_out")
        con.execute(
            "CREATE TABLE written_out AS SELECT i::int AS id, (i % 3)::float8 AS x FROM generate_series(1, 90) i"
        )
        engine, desk = PostgresEngine(), Desk({})
        declared = hb.table(address, table="written_out", unit="id", max_groups=1, max_rows=20, max_total=20)
        schema = engine.add("v", declared)
        desk.catalog["v"] = TableInfo(schema.columns, private=True, unit="id", table=declared.without_source())
        for question in desk.statement(QUESTIONS[name]).questions:
            for plan in make_plans(question, image):
                assert answer(engine, plan, {})
                for text in engine.texts(plan)[1]:
                    with connect(address) as asking:
                        begin(asking)
                        lines = psycopg.RawCursor(asking).execute(b"EXPLAIN (VERBOSE, COSTS OFF) " + text.encode())
                        shown = sum(len(line) for (line,) in lines.fetchall())
                    assert shown < 40 * len(text) + 10**5
        engine.close()
        con.execute("DROP TABLE written_out")


@pytest.mark.parametrize(
    ("terms", "public", "workers"), [(2, 0, True), (300, 0, False), (2, 10, True), (2, 9_000, False)]
)
def test_a_long_text_has_no_parallel_plan(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch, terms: int, public: int, workers: bool
) -> None:
    """Whether there are workers follows from a table's pages; a long text's plan may not fit on the way to them, nor
    one with many public rows, which stand in it.
    """
    address = f"postgresql://hubbub@/postgres?host={postgres_server}"
    set_last: list[str] = []

    def told(con: psycopg.Connection[Any], locked: Any) -> bool:
        set_last.extend(con.execute("SHOW max_parallel_workers_per_gather").fetchone() or ())
        return strayed(con, locked)

    monkeypatch.setattr(engine_of_postgres, "strayed", told)
    with psycopg.connect(address, autocommit=True) as con:
        con.execute("DROP TABLE IF EXISTS written_out")
        con.execute(
            "CREATE TABLE written_out AS SELECT i::int AS id, (i % 3)::float8 AS x FROM generate_series(1, 90) i"
        )
        declared = hb.table(address, table="written_out", unit="id", max_total=20)
        shown = hb.public(pa.table({"k": range(public or 1), "name": ["n" * 100 + str(i) for i in range(public or 1)]}))
        joined = "JOIN w ON id = k AND name <> 'n'" if public else ""
        with hb.Session({"v": declared, "w": shown}, budget=hb.Budget(10), ledger=None) as session:
            session.sql(f"SELECT COUNT(*) AS c FROM v {joined} WHERE {added(terms)} > 1", epsilon=1)
        con.execute("DROP TABLE written_out")
    assert set_last
    assert [number != "0" for number in set_last] == [workers] * len(set_last)
