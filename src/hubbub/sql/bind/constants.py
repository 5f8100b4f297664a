"""Constants of a question: numbers, dates, and the arguments of functions that take nothing else.

`ROUND(x, 2)` takes a whole number, `DATE_TRUNC('month', day)` a unit of time: what a function does is then known before
rows are read.
"""

from __future__ import annotations

import datetime as dt
import difflib
import math
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
_LARGEST_WRITTEN: Final = "1.79e308"
_EXAMPLES: Final = {"REPLACE": "'a'", "REGEXP_MATCHES": "'^A'", "SPLIT_PART": "1", "LEFT": "3", "RIGHT": "3"}
"""A constant of each function that takes one; of the others a number of digits or a place."""


def check_constant(reader: Any, name: str, argument: Expression, node: exp.Expr) -> None:
    """Raises QueryError where an argument of a function is not the constant that it takes."""
    if not isinstance(argument, Literal):
        way = Rewrite(_EXAMPLES.get(name, "2"))
        raise reader.refuse(f"{name} takes a constant here, such as {way.example}.", node, remedy=way)
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
            way = Rewrite("','" if isinstance(value, str) else _nearest(value, 1, 1000))
            raise reader.refuse(
                "SPLIT_PART takes a separator of 1 to 100 characters and a place from 1 to 1000; here write such as "
                f"{way.example}.",
                node,
                remedy=way,
            )
    elif name in ("ROUND", "SUBSTR", "LEFT", "RIGHT"):
        limit = 15 if name == "ROUND" else 1_000_000
        if not isinstance(value, int) or abs(value) > limit:
            way = Rewrite(_nearest(value, -limit, limit))
            raise reader.refuse(
                f"{name} takes a whole number up to {limit:,} here: write {way.example}.", node, remedy=way
            )


def _nearest(value: object, low: int, high: int) -> str:
    """The whole number of a range that is nearest to a constant; 2 for one that is no number.

    >>> _nearest(20, -15, 15), _nearest(Fraction(5, 4), -15, 15), _nearest(None, -15, 15)
    ('15', '1', '2')
    """
    return str(min(max(round(value), low), high)) if isinstance(value, int | Fraction) else "2"


def number_of(reader: Any, node: exp.Literal) -> int | Fraction:
    """The number that a literal writes."""
    text = str(node.this)
    if _NUMBER.fullmatch(text) is None:
        near = Rewrite(_readable(text))
        raise reader.refuse(f"{text[:40]} is not a number that can be read; write {near.example}.", node, remedy=near)
    value = Fraction(text)
    if abs(value) > _LARGEST:
        end = Rewrite(_LARGEST_WRITTEN)
        raise reader.refuse(f"this number is beyond {end.example}.", node, remedy=end)
    return int(value) if text.isdigit() and abs(value) < 2**63 else value


def _readable(text: str) -> str:
    """The number nearest to one of too many digits, or of too large an exponent, that can be read.

    >>> _readable("1e999999999"), _readable("1e-999999999"), _readable("0." + "3" * 500)
    ('1.79e308', '0.0', '0.3333333333333333')
    """
    try:
        near = float(text)
    except ValueError:
        return "1.5"
    return repr(near) if near < math.inf else _LARGEST_WRITTEN


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
