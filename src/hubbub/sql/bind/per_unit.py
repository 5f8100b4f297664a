"""GROUP BY the unit, and perhaps more: one row for each owner and key."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import PrivateRelation
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.from_ import Rows
from hubbub.sql.bind.group_by import group_term, has_aggregate, no_order, same_without_distinct
from hubbub.sql.bind.kinds import wrong_kind
from hubbub.sql.bind.projection import distinct
from hubbub.sql.bind.window import column_kind
from hubbub.sql.text.arguments import unread
from hubbub.sql.text.locate import in_place, in_words, written
from hubbub.tables.expressions import Case, Column, Expression, Literal
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.relations import (
    Filter,
    Inner,
    PerUnit,
    Relation,
    units_of,
)

__all__ = ["grouped_by_unit"]


_INNER: dict[type[exp.Expr], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Min: "MIN",
    exp.Max: "MAX",
    exp.LogicalAnd: "ALL",
    exp.LogicalOr: "ANY",
    exp.Median: "MEDIAN",
    exp.CountIf: "COUNT",
}


@dataclass
class _Groups:
    """The groups of one unit's rows while a SELECT over them is read: keys, and the aggregates that are met."""

    rows: Rows
    place: str
    keys: list[tuple[str, Expression]] = field(default_factory=list)
    inner: list[tuple[str, Inner]] = field(default_factory=list)

    def add_key(self, term: exp.Expr, owners: frozenset[str]) -> None:
        # A unit's own column may be of a type that no expression can use.
        own = isinstance(term, exp.Column) and _is_owner(self.rows, term, owners)
        plain = self.rows.expressions()
        read = self.rows.scope.find(term) if own and isinstance(term, exp.Column) else plain.read(term)
        if all(read != e for _, e in self.keys):
            self.keys.append((f"{self.place}.k{len(self.keys)}", read))

    def known(self, at: exp.Expr) -> Expression | None:
        """The key that a piece of SQL is, word for word or not."""
        if isinstance(at, exp.Literal) or has_aggregate(at) or list(at.find_all(exp.Query)):
            return None
        if not isinstance(at, exp.Column) and all(isinstance(e, Column) for _, e in self.keys):
            return None
        if any(not self.rows.scope.knows(c) for c in at.find_all(exp.Column)):
            return None
        read = self.rows.expressions().read(at)
        return next((Column(name, column_kind(e), in_words(at)) for name, e in self.keys if e == read), None)

    def column(self, at: exp.Column) -> Expression:
        raise self.rows.reader.refuse(
            f"the column {at.name!r} is neither in GROUP BY nor inside an aggregate: write MAX({at.sql()}).",
            at,
            remedy=Rewrite(f"MAX({at.sql()})"),
        )

    def aggregate(self, at: exp.Expr) -> Expression:
        aggregate = _inner(self.rows, at)
        for name, one in self.inner:
            if one == aggregate:
                return Column(name, aggregate.kind, in_words(at))
        name = f"{self.place}.{len(self.inner)}"
        self.inner.append((name, aggregate))
        return Column(name, aggregate.kind, in_words(at))


def grouped_by_unit(rows: Rows, node: exp.Select) -> PrivateRelation | None:
    """GROUP BY the unit, and perhaps more: one row per owner and key. None where the unit is not among the keys."""
    reader, group = rows.reader, node.args.get("group")
    if group is None or rows.kept is not None:
        return None
    terms = [group_term(rows, term, node) for term in group.expressions]
    if group.args.get("all"):
        terms = [i.unalias() for i in node.expressions if not has_aggregate(i)]
    owners = units_of(rows.relation)
    if not any(isinstance(t, exp.Column) and _is_owner(rows, t, owners) for t in terms):
        return None
    for name in ("rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(name):
            raise reader.refuse("ROLLUP, CUBE and GROUPING SETS are not for groups by the unit.", group)
    no_order(reader, node)
    groups = _Groups(rows, reader.place("u"))
    for term in terms:
        groups.add_key(term, owners)
    above = ExpressionReader(reader.text, groups.column, groups.aggregate, groups.known, moments=reader.moments)
    columns: dict[str, Expression] = {}
    for item in node.expressions:
        if isinstance(item, exp.Star):
            keys = in_place(", ".join(term.sql("duckdb") for term in terms), reader.text, item)
            raise reader.refuse(f"'*' beside GROUP BY: name the columns: {keys.example}.", item, remedy=keys)
        columns[item.alias_or_name or f"column{len(columns)}"] = above.read(item.unalias())
    condition = _having(groups, node, columns)
    for name in ("limit", "offset", "qualify"):
        if node.args.get(name) is not None:
            raise reader.refuse(f"{name.upper()} is not supported in a group by the unit.", node.args[name], word=name)
    relation: Relation = PerUnit(rows.relation, tuple(groups.keys), tuple(groups.inner))
    if condition is not None:
        relation = Filter(relation, condition)
    if node.args.get("distinct") is not None:
        relation, columns = distinct(reader, relation, columns)
    return PrivateRelation(relation, columns)


def _having(groups: _Groups, node: exp.Select, columns: dict[str, Expression]) -> Expression | None:
    """The condition of HAVING, which may use the names that SELECT gives."""
    having = node.args.get("having")
    if having is None:
        return None
    named = {n.lower(): e for n, e in columns.items()}

    def column_or_name(at: exp.Column) -> Expression:
        return named[at.name.lower()] if not at.table and at.name.lower() in named else groups.column(at)

    reader = ExpressionReader(
        groups.rows.reader.text,
        column_or_name,
        groups.aggregate,
        groups.known,
        moments=groups.rows.reader.moments,
    )
    return reader.condition(having.this, "HAVING")


def _is_owner(rows: Rows, node: exp.Column, owners: frozenset[str]) -> bool:
    if not rows.scope.knows(node):
        return False
    read = rows.scope.find(node)
    return isinstance(read, Column) and read.name in owners


def _inner(rows: Rows, node: exp.Expr) -> Inner:
    reader, read = rows.reader, rows.expressions()
    condition = None
    if isinstance(node, exp.Filter):
        condition = read.condition(node.expression.this, "FILTER")
        node = node.this
    if type(node) not in _INNER:
        raise reader.refuse(
            f"{written(node, reader.text)} is not supported for the rows of one unit; there are COUNT, SUM, AVG, MIN, "
            "MAX, MEDIAN, BOOL_AND and BOOL_OR.",
            node,
            remedy=Rewrite("MEDIAN"),
        )
    function = _INNER[type(node)]
    argument_node = node.this
    if isinstance(node, exp.CountIf):
        return Inner("COUNT", _where(read.condition(argument_node, "COUNT_IF"), Literal(1), condition), Kind.INTEGER)
    if isinstance(argument_node, exp.Star):
        if condition is not None:
            return Inner("COUNT", _where(condition, Literal(1), None), Kind.INTEGER)
        return Inner("COUNT_ROWS", None, Kind.INTEGER)
    if isinstance(argument_node, exp.Distinct):
        if len(argument_node.expressions) != 1 or function != "COUNT":
            if function in ("MIN", "MAX", "ALL", "ANY") and len(argument_node.expressions) == 1:
                raise same_without_distinct(reader, node, written(node, reader.text))
            way = Rewrite("CONCAT(a, '-', b)" if function == "COUNT" else "FROM (SELECT DISTINCT id, x FROM t)")
            raise reader.refuse(f"DISTINCT is supported in COUNT of one column: {way.example}.", node, remedy=way)
        function, argument_node = "COUNT_DISTINCT", argument_node.expressions[0]
    modifier = unread(node)
    if modifier is not None:
        raise reader.refuse(f"{modifier} is not supported here.", node)
    argument = read.read(argument_node)
    if function in ("SUM", "AVG", "MEDIAN") and argument.kind not in (*NUMERIC, Kind.NULL):
        says, way = wrong_kind(f"{function} needs a number", argument.kind, NUMERIC)
        raise reader.refuse(says, node, remedy=way)
    if function in ("ALL", "ANY") and argument.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise reader.refuse("BOOL_AND and BOOL_OR need conditions, such as x > 0.", node, remedy=Rewrite("x > 0"))
    if condition is not None:
        argument = _where(condition, argument, None)
    kind = {
        "COUNT": Kind.INTEGER,
        "COUNT_DISTINCT": Kind.INTEGER,
        "AVG": Kind.NUMBER,
        "MEDIAN": Kind.NUMBER,
        "ALL": Kind.BOOLEAN,
        "ANY": Kind.BOOLEAN,
    }.get(function, column_kind(argument))
    return Inner(function, argument, kind)  # type: ignore[arg-type]


def _where(condition: Expression, value: Expression, also: Expression | None) -> Expression:
    kept: Expression = Case((condition,), (value,), Literal(None))
    return kept if also is None else Case((also,), (kept,), Literal(None))
