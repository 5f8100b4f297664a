"""What a picture of an answer is: estimates with intervals at the places of one or two keys.

    chart = Chart("n", ("ward",), (Point(("A",), 5120.0, 4940.0, 5300.0), ...))
    chart.kinds                 how it can be drawn, the best first
    chart.svg()                 SVG text; chart.html(): the same with its table, for notebooks
    chart.save("wards.svg")

The one model of the charts in pages, in notebooks and in files. What is missing stays missing: a value that is None is
said and not drawn. A picture has a title and a description, and stands beside a table of the same numbers.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from hubbub.errors import ParameterError, what_was_given
from hubbub.plots.axis import place
from hubbub.plots.page import html_lines, html_table

__all__ = ["KINDS", "Chart", "Point", "drawable"]

KINDS: Final = ("bars", "points", "lines", "grouped", "multiples", "heat", "calendar")
"""How charts are drawn."""

_SERIES: Final = 6
_DAYS: Final = 60
_FEW: Final = 8


def drawable(keys: Sequence[str]) -> tuple[str, ...]:
    """The keys of a picture.

    Raises ParameterError for more than two.
    """
    if len(keys) > 2:
        raise ParameterError(f"a picture has at most two keys, and this has {len(keys)}: {', '.join(keys)}.")
    return tuple(keys)


@dataclass(frozen=True)
class Point:
    """An estimate at a place. keys: where it stands, a value for each key of the chart; low and high: the ends of its
    interval; None where there is none. text: how a table writes it. look: "" or, where nothing was read yet, "empty",
    and "drowned" where the error would hide it.
    """

    keys: tuple[Any, ...]
    value: float | None
    low: float | None = None
    high: float | None = None
    text: str = ""
    look: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            x = getattr(self, name)
            if x is not None and math.isnan(x):
                object.__setattr__(self, name, None)
        if self.value is not None and not (self.least <= self.value <= self.most):
            raise ParameterError("an estimate lies outside its interval. Give low <= value <= high.")
        if self.look not in ("", "empty", "drowned"):
            raise ParameterError(f"look={what_was_given(self.look)}: allowed are '', 'empty' and 'drowned'.")

    @property
    def least(self) -> float:
        """The low end, or the value itself."""
        return self.low if self.low is not None else self.value or 0.0

    @property
    def most(self) -> float:
        """The high end, or the value itself."""
        return self.high if self.high is not None else self.value or 0.0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Its keys as text."""
        return tuple(_name(key) for key in self.keys)

    @property
    def said(self) -> str:
        """Its value as text."""
        if self.text or self.value is None:
            return self.text or "NULL"
        return f"{self.value:,.4g}"


@dataclass(frozen=True)
class Chart:
    """Estimates of one measure. level: that of the intervals. moments: whether the values are days since 1970-01-01.
    kind: how it is drawn; "" for the best way. note: what is said below it. width: in units in which letters are 14
    high. steps: whether a line stays where it is until the next point, as a sum does.

    Raises ParameterError where a point has not a key for each of the chart's, and for a kind that these keys have not.
    """

    measure: str
    keys: tuple[str, ...]
    points: tuple[Point, ...]
    level: float | None = 0.95
    title: str = ""
    moments: bool = False
    kind: str = ""
    note: str = ""
    width: int = 640
    steps: bool = False

    def __post_init__(self) -> None:
        if any(len(point.keys) != len(self.keys) for point in self.points):
            raise ParameterError(f"each point of a chart has a key for each of {self.keys}.")
        if self.kind and self.kind not in self.kinds:
            raise ParameterError(
                f"kind={what_was_given(self.kind)}: allowed here are {', '.join(map(repr, self.kinds))}."
            )

    @property
    def heading(self) -> str:
        """Its title."""
        return self.title or (f"{self.measure} by {', '.join(self.keys)}" if self.keys else self.measure)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """How it can be drawn, the best way first."""
        bars = ("points",) if self.moments else ("bars", "points")
        if len(self.points) < 2:
            return bars
        if len(self.keys) == 1:
            if not _ordered(self.column(0)):
                return bars
            dated = ("calendar",) if _daily(self.column(0)) and not self.moments else ()
            few = len(self.points) < _FEW and not isinstance(self.column(0)[0], dt.date)
            return (*bars, "lines") if few else ("lines", *dated, *bars)
        if len(self.keys) != 2 or len({point.keys for point in self.points}) < len(self.points):
            return bars
        few = len(self.inner) <= _SERIES
        grouped = ("grouped",) if few and not self.moments else ()
        heat = () if self.moments else ("heat",)
        if _ordered(self.column(0)) or _ordered(self.column(1)):
            lines = ("lines",) if few else ("multiples",)
            return (*lines, *(("multiples",) if few else ()), *heat, *grouped, *bars)
        return (*grouped, *heat, *bars) if len(self.inner) <= 4 else (*heat, *grouped, *bars)

    def column(self, at: int) -> list[Any]:
        """The values of a key, each once, in the order of the answer; in its own order where it has one."""
        values = list(dict.fromkeys(point.keys[at] for point in self.points))
        return sorted((v for v in values if v is not None), key=place) if _ordered(values) else values

    @cached_property
    def along(self) -> int:
        """Of two keys the one that is drawn along: the one that has an order, else the first."""
        return 1 if len(self.keys) == 2 and _ordered(self.column(1)) and not _ordered(self.column(0)) else 0

    @property
    def inner(self) -> list[Any]:
        """The values of the other one of two keys."""
        return self.column(1 - self.along)

    @cached_property
    def at(self) -> dict[tuple[Any, ...], Point]:
        """The points by their keys."""
        return {point.keys: point for point in self.points}

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The same numbers: the names of the columns, and the rows."""
        return (*self.keys, self.measure), [(*p.names, p.said) for p in self.points]

    def svg(self) -> str:
        """The picture and its note as SVG text."""
        from hubbub.plots.svg import drawn

        return drawn(self, self.kind or self.kinds[0])

    def html(self) -> str:
        """The picture, the table beside it, and the note."""
        picture = replace(self, note="").svg()
        return f"<figure>{picture}{html_table(*self.table())}{html_lines(self.note.splitlines())}</figure>"

    def save(self, path: str | Path) -> None:
        """Writes the picture as a file of SVG."""
        if Path(path).suffix.lower() != ".svg":
            raise ParameterError(f"cannot save a chart as {str(path)!r}: it is SVG. Use a name that ends in .svg.")
        Path(path).write_text(self.svg(), "utf-8")

    def _repr_html_(self) -> str:
        return self.html()


def _name(key: Any) -> str:
    if key is None:
        return "NULL"
    if isinstance(key, bool):
        return "true" if key else "false"
    return key.isoformat(sep=" ") if isinstance(key, dt.datetime) else str(key)


def _ordered(values: Sequence[Any]) -> bool:
    """Whether all are numbers, or all are dates; NULL has no place."""
    known = [v for v in values if v is not None]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)
    return len(known) > 1 and (numbers or all(isinstance(v, dt.date) for v in known))


def _daily(values: Sequence[Any]) -> bool:
    """Whether these are days, enough of them for a calendar, of a few years at most."""
    days = [v for v in values if v is not None]
    if len(days) < _DAYS or any(isinstance(v, dt.datetime) or not isinstance(v, dt.date) for v in days):
        return False
    return days[-1].year - days[0].year < 10 and all(a < b for a, b in pairwise(days))
