"""Rows that come as counts are released as the rows themselves would be."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.mechanisms.quantiles import QuantileMechanism, repeated
from hubbub.mechanisms.recording import recording
from seeded import SeededBits


@pytest.mark.parametrize("shares", [["1/2"], ["1/10", "1/2", "9/10", "99/100"]])
@pytest.mark.parametrize("n", [0, 1, 2_000])
def test_counted_rows_are_released_as_the_rows_are(shares: list[str], n: int) -> None:
    rows = np.random.default_rng(n).integers(0, 40, n)
    points, heights = np.unique(rows, return_counts=True)
    law = QuantileMechanism(shares=shares, lower=0, upper=60, epsilon=1, rows=2)
    for seed in range(20):
        one = law.release(rows, bits=SeededBits(seed))
        two = law.release_counted(points, heights, bits=SeededBits(seed))
        assert one.tolist() == two.tolist()
    assert list(repeated(points, heights)) == sorted(rows.tolist())


def test_an_auditor_sees_the_rows_of_counted_ones() -> None:
    law = QuantileMechanism(shares=["1/2"], lower=0, upper=9, epsilon=1)
    with recording() as records:
        law.release_counted(np.array([2, 5]), np.array([1, 3]))
    assert records[0].values == (2, 5, 5, 5)
