"""Which groups an answer names: always the same ones, whatever the rows are.

A column's values are those it is declared to have: `one_of`, every whole number or day of a `between` that has at most
10,000 of them, false and true for a boolean. The groups of an expression are the image of its columns' values, found
by evaluating it over all their combinations. Where its columns have no such values, a condition still has the groups
false and true, a time what the expression sees of it, and a number its steps (`hubbub.tables.images`). NULL is a group
where it is declared, or where the expression makes it of declared values. Rows that fall in no group are dropped.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from hubbub.errors import PolicyError, QueryError
from hubbub.remedies import DeclareLimits, DeclareValues, GiveKeys, Rewrite, UseDelta
from hubbub.tables.columns import Between, Counted, Declaration, Edges, OneOf, Ranged, Scalar, plain_moment
from hubbub.tables.expressions import (
    Case,
    Column,
    Compare,
    Expression,
    InList,
    IsNull,
    Literal,
    columns_in,
    rebuild,
    whole,
)
from hubbub.tables.images import MOST_IN_A_RANGE, moments, parts_of
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.spans import known, met, span

__all__ = ["Evaluate", "Key", "domain", "fitted", "grouped", "without_image"]

Evaluate = Callable[[Expression, Mapping[Column, tuple[Scalar, ...]]], list[Scalar]]
"""An engine's value of an expression for every combination of its columns' values, the last column fastest."""

MOST_COMBINATIONS = 1_000_000
_STEPS = Rewrite("FLOOR(x / 10)")
_MONTHS, _DAYS = ((Rewrite(f"DATE_TRUNC('{unit}', day)"), _STEPS) for unit in ("month", "day"))


def _wider(ways: tuple[Rewrite, ...]) -> str:
    return (
        f"Group by longer stretches of time, {ways[0].example}, or wider steps, {ways[1].example}; or narrow the "
        "question with WHERE."
    )


@dataclass(frozen=True)
class Key:
    """One term of GROUP BY. groups: those that are answered, where the question or a declaration lists them; else
    `hubbub.tables.groups` finds them.
    """

    expression: Expression
    groups: tuple[Scalar, ...] | None = None

    @property
    def kind(self) -> Kind:
        """The kind of its groups: whole numbers stay whole, whatever computes them."""
        return Kind.INTEGER if self.expression.kind in NUMERIC and whole(self.expression) else self.expression.kind


def domain(key: Key, declared: Mapping[str, Declaration], evaluate: Evaluate, name: str = "") -> tuple[Scalar, ...]:
    """The groups of one key, in canonical order. name: what the question calls the key, if anything.

    Raises PolicyError where they do not follow from declared values, QueryError for too many combinations.
    """
    if key.groups is not None:
        return key.groups
    expression = key.expression
    bare = isinstance(expression, Column)
    values = {column: _passing(column, declared, bare=bare) for column in columns_in(expression)}
    counted = {column for column in values if isinstance(declared.get(column.name), Counted)}
    known = {column: listed for column, listed in values.items() if listed is not None and column not in counted}
    if isinstance(expression, Column):
        if expression in known:
            return known[expression]
    else:
        listed = _image(key, known, declared, evaluate)
        if listed is not None:
            return listed
    if expression.kind is Kind.BOOLEAN:
        return False, True
    if whole(expression):
        low, high = span(expression, declared) or (None, None)
        if low is not None and high is not None and high - low < MOST_IN_A_RANGE:
            return _usable(tuple(range(math.ceil(low), math.floor(high) + 1)), Kind.INTEGER)
    raise _undeclared(expression, [c for c in values if c not in known], declared, name)


def without_image(key: Key, declared: Mapping[str, Declaration]) -> tuple[Scalar, ...] | None:
    """The groups of one key as far as no engine has to evaluate it; None where one has, or where there are none."""
    expression = key.expression
    if key.groups is not None or not isinstance(expression, Column):
        return key.groups or by_form(key, declared)
    return _passing(expression, declared, bare=True) or by_form(key, declared)


def by_form(key: Key, declared: Mapping[str, Declaration]) -> tuple[Scalar, ...] | None:
    """The groups that follow from the form of an expression: constants, a condition, whole numbers in a range."""
    expression = key.expression
    if (constants := _constants(key)) is not None:
        return constants
    if expression.kind is Kind.BOOLEAN:
        return False, True
    if whole(expression):
        low, high = span(expression, declared) or (None, None)
        if low is not None and high is not None and high - low < MOST_IN_A_RANGE:
            return _usable(tuple(range(math.ceil(low), math.floor(high) + 1)), Kind.INTEGER)
    return None


def _image(
    key: Key,
    known: Mapping[Column, tuple[Scalar, ...]],
    declared: Mapping[str, Declaration],
    evaluate: Evaluate,
) -> tuple[Scalar, ...] | None:
    """The groups of an expression: its values for all values of its columns, or of its steps; None without these.

    Raises QueryError for too many combinations, and too many groups.
    """
    expression = key.expression
    columns = columns_in(expression)
    timed = {c: steps for c in columns if c not in known and (steps := moments(c, expression, declared)) is not None}
    listed = {**known, **timed}
    if len(listed) < len(columns) and (constants := _constants(key)) is not None:
        return constants
    if expression.kind is Kind.BOOLEAN and len(listed) < len(columns):
        return None
    parts = parts_of(expression, listed, declared)
    if parts is None or not columns:
        return None
    if parts.combinations > MOST_COMBINATIONS:
        if whole(expression) or expression.kind is Kind.BOOLEAN:
            return None
        if (constants := _constants(key)) is not None:
            return constants
        raise QueryError(
            f"GROUP BY would need {parts.combinations:,} combinations of declared values; at most 1,000,000. "
            f"{_wider(_MONTHS)}",
            remedy=_MONTHS,
        )
    values = evaluate(Key(parts.expression).expression, parts.values)
    told = zip(values, parts.null_by_chance(declared), strict=True)
    groups = tuple(dict.fromkeys(value for value, by_chance in told if not (value is None and by_chance)))
    if len(groups) > MOST_IN_A_RANGE:
        hours = expression.kind in TEMPORAL and len(groups) <= 24 * MOST_IN_A_RANGE  # of hours the days can be listed
        ways = _DAYS if hours else _MONTHS
        raise QueryError(
            f"GROUP BY: the declared range has {len(groups):,} such groups; at most {MOST_IN_A_RANGE:,} are answered. "
            f"{_wider(ways)}",
            remedy=ways,
        )
    return _usable(groups, key.kind)


def grouped(expression: Expression, declared: Mapping[str, Declaration]) -> Key:
    """What GROUP BY on an expression groups by: a column with edges by its interval, one with `other` by that."""
    what = declared.get(expression.name) if isinstance(expression, Column) else None
    if isinstance(what, Edges):
        inside = Compare("<=", expression, _number(what.high))
        below = [Compare("<", expression, _number(end)) for end in what.ends[:-1]]
        values = tuple(Literal(label) for label in what.labels())
        return Key(Case((*below, inside), (Literal(None), *values), Literal(None)), what.labels())
    if isinstance(what, OneOf) and what.other is not None and expression.kind is Kind.TEXT:
        known = tuple(Literal(v) for v in what.values if isinstance(v, str))
        conditions: tuple[Expression, ...] = (InList(expression, known),)
        values_: tuple[Expression, ...] = (expression,)
        if None in what.values:
            conditions, values_ = (IsNull(expression), *conditions), (Literal(None), *values_)
        return Key(Case(conditions, values_, Literal(what.other)), (*what.values, what.other))
    return Key(_at_most(expression, declared))


def _at_most(node: Expression, declared: Mapping[str, Declaration]) -> Expression:
    """An expression in which a number of rows beyond its limit is that limit: the last group is that many or more."""
    if isinstance(node, Column):
        what = declared.get(node.name)
        if not isinstance(what, Counted) or what.high is None:
            return node
        return Case((Compare(">", node, _number(what.high)),), (_number(what.high),), node)
    if node.kind is Kind.BOOLEAN:
        return node  # a condition on the number itself is true or false, whatever the limit
    return rebuild(node, lambda child: _at_most(child, declared))


def _number(end: Fraction) -> Literal:
    return Literal(int(end)) if end.denominator == 1 else Literal(end)


def _constants(key: Key) -> tuple[Scalar, ...] | None:
    """The groups of a CASE whose results are all constants."""
    if not isinstance(key.expression, Case):
        return None
    constants = [v for v in (*key.expression.values, key.expression.default) if isinstance(v, Literal)]
    if len(constants) < len(key.expression.values) + 1:
        return None
    return _usable(_of_constants(constants, key.kind), key.kind)


def _of_constants(constants: list[Literal], kind: Kind) -> tuple[Scalar, ...]:
    """The groups of CASE whose results are all constants: these, in the order in which they stand, each once."""
    values = [float(c.value) if isinstance(c.value, Fraction) else c.value for c in constants]
    return tuple(dict.fromkeys(fitted(value, kind, "CASE") for value in values))


def _usable(groups: tuple[Scalar, ...], kind: Kind) -> tuple[Scalar, ...]:
    """Groups that a column of the answer can hold: 64-bit integers, dates of the years 1 to 9999."""
    for group in groups:
        far = isinstance(group, str) and kind in (Kind.DATE, Kind.TIMESTAMP)
        counted = isinstance(group, int) or (isinstance(group, float) and group.is_integer())
        if far or (counted and not -(2**63) <= group < 2**63):  # type: ignore[operator]
            raise QueryError(f"GROUP BY: the group {group} of a declared value is out of range for {kind.value}.")
    return groups


def _passing(column: Column, declared: Mapping[str, Declaration], *, bare: bool) -> tuple[Scalar, ...] | None:
    """The values of a column; of a range those alone that conditions let pass. Listed values are all answered."""
    what = declared.get(column.name)
    values, told = _values(column, what, bare=bare), known(declared).told(column)
    if values is None or told is None or not isinstance(what, Between | Ranged):
        return values
    inside = tuple(v for v in values if v is None or met(told, span(Literal(v), {}) or told))  # type: ignore[arg-type]
    return inside if inside not in ((), (None,)) else values


def _values(column: Column, what: Declaration | None, *, bare: bool) -> tuple[Scalar, ...] | None:
    """The values a column is declared to have, if they can be counted out.

    Inside an expression NULL is one of them where a range is declared nullable: COALESCE(n, -1) may make a group of it.
    """
    match what:
        case OneOf(values=values):
            listed = (
                values if _fit(values, column.kind) else tuple(fitted(v, column.kind, column.called) for v in values)
            )
            if len(set(listed)) < len(listed):
                twice = next(v for i, v in enumerate(listed) if v in listed[:i])
                once = DeclareValues(column.called)
                raise PolicyError(
                    f"column {column.called!r}: two of its declared values are {twice!r} in a column of type "
                    f"{column.kind.value}; name each value once: {once.in_python()}.",
                    remedy=once,
                )
            return listed
        case (
            Between(low=Fraction() as low, high=Fraction() as high)
            | Ranged(low=Fraction() as low, high=Fraction() as high)
        ) if column.kind is Kind.INTEGER:
            if high - low < MOST_IN_A_RANGE:
                whole_numbers = _usable(tuple(range(math.ceil(low), math.floor(high) + 1)), Kind.INTEGER)
                nullable = isinstance(what, Ranged) or what.nullable
                return whole_numbers if bare or not nullable else (*whole_numbers, None)
        case Between(low=dt.date() as first, high=dt.date() as last) if column.kind is Kind.DATE:
            first, last = (d.date() if isinstance(d, dt.datetime) else d for d in (first, last))
            days = (last - first).days + 1
            if days <= MOST_IN_A_RANGE:
                each = tuple(first + dt.timedelta(days=i) for i in range(days))
                return each if bare or not what.nullable else (*each, None)
        case None if column.kind is Kind.BOOLEAN:
            return False, True
    return None


def _undeclared(
    expression: Expression, missing: list[Column], declared: Mapping[str, Declaration], name: str
) -> PolicyError:
    """What to declare, or to say with the question. Only a table's own column can be declared."""
    column = missing[0] if missing else None
    what = None if column is None else declared.get(column.name)
    called = "this expression" if column is None else column.called
    keys = _keys_of(expression, name)
    named = _named(keys)
    if isinstance(expression, Column) and isinstance(what, Between):
        return _too_many(expression, what, keys)
    if column is not None and isinstance(what, Counted):
        cap, limit = Rewrite(f"GROUP BY LEAST({called}, 20)"), DeclareLimits(("max_total",), (20,))
        return PolicyError(
            f"GROUP BY {called}: it is a number of one unit's rows, for which no limit is declared. Cap it in the "
            f"question, as in LEAST(COUNT(*), 20): {cap.in_python()}; or declare {limit.in_python()} of the table.",
            remedy=(cap, limit),
        )
    computed = column is None or column.shown
    known = what is not None and not isinstance(what, Ranged)
    subject = called if isinstance(expression, Column) or column is None else f"an expression of {called}"
    declaring = DeclareValues(called)
    ways = f"give {named}" if computed else f"declare them: {declaring.in_python()}, or give {named}"
    if not known:
        return PolicyError(
            f"you can only group by {subject} if its possible values are declared, because listing the values that "
            f"occur would reveal who is in the table. You can {ways}. Under a budget with delta, groups can be found "
            "privately.",
            remedy=(*(() if computed else (declaring,)), keys, UseDelta()),
        )
    return PolicyError(
        f"GROUP BY {subject}: {_declared_as(column)} {what!r}, whose values are not listed. Listing those that occur "
        f"would reveal who is in the table. You can {ways}. Under a budget with delta, groups can be found privately.",
        remedy=(*(() if computed else (declaring,)), keys, UseDelta()),
    )


def _declared_as(column: Column | None) -> str:
    return "its values lie in" if column is not None and column.shown else "it is declared as"


def _keys_of(expression: Expression, name: str) -> GiveKeys:
    column = name or (expression.called if isinstance(expression, Column) else "")
    return GiveKeys(column) if column else GiveKeys("part", unnamed=True)


def _named(keys: GiveKeys) -> str:
    """How a question names the groups of a key."""
    first = 'it a name, as in "... AS part", and its groups' if keys.unnamed else "them"
    return f"{first} with the question: {keys.in_python()}"


def _too_many(column: Column, what: Between, keys: GiveKeys) -> PolicyError:
    """Why the values of a range are not listed, and what to group by instead."""
    name, kind, low, high = column.called, column.kind, what.low, what.high
    if not isinstance(low, Fraction) or not isinstance(high, Fraction):
        why, size = "moments cannot be listed", None
        if kind is Kind.DATE and isinstance(low, dt.date) and isinstance(high, dt.date):
            size = (high - low).days + 1
        coarser = ways = f"GROUP BY EXTRACT(year FROM {name})"
    else:
        why, size = "fractions cannot be listed", None
        if kind is Kind.INTEGER:
            size = math.floor(high) - math.ceil(low) + 1
        # A power of ten that cuts the range into 10 to 100 groups.
        power = math.floor(math.log10(high - low)) - 1
        step = f"{10**power}" if power >= 0 else f"{Decimal(10) ** power:f}"
        ends = ", ".join(f"{float(low + (high - low) * i / 4):g}" for i in range(5))
        coarser = ways = f"GROUP BY FLOOR({name} / {step})"
        if not column.shown:
            ways += f", or declare intervals: hb.edges({ends})"
    if size is not None:
        why = f"that is {size:,} values, and at most {MOST_IN_A_RANGE:,} are listed"
    return PolicyError(
        f"GROUP BY {name}: {_declared_as(column)} {what!r}, and every group is answered, but {why}. {ways}; or give "
        f"{_named(keys)}. Under a budget with delta, groups can be found privately.",
        remedy=(Rewrite(coarser), keys, UseDelta()),
    )


def _fit(values: tuple[Scalar, ...], kind: Kind) -> bool:
    """Whether all values are as `fitted` makes them, as far as that is told by their types."""
    types = {*map(type, values)}
    if types == {int} and kind is Kind.INTEGER:
        whole_numbers = [v for v in values if isinstance(v, int)]
        return min(whole_numbers) >= -(2**63) and max(whole_numbers) < 2**63
    return types == {str} and kind is Kind.TEXT


def fitted(value: Scalar, kind: Kind, column: str) -> Scalar:
    """A declared value as a value of the column's kind: 1 for 1.0 in a column of integers, a date for its ISO text.

    Raises PolicyError for a value that the column can never hold.
    """
    match kind, value:
        case _, None:
            return None
        case Kind.TIMESTAMP, dt.datetime():
            return plain_moment(value)
        case (Kind.BOOLEAN, bool()) | (Kind.TEXT, str()):
            return value
        case (Kind.INTEGER | Kind.NUMBER, bool()):
            pass
        case Kind.INTEGER, int() | float() if (
            math.isfinite(value) and value == int(value) and -(2**63) <= value < 2**63
        ):
            return int(value)
        case Kind.NUMBER, int() | float() if abs(value) < 2**1000:
            return float(value)
        case Kind.DATE, dt.date() if not isinstance(value, dt.datetime):
            return value
        case Kind.TIMESTAMP, dt.date():
            return dt.datetime(value.year, value.month, value.day)
        case ((Kind.DATE | Kind.TIMESTAMP), str()):
            with contextlib.suppress(ValueError):
                day = dt.datetime.fromisoformat(value)
                return fitted(day.date() if kind is Kind.DATE and len(value) == 10 else day, kind, column)
    as_held = DeclareValues(column)
    raise PolicyError(
        f"column {column!r} is declared as one_of(... {value!r} ...), but it holds values of type {kind.value}, "
        f"which are never equal to that. Declare values as the column holds them: {as_held.in_python()}.",
        remedy=as_held,
    )
