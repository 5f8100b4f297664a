"""Whoever came first writes first: a lock for the threads of one ledger, and tickets for processes that share its file.

SQLite lets any of those that wait have its lock, whoever came first, so one that charges without pause could keep
others out for good. Here they queue. It is a courtesy: SQLite's lock is what decides, and nothing of a charge depends
on this one.

**Tickets.** A small file stands beside the ledger. Whoever wants to write opens it anew and locks one byte of it, that
of its ticket: the next number. Its turn has come when the system says that no byte of an earlier ticket is locked. The
locks belong to the file as it was opened, so a process that dies, or is killed, leaves the queue at once, and threads
stand in it like processes. The number of the next ticket stands in the file; it is a hint, and a wrong one costs
fairness for a moment: nobody gets a byte that another holds.

Where the system has no such locks, or refuses the file, there is no queue: each waits for SQLite. So does whoever has
queued for half of its patience, because one that was stopped with its ticket in hand would hold up all others.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from hubbub.ledger.interrupts import Undisturbed

__all__ = ["FairLock", "Tickets"]

_SLICE: Final = 0.1  # seconds of waiting for a lock until Ctrl-C is seen to
_SHORT, _LONG = 0.0001, 0.005  # seconds between two looks at the queue
_FIRST: Final = 4096  # the byte of ticket 0
_MANY: Final = 1 << 40  # the tickets; then they begin anew
_TRIES: Final = 1000
_KNOWN: Final = hasattr(fcntl, "F_OFD_SETLK") and sys.maxsize > 2**32


class FairLock:
    """A lock of threads, given to whoever waited longest. Its owner may take it again; a forked child finds it free."""

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._owner: int | None = None
        self._depth = 0
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @contextmanager
    def held(self, signals: Undisturbed, until: float | None = None) -> Iterator[None]:
        """A context that holds the lock; `signals` sees to it that it is given back.

        Raises TimeoutError where it is not free by `until`, a time of `time.monotonic`.
        """
        self.acquire(signals, until)
        try:
            yield
        finally:
            self.release()

    def acquire(self, signals: Undisturbed | None = None, until: float | None = None) -> None:
        """Wait for the lock and take it; for `until` see `held`."""
        if self._pid != os.getpid():
            self._renew()
        me = threading.get_ident()
        with self._guard:
            if self._owner in (None, me):
                self._owner, self._depth = me, self._depth + 1
                return
            place = me, threading.Lock()
            place[1].acquire()
            self._waiting.append(place)
        try:
            while not place[1].acquire(timeout=_SLICE if until is None else _until(until)):
                if self._owner == me:
                    with self._guard:
                        if place in self._waiting:  # a signal's handler asks, inside the wait of this very thread
                            self._waiting.remove(place)
                            self._depth += 1
                    return  # else it was given just now, between the end of the wait and this look
                if signals is not None:
                    signals.check()
                if until is not None and time.monotonic() > until:
                    raise TimeoutError
        except BaseException:
            with self._guard:
                given = place not in self._waiting
                if not given:
                    self._waiting.remove(place)
            if given:
                self.release()
            raise

    def release(self) -> None:
        """Give it back, or to whoever waited longest."""
        if self._pid != os.getpid():  # taken before the fork that made this process
            self._renew()
            return
        with self._guard:
            self._depth -= 1
            if self._depth:
                return
            self._owner = None
            if self._waiting:
                self._owner, place = self._waiting.popleft()
                self._depth = 1
                place.release()


def _until(moment: float) -> float:
    return min(_SLICE, max(0.0, moment - time.monotonic()))


class Tickets:
    """The queue of the processes that share one ledger file; one ticket at a time for each of these objects."""

    def __init__(self, ledger: Path) -> None:
        self._path = ledger.with_name(f"{ledger.name}-queue")
        self._ledger = ledger
        self._file: int | None = None

    def enter(self, signals: Undisturbed, until: float) -> bool:
        """Queue until it is one's turn, or `until`; whether `leave` is to be called.

        It is not where the ticket is in hand already: a signal's handler writes, while what it interrupted queues.
        """
        if self._file is not None or not _KNOWN:
            return False
        try:
            ticket = self._ticket(signals, until)
            pause = _SHORT
            while ticket is not None and time.monotonic() < until and _is_locked(*ticket):
                signals.check()
                time.sleep(pause)
                pause = min(pause * 1.1, _LONG)
        except OSError:
            self.leave()
            return False
        except BaseException:
            self.leave()
            raise
        return self._file is not None

    def leave(self) -> None:
        """Let the next one write."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def remove(self) -> None:
        """Remove the file, where nobody queues."""
        if not _KNOWN or self._file is not None:
            return
        with suppress(OSError):
            file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                _lock(file, _FIRST, 0)
                if os.fstat(file).st_nlink:
                    self._path.unlink()
            finally:
                os.close(file)

    def _ticket(self, signals: Undisturbed, until: float) -> tuple[int, int] | None:
        """Draw the next ticket: the open file, and the number. None where that cannot be done in time."""
        number = -1
        for attempt in range(1, _TRIES):
            if self._file is None:
                self._file = self._opened()
                number = _next(self._file)
            try:
                _lock(self._file, _FIRST + number)
            except (BlockingIOError, PermissionError):  # another's; or somebody is just removing the file
                number = (number + 1) % _MANY
            else:
                if os.fstat(self._file).st_nlink:
                    if _next(self._file) <= number:
                        os.pwrite(self._file, struct.pack("<q", number + 1), 0)
                    return self._file, number
            if not os.fstat(self._file).st_nlink:
                self.leave()
            if attempt % 50 == 0:
                signals.check()
                time.sleep(_SHORT)
                if time.monotonic() > until:
                    break
        self.leave()
        return None

    def _opened(self) -> int:
        """The file, made if missing with the ledger's own permissions."""
        mode = self._ledger.stat().st_mode & 0o666
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            facts = os.fstat(file)
            if facts.st_uid == os.geteuid() and facts.st_mode & 0o777 != mode:
                os.fchmod(file, mode)
        except BaseException:
            os.close(file)
            raise
        return file


def _next(file: int) -> int:
    """The number that the next ticket has, or a lower one."""
    written = os.pread(file, 8, 0)
    following = struct.unpack("<q", written)[0] if len(written) == 8 else 0
    return following if 0 <= following < _MANY else 0


# struct flock: type, whence, start, length (0: to the end), process (0 for locks of an open file).
_FLOCK: Final = "hhqqi"


def _lock(file: int, start: int, length: int = 1) -> None:
    wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, wanted)


def _is_locked(file: int, number: int) -> bool:
    """Whether a ticket before this one is in the hand of another."""
    if number == 0:
        return False
    wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _FIRST, number, 0)
    return bool(struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_OFD_GETLK, wanted))[0] != fcntl.F_UNLCK)
