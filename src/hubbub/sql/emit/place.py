"""Where the rows of a declared table are, as a text of one engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """Where a declared table's rows are: a relation that is safe to paste, the expression of each column and of the
    unit (None where each row is a unit).

    key: of a column that leads to the unit, the expression that tells apart whatever the source does, as a unit's own
    does, and a word for its type. A column's expression may not: two decimals beyond 2^53 are one number.
    """

    relation: str
    columns: Mapping[str, str]
    unit: str | None
    key: Callable[[str], tuple[str, str]]
