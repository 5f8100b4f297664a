"""What people ask, against DuckDB: how many of the questions are answered, how many refused, and none wrongly.

A question stands in `hospital.sql`, `shop.sql` or `mobility.sql` below a line that names it. Behind the name, in
parentheses, what is expected: nothing, an answer equal to DuckDB's; `not yet`, no such answer so far; `never: WORDS`, a
refusal with these words, of what has no private answer; `within X`, an answer that may differ by X; `with delta`, an
answer where groups that nobody declared are found privately, and a refusal with the way out under a pure budget.
`-- means` gives DuckDB other words for the same question, or none.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub as hb
from asked.schemas import FRAMES, tables
from hubbub.errors import PolicyError, QueryError
from people import HUGE, session

_TITLE = re.compile(r"-- (?P<name>.*?)( \((?P<notes>(not yet|never: |within |with delta)[^\n]*)\))?\n")


_KINDS = """
    undeclared; top-k; prefix; SELECT *; REGEXP; column + INTERVAL; AVG(LN); NOT IN; birth-year groups; AVG(n);
    window without the unit; DATE_TRUNC; STRFTIME; TO_CHAR; DAYNAME; MONTHNAME; WIDTH_BUCKET; HISTOGRAM; FLOOR*500;
    FLOOR(lat*20)/20; ROUND(lat, 1); POWER; LIST_CONTAINS; POW; SPLIT_PART; CONCAT; EPOCH; DATE; TIME_BUCKET; LAST_DAY;
    AGE; time minus time; CURRENT_DATE - 365; DATEDIFF; VALUES; PIVOT; SAMPLE; MODE; ARG_MAX; ANY_VALUE; STRING_AGG;
    REGR_SLOPE; KURTOSIS; ENTROPY; APPROX_TOP_K; APPROX_COUNT_DISTINCT; DESCRIBE; SHOW; SUMMARIZE
"""
KINDS = frozenset(" ".join(_KINDS.split()).split("; "))
"""What was refused of the first 124 questions, by kind. A kind stands in brackets behind the name of its question; 8 of
the 59 refusals were of DATE_TRUNC and what stands on top of it."""


@dataclass(frozen=True)
class Question:
    schema: str
    name: str
    sql: str
    means: str
    not_yet: bool
    never: str | None
    within: float
    with_delta: bool


def _questions() -> Iterator[Question]:
    for schema in FRAMES:
        for text in (Path(__file__).parent / f"{schema}.sql").read_text("utf-8").split(";\n"):
            if text.strip():
                title = _TITLE.match(text.lstrip())
                assert title is not None, text
                sql, _, means = text.lstrip()[title.end() :].partition("\n-- means")
                notes = [n.strip() for n in (title["notes"] or "").split(";")]
                never = next((n.removeprefix("never: ") for n in notes if n.startswith("never")), None)
                within = next((float(n.removeprefix("within ")) for n in notes if n.startswith("within")), 0.0)
                flags = ("not yet" in notes, never, within, "with delta" in notes)
                yield Question(schema, title["name"], sql, means.strip() or sql, *flags)


QUESTIONS = list(_questions())


@pytest.fixture(scope="module")
def asked() -> Iterator[dict[str, hb.Session]]:
    with (
        session(epsilon=10**6 * HUGE, **tables("hospital")) as hospital,
        session(epsilon=10**6 * HUGE, **tables("shop")) as shop,
        session(epsilon=10**6 * HUGE, **tables("mobility")) as mobility,
    ):
        yield {"hospital": hospital, "shop": shop, "mobility": mobility}


@pytest.fixture(scope="module")
def with_delta() -> Iterator[dict[str, hb.Session]]:
    with ExitStack() as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        budget = hb.Budget(10**6 * HUGE, "0.5")
        yield {s: opened.enter_context(hb.Session(tables(s), budget=budget, ledger=None)) for s in FRAMES}


@pytest.fixture(scope="module")
def plain() -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    found = {schema: duckdb.connect() for schema in FRAMES}
    for schema, frames in FRAMES.items():
        for name, frame in frames.items():
            found[schema].register(name, frame)
    yield found
    for con in found.values():
        con.close()


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return [_cell(v) for v in value]
    if isinstance(value, dt.date):
        return str(value).removesuffix(" 00:00:00")
    return float(value)


def _near(a: Any, b: Any, within: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-4, abs_tol=max(within, 1e-3))
    return bool(a == b)


def _is(row: list[Any], other: list[Any], within: float) -> bool:
    return len(row) == len(other) and all(map(_near, row, other, [within] * len(row)))


def _same(columns: list[str], mine: list[list[Any]], theirs: list[list[Any]], within: float) -> bool:
    """Whether DuckDB's rows are all there, and every other row is an empty group: every declared group is answered."""
    left = list(mine)
    for row in theirs:
        found = next((r for r in left if _is(r, row, within)), None)
        if found is None:
            return False
        left.remove(found)
    counts = [i for i, name in enumerate(columns) if name in ("n", "patients", "riders")]
    return all(_near(row[i], 0.0, 0) for row in left for i in counts) and (not left or len(columns) > 1)


def outcome(asked: hb.Session, plain: duckdb.DuckDBPyConnection, question: Question, **options: Any) -> str:
    """'answered', 'wrong: ...', or 'refused: ...'."""
    try:
        release = asked.sql(question.sql, epsilon=HUGE, **options)
    except (QueryError, PolicyError) as error:
        return f"refused: {error}"
    if question.means == "nothing":
        return "answered"
    mine = [[_cell(v) for v in row] for row in release.rows()]
    theirs = [[_cell(v) for v in row] for row in plain.execute(question.means).fetchall()]
    if _same(list(release.columns), mine, theirs, question.within):
        return "answered"
    return f"wrong: {len(mine)} rows {mine[:3]}, DuckDB has {len(theirs)} rows {theirs[:3]}"


def as_expected(question: Question, found: str) -> bool:
    """Whether an outcome is what the question is to have in the end."""
    if question.never is None:
        return found == "answered"
    return found.startswith("refused") and question.never.lower() in found.lower()


def test_the_questions_are_as_many_and_as_mixed_as_they_have_to_be() -> None:
    assert len(QUESTIONS) >= 150
    assert len({(q.schema, q.name) for q in QUESTIONS}) == len(QUESTIONS)
    assert len({q.sql for q in QUESTIONS}) == len(QUESTIONS)
    assert {q.schema for q in QUESTIONS} == set(FRAMES)
    marks = [mark for q in QUESTIONS for mark in re.findall(r"\[(.*)\]", q.name)]
    assert {kind for kind in KINDS if not any(kind in mark for mark in marks)} == set()
    assert sum("DATE_TRUNC" in mark or "4" in mark for mark in marks) >= 8


def test_at_most_one_question_in_twenty_is_one_that_never_has_an_answer() -> None:
    assert sum(q.never is not None or q.not_yet for q in QUESTIONS) * 20 <= len(QUESTIONS)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q.with_delta], ids=lambda q: f"{q.schema}: {q.name}")
def test_groups_that_nobody_declared_are_found_under_a_budget_with_delta(
    asked: dict[str, hb.Session],
    with_delta: dict[str, hb.Session],
    plain: dict[str, duckdb.DuckDBPyConnection],
    question: Question,
) -> None:
    assert outcome(with_delta[question.schema], plain[question.schema], question, delta="0.001") == "answered"
    refused = outcome(asked[question.schema], plain[question.schema], question)
    assert refused.startswith("refused")
    assert "declare" in refused.lower()


@pytest.mark.parametrize("question", [q for q in QUESTIONS if not q.with_delta], ids=lambda q: f"{q.schema}: {q.name}")
def test_what_people_ask_is_answered_as_by_duckdb(
    asked: dict[str, hb.Session], plain: dict[str, duckdb.DuckDBPyConnection], question: Question
) -> None:
    found = outcome(asked[question.schema], plain[question.schema], question)
    assert not found.startswith("wrong"), found
    assert as_expected(question, found) is not question.not_yet, f"is '(not yet)' true? {found}"
