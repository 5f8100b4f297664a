"""The whole desk: what an analyst may do beside asking and reading one answer.

    answers, read               the answers that he may read: his own, and others' where analysts share them
    check_bounds                how much a question's limits leave out, bought; a submission as any other
    check_refine, refine        an answer made better by a second draw; foretold from what was released, and from scales
    plan                        several questions, charged as one, or none of them
    budget                      what is left

A second draw and a plan are submissions as any other: what is told of them before their releases follows from the
schedule. Nothing here reads a row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from hubbub.accounting import epsilon_of_rho
from hubbub.accounting.plans import plan_cost
from hubbub.arguments import an_amount
from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.accounts import analyst_account
from hubbub.ledger.blocks import planned
from hubbub.ledger.charge import Charge, checked_analyst, checked_purpose
from hubbub.ledger.readings import by_token
from hubbub.ledger.records import Entry, IsStored, StoredRelease
from hubbub.ledger.schedule import SECOND, instant
from hubbub.ledger.timetable import Asking, Scheduled
from hubbub.ledger.wording import is_commitment
from hubbub.service.desk import Desk, Unknown
from hubbub.service.forms import shown_as
from hubbub.service.people.person import TokenLimits
from hubbub.service.sent import as_sent, capped, check_most, question_text
from hubbub.session.ask import foreseen, to_refine
from hubbub.session.options import Options, given_in
from hubbub.session.plan import Asked, plan_text, to_draw
from hubbub.session.prepare import PricedStatement, amount_of
from hubbub.session.run import Door
from hubbub.session.statement import largest_epsilon, public_answer, request_of

__all__ = ["WholeDesk"]

_MOST: Final = 200
_ONCE: Final = "this answer cannot be refined. Ask the question again, at a larger epsilon."


class WholeDesk(Desk):
    """The desk with all its acts."""

    # -- answers ----------------------------------------------------------------------------------------------

    def answers(self, analyst: str, most: int = _MOST) -> list[dict[str, Any]]:
        """The answers that he may read, the newest first: his own and, where analysts share them, others'. None whose
        text was removed.

        costs: what reading it takes from his own limit; nothing for what he asked, or read before.
        """
        self.tick()
        charges = _paid(self.ledger.record.history())
        mine = {one.paid_by for one in self.ledger.timetable.of(analyst)}
        everybody = self.ledger.timetable.everybody()
        told = []
        for one, fate in zip(reversed(everybody), reversed(self.ledger.timetable.fates(everybody)), strict=True):
            own = one.analyst == analyst
            theirs = self.ledger.rules.shared_answers and one.shares is None and one.paid_by not in mine
            if fate == "answered" and (own or theirs) and not is_commitment(one.ask):
                told.append(self._listed(one, charges[one.paid_by], analyst))
            if len(told) >= min(most, _MOST):
                break
        return told

    def _listed(self, one: Scheduled, paid: Entry, analyst: str) -> dict[str, Any]:
        own = one.analyst == analyst
        parts = [] if own else [p for p in self._parts(one) if not self.ledger.record.has_read(p.entry, analyst)]
        return {
            "id": one.id,
            "by": one.analyst,
            "mine": own,
            "sql": one.sql,
            "epsilon": str(paid.epsilon),
            "asked_at": instant(one.slot.at.wall),
            "release_at": instant(one.slot.due),
            "costs": str(sum((self._cost(p) for p in parts if p.entry.analyst != analyst), Fraction(0))),
        }

    def read(
        self,
        analyst: str,
        charge: str,
        level: float | str | None = None,
        form: str = "json",
        *,
        token: TokenLimits | None = None,
    ) -> dict[str, Any]:
        """Read an answer of his own, or another's where analysts share them: that counts against his own limit, once.

        Raises BudgetError where the limit does not hold it, Unknown for what he may not read.
        """
        shown = shown_as(level, form)
        self.tick()
        one = self.ledger.timetable.find(str(charge))
        if one is None or (one.analyst != analyst and (one.shares or not self.ledger.rules.shared_answers)):
            raise Unknown("there is no such question of yours.")
        others = one.analyst != analyst
        if others and self.ledger.timetable.fate(one) != "answered":
            raise Unknown("there is no such question of yours.")
        return self._told(one, shown=shown, reader=analyst, token=capped(token), counts=others)

    def history(self, analyst: str) -> list[dict[str, Any]]:
        """What an analyst asked, and what of others' he read, oldest first, with what each was asked at. reads: the
        question whose answer was read.
        """
        told = {each["id"]: each for each in super().history(analyst)}
        charges = self.ledger.record.history(analyst=analyst)
        paid = _paid(charges)
        for entry in charges:
            if entry.id in told:
                told[entry.id] |= _charged(entry, paid[entry.id])
            elif entry.kind == "reading":
                reads = json.loads(entry.details).get("release")
                told[entry.id] = {"id": entry.id, "reads": reads, "state": "answered", "sql": entry.sql}
                told[entry.id] |= _charged(entry, paid[entry.id])
        return sorted(told.values(), key=lambda each: str(each["asked_at"]))

    # -- limits -----------------------------------------------------------------------------------------------

    def check_bounds(
        self,
        analyst: str,
        sql: str,
        options: Mapping[str, Any],
        request: str,
        at: str | None = None,
        purpose: str | None = None,
        *,
        token: TokenLimits | None = None,
    ) -> dict[str, Any]:
        """Buy how much the limits of a question leave out. at: the epsilon that errors are predicted for. What is told
        is as of `ask`, with "bounds" in place of "answer".
        """
        self.tick()
        door = self._door.of(checked_analyst(analyst), checked_purpose(purpose), token=capped(token))
        text, given = question_text(sql), given_in(options)
        asked = self._plan_bounds(text, given)
        plans = [plan for plans in asked.asked.plans for plan in plans]
        if at is not None:
            amount_of(self.ledger.balance.budget(asked.asked.space), plans, asked.options.at(an_amount(at, "at")))
        made = asked.request(self.data)
        ask = {**made.ask(), **({} if at is None else {"at": at})}

        def held() -> None:
            self._check_alone(token, made.epsilon)

        def answer(stored: StoredRelease) -> dict[str, Any]:
            return {"bounds": asked.shown(door, stored, charged=False, at=at).to_wire()}

        length = self._length(asked.asked, asked.passes)
        return self._stored_or_asked(door, replace(made, ask=lambda: ask), request, length, held=held, answer=answer)

    # -- better answers ---------------------------------------------------------------------------------------

    def check_refine(
        self, analyst: str, charge: str, epsilon: str, *, token: TokenLimits | None = None
    ) -> dict[str, Any]:
        """What refining an answer would cost, and how wide its intervals would be; charges nothing."""
        self.tick()
        asked, given, stored = self._answered(analyst, charge, capped(token))
        door = self._door.of(checked_analyst(analyst), token=capped(token))
        told, more, _ = foreseen(door, asked, given, stored, epsilon)
        return {
            "epsilon": str(told.epsilon),
            "left": str(told.left),
            "columns": [list(column) for column in told.columns],
            "helps": told.helps,
            "fits": told.fits,
            "answer_time": self._length(more) / SECOND,
        }

    def refine(
        self,
        analyst: str,
        charge: str,
        epsilon: str,
        request: str,
        purpose: str | None = None,
        *,
        token: TokenLimits | None = None,
    ) -> dict[str, Any]:
        """Ask for a second draw, which is combined with the first: a question of its own, with a release of its own."""
        self.tick()
        asked, given, stored = self._answered(analyst, charge, capped(token))
        door = self._door.of(checked_analyst(analyst), checked_purpose(purpose), token=capped(token))
        more, options, version = to_refine(door, asked, given, stored, epsilon)
        made = request_of(more, self.data, options)
        self._check_alone(token, made.epsilon)
        ask = {**made.ask(), "refines": stored.charge_id}
        made = replace(made, ask=lambda: ask)
        one = self._submit(door, made, request, version, self._length(more), fresh=True)
        self.tick()
        return self._told(one)

    def _answered(self, analyst: str, charge: str, token: str | None) -> tuple[PricedStatement, Options, StoredRelease]:
        """A question whose answer he may read, with that answer: one draw. token: it must have paid for it, since what
        is foretold follows from what was released.
        """
        one = self._readable(analyst, charge)
        if self.ledger.timetable.fate(one) != "answered":
            raise QueryError("this question has no answer to refine. Nothing was charged.")
        parts = self._parts(one)
        if len(parts) > 1:
            raise QueryError(_ONCE)
        if token is not None and not self.ledger.record.has_read(parts[0].entry, analyst, token=token):
            raise QueryError("read this answer first: it counts against the cap of this token. Nothing was charged.")
        return (*self._again(one), parts[0])

    # -- plans ------------------------------------------------------------------------------------------------

    def plan(
        self,
        analyst: str,
        questions: Sequence[Mapping[str, Any]],
        request: str,
        purpose: str | None = None,
        *,
        token: TokenLimits | None = None,
    ) -> list[dict[str, Any]]:
        """Ask several questions that were fixed in advance: all are charged as one, or none is. What `ask` tells, of
        each.

        Raises QueryError for more questions than may wait, BudgetError where they do not fit together.
        """
        self.tick()
        door = self._door.of(checked_analyst(analyst), checked_purpose(purpose), token=capped(token))
        asked = [self._read_question(analyst, question) for question in self._few(questions)]
        while True:
            try:
                placed = self._placed(door, asked, questions, request, token)
                break
            except IsStored:  # one of them, by the tick of another thread: it is not due any more
                continue
        self.tick()
        return [self._of_plan(door, one, given, placed) for one, given in asked]

    def _placed(
        self,
        door: Door,
        asked: Sequence[Asked],
        questions: Sequence[Mapping[str, Any]],
        request: str,
        token: TokenLimits | None,
    ) -> dict[str, Scheduled]:
        """What is not stored of a plan, charged and in its place, by the keys of its questions."""
        due = to_draw(door, asked)
        self._check_words(door, asked, questions)
        if any(request_of(one, self.data, given).capped for one, given in due.values()):
            raise QueryError(
                "a plan is of questions that use what they are charged: one whose bounds are found, or that is asked "
                "within a share of itself, is asked alone. Nothing was charged."
            )
        for one, given in due.values():
            self._check_alone(token, request_of(one, self.data, given).epsilon)
        named = self._named(door, asked, request)
        names = [named[key] for key in due]
        return dict(zip(due, self._submit_plan(door, list(due.values()), plan_text(asked), names), strict=True))

    def _check_words(self, door: Door, asked: Sequence[Asked], questions: Sequence[Mapping[str, Any]]) -> None:
        """Raises QueryError for two texts of a plan that need the same numbers, and none is stored yet."""
        texts: dict[str, str] = {}
        for (one, given), question in zip(asked, questions, strict=True):
            if isinstance(one, PricedStatement):
                made = request_of(one, self.data, given)
                key, text = made.key(door.version(made)), str(question.get("sql")).strip()
                if door.stored(made) is None and texts.setdefault(key, text) != text:
                    raise QueryError(
                        "two questions of this plan need the same noisy numbers, in different words. Leave one of them "
                        "out, and ask it once the plan is answered: it is free then. Nothing was charged."
                    )

    def _named(self, door: Door, asked: Sequence[Asked], request: str) -> dict[str, str]:
        """The names of the requests of a plan, by their places in it: the same when it is sent again, and some of it is
        stored by then.
        """
        named: dict[str, str] = {}
        for number, (one, given) in enumerate(asked):
            if isinstance(one, PricedStatement):
                wanted = request_of(one, self.data, given)
                named.setdefault(wanted.key(door.version(wanted)), f"{request} {number}")
        return named

    def _cost(self, part: StoredRelease) -> Fraction:
        return self.ledger.record.paid(part.entry).epsilon

    def _check_alone(self, token: TokenLimits | None, epsilon: Fraction) -> None:
        """Raises PolicyError for what a token may not ask, and for what a steward has to allow: that is asked alone."""
        check_most(token, epsilon)
        if self.requests is not None and self.requests.needs_yes(epsilon):
            raise PolicyError(
                "a question at so much waits for a steward's yes, and is asked by itself: not in a plan, nor to refine "
                "an answer or to look at limits. Nothing was charged."
            )

    def _few(self, questions: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        if not all(isinstance(one, Mapping) and isinstance(one.get("options", {}), Mapping) for one in questions):
            raise QueryError('plan: expected questions such as {"sql": "SELECT ...", "options": {"epsilon": "0.1"}}.')
        if not 1 <= len(questions) <= self.queue.most:
            raise QueryError(f"plan: from 1 to {self.queue.most} questions at once. Nothing was charged.")
        return questions

    def _read_question(self, analyst: str, question: Mapping[str, Any]) -> Asked:
        given = Options.from_wire(question.get("options", {}))
        return self._plan(question_text(question.get("sql")), given, analyst=analyst), given

    def _submit_plan(
        self, door: Door, due: Sequence[tuple[PricedStatement, Options]], text: str, names: Sequence[str]
    ) -> list[Scheduled]:
        if not due:
            return []
        made = [(one, request_of(one, self.data, given)) for one, given in due]
        questions = [
            Asking(
                door.charge_of(wanted, name, door.version(wanted)),
                json.dumps(as_sent(wanted)),
                self._length(one),
            )
            for name, (one, wanted) in zip(names, made, strict=True)
        ]
        events = [one.event for one, _ in made]
        epsilon = sum((one.epsilon for one, _ in made), Fraction(0))
        plan = Charge(
            kind="plan", space=made[0][0].space, analyst=door.analyst, epsilon=epsilon, cost=plan_cost(events),
            sql=text, details=by_token(planned(events), door.token), purpose=door.purpose,
        )  # fmt: skip
        placed = door.submit_plan(plan, questions, queue=self.queue)
        for one, (_, wanted) in zip(placed, made, strict=True):
            self._placed_now(one, wanted)
        return placed

    def _of_plan(self, door: Door, one: Any, given: Options, placed: Mapping[str, Scheduled]) -> dict[str, Any]:
        """What is told of one question of a plan."""
        if not isinstance(one, PricedStatement):
            return {"state": "answered", "answer": public_answer(self.data, one).to_wire()}
        wanted = request_of(one, self.data, given)
        key = wanted.key(door.version(wanted))
        if key in placed:
            return self._told(placed[key])
        stored = door.stored(wanted)
        assert stored is not None
        return self._shared(door, stored, lambda: self._answer(door, one, given, stored, charged=False))

    # -- what is declared, and what is left ---------------------------------------------------------------------

    def budget(self, analyst: str, *, token: TokenLimits | None = None) -> dict[str, Any]:
        """What is left: of each unit space the joint budget, and his own limit below it; with a token that has a cap,
        its own. In epsilon, as text.
        """
        self.tick()
        spaces = sorted(set(self.data.spaces().values()))
        standing = [self._standing(space, checked_analyst(analyst), capped(token)) for space in spaces]
        left = min((Fraction(each["left"]) for each in standing), default=Fraction(0))
        return {"left": str(left), "spaces": standing}

    def _standing(self, space: str, analyst: str, token: str | None) -> dict[str, Any]:
        balance = self.ledger.balance
        budget, paid = balance.budget(space), balance.total(space, analyst_account(analyst))
        spent = paid.epsilon if budget.pure else epsilon_of_rho(paid.rho, budget.delta_conversion)
        return {
            "space": space,
            "epsilon": str(budget.epsilon),
            "delta": None if budget.delta is None else str(budget.delta),
            "left": str(largest_epsilon(budget, balance.left(space))),
            "yours": {
                "left": str(largest_epsilon(budget, balance.left(space, analyst=analyst, token=token))),
                "limit": str(balance.limit(space, analyst)),
                "spent": str(spent),
            },
        }


def _paid(charges: Sequence[Entry]) -> dict[str, Entry]:
    """The line that says what each charge cost: its own, or that of what it used, where it gave something back."""
    return {one.id: one for one in charges} | {str(one.block): one for one in charges if one.kind == "return"}


def _charged(entry: Entry, paid: Entry) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "epsilon": str(paid.epsilon),
        "asked_at": entry.time,
        "tables": entry.dataset,
        "space": entry.space,
        "purpose": entry.purpose,
        "block": entry.block,
    }
