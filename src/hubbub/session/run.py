"""The one door to private rows: open, execute, close. Every question about them is charged and drawn here.

    open(request) -> Order              the stored answer, or a durable charge; ledger and key, no rows
    execute(order, request) -> Outcome  rows and noise; no ledger, no key
    close(order, outcome) -> release    the answer stored, durable before anybody sees it; or the failure recorded

`Door.release` does the three in one process. They may as well run in two: an `Order` and an `Outcome` have a wire form,
and `hubbub.session.runner` executes without a ledger. A process that only executes can neither charge nor answer
another order than the one it was given: what it says is read as the outcome of that order, and of no other.

**What a request is.** `steps` is a generator that reads and draws. Before each draw it yields the event that it is
about to run, and goes on only if that was admitted:

- A *fixed* request is charged its whole event when it is opened, and yields that event once.
- A *capped* one reserves its event; what it yields is added up, exactly, and may not exceed the cap (the filter of
  Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1, with the order's cap as its budget). What was not used comes back when
  it is closed, and before the answer is stored.

The charge is durable before a row is read, and so is its step to 'drawing' before anything is drawn. From then on there
is no retry. A charge whose process died, or gave it up, before anything was drawn is taken over, once; two that ask the
same at once pay once. A failure on rows is charged, counted, and told by the id of an incident alone.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from hubbub.accounting import Composed, Cost, Event, cost as cost_of, from_json, to_json
from hubbub.accounting.amounts import ratio
from hubbub.arguments import a_choice, a_name
from hubbub.errors import EngineError, InternalError, ParameterError, PolicyError, QueryError
from hubbub.ledger.accounts import TOGETHER, Total
from hubbub.ledger.budget import Budget, decimal_text
from hubbub.ledger.charge import Charge
from hubbub.ledger.readings import by_token
from hubbub.progress import at_work
from hubbub.session.looks import cost_of_steps
from hubbub.session.same_rows import SameRows

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger, StoredRelease
    from hubbub.ledger.timetable import Asking, Queue, Scheduled
    from hubbub.noise import Bits
    from hubbub.session.data import OpenTables

__all__ = ["CHANGED", "Door", "Order", "Outcome", "Request", "Steps", "execute"]

Steps = Generator[Event, None, str]
"""Reads and draws; yields each event before it is drawn, and returns what is to be stored."""

CHANGED: Final = "the rows have changed since; ask the question anew. Nothing was charged."
_FORMAT: Final = "order 1"


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked for, before it is charged: everything here is public.

    kind: of question, as "sql". text: as people read it. ask: as another process reads it. tables: the private ones,
    public: the public ones. epsilon: what it is asked for at. event: what it runs, or may run at most. key: its name,
    equal for equal ones, given the version of the rows. details: for the receipt. steps: given a test's bits, or None.
    capped: whether it may run less. public_words: whether a QueryError of its steps shows public values alone.
    """

    kind: str
    text: str
    ask: Callable[[], Mapping[str, Any]]
    space: str
    tables: tuple[str, ...]
    epsilon: Fraction
    event: Event
    key: Callable[[str], str] = field(repr=False)
    details: Mapping[str, Any] = field(repr=False)
    steps: Callable[[Bits | None], Steps] = field(repr=False)
    capped: bool = False
    public_words: bool = False
    public: tuple[str, ...] = ()

    @property
    def dataset(self) -> str:
        """Its private tables, as the ledger names them."""
        return TOGETHER.join(self.tables)


@dataclass(frozen=True)
class Order:
    """A request that is charged, and is to be executed: once, by whoever holds the rows.

    charge: the charge that pays. ask: what was asked, as another process reads it; made where it is sent. key, version:
    the question, and the version of the rows that it is asked of. event: what may run, as JSON. marks: what tells
    whether a source has changed, by table. capped: whether less may run.
    """

    charge: str
    kind: str
    ask: Callable[[], Mapping[str, Any]]
    space: str
    budget: Budget
    key: str
    version: str
    event: str
    marks: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    capped: bool = False

    def to_wire(self) -> str:
        """The order as text, for another process.

        Raises ParameterError where a value of `keys` or `params` has no form there; `Door.open` says so before the
        charge where it is told that the order will be sent.
        """
        budget = self.budget
        amounts = [budget.epsilon, budget.delta, None if budget.delta is None else budget.delta_threshold]
        wire = {name: getattr(self, name) for name in self.__dataclass_fields__}
        wire |= {"ask": dict(self.ask()), "marks": dict(self.marks), "format": _FORMAT}
        training = None if budget.training is None else [str(a) for a in budget.training]
        return json.dumps(wire | {"budget": [*(None if a is None else str(a) for a in amounts), training]})

    @classmethod
    def from_wire(cls, text: str) -> Order:
        """What `to_wire` wrote.

        Raises ParameterError for anything else.
        """
        try:
            wire = json.loads(text)
            if wire.pop("format") != _FORMAT:
                raise ValueError("the order of another hubbub")
            epsilon, delta, threshold, training = wire.pop("budget")
            ask = dict(wire.pop("ask"))
            budget = Budget(epsilon, delta, delta_threshold=threshold, training=training)
            return cls(budget=budget, ask=lambda: ask, **wire)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ParameterError("this is not an order of this version of hubbub.") from None


@dataclass(frozen=True)
class Outcome:
    """What became of an order: a payload, or an incident.

    charge: of the order. payload: what is to be stored. used: what was run, where that is less than was charged.
    incident: where it failed; words: what the engine itself said, for the steward alone, since they may hold rows.
    refused: where a part that reads releases failed on their values, which are public.
    """

    charge: str
    payload: str | None = field(default=None, repr=False)
    used: Cost | None = None
    incident: str | None = None
    words: str | None = field(default=None, repr=False)
    refused: str | None = None

    def to_wire(self) -> str:
        """The outcome as text, for the process that closes the order."""
        wire = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(wire | {"used": None if self.used is None else Total.of(self.used).written})

    @classmethod
    def from_wire(cls, text: str, order: Order) -> Outcome:
        """What `to_wire` wrote of this order.

        Whoever wrote it may not be told to speak of another order, nor to give back what a fixed one was charged.

        Raises ParameterError for anything else.
        """
        try:
            wire = json.loads(text)
            used = wire.pop("used")
            if used is not None and not order.capped:  # it is not even read
                raise ParameterError(f"the order {order.charge} runs what was charged, and gives nothing back.")
            outcome = cls(used=None if used is None else Total.read(*used).cost, **wire)
        except ParameterError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, PolicyError):
            raise ParameterError("this is not the outcome of an order of this version of hubbub.") from None
        if outcome.charge != order.charge:
            raise ParameterError(f"this is the outcome of another order than {order.charge}.")
        if (outcome.payload is None) == (outcome.incident is None):
            raise ParameterError(f"the outcome of the order {order.charge} is either an answer or an incident.")
        if outcome.used is not None and not _is_enough(outcome.used, outcome.payload, order):
            raise ParameterError(f"the outcome of the order {order.charge} was not drawn for so little.")
        return outcome


def _is_enough(used: Cost, payload: str | None, order: Order) -> bool:
    """Whether an answer can have been drawn for so little: where a bound was found, it and the answer were; where none
    was, the search; and of a share of the answer its steps, which say how exact it is.
    """
    if payload is None or order.kind != "sql":
        return payload is not None
    try:
        contents, event = json.loads(payload), from_json(order.event)
        if "looks" in contents:
            return used.rho == ratio(contents["used"]) == cost_of_steps(cost_of(event).rho, contents)
    except (ValueError, TypeError, KeyError, IndexError):
        return False
    if not isinstance(event, Composed):
        return False
    drawn = event.children[:1] if "nothing" in contents else (event.children[0], event.children[-1])
    return Total.of(cost_of(Composed(drawn))).is_within(Total.of(used))


class _Filter:
    """What an order may still run. A fixed one runs its event, once; a capped one no more than its event in all."""

    def __init__(self, event: str, *, capped: bool) -> None:
        self._event, self._capped = event, capped
        self._cap = cost_of(from_json(event))
        self._sum: Cost | None = None

    def admit(self, event: Event) -> None:
        """Raises InternalError for a draw that was not charged: nothing of it may be drawn."""
        if not self._capped and (self._sum is not None or to_json(event) != self._event):
            raise InternalError("a fixed order runs what was charged, once")
        cost, cap = cost_of(event), self._cap
        self._sum = cost if self._sum is None else self._sum + cost
        pure = cap.epsilon is None or (self._sum.epsilon is not None and self._sum.epsilon <= cap.epsilon)
        if not (pure and self._sum.rho <= cap.rho and self._sum.delta <= cap.delta):
            raise InternalError("an order may run no more than was charged for it")

    @property
    def used(self) -> Cost | None:
        """What was run, where that is less than was charged."""
        return self._sum if self._capped and self._sum != self._cap else None


def execute(
    order: Order, request: Request, data: OpenTables, *, drawing: Callable[[], None], bits: Bits | None = None
) -> Outcome:
    """Read and draw what was charged. drawing: makes the step to 'drawing' durable; called once, before the first draw.

    Raises InternalError where the request is not the order's; what `drawing` raises; and what ends the program. Any
    other error is in the outcome, without its words.
    """
    if request.kind != order.kind or to_json(request.event) != order.event or request.key(order.version) != order.key:
        raise InternalError(f"the charge {order.charge} pays for another question than the one it was to run")
    allowed = _Filter(order.event, capped=request.capped)
    steps, begun = SameRows(order.marks, data).checked(request.steps(bits)), False
    while True:
        event, outcome = _next(order, steps, allowed, data, request.public_words)
        if event is None:
            return outcome
        allowed.admit(event)
        if not begun:
            drawing()
            begun = True


def _next(
    order: Order, steps: Steps, allowed: _Filter, data: OpenTables, public_words: bool
) -> tuple[Event | None, Outcome]:
    """The event that is to be drawn next, or what became of the order."""
    incident = refused = None
    try:
        return next(steps), Outcome(order.charge)
    except StopIteration as done:
        return None, Outcome(order.charge, payload=done.value, used=allowed.used)
    except EngineError as error:
        incident = error.incident
    except Exception as error:  # it looked at rows, and its words may hold them
        incident = uuid.uuid4().hex[:12]
        refused = str(error) if public_words and isinstance(error, QueryError) else None
    return None, Outcome(order.charge, incident=incident, words=data.engine.words(incident), refused=refused)


class Door:
    """Opens and closes orders for one analyst. policy: what the session declares, as text. purpose: what is asked for.
    token: of the service, where it has a cap. bits: of a test.
    """

    def __init__(
        self,
        data: OpenTables,
        ledger: Ledger,
        *,
        analyst: str,
        policy: str,
        purpose: str | None = None,
        token: str | None = None,
        bits: Bits | None = None,
    ) -> None:
        self.data, self.ledger, self.analyst, self.purpose, self.bits = data, ledger, analyst, purpose, bits
        self.token = token
        self._policy = policy
        # Of the thread (or task) that reserved it: another's questions do not spend it.
        self._blocks: ContextVar[str | None] = ContextVar("hubbub_block", default=None)

    def of(self, analyst: str, purpose: str | None = None, *, token: str | None = None) -> Door:
        """The same for another analyst, who has no block."""
        return Door(
            self.data, self.ledger, analyst=analyst, policy=self._policy, purpose=purpose, token=token, bits=self.bits
        )

    @property
    def block(self) -> str | None:
        """The reserved block that pays for the questions of this thread."""
        return self._blocks.get()

    @contextmanager
    def reserved(
        self, *, space: str, epsilon: Fraction, events: Sequence[Event] = (), plan: str | None = None
    ) -> Iterator[str]:
        """A block that pays for the questions asked inside the `with`; what they do not use comes back at its end.

        Raises BudgetError if it does not fit.
        """
        charges, held, analyst, purpose = self.ledger.charges, list[str](), self.analyst, self.purpose
        try:
            try:
                block = charges.reserve(
                    space=space, analyst=analyst, epsilon=epsilon, events=events, plan=plan, purpose=purpose, held=held
                )
                self._blocks.set(block)
                yield block
            finally:
                self._end(held)
        finally:  # Ctrl-C may have come on the way into that
            self._end(held)

    def _end(self, held: list[str]) -> None:
        self._blocks.set(None)
        while held:
            self.ledger.charges.close_block(held[-1])
            held.pop()

    def version(self, request: Request) -> str:
        """The version of the rows: of each table, in the ledger's words."""
        return self._version(request.space, {name: self.data.mark(name) for name in request.tables})

    def _version(self, space: str, marks: Mapping[str, str | None]) -> str:
        """A source is known to have changed by a mark of the engine's, which the ledger keys."""
        ask = self.ledger.versions.data_version
        return " ".join(ask(space, name, fingerprint=mark) for name, mark in marks.items())

    def stored(self, request: Request) -> StoredRelease | None:
        """The stored answer that is as good, if there is one. Whoever only looks issues no version of the rows."""
        ask, space = self.ledger.versions.known, request.space
        known = [ask(space, name, fingerprint=self.data.mark(name)) for name in request.tables]
        return self.stored_at(request, " ".join(map(str, known))) if None not in known else None

    def stored_at(self, request: Request, version: str) -> StoredRelease | None:
        """As `stored`, of a version of the rows."""
        return self.ledger.record.find_release(
            space=request.space,
            question_key=request.key(version),
            at_least=request.epsilon,
            reader=self.analyst,
            token=self.token,
        )

    @at_work("asking")
    def release(
        self, request: Request, *, fresh: bool = False, name: str | None = None, version: str | None = None
    ) -> tuple[StoredRelease, bool]:
        """The stored answer, or a new one; and whether it was charged now. The arguments are those of `open`.

        Raises BudgetError, PolicyError, QueryError before the charge, EngineError (an incident) or QueryError after.
        """
        with self.ledger.charges.owned():
            order = self.open(request, fresh=fresh, name=name, version=version)
            if not isinstance(order, Order):
                return order, False
            outcome = execute(
                order,
                request,
                self.data,
                drawing=lambda: self.ledger.charges.advance(order.charge, "drawing"),
                bits=self.bits,
            )
            self.record(outcome)
        return self.close(outcome), True

    def open(
        self,
        request: Request,
        *,
        fresh: bool = False,
        name: str | None = None,
        version: str | None = None,
        sent: bool = False,
    ) -> Order | StoredRelease:
        """The stored answer, or a charge that is this process's to have executed.

        fresh: draw anew, and pay again. name: the idempotency key: the same name again is charged and drawn once.
        version: the rows must still be of it. sent: the order goes to another process.

        Raises BudgetError, PolicyError, QueryError; nothing was charged then.
        """
        if name is not None:
            a_name(name, "idempotency_key")
        a_choice(fresh, "fresh")
        if sent:
            request.ask()
        # Looked at once: what is stored, taken over, charged and executed is of one and the same version.
        marks = {table: self.data.mark(table) for table in request.tables}
        rows = self._version(request.space, marks)
        charge, known = self._requested(request, name, rows)
        if charge is None and known is None and not fresh:
            known = self.stored_at(request, rows)
        if known is not None:
            self.ledger.charges.share(known, self.analyst, token=self.token)
            self.ledger.charges.advance(known.charge_id, "shown")
            return known
        # All that can fail is looked up first: what is charged is at once in the hands of whoever lets go of it.
        asked, budget = self.charge_of(request, name, rows), self.ledger.balance.budget(request.space)
        if charge is None:
            if version is not None and asked.data_version != version:
                raise QueryError(CHANGED)
            charge, known = self._claimed(asked, once=not fresh and name is None)
        if known is not None:
            return known
        return Order(
            charge=charge,
            kind=request.kind,
            ask=request.ask,
            space=request.space,
            budget=budget,
            key=asked.question_key,
            version=asked.data_version or "",
            event=asked.event,
            marks=marks,
            capped=request.capped,
        )

    def submit(
        self, request: Request, *, name: str, version: str, length: int, queue: Queue, fresh: bool = False
    ) -> Scheduled:
        """A charge with its place in the schedule of the service, which has it executed at its time and closes it.

        name: the idempotency key. length: its answer time, in microseconds. fresh: a draw of its own.

        Raises BudgetError, PolicyError, QueryError; nothing was charged then.
        """
        return self.ledger.timetable.submit(
            self.charge_of(request, a_name(name, "idempotency_key"), version),
            ask=json.dumps(request.ask()),
            length=length,
            queue=queue,
            shared=self.ledger.rules.shared_answers,
            fresh=fresh,
        )

    def submit_plan(self, plan: Charge, questions: Sequence[Asking], *, queue: Queue) -> list[Scheduled]:
        """As `submit`, of several questions that are charged as one: all of them, or none."""
        shared = self.ledger.rules.shared_answers
        return self.ledger.timetable.submit_plan(plan, questions, queue=queue, shared=shared)

    def record(self, outcome: Outcome) -> None:
        """Store the answer, or record the failure, durably."""
        if outcome.payload is None:
            self.ledger.charges.advance(outcome.charge, "failed", incident=outcome.incident)
            if outcome.words is not None and outcome.incident is not None and self.ledger.where != "in memory":
                with suppress(PolicyError):
                    self.ledger.charges.keep_incident(outcome.incident, outcome.words)
            return
        if outcome.used is not None:
            self.ledger.charges.give_back(outcome.charge, used=outcome.used)
        self.ledger.charges.store(outcome.charge, outcome.payload)

    def close(self, outcome: Outcome) -> StoredRelease:
        """The answer of an outcome that was recorded.

        Raises EngineError or QueryError where it is none.
        """
        if outcome.refused is not None:
            raise QueryError(
                f"{outcome.refused}\nThis was charged ({outcome.charge}): an earlier part had been answered."
            )
        if outcome.incident is not None:
            raise EngineError(outcome.incident)
        self.ledger.charges.advance(outcome.charge, "shown")
        release = self.ledger.record.release(outcome.charge)
        if release is None:
            raise InternalError(f"charge {outcome.charge} was stored and is not there")
        return release

    def charge_of(self, request: Request, name: str | None, version: str) -> Charge:
        """The charge of a request, as the ledger records it."""
        return Charge(
            cost=cost_of(request.event),
            policy=self.ledger.versions.remember_policy(self._policy),
            data_version=version,
            request=name,
            block=self.block,
            space=request.space,
            dataset=request.dataset,
            analyst=self.analyst,
            question_key=request.key(version),
            sql=request.text,
            epsilon=request.epsilon,
            event=to_json(request.event),
            details=by_token(json.dumps(request.details), self.token),
            purpose=self.purpose,
        )

    def _requested(self, request: Request, name: str | None, version: str) -> tuple[str | None, StoredRelease | None]:
        """What became of a request that was sent before: its charge, if it may still be drawn, or its answer."""
        if name is None:
            return None, None
        entry = self.ledger.record.requested(space=request.space, analyst=self.analyst, request=name)
        if entry is None:
            return None, None
        if entry.epsilon != request.epsilon or entry.question_key != request.key(version):
            raise QueryError(f"the idempotency key {name!r} stands for another question. Use a new key.")
        stored = self.ledger.record.release(entry.id)
        if stored is not None:
            return None, stored
        charge = self.ledger.charges.resume(self.charge_of(request, name, version), charge=entry.id)
        if charge is None:
            raise QueryError(
                f"the request {name!r} was charged ({entry.id}, now {entry.state!r}) and has no answer: it is under "
                "way, or was lost. Ask again later, or with a new key at a new charge."
            )
        return charge, None

    def _claimed(self, asked: Charge, *, once: bool) -> tuple[str, StoredRelease | None]:
        """A charge that is now this process's to draw; or, `once`, another's and its answer, which came meanwhile."""
        charge = self.ledger.charges.resume(asked)  # of one that died before anything was drawn: its free retry
        if charge is not None:
            return charge, None
        if once:
            charge, new = self.ledger.charges.charge_once(asked)
            if new:
                return charge, None
            # Somebody asks the very same at this moment: theirs is the answer, and it was paid once.
            stored = self.ledger.record.await_release(charge)
            if stored is not None:
                self.ledger.charges.share(stored, self.analyst, token=self.token)
                return charge, stored
        return self.ledger.charges.charge(asked), None

    def receipt(self, stored: StoredRelease) -> dict[str, Any]:
        """What is told of an answer beside its numbers."""
        entry, told = stored.entry, self.ledger.record.receipt(stored.entry.id)
        return {
            "id": entry.id,
            "time": entry.time,
            "analyst": entry.analyst,
            "sql": entry.sql,
            "epsilon": decimal_text(entry.epsilon),
            "unit_space": entry.space,
            **{name: value for name, value in json.loads(entry.details).items() if name != "token"},
            **{k: v for k, v in told.items() if k in ("policy", "data_version", "looked_at_rows", "chain")},
        }
