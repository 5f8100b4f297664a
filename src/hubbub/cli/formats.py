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
    writer.writerow(map(spreadsheet_text, columns))
    writer.writerows([spreadsheet_text(v) if isinstance(v, str) else plain(v) for v in row] for row in rows)
    return out.getvalue().removesuffix("\n")


def as_markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """A table as GitHub and MyST read it."""
    rule = ["---:" if is_number else "---" for is_number in right]
    lines = [[_cell(name) for name in columns], rule, *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
