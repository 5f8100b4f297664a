"""Pairs of columns in an additive model: what they learn, what they score, and what is refused before a charge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.learning import AdditiveModel, load
from hubbub.learning.exact import WEIGHT_ONE
from seeded import SeededBits

DECLARED: dict[str, Any] = {
    "rain": hb.one_of("n", "y"),
    "wind": hb.one_of("n", "y"),
    "heat": hb.between(0, 12),
    "out": hb.one_of("no", "yes"),
    "many": hb.one_of(*range(200)),
}
PAIR = [("rain", "wind")]


def days(n: int = 3000) -> dict[str, Any]:
    """Somebody goes out if it rains or is windy, but not both."""
    rng = np.random.default_rng(3)
    rain, wind = rng.integers(0, 2, n), rng.integers(0, 2, n)
    yes = np.array(["n", "y"])
    out = np.where(rain ^ wind, "yes", "no")
    return {"rain": yes[rain], "wind": yes[wind], "heat": rng.uniform(0, 12, n), "out": out, "many": rain}


def fitted(**parameters: Any) -> AdditiveModel:
    model = AdditiveModel(["rain", "wind", "heat"], "out", **parameters)
    return model.fit(days(), columns=DECLARED, epsilon=1, delta="1e-6", bits=SeededBits(7))


def test_what_no_sum_of_effects_tells_a_pair_does() -> None:
    rows = days()
    alone, paired = ((fitted(pairs=p).predict(rows) == rows["out"]).mean() for p in (None, PAIR))
    assert alone < 0.6
    assert paired == 1
    effects = fitted(pairs=PAIR).effects_["rain x wind"]
    assert [label for label, effect in effects.items() if effect > 0] == ["n & y", "y & n"]


def test_a_score_is_the_sum_of_the_effects_and_that_of_the_cell() -> None:
    """By hand: weights of 0, but 2 for rain, 3 for the second of six bins of heat with rain, -1 for NULL without."""
    model = AdditiveModel(["rain", "heat"], "out", pairs=[("rain", "heat")])
    model.fit(days(), columns=DECLARED, epsilon=1, delta="1e-6")
    assert model.feature_names_in_.tolist() == ["rain", "heat"]
    kept = json.loads(model.to_json())
    weights = dict.fromkeys(model.design_.names, 0)
    assert len([name for name in weights if name.startswith("rain x heat=")]) == 2 * (6 + 1)
    weights |= {"rain=y": 2, "rain x heat=y & [2, 4)": 3, "rain x heat=n & NULL": -1}
    kept["fit"]["weights"] = [[w * WEIGHT_ONE for w in weights.values()]]
    rows = {"rain": ["y", "y", "n", "n", "snow", "y"], "heat": [3.0, 4.0, 3.0, None, 3.0, None]}
    assert load(json.dumps(kept)).decision_function(rows).tolist() == [5, 2, 0, -1, 0, 2]


def test_a_model_with_pairs_is_one_charge_that_a_model_without_has(tmp_path: Path) -> None:
    table = hb.table(pa.table(days()), unit=hb.EACH_ROW, columns=DECLARED)
    left = []
    for pairs in (None, PAIR):
        ledger = tmp_path / f"{pairs is None}.db"
        with hb.Session({"t": table}, budget=hb.Budget(3, "1e-6"), ledger=ledger) as session:
            model = AdditiveModel(["rain", "wind"], "out", pairs=pairs)
            fit = session.fit(model, "t", epsilon=1)
            left.append(session.remaining)
            assert session.fit(model, "t", epsilon=1).kept_ == fit.kept_
            assert session.remaining == left[-1] < 3
            assert (session.evaluate(fit, "t", epsilon=1).accuracy > 0.9) is (pairs is not None)
    assert left[0] == left[1]


def test_without_pairs_a_stored_model_answers_the_same_question_still() -> None:
    assert "pairs" not in fitted().kept_["parameters"]
    assert fitted(pairs=PAIR).kept_["parameters"]["pairs"] == PAIR


@pytest.mark.parametrize(
    "pairs",
    [3, "rain", ["rain"], [("rain",)], [("rain", "rain")], [("rain", "out")], [("rain", "nothing")], [("rain", 1)],
     [("rain", ["wind"])], [("rain", "wind", "heat")], [("rain", "wind"), ("wind", "rain")]],
)  # fmt: skip
def test_what_is_no_pair_of_features_is_refused(pairs: Any) -> None:
    with pytest.raises(ParameterError, match="is not a pair of features, or stands twice"):
        fitted(pairs=pairs)


def test_a_pair_of_too_many_cells_is_refused() -> None:
    model = AdditiveModel(["many", "heat"], "out", pairs=[("many", "heat")])
    with pytest.raises(ParameterError, match="'many and heat' has 1407 cells; 1024 are allowed"):
        model.fit(days(), columns=DECLARED, epsilon=1, delta="1e-6")


@pytest.mark.parametrize("part", [{"pair": ["a", "b"], "parts": []}, {"low": "0", "high": "1", "edges": []}])
def test_a_text_with_a_pair_of_something_else_is_no_model(part: Any) -> None:
    kept = json.loads(fitted(pairs=PAIR).to_json())
    kept["design"]["rain x wind"]["parts"][0] = part | {"linear": True, "nullable": False}
    with pytest.raises(ParameterError, match="not a fitted model"):
        load(json.dumps(kept))
