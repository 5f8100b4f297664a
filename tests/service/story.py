"""A whole service in one process for a browser: pages, people, desk and real answers, by a clock that goes by itself.

    with StoryWorld(folder) as world:
        world.url, world.invitation("stella", "steward")

An answer takes less than a second, which is as long as the schedule says: the countdown on the page is the real one.
"""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hubbub.service.http.app import application
from hubbub.service.http.line import ClerkLine
from hubbub.service.pages.routes import page_routes
from service.faces import FaceWorld
from service.helpers import SPACE

__all__ = ["StoryWorld"]

ANSWER_TIME = 0.6


class _OneAtATime(ClerkLine):
    """A line on which one act is done after the other, and not while the clock moves."""

    def __init__(self, line: ClerkLine, lock: threading.RLock) -> None:
        self._line, self._lock = line, lock

    def ask(self, act: str, given: Any, proof: Any = None) -> dict[str, Any]:
        with self._lock:
            return self._line.ask(act, given, proof)


class StoryWorld(FaceWorld):
    """The world of one story. limit: what each analyst may spend."""

    answer_time = ANSWER_TIME

    def __init__(self, folder: Path, *, limit: str = "1") -> None:
        self._patch, self._lock, self._over = pytest.MonkeyPatch(), threading.RLock(), False
        super().__init__(folder, self._patch, takes=0.1)
        from fractions import Fraction

        self.ledger.steward.record_limits(SPACE, {"analyst:*": Fraction(limit)})
        line = _OneAtATime(self.line, self._lock)
        self._app = application(line, pages=page_routes(line, secure=False))

    def locked(self) -> threading.RLock:
        """Nothing else happens in the world while this is held."""
        return self._lock

    def invitation(self, name: str, *roles: str) -> str:
        """Where somebody who is added chooses a passphrase."""
        with self._lock:
            key, _ = self.people.roll.add(name, list(roles), by="the test")
        return f"{self.url}/invitation/{key}"

    def __enter__(self) -> StoryWorld:
        import uvicorn

        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(self._app, log_level="warning", access_log=False))
        served = threading.Thread(target=self._server.run, args=([listening],), daemon=True)
        moved = threading.Thread(target=self._move, daemon=True)
        self._threads = [served, moved]
        for thread in self._threads:
            thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def _move(self) -> None:
        """Let time pass as it does."""
        began = time.monotonic()
        while not self._over:
            with self._lock:
                self.until(time.monotonic() - began)
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self._over, self._server.should_exit = True, True
        for thread in self._threads:
            thread.join(5)
        self.close()
        self._patch.undo()
