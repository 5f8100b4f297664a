"""The private aggregates, a file for each family: the registry that every other room reads.

A new aggregate is a file of this folder and its name in `FAMILIES`. The binder finds it by its spellings, the
reference and the auditor's questions are checked against its record, and its verb is made from it.
"""

from hubbub.tables.aggregates import (
    count,
    covariance,
    geometric,
    mean,
    mode,
    quantile,
    regression,
    spread,
    sum,
    top_k,
    weighted,
)
from hubbub.tables.aggregates.base import Aggregate, Computed, Family, Function, Listed

__all__ = [
    "FAMILIES",
    "FUNCTIONS",
    "Aggregate",
    "Computed",
    "Family",
    "Function",
    "Listed",
    "forms",
    "names",
    "spelled",
]

_FILES = (count, sum, mean, spread, quantile, covariance, regression, geometric, mode, top_k, weighted)

FAMILIES: tuple[Family, ...] = tuple(file.FAMILY for file in _FILES)

FUNCTIONS: dict[str, Function] = {f.names.key: f for family in FAMILIES for f in family.functions}
"""Every function, by its name."""

_SPELLED = {spelling: f for f in FUNCTIONS.values() for spelling in f.names.spellings}


def spelled(*names: str) -> Function | None:
    """The function that has one of these names in SQL, if any has.

    >>> spelled("VARIANCE")
    <VAR_SAMP>
    """
    return next((_SPELLED[name] for name in names if name in _SPELLED), None)


def names() -> tuple[str, ...]:
    """All names by which functions are called, for hints."""
    own = (f.names for f in FUNCTIONS.values())
    called = (name for n in own for name in (*n.spellings, *(form.partition("(")[0] for form in n.forms)))
    return tuple(dict.fromkeys(called))


def forms() -> str:
    """How all functions are written, for messages."""
    return ", ".join(form for f in FUNCTIONS.values() for form in f.names.forms)
