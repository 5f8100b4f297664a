"""Bars and points with error bars, one below the other, so that seventy names can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hubbub.plots.axis import Axis, day_axis, number_axis
from hubbub.plots.svg_parts import (
    Drawing,
    element,
    escaped,
    line,
    rect,
    shortened,
    text,
    values_of,
    whisker,
    wide,
)

if TYPE_CHECKING:
    from hubbub.plots.chart import Chart, Point

__all__ = ["bars", "grouped", "points"]

_TOP = 8
_FOOT = 44


def bars(chart: Chart, name: str) -> Drawing:
    """A bar for each point, from zero."""
    rows = [(", ".join(p.names) or chart.measure, p, 0) for p in chart.points]
    return _listed(chart, rows, name, from_zero=True)


def points(chart: Chart, name: str) -> Drawing:
    """A dot for each point; the axis need not hold zero."""
    rows = [(", ".join(p.names) or chart.measure, p, 0) for p in chart.points]
    return _listed(chart, rows, name, from_zero=False)


def grouped(chart: Chart, name: str) -> Drawing:
    """Of two keys the one as a heading, the other as bars below it, each with its own colour and name."""
    rows: list[tuple[str, Point | None, int]] = []
    inner = chart.inner
    for outer in chart.column(chart.along):
        there = [(nth, chart.at.get((outer, v) if chart.along == 0 else (v, outer))) for nth, v in enumerate(inner)]
        some = [(nth, p) for nth, p in there if p is not None]
        if some:
            rows.append((some[0][1].names[chart.along], None, 0))
            rows += [(p.names[1 - chart.along], p, nth) for nth, p in some]
    return _listed(chart, rows, name, from_zero=True)


def _listed(chart: Chart, rows: Sequence[tuple[str, Point | None, int]], name: str, *, from_zero: bool) -> Drawing:
    height = 26 if len(rows) <= 24 else 21
    said = max((wide(p.said) for _, p, _ in rows if p is not None), default=0.0)
    room = min(200.0, max(60.0, max((wide(label) for label, _, _ in rows), default=0.0) + 2))
    start, end = room + 12, chart.width - min(190.0, said) - 22
    numbers = values_of(chart.points)
    if chart.moments:
        axis = day_axis(min(numbers, default=0.0), max(numbers, default=1.0), start, end, most=4)
    else:
        axis = number_axis(numbers, start, end, zero=from_zero, most=4, whole=False)
    bottom = _TOP + len(rows) * height
    body = [line(axis.at(x), _TOP, axis.at(x), bottom, "a" if x == 0 and from_zero else "g") for x, _ in axis.ticks]
    for i, (label, point, nth) in enumerate(rows):
        y = _TOP + i * height
        if point is None:
            body.append(text(0, y + height * 0.68, shortened(label, chart.width), bold=True))
        else:
            body.append(_row(axis, label, point, nth, y, height, room, name, chart.width, from_zero=from_zero))
    body += [text(axis.at(x), bottom + 18, told, anchor="middle", quiet=True) for x, told in axis.ticks]
    body.append(
        text((start + end) / 2, bottom + 38, shortened(chart.measure, end - start), anchor="middle", quiet=True)
    )
    return Drawing("".join(body), bottom + _FOOT)


def _row(
    axis: Axis,
    label: str,
    point: Point,
    nth: int,
    y: float,
    height: float,
    room: float,
    name: str,
    width: int,
    *,
    from_zero: bool,
) -> str:
    middle = y + height / 2
    short = shortened(label, room)
    written = text(room, middle + 5, short, anchor="end")
    parts = [element("g", {}, element("title", {}, escaped(label)) + written) if short != label else written]
    if point.value is not None:
        at = axis.at(point.value)
        if from_zero:
            left, right = sorted((axis.at(0.0), at))
            parts.append(rect(left, y + 4, right - left, height - 8, nth, look=point.look, name=name))
        parts.append(whisker(axis, point, middle, upright=False, nth=nth))
        if not from_zero:
            parts.append(element("circle", {"class": f"d{nth + 1}", "cx": at, "cy": round(middle, 1), "r": 4}))
    said = text(width - 2, middle + 5, shortened(point.said, 190), anchor="end", quiet=point.value is None)
    return "".join([*parts, said])
