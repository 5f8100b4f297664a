"""The range of an expression holds every value that it has, whatever the ends."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import hubbub as hb
from engines.corpus import bound
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.sql.emit.expression import expression_sql
from hubbub.tables.columns import Between, between
from hubbub.tables.expressions import Call, Column, Expression, Literal
from hubbub.tables.kinds import Kind
from hubbub.tables.spans import span
from hubbub.tables.written_out import written_out
from people import HUGE, session

X, D = Column("x", Kind.NUMBER), Column("d", Kind.TIMESTAMP)


@given(
    st.integers(-50, 50), st.integers(0, 60), st.sampled_from([0, 1, 2, 3, 8, 11, 12, Fraction(1, 2), Fraction(5, 2)])
)
@settings(max_examples=60, deadline=None)
def test_powers_lie_in_their_range(low: int, wide: int, n: int | Fraction) -> None:
    found = span(Call("POWER", (X, Literal(n))), {"x": Between(Fraction(low), Fraction(low + wide))})
    assert found is not None
    assert found[0] is not None
    assert found[1] is not None
    for x in (low + wide * k / 7 for k in range(8)):
        if x >= 0 or n == int(n):
            off = Fraction(1, 10**12)  # a double's last digits: what is beyond the range is clamped to it
            value = Fraction(float(x) ** float(n))
            assert found[0] - abs(value) * off <= value <= found[1] + abs(value) * off, x


@pytest.mark.parametrize(("n", "times"), [(1, 1), (2, 1), (3, 2), (7, 4), (8, 3)])
def test_a_whole_power_is_a_product(n: int, times: int) -> None:
    def depth(node: Expression) -> int:
        return 0 if node == X or isinstance(node, Literal) else 1 + max(depth(c) for c in (node.left, node.right))  # type: ignore[union-attr]

    assert depth(written_out(Call("POWER", (X, Literal(n))))) == times


@given(
    st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)),
    st.integers(0, 400),
    st.sampled_from(
        [("MONTH", 1), ("MONTH", -13), ("MONTH", 48_000), ("DAY", -31), ("SECOND", 90_061), ("DAY", 1_464_000)]
    ),
)
@settings(max_examples=60, deadline=None)
def test_a_moved_date_lies_in_its_range(first: dt.datetime, days: int, by: tuple[str, int]) -> None:
    last = min(first, dt.datetime(9998, 1, 1)) + dt.timedelta(days=days)
    if last < first:
        return
    found = span(Call("DATE_ADD", (Literal(by[0]), Literal(by[1]), D)), {"d": Between(first, last)})
    assert found is not None
    with duckdb.connect() as con:
        for k in range(6):
            at = first + (last - first) * k / 5
            (us,) = con.execute(f"SELECT epoch_us(TRY(?::TIMESTAMP + INTERVAL ({by[1]}) {by[0]}))", [at]).fetchone()  # type: ignore[misc]
            if us is not None and -62135596800000000 <= us <= 253402300799999999:
                assert found[0] <= us <= found[1], at  # type: ignore[operator]


NULLABLE = [
    "CASE WHEN b THEN 3 END",
    "NULLIF(i, i)",
    "i * 0 + 3",
    "NULLIF(3, 3)",
    "SQRT(-4) * 0 + 3",
    "3 / 0",
    "ABS(3 / 0)",
    "POWER(i, 0)",
    "3",
]
ROUNDED = [f"ROUND({x}, {n})" for x in ("x", "i", "-x * i") for n in (-3, -2, -1, 0, 1)]
DECLARED = {"x": between(-640, 760), "i": between(-4, 45)}


@pytest.mark.parametrize(
    "text",
    [*ROUNDED, *(f"{word}(x, {n})" for word in ("LEAST", "GREATEST", "COALESCE") for n in (*NULLABLE, "2 * 9 - 1"))],
)
def test_every_value_lies_in_the_range(text: str) -> None:
    """LEAST(x, 3) is at most 3, and LEAST(x, CASE WHEN b THEN 3 END) is all that x is where b is false."""
    node = bound(text)
    assert node is not None
    found = span(node, DECLARED)
    assert found is not None
    rows = pa.table(
        {
            "x": [-640.0, -500.0, -4.5, 0.0, 3.5, 549.9, 550.0, 760.0, None, 12.25],
            "i": [-4, 45, None, 0, 7, 44, 5, 15, 25, None],
            "b": [True, False, None, True, False, False, True, False, True, None],
        }
    )
    with duckdb.connect() as con:
        con.register("rows", rows)
        every = con.execute(f"SELECT {expression_sql(node, DUCKDB)} FROM rows").fetchall()
    for (value,) in every:
        if value is not None:
            assert found[0] is None or found[0] <= value
            assert found[1] is None or value <= found[1]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("LEAST(x, 3)", (-640, 3)),
        ("GREATEST(x, 3, -9)", (3, 760)),
        ("LEAST(GREATEST(x / i, 0), 100)", (0, 100)),
        ("LEAST(x, 60 * 4)", (-640, 240)),
        ("LEAST(x, 2 * 3 * 40)", (-640, 240)),
        ("LEAST(x, CAST(7 AS DOUBLE) * (5 + 1))", (-640, 42)),
        ("GREATEST(x, ABS(-9) - FLOOR(1.5), ROUND(100 / 4, -1))", (20, 760)),
        ("ROUND(x, -3)", (-1000, 1000)),
        ("ROUND(x, -15)", (0, 0)),
    ],
)
def test_a_range_is_no_wider_than_it_must_be(text: str, ends: tuple[int, int]) -> None:
    node = bound(text)
    assert node is not None
    assert span(node, DECLARED) == ends


def test_a_sum_of_what_may_be_null_is_not_cut_at_the_constant() -> None:
    rows = pa.table({"id": list(range(100)), "x": [700] * 100, "b": [False] * 100})
    table = hb.table(rows, unit="id", max_total=1, columns={"x": hb.between(0, 700)})
    asked = {"LEAST(x, CASE WHEN b THEN 5 END)": 70_000, "ROUND(x, -3)": 100_000}
    with session(epsilon=10**9 * HUGE, v=table) as s:
        for text, total in asked.items():
            ((found,),) = s.sql(f"SELECT SUM({text}) AS n FROM v", epsilon=10**3 * HUGE).rows()
            assert found == pytest.approx(total, rel=1e-3)
