"""The coordinates in which models are learned: how long a row is in them, and that they say what plain features say."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.learning import AdditiveModel, LinearRegression
from hubbub.learning.bases import Turned, plain_covariance, plain_mean, plain_weights, turned
from hubbub.learning.exact import SCALE, Coded, on_grid
from hubbub.learning.features import ONE, Categories, Design, Numbers, Pair
from hubbub.learning.logistic import binary_residual
from hubbub.mechanisms.recording import recording
from seeded import SeededBits


def numbers(bins: int, *, linear: bool = True, nullable: bool = False) -> Numbers:
    return Numbers(Fraction(0), Fraction(12), tuple(map(Fraction, range(bins + 1))), linear, nullable)


COLUMNS = {
    "two": Categories(("a", "b")),
    "one": Categories(("a",)),
    "many": Categories(tuple(range(600))),
    "null": Categories(("a", None, "c")),
    "bins": numbers(12),
    "bins or NULL": numbers(12, nullable=True),
    "bins alone": numbers(4, linear=False),
    "a bin": numbers(1),
    "a bin alone": numbers(1, linear=False),
    "number": Numbers(Fraction(-1), Fraction(7), linear=True),
    "two x bins or NULL": Pair(("two", "bins"), (Categories(("a", "b")), numbers(12, linear=False, nullable=True))),
    "bins x bins": Pair(("bins", "a bin"), (numbers(5, linear=False), numbers(3, linear=False))),
}


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_row_is_as_short_as_is_said(name: str, fine: bool) -> None:
    """Every code, one after another: whole numbers of 2^8 at most, in 1 - 1/K for values, 17/16 or 21/16 for bins."""
    column = COLUMNS[name]
    features = Turned.of(column, fine=fine).features
    assert features.dtype == np.int64
    assert np.abs(features).max(initial=0) <= ONE
    longest = int((features**2).sum(axis=1).max())
    if isinstance(column, Categories):
        assert longest <= ONE**2 * (1 - 1 / len(column.values)) + 2 * ONE
        assert not features[-1].any()  # an undeclared value says nothing
    elif isinstance(column, Pair):
        assert longest <= ONE**2 * 0.255
        assert not features[column.parts[1].size * 2 + 3].any() or column.names_in[0] != "two"  # neither a nor b
    elif column.edges:
        assert longest <= ONE**2 * (21 if fine else 17) // 16


@pytest.mark.parametrize("fine", [False, True])
def test_the_longest_row_is_the_one_that_is_charged(fine: bool) -> None:
    """By brute force over all rows that there can be: a gradient reaches the bound, and goes no further."""
    design = turned(Design({name: COLUMNS[name] for name in ("two", "null", "bins alone", "bins x bins")}), fine=fine)
    every = np.array(list(itertools.product(*(range(c.size) for c in design.columns.values()))))
    worst = on_grid(np.full(design.width, 1e9))[None]
    moved = 0
    for codes, label in itertools.product(every, (0, 1)):
        row = Coded(design, [codes[i : i + 1] for i in range(4)], np.array([label]))
        moved = max(moved, sum(v * v for v in row.sums(worst, binary_residual)[0]))
    assert 0.99 * SCALE**2 * design.norm2 < moved <= SCALE**2 * design.norm2


@pytest.mark.parametrize("fine", [False, True])
def test_plain_weights_give_the_same_scores(fine: bool) -> None:
    design = Design(COLUMNS)
    other = turned(design, fine=fine)
    weights = np.random.default_rng(3).normal(size=(2, other.width))
    plain = plain_weights(design, weights, fine=fine)
    assert plain.shape == (2, design.width)
    assert (plain[:, 0] == weights[:, 0]).all()
    ends = [(0, 0), *((a, b) for a, b in zip(design.starts, other.starts, strict=True))]
    for (at, beside), name in zip(ends[1:], COLUMNS, strict=True):
        column, same = COLUMNS[name], Turned.of(COLUMNS[name], fine=fine)
        exact = column.features @ plain[:, at : at + len(column.names)].T
        found = same.features @ weights[:, beside : beside + len(same.names)].T
        # The number itself is rounded to its quarter of the grid, at most a step.
        assert np.abs(exact - found).max() <= np.abs(weights).max() * (1 + 1e-9)


@pytest.mark.parametrize("rows", [200, 20_000])
@pytest.mark.parametrize("target", ["ill", "pay"])
def test_a_step_is_charged_for_the_coordinates_that_it_is_made_in(target: str, rows: int) -> None:
    """Few rows, and so many that bins have features of their own: the sensitivity is that of the longest such row."""
    columns = {"x": hb.between(0, 10), "ill": hb.one_of("no", "yes"), "pay": hb.between(0, 1)}
    held = {"x": [1.0, 9.0, None], "ill": ["no", "yes", "no"], "pay": [0.0, 1.0, 0.5]}
    model: Any = AdditiveModel(["x"], target, rows=rows, bins=16)
    if target == "pay":
        model = LinearRegression(["x"], target, bins=16, clamp=0.25, rows=rows)
    with recording() as records:
        model.fit(held, columns=columns, epsilon=1, delta="1e-6", bits=SeededBits(1))
    clamp = SCALE if target == "ill" else SCALE // 4
    design = turned(model.design_, fine=rows == 20_000)
    assert {r.sensitivity for r in records} == {clamp**2 * design.norm2}


def test_a_design_whose_fine_coordinates_are_too_many_is_learned_in_the_others() -> None:
    """3,000 bins are 3,001 features; fine they would be 6,000, and rows that were bought by then would be lost."""
    design = Design({"x": Numbers(Fraction(0), Fraction(1), tuple(Fraction(k, 3000) for k in range(3001)), True)})
    assert turned(design, fine=True).width == turned(design).width == 3001
    weights = np.random.default_rng(5).normal(size=(1, 3001))
    assert np.array_equal(plain_weights(design, weights, fine=True), plain_weights(design, weights))


def test_the_covariance_comes_back_to_the_plain_features() -> None:
    """Of rows of declared values: to the step of the grid, and no more than that for any of them."""
    rng = np.random.default_rng(4)
    n = 400
    rows = pa.table(
        {"x": rng.uniform(0, 10, n), "ward": rng.choice(["a", "b", "c"], n), "sex": rng.choice(["f", "m"], n)}
    )
    columns = {
        "x": Numbers(Fraction(0), Fraction(10), linear=True),
        "ward": Categories(("a", "b", "c")),
        "sex": Categories(("f", "m")),
    }
    design = Design(columns)
    coded = Coded(design, design.encode(rows), np.zeros(n, np.int64))

    def moments(one: Coded) -> tuple[Any, Any]:
        moment = one.second_moment() / ONE**2
        mean = moment[0, 1:] / n
        return mean, moment[1:, 1:] / n - np.outer(mean, mean)

    mean, covariance = moments(coded)
    shorter = replace(coded, design=turned(design))
    assert shorter.design.norm2 < design.norm2
    other_mean, other = moments(shorter)
    assert plain_mean(design, other_mean) == pytest.approx(mean, abs=3 / ONE)
    assert plain_covariance(design, other) == pytest.approx(covariance, abs=3 / ONE)
    # Noise does not lean on what no row of declared values does: all values of a column at once.
    noisy = plain_covariance(design, other + np.diag(rng.normal(0, 1, len(other))))
    assert noisy[1:4, 1:4].sum() == pytest.approx(0, abs=0.1)
