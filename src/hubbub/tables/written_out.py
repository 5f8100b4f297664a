"""Functions that are written out of others, so that every engine computes the same.

POWER with a whole exponent up to 8 is a product: each engine multiplies the same doubles in the same order, and the
result is the same to the last bit. Any other exponent goes through EXP and LN, in which engines may differ in the last
bits of a double: far less than one step of any grid that a sum is counted on.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hubbub.errors import InternalError
from hubbub.tables.expressions import Arithmetic, Call, Case, Compare, Expression, IsNull, Literal

__all__ = ["WRITTEN_OUT", "written_out"]

WRITTEN_OUT: Final = frozenset({"POWER"})
MULTIPLIED: Final = 8
"""Whole exponents up to this one are products."""


def written_out(call: Call) -> Expression:
    """A function of `WRITTEN_OUT` in others.

    >>> from hubbub.tables.expressions import Column
    >>> from hubbub.tables.kinds import Kind
    >>> x = Column("x", Kind.NUMBER)
    >>> written_out(Call("POWER", (x, Literal(2)))) == Arithmetic("*", x, x)
    True
    """
    base, exponent = call.arguments
    if call.name != "POWER" or not isinstance(exponent, Literal) or not isinstance(exponent.value, int | Fraction):
        raise InternalError(f"{call.name} is not written out")
    n = exponent.value
    if n == 0:
        return Case((IsNull(base),), (Literal(None),), Literal(Fraction(1)))
    if isinstance(n, int) and n <= MULTIPLIED:
        return _product(base, n)
    size = Call("ABS", (base,)) if isinstance(n, int) else base
    through: Expression = Call("EXP", (Arithmetic("*", Literal(n), Call("LN", (size,))),))
    if isinstance(n, int) and n % 2:
        through = Arithmetic("*", Call("SIGN", (base,)), through)
    return Case((Compare("=", base, Literal(0)),), (Literal(Fraction(0)),), through)


def _product(base: Expression, n: int) -> Expression:
    if n == 1:
        return Arithmetic("*", base, Literal(1))
    half = _product(base, n // 2) if n > 3 else base
    square = Arithmetic("*", half, half)
    return Arithmetic("*", square, base) if n % 2 else square
