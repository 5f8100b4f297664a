"""A relation as SQL: one stage for each node, every stage with the owner in the column `unit`.

A stage shows the columns that somebody above it reads, under names of our own. Rows without an owner are dropped where
they are scanned, so no stage ever sees a NULL owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from fractions import Fraction
from typing import Final

from hubbub.errors import PolicyError
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.expression import Together, renamed
from hubbub.sql.emit.place import Place
from hubbub.tables.expressions import Column, Expression, Literal, whole
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.relations import (
    Combine,
    Distinct,
    Filter,
    Inner,
    Join,
    PerUnit,
    PublicRelation,
    Relation,
    Scan,
    Window,
    WindowCall,
    declared_in,
    names_read,
    units_of,
)
from hubbub.tables.repeats import repeated
from hubbub.tables.spans import span

__all__ = ["Stage", "relation_stages"]

_PLACE: Final = "placed"
"""The column in which rows have their place among those of their unit."""

Stage = tuple[str, str]


def relation_stages(
    relation: Relation,
    places: Mapping[str, Place],
    names: Mapping[str, str],
    dialect: Dialect,
    *,
    with_unit: bool,
    cut: Mapping[str, int] | None = None,
) -> Iterator[Stage]:
    """The stages of a relation, the last one its rows. names: our own name of every column that is read. cut: of which
    columns of texts no more than so many characters are (`hubbub.tables.repeats.cuts`).
    """
    yield from _Writer(places, names, dialect, with_unit, cut or {}, short_units=repeated(relation)).stages(relation)


class _Writer:
    def __init__(
        self,
        places: Mapping[str, Place],
        names: Mapping[str, str],
        dialect: Dialect,
        with_unit: bool,
        cut: Mapping[str, int],
        keyed: Set[str] = frozenset(),
        *,
        short_units: bool = False,
    ) -> None:
        self.places, self.names, self.with_unit, self.cut = places, names, with_unit, cut
        self.short_units = short_units  # public rows repeat each row, its unit's name with it
        self.keyed = keyed  # columns that lead to a unit, and are told apart as units are
        self.dialect = dialect
        self.expressions = Together(dialect)
        self.count = 0

    def sql(self, node: Expression) -> str:
        return self.expressions.sql(renamed(node, self.names))

    def typed(self, node: Expression, kind: Kind) -> str:
        """An expression as a column of a kind."""
        sql = self.sql(node)
        return sql if node.kind is kind is not Kind.NULL else self.dialect.column(sql, node.kind, kind)

    def name(self) -> str:
        self.count += 1
        return f"r{self.count}"

    def columns(self, node: Relation | PublicRelation) -> list[str]:
        """Our names of the columns that a relation's stage has."""
        match node:
            case Scan(place=place, columns=columns) | PublicRelation(place=place, columns=columns):
                names = [f"{place}.{c}" for c in columns]
            case Filter(source=source):
                return self.columns(source)
            case Window(source=source, columns=calls):
                return [*self.columns(source), *self._known([n for n, _ in calls])]
            case Join(left=left, how=("semi" | "anti")):
                return self.columns(left)
            case Join(left=left, right=right):
                return [*self.columns(left), *self.columns(right)]
            case PerUnit(keys=keys, aggregates=aggregates):
                names = [n for n, _ in (*keys, *aggregates)]
            case Distinct(columns=named):
                names = [n for n, _ in named]
            case Combine(columns=result):
                names = [c.name for c in result]
        return self._known(names)

    def _known(self, names: list[str]) -> list[str]:
        return [self.names[n] for n in names if n in self.names]

    def stages(self, node: Relation | PublicRelation) -> Iterator[Stage]:
        match node:
            case Scan():
                yield from self._scan(node)
            case PublicRelation():
                shown = [
                    f"{self._short(f'{node.place}.{c}', self._public(node, c, i))} AS {self.names[f'{node.place}.{c}']}"
                    for i, c in enumerate(node.columns)
                    if f"{node.place}.{c}" in self.names
                ]
                yield self.name(), f"  SELECT {', '.join(shown) or '1 AS one'}\n  FROM {node.place}"
            case Filter(source=source, condition=condition):
                yield from self._one(source, "  SELECT *", f"\n  WHERE coalesce({self.sql(condition)}, FALSE)")
            case Join():
                yield from self._join(node)
            case PerUnit():
                yield from self._per_unit(node)
            case Window(source=source, columns=calls):
                yield from self._window(source, calls)
            case Distinct(source=source, columns=named):
                shown = [f"{self.typed(e, _kind(e))} AS {self.names[n]}" for n, e in named if n in self.names]
                # A column that nobody reads still tells rows apart.
                shown += [f"{self.typed(e, _kind(e))} AS z{i}" for i, (n, e) in enumerate(named) if n not in self.names]
                # A row that is a unit differs from every other: two people's equal rows stay two.
                word = "SELECT DISTINCT" if self.with_unit else "SELECT"
                yield from self._one(source, f"  {word} {', '.join([*self._owner(), *shown]) or '1 AS one'}")
            case Combine():
                yield from self._combine(node)

    def _owner(self, place: str = "") -> list[str]:
        return [f"{place}unit AS unit" if place else "unit"] if self.with_unit else []

    def _one(self, source: Relation, select: str, rest: str = "") -> Iterator[Stage]:
        below = list(self.stages(source))
        yield from below
        yield self.name(), f"{select}\n  FROM {below[-1][0]}{rest}"

    def _public(self, leaf: PublicRelation, column: str, place: int) -> str:
        """A public text is cut like a private one: what a row makes of it is for that row's owner alone."""
        sql = self.dialect.leaf_column(column, place)
        return self.dialect.cut(self.dialect.column_text(sql)) if leaf.columns[column] is Kind.TEXT else sql

    def _short(self, name: str, sql: str) -> str:
        """A column of a table, of texts no more than is read of them."""
        if name not in self.cut:
            return sql
        return self.dialect.tried(self.dialect.call("LEFT", [sql, str(self.cut[name])], [Kind.TEXT, Kind.INTEGER]))

    def _column(self, scan: Scan, column: str) -> str:
        """A column of a table as it is read here."""
        name, place = f"{scan.place}.{column}", self.places[scan.table]
        return place.key(column)[0] if name in self.keyed else self._short(name, place.columns[column])

    def _scan(self, scan: Scan) -> Iterator[Stage]:
        place = self.places[scan.table]
        read = [c for c in scan.columns if f"{scan.place}.{c}" in self.names]
        shown = [f"{self._column(scan, c)} AS {self.names[f'{scan.place}.{c}']}" for c in read]
        if scan.path is not None:
            yield from self._scan_by_path(scan, shown)
            return
        if not self.with_unit:
            yield self.name(), f"  SELECT {', '.join(shown) or '1 AS one'}\n  FROM {place.relation}"
            return
        unit = place.unit if place.unit is not None else self.dialect.row_number()
        if self.short_units and scan.unit is not None:
            unit = self.dialect.unit_name(unit, place.key(scan.unit)[1])
        body = f"  SELECT {', '.join([f'{unit} AS unit', *shown])}\n  FROM {place.relation}"
        name = self.name()
        if place.unit is not None:
            body += f"\n  WHERE {unit} IS NOT NULL"
        yield name, body

    def _scan_by_path(self, scan: Scan, shown: list[str]) -> Iterator[Stage]:
        """Rows beside the owner that their key leads to: an inner join of base tables.

        Two keys that the sources tell apart are two: as numbers or cut texts they might be one, and a row of one unit
        would be another's too.

        Raises PolicyError where the two columns are of types that are not told apart alike.
        """
        assert scan.path is not None
        path, place = scan.path, self.places[scan.table]
        key = f"{path.scan.place}.{path.key}"
        (own_key, own_type), (_, type_there) = place.key(path.column), self.places[path.scan.table].key(path.key)
        if own_type != type_there:
            raise PolicyError(
                f"the unit of {scan.table!r} is reached by {path.column!r}, of the type {own_type}, and "
                f"{path.scan.table}.{path.key}, of the type {type_there}: several keys could become one. Give both "
                "columns one type. Nothing was charged."
            )
        writer = _Writer(self.places, {key: "pathkey"}, self.dialect, with_unit=True, cut={}, keyed={key})
        writer.short_units = self.short_units
        writer.count = self.count
        below = list(writer.stages(path.scan))
        self.count = writer.count
        yield from below
        owners = self.name()
        # Each owner once, or the rows of one person would be as many as those with a key times those with it there.
        yield owners, f"  SELECT DISTINCT unit, pathkey\n  FROM {below[-1][0]}"
        own = self.name()
        yield own, f"  SELECT {', '.join([f'{own_key} AS ownkey', *shown])}\n  FROM {place.relation}"
        names = self._known([f"{scan.place}.{c}" for c in scan.columns])
        columns = ", ".join(["p.unit AS unit", *(f"o.{n} AS {n}" for n in names)])
        yield self.name(), f"  SELECT {columns}\n  FROM {own} AS o JOIN {owners} AS p ON o.ownkey = p.pathkey"

    def _join(self, join: Join) -> Iterator[Stage]:
        left, right = list(self.stages(join.left)), list(self.stages(join.right))
        yield from left
        yield from right
        terms = ["a.unit = b.unit"] if join.by_unit else []
        terms += [self.sql(join.on)] if join.on is not None else []
        on = " AND ".join(terms) or "TRUE"
        if join.how in ("semi", "anti"):
            yield self.name(), self.dialect.semi("a.*", left[-1][0], right[-1][0], on, join.how == "anti")
            return
        owner = ["coalesce(a.unit, b.unit) AS unit" if join.how == "full" else "a.unit AS unit"]
        columns = [f"a.{c} AS {c}" for c in self.columns(join.left)] + [
            f"b.{c} AS {c}" for c in self.columns(join.right)
        ]
        shown = ", ".join([*(owner if self.with_unit else []), *columns]) or "1 AS one"
        sides = left[-1][0], right[-1][0]
        if join.how == "full" and join.on is not None and not self.dialect.full_joins:
            yield (
                self.name(),
                f"  SELECT {shown}\n  FROM {sides[0]} AS a LEFT JOIN {sides[1]} AS b ON {on}\n"
                + (self._right_alone(join, sides, on)),
            )
            return
        word = {"inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN"}[join.how]
        yield self.name(), f"  SELECT {shown}\n  FROM {sides[0]} AS a {word} {sides[1]} AS b ON {on}"

    def _right_alone(self, join: Join, sides: tuple[str, str], on: str) -> str:
        """What a FULL JOIN has beyond a LEFT JOIN: the rows on the right that meet none."""
        shown = ["b.unit AS unit", *(f"NULL AS {c}" for c in self.columns(join.left))]
        shown += [f"b.{c} AS {c}" for c in self.columns(join.right)]
        left, right = sides
        return (
            f"  UNION ALL\n  SELECT {', '.join(shown)}\n  FROM {right} AS b\n"
            f"  WHERE NOT EXISTS (SELECT 1 FROM {left} AS a WHERE {on})"
        )

    def _per_unit(self, node: PerUnit) -> Iterator[Stage]:
        below = list(self.stages(node.source))
        yield from below
        declared = declared_in(node.source, names_read(node) | names_read(node.source))
        owners = units_of(node.source)
        # The owner's own column is the same in all of its rows, and may be of a type that no expression can use.
        own = {n for n, e in node.keys if isinstance(e, Column) and e.name in owners}
        keys = [(n, e, self.sql(e) if n in own else self.typed(e, _kind(e))) for n, e in node.keys]
        shown = [
            f"{self.dialect.own(k, e.kind) if n in own else k} AS {self.names[n]}"
            for n, e, k in keys
            if n in self.names
        ]
        # A constant tells no rows apart, and a number would be read as the place of a column.
        groups = [k for n, e, k in keys if n not in own and not isinstance(e, Literal)]
        for name, inner in node.aggregates:
            if name in self.names:
                shown.append(f"{self._inner(inner, declared)} AS {self.names[name]}")
        columns = ", ".join(["unit", *shown])
        yield self.name(), f"  SELECT {columns}\n  FROM {below[-1][0]}\n  GROUP BY {', '.join(['unit', *groups])}"

    def _inner(self, inner: Inner, declared: Mapping[str, object]) -> str:
        """An aggregate of one owner's rows. No float is added up: sums run on a grid, or on decimals."""
        if inner.argument is None:
            return "count(*)"
        x = self.sql(inner.argument)
        match inner.function:
            case "COUNT":
                return f"count({x})"
            case "COUNT_DISTINCT":
                return f"count(DISTINCT {x})"
            case "MIN" | "MAX" | "MEDIAN":
                return self.dialect.extreme(inner.function.lower(), x, inner.kind)
            case "ALL":
                return f"bool_and({x})"
            case "ANY":
                return f"bool_or({x})"
        total = self._sum(inner.argument, x, declared)
        if inner.function == "AVG":
            return f"({self._real(inner.argument, total, declared)} / {self._count(x)})"
        return self._as_total(inner.argument, total, inner.kind, declared)

    def _count(self, x: str, over: str = "") -> str:
        """How many values there are, to divide by: as a double, NULL for none."""
        return self.dialect.double(f"nullif(count({x}){over}, 0)")

    def _exponent(self, argument: Expression, declared: Mapping[str, object]) -> int | None:
        """The exponent of the grid on which numbers within declared bounds are added up; None where there are none."""
        ends = span(argument, declared)  # type: ignore[arg-type]
        if ends is None or ends[0] is None or ends[1] is None:
            return None
        largest = max(abs(ends[0]), abs(ends[1]), Fraction(1))
        # At most 2^52 steps of a power of two within the declared range: every step is a whole number of a double. So
        # is a total of all the rows that there may be: Postgres has an error for one that is beyond all doubles, and
        # what is too large for this grid counts as NULL.
        return min(int(largest).bit_length() - 52, _COARSEST)

    def _sum(self, argument: Expression, x: str, declared: Mapping[str, object], over: str = "") -> str:
        """A sum of whole numbers: of values that are whole, of steps on a grid, or of decimals."""
        if _kind(argument) is Kind.INTEGER:
            whole_numbers = self.dialect.cast(x, argument.kind, Kind.INTEGER)
            return f"sum({self.dialect.whole_sum(whole_numbers)}){over}"
        exponent = self._exponent(argument, declared)
        if exponent is None:
            return f"sum({self.dialect.millionths(x)}){over}"
        return f"sum({self.dialect.on_grid(x, exponent)}){over}"

    def _real(self, argument: Expression, total: str, declared: Mapping[str, object]) -> str:
        """Such a sum as a double."""
        if _kind(argument) is Kind.INTEGER:
            return self.dialect.double(total)
        exponent = self._exponent(argument, declared)
        if exponent is None:
            return self.dialect.real_total(total)
        return f"({self.dialect.double(total)} * {self.dialect.real(2.0**exponent)})"

    def _as_total(self, argument: Expression, total: str, kind: Kind, declared: Mapping[str, object]) -> str:
        """Such a sum as a value of a kind."""
        if kind is Kind.NULL:
            return self.dialect.null(kind)
        if _kind(argument) is Kind.INTEGER and kind is Kind.INTEGER:
            return self.dialect.total_as(total, kind)
        real = self._real(argument, total, declared)
        return real if kind is Kind.NUMBER else self.dialect.cast(real, Kind.NUMBER, kind)

    def _window(self, source: Relation, calls: tuple[tuple[str, WindowCall], ...]) -> Iterator[Stage]:
        """Rows with what their windows say of them, by that unit's rows alone.

        Which of two rows comes first is by all that is read of them, so those that tie are alike: which of them one
        window puts first is all the same. Two windows might each put another first, as the engine comes to them in all
        people's rows; so where there are several, each row has its place once (`_placed`).
        """
        below = list(self.stages(source))
        yield from below
        stage, below_names = below[-1][0], self.columns(source)
        ties = [f"{name}{self.dialect.spelling.null_last}" for name in below_names]
        read = [(self.names[n], call) for n, call in calls if n in self.names]
        if sum(_by_place(call) for _, call in read) > 1:
            placed = self.name()
            yield placed, self._placed(stage, below_names, ties)
            stage, ties = placed, [_PLACE]
        declared = declared_in(source, names_read(source).union(self.names))
        shown = [f"{self._over(call, ties, declared)} AS {name}" for name, call in read]
        columns = ", ".join([*self._owner(), *below_names, *shown])
        yield self.name(), f"  SELECT {columns}\n  FROM {stage}"

    def _placed(self, stage: str, names: list[str], ties: list[str]) -> str:
        """Rows with their place among those of their unit."""
        over = f"OVER (PARTITION BY unit ORDER BY {', '.join(ties or ['unit'])})"
        return f"  SELECT {', '.join(['unit', *names])}, row_number() {over} AS {_PLACE}\n  FROM {stage}"

    def _over(self, call: WindowCall, ties: list[str], declared: Mapping[str, object]) -> str:
        partition = ", ".join(["unit", *map(self.sql, call.partition)])
        terms = [
            f"{self.sql(e)} {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
            for e, down, first in call.order
        ]
        by_place = _by_place(call)
        order = f" ORDER BY {', '.join([*terms, *(ties if by_place else [])])}" if terms or by_place else ""
        if not (terms or (by_place and ties)):
            order = ""
        frame = f" {call.frame}" if call.frame else ""
        over = f"OVER (PARTITION BY {partition}{order}{frame})"
        if call.function == "COUNT_ROWS":
            return f"count(*) {over}"
        arguments = [self.sql(a) for a in call.arguments]
        if call.function in ("SUM", "AVG"):
            return self._sum_over(call, arguments[0], over, declared)
        if call.function in ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "LAG", "LEAD"):
            arguments[0] = self.typed(call.arguments[0], call.kind)
            if len(arguments) > 1 and isinstance(offset := call.arguments[1], Literal):
                arguments[1] = self.dialect.constant(offset.value)  # not of 64 bits, which Postgres does not take
            if len(arguments) > 2:
                arguments[0] = self.dialect.beside(arguments[0], call.kind)
                arguments[2] = self.dialect.beside(self.typed(call.arguments[2], call.kind), call.kind)
        return f"{call.function.lower()}({', '.join(arguments)}) {over}"

    def _sum_over(self, call: WindowCall, x: str, over: str, declared: Mapping[str, object]) -> str:
        total = self._sum(call.arguments[0], x, declared, f" {over}")
        if call.function == "AVG":
            return f"({self._real(call.arguments[0], total, declared)} / {self._count(x, f' {over}')})"
        return self._as_total(call.arguments[0], total, call.kind, declared)

    def _combine(self, node: Combine) -> Iterator[Stage]:
        left, right = list(self.stages(node.left)), list(self.stages(node.right))
        yield from left
        yield from right
        sides = []
        for stage, expressions in ((left[-1][0], node.of_left), (right[-1][0], node.of_right)):
            shown = [
                f"{self.typed(e, c.kind)} AS {self.names.get(c.name, f'z{i}')}"
                for i, (c, e) in enumerate(zip(node.columns, expressions, strict=True))
            ]
            sides.append(f"  SELECT {', '.join(['unit', *shown])} FROM {stage}")
        yield self.name(), f"{sides[0]}\n  {node.op}\n{sides[1]}"


_COARSEST: Final = 1023 - 63 - 62
"""The exponent of the largest step: 2^63 rows of 2^62 steps are a double still."""


def _by_place(call: WindowCall) -> bool:
    """Whether a window tells rows apart that are equal in its own order."""
    first = call.function in ("ROW_NUMBER", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE")
    return first or call.frame.startswith("ROWS")


def _kind(node: Expression) -> Kind:
    return Kind.INTEGER if node.kind in NUMERIC and whole(node) else node.kind
