"""One planted bug for each way in which a service could tell when a run ended. The audit must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hubbub.errors import EngineError, HubbubError
from hubbub.ledger.hash_chain import head_of
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.timetable import QueueFull, Scheduled, Timetable, _set, _write
from hubbub.service.desk import Desk
from hubbub.session.run import Outcome


@dataclass(frozen=True)
class Bug:
    """What is planted: a desk, a timetable, or an engine that works on; which script finds it, where runs bring what.
    takes: seconds of a run in the second world.
    """

    script: str
    outcome: str
    desk: type[Desk] = Desk
    timetable: type[Timetable] = Timetable
    takes: float = 4.7
    left_working: bool = False


class Told(Desk):
    """Knows what ended, as a careless desk would."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.ended: dict[str, Outcome] = {}

    def finished(self, one: Scheduled, outcome: Outcome) -> bool:
        self.ended[one.id] = outcome
        return super().finished(one, outcome)


class StoredFlag(Told):
    def check(self, analyst, sql, options, **more):
        told = super().check(analyst, sql, options, **more)
        return {**told, "stored": told["stored"] or any(o.payload for o in self.ended.values())}


class EarlyAnswer(Told):
    def _told(self, one, **more):
        told = super()._told(one, **more)
        return {**told, "state": "answered"} if one.paid_by in self.ended else told


class SecondAsker(Told):
    """Who asks what has ended already is told at once."""

    def ask(self, analyst, sql, options, request, purpose=None, **more):
        told = super().ask(analyst, sql, options, request, purpose, **more)
        one = self.ledger.timetable.find(told.get("id", ""))
        return {**told, "state": "answered"} if one and one.shares in self.ended else told


class Cancel(Told):
    """Says whether it was too late."""

    def cancel(self, analyst, charge):
        return {**super().cancel(analyst, charge), "too_late": charge in self.ended}


class Disconnect(Told):
    """Ends the run of somebody who went away."""

    def disconnected(self, analyst, charge):
        if charge not in self.ended:
            self.ledger.timetable.stage(charge, None)


class History(Told):
    def history(self, analyst):
        return [{**one, "step": "stored" if one["id"] in self.ended else "drawing"} for one in super().history(analyst)]


class Events(Told):
    def events(self, analyst):
        return [{**one, "share": 1.0 if one["id"] in self.ended else 0.5} for one in super().events(analyst)]


class Metrics(Told):
    """Counts the processes that were replaced when their runs ended."""

    def metrics(self):
        return {**super().metrics(), "respawns": len(self.ended)}


class Log(Told):
    def finished(self, one, outcome):
        self.log(f"ended {one.id}")
        return super().finished(one, outcome)


class HeadNow(Desk):
    """Receipts with the head as of the reading."""

    def receipt(self, analyst, charge):
        told = super().receipt(analyst, charge)
        with self.ledger._handle.reading() as connection:
            return {**told, "height": head_of(connection).serial}


class Linked(Timetable):
    """Links what a run brought as soon as it is there."""

    def stage(self, charge_id, payload, **more):
        kept = super().stage(charge_id, payload, **more)
        with self._handle.writing() as writer:
            writer.append("clearance", "patient_id", "nobody", "a careless ledger")
        return kept


class KeptOverRestart(Timetable):
    """What had been brought is told after a restart."""

    def restart(self, queue):
        with self._handle.reading() as connection:
            kept = connection.execute("SELECT charge, state, payload FROM pending").fetchall()
        found = super().restart(queue)
        with self._handle.writing() as writer:
            for charge, state, payload in kept:
                if state == "answer":
                    _set(writer.connection, charge, state, payload)
        return found


class EarlyLock(Told):
    """A failure counts when it happens."""

    def ask(self, analyst, sql, options, request, purpose=None, **more):
        if sum(o.payload is None for o in self.ended.values()) >= 3:
            raise HubbubError("too many questions failed")
        return super().ask(analyst, sql, options, request, purpose, **more)


class Incidents(Told):
    """Only a failure has an incident."""

    def _told(self, one, **more):
        told = super()._told(one, **more)
        return {k: v for k, v in told.items() if k != "incident" or one.id in self.ended}


class Retry(Told):
    """What was killed before it ended may be asked again for nothing."""

    def ask(self, analyst, sql, options, request, purpose=None, **more):
        told = super().ask(analyst, sql, options, request, purpose, **more)
        return {**told, "free": told.get("id") not in self.ended}


class Room(Told):
    """A place is free when its run has ended."""

    def ask(self, analyst, sql, options, request, purpose=None, **more):
        try:
            return super().ask(analyst, sql, options, request, purpose, **more)
        except QueueFull:
            if not self.ended:
                raise
            return {"state": "asked"}


class Refund(Told):
    """What failed is given back at once."""

    def check(self, analyst, sql, options, **more):
        told = super().check(analyst, sql, options, **more)
        return {**told, "left": f"{told['left']} and {sum(o.payload is None for o in self.ended.values())} back"}


class FullDisk(Told):
    """What a run puts aside fills the disk on which the ledger lies, within a second."""

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.begun, start = dict[str, Scheduled](), self._start
        self._start = lambda one, order: (self.begun.update({one.id: one}), start(one, order))[1]

    def ask(self, analyst, sql, options, request, purpose=None, **more):
        now = self.ledger.timetable.now()
        if any(b.slot.time(now) > b.slot.starts + SECOND for name, b in self.begun.items() if name not in self.ended):
            raise EngineError("the ledger cannot be written: no space left on device")
        return super().ask(analyst, sql, options, request, purpose, **more)


class OutOfMemory(Told):
    """Where a run has gone on for long, memory is short, and the system ends the clerk: it comes again."""

    def finished(self, one, outcome):
        if one.slot.time(self.ledger.timetable.now()) > one.slot.starts + 4 * SECOND:
            self.restart()
        return super().finished(one, outcome)


class Overrun(Timetable):
    """Waits for a run that takes longer than its slot."""

    def stage(self, charge_id, payload, **more):
        one = self.find(charge_id)
        assert one is not None
        with self._handle.writing() as writer:
            at = self._moment(writer.time)
            slot = replace(one.slot, at=at, ends=at.wall + 1, due=max(at.wall, one.slot.due - 60 * SECOND))
            _write(writer, one.id, slot, None, one.incident, one.ask, again=True)
        return super().stage(charge_id, payload, **more)

    def tick(self, queue=None, **more):
        begun = super().tick(queue, **more)
        with self._handle.writing() as writer:
            at = self._moment(writer.time)
            for one in begun:  # nothing is told until the run has ended
                slot = replace(one.slot, at=at, ends=one.slot.ends + 60 * SECOND, due=one.slot.due + 60 * SECOND)
                _write(writer, one.id, slot, None, one.incident, one.ask, again=True)
        return begun


class Recomputed(Timetable):
    """The release is computed anew when the run has ended."""

    def stage(self, charge_id, payload, **more):
        kept = super().stage(charge_id, payload, **more)
        one = self.find(charge_id)
        with self._handle.writing() as writer:
            at = self._moment(writer.time)
            slot = replace(one.slot, at=at, due=at.wall)
            _write(writer, one.id, slot, None, one.incident, one.ask, again=True)
        return kept


BUGS: dict[str, Bug] = {
    "the stored flag of check": Bug("stored", "answer", StoredFlag),
    "an answer before its release": Bug("answer", "answer", EarlyAnswer),
    "the second asker": Bug("second asker", "answer", SecondAsker),
    "cancelling that may be too late": Bug("cancel", "answer", Cancel),
    "a disconnect that ends the run": Bug("disconnect", "answer", Disconnect),
    "states of the life in history": Bug("history", "answer", History),
    "progress of the run in events": Bug("events", "answer", Events),
    "respawns in metrics": Bug("metrics", "answer", Metrics),
    "the end in the log": Bug("log", "answer", Log),
    "outcomes linked when they come, and receipts with the height": Bug("chain", "answer", HeadNow, Linked),
    "an answer kept over a restart": Bug("restart", "answer", Desk, KeptOverRestart),
    "the lock before the release": Bug("lock", "failure", EarlyLock),
    "incidents of failures alone": Bug("answer", "failure", Incidents),
    "the free retry": Bug("again", "failure", Retry),
    "room in the queue": Bug("room", "answer", Room),
    "refunds": Bug("lock", "failure", Refund),
    "a runner that overruns": Bug("answer", "answer", Desk, Overrun, takes=7.0),
    "a release that is computed anew": Bug("answer", "answer", Desk, Recomputed),
    "an engine elsewhere that works on": Bug("after", "killed", takes=12.0, left_working=True),
    "a disk that a run shares with the ledger": Bug("lock", "failure", FullDisk),
    "memory that a run shares with the clerk": Bug("answer", "answer", OutOfMemory),
}

Worlds = Callable[[], tuple[Any, Any]]
