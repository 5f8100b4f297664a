"""An anchor: the head of the chain, kept in a file of its own, outside the ledger.

A prefix of a chain is a chain: whoever puts an older copy of a ledger back, or cuts off its end, leaves one that fits
link by link, with a key or without. What tells is a note of a later head, kept where the ledger's file is not. The
anchor is such a note: written after each commit and before anybody is told of it, and compared when the ledger is
opened, and before each line that is added.

It protects against whoever can write the ledger and not the anchor: a restored backup, a lost log, a disk put back.
Whoever can write both can put both back; under a key he needs an old copy of the anchor for it, because the anchor
bears an HMAC. So it belongs on another disk, or to another user.
"""

from __future__ import annotations

import hmac
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hubbub.errors import PolicyError
from hubbub.ledger.files import flush_folder, locked_in_time
from hubbub.ledger.hash_chain import Connection, Head
from hubbub.ledger.keys import Epochs

__all__ = ["ANCHOR", "is_anchored", "missing", "read", "stands", "unnamed", "write"]

ANCHOR: Final = "the anchor"
"""What it is called among the heads that `verify` looks for."""


def read(path: Path, name: str, keys: Epochs) -> tuple[int, str] | None:
    """The line and hash that an anchor holds for the ledger with the id `name`; None where there is no file.

    keys: of the chain, of which the present one is asked for.

    Raises:
        PolicyError: it cannot be read, is none, is another ledger's, or was not written with this key.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not text"
        raise PolicyError(f"cannot read the anchor {path} of the ledger: {said}.") from None
    try:
        written = json.loads(text)
        whose, serial, digest = written["ledger"], written["line"], written["hash"]
        macs = (written["mac"], written.get("next"))
        texts = all(isinstance(part, str) and part.isascii() for part in (whose, digest, *map(str, macs)))
        fits = texts and type(serial) is int and 0 <= serial < 2**63
    except (ValueError, TypeError, KeyError, RecursionError):
        fits = False
    if not fits:
        raise PolicyError(f"{path} is not an anchor of a ledger. See who wrote to it.")
    if whose != name:
        raise PolicyError(
            f"the anchor {path} is another ledger's. If this ledger was made anew in its place, what was spent before "
            "is forgotten: put the old one back. If not, name another anchor."
        )
    key = keys[-1][1]
    if key is not None and not any(hmac.compare_digest(str(mac), _mac(key, name, serial, digest)) for mac in macs):
        raise PolicyError(f"the anchor {path} was not written with the ledger's key: somebody else wrote to it.")
    return serial, digest


def stands(connection: Connection, anchored: tuple[int, str]) -> bool:
    """Whether the anchored line is in the chain."""
    row = connection.execute("SELECT hash FROM journal WHERE serial = ?", (anchored[0],)).fetchone()
    return row is not None and row[0] == anchored[1]


def is_anchored(connection: Connection) -> bool:
    """Whether the ledger has an anchor, by its own word: the last one counts."""
    row = connection.execute("SELECT kept FROM anchoring ORDER BY serial DESC LIMIT 1").fetchone()
    return row is not None and bool(row[0])


def unnamed(where: str) -> PolicyError:
    """The refusal of a ledger that has an anchor, and is opened without it."""
    return PolicyError(
        f"the ledger {where} has an anchor, and was opened without it, so that an older copy put in its place would "
        "not be found. Name it: `anchor` in the policy's [ledger], anchor= in Python. To have none any more, a "
        "steward says so: `hubbub ledger anchor --remove`."
    )


def write(
    path: Path,
    name: str,
    keys: Epochs,
    head: Head,
    *,
    patience: float,
    back: bool = False,
    new: bool = True,
    following: bytes | None = None,
) -> tuple[int, str] | None:
    """Move the anchor to `head`, durably, unless it is there or beyond: then what it names.

    back: move it back too, as a steward may. new: make one that is missing. following: the key that the chain is about
    to get, under which it holds too.

    Raises:
        PolicyError: it cannot be written in time. The ledger itself has been written, but not its change of key.
    """
    try:
        with _alone(path, patience):
            key = keys[-1][1]
            known = None if back else read(path, name, keys)
            if known is not None and known[0] >= head.serial and following is None:
                return known
            if known is None and not new and not back:
                raise PolicyError(missing(path))
            mac = None if key is None else _mac(key, name, head.serial, head.hash)
            written = {"ledger": name, "line": head.serial, "hash": head.hash, "mac": mac}
            if following is not None:
                written["next"] = _mac(following, name, head.serial, head.hash)
            _replace(path, json.dumps(written) + "\n")
    except OSError as error:
        what = "What was asked is recorded, and no answer is given: see to the file and its folder, and ask again; it "
        what += "is not charged twice."
        if following is not None:
            what = "The ledger keeps the key that it has. See to the file and its folder, and change the key again."
        raise PolicyError(f"cannot write the anchor {path} of the ledger: {error.strerror}. {what}") from None
    return None


def missing(path: Path) -> str:
    """What is said where there is no anchor and one is wanted."""
    return (
        f"the anchor {path} is missing, so nothing tells whether the ledger was put back to an earlier state. Put the "
        "anchor back; or, if the ledger is certain to hold every charge, make a new one: `hubbub ledger anchor`."
    )


def _mac(key: bytes, name: str, serial: int, digest: str) -> str:
    return hmac.new(key, f"hubbub anchor {name} {serial} {digest}".encode(), "sha256").hexdigest()


def _replace(path: Path, text: str) -> None:
    """Write the file whole or not at all, with the permissions it had."""
    path = Path(os.path.realpath(path))  # a link to another disk stays one
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    mode = path.stat().st_mode & 0o666 if path.exists() else 0o600
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            os.fchmod(file, mode)
            os.write(file, text.encode())
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(draft, path)
        flush_folder(path.parent)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def _alone(path: Path, patience: float) -> Iterator[None]:
    """One writer of an anchor at a time, so that it never moves back."""
    path = Path(os.path.realpath(path))
    file = os.open(path.with_name(f"{path.name}-lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not locked_in_time(file, patience):
            raise PolicyError(
                f"the anchor {path} of the ledger is held by another process for too long. What was asked may "
                "have been recorded, and no answer is given; ask again, it is not charged twice."
            )
        yield
    finally:
        os.close(file)
