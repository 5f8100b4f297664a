"""Texts that a parser reads as another question than the one that was asked: refused, or answered as SQL has it."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from people import HUGE

ROWS = pa.table({"id": [1, 1, 2, 3], "g": ["a", "b", "a", "a"], "n": [1, 2, None, 7]})
COLUMNS: dict[str, Any] = {"id": hb.between(0, 9), "n": hb.between(0, 9), "g": hb.one_of("a", "b")}


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk({"t": hb.table(ROWS, unit="id", max_groups=4, max_rows=4, max_total=8, columns=COLUMNS)})


def same(desk: Desk, asked: str, meant: str) -> bool:
    return bool(desk.statement(asked).questions == desk.statement(meant).questions)


def put_right(desk: Desk, asked: str, words: str) -> str:
    """The question that a refusal in these words proposes, which is read."""
    with pytest.raises(QueryError, match=words) as refused:
        desk.statement(asked)
    (way,) = refused.value.remedies
    assert isinstance(way, Rewrite)
    assert way.sql is not None
    assert desk.statement(way.sql)
    return way.sql


@pytest.mark.parametrize("words", ["IGNORE NULLS", "RESPECT NULLS"])
@pytest.mark.parametrize(
    "asked",
    [
        "SELECT SUM(n) {} AS n FROM t",
        "SELECT SUM(n {}) AS n FROM t",
        "SELECT COUNT(*) {} AS n FROM t",
        "SELECT COUNT(DISTINCT n) {} AS n FROM t",
        "SELECT SUM(n) FILTER (WHERE g = 'a') {} AS n FROM t",
        "SELECT SUM(ABS(n {})) AS n FROM t",
        "SELECT COUNT(*) AS n FROM (SELECT id, SUM(n) {} AS k FROM t GROUP BY id) WHERE k > 1",
    ],
)
def test_nulls_are_a_matter_of_windows_alone(desk: Desk, asked: str, words: str) -> None:
    """The parser hangs the words on any call, and what then reads the call alone drops them."""
    assert put_right(desk, asked.format(words), f"{words} is for windows") == asked.replace(" {}", "")


@pytest.mark.parametrize(
    "by",
    [
        "GROUPING SETS ((g), (g))",
        "GROUPING SETS ((), ())",
        "GROUPING SETS ((g, n), (n, g))",
        "ROLLUP (g, g)",
        "CUBE (g, g)",
        "g, ROLLUP (g)",
        "g, g WITH ROLLUP",
    ],
)
def test_a_grouping_that_is_listed_twice_is_not_answered_once(desk: Desk, by: str) -> None:
    asked = f"SELECT COUNT(*) AS n FROM t GROUP BY {by}"
    assert put_right(desk, asked, "SQL answers it twice") == asked.replace("GROUP BY", "GROUP BY DISTINCT")


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT COUNT(*) AS n FROM t |> WHERE n > 100",
        "SELECT COUNT(*) FROM t |> LIMIT 0",
        "FROM t |> LIMIT 2 |> AGGREGATE COUNT(*)",
        "FROM t |> DISTINCT |> AGGREGATE COUNT(*)",
        "SELECT COUNT(*) FROM (FROM t |> LIMIT 2)",
    ],
)
def test_pipes_are_not_read(desk: Desk, asked: str) -> None:
    """The parser hangs each on the SELECT before it: a condition on an answer would be one on rows, a limit of rows one
    of the answer. So what it makes of them is no way out, either."""
    with pytest.raises(QueryError, match="not SQL that can be read") as refused:
        desk.statement(asked)
    assert refused.value.remedies == ()


def test_a_sign_is_no_name(desk: Desk) -> None:
    """In Snowflake the rest is a comment, and all rows are counted."""
    with pytest.raises(QueryError, match="// is a word of SQL, and not a name"):
        desk.statement("SELECT COUNT(*) FROM t // WHERE n > 1")


@pytest.mark.parametrize("name", ["m²", "prix€", "n°", "a$b", "№", "größe"])
def test_a_name_may_have_signs_that_duckdb_lets_stand_in_one(desk: Desk, name: str) -> None:
    con = duckdb.connect()
    con.register("t", ROWS)
    for asked in (f"SELECT SUM({name}.n) FROM t AS {name}", f"SELECT SUM({name}) FROM t AS a(id, g, {name})"):
        assert con.execute(asked).fetchall() == [(10,)]
        assert same(desk, asked, "SELECT SUM(n) FROM t")


@pytest.mark.parametrize(
    "named",
    [
        "SELECT {} FROM t AS a(n)",
        "SELECT {} FROM t AS a(N)",
        "SELECT {} FROM (SELECT * FROM t) AS a(n)",
        "WITH a(n) AS (SELECT * FROM t) SELECT {} FROM a",
        "SELECT {} FROM (SELECT * FROM t AS a(n))",
    ],
)
def test_a_name_that_two_columns_have_then_is_the_first_ones(desk: Desk, named: str) -> None:
    """As in DuckDB, which calls the other n_1."""
    assert same(desk, named.format("SUM(n)"), "SELECT SUM(id) FROM t")
    assert same(desk, named.format("SUM(n_1)"), "SELECT SUM(n) FROM t")
    con = duckdb.connect()
    con.register("t", ROWS)
    assert con.execute(named.format("SUM(n), SUM(n_1)")).fetchall() == [(7, 10)]


def test_names_that_are_taken_already_are_those_that_duckdb_gives(desk: Desk) -> None:
    con = duckdb.connect()
    con.register("t", ROWS)
    for names in ("n, n", "g, n", "n, n_1", "n_1", "g", "n, g, g"):
        columns = con.execute(f"SELECT * FROM t AS a({names})").description
        for column, meant in zip(columns, ("id", "g", "n"), strict=True):
            name = column[0]
            assert same(desk, f"SELECT COUNT({name}) FROM t AS a({names})", f"SELECT COUNT({meant}) FROM t"), name


@pytest.mark.parametrize("star", ["*", "t.*"])
def test_a_column_that_is_not_there_cannot_be_left_out(desk: Desk, star: str) -> None:
    """A misspelt one is left in, and DISTINCT keeps more rows."""
    with pytest.raises(QueryError, match=r"there is no column 'nn' to leave out\. Did you mean 'n'"):
        desk.statement(f"SELECT COUNT(*) FROM (SELECT DISTINCT {star} EXCLUDE (nn) FROM t)")


def test_of_a_name_that_two_tables_have_both_columns_are_left_out(desk: Desk) -> None:
    """As in DuckDB; with its table's name one."""
    joined = "FROM t AS a JOIN t AS b ON a.id = b.id"
    some = "SELECT COUNT(*) FROM (SELECT DISTINCT {} FROM t AS a JOIN t AS b ON a.id = b.id)"
    assert same(desk, some.format("* EXCLUDE (g)"), some.format("a.id, a.n, b.id AS i, b.n AS m"))
    assert same(desk, some.format("* EXCLUDE (b.g)"), some.format("a.id, a.g, a.n, b.id AS i, b.n AS m"))
    con = duckdb.connect()
    con.register("t", ROWS)
    left = {
        text: [c[0] for c in con.execute(f"SELECT * EXCLUDE ({text}) {joined}").description] for text in ("g", "b.g")
    }
    assert left == {"g": ["id", "n", "id", "n"], "b.g": ["id", "g", "n", "id", "n"]}


USED: dict[str, str] = {
    "* EXCLUDE (p.n) {using}": "t.id, t.n, t.g, p.lab",
    "* EXCLUDE (t.n) {using}": "t.id, t.g, t.n, p.lab",
    "* EXCLUDE (t.n, p.n) {using}": "t.id, t.g, p.lab",
    "* EXCLUDE (n) {using}": "t.id, t.g, p.lab",
    "* {using} JOIN r ON t.id = r.z": "t.id, t.n, t.g, p.lab, r.n AS other, r.z",
    "* EXCLUDE (r.n) {using} JOIN r ON t.id = r.z": "t.id, t.n, t.g, p.lab, r.z",
    "* EXCLUDE (t.n, p.n) {using} JOIN r ON t.id = r.z": "t.id, t.g, p.lab, r.n, r.z",
    "* EXCLUDE (t.n) {using} JOIN r USING (n)": "t.id, t.g, t.n, p.lab, r.z",
}


@pytest.mark.parametrize("star", list(USED))
def test_a_star_lists_a_column_of_using_once_and_no_other_tables_column_of_its_name_with_it(star: str) -> None:
    """As in DuckDB: DISTINCT counts other rows without them, and AS a(...) names others."""
    rows = ROWS.select(["id", "n", "g"])
    tables = {"p": pa.table({"n": [1, 2, 7], "lab": ["x", "y", "x"]}), "r": pa.table({"n": [5, 6], "z": [1, 2]})}
    private = hb.table(rows, unit="id", max_groups=4, max_rows=4, max_total=8, columns=COLUMNS)
    desk = Desk({"t": private, **{name: hb.public(table) for name, table in tables.items()}})
    con = duckdb.connect()
    for name, table in {"t": rows, **tables}.items():
        con.register(name, table)
    asked = star.format(using="FROM t LEFT JOIN p USING (n)")
    meant = USED[star] + asked[asked.index(" FROM") :]
    as_duckdb = con.execute(f"SELECT {asked}").fetchall()
    assert as_duckdb == con.execute(f"SELECT {meant}").fetchall()
    some = "SELECT COUNT(*) FROM (SELECT DISTINCT {})"
    assert same(desk, some.format(asked), some.format(meant))
    names = ", ".join(f"c{i}" for i in range(len(USED[star].split(","))))
    for i in range(len(USED[star].split(","))):
        some = f"SELECT COUNT(c{i}) FROM (SELECT {{}}) AS a({names})"
        assert same(desk, some.format(asked), some.format(meant))


@pytest.mark.parametrize("cast", ["CAST(s AS VARCHAR COLLATE NOCASE)", "TRY_CAST(id AS TEXT COLLATE NOCASE)"])
def test_a_collation_in_a_cast_is_not_left_out(cast: str) -> None:
    """In DuckDB the comparison then ignores case."""
    rows = pa.table({"id": [1, 2], "s": ["ab", "AB"]})
    desk = Desk({"t": hb.table(rows, unit="id", max_total=1)})
    with pytest.raises(QueryError, match="to TEXT COLLATE NOCASE is not supported"):
        desk.statement(f"SELECT COUNT(*) FROM t WHERE {cast} = 'AB'")


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT 1 FROM t AS w WHERE w.id = t.id USING SAMPLE 10%",
        "SELECT UNNEST([]) FROM t AS w WHERE w.id = t.id",
        "SELECT DISTINCT ON (n) 1 FROM t AS w WHERE w.id = t.id",
    ],
)
@pytest.mark.parametrize("also", ["", " OR g = 'b'"])
def test_what_exists_looks_at_has_no_clause_that_is_dropped(desk: Desk, inner: str, also: str) -> None:
    with pytest.raises(QueryError, match=r"SAMPLE|UNNEST|DISTINCT ON"):
        desk.statement(f"SELECT COUNT(*) AS c FROM t WHERE EXISTS ({inner}){also}")


@pytest.mark.parametrize("of", ["SELECT COUNT(*)", "SELECT MAX(n)", "SELECT 1 + MAX(n)"])
@pytest.mark.parametrize("having", ["", " HAVING COUNT(*) > 1"])
def test_one_row_of_totals_is_there_for_nobody_too_and_is_refused(desk: Desk, of: str, having: str) -> None:
    """In SQL an aggregate of no rows is a row: EXISTS is true of it."""
    asked = f"SELECT COUNT(*) AS c FROM t WHERE EXISTS ({of} FROM t AS w WHERE w.id = t.id{having}) OR g = 'b'"
    with pytest.raises(QueryError, match="without aggregates, HAVING or UNNEST"):
        desk.statement(asked)


@pytest.mark.parametrize(
    "value",
    [
        "COUNT(*)",
        "1 - COUNT(*)",
        "COUNT(n) + COUNT(DISTINCT n)",
        "CASE WHEN COUNT(*) > 0 THEN 1 ELSE 2 END",
        "COALESCE(MAX(n), 1)",
        "MAX(n) + COUNT(*)",
        "COUNT(*) FILTER (WHERE n > 1) - 1",
    ],
)
def test_aggregates_of_an_owner_without_rows_are_those_of_no_rows(desk: Desk, value: str) -> None:
    with duckdb.connect() as con:
        con.register("t", ROWS)
        for number in ("-1", "0", "1", "2", "7"):
            of_owner = f"SELECT {value} FROM t AS w WHERE w.id = t.id AND w.g = 'b'"
            asked = f"SELECT COUNT(*) AS c FROM t WHERE ({of_owner}) = {number}"
            assert desk.ask(asked, HUGE).rows() == con.execute(asked).fetchall()


@pytest.mark.parametrize("value", ["5", "COALESCE(w.id, 9)", "w.id IS NULL", "DISTINCT 5", "w.id", "5 + 1"])
def test_a_sub_query_of_one_owner_without_an_aggregate_is_refused(desk: Desk, value: str) -> None:
    """It has no row for an owner without any, so NULL; a constant was one of every owner."""
    asked = f"SELECT COUNT(*) AS c FROM t WHERE (SELECT {value} FROM t AS w WHERE w.id = t.id AND w.g = 'b') IS NULL"
    with pytest.raises(QueryError, match="of the same owner's rows gives one aggregate"):
        desk.statement(asked)


def test_having_over_one_owners_rows_is_refused(desk: Desk) -> None:
    """Of a total that HAVING leaves out SQL makes NULL, a count of none 0."""
    inner = "SELECT COUNT(*) FROM t AS w WHERE w.id = t.id HAVING COUNT(*) > 1"
    with pytest.raises(QueryError, match="HAVING is not supported in a sub-query") as refused:
        desk.statement(f"SELECT COUNT(*) AS c FROM t WHERE ({inner}) = 0")
    assert refused.value.remedies


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT COUNT(*) AS c FROM (SELECT ROW_NUMBER(1) OVER (PARTITION BY id) AS k FROM t) WHERE k = 1",
        "SELECT COUNT(*) AS c FROM (SELECT ROW_NUMBER(n) OVER (PARTITION BY id ORDER BY n) AS k FROM t) WHERE k = 1",
        "WITH q USING KEY (n) AS (SELECT id, n FROM t) SELECT COUNT(*) AS c FROM q",
    ],
)
def test_what_means_nothing_to_duckdb_is_refused(desk: Desk, asked: str) -> None:
    with pytest.raises(QueryError, match=r"THIS is not supported|without USING KEY"):
        desk.statement(asked)
