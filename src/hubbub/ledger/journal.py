"""The journal: every row of a ledger is a link of one hash chain.

    hash_n = H(hash_(n-1), time_n, kind_n, row_n)      hash_0 = H of nothing but the chain's name

H is SHA-256 over a JSON text, or HMAC-SHA-256 where the steward holds a key. Without a key the chain shows damage and
careless edits, and any two copies of it can be compared: whoever kept a receipt, which holds the head of that moment,
finds a ledger that was rewritten or restored to an earlier state. With a key nobody else can make a chain that fits.

Times are monotone: a clock that is set back does not reorder the history, nor bring an expired grant back to life.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from hubbub.errors import InternalError
from hubbub.ledger.schema import COLUMNS

__all__ = ["START", "Connection", "Head", "Rows", "Value", "Writer", "head_of", "link", "now"]

Value: TypeAlias = str | int | None


class Rows(Protocol):
    """What a statement found."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""


class Connection(Protocol):
    """What the ledger asks of a database: statements with `?` for their values."""

    def execute(self, sql: str, parameters: Sequence[Value] = ..., /) -> Rows:
        """Run one statement."""


@dataclass(frozen=True)
class Head:
    """The last link of the chain."""

    serial: int
    time: str
    hash: str


START = Head(0, "", hashlib.sha256(b"hubbub ledger").hexdigest())


def head_of(connection: Connection) -> Head:
    """The last link, or the start of an empty chain."""
    row = connection.execute("SELECT serial, time, hash FROM journal ORDER BY serial DESC LIMIT 1").fetchone()
    return START if row is None else Head(int(row[0]), row[1], row[2])


def link(before: str, time: str, kind: str, row: Sequence[Value | Sequence[Value]], key: bytes | None) -> str:
    """The hash of one link."""
    text = json.dumps([before, time, kind, row], separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest() if key is None else hmac.new(key, text, "sha256").hexdigest()


def now() -> str:
    """The clock, in UTC: ISO 8601 with microseconds, so that texts sort as times do."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_INSERTS = {
    table: f"INSERT INTO {table} (serial, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})"
    for table, columns in COLUMNS.items()
}


class Writer:
    """One write transaction: appends rows, each with its link. `time` is that of all of them."""

    def __init__(self, connection: Connection, key: bytes | None) -> None:
        self.connection = connection
        self._key = key
        self.head = head_of(connection)
        self.time = max(now(), self.head.time)

    def append(self, kind: str, *row: Value, postings: Iterable[Sequence[Value]] = ()) -> int:
        """Insert a row of table `kind`, and its link; the row's serial number.

        postings: rows of `posting` that belong to a charge, without the charge's number.
        """
        if len(row) != len(COLUMNS[kind]):
            raise InternalError(f"a row of {kind} with {len(row)} values")
        serial = self.head.serial + 1
        self.connection.execute(_INSERTS[kind], (serial, *row))
        hashed: list[Value | Sequence[Value]] = [*row]
        for space, account, *sums in postings:
            self.connection.execute("INSERT INTO posting VALUES (?, ?, ?, ?, ?, ?, ?)", (space, account, serial, *sums))
            hashed.append([space, account, *sums])
        digest = link(self.head.hash, self.time, kind, hashed, self._key)
        self.connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (serial, self.time, kind, digest))
        self.head = Head(serial, self.time, digest)
        return serial
