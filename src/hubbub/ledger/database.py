"""One SQLite file, opened so that a committed charge is on the disk, and closed before any fork.

**Durable.** Write-ahead log with `synchronous=FULL`: a transaction is flushed before its COMMIT returns, so a
`kill -9` or a power cut after it loses nothing, and one before it leaves nothing. Writers take the lock at
`BEGIN IMMEDIATE`; readers see the last commit.

**In turn.** Threads and processes write in the order in which they came (`hubbub.ledger.fair_queue`).

**Read only.** A file that cannot be written to from here is read as it stands (`hubbub.ledger.unwritable`).

**Places.** A file that is deleted or replaced while it is open takes writes that nobody finds again: before each COMMIT
and after it, the open files are compared with those at their paths.

**Signals.** Ctrl-C comes before or after a transaction, and in the waits for one (`hubbub.ledger.interrupts`).

**Forks.** SQLite must not be carried across `fork`: a child that inherits an open file also inherits the
belief that it holds locks which the system gave to the parent only. Every open file is therefore closed
just before a fork, and opened again by whoever needs it. A budget in memory cannot be shared that way, so a
child may not use it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger.fair_queue import FairLock, Tickets
from hubbub.ledger.files import (
    UNOPENED,
    Fill,
    changed_rules,
    check_contents,
    check_file,
    check_folder,
    damaged,
    finished,
    flush_folder,
    hard_link,
    held_too_long,
    in_words,
    make_tables,
    too_large_to_open,
    transaction,
)
from hubbub.ledger.interrupts import Undisturbed
from hubbub.ledger.proofs import Proofs
from hubbub.ledger.unwritable import Still, unreadable, written_meanwhile

__all__ = ["Database"]


class Database:
    """A ledger's SQLite database: transactions, and errors in words. One per `Ledger`; safe for threads.

    Args:
        path: an existing ledger file, or None for a database in this process's memory.
        patience: seconds to wait for other writers.
        read_only: refuse every write.
        fill: writes the first rows of a database in memory.

    A file of an older schema is brought to this one when it is opened for writing, in one transaction.

    Raises:
        PolicyError: the path is not a ledger, or one that cannot be used from here.
    """

    def __init__(
        self, path: Path | None, *, patience: float = 30.0, read_only: bool = False, fill: Fill | None = None
    ) -> None:
        self.where = str(path) if path is not None else "in memory"
        self._fill = fill
        self._path = path
        self._patience = patience
        self._read_only = read_only
        self._lock = FairLock()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._pauses = True  # whether SQLite itself waits for a lock
        self._queue = None if path is None or read_only else Tickets(path)
        self.unsure = False  # SQLite tells whether it has committed
        self.committed: Callable[[], None] | None = None  # what is done after each commit, before anybody is told
        self.proofs = Proofs()
        self._files: dict[str, tuple[int, int] | None] = {}  # the files that are open, by their places
        self._still: Still | None = None  # the file, where it is read without locks
        self._gone = False  # another file, or none, is where the open one was
        if path is not None:
            check_file(path, is_open=_is_open_here(path))
        with _FORKS:
            _OPEN.add(self)
        with self._translated():
            self._connected(check=True)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its first statement; committed and flushed at the end.

        Raises:
            PolicyError: SQLite could not do it. Nothing of the transaction stays.
        """
        deadline = time.monotonic() + self._patience
        with Undisturbed() as signals, self._held(deadline, signals), self._translated():
            queued = self._queue is not None and self._queue.enter(signals, deadline - self._patience / 2)
            try:
                connection = self._connected()
                _begin(self._pausing(connection, False), deadline, signals)
                with finished(connection, self._check_place):
                    yield connection
                self._after_commit()
            finally:
                if queued and self._queue is not None:
                    self._queue.leave()

    @contextmanager
    def _held(self, deadline: float, signals: Undisturbed) -> Iterator[None]:
        """This object's lock, in the order in which threads came; waited for until the deadline."""
        try:
            self._lock.acquire(signals, deadline)
        except TimeoutError:
            raise held_too_long(self._path) from None
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the ledger.

        Raises:
            PolicyError: SQLite could not read it.
        """
        with (
            Undisturbed() as signals,
            self._held(time.monotonic() + self._patience, signals),
            self._translated(),
            transaction(self._pausing(self._connected(), True), "BEGIN") as connection,
        ):
            yield connection
            self._check_still()

    def _check_still(self) -> None:
        """Refuse what was read without locks where somebody wrote meanwhile."""
        if self._still is not None and not self._still.holds:
            self._let_go()
            raise written_meanwhile(self._still.path)

    def _after_commit(self) -> None:
        """See that what was committed can be found again, before anybody is told."""
        self._check_place()
        if self.committed is not None:
            self.committed()

    def _check_place(self) -> None:
        """Refuse to go on where the open file is no longer the one at its path.

        A file that was deleted or replaced takes writes for as long as it is open, and nobody finds them again. So do
        its log and its lock file, which SQLite keeps beside it.
        """
        if self._path is None:
            return
        stat = os.stat
        for place, known in self._files.items():
            try:
                facts = stat(place)
                now: tuple[int, int] | None = (facts.st_dev, facts.st_ino)
                names = facts.st_nlink
            except FileNotFoundError:
                now, names = None, 0
            if now != known:
                self._gone = True
                self._let_go()
                raise _replaced(place)
            if names > 1:
                raise hard_link(self._path)

    @property
    def holds_open(self) -> bool:
        """Whether a file is open at this moment."""
        return self._path is not None and self._connection is not None

    def same_file(self, path: Path) -> bool:
        """Whether the ledger is the file `path`, by whatever name."""
        try:
            return self._path is not None and os.path.samefile(self._path, path)
        except OSError:
            return False

    def integrity(self) -> str:
        """'ok', or the first damage that SQLite finds in the file's structure.

        Raises:
            PolicyError: it could not be read at all.
        """
        with self.reading() as connection:
            verdict = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
            return verdict if verdict != "ok" else changed_rules(connection) or "ok"

    def backup(self, target: Path) -> None:
        """Write one state of the ledger, whole, to a file that does not exist yet.

        Raises:
            PolicyError: the target exists or cannot be written.
        """
        check_folder(target)
        if target.exists():
            raise PolicyError(f"{target} exists and is left as it is. Name another file.")
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.new")
        try:
            with (
                Undisturbed() as signals,
                self._held(time.monotonic() + self._patience, signals),
                self._translated(),
            ):
                os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                copy = sqlite3.connect(draft, isolation_level=None)
                try:
                    self._connected().backup(copy)
                    self._check_still()
                finally:
                    copy.close()
            os.link(draft, target)
            flush_folder(target.parent)
        except sqlite3.Error as error:
            raise in_words(error, target) from error
        except OSError as error:
            raise PolicyError(f"cannot write the backup {target}: {error.strerror}.") from error
        finally:
            draft.unlink(missing_ok=True)

    def forget(self) -> None:
        """Empty the log: what was deleted is overwritten in the file, and stood in the log too. A reader may hinder it,
        who is not waited for: the log is emptied with the next one, or when the file is closed.
        """
        if self._path is None:
            return
        with (
            Undisturbed() as signals,
            self._held(time.monotonic() + self._patience, signals),
            self._translated(),
        ):
            self._pausing(self._connected(), False).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close the file. A database in memory is gone; a file opens again when needed."""
        with Undisturbed() as signals, self._lock.held(signals):
            self._let_go()
            if self._queue is not None:
                self._queue.remove()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._pid == os.getpid():
            with suppress(sqlite3.Error):
                connection.close()

    def before_fork(self) -> None:
        """Hold still, and let go of the file, so that no child inherits it."""
        self._lock.acquire()
        if self._path is not None:
            self._let_go()

    def after_fork(self) -> None:
        """Go on, in the parent and in the child."""
        self._lock.release()

    def _connected(self, *, check: bool = False) -> sqlite3.Connection:
        if self._pid != os.getpid():
            if self._path is None:
                raise PolicyError(
                    "this process was forked from one that keeps its budget in memory, and a copy of a "
                    "budget could be spent twice. Give the session a ledger file, which processes share."
                )
            self._connection, self._pid = None, os.getpid()
        if self._gone:
            raise _replaced(self.where)
        if self._connection is None:
            try:
                self._connection = self._opened()
                if check and self._path is not None:
                    check_contents(self._connection, self._path, self._read_only)
            except MemoryError as error:  # nothing is written yet
                self._let_go()
                raise too_large_to_open(self._path) from error
        return self._connection

    def _pausing(self, connection: sqlite3.Connection, pauses: bool) -> sqlite3.Connection:
        """The connection, where SQLite itself waits for a lock, as readers let it, or does not."""
        if self._pauses != pauses:
            self._pauses = pauses
            connection.execute(f"PRAGMA busy_timeout = {round(self._patience * 1000) if pauses else 0}")
        return connection

    def _opened(self) -> sqlite3.Connection:
        before = None if self._path is None else _identity(str(self._path))
        self._still = Still.of_path(self._path) if self._path is not None and self._read_only else None
        connection = _connect(self._path, self._patience, self._read_only, still=self._still is not None)
        connection.proofs = self.proofs
        self._pauses = True
        if self._path is None:
            with transaction(connection, "BEGIN"):
                make_tables(connection, self._fill)
        elif not self._read_only:
            try:
                connection.execute("PRAGMA user_version").fetchone()  # from here on its log is open too
                main = str(self._path)
                known = self._files.get(main, before)
                self._files = {f"{main}{suffix}": _identity(f"{main}{suffix}") for suffix in ("", "-wal", "-shm")}
                self._files[main] = known
                self._check_place()
            except BaseException:
                connection.close()
                raise
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:  # in the words of SQLite's own check of the pages
            if self._path is not None:
                self._let_go()
            raise damaged(self._path) from error
        except sqlite3.Error as error:
            # After a failed write or a damaged page, what this connection believes is not to be trusted.
            if self._path is not None:
                self._let_go()
            raise self._in_words(error) from error

    def _in_words(self, error: sqlite3.Error) -> HubbubError:
        if self._path is not None and self._read_only:
            if self._still is not None and not self._still.holds:
                return written_meanwhile(self._path)
            code = getattr(error, "sqlite_errorcode", 0)
            if code != sqlite3.SQLITE_READONLY and code & 0xFF in UNOPENED:  # that code alone is of our own writing
                return unreadable(self._path)
        return in_words(error, self._path)


# One fork at a time: held from just before a fork until just after it.
_FORKS = threading.RLock()
_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_HELD: list[Database] = []


_QUIET: list[Undisturbed] = []


def _before_fork() -> None:
    _QUIET.append(Undisturbed().__enter__())
    _FORKS.acquire()
    for database in list(_OPEN):
        database.before_fork()
        _HELD.append(database)


def _after_fork() -> None:
    while _HELD:
        _HELD.pop().after_fork()
    _FORKS.release()
    _QUIET.pop().__exit__(None, None, None)


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _is_open_here(path: Path) -> bool:
    with _FORKS:
        others = [database for database in _OPEN if database.holds_open]
    return any(other.same_file(path) for other in others)


class _Connection(sqlite3.Connection):
    """A connection that knows what was looked at of its ledger."""

    proofs: Proofs


def _connect(path: Path | None, patience: float, read_only: bool, still: bool) -> _Connection:
    how = "mode=ro&immutable=1" if still else "mode=rw"
    target = ":memory:" if path is None else f"{path.absolute().as_uri()}?{how}"
    connection = sqlite3.connect(
        target,
        uri=path is not None,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")  # words that a steward removed are overwritten
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _replaced(place: str) -> PolicyError:
    return PolicyError(
        f"the ledger {place} was deleted or replaced while it was open, so no answer is given: what is recorded now "
        "would be lost with the old file. Put that file back, never an older copy, and open the session anew."
    )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def _begin(connection: sqlite3.Connection, deadline: float, signals: Undisturbed) -> None:
    """BEGIN IMMEDIATE, tried again after pauses of 1 to 20 ms; only who does not queue stands in the way here.

    SQLite's own pauses grow to a tenth of a second, which starves some.
    """
    pause = 0.001
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        signals.check()
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
