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
from hubbub.tables.expressions import Expression, whole
from hubbub.tables.kinds import NUMERIC, Kind

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
    """One term of GROUP BY. `hubbub.tables.groups` finds the groups it can have."""

    expression: Expression

    @property
    def kind(self) -> Kind:
        """The kind of its groups: whole numbers stay whole, whatever computes them."""
        return Kind.INTEGER if self.expression.kind in NUMERIC and whole(self.expression) else self.expression.kind


@dataclass(frozen=True)
class Output:
    """One column of the answer, under its name: a key, an aggregate, or an expression of both.

    An expression is over the released table, whose columns are named `k0`, `k1`, ... (keys) and `a0`, `a1`, ...
    (aggregates).
    """

    name: str
    what: Key | Aggregate | Expression


@dataclass(frozen=True)
class Order:
    """One term of ORDER BY, over the released table."""

    by: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Question:
    """One private question.

    `where` is a row expression over the table's columns; `having` and `order` are over the released table.
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
            known: tuple[object, ...] | None = None
            if isinstance(output.what, Key | Aggregate):
                known = self.keys if isinstance(output.what, Key) else self.aggregates
            if known is not None and output.what not in known:
                raise InternalError(f"column {output.name!r} is no key and no aggregate of the question")

    @property
    def chooses(self) -> bool:
        """Whether released rows may be left out or reordered, or computed with."""
        return self.computed or self.having is not None or bool(self.order) or self.limit is not None or self.offset > 0

    @property
    def computed(self) -> bool:
        """Whether some column of the answer is an expression of others."""
        return any(not isinstance(o.what, Key | Aggregate) for o in self.outputs)
