"""Dates and times: their clocks, the ranges that follow through expressions, and answers that are dates and times."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import hubbub as hb
from hubbub import plots
from hubbub.cli.formats import as_csv, as_json
from hubbub.tables.columns import between, one_of
from hubbub.tables.expressions import Call, Case, Column, IsNull, Literal
from hubbub.tables.functions import DAY, EPOCH
from hubbub.tables.kinds import Kind
from hubbub.tables.spans import span
from hubbub.tables.times import clock
from people import HUGE, session

D, M = Column("t.d", Kind.DATE), Column("t.m", Kind.TIMESTAMP)
FIRST, LAST = dt.date(2019, 11, 3), dt.date(2022, 2, 27)
DECLARED = {"t.d": between(FIRST, LAST), "t.m": between(FIRST, LAST)}
UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def _us(value: dt.date) -> int:
    time = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    return (time - EPOCH) // dt.timedelta(microseconds=1)


@given(
    st.sampled_from([Kind.DATE, Kind.TIMESTAMP]),
    st.datetimes(),
    st.one_of(st.timedeltas(dt.timedelta(0), dt.timedelta(minutes=5)), st.timedeltas(dt.timedelta(0))),
)
def test_a_clock_starts_at_the_range_and_has_few_enough_steps(
    kind: Kind, low: dt.datetime, width: dt.timedelta
) -> None:
    high = low + min(width, dt.datetime.max - low)
    if kind is Kind.DATE:
        low, high = (dt.datetime(x.year, x.month, x.day) for x in (low, high))
    found = clock(kind, Fraction(_us(low)), Fraction(_us(high)), 2**16)
    assert found.origin <= low < found.origin + dt.timedelta(microseconds=found.step)
    assert found.place(Fraction(_us(high))) <= 2**16 + 1
    assert found.step % DAY == 0 or DAY % found.step == 0
    assert kind is Kind.TIMESTAMP or (found.step % DAY == 0 and found.origin == low)
    steps = np.array([0, 3])
    unit = DAY if kind is Kind.DATE else 1
    exact = [min(max((_us(found.origin) + n * found.step), _us(low)), _us(high)) // unit for n in (0, 3)]
    assert np.abs(found.numbers(steps) - exact).max() <= 32


@given(st.sampled_from([Kind.DATE, Kind.TIMESTAMP]), st.datetimes(), st.datetimes())
def test_every_step_of_a_clock_stands_for_a_moment_within_the_range(
    kind: Kind, one: dt.datetime, other: dt.datetime
) -> None:
    low, high = sorted((one, other))
    if kind is Kind.DATE:
        low, high = (dt.datetime(x.year, x.month, x.day) for x in (low, high))
    if high - low < dt.timedelta(microseconds=64):
        return  # floats lie 32 apart in the year 9999
    unit = DAY if kind is Kind.DATE else 1
    found = clock(kind, Fraction(_us(low)), Fraction(_us(high)), 2**16)
    steps = np.array([-1, 0, 1, 2**15, 2**16, 2**16 + 1])
    numbers = [int(x) for x in found.numbers(steps)]
    assert all(_us(low) <= x * unit <= _us(high) for x in numbers)
    assert all(isinstance(EPOCH + dt.timedelta(microseconds=x * unit), dt.datetime) for x in numbers)
    assert numbers == sorted(numbers)


def test_the_end_of_the_year_9999_is_no_year_10000() -> None:
    last = Fraction(_us(dt.datetime.max))
    assert float(last) > last
    for low in (last - 100, last - DAY, Fraction(_us(dt.datetime.min))):
        found = clock(Kind.TIMESTAMP, low, last, 2**16)
        end = int(found.numbers(2**16 + 1))
        assert last - 32 < end <= last
        assert (EPOCH + dt.timedelta(microseconds=end)).year == 9999


@settings(deadline=None, max_examples=50)
@given(st.dates(FIRST, LAST), st.times(), st.sampled_from(UNITS), st.dates(FIRST, LAST))
def test_ranges_follow_through_functions_of_dates_and_times(
    day: dt.date, time: dt.time, unit: str, other: dt.date
) -> None:
    """What DuckDB computes of any values within their bounds lies in the range."""
    written = {
        f"date_trunc('{unit}', m)": Call("DATE_TRUNC", (Literal(unit), M)),
        f"date_diff('{unit}', CAST(d AS TIMESTAMP), m)": Call("DATE_DIFF", (Literal(unit), D, M)),
        f"date_diff('{unit}', m, CAST(c AS TIMESTAMP))": Call("DATE_DIFF", (Literal(unit), M, Literal(other))),
        "year(m)": Call("EXTRACT", (Literal("YEAR"), M)),
        "CAST(m AS DATE)": Call("CAST_DATE", (M,)),
        "CAST(d AS TIMESTAMP)": Call("CAST_TIMESTAMP", (D,)),
        "least(d, c)": Call("LEAST", (D, Literal(other))),
        "greatest(m, CAST(c AS TIMESTAMP))": Call("GREATEST", (M, Literal(other))),
        "CASE WHEN m IS NULL THEN c ELSE d END": Case((IsNull(M),), (Literal(other),), D),
    }
    moment = dt.datetime.combine(day, time)
    with duckdb.connect() as con:
        row = con.execute(
            f"SELECT {', '.join(written)} FROM (SELECT ?::DATE AS d, ?::TIMESTAMP AS m, ?::DATE AS c)",
            [day, moment, other],
        ).fetchall()[0]
    for value, node in zip(row, written.values(), strict=True):
        low, high = span(node, DECLARED) or (None, None)
        assert low is not None
        assert high is not None
        assert low <= (_us(value) if isinstance(value, dt.date) else value) <= high, node


def test_a_last_day_is_there_to_its_end_and_a_last_moment_is_the_last() -> None:
    day = dt.date(2020, 2, 29)
    assert span(M, {"t.m": between(day, dt.date(2020, 3, 1))}) == (_us(day), _us(dt.date(2020, 3, 2)) - 1)
    assert span(D, {"t.d": between(day, dt.date(2020, 3, 1))}) == (_us(day), _us(dt.date(2020, 3, 1)))
    noon = dt.datetime(2020, 3, 1, 12)
    assert span(M, {"t.m": between(dt.datetime(2020, 2, 29), noon)}) == (_us(day), _us(noon))
    assert span(D, {"t.d": between(dt.datetime(2020, 2, 29), noon)}) == (_us(day), _us(dt.date(2020, 3, 1)))
    assert span(D, {"t.d": one_of(dt.date(2021, 1, 1), day, None)}) == (_us(day), _us(dt.date(2021, 1, 1)))
    assert span(D, {}) == (None, None)


ROWS = 101
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=7 * i) for i in range(ROWS)]
PEOPLE = pa.table(
    {
        "u": list(range(ROWS)),
        "g": ["a" if i % 2 else "b" for i in range(ROWS)],
        "day": DAYS,
        "moment": [dt.datetime(2020, 1, 1, 6) + dt.timedelta(hours=6 * i) for i in range(ROWS)],
        "early": [dt.date(1900, 1, 1)] * 60 + DAYS[60:],
        "gaps": pa.array([None] * 99 + DAYS[99:], pa.date32()),
        "free": DAYS,
    }
)


def _table(**more: Any) -> hb.PrivateTable:
    bounds = {n: hb.between("2020-01-01", "2021-12-31") for n in ("day", "moment", "early")}
    gaps = hb.between("2020-01-01", "2020-01-31", nullable=False)
    columns = {"g": hb.one_of("a", "b"), "gaps": gaps, **bounds}
    return hb.table(PEOPLE, unit="u", max_groups=1, max_rows=1, columns=columns, **more)


def test_answers_intervals_and_draws_are_dates_and_times() -> None:
    with session(epsilon=10**4 * HUGE, people=_table()) as s:
        r = s.sql("SELECT g, MEDIAN(day) AS d, MEDIAN(moment) AS m FROM people GROUP BY g ORDER BY g", epsilon=HUGE)
    assert r.to_arrow().schema.types[1:] == [pa.date32(), pa.timestamp("us")]
    found = r.intervals()
    assert [found.schema.field(f"d{end}").type for end in ("_low", "_high")] == [pa.date32()] * 2
    assert [found.schema.field(f"m{end}").type for end in ("_low", "_high")] == [pa.timestamp("us")] * 2
    for row in found.to_pylist():
        for name in ("d", "m"):
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert DAYS[49] <= found.to_pylist()[0]["d"] <= DAYS[51]  # 50 values: anything between the two in the middle
    # At more than the brackets' level nothing is claimed but the declared range.
    wide = r.intervals(0.99).to_pylist()[0]
    assert (wide["d_low"], wide["d_high"]) == (dt.date(2020, 1, 1), dt.date(2021, 12, 31))
    drawn = r.error.draws(20)
    assert drawn["d"].dtype == np.dtype("datetime64[D]")
    assert drawn["m"].dtype == np.dtype("datetime64[us]")
    assert drawn["d"].shape == (20, 2)
    low, high = (np.array([x[f"d_{end}"] for x in found.to_pylist()], "datetime64[D]") for end in ("low", "high"))
    assert ((low <= drawn["d"]) & (drawn["d"] <= high)).all()
    with pytest.raises(hb.ParameterError, match="not a column of numbers"):
        r["d"]


def test_what_is_shown_of_dates() -> None:
    with session(epsilon=10**4 * HUGE, people=_table()) as s:
        r = s.sql(
            "SELECT g, MAX(day) AS d, MIN(moment) AS m, MAX(moment) - MIN(moment) AS x FROM people GROUP BY g",
            epsilon=HUGE,
        )
        plain = s.sql("SELECT g, COUNT(*) AS n, MAX(day) AS d FROM people GROUP BY g", epsilon=HUGE)
    assert "2021-11-24 (2021-11-24..2021-12-31)" in str(r)
    assert "2020-01-01 12:00:00 (2020-01-01 00:00:00..2020-01-01 12:00:00)" in str(r)
    table = r.intervals()
    text = as_csv(table.column_names, [list(row.values()) for row in table.to_pylist()])
    assert text.splitlines()[1].split(",")[1:4] == ["2021-11-24", "2021-11-24", "2021-12-31"]
    assert json.loads(as_json(table.to_pylist()))[0]["m"] == "2020-01-01T12:00:00"
    assert r.to_dict()["x"] == [dt.timedelta(hours=6 * 98)] * 2 or r.to_dict()["x"][1] == dt.timedelta(hours=6 * 100)
    assert r.error.draws(5)["x"].dtype == np.dtype("timedelta64[us]")
    page = r._repr_html_()
    assert "2021-11-24" in page
    assert page.count("<svg") == (len(r) > 1)
    assert "<svg" in plain._repr_html_()
    pytest.importorskip("matplotlib")
    axes = r.plot("d", ax=plots.axes())
    assert str(axes.yaxis.get_major_formatter().__class__.__name__).endswith("DateFormatter")
    assert axes.get_ylim()[0] > _us(dt.date(2021, 1, 1)) / DAY
    assert r.plot("m", ax=plots.axes()).get_ylim()[1] < _us(dt.date(2021, 1, 1)) / DAY


def test_the_outer_part_reckons_with_dates() -> None:
    with session(epsilon=10**4 * HUGE, people=_table()) as s:
        r = s.sql(
            "SELECT DATE_TRUNC('month', MAX(day)) AS month, MAX(day) - MIN(day) AS days, "
            "MAX(day) > DATE '2021-06-01' AS late, MAX(day) + INTERVAL 1 DAY AS next FROM people",
            epsilon=HUGE,
        )
        windowed = s.sql(
            "SELECT day, MAX(m) OVER () AS last FROM (SELECT day, MAX(moment) AS m FROM people GROUP BY day)",
            epsilon=HUGE,
            keys={"day": DAYS[:3]},
        )
    (row,) = r.rows()
    assert str(row[0])[:10] == "2021-12-01"
    assert row[1:3] == (700, True)
    assert str(row[3])[:10] == "2021-12-02"
    assert windowed.to_dict()["day"] == DAYS[:3]
    assert [n for n in windowed.intervals().column_names if n.endswith("_low")] == ["last_low"]


def test_dates_beyond_the_bounds_count_as_the_bounds_and_nulls_as_the_middle_if_so_declared() -> None:
    with session(epsilon=10**4 * HUGE, people=_table()) as s:
        r = s.sql("SELECT MIN(early) AS a, MEDIAN(early) AS b, MEDIAN(gaps) AS c FROM people", epsilon=HUGE)
        inside = s.sql(
            "SELECT MEDIAN(LEAST(GREATEST(free, DATE '2020-06-01'), DATE '2020-06-03')) AS m FROM people", epsilon=HUGE
        )
    assert r.rows() == [(dt.date(2020, 1, 1), dt.date(2020, 1, 1), dt.date(2020, 1, 16))]
    assert inside.rows() == [(dt.date(2020, 6, 3),)]


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("SELECT AVG(day) FROM people", hb.QueryError, "MIN, MAX, MEDIAN and QUANTILE_CONT; or make it a number"),
        ("SELECT SUM(moment) FROM people", hb.QueryError, "this is a timestamp"),
        ("SELECT CORR(day, day) FROM people", hb.QueryError, "needs a number, and this is a date"),
        ("SELECT MAX(g) FROM people", hb.QueryError, "MAX needs a number, a date or a time"),
        ("SELECT MAX(free) FROM people", hb.PolicyError, 'hb.between\\("2020-01-01", "2024-12-31"\\)'),
        ("SELECT MEDIAN(CAST(g AS DATE)) FROM people", hb.QueryError, "can get"),
    ],
)
def test_what_is_refused_says_what_would_do(sql: str, error: type[Exception], words: str) -> None:
    with session(epsilon=1, people=_table()) as s:
        with pytest.raises(error, match=words):
            s.check(sql, epsilon=1)
        assert s.remaining == 1


def test_a_date_in_a_receipt_is_on_a_grid_of_days_and_check_is_in_ranks() -> None:
    with session(epsilon=2, people=_table()) as s:
        found = s.check("SELECT MAX(day) AS last FROM people", epsilon=1)
        assert found.columns[0].ranks is not None
        r = s.sql("SELECT MAX(day) AS last, MIN(moment) AS first FROM people", epsilon=1)
    assert sorted(m["step"] for m in r.receipt["measurements"]) == ["1 days", "1200 s"]


def test_verbs_take_quantiles_of_dates() -> None:
    with session(epsilon=10**4 * HUGE, people=_table()) as s:
        answer = s.table("people").agg(hb.max("day").alias("last"), hb.median("day").alias("middle")).run(epsilon=HUGE)
        about = s.table("people").describe("day").run(epsilon=HUGE)
    assert answer.rows() == [(DAYS[-1], DAYS[50])]
    assert about.columns == tuple(f"day_{word}" for word in ("count", "min", "q25", "median", "q75", "max"))
    assert about.to_dict()["day_min"] == DAYS[:1]


END = dt.datetime(9999, 12, 31, 23, 59, 59)
FAR = [
    (("1900-01-01", "9999-12-31"), END),
    (("9990-01-01", "9999-12-31"), END),
    (("0001-01-01", "9999-12-31"), END),
    (("9999-12-30", "9999-12-31"), END),
    (("2000-01-01", "2300-12-31"), dt.datetime(2290, 12, 30)),
    (("1600-01-01", "1700-12-31"), dt.datetime(1601, 1, 1)),
    (("0001-01-01", "0001-12-31"), dt.datetime(1, 1, 1)),
]


@pytest.mark.parametrize(("ends", "moment"), FAR, ids=lambda x: str(x)[:24])
@pytest.mark.parametrize("epsilon", [HUGE, 0.01])
def test_times_and_dates_far_away_are_answered_shown_and_drawn(
    ends: tuple[str, str], moment: dt.datetime, epsilon: float
) -> None:
    frame = pa.table(
        {
            "u": list(range(40)),
            "m": pa.array([moment] * 40, pa.timestamp("us")),
            "d": pa.array([moment.date()] * 40, pa.date32()),
        }
    )
    declared = {c: hb.between(*ends) for c in "md"}
    with session(10 * HUGE, p=hb.table(frame, unit="u", max_groups=1, max_rows=1, columns=declared)) as s:
        r = s.sql("SELECT MAX(m) AS m, MAX(d) AS d, MIN(m) - TIMESTAMP '2000-01-01' AS x FROM p", epsilon=epsilon)
    low, high = (dt.date.fromisoformat(end) for end in ends)
    for level in (0.95, 0.99):
        (row,) = r.intervals(level).to_pylist()
        assert low <= row["m_low"].date() <= row["m"].date() <= row["m_high"].date() <= high
        assert low <= row["d_low"] <= row["d"] <= row["d_high"] <= high
    if epsilon == HUGE:  # the bracket of the greatest value may reach one step below it
        (row,) = r.intervals().to_pylist()
        step = (high - low) / 2**15 + dt.timedelta(days=1)
        assert max(row["m_low"] - moment, moment - row["m_high"], abs(row["m"] - moment)) <= step
        assert abs(row["d"] - moment.date()) <= step
    drawn = r.error.draws(50)
    assert not any(np.isnat(drawn[c]).any() for c in "mdx")
    assert all(low <= day <= high for day in drawn["d"].ravel().tolist())
    assert all(np.isfinite(widths).all() for widths in r.error.half_widths().values())
    assert f"{row['d'].isoformat()} (" in str(r)
    assert row["d"].isoformat() in r._repr_html_()
    assert r.to_pandas().shape == (1, 3)
    pytest.importorskip("matplotlib")
    for name in "md":
        r.plot(name, ax=plots.axes()).figure.canvas.draw()
        assert f"{row[name].year:04}" in r.plot(name).svg()


def test_a_picture_by_the_last_day_of_all_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    days = [dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    frame = pa.table({"u": [1, 2, 3], "d": pa.array([*days, days[1]], pa.date32())})
    people = hb.table(frame, unit="u", max_groups=1, max_rows=1, columns={"d": hb.one_of(*days)})
    with session(10 * HUGE, p=people) as s:
        r = s.sql("SELECT d, COUNT(*) AS n FROM p GROUP BY d", epsilon=HUGE)
    for kind in ("lines", "bars", "points"):
        r.plot(kind=kind, ax=plots.axes()).figure.canvas.draw()
        assert r.plot(kind=kind).svg().count(" ± ") > 1
