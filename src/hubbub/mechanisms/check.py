"""The exact checker: what a mechanism's output laws on two neighbours say about its privacy, not samples of it.

For laws P and Q over the same outputs,

    epsilon(P, Q) = max over outputs of |ln P(y) - ln Q(y)|      (infinite where one is possible and the other not),
    delta_eps(P, Q) = max over the two orders of sum_y max(0, P(y) - e^eps Q(y))

are the least epsilon of pure privacy and the least delta at eps (Dwork, Roth 2014, Section 2; the hockey-stick
divergence). Laws come as logarithms of probabilities. Outputs may be left out; then what is missing from P is added
to delta, so a bound stays one. `examine` takes the worst over many pairs of neighbouring inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.accounting import events as ev
from hubbub.accounting.exact import cost
from hubbub.accounting.zcdp import delta_of_rho
from hubbub.errors import ParameterError

__all__ = ["Finding", "claimed_delta", "delta_between", "epsilon_between", "examine"]


def epsilon_between(first: Any, second: Any) -> float:
    """The least epsilon for which both laws are epsilon-indistinguishable.

    first, second: ln of probabilities, of one shape.

    >>> two_coins = np.log([[0.75, 0.25], [0.25, 0.75]])
    >>> round(math.exp(epsilon_between(*two_coins)), 12)
    3.0
    """
    p, q = _pair(first, second)
    possible = (p > -np.inf) | (q > -np.inf)
    with np.errstate(invalid="ignore"):
        return float(np.abs(p[possible] - q[possible]).max(initial=0.0))


def delta_between(first: Any, second: Any, epsilon: float) -> float:
    """The least delta at epsilon >= 0, both ways round; mass that the outputs leave out counts as delta.

    >>> forced_yes = np.log([[1.0, 1e-300], [0.5, 0.5]])
    >>> round(delta_between(*forced_yes, 5.0), 12)
    0.5
    """
    p, q = _pair(first, second)
    return max(_one_way(p, q, epsilon), _one_way(q, p, epsilon))


def _one_way(p: Any, q: Any, epsilon: float) -> float:
    missing = max(0.0, 1.0 - math.fsum(np.exp(p).tolist()))
    missing = missing if missing > 1e-13 else 0.0
    return math.fsum(np.maximum(0.0, np.exp(p) - np.exp(epsilon + q)).tolist()) + missing


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    p, q = np.asarray(first, dtype=np.float64).ravel(), np.asarray(second, dtype=np.float64).ravel()
    if p.shape != q.shape or p.size == 0:
        raise ParameterError(f"two laws over {p.size} and {q.size} outputs were given; give one list of outputs.")
    return p, q


@dataclass(frozen=True)
class Finding:
    """The worst over all pairs: epsilon with the pair it was found at, and delta at the epsilons that were asked."""

    epsilon: float
    pair: tuple[Any, Any]
    deltas: dict[float, float]


def examine(law: Callable[[Any], Any], pairs: Iterable[tuple[Any, Any]], *, epsilons: Iterable[float] = ()) -> Finding:
    """The worst epsilon, and the worst delta at each of `epsilons`, over pairs of neighbouring inputs.

    law: input -> ln probabilities over one fixed list of outputs.
    """
    worst, at = -1.0, (None, None)
    deltas = dict.fromkeys(epsilons, 0.0)
    for first, second in pairs:
        p, q = law(first), law(second)
        measured = epsilon_between(p, q)
        if measured > worst:
            worst, at = measured, (first, second)
        for epsilon in deltas:
            deltas[epsilon] = max(deltas[epsilon], delta_between(p, q, epsilon))
    if worst < 0:
        raise ParameterError("no pair of neighbours was given; give at least one.")
    return Finding(worst, at, deltas)


def claimed_delta(event: ev.Event, epsilon: float) -> float:
    """A delta that the event's exact cost promises at epsilon: what a finding may not exceed.

    Pure events promise 0 from their epsilon on; below it, and for all others, zCDP and the event's own delta. The
    numerical accountant (`hubbub.accounting.delta`) is sharper; this one is rational up to its last step.
    """
    total = cost(event)
    if total.epsilon is not None and epsilon >= float(total.epsilon):
        return 0.0
    if isinstance(event, ev.ApproxDP) and epsilon >= float(event.epsilon):
        return float(event.delta)
    return min(1.0, delta_of_rho(total.rho, epsilon) + float(total.delta))
