"""Reports that are sets of categories, packed eight to a byte: category i is bit 7 - i % 8 of byte i // 8.

Counting looks up bytes, not bits: a histogram of each byte column times the bits of 0 .. 255.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hubbub.local.draws import Array, Bytes, Integers
from hubbub.local.oracle import chunks

__all__ = ["bitmap_type", "byte_rows", "column_sums", "contains"]

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)


def bitmap_type(size: int) -> np.dtype[Any]:
    """The wire type of a set of `size` categories."""
    return np.dtype((np.uint8, (-(-size // 8),)))


def contains(report: Any, place: int) -> bool:
    """Whether a packed set holds a category."""
    return bool(int(np.asarray(report)[place // 8]) >> (7 - place % 8) & 1)


def byte_rows(reports: Any, size: int) -> tuple[Bytes, int]:
    """Rows of the right width whose spare bits are zero, and how many rows were not so. Never raises."""
    width = -(-size // 8)
    if not isinstance(reports, np.ndarray):
        rows = list(reports) if isinstance(reports, list | tuple) else [reports]
        good = [r for r in rows if isinstance(r, np.ndarray) and r.dtype == np.uint8 and r.shape == (width,)]
        array: Array = np.array(good, np.uint8).reshape(-1, width)
        lost = len(rows) - len(good)
    elif reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != width:
        alone = reports.dtype == np.uint8 and reports.shape == (width,)
        array = reports[None, :] if alone else np.empty((0, width), np.uint8)
        lost = 0 if alone else (len(reports) if reports.ndim else 1)
    else:
        array, lost = reports, 0
    spare = 8 * width - size
    if spare:
        clean = (array[:, -1] & np.uint8((1 << spare) - 1)) == 0
        if not bool(clean.all()):
            lost += int(np.count_nonzero(~clean))
            array = array[clean]
    return array, lost


def column_sums(rows: Bytes, size: int) -> Integers:
    """How many rows hold each category, shape (size,)."""
    out = np.zeros((rows.shape[1], 8), np.int64)
    for part in chunks(len(rows), 1 << 17):
        columns = np.ascontiguousarray(rows[part].T)
        for i, column in enumerate(columns):
            out[i] += np.bincount(column, minlength=256) @ _BITS
    return out.reshape(-1)[:size]
