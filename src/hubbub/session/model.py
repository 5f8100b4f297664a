"""Models, as the door takes them: declared, priced, then fitted on exact sums with noise (`hubbub.learning`).

A fit reads whole rows, once; each unit keeps at most R of them. All of its amount is reserved at the charge; each sum
that it draws is admitted first, and what rounding left comes back. What is stored is the fitted model as JSON: a
function of noisy sums and of declarations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.accounting import ZCDP, Event, PureDP, rho_of_epsilon
from hubbub.arguments import a_name, an_amount
from hubbub.engines.base import InPlace
from hubbub.errors import InternalError, PolicyError, QueryError
from hubbub.ledger.budget import Budget, EpsilonLike, decimal_text, short_text
from hubbub.progress import at_work
from hubbub.session.run import Door, Request, Steps
from hubbub.session.whole_rows import private_table, request_about_rows, rows_that_count
from hubbub.sql.bind.scope import did_you_mean
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import as_held

if TYPE_CHECKING:
    from hubbub.learning.evaluation import Evaluation, Evaluator
    from hubbub.learning.model import Estimator, Problem
    from hubbub.mechanisms.calibration import Spend
    from hubbub.noise import Bits
    from hubbub.session.data import OpenTables

__all__ = [
    "EvaluationAsked",
    "FitCheck",
    "ModelAsked",
    "ask_evaluation",
    "ask_model",
    "evaluation",
    "model_again",
]


@dataclass(frozen=True)
class FitCheck:
    """What a fit would cost and how it would go.

    epsilon: its cost; remaining: what is left before it. stored: whether the same fit is stored, and free. features:
    how many there are; rows_per_unit: how many rows of a unit count. steps: passes over the rows, and noise: the
    standard deviation of the noise on a sum over rows in one of them, in rows, both for about `rows` rows. excess: how
    far the loss of a row is expected above the best that such a model has on these rows, per unit of length of the best
    weights (`hubbub.learning.descent`); None where no law says it. mean_alone: nothing but the target's mean would be
    learned; excess is then that of half the squared error, as a share of the squared range. candidates: of which of
    several models could be fitted, the same of each; the other figures are then those of the first. mean_asked: whether
    method="mean" was asked for.
    """

    epsilon: Fraction
    remaining: Fraction
    stored: bool
    model: str
    features: int
    rows_per_unit: int
    rows: int
    steps: int
    noise: float
    candidates: tuple[FitCheck, ...] = ()
    excess: float | None = None
    mean_alone: bool = False
    mean_asked: bool = False

    def __str__(self) -> str:
        cost = "nothing: it is stored" if self.stored else f"epsilon {decimal_text(self.epsilon)}"
        if self.candidates:
            paid = f"{self.model} of {len(self.candidates)} models would cost {cost}; {short_text(self.remaining)} is "
            share = "left. A fifth of it pays for the synthetic table by which the model is chosen."
            return "\n".join([paid + share, *(f"{c.model}, {c._going()}" for c in self.candidates)])
        going = self._going()
        return (
            f"{self.model} of {self.features} features would cost {cost}; {short_text(self.remaining)} is left.\n"
            f"{going[0].upper()}{going[1:]}"
        )

    def _going(self) -> str:
        much = "" if self.noise < self.rows / 10 else " That is much: spend more, or use fewer columns."
        return (
            f"with about {self.rows:,} rows, {self.rows_per_unit} of a unit: {self.steps} "
            f"{'pass' if self.steps == 1 else 'passes'}, each sum over rows with noise of +-{self.noise:,.3g} rows."
            f"{much}{self._expected()}"
        )

    def _expected(self) -> str:
        if self.mean_alone:
            if self.mean_asked:
                return " The mean of the target alone would be learned, as asked."
            return " So little tells the mean of the target, and nothing else: only that would be learned."
        if self.excess is None:
            return ""
        return (
            f" The loss of a row is expected to be about {self.excess:.1g} above the best, for each unit of length of "
            "the best weights."
        )


@dataclass(frozen=True, eq=False)
class ModelAsked:
    """A model that could be fitted. ask: the same as JSON."""

    table: str
    problem: Problem
    epsilon: Fraction
    ask: Mapping[str, Any]

    def request(self, data: OpenTables) -> Request:
        """As the door takes it."""
        problem = self.problem
        name = type(problem.estimator).__name__
        target = "" if problem.target is None else f" for {problem.target.name}"
        return request_about_rows(
            data,
            self.table,
            kind="model",
            ask=self.ask,
            epsilon=self.epsilon,
            event=_whole(problem.spend),
            key=hashlib.sha256(json.dumps([self.table, problem.key]).encode()).hexdigest(),
            text=f"{name} of {self.table}{target}",
            details={
                "model": name,
                "columns": list(problem.columns),
                "rows_per_unit": problem.rows_per_unit,
                "squared_length": max(design.norm2 for design in problem.estimator._coordinates(problem)),
            },
            columns=problem.columns,
            steps=lambda bits: _fit(self, data, bits),
            capped=True,
        )

    def check(self, assume_rows: int, *, remaining: Fraction, stored: bool) -> FitCheck:
        """What it would cost and how it would go."""
        rows = self.problem.rows or assume_rows
        steps, noise = self.problem.estimator._predicted(self.problem, rows)
        return FitCheck(
            self.epsilon,
            remaining,
            stored,
            type(self.problem.estimator).__name__,
            self.problem.design.width,
            self.problem.rows_per_unit,
            rows,
            steps,
            noise,
            excess=self.problem.estimator._excess(self.problem, rows),
            mean_alone=self.problem.estimator._learns_mean_alone(self.problem, rows),
            mean_asked=getattr(self.problem.estimator, "method", None) == "mean",
        )


def _whole(spend: Spend) -> Event:
    """What is reserved: all of the amount."""
    return PureDP(spend.amount) if spend.pure else ZCDP(spend.amount)


def _fit(asked: ModelAsked, data: OpenTables, bits: Bits | None) -> Steps:
    kept = yield from asked.problem.steps(_rows(data, asked.table, asked.problem), bits=bits)
    return json.dumps(kept)


def _rows(data: OpenTables, table: str, problem: Problem) -> Any:
    """The coded rows, in this process or where they stay."""
    if data.engine.returns_rows:
        return problem.encode(*data.owned(table, problem.columns))
    from hubbub.learning.pushed import Pushed

    def totals(write: Callable[[str, Any], str], public: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return data.totals(table, problem.columns, write, public)

    return Pushed(problem, data.catalog[table].columns, totals, problem.design)


def _check_place(data: OpenTables, table: str, problem: Problem) -> None:
    """Raises PolicyError where rows stay elsewhere, for a model that cannot be fitted there."""
    if data.engine.returns_rows:
        return
    name = type(problem.estimator).__name__
    better = problem.estimator._in_place(problem)
    if better is not None or not isinstance(data.engine, InPlace):
        raise PolicyError(
            f"the rows of {table!r} stay where they are, and a {name} as asked for takes too many passes, or rows in "
            f"this process. There can be fitted: {better}. Nothing was charged."
        )
    _check_each_row(data, table)


def _check_each_row(data: OpenTables, table: str) -> None:
    """Raises PolicyError where rows stay elsewhere, and a unit may have several or nothing can be added up."""
    if not (data.engine.returns_rows or (isinstance(data.engine, InPlace) and data.scan(table).each_row)):
        raise PolicyError(
            f"the rows of {table!r} stay where they are, and there a model is fitted or evaluated only where each row "
            "is its own unit (unit=hb.EACH_ROW). Nothing was charged."
        )


def ask_model(
    data: OpenTables,
    budget: Callable[[str], Budget],
    model: object,
    table: str,
    *,
    epsilon: EpsilonLike,
    rows_per_unit: int | None = None,
) -> ModelAsked:
    """A model that could be fitted; reads no rows. budget: of a unit space.

    Raises what `Session.fit` raises before the charge.
    """
    from hubbub.learning.model import Estimator

    if not isinstance(model, Estimator):
        raise QueryError(
            f"model: expected a model of hubbub.learning, such as LogisticRegression(target=...), got "
            f"{type(model).__name__}. Nothing was charged."
        )
    declared, info = private_table(data, a_name(table, "table")), data.catalog[table]
    _check_named(model, table, info.columns)
    amount, spend = _spent(data, budget, table, epsilon)
    rows = rows_that_count(data, table, rows_per_unit)
    problem = model.problem(
        {
            name: as_held(what, info.columns.get(name, Kind.OTHER))
            for name, what in declared.columns.items()
            if name != info.unit
        },
        spend=spend,
        whole=frozenset(name for name, kind in info.columns.items() if kind is Kind.INTEGER),
        rows_per_unit=rows,
        neighbours=declared.neighbours,
    )
    _check_place(data, table, problem)
    # Noise that cannot be drawn is refused before the charge: with as few passes as there may be, and with as many.
    for many in (1, 10**7) if problem.rows is None else (problem.rows,):
        model._check_noise(problem, many)
    ask = {
        "table": table,
        "epsilon": str(amount),
        "model": {"estimator": type(model).__name__, "parameters": model.get_params()},
        "rows_per_unit": rows,
    }
    return ModelAsked(table, problem, amount, ask)


def _check_named(model: object, table: str, columns: Mapping[str, Kind]) -> None:
    """Raises QueryError for a column of a model that the table has not: to declare it would not help."""
    features = getattr(model, "features", None)
    named = [getattr(model, "target", None), getattr(model, "weight", None)]
    for name in (*named, *(features if isinstance(features, list | tuple) else ())):
        if isinstance(name, str) and name not in columns:
            raise QueryError(f"{table!r} has no column {name!r}. {did_you_mean(name, columns)} Nothing was charged.")


def _spent(
    data: OpenTables, budget: Callable[[str], Budget], table: str, epsilon: EpsilonLike
) -> tuple[Fraction, Spend]:
    from hubbub.mechanisms.calibration import Spend

    held, amount = budget(data.scan(table).space), an_amount(epsilon)
    return amount, Spend(epsilon=amount) if held.pure else Spend(rho=rho_of_epsilon(amount, held.delta_conversion))


@dataclass(frozen=True, eq=False)
class EvaluationAsked:
    """A fitted model that could be evaluated on a table. ask: the same as JSON."""

    table: str
    evaluator: Evaluator
    epsilon: Fraction
    ask: Mapping[str, Any]

    def request(self, data: OpenTables) -> Request:
        """As the door takes it."""
        evaluator = self.evaluator
        name, columns = type(evaluator.model).__name__, evaluator.problem.columns
        return request_about_rows(
            data,
            self.table,
            kind="evaluation",
            ask=self.ask,
            epsilon=self.epsilon,
            event=_whole(evaluator.spend),
            key=hashlib.sha256(json.dumps([self.table, evaluator.key]).encode()).hexdigest(),
            text=f"how good a {name} is on {self.table}",
            details={"model": name, "columns": list(columns), "rows_per_unit": evaluator.rows_per_unit},
            columns=columns,
            steps=lambda bits: _evaluate(self, data, bits),
            capped=True,
        )


def _evaluate(asked: EvaluationAsked, data: OpenTables, bits: Bits | None) -> Steps:
    kept = yield from asked.evaluator.steps(_rows(data, asked.table, asked.evaluator.problem), bits=bits)
    return json.dumps(kept)


def ask_evaluation(
    data: OpenTables,
    budget: Callable[[str], Budget],
    model: object,
    table: str,
    *,
    epsilon: EpsilonLike,
    rows_per_unit: int | None = None,
) -> EvaluationAsked:
    """A model that could be evaluated on a table; reads no rows.

    Raises what `Session.evaluate` raises before the charge.
    """
    from hubbub.learning.evaluation import Evaluator
    from hubbub.learning.model import Estimator

    if not isinstance(model, Estimator):
        raise QueryError(f"model: expected a fitted model, got {type(model).__name__}. Nothing was charged.")
    declared = private_table(data, a_name(table, "table"))
    _check_each_row(data, table)
    rows = rows_that_count(data, table, rows_per_unit)
    amount, spend = _spent(data, budget, table, epsilon)
    evaluator = Evaluator(model, spend, rows, declared.neighbours)
    missing = [name for name in evaluator.problem.columns if name not in data.catalog[table].columns]
    if missing:
        raise QueryError(f"{table!r} has no column {missing[0]!r}, which this model uses. Nothing was charged.")
    ask = {"table": table, "epsilon": str(amount), "model": model.to_json(), "rows_per_unit": rows}
    return EvaluationAsked(table, evaluator, amount, ask)


@at_work("evaluating the model")
def evaluation(door: Door, asked: EvaluationAsked, *, fresh: bool) -> Evaluation:
    """Charge, read, draw, store; or what is stored."""
    stored, charged = door.release(asked.request(door.data), fresh=fresh)
    figures = asked.evaluator.read(stored.contents)
    cost = asked.epsilon if charged else Fraction(0)
    return replace(figures, cost=cost, charged=charged, charge_id=stored.charge_id)


def model_again(written: Mapping[str, Any]) -> Estimator:
    """The model that an order names.

    Raises InternalError for one that this version does not know.
    """
    import hubbub.learning as room
    from hubbub.learning.model import Estimator

    kind = getattr(room, written["estimator"], None)
    if not (isinstance(kind, type) and issubclass(kind, Estimator)):
        raise InternalError(f"a model of the kind {written['estimator']!r}, which this version does not know")
    return kind(**written["parameters"])
