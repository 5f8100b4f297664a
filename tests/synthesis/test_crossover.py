"""The crossover of Q6: noise for few queries, synthetic data for many, and the planner below them all."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.queries import Thresholds
from hubbub.synthesis.crossover import observe, promises
from seeded import SeededBits

MANY = [10**i for i in range(0, 40, 2)]


def test_q6_the_planner_is_the_lower_envelope_and_every_way_has_its_place() -> None:
    both = promises(n=10_000, universe=2**10, queries=MANY, epsilon=1, delta="1e-9")
    pure = promises(n=10_000, universe=2**10, queries=MANY, epsilon=1)
    for found in (both, pure):
        for i, least in enumerate(found.planner):
            assert least == min(values[i] for values in found.errors.values())
        assert list(found.planner) == sorted(found.planner)
    assert [after for _, _, after in both.crossings()] == ["gaussian", "multiplicative weights", "small database"]
    assert both.picked[0] == "laplace"
    assert pure.crossings() == ((10_000, "laplace", "small database"),)
    assert "gaussian" not in pure.errors


def test_q6_promises_are_kept_on_a_table_and_the_planner_picks_what_is_seen_to_be_good() -> None:
    """Each promise fails with probability at most 1e-6; fixed bits."""
    rows = np.minimum(15, (SeededBits(1).u64(20_000) / 2.0**60).astype(np.int64) ** 2 // 16)
    seen = observe(Thresholds(16), rows, epsilon=1, delta="1e-6", small_rows=6, beta="1e-6", bits=SeededBits(2))
    assert set(seen) == {"laplace", "gaussian", "multiplicative weights", "small database"}
    for observed, promised in seen.values():
        assert observed <= promised
    picked = promises(n=20_000, universe=16, queries=[16], epsilon=1, delta="1e-6").picked[0]
    assert seen[picked][0] <= 3 * min(observed for observed, _ in seen.values())


def test_q6_synthetic_data_beats_noise_on_many_queries_where_it_is_seen() -> None:
    """Ranges over 256 values at little budget: noise grows with their number, the histogram's error does not."""
    from hubbub.queries import Ranges

    rows = np.minimum(255, (SeededBits(3).u64(3_000) / 2.0**64 * 60).astype(np.int64) ** 2 // 14)
    seen = observe(Ranges(256), rows, epsilon="0.2", delta="1e-6", bits=SeededBits(4))
    assert seen["multiplicative weights"][0] < 0.5 * seen["gaussian"][0] < seen["laplace"][0]
    assert "small database" not in seen


def test_a_picture_has_a_line_for_each_way_and_the_planner() -> None:
    pytest.importorskip("matplotlib")
    drawn = promises(n=10_000, universe=64, queries=[1, 100, 10_000], epsilon=1, delta="1e-9").draw()
    labels = [line.get_label() for line in drawn.get_lines()]
    assert labels == ["laplace", "gaussian", "small database", "multiplicative weights", "planner"]


def test_bad_input_is_refused_in_words() -> None:
    for queries in ([], [3, 2], [1, 1]):
        with pytest.raises(ParameterError, match="rising order"):
            promises(n=10, universe=4, queries=queries, epsilon=1)
    with pytest.raises(ParameterError, match="queries = 0"):
        promises(n=10, universe=4, queries=[0], epsilon=1)
