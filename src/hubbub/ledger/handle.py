"""An open ledger: where it is, its transactions, and the look-ups that both its halves share."""

from __future__ import annotations

import hmac
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.accounts import (
    EVERYONE,
    Total,
    analyst_account,
    block_account,
    read_amount,
    table_account,
)
from hubbub.ledger.budget import Budget
from hubbub.ledger.database import Database, create_file
from hubbub.ledger.journal import Connection, Writer
from hubbub.ledger.records import Allowance

__all__ = [
    "Handle",
    "Store",
    "accounts_of",
    "checked_text",
    "is_address",
    "latest_allowances",
    "open_store",
    "total_of",
]

CEILING = "ceiling"


class Store(Protocol):
    """A database that a ledger lives in. One contract suite holds for every one of them."""

    where: str

    def writing(self) -> Any:
        """A context: a transaction that excludes other writers; durable when it ends."""

    def reading(self) -> Any:
        """A context: a transaction that sees one state."""

    def close(self) -> None:
        """Let go of the connection; it opens again when needed."""

    def integrity(self) -> str:
        """'ok', or what is wrong below the rows."""

    def backup(self, target: Path) -> None:
        """Write one whole state to a new file."""


def is_address(place: object) -> bool:
    """Whether a ledger's place is a Postgres address rather than a file."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def open_store(
    place: str | PathLike[str], *, create: bool, patience: float, read_only: bool, key: bytes | None
) -> tuple[Store, Path | None]:
    """The database at `place`, a file or a Postgres address; made if missing and wanted."""

    def fill(connection: Connection) -> None:
        first_row(connection, key)

    if is_address(place):
        from hubbub.ledger.postgres import PostgresStore

        return PostgresStore(str(place), patience=patience, read_only=read_only, fill=fill if create else None), None
    file = Path(place).absolute()
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
            yield Writer(connection, self._key)

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


def known_budget(connection: Connection, space: str) -> Budget | None:
    """The budget of a space: as created, or as last raised."""
    row = connection.execute(
        "SELECT epsilon, delta, delta_threshold FROM unit_space WHERE name = ?", (space,)
    ).fetchone()
    if row is None:
        return None
    raised = latest_allowances(connection, space, [CEILING]).get(CEILING)
    if raised is None or raised.epsilon is None:
        return _budget_of(*row)
    return Budget(raised.epsilon, _budget_of(*row).delta, delta_threshold=_budget_of(*row).delta_threshold or None)


@lru_cache(maxsize=64)
def _budget_of(epsilon: str, delta: str | None, threshold: str | None) -> Budget:
    if delta is None or threshold is None:
        return Budget(read_amount(epsilon))
    return Budget(read_amount(epsilon), read_amount(delta), delta_threshold=read_amount(threshold))


def latest_allowances(connection: Connection, space: str, accounts: list[str]) -> Mapping[str, Allowance]:
    """What was last said about each of `accounts`, where anything was."""
    marks = ", ".join("?" * len(accounts))
    found = connection.execute(
        "SELECT account, epsilon, expires, author, reason, journal.time, allowance.serial FROM allowance "
        "JOIN journal ON journal.serial = allowance.serial WHERE unit_space = ? AND "
        f"account IN ({marks}) ORDER BY allowance.serial",
        (space, *accounts),
    ).fetchall()
    return {
        account: Allowance(space, account, None if epsilon is None else read_amount(epsilon), expires, *rest)
        for account, epsilon, expires, *rest in found
    }


def total_of(connection: Connection, space: str, account: str) -> Total:
    """The sum of what an account has paid."""
    row = connection.execute(
        "SELECT epsilon, rho, delta, impure FROM posting WHERE unit_space = ? AND account = ? "
        "ORDER BY charge DESC LIMIT 1",
        (space, account),
    ).fetchone()
    if row is None:
        return Total()
    return Total(read_amount(row[0]), read_amount(row[1]), read_amount(row[2]), int(row[3]))


def accounts_of(kind: str, dataset: str, analyst: str, block: str | None) -> tuple[str, ...]:
    """The accounts that pay for a charge of this kind."""
    match kind:
        case "question" if block is None:
            return (EVERYONE, table_account(dataset), analyst_account(analyst))
        case "question":
            return (block_account(str(block)), table_account(dataset))
        case "reading":
            return (analyst_account(analyst),)
        case _:
            return (EVERYONE, analyst_account(analyst))


def checked_text(text: str, what: str) -> str:
    """`text`, or a QueryError where it is no valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the {what} is not valid Unicode: character {error.start + 1} is half of a surrogate pair."
        ) from None
    return text
