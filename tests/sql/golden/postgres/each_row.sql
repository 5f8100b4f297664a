WITH r1 AS (
  SELECT "ward" AS c2, "age" AS c0, "n" AS c1
  FROM visits
),
filtered AS (
  SELECT "c2" AS k0, CAST("c1" AS double precision) AS x0, ("c0" + 0.0) AS y0, "c1" AS y1
  FROM r1
),
owned AS (
  SELECT *, CASE WHEN x0 IS NULL THEN NULL WHEN x0 <= CAST('0.0' AS double precision) THEN -50 WHEN x0 >= CAST('100.0' AS double precision) THEN 50 WHEN abs(x0) <= CAST('0.5' AS double precision) THEN -50 ELSE CAST(round(x0 * CAST('1.0' AS double precision)) AS integer) - (50) END AS v0
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
bounded AS (
  SELECT g0, v0 AS m0, CASE WHEN y0 IS NOT NULL THEN 1 END AS m1, CASE WHEN y1 IS NOT NULL THEN 1 END AS m2
  FROM placed
)
SELECT g0, coalesce(sum(m0), 0) AS m0, coalesce(sum(m1), 0) AS m1, coalesce(sum(m2), 0) AS m2
FROM bounded
GROUP BY g0
