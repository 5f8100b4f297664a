WITH r1 AS (
  SELECT "id" AS unit, (CASE WHEN strlen(CAST("ward" AS VARCHAR)) > 65536 THEN TRY(left(CAST("ward" AS VARCHAR), 65536)) ELSE CAST("ward" AS VARCHAR) END) AS c0
  FROM source0
  WHERE "id" IS NOT NULL
),
filtered AS (
  SELECT unit, "c0" AS k0
  FROM r1
),
owned AS (
  SELECT *
  FROM filtered
),
d0 AS (
  SELECT key, min(g0) AS g0 FROM (
    SELECT CAST(key AS VARCHAR) AS key, g0
    FROM (VALUES ('A', 0), ('B', 1), ('C', 2), (NULL, 3)) AS d(key, g0)
  ) AS known GROUP BY key
),
placed AS (
  SELECT owned.*, d0.g0
  FROM owned
  JOIN d0 ON owned.k0 IS NOT DISTINCT FROM d0.key
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
SELECT g0, CAST(coalesce(sum(m0), 0) AS HUGEINT) AS m0
FROM bounded
GROUP BY g0
