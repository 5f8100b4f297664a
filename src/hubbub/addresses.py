"""Where a database is: a connection string, or the variable of the environment that holds it, and how to show either.

An address may hold a password, so whatever is shown of one is made here. What does not look like an address is not
shown at all: a password with a slash or a question mark in it must not pass for a host.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Final

from hubbub.errors import PolicyError

__all__ = ["Address", "is_address", "masked", "read_address", "shown_address"]

ENVIRONMENT: Final = "env:"
_SCHEMES: Final = ("postgresql://", "postgres://")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART: Final = r"[^\s/@:?#\"'\\]*"
_ADDRESS: Final = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>{_PART})(?::{_PART})?@)?"
    rf"(?P<host>(?:\[[0-9A-Fa-f:.]*\]|{_PART})(?::[0-9]*)?(?:,{_PART}(?::[0-9]*)?)*)(?P<base>/{_PART})?(?:\?[^@]*)?"
)


@dataclass(frozen=True)
class Address:
    """A place that is no file, as a policy names it: `postgresql://...`, `env:NAME` or `spark:NAME`.

    shown: what it is equal by, and all that is ever printed. written: what a connection is made from.

    >>> Address.of("postgresql://ada:secret@db.example/clinic")
    postgresql://ada@db.example/clinic
    """

    shown: str
    written: str = field(repr=False, compare=False)

    @classmethod
    def of(cls, written: str) -> Address:
        """The address, with what may be shown of it."""
        return cls(shown_address(written), written)

    def __str__(self) -> str:
        return self.shown

    __repr__ = __str__

    def __reduce__(self) -> str:
        raise TypeError("the address of a database may hold a password and cannot be pickled")


def is_address(place: object) -> bool:
    """Whether a place is a Postgres address, or the variable that holds one, rather than a file."""
    return isinstance(place, str) and place.startswith((*_SCHEMES, ENVIRONMENT))


def shown_address(address: str) -> str:
    """An address without what may be a password: its user, host and database alone.

    >>> shown_address("postgresql://ada:secret@db.example:5432/budgets?password=x")
    'postgresql://ada@db.example:5432/budgets'
    >>> shown_address("postgresql://ada:se/cret@db.example/budgets")
    'postgresql://...'
    """
    if not address.startswith(_SCHEMES):
        return address
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return "postgresql://..."
    user = "" if found["user"] is None else f"{found['user']}@"
    return f"postgresql://{user}{found['host']}{found['base'] or ''}"


def read_address(address: str) -> str:
    """The connection string: what was written, or what the variable holds.

    Raises:
        PolicyError: there is no such variable, or it holds no Postgres address.
    """
    if not address.startswith(ENVIRONMENT):
        return address
    name = address.removeprefix(ENVIRONMENT)
    if not _NAME.fullmatch(name):
        raise PolicyError(
            f"{masked(address)!r} names no variable of the environment; write env:NAME, with letters, digits and "
            "underscores. Nothing was charged."
        )
    value = os.environ.get(name, "").strip()
    if not value:
        raise PolicyError(
            f"the variable {name} of the environment is not set. Set it to the address of the database, "
            "postgresql://USER@HOST/DATABASE. Nothing was charged."
        )
    if not value.startswith(_SCHEMES):
        raise PolicyError(
            f"the variable {name} of the environment holds no Postgres address: one begins with postgresql://. "
            "Nothing was charged."
        )
    return value


_LOGIN: Final = re.compile(r"(\w+:/+)[^\n]*@")
_PASSWORD: Final = re.compile(r"(?i)(passw(?:or)?d\s*=\s*)[^&;\s]+")


def masked(text: str) -> str:
    """Any text without what may be a login in an address, or a password beside `password=`.

    >>> masked("found 'postgres:/ada:secret@db/x?password=y'; allowed: a file")
    "found 'postgres:/...@db/x?password=...; allowed: a file"
    """
    return _PASSWORD.sub(r"\1...", _LOGIN.sub(r"\1...@", text))
