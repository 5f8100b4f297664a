"""Postgres: one person's value, of any of its types, changes no answer by more than one person can."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import product

import psycopg
import pytest

import counts
from engines.one_value import ODD
from engines.test_one_value import OF_EACH, QUESTIONS, Answers, answers_of, moved

pytestmark = pytest.mark.filterwarnings("ignore")

MADE = """CREATE EXTENSION IF NOT EXISTS citext
CREATE TYPE mood AS ENUM ('c', 'b', 'a', 'zzz')
CREATE DOMAIN whole AS int CHECK (VALUE >= 0)
CREATE TYPE pair AS (a int, b text)
CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)""".split("\n")
NUMBERS, TEXTS = "i % 3", "'v' || (i % 3)"
TYPES: dict[str, tuple[str, list[str]]] = {
    "numeric": (NUMBERS, ["'NaN'", "'Infinity'", "'-Infinity'", "'1' || repeat('0', 131000)", "'1e-16000'", "'-0'"]),
    "numeric(38,2)": (NUMBERS, ["'NaN'", "999999999999999999999999999999999999.99"]),
    "real": (NUMBERS, ["'NaN'", "'Infinity'", "3.4028235e38", "1e-45", "'-0'"]),
    "double precision": (NUMBERS, ["'NaN'", "'Infinity'", "1.7976931348623157e308", "5e-324", "'-0'"]),
    "bigint": (NUMBERS, ["9223372036854775807", "-9223372036854775808"]),
    "smallint": (NUMBERS, ["-32768"]),
    "text": (
        TEXTS,
        [
            "repeat('a', 3000000)",
            "''",
            "repeat('9', 5000)",
            "'1e99999999999'",
            "'%_\\'",
            "'infinity'",
            "'0001-01-01 BC'",
        ],
    ),
    "varchar(10)": (TEXTS, ["'1e9'", "'a         '"]),
    "char(10)": (TEXTS, ["'a'", "''"]),
    "name": (TEXTS, ["repeat('x', 63)", "''"]),
    "citext": (TEXTS, ["'V1'", "''"]),
    "text COLLATE folded": (TEXTS, ["'V1'", "''"]),
    "mood": ("(ARRAY['a', 'b', 'c'])[1 + i % 3]", ["'zzz'"]),
    "whole": (NUMBERS, ["2147483647"]),
    "bytea": (f"({TEXTS})::bytea", ["''", "decode(repeat('ff', 100000), 'hex')"]),
    "varbit": ("(i % 3)::bit(4)", ["B''", "repeat('1', 10000)"]),
    "uuid": ("md5((i % 3)::text)", ["'ffffffff-ffff-ffff-ffff-ffffffffffff'"]),
    "inet": ("'10.0.0.' || (i % 3)", ["'::ffff:1.2.3.4/0'"]),
    "money": (NUMBERS, ["'92233720368547758.07'"]),
    "interval": ("make_interval(days => i % 3)", ["'178000000 years'", "make_interval(months => 2147483647)"]),
    "date": ("DATE '2024-01-01' + i % 3", ["'infinity'", "'5874897-12-31'", "'4713-01-01 BC'", "'10000-01-01'"]),
    "timestamp": ("DATE '2024-01-01' + i % 3", ["'infinity'", "'294276-12-31 23:59:59.999999'", "'4713-01-01 BC'"]),
    "timestamptz": ("DATE '2024-01-01' + i % 3", ["'-infinity'", "'294276-12-31 23:59:59+00'", "'4713-01-01 BC'"]),
    "time": ("TIME '10:00' + make_interval(mins => i % 3)", ["'24:00:00'"]),
    "timetz": ("TIME '10:00'", ["'24:00:00+15:59'"]),
    "jsonb": ("'{}'", ["'[1e999]'"]),
    "integer[]": ("ARRAY[i % 3]", ["'{}'", "array_fill(1, ARRAY[100000])"]),
    "int4range": ("int4range(i % 3, 9)", ["'empty'"]),
    "pair": ("row(i % 3, 'x')", ["row(NULL, repeat('z', 100000))"]),
    "oid": (NUMBERS, ["4294967295"]),
    "boolean": ("i % 2 = 0", ["NULL"]),
}
"""How the values of others are made, and one person's."""
LINES = 1400


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[tuple[psycopg.Connection, str]]:
    address = f"postgresql://hubbub@/{{}}?host={postgres_server}"
    with psycopg.connect(address.format("postgres"), autocommit=True) as con:
        con.execute("DROP DATABASE IF EXISTS one_value")
        con.execute("CREATE DATABASE one_value")
    with psycopg.connect(address.format("one_value"), autocommit=True) as con:
        for text in MADE:
            with contextlib.suppress(psycopg.Error):  # an extension that this server does not have
                con.execute(text)
        yield con, address.format("one_value")


def answers(place: tuple[psycopg.Connection, str], kind: str, odd: str | None, questions: list[str]) -> Answers | None:
    con, address = place
    usual, cast = TYPES[kind][0], kind.split(" COLLATE")[0]
    value = (
        f"({usual})::{cast}" if odd is None else f"CASE WHEN i = {ODD} THEN ({odd})::{cast} ELSE ({usual})::{cast} END"
    )
    con.execute("DROP TABLE IF EXISTS t")
    try:
        con.execute(f"CREATE TABLE t (id bigint, g text, n bigint, c {kind})")
    except psycopg.errors.UndefinedObject:
        return None
    rows = f"SELECT i / 2, CASE i % 2 WHEN 0 THEN 'x' ELSE 'y' END, 1 + i % 4, {value}"
    con.execute(f"INSERT INTO t {rows} FROM generate_series(0, {LINES - 1}) AS i")  # type: ignore[arg-type]
    return answers_of(address, questions, table="t")


@pytest.mark.parametrize("kind", TYPES)
def test_one_value_changes_no_answer_by_more_than_one_person_can(
    place: tuple[psycopg.Connection, str], kind: str
) -> None:
    at, odds = list(TYPES).index(kind), TYPES[kind][1]
    cases = product(odds, [QUESTIONS]) if counts.SOAK else [(odds[at % len(odds)], [*QUESTIONS[at % 6 :: 6], *OF_EACH])]
    before = None
    for odd, questions in cases:
        before = before or answers(place, kind, None, questions)
        after = answers(place, kind, odd, questions)
        if before is None or after is None:
            pytest.skip(f"this server has no {kind}")
        assert before.keys() == after.keys(), odd
        assert {q: (rows, after[q]) for q, rows in before.items() if moved(q, rows, after[q])} == {}, odd


FAR = [
    "SELECT COUNT(*) FROM (SELECT id, {f}(LEAST(GREATEST(c, -{top}), {top})) AS s, COUNT(*) AS n FROM t GROUP BY id) "
    "WHERE s > 0 OR n > 0",
    "SELECT COUNT(*) FROM (SELECT n, {f}(CASE WHEN c > 9 THEN {top} ELSE 1 END) OVER (PARTITION BY id) AS s FROM t) "
    "WHERE s > 0 OR n > 0",
    "SELECT COUNT(*) FROM (SELECT id, {f}(c * c) AS s, COUNT(*) AS n FROM t WHERE c BETWEEN 0 AND {top} GROUP BY id) "
    "WHERE s > 0 OR n > 0",
]
"""A person's total of numbers within a range that doubles just hold."""


@pytest.mark.parametrize("top", ["1e150", "1e290", "8e307", "1.7e308"])
@pytest.mark.parametrize("function", ["SUM", "AVG"])
def test_a_far_total_of_one_person_ends_no_question(
    place: tuple[psycopg.Connection, str], function: str, top: str
) -> None:
    con, address = place
    questions = [text.format(f=function, top=top) for text in FAR]
    answers = []
    for c in (1.0, float(top)):
        con.execute("DROP TABLE IF EXISTS t")
        con.execute(
            "CREATE TABLE t AS SELECT (i % 40)::bigint AS id, 1::bigint AS n, 1::float8 AS c, 'x' AS g "
            "FROM generate_series(0, 399) AS i"
        )
        con.execute("UPDATE t SET c = %s WHERE id = 7", (c,))
        answers.append(answers_of(address, questions, table="t"))
    assert not {q: rows for q, rows in answers[0].items() if moved(q, rows, answers[1][q])}
