WITH r1 AS (
  SELECT "id" AS unit, "ward" AS c3, "age" AS c0, "n" AS c1, "ok" AS c2
  FROM visits
  WHERE "id" IS NOT NULL
),
filtered AS (
  SELECT unit, "c3" AS k0, "c2" AS k1, CAST("c0" AS double precision) AS x0, CAST("c1" AS double precision) AS x1, ("c0" + 0.0) AS y0, "c1" AS y1
  FROM r1
),
owned AS (
  SELECT *, CASE WHEN x0 IS NULL THEN NULL WHEN x0 <= CAST('0.0' AS double precision) THEN -2097152 WHEN x0 >= CAST('128.0' AS double precision) THEN 2097152 WHEN abs(x0) <= CAST('1.52587890625e-05' AS double precision) THEN -2097152 ELSE CAST(round(x0 * CAST('32768.0' AS double precision)) AS integer) - (2097152) END AS v0, CASE WHEN x1 IS NULL THEN NULL WHEN x1 <= CAST('0.0' AS double precision) THEN -50 WHEN x1 >= CAST('100.0' AS double precision) THEN 50 WHEN abs(x1) <= CAST('0.5' AS double precision) THEN -50 ELSE CAST(round(x1 * CAST('1.0' AS double precision)) AS integer) - (50) END AS v1
  FROM filtered
),
d0 AS (
  SELECT key, min(g0) AS g0 FROM (
    SELECT (CAST(key AS text) COLLATE "C") AS key, g0
    FROM (VALUES ((CAST('A' AS text) COLLATE "C"), 0), ((CAST('B' AS text) COLLATE "C"), 1), ((CAST('C' AS text) COLLATE "C"), 2), (NULL, 3)) AS d(key, g0)
  ) AS known GROUP BY key
),
d1 AS (
  SELECT key, min(g1) AS g1 FROM (
    SELECT CAST(key AS boolean) AS key, g1
    FROM (VALUES (TRUE, 0), (FALSE, 1), (NULL, 2)) AS d(key, g1)
  ) AS known GROUP BY key
),
placed AS (
  SELECT owned.*, d0.g0, d1.g1
  FROM owned
  JOIN d0 ON (owned.k0 IS NULL) = (d0.key IS NULL) AND coalesce(owned.k0, CAST('' AS text) COLLATE "C") = coalesce(d0.key, CAST('' AS text) COLLATE "C")
  JOIN d1 ON (owned.k1 IS NULL) = (d1.key IS NULL) AND coalesce(owned.k1, FALSE) = coalesce(d1.key, FALSE)
),
per_unit AS (
  SELECT unit, g0, g1, count(*) AS n, count(v0) AS n0, sum(v0) AS s0, count(v1) AS n1, sum(v1) AS s1, count(y0) AS n2, count(y1) AS n3
  FROM placed
  GROUP BY g0, g1, unit
),
bounded AS (
  SELECT unit, g0, g1, CASE WHEN n0 > 10 THEN div(CAST(s0 AS numeric) * 10, greatest(n0, 1)) ELSE s0 END AS m0, CASE WHEN n1 > 10 THEN div(CAST(s1 AS numeric) * 10, greatest(n1, 1)) ELSE s1 END AS m1, least(n2, 10) AS m2, least(n3, 10) AS m3
  FROM per_unit
),
kept AS (
  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY md5(concat_ws(chr(31), CAST(unit AS text), CAST(g0 AS text), CAST(g1 AS text))) COLLATE "C", g0, g1) AS place FROM bounded) AS ranked
  WHERE place <= 3
)
SELECT g0, g1, coalesce(sum(m0), 0) AS m0, coalesce(sum(m1), 0) AS m1, coalesce(sum(m2), 0) AS m2, coalesce(sum(m3), 0) AS m3
FROM kept
GROUP BY g0, g1
