WITH r1 AS (
  SELECT `id` AS unit
  FROM visits
  WHERE `id` IS NOT NULL
),
filtered AS (
  SELECT unit
  FROM r1
),
owned AS (
  SELECT *
  FROM filtered
),
per_unit AS (
  SELECT unit, count(*) AS n
  FROM owned
  GROUP BY unit
),
bounded AS (
  SELECT unit, least(n, 40) AS m0
  FROM per_unit
)
SELECT coalesce(sum(try_cast(m0 AS DECIMAL(28, 0))), 0) AS m0
FROM bounded
