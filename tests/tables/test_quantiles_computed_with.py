"""What is computed from quantiles: it may be anything that their intervals allow together."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk

NUMBERS = range(600)
ROWS = pa.table({"id": NUMBERS, "x": [float(i * 7 % 11) for i in NUMBERS], "n": [i % 8 for i in NUMBERS]})
COLUMNS = {"x": hb.between(0, 10), "n": hb.between(0, 7)}


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk({"t": hb.table(ROWS, unit="id", max_groups=1, max_rows=1, max_total=1, columns=COLUMNS)})


@pytest.mark.parametrize("epsilon", ["0.2", "2"])
def test_differences_of_quantiles_reach_as_far_as_both_brackets(desk: Desk, epsilon: str) -> None:
    """Of one column, of two, and of one alone: a true maximum is often the end of its bracket."""
    (row,) = (
        desk.ask(
            "SELECT MIN(x) AS low, MAX(x) AS high, MEDIAN(n) AS middle, MAX(x) - MIN(x) AS width, "
            "MAX(x) + MEDIAN(n) AS total, 2 * MAX(x) AS twice, MAX(x) - MIN(x) - MEDIAN(n) AS three FROM t",
            epsilon,
        )
        .intervals(0.95)
        .to_pylist()
    )
    ends = {name: (row[f"{name}_low"], row[f"{name}_high"]) for name in ("low", "high", "middle", "width", "total")}
    ends |= {name: (row[f"{name}_low"], row[f"{name}_high"]) for name in ("twice", "three")}
    (a, b), (c, d), (e, f) = ends["low"], ends["high"], ends["middle"]
    allowed = {"width": (c - b, d - a), "total": (c + e, d + f), "twice": (2 * c, 2 * d)}
    allowed["three"] = (c - b - f, d - a - e)
    for name, (least, most) in allowed.items():
        assert ends[name][0] <= least + 1e-9, name
        assert ends[name][1] >= most - 1e-9, name
