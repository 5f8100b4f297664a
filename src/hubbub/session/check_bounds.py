"""How much a question's limits leave out, bought: noisy histograms of units by number of groups, of rows, and by sum.

    check = session.check_bounds("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.5)

Each unit stands once in each histogram, on a place of a grid that no data chose (`hubbub.mechanisms.place_search`): l1
1, under replace 2. The amount is divided equally among them. Everything told is made of the released counts:

- of units: the share beyond each candidate limit, with an interval;
- of rows: only at least, and only up to the largest candidate. How many rows lie beyond has no bounded sensitivity: one
  unit may hold any number of them, so no private figure is near it for every table (Dwork, Roth 2014, Definition 3.1);
- a recommendation: the candidate of the least predicted error at an amount, noise and what is left out together.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hubbub.accounting import Composed
from hubbub.accounting.amounts import ratio
from hubbub.answer.release import text_table
from hubbub.errors import ParameterError, PolicyError, QueryError
from hubbub.ledger.budget import decimal_text
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.place_search import PLACES, PlaceSearch
from hubbub.session.finding import named
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement, amount_of
from hubbub.session.run import Door, Request, Steps
from hubbub.session.statement import check_drawn_by
from hubbub.tables.aggregates.sum import SUM
from hubbub.tables.columns import Between, UpTo
from hubbub.tables.expressions import Column
from hubbub.tables.measure import Measurement, bounded_sum
from hubbub.tables.plan import GROUPS_GIVEN, Plan, Search

if TYPE_CHECKING:
    from hubbub.ledger.budget import Budget
    from hubbub.ledger.records import StoredRelease
    from hubbub.noise import Bits
    from hubbub.session.data import OpenTables

__all__ = ["AskedBounds", "BoundsCheck", "Candidate", "LimitCheck", "bounds_checked", "bounds_request"]

Budgets: TypeAlias = "Callable[[str], Budget]"
_FORMAT = "bounds 1"
_SHOWN = 12
_BEYOND = 2
"""So many candidates above the bound that would be found are shown."""


@dataclass(frozen=True)
class Candidate:
    """One limit: the share of units beyond it, with the ends of its 95 % interval; the share of rows (or of the sum)
    that it leaves out at least; and the predicted error of a total, as a part of what was counted.
    """

    bound: Fraction
    beyond: float
    low: float
    high: float
    left_out: float
    error: float


@dataclass(frozen=True)
class LimitCheck:
    """What was counted for one limit. what: "max_groups", "max_rows", or the bound of a column's sums. units: how many
    were counted, with noise. recommended: the candidate of the least predicted error; None for too few units.
    """

    what: str
    units: int
    candidates: tuple[Candidate, ...]
    recommended: Fraction | None

    def __str__(self) -> str:
        rows = [
            (
                _shown(c.bound),
                f"{c.beyond:.2%} ({c.low:.2%}..{c.high:.2%})",
                f"at least {c.left_out:.2%}",
                f"{c.error:.2%}",
            )
            for c in self.candidates
        ]
        left_out = "left out of the sum" if self.what.startswith("sum") else "left out of these"
        head = (self.what, "units beyond it", left_out, "predicted error")
        advice = (
            "too few units to recommend a limit"
            if self.recommended is None
            else f"recommended: {self.what} = {_shown(self.recommended)}"
        )
        return f"{text_table(head, rows)}\n{advice}"


@dataclass(frozen=True)
class BoundsCheck:
    """How much limits leave out. limits: one for each that the question has. cost, charged, charge_id: as of an answer.

    The counts are released: what is told here costs nothing more.
    """

    cost: Fraction
    charged: bool
    charge_id: str
    limits: tuple[LimitCheck, ...]
    _sql: str = field(default="", repr=False)

    def to_wire(self) -> dict[str, Any]:
        """The check as JSON."""
        limits = [
            {
                "what": limit.what,
                "units": limit.units,
                "recommended": None if limit.recommended is None else str(limit.recommended),
                "candidates": [{**asdict(each), "bound": str(each.bound)} for each in limit.candidates],
            }
            for limit in self.limits
        ]
        about = {"cost": str(self.cost), "charged": self.charged, "charge_id": self.charge_id, "sql": self._sql}
        return {"format": _FORMAT, **about, "limits": limits}

    @classmethod
    def from_wire(cls, told: Mapping[str, Any]) -> BoundsCheck:
        """What `to_wire` wrote.

        Raises ParameterError for anything else.
        """
        try:
            if told["format"] != _FORMAT:
                raise ValueError("the bounds of another hubbub")
            limits = tuple(
                LimitCheck(
                    str(each["what"]),
                    int(each["units"]),
                    tuple(Candidate(**{**one, "bound": ratio(one["bound"])}) for one in each["candidates"]),
                    None if each["recommended"] is None else ratio(each["recommended"]),
                )
                for each in told["limits"]
            )
            return cls(ratio(told["cost"]), bool(told["charged"]), str(told["charge_id"]), limits, str(told["sql"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ParameterError("this is not a check of bounds of this version of hubbub.") from None

    def __str__(self) -> str:
        largest = "What the largest limit shown leaves out is not known: nothing bounds it."
        return "\n\n".join([*map(str, self.limits), largest])


@dataclass(frozen=True, eq=False)
class AskedBounds:
    """The limits of a question that are looked at. asked: the question, with limits that are not known."""

    asked: PricedStatement
    options: Options
    searches: tuple[Search, ...]

    @classmethod
    def of(
        cls, data: OpenTables, sql: str, given: Mapping[str, Any], budget: Budgets, now: dt.datetime | None = None
    ) -> AskedBounds:
        """What a question's limits are; of groups the declared one, where there is one. given: its options.

        Raises what `Session.check_bounds` raises before the charge.
        """
        error: PolicyError | None = None
        for auto in ({"max_rows": "auto"}, {"max_rows": "auto", "max_groups": "auto"}):
            options = Options.of({**auto, **given})
            try:
                asked = data.ask(sql, options, budget, now)
            except PolicyError as refused:
                error = refused
                continue
            if isinstance(asked, PricedStatement):
                return cls(asked, options, _all_searches(asked))
            raise QueryError("check_bounds: this question is about public tables alone, and nothing is bounded.")
        assert error is not None
        raise error

    @property
    def passes(self) -> int:
        """How often the rows are read."""
        return len(self.searches)

    def request(self, data: OpenTables) -> Request:
        """The histograms as the door takes them."""
        return _request(data, self.asked, self.searches, self.options)

    def shown(self, door: Door, stored: StoredRelease, *, charged: bool, at: Any = None) -> BoundsCheck:
        """What the histograms say. at: the epsilon that is predicted for; else the same.

        Raises QueryError where they are of another question.
        """
        check_drawn_by(self.request(door.data).key, stored)
        asked, options, searches = self.asked, self.options, self.searches
        plans = [plan for plans in asked.plans for plan in plans]
        predicted = (
            asked.amount.spend
            if at is None
            else amount_of(door.ledger.balance.budget(asked.space), plans, options.at(at)).spend
        )
        histograms = stored.contents["histograms"]
        mechanism = _mechanism(asked, searches)
        places = [mechanism.found(n) for s, n in zip(searches, histograms, strict=True) if s.what == "rows"]
        rows = max((2 ** (max(place or 1, 1) - 1) for place in places), default=1)
        limits = tuple(
            _limit(s, mechanism, noisy, predicted, rows) for s, noisy in zip(searches, histograms, strict=True)
        )
        return BoundsCheck(stored.epsilon if charged else Fraction(0), charged, stored.charge_id, limits, asked.sql)


def bounds_checked(
    door: Door, sql: str, given: Mapping[str, Any], *, at: Any = None, fresh: bool = False
) -> BoundsCheck:
    """What `Session.check_bounds` returns, charged through the door. at: the epsilon that is predicted for."""
    asked = AskedBounds.of(door.data, sql, given, door.ledger.balance.budget)
    stored, charged = door.release(asked.request(door.data), fresh=fresh)
    return asked.shown(door, stored, charged=charged, at=at)


def bounds_request(door: Door, sql: str, given: Mapping[str, Any]) -> Request:
    """What `bounds_checked` asks the door for."""
    return AskedBounds.of(door.data, sql, given, door.ledger.balance.budget).request(door.data)


def _all_searches(asked: PricedStatement) -> tuple[Search, ...]:
    plans = [plan for plans in asked.plans for plan in plans]
    searches = {named(s): s for plan in plans for s in _searches(plan)}
    if not searches:
        raise QueryError("check_bounds: nothing is bounded here: no unit has more than one row.")
    if any(plan.private_keys for plan in plans):
        raise PolicyError(
            "check_bounds: declare the groups, or give keys=...: here they are found privately.", remedy=GROUPS_GIVEN
        )
    return tuple(searches.values())


def _searches(plan: Plan) -> list[Search]:
    """What may be left out of a plan's answer: groups, rows, and the sums of columns of 0 or more."""
    if plan.one_row:
        return []
    made = [Search(plan, "groups")] if plan.keys and (plan.group_count or 2) > 1 else []
    made.append(Search(plan, "rows"))
    for aggregate in plan.question.aggregates:
        argument = aggregate.argument
        if aggregate.function is not SUM or not isinstance(argument, Column):
            continue
        known = plan.declared.get(argument.name)
        if isinstance(known, Between) and isinstance(known.low, Fraction) and known.low >= 0:
            known = UpTo(known.low)
        if isinstance(known, UpTo):
            declared = {**plan.declared, argument.name: known}
            summed = bounded_sum(argument, declared)
            assert isinstance(summed, Measurement)
            made.append(Search(replace(plan, declared=declared, measurements=(summed,)), argument.name, summed))
    return made


def _mechanism(asked: PricedStatement, searches: Sequence[Search]) -> PlaceSearch:
    part = asked.amount.spend.part(Fraction(1, len(searches)))
    return PlaceSearch(part, searches[0].plan.neighbours == "replace")


def _request(data: OpenTables, asked: PricedStatement, searches: Sequence[Search], options: Options) -> Request:
    """The histograms as the door takes them."""
    mechanism = _mechanism(asked, searches)
    event = Composed([mechanism.event] * len(searches))
    plans = [plan for plans in asked.plans for plan in plans]
    public = {
        id(plan): {leaf.place: asked.outer.leaf(leaf, {}) for leaf in asked.leaves(q)}
        for q, of_question in enumerate(asked.plans)
        for plan in of_question
        if not any(leaf.released for leaf in asked.leaves(q))
    }
    if len(public) < len(plans):
        raise QueryError("check_bounds: a part of this question reads another's release; ask about it by itself.")
    by_relation = {repr(plan.question.relation): public[id(plan)] for plan in plans}

    @lru_cache(maxsize=4)
    def key(version: str) -> str:
        told = [version, asked.public_rows, asked.amount.noise, [search.key for search in searches]]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def steps(bits: Bits | None) -> Steps:
        counts = [data.run(s.histogram, by_relation[repr(s.plan.question.relation)]).vectors[0] for s in searches]
        yield event
        return json.dumps({"format": _FORMAT, "histograms": [mechanism.release(c, bits=bits) for c in counts]})

    return Request(
        kind="bounds",
        text=f"bounds of: {asked.text}",
        ask=lambda: {"sql": asked.sql, "now": asked.now.isoformat(), "options": options.to_wire()},
        space=asked.space,
        tables=asked.tables,
        epsilon=asked.epsilon,
        event=event,
        key=key,
        details={
            "kind": "bounds",
            "table": plans[0].question.table,
            "unit": plans[0].question.unit,
            "neighbours": plans[0].neighbours,
            "limits": [_called(search) for search in searches],
            "mechanism": "discrete Laplace" if asked.amount.spend.pure else "discrete Gaussian",
        },
        steps=steps,
        public=asked.public,
    )


def _called(search: Search) -> str:
    if search.what in ("groups", "rows"):
        return f"max_{search.what}"
    return f"sum of {search.what.partition('.')[2]}"


def _limit(search: Search, mechanism: PlaceSearch, noisy: Sequence[int], spend: Spend, rows: int) -> LimitCheck:
    """What one histogram says of each candidate. rows: what one unit may have in a group."""
    units = max(1, sum(noisy))
    place = mechanism.found(noisy)
    last = min(PLACES - 1, (place or 6) + _BEYOND)
    few = mechanism.thresholds[1]
    kept = [max(0, n) if n >= few or at <= (place or 0) else 0 for at, n in enumerate(noisy[: last + 1])]
    whole = sum(n * float(search.value(at)) for at, n in enumerate(kept))
    shown = []
    for at in range(max(1, last + 1 - _SHOWN), last + 1):
        bound = search.value(at)
        over, margin = sum(noisy[at + 1 :]), mechanism.margin(PLACES - 1 - at, 0.025) if at < PLACES - 1 else 0
        ends = (max(0.0, (over + sign * margin) / units) for sign in (-1, 0, 1))
        low, middle, high = (min(1.0, end) for end in ends)
        least = search.measurement is None  # of whole numbers the next one above a limit is one more
        outside = sum(
            n * max(0.0, float(search.value(p - 1)) + least - float(bound)) for p, n in enumerate(kept) if p > at
        )
        middle_out = sum(
            n * max(0.0, 0.75 * float(search.value(p)) - float(bound)) for p, n in enumerate(kept) if p > at
        )
        error = math.hypot(middle_out / (whole or 1), _noise(search, float(bound), spend, rows) / (whole or 1))
        shown.append(Candidate(bound, middle, low, high, outside / (whole or 1), error))
    best = None if place is None else min(shown, key=lambda c: c.error).bound
    return LimitCheck(_called(search), units, tuple(shown), best)


def _noise(search: Search, bound: float, spend: Spend, rows: int) -> float:
    """The standard deviation of the noise of a total over all groups, for a limit."""
    plan = search.plan
    count = plan.group_count or 1
    groups = min(bound, count) if search.what == "groups" else min(plan.bounds.groups, count)
    each = (rows if search.what == "groups" else bound) * (1 if plan.neighbours == "add_remove" else 2)
    if spend.pure:
        return math.sqrt(2 * count) * groups * each / float(spend.amount)
    return math.sqrt(count * groups) * each / math.sqrt(2 * float(spend.amount))


def _shown(bound: Fraction) -> str:
    return f"{int(bound):,}" if bound.denominator == 1 else decimal_text(bound)
