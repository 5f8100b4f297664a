"""Processes that write to one ledger file take turns, and whoever has the turn records what the others wait to charge.

To make a charge durable takes a flush of the disk, and one flush serves any number of charges. So a process that finds
the turn taken lays its charge into a slot of a small file beside the ledger, and looks there until it is done or the
turn is free. The one with the turn records all that lie there in its own transaction, and says so only after the
COMMIT. Everything that matters is decided by SQLite's lock and by what the ledger then holds:

- Without this file (a foreign system, no room, another user's) each process simply waits for SQLite's lock.
- A process that dies with the turn loses it at once: the lock is the kernel's. What it recorded and did not say is
  found in the ledger by its charge id, so that no charge is made twice.
- A slot belongs to the process that holds its lock; what a dead process left in one is not charged.
- Whoever did a charge writes its name beside the slot; a slot that changed hands meanwhile tells its new owner nothing.
- A slot's text bears a checksum, so a torn one is left alone.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["DONE", "RETURNED", "Slot", "Turns"]

FREE, WAITING, DONE, RETURNED = 0, 1, 2, 3
"""The states of a slot. RETURNED: it was looked at, and its owner has to do it itself."""

_SLOTS: Final = 64
_USERS: Final = 512  # the byte that every user of the file holds a shared lock on
_UNSURE: Final = 520  # 1 while charges are recorded that their owners were not told of
_STATES: Final = 1024  # where the states begin: of each slot a byte, and the charge that was last done for it
_NAME: Final = 32
_STATE: Final = 1 + _NAME
_SIZE: Final = 16384
_HEAD: Final = struct.Struct("<II")


class Slot(NamedTuple):
    """A slot that was claimed, in the file as it was opened that time."""

    opened: int
    number: int


class Turns:
    """The file beside a ledger. Every method is quiet: where the system refuses, there is no turn to wait for."""

    def __init__(self, ledger: Path) -> None:
        self._path = ledger.with_name(f"{ledger.name}-turns")
        self._ledger = ledger
        self._guard = threading.RLock()
        self._file: int | None = None
        self._opened = 0
        self._mine: set[int] = set()  # the slots whose locks we hold
        self._idle: list[int] = []  # those of them that no thread uses
        self._broken = not hasattr(fcntl, "F_OFD_SETLK") or sys.maxsize < 2**32

    def take(self) -> bool:
        """Take the turn if nobody has it, or if there is no way to know."""
        with self._guard:
            file = self._open()
            if file is None:
                return True
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                self._give_up()
            return True

    def leave(self) -> None:
        """Let the next one have the turn."""
        with self._guard, suppress(OSError):
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def lay(self, text: str) -> Slot | None:
        """Lay a text into a slot; None where there is no room for it."""
        content = text.encode()
        if len(content) > _SIZE - _HEAD.size:
            return None
        with self._guard:
            file = self._open()
            if file is None:
                return None
            try:
                number = self._claim(file)
                if number is None:
                    return None
                head = _HEAD.pack(len(content), zlib.crc32(content))
                os.pwrite(file, head + content, _place(number))
                os.pwrite(file, bytes([WAITING]), _state_place(number))
            except OSError:
                self._give_up()
                return None
            return Slot(self._opened, number)

    def state(self, slot: Slot, charge: str) -> int:
        """What became of the charge in a slot; RETURNED also where the file was closed since."""
        with self._guard:
            if self._file is None or slot.opened != self._opened:
                return RETURNED
            try:
                found = os.pread(self._file, _STATE, _state_place(slot.number))
            except OSError:
                self._give_up()
                return RETURNED
        if not found or found[0] != DONE:
            return found[0] if found else RETURNED
        # The slot may have been another's when it was read: only the charge's own name counts.
        return DONE if found[1:] == charge.encode() else RETURNED

    def clear(self, slot: Slot) -> None:
        """Nothing waits in this slot any more; another thread here may use it."""
        with self._guard:
            if self._file is None or slot.opened != self._opened:
                return
            try:
                os.pwrite(self._file, bytes([FREE]), _state_place(slot.number))
            except OSError:
                self._give_up()
            self._idle.append(slot.number)

    def waiting(self, known: Iterable[int]) -> list[tuple[int, str, bool]]:
        """The texts that wait in slots of living processes, except in those `known`; for whoever has the turn.

        With each: whether it may be recorded already, by one that died before saying so.
        """
        with self._guard:
            if self._file is None:
                return []
            try:
                states = os.pread(self._file, _SLOTS * _STATE, _STATES)[::_STATE]
                wanted = {n for n, state in enumerate(states) if state == WAITING}.difference(known)
                if not wanted:
                    return []
                unsure = os.pread(self._file, 1, _UNSURE) == b"\1"
                found = [(n, self._text(self._file, n)) for n in sorted(wanted)]
                return [(n, text, unsure) for n, text in found if text is not None]
            except OSError:
                self._give_up()
                return []

    def commits(self) -> None:
        """Say that a transaction is being committed whose owners will be told only afterwards."""
        with self._guard:
            if self._file is not None:
                try:
                    os.pwrite(self._file, b"\1", _UNSURE)
                except OSError:
                    self._give_up()

    def answer(self, results: Iterable[tuple[int, str, bool]]) -> None:
        """Tell the slots' owners, by charge: True, it is recorded and durable; False, they have to do it themselves."""
        with self._guard:
            if self._file is None:
                return
            try:
                for number, charge, done in results:
                    name = charge.encode()[:_NAME].ljust(_NAME)
                    os.pwrite(self._file, bytes([DONE if done else RETURNED]) + name, _state_place(number))
                os.pwrite(self._file, b"\0", _UNSURE)
            except OSError:
                self._give_up()

    def close(self) -> None:
        """Let go of the file; the last to do so removes it."""
        with self._guard:
            file, self._file = self._file, None
            self._mine.clear()
            self._idle.clear()
            if file is not None:
                with suppress(OSError):
                    _lock(file, fcntl.F_WRLCK, _USERS)  # nobody else is here
                    self._path.unlink()
                os.close(file)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()

    def hold(self) -> None:
        """Before a fork: no thread is in here, and the file is closed."""
        self._guard.acquire()
        self.close()

    def go_on(self) -> None:
        """After a fork."""
        self._guard.release()

    def _open(self) -> int | None:
        if self._file is None and not self._broken:
            try:
                self._file = _opened(self._path, self._ledger)
            except OSError:
                self._broken = True
            self._opened += 1
        return self._file

    def _give_up(self) -> None:
        """Do without the file from here on."""
        self._broken = True
        file, self._file = self._file, None
        self._mine.clear()
        self._idle.clear()
        if file is not None:
            with suppress(OSError):
                os.close(file)

    def _claim(self, file: int) -> int | None:
        if self._idle:
            return self._idle.pop()
        for step in range(_SLOTS):
            number = (os.getpid() + step) % _SLOTS
            if number in self._mine:
                continue
            try:
                _lock(file, fcntl.F_WRLCK, _state_place(number))
            except OSError:
                continue
            self._mine.add(number)
            return number
        return None

    def _text(self, file: int, number: int) -> str | None:
        if number not in self._mine and not _is_locked(file, _state_place(number)):
            return None
        length, checksum = _HEAD.unpack(os.pread(file, _HEAD.size, _place(number)).ljust(_HEAD.size, b"\0"))
        content = os.pread(file, min(length, _SIZE), _place(number) + _HEAD.size)
        return content.decode() if len(content) == length and zlib.crc32(content) == checksum else None


def _state_place(number: int) -> int:
    return _STATES + number * _STATE


def _place(number: int) -> int:
    return 4096 + number * _SIZE


def _opened(path: Path, ledger: Path) -> int:
    """The file, made if missing with the ledger's own permissions, and marked as used."""
    mode = ledger.stat().st_mode & 0o666
    for _ in range(5):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            found = os.fstat(file)
            if found.st_uid == os.geteuid() and found.st_mode & 0o777 != mode:
                os.fchmod(file, mode)
            if _is_used(file) and os.fstat(file).st_nlink:
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the last of its users is just removing it
        time.sleep(0.001)
    raise OSError(f"{path} goes away again and again")


def _is_used(file: int) -> bool:
    """Whether the file could be marked as used: not while its last user removes it."""
    try:
        _lock(file, fcntl.F_RDLCK, _USERS)
    except (BlockingIOError, PermissionError):
        return False
    return True


# struct flock: type, whence, start, length, process (0 for locks of an open file).
_FLOCK: Final = "hhqqi"


def _lock(file: int, kind: int, at: int) -> None:
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, at, 1, 0))


def _is_locked(file: int, at: int) -> bool:
    answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0))
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
