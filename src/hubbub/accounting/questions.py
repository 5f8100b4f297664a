"""Questions about an event: epsilon at a delta, delta at an epsilon, curves, Renyi orders, calibration.

`epsilon` and `delta` are exact where there is a closed form or few outcomes, contour inversions for sampled Gaussian
noise, extrapolated lattices where atoms share a lattice (all to about ten digits), and otherwise the certified *upper*
bound (sampled Laplace noise, classes without one worst pair, epsilons at the very end of the losses).
`bounds` and `calibrate` are certified, and no estimate lies outside its `bounds`, whichever is asked first: see
`_clipped`. Neighbours: the event's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, amount, probability
from hubbub.accounting.certify import (
    LEAST,
    certified_before,
    certified_delta,
    certified_epsilon,
    far,
    lattice_step,
    upper_epsilon,
)
from hubbub.accounting.contour import Term, delta_estimate, epsilon_estimate, terms
from hubbub.accounting.decompose import Flat, flatten
from hubbub.accounting.exact import cost
from hubbub.accounting.extrapolate import delta_near, epsilon_near
from hubbub.accounting.normal import decidable, delta_of_mu, epsilon_of_mu, gaussian_fits
from hubbub.accounting.rational import known_epsilon, pure_bounds
from hubbub.accounting.rounding import float_down, float_up, root_up
from hubbub.errors import ParameterError

__all__ = ["Curve", "bounds", "calibrate", "delta", "delta_bounds", "epsilon", "mu", "profile", "renyi", "tradeoff"]

Array = NDArray[np.float64]
# The width of delta's bounds that estimates are held in, and up to which part of epsilon no width is too narrow.
_RELATIVE = 1e-2
_ALIKE = 2e-9
# Steps by regula falsi before a bracket is halved only.
_STEPS = 16


@dataclass(frozen=True)
class Curve:
    """A curve as two arrays of one length: delta over epsilon, or the attacker's errors against each
    other.
    """

    x: Array
    y: Array


def epsilon(event: ev.Event, delta: Number) -> float:
    """The smallest epsilon at which the event is (epsilon, delta)-DP; never outside `bounds`, asked before or after.

    >>> round(epsilon(ev.Repeated(ev.Gaussian(50), 1000), "1e-6"), 9)
    2.92160059

    Raises ParameterError for delta outside [0, 1).
    """
    d = probability(delta, "delta")
    if d == 0:
        return pure_bounds(event)[1]
    near = _quick_epsilon(event, d)
    if near is not None and _contours(event):
        # A contour accounts for its own errors, in a tenth of the time of a certificate: used where there is one.
        return _clipped(near, certified_before(event, d))
    certified = _narrowest(certified_epsilon(event, d, None), certified_before(event, d))
    near = near if near is not None else _dear_epsilon(event, d)
    return _clipped(near, certified) if near is not None else certified[1]


def bounds(event: ev.Event, delta: Number, *, width: float | None = None) -> tuple[float, float]:
    """Certified (lower, upper) on the smallest epsilon at which the event is (epsilon, delta)-DP.

    `width=None` asks for 1e-3 of epsilon, and returns a true but wider interval where that would not fit into
    500 MB. Raises ParameterError for a delta outside [0, 1), a width that is not positive, and a width that was asked
    and would not fit.
    """
    if width is not None and not (0 < width < math.inf):
        raise ParameterError(f"width = {width} was asked; it must be a positive number. Leave it out for 1e-3 epsilon.")
    d = probability(delta, "delta")
    if d == 0:
        return pure_bounds(event)
    near, known = _quick_epsilon(event, d), (0.0, math.inf)
    if near is None:
        # Every estimate is clipped to these: where they do, no estimate is needed.
        own = certified_epsilon(event, d, None)
        known = _narrowest(own, certified_before(event, d))
        enough = width is None or known[1] - known[0] <= width
        if (enough and known == own) or math.isinf(own[1]):
            return own
        near = _dear_epsilon(event, d)
        if enough:
            return _held(known, near)
    certified = _narrowest(certified_epsilon(event, d, width), certified_before(event, d))
    low, high = _held(certified, near)
    if width is not None and high - low > max(width, _ALIKE * high) and (low, high) != certified:
        raise ParameterError(
            f"a width of {width} was asked; certified is [{certified[0]:.12g}, {certified[1]:.12g}], and the estimate "
            f"is {near:.12g}. Leave the width out for an interval that holds both."
        )
    return low, high


def delta_bounds(event: ev.Event, epsilon: Number, relative: float = _RELATIVE) -> tuple[float, float]:
    """Certified (lower, upper) on the smallest delta at epsilon, within `relative` of each other where that can be had.

    Never raises for want of width: a delta below 1e-270 is beyond floats, and the interval then says [0, that].
    """
    e = amount(epsilon, "epsilon")
    near = None if _none_lost(event, e) else _quick_delta(event, e)
    if near is None:
        low, high = certified_delta(event, e, _RELATIVE)
        if relative >= _RELATIVE or high - low <= relative * high:
            return low, high
        near = _dear_delta(event, e)
    return _held(certified_delta(event, e, relative), near)


def _clipped(near: float, certified: tuple[float, float]) -> float:
    """An estimate as it is given: inside what is certified.

    Let I and J hold the truth. The clip of `near` to I lies in the hull of J and `near`: where it is not `near`, it is
    the end of I between `near` and the truth. So an estimate that is given as the first, and bounds that are given as
    the second, agree for all I and J, whichever is asked first and however wrong `near` may be.
    """
    return min(max(near, certified[0]), certified[1])


def _held(certified: tuple[float, float], near: float | None) -> tuple[float, float]:
    """Bounds as they are given: the hull of what is certified and the estimate. It holds the truth, too."""
    return certified if near is None else (min(certified[0], near), max(certified[1], near))


def _narrowest(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return max(one[0], other[0]), min(one[1], other[1])


def _contours(event: ev.Event) -> bool:
    """Whether every quick estimate of the event is a contour's."""
    return not any(flat.gaussian_only or _sampled_once(flat) is not None for flat in flatten(event))


def _quick_epsilon(event: ev.Event, d: Fraction) -> float | None:
    """The estimate where it costs less than a certificate: closed forms and contours."""
    return _worst(event, lambda flat: None if d < LEAST else _quick_epsilon_of(flat, d))


def _quick_epsilon_of(flat: Flat, d: Fraction) -> float | None:
    if flat.gaussian_only:
        return epsilon_of_mu(float(root_up(flat.mu_squared)), float(d))
    if (once := _sampled_once(flat)) is not None:
        return _epsilon_once(*once, float(d))
    parts = terms(flat)
    return _contour(parts, float(d)) if parts is not None and d >= Fraction(1, 10**200) else None


def _dear_epsilon(event: ev.Event, d: Fraction) -> float | None:
    """The estimate that costs several certificates: extrapolated lattices."""

    def bound_of(flat: Flat) -> float | None:
        quick = _quick_epsilon_of(flat, d)
        return quick if quick is not None else epsilon_near(flat, d)

    return _worst(event, lambda flat: None if d < LEAST else bound_of(flat))


def _worst(event: ev.Event, bound_of: Callable[[Flat], float | None]) -> float | None:
    """The largest over all choices; None where one has no estimate."""
    worst = 0.0
    for flat in flatten(event):
        bound = None if far(flat) else bound_of(flat)
        if bound is None:
            return None
        worst = max(worst, bound)
    return worst


def _sampled_once(flat: Flat) -> tuple[float, float] | None:
    """(mu, rate) where the event is one sampled Gaussian, once: its contour does not end, but its form is closed."""
    parts = terms(flat) if len(flat.leaves) == 1 and flat.leaves[0][1] == 1 and not flat.mu_squared else None
    return (1 / parts[0].sigma, parts[0].rate) if parts else None


def _delta_once(mu: float, rate: float, epsilon: float) -> float:
    """rate delta_G(ln(1 + (e^epsilon - 1)/rate)) (Balle, Barthe, Gaboardi 2018, Theorem 8): removal, the worse side."""
    return rate * delta_of_mu(mu, math.log1p(math.expm1(epsilon) / rate)) if epsilon < 700 else 0.0


def _epsilon_once(mu: float, rate: float, delta: float) -> float:
    return math.log1p(rate * math.expm1(min(epsilon_of_mu(mu, delta / rate), 700.0))) if delta < rate else 0.0


def _contour(parts: Sequence[Term], delta: float) -> float | None:
    """The contour's epsilon, or None where the loss is too narrow for it."""
    try:
        return epsilon_estimate(parts, delta)
    except (ParameterError, OverflowError):
        return None


def _contour_delta(parts: Sequence[Term], epsilon: float) -> float | None:
    try:
        return delta_estimate(parts, epsilon)
    except (ParameterError, OverflowError):
        return None


def delta(event: ev.Event, epsilon: Number) -> float:
    """The smallest delta at which the event is (epsilon, delta)-DP; never outside `delta_bounds`.

    >>> delta(ev.PureDP(1), 1)
    0.0

    Raises ParameterError for a negative epsilon.
    """
    e = amount(epsilon, "epsilon")
    if _none_lost(event, e):
        return 0.0
    near = _quick_delta(event, e)
    if near is not None and _contours(event):
        return near
    certified = certified_delta(event, e, _RELATIVE)
    near = near if near is not None else _dear_delta(event, e)
    return _clipped(near, certified) if near is not None else certified[1]


def _none_lost(event: ev.Event, e: Fraction) -> bool:
    """Whether no loss is larger than epsilon."""
    largest = pure_bounds(event)[1]
    return largest < math.inf and e >= Fraction(largest)


def _quick_delta(event: ev.Event, e: Fraction) -> float | None:
    return _worst(event, lambda flat: _quick_delta_of(flat, e))


def _quick_delta_of(flat: Flat, e: Fraction) -> float | None:
    if flat.gaussian_only:
        return delta_of_mu(float(root_up(flat.mu_squared)), float(e))
    if (once := _sampled_once(flat)) is not None:
        return _delta_once(*once, float(e))
    parts = terms(flat)
    return _contour_delta(parts, float(e)) if parts is not None else None


def _dear_delta(event: ev.Event, e: Fraction) -> float | None:
    def bound_of(flat: Flat) -> float | None:
        quick = _quick_delta_of(flat, e)
        return quick if quick is not None else delta_near(flat, e)

    return _worst(event, bound_of)


def profile(event: ev.Event, epsilons: Sequence[float] | None = None) -> Curve:
    """delta at many epsilons (as many as given; else 41 from 0 to the epsilon at delta = 1e-9)."""
    if epsilons is None:
        pure = cost(event).epsilon
        top = bounds(event, 1e-9, width=None)[1] if pure is None else float(pure)
        points = np.linspace(0.0, top if math.isfinite(top) else 10.0, 41)
    else:
        points = np.asarray([float(amount(e, "epsilon")) for e in epsilons])
    return Curve(points, np.asarray([delta(event, float(e)) for e in points]))


def tradeoff(event: ev.Event, points: int = 101) -> Curve:
    """The f-DP curve: for each false-alarm rate alpha the least miss rate an attack can have.

    f(alpha) = sup over epsilon of max(0, 1 - delta - e^epsilon alpha, e^(-epsilon) (1 - delta - alpha))
    (Dong, Roth, Su 2022), here the supremum over the points of `profile`.
    """
    curve = profile(event)
    alpha = np.linspace(0.0, 1.0, points)
    e, d = np.exp(curve.x)[:, None], curve.y[:, None]
    best = np.maximum(1 - d - e * alpha, (1 - d - alpha) / e).max(axis=0)
    return Curve(alpha, np.maximum(best, 0.0))


def mu(event: ev.Event) -> Fraction:
    """The exact-from-above mu of Gaussian DP. Raises ParameterError unless the event is built of
    Gaussian noise.
    """
    parts = flatten(event)
    if not all(f.gaussian_only for f in parts):
        raise ParameterError("only events built of Gaussian noise have a known mu. Ask for `epsilon` or `tradeoff`.")
    return max(root_up(f.mu_squared) for f in parts)


def renyi(event: ev.Event, orders: Sequence[float]) -> Array:
    """Renyi divergences D_alpha of the worst direction at orders alpha > 1: at least the truth, and within 2e-9 of it.

    Never above the largest loss nor, where the event is rho-zCDP, alpha rho; where losses are beyond floats (above 400,
    a Gaussian mu above 1000, below 1e-140) the lesser of these two, or infinity.

    >>> renyi(ev.Gaussian(2), [64]).tolist()
    [8.0]

    Raises ParameterError for orders <= 1 and for classes without one worst pair (zCDP, bounded range),
    whose bound is rho alpha: ask for `rho`.
    """
    from hubbub.accounting.divergence import leaf_divergence

    alphas = np.asarray(orders, dtype=np.float64)
    if alphas.size == 0 or not np.all(alphas > 1) or not np.all(np.isfinite(alphas)):
        raise ParameterError(f"orders = {orders} were asked; allowed are finite numbers above 1.")
    flats = flatten(event)
    if any(flat.rho or flat.ranges for flat in flats):
        raise ParameterError("a zCDP or bounded-range event has no Renyi curve but alpha rho: ask for `rho`.")
    whole, most = cost(event), pure_bounds(event)[1]

    def at(alpha: float) -> float:
        gaussian = (float_up(Fraction(alpha) * flat.mu_squared / 2) for flat in flats)
        parts = ([n * leaf_divergence(leaf, alpha) for leaf, n in flat.leaves] for flat in flats)
        # Sums of floats are rounded; a unit in the last place up keeps them from above.
        sums = (math.nextafter(math.fsum([g, *p]), math.inf) if p else g for g, p in zip(gaussian, parts, strict=True))
        zcdp = math.inf if whole.delta else float_up(Fraction(alpha) * whole.rho)
        return min(max(sums), most, zcdp)

    return np.asarray([at(float(alpha)) for alpha in alphas.ravel()]).reshape(alphas.shape)


def calibrate(make: Callable[[float], ev.Event], epsilon: Number, delta: Number) -> float:
    """The parameter at which make(parameter) just is (epsilon, delta)-DP, found on the safe side.

    `make` is any family that gets more, or less, private as its parameter grows; the direction is found
    out. The answer is to the last float for Gaussian and pure families, else to 10 digits where the
    certified upper bound allows; it is always one at which the upper bound holds.

    >>> round(calibrate(lambda sigma: ev.Gaussian(sigma), 1, "1e-6"), 12)
    4.224678889327

    Raises ParameterError for epsilon <= 0, delta outside [0, 1), or when no parameter in 1e-12 .. 1e12 is
    enough.
    """
    e, d = amount(epsilon, "epsilon"), probability(delta, "delta")
    if e == 0:
        raise ParameterError("epsilon = 0 was asked; no noise is enough for it. Give an epsilon above 0.")

    closed = _closed(make(1.0), d)

    def excess(x: float) -> float:
        """The certified upper bound less the goal; at most 0 where the goal is met."""
        return upper_epsilon(make(x), d) - float_down(e)

    # Far from the goal the rational routes answer, where an estimate would be costly or too wide for memory.
    bad, good = _bracket(lambda x: known_epsilon(make(x), d) <= e or _estimated(make(x), e, d))
    if closed and d > 0 and (last := _last_float(make, e, d)) is not None:
        return last
    if closed:
        return _halve(lambda x: excess(x) <= 0, *_halve(lambda x: _estimated(make(x), e, d), bad, good, 1e-9), 0.0)[1]
    bad, good = _approach(lambda x: _off(make(x), e, d), bad, good, 1e-7)
    step = lattice_step(make(good), d)

    def relative(x: float) -> float:
        return upper_epsilon(make(x), d, step) / float_down(e) - 1.0

    scale = _secant(relative, good, 1.0 if good > bad else -1.0)
    return scale if scale is not None else _settle(relative, bad, good)


def _closed(event: ev.Event, d: Fraction) -> bool:
    return d == 0 or all(f.gaussian_only for f in flatten(event))


def _last_float(make: Callable[[float], ev.Event], e: Fraction, d: Fraction) -> float | None:
    """The last float that meets the goal for Gaussian noise, decided in decimals; None where these would be long."""

    def fits(x: float) -> bool:
        return all(gaussian_fits(f.mu_squared, e, d) for f in flatten(make(x)))

    def near(x: float) -> bool:
        return max(epsilon_of_mu(float(root_up(f.mu_squared)), float(d)) for f in flatten(make(x))) <= float(e)

    bad, good = _halve(near, *_bracket(near), 1e-12)
    if any(not decidable(f.mu_squared, e) for x in (bad, good) for f in flatten(make(x))):
        return None
    wide = 4 * (good - bad)
    bad, good = bad - wide, good + wide
    return _halve(fits, bad, good, 0.0)[1] if fits(good) and not fits(bad) else None


def _estimated(event: ev.Event, e: Fraction, d: Fraction) -> bool:
    whole = cost(event)
    if whole.epsilon is not None and whole.epsilon <= e:
        return True
    if d == 0:
        return pure_bounds(event)[1] <= e
    try:
        return _rough(event, d) <= e
    except ParameterError:
        return False


def _off(event: ev.Event, e: Fraction, d: Fraction) -> float:
    """ln of the estimate over the goal; infinite where it is surely met, or nothing is known."""
    whole = cost(event)
    if whole.epsilon is not None and whole.epsilon <= e:
        return -math.inf
    try:
        rough = _rough(event, d)
    except ParameterError:
        return math.inf
    return math.log(rough / float(e)) if rough > 0 else -math.inf


def _rough(event: ev.Event, d: Fraction) -> float:
    """An estimate where there is a quick one, else the upper bound on one lattice."""
    if all(f.gaussian_only or terms(f) is not None for f in flatten(event)):
        return epsilon(event, d)
    return upper_epsilon(event, d)


def _bracket(fits: Callable[[float], bool]) -> tuple[float, float]:
    """(bad, good): the nearest powers between which the answer lies, whichever way the family goes."""
    start = fits(1.0)
    for factor in (4.0, 0.25):
        x = 1.0
        while 1e-12 < x < 1e12:
            y = x * factor
            if fits(y) != start:
                return (x, y) if not start else (y, x)
            x = y
    state = "every" if start else "no"
    raise ParameterError(
        f"{state} parameter between 1e-12 and 1e12 meets the goal, so there is nothing to calibrate. "
        "Check that the family depends on its parameter."
    )


def _halve(fits: Callable[[float], bool], bad: float, good: float, relative: float) -> tuple[float, float]:
    while abs(good - bad) > relative * abs(good):
        middle = math.sqrt(bad * good) if max(bad, good) > 2 * min(bad, good) else (bad + good) / 2
        if middle in (bad, good):
            break
        bad, good = (bad, middle) if fits(middle) else (middle, good)
    return bad, good


def _approach(off: Callable[[float], float], bad: float, good: float, relative: float) -> tuple[float, float]:
    """(bad, good), as close as `relative`: off is positive at bad, at most 0 at good or held to be.

    By regula falsi on the parameter's logarithm (Illinois: an end that stays counts half), by halves elsewhere. Once
    the steps are short, a step beyond the root brings the other end along.
    """
    ends = {True: (math.log(bad), off(bad)), False: (math.log(good), off(good))}
    last, before, steps = math.nan, None, 0
    while abs(gap := ends[True][0] - ends[False][0]) > relative:
        (a, over), (b, under) = ends[True], ends[False]
        x = b + gap / 2
        steps += 1
        if under <= 0 and math.isfinite(over - under) and steps <= _STEPS:
            x = b - gap * under / (over - under)
            near = b if abs(x - b) < abs(x - a) else a
            if abs(x - last) < relative / 4 or abs(x - near) < relative / 4:
                x = near + math.copysign(relative / 2, gap if near == b else -gap)
        if not min(a, b) < x < max(a, b):
            x = b + gap / 2
        if x in (a, b):
            break
        value = off(math.exp(x))
        side, last = value > 0, x
        if side == before:
            at, still = ends[not side]
            ends[not side] = at, still / 2
        ends[side], before = (x, value), side
    return math.exp(ends[True][0]), math.exp(ends[False][0])


def _secant(excess: Callable[[float], float], start: float, away: float) -> float | None:
    """The root of the certified bound near an estimate of it, on the safe side; None where it is not smooth."""
    x, value = start, excess(start)
    # epsilon goes roughly like 1/parameter (or like the parameter), so the relative excess is a fair first step.
    step = away * start * value
    for _ in range(7):
        if not (math.isfinite(step) and abs(step) < 0.2 * abs(start)):
            return None
        if abs(step) <= 2e-11 * abs(x):
            break
        before, old = x, value
        x, value = x + step, excess(x + step)
        if value == old:
            return None
        step = -value * (x - before) / (value - old)
    else:
        return None
    for hair in (1e-11, 2e-11, 5e-11):
        good = x + step + away * hair * abs(x)
        if excess(good) <= 0:
            return good
    return None


def _settle(excess: Callable[[float], float], bad: float, good: float) -> float:
    """From an estimate to the root of the certified bound, on its safe side, by regula falsi (Illinois)."""
    away = 1.0 if good > bad else -1.0
    x, value = good, excess(good)
    # epsilon goes roughly like a power of the parameter, so its relative excess is a fair first step.
    step = max(1e-9, value)
    while value > 0:
        bad, over = x, value
        x = good * (1 + away * step)
        value = excess(x)
        step *= 4
        if step > 0.5:
            raise ParameterError("the certified bound does not reach the goal near the estimate. Relax delta.")
    if x == good:
        return good
    good, under = x, value
    for _ in range(40):
        if abs(good - bad) <= 2e-11 * abs(good):
            break
        x = good + (bad - good) * under / (under - over)
        # A hair towards the safe side, so that both ends of the bracket close in.
        x += away * 4e-12 * abs(good)
        value = excess(x)
        if value > 0:
            bad, over, under = x, value, under / 2
        else:
            good, under, over = x, value, over / 2
    return good
