"""What an engine is: the promises that every engine keeps, and that one suite of tests checks for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hubbub.tables.declare import PrivateTable, Scalar
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Plan

__all__ = ["Engine", "Exact", "Schema"]


@dataclass(frozen=True)
class Schema:
    """Columns of a source, by name, in order, and its unit column as the source writes it. From metadata alone.

    unit_type: a word for the unit's type; units of two tables are compared only where it is the same.
    """

    columns: Mapping[str, Kind]
    unit: str | None = None
    unit_type: str | None = None


@dataclass(frozen=True)
class Exact:
    """Exact integers by group: the most private thing there is. It cannot be printed, pickled or stored.

    vectors: one tuple per measurement of the plan, one entry per group: an integer, or for values that a quantile
    looks at, pairs (step, how often) by increasing step. groups: the keys of each entry where groups are found
    privately; None for public groups, which come in canonical order, zeros included.
    """

    vectors: tuple[tuple[Any, ...], ...]
    groups: tuple[tuple[Scalar, ...], ...] | None = None

    def __repr__(self) -> str:
        return "Exact(not shown)"

    def __reduce__(self) -> str:
        raise TypeError("exact integers about people cannot be pickled")


class Engine(Protocol):
    """An engine that holds the private tables of one session."""

    def add(self, name: str, table: PrivateTable) -> Schema:
        """Make a declared table known.

        Raises PolicyError for a source that is missing or whose schema contradicts the declaration.
        """
        ...

    def run(self, plan: Plan, public: Mapping[str, Any] | None = None) -> Exact:
        """Run the private part of a question. public: the Arrow table of each public relation, by its place.

        Raises EngineError, with an incident id alone, if the engine fails.
        """
        ...

    def words(self, incident: str) -> str | None:
        """What the engine itself said of an incident, once; for the steward alone."""
        ...

    def interrupt(self) -> None:
        """Stop what is running."""
        ...

    def close(self) -> None:
        """Release everything, temporary files included."""
        ...
