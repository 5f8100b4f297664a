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
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from hubbub.errors import InternalError, PolicyError
from hubbub.ledger.schema import COLUMNS
from hubbub.ledger.wording import WORDS, separated

__all__ = [
    "START",
    "Connection",
    "Head",
    "Posting",
    "Rows",
    "Value",
    "Writer",
    "check_clock",
    "compact",
    "head_of",
    "link",
    "linked_row",
    "now",
    "now_at",
    "untrue",
]

Value: TypeAlias = str | int | None


class Rows(Protocol):
    """What a statement found."""

    @property
    def rowcount(self) -> int:
        """How many rows were written."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""


class Connection(Protocol):
    """What the ledger asks of a database: statements with `?` for their values."""

    def execute(self, sql: str, parameters: Sequence[Value] = ..., /) -> Rows:
        """Run one statement."""


def now_at(connection: Connection) -> str:
    """The time of whoever keeps the ledger: a server's own, so that machines whose clocks differ have one; or `now`."""
    clock: Callable[[], str] = getattr(connection, "now", now)
    return clock()


class Head(NamedTuple):
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
    return _link(before, time, kind, compact(row), key)


def _link(before: str, time: str, kind: str, row: str, key: bytes | None) -> str:
    text = f'["{before}","{time}","{kind}",{row}]'.encode()
    return hashlib.sha256(text).hexdigest() if key is None else hmac.new(key, text, "sha256").hexdigest()


def linked_row(kind: str, row: Sequence[Value]) -> Sequence[Value]:
    """A row as its link holds it: a charge without a purpose as it was before there were any.

    What follows in a charge's link is a list, and a purpose is none, so that no two charges have one text.
    """
    return row[:-1] if kind == "charge" and row[-1] is None else row


def now() -> str:
    """The clock, in UTC: ISO 8601 with microseconds, so that texts sort as times do."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_INSERTS = {
    table: f"INSERT INTO {table} (serial, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})"
    for table, columns in COLUMNS.items()
}
_INSERTS["charge"] = _INSERTS["charge"].replace(") VALUES (", ", sums) VALUES (?, ")
_PLACES = {table: COLUMNS[table].index(column) for table, column in WORDS.items()}
_MOVE = "INSERT INTO account VALUES {} ON CONFLICT (unit_space, name) DO UPDATE SET charge = excluded.charge"

Posting: TypeAlias = tuple[str, str, str, str, str, int]
"""An account and its sum after a charge: unit space, name, epsilon, rho, delta, impure."""

compact = json.JSONEncoder(separators=(",", ":")).encode


_DAY: Final = 86_400
_Clock: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else None


def _running() -> float:
    """Seconds of a clock that nobody sets."""
    return time.monotonic() if _Clock is None else time.clock_gettime(_Clock)


_began = time.time() - _running()


def untrue(what: str) -> PolicyError:
    """The refusal of a ledger whose rows are not those that it wrote."""
    return PolicyError(
        f"the ledger's {what}: it is damaged, or somebody else wrote into it. No answer is given; restore a backup "
        "that holds every charge. `hubbub ledger verify` lists what is wrong."
    )


def check_clock() -> None:
    """Refuse to write once the clock was set more than a day forward while this program ran.

    Times are monotone: an entry in a wrong future stays the ledger's time for ever, and every grant that ends before it
    is over.

    Raises:
        PolicyError: it was.
    """
    ahead = time.time() - _running() - _began
    if ahead > _DAY:
        raise PolicyError(
            f"the clock was set forward by {ahead / _DAY:.1f} days while this program ran, and the ledger's time never "
            "goes back: what is recorded now would end every grant until then. Set the clock right; if it is right, "
            "start the program anew. Nothing was recorded."
        )


def _check_server(at: str) -> None:
    """Refuse to write by a server's clock that is more than a day ahead of this machine's: as in `check_clock`."""
    ahead = (datetime.fromisoformat(at) - datetime.now(UTC)).total_seconds()
    if ahead > _DAY:
        raise PolicyError(
            f"the clock of the ledger's server is {ahead / _DAY:.1f} days ahead of this machine's, and the ledger's "
            "time never goes back: what is recorded now would end every grant until then. Set the one that is wrong "
            "right. Nothing was recorded."
        )


class Writer:
    """One write transaction: appends rows, each with its link. `time` is that of all of them.

    Whoever opens the transaction calls `finish` before it commits.
    """

    def __init__(self, connection: Connection, key: bytes | None) -> None:
        self.connection = connection
        self._key = key
        self._moved: dict[tuple[str, str], int] = {}
        check_clock()
        self.head = head_of(connection)
        at = now_at(connection)
        if hasattr(connection, "now"):
            _check_server(at)
        self.time = max(at, self.head.time)

    def append(self, kind: str, *row: Value) -> int:
        """Insert a row of table `kind`, and its link; the row's serial number."""
        if len(row) != len(COLUMNS[kind]) or kind == "charge":
            raise InternalError(f"a row of {kind} with {len(row)} values")
        kept = self._without_words(kind, row)
        self._write(kind, _INSERTS[kind], (self.head.serial + 1, *kept))
        return self._linked(kind, compact(kept))

    def _write(self, table: str, statement: str, values: Sequence[Value], rows: int = 1) -> None:
        """Write so many rows, and see that they were: a rule or trigger of somebody else's may drop them in silence."""
        if self.connection.execute(statement, values).rowcount != rows:
            raise untrue(f"database did not write what it was given for the table {table!r}")

    def _without_words(self, kind: str, row: Sequence[Value]) -> Sequence[Value]:
        """The row of the next line as the chain holds it; its words are kept beside it."""
        at = _PLACES.get(kind)
        if at is None:
            return row
        kept, salt, words = separated(row, at)
        self._write("wording", "INSERT INTO wording VALUES (?, ?, ?)", (self.head.serial + 1, salt, words))
        return kept

    def append_charge(self, row: Sequence[Value], postings: Sequence[Posting]) -> int:
        """Insert a charge with the sums of the accounts that pay for it, and its link; its serial number."""
        if len(row) != len(COLUMNS["charge"]):
            raise InternalError(f"a charge with {len(row)} values")
        serial = self.head.serial + 1
        sums = compact(postings)
        row = self._without_words("charge", row)
        self._write("charge", _INSERTS["charge"], (serial, *row, sums))
        for space, account, *_ in postings:
            self._moved[space, account] = serial
        return self._linked("charge", f"{compact(linked_row('charge', row))[:-1]},{sums[1:]}")

    def _linked(self, kind: str, row: str) -> int:
        serial = self.head.serial + 1
        digest = _link(self.head.hash, self.time, kind, row, self._key)
        self._write("journal", "INSERT INTO journal VALUES (?, ?, ?, ?)", (serial, self.time, kind, digest))
        self.head = Head(serial, self.time, digest)
        return serial

    def finish(self) -> None:
        """Say where the accounts' sums are now found."""
        moved, self._moved = list(self._moved.items()), {}
        for start in range(0, len(moved), 100):
            some = moved[start : start + 100]
            values = [value for (space, account), serial in some for value in (space, account, serial)]
            self._write("account", _MOVE.format(", ".join(["(?, ?, ?)"] * len(some))), values, len(some))
