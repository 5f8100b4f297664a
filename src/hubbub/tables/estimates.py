"""What a drawn release says: estimates of every aggregate and their intervals, from noisy integers and known laws.

All of it is post-processing. Each quantity (a count, a centred sum, ...) is a linear combination of released vectors,
so its error is a known combination of independent noise terms. Arrays are over the groups of the answer.

Estimates. COUNT, SUM: the quantity, unbiased around the bounded truth; a count can be negative. AVG: centre + S / N,
held inside the declared range. VAR: Q / N - (S / N)^2, COVAR: P / N - Sx Sy / N^2, CORR their quotient, each held
inside what the declared range allows. Where the noisy count N is 0 or less: the middle of the range.

Intervals at a level hold the bounded truth. COUNT, SUM: quantiles of the noise. AVG: Fieller's method
(`hubbub.mechanisms.ratio`), which is exact. VAR, COVAR: the same idea for F(v) = P - v N - Sx Sy / N, whose noise is
P' - theta_y Sx' - theta_x Sy' + (theta_x theta_y - v) N' but for a term of the size of noise^2 / N; so where N is
within three of its own half-widths of 0, the interval is the whole range. CORR: its first-order noise, likewise, and
the whole range where a variance is within two half-widths of 0.
Quantiles: the brackets that were bought with them, at 95 % or less; above that, the declared range.
Each noise term is discrete: intervals are half a step of every term wider, as `hubbub.mechanisms.ratio` explains.

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
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import InternalError
from hubbub.mechanisms.ratio import half_widths, ratio_intervals
from hubbub.noise import Bits, DiscreteLaplace, uniform_below
from hubbub.tables.aggregate_query import COUNTS, Aggregate, Function
from hubbub.tables.columns import Scalar
from hubbub.tables.draw_release import drawn_groups
from hubbub.tables.measure import Measurement
from hubbub.tables.moments import ROOTS, Moments, computed, limits, scaled, scenes
from hubbub.tables.parts import (
    COVARIANCES,
    RANKED,
    VARIANCES,
    QuantilePart,
    Quantity,
    Total,
    share_of,
    wanted,
)
from hubbub.tables.plan import Plan
from hubbub.tables.price import BRACKET_LEVEL, Noise, Price
from hubbub.tables.rounded import rounded_half_width

__all__ = ["Estimates", "combine", "read"]

Floats: TypeAlias = NDArray[np.float64]
Term: TypeAlias = Hashable

FEW = 3.0
"""A noisy count within so many half-widths of 0 says little: ratios of products are then given their whole range."""

_UNIFORM = 2**32


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
class Brackets:
    """Quantiles of one measurement: [share][estimate, low, high][group], in steps."""

    shares: tuple[Fraction, ...]
    steps: Floats


@dataclass(frozen=True)
class Estimates:
    """What one plan's release says about each of its aggregates, group by group.

    plan: the plan; groups: its groups in order. laws: of every noise term.
    """

    plan: Plan
    groups: tuple[tuple[Scalar, ...], ...]
    quantities: Mapping[Quantity, Linear]
    laws: Mapping[Term, Noise]
    ranks: Mapping[Measurement, Brackets]

    @property
    def size(self) -> int:
        """How many groups the release has."""
        return len(self.groups)

    def values(self, aggregate: Aggregate) -> NDArray[Any]:
        """The estimates: int64 for counts, else float64; dates in days, times in microseconds since 1970-01-01."""
        if aggregate.function in RANKED:
            return self._quantile(aggregate)[0]
        found = computed(aggregate, self._parts(aggregate), self._current(aggregate))
        if aggregate.function in COUNTS:
            return np.rint(np.clip(found, -(2.0**62), 2.0**62)).astype(np.int64)
        return found

    def intervals(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """The lower and the upper ends of the intervals that hold the bounded truth with probability `level`, each."""
        function = aggregate.function
        if function in RANKED:
            return self._bracket(aggregate, level)
        if function is Function.AVG:
            return self._mean_interval(aggregate, level)
        if function in VARIANCES or function in COVARIANCES:
            return self._spread_interval(aggregate, level)
        (quantity,) = wanted(aggregate, self._parts(aggregate))
        if function in COUNTS:
            middle, reach = self.values(aggregate).astype(np.float64), self._count_reach(quantity, level)
            return middle - reach, middle + reach
        step = float(self._parts(aggregate)[0].step) if isinstance(quantity, Total) else 1.0
        found = self.quantities[quantity]
        reach = self._reach(found.terms, level)
        return (found.values - reach) * step, (found.values + reach) * step

    def half_widths(self, aggregate: Aggregate, level: float) -> Floats:
        """The larger distance from each estimate to an end of its interval."""
        low, high = self.intervals(aggregate, level)
        values = self.values(aggregate)
        return np.asarray(np.maximum(np.maximum(values - low, high - values), 0.0))

    def noise(self, draws: int, places: Sequence[int], *, bits: Bits | None = None) -> dict[Hashable, Any]:
        """Other draws of all noise, for `redrawn`: arrays of draws by places."""
        shape = (draws, len(places))
        found: dict[Hashable, Any] = {term: law.sample(shape, bits=bits) for term, law in self.laws.items()}
        for m in self.ranks:
            found[m] = (uniform_below(_UNIFORM, shape, bits=bits) + 0.5) / _UNIFORM
        return found

    def redrawn(self, aggregate: Aggregate, noise: Mapping[Hashable, Any], places: Sequence[int]) -> NDArray[Any]:
        """The estimates at some places less noise of other draws: an array of draws by places.

        A quantile has no known noise law: it is spread evenly over its bracket.
        """
        at = np.asarray(places, np.int64)
        if aggregate.function in RANKED:
            _, low, high = (ends[at] for ends in self._quantile(aggregate))
            return np.asarray(low + (high - low) * noise[self._parts(aggregate)[0]])
        current = {}
        for quantity in wanted(aggregate, self._parts(aggregate)):
            linear = self.quantities[quantity]
            drawn = sum((c * noise[term] for term, c in linear.terms.items()), np.zeros(1))
            current[quantity] = linear.values[at] - drawn
        return computed(aggregate, self._parts(aggregate), current)

    def predicted(self, aggregate: Aggregate, level: float, rows: int) -> float:
        """The half-width of an interval if a group has `rows` values; the largest over the declared range.

        For spreads, the largest over means and spreads that the range allows; a standard deviation and a correlation
        are taken where the spread is a quarter of the range. Quantiles: infinite; their error is one of ranks.
        """
        function, parts = aggregate.function, self._parts(aggregate)
        if function in RANKED:
            return float("inf")
        if function is Function.AVG:
            ends = np.array([parts[0].low, 0, parts[0].high], np.float64)
            reach = float(self._mean_reach(parts, level)(ends).max()) / rows
            return min(reach, parts[0].high - parts[0].low) * float(parts[0].step)
        if function in VARIANCES or function in COVARIANCES:
            return self._predicted_spread(aggregate, level, rows)
        (quantity,) = wanted(aggregate, parts)
        if function in COUNTS:
            return self._count_reach(quantity, level)
        step = float(parts[0].step) if isinstance(quantity, Total) else 1.0
        return self._reach(self.quantities[quantity].terms, level) * step

    def _parts(self, aggregate: Aggregate) -> tuple[Measurement, ...]:
        return self._measured[aggregate]

    @cached_property
    def _measured(self) -> dict[Aggregate, tuple[Measurement, ...]]:
        return {a: self.plan.measurement_of(a) for a in self.plan.question.aggregates}

    def _current(self, aggregate: Aggregate) -> dict[Quantity, Any]:
        return {q: self.quantities[q].values for q in wanted(aggregate, self._parts(aggregate))}

    def _count_reach(self, quantity: Quantity, level: float) -> float:
        """How far a rounded count is off."""
        terms = self.quantities[quantity].terms
        if isinstance(quantity, Measurement) and self.plan.clips(quantity):  # of weighted rows: its truth is not whole
            whole = len(terms) == 1 and all(abs(c) == 1 for c in terms.values())
            return self._reach(terms, level) + (0.0 if whole else 0.5)
        found = rounded_half_width(level, tuple((self.laws[t], c) for t, c in terms.items()))
        return float(math.floor(self._reach(terms, level) + 0.5) if found is None else found)

    def _reach(self, terms: Mapping[Term, float], level: float) -> float:
        """The half-width of one combination of terms; exact for a single one."""
        if len(terms) == 1:
            ((term, coefficient),) = terms.items()
            return abs(coefficient) * self.laws[term].half_width(level)
        return float(self._spread({t: np.array([c]) for t, c in terms.items()}, level)[0])

    def _spread(self, terms: Mapping[Term, Any], level: float) -> Floats:
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

    def _mean_reach(self, parts: Sequence[Measurement], level: float) -> Any:
        total, count = (self.quantities[m].terms for m in parts[:2])

        def reach(theta: Floats) -> Floats:
            both = {t: total.get(t, 0.0) - theta * count.get(t, 0.0) for t in {**total, **count}}
            return self._spread(both, level)

        return reach

    def _mean_interval(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        parts = self._parts(aggregate)
        total, count = (self.quantities[m] for m in parts)
        low, high = ratio_intervals(
            total.values,
            count.values,
            reach=self._mean_reach(parts, level),
            low=float(parts[0].low),
            high=float(parts[0].high),
        )
        centre, step = parts[0].values[0].centre, float(parts[0].step)
        return (low + centre) * step, (high + centre) * step

    def _spread_interval(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        """Of VAR, STDDEV, COVAR and CORR."""
        parts = self._parts(aggregate)
        moments = self._moments(aggregate, self._current(aggregate))
        low, high = moments.interval(level)
        few = (moments.count <= FEW * self._reach(self.quantities[moments.n].terms, level)) | moments.flat(level)
        least, most = limits(aggregate, parts)
        low, high = np.where(few, least, low), np.where(few, most, high)
        if aggregate.function is Function.CORR:
            return low, high
        return scaled(aggregate, parts, low, moments.count), scaled(aggregate, parts, high, moments.count)

    def _moments(self, aggregate: Aggregate, current: Mapping[Quantity, Any]) -> Moments:
        terms = {quantity: linear.terms for quantity, linear in self.quantities.items()}
        return Moments(aggregate, self._parts(aggregate), current, terms, self._spread)

    def _predicted_spread(self, aggregate: Aggregate, level: float, rows: int) -> float:
        parts = self._parts(aggregate)
        least, most = limits(aggregate, parts)
        worst = 0.0
        for current, spread in scenes(aggregate, parts, rows):
            found = self._moments(aggregate, current).reach(np.array([spread]), level)
            worst = max(worst, float(found[0]))
        if aggregate.function is Function.CORR:
            return min(worst, 2.0)
        unit = float(parts[0].step) * float(parts[-1].values[1].grid.step)
        if aggregate.function in ROOTS:
            quarter = (parts[0].high - parts[0].low) / 4 or 1.0
            return min(worst / (2 * quarter), float(np.sqrt(most))) * float(parts[0].step)
        return min(worst, most - least) * unit

    def _quantile(self, aggregate: Aggregate) -> tuple[Floats, Floats, Floats]:
        measurement = self._parts(aggregate)[0]
        found = self.ranks[measurement]
        at = found.shares.index(share_of(aggregate))
        estimate, low, high = measurement.values[0].numbers(found.steps[at])
        return estimate, low, high

    def _bracket(self, aggregate: Aggregate, level: float) -> tuple[Floats, Floats]:
        _, low, high = self._quantile(aggregate)
        if level <= BRACKET_LEVEL:
            return low, high
        value = self._parts(aggregate)[0].values[0]
        least, most = value.numbers(np.array([value.floor, value.ceiling], np.float64))
        return np.full_like(low, least), np.full_like(high, most)


def read(price: Price, payload: Mapping[str, Any]) -> tuple[Estimates, ...]:
    """What a drawn release says, plan by plan. `price` is the one it was drawn at (`draw.price_of`)."""
    return tuple(_read_plan(price, at, drawn) for at, drawn in enumerate(payload["plans"]))


def _read_plan(price: Price, at: int, drawn: Mapping[str, Any]) -> Estimates:
    plan = price.plans[at]
    parts, vectors = price.of_plan(at), drawn["parts"]
    if len(parts) != len(vectors):
        raise InternalError("a stored release does not fit its question")
    groups = tuple(drawn_groups(plan, drawn))
    laws: dict[Term, Noise] = {}
    ranks: dict[Measurement, Brackets] = {}
    arrays: dict[Term, Floats] = {}
    for i, (priced, values) in enumerate(zip(parts, vectors, strict=True)):
        if isinstance(priced.part, QuantilePart):
            steps = np.array(values, np.float64).reshape(len(priced.part.shares), 3, len(groups))
            ranks[priced.part.of] = Brackets(priced.part.shares, steps)
            continue
        for k, vector in enumerate(values):
            laws[0, i, k] = priced.noise
            arrays[0, i, k] = np.array(vector, np.float64)
    return Estimates(plan, groups, _quantities(price.strategies[at].recipes, arrays, len(groups)), laws, ranks)


def _quantities(recipes: Mapping[Quantity, Any], arrays: Mapping[Term, Floats], size: int) -> dict[Quantity, Linear]:
    found = {}
    for quantity, recipe in recipes.items():
        linear = Linear(np.zeros(size), {})
        for part, vector, coefficient in recipe:
            term = (0, part, vector)
            linear = linear.plus(Linear(arrays[term], {term: 1.0}), float(coefficient))
        found[quantity] = linear
    return found


def expected(price: Price) -> tuple[Estimates, ...]:
    """Estimates without values, for what `check` predicts from scales alone."""
    found = []
    for at, plan in enumerate(price.plans):
        laws: dict[Term, Noise] = {}
        arrays: dict[Term, Floats] = {}
        for i, priced in enumerate(price.of_plan(at)):
            if isinstance(priced.part, QuantilePart):
                continue
            for k in range(len(getattr(priced.part, "vectors", (None,)))):
                laws[0, i, k] = priced.noise
                arrays[0, i, k] = np.zeros(0)
        found.append(Estimates(plan, (), _quantities(price.strategies[at].recipes, arrays, 0), laws, {}))
    return tuple(found)


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
