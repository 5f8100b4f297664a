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
    found = [Term(1 / math.sqrt(flat.mu_squared), 1.0, 1.0)] if flat.mu_squared else []
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
        found.append(Term(sigma, float(event.rate), float(n)))
    return found or None


class _Inversion:
    """One direction of a composition, tilted at theta."""

    def __init__(self, parts: Sequence[Term], *, adding: bool) -> None:
        self.parts, self.adding = parts, adding

    def nodes(self, term: Term, theta: float) -> tuple[Array, Array]:
        """ln m(x) and ln of the weights at the trapezoid's nodes, wide and fine enough for this theta."""
        sigma = term.sigma
        low, high = -10.5 * sigma, 10.5 * sigma + 1.0
        low, high = (low - theta, high) if self.adding else (low, high + theta + 0.5)
        step = min(sigma / 3.0, sigma * sigma / 1.5)
        x = np.linspace(low, high, min(max(129, int(min((high - low) / step, 1e6)) + 2), 4001))
        y = (2 * x - 1) / (2 * sigma * sigma)
        m = np.where(y < 600, np.log1p(term.rate * np.expm1(np.minimum(y, 600.0))), y + math.log(term.rate))
        return m, -x * x / (2 * sigma * sigma) - math.log(sigma * math.sqrt(2 * math.pi) / (x[1] - x[0]))

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
            m, w = self.nodes(term, theta)
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


def _saddle(line: _Inversion, log_delta: float | None, epsilon: float | None) -> tuple[float, float, float]:
    theta = np.geomspace(1e-2, 30.0, 48)
    for _ in range(3):
        k, k1, k2 = line.real(theta)
        if epsilon is not None:
            off = np.abs(k1 - epsilon)
        else:
            size = np.log(theta * (1 + theta)) + 0.5 * np.log(2 * np.pi * k2 + 1.0)
            off = np.abs(k - theta * k1 - size - (log_delta or 0.0))
        i = int(np.argmin(off))
        if 0 < i < theta.size - 1:
            break
        theta = theta / 20 if i == 0 else theta * 20
    return float(theta[i]), float(k1[i]), math.sqrt(float(k2[i]))


def _inverse(line: _Inversion, theta: float, spread: float) -> tuple[Complex, Array, float, float]:
    # The steps alias delta at distances 2 pi / dt; 12 spreads and 12 / theta leave 1e-16 or so.
    dt = 2 * math.pi / (12 * spread + 36 / theta)
    nodes = 8.6 / spread / dt
    if not nodes < MOST_NODES:
        raise ParameterError(
            f"the contour would need {nodes:.2g} nodes: the loss is too narrow for this delta. Ask for `bounds`."
        )
    t: Array = np.arange(int(nodes) + 2, dtype=np.float64) * dt
    f, at = line.spectrum(theta, t)
    f = f / ((theta + 1j * t) * (theta + 1 + 1j * t))
    if abs(f[-1]) > 1e-12 * abs(f[0]):
        raise ParameterError("the contour's integrand does not end: too few compositions. Ask for `bounds`.")
    f[0] *= 0.5
    return f, t, at, dt / math.pi


def _value(inverse: tuple[Complex, Array, float, float], theta: float, epsilon: float) -> tuple[float, float]:
    """delta and its derivative in epsilon."""
    f, t, at, step = inverse
    turned = f * np.exp(-1j * t * epsilon)
    outer = step * math.exp(at - theta * epsilon)
    return float(turned.real.sum()) * outer, -float((turned * (theta + 1j * t)).real.sum()) * outer


def epsilon_estimate(parts: Sequence[Term], delta: float) -> float:
    """The larger, over both directions, of the epsilons at delta."""
    sampled = any(p.rate < 1 for p in parts)
    return max(_epsilon(_Inversion(parts, adding=a), delta) for a in ((False, True) if sampled else (False,)))


def _epsilon(line: _Inversion, delta: float) -> float:
    theta, mean, spread = _saddle(line, math.log(delta), None)
    inverse = _inverse(line, theta, spread)
    low, high = mean - 8 * spread, mean + 8 * spread
    epsilon = mean
    for _ in range(60):
        value, slope = _value(inverse, theta, epsilon)
        low, high = (epsilon, high) if value > delta else (low, epsilon)
        step = math.log(value / delta) * value / -slope if value > 0 and slope < 0 else math.inf
        if abs(step) < 1e-14 * max(1.0, abs(epsilon)):
            break
        epsilon = epsilon + step if low < epsilon + step < high else (low + high) / 2
    return max(0.0, epsilon)


def delta_estimate(parts: Sequence[Term], epsilon: float) -> float:
    """The larger, over both directions, of the deltas at epsilon."""
    sampled = any(p.rate < 1 for p in parts)
    best = 0.0
    for adding in (False, True) if sampled else (False,):
        line = _Inversion(parts, adding=adding)
        theta, _, spread = _saddle(line, None, epsilon)
        best = max(best, _value(_inverse(line, theta, spread), theta, epsilon)[0])
    return min(1.0, best)
