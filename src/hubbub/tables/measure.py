"""Measurements: vectors of integers that aggregates are made of, and how far one unit can move them.

What one row adds. UNITS, ROWS, VALUES, DISTINCT: 1. SUM: the value's step on its grid, less a centre. PRODUCT: the
product of two such steps, floor(v1 v2 / 2^shift), less a centre. So a row's integer lies in [low, high]; a row whose
value is NULL adds nothing. An aggregate is a function of such sums: AVG of a centred sum and a count, VAR of those
and the centred sum of squares. QUANTILES lists the steps themselves; of a date or time those of a clock
(`hubbub.tables.times`).

Contribution. A unit counts with at most R rows in a group and in at most C groups, so its part of a vector has at
most C entries other than 0, each in [R low', R high'], low' = min(0, low), high' = max(0, high) (R = 1 for UNITS).
DISTINCT counts values over all units, each with at most R of them in a group: a unit's values move a group's count by
0 .. R, and exchanging them by -R .. R, which is what a unit's own count in 0 .. R would do.

Sensitivity, with m = R max(-low', high') and w = R (high' - low'), over G groups:

- add_remove: l1 is C m, l2 squared C m^2.
- replace: two parts that share k groups differ there by at most w each and by m in 2 (C - k) others, with
  max(0, 2C - G) <= k <= C. l1: k w + 2 (C - k) m, largest for the smallest k because w <= 2m.
  l2 squared: k w^2 + 2 (C - k) m^2, largest at one of the two ends.

All are exact: some table reaches them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

from hubbub.errors import InternalError, PolicyError, QueryError
from hubbub.noise import Grid
from hubbub.remedies import DeclareLimits, DeclareRange, Rewrite
from hubbub.tables.columns import Between, Counted, Declaration, Edges, UpTo
from hubbub.tables.declare import Neighbours
from hubbub.tables.expressions import (
    Arithmetic,
    Call,
    Case,
    Column,
    Expression,
    IsNull,
    Literal,
    Not,
    canonical,
    children,
    columns_in,
    whole,
)
from hubbub.tables.functions import DAY
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.spans import span
from hubbub.tables.times import Clock, clock

__all__ = [
    "GRID_BITS",
    "QUANTILE_BITS",
    "Bounds",
    "Measurement",
    "MeasurementKind",
    "Value",
    "alone",
    "count_of",
    "l1",
    "l2_squared",
    "listed",
    "product_of",
    "sum_of",
    "uncentred",
    "value_of",
    "where_known",
]

GRID_BITS = 22
"""A declared range is cut into at most 2^22 steps: sums of 2^39 rows stay inside 64 bits."""

QUANTILE_BITS = 16
"""A quantile is chosen among at most 2^16 steps."""

VALUE_BITS = 40

SUM_PLACES = 40
"""Places of a search above 0."""

TO_FIND = -1
"""In place of a cap that is found in the charge."""

LARGEST_EXPONENT = 960


@dataclass(frozen=True)
class Bounds:
    """How much one unit may contribute to one question: C groups, R rows in each."""

    groups: int
    rows: int


class MeasurementKind(Enum):
    """What a measurement adds up, or (QUANTILES) lists, over the rows of a group."""

    UNITS = "units"
    ROWS = "rows"
    VALUES = "values"
    SUM = "sum"
    PRODUCT = "product"
    DISTINCT = "distinct"
    QUANTILES = "quantiles"

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Value:
    """One row's value as an integer: clamp(round(x / grid.step), floor, ceiling) - centre.

    nullable: False where a NULL counts as the midpoint, (floor + ceiling) // 2; else a NULL is left out.
    clock: where the value is a date or time, what a step stands for; the argument is then the number of steps.
    """

    argument: Expression
    grid: Grid
    floor: int
    ceiling: int
    centre: int = 0
    nullable: bool = True
    clock: Clock | None = None

    @property
    def low(self) -> int:
        return self.floor - self.centre

    @property
    def high(self) -> int:
        return self.ceiling - self.centre

    def numbers(self, steps: Any) -> Any:
        """Steps in the unit of the value: of dates in days, of times in microseconds, since 1970-01-01."""
        return steps * float(self.grid.step) if self.clock is None else self.clock.numbers(steps)

    def canonical(self) -> list[object]:
        argument = canonical(self.argument)
        return [argument, self.grid.exponent, self.floor, self.ceiling, self.centre, self.nullable]


@dataclass(frozen=True)
class Measurement:
    """One vector to be measured, an entry per group: an integer, or for QUANTILES the table of values.

    argument: what is counted where it is not NULL (VALUES, DISTINCT; UNITS may have one).
    values: one for SUM and QUANTILES, two for PRODUCT. shift, centre: of a PRODUCT, as the module's head says.
    alone: a SUM that no count goes with, whose own norm is clipped (`hubbub.tables.clipping`). cap: where a unit's SUM
    within a group is clipped to [0, cap] in place of its rows; `TO_FIND` until that bound is found, 0 for none.
    """

    counting: MeasurementKind
    argument: Expression | None = None
    values: tuple[Value, ...] = ()
    shift: int = 0
    centre: int = 0
    alone: bool = False
    cap: int = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.counting, self.argument, self.values, self.shift, self.centre, self.alone, self.cap))

    @property
    def low(self) -> int:
        """The least integer of one row."""
        return self._ends[0]

    @property
    def high(self) -> int:
        """The largest integer of one row."""
        return self._ends[1]

    @cached_property
    def _ends(self) -> tuple[int, int]:
        if self.counting is MeasurementKind.SUM:
            return self.values[0].low, self.values[0].high
        if self.counting is MeasurementKind.PRODUCT:
            low, high = _product_ends(*self.values)
            return (low >> self.shift) - self.centre, (high >> self.shift) - self.centre
        return 1, 1

    @cached_property
    def step(self) -> Fraction:
        """What 1 stands for, in the unit of the aggregate."""
        if self.counting is MeasurementKind.PRODUCT:
            return Fraction(self.values[0].grid.step * self.values[1].grid.step * 2**self.shift)
        return self.values[0].grid.step if self.values else Fraction(1)

    def canonical(self) -> list[object]:
        """A JSON-ready form: two measurements with the same form are the same vector."""
        argument = None if self.argument is None else canonical(self.argument)
        fields = [self.counting.value, argument, [v.canonical() for v in self.values], self.shift, self.centre]
        fields += ["alone"] if self.alone else []
        return [*fields, "cap", "auto" if self.cap == TO_FIND else self.cap] if self.cap else fields


def l1(measurement: Measurement, bounds: Bounds, groups: int | None, neighbours: Neighbours) -> int:
    """The l1 sensitivity of a measurement; `groups` is None where any number of groups may be found.

    >>> l1(Measurement(MeasurementKind.ROWS), Bounds(groups=3, rows=2), 18, "add_remove")
    6
    >>> l1(Measurement(MeasurementKind.UNITS), Bounds(groups=1, rows=2), 1, "replace")
    1
    """
    most, width = _reach(measurement, bounds)
    c, shared = _overlap(bounds, groups)
    return c * most if neighbours == "add_remove" else shared * width + 2 * (c - shared) * most


def l2_squared(measurement: Measurement, bounds: Bounds, groups: int | None, neighbours: Neighbours) -> int:
    """The square of the l2 sensitivity of a measurement.

    >>> l2_squared(Measurement(MeasurementKind.ROWS), Bounds(groups=3, rows=2), 18, "add_remove")
    12
    """
    most, width = _reach(measurement, bounds)
    c, shared = _overlap(bounds, groups)
    if neighbours == "add_remove":
        return c * most**2
    return max(k * width**2 + 2 * (c - k) * most**2 for k in (shared, c))


def _reach(measurement: Measurement, bounds: Bounds) -> tuple[int, int]:
    if measurement.counting is MeasurementKind.QUANTILES:
        raise InternalError("the sensitivity of a quantile is one of ranks")
    if measurement.cap == TO_FIND:
        raise InternalError("a bound that is to be found has no sensitivity yet")
    if measurement.cap:
        return measurement.cap, measurement.cap
    rows = 1 if measurement.counting is MeasurementKind.UNITS else bounds.rows
    low, high = min(0, measurement.low), max(0, measurement.high)
    return rows * max(-low, high), rows * (high - low)


def _overlap(bounds: Bounds, groups: int | None) -> tuple[int, int]:
    """C, and the least number of groups that two units' contributions share."""
    if groups is None:
        return bounds.groups, 0
    c = min(bounds.groups, groups)
    return c, max(0, 2 * c - groups)


def listed(measurement: Measurement) -> bool:
    """Whether a measurement looks at single values, and is not a sum over rows."""
    return measurement.counting in (MeasurementKind.DISTINCT, MeasurementKind.QUANTILES)


def alone(total: Measurement) -> Measurement:
    """A SUM before its centre is taken off, to be clipped by its own norm."""
    return replace(uncentred(total), alone=True)


def uncentred(total: Measurement) -> Measurement:
    """A SUM before its centre is taken off."""
    return replace(total, values=(replace(total.values[0], centre=0),))


def where_known(x: Expression, other: Expression, declared: Mapping[str, Declaration]) -> Expression:
    """One of two arguments that are looked at together: NULL where the other may be."""
    # Where one of two may be missing, so may the other: all sums and their count then see the same rows.
    known = isinstance(other, Literal) and other.value is not None
    if other == x or known or not (nullable(x, declared) or nullable(other, declared)):
        return x
    return Case((Not(IsNull(other)),), (x,), Literal(None))


def nullable(argument: Expression, declared: Mapping[str, Declaration]) -> bool:
    """False only for a column declared nullable=False, whose NULLs count as the midpoint, and for constants."""
    if isinstance(argument, Literal):
        return argument.value is None
    what = declared.get(argument.name) if isinstance(argument, Column) else None
    return not (isinstance(what, Between | Edges) and not what.nullable)


def count_of(argument: Expression, declared: Mapping[str, Declaration]) -> Measurement:
    """The rows whose value is there; all rows where no value can be missing."""
    return (
        Measurement(MeasurementKind.VALUES, argument)
        if nullable(argument, declared)
        else Measurement(MeasurementKind.ROWS)
    )


def bounded_sum(argument: Expression, declared: Mapping[str, Declaration]) -> Measurement | None:
    """The SUM of a column whose bound is found (`UpTo`), or of what is that column or nothing; None for any other.

    To find the bound a row is on the grid of the search, at most its last place; once it is found, on at most 2^22
    steps up to it.
    """
    what = declared.get(column_to_find(argument, declared) or "")
    if not isinstance(what, UpTo):
        return None
    if what.bound is None:
        grid, most, cap = Grid(sum_exponent(argument)), 2 ** (SUM_PLACES - 1), TO_FIND
    else:
        grid = Grid(_exponent(Fraction(0), what.bound, GRID_BITS, whole_numbers=whole(argument)))
        most = cap = math.ceil(what.bound / grid.step)
    # A row that CASE gives a 0 adds nothing, whatever the column's own values start from.
    floor = 0 if _may_be_zero(argument) else min(math.floor(what.low / grid.step), most)
    return Measurement(MeasurementKind.SUM, values=(Value(argument, grid, floor, most),), cap=cap)


def _may_be_zero(argument: Expression) -> bool:
    """Whether a branch of CASE is the constant 0."""
    if isinstance(argument, Case):
        return any(map(_may_be_zero, (*argument.values, argument.default)))
    return isinstance(argument, Literal) and argument.value == 0


def sum_exponent(argument: Expression) -> int:
    """a: sums are searched on the grid 0, 2^a, 2^(a+1), ..., 2^(a+39): whole numbers from 1, others from 1/256 on."""
    return 0 if whole(argument) else -8


def column_to_find(argument: Expression, declared: Mapping[str, Declaration]) -> str | None:
    """The column of such a SUM."""
    match argument:
        case Column(name=name) if isinstance(declared.get(name), UpTo):
            return name
        case Case(values=values, default=default):
            branches = [v for v in (*values, default) if not (isinstance(v, Literal) and v.value in (None, 0))]
            columns = {column_to_find(v, declared) for v in branches}
            return columns.pop() if len(columns) == 1 else None
    return None


def sum_of(argument: Expression, declared: Mapping[str, Declaration]) -> Measurement:
    """The centred sum. Raises PolicyError or QueryError where no range follows from declared bounds."""
    return Measurement(MeasurementKind.SUM, values=(value_of(argument, declared, bits=GRID_BITS, centred=True),))


def value_of(
    argument: Expression,
    declared: Mapping[str, Declaration],
    *,
    bits: int,
    centred: bool,
    largest_bits: int = VALUE_BITS,
) -> Value:
    """A value on a grid of at most 2^bits steps, none more than 2^largest_bits of them away from 0.

    Raises PolicyError or QueryError where no range follows.
    """
    low, high = _range_of(argument, declared)
    if argument.kind in TEMPORAL:
        return _of_clock(argument, clock(argument.kind, low, high, 2**bits), low, high, nullable(argument, declared))
    try:
        grid = Grid(_exponent(low, high, bits, largest_bits, whole_numbers=whole(argument)))
    except OverflowError:
        raise _beyond(argument, declared) from None
    floor, ceiling = math.floor(low / grid.step), math.ceil(high / grid.step)
    centre = (floor + ceiling) // 2 if centred else 0
    return Value(argument, grid, floor, ceiling, centre, nullable(argument, declared))


def _of_clock(argument: Expression, clock: Clock, low: Fraction, high: Fraction, nullable: bool) -> Value:
    """A date or time as a number of steps of its clock."""
    part, per = ("DAY", clock.step // DAY) if clock.kind is Kind.DATE else ("MICROSECOND", clock.step)
    since: Expression = Call("DATE_DIFF", (Literal(part), Literal(clock.origin), argument))
    if per > 1:
        since = Arithmetic("/", since, Literal(per))
    floor, ceiling = math.floor(clock.place(low)), math.ceil(clock.place(high))
    return Value(since, Grid(0), floor, ceiling, nullable=nullable, clock=clock)


def _product_ends(x: Value, y: Value) -> tuple[int, int]:
    if x == y:
        return (0 if x.low <= 0 <= x.high else min(x.low**2, x.high**2)), max(x.low**2, x.high**2)
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return min(corners), max(corners)


def product_of(x: Value, y: Value) -> Measurement:
    """The product of two values, whichever comes first."""
    if _order(y) < _order(x):
        x, y = y, x
    low, high = _product_ends(x, y)
    shift = max(0, (high - low).bit_length() - GRID_BITS)
    return Measurement(
        MeasurementKind.PRODUCT, values=(x, y), shift=shift, centre=((low >> shift) + (high >> shift)) // 2
    )


def _order(value: Value) -> str:
    """A text that orders values: x y and y x are one product."""
    return repr(value.canonical())


def _exponent(low: Fraction, high: Fraction, bits: int, largest_bits: int = VALUE_BITS, *, whole_numbers: bool) -> int:
    """The smallest k for which the range has at most 2^bits steps of 2^k, and no value more than 2^largest_bits.

    Raises OverflowError for a range whose steps no double holds.
    """
    width, largest = high - low, max(abs(low), abs(high))
    least_step = max(width / 2**bits, largest / 2 ** (min(bits, largest_bits) if width == 0 else largest_bits))
    if least_step == 0:
        return 0
    k: int = least_step.numerator.bit_length() - least_step.denominator.bit_length() - 1
    while (Fraction(2**k) if k >= 0 else Fraction(1, 2**-k)) < least_step:
        k += 1
    k = max(k, 0) if whole_numbers else k
    if k > LARGEST_EXPONENT:
        raise OverflowError
    return max(k, -LARGEST_EXPONENT)


def _beyond(argument: Expression, declared: Mapping[str, Declaration]) -> PolicyError:
    """What refuses a range that has no grid: of a column that is declared so, or of what is computed."""
    way: DeclareRange | Rewrite = Rewrite("LEAST(GREATEST(..., low), high)")
    if isinstance(argument, Column) and isinstance(declared.get(argument.name), Between | Edges):
        way = DeclareRange(argument.called)
    return PolicyError(
        f"bounds beyond 1e290 cannot be put on a grid. Give the range that you would believe: {way.in_python()}.",
        remedy=way,
    )


def _range_of(argument: Expression, declared: Mapping[str, Declaration]) -> tuple[Fraction, Fraction]:
    if argument.kind not in NUMERIC | TEMPORAL and argument.kind is not Kind.NULL:
        raise QueryError(f"a sum, mean, spread or quantile needs a number; found {argument.kind.value}.")
    ends = span(argument, declared)
    if ends is None:
        return Fraction(0), Fraction(0)
    low, high = ends
    if low is not None and high is not None:
        return low, high
    raise _without_range(argument, declared)


def _without_range(argument: Expression, declared: Mapping[str, Declaration]) -> PolicyError | QueryError:
    """What to declare or to write, where bounds do not follow from what is declared."""
    columns = sorted(columns_in(argument), key=lambda c: c.called)
    for column in (c for c in columns if isinstance(declared.get(c.name), UpTo)):
        return _found_for_sums_alone(column.called)
    endless = [c for c in columns if c.kind in NUMERIC | TEMPORAL and None in (span(c, declared) or ())]
    for column in (c for c in endless if not c.shown):
        return _undeclared_range(column)
    if endless:
        return _computed_without_end(endless[0], declared)
    why = _endless(argument, declared)
    if why is not None:
        return QueryError(
            f"hubbub cannot tell how large this expression can get: {why[0]} Write {why[1].in_python()}.",
            remedy=why[1],
        )
    of_column = f" of {columns[0].called}" if columns else ""
    return QueryError(
        f"hubbub cannot tell how small or large this expression{of_column} can get (it may divide by something "
        "that may be 0, say). Give it a range: LEAST(GREATEST(..., low), high).",
        remedy=Rewrite("LEAST(GREATEST(..., low), high)"),
    )


def _found_for_sums_alone(called: str) -> PolicyError:
    remedy, clamp = DeclareRange(called), Rewrite(f"LEAST({called}, high)")
    return PolicyError(
        f'between(..., "auto") finds a bound for SUM({called}) alone. For what you ask, declare a range of '
        f'{called}, {remedy.in_python()}, with max_rows="auto" where rows may be many; or clamp in the question: '
        f"{clamp.in_python()}.",
        remedy=(remedy, clamp),
    )


def _undeclared_range(column: Column) -> PolicyError:
    called = column.called
    remedy = DeclareRange(called, temporal=column.kind in TEMPORAL)
    clamp = Rewrite(f"LEAST(GREATEST({called}, low), high)")
    return PolicyError(
        f"the column {called} has no declared bounds, so one person could move the answer by any amount. "
        f"Declare them: {remedy.in_python()}; or clamp in the question: {clamp.in_python()}.",
        remedy=(remedy, clamp),
    )


def _computed_without_end(column: Column, declared: Mapping[str, Declaration]) -> QueryError:
    called = column.called
    if isinstance(declared.get(column.name), Counted):
        few, limit = Rewrite(f"LEAST({called}, 20)"), DeclareLimits(("max_total",), (20,))
        return QueryError(
            f"{called} is a number of one unit's rows, for which no limit is declared, so one person could move "
            f"the answer by any amount. Cap it in the question, as in LEAST(COUNT(*), 20): {few.in_python()}; or "
            f"declare {limit.in_python()} of the table.",
            remedy=(few, limit),
        )
    least, _ = span(column, declared) or (None, None)
    cap = Rewrite(f"LEAST({called}, 20)" if least is not None else f"LEAST(GREATEST({called}, low), high)")
    return QueryError(
        f"hubbub cannot tell how small or large {called} can get, so one person could move the answer by any "
        f"amount. Give it a range in the question: {cap.in_python()}.",
        remedy=cap,
    )


def _endless(node: Expression, declared: Mapping[str, Declaration]) -> tuple[str, Rewrite] | None:
    """Which operand leaves an expression without a range, and what to write for it; None where that is not known."""
    for child in children(node):
        if child.kind in NUMERIC and (endless := _endless(child, declared)) is not None:
            return endless
    match node:
        case Call(name="LN" | "LOG10" as name, arguments=(x,)) if _reaches_zero(x, declared):
            fitting = Rewrite(f"{name}(GREATEST({_called(x)}, 1))")
            return f"{name} falls without end where {_called(x)} comes to 0.", fitting
        case Arithmetic(op="/" | "//" | "DIV", right=x) if _reaches_zero(x, declared):
            return f"it divides by {_called(x)}, which may be 0.", Rewrite(f"GREATEST({_called(x)}, 1)")
    return None


def _reaches_zero(node: Expression, declared: Mapping[str, Declaration]) -> bool:
    low, high = span(node, declared) or (None, None)
    return low is not None and high is not None and low <= 0 <= high


def _called(node: Expression) -> str:
    names = [column.called for column in columns_in(node)]
    return names[0] if isinstance(node, Column) else f"the expression of {names[0]}" if names else "it"
