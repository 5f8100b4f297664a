"""Whole numbers of every width beside one another in every place: the engine narrows none of them.

DuckDB casts the default of LAG to the type of its value, so a default of 128 bits failed on one person's number. Held
on the bound plan (no narrowing cast is there that we did not write) and on rows at the ends of every type.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from engines.test_plans import LEFT_OUT, faults, plans, texts
from hubbub.engines.duckdb.dialect import DuckDB

TYPES = {"a": pa.int8(), "b": pa.uint32(), "c": pa.int64(), "d": pa.uint64()}
ENDS = {"a": [-128, 127], "b": [0, 2**32 - 1], "c": [-(2**63), 2**63 - 1], "d": [0, 2**64 - 1]}

FORMS = [
    "SELECT COUNT(x) FROM (SELECT id, LAG({0}, 1, {1}) OVER (PARTITION BY id ORDER BY c) AS x FROM p)",
    "SELECT COUNT(x) FROM (SELECT id, LEAD(1, 1, {1}) OVER (PARTITION BY id ORDER BY {0}) AS x FROM p)",
    "SELECT COUNT(x) FROM (SELECT id, LAG({0}, 2, CASE WHEN {1} > 5 THEN {1} END) OVER (PARTITION BY id) AS x FROM p)",
    "SELECT COUNT(x) FROM (SELECT id, FIRST_VALUE({0}) OVER (PARTITION BY id ORDER BY {1}) AS x FROM p)",
    "SELECT COUNT(x) FROM (SELECT id, {0} AS x FROM p UNION ALL SELECT id, {1} FROM p)",
    "SELECT COUNT(x) FROM (SELECT id, {0} AS x FROM p INTERSECT SELECT id, {1} FROM p)",
    "SELECT COUNT(*) FROM p JOIN p AS q ON p.id = q.id AND p.{0} = q.{1}",
    "SELECT COUNT(*) FROM p WHERE {0} IN (5, 18446744073709551615) OR {0} BETWEEN {1} AND 9",
    "SELECT COUNT(*) FROM p WHERE CASE WHEN {0} > 3 THEN {0} ELSE {1} END = COALESCE({1}, {0}, 1)",
    "SELECT COUNT(*) FROM p WHERE GREATEST({0}, {1}) = NULLIF({1}, {0}) OR LEAST({0}, {1}, 2) > {0} + {1}",
    "SELECT COUNT(x) FROM (SELECT id, MAX({0}) - MIN({1}) AS x, MEDIAN({1}) AS y FROM p GROUP BY id, {0}) WHERE y > x",
    "SELECT COUNT(*) FROM p JOIN w ON w.{0} = p.{1}",
    "SELECT COUNT(*) FROM p WHERE {0} NOT IN (SELECT {1} FROM w WHERE {1} IS NOT NULL)",
]
QUESTIONS = [form.format(x, y) for form in FORMS for x, y in itertools.product(TYPES, repeat=2)]


def _table() -> pa.Table:
    ends = [*itertools.product(*ENDS.values()), (None,) * 4, (1, 1, 1, 1)]
    columns = {name: pa.array([row[i] for row in ends], kind) for i, (name, kind) in enumerate(TYPES.items())}
    return pa.table({"id": [i // 3 for i in range(len(ends))], **columns})


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    held = _table()
    made = Desk({"p": hb.table(held, unit="id", max_groups=2, max_rows=2, max_total=4), "w": hb.public(held)})
    yield made
    made.engine.close()


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.register("held", _table())
        made.execute("CREATE TABLE source0 AS SELECT * FROM held")
        made.execute(f"SET disabled_optimizers = '{LEFT_OUT}'")
        yield made


def seen(con: duckdb.DuckDBPyConnection, desk: Desk, questions: list[str]) -> set[str]:
    """The faults of the bound plans of questions."""
    found: set[str] = set()
    for question in questions:
        for sql, public in texts(desk, question):
            for place, table in public.items():
                con.register("incoming", pa.table(table))
                con.execute(f'CREATE OR REPLACE TABLE "{place}" AS SELECT * FROM incoming')
            for plan in plans(con, sql, optimized=False):
                found.update(faults(plan, sql, optimized=False))
            con.execute(sql).fetchall()
    return found


def test_no_whole_number_is_made_narrower_and_none_fails(con: duckdb.DuckDBPyConnection, desk: Desk) -> None:
    assert all(list(texts(desk, question)) for question in QUESTIONS)  # none of them is refused
    assert seen(con, desk, QUESTIONS) == set()


def test_a_default_that_the_engine_narrows_is_seen(
    con: duckdb.DuckDBPyConnection, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: the default of LAG had the type of its value, whatever it held."""
    monkeypatch.setattr(DuckDB, "beside", lambda self, sql, kind: sql)
    asked = [q for q in QUESTIONS if "LAG(c, 1, d)" in q]
    with pytest.raises(duckdb.ConversionException, match="out of range"):
        seen(con, desk, asked)
    (text, _), *_ = texts(desk, asked[0])
    assert "its own cast of HUGEINT to BIGINT" in {
        fault for plan in plans(con, text, optimized=False) for fault in faults(plan, text, optimized=False)
    }
