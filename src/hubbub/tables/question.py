"""A question: owned rows below one private aggregate, and a choice of released rows above it.

Ownership (the one rule). A relation R over a database D is *owned* when for every unit u, R(D + u) = R(D) + R_u,
with every row of R_u carrying owner u: adding a unit changes no other unit's row. A scan of a declared table
with its unit column is owned (rows whose unit is NULL are dropped), and a filter by a row expression keeps it so,
because it looks at one row alone. Nothing else stands below the aggregate here; what breaks ownership has no node.

Above the aggregate everything is released, hence public: HAVING, ORDER BY and LIMIT choose among released rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hubbub.errors import InternalError
from hubbub.tables.expressions import Expression
from hubbub.tables.kinds import Kind

__all__ = ["Aggregate", "Function", "Key", "Order", "Output", "Question"]


class Function(Enum):
    """The private aggregates. The value of each member is its name in SQL."""

    COUNT_ROWS = "COUNT(*)"
    COUNT_VALUES = "COUNT"
    COUNT_UNITS = "COUNT(DISTINCT unit)"
    SUM = "SUM"
    AVG = "AVG"


@dataclass(frozen=True)
class Aggregate:
    """One private aggregate; `argument` is None for COUNT(*) and COUNT(DISTINCT unit)."""

    function: Function
    argument: Expression | None = None


@dataclass(frozen=True)
class Key:
    """One column of GROUP BY; its declared values are the groups."""

    column: str
    kind: Kind


@dataclass(frozen=True)
class Output:
    """One column of the answer, under its name: a key or an aggregate of the question."""

    name: str
    what: Key | Aggregate


@dataclass(frozen=True)
class Order:
    """One term of ORDER BY, over the released table."""

    by: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Question:
    """One private question.

    `where` is a row expression over the table's columns. `having` and `order` are expressions over the released
    table, whose columns are named `k0`, `k1`, ... (keys) and `a0`, `a1`, ... (aggregates).
    """

    table: str
    where: Expression | None
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        if not self.aggregates:
            raise InternalError("a question without an aggregate")
        for output in self.outputs:
            known: tuple[object, ...] = self.keys if isinstance(output.what, Key) else self.aggregates
            if output.what not in known:
                raise InternalError(f"column {output.name!r} is no key and no aggregate of the question")

    @property
    def chooses(self) -> bool:
        """Whether some released rows may be left out or reordered."""
        return self.having is not None or bool(self.order) or self.limit is not None or self.offset > 0
