"""A service in this process: HTTP on this machine, the gate, the desk, and runs in a thread.

Processes and their walls are tests of their own (`tests/service`); here an answer time can be a fraction of a second.
By the real clock; or by one that stands while something runs and hurries while nothing does, so that no test hangs on
how busy the machine is, and none waits for an answer time.
"""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

import hubbub as hb
from hubbub.ledger.schedule import SECOND, instant
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Queue, Scheduled
from hubbub.service.gate import Gate
from hubbub.service.http.app import application
from hubbub.service.people.people import People
from hubbub.service.whole_desk import WholeDesk
from hubbub.session.empty import EmptyTables, schema_of
from hubbub.session.run import Order
from hubbub.session.runner import Runner
from service.faces import Through
from service.helpers import rooms_behind

ANSWER_TIME = 1.0
BEGAN = 1_700_000_000 * SECOND
STEP = SECOND // 20


class Hurrying:
    """Both clocks of a ledger, in microseconds since it began, long ago: what is due by them is never waited for."""

    def __init__(self) -> None:
        self.at = 0

    def wall(self) -> str:
        return instant(BEGAN + self.at)

    def running(self) -> tuple[int, str]:
        return self.at, "boot"


class Living:
    """A service of some tables, until it is closed. clock: what `hubbub.ledger.hash_chain.now` goes by, where it is
    not the real one.
    """

    def __init__(
        self,
        folder: Path,
        tables: dict[str, Any],
        budget: hb.Budget,
        *,
        answer_time: float = ANSWER_TIME,
        clock: Hurrying | None = None,
        **more: Any,
    ) -> None:
        self._clock, self._ended = clock, set[str]()
        self._runner = Runner(tables)
        described = schema_of(self._runner._data)
        data = EmptyTables(tables, described)
        spaces = dict.fromkeys(data.spaces().values(), budget)
        self.ledger = Ledger.open(
            folder / "ledger.db", budgets=spaces, max_failures=10**6, max_failures_all=10**6, **more
        )
        if clock is not None:
            self.ledger.timetable.running = clock.running
        self.desk = WholeDesk(
            data,
            self.ledger,
            policy="{}",
            times=dict.fromkeys(data.tables, round(answer_time * SECOND)),
            queue=Queue(lanes=3, tick=SECOND // 50, most=500, longest=10**9 * SECOND),
            start=self._start,
        )
        self.people = People(folder / "service.db", ledger=self.ledger)
        rooms = rooms_behind(self.desk, self.people, self.ledger, data.spaces())
        self.gate = Gate(self.people, rooms, checks=(1e6, 10**6))
        self._runs, self._over = ThreadPoolExecutor(1), threading.Event()
        self._threads = [threading.Thread(target=self._tick, daemon=True), threading.Thread(target=self._serve)]
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        config = uvicorn.Config(
            application(Through(self.gate)), port=self.port, log_level="critical", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        for thread in self._threads:
            thread.start()
        while not self._server.started:
            time.sleep(0.01)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def token(self, name: str, *roles: str, **limits: Any) -> str:
        """A token of somebody, who is added if he is not there."""
        if not self.people.roll.roles(name):
            self.people.roll.add(name, list(roles or ("analyst",)), by="the test")
        return str(self.people.new_token(name, by="the test", **limits)["token"])

    def _serve(self) -> None:
        self._server.run()

    def _tick(self) -> None:
        while not self._over.wait(0.01 if self._clock is None else 0.002):
            with suppress(hb.HubbubError):
                self.desk.tick()
                if self._clock is not None and {one.id for one in self.ledger.timetable.running_now()} <= self._ended:
                    self._clock.at += STEP

    def _start(self, one: Scheduled, order: Order) -> None:
        self._runs.submit(self._run, one, Order.from_wire(order.to_wire()))

    def _run(self, one: Scheduled, order: Order) -> None:
        try:
            self.desk.finished(one, self._runner.execute(order, drawing=lambda: None))
        finally:
            self._ended.add(one.id)

    def close(self) -> None:
        """End it."""
        self._server.should_exit = True
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._runs.shutdown()
        self.people.close()
        self.ledger.close()
        self.desk.data.close()
        self._runner.close()
