"""Sources that are not files or frames: a table in Postgres, a table or a data frame of Spark.

An address may hold a password. It is kept for the connection alone: it is in no text, no comparison, no pickle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PostgresAddress", "SparkFrame", "SparkName", "remote"]

_PASSWORD = re.compile(r"(?<=://)([^/@:]*)(:[^/]*)?@")


@dataclass(frozen=True)
class PostgresAddress:
    """A database: `postgresql://user@host/name`. `shown` is the address without what may be a password."""

    shown: str
    url: str = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.shown

    def __reduce__(self) -> str:
        raise TypeError("the address of a database may hold a password and cannot be pickled")


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


def remote(source: object) -> PostgresAddress | SparkName | SparkFrame | None:
    """The remote source that something names; None for any other.

    >>> str(remote("postgresql://ada:secret@host/db?password=x"))
    'postgresql://ada@host/db'
    """
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        return PostgresAddress(_PASSWORD.sub(r"\1@", source).split("?")[0], source)
    if isinstance(source, str) and source.startswith("spark:"):
        return SparkName(source.removeprefix("spark:"))
    if type(source).__module__.startswith("pyspark.") and hasattr(source, "sparkSession"):
        return SparkFrame(source)
    return None
