"""Synthetic tables and many marginals at once: what they are, and how a session sells them.

What is asked, charged and drawn is told in `hubbub.session.whole_rows`; it takes the one door (`hubbub.session.run`).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.arguments import a_level, names
from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.budget import decimal_text
from hubbub.plots.page import html_lines, html_table
from hubbub.progress import at_work
from hubbub.remedies import TrimBlanks

if TYPE_CHECKING:
    from hubbub.plots.chart import Chart
    from hubbub.session.run import Door
    from hubbub.session.whole_rows import MarginalsAsked, SynthesisAsked
    from hubbub.synthesis.marginals import MarginalPlan, MarginalRelease
    from hubbub.synthesis.records import Schema
    from hubbub.synthesis.utility import Utility

_SHOWN = 20
"""Rows that a notebook shows."""

__all__ = ["Marginals", "SyntheticTable", "marginals", "synthetic_table"]


@dataclass(frozen=True)
class SyntheticTable:
    """A synthetic table that was released. Any use of it is free.

    report: how far its marginals are expected to be from the true ones, as text. predicted: the same for the pairs of
    columns that are off by most. cost: what was charged for it. utility: how far it is from the noisy marginals that it
    was made from, and which pairs of columns were not measured; None of a table that an older hubbub stored. receipt:
    what was asked and what it cost, as the ledger has it. target: a column that is to be learned from it; `report` says
    which of its relations were kept.
    """

    cost: Fraction
    charged: bool
    charge_id: str
    report: str = field(repr=False)
    _columns: Mapping[str, list[Any]] = field(repr=False)
    predicted: Mapping[tuple[str, ...], float] = field(default_factory=dict, repr=False)
    utility: Utility | None = field(default=None, repr=False)
    receipt: Mapping[str, Any] = field(default_factory=dict, repr=False)
    target: str | None = None

    def publish(self, folder: str | Path, *, title: str = "", force: bool = False) -> Path:
        """Write the table into a folder that can be handed out: CSV, metadata as JSON, a page to read. Free.

        title: of the page. force: replace an earlier publication. The utility report is a second CSV.

        Raises PolicyError where a file is in the way or cannot be written.
        """
        from hubbub.answer.publication import Publication, described

        title = title or f"Synthetic {self.receipt.get('table', 'table')}"
        error: dict[str, Any] = {"predicted": self.report.splitlines()}
        tables: dict[str, Any] = {"synthetic": self.to_dict()}
        if self.utility is not None:
            error |= {"relations_not_measured": [" x ".join(pair) for pair in self.utility.not_kept]}
            tables["utility"] = self.utility.to_dict()
            if self.target is not None:
                error |= {"relations_kept_of": {self.target: self.utility.kept_of(self.target)}}
        about = described(title, self.receipt, kind="synthetic table", rows=len(self), error=error)
        return Publication(title, tables, about, self._repr_html_()).write(folder, force=force)

    def plot(self, *, ax: Any = None) -> Any:
        """The pairs of columns that are predicted to be off by most, with intervals (needs matplotlib); the Axes."""
        from hubbub.synthesis.report import plot_distances

        return plot_distances(self.predicted, ways=2, ax=ax)

    def to_dict(self) -> dict[str, list[Any]]:
        """The rows as lists by column."""
        return dict(self._columns)

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table."""
        import pyarrow as pa

        return pa.table(self.to_dict())

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def _repr_html_(self) -> str:
        """For notebooks: the first rows, how many there are, what was charged, and how far it is from the rows."""
        shown = itertools.islice(zip(*self._columns.values(), strict=True), _SHOWN)
        rows = [["" if v is None else v for v in row] for row in shown]
        about = f"{len(self):,} synthetic rows; {_paid(self.cost, charged=self.charged)}"
        said = html_lines(
            [*self.report.splitlines(), *([] if self.utility is None else str(self.utility).splitlines())]
        )
        return f"<div>{html_lines([about])}{html_table(list(self._columns), rows)}{said}</div>"


@dataclass(frozen=True)
class Marginals:
    """Noisy marginals that fit together. cells: every combination of a marginal's values, with its interval."""

    cost: Fraction
    charged: bool
    charge_id: str
    release: MarginalRelease = field(repr=False)
    schema: Schema = field(repr=False)
    receipt: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def publish(self, folder: str | Path, *, title: str = "", level: float = 0.95, force: bool = False) -> Path:
        """Write the tables into a folder that can be handed out: a CSV each, metadata as JSON, a page to read. Free.

        title: of the page. level: of the intervals. force: replace an earlier publication.

        Raises ParameterError for a level outside (0, 1), PolicyError where a file is in the way or cannot be written.
        """
        from hubbub.answer.publication import Publication, described

        title = title or f"Marginals of {self.receipt.get('table', 'a table')}"
        tables = {
            " by ".join(("count", *columns)): self.table(*columns, level=level).to_pydict() for columns in self.tables
        }
        widths = {
            name: max((high - low) / 2 for low, high in zip(t["count_low"], t["count_high"], strict=True))
            for name, t in tables.items()
        }
        about = described(title, self.receipt, kind="marginals", error={"level": level, "largest_half_width": widths})
        return Publication(title, tables, about, self._repr_html_()).write(folder, force=force)

    @property
    def tables(self) -> list[tuple[str, ...]]:
        """The columns of each marginal that was asked for."""
        return list(self.release.plan.marginals)

    def to_pandas(self, *columns: str, level: float = 0.95) -> Any:
        """One marginal as a pandas DataFrame, as `table` gives it."""
        return self.table(*columns, level=level).to_pandas()

    def _repr_html_(self) -> str:
        """For notebooks: which tables there are, the first of them, and what was charged."""
        listed = html_table(("table", "cells"), [(", ".join(t), self._size(t)) for t in self.tables])
        first = self.table(*self.tables[0])
        rows = [[_number(v) for v in row.values()] for row in first.slice(0, _SHOWN).to_pylist()]
        return (
            f"<div>{html_lines([_paid(self.cost, charged=self.charged)])}{listed}"
            f"{html_table(first.column_names, rows)}</div>"
        )

    def plot(self, *columns: str, level: float = 0.95) -> Chart:
        """One marginal, by default the first that was asked for, with its intervals: a `Chart`, as `Release.plot` has.

        Raises ParameterError for columns that no marginal asked for covers, and for more than two of them.
        """
        from hubbub.plots.chart import Chart, Point, drawable

        chosen = columns or self.tables[0]
        filled = self.table(*chosen, level=level)
        keys = drawable(filled.column_names[:-3])
        values = list(zip(*filled.to_pydict().values(), strict=True))
        points = [
            Point(row[:-3], count, low, high, f"{count:,.4g} ± {(high - low) / 2:,.4g}")
            for row, (count, low, high) in ((row, row[-3:]) for row in values)
        ]
        return Chart("count", keys, tuple(points), a_level(level))

    def _size(self, columns: tuple[str, ...]) -> str:
        return f"{math.prod(len(_labels(self.schema.columns[name])) for name in columns):,}"

    def table(self, *columns: str | Sequence[str], level: float = 0.95) -> Any:
        """One marginal as a pyarrow Table: its columns, `count`, `count_low` and `count_high`.

        The columns may stand in a tuple, as in `tables`.

        Raises ParameterError for columns that no marginal asked for covers.
        """
        import numpy as np
        import pyarrow as pa

        listed = columns[0] if len(columns) == 1 and isinstance(columns[0], tuple | list) else columns
        columns = names(listed, "table", "table('ward', 'age')")
        counts = self.release.table(columns)
        low, high = self.release.interval(columns, str(a_level(level)))
        values = {name: _labels(self.schema.columns[name]) for name in columns}
        places = np.indices(counts.shape).reshape(len(columns), -1)
        filled: dict[str, Any] = {name: [values[name][i] for i in places[j]] for j, name in enumerate(columns)}
        filled |= {"count": counts.ravel(), "count_low": low.ravel(), "count_high": high.ravel()}
        return pa.table(filled)


def _paid(cost: Fraction, *, charged: bool) -> str:
    return f"charged epsilon {decimal_text(cost)}" if charged else "stored already: nothing was charged"


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,.1f}" if isinstance(value, float) else str(value)


def _labels(column: Any) -> list[Any]:
    """What each code of a column stands for: a value, or an interval of numbers."""
    from hubbub.synthesis.records import Categories

    if isinstance(column, Categories):
        return [*column.values, *([] if column.other is None else [column.other])]
    ends = [f"{e:g}" for e in column.edges]
    last = len(ends) - 2
    labels = [f"[{a}, {b}{']' if i == last else ')'}" for i, (a, b) in enumerate(itertools.pairwise(ends))]
    return [*labels, *([None] if column.nullable else [])]


@at_work("making the release")
def synthetic_table(door: Door, asked: SynthesisAsked, *, fresh: bool) -> SyntheticTable:
    """Charge, read, draw, store; or the stored table.

    Raises QueryError where hardly any row has declared values.
    """
    from hubbub.synthesis.session_adapter import hardly_any, unpacked, utility_in

    asked.question.check()
    stored, charged = door.release(asked.request(door.data), fresh=fresh)
    nothing = hardly_any(stored.payload)
    if nothing is not None:
        spent = "A fiftieth of the amount was charged, and the rest came back." if charged else "Nothing was charged."
        raise QueryError(f"{nothing} {spent}", remedy=TrimBlanks())
    schema = asked.question.schema
    codes, report, predicted = unpacked(stored.payload, schema)
    cost = asked.epsilon if charged else Fraction(0)
    rows, receipt = schema.decode(codes, bits=door.bits), door.ledger.record.receipt(stored.charge_id)
    utility, target = utility_in(stored.payload), asked.target
    if target is not None and utility is not None:
        report = f"{utility.about(target)}\n{report}"
    return SyntheticTable(cost, charged, stored.charge_id, report, rows, predicted, utility, receipt, target)


@at_work("making the release")
def marginals(door: Door, asked: MarginalsAsked, *, fresh: bool) -> Marginals:
    """Noise-optimal marginals: charge, read, draw, store; or the stored ones."""
    from hubbub.synthesis.marginals import MarginalRelease

    stored, charged = door.release(asked.request(door.data), fresh=fresh)
    release = MarginalRelease(asked.plan, _residuals(asked.plan, stored.payload))
    cost, receipt = asked.epsilon if charged else Fraction(0), door.ledger.record.receipt(stored.charge_id)
    return Marginals(cost, charged, stored.charge_id, release, asked.schema, receipt)


def _residuals(plan: MarginalPlan, payload: str) -> dict[tuple[str, ...], Any]:
    import numpy as np

    residuals = json.loads(payload)
    if residuals.get("format") != "marginals 1" or len(residuals["residuals"]) != len(plan.shares):
        raise PolicyError("this stored release is not a set of these marginals; ask for them anew.")
    return {columns: np.asarray(r, float) for columns, r in zip(plan.shares, residuals["residuals"], strict=True)}
