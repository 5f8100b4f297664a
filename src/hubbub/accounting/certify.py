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
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev, ranges
from hubbub.accounting.certified_ranges import fixed_epsilon, fixed_ranges, open_ranges, ranges_delta, ranges_epsilon
from hubbub.accounting.convolution import Convolved, Part, convolve, saddle
from hubbub.accounting.decompose import Flat, directions, extreme, flatten
from hubbub.accounting.lattice import MOST_POINTS, Measure, cells, lower, too_wide, upper
from hubbub.accounting.normal import epsilon_of_mu, log_delta_of_mu
from hubbub.accounting.outcomes import Outcomes, crossing, outcomes
from hubbub.accounting.pairs import UNIT, Pair
from hubbub.accounting.rational import known_delta, known_epsilon, pure_bounds
from hubbub.accounting.rounding import float_down, float_up, root_up
from hubbub.errors import ParameterError

__all__ = [
    "LEAST",
    "certified_before",
    "certified_delta",
    "certified_epsilon",
    "composed",
    "far",
    "invert",
    "lattice_step",
    "upper_epsilon",
]

Array = NDArray[np.float64]
_COARSE = 1500
_ROUNDS = 8
# The smallest delta that floats are asked about.
LEAST = Fraction(1, 10**290)
# The smallest delta at a given epsilon that is told from 0, and the tails tried for it, as logarithms.
LEAST_DELTA = 1e-270
_TAILS = (-120.0, -300.0, -640.0)
# Tilts, as multiples of the first choice, for losses of which refinement changes nothing.
_TILTS = (1.5, 2.0, 3.0, 0.7)


@dataclass(frozen=True)
class Goal:
    """What is asked: epsilon at a delta, or delta at an epsilon."""

    delta: Fraction | None = None
    epsilon: Fraction | None = None
    # For an epsilon: ln of the tails that may be cut off, which says down to which deltas the answer is of use.
    log_tail: float = -120.0

    @property
    def log_delta(self) -> float:
        return math.log(self.delta) if self.delta else -23.0


@lru_cache(maxsize=256)
def certified_epsilon(event: ev.Event, delta: Fraction, width: float | None) -> tuple[float, float]:
    """(lower, upper) on the smallest epsilon at delta, of a width of at most `width` (1e-3 epsilon if
    None).
    """
    if delta == 0:
        return pure_bounds(event)
    cap = known_epsilon(event, delta)
    if delta < LEAST:
        # Floats end here; epsilon only falls with delta.
        return min(cap, certified_epsilon(event, LEAST, width)[0]), cap
    bounds = [_epsilon_of(flat, delta, width, cap) for flat in flatten(event)]
    low, high = max(f[0] for f in bounds), min(cap, max(f[1] for f in bounds))
    _remember(event, delta, min(low, high), high)
    return min(low, high), high


# The narrowest interval that was certified, per event and delta: all of them are true, so their intersection is.
_certified: dict[tuple[ev.Event, Fraction], tuple[float, float]] = {}
_MOST_REMEMBERED = 512


def _remember(event: ev.Event, delta: Fraction, low: float, high: float) -> None:
    before = _certified.pop((event, delta), (0.0, math.inf))
    while len(_certified) >= _MOST_REMEMBERED:
        _certified.pop(next(iter(_certified), (event, delta)), None)
    _certified[event, delta] = max(low, before[0]), min(high, before[1])


def certified_before(event: ev.Event, delta: Fraction) -> tuple[float, float]:
    """The narrowest interval that `certified_epsilon` found for these in this process; (0, inf) before the first."""
    return _certified.get((event, delta), (0.0, math.inf))


@lru_cache(maxsize=256)
def upper_epsilon(event: ev.Event, delta: Fraction, step: float | None = None) -> float:
    """The upper bound alone, on one lattice: certified like `bounds`, and quick; with the same `step`
    (see `lattice_step`) also smooth in the event's parameters.
    """
    if delta == 0:
        return min(known_epsilon(event, delta), pure_bounds(event)[1])
    # A caller that names the step wants the lattice's own bound: the rational routes cost more than it does.
    known = known_epsilon(event, delta) if step is None or delta < LEAST else math.inf
    if delta < LEAST:
        return known
    worst = 0.0
    for flat in flatten(event):
        if flat.gaussian_only or flat.ranges or flat.rho or far(flat):
            worst = max(worst, _epsilon_of(flat, delta, None, known)[1])
            continue
        plan = Plan(flat, Goal(delta=delta))
        if (few := plan.few()) is not None:
            worst = max(worst, *(crossing(o.above, float_down(delta), plan.top(), up=True) for o in few))
            continue
        try:
            tops = [top for _, top in plan.composed(step or plan.first_step(), only_above=True)]
        except ParameterError:
            tops = [top for _, top in plan.composed(plan.coarser(plan.first_step()), only_above=True)]
        worst = max(worst, *(invert(top.above, top, float(delta), up=True) for top in tops))
    return min(worst, known)


def lattice_step(event: ev.Event, delta: Fraction) -> float | None:
    """The step `upper_epsilon` would choose, or None where losses have a lattice of their own or need
    none.
    """
    steps = []
    for flat in flatten(event):
        if not (flat.gaussian_only or flat.ranges or flat.rho or far(flat)):
            plan = Plan(flat, Goal(delta=delta))
            steps.append(plan.first_step() if plan.native is None and plan.few() is None else Fraction(0))
    return min(float(s) for s in steps) if steps and all(isinstance(s, float) for s in steps) else None


@lru_cache(maxsize=256)
def certified_delta(event: ev.Event, epsilon: Fraction, relative: float) -> tuple[float, float]:
    """(lower, upper) on the smallest delta at epsilon, within `relative` of each other where that can be had.

    Never raises for want of width: a delta below 1e-270 is beyond floats, and the interval then says [0, that].
    """
    if (largest := pure_bounds(event)[1]) < math.inf and epsilon >= Fraction(largest):
        return 0.0, 0.0
    cap = known_delta(event, epsilon)
    bounds = [_delta_of(flat, epsilon, relative) for flat in flatten(event)]
    low, high = max(f[0] for f in bounds), min(cap, max(f[1] for f in bounds))
    return min(low, high), high


def _epsilon_of(flat: Flat, delta: Fraction, width: float | None, cap: float) -> tuple[float, float]:
    if (easy := _eased(flat)) is not None:
        # What floats cannot hold is left out below, and above only the rational routes speak.
        return (_epsilon_of(easy, delta, width, cap)[0] if easy.any else 0.0), math.inf
    if flat.rho and not flat.leaves and not flat.mu_squared:
        member = Flat(2 * flat.rho, Fraction(0), ())
        return _epsilon_of(member, delta, width, cap)[0], math.inf
    if flat.gaussian_only:
        mu, d = float(root_up(flat.mu_squared)), float(delta)
        low = epsilon_of_mu(math.nextafter(math.nextafter(mu, 0.0), 0.0), d * (1 + 2 * UNIT), side=-1)
        return low, epsilon_of_mu(mu, d * (1 - 2 * UNIT), side=1)
    if (fixed := fixed_ranges(flat)) is not None:
        return fixed_epsilon(*fixed, delta)
    if (both := open_ranges(flat)) is not None:
        return _epsilon_of(both[0], delta, width, cap)[0], _epsilon_of(both[1], delta, width, cap)[1]
    if flat.ranges and len(flat.ranges) == len(flat.leaves) and not flat.mu_squared and not flat.rho:
        return ranges_epsilon(flat, float(delta), width)
    goal = Goal(delta=delta)
    if (few := Plan(flat, goal).few()) is not None:
        top, down, up = Plan(flat, goal).top(), float_up(delta), float_down(delta)
        return (
            max(crossing(o.below, down, top, up=False) for o in few),
            max(crossing(o.above, up, top, up=True) for o in few),
        )

    def ask(both: Sequence[tuple[Convolved, Convolved]]) -> tuple[float, float]:
        d = float(delta)
        low = max(invert(down.below, down, d, up=False) for down, _ in both)
        return low, max(invert(top.above, top, d, up=True) for _, top in both)

    wanted = (lambda high: max(1e-3 * high, 1e-12)) if width is None else (lambda high: width)
    return _refined(flat, goal, ask, wanted, cap, strict=width is not None)


def _delta_of(flat: Flat, epsilon: Fraction, relative: float) -> tuple[float, float]:
    e = float(epsilon)
    if (easy := _eased(flat)) is not None:
        return (_delta_of(easy, epsilon, relative)[0] if easy.any else 0.0), 1.0
    if flat.rho and not flat.leaves and not flat.mu_squared:
        return _delta_of(Flat(2 * flat.rho, Fraction(0), ()), epsilon, relative)[0], 1.0
    if flat.gaussian_only:
        if not flat.mu_squared:
            return 0.0, 0.0
        mu = float(root_up(flat.mu_squared))
        value, error = log_delta_of_mu(mu, e)
        error += 8 * UNIT * (1 + e + mu) ** 2 / max(mu, 1e-300)
        return (math.exp(value - error), min(1.0, math.exp(value + error))) if error < 1 else (0.0, 1.0)
    if (fixed := fixed_ranges(flat)) is not None:
        value, error = ranges.fixed_delta(*fixed, e)
        return max(0.0, value - error), value + error
    if (both := open_ranges(flat)) is not None:
        return _delta_of(both[0], epsilon, relative)[0], _delta_of(both[1], epsilon, relative)[1]
    if flat.ranges and len(flat.ranges) == len(flat.leaves) and not flat.mu_squared and not flat.rho:
        return ranges_delta(flat, e, relative)
    goal = Goal(epsilon=epsilon)
    if (few := Plan(flat, goal).few()) is not None:
        return (
            max(o.below(float_up(epsilon)) for o in few),
            max(o.above(float_down(epsilon)) for o in few),
        )

    def ask(both: Sequence[tuple[Convolved, Convolved]]) -> tuple[float, float]:
        return max(down.below(e) for down, _ in both), max(top.above(e) for _, top in both)

    low, high = 0.0, 1.0
    for log_tail in _TAILS:
        # What is cut off counts as infinite loss above: near it deeper tails narrow delta, finer steps do not.
        floor = max(LEAST_DELTA, 64 * (1 + sum(n for _, n in flat.leaves)) * math.exp(log_tail))
        bracket = _refined(
            flat,
            Goal(None, epsilon, log_tail),
            ask,
            lambda x, floor=floor: max(relative * x, floor),  # type: ignore[misc]
            1.0,
            strict=False,
        )
        low, high = max(low, bracket[0]), min(high, bracket[1])
        if relative * high >= floor:
            break
    return low, high


Ask = Callable[[Sequence[tuple[Convolved, Convolved]]], tuple[float, float]]


def _eased(flat: Flat) -> Flat | None:
    """The event without the leaves that floats cannot hold, or None if there are none."""
    kept = tuple((e, n) for e, n in flat.leaves if not extreme(e))
    mu_squared = flat.mu_squared
    if mu_squared and not Fraction(1, 10**200) < mu_squared < (10**12 if flat.gaussian_only else 900):
        mu_squared = Fraction(0)
    alone = not flat.leaves and not mu_squared
    rho = flat.rho if alone or not flat.rho or Fraction(1, 10**100) < flat.rho < 200 else Fraction(0)
    if len(kept) == len(flat.leaves) and mu_squared == flat.mu_squared and rho == flat.rho:
        return None
    return Flat(mu_squared, rho, kept)


def far(flat: Flat) -> bool:
    """Whether some of the event is beyond floats."""
    return _eased(flat) is not None


def _refined(
    flat: Flat, goal: Goal, ask: Ask, wanted: Callable[[float], float], cap: float, *, strict: bool
) -> tuple[float, float]:
    """Refines the lattice until `ask` is as narrow as wanted. When memory ends first, raises if `strict`, else returns
    what was found. `cap` is an upper bound known before.
    """
    low, high = _halved(Plan(flat, goal), ask, wanted, cap, strict=strict)
    if any(isinstance(e, ev.SampledWithoutReplacement) for e, _ in flat.leaves):
        # The dominating pair is not known to be met by any two data sets; from below two actual ones count.
        actual = _halved(Plan(flat, goal, attained=True), ask, wanted, cap, strict=False)
        low = min(low, actual[0])
    return low, high


def _halved(plan: Plan, ask: Ask, wanted: Callable[[float], float], cap: float, *, strict: bool) -> tuple[float, float]:
    low, high, h = 0.0, cap, plan.first_step()
    for attempt in range(_ROUNDS):
        try:
            bound = ask(plan.composed(h))
        except ParameterError:
            if high < cap or attempt == _ROUNDS - 1:
                break
            h = plan.coarser(h)
            continue
        before = high - low
        low, high = max(low, bound[0]), min(high, bound[1])
        if high - low <= wanted(high) or plan.flat.rho:
            return low, high
        if plan.exact(h):
            # Round-off alone keeps them apart: another tilt brings other losses to the fore.
            low, high = _tilted(plan, h, ask, wanted, low, high)
            break
        if attempt > 3 and high - low > 0.995 * before:
            break
        h = plan.next_step(h, (high - low) / wanted(high))
    if not strict or high - low <= wanted(high):
        return low, high
    raise _too_narrow(low, high, wanted(high))


def _tilted(
    plan: Plan, h: Fraction | float, ask: Ask, wanted: Callable[[float], float], low: float, high: float
) -> tuple[float, float]:
    for tilt in _TILTS:
        if high - low <= wanted(high):
            break
        with suppress(ParameterError):
            bound = ask(plan.composed(h, tilt=tilt))
            low, high = max(low, bound[0]), min(high, bound[1])
    return low, high


def _too_narrow(low: float, high: float, target: float) -> ParameterError:
    return ParameterError(
        f"certified within the memory allowed is [{low:.6g}, {high:.6g}]; the width asked, "
        f"{target:.2g}, needs a finer "
        f"lattice than {MOST_POINTS} points. Ask for width >= {high - low:.2g}, or relax delta."
    )


class Plan:
    """How one flat event is put on lattices: directions, their native step, and a rough saddle point."""

    def __init__(self, flat: Flat, goal: Goal, *, attained: bool = False) -> None:
        self.flat, self.goal = flat, goal
        self.times = max(1, sum(n for _, n in flat.leaves) + (1 if flat.mu_squared else 0))
        # What is cut off counts as infinite loss, in estimates too: at most 1e-11 of delta.
        self.log_tail = min(-46.0, goal.log_delta - 30.0) - math.log(self.times)
        if goal.epsilon is not None:
            self.log_tail = min(self.log_tail, goal.log_tail)
        self.directions = directions(flat, self.log_tail, attained=attained)
        self.native = self._native()

    def few(self) -> list[Outcomes] | None:
        """Each direction's outcomes one by one, or None where that is too much, or not all there is."""
        if self.flat.rho or self.flat.ranges:
            return None
        if any(isinstance(e, ev.SampledWithoutReplacement) for e, _ in self.flat.leaves):
            return None
        drawn = [outcomes(d) for d in self.directions]
        kept = [o for o in drawn if o is not None]
        return kept if len(kept) == len(drawn) else None

    def top(self) -> float:
        """More than the largest finite loss of atoms."""
        sums = [sum(n * float(p.atoms.loss.max(initial=0.0)) for p, n in d) for d in self.directions]
        return max(0.0, *sums) * (1 + 1e-9) + 1e-6

    def _native(self) -> Fraction | None:
        """The coarsest lattice on which all unsampled atoms lie; None if there are none or they do not
        fit one.
        """
        units = [p.atoms.unit for d in self.directions for p, _ in d if p.atoms.loss.size]
        if not units or any(u is None for u in units):
            return None
        spacings = [u for u in units if u is not None]
        numerator = math.gcd(
            *(u.numerator * (math.lcm(*(v.denominator for v in spacings)) // u.denominator) for u in spacings)
        )
        return Fraction(numerator, math.lcm(*(u.denominator for u in spacings)))

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
        power = 1.0 if self.flat.ranges else 0.5
        factor = min(max(1.15 * excess**power, 1.3), 16.0) if math.isfinite(excess) else 4.0
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

    def composed(
        self, h: Fraction | float, *, only_above: bool = False, tilt: float = 1.0
    ) -> list[tuple[Convolved, Convolved]]:
        """For each direction the composition from below and from above (twice from above if only that is
        asked), at `tilt` times the usual tilt.
        """
        extra = self._extra(float(h))
        result = []
        for direction in self.directions:
            cut = [(cells(pair, h, self.log_tail), n) for pair, n in direction]
            tops: list[Part] = [(upper(c), n) for c, n in cut] + [(top, 1) for _, top in extra]
            if only_above:
                epsilon = None if self.goal.epsilon is None else float(self.goal.epsilon)
                composed = convolve(tops, saddle(_coarser(tops), self.goal.log_delta, epsilon))
                result.append((composed, composed))
                continue
            downs: list[Part] = [(lower(c), n) for c, n in cut] + [(down, 1) for down, _ in extra]
            epsilon = None if self.goal.epsilon is None else float(self.goal.epsilon)
            # The tilted mean, times thousands, needs every cell; the rougher criterion for a delta does not.
            theta = tilt * saddle(_coarser(tops) if epsilon is None else tops, self.goal.log_delta, epsilon)
            result.append((convolve(downs, theta), convolve(tops, theta)))
        return result

    def _extra(self, h: float) -> list[tuple[Measure, Measure]]:
        """(below, above) of what has a profile and no pair: zCDP classes and bounded ranges."""
        extra = []
        if self.flat.rho:
            extra.append(_zcdp_measures(self.flat.rho, h, self.log_tail))
        if self.flat.ranges:
            named = [(float(e.epsilon), n) for e, n in self.flat.ranges]
            if ranges.work(named, h) > 3e8:
                raise too_wide(ranges.work(named, h), "the recursion of bounded ranges")
            top, down = ranges.from_profile(ranges.adaptive(named, h))
            extra.append((down, top))
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
    exponents = excess * ((1 + excess) * rho - e) - np.log1p(excess) + excess * (np.log(excess) - np.log1p(excess))
    return np.asarray(exponents)


def invert(delta_at: Callable[[float], float], composed: Convolved, delta: float, *, up: bool) -> float:
    """Above: an epsilon with delta_at <= delta. Below: one with delta_at > delta, or 0. By Newton, then
    checked.
    """
    if composed.infinite >= delta * (1 - 1e-12) and up:
        return math.inf
    if up and delta_at(0.0) <= delta:
        return 0.0
    # Newton on ln delta, kept inside a bracket; started at the heaviest point of the tilted loss.
    low, high = 0.0, max(0.0, (composed.first + composed.w.size) * composed.h)
    heaviest = (composed.first + int(np.argmax(composed.w))) * composed.h
    epsilon = min(max(0.0, heaviest), high)
    for _ in range(80):
        value, slope = composed.middle(epsilon)
        # Far left of the tilted bulk the middle value is magnified round-off; there the bound from above
        # decides.
        left = value > delta or (epsilon < heaviest and composed.above(epsilon) > delta)
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


def composed(event: ev.Event, delta: Fraction) -> list[Convolved]:
    """The composed losses from above, one per choice and direction, tilted for delta: for plots and
    estimates.
    """
    result = []
    for flat in flatten(event):
        plan = Plan(flat, Goal(delta=delta))
        result += [top for _, top in plan.composed(plan.first_step(), only_above=True)]
    return result
