"""Drawings of models: the heights are the effects, the points are the calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import ParameterError
from hubbub.learning import AdditiveModel
from hubbub.learning.evaluation import Evaluation
from seeded import SeededBits

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")

COLUMNS: dict[str, Any] = {
    "age": hb.between(0, 100),
    "ward": hb.one_of("a", "b"),
    "ill": hb.one_of("no", "yes"),
    "job": hb.one_of("cook", "nurse", "clerk"),
}


def fitted(target: str, **more: Any) -> AdditiveModel:
    rng = np.random.default_rng(0)
    age, ward = rng.integers(0, 100, 600), rng.integers(0, 2, 600)
    rows = pa.table(
        {
            "age": age,
            "ward": np.array(["a", "b"])[ward],
            "ill": np.where(age + 30 * ward > 60, "yes", "no"),
            "job": np.array(["cook", "nurse", "clerk"])[np.minimum(age // 40, 2)],
        }
    )
    model = AdditiveModel(["age", "ward"], target, bins=5, **more)
    return model.fit(rows, columns=COLUMNS, epsilon=20, delta="1e-6", bits=SeededBits(2))


def test_a_column_is_drawn_as_its_effects() -> None:
    model = fitted("ill")
    axes = model.plot("age")
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == pytest.approx([float(e[0]) for e in model.effects_["age"].values()])
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    assert labels == list(model.effects_["age"])
    assert labels[0] == "[0, 20)"
    assert line.get_ydata()[4] > line.get_ydata()[0]
    assert axes.get_ylabel() == "added to the score"


def test_each_of_several_classes_has_a_line_with_its_name() -> None:
    model = fitted("job")
    axes = model.plot("ward")
    assert [line.get_label() for line in axes.get_lines()] == ["clerk", "cook", "nurse"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["clerk", "cook", "nurse"]
    for k, line in enumerate(axes.get_lines()):
        assert line.get_ydata().tolist() == pytest.approx([float(e[k]) for e in model.effects_["ward"].values()])


def test_it_is_drawn_where_it_is_told_to() -> None:
    from matplotlib.figure import Figure

    model, axes = fitted("ill"), Figure().subplots()
    assert model.plot("ward", ax=axes) is axes
    assert len(axes.get_lines()) == 1
    with pytest.raises(ParameterError, match="'job' is not a column of this model; it has age, ward"):
        model.plot("job")


def test_a_pair_is_drawn_as_a_map() -> None:
    model = fitted("ill", pairs=[("ward", "age")])
    axes = model.plot("ward x age")
    (image,) = axes.get_images()
    effects = model.effects_["ward x age"]
    assert image.get_array().shape == (2, 6)  # NULL may stand in a range
    assert float(image.get_array()[1, 2]) == pytest.approx(float(effects["b & [40, 60)"][0]))
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("ward", "age")
    assert len(fitted("job", pairs=[("ward", "age")]).plot("ward x age").get_lines()) == 3


def test_calibration_is_drawn_beside_the_diagonal() -> None:
    from matplotlib.figure import Figure

    told = Evaluation(100.0, accuracy=0.9, calibration=((0.1, 0.15, 40.0), (0.8, 0.7, 60.0)))
    axes = told.plot(ax=Figure().subplots())
    diagonal, points = axes.get_lines()
    assert (list(diagonal.get_xdata()), list(diagonal.get_ydata())) == ([0, 1], [0, 1])
    assert (list(points.get_xdata()), list(points.get_ydata())) == ([0.1, 0.8], [0.15, 0.7])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted probability", "share of rows")
