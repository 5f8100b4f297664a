"""People who come from a backup: nobody gets in by what the backup knows.

Whoever left, and whose token was revoked, after the backup was made is still there in it. So every session, link and
token of it ends, and every passphrase and bound account is forgotten, whatever else the ledger says; whoever keeps the
machine makes new links for those who are still to come (`hubbub person reset NAME`). Names, roles, the log and what was
decided stay.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from hubbub.service.people.store import Store

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["let_nobody_in"]


def let_nobody_in(file: Path, key: bytes | None) -> None:
    """End everything by which somebody could get in, in one transaction with its line of the log.

    Raises PolicyError where the file is not one of people.
    """
    with closing(Store(file, key=key)) as store:
        with store.writing() as write:
            write("DELETE FROM session")
            write("DELETE FROM link")
            write("UPDATE token SET ended = ? WHERE ended IS NULL", write.time)
            write("UPDATE person SET passphrase = NULL")
            write("DELETE FROM subject")
            write.note("hubbub", "restored")
        store.settle()
