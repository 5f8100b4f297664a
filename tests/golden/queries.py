"""The golden list: questions whose answer, without noise, is the plain engine's own. At most three of a shape.

Each entry is a text, or (text, what else): `tolerance` where the grid or a rank decides (stated), `params`, `keys`,
`plain` where DuckDB itself has to be asked in other words.
"""

from __future__ import annotations

from typing import Any

GOLDEN: dict[str, list[str | tuple[str, dict[str, Any]]]] = {}

GOLDEN["counts"] = [
    "SELECT COUNT(*) FROM orders",
    "SELECT COUNT(phone) AS known, COUNT(*) AS everyone FROM customer",
    "SELECT COUNT(DISTINCT c_id) FROM orders WHERE status = 'F'",
    "SELECT COUNT(DISTINCT part) FROM lineitem",
    "SELECT status, COUNT(DISTINCT clerk) AS clerks FROM orders GROUP BY status",
    "SELECT COUNT(DISTINCT CASE WHEN total > 50 THEN c_id END) AS big FROM orders",
    "SELECT COUNT(1), COUNT(total) FROM orders",
]
GOLDEN["sums and means"] = [
    "SELECT SUM(total) FROM orders",
    "SELECT status, SUM(total) AS total, AVG(total) AS mean, COUNT(*) AS n FROM orders GROUP BY status",
    "SELECT SUM(price * qty) AS revenue FROM lineitem",
    "SELECT SUM(price * (1 - discount)) AS revenue, AVG(price / 2) AS half FROM lineitem",
    "SELECT AVG(balance), SUM(-balance), SUM(balance + 5) FROM customer",
    "SELECT AVG(CAST(returned AS INTEGER)) AS share FROM lineitem",
    "SELECT segment, SUM(CASE WHEN balance > 0 THEN balance ELSE 0 END) AS assets FROM customer GROUP BY segment",
    "SELECT SUM(LEAST(total, 50)) AS capped, SUM(GREATEST(total, 20)) AS floored FROM orders",
    "SELECT SUM(ABS(balance)), SUM(FLOOR(balance)), SUM(ROUND(balance)) FROM customer",
]
GOLDEN["spread"] = [
    ("SELECT VAR_POP(total), VAR_SAMP(total) FROM orders", {"tolerance": 1e-2}),
    (
        "SELECT STDDEV(balance), STDDEV_POP(balance), STDDEV_SAMP(balance), VARIANCE(balance) FROM customer",
        {"tolerance": 1e-2},
    ),
    ("SELECT status, VAR_SAMP(clerk) AS v FROM orders GROUP BY status", {"tolerance": 1e-3}),
    ("SELECT CORR(qty, price), COVAR_POP(qty, price), COVAR_SAMP(price, qty) FROM lineitem", {"tolerance": 1e-2}),
    ("SELECT returned, CORR(qty, discount) AS r FROM lineitem GROUP BY returned", {"tolerance": 1e-3}),
]
GOLDEN["lines"] = [
    (
        "SELECT REGR_SLOPE(price, qty), REGR_INTERCEPT(price, qty), REGR_R2(price, qty) FROM lineitem",
        {"tolerance": 1e-2},
    ),
    ("SELECT returned, REGR_SLOPE(discount, qty) AS b FROM lineitem GROUP BY returned", {"tolerance": 1e-3}),
    ("SELECT REGR_INTERCEPT(total, clerk) AS a FROM orders WHERE status <> 'P'", {"tolerance": 2e-2}),
]
GOLDEN["geometric means"] = [
    ("SELECT GEOMEAN(GREATEST(price, 1)) AS g FROM lineitem", {"tolerance": 1e-3}),
    ("SELECT status, GEOMEAN(total + 1) AS g, AVG(total) AS m FROM orders GROUP BY status", {"tolerance": 1e-3}),
    (
        "SELECT geometric_mean(clerk + 1) FILTER (WHERE total > 20) AS g FROM orders",
        {"tolerance": 1e-3, "plain": "SELECT geometric_mean(clerk + 1) AS g FROM orders WHERE total > 20"},
    ),
]
GOLDEN["survey weights"] = [
    (
        "SELECT status, WEIGHTED_COUNT(clerk) AS n, WEIGHTED_AVG(total, clerk) AS m FROM orders GROUP BY status",
        {
            "tolerance": 1e-3,
            "plain": "SELECT status, SUM(clerk) AS n, SUM(total * clerk) / SUM(clerk) AS m FROM orders GROUP BY status",
        },
    ),
    (
        "SELECT WEIGHTED_SUM(total, clerk) FILTER (WHERE total > 20) AS s FROM orders",
        {"tolerance": 1e-3, "plain": "SELECT SUM(total * clerk) AS s FROM orders WHERE total > 20"},
    ),
]
GOLDEN["choices"] = [
    "SELECT MODE(status) AS m, COUNT(*) AS n FROM orders WHERE clerk < 5 AND o_id < 149",
    "SELECT returned, MODE(part) AS m FROM lineitem WHERE line = 1 OR part = 'nut' GROUP BY returned",
    (
        "SELECT APPROX_TOP_K(segment, 2) AS top FROM customer WHERE c_id IN (1, 2, 3, 4, 5, 7)",
        {"plain": "SELECT [MODE(segment), 'TOYS'] AS top FROM customer WHERE segment = 'HOME'"},
    ),
]
# 63 orders, 21 customers: the shares fall on a row, so no interpolation is asked for. Several shares are found one
# within the other, each to within one rank: 3.5 here.
GOLDEN["quantiles"] = [
    ("SELECT MEDIAN(balance) FROM customer", {"tolerance": 1e-2}),
    (
        "SELECT QUANTILE_CONT(balance, 0.1) AS low, QUANTILE_CONT(balance, 0.9) AS high FROM customer",
        {"tolerance": 3.5},
    ),
    ("SELECT MIN(clerk), MAX(clerk), MEDIAN(clerk) FROM orders", {"tolerance": 1e-9}),
    ("SELECT QUANTILE_CONT(balance, [0.25, 0.5, 0.75]) AS q FROM customer", {"tolerance": 3.5}),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY balance) AS m FROM customer", {"tolerance": 1e-2}),
    ("SELECT segment, MEDIAN(nation) AS m, MAX(balance) AS top FROM customer GROUP BY segment", {"tolerance": 1e-2}),
    ("SELECT MAX(total) - MIN(total) AS spread FROM orders WHERE status <> 'P'", {"tolerance": 1e-2}),
]
GOLDEN["groups"] = [
    "SELECT status, priority, COUNT(*) AS n FROM orders GROUP BY status, priority HAVING COUNT(*) > 0",
    "SELECT clerk, COUNT(*) FROM orders GROUP BY clerk",
    "SELECT total > 50 AS big, COUNT(*) FROM orders GROUP BY total > 50",
    "SELECT CASE WHEN clerk < 3 THEN 'low' WHEN clerk < 6 THEN 'mid' ELSE 'high' END AS band, COUNT(*) "
    "AS n FROM orders GROUP BY 1",
    "SELECT UPPER(LEFT(part, 1)) AS letter, SUM(qty) AS q FROM lineitem GROUP BY letter",
    "SELECT clerk % 2 AS odd, clerk // 4 AS half, COUNT(*) AS n FROM orders GROUP BY odd, half HAVING n > 0",
    "SELECT SUBSTR(priority, 3) AS word, AVG(total) AS mean FROM orders GROUP BY ALL",
    "SELECT segment || '-' || CAST(nation AS VARCHAR) AS c, COUNT(*) AS n FROM customer GROUP BY c HAVING n > 0",
    "SELECT NOT returned AS kept, line, COUNT(*) AS n FROM lineitem GROUP BY 1, 2",
    "SELECT COALESCE(NULLIF(status, 'P'), 'other') AS s, COUNT(*) AS n FROM orders GROUP BY s",
]
GOLDEN["edges and keys"] = [
    (
        "SELECT part, COUNT(*) AS n FROM lineitem GROUP BY part",
        {
            "keys": {"part": ["gear", "nut"]},
            "plain": "SELECT part, COUNT(*) AS n FROM lineitem WHERE part IN ('gear', 'nut') GROUP BY part",
        },
    ),
    (
        "SELECT o_id, SUM(qty) AS q FROM lineitem GROUP BY o_id",
        {
            "keys": {"o_id": [100, 101, 102]},
            "plain": "SELECT o_id, SUM(qty) AS q FROM lineitem WHERE o_id IN (100, 101, 102) GROUP BY o_id",
        },
    ),
]
GOLDEN["dates"] = [
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM orders GROUP BY month HAVING n > 0",
    "SELECT DATE_TRUNC('quarter', day) AS q, SUM(total) AS t FROM orders GROUP BY q HAVING COUNT(*) > 0",
    "SELECT EXTRACT(year FROM day) AS y, COUNT(*) AS n FROM orders GROUP BY y HAVING n > 0",
    "SELECT MONTH(day) AS m, YEAR(day) AS y, COUNT(*) AS n FROM orders GROUP BY ALL HAVING COUNT(*) > 0",
    "SELECT COUNT(*) FROM orders WHERE day >= DATE '1995-06-01' AND day < '1996-01-01'",
    "SELECT COUNT(*) FROM orders WHERE day BETWEEN '1995-03-01' AND '1995-09-30' AND EXTRACT(dow FROM "
    "day) IN (1, 2, 3)",
    "SELECT COUNT(*) FROM orders WHERE moment > TIMESTAMP '1995-07-01 12:00:00' AND EXTRACT(hour FROM moment) < 12",
    "SELECT AVG(LEAST(GREATEST(DATE_DIFF('day', DATE '1995-01-01', day), 0), 1024)) AS age FROM orders",
    "SELECT COUNT(*) FROM orders WHERE day - DATE '1995-01-01' > 365",
    "SELECT COUNT(*) FROM lineitem WHERE ship IS NULL OR DATE_PART('quarter', ship) = 2",
    "SELECT COUNT(*) FROM orders WHERE CAST(moment AS DATE) = day AND DAYOFYEAR(day) < 100",
    "SELECT COUNT(*) FROM orders WHERE CAST(day AS VARCHAR) LIKE '1995-0%'",
]
GOLDEN["stretches of time"] = [
    "SELECT DATE_TRUNC('month', moment) AS month, COUNT(*) AS n FROM orders GROUP BY month HAVING n > 0",
    "SELECT CAST(moment AS DATE) AS d, COUNT(*) AS n FROM orders GROUP BY d HAVING n > 0",
    "SELECT STRFTIME(moment, '%Y-%m') AS month, SUM(total) AS t FROM orders GROUP BY month HAVING COUNT(*) > 0",
    "SELECT STRFTIME(day, '%G-W%V') AS week, COUNT(*) AS n FROM orders GROUP BY week HAVING n > 0",
    "SELECT DAYNAME(moment) AS d, COUNT(*) AS n FROM orders GROUP BY d HAVING n > 0",
    "SELECT MONTHNAME(day) AS m, COUNT(*) AS n FROM orders GROUP BY m HAVING n > 0",
    "SELECT LAST_DAY(moment) AS m, COUNT(*) AS n FROM orders GROUP BY m HAVING n > 0",
    "SELECT TIME_BUCKET(INTERVAL '12 hours', moment) AS h, COUNT(*) AS n FROM orders GROUP BY h HAVING n > 0",
    "SELECT EXTRACT(isoyear FROM day) AS y, EXTRACT(week FROM day) AS w, COUNT(*) AS n FROM orders "
    "GROUP BY y, w HAVING n > 0",
]
GOLDEN["bins"] = [
    "SELECT FLOOR(total / 20) * 20 AS band, COUNT(*) AS n FROM orders GROUP BY band HAVING n > 0",
    "SELECT ROUND(total / 7, 1) AS band, COUNT(*) AS n FROM orders GROUP BY band HAVING n > 0",
    (
        "SELECT WIDTH_BUCKET(total, 0, 100, 4) AS b, COUNT(*) AS n FROM orders GROUP BY b HAVING n > 0",
        {
            "plain": "SELECT CASE WHEN total >= 100 THEN 5 ELSE CAST(FLOOR(total / 25) AS INTEGER) + 1 END AS b, "
            "COUNT(*) AS n FROM orders GROUP BY b"
        },
    ),
]
# Dates are on a grid of days; times, in a range of two years, on one of 20 minutes.
GOLDEN["dates as quantiles"] = [
    "SELECT MIN(day), MAX(day) FROM orders",
    "SELECT MEDIAN(day) AS m, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY day) AS n FROM orders",
    "SELECT status, MIN(day) AS first, MAX(ship) AS last FROM orders JOIN lineitem USING (o_id) GROUP BY status",
    "SELECT MAX(day) - MIN(day) AS days, DATE_TRUNC('month', MAX(day)) AS month, YEAR(MIN(day)) AS y FROM orders",
    "SELECT MIN(moment) AS first, MAX(moment) AS last, MEDIAN(moment) AS middle FROM orders",
    "SELECT priority, MAX(moment) - MIN(moment) AS took FROM orders GROUP BY priority",
    "SELECT MEDIAN(DATE_TRUNC('day', moment)) AS m FROM orders WHERE status = 'F'",
    "SELECT MIN(CAST(moment AS DATE)) AS first, MAX(CAST(day AS TIMESTAMP)) AS last FROM orders",
    "SELECT MAX(LEAST(ship, DATE '1996-01-31')) AS m, MIN(COALESCE(ship, DATE '1995-01-20')) AS n FROM lineitem",
    "SELECT MAX(day) FILTER (WHERE total > 50) AS big, MIN(CASE WHEN clerk < 3 THEN day END) AS few FROM orders",
    "SELECT MIN(first) AS a, MAX(first) AS b FROM (SELECT c_id, MIN(day) AS first FROM orders GROUP BY c_id)",
    "SELECT COUNT(DISTINCT day) AS days, COUNT(DISTINCT moment) AS moments FROM orders",
    "SELECT AVG(DATE_DIFF('day', DATE '1995-01-01', day)) AS age, MAX(EXTRACT(year FROM moment)) AS y FROM orders",
    "SELECT EXTRACT(year FROM moment) AS y, SUM(total) AS t FROM orders GROUP BY y HAVING COUNT(*) > 0",
]
GOLDEN["text"] = [
    "SELECT COUNT(*) FROM customer WHERE name LIKE 'Customer#01%' OR name LIKE '%_5'",
    "SELECT COUNT(*) FROM lineitem WHERE part ILIKE 'p%' AND LOWER(part) = 'pipe'",
    "SELECT COUNT(*) FROM customer WHERE LEFT(phone, 2) = '12' AND LENGTH(phone) = 11",
    "SELECT COUNT(*) FROM customer WHERE REPLACE(phone, '-', '') > '13' AND RIGHT(name, 1) <> '1'",
    "SELECT COUNT(*) FROM lineitem WHERE REVERSE(part) = 'tun' OR CONTAINS(part, 'ol') OR STARTS_WITH(part, 'r')",
    "SELECT COUNT(*) FROM customer WHERE TRIM(' ' || segment || ' ') = 'HOME' AND phone IS NOT NULL",
    "SELECT COUNT(*) FROM customer WHERE phone NOT LIKE '1%5' AND name IS DISTINCT FROM 'Customer#003'",
    "SELECT COUNT(*) FROM customer WHERE ENDS_WITH(name, '7') OR SUBSTRING(name, 10, 3) IN ('001', '002')",
]
GOLDEN["casts and nulls"] = [
    "SELECT COUNT(*) FROM customer WHERE TRY_CAST(LEFT(phone, 2) AS INTEGER) > 12",
    "SELECT SUM(LEAST(GREATEST(CAST(total AS BIGINT), 0), 128)) AS s FROM orders WHERE total = FLOOR(total)",
    "SELECT COUNT(*) FROM lineitem WHERE CAST(returned AS INTEGER) = 1 OR CAST(qty AS VARCHAR) = '8'",
    "SELECT COUNT(COALESCE(phone, 'none')), COUNT(NULLIF(segment, 'HOME')) FROM customer",
    "SELECT COUNT(*) FROM lineitem WHERE IF(returned, qty > 25, price > 10)",
    "SELECT COUNT(*) FROM lineitem WHERE (ship IS NULL) = returned",
]
GOLDEN["filters"] = [
    "SELECT COUNT(*) FILTER (WHERE status = 'F') AS f, COUNT(*) FILTER (WHERE status = 'O') AS o FROM orders",
    "SELECT priority, SUM(total) FILTER (WHERE clerk > 3) AS late FROM orders GROUP BY priority",
    "SELECT COUNT_IF(total > 50) AS big, COUNT(DISTINCT c_id) FILTER (WHERE total > 90) AS who FROM orders",
    "SELECT AVG(total) FILTER (WHERE status = 'F') / AVG(total) AS ratio FROM orders",
    "SELECT COUNT(*) FROM orders WHERE status = 'F' AND priority = '2-HIGH'",
    "SELECT COUNT(*) FROM orders WHERE NOT (status IN ('F', 'O') OR clerk NOT IN (1, 2, 3)) AND total <> 0",
]
GOLDEN["ratios and outer expressions"] = [
    "SELECT SUM(total) / COUNT(*) AS mean, 100.0 * SUM(CASE WHEN status = 'F' THEN 1 ELSE 0 END) / "
    "COUNT(*) AS pct FROM orders",
    "SELECT status, ROUND(AVG(total), 2) AS m, COUNT(*) * 2 + 1 AS k FROM orders GROUP BY status ORDER "
    "BY k DESC, status",
    "SELECT CASE WHEN COUNT(*) > 50 THEN 'many' ELSE 'few' END AS verdict FROM orders",
    "SELECT SQRT(VAR_POP(clerk)) - STDDEV_POP(clerk) AS zero, GREATEST(COUNT(*), 1) AS n FROM orders",
    "SELECT priority, SUM(total) / NULLIF(COUNT(DISTINCT c_id), 0) AS each FROM orders GROUP BY priority",
]
GOLDEN["having, order, limit"] = [
    "SELECT clerk, COUNT(*) AS n FROM orders GROUP BY clerk HAVING COUNT(*) > 7 ORDER BY clerk",
    "SELECT part, SUM(qty) AS q FROM lineitem GROUP BY part ORDER BY q DESC LIMIT 2",
    "SELECT nation, COUNT(*) AS n FROM customer GROUP BY nation ORDER BY n, nation DESC LIMIT 3 OFFSET 1",
    "SELECT status FROM orders GROUP BY status ORDER BY SUM(total) DESC LIMIT 1",
    "SELECT status, AVG(total) AS m FROM orders GROUP BY status HAVING AVG(total) > (SELECT 10) AND m < "
    "1000 ORDER BY 1",
]
GOLDEN["shares"] = [
    "SELECT status, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM orders GROUP BY status",
    "SELECT status, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM orders) AS share FROM orders GROUP BY status",
    "SELECT part, SUM(qty) AS q, SUM(SUM(qty)) OVER (ORDER BY part) AS running FROM lineitem GROUP BY part",
    "SELECT part, RANK() OVER (ORDER BY SUM(qty) DESC) AS place FROM lineitem GROUP BY part",
    "SELECT status, priority, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY status) AS s FROM orders "
    "GROUP BY status, priority HAVING COUNT(*) > 0",
]
GOLDEN["public joins"] = [
    "SELECT n.region, COUNT(*) AS n FROM customer c JOIN nation n ON c.nation = n.n_id GROUP BY n.region",
    "SELECT nname, SUM(balance) AS b FROM customer JOIN nation ON nation = n_id GROUP BY nname",
    "SELECT COUNT(*) FROM customer c LEFT JOIN nation n ON c.nation = n.n_id AND n.region = 'ASIA' WHERE "
    "n.n_id IS NULL",
    "SELECT COUNT(*) FROM customer WHERE nation IN (SELECT n_id FROM nation WHERE region LIKE 'A%A')",
    "SELECT COUNT(*) FROM customer WHERE nation NOT IN (SELECT n_id FROM nation WHERE region = 'AMERICA')",
    "SELECT COUNT(*) FROM customer c SEMI JOIN nation n ON c.nation = n.n_id AND n.nname > 'C'",
    "SELECT COUNT(*) FROM customer c ANTI JOIN nation n ON c.nation = n.n_id AND n.region = 'EUROPE'",
    "SELECT n.nname, COUNT(c.c_id) AS n FROM nation n LEFT JOIN customer c ON c.nation = n.n_id GROUP BY n.nname",
    "SELECT a.region, b.region AS other, COUNT(*) AS n FROM customer c JOIN nation a ON c.nation = a.n_id "
    "JOIN nation b ON c.nation + 1 = b.n_id GROUP BY 1, 2 HAVING n > 0",
    "SELECT COUNT(*) FROM customer c CROSS JOIN nation n WHERE n.n_id <= c.nation",
    "SELECT region, COUNT(*) AS n FROM customer JOIN (SELECT n_id AS nation, LOWER(region) AS region "
    "FROM nation) x USING (nation) GROUP BY region",
    "SELECT COUNT(*) FROM customer WHERE balance > (SELECT AVG(n_id) FROM nation)",
    # Public rows repeat each row: texts are cut where they are scanned.
    "SELECT COUNT(*) FROM customer c JOIN nation n ON n.n_id <= c.nation WHERE LEFT(c.phone, 2) = '12' AND "
    "LEFT(n.nname, 1) < 'C'",
]
GOLDEN["joins on the unit"] = [
    "SELECT segment, SUM(total) AS t FROM customer c JOIN orders o ON c.c_id = o.c_id GROUP BY segment",
    "SELECT COUNT(*) FROM customer JOIN orders USING (c_id) WHERE balance > 10 AND status = 'F'",
    "SELECT c.segment, COUNT(*) AS n FROM orders o, customer c WHERE o.c_id = c.c_id AND o.total > "
    "c.balance GROUP BY c.segment",
    "SELECT COUNT(*) FROM customer c LEFT JOIN orders o ON c.c_id = o.c_id AND o.status = 'P' WHERE o.o_id IS NULL",
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.c_id = b.c_id AND a.day < b.day",
    "SELECT COUNT(o.o_id), COUNT(*) FROM orders o RIGHT JOIN customer c ON c.c_id = o.c_id AND o.clerk = 3",
    "SELECT COUNT(*) FROM (SELECT * FROM orders WHERE clerk = 1) a FULL JOIN (SELECT * FROM customer "
    "WHERE nation = 2) b ON a.c_id = b.c_id",
]
GOLDEN["TPC-H"] = [
    # Q1: the pricing summary
    "SELECT returned, line, SUM(qty) AS sum_qty, SUM(price) AS base, SUM(price * (1 - discount)) AS "
    "disc, AVG(qty) AS avg_qty, "
    "AVG(price) AS avg_price, AVG(discount) AS avg_disc, COUNT(*) AS n FROM lineitem WHERE ship <= DATE '1996-09-02' "
    "GROUP BY returned, line ORDER BY returned, line",
    # Q3: by order date of a segment's customers
    "SELECT EXTRACT(year FROM o.day) AS y, SUM(l.price * (1 - l.discount)) AS revenue FROM customer c, "
    "orders o, lineitem l "
    "WHERE c.segment = 'HOME' AND c.c_id = o.c_id AND l.o_id = o.o_id AND o.day < DATE '1996-06-15' "
    "GROUP BY y HAVING COUNT(*) > 0",
    # Q4: orders with a late line
    "SELECT priority, COUNT(*) AS n FROM orders o WHERE day >= DATE '1995-07-01' AND EXISTS (SELECT 1 "
    "FROM lineitem l "
    "JOIN orders q ON l.o_id = q.o_id WHERE q.c_id = o.c_id AND l.o_id = o.o_id AND l.ship > o.day) "
    "GROUP BY priority ORDER BY priority",
    # Q5: revenue by nation of a region
    "SELECT n.nname, SUM(l.price * (1 - l.discount)) AS revenue FROM customer c JOIN orders o ON c.c_id = o.c_id "
    "JOIN lineitem l ON l.o_id = o.o_id JOIN nation n ON c.nation = n.n_id WHERE n.region = 'AMERICA' "
    "GROUP BY n.nname "
    "HAVING COUNT(*) > 0 ORDER BY revenue DESC",
    # Q6: the forecast
    "SELECT SUM(price * discount) AS revenue FROM lineitem WHERE ship >= '1995-02-01' AND ship < '1996-02-01' "
    "AND discount BETWEEN 0.03 AND 0.07 AND qty < 24",
    # Q7: by year and nation
    "SELECT nname, EXTRACT(year FROM ship) AS y, SUM(price * (1 - discount)) AS revenue FROM lineitem l "
    "JOIN orders o "
    "ON l.o_id = o.o_id JOIN customer c ON c.c_id = o.c_id JOIN nation n ON n.n_id = c.nation WHERE "
    "nname IN ('FRANCE', 'INDIA') "
    "AND ship IS NOT NULL GROUP BY nname, y HAVING COUNT(*) > 0",
    # Q10: what came back, by segment
    "SELECT segment, SUM(l.price) AS lost FROM customer c JOIN orders o USING (c_id) JOIN lineitem l ON "
    "l.o_id = o.o_id "
    "WHERE l.returned GROUP BY segment ORDER BY lost DESC",
    # Q12: shipping modes and order priority
    "SELECT l.part, SUM(CASE WHEN o.priority = '1-URGENT' THEN 1 ELSE 0 END) AS high, SUM(CASE WHEN "
    "o.priority <> '1-URGENT' "
    "THEN 1 ELSE 0 END) AS low FROM orders o JOIN lineitem l ON l.o_id = o.o_id GROUP BY l.part",
    # Q13: the distribution of customers by their number of orders
    "SELECT k, COUNT(*) AS customers FROM (SELECT c.c_id, LEAST(COUNT(o.o_id), 9) AS k FROM customer c "
    "LEFT JOIN orders o "
    "ON c.c_id = o.c_id AND o.priority <> '1-URGENT' GROUP BY c.c_id) GROUP BY k HAVING COUNT(*) > 0",
    # Q14: the share of one kind of part
    "SELECT 100.0 * SUM(CASE WHEN part LIKE 'g%' THEN price * (1 - discount) ELSE 0 END) / SUM(price * "
    "(1 - discount)) AS promo "
    "FROM lineitem WHERE ship >= DATE '1995-09-01'",
    # Q18: large customers
    "SELECT COUNT(*) AS customers, SUM(LEAST(q, 512)) AS qty FROM (SELECT o.c_id, SUM(l.qty) AS q FROM "
    "orders o JOIN lineitem l "
    "ON l.o_id = o.o_id GROUP BY o.c_id HAVING SUM(l.qty) > 150)",
    # Q19: one of several kinds of line
    "SELECT SUM(price * (1 - discount)) AS revenue FROM lineitem WHERE (part = 'bolt' AND qty BETWEEN 1 AND 11) "
    "OR (part = 'gear' AND qty BETWEEN 10 AND 20) OR (part IN ('nut', 'rod') AND qty > 20)",
    # Q22: customers without an order of a kind
    "SELECT LEFT(phone, 2) AS code, COUNT(*) AS n, SUM(balance) AS b FROM customer c WHERE balance > 0 "
    "AND NOT EXISTS "
    "(SELECT 1 FROM orders o WHERE o.c_id = c.c_id AND o.total > 90) AND phone IS NOT NULL GROUP BY code "
    "HAVING COUNT(*) > 0",
]
CODES = ["10", "11", "12", "13", "14", "15"]
GOLDEN["TPC-H"][-1] = (str(GOLDEN["TPC-H"][-1]), {"keys": {"code": CODES}})
GOLDEN["sub-queries and WITH"] = [
    "SELECT AVG(t) FROM (SELECT total AS t FROM orders WHERE status = 'F') WHERE t > 10",
    "WITH f AS (SELECT * FROM orders WHERE status = 'F') SELECT priority, COUNT(*) AS n FROM f GROUP BY "
    "priority HAVING n > 0",
    "WITH a AS (SELECT c_id, total FROM orders), b AS (SELECT c_id, total * 2 AS t FROM a) SELECT SUM(t) "
    "FROM b WHERE t < 100",
    "WITH k(who, much) AS (SELECT c_id, balance FROM customer) SELECT AVG(much) FROM k",
    "SELECT COUNT(*) FROM (SELECT o.*, c.segment FROM orders o JOIN customer c ON o.c_id = c.c_id) WHERE "
    "segment = 'TOYS' AND clerk > 2",
    "WITH s AS (SELECT status, COUNT(*) AS n FROM orders GROUP BY status), t AS (SELECT SUM(n) AS all_n FROM s) "
    "SELECT s.status, s.n / t.all_n AS share FROM s CROSS JOIN t",
    "WITH s AS (SELECT status, AVG(total) AS m FROM orders GROUP BY status), r AS (SELECT *, "
    "ROW_NUMBER() OVER (ORDER BY m DESC) AS k FROM s) "
    "SELECT status FROM r WHERE k = 1",
]
GOLDEN["scalar sub-queries"] = [
    "SELECT COUNT(*) FROM orders WHERE clerk > (SELECT AVG(clerk) FROM orders)",
    "SELECT COUNT(*) FROM customer c WHERE (SELECT COUNT(*) FROM orders o WHERE o.c_id = c.c_id AND "
    "o.status = 'F') >= 2",
    "SELECT AVG(LEAST(m, 128)) FROM (SELECT c.c_id, (SELECT MAX(o.total) FROM orders o WHERE o.c_id = "
    "c.c_id) AS m FROM customer c)",
    "SELECT (SELECT COUNT(*) FROM orders) - (SELECT COUNT(*) FROM customer) AS more",
]
GOLDEN["semi and anti"] = [
    "SELECT COUNT(*) FROM customer WHERE c_id IN (SELECT c_id FROM orders WHERE total > 80)",
    "SELECT COUNT(*) FROM customer WHERE c_id NOT IN (SELECT c_id FROM orders WHERE status = 'P')",
    "SELECT SUM(total) FROM orders o WHERE EXISTS (SELECT 1 FROM customer c WHERE c.c_id = o.c_id AND "
    "c.segment = 'AUTO')",
    "SELECT COUNT(*) FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.c_id = c.c_id AND "
    "o.clerk > c.nation)",
    "SELECT COUNT(*) FROM orders WHERE c_id IN (SELECT c_id FROM orders GROUP BY c_id HAVING SUM(total) > 150)",
    "SELECT COUNT(*) FROM customer SEMI JOIN orders USING (c_id)",
]
GOLDEN["per-unit groups"] = [
    "SELECT AVG(n) FROM (SELECT c_id, LEAST(COUNT(*), 10) AS n FROM orders GROUP BY c_id)",
    "SELECT COUNT(*) FROM (SELECT c_id, SUM(total) AS t FROM orders GROUP BY c_id) WHERE t > 120",
    "WITH per AS (SELECT c_id, status, COUNT(*) AS n, MAX(total) AS top FROM orders GROUP BY c_id, status) "
    "SELECT status, COUNT(*) AS pairs, AVG(top) AS top FROM per WHERE n >= 1 GROUP BY status",
    "SELECT SUM(LEAST(a, 128)) FROM (SELECT c_id, AVG(total) AS a FROM orders GROUP BY c_id HAVING "
    "COUNT(DISTINCT status) > 1)",
    "SELECT late, COUNT(*) FROM (SELECT c_id, BOOL_OR(total > 95) AS late FROM orders GROUP BY c_id) GROUP BY late",
    "SELECT AVG(LEAST(GREATEST(d, 0), 1024)) FROM (SELECT c_id, MAX(day) - MIN(day) AS d FROM orders GROUP BY c_id)",
    "SELECT segment, AVG(LEAST(n, 8)) AS n FROM (SELECT c.c_id, c.segment, COUNT(*) AS n FROM customer c "
    "JOIN orders o "
    "ON c.c_id = o.c_id WHERE o.total > 20 GROUP BY c.c_id, c.segment) GROUP BY segment",
    "SELECT COUNT(*) FILTER (WHERE n > 1) FROM (SELECT c_id, COUNT(*) FILTER (WHERE status = 'F') AS n "
    "FROM orders GROUP BY c_id)",
]
GOLDEN["windows below"] = [
    "SELECT status, COUNT(*) AS n FROM (SELECT c_id, status, ROW_NUMBER() OVER (PARTITION BY c_id ORDER "
    "BY day) AS k FROM orders) "
    "WHERE k = 1 GROUP BY status",
    "SELECT SUM(LEAST(GREATEST(total - before, -128), 128)) FROM (SELECT c_id, total, LAG(total) OVER "
    "(PARTITION BY c_id ORDER BY day) "
    "AS before FROM orders)",
    "SELECT COUNT(*) FROM (SELECT c_id, total, AVG(total) OVER (PARTITION BY c_id) AS m FROM orders) WHERE total > m",
    "SELECT COUNT(*) FROM (SELECT *, SUM(total) OVER (PARTITION BY c_id ORDER BY day) AS running FROM "
    "orders) WHERE running > 100",
    "SELECT COUNT(*) FROM (SELECT c_id, total FROM orders QUALIFY RANK() OVER (PARTITION BY c_id ORDER "
    "BY total DESC) = 1)",
    "SELECT AVG(LEAST(GREATEST(gap, 0), 1024)) FROM (SELECT c_id, day - LAG(day) OVER w AS gap FROM "
    "orders WINDOW w AS (PARTITION BY c_id ORDER BY day))",
    "SELECT COUNT(*) FROM (SELECT c_id, status, FIRST_VALUE(status) OVER (PARTITION BY c_id ORDER BY "
    "day) AS f FROM orders) WHERE status = f",
    "SELECT SUM(LEAST(m, 128)) FROM (SELECT c_id, MAX(total) OVER (PARTITION BY c_id ORDER BY day ROWS "
    "BETWEEN 1 PRECEDING AND CURRENT ROW) "
    "AS m FROM orders)",
]
GOLDEN["set operations below"] = [
    "SELECT COUNT(*) FROM (SELECT c_id FROM orders UNION SELECT c_id FROM customer)",
    "SELECT SUM(LEAST(GREATEST(v, -16), 128)) FROM (SELECT c_id, total AS v FROM orders UNION ALL SELECT "
    "c_id, balance FROM customer)",
    "SELECT COUNT(*) FROM (SELECT c_id FROM customer EXCEPT SELECT c_id FROM orders WHERE status = 'F')",
    "SELECT COUNT(*) FROM (SELECT c_id, clerk FROM orders INTERSECT SELECT c_id, nation FROM customer)",
    "SELECT COUNT(*) FROM (SELECT c_id, status FROM orders EXCEPT ALL SELECT c_id, 'F' FROM customer)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT c_id, status FROM orders)",
]
GOLDEN["several private aggregates"] = [
    "SELECT a.status, a.n, b.m FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) a JOIN "
    "(SELECT status, AVG(total) AS m FROM orders WHERE clerk > 2 GROUP BY status) b USING (status)",
    "SELECT status, COUNT(*) AS n FROM orders GROUP BY status UNION ALL SELECT 'all', COUNT(*) FROM orders",
    "SELECT segment, COUNT(*) AS n FROM customer GROUP BY segment INTERSECT SELECT segment, COUNT(*) "
    "FROM customer WHERE c_id > 0 GROUP BY segment",
    "SELECT x.segment, x.n, y.n AS orders, y.n / x.n AS each FROM (SELECT segment, COUNT(*) AS n FROM "
    "customer GROUP BY segment) x "
    "LEFT JOIN (SELECT segment, COUNT(*) AS n FROM customer JOIN orders USING (c_id) GROUP BY segment) y "
    "ON x.segment = y.segment",
    "WITH c AS (SELECT status, COUNT(*) AS k FROM orders GROUP BY status) SELECT COUNT(*) FROM orders "
    "JOIN c USING (status) WHERE k > 20",
    "SELECT n.region, SUM(s.n) AS n FROM (SELECT nation, COUNT(*) AS n FROM customer GROUP BY nation) s "
    "JOIN nation n ON s.nation = n.n_id GROUP BY n.region",
    "SELECT MAX(n) FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status)",
]
GOLDEN["grouping sets"] = [
    "SELECT status, priority, COUNT(*) AS n FROM orders GROUP BY ROLLUP (status, priority) HAVING COUNT(*) > 0",
    # Four sets share the amount, each moved by up to 1,600 rows: what is left of the noise is below 0.05.
    (
        "SELECT status, clerk, SUM(total) AS t FROM orders GROUP BY CUBE (status, clerk) HAVING COUNT(*) > 0",
        {"tolerance": 5e-2},
    ),
    "SELECT segment, nation, COUNT(*) AS n, GROUPING(segment) AS g FROM customer GROUP BY GROUPING SETS "
    "((segment), (nation), ())",
]
GOLDEN["parameters"] = [
    ("SELECT COUNT(*) FROM orders WHERE total > $low AND status = $status", {"params": {"low": 25, "status": "F"}}),
    (
        "SELECT COUNT(*) FROM orders WHERE day >= ? AND clerk IN (?, ?)",
        {
            "params": ["1995-06-01", 2, 3],
            "plain": "SELECT COUNT(*) FROM orders WHERE day >= '1995-06-01' AND clerk IN (2, 3)",
        },
    ),
    ("SELECT part, SUM(LEAST(qty, $cap)) AS q FROM lineitem GROUP BY part", {"params": {"cap": 16}}),
]
GOLDEN["weights"] = [
    ("SELECT status, COUNT(*) AS n, AVG(total) AS m FROM orders GROUP BY status", {"weights": {"n": 9}}),
]
GOLDEN["public alone"] = [
    "SELECT region, COUNT(*) AS n FROM nation GROUP BY region",
    "SELECT nname, RANK() OVER (PARTITION BY region ORDER BY nname) AS k FROM nation",
]
GOLDEN["everyday functions"] = [
    ("SELECT SUM(POWER(qty, 2)) AS s, AVG(qty ** 3) AS m FROM lineitem", {"tolerance": 1e-3}),
    "SELECT COUNT(*) FROM orders WHERE day + INTERVAL '3' MONTH > TIMESTAMP '1996-01-01 00:00:00'",
    "SELECT COUNT(*) FROM orders WHERE moment - day < INTERVAL '12' HOUR",
    ("SELECT AVG(EPOCH(day) / 86400) AS m, AVG(EPOCH(moment - day)) AS s FROM orders", {"tolerance": 1e-3}),
    "SELECT SPLIT_PART(priority, '-', 2) AS p, COUNT(*) AS n FROM orders GROUP BY p",
    "SELECT CONCAT(status, '/', priority) AS k, COUNT(*) AS n FROM orders GROUP BY k",
    "SELECT COUNT(*) FROM orders WHERE REGEXP_MATCHES(priority, '^[1-2]-') AND LIST_CONTAINS(['F', 'O'], status)",
]
GOLDEN["everyday texts"] = [
    (
        "SELECT ENTROPY(status) AS bits FROM orders",
        {"tolerance": 1e-3, "plain": "SELECT ENTROPY(status) AS bits FROM orders"},
    ),
    "SELECT v.word, COUNT(*) AS n FROM orders o JOIN (VALUES ('F', 'filled'), ('O', 'open')) AS v (s, word) "
    "ON o.status = v.s GROUP BY v.word",
    (
        "SELECT COUNT(*) FROM orders WHERE DATEDIFF(day, DATE '1995-01-01') > 100",
        {"plain": "SELECT COUNT(*) FROM orders WHERE DATE_DIFF('day', DATE '1995-01-01', day) > 100"},
    ),
    (
        "SELECT status, APPROX_COUNT_DISTINCT(c_id) AS n FROM orders GROUP BY status",
        {"plain": "SELECT status, COUNT(DISTINCT c_id) AS n FROM orders GROUP BY status"},
    ),
    (
        "SELECT TO_CHAR(moment, 'YYYY-MM') AS m, COUNT(*) AS n FROM orders GROUP BY m HAVING n > 0",
        {"plain": "SELECT STRFTIME(moment, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m"},
    ),
    (
        "SELECT DATE_FORMAT(moment, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m HAVING n > 0",
        {"plain": "SELECT STRFTIME(moment, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY m"},
    ),
    (
        "SELECT COUNT(*) FROM orders WHERE priority LIKE ANY ('1-%', '%LOW')",
        {"plain": "SELECT COUNT(*) FROM orders WHERE priority LIKE '1-%' OR priority LIKE '%LOW'"},
    ),
    (
        "SELECT SUM(EXTRACT(YEAR FROM AGE(DATE '1999-06-15', day))) AS years FROM orders",
        {"plain": "SELECT SUM(DATE_PART('year', AGE(TIMESTAMP '1999-06-15', CAST(day AS TIMESTAMP)))) FROM orders"},
    ),
    (
        "SELECT priority, COUNT(*) AS n, AVG(total) AS m FROM orders GROUP BY priority",
        {
            "weight": "clerk",
            "tolerance": 1e-3,
            "plain": "SELECT priority, SUM(clerk) AS n, SUM(total * clerk) / SUM(clerk) AS m FROM orders "
            "GROUP BY priority",
        },
    ),
    (
        "SELECT TOP 2 part, COUNT(*) AS n FROM lineitem GROUP BY part ORDER BY part",
        {"plain": "SELECT part, COUNT(*) AS n FROM lineitem GROUP BY part ORDER BY part LIMIT 2"},
    ),
]
GOLDEN["zones"] = [
    "SELECT COUNT(*) FROM orders WHERE moment AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Rome' >= '1995-07-01'",
    (
        "SELECT EXTRACT(hour FROM moment AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS h, COUNT(*) AS n "
        "FROM orders GROUP BY h HAVING n > 0"
    ),
    "SELECT COUNT(*) FROM orders WHERE moment < TIMESTAMP '1996-03-01 00:00' AT TIME ZONE 'Asia/Kolkata'",
]
GOLDEN["empty"] = [
    "SELECT COUNT(*), COUNT(clerk), COUNT(DISTINCT c_id) FROM orders WHERE total < 0",
    "SELECT COUNT(*) FROM orders WHERE FALSE",
]

QUERIES: list[tuple[str, dict[str, Any]]] = [
    (entry, {}) if isinstance(entry, str) else entry for entries in GOLDEN.values() for entry in entries
]
