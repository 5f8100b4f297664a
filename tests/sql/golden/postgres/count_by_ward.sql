WITH r1 AS (
  SELECT "id" AS unit, "ward" AS c1, "age" AS c0
  FROM visits
  WHERE "id" IS NOT NULL
),
r2 AS (
  SELECT *
  FROM r1
  WHERE coalesce((CAST("c0" AS double precision) > CAST(20 AS double precision)), FALSE)
),
filtered AS (
  SELECT unit, "c1" AS k0
  FROM r2
),
owned AS (
  SELECT *
  FROM filtered
),
d0 AS (
  SELECT key, min(g0) AS g0 FROM (
    SELECT (CAST(key AS text) COLLATE "C") AS key, g0
    FROM (VALUES ((CAST('A' AS text) COLLATE "C"), 0), ((CAST('B' AS text) COLLATE "C"), 1), ((CAST('C' AS text) COLLATE "C"), 2), (NULL, 3)) AS d(key, g0)
  ) AS known GROUP BY key
),
placed AS (
  SELECT owned.*, d0.g0
  FROM owned
  JOIN d0 ON (owned.k0 IS NULL) = (d0.key IS NULL) AND coalesce(owned.k0, CAST('' AS text) COLLATE "C") = coalesce(d0.key, CAST('' AS text) COLLATE "C")
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
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY md5(concat_ws(chr(31), CAST(unit AS text), CAST(g0 AS text))) COLLATE "C", g0) AS place FROM bounded) AS ranked
  WHERE place <= 2
)
SELECT g0, coalesce(sum(m0), 0) AS m0
FROM kept
GROUP BY g0
