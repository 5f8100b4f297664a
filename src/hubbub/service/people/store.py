"""service.db: the file of people, beside the ledger. SQLite, and whole transactions, each with its line of the log.

Times are UTC, ISO 8601, of one length, so that they compare as texts. They are monotone, as the ledger's are: where the
clock was set back, time goes on from the last line of the log, and what has ended does not begin again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from hubbub.errors import PolicyError
from hubbub.ledger.hash_chain import check_clock
from hubbub.service.people import log

__all__ = ["Store", "Writing", "after", "now"]

_VERSION: Final = 3
_PATIENCE: Final = 10.0
_SLIGHT: Final = 60.0  # seconds by which a clock is put right without anybody setting it back
_DEVICE: Final = "device TEXT NOT NULL DEFAULT ''"
_SUBJECT: Final = (
    "CREATE TABLE subject (issuer TEXT NOT NULL, subject TEXT NOT NULL, person TEXT NOT NULL UNIQUE, "
    "made TEXT NOT NULL, PRIMARY KEY (issuer, subject))"
)
_SCHEMA: Final = (
    _SUBJECT,
    "CREATE TABLE about (id TEXT NOT NULL)",
    "CREATE TABLE person (name TEXT PRIMARY KEY NOT NULL, folded TEXT NOT NULL UNIQUE, state TEXT NOT NULL, "
    "roles TEXT NOT NULL, passphrase TEXT, made TEXT NOT NULL)",
    "CREATE TABLE link (hash TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, person TEXT NOT NULL, until TEXT NOT NULL)",
    "CREATE TABLE token (id TEXT PRIMARY KEY NOT NULL, hash TEXT NOT NULL, person TEXT NOT NULL, label TEXT NOT NULL, "
    "scopes TEXT NOT NULL, most TEXT, cap TEXT, made TEXT NOT NULL, until TEXT NOT NULL, ended TEXT)",
    "CREATE TABLE session (hash TEXT PRIMARY KEY NOT NULL, person TEXT NOT NULL, made TEXT NOT NULL, "
    f"until TEXT NOT NULL, {_DEVICE})",
    "CREATE TABLE wish (id TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, person TEXT NOT NULL, made TEXT NOT NULL, "
    "what TEXT NOT NULL, name TEXT, state TEXT NOT NULL, steward TEXT, decided TEXT, reason TEXT, outcome TEXT)",
    "CREATE UNIQUE INDEX wish_of_request ON wish (person, kind, name) WHERE name IS NOT NULL",
    "CREATE INDEX token_of ON token (person)",
    "CREATE INDEX session_of ON session (person)",
    "CREATE TABLE log (serial INTEGER PRIMARY KEY NOT NULL, time TEXT NOT NULL, who TEXT NOT NULL, act TEXT NOT NULL, "
    "about TEXT NOT NULL, hash TEXT NOT NULL)",
    *(
        f"CREATE TRIGGER log_no_{verb.lower()} BEFORE {verb} ON log "
        "BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ),
)


def now() -> str:
    """This moment."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def after(time: str, **more: float) -> str:
    """A moment so much later.

    >>> after("2026-01-01T00:00:00.000000Z", hours=12)
    '2026-01-01T12:00:00.000000Z'
    """
    moment = datetime.fromisoformat(time) + timedelta(**more)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Writing:
    """One transaction. time: its moment, by which everything in it is dated."""

    connection: sqlite3.Connection
    time: str
    key: bytes | None

    def __call__(self, sql: str, *values: str | int | None) -> sqlite3.Cursor:
        """Run one statement."""
        return self.connection.execute(sql, values)

    def note(self, who: str, act: str, **about: Any) -> None:
        """A line of the log, in this transaction."""
        log.append(self.connection, self.key, self.time, who, act, about)


class Store:
    """The file, open. key: of the ledger's chain, which keys the log's too. keys: all that it has had, oldest first.

    Raises PolicyError where it cannot be opened, or another hubbub made it.
    """

    def __init__(
        self,
        path: Path,
        *,
        key: bytes | None = None,
        keys: Callable[[], Sequence[bytes | None]] | None = None,
        clock: Callable[[], str] = now,
    ) -> None:
        self.path, self.clock, self._key = path, clock, key
        self._last = "", 0.0  # the latest time that was written, and when that was, by a clock that nobody sets
        self._keys = keys or (lambda: (key,))
        self._lock = threading.RLock()
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
                self._connection.execute(f"PRAGMA {setting}")
            self._fill()
            self._note_time(self.row("SELECT coalesce(max(time), '') FROM log")[0])
        except (OSError, sqlite3.Error) as error:
            raise self._unwritten(error) from None

    def _fill(self) -> None:
        with self.writing() as write:
            (version,) = write("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA:
                    write(statement)
                write("INSERT INTO about VALUES (?)", uuid.uuid4().hex)
                write(f"PRAGMA user_version = {_VERSION}")
            elif version in (1, 2):
                if version == 1:
                    write(f"ALTER TABLE session ADD COLUMN {_DEVICE}")
                write(_SUBJECT)  # before 3 nobody came by a provider
                write(f"PRAGMA user_version = {_VERSION}")
            elif version != _VERSION:
                raise PolicyError(f"{self.path} was made by another hubbub: its version is {version}, not {_VERSION}.")

    def moment(self) -> str:
        """This moment: never before what was written, nor by more than a minute before what has passed since."""
        told, (last, since) = self.clock(), self._last
        if not last:
            return told
        goes_on = after(last, seconds=time.monotonic() - since)
        return told if told >= max(last, after(goes_on, seconds=-_SLIGHT)) else goes_on

    def _note_time(self, written: str) -> None:
        if written > self._last[0]:
            self._last = written, time.monotonic()

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """A transaction: all of it, or nothing.

        Raises PolicyError where it cannot be written, and where the clock was set more than a day forward while this
        program ran.
        """
        check_clock()
        with self._lock:
            try:
                writing = self._begun()
                yield writing
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:  # what it cannot write, SQLite gives up by itself
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise self._unwritten(error) from None
                raise
            self._note_time(writing.time)

    def _unwritten(self, error: Exception) -> PolicyError:
        """The refusal where the system or SQLite does not let us write, in its words, which name no row."""
        return PolicyError(f"nothing was done: the file of people, {self.path.name}, cannot be written ({error}).")

    def _begun(self) -> Writing:
        self._connection.execute("BEGIN IMMEDIATE")
        return Writing(self._connection, self.moment(), self._key)

    def note_nothing(self) -> None:
        """Take as long as a line of the log takes, and leave none."""
        with self.writing() as write:
            write("INSERT INTO about VALUES ('')")  # a page is written, as it is for a line
            write("DELETE FROM about WHERE id = ''")

    def rows(self, sql: str, *values: str | int | None) -> list[Any]:
        """What a statement that reads finds."""
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: str | int | None) -> Any:
        """The first row of it, or None."""
        with self._lock:
            return self._connection.execute(sql, values).fetchone()

    def note(self, who: str, act: str, about: Mapping[str, Any]) -> None:
        """A line of the log alone."""
        with self.writing() as write:
            write.note(who, act, **about)

    def lines(self, *, after: int = 0, most: int = 1000, before: int | None = None) -> list[log.Line]:
        """Lines of the log after one, oldest first; or before one, newest first."""
        with self._lock:
            return log.lines(self._connection, after=after, most=most, before=before)

    def acts_of(self, act: str) -> list[log.Line]:
        """All lines of one act, oldest first."""
        with self._lock:
            return log.lines(self._connection, act=act, most=-1)

    def verify(self, *, head: str | None = None) -> log.LogCheck:
        """Every link of the log. head: one that was kept elsewhere; it must be in the chain."""
        with self._lock:
            return log.verify(self._connection, self._keys(), head=head)

    def settle(self) -> None:
        """Move everything into the file itself, so that it may be given another name."""
        with self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._connection.execute("PRAGMA journal_mode = DELETE").fetchone()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()
