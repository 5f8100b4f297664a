"""Certified bounds on epsilon and delta: truth lies between, whatever rounding did.

Closed form where there is one (Gaussian alone, pure losses at delta = 0); bounded ranges alone by their own
recursion; everything else on a lattice from above and from below (`lattice.py`, `convolution.py`), refined
until the two are as close as asked. The lower of several true upper bounds counts: the pure sum and the
zCDP conversion are always asked too. For classes without one worst pair (zCDP) the truth is the worst
mechanism of the class, which no one knows
exactly: the lower bound is then the Gaussian member's, and the width asked is met only as far as knowledge
goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev, ranges
from hubbub.accounting.amounts import Number, probability
from hubbub.accounting.convolution import Convolved, Part, convolve, saddle
from hubbub.accounting.decompose import Flat, directions, flatten
from hubbub.accounting.exact import cost
from hubbub.accounting.lattice import MOST_POINTS, Measure, cells, lower, too_wide, upper
from hubbub.accounting.normal import epsilon_of_mu, log_delta_of_mu
from hubbub.accounting.pairs import UNIT, Pair
from hubbub.accounting.rounding import float_down, float_up, root_up
from hubbub.accounting.zcdp import delta_of_rho, epsilon_of_rho
from hubbub.errors import ParameterError

__all__ = ["bounds", "composed", "delta_bounds", "epsilon_bounds", "lattice_step", "pure_bounds", "upper_epsilon"]

Array = NDArray[np.float64]
_COARSE = 1500
_ROUNDS = 8


@dataclass(frozen=True)
class Goal:
    """What is asked: epsilon at a delta, or delta at an epsilon."""

    delta: Fraction | None = None
    epsilon: Fraction | None = None

    @property
    def log_delta(self) -> float:
        return math.log(self.delta) if self.delta else -23.0


@lru_cache(maxsize=256)
def epsilon_bounds(event: ev.Event, delta: Fraction, width: float | None) -> tuple[float, float]:
    """(lower, upper) on the smallest epsilon at delta, of a width of at most `width` (1e-3 epsilon if
    None).
    """
    if delta == 0:
        return pure_bounds(event)
    found = [_epsilon_of(flat, delta, width) for flat in flatten(event)]
    low, high = max(f[0] for f in found), max(f[1] for f in found)
    high = min(high, known_epsilon(event, delta))
    return min(low, high), high


@lru_cache(maxsize=256)
def upper_epsilon(event: ev.Event, delta: Fraction, step: float | None = None) -> float:
    """The upper bound alone, on one lattice: certified like `bounds`, and quick; with the same `step`
    (see `lattice_step`) also smooth in the event's parameters.
    """
    if delta == 0:
        return min(known_epsilon(event, delta), pure_bounds(event)[1])
    # A caller that names the step wants the lattice's own bound: the rational routes cost more than it does.
    known = known_epsilon(event, delta) if step is None else math.inf
    worst = 0.0
    for flat in flatten(event):
        plan = None if flat.gaussian_only or flat.ranges or flat.rho else _Plan(flat, Goal(delta=delta))
        if plan is None:
            worst = max(worst, _epsilon_of(flat, delta, None)[1])
            continue
        try:
            tops = [top for _, top in plan.composed(step or plan.first_step(), only_above=True)]
        except ParameterError:
            tops = [top for _, top in plan.composed(plan.coarser(plan.first_step()), only_above=True)]
        worst = max(worst, *(_invert(top.above, top, float(delta), up=True) for top in tops))
    return min(worst, known)


def lattice_step(event: ev.Event, delta: Fraction) -> float | None:
    """The step `upper_epsilon` would choose, or None where losses have a lattice of their own or need
    none.
    """
    steps = []
    for flat in flatten(event):
        if not (flat.gaussian_only or flat.ranges or flat.rho):
            plan = _Plan(flat, Goal(delta=delta))
            steps.append(plan.first_step() if plan.native is None else Fraction(0))
    return min(float(s) for s in steps) if steps and all(isinstance(s, float) for s in steps) else None


@lru_cache(maxsize=256)
def delta_bounds(event: ev.Event, epsilon: Fraction, relative: float) -> tuple[float, float]:
    """(lower, upper) on the smallest delta at epsilon, within `relative` of each other where that can be
    had.
    """
    found = [_delta_of(flat, epsilon, relative) for flat in flatten(event)]
    low, high = max(f[0] for f in found), max(f[1] for f in found)
    high = min(high, _known_delta(event, epsilon))
    return min(low, high), high


def known_epsilon(event: ev.Event, delta: Fraction) -> float:
    """The exact rational routes: pure sum, zCDP conversion."""
    whole = cost(event)
    best = math.inf if whole.epsilon is None else float_up(whole.epsilon)
    if whole.delta < delta:
        best = min(best, float_up(epsilon_of_rho(whole.rho, delta - whole.delta)))
    return best


def _known_delta(event: ev.Event, epsilon: Fraction) -> float:
    whole = cost(event)
    if whole.epsilon is not None and whole.epsilon <= epsilon:
        return 0.0
    return min(1.0, math.nextafter(delta_of_rho(whole.rho, epsilon) + float_up(whole.delta), math.inf))


def pure_bounds(event: ev.Event) -> tuple[float, float]:
    """(lower, upper) on the smallest pure epsilon: the largest loss. Infinite where there is none."""
    whole = cost(event).epsilon
    if whole is None:
        return math.inf, math.inf
    found = [_largest_loss(flat) for flat in flatten(event)]
    largest = max(found, key=lambda pair: pair[1])
    return min(largest[0], float_down(whole)), min(largest[1], float_up(whole))


def _largest_loss(flat: Flat) -> tuple[float, float]:
    low = high = Fraction(0)
    for event, n in flat.leaves:
        epsilon = cost(event).epsilon
        if epsilon is None:
            return math.inf, math.inf
        if not isinstance(event, ev.PoissonSampled | ev.SampledWithoutReplacement):
            low, high = low + n * epsilon, high + n * epsilon
        else:
            # ln(1 + rate (e^epsilon - 1)): the removal side is the larger.
            loss = math.log1p(float(event.rate) * math.expm1(float(epsilon))) if epsilon < 700 else float(epsilon)
            low += n * Fraction(loss * (1 - 64 * UNIT))
            high += n * min(epsilon, Fraction(loss * (1 + 64 * UNIT)))
    return float_down(low), float_up(high)


def _epsilon_of(flat: Flat, delta: Fraction, width: float | None) -> tuple[float, float]:
    if flat.gaussian_only:
        mu, d = float(root_up(flat.mu_squared)), float(delta)
        low = epsilon_of_mu(math.nextafter(math.nextafter(mu, 0.0), 0.0), d * (1 + 2 * UNIT), side=-1)
        return low, epsilon_of_mu(mu, d * (1 - 2 * UNIT), side=1)
    if flat.ranges and len(flat.ranges) == len(flat.leaves) and not flat.mu_squared and not flat.rho:
        return _ranges_epsilon(flat, float(delta), width)
    goal = Goal(delta=delta)

    def ask(both: Sequence[tuple[Convolved, Convolved]]) -> tuple[float, float]:
        d = float(delta)
        low = max(_invert(down.below, down, d, up=False) for down, _ in both)
        return low, max(_invert(top.above, top, d, up=True) for _, top in both)

    return _refined(flat, goal, ask, lambda high: width if width is not None else max(1e-3 * high, 1e-12))


def _delta_of(flat: Flat, epsilon: Fraction, relative: float) -> tuple[float, float]:
    e = float(epsilon)
    if flat.gaussian_only:
        if not flat.mu_squared:
            return 0.0, 0.0
        mu = float(root_up(flat.mu_squared))
        value, error = log_delta_of_mu(mu, e)
        error += 8 * UNIT * (1 + e + mu) ** 2 / max(mu, 1e-300)
        return (math.exp(value - error), min(1.0, math.exp(value + error))) if error < 1 else (0.0, 1.0)
    if flat.ranges and len(flat.ranges) == len(flat.leaves) and not flat.mu_squared and not flat.rho:
        return _ranges_delta(flat, e, relative)
    goal = Goal(epsilon=epsilon)

    def ask(both: Sequence[tuple[Convolved, Convolved]]) -> tuple[float, float]:
        return max(down.below(e) for down, _ in both), max(top.above(e) for _, top in both)

    return _refined(flat, goal, ask, lambda high: max(relative * high, 1e-300))


Ask = Callable[[Sequence[tuple[Convolved, Convolved]]], tuple[float, float]]


def _refined(flat: Flat, goal: Goal, ask: Ask, wanted: Callable[[float], float]) -> tuple[float, float]:
    """Halves the lattice until `ask` is as narrow as wanted; raises when memory ends first."""
    plan = _Plan(flat, goal)
    low, high, h = 0.0, math.inf, plan.first_step()
    for attempt in range(_ROUNDS):
        try:
            found = ask(plan.composed(h))
        except ParameterError:
            if math.isfinite(high) or attempt == _ROUNDS - 1:
                if math.isinf(high):
                    raise
                raise _too_narrow(low, high, wanted(high)) from None
            h = plan.coarser(h)
            continue
        low, high = max(low, found[0]), min(high, found[1])
        target = wanted(high)
        if high - low <= target or plan.exact(h) or flat.rho:
            return low, high
        h = plan.next_step(h, (high - low) / target)
    if math.isinf(high):
        return low, high
    raise _too_narrow(low, high, wanted(high))


def _too_narrow(low: float, high: float, target: float) -> ParameterError:
    return ParameterError(
        f"certified within the memory allowed is [{low:.6g}, {high:.6g}]; the width asked, "
        f"{target:.2g}, needs a finer "
        f"lattice than {MOST_POINTS} points. Ask for width >= {high - low:.2g}, or relax delta."
    )


class _Plan:
    """How one flat event is put on lattices: directions, their native step, and a rough saddle point."""

    def __init__(self, flat: Flat, goal: Goal) -> None:
        self.flat, self.goal = flat, goal
        self.times = max(1, sum(n for _, n in flat.leaves) + (1 if flat.mu_squared else 0))
        self.log_tail = min(-46.0, goal.log_delta - 19.0) - math.log(self.times)
        if goal.epsilon is not None:
            self.log_tail = min(self.log_tail, -120.0)
        self.directions = directions(flat, self.log_tail)
        self.native = self._native()

    def _native(self) -> Fraction | None:
        """The coarsest lattice on which all unsampled atoms lie; None if there are none or they do not
        fit one.
        """
        units = [p.atoms.unit for d in self.directions for p, _ in d if p.atoms.loss.size]
        if not units or any(u is None for u in units):
            return None
        found = [u for u in units if u is not None]
        numerator = math.gcd(
            *(u.numerator * (math.lcm(*(v.denominator for v in found)) // u.denominator) for u in found)
        )
        return Fraction(numerator, math.lcm(*(u.denominator for u in found)))

    def exact(self, h: Fraction | float) -> bool:
        """Whether the lattice holds every loss, so that refining it changes nothing."""
        atoms_only = all(not p.continuous for d in self.directions for p, _ in d)
        return atoms_only and self.native is not None and isinstance(h, Fraction) and not self.flat.ranges

    def first_step(self) -> Fraction | float:
        wide = max(self._spread(d) for d in self.directions)
        if self.native is not None and self.exact(self.native):
            if 30 * wide / float(self.native) < MOST_POINTS / 2 and self._fits(self.native):
                return self.native
            self.native = None
        return self._aligned(wide * math.sqrt(2.5e-3 / self.times))

    def coarser(self, h: Fraction | float) -> Fraction | float:
        """A step for when h asks for too much memory."""
        return self._aligned(float(h) * 4)

    def next_step(self, h: Fraction | float, excess: float) -> Fraction | float:
        """A step that should make the bounds `excess` times narrower: second order, unless atoms lie off
        the lattice.
        """
        factor = min(max(1.15 * math.sqrt(excess), 1.3), 16.0) if math.isfinite(excess) else 4.0
        return self._aligned(float(h) / factor)

    def _aligned(self, h: float) -> Fraction | float:
        if self.native is None or float(self.native) < h:
            return h
        return self.native / max(1, math.ceil(float(self.native) / h))

    def _fits(self, h: Fraction) -> bool:
        most = max((float(np.ptp(p.atoms.loss)) for d in self.directions for p, _ in d if p.atoms.loss.size))
        return most / float(h) < MOST_POINTS / 4

    def _spread(self, direction: list[tuple[Pair, int]]) -> float:
        """Rough deviation of the composed loss, from a coarse lattice per pair."""
        variance = 0.0
        for pair, n in direction:
            low, high = pair.span(self.log_tail) if pair.continuous else (0.0, 0.0)
            if pair.atoms.loss.size:
                low, high = min(low, float(pair.atoms.loss.min())), max(high, float(pair.atoms.loss.max()))
            m = upper(cells(pair, max(high - low, 1e-12) / _COARSE, self.log_tail))
            loss = (m.first + np.arange(m.mass.size)) * m.h
            total = float(m.mass.sum())
            mean = float(m.mass @ loss) / total
            variance += n * float(m.mass @ (loss - mean) ** 2) / total
        variance += sum(n * float(e.epsilon) ** 2 / 4 for e, n in self.flat.ranges) + 2 * float(self.flat.rho)
        return math.sqrt(max(variance, 1e-30))

    def composed(self, h: Fraction | float, *, only_above: bool = False) -> list[tuple[Convolved, Convolved]]:
        """For each direction the composition from below and from above (twice from above if only that is
        asked).
        """
        extra = self._extra(float(h))
        result = []
        for direction in self.directions:
            cut = [(cells(pair, h, self.log_tail), n) for pair, n in direction]
            tops: list[Part] = [(upper(c), n) for c, n in cut] + [(top, 1) for _, top in extra]
            if only_above:
                epsilon = None if self.goal.epsilon is None else float(self.goal.epsilon)
                found = convolve(tops, saddle(_coarser(tops), self.goal.log_delta, epsilon))
                result.append((found, found))
                continue
            downs: list[Part] = [(lower(c), n) for c, n in cut] + [(down, 1) for down, _ in extra]
            epsilon = None if self.goal.epsilon is None else float(self.goal.epsilon)
            # The tilted mean, times thousands, needs every cell; the rougher criterion for a delta does not.
            theta = saddle(_coarser(tops) if epsilon is None else tops, self.goal.log_delta, epsilon)
            result.append((convolve(downs, theta), convolve(tops, theta)))
        return result

    def _extra(self, h: float) -> list[tuple[Measure, Measure]]:
        """(below, above) of what has a profile and no pair: zCDP classes and bounded ranges."""
        extra = []
        if self.flat.rho:
            extra.append(_zcdp_measures(self.flat.rho, h, self.log_tail))
        if self.flat.ranges:
            found = [(float(e.epsilon), n) for e, n in self.flat.ranges]
            if ranges.work(found, h) > 3e8:
                raise too_wide(ranges.work(found, h), "the recursion of bounded ranges")
            top, down = ranges.from_profile(ranges.adaptive(found, h))
            extra.append((down, top) if all(e.adaptive for e, _ in self.flat.ranges) else (_halves(found, h), top))
        return extra


def _coarser(parts: list[Part]) -> list[Part]:
    """Measures on a coarser lattice, good enough to choose theta by."""
    result = []
    for m, n in parts:
        step = max(1, m.mass.size // _COARSE)
        size = -(-m.mass.size // step)
        mass = np.pad(m.mass, (0, size * step - m.mass.size)).reshape(size, step)
        at = mass @ np.arange(step)
        total = mass.sum(axis=1)
        mean = round(float(at.sum() / max(total.sum(), 1e-300)))
        # Blocks move to a common point inside; the first is shifted so that the mean stays.
        result.append((Measure(m.h * step, (m.first + mean) // step, total, m.infinite, m.moved), n))
    return result


def _halves(found: list[tuple[float, int]], h: float) -> Measure:
    """A member of the fixed class, rounded down: each range as randomised response of half its width."""
    parts: list[Part] = []
    for e, n in found:
        k = math.ceil(e / 2 / h)
        mass = np.zeros(2 * k + 1)
        mass[0] = 1 / (1 + math.exp(e / 2))
        mass[max(0, 2 * k - 2)] = 1 / (1 + math.exp(-e / 2)) * (1 - 1e-14)
        parts.append((Measure(h, -k, mass, 0.0, 0.0), n))
    plain = convolve(parts, 1e-6)
    loss = (plain.first + np.arange(plain.w.size)) * h
    mass = np.maximum(plain.w - plain.absolute, 0.0) * np.exp(plain.scale - plain.theta * loss) * (1 - plain.relative)
    mass = np.where(mass < 1e-15, 0.0, mass * (1 - 1e-12))
    return Measure(h, plain.first, mass, 0.0, plain.moved)


def _zcdp_measures(rho: Fraction, h: float, log_tail: float) -> tuple[Measure, Measure]:
    """Below: the Gaussian of that rho. Above: the conversion's profile (Canonne, Kamath, Steinke 2020),
    both sides.
    """
    from hubbub.accounting.pairs import GaussianPair

    r = float(rho)
    mu = math.sqrt(2 * r) * (1 - 4 * UNIT)
    below = lower(cells(GaussianPair(mu), h, log_tail))
    reach = math.ceil((r + 2 * math.sqrt(r * -log_tail)) / h) + 1
    if 2 * reach > MOST_POINTS:
        raise too_wide(2 * reach, "one zCDP loss")
    e: Array = np.arange(reach + 1, dtype=np.float64) * h
    value = np.minimum(_log_conversion(r, e), 0.0) * (1 - 1e-13) + 1e-12
    positive = np.minimum(np.exp(value), 1.0)
    x = np.exp(-e[:0:-1])
    negative = np.minimum(1.0, 1 - x + x * positive[:0:-1]) + 4 * UNIT
    both = np.concatenate((negative, positive))
    # A profile is non-increasing and at most 1; the running minimum keeps the best of what was found.
    both = np.minimum.accumulate(np.minimum(both, 1.0))
    profile = ranges.Profile(h, -reach, both, both)
    return below, ranges.from_profile(profile)[0]


def _log_conversion(rho: float, e: Array) -> Array:
    """ln of the zCDP conversion's delta, at the alpha of a bisection per point."""
    low, high = np.full(e.shape, -30.0), np.full(e.shape, 40.0)
    for _ in range(50):
        middle = (low + high) / 2
        excess = np.exp(middle)
        falling = (2 * excess + 1) * rho - e - np.log1p(1 / excess) < 0
        low, high = np.where(falling, middle, low), np.where(falling, high, middle)
    excess = np.exp(low)
    found = excess * ((1 + excess) * rho - e) - np.log1p(excess) + excess * (np.log(excess) - np.log1p(excess))
    return np.asarray(found)


def _invert(delta_at: Callable[[float], float], found: Convolved, delta: float, *, up: bool) -> float:
    """Above: an epsilon with delta_at <= delta. Below: one with delta_at > delta, or 0. By Newton, then
    checked.
    """
    if found.infinite >= delta * (1 - 1e-12) and up:
        return math.inf
    if up and delta_at(0.0) <= delta:
        return 0.0
    # Newton on ln delta, kept inside a bracket; started at the heaviest point of the tilted loss.
    low, high = 0.0, max(0.0, (found.first + found.w.size) * found.h)
    heaviest = (found.first + int(np.argmax(found.w))) * found.h
    epsilon = min(max(0.0, heaviest), high)
    for _ in range(80):
        value, slope = found.middle(epsilon)
        # Far left of the tilted bulk the middle value is magnified round-off; there the bound from above
        # decides.
        left = value > delta or (epsilon < heaviest and found.above(epsilon) > delta)
        low, high = (epsilon, high) if left else (low, epsilon)
        off = math.log(value) - math.log(delta) if value > 0 else -math.inf
        step = off / -slope if value > 0 and slope < 0 else math.inf
        if (abs(step) <= 1e-13 * max(1.0, epsilon) and abs(off) < 0.1) or high - low <= 1e-14 * max(high, 1e-3):
            break
        epsilon = epsilon + step if low < epsilon + step < high else (low + high) / 2
    gap = 1e-12 * max(epsilon, 1e-3)
    for _ in range(200):
        at = epsilon + gap if up else max(0.0, epsilon - gap)
        fits = delta_at(at) <= delta
        if fits if up else not fits:
            return at
        if not up and at == 0.0:
            return 0.0
        gap *= 2
    return math.inf if up else 0.0


def _ranges_epsilon(flat: Flat, delta: float, width: float | None) -> tuple[float, float]:
    found = [(float(e.epsilon), n) for e, n in flat.ranges]
    if len(found) == 1 and not flat.ranges[0][0].adaptive:
        return _fixed_epsilon(found[0], delta)
    top = sum(e * n for e, n in found)

    def ask(profile: ranges.Profile) -> tuple[float, float]:
        return _cross(profile, profile.below, delta, down=True), _cross(profile, profile.above, delta, down=False)

    low, high = _ranges_refined(found, ask, lambda h: width if width is not None else 1e-3 * h)
    if not all(e.adaptive for e, _ in flat.ranges):
        low = 0.0
    return min(low, top), min(high, top * (1 + 4 * UNIT))


def _ranges_delta(flat: Flat, epsilon: float, relative: float) -> tuple[float, float]:
    found = [(float(e.epsilon), n) for e, n in flat.ranges]
    if len(found) == 1 and not flat.ranges[0][0].adaptive:
        value = ranges.fixed_delta(*found[0], epsilon)
        return value * (1 - 1e-9), value * (1 + 1e-9)

    def ask(profile: ranges.Profile) -> tuple[float, float]:
        e = (profile.first + np.arange(profile.above.size)) * profile.h
        k = min(int(np.searchsorted(e, epsilon, side="right")), e.size - 1)
        x = (math.exp(epsilon) - math.exp(e[k - 1])) / (math.exp(e[k]) - math.exp(e[k - 1]))
        x = min(max(x, 0.0), 1.0)
        top = (1 - x) * profile.above[k - 1] + x * profile.above[k]
        return float(profile.below[k]), float(top) * (1 + 1e-12)

    low, high = _ranges_refined(found, ask, lambda h: relative * h)
    return (low if all(e.adaptive for e, _ in flat.ranges) else 0.0), high


def _ranges_refined(
    found: list[tuple[float, int]],
    ask: Callable[[ranges.Profile], tuple[float, float]],
    wanted: Callable[[float], float],
) -> tuple[float, float]:
    """Finer lattices, as common parts of the smallest range, until narrow enough or too much work."""
    smallest = Fraction(min(e for e, _ in found)).limit_denominator(10**6)
    low, high, m = 0.0, math.inf, 8
    while True:
        h = float(smallest) / m
        if ranges.work(found, h) > 6e8:
            return low, high
        pair = ask(ranges.adaptive(found, h))
        low, high = max(low, pair[0]), min(high, pair[1])
        if high - low <= wanted(high):
            return low, high
        m *= 2


def _cross(profile: ranges.Profile, v: Array, delta: float, *, down: bool) -> float:
    """Where the profile falls through delta: on the chord above; below at the last lattice point still
    over it.
    """
    e: Array = np.arange(profile.first, profile.first + v.size, dtype=np.float64) * profile.h
    over = np.flatnonzero(v > delta)
    if not over.size:
        return 0.0
    k = int(over[-1])
    if down:
        # The true curve is convex in e^e and above these values, so beyond point k only monotonicity is left.
        x = math.exp(e[k]) + (v[k] - delta) * _slope_down(e, v, k)
        return max(0.0, math.log(max(x, math.exp(e[k]))) * (1 - 4 * UNIT))
    if k + 1 >= v.size:
        return math.inf
    x0, x1 = math.exp(e[k]), math.exp(e[k + 1])
    return max(0.0, math.log(x0 + (v[k] - delta) / (v[k] - v[k + 1]) * (x1 - x0)) * (1 + 8 * UNIT) + 4 * UNIT)


def _slope_down(e: Array, v: Array, k: int) -> float:
    """dx / d(-delta) along the lattice curve itself: the lattice strategy's delta *is* linear between
    lattice points.
    """
    if k + 1 >= v.size or v[k] <= v[k + 1]:
        return 0.0
    return float((math.exp(e[k + 1]) - math.exp(e[k])) / (v[k] - v[k + 1])) * (1 - 1e-12)


def _fixed_epsilon(one: tuple[float, int], delta: float) -> tuple[float, float]:
    low, high = 0.0, one[0] * one[1]
    if ranges.fixed_delta(*one, 0.0) <= delta:
        return 0.0, 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if ranges.fixed_delta(*one, middle) > delta else (low, middle)
    # gammaln and exponentials are good to about 1e-12 at these sizes; 1e-9 is given away on either side.
    return low * (1 - 1e-9), high * (1 + 1e-9)


def composed(event: ev.Event, delta: Fraction) -> list[Convolved]:
    """The composed losses from above, one per choice and direction, tilted for delta: for plots and
    estimates.
    """
    result = []
    for flat in flatten(event):
        plan = _Plan(flat, Goal(delta=delta))
        result += [top for _, top in plan.composed(plan.first_step(), only_above=True)]
    return result


def bounds(event: ev.Event, delta: Number, *, width: float | None = None) -> tuple[float, float]:
    """Certified (lower, upper) on the smallest epsilon at which the event is (epsilon, delta)-DP.

    `width=None` asks for 1e-3 of epsilon. Raises ParameterError for a delta outside [0, 1), a width that is
    not positive, and for what would not fit into 500 MB.
    """
    if width is not None and not (0 < width < math.inf):
        raise ParameterError(f"width = {width} was asked; it must be a positive number. Leave it out for 1e-3 epsilon.")
    return epsilon_bounds(event, probability(delta, "delta"), width)
