"""Tables as HTML for notebooks, and whole pages to hand out: no scripts, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["html_lines", "html_page", "html_table"]

_STYLE = (
    '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><style>'
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}table{border-collapse:"
    "collapse;display:block;overflow-x:auto}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}"
    "svg{max-width:100%;height:auto}</style>"
)


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


def html_page(title: str, body: str) -> str:
    """A page of its own, light or dark as its reader prefers. body: its middle, HTML already."""
    named = html.escape(title)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{named}</title>{_STYLE}</head><body>'
        f"<h1>{named}</h1>{body}</body></html>\n"
    )
