"""What is left, in the terms of the next question.

Under a pure budget, what is left is an epsilon. Under one with delta it is a rho and a delta for thresholds, and while
all was pure an epsilon too. People ask at an epsilon: a question asked at epsilon e with Gaussian noise costs the rho
of one (e, delta_z) release at the *data set's* own delta_z, the part of delta that pays for conversions (Canonne,
Kamath, Steinke 2020, Proposition 12). Asked alone it spends exactly e, and far more than 1/e of them fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.ledger.accounts import rho_at
from hubbub.ledger.books import Filters, Standing
from hubbub.ledger.budget import Budget, EpsilonLike, parse_epsilon

if TYPE_CHECKING:
    from hubbub.accounting import Cost

__all__ = ["Remaining", "question_cost"]


def question_cost(budget: Budget, epsilon: EpsilonLike, *, delta: Fraction | int = 0) -> Cost:
    """What a question asked at `epsilon` with Gaussian noise costs: no pure epsilon, the rho of one release, and delta.

    budget: the data set's, with delta. delta: what its thresholds take.

    Raises:
        ParameterError: epsilon is not a positive number, or the budget is pure, which no Gaussian noise fits.

    >>> question_cost(Budget(3, "1e-6"), 1).rho < question_cost(Budget(3, "1e-6"), 2).rho
    True
    """
    from hubbub.accounting import Cost

    return Cost(None, rho_at(budget, parse_epsilon(epsilon)), Fraction(delta))


@dataclass(frozen=True)
class Remaining:
    """What one more question may cost, by every account that would pay.

    epsilon: the largest with pure noise, exact for pure budgets, else rounded down to 15 decimals. rho: what is left of
    it; 0 under a pure budget. delta: what is left for thresholds. question: the largest epsilon at which one more
    question with Gaussian noise fits (`question_cost`); under a pure budget, `epsilon`.
    """

    epsilon: Fraction
    rho: Fraction
    delta: Fraction
    question: Fraction
    filters: Filters

    @classmethod
    def of(cls, budget: Budget, standings: Sequence[Standing]) -> Remaining:
        """What is left of these accounts together: of each amount the least."""
        from hubbub.accounting import PureFilter, epsilon_of_rho

        epsilon = min(standing.left for standing in standings)
        filters = tuple(spent for standing in standings for spent in standing.spent_filters)
        if budget.pure:
            return cls(epsilon, Fraction(0), Fraction(0), epsilon, filters)
        kept = [spent for spent in filters if not isinstance(spent, PureFilter)]
        rho = min(spent.left.rho for spent in kept)
        delta = min(spent.left.delta for spent in kept)
        largest = epsilon_of_rho(rho, budget.delta_conversion) if rho else Fraction(0)
        while largest and rho_at(budget, largest) > rho:  # two roundings of 15 digits lie between
            largest *= 1 - Fraction(1, 10**14)
        if any(isinstance(spent, PureFilter) for spent in filters):
            largest = Fraction(0)  # a block that was admitted by its epsilon holds pure questions only
        return cls(epsilon, rho, delta, largest, filters)

    def how_many(self, cost: Cost) -> int | None:
        """How many questions of this cost still fit, one after another; None: without end, as they cost nothing."""
        counts = [filled.how_many(cost) for filled in self.filters]
        known = [count for count in counts if count is not None]
        return min(known) if known else None
