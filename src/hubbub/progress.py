"""A line on the terminal while something long runs: what is being done, and for how many seconds.

It tells the time alone, which the person waiting knows anyway. How many rows were read, or what share of the work is
done, would depend on private rows.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final, TextIO

__all__ = ["AFTER", "at_work"]

AFTER: Final = 1.5
"""Seconds before the line appears."""

EVERY: Final = 1.0
"""Seconds between two times that it is written."""

_ONE_LINE = threading.Lock()


@contextlib.contextmanager
def at_work(what: str) -> Iterator[None]:
    """Say on stderr that `what` is under way, from `AFTER` seconds on; the line is gone at the end, however that comes.

    Only on a terminal, not where HUBBUB_PROGRESS is 0, and one line at a time: what runs beside or inside has none.
    Also a decorator.
    """
    stream = sys.stderr
    if not _wanted(stream) or not _ONE_LINE.acquire(blocking=False):
        yield
        return
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, stream, done), name="hubbub-progress", daemon=True)
    try:
        with contextlib.suppress(RuntimeError):  # no thread to be had: no line
            teller.start()
        yield
    finally:
        done.set()
        try:
            if teller.ident is not None:
                teller.join(EVERY)  # no longer: a terminal that is held (Ctrl-S) takes no line
        finally:
            _ONE_LINE.release()


def _wanted(stream: TextIO | None) -> bool:
    if os.environ.get("HUBBUB_PROGRESS") == "0" or os.environ.get("TERM") == "dumb":
        return False
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):  # closed
        return False


def _tell(what: str, stream: TextIO, done: threading.Event) -> None:
    began, width, pause = time.monotonic(), 0, AFTER
    with contextlib.suppress(OSError, ValueError):
        while not done.wait(pause):
            line = f"{what}: {int(time.monotonic() - began)} s (Ctrl-C stops)"
            stream.write(f"\r{line}")
            stream.flush()
            width, pause = len(line), EVERY
        if width:
            stream.write(f"\r{' ' * width}\r")
            stream.flush()
