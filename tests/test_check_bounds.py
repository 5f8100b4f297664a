"""How much limits leave out, as a session sells it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.accounting import Composed, DiscreteLaplace, from_json
from hubbub.mechanisms.recording import recording
from seeded import SeededBits
from test_found_bounds import COUNT, opened, people

BY_WARD = "SELECT ward, COUNT(*) AS n, SUM(n) AS s FROM t GROUP BY ward"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_shares_of_units_are_those_of_the_table() -> None:
    """A quarter each has 1, 2, 4 and 8 rows; the noise is small at epsilon 20."""
    with opened() as s:
        check = s.check_bounds(COUNT, epsilon=20)
        (rows,) = check.limits
        assert (check.cost, s.remaining) == (20, 30)
        assert s.check_bounds(COUNT, epsilon=20).cost == 0
    assert rows.what == "max_rows"
    assert abs(rows.units - 3000) < 20
    beyond = {int(c.bound): c for c in rows.candidates}
    for bound, share in ((1, 0.75), (2, 0.5), (4, 0.25), (8, 0)):
        assert beyond[bound].low <= share <= beyond[bound].high
        assert beyond[bound].beyond == pytest.approx(share, abs=0.01)
    # Of 15 rows in four units 11, 8 and 4 lie beyond 1, 2 and 4: what is told is no more than that.
    for bound, left in ((1, 11 / 15), (2, 8 / 15), (4, 4 / 15)):
        assert 0 < beyond[bound].left_out <= left
    assert rows.recommended == 8
    assert "recommended: max_rows = 8" in str(check)
    assert "not known" in str(check)


def test_a_smaller_amount_recommends_a_smaller_limit() -> None:
    with opened() as s:
        much, little = (s.check_bounds(COUNT, epsilon=20, at=at).limits[0].recommended for at in ("1", "0.001"))
    assert little < much  # type: ignore[operator]


def test_groups_rows_and_sums_have_a_histogram_each_at_a_third_of_the_amount() -> None:
    with opened() as s, recording() as records:
        check = s.check_bounds(BY_WARD, epsilon=3)
        (entry,) = s.history()
    assert [limit.what for limit in check.limits] == ["max_groups", "max_rows", "sum of n"]
    assert from_json(entry.event) == Composed([DiscreteLaplace(1, 1)] * 3)
    assert [(len(r.values), r.sensitivity) for r in records] == [(41, 1)] * 3
    assert [sum(r.values) for r in records] == [3000] * 3
    groups = [min(3, 2 ** (u % 4)) for u in range(3000)]
    assert records[0].values[:4] == (0, groups.count(1), groups.count(2), groups.count(3))


def test_one_heavy_unit_moves_one_count_by_one() -> None:
    values = []
    for rows in ([], [("heavy", "A", 1.0, 1)] * 5000):
        frame = people(400).to_pylist() + [{"id": 9999, "ward": w, "x": x, "n": n} for _, w, x, n in rows]
        with opened(pa.Table.from_pylist(frame)) as s, recording() as records:
            s.check_bounds(COUNT, epsilon=1)
        values.append(records[0].values)
    assert sum(abs(a - b) for a, b in zip(*values, strict=True)) == 1


def test_what_has_no_limit_is_refused() -> None:
    with opened() as s:
        with pytest.raises(hb.QueryError, match="nothing is bounded"):
            s.check_bounds("SELECT COUNT(*) FROM (SELECT id FROM t GROUP BY id)", epsilon=1)
        with pytest.raises(hb.PolicyError):
            s.check_bounds("SELECT x, COUNT(*) FROM t GROUP BY x", epsilon=1)
        assert s.remaining == 50


def test_under_a_budget_with_delta_it_is_gaussian() -> None:
    with opened(delta=1e-6, bits=SeededBits(1)) as s:
        check = s.check_bounds(COUNT, epsilon=2)
    assert check.limits[0].recommended == 8
    assert isinstance(check.cost, Fraction)


def test_a_public_table_that_was_written_anew_is_another_question(tmp_path: Path) -> None:
    """The rows that are counted are joined with it: what was bought of the old one says nothing of the new one."""
    wards, ledger = tmp_path / "wards.csv", tmp_path / "budget.db"
    frame = pa.table({"id": [i // 3 for i in range(3000)], "ward": ["AB"[i % 2] for i in range(3000)]})
    pq.write_table(frame, tmp_path / "v.parquet")
    asked = "SELECT COUNT(*) AS n FROM v JOIN w ON v.ward = w.ward WHERE w.part = 'x'"
    costs = []
    for more in ("", "", "B,x\n"):
        wards.write_text(f"ward,part\nA,x\nB,y\n{more}")
        tables = {"v": hb.table(tmp_path / "v.parquet", unit="id", max_groups=1), "w": hb.public(wards)}
        with hb.Session(tables, budget=hb.Budget(50), ledger=ledger) as s:
            costs.append(s.check_bounds(asked, epsilon=1).cost)
    assert costs == [1, 0, 1]
