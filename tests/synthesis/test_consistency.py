"""Post-processing: agreement, no negative cells, whole numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.synthesis.consistency import agreeing, disagreement, nonnegative, nonnegative_agreeing, whole_numbers
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.marginals import all_marginals, plan_marginals
from seeded import SeededBits

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def noisy(seed: int, scale: float = 5.0) -> dict[tuple[str, ...], Any]:
    """Tables of the same 200 rows with noise of their own, one of them with its axes the other way round."""
    words = SeededBits(seed).u64(600).reshape(200, 3) % np.array(DOMAIN.sizes, np.uint64)
    data, bits = words.astype(np.int64), SeededBits(seed + 1)
    noise = lambda shape: scale * (bits.u64(int(np.prod(shape))).reshape(shape) / 2.0**63 - 1)  # noqa: E731
    return {m: DOMAIN.count(data, m) + noise(DOMAIN.shape(m)) for m in [("a", "b"), ("c", "b"), ("c",), ("a", "c")]}


def test_agreeing_tables_are_the_weighted_least_squares_over_all_histograms() -> None:
    """Against dense least squares in the 24 cells of the universe."""
    tables, universe = noisy(1), np.array(list(itertools.product(*map(range, DOMAIN.sizes))))
    variances = dict(zip(tables, (1.0, 4.0, 0.5, 9.0), strict=True))
    rows = {m: np.eye(DOMAIN.cells(m))[DOMAIN.index(universe, m)].T for m in tables}
    matrix = np.concatenate([rows[m] / np.sqrt(variances[m]) for m in tables])
    target = np.concatenate([tables[m].ravel() / np.sqrt(variances[m]) for m in tables])
    histogram = np.linalg.lstsq(matrix, target, rcond=None)[0]
    found = agreeing(DOMAIN, tables, variances=variances)
    for m in tables:
        np.testing.assert_allclose(found[m].ravel(), rows[m] @ histogram, atol=1e-9)
    assert disagreement(DOMAIN, found) < 1e-9
    assert disagreement(DOMAIN, tables) > 1


def test_agreement_brings_tables_nearer_to_the_truth_and_leaves_agreeing_ones_alone() -> None:
    tables, truth = noisy(2), noisy(2, scale=0.0)
    found = agreeing(DOMAIN, tables)
    before = sum(((tables[m] - truth[m]) ** 2).sum() for m in tables)
    assert sum(((found[m] - truth[m]) ** 2).sum() for m in tables) < 0.8 * before
    for m, table in agreeing(DOMAIN, found).items():
        np.testing.assert_allclose(table, found[m], atol=1e-9)


def test_the_nearest_nonnegative_table_meets_its_optimality_conditions() -> None:
    for seed in range(20):
        table = SeededBits(seed).u64(12).reshape(3, 4) / 2.0**62 - 2
        near = nonnegative(table, total=3.0)
        assert near.min() >= 0
        assert near.sum() == pytest.approx(3.0)
        # x - y is one constant where y > 0, and not above it elsewhere.
        cut = (table - near)[near > 0]
        assert np.ptp(cut) < 1e-12
        assert (table[near == 0] <= cut.min() + 1e-12).all()
    assert nonnegative([[-1.0, 2.0]]).tolist() == [[0.0, 2.0]]
    assert nonnegative([-3.0, -1.0], total=0.0).tolist() == [0.0, 0.0]


def test_both_at_once_is_nearer_than_clipping_and_agrees() -> None:
    tables, truth = noisy(3, scale=20.0), noisy(3, scale=0.0)
    found = nonnegative_agreeing(DOMAIN, tables, total=200.0)
    assert disagreement(DOMAIN, found) < 1e-2
    for table in found.values():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(200.0)
    before = sum(((np.maximum(tables[m], 0) - truth[m]) ** 2).sum() for m in tables)
    assert sum(((found[m] - truth[m]) ** 2).sum() for m in tables) < before


def test_tables_of_a_release_stay_marginals_of_each_other_when_made_nonnegative() -> None:
    plan = plan_marginals(DOMAIN, all_marginals(DOMAIN, 2), rho="0.01")
    release = plan.release(np.zeros((40, 3), np.int64), bits=SeededBits(4))
    tables = {m: release.table(m) for m in plan.marginals}
    assert min(t.min() for t in tables.values()) < 0
    found = nonnegative_agreeing(DOMAIN, tables)
    assert disagreement(DOMAIN, found) < 1e-2
    assert min(t.min() for t in found.values()) >= 0


def test_whole_numbers_move_by_less_than_one_and_keep_the_sum() -> None:
    for seed in range(20):
        table = nonnegative(SeededBits(seed).u64(50) / 2.0**60 - 3, total=77.0)
        whole = whole_numbers(table)
        assert whole.sum() == 77
        assert np.abs(whole - table).max() < 1
        assert whole.min() >= 0
    assert whole_numbers([0.2, 0.2], total=3).tolist() == [2, 1]
    assert whole_numbers([-5.0]).tolist() == [0]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: nonnegative([float("nan")]), "finite"),
        (lambda: nonnegative([1.0], total=-1.0), "total"),
        (lambda: nonnegative([]), "at least one cell"),
        (lambda: agreeing(DOMAIN, {}), "no tables"),
        (lambda: agreeing(DOMAIN, {("a",): [1.0]}), "the domain says"),
        (lambda: agreeing(DOMAIN, {("x",): [1.0]}), "'x' was asked"),
        (lambda: agreeing(DOMAIN, {("a",): [1.0, 1.0]}, variances={("a",): 0.0}), "above 0"),
    ],
)
def test_bad_input_is_refused_in_words(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()
