"""Running an engine so that Ctrl-C stops it.

A signal reaches the program's main thread, and only between two steps of Python: while an engine computes there, the
signal waits until it is done, or comes out as an error of the engine's. So the engine runs in a thread of its own, the
main thread waits for it, and when it is interrupted it stops what the engine does for it before it goes on. What the
engine does for other threads goes on: an interrupt of one question makes no other fail.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Final, TypeVar

__all__ = ["PATIENCE", "asker", "stoppable"]

PATIENCE: Final = 5.0
"""Seconds that an engine is given to stop. One that does not is left behind; its answer is dropped."""

_Answer = TypeVar("_Answer")
_ASKER: ContextVar[object] = ContextVar("_ASKER", default=None)


def asker() -> object:
    """For whom this thread works: one call of `stoppable`, by which `Engine.interrupt` tells it; None for nobody."""
    return _ASKER.get()


def stoppable(work: Callable[[], _Answer], stop: Callable[[object], None]) -> _Answer:
    """What `work` gives, or raises. stop: ends, from another thread, what is done for an `asker`.

    Raises KeyboardInterrupt, or whatever else a signal raises in the main thread, once the work has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # no signal comes here
    answers: list[_Answer] = []
    errors: list[BaseException] = []
    ended, me = threading.Event(), object()
    first = threading.Lock()  # of the thread that works, or of who is interrupted before that has begun

    def run() -> None:
        if not first.acquire(blocking=False):
            return
        _ASKER.set(me)
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    try:
        with _for_us_alone():
            threading.Thread(target=copy_context().run, args=(run,), name="hubbub-engine", daemon=True).start()
            while not ended.wait(0.2):  # not for ever: on Windows nothing would interrupt that
                pass
    except BaseException:
        if not first.acquire(blocking=False):
            _end(lambda: stop(me), ended)
        raise
    if errors:
        raise errors.pop()
    return answers.pop()


@contextlib.contextmanager
def _for_us_alone() -> Iterator[None]:
    """Where pyspark handles Ctrl-C, by cancelling all that its cluster does for this program, Python does meanwhile."""
    handler = signal.getsignal(signal.SIGINT)
    if not str(getattr(handler, "__module__", "")).startswith("pyspark."):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _end(stop: Callable[[], None], ended: threading.Event) -> None:
    """Stop again and again, for an interrupt that meets no statement is forgotten."""
    until, pause = time.monotonic() + PATIENCE, 0.02
    while time.monotonic() < until:
        with contextlib.suppress(Exception):  # what an engine says of it matters to nobody
            stop()
        if ended.wait(pause):
            return
        pause = min(0.5, 2 * pause)
