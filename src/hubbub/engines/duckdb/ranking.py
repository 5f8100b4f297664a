"""A unit's groups ranked, and its rows in each bounded, in this process: the embedded engine's way for large tables.

The text of `hubbub.sql.emit.plan.placed_sql` gives one row for each row that counts: its unit, the number of its group,
the hash that ranks a unit's groups, and its integers. What `aggregate_sql` then does with a hash table for every pair
of unit and group, and a window over the pairs, is done here with one sort: rows are cut into parts by unit, and the
rows of a part are put in the order (unit, hash, group). Then the rows of a pair stand together, the pairs of a unit
stand in the order of their ranks, and the first C of them count.

The sort is of one 64-bit number for each row: bits of a mix of the unit, bits of the hash, the row's place. Units or
groups that share their bits are found by comparing neighbours, and put in order by all of what they are: so the order
is a function of (unit, hash, group) alone, and the answer that of the SQL text, integer by integer. Rows of one pair
are only added up, so their order does not matter.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hubbub.sql.emit.plan import may_be_missing, summed
from hubbub.tables.measure import Measurement, MeasurementKind
from hubbub.tables.plan import Plan

__all__ = ["Stopped", "bounded_sums"]

Integers = npt.NDArray[Any]

ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: multiplying by it spreads numbers that follow one another over the highest bits."""

PARTS = 64
FEW_ROWS = 1_000_000
"""Up to here one part is enough."""

BESIDE = 7
"""How many times its own size a part takes at most while it is sorted, as measured for one unit with all rows."""

LIMB = 22
"""Sums over units are kept in limbs of so many bits, each added up without rounding by `bincount`: below 2^31 pairs."""


def bounded_sums(
    batches: Iterable[pa.RecordBatch], plan: Plan, room: int, stopped: Callable[[], bool] = lambda: False
) -> list[tuple[int, ...]] | None:
    """What `aggregate_sql` answers, from the rows of `placed_sql`: one row for each group that is not empty.

    room: how many bytes this may take. stopped: whether the question is to end. None where that room might not do (a
    unit with very many rows needs more of it than others), or a sum might not fit in 64 bits.

    Raises Stopped where the question was to end.
    """
    measured = [m for m in plan.measurements if summed(m)]
    totals = _Totals(plan.group_count or 0, len(measured))
    at_once = os.cpu_count() or 1
    parts = _parts(batches, room, stopped)
    if parts is None or _need(parts, at_once) > room:
        return None

    def work(part: _Rows) -> tuple[Integers, list[Integers]] | None:
        return None if stopped() else _part(part, plan, measured)

    with ThreadPoolExecutor(at_once) as threads:
        try:
            for counted in threads.map(work, parts):
                _unless(stopped)
                if counted is None:
                    return None
                totals.add(*counted)
        finally:
            threads.shutdown(cancel_futures=True)
    sizes = [len(d) for d in plan.domains if d is not None]
    at = np.flatnonzero(totals.pairs)
    keys = [k.tolist() for k in np.unravel_index(at, sizes)]
    return list(zip(*keys, *(totals.whole(i, at) for i in range(len(measured))), strict=True))


class Stopped(Exception):
    """The question was to end."""


def _unless(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Stopped


class _Totals:
    """Sums over units by group, in limbs."""

    def __init__(self, groups: int, measurements: int) -> None:
        self.groups = groups
        self.pairs = np.zeros(groups, np.int64)
        self.limbs: list[dict[int, Integers]] = [{} for _ in range(measurements)]

    def add(self, group: Integers, parts: Sequence[Integers]) -> None:
        """group: that of each pair. parts: each pair's part of each measurement."""
        self.pairs += np.bincount(group, minlength=self.groups)
        for limbs, part in zip(self.limbs, parts, strict=True):
            for shift, limb in _limbs(part):
                added = np.bincount(group, limb, self.groups).astype(np.int64)
                limbs[shift] = limbs[shift] + added if shift in limbs else added

    def whole(self, i: int, at: Integers) -> list[int]:
        """The sums of one measurement in the groups `at`, as numbers of any size."""
        numbers = [0] * len(at)
        for shift, limb in self.limbs[i].items():
            numbers = [total + (value << shift) for total, value in zip(numbers, limb[at].tolist(), strict=True)]
        return numbers


def _limbs(part: Integers) -> Iterator[tuple[int, Integers]]:
    """Numbers as limbs: the highest one has the sign, so their sum is the number."""
    shift = 0
    while part.size and (part.min() < -(1 << LIMB) or part.max() > 1 << LIMB):
        yield shift, part & ((1 << LIMB) - 1)
        part = part >> LIMB
        shift += LIMB
    yield shift, part


Columns = tuple[Integers, ...]
"""Rows as columns: unit, group, hash, then the integers."""


@dataclass(frozen=True)
class _Rows:
    """All rows of some units, in pieces. split: how many of the highest bits of the mixed unit they share."""

    pieces: list[Columns]
    split: int = 0

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for columns in self.pieces for column in columns)

    def taken(self) -> Columns:
        """The rows in one piece; the pieces are let go."""
        columns = list(zip(*self.pieces, strict=True))
        self.pieces.clear()
        return tuple(np.concatenate(c) for c in columns)


def _mixed(unit: Integers) -> npt.NDArray[np.uint64]:
    return unit.astype(np.int64 if unit.dtype.kind == "i" else np.uint64, copy=False).view(np.uint64) * ODD


def _parts(batches: Iterable[pa.RecordBatch], room: int, stopped: Callable[[], bool]) -> list[_Rows] | None:
    """The rows of a few units each, all rows of a unit in one part; None where they take more than `room` bytes."""
    stream = (tuple(c.to_numpy(zero_copy_only=False) for c in batch.columns) for batch in batches)
    first, rows, held = [], 0, 0
    for columns in stream:
        _unless(stopped)
        first.append(columns)
        rows += len(columns[0])
        if rows > FEW_ROWS:
            break
    if rows <= FEW_ROWS:
        return [_Rows(first)] if rows else []
    parts = [_Rows([], PARTS.bit_length() - 1) for _ in range(PARTS)]
    for columns in itertools.chain(first, stream):
        _unless(stopped)
        held += sum(c.nbytes for c in columns)
        if held > room:
            return None
        for part, piece in zip(parts, _cut(columns), strict=True):
            if len(piece[0]):
                part.pieces.append(piece)
    return parts


def _need(parts: Sequence[_Rows], at_once: int) -> int:
    """The bytes that parts take while they are worked on: what they hold, and the largest ones' numbers beside."""
    sizes = sorted((part.nbytes for part in parts), reverse=True)
    return sum(sizes) + BESIDE * sum(sizes[:at_once])


def _cut(columns: Columns) -> Iterator[Columns]:
    """Rows by the highest bits of their mixed unit."""
    part = (_mixed(columns[0]) >> np.uint64(64 - (PARTS.bit_length() - 1))).astype(np.uint8)
    order = np.argsort(part, kind="stable")  # of 8 bits: a radix sort
    ends = np.cumsum(np.bincount(part, minlength=PARTS)).tolist()
    ordered = [c[order] for c in columns]
    for start, end in itertools.pairwise([0, *ends]):
        yield tuple(c[start:end] for c in ordered)


def _order(unit: Integers, group: Integers, hashed: Integers, split: int) -> Integers:
    """The places of rows in the order (unit, hash, group), units in the order of their mixes."""
    n = len(unit)
    place_bits = max(1, (n - 1).bit_length())
    unit_bits = (64 - place_bits) * 5 // 8
    hash_bits = 64 - place_bits - unit_bits
    low = np.uint64(64 - unit_bits)
    key = (_mixed(unit) << np.uint64(split)) >> low << low
    key |= hashed >> np.uint64(64 - hash_bits) << np.uint64(place_bits)
    key |= np.arange(n, dtype=np.uint64)
    key.sort()
    order = (key & np.uint64((1 << place_bits) - 1)).astype(np.int64)
    # Where two units share their bits, all their rows are sorted again; where two groups of one unit do, theirs.
    at_unit = key >> low
    key >>= np.uint64(place_bits)
    u, g = unit[order], group[order]
    same_unit, same_bits = at_unit[1:] == at_unit[:-1], key[1:] == key[:-1]
    two_units = same_unit & (u[1:] != u[:-1])
    two_groups = same_bits & (g[1:] != g[:-1])
    if two_units.any() or two_groups.any():
        of_unit, of_bits = _runs(same_unit), _runs(same_bits)
        units_again = _marked(of_unit, two_units)
        at = np.flatnonzero(units_again | _marked(of_bits, two_groups))
        inside = order[at]
        block = np.where(units_again[at], of_bits[np.searchsorted(of_unit, of_unit[at])], of_bits[at])
        order[at] = inside[np.lexsort((group[inside], hashed[inside], unit[inside], block))]
    return order


def _runs(same: Integers) -> Integers:
    """The number of each row's run. same: whether a row, from the second on, is in the run of the one before."""
    return np.concatenate([[0], np.cumsum(~same)])


def _marked(run: Integers, mixed: Integers) -> Integers:
    """The rows of the runs in which two neighbours are mixed."""
    starts = np.zeros(run[-1] + 1, bool)
    starts[run[1:][mixed]] = True
    return starts[run]


def _part(rows: _Rows, plan: Plan, measured: Sequence[Measurement]) -> tuple[Integers, list[Integers]] | None:
    """The group of each pair of a unit and a group that counts, and the pair's bounded part of each measurement.

    None where a sum over a pair's rows might not fit in 64 bits.
    """
    if not rows.pieces:
        return np.zeros(0, np.int64), [np.zeros(0, np.int64) for _ in measured]
    unit, group, hashed, *integers = rows.taken()
    order = _order(unit, group, hashed, rows.split)
    u, g = unit[order], group[order]
    new_unit = np.concatenate([[True], u[1:] != u[:-1]])
    new_pair = new_unit.copy()
    new_pair[1:] |= g[1:] != g[:-1]
    starts = np.flatnonzero(new_pair)
    first = new_unit[starts]
    numbers = np.arange(len(starts))
    keep = numbers - np.maximum.accumulate(np.where(first, numbers, 0)) < plan.bounds.groups
    counts = np.diff(starts, append=len(u))
    if int(counts.max()) * max(1, *(max(-m.low, m.high) for m in measured)) >= 2**62:
        return None
    columns = iter(c[order] for c in integers)
    parts = []
    for m in measured:
        total, count = None, counts
        if m.counting in (MeasurementKind.SUM, MeasurementKind.PRODUCT):
            total = np.add.reduceat(next(columns), starts, dtype=np.int64)[keep]
        if may_be_missing(m):
            count = np.add.reduceat(next(columns), starts, dtype=np.int64)
        parts.append(_bounded(m, plan.bounds.rows, count[keep], total))
    return g[starts[keep]], parts


def _bounded(measurement: Measurement, rows: int, count: Integers, total: Integers | None) -> Integers:
    """What pairs count with, of their count of values and their sum."""
    if total is None:
        return np.minimum(count, 1 if measurement.counting is MeasurementKind.UNITS else rows)
    over = count > rows
    n, size = count[over], np.abs(total[over])
    whole, rest = np.divmod(size, n)  # size * rows // n, without a number that is larger than the result
    total[over] = np.sign(total[over]) * (whole * rows + rest * rows // n)
    return total
