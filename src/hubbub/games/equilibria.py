"""Equilibria of finite games, and what private advice makes of them (`docs/theorems.md`, G2).

A law over action profiles is a *correlated equilibrium* if nobody who is told their own action gains by playing
another (Aumann 1974); *coarse*, if nobody gains by playing one fixed action whatever they are told. Independent mixed
actions that are best replies (Nash) are correlated equilibria, and not every correlated one is such: in chicken with
payoffs (6,6) (2,7) (7,2) (0,0) the best correlated equilibrium, a traffic light, gives 5.25 each, the mixed Nash one
14/3.

**Private mediators.** Agents report types, a mediator draws a profile of actions and tells each agent their own.
Let the law of the *others'* advice move by at most v in total variation when agent i reports another type
(`influence`; joint differential privacy bounds it, v <= tanh(epsilon/2)). With utilities in [0, 1] and others who
follow:

(a) if every advised action is within alpha of a best reply to the others' advice, as drawn (an ex-post Nash advice), no
    misreport followed by any use of the advice gains more than alpha + v: E' max_a u <= E max_a u + v;
(b) if the advice is a coarse correlated equilibrium within alpha, no misreport followed by one fixed action gains
    more than that;
(c) with a billboard, something shown to all, alpha is the regret against functions of what is shown, and v is of the
    law of (shown, others' advice).

For correlated equilibria "misreport and obey" is *not* bounded by alpha + v: the advice to i may tell about the
others' although their law never moves. i gets 1[a_i = a_j] if of type t, j nothing. On the report t the mediator
tosses two coins, on t' one for both. Others' law is the same (v = 0), each output is an exact correlated equilibrium
of the reported game, and reporting t' and obeying gains 1/2. Correlated equilibria need strong mediators (Kearns,
Pai, Rogers, Roth, Ullman 2015).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given

__all__ = [
    "Equilibrium",
    "Manipulation",
    "best_manipulation",
    "correlated_equilibrium",
    "equilibrium_slack",
    "influence",
    "is_correlated_equilibrium",
    "nash_equilibria",
]

Floats = NDArray[np.float64]
_MOST: Final = 100_000
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A law over action profiles, one axis for each player, and what each player expects."""

    law: Floats
    payoffs: tuple[float, ...]


def _game(payoffs: Any) -> Floats:
    table = np.asarray(payoffs, dtype=np.float64)
    if table.ndim < 2 or table.shape[0] != table.ndim - 1 or not np.isfinite(table).all():
        raise ParameterError(
            f"payoffs have shape {table.shape}; give (players, actions of 1, ..., actions of the last)."
        )
    if table[0].size > _MOST:
        raise ParameterError(f"the game has {table[0].size:,} profiles; at most {_MOST:,} are taken.")
    return table


def _gains(table: Floats, *, coarse: bool = False) -> list[Floats]:
    """For each player, (told, instead): over profiles, what playing another action adds, where the advice is `told`."""
    rows = []
    for player in range(table.shape[0]):
        axis, own = player, table[player]
        for instead in range(own.shape[axis]):
            other = np.take(own, [instead], axis=axis)
            difference = np.broadcast_to(other, own.shape) - own
            if coarse:
                rows.append(difference)
                continue
            for told in range(own.shape[axis]):
                mask = np.zeros(own.shape[axis])
                mask[told] = 1
                shape = [1] * own.ndim
                shape[axis] = -1
                rows.append(difference * mask.reshape(shape))
    return rows


def equilibrium_slack(law: Any, payoffs: Any, *, coarse: bool = False) -> float:
    """The most that any player gains by a change of action; 0 for an exact equilibrium.

    Correlated: by any function from the own advice to actions. coarse: by one fixed action.
    """
    table, chances = _game(payoffs), _law(law, payoffs)
    worst = 0.0
    for player in range(table.shape[0]):
        own = np.moveaxis(table[player], player, 0)
        weight = np.moveaxis(chances, player, 0)
        size = len(own)
        # gain[told, instead]
        gain = np.array([[(weight[t] * (own[i] - own[t])).sum() for i in range(size)] for t in range(size)])
        worst = max(worst, float(gain.sum(axis=0).max() if coarse else gain.max(axis=1).sum()))
    return worst


def is_correlated_equilibrium(law: Any, payoffs: Any, *, slack: float = _TOLERANCE, coarse: bool = False) -> bool:
    """Whether no player gains more than `slack` by a change of action."""
    return equilibrium_slack(law, payoffs, coarse=coarse) <= slack


def _law(law: Any, payoffs: Any) -> Floats:
    chances = np.asarray(law, dtype=np.float64)
    if chances.shape != np.asarray(payoffs).shape[1:] or chances.min() < 0 or abs(chances.sum() - 1) > 1e-9:
        raise ParameterError(f"the law has shape {chances.shape}; give probabilities of all profiles, adding to 1.")
    return chances


def correlated_equilibrium(payoffs: Any, *, objective: Any = None, coarse: bool = False) -> Equilibrium:
    """The correlated equilibrium with the largest objective, by linear programming.

    payoffs: shape (players, actions of 1, ...). objective: a number for each profile; the sum of payoffs unless
    given.

    >>> chicken = [[[6, 2], [7, 0]], [[6, 7], [2, 0]]]
    >>> found = correlated_equilibrium(chicken)
    >>> found.law.round(6).tolist(), [round(p, 6) for p in found.payoffs]
    ([[0.5, 0.25], [0.25, 0.0]], [5.25, 5.25])
    """
    from scipy.optimize import linprog

    table = _game(payoffs)
    aim = table.sum(axis=0) if objective is None else np.asarray(objective, dtype=np.float64)
    if aim.shape != table.shape[1:]:
        raise ParameterError(f"objective has shape {aim.shape}; give a number for each of {table.shape[1:]} profiles.")
    rows = np.array([r.ravel() for r in _gains(table, coarse=coarse)])
    solution = linprog(
        -aim.ravel(), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, aim.size)), b_eq=[1.0], method="highs"
    )
    if solution.x is None:
        raise ParameterError("the linear program has no solution; payoffs differ by too many orders of magnitude.")
    law = np.maximum(solution.x, 0).reshape(aim.shape)
    law /= law.sum()
    return Equilibrium(law, tuple(float((law * own).sum()) for own in table))


def nash_equilibria(payoffs: Any) -> list[Equilibrium]:
    """The Nash equilibria of a game of two players, by enumeration of supports of equal size: all, if it is generic."""
    table = _game(payoffs)
    if table.shape[0] != 2 or max(table.shape[1:]) > 8:
        raise ParameterError("Nash equilibria are enumerated for two players with at most 8 actions each.")
    first, second = table
    equilibria: list[Equilibrium] = []
    for size in range(1, min(first.shape) + 1):
        for rows in itertools.combinations(range(first.shape[0]), size):
            for columns in itertools.combinations(range(first.shape[1]), size):
                # Each player's mix makes the other indifferent on the support.
                y = _indifferent(first[np.ix_(rows, columns)])
                x = _indifferent(second[np.ix_(rows, columns)].T)
                if x is None or y is None:
                    continue
                mixed = [np.zeros(n) for n in first.shape]
                mixed[0][list(rows)], mixed[1][list(columns)] = x, y
                law = np.outer(*mixed)
                if equilibrium_slack(law, table) <= _TOLERANCE * (1 + float(np.abs(table).max())):
                    equilibria.append(Equilibrium(law, (float((law * first).sum()), float((law * second).sum()))))
    return equilibria


def _indifferent(payoff: Floats) -> Floats | None:
    """Weights on the columns that make all rows pay the same; None where there are none that are positive."""
    n = len(payoff)
    system = np.block([[payoff, -np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    try:
        weights = np.linalg.solve(system, np.r_[np.zeros(n), 1.0])[:n]
    except np.linalg.LinAlgError:
        return None
    return weights if weights.min() > -_TOLERANCE and np.isfinite(weights).all() else None


Mediator = Callable[[tuple[Any, ...]], Any]


def influence(mediator: Mediator, types: Sequence[Any], player: int, reports: Sequence[Any]) -> float:
    """v: how far another report of a player moves the law of the others' advice, in total variation, at most."""
    base = np.asarray(mediator(tuple(types)), dtype=np.float64).sum(axis=player)
    moved = [np.asarray(mediator(_told(types, player, r)), dtype=np.float64).sum(axis=player) for r in reports]
    return max(float(np.maximum(law - base, 0).sum()) for law in moved)


def _told(types: Sequence[Any], player: int, report: Any) -> tuple[Any, ...]:
    return (*types[:player], report, *types[player + 1 :])


@dataclass(frozen=True)
class Manipulation:
    """The best misreport: what is reported, what is played on each advice, and both expected utilities."""

    report: Any
    plays: tuple[int, ...]
    honest: float
    best: float

    @property
    def gain(self) -> float:
        """best - honest."""
        return self.best - self.honest


def best_manipulation(
    mediator: Mediator,
    utility: Any,
    types: Sequence[Any],
    player: int,
    reports: Sequence[Any],
    *,
    uses: Literal["any", "fixed", "obey"] = "any",
) -> Manipulation:
    """The most a player gains by another report and another use of the advice, others being true and obedient; exactly.

    mediator: reported types -> law over advice, one axis for each player. utility: what the player, of the true type,
    gets in each profile. uses: "any" function of the advice, one "fixed" action, or "obey".
    """
    if uses not in ("any", "fixed", "obey"):
        raise ParameterError(f"uses = {what_was_given(uses)} was asked; allowed are 'any', 'fixed' and 'obey'.")
    worth = np.moveaxis(np.asarray(utility, dtype=np.float64), player, 0)
    size = len(worth)

    def told(report: Any) -> Floats:
        law = np.moveaxis(np.asarray(mediator(_told(types, player, report)), dtype=np.float64), player, 0)
        # pays[advice, action]
        return np.array([[float((law[a] * worth[b]).sum()) for b in range(size)] for a in range(size)])

    honest = float(np.trace(told(types[player])))
    best = Manipulation(types[player], tuple(range(size)), honest, honest)
    for report in reports:
        pays = told(report)
        if uses == "any":
            plays = tuple(int(b) for b in pays.argmax(axis=1))
        elif uses == "fixed":
            plays = (int(pays.sum(axis=0).argmax()),) * size
        else:
            plays = tuple(range(size))
        total = float(sum(pays[a, b] for a, b in enumerate(plays)))
        if total > best.best:
            best = Manipulation(report, plays, honest, total)
    return best
