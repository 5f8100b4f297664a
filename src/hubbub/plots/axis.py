"""Where numbers and dates stand on a line, and which of them are written beside it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Axis", "day_axis", "number_axis", "place", "tick_text"]

_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_FIRST, _LAST = dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH


@dataclass(frozen=True)
class Axis:
    """A line from `low` to `high`, drawn from `start` to `end`; ticks: places and their texts."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[tuple[float, str], ...] = ()

    def at(self, x: float) -> float:
        """Where a number stands; beyond the ends, at them."""
        inside = min(max(x, self.low), self.high)
        return round(self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start), 1)


def number_axis(
    numbers: Iterable[float], start: float, end: float, *, zero: bool = True, most: int = 5, whole: bool = True
) -> Axis:
    """An axis that holds these numbers, of round steps. zero: whether it holds 0 in any case; whole: whether it ends at
    a step, or at the last number.

    >>> [text for _, text in number_axis([0, 5300], 0, 300).ticks]
    ['0', '2,000', '4,000', '6,000']
    """
    known = [x for x in numbers if math.isfinite(x)] or [0.0]
    low, high = min(known), max(known)
    if zero or (low > 0 and low < (high - low)):
        low, high = min(0.0, low), max(0.0, high)
    if high - low <= abs(high) * 1e-12:
        low, high = low - (abs(low) or 1) / 2 * (not zero), high + (abs(high) or 1)
    step = _step((high - low) / most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ends = max(abs(low), abs(high))
    ticks = tuple((i * step, tick_text(i * step, step, most=ends)) for i in range(first, last + 1))
    if not whole:
        within = tuple(tick for tick in ticks if low <= tick[0] <= high)
        if len(within) < 2:  # one alone gives no scale
            return number_axis([low, high], start, end, zero=zero, most=2 * most, whole=False)
        return Axis(low, high, start, end, within)
    return Axis(first * step, last * step, start, end, ticks)


def _step(rough: float) -> float:
    """The next step of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))


def tick_text(x: float, step: float, *, commas: bool = True, most: float = 0.0) -> str:
    """A number of an axis in steps of `step`; many by a letter. commas: whether thousands have one; years have not.
    most: the largest number of the axis, all of which have its letter.

    >>> tick_text(0.5, 0.1), tick_text(2e6, 1e6), tick_text(-1500.0, 500), tick_text(5e3, 5e3, most=2e4)
    ('0.5', '2 M', '−1,500', '5 k')
    """
    size, unit, letter = max(abs(x), step, most), 1.0, ""
    for unit_there, letter_there in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if step >= unit_there / 10 and size >= unit_there:
            unit, letter = (1e3, " k") if unit_there == 1e4 else (unit_there, letter_there)
            break
    digits = max(0, -math.floor(math.log10(step / unit) + 1e-9))
    text = f"{x / unit:{',' * commas}.{digits}f}" if x else "0"
    return f"{text}{letter if x else ''}".replace("-", "−")


def day_axis(low: float, high: float, start: float, end: float, *, most: int = 7) -> Axis:
    """An axis of days since 1970-01-01: years, months, or days, each written where there is room.

    >>> [text for _, text in day_axis(0, 1096, 0, 300).ticks]
    ['1970', '1971', '1972', '1973']
    """
    if high <= low:
        low, high = low - 1, high + 1
    first, last = (dt.date.fromordinal(_EPOCH + math.floor(min(max(x, _FIRST), _LAST))) for x in (low, high))
    months = (last.year - first.year) * 12 + last.month - first.month
    if months > most * 2:
        step = math.ceil((last.year - first.year + 1) / most)
        places = [dt.date(y, 1, 1) for y in range(first.year, last.year + 1) if y % step == 0]
        texts = [f"{d.year}" for d in places]
    elif months >= 3:
        step = next(s for s in (1, 2, 3, 6, 12, 24) if months / s <= most)
        every = ((first.year * 12 + first.month - 1 + i) for i in range(months + 1))
        places = [dt.date(m // 12, m % 12 + 1, 1) for m in every if m % step == 0]
        texts = [f"{d:%Y-%m}" for d in places]
    else:
        step = max(1, math.ceil((high - low) / most))
        places = [first + dt.timedelta(days=i) for i in range(0, (last - first).days + 1, step)]
        texts = [f"{d:%m-%d}" if i else f"{d:%Y-%m-%d}" for i, d in enumerate(places)]
    ticks = [(float((d - dt.date(1970, 1, 1)).days), text) for d, text in zip(places, texts, strict=True)]
    return Axis(low, high, start, end, tuple(t for t in ticks if low <= t[0] <= high))


def place(value: Any) -> float:
    """Where a number or a date stands on a line: dates in days since 1970-01-01."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) / dt.timedelta(1)
    if isinstance(value, dt.date):
        return float((value - dt.date(1970, 1, 1)).days)
    return float(value)
