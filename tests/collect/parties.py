"""A whole collection in one folder: its parties, what they know, and children that die on the way."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubbub.collect import Count, PrivateSum
from hubbub.collect.aggregators import Helper, Leader
from hubbub.collect.client import make_reports
from hubbub.collect.collector import ask, collect
from hubbub.collect.create import create
from hubbub.collect.private import PrivateTotal
from hubbub.collect.store import Store
from hubbub.collect.task import Task, read_task
from hubbub.collect.wire import REPORTS
from hubbub.ledger.budget import Budget
from hubbub.ledger.life import ChargeLifecycle
from hubbub.ledger.store import Ledger

WINDOW, NOW = 100, 1050
LOW, HIGH = 1000, 1100


class Parties:
    """Folders of a task, and one folder that all messages pass through."""

    def __init__(self, at: Path, plan: PrivateSum | None = None, budget: str | Budget = "3", **options: Any) -> None:
        self.at, self.mail = at, at / "mail"
        if plan is not None or not (at / "task").exists():
            settings = {"min_batch": 1, "window": WINDOW, **options}
            held = budget if isinstance(budget, Budget) else Budget(budget)
            create(at / "task", plan or PrivateSum(Count(), epsilon=1), budget=held, **settings)
            self.mail.mkdir()
        self.task: Task = read_task(at / "task/task.json")

    def copy(self, at: Path) -> Parties:
        shutil.copytree(self.at, at)
        return Parties(at)

    def folder(self, role: str) -> Path:
        return self.at / "task" / role

    def report(self, measurements: Sequence[Any], name: str = "a", when: int = NOW) -> Path:
        path = self.mail / f"{name}.reports"
        path.write_bytes(REPORTS + self.task.id + make_reports(self.task, measurements, when).tobytes())
        return path

    def leader(self, now: int = NOW) -> dict[str, str]:
        party = Leader(self.folder("leader"), now)
        try:
            return dict(party.work(self.mail, self.mail))
        finally:
            party.close()

    def helper(self) -> dict[str, str]:
        party = Helper(self.folder("helper"))
        try:
            return dict(party.work(self.mail, self.mail))
        finally:
            party.close()

    def counted(self) -> None:
        """Reports to sums, in both."""
        self.leader()
        self.helper()
        self.leader()

    def everything(self, low: int = LOW, high: int = HIGH) -> PrivateTotal:
        self.counted()
        ask(self.folder("collector"), low, high, self.mail)
        self.leader()
        self.helper()
        return self.total(low, high)

    def total(self, low: int = LOW, high: int = HIGH) -> PrivateTotal:
        return collect(self.folder("collector"), [self.mail / f"{low}-{high}.{r}.share" for r in ("leader", "helper")])

    @contextmanager
    def store(self, role: str) -> Iterator[Store]:
        with Store(self.folder(role), self.task) as store:
            yield store

    def dropped(self, role: str) -> dict[str, int]:
        with self.store(role) as store:
            return store.dropped()

    def sums(self) -> dict[int, tuple[int, list[int]]]:
        """Of each window: reports, and the totals without noise; the two aggregators agree on count and checksum."""
        found = []
        for role in ("leader", "helper"):
            with self.store(role) as store:
                found.append({row[0]: row[1:] for row in store.rows("SELECT * FROM win ORDER BY start")})
        one, two = found
        assert {k: v[:2] for k, v in one.items()} == {k: v[:2] for k, v in two.items()}
        prio3 = self.task.prio3
        return {
            start: (row[0], prio3.merge([prio3.decode_aggregate(row[2]), prio3.decode_aggregate(two[start][2])]))
            for start, row in one.items()
        }

    def spent(self, role: str) -> list[Any]:
        """What an aggregator's charges cost."""
        ledger = Ledger.inspect(self.folder(role) / "ledger.db")
        try:
            return [entry.spend.cost for entry in ledger.record.history()]
        finally:
            ledger.close()

    def charges(self, role: str) -> list[str]:
        """The states of an aggregator's charges."""
        ledger = Ledger.inspect(self.folder(role) / "ledger.db")
        try:
            return [entry.state for entry in ledger.record.history()]
        finally:
            ledger.close()


def died(work: Callable[[], Any], after: float | None = None) -> bool:
    """Run in a child, which is killed `after` so many seconds; whether it died before its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) in (0, 77), "the child failed"
    return not (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0)


def dying_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """In this process: end at once, before or after the `step`-th durable step."""
    seen = [0]

    def passing() -> None:
        seen[0] += 1
        if seen[0] == step:
            os._exit(77)

    whole, replace = Store.transaction, os.replace

    @contextmanager
    def transaction(self: Store) -> Iterator[Any]:
        passing()
        with whole(self) as database:
            yield database
            passing()
        passing()

    def replaced(*names: Any) -> None:
        passing()
        replace(*names)
        passing()

    patch.setattr(Store, "transaction", transaction)
    patch.setattr(os, "replace", replaced)
    for name in ("charge", "advance", "store"):
        original = getattr(ChargeLifecycle, name)

        def recorded(self: Any, *values: Any, original: Any = original, **named: Any) -> Any:
            passing()
            found = original(self, *values, **named)
            passing()
            return found

        patch.setattr(ChargeLifecycle, name, recorded)
