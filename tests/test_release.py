"""A release: what it shows, in which types, and what its error bars hold."""

from __future__ import annotations

import math
import pickle
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

import hubbub as hb
from hubbub import plots
from hubbub.answer.column import Column
from hubbub.answer.release import text_table
from hubbub.plots import whiskers
from hubbub.sql.bind.lineage import noisy_outputs
from people import HUGE, session, visits
from seeded import SeededBits

SQL = "SELECT ward, ok, COUNT(*) AS c, SUM(n) AS s, AVG(age) AS a FROM visits GROUP BY ward, ok"


def test_every_form_holds_the_same_answer() -> None:
    with session(epsilon=1) as s:
        r = s.sql(SQL, epsilon=1)
    arrow = r.to_arrow()
    assert r.columns == ("ward", "ok", "c", "s", "a")
    assert len(r) == 12
    assert arrow.to_pydict() == r.to_dict()
    assert list(zip(*r.to_dict().values(), strict=True)) == r.rows()
    assert r.to_pandas().shape == (12, 5)
    assert r.to_polars().rows() == r.rows()
    assert pa.table(r).equals(arrow)


def test_the_schema_depends_on_the_question_alone() -> None:
    with session(epsilon=1) as s:
        schema = s.sql(SQL, epsilon=1).to_arrow().schema
    kinds = [pa.string(), pa.bool_(), pa.int64(), pa.float64(), pa.float64()]
    assert schema.types == kinds


def test_intervals_stand_around_every_estimate() -> None:
    with session(epsilon=1, bits=SeededBits(3)) as s:
        r = s.sql(SQL, epsilon=1)
    table = r.intervals(0.9).to_pydict()
    assert list(table) == ["ward", "ok", "c", "c_low", "c_high", "s", "s_low", "s_high", "a", "a_low", "a_high"]
    wider = r.intervals(0.99).to_pydict()
    for name in "csa":
        for low, value, high, outer in zip(
            table[f"{name}_low"], table[name], table[f"{name}_high"], wider[f"{name}_high"], strict=True
        ):
            assert low <= value <= high <= outer
    assert all(0 <= v <= 128 for v in table["a_low"] + table["a_high"])


@pytest.mark.parametrize("level", [0, 1, -1, 1.5, math.nan])
def test_a_level_lies_between_0_and_1(level: float) -> None:
    with session(epsilon=1) as s:
        r = s.sql("SELECT COUNT(*) FROM visits", epsilon=1)
    with pytest.raises(hb.ParameterError, match="level"):
        r.intervals(level)


def test_a_mean_of_nobody_is_the_middle_with_the_whole_range() -> None:
    with session() as s:
        r = s.sql("SELECT AVG(age) AS a FROM visits WHERE age > 1000", epsilon=HUGE)
    assert r.rows() == [(64.0,)]
    assert r.intervals().to_pydict() == {"a": [64.0], "a_low": [0.0], "a_high": [128.0]}


def test_counts_may_be_negative_and_are_not_clamped() -> None:
    """Around 0 with scale 1,000, some of 48 cells are negative with probability 1 - 2^-48."""
    with session(epsilon=1, bits=SeededBits(1)) as s:
        counts = [c for i in range(4) for c in s.sql(SQL, epsilon="0.01", fresh=bool(i)).to_dict()["c"]]
    assert min(counts) < 0 < max(counts)  # type: ignore[type-var]


def test_a_release_prints_as_a_table_with_its_error_bars() -> None:
    with session(epsilon=HUGE) as s:
        text = str(s.sql("SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward ORDER BY ward", epsilon=HUGE))
    assert text.splitlines() == [
        "ward  visits",
        "----  ------",
        "   A   3 ± 0",
        "   B   1 ± 0",
        "   C   1 ± 0",
        "NULL   1 ± 0",
        "bounded: at most 10 rows in each of 4 groups of one id; what that leaves out is not in the ±",
    ]


def test_a_text_table_is_aligned() -> None:
    assert text_table(("a", "bb"), [("ccc", "d")]) == "  a  bb\n---  --\nccc   d"


def test_a_plot_shows_one_column_with_whiskers() -> None:
    with session(epsilon=1) as s:
        r = s.sql(SQL, epsilon=1)
    chart = r.plot("a")
    assert chart.measure == "a"
    assert "<svg" in chart._repr_html_()
    assert "a" in r.plot("a", ax=plots.axes()).get_title()
    with pytest.raises(hb.ParameterError, match="not an estimate"):
        r.plot("ward")


def test_a_cell_is_marked_where_its_error_is_a_large_part_of_it() -> None:
    with session(epsilon=9, bits=SeededBits(3)) as s:
        r = s.sql("SELECT COUNT(*) AS c, SUM(n) AS s FROM visits", epsilon=2)
    ((count, total),) = r.text.rows()
    reach = {name: width / abs(r.to_dict()[name][0]) for name, (width,) in r.error.half_widths().items()}
    assert count.startswith("~") == (reach["c"] > 0.3)
    assert total.startswith("~")
    assert reach["s"] > 0.3
    assert not any(cell.startswith("~") for cell in r.text.rows(reliable=10 * max(reach.values()))[0])
    assert all(cell.startswith("~") for cell in r.text.rows(reliable=min(reach.values()) / 2)[0])
    assert "~" in r._repr_html_()
    for wrong in (0, -1, math.nan, True, "a"):
        with pytest.raises(hb.ParameterError, match="reliable="):
            r.text.rows(reliable=wrong)  # type: ignore[arg-type]


def test_a_quantile_is_shown_with_both_ends_and_says_when_they_are_the_whole_range() -> None:
    sql = "SELECT MEDIAN(age) AS m, MEDIAN(age) / 2 AS h, COUNT(DISTINCT id) AS u FROM visits"
    with session(epsilon=10 * HUGE, bits=SeededBits(1)) as s:
        little, much = (s.sql(sql, epsilon=e) for e in ("0.001", HUGE))
    ((unknown, half, _),) = little.text.rows(0.9)
    assert unknown.endswith("(0..128, the whole range)")
    assert "±" in half  # computed from it: the quantiles of its draws
    assert "the whole range" not in str(much)
    assert ".." in much.text.rows()[0][0]


def test_an_answer_without_a_limit_says_nothing_of_bounding() -> None:
    with session(epsilon=9) as s:
        units = s.sql("SELECT COUNT(DISTINCT id) AS u FROM visits", epsilon=1)
        of_two = s.sql("SELECT ok, COUNT(DISTINCT id) AS u FROM visits GROUP BY ok", epsilon=1, max_groups=2)
        each = s.sql("SELECT COUNT(*) AS n FROM (SELECT id FROM visits GROUP BY id)", epsilon=1)
    assert units.text.bounded == each.text.bounded == ()
    assert of_two.text.bounded == ("bounded: at most 2 groups of one id; what that leaves out is not in the ±",)
    assert hb.Release.from_wire(of_two.to_wire()).text.remarks == of_two.text.remarks


@pytest.mark.parametrize("end", ["MIN", "MAX"])
def test_by_how_many_ranks_an_end_is_off_does_not_depend_on_where_its_range_begins(end: str) -> None:
    texts = (f"SELECT {end}({x}) AS x FROM visits" for x in ("age", "age - 64", "age + 1000"))
    with session(epsilon=9) as s:
        told = [s.check(text, epsilon=1).columns[0].ranks for text in texts]
    assert told[0] == told[1] == told[2]
    assert told[0] is not None


def test_check_tells_the_error_of_a_quantile_in_the_unit_of_its_column() -> None:
    with session(epsilon=9) as s:
        (column,) = s.check("SELECT MEDIAN(age) AS m FROM visits", epsilon=1, assume_rows=100_000).columns
        assert column.ranks is not None
        assert column.even == pytest.approx(128 * column.ranks / 100_000)
        assert f"± {column.even:,.4g}, if 100,000 values" in column.unit_note
        (column,) = s.check("SELECT MEDIAN(age) AS m FROM visits", epsilon="0.1", assume_rows=10).columns
        assert column.even is None
        assert "any value of the declared range" in column.unit_note


def test_a_plot_has_lines_over_ordered_keys_and_bars_over_others_and_says_what_is_left_out(tmp_path: Path) -> None:
    with session(epsilon=9) as s:
        by_ward = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=1)
        by_number = s.sql("SELECT n, COUNT(*) AS c FROM visits GROUP BY n", epsilon=1)
    assert by_ward.plot().svg().count("<rect") == 4
    assert by_ward.plot().kinds[0] == "bars"
    assert by_number.plot().kinds[0] == "lines"
    assert by_number.plot(kind="points").kind == "points"
    assert len(by_ward.plot(ax=plots.axes()).patches) == 4
    lines = by_number.plot(ax=plots.axes())
    assert not lines.patches
    assert lines.get_xlabel().splitlines()[0] == "n"
    bounded = "bounded: at most 10 rows in each of 4 groups of one id; what that leaves out is not in the ±"
    assert bounded in lines.get_xlabel().replace("\n", " ")
    by_ward.plot().save(tmp_path / "wards.svg")
    drawn = ET.fromstring((tmp_path / "wards.svg").read_text("utf-8"))
    lowest = [t.text or "" for t in drawn.iter() if t.tag.endswith("text")][-2:]
    assert " ".join(lowest) == bounded
    for html in (by_ward.plot().html(), by_ward._repr_html_()):
        assert html.count(bounded) == 1  # under the picture, not in it too
    assert list(lines.lines[0].get_xdata()) == list(range(101))
    assert not by_ward.plot(kind="points", ax=plots.axes()).patches
    for ax in (None, plots.axes()):
        with pytest.raises(hb.ParameterError, match="allowed"):
            by_ward.plot(kind="pie", ax=ax)


def test_lines_are_drawn_in_order_and_places_that_are_null_left_out() -> None:
    ax = whiskers([3, None, 1], [1, 2, 3], [0, 1, 2], [2, 3, 4], kind="lines", title="", xlabel="", ylabel="")
    assert list(ax.lines[0].get_xdata()) == [1, 3]


def test_draws_are_other_answers_of_the_known_noise() -> None:
    """10,000 draws of scale 3: mean and deviation within 6 standard errors (false alarm below 1e-8), fixed bits."""
    with session(epsilon=1, bits=SeededBits(4)) as s:
        r = s.sql("SELECT ward, COUNT(DISTINCT id) AS c FROM visits GROUP BY ward", epsilon=1)
    drawn = r.error.draws(10_000)
    scale = float(4)  # four groups for one unit, at epsilon 1
    assert drawn["c"].shape == (10_000, 4)
    assert drawn["ward"].tolist() == ["A", "B", "C", None]
    noise = drawn["c"] - np.array(r.to_dict()["c"])
    assert abs(noise.mean()) < 6 * math.sqrt(2) * scale / math.sqrt(noise.size)
    assert abs(noise.std() / (math.sqrt(2) * scale) - 1) < 6 * 1.2 / math.sqrt(noise.size)
    with pytest.raises(hb.ParameterError, match="draws"):
        r.error.draws(0)


def test_the_columns_of_a_draw_belong_together() -> None:
    with session(epsilon=1, bits=SeededBits(4)) as s:
        r = s.sql("SELECT COUNT(*) AS c, 2 * COUNT(*) AS t, SUM(n) / COUNT(*) AS m, SUM(n) AS s FROM visits", epsilon=1)
    drawn = r.error.draws(50)
    assert (drawn["t"] == 2 * drawn["c"]).all()
    assert np.allclose(drawn["m"], drawn["s"] / drawn["c"], equal_nan=True) or (drawn["c"] == 0).any()


def test_columns_compute_with_their_error() -> None:
    with session(epsilon=9, bits=SeededBits(5)) as s:
        r = s.sql("SELECT ward, COUNT(*) AS c, SUM(n) AS s FROM visits GROUP BY ward", epsilon=1)
        other = s.sql("SELECT ward, COUNT(*) AS u FROM visits WHERE n > 0 GROUP BY ward", epsilon=0.5)
        total = s.sql("SELECT COUNT(*) AS c FROM visits", epsilon=1)
    c = r["c"]
    low, high = c.interval(0.9)
    table = r.intervals(0.9).to_pydict()
    assert (low.tolist(), high.tolist()) == (table["c_low"], table["c_high"])
    assert ((c - c).half_width() == 0).all()
    assert np.allclose((3 * c + 1).values, 3 * c.values + 1)
    wide = (c - other["u"]).half_width(0.95)
    assert (wide > 1.1 * c.half_width(0.95)).all()
    ratio = r["s"] / c
    assert np.allclose(ratio.values, r["s"].values / c.values)
    share = 100 * c / total["c"]
    assert len(share) == 4
    assert str(share).startswith("((100 * c) / c): ")
    assert ((-c).values == -c.values).all()
    assert ((1 / c).values == 1 / c.values).all()


def test_columns_that_do_not_meet_are_refused() -> None:
    with session(epsilon=9) as s:
        question = "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward"
        r, again = s.sql(question, epsilon=1), s.sql(question, epsilon=1)
        turned = s.sql("SELECT ward, COUNT(*) AS d FROM visits WHERE n > 0 GROUP BY ward ORDER BY ward DESC", epsilon=1)
    with pytest.raises(hb.ParameterError, match="same draw"):
        r["c"] - again["c"]
    with pytest.raises(hb.ParameterError, match="the rows differ"):
        r["c"] / turned["d"]
    with pytest.raises(hb.ParameterError, match="not a column of numbers"):
        r["ward"]
    with pytest.raises(TypeError):
        r["c"] + "1"  # type: ignore[operator]


def test_the_interval_of_a_ratio_of_columns_covers_the_truth() -> None:
    """1,000 ratios at the truth 2: 95 % +- 3.5 % (five standard errors; false alarm 6e-7 per side), fixed bits."""
    rng = np.random.Generator(np.random.PCG64(7))
    inside = 0
    for _ in range(1000):
        a, b = 2000 + rng.laplace(0, 20), 1000 + rng.laplace(0, 20)
        top = Column("a", np.array([a]), a - rng.laplace(0, 20, (1000, 1)), ((),))
        low, high = (top / Column("b", np.array([b]), b - rng.laplace(0, 20, (1000, 1)), ((),))).interval(0.95)
        inside += bool(low[0] <= 2 <= high[0])
    assert 915 <= inside <= 985


OUTER = "SELECT ward, c, c / SUM(c) OVER () AS share FROM (SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward) AS q"


def test_an_outer_part_beyond_rows_has_intervals_too() -> None:
    with session(epsilon=99, bits=SeededBits(6)) as s:
        r = s.sql(OUTER + " ORDER BY c DESC", epsilon=50)
    table = r.intervals(0.95).to_pydict()
    assert list(table) == ["ward", "c", "c_low", "c_high", "share", "share_low", "share_high"]
    for name in ("c", "share"):
        for low, value, high in zip(table[f"{name}_low"], table[name], table[f"{name}_high"], strict=True):
            assert low < value < high
    assert sum(table["share"]) == pytest.approx(1)
    assert r.error.draws(20)["share"].shape == (20, 4)


def test_which_columns_are_noisy_is_read_from_the_statement() -> None:
    text = 'SELECT "r"."k0" AS "a0", "r"."a0" + 1 AS "x" FROM "released0" AS "r"'
    assert noisy_outputs(sqlglot.parse_one(text, read="duckdb")) == [False, True]


def test_a_notebook_shows_a_table_and_a_picture_without_scripts() -> None:
    evil = "<script>alert(1)</script>"
    wards: Any = {**visits().columns, "ward": hb.one_of("A", evil)}
    with session(epsilon=1, visits=visits(columns=wards)) as s:
        shown = s.sql("SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward", epsilon=1)._repr_html_()
    assert "<svg" in shown
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert not re.search(r"\son\w+=|href=|src=", shown)


def test_null_is_a_gap_in_every_picture_of_an_answer() -> None:
    """The growth from one group to the next: the first has none, and 0 would be a lie."""
    with session(epsilon=9, bits=SeededBits(5)) as s:
        r = s.sql(
            "SELECT n, c / NULLIF(LAG(c) OVER (ORDER BY n), 0) AS growth FROM (SELECT n, COUNT(*) AS c FROM visits "
            "WHERE n < 4 GROUP BY n) ORDER BY n",
            epsilon=8,
            keys={"n": [0, 1, 2, 3]},
        )
        assert r.rows()[0][1] is None
        for kind in ("bars", "lines", "points"):
            drawn = r.plot("growth", kind=kind, ax=plots.axes())
            line = drawn.containers[-1].lines[0]
            assert np.isnan(np.asarray(line.get_ydata(), float)).tolist() == [True, False, False, False]
        shown = r._repr_html_()
        assert r.plot("growth", kind="bars").svg().count("<rect") == 3
    assert shown.count("<svg") == 1


def test_a_release_is_not_pickled() -> None:
    with session(epsilon=1) as s:
        r = s.sql("SELECT COUNT(*) FROM visits", epsilon=1)
    with pytest.raises(hb.PolicyError, match="to_arrow"):
        pickle.dumps(r)


def test_refining_combines_both_answers() -> None:
    with session(epsilon=9, bits=SeededBits(8)) as s:
        r = s.sql("SELECT ward, COUNT(*) AS c, AVG(age) AS a FROM visits GROUP BY ward", epsilon=1)
        better = r.refine(2)
        assert s.remaining == 6
    assert better.cost == 2
    assert better.error.half_widths()["c"][0] < r.error.half_widths()["c"][0] / 2
    with pytest.raises(hb.QueryError, match="cannot be refined"):
        better.refine(1)


def test_an_exact_answer_has_no_error_bars() -> None:
    wards = hb.public(pa.table({"ward": ["A", "B"], "beds": [4, 25]}))
    with session(epsilon=1, visits=visits(), wards=wards) as s:
        r = s.sql("SELECT ward, beds FROM wards ORDER BY beds", epsilon=1)
    assert r.rows() == [("A", 4), ("B", 25)]
    assert r.intervals().column_names == ["ward", "beds"]
    assert (r["beds"] * 2).values.tolist() == [8, 50]
    assert "exact" in r._repr_html_()
    assert r.error.draws(3)["beds"].tolist() == [4, 25]


def test_names_that_a_release_had_lead_to_its_words_its_error_and_its_refining() -> None:
    with session() as s:
        answer = s.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    new = {"text_rows": answer.text.rows, "half_widths": answer.error.half_widths, "draws": answer.error.draws}
    for name, method in (new | {"check_refine": answer.refine.check}).items():
        with pytest.warns(DeprecationWarning, match=rf"Release\.{name} is now Release\.(text|error|refine)\.\w+;"):
            assert getattr(answer, name).__name__ == method.__name__
    for name in ("bounded", "notes", "remarks"):
        with pytest.warns(DeprecationWarning, match=rf"Release\.{name} is now Release\.text\.{name};"):
            assert getattr(answer, name) == getattr(answer.text, name)
    public = {name for name in dir(answer) if not name.startswith("_")}
    assert len(public) <= 20
    assert {"text", "error", "refine", "intervals", "rows"} <= public
    exact = hb.Release(answer.cost, False, "", {}, _exact=answer.to_arrow())
    for ask in (exact.refine, exact.refine.check):
        with pytest.raises(hb.QueryError, match="cannot be refined"):
            ask(1)
    with pytest.raises(hb.ParameterError, match="refine: 'epsilom' is not an argument"):
        answer.refine(epsilom=1)  # type: ignore[call-arg]
