"""The place of a group among the k most frequent, where which groups there are is private.

`SELECT word, TOP_PLACE(5) AS place FROM notes GROUP BY word`: the rows of the answer are at most five groups, found by
`hubbub.mechanisms.top_k`, and their places, 1 for the first. A group's score is its number of units; one unit is in at
most C groups (`max_groups`) and moves each by 1, so a choice has sensitivity 1 however many groups a unit is in, and C
enters delta alone: no more than C groups are there because of one unit. k choices cost k epsilon_0, or k epsilon_0^2/8
in rho. Names and places come out, and no counts; a place is what was drawn, so it has no interval.

`SELECT APPROX_TOP_K(word, 5) FROM notes`, of a column without declared values, is the same by rows (`TOP_BY_ROWS`): one
unit has at most R rows in each of C groups and moves each count by R at most, so the sensitivity of a choice is R.

Worth, with r the rate of the choices and T their floor (`hubbub.mechanisms.top_k`). A group of T + ln(19)/r or more is
chosen before "no other" 19 times in 20, and is named unless k others come before it. Of m groups, the one at place j is
within t of the j-th most frequent as for `APPROX_TOP_K` of m - j + 1 declared values (`hubbub.tables.aggregates.mode`):
one of the j most frequent is left, and "no other" only takes from the chance of what is worse. m is private, so the
statement is made for a thousand groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hubbub.errors import PolicyError, QueryError
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.remedies import DeclareValues, Rewrite, UseDelta
from hubbub.tables.aggregates.base import Aggregate, Computed, Current, Declared, Floats, Names, Reading, Slope
from hubbub.tables.aggregates.mode import within
from hubbub.tables.expressions import Column, Expression, Literal
from hubbub.tables.measure import Measurement, MeasurementKind

__all__ = [
    "REFERENCE",
    "TOP_BY_ROWS",
    "TOP_PLACE",
    "TopPlace",
    "listed_from",
    "needs_delta",
    "ordinal",
    "places_asked",
    "worth",
]

MOST = 50
ASSUMED_GROUPS = 1_000


@dataclass(frozen=True, eq=False, repr=False)
class TopPlace(Computed):
    """Arguments: how many places. counting: what makes a group frequent, its units or its rows."""

    counting: MeasurementKind = MeasurementKind.UNITS

    whole: ClassVar[bool] = True
    chosen: ClassVar[bool] = True

    def made(self, arguments: tuple[Expression, ...], constants: tuple[object, ...]) -> Aggregate:
        k = constants[0] if len(constants) == 1 else None
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST:
            called = "(k)" if self is TOP_PLACE else "(x, k)"
            raise QueryError(
                f"{self.names.sql}{called} takes how many groups to name, a constant from 1 to {MOST}: "
                f"{self.names.sql}{called.replace('k', '3')}.",
                remedy=Rewrite(f"{self.names.sql}{called.replace('k', '3')}"),
            )
        return Aggregate(self, (Literal(k),))

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        return (Measurement(self.counting),)

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


def places_asked(aggregates: Iterable[Aggregate], *, private: bool) -> tuple[int, MeasurementKind] | None:
    """How many groups are to be named, by which counts; None where no places are asked. private: of the groups.

    Raises QueryError for places beside other aggregates, of two lengths, or of groups that are declared.
    """
    aggregates = tuple(aggregates)
    function = next((a.function for a in aggregates if isinstance(a.function, TopPlace)), None)
    if function is None:
        return None
    if len({(a.function.names.key, a.arguments) for a in aggregates}) > 1:
        raise QueryError(
            f"{function.names.sql} names groups, and stands beside no other aggregate: leave out counts, also in ORDER "
            "BY and HAVING, and ask for them in a question of their own."
        )
    if not private and function is TOP_PLACE:
        raise QueryError(
            "TOP_PLACE(k) is for GROUP BY a column whose values are not declared. Of declared values write "
            "APPROX_TOP_K(x, k), or ORDER BY COUNT(*) DESC LIMIT k.",
            remedy=Rewrite("APPROX_TOP_K(x, k)"),
        )
    k = _places(aggregates[0])
    if not private:
        counts = Rewrite(f"SELECT ... AS x, COUNT(*) AS n ... GROUP BY x ORDER BY n DESC LIMIT {k}")
        raise QueryError(
            f"{function.names.sql} is of a column, and the values of this expression follow from declared ones: group "
            f"by it and order by the count, {counts.in_python()}.",
            remedy=counts,
        )
    return k, function.counting


def _places(aggregate: Aggregate) -> int:
    (argument,) = aggregate.arguments
    assert isinstance(argument, Literal)
    assert isinstance(argument.value, int)
    return argument.value


def needs_delta(aggregates: Iterable[Aggregate], key: Expression) -> PolicyError | None:
    """What to do about places that are asked under a pure budget; None where no places are asked."""
    function = next((a.function for a in aggregates if isinstance(a.function, TopPlace)), None)
    if function is None:
        return None
    own = key.called if isinstance(key, Column) and not key.shown else None
    called = key.called if isinstance(key, Column) else "this expression"
    values, delta = DeclareValues(own or ""), UseDelta()
    declare = own is not None and function is TOP_BY_ROWS
    return PolicyError(
        f"{function.names.sql} of {called}, whose values are not declared, needs a budget with delta: that a value is "
        f"there would tell who is in the table. Use one, {delta.in_python()}"
        f"{f'; or declare its values, {values.in_python()}' if declare else ''}.",
        remedy=(delta, values) if declare else delta,
    )


def listed_from(mechanism: UnknownTopK) -> int:
    """From which count on a group is named 19 times in 20, if fewer than k others are as frequent."""
    return mechanism.floor + math.ceil(math.log(19) / float(mechanism.rate))


def worth(mechanism: UnknownTopK, counting: MeasurementKind) -> str:
    """What an answer is told of its last place."""
    k, what = mechanism.k, "units" if counting is MeasurementKind.UNITS else "rows"
    last = within(ASSUMED_GROUPS - k + 1, mechanism.rate)
    others = "another is" if k == 1 else f"{k} others are"
    return (
        f"top {k}: a value of {listed_from(mechanism):,} {what} or more is named, 19 times in 20, unless {others} "
        f"named before it; of {ASSUMED_GROUPS:,} different values the last place is within {last:,} {what} of the "
        f"{ordinal(k)} most frequent, as often."
    )


def ordinal(place: int) -> str:
    """A place in words of a ranking.

    >>> [ordinal(place) for place in (1, 2, 11, 23)]
    ['1st', '2nd', '11th', '23rd']
    """
    end = "th" if place // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{end}"


TOP_PLACE = TopPlace(
    Names("TOP_PLACE", "TOP_PLACE", "place", ("TOP_PLACE",), ("TOP_PLACE(5)",), verb="top_place"), arity=0
)

TOP_BY_ROWS = TopPlace(Names("TOP_BY_ROWS", "APPROX_TOP_K", "top"), arity=0, counting=MeasurementKind.ROWS)
"""What `APPROX_TOP_K` asks of a column without declared values (`hubbub.sql.bind.undeclared_top`)."""

REFERENCE = (
    "`TOP_PLACE(5)`",
    "with `GROUP BY` a column without declared values: names the five most frequent groups, by their units, and fewer "
    "where too few are frequent; the place of each, from 1, and no counts",
    "a budget with delta; `max_groups`",
)
