"""What is declared, for whoever may ask: the tables, their columns, and what their bounds cost. From no row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hubbub.ledger.schedule import SECOND
from hubbub.service.bound_costs import HalfWidth, bound_costs
from hubbub.service.forms import declared_table
from hubbub.session.empty import EmptyTables
from hubbub.session.shown import DeclaredTables

__all__ = ["Declared"]


class Declared:
    """The declared tables. times: the answer time of each, in microseconds. half_width: what a check predicts."""

    def __init__(self, data: EmptyTables, times: Mapping[str, int], half_width: HalfWidth) -> None:
        self._data, self._times, self._half_width = data, times, half_width
        self._bound_costs: dict[str, dict[str, Any]] | None = None

    def tables(self, who: object) -> dict[str, Any]:
        """The declared tables: the columns, their kinds, what is declared of each, and their answer times."""
        del who
        return {
            name: {
                "columns": {column: kind.value for column, kind in info.columns.items()},
                "private": info.private,
                "answer_time": self._times.get(name, 0) / SECOND,
                **declared_table(info),
            }
            for name, info in self._data.catalog.items()
        }

    def table(self, who: object, name: str) -> dict[str, Any]:
        """One declared table.

        Raises QueryError, with the nearest name, where there is none.
        """
        declared = DeclaredTables(self._data.catalog)[name]
        return {"name": declared.name, "about": declared.about, **self.tables(who)[declared.name]}

    def bound_costs(self, who: object) -> dict[str, dict[str, Any]]:
        """Of each private table what its declared bounds cost: of each bound, the half-width of a count at several
        sizes. From declarations, which do not change while this runs.
        """
        if self._bound_costs is None:
            private = {name: declared for name, declared in self.tables(who).items() if declared["private"]}
            self._bound_costs = {n: bound_costs(n, declared, self._half_width) for n, declared in private.items()}
        return self._bound_costs
