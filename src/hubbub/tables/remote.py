"""Sources that are not files or frames: a table in Postgres, an object in a store, a table or data frame of Spark.

An address may hold a password. It is kept for the connection alone: it is in no text, no pickle, no `asdict`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hubbub.addresses import OBJECTS, Address, ObjectAddress, is_address, read_address
from hubbub.errors import PolicyError

__all__ = ["PostgresAddress", "SparkFrame", "SparkName", "add_reader", "is_remote", "remote"]


class PostgresAddress(Address):
    """A database: `postgresql://user@host/name`. `shown` is the address without what may be a password."""

    __slots__ = ()

    @property
    def url(self) -> str:
        """What a connection is made from; shown to nobody."""
        return self.written


@dataclass(frozen=True)
class SparkName:
    """A table of the catalogue of Spark: `spark:hospital.visits`."""

    name: str

    def __str__(self) -> str:
        return f"spark:{self.name}"


@dataclass(frozen=True)
class SparkFrame:
    """A data frame of Spark."""

    frame: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return "a data frame of Spark"


_KINDS: Final[list[type]] = [PostgresAddress, ObjectAddress, SparkName, SparkFrame]
_READERS: Final[list[Callable[[object], object | None]]] = []


def add_reader(read: Callable[[object], object | None], *kinds: type) -> None:
    """Let another engine's sources be known: what reads one from a text or an object, and their classes."""
    _READERS.append(read)
    _KINDS.extend(kinds)


def is_remote(source: object) -> bool:
    """Whether a source was read by `remote`."""
    return isinstance(source, tuple(_KINDS))


def remote(source: object) -> Any:
    """The remote source that something names; None for any other. `env:NAME` is the address in that variable.

    Raises PolicyError where the variable is not set or holds no address, and for a table of Spark without a name.

    >>> str(remote("postgresql://ada:secret@host/db?password=x"))
    'postgresql://ada@host/db'
    """
    if isinstance(source, str) and is_address(source):
        return PostgresAddress(read_address(source))
    if isinstance(source, str) and source.startswith(OBJECTS):
        return ObjectAddress(source)
    if isinstance(source, str) and source.startswith("spark:"):
        name = source.removeprefix("spark:")
        if not name.strip():
            raise PolicyError("source 'spark:' names no table; write it after the colon: spark:hospital.visits.")
        return SparkName(name)
    if type(source).__module__.startswith("pyspark.") and hasattr(source, "sparkSession"):
        return SparkFrame(source)
    return next((address for read in _READERS if (address := read(source)) is not None), None)
