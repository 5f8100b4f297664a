"""Verbs: the SQL they write, and that what one front end can say, so can the other."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub import verbs
from hubbub.session import Session
from hubbub.session.options import Options
from hubbub.verbs import from_sql, rows_of
from people import HUGE, session as opened_session, visits

COLUMNS = {"id": "id", "ward": "text", "age": "number", "n": "integer", "ok": "boolean", "day": "date"}


class Outline:
    """A session as far as verbs know one before they are asked: tables by name."""

    def table(self, name: str) -> Any:
        if name == "wards":
            return rows_of(self, name, columns=["ward", "beds"])
        return rows_of(self, name, columns=list(COLUMNS), unit="id")


@pytest.fixture(scope="module")
def desk() -> Iterator[Session]:
    """Visits and wards, to be asked at epsilons where noise is 0."""
    wards = pa.table({"ward": ["A", "B", "C"], "beds": [4, 25, 30]})
    declared = {**visits().columns, "day": hb.between("1970-01-01", "1971-01-01")}
    tables = {"visits": visits(columns=declared), "wards": hb.public(wards)}
    with opened_session(HUGE**3, **tables) as opened:
        yield opened


session = Outline()
v = session.table("visits")
x = SimpleNamespace(**{name: getattr(verbs, name) for name in verbs.FUNCTIONS})
"""What `hubbub` offers under its own name."""

SHAPES = [
    (
        v.filter(x.col("age") > 65).group_by("ward").agg(x.count(), x.mean("age").alias("age")),
        'SELECT "ward", COUNT(*) AS "count", AVG("age") AS "age" FROM "visits" WHERE "age" > 65 GROUP BY "ward"',
    ),
    (v.agg(x.units()), 'SELECT COUNT(DISTINCT "id") AS "units" FROM "visits"'),
    (
        v.agg(x.var("age"), x.var("age", ddof=0).alias("p"), x.std("n"), x.std("n", ddof=0).alias("q")),
        'SELECT VAR_SAMP("age") AS "var_age", VAR_POP("age") AS "p", STDDEV_SAMP("n") AS "std_n", '
        'STDDEV_POP("n") AS "q" FROM "visits"',
    ),
    (
        v.agg(x.median("age"), x.quantile("age", 0.9), x.min("n"), x.max("n"), x.covar("age", "n"), x.corr("age", "n")),
        'SELECT MEDIAN("age") AS "median_age", QUANTILE_CONT("age", 0.9) AS "quantile_age", MIN("n") AS "min_n", '
        'MAX("n") AS "max_n", COVAR_SAMP("age", "n") AS "covar_age_n", CORR("age", "n") AS "corr_age_n" FROM "visits"',
    ),
    (
        v.with_columns(tens=x.col("n") // 10).filter(x.col("tens") < 3).group_by("tens").agg(x.count("age")),
        'SELECT FDIV("n", 10) AS "tens", COUNT("age") AS "count_age" FROM "visits" WHERE FDIV("n", 10) < 3 '
        'GROUP BY FDIV("n", 10)',
    ),
    (
        v.group_by("ward").agg(x.count()).filter(x.col("count") > 5).order_by("count", descending=True).limit(3),
        'SELECT "ward", COUNT(*) AS "count" FROM "visits" GROUP BY "ward" HAVING COUNT(*) > 5 '
        'ORDER BY "count" DESC LIMIT 3',
    ),
    (
        v.per_unit("id", x.sum("n").alias("n")).agg(x.mean(x.least("n", 50)).alias("m")),
        'SELECT AVG(LEAST("n", 50)) AS "m" FROM (SELECT "id", SUM("n") AS "n" FROM "visits" GROUP BY "id") AS "answer"',
    ),
    (
        v.with_columns(k=x.row_number().over("id", order_by="day")).filter(x.col("k") == 1).agg(x.count()),
        'SELECT COUNT(*) AS "count" FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "id" ORDER BY "day" ASC) AS "k" '
        'FROM "visits") AS "visits" WHERE "k" = 1',
    ),
    (
        v.join("wards", on="ward").filter(x.col("beds") > 30).agg(x.count()),
        'SELECT COUNT(*) AS "count" FROM "visits" JOIN "wards" USING ("ward") WHERE "beds" > 30',
    ),
    (
        v.join(session.table("wards"), on="ward", how="anti").agg(x.count()),
        'SELECT COUNT(*) AS "count" FROM "visits" ANTI JOIN "wards" USING ("ward")',
    ),
    (
        v.rollup("ward", "ok").agg(x.count()),
        'SELECT "ward", "ok", COUNT(*) AS "count" FROM "visits" GROUP BY ROLLUP ("ward", "ok")',
    ),
    (
        v.grouping_sets(["ward", "ok"], ["ward"], []).agg(x.count()),
        'SELECT "ward", "ok", COUNT(*) AS "count" FROM "visits" GROUP BY GROUPING SETS (("ward", "ok"), ("ward"), ())',
    ),
    (
        v.union(v.filter(x.col("ok"))).agg(x.count()),
        'SELECT COUNT(*) AS "count" FROM (SELECT * FROM "visits" UNION ALL SELECT * FROM "visits" WHERE "ok") '
        'AS "visits"',
    ),
    (
        v.select("id", "ward").distinct().group_by("ward").agg(x.count()),
        'SELECT "ward", COUNT(*) AS "count" FROM (SELECT DISTINCT "id", "ward" FROM "visits") AS "visits" '
        'GROUP BY "ward"',
    ),
    (
        v.group_by("ward").agg(x.count()).with_columns(share=x.col("count") / x.sum("count").over()),
        'SELECT "ward", COUNT(*) AS "count", COUNT(*) / SUM(COUNT(*)) OVER () AS "share" FROM "visits" GROUP BY "ward"',
    ),
    (
        v.filter(x.col("ward").is_in(session.table("wards").filter(x.col("beds") > 9).select("ward"))).agg(x.count()),
        'SELECT COUNT(*) AS "count" FROM "visits" WHERE "ward" IN (SELECT "ward" FROM "wards" WHERE "beds" > 9)',
    ),
    (v.agg(x.count().where(x.col("ok"))), 'SELECT COUNT(*) FILTER(WHERE "ok") AS "count" FROM "visits"'),
]


@pytest.mark.parametrize(("built", "sql"), SHAPES, ids=range(len(SHAPES)))
def test_verbs_write_this_sql(built: Any, sql: str) -> None:
    assert built.sql() == sql


@pytest.mark.parametrize("built", [b for b, _ in SHAPES], ids=range(len(SHAPES)))
def test_what_verbs_write_is_answered(desk: Session, built: Any) -> None:
    release = desk.sql(built.sql(), epsilon=HUGE)
    assert set(release.columns) == set(_names(built))


def _names(built: Any) -> list[str]:
    return [e.alias_or_name for e in built.tree().expressions]


C = x.col
TERMS = [
    (C("a") + 1 - C("b") * 2, '("a" + 1) - ("b" * 2)'),
    (2 / C("a") // 3 % 5, 'FMOD(FDIV(2 / "a", 3), 5)'),
    (7 // C("a") + 7 % -C("a"), 'FDIV(7, "a") + FMOD(7, -"a")'),
    (x.remainder(x.quotient(C("a") + 1, C("b") - 1), 3), '(("a" + 1) // ("b" - 1)) % 3'),
    (1 - C("a"), '1 - "a"'),
    (-C("a") < -3.5, '(-"a") < (-3.5)'),
    ((C("a") >= 1) & ~(C("b") != "x") | C("c"), '(("a" >= 1) AND (NOT ("b" <> \'x\'))) OR "c"'),
    (C("a").between(1, dt.date(2025, 1, 2)), "\"a\" BETWEEN 1 AND CAST('2025-01-02' AS DATE)"),
    (C("a").is_null() | C("b").is_not_null(), '("a" IS NULL) OR (NOT "b" IS NULL)'),
    (C("a").is_in(["x", None, True]), "\"a\" IN ('x', NULL, TRUE)"),
    (C("a").like("x%") & C("b").ilike("_"), "(\"a\" LIKE 'x%') AND (\"b\" ILIKE '_')"),
    (C("a").cast("integer"), 'CAST("a" AS BIGINT)'),
    (C("a").lower().substr(1, 2).concat("x"), "SUBSTR(LOWER(\"a\"), 1, 2) || 'x'"),
    (C("d").trunc("month"), "DATE_TRUNC('month', \"d\")"),
    (C("d").year() * 100 + C("d").month(), '(EXTRACT(YEAR FROM "d") * 100) + EXTRACT(MONTH FROM "d")'),
    (C("d").diff(C("e"), "week"), 'DATE_DIFF(\'week\', "d", "e")'),
    (x.coalesce("a", 0), 'COALESCE("a", 0)'),
    (x.least(x.greatest("a", 0), 9), 'LEAST(GREATEST("a", 0), 9)'),
    (
        x.when(C("a") < 1).then("x").when(C("a") < 2).then(C("b")).otherwise(None),
        'CASE WHEN "a" < 1 THEN \'x\' WHEN "a" < 2 THEN "b" ELSE NULL END',
    ),
    (x.lag("a", 2).over("u", order_by=["d", "e"]), 'LAG("a", 2) OVER (PARTITION BY "u" ORDER BY "d" ASC, "e" ASC)'),
    (C("a", table="t") == C("b", table="s"), '"t"."a" = "s"."b"'),
    (abs(C("a")).round(2), 'ROUND(ABS("a"), 2)'),
    (x.lit(dt.datetime(2025, 1, 2, 3, 4)), "CAST('2025-01-02 03:04:00' AS TIMESTAMP)"),
]


@pytest.mark.parametrize(("term", "sql"), TERMS, ids=[sql for _, sql in TERMS])
def test_terms_write_this_sql(term: Any, sql: str) -> None:
    assert str(term) == sql


HOSTILE = ['"; DROP TABLE visits; --', "a'b", "Ω", "x y", 'q"q', "/* */", "$1", "?", "SELECT", "%s{0}"]


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_constants_are_printed_and_never_pasted(text: str) -> None:
    """Read back, the text has the same names and constants, and nothing else."""
    import sqlglot
    from sqlglot import exp

    sql = v.filter(x.col(text) == text).group_by(x.col(text).alias("k")).agg(x.count().alias(text)).sql()
    tree = sqlglot.parse(sql, read="duckdb")
    assert len(tree) == 1
    assert tree[0] is not None
    assert {c.name for c in tree[0].find_all(exp.Column)} == {text}
    assert {s.this for s in tree[0].find_all(exp.Literal)} == {text}
    assert tree[0].expressions[1].alias == text


def test_a_builder_never_changes() -> None:
    before = v.sql()
    grouped = v.filter(x.col("age") > 3).group_by("ward").agg(x.count())
    text = grouped.sql()
    grouped.filter(x.col("count") > 1).order_by("ward").limit(1)
    v.with_columns(age=x.col("age") * 2)
    assert (v.sql(), grouped.sql()) == (before, text)


def test_a_computed_column_stands_for_its_expression() -> None:
    built = v.with_columns(age=x.col("age") + 1).with_columns(age=x.col("age") * 2).agg(x.mean("age").alias("m"))
    assert built.sql() == 'SELECT AVG(("age" + 1) * 2) AS "m" FROM "visits"'


def test_two_sides_of_one_name_are_told_apart() -> None:
    counted = v.group_by("ward").agg(x.count())
    sql = counted.join(v.group_by("ward").agg(n=x.units()), on="ward").sql()
    assert ') AS "answer" JOIN (' in sql
    assert ') AS "answer_2" USING' in sql


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: bool(x.col("a") > 1), "no truth value"),
        (lambda: x.col(""), "not a name"),
        (lambda: x.lit(float("nan")), "finite"),
        (lambda: x.lit(object()), "cannot stand"),
        (lambda: x.lit("a\x00b"), "cannot stand"),
        (lambda: x.quantile("a", 1.5), "from 0 to 1"),
        (lambda: x.var("a", ddof=2), "ddof"),
        (lambda: x.col("a").cast("blob"), "not a kind"),
        (lambda: x.col("a").is_in("abc"), "several values"),
        (lambda: x.when(x.col("a")).otherwise(1), "without its then"),
        (lambda: v.group_by(x.col("a") + 1), "has no name"),
        (lambda: v.agg(x.count(), x.count()), "two columns"),
        (lambda: v.group_by("a").agg(a=x.count()), "is a key"),
        (lambda: v.group_by("a").agg(), "at least one"),
        (lambda: v.join("wards"), "needs `on`"),
        (lambda: v.join("wards", on="ward", how="full"), "allowed are"),
        (lambda: v.limit(-1), "whole number"),
        (lambda: v.order_by("a", "b", descending=[True]), "true or false"),
        (lambda: v.filter("age > 3"), "takes conditions"),
        (lambda: v.hist("age", [3]), "two edges"),
        (lambda: v.hist("age", [3, 2]), "increasing"),
        (lambda: rows_of(session, "t").agg(x.units()), "Name it"),
        (lambda: rows_of(None, "t").agg(x.count()).run(epsilon=1), "no session"),
        (lambda: rows_of(session, "t").describe(), "declared bounds"),
    ],
)
def test_what_cannot_be_meant_is_refused(act: Any, message: str) -> None:
    with pytest.raises((hb.QueryError, hb.ParameterError), match=message):
        act()


def test_everyday_questions_are_answered(desk: Session) -> None:
    rows = desk.table("visits")
    assert rows.value_counts("ward").run(epsilon=HUGE).rows() == [("A", 3), ("B", 1), ("C", 1), (None, 1)]
    assert rows.crosstab("ward", "ok").run(epsilon=HUGE).rows()[:3] == [("A", True, 2), ("A", False, 0), ("A", None, 1)]
    histogram = rows.hist("age", [0, 30, 64.25, 128]).run(epsilon=HUGE)
    assert histogram.rows() == [("[0, 30)", 1), ("[30, 64.25)", 2), ("[64.25, 128]", 2)]
    described = rows.describe("n").run(epsilon=HUGE)
    names = ["count", "mean", "std", "min", "q25", "median", "q75", "max"]
    assert described.columns == tuple(f"n_{word}" for word in names)
    assert described.to_dict()["n_count"] == [6]
    assert described.to_dict()["n_mean"] == pytest.approx([3.5], abs=1e-3)


def test_each_row_s_units_are_rows() -> None:
    rows = rows_of(session, "t", each_row=True)
    assert rows.agg(x.units()).sql() == 'SELECT COUNT(*) AS "units" FROM "t"'


SQL = [
    "SELECT COUNT(*) FROM visits",
    "SELECT ward, COUNT(*) AS c, COUNT(DISTINCT id) AS u, SUM(n) AS s, AVG(age) AS a FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS c FROM visits WHERE ok OR day >= '1970-02-01' GROUP BY ward ORDER BY c DESC, 1 LIMIT 2",
    "SELECT COUNT(age) FROM visits WHERE NOT (age < 20 OR ward LIKE 'B%') AND n <> 3",
    "SELECT FLOOR(n / 10) AS tens, COUNT(*) AS c FROM visits GROUP BY tens",
    "SELECT CASE WHEN ward IN ('A', 'B') THEN 'front' ELSE 'back' END AS side, AVG(n) AS a FROM visits GROUP BY 1",
    "SELECT n > 3 AS more, COUNT(*) AS c FROM visits GROUP BY n > 3",
    "SELECT AVG(CASE WHEN ok THEN 1 ELSE 0 END) AS share FROM visits",
    "SELECT ward, 100 * SUM(n) / COUNT(*) AS p FROM visits GROUP BY ward HAVING COUNT(DISTINCT id) > 1 ORDER BY 2",
    "SELECT n % 2 AS odd, -SUM(n) AS s FROM visits GROUP BY odd",
    "SELECT FMOD(n, 2) AS odd, FDIV(SUM(n) + 1, 2) * 3 AS s FROM visits GROUP BY odd",
    "SELECT COUNT(*) FROM visits WHERE fdiv(age - 1, n + 3) + (n + 1) // 2 = MOD(age, n - 1) AND fmod(7, 2) = 1",
    "SELECT COALESCE(ward, 'x') AS w, SUM(LEAST(GREATEST(age, 10), 50)) AS s FROM visits GROUP BY w",
    "SELECT COUNT(*) FROM visits WHERE ward IS NULL AND age BETWEEN 60.5 AND 70 AND ok IS NOT NULL",
    "SELECT COUNT(*) FROM visits WHERE LOWER(SUBSTR(ward, 1, 1)) || 'x' = 'ax'",
    "SELECT COUNT(*) FROM visits WHERE day = DATE '1970-02-10' OR EXTRACT(MONTH FROM day) = 3",
    "SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', day) < '1970-03-01' AND CAST(n AS DOUBLE) / 2 < -1",
    "SELECT VAR_SAMP(age) AS v, STDDEV_POP(n) AS s, COVAR_POP(age, n) AS c, CORR(age, n) AS r FROM visits",
    "SELECT MEDIAN(age) AS m, QUANTILE_CONT(age, 0.9) AS q, MIN(n) AS low, MAX(n) AS high FROM visits",
    "SELECT ward, ok, COUNT(*) AS c FROM visits GROUP BY ROLLUP (ward, ok)",
    "SELECT ward, ok, COUNT(*) AS c FROM visits GROUP BY CUBE (ward, ok)",
    "SELECT ward, ok, COUNT(*) AS c FROM visits GROUP BY GROUPING SETS ((ward, ok), (ward), ())",
    "SELECT AVG(LEAST(GREATEST(s, 0), 20)) AS a FROM (SELECT id, SUM(n) AS s FROM visits GROUP BY id) AS q",
    "WITH old AS (SELECT * FROM visits WHERE age > 30) SELECT ward, COUNT(*) AS c FROM old GROUP BY ward",
    "SELECT w.beds, COUNT(*) AS c FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.beds",
    "SELECT COUNT(*) FROM visits LEFT JOIN wards USING (ward) WHERE beds IS NULL",
    "SELECT COUNT(*) FROM visits SEMI JOIN wards USING (ward)",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE beds > 20)",
    "SELECT COUNT(*) FROM (SELECT id, ward FROM visits WHERE ok UNION ALL SELECT id, ward FROM visits) AS q",
    "SELECT ward, COUNT(*) AS c FROM (SELECT DISTINCT id, ward FROM visits) AS q GROUP BY ward",
    "SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY n DESC) AS k FROM visits) AS q "
    "WHERE k = 1",
    "SELECT ward, c, c / SUM(c) OVER () AS p FROM (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward) AS q",
    "SELECT a.ward, a.c / b.u AS r FROM (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward) AS a "
    "JOIN (SELECT ward, COUNT(DISTINCT id) AS u FROM visits GROUP BY ward) AS b ON a.ward = b.ward",
    "SELECT COUNT(*) FROM visits WHERE n > (SELECT AVG(n) FROM visits)",
    "SELECT COUNT(*) FILTER (WHERE ok) AS c FROM visits",
    "SELECT COUNT(DISTINCT ward) AS c FROM visits",
]


@pytest.mark.parametrize("sql", SQL)
def test_sql_says_the_same_in_python(desk: Session, sql: str) -> None:
    """The same plans, and the same answer at an epsilon where noise is 0."""
    text = from_sql(sql)
    built = eval(text, {"__builtins__": {}, "session": session, "hb": x})
    assert _plans(desk, built.sql()) == _plans(desk, sql)
    values = [sorted(map(repr, _rounded(desk.sql(s, epsilon=HUGE)))) for s in (built.sql(), sql)]
    assert values[0] == values[1]
    again = eval(from_sql(built.sql()), {"__builtins__": {}, "session": session, "hb": x})
    assert _plans(desk, again.sql()) == _plans(desk, sql)


_NAMES = re.compile(r'AS \\"\w+\\"')
"""A scalar sub-query's column has a name that nothing refers to."""


def _plans(desk: Session, sql: str) -> list[str]:
    asked = desk._data.ask(sql, Options.of({"epsilon": HUGE}), desk.ledger.balance.budget)
    return sorted(_NAMES.sub("name", plan.key()) for plans in asked.plans for plan in plans)


def _rounded(release: Any) -> list[tuple[Any, ...]]:
    return [tuple(round(c, 2) if isinstance(c, float) else c for c in row) for row in release.rows()]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 +",
        "SELECT COUNT(*)",
        "SELECT COUNT(*) FROM read_csv('x.csv')",
        "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM wards)",
        "SELECT COUNT(*) FROM visits QUALIFY 1 = 1",
        "SELECT COUNT(*) FROM visits TABLESAMPLE 3 ROWS",
        "DELETE FROM visits",
    ],
)
def test_what_verbs_have_no_word_for_is_refused(sql: str) -> None:
    with pytest.raises(hb.QueryError):
        from_sql(sql)


def test_importing_the_room_is_light() -> None:
    program = "import sys, hubbub.verbs; print([m for m in ('sqlglot', 'numpy', 'duckdb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_that_an_answer_had_before_its_selection_was_a_value_lead_there_and_warn() -> None:
    rows = rows_of(None, "visits", columns=["ward", "age"])
    asked = rows.group_by("ward").agg(n=hb.count()).filter(hb.col("n") > 3).select("n").limit(2)
    chosen = asked.selection
    for name, value in (("rows", asked.groups.rows), ("having", chosen.having), ("tail", chosen.tail)):
        with pytest.warns(DeprecationWarning, match=rf"Answer\.{name} is now Answer\.\w+\.{name};"):
            assert getattr(asked, name) is value
    with pytest.warns(DeprecationWarning, match=r"Answer\.names is now Answer\.selection\.names;"):
        assert asked.names() == ("n",)  # type: ignore[attr-defined]
    assert {"rows", "columns", "having", "names", "shown", "tail"} & set(dir(asked)) == set()
    with pytest.raises(AttributeError, match="'Answer' object has no attribute 'head'"):
        asked.head()  # type: ignore[attr-defined]
