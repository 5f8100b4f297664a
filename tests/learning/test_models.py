"""All other models: what they learn, that what is drawn is charged, and what one unit can move."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import cost, rho_of_epsilon
from hubbub.audit import replay
from hubbub.errors import ParameterError, PolicyError
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
from hubbub.learning.clusters import nearest
from hubbub.learning.linear import clamped_residual
from hubbub.mechanisms.recording import recording
from hubbub.noise import DiscreteGaussian
from seeded import SeededBits

DECLARED: dict[str, Any] = {
    "x": hb.between(0, 10),
    "z": hb.edges(-2, 0, 2),
    "ward": hb.one_of("a", "b", "c"),
    "ill": hb.one_of("sick", "healthy"),
    "pay": hb.between(0, 100),
    "w": hb.between(0, 5),
}


def people(n: int = 6000, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, z, ward = rng.uniform(0, 10, n), rng.uniform(-2, 2, n), rng.integers(0, 3, n)
    score = np.abs(x - 5) * 2 - 5 + 2 * (ward == 1)
    ill = np.where(score + rng.logistic(0, 0.5, n) > 0, "sick", "healthy")
    pay = np.clip(8 * x + 6 * (ward == 2) + rng.normal(0, 4, n), 0, 100)
    return {"x": x, "z": z, "ward": np.array(list("abc"))[ward], "ill": ill, "pay": pay, "w": rng.integers(0, 6, n)}


NAMES = ["x", "z", "ward"]
MODELS: dict[str, Any] = {
    "additive": AdditiveModel(NAMES, "ill"),
    "additive pay": AdditiveModel(NAMES, "pay"),
    "additive, many rows": AdditiveModel(NAMES, "ill", rows=20_000),
    "pairs": AdditiveModel(NAMES, "ill", pairs=[("x", "ward"), ("z", "ward")]),
    "pairs pay": AdditiveModel(NAMES, "pay", pairs=[("x", "z")]),
    "pairs, many rows": AdditiveModel(NAMES, "ill", rows=20_000, pairs=[("z", "x")]),
    "moments": LinearRegression(NAMES, "pay", method="moments"),
    "descent": LinearRegression(NAMES, "pay", method="descent"),
    "mean": LinearRegression(NAMES, "pay", method="mean"),
    "categorical": CategoricalNB(NAMES, "ill"),
    "gaussian": GaussianNB(["x", "z"], "ill"),
    "k-means": KMeans(NAMES, n_clusters=3, rounds=2),
    "components": PCA(NAMES, n_components=2),
    "newton": LogisticRegression(NAMES, "ill", method="newton"),
}
PURE = ("categorical", "gaussian")


def fitted(rows: Any, model: Any, **changes: Any) -> Any:
    return model.fit(rows, **({"columns": DECLARED, "epsilon": 5, "delta": "1e-6", "bits": SeededBits(3)} | changes))


def again(model: Any, **changes: Any) -> Any:
    return type(model)(**model.get_params() | changes)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_charged_is_what_is_drawn(name: str) -> None:
    model = again(MODELS[name])
    with recording() as records:
        loss = fitted(people(500), model).loss_
    assert all(isinstance(r.distribution, DiscreteGaussian) for r in records)
    spent = sum((r.sensitivity / (2 * r.distribution.sigma2) for r in records), Fraction(0))
    assert spent == cost(loss).rho
    assert spent <= rho_of_epsilon(5, "1e-6")
    assert spent > Fraction(99, 100) * rho_of_epsilon(5, "1e-6")


@pytest.mark.parametrize("name", PURE)
def test_a_pure_amount_buys_laplace_noise(name: str) -> None:
    with recording() as records:
        loss = fitted(people(500), again(MODELS[name]), epsilon="0.5", delta=None).loss_
    (record,) = records
    assert cost(loss).epsilon == Fraction(1, 2)
    assert record.sensitivity / record.distribution.scale == Fraction(1, 2)
    assert record.norm == "l1"


def test_other_models_refuse_a_pure_amount() -> None:
    for name in MODELS.keys() - set(PURE):
        with pytest.raises(PolicyError, match="no delta"):
            fitted(people(5), again(MODELS[name]), delta=None)


def neighbours(many: bool) -> tuple[dict[str, Any], Any, dict[str, Any], Any]:
    """A table, and the same with one more unit, of rows at the ends of every range."""
    rows = {k: np.asarray(v, object) for k, v in people(90).items()}
    units = np.arange(90) // 3
    far: dict[str, list[Any]] = {
        "x": [1e300, -5, None, 10, 10],
        "z": [-9, 2, None, 2, 2],
        "ward": ["b", "zz", None, "b", "b"],
        "ill": ["healthy", "sick", "healthy", "healthy", None],
        "pay": [0, 1000, 50, 100, None],
        "w": [5, 900, None, 5, 5],
    }
    take = slice(None) if many else slice(0, 1)
    more = {k: np.append(v, np.array(far[k], object)[take]) for k, v in rows.items()}
    return rows, units, more, np.append(units, [77] * (5 if many else 1))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("rows_per_unit", "relation", "weight"), [(1, "add_remove", None), (3, "add_remove", "w"), (2, "replace", None)]
)
def test_one_unit_moves_every_sum_by_what_is_charged_at_most(
    name: str, rows_per_unit: int, relation: str, weight: str | None
) -> None:
    """With the outputs frozen, for every amount: what goes into each draw moves by at most its sensitivity."""
    rows, units, more, owners = neighbours(rows_per_unit > 1)
    if relation == "replace":  # the last unit's rows are exchanged for the others
        rows, units = ({k: np.append(v, v[:3]) for k, v in rows.items()}, np.append(units, [77] * 3))
    amounts = [{"epsilon": 1}] + ([{"epsilon": 1, "delta": None}] if name in PURE else [])
    for amount in amounts:

        def run(data: tuple[dict[str, Any], Any], amount: Any = amount) -> str:
            table = {k: list(v) for k, v in data[0].items()}
            model = again(MODELS[name], weight=weight)
            how = {"units": data[1], "rows_per_unit": rows_per_unit, "neighbours": relation}
            return str(fitted(table, model, **amount, **how).to_json())

        assert replay(run, (rows, units), (more, owners)) == []
        assert replay(run, (more, owners), (rows, units)) == []


@pytest.mark.parametrize("name", MODELS)
def test_rows_in_another_order_give_the_same_integers(name: str) -> None:
    rows = people(300)
    order = np.random.default_rng(1).permutation(300)
    mixed = {k: v[order] for k, v in rows.items()}
    assert replay(lambda d: fitted(d, again(MODELS[name])).to_json(), rows, mixed, same=True) == []


@pytest.mark.parametrize("name", MODELS)
def test_what_is_kept_is_read_again(name: str) -> None:
    rows = people(200)
    model = fitted(rows, again(MODELS[name]))
    other = load(model.to_json())
    use = "transform" if name == "components" else "predict"
    assert (getattr(other, use)(rows) == getattr(model, use)(rows)).all()


def test_naive_bayes_learns() -> None:
    rows = people()
    for model, least in ((CategoricalNB(NAMES, "ill", bins=10), 0.85), (GaussianNB(["x"], "ill"), 0.7)):
        found = fitted(rows, model)
        assert found.classes_.tolist() == ["healthy", "sick"]
        assert (found.predict(rows) == rows["ill"]).mean() > least
        assert np.allclose(found.predict_proba(rows).sum(axis=1), 1)


def test_gaussian_bayes_has_moments_in_the_columns_own_unit() -> None:
    rows = people()
    found = fitted(rows, GaussianNB(["x"], "ill"), epsilon=50)
    for k, name in enumerate(found.classes_):
        held = rows["x"][rows["ill"] == name]
        assert found.theta_[k, 0] == pytest.approx(held.mean(), abs=0.1)
        assert found.var_[k, 0] == pytest.approx(held.var(), rel=0.1)


def test_newton_costs_what_was_asked_and_learns() -> None:
    """Nine events for all of rho; as good as descent with many rows."""
    rows = people(4000)
    models = [fitted(rows, LogisticRegression(NAMES, "ill", bins=4, method=how)) for how in ("newton", "descent")]
    right = [(model.predict(rows) == rows["ill"]).mean() for model in models]
    assert len(models[0].loss_.children) == models[0].n_iter_ + 1 == 9
    assert cost(models[0].loss_).rho <= rho_of_epsilon(5, "1e-6")
    assert right[0] > right[1] - 0.02
    with pytest.raises(ParameterError, match="newton"):
        fitted(rows, LogisticRegression(NAMES, "ill", method="newtons"))


def test_a_line_is_learned_in_either_way() -> None:
    rows = people()
    for method in ("descent", "moments", "auto"):
        found = fitted(rows, LinearRegression(["x", "ward"], "pay", method=method), epsilon=20)
        left = ((found.predict(rows) - rows["pay"]) ** 2).mean() / rows["pay"].var()
        assert left < 0.1, method
        assert found.coef_[0] == pytest.approx(40, rel=0.15)  # half the range of x
    mean = fitted(rows, LinearRegression(["x"], "pay", method="mean"))
    assert mean.predict(rows) == pytest.approx(rows["pay"].mean(), abs=1)


def test_too_few_rows_give_the_mean() -> None:
    found = fitted(people(40), LinearRegression(["x"], "pay", rows=40), epsilon="0.1")
    assert not found.coef_.any()


def test_a_residual_is_clamped_in_whole_numbers() -> None:
    scores = np.array([[-(1 << 50), 0, 1 << 50]])
    for label in (0, 512, 1024):
        found = clamped_residual(scores, np.full(3, label))
        assert np.abs(found).max() <= 1 << 18


def test_effects_can_be_looked_at() -> None:
    rows = people()
    found = fitted(rows, AdditiveModel(["x", "ward"], "ill", bins=4))
    effects = found.effects_
    assert list(effects["ward"]) == ["a", "b", "c"]
    assert effects["ward"]["b"] > effects["ward"]["a"]
    ends, middle = effects["x"]["[0, 2.5)"], effects["x"]["[2.5, 5)"]
    assert ends > middle
    assert (found.predict(rows) == rows["ill"]).mean() > 0.8
    with pytest.raises(ParameterError, match="no classes"):
        fitted(rows, AdditiveModel(["x"], "pay")).predict_proba(rows)


def test_clusters_are_found() -> None:
    rng = np.random.default_rng(4)
    place = rng.integers(0, 3, 3000)
    rows = {"x": np.array([1, 5, 9])[place] + rng.normal(0, 0.3, 3000), "z": np.array([-1, 1, -1])[place] + 0.0}
    found = fitted(rows, KMeans(["x", "z"], n_clusters=3))
    assert sorted(found.centers_["x"].round()) == [1, 5, 9]
    assert found.sizes_.sum() == pytest.approx(3000, abs=100)
    assert len(set(found.predict(rows)[place == 0])) == 1
    assert (found.transform(rows).argmin(axis=1) == found.predict(rows)).all()


def test_the_nearest_centre_is_that_of_whole_numbers() -> None:
    model = fitted(people(200), KMeans(["x", "z"], n_clusters=4))
    rows = model._codes(people(200))
    x = np.hstack([c.features[k] for c, k in zip(rows.design.columns.values(), rows.codes, strict=True)]) / 256
    far = ((x[:, None] - model.cluster_centers_[None]) ** 2).sum(axis=2)
    assert (nearest(model.cluster_centers_, rows) == far.argmin(axis=1)).mean() > 0.99


def test_the_largest_variance_comes_first() -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 10, 5000)
    found = fitted({"x": x, "z": (x - 5) / 3 + rng.normal(0, 0.05, 5000)}, PCA(["x", "z"], n_components=2))
    assert found.explained_variance_ratio_[0] > 0.95
    assert np.allclose(found.components_ @ found.components_.T, np.eye(2))
    assert abs(found.components_[0, 0] / found.components_[0, 1]) == pytest.approx(0.2 / (1 / 6), rel=0.1)


@pytest.mark.parametrize(
    ("model", "error", "says"),
    [
        (LinearRegression(["x"], "pay", method="magic"), ParameterError, "expected one of"),
        (LinearRegression(["x"], "pay", clamp=0), ParameterError, "share of the range"),
        (LinearRegression(["x"], "ward"), PolicyError, "of declared range"),
        (GaussianNB(["ward"], "ill"), PolicyError, "CategoricalNB"),
        (CategoricalNB(["x"], "ill", alpha=0), ParameterError, "above 0"),
        (KMeans(["x"], n_clusters=0), ParameterError, "whole number"),
        (PCA(["x"], n_components=2), ParameterError, "1 features"),
        (LogisticRegression(["x"], "ill", bins=[3, 1]), ParameterError, "ascending"),
    ],
)
def test_what_cannot_be_fitted_is_refused(model: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        fitted(people(5), model)


def test_intervals_of_weights_hold_those_without_noise() -> None:
    """Of 20 intervals of 95 % in ten fits at least 13 hold: fewer with probability below 1e-5."""
    rows = people(1000)
    exact = fitted(rows, LinearRegression(["x", "z"], "pay", method="moments"), epsilon=10**6).coef_
    held = 0
    for seed in range(10):
        bits = SeededBits(seed)
        found = fitted(rows, LinearRegression(["x", "z"], "pay", method="moments"), epsilon=2, bits=bits)
        pairs = list(found.intervals().values())[1:]
        held += sum(low <= value <= high for (low, high), value in zip(pairs, exact, strict=True))
    assert held >= 13
    with pytest.raises(ParameterError, match="only method"):
        fitted(rows, LinearRegression(["x"], "pay", method="descent")).intervals()


@pytest.mark.parametrize("spread", [0.01, 0.02, 0.05, 0.2])
def test_without_noise_gaussian_classes_have_the_means_and_spreads_of_their_rows(spread: float) -> None:
    """Squares were once rounded down row by row: a spread of .02 of the range was .005."""
    rng = np.random.default_rng(4)
    ill = rng.random(4000) < 0.4
    pay = np.clip(np.where(ill, 0.3, 0.36) + rng.normal(0, spread, 4000), 0, 1)
    columns: dict[str, Any] = {"pay": hb.between(0, 1), "ill": hb.one_of("no", "yes")}
    rows = pa.table({"pay": pay, "ill": np.where(ill, "yes", "no")})
    found = GaussianNB(["pay"], "ill").fit(rows, columns=columns, epsilon=10**6)
    for place, of_class in enumerate((pay[~ill], pay[ill])):
        assert found.theta_[place, 0] == pytest.approx(of_class.mean(), abs=3e-4)
        assert math.sqrt(found.var_[place, 0]) == pytest.approx(of_class.std(), rel=0.01, abs=3e-4)
    kept = json.loads(found.to_json())
    before = kept | {"fit": {"sums": [v // 256 for v in kept["fit"]["sums"]], "deviation": 1e-9}}
    assert load(json.dumps(before)).theta_ == pytest.approx(found.theta_, abs=1e-4)
