"""A ledger file that cannot be written to from here, such as a copy on a read-only mount, is read all the same.

To read a file that has a write-ahead log, SQLite writes to a third file beside it, by which readers and writers agree.
Where that cannot be made, `immutable=1` lets SQLite read the ledger's file alone, without any lock. Two things could go
wrong then, and both are looked for:

- a log beside the file holds the last charges. With such a log, the file alone is not read.
- somebody else writes to the file meanwhile. What the system says of the file is compared before it is opened and after
  whatever was read: a writer changes the file's time, or leaves a log beside it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from hubbub.errors import PolicyError

__all__ = ["Still", "unreadable", "written_meanwhile"]

_TICK: Final = 50_000_000  # nanoseconds within which two writes may get one time


@dataclass(frozen=True)
class Still:
    """A ledger's file, and the log beside it, as they are while nobody writes to them."""

    path: Path
    facts: tuple[int, ...]

    @classmethod
    def of_path(cls, path: Path) -> Self | None:
        """Of a file that cannot be written to from here, and has no log that holds anything; None of others."""
        if (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)) or _logs(path):
            return None
        facts = _facts(path)
        while abs(time.time_ns() - facts[-1]) < _TICK:
            time.sleep(0.005)
            facts = _facts(path)
        return cls(path, facts)

    @property
    def holds(self) -> bool:
        """Whether nobody wrote since."""
        try:
            return _facts(self.path) == self.facts and not _logs(self.path)
        except OSError:
            return False


def _facts(path: Path) -> tuple[int, ...]:
    facts = os.stat(path)
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_ctime_ns, facts.st_mtime_ns


def _logs(path: Path) -> list[Path]:
    """The files beside a ledger in which SQLite may have kept what the ledger's own file does not hold yet."""
    return [log for end in ("-wal", "-journal") if _size(log := path.with_name(f"{path.name}{end}"))]


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def unreadable(path: Path) -> PolicyError:
    """The refusal to read where SQLite could not open the file: for the most part because of its log."""
    if logs := _logs(path):
        return PolicyError(
            f"cannot read the ledger {path}: what was recorded last stands in {logs[0]}, and SQLite reads that only "
            "where it may write to the folder, or next to the -shm file of those who use the ledger now. Copy both "
            "files to a folder that is writable to you, and read the copy."
        )
    return PolicyError(f"cannot read the ledger {path}: SQLite could not open it. See who may read it and its folder.")


def written_meanwhile(path: Path) -> PolicyError:
    """The refusal of what was read while another process wrote to a file that is read without locks."""
    return PolicyError(
        f"somebody wrote to the ledger {path} while it was read, and it cannot be locked from here: the file or its "
        "folder is not writable to you. Nothing of what was read is shown. Try again."
    )
