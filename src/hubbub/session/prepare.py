"""A statement with its plans and its price: what `check` shows, and what `sql` charges.

parse -> plans -> price          everything that can refuse does so here; `check` stops
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from hubbub.accounting import Event
from hubbub.accounting.zcdp import epsilon_of_rho, rho_of_epsilon
from hubbub.engines.duckdb.relations import image
from hubbub.engines.outer import OuterSide, most_equal
from hubbub.errors import ParameterError, QueryError, what_was_given
from hubbub.ledger.accounts import TOGETHER
from hubbub.ledger.budget import Budget, parse_epsilon
from hubbub.remedies import GiveOptions, LeaveOut, UseDelta
from hubbub.session.check import smallest_spend
from hubbub.session.finding import Finding, Known, assumed, refuse_beside
from hubbub.session.looks import Looks, refuse_looks
from hubbub.session.options import NOISES, Options
from hubbub.session.total_error import refuse_total_error
from hubbub.sql.bind.query import Catalog, PublicQuestion, parse
from hubbub.sql.text.locate import refuse
from hubbub.sql.text.texts import with_text
from hubbub.tables.aggregate_query import Aggregate, Statement
from hubbub.tables.clipping import Norm
from hubbub.tables.conditions import capped, doubts
from hubbub.tables.plan import Plan, make_plans, no_bound_beside
from hubbub.tables.price import Price, Spend, make_price
from hubbub.tables.relations import PublicRelation, leaves, scans
from hubbub.tables.repeats import repeats_too_much

__all__ = ["Amount", "PricedStatement", "amount_of", "ask"]

DELTA_SHARE = 100
"""A question with groups found privately spends one part in so many of the delta set aside for them, unless it says."""


@dataclass(frozen=True)
class Amount:
    """What a question may cost: `epsilon` as the ledger and people see it, and the spend that the noise is made for."""

    epsilon: Fraction
    spend: Spend

    @property
    def noise(self) -> str:
        return "laplace" if self.spend.pure else "gaussian"


@dataclass(frozen=True)
class PricedStatement:
    """A statement with its plans, question by question, and its price. text: as people read it, with its values.

    now: what now() is in it, in UTC: whoever reads the same text later asks another question. dated: whether it uses
    that. finding: the bounds that are found in the charge; the plans are those before, and the price is that for bounds
    in the middle. looks: where precision is bought step by step; the price is that of the cap.
    """

    sql: str
    now: dt.datetime
    text: str
    statement: Statement
    plans: tuple[tuple[Plan, ...], ...]
    amount: Amount
    price: Price
    outer: OuterSide = field(repr=False, compare=False)
    public: tuple[str, ...] = ()
    weights: str = ""
    notes: tuple[str, ...] = ()
    finding: Finding | None = None
    looks: Looks | None = None
    dated: bool = False

    @property
    def event(self) -> Event:
        """What is charged; of a statement whose bounds are found, or that is drawn step by step, at most."""
        if self.looks is not None:
            return self.looks.event
        return self.price.event if self.finding is None or not self.finding.due else self.finding.event

    def knowing(self, known: Mapping[str, Known]) -> PricedStatement:
        """The same where some of the bounds that are to be found are known."""
        if self.finding is None:
            return self
        finding = replace(self.finding, known=known)
        return replace(self, finding=finding, price=assumed(finding))

    @property
    def epsilon(self) -> Fraction:
        return self.amount.epsilon

    @property
    def space(self) -> str:
        return self.plans[0][0].question.space

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """For each question the places of its plans among all of them."""
        return _places(self.plans)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The private tables it reads, each once, the first asked about first."""
        return tuple(dict.fromkeys(name for plans in self.plans for plan in plans for name in plan.question.tables))

    @property
    def dataset(self) -> str:
        """Its private tables, as the ledger names them."""
        return TOGETHER.join(self.tables)

    @property
    def public_rows(self) -> list[str]:
        """The digests of the public tables it reads."""
        return [self.outer.fingerprint(name) for name in self.public]

    def leaves(self, question: int) -> tuple[PublicRelation, ...]:
        return leaves(self.statement.questions[question].relation)

    def check_repeats(self, question: int, public: Mapping[str, Any]) -> None:
        """Raises QueryError where a release, which is only known now, has so many rows that one person's row becomes
        too many.
        """
        reason = repeats_too_much(
            self.statement.questions[question], lambda leaf, columns: most_equal(public[leaf.place], columns)
        )
        if reason is not None:
            raise QueryError(reason)

    def key(self, version: str) -> str:
        """The name of what is asked, of which version of the rows: equal for equal questions."""
        questions = [[plan.key() for plan in plans] for plans in self.plans]
        # Where a private part reads another's release, it says `a0` and `k1` of it: then their order counts.
        if any(leaf.released for q in range(len(self.plans)) for leaf in self.leaves(q)):
            for plans, question in zip(questions, self.statement.questions, strict=True):
                plans.append(repr([question.sets, question.keys, question.aggregates]))
        parts = [version, self.amount.noise, questions, str(self.price.delta), self.weights]
        parts += [] if self.looks is None else [str(self.looks.share), str(self.looks.at_least)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def grouped(self, items: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
        """One item for each plan, put together question by question."""
        grouped, at = [], 0
        for plans in self.plans:
            grouped.append(tuple(items[at : at + len(plans)]))
            at += len(plans)
        return tuple(grouped)


def ask(
    sql: str,
    catalog: Catalog,
    outer: OuterSide,
    options: Options,
    budget: Callable[[str], Budget],
    now: dt.datetime | None = None,
    *,
    max_aggregates: int | None = None,
    max_answer_groups: int | None = None,
) -> PricedStatement | PublicQuestion:
    """Read, plan and price a statement. now: what now() is in it; this moment unless said. max_aggregates: how many it
    may have; max_answer_groups: how many groups each of its groupings may have.

    Raises QueryError, PolicyError or ParameterError for whatever cannot be answered.
    """
    moment = now or dt.datetime.now(dt.UTC).replace(tzinfo=None)
    clock = _Clock(moment)
    statement = parse(
        sql, catalog, public=outer, params=options.params, keys=options.keys, weight=options.weight, now=clock
    )
    if isinstance(statement, PublicQuestion):
        return statement
    wanted = sum(len(q.aggregates) for q in statement.questions)
    if max_aggregates is not None and wanted > max_aggregates:
        raise QueryError(
            f"this question has {wanted} aggregates; {max_aggregates} are allowed (`max_aggregates` in the policy). "
            "Ask for some of them, and for the others in another question. Nothing was charged."
        )
    spaces = sorted({scans(q.relation)[0].space for q in statement.questions})
    if len(spaces) > 1:
        raise QueryError(
            f"one statement asks about one unit space; this one asks about {', '.join(spaces)}. Ask them one by one."
        )
    # Groups found privately need a delta; without one the error says how to declare them.
    held = budget(spaces[0])
    private = not held.pure
    norm: Norm = "l1" if held.pure or options.noise == "laplace" else "l2"
    plans = tuple(
        make_plans(q, image, limits=options.limits, private_keys=private, norm=norm) for q in statement.questions
    )
    told = _noted(sql, statement)
    flat = tuple(plan for per_question in plans for plan in per_question)
    _check_groups(flat, max_answer_groups)
    places = _places(plans)
    staged = any(leaf.released for q in statement.questions for leaf in leaves(q.relation))
    refuse_beside(options, flat, staged=staged)
    _refuse_private_groups_beside(flat)
    amount = _amount(held, flat, statement, places, options)
    weights = _weights(statement, options.weights)
    finding = Finding(flat, amount.spend, weights=weights) if any(plan.to_find for plan in flat) else None
    price = make_price(flat, amount.spend, weights=weights) if finding is None else assumed(finding)
    if options.total_error:
        refuse_total_error(statement, flat)
    looks = None
    if options.share is not None:
        refuse_looks(flat, amount.spend, staged=staged)
        looks = Looks(flat, amount.spend, options.share, float(options.at_least or 0), weights)
        assert looks.prices  # what cannot be drawn is refused now
    public = tuple(sorted({t for q in statement.questions for leaf in leaves(q.relation) for t in leaf.tables}))
    shown = f"{sql} /* {json.dumps(options.params, default=str, sort_keys=True)} */" if options.params else sql
    shown = shown if options.weight is None else f"{shown} /* weight: {json.dumps(options.weight)} */"
    chosen = "" if weights is None else repr(sorted((repr(a), str(w)) for a, w in weights.items()))
    made = PricedStatement(sql, moment, shown, statement, plans, amount, price, outer, public, chosen, told)
    return replace(made, finding=finding, looks=looks, dated=clock.used)


def _refuse_private_groups_beside(plans: Sequence[Plan]) -> None:
    """Raises QueryError where one question finds a bound, and another finds its groups: the rest has no delta."""
    private = [plan for plan in plans if plan.private_keys]
    if private and any(plan.to_find for plan in plans):
        raise no_bound_beside(private[0])


class _Clock:
    """Tells a moment, and whether it was asked for."""

    def __init__(self, moment: dt.datetime) -> None:
        self._moment, self.used = moment, False

    def __call__(self) -> dt.datetime:
        self.used = True
        return self._moment


def _check_groups(plans: Sequence[Plan], most: int | None) -> None:
    """Raises QueryError for a grouping of more groups than the policy lets an answer have."""
    for plan in plans:
        count = plan.group_count
        if most is not None and count is not None and count > most:
            sizes = " times ".join(f"{len(domain or ()):,}" for domain in plan.domains)
            raise QueryError(
                f"the answer would have {count:,} groups{f' ({sizes})' if len(plan.domains) > 1 else ''}; {most:,} are "
                "allowed (`max_answer_groups` in the policy). Group by longer stretches of time, wider steps or fewer "
                "columns; or narrow the range with WHERE. Nothing was charged."
            )


def _noted(sql: str, statement: Statement) -> tuple[str, ...]:
    """What to say of conditions that nothing declared meets, and of numbers of rows that a limit caps.

    Raises QueryError, with a caret, where such a condition is all that is asked for.
    """
    doubted = [doubt for question in statement.questions for doubt in doubts(question, image)]
    for doubt in doubted:
        if doubt.refused:
            spelt = () if doubt.meant is None else with_text(sql, *doubt.meant)
            others = () if doubt.remedy is None else (doubt.remedy,)
            raise refuse(doubt.text, sql, None, word=doubt.word, remedy=(*spelt, *others))
    limited = (text for question in statement.questions for text in capped(question))
    return tuple(dict.fromkeys(f"note: {text}" for text in (*(doubt.text for doubt in doubted), *limited)))


_NO_WEIGHTS: Final = LeaveOut(("weights",))


def _weights(statement: Statement, given: Mapping[str, int] | None) -> dict[Aggregate, int | Fraction] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ParameterError(
            f"weights: expected a mapping of columns to whole numbers, as in {{'visits': 3}}. Or ask "
            f"{_NO_WEIGHTS.in_python()}.",
            remedy=_NO_WEIGHTS,
        )
    weights: dict[Aggregate, int | Fraction] = {}
    for name, weight in given.items():
        outputs = [o for o in statement.outputs if o.name.lower() == name.lower()]
        if not outputs or not isinstance(outputs[0].what, Aggregate):
            raise QueryError(
                f"weights: {name!r} is not an aggregate of the answer. Name one, or ask {_NO_WEIGHTS.in_python()}.",
                remedy=_NO_WEIGHTS,
            )
        if isinstance(weight, bool) or not isinstance(weight, int | Fraction) or not 0 < weight <= 10**6:
            raise ParameterError(
                f"weights: {name!r} = {what_was_given(weight)}; give a whole number from 1 to 1,000,000. Or ask "
                f"{_NO_WEIGHTS.in_python()}.",
                remedy=_NO_WEIGHTS,
            )
        weights[outputs[0].what] = weight
    return weights or None


def _places(plans: Sequence[Sequence[Plan]]) -> tuple[tuple[int, ...], ...]:
    """For each question the places of its plans among all of them."""
    places, at = [], 0
    for per_question in plans:
        places.append(tuple(range(at, at + len(per_question))))
        at += len(per_question)
    return tuple(places)


def _amount(
    budget: Budget,
    plans: Sequence[Plan],
    statement: Statement,
    places: Sequence[Sequence[int]],
    options: Options,
) -> Amount:
    """What is charged: as written, or the least that keeps `within`."""
    if options.within is None:
        return amount_of(budget, plans, options)
    assert options.at_most is not None
    if options.share is not None:
        return amount_of(budget, plans, options.at(options.at_most))
    assert not isinstance(options.within, str)
    spend = smallest_spend(
        plans,
        statement.outputs,
        places,
        within=options.within,
        at_most=parse_epsilon(options.at_most, "at_most"),
        spend_of=lambda epsilon: amount_of(budget, plans, options.at(epsilon)).spend,
        assume_rows=options.assume_rows,
    )
    return amount_of(budget, plans, options.at(spend))


def amount_of(budget: Budget, plans: Sequence[Plan], options: Options) -> Amount:
    """What a question at `epsilon` (or `rho`) costs under a budget.

    Pure budgets: epsilon, Laplace noise. Budgets with delta: the rho that one release at (epsilon, delta) would have,
    Gaussian noise; noise="laplace" asks for a pure epsilon there too. delta: what finding groups privately may cost.

    Raises ParameterError for amounts that are missing, twice, or not of this budget.
    """
    epsilon, rho, noise, delta = options.epsilon, options.rho, options.noise, options.delta
    if noise is not None and not (isinstance(noise, str) and noise in NOISES):
        ways = GiveOptions(("noise",), ("laplace",)), LeaveOut(("noise",))
        raise ParameterError(
            f"noise={what_was_given(noise)}: expected 'laplace' or 'gaussian', as {ways[0].in_python()}. Or ask "
            f"{ways[1].in_python()}.",
            remedy=ways,
        )
    private = any(plan.private_keys for plan in plans)
    if budget.pure:
        if rho is not None or noise == "gaussian":
            asking = GiveOptions(("epsilon",), instead=("rho", "noise"))
            raise ParameterError(
                f"Gaussian noise and rho belong to a budget with delta, as in {UseDelta().in_python()}; this one is "
                f"pure. Ask with {asking.in_python()}",
                remedy=(UseDelta(), asking),
            )
        assert epsilon is not None
        amount = parse_epsilon(epsilon)
        return Amount(amount, Spend(epsilon=amount))
    threshold = Fraction(0)
    if private:
        threshold = budget.delta_threshold / DELTA_SHARE if delta is None else parse_epsilon(delta, "delta")
    if noise == "laplace":
        if epsilon is None:
            raise ParameterError(
                "Laplace noise is asked for at an epsilon, not a rho; ask for a rho without noise=.",
                remedy=LeaveOut(("noise",)),
            )
        amount = parse_epsilon(epsilon)
        return Amount(amount, Spend(epsilon=amount, delta=threshold))
    if rho is not None:
        exact = parse_epsilon(rho, "rho")
        return Amount(epsilon_of_rho(exact, budget.delta_conversion), Spend(rho=exact, delta=threshold))
    assert epsilon is not None
    amount = parse_epsilon(epsilon)
    return Amount(amount, Spend(rho=rho_of_epsilon(amount, budget.delta_conversion), delta=threshold))
