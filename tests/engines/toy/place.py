"""Where the toy's tables are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hubbub.engines.base import Engine, Named
from hubbub.errors import PolicyError

ROWS: dict[str, pa.Table] = {}
"""The toy's tables, by name."""


@dataclass(frozen=True)
class ToyTable:
    """A table of the toy's: `toy:visits`."""

    name: str

    def __str__(self) -> str:
        return f"toy:{self.name}"


class ToyPlace:
    """Tables in a dictionary of this process."""

    name = "Toy"
    holds: tuple[type, ...] = (ToyTable,)
    schemes: tuple[str, ...] = ("toy:",)

    def read(self, source: object) -> object | None:
        if not (isinstance(source, str) and source.startswith("toy:")):
            return None
        name = source.removeprefix("toy:")
        if not name.strip():
            raise PolicyError("source 'toy:' names no table; write it after the colon: toy:visits.")
        return ToyTable(name)

    def engine(self) -> Engine:
        from engines.toy.engine import ToyEngine

        return ToyEngine()

    def kept(self, named: Named) -> str | None:
        return str(named.source)

    def here(self, named: Named) -> Hashable:
        return named.source

    def written(self, source: Any) -> str:
        return str(source)

    def at_hand(self, source: Any) -> bool:
        return True
