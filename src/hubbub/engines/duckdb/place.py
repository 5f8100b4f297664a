"""Files and frames: what DuckDB reads in this process."""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.engines.base import Named
from hubbub.file_formats import files_of, several_files
from hubbub.ledger.places import INSIDE
from hubbub.spelling import one_spelling

if TYPE_CHECKING:
    from hubbub.engines.base import Engine

__all__ = ["DuckDBPlace"]


class DuckDBPlace:
    """Whatever no other engine holds: a path, or a frame."""

    name: Final = "DuckDB"
    holds: tuple[type, ...] = ()
    schemes: tuple[str, ...] = ()

    def read(self, source: object) -> object | None:
        """Files and frames stay what they are."""
        return None

    def engine(self) -> Engine:
        from hubbub.engines.duckdb.engine import DuckDBEngine

        return DuckDBEngine()

    def kept(self, named: Named) -> str | None:
        """The whole path of a file; a frame is known by its table's name alone."""
        if not isinstance(named.source, str | Path):
            return f"the frame {one_spelling(named.name)}"
        return os.path.realpath(named.source) + (f"{INSIDE}{named.table}" if named.table else "")

    def here(self, named: Named) -> Hashable:
        """A file by its number on its device, several by theirs; a frame by itself."""
        if not isinstance(named.source, str | Path):
            return "frame", id(named.source)
        try:
            if several_files(named.source):
                return tuple((at.st_dev, at.st_ino) for at in map(os.stat, files_of(named.source)))
            at = os.stat(named.source)
        except OSError:
            return None
        return at.st_dev, at.st_ino, (named.table or "").lower()

    def written(self, source: object) -> str:
        return str(source) if isinstance(source, str | Path) else "a frame"

    def at_hand(self, source: object) -> bool:
        return True
