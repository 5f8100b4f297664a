"""Arithmetic at the edges of doubles: no constant and no row makes an engine raise (P15)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from engines.places import Embedded, Postgres
from hubbub.engines.postgres.dialect import POSTGRES
from hubbub.engines.spark.dialect import SPARK
from hubbub.sql.emit.expression import MAX_EXPRESSION, expression_sql
from hubbub.tables.expressions import Arithmetic, Call, Case, Column, Compare, Expression, Literal, Negate
from hubbub.tables.kinds import Kind
from hubbub.tables.remote import remote

CONSTANTS = [0, 1, -1, 2**53, 2**63 - 1, -(2**63) + 1]
CONSTANTS += [
    Fraction(t) for t in ("1e-320", "1e-308", "-1e-300", "1e300", "1e308", "-1e308", "1.7e308", "0.5", "1e90")
]
NUMBERS = ["NULL", "'0'", "'-0'", "'NaN'", "'inf'", "'-inf'", "'1e308'", "'-1.7e308'", "'1e-320'", "'-1e-300'"]
NUMBERS += ["'5'", "'-5'", "'2e90'", "'3e-91'", "'0.49999999999999994'"]
WHOLE = ["NULL", "0", "1", "-7", "9223372036854775807", "-9223372036854775807 - 1"]
HARD = [
    "x > 1e308 * 10",
    "x > 1e-300 * 1e-300",
    "x > 1e300 / 1e-300",
    "CAST(1e308 * 10 AS BIGINT) > 0",
    "CASE WHEN x > 30 THEN x ELSE 0 END * 1e308 > 0",
    "x * 1e308 > 0",
    "x / 1e-308 > 0",
    "x // 1e-308 > 0",
    "x % 1e-320 > 0",
    "x / 1e-400 > 0",
    "i * 1e308 > 0",
    "SQRT(x) * 1.7e308 > 0",
    "EXP(x) * 1e308 > 0",
    "LEAST(x, 1.7e308) * 1.7e308 > 0",
    "ROUND(x * 1e300, 15) > 0",
    "ROUND(x, 15) * 1e300 > 0",
    "(-x) * 1e100 > 0",
    "1e300 * 1e300 * 1e300 / SQRT(1e300 * 1e300 * 1e300) * 1e250 > x",
    "i // 1e90 * 1e300 > 0",
    "(1e-80 / x) % 1e-60 > 0",
]


def grown(draw: random.Random, depth: int) -> Expression:
    """A random number: arithmetic, functions and choices over constants and columns."""
    if depth == 0 or draw.random() < 0.15:
        names = [Column("x", Kind.NUMBER), Column("y", Kind.NUMBER), Column("i", Kind.INTEGER)]
        return draw.choice(names) if draw.random() < 0.5 else Literal(draw.choice(CONSTANTS))
    a, b = grown(draw, depth - 1), grown(draw, depth - 1)
    kind = draw.random()
    if kind < 0.65:
        return Arithmetic(draw.choice(["+", "-", "*", "/", "//", "%"]), a, b)
    if kind < 0.7:
        return Negate(a)
    if kind < 0.75:
        return Case((Compare(">", a, Literal(Fraction(1, 2))),), (a,), b)
    if kind < 0.8:
        return Call(draw.choice(["LEAST", "GREATEST", "COALESCE", "NULLIF"]), (a, b))
    if kind < 0.85:
        return Call("ROUND", (a, Literal(draw.choice([-300, -15, -2, 0, 3, 15, 300]))))
    names = ["ABS", "SIGN", "FLOOR", "CEIL", "SQRT", "EXP", "LN", "LOG10", "CAST_INTEGER", "CAST_NUMBER"]
    return Call(draw.choice(names), (a,))


def texts(dialect: Any, count: int, seed: int) -> Iterator[str]:
    draw, made = random.Random(seed), 0
    while made < count:
        try:
            text = expression_sql(grown(draw, draw.choice([1, 2, 2, 3, 3, 4])), dialect)
        except hb.QueryError:  # too deep a text is refused
            continue
        if len(text) < MAX_EXPRESSION // 10:
            made += 1
            yield text


@pytest.fixture(scope="module")
def edges(postgres_server: str) -> Iterator[Any]:
    place = Postgres(postgres_server, {}, {})
    place.con.execute("CREATE TABLE edges (x double precision, y double precision, i bigint)")
    listed = "(VALUES " + ", ".join(f"({v}::double precision)" for v in NUMBERS) + ")"
    whole = "(VALUES " + ", ".join(f"(({v})::bigint)" for v in WHOLE) + ")"
    place.con.execute(
        f"INSERT INTO edges SELECT a.v, b.v, c.v FROM {listed} AS a(v), {listed} AS b(v), {whole} AS c(v)"
    )
    yield place.con
    place.close()


def _raises(con: Any, text: str) -> str | None:
    import psycopg

    try:
        con.execute(f"SELECT count({text}) FROM edges".encode())
    except psycopg.Error as error:
        return str(error)
    return None


@pytest.mark.parametrize("count", [250, pytest.param(20_000, marks=pytest.mark.soak)])
def test_postgres_raises_at_no_random_arithmetic(edges: Any, count: int) -> None:
    assert [(t, told) for t in texts(POSTGRES, count, count) if (told := _raises(edges, t))] == []


def test_postgres_raises_where_constants_are_not_kept_in_range(edges: Any) -> None:
    """What the rule is for: the same rows, with what people write pasted as it is."""
    for text in ("x * 1e308", "1e300::double precision * 1e300", "1e-300::double precision / 1e300", "y / 1e-308"):
        assert _raises(edges, text) is not None


INNER = ["SUM(-i)", "MIN(-i)", "MAX(-(-(-i)))", "SUM(LEAST(-i, i))", "AVG(-i)", "MEDIAN(i * 1e300)", "SUM(x * 1e308)"]
ASKED = [f"SELECT COUNT(*) FROM p WHERE {condition}" for condition in HARD]
ASKED += [f"SELECT COUNT(s) FROM (SELECT id, {inner} AS s FROM p GROUP BY id)" for inner in INNER]


@pytest.mark.parametrize("sql", ASKED)
def test_one_person_makes_no_difference_to_whether_postgres_answers(large: Any, sql: str) -> None:
    place, here = large
    (plan,) = here.desk.plans(sql)
    for hard in ((), (3, 50.0, 50), (3, -1.7e308, 2**63 - 1), (3, 1e-320, -(2**63)), (3, 1e308, 1)):
        rows = [(1, 0.0, 0), *([hard] if hard else [])]
        place.con.execute("DELETE FROM p")
        for row in rows:
            place.con.execute("INSERT INTO p VALUES (%s, %s, %s)", row)
        (vector,) = place.engine.run(plan).vectors
        assert 0 <= vector[0] <= len(rows)


@pytest.fixture(scope="module")
def large(postgres_server: str) -> Iterator[tuple[Postgres, Embedded]]:
    frame = pa.table({"id": pa.array([], "int64"), "x": pa.array([], "double"), "i": pa.array([], "int64")})
    columns = {"x": hb.between(0, 100), "i": hb.between(0, 100)}
    tables = {"p": hb.table(frame, unit="id", max_groups=1, max_rows=1, columns=columns)}
    place, here = Postgres(postgres_server, tables, {"p": frame}), Embedded(tables, {"p": frame})
    yield place, here
    place.close()
    here.close()


def test_a_text_wider_than_a_row_of_postgres_is_refused_before_the_charge(
    large: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, here = large
    (plan,) = here.desk.plans("SELECT COUNT(*), SUM(x) FROM p")
    place.engine.prepare(plan)
    wide = f"WITH one AS (\n  SELECT 1 AS x\n)\nSELECT {', '.join(['x'] * 1665)} FROM one"
    for text, says in ((wide, "Ask for fewer aggregates"), ("WITH one AS (\n  SELECT x\n)\nSELECT 1", "another way")):
        monkeypatch.setattr(place.engine, "texts", lambda _, text=text: ([], [text]))
        with pytest.raises(hb.QueryError, match=says) as caught:
            place.engine.prepare(plan)
        assert "Nothing was charged" in str(caught.value)


@pytest.mark.parametrize("sums", [2, pytest.param(840, marks=pytest.mark.soak)])
@pytest.mark.filterwarnings("ignore:ledger=None")
def test_a_wide_question_is_answered_or_not_charged(large: Any, sums: int) -> None:
    """Of columns that are joined with a public table, too, whose rows are not there before the charge."""
    place, _ = large
    table = replace(place.tables["p"], source=remote(place.url))
    public = hb.public(pa.table({"k": [1, 2], "t": ["a", "b"]}))
    with hb.Session({"p": table, "w": public}, budget=hb.Budget(1), ledger=None) as session:
        sql = f"SELECT {', '.join(f'SUM(x + {k})' for k in range(sums))} FROM p JOIN w ON p.i = w.k WHERE t < 'b'"
        if sums < 800:
            assert session.sql(sql, epsilon=1).charged
        else:
            with pytest.raises(hb.QueryError, match="Ask for fewer aggregates"):
                session.sql(sql, epsilon=1)
        assert session.remaining == (sums > 800)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_raises_at_no_arithmetic(spark: Any, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        number = ", ".join(f"(CAST({v} AS DOUBLE))" for v in NUMBERS if "inf" not in v)
        number += ", (CAST('Infinity' AS DOUBLE)), (CAST('-Infinity' AS DOUBLE))"
        whole = ", ".join(f"(CAST({v} AS BIGINT))" for v in WHOLE)
        spark.sql(
            f"SELECT a.v AS x, b.v AS y, c.v AS i FROM (VALUES {number}) AS a(v) CROSS JOIN (VALUES {number}) AS b(v) "
            f"CROSS JOIN (VALUES {whole}) AS c(v)"
        ).createOrReplaceTempView("edges")
        x, i = Column("x", Kind.NUMBER), Column("i", Kind.INTEGER)
        tiny = Arithmetic("/", x, Literal(Fraction(1, 10**400)))  # 0 as a double
        whole_numbers = [Call("CAST_INTEGER", (Call("GREATEST", (i, Negate(i))),)), Call("CAST_INTEGER", (Negate(i),))]
        found = [expression_sql(node, SPARK) for node in (tiny, *whole_numbers)]
        found += [t for t in texts(SPARK, 40, 7) if len(t) < 1500]
        for at in range(0, len(found), 20):
            counts = ", ".join(f"count({t})" for t in found[at : at + 20])
            assert len(spark.sql(f"SELECT {counts} FROM edges").collect()) == 1
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
