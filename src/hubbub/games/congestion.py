"""A private mediator for congestion games: noisy loads are all that is shared (`docs/theorems.md`, G2).

n players each take one of K routes. A route's cost grows with the share of players on it; a player's type adds a
taste for routes; costs are in [0, 1]. In each of T rounds every player draws a route by multiplicative weights, and
the loads are published with discrete Gaussian noise. Weights follow the costs at the *noisy* loads, so a player's
weights are a function of the own type and of what is public, and the advice, the own play in a random round,
reveals of others' types only what the noisy loads do (the billboard lemma; Hsu, Huang, Roth, Roughgarden, Wu 2014).
Replacing a type moves one player between two routes in each round: l2 squared 2, so the event is T times
ZCDP(1/sigma^2), rho = T/sigma^2.

**Regret.** With a step of sqrt(8 ln K/T), a type's expected cost exceeds that of the best fixed route in hindsight
by at most sqrt(ln K/2T) per round at the noisy loads (Cesa-Bianchi, Lugosi 2006, Theorem 2.3); at the true ones by
2 L z/n more, L the largest slope of a cost and z the noise, and by L/n for the player's own weight in a load. This
is *external* regret: the advice is a coarse correlated equilibrium. With alpha the regret and v =
`truthfulness(loss)`, misreporting and taking one fixed route gains at most alpha + v (`equilibria`, form b). The
round and the noisy loads stay with the mediator: who sees them can gain more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Number, events as ev
from hubbub.accounting.amounts import amount, probability
from hubbub.errors import ParameterError
from hubbub.mechanisms import GaussianMechanism
from hubbub.mechanisms.calibrate import whole_number
from hubbub.noise import Bits, uniform_below

__all__ = ["Advice", "CongestionGame", "PrivateMediator", "draw_regret"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_FINE = 1 << 40


@dataclass(frozen=True, eq=False)
class CongestionGame:
    """Routes with costs of their share of players, and types with tastes.

    costs: for each route a function of a share in [0, 1], or of an array of such, with values in [0, 1]. tastes:
    shape (types, routes), in [0, 1]. What a player pays is the mean of the two. slope: the largest slope of a cost.
    """

    costs: tuple[Callable[[Any], Any], ...]
    tastes: Floats
    slope: float

    def __init__(self, *, costs: Sequence[Callable[[Any], Any]], tastes: Any, slope: float) -> None:
        given = np.asarray(tastes, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != len(costs) or len(costs) < 2:
            raise ParameterError(f"tastes have shape {given.shape} for {len(costs)} routes; give (types, routes).")
        if given.min() < 0 or given.max() > 1 or not slope >= 0:
            raise ParameterError("tastes lie in [0, 1], and a slope is at least 0.")
        grid = np.linspace(0, 1, 129)
        for cost in costs:
            values = np.array([float(cost(x)) for x in grid])
            if values.min() < 0 or values.max() > 1 or np.abs(np.diff(values)).max() * 128 > slope * (1 + 1e-9) + 1e-9:
                raise ParameterError("a cost leaves [0, 1], or is steeper than slope=; scale it, or give its slope.")
        for name, value in {"costs": tuple(costs), "tastes": given, "slope": float(slope)}.items():
            object.__setattr__(self, name, value)

    @property
    def routes(self) -> int:
        """K."""
        return len(self.costs)

    def pays(self, shares: Any) -> Floats:
        """What each type pays on each route at some shares: shape (types, routes)."""
        road = np.array([float(cost(min(1.0, max(0.0, x)))) for cost, x in zip(self.costs, shares, strict=True)])
        return (road[None, :] + self.tastes) / 2


@dataclass(frozen=True, eq=False)
class Advice:
    """Each player's advised route, and how good following was.

    routes: shape (players,). regret: of each type, its expected cost per round less that of the best fixed route, at
    the true loads; private, like the types, and for tests and demonstrations. mean, worst: over players.
    """

    routes: Integers
    regret: Floats
    mean: float
    worst: float


@dataclass(frozen=True, eq=False)
class PrivateMediator:
    """Advice by noisy no-regret learning, for `rho` in all over `rounds` rounds; neighbours: one type replaced."""

    game: CongestionGame
    rounds: int
    rho: Fraction

    def __init__(self, game: CongestionGame, *, rounds: int, rho: Number) -> None:
        spent = amount(rho, "rho")
        if spent <= 0:
            raise ParameterError(f"rho = {rho} was asked; give an amount above 0.")
        for name, value in {"game": game, "rounds": whole_number(rounds, "rounds"), "rho": spent}.items():
            object.__setattr__(self, name, value)

    @property
    def noise(self) -> GaussianMechanism:
        """The noise on the loads of one round: a player moves two of them by 1, l2 squared 2."""
        return GaussianMechanism(squared_sensitivity=2, rho=self.rho / self.rounds, cells=self.game.routes)

    @property
    def loss(self) -> ev.Event:
        """The event of one `advise`: T rounds of ZCDP(1/sigma^2)."""
        return ev.Repeated(self.noise.loss, self.rounds)

    @property
    def step(self) -> float:
        """sqrt(8 ln K/T)."""
        return math.sqrt(8 * math.log(self.game.routes) / self.rounds)

    def regret(self, *, n: int, beta: Number | None = None) -> float:
        """A bound on every type's regret: sqrt(ln K/2T), and with beta the noise's share, but for probability beta."""
        learning = math.sqrt(math.log(self.game.routes) / (2 * self.rounds))
        if beta is None:
            return learning
        each = float(probability(beta, "beta")) / self.rounds
        # A cost is half road, half taste: the slope counts half.
        return learning + self.game.slope / 2 * (2 * float(self.noise.accuracy(each)) + 1) / whole_number(n, "n")

    def advise(self, types: Any, *, bits: Bits | None = None) -> Advice:
        """Draws the rounds, and gives each player their play in a random one of them.

        types: each player's reported type, 0, 1, ... Their number is public.
        """
        given = np.asarray(types)
        kinds = len(self.game.tastes)
        if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= kinds:
            raise ParameterError(f"types have shape {given.shape}; give each player a type from 0 to {kinds - 1}.")
        n, noise, scores = len(given), self.noise, np.zeros((kinds, self.game.routes))
        paid, fixed = np.zeros(kinds), np.zeros((kinds, self.game.routes))
        shown, advised = int(uniform_below(self.rounds, bits=bits)), np.zeros(n, np.int64)
        for t in range(self.rounds):
            weights = np.exp(-self.step * (scores - scores.min(axis=1, keepdims=True)))
            weights /= weights.sum(axis=1, keepdims=True)
            plays = _drawn(weights, given, bits)
            loads = np.bincount(plays, minlength=self.game.routes)
            if t == shown:
                advised = plays
            scores += self.game.pays(np.asarray(noise.release(loads, bits=bits), dtype=np.float64) / n)
            true = self.game.pays(loads / n)
            paid += (weights * true).sum(axis=1)
            fixed += true
        regret = (paid - fixed.min(axis=1)) / self.rounds
        each = regret[given]
        return Advice(advised, regret, float(each.mean()), float(each.max()))


def _drawn(weights: Floats, types: Integers, bits: Bits | None) -> Integers:
    """A route for each player, by the weights of their type."""
    edges = np.rint(np.cumsum(weights, axis=1) * _FINE).astype(np.int64)
    edges[:, -1] = _FINE
    uniform = uniform_below(_FINE, len(types), bits=bits)
    return np.asarray((uniform[:, None] >= edges[types]).sum(axis=1), dtype=np.int64)


def draw_regret(curves: dict[int, Sequence[tuple[float, float]]], bound: float, *, ax: Any = None) -> Any:
    """Mean regret over rho, one line for each number of players: n -> [(rho, regret), ...]."""
    from hubbub import plots

    lines = [(f"n = {n:,}", [math.log10(r) for r, _ in points], [y for _, y in points]) for n, points in curves.items()]
    ends = [x for _, xs, _ in lines for x in xs]
    lines.append(("sqrt(ln K / 2T)", [min(ends), max(ends)], [bound, bound]))
    return plots.curves(
        lines, title="What following advice loses", xlabel="log10 of rho", ylabel="mean regret per round", ax=ax
    )
