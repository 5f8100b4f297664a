"""An answer that is within a share of itself: precision is bought step by step until the noisy answer is good enough.

`within="10 %", at_most=epsilon` reserves the rho of `at_most` and draws at rho_1 = cap / 2^31, looks, doubles the
precision with a further independent draw, looks, ... The draws are combined by inverse variance
(`hubbub.tables.estimates.combine`), so that after a total of rho the answer is as good as one asked at rho. For
Gaussian noise, whose precision comes in independent increments, that is what the Brownian mechanism comes to
(Whitehouse, Ramdas, Rogers, Wu 2022).

Privacy. Every draw is a discrete Gaussian of its own rho, yielded to the door's filter before it is drawn; which comes
next depends on released values alone, and the sum stays within what was reserved (Whitehouse, Ramdas, Rogers, Wu 2023,
Theorem 1). What was not used comes back: how much that is, is a function of releases.

Stopping. Every group of every aggregate is looked at: its 95 % half-width is to be at most the share of its estimate,
or, with a floor `at_least`, the estimate and its half-width at most the floor. Without a floor an empty group runs to
the cap.

Coverage. One stops sooner where noise makes the estimate large, so nominal intervals hold less often than they say:
.931 at 95 %, at worst over the size N. Intervals after stopping are therefore computed at 1 - (1 - level) / 1.5
(`tests/test_looks.py` finds the worst N).

Sums of discrete Gaussians are none: "the finest noise and more noise on top" would not be charged at the coarse rho.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from hubbub.accounting import ZCDP, Event
from hubbub.accounting.amounts import ratio
from hubbub.errors import InternalError, QueryError
from hubbub.remedies import GiveOptions, LeaveOut, UseDelta
from hubbub.tables.aggregate_query import Aggregate
from hubbub.tables.aggregates import Listed
from hubbub.tables.draw_release import price_of
from hubbub.tables.estimates import Estimates, combine, read
from hubbub.tables.plan import GROUPS_GIVEN, Plan
from hubbub.tables.price import Price, Spend, make_price

__all__ = ["Looks", "combined", "cost_of_steps", "refuse_looks"]

STEPS: Final = 32
"""The first step costs 2^-31 of the cap: a count of a million is within 10 % for about so little."""

LEVEL: Final = 0.95


@dataclass(frozen=True)
class Looks:
    """What is bought step by step. share: of each estimate. at_least: the floor, 0 for none. spend: the cap, a rho."""

    plans: tuple[Plan, ...]
    spend: Spend
    share: Fraction
    at_least: float = 0.0
    weights: Mapping[Aggregate, int | Fraction] | None = field(default=None, hash=False)

    @property
    def event(self) -> Event:
        """What is reserved."""
        return ZCDP(self.spend.amount)

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """Of each step: the first, then always as much again as all before it. Fewer, where noise would not fit."""
        for steps in range(STEPS, 0, -1):
            first = self.spend.amount / 2 ** (steps - 1)
            amounts = [first, *(first * 2**k for k in range(steps - 1))]
            try:
                return tuple(make_price(self.plans, Spend(rho=a), weights=self.weights) for a in amounts)
            except QueryError:
                if steps == 1:
                    raise
        raise InternalError("a question without a step")

    def met(self, estimates: Sequence[Estimates]) -> bool:
        """Whether every estimate is as good as was asked."""
        return all(self._is_met(one, a) for one in estimates for a in one.plan.question.aggregates)

    def _is_met(self, estimates: Estimates, aggregate: Aggregate) -> bool:
        reach = estimates.half_widths(aggregate, LEVEL)
        size = np.abs(np.asarray(estimates.values(aggregate), np.float64))
        small = (size <= self.at_least) & (reach <= self.at_least)
        return bool((small | (reach <= float(self.share) * size)).all())


def combined(plans: Sequence[Plan], drawn: Sequence[Mapping[str, Any]]) -> tuple[Estimates, ...]:
    """The estimates of all steps together, plan by plan."""
    steps = [read(price_of(plans, payload), payload) for payload in drawn]
    return tuple(combine(of_plan) for of_plan in zip(*steps, strict=True))


def cost_of_steps(cap: Fraction, contents: Mapping[str, Any]) -> Fraction:
    """The rho of the steps that a stored answer says it was drawn in, where those are steps that `Looks` takes.

    The first is a power of two below the cap, and each other one as much as all before it; the parts of a step share
    what it cost, so that the answer is no more exact than its cost.

    Raises ValueError for any others.
    """
    amounts = [ratio(step["spend"]["rho"]) for step in contents["looks"]]
    shares = [[ratio(share) for share in step["shares"]] for step in contents["looks"]]
    whole = [cap / 2**k for k in range(STEPS)]
    doubling = [amounts[0], *(amounts[0] * 2**k for k in range(len(amounts) - 1))]
    if amounts[0] not in whole or amounts != doubling or sum(amounts) > cap:
        raise ValueError("no steps of this kind")
    if any(min(each) <= 0 or sum(each) > 1 for each in shares):
        raise ValueError("more was drawn than was charged")
    return sum(amounts, Fraction(0))


_WIDTH: Final = GiveOptions(("within",), (25,), instead=("at_least",))
_AT_EPSILON: Final = GiveOptions(("epsilon",), instead=("within", "at_most", "at_least"))


def refuse_looks(plans: Sequence[Plan], spend: Spend, *, staged: bool) -> None:
    """Raises QueryError where precision cannot be bought step by step, with the way out."""
    width = f"Give the half-width itself, as in {_WIDTH.in_python()}"
    if spend.pure:
        raise QueryError(
            "within= a share of the answer is bought in steps of Gaussian noise: averages of Laplace draws lose. Use a "
            f"budget with delta, as in hb.Budget(epsilon=3, delta=1e-6), without noise='laplace'. {width}.",
            remedy=(_WIDTH, UseDelta(), LeaveOut(("noise",))),
        )
    if any(plan.private_keys for plan in plans):
        raise QueryError(
            "within= a share of the answer needs the same groups at every step, and here they are found privately. "
            f"Declare the groups, or give {GROUPS_GIVEN.in_python()}.",
            remedy=GROUPS_GIVEN,
        )
    listed = [
        a.function.names.sql for plan in plans for a in plan.question.aggregates if isinstance(a.function, Listed)
    ]
    if listed:
        raise QueryError(
            f"within= a share of the answer is for counts, sums and what is made of them; {listed[0]} is drawn whole, "
            "and two draws of it do not add up to a better one. Ask for it by itself, or at an epsilon: "
            f"{_AT_EPSILON.in_python()}.",
            remedy=_AT_EPSILON,
        )
    if staged:
        raise QueryError(
            "within= a share of the answer is for questions whose private parts do not read another's release: drawn "
            f"anew, that would make them other questions. Ask at an epsilon: {_AT_EPSILON.in_python()}.",
            remedy=_AT_EPSILON,
        )
