"""How amounts, numbers and times are written in pages: as in the rest of the product, with no more than is known.

>>> amount("1/10"), amount("1/3"), number(1234567.0), number(0.00123), plural(1, "group"), plural(3, "group")
('0.1', '0.333…', '1,234,567', '0.00123', '1 group', '3 groups')
>>> seconds(5.0), seconds(90.0), moment("2026-11-22T12:00:05.000000Z")
('5 s', '1 min 30 s', '2026-11-22 12:00:05 UTC')
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from hubbub.plots.svg import narrowed

if TYPE_CHECKING:
    from hubbub.plots.chart import Chart

__all__ = [
    "amount", "clock", "day", "device", "moment", "narrow_picture", "number", "picture", "plural", "real", "seconds",
]  # fmt: skip


def amount(told: Any) -> str:
    """An amount of epsilon, told as an exact text: its decimals, of which at most three follow the leading zeros."""
    if told is None:
        return "no limit"
    exact = Fraction(str(told))
    if exact == 0:
        return "0"
    sign, size = ("−" if exact < 0 else ""), abs(exact)
    digits = max(3, 3 - math.floor(math.log10(size)) - 1) if size < 1 else 3
    unit = Fraction(1, 10**digits)
    cut = size // unit * unit
    text = f"{float(cut):,.{digits}f}".rstrip("0").rstrip(".")
    return f"{sign}{text}{'' if cut == size else '…'}"


def real(told: Any) -> float:
    """An amount that is told as an exact text, for the length of a bar; 0 for none."""
    return 0.0 if told is None else float(Fraction(str(told)))


def number(x: Any, digits: int = 4) -> str:
    """A number for a reader: so many digits, whole ones in full."""
    if x is None or (isinstance(x, float) and math.isnan(x)):
        return "NULL"
    if isinstance(x, float) and math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if isinstance(x, int) or (float(x).is_integer() and abs(x) < 1e15):
        return f"{int(x):,}".replace("-", "−")
    if abs(x) >= 10**digits:
        return f"{round(x):,}".replace("-", "−")
    return f"{x:,.{digits}g}".replace("-", "−")


def plural(count: int, thing: str) -> str:
    """So many of a thing."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def seconds(length: float) -> str:
    """A length of time."""
    if length < 60:
        return f"{length:.3g} s"
    minutes, rest = divmod(round(length), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def moment(told: Any) -> str:
    """A time, told as ISO 8601, to the second."""
    if not told:
        return "never"
    try:
        return f"{datetime.fromisoformat(str(told)):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return str(told)


def clock(told: Any) -> str:
    """The time of the day of a time that is told as ISO 8601."""
    return moment(told)[11:] or moment(told)


def day(told: Any) -> str:
    """The day of a time that is told as ISO 8601, as a reader says it.

    >>> day("2026-05-03T12:00:05.000000Z")
    '3 May 2026'
    """
    try:
        at = datetime.fromisoformat(str(told))
    except ValueError:
        return str(told)
    return f"{at.day} {at:%B %Y}"


_BROWSERS: Final = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_CALLED: Final = {"Edg": "Edge", "OPR": "Opera"}
_SYSTEMS: Final = {
    "Android": "Android", "iPhone": "an iPhone", "iPad": "an iPad", "Windows": "Windows", "Mac OS X": "a Mac",
    "CrOS": "ChromeOS", "Linux": "Linux",
}  # fmt: skip


def device(agent: str) -> str:
    """What a browser says of itself (User-Agent), in two words; which of its versions, and on what, is left out.

    >>> device("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"), device("curl/8")
    ('Firefox on Linux', 'a browser')
    """
    browser = next((_CALLED.get(name, name) for name in _BROWSERS if f"{name}/" in agent), "a browser")
    system = next((called for name, called in _SYSTEMS.items() if name in agent), "")
    return f"{browser} on {system}" if system else browser


def picture(chart: Chart) -> Markup:
    """A chart as what may stand in a page, which says its note itself: SVG, in which every text is escaped already."""
    return Markup(replace(chart, note="").svg())


def narrow_picture(chart: Chart) -> Markup:
    """The same for a narrow window; empty where it would not fit there."""
    fitting = narrowed(chart)
    return Markup("") if fitting is None else picture(fitting)
