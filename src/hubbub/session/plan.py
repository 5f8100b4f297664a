"""Several questions that were fixed in advance, charged as one.

A block holds what they cost together (`hubbub.accounting.plans`), and each of them draws on it through the door, as any
question in a block does. What they do not use comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from hubbub.accounting import Cost, cost as cost_of
from hubbub.accounting.plans import plan_cost
from hubbub.answer.release import Release
from hubbub.errors import BudgetError, QueryError
from hubbub.ledger.budget import EpsilonLike, decimal_text
from hubbub.session.ask import answered
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement
from hubbub.session.run import Door
from hubbub.session.statement import public_answer, request_of
from hubbub.sql.bind.query import PublicQuestion

__all__ = ["PlanCheck", "answer_plan", "check_plan", "pairs", "plan_text", "to_draw"]

Asked: TypeAlias = "tuple[PricedStatement | PublicQuestion, Options]"


def answer_plan(door: Door, questions: Iterable[tuple[str, EpsilonLike]]) -> list[Release]:
    """What `Session.plan` returns."""
    asked = _asked(door, questions)
    first = to_draw(door, asked)
    if not first:
        return [_given(door, one, options) for one, options in asked]
    due = [one for one, _ in first.values()]
    with door.reserved(
        space=due[0].space,
        epsilon=sum((one.epsilon for one in due), Fraction(0)),
        events=[one.event for one in due],
        plan=plan_text(asked),
    ):
        drawn = {id(one): answered(door, one, options) for one, options in first.values()}
        return [drawn[id(one)] if id(one) in drawn else _given(door, one, options) for one, options in asked]


@dataclass(frozen=True)
class PlanCheck:
    """What a plan would cost. No row was read, nothing charged.

    epsilon: of the questions that would be drawn, together. cost: what is charged for them at once; under a budget with
    delta its rho counts, which is less than those of the questions one by one. left: the largest epsilon of one
    question, None where nothing is drawn. fits: whether the whole plan would be charged now. drawn: how many questions
    would be; free: how many are stored, are about public tables, or stand twice.
    """

    epsilon: Fraction
    cost: Cost
    left: Fraction | None
    fits: bool
    drawn: int
    free: int


def check_plan(door: Door, questions: Iterable[tuple[str, EpsilonLike]]) -> PlanCheck:
    """What `Session.check_plan` returns."""
    asked = _asked(door, questions)
    due = [one for one, _ in _drawn(door, asked).values()]
    if not due:
        return PlanCheck(Fraction(0), Cost(Fraction(0), Fraction(0)), None, True, 0, len(asked))
    left = door.ledger.balance.left(due[0].space, analyst=door.analyst)
    whole = plan_cost([one.event for one in due])
    try:
        _check_tables(door, due)
        fits = left.how_many(whole) != 0
    except BudgetError:
        fits = False
    epsilon = sum((one.epsilon for one in due), Fraction(0))
    return PlanCheck(epsilon, whole, left.epsilon, fits, len(due), len(asked) - len(due))


def _asked(door: Door, questions: Iterable[tuple[str, EpsilonLike]]) -> list[Asked]:
    """The questions of a plan, priced. Raises QueryError inside a block."""
    if door.block is not None:
        raise QueryError("a block is reserved already; end its `with` before you ask a plan.")
    balance = door.ledger.balance
    given = [(sql, Options.of({"epsilon": epsilon})) for sql, epsilon in pairs(questions)]
    return [(door.data.ask(sql, options, balance.budget), options) for sql, options in given]


def plan_text(asked: Sequence[Asked]) -> str:
    """A plan as people read it."""
    return "; ".join(one.sql if isinstance(one, PublicQuestion) else one.text for one, _ in asked)


def to_draw(door: Door, asked: Sequence[Asked]) -> dict[str, tuple[PricedStatement, Options]]:
    """What is to be drawn for a plan, by the names of the questions: each once, and none that is stored.

    Raises QueryError for questions about several unit spaces, BudgetError where a table's limit does not hold its part.
    """
    first = _drawn(door, asked)
    _check_tables(door, [one for one, _ in first.values()])
    return first


def _drawn(door: Door, asked: Sequence[Asked]) -> dict[str, tuple[PricedStatement, Options]]:
    """As `to_draw`, whatever is left."""
    first: dict[str, tuple[PricedStatement, Options]] = {}
    for one, options in asked:
        if isinstance(one, PublicQuestion):
            continue
        request = request_of(one, door.data, options)
        key = request.key(door.version(request))
        # A question that stands twice is drawn once, at the larger epsilon; the other is then free.
        if door.stored(request) is None and (key not in first or first[key][0].epsilon < one.epsilon):
            first[key] = one, options
    due = [one for one, _ in first.values()]
    spaces = {one.space for one in due}
    if len(spaces) > 1:
        raise QueryError(f"a plan asks about one unit space; found {', '.join(sorted(spaces))}. Make one for each.")
    return first


def _given(door: Door, asked: PricedStatement | PublicQuestion, options: Options) -> Release:
    return public_answer(door.data, asked) if isinstance(asked, PublicQuestion) else answered(door, asked, options)


def _check_tables(door: Door, due: Sequence[PricedStatement]) -> None:
    """A plan is asked whole or not at all: each table's part of it fits what is left for that table.

    Raises BudgetError where a table's limit does not hold its part.
    """
    by_table: dict[str, list[PricedStatement]] = {}
    for one in due:
        for name in one.tables:
            by_table.setdefault(name, []).append(one)
    for name, asked in by_table.items():
        costs, space = [cost_of(one.event) for one in asked], asked[0].space
        if not door.ledger.balance.admits(sum(costs[1:], costs[0]), space=space, dataset=name, analyst=door.analyst):
            amount = decimal_text(sum((one.epsilon for one in asked), Fraction(0)))
            left = decimal_text(door.ledger.balance.remaining(space, dataset=name, analyst=door.analyst))
            raise BudgetError(
                f"not enough budget: the plan asks for epsilon {amount} about {name!r}, and {left} is left for that. "
                "Nothing was charged.",
                asked=amount,
                left=left,
            )


def pairs(questions: object) -> list[tuple[str, EpsilonLike]]:
    """The questions of a plan.

    Raises QueryError for anything but pairs.
    """
    listed = list(questions) if isinstance(questions, Iterable) and not isinstance(questions, str | Mapping) else [None]
    if not all(isinstance(one, tuple | list) and len(one) == 2 for one in listed):
        raise QueryError(
            "plan: expected pairs of SQL and epsilon, as in [('SELECT COUNT(*) FROM visits', 0.1)]. Nothing was "
            "charged."
        )
    return [(sql, epsilon) for sql, epsilon in listed]  # type: ignore[misc]
