"""From a question to measurements: vectors of integers, one entry per group, whose sensitivity is known.

A unit counts in at most C groups, with at most R rows in each (`Bounds`), or its norm over all groups is clipped to
what these allow (`hubbub.tables.clipping`). What one row adds to each measurement, and
how far neighbours can be apart, stands in `hubbub.tables.measure`. A plan holds everything that decides a question's
cost and noise, and no private value.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from hubbub.errors import PolicyError, QueryError
from hubbub.remedies import DeclareLimits, DeclareRange, GiveOptions
from hubbub.tables import clipping
from hubbub.tables.aggregate_query import Aggregate, AggregateQuery, Key
from hubbub.tables.aggregates.base import measurements, measurements_of
from hubbub.tables.aggregates.top_place import needs_delta, places_asked
from hubbub.tables.clipping import Norm
from hubbub.tables.columns import Declaration, Scalar, UpTo, trimmed
from hubbub.tables.declare import Limits, Neighbours
from hubbub.tables.expressions import Expression, canonical, columns_of
from hubbub.tables.groups import Evaluate, domain
from hubbub.tables.measure import (
    TO_FIND,
    Bounds,
    Measurement,
    MeasurementKind,
    Value,
    column_to_find,
    l1,
    l2_squared,
    listed,
)
from hubbub.tables.relations import (
    Filter,
    Scan,
    canonical_relation,
    declared_in,
    limits_of,
    names_read,
    scans,
    single,
)

__all__ = ["ASSUMED", "GROUPS_GIVEN", "PLACES", "Plan", "Search", "make_plans", "no_bound_beside"]

MAX_GROUPS_OF_ANSWER = 1_000_000
_MOST_BOUND = 2**31 - 1
GROUPS_GIVEN = GiveOptions(("keys",))
"""The way out where groups may not be found privately; to declare them is another."""


ASSUMED = 32
"""The bound for which a plan is made where it is found later."""

PLACES = 41
"""Places of a search (`hubbub.mechanisms.place_search`, which is above this room's floor, says the same)."""


@dataclass(frozen=True)
class Search:
    """A bound that is found: what one value of each unit is, of which a plan is made.

    plan: whose rows are looked at. what: "groups", the number of declared groups a unit is in; "rows", the largest
    number of its rows in one of the groups that it counts in; or the column of which a unit's largest sum in one of
    them is looked at, with the measurement that adds it up.
    """

    plan: Plan
    what: str
    measurement: Measurement | None = None

    @property
    def value(self) -> Callable[[int], Fraction]:
        """The bound that a place stands for: 2^(place - 1) of its grid's steps, and of place 0 that of place 1."""
        step = Fraction(1) if self.measurement is None else Fraction(self.measurement.step)
        return lambda place: step * 2 ** (max(place, 1) - 1)

    @cached_property
    def key(self) -> str:
        """A canonical text: equal for searches of the same in the same declared rows."""
        known = json.loads(self.plan.key())
        argument = None if self.measurement is None else self.measurement.canonical()
        left = {k: known[k] for k in ("relation", "keys", "domains", "neighbours", "units")}
        left["declared"] = [[name, what] for name, what in known["declared"] if name in self._looks_at]
        return json.dumps([self.what, argument, known["bounds"][0] if self.what != "groups" else None, left])

    @property
    def _looks_at(self) -> frozenset[str]:
        """The columns that decide what is found: not those of other aggregates."""
        arguments = () if self.measurement is None else (v.argument for v in self.measurement.values)
        read = (columns_of(e) for e in (*(k.expression for k in self.plan.keys), *arguments))
        return names_read(self.plan.question.relation).union(*read)

    @property
    def covering(self) -> tuple[Search, ...]:
        """The searches of which the bound holds for this one as well, this one first: of the rows before conditions
        were put on them; of a unit's rows, or of its sum of values of 0 or more, in all groups together.

        Under fewer rows, and within one group, no unit has more groups, rows or a larger sum: who exceeds the bound
        here does so there.
        """
        relation = self.plan.question.relation
        while isinstance(relation, Filter):
            relation = relation.source
        whole = replace(self.plan, question=replace(self.plan.question, relation=relation))
        wider = [self, Search(whole, self.what, self.measurement)]
        if self.what != "groups":
            in_all = replace(whole, keys=(), domains=(), bounds=Bounds(1, self.plan.bounds.rows))
            wider.append(Search(in_all, self.what, self.measurement))
        return tuple({search.key: search for search in wider}.values())

    @cached_property
    def histogram(self) -> Plan:
        """The plan of the histogram: one place for each unit, so that a unit moves one count by one."""
        units = (Measurement(MeasurementKind.UNITS),)
        places = (tuple(range(PLACES)),)
        return replace(
            self.plan, keys=(), one_row=False, bounds=Bounds(1, 1), domains=places, measurements=units, norm=None,
            auto=(), search=self,
        )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One grouping of a question, with everything that decides its cost and its noise.

    keys: those of the grouping. domains: the groups of each, None for a key whose groups are found privately.
    one_row: whether no unit has two rows, so that nothing needs bounding. declared: what is known of columns.
    norm: the norm that is clipped where that was asked for, the norm of the noise; None for dropping groups.
    auto: which of "groups" and "rows" are found in the charge. search: where this is the histogram of a search.
    """

    question: AggregateQuery
    keys: tuple[Key, ...]
    one_row: bool
    bounds: Bounds
    domains: tuple[tuple[Scalar, ...] | None, ...]
    measurements: tuple[Measurement, ...]
    declared: Mapping[str, Declaration] = field(repr=False, hash=False)
    norm: Norm | None = None
    auto: tuple[str, ...] = ()
    search: Search | None = None

    @property
    def to_find(self) -> tuple[str, ...]:
        """What is found before this plan can be drawn, in order: groups, rows, and columns that are summed."""
        columns = [c for m in self.measurements if (c := self._summed(m)) is not None]
        return (*self.auto, *dict.fromkeys(columns))

    def _summed(self, measurement: Measurement) -> str | None:
        return column_to_find(measurement.values[0].argument, self.declared) if measurement.cap == TO_FIND else None

    def searching(self, what: str) -> Search:
        """The search of one of `to_find`, where those before it were found."""
        return Search(self, what, next((m for m in self.measurements if self._summed(m) == what), None))

    def with_found(self, what: str, bound: Fraction) -> Plan:
        """The plan with one of `to_find` found."""
        if what in ("groups", "rows"):
            auto = tuple(name for name in self.auto if name != what)
            size = min(int(bound), _MOST_BOUND)
            groups = min(size, self.group_count or size) if what == "groups" else self.bounds.groups
            return replace(self, auto=auto, bounds=Bounds(groups, size if what == "rows" else self.bounds.rows))
        old = self.declared[what]
        assert isinstance(old, UpTo)
        declared = {**self.declared, what: UpTo(old.low, bound)}
        measured = measurements(self.question.aggregates, declared, private_keys=self.private_keys)
        return replace(self, declared=declared, measurements=measured)

    @cached_property
    def private_keys(self) -> bool:
        """Whether which groups there are is itself private."""
        return any(d is None for d in self.domains)

    @cached_property
    def group_count(self) -> int | None:
        """How many groups are answered; None where that is private."""
        return None if self.private_keys else math.prod(len(d) for d in self.domains if d is not None)

    def groups(self) -> itertools.product[tuple[Scalar, ...]]:
        """All public groups in canonical order: declared order, the last key fastest."""
        return itertools.product(*(d for d in self.domains if d is not None))

    @cached_property
    def neighbours(self) -> Neighbours:
        return scans(self.question.relation)[0].neighbours

    def measures(self, measurement: Measurement) -> bool:
        """Whether a measurement is one of this plan's."""
        return measurement in self._places

    def in_order(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """Those of some measurements that this plan has, in its order."""
        return sorted((m for m in measurements if m in self._places), key=self._places.__getitem__)

    @cached_property
    def _places(self) -> dict[Measurement, int]:
        return {m: place for place, m in enumerate(self.measurements)}

    @cached_property
    def values(self) -> dict[Value, int]:
        """The values that are added up, each once, with the number that a text names it by."""
        return {v: i for i, v in enumerate(dict.fromkeys(v for m in self.measurements for v in m.values))}

    @cached_property
    def counted(self) -> dict[Expression, int]:
        """The expressions whose values are counted, each once, with the number that a text names it by."""
        arguments = (m.argument for m in self.measurements if m.argument is not None)
        return {e: i for i, e in enumerate(dict.fromkeys(arguments))}

    def sensitivity(self, measurement: Measurement) -> int:
        """The l1 sensitivity of a measurement in steps of its grid, finer ones where it is clipped."""
        if self.norm is not None and self.clips(measurement):
            return clipping.l1(measurement, self.bounds, self.group_count, self.neighbours, self.norm)
        return l1(measurement, self.bounds, self.group_count, self.neighbours)

    def squared_sensitivity(self, measurement: Measurement) -> int:
        """The square of the l2 sensitivity of a measurement in the same steps."""
        if self.norm is not None and self.clips(measurement):
            return clipping.l2_squared(measurement, self.bounds, self.group_count, self.neighbours, self.norm)
        return l2_squared(measurement, self.bounds, self.group_count, self.neighbours)

    def clips(self, measurement: Measurement) -> bool:
        """Whether a measurement is one of units whose norm is clipped.

        Never of quantiles and DISTINCT, which look at values, nor beside groups that are found privately. In one group
        only a sum alone has a norm that differs from cutting rows.
        """
        if self.norm is None or self.one_row or self.private_keys or listed(measurement):
            return False
        return measurement.alone or self.group_count != 1

    @property
    def clipping(self) -> bool:
        """Whether any measurement is one of units whose norm is clipped."""
        return any(map(self.clips, self.measurements))

    def fineness(self, measurement: Measurement) -> int:
        """The bits f of the steps that a measurement is in: 1 stands for 2^-f of its own step."""
        return clipping.fineness(measurement) if self.clips(measurement) else 0

    def for_noise(self, *, pure: bool) -> Plan:
        """The plan for Laplace noise (pure) or Gaussian noise: their norms differ."""
        return self if self.norm is None else replace(self, norm="l1" if pure else "l2")

    def measurement_of(self, aggregate: Aggregate) -> tuple[Measurement, ...]:
        """The measurements an aggregate is made of."""
        return self._measured.get(aggregate) or measurements_of(aggregate, self.declared)

    @cached_property
    def _measured(self) -> dict[Aggregate, tuple[Measurement, ...]]:
        return {a: measurements_of(a, self.declared) for a in self.question.aggregates}

    @property
    def read(self) -> frozenset[str]:
        """The names of all columns that the question reads."""
        names = names_read(self.question.relation)
        arguments = (x for a in self.question.aggregates for x in a.arguments)
        return names.union(*(columns_of(e) for e in (*(k.expression for k in self.keys), *arguments)))

    def key(self) -> str:
        """A canonical text: two plans with one key ask the same of the same declared tables."""
        return json.dumps(
            {
                "relation": canonical_relation(self.question.relation),
                "keys": [canonical(k.expression) for k in self.keys],
                "domains": [None if d is None else [[type(v).__name__, str(v)] for v in d] for d in self.domains],
                "bounds": [
                    "auto" if "groups" in self.auto else self.bounds.groups,
                    "auto" if "rows" in self.auto else self.bounds.rows,
                    self.one_row,
                    *([self.norm] if self.clipping else []),
                ],
                "neighbours": self.neighbours,
                "declared": [[name, repr(self.declared[name])] for name in sorted(self.read & self.declared.keys())],
                "units": [
                    [scan.table, scan.unit, scan.unit_type, *_trimmed(scan), *_followed(scan)]
                    for scan in scans(self.question.relation)
                ],
                "measurements": [m.canonical() for m in self.measurements],
                # Two aggregates of the same measurements are drawn from other parts: quantiles of other shares, say.
                "aggregates": sorted(
                    [a.function.names.key, [canonical(x) for x in a.arguments], str(a.fraction)]
                    for a in self.question.aggregates
                ),
            },
            sort_keys=True,
        )


def _trimmed(scan: Scan) -> list[list[str]]:
    """The columns that are read without the blanks around them, if there are any."""
    trimmed_names = sorted(name for name, what in scan.declared.items() if trimmed(what))
    return [trimmed_names] if trimmed_names else []


def _followed(scan: Scan) -> list[list[str]]:
    """The kinds in which a path to the unit is compared, which no expression says: '01' is 1 where both are numbers;
    and that a row is one of each owner, which it once was as often as its key stands there.
    """
    path = scan.path
    return [] if path is None else [[scan.columns[path.column].value, path.scan.columns[path.key].value, "once"]]


def make_plans(
    question: AggregateQuery,
    evaluate: Evaluate,
    *,
    limits: Limits | None = None,
    private_keys: bool = False,
    norm: Norm = "l1",
) -> tuple[Plan, ...]:
    """Plan a question: one plan for each of its groupings.

    evaluate: computes the groups of a key that is an expression. limits: what the question says itself.
    private_keys: whether groups may be found privately. norm: that of the noise, where norms are clipped.

    Raises PolicyError where a declaration is missing (a limit, bounds, values), QueryError where the question has
    no private answer.
    """
    relation = question.relation
    read = names_read(relation)
    for expression in (*(k.expression for k in question.keys), *(x for a in question.aggregates for x in a.arguments)):
        read |= columns_of(expression)
    declared = declared_in(relation, read)
    names = itertools.chain(question.names, itertools.repeat(""))
    domains = [
        _domain(question, key, declared, evaluate, private_keys, name)
        for key, name in zip(question.keys, names, strict=False)
    ]
    one_row = single(relation)
    asked = limits or Limits()
    clips = (asked.bounding or limits_of(relation).bounding) == "norm"
    plans = []
    for chosen in question.sets:
        of_set = tuple(domains[i] for i in chosen)
        count = math.prod(len(d) for d in of_set if d is not None)
        if count > MAX_GROUPS_OF_ANSWER:
            raise QueryError(
                f"the answer would have {count:,} groups; at most {MAX_GROUPS_OF_ANSWER:,} are allowed. Group by "
                "fewer columns."
            )
        private = None in of_set
        own_norms = clips and not one_row and not private
        measured = measurements(question.aggregates, declared, private_keys=private, own_norms=own_norms)
        wanted = _wanted(question, bool(chosen), asked)
        bounds = Bounds(1, 1) if one_row else _bounds(question, bool(chosen), measured, asked, wanted)
        places_asked(question.aggregates, private=private)
        keys = tuple(question.keys[i] for i in chosen)
        plan = Plan(question, keys, one_row, bounds, of_set, measured, declared, norm if clips else None)
        plans.append(_with_auto(plan, wanted))
    return tuple(plans)


def _wanted(question: AggregateQuery, grouped: bool, asked: Limits) -> tuple[str, ...]:
    """Which limits are found: those that the question wants found, and those that are declared so and that it does not
    give; a number of rows in all that is declared or given stands for the rows of an answer without groups.
    """
    declared = limits_of(question.relation)
    total = not grouped and (asked.total or (declared.total and not (asked.groups or asked.rows)))
    own = (n for n in declared.auto if getattr(asked, n) is None and not (n == "rows" and total))
    return tuple(dict.fromkeys((*asked.auto, *own)))


def _with_auto(plan: Plan, wanted: tuple[str, ...]) -> Plan:
    """The plan with what has to be found for it.

    Raises QueryError where that cannot be done beside something else that is asked.
    """
    counts_rows = any(map(_counts_rows, plan.measurements))
    needed = {"groups": bool(plan.keys) and plan.group_count != 1, "rows": counts_rows}
    auto = () if plan.one_row else tuple(n for n in needed if n in wanted and needed[n])
    made = replace(plan, auto=auto)
    for column in (c for c in made.to_find if c not in needed):
        if sum(made._summed(m) == column for m in plan.measurements) > 1:
            bounds = DeclareRange(column.partition(".")[2])
            raise QueryError(
                f"two sums of one column whose bound is found ({column.partition('.')[2]}): ask them one by one, or "
                f"declare its bounds: {bounds.in_python()}.",
                remedy=bounds,
            )
    if made.to_find and (plan.private_keys or plan.norm is not None):
        raise no_bound_beside(plan)
    return made


def no_bound_beside(plan: Plan) -> QueryError:
    """What is raised where a bound is to be found, and this plan's groups are found privately, or its norms clipped."""
    why = "the groups are found privately" if plan.private_keys else "norms are clipped"
    way = GROUPS_GIVEN if plan.private_keys else GiveOptions(("bounding",), ("groups",))
    hint = f"{'Declare the groups, or give' if plan.private_keys else 'Ask with'} {way.in_python()}"
    return QueryError(f'no bound can be found where {why}. {hint}, or give numbers in place of "auto".', remedy=way)


def _counts_rows(measurement: Measurement) -> bool:
    return measurement.counting is not MeasurementKind.UNITS and not measurement.cap


def _domain(
    question: AggregateQuery,
    key: Key,
    declared: Mapping[str, Declaration],
    evaluate: Evaluate,
    private: bool,
    name: str,
) -> tuple[Scalar, ...] | None:
    try:
        return domain(key, declared, evaluate, name)
    except PolicyError as error:
        if private:
            return None
        raise needs_delta(question.aggregates, key.expression) or error from None


def _bounds(
    question: AggregateQuery,
    grouped: bool,
    measurements: tuple[Measurement, ...],
    asked: Limits,
    wanted: tuple[str, ...],
) -> Bounds:
    """The limits a question needs, and only those; what the question says goes before what is declared."""
    declared = limits_of(question.relation)
    given = (ASSUMED if n in wanted else limit for n, limit in (("groups", asked.groups), ("rows", asked.rows)))
    groups, rows = (a or b for a, b in zip(given, (declared.groups, declared.rows), strict=True))
    total = asked.total or (None if asked.groups or asked.rows else declared.total)
    scan = scans(question.relation)[0]
    unit = "unit" if scan.unit is None else scan.unit
    counts_rows = any(map(_counts_rows, measurements))
    if not grouped and counts_rows and "rows" in wanted:
        return Bounds(1, ASSUMED)
    if not grouped:
        if not counts_rows:
            return Bounds(1, 1)
        if total is None and (groups is None or rows is None):
            whole = DeclareLimits(("max_total",), table=scan.table)
            parts = DeclareLimits(("max_groups", "max_rows"), table=scan.table)
            raise PolicyError(
                f"how many rows of one {unit} may count is not declared for table {scan.table!r}. "
                f"Declare {whole.in_python()}, or {parts.in_python()} (their product is used); or give them with the "
                'question. With max_rows="auto" it is found in the same charge.',
                remedy=(whole, parts),
            )
        return Bounds(1, total or (groups or 1) * (rows or 1))
    missing = [
        name
        for name, value, needed in (("max_groups", groups, True), ("max_rows", rows, counts_rows))
        if needed and value is None
    ]
    if missing:
        remedy = DeclareLimits(tuple(missing), table=scan.table)
        raise PolicyError(
            f"this question needs {' and '.join(missing)} of table {scan.table!r}: in how many groups, and with "
            f"how many rows in each, one {unit} may count. Declare {remedy.in_python()}, or give them with the "
            'question. As "auto" they are found in the same charge.',
            remedy=remedy,
        )
    return Bounds(groups or 1, rows or 1)
