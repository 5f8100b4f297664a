"""Bounded-range mechanisms: exact worst cases of composition, adaptive and fixed.

An epsilon-bounded-range mechanism has a loss in some interval [t - epsilon, t], 0 <= t <= epsilon; the
worst is the two-point loss: t with P-mass (1 - e^(t - epsilon))/(1 - e^(-epsilon)), else t - epsilon (Dong,
Durfee, Rogers 2020).

Adaptive: with V_0(e) = (1 - e^e)_+ and V_(j+1)(e) = sup_t E_t[V_j(e - loss)], delta(epsilon) =
V_k(epsilon). On a lattice gZ of e, restricting t to gZ gives a lower bound with exact lattice values. For
an upper bound all t count: V is convex in e^e, so below its chords; on a step of t, with w = e^t, the value
under chords is alpha + beta/w + gamma w, whose maximum is at an end or at w = sqrt(beta/gamma), and so in
closed form.

Fixed (all mechanisms chosen before any answer, same epsilon): the sup over t is at one of k + 1 points
(Dong, Durfee, Rogers 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hubbub.accounting.lattice import Measure, measure_above, measure_below
from hubbub.accounting.pairs import UNIT, moved

__all__ = ["Profile", "adaptive", "fixed_delta", "from_profile", "work"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Profile:
    """delta at (first + k) h: at least and at most; 0 above the last point where `ends`, and 1 - e^e
    below the first.
    """

    h: float
    first: int
    above: Array
    below: Array


def work(ranges: list[tuple[float, int]], h: float) -> float:
    """The number of lattice updates that `adaptive` would do."""
    steps = [(round(e / h) or 1, n) for e, n in ranges]
    width = sum(m * n for m, n in steps)
    return float(sum(m * n for m, n in steps) * 2 * width)


def adaptive(ranges: list[tuple[float, int]], h: float) -> Profile:
    """The profile of (epsilon, times) bounded ranges composed adaptively.

    Epsilons that h does not divide are rounded up to it above, and down below.
    """
    ups = [(math.ceil(e / h * (1 - 1e-12)), n) for e, n in ranges]
    downs = [(math.floor(e / h * (1 + 1e-12)), n) for e, n in ranges]
    reach = sum(m * n for m, n in ups) + 1
    e: Array = np.arange(-reach, reach + 1, dtype=np.float64) * h
    above = below = np.maximum(-np.expm1(np.minimum(e, 0.0)), 0.0)
    for m, n in ups:
        for _ in range(n):
            above = _step(above, e, m, h, chords=True)
    for m, n in downs:
        for _ in range(n if m else 0):
            below = _step(below, e, m, h, chords=False)
    count = sum(n for _, n in ranges)
    slack = 32 * UNIT * (count + 1)
    return Profile(h, -reach, above * (1 + slack), below * (1 - slack))


def _step(v: Array, e: Array, m: int, h: float, *, chords: bool) -> Array:
    """sup over t of E_t[V(e - loss)] for a range of m lattice steps."""
    c, width = math.exp(-m * h), v.size
    shifted = np.concatenate((-np.expm1(e[0] + np.arange(-m, 0) * h), v, np.zeros(m)))
    best = np.zeros(width)
    previous: tuple[Array, Array] | None = None
    for j in range(m + 1):
        low, high = shifted[m - j : m - j + width], shifted[2 * m - j : 2 * m - j + width]
        p = math.expm1((m - j) * h) / math.expm1(m * h) * math.exp(j * h)
        np.maximum(best, p * low + (1 - p) * high, out=best)
        if chords and previous is not None:
            np.maximum(best, _inside(previous, (low, high), j, h, c), out=best)
        previous = (low, high)
    return best


def _inside(before: tuple[Array, Array], after: tuple[Array, Array], j: int, h: float, c: float) -> Array:
    """The largest value for t strictly between (j - 1) h and j h, under the chords."""
    w0, w1 = math.exp((j - 1) * h), math.exp(j * h)
    # V(e - t) <= a + b/w through both ends, where 1/w runs from 1/w1 to 1/w0; likewise V(e - t + epsilon).
    gap = 1 / w0 - 1 / w1
    b, b2 = (before[0] - after[0]) / gap, (before[1] - after[1]) / gap
    a, a2 = after[0] - b / w1, after[1] - b2 / w1
    alpha = (a - c * b + c * b2 - c * a2) / (1 - c)
    beta, gamma = (b - c * b2) / (1 - c), c * (a2 - a) / (1 - c)
    inner = (beta < 0) & (gamma < 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.sqrt(np.where(inner, beta / np.where(gamma == 0, -1.0, gamma), 0.0))
    inner &= (best > w0) & (best < w1)
    ends = np.maximum(alpha + beta / w0 + gamma * w0, alpha + beta / w1 + gamma * w1)
    rise = np.where(inner, np.maximum(alpha - 2 * np.sqrt(np.where(inner, beta * gamma, 0.0)) - ends, 0.0), 0.0)
    p0, p1 = (1 - w0 * c) / (1 - c), (1 - w1 * c) / (1 - c)
    exact_ends = np.maximum(p0 * before[0] + (1 - p0) * before[1], p1 * after[0] + (1 - p1) * after[1])
    # The coefficients cancel, by as much as chords over h and 1/(1 - c) magnify a rounding; V itself caps
    # the value.
    noise = 64 * UNIT * (after[0] + after[1]) / (h * (1 - c))
    return np.minimum(exact_ends + rise + noise, p0 * after[0] + (1 - p1) * after[1])


def fixed_delta(epsilon: float, times: int, at: float) -> tuple[float, float]:
    """delta at `at` >= 0 of `times` fixed bounded ranges of the same epsilon, and a bound on its error."""
    k = times
    i: Array = np.arange(k + 1, dtype=np.float64)
    choose = gammaln(k + 1.0) - gammaln(i + 1) - gammaln(k - i + 1)
    best = slip = 0.0
    for t in {min(max((at + (n + 1) * epsilon) / (k + 1), 0.0), epsilon) for n in range(-1, k + 1)}:
        # Q-masses of losses t and t - epsilon, each without cancellation.
        up, down = math.expm1(epsilon - t) / math.expm1(epsilon), math.expm1(-t) / math.expm1(-epsilon)
        log_q = choose + _times(k - i, up) + _times(i, down)
        first = np.exp(log_q + k * t - i * epsilon)
        gain = np.maximum(first - np.exp(log_q + at), 0.0)
        # Logarithms of factorials and exponents, rounded; and epsilon - t, which may cancel.
        size = 8 * float(gammaln(k + 1.0)) + 16 * k * (1 + epsilon) + 4 * at + 800
        size += 8 * k * (epsilon / (epsilon - t) if t < epsilon else 0.0)
        best, slip = max(best, float(gain.sum())), max(slip, 4 * UNIT * size * float(first[gain > 0].sum()))
    return best, slip


def _times(n: Array, p: float) -> Array:
    """n ln p, 0 where n = 0."""
    return n * math.log(p) if p > 0 else np.where(n > 0, -np.inf, 0.0)


def from_profile(profile: Profile) -> tuple[Measure, Measure]:
    """Measures with at least, and at most, the profile's delta: masses are second differences of chords
    in e^e.
    """
    h = profile.h
    far = moved((abs(profile.first) + profile.above.size) * h)
    out = []
    for v in (profile.above, profile.below):
        rise, fall = np.diff(v) / math.expm1(h), np.diff(v) / -math.expm1(-h)
        mass = np.zeros(v.size)
        mass[1:-1] = rise[1:] - fall[:-1]
        mass[0] = rise[0] + 1 - v[0]
        mass[-1] = max(0.0, -fall[-1])
        error = np.zeros(v.size)
        error[1:-1] = 8 * UNIT * (v[:-2] + v[1:-1] + v[2:]) / h
        error[0] = error[-1] = 32 * UNIT / h
        out.append((mass, error))
    (up, up_error), (down, down_error) = out
    # Mass at the last point keeps the chord's end; what delta is left there is never undone by larger
    # epsilons.
    top = measure_above(h, profile.first, np.maximum(up, 0.0) + up_error, float(profile.above[-1]), far)
    # Between lattice points the profile may lie below the chord of its values, but not below the next value:
    # losses are lowered by one step.
    return top, measure_below(h, profile.first - 1, np.maximum(down - down_error, 0.0), 0.0, far)
