"""Plans to SQL: golden texts, and texts that run on every row without raising."""

from __future__ import annotations

import datetime as dt
import os
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import hubbub as hb
from hubbub.engines.duckdb.dialect import DUCKDB, quote
from hubbub.errors import QueryError
from hubbub.sql.emit.expression import expression_sql
from hubbub.sql.text.functions import UNITS
from hubbub.tables.expressions import (
    Arithmetic,
    Call,
    Case,
    Column,
    Compare,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Logic,
    Negate,
    Not,
)
from hubbub.tables.functions import PARTS
from hubbub.tables.kinds import Kind
from people import engine, visits

GOLDEN = Path(__file__).parent / "golden"

QUESTIONS = {
    "count": ("SELECT COUNT(*) FROM visits", {}),
    "count_by_ward": ("SELECT ward, COUNT(*) FROM visits WHERE age > 20 GROUP BY ward", {"max_groups": 2}),
    "mean_and_sum": ("SELECT ward, ok, AVG(age), SUM(n) FROM visits GROUP BY ward, ok", {"max_groups": 3}),
    "units": ("SELECT ward, COUNT(DISTINCT id) FROM visits GROUP BY ward", {"max_groups": 4}),
    "each_row": ("SELECT ward, COUNT(age), SUM(n) FROM visits GROUP BY ward", {"unit": hb.EACH_ROW}),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_compiled_text_is_the_golden_text(name: str) -> None:
    """`HUBBUB_GOLDEN=write` writes the files anew; read the difference before committing it."""
    sql, changes = QUESTIONS[name]
    with engine("visits", visits(**changes)) as (duck, plan):
        text = duck.compile(plan(sql)) + "\n"
        duck.run(plan(sql))
    file = GOLDEN / f"{name}.sql"
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


HARD_NUMBERS = [0.0, -0.0, 1.0, -1.5, 2.0**53, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"), None]
HARD_INTEGERS = [0, 1, -1, 7, 2**63 - 1, -(2**63), None]
HARD_TEXTS = ["", "A", "a", "A ", "%", "é", "é", "\0", "'; DROP TABLE t; --", None]
HARD_DAYS = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2025, 2, 28), None]
FAR_DAYS = ["infinity", "-infinity", "5874897-12-31", "4713-01-01 (BC)", "290309-01-01", "2025-01-31"]

X, WHOLE, S, B, D = (
    Column("x", Kind.NUMBER),
    Column("i", Kind.INTEGER),
    Column("s", Kind.TEXT),
    Column("b", Kind.BOOLEAN),
    Column("d", Kind.DATE),
)
PARTS_OF_PATTERNS = st.sampled_from(["%", "_", "=A", "=%", "=_", "=\\", "=\0", "=Z\\", "=\u212a", "=\u0130"])
FLOAT_CALLS = ["ABS", "SIGN", "FLOOR", "CEIL", "SQRT", "EXP", "LN", "LOG10"]
SMALL = st.sampled_from([0, 1, 2, -1, 1_000_000, -1_000_000])
numbers: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from([X, WHOLE, Literal(0), Literal(-3), Literal(Fraction(1, 10)), Literal(2**63 - 1), Literal(None)]),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "//", "%", "DIV", "MOD"]), inner, inner),
        st.builds(Negate, inner),
        st.builds(lambda a, b: Case((Compare("<", a, b),), (a,), b), inner, inner),
        st.builds(lambda f, x: Call(f, (x,)), st.sampled_from(FLOAT_CALLS), inner),
        st.builds(lambda x, n: Call("ROUND", (x, Literal(n))), inner, st.sampled_from([-15, 0, 2, 15])),
        st.builds(
            lambda f, x, y: Call(f, (x, y)), st.sampled_from(["LEAST", "GREATEST", "COALESCE", "NULLIF"]), inner, inner
        ),
        st.builds(
            lambda f, x: Call(f, (x,)), st.sampled_from(["CAST_INTEGER", "CAST_NUMBER"]), st.one_of(inner, st.just(S))
        ),
        st.builds(lambda x: Call("LENGTH", (x,)), st.just(S)),
        st.builds(
            lambda p, d: Call("EXTRACT", (Literal(p), d)),
            st.sampled_from(sorted(PARTS)),
            st.sampled_from([D, Call("CAST_TIMESTAMP", (D,))]),
        ),
        st.builds(
            lambda u, d: Call("DATE_DIFF", (Literal(u), d, D)),
            st.sampled_from(sorted(UNITS)),
            st.just(Literal(dt.date(1970, 1, 1))),
        ),
    ),
    max_leaves=5,
)
texts: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from([S, *(Literal(t) for t in HARD_TEXTS), Call("CAST_TEXT", (X,)), Call("CAST_TEXT", (D,))]),
    lambda inner: st.one_of(
        st.builds(
            lambda f, x: Call(f, (x,)), st.sampled_from(["LOWER", "UPPER", "TRIM", "LTRIM", "RTRIM", "REVERSE"]), inner
        ),
        st.builds(lambda x, a, b: Call("SUBSTR", (x, Literal(a), Literal(b))), inner, SMALL, SMALL),
        st.builds(lambda f, x, a: Call(f, (x, Literal(a))), st.sampled_from(["LEFT", "RIGHT"]), inner, SMALL),
        st.builds(lambda x: Call("REPLACE", (x, Literal("A"), Literal("bb"))), inner),
        st.builds(lambda x, y: Call("CONCAT", (x, y)), inner, inner),
    ),
    max_leaves=3,
)
days: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from([D, Literal(dt.datetime(2025, 1, 1, 12)), *map(Literal, HARD_DAYS), Call("CAST_DATE", (S,))]),
    lambda inner: st.one_of(
        st.builds(lambda u, x: Call("DATE_TRUNC", (Literal(u), x)), st.sampled_from(sorted(UNITS)), inner),
        st.builds(lambda f, x: Call(f, (x,)), st.sampled_from(["CAST_DATE", "CAST_TIMESTAMP"]), inner),
    ),
    max_leaves=2,
)
compares = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
conditions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(
        st.builds(Compare, compares, numbers, numbers),
        st.builds(Compare, compares, texts, texts),
        st.builds(Compare, compares, days, days),
        st.builds(
            lambda n, v: InList(n, tuple(v)),
            numbers,
            st.lists(numbers.filter(lambda e: isinstance(e, Literal)), min_size=1, max_size=3),
        ),
        st.builds(lambda t, p, i: Like(t, tuple(p), i), texts, st.lists(PARTS_OF_PATTERNS, max_size=4), st.booleans()),
        st.builds(IsNull, st.one_of(numbers, texts, days)),
        st.just(B),
    ),
    lambda inner: st.one_of(
        st.builds(Not, inner), st.builds(lambda o, a, b: Logic(o, (a, b)), st.sampled_from(["AND", "OR"]), inner, inner)
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def hard_rows() -> duckdb.DuckDBPyConnection:
    """Every hard number with every hard integer, beside texts and days; NaN is NULL, as the scan makes it."""
    con = duckdb.connect()
    con.execute("CREATE TABLE hard (x DOUBLE, i BIGINT, s VARCHAR, b BOOLEAN, d DATE)")
    rows = [
        (None if x != x else x, i, HARD_TEXTS[(a + b) % 10], (True, False, None)[(a + b) % 3], HARD_DAYS[(a * b) % 4])
        for a, x in enumerate(v if v is not None else float("nan") for v in HARD_NUMBERS)
        for b, i in enumerate(HARD_INTEGERS)
    ]
    con.executemany("INSERT INTO hard VALUES (?, ?, ?, ?, ?)", rows)
    con.executemany("INSERT INTO hard (x, i, s, d) VALUES (1, 1, 'A', CAST(? AS DATE))", [[d] for d in FAR_DAYS])
    return con


@settings(max_examples=300, deadline=None, derandomize=True)
@given(node=st.one_of(numbers, conditions))
def test_an_expression_has_a_value_or_is_null_on_every_row(
    hard_rows: duckdb.DuckDBPyConnection, node: Expression
) -> None:
    try:
        text = expression_sql(node, DUCKDB)
    except QueryError as error:
        assert "too complex" in str(error)
        return
    for (found,) in hard_rows.execute(f"SELECT {text} FROM hard").fetchall():
        if isinstance(node, Arithmetic | Negate):
            assert found is None or abs(found) < float("inf")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.one_of(st.text(), st.integers(-(2**63) + 1, 2**63 - 1), st.booleans(), st.none(), st.dates(), st.datetimes()))
def test_a_constant_is_read_back_as_itself(value: object) -> None:
    found = duckdb.sql(f"SELECT {DUCKDB.constant(value)}").fetchall()[0][0]
    assert found == value


@given(st.fractions(-(10**9), 10**9))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_decimal_is_the_nearest_double(value: Fraction) -> None:
    assert duckdb.sql(f"SELECT {DUCKDB.constant(value)}").fetchall()[0][0] == float(value)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(min_size=1).filter(lambda s: "\0" not in s))
def test_a_name_stays_one_name(name: str) -> None:
    assert duckdb.sql(f"SELECT 1 AS {quote(name)}").columns == [name]


def test_arithmetic_follows_its_rules() -> None:
    def value(op: str, a: object, b: object) -> object:
        return duckdb.sql(f"SELECT {expression_sql(Arithmetic(op, Literal(a), Literal(b)), DUCKDB)}").fetchall()[0][0]  # type: ignore[arg-type]

    assert value("/", 1, 0) is None
    assert value("%", 5, 0) is None
    assert value("//", -7, 2) == -4
    assert value("%", -7, 2) == 1
    assert value("MOD", 5, 0) is None
    assert value("DIV", -7, 2) == -3
    assert value("MOD", -7, 2) == -1
    assert value("DIV", -(2**63), -1) == 2**63
    assert value("*", 10**300, Fraction(10**300)) is None
    assert value("/", 1, 4) == 0.25


def test_an_expression_that_would_explode_is_refused() -> None:
    node: Expression = X
    for _ in range(60):
        node = Arithmetic("/", Literal(1), Arithmetic("+", Literal(1), node))
    with pytest.raises(QueryError, match="too complex"):
        expression_sql(node, DUCKDB)


@pytest.mark.parametrize("terms", ["SELECT {} FROM v", "SELECT COUNT(*) FROM (SELECT DISTINCT id, {} FROM v) AS q"])
def test_many_expressions_that_are_large_each_are_refused_together(terms: str) -> None:
    """Each holds 42,000 characters for DuckDB, and a statement has room for a thousand of them."""

    def asked(count: int) -> str:
        x = [f"POWER(POWER(POWER(POWER(POWER(x + 0.{i:02}, 2), 2), 2), 2), 2)" for i in range(count)]
        wrapped = [f"SUM({e})" if "DISTINCT" not in terms else f"{e} AS x{i}" for i, e in enumerate(x)]
        return terms.format(", ".join(wrapped))

    table = hb.table(pa.table({"id": [1, 2], "x": [1.0, 2.0]}), unit="id", max_total=1, columns={"x": hb.between(0, 1)})
    with hb.Session({"v": table}, budget=hb.Budget(epsilon=10**9), ledger=None) as session:
        session.check(asked(1), epsilon=1)
        before = session.remaining
        for ask in (session.check, session.sql):
            with pytest.raises(QueryError, match=r"question are too complex: .* nested too deeply; ask fewer of"):
                ask(asked(30), epsilon=1)
        assert session.remaining == before
