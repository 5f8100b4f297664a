"""Which nodes DuckDB could raise at, were an operand of another type or another size than it is: there `TRY` stands.

`TRY` gives NULL where what it holds raises. It is the net below the casts of `hubbub.sql.emit.expression`, and stands
around nodes, not around whole expressions: an optimiser that computes a part once, before the expression it was in,
takes it out of a `TRY` around the whole. (`hubbub.engines.duckdb.engine` switches that optimiser off, too.)

`TRY` cannot hold an aggregate or a window function. Their sums are of whole numbers or decimals, in 128 bits: with the
largest limits and the most groups that can be declared, one unit's part of a sum is below 2^93, so that there is room
for 2^34 units, and for 2^48 rows of one. A default of LAG and the columns of a set operation, where it cannot stand
either, are cast by us always (`Dialect.column`).
"""

from __future__ import annotations

from typing import Final, assert_never

from hubbub.tables.expressions import (
    Arithmetic,
    Call,
    Case,
    Column,
    Compare,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Logic,
    Negate,
    Not,
)
from hubbub.tables.functions import FUNCTIONS
from hubbub.tables.kinds import TEMPORAL

__all__ = ["NEVER", "RAISES", "raises"]

NEVER: Final = frozenset(
    {
        "SIGN",
        "LENGTH",
        "STARTS_WITH",
        "ENDS_WITH",
        "CONTAINS",
        # Written as TRY_CAST, which is a cast and its net in one.
        "CAST_INTEGER",
        "CAST_NUMBER",
        "CAST_TEXT",
        "CAST_BOOLEAN",
        "CAST_DATE",
        "CAST_TIMESTAMP",
    }
)
"""The functions that cannot raise, whatever they are given."""

MIXED: Final = frozenset({"LEAST", "GREATEST", "COALESCE", "NULLIF"})
"""Those that only bring their arguments together: the cast that the engine would add to a date could raise."""

RAISES: Final = frozenset(FUNCTIONS) - NEVER - MIXED
"""The functions that could raise: the overflow of ABS, a text that is not UTF-8, a time beyond the calendar."""


def raises(node: Expression) -> bool:
    """Whether DuckDB could raise at this node itself, its operands left out."""
    match node:
        case Column() | Literal() | Logic() | Not() | IsNull():
            return False
        case Arithmetic() | Negate() | Like():
            return True
        case Compare(left=left, right=right):
            return _two_kinds_of_time(left, right)
        case InList(operand=operand, values=values):
            return _two_kinds_of_time(operand, *values)
        case Case(values=values, default=default):
            return _two_kinds_of_time(*values, default)
        case Call(name=name, arguments=arguments) if name in MIXED:
            return _two_kinds_of_time(*arguments)
        case Call(name=name):
            return name in RAISES
    assert_never(node)


def _two_kinds_of_time(*nodes: Expression) -> bool:
    """Whether dates meet times. Whole numbers beside others become doubles, which holds for each of them."""
    return {node.kind for node in nodes} >= TEMPORAL
