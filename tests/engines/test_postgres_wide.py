"""Postgres: no row has more columns on its way than one can have, whoever is there.

The server refuses more than 1,664 columns of a SELECT before it runs it. The keys of joins and windows, by which it
sorts rows itself, failed when the first row was sorted: an error that told whether one person is there.
"""

from __future__ import annotations

import psycopg
import pytest

import hubbub as hb

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")
SEVEN = "CREATE TABLE wide AS SELECT i AS id, (i % 3)::float8 AS x, (ARRAY[NULL, 'a', 'b'])[1 + i % 3] AS s FROM "


def counts(number: int) -> str:
    """Two keys for one column of declared values, NULL among them."""
    each = ", ".join(f"COUNT(CASE WHEN x > {i} THEN 1 END) AS c{i}" for i in range(number))
    return f"SELECT s, {each} FROM v WHERE {{who}} GROUP BY s"


def terms(number: int, keys: int) -> str:
    """A join of two relations by many expressions."""
    inner = "SELECT id, " + ", ".join(f"x AS a{i}" for i in range(number)) + " FROM v WHERE {who} UNION ALL "
    inner += "SELECT id, " + ", ".join("x" for _ in range(number)) + " FROM v WHERE {who}"
    on = " AND ".join(["a.id = b.id"] + [f"ABS(a.a{i}) = b.x + {i}" for i in range(keys)])
    columns, use = ", ".join(f"a.a{i}" for i in range(number)), " OR ".join(f"a{i} IS NULL" for i in range(number))
    joined = f"SELECT a.id AS id, {columns} FROM ({inner}) AS a JOIN v AS b ON {on}"
    return f"SELECT COUNT(*) AS c FROM ({joined}) AS z WHERE {use}"


def windows(number: int) -> str:
    """Means over windows, of two functions each, beside another window."""
    means = ", ".join(f"AVG(x + {i}) OVER (PARTITION BY id ORDER BY s, x) AS a{i}" for i in range(number))
    inner = f"SELECT id, {means}, COUNT(*) OVER (PARTITION BY id ORDER BY s) AS k FROM v WHERE {{who}}"
    use = " OR ".join(f"a{i} IS NULL" for i in range(number))
    return f"SELECT COUNT(*) AS c FROM ({inner}) AS z WHERE k > 0 AND ({use})"


@pytest.mark.parametrize(
    ("text", "fits"),
    [(counts(1661), False), (terms(1500, 200), False), (windows(870), False), (counts(300), True), (windows(40), True)],
    ids=["counts", "terms", "windows", "fewer counts", "fewer windows"],
)
def test_one_person_s_row_is_not_the_first_that_has_too_many_columns(
    postgres_server: str, text: str, fits: bool
) -> None:
    address = f"postgresql://hubbub@/postgres?host={postgres_server}"
    with psycopg.connect(address, autocommit=True) as con:
        con.execute("DROP TABLE IF EXISTS wide")
        con.execute(f"{SEVEN} generate_series(1, 50) AS i")
        declared = hb.table(address, table="wide", unit="id", max_rows=20, max_groups=3, max_total=60,
                            columns={"x": hb.between(0, 5), "s": hb.one_of("a", "b", None)})  # fmt: skip
        with hb.Session({"v": declared}, budget=hb.Budget(10**9), ledger=None) as session:
            for who in ("id = 7", "id = 777"):
                asked = text.replace("{who}", who)
                if fits:
                    assert len(session.sql(asked, epsilon=1).rows()) > 0
                else:
                    with pytest.raises(hb.QueryError, match=r"larger than the server takes.*Nothing was charged"):
                        session.sql(asked, epsilon=1)
            spent = session.ledger.balance.total("id", "everyone").epsilon
            assert spent == (2 if fits else 0)
        con.execute("DROP TABLE wide")
