"""Amounts of epsilon, and the budget that bounds their sum.

**Basic composition** (Dwork, McSherry, Nissim, Smith 2006; Dwork and Roth 2014, Corollary 3.15, and
adaptively Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.6 with pure parameters). If the i-th question is
epsilon_i-DP, where epsilon_i may depend on earlier answers, and the filter stops before sum epsilon_i
exceeds epsilon, then everything released together is epsilon-DP. A pure `Budget(epsilon)` is that epsilon.

**Exactness.** An epsilon is parsed once, by what was written: 0.1 is 1/10, not the nearest binary fraction.
So ten questions at 0.1 fit into a budget of 1, and 0.30000000000000004 does not fit into 0.3.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import SupportsIndex, TypeAlias

from hubbub.errors import ParameterError, PolicyError

__all__ = ["Budget", "EpsilonLike", "decimal_text", "parse_epsilon"]

EpsilonLike: TypeAlias = int | float | str | Fraction | Decimal | SupportsIndex

# Three digits of exponent hold every float. More would let "1e999999999" fill the memory.
_DECIMAL = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_RATIO = re.compile(r"\+?\d+/\d+")
_LONGEST = 400
_NEXT = "Write a positive number such as 0.5, or a ratio in quotes such as '1/3'."


def parse_epsilon(x: EpsilonLike, what: str = "epsilon") -> Fraction:
    """The exact rational that was written.

    Args:
        x: an int, a float (read by its shortest decimal text), a decimal or ratio as text, or a Fraction.
        what: how the amount is called in an error.

    Raises:
        ParameterError: `x` is not a number, or is zero, negative, NaN or infinite.

    >>> parse_epsilon(0.1), parse_epsilon("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    amount = _rational(x, what)
    if amount <= 0:
        raise ParameterError(f"{what} = {x} is not allowed: it must be greater than zero. {_NEXT}")
    return amount


def _rational(x: EpsilonLike, what: str) -> Fraction:
    if isinstance(x, Fraction):
        return x
    if isinstance(x, str | float | Decimal) and not isinstance(x, bool):
        return _from_text(x, what)
    try:
        if type(x).__name__ in ("bool", "bool_"):  # numpy's booleans have an index too
            raise TypeError
        return Fraction(operator.index(x))
    except TypeError:
        raise ParameterError(f"{what} must be a number, found {type(x).__name__}. {_NEXT}") from None


def _from_text(x: str | float | Decimal, what: str) -> Fraction:
    text = str(x).strip()
    if not isinstance(x, str) and not math.isfinite(x):
        raise ParameterError(f"{what} = {text} is not allowed: it must be a finite number. {_NEXT}")
    if text.startswith("-") and (_DECIMAL.fullmatch(text[1:]) or _RATIO.fullmatch(text[1:])):
        raise ParameterError(f"{what} = {text} is not allowed: it must be greater than zero. {_NEXT}")
    written = _DECIMAL.fullmatch(text) or _RATIO.fullmatch(text)
    if not written or len(text) > _LONGEST or re.search(r"/0+$", text):
        raise ParameterError(f"{what} = {text[:40]!r} is not a number. {_NEXT}")
    return Fraction(text)


def decimal_text(amount: Fraction) -> str:
    """`amount` for people: an exact decimal where there is one, else the ratio. Never rounded.

    >>> decimal_text(Fraction(3)), decimal_text(Fraction(1, 20)), decimal_text(Fraction(1, 3))
    ('3', '0.05', '1/3')
    """
    rest = amount.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{amount.numerator}/{amount.denominator}"
    places = max(twos, fives)
    with localcontext() as context:
        context.prec = len(str(abs(amount.numerator))) + places + 2
        context.Emin, context.Emax = -(10**6), 10**6
        value = (Decimal(amount.numerator) / Decimal(amount.denominator)).normalize()
        return f"{value:f}" if places <= 30 else str(value)


@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """What may be spent on one unit space in all: the sum of the epsilons stays within `epsilon`.

    Args:
        epsilon: the ceiling, exact; read as `parse_epsilon` reads it.
        delta: kept for budgets with delta, which do not exist yet.

    Raises:
        ParameterError: epsilon is not a positive number.
        PolicyError: a delta was given.

    >>> Budget(epsilon=0.5)
    Budget(epsilon=0.5)
    """

    epsilon: Fraction

    def __init__(self, epsilon: EpsilonLike, delta: object = None) -> None:
        parsed = parse_epsilon(epsilon, "the budget's epsilon")
        if delta is not None:
            raise PolicyError(
                f"delta={delta!r}: this version keeps pure budgets only, whose losses add up. "
                f"Write Budget(epsilon={_source_text(parsed)})."
            )
        object.__setattr__(self, "epsilon", parsed)

    def __repr__(self) -> str:
        return f"Budget(epsilon={_source_text(self.epsilon)})"


def _source_text(amount: Fraction) -> str:
    text = decimal_text(amount)
    return repr(text) if "/" in text else text
