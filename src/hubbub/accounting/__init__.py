"""Accounting: what was run, what it costs, what may still be charged, and what an epsilon means.

The room's rules:
- One vocabulary of *events* (`events`), exact and frozen; a closed registry writes them as JSON (`codec`).
- `cost`, `rho`, `pure_epsilon` and the filters are exact rational arithmetic: only they decide about a
  budget.
- `bounds` is certified from both sides; `epsilon`, `delta` and the rest are numbers to look at. A ledger
  never
  charges an estimate.
- Neighbours are part of an event; both directions, adding and removing, are always looked at.

The numerical half loads numpy and scipy when first used; the rest needs the standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.accounting.amounts import Number
from hubbub.accounting.codec import from_json, to_json
from hubbub.accounting.events import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    GaussianDP,
    Group,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledWithoutReplacement,
    Threshold,
    neighbours,
)
from hubbub.accounting.exact import Cost, cost, pure_epsilon, rho
from hubbub.accounting.filters import BasicFilter, Filter, GaussianFilter, PureFilter, ZCDPFilter
from hubbub.accounting.zcdp import (
    delta_of_rho,
    epsilon_of_rho,
    rho_of_epsilon,
    rho_of_sigma,
    sigma_of_rho,
    variance_of_rho,
)
from hubbub.late import late_names

if TYPE_CHECKING:
    from hubbub.accounting.losses import Loss as Loss, loss as loss
    from hubbub.accounting.meaning import explain as explain
    from hubbub.accounting.questions import (
        bounds as bounds,
        calibrate as calibrate,
        delta as delta,
        delta_bounds as delta_bounds,
        epsilon as epsilon,
        mu as mu,
        profile as profile,
        renyi as renyi,
        tradeoff as tradeoff,
    )

_LATER = {
    "bounds": "questions",
    "calibrate": "questions",
    "delta": "questions",
    "delta_bounds": "questions",
    "epsilon": "questions",
    "explain": "meaning",
    "Loss": "losses",
    "loss": "losses",
    "mu": "questions",
    "profile": "questions",
    "renyi": "questions",
    "tradeoff": "questions",
}

__all__ = [
    "ZCDP",
    "ApproxDP",
    "BasicFilter",
    "BoundedRange",
    "Composed",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Filter",
    "Gaussian",
    "GaussianDP",
    "GaussianFilter",
    "Group",
    "Laplace",
    "Loss",
    "Number",
    "Parallel",
    "PoissonSampled",
    "PureDP",
    "PureFilter",
    "RandomizedResponse",
    "Repeated",
    "SampledWithoutReplacement",
    "Threshold",
    "ZCDPFilter",
    "bounds",
    "calibrate",
    "cost",
    "delta",
    "delta_bounds",
    "delta_of_rho",
    "epsilon",
    "epsilon_of_rho",
    "explain",
    "from_json",
    "loss",
    "mu",
    "neighbours",
    "profile",
    "pure_epsilon",
    "renyi",
    "rho",
    "rho_of_epsilon",
    "rho_of_sigma",
    "sigma_of_rho",
    "to_json",
    "tradeoff",
    "variance_of_rho",
]


__getattr__ = late_names(__name__, _LATER, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
