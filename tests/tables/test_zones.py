"""Local times: what a zone's clocks show, on every engine by the same text, without the engine's zone data."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from random import Random
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


def test_what_is_no_zone_is_refused() -> None:
    for zone in ("Europe/Room", "", "../etc/passwd", 3):
        with pytest.raises(PolicyError, match="tz="):
            hb.between("2022-01-01", "2024-12-31", tz=zone)  # type: ignore[call-overload]
    with pytest.raises(PolicyError, match="a zone is for times"):
        hb.between(0, 10, tz="Europe/Rome")
    rows = pa.table({"id": [1], "at": [dt.datetime(2023, 1, 1)]})
    with session(epsilon=1, v=hb.table(rows, unit="id", max_total=1)) as s, pytest.raises(QueryError, match="tz="):
        s.check("SELECT COUNT(*) FROM v WHERE at AT TIME ZONE 'Europe/Rome' > '2023-01-01'", epsilon=1)
