"""An open ledger: where it is, its transactions, and the look-ups that both its halves share."""

from __future__ import annotations

import hmac
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hubbub.addresses import is_address, looks_like_connection, read_address
from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.books import Books, known_budget
from hubbub.ledger.budget import Budget
from hubbub.ledger.database import Database, Pull, Work
from hubbub.ledger.files import create_file
from hubbub.ledger.journal import Connection, Writer

__all__ = ["Handle", "Pull", "Store", "checked_text", "first_row", "open_store"]


class Store(Protocol):
    """A database that a ledger lives in. One contract suite holds for every one of them."""

    where: str

    def writing(self) -> Any:
        """A context: a transaction that excludes other writers; durable when it ends."""

    def together(self, charge: str, text: Callable[[], str], work: Work) -> bool:
        """Record a charge, with those of others who wait; whether `work` was called for it here."""

    def reading(self) -> Any:
        """A context: a transaction that sees one state."""

    def close(self) -> None:
        """Let go of the connection; it opens again when needed."""

    def integrity(self) -> str:
        """'ok', or what is wrong below the rows."""

    def backup(self, target: Path) -> None:
        """Write one whole state to a new file."""


def open_store(
    place: str | PathLike[str], *, create: bool, patience: float, read_only: bool, key: bytes | None
) -> tuple[Store, Path | None]:
    """The database at `place`, a file, a Postgres address or `env:NAME`; made if missing and wanted."""

    def fill(connection: Connection) -> None:
        first_row(connection, key)

    if is_address(place):
        from hubbub.ledger.postgres import PostgresStore

        return PostgresStore(
            read_address(str(place)), patience=patience, read_only=read_only, fill=fill if create else None
        ), None
    if isinstance(place, str) and looks_like_connection(place) and not os.path.exists(place):
        raise PolicyError(
            "the place of the ledger looks like an address or settings of a connection, and is not shown. Name a file, "
            "postgresql://user@host/database, or env:NAME, the variable that holds the address."
        )
    # By every path, symbolic links included, one file is one ledger, with one write-ahead log beside it.
    file = Path(os.path.realpath(place))
    if create and not file.is_file():
        create_file(file, fill)
    return Database(file, patience=patience, read_only=read_only), file


def first_row(connection: Connection, key: bytes | None) -> None:
    """The ledger's own row: a random id; a secret for fingerprints; a proof of the chain's key, where there is one."""
    name = uuid.uuid4().hex
    check = None if key is None else _key_check(key, name)
    Writer(connection, key).append("ledger", name, uuid.uuid4().hex + uuid.uuid4().hex, check)


def _key_check(key: bytes, name: str) -> str:
    return hmac.new(key, f"hubbub ledger {name}".encode(), "sha256").hexdigest()


class Handle:
    """A ledger that is open: its store and its key."""

    path: Path | None

    def __init__(
        self, store: Store, path: Path | None, *, key: bytes | None = None, max_failures: int = 3, keyless: bool = False
    ) -> None:
        self._database = store
        self._key = key
        self._max_failures = max_failures
        self._books = Books()
        self._taken: set[str] = set()  # the charges that were made here and are not drawn yet
        self._settled = 0  # up to this line of the journal, no charge is under way
        self._looked = 0.0  # when dead processes were last looked for
        self.path = path
        self.where = store.where
        self._check_key(keyless)

    def close(self) -> None:
        """Close the store; whatever was charged stays."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Ledger.in_memory()" if self.where == "in memory" else f"Ledger({self.where!r})"

    @property
    def id(self) -> str:
        """The random id the ledger got when it was created."""
        with self._reading() as connection:
            return str(connection.execute("SELECT id FROM ledger").fetchone()[0])

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        with self._database.writing() as connection:
            writer = Writer(connection, self._key)
            yield writer
            writer.finish()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._database.reading() as connection:
            yield connection

    def _check_key(self, keyless: bool) -> None:
        with self._reading() as connection:
            row = connection.execute("SELECT id, key_check FROM ledger").fetchone()
        if row is None:
            raise PolicyError(f"the ledger {self.where} has no first row: it is damaged. Restore a backup.")
        name, check = row
        if check is None and self._key is not None:
            raise PolicyError(f"the ledger {self.where} was created without a key, and a chain cannot get one later.")
        if check is not None and self._key is None and not keyless:
            raise PolicyError(
                f"the ledger {self.where} is keyed: name its key file (`key_file` in the policy's [ledger])."
            )
        if check is not None and self._key is not None and not hmac.compare_digest(_key_check(self._key, name), check):
            raise PolicyError(f"the key is not the one that the ledger {self.where} was created with.")

    def _budget(self, connection: Connection, space: str) -> Budget:
        """The budget of a space as it is now, or a PolicyError."""
        found = known_budget(connection, space)
        if found is None:
            raise PolicyError(
                f"the ledger {self.where} has no budget for the unit space {space!r}. "
                "Open it with one: `hubbub ledger create` adds those of the policy file."
            )
        return found


def checked_text(text: str, what: str) -> str:
    """`text`, or a QueryError where it is no valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the {what} is not valid Unicode: character {error.start + 1} is half of a surrogate pair."
        ) from None
    return text
