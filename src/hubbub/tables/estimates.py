"""What a drawn release says: estimates of every aggregate and their intervals, from noisy integers and known laws.

All of it is post-processing. Each quantity (a count, a centred sum, ...) is a linear combination of released vectors,
so its error is a known combination of independent noise terms. Arrays are over the groups of the answer.

What is made of quantities (estimate, interval, prediction) stands with each aggregate (`hubbub.tables.aggregates`); all
intervals hold the bounded truth. Each noise term is discrete: intervals are half a step of every term wider, as
`hubbub.mechanisms.ratio` explains.

Counts are rounded to whole numbers, and so are the truths of those that no norm was clipped for: the error of an
estimate is then the rounded noise (`hubbub.tables.rounded`), and every group has the same half-width.

Several draws of the same plan (`combine`) are joined as the best linear unbiased estimate of all its quantities at
once. With the quantities' covariances C1 and C2 in two draws, which follow from scales alone, that is x1 + G (x2 - x1)
with G = C1 (C1 + C2)^+ (Aitken 1935; Rao 1967 for singular ones). Its variance is at most that of either draw for
*every* linear combination of quantities, hence for what an interval of a ratio looks at, too; where the errors of a
draw are uncorrelated, G is diagonal and the weights are 1 / variance.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InternalError
from hubbub.mechanisms.ratio import half_widths
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.noise import Bits, DiscreteLaplace, uniform_below
from hubbub.tables.aggregates.base import Aggregate, Listed, OwnPart, Quantity, computed, quantities_of
from hubbub.tables.aggregates.quantile import LEVEL
from hubbub.tables.columns import Scalar
from hubbub.tables.draw_release import drawn_groups
from hubbub.tables.measure import Measurement, MeasurementKind
from hubbub.tables.parts import drawn_in
from hubbub.tables.plan import Plan
from hubbub.tables.price import Noise, Price
from hubbub.tables.rounded import rounded_half_width

__all__ = ["Estimates", "combine", "read"]

Floats: TypeAlias = NDArray[np.float64]
Term: TypeAlias = Hashable

_UNIFORM = 2**32

_COUNTS = (MeasurementKind.UNITS, MeasurementKind.ROWS, MeasurementKind.VALUES)


@dataclass(frozen=True)
class Linear:
    """A noisy quantity: its values by group, and the coefficient of every noise term in its error."""

    values: Any
    terms: Mapping[Term, float]

    def plus(self, other: Linear, times: float) -> Linear:
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            terms[term] = terms.get(term, 0.0) + times * coefficient
        return Linear(self.values + times * other.values, terms)


@dataclass(frozen=True)
class Estimates:
    """What one plan's release says about each of its aggregates, group by group.

    plan: the plan; groups: its groups in order. laws: of every noise term. own: what was drawn by mechanisms of its
    own, part by part.
    """

    plan: Plan
    groups: tuple[tuple[Scalar, ...], ...]
    quantities: Mapping[Quantity, Linear]
    laws: Mapping[Term, Noise]
    own: Mapping[OwnPart, Any]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many groups the release has."""
        return len(self.groups)

    def key_places(self, key: int) -> tuple[Sequence[Scalar], NDArray[np.int64]]:
        """The values of one key, and for each group the place of its own among them."""
        domains = self.plan.domains
        if any(domain is None for domain in domains) or self.size != self.plan.group_count:
            return [group[key] for group in self.groups], np.arange(self.size)
        sizes = [len(domain or ()) for domain in domains]
        each = np.repeat(np.arange(sizes[key]), math.prod(sizes[key + 1 :]))
        return domains[key] or (), np.tile(each, math.prod(sizes[:key]))

    def values(self, aggregate: Aggregate) -> NDArray[Any]:
        """The estimates: int64 for counts, else float64; dates in days, times in microseconds since 1970-01-01."""
        function, parts = aggregate.function, self._parts(aggregate)
        if isinstance(function, Listed):
            return function.values(aggregate, *self._drawn(aggregate))
        values = computed(function).estimate(parts, self._current(aggregate))
        if function.whole:
            return np.rint(np.clip(values, -(2.0**62), 2.0**62)).astype(np.int64)
        return values

    def intervals(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """The lower and the upper ends of the intervals that hold the bounded truth with probability `level`, each."""
        function = aggregate.function
        if isinstance(function, Listed):
            return function.ends(aggregate, *self._drawn(aggregate), level)
        return computed(function).interval(self._parts(aggregate), self, level)

    def half_widths(self, aggregate: Aggregate, level: float) -> Floats:
        """The larger distance from each estimate to an end of its interval."""
        low, high = self.intervals(aggregate, level)
        values = self.values(aggregate)
        return np.asarray(np.maximum(np.maximum(values - low, high - values), 0.0))

    def noise(self, draws: int, places: Sequence[int], *, bits: Bits | None = None) -> dict[Hashable, Any]:
        """Other draws of all noise, for `redrawn`: arrays of draws by places, for each value of an own mechanism."""
        shape = (draws, len(places))
        noise: dict[Hashable, Any] = {term: law.sample(shape, bits=bits) for term, law in self.laws.items()}
        for part in self.own:
            noise[part] = (uniform_below(_UNIFORM, (len(self.own[part]), *shape), bits=bits) + 0.5) / _UNIFORM
        return noise

    def redrawn(self, aggregate: Aggregate, noise: Mapping[Hashable, Any], places: Sequence[int]) -> NDArray[Any]:
        """The estimates at some places less noise of other draws: an array of draws by places."""
        function, parts, at = aggregate.function, self._parts(aggregate), np.asarray(places, np.int64)
        if isinstance(function, Listed):
            part, drawn = self._drawn(aggregate)
            return function.redrawn(aggregate, part, drawn, at, noise[part])
        current, moved = {}, {}
        for quantity in quantities_of(aggregate, parts):
            linear = self.quantities[quantity]
            moved[quantity] = sum((c * noise[term] for term, c in linear.terms.items()), np.zeros(1))
            current[quantity] = linear.values[at] - moved[quantity]
        estimate = computed(function).estimate(parts, current)
        count = next((m for m in parts[1:] if m.counting in _COUNTS and m in current), None)
        none = None if count is None else current[count] <= 0
        if none is None or not none.any():
            return estimate
        # Of no values there is no mean: by such a draw it may be whatever its own interval holds, to either end of it.
        low, high = (end[at] for end in self.intervals(aggregate, LEVEL))
        odd = np.rint(moved[parts[0]]) % 2 == 1
        return np.asarray(np.where(none, np.where(odd, low, high), estimate))

    def predicted(self, aggregate: Aggregate, level: float, rows: int) -> float:
        """The half-width of an interval if a group has `rows` values; the largest over the declared range."""
        return computed(aggregate.function).predicted(self._parts(aggregate), self, level, rows)

    # -- as `Reading` -----------------------------------------------------------------------------------------------

    def value_of(self, quantity: Quantity) -> Any:
        """A noisy quantity, by group."""
        return self.quantities[quantity].values

    def terms_of(self, quantity: Quantity) -> Mapping[Term, float]:
        """The coefficient of every noise term in its error."""
        return self.quantities[quantity].terms

    def _parts(self, aggregate: Aggregate) -> tuple[Measurement, ...]:
        return self._measured[aggregate]

    @cached_property
    def _measured(self) -> dict[Aggregate, tuple[Measurement, ...]]:
        return {a: self.plan.measurement_of(a) for a in self.plan.question.aggregates}

    def _current(self, aggregate: Aggregate) -> dict[Quantity, Any]:
        return {q: self.quantities[q].values for q in quantities_of(aggregate, self._parts(aggregate))}

    def _drawn(self, aggregate: Aggregate) -> tuple[OwnPart, Any]:
        """The part that a listed aggregate is drawn in, and what was drawn."""
        measured = self._parts(aggregate)
        part = next((p for p in self.own if drawn_in(aggregate.function, measured, p)), None)
        if part is None:
            raise InternalError("a stored release does not fit its question")
        return part, self.own[part]

    def count_reach(self, quantity: Quantity, level: float) -> float:
        """How far a rounded count is off."""
        terms = self.quantities[quantity].terms
        if isinstance(quantity, Measurement) and self.plan.clips(quantity):  # of weighted rows: its truth is not whole
            whole = len(terms) == 1 and all(abs(c) == 1 for c in terms.values())
            return self.reach(terms, level) + (0.0 if whole else 0.5)
        reach = rounded_half_width(level, tuple((self.laws[t], c) for t, c in terms.items()))
        return float(math.floor(self.reach(terms, level) + 0.5) if reach is None else reach)

    def reach(self, terms: Mapping[Term, float], level: float) -> float:
        """The half-width of one combination of terms; exact for a single one."""
        if len(terms) == 1:
            ((term, coefficient),) = terms.items()
            return abs(coefficient) * self.laws[term].half_width(level)
        return float(self.spread({t: np.array([c]) for t, c in terms.items()}, level)[0])

    def spread(self, terms: Mapping[Term, Any], level: float) -> Floats:
        """The half-widths of combinations whose coefficients are arrays, discreteness included."""
        laplace, variance, wider = [], 0.0, 0.0
        for term, coefficient in terms.items():
            law = self.laws[term]
            wider = wider + np.abs(coefficient) / 2
            if isinstance(law, DiscreteLaplace):
                laplace.append(coefficient * float(law.scale))
            else:
                variance = variance + coefficient**2 * float(law.sigma2)
        shape = np.shape(next(iter(terms.values())))
        scales = np.array(laplace) if laplace else np.zeros((1, *shape))
        return half_widths(level, scales, variance) + wider


def read(price: Price, payload: Mapping[str, Any]) -> tuple[Estimates, ...]:
    """What a drawn release says, plan by plan. `price` is the one it was drawn at (`draw.price_of`)."""
    return tuple(_read_plan(price, at, drawn) for at, drawn in enumerate(payload["plans"]))


def _read_plan(price: Price, at: int, drawn: Mapping[str, Any]) -> Estimates:
    plan = price.plans[at]
    parts, vectors = price.of_plan(at), drawn["parts"]
    if len(parts) != len(vectors):
        raise InternalError("a stored release does not fit its question")
    groups = tuple(drawn_groups(plan, drawn))
    if drawn["groups"] is not None:
        _check_found(plan, groups)
    laws: dict[Term, Noise] = {}
    own: dict[OwnPart, Any] = {}
    notes = tuple(p.note for p in parts if p.note)
    arrays: dict[Term, Floats] = {}
    for i, (priced, values) in enumerate(zip(parts, vectors, strict=True)):
        if isinstance(priced.part, OwnPart):
            own[priced.part] = priced.part.read(values, len(groups))
            continue
        if len(values) != len(getattr(priced.part, "vectors", (None,))):
            raise InternalError("a stored release does not fit its question")
        for k, vector in enumerate(values):
            if len(vector) != len(groups) or set(map(type, vector)) - {int}:
                raise InternalError("a stored release does not fit its question: not one whole number for each group")
            if not isinstance(priced.draws, UnknownTopK):  # places are what was drawn, without noise
                laws[0, i, k] = priced.noise
            arrays[0, i, k] = np.array(vector, np.float64)
    return Estimates(
        plan, groups, _quantities(price.strategies[at].recipes, arrays, laws, len(groups)), laws, own, notes
    )


def _check_found(plan: Plan, groups: Sequence[tuple[Scalar, ...]]) -> None:
    """Raises InternalError for groups that the plan does not find: they are public, or keys of another number."""
    if not plan.private_keys or len(set(groups)) != len(groups) or any(len(g) != len(plan.keys) for g in groups):
        raise InternalError("a stored release does not fit its question: it has other groups")


def _quantities(
    recipes: Mapping[Quantity, Any], arrays: Mapping[Term, Floats], laws: Mapping[Term, Noise], size: int
) -> dict[Quantity, Linear]:
    quantities = {}
    for quantity, recipe in recipes.items():
        linear = Linear(np.zeros(size), {})
        for part, vector, coefficient in recipe:
            term = (0, part, vector)
            linear = linear.plus(Linear(arrays[term], {term: 1.0} if term in laws else {}), float(coefficient))
        quantities[quantity] = linear
    return quantities


def expected(price: Price) -> tuple[Estimates, ...]:
    """Estimates without values, for what `check` predicts from scales alone."""
    widths = []
    for at, plan in enumerate(price.plans):
        laws: dict[Term, Noise] = {}
        arrays: dict[Term, Floats] = {}
        for i, priced in enumerate(price.of_plan(at)):
            if isinstance(priced.part, OwnPart):
                continue
            for k in range(len(getattr(priced.part, "vectors", (None,)))):
                if not isinstance(priced.draws, UnknownTopK):
                    laws[0, i, k] = priced.noise
                arrays[0, i, k] = np.zeros(0)
        widths.append(Estimates(plan, (), _quantities(price.strategies[at].recipes, arrays, laws, 0), laws, {}))
    return tuple(widths)


def combine(draws: Sequence[Estimates]) -> Estimates:
    """Several draws of one plan as one: all quantities by inverse covariance; quantiles from the last draw.

    Raises InternalError for draws of different plans or groups.
    """
    if not draws or any(d.plan.key() != draws[0].plan.key() or d.groups != draws[0].groups for d in draws):
        raise InternalError("only draws of one plan, over the same groups, can be combined")
    joined, *others = (_named(one, i) for i, one in enumerate(draws))
    for one in others:
        joined = _joined(joined, one)
    return joined


def _named(one: Estimates, number: int) -> Estimates:
    """A draw whose noise terms are told apart from those of others."""
    quantities = {
        quantity: Linear(linear.values, {(number, term): c for term, c in linear.terms.items()})
        for quantity, linear in one.quantities.items()
    }
    return replace(one, quantities=quantities, laws={(number, term): law for term, law in one.laws.items()})


def _joined(a: Estimates, b: Estimates) -> Estimates:
    """The best linear unbiased estimate from two independent ones."""
    names = [quantity for quantity in a.quantities if quantity in b.quantities]
    first, second = _covariance(a, names), _covariance(b, names)
    scale = np.sqrt(np.maximum(np.diag(first + second), 1e-300))
    unit = np.outer(scale, scale)
    gain = (first / unit) @ np.linalg.pinv((first + second) / unit, rcond=1e-10, hermitian=True)
    gain[np.abs(gain) < 1e-9] = 0.0  # what is uncorrelated stays so
    gain *= scale[:, None] / scale[None, :]
    quantities = {}
    for i, quantity in enumerate(names):
        linear = a.quantities[quantity]
        for j in np.flatnonzero(gain[i]):
            linear = linear.plus(b.quantities[names[j]], float(gain[i, j]))
            linear = linear.plus(a.quantities[names[j]], -float(gain[i, j]))
        largest = max(map(abs, linear.terms.values()), default=0.0)
        terms = {term: c for term, c in linear.terms.items() if abs(c) > 1e-12 * largest}
        quantities[quantity] = Linear(linear.values, terms)
    return replace(b, quantities=quantities, laws={**a.laws, **b.laws})


def _covariance(one: Estimates, names: Sequence[Quantity]) -> Floats:
    """Of the quantities' errors, in one group: the same in all."""
    terms = list(one.laws)
    spread = np.sqrt([float(one.laws[term].variance) for term in terms])
    rows = [[one.quantities[name].terms.get(term, 0.0) for term in terms] for name in names]
    weighted = np.reshape(np.array(rows, np.float64), (len(names), len(terms))) * spread
    return np.asarray(weighted @ weighted.T)
