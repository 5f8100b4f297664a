"""The rows that `aggregate_sql` and `listed_sql` bound and add up, for an engine that does so by other means.

`ranked_sql` gives one row for each row that counts: its unit, its group, the hash that ranks a unit's groups, and each
value in steps of its grid, not yet rounded or clamped. `columns_of_rows` says which columns these are. What is made of
them, and why that is what the other two texts answer, stands where they are read (`hubbub.engines.duckdb.ranking`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hubbub.sql.emit.dialect import Dialect, power
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import (
    _owned,
    _placed,
    _rank_of_group,
    _rows,
    _text,
    _too_many_groups,
    summed,
)
from hubbub.tables.expressions import Call, Case, Expression, IsNull, Literal
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import MeasurementKind, Value
from hubbub.tables.plan import Plan

__all__ = ["RowColumns", "certain", "columns_of_rows", "few_whole", "looked_at", "ranked_sql", "ranks"]

ORDERED: Final = frozenset({Kind.TEXT, Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN})
"""Keys whose values Python tells apart and orders as SQL does; a double may be NaN, which is not equal to itself."""

MANY: Final = 2
"""From so many sums on, one sort by unit is quicker than a hash table of units with all their sums."""


@dataclass(frozen=True)
class RowColumns:
    """The columns of `ranked_sql`, in order: the unit, with its part where one is asked for; the keys; the hash.

    keys: how many columns name the group: none, one with its number in canonical order, or where groups are found
    privately one for each key. hashed: whether a unit's groups are ranked. values: in steps, NULL where they are.
    counted: what is counted where it is not NULL, and is no value's argument: 1 or 0.
    """

    keys: int
    hashed: bool
    values: tuple[Value, ...]
    counted: tuple[Expression, ...]


def ranks(plan: Plan) -> bool:
    """Whether the rows of a plan can be bounded by ranks and sums alone, and that is the quicker way."""
    if plan.search is not None or plan.one_row or plan.clipping:
        return False
    if any(domain is None and key.kind not in ORDERED for key, domain in zip(plan.keys, plan.domains, strict=True)):
        return False
    sums = [m for m in plan.measurements if m.counting in (MeasurementKind.SUM, MeasurementKind.PRODUCT)]
    listed = any(m.counting is MeasurementKind.QUANTILES for m in plan.measurements)
    return listed or len(sums) >= MANY or (_too_many_groups(plan) and any(map(summed, plan.measurements)))


def columns_of_rows(plan: Plan) -> RowColumns:
    """What the rows of a plan that `ranks` hold."""
    measured = [m for m in plan.measurements if m.counting is not MeasurementKind.DISTINCT]
    values = tuple(dict.fromkeys(v for m in measured for v in m.values))
    known = {v.argument for v in values}
    asked = dict.fromkeys(m.argument for m in measured if m.argument is not None)
    counted = tuple(e for e in asked if e not in known and not certain(e))
    keys = len(plan.domains) if plan.private_keys else min(1, len(plan.domains))
    return RowColumns(keys, _too_many_groups(plan), values, counted)


def looked_at(plan: Plan) -> tuple[int, ...]:
    """The places of a plan's measurements that the rows answer: all but the numbers of different values."""
    return tuple(i for i, m in enumerate(plan.measurements) if m.counting is not MeasurementKind.DISTINCT)


def ranked_sql(plan: Plan, places: Mapping[str, Place], dialect: Dialect, *, parts: int = 0) -> str:
    """The rows of a plan that `ranks`, with the columns of `columns_of_rows`.

    parts: how many bits of a hash of the unit are given beside it, for units that this process does not hash.
    """
    what = columns_of_rows(plan)
    small = {v for v in what.values if few_whole(v)}

    def unrounded(value: Value, text: str) -> str:
        steps = dialect.double(text)
        return text if value in small else f"{steps} * {dialect.real(power(-value.grid.exponent))}"

    stages = [*_owned(plan, places, dialect, x=unrounded), *_placed(plan, dialect)]
    columns = ["unit"]
    if parts:  # of units that are texts; a long one would be written out for each of its rows
        columns = [f"{dialect.unit_name('unit', 'text')} AS unit"]
        columns.append(f"TRY_CAST({dialect.hash('unit')} >> {64 - parts} AS UTINYINT) AS u")
    if plan.private_keys:
        columns += [f"g{i}" for i in range(len(plan.domains))]
    elif plan.domains:
        columns.append(f"{_number(plan, dialect)} AS g")
    columns += [f"{_rank_of_group(plan, dialect)} AS h"] if what.hashed else []
    for value in what.values:
        x = f"x{plan.values[value]}"
        columns.append(f"TRY_CAST({x} AS TINYINT) AS {x}" if value in small else x)
    columns += [f"CAST(y{i} IS NOT NULL AS TINYINT) AS y{i}" for i in map(plan.counted.__getitem__, what.counted)]
    return _text(stages, f"SELECT {', '.join(columns)}\nFROM {_rows(plan)}", dialect)


def _number(plan: Plan, dialect: Dialect) -> str:
    """The number of a row's group in canonical order."""
    number = ""
    for i, domain in enumerate(plan.domains):
        place = dialect.cast(f"g{i}", Kind.INTEGER, Kind.INTEGER)
        times = dialect.tried(f"{number} * {len(domain or ())}")
        number = dialect.tried(f"{times} + {place}") if number else place
    return f"TRY_CAST({number} AS INTEGER)"


def certain(node: Expression) -> bool:
    """Whether an expression is never NULL, by its form alone."""
    match node:
        case Literal(value=value):
            return value is not None
        case IsNull():
            return True
        case Case(values=values, default=default):
            return all(map(certain, (*values, default)))
        case Call(name="COALESCE", arguments=arguments):
            return any(map(certain, arguments))
    return False


def few_whole(value: Value) -> bool:
    """Whether a value is one of a few whole numbers, all small and in its range: its step is itself."""
    numbers = _numbers(value.argument)
    if numbers is None or value.grid.exponent != 0 or value.clock is not None:
        return False
    return all(max(value.floor, -128) <= n <= min(value.ceiling, 127) for n in numbers)


def _numbers(node: Expression) -> frozenset[int] | None:
    """The whole numbers that an expression may be, beside NULL; None where that is not known by its form alone."""
    match node:
        case Literal(value=None):
            return frozenset()
        case Literal(value=int() as value) if not isinstance(value, bool):
            return frozenset({value})
        case Case(values=values, default=default):
            parts = [_numbers(v) for v in (*values, default)]
            return None if None in parts else frozenset().union(*(p for p in parts if p is not None))
    return None
