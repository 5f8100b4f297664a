"""Intervals of weights by noisy moments hold, as often as they say, the weights that are there without noise."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.learning import LinearRegression, load
from hubbub.learning.exact import on_grid
from hubbub.learning.features import ONE
from hubbub.learning.linear import _square, noise_alone, solved

Floats = NDArray[np.float64]

_ROWS = 3000
_DRAWS = 300


def features(kind: str, rng: np.random.Generator) -> Floats:
    """Rows with a 1 before them: numbers, numbers that nearly coincide, values of two columns, a number in bins."""
    x = 2 * rng.random((_ROWS, 6)) - 1
    one = np.ones((_ROWS, 1))
    if kind == "numbers":
        return np.hstack([one, x])
    if kind == "nearly one number":
        return np.hstack([one, x[:, :1], 0.97 * x[:, :1] + 0.03 * x[:, 1:2], x[:, 2:3]])
    if kind == "values":
        return np.hstack([one, np.eye(5)[rng.integers(0, 5, _ROWS)], np.eye(3)[rng.integers(0, 3, _ROWS)]])
    return np.hstack([one, x[:, :1], np.eye(12)[((x[:, 0] + 1) ** 2 * 2.999).astype(int)]])


def moments(kind: str) -> Floats:
    """Of the features and a target that the second and fourth tell to .2."""
    rng = np.random.default_rng(3)
    x = features(kind, rng)
    y = np.clip(0.7 * x[:, 1] - 0.4 * x[:, 3] + 0.2 * rng.normal(size=_ROWS), -1, 1)
    both = np.hstack([x, y[:, None]])
    return np.asarray(both.T @ both)


def with_noise(moment: Floats, sigma: float, rng: np.random.Generator) -> Floats:
    """Noise on the upper triangle, as in a fit."""
    noise = np.triu(rng.normal(0, sigma, moment.shape))
    return np.asarray(moment + noise + np.triu(noise, 1).T)


def held(moment: Floats, sigma: float, truth: Floats) -> Floats:
    """How often the interval of each weight holds it."""
    rng = np.random.default_rng(11)
    count = np.zeros(len(truth))
    for _ in range(_DRAWS):
        noisy = with_noise(moment, sigma, rng)
        low, high = noise_alone(noisy, sigma, 1.96)
        weights = solved(noisy, sigma)
        assert np.all((low <= weights + 1e-12) & (weights <= high + 1e-12))
        count += (low <= truth) & (truth <= high)
    return count


@pytest.mark.parametrize("kind", ["numbers", "nearly one number", "values", "bins"])
@pytest.mark.parametrize("share", [0.3, 0.05, 0.01, 0.002])
def test_an_interval_holds_the_weight_that_the_same_ridge_has_without_noise(kind: str, share: float) -> None:
    """Of 300 draws at .95, 262 or fewer have a chance of 1e-7. share: of the rows, that the noise on a sum is."""
    moment, sigma = moments(kind), share * _ROWS / 3
    gram, cross = moment[:-1, :-1], moment[:-1, -1]
    ridge = np.full(len(gram), sigma * math.sqrt(len(gram)))
    ridge[0] *= 1e-3
    assert held(moment, sigma, np.linalg.solve(gram + np.diag(ridge), cross) / 2).min() > 262


@pytest.mark.parametrize("share", [0.05, 0.02, 0.005, 0.001])
def test_where_moments_are_clear_of_noise_an_interval_holds_the_weight_without_a_ridge(share: float) -> None:
    """The ridge, which is as large as the noise, once drew intervals off: some held one time in ten."""
    moment, sigma = moments("numbers"), share * _ROWS / 3
    gram, cross = moment[:-1, :-1], moment[:-1, -1]
    assert np.linalg.eigvalsh(gram)[0] > 3 * sigma * math.sqrt(len(gram))
    assert held(moment, sigma, np.linalg.solve(gram, cross) / 2).min() > 262


def test_a_fitted_model_says_intervals_that_hold_the_best_weights() -> None:
    """Of 30 draws at .95, 20 or fewer have a chance of 2e-6. Intervals about what the ridge had drawn off held 3."""
    names = [f"x{i}" for i in range(8)]
    columns = {name: hb.between(0, 1) for name in [*names, "y"]}
    rng = np.random.default_rng(5)
    x = rng.random((_ROWS, 8))
    y = np.clip(0.5 + 0.9 * (x[:, 0] - 0.5) + 0.05 * rng.normal(size=_ROWS), 0, 1)
    rows = pa.table(dict(zip(names, x.T, strict=True)) | {"y": y})
    exact = LinearRegression(names, "y", method="moments").fit(rows, columns=columns, epsilon=10**6, delta=".1")
    kept = json.loads(exact.to_json())
    moment = np.array(kept["fit"]["moments"], np.float64)
    inside = 0
    for _ in range(30):
        kept["fit"]["moments"] = (moment + rng.normal(0, 40 * ONE**2, moment.size)).tolist()
        kept["fit"]["deviation"] = 40.0
        kept["fit"]["weights"] = [
            on_grid(solved(_square(np.array(kept["fit"]["moments"]) / ONE**2, 10), 40.0)).tolist()
        ]
        low, high = load(json.dumps(kept)).intervals()["x0"]
        inside += low <= exact.coef_[0] <= high
    assert inside > 20
