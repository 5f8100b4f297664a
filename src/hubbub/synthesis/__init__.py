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
    from hubbub.synthesis.domain import Domain as Domain

# Where each public name lives.
_LATER = {
    "Domain": "domain",
}

__all__ = [
    "Domain",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'hubbub.synthesis' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"hubbub.synthesis.{_LATER[name]}"), name)
    # Bound once: later look-ups do not come here.
    globals()[name] = found
    return found
