"""Bytes as texts: what is not UTF-8 is NULL, and makes no other value so."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa

from hubbub.plain import quick

__all__ = ["as_utf8", "utf8_texts"]

_FEW = 256
"""So many values are looked at one by one where one of them is not UTF-8."""


def as_utf8(column: Any) -> Any:
    """Bytes as text; what is not UTF-8 is NULL."""
    kind = pa.large_string() if pa.types.is_large_binary(column.type) else pa.string()
    if quick("utf8"):
        with contextlib.suppress(pa.ArrowInvalid):
            # A cast looks at the same, and loads all of pyarrow.compute.
            texts = pa.chunked_array([chunk.view(kind) for chunk in _chunks(column)], kind)
            texts.validate(full=True)
            return texts
    if len(column) <= _FEW:
        # Piece by piece: what fitted into a column of 2 GiB fits into one again.
        return pa.chunked_array(
            [pa.array([_utf8(value) for value in chunk.to_pylist()], kind) for chunk in _chunks(column)], kind
        )
    half = len(column) // 2
    return pa.chunked_array([c for part in (column[:half], column[half:]) for c in _chunks(as_utf8(part))], kind)


def utf8_texts(column: Any) -> Any:
    """A column of texts, whose bytes nobody may have checked: what is not UTF-8 is NULL."""
    if quick("utf8"):
        with contextlib.suppress(pa.ArrowInvalid):
            column.validate(full=True)
            return column
    return as_utf8(column.cast(pa.binary() if pa.types.is_string(column.type) else pa.large_binary()))


def _chunks(column: Any) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _utf8(value: bytes | None) -> str | None:
    with contextlib.suppress(UnicodeDecodeError):
        return None if value is None else value.decode("utf-8")
    return None
