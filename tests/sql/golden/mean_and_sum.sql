WITH r1 AS (
  SELECT "id" AS unit, (CASE WHEN strlen(CAST("ward" AS VARCHAR)) > 65536 THEN TRY(left(CAST("ward" AS VARCHAR), 65536)) ELSE CAST("ward" AS VARCHAR) END) AS c3, (CASE WHEN isnan("age") THEN NULL ELSE CAST("age" AS DOUBLE) + 0.0 END) AS c0, CAST("n" AS BIGINT) AS c1, "ok" AS c2
  FROM source0
  WHERE "id" IS NOT NULL
),
filtered AS (
  SELECT unit, "c3" AS k0, "c2" AS k1, round_even(CAST("c0" AS DOUBLE) * CAST(32768.0 AS DOUBLE), 0) AS x0, round_even(CAST("c1" AS DOUBLE) * CAST(1.0 AS DOUBLE), 0) AS x1, "c0" AS y0, "c1" AS y1
  FROM r1
),
owned AS (
  SELECT *, CASE WHEN x0 IS NULL THEN NULL WHEN x0 <= 0 THEN -2097152 WHEN x0 >= 4194304 THEN 2097152 ELSE TRY_CAST(x0 - CAST(2097152.0 AS DOUBLE) AS BIGINT) END AS v0, CASE WHEN x1 IS NULL THEN NULL WHEN x1 <= 0 THEN -50 WHEN x1 >= 100 THEN 50 ELSE TRY_CAST(x1 - CAST(50.0 AS DOUBLE) AS BIGINT) END AS v1
  FROM filtered
),
d0 AS (
  SELECT key, min(g0) AS g0 FROM (
    SELECT CAST(key AS VARCHAR) AS key, g0
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
  JOIN d0 ON owned.k0 IS NOT DISTINCT FROM d0.key
  JOIN d1 ON owned.k1 IS NOT DISTINCT FROM d1.key
),
per_unit AS (
  SELECT unit, g0, g1, count(*) AS n, count(v0) AS n0, CAST(sum(v0) AS HUGEINT) AS s0, count(v1) AS n1, CAST(sum(v1) AS HUGEINT) AS s1, count(y0) AS n2, count(y1) AS n3
  FROM placed
  GROUP BY g0, g1, unit
),
bounded AS (
  SELECT unit, g0, g1, CASE WHEN n0 > 10 THEN TRY(TRY(CAST(s0 AS HUGEINT) * 10) // greatest(n0, 1)) ELSE s0 END AS m0, CASE WHEN n1 > 10 THEN TRY(TRY(CAST(s1 AS HUGEINT) * 10) // greatest(n1, 1)) ELSE s1 END AS m1, least(n2, 10) AS m2, least(n3, 10) AS m3
  FROM per_unit
),
kept AS (
  SELECT * FROM bounded
  QUALIFY row_number() OVER (PARTITION BY unit ORDER BY hash(unit, g0, g1), g0, g1) <= 3
)
SELECT g0, g1, CAST(coalesce(sum(m0), 0) AS HUGEINT) AS m0, CAST(coalesce(sum(m1), 0) AS HUGEINT) AS m1, CAST(coalesce(sum(m2), 0) AS HUGEINT) AS m2, CAST(coalesce(sum(m3), 0) AS HUGEINT) AS m3
FROM kept
GROUP BY g0, g1
