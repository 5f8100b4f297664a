"""The range of POWER and of a date that is moved holds every value, whatever the ends."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given, settings, strategies as st

from hubbub.tables.columns import Between
from hubbub.tables.expressions import Call, Column, Expression, Literal
from hubbub.tables.kinds import Kind
from hubbub.tables.spans import span
from hubbub.tables.written_out import written_out

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
