"""What refining an answer would do to its intervals, told before it is charged.

The second draw is put in the place of the first in all but its scales: its values are those that were released, so that
nothing here knows more than the release does. The widths that follow are those of the combined answer up to what the
values themselves decide (a mean's interval depends on the noisy count it is divided by).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hubbub.answer.evaluate import EvaluatedStatement
from hubbub.answer.release import Refinement, Release
from hubbub.session.check import LEVEL
from hubbub.tables.aggregates import Listed
from hubbub.tables.estimates import Estimates, Linear, combine

__all__ = ["refinement"]

_SAME = 1e-6
"""Widths that differ by less, relatively, are the same."""


def refinement(
    answered: EvaluatedStatement, scales: Sequence[Sequence[Estimates]], *, ranks: Sequence[Mapping[str, float]]
) -> Refinement:
    """How an answer's widths would change with a second draw of these scales; its cost is left to the caller.

    ranks: by how many ranks each quantile of the answer is off, now and then.
    """
    then = tuple(
        tuple(combine([first, _in_place_of(first, second)]) for first, second in zip(a, b, strict=True))
        for a, b in zip(answered.estimates, scales, strict=True)
    )
    refined = EvaluatedStatement(answered.statement, then, answered.outer, answered.bits)
    before, after = (_widths(a) for a in (answered, refined))
    columns = [
        (name, ranks[0][name], ranks[1][name], "ranks")
        if name in ranks[0]
        else (name, width, after.get(name, width), "")
        for name, width in before.items()
    ]
    narrower, wider = _compared(answered.estimates, then)
    better = narrower or any(ranks[1][name] < now * (1 - _SAME) for name, now in ranks[0].items())
    return Refinement(Fraction(0), Fraction(0), tuple(columns), better and not wider, fits=False)


def _in_place_of(first: Estimates, scales: Estimates) -> Estimates:
    """A draw with other noise that happened to say the same."""
    quantities = {
        quantity: Linear(first.quantities[quantity].values, linear.terms)
        for quantity, linear in scales.quantities.items()
        if quantity in first.quantities
    }
    return replace(scales, groups=first.groups, quantities=quantities, own=first.own)


def _widths(answered: EvaluatedStatement) -> dict[str, float]:
    """The middle half-width of each column; of no rows, none."""
    shown = Release(Fraction(0), False, "", {}, _answered=answered).error.half_widths(LEVEL)
    return {name: float(np.nanmedian(w)) for name, w in shown.items() if not np.isnan(np.array(w, float)).all()}


def _compared(now: Sequence[Sequence[Estimates]], then: Sequence[Sequence[Estimates]]) -> tuple[bool, bool]:
    """Whether any group of any aggregate has a narrower interval, and whether any has a wider one."""
    narrower = wider = False
    for before, after in (
        (a, b) for of_a, of_b in zip(now, then, strict=True) for a, b in zip(of_a, of_b, strict=True)
    ):
        for aggregate in before.plan.question.aggregates:
            if not isinstance(aggregate.function, Listed):
                a, b = before.half_widths(aggregate, LEVEL), after.half_widths(aggregate, LEVEL)
                narrower |= bool((b < a * (1 - _SAME)).any())
                wider |= bool((b > a * (1 + _SAME)).any())
    return narrower, wider
