"""The exact audit: output distributions on neighbours, by enumeration or by quadrature, against the claim.

Finite laws go to the mechanisms' checker (`hubbub.mechanisms.examine`). For a density p on the line and its neighbour
q,

    delta(epsilon) = max over the two orders of  integral max(0, p - e^epsilon q),
    epsilon        = sup |ln p - ln q|

by a Gauss-Legendre rule of five nodes in each of many panels; the supremum is over the nodes, so it is approached from
below. Mass outside [low, high] counts as delta, as in the checker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms import examine

__all__ = ["Exact", "exact", "exact_density"]

_ROUND_OFF = 1 + 1e-9
_PANELS = 20_000


@dataclass(frozen=True)
class Exact:
    """What the laws say. epsilon: the least for which they are pure; delta: the least at the claimed epsilon.

    pair: the neighbours of the worst epsilon.
    """

    claimed_epsilon: float
    claimed_delta: float
    epsilon: float
    delta: float
    pair: tuple[Any, Any]

    @property
    def holds(self) -> bool:
        """Whether the claim stands: pure epsilon, or delta at epsilon, up to the round-off of floats."""
        pure = self.epsilon <= self.claimed_epsilon * _ROUND_OFF
        return pure or (self.claimed_delta > 0 and self.delta <= self.claimed_delta * _ROUND_OFF)


def exact(law: Callable[[Any], Any], pairs: Iterable[tuple[Any, Any]], *, epsilon: float, delta: float = 0.0) -> Exact:
    """Check a claim by enumeration.

    law: data -> ln probabilities over one fixed list of outputs. pairs: neighbouring data.

    Raises ParameterError where there is no pair.

    >>> coin = lambda truth: np.log([0.75, 0.25] if truth else [0.25, 0.75])
    >>> exact(coin, [(True, False)], epsilon=1.1).holds, exact(coin, [(True, False)], epsilon=1.0).holds
    (True, False)
    """
    examined = examine(law, pairs, epsilons=[float(epsilon)])
    return Exact(float(epsilon), float(delta), examined.epsilon, examined.deltas[float(epsilon)], examined.pair)


def exact_density(
    log_density: Callable[[Any, Any], Any],
    pairs: Iterable[tuple[Any, Any]],
    *,
    low: float,
    high: float,
    epsilon: float,
    delta: float = 0.0,
) -> Exact:
    """Check a claim about a density by quadrature over [low, high].

    log_density: (data, points) -> ln density at an array of points.

    Raises ParameterError for an empty range.
    """
    if not low < high:
        raise ParameterError(f"low = {low}, high = {high}; give low < high.")
    nodes, weights = np.polynomial.legendre.leggauss(5)
    edges = np.linspace(low, high, _PANELS + 1)
    half = (high - low) / _PANELS / 2
    points = ((edges[:-1] + half)[:, None] + half * nodes[None, :]).ravel()
    log_weights = np.tile(np.log(half * weights), _PANELS)

    def law(data: Any) -> Any:
        return np.asarray(log_density(data, points)) + log_weights

    return exact(law, pairs, epsilon=epsilon, delta=delta)
