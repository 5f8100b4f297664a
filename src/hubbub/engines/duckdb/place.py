"""Files and frames: what DuckDB reads in this process."""

from __future__ import annotations

import os
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.engines.base import Named
from hubbub.engines.duckdb.csv_files import csv_header
from hubbub.engines.duckdb.sheets import only_sheet
from hubbub.errors import PolicyError
from hubbub.file_formats import Csv, files_of, kind_of_file, several_files
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
        """The whole path of a file, with the table inside it where it holds tables; a frame is known by its table's
        name alone."""
        if not isinstance(named.source, str | Path):
            return f"the frame {one_spelling(named.name)}"
        return _with_inner(os.path.realpath(named.source), named)

    def older(self, named: Named) -> list[str]:
        """Other texts by which a ledger may know a file, or one that holds its rows: with a word that names nothing in
        it, without the name of its only sheet, by each folder that it is in, by each file that a folder or pattern
        holds.
        """
        if not isinstance(named.source, str | Path):
            return []
        path = os.path.realpath(named.source)
        files = [file for file in files_of(named.source) if kind_of_file(file) == "parquet"]
        texts = [path, *([f"{path}{INSIDE}{named.table}"] if named.table else [])]
        if not files and _inner(path, None) != _inner(path, named.table):
            texts.remove(path)  # the whole of a database is nobody's table
        return list(dict.fromkeys([*texts, *files, *(folder for file in files for folder in _folders(file))]))

    def others(self, named: Named) -> list[str]:
        """What a source is kept by as well: its path as it is written, where links lead on from it.

        Nothing that is found in a folder: its files may be called by values of rows (`name=eve`), and how many texts a
        ledger keeps of a source is seen in the numbers of its lines.
        """
        if not isinstance(named.source, str | Path):
            return []
        path = os.path.abspath(named.source)  # which takes `..` away before links are followed, and so may be another
        return [_with_inner(path, named)] if os.path.realpath(path) == os.path.realpath(named.source) else []

    def header(self, source: object, how: Csv | None) -> list[str] | None:
        """The columns of a text file, by its first line; None of any other source, and where it cannot be read."""
        if not isinstance(source, str | Path) or several_files(source):
            return None
        kind = kind_of_file(source)
        if kind != "csv" and (kind is not None or how is None):
            return None
        with suppress(PolicyError, OSError):
            return csv_header("", os.path.realpath(source), how or Csv())
        return None

    def here(self, named: Named) -> Hashable:
        """A file by its number on its device, several by the set of theirs; a frame by itself."""
        if not isinstance(named.source, str | Path):
            return "frame", id(named.source)
        try:
            if several_files(named.source):
                return frozenset((at.st_dev, at.st_ino, "") for at in map(os.stat, files_of(named.source)))
            at = os.stat(named.source)
        except OSError:
            return None
        return at.st_dev, at.st_ino, (_inner(named.source, named.table) or "").lower()

    def written(self, source: object) -> str:
        return str(source) if isinstance(source, str | Path) else "a frame"

    def at_hand(self, source: object) -> bool:
        return True


def _with_inner(path: str, named: Named) -> str:
    inner = _inner(named.source, named.table)
    return path + (f"{INSIDE}{inner}" if inner else "")


def _inner(path: str | Path, table: str | None) -> str | None:
    """Which table of a file is meant: none of a CSV or Parquet file, whatever is said; the only sheet of a workbook
    where nothing is.
    """
    if several_files(path):
        return None
    if Path(path).suffix.lower() == ".db":  # a database of either kind; to open it here would drop its locks
        return table
    kind = kind_of_file(path)
    if kind == "sheet":
        return table or only_sheet(os.path.realpath(path))
    return table if kind in ("duckdb", "sqlite") else None


def _folders(file: str) -> list[str]:
    """The folders whose Parquet files one is: all that it is in, but none in which it is hidden."""
    folders: list[str] = []
    place = Path(file)
    while place.name and place.name[0] not in (".", *("_" * (not folders))):
        place = place.parent
        folders.append(str(place))
    return folders
