"""Norm clipping on every engine: the same weights, the same integers, whatever the sizes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from asked import a_unit, everybody, frames, questions, tables
from engines.places import Embedded, Postgres, answer
from hubbub.engines.duckdb import image
from hubbub.errors import HubbubError
from hubbub.tables.clipping import Norm
from hubbub.tables.declare import Limits
from hubbub.tables.plan import Plan, make_plans


@pytest.fixture(scope="module")
def worlds(postgres_server: str) -> Iterator[tuple[Embedded, Postgres]]:
    declared, empty = tables("add_remove"), frames({})
    here, there = Embedded(declared, empty), Postgres(postgres_server, declared, empty)
    yield here, there
    here.close()
    there.close()


def plans(here: Embedded, sql: str, limits: tuple[int, int], norm: Norm) -> list[Plan]:
    """The plans of a question that clip something; none where it is refused."""
    try:
        found = here.desk.statement(sql).questions
        made = [p for q in found for p in make_plans(q, image, limits=Limits(*limits, None, "norm"), norm=norm)]
    except HubbubError as error:
        assert str(error)
        return []
    return [plan for plan in made if plan.clipping]


def compare(worlds: tuple[Embedded, Postgres], units: dict[Any, Any], found: list[Plan]) -> None:
    here, there = worlds
    here.fill(frames(units))
    there.fill(frames(units))
    for plan in found:
        public = here.public(plan)
        assert answer(there.engine, plan, public) == answer(here.engine, plan, public)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    sql=questions(depth=0),
    units=everybody,
    newcomer=a_unit,
    limits=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    norm=st.sampled_from(["l1", "l2"]),
)
def test_random_questions_give_the_same_integers(
    worlds: tuple[Embedded, Postgres],
    sql: str,
    units: dict[Any, Any],
    newcomer: Any,
    limits: tuple[int, int],
    norm: Norm,
) -> None:
    compare(worlds, {**units, 9: newcomer}, plans(worlds[0], sql, limits, norm))


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("limits", [(1, 1), (2, 3), (2**31 - 1, 2**31 - 1)])
def test_many_rows_and_vast_limits_give_the_same_integers(
    worlds: tuple[Embedded, Postgres], limits: tuple[int, int], norm: Norm
) -> None:
    day = dt.date(2025, 1, 1)
    visits = [(0, ward, 99.5, 7, True, day) for ward, k in (("A", 700), ("B", 3), ("C", 1)) for _ in range(k)]
    units = {1: {"visits": visits, "people": [], "items": []}, 2: {"visits": visits[700:], "people": [], "items": []}}
    for what in ("COUNT(*), COUNT(DISTINCT id)", "SUM(x)", "SUM(x - n), AVG(n), VAR_POP(x)"):
        found = plans(worlds[0], f"SELECT ward, {what} FROM visits GROUP BY ward", limits, norm)
        assert found
        compare(worlds, units, found)
