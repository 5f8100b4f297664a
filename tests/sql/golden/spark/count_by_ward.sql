WITH r1 AS (
  SELECT `id` AS unit, `ward` AS c1, `age` AS c0
  FROM visits
  WHERE `id` IS NOT NULL
),
r2 AS (
  SELECT *
  FROM r1
  WHERE coalesce((try_cast(`c0` AS DOUBLE) > try_cast(20 AS DOUBLE)), FALSE)
),
filtered AS (
  SELECT unit, `c1` AS k0
  FROM r2
),
owned AS (
  SELECT *
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
per_unit AS (
  SELECT unit, g0, count(*) AS n
  FROM placed
  GROUP BY g0, unit
),
bounded AS (
  SELECT unit, g0, least(n, 10) AS m0
  FROM per_unit
),
kept AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY md5(CAST(concat_ws(chr(31), CAST(unit AS STRING), CAST(g0 AS STRING)) AS BINARY)), g0) AS place FROM bounded) AS ranked
  WHERE place <= 2
)
SELECT g0, coalesce(sum(try_cast(m0 AS DECIMAL(28, 0))), 0) AS m0
FROM kept
GROUP BY g0
