"""`benchmarks.learning`: figures are what they are called, and a rival that is not installed stops nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import learning, learning_rivals, learning_tasks, peers
from benchmarks.learning_tasks import FRESH, TASKS, Task

import hubbub as hb


def few(*, number: bool) -> Task:
    """Forty rows of a number, a value and a target."""
    rng = np.random.default_rng(3)
    age, ward = rng.integers(0, 100, 40), np.array(["A", "B"])[rng.integers(0, 2, 40)]
    columns = {"age": hb.between(0, 100), "ward": hb.one_of("A", "B")}
    if number:
        rows, columns["t"] = {"age": age, "ward": ward, "t": age / 2.0}, hb.between(0, 50)
    else:
        rows, columns["t"] = {"age": age, "ward": ward, "t": np.where(age > 40, "yes", "no")}, hb.one_of("no", "yes")
    return Task("few", pa.table(rows), columns, "t", None if number else "yes")


@pytest.mark.parametrize("number", [False, True])
def test_without_its_rivals_the_benchmark_says_so_and_goes_on(number, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    monkeypatch.setitem(TASKS, "few", lambda: few(number=number))
    assert learning.main(["draws=2", "few", "rivals"]) == 0
    said = capsys.readouterr().out
    assert said.count("diffprivlib is not installed") == 3
    assert said.count("interpret is not installed") == 3
    assert "R^2" in said if number else "accuracy / AUC" in said


def test_a_task_whose_rows_are_not_here_is_named_and_passed_over(monkeypatch, capsys):
    def absent() -> Task:
        raise FileNotFoundError("no such file: adult.data")

    monkeypatch.setitem(TASKS, "absent", absent)
    assert learning.main(["draws=1", "absent"]) == 0
    assert "(absent: its rows are not here: no such file: adult.data)" in capsys.readouterr().out


def test_other_models_and_amounts_are_fitted_where_they_are_asked_for(monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "few", lambda: few(number=False))
    assert learning.main(["draws=1", "epsilons=2", "few", "bins", "pairs"]) == 0
    said = capsys.readouterr().out
    assert [line.split(":")[0] for line in said.splitlines() if line.endswith(":")] == [
        "without pairs",
        "16 equal bins, without pairs",
    ]
    assert learning.main(["epsilon=2", "few"]) == 2


def test_plain_ranges_are_those_of_the_same_rows():
    task = Task("t", pa.table({"gain": [0], "loss": [0]}), {"age": 1, "gain": 2}, "age", None)
    assert learning_tasks.plain(task).name == "t_plain"
    assert learning_tasks.plain(task).rows is task.rows
    assert learning_tasks.plain(task).columns["gain"] == hb.between(0, 99_999, nullable=False)


def test_rivals_are_given_the_same_rows_in_their_own_shape():
    task = few(number=True)
    held = learning_rivals._arrays(task)
    train, test = task.parts
    assert held["X"].shape == (32, 3)
    assert held["A"].shape == (8, 3)
    assert held["X"][:, 0] == pytest.approx(np.array(train["age"]) / 100)
    assert (held["A"][:, 1:].argmax(axis=1) == (np.array(test["ward"]) == "B")).all()
    assert held["nominal"] == [False, True]
    assert held["range"] == [0.0, 50.0]
    assert (held["y"] == np.array(train["t"])).all()


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(5)
    scores, truth = rng.integers(0, 5, 60) / 4, rng.random(60) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a, b in itertools.product(scores[truth], scores[~truth])]
    assert learning.auc(scores, truth) == pytest.approx(np.mean(pairs), abs=1e-12)


@pytest.mark.parametrize(("best", "said"), [(0.8, "no / no"), (0.92, "yes / no")])
def test_a_rival_is_above_where_its_mean_is_by_more_than_our_spread(best, said):
    ours = [[0.89, 0.7], [0.91, 0.9]]  # 0.90 +- 0.01 and 0.8 +- 0.1
    assert learning._verdict(ours, {"a rival": [[best, 0.85]], "another": [[0.1, 0.1]]}) == said


def test_three_tasks_and_more_are_fresh():
    assert set(FRESH) <= set(TASKS)
    assert len(FRESH) >= 3


def test_every_goal_is_of_a_task_and_incomes_may_be_cut_where_the_goals_of_income_were_measured():
    assert set(learning.GOALS) <= set(TASKS)
    assert learning.GOALS["income_160"] == learning.GOALS["income"]
