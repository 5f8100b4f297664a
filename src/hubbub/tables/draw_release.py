"""Drawing a release: noise on every part of a price, once, and the form in which it is kept.

Everything private goes in as exact integers and comes out through a mechanism: `add_noise` for vectors, the
exponential mechanism for quantiles, a threshold for groups that were found privately. What comes out is public.

Groups found privately are put in the order of their keys before anything is drawn, NULL last, so that the order of an
answer says nothing about rows; those below the threshold leave no trace.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hubbub.accounting.amounts import ratio
from hubbub.errors import InternalError
from hubbub.mechanisms.additive import add_noise
from hubbub.mechanisms.groups import GroupThreshold
from hubbub.mechanisms.top_k import UnknownTopK
from hubbub.noise import Bits, DiscreteLaplace
from hubbub.tables.aggregates.base import Mechanisms
from hubbub.tables.columns import Scalar
from hubbub.tables.measure import Measurement
from hubbub.tables.parts import Selection, Sums
from hubbub.tables.plan import Plan
from hubbub.tables.price import Price, PricedPart, Spend, assemble, strategies_of

__all__ = ["FORMAT", "draw", "drawn_groups", "price_of"]

FORMAT = 2

Vector = Sequence[Any]


class ExactLike(Protocol):
    """What an engine hands over: one vector per measurement of the plan, and the groups found, if they are private."""

    @property
    def vectors(self) -> Sequence[Vector]: ...

    @property
    def groups(self) -> Sequence[tuple[Scalar, ...]] | None: ...


@dataclass(frozen=True)
class _Exact:
    """The vectors of the groups that may be shown, by measurement."""

    vectors: Mapping[Measurement, Vector]
    size: int


def draw(
    price: Price, exacts: Iterable[ExactLike], bits: Bits | None = None, *, into: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Draw every part of every plan once; the JSON-ready form of the release.

    exacts: one for each plan; asked for one at a time, so that a plan may depend on what was drawn before it. into:
    where the drawn plans are put as they come. bits: a bit source for tests.
    """
    plans = [] if into is None else into
    for at, (plan, exact) in enumerate(zip(price.plans, exacts, strict=True)):
        plans.append(_draw_plan(plan, price.of_plan(at), exact, bits))
    spend = price.spend
    return {
        "format": FORMAT,
        "spend": {
            "epsilon": None if spend.epsilon is None else str(spend.epsilon),
            "rho": None if spend.rho is None else str(spend.rho),
            "delta": str(spend.delta),
        },
        "choices": [list(s.choices) for s in price.strategies],
        "shares": [str(p.share) for p in price.parts],
        "plans": plans,
    }


def price_of(plans: Sequence[Plan], payload: Mapping[str, Any]) -> Price:
    """The price at which a stored release was drawn: its own strategies, shares and amount.

    Raises InternalError for a payload of another format or of other plans.
    """
    if payload.get("format") != FORMAT or len(payload["plans"]) != len(plans):
        raise InternalError("a stored release does not fit its question")
    given = payload["spend"]
    amounts = {k: None if given[k] is None else ratio(given[k]) for k in ("epsilon", "rho")}
    spend = Spend(**amounts, delta=ratio(given["delta"]))
    strategies = strategies_of(plans, payload["choices"])
    return assemble(plans, spend, strategies, [ratio(share) for share in payload["shares"]])


def drawn_groups(plan: Plan, drawn: Mapping[str, Any]) -> list[tuple[Scalar, ...]]:
    """The groups of one plan's release, in order."""
    if drawn["groups"] is None:
        return list(plan.groups())
    return [tuple(_decoded(value) for value in group) for group in drawn["groups"]]


def _draw_plan(plan: Plan, parts: Sequence[PricedPart], exact: ExactLike, bits: Bits | None) -> dict[str, Any]:
    vectors = dict(zip(plan.measurements, exact.vectors, strict=True))
    size = plan.group_count
    present = _Exact(vectors, len(exact.vectors[0]) if size is None else size)
    if any(len(v) != present.size for v in exact.vectors):
        raise InternalError("an engine returned vectors of another length than the plan has groups")
    groups: list[list[Any]] | None = None
    released: list[Any] = []
    for priced in parts:
        if isinstance(priced.part, Selection):
            if exact.groups is None or not isinstance(priced.draws, GroupThreshold | UnknownTopK):
                raise InternalError("groups found privately, without their keys")
            order = sorted(range(present.size), key=lambda i: _order(exact.groups[i]))  # type: ignore[index]
            counts = np.array([int(vectors[priced.part.measurement][i]) for i in order], np.int64)
            shown = _shown(priced.draws, counts, [tuple(exact.groups[i]) for i in order], bits)
            places = [order[i] for i in shown]
            present = _Exact({m: [v[i] for i in places] for m, v in vectors.items()}, len(places))
            groups = [[_encoded(value) for value in exact.groups[i]] for i in places]
            released.append([list(shown.values())])
        elif isinstance(priced.part, Sums):
            released.append(_noisy(priced, priced.part, present, bits))
        else:
            assert isinstance(priced.draws, Mechanisms)
            released.append(priced.draws.draw(present.vectors[priced.part.measurement], bits))
    return {"groups": groups, "parts": released}


def _shown(
    draws: GroupThreshold | UnknownTopK, counts: Any, keys: Sequence[tuple[Scalar, ...]], bits: Bits | None
) -> dict[int, int]:
    """The groups that are shown, in the order of their keys, each with its noisy count, or with its place."""
    if isinstance(draws, GroupThreshold):
        return draws.release(counts, bits=bits, keys=keys)
    chosen = draws.release(counts, bits=bits, keys=keys)
    return {group: chosen.index(group) + 1 for group in sorted(chosen)}


def _noisy(priced: PricedPart, part: Sums, exact: _Exact, bits: Bits | None) -> list[list[int]]:
    values: list[int] = []
    for combination in part.vectors:
        columns = [(exact.vectors[m], coefficient) for m, coefficient in combination]
        values += _combined(columns, exact.size)
    laplace = isinstance(priced.noise, DiscreteLaplace)
    noisy = add_noise(values, sensitivity=part.l1 if laplace else part.l2_squared, distribution=priced.noise, bits=bits)
    return (
        [list(noisy[i : i + exact.size]) for i in range(0, len(noisy), exact.size)]
        if exact.size
        else [[] for _ in part.vectors]
    )


def _combined(columns: Sequence[tuple[Vector, int]], size: int) -> list[int]:
    """Vectors times their coefficients, added up group by group: exactly, whatever their size."""
    if len(columns) == 1 and columns[0][1] == 1:
        return list(map(int, columns[0][0]))
    try:
        arrays = [(np.array(vector, np.int64), coefficient) for vector, coefficient in columns]
    except OverflowError:
        arrays = []
    largest = sum(max(-int(a.min()), int(a.max())) * abs(c) for a, c in arrays if size)
    if arrays and largest < 2**63:
        total: list[int] = sum(a * c for a, c in arrays).tolist()  # type: ignore[union-attr]
        return total
    return [sum(int(v[i]) * c for v, c in columns) for i in range(size)]


def _order(group: Sequence[Scalar]) -> tuple[tuple[int, str, Any], ...]:
    """A total order of keys: by value within a kind, NULL last."""
    return tuple(_place(value) for value in group)


def _place(value: Scalar) -> tuple[int, str, Any]:
    if value is None:
        return 1, "", 0
    if isinstance(value, bool):
        return 0, "boolean", value
    if isinstance(value, int | float):
        return 0, "number", value
    if isinstance(value, dt.datetime):
        return 0, "timestamp", value
    return 0, type(value).__name__, value


def _encoded(value: Scalar) -> Any:
    """A key as JSON: plain where JSON has the kind, else its kind and its text."""
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    return value


def _decoded(value: Any) -> Scalar:
    if isinstance(value, dict):
        if "timestamp" in value:
            return dt.datetime.fromisoformat(value["timestamp"])
        return dt.date.fromisoformat(value["date"])
    return value  # type: ignore[no-any-return]
