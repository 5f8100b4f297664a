"""Exact amounts: every parameter of an event is a rational number, parsed once.

A *budget* amount (epsilon, rho, mu, delta) given as a float means what was written: 0.1 is 1/10, read as
`Fraction(str(x))`. A *scale* (of noise, of a sensitivity) given as a float means that float: it is read as
`Fraction(x)`, because a sampler draws with exactly that scale. Strings and Fractions mean themselves.
"""

from __future__ import annotations

import re
from fractions import Fraction

from hubbub.errors import ParameterError, what_was_given

__all__ = ["Number", "amount", "count", "number", "probability", "ratio", "scale"]

Number = int | float | str | Fraction
# "1e999999999" is a short text and an enormous rational; nothing real needs more digits than this.
_TEXT = re.compile(r"[+-]?[0-9_]{0,400}(\.[0-9_]{0,400})?(/[0-9]{1,400}|[eE][+-]?[0-9]{1,3})?")


_RATIO = re.compile(r"-?[0-9]+(/[1-9][0-9]*)?")


def ratio(text: str) -> Fraction:
    """What `str` wrote of a rational, of any length. `Fraction` would read "1e999999999", too, for hours.

    >>> ratio("-2/3")
    Fraction(-2, 3)

    Raises ValueError for anything else.
    """
    if not isinstance(text, str) or _RATIO.fullmatch(text) is None:
        raise ValueError("not a ratio of whole numbers")
    return Fraction(text)


def amount(value: Number, name: str) -> Fraction:
    """A budget amount >= 0, as written.

    >>> amount(0.1, "epsilon")
    Fraction(1, 10)

    Raises ParameterError if `value` is not a finite number >= 0.
    """
    return _at_least_zero(_parse(value, name, as_written=True), name)


def number(value: Number, name: str) -> Fraction:
    """A number of either sign, as written; texts of at most some 400 digits and exponents of three.

    Raises ParameterError if `value` is not a finite number.
    """
    return _parse(value, name, as_written=True)


def scale(value: Number, name: str, *, zero: bool = False) -> Fraction:
    """A scale or sensitivity: > 0, or >= 0 if `zero`; a float means exactly that float.

    Raises ParameterError otherwise.
    """
    parsed = _at_least_zero(_parse(value, name, as_written=False), name)
    if parsed == 0 and not zero:
        raise ParameterError(f"{name} = 0 was asked; it must be positive. Give a number above 0.")
    return parsed


def probability(value: Number, name: str, *, one: bool = False) -> Fraction:
    """A probability in [0, 1), or [0, 1] if `one`, as written. Raises ParameterError otherwise."""
    parsed = amount(value, name)
    if parsed > 1 or (parsed == 1 and not one):
        interval = "[0, 1]" if one else "[0, 1)"
        raise ParameterError(f"{name} = {value} was asked; allowed is {interval}. Give a smaller {name}.")
    return parsed


def count(value: int, name: str, *, least: int = 1, most: int | None = None) -> int:
    """A whole number >= `least`, and <= `most` where that is given. Raises ParameterError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        more = "" if most is None else f" and at most {most}"
        raise ParameterError(
            f"{name} = {what_was_given(value):.80} was asked; allowed is a whole number of at least {least}{more}."
        )
    return value


def _at_least_zero(parsed: Fraction, name: str) -> Fraction:
    if parsed < 0:
        raise ParameterError(f"{name} = {parsed} was asked; it must not be negative. Give a number >= 0.")
    return parsed


def _parse(value: Number, name: str, *, as_written: bool) -> Fraction:
    if isinstance(value, bool):
        raise ParameterError(f"{name} = {value} is not a number. Give an int, float, str or Fraction.")
    try:
        if isinstance(value, Fraction | int):
            return Fraction(value)
        # numpy's floats are Python floats; str() of them may carry the type's name, repr of float() never
        # does.
        plain = value.strip() if isinstance(value, str) else float(value)
        if isinstance(plain, str) and not _TEXT.fullmatch(plain):
            raise ValueError
        return Fraction(str(plain)) if as_written or isinstance(plain, str) else Fraction(plain)
    except (ValueError, OverflowError, TypeError, ZeroDivisionError):
        raise ParameterError(
            f"{name} = {what_was_given(value)} is not a finite number. Give an int, a float, a Fraction, or a text "
            "like '0.1' or '1/3'."
        ) from None
