"""An open ledger: where it is, its transactions, and the look-ups that all its parts share."""

from __future__ import annotations

import hmac
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, Protocol

from hubbub.addresses import is_address, looks_like_connection, read_address
from hubbub.errors import PolicyError
from hubbub.ledger import anchor
from hubbub.ledger.books import known_budget
from hubbub.ledger.budget import Budget
from hubbub.ledger.database import Database
from hubbub.ledger.files import create_file
from hubbub.ledger.hash_chain import Connection, Head, Writer, head_of
from hubbub.ledger.keys import Epochs, check_of, current_check, epochs_of, wrapped
from hubbub.ledger.proofs import Proofs
from hubbub.ledger.rules import Rules

__all__ = [
    "Handle",
    "Store",
    "anchored_beyond",
    "first_row",
    "open_store",
]


class Store(Protocol):
    """A database that a ledger lives in. One contract suite holds for every one of them."""

    where: str
    committed: Callable[[], None] | None
    proofs: Proofs
    unsure: bool
    """Whether the last transaction failed in such a way that it may have been committed all the same."""

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

    def forget(self) -> None:
        """See that what was deleted is not found in the file or its log any more, as far as the store can."""


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
    if create and not os.path.isfile(file):
        create_file(file, fill)
    return Database(file, patience=patience, read_only=read_only), file


def first_row(connection: Connection, key: bytes | None) -> None:
    """The ledger's own row: a random id; a secret for fingerprints; a proof of the chain's key, where there is one."""
    name = uuid.uuid4().hex
    check = None if key is None else check_of(key, name)
    Writer(connection, key).append("ledger", name, uuid.uuid4().hex + uuid.uuid4().hex, check)


def anchored_beyond(where: str, place: Path, line: int, head: Head) -> PolicyError:
    """The refusal of a ledger that does not hold what its anchor names."""
    return PolicyError(
        f"the ledger {where} does not hold line {line} that its anchor {place} names; it ends with line {head.serial}. "
        "An older copy was put back, or its end was cut off or rewritten: what was spent since would be forgotten, so "
        "no answer is given. Put the newest copy back. If it is lost, a steward decides what the people in the data "
        "are told, and accepts this one with `hubbub ledger anchor --accept-older`."
    )


class Handle:
    """A ledger that is open: its store and its key, and its transactions. What its parts hold together."""

    path: Path | None

    def __init__(
        self,
        store: Store,
        path: Path | None,
        *,
        key: bytes | None = None,
        keyless: bool = False,
        anchor_at: Path | None = None,
        patience: float = 30.0,
        rules: Rules = Rules(),  # noqa: B008  (a frozen value)
    ) -> None:
        self.store = store
        self.key = key
        self.rules = rules
        self.path = path
        self.where = store.where
        self.patience = patience
        self.anchor = anchor_at
        self._known: Head | None = None  # the last head that was seen: the chain goes on from there
        self._written: Head | None = None  # that of the transaction under way
        self._compares = True  # whether it may only go on from what the anchor names
        self.keys: Epochs = ((0, key),)
        self.id: Final = self._checked_id(keyless)
        store.committed = self._after_commit
        store.proofs.keys, store.proofs.has_key = lambda: self.keys, self._has_key

    @contextmanager
    def writing(self, *, anchored: bool = True) -> Iterator[Writer]:
        """A write transaction. anchored: only in a ledger that holds what its anchor names."""
        with self.store.writing() as connection:
            writer = self._writer(connection, anchored=anchored)
            yield writer
            writer.finish()
            self._written = writer.head

    def _writer(self, connection: Connection, *, anchored: bool = True) -> Writer:
        """A writer that goes on from the chain as it was last seen, here and by its anchor.

        The anchor is read under the lock of the writer, and moves after a commit alone. So it never names a line that
        is still to come, and an older copy that is put back while the ledger is in use is found before the next
        line: after it, the anchor would move on with the older copy.

        Raises:
            PolicyError: the chain does not hold what was seen of it: an older copy was put in its place; or there is
                no anchor, or it was not named.
        """
        writer = Writer(connection, self.key)
        known, self._written, self._compares = self._known, None, anchored
        if known is not None and known != writer.head and not anchor.stands(connection, (known.serial, known.hash)):
            raise PolicyError(
                f"the ledger {self.where} no longer holds line {known.serial}, which it held before: an older copy was "
                "put in its place while it was in use, and what was spent since would be forgotten. Put the newest "
                "copy back. No answer is given."
            )
        if known != writer.head and not self._has_key(writer.connection):
            raise PolicyError(
                f"the ledger {self.where} got another key while it was open here: nothing was recorded, and no answer "
                "is given. Start this program again, with the new key file."
            )
        if anchored and self.anchor is None and known != writer.head and anchor.is_anchored(connection):
            raise anchor.unnamed(self.where)  # it got one while it was open here
        if anchored and self.anchor is not None:
            at = anchor.read(self.anchor, self.id, self.keys)
            if at is None:
                raise PolicyError(anchor.missing(self.anchor))
            if at != (writer.head.serial, writer.head.hash) and not anchor.stands(connection, at):
                raise anchored_beyond(self.where, self.anchor, at[0], writer.head)
        self._known = writer.head
        return writer

    def _after_commit(self) -> None:
        """Move the anchor, before anybody is told of what was committed."""
        if self._written is not None:
            self._known = self._written
            self.move_anchor(self._written, new=False)

    def anchored(self) -> tuple[int, str] | None:
        """The line and hash that the anchor names; None without one."""
        return None if self.anchor is None else anchor.read(self.anchor, self.id, self.keys)

    def move_anchor(self, head: Head, *, back: bool = False, new: bool = True, following: bytes | None = None) -> None:
        """Move the anchor to `head`, where there is one. back: also back. new: make one that is missing. following: the
        key that comes next.

        Raises:
            PolicyError: it cannot be written; or it names a line that this ledger lacks, since another copy was written
                to at the same time.
        """
        if self.anchor is not None:
            how: dict[str, Any] = {"patience": self.patience, "back": back, "new": new, "following": following}
            beyond = anchor.write(self.anchor, self.id, self.keys, head, **how)
            if beyond is not None and beyond != (head.serial, head.hash) and self._compares:
                with self.reading() as connection:
                    if not anchor.stands(connection, beyond):
                        raise anchored_beyond(self.where, self.anchor, beyond[0], head)

    def has_anchor(self) -> bool:
        with self.reading() as connection:
            return anchor.is_anchored(connection)

    def note_anchor(self, author: str) -> None:
        """Record that the ledger has an anchor, unless that is known."""
        if self.has_anchor():
            return
        with self.writing() as writer:
            if not anchor.is_anchored(writer.connection):
                writer.append("anchoring", 1, author)

    def check_anchor(self, *, make: bool = False) -> None:
        """See that the ledger holds the line that its anchor names. make: one that is missing is made.

        Raises:
            PolicyError: it does not: an older copy of the ledger was put back; or there is no anchor.
        """
        if self.anchor is None:
            return
        with self.reading() as connection:
            # It may have been moved since this transaction began; then the next one sees the line.
            anchored = anchor.read(self.anchor, self.id, self.keys)
            head, fits = head_of(connection), anchored is not None and anchor.stands(connection, anchored)
        if anchored is None:
            if not make:
                raise PolicyError(anchor.missing(self.anchor))
            self.move_anchor(head)
        elif not fits:
            with self.reading() as connection:
                head, fits = head_of(connection), anchor.stands(connection, anchored)
            if not fits:
                raise anchored_beyond(self.where, self.anchor, anchored[0], head)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.store.reading() as connection:
            yield connection

    def _checked_id(self, keyless: bool) -> str:
        """The random id that the ledger got when it was created. From here on its head is known; its key is right."""
        with self.reading() as connection:
            row = connection.execute("SELECT id FROM ledger").fetchone()
            head = None if keyless else head_of(connection)  # to look at a damaged one, it need not be read
            if row is None:
                raise PolicyError(f"the ledger {self.where} has no first row: it is damaged. Restore a backup.")
            check, (name,) = current_check(connection), row
            if check is None and self.key is not None:
                raise PolicyError(
                    f"the ledger {self.where} has no key, and one was named. `hubbub ledger rekey` gives it one."
                )
            if check is not None and self.key is None and not keyless:
                raise PolicyError(
                    f"the ledger {self.where} is keyed: name its key file (`key_file` in the policy's [ledger])."
                )
            if check is not None and self.key is not None and not hmac.compare_digest(check_of(self.key, name), check):
                raise PolicyError(
                    f"the key is not that of the ledger {self.where}. If its key was being changed, `hubbub ledger "
                    "rekey` ends that."
                )
            if self.key is not None:
                with suppress(PolicyError):  # what was changed there, `verify` says
                    self.keys = epochs_of(connection, self.key)
        self._known = head
        return str(name)

    def _has_key(self, connection: Connection) -> bool:
        check = current_check(connection)
        return check == (None if self.key is None else check_of(self.key, self.id))

    def rekey(self, new: bytes, author: str) -> int:
        """Give the chain another key, or its first one, in one transaction: the line from which on it holds.

        Raises PolicyError where it cannot be recorded.
        """
        before = self.key, self.keys
        try:
            with self.writing() as writer:
                self.move_anchor(writer.head, new=False, following=new)
                hidden = wrapped(self.key, new, writer.head.hash)
                line = writer.append("rekeying", check_of(new, self.id), hidden, author)
                self.key, self.keys = new, (*self.keys, (line, new))  # the anchor moves with the commit, under it
        except BaseException:
            with self.reading() as connection:
                if current_check(connection) != check_of(new, self.id):
                    self.key, self.keys = before
            raise
        return line

    def budget(self, connection: Connection, space: str) -> Budget:
        """The budget of a space as it is now, or a PolicyError."""
        budget = known_budget(connection, space)
        if budget is None:
            raise PolicyError(
                f"the ledger {self.where} has no budget for the unit space {space!r}. "
                "Open it with one: `hubbub ledger create` adds those of the policy file."
            )
        return budget
