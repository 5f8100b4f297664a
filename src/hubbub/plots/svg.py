"""Charts as SVG text: no scripts, no links, no styles, every text escaped.

Each picture has a title and a description (WAI-ARIA, role img). Colours are those of the text around it (currentColor)
and of classes that a style sheet may set; where there is none, colours that are told apart by those who see colours
differently (Okabe, Ito 2008), half transparent, so that they stand on light and on dark ground.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from hubbub.plots.svg_bars import bars, grouped, points
from hubbub.plots.svg_grids import calendar, heat
from hubbub.plots.svg_lines import lines, multiples
from hubbub.plots.svg_parts import Drawing, element, escaped, text, wide, wrapped

if TYPE_CHECKING:
    from hubbub.plots.chart import Chart

__all__ = ["description", "drawn", "narrowed"]

_HOW: Final[dict[str, Callable[[Chart, str], Drawing]]] = {
    "bars": bars,
    "points": points,
    "grouped": grouped,
    "lines": lines,
    "multiples": multiples,
    "heat": heat,
    "calendar": calendar,
}


_LINE: Final = 18
"""From one line of the note to the next."""

_DESCRIBED: Final = 12
_NARROW: Final = 340


def description(chart: Chart) -> str:
    """What is drawn, in words."""
    if not chart.points:
        return "There is nothing to draw."
    told = [f"{', '.join(p.names) or chart.measure}: {p.said}" for p in chart.points[:_DESCRIBED]]
    more = len(chart.points) - len(told)
    rest = [f"and {more:,} more, which stand in the table"] if more else []
    bars = f", with intervals at {chart.level:.4g}" if chart.level is not None else ""
    return f"{chart.measure}{bars}. {'; '.join([*told, *rest])}."


def narrowed(chart: Chart) -> Chart | None:
    """The same for a window as narrow as a telephone's; None where its names and numbers would not fit."""
    kind = chart.kind or chart.kinds[0]
    if kind not in ("bars", "points", "grouped", "lines"):
        return None
    names = max((wide(", ".join(p.names)) for p in chart.points), default=0.0)
    numbers = max((wide(p.said) for p in chart.points), default=0.0)
    fits = kind == "lines" or names + numbers <= _NARROW / 2
    return replace(chart, width=_NARROW) if fits else None


def drawn(chart: Chart, kind: str) -> str:
    """A chart as SVG text, its note below the picture."""
    name = "c" + sha256(repr((kind, chart)).encode("utf-8", "replace")).hexdigest()[:10]
    drawing = _HOW[kind](chart, name)
    width = max(chart.width, round(drawing.width))
    note = [each for line in chart.note.splitlines() for each in wrapped(line, width - 8)]
    below = "".join(text(4, drawing.height + _LINE * (n + 1), each, quiet=True) for n, each in enumerate(note))
    height = round(drawing.height + (_LINE * len(note) + 8 if note else 0))
    head = element("title", {"id": f"{name}-t"}, escaped(chart.heading))
    head += element("desc", {"id": f"{name}-d"}, escaped(description(chart)))
    if "-hatch)" in drawing.body:
        stripes = element("path", {"d": "M0 6L6 0", "stroke": "currentColor", "stroke-width": 1, "stroke-opacity": 0.6})
        size = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
        head += element("defs", {}, element("pattern", {"id": f"{name}-hatch", **size}, stripes))
    whole = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "chart",
        "viewBox": f"0 0 {width} {height}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-labelledby": f"{name}-t {name}-d",
        "fill": "currentColor",
        "font-family": "system-ui, sans-serif",
        "font-size": 14,
    }
    return element("svg", whole, head + drawing.body + below)
