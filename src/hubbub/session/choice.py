"""One of several models, as the door takes it: chosen on a synthetic table, fitted on the rows, charged as one plan.

Composed([synthesis, fit]) is reserved (`hubbub.learning.choice` says which part is whose). The synthetic table is drawn
first, in its own steps; then the models are tried on it, which reads no rows; then the chosen one is drawn. Where
hardly any row has declared values no table is drawn, and the first model of the list is fitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hubbub.accounting import ZCDP, Composed
from hubbub.errors import QueryError
from hubbub.ledger.budget import Budget, EpsilonLike
from hubbub.progress import at_work
from hubbub.session.model import FitCheck, ModelAsked, ask_model
from hubbub.session.run import Door, Request, Steps
from hubbub.session.whole_rows import ask_synthesis, request_about_rows, synthetic_data

if TYPE_CHECKING:
    from hubbub.learning.choice import Candidates
    from hubbub.learning.model import Estimator, Problem
    from hubbub.noise import Bits
    from hubbub.session.data import OpenTables
    from hubbub.synthesis.session_adapter import SynthesisQuestion

__all__ = ["ChoiceAsked", "M", "ask_choice", "ask_fit", "fitted_model"]

M = TypeVar("M")

_FORMAT: Final = "choice 1"


@dataclass(frozen=True, eq=False)
class ChoiceAsked:
    """Models of which one could be fitted. each: as if it were asked for alone, at what is left for the fit."""

    table: str
    each: tuple[ModelAsked, ...]
    candidates: Candidates
    question: SynthesisQuestion
    epsilon: Fraction
    ask: Mapping[str, Any]

    def request(self, data: OpenTables) -> Request:
        """As the door takes it."""
        problems = self.candidates.problems
        names = [type(problem.estimator).__name__ for problem in problems]
        target = problems[0].target
        key = json.dumps([_FORMAT, self.table, self.question.key, [problem.key for problem in problems]])
        return request_about_rows(
            data,
            self.table,
            kind="choice",
            ask=self.ask,
            epsilon=self.epsilon,
            event=Composed([ZCDP(self.question.rho), ZCDP(problems[0].spend.amount)]),
            key=hashlib.sha256(key.encode()).hexdigest(),
            text=f"the best of {len(names)} models of {self.table} for {'' if target is None else target.name}",
            details={
                "models": names,
                "columns": list(self.candidates.columns),
                "rows_per_unit": problems[0].rows_per_unit,
            },
            columns=self.candidates.columns,
            steps=lambda bits: _chosen(self, data, bits),
            capped=True,
        )

    def check(self, assume_rows: int, *, remaining: Fraction, stored: bool) -> FitCheck:
        """What it would cost and how each would go."""
        checks = tuple(one.check(assume_rows, remaining=remaining, stored=False) for one in self.each)
        first = checks[0]
        return replace(first, epsilon=self.epsilon, stored=stored, model="the best", candidates=checks)


def _chosen(asked: ChoiceAsked, data: OpenTables, bits: Bits | None) -> Steps:
    import pyarrow as pa

    _, made = yield from synthetic_data(asked.question, data, bits)
    figures: list[float] = []
    if made is not None:
        rows = asked.question.schema.decode(made.codes, bits=bits)
        figures = asked.candidates.figures(pa.table(rows), bits=bits)
    at = max(range(len(figures)), key=lambda place: figures[place]) if figures else 0
    problem = asked.candidates.problems[at]
    kept = yield from problem.steps(problem.encode(*data.owned(asked.table, problem.columns)), bits=bits)
    return json.dumps({"format": _FORMAT, "chosen": at, "figures": figures, "model": kept})


def ask_choice(
    data: OpenTables,
    budget: Callable[[str], Budget],
    models: Sequence[object],
    table: str,
    *,
    epsilon: EpsilonLike,
    rows_per_unit: int | None = None,
) -> ChoiceAsked:
    """Models of which one could be fitted; reads no rows.

    Raises what `Session.fit` raises before the charge.
    """
    from hubbub.learning.choice import SHARE, Candidates

    whole = [ask_model(data, budget, m, table, epsilon=epsilon, rows_per_unit=rows_per_unit) for m in models]
    each = tuple(replace(one, problem=_at_share(one.problem, 1 - SHARE)) for one in whole)
    candidates = Candidates(tuple(one.problem for one in each))
    asked = ask_synthesis(
        data,
        budget,
        table,
        epsilon=epsilon,
        columns=list(candidates.columns),
        rows_per_unit=rows_per_unit,
    )
    question = replace(asked.question, rho=asked.question.rho * SHARE)
    question.check()
    ask = {
        "table": table,
        "epsilon": str(asked.epsilon),
        "models": [one.ask["model"] for one in each],
        "rows_per_unit": each[0].ask["rows_per_unit"],
    }
    return ChoiceAsked(table, each, candidates, question, asked.epsilon, ask)


def _at_share(problem: Problem, share: Fraction) -> Problem:
    return replace(problem, spend=problem.spend.part(share))


def ask_fit(door: Door, model: object, table: str, **options: Any) -> ModelAsked | ChoiceAsked:
    """A model that could be fitted, or several of which one could be. options: those of `ask_model`."""
    budget = door.ledger.balance.budget
    if isinstance(model, list | tuple):
        return ask_choice(door.data, budget, model, table, **options)
    return ask_model(door.data, budget, model, table, **options)


@at_work("fitting the model")
def fitted_model(door: Door, asked: ModelAsked | ChoiceAsked, *, fresh: bool) -> Any:
    """Charge, read, draw, store; or the stored model: a fitted copy of the one asked for, or of the best of several."""
    from hubbub.learning.model import fitted_of

    stored, charged = door.release(asked.request(door.data), fresh=fresh)
    fitted: Any
    if isinstance(asked, ModelAsked):
        fitted = fitted_of(asked.problem.estimator, stored.contents)
    else:
        kept = stored.contents
        if kept.get("format") != _FORMAT:
            raise QueryError("this stored release is not a choice of these models; ask for it anew.")
        problems = asked.candidates.problems
        fitted = fitted_of(problems[kept["chosen"]].estimator, kept["model"])
        fitted.figures_ = _figures([problem.estimator for problem in problems], kept["figures"])
    fitted.cost = asked.epsilon if charged else Fraction(0)
    fitted.charged, fitted.charge_id, fitted.receipt = charged, stored.charge_id, door.receipt(stored)
    return fitted


def _figures(models: Sequence[Estimator], figures: Sequence[float]) -> dict[str, float]:
    """What each model reached on the synthetic table; nothing where there was none."""
    return dict(zip(map(repr, models), figures, strict=True)) if figures else {}
