"""Tables of data as text for other programs: JSON, CSV and Markdown.

Amounts of epsilon are written as exact decimal text, or as a ratio where no decimal is exact; a missing
value is null in JSON, an empty field in CSV.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from hubbub.file_formats import spreadsheet_text
from hubbub.ledger.budget import decimal_text

__all__ = ["as_csv", "as_json", "as_markdown", "plain"]


def plain(value: object) -> object:
    """A value as JSON knows it: numbers stay numbers, dates become ISO text, amounts exact text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Fraction():
            return decimal_text(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return str(value)


def as_json(value: object) -> str:
    """Any nest of dicts, lists and values as JSON text, indented by two."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=plain, allow_nan=False)


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """RFC 4180 with a header and plain newlines; no text is a spreadsheet's formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a lone CR ends a line for who reads it
    for row in (columns, *rows):
        cells = [spreadsheet_text(v) if isinstance(v, str) else plain(v) for v in row]
        (quoting if any(isinstance(c, str) and "\r" in c for c in cells) else writer).writerow(cells)
    return out.getvalue().removesuffix("\n")


def as_markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """A table as GitHub and MyST read it, in which no text is HTML, a link or code."""
    rule = ["---:" if is_number else "---" for is_number in right]
    lines = [[_cell(name) for name in columns], rule, *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_PLAIN: Final = str.maketrans({"&": "&amp;", "<": "&lt;"} | {mark: f"\\{mark}" for mark in "\\|`$"})
"""How what Markdown reads otherwise than it stands is written."""


def _cell(text: str) -> str:
    return " ".join(text.splitlines()).translate(_PLAIN).replace("](", "]\\(")
