WITH r1 AS (
  SELECT (CASE WHEN strlen(CAST("ward" AS VARCHAR)) > 65536 THEN TRY(left(CAST("ward" AS VARCHAR), 65536)) ELSE CAST("ward" AS VARCHAR) END) AS c2, (CASE WHEN isnan("age") THEN NULL ELSE CAST("age" AS DOUBLE) + 0.0 END) AS c0, CAST("n" AS BIGINT) AS c1
  FROM source0
),
filtered AS (
  SELECT "c2" AS k0, round_even(CAST("c1" AS DOUBLE) * CAST(1.0 AS DOUBLE), 0) AS x0, "c0" AS y0, "c1" AS y1
  FROM r1
),
owned AS (
  SELECT *, CASE WHEN x0 IS NULL THEN NULL WHEN x0 <= 0 THEN -50 WHEN x0 >= 100 THEN 50 ELSE TRY_CAST(x0 - CAST(50.0 AS DOUBLE) AS BIGINT) END AS v0
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
bounded AS (
  SELECT g0, v0 AS m0, CASE WHEN y0 IS NOT NULL THEN 1 END AS m1, CASE WHEN y1 IS NOT NULL THEN 1 END AS m2
  FROM placed
)
SELECT g0, CAST(coalesce(sum(m0), 0) AS HUGEINT) AS m0, CAST(coalesce(sum(m1), 0) AS HUGEINT) AS m1, CAST(coalesce(sum(m2), 0) AS HUGEINT) AS m2
FROM bounded
GROUP BY g0
