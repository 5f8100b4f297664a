"""No statement makes a text, or an expression, that grows from sub-query to sub-query (P44)."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from counts import SOAK, part
from hubbub.tables.declare import Limits
from hubbub.tables.expressions import Arithmetic, Call, Column, Compare, Expression, Literal
from hubbub.tables.growth import CUT, LONGEST, ROW, Size, characters, made, sizes_in
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Inner, PerUnit, Scan

warnings.simplefilter("ignore")
LAYERS = {
    "distinct": "SELECT DISTINCT id, {x} AS x FROM ({below}) AS q",
    "group by": "SELECT id, {x} AS x FROM ({below}) AS q GROUP BY id, {x}",
    "per-unit aggregate": "SELECT id, MAX({x}) AS x FROM ({below}) AS q GROUP BY id",
    "window": "SELECT id, FIRST_VALUE({x}) OVER (PARTITION BY id ORDER BY x) AS x FROM ({below}) AS q",
    "lag default": "SELECT id, LAG('a', 1, {x}) OVER (PARTITION BY id ORDER BY x) AS x FROM ({below}) AS q",
    "union": "SELECT id, {x} AS x FROM ({below}) AS q UNION SELECT id, 'a' FROM v",
    "except": "SELECT id, {x} AS x FROM ({below}) AS q EXCEPT SELECT id, 'a' FROM v",
    "projection": "SELECT id, {x} AS x FROM ({below}) AS q",
    "join": "SELECT q.id, {x} AS x FROM ({below}) AS q JOIN (SELECT id AS other FROM v) AS w ON q.id = w.other",
}
GROWN = {"||": "||".join(["x"] * 8), "CASE": "CASE WHEN id = 'bob' THEN " + "||".join(["x"] * 8) + " ELSE '' END"}
GROWN |= {"CONCAT in COALESCE": "COALESCE(x||x||x||x||x||x||x||x, x)", "REPLACE": "REPLACE(x, 'a', 'aaaaaaaa')"}


def session() -> hb.Session:
    rows = pa.table({"id": ["ann", "bob", "eve"], "ill": ["no", "yes", "no"], "x": ["a", "b", "c"]})
    table = hb.table(rows, unit="id", max_groups=1, max_rows=1, max_total=1)
    return hb.Session({"v": table}, budget=hb.Budget(epsilon=10**9), ledger=None)


def nested(layers: tuple[str, ...], grown: str, start: str = "SELECT id, x FROM v") -> str:
    text = start
    for layer in layers:
        text = LAYERS[layer].format(x=grown, below=text)
    return text


@pytest.mark.parametrize("first", LAYERS)
def test_eightfold_three_times_is_refused_through_any_sub_queries(first: str) -> None:
    """8^3 columns of text are beyond 64: refused, whichever operators the text passes through."""
    with session() as s:
        for more in itertools.product(LAYERS, repeat=2):
            text = f"SELECT COUNT(*) FROM ({nested((first, *more), GROWN['||'])}) AS q WHERE x <> 'z'"
            with pytest.raises(hb.QueryError, match=r"texts of up to|too long|characters"):
                s.check(text, epsilon=1)


@pytest.mark.parametrize("grown", GROWN)
@pytest.mark.parametrize("layer", LAYERS)
def test_eightfold_once_is_answered_and_three_times_refused(layer: str, grown: str) -> None:
    with session() as s:
        s.check(f"SELECT COUNT(*) FROM ({nested((layer,), GROWN[grown])}) AS q WHERE x <> 'z'", epsilon=1)
        with pytest.raises(hb.QueryError):
            s.check(f"SELECT COUNT(*) FROM ({nested((layer,) * 3, GROWN[grown])}) AS q WHERE x <> 'z'", epsilon=1)


NINE = "||".join(["q.x"] * 9)
USES = {
    "condition": f"SELECT COUNT(*) FROM ({{}}) AS q WHERE {NINE} = 'a'",
    "argument": f"SELECT COUNT(DISTINCT {NINE}) FROM ({{}}) AS q",
    "exists": f"SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM ({{}}) AS q WHERE q.id = v.id AND {NINE} = 'a')",
    "join": f"SELECT COUNT(*) FROM v JOIN ({{}}) AS q ON q.id = v.id AND STARTS_WITH({NINE}, 'a')",
    "order": f"SELECT COUNT(*) FROM (SELECT id, RANK() OVER (PARTITION BY id ORDER BY {NINE}) AS n FROM ({{}}) AS q)"
    " AS r WHERE n > 0",
}


@pytest.mark.parametrize("use", USES)
def test_growth_is_carried_to_wherever_a_text_is_looked_at(use: str) -> None:
    """8 times a column, made below DISTINCT, 9 times over: in conditions, arguments, joins and window orders."""
    with session() as s, pytest.raises(hb.QueryError, match="texts of up to"):
        s.check(
            USES[use].format(nested(("distinct",), GROWN["||"])),
            epsilon=1,
            **({} if "DISTINCT x" not in use else {"max_rows": 1}),
        )


def test_a_cut_text_may_grow_again_but_not_its_written_out_size() -> None:
    """LEFT(x, 10) after each step keeps texts short; the engine's text is bounded by the number of parts."""
    with session() as s:
        short = "LEFT(x||x||x||x||x||x||x||x, 10)"
        s.check(f"SELECT COUNT(*) FROM ({nested(('distinct',) * 3, short)}) AS q WHERE x <> 'z'", epsilon=1)
        with pytest.raises(hb.QueryError, match="written out"):
            s.check(f"SELECT COUNT(*) FROM ({nested(('distinct',) * 6, short)}) AS q WHERE x <> 'z'", epsilon=1)


def test_a_row_of_many_long_texts_is_refused() -> None:
    columns = ", ".join(f"x||x||x||x||x||x||x||x||'{i}' AS x{i}" for i in range(40))
    with session() as s, pytest.raises(hb.QueryError, match="Name fewer columns"):
        s.check(f"SELECT COUNT(*) FROM (SELECT DISTINCT id, {columns} FROM v) AS q", epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(LEAST({terms}, 5)) FROM v",
        "SELECT COUNT(*) FROM v WHERE LEAST({terms}) = 5",
        "SELECT COUNT(*) FROM (SELECT DISTINCT id, GREATEST({terms}) AS n FROM v) AS q WHERE n = 5",
    ],
)
def test_many_long_texts_that_are_made_on_the_way_are_refused_together(sql: str) -> None:
    """Each has 60 columns' length for a row of a's alone, and an engine holds all: 17 are within, 18 beyond."""
    terms = [f"LENGTH(REPLACE(x, 'a', '{letter * 60}'))" for letter in "abcdefghijklmnopqr"]
    with session() as s:
        s.check(sql.format(terms=", ".join(terms[:17])), epsilon=1)
        with pytest.raises(hb.QueryError, match="characters together"):
            s.check(sql.format(terms=", ".join(terms)), epsilon=1)


@pytest.mark.parametrize(("joined", "most"), [("||".join, 44), (lambda terms: f"CONCAT({', '.join(terms)})", 43)])
def test_each_text_of_a_long_join_is_weighed(joined: Callable[[list[str]], str], most: int) -> None:
    """An engine makes x || x, then (x || x) || x, and so on: 64 of them held 521 MB and 2.5 s of one row alone."""
    with session() as s:
        s.check(f"SELECT COUNT(*) FROM v WHERE {joined(['x'] * most)} = 'a'", epsilon=1)
        with pytest.raises(hb.QueryError, match="characters together"):
            s.check(f"SELECT COUNT(*) FROM v WHERE {joined(['x'] * (most + 1))} = 'a'", epsilon=1)


def _text(node: Expression, x: str) -> str:
    """What a text expression is for a row, by Python: an oracle for `characters`."""
    match node:
        case Column():
            return x
        case Literal(value=str() as value):
            return value
        case Call(name="CONCAT", arguments=arguments):
            return "".join(_text(a, x) for a in arguments)
        case Call(name="REPLACE", arguments=(text, Literal(value=str() as old), Literal(value=str() as new))):
            return _text(text, x).replace(old, new) if old else _text(text, x)
        case Call(name="LEFT", arguments=(text, Literal(value=int() as n))):
            return _text(text, x)[:n]
    raise AssertionError(node)


def test_characters_is_never_below_the_length_of_a_row() -> None:
    """Every tree of depth 3 over a full column: the bound holds, and is reached by some."""
    x = Column("x", Kind.TEXT)
    level: list[Expression] = [x, Literal("ab")]
    for _ in range(2):
        made: list[Expression] = []
        for a in level[:8]:
            made += [
                Call("REPLACE", (a, Literal("a"), Literal("abc"))),
                Call("REPLACE", (a, Literal(""), Literal("b"))),
            ]
            made += [Call("LEFT", (a, Literal(5))), Call("REPLACE", (a, Literal("aa"), Literal("b")))]
            made += [Call("CONCAT", (a, b)) for b in level[:8]]
        level = [*level, *made]
    row = "a" * CUT
    gaps = [characters(node) - len(_text(node, row)) for node in level]
    assert min(gaps) == 0
    assert len(gaps) > 60


N, S = Column("n", Kind.INTEGER), Column("s", Kind.TEXT)
AS_TEXT, FIVE = Call("CAST_TEXT", (N,)), Literal("aaaaa")
LENGTHS = {
    "a column of texts": (S, CUT),
    "a column of numbers": (N, 400),
    "a text": (Literal("abc"), 3),
    "a number": (Literal(7), 400),
    "a number as a text": (AS_TEXT, 400),
    "a change of case": (Call("UPPER", (Call("LEFT", (S, Literal(3))),)), 3),
    "joined": (Call("CONCAT", (S, Literal("ab"), AS_TEXT)), CUT + 402),
    "the longer of two": (Call("COALESCE", (Call("LEFT", (S, Literal(3))), FIVE)), 5),
    "two for three, rounded up": (Call("REPLACE", (FIVE, Literal("aa"), Literal("bbb"))), 8),
    "one for one": (Call("REPLACE", (FIVE, Literal("a"), Literal("b"))), 5),
    "less for more": (Call("REPLACE", (FIVE, Literal("aa"), Literal("b"))), 5),
    "something for nothing": (Call("REPLACE", (FIVE, Literal(""), Literal("bbb"))), 5),
    "the first five": (Call("LEFT", (S, Literal(5))), 5),
    "the first none": (Call("LEFT", (S, Literal(0))), 0),
    "the first five of three": (Call("LEFT", (Literal("abc"), Literal(5))), 3),
    "all but the last": (Call("LEFT", (S, Literal(-1))), CUT),
    "four of them": (Call("SUBSTR", (S, Literal(2), Literal(4))), 4),
    "none of them": (Call("SUBSTR", (S, Literal(2), Literal(0))), 0),
    "some before": (Call("SUBSTR", (S, Literal(9), Literal(-4))), CUT),
}


@pytest.mark.parametrize("what", LENGTHS)
def test_how_long_a_text_can_become(what: str) -> None:
    node, most = LENGTHS[what]
    assert characters(node) == most
    made = {"n": Size(900, 7), "s": Size(900, 7)}
    assert characters(node, made) == (most if most < CUT else most - CUT + 900)


def test_a_row_is_as_long_as_its_texts_together_and_numbers_do_not_count() -> None:
    whole = f"REPLACE(x, 'a', '{'a' * (LONGEST // CUT)}')"
    four = ", ".join(f"{whole} AS x{i}" for i in range(ROW // LONGEST))
    rows = pa.table({"id": [1, 2], "x": ["a", "b"]})
    with hb.Session({"v": hb.table(rows, unit="id", max_total=1)}, budget=hb.Budget(epsilon=9), ledger=None) as s:
        for more in ("", ", LEFT(x, 400) AS short", ", id + 1 AS one, LENGTH(x) AS two"):
            s.check(f"SELECT COUNT(*) FROM (SELECT DISTINCT id, {four}{more} FROM v) AS q", epsilon=1)
        for more in (", LEFT(x, 401) AS longer", ", x AS other"):
            with pytest.raises(hb.QueryError, match="Name fewer columns"):
                s.check(f"SELECT COUNT(*) FROM (SELECT DISTINCT id, {four}{more} FROM v) AS q", epsilon=1)
        five = [whole, *(f"{name}({whole})" for name in ("UPPER", "LOWER", "TRIM", "REVERSE"))]
        counts = [f"COUNT(DISTINCT {x})" for x in five]
        s.check(f"SELECT {', '.join(counts[:4])} FROM v", epsilon=1)
        with pytest.raises(hb.QueryError, match="Name fewer columns"):
            s.check(f"SELECT {', '.join(counts)} FROM v", epsilon=1)
        with pytest.raises(hb.QueryError, match="too long"):
            s.check(f"SELECT COUNT(*) FROM v WHERE {whole} || 'a' = 'b'", epsilon=1)


@pytest.mark.parametrize("length", [CUT - 1, CUT, CUT + 1, 3 * CUT])
def test_a_column_is_cut_to_its_first_characters(length: int) -> None:
    """Bytes are counted first: a text of as many bytes is whole, and a longer one loses characters, not bytes."""
    for character in ("a", "é", "\U0001f600"):
        table = pa.table({"id": [1, 2], "x": [character * length, "b"]})
        declared = hb.table(table, unit="id", max_total=1, columns={})
        with hb.Session({"v": declared}, budget=hb.Budget(epsilon=10**9), ledger=None) as s:
            kept = min(length, CUT)
            answer = s.sql(f"SELECT COUNT(*) FROM v WHERE LENGTH(x) = {kept}", epsilon=10**6)
            assert answer.rows()[0][0] == 1


def test_the_longest_text_that_is_allowed_is_answered() -> None:
    """One row at the limit itself: 64 columns of 65,536 characters of four bytes."""
    table = pa.table({"id": [1, 2], "x": ["\U0001f600" * CUT, "b"]})
    with hb.Session({"v": hb.table(table, unit="id", max_total=1)}, budget=hb.Budget(epsilon=10**9), ledger=None) as s:
        eight = "||".join(["x"] * 8)
        below = f"SELECT DISTINCT id, {eight} AS x FROM v"
        text = f"SELECT COUNT(*) FROM (SELECT DISTINCT id, {eight} AS x FROM ({below}) AS q) AS r"
        answer = s.sql(f"{text} WHERE LENGTH(x) = {LONGEST}", epsilon=10**6)
        assert answer.rows()[0][0] == 1


def test_the_longest_text_made_on_the_way_counts_wherever_it_stands() -> None:
    long, short = (Call("CONCAT", (Literal("a" * n), Literal("b"))) for n in (30, 2))
    for both in ((long, short), (short, long)):
        assert made(Compare("=", *both)) == 31


def test_an_aggregate_of_a_unit_s_rows_has_one_part_more_than_its_argument() -> None:
    column = Column("t.x", Kind.NUMBER)
    scan = Scan("t", "v", {"x": Kind.NUMBER}, {}, Limits(), "id", "add_remove", "id")
    three = Arithmetic("+", column, Literal(1))
    for argument, parts in ((None, 1), (column, 2), (three, 3)):
        node = PerUnit(scan, (), (("m", Inner("MAX" if argument else "COUNT", argument, Kind.NUMBER)),))
        assert sizes_in(node)["m"].parts == parts


def test_a_public_text_is_cut_too() -> None:
    people = hb.table(pa.table({"id": [1, 2], "k": ["a", "b"]}), unit="id", max_total=1)
    names = hb.public(pa.table({"k": ["a", "b"], "name": ["n" * (CUT + 5), "m"]}))
    with hb.Session({"v": people, "names": names}, budget=hb.Budget(epsilon=10**9), ledger=None) as s:
        sql = f"SELECT COUNT(*) FROM v JOIN names ON v.k = names.k WHERE LENGTH(name) = {CUT}"
        assert s.sql(sql, epsilon=10**6).rows()[0][0] == 1


# -- correlated sub-queries ------------------------------------------------------------------------------------------

TIES = ["w.id = v.id", "v.id = w.id", "w.ref = v.id", "w.ref = w.id", "w.n > 1", "w.ref = v.ref", "w.id = v.ref"]
SHAPES = {
    "count": "(SELECT COUNT(*) FROM v w WHERE {}) > 1",
    "max": "(SELECT MAX(w.n) FROM v w WHERE {}) > 2",
    "exists": "EXISTS (SELECT 1 FROM v w WHERE {})",
    "not exists": "NOT EXISTS (SELECT 1 FROM v w WHERE {})",
    "exists in CASE": "CASE WHEN EXISTS (SELECT 1 FROM v w WHERE {}) THEN 1 ELSE 0 END = 1",
    "in": "v.id IN (SELECT w.id FROM v w WHERE {})",
}
TRIPLES = [t for three in itertools.combinations(TIES, 3) for t in (three, three[::-1])][::3]
ROWS = {"id": [1, 1, 2, 2, 3, 4, 4], "ref": [1, 2, 2, None, 1, 5, 4], "n": [1, 2, 3, 1, 5, 2, 2]}


def test_a_correlated_sub_query_is_refused_or_answered_as_sql_means_it() -> None:
    """All WHEREs of one or two conditions, and some of three: none is answered as another question.

    Each in two of the six shapes; the soak asks each in all of them.
    """
    rows: Any = pa.table(ROWS)
    plain = duckdb.connect()
    plain.register("v", rows)
    table = hb.table(rows, unit="id", max_groups=5, max_rows=5, max_total=10, columns={"n": hb.between(0, 10)})
    answered = refused = 0
    with hb.Session({"v": table}, budget=hb.Budget(epsilon=10**12), ledger=None) as s:
        for turn, shape in enumerate(SHAPES):
            every = (*itertools.permutations(TIES, 1), *itertools.permutations(TIES, 2), *TRIPLES)
            for ties in every if SOAK else every[turn % 3 :: 3]:
                sql = f"SELECT COUNT(*) AS n FROM v WHERE {SHAPES[shape].format(' AND '.join(ties))}"
                try:
                    s.check(sql, epsilon=10**6)
                except (hb.QueryError, hb.PolicyError):
                    refused += 1
                    continue
                answered += 1
                assert s.sql(sql, epsilon=10**6).rows()[0][0] == plain.execute(sql).fetchall()[0][0], sql
    assert answered > part(100, 3)
    assert refused > part(100, 3)


def test_no_text_column_is_scanned_uncut_whatever_its_type(tmp_path) -> None:
    path, long = tmp_path / "v.duckdb", "x" * (CUT + 5)
    with duckdb.connect(str(path)) as con:
        con.execute(f"CREATE TYPE letters AS ENUM ('a', '{long}')")
        con.execute("CREATE TABLE v (id INT, x VARCHAR, y letters, z UUID)")
        con.execute(f"INSERT INTO v VALUES (1, '{long}', '{long}', uuid())")
    table = hb.table(path, table="v", unit="id", max_total=1)
    with hb.Session({"v": table}, budget=hb.Budget(epsilon=10**6), ledger=None) as asked:
        for column in "xyz":
            sql = f"SELECT COUNT(*) AS n FROM v WHERE LENGTH({column}) > {CUT}"
            assert asked.sql(sql, epsilon=1000).rows() == [(0,)], column
