"""Arguments of the public functions, checked first: what is not a name or a number is refused in our words.

A type that a question cannot use must not come out as an error of Python's, or of a library below, halfway through.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction

from hubbub.errors import ParameterError, QueryError, what_was_given
from hubbub.ledger.budget import EpsilonLike, parse_epsilon
from hubbub.remedies import GiveOptions

__all__ = [
    "RELIABLE",
    "a_choice",
    "a_fraction",
    "a_level",
    "a_name",
    "a_share",
    "a_whole_number",
    "an_amount",
    "is_number",
    "names",
]

RELIABLE = 0.3
"""An error of more than so much of its value is marked."""

_MOST = Fraction(10**50)
"""No noise is left at such an epsilon; errors that show it as a float could not."""


def a_name(value: object, what: str) -> str:
    """A text that can be stored and written in SQL.

    Raises QueryError for anything else, a lone surrogate (half a character) included.

    >>> a_name("visits", "table")
    'visits'
    """
    if not isinstance(value, str):
        raise QueryError(f"{what}: expected text, got {type(value).__name__}. Nothing was charged.")
    if not value.strip():
        raise QueryError(f"{what}: the text is empty. Nothing was charged.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise QueryError(
            f"{what}: {value!r} holds half a character (a lone surrogate); write it in Unicode. Nothing was charged."
        ) from None
    return value


def names(values: object, what: str, example: str) -> tuple[str, ...]:
    """Some texts; one text alone is not read as its letters.

    Raises QueryError for anything else.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise QueryError(f"{what}: expected a list of texts, as in {example}. Nothing was charged.")
    return tuple(a_name(value, what) for value in values)


def a_whole_number(value: object, what: str) -> int:
    """A whole number from 1 to 2147483647.

    Raises ParameterError for anything else.
    """
    try:
        number = None if type(value).__name__ in ("bool", "bool_") else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not 1 <= number < 2**31:
        raise ParameterError(
            f"{what}={what_was_given(value)}: expected a whole number from 1 to 2147483647. Nothing was charged."
        )
    return number


def an_amount(value: EpsilonLike, what: str = "epsilon") -> Fraction:
    """An epsilon, rho or delta, exactly as it was written.

    Raises ParameterError for anything but a positive number of at most 10^50.
    """
    try:
        amount = parse_epsilon(value, what)
    except ParameterError as error:
        way = GiveOptions((what,))
        raise ParameterError(f"{str(error).removesuffix('.')}, as in {way.in_python()}", remedy=way) from None
    if amount > _MOST:
        raise ParameterError(f"{what} is above 10^50; at such an amount nothing is private. Nothing was charged.")
    return amount


def a_share(given: object) -> float:
    """What `reliable=` says: the largest error, as a part of the value, that is not marked.

    Raises ParameterError for anything but a number above 0.
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
        raise ParameterError(
            f"reliable={what_was_given(given)}: expected a part of the value above 0, such as 0.3 for 30 %."
        )
    return float(given)


def a_level(value: object) -> float:
    """The probability of an interval, between 0 and 1.

    Raises ParameterError for anything else.

    >>> a_level(0.95)
    0.95
    """
    if not (
        isinstance(value, float | Fraction | Decimal) and is_number(value) and 0 < value < 1 and 0 < float(value) < 1
    ):
        raise ParameterError(f"level={what_was_given(value):.60}: a level lies between 0 and 1, such as 0.95.")
    return float(value)


def a_fraction(value: object, what: str) -> float | int | Fraction | Decimal:
    """A number from 0 to 1, both included.

    Raises ParameterError for anything else.

    >>> a_fraction(0.9, "quantile: fraction")
    0.9
    """
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__ == "numpy" and not getattr(value, "shape", None):
        value = item()
    fine = isinstance(value, float | int | Fraction | Decimal) and not isinstance(value, bool) and is_number(value)
    if not fine or not 0 <= value <= 1:  # type: ignore[operator]
        shown = repr(value)[:60] if type(value) in (float, str, Decimal, type(None)) else type(value).__name__
        raise ParameterError(f"{what}={shown}; allowed is a number from 0 to 1, such as 0.9. Nothing was charged.")
    return value  # type: ignore[return-value]


def is_number(value: float | Fraction | Decimal) -> bool:
    """Whether a number is neither infinite nor a NaN; a signaling one cannot even be made a float.

    >>> is_number(Decimal("sNaN")), is_number(Fraction(1, 3))
    (False, True)
    """
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, int | Fraction) or math.isfinite(value)


def a_choice(value: object, what: str) -> bool:
    """True or False.

    Raises QueryError for anything else.
    """
    if not isinstance(value, bool):
        raise QueryError(f"{what}={what_was_given(value)}: expected True or False. Nothing was charged.")
    return value
