"""Where the rows of a declared table are, as a text of one engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """Where a declared table's rows are: a relation that is safe to paste, the expression of each column and of the
    unit (None where each row is a unit)."""

    relation: str
    columns: Mapping[str, str]
    unit: str | None
