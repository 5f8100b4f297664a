"""Renyi divergences of dominating pairs, from above: D_alpha(P || Q) = ln E_Q[m^alpha] / (alpha - 1), m = dP/dQ.

A dominating pair is worst for every divergence at once (Blackwell's theorem), and divergences of products add. With
E_Q m = 1, and u = ln m,

    E_Q[m^alpha] = 1 + E_Q psi(u),   psi(u) = e^(alpha u) - alpha e^u + alpha - 1 >= 0,

a sum or integral of positive terms, so nothing cancels, however small the divergence is; beyond e^700 logarithms of the
same terms are added. Closed forms: alpha mu^2 / 2 for Gaussian noise; sums over the outcomes of finite mechanisms, and
over the integers where discrete Gaussian noise has weight. Integrals (sampled Gaussian and Laplace noise) are taken by
Gauss and Legendre's rule over panels on which the integrand is smooth, all those where it is above e^-60 of its
largest value: no tail is cut off that counts. Each result is moved up by `ROOM`, more than rule and round-off can miss.

Poisson sampling: for a symmetric pair removal is the worse direction (Mironov, Talwar, Zhang 2019, Theorem 5): pair the
outcomes of likelihood ratio r and 1/r; their part of E_Q[m^alpha - m^(1 - alpha)] is at least 0. Sampling without
replacement: the pair that is the removal pair where m > 1 and its mirror image elsewhere (`pairs.py`), so that
E[m^alpha] - 1 is the integral over m > 1 of m^alpha + m^(1 - alpha) - m - 1 = (1 - m^(1 - alpha)) (m^alpha - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.decompose import base_atoms, one_inside
from hubbub.accounting.exact import cost
from hubbub.accounting.pairs import Atoms
from hubbub.accounting.rational import pure_bounds
from hubbub.accounting.rounding import float_up

__all__ = ["ROOM", "leaf_divergence"]

Array = NDArray[np.float64]
# How far results are moved up, relatively; a test holds them to lie within it of 40-digit values.
ROOM = 1e-9
_NEGLIGIBLE = 60.0
_LEAST = Fraction(1, 10**140)
# Beyond this order integrals are not taken: the largest loss and alpha rho are next to the truth.
_LARGEST_ORDER = 1e9
# Of Gaussian noise; logarithms alone are added there, and hold far beyond.
_LARGEST_MU = 1000
_MOST_INTEGERS = 2_000_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def leaf_divergence(event: ev.Event, alpha: float) -> float:
    """D_alpha of one mechanism's worst direction: at least the truth, and within 2e-9 of it, or of the bounds below.

    Never above the largest loss, nor alpha rho. Only these two where losses are beyond floats.
    """
    whole = cost(event)
    best = pure_bounds(event)[1]
    if not whole.delta:
        best = min(best, float_up(Fraction(alpha) * whole.rho))
    numeric = _numeric(event, alpha)
    return best if numeric is None else min(best, numeric * (1 + ROOM))


@dataclass(frozen=True)
class _Continuous:
    """A density: ln dQ at x, the loss of the unsampled pair at x, where, and how fast both may bend.

    ln dQ has slope -fall - curvature x; the loss is linear with slope `slope`; `smooth` is the longest panel that
    stays away from the singularities of ln m in the complex plane.
    """

    log_q: Callable[[Array], Array]
    loss: Callable[[Array], Array]
    low: float
    high: float
    fall: float
    curvature: float
    slope: float
    smooth: float


def _numeric(event: ev.Event, alpha: float) -> float | None:
    """The divergence without room, or None where floats do not reach."""
    mirrored = isinstance(event, ev.SampledWithoutReplacement)
    inner, rate = event, Fraction(1)
    if isinstance(event, ev.PoissonSampled | ev.SampledWithoutReplacement):
        inner, rate = one_inside(event.event), event.rate
    if rate == 0:
        return 0.0
    if _too_small(inner) or rate < _LEAST or 0 < 1 - rate < _LEAST or alpha > _LARGEST_ORDER:
        return None
    power = _Power(alpha, float(rate), float(1 - rate), mirrored)
    match inner:
        case ev.GaussianDP() if rate == 1:
            return alpha * float(inner.mu) ** 2 / 2
        case ev.Gaussian() if rate == 1:
            return alpha * float(inner.sensitivity / inner.sigma) ** 2 / 2
        case ev.GaussianDP():
            return power.of_integral(_gaussian(float(inner.mu), alpha))
        case ev.Gaussian():
            return power.of_integral(_gaussian(float(inner.sensitivity / inner.sigma), alpha))
        case ev.Laplace():
            return power.of_integral(_laplace(float(inner.sensitivity / inner.scale)), *_laplace_atoms(inner))
        case ev.DiscreteGaussian():
            return _discrete_gaussian(inner, power)
        case _:
            atoms = base_atoms(inner)
            return None if atoms is None else power.of_atoms(atoms)


def _too_small(inner: ev.Event) -> bool:
    """Whether losses are beyond floats: larger than 400, a mu than 1000, or so small that their squares vanish."""
    match inner:
        case ev.DiscreteGaussian():
            return not _LEAST < Fraction(inner.sensitivity) / inner.sigma < 20
        case ev.Gaussian():
            return not _LEAST < Fraction(inner.sensitivity) / inner.sigma <= _LARGEST_MU
        case ev.GaussianDP():
            return not _LEAST < inner.mu <= _LARGEST_MU
        case ev.ApproxDP():
            return not (_LEAST < inner.epsilon < 400 or inner.epsilon == 0)
        case _:
            epsilon = cost(inner).epsilon
            return epsilon is None or not _LEAST < epsilon < 400


def _gaussian(mu: float, alpha: float) -> _Continuous:
    """x ~ N(0, 1) under Q, N(mu, 1) under P; tilted by alpha, the weight is at most alpha mu away."""
    return _Continuous(
        lambda x: -x * x / 2 - 0.5 * math.log(2 * math.pi),
        lambda x: mu * x - mu * mu / 2,
        -40.0,
        alpha * mu + 40.0,
        0.0,
        1.0,
        mu,
        min(1.0, 1.5 / mu),
    )


def _laplace(epsilon: float) -> _Continuous:
    """The loss itself is x, of Q-density e^(-(x + epsilon)/2) / 4 between -epsilon and epsilon."""
    return _Continuous(lambda x: -(x + epsilon) / 2 - math.log(4.0), lambda x: x, -epsilon, epsilon, 0.5, 0.0, 1.0, 1.5)


def _laplace_atoms(event: ev.Laplace) -> tuple[Array, Array]:
    e = float(event.sensitivity / event.scale)
    return np.array([-e, e]), np.array([math.log(0.5), math.log(0.5) - e])


def _discrete_gaussian(event: ev.DiscreteGaussian, power: _Power) -> float | None:
    """The sum over the integers where there is weight, from below 0 to above alpha s."""
    s, sigma = float(event.sensitivity), float(event.sigma)
    reach = math.ceil(14 * sigma) + 2
    if reach > _MOST_INTEGERS:
        return None
    if power.rate == 1.0:
        # Not sampled, e^(alpha u) dQ is a discrete bell round alpha s, which need not be whole.
        shift = power.alpha * s - round(power.alpha * s)
        at = np.arange(-reach, reach + 1)
        near, whole = (float(np.sum(np.exp(-((at - c) ** 2) / (2 * sigma * sigma)))) for c in (shift, 0.0))
        return power.alpha * s * s / (2 * sigma * sigma) + math.log(near / whole) / (power.alpha - 1)
    if power.alpha * s > _MOST_INTEGERS:
        return None
    x = np.arange(-reach, math.ceil(power.alpha * s) + reach + 1, dtype=np.float64)
    log_q = -x * x / (2 * sigma * sigma)
    return power.of_points((2 * x * s - s * s) / (2 * sigma * sigma), log_q - np.log(np.sum(np.exp(log_q))))


@dataclass(frozen=True)
class _Power:
    """E_Q[m^alpha] of a pair sampled at `rate` (1: not sampled), `rest` = 1 - rate; `mirrored` without replacement."""

    alpha: float
    rate: float
    rest: float
    mirrored: bool

    def of_integral(self, c: _Continuous, loss: Array | None = None, log_q: Array | None = None) -> float:
        """Of a density, and atoms beside it."""
        x, log_weights = self._nodes(c)
        losses: Array = c.loss(x)
        logs: Array = log_weights + c.log_q(x)
        if loss is not None and log_q is not None:
            losses, logs = np.append(losses, loss), np.append(logs, log_q)
        return self.of_points(losses, logs)

    def of_atoms(self, atoms: Atoms) -> float | None:
        """Of finitely many outcomes."""
        if atoms.p_only:
            return math.inf
        with np.errstate(divide="ignore"):
            return self.of_points(atoms.loss, np.log(atoms.q), float(atoms.q_only))

    def of_points(self, loss: Array, log_q: Array, q_only: float = 0.0) -> float:
        """Of points with ln Q-masses; Q alone has q_only."""
        terms = self._log_psi(self._sampled(loss)) + log_q
        if q_only:
            alone = np.array([math.log(self.rest) if self.rest else -math.inf])
            terms = np.append(terms, self._log_psi(alone) + math.log(q_only))
        top = float(terms.max(initial=-math.inf))
        if top == -math.inf:
            return 0.0
        total = top + math.log(float(np.sum(np.exp(terms - top))))
        # ln(1 + e^total)
        log_power = total + math.log1p(math.exp(-total)) if total > 0 else math.log1p(math.exp(total))
        return log_power / (self.alpha - 1)

    def _sampled(self, loss: Array) -> Array:
        """ln(rest + rate e^loss), also where it is next to 0."""
        if self.rate == 1.0 and self.rest == 0.0:
            return loss
        small = np.log1p(self.rate * np.expm1(np.minimum(loss, 600.0)))
        if self.rate > 0.5:
            small = np.where(loss < -1.0, np.log(self.rest + self.rate * np.exp(np.minimum(loss, 0.0))), small)
        large = loss + np.log(self.rate + self.rest * np.exp(-np.maximum(loss, 600.0)))
        return np.where(loss > 600.0, large, small)

    def _log_psi(self, u: Array) -> Array:
        """ln psi(u); without replacement ln of its counterpart for u > 0, and nothing elsewhere."""
        a, c = self.alpha, self.alpha - 1
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if self.mirrored:
                v = np.maximum(u, 0.0)
                grown = np.where(a * v > 600, a * v, np.log(np.expm1(np.minimum(a * v, 700.0))))
                return np.where(u > 0, np.log(-np.expm1(-c * v)) + grown, -np.inf)
            w = np.minimum(u, 600.0 / a)
            direct = np.log(np.exp(w) * np.expm1(c * w) - c * np.expm1(w))
            v = np.maximum(u, 0.0)
            big = a * v + np.log(-np.expm1(-c * v) - c * np.exp(-c * v) + c * np.exp(-a * v))
            return np.where(np.abs(a * u) < 0.25, self._series(u), np.where(a * u > 600, big, direct))

    def _series(self, u: Array) -> Array:
        """ln of the sum over k >= 2 of (alpha^k - alpha) u^k / k!, for |alpha u| < 1/4."""
        grow = math.log1p(self.alpha - 1)
        v = np.clip(self.alpha * u, -0.25, 0.25)
        total = np.zeros_like(v)
        for k in range(14, 1, -1):
            total = total * v - math.expm1(-(k - 1) * grow) / math.factorial(k)
        return 2 * np.log(np.abs(v)) + np.log(total)

    def _nodes(self, c: _Continuous) -> tuple[Array, Array]:
        """Nodes and ln weights over all panels that matter, each short enough for the rule."""
        low, high = np.array([c.low]), np.array([c.high])
        if self.mirrored:
            # Only m > 1, that is a positive loss.
            zero = (0.0 - float(c.loss(np.zeros(1))[0])) / c.slope
            low = np.array([max(c.low, zero)])
        kept: list[tuple[Array, Array]] = []
        top = -math.inf
        for _ in range(200):
            if not low.size:
                break
            length = high - low
            ends = [self._log_term(c, x) for x in (low + 1e-9 * length, (low + high) / 2, high)]
            top = max(top, float(np.max(ends)))
            # ln m is convex in the loss, so alpha max(u, 0) is below its chord, and bends up against the bell alone.
            above = np.maximum(self._above(c, low), self._above(c, high)) + c.curvature * length**2 / 8
            matters = above > top - _NEGLIGIBLE
            low, high, length = low[matters], high[matters], length[matters]
            least, most = (self.alpha * c.slope * np.exp(self._share(c, x)) for x in (low, high))
            # The slope of ln(m^alpha dQ) lies between these: that of m grows with x, that of the density falls.
            steep = np.maximum(np.abs(most - c.fall - c.curvature * low), np.abs(least - c.fall - c.curvature * high))
            fine = (length <= c.smooth) & (length * steep <= 16.0)
            kept.append((low[fine], high[fine]))
            low, high = low[~fine], high[~fine]
            middle = (low + high) / 2
            low, high = np.concatenate((low, middle)), np.concatenate((middle, high))
        first, last = (np.concatenate([k[i] for k in kept]) for i in (0, 1))
        half = (last - first) / 2
        x = (first + last)[:, None] / 2 + half[:, None] * _NODES[None, :]
        return x.ravel(), (np.log(half)[:, None] + np.log(_WEIGHTS)[None, :]).ravel()

    def _log_term(self, c: _Continuous, x: Array) -> Array:
        return self._log_psi(self._sampled(c.loss(x))) + c.log_q(x)

    def _above(self, c: _Continuous, x: Array) -> Array:
        """At least ln psi + ln dQ: psi(u) <= e^(alpha u) for u > 0, and <= alpha below."""
        return self.alpha * np.maximum(self._sampled(c.loss(x)), 0.0) + math.log(self.alpha + 1) + c.log_q(x)

    def _share(self, c: _Continuous, x: Array) -> Array:
        """ln of rate e^loss / m: how much of a change of the loss m takes part in."""
        loss = c.loss(x)
        return math.log(self.rate) + loss - self._sampled(loss)
