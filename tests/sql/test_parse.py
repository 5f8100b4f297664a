"""One statement to a question: what is read, and how everything else is refused."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import hubbub as hb
from hubbub.engines.outer import OuterSide
from hubbub.errors import HubbubError, QueryError
from hubbub.sql.bind.query import PublicQuestion, TableInfo, parse
from hubbub.tables.aggregate_query import AggregateQuery, Key, Statement
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.expressions import Arithmetic, Column, Compare, Expression, InList, Literal, Logic
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Filter, Scan, scans

CATALOG = {
    "visits": TableInfo(
        {
            "id": Kind.INTEGER,
            "ward": Kind.TEXT,
            "age": Kind.NUMBER,
            "n": Kind.INTEGER,
            "ok": Kind.BOOLEAN,
            "day": Kind.DATE,
            "at": Kind.TIMESTAMP,
            "blob": Kind.OTHER,
        },
        private=True,
        unit="id",
    ),
    "wards": TableInfo({"ward": Kind.TEXT, "beds": Kind.INTEGER}, private=False),
}


PUBLIC = OuterSide({"wards": hb.public(pa.table({"ward": ["A", "B"], "beds": [3, 4]}))})


def statement(sql: str) -> Statement:
    found = parse(sql, CATALOG, public=PUBLIC)
    assert isinstance(found, Statement)
    return found


def read(sql: str) -> AggregateQuery:
    (question,) = statement(sql).questions
    return question


def where(condition: str) -> Expression:
    relation = read(f"SELECT COUNT(*) FROM visits WHERE {condition}").relation
    assert isinstance(relation, Filter)
    assert isinstance(relation.source, Scan)
    return relation.condition


def column(name: str, kind: Kind) -> Column:
    return Column(f"t1.{name}", kind)


def test_every_part_of_a_question_is_read() -> None:
    found = statement(
        "SELECT ward, COUNT(*) AS visits, AVG(age) FROM visits AS v WHERE v.age > 65 GROUP BY ward, ok "
        "HAVING visits > 10 AND SUM(n) > 0 ORDER BY 2 DESC NULLS FIRST, ok LIMIT 5 OFFSET 2"
    )
    (q,) = found.questions
    assert [scan.table for scan in scans(q.relation)] == ["visits"]
    assert q.keys == (Key(column("ward", Kind.TEXT)), Key(column("ok", Kind.BOOLEAN)))
    assert q.sets == ((0, 1),)
    assert [o.name for o in found.outputs] == ["ward", "visits", "avg_age"]
    assert [a.function for a in q.aggregates] == [FUNCTIONS["COUNT_ROWS"], FUNCTIONS["AVG"], FUNCTIONS["SUM"]]
    # Above the aggregate: ordinary SQL over the release, ties by place.
    assert found.sql == (
        'SELECT "r"."k0" AS "ward", "r"."a0" AS "visits", "r"."a1" AS "avg_age", "r"."place" AS "its place" '
        'FROM "released0" AS "r" WHERE ("r"."a0") > 10 AND "r"."a2" > 0 '
        'ORDER BY 2 DESC NULLS FIRST, "r"."k1", "r"."place" LIMIT 5 OFFSET 2'
    )


def test_what_is_asked_twice_is_one_question() -> None:
    found = statement(
        "SELECT ward, COUNT(*) / (SELECT COUNT(*) FROM visits) AS share, AVG(n) FROM visits v GROUP BY ward "
        "HAVING COUNT(*) > (SELECT AVG(n) FROM visits w) AND AVG(v.n) > 0"
    )
    assert len(found.questions) == 2
    assert [len(q.aggregates) for q in found.questions] == [2, 2]


def test_a_question_is_read_whatever_it_stands_in() -> None:
    """One private aggregate in a sub-query, in WITH, in a join and in a union is the same question."""
    plain = read("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward")
    for text in (
        "SELECT c + 1 FROM (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward)",
        "WITH w AS (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward) SELECT a.c, b.c AS d FROM w a, w b",
        "SELECT beds, c FROM wards JOIN (SELECT ward, COUNT(*) AS c FROM visits GROUP BY 1) x USING (ward)",
        "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward UNION SELECT ward, COUNT(*) FROM visits x GROUP BY ward",
    ):
        assert read(text) == plain


@pytest.mark.parametrize("group", ["ward", "1", "w", "WARD", '"ward"', "visits.ward"])
def test_a_group_can_be_named_in_every_usual_way(group: str) -> None:
    assert read(f"SELECT ward AS w, COUNT(*) FROM visits GROUP BY {group}").keys == (Key(column("ward", Kind.TEXT)),)


def test_constants_are_exact() -> None:
    assert where("age > 0.1") == Compare(">", column("age", Kind.NUMBER), Literal(Fraction(1, 10)))
    assert where("n = -9223372036854775807") == Compare("=", column("n", Kind.INTEGER), Literal(-(2**63) + 1))
    assert where("ward = 'it''s'") == Compare("=", column("ward", Kind.TEXT), Literal("it's"))
    assert where("age < 1e3") == Compare("<", column("age", Kind.NUMBER), Literal(Fraction(1000)))


def test_text_beside_a_date_is_a_date() -> None:
    day = Literal(dt.date(2025, 1, 31))
    assert where("day >= '2025-01-31'") == Compare(">=", column("day", Kind.DATE), day)
    assert where("day = DATE '2025-01-31'") == Compare("=", column("day", Kind.DATE), day)
    assert where("day IN ('2025-01-31')") == InList(column("day", Kind.DATE), (day,))
    noon = Literal(dt.datetime(2025, 1, 31, 10, 0))
    assert where("at = '2025-01-31 12:00:00+02:00'") == Compare("=", column("at", Kind.TIMESTAMP), noon)


def test_between_is_two_comparisons_and_arithmetic_keeps_its_order() -> None:
    assert where("age BETWEEN 1 AND 2") == where("age >= 1 AND age <= 2")
    n = column("n", Kind.INTEGER)
    assert where("1 + n * 2 - n > 3") == Compare(
        ">", Arithmetic("-", Arithmetic("+", Literal(1), Arithmetic("*", n, Literal(2))), n), Literal(3)
    )


def test_public_tables_alone_are_any_select() -> None:
    q = parse("SELECT ward, SUM(beds) OVER () FROM wards ORDER BY 1", CATALOG)
    assert isinstance(q, PublicQuestion)
    assert q.tables == ("wards",)


REFUSED = [
    (
        "SELECT COUNT(*) AS n FROM visits WHERE day > CURRENT_DATE('Asia/Tokyo')",
        "is not supported",
        "CURRENT_DATE('Asia/Tokyo'",
    ),
    ("SELECT COUNT(*) AS n FROM visits WHERE day > TODAY('Asia/Tokyo')", "is not supported", "TODAY('Asia/Tokyo'"),
    ("SELECT COUNT(*) FROM vists", "Did you mean 'visits'", "vists"),
    ("SELECT AVG(agee) FROM visits", "Did you mean 'age'", "agee"),
    ("SELECT SUM(ward) FROM visits", "SUM needs a number", "ward"),
    ("SELECT COUNT(*) FROM visits; DROP TABLE visits", "one statement at a time", ";"),
    ("SELECT * FROM read_csv('/etc/passwd')", "READ_CSV reads from outside", "read_csv('/etc/passwd'"),
    ("SELECT COUNT(*) FROM visits, read_parquet('x')", "READ_PARQUET reads from outside", None),
    ("COPY visits TO 'x'", "COPY is not a question", "COPY"),
    ("ATTACH 'x.db'", "ATTACH is not a question", "ATTACH"),
    ("PRAGMA database_list", "PRAGMA is not a question", "PRAGMA"),
    ("EXPLAIN SELECT COUNT(*) FROM visits", "EXPLAIN is not a question", "EXPLAIN"),
    ("INSERT INTO visits VALUES (1)", "INSERT is not a question", "INSERT"),
    ("SET memory_limit = '1GB'", "SET is not a question", "SET"),
    ("SELECT * FROM visits", "rows of people", "*"),
    (
        "WITH w AS (SELECT * FROM visits), W AS (SELECT * FROM visits WHERE ward = 'a') SELECT COUNT(*) FROM w",
        "WITH names two queries 'W'",
        None,
    ),
    ("SELECT age FROM visits", "every answer is an aggregate", "age"),
    ("SELECT * FROM visits LIMIT 5", "rows of people are never shown: every answer", "*"),
    ("SELECT age FROM visits ORDER BY age", "rows of people are never shown: every answer", "age"),
    ("SELECT lenght(ward), COUNT(*) FROM visits GROUP BY 1", "Did you mean LENGTH", None),
    ("SELECT FORMAT_DATE('%Y', day), COUNT(*) FROM visits GROUP BY 1", "Group dates by EXTRACT", None),
    ("SELECT EQUI_WIDTH_BINS(0, 9, 3, TRUE), COUNT(*) FROM visits GROUP BY 1", "hb.edges", None),
    ("SELECT MEAN(age) FROM visits", "Did you mean AVG", None),
    ("SELECT STRING_AGG(ward) FROM visits", "STRING_AGG is not supported", "STRING_AGG("),
    ('SELECT COUNT(*) FROM visits WHERE ward = "A"', "text stands in single ones: 'A'", '"A"'),
    ("SELECT ward FROM visits GROUP BY ward", "every answer is an aggregate", "ward"),
    ("SELECT COUNT(*) FROM visits WHERE foo(age) > 3", "the function FOO is not supported", "foo(age"),
    ("SELECT COUNT(*) FROM visits WHERE random() < 0.5", "is not supported", "random"),
    ("SELECT COUNT(*) FROM visits WHERE age > 'old'", "a number cannot be compared with text", "age > 'old'"),
    ("SELECT COUNT(*) FROM visits WHERE ward", "WHERE needs a condition; this is text", "ward"),
    ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3", "HAVING", "COUNT(*"),
    ("SELECT DISTINCT ward FROM visits", "rows of people are never shown", "ward"),
    ("SELECT COUNT(*) FROM visits WHERE day > '2020-13-01'", "not an ISO date", None),
    ("SELECT COUNT(*) FROM visits WHERE blob = 'x'", "cannot use", "blob"),
    ("SELECT COUNT(*) OVER () FROM visits", "partitioned by the unit: PARTITION BY id", "COUNT(*"),
    ("SELECT SUM(age)/n FROM visits", "neither in GROUP BY nor inside an aggregate", "n"),
    ("SELECT age + 1, COUNT(*) FROM visits GROUP BY age - 1", "neither in GROUP BY", "age"),
    ("SELECT COUNT(*) FROM visits GROUP BY NULL", "GROUP BY needs a column", None),
    ("SELECT AVG(SUM(n)) FROM visits", "an aggregate cannot stand here", None),
    ("SELECT COUNT(*) FROM visits USING SAMPLE 10%", "SAMPLE is not supported", "SAMPLE"),
    ("SELECT COUNT(*) FROM visits TABLESAMPLE 10%", "SAMPLE is not supported", "visits TABLESAMPLE 10"),
    ("SELECT COUNT(*) FROM main.visits", "one part", "main.visits"),
    ("SELECT COUNT(*) FROM 'x.csv'", "unknown table 'x.csv'", None),
    ("SELECT 1", "names no table", "1"),
    ("SELECT COUNT(*) FROM visits WHERE CAST(day AS INT) > 1", "a cast of a date to INT is not supported", None),
    ("SELECT COUNT(*) FROM visits WHERE CAST(n AS BLOB) > 1", "a cast of a number to BLOB is not supported", None),
    ("SELECT COUNT(*) FROM visits WHERE LOWER(age) = 'a'", "LOWER takes text here; this is a number", "age"),
    ("SELECT COUNT(*) FROM visits WHERE SUBSTR(ward, n) = 'a'", "SUBSTR takes a constant here", "n"),
    ("SELECT COUNT(*) FROM visits WHERE LEFT(ward, 9999999) = 'a'", "up to 1,000,000", None),
    ("SELECT COUNT(*) FROM visits WHERE EXTRACT(century FROM day) = 1", "EXTRACT knows DAY", None),
    ("SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('fortnight', day) = day", "DATE_TRUNC knows", None),
    ("SELECT COUNT(*) FROM visits WHERE COALESCE(ward, 1) = 'a'", "must be of one kind", None),
    ("SELECT COUNT(*) a, SUM(n) a FROM visits", "two columns of the answer are named 'a'", None),
    ("SELECT COUNT(*) FROM visits ORDER BY age", "neither in GROUP BY", "age"),
    (r"SELECT COUNT(*) FROM visits WHERE ward LIKE 'a\' ESCAPE '\'", "ends with its escape character", None),
    ("SELECT COUNT(*) FROM visits WHERE ward LIKE id", "LIKE takes a constant pattern", None),
    (f"SELECT COUNT(*) FROM visits WHERE ward LIKE '{'a%' * 101}'", "at most 1,000 characters and 100 %", None),
    (f"SELECT COUNT(*) FROM visits WHERE ward ILIKE '{'_' * 1001}'", "at most 1,000 characters and 100 %", None),
    ("SELECT COUNT(*) FROM visits WHERE age LIKE '1%'", "LIKE looks at text", "age"),
    ("SELECT x.age FROM visits", "no such table", "x.age"),
    ("SELECT COUNT(*) FROM visits WHERE $1", "parameter 1 has no value", None),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'A", "not closed", None),
    ("SELECT COUNT(*) FROM visits WHERE (", "from here on", "("),
    ("SELEC 1", "SELEC is not a question", "SELEC"),
    ("", "the statement is empty", None),
    ("-- nothing", "the statement is empty", None),
    ("SELECT COUNT(*) FROM visits WHERE " + "(" * 400 + "ok" + ")" * 400, "too deeply", None),
    ("SELECT COUNT(*) FROM visits WHERE " + "NOT " * 400 + "ok", "deep", None),
    ("SELECT COUNT(*) FROM visits WHERE n > " + "1 + " * 200 + "1", "deep", None),
    ("SELECT COUNT(*) FROM visits WHERE ward = '" + "x" * 100_000 + "'", "at most 100,000", None),
    ("SELECT COUNT(*) FROM visits WHERE age > 1e400", "beyond 1.79e308", "1e400"),
    ("SELECT COUNT(*) FROM visits WHERE age > 1e999999999", "not a number that can be read", "1e999999999"),
    ("SELECT SUM(DISTINCT n) FROM visits", "DISTINCT inside SUM", None),
    ("SELECT COUNT(n, age) FROM visits", "not supported", None),
    ("SELECT COUNT(*) FROM visits ORDER BY 3", "the engine refuses", None),
    ("SELECT COUNT(*) FROM visits WHERE n > $low", "has no value: params=", None),
    ("SELECT COUNT(*) FROM visits GROUP BY GROUPING SETS ((ward), (agee))", "unknown column 'agee'", "agee"),
    ("SELECT MEDIAN() FROM visits", "from here on", None),
    ("SELECT QUANTILE_CONT(age, 1.5) FROM visits", "between 0 and 1", None),
    ("SELECT QUANTILE_CONT(age, n) FROM visits", "between 0 and 1", None),
]


@pytest.mark.parametrize(("sql", "says", "under"), REFUSED, ids=[sql[:50] for sql, _, _ in REFUSED])
def test_what_is_not_on_the_list_is_refused_with_a_caret_at_its_place(sql: str, says: str, under: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        parse(sql, CATALOG, public=PUBLIC)
    message = str(caught.value)
    assert says in message
    if under is not None:
        line, carets = message.splitlines()[-2:]
        start = carets.index("^")
        assert line[start : start + carets.count("^")] == under


def test_a_chain_of_conditions_may_be_long() -> None:
    condition = where(" AND ".join(["n > 1"] * 3000))
    assert isinstance(condition, Logic)
    assert len(condition.terms) == 3000


def test_the_caret_finds_its_line_in_a_text_of_many() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT COUNT(*)\nFROM visits\nWHERE\tagee > 3", CATALOG)
    assert str(caught.value).splitlines()[-2:] == ["  WHERE agee > 3", "        ^^^^"]


TOKENS = (
    "SELECT FROM visits wards WHERE GROUP BY HAVING ORDER LIMIT COUNT ( ) * , age ward n 1 'A' AND OR NOT IN "
    "BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END + - / % // = < > ; DISTINCT AVG SUM JOIN ON UNION WITH AS \" ' "
    "$1 ? :x [ ] { } -> :: . .. @ # \\ \0 é 𝕊 -- /* */ DATE '2020-01-01' TRUE 1e9 OVER FILTER"
).split(" ")


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(TOKENS), max_size=25), st.booleans())
def test_no_text_ends_in_anything_but_an_answer_or_our_own_error(tokens: list[str], started: bool) -> None:
    text = ("SELECT COUNT(*) FROM visits WHERE " if started else "") + " ".join(tokens)
    try:
        parse(text, CATALOG, public=PUBLIC)
    except HubbubError as error:
        assert str(error)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(REFUSED), st.integers(0, 80), st.sampled_from([*TOKENS, ""]))
def test_no_mutated_statement_does_either(case: tuple[str, str, str | None], at: int, token: str) -> None:
    text = case[0][:at] + token + case[0][at + 1 :]
    try:
        parse(text, CATALOG, public=PUBLIC)
    except HubbubError as error:
        assert str(error)


@pytest.mark.parametrize("end", [";", ";;", "; -- a note", ";\n/* a; note */ ;", " -- a note; and more", ""])
def test_what_is_behind_the_last_word_of_a_statement_does_not_count(end: str) -> None:
    assert read(f"SELECT COUNT(*) FROM visits{end}") == read("SELECT COUNT(*) FROM visits")


@pytest.mark.parametrize("meet", ["USING (ward)", "ON v.ward = w.ward"])
def test_a_group_of_a_public_table_keeps_its_name(meet: str) -> None:
    found = statement(f"SELECT w.ward, COUNT(*) AS n FROM visits v JOIN wards w {meet} GROUP BY w.ward")
    assert [o.name for o in found.outputs] == ["ward", "n"]
    assert found.questions[0].names == ("ward",)


def test_two_groups_of_one_name_are_told_apart() -> None:
    found = statement(
        "SELECT v.ward, w.ward, COUNT(*) FROM visits v JOIN wards w ON v.n = w.beds GROUP BY v.ward, w.ward"
    )
    assert [o.name for o in found.outputs] == ["ward", "ward_2", "count"]
    assert len(set(found.questions[0].names)) == 2


def test_a_computed_group_has_a_name_too() -> None:
    assert [o.name for o in statement("SELECT UPPER(ward), COUNT(*) FROM visits GROUP BY 1").outputs] == [
        "key",
        "count",
    ]
