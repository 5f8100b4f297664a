WITH r1 AS (
  SELECT `ward` AS c2, `age` AS c0, `n` AS c1
  FROM visits
),
filtered AS (
  SELECT `c2` AS k0, rint(try_cast(`c1` AS DOUBLE) * CAST('1.0' AS DOUBLE)) AS x0, (`c0` + 0.0) AS y0, `c1` AS y1
  FROM r1
),
owned AS (
  SELECT *, CASE WHEN x0 IS NULL OR isnan(x0) THEN NULL WHEN x0 <= 0 THEN -50L WHEN x0 >= 100 THEN 50L ELSE try_subtract(try_cast(x0 AS BIGINT), 50L) END AS v0
  FROM filtered
),
d0 AS (
  SELECT key, min(g0) AS g0 FROM (
    SELECT (CASE WHEN is_valid_utf8(try_cast(key AS STRING)) THEN try_cast(key AS STRING) END) AS key, g0
    FROM (VALUES ('A', 0), ('B', 1), ('C', 2), (NULL, 3)) AS d(key, g0)
  ) AS known GROUP BY key
),
placed AS (
  SELECT owned.*, d0.g0
  FROM owned
  JOIN d0 ON owned.k0 <=> d0.key
),
bounded AS (
  SELECT g0, v0 AS m0, CASE WHEN y0 IS NOT NULL THEN 1 END AS m1, CASE WHEN y1 IS NOT NULL THEN 1 END AS m2
  FROM placed
)
SELECT g0, coalesce(sum(try_cast(m0 AS DECIMAL(28, 0))), 0) AS m0, coalesce(sum(try_cast(m1 AS DECIMAL(28, 0))), 0) AS m1, coalesce(sum(try_cast(m2 AS DECIMAL(28, 0))), 0) AS m2
FROM bounded
GROUP BY g0
