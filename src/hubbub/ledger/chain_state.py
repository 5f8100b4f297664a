"""Where a ledger's chain stands: its keys, the lines that it holds, what its anchor and its witness are told."""

from __future__ import annotations

from hubbub.ledger.anchor import stands, unnamed
from hubbub.ledger.handle import Handle
from hubbub.ledger.hash_chain import now_at
from hubbub.ledger.keys import current_check, epochs_of
from hubbub.ledger.witness import Witnessed

__all__ = ["ChainState"]


class ChainState:
    """What is asked of a chain by those who keep it. Nothing here changes it."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def key_check(self) -> str | None:
        """What the chain's present key is known by; None without a key."""
        with self._handle.reading() as connection:
            return current_check(connection)

    def lines(self) -> int:
        """How many lines the chain has."""
        with self._handle.reading() as connection:
            (last,) = connection.execute("SELECT coalesce(max(serial), 0) FROM journal").fetchone()
        return int(last)

    def keys(self) -> list[bytes | None]:
        """The keys that the chain has had, oldest first, the present one last; None where it had none.

        Raises:
            PolicyError: one before the present one cannot be read.
        """
        with self._handle.reading() as connection:
            return [key for _, key in epochs_of(connection, self._handle.key)]

    def rekeyed_at(self) -> int:
        """The line from which on the present key holds; 0: from the beginning."""
        with self._handle.reading() as connection:
            row = connection.execute("SELECT max(serial) FROM rekeying").fetchone()
        return int(row[0] or 0)

    def testimony(self, day: str | None = None) -> Witnessed | None:
        """The last line before a day began (today, by the ledger's clock), for a witness; None where there was none."""
        with self._handle.reading() as connection:
            day = now_at(connection)[:10] if day is None else day
            row = connection.execute(
                "SELECT serial, hash FROM journal WHERE time < ? ORDER BY serial DESC LIMIT 1", (f"{day}T",)
            ).fetchone()
        return None if row is None else Witnessed(self._handle.id, day, int(row[0]), str(row[1]))

    def holds(self, line: int, digest: str) -> bool:
        """Whether a line with this hash is in the chain."""
        with self._handle.reading() as connection:
            return stands(connection, (line, digest))

    def anchored(self) -> tuple[int, str] | None:
        """The line and hash that the anchor names, where one is named and there.

        Raises:
            PolicyError: it is not an anchor of this ledger; or the ledger has one, and none was named.
        """
        if self._handle.anchor is None and self._handle.has_anchor():
            raise unnamed(self._handle.where)
        return self._handle.anchored()
