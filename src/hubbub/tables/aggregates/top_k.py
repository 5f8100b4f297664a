"""The k most frequent values, by peeling: k choices, each among those that are left.

Each choice is the exponential mechanism on the counts of the values that were not chosen before, at the same epsilon_0:
epsilon_0-bounded range, with score sensitivity R (`hubbub.tables.aggregates.mode`). One unit moves every count, so
choices compose: k in each of C groups are k C adaptive bounded-range mechanisms (Durfee, Rogers 2019), k C epsilon_0 in
pure epsilon, k C epsilon_0^2 / 8 in rho. In one group the number of candidates does not enter; one draw of noise for
all k places would not be epsilon_0.

Names alone, in the order in which they were chosen; no counts. At place j one of the j truly most frequent values is
still left, so the choice is within t rows of the j-th most frequent value's, 19 times in 20, with m - j + 1 candidates.
Of a column without declared values see `hubbub.tables.aggregates.top_place`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hubbub.errors import QueryError
from hubbub.mechanisms import ExponentialMechanism
from hubbub.remedies import Rewrite
from hubbub.tables.aggregates.base import Aggregate, Declared, Family, Names, OwnPart, Promise, Reach
from hubbub.tables.aggregates.mode import Choice, ChoiceMechanisms, ChoicePart, values_of
from hubbub.tables.aggregates.quantile import epsilon_of_rho
from hubbub.tables.aggregates.top_place import REFERENCE, TOP_BY_ROWS, TOP_PLACE, ordinal
from hubbub.tables.expressions import Expression, Literal
from hubbub.tables.measure import Measurement

__all__ = ["APPROX_TOP_K", "FAMILY"]

MOST = 50


@dataclass(frozen=True)
class TopPart(ChoicePart):
    """The first `places` values of one measurement."""

    def priced(self, reach: Reach, amount: Fraction, *, pure: bool) -> ChoiceMechanisms:
        """The exponential mechanism, `places` times in each of C groups."""
        each = amount / (reach.groups * self.places)
        mechanism = ExponentialMechanism(
            epsilon=each if pure else epsilon_of_rho(8 * each),
            sensitivity=reach.rows,
            monotone=reach.neighbours == "add_remove",
        )
        return TopMechanisms(self, reach.groups, None if pure else amount, mechanism)


@dataclass(frozen=True)
class TopMechanisms(ChoiceMechanisms):
    """The mechanisms of `TopPart`."""

    @property
    def words(self) -> str:
        return f"{self.name} {self.part.places} times, for a choice among {len(self.part.labels):,} values"

    @property
    def note(self) -> str:
        k = self.part.places
        return f"top {k}: its last place is within {_within(self, k)} most frequent value, 19 times in 20."


def _within(mechanisms: ChoiceMechanisms, place: int) -> str:
    rows = mechanisms.within(place - 1)
    return f"{rows:,} row{'s' * (rows != 1)} of the {ordinal(place)}"


@dataclass(frozen=True, eq=False, repr=False)
class Top(Choice):
    """One place of a list. Arguments: the column, how many places, which place (from 1)."""

    part_type: ClassVar[type[OwnPart]] = TopPart

    def made(self, arguments: tuple[Expression, ...], constants: tuple[object, ...]) -> list[Aggregate]:
        k = constants[0] if len(constants) == 1 else None
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST:
            sql = self.names.sql
            raise QueryError(
                f"{sql}(x, k) takes how many values to list, a constant from 1 to {MOST}: {sql}(x, 3).",
                remedy=Rewrite(f"{sql}(x, 3)"),
            )
        return [Aggregate(self, (*arguments, Literal(k), Literal(place))) for place in range(1, k + 1)]

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """As MODE. Raises QueryError for more places than values."""
        labels = values_of(aggregate.arguments[0], declared, self.names.sql)[1]
        if _number(aggregate, 1) > len(labels):
            raise QueryError(
                f"{self.names.sql} was asked for {_number(aggregate, 1)} of {len(labels)} declared values: write "
                f"{self.names.sql}(x, {len(labels)}).",
                remedy=Rewrite(f"{self.names.sql}(x, {len(labels)})"),
            )
        return super().measured(aggregate, declared)

    def part(self, measurement: Measurement, aggregates: Sequence[Aggregate], declared: Declared) -> OwnPart:
        labels = values_of(aggregates[0].arguments[0], declared, self.names.sql)[1]
        return TopPart(measurement, labels, max(_number(a, 1) for a in aggregates))

    def place(self, aggregate: Aggregate) -> int:
        return _number(aggregate, 2) - 1

    def promise(self, aggregate: Aggregate, mechanisms: ChoiceMechanisms) -> Promise:
        place = self.place(aggregate)
        note = f"of the {ordinal(place + 1)} most frequent value, 19 times in 20"
        return Promise(note, rows=mechanisms.within(place))


def _number(aggregate: Aggregate, at: int) -> int:
    argument = aggregate.arguments[at]
    assert isinstance(argument, Literal)
    assert isinstance(argument.value, int)
    return argument.value


APPROX_TOP_K = Top(
    Names("APPROX_TOP_K", "APPROX_TOP_K", "top", ("APPROX_TOP_K",), ("APPROX_TOP_K(x, 3)",), verb="approx_top_k")
)

FAMILY = Family(
    (APPROX_TOP_K, TOP_PLACE, TOP_BY_ROWS),
    (
        (
            "`APPROX_TOP_K(x, 3)`",
            "a list of the most frequent values, names in order and no counts; its last place is as good as a `MODE` "
            "at that share of the amount",
            "as `MODE`, and more values than places; or, alone in its `SELECT`, a budget with delta, `max_groups` and "
            "`max_rows`",
        ),
        REFERENCE,
    ),
    ("APPROX_TOP_K(ward, 2)", "APPROX_TOP_K(n, 3)"),
)
