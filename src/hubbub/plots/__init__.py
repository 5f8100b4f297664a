"""Pictures from plain arrays, with matplotlib (the extra `plot`), loaded when the first picture is drawn.

Every function takes numbers, labels and an optional `ax`, and gives the matplotlib Axes back; nothing here
knows what the numbers mean. Colours are told apart by those who see colours differently (Okabe, Ito 2008).
Without an `ax` a figure is made that belongs to no window system, so drawing works on servers. A notebook shows its
Axes (`hubbub.plots.shown_axes`); save it with `ax.figure.savefig(path)`.
"""

from __future__ import annotations

import datetime as dt
import math
import textwrap
from collections.abc import Sequence
from typing import Any

from hubbub.errors import ParameterError, PolicyError, how_to_install, what_was_given
from hubbub.plots.shown_axes import INK, shown_axes

__all__ = ["axes", "band", "curves", "intervals", "save", "whiskers"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
Line = tuple[str, Sequence[float], Sequence[float]]


def axes(ax: Any = None) -> Any:
    """The given Axes, or a new one. Raises PolicyError where matplotlib is not installed."""
    if ax is not None:
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise PolicyError(f"plots need matplotlib, which is not installed. {how_to_install('plot')}") from None
    figure = Figure(figsize=(6.4, 4.2), dpi=120, layout="constrained", facecolor="none")
    FigureCanvasAgg(figure)
    return figure.add_subplot(axes_class=shown_axes())


def save(ax: Any, path: str) -> None:
    """Writes the picture that holds `ax`; the ending of the name says which format."""
    try:
        ax.figure.savefig(path)
    except ValueError as error:
        raise ParameterError(
            f"cannot save a picture as {what_was_given(path)}: {error}. Use an ending such as .png or .svg."
        ) from None


def intervals(
    labels: Sequence[str],
    estimates: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    title: str,
    ylabel: str,
    ax: Any = None,
) -> Any:
    """Estimates as points with whiskers from low to high, one per label, in order."""
    _same(labels=labels, estimates=estimates, lows=lows, highs=highs)
    ax = axes(ax)
    places = range(len(labels))
    below = [e - low for e, low in zip(estimates, lows, strict=True)]
    above = [high - e for e, high in zip(estimates, highs, strict=True)]
    if any(d < 0 for d in below + above):
        raise ParameterError("an estimate lies outside its interval. Give low <= estimate <= high for every label.")
    ax.errorbar(
        list(places),
        list(estimates),
        yerr=[below, above],
        fmt="o",
        color=COLOURS[0],
        ecolor=COLOURS[5],
        capsize=4,
        lw=2,
    )
    _room_for_gaps(ax, list(places), estimates)
    crowded = len(labels) > 8 or sum(len(str(label)) for label in labels) > 60
    ax.set_xticks(
        list(places),
        [str(label) for label in labels],
        rotation=45 if crowded else 0,
        ha="right" if crowded else "center",
    )
    return _dressed(ax, title, "", ylabel)


def whiskers(
    places: Sequence[Any],
    estimates: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    kind: str,
    title: str,
    xlabel: str,
    ylabel: str,
    footnote: str = "",
    ax: Any = None,
) -> Any:
    """Estimates with whiskers from low to high: as "bars" or "points", one per label, or as "lines" over numbers or
    dates, in increasing order; a place that is None is left out, and an estimate that is NaN leaves a gap. footnote:
    what is said in small letters below the picture.

    Raises ParameterError for another kind, and for columns of different lengths.
    """
    drawn = _whiskers(places, estimates, lows, highs, kind=kind, title=title, xlabel=xlabel, ylabel=ylabel, ax=ax)
    if footnote:
        small = "\n".join(textwrap.fill(line, 80) for line in footnote.splitlines())
        drawn.set_xlabel(f"{drawn.get_xlabel()}\n{small}".strip(), fontsize="small")
    return drawn


def _whiskers(
    places: Sequence[Any],
    estimates: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    kind: str,
    title: str,
    xlabel: str,
    ylabel: str,
    ax: Any,
) -> Any:
    _same(places=places, estimates=estimates, lows=lows, highs=highs)
    labels = [str(place) for place in places]
    match kind:
        case "points":
            return intervals(labels, estimates, lows, highs, title=title, ylabel=ylabel, ax=ax)
        case "bars":
            ax = axes(ax)
            ax.bar(range(len(labels)), list(estimates), color=COLOURS[5], alpha=0.6)
            return intervals(labels, estimates, lows, highs, title=title, ylabel=ylabel, ax=ax)
        case "lines":
            ax = axes(ax)
            known = [row for row in zip(places, estimates, lows, highs, strict=True) if row[0] is not None]
            known.sort(key=lambda row: row[0])
            x, middle, low, high = ([row[i] for row in known] for i in range(4))
            below = [e - a for e, a in zip(middle, low, strict=True)]
            above = [b - e for e, b in zip(middle, high, strict=True)]
            # The dots show an estimate between two gaps, to which no line leads.
            look = {"color": COLOURS[0], "ecolor": COLOURS[5], "capsize": 4, "lw": 2, "marker": "o", "markersize": 3}
            ax.errorbar(x, middle, yerr=[below, above], **look)
            _room_for_gaps(ax, x, middle)
            if x and isinstance(x[0], dt.date):
                _dated(ax)
            return _dressed(ax, title, xlabel, ylabel)
    raise ParameterError(f"kind={what_was_given(kind)}: allowed are 'bars', 'lines' and 'points'.")


def curves(
    lines: Sequence[Line],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    log: bool = False,
    paired: bool = False,
    ax: Any = None,
) -> Any:
    """Lines (label, x, y); `log` makes the y axis logarithmic; `paired` gives two lines in a row one
    colour.
    """
    ax = axes(ax)
    for i, (label, x, y) in enumerate(lines):
        _same(x=x, y=y)
        colour = COLOURS[(i // 2 if paired else i) % len(COLOURS)]
        ax.plot(list(x), list(y), label=label or None, color=colour, lw=2)
    if log:
        ax.set_yscale("log")
    if any(label for label, _, _ in lines):
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if paired else {}
        ax.legend(frameon=False, **beside)
    return _dressed(ax, title, xlabel, ylabel)


def band(
    x: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    middle: Sequence[float] | None = None,
    title: str,
    xlabel: str,
    ylabel: str,
    ax: Any = None,
) -> Any:
    """The region between two curves, with an optional line within."""
    _same(x=x, low=low, high=high)
    ax = axes(ax)
    ax.fill_between(list(x), list(low), list(high), color=COLOURS[5], alpha=0.35, lw=0)
    ax.plot(list(x), list(low), color=COLOURS[0], lw=2)
    ax.plot(list(x), list(high), color=COLOURS[0], lw=2, label="bounds")
    if middle is not None:
        ax.plot(list(x), list(middle), color=COLOURS[6], lw=1.2, label="nothing learned")
    ax.legend(frameon=False, loc="upper left")
    return _dressed(ax, title, xlabel, ylabel)


def _room_for_gaps(ax: Any, places: Sequence[Any], estimates: Sequence[float]) -> None:
    """Makes the axis reach to where nothing is drawn: what has no estimate has its place none the less."""
    there = [e for e in estimates if not math.isnan(e)]
    if there and len(there) < len(estimates):
        ax.plot(places, [there[0]] * len(places), linestyle="none")


def _dated(ax: Any) -> None:
    """As many dates under the axis as stand beside each other, each without what it shares with all."""
    import matplotlib.dates

    dates: Any = matplotlib.dates  # its classes have no types
    places = dates.AutoDateLocator(maxticks=8)
    ax.xaxis.set_major_locator(places)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(places))


def _dressed(ax: Any, title: str, xlabel: str, ylabel: str) -> Any:
    ax.set_title(title)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.25)
    return ax


def _same(**columns: Sequence[object]) -> None:
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ParameterError(f"columns of different lengths were given: {sizes}. Give one value per point to each.")


def __dir__() -> list[str]:
    return sorted(__all__)
