"""Composition by contour inversion: a fast estimate for Gaussian noise, Poisson-sampled or not, mixed at
will.

With K(s) = ln E_P[e^(s L)] of the composed loss, and any theta > 0 (two-sided Laplace inversion),

    delta(epsilon) = (1/pi) Int_0^inf Re exp(K(s) - s epsilon) / (s (s + 1)) dt,   s = theta + i t.

At the saddle point the integrand falls like a Gaussian and the trapezoid rule converges geometrically, so
the cost does not grow with the number of compositions. K of a sampled Gaussian is itself a trapezoid sum,
over x ~ N(0, sigma^2): with m(x) = 1 - q + q e^((2x - 1)/2 sigma^2), removal has E[m^(1+s)] and addition
E[m^(-s)] (Mironov, Talwar, Zhang 2019). Not certified: `certify.py` is. Pure atoms have no falling
integrand and are not here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.decompose import Flat
from hubbub.errors import ParameterError

__all__ = ["Term", "delta_estimate", "epsilon_estimate", "terms"]

Array = NDArray[np.float64]
# Nodes of the contour and of the quadrature over x: their product is one complex matrix.
MOST_NODES = 4000
# Relative errors that an estimate may have by its steps, and how far the terms may exceed their sum, as logarithms.
_ALIASED = -24.0
_CANCELLED = 7.0
# How many tilted deviations Chebyshev's bounds from below take, and the rounding that they are allowed, as a logarithm.
_DEVIATIONS: Array = np.array([1.2, 1.5, 2.0, 3.0])
_ROUNDED = 1e-6
Complex = NDArray[np.complex128]


@dataclass(frozen=True)
class Term:
    """`times` Gaussians of sensitivity 1, sampled at `rate`; unsampled Gaussians have rate 1 and any
    real times.
    """

    sigma: float
    rate: float
    times: float


def terms(flat: Flat) -> list[Term] | None:
    """The event as Gaussian terms, or None if it has other parts."""
    summands = [Term(1 / math.sqrt(flat.mu_squared), 1.0, 1.0)] if flat.mu_squared else []
    if flat.rho:
        return None
    for event, n in flat.leaves:
        if not isinstance(event, ev.PoissonSampled) or event.rate < Fraction(1, 10**12):
            return None
        match event.event:
            case ev.Gaussian() as inner if inner.sensitivity:
                sigma = float(inner.sigma / inner.sensitivity)
            case ev.GaussianDP() as inner if inner.mu:
                sigma = float(1 / inner.mu)
            case _:
                return None
        summands.append(Term(sigma, float(event.rate), float(n)))
    return summands or None


class _Inversion:
    """One direction of a composition, tilted at theta."""

    def __init__(self, parts: Sequence[Term], *, adding: bool) -> None:
        self.parts, self.adding = parts, adding

    def nodes(self, term: Term, theta: float, *, top: float = 0.0) -> tuple[Array, Array]:
        """ln m(x) and ln of the weights at the trapezoid's nodes, wide and fine enough for s = theta + i t, t <= top.

        m^(it) grows like e^(t y r / sigma^2) at height y in the complex plane, r the largest share of the sample's
        part in m where there is weight; the sum over steps h converges once 2 pi / h exceeds t r / sigma^2 + 8 / sigma.
        """
        sigma = term.sigma
        low, high = -10.5 * sigma, 10.5 * sigma + 1.0
        low, high = (low - theta, high) if self.adding else (low, high + theta + 0.5)
        step = min(sigma / 3.0, sigma * sigma / 1.5)
        m, w = _at(term, low, high, step)
        if 2 * math.pi < step * (top / sigma**2 + 8.0 / sigma):
            weight = w + (-theta if self.adding else 1 + theta) * m
            seen = m[weight > weight.max() - 34.0]
            share = 1.0 + (term.rate - 1.0) * math.exp(-float(seen.max()))
            step = min(step, 2 * math.pi / (top * share / sigma**2 + 8.0 / sigma))
            m, w = _at(term, low, high, step)
        return m, w

    def real(self, theta: Array) -> tuple[Array, Array, Array]:
        """K and its first two derivatives at real points."""
        k, k1, k2 = (np.zeros_like(theta) for _ in range(3))
        for term in self.parts:
            if term.rate == 1.0:
                v = term.times / term.sigma**2
                k, k1, k2 = k + theta * (theta + 1) * v / 2, k1 + (2 * theta + 1) * v / 2, k2 + v
                continue
            m, w = self.nodes(term, float(theta.max()))
            sign = -1.0 if self.adding else 1.0
            power = -theta if self.adding else 1 + theta
            e = w[None, :] + power[:, None] * m[None, :]
            top = e.max(axis=1)
            p = np.exp(e - top[:, None])
            z = p.sum(axis=1)
            mean = p @ m / z
            k = k + term.times * (np.log(z) + top)
            k1 = k1 + term.times * sign * mean
            k2 = k2 + term.times * np.maximum(p @ (m * m) / z - mean**2, 1e-300)
        return k, k1, k2

    def spectrum(self, theta: float, t: Array) -> tuple[Complex, float]:
        """exp(K(theta + i t) - K(theta)) and K(theta)."""
        total = np.zeros(t.shape, dtype=np.complex128)
        at = 0.0
        s = theta + 1j * t
        for term in self.parts:
            if term.rate == 1.0:
                v = term.times / (2 * term.sigma**2)
                here = theta * (theta + 1) * v
                total += s * (s + 1) * v - here
                at += here
                continue
            m, w = self.nodes(term, theta, top=float(t[-1]))
            if m.size * t.size > MOST_NODES * 256:
                raise ParameterError("the contour would need too many nodes. Ask for `bounds`.")
            power = -theta if self.adding else 1 + theta
            e = w + power * m
            top = float(e.max())
            base = np.exp(e - top)
            z = float(base.sum())
            sign = -1.0 if self.adding else 1.0
            phase = np.exp(1j * sign * np.outer(t, m)) @ (base / z)
            total += term.times * np.log(phase)
            at += term.times * (math.log(z) + top)
        return np.exp(total), at


def _at(term: Term, low: float, high: float, step: float) -> tuple[Array, Array]:
    if not (high - low) / step < MOST_NODES:
        raise ParameterError("the contour's quadrature would need too many nodes. Ask for `bounds`.")
    sigma = term.sigma
    x = np.linspace(low, high, max(129, int((high - low) / step) + 2))
    y = (2 * x - 1) / (2 * sigma * sigma)
    m = np.where(y < 600, np.log1p(term.rate * np.expm1(np.minimum(y, 600.0))), y + math.log(term.rate))
    return m, -x * x / (2 * sigma * sigma) - math.log(sigma * math.sqrt(2 * math.pi) / (x[1] - x[0]))


@dataclass(frozen=True)
class _Saddle:
    """A tilt, the tilted loss's mean and deviation, and K at some points above, for Chernoff bounds."""

    theta: float
    mean: float
    spread: float
    above: Array
    k: Array
    # Every tilt that was looked at, with K and its two derivatives there.
    seen: Array

    def delta(self, epsilon: float) -> tuple[float, float]:
        """ln delta at epsilon from below and from above, without inversion.

        Above: (1 - e^(epsilon - L))+ <= e^(theta (L - epsilon)) theta^theta / (1 + theta)^(1 + theta). Below: under the
        law tilted at theta, of mean m and deviation d, L lies within c d of m with probability 1 - 1/c^2 (Chebyshev),
        so delta >= (1 - 1/c^2) e^(K - theta (m + c d)) (1 - e^(epsilon - m + c d)).
        """
        theta, k, mean, variance = self.seen
        above = k - theta * epsilon + theta * np.log(theta) - (1 + theta) * np.log1p(theta)
        c = _DEVIATIONS[:, None]
        reach = c * np.sqrt(variance)
        rest = np.minimum(epsilon - mean + reach, 0.0)
        with np.errstate(divide="ignore"):
            below = np.log1p(-1 / c**2) + k - theta * (mean + reach) + np.log(-np.expm1(rest))
        return float(np.max(below)), min(0.0, float(np.min(above)))


def _saddle(line: _Inversion, log_delta: float | None, epsilon: float | None) -> _Saddle:
    """The tilt whose mean is epsilon, or at which delta is about e^log_delta."""
    theta = np.geomspace(1e-2, 30.0, 48)
    seen: list[Array] = []
    for _ in range(4):
        k, k1, k2 = line.real(theta)
        seen.append(np.array([theta, k, k1, k2]))
        off = _off(theta, k, k1, k2, log_delta, epsilon)
        i = int(np.argmin(np.abs(off)))
        if 0 < i < theta.size - 1:
            break
        theta = theta / 20 if i == 0 else theta * 20
    above, k_above = theta[i + 1 :], k[i + 1 :]
    # Where few, rare, large losses take over, the mean leaps between two points of the grid: look closer there.
    for _ in range(12):
        calm = i + 1 >= theta.size or k1[i + 1] - k1[i] < 3 * math.sqrt(float(k2[i]) + float(k2[i + 1]))
        if calm and (epsilon is None or abs(k1[i] - epsilon) < 1.5 * math.sqrt(float(k2[i]))):
            break
        first, last = max(i - 1, 0), min(i + 1, theta.size - 1)
        theta = np.linspace(theta[first], theta[last], 9)
        k, k1, k2 = line.real(theta)
        seen.append(np.array([theta, k, k1, k2]))
        off = _off(theta, k, k1, k2, log_delta, epsilon)
        i = int(np.argmin(np.abs(off)))
        above, k_above = np.concatenate((theta[i + 1 :], above)), np.concatenate((k[i + 1 :], k_above))
    return _Saddle(float(theta[i]), float(k1[i]), math.sqrt(float(k2[i])), above, k_above, np.hstack(seen))


def _off(theta: Array, k: Array, k1: Array, k2: Array, log_delta: float | None, epsilon: float | None) -> Array:
    if epsilon is not None:
        return k1 - epsilon
    size = np.log(theta * (1 + theta)) + 0.5 * np.log(2 * np.pi * k2 + 1.0)
    return k - theta * k1 - size - (log_delta or 0.0)


@dataclass(frozen=True)
class _Inverse:
    """The integrand at a tilt, ready for every epsilon: f at t, ln of its size, the step over pi, and their sum."""

    f: Complex
    t: Array
    at: float
    step: float
    saddle: _Saddle
    size: float

    def value(self, epsilon: float) -> tuple[float, float]:
        """delta and its derivative in epsilon."""
        theta = self.saddle.theta
        turned = self.f * np.exp(-1j * self.t * epsilon)
        outer = self.step * math.exp(self.at - theta * epsilon)
        value = float(turned.real.sum())
        return value * outer, -(theta * value - float((turned.imag * self.t).sum())) * outer

    def alias(self, epsilon: float, log_delta: float) -> float:
        """ln of the relative error of the value at epsilon by its steps, where delta is e^log_delta.

        The trapezoid sum of step dt is the sum of e^(theta k P) delta(epsilon + k P) over all whole k, P = 2 pi / dt:
        its own term and its neighbours'. Those left have delta <= 1, those right delta <= e^(K(s) - s epsilon).
        """
        s, period = self.saddle, 2.0 / self.step
        left = -s.theta * period - log_delta
        right = float(np.min(s.k - s.above * (epsilon + period), initial=math.inf)) + s.theta * (epsilon + period)
        return max(left, right - s.theta * epsilon - log_delta)

    def cancelled(self, epsilon: float, log_delta: float) -> float:
        """ln of how many times larger the terms are than their sum, of which round-off is a part."""
        return math.log(self.size * self.step) + self.at - self.saddle.theta * epsilon - log_delta


def _inverse(line: _Inversion, saddle: _Saddle, log_delta: float, widen: float = 1.0) -> _Inverse:
    theta, spread = saddle.theta, saddle.spread
    # The steps alias delta at distances 2 pi / dt: 12 spreads, and far enough for what lies left to be small.
    period = widen * (12 * spread + max(36.0, 30.0 - log_delta - 12 * spread * theta) / theta)
    dt = 2 * math.pi / period
    end = 8.6 / spread
    while True:
        if not end / dt < MOST_NODES:
            raise ParameterError(
                f"the contour would need {end / dt:.2g} nodes: the loss is too narrow for this delta. Ask for `bounds`."
            )
        t: Array = np.arange(int(end / dt) + 2, dtype=np.float64) * dt
        f, at = line.spectrum(theta, t)
        f = f / ((theta + 1j * t) * (theta + 1 + 1j * t))
        if abs(f[-1]) <= 1e-13 * abs(f[0]) and abs(f[-3]) <= 1e-12 * abs(f[0]):
            break
        end *= 1.5
    f[0] *= 0.5
    return _Inverse(f, t, at, dt / math.pi, saddle, float(np.abs(f).sum()))


def epsilon_estimate(parts: Sequence[Term], delta: float) -> float:
    """The larger, over both directions, of the epsilons at delta. Raises ParameterError where it is not sure."""
    sampled = any(p.rate < 1 for p in parts)
    return max(_epsilon(_Inversion(parts, adding=a), delta) for a in ((False, True) if sampled else (False,)))


def _epsilon(line: _Inversion, delta: float) -> float:
    log_delta = math.log(delta)
    saddle, widen = _saddle(line, log_delta, None), 1.0
    for _ in range(6):
        inverse = _inverse(line, saddle, log_delta, widen)
        epsilon_at = _root(inverse, delta)
        if epsilon_at is None or inverse.cancelled(epsilon_at, log_delta) > _CANCELLED:
            # Far from the tilted mean the sum cancels: tilt again, to where the answer is thought to be.
            saddle = _saddle(line, None, epsilon_at if epsilon_at is not None else _chernoff(saddle, log_delta))
        elif inverse.alias(epsilon_at, log_delta) > _ALIASED:
            widen *= 2.0
        else:
            _check(saddle, epsilon_at, log_delta)
            return max(0.0, epsilon_at)
    raise ParameterError("the contour found no epsilon that it is sure of. Ask for `bounds`.")


def _check(saddle: _Saddle, epsilon: float, log_delta: float) -> None:
    """Raises ParameterError unless delta at epsilon may be e^log_delta by bounds that owe nothing to the inversion."""
    low, high = saddle.delta(epsilon)
    if not low - _ROUNDED <= log_delta <= high + _ROUNDED:
        raise ParameterError("the contour is not within the bounds of Chernoff and Chebyshev. Ask for `bounds`.")


def _chernoff(saddle: _Saddle, log_delta: float) -> float:
    """An epsilon above the one at delta."""
    return float(np.min((saddle.k - log_delta) / saddle.above))


def _root(inverse: _Inverse, delta: float) -> float | None:
    """Where the value falls through delta, or None where it was not seen to."""
    spread, epsilon = inverse.saddle.spread, inverse.saddle.mean
    low, high = -math.inf, math.inf
    for _ in range(80):
        value, slope = inverse.value(epsilon)
        low, high = (epsilon, high) if value > delta else (low, epsilon)
        step = math.log(value / delta) * value / -slope if value > 0 and slope < 0 else math.inf
        if abs(step) < 1e-14 * max(1.0, abs(epsilon)):
            return epsilon
        if low < epsilon + step < high and abs(step) <= 8 * spread:
            epsilon += step
        elif math.isinf(low) or math.isinf(high):
            epsilon += 2 * spread if math.isinf(high) else -2 * spread
        else:
            epsilon = (low + high) / 2
            if epsilon in (low, high):
                break
    return None


def delta_estimate(parts: Sequence[Term], epsilon: float) -> float:
    """The larger, over both directions, of the deltas at epsilon. Raises ParameterError where it is not sure."""
    sampled = any(p.rate < 1 for p in parts)
    best = 0.0
    for adding in (False, True) if sampled else (False,):
        line = _Inversion(parts, adding=adding)
        best = max(best, _delta(line, epsilon))
    return min(1.0, best)


def _delta(line: _Inversion, epsilon: float) -> float:
    saddle, widen = _saddle(line, None, epsilon), 1.0
    log_delta = float(np.min(saddle.k - saddle.above * epsilon, initial=0.0)) - 5.0
    for _ in range(4):
        inverse = _inverse(line, saddle, log_delta, widen)
        value = inverse.value(epsilon)[0]
        if not value > 0:
            break
        log_delta = math.log(value)
        if inverse.cancelled(epsilon, log_delta) > _CANCELLED:
            break
        if inverse.alias(epsilon, log_delta) < _ALIASED:
            _check(saddle, epsilon, log_delta)
            return value
        widen *= 2.0
    raise ParameterError("the contour found no delta that it is sure of. Ask for `bounds`.")
