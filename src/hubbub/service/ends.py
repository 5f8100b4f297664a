"""A process that ends with the one that started it, however that one ends.

Two ways, because either can fail: a thread waits for the line to that process to break, which takes the engine to let
Python run; and Linux kills the process with the *thread* that started it (PR_SET_PDEATHSIG of prctl(2)), so whoever
starts one does so in a thread that lives as long as itself. Without them a run would go on beside the next one after a
`kill -9` of the clerk, and slow it. A thread that was started before the process was shut in is not: so it is started
after that.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final, NoReturn

__all__ = ["adopt_orphans", "end_with", "end_with_child", "end_with_starter", "leave"]

_PDEATHSIG: Final = 1
_SUBREAPER: Final = 36


def end_with_starter() -> None:
    """From here on, end this process when the thread that started it ends; on Linux."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """From here on, be the parent of what the children of this process leave behind; on Linux."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_with(line: socket.socket) -> None:
    """From here on, end this process when the other end of the line is closed."""
    threading.Thread(target=_watch, args=(line.fileno(),), daemon=True).start()


def end_with_child(child: subprocess.Popen[bytes], idle: threading.Event) -> None:
    """From here on, end this process when one ends that it cannot work without, as long as it is idle: whoever keeps it
    sees that it is gone, and starts another one before there is work to do. One that works says what became of it.
    """

    def watch() -> None:
        child.wait()
        if idle.is_set():
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _watch(line: int) -> None:
    poll = select.poll()
    poll.register(line, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
    while not poll.poll(1000):
        pass
    os._exit(1)


def leave(code: int) -> NoReturn:
    """End this process, whose work is done: what the engine's threads still hold is not taken apart first, about which
    its bindings would complain on the error output."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
