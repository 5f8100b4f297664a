"""Where Spark has a table or a frame: by its name in the catalogue, by what it means, and by the files it reads."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Hashable, Sequence
from typing import Final
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame, SparkSession

from hubbub.engines.base import Located
from hubbub.engines.spark.session import quoted

__all__ = ["located_at"]

_LOCAL: Final = re.compile(r"file:/+")


def located_at(frame: DataFrame, parts: Sequence[str], spark: SparkSession | None) -> Located:
    """Of a table of the catalogue the whole name, of which older ledgers may have a part alone; of all what they mean,
    and the files that they read. parts: those of the name. spark: the session whose catalogue has it.

    Two plans with one meaning read the same rows; no row is read to see it. Files are known by their addresses, those
    of this machine by their numbers, as DuckDB knows them. A ledger keeps the place of a table. Of a frame it keeps no
    folder and no file: a pattern may have found them, which are then called by values of rows, and how many texts a
    ledger keeps is seen in the numbers of its lines.
    """
    here: set[Hashable] = set()
    current, kept = ["default"], list[str]()
    with contextlib.suppress(Exception):  # not of every plan
        here.add(("plan", frame.semanticHash()))
    with contextlib.suppress(Exception):
        for address in frame.inputFiles():
            path, local = _path(address)
            here.add(("address", path))
            if local:
                at = os.stat(path)
                here.add((at.st_dev, at.st_ino, ""))
    with contextlib.suppress(Exception):
        kept += [_location(parts, spark)] if parts and spark is not None else []
    with contextlib.suppress(Exception):
        current += [] if spark is None else [spark.catalog.currentDatabase().lower()]
    if not parts:
        return Located(here=frozenset(here), kept=tuple(kept))
    names = [quoted(parts[i:]).lower() for i in range(len(parts))]
    plain = [".".join(parts[i:]).lower() for i in range(len(parts))]
    # Alone, the name is one of the database that a session is in.
    older = plain if len(parts) < 2 or parts[-2].lower() in current else plain[:-1]
    return Located(f"spark:{names[0]}", names[0], tuple(older), frozenset(here), kept=tuple(kept))


def _location(parts: Sequence[str], spark: SparkSession) -> str:
    """The folder, or file, of a table of the catalogue."""
    said = [
        (row["col_name"], row["data_type"]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {quoted(parts)}").collect()
    ]
    about = [name for name, _ in said].index("# Detailed Table Information")  # above it are columns, by any name
    return _path(quote(dict(said[about:])["Location"], safe=":/"))[0]


def _path(address: str) -> tuple[str, bool]:
    """A file's path, where it is on this machine, or else its address; and whether it is."""
    local = _LOCAL.match(address)
    if local is None:
        return address, False
    return os.path.realpath("/" + unquote(address[local.end() :])), True
