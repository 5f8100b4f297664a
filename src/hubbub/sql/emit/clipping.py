"""The stages that clip a unit's norm, between `per_unit` and the sums over units (`hubbub.tables.clipping`).

    sized      beside a unit's sums in a group, z0, z1, ...: the norms over all its groups of what weights go by; in l2
               their squares
    weighted   w0, w1, ...: the unit's weights, whole numbers of 2^-16

All in integers of 128 bits. The square root is taken of a whole number t <= 2^32 as a double: t is exact there, and the
rounded root of t = j^2 - 1, the nearest to a whole number from below, is 2^-18 or more away from j <= 2^16, so floor()
of it is the root rounded down.
"""

from __future__ import annotations

from collections.abc import Iterator

from hubbub.sql.emit.dialect import Dialect
from hubbub.tables.clipping import WEIGHT_BITS, coarseness, numerator
from hubbub.tables.kinds import Kind
from hubbub.tables.measure import Measurement, MeasurementKind
from hubbub.tables.plan import Plan

__all__ = ["clipped_sql", "clipping_stages"]


def clipping_stages(plan: Plan, dialect: Dialect) -> Iterator[tuple[str, str]]:
    """The stages, the last one `weighted`."""
    weights = _weights(plan, dialect)
    square = plan.norm == "l2"
    norms = []
    for i, (size, _) in enumerate(weights):
        wide = dialect.wide(size)
        size = dialect.tried(f"({wide} * {wide})") if square else wide
        norms.append(f"sum({size}) OVER (PARTITION BY unit) AS z{i}")
    yield "sized", f"  SELECT *, {', '.join(norms)}\n  FROM per_unit"
    shown = [f"{_weight(f'z{i}', above, square, dialect)} AS w{i}" for i, (_, above) in enumerate(weights)]
    yield "weighted", f"  SELECT *, {', '.join(shown)}\n  FROM sized"


def clipped_sql(plan: Plan, i: int, dialect: Dialect) -> str:
    """A unit's weighted part of measurement number i in one group."""
    measurement = plan.measurements[i]
    weight = f"w{_weights(plan, dialect).index(_weight_of(plan, i, dialect))}"
    product = dialect.tried(f"({dialect.wide(_integer(measurement, i, dialect))} * {weight})")
    coarser = WEIGHT_BITS - plan.fineness(measurement)
    return dialect.divided(product, str(2**coarser)) if coarser else product


def _integer(measurement: Measurement, i: int, dialect: Dialect) -> str:
    match measurement.counting:
        case MeasurementKind.UNITS:
            return _size(measurement, i, dialect)
        case MeasurementKind.ROWS:
            return "n"
        case MeasurementKind.VALUES:
            return f"n{i}"
    return f"s{i}"


def _weights(plan: Plan, dialect: Dialect) -> list[tuple[str, int]]:
    """What weights go by, with its numerator, each once."""
    clipped = [i for i, m in enumerate(plan.measurements) if plan.clips(m)]
    return list(dict.fromkeys(_weight_of(plan, i, dialect) for i in clipped))


def _weight_of(plan: Plan, i: int, dialect: Dialect) -> tuple[str, int]:
    measurement = plan.measurements[i]
    assert plan.norm is not None
    return _size(measurement, i, dialect), numerator(measurement, plan.bounds, plan.group_count, plan.norm)


def _size(measurement: Measurement, i: int, dialect: Dialect) -> str:
    """How much of a unit is in a group."""
    if measurement.counting is MeasurementKind.UNITS:
        return "1" if measurement.argument is None else f"least(n{i}, 1)"
    if not measurement.alone:
        return "n"
    total, d = dialect.tried(f"abs(coalesce(s{i}, 0))"), coarseness(measurement)
    return total if d == 1 else dialect.divided(dialect.tried(f"({dialect.wide(total)} + {d - 1})"), str(d))


def _weight(norm: str, above: int, square: bool, dialect: Dialect) -> str:
    """min(2^16, the quotient); in l2 the root, rounded down, of the same of squares."""
    quotient = dialect.divided(str(above), f"greatest({norm}, 1)")
    if not square:
        return f"least({2**WEIGHT_BITS}, {quotient})"
    root = f"floor(sqrt({dialect.double(f'least({4**WEIGHT_BITS}, {quotient})')}))"
    return dialect.cast(root, Kind.NUMBER, Kind.INTEGER)
