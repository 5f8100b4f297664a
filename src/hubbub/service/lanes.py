"""The runners of the clerk: two processes a lane or more, one question each, ended and replaced at the end of its slot.

A process that was given a question is ended at v + D, less a guard, whatever it did, and another one takes its place:
so when it is replaced tells nothing. One that dies idle is replaced at once. Each has a folder of its own, wiped with
it.

A process opens its tables when it starts, and is then shut in: a file that takes another's place is another file to
it, which it may not read, and a database that was replaced stays open. So all that wait are replaced at a refresh, and
where a file was put in another's place: one after the other, so that a lane has one that is ready.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hubbub.addresses import Address, ObjectAddress
from hubbub.engines.duckdb.spill import Spill
from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger.policy import Policy
from hubbub.ledger.timetable import Scheduled
from hubbub.service.frames import receive, send
from hubbub.service.nursery import Forked, Nursery
from hubbub.service.runner import readable
from hubbub.service.shared_objects import SharedObjects
from hubbub.session.run import Order, Outcome

__all__ = ["Lanes"]

_GUARD: Final = 0.02  # the part of an answer time that a run does not get: its outcome must still be written
_PASSED: Final = ("PATH", "HOME", "LANG", "PYTHONPATH", "JAVA_HOME", "SPARK_HOME")
_PATIENCE: Final = 120.0  # seconds until a process is ready
_LOOK: Final = 1.0  # seconds between two looks at whether a file was put in another's place


@dataclass
class _Process:
    """One runner. place: which of its lane's. ends: when it is ended, by the monotonic clock; None while idle. stale:
    whether its tables were opened before they were refreshed. objects: the copies that it reads, by table.
    """

    lane: int
    place: int
    popen: subprocess.Popen[bytes] | Forked
    socket: socket.socket
    folder: str
    began: float
    ready: bool = False
    ends: float | None = None
    refused: str | None = None
    gone: bool = False
    stale: bool = False
    objects: Mapping[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Lanes:
    """The lanes of a policy. finished: takes what a run brought; from a thread of the runner's.

    Raises PolicyError where an object store does not give a table.
    """

    def __init__(self, policy: Policy, finished: Callable[[Scheduled, Outcome], object]) -> None:
        self._policy, self._finished = policy, finished
        self._lock = threading.RLock()
        self._processes: list[_Process] = []
        self.respawn = 0.0  # the longest time until a process was ready
        self.described: Mapping[str, Any] | None = None  # what the declarations found
        self.held: Mapping[str, Any] = {}
        self._closed = False
        self._ending: list[threading.Thread] = []  # what was killed, and is not gone yet
        self._spawner = ThreadPoolExecutor(1)
        # Known to a database, whose statements of an earlier process of this place a new one ends.
        self._name = f"hubbub {hashlib.sha256(str(policy.path).encode()).hexdigest()[:12]}"
        self._nursery: Nursery | None = None
        self._spill = Spill.made()
        try:
            self._objects = SharedObjects(policy, Path(self._spill.folder))
        except BaseException:
            self._spill.remove()
            raise
        self._files, self._looked = _files(policy), time.monotonic()
        self.each = 0  # how many processes a lane has
        self.grow(2)

    def wait(self, patience: float = _PATIENCE) -> None:
        """Wait until every process is ready. Raises PolicyError where one refuses, or none is in time."""
        until = time.monotonic() + patience
        while True:
            with self._lock:
                if all(p.ready for p in self._processes):
                    return
                refused = next((p.refused for p in self._processes if p.refused), None)
            if refused is not None or time.monotonic() > until:
                raise _none_ready(refused, patience)
            time.sleep(0.02)

    def grow(self, each: int) -> None:
        """Have so many processes in each lane, from now on."""
        for place in range(self.each, each):
            for lane in range(self._policy.service.lanes):
                self._spawn(lane, place)
        self.each = max(each, self.each)

    def start(self, one: Scheduled, order: Order, seconds: float) -> bool:
        """Have an order run, now, for so many seconds at most. Whether a process was ready; else there is no answer."""
        with self._lock:
            idle = [p for p in self._processes if p.lane == one.slot.lane and p.ready and p.ends is None]
            free = [p for p in idle if not p.gone and p.popen.poll() is None]
            if not free:
                return False
            process = min(free, key=lambda p: p.stale)
            process.ends = time.monotonic() + seconds * (1 - _GUARD)
        with suppress(OSError, HubbubError):  # what runs elsewhere is ended there, before the process is ended here
            send(process.socket, {"order": order.to_wire(), "seconds": seconds * (1 - 2 * _GUARD)})
            threading.Thread(target=self._listen, args=(process, one, order), daemon=True).start()
        return True

    def _listen(self, process: _Process, one: Scheduled, order: Order) -> None:
        with suppress(Exception):  # whatever it is that is said: it may have been taken over
            told = receive(process.socket)
            if told is not None:
                self._finished(one, Outcome.from_wire(told["outcome"], order))

    def renew(self, table: str | None = None) -> None:
        """Have every process that waits replaced by one that opens the tables anew, and wait until they are. table:
        what was refreshed; its objects are copied anew first.

        Raises PolicyError where they cannot be copied, or a new process refuses the tables; one of a lane that opened
        the older ones goes on.
        """
        if table is not None:
            self._objects.copy(table)
        self._outdate()
        until = time.monotonic() + _PATIENCE
        while True:
            with self._lock:
                idle = [p for p in self._processes if p.ends is None]
                # One that is stale began before, perhaps while a file was put in another's place.
                refused = next((p.refused for p in idle if p.refused and not p.stale), None)
                if self._closed or (refused is None and all(p.ready and not p.stale for p in idle)):
                    return
            if refused is not None or time.monotonic() > until:
                raise _none_ready(refused)
            time.sleep(0.02)

    def _outdate(self) -> None:
        with self._lock:
            self._files = _files(self._policy)
            for process in self._processes:
                process.stale = True

    def sweep(self) -> None:
        """End what has come to its end; replace what is gone, and what is stale."""
        self._look()
        now = time.monotonic()
        with self._lock:
            if self._closed:
                return
            for process in list(self._processes):
                over = process.ends is not None and now >= process.ends
                died = process.ends is None and (process.popen.poll() is not None or process.refused is not None)
                hangs = not process.ready and now > process.began + _PATIENCE
                if over or hangs or (died and now > process.began + 1):
                    self._replace(process)
            for lane in range(self._policy.service.lanes):
                self._replace_stale([p for p in self._processes if p.lane == lane])
            self._objects.keep({path for process in self._processes for path in process.objects.values()})

    def _look(self) -> None:
        """See whether a file was put in another's place. No more than a twentieth of the time goes there."""
        began = time.monotonic()
        if began > self._looked:
            files = _files(self._policy)
            self._looked = began + max(_LOOK, 20 * (time.monotonic() - began))
            if files != self._files:
                self._outdate()

    def _replace_stale(self, lane: list[_Process]) -> None:
        """Replace one stale process of a lane, if another one waits beside it: what comes may refuse what it finds."""
        idle = [p for p in lane if p.ends is None]
        stale = [p for p in idle if p.stale]
        if stale and len(idle) > 1 and all(p.ready for p in idle):
            self._replace(stale[0])

    def _replace(self, process: _Process) -> None:
        self._processes.remove(process)
        self._end(process)
        self._spawn(process.lane, process.place)

    def _spawn(self, lane: int, place: int) -> None:
        here, there = socket.socketpair()
        folder = tempfile.mkdtemp(prefix="runner-", dir=self._spill.folder)
        # In a thread that lives as long as this process: Linux ends a runner with the thread that started it.
        own = self._environment(folder, f"{self._name} {lane}.{place}")
        popen = self._spawner.submit(self._process, there, own).result()
        there.close()
        process = _Process(lane, place, popen, here, folder, time.monotonic(), objects=dict(self._objects.paths))
        with self._lock:
            self._processes.append(process)
        threading.Thread(target=self._greet, args=(process,), daemon=True).start()

    def _process(self, runner: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[bytes] | Forked:
        """A process from the nursery; where there is none to be had, one that loads what it needs by itself."""
        return self._forked(runner, environment) or subprocess.Popen(
            [sys.executable, "-P", "-m", "hubbub.service.runner", str(runner.fileno())],
            pass_fds=[runner.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the clerk's own is a line to whoever started it
        )

    def _forked(self, runner: socket.socket, environment: Mapping[str, str]) -> Forked | None:
        """A process from the nursery, which is started again where it ended."""
        if not Nursery.works() or any(str(one.source).startswith("spark:") for one in self._policy.remote()):
            return None
        for _ in range(2):
            nursery = self._nursery or Nursery(environment)
            self._nursery = nursery
            try:
                return nursery.fork(runner, environment)
            except (OSError, ValueError):
                self._nursery = None
                nursery.close()
        return None

    def _environment(self, folder: str, name: str) -> dict[str, str]:
        """What a runner knows of the clerk's: never where a ledger's address may be, but where its tables' are."""
        names = [*_PASSED, *(name for name in os.environ if name.startswith("PG"))]
        sources = [one.source for one in self._policy.remote() if not isinstance(one.source, ObjectAddress)]
        places = [source.written for source in sources if isinstance(source, Address)]
        names += [place.removeprefix("env:") for place in places if place.startswith("env:")]
        own = {"TMPDIR": folder, "OPENBLAS_NUM_THREADS": "1", "HUBBUB_APPLICATION": name}
        return {name: os.environ[name] for name in names if name in os.environ} | own

    def _greet(self, process: _Process) -> None:
        """Tell a process its policy, and hear that it is ready."""
        told: Any = None
        with suppress(OSError, HubbubError):
            send(process.socket, {"policy": str(self._policy.path), "objects": process.objects})
            told = receive(process.socket)
        with self._lock:
            match told:
                case {"ready": described, "held": held}:
                    process.ready = True
                    self.respawn = max(self.respawn, time.monotonic() - process.began)
                    self.described, self.held = described, held
                case {"refused": str(refused)}:
                    process.refused = refused
                case _ if told is not None:
                    process.refused = "a runner says what none says."

    def _end(self, process: _Process) -> None:
        """Kill it, and wait for nothing: how long its memory and its folder take to be gone follows from the rows that
        it read, and the clock, which starts and tells what comes next, goes on meanwhile.
        """
        process.gone = True
        with suppress(OSError):
            process.popen.kill()
        with suppress(OSError):
            process.socket.shutdown(socket.SHUT_RDWR)
        process.socket.close()
        self._ending = [one for one in self._ending if one.is_alive()]
        self._ending.append(threading.Thread(target=_clear_away, args=(process,), daemon=True))
        self._ending[-1].start()

    @property
    def pids(self) -> list[int]:
        """The processes."""
        with self._lock:
            return [p.popen.pid for p in self._processes]

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            self._closed = True
            for process in self._processes:
                self._end(process)
            self._processes.clear()
            for one in self._ending:
                one.join(_PATIENCE)
            if self._nursery is not None:
                self._nursery.close()
                self._nursery = None
            self._spill.remove()
        self._spawner.shutdown(wait=False)


def _none_ready(refused: str | None, patience: float = _PATIENCE) -> PolicyError:
    return PolicyError(refused or f"no runner was ready within {patience:g} seconds.")


def _clear_away(process: _Process) -> None:
    """Let go of a process that was killed, and remove its folder."""
    process.popen.wait()
    shutil.rmtree(process.folder, ignore_errors=True)


def _files(policy: Policy) -> list[tuple[str, int, int]]:
    """The files that a runner reads, each by its number: which is another one for a file that took its place."""
    files = []
    for place in readable(policy):
        with suppress(OSError):
            facts = place.stat()
            files.append((str(place), facts.st_dev, facts.st_ino))
    return files
