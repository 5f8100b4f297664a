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
from hubbub.accounting.filters import Filter, GaussianFilter, PureFilter, ZCDPFilter
from hubbub.accounting.zcdp import (
    delta_of_rho,
    epsilon_of_rho,
    rho_of_epsilon,
    rho_of_sigma,
    sigma_of_rho,
    variance_of_rho,
)

__all__ = [
    "ZCDP",
    "ApproxDP",
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
    "cost",
    "delta_of_rho",
    "epsilon_of_rho",
    "from_json",
    "neighbours",
    "pure_epsilon",
    "rho",
    "rho_of_epsilon",
    "rho_of_sigma",
    "sigma_of_rho",
    "to_json",
    "variance_of_rho",
]
