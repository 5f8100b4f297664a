"""The process that runners are forked from: it has loaded what they need, and holds no row, no policy and no thread.

    python -m hubbub.service.nursery FD         FD: its socket to the clerk

Loading takes most of the time until a runner is ready, and is done once. For each runner the clerk sends the runner's
own socket and folder, and gets its process. A runner that is forked holds neither the clerk's line nor another
runner's; it opens the tables and shuts itself in as one that was started by itself. Where a library keeps a thread, or
the system is not Linux, runners are started by themselves. Runners end with it, and it with the clerk.

What a runner leaves behind when it is ended falls to the nursery, and is ended there: a process that a runner started
which was taken over would hold its rows, and a core, as long as it likes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

from hubbub.confine import undumpable
from hubbub.service.ends import adopt_orphans, end_with_starter

__all__ = ["Forked", "Nursery", "main"]

_WORD: Final = 1 << 14
_PATIENCE: Final = 60.0
_LOADED: Final = (
    "duckdb",
    "pyarrow",
    "pandas",  # DuckDB looks for it as soon as it is asked anything
    "_strptime",
    "hubbub.engines.duckdb.engine",
    "hubbub.learning",
    "hubbub.noise.public",
    "hubbub.service.runner",
    "hubbub.session.empty",
    "hubbub.session.open",
    "hubbub.session.runner",
)
_NO_THREADS: Final = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


class Forked:
    """A process that another one forked, by its handle: what `subprocess.Popen` says of its own."""

    def __init__(self, pid: int, handle: int) -> None:
        self.pid, self._handle = pid, handle

    def poll(self) -> int | None:
        """None while it runs."""
        return 0 if self._ended(0) else None

    def kill(self) -> None:
        """End it."""
        with suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it has ended, and let go of it."""
        self._ended(None)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        return 0

    def _ended(self, seconds: float | None) -> bool:
        return self._handle < 0 or bool(select.select([self._handle], [], [], seconds)[0])


class Nursery:
    """The clerk's end of it. environment: what it knows of the clerk's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        import subprocess

        self._lock = threading.Lock()
        self._socket, there = socket.socketpair()
        self._socket.settimeout(_PATIENCE)
        command = [sys.executable, "-P", "-m", "hubbub.service.nursery", str(there.fileno())]
        self._popen = subprocess.Popen(
            command,
            pass_fds=[there.fileno()],
            env={**environment, **_NO_THREADS},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the clerk's own is a line to whoever started it
        )
        there.close()

    @staticmethod
    def works() -> bool:
        """Whether this system has what it needs."""
        return sys.platform.startswith("linux") and hasattr(os, "pidfd_open")

    def fork(self, runner: socket.socket, environment: Mapping[str, str]) -> Forked:
        """A runner with its socket, and what it knows.

        Raises OSError where there is none to be had.
        """
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(dict(environment)).encode()], [runner.fileno()])
            data, handles, _, _ = socket.recv_fds(self._socket, _WORD, 1)
        if not data or not handles:
            raise OSError("the nursery has ended, or keeps a thread")
        return Forked(int(json.loads(data)["pid"]), handles[0])

    @property
    def pid(self) -> int:
        """Its process."""
        return self._popen.pid

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._popen.kill()
        self._popen.wait()


def main(arguments: list[str]) -> int:
    """Fork runners for the clerk at the other end of a socket."""
    clerk = socket.socket(fileno=int(arguments[0]))
    end_with_starter()
    adopt_orphans()
    undumpable()
    _load()
    if len(os.listdir("/proc/self/task")) > 1:
        return 1
    with suppress(OSError):  # the clerk has gone
        _serve(clerk)
    return 0


def _serve(clerk: socket.socket) -> None:
    """Fork whatever the clerk asks for, until it is gone."""
    own: set[int] = set()
    while True:
        _reap(own)
        if not select.select([clerk], [], [], 0.5)[0]:
            continue
        data, handles, _, _ = socket.recv_fds(clerk, _WORD, 1)
        if not data or not handles:
            return
        pid = os.fork()
        if pid == 0:
            clerk.close()
            os._exit(_run(handles[0], json.loads(data)))
        own.add(pid)
        os.close(handles[0])
        handle = os.pidfd_open(pid)  # it is reaped here and nowhere else, so the number is still its own
        socket.send_fds(clerk, [json.dumps({"pid": pid}).encode()], [handle])
        os.close(handle)


def _load() -> None:
    """What a runner needs, but what holds a thread."""
    for name in _LOADED:
        with suppress(ImportError):
            import_module(name)


def _run(handle: int, environment: Mapping[str, str]) -> int:
    from hubbub.service.runner import main as run

    try:
        os.environ.update(environment)
        tempfile.tempdir = None
        return run([str(handle)])
    except BaseException:  # its words may hold rows
        return 1


def _reap(own: set[int]) -> None:
    """Let go of what has ended, and end what a runner left behind. own: the runners."""
    with suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            own.discard(pid)
    with suppress(OSError):
        for pid in set(map(int, Path("/proc/self/task", str(os.getpid()), "children").read_text().split())) - own:
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
