"""Tokens, links and passphrases: how they are made, and what is kept of them.

    hub_<id>_<32 of base 32>        a token; 160 random bits
    inv_<32 of base 32>             a link: an invitation, a lost passphrase, a first look
    43 of base 64                   a session's cookie; 256 random bits

What is random is kept as its SHA-256: a slow hash at each call would let anybody stop the service. A passphrase is kept
as scrypt's (RFC 7914; n = 2^15, r = 8, p = 1: 32 MB, about a tenth of a second), and computed one at a time: many at
once would take the memory, and whoever sends many waits in his own line.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hubbub.errors import QueryError
from hubbub.noise import system_bits
from hubbub.service.people.person import TooMany

__all__ = ["LEAST", "Passphrases", "checked_passphrase", "csrf_of", "digest", "new_cookie", "new_link", "new_token"]

LEAST: Final = 12
"""Characters of a passphrase, at least."""
_LONGEST: Final = 1000
_N, _R, _P = 1 << 15, 8, 1
_MEMORY: Final = 64 * 1024 * 1024
_NOBODY: Final = f"scrypt${'00' * 16}${'00' * 32}"
_LINE: Final = 8  # how many may wait for theirs to be computed


def _random(words: int) -> bytes:
    return system_bits().u64(words).tobytes()


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().lower()


def new_token() -> tuple[str, str]:
    """A token, and the id in it."""
    data = _random(3)
    name = data[20:].hex()
    return f"hub_{name}_{_base32(data[:20])}", name


def new_link() -> str:
    """The key of a link."""
    return f"inv_{_base32(_random(3)[:20])}"


def new_cookie() -> str:
    """The value of a session's cookie."""
    return base64.urlsafe_b64encode(_random(4)).decode().rstrip("=")


def digest(key: str) -> str:
    """What is kept of something random."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def csrf_of(cookie: str) -> str:
    """The word that a session's forms hold: whoever does not have the cookie cannot compute it."""
    return hmac.new(cookie.encode("utf-8", "replace"), b"hubbub csrf", hashlib.sha256).hexdigest()


def checked_passphrase(text: str, name: str) -> str:
    """A passphrase as it is hashed: one form of Unicode (NFKC).

    Raises QueryError where it is too short, too long, or the person's name.
    """
    text = unicodedata.normalize("NFKC", text)
    if not LEAST <= len(text) <= _LONGEST or len(set(text)) < 5:
        raise QueryError(f"a passphrase has {LEAST} to {_LONGEST:,} characters, five of them different.")
    if text.casefold() == name.casefold():
        raise QueryError("a passphrase is not the name.")
    return text


class Passphrases:
    """What is kept of passphrases, and whether one is right; one at a time."""

    def __init__(self) -> None:
        self._one, self._line = threading.Lock(), threading.BoundedSemaphore(_LINE)

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place in the line of those who wait for theirs to be computed.

        Raises TooMany where many wait already.
        """
        if not self._line.acquire(blocking=False):
            raise TooMany("many log in at this moment; try again in a few seconds.", 5)
        try:
            yield
        finally:
            self._line.release()

    def kept(self, passphrase: str) -> str:
        """What is kept of a passphrase. Raises TooMany where many wait already."""
        salt = _random(2)
        with self.place():
            return f"scrypt${salt.hex()}${self._slow(passphrase, salt).hex()}"

    def is_right(self, passphrase: str, kept: str | None) -> bool:
        """Whether a passphrase is the one of which this is kept; asked from a place in the line. None: of nobody; it
        takes as long.
        """
        _, salt, known = (kept or _NOBODY).split("$")
        computed = self._slow(unicodedata.normalize("NFKC", passphrase)[:_LONGEST], bytes.fromhex(salt))
        return hmac.compare_digest(computed, bytes.fromhex(known)) and kept is not None

    def _slow(self, passphrase: str, salt: bytes) -> bytes:
        with self._one:
            given = passphrase.encode("utf-8", "replace")
            return hashlib.scrypt(given, salt=salt, n=_N, r=_R, p=_P, maxmem=_MEMORY, dklen=32)
