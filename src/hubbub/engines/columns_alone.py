"""Outer parts that only name columns of one release: most questions are such, and need no engine above the aggregates.

The text is our own, printed from a tree (`hubbub.sql.bind.query`), so its form is known to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hubbub.plain import quick

__all__ = ["ColumnsAlone", "columns_alone"]

_ITEM: Final = r'"r"\."(\w+)" AS "((?:[^"]|"")+)"'
_FORM: Final = re.compile(
    rf'SELECT (?P<items>{_ITEM}(?:, {_ITEM})*) FROM "(?P<table>released\d+)" AS "r" ORDER BY "r"\."place"'
)
_KEPT: Final = (pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us"))
"""The types that an engine hands back as they were."""


@dataclass(frozen=True)
class ColumnsAlone:
    """Which columns of a release are the answer, each with its name in it."""

    table: str
    pairs: tuple[tuple[str, str], ...]

    def of(self, released: Mapping[str, pa.Table]) -> pa.Table | None:
        """The answer; None where an engine would hand it back as other types, or in another order."""
        table = released[self.table]
        columns = [table.column(column) for column, _ in self.pairs]
        if any(column.type not in _KEPT for column in columns):
            return None
        if (np.diff(table.column("place").to_numpy()) < 0).any():
            return None
        return pa.table(columns, names=[name for _, name in self.pairs])


def columns_alone(sql: str) -> ColumnsAlone | None:
    """What an outer part names, if it does no more; None for any other."""
    return _named(sql) if quick("columns alone") else None


def _named(sql: str) -> ColumnsAlone | None:
    """The same, from its text.

    >>> _named('SELECT "r"."a0" AS "n", "r"."place" AS "its place" FROM "released0" AS "r" ORDER BY "r"."place"')
    ColumnsAlone(table='released0', pairs=(('a0', 'n'), ('place', 'its place')))
    >>> _named('SELECT "r"."a0" / 2 AS "n" FROM "released0" AS "r" ORDER BY "r"."place"')
    """
    written = _FORM.fullmatch(sql)
    if written is None:
        return None
    pairs = re.findall(_ITEM, written["items"])
    names = [name.lower() for _, name in pairs]
    if len(set(names)) < len(names):
        return None  # refused in the words of whoever describes it
    return ColumnsAlone(written["table"], tuple((column, name.replace('""', '"')) for column, name in pairs))
