"""From noisy estimates to the rows of an answer, and to what the answer would be for other draws of the noise.

A statement's private aggregates become the tables `released0`, `released1`, ... : a row for each group, with the
columns `place`, `k0`, `k1`, ... (keys), `a0`, `a1`, ... (aggregates) and, where there are several groupings, `g0`, ...
(1 where a row sums over the key). Its outer part is SQL over these.

Other draws. An estimate is truth plus noise whose law is known. The estimate less another draw of the noise is
distributed around the truth as the estimate is (the noise is symmetric), so that the quantiles of what the outer part
makes of such draws are an interval for what it would make of the truth, if that is linear. Of a maximum, a distance or
a square it is not: such draws lie to one side of the estimate, as the estimate does of the truth, and miss the truth on
the other. So an interval reaches as far to either side of the estimate as those quantiles do to one (`around`); where
it is linear they are the same, but for chance. Where the outer part is row by row one SQL
statement computes all draws; where it is more (joins of releases, windows, another GROUP BY) it runs once for each
draw, and rows are told apart by their exact columns.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hubbub.answer.intervals import around, in_years
from hubbub.engines.displayable import shown
from hubbub.errors import QueryError
from hubbub.late import late
from hubbub.tables.aggregate_query import Aggregate, AggregateQuery, Key, Statement
from hubbub.tables.aggregates import Listed
from hubbub.tables.estimates import Estimates
from hubbub.tables.functions import DAY
from hubbub.tables.kinds import TEMPORAL
from hubbub.tables.left_out import left_out

if TYPE_CHECKING:
    from hubbub.noise import Bits

__all__ = ["Draws", "EvaluatedStatement", "OuterPart", "after_stopping", "as_column", "floats"]

pc = late("pyarrow.compute")
relations = late("hubbub.engines.duckdb.relations")  # who reads a sent answer needs no engine

Floats: TypeAlias = NDArray[np.float64]

CELLS = 2_000_000
"""At most so many cells are simulated at once."""

HEDGE = 1.5
"""After stopping an interval misses at most so many times as often as it says."""

REPEATED = 300
"""How often an outer part that is not row by row is run again. Not for a time: no two runs take the same."""

FEWEST = 50
"""Fewer draws than so many, because an outer part is slow, give no intervals."""


class OuterPart(Protocol):
    """What runs the outer part: SQL over releases and public tables, in an engine that holds nothing else."""

    def run(self, sql: str, tables: tuple[str, ...], released: Mapping[str, Any]) -> Any: ...

    def open(self, tables: tuple[str, ...], released: Mapping[str, Any]) -> Any: ...


class Wider(Protocol):
    """How much wider intervals are that hold the total (`hubbub.session.total_error`)."""

    def extra(self, question: int, at: int, aggregate: Aggregate, level: float) -> tuple[float, float]: ...

    @property
    def lines(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Draws:
    """Other draws of an answer. columns: [draw][row] for each noisy column, NaN for NULL or a row that is not there."""

    columns: Mapping[int, Floats]


@dataclass(frozen=True)
class EvaluatedStatement:
    """A statement with what was drawn for it.

    estimates: by question, then by grouping (the order of `AggregateQuery.sets`). stopped: whether it was drawn until
    it looked good enough: intervals are then computed at a higher level (`hubbub.session.looks`). total: how much wider
    intervals are that hold what bounding left out, too.
    """

    statement: Statement
    estimates: tuple[tuple[Estimates, ...], ...]
    outer: OuterPart = field(repr=False, compare=False)
    bits: Bits | None = field(default=None, repr=False, compare=False)
    stopped: bool = False
    total: Wider | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _answer(self) -> tuple[pa.Table, NDArray[np.int64] | None]:
        answer = self.outer.run(self.statement.sql, self.statement.public, self.releases)
        places = None
        if self.statement.rowwise is not None:
            places = answer.column(answer.num_columns - 1).to_numpy().astype(np.int64)
        names = [o.name for o in self.statement.outputs]
        columns = [
            (_exactly if output.exact else _usual)(answer.column(i)) for i, output in enumerate(self.statement.outputs)
        ]
        return pa.table(columns, names=names), places

    @property
    def releases(self) -> dict[str, pa.Table]:
        """The tables `released0`, ... of the questions that were drawn."""
        return {f"released{i}": table for i, table in enumerate(self._tables)}

    @cached_property
    def _tables(self) -> list[pa.Table]:
        return [self._released(i) for i in range(len(self.estimates))]

    @property
    def table(self) -> pa.Table:
        """The rows of the answer."""
        return self._answer[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.statement.outputs)

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """The positions of the exact columns, by which rows are told apart."""
        return tuple(i for i in range(len(self.names)) if not self._noisy[i])

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The positions of the noisy columns that are numbers, dates, times, or lengths of time."""
        types = [self.table.column(i).type for i in range(len(self.names))]
        measured = (i for i, kind in enumerate(types) if self._noisy[i] and (_is_number(kind) or _is_time(kind)))
        return tuple(i for i in measured if i not in self.choices)

    @cached_property
    def choices(self) -> frozenset[int]:
        """The positions of the columns that hand on a choice, or its place, which has no interval."""
        return frozenset(i for i, o in enumerate(self.statement.outputs) if any(_chosen(a) for _, a in o.cells))

    @property
    def promises(self) -> tuple[str, ...]:
        """How good choices are."""
        return tuple(dict.fromkeys(note for plans in self.estimates for plan in plans for note in plan.notes))

    @property
    def bounded(self) -> tuple[str, ...]:
        """What of one unit is in the answer, and that its error bars do not hold the rest."""
        if self.total is not None:
            return self.total.lines
        plans = (release.plan for releases in self.estimates for release in releases)
        return tuple(dict.fromkeys(said for said in map(left_out, plans) if said is not None))

    @cached_property
    def ranges(self) -> Mapping[int, tuple[float, float]]:
        """The positions of the columns that hand on quantiles of one argument, with the range they were drawn in."""
        ranges = {}
        for i in self.numbers:
            cells = self.statement.outputs[i].cells
            known = {self._range(q, a) for q, a in cells if isinstance(a.function, Listed)}
            if len(known) == 1 and all(isinstance(a.function, Listed) for _, a in cells):
                ranges[i] = known.pop()
        return ranges

    def _range(self, question: int, aggregate: Aggregate) -> tuple[float, float]:
        value = self.estimates[question][0].plan.measurement_of(aggregate)[0].values[0]
        low, high = value.numbers(np.array([value.floor, value.ceiling], np.float64))
        return float(low), float(high)

    @cached_property
    def _noisy(self) -> list[bool]:
        outputs = self.statement.outputs
        if self.statement.rowwise is not None:
            return [not o.exact for o in outputs]
        types = [self.table.column(i).type for i in range(len(self.names))]
        timed = any(a.kind in TEMPORAL for q in self.statement.questions for a in q.aggregates)
        measured = [_is_number(t) or (timed and _is_time(t)) for t in types]
        return [
            (m or i in self.choices) and not o.exact and (bool(o.cells) or o.noisy or not self._is_key(i))
            for i, (m, o) in enumerate(zip(measured, outputs, strict=True))
        ]

    def _is_key(self, i: int) -> bool:
        """Whether a column of whole numbers, dates or times holds nothing but values of one key, no measured ones."""
        column = self.table.column(i)
        if not (pa.types.is_integer(column.type) or _is_time(column.type)):
            return False
        keys = [k for e in self.estimates for plan in e for k in _whole_keys(plan)]
        values = set(column.to_pylist())
        return bool(values) and any(values <= k for k in keys)

    def ends(self, i: int, level: float) -> tuple[Floats, Floats] | None:
        """The ends of the intervals of a noisy column; None for an exact one."""
        if i not in self.numbers:
            return None
        level = after_stopping(level) if self.stopped else level
        output, places = self.statement.outputs[i], self._answer[1]
        if places is not None and isinstance(output.what, Aggregate):
            both = self._intervals(output.question, output.what, level)
            low, high = (np.concatenate([b[k] for b in both])[places] for k in (0, 1))
            return low, high
        own = self._handed_on(i, level) if output.cells else None
        if own is not None:
            return own
        column = self.table.column(i)
        return in_years(column.type, *around(floats(column), self.draws().columns[i], level))

    def _intervals(self, question: int, aggregate: Aggregate, level: float) -> list[tuple[Floats, Floats]]:
        """The intervals of an aggregate, plan by plan; of the total where that is wanted, noise and rest at a half."""
        plans = self.estimates[question]
        if self.total is None:
            return [plan.intervals(aggregate, level) for plan in plans]
        wider = []
        for at, plan in enumerate(plans):
            low, high = plan.intervals(aggregate, 1 - (1 - level) / 2)
            down, up = self.total.extra(question, at, aggregate, level)
            wider.append((low - down, high + up))
        return wider

    def _handed_on(self, i: int, level: float) -> tuple[Floats, Floats] | None:
        """The intervals of a column that hands on released values: of each value, those of the estimates that it may
        be, taken together. None where a value is not such an estimate.

        Which row of the release a row of the answer is need not be known: equal counts and equal sums have equal
        intervals, and of other aggregates that are equal the union holds the truth of each.
        """
        known, ends = [], []
        for number, aggregate in self.statement.outputs[i].cells:
            place = self.statement.questions[number].aggregates.index(aggregate)
            known.append(floats(self._tables[number].column(f"a{place}")))
            ends += [np.stack(both) for both in self._intervals(number, aggregate, level)]
        estimates, (low, high) = np.concatenate(known), np.concatenate(ends, axis=1)
        there = ~np.isnan(estimates)
        values, at = np.unique(estimates[there], return_inverse=True)
        least, most = np.full(len(values), np.inf), np.full(len(values), -np.inf)
        np.minimum.at(least, at, low[there])
        np.maximum.at(most, at, high[there])
        answer = floats(self.table.column(i))
        answered = np.flatnonzero(~np.isnan(answer))
        places = np.searchsorted(values, answer[answered])
        if (places == len(values)).any() or (values[places] != answer[answered]).any():
            return None
        both = np.full((2, len(answer)), np.nan)
        both[:, answered] = least[places], most[places]
        return both[0], both[1]

    def draws(self, n: int | None = None) -> Draws:
        """`n` other draws of the whole answer, its columns drawn together.

        Fewer where the outer part is run again for each and that takes too long: one, of NULLs, if below `FEWEST`.
        """
        if n is None:
            return self._kept
        return self._rowwise(n) if self.statement.rowwise is not None else self._repeated(n)

    @cached_property
    def _kept(self) -> Draws:
        rows = max(1, self.table.num_rows)
        if self.statement.rowwise is not None:
            return self._rowwise(max(200, min(20_000, CELLS // rows)))
        size = max(1, sum(plan.size for every in self.estimates for plan in every))
        return self._repeated(max(FEWEST, min(REPEATED, CELLS // size)))

    def _rowwise(self, n: int) -> Draws:
        places = self._answer[1]
        assert places is not None
        assert self.statement.rowwise is not None
        if not len(places):
            return Draws({i: np.zeros((n, 0)) for i in self.numbers})
        number = self.statement.outputs[0].question
        seen = np.sort(places)
        name = f"released{number}"
        table = self._redrawn(number, n, seen)
        answer = self.outer.run(self.statement.rowwise, self.statement.public, {name: table})
        order = np.argsort(np.argsort(places))
        return Draws({i: floats(answer.column(i)).reshape(n, len(places))[:, order] for i in self.numbers})

    def _repeated(self, n: int) -> Draws:
        rows = self.table.num_rows
        columns = {i: np.full((n, rows), np.nan) for i in self.numbers}
        at = {key: row for row, key in enumerate(_keys(self.table, self.keys))}
        tables = {
            f"drawn{i}": self._redrawn(i, n, np.arange(sum(p.size for p in plans)))
            for i, plans in enumerate(self.estimates)
        }
        with self.outer.open(self.statement.public, tables) as engine:
            drawn = n
            for draw in range(n):
                try:
                    repeated = shown(_one_draw(engine, draw, len(tables), self.statement.sql))
                except QueryError:
                    if engine.over:
                        drawn = draw
                        break
                    continue  # this draw has no answer: its rows stay NULL
                places = [at.get(key, -1) for key in _keys(repeated, self.keys)]
                for i in columns:
                    values = floats(repeated.column(i))
                    for place, value in zip(places, values, strict=True):
                        if place >= 0:
                            columns[i][draw, place] = value
        if engine.over and drawn < FEWEST:
            return Draws({i: np.full((1, rows), np.nan) for i in columns})
        return Draws({i: values[:drawn] for i, values in columns.items()})

    def _released(self, number: int) -> pa.Table:
        question, plans = self.statement.questions[number], self.estimates[number]
        values = [np.concatenate([p.values(a) for p in plans]) for a in question.aggregates]
        every = column_of(np.arange(sum(p.size for p in plans)), pa.int64())
        columns = {"place": every} | self._key_columns(question, plans)
        return pa.table(columns | {f"a{i}": _array(v, a) for i, (v, a) in enumerate(_zip(values, question))})

    def _redrawn(self, number: int, n: int, places: NDArray[np.int64]) -> pa.Table:
        """The released table for `n` other draws of the noise, at some places, draw by draw."""
        question, plans = self.statement.questions[number], self.estimates[number]
        parts: list[list[Any]] = [[] for _ in question.aggregates]
        before = 0
        for plan in plans:
            own = places[(places >= before) & (places < before + plan.size)] - before
            noise = plan.noise(n, own.tolist(), bits=self.bits)
            for i, aggregate in enumerate(question.aggregates):
                parts[i].append(plan.redrawn(aggregate, noise, own.tolist()))
            before += plan.size
        values = [np.concatenate(p, axis=1).ravel() for p in parts]
        columns: dict[str, Any] = {"draw": np.repeat(np.arange(n), len(places)), "place": np.tile(places, n)}
        for name, column in self._key_columns(question, plans).items():
            chosen = pa.chunked_array([column.take(pa.array(places))] * n, column.type)
            columns[name] = chosen.combine_chunks()
        return pa.table(columns | {f"a{i}": _array(v, a) for i, (v, a) in enumerate(_zip(values, question))})

    def _key_columns(self, question: AggregateQuery, plans: Sequence[Estimates]) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for j, key in enumerate(question.keys):
            values: list[Any] = [None]
            places: list[NDArray[np.int64]] = []
            for positions, plan in zip(question.sets, plans, strict=True):
                if j not in positions:
                    places.append(np.zeros(plan.size, np.int64))
                    continue
                listed, at = plan.key_places(positions.index(j))
                places.append(at + len(values))
                values += listed
            columns[f"k{j}"] = _key_array(values, key).take(column_of(np.concatenate(places), pa.int64()))
            if len(question.sets) > 1:
                summed = [np.full(p.size, j not in s, np.int64) for s, p in zip(question.sets, plans, strict=True)]
                columns[f"g{j}"] = column_of(np.concatenate(summed), pa.int64())
        return columns


def after_stopping(level: float) -> float:
    """The nominal level at which intervals hold with probability `level` where one stopped at a noisy width."""
    return 1 - (1 - level) / HEDGE


def _key_array(values: list[Any], key: Key) -> pa.Array:
    """The values of a key; whole numbers beyond 64 bits as decimals, beyond 38 digits as text."""
    kind = key_type(key)
    if pa.types.is_int64(kind):
        whole = [abs(value) for value in values if value is not None]
        if max(whole, default=0) >= 10**38:
            return pa.array([None if value is None else str(value) for value in values], pa.string())
        if any(not -(2**63) <= value < 2**63 for value in values if value is not None):
            return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(38, 0))
    return pa.array(values, kind)


def key_type(key: Key) -> pa.DataType:
    """The Arrow type of a key's column."""
    return relations.arrow_type(key.kind)


def _zip(values: Sequence[Any], question: AggregateQuery) -> list[tuple[Any, Aggregate]]:
    return list(zip(values, question.aggregates, strict=True))


def _chosen(aggregate: Aggregate) -> bool:
    """Whether an aggregate is a choice, or its place."""
    return aggregate.function.chosen


def _array(values: Any, aggregate: Aggregate) -> pa.Array:
    """Counts as whole numbers; what is not finite as NULL."""
    if aggregate.function.whole:
        whole = (
            np.rint(np.clip(np.asarray(values, np.float64), -(2.0**62), 2.0**62))
            if values.dtype.kind == "f"
            else values
        )
        return column_of(whole.astype(np.int64), pa.int64())
    if _chosen(aggregate):
        return pa.array(values.tolist(), relations.arrow_type(aggregate.kind))
    if aggregate.kind in TEMPORAL:
        return as_column(values, relations.arrow_type(aggregate.kind))
    return as_column(values, pa.float64())


def column_of(values: Any, kind: pa.DataType, missing: Any = None) -> pa.Array:
    """Numbers as a column of a type as wide as they are; NULL where `missing`.

    `pa.array` does the same, and loads all of numpy.ma first.
    """
    there = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing is not None and missing.any() else None
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(np.ascontiguousarray(values))])


def as_column(values: Any, kind: pa.DataType) -> pa.Array:
    """Floats as a column: NaN as NULL; whole days as dates, microseconds as times and lengths of time."""
    array = np.asarray(values, np.float64)
    missing = ~np.isfinite(array)
    if not _is_time(kind):
        return column_of(array, pa.float64(), missing)
    whole = np.where(missing, 0.0, np.rint(array)).astype(np.int32 if pa.types.is_date32(kind) else np.int64)
    return column_of(whole, kind, missing)


def _one_draw(engine: Any, draw: int, count: int, sql: str) -> pa.Table:
    for i in range(count):
        engine.execute(
            f"CREATE OR REPLACE TABLE released{i} AS SELECT * EXCLUDE (draw) FROM drawn{i} WHERE draw = {draw} "
            "ORDER BY place"
        )
    return engine.arrow(sql)


def _whole_keys(plan: Estimates) -> list[set[Any]]:
    """The values of each key that are whole numbers, dates or times."""
    keys = [{group[j] for group in plan.groups} for j in range(len(plan.plan.keys))]
    return [v for v in keys if any(type(x) is int or isinstance(x, dt.date) for x in v)]


def _keys(table: pa.Table, positions: Sequence[int]) -> list[tuple[Any, ...]]:
    """What tells each row apart: its exact columns, and which of the rows with the same ones it is."""
    columns = [[v if v.__hash__ else repr(v) for v in _exactly(table.column(i)).to_pylist()] for i in positions]
    seen: dict[tuple[Any, ...], int] = {}
    key_columns = []
    for row in range(table.num_rows):
        key = tuple(column[row] for column in columns)
        seen[key] = seen.get(key, -1) + 1
        key_columns.append((*key, seen[key]))
    return key_columns


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or kind in (pa.timestamp("us"), pa.duration("us")))


def _usual(column: Any) -> Any:
    """A column in one of the types that answers have: int64 and float64 for numbers, microseconds for times."""
    if pa.types.is_interval(column.type):
        return _length(column)
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        return column.cast(pa.timestamp("us"), safe=False)
    if column.type == pa.int64() or (column.type == pa.float64() and _is_finite(column)):
        return column
    if pa.types.is_integer(column.type):
        fits = pc.all(pc.less_equal(column.cast(pa.float64(), safe=False), 2.0**62)).as_py() is not False
        return column.cast(pa.int64() if fits else pa.float64(), safe=False)
    if pa.types.is_decimal(column.type) or pa.types.is_floating(column.type):
        plain = column.cast(pa.float64())
        return pc.if_else(pc.is_finite(plain), plain, pa.scalar(None, pa.float64()))
    return column


def _is_finite(column: Any) -> bool:
    """Whether a column of doubles has nothing but finite numbers."""
    return not column.null_count and bool(np.isfinite(column.to_numpy()).all())


def _exactly(column: Any) -> Any:
    """The same for a column that is exact: whole numbers that no float holds are their digits."""
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        digits = [None if value is None else int(value) for value in column.to_pylist()]
        if any(abs(value) > 2**53 for value in digits if value is not None):
            return pa.array([None if value is None else str(value) for value in digits], pa.string())
    return _usual(column)


def _length(column: Any) -> Any:
    """A column of intervals as one of microseconds, where none has months."""
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    joined = joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
    fields = np.dtype([("months", np.int32), ("days", np.int32), ("nanoseconds", np.int64)])
    parts = np.frombuffer(joined.buffers()[1] or b"", fields, len(joined), joined.offset * fields.itemsize)
    missing = np.asarray(joined.is_null())
    if (parts["months"][~missing] != 0).any():
        return column
    lengths = parts["days"].astype(np.int64) * DAY + parts["nanoseconds"] // 1000
    return column_of(np.where(missing, 0, lengths), pa.duration("us"), missing)


def floats(column: Any) -> Floats:
    """A column as floats, NaN for NULL and for what is not finite: dates in days, times in microseconds."""
    column = _usual(column)
    if _is_time(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    if pa.types.is_interval(column.type):
        return np.full(len(column), np.nan)
    if column.type not in (pa.float64(), pa.int64()):
        column = column.cast(pa.float64(), safe=False)
    array = np.asarray(column.to_numpy(), np.float64)
    return np.where(np.isfinite(array), array, np.nan)
