"""The kinds of value a column can hold, as far as a question can tell.

Engines have dozens of physical types; an expression needs six. A column of any other type is `OTHER`: it may
stand in the table, but no question can name it.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Any, Final

from hubbub.errors import PolicyError, what_was_given
from hubbub.spelling import meant_by

__all__ = ["COMPARABLE", "NUMERIC", "TEMPORAL", "Kind", "kind_meant", "kind_named", "undecimal"]


class Kind(Enum):
    """What a value is. The value of each member is the word a policy uses for it."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NULL = "null"
    OTHER = "other"

    # Each member is one object; the hash of its name takes a call of Python's for each node of an expression.
    __hash__ = object.__hash__


NUMERIC = frozenset({Kind.INTEGER, Kind.NUMBER})
TEMPORAL = frozenset({Kind.DATE, Kind.TIMESTAMP})

COMPARABLE: tuple[frozenset[Kind], ...] = (
    NUMERIC,
    TEMPORAL,
    frozenset({Kind.TEXT}),
    frozenset({Kind.BOOLEAN}),
)
"""Kinds in the same set can be compared; NULL compares with all of them."""

_DECLARABLE = {k.value: k for k in Kind if k not in (Kind.NULL, Kind.OTHER)}


_ELSEWHERE = {
    **dict.fromkeys(("int", "int64", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "float64", "double", "decimal", "numeric"), Kind.NUMBER),
    **dict.fromkeys(("str", "string", "varchar"), Kind.TEXT),
    "bool": Kind.BOOLEAN,
    "datetime": Kind.TIMESTAMP,
}
"""What other programs call them."""


def kind_meant(word: object) -> Kind | None:
    """The kind that was meant by a word that names none; None where the word names one, or it is not plain which.

    >>> kind_meant("float"), kind_meant("intger"), kind_meant("text"), kind_meant("time")
    (<Kind.NUMBER: 'number'>, <Kind.INTEGER: 'integer'>, None, None)
    """
    if not isinstance(word, str) or word in _DECLARABLE:
        return None
    near = meant_by(word, _DECLARABLE)
    return _ELSEWHERE.get(word.lower()) if near is None else _DECLARABLE[near]


def kind_named(word: str) -> Kind:
    """The kind a policy names with `word`.

    Raises PolicyError for any other word.

    >>> kind_named("integer")
    <Kind.INTEGER: 'integer'>
    """
    try:
        return _DECLARABLE[word]
    except (KeyError, TypeError):
        allowed = ", ".join(sorted(_DECLARABLE))
        raise PolicyError(f"unknown column type {what_was_given(word)}. Allowed: {allowed}.") from None


_LONGEST: Final = 100  # digits of a whole number; a longer one is a double


def undecimal(value: Any) -> Any:
    """A decimal as the whole number, or the double, that it is read as; anything else as it is. Never an exception.

    An engine's widest whole numbers, such as UBIGINT and HUGEINT, come as decimals where its rows are taken.

    >>> undecimal(Decimal("2.0")), undecimal(Decimal("1.5")), undecimal(Decimal("NaN")), undecimal("2")
    (2, 1.5, None, '2')
    """
    if not isinstance(value, Decimal):
        return value
    if value.is_nan():
        return None
    if value.is_finite() and value.adjusted() < _LONGEST and value == value.to_integral_value():
        return int(value)
    return float(value)
