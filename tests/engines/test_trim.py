"""The same blanks are cut off on every engine, as a group key, in a condition, and of no unit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import hubbub as hb
from engines.places import Embedded, Postgres, Spark, answer
from hubbub.tables.columns import BLANKS

SAID = [*BLANKS, "\t", "\n", "\r", "\u200b", "\ufeff", "", "x"]
FRAMES = {
    "t": pa.table({"id": [f"{' ' * (i % 2)}u{i // 2}" for i in range(len(SAID))], "w": [f"{b}A{b}" for b in SAID]})
}
TABLES = {"t": hb.table(FRAMES["t"], unit="id", max_groups=2, max_rows=2, columns={"w": hb.one_of("A", trim=True)})}
QUESTIONS = [
    "SELECT w, COUNT(*), COUNT(DISTINCT id) FROM t GROUP BY w",
    "SELECT COUNT(*) FROM t WHERE w = 'A'",
    "SELECT SUM(LEAST(LENGTH(w), 9)) FROM t",
    "SELECT COUNT(*) FROM (SELECT id, MAX(w) AS m FROM t GROUP BY id) WHERE m = 'A'",
]


def compared(there: Any) -> None:
    here = Embedded(TABLES, FRAMES)
    try:
        for sql in QUESTIONS:
            for plan in here.desk.plans(sql):
                assert answer(there.engine, plan, {}) == answer(here.engine, plan, {}), sql
        (plan,) = here.desk.plans(QUESTIONS[0])
        assert len(BLANKS) + 1 in {int(v[0]) for v in answer(here.engine, plan, {})}
    finally:
        here.close()
        there.close()


def test_postgres_trims_as_duckdb_does(postgres_server: str) -> None:
    compared(Postgres(postgres_server, TABLES, FRAMES))


def test_spark_trims_as_duckdb_does(spark: Any) -> None:
    compared(Spark(spark, TABLES, FRAMES))
