"""Names and texts as a question writes them, and the question with another text."""

from __future__ import annotations

import re
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from hubbub.remedies import Rewrite

__all__ = ["as_name", "with_text"]

_WORDS: Final = {word for keyword in DuckDB.Tokenizer.KEYWORDS for word in (keyword, keyword.split()[0])}
"""What may be read as something else than a name: keywords, and the first words of those that have two."""


def as_name(name: str) -> str:
    """A name as SQL reads it: in double quotes where it would be read as something else.

    >>> as_name("ward"), as_name("Patient ID"), as_name("order")
    ('ward', '"Patient ID"', '"order"')
    """
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) and name.upper() not in _WORDS
    return name if plain else exp.to_identifier(name, quoted=True).sql("duckdb")


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
