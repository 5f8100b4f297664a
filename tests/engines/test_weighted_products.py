"""Products of values and weights that lie far from 0, on Postgres: no row makes one that 64 bits do not hold."""

from __future__ import annotations

from typing import Any

import pytest

import hubbub as hb
from people import HUGE, session

pytest.importorskip("psycopg")


@pytest.mark.parametrize("ill", ["no", "yes"])
def test_no_row_makes_a_product_an_error(postgres_server: str, ill: str) -> None:
    import psycopg

    server: Any = f"?host={postgres_server}"
    with psycopg.connect(f"postgresql://hubbub@/postgres{server}", autocommit=True) as con:
        con.execute(f"DROP DATABASE IF EXISTS products_{ill}")
        con.execute(f"CREATE DATABASE products_{ill}")
    address = f"postgresql://hubbub@/products_{ill}{server}"
    with psycopg.connect(address, autocommit=True) as con:
        con.execute("CREATE TABLE v (id text, ill text)")
        con.execute("INSERT INTO v VALUES ('ann', 'no'), ('bob', %s)", [ill])
    table = hb.table(address, table="v", unit="id", max_total=1, columns={"ill": hb.one_of("no", "yes")})
    bob = "CASE WHEN id = 'bob' AND ill = 'yes' THEN 900.5 WHEN id = '' THEN 900.0 END"
    question = f"SELECT WEIGHTED_SUM({bob}, {bob}) AS s FROM v"
    with session(epsilon=10**7 * HUGE, v=table) as s:
        assert s.sql(question, epsilon=HUGE).rows()[0][0] == pytest.approx(900.5**2 * (ill == "yes"), rel=1e-5, abs=1)
