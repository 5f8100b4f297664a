"""What people ask, on every engine: the same integers before noise on Postgres and Spark as on DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from asked.schemas import FRAMES, tables
from asked.test_answered import QUESTIONS, Question
from engines.places import Embedded, Postgres, Spark, answer
from hubbub.engines.duckdb.relations import image
from hubbub.errors import PolicyError, QueryError
from hubbub.sql.bind.query import PublicQuestion, parse
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import leaves

PRIVATE = [q for q in QUESTIONS if q.never is None]


@cache
def _here(schema: str) -> Embedded:
    return Embedded(tables(schema), FRAMES[schema])


@pytest.fixture(scope="module")
def servers(postgres_server: str) -> Iterator[dict[str, Postgres]]:
    found = {schema: Postgres(postgres_server, tables(schema), FRAMES[schema]) for schema in FRAMES}
    yield found
    for place in found.values():
        place.close()


@pytest.fixture(scope="module")
def clusters(spark: Any) -> Iterator[dict[str, Spark]]:
    found = {schema: Spark(spark, tables(schema), FRAMES[schema]) for schema in FRAMES}
    yield found
    for place in found.values():
        place.close()


def _plans(here: Embedded, question: Question) -> list[Plan]:
    """What is measured of private rows; nothing where the question is about declarations alone."""
    try:
        statement = parse(question.sql, here.desk.catalog, public=here.desk.outer)
    except (QueryError, PolicyError):
        return []  # tests/asked/test_answered.py holds what is refused
    if isinstance(statement, PublicQuestion):
        return []
    return [plan for q in statement.questions for plan in make_plans(q, image, private_keys=True)]


def _compared(there: Any, questions: list[Question]) -> tuple[int, list[str]]:
    """How many measurements were compared, and the questions of which some differ."""
    count, different = 0, []
    for question in questions:
        here = _here(question.schema)
        for plan in _plans(here, question):
            if any(leaf.released for leaf in leaves(plan.question.relation)):
                continue  # its public relation is made of a noisy answer
            public = here.public(plan)
            count += 1
            if answer(there[question.schema].engine, plan, public) != answer(here.engine, plan, public):
                different.append(f"{question.schema}: {question.name}")
    return count, different


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_postgres_gives_the_same_integers(servers: dict[str, Postgres], part: int) -> None:
    count, different = _compared(servers, PRIVATE[part::2])
    assert different == []
    assert count > 0.8 * len(PRIVATE[part::2])  # most of what is asked is measured


@pytest.mark.parametrize("part", [0, *(pytest.param(p, marks=pytest.mark.soak) for p in range(1, 48))])
def test_spark_gives_the_same_integers(clusters: dict[str, Spark], part: int) -> None:
    count, different = _compared(clusters, PRIVATE[part::48])
    assert different == []
    assert count > 0
