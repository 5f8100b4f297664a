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

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.late import late_names
from hubbub.mechanisms.additive import Recorded, add_noise, recording
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated

if TYPE_CHECKING:
    from hubbub.mechanisms.check import (
        Finding as Finding,
        claimed_delta as claimed_delta,
        delta_between as delta_between,
        epsilon_between as epsilon_between,
        examine as examine,
    )
    from hubbub.mechanisms.gaussian import (
        GaussianMechanism as GaussianMechanism,
        classic_variance as classic_variance,
        discrete_gaussian_delta as discrete_gaussian_delta,
        gaussian_delta as gaussian_delta,
        gaussian_sigma as gaussian_sigma,
    )
    from hubbub.mechanisms.groups import (
        GroupThreshold as GroupThreshold,
        OptimalGroupSelection as OptimalGroupSelection,
    )
    from hubbub.mechanisms.knorm import (
        KNormMechanism as KNormMechanism,
        Polytope as Polytope,
    )
    from hubbub.mechanisms.laplace import LaplaceMechanism as LaplaceMechanism
    from hubbub.mechanisms.pictures import draw_laws as draw_laws
    from hubbub.mechanisms.planner import (
        Plan as Plan,
        Prediction as Prediction,
        draw_local_and_central as draw_local_and_central,
        draw_plans as draw_plans,
        error_curves as error_curves,
        local_and_central_error as local_and_central_error,
        plan as plan,
    )
    from hubbub.mechanisms.quantiles import (
        QuantileMechanism as QuantileMechanism,
        rank_error as rank_error,
    )
    from hubbub.mechanisms.randomized_response import (
        KaryResponse as KaryResponse,
        RandomizedResponse as RandomizedResponse,
        response_sample_size as response_sample_size,
    )
    from hubbub.mechanisms.ratio import ratio_interval as ratio_interval
    from hubbub.mechanisms.selection import (
        ExponentialMechanism as ExponentialMechanism,
        NoisyMax as NoisyMax,
        PermuteAndFlip as PermuteAndFlip,
    )
    from hubbub.mechanisms.sparse import (
        SparseVector as SparseVector,
        SparseVectorRun as SparseVectorRun,
        above_threshold as above_threshold,
    )
    from hubbub.mechanisms.staircase import (
        StaircaseLaw as StaircaseLaw,
        StaircaseMechanism as StaircaseMechanism,
    )
    from hubbub.mechanisms.top_k import UnknownTopK as UnknownTopK
    from hubbub.mechanisms.weighted import weighted_choice as weighted_choice
    from hubbub.mechanisms.workloads import (
        gaussian_for as gaussian_for,
        k_norm_for as k_norm_for,
        laplace_for as laplace_for,
    )

_LATER = {
    "above_threshold": "sparse",
    "claimed_delta": "check",
    "classic_variance": "gaussian",
    "delta_between": "check",
    "discrete_gaussian_delta": "gaussian",
    "draw_laws": "pictures",
    "draw_local_and_central": "planner",
    "draw_plans": "planner",
    "epsilon_between": "check",
    "error_curves": "planner",
    "examine": "check",
    "ExponentialMechanism": "selection",
    "Finding": "check",
    "gaussian_delta": "gaussian",
    "gaussian_for": "workloads",
    "gaussian_sigma": "gaussian",
    "GaussianMechanism": "gaussian",
    "GroupThreshold": "groups",
    "k_norm_for": "workloads",
    "KaryResponse": "randomized_response",
    "KNormMechanism": "knorm",
    "laplace_for": "workloads",
    "LaplaceMechanism": "laplace",
    "local_and_central_error": "planner",
    "NoisyMax": "selection",
    "OptimalGroupSelection": "groups",
    "PermuteAndFlip": "selection",
    "Plan": "planner",
    "plan": "planner",
    "Polytope": "knorm",
    "Prediction": "planner",
    "QuantileMechanism": "quantiles",
    "RandomizedResponse": "randomized_response",
    "rank_error": "quantiles",
    "ratio_interval": "ratio",
    "response_sample_size": "randomized_response",
    "SparseVector": "sparse",
    "SparseVectorRun": "sparse",
    "StaircaseLaw": "staircase",
    "StaircaseMechanism": "staircase",
    "UnknownTopK": "top_k",
    "weighted_choice": "weighted",
}

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


__getattr__ = late_names(__name__, _LATER, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
