"""From plans and an amount to exact noise and the event that is charged. `check` stops here.

The parts of all plans of a statement (`hubbub.tables.parts`) share one amount; their shares are chosen by predicted
error (`hubbub.tables.split`) and sum to exactly 1.

Sums. A part of share x gets the noise that `hubbub.mechanisms.calibrated` calibrates to its joint sensitivity and x of
the amount: discrete Laplace noise for an epsilon, discrete Gaussian noise for a rho. So the parts cost exactly the
amount, by basic composition.

What looks at single values (quantiles) is drawn by mechanisms of its own, which its family prices
(`hubbub.tables.aggregates`): for a unit in at most C groups with at most R rows in each.

Groups found privately (`hubbub.mechanisms.GroupThreshold`): delta is divided by the number of plans with such keys. A
group of one unit is shown with probability p <= delta / C, so delta_q = 1 - (1 - p)^C <= delta. Under replace a unit
can leave C groups and enter C others: twice C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from hubbub.accounting import ZCDP, ApproxDP, Composed, Event, cost
from hubbub.errors import InternalError, PolicyError, QueryError
from hubbub.mechanisms.calibration import Noise, Spend, calibrated
from hubbub.mechanisms.groups import GroupThreshold
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.noise import MAX_SCALE, DiscreteLaplace
from hubbub.remedies import GiveOptions, UseDelta
from hubbub.tables.aggregates.base import Aggregate, Computed, Listed, Mechanisms, OwnPart, Quantity, Reach
from hubbub.tables.aggregates.quantile import epsilon_of_rho
from hubbub.tables.aggregates.top_place import places_asked, worth
from hubbub.tables.expressions import Literal
from hubbub.tables.measure import Measurement, MeasurementKind, alone
from hubbub.tables.parts import (
    Choice,
    Part,
    Selection,
    Strategy,
    Sums,
    build,
    drawn_in,
    options,
)
from hubbub.tables.plan import Plan
from hubbub.tables.split import best, least

__all__ = ["Noise", "Price", "PricedPart", "Spend", "assemble", "make_price"]

_SAME = Literal(None)

Scenes: TypeAlias = Sequence[Mapping[Quantity, Fraction]]
"""How an aggregate moves with each quantity, at a few typical places (`Computed.gradients`)."""


@dataclass(frozen=True)
class PricedPart:
    """A part of a plan (by its position) with its share of the amount and what draws it."""

    plan: int
    part: Part
    share: Fraction
    amount: Fraction
    draws: Noise | Mechanisms | GroupThreshold | UnknownTopK
    event: Event

    @property
    def note(self) -> str:
        """What an answer says of its error, where it has no interval."""
        if isinstance(self.draws, UnknownTopK):
            assert isinstance(self.part, Selection)
            return worth(self.draws, self.part.measurement.counting)
        return self.draws.note if isinstance(self.draws, Mechanisms) else ""

    @property
    def noise(self) -> Noise:
        """The law of the noise on a vector."""
        if isinstance(self.draws, GroupThreshold):
            return self.draws.noise
        if isinstance(self.draws, Mechanisms | UnknownTopK):
            raise InternalError("a part with mechanisms of its own has no noise on a vector")
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
        return self._of_plans.get(plan, ())

    @cached_property
    def _of_plans(self) -> dict[int, tuple[PricedPart, ...]]:
        parts: dict[int, list[PricedPart]] = {}
        for part in self.parts:
            parts.setdefault(part.plan, []).append(part)
        return {plan: tuple(own) for plan, own in parts.items()}

    def own(self, plan: int, aggregate: Aggregate) -> Mechanisms:
        """The mechanisms that draw a listed aggregate of one plan."""
        measured, function = self.plans[plan].measurement_of(aggregate), aggregate.function
        for priced in self.of_plan(plan):
            if isinstance(priced.draws, Mechanisms) and drawn_in(function, measured, priced.part):
                return priced.draws
        raise InternalError("no part of this aggregate was priced")


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
        scenes = {a: _scenes(a, plan.measurement_of(a)) for a in aggregates}
        norms = _norms(plan, scenes, power)
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


def _scenes(aggregate: Aggregate, measured: Sequence[Measurement]) -> Scenes:
    """How an aggregate moves with its quantities; a listed one has none."""
    function = aggregate.function
    return function.gradients(measured) if isinstance(function, Computed) else []


def _norms(plan: Plan, scenes: Mapping[Aggregate, Scenes], power: int) -> dict[Aggregate, Fraction]:
    """The least error that each aggregate alone could have, worked out once for each form."""
    known: dict[object, Fraction] = {}
    norms = {}
    for a, own in scenes.items():
        form = a if isinstance(a.function, Listed) else (a.function, _form(plan, plan.measurement_of(a)))
        if form not in known:
            known[form] = _best_of(plan, {a: own}, power, {}, {})[2]
        norms[a] = known[form]
    return norms


def _form(plan: Plan, measured: Sequence[Measurement]) -> tuple[object, ...]:
    """Measurements without the names of columns: those of one form have parts of one sensitivity.

    Whether an expression is another's or a sum is measured alone stays seen; which expression it is does not.
    """
    numbers: dict[object, int] = {}
    form: list[object] = []
    for m in measured:
        argument = numbers.setdefault(m.argument, len(numbers))
        values = tuple(replace(v, argument=_SAME) for v in m.values)
        places = tuple(numbers.setdefault(v.argument, len(numbers)) for v in m.values)
        own = m.counting is MeasurementKind.SUM and not m.cap and plan.measures(alone(m))
        form.append((m.counting, argument, values, places, m.shift, m.centre, m.alone, m.cap, own))
    return tuple(form)


def _best_of(
    plan: Plan,
    scenes: Mapping[Aggregate, Scenes],
    power: int,
    norms: Mapping[Aggregate, Fraction],
    weights: Mapping[Aggregate, int | Fraction],
) -> tuple[Strategy, list[Fraction], Fraction]:
    """The strategy of the least predicted error, the cost c_i of each of its parts, and that error."""
    cheapest: tuple[Strategy, list[Fraction], Fraction] | None = None
    aggregates = tuple(scenes)
    for choices in options(plan, aggregates, pairs=power == 2):
        strategy = build(plan, aggregates, choices)
        costs = _costs(plan, scenes, strategy, power, norms, weights)
        error = least(costs, power)
        if cheapest is None or error < cheapest[2]:
            cheapest = strategy, costs, error
    assert cheapest is not None
    return cheapest


def _costs(
    plan: Plan,
    scenes: Mapping[Aggregate, Scenes],
    strategy: Strategy,
    power: int,
    norms: Mapping[Aggregate, Fraction],
    weights: Mapping[Aggregate, int | Fraction],
) -> list[Fraction]:
    costs = [Fraction(0)] * len(strategy.parts)
    for aggregate, places in scenes.items():
        weight = Fraction(weights.get(aggregate, 1)) / (norms.get(aggregate, Fraction(1)) or 1) / max(1, len(places))
        squares: dict[int, Fraction] = {}
        for scene in places:
            moved: dict[tuple[int, int], Fraction] = {}
            for quantity, slope in scene.items():
                for part, vector, coefficient in strategy.recipes[quantity]:
                    step, before = slope * coefficient, moved.get((part, vector))
                    moved[part, vector] = step if before is None else before + step
            for (part, _), slope in moved.items():
                square = slope * slope
                squares[part] = squares[part] + square if part in squares else square
        for part, square in squares.items():
            costs[part] += weight * square
    costs = [cost * _variance(plan, part, power) for cost, part in zip(costs, strategy.parts, strict=True)]
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
            f"that a unit is in it. Declare the groups, or use a budget with delta, as in {UseDelta().in_python()}.",
            remedy=UseDelta(),
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
        asked = places_asked(plan.question.aggregates, private=True)
        if asked is not None:
            return _priced_places(at, plan, part, asked[0], share, spend, delta)
        groups = _touched(plan)
        if spend.pure:
            threshold = GroupThreshold(delta=delta, groups=groups, epsilon=amount)
        else:
            threshold = GroupThreshold(delta=delta, groups=groups, rho=amount)
        _checked(threshold.noise)
        return PricedPart(at, part, share, amount, threshold, threshold.loss)
    if isinstance(part, OwnPart):
        count, bounds = plan.group_count, plan.bounds
        c = bounds.groups if count is None else min(bounds.groups, count)
        draws = part.priced(Reach(c, bounds.rows, plan.neighbours), amount, pure=spend.pure)
        return PricedPart(at, part, share, amount, draws, draws.event)
    mechanism = calibrated(spend=spend.part(share), l1=part.l1, l2_squared=part.l2_squared)
    return PricedPart(at, part, share, amount, _checked(mechanism.law), mechanism.event)


def _priced_places(
    at: int, plan: Plan, part: Selection, k: int, share: Fraction, spend: Spend, delta: Fraction
) -> PricedPart:
    """k choices among the groups there are: at most C of one unit, whose counts of units move by 1, of rows by R."""
    amount = share * spend.amount
    by_rows = part.measurement.counting is MeasurementKind.ROWS
    mechanism = UnknownTopK(
        k,
        epsilon=amount / k if spend.pure else epsilon_of_rho(8 * amount / k),
        delta=delta,
        items=plan.bounds.groups,
        sensitivity=plan.bounds.rows if by_rows else 1,
        monotone=plan.neighbours == "add_remove",
    )
    event = mechanism.loss if spend.pure else Composed((ZCDP(amount), ApproxDP(0, delta)))
    return PricedPart(at, part, share, amount, mechanism, event)


def _checked(noise: Noise) -> Noise:
    size = noise.scale**2 if isinstance(noise, DiscreteLaplace) else noise.sigma2
    if size > MAX_SCALE**2:
        raise QueryError(
            f"at this epsilon the noise would not fit 64-bit integers (scale {float(size) ** 0.5:.3g}, at most "
            f"{float(MAX_SCALE):.3g}). Ask with a larger one, epsilon=..., or declare smaller limits or bounds.",
            remedy=GiveOptions(("epsilon",)),
        )
    return noise
