"""Grids: a heat map for two keys, and a calendar for days. Each cell says its number, or that it has none."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING

from hubbub.plots.svg_parts import COLOURS, Drawing, element, escaped, shortened, text, wide

if TYPE_CHECKING:
    from hubbub.plots.chart import Chart, Point

__all__ = ["calendar", "heat"]


def heat(chart: Chart, name: str) -> Drawing:
    """A cell for each pair of keys, the fuller the more; hatched where the interval holds 0 or nothing is known."""
    del name
    down, across = chart.column(0), chart.column(1)
    names = [
        next(p.names[at] for p in chart.points if p.keys[at] == v) for at, vs in ((0, down), (1, across)) for v in vs
    ]
    rows, heads = names[: len(down)], names[len(down) :]
    room = min(150.0, max(wide(label) for label in rows) + 10)
    size = max(58.0, (chart.width - room) / len(across))
    shade = _Shade(chart)
    body = []
    for j, head in enumerate(heads):
        body.append(text(room + (j + 0.5) * size, 16, shortened(head, size - 6), anchor="middle", quiet=True))
    for i, (key, label) in enumerate(zip(down, rows, strict=True)):
        y = 24 + i * 42
        body.append(text(room - 8, y + 26, shortened(label, room - 8), anchor="end"))
        for j, other in enumerate(across):
            body.append(_cell(room + j * size, y, size, 42.0, chart.at.get((key, other)), shade))
    bottom = 24 + len(down) * 42
    body.append(text(0, bottom + 22, shade.said, quiet=True))
    return Drawing("".join(body), bottom + 32, room + len(across) * size)


def _cell(x: float, y: float, width: float, height: float, point: Point | None, shade: _Shade) -> str:
    place = {"x": round(x + 1, 1), "y": round(y + 1, 1), "width": round(width - 2, 1), "height": round(height - 2, 1)}
    if point is None or point.value is None:
        empty = {"class": "empty", "fill": "none", "stroke": "currentColor", "stroke-opacity": 0.35}
        said = text(x + width / 2, y + 26, "–" if point is None else "NULL", anchor="middle", quiet=True)
        return element("rect", {**place, **empty, "stroke-dasharray": "4 3"}) + said
    filled = element("rect", {"class": "h", **place, "fill": COLOURS[0], "fill-opacity": shade.of(point.value)})
    value, _, reach = point.said.partition(" ± ")
    said = text(x + width / 2, y + (19 if reach else 26), shortened(value, width - 4), anchor="middle")
    if reach:
        said += element(
            "g", {"font-size": 11}, text(x + width / 2, y + 34, shortened(f"± {reach}", width * 1.15), anchor="middle")
        )
    return element("g", {}, element("title", {}, escaped(f"{', '.join(point.names)}: {point.said}")) + filled + said)


class _Shade:
    """How full a cell is: from the least to the most value of the chart."""

    def __init__(self, chart: Chart) -> None:
        known = [p.value for p in chart.points if p.value is not None and math.isfinite(p.value)]
        self._low, self._high = min([0.0, *known]), max([0.0, *known])
        self.said = shortened(f"{chart.measure}: the fuller, the more, from {self._low:,.4g} to {self._high:,.4g}", 600)

    def of(self, value: float) -> float:
        """Between 0.06 and 0.6: text stays readable on it."""
        part = (value - self._low) / ((self._high - self._low) or 1.0)
        return round(0.06 + 0.54 * min(max(part, 0.0), 1.0), 3)


def calendar(chart: Chart, name: str) -> Drawing:
    """A square for each day: weeks from left to right, Monday above, a row for each year."""
    del name
    days = {p.keys[0]: p for p in chart.points if p.keys[0] is not None}
    shade, body, y = _Shade(chart), [], 0.0
    size = 11.0
    for year in range(min(days).year, max(days).year + 1):
        body.append(text(0, y + 14, str(year), bold=True))
        first = dt.date(year, 1, 1)
        for month in range(1, 13):
            begins = dt.date(year, month, 1)
            week = ((begins - first).days + first.weekday()) // 7
            body.append(text(44 + week * size, y + 14, begins.strftime("%b"), quiet=True))
        for i, told in ((0, "Mon"), (3, "Thu"), (6, "Sun")):
            body.append(text(36, y + 31 + i * size, told, anchor="end", quiet=True))
        day = first
        while day.year == year:
            week = ((day - first).days + first.weekday()) // 7
            if day in days:
                body.append(_day(44 + week * size, y + 21 + day.weekday() * size, size, days[day], shade))
            day += dt.timedelta(days=1)
        y += 21 + 7 * size + 18
    body.append(text(0, y + 8, f"{shade.said}; dashed: no value", quiet=True))
    return Drawing("".join(body), y + 18)


def _day(x: float, y: float, size: float, point: Point, shade: _Shade) -> str:
    place = {"x": round(x, 1), "y": round(y, 1), "width": size - 1.5, "height": size - 1.5}
    title = element("title", {}, escaped(f"{point.names[0]}: {point.said}"))
    if point.value is None:
        dashed = {"class": "empty", "fill": "none", "stroke": "currentColor", "stroke-dasharray": "2 2"}
        return element("rect", {**place, **dashed}, title)
    return element("rect", {"class": "h", **place, "fill": COLOURS[0], "fill-opacity": shade.of(point.value)}, title)
