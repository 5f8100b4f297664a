"""Intervals that hold the total, not the bounded one: as far as anything private can.

No interval holds the unbounded total: D and D plus one unit of M rows are neighbours, so an interval that holds both
totals with .95 reaches M on D with probability .95 e^-eps at least, for every M. What can be had, where a bound B was
found from a histogram (`hubbub.mechanisms.place_search`): with probability L

    [low, high + U (M - B)]

holds the total *at M rows of one unit* (or sums up to M). low and high are the ends of the noise at 1 - (1 - L) / 2, U
the upper end of the number of units beyond B at the same level: the union of both. M is the largest bound that the
search looked at, two doublings above B, and is printed; or `rows_per_unit_at_most`, the statement that no unit has
more rows, which is printed as that of the steward where the table declares it, and as the analyst's where whoever asks
says so: then it is the truth, by that statement. The steward's is about a table; it holds of questions in which no row
of it stands twice, and is not used of others.

A SUM of values in [lo, hi] moves by at most U (M - B) hi above and U (M - B) (-lo) below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hubbub.accounting.amounts import ratio
from hubbub.errors import QueryError
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.place_search import PlaceSearch
from hubbub.remedies import GiveOptions, Rewrite
from hubbub.session.finding import Known
from hubbub.tables.aggregate_query import Aggregate, Statement
from hubbub.tables.aggregates.count import COUNT_ROWS, COUNT_VALUES
from hubbub.tables.aggregates.sum import SUM
from hubbub.tables.plan import Plan

__all__ = ["TotalError", "refuse_total_error"]

_LOOKED_AT = 4


@dataclass(frozen=True)
class TotalError:
    """How much wider intervals are that hold the total.

    plans: as they were drawn. record: what was found for them. places: the plans of each question. most: how many rows
    of one unit there are, as whoever asks states; None where nothing is. declared: the same by plan, as tables state.
    """

    plans: tuple[Plan, ...]
    record: tuple[Known, ...]
    places: tuple[tuple[int, ...], ...]
    replace: bool
    most: int | None = None
    declared: Mapping[int, int] = field(default_factory=dict, hash=False)

    def extra(self, question: int, at: int, aggregate: Aggregate, level: float) -> tuple[float, float]:
        """How much further down and up an aggregate's interval reaches, in its unit, in plan `at` of a question."""
        number = self.places[question][at]
        plan = self.plans[number]
        (measured, *_) = plan.measurement_of(aggregate)
        entry = next(e for e in self.record if e["plan"] == number and (e["what"] == "rows") == (not measured.cap))
        bound = ratio(entry["bound"])
        beyond = self._beyond(entry, (1 - level) / 2)
        over = float(max(Fraction(0), self._most(entry) - bound)) * beyond
        if measured.cap or aggregate.function is not SUM:
            return 0.0, over
        value = measured.values[0]
        low, high = (float(end * value.grid.step) for end in (value.floor, value.ceiling))
        return over * max(0.0, -low), over * max(0.0, high)

    def _most(self, entry: Known) -> Fraction:
        stated = self._stated(entry)
        return _LOOKED_AT * ratio(entry["bound"]) if stated is None else Fraction(stated[0])

    def _stated(self, entry: Known) -> tuple[int, str] | None:
        """How many rows of one unit there are at most, by the smallest statement, and whose that is."""
        if entry["what"] != "rows":
            return None
        given = ((self.declared.get(entry["plan"]), "the steward"), (self.most, "the analyst"))
        return min(((most, who) for most, who in given if most is not None), key=lambda s: s[0], default=None)

    def _beyond(self, entry: Known, beta: float) -> int:
        epsilon, rho = (None if amount is None else ratio(amount) for amount in entry["part"])
        search = PlaceSearch(Spend(epsilon=epsilon, rho=rho), self.replace)
        return search.beyond(entry["noisy"], entry["place"], beta=beta)

    @property
    def lines(self) -> tuple[str, ...]:
        """What the intervals hold, in words."""
        lines = []
        for entry in self.record:
            plan, most = self.plans[entry["plan"]], self._most(entry)
            if entry["what"] == "groups":
                continue
            rows = entry["what"] == "rows"
            size = (
                f"{int(most):,} rows" if rows else f"a sum of {entry['what'].partition('.')[2]} of {float(most):,.12g}"
            )
            within = f" in each of {plan.bounds.groups:,} groups" if plan.keys else ""
            told = f"bounded, and the ± holds what that leaves out, up to {size} of one {plan.question.unit}{within}"
            stated = self._stated(entry)
            lines.append(
                told if stated is None else f"{told}: {stated[1]} stated that no {plan.question.unit} has more"
            )
        return tuple(dict.fromkeys(lines))


def refuse_total_error(statement: Statement, plans: Sequence[Plan]) -> None:
    """Raises QueryError where an interval cannot hold the total, with the way out."""
    wrong = [o.name for o in statement.outputs if not o.exact and not _is_total(o)]
    if wrong:
        raise QueryError(
            f"total_error= is for COUNT(*), COUNT(x) and SUM(x) as they are; {wrong[0]!r} is another. Rows that were "
            "left out may be more than those that count, so a mean, a spread or a quantile of all rows may lie "
            "anywhere in its range. Ask for counts and sums, and compute with their intervals: for a mean the ends of "
            "SUM(x) divided by those of COUNT(x).",
            remedy=Rewrite("SUM(x)"),
        )
    if not all(set(plan.to_find) - {"groups"} for plan in plans if not plan.one_row):
        raise QueryError(
            'total_error= needs a histogram of the units: ask with max_rows="auto", or declare between(0, "auto").',
            remedy=GiveOptions(("max_rows",), ("auto",), instead=("max_total",)),
        )
    if any((plan.group_count or 1) > plan.bounds.groups or "groups" in plan.auto for plan in plans if plan.keys):
        raise QueryError(
            "total_error= does not hold what dropping groups leaves out: give max_groups=..., as large as the number "
            "of "
            "groups.",
            remedy=GiveOptions(("max_groups",)),
        )


def _is_total(output: Any) -> bool:
    what = output.what
    return isinstance(what, Aggregate) and what.function in (COUNT_ROWS, COUNT_VALUES, SUM)
