"""Dates and times as numbers, so that quantiles can be taken of them and ranges follow through expressions.

A moment is a whole number of microseconds since 1970-01-01, without a zone; a date is the moment at which its day
begins. `hubbub.tables.spans.span` gives the range of a date or time in these.

A quantile is chosen on a grid (`clock`): whole days for dates, for times the shortest of 1, 2, 5, ... microseconds,
..., 1, 2, 3, 4, 6, 8, 12 hours, 1, 2, 4, ... days with which the declared range has at most so many steps. Steps are
counted from the last whole step of its day before the range begins, so that answers are round times. A value is the
number of steps since then, by DATE_DIFF, which every dialect writes; half a step is rounded to even.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hubbub.errors import InternalError
from hubbub.tables.functions import DAY, EPOCH
from hubbub.tables.kinds import Kind

__all__ = ["Clock", "clock"]

_SECOND: Final = 10**6
_STEPS_WITHIN_A_DAY: Final = (
    *(n * 10**k for k in range(6) for n in (1, 2, 5)),
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 20, 30)),
    *(n * 60 * _SECOND for n in (1, 2, 5, 10, 15, 20, 30)),
    *(n * 3600 * _SECOND for n in (1, 2, 3, 4, 6, 8, 12)),
)
"""Each divides a day."""


@dataclass(frozen=True)
class Clock:
    """The grid of a date or time: step n is the moment `origin` + n `step`.

    kind: DATE or TIMESTAMP. step: in microseconds; whole days for a DATE. low, high: the moments between which its
    values lie, which the first and the last step may pass.
    """

    kind: Kind
    origin: dt.datetime
    step: int
    low: Fraction
    high: Fraction

    def place(self, moment: Fraction) -> Fraction:
        """A moment in steps since the origin."""
        return (moment - _moment(self.origin)) / self.step

    def numbers(self, steps: Any) -> Any:
        """Steps as days (of dates) or microseconds (of times) since 1970-01-01, in floats, from `low` to `high`.

        A float holds microseconds exactly up to the year 2255, and to 32 of them in the year 9999.
        """
        unit = DAY if self.kind is Kind.DATE else 1
        numbers = _moment(self.origin) // unit + np.asarray(steps, np.float64) * (self.step // unit)
        return np.minimum(np.maximum(numbers, _float_from(self.low / unit)), _float_up_to(self.high / unit))

    @property
    def words(self) -> str:
        """The step, as a receipt shows it."""
        return f"{self.step // DAY} days" if self.step % DAY == 0 else f"{Fraction(self.step, _SECOND)} s"


def clock(kind: Kind, low: Fraction, high: Fraction, steps: int) -> Clock:
    """The clock of values between two moments, with at most so many steps from one to the other.

    >>> clock(Kind.DATE, Fraction(0), Fraction(3650 * DAY), 2**16).words
    '1 days'
    >>> clock(Kind.TIMESTAMP, Fraction(0), Fraction(3650 * DAY), 2**16).words
    '7200 s'
    """
    step = next(s for s in _steps(kind) if high - low <= s * steps)
    since_midnight = math.floor(low) % DAY
    origin = EPOCH + dt.timedelta(microseconds=math.floor(low) - since_midnight % min(step, DAY))
    return Clock(kind, origin, step, low, high)


def _steps(kind: Kind) -> Iterator[int]:
    if kind is Kind.TIMESTAMP:
        yield from _STEPS_WITHIN_A_DAY
    elif kind is not Kind.DATE:
        raise InternalError(f"a clock of {kind.value}")
    yield from (DAY << k for k in itertools.count())


def _float_from(low: Fraction) -> float:
    """The least whole number from `low` on that a float holds."""
    whole = math.ceil(low)
    moment = float(whole)
    return moment if moment >= whole else math.nextafter(moment, math.inf)


def _float_up_to(high: Fraction) -> float:
    """The largest whole number up to `high` that a float holds: the end of the year 9999 would round to one beyond."""
    return -_float_from(-high)


def _moment(value: dt.datetime) -> int:
    return (value - EPOCH) // dt.timedelta(microseconds=1)
