"""The keys of a chain: the present one, and those before it, each kept under the one that followed.

A chain may get another key (`Steward.rekey`), or its first one. That is a line of its own, `rekeying`, under the key
before; the lines after it bear the new one. No link changes, so every receipt, witness and head that was kept still
finds its line. The line holds the key before, encrypted under the new one, so that whoever has the new key verifies the
whole chain, and nobody has to keep old keys:

    wrapped = nonce : key before  XOR  HMAC(new key, "hubbub rekey", nonce, 1), HMAC(new key, ..., 2), ... : seal
    seal    = HMAC(new key, "hubbub rekeyed", nonce, hash of the line before)

Without the seal, whoever has the key before, as where it leaked, and anybody where there was none, could write other
lines before this one and leave out all that follow: `verify` finds that.

HMAC-SHA-256 is a pseudorandom function and a nonce (128 random bits) is used once, so this is a one-time pad (Bellare,
Canetti and Krawczyk 1996). That it is the right key its own `key_check` says.
"""

from __future__ import annotations

import hmac
import uuid
from typing import TYPE_CHECKING, Final, TypeAlias

from hubbub.errors import PolicyError

if TYPE_CHECKING:
    from pathlib import Path

    from hubbub.ledger.hash_chain import Connection

__all__ = [
    "Epochs",
    "check_of",
    "current_check",
    "epochs_of",
    "key_at",
    "read_key",
    "unwrapped",
    "wrapped",
]

Epochs: TypeAlias = "tuple[tuple[int, bytes | None], ...]"
"""The keys of a chain, oldest first: the line after which each holds, and the key; None where there was none yet."""

_BLOCK: Final = 32


def read_key(path: Path) -> bytes:
    """The key in a file, without the white space around it.

    Raises:
        PolicyError: it cannot be read, or is shorter than 16 bytes.
    """
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise PolicyError(f"cannot read the key file {path}: {error.strerror}.") from error
    if len(key) < 16:
        raise PolicyError(f"the key in {path} has {len(key)} bytes; allowed are 16 or more, from a random source.")
    return key


def check_of(key: bytes, ledger: str) -> str:
    """What a ledger keeps to know its key by."""
    return hmac.new(key, f"hubbub ledger {ledger}".encode(), "sha256").hexdigest()


def current_check(connection: Connection) -> str | None:
    """What the present key is known by; None without a key."""
    row = connection.execute("SELECT key_check FROM rekeying ORDER BY serial DESC LIMIT 1").fetchone()
    row = row or connection.execute("SELECT key_check FROM ledger").fetchone()
    return None if row is None else row[0]


def wrapped(before: bytes | None, new: bytes, after: str) -> str:
    """The key before, if there was one, for whoever has the new one. after: the hash of the line before.

    >>> unwrapped(wrapped(b"an old key of 20 byte", b"a new one, longer", "ab"), b"a new one, longer", "ab")
    b'an old key of 20 byte'
    """
    nonce = uuid.uuid4().hex
    return f"{nonce}:{_padded(before or b'', new, nonce).hex()}:{_seal(new, nonce, after)}"


def unwrapped(text: str, new: bytes, after: str) -> bytes | None:
    """The key that `wrapped` wrote; None where there was none.

    Raises ValueError where it wrote no such text, or after another line.
    """
    nonce, hidden, seal = text.split(":")
    if not hmac.compare_digest(seal.encode(), _seal(new, nonce, after).encode()):
        raise ValueError("another line stands before it")
    return _padded(bytes.fromhex(hidden), new, nonce) or None


def _seal(new: bytes, nonce: str, after: str) -> str:
    return hmac.new(new, f"hubbub rekeyed {nonce} {after}".encode(), "sha256").hexdigest()


def _padded(text: bytes, key: bytes, nonce: str) -> bytes:
    pad = b"".join(
        hmac.digest(key, f"hubbub rekey {nonce} {number}".encode(), "sha256")
        for number in range(1, -(-len(text) // _BLOCK) + 1)
    )
    return bytes(a ^ b for a, b in zip(text, pad, strict=False))


def epochs_of(connection: Connection, key: bytes | None) -> Epochs:
    """All keys of a chain from the present one.

    Raises:
        PolicyError: a key before the present one cannot be read, or stands after other lines: some were changed.
    """
    row = connection.execute("SELECT id, key_check FROM ledger").fetchone()
    changes = connection.execute("SELECT serial, key_check, wrapped FROM rekeying ORDER BY serial").fetchall()
    checks = [None if row is None else row[1], *(check for _, check, _ in changes)]
    epochs: list[tuple[int, bytes | None]] = []
    for number in range(len(changes), 0, -1):
        serial, _, hidden = changes[number - 1]
        epochs.append((int(serial), key))
        above = connection.execute("SELECT hash FROM journal WHERE serial = ?", (int(serial) - 1,)).fetchone()
        given, wrong = key is not None, False
        try:
            key = None if key is None else unwrapped(str(hidden), key, "" if above is None else above[0])
        except (ValueError, TypeError):  # a text or bytes that nobody here wrote, or for a chain with other lines
            wrong = True
        check = checks[number - 1]
        wrong = wrong or (given and (None if key is None else check_of(key, row[0])) != check)
        if wrong or (check is not None and not given):
            raise PolicyError(
                f"line {serial}: the key that the chain had before it cannot be read, or the lines before it are "
                "others than when it got this one"
            )
    return (*reversed([*epochs, (0, key)]),)


def key_at(epochs: Epochs, line: int) -> bytes | None:
    """The key of a line.

    >>> key_at(((0, None), (7, b"k")), 7), key_at(((0, None), (7, b"k")), 8)
    (None, b'k')
    """
    return next(key for after, key in reversed(epochs) if line > after)
