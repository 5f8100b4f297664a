"""Tables as HTML for notebooks: no scripts, no styles of their own, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["html_lines", "html_table"]


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under their column names.

    >>> html_table(["n"], [["<b>"]])
    '<table><thead><tr><th>n</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def html_lines(lines: Iterable[str]) -> str:
    """Sentences, each a paragraph."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines if line)
