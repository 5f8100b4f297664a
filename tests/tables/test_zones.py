"""Local times: what a zone's clocks show, on every engine by the same text, without the engine's zone data."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.errors import PolicyError, QueryError
from hubbub.sql.emit.expression import expression_sql
from hubbub.tables.columns import between
from hubbub.tables.expressions import Column
from hubbub.tables.kinds import Kind
from hubbub.tables.spans import span
from hubbub.tables.zones import local
from people import HUGE, session

ZONES = ["Europe/Rome", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]
QUOTED = '"t0.at"'
FIRST, LAST = dt.datetime(2021, 12, 31), dt.datetime(2025, 1, 2)


def _clock(moment: dt.datetime, zone: str) -> dt.datetime:
    return moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def _moments(count: int, zone: str) -> list[dt.datetime]:
    chance, found = Random(zone), []
    for _ in range(count):
        at = dt.datetime(2022, 1, 3) + dt.timedelta(minutes=chance.randrange(1090 * 1440))
        found.append(at)
    changes = [m for y in (2022, 2023, 2024) for m in (dt.datetime(y, 3, 1), dt.datetime(y, 10, 1))]
    for month in changes:  # every half hour of the days on which clocks may be set
        found += [month + dt.timedelta(minutes=30 * k) for k in range(0, 45 * 48, 7)]
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_a_local_time_is_what_the_clocks_show(zone: str) -> None:
    moments = _moments(500, zone)
    text = expression_sql(local(Column("t0.at", Kind.TIMESTAMP), zone, FIRST, LAST), DUCKDB)
    with duckdb.connect() as con:
        con.register("rows", pa.table({"at": moments}))
        con.execute("CREATE TABLE t0 AS SELECT * FROM rows")
        shown = con.execute(f"SELECT {text.replace(QUOTED, QUOTED[0] + QUOTED[4:])} FROM t0").fetchall()
    assert [s for (s,) in shown] == [_clock(m, zone) for m in moments]


@pytest.mark.parametrize("zone", ZONES)
def test_the_declared_range_is_one_of_local_times(zone: str) -> None:
    declared = {"t0.at": between("2022-01-01", "2024-12-31", tz=zone)}
    column = Column("t0.at", Kind.TIMESTAMP)
    low, high = span(column, declared) or (None, None)
    assert low is not None
    assert high is not None
    epoch = dt.datetime(1970, 1, 1)
    first, last = (epoch + dt.timedelta(microseconds=int(m)) for m in (low, high))
    assert _clock(first, zone) == dt.datetime(2022, 1, 1)
    assert _clock(last, zone) == dt.datetime(2024, 12, 31, 23, 59, 59, 999999)
    ends = span(local(column, zone, first, last), declared)
    assert ends == span(Column("t0.at", Kind.TIMESTAMP), {"t0.at": between("2022-01-01", "2024-12-31")})


@pytest.mark.parametrize("zone", ["Europe/Rome", "Asia/Kolkata"])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CAST(at AS DATE)", lambda m: m.date()),
        ("DATE_TRUNC('month', at)", lambda m: dt.datetime(m.year, m.month, 1)),
        ("EXTRACT(hour FROM at)", lambda m: m.hour),
        ("DAYNAME(at)", lambda m: m.strftime("%A")),
    ],
)
def test_groups_of_local_days_months_and_hours(zone: str, text: str, shown: object) -> None:
    moments = _moments(300, zone)
    rows = pa.table({"id": list(range(len(moments))), "at": moments})
    columns = {"at": hb.between("2022-01-01", "2024-12-31", tz=zone)}
    table = hb.table(rows, unit="id", max_rows=1, max_groups=1, columns=columns)
    with session(epsilon=10**7 * HUGE, v=table) as s:
        counts = dict(s.sql(f"SELECT {text} AS k, COUNT(*) AS n FROM v GROUP BY 1", epsilon=HUGE).rows())
        local_day = s.sql("SELECT COUNT(*) AS n FROM v WHERE CAST(at AS DATE) = DATE '2023-07-01'", epsilon=HUGE)
    expected = Counter(shown(_clock(m, zone)) for m in moments)  # type: ignore[operator]
    assert {k: n for k, n in counts.items() if n} == dict(expected)
    assert local_day.rows() == [(sum(_clock(m, zone).date() == dt.date(2023, 7, 1) for m in moments),)]
    if "DATE" in text:
        assert len(counts) == {"CAST(at AS DATE)": 1096, "DATE_TRUNC('month', at)": 36}[text]


def test_an_hour_that_is_shown_twice_is_one_group() -> None:
    moments = [dt.datetime(2023, 10, 29, 0, 30), dt.datetime(2023, 10, 29, 1, 30), dt.datetime(2023, 10, 29, 2, 30)]
    rows = pa.table({"id": [1, 2, 3], "at": moments})
    columns = {"at": hb.between("2023-10-28", "2023-10-30", tz="Europe/Rome")}
    table = hb.table(rows, unit="id", max_rows=1, max_groups=1, columns=columns)
    with session(epsilon=10**7 * HUGE, v=table) as s:
        counts = s.sql("SELECT DATE_TRUNC('hour', at) AS h, COUNT(*) AS n FROM v GROUP BY 1", epsilon=HUGE).rows()
    assert {h.hour: n for h, n in counts if n} == {2: 2, 3: 1}


@pytest.mark.parametrize(
    ("zone", "day"),
    [("America/Recife", dt.datetime(2000, 10, 8, 2, 30)), ("Africa/Freetown", dt.datetime(1939, 8, 31))],
)
def test_clocks_that_are_set_back_within_a_week_are_followed(zone: str, day: dt.datetime) -> None:
    """Wherever the declared range begins: half-hours of two weeks, by the offset that the expression holds."""
    moments = [day + dt.timedelta(minutes=30 * k) for k in range(48 * 12)]
    for before in range(1, 9):
        shown = local(Column("at", Kind.TIMESTAMP), zone, day - dt.timedelta(days=before), day + dt.timedelta(days=40))
        with duckdb.connect() as con:
            con.register("rows", pa.table({"at": moments}))
            found = con.execute(f"SELECT {expression_sql(shown, DUCKDB)} FROM rows").fetchall()
        assert [f for (f,) in found] == [_clock(m, zone) for m in moments], before


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Pacific/Honolulu", "UTC"])
def test_a_range_of_all_years_is_one_where_clocks_are_set_seldom(zone: str) -> None:
    rows = pa.table({"id": [1, 2], "at": [dt.datetime(2020, 1, 1, 20), dt.datetime(2020, 1, 2, 5)]})
    columns = {"at": hb.between("0001-01-01", "9999-12-31", tz=zone)}
    with session(epsilon=10**7 * HUGE, v=hb.table(rows, unit="id", max_total=1, columns=columns)) as s:
        sql = "SELECT COUNT(*) AS n FROM v WHERE CAST(at AS DATE) = '2020-01-02'"
        expected = sum(_clock(m, zone).date() == dt.date(2020, 1, 2) for m in rows["at"].to_pylist())
        assert s.sql(sql, epsilon=HUGE).rows() == [(expected,)]


def test_a_range_in_which_clocks_are_set_too_often_is_refused() -> None:
    columns = {"at": hb.between("0001-01-01", "9999-12-31", tz="America/New_York")}
    table = hb.table(pa.table({"id": [1], "at": [dt.datetime(2020, 1, 1)]}), unit="id", max_total=1, columns=columns)
    with session(epsilon=1, v=table) as s, pytest.raises(QueryError, match="set more than 500 times"):
        s.check("SELECT COUNT(*) FROM v WHERE YEAR(at) = 2020", epsilon=1)


def test_what_is_no_zone_is_refused() -> None:
    for zone in ("Europe/Room", "", "../etc/passwd", 3):
        with pytest.raises(PolicyError, match="tz="):
            hb.between("2022-01-01", "2024-12-31", tz=zone)  # type: ignore[call-overload]
    with pytest.raises(PolicyError, match="a zone is for times"):
        hb.between(0, 10, tz="Europe/Rome")
    rows = pa.table({"id": [1], "at": [dt.datetime(2023, 1, 1)]})
    with session(epsilon=1, v=hb.table(rows, unit="id", max_total=1)) as s, pytest.raises(QueryError, match="tz="):
        s.check("SELECT COUNT(*) FROM v WHERE at AT TIME ZONE 'Europe/Rome' > '2023-01-01'", epsilon=1)


MOMENTS = [dt.datetime(2023, 10, 28) + dt.timedelta(minutes=30 * k) for k in range(150)]
BETWEEN = {"seen": hb.between("2022-01-01", "2024-12-31")}
PLAIN = pa.table({"id": list(range(150)), "seen": MOMENTS})
WITH_ZONE = PLAIN.set_column(1, "seen", pa.array(MOMENTS, pa.timestamp("us", "UTC")))
LIMITED = {"unit": "id", "max_rows": 1, "max_groups": 1}
ROME_DAYS = "SELECT CAST(seen {} AS DATE) AS k, COUNT(*) AS n FROM v GROUP BY 1"
IN_ROME = "AT TIME ZONE 'Europe/Rome'"
TWICE = "AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Rome'"


def _counts(sql: str, **table: object) -> dict[object, int]:
    with session(epsilon=10**7 * HUGE, v=hb.table(**{**LIMITED, **table})) as s:  # type: ignore[arg-type]
        return {k[0] if k else "all": n for *k, n in s.sql(sql, epsilon=HUGE).rows() if n}


def _refused(sql: str, words: str, **table: object) -> None:
    with (
        session(epsilon=1, v=hb.table(**{**LIMITED, **table})) as s,  # type: ignore[arg-type]
        pytest.raises(QueryError, match=words),
    ):
        s.check(sql, epsilon=1)


@pytest.mark.parametrize(
    ("frame", "columns", "written"),
    [
        (PLAIN, BETWEEN, TWICE),
        (WITH_ZONE, BETWEEN, IN_ROME),
        (PLAIN, {"seen": hb.between("2022-01-01", "2024-12-31", tz="America/New_York")}, IN_ROME),
        (WITH_ZONE.to_pandas(), BETWEEN, IN_ROME),
    ],
    ids=["a time without a zone", "a time with a zone", "declared with a zone", "a pandas column with a zone"],
)
def test_at_time_zone_is_what_the_clocks_show(frame: object, columns: object, written: str) -> None:
    expected = Counter(_clock(m, "Europe/Rome").date() for m in MOMENTS)
    assert _counts(ROME_DAYS.format(written), source=frame, columns=columns) == dict(expected)


@pytest.mark.parametrize(
    "written",
    [
        "timezone('Europe/Rome', timezone('UTC', seen))",
        "CONVERT_TIMEZONE('UTC', 'Europe/Rome', seen)",
        "FROM_UTC_TIMESTAMP(seen, 'Europe/Rome')",
    ],
)
def test_other_words_for_it_are_read_alike(written: str) -> None:
    expected = Counter(_clock(m, "Europe/Rome").hour for m in MOMENTS)
    sql = f"SELECT EXTRACT(hour FROM {written}) AS k, COUNT(*) AS n FROM v GROUP BY 1"
    assert _counts(sql, source=PLAIN, columns=BETWEEN) == dict(expected)


def test_at_time_zone_within_a_query_of_its_own() -> None:
    expected = Counter(_clock(m, "Asia/Kolkata").hour for m in MOMENTS[4:])
    sql = (
        "SELECT EXTRACT(hour FROM x.seen AT TIME ZONE 'Asia/Kolkata') AS k, COUNT(*) AS n "
        "FROM (SELECT id, seen FROM v WHERE id > 3) x GROUP BY 1"
    )
    assert _counts(sql, source=WITH_ZONE, columns=BETWEEN) == dict(expected)


@pytest.mark.parametrize("columns", [BETWEEN, {"seen": hb.between("2022-01-01", "2024-12-31", tz="Asia/Tokyo")}])
@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (f"seen >= TIMESTAMP '2023-10-29 12:00' {IN_ROME}", lambda m: m >= dt.datetime(2023, 10, 29, 11)),
        (f"TIMESTAMP '2023-10-28 12:00' {IN_ROME} > seen", lambda m: m < dt.datetime(2023, 10, 28, 10)),
        (
            f"seen BETWEEN TIMESTAMP '2023-10-29 12:00' {IN_ROME} AND TIMESTAMPTZ '2023-10-30 00:00:00+02'",
            lambda m: dt.datetime(2023, 10, 29, 11) <= m <= dt.datetime(2023, 10, 29, 22),
        ),
    ],
)
def test_a_constant_at_a_zone_is_a_moment(columns: object, condition: str, holds: object) -> None:
    expected = sum(holds(m) for m in MOMENTS)  # type: ignore[operator]
    sql = f"SELECT COUNT(*) AS n FROM v WHERE {condition}"
    assert _counts(sql, source=PLAIN, columns=columns) == {"all": expected}


def test_the_other_meaning_is_refused_with_the_one_that_is_meant() -> None:
    _refused(ROME_DAYS.format(IN_ROME), "AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Rome'", source=PLAIN, columns=BETWEEN)
    _refused(ROME_DAYS.format(TWICE), "write it once", source=WITH_ZONE, columns=BETWEEN)
    home = "AT TIME ZONE 'Europe/Rome' AT TIME ZONE 'UTC'"
    _refused(ROME_DAYS.format(home), "in UTC here", source=PLAIN, columns=BETWEEN)
    _refused(ROME_DAYS.format(IN_ROME), r"hb\.between", source=WITH_ZONE)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (f"seen > TIMESTAMP '2023-10-29 02:30' {IN_ROME}", "show 2023-10-29 02:30:00 twice; write the moment"),
        (f"seen > TIMESTAMP '2023-03-26 02:30' {IN_ROME}", "never"),
        ("seen AT TIME ZONE 'Europe/Room' > '2023-01-01'", "no zone"),
        (f"DATE_TRUNC('day', seen) {IN_ROME} > '2023-01-01'", "write it inside"),
        (f"id {IN_ROME} > '2023-01-01'", "takes a column of times"),
        ("seen > TIMESTAMPTZ '2023-10-29 02:30'", "how far from UTC"),
    ],
)
def test_what_has_no_one_moment_is_refused(condition: str, words: str) -> None:
    _refused(f"SELECT COUNT(*) FROM v WHERE {condition}", words, source=WITH_ZONE, columns=BETWEEN)


# -- moments beside what clocks show ------------------------------------------------------------------------------

START = dt.datetime(2023, 10, 29, 0, 30)
"""In UTC; half past two in Rome, for the first time that night."""
TWO = pa.table(
    {
        "id": list(range(150)),
        "seen": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "left": pa.array([m + dt.timedelta(minutes=90) for m in MOMENTS], pa.timestamp("us", "UTC")),
    }
)
CLOCKS = [
    {"seen": BETWEEN["seen"], "left": BETWEEN["seen"]},
    {"seen": hb.between("2022-01-01", "2024-12-31", tz="Europe/Rome"), "left": BETWEEN["seen"]},
    *(
        dict.fromkeys(("seen", "left"), hb.between("2022-01-01", "2024-12-31", tz=zone))
        for zone in ("Asia/Tokyo", "UTC")
    ),
]
LATER = [m for m in MOMENTS if m >= START]


@pytest.mark.parametrize("columns", CLOCKS)
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("seen >= '2023-10-29 00:30:00+00'", len(LATER)),
        ("'2023-10-29 02:30:00+02' <= seen", len(LATER)),
        ("NOT seen < '2023-10-29T00:30:00Z'", len(LATER)),
        ("seen IN ('2023-10-29 02:30:00+02', '2023-10-29 02:30:00+01', '2022-01-01 00:00:00+00')", 2),
        ("seen IN (TIMESTAMPTZ '2023-10-29 02:30:00+02', TIMESTAMP '2023-10-29 12:00' AT TIME ZONE 'Europe/Rome')", 2),
        ("seen NOT IN ('2023-10-29 02:30:00+02')", 149),
        ("seen BETWEEN '2023-10-29 02:30:00+02' AND '2023-10-29 02:30:00+01'", 3),
        ("seen IS NOT DISTINCT FROM '2023-10-29 02:30:00+02'", 1),
        ("CASE seen WHEN '2023-10-29 02:30:00+02' THEN TRUE ELSE FALSE END", 1),
        ("seen >= ?", len(LATER)),
        ("seen BETWEEN ? AND '2023-10-29 02:30:00+01'", 3),
        ("seen = ?", 1),
        ("left > seen", 150),
        ("left - seen = INTERVAL '90' MINUTE", 150),
        ("EXTRACT(EPOCH FROM seen) >= 1698539400", len(LATER)),
    ],
)
def test_a_moment_is_compared_by_moments_whatever_clocks_show(columns: Any, condition: str, expected: int) -> None:
    """It was compared with what the clocks show: off by the zone's hours."""
    there = START.replace(tzinfo=dt.UTC).astimezone(ZoneInfo("America/New_York"))
    params: Any = {"params": [there]} if "?" in condition else {}
    table = hb.table(TWO, **{**LIMITED, "columns": columns})
    with session(epsilon=10**7 * HUGE, v=table) as s:
        sql = f"SELECT COUNT(*) AS n FROM v WHERE {condition}"
        assert s.sql(sql, epsilon=HUGE, **params).rows() == [(expected,)]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("seen + INTERVAL 1 HOUR >= '2023-10-29 00:30:00+00'", "is a moment, and here the time of a clock is meant"),
        ("seen >= TIMESTAMP '2023-10-29 00:30:00+00'", "is a moment, and here the time of a clock is meant"),
        ("DATE_TRUNC('day', seen) <= now()", "say which clocks show it"),
        ("DATE_DIFF('hour', seen, now()) > 3", "say by which now"),
        ("CAST(seen AS DATE) = current_date", "AS DATE"),
        ("seen >= '0001-01-01 00:00:00+02'", "in the years 1 to 9999"),
        ("'9999-12-31 23:00:00-02' IN ('a', 'b') OR seen IN ('9999-12-31 23:00:00-02')", "in the years 1 to 9999"),
        ("DATE_DIFF('hour', seen, left) > 1", "hours cannot be taken together"),
        ("LEAST(seen, left) = seen", "hours cannot be taken together"),
        ("COALESCE(left, seen) = seen", "hours cannot be taken together"),
        ("DATE_TRUNC('day', seen) = DATE_TRUNC('day', left)", "hours cannot be taken together"),
    ],
)
def test_a_moment_beside_a_clock_is_refused_with_what_to_write(asked: str, words: str) -> None:
    _refused(f"SELECT COUNT(*) AS n FROM v WHERE {asked}", words, source=TWO, columns=CLOCKS[1])


@pytest.mark.parametrize("columns", CLOCKS[:2])
def test_a_text_that_looks_like_a_moment_is_a_text_beside_texts(columns: Any) -> None:
    rows = TWO.append_column("said", pa.array(["2023-10-29 00:30:00+00", "b", None] * 50))
    with session(epsilon=10**7 * HUGE, v=hb.table(rows, **{**LIMITED, "columns": columns})) as s:
        for condition, expected in (
            ("said = CAST('2023-10-29 00:30:00+00' AS VARCHAR)", 50),
            ("said IN ('2023-10-29 00:30:00+00', 'b')", 100),
            ("said >= '2023-10-29 00:30:00+00'", 100),
        ):
            assert s.sql(f"SELECT COUNT(*) AS n FROM v WHERE {condition}", epsilon=HUGE).rows() == [(expected,)]


@pytest.mark.parametrize("zone", [None, "Europe/Rome", "Asia/Tokyo"])
def test_now_is_a_moment(zone: str | None) -> None:
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    seen = [now + dt.timedelta(minutes=15 + 30 * k) for k in range(-75, 75)]
    columns = {"seen": hb.between("2022-01-01", "2099-12-31", tz=zone)}
    clocks = f"AT TIME ZONE '{zone or 'UTC'}'"
    with session(
        epsilon=10**7 * HUGE, v=hb.table(pa.table({"id": range(150), "seen": seen}), **LIMITED, columns=columns)
    ) as s:
        for condition, expected in (
            ("seen < now()", 75),
            ("now() - INTERVAL 1 HOUR <= seen", 77),
            ("seen BETWEEN now() - INTERVAL 90 MINUTE AND now()", 3),
            (f"seen < now() {clocks}", 75),
        ):
            if zone is not None or "AT" not in condition:
                assert s.sql(f"SELECT COUNT(*) AS n FROM v WHERE {condition}", epsilon=HUGE).rows() == [(expected,)]


def test_what_the_refusals_say_is_answered() -> None:
    rome = "AT TIME ZONE 'Europe/Rome'"
    table = hb.table(TWO, **{**LIMITED, "columns": CLOCKS[1]})
    with session(epsilon=10**7 * HUGE, v=table) as s:
        for condition in (
            f"seen <= now() {rome}",
            f"CAST(seen AS DATE) < CAST(now() {rome} AS DATE)",
            "seen + INTERVAL 1 HOUR >= '2023-10-29 00:30:00'",
            f"DATE_DIFF('hour', seen, left {rome}) > 0",
            f"DATE_TRUNC('day', seen) <= DATE_TRUNC('day', left {rome})",
        ):
            ((n,),) = s.sql(f"SELECT COUNT(*) AS n FROM v WHERE {condition}", epsilon=HUGE).rows()
            assert n > 40, condition
