WITH r1 AS (
  SELECT `id` AS unit, `ward` AS c3, `age` AS c0, `n` AS c1, `ok` AS c2
  FROM visits
  WHERE `id` IS NOT NULL
),
filtered AS (
  SELECT unit, `c3` AS k0, `c2` AS k1, rint(try_cast(`c0` AS DOUBLE) * CAST('32768.0' AS DOUBLE)) AS x0, rint(try_cast(`c1` AS DOUBLE) * CAST('1.0' AS DOUBLE)) AS x1, (`c0` + 0.0) AS y0, `c1` AS y1
  FROM r1
),
owned AS (
  SELECT *, CASE WHEN x0 IS NULL OR isnan(x0) THEN NULL WHEN x0 <= 0 THEN -2097152L WHEN x0 >= 4194304 THEN 2097152L ELSE try_subtract(try_cast(x0 AS BIGINT), 2097152L) END AS v0, CASE WHEN x1 IS NULL OR isnan(x1) THEN NULL WHEN x1 <= 0 THEN -50L WHEN x1 >= 100 THEN 50L ELSE try_subtract(try_cast(x1 AS BIGINT), 50L) END AS v1
  FROM filtered
),
d0 AS (
  SELECT key, min(g0) AS g0 FROM (
    SELECT (CASE WHEN is_valid_utf8(try_cast(key AS STRING)) THEN try_cast(key AS STRING) END) AS key, g0
    FROM (VALUES ('A', 0), ('B', 1), ('C', 2), (NULL, 3)) AS d(key, g0)
  ) AS known GROUP BY key
),
d1 AS (
  SELECT key, min(g1) AS g1 FROM (
    SELECT CAST(key AS BOOLEAN) AS key, g1
    FROM (VALUES (TRUE, 0), (FALSE, 1), (NULL, 2)) AS d(key, g1)
  ) AS known GROUP BY key
),
placed AS (
  SELECT owned.*, d0.g0, d1.g1
  FROM owned
  JOIN d0 ON owned.k0 <=> d0.key
  JOIN d1 ON owned.k1 <=> d1.key
),
per_unit AS (
  SELECT unit, g0, g1, count(*) AS n, count(v0) AS n0, sum(try_cast(v0 AS DECIMAL(28, 0))) AS s0, count(v1) AS n1, sum(try_cast(v1 AS DECIMAL(28, 0))) AS s1, count(y0) AS n2, count(y1) AS n3
  FROM placed
  GROUP BY g0, g1, unit
),
bounded AS (
  SELECT unit, g0, g1, CASE WHEN n0 > 10 THEN try_cast(try_multiply(s0, 10) div try_cast(greatest(n0, 1) AS DECIMAL(20, 0)) AS DECIMAL(38, 0)) ELSE s0 END AS m0, CASE WHEN n1 > 10 THEN try_cast(try_multiply(s1, 10) div try_cast(greatest(n1, 1) AS DECIMAL(20, 0)) AS DECIMAL(38, 0)) ELSE s1 END AS m1, least(n2, 10) AS m2, least(n3, 10) AS m3
  FROM per_unit
),
kept AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY md5(CAST(concat_ws(chr(31), CAST(unit AS STRING), CAST(g0 AS STRING), CAST(g1 AS STRING)) AS BINARY)), g0, g1) AS place FROM bounded) AS ranked
  WHERE place <= 3
)
SELECT g0, g1, coalesce(sum(try_cast(m0 AS DECIMAL(28, 0))), 0) AS m0, coalesce(sum(try_cast(m1 AS DECIMAL(28, 0))), 0) AS m1, coalesce(sum(try_cast(m2 AS DECIMAL(28, 0))), 0) AS m2, coalesce(sum(try_cast(m3 AS DECIMAL(28, 0))), 0) AS m3
FROM kept
GROUP BY g0, g1
