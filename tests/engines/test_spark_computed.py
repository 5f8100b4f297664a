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
from hubbub.engines.spark.frames import _computed

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
FINE = """x + 1|x * 2|x / 2|i / 2|i % 2|i div 2|abs(x)|- x|round(x, 1)
floor(datediff(current_date(), d) / 365.25)|sqrt(x)|ln(x)|pow(x, 2)|greatest(l, 1)|cast(i as bigint)
cast(l as string)|cast(x as string)|cast(i as double)|cast(t as date)|cast(bo as int)|cast(i as decimal(10, 0))
try_cast(s as int)|try_cast(s as date)|try_add(l, 1)|try_divide(x, i)|upper(trim(s))|substring(s, 1, 2)
concat_ws('-', s, i)|length(s)|s like 'a%'|s rlike '^[a-z]+$'|md5(s)|sha2(s, 256)
regexp_replace(s, '[^a-z]', '')|regexp_extract(s, '^([a-z]+)', 1)|split(s, ',')[0]|split_part(s, ',', 1)
lpad(s, 5, '0')|coalesce(s, '')|nullif(s, '')|nvl(s, '')|case when x > 1 then 'a' else 'b' end|i between 0 and 5
s in ('a', 'b')|year(d)|month(t)|hour(t)|dayofweek(d)|weekofyear(d)|date_add(d, 7)|datediff(d, current_date())
trunc(d, 'MONTH')|last_day(d)|date_format(t, 'yyyy-MM')|to_date(t)|d > '2020-01-01'
t > current_timestamp() - interval 30 days|get(a, 0)|size(a)|array_contains(a, 1)|try_element_at(a, 1)
named_struct('q', l).q|from_json(s, 'q INT').q|base64(b)|get(transform(a, q -> q > 0), 0)|hash(s)
cast(b as string)|get_json_object(s, '$.a')|bo and i > 0|left(s, 1)|right(s, 1)|extract(year from t)
date_part('week', d)|try_subtract(i, 1)|try_multiply(i, 2)|try_mod(i, 2)|array_size(a)|array_append(a, 1)
array_compact(a)|nvl2(s, 1, 2)|nullifzero(i)|zeroifnull(i)|equal_null(i, 1)|base64(s)|ilike(s, 'a%')
input_file_name()|ceil(i)|factorial(i)|size(split(s, ','))|upper(s) = 'A' or s <=> null|array_join(a, ',')
chr(l)|format_string('%s-%05d', s, i)|format_number(x, 2)|from_unixtime(l)|trunc(d, 'year')|replace(s, 'a', 'b')
aggregate(a, 0D, (p, q) -> p + q)|if(x > 1, x, 1 / 2)|date_format(current_timestamp(), 'yyyy')|now() > t
sum(x) over (partition by l order by i rows between 1 preceding and current row)|to_date(try_to_timestamp(s))
unix_timestamp(t)"""
STRICT = """l + 1|i * 2|l - i|- i|abs(l)|x / i|10 / i|l % i|cast(s as int)|cast(s as date)|cast(s as double)
s > 0|s = i|cast(l as int)|cast(x as bigint)|cast(dec as decimal(10, 2))|floor(x)|round(i, -1)|a[0]
split(s, ',')[1]|element_at(a, 1)|to_date(s)|to_date(s, 'yyyy-MM-dd')|to_timestamp(s)|unix_timestamp(s)
next_day(d, s)|dec / 2|if(x > 1, x, 1 / 0)|if(s = 'a', cast('a' as int), 1)|x / cast(0.4 as int)"""
NEVER = """date_trunc('month', t)|cast(d as timestamp)|t > d|add_months(d, 1)|t + interval 1 day
t - timestamp'2020-01-01'|d - date'2020-01-01'|from_utc_timestamp(t, 'Asia/Tokyo')|timestampadd(DAY, 1, t)
unbase64(s)|decode(b, 'utf-8')|to_number(s, '999')|map(s, l)['z']|map_from_arrays(array(s), array(l))['z']
element_at(a, i)|slice(a, i, 1)[0]|sequence(1, i)[0]|assert_true(i > 0)|raise_error('x')|url_decode(s)
timestamp_seconds(l)|from_json(s, 'q DECIMAL(9,2)').q|from_json(s, 'q INT', map('mode', 'FAILFAST')).q
s rlike '(a|b)*c'|s like '%a%b%c%'|rand()|uuid()|spark_partition_id()|monotonically_increasing_id()
regexp_replace(s, 'a', '$1')|regexp_extract(s, 'a', 1)|validate_utf8(s)|encode(s, 'ascii')
format_number(x, i)|format_number(x, s)|date_format(t, s)|from_unixtime(l, s)|trunc(d, 'QUARTER')|trunc(d, s)
make_date(i, 1, 1)|make_timestamp(i, 1, 1, 0, 0, 0)|format_string('%c', i)|format_string('%s', b)
regexp_extract(s, '(?:a)b', 1)|to_date(s, s)|unix_timestamp(s, s)|replace(s, 'a', s)|concat_ws(s, a)|array_join(a, s)
aggregate(a, 'a', (p, q) -> concat(p, p))|s rlike '.*a.*b.*c'|if(s = 'a', assert_true(false), 1)
sum(x) over (partition by l order by t range between interval 1 day preceding and current row)
sum(x) over (partition by l order by i range between 1 preceding and current row)"""
GROUPED = """sum(x)|sum(i)|avg(x)|avg(i)|avg(l)|try_sum(l)|try_avg(dec)|stddev(x)|var_pop(i)|corr(x, i)|covar_samp(x, l)
skewness(x)|kurtosis(x)|median(x)|percentile(l, 0.5)|approx_percentile(l, 0.5)|approx_count_distinct(s)|mode(x)
max_by(x, l)|bool_and(bo)|bit_xor(l)|collect_list(x)|collect_set(s)|count(distinct s)|max(t)|min(dec)|any_value(d)"""


def each(texts: str) -> list[str]:
    return texts.replace("\n", "|").replace("(a|b)", "(a\0b)").split("|")


def computing(spark: Any, text: str) -> Any:
    return spark.sql(f"SELECT {text.replace(chr(0), '|')} AS z FROM worst")


@pytest.fixture(scope="module")
def worst(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    theirs, folder = spark.newSession(), str(tmp_path_factory.mktemp("worst") / "rows")
    theirs.sql(WORST).coalesce(1).write.parquet(folder)
    theirs.read.parquet(folder).createOrReplaceTempView("worst")
    return theirs


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_no_row_makes_fail_is_taken(worst: Any, ansi: str) -> None:
    worst.conf.set("spark.sql.ansi.enabled", ansi)
    texts = each(FINE) + (each(STRICT) if ansi == "false" else [])
    assert {t: why for t in texts if (why := _computed(computing(worst, t)))} == {}


@pytest.mark.soak
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_is_taken_no_row_makes_fail(worst: Any, ansi: str) -> None:
    worst.conf.set("spark.sql.ansi.enabled", ansi)
    texts = each(FINE) + (each(STRICT) if ansi == "false" else [])
    every = worst.sql(f"SELECT {', '.join(f'{t} AS c{i}' for i, t in enumerate(texts))} FROM worst")
    grouped = worst.sql(f"SELECT {GROUPED.replace(chr(10), ', ').replace('|', ', ')} FROM worst GROUP BY bo")
    assert _computed(grouped) is None
    for made in (every, grouped):
        made.write.format("noop").mode("overwrite").save()  # nothing raises


@pytest.mark.parametrize(("ansi", "texts"), [("true", STRICT), ("true", NEVER), ("false", NEVER)])
def test_what_a_row_can_make_fail_is_refused(worst: Any, ansi: str, texts: str) -> None:
    worst.conf.set("spark.sql.ansi.enabled", ansi)
    assert [t for t in each(texts) if _computed(computing(worst, t)) is None] == []


@pytest.mark.parametrize(("ansi", "answer"), [("true", "PolicyError"), ("false", 3)])
def test_one_row_s_text_decides_nothing(spark: Any, tmp_path: Path, ansi: str, answer: Any) -> None:
    theirs = spark.newSession()
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


def test_a_text_that_may_be_no_number_is_one_by_try_cast(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"id": [1, 2, 3], "s": ["1", "2", "three"]}))
    assert asked(frame.withColumn("n", f.col("s").try_cast("int")), f"{COUNTED} WHERE n > 0 OR id > 2") == 3


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


def test_one_row_that_decides_about_others_behind_a_constant_or_a_null_is_refused(worst: Any) -> None:
    """One window or group of all rows, however it is spelt; and what one NULL, or one row at all, says of everybody."""
    rows, one = worst.table("worst").withColumn("k", f.lit(1)), f.lit(1)
    for mixed in (
        rows.withColumn("r", f.row_number().over(Window.partitionBy(one).orderBy("x"))),
        rows.withColumn("r", f.row_number().over(Window.partitionBy("k").orderBy("x"))),
        rows.groupBy("k").agg(f.max("x")),
        rows.groupBy(one, "k").count(),
        rows.dropDuplicates(["k"]),
        rows.distinct().withColumn("z", f.input_file_name()),
        worst.sql("SELECT * FROM worst WHERE l NOT IN (SELECT i FROM worst)"),
        worst.sql("SELECT * FROM worst WHERE coalesce(l IN (SELECT i FROM worst), true)"),
        worst.sql("SELECT * FROM worst WHERE EXISTS (SELECT * FROM worst WHERE x > 9)"),
        worst.sql("SELECT l, percentile(x, 0.5, i) AS z FROM worst GROUP BY l"),
    ):
        assert _computed(mixed) is not None, mixed._jdf.queryExecution().analyzed().toString()
    for fine in (
        rows.withColumn("r", f.row_number().over(Window.partitionBy("k", "l").orderBy("x"))),
        rows.groupBy(one, "l").agg(f.max("x")).filter("l > 1 OR l IN (SELECT i FROM worst)"),
        rows.filter("x > 1").withColumn("z", f.input_file_name()),
        worst.sql("SELECT * FROM worst AS w WHERE NOT EXISTS (SELECT * FROM worst AS v WHERE v.i = w.l)"),
    ):
        assert _computed(fine) is None, fine._jdf.queryExecution().analyzed().toString()


def test_the_way_out_that_a_refusal_names_is_one(worst: Any) -> None:
    """With the ANSI mode off `date_trunc` fails as well; a cast does not."""
    worst.conf.set("spark.sql.ansi.enabled", "true")
    for text in each(STRICT + "|" + NEVER):
        worst.conf.set("spark.sql.ansi.enabled", "true")
        why = _computed(computing(worst, text)) or ""
        worst.conf.set("spark.sql.ansi.enabled", "false")
        again = _computed(computing(worst, text))
        assert again is None or "ansi.enabled to false" not in why, text


def test_a_class_of_another_s_is_not_spark_s_of_the_same_name() -> None:
    theirs = MagicMock()
    for name, kind in (("catalyst.expressions.Upper", "Upper"), ("sedona_sql.expressions.Upper", None)):
        theirs.getClass().getName.return_value = f"org.apache.spark.sql.{name}"
        assert (_kind(theirs) == "Upper") == (kind == "Upper")


def test_usual_frames_are_taken(spark: Any) -> None:
    rows = spark.createDataFrame(
        pa.table({"id": [1, 2], "x": [1.0, 2.0], "s": ["a", "b"], "g": pa.array([0, 1], "int32")})
    )
    own = Window.partitionBy("id").orderBy("x")
    rows.createOrReplaceTempView("usual")
    for fine in (
        rows.groupBy("id").agg(
            f.sum("x").alias("x"),
            f.avg("g"),
            f.max("s"),
            f.countDistinct("s"),
            f.first("g"),
            f.count_if(f.col("g") == 1),
        ),
        rows.groupBy("id").pivot("g", [0, 1]).agg(f.sum("x")),
        rows.withColumn("r", f.rank().over(own)).filter("r = 1"),
        rows.na.fill({"s": "", "g": 0, "x": 0.0}).na.drop().na.replace("a", "b"),
        rows.join(rows.select("id", f.col("g").alias("h")), "id", "left").dropDuplicates(["id"]),
        rows.unionByName(rows.select("g", "x", "s", "id")).distinct().repartition(2, "id").orderBy("x"),
        rows.withColumn("e", f.explode(f.split("s", ","))).hint("broadcast"),
        rows.rollup("id", "g").count().filter("id IS NOT NULL AND g IS NOT NULL"),
        rows.unpivot("id", ["x"], "k", "v"),
        spark.sql("WITH a AS (SELECT * FROM usual) SELECT * FROM a WHERE id IN (SELECT id FROM usual WHERE g < 9)"),
    ):
        assert _computed(fine) is None, fine._jdf.queryExecution().analyzed().toString()
