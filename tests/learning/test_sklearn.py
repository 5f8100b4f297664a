"""scikit-learn's conventions, where it is installed: pipelines that say the same, clones, checks."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.learning import (
    PCA,
    AdditiveModel,
    CategoricalNB,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    load,
)
from hubbub.learning.exact import WEIGHT_ONE
from seeded import SeededBits

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pd = pytest.importorskip("pandas")

DECLARED: dict[str, Any] = {
    "x": hb.between(0, 10),
    "z": hb.edges(-2, 0, 1, 2, nullable=False),
    "ward": hb.one_of("a", "b", None),
    "ill": hb.one_of("sick", "healthy"),
    "job": hb.one_of("nurse", "cook", "clerk"),
    "pay": hb.between(0, 100),
}


def people(n: int = 1000) -> Any:
    rng = np.random.default_rng(1)
    x, z, ward = rng.uniform(-1, 11, n), rng.uniform(-2, 2, n), rng.integers(0, 4, n)
    score = x - 5 + 2 * (ward == 1) + z
    x[::50] = np.nan
    return pd.DataFrame(
        {
            "x": x,
            "z": z,
            "ward": np.array(["a", "b", None, "zz"], object)[ward],
            "ill": np.where(score > 0, "sick", "healthy"),
            "job": np.where(score > 2, "nurse", np.where(score < -2, "cook", "clerk")),
            "pay": np.clip(score * 10 + 50, 0, 100),
        }
    )


NAMES = ["x", "z", "ward"]
MODELS = [
    LogisticRegression(NAMES, "ill"),
    LogisticRegression(NAMES, "job", bins=4),
    AdditiveModel(NAMES, "ill", bins=5),
    AdditiveModel(NAMES, "pay", bins=5),
    AdditiveModel(NAMES, "job", bins=5, pairs=[("x", "ward"), ("z", "x")]),
    AdditiveModel(NAMES, "pay", pairs=[("x", "ward")]),
    LinearRegression(NAMES, "pay"),
    GaussianNB(["x", "z"], "ill"),
    KMeans(["x", "z", "job"], n_clusters=3),
    PCA(NAMES, n_components=2),
]


def fitted(model: Any) -> Any:
    return model.fit(people(), columns=DECLARED, epsilon=20, delta="1e-6", bits=SeededBits(3))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_pipeline_says_the_same(model: Any) -> None:
    ours, rows = fitted(type(model)(**model.get_params())), people()
    theirs = pickle.loads(pickle.dumps(ours.to_sklearn()))
    # Numbers at a cut of the grid may be rounded to either side.
    if hasattr(ours, "predict"):
        one, other = ours.predict(rows), theirs.predict(rows)
        if one.dtype.kind == "f":
            assert np.abs(one - np.clip(other, 0, 100)).max() < 1
        else:
            there = rows["x"].notna() if isinstance(model, GaussianNB) else np.ones(len(rows), bool)
            assert (one == other)[there].mean() > 0.99
    if isinstance(model, LogisticRegression):
        assert np.abs(ours.predict_proba(rows) - theirs.predict_proba(rows)).max() < 0.02
    if isinstance(model, PCA):
        assert np.abs(ours.transform(rows) - theirs.transform(rows)).max() < 0.02


def of_any_columns(seed: int) -> tuple[Any, dict[str, Any]]:
    """Columns of every kind, with NULL and without, of values that are declared and of others."""
    rng = np.random.default_rng(seed)
    n, rows = 500, dict[str, Any]()
    rows["whole"] = rng.integers(-3, 40, n).astype(float)
    rows["number"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 3, n))
    rows["tail"] = np.where(rng.random(n) < 0.8, 0.0, rng.integers(0, 1000, n).astype(float))
    rows["two"] = rng.choice(np.array(["no", "yes", None], object), n)
    rows["a__b"] = rng.choice(np.array([1, 2, 3, 9], object), n)
    rows["null"] = rng.choice(np.array(["p", "q", "zz", None], object), n)
    rows["out"] = np.where((rows["number"] > 0) ^ (rows["two"] == "yes"), "sick", "healthy")
    rows["miles"] = rng.uniform(0, 9, n)
    declared: dict[str, Any] = {
        "whole": hb.between(0, 30, nullable=False), "number": hb.between(-5, 7), "tail": hb.edges(0, 1, 50, 1000),
        "two": hb.one_of("no", "yes"), "a__b": hb.one_of(1, 2, 3), "null": hb.one_of("p", None, "q"),
        "out": hb.one_of("sick", "healthy"), "miles": hb.between(0, 9),
    }  # fmt: skip
    return pd.DataFrame(rows), declared


@pytest.mark.parametrize(("target", "sought"), [("out", False), ("miles", False), ("out", True)])
def test_a_pipeline_with_pairs_of_any_columns_predicts_the_same(target: str, sought: bool) -> None:
    names = ["whole", "number", "tail", "two", "a__b", "null"]
    pairs: Any = "auto" if sought else list(itertools.combinations(names, 2))
    model = AdditiveModel(names, target, pairs=pairs, rows=4_000_000 if sought else 50)
    rows, declared = of_any_columns(6)
    ours = model.fit(rows, columns=declared, epsilon=5, delta="1e-6", bits=SeededBits(5))
    assert "number x two" in ours.pairs_
    # Weights as noise might make them: so that every cell tells.
    kept, rng = json.loads(ours.to_json()), np.random.default_rng(8)
    kept["fit"]["weights"] = rng.integers(-WEIGHT_ONE // 2, WEIGHT_ONE // 2, np.shape(kept["fit"]["weights"])).tolist()
    ours, (fresh, _) = load(json.dumps(kept)), of_any_columns(7)
    theirs = pickle.loads(pickle.dumps(ours.to_sklearn()))
    if target == "out":
        assert ours.decision_function(fresh) == pytest.approx(theirs.decision_function(fresh[names]), abs=0.005)
        assert np.ptp(ours.decision_function(fresh)) > 1
    else:
        said = np.clip(theirs.predict(fresh[names]), 0, 9)
        assert ours.predict(fresh) == pytest.approx(said, abs=0.05)
        assert np.ptp(said) > 1


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_scikit_learn_clones_and_checks(model: Any) -> None:
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    again = clone(model)
    assert again.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    check_is_fitted(fitted(again))


def test_what_has_no_counterpart_is_refused() -> None:
    with pytest.raises(ParameterError, match="no counterpart"):
        fitted(CategoricalNB(["ward"], "ill")).to_sklearn()
    with pytest.raises(ParameterError, match="other distances"):
        fitted(KMeans(NAMES, n_clusters=2)).to_sklearn()
    with pytest.raises(ParameterError, match="not fitted"):
        LogisticRegression(NAMES, "ill").to_sklearn()


_KNOWN = {"SimpleImputer", "MinMaxScaler", "StandardScaler", "KBinsDiscretizer", "Binarizer", "OneHotEncoder"}


def test_a_pipeline_is_made_of_steps_that_skl2onnx_knows() -> None:
    """It has none for MissingIndicator, and needs an intercept of numpy: seen with skl2onnx 1.20, without pairs."""
    for model in (m for m in MODELS if not getattr(m, "pairs", None)):
        pipe = fitted(type(model)(**model.get_params())).to_sklearn()
        parts = [step for _, step, _ in pipe.steps[0][1].transformers_]
        names = {type(s).__name__ for part in parts for s in (dict(getattr(part, "steps", [("", part)])).values())}
        assert names <= _KNOWN, model
        if hasattr(pipe.steps[-1][1], "intercept_"):
            assert isinstance(pipe.steps[-1][1].intercept_, np.ndarray | np.floating)


@pytest.mark.parametrize("end", [1e37, 1e39])
def test_a_number_at_the_end_of_any_range_is_not_taken_for_a_missing_one(end: float) -> None:
    rows = pd.DataFrame({"x": [-end, 0.0, end, np.nan] * 50, "ill": ["sick", "healthy"] * 100})
    declared = {"x": hb.between(-end, end), "ill": hb.one_of("sick", "healthy")}
    model = AdditiveModel(["x"], "ill", bins=3).fit(
        rows, columns=declared, epsilon=20, delta="1e-6", bits=SeededBits(4)
    )
    said = model.to_sklearn().predict_proba(rows[["x"]])
    assert said == pytest.approx(model.predict_proba(rows), abs=1e-2)
    assert len({round(float(p), 6) for p in said[:, 0]}) == 4


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(["age", "z"], "ill", bins=4), GaussianNB(["age", "z"], "ill"), AdditiveModel(["age"], "ill")],
    ids=repr,
)
def test_whole_numbers_without_a_missing_one_are_scored(model: Any) -> None:
    """A frame of them has a column of integers, in which no fraction can stand for a missing number."""
    rng = np.random.default_rng(7)
    rows = pd.DataFrame({"age": rng.integers(0, 91, 600), "z": rng.integers(0, 9, 600)})
    rows["ill"] = np.where(rows["age"] + rng.integers(0, 30, 600) > 60, "sick", "healthy")
    declared = {"age": hb.between(0, 91), "z": hb.between(0, 9), "ill": hb.one_of("sick", "healthy")}
    ours = model.fit(rows, columns=declared, epsilon=20, delta="1e-6", bits=SeededBits(4))
    theirs = ours.to_sklearn()
    assert np.abs(theirs.predict_proba(rows) - ours.predict_proba(rows)).max() < 0.05
    assert (theirs.predict(rows[["age", "z"]].astype(float)) == theirs.predict(rows)).all()
