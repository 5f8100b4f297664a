"""Norm clipping on every engine: the same weights, the same integers, whatever the sizes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from asked import a_unit, everybody, frames, questions
from engines.places import Embedded, Postgres, Spark, answer
from hubbub.engines.duckdb.relations import image
from hubbub.errors import HubbubError
from hubbub.tables.clipping import Norm
from hubbub.tables.declare import Limits
from hubbub.tables.plan import Plan, make_plans

FEW: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
CASE: dict[str, Any] = {
    "sql": questions(depth=0),
    "units": everybody,
    "newcomer": a_unit,
    "limits": st.tuples(st.integers(1, 3), st.integers(1, 3)),
    "norm": st.sampled_from(["l1", "l2"]),
}


def plans(here: Embedded, sql: str, limits: tuple[int, int], norm: Norm) -> list[Plan]:
    """The plans of a question that clip something; none where it is refused."""
    try:
        found = here.desk.statement(sql).questions
        made = [p for q in found for p in make_plans(q, image, limits=Limits(*limits, None, "norm"), norm=norm)]
    except HubbubError as error:
        assert str(error)
        return []
    return [plan for plan in made if plan.clipping]


def compare(worlds: tuple[Embedded, Postgres | Spark], units: dict[Any, Any], found: list[Plan]) -> None:
    here, there = worlds
    here.fill(frames(units))
    there.fill(frames(units))
    for plan in found:
        public = here.public(plan)
        assert answer(there.engine, plan, public) == answer(here.engine, plan, public)


@settings(max_examples=40, **FEW)
@given(**CASE)
def test_random_questions_give_the_same_integers(
    worlds: tuple[Embedded, Postgres],
    sql: str,
    units: dict[Any, Any],
    newcomer: Any,
    limits: tuple[int, int],
    norm: Norm,
) -> None:
    compare(worlds, {**units, 9: newcomer}, plans(worlds[0], sql, limits, norm))


# Each takes Spark about a second: two here, forty in the soak.
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("examples", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_random_questions_give_the_same_integers_in_spark(
    spark_worlds: tuple[Embedded, Spark], ansi: str, examples: int
) -> None:
    spark_worlds[1].set("spark.sql.ansi.enabled", ansi)
    compared = []

    @settings(max_examples=50 * examples, **FEW)
    @given(**CASE)
    def clipped(sql: str, units: dict[Any, Any], newcomer: Any, limits: tuple[int, int], norm: Norm) -> None:
        found = plans(spark_worlds[0], sql, limits, norm)
        if found and len(compared) < examples:
            compared.append(sql)
            compare(spark_worlds, {**units, 9: newcomer}, found)

    clipped()
    assert len(compared) == examples


LIMITS = [(1, 1), (2, 3), (2**31 - 1, 2**31 - 1)]
WHAT = ["COUNT(*), COUNT(DISTINCT id)", "SUM(x)", "SUM(x - n), AVG(n), VAR_POP(x)"]


def many_rows(worlds: tuple[Embedded, Postgres | Spark], limits: tuple[int, int], norm: Norm, shown: list[str]) -> None:
    """Three units, of hundreds of rows, of a few, and of one whose value is nothing."""
    day = dt.date(2025, 1, 1)
    visits = [(0, ward, 99.5, 7, True, day) for ward, k in (("A", 700), ("B", 3), ("C", 1)) for _ in range(k)]
    rows = [visits, visits[700:], [(0, "C", 0.0, 0, True, day)]]
    units = {i: {"visits": of_unit, "people": [], "items": []} for i, of_unit in enumerate(rows)}
    found = [plans(worlds[0], f"SELECT ward, {what} FROM visits GROUP BY ward", limits, norm) for what in shown]
    assert all(found)
    compare(worlds, units, [plan for made in found for plan in made])


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("limits", LIMITS)
def test_many_rows_and_vast_limits_give_the_same_integers(
    worlds: tuple[Embedded, Postgres], limits: tuple[int, int], norm: Norm
) -> None:
    many_rows(worlds, limits, norm, WHAT)


IN_SPARK = [(limits, norm, ansi) for limits in LIMITS[1:] for norm in ("l1", "l2") for ansi in ("true", "false")]
IN_CI = [(LIMITS[2], "l1", "false"), (LIMITS[2], "l2", "true")]


@pytest.mark.parametrize(
    ("limits", "norm", "ansi"),
    [pytest.param(*case, marks=() if case in IN_CI else pytest.mark.soak) for case in IN_SPARK],
)
def test_many_rows_and_vast_limits_give_the_same_integers_in_spark(
    spark_worlds: tuple[Embedded, Spark], limits: tuple[int, int], norm: Norm, ansi: str
) -> None:
    spark_worlds[1].set("spark.sql.ansi.enabled", ansi)
    many_rows(spark_worlds, limits, norm, WHAT)
