"""No unit is too long for a server: what one person's row holds is hashed, or it is an error for everybody.

A value of Postgres has at most a gigabyte: the text of so many bytes has two, a text beside another one more, and a
pattern takes four bytes for each character. The soak has such values; the other tests look at where they go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from engines.places import Postgres
from engines.test_postgres_sources import Asked, make
from engines.test_spark_units import TABLE, integers, opened
from hubbub.engines.postgres.dialect import LONG, POSTGRES
from hubbub.engines.spark.dialect import SPARK

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {}, {})
    found.con.execute("GRANT USAGE ON SCHEMA public TO reader; CREATE EXTENSION IF NOT EXISTS citext")
    yield found
    found.close()


A = "a" * LONG
TEXTS = ["a", A, A + "b", A + "c", "\N{LATIN SMALL LETTER E WITH ACUTE}" * LONG, "b" + A]
TEXTS += [A + hashlib.sha256((A + "b").encode()).hexdigest(), A + b"\0".hex()]
"""Units at both sides of the limit, alike up to it; one is written as another one's name."""
PER_UNIT = "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM v GROUP BY id) AS p WHERE n = 2"


@pytest.mark.parametrize("kind", ["text", "character varying", "public.citext"])
def test_long_texts_are_as_many_units_as_there_are(place: Postgres, kind: str) -> None:
    make(place, f"DROP TABLE IF EXISTS long; CREATE TABLE long (id {kind}, g text)")
    for text in TEXTS:
        place.con.execute("INSERT INTO long VALUES (%s, 'x'), (%s, 'y')", [text, text])
    asked = Asked(place, "long")
    assert asked.answers("SELECT COUNT(DISTINCT id) FROM v") == [((len(TEXTS),),)]
    assert asked.answers(PER_UNIT) == [((len(TEXTS),),)]
    ((groups, _),) = asked.answers("SELECT g, COUNT(*) FROM v GROUP BY g")
    assert sum(groups.values()) == len(TEXTS)
    assert _longest(place, asked) < 5 * LONG


def test_long_bytes_are_as_many_units_as_there_are(place: Postgres) -> None:
    make(place, "DROP TABLE IF EXISTS long; CREATE TABLE long (id bytea, g text)")
    values = [text.encode() for text in TEXTS] + [b"", b"\0" * LONG, b"\0" * (LONG + 1), b"\0" * (LONG + 2)]
    values.append(b"x" + hashlib.sha256(values[-1]).hexdigest().encode())
    for value in values:
        place.con.execute("INSERT INTO long VALUES (%s, 'x'), (%s, 'y')", [value, value])
    asked = Asked(place, "long")
    assert asked.answers("SELECT COUNT(DISTINCT id) FROM v") == [((len(values),),)]
    assert _longest(place, asked) < 5 * LONG


def _longest(place: Postgres, asked: Asked) -> int:
    unit = asked.engine._known["v"].unit
    ((longest,),) = place.con.execute(f"SELECT max(length(CAST({unit} AS text))) FROM long".encode()).fetchall()
    return int(longest)


def test_long_units_of_spark_are_as_many_as_there_are(spark: Any) -> None:
    for kind, values in (("STRING", TEXTS), ("BINARY", [bytearray(text.encode()) for text in TEXTS])):
        rows = [(value, group) for value in values for group in "xy"]
        engine = opened(spark.createDataFrame(rows, f"id {kind}, g STRING").localCheckpoint(), {**TABLE, "columns": {}})
        assert integers(engine, {**TABLE, "columns": {}}, "SELECT COUNT(DISTINCT id) FROM v") == ((len(TEXTS),),)
        unit = engine._known["v"].unit
        found = engine._session.sql(f"SELECT max(length({unit})) FROM {engine._known['v'].view}").collect()
        assert found[0][0] < 5 * LONG
        engine.close()


def test_a_long_text_is_no_whole_number(place: Postgres) -> None:
    make(place, "DROP TABLE IF EXISTS long; CREATE TABLE long (id text, g text)")
    for text in ("1", "1 " + " " * 100, "2", "1" + " " * LONG, "1" * (LONG + 1)):
        place.con.execute("INSERT INTO long VALUES (%s, 'x')", [text])
    asked = Asked(place, "long", types={"id": "integer"})
    assert asked.answers("SELECT COUNT(DISTINCT id) FROM v") == [((2,),)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "value", "types"),
    [
        ("bytea", "decode(repeat('00', 300000000), 'hex') || decode(repeat('00', 240000000), 'hex')", {}),
        ("text", "repeat('a', 1073741700)", {}),
        ("text", "repeat('1', 300000000)", {"id": "integer"}),
    ],
    ids=["half a gigabyte of bytes", "a gigabyte of text", "digits"],
)
def test_no_unit_is_an_error(place: Postgres, kind: str, value: str, types: dict[str, Any]) -> None:
    make(place, f"DROP TABLE IF EXISTS long; CREATE TABLE long (id {kind}, g text)")
    place.con.execute(f"INSERT INTO long SELECT {value}, 'x'".encode())
    asked = Asked(place, "long", types=types)
    long = "'" + "k" * 200 + "'"
    ((groups, _),) = asked.answers(f"SELECT g || {long} AS k, COUNT(*) FROM v GROUP BY 1")
    assert sum(groups.values()) == (0 if types else 1)


def test_the_text_of_a_unit_asks_for_its_length_first() -> None:
    """What is not looked at here is what the soak takes minutes for."""
    for dialect in (POSTGRES, SPARK):
        for sql in (dialect.unit_text("x"), dialect.unit("x", "BLOB")):
            assert f"CASE WHEN octet_length(x) > {LONG} THEN" in sql
    assert f"CASE WHEN octet_length(x) <= {LONG} THEN" in POSTGRES.whole_text("x")


def test_a_number_of_many_digits_is_repeated_as_a_hash(place: Postgres) -> None:
    """Where public rows repeat rows: a numeric has up to 131,072 digits, and each is a unit of its own."""
    name = POSTGRES.unit_name(POSTGRES.unit("x", "DECIMAL"), "decimal")
    numbers = ["1", "1.00", "-0", "0", "NaN", "1e70000", "1e70000 + 1", "1e63", "1e64", "1e-70"]
    listed = ", ".join(f"(CAST({n} AS numeric))" if n != "NaN" else "(CAST('NaN' AS numeric))" for n in numbers)
    found = [row[0] for row in place.con.execute(f"SELECT {name} FROM (VALUES {listed}) AS t(x)".encode()).fetchall()]
    assert found[:5] == ["1", "1", "0", "0", None]
    assert len(set(found)) == len(numbers) - 2
    assert max(len(n) for n in found if n is not None) == 65
