"""What a question would cost and how good its answer would be, told before any row is read.

Everything here follows from declarations and scales: expected errors, the mechanism in words, what the error bars do
not cover, how often such a question fits, and the facts that a receipt shows. The error of a ratio depends on how many
rows a group has, which is private; it is told for an assumed number. The error of a quantile in values depends on the
data: it is told in ranks, and in the column's unit as if the assumed number of values were spread evenly over the
declared range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any

from hubbub.accounting import Cost, PureFilter, ZCDPFilter, rho_of_epsilon
from hubbub.accounting.amounts import ratio
from hubbub.errors import ParameterError, QueryError
from hubbub.ledger.budget import Budget, decimal_text, last_digit, short_text
from hubbub.mechanisms.groups import GroupThreshold
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.noise import DiscreteLaplace
from hubbub.plots.page import html_lines, html_table
from hubbub.remedies import GiveOptions
from hubbub.tables.aggregate_query import Aggregate, Output
from hubbub.tables.aggregates.base import Listed, Mechanisms, OwnPart, Promise
from hubbub.tables.aggregates.top_place import listed_from
from hubbub.tables.estimates import Estimates, expected
from hubbub.tables.functions import DAY
from hubbub.tables.kinds import TEMPORAL, Kind
from hubbub.tables.left_out import counted
from hubbub.tables.measure import listed
from hubbub.tables.parts import Selection, Sums
from hubbub.tables.plan import Plan
from hubbub.tables.price import Price, PricedPart, Spend, make_price

__all__ = [
    "Check",
    "ColumnError",
    "Side",
    "details",
    "how_many",
    "mechanism",
    "notes",
    "predicted",
    "sides",
    "smallest_spend",
    "spends",
]

LEVEL = 0.95
_DIGITS = 3
_SHOWN = 6
_FORMAT = "check 1"


@dataclass(frozen=True)
class ColumnError:
    """What `check` predicts for one column: the half-width of its 95 % interval, and under which assumption.

    plus_minus is None for a column that is computed from others, whose error depends on the answer, and for a
    quantile, whose error is `ranks`: how many ranks, of the rows counted in its group, it is off; and for a choice,
    whose error is `rows`: by how many rows its value is less frequent than the most frequent one at most. even: the
    error of a quantile in the column's unit (of times in days) if the assumed number of values were spread evenly over
    the declared range; None where that is the whole range, and where the column has no such range.
    """

    name: str
    plus_minus: float | None
    unit_note: str = ""
    ranks: float | None = None
    rows: int | None = None
    even: float | None = None


@dataclass(frozen=True)
class Side:
    """One kind of noise that the budget allows: what the question would cost with it, and its errors."""

    name: str
    cost: str
    columns: tuple[ColumnError, ...]
    fits: int | None


@dataclass(frozen=True)
class Check:
    """What a question would cost and how good its answer would be. No row was read, nothing charged.

    columns: the predicted error of every estimate. notes: what the error bars do not cover. stored: the answer is in
    the ledger already and would be free. sides: where the budget allows two kinds of noise, both. how_many: how many
    such questions, one after another, what is left holds (None: unknown, or without end).
    """

    epsilon: Fraction
    left: Fraction
    columns: tuple[ColumnError, ...]
    mechanism: str
    notes: tuple[str, ...]
    stored: bool = False
    groups: int | None = 1
    fits: bool | None = None
    sides: tuple[Side, ...] = ()
    how_many: int | None = None
    bounds: tuple[tuple[int, tuple[ColumnError, ...]], ...] = ()
    _types: Callable[[], tuple[tuple[str, str], ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def types(self) -> tuple[tuple[str, str], ...]:
        """The columns of the answer with their Arrow types, as in ("n", "int64"); empty where that cannot be told.

        From an answer about nobody, which is made when this is asked for.
        """
        return self._types()

    @property
    def affordable(self) -> bool:
        """Whether the budget and every limit below it hold the charge, or the answer is free."""
        return self.stored or (self.epsilon <= self.left if self.fits is None else self.fits)

    @property
    def cost(self) -> Fraction:
        """What asking would charge: 0 for a stored answer."""
        return Fraction(0) if self.stored else self.epsilon

    def to_wire(self) -> dict[str, Any]:
        """The check as a value for `json.dumps`, amounts as exact texts ("1/3")."""
        told = _plain(asdict(self))
        del told["_types"]
        facts = {"affordable": self.affordable, "cost": str(self.cost), "types": _plain(self.types)}
        return {"format": _FORMAT, **told, **facts}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Check:
        """What `to_wire` wrote.

        Raises ParameterError for anything else.
        """
        try:
            if wire["format"] != _FORMAT:
                raise ValueError("the check of another hubbub")
            given = {field.name: wire[field.name] for field in fields(cls) if field.name != "_types"}
            given["epsilon"], given["left"] = ratio(given["epsilon"]), ratio(given["left"])
            given["columns"] = tuple(ColumnError(**column) for column in given["columns"])
            sides = ({**side, "columns": tuple(ColumnError(**c) for c in side["columns"])} for side in given["sides"])
            given["sides"], given["notes"] = tuple(Side(**side) for side in sides), tuple(given["notes"])
            types = tuple((str(name), str(kind)) for name, kind in wire["types"])
            given["_types"] = lambda: types
            bounds = ((bound, tuple(ColumnError(**c) for c in columns)) for bound, columns in given["bounds"])
            given["bounds"] = tuple(bounds)
            return cls(**given)
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise ParameterError("this is not a check of this version of hubbub.") from None

    def __str__(self) -> str:
        from hubbub.answer.release import text_table

        first, *more = (text_table(columns, rows) for columns, rows in self._tables())
        parts = [first, "\n".join(self._said()), *more]
        return "\n".join(line.rstrip() for line in "\n\n".join(parts).split("\n"))

    def _repr_html_(self) -> str:
        """For notebooks: what is predicted, as tables."""
        first, *more = (html_table(columns, rows) for columns, rows in self._tables())
        return f"<div>{first}{html_lines(self._said())}{''.join(more)}</div>"

    def _said(self) -> list[str]:
        """What it costs, which noise it has, and the notes."""
        cost = "0 (stored already)" if self.stored else decimal_text(self.epsilon)
        many = "" if self.how_many is None else f"; {self.how_many:,} such questions fit"
        enough = "" if self.affordable else ", NOT ENOUGH"
        return [f"cost: epsilon {cost}; left: {short_text(self.left)}{many}{enough}", self.mechanism, *self.notes]

    def _tables(self) -> Iterator[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """The errors of the columns; then those at bounds that are to be found, and those of both kinds of noise."""
        yield ("column", "95 % of answers within", ""), [_row(c) for c in self.columns]
        if self.bounds:
            names = [column.name for column in self.bounds[0][1]]
            yield ("bound found", *names), [(f"{bound:,}", *(_row(c)[1] for c in cs)) for bound, cs in self.bounds]
        if len(self.sides) > 1:
            names = [column.name for column in self.sides[0].columns]
            rows = [(s.name, s.cost, *(_row(c)[1] for c in s.columns), _fits(s.fits)) for s in self.sides]
            yield ("noise", "cost", *names, "fit"), rows


def _plain(value: Any) -> Any:
    """A value as JSON has it; a float that JSON has not is None."""
    match value:
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case Fraction():
            return str(value)
        case float():
            return value if math.isfinite(value) else None
    return value


def settled(left: Fraction, fits: Callable[[Fraction], bool]) -> Fraction:
    """What is left of a budget with delta, which a square root rounds down; the number of six digits just above it
    where a question at that fits, as it does while nothing was spent.
    """
    if left <= 0:
        return left
    unit = last_digit(left, _SHOWN)
    above = math.ceil(left / unit) * unit
    return above if above - left < unit / 10**6 and fits(above) else left


def _fits(count: int | None) -> str:
    return "no end" if count is None else f"{count:,}"


def _row(column: ColumnError) -> tuple[str, str, str]:
    if column.ranks is not None:
        return column.name, f"± {column.ranks:,.4g} ranks", column.unit_note
    if column.rows is not None:
        return column.name, f"{column.rows:,} row{'s' * (column.rows != 1)}", column.unit_note
    return column.name, "" if column.plus_minus is None else f"± {column.plus_minus:,.4g}", column.unit_note


def predicted(
    price: Price, outputs: Sequence[Output], plans_of: Sequence[Sequence[int]], assume_rows: int
) -> tuple[ColumnError, ...]:
    """The half-width of each estimate's 95 % interval, from scales alone; the largest over a question's groupings,
    and over the aggregates whose values a column hands on. Keys and what follows from them alone are left out.

    outputs: the columns of the answer. plans_of: for each question of the statement, the places of its plans in
    `price.plans`.
    """
    columns = []
    scales = expected(price)
    for output in outputs:
        errors = [
            _error(price, scales[at], at, output.name, what, assume_rows)
            for question, what in output.cells
            for at in plans_of[question]
        ]
        if errors:
            columns.append(max(errors, key=lambda e: (e.ranks or 0.0, e.rows or 0, e.plus_minus or 0.0)))
        elif output.what is None and not output.exact:
            columns.append(
                ColumnError(output.name, None, "follows from the other columns; the release has its interval")
            )
    return tuple(columns)


def _error(price: Price, scales: Estimates, at: int, name: str, aggregate: Aggregate, assume_rows: int) -> ColumnError:
    if isinstance(aggregate.function, Listed):
        promise = aggregate.function.promise(aggregate, price.own(at, aggregate))
        if promise.ranks is None:
            return ColumnError(name, None, promise.note, promise.ranks, promise.rows)
        return _of_ranks(price.plans[at], name, aggregate, promise, assume_rows)
    for priced in price.of_plan(at):
        if isinstance(priced.draws, UnknownTopK):
            assert isinstance(priced.part, Selection)
            counted = priced.part.measurement.counting.value
            note = f"names groups of {listed_from(priced.draws):,} {counted} or more, 19 times in 20"
            return ColumnError(name, None, note)
    reach = scales.predicted(aggregate, LEVEL, assume_rows)
    of_what = aggregate.function.ratio
    return ColumnError(name, reach, f"at most, if a group has {assume_rows:,} {of_what}" if of_what else "")


def _of_ranks(plan: Plan, name: str, aggregate: Aggregate, promise: Promise, assume_rows: int) -> ColumnError:
    """What being off by so many ranks means in values, if they were spread evenly over the declared range."""
    assert promise.ranks is not None
    value = plan.measurement_of(aggregate)[0].values[0]
    low, high = (float(value.numbers(float(end))) for end in (value.floor, value.ceiling))
    if promise.ranks >= assume_rows:
        told = f"as many as a group of {assume_rows:,} values has: the answer may be any value of the declared range"
        return ColumnError(name, None, told, promise.ranks)
    kind = aggregate.function.kind(aggregate)
    per, unit = (DAY if kind is Kind.TIMESTAMP else 1), " days" * (kind in TEMPORAL)
    even = promise.ranks / assume_rows * (high - low) / per
    told = f"± {even:,.4g}{unit}, if {assume_rows:,} values were spread evenly over the declared range; {promise.note}"
    return ColumnError(name, None, told, promise.ranks, even=even)


def mechanism(price: Price) -> str:
    """The mechanisms in words, part by part."""
    return "mechanism: " + "; ".join(_in_words(p) for p in price.parts)


def _in_words(priced: PricedPart) -> str:
    part = priced.part
    if isinstance(part, OwnPart):
        assert isinstance(priced.draws, Mechanisms)
        return priced.draws.words
    if isinstance(part, Selection):
        if isinstance(priced.draws, UnknownTopK):
            return f"exponential mechanism {priced.draws.k} times, among the groups there are and 'no other'"
        assert isinstance(priced.draws, GroupThreshold)
        return f"{_noise(priced, Fraction(1))} on counts of units, groups shown from {priced.draws.threshold} on"
    return f"{_noise(priced, part.step)} on {_called(part)}"


def _noise(priced: PricedPart, step: Fraction) -> str:
    law = priced.noise
    if isinstance(law, DiscreteLaplace):
        return f"exact discrete Laplace noise of scale {float(law.scale * step):,.4g}"
    return f"exact discrete Gaussian noise of sigma {law.sigma * float(step):,.4g}"


def _called(part: Sums) -> str:
    names = {"rows": "rows", "values": "values", "units": "units", "distinct": "distinct values", "product": "products"}
    return names.get(part.name, part.name)


def notes(price: Price, *, bounded: bool = True) -> tuple[str, ...]:
    """Who is protected, and what the ± does not cover. bounded: whether the limits are known."""
    remarks: dict[str, None] = {}
    for plan in price.plans:
        if plan.question.each_row and plan.one_row:
            remarks["protected: each single row. The ± covers the noise."] = None
            continue
        remarks[
            f"protected: everything one {plan.question.unit} contributed ({plan.neighbours.replace('_', '/')})."
        ] = None
        remarks |= dict.fromkeys(_bounding_notes(plan)) if bounded else {}
        if plan.domains and plan.group_count is not None:
            remarks[f"groups: {plan.group_count:,}, each answered."] = None
        if plan.private_keys:
            remarks["Which groups there are is private: small groups are left out."] = None
    remarks |= dict.fromkeys(p.note for p in price.parts if p.note)
    return tuple(remarks)


def _bounding_notes(plan: Plan) -> Iterator[str]:
    """How much one unit counts, and what is done with more."""
    yield f"The ± covers the noise; {'; '.join(counted(plan))}."
    if plan.norm is not None and plan.private_keys:
        yield "Groups are found privately, so a unit's groups are dropped and its rows cut; no norm is clipped."
    elif plan.clipping and any(map(listed, plan.measurements)):
        yield "Quantiles and distinct values have no norm to clip: for them groups are dropped and rows cut."


def details(price: Price) -> dict[str, Any]:
    """What a receipt shows: public facts only, JSON-ready."""
    first = price.plans[0]
    return {
        "table": first.question.table,
        "tables": sorted({name for plan in price.plans for name in plan.question.tables}),
        "unit": "each row" if first.question.each_row else first.question.unit,
        "neighbours": first.neighbours,
        "max_groups": first.bounds.groups,
        "max_rows": first.bounds.rows,
        "bounding": _bounding(first),
        "groups": first.group_count,
        "mechanism": "discrete Laplace" if price.spend.pure else "discrete Gaussian",
        "rho": None if price.spend.pure else str(price.spend.rho),
        "delta": str(price.spend.delta if any(p.private_keys for p in price.plans) else Fraction(0)),
        "plans": [_plan_details(plan) for plan in price.plans],
        "measurements": [_part_details(p, pure=price.spend.pure) for p in price.parts],
    }


def _plan_details(plan: Plan) -> dict[str, Any]:
    limits = {"max_groups": plan.bounds.groups, "max_rows": plan.bounds.rows, "bounding": _bounding(plan)}
    return limits | {"groups": plan.group_count}


def _bounding(plan: Plan) -> str:
    return f"{plan.norm} norm" if plan.clipping else "groups"


def _part_details(priced: PricedPart, *, pure: bool) -> dict[str, Any]:
    part = priced.part
    details: dict[str, Any] = {"plan": priced.plan, "epsilon" if pure else "rho": str(priced.amount)}
    if isinstance(part, Sums):
        details |= {"counts": _called(part), "step": str(part.step)}
        details["sensitivity" if pure else "squared_sensitivity"] = part.l1 if pure else part.l2_squared
    elif isinstance(part, OwnPart):
        assert isinstance(priced.draws, Mechanisms)
        return details | priced.draws.details
    else:
        if isinstance(priced.draws, UnknownTopK):
            top = priced.draws
            counted = part.measurement.counting.value
            details |= {"counts": f"{counted}, to name the most frequent groups", "step": "1"}
            details |= {"sensitivity": top.sensitivity}
            details |= {"choices": top.k, "epsilons": [str(top.epsilon)] * top.k, "floor": top.floor}
            return details | {"delta": str(top.delta), "groups_of_one_unit": top.items}
        assert isinstance(priced.draws, GroupThreshold)
        details |= {"counts": "units, to find the groups", "step": "1", "sensitivity": priced.draws.groups}
        details |= {"threshold": priced.draws.threshold, "delta": str(priced.draws.delta)}
    law = priced.noise
    return details | ({"scale": str(law.scale)} if isinstance(law, DiscreteLaplace) else {"sigma2": str(law.sigma2)})


def spends(epsilon: Fraction, budget: Budget) -> dict[str, Spend]:
    """How a question at `epsilon` can be paid from a budget: "pure", and under a delta "gaussian" (first: the default).

    Under a delta the Gaussian form costs the rho that one (epsilon, delta) release would, at the budget's own delta;
    a threshold for private groups may cost a hundredth of the delta set aside for them.
    """
    if budget.pure:
        return {"pure": Spend(epsilon=epsilon)}
    delta = budget.delta_threshold / 100
    rho = rho_of_epsilon(epsilon, budget.delta_conversion)
    return {"gaussian": Spend(rho=rho, delta=delta), "pure": Spend(epsilon=epsilon, delta=delta)}


def how_many(budget: Budget, charge: Cost, spent: Cost | None = None) -> int | None:
    """How many such charges fit into what `spent` leaves of a budget; None if without end."""
    before = Cost(Fraction(0), Fraction(0)) if spent is None else spent
    if budget.pure:
        return PureFilter(before, budget.epsilon).how_many(charge)
    empty = ZCDPFilter.of(budget.for_questions, budget.delta_for_questions, delta_threshold=budget.delta_threshold)
    return ZCDPFilter(before, empty.rho, empty.delta_threshold, empty.epsilon, empty.delta_conversion).how_many(charge)


def sides(
    plans: Sequence[Plan],
    outputs: Sequence[Output],
    plans_of: Sequence[Sequence[int]],
    *,
    epsilon: Fraction,
    budget: Budget,
    assume_rows: int,
    spent: Cost | None = None,
) -> tuple[Side, ...]:
    """Every kind of noise that the budget allows, side by side: its cost, its errors, how many such questions fit."""
    from hubbub.accounting import cost

    sides_there = []
    for name, spend in spends(epsilon, budget).items():
        price = make_price([plan.for_noise(pure=spend.pure) for plan in plans], spend)
        charge = cost(price.event)
        shown = f"epsilon {decimal_text(epsilon)}" if spend.pure else f"rho {float(charge.rho):.4g}"
        columns = predicted(price, outputs, plans_of, assume_rows)
        sides_there.append(Side(name, shown, columns, how_many(budget, charge, spent)))
    return tuple(sides_there)


def smallest_spend(
    plans: Sequence[Plan],
    outputs: Sequence[Output],
    plans_of: Sequence[Sequence[int]],
    *,
    within: float | Mapping[str, float],
    at_most: Fraction,
    spend_of: Callable[[Fraction], Spend],
    assume_rows: int,
) -> Fraction:
    """The smallest epsilon, of three digits, at which 95 % of answers are predicted to be within `within`.

    within: one half-width for all estimates, or by column (in ranks for a quantile). spend_of: how an epsilon is
    paid. Found from declarations alone.

    Raises QueryError for a column without a predicted error, and where `at_most` is not enough.
    """

    def short(epsilon: Fraction) -> list[str]:
        columns = predicted(make_price(plans, spend_of(epsilon)), outputs, plans_of, assume_rows)
        return _beyond(columns, within)

    missing = short(at_most)
    if missing:
        more = GiveOptions(("at_most",))
        raise QueryError(
            f"that width cannot be met at epsilon {decimal_text(at_most)}: {'; '.join(missing)}. Allow more, "
            f"{more.in_python()}, or ask for less.",
            remedy=more,
        )
    bad, good = Fraction(0), at_most
    while True:
        middle = _rounded((bad + good) / 2 if bad else good / 2)
        if not bad < middle < good or middle < Fraction(1, 10**9):
            return good
        bad, good = (middle, good) if short(middle) else (bad, middle)


def _rounded(epsilon: Fraction) -> Fraction:
    """Up to three significant decimal digits."""
    unit = last_digit(epsilon, _DIGITS)
    return math.ceil(epsilon / unit) * unit


def _beyond(columns: Sequence[ColumnError], within: float | Mapping[str, float]) -> list[str]:
    wanted = within if isinstance(within, Mapping) else {c.name: within for c in columns if _size(c) is not None}
    sizes = {c.name: _size(c) for c in columns}
    missing = []
    for name, width in wanted.items():
        size = sizes.get(name)
        if size is None:
            known = ", ".join(n for n, s in sizes.items() if s is not None)
            raise QueryError(
                f"within=: {name!r} has no predicted error. Give within=... of columns that have one: {known}.",
                remedy=GiveOptions(("within",)),
            )
        if size > width:
            missing.append(f"{name} is predicted within ± {size:,.4g}, asked ± {width:,.4g}")
    return missing


def _size(column: ColumnError) -> float | None:
    parts = (column.ranks, column.rows, column.plus_minus)
    return next((size for size in parts if size is not None), None)
