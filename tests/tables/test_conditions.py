"""What is asked for and not declared is told before anything is charged: refused, or noted; from declarations alone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.engines.duckdb.relations import image
from hubbub.sql.bind.query import TableInfo, parse
from hubbub.tables.aggregate_query import Statement
from hubbub.tables.conditions import doubts
from hubbub.tables.expressions import columns_in
from hubbub.tables.kinds import Kind
from people import session

WARDS = ("Cardiology", "Oncology", "ER")
TYPES: dict[str, Any] = {
    "id": [1], "ward": ["ER"], "at": pa.array([1_700_000_000_000_000], pa.timestamp("us")), "age": [3.0], "n": [2],
    "free": ["x"], "open": ["x"], "rest": ["x"], "day": pa.array([19000], pa.date32()),
}  # fmt: skip
COLUMNS: dict[str, Any] = {
    "ward": hb.one_of(*WARDS),
    "at": hb.between("2022-01-01T00:00:00", "2024-12-31T23:59:59"),
    "age": hb.between(0, 120),
    "n": hb.one_of(1, 2, 3),
    "open": hb.one_of("a", "b", others=True),
    "rest": hb.one_of("a", "b", other="rest"),
    "day": hb.one_of("2024-01-01", "2024-01-02"),
}


def visits(rows: int = 1, **changes: Any) -> Any:
    frame = pa.table(TYPES).slice(0, rows)
    return hb.table(frame, unit="id", max_groups=1, max_rows=1, columns=COLUMNS | changes)


REFUSED = {
    "ward = 'cardiology'": "ward has no declared value 'cardiology'; did you mean 'Cardiology'?",
    "'Onkology' = ward": "did you mean 'Oncology'?",
    "ward IN ('Cardio', 'ERs')": "'Cardio' or 'ERs'; did you mean 'Cardiology' or 'ER'?",
    "age > 3 AND ward = 'ward 5'": "declared: 'Cardiology', 'Oncology', 'ER'.",
    "age > 3 OR ward = 'ward 5'": "has no declared value 'ward 5'",
    "ward = ' ER'": "did you mean 'ER'?",
    "ward = 'x' OR ward = 'y'": "'x' or 'y'",
    "LOWER(ward) = 'ER'": "LOWER(ward) has no declared value 'ER'; did you mean 'er'?",
    "CASE WHEN ward = 'ER' THEN 'acute' ELSE 'planned' END = 'plannd'": "did you mean 'planned'?",
    "n = 4": "n has no declared value 4; declared: 1, 2, 3.",
    "n IN (0, 7)": "n has no declared value 0 or 7",
    "n + 1 = 5": "an expression of n has no declared value 5; declared: 2",
    "day = '2024-01-03'": "declared: '2024-01-01', '2024-01-02'.",
    "id IN (SELECT id FROM visits WHERE ward = 'onclogy')": "did you mean 'Oncology'?",
}
NOTED = {
    "ward IN ('cardiology', 'ER')": "note: ward has no declared value 'cardiology'; did you mean 'Cardiology'?",
    "ward = 'cardiology' OR ward = 'ER'": "'cardiology'; did you mean",
    "ward <> 'cardiology'": "leaves out nothing that is declared",
    "ward NOT IN ('cardiology', 'ER')": "leaves out nothing",
    "NOT ward = 'cardiology'": "leaves out nothing",
    "CASE WHEN ward = 'cardiology' THEN 1 ELSE 2 END = 2": "That part of the question finds nothing",
    "at < '2019-01-01'": "at < '2019-01-01' holds for nothing that is declared: at is declared as between('2022-01-01",
    "at BETWEEN '2019-01-01' AND '2020-01-01'": "at <= '2020-01-01' holds for nothing",
    "NOT at >= '2019-01-01'": "at < '2019-01-01' holds for nothing",
    "age >= 121": "age >= 121 holds for nothing",
    "age = 500": "age = 500 holds for nothing",
    "n > 3": "n > 3 holds for nothing that is declared: n is declared as one_of(1, 2, 3).",
    "EXTRACT(year FROM at) = 2019": "EXTRACT(year FROM at) = 2019 holds for nothing",
}
PASSED = [
    "ward = 'ER'", "ward IN ('ER', 'Oncology')", "LOWER(ward) = 'er'", "COALESCE(ward, 'none') = 'none'",
    "free = 'whatever'", "open = 'c'", "rest = 'c'", "LOWER(open) = 'c'", "at >= '2019-01-01'", "at < '2030-01-01'",
    "at = '2023-05-05'", "age < 500", "age <= 0", "n = 1.0", "n < 2", "n = CAST('1' AS BIGINT)", "ward LIKE 'x%'",
    "ward IS NULL", "day = DATE '2024-01-01'", "ward = free", "ward IN ('ER', NULL)", "ward || free = 'x'",
]  # fmt: skip


def notes(s: hb.Session, sql: str, **given: Any) -> list[str]:
    return [note for note in s.check(sql, epsilon=1, **given).notes if note.startswith("note: ")]


@pytest.fixture(scope="module")
def asked():
    with session(visits=visits()) as opened:
        yield opened


@pytest.mark.parametrize("where", REFUSED)
def test_a_question_for_no_declared_value_is_refused_with_the_nearest(asked, where) -> None:
    sql = f"SELECT COUNT(*) AS n FROM visits WHERE {where}"
    for ask in (asked.check, asked.sql):
        with pytest.raises(hb.QueryError) as caught:
            ask(sql, epsilon=1)
        assert REFUSED[where] in str(caught.value)
        assert "Nothing was charged." in str(caught.value)
    assert asked.history() == []


@pytest.mark.parametrize("where", NOTED)
def test_a_condition_that_nothing_declared_meets_is_a_note(asked, where) -> None:
    (note,) = notes(asked, f"SELECT COUNT(*) AS n FROM visits WHERE {where}")
    assert NOTED[where] in note


@pytest.mark.parametrize("where", PASSED)
def test_of_other_conditions_nothing_is_said(asked, where) -> None:
    assert notes(asked, f"SELECT COUNT(*) AS n FROM visits WHERE {where}") == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT SUM(CASE WHEN ward = 'x' THEN 1 ELSE 0 END) FROM visits", 1),
        ("SELECT COUNT(*) FILTER (WHERE ward IN ('x', 'ER')) FROM visits", 1),
        ("SELECT SUM(CASE WHEN ward = 'x' THEN 1 WHEN n = 1 THEN 2 END) FROM visits", 1),
        ("SELECT ward = 'x' AS c, COUNT(*) FROM visits GROUP BY 1", 1),
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.id = b.id AND a.ward = 'x'", 0),
        ("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward HAVING ward = 'x' AND c > 3", 0),
        ("SELECT n, COUNT(*) FROM visits GROUP BY n", 0),
        ("SELECT rest, COUNT(*) FROM visits GROUP BY rest", 0),
        ("SELECT COUNT(*) FROM (SELECT id, MAX(n) AS m FROM visits GROUP BY id) WHERE m > 5", 1),
    ],
)
def test_elsewhere_it_is_a_note_at_most(asked, sql, said) -> None:
    assert len(notes(asked, sql)) == said


@pytest.mark.parametrize(
    "aggregate",
    [
        "COUNT(*) FILTER (WHERE ward = 'er')",
        "SUM(age) FILTER (WHERE ward IN ('er', 'x'))",
        "COUNT_IF(n > 1 AND ward = 'er')",
        "COUNT_IF(n > 1) FILTER (WHERE ward = 'er')",
        "COUNT(DISTINCT CASE WHEN ward = 'er' THEN id END)",
        "AVG(CASE WHEN ward = 'er' THEN age END)",
    ],
)
def test_an_aggregate_of_nothing_that_is_declared_is_refused_as_in_where(asked, aggregate) -> None:
    with pytest.raises(hb.QueryError, match=r"ward has no declared value 'er'.*; did you mean 'ER'\?"):
        asked.check(f"SELECT COUNT(*), {aggregate} FROM visits", epsilon=1)


def test_keys_of_edges_are_no_condition_of_the_question() -> None:
    with session(visits=visits(age=hb.edges(0, 18, 120))) as s:
        assert notes(s, "SELECT age, COUNT(*) FROM visits GROUP BY age") == []


def test_two_tables_of_which_one_is_open_allow_any_value() -> None:
    both = "SELECT id, {} AS w FROM visits UNION ALL SELECT id, {} FROM visits"
    with session(visits=visits()) as s:
        assert notes(s, f"SELECT COUNT(*) FROM ({both.format('ward', 'open')}) WHERE w = 'zzz'") == []
        with pytest.raises(hb.QueryError, match="w has no declared value 'zzz'"):
            s.check(f"SELECT COUNT(*) FROM ({both.format('ward', 'ward')}) WHERE w = 'zzz'", epsilon=1)


def test_what_is_said_does_not_depend_on_the_rows() -> None:
    for rows in (0, 1):
        with session(visits=visits(rows)) as s:
            assert len(notes(s, "SELECT COUNT(*) FROM visits WHERE ward IN ('x', 'ER')")) == 1
            with pytest.raises(hb.QueryError, match="no declared value"):
                s.check("SELECT COUNT(*) FROM visits WHERE ward = 'x'", epsilon=1)


def test_python_asks_under_the_same_rule(asked) -> None:
    rows = asked.table("visits")
    with pytest.raises(hb.QueryError, match="did you mean 'Cardiology'"):
        rows.filter(hb.col("ward") == "cardiology").agg(hb.count()).check(epsilon=1)
    found = rows.filter(hb.col("ward").is_in(["cardiology", "ER"])).agg(hb.count()).check(epsilon=1)
    assert any("did you mean 'Cardiology'" in note for note in found.notes)


def test_a_parameter_is_a_value_as_any_other(asked) -> None:
    with pytest.raises(hb.QueryError, match="did you mean 'Cardiology'"):
        asked.check("SELECT COUNT(*) FROM visits WHERE ward = $w", epsilon=1, params={"w": "cardiology"})


def test_every_face_of_an_answer_has_the_note() -> None:
    with session(visits=visits()) as s:
        sql = "SELECT n, COUNT(*) AS c FROM visits WHERE ward IN ('x<y', 'ER') GROUP BY n"
        answer = s.sql(sql, epsilon=1)
        assert "note: ward has no declared value 'x<y'" in str(answer)
        assert "note: ward has no declared value 'x<y'" in str(s.check(sql, epsilon=1))
        assert "has no declared value &#x27;x&lt;y&#x27;" in answer._repr_html_()
        assert s.sql(sql, epsilon=1).text.notes == answer.text.notes != ()


def test_what_is_refused_is_met_by_no_declared_row_and_the_rest_by_one() -> None:
    """62 random conditions against all declared rows, evaluated by the engine: a single comparison is refused exactly
    where no declared row meets it; of a larger one, nothing is refused whose every comparison some row meets."""
    declared = visits().without_source()
    kinds = {"id": "INTEGER", "ward": "TEXT", "n": "INTEGER", "open": "TEXT"}
    catalog = {"visits": TableInfo({k: Kind[v] for k, v in kinds.items()}, True, "id", declared)}
    draw = random.Random(7)
    texts, numbers = (*map(repr, WARDS), "'x'", "'er'", "'oncology'"), ("0", "1", "2", "3", "4", "2.5")
    operands = [("ward", texts), ("LOWER(ward)", texts), ("n", numbers), ("n * 2", numbers), ("n % 2", numbers)]

    def atom() -> str:
        operand, values = draw.choice(operands)
        many = draw.sample(values, draw.randrange(1, 4))
        return f"{operand} = {many[0]}" if draw.random() < 0.5 else f"{operand} IN ({', '.join(many)})"

    def judged(where: str) -> tuple[bool, bool]:
        statement = parse(f"SELECT COUNT(*) FROM visits WHERE {where}", catalog)
        assert isinstance(statement, Statement)
        question = statement.questions[0]
        condition = question.relation.condition  # type: ignore[union-attr]
        values = {c: (WARDS if c.name.endswith("ward") else (1, 2, 3)) for c in columns_in(condition)}
        return any(d.refused for d in doubts(question, image)), any(v is True for v in image(condition, values))

    refusals = 0
    for _ in range(50):
        one = atom()
        refused, met = judged(one)
        assert refused != met, one
        refusals += refused
    assert 10 < refusals < 40
    for _ in range(12):
        parts = [atom() for _ in range(3)]
        met = [judged(part)[1] for part in parts]
        refused, _ = judged(f" {draw.choice(['AND', 'OR'])} ".join(parts))
        assert not refused or not all(met), parts
