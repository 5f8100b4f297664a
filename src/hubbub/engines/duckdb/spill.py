"""The folder of an engine's spilled rows: for this user alone, gone when the engine closes, swept where none closed it.

A folder holds a file that its process keeps locked as long as it lives; the operating system lets go of the lock when
the process ends, however it ends. Whoever makes a folder first removes those of the same user whose lock is free; one
process looks for them at most once a minute. What that takes beyond a twentieth of a second is done beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Spill"]

_PREFIX = "hubbub-"
_LOCK = "in-use"
_PAUSE = 60.0  # seconds between two looks for the folders of dead processes: there may be hundreds of others
_BRIEFLY = 0.05  # seconds for which whoever makes a folder waits for those of dead processes to go
_looked: dict[str, float] = {}  # in which folders this process looked, and when


@dataclass
class Spill:
    """A folder with mode 0700, and the descriptor that holds its lock; None once it was removed."""

    folder: str
    lock: int | None

    @classmethod
    def made(cls) -> Spill:
        """A new folder, after those of processes that are dead have gone."""
        place, now = tempfile.gettempdir(), time.monotonic()
        if now > _looked.get(place, -_PAUSE) + _PAUSE:
            _looked[place] = now
            _sweep(place)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 0700
        # Locked before it has its name: whoever sees the name sees the lock.
        early = folder / f"{_LOCK}.new"
        lock = os.open(early, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        early.rename(folder / _LOCK)
        return cls(str(folder), lock)

    def remove(self) -> None:
        """The folder and all that is in it, then the lock; nothing where it was removed before."""
        lock, self.lock = self.lock, None
        if lock is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(lock)


def _sweep(place: str) -> None:
    """Remove the folders of dead processes; after a while, in a thread, which a process does not have until then."""
    until, rest = time.monotonic() + _BRIEFLY, _folders(place)
    for folder in rest:
        _remove_if_dead(folder)
        if time.monotonic() > until:
            threading.Thread(target=_remove_dead, args=(rest,), daemon=True).start()
            return


def _remove_dead(folders: Iterator[os.DirEntry[str]]) -> None:
    for folder in folders:
        _remove_if_dead(folder)


def _folders(place: str) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        yield from (entry for entry in entries if entry.name.startswith(_PREFIX))


def _remove_if_dead(folder: os.DirEntry[str]) -> None:
    """Remove a folder whose process is dead, its lock last: else one that was removed in part would stay for ever."""
    with contextlib.suppress(OSError):  # a living process holds it, or it is none of ours
        facts = folder.stat(follow_symlinks=False)
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) != 0o700:
            return
        lock = os.open(f"{folder.path}/{_LOCK}", os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in os.listdir(folder.path):
                path = f"{folder.path}/{name}"
                if name != _LOCK:
                    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            shutil.rmtree(folder.path, ignore_errors=True)
        finally:
            os.close(lock)
