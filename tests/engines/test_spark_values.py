"""Spark: values at the ends of their types are those that DuckDB reads; old calendars say what was written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from engines.places import Embedded, answer
from hubbub.engines.duckdb.relations import image
from hubbub.engines.spark.engine import SparkEngine, _spark_type
from hubbub.tables.clipping import Norm
from hubbub.tables.declare import Limits
from hubbub.tables.plan import make_plans
from hubbub.tables.remote import remote


def frame(spark: Any, table: pa.Table, kinds: dict[str, str] | None = None) -> Any:
    """Rows of Arrow in Spark; kinds: of columns that have another type there."""
    named = {f.name: (kinds or {}).get(f.name, "") or _spark_type(str(f.type)) for f in table.schema}
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return spark.createDataFrame(rows, ", ".join(f"`{n}` {k}" for n, k in named.items())).coalesce(1)


# -- values of every size ---------------------------------------------------------------------------------------------

SIZES = [(38, 0), (38, 10), (38, 38), (19, 18)]


def decimals(precision: int, scale: int) -> pa.Table:
    """Three units with the ends of a type, what is small, and nothing."""
    with localcontext(prec=50):
        least = Decimal(1).scaleb(-scale)
        most = Decimal("9" * precision).scaleb(-scale)
        some = [most, -most, least, -least, Decimal(0), None]
        some += [v.quantize(least) for v in (Decimal("0.5"), Decimal("49.75"), Decimal(7)) if v < most]
    rows = [(unit, "AB"[i % 2], v) for unit in range(3) for i, v in enumerate(some * (unit + 1))]
    ids, groups, values = zip(*rows, strict=True)
    return pa.table({"id": ids, "g": groups, "x": pa.array(values, pa.decimal128(precision, scale))})


@pytest.fixture(scope="module")
def pairs(spark: Any) -> Iterator[Any]:
    """The same rows in DuckDB and in Spark, asked in both."""
    opened: list[Any] = []

    def make(rows: pa.Table, kinds: dict[str, str], **options: Any) -> tuple[Embedded, SparkEngine]:
        table = hb.table(rows, unit="id", max_groups=2, max_rows=3, **options)
        here, there = Embedded({"v": table}, {"v": rows}), SparkEngine()
        # Decimals of Python's objects need the steward's word.
        there.add("v", replace(table, source=remote(frame(spark, rows, kinds)), trusted_view=True))
        there.seal()
        opened.extend([here, there])
        return here, there

    yield make
    for engine in opened:
        engine.close()


def same(pair: tuple[Embedded, SparkEngine], sql: str, limits: Limits, norm: Norm = "l1") -> None:
    here, there = pair
    made = [make_plans(q, image, limits=limits, norm=norm) for q in here.desk.statement(sql).questions]
    for plan in (p for of in made for p in of):
        assert answer(there, plan, {}) == answer(here.engine, plan, {}), sql


@pytest.mark.parametrize("size", [(38, 10), *(pytest.param(s, marks=pytest.mark.soak) for s in SIZES if s != (38, 10))])
def test_decimals_of_38_digits_are_clipped_to_norms_as_in_duckdb(pairs: Any, size: tuple[int, int]) -> None:
    kinds = {"x": "DECIMAL({},{})".format(*size)}
    declared = pairs(decimals(*size), kinds, columns={"g": hb.one_of("A", "B"), "x": hb.between(0, 100)})
    same(declared, "SELECT SUM(x) FROM v", Limits(2, 3, None, "norm"), "l2")
    sql = "SELECT g, SUM(x), AVG(x), VAR_POP(x), COUNT(x) FROM v GROUP BY g"
    if size != (38, 10):
        same(declared, sql, Limits(2, 3, None, "norm"), "l1")
        same(declared, sql, Limits(2, 3, None, "norm"), "l2")
        same(declared, sql, Limits(2, 3, None))


NOTHING = [float("nan"), None]
LEAST = float("-inf")
ENDS = [LEAST, float("inf"), -0.0, 8e307, -8e307]


def test_the_middle_of_what_is_infinite_or_no_number_is_that_of_duckdb(pairs: Any) -> None:
    """Units with every pair of ends and a third, and with NaN and NULL, which are no values."""
    lists = [[a, b, *more] for a in ENDS for b in ENDS for more in ([LEAST], [LEAST, *NOTHING], [3.0])] + [NOTHING]
    # Between -inf and a greater number Spark finds no middle, DuckDB does: a documented difference.
    lists += [[a, b, *more] for a in ENDS[1:] for b in ENDS[1:] for more in ([], NOTHING)]
    rows = [(unit, "AB"[unit % 2], x) for unit, values in enumerate(lists) for x in values]
    ids, groups, values = zip(*rows, strict=True)
    table = pa.table({"id": ids, "g": groups, "x": pa.array(values, pa.float64())})
    pair = pairs(table, {}, columns={"g": hb.one_of("A", "B"), "x": hb.between(-100, 100)})
    middle = "(SELECT id, MEDIAN(x) AS m, MIN(x) AS a, MAX(x) AS b FROM v GROUP BY id) AS p"
    for sql in (
        f"SELECT COUNT(*), COUNT(m), COUNT(a), COUNT(b) FROM {middle} WHERE m IS NULL OR m > 0",
        f"SELECT SUM(LEAST(GREATEST(m, -50), 50)) FROM {middle}",
        "SELECT g, MEDIAN(x) FROM v GROUP BY g",
    ):
        same(pair, sql, Limits(2, 3, None))


def test_between_minus_infinity_and_a_number_spark_finds_no_middle(pairs: Any) -> None:
    """As is documented: it is a function of one unit's rows on every engine, and not the same one."""
    table = pa.table({"id": [1, 1, 2, 2], "g": ["A"] * 4, "x": [LEAST, 1.0, LEAST, float("inf")]})
    here, there = pairs(table, {})
    (plan,) = here.desk.plans("SELECT COUNT(m) AS n FROM (SELECT id, MEDIAN(x) AS m FROM v GROUP BY id) AS p")
    assert answer(here.engine, plan, {}) == ((1,),)
    assert answer(there, plan, {}) == ((0,),)


# -- calendars --------------------------------------------------------------------------------------------------------

OLD = ["0001-01-01", "0004-02-29", "1000-03-01", "1582-10-04", "1582-10-15", "1900-01-01", "2025-01-01"]
WRITTEN = [(mode, kind) for mode in ("LEGACY", "CORRECTED") for kind in ("INT96", "TIMESTAMP_MICROS")]


@pytest.mark.parametrize(
    ("mode", "kind"), [w if w[0] == "LEGACY" else pytest.param(*w, marks=pytest.mark.soak) for w in WRITTEN]
)
def test_files_of_the_old_calendar_are_read_as_what_was_written(
    spark: Any, tmp_path: Path, mode: str, kind: str
) -> None:
    """Such a file says so itself; no setting of the frame's session, nor its time zone, decides what a date is."""
    theirs, path = spark.newSession(), str(tmp_path / "old")
    for key in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
        theirs.conf.set(f"spark.sql.parquet.{key}", mode)
    theirs.conf.set("spark.sql.parquet.outputTimestampType", kind)
    theirs.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    rows = ", ".join(f"({i}, DATE'{d}', TIMESTAMP'{d} 00:00:00 UTC')" for i, d in enumerate(OLD))
    theirs.sql(f"SELECT * FROM VALUES {rows} AS t(id, d, t)").coalesce(1).write.parquet(path)
    days = pa.array([dt.date.fromisoformat(d) for d in OLD])
    times = days.cast(pa.timestamp("us"))
    desk = Desk({"v": hb.table(pa.table({"id": range(7), "d": days, "t": times}), unit="id", max_total=1)})
    each = "SELECT COUNT(*) AS n FROM v WHERE " + " OR ".join(
        f"(id = {i} AND d = DATE '{d}' AND t = TIMESTAMP '{d} 00:00:00')" for i, d in enumerate(OLD)
    )
    (plan,) = desk.plans(each)
    for zone in ("UTC", "Asia/Kathmandu"):
        theirs = spark.newSession()
        theirs.conf.set("spark.sql.session.timeZone", zone)
        engine = SparkEngine()
        engine.add("v", hb.table(theirs.read.parquet(path), unit="id", max_total=1, types={"t": "timestamp"}))
        engine.seal()
        assert answer(engine, plan, {}) == ((7,),)
        engine.close()
    desk.engine.close()
