"""A release: an answer that has left, with its error bars, its cost and its receipt.

Everything here is computed from noisy integers, declared values and known scales: it is post-processing, costs
nothing, and can be read, printed or computed with as often as one likes.

Estimates. COUNT and SUM: the noisy integer times the grid's step, unbiased around the bounded truth; a count can
be negative. AVG: centre + step * (noisy centred sum) / (noisy count), held inside the declared range; where the
noisy count is 0 or less, the middle of the range.

Intervals at level L hold the *bounded* truth (what the table says after each unit's contribution is bounded and
clamped) with probability at least L: exact discrete Laplace quantiles for COUNT and SUM, Fieller's method for AVG
(`hubbub.mechanisms.ratio`). They cover the noise, not what bounding left out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.errors import ParameterError
from hubbub.mechanisms.ratio import ratio_interval
from hubbub.tables.declare import Scalar
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Measurement
from hubbub.tables.price import Price
from hubbub.tables.question import Aggregate, Function, Key

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

__all__ = ["Estimates", "Release", "arrow_type", "text_table"]

Cell = Scalar


@dataclass(frozen=True)
class Estimates:
    """What noisy vectors say about every aggregate of a priced plan, group by group in canonical order."""

    price: Price
    noisy: Mapping[Measurement, tuple[int, ...]]

    def values(self, aggregate: Aggregate) -> list[int | float]:
        """The point estimates."""
        parts = self.price.plan.measurement_of(aggregate)
        if aggregate.function is Function.AVG:
            return [self._mean(parts[0], parts[1], place) for place in range(self.price.plan.group_count)]
        if aggregate.function is Function.SUM:
            step = parts[0].grid.step
            return [float(value * step) for value in self.noisy[parts[0]]]
        return list(self.noisy[parts[0]])

    def intervals(self, aggregate: Aggregate, level: float) -> list[tuple[float, float]]:
        """The intervals that hold the bounded truth with probability `level` or more, each."""
        parts = self.price.plan.measurement_of(aggregate)
        if aggregate.function is Function.AVG:
            places = range(self.price.plan.group_count)
            return [self._mean_interval(parts[0], parts[1], place, level) for place in places]
        reach = float(self.price.part(parts[0]).noise.half_width(level) * parts[0].grid.step)
        return [(value - reach, value + reach) for value in self.values(aggregate)]

    def _mean(self, total: Measurement, count: Measurement, place: int) -> float:
        step, centre = total.grid.step, total.centre
        n, s = self.noisy[count][place], self.noisy[total][place]
        offset = Fraction(s, n) if n > 0 else Fraction(total.low + total.high, 2)
        return float((centre + _held(offset, total.low, total.high)) * step)

    def _mean_interval(self, total: Measurement, count: Measurement, place: int, level: float) -> tuple[float, float]:
        low, high = ratio_interval(
            self.noisy[total][place],
            self.noisy[count][place],
            total_scale=float(self.price.part(total).noise.scale),
            count_scale=float(self.price.part(count).noise.scale),
            low=total.low,
            high=total.high,
            level=level,
        )
        step, centre = float(total.grid.step), total.centre
        return (low + centre) * step, (high + centre) * step


@dataclass(frozen=True)
class Release:
    """An answer. `columns` and `rows()` are the table; the rest says how good it is and what it cost.

    cost: the epsilon that was charged for it, exactly. charged: False where a stored release was handed out again,
    for nothing. receipt: what was asked of whom, by which mechanism, at which scale.
    """

    columns: tuple[str, ...]
    cost: Fraction
    charged: bool
    charge_id: str
    receipt: Mapping[str, Any] = field(repr=False)
    _estimates: Estimates | None = field(repr=False)
    _places: tuple[int, ...] = field(repr=False)
    _exact: Any = field(default=None, repr=False)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon the answer was drawn at."""
        return self._estimates.price.epsilon if self._estimates else Fraction(0)

    def rows(self) -> list[tuple[Cell, ...]]:
        """The rows of the answer, as tuples."""
        return list(zip(*self._columns(), strict=True)) if self.columns else []

    def to_dict(self) -> dict[str, list[Cell]]:
        """The answer as lists by column."""
        return dict(zip(self.columns, self._columns(), strict=True))

    def to_arrow(self) -> pa.Table:
        """The answer as a pyarrow Table: counts int64, sums and means float64, keys in their declared type."""
        import pyarrow as pa

        if self._exact is not None:
            return self._exact
        arrays = [pa.array(v, arrow_type(w)) for v, w in zip(self._columns(), self._whats(), strict=True)]
        return pa.table(arrays, names=list(self.columns))

    def to_pandas(self) -> Any:
        """The answer as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The answer as a polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def intervals(self, level: float = 0.95) -> pa.Table:
        """The answer with `<column>_low` and `<column>_high` after each estimate.

        Raises ParameterError for a level outside (0, 1).
        """
        import pyarrow as pa

        table = self.to_arrow()
        arrays, names = [], []
        for i, name in enumerate(self.columns):
            arrays.append(table.column(i))
            names.append(name)
            ends = self._ends(i, level)
            if ends is not None:
                arrays += [pa.array([low for low, _ in ends]), pa.array([high for _, high in ends])]
                names += [f"{name}_low", f"{name}_high"]
        return pa.table(arrays, names=names)

    def half_widths(self, level: float = 0.95) -> dict[str, list[float]]:
        """The larger distance from each estimate to an end of its interval, by column of the answer."""
        found = {}
        for i, (name, values) in enumerate(zip(self.columns, self._columns(), strict=True)):
            ends = self._ends(i, level)
            if ends is not None:
                pairs = zip(values, ends, strict=True)
                found[name] = [max(float(v) - low, high - float(v)) for v, (low, high) in pairs]  # type: ignore[arg-type]
        return found

    def plot(self, column: str | None = None, *, level: float = 0.95, ax: Any = None) -> Any:
        """Draw one column of the answer with whiskers; returns matplotlib axes.

        column: the name of an estimate (default: the first one). Needs the extra `plot`.

        Raises ParameterError for a column that is no estimate.
        """
        from hubbub.plots import intervals

        estimates = list(self.half_widths(level))
        chosen = column if column is not None else (estimates[0] if estimates else "")
        if chosen not in estimates:
            raise ParameterError(f"plot: {chosen!r} is no estimate of this answer. Estimates: {', '.join(estimates)}.")
        at = self.columns.index(chosen)
        keys = [i for i, what in enumerate(self._whats()) if isinstance(what, Key)]
        rows = self.rows()
        labels = [", ".join(_label(row[i]) for i in keys) or chosen for row in rows]
        ends = self._ends(at, level) or []
        return intervals(
            labels,
            [float(row[at]) for row in rows],  # type: ignore[arg-type]
            [low for low, _ in ends],
            [high for _, high in ends],
            title=f"{chosen}, {level:.0%} intervals",
            ylabel=chosen,
            ax=ax,
        )

    def __len__(self) -> int:
        return len(self.to_arrow()) if self._exact is not None else len(self._places)

    def __str__(self) -> str:
        return text_table(self.columns, self.text_rows())

    def text_rows(self, level: float = 0.95) -> list[tuple[str, ...]]:
        """The rows as text, each estimate as `value ± half-width`."""
        reach = self.half_widths(level)
        shown = []
        for name, values in self.to_dict().items():
            if name in reach:
                shown.append([f"{_number(v, r)} ± {_number(r, r)}" for v, r in zip(values, reach[name], strict=True)])
            else:
                shown.append([_label(v) for v in values])
        return list(zip(*shown, strict=True))

    def _whats(self) -> Sequence[Key | Aggregate]:
        if self._estimates is None:
            return ()
        return [output.what for output in self._estimates.price.plan.question.outputs]

    def _columns(self) -> list[list[Cell]]:
        if self._estimates is None:
            return [column.to_pylist() for column in self._exact.columns]
        plan = self._estimates.price.plan
        groups = list(plan.groups())
        columns: list[list[Cell]] = []
        for what in self._whats():
            if isinstance(what, Key):
                at = plan.question.keys.index(what)
                columns.append([groups[place][at] for place in self._places])
            else:
                values = self._estimates.values(what)
                columns.append([values[place] for place in self._places])
        return columns

    def _ends(self, i: int, level: float) -> list[tuple[float, float]] | None:
        if not 0 < level < 1:
            raise ParameterError(f"level={level!r}: a level lies between 0 and 1, such as 0.95.")
        what = self._whats()[i] if self._estimates else None
        if self._estimates is None or not isinstance(what, Aggregate):
            return None
        ends = self._estimates.intervals(what, level)
        return [ends[place] for place in self._places]


def arrow_type(what: Kind | Key | Aggregate) -> pa.DataType:
    """The Arrow type of a released column; it depends on the question and the declared schema alone."""
    import pyarrow as pa

    if isinstance(what, Aggregate):
        return pa.float64() if what.function in (Function.SUM, Function.AVG) else pa.int64()
    return {
        Kind.INTEGER: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
    }[what.kind if isinstance(what, Key) else what]


def _held(value: Fraction, low: int, high: int) -> Fraction:
    return min(max(value, Fraction(low)), Fraction(high))


def _label(value: Cell) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else str(value)


def _number(value: Any, reach: float) -> str:
    """A number with as many decimals as its error makes sense of."""
    if isinstance(value, int):
        return f"{value:,}"
    decimals = 0
    while decimals < 9 and 0 < reach * 10**decimals < 10:
        decimals += 1
    return f"{value:,.{decimals}f}"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of text under their column names, right-aligned."""
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (columns, *rows)]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
