"""Many queries at once: marginals, ranges, synthetic data; each by the method that suits it.

The room's rules:
- A table is a matrix of integer codes over a public `Domain`; what is counted is an integer when noise is added.
- Every release states its accounting event (`loss`, with an exact rho where it is zCDP) and is charged as one plan.
- What follows a release (reconstruction, consistency, sampling of records) is post-processing and costs nothing.

Names load when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.synthesis.constraints import Constraint as Constraint, constraint as constraint
    from hubbub.synthesis.domain import Domain as Domain
    from hubbub.synthesis.planner import (
        METHODS as METHODS,
        SynthesisPlan as SynthesisPlan,
        plan_synthesis as plan_synthesis,
    )
    from hubbub.synthesis.records import Categories as Categories, Edges as Edges, Schema as Schema
    from hubbub.synthesis.report import SynthesisReport as SynthesisReport
    from hubbub.synthesis.synthetic import SyntheticData as SyntheticData, synthesize as synthesize

# Where each public name lives.
_LATER = {
    "Domain": "domain",
    "Categories": "records",
    "Constraint": "constraints",
    "constraint": "constraints",
    "Edges": "records",
    "METHODS": "planner",
    "plan_synthesis": "planner",
    "Schema": "records",
    "SyntheticData": "synthetic",
    "SynthesisPlan": "planner",
    "SynthesisReport": "report",
    "synthesize": "synthetic",
}

__all__ = [
    "METHODS",
    "Categories",
    "Constraint",
    "Domain",
    "Edges",
    "Schema",
    "SynthesisPlan",
    "SynthesisReport",
    "SyntheticData",
    "constraint",
    "plan_synthesis",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'hubbub.synthesis' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"hubbub.synthesis.{_LATER[name]}"), name)
    # Bound once: later look-ups do not come here.
    globals()[name] = found
    return found
