"""Where in the text something stands, and the block with a caret that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.errors import QueryError
from hubbub.remedies import Remedy, Rewrite

__all__ = ["caret", "in_place", "in_words", "marked", "refuse", "span_of", "written"]


def span_of(node: exp.Expr) -> tuple[int, int] | None:
    """First and last position of a node in the text, from the tokens that sqlglot remembers."""
    spans = [
        (part.meta["start"], part.meta["end"]) for part in node.walk() if "start" in part.meta and "end" in part.meta
    ]
    if not spans:
        return None
    return min(s for s, _ in spans), max(e for _, e in spans)


def caret(text: str, start: int, end: int) -> str:
    """The line of `text` that holds position `start`, with carets below `start` to `end` (inclusive).

    >>> print(caret("SELECT foo(a) FROM t", 7, 9))
      SELECT foo(a) FROM t
             ^^^
    """
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    line = text[begin : len(text) if stop < 0 else stop].replace("\t", " ")
    width = max(1, min(end + 1 - begin, len(line)) - (start - begin))
    if len(line) > 100:
        cut = max(0, min(start - begin - 40, len(line) - 100))
        line, start = line[cut : cut + 100], start - cut
        width = min(width, 100 - (start - begin))
    return f"  {line}\n  {' ' * (start - begin)}{'^' * max(1, width)}"


def refuse(
    message: str,
    text: str,
    node: exp.Expr | None,
    *,
    word: str | None = None,
    remedy: Remedy | Sequence[Remedy] = (),
) -> QueryError:
    """A QueryError with a caret at `node`, or at the first place of `word`, or without one."""
    span = None
    if word is not None:
        at = text.lower().find(word.lower())
        span = (at, at + len(word) - 1) if at >= 0 else None
    if span is None and node is not None:
        span = span_of(node)
    return QueryError(message, remedy=remedy) if span is None else marked(message, text, *span, remedy=remedy)


def marked(message: str, text: str, start: int, end: int, *, remedy: Remedy | Sequence[Remedy] = ()) -> QueryError:
    """A QueryError with carets below `start` to `end` (inclusive), which are its position too."""
    error = QueryError(f"{message}\n{caret(text, start, end)}", remedy=remedy)
    error.position = (start, end + 1)
    return error


def in_place(instead: str, text: str, node: exp.Expr) -> Rewrite:
    """The question with something else where `node` stands: a way out that leaves nothing to fill in."""
    span = span_of(node)
    return Rewrite(instead, None if span is None else f"{text[: span[0]]}{instead}{text[span[1] + 1 :]}")


def written(node: exp.Expr, text: str) -> str:
    """The word by which the text calls a function, in capitals: the parser knows several names as one function.

    >>> written(sqlglot.parse_one("SELECT random()", read="duckdb").selects[0], "SELECT random()")
    'RANDOM'
    """
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
        meta, node = node.meta, node.this
        if "start" in meta and "start" not in node.meta:
            node.meta.update(meta)
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is not None and end is not None and _is_word(text[start : end + 1]):
        return text[start : end + 1].strip('"').upper()
    span = span_of(node)
    called = next((word for word in _calls_around(text, span[0]) if _is_call_of(word, node)), None) if span else None
    return called or (node.sql_name() if isinstance(node, exp.Func) else node.key.upper())


def in_words(node: exp.Expr) -> str:
    """A computed column as a message calls it that has no other name for it: as it was asked, cut short.

    >>> in_words(sqlglot.parse_one("sum( cost/age )", read="duckdb"))
    'SUM(cost / age)'
    """
    text = node.sql("duckdb", comments=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _is_word(text: str) -> bool:
    return text.strip('"').replace("_", "a").isalnum()


def _calls_around(text: str, at: int) -> list[str]:
    """The words before the parentheses that are open at a place of the text, the innermost first."""
    try:
        tokens = [t for t in sqlglot.tokenize(text, read="duckdb") if t.start < at]
    except SqlglotError:
        return []
    calls, closed = [], 0
    for before, token in zip([None, *tokens][::-1][1:], tokens[::-1], strict=False):
        closed += (token.text == ")") - (token.text == "(")
        if closed < 0:
            closed = 0
            if before is not None and _is_word(before.text):
                calls.append(before.text.upper())
    return calls


def _is_call_of(word: str, node: exp.Expr) -> bool:
    """Whether a function of this name is read as a node of this type."""
    for arguments in ("x", "x, 1", "x, y, 1", ""):
        try:
            read = sqlglot.parse_one(f"{word}({arguments})", read="duckdb")
        except SqlglotError:
            continue
        while isinstance(read, exp.IgnoreNulls):
            read = read.this
        if type(read) is type(node):
            return True
    return False
