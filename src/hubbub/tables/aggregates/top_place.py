"""The place of a group among the k most frequent, where which groups there are is private.

`SELECT word, TOP_PLACE(5) AS place FROM notes GROUP BY word`: the rows of the answer are at most five groups, found by
`hubbub.mechanisms.top_k`, and their places, 1 for the first. A group's score is its number of units; one unit is in at
most C groups (`max_groups`) and moves each by 1, so a choice has sensitivity 1 however many groups a unit is in, and C
enters delta alone: no more than C groups are there because of one unit. k choices cost k epsilon_0, or k epsilon_0^2/8
in rho. Names and places come out, and no counts; a place is what was drawn, so it has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hubbub.errors import QueryError
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.tables.aggregates.base import Aggregate, Current, Declared, Floats, Function, Reading, Slope
from hubbub.tables.expressions import Expression, Literal
from hubbub.tables.measure import Measurement, MeasurementKind

__all__ = ["REFERENCE", "TOP_PLACE", "listed_from", "places_asked"]

MOST = 50


@dataclass(frozen=True, eq=False, repr=False)
class TopPlace(Function):
    """Arguments: how many places."""

    whole: ClassVar[bool] = True

    @property
    def names(self) -> bool:
        return True

    def made(self, arguments: tuple[Expression, ...], constants: tuple[object, ...]) -> list[Aggregate]:
        k = constants[0] if len(constants) == 1 else None
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST:
            raise QueryError(f"{self.sql}(k) takes how many groups to name, a constant from 1 to {MOST}.")
        return [Aggregate(self, (Literal(k),))]

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        return (Measurement(MeasurementKind.UNITS),)

    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        return [{parts[0]: Fraction(1)}]

    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        """The place, which the draw put where the noisy count of units stands elsewhere."""
        return np.asarray(current[parts[0]], np.float64)

    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        """None: a place is what was drawn."""
        nothing = np.full(np.shape(reading.value_of(parts[0])), np.nan)
        return nothing, nothing

    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        return 0.0


def places_asked(aggregates: Iterable[Aggregate], *, private: bool) -> int | None:
    """How many groups are to be named; None where no places are asked. private: whether the groups are.

    Raises QueryError for places beside other aggregates, of two lengths, or of groups that are declared.
    """
    aggregates = tuple(aggregates)
    if not any(isinstance(a.function, TopPlace) for a in aggregates):
        return None
    if not all(isinstance(a.function, TopPlace) for a in aggregates) or len({a.arguments for a in aggregates}) > 1:
        raise QueryError(
            "TOP_PLACE(k) names groups, and stands beside no other aggregate: leave out counts, also in ORDER BY and "
            "HAVING, and ask for them in a question of their own."
        )
    if not private:
        raise QueryError(
            "TOP_PLACE(k) is for GROUP BY a column whose values are not declared. Of declared values write "
            "APPROX_TOP_K(x, k), or ORDER BY COUNT(*) DESC LIMIT k."
        )
    (argument,) = aggregates[0].arguments
    assert isinstance(argument, Literal)
    assert isinstance(argument.value, int)
    return argument.value


def listed_from(mechanism: UnknownTopK) -> int:
    """From how many units on a group is named 19 times in 20, if fewer than k others are as frequent."""
    return mechanism.floor + math.ceil(math.log(19) / float(mechanism.rate))


TOP_PLACE = TopPlace("TOP_PLACE", "TOP_PLACE", "place", ("TOP_PLACE",), ("TOP_PLACE(5)",), verb="top_place", arity=0)

REFERENCE = (
    "`TOP_PLACE(5)`",
    "with `GROUP BY` a column without declared values: names the five most frequent groups, by their units, and fewer "
    "where too few are frequent; the place of each, from 1, and no counts",
    "a budget with delta; `max_groups`",
)
