"""From a question to measurements: vectors of integers, one entry per group, whose sensitivity is known.

Contribution. Let a unit count with at most R rows in a group and in at most C groups. A measurement adds, for each
row, an integer in [low, high] (1 for a count; the value on the grid for a sum). So one unit's part of the vector
has at most C entries other than 0, each in [R low', R high'] with low' = min(0, low), high' = max(0, high).

Sensitivity (l1), for G groups and C <= G:

- add_remove: C R m, with m = max(-low', high').
- replace: two such parts differ most when they share as few groups as possible, k = max(0, 2C - G) of them;
  a shared group differs by at most R (high' - low'), the others by R m each: R (k (high' - low') + 2 (C - k) m).

Both are exact: some table reaches them. A whole question without groups is the case G = C = 1 with R = max_total.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import assert_never

from hubbub.errors import PolicyError, QueryError
from hubbub.noise import Grid
from hubbub.tables.declare import EACH_ROW, Between, Neighbours, PrivateTable, Scalar
from hubbub.tables.expressions import Column, Expression, canonical, columns_of, span, whole
from hubbub.tables.groups import Evaluate, domain
from hubbub.tables.kinds import Kind
from hubbub.tables.question import Aggregate, Function, Question

__all__ = ["GRID_BITS", "Bounds", "Counting", "Measurement", "Plan", "make_plan", "sensitivity"]

GRID_BITS = 22
"""A declared range is cut into at most 2^22 steps: sums of 2^39 rows stay inside 64 bits."""

VALUE_BITS = 40
LARGEST_EXPONENT = 960
MAX_GROUPS_OF_ANSWER = 1_000_000


UNIT_GRID = Grid(0)


class Counting(Enum):
    """What a measurement adds up over a unit's rows of a group."""

    UNITS = "units"
    ROWS = "rows"
    VALUES = "values"
    SUM = "sum"


@dataclass(frozen=True)
class Measurement:
    """One vector of integers to be released, an entry per group.

    counting: what is added up. argument: the value counted or summed (None for units and rows).
    grid: the step of a sum. low, high: the range of one row's integer, after `centre` is taken off.
    floor, ceiling: the clamp on the grid before `centre` is taken off.
    """

    counting: Counting
    argument: Expression | None = None
    grid: Grid = UNIT_GRID
    centre: int = 0
    floor: int = 1
    ceiling: int = 1
    nullable: bool = True

    def canonical(self) -> list[object]:
        """A JSON-ready form: two measurements with the same form are the same vector."""
        argument = None if self.argument is None else canonical(self.argument)
        return [
            self.counting.value,
            argument,
            self.grid.exponent,
            self.centre,
            self.floor,
            self.ceiling,
            self.nullable,
        ]

    @property
    def low(self) -> int:
        return self.floor - self.centre

    @property
    def high(self) -> int:
        return self.ceiling - self.centre


@dataclass(frozen=True)
class Interval:
    """A closed range of numbers, exact."""

    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class Bounds:
    """How much one unit may contribute to one question: C groups, R rows in each."""

    groups: int
    rows: int


@dataclass(frozen=True)
class Plan:
    """A question with everything that decides its cost and its noise, and no private value."""

    question: Question
    table: PrivateTable
    each_row: bool
    bounds: Bounds
    domains: tuple[tuple[Scalar, ...], ...]
    measurements: tuple[Measurement, ...]

    @property
    def group_count(self) -> int:
        return math.prod(map(len, self.domains))

    def groups(self) -> itertools.product[tuple[Scalar, ...]]:
        """All groups of the answer in canonical order: declared order, the last key fastest."""
        return itertools.product(*self.domains)

    @property
    def neighbours(self) -> Neighbours:
        return self.table.neighbours

    def sensitivity(self, measurement: Measurement) -> int:
        """The l1 sensitivity of a measurement in steps of its grid (the module's head has the proof)."""
        rows = 1 if measurement.counting is Counting.UNITS else self.bounds.rows
        return sensitivity(
            Bounds(self.bounds.groups, rows),
            measurement.low,
            measurement.high,
            self.group_count,
            self.neighbours,
        )

    def measurement_of(self, aggregate: Aggregate) -> tuple[Measurement, ...]:
        """The measurements an aggregate is made of: for AVG the centred sum, then the count of values."""
        return _measurements(aggregate, self.table)

    def key(self) -> str:
        """A canonical text: two plans with one key ask the same of the same declared table."""
        q = self.question
        return json.dumps(
            {
                "table": q.table,
                "where": None if q.where is None else canonical(q.where),
                "keys": [canonical(k.expression) for k in q.keys],
                "domains": [[[type(v).__name__, str(v)] for v in d] for d in self.domains],
                "bounds": [self.bounds.groups, self.bounds.rows],
                "neighbours": self.neighbours,
                "unit": None if self.each_row else str(self.table.unit),
                "measurements": [m.canonical() for m in self.measurements],
            },
            sort_keys=True,
        )


def sensitivity(bounds: Bounds, low: int, high: int, groups: int, neighbours: Neighbours) -> int:
    """The l1 sensitivity of a vector of `groups` entries, by the module's head.

    >>> sensitivity(Bounds(groups=3, rows=2), 1, 1, 18, "add_remove")
    6
    >>> sensitivity(Bounds(groups=1, rows=1), 1, 1, 1, "replace")
    1
    """
    low, high = min(0, low), max(0, high)
    most = max(-low, high)
    c = min(bounds.groups, groups)
    if neighbours == "add_remove":
        return c * bounds.rows * most
    shared = max(0, 2 * c - groups)
    return bounds.rows * (shared * (high - low) + 2 * (c - shared) * most)


def make_plan(question: Question, table: PrivateTable, evaluate: Evaluate) -> Plan:
    """Plan a question on a declared table. `evaluate` computes the groups of a key that is an expression.

    Raises PolicyError where a declaration is missing (a limit, bounds, values), QueryError where the question has
    no private answer.
    """
    domains = tuple(domain(key, table.columns, evaluate) for key in question.keys)
    if math.prod(map(len, domains)) > MAX_GROUPS_OF_ANSWER:
        raise QueryError(
            f"the answer would have {math.prod(map(len, domains)):,} groups; at most {MAX_GROUPS_OF_ANSWER:,} are "
            "allowed. Group by fewer columns."
        )
    distinct = {m for a in question.aggregates for m in _measurements(a, table)}
    # In a canonical order, so that the order of SELECT does not make another question.
    measurements = tuple(sorted(distinct, key=lambda m: json.dumps(m.canonical())))
    each_row = table.unit is EACH_ROW
    bounds = Bounds(1, 1) if each_row else _bounds(question, table, measurements)
    return Plan(question, table, each_row, bounds, domains, measurements)


def _bounds(question: Question, table: PrivateTable, measurements: tuple[Measurement, ...]) -> Bounds:
    """The limits a question needs, and only those."""
    counts_rows = any(m.counting is not Counting.UNITS for m in measurements)
    if not question.keys:
        if not counts_rows:
            return Bounds(1, 1)
        if table.max_total is None and (table.max_groups is None or table.max_rows is None):
            raise PolicyError(
                f"how many rows of one {table.unit} may count is not declared for table {question.table!r}. "
                "Declare max_total=..., or max_groups=... and max_rows=... (their product is used)."
            )
        return Bounds(1, table.max_total or (table.max_groups or 1) * (table.max_rows or 1))
    missing = [
        name
        for name, value, needed in (
            ("max_groups", table.max_groups, True),
            ("max_rows", table.max_rows, counts_rows),
        )
        if needed and value is None
    ]
    if missing:
        raise PolicyError(
            f"this question needs {' and '.join(missing)} of table {question.table!r}: in how many groups, and with "
            f"how many rows in each, one {table.unit} may count. Declare {', '.join(f'{m}=...' for m in missing)}."
        )
    return Bounds(table.max_groups or 1, table.max_rows or 1)


def _measurements(aggregate: Aggregate, table: PrivateTable) -> tuple[Measurement, ...]:
    argument = aggregate.argument
    match aggregate.function:
        case Function.COUNT_ROWS:
            return (Measurement(Counting.ROWS),)
        case Function.COUNT_UNITS:
            return (Measurement(Counting.UNITS),)
        case _ if argument is None:
            raise QueryError(f"{aggregate.function.value} needs a column.")
        case Function.COUNT_VALUES:
            return (_count_of(argument, table),)
        case Function.SUM:
            return (_sum_of(argument, table, centred=False),)
        case Function.AVG:
            return (_sum_of(argument, table, centred=True), _count_of(argument, table))
    assert_never(aggregate.function)


def _nullable(argument: Expression, table: PrivateTable) -> bool:
    """False only for a column declared nullable=False, whose NULLs count as the midpoint."""
    declared = table.columns.get(argument.name) if isinstance(argument, Column) else None
    return not (isinstance(declared, Between) and not declared.nullable)


def _count_of(argument: Expression, table: PrivateTable) -> Measurement:
    if not _nullable(argument, table):
        return Measurement(Counting.ROWS)
    return Measurement(Counting.VALUES, argument)


def _sum_of(argument: Expression, table: PrivateTable, *, centred: bool) -> Measurement:
    bounds = _interval_of(argument, table)
    grid = Grid(_exponent(bounds, whole_numbers=whole(argument)))
    floor, ceiling = math.floor(bounds.low / grid.step), math.ceil(bounds.high / grid.step)
    return Measurement(
        Counting.SUM,
        argument,
        grid=grid,
        centre=(floor + ceiling) // 2 if centred else 0,
        floor=floor,
        ceiling=ceiling,
        nullable=_nullable(argument, table),
    )


def _exponent(bounds: Interval, *, whole_numbers: bool) -> int:
    """The smallest k for which the range has at most 2^22 steps of 2^k, and no value more than 2^40 of them."""
    width, largest = bounds.high - bounds.low, max(abs(bounds.low), abs(bounds.high))
    least_step = max(width / 2**GRID_BITS, largest / 2 ** (GRID_BITS if width == 0 else VALUE_BITS))
    if least_step == 0:
        return 0
    k: int = least_step.numerator.bit_length() - least_step.denominator.bit_length() - 1
    while (Fraction(2**k) if k >= 0 else Fraction(1, 2**-k)) < least_step:
        k += 1
    k = max(k, 0) if whole_numbers else k
    if k > LARGEST_EXPONENT:
        raise PolicyError("declared bounds beyond 1e290 cannot be put on a grid; declare the range you would believe.")
    return max(k, -LARGEST_EXPONENT)


def _interval_of(argument: Expression, table: PrivateTable) -> Interval:
    found = span(argument, table.columns)
    if found is None:
        return Interval(Fraction(0), Fraction(0))
    low, high = found
    if low is not None and high is not None:
        return Interval(low, high)
    for name in sorted(columns_of(argument)):
        if None in (span(Column(name, Kind.NUMBER), table.columns) or ()):
            raise PolicyError(
                f"the column {name} has no declared bounds, so one person could move the sum by any amount. "
                f'Declare them: columns={{"{name}": hb.between(low, high)}}.'
            )
    raise QueryError(
        "the range of the summed expression does not follow from declared bounds (a division by something that may "
        "be 0, say). Give it one: LEAST(GREATEST(..., low), high)."
    )
