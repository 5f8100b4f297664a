"""Pictures hold what they were given."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pytest

from hubbub import plots
from hubbub.accounting import meaning
from hubbub.errors import ParameterError

pytest.importorskip("matplotlib")


def test_intervals_draw_each_estimate_with_its_whiskers(tmp_path):
    ax = plots.intervals(["a", "b"], [1, 2], [0.5, 1], [2, 4], title="t", ylabel="y")
    points, _, bars = ax.containers[0]
    assert points.get_ydata().tolist() == [1, 2]
    assert [tuple(s[:, 1]) for s in bars[0].get_segments()] == [(0.5, 2.0), (1.0, 4.0)]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]
    plots.save(ax, str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_an_estimate_outside_its_interval_is_refused():
    with pytest.raises(ParameterError, match="outside"):
        plots.intervals(["a"], [3], [0], [2], title="", ylabel="")
    with pytest.raises(ParameterError, match="lengths"):
        plots.intervals(["a"], [1, 2], [0, 0], [2, 2], title="", ylabel="")


def test_a_picture_of_an_unknown_kind_is_refused(tmp_path):
    ax = plots.curves([("a", [0, 1], [1, 2])], title="", xlabel="", ylabel="")
    with pytest.raises(ParameterError, match="ending"):
        plots.save(ax, str(tmp_path / "x.nonsense"))


def test_the_thesis_figure_passes_through_its_corner_values():
    ax = meaning.plot("1.0986122886681098")
    low, high = ax.lines[0], ax.lines[1]
    assert low.get_ydata()[100] == pytest.approx(0.25)
    assert high.get_ydata()[100] == pytest.approx(0.75)
    assert len(meaning.plot_many([1, 5]).lines) == 4
    assert meaning.plot_tradeoff(1).lines[0].get_ydata()[0] == pytest.approx(1.0)


@pytest.mark.parametrize(("days", "step"), [(3, 1), (12, 30), (90, 1), (365, 1)])
def test_dates_under_an_axis_do_not_lie_over_each_other(days, step):
    x = [dt.date(2025, 1, 1) + dt.timedelta(days=i * step) for i in range(days)]
    ax = plots.whiskers(x, [1] * days, [0] * days, [2] * days, kind="lines", title="", xlabel="", ylabel="")
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    labels = [
        label.get_window_extent()
        for place, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        if low <= place <= high and label.get_text()
    ]
    assert len(labels) >= 3
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(labels))


def test_the_course_of_everyone_shows_beside_an_equal_one():
    from hubbub.ledger.history import Course, draw

    times, spent = ("2025-01-01T00:00:00+00:00", "2025-01-02T00:00:00+00:00"), (0.5, 1.0)
    ax = draw([Course(name, times, spent, 3.0) for name in ("everyone", "analyst:ada")])
    lines = {line.get_label(): line for line in ax.lines}
    everyone, ada = lines["everyone"], lines["analyst:ada"]
    assert everyone.get_linewidth() > 2 * ada.get_linewidth()
    assert everyone.get_zorder() < ada.get_zorder()


NULL = float("nan")


@pytest.mark.parametrize("kind", ["bars", "lines", "points"])
def test_what_is_null_leaves_a_gap(kind):
    ax = plots.whiskers(
        [2021, 2022, 2023, 2024],
        [NULL, 5, NULL, 7],
        [NULL, 4, NULL, 6],
        [NULL, 6, NULL, 8],
        kind=kind,
        title="",
        xlabel="",
        ylabel="",
    )
    ax.figure.canvas.draw()
    line, caps, _ = ax.containers[-1]
    assert np.isnan(np.asarray(line.get_ydata(), float)).tolist() == [True, False, True, False]
    assert line.get_marker() != "None"  # or an estimate between two gaps would not show
    for drawn in caps:
        assert np.isnan(np.asarray(drawn.get_ydata(), float)).tolist() == [True, False, True, False]
    heights = [patch.get_height() for patch in ax.patches]
    assert not heights or np.isnan(heights).tolist() == [True, False, True, False]
    if kind != "bars":
        assert ax.get_ylim()[0] > 3.5  # no whisker leads down to 0
