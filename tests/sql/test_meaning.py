"""Each expression means what the plain engine means by the same text, value by value, where nothing is out of range.

The values of an expression over a small table are read as groups that are found privately, without noise.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.engines.duckdb.relations import image
from hubbub.tables.declare import Limits
from hubbub.tables.plan import make_plans

DAYS = [
    dt.date(2024, 2, 29),
    dt.date(1999, 12, 31),
    dt.date(2025, 7, 6),
    None,
    dt.date(2024, 3, 1),
    dt.date(1970, 1, 1),
]
TABLE = pa.table(
    {
        "id": list(range(12)),
        "x": [1.5, -2.25, 0.0, None, 100.0, 7.0, 0.1, 2.5, -0.5, 33.3, 1.5, 4.0],
        "n": [3, -7, 0, 5, None, 2, 10, -1, 8, 100, 3, 4],
        "s": ["Ab c", "", None, "a%b", "ABAB", "  pad ", "x_y", "éa", "12", "-3", "1.5", "2024-02-29"],
        "u": ["b", "a", "A", None, "ab", "pad", "_", "É", "2", "", "5", "02"],
        "ok": [True, False, None, True, True, False] * 2,
        "d": DAYS * 2,
        "m": [None if d is None else dt.datetime(d.year, d.month, d.day, 13, 45, 59) for d in DAYS] * 2,
    }
)
NUMBERS = [
    "x + n", "x - n", "x * n", "x / n", "n / 4", "n // 3", "n % 3", "x % 2", "x // 2", "MOD(n, -3)",
    "n // -3", "x % n", "n // 0", "n % 0", "FDIV(n, 3)", "FMOD(n, 3)", "FMOD(x, 2)", "fdiv(x, -2)", "FMOD(n, 0)",
    "-x", "-n", "n - -n",
    "2 * n + 1",
    "ABS(x)", "ABS(n)", "SIGN(x)", "SIGN(n)", "FLOOR(x)", "CEIL(x)", "FLOOR(n)", "ROUND(x)", "ROUND(x / 3, 1)",
    "ROUND(x / 3, 2)", "ROUND(n * 1.0, 0)", "SQRT(ABS(x))", "EXP(x / 10)", "LN(ABS(x) + 1)", "LOG10(ABS(n) + 1)",
    "LEAST(x, n)", "GREATEST(x, n, 0)", "LEAST(n, 4)", "COALESCE(x, n)", "COALESCE(n, 0)", "NULLIF(n, 3)",
    "CASE WHEN x > 1 THEN n WHEN ok THEN 0 ELSE -1 END", "CASE WHEN ok THEN x END",
    "CASE n WHEN 3 THEN 1 WHEN 5 THEN 2 END",
    "IF(x > n, x, n)", "LENGTH(s)", "CAST(ok AS INTEGER)", "CAST(x AS BIGINT)", "CAST(n AS DOUBLE)",
    "TRY_CAST(s AS INTEGER)",
    "TRY_CAST(s AS DOUBLE)", "EXTRACT(year FROM d)", "MONTH(d)", "DAY(d)", "QUARTER(d)", "DAYOFYEAR(d)",
    "EXTRACT(dow FROM d)", "EXTRACT(hour FROM m)", "EXTRACT(minute FROM m)", "EXTRACT(second FROM m)",
    "DATE_DIFF('day', DATE '2020-01-01', d)", "DATE_DIFF('month', d, DATE '2024-03-01')", "d - DATE '2000-01-01'",
    "POWER(x, 2)", "x ** 3", "POW(n, 8)", "POWER(n, -1)", "POWER(ABS(n), 0.5)", "POWER(x, 0)",
    "ROUND(LN(POWER(ABS(n), 9) + 1), 6)",
    "ROUND(LN(POWER(1.5, n)), 6)", "POWER(x, 2.5)", "EPOCH(m)", "EPOCH(d)", "EXTRACT(epoch FROM m)", "EPOCH(m - d)",
    "EXTRACT(epoch FROM d - m)", "EXTRACT(day FROM d - m)", "DATEDIFF('day', d, m)", "DATEDIFF(month, d, m)",
    "LENGTH(CONCAT(s, n))", "IFNULL(n, -1)", "IFF(ok, n, 0)",
]  # fmt: skip
PLAIN = {
    "DATEDIFF(month, d, m)": "DATEDIFF('month', d, m)",
    "POWER(x, 2.5)": "CASE WHEN x >= 0 THEN pow(x, 2.5) END",
    "IFF(ok, n, 0)": "IF(ok, n, 0)",
    "x // 2": "trunc(x / 2)",
    **{text: f"TRY({text})" for text in ("x % n", "n // 0", "n % 0")},
}
"""DuckDB's own `//` of doubles keeps the fraction."""
TEXTS = [
    "s", "s || u", "s || n", "d || s", "ok || s",
    "s || '-' || u", "UPPER(s)", "LOWER(s)", "TRIM(s)", "LTRIM(s)", "RTRIM(s)", "REVERSE(s)",
    "LEFT(s, 2)", "RIGHT(s, 2)", "LEFT(s, -1)", "SUBSTR(s, 2, 2)", "SUBSTR(s, 2)", "REPLACE(s, 'b', 'xx')",
    "CAST(n AS VARCHAR)", "CAST(ok AS VARCHAR)", "CAST(d AS VARCHAR)", "CAST(x AS VARCHAR)", "COALESCE(s, u, 'none')",
    "CONCAT(s, u)", "CONCAT(s, '-', n, ok)", "CONCAT_WS('-', s, NULL, u)", "CONCAT_WS('', n, s)",
    "SPLIT_PART(s, 'B', 1)", "SPLIT_PART(s, 'B', 2)", "SPLIT_PART(s, 'bb', 40)",
    "NULLIF(s, 'ABAB')", "CASE WHEN s > u THEN s ELSE u END", "LEAST(s, u)", "GREATEST(s, u)",
]  # fmt: skip
TRUTHS = [
    "x > 1.5", "x >= 1.5", "x < n", "x <= 1.5", "n = 3", "n <> 3", "x = n", "n BETWEEN 2 AND 5",
    "n NOT BETWEEN 2 AND 5",
    "n IN (3, 5)", "n NOT IN (3, 5)", "n IN (3, NULL)", "s IN ('12', '')", "x IS NULL", "x IS NOT NULL", "ok", "NOT ok",
    "ok AND x > 1", "ok OR x > 1", "NOT (ok AND x > 1)", "ok IS NULL", "ok = (x > 1)",
    "ok IS NOT DISTINCT FROM (n > 2)",
    "x IS DISTINCT FROM n", "s LIKE 'A%'", "s ILIKE 'a%'", "s LIKE '%b'", "s LIKE '_b%'", "s NOT LIKE '%b%'",
    "s LIKE 'a\\%b' ESCAPE '\\'", "s LIKE 'x\\_y' ESCAPE '\\'", "s LIKE '%\\%%' ESCAPE '\\'", "s LIKE ''", "s = ''",
    "CONTAINS(s, 'b')", "STARTS_WITH(s, 'a')", "ENDS_WITH(s, 'b')", "s > u", "s <= 'a'", "d > DATE '2024-02-29'",
    "d BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'", "m > TIMESTAMP '2024-02-29 13:45:58'", "m = d", "ok IN (TRUE)",
    "LIST_CONTAINS([3, 5], n)", "LIST_CONTAINS(['12', NULL], s)", "LIST_HAS([1.5], x)", "ARRAY_CONTAINS([TRUE], ok)",
    "REGEXP_MATCHES(s, 'b')", "s ~ '^[^a-z]+$'", "s !~ '^A'", "REGEXP_FULL_MATCH(s, '.B.?.*')",
    "REGEXP_MATCHES(s, '^(a|[0-9]{1,2}|x.y)')", "REGEXP_MATCHES(s, '')", "REGEXP_MATCHES(s, '^$|%|\\W')",
    "m - d > INTERVAL '13' HOUR", "d - m <= INTERVAL '-1' DAY", "INTERVAL 1 WEEK > m - d",
]  # fmt: skip
TIMES = [
    "d", "m", "DATE_TRUNC('month', d)", "DATE_TRUNC('year', m)", "DATE_TRUNC('hour', m)", "CAST(m AS DATE)",
    "CAST(d AS TIMESTAMP)", "COALESCE(d, DATE '2000-01-01')", "LEAST(d, DATE '2024-03-01')",
    "d + INTERVAL 1 MONTH", "m - INTERVAL '90' DAY", "m + INTERVAL 3 SECONDS", "INTERVAL 1 YEAR + d", "d + 30", "d - 7",
    "DATE_ADD(m, INTERVAL 1 QUARTER)", "m + INTERVAL 2 WEEKS",
    "TRY_CAST(s AS DATE)", "CASE WHEN ok THEN d END",
]  # fmt: skip


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    columns = {"x": hb.between(-1000, 1000), "n": hb.between(-1000, 1000), "ok": hb.one_of(True, False, None)}
    found = Desk({"t": hb.table(TABLE, unit="id", max_groups=1, max_rows=1, columns=columns)})
    yield found
    found.engine.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.register("t", TABLE)
        yield con


def _value(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return round(float(value), 9) + 0.0 if isinstance(value, int | float) else value


@pytest.mark.parametrize("text", [*NUMBERS, *TEXTS, *TRUTHS, *TIMES])
def test_an_expression_has_the_plain_engine_s_values(desk: Desk, plain: duckdb.DuckDBPyConnection, text: str) -> None:
    """NULL is not a group where a condition's groups are false and true."""
    (question,) = desk.statement(f"SELECT {text} AS k, COUNT(*) FROM t GROUP BY k").questions
    (plan,) = make_plans(question, image, limits=Limits(1, 1, None), private_keys=True)
    exact = desk.engine.run(plan, {})
    counts = next(v for m, v in zip(plan.measurements, exact.vectors, strict=True) if m.counting.value == "rows")
    groups = exact.groups if plan.private_keys else plan.groups()
    found = Counter({_value(g[0]): n for g, n in zip(groups or (), counts, strict=True) if n})
    expected = Counter(_value(v) for (v,) in plain.execute(f"SELECT {PLAIN.get(text, text)} FROM t").fetchall())
    if None not in found and (None,) not in groups:
        del expected[None]
    assert found == expected


@pytest.mark.parametrize("length", [1000, 1001])
def test_no_text_is_looked_for_that_is_longer_than_a_thousand_characters(length: int) -> None:
    """On Postgres one row of 65,000 letters took minutes, which nothing could end, to look for as many in it."""
    table = pa.table({"id": [1, 2], "s": ["é" * 2000, "b"], "t": ["é" * length, "b"]})
    desk = Desk({"v": hb.table(table, unit="id", max_total=1)})
    for needle in ("t", f"'{'é' * length}'"):
        (((known,),), ((met,),)) = (
            desk.ask(f"SELECT COUNT(*) FROM v WHERE CONTAINS(s, {needle}) {is_true}", 10**9).rows()
            for is_true in ("IS NOT NULL", "IS TRUE")
        )
        expected = (2, 2) if needle == "t" else (2, 1)
        assert (known, met) == (expected if length == 1000 else ((1, 1) if needle == "t" else (0, 0)))
    desk.engine.close()
