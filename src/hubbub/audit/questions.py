"""The questions that are audited, as data. Those of an aggregate stand with it (`hubbub.tables.aggregates`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from hubbub.tables.aggregates import FAMILIES

__all__ = [
    "AGGREGATES",
    "FOUND",
    "GAUSSIAN",
    "HOUSE",
    "PRIVATE_KEYS",
    "QUESTIONS",
    "ROWS",
    "SYNTHESIS",
    "TOGETHER",
    "Question",
]


@dataclass(frozen=True)
class Question:
    """What a session is asked. text: SQL, or the name of a table; options: of the method `verb`.

    >>> Question("SELECT COUNT(*) FROM t", {"max_rows": 1})
    Question(text='SELECT COUNT(*) FROM t', options={'max_rows': 1}, verb='sql')
    """

    text: str
    options: Mapping[str, Any] = field(default_factory=dict)
    verb: Literal["sql", "synthesize", "marginals", "check_bounds", "suggest_bounds"] = "sql"

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.options.items())
        call = "" if self.verb == "sql" else f"{self.verb}: "
        return f"{call}{self.text}{f' [{shown}]' if shown else ''}"


AGGREGATES: Final = tuple(question for family in FAMILIES for question in family.audit)
"""Each is asked of the whole table `t`, and of groups with public keys."""

TOGETHER: Final = (
    "SELECT COUNT(*) AS a, SUM(x) AS b, AVG(n) AS c FROM t WHERE x / n > 0 OR ok",
    "SELECT ward, COUNT(*) AS a, COUNT(x) AS b, AVG(x) AS c, SUM(x) AS d FROM t GROUP BY ward",
    "SELECT ok, AVG(x) AS a, STDDEV(x) AS b, MEDIAN(x) AS c, MIN(x) AS d, QUANTILE_CONT(x, 0.9) AS e "
    "FROM t GROUP BY ok",
    "SELECT COUNT(*) AS a FROM t WHERE n * n * n > x - n AND NOT (x IN (1, 50, 1e308) OR n IS NULL)",
    "SELECT ward, ok, COUNT(*) AS a, AVG(x / 7) AS b FROM t GROUP BY ward, ok",
    "SELECT UPPER(ward) AS w, COUNT(DISTINCT id) AS a FROM t WHERE ward LIKE '%A%' GROUP BY UPPER(ward)",
    "SELECT n, SUM(x) AS a FROM t WHERE COALESCE(ward, 'none') <> LOWER(ward) GROUP BY n",
    "SELECT FLOOR(x / 25) AS q, COUNT(*) AS a FROM t GROUP BY FLOOR(x / 25)",
    "SELECT ward, COUNT(*) AS a FROM t GROUP BY ward HAVING COUNT(*) > 2 ORDER BY a DESC LIMIT 2",
    "SELECT AVG(x) / COUNT(*) AS a FROM t WHERE ABS(n) > SQRT(x)",
    "SELECT ward, ok, COUNT(*) AS a, SUM(n) AS b FROM t GROUP BY ROLLUP (ward, ok)",
    "SELECT a / 2 AS half, RANK() OVER (ORDER BY a) AS place FROM (SELECT ward, COUNT(*) AS a FROM t GROUP BY ward)",
    "SELECT COUNT(*) AS a FROM t WHERE x > (SELECT AVG(x) FROM t)",
    "WITH m AS (SELECT ward, MEDIAN(x) AS h FROM t GROUP BY ward) "
    "SELECT COUNT(*) AS a, SUM(t.n) AS b FROM t JOIN m ON t.ward = m.ward WHERE t.x > m.h",
)

QUESTIONS: Final = (
    *(f"SELECT {a} AS answer FROM t" for a in ("COUNT(DISTINCT id)", *AGGREGATES)),
    *(f"SELECT ward, {a} AS answer FROM t GROUP BY ward" for a in ("COUNT(DISTINCT id)", *AGGREGATES)),
    *TOGETHER,
)
"""SQL on the table `t`, of the unit `id`."""

ROWS: Final = (
    *(f"SELECT {a} AS answer FROM t" for a in AGGREGATES),
    *(f"SELECT ward, {a} AS answer FROM t GROUP BY ward" for a in AGGREGATES),
    *TOGETHER[:5],
    "SELECT w.region, COUNT(*) AS a, SUM(t.x) AS b FROM t JOIN wards w ON t.ward = w.ward GROUP BY w.region",
    "SELECT w.region, MEDIAN(t.x) AS a, COUNT(DISTINCT t.n) AS b FROM t JOIN wards w ON t.ward = w.ward "
    "GROUP BY w.region",
    "SELECT AVG(t.x + LEAST(GREATEST(w.beds, 0), 9)) AS a FROM t LEFT JOIN wards w ON t.ward = w.ward",
)
"""SQL on a table `t` whose rows are units, and the public table `wards`."""

_JOINS: Final = (
    "SELECT p.sex, COUNT(*) AS a, AVG(t.x) AS b FROM t JOIN p ON t.id = p.id GROUP BY p.sex",
    "SELECT SUM(LEAST(GREATEST(t.x - p.income, -20), 20)) AS a FROM t LEFT JOIN p ON t.id = p.id AND t.n < p.income",
    "SELECT COUNT(*) AS a, COUNT(p.sex) AS b FROM p FULL JOIN t ON t.id = p.id",
    "SELECT w.region, COUNT(*) AS a, SUM(t.x) AS b, COUNT(DISTINCT t.ward) AS c FROM t JOIN wards w "
    "ON t.ward = w.ward GROUP BY w.region",
    "SELECT AVG(LEAST(GREATEST(w.beds, 0), 9)) AS a FROM t LEFT JOIN wards w ON t.ward = w.ward OR w.ward IS NULL",
    "SELECT w.region, COUNT(t.id) AS a FROM wards w LEFT JOIN t ON t.ward = w.ward GROUP BY w.region",
    "SELECT kind, COUNT(*) AS a, SUM(price) AS b, MEDIAN(price) AS c FROM i GROUP BY kind",
    "SELECT COUNT(DISTINCT t.id) AS a, AVG(i.price) AS b FROM i JOIN t ON i.vid = t.vid",
    "SELECT p.sex, MAX(i.price) AS a FROM p, t, i WHERE p.id = t.id AND t.vid = i.vid GROUP BY p.sex",
)

_INNER: Final = (
    "SELECT COUNT(*) AS a FROM t WHERE id IN (SELECT id FROM p WHERE income > 9)",
    "SELECT ward, COUNT(*) AS a FROM t WHERE id NOT IN (SELECT id FROM p WHERE sex = 'm') GROUP BY ward",
    "SELECT AVG(x) AS a FROM t WHERE EXISTS (SELECT 1 FROM p WHERE p.id = t.id AND p.income > t.x)",
    "SELECT COUNT(*) AS a FROM t WHERE NOT EXISTS (SELECT 1 FROM "
    "(SELECT s.id AS id, i.price AS price FROM i JOIN t AS s ON i.vid = s.vid) AS q WHERE q.id = t.id)",
    "SELECT COUNT(*) AS a FROM t WHERE x >= (SELECT MAX(s.x) FROM t AS s WHERE s.id = t.id)",
    "SELECT COUNT(*) AS a FROM t WHERE n > (SELECT AVG(beds) FROM wards)",
    "SELECT COUNT(*) AS a FROM t WHERE ward NOT IN (SELECT ward FROM wards WHERE beds > 1)",
    "SELECT AVG(LEAST(k, 5)) AS a, COUNT(*) AS b FROM (SELECT id, COUNT(*) AS k FROM t GROUP BY id)",
    "SELECT MEDIAN(LEAST(GREATEST(m, 0), 100)) AS a FROM (SELECT id, AVG(x) AS m FROM t GROUP BY id, ward)",
    "SELECT s, COUNT(*) AS a FROM (SELECT id, MAX(ward) AS s FROM t GROUP BY id HAVING SUM(n) > 3) GROUP BY s",
    "SELECT COUNT(*) AS a FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY x) AS r FROM t) WHERE r = 2",
    "SELECT SUM(LEAST(GREATEST(d, -9), 9)) AS a FROM "
    "(SELECT x - LAG(x) OVER (PARTITION BY id ORDER BY n, x) AS d FROM t)",
    "SELECT ward, AVG(LEAST(GREATEST(s, 0), 50)) AS a FROM "
    "(SELECT ward, SUM(x) OVER (PARTITION BY id ORDER BY x) AS s FROM t) GROUP BY ward",
    "SELECT COUNT(*) AS a FROM (SELECT * FROM t QUALIFY RANK() OVER (PARTITION BY id, ward ORDER BY x DESC) <= 1)",
    "SELECT ward, COUNT(*) AS a FROM (SELECT DISTINCT id, ward FROM t) GROUP BY ward",
    "SELECT COUNT(*) AS a FROM (SELECT id, n FROM t UNION ALL SELECT id, income FROM p)",
    "SELECT COUNT(*) AS a, SUM(LEAST(GREATEST(n, 0), 9)) AS b FROM "
    "(SELECT id, n FROM t UNION SELECT id, income FROM p)",
    "SELECT COUNT(*) AS a FROM (SELECT id, n FROM t EXCEPT SELECT id, income FROM p)",
    "SELECT COUNT(*) AS a FROM (SELECT id FROM t INTERSECT ALL SELECT id FROM p)",
)

_SHAPES: Final = (
    "SELECT p.sex, t.ok, COUNT(*) AS a, AVG(t.x) AS b FROM t JOIN p ON t.id = p.id GROUP BY ROLLUP (p.sex, t.ok)",
    "SELECT ward, ok, COUNT(DISTINCT n) AS a FROM t GROUP BY CUBE (ward, ok)",
    "SELECT (SELECT COUNT(*) FROM t) AS a, (SELECT AVG(income) FROM p) AS b",
    "SELECT COUNT(*) AS a FROM p WHERE income > (SELECT AVG(t.n) FROM t)",
    "WITH m AS (SELECT ward, AVG(x) AS h FROM t GROUP BY ward HAVING COUNT(*) > 2) "
    "SELECT t.ok, COUNT(*) AS a FROM t JOIN m ON t.ward = m.ward AND t.x > m.h GROUP BY t.ok",
    "SELECT x, COUNT(*) AS a, AVG(k) AS b FROM b GROUP BY x",
    "SELECT x, k, COUNT(DISTINCT name) AS a, MAX(x) AS b FROM b GROUP BY x, k",
)

HOUSE: Final = (
    *(Question(sql) for sql in (*_JOINS, *_INNER, *_SHAPES)),
    Question("SELECT ward, COUNT(*) AS a, SUM(x) AS b FROM t GROUP BY ward", {"keys": {"ward": ["B", "Z"]}}),
    Question("SELECT name, COUNT(*) AS a FROM b GROUP BY name", {"keys": {"name": ["A", "nobody declared this"]}}),
    Question("SELECT ward, COUNT(*) AS a, MEDIAN(x) AS b FROM t GROUP BY ward", {"max_groups": 1, "max_rows": 3}),
    Question("SELECT COUNT(*) AS a, AVG(x) AS b FROM t", {"max_total": 5}),
    Question("SELECT ward, COUNT(*) AS a, SUM(x) AS b FROM t GROUP BY ward", {"bounding": "norm"}),
    Question("SELECT ward, ok, AVG(n) AS a, COUNT(x) AS b FROM t GROUP BY ward, ok", {"bounding": "norm"}),
    Question("SELECT VAR_POP(x) AS a, SUM(must) AS b FROM t", {"bounding": "norm", "max_rows": 3}),
    Question("SELECT kind, COUNT(*) AS a, AVG(price) AS b FROM i GROUP BY kind", {"bounding": "norm"}),
    Question("SELECT COUNT(*) AS a, AVG(x) AS b FROM t WHERE n > $least", {"params": {"least": 3}}),
    Question("SELECT AVG(x) AS a, SUM(n) AS b, COUNT(*) AS c FROM t", {"weights": {"a": 5}}),
    Question("SELECT ward, COUNT(*) AS a, SUM(n) AS b, AVG(n) AS c FROM t GROUP BY ward", {"weight": "x"}),
)
"""On the tables `t`, `p` and `b` of the unit `id`, `i` whose owner `t.vid` leads to, and the public `wards`."""

GAUSSIAN: Final = (
    *(Question(f"SELECT ward, {a} AS answer FROM t GROUP BY ward", {"noise": "laplace"}) for a in AGGREGATES[::6]),
    Question("SELECT ward, AVG(x) AS a, COUNT(*) AS b FROM t GROUP BY ward", {"epsilon": None, "rho": "0.05"}),
    *(Question(f"SELECT {a} AS answer FROM t") for a in AGGREGATES),
    *(Question(f"SELECT ok, {a} AS answer FROM t GROUP BY ok") for a in AGGREGATES),
    *(Question(sql) for sql in TOGETHER),
)
"""Beside those of the house, under a budget with delta."""

_KEYED: Final[Mapping[str, Any]] = {"epsilon": "60", "delta": "1e-9"}

PRIVATE_KEYS: Final = tuple(
    Question(sql, {**_KEYED, **options})
    for sql in (
        "SELECT name, COUNT(*) AS a, COUNT(DISTINCT id) AS u FROM b GROUP BY name",
        "SELECT name, SUM(x) AS a, AVG(x) AS b, COUNT(DISTINCT k) AS c FROM b GROUP BY name",
        "SELECT name, MEDIAN(x) AS a, MAX(x) AS b FROM b GROUP BY name ORDER BY a LIMIT 3",
        "SELECT name, k, COUNT(*) AS a FROM b GROUP BY ROLLUP (name, k)",
        "SELECT name, x, COUNT(*) AS a FROM b GROUP BY name, x",
        "SELECT name, TOP_PLACE(2) AS a FROM b GROUP BY name ORDER BY a",
        "SELECT APPROX_TOP_K(name, 2) AS a FROM b",
        "WITH m AS (SELECT name, TOP_PLACE(1) AS h FROM b GROUP BY name) "
        "SELECT COUNT(*) AS a FROM b JOIN m ON b.name = m.name",
        "SELECT b.name, p.sex, COUNT(*) AS a FROM b JOIN p ON b.id = p.id GROUP BY b.name, p.sex",
        "WITH m AS (SELECT name, AVG(x) AS h FROM b GROUP BY name) "
        "SELECT COUNT(*) AS a FROM b JOIN m ON b.name = m.name WHERE b.x > m.h",
    )
    for options in ({}, {"noise": "laplace"})
)
"""Groups found privately, by names that nobody declared: at an epsilon where groups of a few units are shown."""

_ALL: Final[Mapping[str, Any]] = {"columns": ["ward", "ok", "n"], "rows_per_unit": 2}

_FOUND: Final[Mapping[str, Any]] = {"epsilon": "900", "noise": "laplace"}

FOUND: Final = (
    Question("SELECT COUNT(*) AS a FROM t", {**_FOUND, "max_rows": "auto"}),
    Question("SELECT SUM(x) AS a, SUM(n) AS b FROM t", _FOUND),
    Question("SELECT ward, COUNT(*) AS a, SUM(x) AS b FROM t GROUP BY ward",
             {**_FOUND, "max_rows": "auto", "max_groups": "auto"}),
    Question("SELECT ok, AVG(must) AS a, COUNT(DISTINCT id) AS b FROM t GROUP BY ROLLUP (ok)",
             {**_FOUND, "max_rows": "auto", "max_groups": 2}),
    Question("SELECT ward, SUM(CASE WHEN ok THEN x END) AS a FROM t GROUP BY ward",
             {"epsilon": "5000", "max_groups": 2}),
    Question("SELECT ward, COUNT(*) AS a, AVG(must) AS b FROM t GROUP BY ward",
             {"epsilon": None, "within": "30 %", "at_most": "900", "max_groups": 2, "max_rows": 2}),
    Question("SELECT COUNT(*) AS a FROM t WHERE n > 1",
             {"epsilon": "60", "noise": "laplace", "max_rows": "auto", "total_error": True}),
    Question("SELECT ward, COUNT(*) AS a, SUM(x) AS b FROM t GROUP BY ward",
             {"epsilon": "60", "noise": "laplace"}, "check_bounds"),
    Question("SELECT ok, COUNT(*) AS a FROM t WHERE n > 1 GROUP BY ok", {"epsilon": "600"}, "check_bounds"),
    Question("t", {"columns": ("x",), "epsilon": "60"}, "suggest_bounds"),
    Question("t", {"columns": (), "epsilon": "60"}, "suggest_bounds"),
)  # fmt: skip
"""What is decided as it is drawn: bounds that are found, steps until an answer is good; and what bounds leave out. Of
bounds so few units tell at a large epsilon alone."""

SYNTHESIS: Final = (
    *(
        Question("t", {**_ALL, "method": method, "epsilon": "5"}, "synthesize")
        for method in ("independent", "tree", "marginals", "adaptive", "joint")
    ),
    Question("t", {**_ALL, "rows": 40, "epsilon": "5"}, "synthesize"),
    Question("t", {"marginals": [("ward", "ok"), ("n",)], "rows_per_unit": 2}, "marginals"),
    Question("t", {"marginals": [("ward",), ("x", "ok")], "edges": {"x": [0, 25, 50, 100]}}, "marginals"),
)
"""Whole rows: synthetic tables by every method, and sets of marginals."""
