"""Mechanisms for a workload: calibrated by its exact sensitivity, so that nobody states one by hand.

For answers A h with l1 sensitivity D1 and l2 sensitivity D2 (under the neighbours that are named, for a unit with at
most `rows` rows): Laplace noise of scale D1/epsilon, discrete Gaussian noise of variance D2^2 / 2 rho, or the K-norm
mechanism on the sensitivity polytope of a workload of at most 6 queries. To release the answers on a table:
`mechanism.release(workload.evaluate(rows))`.
"""

from __future__ import annotations

from typing import Any

from hubbub.accounting.amounts import Number
from hubbub.mechanisms.calibrate import whole_number
from hubbub.mechanisms.gaussian import GaussianMechanism
from hubbub.mechanisms.knorm import KNormMechanism, Polytope
from hubbub.mechanisms.laplace import LaplaceMechanism
from hubbub.queries import Neighbours, Workload

__all__ = ["gaussian_for", "k_norm_for", "laplace_for"]


def laplace_for(workload: Workload, *, neighbours: Neighbours, rows: int = 1, **calibration: Any) -> LaplaceMechanism:
    """The Laplace mechanism for the integer answers of a workload; calibration as in `LaplaceMechanism`.

    >>> from hubbub.queries import Thresholds
    >>> laplace_for(Thresholds(50), neighbours="add_remove", epsilon=1).scale
    Fraction(50, 1)
    """
    bound = workload.sensitivity(neighbours).of_rows(rows)
    return LaplaceMechanism(sensitivity=bound.l1 / workload.unit, cells=workload.size, **calibration)


def gaussian_for(workload: Workload, *, neighbours: Neighbours, rows: int = 1, **calibration: Any) -> GaussianMechanism:
    """The Gaussian mechanism for the integer answers of a workload; calibration as in `GaussianMechanism`."""
    bound = workload.sensitivity(neighbours).of_rows(rows)
    squared = bound.l2_squared / workload.unit**2
    return GaussianMechanism(squared_sensitivity=squared, cells=workload.size, **calibration)


def k_norm_for(workload: Workload, *, neighbours: Neighbours, epsilon: Number, rows: int = 1) -> KNormMechanism:
    """The K-norm mechanism on the sensitivity polytope of a workload of at most 6 queries with a finite universe.

    A unit of up to `rows` rows moves the answers by so many points of the polytope: its gauge by at most `rows`.
    """
    body, most = Polytope.of(workload.moves(neighbours)), whole_number(rows, "rows")
    return KNormMechanism(norm=body, sensitivity=most, cells=workload.size, epsilon=epsilon)
