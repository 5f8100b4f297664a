"""exp, ln and roots of rationals, rounded in a stated direction. Pure integers and `decimal`: floats
never decide.

`decimal` rounds exp and ln correctly to the working precision (General Decimal Arithmetic, 1.70), so a
result is within one unit of its last digit; each function here works with 60 digits and then moves by far
more than that.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

__all__ = ["digits_down", "digits_up", "exp_down", "exp_up", "float_down", "float_up", "ln", "root_up"]

PRECISION = 60
_SLACK = Fraction(1, 10**50)


def context() -> Context:
    """60 digits, and exponents that no budget reaches."""
    return Context(prec=PRECISION, Emax=10**15, Emin=-(10**15))


def decimal(x: Fraction) -> Decimal:
    """x to 60 digits. Call inside `localcontext(context())`."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def exp_up(x: Fraction) -> Fraction:
    """A rational >= e^x, within 1e-49 relative."""
    return _exp(x) * (1 + _SLACK)


def exp_down(x: Fraction) -> Fraction:
    """A rational <= e^x, within 1e-49 relative."""
    return _exp(x) * (1 - _SLACK)


def _exp(x: Fraction) -> Fraction:
    if x == 0:
        return Fraction(1)
    with localcontext(context()):
        return Fraction(decimal(x).exp())


def ln(x: Fraction) -> Decimal:
    """ln x to 58 digits."""
    with localcontext(context()):
        return decimal(x).ln()


def root_up(x: Fraction, *, bits: int = 96) -> Fraction:
    """A rational >= sqrt(x), within 2^-bits relative or better.

    >>> root_up(Fraction(4)) == 2
    True
    """
    if x == 0:
        return Fraction(0)
    shift = 2 * bits + max(0, x.denominator.bit_length() - x.numerator.bit_length()) // 2 * 2
    wide = (x.numerator << shift) * x.denominator
    root = math.isqrt(wide)
    root += root * root < wide
    return Fraction(root, x.denominator << (shift // 2))


def digits_down(x: Fraction, digits: int = 16) -> Fraction:
    """The largest rational <= x of so many significant decimal digits (x >= 0)."""
    return _digits(x, digits, up=False)


def digits_up(x: Fraction, digits: int = 16) -> Fraction:
    """The smallest rational >= x of so many significant decimal digits (x >= 0)."""
    return _digits(x, digits, up=True)


def _digits(x: Fraction, digits: int, *, up: bool) -> Fraction:
    if x == 0:
        return x
    # Within one of the decimal size: 0.30103 digits a bit.
    size = int((x.numerator.bit_length() - x.denominator.bit_length()) * 0.30103)
    unit = Fraction(10) ** (size - digits)
    steps = x / unit
    return (math.ceil(steps) if up else math.floor(steps)) * unit


def float_up(x: Fraction) -> float:
    """The smallest float >= x (inf beyond the largest)."""
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf
    return nearest if nearest == math.inf or Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def float_down(x: Fraction) -> float:
    """The largest float <= x."""
    try:
        nearest = float(x)
    except OverflowError:
        return 1.7976931348623157e308
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, -math.inf)
