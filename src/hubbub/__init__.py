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
    from hubbub.answer.release import Release as Release
    from hubbub.errors import (
        BudgetError as BudgetError,
        EngineError as EngineError,
        HubbubError as HubbubError,
        InternalError as InternalError,
        ParameterError as ParameterError,
        PolicyError as PolicyError,
        QueryError as QueryError,
    )
    from hubbub.file_formats import Csv as Csv
    from hubbub.ledger.budget import Budget as Budget
    from hubbub.remote import connect as connect
    from hubbub.session import Session as Session
    from hubbub.tables.columns import between as between, edges as edges, one_of as one_of, text as text
    from hubbub.tables.declare import EACH_ROW as EACH_ROW, public as public, table as table
    from hubbub.verbs.functions import (
        coalesce as coalesce,
        col as col,
        concat as concat,
        corr as corr,
        count as count,
        covar as covar,
        dense_rank as dense_rank,
        first as first,
        greatest as greatest,
        lag as lag,
        last as last,
        lead as lead,
        least as least,
        lit as lit,
        max as max,
        mean as mean,
        median as median,
        min as min,
        n_distinct as n_distinct,
        nullif as nullif,
        quantile as quantile,
        quotient as quotient,
        rank as rank,
        remainder as remainder,
        row_number as row_number,
        std as std,
        sum as sum,
        units as units,
        var as var,
        when as when,
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
    "Csv": "hubbub.file_formats",
    "Release": "hubbub.answer.release",
    "Session": "hubbub.session",
    "connect": "hubbub.remote",
    "EACH_ROW": "hubbub.tables.declare",
    "between": "hubbub.tables.columns",
    "edges": "hubbub.tables.columns",
    "one_of": "hubbub.tables.columns",
    "public": "hubbub.tables.declare",
    "table": "hubbub.tables.declare",
    "text": "hubbub.tables.columns",
    "coalesce": "hubbub.verbs.functions",
    "col": "hubbub.verbs.functions",
    "concat": "hubbub.verbs.functions",
    "corr": "hubbub.verbs.functions",
    "count": "hubbub.verbs.functions",
    "covar": "hubbub.verbs.functions",
    "dense_rank": "hubbub.verbs.functions",
    "first": "hubbub.verbs.functions",
    "greatest": "hubbub.verbs.functions",
    "lag": "hubbub.verbs.functions",
    "last": "hubbub.verbs.functions",
    "lead": "hubbub.verbs.functions",
    "least": "hubbub.verbs.functions",
    "lit": "hubbub.verbs.functions",
    "max": "hubbub.verbs.functions",
    "mean": "hubbub.verbs.functions",
    "median": "hubbub.verbs.functions",
    "min": "hubbub.verbs.functions",
    "n_distinct": "hubbub.verbs.functions",
    "nullif": "hubbub.verbs.functions",
    "quantile": "hubbub.verbs.functions",
    "quotient": "hubbub.verbs.functions",
    "rank": "hubbub.verbs.functions",
    "remainder": "hubbub.verbs.functions",
    "row_number": "hubbub.verbs.functions",
    "std": "hubbub.verbs.functions",
    "sum": "hubbub.verbs.functions",
    "units": "hubbub.verbs.functions",
    "var": "hubbub.verbs.functions",
    "when": "hubbub.verbs.functions",
}
_ROOMS = ("accounting", "attacks", "audit", "games", "learning", "local", "mechanisms", "noise", "queries", "synthesis")

__all__ = ["__version__", *_HOME, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"hubbub.{name}")
    if name.islower() and not name.startswith("_"):
        # Verbs of aggregates that are made from their records.
        made = importlib.import_module("hubbub.verbs.functions").MADE
        if name in made:
            return made[name]
    raise AttributeError(f"module 'hubbub' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
