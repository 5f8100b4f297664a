"""Groups by steps of numbers: rows at the ends of steps, and their neighbours among doubles, on every engine.

Engines group by the value of the expression, and a value that were another double than its label would be dropped in
silence (`docs/decisions/0017-steps.md`): here no row is.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from engines.places import Embedded, Postgres, Spark, answer
from hubbub.engines.duckdb.relations import image
from hubbub.sql.bind.query import PublicQuestion, parse
from hubbub.tables.plan import make_plans

ENDS = [*(k * 500.0 for k in range(5)), *(k / 10 for k in range(21)), *(k / 20 for k in range(41)), 0.3, 0.15, 1.05]
NEAR = [near for end in ENDS for near in (end, math.nextafter(end, -math.inf), math.nextafter(end, math.inf))]
VALUES = sorted({min(max(x, 0.0), 2000.0) for x in NEAR})
SMALL = sorted({min(max(x, 0.0), 2.0) for x in NEAR})
STEPS = [
    "FLOOR(x / 500) * 500",
    "x // 500",
    "CEIL(x / 500)",
    "WIDTH_BUCKET(x, 0, 2000, 4)",
    "CASE WHEN x < 500 THEN 0 ELSE FLOOR(x / 500) * 500 END",
    "ROUND(y, 1)",
    "FLOOR(y * 20) / 20",
    "FLOOR(y / 0.1) * 0.1",
]


def _tables() -> tuple[dict[str, Any], dict[str, pa.Table]]:
    xs, ys = VALUES, [SMALL[i % len(SMALL)] for i in range(len(VALUES))]
    frame = pa.table({"id": range(len(xs)), "x": xs, "y": ys})
    columns = {"x": hb.between(0, 2000), "y": hb.between(0, 2)}
    return {"t": hb.table(frame, unit="id", max_groups=1, max_rows=1, columns=columns)}, {"t": frame}


def _counts(place: Any, here: Embedded, expression: str) -> tuple[Any, ...]:
    sql = f"SELECT {expression} AS step, COUNT(*) AS n FROM t GROUP BY 1"
    statement = parse(sql, here.desk.catalog, public=here.desk.outer)
    assert not isinstance(statement, PublicQuestion)
    (plan,) = make_plans(statement.questions[0], image)
    return answer(place.engine, plan, here.public(plan))


@pytest.fixture(scope="module")
def here() -> Embedded:
    return Embedded(*_tables())


@pytest.mark.parametrize("expression", STEPS)
def test_no_row_at_the_end_of_a_step_is_dropped(here: Embedded, expression: str) -> None:
    assert sum(_counts(here, here, expression)[0]) == len(VALUES)


def test_rows_at_the_ends_of_steps_are_in_the_same_groups_on_postgres(here: Embedded, postgres_server: str) -> None:
    there = Postgres(postgres_server, *_tables())
    try:
        assert [e for e in STEPS if _counts(there, here, e) != _counts(here, here, e)] == []
    finally:
        there.close()


def test_rows_at_the_ends_of_steps_are_in_the_same_groups_on_spark(here: Embedded, spark: Any) -> None:
    there = Spark(spark, *_tables())
    try:
        assert [e for e in STEPS if _counts(there, here, e) != _counts(here, here, e)] == []
    finally:
        there.close()
