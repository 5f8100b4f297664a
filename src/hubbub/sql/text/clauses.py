"""The clauses of a question that come after its aggregates, as text: which groups are shown, in which order, how many.

Whether a question with other clauses is the same question to the ledger, its binder says; here is text alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.errors import QueryError
from hubbub.sql.text.read import AsWritten

__all__ = ["Clauses", "clauses_of", "with_clauses"]

_WORDS: Final = {"having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}
_BARE: Final = ("expressions", "from_")
_LONGEST: Final = 10_000


@dataclass(frozen=True)
class Clauses:
    """What stands behind HAVING, ORDER BY and LIMIT; "" where there is none."""

    having: str = ""
    order: str = ""
    limit: str = ""


def clauses_of(sql: str) -> Clauses | None:
    """The clauses of a question; None for one that has no place for them, such as a UNION.

    >>> clauses_of("SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING n > 5 ORDER BY n DESC")
    Clauses(having='n > 5', order='n DESC', limit='')
    """
    statement = _parsed(sql)
    if not isinstance(statement, exp.Select):
        return None
    return Clauses(**{name: _text(statement.args.get(name), word) for name, word in _WORDS.items()})


def with_clauses(sql: str, clauses: Clauses) -> str:
    """The question with these clauses in place of its own.

    >>> " ".join(with_clauses("SELECT g, COUNT(*) AS n FROM t GROUP BY g LIMIT 3", Clauses(order="n DESC")).split())
    'SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n DESC'

    Raises QueryError for a clause that is none, and for a question that has no place for it.
    """
    statement = _parsed(sql)
    if not isinstance(statement, exp.Select):
        raise QueryError("this question has no place for HAVING, ORDER BY or LIMIT: write it as one SELECT.")
    for name, text in asdict(clauses).items():
        statement.set(name, _clause(name, text.strip()) if text.strip() else None)
    return statement.sql(dialect=AsWritten, pretty=True)


def _clause(name: str, text: str) -> exp.Expr:
    """One clause, and nothing beside it."""
    word = _WORDS[name]
    if len(text) > _LONGEST:
        raise QueryError(f"{word}: at most {_LONGEST:,} characters.")
    alone = _parsed(f"SELECT 1 FROM t {word} {text}\n")
    clause = alone.args.get(name) if isinstance(alone, exp.Select) else None
    if not isinstance(clause, exp.Expr) or alone is None or {k for k, v in alone.args.items() if v} - {*_BARE, name}:
        raise QueryError(f"{word} {text!r:.80}: this is not what may stand there.")
    return clause


def _text(clause: exp.Expr | None, word: str) -> str:
    return "" if clause is None else clause.sql(dialect=AsWritten).strip().removeprefix(word).strip()


def _parsed(sql: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(sql, read=AsWritten)
    except (SqlglotError, RecursionError):
        return None
