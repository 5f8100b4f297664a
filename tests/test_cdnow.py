"""The way of a question on real purchases: the errors that are predicted are the errors that come out.

CDNOW, 69,659 purchases of 23,570 customers, at epsilon 1, max_groups 3, max_rows 2: count and dollars by month.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hubbub as hb
from hubbub.answer.release import Release
from hubbub.mechanisms import Recorded, recording
from hubbub.noise import DiscreteLaplace
from people import session
from seeded import SeededBits

FILE = Path(__file__).parents[2] / "shared/data/cdnow/cdnow_transactions.csv"
SQL = "SELECT month, COUNT(*) AS purchases, SUM(dollars) AS dollars FROM sales GROUP BY month"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the shared data folder is not beside this checkout")


@pytest.fixture(scope="module")
def sales() -> Any:
    frame = pd.read_csv(FILE, dtype={"customer_id": "str"})
    frame["month"] = frame["date"] // 100
    months = [*range(199701, 199713), *range(199801, 199807)]
    return hb.table(
        frame,
        unit="customer_id",
        max_groups=3,
        max_rows=2,
        columns={"month": hb.one_of(*months), "dollars": hb.between(0, 200)},
    )


def chi_square_p(noise: np.ndarray, law: DiscreteLaplace, bins: int = 40) -> float:
    """The p-value of draws against a law, in bins of about equal probability."""
    edges = sorted({law.quantile((i + 1) / bins) for i in range(bins - 1)})
    steps = [0.0, *(float(law.cdf(e)) for e in edges), 1.0]
    seen = np.bincount(np.searchsorted(edges, noise, side="left"), minlength=len(edges) + 1)
    return float(stats.chisquare(seen, np.diff(steps) * len(noise)).pvalue)


def collect(releases: list[tuple[Release, list[Recorded]]]) -> None:
    """Spread and coverage of all cells, against the integers that were really there."""
    errors: dict[DiscreteLaplace, list[int]] = {}
    inside = {"purchases": 0, "dollars": 0}
    for release, records in releases:
        by_scale = sorted(records, key=lambda r: r.sensitivity)
        table = release.intervals(0.95).to_pydict()
        for name, record, step in zip(("purchases", "dollars"), by_scale, (1.0, 2.0**-14), strict=True):
            noise = np.subtract(record.released, record.values)
            errors.setdefault(record.distribution, []).extend(noise.tolist())
            truth = np.array(record.values) * step
            inside[name] += int(np.sum((table[f"{name}_low"] <= truth) & (truth <= table[f"{name}_high"])))
    cells = 18 * len(releases)
    for law, noise in errors.items():
        assert law.scale in (12, 12 * 200 * 2**14)  # 3 groups x 2 rows, half of epsilon 1 for each column
        assert chi_square_p(np.array(noise), law) > 1e-9
    slack = max(0.015, 6.2 * (0.05 * 0.95 / cells) ** 0.5)  # false alarm below 1e-9
    for name, count in inside.items():
        assert abs(count / cells - 0.95) <= slack, name


def draws(sales: Any, n: int) -> list[tuple[Release, list[Recorded]]]:
    found = []
    with session(epsilon=n, bits=SeededBits("cdnow"), sales=sales) as s:
        for _ in range(n):
            with recording() as records:
                found.append((s.sql(SQL, epsilon=1, fresh=True), records))
        assert s.remaining == 0
    return found


def test_errors_have_the_predicted_spread_and_intervals_cover(sales: Any) -> None:
    """n = 100 draws of 36 cells."""
    collect(draws(sales, 100))


@pytest.mark.soak
def test_errors_over_a_thousand_draws(sales: Any) -> None:
    """n = 1,000 draws of 36 cells, coverage within 1.5 %."""
    collect(draws(sales, 1_000))


def test_fresh_ledgers_and_real_bits_do_the_same(sales: Any, tmp_path: Path) -> None:
    """n = 20 draws, each in a session and a ledger of its own."""
    found = []
    for i in range(20):
        with session(epsilon=1, ledger=tmp_path / f"{i}.db", sales=sales) as s, recording() as records:
            found.append((s.sql(SQL, epsilon=1), records))
            assert s.remaining == 0
    collect(found)


def test_the_bounded_truth_is_the_same_each_time_and_below_the_whole(sales: Any) -> None:
    (_, first), (_, second) = draws(sales, 2)
    assert [r.values for r in first] == [r.values for r in second]
    frame = sales.source
    counts = min(first, key=lambda r: r.sensitivity).values
    whole = frame.groupby("month").size().tolist()
    assert all(0 < bounded <= all_ for bounded, all_ in zip(counts, whole, strict=True))
    per_unit = frame.groupby(["customer_id", "month"]).size().clip(upper=2)
    most = per_unit.groupby("customer_id").apply(lambda rows: rows.sort_values().tail(3).sum()).sum()
    assert sum(counts) <= most
