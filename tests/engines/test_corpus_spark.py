"""The corpus where relations have operands, on Spark: no question raises, and the integers are DuckDB's (P33).

What single expressions make of a row, `test_spark_totality` holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

import hubbub as hb
from engines.corpus import questions, rows
from engines.places import Embedded, Spark
from engines.test_corpus_postgres import failing, tame

ASKED = 24
SOAK_FROM = int(os.environ.get("HUBBUB_SOAK_FROM", "0"))
SOAK_COUNT = int(os.environ.get("HUBBUB_SOAK_COUNT", "500"))
"""`make soak` may be resumed: the seeds from SOAK_FROM on, SOAK_COUNT questions each."""


@pytest.fixture(scope="module", params=["false", "true"], ids=["ANSI off", "ANSI on"])
def worlds(spark: Any, request: pytest.FixtureRequest) -> Iterator[tuple[Embedded, Spark]]:
    frame, public = tame(rows(80)), tame(rows(60, seed=9))
    private = hb.table(frame, unit="id", max_groups=40, max_rows=40, max_total=80)
    declared = {"p": private, "w": hb.public(public)}
    here, there = Embedded(declared, {"p": frame}), Spark(spark, declared, {"p": frame})
    there.set("spark.sql.ansi.enabled", request.param)
    yield here, there
    here.close()
    there.close()


def test_no_question_raises_or_differs_on_spark(worlds: tuple[Any, Any]) -> None:
    count, found = failing(worlds, questions(ASKED, seed=7))
    assert found == []
    assert count > ASKED // 4


@pytest.mark.soak
def test_no_question_raises_or_differs_on_spark_at_length(
    worlds: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    count, found = failing(worlds, questions(SOAK_COUNT, seed=SOAK_FROM))
    assert found == []
    with capsys.disabled():
        print(f"\n{count} of {SOAK_COUNT} questions answered on Spark: 0 raise, 0 differ from DuckDB")
