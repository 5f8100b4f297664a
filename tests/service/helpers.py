"""What the service's tests share: a clock that the test sets, and a ledger that goes by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubbub.ledger import hash_chain
from hubbub.ledger.budget import Budget
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Queue, instant

SPACE = "patient_id"
START = 1_790_000_000 * SECOND
QUEUE = Queue(lanes=1, tick=SECOND // 10)


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
