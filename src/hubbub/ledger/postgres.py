"""A ledger in Postgres, for several machines. Needs the extra `postgres` (psycopg 3).

All tables stand in the schema `hubbub` of one database. **Durable**: `synchronous_commit` is on for our transactions
whatever the server's default. **One writer at a time**: a write transaction begins by locking the ledger's first row,
and only then reads; under READ COMMITTED each of its statements sees all that earlier writers committed. Readers see
one snapshot (REPEATABLE READ). The lock ends with its transaction, or with the connection of a process that died.
**Whole**: a row that a policy hides is an error; rules and triggers that are not ours are refused. **Bounded**: no wait
lasts longer than `patience`, for a lock or for the network, nor the server's for one who vanished with the lock. Where
the answer to a COMMIT is lost, `unsure` says so, and the charge is looked up.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from hubbub.addresses import raise_alone, shown_address
from hubbub.errors import HubbubError, PolicyError, QueryError
from hubbub.ledger.fair_queue import FairLock
from hubbub.ledger.files import UNSURE
from hubbub.ledger.hash_chain import Connection, Rows, Value, untrue
from hubbub.ledger.interrupts import Undisturbed
from hubbub.ledger.migrate import (
    from_version_2,
    from_version_3,
    from_version_4,
    from_version_5,
    from_version_6,
    from_version_7,
)
from hubbub.ledger.proofs import Proofs
from hubbub.ledger.schema import VERSION, postgres_schema

__all__ = ["PostgresStore", "without_password"]

_CREATING = 0x68756262  # the advisory lock under which a ledger is made


def without_password(address: str) -> str:
    """A Postgres address as it may be shown.

    >>> without_password("postgresql://ada:secret@db.example:5432/budgets?sslmode=require")
    'postgresql://db.example:5432/budgets'
    """
    return re.sub(r"//[^/@]*@", "//", shown_address(address))


class _Marks:
    """A psycopg connection that takes `?` for a value, as SQLite does."""

    def __init__(self, connection: psycopg.Connection[Any], proofs: Proofs | None = None) -> None:
        self._connection = connection
        self.proofs = proofs

    def execute(self, sql: str, parameters: Sequence[Value] = (), /) -> Rows:
        if any(isinstance(value, str) and "\x00" in value for value in parameters):
            raise QueryError("the text holds a NUL character, which Postgres cannot keep. Leave it out.")
        return self._connection.execute(sql.replace("?", "%s").encode() if parameters else sql.encode(), parameters)

    def now(self) -> str:
        """The server's clock, as `hash_chain.now` writes it: for machines whose own ones differ."""
        (moment,) = self._connection.execute(_CLOCK).fetchone() or ("",)
        return str(moment)


_CLOCK = b"""SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


def _bounds(wait: int) -> str:
    """Settings of a session by which the server waits for nobody for ever: not for a lock, nor for one who vanished."""
    second, alive = 1000, max(1, wait // 3000)
    settings = {
        "lock_timeout": wait,
        "statement_timeout": max(60 * second, 10 * wait),
        "idle_in_transaction_session_timeout": max(10 * second, wait),
        "tcp_keepalives_idle": alive,
        "tcp_keepalives_interval": alive,
        "tcp_keepalives_count": 3,
    }
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


class _Bounded(psycopg.Connection[Any]):
    """A connection that waits for its server so long and no longer: a network that went silent answers nothing.

    Keepalives do not find that where something between the two still answers them.
    """

    silence = 30.0

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(_bounded(gen, self.silence), *args, **options)


def _bounded(gen: Generator[Any, Any, Any], silence: float) -> Generator[Any, Any, Any]:
    """Drive `gen` as whoever drives this one; an OperationalError once nothing came for that many seconds."""
    try:
        wanted = next(gen)
        heard = time.monotonic()
        while True:
            ready = yield wanted
            if ready:
                heard = time.monotonic()
            elif time.monotonic() > heard + silence:
                raise psycopg.OperationalError("no answer in time")
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value


class PostgresStore:
    """The connection of one `Ledger` to its database; safe for threads, opened anew after a fork.

    Args:
        address: `postgresql://user@host:port/database`.
        patience: seconds to wait for other writers and for the server.
        read_only: refuse every write.
        fill: makes a missing ledger and writes its first row; None: a missing ledger is an error.

    Raises:
        PolicyError: the server cannot be reached, or holds no ledger that this hubbub reads.
    """

    def __init__(
        self,
        address: str,
        *,
        patience: float = 30.0,
        read_only: bool = False,
        fill: Callable[[Connection], None] | None = None,
    ) -> None:
        self.where = without_password(address)
        self._address = address
        self._patience = patience
        self._read_only = read_only
        self._lock = FairLock()
        self._pid = os.getpid()
        self._connection: _Bounded | None = None
        self.proofs = Proofs()
        self._committing = False  # a COMMIT was sent, and its answer did not come yet
        self.unsure = False  # nor did it for the last transaction that failed
        self.committed: Callable[[], None] | None = None  # what is done after each commit, before anybody is told
        if fill is not None:
            self._create(fill)
        if not read_only:
            self._upgrade()
        self._check()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that excludes other writers from its first statement on; committed durably at the end.

        Raises:
            PolicyError: Postgres could not do it. Nothing of the transaction stays.
        """
        if self._read_only:
            raise PolicyError(f"cannot write to the ledger {self.where}: it was opened for reading only.")
        with self._transaction("READ COMMITTED", writes=True) as connection:
            connection.execute("SELECT 1 FROM ledger FOR UPDATE")
            yield _Marks(connection, self.proofs)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the ledger.

        Raises:
            PolicyError: Postgres could not read it.
        """
        with self._transaction("REPEATABLE READ") as connection:
            yield _Marks(connection, self.proofs)

    def close(self) -> None:
        """Close the connection; it opens again when needed."""
        with Undisturbed() as signals, self._lock.held(signals):
            connection, self._connection = self._connection, None
            if connection is not None and self._pid == os.getpid():
                with suppress(psycopg.Error):
                    connection.close()

    def integrity(self) -> str:
        """'ok': Postgres looks after its own pages."""
        with self.reading() as connection:
            connection.execute("SELECT count(*) FROM journal").fetchone()
        return "ok"

    def backup(self, target: Path) -> None:
        """Refused: the server's own tool does it, from one snapshot."""
        raise PolicyError(f"the ledger {self.where} lives in Postgres: back it up with `pg_dump --schema=hubbub`.")

    def forget(self) -> None:
        """Nothing: the server's own VACUUM clears what was deleted, and its log ages."""

    @contextmanager
    def _transaction(self, isolation: str, *, writes: bool = False) -> Iterator[psycopg.Connection[Any]]:
        with Undisturbed() as signals, self._held(signals), self._translated():
            self._committing = self.unsure = False
            connection = self._connected()
            # Said anew in each transaction: a pooler may have dropped what the connection was opened with.
            begin = f"BEGIN ISOLATION LEVEL {isolation}; {_SAID}"
            connection.execute(begin.encode(), prepare=False)
            try:
                yield connection
                self._committing = writes
                done = connection.execute("COMMIT").statusmessage
                self._committing = False
                if done != "COMMIT":  # Postgres takes it for a ROLLBACK after a statement that failed, without an error
                    raise PolicyError(f"the ledger {self.where} did not record this step: no answer is given. {_AFTER}")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            if writes and self.committed is not None:
                self.committed()

    @contextmanager
    def _held(self, signals: Undisturbed) -> Iterator[None]:
        """This object's lock, waited for as long as patience lasts; `signals` sees to it that it is given back."""
        try:
            self._lock.acquire(signals, time.monotonic() + self._patience)
        except TimeoutError:
            raise PolicyError(
                f"the ledger {self.where} is held by another thread for too long. {_AFTER} Try again."
            ) from None
        try:
            yield
        finally:
            self._lock.release()

    def _connected(self) -> _Bounded:
        if self._pid != os.getpid():
            # The parent's socket must not be spoken on, nor closed with a goodbye, from here.
            _INHERITED.append(self._connection)
            self._connection, self._pid = None, os.getpid()
        if self._connection is None or self._connection.closed:
            wait = max(1, round(self._patience * 1000))
            try:
                self._connection = opened = _Bounded.connect(
                    self._address,
                    autocommit=True,
                    connect_timeout=max(2, round(self._patience)),
                    options=f"-c search_path=hubbub -c synchronous_commit=on -c row_security=off {_bounds(wait)}",
                    application_name="hubbub",
                    client_encoding="utf8",  # whatever PGCLIENTENCODING says
                    keepalives=1,
                    keepalives_idle=max(1, wait // 3000),
                    keepalives_interval=max(1, wait // 6000),
                    keepalives_count=3,
                    tcp_user_timeout=wait,
                )
                opened.silence = self._patience + 1  # the server's own refusal comes first
            except ValueError:  # of a host's name that cannot be encoded, with the whole address in it
                self._connection = None
            if self._connection is None:
                raise PolicyError(
                    f"cannot read the address of the ledger {self.where}. {_AFTER} See to the host's name in it."
                )
        return self._connection

    def _create(self, fill: Callable[[Connection], None]) -> None:
        with self._transaction("READ COMMITTED") as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
            if connection.execute("SELECT to_regclass('hubbub.version')").fetchone() != (None,):
                return
            connection.execute("CREATE SCHEMA IF NOT EXISTS hubbub")
            for statement in postgres_schema():
                connection.execute(statement.encode())
            connection.execute("CREATE TABLE version (number BIGINT NOT NULL)")
            connection.execute("INSERT INTO version VALUES (%s)", (VERSION,))
            fill(_Marks(connection))

    def _upgrade(self) -> None:
        """Bring a ledger of an older schema up to date, whole or not at all."""
        with self._transaction("READ COMMITTED") as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
            if connection.execute("SELECT to_regclass('hubbub.version')").fetchone() == (None,):
                return
            (number,) = connection.execute("SELECT number FROM version").fetchone() or (0,)
            if number not in (2, 3, 4, 5, 6, 7):
                return
            connection.execute("SELECT 1 FROM ledger FOR UPDATE")
            if number == 2:
                connection.execute("ALTER TABLE charge DISABLE TRIGGER charge_append_only")
                from_version_2(_Marks(connection), postgres_schema())
                connection.execute("ALTER TABLE charge ENABLE TRIGGER charge_append_only")
            if number in (2, 3):
                from_version_3(_Marks(connection), postgres_schema())
            if number in (2, 3, 4):
                from_version_4(_Marks(connection), postgres_schema())
            if number in (2, 3, 4, 5):
                from_version_5(_Marks(connection), postgres_schema())
            if number != 7:
                from_version_6(_Marks(connection), postgres_schema())
            from_version_7(_Marks(connection), postgres_schema())
            connection.execute("UPDATE version SET number = %s", (VERSION,))

    def _check(self) -> None:
        with self._transaction("READ COMMITTED") as connection:
            if connection.execute("SELECT to_regclass('hubbub.version')").fetchone() == (None,):
                raise PolicyError(f"there is no ledger in {self.where}. Make one with `hubbub ledger create`.")
            (version,) = connection.execute("SELECT number FROM version").fetchone() or (0,)
            foreign = [name for (name,) in connection.execute(_FOREIGN, (list(_OWN),)).fetchall()]
            shown = [(name, *(connection.execute(f"SHOW {name}".encode()).fetchone() or ("",))) for name in _NEEDED]
            (encoding,) = connection.execute(b"SHOW server_encoding").fetchone() or ("",)
        if encoding != "UTF8":
            raise PolicyError(
                f"the database of the ledger {self.where} keeps text as {encoding}, which cannot hold every question "
                "or name. Use a database whose encoding is UTF8."
            )
        off = [name for name, value in shown if value != "on"]
        if off and not self._read_only:
            raise PolicyError(
                f"the server of the ledger {self.where} runs with {', '.join(off)} off: after a power cut, charges "
                "whose answers were given would be missing. Turn it on, or use another server."
            )
        if foreign and not self._read_only:
            raise untrue(f"tables have rules or triggers that are not its own ({', '.join(foreign)})")
        if version != VERSION:
            raise PolicyError(
                f"the ledger {self.where} has schema version {version}; this hubbub reads version {VERSION}. "
                + ("Update hubbub." if version > VERSION else "Bring it up to date: `hubbub ledger migrate`.")
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        failure = None
        try:
            yield
        except psycopg.Error as error:
            self.close()  # after a failure, what this connection believes is not to be trusted
            lost = error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
            self.unsure, self._committing = self._committing and lost, False
            failure = _unsure(self.where) if self.unsure else _in_words(error, self.where)
        if failure is not None:
            raise_alone(failure)  # psycopg quotes parts of the address, and its errors hold the connection


_INHERITED: list[object] = []
_NEEDED = ("fsync", "full_page_writes")
_SAID = "SET LOCAL synchronous_commit = on; SET LOCAL row_security = off"
"""Of each transaction: it is flushed, and a row that a policy hides is an error, and not left out of what was spent."""

_OWN = tuple(text.split()[2] for text in postgres_schema() if text.startswith("CREATE TRIGGER"))
_FOREIGN = b"""SELECT tgname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE
relnamespace = 'hubbub'::regnamespace AND NOT tgisinternal AND NOT tgname::text = ANY(%s)
UNION SELECT rulename::text FROM pg_rules WHERE schemaname = 'hubbub' ORDER BY 1"""


def _unsure(where: str) -> PolicyError:
    return PolicyError(f"the ledger {where} did not answer whether it recorded this step. {UNSURE}")


_AFTER = "This step was not recorded, so no answer is given."


def _in_words(error: psycopg.Error, where: str) -> HubbubError:
    """A failure of Postgres as a refusal. Its own text names tables and addresses, never rows of the data."""
    match error:
        case psycopg.errors.LockNotAvailable() | psycopg.errors.QueryCanceled():
            return PolicyError(f"the ledger {where} is held by another process for too long. {_AFTER} Try again later.")
        case psycopg.errors.InsufficientPrivilege() | psycopg.errors.ReadOnlySqlTransaction():
            means = "Ask its owner for the right to, on tables without row-level security."
            return PolicyError(f"cannot write to the ledger {where}. {_AFTER} {means}")
        case psycopg.errors.DiskFull():
            return PolicyError(f"no room for the ledger {where}: the disk is full. {_AFTER} Free some space.")
        case psycopg.OperationalError() if error.sqlstate is None:
            return PolicyError(f"cannot reach the ledger {where}. {_AFTER} See to the server and the address.")
        case _:
            said = error.diag.message_primary or type(error).__name__
            return PolicyError(f"the ledger {where} could not be used: {said}. {_AFTER} See to the server.")
