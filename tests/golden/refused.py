"""What the operator table refuses: the text, words of the refusal, and what stands above the caret (None: no caret).

Each breaks ownership: one person's row would decide what is computed for another, or rows would have no owner.
"""

from __future__ import annotations

REFUSED: list[tuple[str, str, str | None]] = [
    # rows are never shown
    ("SELECT * FROM orders", "rows of people are never shown", "*"),
    ("SELECT c_id, total FROM orders", "rows of people are never shown", "c_id"),
    ("SELECT status FROM orders GROUP BY status", "every answer is an aggregate", "status"),
    ("SELECT total, COUNT(*) FROM orders", "neither in GROUP BY nor inside an aggregate", "total"),
    ("SELECT (SELECT total FROM orders LIMIT 1)", "LIMIT below an aggregate", None),
    ("SELECT COUNT(*) FROM nation WHERE n_id IN (SELECT nation FROM customer)", "rows of people", None),
    (
        "SELECT status, COUNT(*) * 1.0 / SUBSTR (SELECT COUNT(*) FROM orders) AS s FROM orders GROUP BY status",
        "stands where none is read",
        None,
    ),
    (
        "SELECT WIDTH_BUCKET(total, 0 / 100, 4) AS b, COUNT(*) AS n FROM orders GROUP BY b",
        "WIDTH_BUCKET(x, low, high, n) takes constants",
        "WIDTH_BUCKET(total, 0 / 100, 4",
    ),
    # chance
    ("SELECT COUNT(*) FROM orders WHERE RANDOM() < 0.5", "RAND", None),
    ("SELECT SUM(LEAST(UUID(), 1)) FROM orders", "is not supported", None),
    ("SELECT COUNT(*) FROM orders TABLESAMPLE 10%", "SAMPLE is not supported", None),
    ("SELECT COUNT(*) FROM (SELECT * FROM orders USING SAMPLE 5)", "SAMPLE is not supported", None),
    # owned with public
    ("SELECT COUNT(*) FROM nation n LEFT JOIN customer c ON c.nation = n.n_id", "GROUP BY on its columns", None),
    ("SELECT COUNT(*) FROM nation n SEMI JOIN customer c ON c.nation = n.n_id", "stand on the left", "nation n"),
    ("SELECT COUNT(*) FROM nation n ANTI JOIN customer c ON c.nation = n.n_id", "stand on the left", "nation n"),
    ("SELECT COUNT(*) FROM customer c FULL JOIN nation n ON c.nation = n.n_id", "rows that no one owns", "nation n"),
    (
        "SELECT COUNT(*) FROM (SELECT nation FROM customer UNION ALL SELECT n_id FROM nation)",
        "UNION of people",
        "UNION",
    ),
    ("SELECT COUNT(*) FROM (SELECT nation FROM customer EXCEPT SELECT n_id FROM nation)", "EXCEPT of people", "EXCEPT"),
    ("SELECT COUNT(*) FROM customer c ASOF JOIN nation n ON c.nation >= n.n_id", "ASOF JOIN is not supported", None),
    ("SELECT COUNT(*) FROM customer POSITIONAL JOIN nation", "POSITIONAL", None),
    # owned with owned
    ("SELECT COUNT(*) FROM customer c JOIN orders o ON c.nation = o.clerk", "joined on their unit", "orders o"),
    ("SELECT COUNT(*) FROM customer, orders", "joined on their unit", "orders"),
    ("SELECT COUNT(*) FROM customer c JOIN orders o ON c.c_id = o.c_id OR c.nation = 1", "joined on their unit", None),
    ("SELECT COUNT(*) FROM customer c JOIN orders o ON c.c_id + 0 = o.c_id", "joined on their unit", None),
    ("SELECT COUNT(*) FROM orders o JOIN lineitem l ON o.o_id + 1 = l.o_id", "joined on their unit", None),
    ("SELECT COUNT(*) FROM customer a LEFT JOIN orders b ON a.c_id <= b.c_id", "joined on their unit", None),
    # IN, EXISTS, correlation
    ("SELECT COUNT(*) FROM customer WHERE nation IN (SELECT clerk FROM orders)", "tied to the owner", None),
    ("SELECT COUNT(*) FROM customer WHERE nation NOT IN (SELECT clerk FROM orders)", "tied to the owner", None),
    ("SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.clerk = c.nation)", "tied to", None),
    ("SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders)", "tied to the owner", None),
    ("SELECT COUNT(*) FROM customer WHERE balance > ALL (SELECT total FROM orders)", "ALL", None),
    ("SELECT COUNT(*) FROM customer WHERE balance = ANY (SELECT total FROM orders)", "ANY and ALL take a list", None),
    (
        "SELECT COUNT(*) FROM customer c WHERE balance > (SELECT MAX(total) FROM orders o WHERE o.clerk = c.nation)",
        "for the owner alone",
        None,
    ),
    (
        "SELECT COUNT(*) FROM customer c WHERE balance > (SELECT total FROM orders o WHERE o.c_id = c.c_id)",
        "nor inside an aggregate",
        None,
    ),
    # windows without the owner
    (
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY total) AS k FROM orders) WHERE k < 9",
        "partitioned by the unit",
        None,
    ),
    (
        "SELECT AVG(LEAST(d, 1)) FROM (SELECT total - AVG(total) OVER () AS d FROM orders)",
        "partitioned by the unit",
        None,
    ),
    (
        "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY status ORDER BY total) AS k FROM orders)",
        "PARTITION BY c_id",
        None,
    ),
    ("SELECT COUNT(*) FROM orders QUALIFY ROW_NUMBER() OVER (ORDER BY day) = 1", "neither in GROUP BY", None),
    (
        "SELECT COUNT(*) FROM (SELECT * FROM orders QUALIFY LAG(total) OVER (ORDER BY day) > 3)",
        "partitioned by the unit",
        None,
    ),
    (
        "SELECT COUNT(*) FROM (SELECT NTILE(4) OVER (PARTITION BY c_id ORDER BY day) AS q FROM orders)",
        "is not supported",
        None,
    ),
    # order and place below the aggregate
    ("SELECT COUNT(*) FROM (SELECT * FROM orders LIMIT 10)", "LIMIT below an aggregate", "LIMIT"),
    ("SELECT AVG(total) FROM (SELECT total FROM orders ORDER BY day OFFSET 3)", "OFFSET below an aggregate", "OFFSET"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT ON (status) * FROM orders)", "DISTINCT ON", None),
    ("SELECT STRING_AGG(status, ',') FROM orders", "the aggregate STRING_AGG is not supported", None),
    ("SELECT LIST(total) FROM orders", "is not supported. Rows are not listed", None),
    ("SELECT FIRST(total) FROM orders", "the aggregate", None),
    ("SELECT ARG_MAX(status, total) FROM orders", "the aggregate", None),
    ("SELECT SUM(DISTINCT clerk) FROM orders", "DISTINCT inside SUM", None),
    ("SELECT COUNT(*) FROM (SELECT rowid FROM orders)", "unknown column 'rowid'", "rowid"),
    # recursion, other statements, the outside
    (
        "WITH RECURSIVE r AS (SELECT c_id FROM orders UNION SELECT c_id FROM r) SELECT COUNT(*) FROM r",
        "RECURSIVE",
        "RECURSIVE",
    ),
    ("SELECT COUNT(*) FROM read_parquet('x.parquet')", "reads from outside", None),
    ("SELECT COUNT(*) FROM orders, LATERAL (SELECT 1)", "LATERAL is not supported", None),
    ("SELECT COUNT(*) FROM orders PIVOT (COUNT(*) FOR status IN ('F', 'O'))", "PIVOT is not supported", None),
    ("SELECT COUNT(*) FROM orders, UNNEST([1, 2]) AS u(x)", "UNNEST is not supported", None),
    ("DELETE FROM orders", "DELETE is not a question", "DELETE"),
    ("SELECT COUNT(*) FROM information_schema.tables", "one part", None),
    # groups that only the rows know
    ("SELECT c_id, COUNT(*) FROM orders GROUP BY c_id", "every answer is an aggregate", None),
    ("SELECT o_id, COUNT(*) FROM orders GROUP BY o_id", "possible values are declared", None),
    ("SELECT total, COUNT(*) FROM orders GROUP BY total", "declared as between", None),
    ("SELECT SUM(o_id) FROM orders", "no declared bounds", None),
    ("SELECT SUM(price / qty) FROM lineitem", "cannot tell how large", None),
]
