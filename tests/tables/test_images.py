"""The groups of an expression follow from declared ranges alone, and hold every value that a row in them can give."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk

MOMENT = hb.between("2022-01-01", "2024-12-31")
NO_ROWS = pa.table(
    {
        "id": pa.array([], pa.int64()),
        "seen": pa.array([], pa.timestamp("us")),
        "day": pa.array([], pa.date32()),
        "born": pa.array([], pa.date32()),
        "x": pa.array([], pa.float64()),
        "y": pa.array([], pa.float64()),
        "n": pa.array([], pa.int64()),
        "code": pa.array([], pa.string()),
    }
)
COLUMNS: dict[str, Any] = {
    "seen": MOMENT,
    "day": MOMENT,
    "born": hb.between("1925-01-01", "2020-12-31"),
    "x": hb.between(0, 2000),
    "y": hb.between(-0.5, 1.1),
    "n": hb.between(0, 9),
    "code": hb.one_of("A-1", "A-2", "B-1", None),
}


def desk(rows: pa.Table) -> Desk:
    return Desk({"t": hb.table(rows, unit="id", columns=COLUMNS, max_groups=2, max_rows=2)})


@pytest.fixture(scope="module")
def empty() -> Iterator[Desk]:
    """No row is there: what is found follows from declarations."""
    found = desk(NO_ROWS)
    yield found
    found.engine.close()


def groups(desk: Desk, expression: str, table: str = "t") -> tuple[Any, ...]:
    (plan,) = desk.plans(f"SELECT {expression} AS g, COUNT(*) AS n FROM {table} GROUP BY 1")
    (domain,) = plan.domains
    assert domain is not None
    return domain


COUNTS = [
    ("DATE_TRUNC('month', seen)", 36),
    ("DATE_TRUNC('month', day)", 36),
    ("DATE_TRUNC('quarter', seen)", 12),
    ("DATE_TRUNC('week', seen)", 158),
    ("CAST(seen AS DATE)", 1096),
    ("DATE(seen)", 1096),
    ("STRFTIME(seen, '%Y-%m')", 36),
    ("STRFTIME(seen, '%G-W%V')", 158),
    ("STRFTIME(seen, '%H:%M')", 1440),
    ("YEAR(seen) || '-Q' || QUARTER(seen)", 12),
    ("YEAR(seen) * 100 + MONTH(seen)", 36),
    ("DAYNAME(seen)", 7),
    ("MONTHNAME(seen)", 12),
    ("LAST_DAY(seen)", 36),
    ("EXTRACT(isoyear FROM seen)", 5),
    ("EXTRACT(hour FROM seen)", 24),
    ("EXTRACT(minute FROM seen)", 60),
    ("TIME_BUCKET(INTERVAL '7 days', seen)", 158),
    ("TIME_BUCKET(INTERVAL '12 hours', seen)", 2192),
    ("DATE_TRUNC('year', born)", 96),
    ("FLOOR(x / 500) * 500", 5),
    ("x // 500", 5),
    ("CEIL(x / 500)", 5),
    ("ROUND(x, -3)", 3),
    ("ROUND(y, 1)", 17),
    ("FLOOR(y * 20) / 20", 33),
    ("WIDTH_BUCKET(x, 0, 2000, 4)", 5),
    ("WIDTH_BUCKET(x, 100, 1000, 3)", 5),
    ("CASE WHEN x < 500 THEN 0 ELSE FLOOR(x / 500) * 500 END", 5),
    ("LEFT(code, 1)", 3),
    ("COALESCE(DATE_TRUNC('month', seen), TIMESTAMP '1900-01-01 00:00:00')", 37),
]


@pytest.mark.parametrize(("expression", "count"), [c for c in COUNTS if c[1]], ids=[c[0] for c in COUNTS if c[1]])
def test_an_expression_of_a_declared_range_has_as_many_groups_as_it_has_values(
    empty: Desk, expression: str, count: int
) -> None:
    assert len(groups(empty, expression)) == count


@pytest.mark.parametrize(
    "expression",
    ["seen", "DATE_TRUNC('minute', seen)", "DATE_TRUNC('hour', seen)", "x", "x * 2", "ROUND(x, 3)", "seen::text"],
)
def test_what_has_too_many_groups_is_refused_before_a_row_is_read(empty: Desk, expression: str) -> None:
    with pytest.raises((hb.PolicyError, hb.QueryError)):
        groups(empty, expression)


@pytest.mark.parametrize(
    ("high", "step", "kind"),
    [(10**5, "10000", pa.int64()), (10**6 - 1, "10000", pa.int64()), (2, "0.1", pa.float64()), (30, "1", pa.float64())],
)
def test_what_is_coarser_cuts_a_range_into_ten_to_a_hundred_groups(high: int, step: str, kind: pa.DataType) -> None:
    rows = pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], kind)})
    found = Desk({"t": hb.table(rows, unit="id", columns={"x": hb.between(0, high)}, max_groups=2, max_rows=2)})
    try:
        with pytest.raises(hb.PolicyError) as refused:
            groups(found, "x")
    finally:
        found.engine.close()
    assert refused.value.remedies[0].sql is None
    assert refused.value.remedies[0].example == f"GROUP BY FLOOR(x / {step})"


def test_a_whole_number_of_too_many_combinations_has_the_groups_of_its_range() -> None:
    """Four million pairs (or NULL): no engine lists them; each number between the ends is a group, up to 10,000."""
    declared = {"a": hb.between(0, 2000), "b": hb.between(0, 1999), "c": hb.between(0, 1)}
    rows = pa.table({name: pa.array([], pa.int64()) for name in ("id", *declared)})
    found = Desk({"t": hb.table(rows, unit="id", columns=declared, max_groups=2, max_rows=2)})
    try:
        assert groups(found, "a * 4 + b") == tuple(range(10_000))
        for beyond in ("a * 4 + b + c", "a * 5 + b"):
            with pytest.raises(hb.PolicyError):
                groups(found, beyond)
        assert groups(found, "a * 4 > b") == (False, True)
        with pytest.raises(hb.QueryError, match="4,006,002 combinations"):
            groups(found, "CAST(a AS VARCHAR) || CAST(b AS VARCHAR)")
    finally:
        found.engine.close()


def test_of_too_many_hours_the_days_are_what_is_coarser(empty: Desk) -> None:
    with pytest.raises(hb.QueryError, match=r"26,304 such groups.*DATE_TRUNC\('day', day\)"):
        groups(empty, "DATE_TRUNC('hour', seen)")
    assert len(groups(empty, "DATE_TRUNC('day', seen)")) == 1096


def _plain(value: Any) -> Any:
    return str(value).removesuffix(" 00:00:00") if isinstance(value, dt.date) else value


def _rows(expression: str, con: duckdb.DuckDBPyConnection) -> set[Any]:
    return {row[0] for row in con.execute(f"SELECT DISTINCT {expression} FROM t").fetchall()}


@pytest.fixture(scope="module")
def full() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every day at its ends, every minute of two days, the ends of every bin and their neighbours among doubles."""
    days = [dt.datetime(2022, 1, 1) + dt.timedelta(days=i) for i in range(1096)]
    at = [d + s for d in days for s in (dt.timedelta(0), dt.timedelta(hours=23, minutes=59, seconds=59.999999))]
    at += [days[500] + dt.timedelta(minutes=i) for i in range(2880)]
    n = len(at)
    xs = [min(max(k / 20 + e, -0.5), 1.1) for k in range(-10, 23) for e in (-1e-16, 0.0, 1e-16, 1e-9, 0.025)]
    table = pa.table(
        {
            "seen": at,
            "day": [a.date() for a in at],
            "born": [dt.date(1925, 1, 1) + dt.timedelta(days=7 * i) for i in range(n)],
            "x": [2000 * i / (n - 1) for i in range(n)],
            "y": [xs[i % len(xs)] for i in range(n)],
            "n": [i % 10 for i in range(n)],
            "code": [["A-1", "A-2", "B-1", None][i % 4] for i in range(n)],
        }
    )
    table = table.filter(pa.compute.less_equal(table["born"], pa.scalar(dt.date(2020, 12, 31))))
    with duckdb.connect() as con:
        con.register("t", pa.concat_tables([table.slice(0, 2500), table.slice(2500)]))
        yield con


_ELSEWHERE = ("TO_CHAR", "WIDTH_BUCKET", "//")


@pytest.mark.parametrize(
    "expression", [e for e, count in COUNTS if count and not any(word in e for word in _ELSEWHERE)]
)
def test_every_value_that_a_row_in_its_range_gives_is_a_group(
    empty: Desk, full: duckdb.DuckDBPyConnection, expression: str
) -> None:
    """By DuckDB's own reading of the same text, to the last bit."""
    found = _rows(expression, full)
    assert len(found) > 1
    assert {_plain(v) for v in found} <= {_plain(v) for v in groups(empty, expression)} | {None}


def test_rows_have_no_part_in_the_groups(empty: Desk) -> None:
    rows = pa.table(
        {
            "id": [1, 2],
            "seen": [dt.datetime(1999, 1, 1), None],
            "day": [dt.date(2050, 1, 1), None],
            "born": [None, None],
            "x": [-1e300, float("nan")],
            "y": [5.0, None],
            "n": [99, None],
            "code": ["Z-9", None],
        },
        schema=NO_ROWS.schema,
    )
    other = desk(rows)
    try:
        for expression, count in COUNTS:
            if count:
                assert groups(other, expression) == groups(empty, expression)
    finally:
        other.engine.close()


def test_iso_weeks_belong_to_their_iso_year(empty: Desk) -> None:
    (plan,) = empty.plans("SELECT STRFTIME(day, '%G-%V') AS w, COUNT(*) AS n FROM t GROUP BY 1")
    weeks = plan.domains[0]
    assert weeks is not None
    assert (weeks[0], weeks[-1]) == ("2021-52", "2025-01")


def test_groups_of_one_persons_first_row_are_those_of_the_column(empty: Desk) -> None:
    firsts = "(SELECT id, MIN(seen) AS first, MAX(x) AS most FROM t GROUP BY id) AS f"
    assert groups(empty, "DATE_TRUNC('month', first)", firsts) == groups(empty, "DATE_TRUNC('month', seen)")
    assert groups(empty, "FLOOR(most / 500) * 500", firsts) == groups(empty, "FLOOR(x / 500) * 500")


@pytest.fixture(scope="module")
def many() -> Iterator[Desk]:
    """Unit 1 has one row, unit 2 has nine, though the limits (2 groups of 2 rows) say at most four."""
    ids = [1, *[2] * 9]
    found = Desk({"t": hb.table(pa.table({"id": ids}), unit="id", max_groups=2, max_rows=2)})
    yield found
    found.engine.close()


PER_UNIT = "(SELECT id, COUNT(*) AS k FROM t GROUP BY id) AS u"


def test_a_number_of_rows_beyond_the_limit_falls_into_the_last_group(many: Desk) -> None:
    assert groups(many, "k", PER_UNIT) == (0, 1, 2, 3, 4)
    assert groups(many, "k // 2", PER_UNIT) == (0, 1, 2)
    assert groups(many, "k > 7", PER_UNIT) == (False, True)
    found = many.ask(f"SELECT k, COUNT(*) AS n FROM {PER_UNIT} GROUP BY k", 10**9).rows()
    assert [n for _, n in found] == [0, 1, 0, 0, 1]


def test_a_number_of_rows_is_clamped_to_the_limit_below_a_sum(many: Desk) -> None:
    ((total,),) = many.ask(f"SELECT SUM(k) AS s FROM {PER_UNIT}", 10**9).rows()
    assert round(total) == 1 + 4


def test_without_a_limit_a_number_of_rows_has_no_range() -> None:
    found = Desk({"t": hb.table(pa.table({"id": [1]}), unit="id", max_groups=2)})
    try:
        with pytest.raises(hb.PolicyError):
            groups(found, "k", PER_UNIT)
        with pytest.raises((hb.PolicyError, hb.QueryError), match="LEAST"):
            found.plans(f"SELECT SUM(k) AS s FROM {PER_UNIT}")
    finally:
        found.engine.close()
