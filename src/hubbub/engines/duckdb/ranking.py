"""A unit's groups ranked, and its rows in each bounded, in this process: the embedded engine's way for large tables.

The text of `hubbub.sql.emit.ranked.ranked_sql` gives one row for each row that counts. What `aggregate_sql` then does
with a hash table for every pair of unit and group, and a window over the pairs, and `listed_sql` with a window over all
values, is done here with one sort for all measurements together: rows are cut into parts by unit
(`hubbub.engines.duckdb.pieces`), and the rows of a part are put in the order (unit, hash, group). Then the rows of a
pair stand together, the pairs of a unit stand in the order of their ranks, and the first C of them count.

The sort is of one 64-bit number for each row: bits of a mix of the unit, bits of the hash, the row's place; or, where
all rows are of one group, of 32 bits of the mix. Units or groups that share their bits are found by comparing
neighbours, and put in order by all of what they are: so the order is a function of (unit, hash, group) alone, and the
answer that of the SQL text, integer by integer. Rows of one pair are only added up, so their order does not matter.

Of values that are listed, a pair with R or fewer counts with all of them, and one with more with the first R in the
order of (hash of the value, value), which is what the text's window keeps. That order is one of the steps of a grid,
of which there are few: the engine tells it once (`Places`), and rows are sorted by (pair, place in it).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hubbub.engines.duckdb.pieces import Keys, Layout, Pieces, Stopped, mixed, parts_of
from hubbub.engines.duckdb.room import Share
from hubbub.engines.exact import Histogram
from hubbub.sql.emit.plan import summed
from hubbub.sql.emit.ranked import columns_of_rows
from hubbub.tables.measure import Measurement, MeasurementKind, Value
from hubbub.tables.plan import Plan

__all__ = ["Answers", "Places", "bounded", "has_long_keys"]

Integers = npt.NDArray[Any]

BESIDE = 7
"""How many times its own size a part takes at most while it is sorted, as measured for one unit with all rows."""

LARGEST = 1 << 22
"""Rows of a part. One unit with more is left to the engine: no sort goes on for long after the question was stopped."""

LIMB = 22
"""Sums over units are kept in limbs of so many bits, each added up without rounding by `bincount`: below 2^31 pairs."""

TALLIED = 1 << 24
"""Steps of all groups together that are counted in a table with a place for each; more are sorted."""


SHORT = 256
"""Bytes of a key that is a text. A longer one would be written out for each of its rows, however few bytes they take
where they come from: in memory of this process, of which nobody has an account."""


def has_long_keys(cursor: Any, text: str, kinds: Sequence[str]) -> bool:
    """Whether a row of `ranked_sql` has a key that is a longer text than `SHORT`. kinds: the types of the keys."""
    texts = [f"max(strlen(g{i}))" for i, kind in enumerate(kinds) if kind == "VARCHAR"]
    longest = cursor.sql(f"SELECT {', '.join(texts)} FROM ({text})").fetchall() if texts else []
    return any(length is not None and length > SHORT for row in longest for length in row)


@dataclass(frozen=True)
class Answers:
    """What the texts of a plan answer: the rows of `aggregate_sql`, and by measurement what `listed_sql` lists."""

    sums: list[tuple[Any, ...]]
    lists: Mapping[int, Histogram]


class Places:
    """Of each step from `floor` on, its place in the order in which a unit's values are kept."""

    def __init__(self, floor: int, hashed: Integers) -> None:
        """hashed: the hash of each step, the first that of `floor`."""
        self.floor = floor
        # Of equal hashes the smaller step comes first, as in `ORDER BY hash(x), x`.
        self.steps = np.argsort(hashed, kind="stable").astype(np.int64)
        self.place = np.empty(len(hashed), np.int64)
        self.place[self.steps] = np.arange(len(hashed))
        self.bits = max(1, (len(hashed) - 1).bit_length())


def bounded(
    batches: Iterable[pa.RecordBatch],
    plan: Plan,
    share: Share,
    places: Callable[[Value], Places],
    stopped: Callable[[], bool] = lambda: False,
) -> Answers | None:
    """What the texts answer, from the rows of `ranked_sql`.

    share: of the memory that this may take. stopped: whether the question is to end. None where the room does not do
    (a unit with very many rows needs more of it than others), a sum might not fit in 64 bits, or more groups are found
    than are numbered here.

    Raises Stopped where the question was to end.
    """
    try:
        return _bounded(batches, plan, share, places, stopped)
    except MemoryError:
        return None


def _bounded(
    batches: Iterable[pa.RecordBatch],
    plan: Plan,
    share: Share,
    places: Callable[[Value], Places],
    stopped: Callable[[], bool],
) -> Answers | None:
    keys = Keys() if plan.private_keys else None
    parts = parts_of(batches, columns_of_rows(plan), keys, share, stopped)
    at_once = os.cpu_count() or 1
    if parts is None or max((part.rows for part in parts), default=0) > LARGEST:
        return None
    if not share.holds(_need(parts, at_once)):
        return None
    names, order = keys.ordered() if keys is not None else (None, None)
    work = _Work(plan, len(names) if names is not None else plan.group_count or 0, order, places)
    totals = _Sum(work)
    with ThreadPoolExecutor(at_once) as threads:
        try:
            for counted in threads.map(lambda part: None if stopped() else work.of(part), parts):
                if stopped():
                    raise Stopped
                if counted is None or not totals.add(counted):
                    return None
        finally:
            threads.shutdown(cancel_futures=True)
    return totals.answers(plan, names)


def _need(parts: Sequence[Pieces], at_once: int) -> int:
    """The bytes that parts take while they are worked on: what they hold, and the largest ones' numbers beside."""
    sizes = sorted((part.nbytes for part in parts), reverse=True)
    return sum(sizes) + BESIDE * sum(sizes[:at_once])


@dataclass(frozen=True)
class _Counted:
    """What a part adds: how many pairs that count each group has, their bounded parts of each sum in limbs, and of each
    list the codes of the values that count. sums: None where one might not fit in 64 bits."""

    pairs: Integers
    sums: list[list[tuple[int, Integers]]] | None
    lists: list[Integers]


class _Work:
    """What is done with each part. order: the place of each number of a group that is found privately."""

    def __init__(self, plan: Plan, groups: int, order: Integers | None, places: Callable[[Value], Places]) -> None:
        self.plan, self.groups, self.order = plan, groups, order
        self.sums = [m for m in plan.measurements if summed(m)]
        self.lists = {i: m for i, m in enumerate(plan.measurements) if m.counting is MeasurementKind.QUANTILES}
        self.places = [places(m.values[0]) for m in self.lists.values()]

    def of(self, pieces: Pieces) -> _Counted:
        """What a part adds."""
        if not pieces.rows:
            return _Counted(np.zeros(self.groups, np.int64), [[] for _ in self.sums], [])
        rows = _Rows(pieces, self.plan, self.order)
        group = rows.group[rows.starts[rows.keep]]
        sums = [list(self._by_group(group, rows.sum(m))) for m in self.sums] if rows.fits(self.sums) else None
        lists = [rows.listed(m.values[0], p) for m, p in zip(self.lists.values(), self.places, strict=True)]
        return _Counted(np.bincount(group, minlength=self.groups), sums, lists)

    def _by_group(self, group: Integers, part: Integers) -> Iterator[tuple[int, Integers]]:
        """The limbs of sums by group."""
        for shift, limb in _limbs(part):
            if self.groups == 1:  # below 2^53 as everywhere, and quicker
                yield shift, limb.sum(keepdims=True)
            else:
                yield shift, np.bincount(group, limb, self.groups).astype(np.int64)


class _Rows:
    """The rows of a part in order, with their pairs of a unit and a group.

    starts: the first row of each pair. counts: its rows. keep: whether it is one that counts.
    """

    def __init__(self, pieces: Pieces, plan: Plan, order: Integers | None) -> None:
        what = columns_of_rows(plan)
        self._limit, self._layout = plan.bounds.rows, Layout(what)
        split, (unit, group, *columns) = pieces.taken()
        group = group if order is None else order[group]
        # Where no groups are ranked, any order of a unit's groups will do: that of their numbers.
        hashed = columns.pop(0) if what.hashed else group.astype(np.uint64) << np.uint64(44) if what.keys else None
        self._columns, self._ordered = columns, dict[int, Integers]()
        self._order, unit = _order(unit, group, hashed, split)
        self.group = group[self._order] if what.keys else group
        new_unit = _new(unit)
        self._new_pair = new_unit | _new(self.group) if what.keys else new_unit
        self.starts = np.flatnonzero(self._new_pair)
        self.counts = np.diff(self.starts, append=len(unit))
        numbers = np.arange(len(self.starts))
        self.keep = np.ones(len(numbers), np.bool_)
        if what.hashed:
            first = np.maximum.accumulate(np.where(new_unit[self.starts], numbers, 0))
            self.keep = numbers - first < plan.bounds.groups
        self._numbers: dict[int | None, Integers] = {None: self.counts[self.keep]}

    def fits(self, measured: Sequence[Measurement]) -> bool:
        """Whether a sum of a pair's rows is below 2^62 whatever they are."""
        largest = max((max(-m.low, m.high) for m in measured), default=1)
        return int(self.counts.max()) * max(1, largest) < 2**62

    def sum(self, measurement: Measurement) -> Integers:
        """The bounded part of a measurement that each pair that counts has."""
        if not measurement.values:
            argument = measurement.argument
            there = None if argument is None else self._layout.there.get(argument)
            return _bounded_part(measurement, self._limit, self._count(there), None)
        at = [self._layout.values[v] for v in measurement.values]
        whole = self._column(at[0][0])
        if measurement.counting is MeasurementKind.PRODUCT:
            whole = np.multiply(whole, self._column(at[1][0]), dtype=np.int64)
            # Shifting a number with a sign rounds toward minus infinity, as the text does.
            whole >>= measurement.shift
            whole -= measurement.centre
        pairs = zip(at, measurement.values, strict=True)
        masks = sorted({mask for (_, mask), value in pairs if value.nullable and self._misses(mask)})
        count = self._count(masks[0] if masks else None)
        if len(masks) == 2:
            both = self._column(masks[0]) & self._column(masks[1])
            count, whole = self._total(both), np.where(both, whole, 0)
        elif masks and measurement.counting is MeasurementKind.PRODUCT:
            whole = np.where(self._column(masks[0]), whole, 0)
        return _bounded_part(measurement, self._limit, count, self._total(whole))

    def _misses(self, mask: int | None) -> TypeGuard[int]:
        """Whether in some row what a column tells of is not there."""
        return mask is not None and not self._columns[mask].all()

    def _column(self, at: int) -> Integers:
        """A column in order."""
        if at not in self._ordered:
            self._ordered[at] = self._columns[at][self._order]
        return self._ordered[at]

    def _total(self, rows: Integers) -> Integers:
        return np.add.reduceat(rows, self.starts, dtype=np.int64)[self.keep]

    def _count(self, mask: int | None) -> Integers:
        """How many rows of each pair that counts there are, or have what a column of 1 and 0 tells; each once."""
        if mask not in self._numbers and self._misses(mask):
            self._numbers[mask] = self._total(self._column(mask))
        return self._numbers.get(mask, self._numbers[None])

    def listed(self, value: Value, places: Places) -> Integers:
        """The codes of the values that count: the group times the number of steps, and the step above the floor."""
        whole, mask = self._layout.values[value]
        rows = self._keep_rows
        if value.nullable and self._misses(mask):
            rows = rows & self._column(mask)
        pair = self._pair[rows]
        step = self._column(whole)[rows].astype(np.int64) - value.low
        count = np.bincount(pair, minlength=len(self.starts))
        if count.max() <= self._limit:
            return self._coded(pair, step, places)
        over = (count > self._limit)[pair]
        key = pair[over] << places.bits | places.place[step[over]]
        key.sort()
        pairs = key >> places.bits
        numbers = np.arange(len(pairs))
        first = np.maximum.accumulate(np.where(np.concatenate([[True], pairs[1:] != pairs[:-1]]), numbers, 0))
        kept = numbers - first < self._limit
        chosen = self._coded(pairs[kept], places.steps[key[kept] & ((1 << places.bits) - 1)], places)
        return np.concatenate([self._coded(pair[~over], step[~over], places), chosen])

    @cached_property
    def _pair(self) -> Integers:
        """The number of each row's pair."""
        return np.cumsum(self._new_pair) - 1

    @cached_property
    def _keep_rows(self) -> Integers:
        return self.keep[self._pair]

    def _coded(self, pair: Integers, step: Integers, places: Places) -> Integers:
        return self.group[self.starts[pair]].astype(np.int64) * len(places.place) + step


def _order(unit: Integers, group: Integers, hashed: Integers | None, split: int) -> tuple[Integers, Integers]:
    """The places of rows in the order (unit, hash, group), units in the order of their mixes; and the units in it.

    hashed: None where all rows are of one group.
    """
    n = len(unit)
    place_bits = max(1, (n - 1).bit_length())
    hash_bits = 0 if hashed is None else 64 - place_bits - (64 - place_bits) * 5 // 8
    low = np.uint64(place_bits + hash_bits if hash_bits else 32)
    key = mixed(unit)
    key <<= np.uint64(split)
    key >>= low
    key <<= low
    if hashed is None:
        order = _by_unit(key)
        key = key[order]
    else:
        key |= hashed >> np.uint64(64 - hash_bits) << np.uint64(place_bits)
        key |= np.arange(n, dtype=np.uint64)
        key.sort()
        order = (key & np.uint64((1 << place_bits) - 1)).view(np.int64)
    # Where two units share their bits, all their rows are sorted again; where two groups of one unit do, theirs.
    differ = key[1:] ^ key[:-1]
    same_unit, same_bits = differ < np.uint64(1) << low, differ < np.uint64(1 << place_bits)
    ordered = unit[order]
    two_units = same_unit & (ordered[1:] != ordered[:-1])
    two_groups = same_bits & _new(group[order])[1:] if hashed is not None else np.zeros(0, np.bool_)
    if two_units.any() or two_groups.any():
        of_unit, of_bits = _runs(same_unit), _runs(same_bits)
        again = _marked(of_unit, two_units)
        at = np.flatnonzero(again | _marked(of_bits, two_groups) if hashed is not None else again)
        inside = order[at]
        block = np.where(again[at], of_bits[np.searchsorted(of_unit, of_unit[at])], of_bits[at])
        ranked = () if hashed is None else (group[inside], hashed[inside])
        order[at] = inside[np.lexsort((*ranked, unit[inside], block))]
        ordered[at] = unit[order[at]]
    return order, ordered


def _by_unit(key: Integers) -> Integers:
    """The places of numbers of 64 bits in the order of the highest 32; those that share them as they stood.

    Sixteen bits at a time, the lower ones first: numbers of 16 bits numpy sorts by counting, in half the time.
    """
    order = np.argsort((key >> np.uint64(32)).astype(np.uint16), kind="stable")
    return order[np.argsort((key >> np.uint64(48)).astype(np.uint16)[order], kind="stable")]


def _new(ordered: Integers) -> Integers:
    """Whether each is another than the one before."""
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _runs(same: Integers) -> Integers:
    """The number of each row's run. same: whether a row, from the second on, is in the run of the one before."""
    return np.concatenate([[0], np.cumsum(~same)])


def _marked(run: Integers, mixed: Integers) -> Integers:
    """The rows of the runs in which two neighbours are mixed."""
    starts = np.zeros(len(run), bool)
    starts[run[1:][mixed]] = True
    return starts[run]


def _bounded_part(measurement: Measurement, rows: int, count: Integers, total: Integers | None) -> Integers:
    """What pairs count with, of their count of values and their sum."""
    if total is None:
        return np.minimum(count, 1 if measurement.counting is MeasurementKind.UNITS else rows)
    if measurement.cap:
        return np.minimum(total, measurement.cap)
    over = np.flatnonzero(count > rows)
    n, size = count[over], np.abs(total[over])
    if int(size.max(initial=0)) * rows < 2**63:
        part = size * rows // n
    else:  # without a number that is larger than the result
        whole, rest = np.divmod(size, n)
        part = whole * rows + rest * rows // n
    total[over] = np.sign(total[over]) * part
    return total


class _Sum:
    """What all parts add up to, by group: sums over units, in limbs, and how often each step is there."""

    def __init__(self, work: _Work) -> None:
        self.groups, self._work = work.groups, work
        self.pairs = np.zeros(work.groups, np.int64)
        self.limbs: list[dict[int, Integers]] = [{} for _ in work.sums]
        self.codes: list[list[Integers]] = [[] for _ in work.lists]

    def add(self, counted: _Counted) -> bool:
        """Whether the part's sums were such that they could be added."""
        if counted.sums is None:
            return False
        self.pairs += counted.pairs
        for limbs, parts in zip(self.limbs, counted.sums, strict=True):
            for shift, added in parts:
                limbs[shift] = limbs[shift] + added if shift in limbs else added
        for codes, more in zip(self.codes, counted.lists, strict=False):
            codes.append(more)
        return True

    def answers(self, plan: Plan, names: list[tuple[Any, ...]] | None) -> Answers:
        """What the texts answer. names: of groups that are found privately."""
        at = np.flatnonzero(self.pairs)
        if names is None:
            sizes = [len(d) for d in plan.domains if d is not None]
            keys = list(zip(*(k.tolist() for k in np.unravel_index(at, sizes)), strict=True)) if sizes else [()]
        else:
            keys = [names[i] for i in at.tolist()]
        values = [self._whole(limbs, at) for limbs in self.limbs]
        rows = [(*key, *parts) for key, *parts in zip(keys, *values, strict=True)] if len(at) else []
        tallies = zip(self._work.lists, self._work.places, self.codes, strict=True)
        return Answers(rows, {i: self._histogram(places, codes, names) for i, places, codes in tallies})

    def _whole(self, limbs: Mapping[int, Integers], at: Integers) -> list[int]:
        """Sums in the groups `at`, as numbers of any size."""
        numbers = [0] * len(at)
        for shift, limb in limbs.items():
            numbers = [total + (value << shift) for total, value in zip(numbers, limb[at].tolist(), strict=True)]
        return numbers

    def _histogram(self, places: Places, codes: list[Integers], names: list[tuple[Any, ...]] | None) -> Histogram:
        every = np.concatenate(codes) if codes else np.zeros(0, np.int64)
        codes.clear()
        width = len(places.place)
        if self.groups * width <= TALLIED:
            tally = np.bincount(every, minlength=1)
            code = np.flatnonzero(tally)
            counts = tally[code]
        else:
            code, counts = np.unique(every, return_counts=True)
        return Histogram(code // width, code % width + places.floor, counts, names)


def _limbs(part: Integers) -> Iterator[tuple[int, Integers]]:
    """Numbers as limbs: the highest one has the sign, so their sum is the number."""
    shift = 0
    while part.size and (part.min() < -(1 << LIMB) or part.max() > 1 << LIMB):
        yield shift, part & ((1 << LIMB) - 1)
        part = part >> LIMB
        shift += LIMB
    yield shift, part
