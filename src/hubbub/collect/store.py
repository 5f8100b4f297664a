"""What an aggregator keeps: a SQLite file in its folder, and its ledger beside it.

Every step is one transaction, written through to the disk before its message leaves (`synchronous=FULL`). So after a
kill at any moment the step either happened whole, and its message is written again from the file, or not at all, and is
done again. A report's id is recorded in the transaction that takes the report up, so it is never counted twice; a batch
is closed in the transaction that fixes its sum, so no report is in two batches.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from hubbub.collect.task import Task
from hubbub.errors import PolicyError

__all__ = ["Store"]

_TABLES = """
CREATE TABLE IF NOT EXISTS seen (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS report (serial INTEGER PRIMARY KEY AUTOINCREMENT, win INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS job (
  id BLOB PRIMARY KEY, low INTEGER, high INTEGER, seeds BLOB, digest BLOB, message BLOB, done INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS win (
  start INTEGER PRIMARY KEY, count INTEGER NOT NULL, checksum BLOB NOT NULL, total BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS batch (
  serial INTEGER PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, count INTEGER NOT NULL,
  checksum BLOB NOT NULL, total BLOB NOT NULL, box BLOB
);
CREATE TABLE IF NOT EXISTS dropped (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS input (digest BLOB PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID;
"""


class Store:
    """One aggregator's state, held by one process at a time."""

    def __init__(self, folder: Path, task: Task, *, new: bool = False) -> None:
        self.folder, self.task = folder, task
        if not new and not (folder / "state.db").exists():
            raise PolicyError(
                f"{folder / 'state.db'} is gone: what was counted and released is not known. Put it back."
            )
        try:
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            handle = os.open(folder / "state.db", os.O_RDWR | os.O_CREAT, 0o600)
            os.close(handle)
        except BlockingIOError:
            raise PolicyError(f"another process works in {folder}; wait for it.") from None
        except OSError as error:
            raise PolicyError(f"{folder} cannot be used ({error.strerror}).") from None
        try:
            self.database = sqlite3.connect(folder / "state.db", isolation_level=None)
            self.database.execute("PRAGMA journal_mode=WAL")
            self.database.execute("PRAGMA synchronous=FULL")
            self.database.executescript(_TABLES)
        except sqlite3.Error as error:
            raise PolicyError(f"{folder / 'state.db'} cannot be used: {error}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process at it."""
        self.database.close()
        os.close(self._lock)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, on the disk before this ends."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield self.database
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What a query finds."""
        return self.database.execute(query, values).fetchall()

    # In a transaction.

    def drop(self, reason: str, count: int = 1) -> None:
        """Count reports that are left out."""
        if count:
            self.database.execute(
                "INSERT INTO dropped VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                (reason, count),
            )

    def take_id(self, report: bytes) -> bool:
        """Record a report's id; False if it was taken before."""
        return self.database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (report,)).rowcount == 1

    def closed(self, start: int) -> bool:
        """Whether a window belongs to a batch that was released."""
        return bool(self.rows("SELECT 1 FROM batch WHERE low <= ?1 AND ?1 < high", start))

    def add(self, start: int, count: int, checksum: int, total: list[int]) -> None:
        """Add reports to a window's sum."""
        prio3 = self.task.prio3
        windows = self.rows("SELECT count, checksum, total FROM win WHERE start = ?", start)
        if windows:
            before, digest, encoded = windows[0]
            count, checksum = count + before, checksum ^ int.from_bytes(digest, "little")
            total = prio3.merge([prio3.decode_aggregate(encoded), total])
        self.database.execute(
            "INSERT OR REPLACE INTO win VALUES (?, ?, ?, ?)",
            (start, count, checksum.to_bytes(32, "little"), prio3.encode_aggregate(total)),
        )

    # For people.

    def dropped(self) -> dict[str, int]:
        """How many reports were left out, by reason."""
        return dict(self.rows("SELECT reason, count FROM dropped ORDER BY reason"))

    def counted(self) -> int:
        """How many reports are in sums."""
        return int(self.rows("SELECT coalesce(sum(count), 0) FROM win")[0][0])
