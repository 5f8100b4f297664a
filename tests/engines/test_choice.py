"""Which of a unit's groups count, where it has too many, is the same choice on every engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from asked import frames, tables
from engines.places import Embedded, Postgres, Spark, answer
from hubbub.engines.duckdb.relations import image
from hubbub.tables.declare import Limits
from hubbub.tables.plan import make_plans

KEYS = ["ok", "ward", "n", "day", "CAST(day AS TIMESTAMP)", "ok, ward", "n, day"]
DAY = dt.date(2025, 1, 1)
UNITS = {
    unit: {
        "visits": [(i, "ABC"[i % 3], 1.0, i - 3, i % 2 == 0, DAY + dt.timedelta(days=i)) for i in range(6)],
        "people": [],
        "items": [],
    }
    for unit in range(12)
}


@pytest.fixture(scope="module")
def here() -> Iterator[Embedded]:
    found = Embedded(tables("add_remove"), frames(UNITS))
    yield found
    found.close()


def compare(here: Embedded, there: Any, keys: str) -> None:
    (question,) = here.desk.statement(f"SELECT {keys}, COUNT(*) FROM visits GROUP BY {keys}").questions
    for groups in (1, 2):
        (plan,) = make_plans(question, image, limits=Limits(groups, 1, None), private_keys=True)
        assert answer(there.engine, plan, {}) == answer(here.engine, plan, {})


@pytest.mark.parametrize("keys", KEYS)
def test_postgres_keeps_the_same_groups(here: Embedded, postgres_server: str, keys: str) -> None:
    there = Postgres(postgres_server, tables("add_remove"), frames(UNITS))
    compare(here, there, keys)
    there.close()


@pytest.mark.parametrize("keys", ["ok, ward", *(pytest.param(k, marks=pytest.mark.soak) for k in KEYS if "," not in k)])
def test_spark_keeps_the_same_groups(here: Embedded, spark: Any, keys: str) -> None:
    there = Spark(spark, tables("add_remove"), frames(UNITS))
    compare(here, there, keys)
    there.close()
