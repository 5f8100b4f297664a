"""A release: an answer that has left, with its error bars, its cost and its receipt.

Everything here is computed from noisy integers, declared values and known scales: it is post-processing, costs
nothing, and can be read, printed or computed with as often as one likes.

Intervals at level L hold the *bounded* truth (what the table says after each unit's contribution is bounded and
clamped) with probability at least L (`hubbub.tables.estimates`). A column computed from others reaches as far to either
side as what it would be for other draws of the known noise does to one (`hubbub.answer.evaluate`). They cover the
noise, not what bounding left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from hubbub.answer.cells import free_name, label
from hubbub.answer.column import Column
from hubbub.answer.error import AnswerError
from hubbub.answer.evaluate import EvaluatedStatement, as_column, floats
from hubbub.answer.intervals import FIRST_MOMENT, LAST_MOMENT
from hubbub.answer.printable import in_one_line
from hubbub.answer.text import AnswerText
from hubbub.answer.wire import SentAnswer, read_release, written_release
from hubbub.arguments import a_level
from hubbub.errors import ParameterError, PolicyError, QueryError, what_was_given
from hubbub.keywords import named, named_calls
from hubbub.ledger.budget import decimal_text, short_text
from hubbub.moved import Moved
from hubbub.plots.page import html_lines, html_table
from hubbub.tables.columns import Scalar
from hubbub.tables.functions import DAY

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Refinement", "Refining", "Release", "text_table"]

Cell = Scalar
_Way = TypeVar("_Way")

SHOWN = 40
"""A picture in a notebook shows at most so many rows."""


@dataclass(frozen=True)
class Refinement:
    """What refining an answer would cost, and how much better it would be. Nothing was charged.

    columns: for each estimate its name, the half-width of its 95 % interval now and then (of several rows the middle
    one; of a quantile in ranks), and what they are counted in. helps: whether any group of any aggregate would have a
    narrower interval, and none a wider one.
    """

    epsilon: Fraction
    left: Fraction
    columns: tuple[tuple[str, float, float, str], ...]
    helps: bool
    fits: bool

    def __str__(self) -> str:
        rows = [(name, _width(now, unit), _width(then, unit)) for name, now, then, unit in self.columns]
        lines = [text_table(("column", "now", "refined"), rows), ""]
        cost = f"cost: epsilon {decimal_text(self.epsilon)}; left: {short_text(self.left)}"
        lines.append(f"{cost}{'' if self.fits else ', NOT ENOUGH'}")
        lines += [] if self.helps else ["This would not make the answer better."]
        return "\n".join(line.rstrip() for line in lines)


@named_calls
@dataclass(frozen=True)
class Refining:
    """How an answer is made better, `answer.refine(epsilon)`, and what is known of that before."""

    _refine: Callable[[Any], Release] | None = None
    _foresee: Callable[[Any], Refinement] | None = None

    def refine(self, epsilon: Any) -> Release:
        """The answer made better: asked again at a further `epsilon`, both draws combined.

        `epsilon` is charged in addition to what was. Sums and counts are combined first, by inverse variances
        (covariances where their errors go together), ratios formed then; quantiles are those of the dearer draw.
        `check` tells before what comes of it.

        Raises QueryError, before the charge, where it would not help: where no interval would be narrower, or one would
        be wider; and for an answer that cannot be refined: one about public tables, one with private groups, one that
        was refined, or one whose data has a newer version.
        """
        return _known(self._refine)(epsilon)

    __call__ = named(refine)
    del refine

    def check(self, epsilon: Any) -> Refinement:
        """How wide the intervals are now, how wide they would be after `refine`, and what it costs.

        Reads no rows and charges nothing: it follows from this answer and from scales.

        Raises QueryError for an answer that cannot be refined.
        """
        return _known(self._foresee)(epsilon)


def _known(way: Callable[[Any], _Way] | None) -> Callable[[Any], _Way]:
    if way is None:
        raise QueryError("this answer cannot be refined. Ask the question again, at a larger epsilon.")
    return way


@named_calls
@dataclass(frozen=True, eq=False)
class Release(Moved):
    """An answer. `columns` and `rows()` are the table; the rest says how good it is and what it cost.

    cost: what was charged for it, exactly. charged: False where a stored release was handed out again, for nothing.
    receipt: what was asked of whom, by which mechanism, at which scale. epsilon: the epsilon it was drawn at, 0 for an
    exact answer about public tables. refine: how it is made better, at a further epsilon.
    """

    _moved: ClassVar[Mapping[str, str]] = {
        "bounded": "text.bounded",
        "check_refine": "refine.check",
        "draws": "error.draws",
        "half_widths": "error.half_widths",
        "notes": "text.notes",
        "remarks": "text.remarks",
        "text_rows": "text.rows",
    }

    cost: Fraction
    charged: bool
    charge_id: str
    receipt: Mapping[str, Any] = field(repr=False)
    epsilon: Fraction = Fraction(0)
    _notes: tuple[str, ...] = ()
    _answered: EvaluatedStatement | SentAnswer | None = field(default=None, repr=False)
    _exact: Any = field(default=None, repr=False)
    refine: Refining = field(default=Refining(), repr=False)
    _left: Fraction | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.to_arrow()  # the outer part runs now, while its public tables are what was checked

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.to_arrow().column_names)

    def to_arrow(self) -> pa.Table:
        """The answer as a pyarrow Table: counts int64, other estimates float64, keys in their declared type."""
        return self._exact if self._answered is None else self._answered.table

    def rows(self) -> list[tuple[Cell, ...]]:
        """The rows of the answer, as tuples."""
        return list(zip(*self.to_dict().values(), strict=True)) if self.columns else []

    def to_dict(self) -> dict[str, list[Cell]]:
        """The answer as lists by column."""
        return dict(self.to_arrow().to_pydict())

    def to_pandas(self) -> Any:
        """The answer as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The answer as a polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_spark(self, session: Any = None) -> Any:
        """The answer as a data frame of Spark, in this Spark session, or the active one.

        Raises PolicyError where there is neither.
        """
        from pyspark.sql import SparkSession

        spark: Any = SparkSession.getActiveSession() if session is None else session
        if not hasattr(spark, "createDataFrame"):
            raise PolicyError("to_spark: no Spark session is active; give one: answer.to_spark(spark).")
        return spark.createDataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_wire(self, *, level: float | None = None) -> str:
        """The answer as one JSON document, with its intervals at the usual levels (`hubbub.answer.wire`).

        level: one more, in (0, 1).

        Raises ParameterError for any other level.
        """
        return written_release(self, level)

    @classmethod
    def from_wire(cls, text: str) -> Release:
        """What `to_wire` wrote: the same table and intervals, without draws; it cannot be refined here.

        Raises ParameterError for anything else.
        """
        return cls(**read_release(text))

    def __reduce__(self) -> str:
        raise PolicyError(
            "a release is not pickled: write to_arrow(), intervals() or to_wire() to a file. The answer is stored in "
            "the ledger too; asked again, it is free."
        )

    @property
    def text(self) -> AnswerText:
        """The answer in words: its rows, and what stands under them."""
        return AnswerText(self)

    @property
    def error(self) -> AnswerError:
        """Its error as numbers: half-widths of intervals, and other draws of the noise."""
        return AnswerError(self)

    # -- errors -----------------------------------------------------------------------------------------------

    def intervals(self, level: float = 0.95) -> pa.Table:
        """The answer with `<column>_low` and `<column>_high` after each estimate.

        Where a column of the answer has such a name, the end has a further `_`.

        Raises ParameterError for a level outside (0, 1).
        """
        table, ends = self.to_arrow(), self._every_end(level)
        arrays, names = [], []
        for i, name in enumerate(self.columns):
            arrays.append(table.column(i))
            names.append(name)
            if i in ends:
                low, high = ends[i]
                if pa.types.is_date(table.schema.field(i).type):
                    low, high = np.floor(low), np.ceil(high)
                arrays += [as_column(end, table.schema.field(i).type) for end in (low, high)]
                names += [free_name(f"{name}_{end}", (*self.columns, *names)) for end in ("low", "high")]
        return pa.table(arrays, names=names)

    def publish(self, folder: str | Path, *, title: str = "", level: float = 0.95, force: bool = False) -> Path:
        """Write the answer into a folder that can be handed out: CSV with intervals, metadata as JSON, a page to read.

        title: of the page; the question unless given. level: of the intervals. force: replace an earlier publication.
        Free: it is made of what was released. Returns the folder.

        Raises ParameterError for a level outside (0, 1), PolicyError where a file is in the way or cannot be written.
        """
        from hubbub.answer.publication import Publication, described

        widths = {
            name: sorted(w for w in each if np.isfinite(w)) for name, each in self.error.half_widths(level).items()
        }
        error = {
            "level": level,
            "median_half_width": {name: w[len(w) // 2] for name, w in widths.items() if w},
            "remarks": list(self.text.remarks),
        }
        title = title or str(self.receipt.get("sql", "an answer"))
        about = described(title, self.receipt, kind="answer", error=error)
        tables = {"answer": self.intervals(level).to_pydict()}
        return Publication(title, tables, about, self._html("")).write(folder, force=force)

    def __getitem__(self, name: str) -> Column:
        """A column of numbers as a quantity with an error: `r["cost"] / r["visits"]`.

        Raises ParameterError for a name that is not a column of numbers.
        """
        kinds = {n: self.to_arrow().schema.field(n).type for n in self.columns}
        chosen = set() if self._answered is None else {self.columns[i] for i in self._answered.choices}
        measured = (n for n, k in kinds.items() if pa.types.is_integer(k) or pa.types.is_floating(k))
        numbers = [n for n in measured if n not in chosen]
        if not isinstance(name, str) or name not in numbers:
            raise ParameterError(
                f"{what_was_given(name)} is not a column of numbers. These are: {', '.join(numbers) or '(none)'}."
            )
        at = self.columns.index(name)
        answered, values = self._answered, self._floats(at)
        if answered is None or at not in answered.numbers:
            return Column(name, values, values[np.newaxis], self._row_keys)
        charges = frozenset({(self.charge_id, id(answered))})
        draws = answered.draws().columns[at]
        return Column(
            name, values, draws, self._row_keys, charges, lambda level: answered.ends(at, level), answered.stopped
        )

    def _floats(self, i: int) -> Any:
        return floats(self.to_arrow().column(i))

    def _every_end(self, level: float) -> dict[int, tuple[Any, Any]]:
        """The intervals of each estimate, by the position of its column."""
        level = a_level(level)
        if self._answered is None:
            return {}
        both = {i: self._answered.ends(i, level) for i in self._answered.numbers}
        return {i: ends for i, ends in both.items() if ends is not None}

    @cached_property
    def _row_keys(self) -> tuple[tuple[Any, ...], ...]:
        """What tells each row apart: its exact columns."""
        positions = range(len(self.columns)) if self._answered is None else self._answered.keys
        columns = [self.to_arrow().column(i).to_pylist() for i in positions]
        return tuple(zip(*columns, strict=True)) if columns else ((),) * len(self)

    # -- shown ------------------------------------------------------------------------------------------------

    def plot(self, column: str | None = None, *, level: float = 0.95, kind: str | None = None, ax: Any = None) -> Any:
        """One column of the answer with error bars: a `Chart`, which a notebook shows and `save("x.svg")` writes.

        column: the name of an estimate (default: the first one). kind: one of "bars", "points", "lines", "grouped",
        "multiples", "heat" and "calendar", where the keys allow it; by default what suits them. ax: the Axes of
        matplotlib to draw on instead, which are given back: "bars", "lines" or "points".

        Raises ParameterError for a column that is not an estimate, a kind that these keys have not, or an `ax` that is
        not an Axes.
        """
        from hubbub.plots.chart import Chart, Point

        level = a_level(level)
        if ax is not None:
            return self._on_axes(column, level, kind, ax)
        chosen, values, low, high = self._drawn(column, level)
        at, keys, kinds = self.columns.index(chosen), self._keys(), self.to_arrow().schema.types
        dated, lasting = _is_moment(kinds[at]), pa.types.is_duration(kinds[at])
        day = DAY / 24 if lasting else DAY if dated and not pa.types.is_date(kinds[at]) else 1
        texts = [row[at] for row in self.text.rows(level)]
        points = tuple(
            Point(tuple(row[i] for i in keys), value / day, a / day, b / day, text)
            for row, value, a, b, text in zip(self.rows(), values, low, high, texts, strict=True)
        )
        names = tuple(self.columns[i] for i in keys)
        measure, note = f"{chosen}, hours" if lasting else chosen, "\n".join(self.text.bounded)
        return Chart(measure, names, points, level, moments=dated, kind=kind or "", note=note)

    def _on_axes(self, column: str | None, level: float, kind: str | None, ax: Any) -> Any:
        """One column, drawn with matplotlib."""
        from hubbub.plots import whiskers

        if not all(callable(getattr(ax, needed, None)) for needed in ("errorbar", "set_xticks")):
            raise ParameterError(
                f"plot: ax is a {type(ax).__name__}; expected Axes of matplotlib, as in fig, ax = plt.subplots()."
            )
        chosen, values, low, high = self._drawn(column, level)
        keys = self._keys()
        ordered = len(keys) == 1 and _is_ordered(self.to_arrow().schema.types[keys[0]])
        measured = self.to_arrow().schema.field(chosen).type
        moments = _is_moment(measured)
        if moments and not pa.types.is_date(measured):
            values, low, high = ([x / DAY for x in each] for each in (values, low, high))
        drawn = whiskers(
            self.to_arrow().column(keys[0]).to_pylist() if ordered else self._labels(chosen),
            values,
            low,
            high,
            kind=str(kind)
            if kind is not None
            else ("lines" if ordered and len(self) > 1 else "points" if moments else "bars"),
            title=f"{chosen}, {level:.0%} intervals",
            xlabel=", ".join(self.columns[i] for i in keys),
            ylabel=chosen,
            footnote="\n".join(self.text.bounded),
            ax=ax,
        )
        if moments:
            drawn.yaxis_date()  # which counts days since 1970-01-01 too
            drawn.set_ylim(_years_there_are(*drawn.get_ylim()))
        if ordered and _is_moment(self.to_arrow().schema.types[keys[0]]):
            drawn.set_xlim(_years_there_are(*drawn.get_xlim()))
        return drawn

    def _drawn(self, column: str | None, level: float) -> tuple[str, list[float], list[float], list[float]]:
        """The column to draw, with what to draw of it: NaN for what is NULL, which has no place on an axis."""
        drawn = {self.columns[i]: (i, *ends) for i, ends in self._every_end(level).items()}
        chosen = column if column is not None else next(iter(drawn), "")
        if not isinstance(chosen, str) or chosen not in drawn:
            raise ParameterError(
                f"plot: {what_was_given(chosen)} is not an estimate of this answer. Estimates: {', '.join(drawn)}."
            )
        at, low, high = drawn[chosen]
        values = self._floats(at)
        return chosen, values.tolist(), np.minimum(low, values).tolist(), np.maximum(high, values).tolist()

    def _keys(self) -> list[int]:
        return [] if self._answered is None else list(self._answered.keys)

    def _labels(self, default: str) -> list[str]:
        rows = self.rows()
        return [", ".join(label(row[i]) for i in self._keys()) or default for row in rows]

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def __str__(self) -> str:
        return "\n".join([text_table(self.columns, self.text.rows()), *self.text.remarks])

    def _repr_html_(self) -> str:
        """For notebooks: the table, a picture of its first estimate, what it cost and what is left. No scripts."""
        left = "" if self._left is None else f"epsilon {short_text(self._left)} of the joint budget is left"
        return self._html(left)

    def _html(self, left: str) -> str:
        """The answer as HTML; every text escaped. left: what is said beside the cost."""
        picture = ""
        if len(self) > 1 and self._every_end(0.95):
            chart = self.plot()
            picture = replace(chart, note="", points=chart.points[:SHOWN]).svg()
        left_out = f"<p>{len(self) - SHOWN:,} more rows</p>" if len(self) > SHOWN else ""
        about = "exact: public tables only" if self._answered is None else "± at 95 %"
        table = html_table(self.columns, self.text.rows()[:SHOWN])
        paid = f"charged epsilon {decimal_text(self.cost)}" if self.charged else ""
        cost = "; ".join(filter(None, (paid, left)))
        return f"<div>{table}{left_out}{picture}{html_lines([about, cost, *self.text.remarks])}</div>"


def _is_ordered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _years_there_are(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis in days since 1970-01-01, without a margin beyond the years 1 to 9999, which has no name."""
    return max(low, FIRST_MOMENT), min(high, LAST_MOMENT)


def _width(width: float, unit: str) -> str:
    return f"± {width:,.4g}{unit and f' {unit}'}"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: bool = False) -> str:
    """Rows of text under their column names, right-aligned; words: left-aligned. A cell is one line, and steers no
    terminal.
    """
    columns, rows = [*map(in_one_line, columns)], [[*map(in_one_line, row)] for row in rows]
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    put = str.ljust if words else str.rjust
    lines = ["  ".join(map(put, row, widths)).rstrip() for row in (columns, *rows)]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
