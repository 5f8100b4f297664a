"""What bounding leaves out of an answer, in words, from a plan alone.

An interval holds the *bounded* truth: a unit counts with at most R rows in each of C groups, and what is beyond is not
in the answer, nor in its error bar. How much that is depends on the rows; that it may be something follows from the
limits. Nor does an interval hold the noise of another answer, with which the rows are compared or joined: it is of the
rows that stand that comparison.
"""

from __future__ import annotations

import math
from typing import Final

from hubbub.tables.measure import Measurement, MeasurementKind, column_to_find
from hubbub.tables.plan import Plan
from hubbub.tables.relations import leaves

__all__ = ["counted", "left_out"]


def left_out(plan: Plan) -> str | None:
    """The sentence that stands under an answer; None where all of every unit is in it, and nothing else is missing."""
    limit = _limit(plan)
    if any(leaf.released for leaf in leaves(plan.question.relation)):
        noise = "the noise of the answer that rows are compared with"
        return f"{noise} is not in the ±" if limit is None else f"bounded: {limit}; {_LEFT_OUT}, nor is {noise}"
    return None if limit is None else f"bounded: {limit}; {_LEFT_OUT}"


_LEFT_OUT: Final = "what that leaves out is not in the ±"


def _limit(plan: Plan) -> str | None:
    """How much counts of one unit; None where that is all."""
    if plan.one_row:
        return None
    rows = [m for m in plan.measurements if m.counting is not MeasurementKind.UNITS and not m.cap]
    sums = [m for m in plan.measurements if m.cap]
    if plan.clipping:
        return "; ".join(counted(plan))
    if sums:
        limit = " and ".join([*([_limits(plan)] if rows else []), *(_sum(plan, m) for m in sums)])
        return f"at most {limit} of one {plan.question.unit}"
    if rows:
        return f"at most {_limits(plan)} of one {plan.question.unit}"
    if plan.keys and (plan.group_count or math.inf) > plan.bounds.groups:
        return f"at most {_many(plan.bounds.groups, 'group')} of one {plan.question.unit}"
    return None


def counted(plan: Plan) -> list[str]:
    """How much one unit counts, and what is done with more: a part of a sentence for each sort of measurement."""
    clipped = [m for m in plan.measurements if plan.clips(m)]
    rows, groups, said, unit = plan.bounds.rows, plan.bounds.groups, list[str](), plan.question.unit
    if any(not m.alone for m in clipped):
        most = f"{groups * rows:,}" if plan.norm == "l1" else f"{math.sqrt(groups) * rows:,.4g}"
        said.append(
            f"one {unit} counts in all its groups, its rows weighted down to an {plan.norm} norm of at most {most}"
        )
    if any(m.alone for m in clipped):
        said.append(f"the sums of one {unit} are clipped to the {plan.norm} norm of {_limits(plan)}")
    sums = [m for m in plan.measurements if m.cap]
    if sums:
        said.append(f"one {unit} counts with at most {' and '.join(_sum(plan, m) for m in sums)}")
    if len(clipped) + len(sums) < len(plan.measurements):
        said.append(f"one {unit} counts with at most {_limits(plan)}")
    return said


def _sum(plan: Plan, measurement: Measurement) -> str:
    """A unit's clipped sum."""
    column = (column_to_find(measurement.values[0].argument, plan.declared) or "").partition(".")[2]
    most = float(measurement.cap * measurement.step)
    return f"a sum of {column} of {most:,.12g}" + _each(plan)


def _limits(plan: Plan) -> str:
    return _many(plan.bounds.rows, "row") + _each(plan)


def _each(plan: Plan) -> str:
    return f" in each of {_many(plan.bounds.groups, 'group')}" if plan.keys else ""


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
