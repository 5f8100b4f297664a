"""A repaired question is the one that was meant, or there is none: what is unclear is left to who asks."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import QueryError
from hubbub.remedies import Rewrite

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")


@pytest.fixture(scope="module")
def asked() -> Iterator[hb.Session]:
    table = hb.table(pa.table({"id": [1], "a": [2], "b": [3], "note": ["x"]}), unit="id", max_groups=1, max_rows=1)
    listed = hb.public(pa.table({"n": [1]}))
    with hb.Session({"p": table, "m": listed}, budget=hb.Budget(1), ledger=None) as session:
        yield session


def _repaired(session: hb.Session, sql: str) -> list[str]:
    with pytest.raises(QueryError) as refused:
        session.check(sql, epsilon=0.1)
    return [way.sql for way in refused.value.remedies if isinstance(way, Rewrite) and way.sql]


@pytest.mark.parametrize(
    "where",
    [
        "(a > 1 OR b > 2 AND note = 'x'",
        "((a > 1 OR b > 2 AND note = 'x'",
        "NOT (a > 1 AND b > 2",
        "a IN (SELECT n FROM m WHERE n > 1 AND n < 9",
        "a > 1 OR b > 2) AND note = 'x'",
        "NOT a > 1) AND b > 2",
        "note = 'x AND a > 1",
    ],
)
def test_what_could_end_in_several_places_is_not_ended(asked: hb.Session, where: str) -> None:
    assert not _repaired(asked, f"SELECT COUNT(*) FROM p WHERE {where}")


@pytest.mark.parametrize(
    ("where", "repaired"),
    [
        ("(a > 1 AND b > 2", "(a > 1 AND b > 2)"),
        ("((a > 1 OR b > 2) AND note = 'x'", "((a > 1 OR b > 2) AND note = 'x')"),
        ("NOT (a > 1", "NOT (a > 1)"),
        ("a IN (SELECT n FROM m", "a IN (SELECT n FROM m)"),
        ("a > 1) OR b > 2", "a > 1 OR b > 2"),
        ("note = 'x", "note = 'x'"),
    ],
)
def test_what_means_the_same_wherever_it_ends_is_ended(asked: hb.Session, where: str, repaired: str) -> None:
    assert _repaired(asked, f"SELECT COUNT(*) FROM p WHERE {where}") == [f"SELECT COUNT(*) FROM p WHERE {repaired}"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT id, a, b, note FROM p UNION ALL SELECT * REPLACE (a + 1 AS a) FROM p) AS q",
        "SELECT COUNT(z) FROM (SELECT * REPLACE (a + 1 AS a) FROM p) AS q(w, z)",
        "WITH q(w, z) AS (SELECT * RENAME (a AS c) FROM p) SELECT COUNT(z) FROM q",
    ],
)
def test_columns_that_go_by_their_place_keep_it(asked: hb.Session, sql: str) -> None:
    assert not _repaired(asked, sql)


def test_a_filter_of_distinct_values_becomes_no_case(asked: hb.Session) -> None:
    counted = "COUNT(DISTINCT a) FILTER (WHERE a > 1) OVER (PARTITION BY id)"
    assert not _repaired(asked, f"SELECT COUNT(*) FROM (SELECT id, {counted} AS c FROM p) AS q WHERE c > 0")


@pytest.mark.parametrize("where", ["`a` > 1 AND \"note\" = 'x'", "`note` || `note` = 'xx'"])
def test_signs_that_dialects_read_differently_are_not_translated(asked: hb.Session, where: str) -> None:
    """In MySQL "note" is a text, and || is OR."""
    repaired = _repaired(asked, f"SELECT COUNT(*) FROM p WHERE {where}")
    assert not any("'note'" in text or " OR " in text for text in repaired)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM `p` WHERE DAYOFWEEK(`note`) = 1",  # Sunday in MySQL, Monday in DuckDB
        "SELECT COUNT(*) FROM `p` WHERE WEEKDAY(`note`) = 0",
        "SELECT COUNT(*) FROM `p` WHERE EXTRACT(DAYOFWEEK FROM `note`) = 1",
        "SELECT COUNT(*) FROM [p] WHERE DATEPART(weekday, [note]) = 1",
        "SELECT COUNT(*) FROM `p` WHERE TIMESTAMPDIFF(MONTH, `note`, '2024-03-01') > 3",  # whole months
        "SELECT STDDEV(`a`) FROM `p`",  # of all in MySQL, of a sample in BigQuery
        "SELECT COUNT(*) FROM [p] WHERE [note] LIKE '[ab]%'",
        "SELECT COUNT(*) FROM [p] WHERE CAST([a] AS INT) = 2",  # cut off in T-SQL, rounded in DuckDB
        "SELECT COUNT(*) FROM `p` WHERE `a` DIV 2 = -1",
        "SELECT COUNT(*) FROM `p` SAMPLE (10)",
        "SELECT COUNT(*) FROM p WHERE a = 1 # 2 AND a < 9",  # a comment in MySQL, a sign elsewhere
        "SELECT COUNT(*) FROM `p` WHERE `note` LIKE 'a\\_b'",  # an underscore in MySQL, a backslash and a letter here
        "SELECT COUNT(*) FROM `p` WHERE ISNULL(`a`, 2) = 2",  # of one argument in MySQL
        "SELECT COUNT(*) FROM `p` WHERE MOD(`a`, 2, 3) = 1",
    ],
)
def test_what_dialects_read_differently_is_not_translated(asked: hb.Session, sql: str) -> None:
    assert not _repaired(asked, sql)


@pytest.mark.parametrize("word", ["XOR", "NOR", "NIN"])
def test_a_word_that_means_something_is_no_slip(asked: hb.Session, word: str) -> None:
    assert not _repaired(asked, f"SELECT COUNT(*) FROM p WHERE a > 1 {word} b > 2")
    assert not _repaired(asked, f"SELECT COUNT(*) FROM p WHERE a {word} (1, 2)")


@pytest.mark.parametrize("table", ["p SAMPLE (10)", "(SELECT * FROM p) SAMPLE (10)", "p AS t(1.5)"])
def test_a_number_is_the_name_of_no_column(asked: hb.Session, table: str) -> None:
    """The parser takes SAMPLE for another name of the table; all of it was counted."""
    with pytest.raises(QueryError, match="is not the name of a column"):
        asked.check(f"SELECT COUNT(*) FROM {table}", epsilon=0.1)
    assert asked.check('SELECT COUNT(*) FROM p AS t("10")', epsilon=0.1)


@pytest.mark.parametrize("word", ["ANY", "ALL"])
def test_a_word_before_a_join_is_no_name(asked: hb.Session, word: str) -> None:
    """ANY JOIN, which takes one row of those that meet, was any join of a table called so."""
    with pytest.raises(QueryError, match="not a name"):
        asked.check(f"SELECT COUNT(*) FROM p {word} JOIN m ON a = n", epsilon=0.1)
    assert asked.check(f'SELECT COUNT(*) FROM p "{word}" JOIN m ON a = n', epsilon=0.1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM m ORDER BY n FETCH FIRST 50 PERCENT ROWS ONLY",
        "SELECT n FROM m ORDER BY n FETCH FIRST 1 ROWS WITH TIES",
    ],
)
def test_of_a_question_about_public_rows_nothing_is_left_out(asked: hb.Session, sql: str) -> None:
    with pytest.raises(QueryError, match="FETCH takes"):
        asked.check(sql, epsilon=0.1)


def test_a_question_with_backticks_is_translated(asked: hb.Session) -> None:
    assert _repaired(asked, "SELECT COUNT(*) FROM `p` WHERE `a` > 1") == ['SELECT COUNT(*) FROM "p" WHERE "a" > 1']


@pytest.fixture(scope="module")
def named_alike() -> Iterator[hb.Session]:
    columns = ("id", "income_2024", "state", "max_temp", "wards", "words", "region", "lefts", "note_a")
    columns += ("employee_id", "contract_date", "country", "trial", "phase_ii", "rated_aa")
    table = hb.table(pa.table({name: [1] for name in columns}), unit="id", max_groups=1, max_rows=1)
    with hb.Session({"visits_2024": table, "other": table}, budget=hb.Budget(1), ledger=None) as session:
        yield session


APART = ["income_2025", "stage", "min_temp", "w0rds", "wrds", "note_b", "legion", "cost"]
APART += ["employer_id", "contact_date", "county", "trail", "phase_i", "rated_aaa"]


@pytest.mark.parametrize("column", APART)
def test_a_name_that_could_be_another_one_is_not_put_right(named_alike: hb.Session, column: str) -> None:
    assert not _repaired(named_alike, f"SELECT COUNT({column}) FROM other")


@pytest.mark.parametrize("column", ["regoin", "regions", "maxtemp", "statte", "contrct_date"])
def test_a_name_with_one_slip_is_put_right(named_alike: hb.Session, column: str) -> None:
    [whole] = _repaired(named_alike, f"SELECT COUNT({column}) FROM other")
    assert named_alike.check(whole, epsilon=0.1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits_2025",
        "SELECT COUNT(*) WHERE state > 1",
        "SELECT COUNT(state) FROM other a JOIN visits_2024 b ON a.id = b.id",
        'SELECT COUNT(*) FROM other WHERE state = "regoin"',
        "SELECT STDDEVPS(state) FROM other",
        "SELECT COUNT(*) FROM other WHERE state ILKE '1%'",
        "SELECT state, COUNT(*) FROM other GROUP BY state ORDER BY state DSC",
        "SELECT COUNT(*) FROM (SELECT id, SUM(state) OVER w AS s FROM other "
        "WINDOW one AS (PARTITION BY id), two AS (PARTITION BY id ORDER BY region))",
    ],
)
def test_a_word_that_could_be_two_is_left_to_who_asks(named_alike: hb.Session, sql: str) -> None:
    assert not _repaired(named_alike, sql)


@pytest.fixture(scope="module")
def with_values() -> Iterator[hb.Session]:
    columns = {"ward": hb.one_of("cardiology", "neurology"), "group": hb.one_of("A-", "0", "band 1")}
    table = hb.table(pa.table({"id": [1], "ward": ["x"], "group": ["y"]}), unit="id", max_total=1, columns=columns)
    with hb.Session({"v": table}, budget=hb.Budget(1), ledger=None) as session:
        yield session


@pytest.mark.parametrize(
    ("where", "instead"),
    [
        ("ward = 'Cardiolgy'", ["ward = 'cardiology'"]),
        ("ward = 'cardiolgy' AND UPPER(ward) <> 'cardiolgy'", []),
        ("ward IN ('cardiolgy', 'neurolgy')", []),
        ("ward = ' cardiology'", []),
        ("ward = 'urology'", []),
        ("\"group\" = 'A+'", []),
        ("\"group\" = 'O'", []),
        ("\"group\" = 'band 2'", []),
    ],
)
def test_a_value_is_put_right_where_one_is_meant(with_values: hb.Session, where: str, instead: list[str]) -> None:
    asked = "SELECT COUNT(*) FROM v WHERE "
    assert _repaired(with_values, asked + where) == [asked + right for right in instead]
