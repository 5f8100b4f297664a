"""HAVING, ORDER BY and LIMIT as text: read, put in place of others, and nothing else let in with them."""

from __future__ import annotations

import pytest

from hubbub.errors import QueryError
from hubbub.sql.text.clauses import Clauses, clauses_of, with_clauses

GROUPS = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


def one_line(sql: str) -> str:
    return " ".join(sql.split())


@pytest.mark.parametrize(
    "given",
    [
        Clauses(),
        Clauses(having="n > 5"),
        Clauses(order="n DESC, g", limit="3"),
        Clauses(having="COUNT(*) > 5 AND g <> 'a'", order="2", limit="10"),
    ],
)
def test_what_is_put_in_is_what_is_read(given: Clauses) -> None:
    for own in (GROUPS, f"{GROUPS} HAVING COUNT(*) > 1 ORDER BY g LIMIT 7", f"WITH x AS (SELECT * FROM t) {GROUPS}"):
        made = with_clauses(own, given)
        assert clauses_of(made) == given
        assert with_clauses(made, given) == made
        assert one_line(made).startswith(("SELECT g,", "WITH x AS"))


@pytest.mark.parametrize(
    "given",
    [
        Clauses(having="n > 5; DROP TABLE t"),
        Clauses(having="1 UNION SELECT 2"),
        Clauses(having="n > 1 ORDER BY 1"),
        Clauses(having="n >"),
        Clauses(order="n LIMIT 3"),
        Clauses(order="n; SELECT 1"),
        Clauses(limit="5 OFFSET 3"),
        Clauses(limit="5) x"),
        Clauses(having="(" * 5000),
        Clauses(having="n" * 20_000),
    ],
)
def test_a_clause_is_one_clause(given: Clauses) -> None:
    with pytest.raises(QueryError):
        with_clauses(GROUPS, given)


@pytest.mark.parametrize("sql", [f"{GROUPS} UNION ALL {GROUPS}", "DESCRIBE t", "SELECT FROM FROM", ""])
def test_what_is_not_one_select_has_no_clauses(sql: str) -> None:
    assert clauses_of(sql) is None
    with pytest.raises(QueryError, match="one SELECT"):
        with_clauses(sql, Clauses(limit="3"))
