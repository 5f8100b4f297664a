"""Conditions that no declared value meets, found before anything is charged.

`ward = 'cardiology'` where 'Cardiology' is declared is answered by noise around 0, paid in full. What is declared is
public, so it can be told for nothing: everything here follows from the question and the declarations, never from rows.

- `=` and IN, in WHERE or FILTER: with no declared value, *refused*; with some, a *note*. Terms of one OR about the same
  thing are one IN. An expression of declared columns has the values that it makes of theirs (and of NULL).
- The same under NOT, in CASE and in a key; `<>` and NOT IN: a note.
- A comparison that is false throughout the declared ranges: a note. Values outside a range are clamped where they are
  summed, but they are there, so one may ask for them.

Nothing is said of a column without declared values, of one that may hold others (`other=`, `others=True`), of public
tables, of ON, or of what is compared above the aggregates.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hubbub.errors import PolicyError
from hubbub.remedies import AllowOthers
from hubbub.spelling import meant_by
from hubbub.tables.aggregate_query import AggregateQuery
from hubbub.tables.columns import Counted, Declaration, OneOf
from hubbub.tables.expressions import (
    Call,
    Case,
    Column,
    Compare,
    Expression,
    InList,
    Literal,
    Logic,
    Not,
    children,
    columns_in,
    columns_of,
    rebuild,
)
from hubbub.tables.groups import Evaluate, fitted
from hubbub.tables.kinds import NUMERIC, TEMPORAL
from hubbub.tables.relations import (
    Filter,
    Join,
    PerUnit,
    PublicRelation,
    Relation,
    Window,
    below,
    declared_in,
    expressions_in,
    leaves,
    names_read,
)
from hubbub.tables.spans import Known, span

__all__ = ["Doubt", "capped", "doubts"]

MOST_VALUES = 10_000
"""The values of an expression are found where its columns' declared values have at most so many combinations."""
_SHOWN = 8
_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Doubt:
    """Something that is asked for and not declared. refused: the question is not answered. word: where it stands.

    meant: the text that was asked for, and the declared one that it is a slip away from.
    """

    text: str
    refused: bool = False
    word: str | None = None
    remedy: AllowOthers | None = None
    meant: tuple[str, str] | None = None


def doubts(question: AggregateQuery, evaluate: Evaluate) -> tuple[Doubt, ...]:
    """What a question asks for that its declarations do not hold, each once, in the order of the question."""
    public = {leaf.place for leaf in leaves(question.relation)}
    doubts_there: list[Doubt] = []
    for node in _relations(question.relation):
        if isinstance(node, PublicRelation | Join):
            continue
        own = tuple(expressions_in(node))
        if not own:
            continue
        known = _known(node, own, public)
        if isinstance(node, Filter):
            doubts_there += _of_condition(node.condition, known, evaluate, wanted=True, in_where=True)
        else:
            doubts_there += (d for e in own for d in _of_condition(e, known, evaluate, wanted=True, in_where=False))
    # A key whose groups are given has conditions of our own making: those of edges, or of `other`.
    keys = [k.expression for k in question.keys if k.groups is None]
    arguments = [x for a in question.aggregates for x in a.arguments]
    known = _known(question.relation, (*keys, *arguments), public)
    doubts_there += (d for e in keys for d in _of_condition(e, known, evaluate, wanted=True, in_where=False))
    doubts_there += (d for e in arguments for d in _of_argument(e, known, evaluate))
    return tuple(dict.fromkeys(doubts_there))


def _of_argument(node: Expression, known: Mapping[str, Declaration], evaluate: Evaluate) -> Iterator[Doubt]:
    """What is aggregated: where a condition does not hold it is NULL, and counts in nothing, as under FILTER."""
    match node:
        case Case(conditions=(condition,), values=(value,), default=Literal(value=None)):
            yield from _of_condition(condition, known, evaluate, wanted=True, in_where=True)
            yield from _of_argument(value, known, evaluate)
        case _:
            yield from _of_condition(node, known, evaluate, wanted=True, in_where=False)


def capped(question: AggregateQuery) -> tuple[str, ...]:
    """What an answer says of numbers of one unit's rows: each counts as its limit where it is larger."""
    relation, above = question.relation, [x for a in question.aggregates for x in a.arguments]
    if not any(isinstance(node, PerUnit | Window) for node in _relations(relation)):
        return ()  # no number of a unit's rows is read
    keys = [k.expression for k in question.keys]
    known = declared_in(relation, names_read(relation).union(*map(columns_of, (*keys, *above))))
    remarks: dict[str, None] = {}
    for node in (*keys, *above):
        for column in columns_in(node):
            limit, told = known.get(column.name), known.told(column)
            if (
                not isinstance(limit, Counted)
                or limit.high is None
                or (told is not None and told[1] is not None and told[1] <= limit.high)
            ):
                continue
            unlimited = Known({**known, column.name: Counted(limit.low, None)}, known.columns, known.expressions)
            if span(_as_asked(node), known) == span(_as_asked(node), unlimited):
                continue  # LEAST(n, 5): the limit decides nothing
            is_key = any(column in columns_in(key) for key in keys)
            what = (
                f"{column.called} = {limit.high} is {limit.high} or more"
                if is_key
                else (f"{column.called} counts as at most {limit.high}")
            )
            remarks[f"{what}: with so many rows one unit counts (max_total, or max_groups times max_rows)."] = None
    return tuple(remarks)


def _as_asked(node: Expression) -> Expression:
    """A key without the cap that `hubbub.tables.groups.grouped` puts on a number of rows."""
    match node:
        case Case(conditions=(Compare(op=">", left=Column() as column, right=cap),), values=(value,), default=default):
            if default == column and value == cap:
                return column
    return rebuild(node, _as_asked)


def _relations(node: Relation | PublicRelation) -> Iterator[Relation | PublicRelation]:
    for part in below(node):
        yield from _relations(part)
    yield node


def _known(node: Relation, read: Iterable[Expression], public: set[str]) -> dict[str, Declaration]:
    """What is declared of the columns that a node's expressions read: those of what lies below it."""
    names = names_read(node).union(*map(columns_of, read))
    names = frozenset(n for n in names if n.partition(".")[0] not in public)
    declarations: dict[str, Declaration] = {}
    for part in (node, *below(node)):
        declarations |= {n: what for n, what in declared_in(part, names).items() if n.partition(".")[0] not in public}
    return declarations


def _of_condition(
    node: Expression, known: Mapping[str, Declaration], evaluate: Evaluate, *, wanted: bool, in_where: bool
) -> Iterator[Doubt]:
    """wanted: whether rows are kept where the condition is true, or (under NOT) where it is false. in_where: whether
    others are left out, or only told apart."""
    match node:
        case Not(operand=operand):
            yield from _of_condition(operand, known, evaluate, wanted=not wanted, in_where=in_where)
            return
        case Logic(op=op, terms=terms):
            for term in _as_lists(terms) if op == "OR" and wanted else terms:
                yield from _of_condition(term, known, evaluate, wanted=wanted, in_where=in_where)
            return
        case InList(operand=operand, values=values):
            yield from _of_list(operand, values, known, evaluate, wanted=wanted, in_where=in_where)
        case Compare(op="=" | "<>" as op, left=operand, right=Literal() as constant):
            same = wanted == (op == "=")
            yield from _of_list(operand, (constant,), known, evaluate, wanted=same, in_where=in_where)
            yield from _of_ranges(node, known, wanted=wanted)
        case Compare(op="=" | "<>" as op, left=Literal(), right=Column() | Call()):
            turned = Compare(op, node.right, node.left)
            yield from _of_condition(turned, known, evaluate, wanted=wanted, in_where=in_where)
            return
        case Compare():
            yield from _of_ranges(node, known, wanted=wanted)
    for child in children(node):
        yield from _of_condition(child, known, evaluate, wanted=True, in_where=False)


def _as_lists(terms: Iterable[Expression]) -> list[Expression]:
    """Terms of one OR, in which those that compare the same thing with constants are one IN."""
    rest: list[Expression] = []
    lists: dict[Expression, list[Literal]] = {}
    for term in terms:
        match term:
            case Compare(op="=", left=operand, right=Literal() as value):
                lists.setdefault(operand, []).append(value)
            case InList(operand=operand, values=values):
                lists.setdefault(operand, []).extend(values)
            case _:
                rest.append(term)
    return [*(InList(operand, tuple(values)) for operand, values in lists.items()), *rest]


def _of_list(
    operand: Expression,
    values: tuple[Literal, ...],
    known: Mapping[str, Declaration],
    evaluate: Evaluate,
    *,
    wanted: bool,
    in_where: bool,
) -> Iterator[Doubt]:
    declared = _declared_values(operand, known, evaluate)
    asked = {_plain(v.value): v for v in values if v.value is not None}
    if not declared or not asked:
        return
    missing = [v for plain, v in asked.items() if plain not in declared]
    if not missing:
        return
    called, which = _shown(operand), " or ".join(_shown(v) for v in missing[:_SHOWN])
    lacking = f"{called} has no declared value {which}"
    meant = _meant(missing, list(declared.values()))
    near = f"did you mean {_quoted(meant[1])}?" if meant else _nearest(missing, list(declared.values()))
    if wanted and in_where and len(missing) == len(asked):
        others = AllowOthers(next(iter(columns_in(operand))).called)
        yield Doubt(
            f"{lacking}; {near} Nothing was charged. If other values may occur, declare that: {others.in_python()}.",
            remedy=others,
            meant=meant,
            refused=True,
            word=_shown(missing[0]) if isinstance(missing[0].value, str) else None,
        )
    elif wanted:
        yield Doubt(f"{lacking}; {near} That part of the question finds nothing that is declared.")
    else:
        yield Doubt(f"{lacking}; {near} To leave that out leaves out nothing that is declared.")


def _declared_values(
    operand: Expression, known: Mapping[str, Declaration], evaluate: Evaluate
) -> dict[object, object] | None:
    """The values that an expression has where its columns keep to their declared ones, by what they are equal to; None
    where they are not all declared."""
    columns = sorted(columns_in(operand), key=lambda c: c.name)
    listed_of: dict[Column, tuple[object, ...]] = {}
    for column in columns:
        what = known.get(column.name)
        if not isinstance(what, OneOf) or what.open:
            return None
        with contextlib.suppress(PolicyError):
            listed_of[column] = tuple(fitted(v, column.kind, column.called) for v in what.values)
    if not listed_of or len(listed_of) < len(columns):
        return None
    if isinstance(operand, Column):
        listed: Iterable[object] = listed_of[operand]
    else:
        # NULL may be there though no group of it is declared: COALESCE(ward, 'none') = 'none' is a fair question.
        listed_of = {column: tuple(dict.fromkeys((*values, None))) for column, values in listed_of.items()}
        if math.prod(map(len, listed_of.values())) > MOST_VALUES:
            return None
        listed = evaluate(operand, listed_of)  # type: ignore[arg-type]
    return {_plain(v): v for v in listed if v is not None}


def _plain(value: object) -> object:
    """What two values have in common that compare as equal."""
    match value:
        case bool() | str():
            return type(value), value
        case Fraction() | int():
            return Fraction(value)
        case float():
            return Fraction(repr(value)) if math.isfinite(value) else value
        case dt.datetime():
            return value
        case dt.date():
            return dt.datetime(value.year, value.month, value.day)
    return value


def _meant(missing: list[Literal], declared: list[object]) -> tuple[str, str] | None:
    """The one text that is missing, and the declared one that it is a slip away from; blanks around it may be meant."""
    asked = missing[0].value
    if not isinstance(asked, str) or len(missing) > 1:
        return None
    near = meant_by(asked, [v for v in declared if isinstance(v, str)])
    return None if near is None or near.strip() == asked.strip() else (asked, near)


def _nearest(missing: list[Literal], declared: list[object]) -> str:
    """The declared values most like the missing ones, or some of them."""
    texts = {str(v).strip().lower(): v for v in reversed(declared) if isinstance(v, str)}
    near = [
        texts[match]
        for literal in missing
        if isinstance(literal.value, str)
        for match in difflib.get_close_matches(literal.value.strip().lower(), texts, n=1, cutoff=0.6)
    ]
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(map(_quoted, near[:_SHOWN])))}?"
    more = ", ..." if len(declared) > _SHOWN else ""
    return f"declared: {', '.join(map(_quoted, declared[:_SHOWN]))}{more}."


def _of_ranges(node: Compare, known: Mapping[str, Declaration], *, wanted: bool) -> Iterator[Doubt]:
    """A comparison that is false wherever its columns keep to their declared ranges."""
    names = {c.name for c in columns_in(node)}
    whats = [known.get(name) for name in names]
    listed = [what for what in whats if isinstance(what, OneOf)]
    op = node.op if wanted else _OPPOSITE[node.op]
    if any(isinstance(what, Counted) for what in whats):
        return  # a limit is a choice: more rows than that may be there
    if not names or any(what.open for what in listed) or (op == "=" and len(listed) == len(whats)):
        return
    if not {node.left.kind, node.right.kind} <= NUMERIC | TEMPORAL:
        return
    a, b = span(node.left, known), span(node.right, known)
    if a is None or b is None:
        return
    if {
        "<": _reaches(b[1], a[0], strict=False),
        "<=": _reaches(b[1], a[0], strict=True),
        ">": _reaches(a[1], b[0], strict=False),
        ">=": _reaches(a[1], b[0], strict=True),
        "=": _reaches(a[1], b[0], strict=True) or _reaches(b[1], a[0], strict=True),
        "<>": False,
    }[op]:
        ranges = "; ".join(
            f"{c.called} is declared as {known[c.name]!r}"
            for c in sorted(columns_in(node), key=lambda c: c.called)
            if c.name in known and not c.shown
        )
        text = f"{_shown(node.left)} {op} {_shown(node.right)} holds for nothing that is declared"
        yield Doubt(f"{text}: {ranges}." if ranges else f"{text}.")


def _reaches(high: Fraction | None, low: Fraction | None, *, strict: bool) -> bool:
    """Whether a highest value lies below a lowest one (strict), or does not lie above it."""
    return high is not None and low is not None and (high < low if strict else high <= low)


def _quoted(value: object) -> str:
    match value:
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Fraction():
            return str(value.numerator) if value.denominator == 1 else f"{float(value):.15g}"
        case dt.date():
            return f"'{value}'"
    return str(value)


def _shown(node: Expression) -> str:
    """An expression in a message, where it is short."""
    match node:
        case Column():
            return node.called
        case Literal(value=value):
            return "NULL" if value is None else _quoted(value)
        case Call(name="EXTRACT", arguments=(Literal(value=part), argument)):
            return f"EXTRACT({str(part).lower()} FROM {_shown(argument)})"
        case Call(name=name, arguments=arguments) if not name.startswith("CAST_"):
            return f"{name}({', '.join(map(_shown, arguments))})"
        case Case():
            return "CASE ... END"
    names = sorted({c.called for c in columns_in(node)})
    return f"an expression of {', '.join(names)}" if names else "an expression"
