"""The rows of a question as they come from DuckDB, as columns of integers, cut into parts by unit.

A part holds all rows of its units. Units that are whole numbers are cut by bits of a mix of them; of others DuckDB
gives bits of a hash, which choose the part and nothing else: within a part, what names a unit becomes a number by a
dictionary, in which two names are one only where all of their bytes are (Arrow compares them whenever their hashes
meet). So no two units are ever taken for one, whatever their hashes are.

A value comes in steps of its grid, neither rounded nor clamped: a double, or NULL. Here it is rounded half to even and
clamped as `Dialect.clamped` writes it: at or below the floor, the floor; at or above the ceiling, or where it is no
number, the ceiling; NULL as the midpoint, or left out. Floor and ceiling are whole, so that to round what was clamped
is to clamp what was rounded; whole doubles within the range of a grid are below 2^53, so all is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hubbub.engines.duckdb.room import Share
from hubbub.sql.emit.ranked import RowColumns, certain
from hubbub.tables.expressions import Expression
from hubbub.tables.measure import Value

__all__ = ["MOST_FOUND", "PART_BITS", "Keys", "Layout", "Pieces", "Stopped", "mixed", "parts_of"]

Integers = npt.NDArray[Any]
Column = Any
"""Integers; or of units that are not whole numbers, an array of Arrow's."""

ODD: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: multiplying by it spreads numbers that follow one another over the highest bits."""

PART_BITS: Final = 6
FEW_ROWS = 1_000_000
"""Up to here one part is enough."""

MOST_FOUND = 1 << 16
"""So many groups may be found privately; of more, the engine makes the table."""


class Stopped(Exception):
    """The question was to end."""


@dataclass
class Keys:
    """The groups that are found privately, numbered as they come: by the values of their keys, and by the numbers of
    these."""

    values: list[dict[Any, int]] = field(default_factory=list)
    groups: dict[tuple[int, ...], int] = field(default_factory=dict)

    def of(self, columns: Sequence[pa.Array]) -> Integers | None:
        """The number of each row's group; None where there are too many."""
        while len(self.values) < len(columns):
            self.values.append({})
        numbers: list[Integers] = []
        for column, known in zip(columns, self.values, strict=True):
            encoded = column.dictionary_encode("encode")
            own = [known.setdefault(v, len(known)) for v in encoded.dictionary.to_pylist()]
            if len(known) > MOST_FOUND:
                return None
            numbers.append(np.array(own, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)])
        if len(numbers) == 1:
            self.groups |= {(n,): n for n in range(len(self.groups), len(self.values[0]))}
            return numbers[0].astype(np.int32)
        code = numbers[0]
        for number in numbers[1:]:
            code = np.unique(code, return_inverse=True)[1] * (MOST_FOUND + 1) + number
        _, first, at = np.unique(code, return_index=True, return_inverse=True)
        groups = [tuple(int(n[i]) for n in numbers) for i in first.tolist()]
        group = np.array([self.groups.setdefault(g, len(self.groups)) for g in groups], np.int32)
        return None if len(self.groups) > MOST_FOUND else group[at]

    def ordered(self) -> tuple[list[tuple[Any, ...]], Integers]:
        """The groups in the order in which SQL sorts them, NULL last, and the place of each number among them."""
        values = [list(known) for known in self.values]
        named = {tuple(v[n] for v, n in zip(values, g, strict=True)): i for g, i in self.groups.items()}
        names = sorted(named, key=lambda name: tuple((v is None, v) for v in name))
        place = np.zeros(len(names), np.int32)
        place[[named[name] for name in names]] = np.arange(len(names), dtype=np.int32)
        return names, place


@dataclass(frozen=True)
class Pieces:
    """All rows of some units, in pieces of equal columns. split: how many of the highest bits of the mixed unit they
    share."""

    pieces: list[tuple[Column, ...]]
    split: int = 0

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for columns in self.pieces for column in columns)

    @property
    def rows(self) -> int:
        return sum(len(columns[0]) for columns in self.pieces)

    def taken(self) -> tuple[int, tuple[Integers, ...]]:
        """The rows in one piece, units as numbers, with `split` for these; the pieces are let go."""
        unit, *others = zip(*self.pieces, strict=True)
        self.pieces.clear()
        columns = [np.concatenate(c) for c in others]
        if isinstance(unit[0], np.ndarray):
            return self.split, (np.concatenate(unit), *columns)
        names = pa.concat_arrays(unit)
        return 0, (names.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False), *columns)


class Layout:
    """Where the columns stand that come after unit, group and hash.

    values: of each value its integers, and which of them are there; there: of what is counted, which are. None for all.
    """

    def __init__(self, what: RowColumns) -> None:
        self.values: dict[Value, tuple[int, int | None]] = {}
        self.there: dict[Expression, int | None] = {}
        place = 0
        for value in what.values:
            mask = None if certain(value.argument) else place + 1
            self.values[value] = (place, mask)
            self.there[value.argument] = mask
            place += 1 if mask is None else 2
        self.there |= {argument: place + i for i, argument in enumerate(what.counted)}


def mixed(unit: Integers) -> npt.NDArray[np.uint64]:
    """Units as numbers whose highest bits tell them apart: one for one."""
    return unit.astype(np.int64 if unit.dtype.kind == "i" else np.uint64, copy=False).view(np.uint64) * ODD


def parts_of(
    batches: Iterable[pa.RecordBatch],
    what: RowColumns,
    known: Keys | None,
    share: Share,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Pieces] | None:
    """The rows of a few units each; None where they do not fit, or more groups are found than are numbered here.

    Each piece has the columns unit, group, hash (where groups are ranked), and for each value its integer and whether
    it is there, for each thing counted whether it is there. known: where groups are found privately, their numbers.

    Raises Stopped where the question was to end.
    """
    first: list[tuple[Column, ...]] = []
    rows = held = 0
    parts: list[Pieces] | None = None
    for batch in batches:
        if stopped():
            raise Stopped
        if not batch.num_rows:
            continue
        columns = _columns(batch, what, known)
        if columns is None:
            return None
        held += sum(c.nbytes for c in columns)
        rows += batch.num_rows
        if not share.holds(held):
            return None
        first.append(columns)
        if rows <= FEW_ROWS:
            continue
        if parts is None:
            parts = [Pieces([], PART_BITS) for _ in range(1 << PART_BITS)]
        for columns in first:
            for part, piece in zip(parts, _cut(columns), strict=True):
                if len(piece[0]):
                    part.pieces.append(piece)
        first = []
    if parts is None:
        return [Pieces([c[1:] for c in first])] if rows else []
    return parts


def _columns(batch: pa.RecordBatch, what: RowColumns, known: Keys | None) -> tuple[Column, ...] | None:
    """A batch as columns: first the part of each row's unit, then as `parts_of` says."""
    arrays = iter(batch.columns)
    unit = next(arrays)
    if pa.types.is_integer(unit.type):
        names: Column = unit.to_numpy(zero_copy_only=False)
        part = (mixed(names) >> np.uint64(64 - PART_BITS)).astype(np.uint8)
    else:
        names, part = unit, next(arrays).to_numpy(zero_copy_only=False)
    keys = [next(arrays) for _ in range(what.keys)]
    group: Integers | None = np.zeros(batch.num_rows, np.int8)
    if known is not None:
        group = known.of(keys)
    elif keys:
        group = keys[0].to_numpy(zero_copy_only=False)
    if group is None:
        return None
    columns = [part, names, group]
    columns += [next(arrays).to_numpy(zero_copy_only=False)] if what.hashed else []
    for value in what.values:
        columns += _clamped(next(arrays), value)
    columns += [next(arrays).to_numpy(zero_copy_only=False).view(np.bool_) for _ in what.counted]
    return tuple(columns)


def _clamped(steps: pa.Array, value: Value) -> list[Integers]:
    """The integers of a value's steps, and where it may be missing whether each is there."""
    there = _valid(steps)
    numbers = _stored(steps)
    kind = _narrow(value)
    if numbers.dtype.kind == "f":
        # Of a NaN the other number is taken: the ceiling, as where doubles are ordered with NaN above all.
        numbers = np.fmax(np.fmin(numbers, float(value.ceiling)), float(value.floor))
        np.rint(numbers, out=numbers)
        if value.centre:
            numbers -= float(value.centre)
        whole = numbers.astype(kind)
    else:
        whole = numbers.astype(kind) - kind(value.centre)
    if there is not None:
        whole[~there] = 0 if value.nullable else (value.floor + value.ceiling) // 2 - value.centre
    if certain(value.argument):
        return [whole]
    return [whole, np.ones(len(whole), np.bool_) if there is None else there]


def _narrow(value: Value) -> Any:
    """The smallest type that holds a value's integers, its centre, and 0; it holds steps in [-128, 127] besides."""
    most = max(map(abs, (value.low, value.high, value.centre)))
    return next((t for t, bits in ((np.int8, 7), (np.int16, 15), (np.int32, 31)) if most < 1 << bits), np.int64)


def _valid(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which entries are not NULL; None for all."""
    bitmap = array.buffers()[0]
    if bitmap is None or array.null_count == 0:
        return None
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little", count=array.offset + len(array))
    return bits[array.offset :].view(np.bool_)


def _stored(array: pa.Array) -> Integers:
    """The entries as they are stored; what stands in the place of a NULL means nothing."""
    data = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())
    return data[array.offset : array.offset + len(array)]


def _cut(columns: tuple[Column, ...]) -> Iterator[tuple[Column, ...]]:
    """Rows by the part of their unit, which is their first column."""
    part, *others = columns
    order = np.argsort(part, kind="stable")  # of 8 bits: a radix sort
    ends = np.cumsum(np.bincount(part, minlength=1 << PART_BITS)).tolist()
    ordered = [c[order] if isinstance(c, np.ndarray) else c.take(pa.array(order)) for c in others]
    for start, end in itertools.pairwise([0, *ends]):
        yield tuple(c[start:end] for c in ordered)
