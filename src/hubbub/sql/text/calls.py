"""Calls with other arguments than a function takes, and what to write for them."""

from __future__ import annotations

import contextlib

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.remedies import Rewrite
from hubbub.sql.text.locate import span_of
from hubbub.sql.text.read import FORMS, AsWritten

__all__ = ["with_other_arguments"]


def with_other_arguments(text: str, node: exp.Expr, name: str) -> tuple[str, Rewrite] | None:
    """What is said of a function that has more arguments than it takes, or a logarithm another base than 10."""
    if isinstance(node, exp.Anonymous) and name in FORMS:
        way = Rewrite(FORMS[name])
        return f"{name} does not take {len(node.expressions)} arguments; write {way.example}.", way
    if isinstance(node, exp.Log) and isinstance(node.expression, exp.Expr):
        base, number = (argument.sql(AsWritten) for argument in (node.this, node.expression))
        way = _in_place(f"(LN({number}) / LN({base}))", text, node)
        return f"a logarithm to another base than 10 is a quotient; write {way.example}.", way
    return None


def _in_place(instead: str, text: str, node: exp.Expr) -> Rewrite:
    """The question with something else in place of a call; without it where the end of the call is not told."""
    span = span_of(node)
    end = -1 if span is None else text.find(")", span[1] + 1)
    if span is not None and not text[span[1] + 1 : end].strip():
        whole = f"{text[: span[0]]}{instead}{text[end + 1 :]}"
        with contextlib.suppress(SqlglotError):
            sqlglot.parse_one(whole, read=AsWritten)
            return Rewrite(instead, whole)
    return Rewrite(instead)
