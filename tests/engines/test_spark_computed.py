"""Spark: what a data frame computes fails on no row, and no row decides about another's; what may is refused.

A frame keeps the ANSI mode of its session, which Spark 4 has on: a text that is no number ended every question.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Window, functions as f

import hubbub as hb
from engines.test_spark_files import asked
from hubbub.engines.spark.computed import _kind
from hubbub.engines.spark.frames import read_by_rows
from hubbub.engines.spark.session import FILTERED

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")

COUNTED = "SELECT COUNT(*) AS n FROM v"
WORST = """SELECT * FROM VALUES
 (1L, 1, 1.5D, 'a,b', DATE'2020-01-01', timestamp_micros(1), 1.50BD, array(1, 2), X'61', true),
 (9223372036854775807L, 2147483647, double('NaN'), 'abc', date_from_unix_date(2147483647),
  timestamp_micros(9223372036854775807L), CAST(99999999999999999999999999999999999.99 AS DECIMAL(38,2)), array(),
  X'ff', false),
 (-9223372036854775807L - 1L, -2147483648, double('Infinity'), '', date_from_unix_date(-2147483648),
  timestamp_micros(-9223372036854775807L - 1L), CAST(-99999999999999999999999999999999999.99 AS DECIMAL(38,2)),
  CAST(NULL AS ARRAY<INT>), X'', NULL),
 (0L, 0, -0.0D, '-1', DATE'0001-01-01', timestamp_micros(0), 0.00BD, array(NULL), NULL, NULL),
 (2L, 2, -1D, CAST(X'ffc3' AS STRING), DATE'9999-12-31', timestamp_micros(2), 1.00BD, array(3), X'c3', true),
 (6000000L, 6000000, 0.5D, 'aaaa', DATE'2020-01-01', timestamp_micros(1), 1.50BD, array(1, 2), X'61', true),
 (3L, 300000, 1e308D, 'ß😀,\u0000', DATE'1582-10-10', timestamp_micros(3), 9.99BD, array(-1), X'00', true),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) AS t(l, i, x, s, d, t, dec, a, b, bo)"""
FINE = """l|x > 1|i between 0 and 5|s in ('a', 'b')|s = 'a' and not bo or x <=> null|coalesce(s, 'x')|d > '2020-01-01'
case when x > 1 then 'a' else s end|if(isnan(x), null, x)|cast(i as bigint)|cast(i as double)|cast(i as decimal(10, 0))
named.q|named.q = i|nanvl(x, 0.5D)|b < X'62'|t >= timestamp'2020-01-01'|l < 1.5|1 + 1|cast(dec as decimal(38, 2))
current_date()|'a' || 'b'|if(x > 1, 1 / 2, x)|cast('2020-01-01' as date) < d|dec = 1.50"""
FILTERS = "l > 1.5D|dec < 0.5D|x != 0|s IS NOT NULL|d >= current_date()|NOT bo|bo"
OTHER = """l + 1|x + 1|- i|abs(l)|x / i|10 / i|l % i|cast(s as int)|cast(l as int)|cast(l as double)|cast(t as date)
s > 0|s = i|try_cast(s as int)|try_add(l, 1)|a[0]|get(a, 0)|size(a)|array_contains(a, 1)|split(s, ',')[0]|upper(s)
trim(s)|substring(s, 1, 2)|concat(s, s)|length(s)|s like 'a%'|s rlike 'a'|md5(s)|year(d)
date_trunc('month', t)|date_add(d, 1)
to_date(s)|t + interval 1 day|cast(d as timestamp)|t > d|add_months(d, 1)|named_struct('q', l).q|struct(s).s|hash(s)
from_json(s, 'q INT').q|get_json_object(s, '$.q')|map(s, l)['z']|unbase64(s)|decode(b, 'utf-8')|to_number(s, '999')
assert_true(i > 0)|raise_error('x')|rand()|uuid()|spark_partition_id()|monotonically_increasing_id()|input_file_name()
if(s = 'a', assert_true(false), 1)|make_date(i, 1, 1)
format_number(x, i)|date_format(t, s)|repeat(s, i)|aggregate(a, 'a', (p, q) -> concat(p, p))|ilike(s, 'a')|chr(l)
greatest(x, 1)|round(x, 1)|floor(x)|pow(x, 2)|sqrt(x)|cast(l as string)|cast(b as string)|cast(x as decimal(9, 2))
sum(x) over (partition by l order by i)|row_number() over (order by x)|explode(a)|(SELECT max(x) FROM worst)
l IN (SELECT i FROM worst)|EXISTS (SELECT * FROM worst WHERE x > 9)
count(*) over ()|first(x) over (partition by l order by t)|cast(bo as int)|array(1)[i]|element_at(a, i)"""


def each(texts: str) -> list[str]:
    return texts.replace("\n", "|").split("|") if "||" not in texts else each(texts.replace("||", "\0"))


def computing(spark: Any, text: str) -> Any:
    return spark.sql(f"SELECT {text.replace(chr(0), '||')} AS z FROM worst")


def why(frame: Any) -> str | None:
    return read_by_rows(frame, frame.sparkSession)


@pytest.fixture(scope="module", params=["true", "false"])
def worst(spark: Any, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    theirs, folder = spark.newSession(), str(tmp_path_factory.mktemp("worst") / "rows")
    theirs.conf.set(FILTERED["parquet"], "false")
    theirs.sql(WORST).selectExpr("*", "named_struct('q', i) AS named").coalesce(1).write.parquet(folder)
    theirs.read.parquet(folder).createOrReplaceTempView("worst")
    theirs.conf.set("spark.sql.ansi.enabled", request.param)
    return theirs


def test_what_no_row_makes_fail_is_taken(worst: Any) -> None:
    for text in each(FINE):
        assert why(computing(worst, text)) is None, text
    for text in each(FILTERS):
        assert why(worst.sql(f"SELECT l FROM worst WHERE {text}")) is None, text
    every = worst.sql(
        f"SELECT {', '.join(f'{t} AS c{i}' for i, t in enumerate(each(FINE)))} FROM worst".replace("\0", "||")
    )
    every.write.format("noop").mode("overwrite").save()  # nothing raises
    for text in each(FILTERS):
        worst.table("worst").filter(text).write.format("noop").mode("overwrite").save()


def test_all_else_is_refused_in_either_mode(worst: Any) -> None:
    for text in each(OTHER):
        assert "it " in (why(computing(worst, text)) or ""), text
    assert "it computes 'cast'" in str(why(worst.sql("SELECT cast(l AS DOUBLE) AS z FROM worst")))
    ansi = worst.conf.get("spark.sql.ansi.enabled") == "true"
    for text in ("if(x > 1, x, 1 / 0)", "if(s = 'a', cast('a' as int), 1)"):  # with the ANSI mode off they are NULL
        assert (why(computing(worst, text)) is not None) == ansi, text


def test_a_row_s_place_in_its_file_is_refused(worst: Any, tmp_path: Path) -> None:
    """It says where a row stands among others: with one person's rows gone, all behind have another number."""
    worst.table("worst").select("l", "x").write.parquet(str(tmp_path / "rows"))
    read = worst.read.parquet(str(tmp_path / "rows"))
    for mixed in (
        read.select("l", "_metadata.row_index"),
        read.select("*", f.col("_metadata").alias("m")).select("m.row_index"),
        read.filter("_metadata.row_index < 3"),
    ):
        assert "'_metadata'" in str(why(mixed))
    assert why(read) is None


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_one_row_s_text_decides_nothing(spark: Any, tmp_path: Path, ansi: str) -> None:
    theirs, answer = spark.newSession(), "PolicyError"
    theirs.conf.set("spark.sql.ansi.enabled", ansi)
    rows = pa.table({"id": [1, 2, 3], "s": ["1", "2", "three"]})
    pq.write_table(rows, tmp_path / "t.parquet")
    made = theirs.read.parquet(str(tmp_path)).withColumn("n", f.col("s").cast("int"))
    assert asked(made, f"{COUNTED} WHERE n > 0 OR id > 0") == answer
    assert asked(made.drop("n"), COUNTED) == 3  # nobody reads it
    handed = theirs.createDataFrame(rows).withColumn("n", f.col("s").cast("int"))
    assert asked(handed.drop("n"), COUNTED) == answer  # Spark computes it
    made.cache()
    assert asked(made.drop("n"), COUNTED) == answer  # what is cached is computed as a whole
    made.unpersist()


@pytest.mark.parametrize("last", ["'3'", "'x'"])
def test_rows_that_are_constants_are_rows(spark: Any, last: str) -> None:
    """What is computed of a range, or of rows that are selected one by one, ended every question, too."""
    for failing in (
        f"SELECT id, CAST(s AS INT) AS n FROM (SELECT 1L AS id, '1' AS s UNION ALL SELECT 2L, {last})",
        f"SELECT 1L AS id, CAST('1' AS INT) AS n UNION ALL SELECT 2L, CAST({last} AS INT)",
        f"SELECT id, CAST(if(id = 2, {last}, '1') AS INT) AS n FROM range(3)",
    ):
        made = spark.sql(failing)
        assert asked(made, f"{COUNTED} WHERE n > 0 OR id > 0") == "PolicyError"
    for mixed in (
        spark.sql(f"SELECT {last} AS id UNION ALL SELECT 'a'").limit(1),
        spark.range(1).selectExpr("explode(array(1L, 2L)) AS id"),
        spark.range(1).mapInPandas(lambda parts: parts, "id BIGINT"),
    ):
        assert asked(mixed, COUNTED) == "PolicyError"
    fine = spark.sql("SELECT 1L AS id, 'a' AS s UNION ALL SELECT CAST(-2 AS BIGINT), NULL")
    assert asked(fine, COUNTED) == 2
    assert asked(spark.range(2).selectExpr("id", "id > 0 AS b", "1 + 1 AS two"), COUNTED) == 2


def test_what_is_computed_since_it_was_declared_is_looked_at(spark: Any, tmp_path: Path) -> None:
    """A column that nobody reads is computed, once the frame that has it is cached."""
    pq.write_table(pa.table({"id": [1, 2, 3], "s": ["1", "2", "three"]}), tmp_path / "t.parquet")
    made = spark.newSession().read.parquet(str(tmp_path)).withColumn("n", f.col("s").cast("int"))
    table = hb.table(made.drop("n"), unit="id", max_total=1)
    with hb.Session({"v": table}, budget=hb.Budget(10**9), ledger=None) as session:
        assert session.sql(COUNTED, epsilon=10**6).rows() == [(3,)]
        made.cache()
        try:
            with pytest.raises(hb.PolicyError, match="it computes 'cast'"):
                session.sql(f"{COUNTED} WHERE id > 0", epsilon=10**6)
        finally:
            made.unpersist()


def test_rows_by_their_places_are_refused_until_they_are_kept(spark: Any) -> None:
    """One more row moves another's out, or draws other lots for all rows behind it."""
    rows = spark.createDataFrame(pa.table({"id": range(8), "x": [float(i) for i in range(8)]}))
    for mixed in (
        rows.limit(4),
        rows.orderBy("x").limit(4),
        rows.offset(4),
        rows.sample(0.5, seed=1),
        rows.randomSplit([0.5, 0.5], seed=1)[0],
        rows.filter(f.rand(1) < 0.5),
        rows.withColumn("r", f.row_number().over(Window.orderBy("x"))),
        rows.crossJoin(rows.agg(f.avg("x").alias("m"))),
        rows.filter("x > (SELECT 3)").filter(f.monotonically_increasing_id() < 4),
        rows.withColumn("u", f.udf(lambda x: x, "double")("x")),
        rows.mapInPandas(lambda parts: parts, "id BIGINT, x DOUBLE"),
    ):
        assert asked(mixed, f"{COUNTED} WHERE id >= 0") == "PolicyError"
    assert asked(rows.limit(4).localCheckpoint(), COUNTED) == 4


def test_a_class_of_another_s_is_not_spark_s_of_the_same_name() -> None:
    theirs = MagicMock()
    for name, kind in (("catalyst.expressions.Upper", "Upper"), ("sedona_sql.expressions.Upper", None)):
        theirs.getClass().getName.return_value = f"org.apache.spark.sql.{name}"
        assert (_kind(theirs) == "Upper") == (kind == "Upper")


def test_usual_frames_are_taken(spark: Any) -> None:
    rows = spark.createDataFrame(
        pa.table({"id": [1, 2], "x": [1.0, 2.0], "s": ["a", "b"], "g": pa.array([0, 1], "int32")})
    )
    rows.createOrReplaceTempView("usual")
    for fine in (
        rows.na.fill({"s": "", "g": 0, "x": 0.0}).na.drop().na.replace("a", "b"),
        rows.unionByName(rows.select("g", "x", "s", "id")).repartition(2, "id").orderBy("x"),
        rows.select("id", "s").unionByName(rows, allowMissingColumns=True).hint("broadcast"),
        rows.withColumn("old", f.col("x") > 1.5).withColumnRenamed("g", "group").drop("s"),
        rows.withColumn("w", f.when(f.col("s").isin("a", "b"), f.col("s")).otherwise("rest")),
        rows.alias("r").filter("r.id BETWEEN 1 AND 2").select("r.*").coalesce(1).cache(),
        spark.sql("SELECT id, x AS y FROM usual WHERE s = 'a' UNION ALL SELECT id, g FROM usual"),
    ):
        assert why(fine) is None, fine._jdf.queryExecution().analyzed().toString()
        fine.unpersist()


def test_what_is_kept_is_taken_whatever_it_computes(spark: Any) -> None:
    """The steward sees where it fails, and its rows stand still."""
    rows = spark.createDataFrame(pa.table({"id": [1, 2, 2], "x": [1.0, 2.0, 3.0], "s": ["1", "2", "three"]}))
    own = Window.partitionBy("id").orderBy("x")
    for made, answer in (
        (rows.groupBy("id").agg(f.sum("x").alias("x")), 2),
        (rows.withColumn("r", f.rank().over(own)).filter("r = 1"), 2),
        (rows.withColumn("n", f.col("s").try_cast("int")), 3),
        (rows.join(rows.select("id", f.col("x").alias("y")), "id", "left"), 5),
    ):
        assert asked(made, COUNTED, max_total=4) == "PolicyError"
        assert asked(made.localCheckpoint(), COUNTED, max_total=4) == answer
