"""Figures of an evaluation: without noise they are those of the rows, and intervals hold them as often as is said."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.learning import CategoricalNB, LinearRegression, LogisticRegression
from hubbub.learning.evaluation import Evaluation, Evaluator
from hubbub.learning.model import Estimator
from hubbub.mechanisms.calibration import Spend
from seeded import SeededBits

COLUMNS: dict[str, Any] = {
    "dose": hb.between(0, 1),
    "gain": hb.between(0, 1),
    "sick": hb.one_of("no", "yes"),
    "kind": hb.one_of("a", "b", "c"),
}
PURE, HARDLY_ANY_NOISE = Spend(epsilon=Fraction(1, 2)), Spend(epsilon=Fraction(10**6))
GAUSSIAN = Spend(rho=Fraction(1, 8))
MOSTLY_ZERO = [Spend(epsilon=Fraction(11, 2)), Spend(rho=Fraction(5))]


def table(n: int, *, spread: float = 0.03, seed: int = 1) -> pa.Table:
    """A dose that tells the gain up to `spread`, who is sick nearly always, and the kind often."""
    rng = np.random.default_rng(seed)
    dose = rng.random(n)
    gain = np.clip(0.3 + 0.3 * dose + rng.normal(0, spread, n), 0, 1)
    sick = dose + rng.normal(0, 0.12, n) > 0.6
    kind = np.clip(np.floor(3 * dose + rng.normal(0, 0.3, n)), 0, 2).astype(int)
    return pa.table(
        {"dose": dose, "gain": gain, "sick": np.where(sick, "yes", "no"), "kind": np.array(["a", "b", "c"])[kind]}
    )


MODELS: dict[str, Estimator] = {
    "two classes": LogisticRegression(["dose"], "sick", bins=16),
    "several classes": CategoricalNB(["dose"], "kind"),
    "a number": LinearRegression(["dose"], "gain"),
}
FITTED = {
    name: model.fit(table(20_000, seed=2), columns=COLUMNS, epsilon=50, delta="1e-6", bits=SeededBits(1))
    for name, model in MODELS.items()
}


def evaluated(evaluator: Evaluator, rows: pa.Table, seed: int = 1) -> dict[str, Any]:
    """What is kept of one evaluation."""
    steps = evaluator.steps(evaluator.problem.encode(rows, None), bits=SeededBits(seed))
    try:
        while True:
            next(steps)
    except StopIteration as done:
        kept: dict[str, Any] = json.loads(json.dumps(done.value))
        return kept


def figures(found: Evaluation) -> dict[str, float]:
    """Those that apply."""
    return {name: value for name in ("accuracy", "auc", "r2", "rmse") if (value := getattr(found, name)) is not None}


def exact_figures(evaluator: Evaluator, rows: pa.Table) -> dict[str, float]:
    """Those of the counts and sums without noise."""
    exact = evaluator._exact(evaluator.problem.encode(rows, None))
    kind = "evaluation 1" if evaluator._classes else "evaluation 2"
    return figures(evaluator.read({"format": kind, "noisy": exact, "deviation": 1e-9}))


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.3])
def test_without_noise_the_error_of_a_number_is_that_of_the_rows(spread: float) -> None:
    """Squares were once rounded down to 512ths, row by row: an R squared of .91 read .96, and one of .01 read .22."""
    model, rows = FITTED["a number"], table(4000, spread=spread)
    found = Evaluator(model, HARDLY_ANY_NOISE).read(evaluated(Evaluator(model, HARDLY_ANY_NOISE), rows))
    truth, predicted = np.array(rows["gain"]), model.predict(rows)  # type: ignore[attr-defined]
    squared = float(((predicted - truth) ** 2).mean())
    assert found.rows == pytest.approx(4000, abs=0.1)
    assert found.rmse == pytest.approx(math.sqrt(squared), abs=0.0007)  # half a step
    left = squared / float(truth.var())
    assert found.r2 == pytest.approx(1 - left, abs=0.02 * left)


def test_without_noise_accuracy_is_that_of_the_rows() -> None:
    for name, target in (("two classes", "sick"), ("several classes", "kind")):
        model, rows = FITTED[name], table(4000)
        found = Evaluator(model, HARDLY_ANY_NOISE).read(evaluated(Evaluator(model, HARDLY_ANY_NOISE), rows))
        right = float((model.predict(rows) == np.array(rows[target])).mean())  # type: ignore[attr-defined]
        assert found.accuracy == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "spend", [PURE, GAUSSIAN, *MOSTLY_ZERO], ids=["pure", "gaussian", "pure, mostly 0", "gaussian, mostly 0"]
)
@pytest.mark.parametrize("rows", [60, 1000, 20_000])
def test_an_interval_holds_the_figure_of_the_rows_as_often_as_it_says(name: str, spend: Spend, rows: int) -> None:
    """Of 300 draws at .95, 262 or fewer have a chance of 1e-7. Counts were once cut at 0, which drew figures to those
    of chance: intervals held one in ten times where rows are few, one in two at an area of .99; eight in ten where
    noise on a count is mostly 0, as whole numbers are no normal law."""
    evaluator, held = Evaluator(FITTED[name], spend), table(rows)
    truth = exact_figures(evaluator, held)
    kept, exact = evaluated(evaluator, held), evaluator._exact(evaluator.problem.encode(held, None))
    inside = dict.fromkeys(truth, 0)
    for draw in evaluator.noise.law.sample((300, len(exact)), bits=SeededBits(7)):
        told = evaluator.read(kept | {"noisy": [e + int(z) for e, z in zip(exact, draw, strict=True)]})
        for figure, value in truth.items():
            low, high = told.intervals[figure]
            assert low <= figures(told)[figure] <= high
            inside[figure] += low - 1e-12 <= value <= high + 1e-12
    assert min(inside.values()) > 262, inside


def test_where_noise_hides_the_rows_an_interval_has_all_values() -> None:
    for name, ends in (("two classes", (0, 1)), ("several classes", (0, 1)), ("a number", (-math.inf, 1))):
        evaluator = Evaluator(FITTED[name], Spend(epsilon=Fraction(1, 10**4)))
        size = len(evaluator._exact(evaluator.problem.encode(table(0), None)))
        for one in (-1, 1):
            told = evaluator.read(evaluated(evaluator, table(0)) | {"noisy": [one] * size})
            assert list(told.intervals["r2" if name == "a number" else "accuracy"]) == list(ends)
            assert str(told)


def test_a_model_of_which_noise_hides_all_is_not_said_to_be_perfect() -> None:
    """Its R squared was once 1 and its error 0 where the number of rows, or how far the target spreads, came out below
    0: in eight of ten draws of a target that hardly spreads, of a model as far off as half the range."""
    evaluator = Evaluator(FITTED["a number"], PURE)
    unit, sigma = 1 << 20, evaluator.noise.law.variance**0.5 / (1 << 20)
    width = 1.0  # of the declared range
    few = evaluated(evaluator, table(0)) | {"noisy": [-unit, 0, unit, unit]}
    assert (evaluator.read(few).r2, evaluator.read(few).rmse) == (0, width)
    rows = 100 * sigma
    for spread in (-2 * sigma, -sigma, 0.0, sigma):  # of 0 without noise
        noisy = [round(unit * v) for v in (rows, 0.0, spread, rows / 4)]
        told = evaluator.read(few | {"noisy": noisy})
        assert told.r2 == 0
        assert told.rmse == pytest.approx(0.5)
        assert told.intervals["r2"] == (-math.inf, 1)


def test_what_was_stored_before_is_read_as_it_was_written() -> None:
    evaluator = Evaluator(FITTED["a number"], PURE)
    sums = [512 * 1000, 1000 * -64, 1000 * 40, 1000 * 5]  # of 1,000 rows: half, y, y^2 / half, e^2 / (4 half)
    told = evaluator.read({"format": "evaluation 1", "noisy": sums, "deviation": 100.0})
    assert told.rows == 1000
    assert told.rmse == pytest.approx(math.sqrt(5 * 2048) / 1024)
    assert told.r2 == pytest.approx(1 - 5 * 2048 / (40 * 512 - 64**2), abs=1e-3)
    low, high = told.intervals["rmse"]
    assert low < math.sqrt(5 * 2048) / 1024 < high
