"""From plans and an amount to exact noise and the event that is charged. `check` stops here.

The parts of all plans of a statement (`hubbub.tables.parts`) share one amount; their shares are chosen by predicted
error (`hubbub.tables.split`) and sum to exactly 1.

Sums. A part of share x gets the noise that `hubbub.mechanisms.calibrated` calibrates to its joint sensitivity and x of
the amount: discrete Laplace noise for an epsilon, discrete Gaussian noise for a rho. So the parts cost exactly the
amount, by basic composition.

Quantiles (exponential mechanism, bounded range: epsilon-DP and epsilon^2/8-zCDP). A unit is in at most C groups, so a
part's amount is divided by C. In a group, a third goes to the estimates, which are drawn together, and a third to
each of their two brackets; a minimum or a maximum is a bound itself and takes a whole share. Under replace a unit's
rows may all move from one end to the other: that is twice the rows.

Groups found privately (`hubbub.mechanisms.GroupThreshold`): delta is divided by the number of plans with such keys. A
group of one unit is shown with probability p <= delta / C, so delta_q = 1 - (1 - p)^C <= delta. Under replace a unit
can leave C groups and enter C others: twice C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from hubbub.accounting import ZCDP, Composed, Event, Repeated, cost
from hubbub.accounting.rounding import digits_down, root_up
from hubbub.errors import InternalError, PolicyError, QueryError
from hubbub.mechanisms.calibration import Noise, Spend, calibrated
from hubbub.mechanisms.groups import GroupThreshold
from hubbub.mechanisms.quantile_bounds import QuantileBound
from hubbub.mechanisms.quantiles import QuantileMechanism
from hubbub.noise import MAX_SCALE, DiscreteLaplace
from hubbub.tables.aggregate_query import Aggregate
from hubbub.tables.measure import Measurement
from hubbub.tables.parts import (
    Choice,
    Part,
    QuantilePart,
    Quantity,
    Selection,
    Strategy,
    Sums,
    build,
    gradients,
    options,
)
from hubbub.tables.plan import Plan
from hubbub.tables.split import best, least

__all__ = ["Noise", "Price", "PricedPart", "QuantileMechanisms", "Spend", "assemble", "make_price"]

Scenes: TypeAlias = Sequence[Mapping[Quantity, Fraction]]
"""How an aggregate moves with each quantity, at a few typical places (`parts.gradients`)."""

BRACKET_LEVEL = Fraction(95, 100)
"""Brackets hold the true quantile with at least this probability; each side misses with half the rest, or less."""


@dataclass(frozen=True)
class QuantileMechanisms:
    """The mechanisms of one group's quantiles: estimates together, a bound below and above each, and the ends."""

    main: QuantileMechanism | None
    below: tuple[QuantileBound, ...]
    above: tuple[QuantileBound, ...]
    minimum: QuantileBound | None
    maximum: QuantileBound | None

    @property
    def each(self) -> tuple[QuantileBound, ...]:
        """All bounds, in the order in which they are drawn."""
        return (*self.below, *self.above, *(b for b in (self.minimum, self.maximum) if b is not None))


@dataclass(frozen=True)
class PricedPart:
    """A part of a plan (by its position) with its share of the amount and what draws it."""

    plan: int
    part: Part
    share: Fraction
    amount: Fraction
    draws: Noise | QuantileMechanisms | GroupThreshold
    event: Event

    @property
    def noise(self) -> Noise:
        """The law of the noise on a vector."""
        if isinstance(self.draws, GroupThreshold):
            return self.draws.noise
        if isinstance(self.draws, QuantileMechanisms):
            raise InternalError("a quantile has no noise on a vector")
        return self.draws


@dataclass(frozen=True)
class Price:
    """The plans of a statement with their price. What is charged is exactly `spend`."""

    plans: tuple[Plan, ...]
    spend: Spend
    strategies: tuple[Strategy, ...]
    parts: tuple[PricedPart, ...]

    @cached_property
    def event(self) -> Event:
        """What the ledger records: what is really run."""
        return Composed(tuple(p.event for p in self.parts))

    @property
    def epsilon(self) -> Fraction | None:
        """The pure epsilon that is charged; None where there is none."""
        return cost(self.event).epsilon

    @property
    def rho(self) -> Fraction:
        """The rho that is charged (together with delta)."""
        return cost(self.event).rho

    @property
    def delta(self) -> Fraction:
        """The delta that is charged for groups found privately."""
        return cost(self.event).delta

    def of_plan(self, plan: int) -> tuple[PricedPart, ...]:
        """The parts of one plan, in order."""
        return tuple(p for p in self.parts if p.plan == plan)

    def ranks(self, plan: int, measurement: Measurement) -> tuple[int, QuantilePart, QuantileMechanisms]:
        """The quantiles of one measurement: their place among the plan's parts, what was asked, what draws it."""
        for at, priced in enumerate(self.of_plan(plan)):
            if isinstance(priced.part, QuantilePart) and priced.part.of == measurement:
                assert isinstance(priced.draws, QuantileMechanisms)
                return at, priced.part, priced.draws
        raise InternalError("no quantile of this measurement was priced")


def make_price(
    plans: Sequence[Plan], spend: Spend, *, weights: Mapping[Aggregate, int | Fraction] | None = None
) -> Price:
    """Price the plans of a statement together.

    weights: how much each aggregate's relative variance counts, 1 unless said. Deterministic: declarations and
    weights decide, never rows.

    Raises PolicyError for private groups without a delta, QueryError where the noise would not fit 64-bit integers.
    """
    if not plans:
        raise InternalError("a statement without a private aggregate")
    given = weights or {}
    power = 2 if spend.pure else 1
    strategies, costs = [], []
    for plan in plans:
        aggregates = tuple(dict.fromkeys(plan.question.aggregates))
        scenes = {a: gradients(a, plan.measurement_of(a)) for a in aggregates}
        norms = {a: _best_of(plan, {a: scenes[a]}, power, {}, {})[2] for a in aggregates}
        strategy, of_parts, _ = _best_of(plan, scenes, power, norms, given)
        strategies.append(strategy)
        costs += of_parts
    return assemble(plans, spend, tuple(strategies), best(costs, power))


def strategies_of(plans: Sequence[Plan], choices: Sequence[Sequence[Choice]]) -> tuple[Strategy, ...]:
    """The strategies that were chosen for a stored release."""
    return tuple(
        build(plan, tuple(dict.fromkeys(plan.question.aggregates)), of_plan)
        for plan, of_plan in zip(plans, choices, strict=True)
    )


def _best_of(
    plan: Plan,
    scenes: Mapping[Aggregate, Scenes],
    power: int,
    norms: Mapping[Aggregate, Fraction],
    weights: Mapping[Aggregate, int | Fraction],
) -> tuple[Strategy, list[Fraction], Fraction]:
    """The strategy of the least predicted error, the cost c_i of each of its parts, and that error."""
    found: tuple[Strategy, list[Fraction], Fraction] | None = None
    aggregates = tuple(scenes)
    for choices in options(plan, aggregates, pairs=power == 2):
        strategy = build(plan, aggregates, choices)
        costs = _costs(plan, scenes, strategy, power, norms, weights)
        error = least(costs, power)
        if found is None or error < found[2]:
            found = strategy, costs, error
    assert found is not None
    return found


def _costs(
    plan: Plan,
    scenes: Mapping[Aggregate, Scenes],
    strategy: Strategy,
    power: int,
    norms: Mapping[Aggregate, Fraction],
    weights: Mapping[Aggregate, int | Fraction],
) -> list[Fraction]:
    costs = [Fraction(0)] * len(strategy.parts)
    variances = [_variance(plan, part, power) for part in strategy.parts]
    for aggregate, places in scenes.items():
        weight = Fraction(weights.get(aggregate, 1)) / (norms.get(aggregate, Fraction(1)) or 1)
        for scene in places:
            moved: dict[tuple[int, int], Fraction] = {}
            for quantity, slope in scene.items():
                for part, vector, coefficient in strategy.recipes[quantity]:
                    moved[part, vector] = moved.get((part, vector), Fraction(0)) + slope * coefficient
            for (part, _), slope in moved.items():
                costs[part] += weight / len(places) * slope**2 * variances[part]
    for at, released in enumerate(strategy.parts):
        if norms and not isinstance(released, Sums):
            # Ranks: the square of an error in ranks goes like 1 / epsilon^2, or 1 / rho. Groups: an answer needs them.
            costs[at] += 1
    return costs


def _variance(plan: Plan, part: Part, power: int) -> Fraction:
    """The variance of one vector's noise at the whole amount, up to a factor common to all parts."""
    if isinstance(part, Sums):
        return Fraction(part.l1**2 if power == 2 else part.l2_squared)
    return Fraction(_touched(plan) ** power)


def _touched(plan: Plan) -> int:
    """In how many groups one neighbouring step can change anything."""
    groups = plan.group_count
    c = plan.bounds.groups if groups is None else min(plan.bounds.groups, groups)
    return c if plan.neighbours == "add_remove" else 2 * c


def assemble(
    plans: Sequence[Plan], spend: Spend, strategies: tuple[Strategy, ...], shares: Sequence[Fraction]
) -> Price:
    """The price of given strategies at given shares, which sum to 1."""
    if sum(shares, Fraction(0)) != 1 or min(shares) <= 0:
        raise InternalError("the shares of a budget are positive and sum to 1")
    if any(plan.clipping and plan.norm != ("l1" if spend.pure else "l2") for plan in plans):
        raise InternalError("a norm is clipped that is not the noise's")
    private = sum(plan.private_keys for plan in plans)
    if private and not spend.delta:
        raise PolicyError(
            "which groups there are is private here, and showing them needs a delta: that a group exists would tell "
            "that a unit is in it. Declare the groups (hb.one_of, keys=), or use a budget with delta, as in "
            "hb.Budget(epsilon=3, delta=1e-6)."
        )
    rest = iter(shares)
    parts = []
    for at, (plan, strategy) in enumerate(zip(plans, strategies, strict=True)):
        delta = spend.delta / private if private else Fraction(0)
        parts += [_priced(at, plan, part, next(rest), spend, delta) for part in strategy.parts]
    return Price(tuple(plans), spend, strategies, tuple(parts))


def _priced(at: int, plan: Plan, part: Part, share: Fraction, spend: Spend, delta: Fraction) -> PricedPart:
    amount = share * spend.amount
    if isinstance(part, Selection):
        groups = _touched(plan)
        if spend.pure:
            threshold = GroupThreshold(delta=delta, groups=groups, epsilon=amount)
        else:
            threshold = GroupThreshold(delta=delta, groups=groups, rho=amount)
        _checked(threshold.noise)
        return PricedPart(at, part, share, amount, threshold, threshold.loss)
    if isinstance(part, QuantilePart):
        draws = _rank_draws(plan, part, amount, pure=spend.pure)
        return PricedPart(at, part, share, amount, draws, _rank_event(plan, draws, amount, pure=spend.pure))
    found = calibrated(spend=spend.part(share), l1=part.l1, l2_squared=part.l2_squared)
    return PricedPart(at, part, share, amount, _checked(found.law), found.event)


def _checked(noise: Noise) -> Noise:
    size = noise.scale**2 if isinstance(noise, DiscreteLaplace) else noise.sigma2
    if size > MAX_SCALE**2:
        raise QueryError(
            f"at this epsilon the noise would not fit 64-bit integers (scale {float(size) ** 0.5:.3g}, at most "
            f"{float(MAX_SCALE):.3g}). Ask with a larger epsilon, or declare smaller limits or bounds."
        )
    return noise


def _rank_draws(plan: Plan, part: QuantilePart, amount: Fraction, *, pure: bool) -> QuantileMechanisms:
    """The mechanisms of one group, for a part's amount (epsilon or rho)."""
    value = part.of.values[0]
    groups = plan.group_count
    c = plan.bounds.groups if groups is None else min(plan.bounds.groups, groups)
    rows = plan.bounds.rows * (1 if plan.neighbours == "add_remove" else 2)
    inner = tuple(s for s in part.shares if 0 < s < 1)
    each = amount / c / len(part.shares)

    def bound(share: Fraction, amount: Fraction, beta: Fraction, *, upper: bool) -> QuantileBound:
        epsilon = amount if pure else _epsilon_of(8 * amount)
        return QuantileBound(share, value.floor, value.ceiling, epsilon, rows, beta, upper)

    main = None
    if inner:
        rounds = len(inner).bit_length()
        whole = each * len(inner) / 3
        main = QuantileMechanism(
            shares=inner,
            lower=value.floor,
            upper=value.ceiling,
            epsilon=whole if pure else _epsilon_of(8 * rounds * whole),
            rows=rows,
        )
    beta = (1 - BRACKET_LEVEL) / 2
    return QuantileMechanisms(
        main,
        tuple(bound(s, each / 3, beta, upper=False) for s in inner),
        tuple(bound(s, each / 3, beta, upper=True) for s in inner),
        bound(Fraction(0), each, beta, upper=True) if 0 in part.shares else None,
        bound(Fraction(1), each, beta, upper=False) if 1 in part.shares else None,
    )


def _epsilon_of(square: Fraction) -> Fraction:
    """A rational below the square root, by less than 1e-14 of it."""
    return digits_down(square / root_up(square), 15)


def _rank_event(plan: Plan, draws: QuantileMechanisms, amount: Fraction, *, pure: bool) -> Event:
    """Of all groups that one unit touches. Bounded range in all; under rho the very rho is charged."""
    if not pure:
        return ZCDP(amount)
    groups = plan.group_count
    c = plan.bounds.groups if groups is None else min(plan.bounds.groups, groups)
    losses = [] if draws.main is None else [draws.main.loss]
    losses += [b.loss for b in draws.each]
    one = Composed(losses)
    return one if c == 1 else Repeated(one, c)
