"""Footers of Parquet files as a tree that a test changes: fields by their numbers, in Thrift's compact protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["changed", "chunks", "emptied", "numbers"]

Fields = dict[int, tuple[int, Any]]
"""The kind and the value of each field of a structure; a list is the kind of its elements, and these."""

_YES, _NO, _BYTE, _DOUBLE, _BYTES, _LIST, _STRUCT = 1, 2, 3, 7, 8, 9, 12


def changed(path: Path, change: Callable[[Fields], Any]) -> None:
    """Write the file anew with a footer that is changed."""
    whole = path.read_bytes()
    at = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    fields, _ = _read(whole[at:-8], 0)
    change(fields)
    footer = _written(fields)
    path.write_bytes(whole[:at] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def chunks(fields: Fields) -> Iterator[tuple[Fields, Fields]]:
    """Each row group with each of its columns' own metadata."""
    for group in fields[4][1][1]:
        for column in group[1][1][1]:
            yield group, column[3][1]


def emptied(path: Path) -> int:
    """Write the file anew with Bloom filters that know no value; how many there were."""
    whole, count = bytearray(path.read_bytes()), 0

    def look(footer: Fields) -> None:
        nonlocal count
        for _, column in chunks(footer):
            if 14 in column:
                header, at = _read(bytes(whole), column[14][1])
                whole[at : at + header[1][1]] = bytes(header[1][1])
                count += 1

    changed(path, look)
    path.write_bytes(whole)
    return count


def numbers(fields: Fields) -> Iterator[Callable[[int], None]]:
    """Of each whole number in a footer what sets it."""
    for number, (kind, value) in fields.items():
        if kind in (4, 5, 6):
            yield lambda n, number=number, kind=kind: fields.__setitem__(number, (kind, n))  # type: ignore[misc]
        elif kind == _STRUCT:
            yield from numbers(value)
        elif kind == _LIST and value[0] == _STRUCT:
            for element in value[1]:
                yield from numbers(element)
        elif kind == _LIST and value[0] in (4, 5, 6):
            for i in range(len(value[1])):
                yield lambda n, i=i, listed=value[1]: listed.__setitem__(i, n)  # type: ignore[misc]


def _natural(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte, at = data[at], at + 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def _whole(data: bytes, at: int) -> tuple[int, int]:
    number, at = _natural(data, at)
    return (number >> 1) ^ -(number & 1), at


def _read(data: bytes, at: int) -> tuple[Fields, int]:
    fields: Fields = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _whole(data, at)
        value, at = _value(data, at, head & 15)
        fields[number] = (head & 15, value)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (_YES, _NO):
        return kind == _YES, at
    if kind in (_BYTE, _DOUBLE):
        size = 1 if kind == _BYTE else 8
        return data[at : at + size], at + size
    if kind == _BYTES:
        size, at = _natural(data, at)
        return data[at : at + size], at + size
    if kind == _STRUCT:
        return _read(data, at)
    if kind != _LIST:
        return _whole(data, at)
    head, at = data[at], at + 1
    count, at = _natural(data, at) if head >> 4 == 15 else (head >> 4, at)
    values = []
    for _ in range(count):
        if head & 15 in (_YES, _NO):
            value, at = data[at], at + 1
        else:
            value, at = _value(data, at, head & 15)
        values.append(value)
    return (head & 15, values), at


def _naturally(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def _wholly(number: int) -> bytes:
    return _naturally((number << 1) ^ (number >> 63))


def _written(fields: Fields) -> bytes:
    parts, before = [], 0
    for number in sorted(fields):
        kind, value = fields[number]
        head = (_YES if value else _NO) if kind in (_YES, _NO) else kind
        step = number - before
        parts.append(bytes([step << 4 | head]) if step < 16 else bytes([head]) + _wholly(number))
        parts.append(_value_written(kind, value))
        before = number
    return b"".join(parts) + b"\0"


def _value_written(kind: int, value: Any) -> bytes:
    if kind in (_YES, _NO):
        return b""
    if kind in (_BYTE, _DOUBLE):
        return bytes(value)
    if kind == _BYTES:
        return _naturally(len(value)) + value
    if kind == _STRUCT:
        return _written(value)
    if kind != _LIST:
        return _wholly(value)
    of_kind, values = value
    count = len(values)
    head = bytes([count << 4 | of_kind]) if count < 15 else bytes([0xF0 | of_kind]) + _naturally(count)
    each = (bytes([v]) if of_kind in (_YES, _NO) else _value_written(of_kind, v) for v in values)
    return head + b"".join(each)
