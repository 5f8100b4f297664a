"""Texts of a question in single quotes: where they stand, and the question with another one."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.remedies import Rewrite

__all__ = ["with_text"]


def with_text(text: str, old: str, new: str) -> tuple[Rewrite, ...]:
    """A question with another text in the only place where one stands.

    >>> with_text("SELECT 1 FROM t WHERE a = 'it''s'", "it's", "its")[0].sql
    "SELECT 1 FROM t WHERE a = 'its'"
    """
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except SqlglotError:
        return ()
    places = [t for t in tokens if t.token_type.name == "STRING" and t.text == old]
    if len(places) != 1:
        return ()
    written = exp.Literal.string(new).sql("duckdb")
    return (Rewrite(written, f"{text[: places[0].start]}{written}{text[places[0].end + 1 :]}"),)
