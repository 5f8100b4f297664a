"""Mechanisms: how exact integers become private answers, each true to its theorem.

One shape for all. A mechanism is a frozen value, built by keyword from a sensitivity or a domain and exactly one
statement of how much noise; it offers

    loss                    the accounting event to charge
    release(data, bits=)    one draw; bits only in tests
    accuracy(beta)          the error that the theorem promises with probability 1 - beta
    error()                 the exact law of the error, where it is known
    log_prob(output, data)  the exact law of the output, which the checker (`check`) computes with

Calibration  `calibrated`: from a sensitivity and a `Spend` to law and event, for all of the below and for SQL
Numbers      `LaplaceMechanism`, `GaussianMechanism`, `StaircaseMechanism`, `KNormMechanism` with `Polytope`
Each person  `RandomizedResponse`, `KaryResponse`, `response_sample_size`
Choosing     `ExponentialMechanism`, `PermuteAndFlip`, `NoisyMax`, `QuantileMechanism`, `weighted_choice`
Asking       `SparseVector`, `SparseVectorRun`, `above_threshold`
Groups       `GroupThreshold`, `OptimalGroupSelection`, `UnknownTopK`
Workloads    `laplace_for`, `gaussian_for`, `k_norm_for`; `plan` predicts the error of each strategy and picks
Checking     `examine`, `epsilon_between`, `delta_between`, `claimed_delta`, `Finding`
Pictures     `draw_laws`, `draw_local_and_central`, `draw_plans`
The door     `add_noise` through which noise on private integers passes, `recording`, `Recorded`, `ratio_interval`

The room draws no bits itself (`noise` does), takes no seed, and no float decides about privacy.
"""

from hubbub.mechanisms.additive import Recorded, add_noise, recording
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.mechanisms.check import Finding, claimed_delta, delta_between, epsilon_between, examine
from hubbub.mechanisms.gaussian import (
    GaussianMechanism,
    classic_variance,
    discrete_gaussian_delta,
    gaussian_delta,
    gaussian_sigma,
)
from hubbub.mechanisms.groups import GroupThreshold, OptimalGroupSelection
from hubbub.mechanisms.knorm import KNormMechanism, Polytope
from hubbub.mechanisms.laplace import LaplaceMechanism
from hubbub.mechanisms.pictures import draw_laws
from hubbub.mechanisms.planner import (
    Plan,
    Prediction,
    draw_local_and_central,
    draw_plans,
    error_curves,
    local_and_central_error,
    plan,
)
from hubbub.mechanisms.quantiles import QuantileMechanism, rank_error
from hubbub.mechanisms.randomized_response import KaryResponse, RandomizedResponse, response_sample_size
from hubbub.mechanisms.ratio import ratio_interval
from hubbub.mechanisms.selection import ExponentialMechanism, NoisyMax, PermuteAndFlip
from hubbub.mechanisms.sparse import SparseVector, SparseVectorRun, above_threshold
from hubbub.mechanisms.staircase import StaircaseLaw, StaircaseMechanism
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.mechanisms.weighted import weighted_choice
from hubbub.mechanisms.workloads import gaussian_for, k_norm_for, laplace_for

__all__ = [
    "Calibrated",
    "ExponentialMechanism",
    "Finding",
    "GaussianMechanism",
    "GroupThreshold",
    "KNormMechanism",
    "KaryResponse",
    "LaplaceMechanism",
    "NoisyMax",
    "OptimalGroupSelection",
    "PermuteAndFlip",
    "Plan",
    "Polytope",
    "Prediction",
    "QuantileMechanism",
    "RandomizedResponse",
    "Recorded",
    "SparseVector",
    "SparseVectorRun",
    "Spend",
    "StaircaseLaw",
    "StaircaseMechanism",
    "UnknownTopK",
    "above_threshold",
    "add_noise",
    "calibrated",
    "claimed_delta",
    "classic_variance",
    "delta_between",
    "discrete_gaussian_delta",
    "draw_laws",
    "draw_local_and_central",
    "draw_plans",
    "epsilon_between",
    "error_curves",
    "examine",
    "gaussian_delta",
    "gaussian_for",
    "gaussian_sigma",
    "k_norm_for",
    "laplace_for",
    "local_and_central_error",
    "plan",
    "rank_error",
    "ratio_interval",
    "recording",
    "response_sample_size",
    "weighted_choice",
]


def __dir__() -> list[str]:
    return sorted(__all__)
