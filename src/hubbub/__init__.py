"""hubbub: differentially private answers about a table of people. You hear the room, never the person.

    import hubbub as hb

    visits = hb.table("visits.parquet", unit="patient_id", max_groups=3, max_rows=2,
                      columns={"age": hb.between(0, 120), "ward": hb.one_of("A", "B", "C")})
    session = hb.Session({"visits": visits}, budget=hb.Budget(epsilon=3), ledger="budget.db")
    session.check("SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward", epsilon=0.5)
    session.sql("SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward", epsilon=0.5)

Names load when first used, so that `import hubbub` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hubbub.errors import (
        BudgetError as BudgetError,
        EngineError as EngineError,
        HubbubError as HubbubError,
        InternalError as InternalError,
        ParameterError as ParameterError,
        PolicyError as PolicyError,
        QueryError as QueryError,
    )
    from hubbub.ledger.budget import Budget as Budget
    from hubbub.release import Release as Release
    from hubbub.session import Session as Session
    from hubbub.tables.declare import (
        EACH_ROW as EACH_ROW,
        between as between,
        one_of as one_of,
        public as public,
        table as table,
    )

_HOME = {
    "BudgetError": "hubbub.errors",
    "EngineError": "hubbub.errors",
    "HubbubError": "hubbub.errors",
    "InternalError": "hubbub.errors",
    "ParameterError": "hubbub.errors",
    "PolicyError": "hubbub.errors",
    "QueryError": "hubbub.errors",
    "Budget": "hubbub.ledger.budget",
    "Release": "hubbub.release",
    "Session": "hubbub.session",
    "EACH_ROW": "hubbub.tables.declare",
    "between": "hubbub.tables.declare",
    "one_of": "hubbub.tables.declare",
    "public": "hubbub.tables.declare",
    "table": "hubbub.tables.declare",
}
_ROOMS = ("accounting", "games", "learning", "local", "mechanisms", "noise", "queries")

__all__ = ["__version__", *_HOME, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"hubbub.{name}")
    raise AttributeError(f"module 'hubbub' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
