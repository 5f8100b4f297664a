"""The histograms of searches, and sums clipped to what was found, on every engine: the same integers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from asked import a_unit, everybody, frames, questions
from engines.places import Embedded, Postgres, Spark, answer
from hubbub.engines.duckdb.relations import image
from hubbub.errors import HubbubError
from hubbub.tables.columns import UpTo
from hubbub.tables.declare import Limits
from hubbub.tables.expressions import Column
from hubbub.tables.measure import MeasurementKind, bounded_sum
from hubbub.tables.plan import Plan, Search, make_plans

FEW: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
CASE: dict[str, Any] = {
    "sql": questions(depth=0),
    "units": everybody,
    "newcomer": a_unit,
    "limits": st.tuples(st.integers(1, 3), st.integers(1, 3)),
}


def plans(here: Embedded, sql: str, limits: tuple[int, int]) -> list[Plan]:
    """The histograms of all searches that a question could need, and its sums clipped; none where it is refused."""
    try:
        asked = here.desk.statement(sql).questions
        made = [p for q in asked for p in make_plans(q, image, limits=Limits(*limits))]
    except HubbubError as error:
        assert str(error)
        return []
    return [one for plan in made for one in _searched(plan)]


def _searched(plan: Plan) -> Iterator[Plan]:
    if not plan.one_row:
        yield Search(plan, "rows").histogram
        if plan.keys:
            yield Search(plan, "groups").histogram
    for measurement in plan.measurements:
        argument = measurement.values[0].argument if measurement.counting is MeasurementKind.SUM else None
        if isinstance(argument, Column):
            for bound in (None, Fraction(16)):
                declared = {**plan.declared, argument.name: UpTo(Fraction(0), bound)}
                summed = bounded_sum(argument, declared)
                assert summed is not None
                clipped = Plan(plan.question, plan.keys, plan.one_row, plan.bounds, plan.domains, (summed,), declared)
                yield clipped if bound is not None else Search(clipped, argument.name, summed).histogram


def tamed(units: dict[Any, Any]) -> dict[Any, Any]:
    """The same without numbers that Postgres does not calculate with, of which no equality is promised."""
    return {
        unit: {
            name: [tuple(1e60 if isinstance(v, float) and abs(v) > 1e60 else v for v in row) for row in held]
            for name, held in tables.items()
        }
        for unit, tables in units.items()
    }


def compare(worlds: tuple[Embedded, Postgres | Spark], units: dict[Any, Any], made: list[Plan]) -> None:
    here, there = worlds
    here.fill(frames(tamed(units)))
    there.fill(frames(tamed(units)))
    for plan in made:
        public = here.public(plan)
        assert answer(there.engine, plan, public) == answer(here.engine, plan, public)


@settings(max_examples=15, **FEW)
@given(**CASE)
def test_searches_give_the_same_integers_on_postgres(
    worlds: tuple[Embedded, Postgres], sql: str, units: dict[Any, Any], newcomer: Any, limits: tuple[int, int]
) -> None:
    compare(worlds, {**units, 9: newcomer}, plans(worlds[0], sql, limits))


@pytest.mark.soak
@settings(max_examples=200, **FEW)
@given(**CASE)
def test_many_searches_give_the_same_integers_on_postgres(
    worlds: tuple[Embedded, Postgres], sql: str, units: dict[Any, Any], newcomer: Any, limits: tuple[int, int]
) -> None:
    compare(worlds, {**units, 9: newcomer}, plans(worlds[0], sql, limits))


@pytest.mark.soak
@settings(max_examples=20, **FEW)
@given(**CASE)
def test_many_searches_give_the_same_integers_on_spark(
    spark_worlds: tuple[Embedded, Spark], sql: str, units: dict[Any, Any], newcomer: Any, limits: tuple[int, int]
) -> None:
    compare(spark_worlds, {**units, 9: newcomer}, plans(spark_worlds[0], sql, limits))


WARDS = "SELECT ward, COUNT(*) AS c, SUM(n) AS s FROM visits GROUP BY ward"


def test_searches_give_the_same_integers_on_spark(spark_worlds: tuple[Embedded, Spark]) -> None:
    visits = [(-5, "A", 1.0, 3, True, None), (7, "B", 2.0, 20, False, None), (7, "A", 2.0, 20, False, None)]
    units = {u: {"visits": visits[: u % 3 + 1] * (u + 1), "people": [("m", 3)], "items": []} for u in range(6)}
    made = plans(spark_worlds[0], WARDS, (1, 2))
    assert made
    compare(spark_worlds, units, made)
