"""Bounds bought with budget, on a grid of powers of two that no data chose.

A value x falls on the place sign(x) * (ceil(log2 |x|) + 41), from -104 to 104, so that values between 2^-40 and 2^63
are told apart by powers of two. One value of each unit is counted at its place, with noise; the outermost places whose
noisy count exceeds a threshold give the bounds (Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson 2020,
"Differentially Private SQL with Bounded User Contribution", section 5.1.1). The threshold is one that some empty place
exceeds with probability 1/1000 at most. How many rows a unit has is asked in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from hubbub.engines.duckdb.dialect import quote
from hubbub.tables.columns import Between, between

__all__ = ["FARTHEST", "MOST_ROWS", "bounds_at", "places_sql", "rows_sql", "shown"]

OFFSET = 41
FARTHEST = 104
MOST_ROWS = 40
MISTAKE = 1e-3


def places_sql(table: str, column: str) -> str:
    """How many units have a value at each place."""
    x = quote(column)
    size = f"CEIL(LN(ABS({x})) / LN(2)) + {OFFSET}"
    place = f"CASE WHEN {x} > 0 THEN GREATEST({size}, 1) WHEN {x} < 0 THEN LEAST(-({size}), -1) ELSE 0 END"
    clamped = f"LEAST(GREATEST({place}, -{FARTHEST}), {FARTHEST})"
    return f"SELECT {clamped} AS place, COUNT(*) AS n FROM {quote(table)} WHERE {x} IS NOT NULL GROUP BY {clamped}"


def rows_sql(table: str, unit: str) -> str:
    """How many units have 1, 2, 3-4, 5-8, ... rows."""
    place = f"LEAST(GREATEST(CEIL(LN(rows_of_unit) / LN(2)), 0), {MOST_ROWS})"
    inner = f"SELECT {quote(unit)}, COUNT(*) AS rows_of_unit FROM {quote(table)} GROUP BY {quote(unit)}"
    return f"SELECT {place} AS place, COUNT(*) AS n FROM ({inner}) GROUP BY {place}"


def shown(rows: Iterable[tuple[int, int]], places: int, epsilon: Fraction) -> list[int]:
    """The places whose noisy count exceeds what noise of scale 1 / epsilon does, in order."""
    threshold = math.log(places / (2 * MISTAKE)) / float(epsilon)
    return sorted(place for place, count in rows if count > threshold)


def bounds_at(places: list[int]) -> Between | None:
    """The bounds that hold every value of these places: powers of two, or 0; None for no places."""
    if not places:
        return None
    low, high = _end(places[0], upper=False), _end(places[-1], upper=True)
    return between(low, high if high > low else low + 1)


def _end(place: int, *, upper: bool) -> Fraction:
    if place == 0:
        return Fraction(0)
    size = Fraction(2) ** (abs(place) - OFFSET)
    if place > 0:
        return size if upper else Fraction(0) if place == 1 else size / 2
    return -size if not upper else Fraction(0) if place == -1 else -size / 2
