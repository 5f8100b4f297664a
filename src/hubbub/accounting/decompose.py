"""From an event to what is convolved: for each direction a multiset of dominating pairs.

Flattening is exact, on events: repetition multiplies counts, groups scale sensitivities, nested sampling
multiplies rates, Gaussians add their mu^2. `Parallel` is one of its parts, the same for all answers: the
partition of the units is fixed before, so the worst part (for several: the worst combination) is the
answer.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from hubbub.accounting import events as ev
from hubbub.accounting.exact import pure_epsilon, scaled
from hubbub.accounting.pairs import (
    AtomicPair,
    AtomicSkewed,
    Atoms,
    Base,
    GaussianPair,
    LaplacePair,
    Pair,
    Sampled,
    WithoutReplacement,
)
from hubbub.accounting.rounding import root_up
from hubbub.errors import ParameterError

__all__ = ["Flat", "base_atoms", "directions", "extreme", "flatten", "one_inside"]

_MOST_CHOICES = 256
_TINY = Fraction(1, 10**200)
_LEAST_RATE = Fraction(1, 10**100)


@dataclass(frozen=True)
class Flat:
    """One choice of parallel parts: mu^2 of all plain Gaussians, the sum of rhos, and counted other
    leaves.
    """

    mu_squared: Fraction
    rho: Fraction
    leaves: tuple[tuple[ev.Event, int], ...]

    @property
    def gaussian_only(self) -> bool:
        return not self.leaves and self.rho == 0

    @property
    def any(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.leaves or self.mu_squared or self.rho)

    @property
    def ranges(self) -> tuple[tuple[ev.BoundedRange, int], ...]:
        return tuple((e, n) for e, n in self.leaves if isinstance(e, ev.BoundedRange))


Choice = Counter[ev.Event]


def flatten(event: ev.Event) -> list[Flat]:
    """The event's choices of parallel parts, each flat. Raises ParameterError beyond 256 choices."""
    return list(dict.fromkeys(_flat(choice) for choice in _choices(event)))


def _choices(event: ev.Event) -> list[Choice]:
    match event:
        case ev.Composed():
            return _product([_choices(e) for e in event.events])
        case ev.Repeated():
            return _repeated(_choices(event.event), event.times)
        case ev.Parallel():
            return _distinct([c for e in event.events for c in _choices(e)])
        case ev.Group():
            return _choices(scaled(event.event, event.size))
        case ev.Threshold():
            return [Counter({ev.ApproxDP(event.epsilon, event.delta): event.groups})]
        case ev.PoissonSampled():
            return [Counter({_sampled(event): 1})]
        case ev.SampledWithoutReplacement() if event.rate == 1:
            return _choices(event.event)
        case _:
            return [Counter({event: 1})]


def _sampled(event: ev.PoissonSampled) -> ev.Event:
    inner, rate = event.event, event.rate
    if rate == 0:
        return ev.PureDP(0)
    if isinstance(inner, ev.PoissonSampled):
        return _sampled(ev.PoissonSampled(inner.event, inner.rate * rate))
    return inner if rate == 1 and not inner.children else event


def _product(lists: list[list[Choice]]) -> list[Choice]:
    result: list[Choice] = [Counter()]
    for choices in lists:
        result = _distinct([a + b for a in result for b in choices])
    return result


def _repeated(choices: list[Choice], times: int) -> list[Choice]:
    if len(choices) == 1:
        return [Counter({e: n * times for e, n in choices[0].items()})]
    if math.comb(times + len(choices) - 1, times) > _MOST_CHOICES:
        raise _too_many()
    picks = combinations_with_replacement(choices, times)
    return _distinct([sum(pick, Counter()) for pick in picks])


def _distinct(choices: list[Choice]) -> list[Choice]:
    """Without repetitions, and without choices that another one of the same family dominates."""
    unique = list({frozenset(c.items()): c for c in choices}.values())
    kept = [c for c in unique if not any(_dominated(c, d) for d in unique if d is not c)]
    if len(kept) > _MOST_CHOICES:
        raise _too_many()
    return kept


def _dominated(a: Choice, b: Choice) -> bool:
    """Whether one leaf of a known family is strictly weaker than another of that family."""
    if len(a) != 1 or len(b) != 1 or sum(a.values()) != 1 or sum(b.values()) != 1:
        return False
    (x,), (y,) = a, b
    match x, y:
        case (ev.PureDP(), ev.PureDP()):
            return x.epsilon < y.epsilon
        case (ev.BoundedRange(adaptive=True), ev.BoundedRange(adaptive=True)):
            return x.epsilon < y.epsilon
        case (ev.Laplace(), ev.Laplace()):
            return x.sensitivity / x.scale < y.sensitivity / y.scale
        case (ev.Gaussian(), ev.Gaussian()):
            return x.sensitivity / x.sigma < y.sensitivity / y.sigma
        case (ev.GaussianDP(), ev.GaussianDP()):
            return x.mu < y.mu
        case (ev.ZCDP(), ev.ZCDP()):
            return x.rho < y.rho
        case _:
            return False


def _too_many() -> ParameterError:
    return ParameterError(
        f"the event's Parallel parts can be met in more than {_MOST_CHOICES} ways. Replace parts by the worst of them."
    )


def _flat(choice: Choice) -> Flat:
    mu_squared = rho = Fraction(0)
    leaves = []
    for event, n in choice.items():
        match event:
            case ev.Gaussian():
                mu_squared += n * (event.sensitivity / event.sigma) ** 2
            case ev.GaussianDP():
                mu_squared += n * event.mu**2
            case ev.ZCDP():
                rho += n * event.rho
            case _ if not _free(event):
                leaves.append((event, n))
            case _:
                pass
    return Flat(mu_squared, rho, tuple(leaves))


def _free(event: ev.Event) -> bool:
    match event:
        case ev.PureDP() | ev.RandomizedResponse() | ev.BoundedRange():
            return event.epsilon == 0
        case ev.ApproxDP():
            return event.epsilon == 0 and event.delta == 0
        case ev.Laplace() | ev.DiscreteLaplace() | ev.DiscreteGaussian():
            return event.sensitivity == 0
        case _:
            return False


def extreme(event: ev.Event) -> bool:
    """Whether a leaf's losses are beyond what floats and lattices hold: larger than 400, or below 1e-200."""
    match event:
        case ev.PoissonSampled() | ev.SampledWithoutReplacement():
            return extreme(one_inside(event.event)) if event.rate else False
        case ev.Gaussian() | ev.DiscreteGaussian():
            mu = Fraction(event.sensitivity) / event.sigma
            return mu != 0 and not _TINY < mu < 20
        case ev.GaussianDP():
            return event.mu != 0 and not _TINY < event.mu < 20
        case ev.ApproxDP():
            return event.epsilon > 400 or 0 < event.epsilon < _TINY or 0 < event.delta < _TINY
        case _:
            epsilon = pure_epsilon(event)
            return epsilon is not None and epsilon != 0 and not _TINY < epsilon < 400


def directions(flat: Flat, log_tail: float, *, attained: bool = False) -> list[list[tuple[Pair, int]]]:
    """The pairs of each direction; one list where all pairs are symmetric. Ranges and rhos are not in
    them.

    `attained`: of sampling without replacement the pair of two actual data sets (one unit against a neutral
    one), for bounds from below; else the pair that dominates all.
    """
    removing: list[tuple[Pair, int]] = []
    adding: list[tuple[Pair, int]] = []
    if flat.mu_squared:
        pair = GaussianPair(float(root_up(flat.mu_squared)))
        removing.append((pair, 1))
        adding.append((pair, 1))
    for event, n in flat.leaves:
        if isinstance(event, ev.BoundedRange):
            continue
        remove, add = _both(event, log_tail, attained)
        removing.append((remove, n))
        adding.append((add, n))
    return [removing] if all(p.symmetric for p, _ in removing) else [removing, adding]


def _mixtures(base: Base, exact: Fraction) -> tuple[Pair, Pair]:
    rate, rest = _rates(exact)
    if base.continuous:
        return Sampled(base, rate, rest, False), Sampled(base, rate, rest, True)
    mixture = base.atoms.sampled(rate, rest)
    return AtomicSkewed(mixture), AtomicSkewed(mixture.swapped())


def _rates(rate: Fraction) -> tuple[float, float]:
    """rate and 1 - rate, each rounded by itself."""
    if min(rate, 1 - rate) < _LEAST_RATE:
        raise ParameterError(
            f"rate = {float(rate):g} was asked; floating point needs it and 1 - rate to be 0 or at least 1e-100. "
            "Take 0 or 1 instead: more sampling is a bound from above, less from below."
        )
    return float(rate), float(1 - rate)


def _both(event: ev.Event, log_tail: float, attained: bool) -> tuple[Pair, Pair]:
    match event:
        case ev.PoissonSampled():
            base = _base(one_inside(event.event), log_tail)
            return (base, base) if event.rate == 1 else _mixtures(base, event.rate)
        case ev.SampledWithoutReplacement():
            base = _base(one_inside(event.event), log_tail)
            if attained:
                return _mixtures(base, event.rate)
            rate, rest = _rates(event.rate)
            pair: Pair
            if base.continuous:
                pair = WithoutReplacement(Sampled(base, rate, rest, False))
            else:
                pair = AtomicPair(base.atoms.sampled(rate, rest).mirrored())
            return pair, pair
        case _:
            base = _base(event, log_tail)
            return base, base


def one_inside(event: ev.Event) -> ev.Event:
    """The inner event of a sampling as a single leaf; composed Gaussians are one Gaussian."""
    flats = flatten(event)
    if len(flats) == 1:
        flat = flats[0]
        if flat.gaussian_only:
            return ev.GaussianDP(root_up(flat.mu_squared))
        if flat.mu_squared == 0 and flat.rho == 0 and len(flat.leaves) == 1 and flat.leaves[0][1] == 1:
            return flat.leaves[0][0]
    raise ParameterError(
        "a sampled event may hold one mechanism, or several Gaussian ones; found others composed or "
        "sampled inside. "
        "Sample once per mechanism, or replace the inside by one guarantee, such as PureDP(its total "
        "epsilon)."
    )


def base_atoms(event: ev.Event) -> Atoms | None:
    """The outcomes of a finite mechanism, or None where there are infinitely many."""
    match event:
        case ev.PureDP() | ev.ApproxDP() | ev.RandomizedResponse() | ev.DiscreteLaplace():
            return _base(event, 0.0).atoms
        case _:
            return None


def _base(event: ev.Event, log_tail: float) -> Base:
    match event:
        case ev.GaussianDP():
            return GaussianPair(float(event.mu)) if event.mu else _binary(Fraction(0), Fraction(0))
        case ev.Gaussian():
            return GaussianPair(float(event.sensitivity / event.sigma))
        case ev.Laplace():
            epsilon = event.sensitivity / event.scale
            return LaplacePair(float(epsilon), epsilon)
        case ev.PureDP():
            return _binary(event.epsilon, Fraction(0))
        case ev.ApproxDP():
            return _binary(event.epsilon, event.delta)
        case ev.RandomizedResponse():
            return _response(event.epsilon, event.categories)
        case ev.DiscreteLaplace():
            return _discrete_laplace(event)
        case ev.DiscreteGaussian():
            return _discrete_gaussian(event, log_tail)
        case _:
            raise ParameterError(
                f"{type(event).__name__} cannot be sampled numerically: it is a class of mechanisms "
                "without one worst "
                "pair. Name the mechanism instead, such as Gaussian(sigma)."
            )


def _binary(epsilon: Fraction, delta: Fraction) -> Base:
    """The canonical pair of (epsilon, delta)-DP (Kairouz, Oh, Viswanath 2015)."""
    e, d = float(epsilon), float(delta)
    high = (1 - d) / (1 + math.exp(-e)) if e < 700 else 1 - d
    low = (1 - d) * math.exp(-e) / (1 + math.exp(-e))
    if epsilon == 0:
        points = Atoms(np.zeros(1), np.array([1 - d]), np.array([1 - d]), d, d, 16 * 2.0**-53)
        return AtomicPair(points)
    loss, p = np.array([-e, e]), np.array([low, high])
    return AtomicPair(Atoms(loss, p, p[::-1].copy(), d, d, _slack(e), epsilon, np.array([-1, 1])))


def _slack(exponent: float) -> float:
    return 2.0**-53 * (16 + 4 * exponent)


def _response(epsilon: Fraction, categories: int) -> Base:
    e = float(epsilon)
    whole = 1 + (categories - 1) * math.exp(-e)
    low, high, rest = math.exp(-e) / whole, 1 / whole, (categories - 2) * math.exp(-e) / whole
    loss, p, q = np.array([-e, 0.0, e]), np.array([low, rest, high]), np.array([high, rest, low])
    return AtomicPair(Atoms(loss, p, q, slack=_slack(e), unit=epsilon, index=np.array([-1, 0, 1])))


def _discrete_laplace(event: ev.DiscreteLaplace) -> Base:
    """Noise x on the value s under P, 0 under Q: loss (|x| - |x - s|)/b in {-s, -s+2, ..., s}/b."""
    s, unit = event.sensitivity, 1 / event.scale
    b = float(event.scale)
    if s > 1_000_000:
        raise ParameterError(f"sensitivity = {s} is too wide for an exact lattice; allowed are up to 1000000.")
    x = np.arange(s + 1, dtype=np.float64)
    # P(x) = tanh(1/2b) e^(-|x - s|/b); everything left of 0 has the smallest loss, right of s the largest.
    head = math.tanh(1 / (2 * b))
    inner = head * np.exp(-(s - x) / b)
    inner[0] = math.exp(-s / b) / (1 + math.exp(-1 / b))
    inner[-1] = 1 / (1 + math.exp(-1 / b))
    index = (2 * x - s).astype(np.int64)
    loss = index.astype(np.float64) * float(unit)
    return AtomicPair(Atoms(loss, inner, inner[::-1].copy(), slack=_slack(s / b), unit=unit, index=index))


def _discrete_gaussian(event: ev.DiscreteGaussian, log_tail: float) -> Base:
    """Noise y around s under P: loss (2 y s + s^2) / 2 sigma^2 = (2 y + s) unit with unit = s / 2 sigma^2."""
    s, sigma = event.sensitivity, float(event.sigma)
    unit = Fraction(s) / (2 * event.sigma**2)
    reach = math.ceil(sigma * math.sqrt(-2 * min(log_tail, -90.0))) + s + 2
    if reach > 500_000:
        raise ParameterError(
            f"sigma = {sigma:g} is too wide for an exact lattice of integers (up to about 30000). Beyond, "
            "Gaussian(sigma) has the same loss to more than 12 digits; or take rho by `cost(event)`."
        )
    y = np.arange(-reach, reach + 1)
    w = np.exp(-(y.astype(np.float64) ** 2) / (2 * sigma * sigma))
    p = w / w.sum()
    # Q at the same outcome is P shifted by s; outcomes too far for the table are beyond either tail.
    shifted = np.abs(y + s)
    q = np.exp(-(shifted.astype(np.float64) ** 2) / (2 * sigma * sigma)) / w.sum()
    index = (2 * y + s).astype(np.int64)
    missing = 4 * float(np.exp(-((reach - s) ** 2) / (2 * sigma * sigma))) * (1 + sigma)
    slack = 2.0**-53 * (64 + 8 * reach * reach / (2 * sigma * sigma))
    loss = index.astype(np.float64) * float(unit)
    points = Atoms(loss, p, q, 0.0, 0.0, slack, unit, index, missing)
    return AtomicPair(points)
