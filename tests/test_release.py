"""A release: what it shows, in which types, and what its error bars hold."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.release import text_table
from people import HUGE, session
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
    ]


def test_a_text_table_is_aligned() -> None:
    assert text_table(("a", "bb"), [("ccc", "d")]) == "  a  bb\n---  --\nccc   d"


def test_a_plot_shows_one_column_with_whiskers() -> None:
    with session(epsilon=1) as s:
        r = s.sql(SQL, epsilon=1)
    axes = r.plot("a")
    assert "a" in axes.get_title()
    with pytest.raises(hb.ParameterError, match="no estimate"):
        r.plot("ward")
