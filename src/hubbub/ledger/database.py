"""One SQLite file, opened so that a committed charge is on the disk, and closed before any fork.

**Durable.** Write-ahead log with `synchronous=FULL`: a transaction is flushed before its COMMIT returns, so a
`kill -9` or a power cut after it loses nothing, and one before it leaves nothing. Writers take the lock at
`BEGIN IMMEDIATE`; readers see the last commit.

**Created at once.** A new ledger is built under another name and linked to its own, so whoever opens the
path finds either nothing or a whole ledger, however many start together. This is also why an empty file is
refused: only a truncated ledger looks like that, and taking it for a new one would give its budget back.

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
from hubbub.ledger.journal import Connection
from hubbub.ledger.migrate import migrate
from hubbub.ledger.schema import APPLICATION_ID, VERSION, sqlite_schema

__all__ = ["Database", "create_file"]

Fill = Callable[[Connection], None]

_CREATE = "Make one with `hubbub ledger create`, or name another file."


class Database:
    """A ledger's SQLite database: transactions, and errors in words. One per `Ledger`; safe for threads.

    Args:
        path: an existing ledger file, or None for a database in this process's memory.
        patience: seconds to wait for other writers.
        read_only: refuse every write.
        fill: writes the first rows of a database in memory.

    A file of an older schema is brought to this one when it is opened for writing, in one transaction.

    Raises:
        PolicyError: the path is no ledger, or one that cannot be used from here.
    """

    def __init__(
        self, path: Path | None, *, patience: float = 30.0, read_only: bool = False, fill: Fill | None = None
    ) -> None:
        self.where = str(path) if path is not None else "in memory"
        self._fill = fill
        self._path = path
        self._patience = patience
        self._read_only = read_only
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        if path is not None:
            _check_file(path)
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
        with self._lock, self._translated():
            connection = self._connected()
            _await_turn(connection, self._patience)
            with _finished(connection):
                yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the ledger.

        Raises:
            PolicyError: SQLite could not read it.
        """
        with self._lock, self._translated(), _transaction(self._connected(), "BEGIN") as connection:
            yield connection

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
            return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])

    def backup(self, target: Path) -> None:
        """Write one state of the ledger, whole, to a file that does not exist yet.

        Raises:
            PolicyError: the target exists or cannot be written.
        """
        _check_folder(target)
        if target.exists():
            raise PolicyError(f"{target} exists and is left as it is. Name another file.")
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.new")
        try:
            with self._lock, self._translated():
                copy = sqlite3.connect(draft, isolation_level=None)
                try:
                    self._connected().backup(copy)
                finally:
                    copy.close()
            os.link(draft, target)
            _flush_folder(target.parent)
        except sqlite3.Error as error:
            raise _in_words(error, target) from error
        except OSError as error:
            raise PolicyError(f"cannot write the backup {target}: {error.strerror}.") from error
        finally:
            draft.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file. A database in memory is gone; a file opens again when needed."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._pid == os.getpid():
                with suppress(sqlite3.Error):
                    connection.close()

    def before_fork(self) -> None:
        """Hold still, and let go of the file, so that no child inherits it."""
        self._lock.acquire()
        if self._path is not None:
            self.close()

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
        if self._connection is None:
            self._connection = self._opened()
            if check and self._path is not None:
                _check_contents(self._connection, self._path, self._read_only)
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        connection = _connect(self._path, self._patience, self._read_only)
        if self._path is None:
            with _transaction(connection, "BEGIN"):
                _make_tables(connection, self._fill)
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # After a failed write or a damaged page, what this connection believes is not to be trusted.
            if self._path is not None:
                self.close()
            raise _in_words(error, self._path) from error


# One fork at a time: held from just before a fork until just after it.
_FORKS = threading.RLock()
_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_HELD: list[Database] = []


def _before_fork() -> None:
    _FORKS.acquire()
    for database in list(_OPEN):
        database.before_fork()
        _HELD.append(database)


def _after_fork() -> None:
    while _HELD:
        _HELD.pop().after_fork()
    _FORKS.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def create_file(path: Path, fill: Fill) -> bool:
    """Make a ledger at `path`, whole or not at all; False if something is there already.

    Args:
        path: where; its folder must exist.
        fill: writes the first rows.

    Raises:
        PolicyError: the folder is missing or cannot be written to.
    """
    _check_folder(path)
    if path.exists():
        return False
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    try:
        _build(draft, fill)
        os.link(draft, path)
        _flush_folder(path.parent)
    except FileExistsError:
        return False
    except sqlite3.Error as error:
        raise _in_words(error, path) from error
    except OSError as error:
        raise PolicyError(
            f"cannot create the ledger {path}: {error.strerror}. It needs a folder on a local disk, "
            "writable to you, that knows hard links."
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return True


def _build(draft: Path, fill: Fill) -> None:
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        with _transaction(connection, "BEGIN IMMEDIATE"):
            _make_tables(connection, fill)
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def _make_tables(connection: sqlite3.Connection, fill: Fill | None) -> None:
    for statement in sqlite_schema():
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    if fill is not None:
        fill(connection)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connect(path: Path | None, patience: float, read_only: bool) -> sqlite3.Connection:
    target = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        target, uri=path is not None, timeout=patience, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _await_turn(connection: sqlite3.Connection, patience: float) -> None:
    """BEGIN IMMEDIATE, tried again after pauses of 2 to 20 ms.

    SQLite's own pauses grow to a tenth of a second, which starves some; far shorter ones disturb whoever has the turn.
    """
    deadline, pause = time.monotonic() + patience, 0.002
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[sqlite3.Connection]:
    connection.execute(begin)
    with _finished(connection):
        yield connection


@contextmanager
def _finished(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit what was begun, or leave nothing of it."""
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def _check_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise PolicyError(f"cannot create the ledger {path}: there is no folder {folder}. Make it first.")
    if path.is_dir():
        raise PolicyError(f"the ledger {path} is a folder. Name a file in it, such as {path / 'budget.db'}.")


def _check_file(path: Path) -> None:
    """Refuse what is no ledger before SQLite opens it, which could change a stranger's database.

    Its header is looked at, and nothing else: beside a write-ahead log, the rest of the file may be of any age.
    """
    if path.is_dir():
        raise PolicyError(f"the ledger {path} is a folder. Name a file in it, such as {path / 'budget.db'}.")
    if not path.exists():
        raise PolicyError(f"there is no ledger {path}. {_CREATE}")
    if not os.access(path, os.R_OK):
        raise PolicyError(f"cannot read the ledger {path}: permission denied. Ask its owner for access.")
    if _application_id(path) != APPLICATION_ID:
        raise PolicyError(f"{path} is a SQLite file of another program, not a ledger; left as it is. {_CREATE}")


def _application_id(path: Path) -> int:
    """The number at byte 68 of a SQLite file's header, https://sqlite.org/fileformat.html.

    To close a file drops every lock that this process has on it (POSIX), so one that is open already is not looked at.
    """
    if _is_open_here(path):
        return APPLICATION_ID
    with path.open("rb") as file:
        header = file.read(100)
        size = os.fstat(file.fileno()).st_size
    if size < 512 or not header.startswith(b"SQLite format 3\x00"):
        raise PolicyError(
            f"{path} is not a ledger: it does not begin like a SQLite file. If it once was one, it is damaged: "
            f"restore a backup, never start anew in its place. {_CREATE}"
        )
    return int.from_bytes(header[68:72], "big")


def _is_open_here(path: Path) -> bool:
    with _FORKS:
        others = [database for database in _OPEN if database.holds_open]
    return any(other.same_file(path) for other in others)


def _check_contents(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise _damaged(path)
    version = _version(connection)
    if 1 <= version < VERSION and not read_only:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            version = _version(connection)  # another process may have been quicker
            if version < VERSION:
                migrate(connection, version)
                version = VERSION
    if version != VERSION:
        if version > VERSION:
            next_step = "Update hubbub."
        elif version < 1:
            next_step = "It was made by an unfinished hubbub: create a new one."
        else:
            next_step = "Bring it up to date: `hubbub ledger migrate`."
        raise PolicyError(
            f"the ledger {path} has schema version {version}; this hubbub reads version {VERSION}. {next_step}"
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _damaged(path: Path | None) -> PolicyError:
    return PolicyError(
        f"the ledger {path or 'in memory'} is damaged, so no answer is given. Restore a backup "
        "that holds every charge, never an older one: what was spent since would be forgotten."
    )


def _in_words(error: sqlite3.Error, path: Path | None) -> HubbubError:
    """SQLite's failure as a refusal: by its primary result code, https://sqlite.org/rescode.html."""
    where = f"the ledger {path}" if path is not None else "the ledger in memory"
    after = "This step was not recorded, so no answer is given."
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return PolicyError(f"{where} is held by another process for too long. {after} Try again later.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_AUTH:
            return PolicyError(f"cannot write to {where}. {after} The file and its folder must be writable to you.")
        case sqlite3.SQLITE_FULL:
            return PolicyError(f"no room for {where}: the disk is full. {after} Free some space.")
        case sqlite3.SQLITE_IOERR:
            return PolicyError(
                f"the disk refused to read or write {where} ({error}). {after} "
                "See to the disk: its space, its quota, its health."
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return _damaged(path)
        case _:
            return PolicyError(f"{where} could not be used: {error}. {after} See to the file.")
