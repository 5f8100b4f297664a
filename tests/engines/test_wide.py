"""Quotients of whole numbers of up to 126 bits: exact on every engine, in every setting of Spark's."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

from hubbub.engines.duckdb.dialect import DuckDB
from hubbub.engines.postgres.dialect import Postgres
from hubbub.engines.spark.dialect import SPARK
from hubbub.sql.emit.dialect import Dialect

MOST = 2**126
_RANDOM = random.Random(9)


def _whole() -> int:
    """A whole number of up to 126 bits, small ones as often as large ones."""
    return _RANDOM.getrandbits(_RANDOM.randint(1, 126))


PAIRS = [
    *((sign * a, b) for a in (MOST, MOST - 1, 10**37, 7, 0) for b in (1, 3, 2**16, 10**19, MOST) for sign in (1, -1)),
    (MOST, 2**63 - 1),
    (MOST - 1, 10**19 - 1),
    (9 * 10**24, 10**6),
    (2**63 * 2**16, 2**16),
    *(
        (_RANDOM.getrandbits(_RANDOM.randint(1, 126)), _RANDOM.getrandbits(_RANDOM.randint(1, 126)) + 1)
        for _ in [0] * 60
    ),
]
TRUTH = [str(abs(a) // b * (1 if a > 0 else -1)) for a, b in PAIRS]


def _text(dialect: Dialect, as_text: str) -> str:
    rows = ", ".join(f"({i}, '{a}', '{b}')" for i, (a, b) in enumerate(PAIRS))
    quotient = dialect.divided(dialect.wide("r.a"), dialect.wide("r.b"))
    return f"SELECT CAST({quotient} AS {as_text}) FROM (VALUES {rows}) AS r(i, a, b) ORDER BY i"


def test_duckdb_divides_exactly() -> None:
    assert [row[0] for row in duckdb.sql(_text(DuckDB(), "VARCHAR")).fetchall()] == TRUTH


def test_postgres_divides_exactly(postgres_server: str) -> None:
    import psycopg

    with psycopg.connect(f"postgresql://hubbub@/postgres?host={postgres_server}") as con:
        assert [row[0] for row in con.execute(_text(Postgres(), "text").encode())] == TRUTH


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("loss", ["true", "false"])
def test_spark_divides_exactly(spark: Any, ansi: str, loss: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.decimalOperations.allowPrecisionLoss", loss)
    try:
        assert [row[0] for row in spark.sql(_text(SPARK, "STRING")).collect()] == TRUTH
    finally:
        spark.conf.unset("spark.sql.decimalOperations.allowPrecisionLoss")
