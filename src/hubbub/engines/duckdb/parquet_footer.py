"""What the footer of a Parquet file says of its parts, read from its bytes.

Its two readers do not believe the same of it: of a part that it says to be all NULL, DuckDB makes NULLs and Arrow
looks; where it names another number of rows than its parts have, Arrow fails or goes on with the next part's. DuckDB's
own list of parts cannot tell: it writes the largest values as texts, and fails at one that is beyond all times.

A footer is a structure of Thrift's compact protocol, of which a few fields are kept and all others are passed over
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md,
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Leaf", "Part", "footer_of", "parts_of"]

_Wanted = Mapping[int, Any]
_CHUNK: Final[_Wanted] = {3: {5: None, 12: {3: None}, 16: {2: None, 3: None}}}
_FILE: Final[_Wanted] = {3: None, 4: {1: _CHUNK, 3: None}}
"""Fields by their numbers: of the file its rows and parts; of a part its columns and rows; of a column its values, how
many of them are NULL, and how often each level is there."""

_YES, _NO, _BYTE, _DOUBLE, _BYTES, _LIST, _SET, _STRUCT, _UUID = 1, 2, 3, 7, 8, 9, 10, 12, 13
_SIZES: Final = {_YES: 0, _NO: 0, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
_LONG: Final = 6
_WHOLE: Final = (4, 5, _LONG)


@dataclass(frozen=True)
class Leaf:
    """A column of single values in the schema: how deep its values may be missing, and be repeated."""

    missing: int
    repeated: int


@dataclass(frozen=True)
class Part:
    """A row group. null: the places of the columns that are said to have nothing but NULL."""

    rows: int
    null: frozenset[int]


def parts_of(path: str, leaves: Sequence[Leaf]) -> list[Part]:
    """The parts of a file with these columns.

    Raises ValueError where its footer contradicts itself on how many rows, values or columns there are, or is none.
    """
    try:
        file, _ = _struct(footer_of(path), 0, _FILE)
        parts = [_part(group, leaves) for group in file.get(4, [])]
        agrees = file[3] == sum(part.rows for part in parts)
    except (IndexError, KeyError, TypeError, RecursionError, OSError):
        raise ValueError("no footer") from None
    if not agrees:
        raise ValueError("another number of rows")
    return parts


def footer_of(path: str) -> bytes:
    """The bytes of a file's footer."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - 8)
        length = int.from_bytes(file.read(4), "little")
        file.seek(size - 8 - length)
        return file.read(length)


def _part(group: Mapping[int, Any], leaves: Sequence[Leaf]) -> Part:
    rows, null = group[3], set[int]()
    for place, (column, leaf) in enumerate(zip(group[1], leaves, strict=True)):
        told = column[3]
        levels = told.get(16, {})
        right = all(
            len(levels.get(field, ())) in (0, most + 1) for field, most in ((2, leaf.repeated), (3, leaf.missing))
        )
        if rows < 0 or not right or (leaf.repeated == 0 and told[5] != rows):
            raise ValueError("another number of values")
        if told.get(12, {}).get(3) == told[5]:
            null.add(place)
    return Part(rows, frozenset(null))


# Each of these takes the bytes and a place in them, and gives the place behind what it read.


def _natural(data: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the lowest first, and 64 bits in all: of more than these, readers drop some."""
    number = shift = 0
    while (byte := data[at]) > 127 and shift < 63:
        number |= (byte & 127) << shift
        shift += 7
        at += 1
    number |= byte << shift
    if number >> 64:
        raise TypeError("more than 64 bits")
    return number, at + 1


def _whole(data: bytes, at: int) -> tuple[int, int]:
    """A number with a sign, which is its lowest bit."""
    number, at = _natural(data, at)
    return (number >> 1) ^ -(number & 1), at


def _struct(data: bytes, at: int, wanted: _Wanted) -> tuple[dict[int, Any], int]:
    """The wanted fields of a structure. Each is there once, by a number of 15 bits: readers keep the last of several,
    and the lowest bits of longer numbers.
    """
    kept, field = dict[int, Any](), 0
    while head := data[at]:
        at += 1
        if head > 15:
            field += head >> 4
        else:
            field, at = _whole(data, at)
        if not 0 < field < 2**15 or field in kept:
            raise TypeError(field)
        if field in wanted:
            kept[field], at = _value(data, at, head & 15, wanted[field])
        else:
            at = _passed(data, at, head & 15)
    return kept, at + 1


def _value(data: bytes, at: int, kind: int, wanted: _Wanted | None) -> tuple[Any, int]:
    """A wanted value. What has another type than its field's is passed over by readers, and refused here."""
    if kind == _LIST:
        of_kind, count, at = _list(data, at)
        values = []
        for _ in range(count):
            value, at = _value(data, at, of_kind, wanted)
            values.append(value)
        return values, at
    if kind != (_LONG if wanted is None else _STRUCT):
        raise TypeError(kind)
    return _whole(data, at) if wanted is None else _struct(data, at, wanted)


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """The kind of a list's elements, and how many there are."""
    head, count = data[at], data[at] >> 4
    at += 1
    if count == 15:
        count, at = _natural(data, at)
    return head & 15, count, at


def _passed(data: bytes, at: int, kind: int) -> int:
    if kind in _WHOLE:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == _BYTES:
        length, at = _natural(data, at)
        return at + length
    if kind == _STRUCT:
        while head := data[at]:
            at = _passed(data, at + 1 if head > 15 else _natural(data, at + 1)[1], head & 15)
        return at + 1
    if kind in (_LIST, _SET):
        of_kind, count, at = _list(data, at)
        if of_kind in _SIZES:
            return at + count * (_SIZES[of_kind] or 1)
        for _ in range(count):
            at = _passed(data, at, of_kind)
        return at
    return at + _SIZES[kind]
