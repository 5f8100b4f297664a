"""Bearer tokens: who asks. A file has a line for each, `SHA-256 NAME`; the token is shown once, and kept nowhere.

hub_<id>_<32 of base 32>        160 random bits: a fast hash is enough
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hubbub.errors import PolicyError
from hubbub.ledger.charge import checked_analyst
from hubbub.noise import system_bits

__all__ = ["Tokens", "create_token"]


@dataclass(frozen=True)
class Tokens:
    """Names of analysts by the SHA-256 of their tokens."""

    names: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """The tokens of a file.

        Raises PolicyError where it cannot be read, or a line is none.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise PolicyError(
                f"cannot read the tokens in {path}. `hubbub token NAME --tokens FILE` writes one."
            ) from None
        names = {}
        for number, line in enumerate(lines, start=1):
            digest, _, name = line.partition(" ")
            if not line.strip():
                continue
            if len(digest) != 64 or not set(digest) <= set("0123456789abcdef") or not name.strip():
                raise PolicyError(
                    f"{path}:{number}: not a token: expected its SHA-256, a blank and the analyst's name."
                )
            names[digest] = checked_analyst(name.strip())
        return cls(names)

    def analyst(self, token: str) -> str | None:
        """Whose token it is; None for nobody's."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        return next((name for known, name in self.names.items() if hmac.compare_digest(known, digest)), None)


def create_token(path: Path, name: str) -> str:
    """A new token of an analyst, which is added to the file by its hash alone.

    Raises PolicyError where the file cannot be written, QueryError for what is not a name.
    """
    checked_analyst(name)
    random = system_bits().u64(3).tobytes()
    token = f"hub_{random[20:].hex()}_{base64.b32encode(random[:20]).decode().lower()}"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.write(f"{hashlib.sha256(token.encode()).hexdigest()} {name}\n")
    except OSError as error:
        raise PolicyError(f"cannot write the tokens in {path}: {error.strerror}.") from error
    return token
