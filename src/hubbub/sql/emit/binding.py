"""The texts by which an engine is asked, before a charge, whether it takes a plan: of few words, of a long plan too.

An engine binds the texts of two hundred aggregates in a third of a second, of which nearly all goes into what stands
above the rows. That holds names, whole numbers and words of ours alone: two measurements of one form (`_form`) are
bound alike there. So one text holds the rows, with every expression of the question, and one the sums of one
measurement of each form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.plan import aggregate_sql, listed_sql, placed_sql, summed
from hubbub.sql.emit.ranked import ranked_sql, ranks
from hubbub.tables.measure import Measurement
from hubbub.tables.plan import Plan

__all__ = ["binding_sql"]


def binding_sql(plan: Plan, places: Mapping[str, Place], dialect: Dialect) -> list[str]:
    """Texts that an engine takes if and only if it takes every text of a plan."""
    numbers = range(len(plan.measurements))
    texts = [listed_sql(plan, places, i, dialect) for i in numbers if not summed(plan.measurements[i])]
    ranked = [ranked_sql(plan, places, dialect)] if ranks(plan) else []
    first: dict[object, Measurement] = {}
    for measurement in filter(summed, plan.measurements):
        first.setdefault(_form(measurement), measurement)
    # Of a norm that is clipped all measurements stand in one expression; a search has one.
    if plan.search is not None or plan.clipping or len(first) == len(plan.measurements):
        return [*texts, aggregate_sql(plan, places, dialect), *ranked]
    few = replace(plan, measurements=tuple(first.values()))
    return [*texts, aggregate_sql(few, places, dialect), *(ranked or [placed_sql(plan, places, dialect)])]


def _form(measurement: Measurement) -> object:
    """What the text of a measurement above the rows depends on, beside names: types, and how long numbers are."""
    argument = measurement.argument
    values = tuple(
        (v.argument.kind, v.grid.exponent, *map(_size, (v.floor, v.ceiling, v.centre)), v.nullable, v.clock is None)
        for v in measurement.values
    )
    numbers = tuple(map(_size, (measurement.shift, measurement.centre, measurement.cap)))
    same = len(set(measurement.values)) == len(values)
    return measurement.counting, argument and argument.kind, values, numbers, measurement.alone, same


def _size(number: int) -> tuple[int, bool]:
    return number.bit_length(), number < 0
