"""`hubbub fit`, `predict` and `evaluate`: what a session does, charge for charge, at the command line."""

from __future__ import annotations

import csv
import json

import pytest

from cli.test_synth import POLICY
from hubbub.cli.main import run


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Run a command where a policy with a delta and 2,000 people with two rows each are."""
    rows = [
        f"{i // 2},{(i * 7) % 100},{'A' if i % 3 else 'B|C'},{'true' if i * 7 % 100 > 40 else 'false'}"
        for i in range(4000)
    ]
    (tmp_path / "people.csv").write_text("person_id,age,ward,married\n" + "\n".join(rows) + "\n")
    (tmp_path / "hubbub.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    assert call("ledger", "create")[0] == 0
    return call


FIT = ["fit", "people", "--target", "married", "--epsilon", "1"]


def test_a_model_is_fitted_predicts_and_is_evaluated(ask, tmp_path):
    code, _, err = ask(*FIT)
    assert code == 0
    assert "would cost epsilon 1" in err
    assert "Nothing was charged" in err
    code, _, err = ask(*FIT, "--model", "logistic", "-o", "model.json", "--yes")
    assert code == 0, err
    assert "Charged epsilon 1" in err
    assert json.loads((tmp_path / "model.json").read_text())["estimator"] == "LogisticRegression"
    code, _, err = ask(*FIT, "--model", "logistic", "-o", "model.json", "--yes", "--force")
    assert code == 0
    assert "nothing charged" in err
    (tmp_path / "new.csv").write_text("age,ward\n5,A\n95,A\n")
    code, out, _ = ask("predict", "model.json", "new.csv")
    assert code == 0
    first, second = csv.DictReader(out.splitlines())
    assert (first["prediction"].lower(), second["prediction"].lower()) == ("false", "true")
    assert float(second["p(True)"]) > 0.5
    code, out, err = ask("evaluate", "model.json", "people", "--epsilon", "1", "--yes")
    assert code == 0, err
    assert "accuracy" in out
    assert "auc" in out
    assert "Charged epsilon 1" in err


def calibration(out: str, name: str) -> dict[float, float]:
    lines = [line for line in out.splitlines() if line.startswith(f"p({name}) about ")]
    return {float(line.split()[2].rstrip(":")): float(line.split()[3]) for line in lines}


def test_a_class_is_called_positive_by_its_text(ask, tmp_path):
    code, _, err = ask(*FIT, "--model", "logistic", "--positive", "FALSE", "-o", "model.json", "--yes")
    assert code == 0, err
    assert json.loads((tmp_path / "model.json").read_text())["parameters"]["positive"] is False
    asked = ["evaluate", "model.json", "people", "--epsilon", "1", "--yes"]
    code, out, err = ask(*asked)
    assert code == 0, err
    assert "Charged epsilon 1" in err
    assert "p(" not in out
    both = {}
    for name in ("true", "false"):
        code, out, err = ask(*asked, "--positive", name)
        assert code == 0, err
        assert "Stored: nothing charged" in err
        both[name] = calibration(out, name)
    assert len(both["true"]) > 2
    for p, share in both["true"].items():
        (other,) = (s for q, s in both["false"].items() if abs(p + q - 1) < 0.002)
        assert share + other == pytest.approx(1, abs=0.002)
    code, _, err = ask(*asked, "--positive", "maybe")
    assert code == 2
    assert "one of two classes, and the target has False, True" in err


def test_of_a_number_no_class_is_positive(ask):
    line = ["fit", "people", "--target", "age", "--model", "linear", "--epsilon", "1", "-o", "line.json", "--yes"]
    assert ask(*line)[0] == 0
    code, _, err = ask("evaluate", "line.json", "people", "--epsilon", "1", "--positive", "7", "--yes")
    assert code == 2
    assert "tells no two classes" in err
    assert "Charged" not in err


def test_the_method_and_a_public_number_of_rows_are_named(ask, tmp_path):
    code, _, err = ask(
        *FIT, "--model", "logistic", "--method", "newton", "--rows", "4000", "--bins", "4", "-o", "model.json", "--yes"
    )
    assert code == 0, err
    written = json.loads((tmp_path / "model.json").read_text())["parameters"]
    assert (written["method"], written["rows"], written["bins"]) == ("newton", 4000, 4)


def test_pairs_of_columns_are_named_or_looked_for(ask, tmp_path):
    code, _, err = ask(*FIT, "--pairs", "age,ward", "-o", "named.json", "--yes")
    assert code == 0, err
    assert json.loads((tmp_path / "named.json").read_text())["parameters"]["pairs"] == [["age", "ward"]]
    assert "Pairs that act" not in err
    code, _, err = ask(*FIT, "--pairs", "auto", "-o", "sought.json", "--yes")
    assert code == 0, err
    assert json.loads((tmp_path / "sought.json").read_text())["parameters"]["pairs"] == "auto"
    assert "Pairs that act together: " in err
    for wrong in (["age"], ["age,ward,x"], ["auto", "age,ward"]):
        code, _, err = ask(*FIT, *(word for pair in wrong for word in ("--pairs", pair)), "-o", "wrong.json", "--yes")
        assert code == 2
        assert "write two columns, as in --pairs age,job" in err
        assert "Charged" not in err
    code, _, err = ask(*FIT, "--model", "logistic", "--pairs", "auto", "-o", "wrong.json", "--yes")
    assert code == 2
    assert "takes no pairs" in err


def test_that_only_the_mean_was_learned_is_said(ask, tmp_path):
    line = ["fit", "people", "--target", "age", "--features", "ward", "--model", "linear", "--epsilon", "0.1", "--yes"]
    code, _, err = ask(*line, "--rows", "100", "-o", "few.json", "--assume-rows", "100")
    assert code == 0, err
    assert "only that would be learned" in err
    assert "tell the mean of age alone: only that was learned." in err
    code, _, err = ask(*line, "--method", "mean", "-o", "asked.json")
    assert code == 0, err
    assert "only that was learned" not in err


def test_several_models_are_chosen_among_and_charged_once(ask, tmp_path):
    both = [*FIT, "--model", "logistic", "--model", "categorical-nb", "-o", "model.json", "--yes"]
    code, _, err = ask(*both)
    assert code == 0, err
    figures = [line for line in err.splitlines() if line.startswith("On the synthetic table: ")]
    assert len(figures) == 2
    names = {"logistic": "LogisticRegression", "categorical-nb": "CategoricalNB"}
    best = json.loads((tmp_path / "model.json").read_text())["estimator"]
    assert best in names.values()
    assert f"Fitted: {best}(" in err
    assert "Charged epsilon 1;" in err
    code, _, err = ask(*both, "--force")
    assert code == 0, err
    assert "Stored: nothing charged" in err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([*FIT, "--model", "linear", "--model", "logistic", "-o", "m.json", "--yes"], 3, "of declared range"),
        ([*FIT, "--model", "k-means", "--model", "logistic", "-o", "m.json", "--yes"], 2, "target"),
        ([*FIT, "-o", "model.txt", "--yes"], 2, "written as .json"),
        ([*FIT, "-o", "no/model.json", "--yes"], 2, "no folder"),
        ([*FIT, "-o", "people.json"], 2, "add --yes"),
        ([*FIT, "--clusters", "3"], 2, "takes no clusters"),
        ([*FIT, "--method", "newton"], 2, "takes no method"),
        ([*FIT, "--positive", "maybe"], 2, "one of two classes"),
        ([*FIT, "--model", "linear", "--positive", "true"], 2, "takes no positive"),
        ([*FIT[:3], "age", *FIT[4:], "--positive", "true"], 2, "and the target has none"),
        ([*FIT[:3], "nothing", *FIT[4:], "--positive", "true"], 2, "has no column 'nothing'"),
        ([*FIT, "--model", "logistic", "--method", "moments"], 2, 'expected "descent", or "newton"'),
        (["fit", "people", "--epsilon", "1"], 2, "which column is learned"),
        (["fit", "nobody", "--target", "married", "--epsilon", "1"], 2, "not a private table"),
        (["predict", "none.json", "people.csv"], 3, "cannot read the model"),
        (["predict", "hubbub.toml", "people.csv"], 2, "not a fitted model"),
        (["evaluate", "people.csv", "people", "--epsilon", "1", "--yes"], 2, "not a fitted model"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_charged(ask, arguments, code, says):
    found, _, err = ask(*arguments)
    assert found == code, err
    assert says in err
    assert "Charged" not in err
