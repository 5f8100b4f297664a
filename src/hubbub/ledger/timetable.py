"""The schedule of the service in its ledger: who asked when, when it runs, and what is told at its release.

    submit      the charge and its slot (`hubbub.ledger.schedule`), in one transaction, by the ledger's clock; once
    tick        at v_i 'drawing' is written, before a row is read; at r_i the outcome: two links, whatever it is
    stage       what a run brought, kept aside until r_i; only while its window is open, and once
    restart     what had started is a failure, told at its release; what had not gets a new slot

**The chain grows at submissions, at virtual starts and at releases alone, by the same number of links whatever
happened.** An outcome is a `release` and the step 'stored', or a `silence` and the step 'failed'. What a run brought
waits in the table `pending`, which no chain holds. A question that may use less than it was charged ("capped" in what
is asked) gets a third link at its release, before the two, and so does every reading that shares its fate: a `return`,
of what was not used, or of nothing. So a failure counts from its release on; and once its analyst (or
everybody) is locked, what is told next is a `silence` and 'withdrawn', whether it failed or not: of however many that
were waiting, no more than may fail are told.

An outcome is told as it was staged, or not at all: one whose seal does not fit (`hubbub.ledger.scheduled`) is a
failure, and so is that of a question that the chain does not say to be drawing. A question whose step 'drawing' stands
is not run again, whatever `pending` says.

Charges here have no owner: no process that dies marks them, and there is no free retry. Who asks what is under way
shares its fate, at a release of his own; his reading is charged at submission, and nothing else. All that may be read
here of a question before its release follows from submissions and declarations.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hubbub.errors import BudgetError, PolicyError, QueryError
from hubbub.ledger import incidents
from hubbub.ledger.accounts import Total, read_amount, write_amount
from hubbub.ledger.blocks import end_block, note_refusal, return_unused
from hubbub.ledger.books import AccountState, moment
from hubbub.ledger.charge import Charge, checked_text
from hubbub.ledger.charging import Refused, Request, check_failures, check_purpose, record
from hubbub.ledger.handle import Handle
from hubbub.ledger.hash_chain import Connection, Writer, untrue
from hubbub.ledger.proofs import confirm
from hubbub.ledger.readings import by_token, token_of
from hubbub.ledger.records import Entry, IsStored, answers_to, believed, entries, standing_of
from hubbub.ledger.schedule import (
    SECOND,
    Fate,
    Moment,
    Queue,
    QueueFull,
    Slot,
    SteadyClock,
    boot_clock,
    check_room,
    free_lanes,
    microseconds,
    place,
)
from hubbub.ledger.scheduled import (
    NOTHING_BROUGHT,
    OUTCOME,
    STOPPED,
    Brought,
    Scheduled,
    brought,
    fate_of,
    one_where,
    paying,
    pending_of,
    rows_of,
    sealed,
    stopped_at,
    untold_of,
)
from hubbub.ledger.under_way import UnderWay
from hubbub.ledger.wording import is_commitment, shown_by, without_now

__all__ = ["Asking", "Fate", "Queue", "QueueFull", "Scheduled", "Timetable"]


@dataclass(frozen=True)
class Asking:
    """A question that is to be charged. ask: as another process reads it. length: its answer time, in microseconds."""

    charge: Charge
    ask: str
    length: int

    def paid_by(self, block: str) -> Asking:
        """The same, paid by a reserved block."""
        return replace(self, charge=replace(self.charge, block=block))


class Timetable:
    """The schedule of a ledger. running: the clock that nobody sets."""

    def __init__(self, handle: Handle, *, running: Callable[[], tuple[int, str]] = boot_clock) -> None:
        self._handle, self._clock = handle, SteadyClock()
        self.running = running

    def _moment(self, wall: str) -> Moment:
        return self._clock.moment(microseconds(wall), *self.running())

    def now(self) -> Moment:
        """This moment, by the ledger's clock."""
        with self._handle.reading() as connection:
            return self._moment(moment(connection))

    def submit(
        self, asked: Charge, *, ask: str, length: int, queue: Queue, shared: bool = True, fresh: bool = False
    ) -> Scheduled:
        """Charge a question and fix when it is run and told, durably and for good; or share what is under way.

        ask: the question as another process reads it. length: its answer time, in microseconds. shared: whether
        analysts share answers. fresh: a draw of its own, whatever is under way. A request that was sent before, by its
        idempotency key, is the one that it was.

        Raises what `ChargeLifecycle.charge` does, QueueFull, and IsStored for what was told since it was looked for;
        nothing was charged.
        """
        check_purpose(asked, self._handle.rules)
        with self._handle.writing() as writer:
            done = self._placed(writer, Asking(asked, ask, length), queue, shared=shared, fresh=fresh)
            if isinstance(done, Refused):
                note_refusal(writer, asked, done)
        if isinstance(done, Refused):
            raise done.error
        return done

    def submit_plan(
        self, plan: Charge, questions: Sequence[Asking], *, queue: Queue, shared: bool = True
    ) -> list[Scheduled]:
        """Charge several questions as one, and fix when each is run and told: all of them, or none.

        plan: what they cost together. They draw on it, and what they do not use comes back in the same transaction.

        Raises what `submit` raises; nothing was charged then.
        """
        check_purpose(plan, self._handle.rules)
        asked, refused = plan, None
        try:
            with self._handle.writing() as writer:
                known = [_requested(writer.connection, one.charge, one.ask) for one in questions]
                if any(one is not None for one in known):
                    if None in known:
                        raise QueryError("this idempotency key stands for another plan. Use a new key.")
                    return [one for one in known if one is not None]
                block = Request.of(plan, self._handle.rules)  # no process owns a plan
                refused = _recorded(writer, block)
                done: list[Scheduled] = []
                for one in questions if refused is None else ():
                    placed = self._placed(writer, one.paid_by(block.id), queue, shared=shared, fresh=False)
                    if isinstance(placed, Refused):
                        asked, refused = one.charge, placed
                        break
                    done.append(placed)
                if refused is not None:
                    raise refused.error
                (entry,) = entries(writer.connection, "WHERE charge.id = ?", block.id)
                end_block(writer, entry, self._handle.rules)
        except BudgetError:
            if refused is not None:  # what was written of it is gone; that it was refused is kept
                with self._handle.writing() as writer:
                    note_refusal(writer, asked, refused)
            raise
        return done

    def _placed(self, writer: Writer, one: Asking, queue: Queue, *, shared: bool, fresh: bool) -> Scheduled | Refused:
        """One question, charged and in its place; or that it does not fit, and then nothing was written."""
        asked, at = one.charge, self._moment(writer.time)
        known = _requested(writer.connection, asked, one.ask)
        if known is not None:
            return known
        whose_alone = None if shared else asked.analyst
        if not fresh and answers_to(writer.connection, asked.space, asked.question_key, asked.epsilon, whose_alone):
            raise IsStored("this was answered meanwhile. Ask it again: what is stored is free. Nothing was charged.")
        untold = untold_of(writer.connection, at)
        waiting = [each for each in untold if each.slot.time(at) < each.slot.due]
        target = None if fresh else _under_way(writer.connection, untold, asked, shared)
        if target is not None and target.analyst == asked.analyst:
            return _in_the_same_words(target, one.ask, at)
        check_room([each.slot for each in waiting if each.analyst == asked.analyst], one.length, queue, at)
        free = free_lanes([each.slot for each in waiting], queue.lanes, at, queue.tick)
        slot = place(at, one.length, free, queue.tick)
        if target is not None:  # at his own time, and never before the one that he shares
            (paid,) = entries(writer.connection, "WHERE charge.id = ?", target.id)  # `rows_of` compared its line
            asked, slot = _reading(asked, paid), _not_before(slot, target.slot)
        made = Request.of(asked, self._handle.rules, owned=False)
        refused = _recorded(writer, made)
        if refused is not None:
            return refused
        _write(writer, made.id, slot, target, uuid.uuid4().hex[:12], one.ask)
        done = one_where(writer.connection, "c.id = ?", made.id)
        assert done is not None
        return replace(done, new=True)

    def tick(
        self, queue: Queue | None = None, *, changed: Callable[[Scheduled], bool] = lambda _: False
    ) -> list[Scheduled]:
        """Write what has come: the starts and releases until now, in the order of their times. What is to run now.

        queue: where what was to start and to end while nobody looked, as in a machine's sleep, gets a new slot.
        changed: whether what a question reads is declared otherwise by now. It is not run then, as can be said from
        declarations alone: it gets its links as any other, is 'withdrawn' at its release, and counts as no failure.
        """
        with self._handle.reading() as connection:
            at = self._moment(moment(connection))
            coming = [
                (one, state) for one, state, _ in pending_of(connection) if _comes(one, state) <= one.slot.time(at)
            ]
        if not coming:
            return []
        others = {one.serial for one, state in coming if state == "waiting" and changed(one)}
        begun = []
        with self._handle.writing() as writer:
            at = self._moment(writer.time)
            if queue is not None:
                pending = [one for one, state, _ in pending_of(writer.connection) if state == "waiting"]
                missed = {one.serial for one in pending if one.slot.ends <= one.slot.time(at)}
                keep = [one.slot for one in untold_of(writer.connection, at) if one.slot.time(at) < one.slot.ends]
                free = free_lanes(keep, queue.lanes, at, queue.tick) if missed else []
                _move(writer, at, queue, free, missed, [])
            due = [
                (when, one.serial, one, brought(writer.connection, one.serial, state, payload), is_start)
                for one, state, payload in pending_of(writer.connection)
                for when, is_start in ((one.slot.starts, True), (one.slot.due, False))
                if when <= one.slot.time(at) and (state == "waiting" or not is_start)
            ]
            damaged = []
            for _, _, one, outcome, is_start in sorted(due, key=lambda each: (each[0], each[1])):
                stands = standing_of(writer.connection, one.id)[1]
                if not is_start:
                    outcome = outcome if stands == "drawing" else NOTHING_BROUGHT
                    damaged += [] if outcome.is_whole else [one]
                    if stands == "charged":  # its row in `pending` did not say that it waits
                        writer.append("step", one.serial, "drawing", None, None)
                    self._tell(writer, one, outcome._replace(is_run=outcome.is_run and one.serial not in others))
                elif stands == "charged":
                    _draw(writer, one, "changed" if one.serial in others else "drawing")
                    begun += [one] if one.slot.time(at) < one.slot.ends and one.serial not in others else []
                else:
                    _set(writer.connection, one.serial, "damaged", None)
        for one in damaged:
            with suppress(PolicyError):
                incidents.keep(
                    self._handle.path, one.incident, str(untrue(f"outcome of {one.id} is not what was staged"))
                )
        return begun

    def _tell(self, writer: Writer, one: Scheduled, outcome: Brought) -> None:
        """The outcome of a question at its release: two links, and those of what it did not use: of one that was not
        run all of it comes back, unless a plan paid for it, which is closed.
        """
        payload, used, is_run, _ = outcome
        books = AccountState().begin(writer.connection, None)
        try:
            check_failures(books, one.space, one.analyst, self._handle.rules)
            state = "failed" if payload is None else "stored"
        except PolicyError:
            state = "withdrawn"
        state, used = (state, used) if is_run else ("withdrawn", Total())
        if one.capped or not is_run:
            budget = self._handle.budget(writer.connection, one.space)
            for entry in paying(writer.connection, one):
                kept = used if used is not None and (state == "stored" or not is_run) else entry.spend
                if one.capped or entry.block is None:
                    return_unused(writer, entry.id, kept, budget, self._handle.rules)
        if state == "stored":
            writer.append("release", one.serial, payload)
        else:
            writer.append("silence", one.serial, one.incident)
        writer.append("step", one.serial, state, one.incident if state == "failed" else None, None)
        writer.connection.execute("DELETE FROM pending WHERE charge = ?", (one.serial,))

    def stage(
        self, charge_id: str, payload: str | None, *, words: str | None = None, used: Total | None = None
    ) -> bool:
        """Keep what a run brought, until its release: an answer, or None for a failure. Whether it came in time.

        It does while the window of its slot is open, and the first time alone. words: what the engine said of a
        failure, for the steward alone; they are kept under the incident of its submission. used: of a question that may
        use less than it was charged, what it used, where that is less; what is more is not an outcome of it.
        """
        with self._handle.writing() as writer:
            at = self._moment(writer.time)
            for one, state, _ in pending_of(writer.connection):
                if one.id == charge_id and state == "drawing" and one.slot.time(at) < one.slot.ends:
                    text = None if payload is None else checked_text(payload, "release")
                    if text is None or used is None:
                        _stage(writer.connection, one.serial, "failure" if text is None else "answer", text)
                        break
                    entry = believed(writer.connection, charge_id)
                    if entry is not None and one.capped and used.is_within(entry.spend):
                        _stage(writer.connection, one.serial, "part", json.dumps([used.written, text]))
                        break
            else:
                return False
        if payload is None and words is not None:
            with suppress(PolicyError):
                incidents.keep(self._handle.path, one.incident, words)
        return True

    def restart(self, queue: Queue) -> list[Scheduled]:
        """After a start of the service, before it serves: what had started is a failure, told at its release, unless
        its window had closed when the service stopped in good order; what had not started, though its virtual start
        may have come while nobody looked, gets a new slot from now on, in the old order. The new slots.
        """
        with self._handle.writing() as writer:
            ask = writer.connection.execute
            stopped = stopped_at(writer.connection)
            ask("DELETE FROM pending WHERE charge = ?", (STOPPED,))
            for last in rows_of(writer.connection, "s.serial = (SELECT max(serial) FROM schedule)"):
                self._clock.since(last.slot.at)
            at = self._moment(writer.time)
            waiting: set[int] = set()
            for one, state, _ in pending_of(writer.connection):
                if state == "waiting":
                    waiting.add(one.serial)
                elif state != "changed" and not (stopped is not None and one.slot.ends <= stopped):
                    _set(writer.connection, one.serial, "failure", None)
            untold = untold_of(writer.connection, at)
            unstarted = [one.serial for one in untold if one.slot.time(at) < one.slot.starts]
            moved = _move(writer, at, queue, [at.wall] * queue.lanes, waiting, unstarted)
            return [
                moved_row for moved_row in rows_of(writer.connection, "s.due > ?", at.wall) if moved_row.id in moved
            ]

    def stop(self) -> None:
        """Note that the service stops in good order: what was run until now was run to its end."""
        with self._handle.writing() as writer:
            at = str(self._moment(writer.time).wall)
            values = STOPPED, "stopped", sealed(writer.connection, STOPPED, "stopped", at)
            writer.connection.execute("DELETE FROM pending WHERE charge = ?", (STOPPED,))
            writer.connection.execute("INSERT INTO pending VALUES (?, ?, ?)", values)

    def next_time(self) -> int | None:
        """The wall time of the next start or release; None where nothing waits."""
        with self._handle.reading() as connection:
            return min((_comes(one, state) for one, state, _ in pending_of(connection)), default=None)

    def waiting(self) -> list[Scheduled]:
        """What has not started yet, oldest first."""
        with self._handle.reading() as connection:
            return [one for one, state, _ in pending_of(connection) if state == "waiting"]

    def running_now(self) -> list[Scheduled]:
        """What has started and was not told yet."""
        with self._handle.reading() as connection:
            return [one for one, state, _ in pending_of(connection) if state != "waiting"]

    def find(self, charge_id: str) -> Scheduled | None:
        """A question by its id; None where the service has none."""
        with self._handle.reading() as connection:
            return one_where(connection, "c.id = ?", charge_id)

    def of(self, analyst: str) -> list[Scheduled]:
        """The questions of an analyst, oldest first."""
        with self._handle.reading() as connection:
            return rows_of(connection, "c.analyst = ?", analyst)

    def everybody(self) -> list[Scheduled]:
        """All questions of the service, oldest first."""
        with self._handle.reading() as connection:
            return rows_of(connection, "1 = 1")

    def fate(self, one: Scheduled) -> Fate:
        """What is told of a question now."""
        with self._handle.reading() as connection:
            if one.slot.time(self._moment(moment(connection))) < one.slot.due:
                return "asked"
            row = connection.execute(f"{OUTCOME} AND charge.id = ?", (one.paid_by,)).fetchone()
            confirm(connection, "step", *(() if row is None else (row[2],)))
            return fate_of(row)

    def fates(self, several: Sequence[Scheduled]) -> list[Fate]:
        """What is told of each of some questions now."""
        with self._handle.reading() as connection:
            at = self._moment(moment(connection))
            outcomes = {row[1]: row for row in connection.execute(OUTCOME).fetchall()}
            confirm(connection, "step", *(outcomes[one.paid_by][2] for one in several if one.paid_by in outcomes))
        return ["asked" if one.slot.time(at) < one.slot.due else fate_of(outcomes.get(one.paid_by)) for one in several]

    def links(self, one: Scheduled) -> dict[str, Any]:
        """Where a question stands in the chain, for its analyst: hashes, no numbers; the head as of its outcome."""
        told = self.fate(one) != "asked"
        with self._handle.reading() as connection:
            hash_at = "SELECT hash FROM journal WHERE serial = "
            charge = connection.execute(f"{hash_at}?", (one.serial,)).fetchone()[0]
            head = connection.execute(
                f"{hash_at}(SELECT max(step.serial) FROM step JOIN charge ON charge.serial = step.charge "
                "WHERE charge.id = ? AND step.state IN ('stored', 'failed', 'withdrawn'))",
                (one.paid_by,),
            ).fetchone()
        shown = {"head": {"hash": head[0]}} if told else {}
        return {"ledger": self._handle.id, "charge": {"hash": charge}, **shown}


def _comes(one: Scheduled, state: str) -> int:
    return one.slot.starts if state == "waiting" else one.slot.due


def _draw(writer: Writer, one: Scheduled, state: str) -> None:
    writer.append("step", one.serial, "drawing", None, None)
    _stage(writer.connection, one.serial, state, None if state == "drawing" else "")


def _stage(connection: Connection, serial: int, state: str, content: str | None) -> None:
    """Keep what is told at a release, with its seal."""
    _set(connection, serial, state, None if content is None else sealed(connection, serial, state, content))


def _set(connection: Connection, serial: int, state: str, payload: str | None) -> None:
    connection.execute("UPDATE pending SET state = ?, payload = ? WHERE charge = ?", (state, payload, serial))


def _recorded(writer: Writer, made: Request) -> Refused | None:
    """The charge, written, and its sums where the next one of this transaction finds them; or that it does not fit."""
    recorded = record(writer, AccountState().begin(writer.connection, writer.head), made, UnderWay())
    writer.finish()
    return recorded if isinstance(recorded, Refused) else None


def _move(
    writer: Writer, at: Moment, queue: Queue, free: list[int], waiting: set[int], others: Sequence[int]
) -> list[str]:
    """New slots from now on, in the old order, for what waits, whoever shares it, and others. The charges moved."""
    moved: list[str] = []
    for one in untold_of(writer.connection, at) if waiting or others else ():
        target = None if one.shares is None else one_where(writer.connection, "c.id = ?", one.shares)
        if (target or one).serial not in waiting and one.serial not in others:
            continue
        slot = place(at, one.slot.ends - one.slot.starts, free, queue.tick)
        free[slot.lane] = slot.ends
        slot = slot if target is None else _not_before(slot, target.slot)
        _write(writer, one.id, slot, target, one.incident, one.ask, again=True)
        moved.append(one.id)
    return moved


def _write(
    writer: Writer,
    charge_id: str,
    slot: Slot,
    target: Scheduled | None,
    incident: str,
    ask: str,
    *,
    again: bool = False,
) -> None:
    (serial,) = writer.connection.execute("SELECT serial FROM charge WHERE id = ?", (charge_id,)).fetchone()
    shares = None if target is None else target.serial
    at = slot.at
    writer.append(
        "schedule", serial, shares, slot.lane, at.wall, slot.starts, slot.ends, slot.due, at.running, at.boot, incident,
        checked_text(ask, "question"),
    )  # fmt: skip
    if target is None and not again:
        writer.connection.execute("INSERT INTO pending VALUES (?, ?, ?)", (serial, "waiting", None))


def _requested(connection: Connection, asked: Charge, ask: str) -> Scheduled | None:
    """The question that an idempotency key stands for."""
    if asked.request is None:
        return None
    row = connection.execute(
        "SELECT id, epsilon FROM charge WHERE unit_space = ? AND analyst = ? AND request = ?",
        (asked.space, asked.analyst, asked.request),
    ).fetchone()
    if row is None:
        return None
    known = one_where(connection, "c.id = ?", row[0])
    if known is not None and is_commitment(known.ask):
        raise QueryError(
            f"the idempotency key {asked.request!r} stands for a question whose text was removed. Use a new key: what "
            "is stored is free."
        )
    if known is None or row[1] != write_amount(asked.epsilon) or without_now(known.ask) != without_now(ask):
        raise QueryError(f"the idempotency key {asked.request!r} stands for another question. Use a new key.")
    return known


def _in_the_same_words(known: Scheduled, ask: str, at: Moment) -> Scheduled:
    """One's own question that waits: it has one text, by which its answer is shown. Raises QueueFull for another."""
    comes = max(0, known.slot.due - known.slot.time(at))
    if shown_by(known.ask) == shown_by(ask):
        return known
    raise QueueFull(
        "this needs the same noisy numbers as a question of yours that waits now, in other words. They are told in "
        f"{comes / SECOND:.1f} seconds, and this is free then: ask again. Nothing was charged.",
        max(1, -(-comes // SECOND)),
    )


def _under_way(connection: Connection, untold: Sequence[Scheduled], asked: Charge, shared: bool) -> Scheduled | None:
    """The very same question, at no less epsilon, that was not told yet: one's own (or what one shares) first."""
    same = connection.execute(
        "SELECT serial, epsilon FROM charge WHERE unit_space = ? AND question_key = ? AND kind IN ('question', "
        "'reading')",
        (asked.space, asked.question_key),
    ).fetchall()
    enough = {serial for serial, epsilon in same if read_amount(epsilon) >= asked.epsilon}
    under_way = [one for one in untold if one.serial in enough]
    mine = [one for one in under_way if one.analyst == asked.analyst]
    theirs = [one for one in under_way if one.shares is None] if shared else []
    return next(iter([*mine, *theirs]), None)


def _reading(asked: Charge, paid: Entry) -> Charge:
    """What sharing costs: the reader's own limit, as the reading of a stored answer does: all that the answer cost, for
    it is as good as that, however little it was asked at.
    """
    details = by_token(json.dumps({"release": paid.id}), token_of(asked.details))
    return replace(asked, kind="reading", block=None, details=details, cost=paid.spend, event=paid.event)


def _not_before(slot: Slot, other: Slot) -> Slot:
    return Slot(slot.lane, slot.at, slot.starts, slot.ends, max(slot.due, other.due))
