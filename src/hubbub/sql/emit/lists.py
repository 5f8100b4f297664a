"""Long lists of declared values, as tables beside a text where an engine can be handed one.

An engine reads a text of 100,000 values in seconds and a table of them in no time. `beside` says which keys of a plan
have their values there; the text then reads them from `listed0`, `listed1`, ..., each with the columns `key` and `g`,
the value's place in the declared order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from hubbub.plain import quick
from hubbub.sql.emit.dialect import Dialect
from hubbub.tables.columns import Scalar
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Plan

__all__ = ["MANY", "beside", "stored"]

MANY: Final = 100
"""Up to so many values stand in the text."""

_TYPES: Final[Mapping[Kind, frozenset[type]]] = {
    Kind.INTEGER: frozenset({int}),
    Kind.NUMBER: frozenset({int, float, Fraction}),
    Kind.TEXT: frozenset({str}),
    Kind.DATE: frozenset({dt.date, dt.datetime}),
    Kind.TIMESTAMP: frozenset({dt.date, dt.datetime}),
}


def beside(plan: Plan, dialect: Dialect) -> dict[int, str]:
    """The keys of a plan whose values stand beside its texts, each with the name of its table."""
    if not (dialect.lists_beside and quick("declared lists")):
        return {}
    return {
        i: f"listed{i}"
        for i, domain in enumerate(plan.domains)
        if domain is not None and len(domain) > MANY and _plain(domain, plan.keys[i].kind)
    }


def _plain(domain: tuple[Scalar, ...], kind: Kind) -> bool:
    """Whether all values are of the types that one column of their kind has."""
    types = set(map(type, domain)) - {type(None)}
    if kind is Kind.INTEGER and types == {int}:
        numbers = [v for v in domain if isinstance(v, int)]
        return min(numbers) >= -(2**63) and max(numbers) < 2**63
    return bool(types) and types <= _TYPES.get(kind, frozenset())


def stored(domain: tuple[Scalar, ...], kind: Kind) -> list[Scalar]:
    """The values as one column has them: what `Dialect.constant_as` writes of each."""
    match kind:
        case Kind.NUMBER:
            return [None if v is None else float(v) for v in domain]  # type: ignore[arg-type]
        case Kind.DATE:
            return [v.date() if isinstance(v, dt.datetime) else v for v in domain]
        case Kind.TIMESTAMP:
            return [v if v is None or isinstance(v, dt.datetime) else _midnight(v) for v in domain]
    return list(domain)


def _midnight(day: Scalar) -> Scalar:
    assert isinstance(day, dt.date)
    return dt.datetime(day.year, day.month, day.day)
