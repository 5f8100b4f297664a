"""Rows as codes, residuals and sums: exact, and of one row nothing but that row's own."""

from __future__ import annotations

import hashlib
import itertools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.learning import exact
from hubbub.learning.exact import HEAVIEST, SCALE, Coded, exponential, kept, on_grid, sigmoid, softmax
from hubbub.learning.features import ONE, Categories, Design, Numbers, column_of
from hubbub.learning.logistic import binary_residual, softmax_residual

RNG = np.random.default_rng(5)


_ENDS = tuple(map(Fraction, (0, 18, 65, 100)))


def design() -> Design:
    return Design(
        {
            "age": Numbers(Fraction(0), Fraction(100), _ENDS, linear=True, nullable=True),
            "job": Categories(tuple("abcde")),
            "sex": Categories(("f", "m")),
            "pay": Numbers(Fraction(-1), Fraction(7), linear=True),
        }
    )


def rows(n: int, *, classes: int = 2, weights: bool = False, threads: int = 2) -> Coded:
    d = design()
    codes = [RNG.integers(0, c.size, n) for c in d.columns.values()]
    weight = RNG.integers(0, HEAVIEST + 1, n) if weights else None
    return Coded(d, codes, RNG.integers(0, classes, n), weight, threads=threads)


def taken(whole: Coded, places: Any, threads: int) -> Coded:
    return Coded(whole.design, [c[places] for c in whole.codes], whole.label[places], threads=threads)


def dense(r: Coded) -> Any:
    """The features, by another way: of every row by itself."""
    columns = list(r.design.columns.values())
    return np.array(
        [
            [ONE, *itertools.chain(*(c.features[k] for c, k in zip(columns, row, strict=True)))]
            for row in zip(*r.codes, strict=True)
        ]
    )


def test_the_residual_of_a_row_depends_on_that_row_alone() -> None:
    """Appended, prepended, shuffled rows and 1 to 8 threads leave the residuals of others as they were, bit for bit.

    The same with a product of float matrices changes some of them.
    """
    whole = rows(3 * (1 << 10) + 7)
    weights = on_grid(RNG.normal(size=whole.design.width))[None]
    n = len(whole.label)
    alone = binary_residual(whole.scores(weights), whole.label)[0]
    for threads in range(1, 9):
        fewer = taken(whole, np.arange(n - 5), threads)
        later = taken(whole, np.arange(3, n), threads)
        order = RNG.permutation(n)
        mixed = taken(whole, order, threads)
        for other, places in ((fewer, np.arange(n - 5)), (later, np.arange(3, n)), (mixed, order)):
            found = binary_residual(other.scores(weights), other.label)[0]
            assert (found == alone[places]).all()
        total = np.array(whole.sums(weights, binary_residual)) - np.array(fewer.sums(weights, binary_residual))
        assert (total == (dense(whole)[-5:].T @ alone[-5:])[None]).all()


def test_blocks_and_threads_change_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows(1000, classes=3, weights=True)
    weights = on_grid(RNG.normal(size=3 * whole.design.width)).reshape(3, -1)
    x = dense(whole).astype(object)
    residual = softmax_residual(whole.scores(weights), whole.label) * whole.weights
    wanted = [[int(v) for v in x.T @ r.astype(object)] for r in residual]
    for block, threads in itertools.product((7, 64, 1 << 16), (1, 3)):
        monkeypatch.setattr(exact, "_BLOCK", block)
        again = Coded(whole.design, whole.codes, whole.label, whole.weights, threads=threads)
        assert again.sums(weights, softmax_residual) == wanted
        moment = again.second_moment()
        assert (moment == (x.T * whole.weights) @ x).all()


def test_histograms_count_every_row_once_in_every_column() -> None:
    whole = rows(500, classes=3)
    found = whole.histograms(whole.label, 3)
    assert sum(h.total for h in found) == 500
    for place, codes in enumerate(whole.codes):
        size = list(whole.design.columns.values())[place].size
        for value, histogram in enumerate(found):
            held = codes[whole.label == value]
            assert histogram.of_code[place].tolist() == [int((held == k).sum()) for k in range(size)]


def test_a_sum_of_no_rows_is_nought() -> None:
    empty = rows(0)
    assert empty.sums(on_grid(np.ones(empty.design.width))[None], binary_residual) == [[0] * empty.design.width]
    assert not empty.second_moment().any()
    assert [h.total for h in empty.histograms(empty.label, 2)] == [0, 0]


def test_the_tables_are_the_same_everywhere() -> None:
    """Computed in integers: no platform's exp is asked. The second test says that they are right."""
    table = exact._sigmoids().tobytes() + exponential().tobytes()
    assert hashlib.sha256(table).hexdigest()[:16] == "9f89609394ce9206"


def test_the_tables_are_the_functions_they_name() -> None:
    scores = RNG.integers(-20 * 2**24, 20 * 2**24, 300)
    for score, found in zip(scores.tolist(), sigmoid(scores).tolist(), strict=True):
        assert abs(found - SCALE / (1 + mpmath.exp(-mpmath.mpf(score) / 2**24))) < 4
    many = RNG.integers(-8 * 2**24, 8 * 2**24, (4, 200))
    true = np.exp(many / 2**24)
    assert np.abs(softmax(many) / SCALE - true / true.sum(axis=0)).max() < 1e-5


def test_no_row_moves_a_gradient_further_than_is_charged() -> None:
    """Of every row: |residual|^2 <= 2^40 (binary), 2 2^40 (softmax), and |features|^2 <= N; both bounds are reached."""
    far = 1 << 52
    ends = np.array([-far, -(1 << 28), -1, 0, 1, 1 << 28, far])
    for label in (0, 1):
        found = binary_residual(ends[None], np.full(len(ends), label))
        assert np.abs(found).max() <= SCALE
    for classes in (2, 3, 5):
        scores = RNG.choice(ends, (classes, 400))
        label = RNG.integers(0, classes, 400)
        found = softmax_residual(scores, label)
        squared = (found.astype(object) ** 2).sum(axis=0)
        assert max(squared) <= 2 * SCALE**2
        assert max(squared) > 1.99 * SCALE**2
        assert (found.sum(axis=0) == 0).all()
    d = design()
    lengths = (dense(rows(2000)).astype(object) ** 2).sum(axis=1)
    assert max(lengths) <= d.norm2
    every = [max((int(f @ f) for f in c.features), default=0) for c in d.columns.values()]
    assert d.norm2 == ONE**2 + sum(every)


def test_scores_stay_within_what_is_exact() -> None:
    """The largest weights on the most features: below 2^52, and computed without overflow."""
    d = Design({f"c{i}": Categories(("x",)) for i in range(1000)})
    r = Coded(d, [np.zeros(3, np.int64)] * 1000, np.zeros(3, np.int64))
    found = r.scores(on_grid(np.full(d.width, 1e300))[None])
    assert found.tolist() == [[1001 * 2**8 * 2**32] * 3]
    assert 2**12 * 2**8 * 2**32 == 2**52


def test_numbers_are_read_as_declared() -> None:
    column = Numbers(Fraction(0), Fraction(10), tuple(map(Fraction, (0, 5, 10))), linear=True, nullable=True)
    values = pa.array([-3.0, 0.0, 4.999, 5.0, 10.0, 1e300, None, float("nan"), float("inf"), float("-inf")])
    features = column.features[column.codes(values)].tolist()
    left, right, missing = [ONE, 0, 0], [0, ONE, 0], [0, 0, ONE]
    assert [f[1:] for f in features] == [left, left, left, right, right, right, missing, missing, right, left]
    assert [f[0] for f in features] == [-256, -256, 0, 0, 256, 256, 0, 0, 256, -256]
    for kind in (pa.int64(), pa.float32(), pa.decimal128(21, 2)):
        again = column.codes(pa.array([0, 5, 10, None]).cast(kind))
        assert column.features[again].tolist() == [features[i] for i in (1, 3, 4, 6)]
    assert (column.codes(pa.array(["4", "x"])) == column.size - 1).all()


def test_a_value_that_is_not_declared_says_nothing() -> None:
    column = column_of("c", hb.one_of("a", "b"), linear=True, bins=None)
    codes = column.codes(pa.array(["b", "zz", None, "a"]))
    assert column.features[codes].tolist() == [[0, ONE], [0, 0], [0, 0], [ONE, 0]]
    other = column_of("c", hb.one_of("a", other="rest"), linear=True, bins=None)
    assert other.features[other.codes(pa.array(["a", "zz"]))].tolist() == [[ONE, 0], [0, ONE]]
    null = column_of("c", hb.one_of("a", None), linear=True, bins=None)
    assert null.features[null.codes(pa.array([None, "zz"]))].tolist() == [[0, ONE], [0, 0]]


def test_which_rows_a_unit_keeps_depends_on_its_own_alone() -> None:
    units = RNG.integers(-1, 40, 400)
    keys = [RNG.integers(0, 3, 400), RNG.integers(0, 9, 400)]
    found = kept(keys, units, 3)
    owners, counts = np.unique(units[found], return_counts=True)
    assert owners.min() >= 0
    assert counts.max() == 3
    order = RNG.permutation(400)
    mixed = kept([k[order] for k in keys], units[order], 3)

    def rows_of(places: Any, ks: Any, us: Any) -> list[Any]:
        return sorted(zip(us[places].tolist(), *(k[places].tolist() for k in ks), strict=True))

    assert rows_of(mixed, [k[order] for k in keys], units[order]) == rows_of(found, keys, units)
    without = units != 7
    fewer = kept([k[without] for k in keys], units[without], 3)
    others = [row for row in rows_of(found, keys, units) if row[0] != 7]
    assert rows_of(fewer, [k[without] for k in keys], units[without]) == others


def test_sums_beyond_64_bits_are_gathered_exactly() -> None:
    """The largest sums of either sign, of so many codes that a product of 64 bits would not hold them."""
    column = Numbers(Fraction(0), Fraction(1), tuple(Fraction(k, 40) for k in range(41)), linear=True)
    d = Design({"x": column, "sex": Categories(("f", "m"))})
    rng = np.random.default_rng(6)
    for ends in ((-(2**63), 2**63 - 1), (2**63 - 9, 2**63 - 1), (-(2**63), -(2**63) + 9), (-9, 9)):
        sums = [rng.integers(*ends, c.size, endpoint=True) for c in d.columns.values()]
        by_hand = [ONE * ends[0]]
        for c, of_code in zip(d.columns.values(), sums, strict=True):
            held = of_code.tolist()
            by_hand += [sum(f * v for f, v in zip(feature, held, strict=True)) for feature in c.features.T.tolist()]
        assert d.gathered(ends[0], sums) == by_hand
