"""Pictures hold what they were given."""

from __future__ import annotations

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
