"""One of several models: chosen on a synthetic table, fitted on the rows, charged as one plan."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import rho_of_epsilon
from hubbub.errors import BudgetError, ParameterError, PolicyError, QueryError
from hubbub.learning import CategoricalNB, KMeans, LinearRegression, LogisticRegression
from hubbub.learning.choice import figure_of
from hubbub.learning.exact import Coded
from hubbub.mechanisms.calibration import Spend
from hubbub.session import Session
from hubbub.session.choice import ChoiceAsked, ask_fit
from hubbub.session.run import Order
from hubbub.session.runner import request_again
from seeded import SeededBits

N = 6000
COLUMNS = {
    "age": hb.between(0, 100, nullable=False),
    "job": hb.one_of("a", "b", "c"),
    "ill": hb.one_of("yes", "no"),
    "cost": hb.between(0, 100, nullable=False),
    "w": hb.between(0, 4, nullable=False),
}
HALF = Fraction(1, 2 * 10**6)


def frame(n: int = N, job: str = "abc") -> pa.Table:
    """Who is ill depends on age alone, in the middle most: a line through age sees nothing."""
    rng = np.random.default_rng(3)
    age = rng.integers(0, 101, n)
    ill = np.where(np.abs(age - 50) < 20, rng.random(n) < 0.9, rng.random(n) < 0.1)
    return pa.table(
        {
            "age": age,
            "job": np.array(list(job))[rng.integers(0, len(job), n)],
            "ill": np.where(ill, "yes", "no"),
            "cost": np.clip(age + rng.integers(-9, 10, n), 0, 100),
            "w": rng.integers(0, 5, n),
        }
    )


def session(source: Any = None, budget: Any = None) -> Session:
    table = hb.table(frame() if source is None else source, unit=hb.EACH_ROW, columns=COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Session({"t": table}, budget=budget or hb.Budget(9, 1e-6), ledger=None, _bits=SeededBits(7))


LINE = LogisticRegression(["age", "job"], "ill")
BINS = LogisticRegression(["age", "job"], "ill", bins=10)


@pytest.mark.parametrize("models", [[LINE, BINS], [BINS, LINE]])
def test_the_model_that_suits_is_chosen_and_the_plan_charged_once(models: list[Any]) -> None:
    with session() as s:
        looked = s.check_fit(models, "t", epsilon=2, assume_rows=N)
        assert looked.epsilon == 2
        assert len(looked.candidates) == 2
        assert "the best of 2 models would cost epsilon 2" in str(looked)
        assert not s.history()
        (space,) = s._data.spaces().values()
        before = s.ledger.balance.left(space).rho
        model = s.fit(models, "t", epsilon=2)
        assert model.bins == 10
        assert model.cost == 2
        assert model.figures_[repr(BINS)] > model.figures_[repr(LINE)] + 0.2
        assert (model.predict(frame()) == np.array(frame()["ill"])).mean() > 0.8
        again = s.fit(models, "t", epsilon=2)
        assert not again.charged
        assert again.to_json() == model.to_json()
        assert again.figures_ == model.figures_
        assert s.check_fit(models, "t", epsilon=2).stored
        (entry,) = [e for e in s.history() if e.kind == "question"]
        assert entry.sql == "the best of 2 models of t for ill"
        spent = before - s.ledger.balance.left(space).rho
        assert rho_of_epsilon(2, HALF) * Fraction(4, 5) < spent <= rho_of_epsilon(2, HALF)


def test_what_is_charged_does_not_depend_on_which_one_is_chosen() -> None:
    with session() as s:
        asked = ask_fit(s._door, [LINE, BINS], "t", epsilon=2)
        assert isinstance(asked, ChoiceAsked)
        whole = rho_of_epsilon(2, HALF)
        assert asked.question.rho == whole / 5
        assert {p.spend.amount for p in asked.candidates.problems} == {whole * Fraction(4, 5)}


def test_what_cannot_be_chosen_from_is_refused_and_nothing_charged() -> None:
    with session() as s:
        for models, error, says in (
            ([LINE], ParameterError, "at least two"),
            ([LINE, LogisticRegression(["age", "job"], "ill")], ParameterError, "twice"),
            ([LINE, LogisticRegression(["age"], "job")], ParameterError, "the same column"),
            ([KMeans(["age"], n_clusters=2), KMeans(["age"], n_clusters=3)], ParameterError, "the same column"),
            ([LINE, LogisticRegression(["age"], "ill", weight="w")], ParameterError, "same weights"),
            ([LINE, "logistic"], QueryError, "expected a model"),
            ([], ParameterError, "at least two"),
        ):
            with pytest.raises(error, match=says):
                s.fit(models, "t", epsilon=1)  # type: ignore[type-var]
        with pytest.raises(BudgetError):
            s.fit([LINE, BINS], "t", epsilon=100)
        assert not s.history()
    with session(budget=hb.Budget(3)) as s, pytest.raises(PolicyError, match="delta"):
        s.fit([CategoricalNB(["age"], "ill"), CategoricalNB(["job"], "ill")], "t", epsilon=1)


def test_where_no_row_has_declared_values_the_first_is_fitted() -> None:
    with session(frame(job="xyz")) as s:
        model = s.fit([LINE, BINS], "t", epsilon=2)
        assert model.figures_ == {}
        assert model.bins is None


def test_a_number_and_weights_are_chosen_by_r_squared() -> None:
    with session() as s:
        models = [LinearRegression(["job"], "cost", weight="w"), LinearRegression(["age", "job"], "cost", weight="w")]
        model = s.fit(models, "t", epsilon=4)
        assert list(model.features) == ["age", "job"]
        assert max(model.figures_.values()) > 0.5


def test_another_process_makes_the_same_request_of_its_words() -> None:
    with session() as s:
        asked = ask_fit(s._door, [LINE, BINS], "t", epsilon=1)
        order = s._door.open(asked.request(s._data), sent=True)
        assert isinstance(order, Order)
        again = request_again(Order.from_wire(order.to_wire()), s._data)
        assert again.key(order.version) == order.key
        assert json.dumps(dict(again.ask())) == json.dumps(dict(order.ask()))


def test_figures_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(5)
    label, scores = rng.integers(0, 2, 300), rng.integers(-9, 9, 300)
    problem = LINE.problem(COLUMNS, spend=Spend(rho=Fraction(1)))
    rows = Coded(problem.design, [np.zeros(300, np.int64)] * 2, label)
    pairs = [(a, b) for a in scores[label == 1] for b in scores[label == 0]]
    wanted = sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)
    assert figure_of(problem, scores[None], rows) == pytest.approx(wanted)
