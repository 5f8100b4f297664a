"""Bounds that are found in the charge of the answer that they are for.

A question that says `max_rows="auto"` or `max_groups="auto"`, or sums a column declared `between(0, "auto")`, is
charged

    the histogram of each search   discrete Laplace, 1 / eps_s and 1; or ZCDP(rho_s)   hubbub.mechanisms.place_search
    the answer                     PureDP(eps - sum of eps_s), or ZCDP(rho - sum of rho_s)

in one charge. The answer's noise is chosen after the bound was seen, so it is charged by its guarantee and not by its
scale: adaptive composition of pure parts (Dwork, Roth 2014, Theorem 3.14), or of rho (Bun, Steinke 2016, Lemma 2.3).
What the search finds is a function of a released histogram: it stands in the answer and its receipt, and the same
search over the same version of the rows is not bought again; nor is one that it covers (`Search.covering`), as the
whole table's covers those under a condition and within groups. Where it finds nothing the rest is given back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from hubbub.accounting import ZCDP, Composed, Event, PureDP
from hubbub.accounting.amounts import ratio
from hubbub.errors import InternalError, QueryError
from hubbub.ledger.budget import decimal_text
from hubbub.mechanisms.place_search import PLACES, PlaceSearch
from hubbub.noise import Bits
from hubbub.remedies import GiveOptions
from hubbub.tables.aggregate_query import Aggregate
from hubbub.tables.plan import ASSUMED, Plan, Search
from hubbub.tables.price import Price, Spend, make_price

__all__ = [
    "BOUNDS_SHOWN",
    "TOO_FEW",
    "Finding",
    "Known",
    "assumed",
    "before_it_is_found",
    "bounds_in",
    "known_of",
    "named",
    "public_part",
    "refuse_beside",
    "resolved",
    "told",
    "with_bounds",
]

SHARE: Final = Fraction(3, 10)
"""What part of an epsilon the searches of a question cost together."""

SHARE_OF_RHO: Final = Fraction(15, 100)
"""What part of a rho: the tails of Gaussian noise are thinner, and half of its standard deviation costs four times."""

BOUNDS_SHOWN: Final = (4, 32, 256)
"""The bounds for which `check` tells the error before one is found."""

_LONGEST: Final = 1000  # characters of an amount
_MOST: Final = 2**63

TOO_FEW: Final = "too few units to find a bound"

Known = Mapping[str, Any]
"""What an earlier search found: its key, place, bound, and how many units may exceed it."""


@dataclass(frozen=True)
class Finding:
    """What has to be found for the plans of a statement, and what that and the answer cost.

    plans: those of all questions, in order. known: what is known already, by the key of its search (`named`).
    """

    plans: tuple[Plan, ...]
    spend: Spend
    known: Mapping[str, Known] = field(default_factory=dict)
    weights: Mapping[Aggregate, int | Fraction] | None = field(default=None, hash=False)

    @cached_property
    def due(self) -> int:
        """How many searches are bought, at most: one that stands twice is made once."""
        names = set()
        for number, plan in enumerate(self.plans):
            hidden = False  # what groups a unit keeps is not known yet, nor what it is asked then
            for what in plan.to_find:
                search = plan.searching(what)
                entry = None if hidden else known_of(search, self.known)
                hidden = hidden or (entry is None and what == "groups")
                if entry is None:
                    names.add((number, what) if hidden and what != "groups" else (named(search),))
                else:
                    plan = plan.with_found(what, ratio(entry["bound"]))
        return len(names)

    @property
    def histograms(self) -> tuple[Plan, ...]:
        """The plans of all searches, as if the limits before them were in the middle."""
        made = []
        for plan in self.plans:
            for what in plan.to_find:
                made.append(plan.searching(what).histogram)
                plan = plan.with_found(what, Fraction(ASSUMED))
        return tuple(made)

    @property
    def search(self) -> PlaceSearch:
        """The mechanism of each search."""
        part = (SHARE if self.spend.pure else SHARE_OF_RHO) / self.due
        return PlaceSearch(self.spend.part(part), self._replace)

    @property
    def _replace(self) -> bool:
        return self.plans[0].neighbours == "replace"

    @property
    def rest(self) -> Spend:
        """What is left for the answer."""
        share = SHARE if self.spend.pure else SHARE_OF_RHO
        return self.spend.part(1 - share) if self.due else self.spend

    @property
    def answer_event(self) -> Event:
        """The answer, by its guarantee."""
        rest = self.rest
        return PureDP(rest.amount) if rest.pure else ZCDP(rest.amount)

    @property
    def event(self) -> Event:
        """What is charged, where anything has to be searched."""
        return Composed([*[self.search.event] * self.due, self.answer_event])

    def price(self, plans: Sequence[Plan]) -> Price:
        """The price of the answer, with everything found."""
        return make_price(plans, self.rest, weights=self.weights)

    def find(
        self, counted: Callable[[Plan, int], Any], bits: Bits | None
    ) -> Generator[Event, None, tuple[list[Plan], list[dict[str, Any]]] | None]:
        """Buys what is not known: the plans that are left to be drawn, and what was found for them; None for too few.

        counted: the units by place of a histogram's plan, given which of the plans it is for. Yields each event before
        it is drawn.
        """
        known, plans, record = dict(self.known), list(self.plans), []
        for number in range(len(plans)):
            for what in plans[number].to_find:
                search = plans[number].searching(what)
                name, entry = named(search), known_of(search, known)
                if entry is None:
                    counts = counted(search.histogram, number)
                    yield self.search.event
                    noisy = self.search.release(counts, bits=bits)
                    place = self.search.found(noisy)
                    if place is None:
                        return None
                    beyond = self.search.beyond(noisy, place)
                    part = self.search.spend
                    known[name] = entry = {
                        "key": name,
                        "what": what,
                        "bound": str(search.value(place)),
                        "place": place,
                        "beyond": beyond,
                        "noisy": list(noisy),
                        "part": [None if amount is None else str(amount) for amount in (part.epsilon, part.rho)],
                    }
                record.append({**entry, "plan": number})
                plans[number] = plans[number].with_found(what, ratio(entry["bound"]))
        return self._fitting(plans, record)

    def _fitting(self, plans: list[Plan], record: list[dict[str, Any]]) -> tuple[list[Plan], list[dict[str, Any]]]:
        """The same with smaller bounds, where the noise for these would not fit: everything here was released, and how
        many units may exceed a bound holds for all places of a histogram at once.
        """
        while True:
            try:
                self.price(plans)
                return plans, record
            except QueryError:
                if all(entry["place"] <= 1 for entry in record):
                    raise
                record = [self._halved(entry) if entry["place"] > 1 else entry for entry in record]
                plans = list(resolved(self.plans, record))

    def _halved(self, entry: Known) -> dict[str, Any]:
        """What was found with half its bound: by the same histogram more units may exceed that."""
        epsilon, rho = (None if amount is None else ratio(amount) for amount in entry["part"])
        search, place = PlaceSearch(Spend(epsilon=epsilon, rho=rho), self._replace), entry["place"] - 1
        bound = str(ratio(entry["bound"]) / 2)
        return {**entry, "bound": bound, "place": place, "beyond": search.beyond(entry["noisy"], place)}


def named(search: Search) -> str:
    """The name of a search, equal for searches of the same."""
    return hashlib.sha256(search.key.encode()).hexdigest()


def known_of(search: Search, known: Mapping[str, Known]) -> Known | None:
    """What is known of a search: what it found, or one that covers it. Only a bound that is one of its places: what is
    known was said by a process that runs, which may be taken over.
    """
    entries = (known[name] for name in map(named, search.covering) if name in known)
    return next(
        (e for e in entries if e["what"] == search.what and ratio(e["bound"]) == search.value(e["place"])), None
    )


def bounds_in(text: str, public: Sequence[Any] | None = None) -> dict[str, Known] | None:
    """What the payload of an answer says was found for it, by the keys of the searches; None where it is not said as
    `Finding.find` says it: a process that was taken over says anything, and later questions read it.

    public: of these public rows alone.
    """
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return None
    record = payload.get("found", ()) if isinstance(payload, dict) else None
    if not isinstance(record, list | tuple) or not all(map(_is_bound, record)):
        return None
    if public is not None and payload.get("public", []) != public:
        return {}
    return {entry["key"]: {k: v for k, v in entry.items() if k != "plan"} for entry in record}


def _is_bound(entry: object) -> bool:
    """Whether this is what a search found: a bound that its place stands for, and the histogram that it is read of."""
    match entry:
        case {
            "key": str(), "what": str(what), "bound": str(text), "place": int(place), "beyond": int(beyond),
            "noisy": [*noisy], "part": [str(part), None] | [None, str(part)], "plan": int(plan),
        } if max(len(text), len(part)) <= _LONGEST:  # fmt: skip
            pass
        case _:
            return False
    try:
        bound, spent = ratio(text), ratio(part)
    except (ValueError, ArithmeticError):
        return False
    counts = len(noisy) == PLACES and all(isinstance(count, int) and abs(count) < _MOST for count in noisy)
    sizes = 0 <= place < PLACES and all(0 <= number < _MOST for number in (beyond, plan)) and min(bound, spent) > 0
    return counts and sizes and (what not in ("groups", "rows") or bound == 2 ** (max(place, 1) - 1))


def with_bounds(plans: Sequence[Plan], bound: int) -> tuple[Plan, ...]:
    """The plans as if every bound had been found to be this one (of groups: at most 4)."""
    made = []
    for plan in plans:
        for what in plan.to_find:
            plan = plan.with_found(what, Fraction(min(bound, 4) if what == "groups" else bound))
        made.append(plan)
    return tuple(made)


def resolved(plans: Sequence[Plan], record: Sequence[Known]) -> tuple[Plan, ...]:
    """The plans with what was found for them.

    Raises InternalError where something is left to be found.
    """
    made = list(plans)
    for entry in record:
        number = entry["plan"]
        made[number] = made[number].with_found(entry["what"], ratio(entry["bound"]))
    if any(plan.to_find for plan in made):
        raise InternalError("a stored release does not fit its question: a bound was not found")
    return tuple(made)


def assumed(finding: Finding) -> Price:
    """The price before anything is found, for a bound in the middle; of all that is known, the price itself."""
    plans, record = list(finding.plans), []
    for number, plan in enumerate(plans):
        for what in plan.to_find:
            entry = known_of(plans[number].searching(what), finding.known)
            if entry is None:
                return finding.price(with_bounds(finding.plans, ASSUMED))
            record.append({**entry, "plan": number})
            plans[number] = plans[number].with_found(what, ratio(entry["bound"]))
    return finding.price(resolved(finding.plans, record))


def before_it_is_found(finding: Finding) -> tuple[str, ...]:
    """What `check` says of bounds that are not known yet."""
    part, kind = (SHARE, "epsilon") if finding.spend.pure else (SHARE_OF_RHO, "rho")
    few = finding.search.thresholds[0]
    return (
        f"a bound is found first, for {float(part):.0%} of the {kind}: the error above is for a bound of {ASSUMED}. "
        f"With fewer than about {few:,} units alike none is found, and the rest comes back.",
    )


def told(plans: Sequence[Plan], record: Sequence[Known]) -> tuple[str, ...]:
    """What was found, in words."""
    lines = []
    for entry in record:
        plan, bound = plans[entry["plan"]], ratio(entry["bound"])
        shown = f"{int(bound):,}" if bound.denominator == 1 else decimal_text(bound)
        within = " in a group" if plan.keys else ""
        what = {
            "groups": f"{shown} groups of one {plan.question.unit}",
            "rows": f"{shown} rows of one {plan.question.unit}{within}",
        }
        column = entry["what"].partition(".")[2]
        limit = what.get(entry["what"], f"a sum of {column} of {shown} of one {plan.question.unit}{within}")
        exceed = f"with probability .95 at most {entry['beyond']:,} units exceed it"
        lines.append(f"found: at most {limit}; {exceed}, by how much is not known")
    return tuple(dict.fromkeys(lines))


def public_part(entry: Known) -> dict[str, Any]:
    """What a receipt shows of one search: what was looked for, the bound, and how many units may exceed it."""
    what = entry["what"] if entry["what"] in ("groups", "rows") else entry["what"].partition(".")[2]
    return {"what": what, "bound": entry["bound"], "beyond": entry["beyond"], "plan": entry["plan"]}


def refuse_beside(options: Any, plans: Sequence[Plan], *, staged: bool) -> None:
    """Raises QueryError for what cannot be asked of bounds that are found."""
    if not any(plan.to_find for plan in plans):
        return
    if options.within is not None:
        at_epsilon = GiveOptions(("epsilon",), instead=("within", "at_most"))
        raise QueryError(
            "within= takes the error from the bounds, and these are found in the charge. Ask at an epsilon, "
            f'{at_epsilon.in_python()}, or give numbers in place of "auto".',
            remedy=at_epsilon,
        )
    if staged:
        raise QueryError(
            "no bound can be found in a statement whose private parts read one another's release. Ask the first part "
            "by itself, and give what it found."
        )
