"""SELECT TOP n, as T-SQL writes it, is LIMIT n at the end."""

from __future__ import annotations

import pytest

from hubbub.errors import QueryError
from people import session

LIMITED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward LIMIT 2"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT TOP 2 ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward",
        "SELECT TOP (2) ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward",
        "select top 2 ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward; -- the end",
        "/* best */ SELECT TOP 2 ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward -- two",
    ],
)
def test_top_is_limit_at_the_end(sql: str) -> None:
    with session() as s:
        assert s.sql(sql, epsilon=10**9).rows() == s.sql(LIMITED, epsilon=10**9).rows()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT TOP 50 PERCENT ward, COUNT(*) FROM visits GROUP BY ward",
        "SELECT TOP 2 WITH TIES ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 2",
        "SELECT TOP 2 ward, COUNT(*) FROM visits GROUP BY ward LIMIT 1",
        "SELECT TOP 1 COUNT(*) AS n FROM visits UNION ALL SELECT 3 AS n",
    ],
)
def test_what_is_not_a_limit_at_the_end_is_refused_with_the_way_out(sql: str) -> None:
    with session() as s, pytest.raises(QueryError, match="write LIMIT 3 at the end"):
        s.check(sql, epsilon=1)


def test_carets_stand_where_the_fault_is() -> None:
    with session() as s, pytest.raises(QueryError) as told:
        s.check("SELECT TOP 2 wrad, COUNT(*) AS n FROM visits GROUP BY wrad", epsilon=1)
    first, under = str(told.value).splitlines()[-2:]
    assert first[under.index("^") :].startswith("wrad")
