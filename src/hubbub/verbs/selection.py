"""What of its groups an answer holds: the part of a SELECT that stands beside FROM, WHERE and GROUP BY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from hubbub.verbs.tree import Tail

__all__ = ["NO_TAIL", "Selection"]

NO_TAIL: Final = Tail()


@dataclass(frozen=True, eq=False)
class Selection:
    """The columns of a SELECT, HAVING, and what stands behind it.

    columns: every key and aggregate by name. shown: the names of those that are selected; None: all.
    """

    columns: Mapping[str, exp.Expr]
    having: tuple[exp.Expr, ...] = ()
    shown: tuple[str, ...] | None = None
    tail: Tail = NO_TAIL

    def names(self) -> tuple[str, ...]:
        """The names of the answer's columns."""
        return self.shown if self.shown is not None else tuple(self.columns)
