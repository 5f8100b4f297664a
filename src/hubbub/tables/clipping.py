"""Norm clipping: a unit keeps all its groups, and all its rows weigh less until their norm is within its limits.

Weights. Let a_ug >= 0 say how much of unit u is in group g: how many rows it has there (for UNITS: 1 where it has any).
The limits C and R allow the norm B = C R in l1, the norm of Laplace noise, or B = sqrt(C) R in l2, that of Gaussian
noise (R = 1 for UNITS). The unit's weight is the integer

    k_u = floor(2^16 min(1, B / ||a_u||)),                                                        (1)

and k_u x_ug, an integer too, takes the place of x_ug in every measurement x of those rows: everything is in steps of
2^-16, nothing else is rounded. So a measured vector is sum_rows k_owner (row's integers) with ||k_u a_u|| <= 2^16 B,
linear in the rows: means, ratios and totals of the unit stay what they were, and whatever holds for the integers of one
row (the pair of sums of `hubbub.tables.parts`) holds for all of them together.

A SUM that no count or mean goes with has a norm of its own: a_ug = ceil(|s_ug| / d) for the sum s_ug of the unit in the
group, m the largest |integer| of a row and d = max(1, floor(m / 1024)). Then d ||a_u|| >= ||s_u||, and B m / d takes
the place of B: a unit with many small values is not clipped. (Beside a count this would bias their quotient.)

Sensitivity, in steps, of a measurement whose row's integer lies in [-q, p], p, q >= 0, m = max(p, q), over G groups.
A unit's part v has -q k a <= v <= p k a group by group. (For a SUM of its own norm p, q are m, or 0 if no value is on
that side of 0.)

- add_remove: l1 is 2^16 C R m, l2 squared is 2^32 C R^2 m^2: those of dropping groups and cutting rows.
- replace, G = 1: one number in an interval: (p + q) in place of m.
- replace, G > 1: l1 is twice as much, by the triangle inequality. l2 squared is 2^32 C R^2 * 2 (p^2 + q^2): with parts
  of shapes a, b, groups where v - w >= 0 give at most (p a + q b)^2 and the others (q a + p b)^2. With sin^2 s and
  sin^2 t the shares of |a|^2 in the first kind and of |b|^2 in the second, their sum is at most (Cauchy-Schwarz)
  (p^2 - q^2)(sin^2 s + sin^2 t) + 2 q^2 + 2 p q sin(s + t), which is largest at s = t:
  p^2 + q^2 + sqrt((p^2 - q^2)^2 + 4 p^2 q^2) = 2 (p^2 + q^2).

In the other norm: ||v||_2 <= ||v||_1 <= sqrt(G) ||v||_2. "Clipping" as in Dwork and Roth 2014 (3.3, projections of one
contribution); Abadi et al. 2016, Section 3.1, for l2.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from hubbub.tables.declare import Neighbours
from hubbub.tables.measure import Bounds, Measurement, MeasurementKind

__all__ = ["WEIGHT_BITS", "Norm", "coarseness", "fineness", "l1", "l2_squared", "numerator", "sizes"]

Norm: TypeAlias = Literal["l1", "l2"]

WEIGHT_BITS = 16
"""A unit's weight is a whole number of 2^-16."""

_SCALED_BITS = 38
"""A sum of its own norm is put on steps of 2^-16 as far as one row's integer then stays below 2^38."""

_RESOLUTION = 1024
_LARGEST = 2**126
"""Numerators stay below what 128 bits and 38 decimal digits hold; a smaller one clips more, never less."""


def sizes(measurement: Measurement) -> tuple[int, int]:
    """p and q: how far one row's integer can lie above and below 0; both the larger, where they are not 0, if alone."""
    p, q = max(0, measurement.high), max(0, -measurement.low)
    if not measurement.alone:
        return p, q
    m = max(p, q)
    return m * (p > 0), m * (q > 0)


def fineness(measurement: Measurement) -> int:
    """The bits f of the steps that a weighted integer is in: 1 stands for 2^-f of a step."""
    if not measurement.alone:
        return WEIGHT_BITS
    return min(WEIGHT_BITS, max(0, _SCALED_BITS - max(sizes(measurement)).bit_length()))


def coarseness(measurement: Measurement) -> int:
    """d: what 1 stands for in the size a_ug of a sum of its own norm."""
    return max(1, max(sizes(measurement)) // _RESOLUTION)


def numerator(measurement: Measurement, bounds: Bounds, groups: int | None, norm: Norm) -> int:
    """What is divided by the norm of a unit's sizes a (l2: by its square) for its weight (its square): 2^16 B.

    For a SUM of its own norm, B times m / d.

    >>> numerator(Measurement(MeasurementKind.ROWS), Bounds(3, 2), 18, "l1") // 2**16
    6
    """
    c, rows = _limits(measurement, bounds, groups)
    times, below = (max(sizes(measurement)), coarseness(measurement)) if measurement.alone else (1, 1)
    if norm == "l1":
        return min((c * rows * times << WEIGHT_BITS) // below, _LARGEST)
    return min((c * rows * rows * times * times << 2 * WEIGHT_BITS) // (below * below), _LARGEST)


def l1(measurement: Measurement, bounds: Bounds, groups: int | None, neighbours: Neighbours, norm: Norm) -> int:
    """The l1 sensitivity of a clipped measurement in its steps of 2^-f.

    norm: that of the clipping. groups: None is allowed for "l1" only.

    >>> l1(Measurement(MeasurementKind.ROWS), Bounds(3, 2), 18, "add_remove", "l1") // 2**16
    6
    """
    if norm == "l2":
        assert groups is not None
        square = groups * l2_squared(measurement, bounds, groups, neighbours, norm)
        return math.isqrt(square - 1) + 1 if square else 0  # a constant's centred sum never moves
    (p, q), (c, rows) = sizes(measurement), _limits(measurement, bounds, groups)
    reach = c * rows << fineness(measurement)
    if neighbours == "add_remove":
        return reach * max(p, q)
    return reach * (p + q if groups == 1 else 2 * max(p, q))


def l2_squared(measurement: Measurement, bounds: Bounds, groups: int | None, neighbours: Neighbours, norm: Norm) -> int:
    """The square of the l2 sensitivity of a clipped measurement in its steps of 2^-f.

    >>> l2_squared(Measurement(MeasurementKind.ROWS), Bounds(3, 2), 18, "add_remove", "l2") // 4**16
    12
    """
    if norm == "l1":
        reached = l1(measurement, bounds, groups, neighbours, norm)
        return reached * reached
    (p, q), (c, rows) = sizes(measurement), _limits(measurement, bounds, groups)
    reach = c * rows * rows << 2 * fineness(measurement)
    if neighbours == "add_remove":
        return reach * max(p * p, q * q)
    return reach * ((p + q) * (p + q) if groups == 1 else 2 * (p * p + q * q))


def _limits(measurement: Measurement, bounds: Bounds, groups: int | None) -> tuple[int, int]:
    """C and R."""
    c = bounds.groups if groups is None else min(bounds.groups, groups)
    return c, 1 if measurement.counting is MeasurementKind.UNITS else bounds.rows
