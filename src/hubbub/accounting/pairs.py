"""Dominating pairs: the two output distributions that are hardest to keep apart, and their privacy loss.

For a mechanism and a direction (removing or adding a unit) a pair (P, Q) dominates if delta(x) = sup_S P(S)
- x Q(S) is, for every x >= 0, at least that of any neighbouring data sets (Zhu, Dong, Wang 2022, Definition
7). The loss is L = ln dP/dQ under P, and

    delta(epsilon) = E_P[(1 - e^(epsilon - L))_+].

Dominating pairs compose: the product pair dominates the adaptive composition (same paper, Theorem 10).
Poisson sampling turns (P, Q) into ((1-q) Q + q P, Q) for removal and (Q, (1-q) Q + q P) for addition
(Theorem 11), so its loss is ln(1 - q + q e^L). Sampling without replacement under replace neighbours has
the profile of the first pair for x >= 1 (Balle, Barthe, Gaboardi 2018, Theorem 9), and, as either data set may come
first, its mirror image below. No two data sets are known to meet both at once: from above the mirrored pair counts,
from below the plain one.

A pair offers tails of its continuous part, and atoms. All losses are in nats. Floating point is kept honest
in two
ways: every mass carries a bound on its *relative* error (`slack`), and every loss is within `moved(...)` of
where it is said to be (rounding a boundary, a scale or a rate moves losses, by a few units in the last
place).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

__all__ = [
    "UNIT",
    "Atoms",
    "Base",
    "GaussianPair",
    "LaplacePair",
    "Pair",
    "Sampled",
    "Tails",
    "WithoutReplacement",
    "moved",
]

Array = NDArray[np.float64]
UNIT = 2.0**-53
# Losses beyond this are treated as infinite from above and are left out from below.
FAR = 500.0


def moved(largest: float) -> float:
    """How far rounding can have moved a loss of at most `largest` in size."""
    return 64 * UNIT * (1 + largest)


@dataclass(frozen=True)
class Tails:
    """P and Q of {L >= l} and {L < l} at points l, each within the relative error `slack` (all of one
    shape).
    """

    p_above: Array
    p_below: Array
    q_above: Array
    q_below: Array
    slack: Array


@dataclass(frozen=True)
class Atoms:
    """Point masses: losses l, their P and Q masses, and the masses that only P, or only Q, has.

    `unit`, if not None, is a rational of which every loss is the whole multiple `index`. `missing` bounds
    what a table of infinitely many masses leaves out.
    """

    loss: Array
    p: Array
    q: Array
    p_only: float = 0.0
    q_only: float = 0.0
    slack: float | Array = 8 * UNIT
    unit: Fraction | None = None
    index: NDArray[np.int64] | None = None
    missing: float = 0.0

    def swapped(self) -> Atoms:
        """The pair (Q, P)."""
        index = None if self.index is None else -self.index[::-1]
        return Atoms(
            -self.loss[::-1],
            self.q[::-1],
            self.p[::-1],
            self.q_only,
            self.p_only,
            self.slack if isinstance(self.slack, float) else self.slack[::-1],
            self.unit,
            index,
            self.missing,
        )

    def sampled(self, rate: float, rest: float) -> Atoms:
        """The pair (rest Q + rate P, Q), where rest = 1 - rate, both rounded from the exact rate."""
        loss, p, q = mixed(self.loss, rate, rest), rest * self.q + rate * self.p, self.q
        if self.q_only > 0:
            loss = np.concatenate(([math.log(rest)], loss))
            p = np.concatenate(([rest * self.q_only], p))
            q = np.concatenate(([self.q_only], q))
        slack = float(np.max(self.slack)) + 16 * UNIT
        return Atoms(loss, p, q, rate * self.p_only, 0.0, slack, missing=self.missing)

    def mirrored(self) -> Atoms:
        """The symmetric pair with this one's profile for epsilon >= 0: positive losses, their mirror,
        the rest at 0.
        """
        up = self.loss > 0
        p, q, loss = self.p[up], self.q[up], self.loss[up]
        rest = max(0.0, 1.0 - p.sum() - q.sum() - self.p_only)
        # The rest is a difference: its error is absolute.
        slack = np.full(2 * loss.size + 1, float(np.max(self.slack)))
        slack[loss.size] = (64 * UNIT + slack[0]) / max(rest, 1e-9)
        return Atoms(
            np.concatenate((-loss[::-1], [0.0], loss)),
            np.concatenate((q[::-1], [rest], p)),
            np.concatenate((p[::-1], [rest], q)),
            self.p_only,
            self.p_only,
            slack,
            missing=3 * self.missing + (64 * UNIT if rest < 1e-9 else 0.0),
        )


def mixed(loss: Array, rate: float, rest: float) -> Array:
    """ln(rest + rate e^loss) of rest = 1 - rate: to a few units in the last place, and without overflow."""
    near = np.log1p(rate * np.expm1(np.clip(loss, -1.0, 1.0)))
    low = np.log(rest + rate * np.exp(np.minimum(loss, 1.0)))
    high = loss + np.log(rate + rest * np.exp(-np.maximum(loss, -1.0)))
    return np.where(loss > 1.0, high, np.where(loss < -1.0, low, near))


NO_ATOMS = Atoms(np.empty(0), np.empty(0), np.empty(0), unit=None)


class Pair:
    """One direction of a mechanism: continuous part by `tails`, point masses by `atoms`."""

    symmetric = False

    @property
    def atoms(self) -> Atoms:
        return NO_ATOMS

    @property
    def continuous(self) -> bool:
        """Whether there is a continuous part."""
        return True

    def tails(self, at: Array) -> Tails:
        """The continuous part at ascending points."""
        raise TypeError(f"{type(self).__name__} has no continuous part")

    def span(self, log_tail: float) -> tuple[float, float]:
        """An interval of losses; of the continuous part, P outside it is at most e^log_tail above, 1e-19
        below.
        """
        raise TypeError(f"{type(self).__name__} has no continuous part")


class Base(Pair):
    """A symmetric pair (its swap has the same loss), from which sampled pairs are built."""

    symmetric = True


@dataclass(frozen=True)
class AtomicPair(Base):
    """A pair of finitely many outcomes."""

    points: Atoms

    @property
    def atoms(self) -> Atoms:
        return self.points

    @property
    def continuous(self) -> bool:
        return False


@dataclass(frozen=True)
class AtomicSkewed(AtomicPair):
    """A pair of finitely many outcomes that is not its own mirror image."""

    symmetric = False


@dataclass(frozen=True)
class GaussianPair(Base):
    """N(mu, 1) against N(0, 1): L ~ N(mu^2/2, mu^2) under P, N(-mu^2/2, mu^2) under Q."""

    mu: float

    def tails(self, at: Array) -> Tails:
        zp, zq = at / self.mu - self.mu / 2, at / self.mu + self.mu / 2
        far = np.maximum(np.abs(zp), np.abs(zq))
        # ndtr is good to a few units times the square of its argument (held by a test against 50 digits).
        return Tails(ndtr(-zp), ndtr(zp), ndtr(-zq), ndtr(zq), 4 * UNIT * (8 + far * far))

    def span(self, log_tail: float) -> tuple[float, float]:
        high = np.sqrt(-2 * log_tail)
        return self.mu**2 / 2 - 9.0 * self.mu, self.mu**2 / 2 + high * self.mu


@dataclass(frozen=True)
class LaplacePair(Base):
    """Laplace noise: losses +-epsilon are atoms, between them P has density e^((l - epsilon)/2) / 4."""

    epsilon: float
    exact: Fraction

    @property
    def atoms(self) -> Atoms:
        p = np.array([0.5 * np.exp(-self.epsilon), 0.5])
        loss = np.array([-self.epsilon, self.epsilon])
        return Atoms(loss, p, p[::-1].copy(), unit=self.exact, index=np.array([-1, 1]))

    def tails(self, at: Array) -> Tails:
        e = self.epsilon
        inside = np.clip(at, -e, e)
        # Distances to both ends, so that neither tail cancels.
        up, down = e - inside, e + inside
        p_above, q_below = -0.5 * np.expm1(-up / 2), -0.5 * np.expm1(-down / 2)
        # e^(-e) (e^(x/2) - 1), written so that nothing overflows.
        p_below, q_above = (-0.5 * np.exp(x / 2 - e) * np.expm1(-x / 2) for x in (down, up))
        return Tails(p_above, p_below, q_above, q_below, np.full(at.shape, 16 * UNIT + 4 * UNIT * e))

    def span(self, log_tail: float) -> tuple[float, float]:
        return -self.epsilon, self.epsilon


@dataclass(frozen=True)
class Sampled(Pair):
    """Poisson sampling at `rate` of a symmetric pair. `adding`: (Q, mixture) instead of (mixture, Q).

    `rest` is 1 - rate, rounded from the exact rate: near 1 a difference of floats would not do.
    """

    base: Base
    rate: float
    rest: float
    adding: bool

    @property
    def atoms(self) -> Atoms:
        mixture = self.base.atoms.sampled(self.rate, self.rest)
        return mixture.swapped() if self.adding else mixture

    @property
    def continuous(self) -> bool:
        return self.base.continuous

    def tails(self, at: Array) -> Tails:
        # The base loss at which the sampled loss is l, from rate e^x = e^l - rest; none is so low where that is < 0.
        raw = self.rest * np.expm1(np.minimum((-at if self.adding else at) - math.log(self.rest), 700.0))
        with np.errstate(divide="ignore"):
            point = np.log(np.maximum(raw, 0.0)) - math.log(self.rate)
        t, q, rest = self.base.tails(np.maximum(point, -4 * FAR)), self.rate, self.rest
        above, below = rest * t.q_above + q * t.p_above, rest * t.q_below + q * t.p_below
        if self.adding:
            return Tails(t.q_below, t.q_above, below, above, t.slack + 8 * UNIT)
        return Tails(above, below, t.q_above, t.q_below, t.slack + 8 * UNIT)

    def span(self, log_tail: float) -> tuple[float, float]:
        low, high = self.base.span(log_tail)
        # The add direction sees the base's losses under Q, whose law is the mirror image of that under P.
        ends = mixed(np.array([min(low, -high), max(high, -low)]), self.rate, self.rest)
        low, high = float(ends[0]), float(ends[1])
        return (-high, -low) if self.adding else (low, high)


@dataclass(frozen=True)
class WithoutReplacement(Pair):
    """Sampling without replacement, replace neighbours: the removal pair for L > 0, mirrored below, the
    rest at 0.
    """

    removal: Sampled
    symmetric = True

    @property
    def atoms(self) -> Atoms:
        return self.removal.atoms

    @property
    def continuous(self) -> bool:
        return self.removal.continuous

    def span(self, log_tail: float) -> tuple[float, float]:
        return self.removal.span(log_tail)
