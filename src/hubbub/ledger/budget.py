"""Amounts of epsilon, and the budget that bounds their sum.

**Basic composition** (Dwork, McSherry, Nissim, Smith 2006; Dwork and Roth 2014, Corollary 3.15, and
adaptively Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.6 with pure parameters). If the i-th question is
epsilon_i-DP, where epsilon_i may depend on earlier answers, and the filter stops before sum epsilon_i
exceeds epsilon, then everything released together is epsilon-DP. A pure `Budget(epsilon)` is that epsilon; one with
a delta is kept as approximate zCDP, whose rhos add up in the same way.

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
from typing import Any, SupportsIndex, TypeAlias

from hubbub.errors import ParameterError, what_was_given
from hubbub.keywords import named_calls
from hubbub.plots.page import html_table

__all__ = [
    "Budget",
    "EpsilonLike",
    "decimal_text",
    "last_digit",
    "parse_epsilon",
    "short_text",
]

EpsilonLike: TypeAlias = int | float | str | Fraction | Decimal | SupportsIndex

# Three digits of exponent hold every float. More would let "1e999999999" fill the memory.
_DECIMAL = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_RATIO = re.compile(r"\+?[0-9]+/[0-9]+")
_LONGEST = 400
_LONGEST_BITS = 4000  # the rho of it, half its square, is written within Python's 4300 digits
_MOST_SHOWN = 10**100
_SHOWN = 6
_SHORT = 12
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
    if max(amount.numerator.bit_length(), amount.denominator.bit_length()) > _LONGEST_BITS:
        raise ParameterError(f"{what} is not allowed: it has thousands of digits. {_NEXT}")
    if amount <= 0:
        shown = f" = {x}" if abs(amount.numerator) < _MOST_SHOWN else ""
        raise ParameterError(f"{what}{shown} is not allowed: it must be greater than zero. {_NEXT}")
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
    # A Decimal is asked itself: a signaling NaN cannot be made a float.
    if not isinstance(x, str) and not (x.is_finite() if isinstance(x, Decimal) else math.isfinite(x)):
        raise ParameterError(f"{what} = {text} is not allowed: it must be a finite number. {_NEXT}")
    if text.startswith("-") and (_DECIMAL.fullmatch(text[1:]) or _RATIO.fullmatch(text[1:])):
        raise ParameterError(f"{what} = {text} is not allowed: it must be greater than zero. {_NEXT}")
    written = _DECIMAL.fullmatch(text) or _RATIO.fullmatch(text)
    if not written or len(text) > _LONGEST or re.search(r"/0+$", text):
        raise ParameterError(f"{what} = {text[:40]!r} is not a number. {_NEXT}")
    return Fraction(text)


def short_text(left: Fraction) -> str:
    """What is left, for people: exact where that is short, else rounded down to six digits.

    >>> short_text(Fraction(1, 4)), short_text(Fraction(2_999_999_999_999, 10**12))
    ('0.25', '2.99999')
    """
    text = decimal_text(left)
    if left <= 0 or len(text) <= _SHORT:
        return text
    unit = last_digit(left, _SHOWN)
    return decimal_text(left // unit * unit)


def last_digit(amount: Fraction, digits: int) -> Fraction:
    """What the last of so many digits of an amount stands for; of one, too, that as a float is 0 or too large.

    >>> last_digit(Fraction(1234, 10), 2), last_digit(Fraction(1, 3 * 10**400), 1) == Fraction(1, 10**401)
    (Fraction(10, 1), True)
    """
    size = math.log10(amount.numerator) - math.log10(amount.denominator)
    return Fraction(10) ** (math.floor(size) - digits + 1)


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


@named_calls
@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """What may be spent on one unit space in all.

    Pure, `Budget(epsilon)`: the sum of the epsilons stays within `epsilon`. Approximate, `Budget(epsilon, delta)`:
    kept as approximate zCDP. `delta_threshold` of delta is set aside for thresholds; the rest, `delta_conversion`,
    turns epsilon into a ceiling on the sum of rhos (Canonne, Kamath, Steinke 2020, Proposition 12). Everything
    released is then (epsilon, delta)-DP, however adaptively it was asked (`accounting.filters`).

    `training=(e, d)` sets a part aside for nets that are trained elsewhere (`hubbub.learning.opacus`), for good. It
    bounds the sums of their epsilons and deltas; questions have the rest, epsilon - e, and d less for thresholds. Both
    together are (epsilon, delta)-DP, asked and trained in whatever order: the concurrent composition of two interactive
    mechanisms is no worse than that of two that are not (Vadhan, Zhang 2023, Theorem 1.5).

    Args:
        epsilon: the ceiling, exact; read as `parse_epsilon` reads it.
        delta: None for a pure budget, else between 0 and 1.
        delta_threshold: the part of delta for thresholds; half unless said, less what training has.
        training: an epsilon and a delta for training alone.

    Raises:
        ParameterError: epsilon or a delta is out of range.

    >>> Budget(epsilon=0.5), Budget(3, delta=1e-6).delta_threshold
    (Budget(epsilon=0.5), Fraction(1, 2000000))
    """

    epsilon: Fraction
    delta: Fraction | None
    delta_threshold: Fraction
    training: tuple[Fraction, Fraction] | None

    def __init__(
        self,
        epsilon: EpsilonLike,
        delta: EpsilonLike | None = None,
        *,
        delta_threshold: EpsilonLike | None = None,
        training: tuple[EpsilonLike, EpsilonLike] | None = None,
    ) -> None:
        object.__setattr__(self, "epsilon", parse_epsilon(epsilon, "the budget's epsilon"))
        object.__setattr__(self, "training", _training(training, self.epsilon, delta))
        whole, share = _shares(delta, delta_threshold, Fraction(0) if self.training is None else self.training[1])
        object.__setattr__(self, "delta", whole)
        object.__setattr__(self, "delta_threshold", share)

    @property
    def pure(self) -> bool:
        """Whether it holds pure losses only."""
        return self.delta is None

    @property
    def for_questions(self) -> Fraction:
        """The epsilon that questions may spend: all but what training has."""
        return self.epsilon if self.training is None else self.epsilon - self.training[0]

    @property
    def delta_for_questions(self) -> Fraction:
        """The delta of questions, for thresholds and conversion; 0 for a pure budget."""
        whole = Fraction(0) if self.delta is None else self.delta
        return whole if self.training is None else whole - self.training[1]

    @property
    def delta_conversion(self) -> Fraction:
        """The part of delta that pays for the conversion from rho; 0 for a pure budget."""
        return self.delta_for_questions - self.delta_threshold

    def __repr__(self) -> str:
        return f"Budget({', '.join(self.written)})"

    def _repr_html_(self) -> str:
        """For notebooks: its parts, and what they hold."""
        rows = [part.partition("=")[::2] for part in self.written]
        said = {
            "epsilon": "the ceiling for all answers together",
            "delta": "the probability with which the promise may not hold",
            "delta_threshold": "the part of delta that is for thresholds",
            "training": "epsilon and delta that are set aside for training",
        }
        return html_table(("budget", "", ""), [(name, amount, said[name]) for name, amount in rows])

    @property
    def written(self) -> tuple[str, ...]:
        """Its parts as they are written in Python."""
        parts = [f"epsilon={_source_text(self.epsilon)}"]
        if self.delta is not None:
            parts.append(f"delta={_source_text(self.delta)}")
            kept_apart = Fraction(0) if self.training is None else self.training[1]
            if self.delta_threshold != self.delta / 2 - kept_apart:
                parts.append(f"delta_threshold={_source_text(self.delta_threshold)}")
        if self.training is not None:
            parts.append(f"training=({', '.join(map(_source_text, self.training))})")
        return tuple(parts)


def _training(given: Any, epsilon: Fraction, delta: EpsilonLike | None) -> tuple[Fraction, Fraction] | None:
    """What is set aside for training.

    Raises ParameterError where it is not an epsilon and a delta, or there would be none left.
    """
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ParameterError(
            f"training={what_was_given(given)}: expected an epsilon and a delta, as in training=(1, 1e-7)."
        )
    if delta is None:
        raise ParameterError("training is a part of epsilon and delta: give delta too, or leave both out.")
    own, share = parse_epsilon(given[0], "the epsilon of training"), parse_epsilon(given[1], "the delta of training")
    if own >= epsilon:
        raise ParameterError(
            f"training has epsilon {decimal_text(own)} of {decimal_text(epsilon)}: some is left for questions. Give it "
            "less."
        )
    return own, share


def _shares(
    delta: EpsilonLike | None, threshold: EpsilonLike | None, training: Fraction = Fraction(0)
) -> tuple[Fraction | None, Fraction]:
    if delta is None:
        if threshold is not None:
            raise ParameterError("delta_threshold is a part of delta: give delta too, or leave both out.")
        return None, Fraction(0)
    whole = parse_epsilon(delta, "the budget's delta")
    if whole >= 1:
        raise ParameterError(
            f"the budget's delta = {delta} is not allowed: it must be below 1. Write one such as 1e-6."
        )
    if threshold is None and 2 * training >= whole:
        raise ParameterError(
            f"training has delta {decimal_text(training)} of {decimal_text(whole)}: it must be below half, whose rest "
            "is for thresholds. Give it less, or say delta_threshold too."
        )
    share = whole / 2 - training if threshold is None else parse_epsilon(threshold, "delta_threshold")
    if share + training >= whole:
        raise ParameterError(
            f"delta_threshold = {threshold} is not allowed: it must be below delta = {decimal_text(whole)}, whose rest "
            "pays for the conversion from rho. Leave it out for half."
        )
    return whole, share


def _source_text(amount: Fraction) -> str:
    text = decimal_text(amount)
    return repr(text) if "/" in text else text
