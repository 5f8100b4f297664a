"""Estimates along a number or a date: a line in a band, gaps where nothing is known."""

from __future__ import annotations

import datetime as dt
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from hubbub.plots.axis import Axis, day_axis, number_axis, place, tick_text
from hubbub.plots.svg_parts import COLOURS, Drawing, element, line, shortened, text, values_of, wide

if TYPE_CHECKING:
    from hubbub.plots.chart import Chart, Point

__all__ = ["lines", "multiples"]

_DASHES = (None, "7 4", "2 3", "10 3 2 3", "12 5", "4 2")


def lines(chart: Chart, name: str) -> Drawing:
    """A line with its band for each value of the other key, or one."""
    del name
    series = _series(chart)
    named = len(series) > 1
    beside = min(140.0, max(wide(label) for label, _ in series) + 14) if named else 8
    height, numbers = 300.0, values_of(chart.points)
    upright = _values(chart, numbers, height, 12)
    start = max(wide(told) for _, told in upright.ticks) + 10
    along = _along(chart, start, chart.width - beside, most=7 if chart.width > 500 else 4)
    body = [_frame(along, upright, start, chart.width - beside, height)]
    body += [_one(points, along, upright, nth, chart) for nth, (_, points) in enumerate(series)]
    if named:
        body.append(_names(series, upright, chart.width - beside + 8, beside))
    told = shortened(f"{chart.measure} over {chart.keys[chart.along]}", min(500, chart.width - start))
    body.append(text(start, height + 40, told, quiet=True))
    return Drawing("".join(body), height + 48)


def multiples(chart: Chart, name: str) -> Drawing:
    """A small line for each value of the other key, all to one scale."""
    del name
    series, across, gap = _series(chart), 3, 18.0
    wide_one, tall = (chart.width - 2 * gap) / across, 118.0
    numbers = values_of(chart.points)
    body = []
    for nth, (label, points) in enumerate(series):
        x, y = (nth % across) * (wide_one + gap), (nth // across) * (tall + 46)
        upright = _values(chart, numbers, y + tall, y + 26, most=3)
        start = x + max(wide(told) for _, told in upright.ticks) + 6
        along = _along(chart, start, x + wide_one, most=3)
        body.append(text(x, y + 14, shortened(label, wide_one), bold=True))
        body.append(_frame(along, upright, start, x + wide_one, y + tall))
        body.append(_one(points, along, upright, 0, chart))
    rows = -(-len(series) // across)
    foot = rows * (tall + 46)
    body.append(
        text(0, foot + 8, shortened(f"{chart.measure} over {chart.keys[chart.along]}, one scale", 600), quiet=True)
    )
    return Drawing("".join(body), foot + 18)


def _series(chart: Chart) -> list[tuple[str, list[Point]]]:
    """The points of each line, in the order of the key along which it runs."""

    def along(point: Point) -> float:
        return place(point.keys[chart.along])

    known = sorted((p for p in chart.points if p.keys[chart.along] is not None), key=along)
    if len(chart.keys) == 1:
        return [(chart.measure, known)]
    there = [(value, [p for p in known if p.keys[1 - chart.along] == value]) for value in chart.inner]
    return [(points[0].names[1 - chart.along], points) for _, points in there if points]


def _along(chart: Chart, start: float, end: float, *, most: int) -> Axis:
    values: list[Any] = chart.column(chart.along)
    low, high = place(values[0]), place(values[-1])
    if isinstance(values[0], dt.date):
        return day_axis(low, high, start + 4, end - 4, most=most)
    axis = number_axis([low, high], start, end, zero=False, most=most)
    if len(values) <= most:
        step = min((abs(place(b) - place(a)) for a, b in pairwise(values)), default=1.0)
        ticks = tuple((place(v), tick_text(place(v), step, commas=high >= 10_000)) for v in values)
        return Axis(low, high, start + 12, end - 12, ticks)
    within = [x for x, _ in axis.ticks if low <= x <= high]
    step = within[1] - within[0] if len(within) > 1 else 1.0
    ticks = tuple((x, tick_text(x, step, commas=high >= 10_000)) for x in within)
    return Axis(low, high, start + 4, end - 4, ticks)


def _values(chart: Chart, numbers: list[float], bottom: float, top: float, *, most: int = 5) -> Axis:
    if chart.moments:
        return day_axis(min(numbers, default=0.0), max(numbers, default=1.0), bottom, top, most=most)
    known = number_axis(numbers, bottom, top, zero=False, most=most)
    if known.low == 0 or known.low >= min(numbers, default=0.0):
        return known
    return number_axis(numbers, bottom, top - 4, zero=False, most=most, whole=False)


def _frame(along: Axis, upright: Axis, start: float, end: float, bottom: float) -> str:
    parts = [line(start, upright.at(y), end, upright.at(y), "g") for y, _ in upright.ticks]
    parts.append(line(start, bottom, end, bottom, "a"))
    parts += [text(start - 6, upright.at(y) + 5, told, anchor="end", quiet=True) for y, told in upright.ticks]
    for x, told in along.ticks:
        over = along.at(x) + wide(told) / 2 > end + 8
        parts.append(
            text(end + 8 if over else along.at(x), bottom + 19, told, anchor="end" if over else "middle", quiet=True)
        )
    return "".join(parts)


def _one(points: list[Point], along: Axis, upright: Axis, nth: int, chart: Chart) -> str:
    """A line and its band, in pieces between gaps; a dot for each estimate."""
    parts, n = [], nth % len(COLOURS)
    for known, run in groupby(points, key=lambda p: p.value is not None):
        if not known:
            continue
        piece = list(run)
        x = [along.at(place(p.keys[chart.along])) for p in piece]
        high = [f"{a:g} {upright.at(p.most):g}" for a, p in zip(x, piece, strict=True)]
        low = [f"{a:g} {upright.at(p.least):g}" for a, p in zip(x, piece, strict=True)]
        middle = [f"{a:g} {upright.at(p.value or 0.0):g}" for a, p in zip(x, piece, strict=True)]
        band = {"class": f"b{n + 1} band", "d": f"M{'L'.join([*high, *reversed(low)])}Z", "fill": COLOURS[n]}
        parts.append(element("path", {**band, "fill-opacity": 0.4}))
        look = {"fill": "none", "stroke": "currentColor", "stroke-width": 2, "stroke-dasharray": _DASHES[n]}
        parts.append(element("path", {"class": f"i{n + 1}", "d": f"M{_path(middle, steps=chart.steps)}", **look}))
        if len(points) <= 60 or len(piece) == 1:
            dots = "".join(element("circle", {"cx": m.split()[0], "cy": m.split()[1], "r": 2.6}) for m in middle)
            parts.append(element("g", {"class": f"d{n + 1}"}, dots))
    return "".join(parts)


def _path(places: list[str], *, steps: bool) -> str:
    """From place to place: straight, or along until the next one and then up."""
    if not steps:
        return "L".join(places)
    return places[0] + "".join(f"H{x}V{y}" for x, y in (place.split() for place in places[1:]))


def _names(series: list[tuple[str, list[Point]]], upright: Axis, x: float, room: float) -> str:
    """The name of each line at its end, none over another."""
    ends = []
    for nth, (label, points) in enumerate(series):
        last = next((p for p in reversed(points) if p.value is not None), None)
        if last is not None:
            ends.append((upright.at(last.value or 0.0), nth, label))
    ends.sort()
    places: list[float] = []
    for y, _, _ in ends:
        places.append(max(y, places[-1] + 17) if places else y)
    over = max(0.0, (places[-1] if places else 0.0) - upright.start)
    parts = []
    for y, (_, nth, label) in zip(places, ends, strict=True):
        n = nth % len(COLOURS)
        parts.append(element("g", {"class": f"d{n + 1}"}, text(x, y - over + 5, shortened(label, room - 10))))
    return "".join(parts)
