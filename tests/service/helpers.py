"""What the service's tests share: a clock that the test sets, and a ledger that goes by it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.ledger import hash_chain
from hubbub.ledger.budget import Budget
from hubbub.ledger.policy import load_policy
from hubbub.ledger.schedule import SECOND, instant
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Queue, Scheduled, Timetable
from hubbub.service.archive import Archive
from hubbub.service.desk import Desk
from hubbub.service.office import Office
from hubbub.service.people.at_home import opened_people
from hubbub.service.people.people import People
from hubbub.service.people.registry import Registry
from hubbub.service.requests import Requests
from hubbub.session.empty import EmptyTables, schema_of
from hubbub.session.run import Order, Outcome
from hubbub.session.runner import Runner

SPACE = "patient_id"
START = 1_790_000_000 * SECOND
QUEUE = Queue(lanes=1, tick=SECOND // 10)


def answer_time(most: float = 20.0) -> float:
    """Seconds for an answer of real processes, by how long this machine takes now until a process has what a runner
    imports: few where nothing else runs, and at most so many. Whoever asks waits for all of them, however soon it is
    there.
    """
    start = time.monotonic()
    subprocess.run([sys.executable, "-P", "-c", "import hubbub.service.runner, duckdb, pyarrow"], check=True)
    return float(round(min(most, max(4.0, 5 * (time.monotonic() - start)))))


class Clock:
    """Both clocks, in seconds since the test began."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.boot = "boot"

    def wall(self) -> str:
        return instant(START + round(self.seconds * SECOND))

    def running(self) -> tuple[int, str]:
        return round(self.seconds * SECOND), self.boot


@contextmanager
def ledger_at(place: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Iterator[Ledger]:
    monkeypatch.setattr(hash_chain, "now", clock.wall)
    with Ledger.open(place, budgets={SPACE: Budget(30)}, **more) as ledger:
        ledger.timetable.running = clock.running
        yield ledger


def token_of(policy: Path, name: str, **limits: Any) -> str:
    """A token of an analyst, who is added if he is not there, as `hubbub person` and `hubbub token` do it."""
    people = opened_people(load_policy(policy))
    if not people.roll.roles(name):
        people.roll.add(name, ["analyst"], by="the test")
    token = people.new_token(name, by="the test", **limits)["token"]
    people.close()
    return str(token)


COUNT = "SELECT COUNT(*) AS n FROM v"
ANSWER_TIME = 5.0


def declared() -> dict[str, hb.PrivateTable]:
    """A table of ninety people."""
    rows = pa.table({"id": list(range(90)), "x": [i % 50 for i in range(90)], "w": ["a", "b", "c"] * 30})
    columns = {"x": hb.between(0, 50), "w": hb.one_of("a", "b", "c")}
    return {"v": hb.table(rows, unit="id", columns=columns, max_groups=1, max_rows=1, unit_space=SPACE)}


@lru_cache(maxsize=1)
def _runner() -> tuple[Runner, dict[str, Any]]:
    made = Runner(declared())
    return made, schema_of(made._data)


class Planned(EmptyTables):
    """The declarations without rows; each statement is planned once, whichever world asks it."""

    known: ClassVar[dict[str, Any]] = {}

    def ask(self, sql: str, options: Any, budget: Any, now: Any = None, *, analyst: Any = None) -> Any:
        name = repr((sql, options))
        if name not in self.known:
            self.known[name] = super().ask(sql, options, budget, now)
        return self.known[name]


@lru_cache(maxsize=1)
def empty() -> EmptyTables:
    """The same for all worlds: nothing of a world is kept in them."""
    return Planned(declared(), _runner()[1])


_PAYLOADS: dict[str, Outcome] = {}


def executed(order: Order) -> Outcome:
    """What a real runner brings; of one question always the same, so that two worlds have the same answers."""
    order = Order.from_wire(order.to_wire())
    name = json.dumps([order.ask()["sql"], order.ask()["options"]])
    if name not in _PAYLOADS:
        _PAYLOADS[name] = _runner()[0].execute(order, drawing=lambda: None)
    return replace(_PAYLOADS[name], charge=order.charge)


def rooms_behind(
    desk: Any, people: People, ledger: Ledger, tables: Mapping[str, str], *, above: Fraction | None = None
) -> dict[str, Any]:
    """What stands behind a desk, as the clerk has it."""
    office = Office(people, ledger, tables=tables)
    desk.requests = Requests(people, ledger, office, above=above)
    desk.requests.ask = desk.ask
    rooms = {"desk": desk, "office": office, "requests": desk.requests, "archive": Archive(people, ledger)}
    return {**rooms, "declared": desk.declared, "registry": Registry(people)}


class World:
    """A desk by the test's clock, and a runner whose run takes as long as the test says.

    takes: seconds. outcome: "answer", "failure" (an error of the engine's), "silence" (it is killed at its end), or
    "killed" (ada's are, and whoever else asks has an answer soon). left_working: what is killed here works on
    elsewhere, on an engine that does one thing after the other.
    """

    answer_time: ClassVar[float] = ANSWER_TIME

    def __init__(
        self,
        place: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        takes: float = 0.2,
        outcome: str = "answer",
        queue: Queue = QUEUE,
        step: float = 0.05,
        desk: type[Desk] = Desk,
        timetable: type[Timetable] = Timetable,
        left_working: bool = False,
        **more: Any,
    ) -> None:
        self.clock, self.takes, self.outcome, self.lines = Clock(), takes, outcome, list[str]()
        self._left_working, self._works_until = left_working, 0.0
        self._due: list[tuple[float, Scheduled, Outcome | None]] = []
        monkeypatch.setattr(hash_chain, "now", self.clock.wall)
        self.ledger = Ledger.open(place, budgets={SPACE: Budget(30)}, **more)
        self.ledger.timetable = timetable(self.ledger._handle, running=self.clock.running)
        self.queue, self._class, self._step = queue, desk, step
        self.desk = self.opened()

    def log(self, line: str) -> None:
        """A line for the steward, with the time by the test's clock."""
        self.lines.append(f"{self.clock.seconds:g} {line}")

    def opened(self) -> Desk:
        """A desk as a new process of the clerk would have it."""
        return self._class(
            empty(),
            self.ledger,
            policy="{}",
            times={"v": round(self.answer_time * SECOND)},
            queue=self.queue,
            start=self.start,
            log=self.log,
        )

    def start(self, one: Scheduled, order: Order) -> None:
        """A run begins; it ends by itself, or is killed at the end of its window."""
        soon = self.outcome == "killed" and one.analyst != "ada"
        brought = executed(order) if soon or self.outcome == "answer" else None
        if self.outcome == "failure":
            brought = Outcome(order.charge, incident="of the engine", words="private words")
        begins = max(self.clock.seconds, self._works_until if self._left_working else 0.0)
        self._works_until = begins + (0.2 if soon else self.takes)
        self._due.append((self._works_until, one, brought))

    def until(self, seconds: float) -> None:
        """Let time pass, in steps that no event straddles."""
        seconds = round(seconds, 6)
        while self.clock.seconds < seconds:
            self.clock.seconds = round(min(seconds, self.clock.seconds + self._step), 6)
            self.desk.tick()
            for each in [d for d in self._due if d[0] <= self.clock.seconds]:
                self._due.remove(each)
                if each[2] is not None:
                    self.desk.finished(each[1], each[2])
            self.desk.tick()

    def restart(self) -> None:
        """The clerk dies and comes again: what ran is gone."""
        self._due.clear()
        self.desk = self.opened()
        self.desk.restart()

    def close(self) -> None:
        """Close it; its ledger must be sound."""
        assert self.ledger.record.verify().problems == ()
        self.ledger.close()
