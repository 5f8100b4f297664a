"""The privacy loss as a random variable: L = ln dP/dQ at an output drawn from P, of the worst pair of an
event.

For randomised response +-epsilon with mean epsilon (e^epsilon - 1)/(e^epsilon + 1); for Gaussian noise
N(mu^2/2, mu^2); in general read off the composed lattice measure from above, whose mean is right to the
second order of the lattice step. Azuma/Hoeffding bounds its tail: losses in [-c_i, c_i] sum to more than
their mean plus t with probability at most exp(-t^2 / 2 sum c_i^2). Neighbours and direction: the worse one
of the event's relation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.certify import composed
from hubbub.accounting.exact import cost
from hubbub.errors import ParameterError

__all__ = ["Loss", "azuma_tail", "loss"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A loss on a lattice: values in nats, their P-masses, and the mass of an infinite loss."""

    values: Array
    masses: Array
    infinite: float

    @property
    def mean(self) -> float:
        """E L of the finite part (the Kullback-Leibler divergence where nothing is infinite)."""
        return float(self.values @ self.masses) / float(self.masses.sum())

    @property
    def variance(self) -> float:
        """Var L of the finite part."""
        off = self.values - self.mean
        return float((off * off) @ self.masses) / float(self.masses.sum())

    def tail(self, t: float) -> float:
        """P(L >= t), the infinite part included."""
        return min(1.0, float(self.masses[self.values >= t - 1e-12].sum()) + self.infinite)

    def delta(self, epsilon: float) -> float:
        """E (1 - e^(epsilon - L))_+."""
        over = self.values > epsilon
        return float(self.masses[over] @ -np.expm1(epsilon - self.values[over])) + self.infinite

    def samples(self, n: int, uniforms: Array | None = None) -> Array:
        """n draws of L, by inversion of `uniforms` in [0, 1); drawn from the exact uniform of `noise` if
        not given.
        """
        if uniforms is None:
            from hubbub import noise

            uniforms = np.asarray(noise.uniform_below(1 << 52, n), dtype=np.float64) / (1 << 52)
        edges = np.cumsum(self.masses)
        where = np.searchsorted(edges, np.asarray(uniforms)[:n], side="right")
        padded = np.append(self.values, math.inf if self.infinite > 0 else self.values[-1])
        return padded[where]

    def plot(self, ax: Any = None) -> Any:
        """The density of the loss, as a matplotlib Axes."""
        from hubbub import plots

        step = float(self.values[1] - self.values[0]) if self.values.size > 1 else 1.0
        kept = self.masses > 1e-6 * self.masses.max()
        return plots.curves(
            [("privacy loss", self.values[kept], self.masses[kept] / step)],
            title="Privacy loss under P",
            xlabel="loss ln P/Q (nats)",
            ylabel="density",
            ax=ax,
        )


def loss(event: ev.Event) -> Loss:
    """The loss of an event's worst direction.

    >>> round(loss(ev.RandomizedResponse(1)).mean, 6)
    0.462117

    Raises ParameterError for classes without one worst pair (zCDP), and what would not fit into memory.
    """
    if cost(event).epsilon == 0:
        return Loss(np.zeros(1), np.ones(1), 0.0)
    best: Loss | None = None
    for c in composed(event, Fraction(1, 20)):
        at = (c.first + np.arange(c.w.size)) * c.h
        mass = np.maximum(c.w, 0.0) * np.exp(np.minimum(c.scale - c.theta * at, 700.0))
        # The untilted far left is round-off magnified; P has no mass there worth keeping.
        mass[c.w < 64 * c.absolute] = 0.0
        kept = mass > 0
        kept_loss = Loss(at[kept], mass[kept] / mass.sum() * (1 - min(c.infinite, 1.0)), min(c.infinite, 1.0))
        if best is None or kept_loss.mean > best.mean:
            best = kept_loss
    if best is None:
        raise ParameterError("the event has no loss. Compose at least one event.")
    return best


def azuma_tail(bounds: list[float], t: float) -> float:
    """P(sum of losses > sum of their means + t) <= exp(-t^2 / (2 sum c_i^2)) for losses in [-c_i, c_i]
    (D8).
    """
    return math.exp(-t * t / (2 * math.fsum(c * c for c in bounds))) if t > 0 else 1.0
