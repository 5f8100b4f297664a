"""Bounds bought with budget: quantiles on a grid of powers of two that no data chose.

A value x falls on the place sign(x) * (ceil(log2 |x|) + 41), from -104 to 104, so that values between 2^-40 and 2^63 are
told apart by powers of two. Two quantiles of the places, with one value of each unit, are an ordinary private question;
the powers at their places are the bounds that are proposed. How many rows a unit has is asked in the same way.
"""

from __future__ import annotations

from fractions import Fraction

from hubbub.sql.write_expression import quote
from hubbub.tables.declare import Between, between

__all__ = ["bounds_at", "places_sql", "rows_at", "rows_sql"]

OFFSET = 41
FARTHEST = 104


def places_sql(table: str, column: str, share: Fraction) -> str:
    """The question for a column's bounds: the places that the outer 1 - share of values lie beyond."""
    x = quote(column)
    size = f"CEIL(LN(ABS({x})) / LN(2)) + {OFFSET}"
    place = f"CASE WHEN {x} > 0 THEN GREATEST({size}, 1) WHEN {x} < 0 THEN LEAST(-({size}), -1) ELSE 0 END"
    clamped = f"LEAST(GREATEST({place}, -{FARTHEST}), {FARTHEST})"
    tail = float((1 - share) / 2)
    return (
        f"SELECT QUANTILE_CONT({clamped}, {tail!r}) AS low, QUANTILE_CONT({clamped}, {1 - tail!r}) AS high "
        f"FROM {quote(table)} WHERE {x} IS NOT NULL"
    )


def rows_sql(table: str, unit: str, share: Fraction) -> str:
    """The question for how many rows a unit has."""
    place = "LEAST(GREATEST(CEIL(LN(rows_of_unit) / LN(2)), 0), 40)"
    inner = f"SELECT {quote(unit)}, COUNT(*) AS rows_of_unit FROM {quote(table)} GROUP BY {quote(unit)}"
    return f"SELECT QUANTILE_CONT({place}, {float(share)!r}) AS most FROM ({inner})"


def bounds_at(low: float, high: float) -> Between:
    """The bounds between two places: powers of two that hold every value of these places."""
    first, last = round(min(low, high)), round(max(low, high))
    lowest, highest = _end(first, upper=False), _end(last, upper=True)
    return between(lowest, highest if highest > lowest else lowest + 1)


def rows_at(place: float) -> int:
    """A number of rows at a place."""
    return int(2 ** max(0, round(place)))


def _end(place: int, *, upper: bool) -> Fraction:
    if place == 0:
        return Fraction(0)
    size = Fraction(2) ** (abs(place) - OFFSET)
    if place > 0:
        return size if upper else Fraction(0) if place == 1 else size / 2
    return -size if not upper else Fraction(0) if place == -1 else -size / 2
