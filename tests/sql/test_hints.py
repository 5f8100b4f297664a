"""A refusal names the operand at fault and what to write for it."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import hubbub as hb

ROWS = pa.table(
    {"id": [1], "cost": [3.0], "km": [1.0], "a": [dt.datetime(2022, 1, 1)], "b": [dt.datetime(2022, 1, 2)], "s": ["x"]}
)


@pytest.fixture(scope="module")
def session() -> hb.Session:
    columns = {"cost": hb.between(0, 100), "km": hb.between(0, 30)}
    with pytest.warns(UserWarning, match="ledger=None"):
        return hb.Session(
            {"v": hb.table(ROWS, unit="id", max_groups=1, max_rows=1, columns=columns)},
            budget=hb.Budget(1),
            ledger=None,
        )


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT AVG(LN(cost)) FROM v", "Write LN(GREATEST(cost, 1))"),
        ("SELECT AVG(cost / km) FROM v", "it divides by km, which may be 0. Write GREATEST(km, 1)"),
        ("SELECT AVG(cost / (km - 5)) FROM v", "it divides by the expression of km, which may be 0."),
        ("SELECT AVG(b - a) FROM v", "DATE_DIFF('hour', start, end)"),
        ("SELECT AVG(AGE(a, b)) FROM v", "Write DATE_DIFF('day', a, b)"),
        ("SELECT SUM(POWR(cost, 2)) FROM v", "Did you mean POWER?"),
        ("SELECT COUNT(*) FROM v WHERE REGEXP_MATCHES(s, '(a)*')", "a group is not repeated"),
        ("SELECT COUNT(*) FROM v WHERE s || cost = 'x'", "CONCAT takes text here"),
    ],
)
def test_a_refusal_says_what_to_write(session: hb.Session, sql: str, words: str) -> None:
    with pytest.raises((hb.QueryError, hb.PolicyError)) as error:
        session.check(sql, epsilon=1)
    assert words in str(error.value)


def test_a_count_of_each_unit_needs_an_end_where_no_limit_is_declared() -> None:
    table = hb.table(ROWS, unit="id")
    with (
        pytest.warns(UserWarning, match="ledger=None"),
        hb.Session({"v": table}, budget=hb.Budget(1), ledger=None) as s,
    ):
        with pytest.raises(hb.QueryError, match=r"LEAST\(n, 20\)"):
            s.check("SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM v GROUP BY id)", epsilon=1)
