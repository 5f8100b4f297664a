"""One person's value, of any type and however it is handed over, changes no answer by more than one person can.

Reader after reader has found one more: a moment beyond Python's years that made all categories NULL, a text that was an
error for everybody, a decimal by which two people were one. Here each type of Arrow, in each way that it can be handed
over, meets each form of question, without and with one far value in a row.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import counts
import hubbub as hb
from engines.one_value import COLUMNS, FORMS, PEOPLE, table_of
from people import HUGE, session

pytestmark = pytest.mark.filterwarnings("ignore")

QUESTIONS = """SELECT g, COUNT(*) FROM t GROUP BY g ORDER BY g
SELECT g, COUNT(c) FROM t WHERE c IS NOT NULL GROUP BY g ORDER BY g
SELECT COUNT(DISTINCT c) FROM t
SELECT COUNT(*) FROM t WHERE CAST(c AS VARCHAR) = 'v1' OR LENGTH(CAST(c AS VARCHAR)) > 1 OR n > 0
SELECT COUNT(*) FROM t WHERE CAST(c AS BIGINT) > 1 OR n > 0
SELECT COUNT(*) FROM t WHERE CAST(c AS DOUBLE) > 1 OR n > 0
SELECT COUNT(*) FROM t WHERE CAST(c AS DATE) > DATE '2020-01-01' OR n > 0
SELECT COUNT(*) FROM t WHERE CAST(c AS TIMESTAMP) > TIMESTAMP '2020-01-01 00:00:00' OR n > 0
SELECT COUNT(*) FROM t WHERE CAST(c AS BOOLEAN) OR n > 0
SELECT COUNT(*) FROM t WHERE UPPER(CAST(c AS VARCHAR)) LIKE '%A%B%' OR n > 0
SELECT COUNT(*) FROM t WHERE c = c
SELECT COUNT(*) FROM t WHERE c IN (SELECT c FROM t u WHERE u.id = t.id)
SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY c) AS r, n FROM t) WHERE r = 1
SELECT COUNT(*) FROM (SELECT id, MAX(c) AS m FROM t GROUP BY id) WHERE m IS NOT NULL
SELECT COUNT(*) FROM (SELECT id, c, LAG(c) OVER (PARTITION BY id ORDER BY n) AS l FROM t) WHERE l IS NULL OR c > l
SELECT COUNT(*) FROM t JOIN t u ON t.id = u.id AND t.c = u.c
SELECT COUNT(*) FROM (SELECT DISTINCT id, c FROM t)
SELECT COUNT(*) FROM (SELECT id, c FROM t EXCEPT SELECT id, c FROM t)
SELECT COUNT(*) FROM t WHERE COALESCE(c, c) IS NULL OR CASE WHEN n > 1 THEN c END IS NULL
SELECT COUNT(*) FROM t WHERE GREATEST(c, c) IS NOT NULL
SELECT SUM(LEAST(GREATEST(c, 0), 10)) FROM t
SELECT SUM(LEAST(GREATEST(c * c - c, 0), 10)) FROM t
SELECT SUM(LEAST(GREATEST(c / n, 0), 10)) FROM t
SELECT SUM(LEAST(GREATEST(ABS(c), 0), 10)) FROM t
SELECT SUM(LEAST(GREATEST(EXTRACT(year FROM c) - 2023, 0), 10)) FROM t
SELECT SUM(LEAST(GREATEST(EXTRACT(epoch FROM c), 0), 10)) FROM t
SELECT COUNT(*) FROM t WHERE DATE_TRUNC('month', c) < DATE '2030-01-01' OR n > 0
SELECT COUNT(*) FROM t WHERE c + INTERVAL 1 MONTH < DATE '2030-01-01' OR n > 0
SELECT COUNT(*) FROM t WHERE DATE_DIFF('hour', c, TIMESTAMP '2024-01-01 00:00:00') < 5 OR n > 0
SELECT COUNT(*) FROM t WHERE ROUND(c, 2) > 0 OR FLOOR(c) > 0 OR SQRT(c) > 0 OR LN(c) > 0 OR EXP(c) > 0 OR n > 0
SELECT COUNT(*) FROM t WHERE POWER(c, 3) > 0 OR c % 7 > 0 OR c // 3 > 0 OR n > 0
SELECT COUNT(*) FROM t WHERE REGEXP_MATCHES(c, 'a+') OR SUBSTRING(c, 1, 5) = 'a' OR SPLIT_PART(c, 'a', 2) = 'q' OR n > 0
SELECT COUNT(*) FROM t WHERE REPLACE(c, 'a', 'bb') = 'q' OR TRIM(c) = 'q' OR LOWER(c) = 'q' OR n > 0
SELECT COUNT(*) FROM t WHERE c > '2024-01-01' OR n > 0
SELECT COUNT(*) FROM t WHERE c > 1 OR n > 0
SELECT COUNT(*) FROM (SELECT id, MAX(c * c) AS m, MIN(POWER(c, 3)) AS k FROM t GROUP BY id) WHERE m >= k
SELECT COUNT(*) FROM (SELECT id, MAX(c + n) OVER (PARTITION BY id) AS m FROM t) WHERE m >= 0
SELECT SUM(LEAST(GREATEST(s, 0), 10)) FROM (SELECT id, SUM(LEAST(c * c, 5)) AS s FROM t GROUP BY id)""".split("\n")
OF_EACH = QUESTIONS[-3:]
"""What is computed of each person's rows together."""
PEOPLE_OF_IT = "SELECT COUNT(DISTINCT c) FROM t"
MOST = {"COUNT": 2 + 2, "SUM": 10 + 2}
"""What a person's one row moves: in a join with itself, two rows. And noise of less than one, on both sides."""
Answers = dict[str, Any]


def asked(source: Any, questions: list[str], **declared: Any) -> Answers:
    """The rows of each answer; None of what is refused."""
    table = hb.table(source, max_rows=2 * PEOPLE, max_groups=9, max_total=2 * PEOPLE, **declared)
    answers: Answers = {}
    with session(epsilon=HUGE**3, t=table) as s:
        for question in questions:
            try:
                answers[question] = s.sql(question, epsilon=HUGE).rows()
            except hb.QueryError:
                answers[question] = None
    return answers


def answers_of(source: Any, questions: list[str], **options: Any) -> Answers:
    """The answers over a source, and by whom the column names; what cannot be declared says so."""
    known = {"columns": {"g": hb.one_of("x", "y"), "n": hb.between(1, 4)}}
    answers: Answers = {}
    for unit, texts, more in (("id", questions, known), ("c", [PEOPLE_OF_IT], {})):
        try:
            answers |= {
                f"{unit}: {text}": rows for text, rows in asked(source, texts, unit=unit, **more, **options).items()
            }
        except hb.PolicyError as error:
            answers[f"{unit}: declared"] = str(error)
    return answers


def moved(question: str, before: Any, after: Any) -> bool:
    """Whether an answer has moved by more than one person can move it."""
    if before is None or after is None or isinstance(before, str):
        return bool(before != after)
    most = next(most for word, most in MOST.items() if word in question)
    numbers = [[value for row in rows for value in row if not isinstance(value, str)] for rows in (before, after)]
    return len(before) != len(after) or any(abs(a - b) > most for a, b in zip(*numbers, strict=True))


def types_of(source: Any) -> list[str]:
    """The types of a frame of pandas, which a value may change: that the steward sees."""
    if type(source).__module__.split(".")[0] != "pandas":
        return []
    return [str(c.dtype) + str(getattr(getattr(c, "cat", None), "categories", c).dtype) for _, c in source.items()]


def handed_over(name: str, form: str, odd: Any, path: Path) -> Any:
    """The rows in one of the forms; None where it has no such type or value."""
    try:
        return FORMS[form](table_of(COLUMNS[name][0](odd)), path)
    except (Exception, pl.exceptions.PanicException):  # somebody else's, of many kinds
        return None


def some(name: str) -> list[tuple[str, Any, list[str]]]:
    """The forms, odd values and questions of a column: all of them in the soak, and a part that differs by column."""
    odds, at = COLUMNS[name][1], list(COLUMNS).index(name)
    if counts.SOAK:
        return [(form, odd, QUESTIONS) for form, odd in product(FORMS, odds)]
    forms = [list(FORMS)[(at * 5 + k * 3) % len(FORMS)] for k in range(2)]
    return [(form, odds[(at + k) % len(odds)], QUESTIONS[(at + k) % 6 :: 6]) for k, form in enumerate(forms)]


@pytest.mark.parametrize("name", COLUMNS)
def test_one_value_changes_no_answer_by_more_than_one_person_can(tmp_path: Path, name: str) -> None:
    usual: dict[str, Answers] = {}
    tried = 0
    for form, odd, questions in some(name):
        plain, far = (handed_over(name, form, value, tmp_path / f"{i}.parquet") for i, value in enumerate((..., odd)))
        if plain is None or far is None or types_of(plain) != types_of(far):
            continue
        before = usual[form] = usual.get(form) or answers_of(plain, questions)
        after = answers_of(far, questions)
        tried += 1
        assert before.keys() == after.keys(), (form, odd)
        assert {q: (rows, after[q]) for q, rows in before.items() if moved(q, rows, after[q])} == {}, (form, odd)
    assert tried or not counts.SOAK  # of the part that CI tries, two forms may not have the type


def test_the_battery_finds_one_value_that_makes_all_others_missing() -> None:
    answers = answers_of(table_of(pa.array([1] * (2 * PEOPLE))), QUESTIONS[1:3])
    missing = answers_of(table_of(pa.array([None] * (2 * PEOPLE), pa.int64())), QUESTIONS[1:3])
    assert [moved(q, rows, missing[q]) for q, rows in answers.items()] == [True, False, False]
