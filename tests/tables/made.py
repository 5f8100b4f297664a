"""Plans made by hand, and what an engine must return for given rows: a reference written from the rules alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import hubbub as hb
from hubbub.tables.aggregate_query import Aggregate, AggregateQuery, Key
from hubbub.tables.aggregates import FUNCTIONS
from hubbub.tables.aggregates.base import measurements
from hubbub.tables.columns import Declaration, Scalar
from hubbub.tables.declare import Limits, Neighbours
from hubbub.tables.expressions import Call, Case, Column, Expression, IsNull, Literal, Not
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Bounds, Measurement, MeasurementKind, Value
from hubbub.tables.plan import Plan
from hubbub.tables.relations import Scan

X, Y, WARD = Column("t0.x", Kind.NUMBER), Column("t0.y", Kind.NUMBER), Column("t0.ward", Kind.TEXT)
DECLARED: dict[str, Declaration] = {"t0.x": hb.between(0, 100, nullable=False), "t0.y": hb.between(-4, 4)}

COUNT, UNITS = Aggregate(FUNCTIONS["COUNT_ROWS"]), Aggregate(FUNCTIONS["COUNT_UNITS"])
AVG, SUM, VAR = (
    Aggregate(FUNCTIONS["AVG"], (X,)),
    Aggregate(FUNCTIONS["SUM"], (X,)),
    Aggregate(FUNCTIONS["VAR_POP"], (X,)),
)
MEDIAN = Aggregate(FUNCTIONS["QUANTILE"], (X,), Fraction(1, 2))

ONE_ROW = Bounds(1, 1)
Row = Mapping[str, float | None]


@dataclass(frozen=True)
class Exact:
    vectors: tuple[Sequence[object], ...]
    groups: tuple[tuple[Scalar, ...], ...] | None = None


def plan(
    *aggregates: Aggregate,
    groups: int | None = 1,
    bounds: Bounds = ONE_ROW,
    neighbours: Neighbours = "add_remove",
    declared: Mapping[str, Declaration] = DECLARED,
) -> Plan:
    """A plan over one table with `groups` wards (None: found privately)."""
    scan = Scan(
        place="t0",
        table="t",
        columns={"id": Kind.INTEGER, "x": Kind.NUMBER, "y": Kind.NUMBER, "ward": Kind.TEXT},
        declared={name.partition(".")[2]: what for name, what in declared.items()},
        limits=Limits(),
        space="id",
        neighbours=neighbours,
        unit="id",
    )
    keys = (Key(WARD),)
    question = AggregateQuery(scan, keys, tuple(aggregates), ((0,),))
    domain = None if groups is None else tuple(f"w{i:06d}" for i in range(groups))
    found = measurements(aggregates, declared, private_keys=groups is None)
    return Plan(question, keys, False, bounds, (domain,), found, declared)


def value_of(expression: Expression, row: Row) -> float | None:
    match expression:
        case Column(name=name):
            return row.get(name.partition(".")[2])
        case Case(conditions=(Not(operand=IsNull(operand=other)),), values=(x,), default=Literal(value=None)):
            return None if value_of(other, row) is None else value_of(x, row)
        case Call(name="LN", arguments=(Case(values=(Literal(value=least),), default=column),)):
            number = value_of(column, row)
            return None if number is None else math.log(number if number > 0 else least)  # type: ignore[arg-type]
        case _:
            raise AssertionError(expression)


def integer_of(value: Value, row: Row) -> int | None:
    x = value_of(value.argument, row)
    if x is None:
        return None if value.nullable else (value.floor + value.ceiling) // 2 - value.centre
    return min(max(round(Fraction(x) / value.grid.step), value.floor), value.ceiling) - value.centre


def row_integer(m: Measurement, row: Row) -> int | None:
    """What one row adds; None for nothing."""
    if m.counting in (MeasurementKind.SUM, MeasurementKind.PRODUCT):
        steps = [integer_of(v, row) for v in m.values]
        if any(s is None for s in steps):
            return None
        if m.counting is MeasurementKind.SUM:
            return steps[0]
        return (steps[0] * steps[1] >> m.shift) - m.centre  # type: ignore[operator]
    return None if m.argument is not None and value_of(m.argument, row) is None else 1


def part_of(m: Measurement, rows: Sequence[Row], limit: int) -> int:
    """What one unit adds to one group."""
    found = [v for v in (row_integer(m, row) for row in rows) if v is not None]
    if m.counting is MeasurementKind.UNITS:
        return int(bool(found))
    total, n = sum(found), len(found)
    if n <= limit:
        return total
    scaled = abs(total) * limit // n
    return scaled if total >= 0 else -scaled


def measured(made: Plan, rows: Sequence[tuple[int, str, Row]]) -> Exact:
    """Exact integers of a plan over (unit, ward, row); a unit counts in its first C groups."""
    by_unit: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for unit, ward, row in rows:
        by_unit[unit][ward].append(row)
    names = [g[0] for g in made.groups()]
    vectors: list[list[object]] = []
    for m in made.measurements:
        if m.counting in (MeasurementKind.DISTINCT, MeasurementKind.QUANTILES):
            vectors.append([_listed(m, by_unit, name, made.bounds) for name in names])
            continue
        vector = dict.fromkeys(names, 0)
        for groups in by_unit.values():
            for name in [g for g in sorted(groups) if g in vector][: made.bounds.groups]:
                vector[name] += part_of(m, groups[name], made.bounds.rows)
        vectors.append(list(vector.values()))
    return Exact(tuple(tuple(v) for v in vectors))


def _listed(m: Measurement, by_unit: Mapping[int, Mapping[str, list[Row]]], name: object, bounds: Bounds) -> object:
    counted: dict[float, int] = defaultdict(int)
    for groups in by_unit.values():
        if name not in sorted(groups)[: bounds.groups]:
            continue
        rows = groups[name]  # type: ignore[index]
        if m.counting is MeasurementKind.DISTINCT:
            values = [value_of(m.argument, row) for row in rows]  # type: ignore[arg-type]
            kept = sorted({v for v in values if v is not None})[: bounds.rows]
        else:
            kept = [s for s in (integer_of(m.values[0], row) for row in rows) if s is not None][: bounds.rows]
        for value in kept:
            counted[value] += 1
    return len(counted) if m.counting is MeasurementKind.DISTINCT else tuple(sorted(counted.items()))
