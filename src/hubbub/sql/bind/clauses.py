"""Which clauses a SELECT over owned rows may have: each one is read, or the question is refused."""

from __future__ import annotations

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import Reader
from hubbub.sql.text.arguments import unread
from hubbub.sql.text.hints import clause_refused

__all__ = ["check_clauses"]

_REFUSED = {
    "laterals": "LATERAL",
    "sample": "SAMPLE",
    "into": "INTO",
    "hint": "a hint",
    "pivots": "PIVOT",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "prewhere": "PREWHERE",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "locks": "FOR UPDATE",
    "kind": "SELECT AS",
    "settings": "SETTINGS",
    "format": "FORMAT",
    "options": "OPTION",
}
_READ = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct"}
_READ |= {"qualify", "windows"}


def check_clauses(reader: Reader, node: exp.Select) -> None:
    """Raises QueryError for a clause, or a part of one, that nothing reads."""
    for name, value in node.args.items():
        if not value or name in _READ:
            continue
        word = _REFUSED.get(name, name.strip("_").upper())
        place = value[0] if isinstance(value, list) else value
        says, ways = clause_refused(word)
        raise reader.refuse(
            says,
            place if isinstance(place, exp.Expr) else None,
            word=word if word.isupper() else None,
            remedy=ways,
        )
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise reader.refuse(
            "DISTINCT ON is not supported; use a window: ROW_NUMBER() OVER (PARTITION BY id ORDER BY x).",
            distinct,
            remedy=Rewrite("ROW_NUMBER() OVER (PARTITION BY id ORDER BY x)"),
        )
    for name in ("group", "order", "limit", "offset"):
        clause = node.args.get(name)
        if isinstance(clause, exp.Fetch):
            raise reader.refuse(
                "FETCH takes a number of rows: FETCH FIRST 3 ROWS ONLY; or write LIMIT 3.",
                clause,
                remedy=Rewrite("FETCH FIRST 3 ROWS ONLY"),
            )
        if clause is not None:
            for part in (clause, *(clause.expressions if isinstance(clause, exp.Order) else ())):
                modifier = unread(part)
                if modifier is not None:
                    raise reader.refuse(f"{modifier} is not supported here.", part)
