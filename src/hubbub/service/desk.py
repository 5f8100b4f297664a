"""The desk of the clerk: what an analyst may do, and what he is told, at any moment, of what.

Everything told of a question before its release follows from submissions and declarations: that it was asked, when it
is told, its incident. `check`, histories, receipts, events and counts are read from the schedule alone, never from a
run. There are three states: asked, answered, no answer. Cancelling only stops the waiting: the run goes on, the charge
stays.

A question that reads the rows more than once, as one does whose bounds are found, has as many answer times. What it
does not use of its charge comes back at its release, and a bound that it found is known from then on, no sooner.

Answers and refusals are plain values for JSON. The desk holds no rows: it plans on empty tables (`session.empty`), and
hands an order to `start` at its virtual start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hubbub.errors import HubbubError, InternalError, QueryError
from hubbub.ledger.accounts import Total
from hubbub.ledger.charge import checked_analyst, checked_purpose
from hubbub.ledger.records import IsStored
from hubbub.ledger.schedule import SECOND, instant
from hubbub.ledger.timetable import Queue, Scheduled
from hubbub.ledger.wording import is_commitment
from hubbub.service.as_asked import AsAsked
from hubbub.service.declared import Declared
from hubbub.service.forms import OtherQuestion, Shown, brought, clauses_told, shown_as, written
from hubbub.service.sent import as_sent, capped, check_form, check_most, finds, is_about_bounds, question_text
from hubbub.session.ask import joined, knowing, refuse_nothing, release_of
from hubbub.session.check import Check
from hubbub.session.check_bounds import AskedBounds
from hubbub.session.finding import bounds_in
from hubbub.session.options import Options, given_in
from hubbub.session.prepare import PricedStatement
from hubbub.session.run import Door, Order, Outcome, Request
from hubbub.session.statement import (
    check_drawn_by,
    check_fields,
    checked,
    key_of,
    largest_epsilon,
    other_question,
    public_answer,
    request_of,
)

if TYPE_CHECKING:
    from hubbub.ledger.budget import Budget
    from hubbub.ledger.store import Ledger, StoredRelease
    from hubbub.service.people.person import TokenLimits
    from hubbub.service.requests import Requests
    from hubbub.session.empty import EmptyTables
    from hubbub.sql.bind.query import PublicQuestion

__all__ = ["Desk", "Unknown"]

Planned: TypeAlias = "PricedStatement | PublicQuestion"
_PLAIN: Final = Shown()


class Unknown(HubbubError):
    """There is no such question of this analyst."""


class Desk:
    """What stands between analysts and the ledger.

    data: the declared tables, without rows. policy: their text, for receipts. times: the answer time of each table, in
    microseconds. start: has an order run, now. log: where a line goes for the steward: at submissions and releases.
    planned: how a statement is planned, which takes as long as its text wants.
    """

    def __init__(
        self,
        data: EmptyTables,
        ledger: Ledger,
        *,
        policy: str,
        times: Mapping[str, int],
        queue: Queue,
        start: Callable[[Scheduled, Order], None],
        log: Callable[[str], None] = lambda _: None,
        planned: Callable[[Callable[[], Any]], Any] = lambda plan: plan(),
    ) -> None:
        self.data, self.ledger, self.queue, self.log = data, ledger, queue, log
        self._times, self._start, self._planned = times, start, planned
        self._door = Door(data, ledger, analyst="nobody", policy=policy)
        self.declared = Declared(data, times, self._half_width)
        self._as_asked = AsAsked(data, ledger, again=self._request_again, log=log)
        self.requests: Requests | None = None  # where a question may have to wait for a yes

    def tick(self) -> None:
        """Do what has come: outcomes are told, and what is to run now is started."""
        for one in self.ledger.timetable.tick(self.queue, changed=self._as_asked.changed):
            self._start(one, self._order(one))

    def finished(self, one: Scheduled, outcome: Outcome) -> bool:
        """What a run brought, kept aside until its release. Whether it came in time, and is an outcome of it: what it
        says that it found is known in later questions.
        """
        self._as_asked.finished(one)
        if outcome.payload is not None and finds(one) and bounds_in(outcome.payload) is None:
            return False
        used = None if outcome.used is None else Total.of(outcome.used)
        return self.ledger.timetable.stage(one.id, outcome.payload, words=outcome.words, used=used)

    def check(
        self, analyst: str, sql: str, options: Mapping[str, Any], *, token: TokenLimits | None = None
    ) -> dict[str, Any]:
        """What a question would cost and when it would be answered; reads no rows, charges nothing."""
        self.tick()
        if self.data.declared(question_text(sql)) is not None:
            return self._free("declarations only")
        given = Options.from_wire(options)
        asked = self._plan(sql, given, analyst=checked_analyst(analyst))
        if not isinstance(asked, PricedStatement):
            return self._free("public tables only")
        door = self._door.of(analyst, token=capped(token))
        asked = knowing(door, asked, given)
        told = checked(door, asked, given)
        if token is not None and token.most is not None and told.epsilon > token.most:
            told = replace(told, fits=told.stored)
        since = self._since(analyst, asked, given, token) if told.stored else {}
        return {**told.to_wire(), **since, "answer_time": self._length(asked) / SECOND}

    def _since(self, analyst: str, asked: PricedStatement, given: Options, token: TokenLimits | None) -> dict[str, str]:
        """When a stored answer was released, if the service released it; and what it counts against the limit of
        an analyst who has not read it yet.
        """
        door, made = self._door.of(analyst, token=capped(token)), request_of(asked, self.data, given)
        stored = door.stored(made)
        if stored is None:
            return {}
        own = self.ledger.record.has_read(stored.entry, analyst, token=door.token)
        counts = {"counts": "0" if own else str(self.ledger.record.paid(stored.entry).epsilon)}
        known = self.ledger.timetable.find(stored.charge_id)
        return counts if known is None else {"released_at": instant(known.slot.due), **counts}

    def ask(
        self,
        analyst: str,
        sql: str,
        options: Mapping[str, Any],
        request: str,
        purpose: str | None = None,
        *,
        token: TokenLimits | None = None,
    ) -> dict[str, Any]:
        """Ask. A stored answer or one about public tables comes at once; else a place in the schedule, at its charge.

        request: the name of this request (idempotency key): sent again, it is the same question.
        """
        self.tick()
        declared = self.data.declared(question_text(sql))
        if declared is not None:
            return {"state": "answered", "answer": public_answer(self.data, declared).to_wire()}
        given = Options.from_wire(options)
        asked = self._plan(sql, given, analyst=checked_analyst(analyst))
        if not isinstance(asked, PricedStatement):
            return {"state": "answered", "answer": public_answer(self.data, asked).to_wire()}
        door = self._door.of(analyst, checked_purpose(purpose), token=capped(token))
        asked = knowing(door, asked, given)
        made = request_of(asked, self.data, given)

        def held() -> Mapping[str, Any] | None:
            check_most(token, made.epsilon)
            said = {"sql": sql, "options": dict(options), "request": request, "purpose": purpose}
            return self.requests.hold(analyst, made.epsilon, said, token) if self.requests is not None else None

        def answer(stored: StoredRelease) -> Mapping[str, Any]:
            return self._answer(door, asked, given, stored, charged=False)

        return self._stored_or_asked(door, made, request, self._length(asked), held=held, answer=answer)

    def _stored_or_asked(
        self,
        door: Door,
        made: Request,
        request: str,
        length: int,
        *,
        held: Callable[[], Mapping[str, Any] | None],
        answer: Callable[[StoredRelease], Mapping[str, Any]],
    ) -> dict[str, Any]:
        """A stored answer at once; else what is told while it may not be asked (held); else its place, at its charge.

        What is told after it was looked for, by the tick of another thread, is stored when it would be charged: then it
        is looked for again.
        """
        version = door.version(made)
        known = self.ledger.record.requested(space=made.space, analyst=door.analyst, request=request)
        stored = None if known is not None else door.stored_at(made, version)
        if stored is None:
            waits = held() if known is None else None
            if waits is not None:
                return dict(waits)
            try:
                one = self._submit(door, made, request, version, length)
            except IsStored:
                stored = door.stored_at(made, version)
                if stored is None:
                    raise
            else:
                self.tick()  # a free lane starts it now
                return self._told(one)
        return self._shared(door, stored, partial(answer, stored))

    def _shared(self, door: Door, stored: StoredRelease, answer: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """A stored answer, which counts against the limit of whoever reads another's; its id, where it has one."""
        self.ledger.charges.share(stored, door.analyst, token=door.token)
        known = self.ledger.timetable.find(stored.charge_id)
        told = {} if known is None else {"id": known.id, "release_at": instant(known.slot.due)}
        return {"state": "answered", **told, **answer()}

    def _submit(
        self, door: Door, made: Request, request: str, version: str, length: int, *, fresh: bool = False
    ) -> Scheduled:
        sent = replace(made, ask=partial(as_sent, made))
        one = door.submit(sent, name=request, version=version, length=length, queue=self.queue, fresh=fresh)
        self._placed_now(one, made)
        return one

    def _placed_now(self, one: Scheduled, made: Request) -> None:
        if one.new:
            self._as_asked.submitted(one, made)
            self.log(f"asked {one.id} by {one.analyst}, told at {instant(one.slot.due)}")

    def answer(
        self,
        analyst: str,
        charge: str,
        level: float | str | None = None,
        form: str = "json",
        sql: str | None = None,
        having: str | None = None,
        order: str | None = None,
        limit: str | None = None,
        *,
        token: TokenLimits | None = None,
    ) -> dict[str, Any]:
        """What is told of a question of his, or of one that he has read: when its answer comes; the answer; or that
        there is none. level: of its intervals, beside the usual ones. form: "json", "arrow" or "csv".

        sql: another question, of the same groups and aggregates: what was drawn is shown as its answer, for nothing.
        having, order, limit: its clauses ("" for none). Told in JSON, they stand beside the answer.

        Raises QueryError for a question that wants another draw.
        """
        shown = replace(shown_as(level, form), other=OtherQuestion(sql, having, order, limit))
        self.tick()
        waits = self.requests.waiting(analyst, charge) if self.requests is not None else None
        if isinstance(waits, dict):
            return waits
        charge = charge if waits is None else waits
        return self._told(self._readable(analyst, charge), shown=shown, reader=analyst, token=capped(token))

    def cancel(self, analyst: str, charge: str) -> dict[str, Any]:
        """Stop waiting. The run goes on, the charge stays: when it is too late to cancel would tell when it ended."""
        self.tick()
        one = self._mine(analyst, charge)
        return {"id": one.id, "cancelled": False, "why": "a question that was charged is run to its release"}

    def disconnected(self, analyst: str, charge: str) -> None:
        """The analyst does not wait any more: nothing follows."""

    def history(self, analyst: str) -> list[dict[str, Any]]:
        """The questions of an analyst, oldest first."""
        self.tick()
        return [
            {**self._told(one), "sql": one.sql, "asked_at": instant(one.slot.at.wall)}
            for one in self.ledger.timetable.of(analyst)
        ]

    def receipt(self, analyst: str, charge: str) -> dict[str, Any]:
        """What a question asked and cost; where it stands in the chain, and the head as of its release."""
        self.tick()
        one = self._mine(analyst, charge)
        told = self.ledger.record.receipt(one.id)
        state = self.ledger.timetable.fate(one)
        return {**told, "state": state, "incident": one.incident, "chain": self.ledger.timetable.links(one)}

    def events(self, analyst: str) -> list[dict[str, Any]]:
        """How far each question of his is: how many wait before it, and the seconds until it is told."""
        self.tick()
        now = self.ledger.timetable.now()
        waiting = [o for o in self.ledger.timetable.everybody() if o.slot.time(now) < o.slot.due]
        return [
            {
                "id": one.id,
                "before": sum(o.slot.starts < one.slot.starts for o in waiting),
                "seconds": max(0.0, (one.slot.due - one.slot.time(now)) / SECOND),
            }
            for one in waiting
            if one.analyst == analyst
        ]

    def _half_width(self, sql: str, given: Options) -> float | None:
        asked = self._plan(sql, given)
        return checked(self._door, asked, given).columns[0].plus_minus if isinstance(asked, PricedStatement) else None

    def metrics(self) -> dict[str, float]:
        """Counts that step at submissions and releases alone: never chain height, run times, rows, memory."""
        self.tick()
        now = self.ledger.timetable.now()
        everybody = self.ledger.timetable.everybody()
        fates = [self.ledger.timetable.fate(one) for one in everybody]
        return {
            "hubbub_questions_total": len(everybody),
            "hubbub_answers_total": fates.count("answered"),
            "hubbub_no_answers_total": fates.count("no answer"),
            "hubbub_virtual_queue": sum(one.slot.time(now) < one.slot.due for one in everybody),
        }

    def restart(self) -> None:
        """After a start of the service, once runners are ready."""
        for one in self.ledger.timetable.restart(self.queue):
            self.log(f"moved {one.id}, told at {instant(one.slot.due)}")
        self._as_asked.started_again()
        self.tick()

    def _plan(self, sql: str, given: Options, now: datetime | None = None, *, analyst: str | None = None) -> Planned:
        budget = self._budgets()
        planned: Planned = self._planned(lambda: self.data.ask(sql, given, budget, now, analyst=analyst))
        return planned

    def _plan_bounds(self, sql: str, given: Mapping[str, Any], now: datetime | None = None) -> AskedBounds:
        budget = self._budgets()
        planned: AskedBounds = self._planned(lambda: AskedBounds.of(self.data, sql, given, budget, now))
        return planned

    def _budgets(self) -> Callable[[str], Budget]:
        """The budget of each space, as it is now. Planning may be given up at any moment: amid a look at the
        ledger that would leave its lock taken, for everybody.
        """
        return {space: self.ledger.balance.budget(space) for space in set(self.data.spaces().values())}.__getitem__

    def _free(self, what: str) -> dict[str, Any]:
        """The check of what is exact and free."""
        balance = self.ledger.balance
        left = min(largest_epsilon(balance.budget(s), balance.left(s)) for s in set(self.data.spaces().values()))
        told = Check(Fraction(0), left, (), f"{what}: exact and free.", ())
        return {**told.to_wire(), "answer_time": 0.0}

    def _mine(self, analyst: str, charge: str) -> Scheduled:
        one = self.ledger.timetable.find(str(charge))
        if one is None or one.analyst != analyst:
            raise Unknown("there is no such question of yours.")
        return one

    def _readable(self, analyst: str, charge: str) -> Scheduled:
        """A question of his, or one whose answer he has read."""
        one = self.ledger.timetable.find(str(charge))
        if one is not None and one.analyst == analyst:
            return one
        shared = self.ledger.rules.shared_answers
        if one is None or not shared or one.shares is not None or self.ledger.timetable.fate(one) != "answered":
            raise Unknown("there is no such question of yours.")
        if not all(self.ledger.record.has_read(part.entry, analyst) for part in self._parts(one)):
            raise Unknown("there is no such question of yours.")
        return one

    def _parts(self, one: Scheduled) -> list[StoredRelease]:
        """The draws that an answer is made of: its own, and before it the one that it refined.

        Raises QueryError where the text of the question was removed: what it refined, and so what reading it costs,
        went with it.
        """
        if is_commitment(one.ask):
            raise QueryError(
                "the text of this question was removed, and its answer cannot be shown without it. Ask it again, in "
                "its own words: what is stored is free for the data."
            )
        first = json.loads(one.ask).get("refines")
        parts = [self.ledger.record.release(charge) for charge in ((first,) if first else ()) + (one.paid_by,)]
        if None in parts:
            raise InternalError(f"the question {one.id} was answered, and its answer is not there")
        return [part for part in parts if part is not None]

    def _told(
        self,
        one: Scheduled,
        *,
        shown: Shown | None = None,
        reader: str | None = None,
        token: str | None = None,
        counts: bool = False,
    ) -> dict[str, Any]:
        """Its state now, with the answer if there is one and it is wanted. reader: who reads it; else who asked. token:
        through which, where it has a cap: it pays for what it did not ask. counts: so does the reader, of another's.

        Raises QueryError for what cannot be shown, and nothing is counted then.
        """
        state = self.ledger.timetable.fate(one)
        told: dict[str, Any] = {"id": one.id, "state": state, "release_at": instant(one.slot.due)}
        told["incident"] = one.incident
        if state != "answered" or shown is None:
            return told
        *first, stored = self._parts(one)
        door = self._door.of(reader or one.analyst, token=token)
        check_form(one, shown)
        # What cannot be shown is refused before its reading is charged.
        bounds = self._bounds_again(one) if is_about_bounds(one) else None
        if bounds is None:
            asked, given = self._again(one)
            check_drawn_by(partial(key_of, asked), stored)
            if shown.other.any:
                asked = self._otherwise(one, asked, given, stored, shown.other)
        else:
            check_drawn_by(bounds.request(self.data).key, stored)
        if token is not None or counts:
            for part in (*first, stored):
                self.ledger.charges.share(part, checked_analyst(door.analyst), token=token)
        charged = one.shares is None and one.analyst == door.analyst
        if bounds is not None:
            at = json.loads(one.ask).get("at")
            with brought(one.incident):
                return {**told, "bounds": bounds.shown(door, stored, charged=charged, at=at).to_wire()}
        if shown.form == "json":
            told["clauses"] = clauses_told(asked.sql)
        return {**told, **self._answer(door, asked, given, stored, charged=charged, first=first, shown=shown)}

    def _request_again(self, one: Scheduled) -> Request:
        """What a question asks the door for, planned anew from its own words."""
        if is_about_bounds(one):
            return self._bounds_again(one).request(self.data)
        asked, given = self._again(one)
        return request_of(asked.knowing(json.loads(one.ask).get("known", {})), self.data, given)

    def _bounds_again(self, one: Scheduled) -> AskedBounds:
        """What was asked about a question's limits, planned anew from its own words."""
        ask = json.loads(one.ask)
        return self._plan_bounds(ask["sql"], given_in(ask["options"]), datetime.fromisoformat(ask["now"]))

    def _again(self, one: Scheduled) -> tuple[PricedStatement, Options]:
        """The statement of a question, planned anew from its own words.

        Raises QueryError for what was no question, but about its limits; and for what is about public tables by now.
        """
        ask = json.loads(one.ask)
        if "kind" in ask:
            raise QueryError("this was asked about a question's limits: there is no better answer to be had of it.")
        given = Options.from_wire(ask["options"])
        now = datetime.fromisoformat(ask["now"])
        asked = self._plan(ask["sql"], given, now)
        if not isinstance(asked, PricedStatement):
            other_question()
        return asked, given

    def _otherwise(
        self, one: Scheduled, asked: PricedStatement, given: Options, stored: StoredRelease, other: OtherQuestion
    ) -> PricedStatement:
        """Another statement of which this one's draw is the answer: it has the same key, at the version of the rows
        that was read. Nothing is told by it that was not released: above the draw is post-processing.

        Raises QueryError for one that wants another draw.
        """
        now = datetime.fromisoformat(json.loads(one.ask)["now"])
        made = self._plan(question_text(other.text(asked.sql)), given, now)
        version = stored.entry.data_version or ""
        keys = [
            request_of(each, self.data, given).key(version) if isinstance(each, PricedStatement) else None
            for each in (asked, made)
        ]
        if not isinstance(made, PricedStatement) or keys[0] != keys[1]:
            raise QueryError(
                "this wants something that was not drawn: other groups, or another aggregate. That is a question "
                "of its own: look at its price on Ask. Nothing was charged."
            )
        return made

    def _answer(
        self,
        door: Door,
        asked: PricedStatement,
        given: Options,
        stored: StoredRelease,
        *,
        charged: bool,
        first: Sequence[StoredRelease] = (),
        shown: Shown = _PLAIN,
    ) -> dict[str, str]:
        """A stored answer in the form that is wanted, whose receipt names no line of the chain. first: what it refined.

        Raises EngineError where a run brought what is not an answer.
        """
        paid = self.ledger.timetable.find(stored.charge_id)
        links = {"charge": {"hash": stored.entry.hash}} if paid is None else self.ledger.timetable.links(paid)
        with brought(stored.charge_id[:12] if paid is None else paid.incident):
            check_fields(asked, stored)
            refuse_nothing(door, stored, charged=charged)
            release = release_of(door, asked, given, stored, charged=charged)
            for earlier in first:
                release = joined(door, replace(asked, weights=self._weights(earlier)), earlier, release)
            about = {"sql": asked.sql} if shown.other.any else {}
            return written(replace(release, receipt={**release.receipt, **about, "chain": links}), shown)

    def _weights(self, refined: StoredRelease) -> str:
        """How much each error of an answer counted that was refined: to refine it asks with none."""
        one = self.ledger.timetable.find(refined.charge_id)
        if one is None or is_commitment(one.ask) or not json.loads(one.ask)["options"].get("weights"):
            return ""
        return self._again(one)[0].weights

    def _order(self, one: Scheduled) -> Order:
        """What a runner is told: the question, what was charged for it, and nothing of the ledger."""
        entry, ask = self.ledger.record.entry(one.id), json.loads(one.ask)
        return Order(
            charge=one.id,
            kind=ask.get("kind", "sql"),
            ask=lambda: ask,
            space=one.space,
            budget=self.ledger.balance.budget(one.space),
            key=entry.question_key,
            version=entry.data_version or "",
            event=entry.event,
            capped=one.capped,
        )

    def _length(self, asked: PricedStatement, passes: int | None = None) -> int:
        """The answer time of a question: the sum of its tables', as often as they are read."""
        searches = 0 if asked.finding is None else asked.finding.due
        return (1 + searches if passes is None else passes) * sum(self._times[name] for name in asked.tables)
