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
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
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

MOST_AT_ONCE: Final = 4
"""Batches that are worked on at a time: of 2^18 rows each, as the engine gives them."""

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
    few: list[tuple[Column, ...]] = []
    parts: list[Pieces] | None = None
    held = 0
    with closing(_made(batches, what, known, stopped)) as every:
        for made in every:
            if made is None:
                return None
            columns, cut = made
            held += sum(c.nbytes for c in columns)
            if not share.holds(held):
                return None
            if cut is None:
                few.append(columns)
                continue
            parts = parts or [Pieces([], PART_BITS) for _ in range(1 << PART_BITS)]
            for pieces in (*map(_cut, few), cut):
                for part, piece in zip(parts, pieces, strict=True):
                    if len(piece[0]):
                        part.pieces.append(piece)
            few = []
    if parts is None:
        return [Pieces([c[1:] for c in few])] if few else []
    return parts


_Made = tuple[tuple[Column, ...], list[tuple[Column, ...]] | None]


def _made(
    batches: Iterable[pa.RecordBatch], what: RowColumns, known: Keys | None, stopped: Callable[[], bool]
) -> Generator[_Made | None]:
    """The columns of each batch, in order, and their rows by part once there are more than a few; None, at the end,
    where more groups are found than are numbered here.

    Batches are worked on in threads beside the one that fetches them: only a few at a time, since what is under way is
    not counted in the room.
    """

    def work(batch: pa.RecordBatch, group: Integers | None, many: bool) -> _Made:
        columns = _columns(batch, what, group)
        return columns, list(_cut(columns)) if many else None

    rows = 0
    ahead: deque[Future[_Made]] = deque()
    at_once = min(os.cpu_count() or 1, MOST_AT_ONCE)
    with ThreadPoolExecutor(at_once) as threads:
        try:
            for batch in batches:
                if stopped():
                    raise Stopped
                if not batch.num_rows:
                    continue
                group = None if known is None else known.of(_keys(batch, what))
                if group is None and known is not None:
                    yield None
                    return
                rows += batch.num_rows
                ahead.append(threads.submit(work, batch, group, rows > FEW_ROWS))
                if len(ahead) > at_once:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            threads.shutdown(cancel_futures=True)


def _keys(batch: pa.RecordBatch, what: RowColumns) -> list[pa.Array]:
    """The columns that name the group; what stands before them is the unit, and its part where the engine gave it."""
    start = 1 if pa.types.is_integer(batch.column(0).type) else 2
    keys: list[pa.Array] = batch.columns[start : start + what.keys]
    return keys


def _columns(batch: pa.RecordBatch, what: RowColumns, group: Integers | None) -> tuple[Column, ...]:
    """A batch as columns: first the part of each row's unit, then as `parts_of` says. group: where it is known."""
    keys = _keys(batch, what)
    unit, *others = batch.columns
    if pa.types.is_integer(unit.type):
        names: Column = unit.to_numpy(zero_copy_only=False)
        part = (mixed(names) >> np.uint64(64 - PART_BITS)).astype(np.uint8)
    else:
        names, part = unit, others.pop(0).to_numpy(zero_copy_only=False)
    arrays = iter(others[what.keys :])
    if group is None:
        group = keys[0].to_numpy(zero_copy_only=False) if keys else np.zeros(batch.num_rows, np.int8)
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
