"""Running an engine so that Ctrl-C stops it.

A signal reaches the program's main thread, and only between two steps of Python: while an engine computes there, the
signal waits until it is done, or comes out as an error of the engine's. So the engine runs in a thread of its own, the
main thread waits for it, and when it is interrupted it stops the engine before it goes on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Final, TypeVar

__all__ = ["PATIENCE", "stoppable"]

PATIENCE: Final = 5.0
"""Seconds that an engine is given to stop. One that does not is left behind; its answer is dropped."""

_Answer = TypeVar("_Answer")


def stoppable(work: Callable[[], _Answer], stop: Callable[[], None]) -> _Answer:
    """What `work` gives, or raises. stop: ends it from another thread.

    Raises KeyboardInterrupt, or whatever else a signal raises in the main thread, once the work has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # no signal comes here
    answers: list[_Answer] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    try:
        threading.Thread(target=copy_context().run, args=(run,), name="hubbub-engine", daemon=True).start()
        while not ended.wait(0.2):  # not for ever: on Windows nothing would interrupt that
            pass
    except BaseException:
        _end(stop, ended)
        raise
    if errors:
        raise errors.pop()
    return answers.pop()


def _end(stop: Callable[[], None], ended: threading.Event) -> None:
    """Stop again and again, for an interrupt that meets no statement is forgotten."""
    until, pause = time.monotonic() + PATIENCE, 0.02
    while time.monotonic() < until:
        with contextlib.suppress(Exception):  # what an engine says of it matters to nobody
            stop()
        if ended.wait(pause):
            return
        pause = min(0.5, 2 * pause)
