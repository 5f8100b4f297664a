"""The questions that are audited, as data, and the small table they are about. New aggregates are added here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AGGREGATES", "MAX_GROUPS", "MAX_ROWS", "QUESTIONS", "UNIT", "columns", "people"]

UNIT: Final = "id"
MAX_GROUPS: Final = 2
MAX_ROWS: Final = 2

AGGREGATES: Final = (
    "COUNT(*)",
    "COUNT(x)",
    "COUNT(DISTINCT id)",
    "SUM(x)",
    "AVG(x)",
    "SUM(n)",
    "AVG(n - x)",
    "SUM(must)",
    "AVG(must)",
    "SUM(CASE WHEN x > 50 THEN 1 ELSE 0 END)",
    "SUM(LEAST(GREATEST(x * n, -5), 5))",
    "AVG(ROUND(x / 3, 1))",
    "SUM(LEAST(LENGTH(ward), 4) + ABS(n))",
)
"""Each is asked of the whole table and of groups with public keys."""

QUESTIONS: Final = (
    *(f"SELECT {a} AS answer FROM t" for a in AGGREGATES),
    *(f"SELECT ward, {a} AS answer FROM t GROUP BY ward" for a in AGGREGATES),
    "SELECT COUNT(*) AS a, SUM(x) AS b, AVG(n) AS c FROM t WHERE x / n > 0 OR ok",
    "SELECT COUNT(*) AS a FROM t WHERE n * n * n > x - n AND NOT (x IN (1, 50, 1e308) OR n IS NULL)",
    "SELECT ward, ok, COUNT(*) AS a, AVG(x / 7) AS b FROM t GROUP BY ward, ok",
    "SELECT UPPER(ward) AS w, COUNT(DISTINCT id) AS a FROM t WHERE ward LIKE '%A%' GROUP BY UPPER(ward)",
    "SELECT n, SUM(x) AS a FROM t WHERE COALESCE(ward, 'none') <> LOWER(ward) GROUP BY n",
    "SELECT FLOOR(x / 25) AS q, COUNT(*) AS a FROM t GROUP BY FLOOR(x / 25)",
    "SELECT ward, COUNT(*) AS a FROM t GROUP BY ward HAVING COUNT(*) > 2 ORDER BY a DESC LIMIT 2",
    "SELECT AVG(x) / COUNT(*) AS a FROM t WHERE ABS(n) > SQRT(x)",
)
"""SQL on the table `t`."""


def people() -> pa.Table:
    """Forty rows of twelve units: ordinary values, and one of each kind of NULL."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = [
        {
            "id": i % 12,
            "ward": ("A", "B", "C", None)[i % 4 if i % 11 else 3],
            "x": None if i % 13 == 0 else float(7 * i % 100),
            "n": None if i % 17 == 0 else i % 16 - 5,
            "ok": (True, False, None)[i % 3],
            "must": float(i % 50),
        }
        for i in range(40)
    ]
    kinds = (("id", pa.int64()), ("ward", pa.string()), ("x", pa.float64()), ("n", pa.int64()), ("ok", pa.bool_()))
    return pa.Table.from_pylist(rows, schema=pa.schema([*kinds, ("must", pa.float64())]))


def columns() -> dict[str, Any]:
    """What is declared about them."""
    from hubbub.tables.declare import between, one_of

    return {
        "ward": one_of("A", "B", "C", None),
        "ok": one_of(True, False, None),
        "x": between(0, 100),
        "must": between(-3, 50, nullable=False),
        "n": between(-5, 10),
    }
