"""The process of the clerk: the only one with ledger and key; no rows. It keeps the runners.

    python -m hubbub.service.clerk              told on standard input, one line of JSON: policy, socket, token

It says "ready" on standard output once its runners are, and what holds of their walls. The front talks to it on a Unix
socket, after a token that no other process knows: a runner that is taken over may connect, and is not heard. A
statement that takes longer than two seconds to plan is given up. SIGTERM: nothing new is taken, what runs is run to its
end, and its answer is told at its release, now or after the next start.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from hubbub.engines.outer_process import keep_ready
from hubbub.errors import BudgetError, EngineError, HubbubError, PolicyError, QueryError
from hubbub.ledger.charging import Locked
from hubbub.ledger.policy import Policy, load_policy
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.store import Ledger, verify_beside
from hubbub.ledger.timetable import Queue, QueueFull, Scheduled
from hubbub.service import gate
from hubbub.service.alone import Alone
from hubbub.service.answer_times import agree_on_times
from hubbub.service.archive import Archive
from hubbub.service.daily import Daily
from hubbub.service.desk import Unknown
from hubbub.service.ends import leave
from hubbub.service.forms import refusal_of
from hubbub.service.in_time import TooLong, in_time
from hubbub.service.lanes import Lanes
from hubbub.service.lines import json_line
from hubbub.service.listening import Listening
from hubbub.service.office import Office
from hubbub.service.other_rows import OwnVersions
from hubbub.service.people.at_home import opened_people, provider_of
from hubbub.service.people.elsewhere import Elsewhere
from hubbub.service.people.oidc import Provider, ProviderAway
from hubbub.service.people.person import NotAllowed, NotKnown, TooMany
from hubbub.service.people.registry import Registry
from hubbub.service.refreshes import Refreshes
from hubbub.service.requests import Requests, take_up
from hubbub.service.whole_desk import WholeDesk
from hubbub.session.empty import EmptyTables
from hubbub.session.open import (
    agree_on_limits,
    declared_tables,
    described,
    neighbours_of,
    older_places,
    open_ledger,
    source_places,
    spelled,
)
from hubbub.session.run import Order

__all__ = ["Clerk", "empty_tables", "main", "queue_of"]

_PATIENCE: Final = 2.0
_OUTER: Final = 5.0  # seconds of the engine over releases and public tables, which the clerk runs itself
_PAUSE: Final = 0.02  # seconds between two looks at the schedule
_AGGREGATES: Final = 100
_MOST: Final = 8  # processes of a lane
T = TypeVar("T")


def queue_of(policy: Policy) -> Queue:
    """The queue that a policy declares."""
    said = policy.service
    return Queue(said.lanes, round(said.tick * SECOND), said.most_waiting, round(said.longest_waiting * SECOND))


def empty_tables(policy: Policy, described: Mapping[str, Any]) -> EmptyTables:
    """What a policy declares, without rows, and how much of one question the service answers. described: what a runner
    found (`hubbub.session.empty.schema_of`).
    """
    data = EmptyTables(declared_tables(policy), described)
    data.max_aggregates = policy.service.max_aggregates or _AGGREGATES
    data.max_answer_groups = policy.service.max_answer_groups
    data.outer.limit(_OUTER)
    return data


class Clerk:
    """Ledger, desk and runners of one policy.

    Raises PolicyError where the ledger is not there, a runner refuses, or an answer time is shorter than two respawns.
    """

    def __init__(self, policy: Policy, *, log: Callable[[str], None] = lambda _: None) -> None:
        self._policy, self._planning, self._log = policy, threading.Lock(), log
        provider = provider_of(policy, log)
        self._closing, self._alone = threading.Event(), Alone(policy)
        try:
            self._begin(policy, provider)
        except BaseException:
            self._alone.close()
            raise

    def _begin(self, policy: Policy, provider: Provider | None) -> None:
        log = self._log
        self.lanes = Lanes(policy, lambda one, outcome: self.desk.finished(one, outcome))
        try:
            self.lanes.wait()
            times = {n: t.answer_time or policy.service.answer_time for n, t in policy.tables.items()}
            while (needed := _processes(times, self.lanes.respawn)) > self.lanes.each:
                self.lanes.grow(needed)
                self.lanes.wait()
            data = empty_tables(policy, self.lanes.described or {})
            keep_ready()
            self.ledger = _ledger(policy, data)
            self.ledger.versions = own = OwnVersions(self.ledger._handle, policy)
            try:
                agree_on_times(self.ledger, {n: float(t) for n, t in times.items()}, data.spaces())
                own.end_others(log)
            except BaseException:
                self.ledger.close()
                raise
        except BaseException:
            self.lanes.close()
            raise
        self.desk = WholeDesk(
            data,
            self.ledger,
            policy=policy.text or json.dumps(described(data.tables), sort_keys=True),
            times={name: round(seconds * SECOND) for name, seconds in times.items()},
            queue=queue_of(policy),
            start=self._start,
            log=log,
            planned=self._in_time,
        )
        self.people = opened_people(policy, self.ledger)
        self._refreshes = Refreshes(policy, self.ledger, self.lanes, log)
        said = policy.service
        checks = said.checks_a_second, said.checks_at_once
        self._gate = gate.Gate(self.people, self._rooms(policy, data, provider), checks=checks)
        self._daily = Daily(policy, self.ledger, log, people=self.people)
        self.desk.restart()
        take_up(self.people, self.ledger, set(data.spaces().values()))
        self._clock = threading.Thread(target=self._run_clock, daemon=True)
        self._clock.start()
        self._daily.start()

    def _rooms(self, policy: Policy, data: EmptyTables, provider: Provider | None) -> dict[str, Any]:
        """The rooms behind the gate, but for that of people."""
        self.office = Office(self.people, self.ledger, tables=data.spaces())
        self.office.read_anew, self.office.is_read = self._refreshes.before, self._refreshes.written
        requests = Requests(self.people, self.ledger, self.office, above=policy.service.ask_steward_above)
        self.desk.requests, requests.ask = requests, self.desk.ask
        walking = partial(verify_beside, self.ledger, policy.ledger)
        return {
            "desk": self.desk,
            "declared": self.desk.declared,
            "office": self.office,
            "requests": requests,
            "archive": Archive(self.people, self.ledger, walking=walking, policy=policy),
            "registry": Registry(self.people),
            "elsewhere": Elsewhere(self.people, provider),
        }

    def _start(self, one: Scheduled, order: Order) -> None:
        left = one.slot.ends - one.slot.time(self.ledger.timetable.now())
        if not self.lanes.start(one, order, left / SECOND):  # a process starts at a release, whatever it ran
            self._log(
                f"no runner was ready for {one.id}, which has no answer: declare a longer answer_time, or more cores"
            )

    def _run_clock(self) -> None:
        looked = time.monotonic()
        while not self._closing.wait(_PAUSE):
            try:
                if time.monotonic() > looked + 1:
                    looked = time.monotonic()
                    with suppress(HubbubError):
                        self._refreshes.look()
                with suppress(HubbubError):  # a ledger that cannot be written now is tried again
                    self.desk.tick()
                self.lanes.sweep()
            except Exception as error:  # a defect of ours: without this thread nothing would be told any more
                self._log(f"incident {uuid.uuid4().hex[:12]}: {type(error).__name__} in the clock")

    def _in_time(self, plan: Callable[[], T]) -> T:
        """Plan, one statement at a time, or give it up after two seconds."""
        with self._planning:
            try:
                return in_time(_PATIENCE, plan)
            except TooLong:
                raise QueryError(
                    f"this question takes longer than {_PATIENCE:g} seconds to plan. Ask a shorter one. Nothing was "
                    "charged."
                ) from None

    def answer(self, act: str, given: object, proof: object = None) -> dict[str, Any]:
        """What is told of an act, or why not, as JSON. proof: by whom it is asked."""
        try:
            if self._closing.is_set():
                raise PolicyError("the service is stopping; ask again when it is back. Nothing was charged.")
            return {"told": self._gate.done(act, given, proof)}
        except HubbubError as error:
            return {"refused": _refusal(error)}
        except Exception as error:  # a defect of ours; its words may hold a question, so none of them is told or logged
            incident = uuid.uuid4().hex[:12]
            self._log(f"incident {incident}: {type(error).__name__} in {act!r}")
            return {"refused": {"kind": "incident", "text": f"incident {incident}", "incident": incident}}

    def busy(self) -> float:
        """Seconds until what runs has ended."""
        now = self.ledger.timetable.now()
        ends = [one.slot.ends - one.slot.time(now) for one in self.ledger.timetable.running_now()]
        return max([0, *ends]) / SECOND

    def stop(self) -> None:
        """Take nothing new, wait until the windows that are open have closed, and note that all was run to its end."""
        self._closing.set()
        self._clock.join()
        while self.ledger.timetable.next_time() is not None:
            now = self.ledger.timetable.now()
            if all(one.slot.ends <= one.slot.time(now) for one in self.ledger.timetable.running_now()):
                break
            time.sleep(_PAUSE)
        self.ledger.timetable.stop()
        self.close()

    def close(self) -> None:
        """End everything at once."""
        self._closing.set()
        self._clock.join()
        self._daily.close()
        self.lanes.close()
        self.desk.data.close()
        self.people.close()
        self.ledger.close()
        self._alone.close()


def _processes(times: Mapping[str, float], respawn: float) -> int:
    """How many processes a lane needs, where one took so long to be ready: half of what they allow is kept in hand
    (`hubbub.ledger.schedule`).

    Raises PolicyError where that is more than a lane may have.
    """
    name, seconds = min(times.items(), key=lambda each: each[1])
    needed = 1 + math.ceil(2 * respawn / seconds)
    if needed > _MOST:
        raise PolicyError(
            f"the answer time of {name!r} is {seconds:g} seconds, and a runner took {respawn:.1f} to be ready. "
            f"{_MOST} processes a lane are enough for an answer time of at least {2 * respawn / (_MOST - 1):.1f}: "
            f"declare answer_time = {math.ceil(2 * respawn / (_MOST - 1)) + 1:.0f} or more."
        )
    return max(2, needed)


def _ledger(policy: Policy, data: EmptyTables) -> Ledger:
    """The ledger of a policy, which a steward has created and which holds its limits; it knows its sources again."""
    located = data.located()
    places = source_places(data.tables, located)
    ledger = open_ledger(
        policy.ledger,
        dict.fromkeys(data.spaces().values(), policy.budget),
        create=False,
        policy=policy,
        sources=places,
        older=older_places(data.tables, located),
        names=data.spaces(),
        relations=neighbours_of(data.tables),
    )
    try:
        data.respell(ledger.spelling)
        data.versions = ledger.versions
        agree_on_limits(ledger, data.tables, policy, record=False)
        ledger.versions.remember_sources(spelled(places, ledger.spelling))
    except BaseException:
        ledger.close()
        raise
    return ledger


_KINDS: Final = (
    (NotKnown, "unauthenticated"),
    (NotAllowed, "forbidden"),
    (TooMany, "rate"),
    (ProviderAway, "away"),
    (Unknown, "unknown"),
    (gate.Unknown, "unknown"),
    (QueueFull, "queue"),
    (Locked, "locked"),
    (QueryError, "query"),
    (PolicyError, "policy"),
    (BudgetError, "budget"),
    (EngineError, "engine"),
)


def _refusal(error: HubbubError) -> dict[str, Any]:
    kind = next((kind for known, kind in _KINDS if isinstance(error, known)), "incident")
    told: dict[str, Any] = {"kind": kind, "text": str(error), **refusal_of(error)}
    match error:
        case QueueFull() | TooMany():
            told["retry_after"] = error.retry_after
        case BudgetError():
            told |= {"asked": error.asked, "left": error.left}
    return told


def main() -> int:
    """Be the clerk that standard input describes, until SIGTERM."""
    told = json.loads(sys.stdin.readline())
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # undumpable: no other process of this user reads the key
    try:
        clerk = Clerk(load_policy(Path(told["policy"])), log=_lines(told.get("log")))
    except HubbubError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return 1
    listening = Listening(told["socket"], told["token"], clerk.answer, shared=bool(told.get("shared")))
    ready = {"ready": True, "held": dict(clerk.lanes.held), "respawn": clerk.lanes.respawn, "runners": clerk.lanes.pids}
    print(json.dumps(ready), flush=True)
    parent = os.getppid()
    while not stop.wait(0.5) and os.getppid() == parent:
        pass
    listening.close()
    if stop.is_set():
        with suppress(OSError):
            print(json.dumps({"busy": clerk.busy()}), flush=True)
    clerk.stop() if stop.is_set() else clerk.close()
    return 0


def _lines(form: str | None) -> Callable[[str], None]:
    """Where a line of the log goes, and how."""

    def say(line: str) -> None:
        print(json_line("clerk", line) if form == "json" else line, file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    leave(main())
