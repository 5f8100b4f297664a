"""No public table makes more of one person's row than every engine can hold (P44)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.tables.growth import CUT
from hubbub.tables.relations import leaves
from hubbub.tables.repeats import FIXED, HELD

warnings.simplefilter("ignore")
ROWS = 4_000
PEOPLE = pa.table(
    {"id": ["ann", "bob", "eve"], "x": ["a", "b" * 300, "c"], "k": [1, 2, 3], "d": [1.0, 2.0, 3.0], "g": list("AAB")}
)
# Of w there are 50 values, 80 rows each; of n there is one row each; texts are of 3 characters.
MANY = pa.table({"n": range(ROWS), "w": [i % 50 for i in range(ROWS)], "t": ["abc"] * ROWS, "v": [None] * ROWS})


@pytest.fixture(scope="module")
def asked() -> Iterator[hb.Session]:
    tables: dict[str, Any] = {
        "p": hb.table(PEOPLE, unit="id", max_groups=1, max_rows=1, max_total=1, columns={"k": hb.between(0, 1999)}),
        "m": hb.public(MANY),
    }
    with hb.Session(tables, budget=hb.Budget(epsilon=10**15), ledger=None) as session:
        yield session


AMPLE = f"REPLACE(REPLACE(LEFT(x, 50), 'a', '{'a' * 50}'), 'a', '{'a' * 50}')"

EACH = "SELECT CAST(n AS VARCHAR) FROM m"

LENGTHS = ", ".join(f"LENGTH({AMPLE.replace('a', chr(97 + i))})" for i in range(9))

BEYOND = {
    "another kind of join": "SELECT COUNT(*) FROM p JOIN m ON p.k < m.n WHERE x <> 'a'",
    "no condition": "SELECT COUNT(*) FROM p, m WHERE x <> 'a'",
    "left": "SELECT COUNT(*) FROM p LEFT JOIN m ON p.k <> m.n WHERE x <> 'a'",
    "an expression": "SELECT COUNT(*) FROM p JOIN m ON p.k = m.n + 0 WHERE x <> 'a'",
    "a key that has one value": "SELECT COUNT(*) FROM p JOIN m ON LEFT(x, 3) = m.t WHERE x <> 'a'",
    "or": "SELECT COUNT(*) FROM p JOIN m ON (p.k = m.n OR p.k = m.w) WHERE x <> 'a'",
    "distinct": "SELECT COUNT(*) FROM (SELECT DISTINCT id, x, n FROM p JOIN m ON n >= k) AS q",
    "group by": "SELECT COUNT(*) FROM (SELECT id, n, MAX(x) AS y FROM p JOIN m ON n >= k GROUP BY id, n) AS q",
    "a text made of it": "SELECT COUNT(*) FROM (SELECT DISTINCT id, LEFT(x, 9) || x AS y FROM p JOIN m ON n > k) AS q",
    "a long text made of a short one": "SELECT COUNT(*) FROM (SELECT DISTINCT id, n, REPLACE(REPLACE(LEFT(x, 50), 'a', "
    f"'{'a' * 50}'), 'a', '{'a' * 50}') AS y FROM p JOIN m ON n > k) AS q",
    "a text of its own": f"SELECT COUNT(DISTINCT '{'a' * 20_000}' || CAST(n AS VARCHAR)) FROM p JOIN m ON n > k",
    "numbers, twice": "SELECT COUNT(*) FROM p JOIN m ON p.k < m.n JOIN m AS o ON o.n > 3",
    "numbers, for one alone": "SELECT COUNT(*) FROM (SELECT DISTINCT id, m.n AS a, o.n AS b FROM p "
    "JOIN m ON p.id = 'bob' JOIN m AS o ON o.n >= 0) AS q",
    "joined with itself": "SELECT COUNT(*) FROM (SELECT id, n FROM p JOIN m ON n > k) AS a "
    "JOIN (SELECT id, n FROM p JOIN m ON n > k) AS b ON a.id = b.id WHERE a.n > b.n",
    "a window": "SELECT COUNT(*) FROM (SELECT id, FIRST_VALUE(x) OVER (PARTITION BY id ORDER BY n) AS y FROM p "
    "JOIN m ON n > k) AS q WHERE y = 'b'",
    "two together": "SELECT COUNT(*) FROM ("
    + " UNION ALL ".join(["SELECT id, x FROM p JOIN m ON k = w"] * 13)
    + ") AS q"
    " WHERE x <> 'a'",
    "exists": "SELECT COUNT(*) FROM p SEMI JOIN m ON m.n > p.k AND p.x > m.t",
    "not exists": "SELECT COUNT(*) FROM p ANTI JOIN m ON m.n > p.k AND p.x > m.t",
    "one's own rows, repeated in IN": "SELECT COUNT(*) FROM p WHERE id IN (SELECT q.id FROM p AS q JOIN m ON m.n > q.k "
    "WHERE q.x <> 'a')",
    "one's own rows, repeated in EXISTS": "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM p AS q JOIN m "
    "ON m.n > q.k WHERE q.id = p.id AND q.d <> 2 AND q.x <> p.x)",
    "one's own rows, repeated and told apart": "SELECT COUNT(*) FROM p ANTI JOIN (SELECT DISTINCT id, x, m.n FROM p "
    "JOIN m ON m.n > k) AS q ON q.id = p.id",
    "the length of a long text": f"SELECT SUM(LEAST(LENGTH({AMPLE}), 5)) FROM p JOIN m ON n > k",
    "many lengths of texts that are shorter": f"SELECT SUM(LEAST({LENGTHS}, 5)) FROM p JOIN m ON n > k AND w < 4",
    "a long text in WHERE": f"SELECT COUNT(*) FROM p JOIN m ON n > k WHERE {AMPLE} = 'z'",
    "a long text in ON": f"SELECT COUNT(*) FROM p JOIN m ON {AMPLE} = CAST(n + k AS VARCHAR)",
    "a long text in EXISTS, beside another condition": "SELECT COUNT(*) FROM p SEMI JOIN m ON UPPER(x) = t AND n > k",
    "a long text in EXISTS": f"SELECT COUNT(*) FROM p SEMI JOIN m ON {AMPLE} = CAST(n + k AS VARCHAR)",
    "a long text that a window sorts by": "SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id "
    f"ORDER BY {AMPLE}) AS y FROM p JOIN m ON n > k) AS q WHERE y = 1",
    "a long text that is counted": f"SELECT COUNT(*) FROM (SELECT id, n, COUNT(NULLIF({AMPLE}, 'a')) AS y FROM p "
    "JOIN m ON n > k GROUP BY id, n) AS q WHERE y = 1",
    "a unit's name that is looked into": "SELECT COUNT(*) FROM p JOIN m ON p.k < m.n WHERE id LIKE 'a%'",
    "a unit's name beside a long one": f"SELECT COUNT(*) FROM p JOIN m ON p.k < m.n WHERE id = '{'a' * 64}'",
    "a unit's name in a list with a long one": f"SELECT COUNT(*) FROM p, m WHERE k < n AND id IN ('b', '{'a' * 64}')",
    "a unit's name by another name": "SELECT COUNT(*) FROM (SELECT DISTINCT id AS who, n FROM p JOIN m ON n > k) AS q "
    "WHERE LENGTH(who) > 1",
    "a unit's name that a window sorts by": "SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id "
    "ORDER BY id) AS y FROM p JOIN m ON n > k) AS q WHERE y = 1",
}
WITHIN = {
    "a key": "SELECT COUNT(*) FROM p JOIN m ON p.k = m.n WHERE x <> 'a'",
    "a key beside a double": "SELECT COUNT(*) FROM p JOIN m ON p.d = m.n WHERE x <> 'a'",
    "eighty rows each": "SELECT COUNT(*) FROM p JOIN m ON p.k = m.w WHERE x <> 'a' AND t = 'abc'",
    "eighty rows each, beside a double": "SELECT COUNT(*) FROM p JOIN m ON p.d = m.w WHERE x <> 'a'",
    "in WHERE": "SELECT COUNT(*) FROM p, m WHERE x <> 'a' AND p.k = m.w AND m.n > 70",
    "nothing is met": "SELECT COUNT(*) FROM p JOIN m ON x = m.v",
    "numbers": "SELECT COUNT(*) FROM p JOIN m ON p.k < m.n WHERE p.d > 1",
    "short public texts": "SELECT COUNT(*) FROM p JOIN m ON p.k < m.n WHERE m.t = 'abc'",
    "semi": "SELECT COUNT(*) FROM p SEMI JOIN m ON m.n > p.k WHERE x <> 'a'",
    "in": "SELECT COUNT(*) FROM p WHERE x <> 'a' AND k IN (SELECT w FROM m)",
    "in, texts": "SELECT COUNT(*) FROM p WHERE x IN (SELECT t FROM m)",
    "not in, texts": "SELECT COUNT(*) FROM p WHERE x NOT IN (SELECT t FROM m)",
    "not in, some of a text": "SELECT COUNT(*) FROM p WHERE LEFT(x, 9) NOT IN (SELECT t FROM m)",
    "in, all of a text that many rows list": "SELECT COUNT(*) FROM p WHERE UPPER(x) IN (SELECT t FROM m)",
    "not in, all of a text that many rows list": "SELECT COUNT(*) FROM p WHERE UPPER(x) NOT IN (SELECT t FROM m)",
    "anti, of an expression of the list": "SELECT COUNT(*) FROM p ANTI JOIN m ON UPPER(x) = LOWER(t) AND k = w",
    "not in what may be unknown": "SELECT COUNT(*) FROM p WHERE x NOT IN (SELECT t FROM m UNION ALL SELECT NULL)",
    "not in, all of a text": f"SELECT COUNT(*) FROM p WHERE UPPER(x) NOT IN ({EACH})",
    "not in, all of a text, or what is unknown": "SELECT COUNT(*) FROM p WHERE UPPER(x) NOT IN "
    f"({EACH} UNION ALL SELECT NULL)",
    "exists, some of a text": "SELECT COUNT(*) FROM p SEMI JOIN m ON m.n > p.k AND LEFT(p.x, 9) > m.t",
    "exists, with its length": "SELECT COUNT(*) FROM p WHERE x <> 'a' AND EXISTS (SELECT 1 FROM p AS q JOIN m "
    "ON m.n > q.k WHERE q.id = p.id AND q.d <> m.n)",
    "a long text of a key": f"SELECT COUNT(*) FROM p JOIN m ON n = k WHERE {AMPLE} <> 'z'",
    "a scalar": "SELECT COUNT(*) FROM p WHERE x <> 'a' AND k < (SELECT MAX(n) FROM m)",
    "fewer rows": "SELECT COUNT(*) FROM p JOIN (SELECT n FROM m WHERE n < 900) AS f ON p.k < f.n WHERE x <> 'a'",
    "cut first": "SELECT COUNT(*) FROM (SELECT id, LEFT(x, 9) AS y, k FROM p) AS q JOIN m ON q.k < m.n WHERE y <> 'a'",
    "cut where it is read": "SELECT COUNT(*) FROM p JOIN m ON k < n WHERE LEFT(x, 100) <> 'a' AND LEFT(x, 7) <> 'b'",
    "the unit is a text": "SELECT COUNT(*) FROM (SELECT DISTINCT id, n FROM p JOIN m ON n > k) AS q WHERE id <> 'ann'",
    "the unit is in a list": "SELECT COUNT(*) FROM p, m WHERE p.k < m.n AND p.id IN ('ann', 'eve')",
    "the unit is of both sides": "SELECT COUNT(*) FROM (SELECT id, n FROM p JOIN m ON n > k GROUP BY id, n UNION ALL "
    "SELECT id, k FROM p) AS q WHERE 'ann' < id",
    "the unit is not there": "SELECT COUNT(*) FROM p JOIN m ON n > p.k LEFT JOIN (SELECT id FROM p WHERE k > 1) AS q "
    "ON q.id = p.id WHERE q.id IS NULL",
    "the unit of a window": "SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY n) AS y "
    "FROM p JOIN m ON n > k) AS q WHERE y = 7",
    "public keys": "SELECT m.n, COUNT(p.id) FROM m LEFT JOIN p ON p.k = m.n GROUP BY m.n",
}


@pytest.mark.parametrize("what", BEYOND)
def test_what_public_rows_make_of_one_row_is_refused_before_the_charge(asked: hb.Session, what: str) -> None:
    before = asked.remaining
    for ask in (asked.check, asked.sql):
        with pytest.raises(hb.QueryError, match="by the public rows that it meets"):
            ask(BEYOND[what], epsilon=1)
    assert asked.remaining == before


@pytest.mark.parametrize("what", WITHIN)
def test_ordinary_joins_are_answered_as_sql_means_them(asked: hb.Session, what: str) -> None:
    plain = duckdb.connect()
    for name, rows in (("p", PEOPLE), ("m", MANY)):
        plain.register(name, rows)
    found = asked.sql(WITHIN[what], epsilon=10**9, max_rows=1, max_groups=ROWS, max_total=10**5).rows()
    assert sorted(found) == sorted(plain.execute(WITHIN[what]).fetchall())


LONG = "a" * 70_000
BYTES = [LONG.encode() + b"1", LONG.encode() + b"2", b"a" * 64, b"a" * 65, b"", b"\xff"]


@pytest.mark.parametrize(
    ("of", "sql"),
    [
        ("bytes", "SELECT COUNT(*) FROM p JOIN m ON k <= n"),
        ("text", "SELECT COUNT(*) FROM p JOIN m ON k <= n"),
        ("text", "SELECT COUNT(*) FROM (SELECT DISTINCT id, n FROM p JOIN m ON k <= n) AS q"),
        (
            "text",
            "SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY n) AS r FROM p JOIN m "
            "ON k <= n) AS q",
        ),
        (
            "text",
            "SELECT COUNT(*) FROM (SELECT id, n FROM p JOIN m ON k <= n GROUP BY id, n UNION SELECT id, 0 AS n FROM p) "
            "AS q",
        ),
    ],
)
def test_public_rows_repeat_no_long_name_of_a_unit(of: str, sql: str) -> None:
    """One person's long name, times a large public table, would be memory that runs out for that person alone."""
    names: Any = BYTES if of == "bytes" else [LONG + "1", LONG + "2", "a" * 64, "a" * 65, "", "\N{SNOWMAN}" * 30]
    people = pa.table({"id": pa.array(names, pa.binary() if of == "bytes" else pa.string()), "k": [0] * len(names)})
    table = hb.table(people, unit="id", max_groups=1, max_rows=1, max_total=40)
    desk = Desk({"p": table, "m": hb.public(pa.table({"n": range(30)}))})
    (plan,) = desk.plans(sql)
    (leaf,) = leaves(plan.question.relation)
    public = {leaf.place: desk.outer.leaf(leaf, {})}
    assert desk.engine.run(plan, public).vectors == ((30 * len(names),),)  # each of them a unit of its own
    stages = desk.engine.compile(plan).split(",\nfiltered AS (")[0]
    for stage in re.findall(r"^(?:WITH )?(r\d+) AS \($", stages, re.MULTILINE):
        with desk.engine._con.cursor() as cursor:
            for view, rows in ((desk.engine._known["p"].relation, people), *public.items()):
                cursor.register(view, rows)
            columns = [c[0] for c in cursor.execute(f"{stages}\nSELECT * FROM {stage} LIMIT 0").description]
            longest = ", ".join(f"max(length(CAST({c} AS VARCHAR)))" for c in columns)
            found = cursor.execute(f"{stages}\nSELECT {longest} FROM {stage}").fetchone()
        assert max(n or 0 for n in found) <= (4 * 65 if of == "bytes" else 65), stage
    desk.engine.close()


@pytest.mark.parametrize("select", ["SELECT id AS w, n", "SELECT id AS w, n, id"])
@pytest.mark.parametrize(("word", "rows"), [("INTERSECT", 2), ("EXCEPT", 0), ("UNION", 2)])
def test_a_long_name_beside_another_text_is_compared_as_a_whole(word: str, select: str, rows: int) -> None:
    names = [LONG[:70], "b"]
    people = hb.table(
        pa.table({"id": names, "k": [0, 0], "x": names}), unit="id", max_groups=1, max_rows=1, max_total=9
    )
    desk = Desk({"p": people, "m": hb.public(pa.table({"n": [0, 1]}))})
    below = f"{select} FROM p JOIN m ON k >= n {word} {select.replace('id AS w, n', 'x, k')} FROM p"
    (plan,) = desk.plans(f"SELECT COUNT(*) FROM ({below}) AS q")
    public = {leaf.place: desk.outer.leaf(leaf, {}) for leaf in leaves(plan.question.relation)}
    assert desk.engine.run(plan, public).vectors == ((rows,),)
    desk.engine.close()


@pytest.mark.parametrize("listed", [[], ["A", "Z"], ["A", None], [None]])
@pytest.mark.parametrize("value", ["x", "UPPER(x)", "NULL", "LEFT(x, 1)"])
def test_not_in_a_public_list_is_true_as_in_sql(value: str, listed: list[str | None]) -> None:
    """Of an unknown value only where the list is empty; of any value nowhere where it holds NULL."""
    people = pa.table({"id": [1, 2, 3, 4], "x": ["a", "A", None, "b"]})
    texts = pa.table({"t": pa.array(listed, pa.string())})
    tables: dict[str, Any] = {"p": hb.table(people, unit="id", max_total=1), "m": hb.public(texts)}
    plain = duckdb.connect()
    plain.register("p", people)
    plain.register("m", texts)
    sql = f"SELECT COUNT(*) FROM p WHERE {value} NOT IN (SELECT t FROM m)"
    with hb.Session(tables, budget=hb.Budget(epsilon=10**10), ledger=None) as session:
        assert session.sql(sql, epsilon=10**9).rows() == plain.execute(sql).fetchall()


def test_a_release_of_many_rows_is_looked_at_once_it_is_there(asked: hb.Session) -> None:
    """How many rows it has is not known before; 2,000 groups times a text are refused, times a number they are not."""
    released = "(SELECT k, COUNT(*) AS n FROM p GROUP BY k) AS r"
    for column, refused in (("x <> 'a'", True), ("d > 0", False), ("LEFT(x, 9) <> 'a'", False)):
        for on, beyond in (("r.n > -10", refused), ("r.k = p.k", False)):
            sql = f"SELECT COUNT(*) FROM p JOIN {released} ON {on} WHERE {column}"
            asked.check(sql, epsilon=10**6, max_total=2_000)
            if not beyond:
                asked.sql(sql, epsilon=10**6, max_total=2_000)
                continue
            with pytest.raises(hb.QueryError, match="This was charged"):
                asked.sql(sql, epsilon=10**6, max_total=2_000)


@pytest.mark.parametrize(("read", "most"), [("x <> 'a'", HELD // (FIXED + CUT)), ("d > 0", 2**21)])
@pytest.mark.parametrize("more", [0, 1])
def test_the_bound_is_reached_by_a_row_and_not_passed(read: str, most: int, more: int) -> None:
    """A whole column of texts or of numbers, and public rows, of which none but the number of rows is read. A number
    and its row are 32 characters, and 64 Mi of them are held.
    """
    rows = most + more
    tables: dict[str, Any] = {
        "p": hb.table(PEOPLE, unit="id", max_total=1),
        "m": hb.public(pa.table({"n": range(rows)})),
    }
    with hb.Session(tables, budget=hb.Budget(epsilon=1), ledger=None) as session:
        sql = f"SELECT COUNT(*) FROM p CROSS JOIN m WHERE {read}"
        if not more:
            session.check(sql, epsilon=1)
            return
        with pytest.raises(hb.QueryError, match="one row could become"):
            session.check(sql, epsilon=1)
