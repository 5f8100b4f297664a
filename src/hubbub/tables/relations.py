"""Relations: what stands below a private aggregate, and who owns each row.

Ownership. A relation R over a database D is *owned* when for every unit u, R(D + u) = R(D) + R_u, with every row of
R_u carrying owner u: adding a unit changes no other unit's row. Each node below keeps that (the page
*Who is protected*, `docs/concepts/who-is-protected.md`):

- `Scan`: a declared table. Rows whose unit is NULL are dropped. A unit reached by a key path is an inner join of base
  tables: one row for each owner that the key leads to.
- `Filter`, and the expressions over columns: row by row, deterministic, total.
- `Join` with a public or released relation on the right: INNER, LEFT, SEMI, ANTI look at one owned row at a time.
- `Join` of two owned relations, `by_unit`: the owners are equal, so a row of u meets rows of u alone. FULL too.
- `PerUnit` groups by the owner and more; `Window` has the owner in PARTITION BY; `Distinct` and `Combine` (UNION,
  INTERSECT, EXCEPT) compare owner and row.

The owner is a hidden column of every owned relation, which no projection drops or overwrites. Every other column has a
name of its own (`t0.age`), which is used by expressions and never shown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Final, Literal as OneWord, TypeAlias

from hubbub.errors import PolicyError
from hubbub.tables.columns import Between, Counted, Declaration, Edges, OneOf, Ranged
from hubbub.tables.declare import Bounding, Limits, Neighbours
from hubbub.tables.expressions import Column, Expression, canonical, columns_of
from hubbub.tables.groups import fitted
from hubbub.tables.kinds import TEMPORAL, Kind
from hubbub.tables.spans import Known, implied, span

__all__ = [
    "Combine",
    "Distinct",
    "Filter",
    "Inner",
    "Join",
    "Path",
    "PerUnit",
    "PublicRelation",
    "Relation",
    "Scan",
    "Window",
    "WindowCall",
    "as_held",
    "canonical_relation",
    "declared_in",
    "leaves",
    "limits_of",
    "names_read",
    "scans",
    "single",
    "units_of",
    "whole_rows_of",
]

Named: TypeAlias = tuple[str, Expression]


@dataclass(frozen=True)
class Path:
    """How a row finds its owner: `column` of the row equals `key` of another declared table, whose owner it takes."""

    column: str
    table: str
    key: str
    scan: Scan


@dataclass(frozen=True)
class Scan:
    """The rows of a declared table.

    place: the first part of its columns' names (`t0`). unit: the unit column, None where each row is a unit or the
    unit is reached by `path`. unit_type: units are compared only where it is the same word.
    """

    place: str
    table: str
    columns: Mapping[str, Kind] = field(hash=False)
    declared: Mapping[str, Declaration] = field(hash=False)
    limits: Limits
    space: str
    neighbours: Neighbours
    unit: str | None
    path: Path | None = None
    unit_type: str | None = None

    @property
    def each_row(self) -> bool:
        return self.unit is None and self.path is None

    def column(self, name: str) -> Column:
        return Column(f"{self.place}.{name}", self.columns[name])


@dataclass(frozen=True)
class PublicRelation:
    """A public relation: a public table, or any SQL over public tables and releases of the same statement.

    sql: over public tables and `released0`, ...; released: the questions it reads. values: the values of a column,
    where they are public before the question runs. unique: whether no two rows are equal in some columns. most: the
    largest number of rows that are equal in some columns, compared as values of these kinds (all rows, where none are
    named). longest: how many characters a column of texts has at most. None where it is not known before the question
    runs.
    """

    place: str
    sql: str
    tables: tuple[str, ...]
    released: tuple[int, ...]
    columns: Mapping[str, Kind] = field(hash=False)
    values: Callable[[str], tuple[object, ...] | None] = field(hash=False, compare=False, repr=False)
    unique: Callable[[tuple[str, ...]], bool] = field(hash=False, compare=False, repr=False)
    most: Callable[[tuple[tuple[str, Kind], ...]], int | None] = field(
        default=lambda _: None, hash=False, compare=False, repr=False
    )
    longest: Callable[[str], int | None] = field(default=lambda _: None, hash=False, compare=False, repr=False)

    def column(self, name: str) -> Column:
        return Column(f"{self.place}.{name}", self.columns[name])


@dataclass(frozen=True)
class Filter:
    """The rows for which a condition is true."""

    source: Relation
    condition: Expression


@dataclass(frozen=True)
class Join:
    """Rows of an owned relation with rows of another one.

    by_unit: `right` is owned, and rows meet only under one owner; else it is a `PublicRelation`. on: what else must be
    true. one: `right` has one row (a scalar), or is looked up by a key of its own, so that no owned row is repeated.
    """

    left: Relation
    right: Relation | PublicRelation
    how: OneWord["inner", "left", "full", "semi", "anti"]
    on: Expression | None
    by_unit: bool
    one: bool = False


InnerFunction: TypeAlias = OneWord[
    "COUNT_ROWS", "COUNT", "COUNT_DISTINCT", "SUM", "AVG", "MIN", "MAX", "ALL", "ANY", "MEDIAN"
]


@dataclass(frozen=True)
class Inner:
    """An aggregate of one owner's rows; exact, for it never leaves."""

    function: InnerFunction
    argument: Expression | None
    kind: Kind


@dataclass(frozen=True)
class PerUnit:
    """One row for each owner and each combination of `keys`."""

    source: Relation
    keys: tuple[Named, ...]
    aggregates: tuple[tuple[str, Inner], ...]


@dataclass(frozen=True)
class WindowCall:
    """A window function over one owner's rows.

    frame: the text of the frame, of our own making; empty for the default. Rows that `order` leaves equal are told
    apart by all their columns, so that no answer depends on the order of a scan.
    """

    function: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    frame: str
    kind: Kind


@dataclass(frozen=True)
class Window:
    """The rows with further columns, each computed from rows of the same owner."""

    source: Relation
    columns: tuple[tuple[str, WindowCall], ...]


@dataclass(frozen=True)
class Distinct:
    """The different rows of each owner, of the columns named."""

    source: Relation
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Combine:
    """UNION, INTERSECT or EXCEPT of owned relations of one unit space; `columns` names the result."""

    op: OneWord["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
    left: Relation
    right: Relation
    columns: tuple[Column, ...]
    of_left: tuple[Expression, ...]
    of_right: tuple[Expression, ...]


Relation: TypeAlias = Scan | Filter | Join | PerUnit | Window | Distinct | Combine
_RELATIONS = (Scan, Filter, Join, PerUnit, Window, Distinct, Combine)


def below(node: Relation | PublicRelation) -> Iterator[Relation | PublicRelation]:
    """The relations directly below a node."""
    for part in fields(node):
        value = getattr(node, part.name)
        if isinstance(value, (*_RELATIONS, PublicRelation)):
            yield value


def scans(node: Relation | PublicRelation) -> tuple[Scan, ...]:
    """The declared tables a relation reads, key paths included, from left to right."""
    if isinstance(node, Scan):
        return (node, *(scans(node.path.scan) if node.path else ()))
    return tuple(s for part in below(node) for s in scans(part))


def whole_rows_of(node: Relation | PublicRelation) -> Scan | None:
    """The declared table whose rows these are, each once at most; None where rows may be repeated or put together."""
    while not isinstance(node, Scan):
        match node:
            case Filter() | PerUnit() | Window() | Distinct():
                node = node.source
            case Join() if node.how in ("semi", "anti") or (node.one and node.how in ("inner", "left")):
                node = node.left
            case _:
                return None
    return node


def leaves(node: Relation | PublicRelation) -> tuple[PublicRelation, ...]:
    """The public relations below."""
    if isinstance(node, PublicRelation):
        return (node,)
    return tuple(leaf for part in below(node) for leaf in leaves(part))


def units_of(node: Relation | PublicRelation) -> frozenset[str]:
    """The columns that hold the owner's name, whichever side of a join they come from."""
    match node:
        case Scan(unit=None) | PublicRelation():
            # With a key path, the columns that lead to the owner are not visible.
            return frozenset()
        case Scan(place=place, unit=unit):
            return frozenset({f"{place}.{unit}"})
        case Filter(source=source) | Window(source=source):
            return units_of(source)
        case Join(left=left, right=right, how=how, by_unit=by_unit):
            both = units_of(left) | units_of(right) if by_unit and how in ("inner",) else units_of(left)
            return frozenset() if how == "full" else both
        case PerUnit(source=source, keys=keys) | Distinct(source=source, columns=keys):
            owners = units_of(source)
            return frozenset(name for name, e in keys if isinstance(e, Column) and e.name in owners)
        case Combine(left=left, right=right, columns=columns, of_left=of_left, of_right=of_right):
            a, b = units_of(left), units_of(right)
            return frozenset(
                c.name
                for c, x, y in zip(columns, of_left, of_right, strict=True)
                if isinstance(x, Column) and x.name in a and isinstance(y, Column) and y.name in b
            )


def single(node: Relation | PublicRelation) -> bool:
    """Whether every owner has at most one row, whatever the data."""
    match node:
        case Scan(unit=None, path=None):
            return True
        case Filter(source=source) | Window(source=source) | Distinct(source=source):
            return single(source)
        case Join(left=left, how=("semi" | "anti")):
            return single(left)
        case Join(left=left, right=right, how=how, on=on, by_unit=True):
            # FULL keeps both sides apart where a further condition is false: two rows of one owner.
            return single(left) and single(right) and (how != "full" or on is None)
        case Join(left=left, one=one):
            return one and single(left)
        case PerUnit(source=source, keys=keys):
            owners = units_of(source)
            return single(source) or all(isinstance(e, Column) and e.name in owners for _, e in keys)
        case Combine(op=("INTERSECT" | "EXCEPT" | "INTERSECT ALL" | "EXCEPT ALL"), left=left):
            return single(left)
    return False


def limits_of(node: Relation | PublicRelation) -> Limits:
    """How much one owner may contribute, as declared (`docs/concepts/bounding.md`); a question may override it."""
    match node:
        case Scan(limits=limits):
            return limits
        case Join(left=left, right=right, by_unit=True, how=("inner" | "left" | "full")):
            a, b = limits_of(left), limits_of(right)
            rows, total = _larger(a.rows, b.rows), _larger(a.total, b.total)
            if node.how == "full" and a.rows is not None and b.rows is not None:
                rows = a.rows + b.rows  # where no row of the other side is met, both stand alone
            return _with_autos(Limits(_larger(a.groups, b.groups), rows, total, _both(a, b)), a, b)
        case Join(left=left):
            return limits_of(left)
        case PerUnit(source=source) if single(node):
            of_source = limits_of(source)
            return replace(of_source, rows=1, total=None, auto=tuple(n for n in of_source.auto if n != "rows"))
        case Combine(left=left, right=right, op=op):
            a, b = limits_of(left), limits_of(right)
            if op not in ("UNION ALL", "UNION"):
                return a
            rows = a.rows + b.rows if a.rows is not None and b.rows is not None else None
            total = a.total + b.total if a.total is not None and b.total is not None else None
            return _with_autos(Limits(_larger(a.groups, b.groups), rows, total, _both(a, b)), a, b)
        case Filter(source=source) | Window(source=source) | Distinct(source=source) | PerUnit(source=source):
            return limits_of(source)
    return Limits()


def _with_autos(made: Limits, a: Limits, b: Limits) -> Limits:
    """What is found for one side is found for both."""
    auto = tuple(dict.fromkeys((*a.auto, *b.auto)))
    return replace(made, auto=auto, **dict.fromkeys(auto))


def _larger(a: int | None, b: int | None) -> int | None:
    return max((x for x in (a, b) if x is not None), default=None)


def _both(a: Limits, b: Limits) -> Bounding | None:
    """Norms are clipped where both tables say so."""
    return a.bounding if a.bounding == b.bounding else "groups"


def declared_in(node: Relation | PublicRelation, read: frozenset[str]) -> Known:
    """What is known of the values of the columns named in `read`, from declarations, public data and conditions."""
    declarations: dict[str, Declaration] = {}
    told = Known({})
    match node:
        case Scan(place=place, columns=columns, declared=declared):
            own = (name for name in sorted(read) if name.startswith(f"{place}."))
            shorts = {name: short for name in own if (short := name[len(place) + 1 :]) in declared}
            declarations = {name: as_held(declared[short], columns[short]) for name, short in shorts.items()}
        case PublicRelation(place=place, columns=columns, values=values):
            for name in columns:
                if f"{place}.{name}" in read:
                    values_of = values(name)
                    if values_of is not None:
                        declarations[f"{place}.{name}"] = OneOf(values_of)  # type: ignore[arg-type]
        case Join():
            told = _of_join(node, read)
            declarations = told
        case PerUnit(source=source, keys=keys, aggregates=aggregates):
            below_it = declared_in(source, read | _read_by(node))
            declarations = {name: _of(e, below_it) for name, e in keys}
            most = _most_rows(limits_of(source))
            declarations |= {name: _of_inner(inner, below_it, most) for name, inner in aggregates}
            picked = [(name, i.argument) for name, i in aggregates if i.function in ("MIN", "MAX") and i.argument]
            told = _carried([*keys, *picked], below_it)
        case Distinct(source=source, columns=columns_):
            below_it = declared_in(source, read | _read_by(node))
            declarations = {name: _of(e, below_it) for name, e in columns_}
            told = _carried(columns_, below_it)
        case Window(source=source, columns=calls):
            below_it = declared_in(source, read | _read_by(node))
            most = _most_rows(limits_of(source))
            declarations = below_it | {name: _of_window(call, below_it, most) for name, call in calls}
            picked = [(name, c.arguments[0]) for name, c in calls if c.function in _PICKING and len(c.arguments) < 3]
            told = Known({}, below_it.columns | _carried(picked, below_it).columns, below_it.expressions)
        case Filter(source=source, condition=condition):
            told = declared_in(source, read)
            declarations, told = told, told.also(implied(condition, told))
        case Combine(left=left, right=right, columns=columns_of_result, of_left=of_left, of_right=of_right):
            more = read | _read_by(node)
            a, b = declared_in(left, more), declared_in(right, more)
            for c, x, y in zip(columns_of_result, of_left, of_right, strict=True):
                declarations[c.name] = _either(_of(x, a), _of(y, b), c.kind)
    return Known({name: what for name, what in declarations.items() if what != UNKNOWN}, told.columns, told.expressions)


def as_held(what: Declaration, kind: Kind) -> Declaration:
    """What is declared of a column, dates and times in place of their ISO texts."""
    if isinstance(what, OneOf) and kind in TEMPORAL and any(isinstance(v, str) for v in what.values):
        with contextlib.suppress(PolicyError):  # what the column can never hold is told where it is asked for
            return replace(what, values=tuple(fitted(v, kind, "") for v in what.values))
    return what


_PICKING: Final = ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "MIN", "MAX")
"""Window functions that give one of their argument's values, or NULL."""


def _of_join(join: Join, read: frozenset[str]) -> Known:
    """What is known of both sides. An expression of a side that a join fills with NULL may be anything."""
    a, b = declared_in(join.left, read), declared_in(join.right, read)
    if join.how == "full":
        a = Known(_nullable(a), a.columns)
    if join.how in ("left", "full"):
        b = Known(_nullable(b), b.columns)
    both = Known({**a, **b}, a.columns | b.columns, a.expressions | b.expressions)
    return both.also(implied(join.on, both)) if join.how == "inner" and join.on is not None else both


def _carried(named: Iterable[Named], below: Known) -> Known:
    """What conditions imply of columns that an expression gives its values to."""
    return Known({}, {name: ends for name, e in named if (ends := below.told(e)) is not None})


UNKNOWN = Ranged(None, None)


def _nullable(declared: Mapping[str, Declaration]) -> dict[str, Declaration]:
    """What is known of columns that an outer join may fill with NULL."""
    return {name: _with_null(what) for name, what in declared.items()}


def _with_null(what: Declaration) -> Declaration:
    match what:
        case Between() | Edges():
            return replace(what, nullable=True)
        case OneOf(values=values) if None not in values:
            return replace(what, values=(*values, None))
    return what


def _of(node: Expression, declared: Mapping[str, Declaration]) -> Declaration:
    """What is known of an expression's values."""
    if isinstance(node, Column):
        return declared.get(node.name, UNKNOWN)
    ends = span(node, declared)
    return UNKNOWN if ends is None else Ranged(*ends)


def _most_rows(limits: Limits) -> Fraction | None:
    """With how many rows one unit counts; None where it is not declared."""
    if limits.total is not None or limits.groups is None or limits.rows is None:
        return None if limits.total is None else Fraction(limits.total)
    return Fraction(limits.groups * limits.rows)


def _of_inner(inner: Inner, declared: Mapping[str, Declaration], most: Fraction | None) -> Declaration:
    ends = span(inner.argument, declared) if inner.argument is not None else None
    match inner.function:
        case "COUNT" | "COUNT_ROWS" | "COUNT_DISTINCT":
            return Counted(Fraction(0), most)
        case "SUM" if ends is not None:
            low = Fraction(0) if ends[0] is not None and ends[0] >= 0 else None
            high = Fraction(0) if ends[1] is not None and ends[1] <= 0 else None
            return Ranged(low, high)
        case "MIN" | "MAX" if isinstance(inner.argument, Column):
            return _with_null(declared.get(inner.argument.name, UNKNOWN))
        case "MIN" | "MAX" | "AVG" | "MEDIAN" if ends is not None:
            return Ranged(*ends)
    return UNKNOWN


def _of_window(call: WindowCall, declared: Mapping[str, Declaration], most: Fraction | None) -> Declaration:
    match call.function:
        case "ROW_NUMBER" | "RANK" | "DENSE_RANK" | "COUNT" | "COUNT_ROWS" as function:
            return Counted(Fraction(0 if function.startswith("COUNT") else 1), most)
        case "LAG" | "LEAD" if len(call.arguments) < 3:
            return _with_null(_of(call.arguments[0], declared))
        case "FIRST_VALUE" | "LAST_VALUE" | "MIN" | "MAX":
            return _with_null(_of(call.arguments[0], declared))
        case "AVG":
            ends = span(call.arguments[0], declared)
            return UNKNOWN if ends is None else Ranged(*ends)
    return UNKNOWN


def _either(a: Declaration, b: Declaration, kind: Kind) -> Declaration:
    if a == b:
        return a
    if isinstance(a, OneOf) and isinstance(b, OneOf):
        return a.joined(b)
    x, y = (span(Column("x", kind), {"x": w}) or (None, None) for w in (a, b))
    low = None if x[0] is None or y[0] is None else min(x[0], y[0])
    high = None if x[1] is None or y[1] is None else max(x[1], y[1])
    return Ranged(low, high)


def expressions_in(node: Relation | PublicRelation) -> Iterator[Expression]:
    """The expressions of one node itself."""
    match node:
        case Filter(condition=condition):
            yield condition
        case Join(on=on):
            if on is not None:
                yield on
        case PerUnit(keys=keys, aggregates=aggregates):
            yield from (e for _, e in keys)
            yield from (inner.argument for _, inner in aggregates if inner.argument is not None)
        case Window(columns=columns):
            for _, call in columns:
                yield from (*call.arguments, *call.partition, *(e for e, _, _ in call.order))
        case Distinct(columns=columns_):
            yield from (e for _, e in columns_)
        case Combine(of_left=of_left, of_right=of_right):
            yield from (*of_left, *of_right)


def _read_by(node: Relation | PublicRelation) -> frozenset[str]:
    return frozenset[str]().union(*map(columns_of, expressions_in(node)))


def names_read(node: Relation | PublicRelation) -> frozenset[str]:
    """The names of all columns that a relation reads anywhere inside."""
    return _read_by(node).union(*map(names_read, below(node)))


def canonical_relation(node: Relation | PublicRelation) -> object:
    """A JSON-ready form: two relations with one form are the same rows of the same declared tables."""
    match node:
        case Scan():
            path = node.path
            through = None if path is None else [path.column, path.key, canonical_relation(path.scan)]
            return ["Scan", node.place, node.table, node.unit, through]
        case PublicRelation():
            return ["PublicRelation", node.place, node.sql]
    parts: list[object] = [type(node).__name__]
    for part in fields(node):
        value = getattr(node, part.name)
        parts.append(_canonical(value))
    return parts


def _canonical(value: object) -> object:
    if isinstance(value, (*_RELATIONS, PublicRelation)):
        return canonical_relation(value)
    if isinstance(value, tuple):
        return [_canonical(v) for v in value]
    if isinstance(value, Inner | WindowCall):
        return [_canonical(getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, Kind):
        return value.value
    if value is None or isinstance(value, str | bool | int):
        return value
    return canonical(value)  # type: ignore[arg-type]
