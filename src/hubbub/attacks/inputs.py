"""Arrays that callers give to attacks, checked: shapes are public, so errors may name them; values are never named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given
from hubbub.noise import Bits, uniform_below

__all__ = [
    "MOST_CELLS",
    "Flags",
    "Floats",
    "Integers",
    "cells",
    "chosen",
    "codes",
    "columns_of",
    "fair",
    "numbers",
    "same_length",
    "table_shape",
    "zeros_ones",
]

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_CELLS = 50_000_000


def numbers(values: Any, name: str, *, dimensions: int = 1) -> Floats:
    """An array of finite floats with so many dimensions."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not an array of numbers; give numbers only.") from None
    if array.ndim != dimensions or array.size == 0:
        raise ParameterError(f"{name} has shape {array.shape}; give {dimensions} dimension(s), none of them empty.")
    if not bool(np.isfinite(array).all()):
        raise ParameterError(f"{name} holds NaN or infinite values; leave them out.")
    return array


def zeros_ones(values: Any, name: str, *, dimensions: int = 1) -> Integers:
    """An array of zeros and ones with so many dimensions."""
    array = numbers(values, name, dimensions=dimensions)
    if not bool(((array == 0) | (array == 1)).all()):
        raise ParameterError(f"{name} holds other values than 0 and 1; give bits.")
    return array.astype(np.int64)


def same_length(**arrays: Any) -> int:
    """The common length. Raises ParameterError where there is none."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise ParameterError(f"arrays of different lengths were given: {lengths}. Give one entry per row to each.")
    return next(iter(lengths.values()))


def codes(values: Any) -> Integers:
    """One small number per different value of a column; None and NaN are each a value."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ParameterError(f"a column has shape {array.shape}; give one value per row.")
    if array.dtype.kind in "OT":
        known: dict[Any, int] = {}
        try:
            return np.array([known.setdefault(_key(v), len(known)) for v in array.tolist()], dtype=np.int64)
        except TypeError:
            raise ParameterError(
                "a column holds lists or other values that are not comparable; leave it out."
            ) from None
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64).ravel()


def _key(value: Any) -> tuple[str, Any]:
    """What makes values equal: 1 is 1.0, but not True; NaN, which differs from itself, is a value."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return "number", "nan" if value != value else value
    return type(value).__name__, value


def table_shape(rows: int, columns: int) -> tuple[int, int]:
    """The shape of a table that fits into memory. Raises ParameterError for one that does not."""
    if rows * columns > MOST_CELLS:
        raise ParameterError(
            f"a table of {rows:,} by {columns:,} was asked; at most {MOST_CELLS:,} cells are allowed. Name columns "
            "with fewer values, or round them."
        )
    return rows, columns


def columns_of(table: Mapping[str, Any], names: Sequence[str]) -> list[Integers]:
    """The named columns as codes; a table maps each column's name to its array.

    Raises ParameterError for a column that is not there, for columns of different lengths, and for an empty table.
    """
    there = _names_of(table)
    unknown = [name for name in names if not isinstance(name, str | int) or name not in there]
    if unknown:
        from hubbub.sql.bind.scope import did_you_mean

        said = f"columns {', '.join(map(what_was_given, unknown[:8]))} were"
        said = said if isinstance(names, list | tuple) else f"{what_was_given(names)} was"
        near = did_you_mean(unknown[0] if isinstance(unknown[0], str) else "", map(str, there))
        raise ParameterError(f"{said} asked, which the table has not. {near}")
    if not names:
        raise ParameterError(f"no columns were asked; the table has {sorted(map(str, there))}.")
    arrays = {name: codes(table[name]) for name in names}
    if same_length(**{str(k): v for k, v in arrays.items()}) == 0:
        raise ParameterError("the table has no rows; an attack needs somebody to attack.")
    return list(arrays.values())


def _names_of(table: Any) -> list[Any]:
    """The names of a table's columns. Of what is none, nothing is looked at: to go through it yields its rows."""
    names = table if isinstance(table, Mapping) else getattr(table, "column_names", getattr(table, "columns", None))
    if names is None:
        raise ParameterError(
            f"{what_was_given(table)} was given as a table; give a mapping from each column's name to its values."
        )
    return [name for name in names if isinstance(name, str | int)]


def cells(columns: Sequence[Integers]) -> Integers:
    """For each row, the number of its combination of values: 0 .. (different combinations) - 1."""
    cell = columns[0]
    for column in columns[1:]:
        # Renumbered at every step, so that the products stay small.
        cell = np.unique(cell * (int(column.max()) + 1) + column, return_inverse=True)[1].astype(np.int64)
    return np.asarray(np.unique(cell, return_inverse=True)[1], dtype=np.int64)


def fair(shape: tuple[int, ...], bits: Bits | None) -> NDArray[np.uint8]:
    """Fair coin flips as 0 and 1, eight to a byte of the source."""
    n = int(np.prod(shape))
    words = uniform_below(1 << 63, -(-n // 56), bits=bits).view(np.uint8).reshape(-1, 8)[:, :7]
    return np.unpackbits(np.ascontiguousarray(words).ravel(), count=n).reshape(shape)


def chosen(n: int, size: int, bits: Bits | None) -> Integers:
    """`size` different numbers below n, every such set equally likely (the first of a Fisher-Yates shuffle)."""
    if not 0 <= size <= n:
        raise ParameterError(f"{size} of {n} were asked; give at most {n}.")
    order = np.arange(n)
    swaps = np.arange(size) + uniform_below(n - np.arange(size), bits=bits) if size else np.empty(0, np.int64)
    for i, j in enumerate(swaps.tolist()):
        order[i], order[j] = order[j], order[i]
    return order[:size]
