"""The log of the service: who did what, when; a hash chain.

    hash_n = H(hash_(n-1), n, time_n, who_n, act_n, about_n)      hash_0 = H of the store's random id

H is SHA-256 over a JSON text, or HMAC-SHA-256 where the ledger's chain has a key: then nobody without it makes a chain
that fits. Without a key the chain shows damage, and a copy of its head shows a log that was rewritten or cut. Where the
ledger's chain got another key, later lines bear the new one. A line holds names, ids, amounts and reasons: never a
token, a passphrase, a question's text, or a value.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Line", "LogCheck", "append", "lines", "verify"]

Line = dict[str, Any]


@dataclass(frozen=True)
class LogCheck:
    """What a look at the whole log found. head: the hash of its last line."""

    lines: int
    head: str
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def append(
    connection: sqlite3.Connection, key: bytes | None, time: str, who: str, act: str, about: Mapping[str, Any]
) -> None:
    """Add a line, in the transaction of what it tells."""
    serial, before = _head(connection, key)
    text = json.dumps(about, sort_keys=True, ensure_ascii=True)
    serial += 1
    link = _link(key, before, [serial, time, who, act, text])
    connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", (serial, time, who, act, text, link))


def lines(
    connection: sqlite3.Connection,
    *,
    after: int = 0,
    most: int = 1000,
    act: str | None = None,
    before: int | None = None,
) -> list[Line]:
    """Lines after one, oldest first; before one, newest first; of one act."""
    wanted = "SELECT * FROM log WHERE serial > ? AND coalesce(act = ?, 1) ORDER BY serial LIMIT ?"
    if before is not None:
        after, wanted = before, wanted.replace(">", "<").replace("ORDER BY serial", "ORDER BY serial DESC")
    rows = connection.execute(wanted, (after, act, most)).fetchall()
    return [
        {"serial": serial, "time": time, "who": who, "act": act, "about": json.loads(about), "hash": digest}
        for serial, time, who, act, about, digest in rows
    ]


def verify(connection: sqlite3.Connection, keys: Sequence[bytes | None], *, head: str | None = None) -> LogCheck:
    """Every link from the first on. keys: those that the ledger's chain has had, oldest first: lines bear them in that
    order. head: one that was kept elsewhere; it must be in the chain.
    """
    before, expected, seen, problems, now = "", 1, set[str](), list[str](), 0
    for serial, *row, digest in connection.execute("SELECT * FROM log ORDER BY serial"):
        if serial != expected:
            problems.append(f"line {expected} of the log is missing")
        links = [_link(key, before or _start(connection, key), [serial, *row]) for key in keys[now:]]
        fitting = [number for number, link in enumerate(links) if hmac.compare_digest(link, str(digest))]
        if not fitting:
            problems.append(f"line {serial} of the log is not what was written")
        now += fitting[0] if fitting else 0
        before = str(digest)
        expected = serial + 1
        seen.add(before)
    if head is not None and head not in seen:
        problems.append("the log does not hold the line whose hash was kept elsewhere: it was rewritten or cut")
    return LogCheck(expected - 1, before or _start(connection, keys[-1]), tuple(problems))


def _head(connection: sqlite3.Connection, key: bytes | None) -> tuple[int, str]:
    row = connection.execute("SELECT serial, hash FROM log ORDER BY serial DESC LIMIT 1").fetchone()
    return (0, _start(connection, key)) if row is None else (row[0], row[1])


def _start(connection: sqlite3.Connection, key: bytes | None) -> str:
    return _link(key, "hubbub service log 1", list(_about(connection)))


def _about(connection: sqlite3.Connection) -> Iterator[str]:
    yield connection.execute("SELECT id FROM about").fetchone()[0]


def _link(key: bytes | None, before: str, row: list[Any]) -> str:
    text = json.dumps([before, *row], ensure_ascii=True).encode()
    return hashlib.sha256(text).hexdigest() if key is None else hmac.new(key, text, hashlib.sha256).hexdigest()
