"""LIKE and ILIKE: a text against a constant pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.kinds import wrong_kind
from hubbub.tables.expressions import Expression, Like, Literal, Not
from hubbub.tables.kinds import Kind
from hubbub.tables.patterns import like_parts

if TYPE_CHECKING:
    from hubbub.sql.bind.expression import ExpressionReader

__all__ = ["like"]

_MOST_WILDCARDS: Final = 100
"""Of %: Postgres's matcher calls itself at each, as far as a row's text matches, and its stack is finite."""
_LONGEST: Final = 1_000
"""Characters: an engine's time for one row's text may be its length times that of the pattern."""


def like(reader: ExpressionReader, node: exp.Expr) -> Expression:
    """`x LIKE 'a%'`, also with ESCAPE. Raises QueryError for a pattern that is none, too long, or not a constant."""
    escape = None
    if isinstance(node, exp.Escape):
        escape_node, node = node.expression, node.this
        if not (isinstance(escape_node, exp.Literal) and escape_node.is_string and len(escape_node.this) == 1):
            raise reader.refuse("ESCAPE takes one character, such as '!'.", escape_node, remedy=Rewrite("'!'"))
        escape = str(escape_node.this)
    if not isinstance(node, exp.Like | exp.ILike):
        raise reader.refuse("ESCAPE belongs to LIKE.", node, remedy=Rewrite("LIKE"))
    reader.only_known_arguments(node)
    operand, pattern = reader.read(node.this), reader.read(node.expression)
    if operand.kind not in (Kind.TEXT, Kind.NULL):
        says, way = wrong_kind("LIKE looks at text", operand.kind, (Kind.TEXT,))
        raise reader.refuse(says, node.this, remedy=way)
    constant = pattern.value if isinstance(pattern, Literal) and isinstance(pattern.value, str) else None
    parts = () if constant is None else like_parts(constant, escape)
    if constant is None or len(constant) > _LONGEST or (parts or ()).count("%") > _MOST_WILDCARDS:
        says = (
            f"LIKE takes a constant pattern of at most {_LONGEST:,} characters and {_MOST_WILDCARDS} %, such as 'A%'."
        )
        raise reader.refuse(says, node, remedy=Rewrite("'A%'"))
    if parts is None:
        doubled = Rewrite(exp.Literal.string(f"{constant}{escape}").sql())
        raise reader.refuse(
            f"the pattern ends with its escape character; to mean that character write {doubled.example}.",
            node,
            remedy=doubled,
        )
    made = Like(operand, parts, isinstance(node, exp.ILike))
    return Not(made) if node.args.get("negate") else made
