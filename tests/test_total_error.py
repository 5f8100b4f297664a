"""Intervals that hold the total: at the largest bound that was measured, or by a statement the truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.session import Session
from seeded import SeededBits
from test_found_bounds import COUNT, SUM, opened, people


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def skewed() -> pa.Table:
    """3,000 units of up to 8 rows, five of 32, one of 300."""
    rows = people().to_pylist()
    rows += [{"id": 9000 + i, "ward": "A", "x": 2.5, "n": 1} for i in range(5) for _ in range(32)]
    rows += [{"id": 9900, "ward": "A", "x": 2.5, "n": 1}] * 300
    return pa.Table.from_pylist(rows)


def ends(r: Any, name: str, level: float = 0.95) -> tuple[float, float]:
    row = r.intervals(level).to_pylist()[0]
    return row[f"{name}_low"], row[f"{name}_high"]


def test_the_interval_holds_the_total_at_the_largest_bound_measured_and_it_is_printed() -> None:
    table, missed = skewed(), 0
    for seed in range(6):
        with opened(table, bits=SeededBits(f"total {seed}")) as s:
            r = s.sql(COUNT, epsilon=1, max_rows="auto", total_error=True)
            plain = s.sql(COUNT, epsilon=1, max_rows="auto")
            assert not plain.charged  # the same draw, read otherwise
        bound = int(r.receipt["found"][0]["bound"])
        low, high = ends(r, "n")
        missed += not low <= 11250 + 5 * min(32, 4 * bound) + min(300, 4 * bound) <= high
        assert f"up to {4 * bound} rows of one id" in r.text.bounded[0]
        assert high > ends(plain, "n")[1]
        assert low < ends(plain, "n")[0]  # the noise at 97.5 %
    assert missed <= 2


def test_by_a_statement_it_holds_the_truth_and_says_whose_it_is() -> None:
    with opened(skewed()) as s:
        r = s.sql(COUNT, epsilon=1, max_rows="auto", total_error=True, rows_per_unit_at_most=300)
        same = s.sql(COUNT, epsilon=1, max_rows="auto", total_error=True, rows_per_unit_at_most=1)
    low, high = ends(r, "n")
    assert low <= 11250 + 160 + 300 <= high
    assert "the analyst stated that no id has more" in r.text.bounded[0]
    assert ends(same, "n")[1] < high  # nothing beyond the bound: noise alone
    assert hb.Release.from_wire(r.to_wire()).text.bounded == r.text.bounded


def test_by_the_stewards_statement_it_holds_the_truth_and_is_printed_as_hers() -> None:
    options: dict[str, Any] = {"epsilon": 1, "max_rows": "auto", "total_error": True}
    with opened(skewed(), rows_per_unit_at_most=300) as s:
        r = s.sql(COUNT, **options)
        tighter = s.sql(COUNT, **options, rows_per_unit_at_most=299)
        looser = s.sql(COUNT, **options, rows_per_unit_at_most=301)
        condition = s.sql("SELECT COUNT(*) AS n FROM t WHERE x > 2", **options)
        twice = s.sql("SELECT COUNT(*) AS n FROM (SELECT id, x FROM t UNION ALL SELECT id, x FROM t)", **options)
    low, high = ends(r, "n")
    assert low <= 11250 + 160 + 300 <= high
    told = "up to 300 rows of one id: the steward stated that no id has more"
    assert r.text.bounded[0].endswith(told)
    assert (looser.text.bounded, ends(looser, "n")) == (r.text.bounded, (low, high))
    assert tighter.text.bounded[0].endswith("up to 299 rows of one id: the analyst stated that no id has more")
    assert condition.text.bounded[0].endswith(told)
    assert "stated" not in twice.text.bounded[0]  # there each row stands twice, and the statement is about the table


def test_a_policy_states_it_and_the_draw_is_the_same(tmp_path: Path) -> None:
    pq.write_table(skewed(), tmp_path / "t.parquet")
    policy = tmp_path / "hubbub.toml"
    text = """
[ledger]
file = "l.db"
[budget]
epsilon = 9
[tables.t]
source = "t.parquet"
unit = "id"
"""
    policy.write_text(text)
    options: dict[str, Any] = {"epsilon": 1, "max_rows": "auto", "total_error": True}
    with Session.from_policy(policy, create_ledger=True) as s:
        before = s.sql(COUNT, **options)
    policy.write_text(text + "rows_per_unit_at_most = 300\n")
    with Session.from_policy(policy) as s:
        after = s.sql(COUNT, **options)
    assert (after.charged, after.rows()) == (False, before.rows())
    assert "the steward stated that no id has more" in after.text.bounded[0]
    assert "stated" not in before.text.bounded[0]
    for wrong in ("0", "true", '"auto"'):
        policy.write_text(f"{text}rows_per_unit_at_most = {wrong}\n")
        with pytest.raises(hb.PolicyError, match="rows_per_unit_at_most"):
            Session.from_policy(policy)
    with pytest.raises(hb.PolicyError, match="rows_per_unit_at_most=0"):
        hb.table(skewed(), unit="id", rows_per_unit_at_most=0)


def test_sums_are_held_too() -> None:
    with opened(skewed()) as s:
        r = s.sql(SUM, epsilon=2, total_error=True)
        ranged = s.sql("SELECT SUM(n) AS s FROM t", epsilon=2, max_rows="auto", total_error=True,
                       rows_per_unit_at_most=300)  # fmt: skip
    bound = float(r.receipt["found"][0]["bound"])
    low, high = ends(r, "s")
    assert low <= 2.5 * 11250 + 5 * min(80, 4 * bound) + min(750, 4 * bound) <= high
    low, high = ends(ranged, "s")
    assert low <= sum(n for n in skewed()["n"].to_pylist()) <= high


@pytest.mark.parametrize(
    ("sql", "options", "words"),
    [
        (COUNT, {"max_total": 3}, 'max_rows="auto"'),
        ("SELECT AVG(n) AS a FROM t", {"max_rows": "auto"}, "COUNT\\(x\\) and SUM\\(x\\) as they are"),
        ("SELECT COUNT(*) / 2 AS h FROM t", {"max_rows": "auto"}, "'h' is another"),
        ("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", {"max_rows": "auto", "max_groups": 1}, "max_groups"),
        (COUNT, {"max_rows": "auto", "total_error": False, "rows_per_unit_at_most": 9}, "goes with total_error"),
        (COUNT, {"max_rows": "auto", "rows_per_unit_at_most": 0}, "rows_per_unit_at_most=0"),
    ],
)
def test_what_cannot_be_held_is_refused_with_the_way_out(sql: str, options: dict[str, Any], words: str) -> None:
    with opened() as s:
        with pytest.raises(hb.HubbubError, match=words):
            s.sql(sql, **{"epsilon": 1, "total_error": True, **options})
        assert s.remaining == 50


def test_with_all_groups_each_group_is_held() -> None:
    with opened(skewed()) as s:
        r = s.sql("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", epsilon=5, max_rows="auto", max_groups=3,
                  total_error=True, rows_per_unit_at_most=300)  # fmt: skip
    truth = {w: skewed()["ward"].to_pylist().count(w) for w in "ABC"}
    for row in r.intervals().to_pylist():
        assert row["n_low"] <= truth[row["ward"]] <= row["n_high"]
