"""A statement in SQL as the door takes it: what it reads and draws, and what `check` shows of it.

The whole event of a statement is charged before a row is read, and everything is drawn once. Where a private part reads
what another part released, the parts are run in their order: the later one meets noisy values alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hubbub.accounting import Event, cost as cost_of, rho_of_epsilon, to_json
from hubbub.answer.evaluate import EvaluatedStatement
from hubbub.answer.release import Release
from hubbub.engines.base import Exact
from hubbub.errors import InternalError, PolicyError, QueryError
from hubbub.ledger.remainder import Remaining
from hubbub.session.check import Check, details, mechanism, notes, predicted, settled, sides
from hubbub.session.empty import answer_types
from hubbub.session.finding import BOUNDS_SHOWN, TOO_FEW, before_it_is_found, resolved, with_bounds
from hubbub.session.looks import combined
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement
from hubbub.session.run import Door, Request, Steps
from hubbub.session.total_error import TotalError
from hubbub.sql.bind.query import PublicQuestion
from hubbub.tables.draw_release import FORMAT, draw, price_of
from hubbub.tables.estimates import Estimates, read
from hubbub.tables.plan import Plan

if TYPE_CHECKING:
    from hubbub.ledger.budget import Budget
    from hubbub.ledger.store import StoredRelease
    from hubbub.noise import Bits
    from hubbub.session.data import OpenTables

__all__ = [
    "check_drawn_by",
    "check_fields",
    "checked",
    "drawn_plans",
    "estimates_of",
    "evaluated",
    "is_staged",
    "key_of",
    "other_question",
    "public_answer",
    "request_of",
]

_OTHERWISE: Final = (
    "this was answered as the tables were declared then. The policy, a public table or hubbub has changed since, so "
    "its words stand for another question now, of which what was drawn is not the answer. Ask it anew. Nothing was "
    "charged."
)
_DRAWN: Final = frozenset({"spend", "choices", "shares", "plans"})


def request_of(asked: PricedStatement, data: OpenTables, options: Options) -> Request:
    """A priced statement as the door takes it."""

    return Request(
        kind="sql",
        text=asked.text,
        ask=lambda: {
            "sql": asked.sql,
            "now": asked.now.isoformat(),
            "options": options.to_wire(),
            **({} if asked.finding is None else {"known": dict(asked.finding.known)}),
        },
        space=asked.space,
        tables=asked.tables,
        epsilon=asked.epsilon,
        event=asked.event,
        key=lru_cache(maxsize=4)(partial(key_of, asked)),
        details=_details(asked),
        steps=lambda bits: _steps_of(asked)(asked, data, bits),
        capped=asked.looks is not None or (asked.finding is not None and asked.finding.due > 0),
        # A part that reads releases fails on their values, and one that reads public tables on theirs.
        public_words=any(asked.leaves(q) for q in range(len(asked.plans))),
        public=asked.public,
    )


def key_of(asked: PricedStatement, version: str) -> str:
    """The name of a statement, about rows of a version and these public tables: equal for equal questions."""
    return asked.key("\n".join([version, *(asked.outer.fingerprint(name) for name in asked.public)]))


def check_drawn_by(key: Callable[[str], str], stored: StoredRelease) -> None:
    """A stored draw is read by the plan that it was drawn by: another one has other groups, ranges and noise, and would
    show its numbers as something else. key: of the statement that is read, by the version of the rows.

    Raises QueryError where that is another question by now.
    """
    if key(stored.entry.data_version or "") != stored.entry.question_key:
        other_question()


def other_question() -> NoReturn:
    """Raises QueryError: the words of an answer stand for another question than when it was drawn."""
    raise QueryError(_OTHERWISE)


def is_staged(asked: PricedStatement) -> bool:
    """Whether a private part reads what another one released."""
    return any(leaf.released for q in range(len(asked.plans)) for leaf in asked.leaves(q))


def _steps(asked: PricedStatement, data: OpenTables, bits: Bits | None) -> Generator[Event, None, str]:
    """Every question run and drawn once, in their order: a later one may read what an earlier one released."""
    drawn: list[dict[str, Any]] = []
    exacts: Iterable[Exact] = _exacts(asked, data, drawn)
    if not is_staged(asked):
        exacts = list(exacts)  # all that can fail fails before anything is drawn
    yield asked.price.event
    return json.dumps(draw(asked.price, exacts, bits, into=drawn))


def _steps_of(asked: PricedStatement) -> Callable[[PricedStatement, OpenTables, Bits | None], Steps]:
    if asked.looks is not None:
        return _looking_steps
    return _steps if asked.finding is None else _finding_steps


def _looking_steps(asked: PricedStatement, data: OpenTables, bits: Bits | None) -> Generator[Event, None, str]:
    """Draw after draw of the same integers, each as precise as all before it, until what was drawn is good enough."""
    looks = asked.looks
    assert looks is not None
    exacts = list(_exacts(asked, data, []))
    drawn: list[dict[str, Any]] = []
    used = Fraction(0)
    for price in looks.prices:
        yield price.event
        drawn.append(json.loads(json.dumps(draw(price, exacts, bits))))
        used += price.rho
        if looks.met(combined(looks.plans, drawn)):
            break
    return json.dumps({"format": FORMAT, "looks": drawn, "used": str(used)})


def _details(asked: PricedStatement) -> dict[str, Any]:
    """What a receipt shows when it is charged: of bounds that are found then, which they are."""
    told = details(asked.price)
    if asked.finding is None:
        return told
    auto = {f"max_{what}": "auto" for plan in asked.finding.plans for what in plan.auto}
    sums = sorted({what for plan in asked.finding.plans for what in plan.to_find if what not in plan.auto})
    return {k: v for k, v in told.items() if k not in ("measurements", "plans")} | auto | {"sums_to_bound": sums}


def _finding_steps(asked: PricedStatement, data: OpenTables, bits: Bits | None) -> Generator[Event, None, str]:
    """First the bounds, one histogram each; then the answer, drawn with them. Too few units: nothing else is drawn."""
    finding = asked.finding
    assert finding is not None
    question_of = [q for q, plans in enumerate(asked.plans) for _ in plans]

    def public(question: int) -> dict[str, Any]:
        return {leaf.place: asked.outer.leaf(leaf, {}) for leaf in asked.leaves(question)}

    made = yield from finding.find(lambda plan, number: data.run(plan, public(question_of[number])).vectors[0], bits)
    if made is None:
        return json.dumps({"format": FORMAT, "nothing": TOO_FEW})
    plans, record = made
    price = finding.price(plans)
    exacts = [data.run(plan, public(question_of[number])) for number, plan in enumerate(plans)]
    yield finding.answer_event if finding.due else price.event
    return json.dumps(draw(price, exacts, bits) | {"found": record, "public": asked.public_rows})


def _exacts(asked: PricedStatement, data: OpenTables, drawn: list[dict[str, Any]]) -> Iterator[Exact]:
    for q, plans in enumerate(asked.plans):
        leaves = asked.leaves(q)
        released = {}
        if any(leaf.released for leaf in leaves):
            known = asked.grouped(read(asked.price, {"plans": drawn}))
            done = [items for items, mine in zip(known, asked.plans, strict=True) if len(items) == len(mine)]
            released = EvaluatedStatement(asked.statement, tuple(done), asked.outer).releases
        public = {leaf.place: asked.outer.leaf(leaf, _chosen(released, leaf.released)) for leaf in leaves}
        if released:
            asked.check_repeats(q, public)
        for plan in plans:
            yield data.run(plan, public)


def _chosen(released: Mapping[str, Any], numbers: tuple[int, ...]) -> dict[str, Any]:
    return {f"released{n}": released[f"released{n}"] for n in numbers}


def evaluated(
    door: Door, asked: PricedStatement, stored: StoredRelease, total: TotalError | None = None
) -> EvaluatedStatement:
    """The statement with the estimates of a stored draw. total: how much wider intervals of the total are."""
    estimates = asked.grouped(estimates_of(asked, stored))
    stopped = "looks" in stored.contents
    return EvaluatedStatement(asked.statement, estimates, asked.outer, door.bits, stopped, total)


def estimates_of(asked: PricedStatement, stored: StoredRelease) -> tuple[Estimates, ...]:
    """The estimates of a stored draw, plan by plan.

    Raises PolicyError for one that another version of hubbub wrote, QueryError for the draw of another question.
    """
    payload = stored.contents
    check_fields(asked, stored)
    check_drawn_by(partial(key_of, asked), stored)
    if asked.looks is not None:
        return combined(asked.looks.plans, payload["looks"])
    price = price_of(drawn_plans(asked, payload), payload)
    if asked.finding is None and to_json(price.event) != stored.entry.event:
        raise InternalError("a stored release does not fit its question: other noise was charged")
    return read(price, payload)


def check_fields(asked: PricedStatement, stored: StoredRelease) -> None:
    """What was drawn of a statement says what such a draw does, and nothing else: a process that was taken over may
    have written it.

    Raises PolicyError for one that another version of hubbub wrote, InternalError for a field that it does not have.
    """
    payload = stored.contents
    if payload.get("format") != FORMAT:
        raise PolicyError("this stored release was written by another version of hubbub; read it with that one.")
    if asked.looks is not None:
        known = frozenset({"looks", "used"})
    elif asked.finding is not None:
        known = frozenset({"nothing"}) if "nothing" in payload else _DRAWN | {"found", "public"}
    else:
        known = _DRAWN
    if payload.keys() - known - {"format"}:
        raise InternalError("a stored release does not fit its question: it says more than was asked")


def drawn_plans(asked: PricedStatement, payload: Mapping[str, Any]) -> tuple[Plan, ...]:
    """The plans that a stored draw was made of: with the bounds that were found for it."""
    return resolved([plan for plans in asked.plans for plan in plans], payload.get("found", ()))


def public_answer(data: OpenTables, question: PublicQuestion) -> Release:
    """The exact answer about public tables, for nothing."""
    outer = data.outer.pinned()
    outer.describe(question.sql, question.tables, {}, answer=True)
    exact = outer.run(question.sql, question.tables, {})
    return Release(Fraction(0), False, "", {"sql": question.sql, "epsilon": "0"}, _exact=exact)


def largest_epsilon(budget: Budget, left: Remaining) -> Fraction:
    """The largest epsilon of one more question."""
    if budget.pure:
        return left.question
    return settled(left.question, lambda epsilon: rho_of_epsilon(epsilon, budget.delta_conversion) <= left.rho)


def _in_steps(asked: PricedStatement) -> tuple[str, ...]:
    if asked.looks is None:
        return ()
    return (
        f"asked in up to {len(asked.looks.prices)} steps, each charged before it is drawn, until all estimates are "
        f"known to {float(asked.looks.share):.3g} of themselves: the cost is the most it can be, the errors are those "
        "at that cost, and what is not used comes back.",
    )


def checked(door: Door, asked: PricedStatement, options: Options) -> Check:
    """What a statement would cost and how good its answer would be; reads no rows, charges nothing."""
    request = request_of(asked, door.data, options)
    cost, price, ledger, finding = cost_of(request.event), asked.price, door.ledger, asked.finding
    unknown = finding if finding is not None and finding.due else None
    whose: dict[str, Any] = {"analyst": door.analyst, "block": door.block, "token": door.token}
    paying = {"dataset": request.dataset, **whose}
    left = ledger.balance.left(asked.space, **paying)
    fits = ledger.balance.admits(cost, space=asked.space, **paying)
    budget, total = ledger.balance.budget(asked.space), ledger.balance.total(asked.space)
    outputs, places = asked.statement.outputs, asked.places
    rows = options.assume_rows
    both = (
        ()
        if budget.pure or finding is not None or asked.looks is not None
        else sides(
            price.plans,
            outputs,
            places,
            epsilon=asked.epsilon,
            budget=budget,
            assume_rows=rows,
            spent=total.cost,
        )
    )
    return Check(
        epsilon=asked.epsilon,
        left=left.epsilon if asked.amount.spend.pure else largest_epsilon(budget, left),
        columns=predicted(price, outputs, places, rows),
        mechanism=mechanism(price),
        notes=(
            *asked.notes,
            *_in_steps(asked),
            *(() if unknown is None else before_it_is_found(unknown)),
            *notes(price, bounded=unknown is None),
        ),
        bounds=()
        if unknown is None
        else tuple(
            (bound, predicted(unknown.price(with_bounds(unknown.plans, bound)), outputs, places, rows))
            for bound in BOUNDS_SHOWN
        ),
        stored=door.stored(request) is not None,
        groups=sum(plan.group_count or 0 for plan in price.plans) or None,
        fits=fits,
        sides=both,
        how_many=left.how_many(cost),
        _types=lambda: answer_types(asked),
    )
