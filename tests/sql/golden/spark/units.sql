WITH r1 AS (
  SELECT `id` AS unit, `ward` AS c0
  FROM visits
  WHERE `id` IS NOT NULL
),
filtered AS (
  SELECT unit, `c0` AS k0
  FROM r1
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
  SELECT unit, g0, 1 AS m0
  FROM per_unit
)
SELECT g0, coalesce(sum(try_cast(m0 AS DECIMAL(28, 0))), 0) AS m0
FROM bounded
GROUP BY g0
