"""What matplotlib draws is shown by a notebook, on a light ground and on a dark one; no text in it is ever run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub import plots
from hubbub.accounting import events, losses, meaning
from hubbub.plots.shown_axes import INK
from hubbub.synthesis.report import plot_distances

pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def _luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("ground", "least"), [("#ffffff", 4.5), ("#111111", 4.0), ("#1e1e1e", 3.5)])
def test_the_ink_stands_out_from_light_and_from_dark_grounds(ground: str, least: float) -> None:
    light, dark = sorted((_luminance(INK), _luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= least


DRAWN: dict[str, Callable[[], Any]] = {
    "meaning": lambda: meaning.plot(1),
    "trade-off": lambda: meaning.plot_tradeoff(1),
    "intervals": lambda: plots.intervals(["a", "b"], [1, 2], [0, 1], [2, 3], title="t", ylabel="n"),
    "curves": lambda: plots.curves([("x", [0, 1], [0, 1])], title="t", xlabel="x", ylabel="y"),
    "loss": lambda: losses.loss(events.Laplace(1)).plot(),
    "synthesis": lambda: plot_distances({("a", "b"): 0.1, ("a", "c"): 0.05}, ways=2),
}


@pytest.mark.parametrize("which", list(DRAWN))
def test_a_notebook_shows_a_picture_and_not_a_name(which: str) -> None:
    shown = DRAWN[which]()._repr_html_()
    svg = ET.fromstring(shown)
    assert svg.tag == f"{SVG}svg"
    texts = ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]
    assert len(texts) > 5
    assert "currentColor" in shown
    assert INK not in shown
    assert not [e for e in svg.iter() if e.tag in (f"{SVG}script", f"{SVG}foreignObject")]
    assert shown == DRAWN[which]()._repr_html_()  # the same picture is the same text


def test_nothing_in_it_is_black_or_white() -> None:
    """The ground is transparent, and every letter, axis and line has the ink or a colour of ours."""
    for name, draw in DRAWN.items():
        svg = ET.fromstring(draw()._repr_html_())
        styles = " ".join(e.get("style") or "" for e in svg.iter())
        assert "fill: #ffffff" not in styles, name
        assert "#000000" not in styles, name
        assert "stroke: black" not in styles, name
        bare = [e for e in svg.iter(f"{SVG}text") if "fill: currentColor" not in (e.get("style") or "")]
        assert bare == [], (name, ["".join(e.itertext()) for e in bare])


def test_a_hostile_label_stays_a_text() -> None:
    hostile = "<script>alert(1)</script>\"'&"
    ax = plots.intervals([hostile, "b"], [1, 2], [0, 1], [2, 3], title=hostile, ylabel="n")
    shown = ax._repr_html_()
    assert "<script" not in shown
    assert hostile in ["".join(text.itertext()) for text in ET.fromstring(shown).iter(f"{SVG}text")]


def test_axes_that_are_given_are_drawn_on_as_they_are() -> None:
    from matplotlib.figure import Figure

    own = Figure().add_subplot()
    assert meaning.plot(1, ax=own) is own
    assert not hasattr(own, "_repr_html_")


def test_the_figures_of_the_docs_have_no_ground_and_no_black() -> None:
    """They are pictures of a page that is light or dark; each was looked at on white and on #131416."""
    figures = [
        file for file in sorted((Path(__file__).parents[2] / "docs").rglob("*.svg")) if "_build" not in file.parts
    ]
    assert len(figures) >= 14
    for file in figures:
        svg = file.read_text("utf-8").lower()
        assert "fill: #ffffff" not in svg, file
        assert "#000000" not in svg, file
        assert f'fill="{INK}"' in svg or "currentcolor" in svg, file
