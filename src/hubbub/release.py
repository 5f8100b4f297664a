"""A release: an answer that has left, with its error bars, its cost and its receipt.

Everything here is computed from noisy integers, declared values and known scales: it is post-processing, costs
nothing, and can be read, printed or computed with as often as one likes.

Estimates. COUNT and SUM: the noisy integer times the grid's step, unbiased around the bounded truth; a count can
be negative. AVG: centre + step * (noisy centred sum) / (noisy count), held inside the declared range; where the
noisy count is 0 or less, the middle of the range.

Intervals at level L hold the *bounded* truth (what the table says after each unit's contribution is bounded and
clamped) with probability at least L: exact discrete Laplace quantiles for COUNT and SUM, Fieller's method for AVG
(`hubbub.mechanisms.ratio`). A column computed from others has the quantiles of what it would be for other draws of
the known noise. They cover the noise, not what bounding left out.
"""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hubbub.engines.duckdb import arrow_type, locked_memory
from hubbub.errors import ParameterError
from hubbub.mechanisms.ratio import ratio_interval
from hubbub.sql.compile import choice_sql, computed_sql, expression_sql
from hubbub.tables.declare import Scalar
from hubbub.tables.expressions import Expression, columns_of
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.plan import Measurement
from hubbub.tables.price import Price
from hubbub.tables.question import Aggregate, Function, Key

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Chosen", "Estimates", "Release", "choose", "text_table"]

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

    def redrawn(self, aggregate: Aggregate, noise: Mapping[Measurement, Any], places: Sequence[int]) -> Any:
        """The estimates at some places less noise of other draws: an array of the noise's shape (draws by places)."""
        parts = self.price.plan.measurement_of(aggregate)
        drawn = [np.array(self.noisy[m], np.float64)[list(places)] - noise[m] for m in parts]
        step = float(parts[0].grid.step)
        if aggregate.function is not Function.AVG:
            return drawn[0] * step
        total = parts[0]
        middle = (total.low + total.high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            offset = np.where(drawn[1] > 0, drawn[0] / drawn[1], middle)
        return (total.centre + np.clip(offset, total.low, total.high)) * step

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
class Chosen:
    """What HAVING, ORDER BY and LIMIT leave: the places of the rows shown, and the computed columns of these rows."""

    places: tuple[int, ...]
    computed: tuple[tuple[Cell, ...], ...]


def choose(estimates: Estimates) -> Chosen:
    """Choose among released rows and compute with them, in a DuckDB that holds nothing else."""
    plan = estimates.price.plan
    if not plan.question.chooses:
        return Chosen(tuple(range(plan.group_count)), ())
    values = [pa.array(estimates.values(a), column_type(a)) for a in plan.question.aggregates]
    with locked_memory({"released": _released(estimates, values, range(plan.group_count), 1)}) as con:
        rows = con.execute(choice_sql(plan.question)).fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * (1 + len(computed_sql(plan.question)))
    return Chosen(columns[0], tuple(columns[1:]))


def simulate(estimates: Estimates, expression: Expression, places: Sequence[int]) -> Any:
    """What a computed column would be for other draws of the noise: an array of places by draws, NaN for NULL."""
    plan = estimates.price.plan
    draws = max(100, min(2_000, 2_000_000 // len(places)))
    noise = {p.measurement: p.noise.sample((draws, len(places))) for p in estimates.price.parts}
    values = [pa.array(estimates.redrawn(a, noise, places).ravel()) for a in plan.question.aggregates]
    with locked_memory({"released": _released(estimates, values, places, draws)}) as con:
        sql = f"SELECT CAST({expression_sql(expression)} AS DOUBLE) AS e FROM released ORDER BY draw, place"
        found = con.sql(sql).to_arrow_table().column(0).to_numpy()
    in_order = np.asarray(found, np.float64).reshape(draws, len(places)).T
    return in_order[np.argsort(np.argsort(places))]


def _released(estimates: Estimates, values: Sequence[Any], places: Sequence[int], draws: int) -> pa.Table:
    """The table `released`: draw, place, keys k0, k1, ... and aggregates a0, a1, ..., draw by draw."""
    plan = estimates.price.plan
    every = list(plan.groups())
    groups = [every[place] for place in places]
    columns: dict[str, Any] = {
        "draw": np.repeat(np.arange(draws), len(groups)),
        "place": np.tile(np.asarray(places, np.int64), draws),
    }
    for i, key in enumerate(plan.question.keys):
        columns[f"k{i}"] = pa.array([g[i] for g in groups] * draws, column_type(key))
    return pa.table(columns | {f"a{i}": array for i, array in enumerate(values)})


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
    _chosen: Chosen = field(repr=False)
    _exact: Any = field(default=None, repr=False)
    _simulated: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)

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
        if self._exact is not None:
            return self._exact
        arrays = [pa.array(v, column_type(w)) for v, w in zip(self._columns(), self._whats(), strict=True)]
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
                found[name] = [math.nan if v is None else _reach(float(v), *e) for v, e in pairs]  # type: ignore[arg-type]
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
        return len(self.to_arrow()) if self._exact is not None else len(self._chosen.places)

    def __str__(self) -> str:
        return text_table(self.columns, self.text_rows())

    def text_rows(self, level: float = 0.95) -> list[tuple[str, ...]]:
        """The rows as text, each estimate as `value ± half-width`."""
        reach = self.half_widths(level)
        shown = []
        for name, values in self.to_dict().items():
            if name in reach:
                shown.append([_with_reach(v, r) for v, r in zip(values, reach[name], strict=True)])
            else:
                shown.append([_label(v) for v in values])
        return list(zip(*shown, strict=True))

    def _whats(self) -> Sequence[Key | Aggregate | Expression]:
        if self._estimates is None:
            return ()
        return [output.what for output in self._estimates.price.plan.question.outputs]

    def _columns(self) -> list[list[Cell]]:
        if self._estimates is None:
            return [column.to_pylist() for column in self._exact.columns]
        plan = self._estimates.price.plan
        groups = list(plan.groups())
        places, computed = self._chosen.places, iter(self._chosen.computed)
        columns: list[list[Cell]] = []
        for what in self._whats():
            if isinstance(what, Key):
                at = plan.question.keys.index(what)
                columns.append([groups[place][at] for place in places])
            elif isinstance(what, Aggregate):
                values = self._estimates.values(what)
                columns.append([values[place] for place in places])
            else:
                columns.append(list(next(computed)))
        return columns

    def _ends(self, i: int, level: float) -> list[tuple[float, float]] | None:
        """The intervals of one column's estimates; None for a column that is exact."""
        if not 0 < level < 1:
            raise ParameterError(f"level={level!r}: a level lies between 0 and 1, such as 0.95.")
        what = self._whats()[i] if self._estimates else None
        if self._estimates is None or what is None or isinstance(what, Key):
            return None
        if isinstance(what, Aggregate):
            ends = self._estimates.intervals(what, level)
            return [ends[place] for place in self._chosen.places]
        if what.kind not in NUMERIC or not any(name.startswith("a") for name in columns_of(what)):
            return None
        if not self._chosen.places:
            return []
        if i not in self._simulated:
            self._simulated[i] = simulate(self._estimates, what, self._chosen.places)
        draws = self._simulated[i]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a place where every draw is NULL has no interval
            low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1)
        return list(zip(low.tolist(), high.tolist(), strict=True))


def column_type(what: Key | Aggregate | Expression) -> pa.DataType:
    """The Arrow type of a released column; it depends on the question and the declared schema alone."""
    if isinstance(what, Aggregate):
        return arrow_type(Kind.NUMBER if what.function in (Function.SUM, Function.AVG) else Kind.INTEGER)
    return arrow_type(Kind.NUMBER if what.kind is Kind.NULL else what.kind)


def _held(value: Fraction, low: int, high: int) -> Fraction:
    return min(max(value, Fraction(low)), Fraction(high))


def _label(value: Cell) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else str(value)


def _reach(value: float, low: float, high: float) -> float:
    return max(value - low, high - value)


def _with_reach(value: Cell, reach: float) -> str:
    if value is None:
        return "NULL"
    return f"{_number(value, reach)} ± {_number(reach, reach)}"


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
