"""What a question would cost and how good its answer would be, told before any row is read.

Everything here follows from declarations and scales: expected errors, the mechanism in words, what the error bars do
not cover, and the facts that a receipt shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.ledger.budget import decimal_text
from hubbub.mechanisms.ratio import two_laplace_half_width
from hubbub.release import text_table
from hubbub.tables.plan import Measurement
from hubbub.tables.price import Price
from hubbub.tables.question import Aggregate, Function, Key

__all__ = ["Check", "ColumnError", "details", "mechanism", "notes", "predicted"]


@dataclass(frozen=True)
class ColumnError:
    """What `check` predicts for one column: the half-width of its 95 % interval, and under which assumption.

    plus_minus is None for a column that is computed from others: its error depends on the answer.
    """

    name: str
    plus_minus: float | None
    unit_note: str = ""


@dataclass(frozen=True)
class Check:
    """What a question would cost and how good its answer would be. No row was read, nothing charged.

    columns: the predicted error of every estimate. notes: what the error bars do not cover.
    stored: the answer is in the ledger already and would be free.
    """

    epsilon: Fraction
    left: Fraction
    columns: tuple[ColumnError, ...]
    mechanism: str
    notes: tuple[str, ...]
    stored: bool = False
    groups: int = 1
    fits: bool | None = None

    @property
    def affordable(self) -> bool:
        """Whether the budget and every limit below it hold the charge, or the answer is free."""
        return self.stored or (self.epsilon <= self.left if self.fits is None else self.fits)

    @property
    def cost(self) -> Fraction:
        """What asking would charge: 0 for a stored answer."""
        return Fraction(0) if self.stored else self.epsilon

    def __str__(self) -> str:
        rows = [(c.name, "" if c.plus_minus is None else f"± {c.plus_minus:,.4g}", c.unit_note) for c in self.columns]
        lines = [text_table(("column", "95 % of answers within", ""), rows), ""]
        cost = "0 (stored already)" if self.stored else decimal_text(self.epsilon)
        left = decimal_text(self.left)
        lines.append(f"cost: epsilon {cost}; left: {left}{'' if self.affordable else ', NOT ENOUGH'}")
        lines += [self.mechanism, *self.notes]
        return "\n".join(line.rstrip() for line in lines)


def predicted(price: Price, assume_rows: int) -> list[ColumnError]:
    """The half-width of each estimate's 95 % interval, from scales alone."""
    found = []
    for output in price.plan.question.outputs:
        what = output.what
        if isinstance(what, Key):
            continue
        if not isinstance(what, Aggregate):
            found.append(ColumnError(output.name, None, "follows from the other columns; the release has its interval"))
            continue
        parts = price.plan.measurement_of(what)
        step = float(parts[0].grid.step)
        if what.function is not Function.AVG:
            found.append(ColumnError(output.name, price.part(parts[0]).noise.half_width(0.95) * step))
            continue
        # The farther a mean lies from the middle of its range, the more the noise of the count moves it.
        farthest = max(-parts[0].low, parts[0].high)
        total, count = (float(price.part(p).noise.scale) for p in parts)
        reach = two_laplace_half_width(0.95, total, farthest * count) * step / assume_rows
        limit = (parts[0].high - parts[0].low) * step
        found.append(ColumnError(output.name, min(reach, limit), f"at most, if a group has {assume_rows:,} values"))
    return found


def mechanism(price: Price) -> str:
    parts = ", ".join(
        f"{_called(p.measurement)} at scale {float(p.noise.scale * p.measurement.grid.step):,.4g}" for p in price.parts
    )
    return f"mechanism: exact discrete Laplace noise ({parts})"


def _called(measurement: Measurement) -> str:
    return {"units": "units", "rows": "rows", "values": "values", "sum": "sum"}[measurement.counting.value]


def notes(price: Price) -> tuple[str, ...]:
    plan, bounds = price.plan, price.plan.bounds
    if plan.each_row:
        return ("protected: each single row. The ± covers the noise.",)
    limits = f"{bounds.rows} row{'s' * (bounds.rows > 1)}" + (
        f" in each of {bounds.groups} groups" if plan.domains else ""
    )
    return (
        f"protected: everything one {plan.table.unit} contributed ({plan.neighbours.replace('_', '/')}).",
        f"The ± covers the noise; one {plan.table.unit} counts with at most {limits}.",
    )


def details(price: Price) -> dict[str, Any]:
    """What a receipt shows: public facts only."""
    plan = price.plan
    return {
        "table": plan.question.table,
        "unit": "each row" if plan.each_row else plan.table.unit,
        "neighbours": plan.neighbours,
        "max_groups": plan.bounds.groups,
        "max_rows": plan.bounds.rows,
        "groups": plan.group_count,
        "mechanism": "discrete Laplace",
        "measurements": [
            {
                "counts": _called(p.measurement),
                "step": str(p.measurement.grid.step),
                "sensitivity": p.sensitivity,
                "scale": str(p.noise.scale),
                "epsilon": str(p.epsilon),
            }
            for p in price.parts
        ],
    }
