"""verbs: questions written in Python, which become SQL text of ours and go the way of every question.

    session.table("visits").filter(hb.col("age") > 65).group_by("ward").agg(hb.count(), hb.mean("age"))

A builder never changes: every verb gives a new one. It holds no data and decides nothing about privacy: `sql()` prints
its tree, and the session reads that text as it reads any other. Names are quoted and constants printed from their
values, because the tree is of sqlglot's nodes and never of pasted text (pitfall P27). `from_sql` goes the other way.

Text as an argument of a function or a verb names a column; text beside an operator, or in a method of an expression,
is a constant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.verbs.read import from_sql as from_sql
    from hubbub.verbs.rows import Answer as Answer, Groups as Groups, Rows as Rows, rows_of as rows_of
    from hubbub.verbs.terms import Term as Term

_HOME = {
    "Answer": "rows",
    "Groups": "rows",
    "Rows": "rows",
    "rows_of": "rows",
    "Term": "terms",
    "from_sql": "read",
}

FUNCTIONS = (
    "col",
    "lit",
    "when",
    "coalesce",
    "nullif",
    "quotient",
    "remainder",
    "least",
    "greatest",
    "concat",
    "count",
    "units",
    "n_distinct",
    "sum",
    "mean",
    "var",
    "std",
    "median",
    "quantile",
    "min",
    "max",
    "covar",
    "corr",
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "first",
    "last",
)
"""The functions that build expressions; each is also a name of `hubbub` itself."""

__all__ = ["FUNCTIONS", "Answer", "Groups", "Rows", "Term", "from_sql", "rows_of"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name) or ("functions" if name in FUNCTIONS else None)
    if home is None and name.islower():
        made = importlib.import_module("hubbub.verbs.functions").MADE
        if name in made:
            return made[name]
    if home is None:
        raise AttributeError(f"module 'hubbub.verbs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hubbub.verbs.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *FUNCTIONS})
