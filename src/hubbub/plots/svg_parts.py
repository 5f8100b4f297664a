"""What all charts are made of: elements, texts, marks of estimates."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hubbub.plots.axis import Axis
    from hubbub.plots.chart import Point

__all__ = [
    "COLOURS",
    "Drawing",
    "element",
    "escaped",
    "line",
    "rect",
    "shortened",
    "text",
    "values_of",
    "whisker",
    "wide",
    "wrapped",
]

COLOURS: Final = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#999999", "#D55E00")


@dataclass(frozen=True)
class Drawing:
    """What is drawn, and how large it is."""

    body: str
    height: float
    width: float = 0.0


def element(name: str, attributes: Mapping[str, object], content: str = "") -> str:
    """An element; its content is SVG already."""
    written = "".join(f' {key}="{html.escape(str(value))}"' for key, value in attributes.items() if value is not None)
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def escaped(told: str) -> str:
    """A text as SVG: also as XML, which has no control characters."""
    return html.escape("".join(c if c >= " " and c not in "\x7f\ufffe\uffff" else "�" for c in told))


def text(x: float, y: float, told: str, *, anchor: str = "start", quiet: bool = False, bold: bool = False) -> str:
    """A text at a place. Each stands for itself, whichever way its letters run."""
    attributes = {
        "x": round(x, 1),
        "y": round(y, 1),
        "text-anchor": None if anchor == "start" else anchor,
        "class": "q" if quiet else None,
        "font-weight": "600" if bold else None,
        "unicode-bidi": None if told.isascii() else "isolate",
    }
    return element("text", attributes, escaped(told))


def wide(told: str) -> float:
    """About how wide a text is, in units of the picture."""
    return sum(13.0 if ord(c) > 0x2E80 else 4.6 if c in "iljI.,:'| " else 8.7 for c in told)


def shortened(told: str, room: float) -> str:
    """As much of a text as has room.

    >>> shortened("a very long name of a ward", 90)
    'a very lon…'
    """
    if wide(told) <= room:
        return told
    while told and wide(told) > room - 8:
        told = told[:-1]
    return f"{told.rstrip()}…"


def wrapped(told: str, room: float) -> list[str]:
    """A text in lines that have room; a word that is wider than a line is cut.

    >>> wrapped("bounded: at most 2 rows of one patient", 150)
    ['bounded: at most 2', 'rows of one patient']
    """
    lines = [""]
    for word in told.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and wide(longer) > room:
            lines.append(shortened(word, room))
        else:
            lines[-1] = longer if lines[-1] else shortened(word, room)
    return lines


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "g") -> str:
    """A straight line of the grid ("g") or of an axis ("a")."""
    opacity = {"g": 0.18, "a": 0.6}[kind]
    ends = f"M{round(x1, 1):g} {round(y1, 1):g}L{round(x2, 1):g} {round(y2, 1):g}"
    return element("path", {"class": kind, "d": ends, "stroke": "currentColor", "stroke-opacity": opacity})


def rect(x: float, y: float, width: float, height: float, nth: int = 0, *, look: str = "", name: str = "") -> str:
    """A bar: filled; where nothing was read yet, its outline; where it would drown, hatched."""
    place = {"x": round(x, 1), "y": round(y, 1), "width": round(width, 1), "height": round(height, 1)}
    if look:
        fill = f"url(#{name}-hatch)" if look == "drowned" else "none"
        dashed = {"stroke": "currentColor", "stroke-dasharray": "4 3", "stroke-opacity": 0.7}
        return element("rect", {"class": look, **place, "fill": fill, **dashed})
    n = nth % len(COLOURS)
    return element("rect", {"class": f"b{n + 1}", **place, "fill": COLOURS[n], "fill-opacity": 0.65})


def whisker(axis: Axis, point: Point, across: float, *, upright: bool, nth: int = 0, cap: float = 4) -> str:
    """The interval of an estimate: a cap at each end that is drawn, none where it goes on beyond the axis."""
    if point.low is None or point.high is None:
        return ""
    low, high = axis.at(point.low), axis.at(point.high)
    ends = [at for at, x in ((low, point.low), (high, point.high)) if math.isfinite(x) and axis.low <= x <= axis.high]
    y = round(across, 1)
    if upright:
        path = f"M{y:g} {low:g}V{high:g}" + "".join(f"M{y - cap:g} {at:g}h{2 * cap:g}" for at in ends)
    else:
        path = f"M{low:g} {y:g}H{high:g}" + "".join(f"M{at:g} {y - cap:g}v{2 * cap:g}" for at in ends)
    n = nth % len(COLOURS)
    look = {"stroke": "currentColor", "stroke-width": 1.6, "fill": "none"}
    return element("path", {"class": f"i{n + 1}", "d": path, **look})


def values_of(points: Sequence[Point]) -> list[float]:
    """All numbers that an axis must hold."""
    return [x for p in points for x in (p.value, p.low, p.high) if x is not None and math.isfinite(x)]
