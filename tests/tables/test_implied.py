"""What conditions imply: the range of every row that passes, on the engine's own text, and never a wider one."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from engines.corpus import bound
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.errors import QueryError
from hubbub.sql.emit.expression import expression_sql
from hubbub.tables.columns import Between, between
from hubbub.tables.expressions import Expression
from hubbub.tables.functions import EPOCH, Range
from hubbub.tables.spans import Known, implied, span
from people import HUGE, session

DECLARED = {"x": between(-10, 50), "t": between("2022-01-01", "2024-12-31"), "d": between("2022-01-01", "2024-12-31")}

ATOMS = [
    *(f"x {op} {c}" for op in ("<", "<=", ">", ">=", "=", "<>") for c in ("7", "0.3", "-2")),
    *(f"i {op} {c}" for op in ("<", "<=", ">", ">=", "=") for c in ("3", "2.5", "x")),
    *("x BETWEEN 1 AND 20", "i IN (1, 4, 9)", "x NOT BETWEEN 0 AND 5", "ABS(x) < 4", "-x > 3", "i + 2 <= 5"),
    *("t >= '2023-05-01'", "t < '2023-05-08'", "d > '2023-02-28'", "YEAR(t) = 2023", "YEAR(d) <= 2022", "t > d"),
    *(
        "CAST(t AS DATE) = '2023-05-03'",
        "DATE_TRUNC('month', t) = '2023-02-01'",
        "DATE_TRUNC('week', d) < '2023-05-03'",
    ),
    *(
        "DATE_TRUNC('quarter', t) >= '2023-04-01'",
        "DATE_DIFF('day', d, t) BETWEEN 3 AND 90",
        "x / 3 < i",
        "b",
        "s = 'a'",
    ),
    *("COALESCE(x, 0) > 4", "x IS NOT NULL", "CASE WHEN b THEN x ELSE 3 END > 5", "CAST(t AS DATE) > '2023-05-03'"),
]
VALUES = [
    *("x", "i", "t", "d", "ABS(x)", "x * 2 - i", "COALESCE(x, 0)", "LEAST(x, i)", "DATE_DIFF('day', d, t)", "x / 3"),
    *("CASE WHEN x > 4 THEN 100 / x ELSE x END", "CASE WHEN i < 1 THEN NULL ELSE x / i END", "DATE_TRUNC('month', t)"),
    *("NULLIF(i, 0)", "CASE WHEN i > 90 THEN 90 ELSE i END", "CASE WHEN b OR x < 0 THEN 0 ELSE SQRT(x) END"),
]


def _bound(text: str) -> Expression:
    found = bound(text)
    assert found is not None, text
    return found


def _rows(count: int = 3000) -> pa.Table:
    chance, since = Random("rows"), dt.datetime(2022, 1, 1)
    whole = [-1, 0, 1, 2, 3, 4, 5, 9, 91, None]
    real = [-10.0, -2.0, 0.0, -0.0, 0.3, 0.30000000000000004, 0.5, 1.0, 4.0, 5.0, 6.999999, 7.0, 20.0, 50.0, None]
    return pa.table(
        {
            "i": [chance.choice(whole) for _ in range(count)],
            "x": [chance.choice([*real, chance.uniform(-10, 50)]) for _ in range(count)],
            "t": [
                None if n % 11 == 0 else since + dt.timedelta(minutes=chance.randrange(1096 * 1440))
                for n in range(count)
            ],
            "d": [
                None if n % 13 == 0 else (since + dt.timedelta(days=chance.randrange(1096))).date()
                for n in range(count)
            ],
            "b": [chance.choice([True, False, None]) for _ in range(count)],
            "s": [chance.choice(["a", "b", None]) for _ in range(count)],
        }
    )


@pytest.fixture(scope="module")
def con() -> Any:
    with duckdb.connect() as found:
        found.register("rows", _rows())
        found.execute("CREATE TABLE t0 AS SELECT * FROM rows")
        yield found


def _text(node: Expression) -> str:
    return expression_sql(node, DUCKDB)


def _number(value: Any) -> Fraction:
    if isinstance(value, dt.date):
        moment = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
        return Fraction((moment - EPOCH) // dt.timedelta(microseconds=1))
    return Fraction(value)


def _ends(con: duckdb.DuckDBPyConnection, value: Expression, condition: Expression) -> tuple[Any, Any]:
    x = _text(value)
    found = con.execute(f"SELECT min({x}), max({x}) FROM t0 WHERE {_text(condition)}").fetchone()
    assert found is not None
    return found


def _holds(ends: Range | None, low: Any, high: Any) -> bool:
    """Whether values lie in a range, but for a double's last digits."""
    if low is None:
        return True
    if ends is None:
        return False
    off = Fraction(1, 10**12)
    a, b = _number(low), _number(high)
    return (ends[0] is None or a >= ends[0] - off * abs(ends[0])) and (
        ends[1] is None or b <= ends[1] + off * abs(ends[1])
    )


def _conditions(count: int) -> list[str]:
    chance, found = Random("conditions"), list(ATOMS)
    while len(found) < count:
        a, b = chance.choice(found), chance.choice(ATOMS)
        found.append(chance.choice([f"({a}) AND ({b})", f"({a}) OR ({b})", f"NOT ({a})", f"NOT (({a}) OR ({b}))"]))
    return found


@pytest.mark.parametrize("declared", [DECLARED, {}], ids=["declared", "undeclared"])
def test_every_row_that_passes_lies_in_the_implied_range(
    con: duckdb.DuckDBPyConnection, declared: dict[str, Any]
) -> None:
    chance, narrowed = Random("values"), 0
    for text in _conditions(90):
        condition = _bound(text)
        here = Known(declared).also(implied(condition, declared))
        for value in map(_bound, chance.sample(VALUES, 3)):
            found = span(value, here)
            assert _holds(found, *_ends(con, value, condition)), f"{value} where {text}: {found}"
            narrowed += found != span(value, declared)
    assert narrowed > 25  # or the test tests nothing


@pytest.mark.parametrize(
    ("condition", "value", "ends"),
    [
        ("x >= 1", "x", (1, 50)),
        ("x > 100", "x", (-10, 50)),  # nothing that is declared passes: the declaration stands
        ("x > -100 AND x < 500", "x", (-10, 50)),
        ("i > -100 AND i < 50", "i", (-99, 49)),
        ("i > 3", "i", (4, None)),
        ("i <= 3 OR i = 9", "i", (None, 9)),
        ("NOT (i < 3 OR i > 8)", "i", (3, 8)),
        ("NOT (i < 3 AND x > 8)", "i", (None, None)),
        ("i > 7 AND t > d AND b", "i", (8, None)),
        ("i IN (2, 7)", "i", (2, 7)),
        ("x + i >= 1 AND x + i <= 5", "x + i", (1, 5)),
        ("x IS NULL", "x", (-10, 50)),
    ],
)
def test_what_a_condition_implies(condition: str, value: str, ends: tuple[int | None, int | None]) -> None:
    found = span(_bound(value), Known(DECLARED).also(implied(_bound(condition), DECLARED)))
    assert found == tuple(None if e is None else Fraction(e) for e in ends)


# -- in questions -----------------------------------------------------------------------------------------------------


def _asked(columns: dict[str, Any], text: str, epsilon: Any = HUGE, **more: Any) -> list[tuple[Any, ...]]:
    people = pa.table(
        {"id": list(range(60)), "x": [float(i % 12) - 1 for i in range(59)] + [None], "n": [i % 7 for i in range(60)]}
    )
    visits = hb.table(people, unit="id", columns=columns, max_groups=1, max_rows=1)
    with session(epsilon=10**7 * HUGE, visits=visits, **more) as s:
        return list(s.sql(text, epsilon=epsilon).rows())


def test_where_gives_a_range_to_a_column_without_one() -> None:
    assert _asked({}, "SELECT SUM(x) FROM visits WHERE x > 0 AND x <= 5") == [(75.0,)]
    with pytest.raises(hb.PolicyError, match="has no declared bounds") as refused:
        _asked({}, "SELECT SUM(x) FROM visits WHERE x > 0")
    assert [remedy.kind for remedy in refused.value.remedies] == ["declare a range", "rewrite"]
    assert _asked({}, "WITH v AS (SELECT id, x AS y FROM visits WHERE x BETWEEN 1 AND 5) SELECT SUM(y) FROM v") == [
        (75.0,)
    ]
    assert _asked({}, "SELECT SUM(x) FILTER (WHERE x BETWEEN 1 AND 5) AS s FROM visits") == [(75.0,)]


@pytest.mark.parametrize(
    "below",
    [
        "SELECT id, x AS k, COUNT(*) AS c FROM visits WHERE x BETWEEN 1 AND 5 GROUP BY id, x",
        "SELECT id, x + 1 AS k, COUNT(*) AS c FROM visits WHERE x + 1 BETWEEN 1 AND 5 GROUP BY id, x + 1",
        "SELECT id, MAX(x) AS k FROM visits WHERE x BETWEEN 1 AND 5 GROUP BY id",
        "SELECT DISTINCT id, x AS k FROM visits WHERE x BETWEEN 1 AND 5",
        "SELECT id, FIRST_VALUE(x) OVER (PARTITION BY id ORDER BY n) AS k FROM visits WHERE x BETWEEN 1 AND 5",
    ],
)
def test_where_gives_a_range_to_what_a_sub_query_makes_of_the_column(below: str) -> None:
    assert _asked({}, f"SELECT SUM(k) FROM ({below}) AS s") == [(75.0,)]


def test_a_declared_range_is_never_replaced() -> None:
    text = "SELECT SUM(x) FROM visits WHERE x > -100 AND x < 100"
    assert _asked({"x": hb.between(0, 3)}, text) == _asked({"x": hb.between(0, 3)}, "SELECT SUM(x) FROM visits")
    declared, asked = {"x": Between(Fraction(0), Fraction(3))}, _bound("x > -100 AND x < 100")
    assert span(_bound("x"), Known(declared).also(implied(asked, declared))) == (0, 3)


def test_rows_at_the_end_of_a_step_are_in_its_group() -> None:
    people = pa.table({"id": list(range(40)), "x": [i / 10 for i in range(40)]})
    for columns in ({}, {"x": hb.between(0, 10)}):
        visits = hb.table(people, unit="id", columns=columns, max_groups=1, max_rows=1)
        with session(epsilon=10**7 * HUGE, visits=visits) as s:
            text = "SELECT FLOOR(x / 0.1) AS k, COUNT(*) AS n FROM visits WHERE x >= 0.3 AND x < 0.9 GROUP BY 1"
            mine = {k: n for k, n in s.sql(text, epsilon=HUGE).rows() if n}
        theirs = duckdb.sql(
            "SELECT floor(x / 0.1::DOUBLE), count(*) FROM people WHERE x >= 0.3::DOUBLE AND x < 0.9::DOUBLE GROUP BY 1"
        ).fetchall()
        assert mine == dict(theirs)


def test_a_range_of_one_side_of_a_left_join_says_nothing_of_what_is_missing() -> None:
    people = pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 300.0]})
    visits = hb.table(people, unit="id", columns={}, max_groups=1, max_rows=1)
    with session(epsilon=10**7 * HUGE, visits=visits) as s:
        text = (
            "SELECT SUM(COALESCE(b.x, 300)) FROM visits a LEFT JOIN "
            "(SELECT id, x FROM visits WHERE COALESCE(x, 300) > 0 AND COALESCE(x, 300) < 5) b ON a.id = b.id"
        )
        with pytest.raises((hb.PolicyError, QueryError)):
            s.sql(text, epsilon=HUGE)


def test_a_narrower_range_has_less_noise() -> None:
    people = pa.table({"id": list(range(60)), "x": [float(i) for i in range(60)]})
    visits = hb.table(people, unit="id", columns={"x": hb.between(0, 1000)}, max_groups=1, max_rows=1)
    with session(epsilon=10, visits=visits) as s:
        wide, narrow = (s.check(f"SELECT SUM(x) AS s FROM visits{w}", epsilon=1) for w in ("", " WHERE x < 10"))
        assert str(wide) != str(narrow)
