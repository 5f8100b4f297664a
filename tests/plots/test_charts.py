"""The charts of pages, notebooks and files: what is missing stays missing, every text is text, all can be read."""

from __future__ import annotations

import datetime as dt
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from hubbub.errors import ParameterError
from hubbub.plots.axis import day_axis, number_axis
from hubbub.plots.chart import KINDS, Chart, Point
from hubbub.plots.svg import description, narrowed
from hubbub.plots.svg_parts import wide

HOSTILE = "</svg><script>alert(1)</script>\"' onload=x &amp; ‮ \x00\x1b"
SVG = "{http://www.w3.org/2000/svg}"
DAY = dt.date(2025, 1, 1)
YEARS = range(2019, 2026)


def at(keys: tuple, value: float | None, reach: float = 10.0, **more) -> Point:
    if value is None:
        return Point(keys, None)
    return Point(keys, value, value - reach, value + reach, f"{value:,.0f} ± {reach:,.0f}", **more)


CHARTS = {
    "bars": Chart("n", ("ward",), tuple(at((w,), v) for w, v in (("A", 40.0), ("B", None), (None, 12.0)))),
    "points": Chart("d", ("ward",), tuple(at((w,), 18_000.0 + w) for w in (1, 2)), moments=True, kind="points"),
    "lines": Chart("n", ("day",), tuple(at((DAY + dt.timedelta(i),), None if i == 3 else 100.0 + i) for i in range(9))),
    "grouped": Chart("n", ("ward", "sex"), tuple(at((w, s), 50.0) for w in "AB" for s in "fm")),
    "multiples": Chart("n", ("ward", "year"), tuple(at((w, y), y - 2000.0) for w in "ABCDEFGH" for y in YEARS)),
    "heat": Chart("n", ("ward", "why"), (*(at((w, y), 50.0) for w in "AB" for y in "cdefgh"), at(("A", "i"), None))),
    "calendar": Chart("n", ("day",), tuple(at((DAY + dt.timedelta(i),), None if i == 7 else 9.0) for i in range(400))),
}  # fmt: skip
CHARTS["calendar"] = replace(CHARTS["calendar"], kind="calendar")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def parsed(chart: Chart) -> ET.Element:
    return ET.fromstring(chart.svg())


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_drawn_by_default_or_by_name_with_title_and_description(kind: str) -> None:
    chart = CHARTS[kind]
    assert (chart.kind or chart.kinds[0]) == kind
    root = parsed(chart)
    title, described = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text == chart.heading
    assert described is not None
    assert described.text == description(chart)
    assert root.get("aria-labelledby") == f"{title.get('id')} {described.get('id')}"
    assert root.get("role") == "img"
    heads, rows = chart.table()
    assert len(rows) == len(chart.points)
    assert all(len(row) == len(heads) for row in rows)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_from_elsewhere_are_text_in_every_kind(kind: str) -> None:
    chart = CHARTS[kind]
    places = [i for i, key in enumerate(chart.keys) if isinstance(chart.points[0].keys[i], str)]
    points = tuple(
        replace(p, keys=tuple(f"{k}{HOSTILE}" if i in places else k for i, k in enumerate(p.keys)), text=HOSTILE)
        for p in chart.points
    )
    hostile = Chart(HOSTILE, tuple(HOSTILE for _ in chart.keys), points, moments=chart.moments, kind=chart.kind)
    ET.fromstring(hostile.svg())  # XML has no control characters
    reader = _Tags()
    reader.feed(hostile.html())
    assert not {"script", "style", "a", "image", "foreignobject"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("href", "style")]


def test_what_is_missing_is_said_and_not_drawn() -> None:
    bars = CHARTS["bars"].svg()
    assert bars.count("<rect") == 2
    assert bars.count('class="i1"') == 2
    assert bars.count(">NULL<") == 2  # the value of B, and the name of the third
    line = parsed(CHARTS["lines"])
    assert len([p for p in line.iter(f"{SVG}path") if p.get("class") == "i1"]) == 2  # a gap between two pieces
    assert CHARTS["calendar"].svg().count('class="empty"') == 1
    heat = CHARTS["heat"].svg()
    assert (heat.count(">NULL<"), heat.count(">–<")) == (1, 1)


def test_an_interval_without_an_end_goes_to_the_edge_without_a_cap() -> None:
    svg = Chart("n", ("w",), (Point(("a",), 5.0, -math.inf, 9.0), Point(("b",), 7.0, 1.0, 8.0))).svg()
    assert "nan" not in svg.lower()
    assert "inf" not in svg.lower().replace("infinity", "")
    whiskers = [p for p in ET.fromstring(svg).iter(f"{SVG}path") if p.get("class") == "i1"]
    assert sorted(p.get("d", "").count("v") for p in whiskers) == [1, 2]


def test_seventy_two_names_can_be_read() -> None:
    chart = Chart("n", ("zip",), tuple(at((f"12{i:03d}",), 900.0 + i) for i in range(72)))
    texts = [t for t in parsed(chart).iter(f"{SVG}text") if (t.text or "").startswith("12")]
    heights = [float(t.get("y", "0")) for t in texts]
    assert len(heights) == 72
    assert min(b - a for a, b in pairwise(heights)) >= 18


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_stands_below_the_picture_in_lines_that_fit(kind: str) -> None:
    note = f"bounded: at most 2 rows of one patient; {HOSTILE}\n{'a long sentence ' * 9}"
    plain, noted = parsed(CHARTS[kind]), parsed(replace(CHARTS[kind], note=note))
    height = int(plain.get("height", "0"))
    added = [t for t in noted.iter(f"{SVG}text") if float(t.get("y", "0")) > height and t.get("x") == "4"]
    assert "bounded: at most 2 rows of one patient;" in " ".join(t.text or "" for t in added)
    assert len(added) >= 3
    assert all(wide(t.text or "") <= int(noted.get("width", "0")) for t in added)
    assert height < float(added[-1].get("y", "0")) < int(noted.get("height", "0"))
    assert replace(CHARTS[kind], note=note).html().startswith(f"<figure>{CHARTS[kind].svg()}<")


def test_the_drawing_before_asking_is_dashed_and_hatched_where_it_would_drown() -> None:
    chart = Chart("n", ("w",), (at(("a",), 100.0, look="empty"), at(("b",), 100.0, 300.0, look="drowned")))
    svg = chart.svg()
    assert svg.count('class="empty"') == 1
    assert svg.count('class="drowned"') == 1
    assert svg.count("<pattern") == 1
    assert 'class="b1"' not in svg


def test_values_outside_their_intervals_and_kinds_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="outside its interval"):
        Point(("a",), 3.0, 0.0, 2.0)
    with pytest.raises(ParameterError, match="allowed here are 'bars', 'points'"):
        replace(CHARTS["bars"], kind="lines")
    with pytest.raises(ParameterError, match="a key for each"):
        Chart("n", ("a", "b"), (at(("x",), 1.0),))
    with pytest.raises(ParameterError, match="'full'"):
        at(("a",), 1.0, look="full")


def test_a_file_is_svg(tmp_path) -> None:
    CHARTS["bars"].save(tmp_path / "a.svg")
    ET.parse(tmp_path / "a.svg")
    with pytest.raises(ParameterError, match="a name that ends in"):
        CHARTS["bars"].save(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("numbers", "zero"),
    [([0], True), ([5, 5], False), ([-3e-9, 2e-9], True), ([1e12, 3e12], False), ([], True), ([-7], True)],
)
def test_an_axis_holds_its_numbers_and_has_a_few_ticks(numbers: list[float], zero: bool) -> None:
    axis = number_axis(numbers, 0, 300, zero=zero)
    assert axis.low < axis.high
    assert all(axis.low <= x <= axis.high for x in numbers)
    assert 2 <= len(axis.ticks) <= 8
    assert len({text for _, text in axis.ticks}) == len(axis.ticks)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 5), (0, 80), (0, 900), (-719_200, 2_933_000), (0, 9_000)])
def test_an_axis_of_days_names_some_that_there_are(low: float, high: float) -> None:
    axis = day_axis(low, high, 0, 300)
    assert 1 <= len(axis.ticks) <= 9
    assert all(axis.low <= x <= axis.high for x, _ in axis.ticks)


def test_an_axis_within_its_numbers_has_two_ticks_at_least() -> None:
    assert [told for _, told in number_axis([25.6, 34.2], 0, 100, zero=False, whole=False).ticks][:2] == ["26", "28"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_narrow_window_has_a_picture_of_its_own_or_none(kind: str) -> None:
    narrow = narrowed(CHARTS[kind])
    assert (narrow is None) == (kind in ("heat", "multiples", "calendar"))
    if narrow is not None:
        assert parsed(narrow).get("width") == "340"
        assert narrow.table() == CHARTS[kind].table()
    long = Chart("n", ("ward",), (at(("a ward with a name that takes half of a picture",), 40.0),))
    assert narrowed(long) is None
