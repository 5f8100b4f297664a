"""Models by way of a session: charged before rows are read, stored, free again, and the same in two processes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import rho_of_epsilon
from hubbub.errors import BudgetError, ParameterError, PolicyError, QueryError
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
from hubbub.learning.bases import turned
from hubbub.learning.evaluation import Evaluator
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.recording import recording
from hubbub.session import Session
from hubbub.session.model import ask_model
from hubbub.session.run import Order
from hubbub.session.runner import request_again
from seeded import SeededBits

N = 3000


def frame(n: int = N) -> pa.Table:
    rng = np.random.default_rng(2)
    age = rng.integers(0, 100, n)
    job = rng.integers(0, 3, n)
    ill = np.where(age / 20 - 2.5 + job + rng.logistic(0, 0.3, n) > 1, "yes", "no")
    return pa.table({"id": np.arange(n) // 2, "age": age, "job": np.array(list("abc"))[job], "ill": ill})


def people(source: pa.Table | None = None, **changes: Any) -> Any:
    declared: dict[str, Any] = {
        "unit": "id",
        "max_total": 2,
        "columns": {"age": hb.between(0, 100), "job": hb.one_of("a", "b", "c"), "ill": hb.one_of("yes", "no")},
    }
    return hb.table(frame() if source is None else source, **(declared | changes))


def session(table: Any = None, budget: Any = None) -> Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Session({"t": table or people()}, budget=budget or hb.Budget(9, 1e-6), ledger=None, _bits=SeededBits(7))


@pytest.fixture
def opened() -> Iterator[Session]:
    with session() as s:
        yield s


MODEL = LogisticRegression(target="ill")


def test_a_fit_is_charged_once_and_then_free(opened: Session) -> None:
    looked = opened.check_fit(MODEL, "t", epsilon=2, assume_rows=N)
    assert not opened.history()
    assert not looked.stored
    assert looked.epsilon == 2
    assert "would cost epsilon 2" in str(looked)
    model = opened.fit(MODEL, "t", epsilon=2)
    assert model is not MODEL
    assert not hasattr(MODEL, "classes_")
    assert model.charged
    assert model.cost == 2
    rows = frame()
    assert (model.predict(rows) == np.array(rows["ill"])).mean() > 0.85
    again = opened.fit(MODEL, "t", epsilon=2)
    assert not again.charged
    assert again.cost == 0
    assert again.to_json() == model.to_json()
    assert opened.check_fit(MODEL, "t", epsilon=2).stored
    (entry,) = [e for e in opened.history() if e.kind == "question"]
    assert entry.sql == "LogisticRegression of t for ill"
    assert model.receipt["model"] == "LogisticRegression"
    assert model.receipt["rows_per_unit"] == 2


def test_what_is_charged_is_what_is_drawn(opened: Session) -> None:
    before = opened.ledger.balance.left("id")
    with recording() as records:
        opened.fit(MODEL, "t", epsilon=2)
    drawn = sum((r.sensitivity / (2 * r.distribution.sigma2) for r in records), Fraction(0))
    after = opened.ledger.balance.left("id")
    assert before.rho - after.rho == drawn
    assert drawn <= rho_of_epsilon(2, Fraction(1, 2 * 10**6))


def test_another_parameter_is_another_question(opened: Session) -> None:
    opened.fit(MODEL, "t", epsilon=1)
    for other in (
        LogisticRegression(["age"], "ill"),
        LogisticRegression(target="ill", bins=4),
        LogisticRegression(target="ill", rows=N),
    ):
        assert not opened.check_fit(other, "t", epsilon=1).stored
    assert not opened.check_fit(MODEL, "t", epsilon=1, rows_per_unit=1).stored
    assert opened.check_fit(LogisticRegression(target="ill"), "t", epsilon=1).stored


def test_what_cannot_be_fitted_is_refused_and_nothing_charged(opened: Session) -> None:
    for call, error in (
        (lambda: opened.fit(MODEL, "nowhere", epsilon=1), QueryError),
        (lambda: opened.fit("logistic", "t", epsilon=1), QueryError),
        (lambda: opened.fit(LogisticRegression(target="age"), "t", epsilon=1), PolicyError),
        (lambda: opened.fit(LogisticRegression(["id"], "ill"), "t", epsilon=1), PolicyError),
        (lambda: opened.fit(LogisticRegression(target="ill", bins={"age": {1, 2}}), "t", epsilon=1), ParameterError),
        (lambda: opened.fit(MODEL, "t", epsilon=100), BudgetError),
        (lambda: opened.fit(MODEL, "t", epsilon=1, rows_per_unit=0), ParameterError),
    ):
        with pytest.raises(error):
            call()
    assert not opened.history()


@pytest.mark.parametrize("model", [MODEL, LinearRegression(target="age"), GaussianNB(["age"], "ill")])
def test_noise_that_64_bits_do_not_hold_is_refused_before_the_charge(opened: Session, model: Any) -> None:
    """The noise of 2^31 rows of a unit leaves 64 bits; a table that has no such unit would fail just as well."""
    with pytest.raises(ParameterError, match="Give a smaller rows_per_unit"):
        opened.fit(model, "t", epsilon="0.00001", rows_per_unit=2**31 - 1)
    with pytest.raises(ParameterError, match="at most 9007199254740992"):
        opened.fit(LinearRegression(target="age", rows=10**200), "t", epsilon=1)
    assert not opened.history()


def test_a_pure_budget_is_refused_with_the_way_out() -> None:
    with session(budget=hb.Budget(3)) as s, pytest.raises(PolicyError, match="CategoricalNB"):
        s.fit(MODEL, "t", epsilon=1)


def test_other_rows_and_units_are_another_question() -> None:
    with session(people(unit="id", max_total=1)) as one, session(people(unit=hb.EACH_ROW, max_total=None)) as two:
        keys = [
            ask_model(s._data, s.ledger.balance.budget, MODEL, "t", epsilon=1).request(s._data).key("v")
            for s in (one, two)
        ]
    assert keys[0] != keys[1]


def test_a_table_without_rows_is_fitted() -> None:
    with session(people(frame(0))) as s:
        model = s.fit(MODEL, "t", epsilon=1)
    assert model.predict_proba(frame(3)).shape == (3, 2)


def test_the_request_is_made_anew_from_its_words(opened: Session) -> None:
    asked = ask_model(opened._data, opened.ledger.balance.budget, MODEL, "t", epsilon=1)
    order = opened._door.open(asked.request(opened._data), sent=True)
    assert isinstance(order, Order)
    again = request_again(Order.from_wire(order.to_wire()), opened._data)
    assert again.key(order.version) == order.key
    assert json.dumps(dict(again.ask())) == json.dumps(dict(order.ask()))


def test_nothing_of_the_rows_can_be_printed_or_pickled(opened: Session) -> None:
    asked = ask_model(opened._data, opened.ledger.balance.budget, MODEL, "t", epsilon=1)
    coded = asked.problem.encode(*opened._data.owned("t", asked.problem.columns))
    assert repr(coded) == "Coded(not shown)"
    with pytest.raises(TypeError, match="cannot be pickled"):
        coded.__reduce__()


def test_a_model_is_evaluated_on_another_table_and_that_is_charged(opened: Session) -> None:
    model = opened.fit(MODEL, "t", epsilon=3)
    found = opened.evaluate(model, "t", epsilon=3)
    rows = frame()
    truth = np.array(rows["ill"])
    assert found.charged
    assert found.cost == 3
    right = (model.predict(rows) == truth).mean()
    low, high = found.intervals["accuracy"]
    assert low < right < high
    score = model.predict_proba(rows)[:, 1]
    pairs = score[truth == "yes"][:, None] - score[truth == "no"][None]
    assert found.auc == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2, abs=0.02)
    assert found.rows == pytest.approx(N, abs=100)
    assert all(abs(p - share) < 0.3 for p, share, n in found.calibration if n > 100)
    assert "accuracy" in str(found)
    assert not model.evaluate(opened, "t", epsilon=3).charged


def test_several_classes_and_numbers_are_evaluated() -> None:
    with session(budget=hb.Budget(60, 1e-6)) as s:
        many = s.evaluate(s.fit(CategoricalNB(["age"], "job"), "t", epsilon=5), "t", epsilon=5)
        assert set(many.confusion) == {"a", "b", "c"}
        assert many.auc is None
        line = s.evaluate(s.fit(LinearRegression(["job", "ill"], "age"), "t", epsilon=9), "t", epsilon=9)
        truth, model = np.array(frame()["age"], float), s.fit(LinearRegression(["job", "ill"], "age"), "t", epsilon=9)
        left = ((model.predict(frame()) - truth) ** 2).mean()
        assert line.rmse == pytest.approx(left**0.5, rel=0.1)
        assert line.r2 == pytest.approx(1 - left / truth.var(), abs=0.1)
        with pytest.raises(ParameterError, match="predicts no column"):
            s.evaluate(s.fit(KMeans(["age"]), "t", epsilon=1), "t", epsilon=1)
        with pytest.raises(ParameterError, match="not fitted"):
            s.evaluate(MODEL, "t", epsilon=1)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_an_evaluation_moves_by_what_is_charged_at_most(relation: str) -> None:
    from fractions import Fraction

    from hubbub.audit import replay
    from hubbub.learning import CategoricalNB, LinearRegression
    from hubbub.learning.evaluation import Evaluator
    from hubbub.mechanisms.calibration import Spend

    columns = {"age": hb.between(0, 100), "job": hb.one_of("a", "b", "c"), "ill": hb.one_of("yes", "no")}
    rows = frame(40)
    far = pa.table({"id": [77, 77, 77], "age": [100, 0, -9], "job": ["zz", "a", "b"], "ill": ["yes", "no", "no"]})
    near = pa.table({"id": [77, 77], "age": [1, 99], "job": ["c", "c"], "ill": ["no", "yes"]})
    base = rows if relation == "add_remove" else pa.concat_tables([rows, near])
    for model in (LogisticRegression(target="ill"), CategoricalNB(["age"], "job"), LinearRegression(["job"], "age")):
        fitted = model.fit(rows, columns=columns, epsilon=3, delta="1e-6", bits=SeededBits(1))
        for spend in (Spend(rho=Fraction(1, 8)), Spend(epsilon=Fraction(1))):
            evaluator = Evaluator(fitted, spend, 2, relation)

            def run(table: pa.Table, evaluator: Evaluator = evaluator) -> str:
                steps = evaluator.steps(evaluator.problem.encode(table, np.array(table["id"])), bits=SeededBits(2))
                try:
                    while True:
                        next(steps)
                except StopIteration as done:
                    return json.dumps(done.value)

            assert replay(run, base, pa.concat_tables([rows, far])) == []
            assert replay(run, pa.concat_tables([rows, far]), base) == []


def test_naive_bayes_is_fitted_and_evaluated_under_a_pure_budget() -> None:
    with session(budget=hb.Budget(3)) as s:
        model = s.fit(CategoricalNB(target="ill"), "t", epsilon=1)
        assert s.remaining == 2
        figures = s.evaluate(model, "t", epsilon=1)
        assert s.remaining == 1
        assert figures.accuracy is not None
        assert figures.accuracy > 0.7


def test_weights_and_null_units_go_through_a_session() -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "id": [None if i % 7 == 0 else i // 3 for i in range(900)],
            "age": [None if i % 11 == 0 else int(a) for i, a in enumerate(rng.integers(0, 100, 900))],
            "w": rng.uniform(0, 9, 900),
            "ill": [None if i % 13 == 0 else "yes" if i % 2 else "no" for i in range(900)],
        }
    )
    columns = {"age": hb.between(0, 100), "w": hb.between(0, 9), "ill": hb.one_of("yes", "no")}
    with session(people(table, columns=columns)) as s:
        asked = ask_model(
            s._data, s.ledger.balance.budget, LogisticRegression(["age"], "ill", weight="w"), "t", epsilon=1
        )
        coded = asked.problem.encode(*s._data.owned("t", asked.problem.columns))
        rows = [(i // 3, i) for i in range(900) if i % 7 and i % 13]
        most = sum(min(2, sum(1 for u, _ in rows if u == unit)) for unit in {u for u, _ in rows})
        assert len(coded.label) == most
        assert coded.weights is not None
        assert 0 <= coded.weights.min() <= coded.weights.max() <= 256
        assert s.fit(LogisticRegression(["age"], "ill", weight="w"), "t", epsilon=1).classes_.tolist() == ["no", "yes"]


def test_a_model_written_by_hand_is_not_asked_about_rows() -> None:
    """Had it more outputs than classes, the counts would be longer where a row comes to the last one: an answer."""
    rows = pa.table({"id": [1, 2, 3, 4], "x": [0.0, 0, 0, 10], "y": ["a", "b", "c", "c"]})
    columns = {"x": hb.between(0, 10), "y": hb.one_of("a", "b", "c")}
    with session(hb.table(rows, unit="id", max_total=1, columns=columns)) as s:
        fitted = s.fit(LogisticRegression(target="y"), "t", epsilon=1)
        left = s.remaining
        for change in ({"weights": [[0, 0]] * 4 + [[-1, 1 << 16]]}, {"weights": [[0, 0]]}, {"weights": [[0]] * 3}):
            kept = json.loads(fitted.to_json())
            kept["fit"] |= change
            with pytest.raises(ParameterError, match="does not fit its own columns and classes"):
                s.evaluate(load(json.dumps(kept)), "t", epsilon="0.001")
        assert s.remaining == left
        kept = json.loads(s.fit(KMeans(["x"], n_clusters=2), "t", epsilon=1).to_json())
        kept["target"] = json.loads(fitted.to_json())["target"]
        left = s.remaining
        with pytest.raises(ParameterError, match="does not fit its own columns and classes"):
            s.evaluate(load(json.dumps(kept)), "t", epsilon="0.001")
        assert s.remaining == left


WRITTEN: list[Any] = [None, "zzz", -1, 10**400, float("nan"), "1/0", [["a"]]]


def _spoiled(kept: Any) -> Iterator[Any]:
    """A written model with one part of it exchanged for each of `WRITTEN`; of the parts of a list the first."""
    yield from WRITTEN
    if isinstance(kept, dict):
        for name, part in kept.items():
            yield from ({**kept, name: other} for other in _spoiled(part))
    elif isinstance(kept, list) and kept:
        yield from ([other, *kept[1:]] for other in _spoiled(kept[0]))


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(["age", "job"], "ill"),
        CategoricalNB(["age", "ill"], "job"),
        LinearRegression(["job", "ill"], "age"),
        pytest.param(GaussianNB(["age"], "ill"), marks=pytest.mark.soak),
        pytest.param(AdditiveModel(["age", "job"], "ill"), marks=pytest.mark.soak),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_written_model_fails_before_any_row_or_not_at_all(model: Any) -> None:
    """Of a table of one person, or of nobody: an error for the one alone would tell, after the charge."""
    declared = {"age": hb.between(0, 100), "job": hb.one_of("a", "b", other="c"), "ill": hb.one_of("yes", "no")}
    with session(people(frame(50), columns=declared)) as s:
        kept = json.loads(s.fit(model, "t", epsilon=5).to_json())
    nulls = pa.table({field.name: pa.nulls(1, field.type) for field in frame(1).schema})
    tables = [frame(1).slice(0, 0), frame(1), pa.concat_tables([frame(1), nulls])]
    asked = 0
    for spoiled in _spoiled(kept):
        try:
            evaluator = Evaluator(load(json.dumps(spoiled)), Spend(epsilon=Fraction(1)))
        except ParameterError:
            continue
        problem = evaluator.problem
        asked += 1
        for table in tables if set(problem.columns) <= set(frame(1).column_names) else ():
            for _ in evaluator.steps(problem.encode(table, None)):
                pass
    assert asked > 20


def test_a_model_of_which_a_score_may_leave_64_bits_is_not_charged(opened: Session) -> None:
    """It wrapped around here, and would be an error where rows stay in a database."""
    kept = json.loads(opened.fit(LogisticRegression(["age", "job"], "ill"), "t", epsilon=1).to_json())
    weights = kept["fit"]["weights"][0]
    weights[:] = [0, (1 << 54) - 1, *[0] * (len(weights) - 2)]  # of features up to 2^8 each
    assert opened.evaluate(load(json.dumps(kept)), "t", epsilon=1).charged
    weights[-1] = 1 << 53
    left = opened.remaining
    with pytest.raises(ParameterError, match="does not fit its own columns and classes"):
        opened.evaluate(load(json.dumps(kept)), "t", epsilon=1)
    assert opened.remaining == left


def test_a_written_model_that_no_answer_could_be_read_by_is_not_charged(opened: Session) -> None:
    kept = json.loads(opened.fit(LogisticRegression(target="ill", positive="yes"), "t", epsilon=1).to_json())
    kept["parameters"]["positive"] = "perhaps"
    left = opened.remaining
    with pytest.raises(ParameterError, match="one of two classes, and the target has 'no', 'yes'"):
        opened.evaluate(load(json.dumps(kept)), "t", epsilon=1)
    assert opened.remaining == left


def test_a_check_says_what_excess_of_the_loss_to_expect(opened: Session) -> None:
    """Of descent: noise times sqrt(coordinates / steps) / rows. Half of it with twice the rows."""
    looked = opened.check_fit(MODEL, "t", epsilon=2, assume_rows=N)
    # An intercept, the number, three values, in the coordinates in which they are learned.
    assert looked.excess == pytest.approx(looked.noise * (5 / looked.steps) ** 0.5 / N)
    assert f"about {looked.excess:.1g} above the best" in str(looked)
    assert not looked.mean_alone
    more = opened.check_fit(MODEL, "t", epsilon=2, assume_rows=2 * N).excess
    assert more == pytest.approx(looked.excess / 2, rel=1e-6)
    for other in (CategoricalNB(target="ill"), LogisticRegression(target="ill", method="newton"), KMeans(["age"])):
        assert opened.check_fit(other, "t", epsilon=2).excess is None


def test_the_loss_is_above_the_best_by_no_more_than_is_expected() -> None:
    """The mean of 6 draws of a seed, with the best weights those of a fit with hardly any noise."""
    rows = frame()
    columns = people().columns
    ill = np.array(rows["ill"]) == "yes"

    def loss(model: Any) -> float:
        return float(-np.log(model.predict_proba(rows)[np.arange(N), ill.astype(int)]).mean())

    best = LogisticRegression(target="ill").fit(rows, columns=columns, epsilon=1000, delta="1e-6", bits=SeededBits(1))
    spent = Spend(rho=rho_of_epsilon(1, "1e-6"))
    expected = MODEL._excess(MODEL.problem(columns, spend=spent), N)
    assert expected is not None
    length = float(np.sqrt((best.coef_**2).sum() + best.intercept_[0] ** 2))
    drawn = [
        loss(LogisticRegression(target="ill").fit(rows, columns=columns, epsilon=1, delta="1e-6", bits=SeededBits(s)))
        for s in range(6)
    ]
    assert 0 < np.mean(drawn) - loss(best) < expected * length


def test_it_is_said_that_only_the_mean_was_learned() -> None:
    with session() as s:
        few = s.check_fit(LinearRegression(["job"], "age"), "t", epsilon="0.1", assume_rows=100)
        assert few.mean_alone
        assert "only that would be learned" in str(few)
        assert few.excess == pytest.approx((few.noise / 100) ** 2 / 2)
        assert not few.mean_asked
        asked = s.check_fit(LinearRegression(["job"], "age", method="mean"), "t", epsilon=1, assume_rows=N)
        assert asked.mean_alone
        assert asked.mean_asked
        assert "as asked" in str(asked)
        assert "So little" not in str(asked)
        assert not s.check_fit(LinearRegression(["job"], "age"), "t", epsilon=1, assume_rows=N).mean_alone
        mean = s.fit(AdditiveModel(["job"], "age", rows=10), "t", epsilon="0.1")
        assert mean.method_ == "mean"
        assert not mean.coef_.any()
        assert s.fit(LinearRegression(["job"], "age"), "t", epsilon=1).method_ == "descent"
        assert s.fit(LinearRegression(["job"], "age", method="moments"), "t", epsilon=1).method_ == "moments"


@pytest.mark.parametrize(
    ("model", "squared"),
    [
        (PCA(["age", "job"]), lambda problem: turned(problem.design).norm2),
        (LogisticRegression(target="ill", method="newton"), lambda problem: turned(problem.design).norm2),
        (LinearRegression(["job"], "age", method="moments"), lambda problem: problem.design.norm2),
    ],
    ids=["PCA", "newton", "moments"],
)
def test_a_receipt_tells_the_length_of_rows_as_they_are_summed(model: Any, squared: Any) -> None:
    with session() as s:
        fitted = s.fit(model, "t", epsilon=1)
        assert fitted.kept_
        asked = ask_model(s._data, lambda space: hb.Budget(9, 1e-6), model, "t", epsilon=1)
        assert asked.request(s._data).details["squared_length"] == squared(asked.problem)
        if not isinstance(model, LinearRegression):
            assert squared(asked.problem) < asked.problem.design.norm2


@pytest.mark.parametrize("number", ["1e999999999", "-1E+99999999", "1" * 2000, "1/0", " 1", "nan"])
@pytest.mark.parametrize("place", ["low", "range"])
def test_a_number_that_no_fit_wrote_is_refused_at_once(number: str, place: str) -> None:
    """The digits of the first would fill the memory."""
    model = LinearRegression(["x"], "y", method="mean")
    columns = {"x": hb.between(0, 1), "y": hb.between(0, 1)}
    model.fit({"x": [0.0, 1.0], "y": [0.0, 1.0]}, columns=columns, epsilon=1, delta=1e-6, bits=SeededBits(3))
    kept = json.loads(model.to_json())
    if place == "range":
        kept["range"][1] = number
    else:
        kept["design"]["x"][place] = number
    with pytest.raises(ParameterError, match="not a fitted model"):
        load(json.dumps(kept))
