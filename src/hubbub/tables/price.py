"""From a plan and an epsilon to exact noise scales and expected errors. `check` stops here.

Every measurement m gets a share epsilon_m of the question's epsilon and discrete Laplace noise of scale
sensitivity_m / epsilon_m on its grid: by the Laplace mechanism on integers (Ghosh, Roughgarden, Sundararajan 2009;
the l1 form of Dwork, McSherry, Nissim, Smith 2006, Theorem 3.6) that is epsilon_m-DP for the whole vector of
groups, and by basic composition the shares add up to exactly epsilon. All amounts are rationals; the sampler and the
ledger get the same ones. The shares are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting import Composed, DiscreteLaplace
from hubbub.errors import QueryError
from hubbub.noise import MAX_SCALE, DiscreteLaplace as DiscreteLaplaceNoise
from hubbub.tables.plan import Measurement, Plan

__all__ = ["Price", "Priced", "make_price"]


@dataclass(frozen=True)
class Priced:
    """A measurement with its share of the budget and its noise."""

    measurement: Measurement
    sensitivity: int
    epsilon: Fraction
    noise: DiscreteLaplaceNoise


@dataclass(frozen=True)
class Price:
    """A plan with its price. `epsilon` is exactly what is charged."""

    plan: Plan
    epsilon: Fraction
    parts: tuple[Priced, ...]

    @property
    def event(self) -> Composed:
        """What the ledger records: the noise that is really added."""
        return Composed(tuple(DiscreteLaplace(p.noise.scale, p.sensitivity) for p in self.parts))

    def part(self, measurement: Measurement) -> Priced:
        return next(p for p in self.parts if p.measurement == measurement)


def make_price(plan: Plan, epsilon: Fraction) -> Price:
    """Price a plan at `epsilon`, an exact positive rational.

    Raises QueryError where so much noise would be needed that it does not fit 64-bit integers.
    """
    share = epsilon / len(plan.measurements)
    parts = []
    for measurement in plan.measurements:
        # A vector that is 0 for every table (SUM(0)) still gets noise, so that no answer is a special case.
        bound = max(1, plan.sensitivity(measurement))
        scale = bound / share
        if scale > MAX_SCALE:
            raise QueryError(
                f"at this epsilon the noise would not fit 64-bit integers (scale {float(scale):.3g}, at most "
                f"{float(MAX_SCALE):.3g}). Ask with a larger epsilon, or declare smaller limits or bounds."
            )
        noise = DiscreteLaplaceNoise(scale)
        parts.append(Priced(measurement, bound, share, noise))
    return Price(plan, epsilon, tuple(parts))
