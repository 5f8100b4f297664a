"""The mode: a private choice among the declared values, and what its answer is worth in rows.

The rows of a group are counted by value. One unit has at most R rows in a group (`max_rows`), so it moves every count
by at most R, however many values there are; under add/remove all in one direction, which saves the factor 2. Let r be
epsilon / R, or epsilon / 2 R under replace. Under pure epsilon the choice is permute-and-flip (McKenna, Sheldon 2020):
epsilon-DP; under rho the exponential mechanism (McSherry, Talwar 2007): epsilon-bounded range, so epsilon^2/8-zCDP
(Durfee, Rogers 2019).

Groups. A unit is in at most C groups: an amount is divided by C. Under replace the old rows may leave C groups and
the new ones enter C others; in a group where rows only leave, or only enter, scores move in one direction, which costs
epsilon / 2 there: k shared groups and 2 (C - k) others cost C epsilon at most.

Never the order of rows: equal counts are equally likely. An empty group, and one of NULLs alone, gives each declared
value alike. A value beyond a declared range counts at its nearer end; one that is not listed is left out.

Worth. With m candidates, P(count of the choice <= largest count - g) <= B / (1 + B), B = (m - 1) e^(-r g), for the
exponential mechanism, and permute-and-flip is never worse (ibid., Theorem 2). So the answer is within t rows of the
true mode, 19 times in 20, for the least t with (m - 1) e^(-r (t + 1)) <= .05 / .95. There is no interval of values.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import ZCDP, Event, Repeated
from hubbub.errors import InternalError, PolicyError, QueryError
from hubbub.mechanisms import ExponentialMechanism, PermuteAndFlip
from hubbub.noise import Bits, Grid
from hubbub.remedies import DeclareRange, DeclareValues, Rewrite
from hubbub.tables.aggregates.base import (
    ANY_KIND,
    Aggregate,
    Declared,
    Family,
    Floats,
    Listed,
    Mechanisms,
    Names,
    OwnPart,
    Promise,
    Reach,
)
from hubbub.tables.aggregates.quantile import epsilon_of_rho
from hubbub.tables.columns import Edges, Scalar
from hubbub.tables.expressions import Case, Column, Compare, Expression, Literal, columns_in, whole
from hubbub.tables.groups import grouped, without_image
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.measure import QUANTILE_BITS, Measurement, MeasurementKind, Value, value_of

__all__ = ["FAMILY", "MODE", "Choice", "ChoiceMechanisms", "ChoicePart", "values_of", "within"]

MOST_LISTED = 1_000
"""So many listed values are told apart in a text; of ranges of whole numbers and days there may be 10,000."""

MISS = 0.05
EPOCH = dt.date(1970, 1, 1)


def within(candidates: int, rate: Fraction) -> int:
    """The least t for which the choice is more than t rows below the best with probability .05 at most.

    >>> within(20, Fraction(1, 2))
    11
    """
    if candidates < 2:
        return 0
    reach = math.log((candidates - 1) * (1 - MISS) / MISS) / float(rate)
    return max(0, math.ceil(reach * (1 + 1e-12)) - 1)


@dataclass(frozen=True)
class ChoicePart(OwnPart):
    """A choice of `places` values of one measurement, best first. labels: the candidates, by step."""

    labels: tuple[Scalar, ...]
    places: int = 1

    def priced(self, reach: Reach, amount: Fraction, *, pure: bool) -> ChoiceMechanisms:
        """Permute-and-flip, or under rho the exponential mechanism, in each of C groups."""
        each = amount / reach.groups
        epsilon = each if pure else epsilon_of_rho(8 * each)
        one_way = reach.neighbours == "add_remove"
        kind = PermuteAndFlip if pure else ExponentialMechanism
        mechanism = kind(epsilon=epsilon, sensitivity=reach.rows, monotone=one_way)
        return ChoiceMechanisms(self, reach.groups, None if pure else amount, mechanism)

    def read(self, values: Any, groups: int) -> NDArray[np.int64]:
        """Positions among the labels: [place][group]."""
        return np.array(values, np.int64).reshape(self.places, groups)


@dataclass(frozen=True)
class ChoiceMechanisms(Mechanisms):
    """The mechanism of each choice, `part.places` of them in each of `groups`. rho: what is charged, under rho."""

    part: ChoicePart
    groups: int
    rho: Fraction | None
    mechanism: ExponentialMechanism | PermuteAndFlip

    @property
    def event(self) -> Event:
        """All choices in all groups that one unit touches, each after the others were seen."""
        if self.rho is not None:
            return ZCDP(self.rho)
        times = self.groups * self.part.places
        return self.mechanism.loss if times == 1 else Repeated(self.mechanism.loss, times)

    def draw(self, tables: Sequence[Any], bits: Bits | None) -> list[list[int]]:
        """Positions among the labels, [place][group]: each choice among those that are left (peeling)."""
        if self.part.measurement.counting is not MeasurementKind.QUANTILES:
            raise InternalError("a choice is made from a table of values")
        draws = [self._one(table, bits) for table in tables]
        return [[group[place] for group in draws] for place in range(self.part.places)]

    def _one(self, table: Any, bits: Bits | None) -> list[int]:
        floor, size = self.part.measurement.values[0].floor, len(self.part.labels)
        counts = np.zeros(size, np.int64)
        for step, count in table:
            if not 0 <= int(step) - floor < size:
                raise InternalError("an engine returned a table of values out of range")
            counts[int(step) - floor] += int(count)
        left = list(range(size))
        return [left.pop(self.mechanism.release(counts[left], bits=bits)) for _ in range(self.part.places)]

    def within(self, place: int = 0) -> int:
        """How many rows the choice of a place is below the true one at most, 19 times in 20."""
        return within(len(self.part.labels) - place, self.mechanism.rate)

    @property
    def name(self) -> str:
        """The mechanism in words."""
        return "permute-and-flip" if isinstance(self.mechanism, PermuteAndFlip) else "exponential mechanism"

    @property
    def words(self) -> str:
        return f"{self.name} for a choice among {len(self.part.labels):,} values"

    @property
    def details(self) -> dict[str, Any]:
        return {
            "counts": "rows by value, to choose",
            "candidates": len(self.part.labels),
            "choices": self.part.places,
            "sensitivity": str(self.mechanism.sensitivity),
            "mechanism": self.name,
            "epsilons": [str(self.mechanism.epsilon)] * self.part.places,
            "within_rows": [self.within(place) for place in range(self.part.places)],
        }

    @property
    def note(self) -> str:
        return f"mode: within {_rows(self.within())} of the true mode, 19 times in 20."


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Listed):
    """A choice among declared values."""

    kinds: ClassVar[frozenset[Kind]] = ANY_KIND
    chosen: ClassVar[bool] = True
    part_type: ClassVar[type[OwnPart]] = ChoicePart

    def kind(self, aggregate: Aggregate) -> Kind:
        """The kind of the values: whole numbers stay whole."""
        argument = aggregate.arguments[0]
        return Kind.INTEGER if argument.kind in NUMERIC and whole(argument) else argument.kind

    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """How many rows have each of the declared values, by position.

        Raises PolicyError where no values are declared, QueryError for too many.
        """
        value, _ = values_of(aggregate.arguments[0], declared, self.names.sql)
        return (Measurement(MeasurementKind.QUANTILES, values=(value,)),)

    def part(self, measurement: Measurement, aggregates: Sequence[Aggregate], declared: Declared) -> OwnPart:
        return ChoicePart(measurement, values_of(aggregates[0].arguments[0], declared, self.names.sql)[1])

    def place(self, aggregate: Aggregate) -> int:
        """Which of the choices it is, from 0."""
        return 0

    def values(self, aggregate: Aggregate, part: ChoicePart, drawn: NDArray[np.int64]) -> NDArray[Any]:
        return _labels(part, drawn[self.place(aggregate)])

    def ends(self, aggregate: Aggregate, part: ChoicePart, drawn: Any, level: float) -> tuple[Floats, Floats]:
        """None: what is known is in rows, not in values."""
        nothing = np.full(drawn.shape[1], np.nan)
        return nothing, nothing

    def redrawn(self, aggregate: Aggregate, part: ChoicePart, drawn: Any, places: Any, uniform: Floats) -> NDArray[Any]:
        """Any declared value alike: its noise has no law that is known without the counts."""
        size = len(part.labels)
        at = np.minimum((uniform[0] * size).astype(np.int64), size - 1)
        return _labels(part, (at + self.place(aggregate)) % size)

    def promise(self, aggregate: Aggregate, mechanisms: ChoiceMechanisms) -> Promise:
        return Promise("of the true mode, 19 times in 20", rows=mechanisms.within())


def _labels(part: ChoicePart, positions: NDArray[np.int64]) -> NDArray[Any]:
    labels = np.empty(len(part.labels), object)
    labels[:] = part.labels
    return np.asarray(labels[positions])


def _without_values(called: str, inner: Expression) -> PolicyError:
    """What to do about a choice among values that nobody declared."""
    own = isinstance(inner, Column) and not inner.shown
    name = inner.called if isinstance(inner, Column) else "this expression"
    values, limits, clamp = DeclareValues(name), DeclareRange(name), Rewrite("LEAST(GREATEST(n, 0), 120)")
    declare = (
        f"Declare them, {values.in_python()}, or, of whole numbers, {limits.in_python()}; clamp" if own else "Clamp"
    )
    apart = Rewrite(f"SELECT APPROX_TOP_K({name}, 3) AS top FROM ...")
    more = f"; or, under a budget with delta, ask for it alone, {apart.in_python()}" if called == "APPROX_TOP_K" else ""
    return PolicyError(
        f"{called} chooses among declared values, and {name} has none that can be listed. {declare} it in the "
        f"question, {clamp.in_python()}; name its values, CASE WHEN ... THEN 'a' ELSE 'b' END; or group by it and "
        f"order by the count{more}.",
        remedy=(*((values, limits, clamp) if own else (clamp,)), *((apart,) if more else ())),
    )


def values_of(argument: Expression, declared: Declared, called: str) -> tuple[Value, tuple[Scalar, ...]]:
    """The declared values of an argument but NULL, and a row's value as a step: its position, counted from `floor`.

    Raises PolicyError where none are declared, QueryError for too many.
    """
    kept, inner = _filtered(argument)
    if isinstance(inner, Column) and isinstance(declared.get(inner.name), Edges):
        raise QueryError(
            f"{called} of {inner.called}, which has edges: group by it, and order by the count: GROUP BY "
            f"{inner.called} ORDER BY COUNT(*) DESC LIMIT 1.",
            remedy=Rewrite(f"GROUP BY {inner.called} ORDER BY COUNT(*) DESC LIMIT 1"),
        )
    key = grouped(inner, declared)
    values = without_image(key, declared)
    if values is None:
        raise _without_values(called, inner)
    labels = tuple(value for value in values if value is not None)
    if not labels:
        way = DeclareValues(inner.called) if isinstance(inner, Column) else None
        said = "" if way is None else f": {way.in_python()}"
        raise QueryError(
            f"{called} chooses among declared values, and there is none but NULL{said}.",
            remedy=() if way is None else way,
        )
    direct = None if isinstance(key.expression, Case) else _direct(argument, labels, declared)
    if direct is not None:
        return direct, labels
    if len(labels) > MOST_LISTED:
        by_count = Rewrite("GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1")
        raise QueryError(
            f"{called} has {len(labels):,} declared values to choose from; at most {MOST_LISTED:,} are. Of so many "
            "write "
            f"{by_count.example}.",
            remedy=by_count,
        )
    conditions = tuple(Compare("=", key.expression, Literal(_constant(label))) for label in labels)
    position: Expression = Case(conditions, tuple(Literal(i) for i in range(len(labels))), Literal(None))
    position = position if kept is None else Case((kept,), (position,), Literal(None))
    return Value(position, Grid(0), 0, len(labels) - 1), labels


def _filtered(argument: Expression) -> tuple[Expression | None, Expression]:
    """The condition of FILTER, if there is one, and what is looked at where it holds."""
    match argument:
        case Case(conditions=(condition,), values=(value,), default=Literal(value=None)) if columns_in(value):
            return condition, value
    return None, argument


def _direct(argument: Expression, labels: tuple[Scalar, ...], declared: Declared) -> Value | None:
    """The value itself as a step, where the labels are all whole numbers, or days, of a range."""
    if not (argument.kind is Kind.DATE or (argument.kind in NUMERIC and whole(argument))):
        return None
    try:
        value = value_of(argument, declared, bits=QUANTILE_BITS, centred=False)
    except (PolicyError, QueryError):
        return None
    steps = range(value.floor, value.ceiling + 1)
    if len(steps) != len(labels) or value.grid.exponent != 0:
        return None
    if argument.kind is Kind.DATE:
        days = value.numbers(np.array(steps, np.float64))
        return value if tuple(EPOCH + dt.timedelta(days=int(day)) for day in days) == labels else None
    return value if tuple(steps) == labels else None


def _constant(label: Scalar) -> Any:
    """A declared value as a constant of an expression."""
    return Fraction(label) if isinstance(label, float) else label


MODE = Choice(Names("MODE", "MODE", "mode", ("MODE",), ("MODE(x)",), verb="mode"))

FAMILY = Family(
    (MODE,),
    (
        (
            "`MODE(x)`",
            "one of the most frequent values, and within how many rows of the most frequent it is, 19 times in 20; of "
            "an empty group any declared value",
            "declared values, or whole numbers or days in bounds",
        ),
    ),
    ("MODE(ward)", "MODE(n)", "MODE(ok)", "MODE(ward) FILTER (WHERE ok)"),
)
