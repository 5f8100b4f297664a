"""Constants of a question: numbers, dates, and the arguments of functions that take nothing else.

`ROUND(x, 2)` takes a whole number, `DATE_TRUNC('month', day)` a unit of time: what a function does is then known before
rows are read.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
import sys
from fractions import Fraction
from typing import Any, Final

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.rewritten import check_pattern
from hubbub.sql.text.functions import UNITS
from hubbub.tables.expressions import Expression, Literal
from hubbub.tables.functions import PARTS

__all__ = ["check_constant", "number_of", "temporal"]

# Three digits of exponent reach past every double; "1e999999999" as a Fraction would fill the memory.
_NUMBER: Final = re.compile(r"(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,3})?")
_LARGEST: Final = Fraction(sys.float_info.max)
_DATE: Final = "'2025-01-31'"


def check_constant(reader: Any, name: str, argument: Expression, node: exp.Expr) -> None:
    """Raises QueryError where an argument of a function is not the constant that it takes."""
    if not isinstance(argument, Literal):
        raise reader.refuse(f"{name} takes a constant here.", node)
    value = argument.value
    if name in ("DATE_TRUNC", "DATE_DIFF", "EXTRACT"):
        known = PARTS if name == "EXTRACT" else UNITS
        if value not in known:
            near = difflib.get_close_matches(str(value), sorted(known), n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise reader.refuse(
                f"{name} knows {', '.join(sorted(known))}.{hint}", node, remedy=Rewrite(near[0] if near else "MONTH")
            )
    elif name == "REPLACE" and not (isinstance(value, str) and len(value) <= 100):
        raise reader.refuse("REPLACE takes texts of at most 100 characters.", node)
    elif name == "REGEXP_MATCHES":
        check_pattern(reader, value, node)
    elif name == "SPLIT_PART":
        if not (1 <= value <= 1000 if isinstance(value, int) else isinstance(value, str) and 1 <= len(value) <= 100):
            raise reader.refuse("SPLIT_PART takes a separator of 1 to 100 characters and a place from 1 on.", node)
    elif name in ("ROUND", "SUBSTR", "LEFT", "RIGHT"):
        limit = 15 if name == "ROUND" else 1_000_000
        if not isinstance(value, int) or abs(value) > limit:
            raise reader.refuse(f"{name} takes a whole number up to {limit:,} here.", node)


def number_of(reader: Any, node: exp.Literal) -> int | Fraction:
    """The number that a literal writes."""
    text = str(node.this)
    if _NUMBER.fullmatch(text) is None:
        raise reader.refuse(f"{text[:40]} is not a number that can be read.", node)
    value = Fraction(text)
    if abs(value) > _LARGEST:
        raise reader.refuse("this number is beyond 1.79e308.", node)
    return int(value) if text.isdigit() and abs(value) < 2**63 else value


def temporal(reader: Any, text: str, node: exp.Expr, *, strictly: bool = False) -> Literal:
    """The date or time that a text says. strictly: a date alone."""
    try:
        if len(text) <= 10 or strictly:
            return Literal(dt.date.fromisoformat(text))
        moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        return Literal(moment)
    except (ValueError, OverflowError):
        raise reader.refuse(
            f"{text!r} is not an ISO date or time such as {_DATE} or '2025-01-31 12:00:00'.",
            node,
            remedy=Rewrite(_DATE),
        ) from None
