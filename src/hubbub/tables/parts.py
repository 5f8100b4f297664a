"""The ways to release what a question's aggregates need: which vectors get noise, and what follows from them.

A *quantity* is a vector that aggregates are computed from: a measurement, or a `Total`, the sum before its centre c is
taken off (total = sum + c count). A *part* is released as one: vectors of integers with one joint sensitivity and
independent noise of one law, a table of quantiles, or the choice of groups. A *strategy* is a list of parts and, for
each quantity, the linear combination of released vectors that estimates it.

For the values x of one argument, on steps floor .. ceiling with width w, there are up to three ways:

- centred: the centred sum, beside a count; - total: the total, alone or beside a count;
- pair: sum(x - floor) and sum(ceiling - x), of joint l1 sensitivity w per row, because the two add up to w; their
  total is w times the count (Kulesza, Suresh, Wang 2023, "Mean estimation in the add-remove model of differential
  privacy"). Where rows with NULL are counted too, w times their number goes beside them at no further cost: a row adds
  w in all, wherever it goes. Replace: two rows can differ by 2 w, so C R w becomes 2 C R w.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from hubbub.errors import InternalError
from hubbub.tables.aggregates.base import Aggregate, Function, Listed, OwnPart, Quantity, Total, quantities_of
from hubbub.tables.aggregates.top_place import places_asked
from hubbub.tables.measure import Measurement, MeasurementKind, Value, alone, uncentred
from hubbub.tables.plan import Plan

__all__ = [
    "Choice",
    "Part",
    "Selection",
    "Strategy",
    "Sums",
    "build",
    "drawn_in",
    "options",
]

Choice: TypeAlias = Literal["centred", "total", "pair"]

MOST_COMBINATIONS = 27


@dataclass(frozen=True)
class Sums:
    """Vectors released with noise of one law. Each is a combination of measurements with whole coefficients.

    l1, l2_squared: the joint sensitivity. name: what a receipt calls it. step: what 1 stands for.
    """

    vectors: tuple[tuple[tuple[Measurement, int], ...], ...]
    l1: int
    l2_squared: int
    name: str
    step: Fraction


@dataclass(frozen=True)
class Selection:
    """The groups whose noisy count of units passes a threshold, with that count; or the most frequent ones."""

    measurement: Measurement


Part: TypeAlias = Sums | OwnPart | Selection
Recipe: TypeAlias = tuple[tuple[int, int, Fraction], ...]
"""Terms of a linear combination: the part, its vector, the coefficient."""


@dataclass(frozen=True)
class Strategy:
    """The parts of one plan, and how each quantity follows from them. choices: by argument, in canonical order."""

    choices: tuple[Choice, ...]
    parts: tuple[Part, ...]
    recipes: Mapping[Quantity, Recipe]


@dataclass(frozen=True)
class _Family:
    """The sums of one argument: what is wanted of them, and the count they go with."""

    total: Measurement
    count: Measurement
    wants_total: bool
    wants_sum: bool

    @property
    def value(self) -> Value:
        return self.total.values[0]


def options(plan: Plan, aggregates: Sequence[Aggregate], *, pairs: bool) -> list[tuple[Choice, ...]]:
    """The choices worth comparing, in a fixed order. pairs: whether noise is Laplace, for which pairs can be better."""
    families = _families(plan, aggregates)
    counts = _direct(plan, aggregates)
    each: list[list[Choice]] = []
    for family in families:
        alone = bool(family.total.cap) or (not family.wants_sum and family.count not in counts)
        ways: list[Choice] = ["total"] if alone else ["centred"]
        if not alone and family.value.centre:
            ways.append("total")
        if not alone and pairs and family.value.floor < family.value.ceiling:
            ways.append("pair")
        each.append(ways)
    if _product(each) <= MOST_COMBINATIONS:
        return list(itertools.product(*each))
    names: tuple[Choice, ...] = ("centred", "total", "pair")
    return [tuple(name if name in ways else ways[0] for ways in each) for name in names]


def _product(each: Sequence[Sequence[object]]) -> int:
    product = 1
    for ways in each:
        product *= len(ways)
    return product


def _families(plan: Plan, aggregates: Sequence[Aggregate]) -> list[_Family]:
    families: dict[Measurement, _Family] = {}
    for aggregate in aggregates:
        parts = plan.measurement_of(aggregate)
        count = next((m for m in parts if m.counting in (MeasurementKind.VALUES, MeasurementKind.ROWS)), None)
        for total in (m for m in parts if m.counting is MeasurementKind.SUM):
            if total.cap:
                count = total  # its centre is 0, so no count goes with it
            if count is None:
                raise InternalError("a sum without its count")
            old = families.get(total, _Family(total, count, False, False))
            quantities = quantities_of(aggregate, parts)
            in_all, centred = Total(total) in quantities, total in quantities
            families[total] = _Family(total, old.count, old.wants_total or in_all, old.wants_sum or centred)
    by_measured = {m: family for total, family in families.items() for m in (total, alone(total))}
    return [by_measured[m] for m in plan.in_order(by_measured)]


def _direct(plan: Plan, aggregates: Sequence[Aggregate]) -> set[Quantity]:
    """The quantities that aggregates are made of, less totals."""
    wanted = (q for a in aggregates for q in quantities_of(a, plan.measurement_of(a)))
    return {q for q in wanted if not isinstance(q, Total)}


def build(plan: Plan, aggregates: Sequence[Aggregate], choices: Sequence[Choice]) -> Strategy:
    """The strategy of some choices, one for each argument that is summed."""
    families = _families(plan, aggregates)
    if len(families) != len(choices):
        raise InternalError("one choice for each argument that is summed")
    direct = _direct(plan, aggregates)
    builder = _Builder(plan)
    if plan.private_keys:
        asked = places_asked(aggregates, private=True)
        builder.select(Measurement(MeasurementKind.UNITS if asked is None else asked[1]))
    for family, choice in zip(families, choices, strict=True):
        if choice == "pair":
            builder.pair(family, with_nulls=Measurement(MeasurementKind.ROWS) in direct)
    for family, choice in zip(families, choices, strict=True):
        if choice != "pair":
            builder.single(family, choice)
    listed = {m for a in aggregates if isinstance(a.function, Listed) for m in plan.measurement_of(a)}
    for m in plan.in_order({m for m in direct if not isinstance(m, Total)} | listed):
        if m.counting is MeasurementKind.QUANTILES:
            builder.own(m, aggregates)
        elif m in direct and m.counting is not MeasurementKind.SUM:
            builder.plain(m)
    return Strategy(tuple(choices), tuple(builder.parts), builder.recipes)


class _Builder:
    """Collects parts and recipes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.parts: list[Part] = []
        self.recipes: dict[Quantity, Recipe] = {}

    def select(self, counts: Measurement) -> None:
        self.parts.append(Selection(counts))
        self.recipes[counts] = ((0, 0, Fraction(1)),)

    def plain(self, m: Measurement) -> Recipe:
        """A measurement as it is, once."""
        if m not in self.recipes:
            self.recipes[m] = self._add((((m, 1)),), m, m.counting.value)
        return self.recipes[m]

    def single(self, family: _Family, choice: Choice) -> None:
        """The centred sum or the total, and what follows of the other with the count."""
        centre, total = family.value.centre, family.total
        if choice == "centred":
            self.plain(total)
            if family.wants_total:
                self.recipes[Total(total)] = _plus(self.recipes[total], self.plain(family.count), Fraction(centre))
            return
        own = alone(total)
        if self.plan.measures(own):
            self.recipes[Total(total)] = self._add(((own, 1),), own, "sum")
            return
        vector = ((total, 1), (family.count, centre)) if centre else ((total, 1),)
        self.recipes[Total(total)] = self._add(vector, uncentred(total), "sum")
        if family.wants_sum:
            self.recipes[total] = _plus(self.recipes[Total(total)], self.plain(family.count), Fraction(-centre))

    def pair(self, family: _Family, *, with_nulls: bool) -> None:
        """sum(x - floor), sum(ceiling - x), and w times the rows with NULL where rows are counted."""
        total, count, value = family.total, family.count, family.value
        w, rows = value.ceiling - value.floor, Measurement(MeasurementKind.ROWS)
        vectors = [((total, 1), (count, -value.low)), ((total, -1), (count, value.high))]
        with_nulls = with_nulls and count != rows and rows not in self.recipes
        if with_nulls:
            vectors.append(((rows, w), (count, -w)))
        bounds, groups, fine = self.plan.bounds, self.plan.group_count, 2 ** self.plan.fineness(total)
        c = bounds.groups if groups is None else min(bounds.groups, groups)
        steps = (1 if self.plan.neighbours == "add_remove" else 2) * c
        reach = bounds.rows * w * fine
        # Under replace a shared group moves by (R w, R w) in two vectors, two others by R w each: l2 squared agrees.
        # Of a clipped norm in l1 all may stand in one group.
        squared = (steps * reach) ** 2 if self.plan.clips(total) else steps * reach**2
        part = Sums(tuple(vectors), steps * reach, squared, "pair of sums", total.step / fine)
        at = len(self.parts)
        self.parts.append(part)
        each = Fraction(1, w * fine)
        of_count: Recipe = ((at, 0, each), (at, 1, each))
        self.recipes.setdefault(count, of_count)
        of_sum: Recipe = ((at, 0, Fraction(1, fine)),)
        self.recipes[total] = _plus(of_sum, of_count, Fraction(value.low))
        self.recipes[Total(total)] = _plus(of_sum, of_count, Fraction(value.floor))
        if with_nulls:
            self.recipes[rows] = (*of_count, (at, 2, each))

    def own(self, m: Measurement, aggregates: Sequence[Aggregate]) -> None:
        """The parts of aggregates that look at single values of a measurement, one for each kind of part."""
        kinds: dict[str, tuple[Listed, list[Aggregate]]] = {}
        for a in aggregates:
            if isinstance(a.function, Listed) and self.plan.measurement_of(a) == (m,):
                kinds.setdefault(a.function.part_type.__name__, (a.function, []))[1].append(a)
        self.parts += [function.part(m, asked, self.plan.declared) for _, (function, asked) in sorted(kinds.items())]

    def _add(self, vector: tuple[tuple[Measurement, int], ...], like: Measurement, name: str) -> Recipe:
        """A vector of its own. like: a measurement of the same sensitivity and steps."""
        fine = 2 ** self.plan.fineness(like)
        # A vector that is 0 for every table (SUM(0)) still gets noise, so that no answer is a special case.
        reach = max(1, self.plan.sensitivity(like)), max(1, self.plan.squared_sensitivity(like))
        self.parts.append(Sums((vector,), *reach, name, like.step / fine))
        return ((len(self.parts) - 1, 0, Fraction(1, fine)),)


def drawn_in(function: Function, measured: Sequence[Measurement], part: Part) -> bool:
    """Whether an aggregate of this function, with these measurements, is drawn in a part."""
    if not isinstance(function, Listed) or not isinstance(part, OwnPart):
        return False
    return type(part) is function.part_type and part.measurement == measured[0]


def _plus(first: Recipe, second: Recipe, times: Fraction) -> Recipe:
    """first + times * second, terms of one vector joined."""
    total: dict[tuple[int, int], Fraction] = {}
    for terms, factor in ((first, Fraction(1)), (second, times)):
        for part, vector, coefficient in terms:
            total[part, vector] = total.get((part, vector), Fraction(0)) + factor * coefficient
    return tuple((part, vector, c) for (part, vector), c in total.items() if c)
