"""Where in the text something stands, and the block with a caret that shows it."""

from __future__ import annotations

from sqlglot import exp

from hubbub.errors import QueryError

__all__ = ["caret", "refuse"]


def _span(node: exp.Expr) -> tuple[int, int] | None:
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


def refuse(message: str, text: str, node: exp.Expr | None, *, word: str | None = None) -> QueryError:
    """A QueryError with a caret at `node`, or at the first place of `word`, or without one."""
    span = None
    if word is not None:
        at = text.lower().find(word.lower())
        span = (at, at + len(word) - 1) if at >= 0 else None
    if span is None and node is not None:
        span = _span(node)
    return QueryError(message if span is None else f"{message}\n{caret(text, *span)}")
