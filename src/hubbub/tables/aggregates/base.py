"""What an aggregate is: its names, what it needs measured, and what is made of the noisy measurements.

A *function* (`Function`) is one private aggregate, such as AVG; a *family* (`Family`) is a file of this room that holds
functions with a common mathematics, their lines of the reference, and the forms the auditor asks. All other rooms read
these records: the binder its spellings and arguments, the plan its measurements, the price its gradients, the release
its estimate and interval, `check` its prediction.

Two kinds. Most functions are `Computed` from *quantities*: sums over rows, which get noise, and of which the estimate
is a function and the error a first-order one. A `Listed` function looks at single values instead, and is drawn by
mechanisms of its own (`OwnPart`): a quantile, a choice.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Event
from hubbub.errors import InternalError, QueryError
from hubbub.noise import Bits
from hubbub.tables.columns import Declaration
from hubbub.tables.declare import Neighbours
from hubbub.tables.expressions import Expression
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.measure import Measurement, MeasurementKind, alone

__all__ = [
    "ANY_KIND",
    "RANKABLE",
    "Aggregate",
    "Computed",
    "Family",
    "Floats",
    "Function",
    "Listed",
    "Mechanisms",
    "Names",
    "OwnPart",
    "Promise",
    "Quantity",
    "Reach",
    "Reading",
    "Slope",
    "Total",
    "computed",
    "measurements",
    "measurements_of",
    "quantities_of",
]

Floats: TypeAlias = NDArray[np.float64]
Term: TypeAlias = Hashable
Declared: TypeAlias = Mapping[str, Declaration]


@dataclass(frozen=True)
class Total:
    """The sum of a SUM measurement before its centre is taken off."""

    measurement: Measurement


Quantity: TypeAlias = Measurement | Total
Slope: TypeAlias = dict[Quantity, Fraction]
"""How an aggregate moves with each quantity."""
Current: TypeAlias = Mapping[Quantity, Any]
"""The quantities' values, by group."""


@dataclass(frozen=True)
class Aggregate:
    """One private aggregate.

    arguments: none for COUNT(*), two for COVAR and CORR, else one; constants among them as in SQL. COUNT_UNITS may
    have one: then it counts units with a row where it is not NULL. fraction: the share of a quantile, in [0, 1].
    """

    function: Function
    arguments: tuple[Expression, ...] = ()
    fraction: Fraction | None = None

    @property
    def argument(self) -> Expression | None:
        """The first argument, if there is one."""
        return self.arguments[0] if self.arguments else None

    @property
    def kind(self) -> Kind:
        """The kind of its released column."""
        return self.function.kind(self)


class Reading(Protocol):
    """What a release says of quantities, group by group, and how far combinations of their errors reach."""

    def value_of(self, quantity: Quantity) -> Any:
        """The noisy quantity."""

    def terms_of(self, quantity: Quantity) -> Mapping[Term, float]:
        """The coefficient of every noise term in its error."""

    def reach(self, terms: Mapping[Term, float], level: float) -> float:
        """The half-width of one combination of terms."""

    def spread(self, terms: Mapping[Term, Any], level: float) -> Floats:
        """The half-widths of combinations whose coefficients are arrays."""

    def count_reach(self, quantity: Quantity, level: float) -> float:
        """How far a rounded count is off."""


@dataclass(frozen=True)
class Names:
    """What a function is called, in each place.

    key: in keys of stored answers, never changed. sql: in messages. word: in the name of a column of it. spellings: in
    SQL. forms: in messages, as it is written. verb: in Python, where the verb is made from this record.
    """

    key: str
    sql: str
    word: str
    spellings: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    verb: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Function(ABC):
    """One private aggregate. arity: how many columns it looks at."""

    names: Names
    arity: int = 1

    kinds: ClassVar[frozenset[Kind]] = NUMERIC
    """The kinds of argument it takes."""
    conditions: ClassVar[bool] = False
    """Whether a condition as argument counts as 1 and 0."""
    whole: ClassVar[bool] = False
    """Whether it is a count, a whole number."""
    chosen: ClassVar[bool] = False
    """Whether it is a choice, or the place of one: it has no interval."""
    ratio: ClassVar[str] = ""
    """Of what a group is taken to have so many as its error is foretold; empty if it depends on no such number."""
    zero_adds_nothing: ClassVar[bool] = False
    """Whether a row whose argument is 0 changes nothing."""

    def __repr__(self) -> str:
        return f"<{self.names.sql}>"

    def __reduce__(self) -> str:
        raise InternalError("an aggregate function is known by its place in the registry and is not pickled")

    def __deepcopy__(self, memo: object) -> Function:
        return self

    def kind(self, aggregate: Aggregate) -> Kind:
        """The kind of the released column of one such aggregate."""
        return Kind.INTEGER if self.whole else Kind.NUMBER

    def made(self, arguments: tuple[Expression, ...], constants: tuple[object, ...]) -> Aggregate | list[Aggregate]:
        """The aggregate that a call asks for; of a call that gives a list, one for each cell.

        arguments: as many as `arity`; constants: the values that come after them.

        Raises QueryError for other constants than it takes.
        """
        if constants:
            raise QueryError(f"{self.names.sql} takes {'one argument' if self.arity == 1 else 'two arguments'}.")
        return Aggregate(self, arguments)

    @abstractmethod
    def measured(self, aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
        """What it is computed from: a count is the last but for products, which come after it.

        Raises PolicyError where bounds are not declared, QueryError where no range follows from them.
        """


@dataclass(frozen=True, eq=False, repr=False)
class Computed(Function):
    """A function of quantities."""

    def quantities(self, parts: Sequence[Measurement]) -> tuple[Quantity, ...]:
        """The quantities it is a function of, from its measurements."""
        return tuple(parts)

    @abstractmethod
    def gradients(self, parts: Sequence[Measurement]) -> list[Slope]:
        """How it moves with each quantity, at a few typical places of the declared range, up to one factor."""

    @abstractmethod
    def estimate(self, parts: Sequence[Measurement], current: Current) -> Floats:
        """The aggregate of given quantities, elementwise."""

    @abstractmethod
    def interval(self, parts: Sequence[Measurement], reading: Reading, level: float) -> tuple[Floats, Floats]:
        """The ends of intervals that hold the bounded truth with probability `level`, each."""

    @abstractmethod
    def predicted(self, parts: Sequence[Measurement], reading: Reading, level: float, rows: int) -> float:
        """The half-width of an interval if a group has `rows` values; the largest over the declared range."""


@dataclass(frozen=True)
class Family:
    """Functions of one file: their lines of the reference (aggregate, value, needs), and what the auditor asks."""

    functions: tuple[Function, ...]
    reference: tuple[tuple[str, str, str], ...]
    audit: tuple[str, ...]


# -- functions that are drawn by mechanisms of their own --------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """In how many groups one unit counts, with how many rows in each, and what neighbours differ in."""

    groups: int
    rows: int
    neighbours: Neighbours


class Mechanisms(ABC):
    """What draws an `OwnPart`, at its price."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """Of all groups that one unit touches: the event to charge."""

    @abstractmethod
    def draw(self, tables: Sequence[Any], bits: Bits | None) -> Any:
        """One draw, JSON-ready. tables: by group, the pairs (step, how many rows have it), steps increasing."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is, for `check`."""

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """What a receipt shows of it."""

    @property
    def note(self) -> str:
        """What an answer says of its error, where it has no interval."""
        return ""


@dataclass(frozen=True)
class OwnPart(ABC):
    """A part of a release that looks at single values of one measurement."""

    measurement: Measurement

    @abstractmethod
    def priced(self, reach: Reach, amount: Fraction, *, pure: bool) -> Mechanisms:
        """The mechanisms of each group for an amount of epsilon (pure), or rho."""

    @abstractmethod
    def read(self, values: Any, groups: int) -> Any:
        """What was drawn, from its JSON."""


@dataclass(frozen=True)
class Promise:
    """How far a listed aggregate is off at most, 19 times in 20: in ranks, or in rows; and what that means."""

    note: str
    ranks: float | None = None
    rows: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Listed(Function):
    """A function that looks at single values, and is drawn by mechanisms of its own."""

    part_type: ClassVar[type[OwnPart]]

    @abstractmethod
    def part(self, measurement: Measurement, aggregates: Sequence[Aggregate], declared: Declared) -> OwnPart:
        """The part that aggregates of this `part_type` over one measurement are drawn in, together."""

    @abstractmethod
    def values(self, aggregate: Aggregate, part: Any, drawn: Any) -> NDArray[Any]:
        """The estimates by group: floats, or (of a choice) Python values."""

    @abstractmethod
    def ends(self, aggregate: Aggregate, part: Any, drawn: Any, level: float) -> tuple[Floats, Floats]:
        """The ends of its intervals."""

    @abstractmethod
    def redrawn(self, aggregate: Aggregate, part: Any, drawn: Any, places: Any, uniform: Floats) -> NDArray[Any]:
        """What it could be instead, at some places: by uniform numbers in (0, 1), draws by places."""

    @abstractmethod
    def promise(self, aggregate: Aggregate, mechanisms: Any) -> Promise:
        """How far it is off at most, 19 times in 20."""


# -- what is measured -------------------------------------------------------------------------------------------------


def measurements_of(aggregate: Aggregate, declared: Declared) -> tuple[Measurement, ...]:
    """What an aggregate is computed from (`Function.measured`).

    Raises PolicyError where bounds are not declared, QueryError where no range follows from them.
    """
    if len(aggregate.arguments) < aggregate.function.arity:
        raise QueryError(
            f"{aggregate.function.names.sql} needs {'a column' if aggregate.function.arity == 1 else 'two columns'}."
        )
    return aggregate.function.measured(aggregate, declared)


def computed(function: Function) -> Computed:
    """A function that is one of quantities."""
    if not isinstance(function, Computed):
        raise InternalError(f"{function.names.sql} is not made of quantities")
    return function


def quantities_of(aggregate: Aggregate, parts: Sequence[Measurement]) -> tuple[Quantity, ...]:
    """The quantities that an aggregate is a function of, from its measurements; none of a listed one."""
    function = aggregate.function
    return function.quantities(parts) if isinstance(function, Computed) else ()


def measurements(
    aggregates: Iterable[Aggregate],
    declared: Declared,
    *,
    private_keys: bool = False,
    own_norms: bool = False,
) -> tuple[Measurement, ...]:
    """All measurements of a question, each once, in an order that the order of SELECT does not change.

    private_keys: whether groups are found privately, by their counts of units. own_norms: whether norms are clipped:
    a SUM that nothing else needs the count of is then measured alone.
    """
    aggregates = tuple(aggregates)
    measured = {m for a in aggregates for m in measurements_of(a, declared)}
    if own_norms:
        measured = _with_own_norms(aggregates, declared)
    if private_keys:
        measured.add(Measurement(MeasurementKind.UNITS))
    return tuple(sorted(measured, key=lambda m: json.dumps(m.canonical())))


def _with_own_norms(aggregates: Iterable[Aggregate], declared: Declared) -> set[Measurement]:
    sums, plain = set(), set[Measurement]()
    for a in aggregates:
        parts = measurements_of(a, declared)
        if len(parts) == 2 and quantities_of(a, parts) == (Total(parts[0]),):
            sums.add(parts)
        else:
            plain |= set(parts)
    for total, count in sums:
        plain |= {total, count} if total in plain or count in plain else {alone(total)}
    return plain


ANY_KIND = frozenset(Kind)
"""Every kind of value."""

RANKABLE = NUMERIC | TEMPORAL
"""The kinds of value that have an order and a range."""
