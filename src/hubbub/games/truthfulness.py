"""Privacy is approximate truthfulness, for any utility, any coalition, any number of runs (`docs/theorems.md`, G1).

An agent's utility u in [0, 1] is a function of the outcome. Reports of k agents are exchanged for others; the
outcome's law changes from P to P', and E u by at most the total variation distance of the two, which is delta at
epsilon 0 of the event seen by a group of k. The accountant has that number:

    gain = delta(Group(Repeated(event, runs), k), 0),     tanh(k epsilon / 2) for one pure epsilon and k agents,

and for rho-zCDP, whose Kullback-Leibler divergence is rho at most, no more than Pinsker's sqrt(rho / 2).

Reports are *exchanged*: for an event that is stated for replace neighbours the group is k, for add/remove 2k.
Running several mechanisms on the same reports composes first: ten runs at .1 gain .12254, not tanh(.5) = .46212,
and not the textbook's e^1 - 1 = 1.71828 (McSherry, Talwar 2007, state e^(-k epsilon) <= ratio <= e^(k epsilon),
`factor`). No money is needed. The bad news: nothing here is about the *truth*. Any report is as approximately
dominant as the true one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import cost, delta_bounds, events as ev, pure_epsilon
from hubbub.accounting.amounts import count
from hubbub.accounting.rounding import float_up, root_up
from hubbub.errors import ParameterError, what_was_given
from hubbub.queries import Neighbours

__all__ = ["Deviation", "Truthfulness", "best_deviation", "draw_gains", "on_behalf", "truthfulness"]

_MOST: Final = 2_000_000
Law = Callable[[tuple[Any, ...]], Any]


@dataclass(frozen=True)
class Truthfulness:
    """What exchanging the reports of some agents changes at most.

    gain: of any expected utility in [0, 1]. factor: e^(k epsilon), by which any expected utility grows; inf where the
    event is not pure. deviation: the event whose delta at epsilon 0 the gain is.
    """

    gain: float
    factor: float
    deviation: ev.Event


def truthfulness(event: ev.Event, *, neighbours: Neighbours, agents: int = 1, runs: int = 1) -> Truthfulness:
    """How much `agents` agents together gain at most by other reports, over `runs` runs of a mechanism.

    neighbours: what the event's numbers are about; an exchanged report is two steps of "add_remove".

    >>> from hubbub.accounting import PureDP
    >>> [round(truthfulness(PureDP("0.1"), neighbours="replace", agents=k).gain, 5) for k in (1, 5)]
    [0.04996, 0.24492]
    >>> round(truthfulness(PureDP("0.1"), neighbours="replace", runs=10).gain, 5)
    0.12254
    """
    if neighbours not in ("add_remove", "replace"):
        raise ParameterError(f"neighbours = {what_was_given(neighbours)} was asked; it is 'add_remove' or 'replace'.")
    stated = ev.neighbours(event)
    if stated not in ("either", neighbours):
        raise ParameterError(
            f"the event is about {what_was_given(stated)} neighbours, and {what_was_given(neighbours)} was said; "
            "say what it is."
        )
    size = count(agents, "agents") * (1 if neighbours == "replace" else 2)
    several = event if count(runs, "runs") == 1 else ev.Repeated(event, runs)
    whole = several if size == 1 else ev.Group(several, size)
    pure = pure_epsilon(whole)
    factor = math.inf if pure is None or pure > 700 else math.exp(float(pure))
    gain, total = delta_bounds(whole, 0)[1], cost(whole)
    if total.delta == 0:
        gain = min(gain, float_up(root_up(total.rho / 2)))
    return Truthfulness(gain=gain, factor=factor, deviation=whole)


@dataclass(frozen=True)
class Deviation:
    """The best joint misreport: what the reports are then, and the expected utilities with the old ones and with it."""

    reports: tuple[Any, ...]
    before: float
    after: float

    @property
    def gain(self) -> float:
        """after - before; 0 where no deviation is better."""
        return self.after - self.before


def best_deviation(
    mechanism: Any,
    reports: Sequence[Any],
    *,
    coalition: Sequence[int],
    alternatives: Sequence[Any],
    utility: Any = None,
) -> Deviation:
    """Tries every joint misreport of a coalition, and gives the one with the largest expected utility; exactly.

    mechanism: has `log_probs(reports)`, or is such a function: ln P of each outcome. coalition: whose reports change.
    alternatives: what each of them may report. utility: one number in [0, 1] for each outcome (the coalition's mean,
    say); None takes the utility that gains most, so the gain is the total variation distance.
    """
    law, given = _law(mechanism), tuple(reports)
    if len(set(coalition)) != len(coalition) or not all(0 <= i < len(given) for i in coalition):
        raise ParameterError(f"coalition = {list(coalition)}: name different places of the {len(given)} reports.")
    if len(alternatives) ** len(coalition) > _MOST:
        raise ParameterError("too many joint misreports to try; take a smaller coalition or fewer alternatives.")
    base = np.exp(law(given))
    worth = None if utility is None else np.asarray(utility, dtype=np.float64)
    if worth is not None and (worth.shape != base.shape or worth.min() < 0 or worth.max() > 1):
        raise ParameterError(f"utility has shape {worth.shape}; give a number in [0, 1] for each outcome.")
    best = Deviation(given, *(2 * (0.0 if worth is None else float(base @ worth),)))
    for chosen in itertools.product(alternatives, repeat=len(coalition)):
        trial = list(given)
        for place, report in zip(coalition, chosen, strict=True):
            trial[place] = report
        odds = np.exp(law(tuple(trial)))
        after = float(np.maximum(odds - base, 0).sum()) if worth is None else float(odds @ worth)
        if after > best.after:
            best = Deviation(tuple(trial), best.before, after)
    return best


def _law(mechanism: Any) -> Callable[[tuple[Any, ...]], NDArray[np.float64]]:
    law = getattr(mechanism, "log_probs", mechanism)
    return lambda reports: np.asarray(law(reports), dtype=np.float64)


def on_behalf(mechanism: Any, strategies: Sequence[Callable[[Any], Any]]) -> Law:
    """The direct mechanism: everybody tells the truth, and the coordinator reports for them by their strategies.

    What was an equilibrium of strategies is one of truths: whatever an agent could gain by another report to the
    coordinator, they could have gained before (the revelation principle; Gibbard 1973, Myerson 1979).
    """
    law = _law(mechanism)
    return lambda reports: law(tuple(s(r) for s, r in zip(strategies, reports, strict=True)))


def draw_gains(
    event: ev.Event,
    *,
    neighbours: Neighbours,
    sizes: Sequence[int],
    exact: Sequence[float] | None = None,
    ax: Any = None,
) -> Any:
    """The bound over the size of a coalition, and over the number of runs; exact: what was found by trying."""
    from hubbub import plots

    one = truthfulness(event, neighbours=neighbours)
    places = list(map(float, sizes))
    lines = [
        ("coalition of k", places, [truthfulness(event, neighbours=neighbours, agents=k).gain for k in sizes]),
        ("k runs, one agent", places, [truthfulness(event, neighbours=neighbours, runs=k).gain for k in sizes]),
    ]
    if one.factor < math.inf:
        lines.append(("textbook: factor less 1", places, [min(1.0, one.factor**k - 1) for k in sizes]))
    if exact is not None:
        lines.append(("coalition, all misreports tried", places, list(exact)))
    return plots.curves(
        lines, title="What other reports gain at most", xlabel="k", ylabel="change of an expected utility", ax=ax
    )
