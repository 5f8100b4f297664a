"""FROM and WHERE over owned rows: which tables meet, by which rule, and which rows stay.

Conditions are taken apart at their ANDs. Owned tables are joined where a condition says that their owners are equal
(or follows the declared path to the owner); public and released relations are joined to the owned rows one row at a
time; EXISTS and IN with a sub-query become semi and anti joins, never what SQL makes of them with NULLs of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.sql.bind.clauses import check_clauses
from hubbub.sql.bind.context import Cte, PrivateRelation, PublicQuery, Reader, same_units
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.joins import all_of, items_of, joined, merge, owner_equality, split_at_and
from hubbub.sql.bind.scope import Scope, Source
from hubbub.sql.text.repairs import only_term
from hubbub.tables.expressions import Call, Case, Column, Compare, Expression, IsNull, Literal, Logic, Not, rebuild
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import (
    Filter,
    Inner,
    Join,
    PerUnit,
    PublicRelation,
    Relation,
    single,
    units_of,
)

__all__ = ["Rows", "conjuncts", "owner_correlation", "read_from"]

_EACH = Rewrite("EXISTS (SELECT 1 FROM t WHERE t.id = this.id AND t.x = this.x)")


@dataclass
class Rows:
    """The owned rows of one SELECT while it is read: the relation grows as scalar sub-queries are met.

    kept: the public relation whose keys are all answered (`public LEFT JOIN owned`), if any.
    """

    reader: Reader
    relation: Relation
    scope: Scope
    ctes: dict[str, Cte]
    kept: PublicRelation | None = None

    def expressions(self) -> ExpressionReader:
        """A reader of row expressions, sub-queries included."""
        return ExpressionReader(
            self.reader.text,
            self.scope.column,
            self._no_aggregate,
            subquery=self._subquery,
            moments=self.reader.moments,
        )

    def _no_aggregate(self, node: exp.Expr) -> Expression:
        word = "a window function" if isinstance(node, exp.Window) else "an aggregate"
        raise self.reader.refuse(
            f"{word} cannot stand here; conditions on answers go into HAVING.", node, remedy=Rewrite("HAVING")
        )

    def keep(self, condition: Expression) -> None:
        self.relation = Filter(self.relation, condition)

    # -- sub-queries in expressions -------------------------------------------------------------------------

    def _subquery(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Subquery):
            return self._scalar(node)
        if isinstance(node, exp.Exists):
            return Compare(">", Call("COALESCE", (self._count_of(node.this, node), Literal(0))), Literal(0))
        return self._among(node)

    def _scalar(self, node: exp.Subquery) -> Expression:
        """A scalar: one value for all rows (its own release, or public), or one of the row's owner."""
        query = node.this
        correlated = isinstance(query, exp.Select) and owner_correlation(self, query)
        if correlated:
            return self._of_owner(query, node)
        relation = self.reader.resolve(query.copy(), self.ctes)
        if isinstance(relation, PrivateRelation):
            raise self.reader.refuse(
                "a scalar sub-query over people's rows has to be an aggregate, such as SELECT AVG(x) FROM t.",
                node,
                remedy=Rewrite("SELECT AVG(x) FROM t"),
            )
        if len(relation.tree.selects) != 1:
            ways = only_term(self.reader.text, query, node.alias_or_name)
            hint = " or ".join(way.example for way in ways)
            raise self.reader.refuse(f"a scalar sub-query has one column{hint and f': {hint}'}.", node, remedy=ways)
        leaf = self.reader.leaf(exp.select(exp.alias_(exp.Subquery(this=relation.tree), "value")), node)
        self.relation = Join(self.relation, leaf, "left", None, by_unit=False, one=True)
        name = next(iter(leaf.columns))
        if leaf.columns[name] is Kind.OTHER:
            raise self.reader.refuse("this sub-query gives a value of a type that questions cannot use.", node)
        return leaf.column(name)

    def _of_owner(self, query: exp.Select, node: exp.Expr) -> Expression:
        """(SELECT AVG(x) FROM t WHERE t.id = outer.id): an aggregate of the same owner's rows."""
        inner, owner = _without_owner(self, query)
        if query.args.get("having") is not None:
            raise self.reader.refuse(
                "HAVING is not supported in a sub-query of the same owner's rows; write CASE WHEN COUNT(*) > 2 THEN "
                "MAX(x) END.",
                query.args["having"],
                word="HAVING",
                remedy=Rewrite("CASE WHEN COUNT(*) > 2 THEN MAX(x) END"),
            )
        relation = self.reader.resolve(_per_owner(self.reader, inner, owner, node), self.ctes)
        # Without an aggregate it has a row for each of the owner's, and none, so NULL, for an owner without any.
        plain = not any(item.find(exp.AggFunc) for item in inner.expressions)
        if plain or not isinstance(relation, PrivateRelation) or not _one_value(relation):
            raise self.reader.refuse(
                "a sub-query of the same owner's rows gives one aggregate, such as "
                "(SELECT MAX(x) FROM t WHERE t.id = this.id).",
                node,
                remedy=Rewrite("(SELECT MAX(x) FROM t WHERE t.id = this.id)"),
            )
        same_units(self.reader, self.relation, relation.relation, node)
        self.relation = Join(self.relation, relation.relation, "left", None, by_unit=True)
        return _of_no_rows(next(iter(relation.columns.values())), relation.relation)

    def _count_of(self, query: exp.Expr, node: exp.Expr) -> Expression:
        """How many rows of a correlated sub-query the row's owner has."""
        inner, owner = self._of_same_owner(query, node)
        return self._met(inner, owner, [exp.Count(this=exp.Star(), big_int=True)], node)[0]

    def _among(self, node: exp.Expr) -> Expression:
        """x IN (SELECT y FROM t WHERE t.id = this.id) inside an expression, where it is NULL as in SQL: x is read among
        the rows around, and met with the different y of its owner.
        """
        query = node.args["query"]
        query = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(query, exp.Select) or len(query.expressions) != 1:
            raise self._one_column(query, node.this, node)
        by_unit = self._of_units(node.this, query)
        if by_unit is not None:
            return Compare(">", Call("COALESCE", (self._count_of(by_unit, node), Literal(0))), Literal(0))
        value, (inner, owner) = self.expressions().read(node.this), self._of_same_owner(query, node)
        item = inner.expressions[0].unalias()
        every = exp.Count(this=exp.Star(), big_int=True)
        rows, known = self._met(inner, owner, [every, exp.Count(this=item, big_int=True)], node)
        (equal,) = self._met(inner, owner, [every], node, (item, value))
        none = Literal(0)
        some, without_null = (Call("COALESCE", (n, none)) for n in (rows, known))
        unknown = Logic("OR", (IsNull(value), Compare("<", without_null, some)))
        return Case(
            (Not(IsNull(equal)), Logic("AND", (Compare(">", some, none), unknown))),
            (Literal(True), Literal(None)),
            Literal(False),
        )

    def _of_units(self, value: exp.Expr, query: exp.Select) -> exp.Select | None:
        """`id IN (SELECT id FROM t)`, tied to the owner by that alone, as what EXISTS looks at. None if it is not."""
        item = query.expressions[0].unalias()
        if not (isinstance(value, exp.Column) and isinstance(item, exp.Column) and self.scope.knows(value)):
            return None
        read, inner = self.scope.find(value), _names_of(query)
        if not isinstance(read, Column) or read.name not in units_of(self.relation) or owner_correlation(self, query):
            return None
        (alias, _), *_ = self.scope.held(value.name, value.table)
        if alias.lower() in inner:
            return None
        name = exp.column(value.this.copy(), exp.to_identifier(alias, quoted=True))
        return query.copy().where(exp.EQ(this=item.copy(), expression=name), copy=False)

    def _of_same_owner(self, query: exp.Expr, node: exp.Expr) -> tuple[exp.Select, exp.Column]:
        """A sub-query in an expression without what ties it to the row's owner, and its own column of that."""
        if not isinstance(query, exp.Select) or not owner_correlation(self, query):
            raise self.reader.refuse(
                "inside an expression, EXISTS and IN look at the same owner's rows: WHERE t.id = this.id. On its own "
                "in WHERE, IN may also list public values.",
                node,
                remedy=Rewrite("WHERE t.id = this.id"),
            )
        _of_plain_rows(self.reader, query)
        return _without_owner(self, query)

    def _met(
        self,
        inner: exp.Select,
        owner: exp.Column,
        counts: list[exp.Count],
        node: exp.Expr,
        tied: tuple[exp.Expr, Expression] | None = None,
    ) -> tuple[Expression, ...]:
        """Counts of a sub-query's rows that have the row's owner; NULL where there are none. tied: a term of it that
        equals a value of the row too.
        """
        by = [] if tied is None else [tied[0]]
        asked = inner.copy()
        asked.set("expressions", [exp.alias_(e.copy(), f"n{i}") for i, e in enumerate([*by, *counts])])
        grouped = _per_owner(self.reader, asked, owner, node)
        # By its position: a constant would be one itself.
        grouped.args["group"].expressions.extend(exp.Literal.number(i + 1) for i in range(len(by)))
        relation = self.reader.resolve(grouped, self.ctes)
        if not isinstance(relation, PrivateRelation):
            raise self.reader.refuse(
                "this sub-query is tied to the owner by its own unit column: t.id = this.id.",
                node,
                remedy=Rewrite("t.id = this.id"),
            )
        same_units(self.reader, self.relation, relation.relation, node)
        columns, on = list(relation.columns.values()), None
        if tied is not None and (tied[1].kind, columns[0].kind) == (Kind.NUMBER, Kind.INTEGER):
            # Grouped as what they are met as: beyond 2^53 two whole numbers are one double.
            as_met = exp.cast(tied[0].copy(), exp.DataType.Type.DOUBLE)
            return self._met(inner, owner, counts, node, (as_met, tied[1]))
        if tied is not None:
            on = Compare("=", *self.expressions().aligned(tied[1], columns[0], node))
        self.relation = Join(self.relation, relation.relation, "left", on, by_unit=True)
        return tuple(columns[len(by) :])

    def _one_column(self, query: exp.Expr, value: exp.Expr, node: exp.Expr) -> QueryError:
        """What refuses IN of a sub-query of several columns: one of them, or a comparison of each, is meant."""
        ways = () if isinstance(value, exp.Tuple) else only_term(self.reader.text, query, value.alias_or_name)
        hint = f": {' or '.join(way.example for way in ways)}" if ways else f"; for several write {_EACH.example}"
        return self.reader.refuse(f"IN takes a sub-query of one column{hint}.", node, remedy=ways or _EACH)

    # -- EXISTS and IN as conditions of their own -----------------------------------------------------------

    def restrict(self, node: exp.Expr) -> bool:
        """Apply [NOT] EXISTS (...) or x [NOT] IN (...), standing alone in WHERE; False for anything else."""
        negated = False
        while isinstance(node, exp.Not | exp.Paren):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.Exists):
            query = node.this.this if isinstance(node.this, exp.Subquery) else node.this
            self._exists(query, None, negated, node)
            return True
        if isinstance(node, exp.In) and node.args.get("query"):
            query = node.args["query"]
            self._exists(query.this if isinstance(query, exp.Subquery) else query, node.this, negated, node)
            return True
        return False

    def _exists(self, query: exp.Expr, value: exp.Expr | None, negated: bool, node: exp.Expr) -> None:
        how = "anti" if negated else "semi"
        inner_scope = None
        if isinstance(query, exp.Select):
            inner_scope = _correlated_rows(self, query)
        if inner_scope is None:
            self._in_outer(query, value, how, node)
            return
        rows, pending = inner_scope
        readers = ExpressionReader(
            self.reader.text, _both(rows.scope, self.scope), self._no_aggregate, moments=self.reader.moments
        )
        terms = [readers.condition(c, "WHERE") for c in pending]
        if value is not None:
            assert isinstance(query, exp.Select)
            if len(query.expressions) != 1:
                raise self._one_column(query, value, node)
            item = query.expressions[0].unalias()
            reader = self.expressions()
            terms.append(Compare("=", *reader.aligned(reader.read(value), rows.expressions().read(item), node)))
        equal, rest = owner_equality(self.relation, rows.relation, terms)
        if not equal:
            raise self.reader.refuse(
                "a sub-query over people's rows is tied to the owner: its WHERE says t.id = this.id (or IN compares "
                "the unit columns). Anything else would let one person's row decide about another's.",
                node,
                remedy=Rewrite("t.id = this.id"),
            )
        same_units(self.reader, self.relation, rows.relation, node)
        if value is not None and negated:
            # NOT IN is never true for an unknown value; owners are never unknown.
            others = [t for t in rest if t is not terms[-1]]
            if len(others) < len(rest):
                raise self.reader.refuse(
                    "NOT IN over people's rows compares the unit columns; for others write NOT EXISTS (SELECT 1 FROM "
                    "t WHERE t.id = this.id AND t.x = this.x).",
                    node,
                    remedy=Rewrite("NOT EXISTS (SELECT 1 FROM t WHERE t.id = this.id AND t.x = this.x)"),
                )
        on = all_of(rest)
        self.relation = Join(self.relation, rows.relation, how, on, by_unit=True)  # type: ignore[arg-type]

    def _in_outer(self, query: exp.Expr, value: exp.Expr | None, how: str, node: exp.Expr) -> None:
        """IN or EXISTS of a query that is public or released."""
        relation = self.reader.resolve(query.copy(), self.ctes)
        if isinstance(relation, PrivateRelation):
            raise self.reader.refuse(
                "a sub-query over people's rows is tied to the owner: its WHERE says t.id = this.id (or IN compares "
                "the unit columns). Anything else would let one person's row decide about another's.",
                node,
                remedy=Rewrite("t.id = this.id"),
            )
        if value is None:
            leaf = self.reader.leaf(_counted(relation.tree), node)
            self.relation = Join(self.relation, leaf, "left", None, by_unit=False, one=True)
            n = leaf.column(next(iter(leaf.columns)))
            self.keep(Compare("=" if how == "anti" else ">", n, Literal(0)))
            return
        leaf = self.reader.leaf(relation.tree, node)
        if len(leaf.columns) != 1:
            raise self._one_column(query, value, node)
        left = self.expressions().read(value)
        inside = leaf.column(next(iter(leaf.columns)))
        reader = self.expressions()
        a, b = reader.aligned(left, inside, node)
        if how == "semi":
            self.relation = Join(self.relation, leaf, "semi", Compare("=", a, b), by_unit=False)
            return
        self._known(relation.tree, left, node)
        self.relation = Join(self.relation, leaf, "anti", Compare("=", a, b), by_unit=False)

    def _known(self, tree: exp.Query, value: Expression, node: exp.Expr) -> None:
        """Keep the rows of which NOT IN a public list can be true, but for the values that are listed: all where the
        list is empty; none where a listed value is NULL; else those whose own value is not.
        """
        counts = self.reader.leaf(_counted(tree, unknown=True), node)
        self.relation = Join(self.relation, counts, "left", None, by_unit=False, one=True)
        none, known = (Compare("=", counts.column(name), Literal(0)) for name in ("n", "unknown"))
        self.keep(Logic("OR", (none, Logic("AND", (known, Not(IsNull(value)))))))


def _counted(tree: exp.Query, *, unknown: bool = False) -> exp.Select:
    """How many rows a query has. unknown: and of how many the only column is NULL."""
    alias = exp.TableAlias(this=exp.to_identifier("counted"))
    n = exp.Count(this=exp.Star(), big_int=True)
    items = [exp.alias_(n, "n")]
    if unknown:
        alias.set("columns", [exp.to_identifier("x")])
        items.append(exp.alias_(exp.Sub(this=n.copy(), expression=exp.Count(this=exp.column("x"))), "unknown"))
    return exp.select(*items).from_(exp.Subquery(this=tree, alias=alias))


_COUNTS: Final = ("COUNT_ROWS", "COUNT", "COUNT_DISTINCT")


def _one_value(query: PrivateRelation) -> bool:
    return len(query.columns) == 1 and single(query.relation)


def _of_no_rows(value: Expression, grouped: Relation) -> Expression:
    """An expression of aggregates of one owner's rows, as it is for an owner without any: a count is 0 there."""
    counts = frozenset(name for name, one in _aggregates_of(grouped) if one.function in _COUNTS)

    def counted(node: Expression) -> Expression:
        if isinstance(node, Column):
            return Call("COALESCE", (node, Literal(0))) if node.name in counts else node
        return rebuild(node, counted)

    return counted(value)


def _aggregates_of(relation: Relation) -> tuple[tuple[str, Inner], ...]:
    return relation.aggregates if isinstance(relation, PerUnit) else ()


def _of_plain_rows(reader: Reader, query: exp.Select) -> None:
    """Raises QueryError where whether a sub-query has rows is not told by its FROM and WHERE alone."""
    check_clauses(reader, query)
    made = next((part for item in query.expressions for part in item.find_all(exp.Unnest, exp.Explode)), None)
    having, alone = query.args.get("having"), query.args.get("group") is None
    total = alone and any(list(item.find_all(exp.AggFunc)) for item in query.expressions)
    if made is not None or having is not None or total:
        way = Rewrite("EXISTS (SELECT 1 FROM t WHERE t.id = this.id)")
        raise reader.refuse(
            "EXISTS and IN look at rows as they stand in FROM and WHERE, without aggregates, HAVING or UNNEST: "
            f"{way.example}. How many there are tells (SELECT COUNT(*) FROM t WHERE t.id = this.id).",
            made or having or query,
            remedy=way,
        )


def _both(inner: Scope, around: Scope) -> Callable[[exp.Column], Expression]:
    def column(node: exp.Column) -> Expression:
        return inner.column(node) if inner.knows(node) else around.column(node)

    return column


def _correlated_rows(rows: Rows, query: exp.Select) -> tuple[Rows, list[exp.Expr]] | None:
    """The owned rows of a sub-query in EXISTS or IN, without the conditions that look outside; None if it is outer."""
    if not _reads_owned(rows.reader, query, rows.ctes):
        return None
    for name in ("group", "having", "distinct", "order", "limit", "offset", "qualify"):
        if query.args.get(name) and name != "distinct":
            # SELECT id FROM t GROUP BY id HAVING ...: a relation of its own, met by owner.
            relation = rows.reader.resolve(query.copy(), rows.ctes)
            if isinstance(relation, PublicQuery):
                return None
            inner = Rows(
                rows.reader, relation.relation, Scope(rows.reader.text, [Source("", relation.columns)]), rows.ctes
            )
            query.set("expressions", [exp.column(n, quoted=True) for n in relation.columns])
            return inner, []
    if any(isinstance(e, exp.AggFunc) for item in query.expressions for e in item.find_all(exp.AggFunc)):
        return None
    own = read_from(rows.reader, query, rows.ctes, where=False)
    if own is None:
        return None
    _of_plain_rows(rows.reader, query)
    pending: list[exp.Expr] = []
    for condition in conjuncts(query):
        outside = [c for c in condition.find_all(exp.Column) if not own.scope.knows(c)]
        if outside:
            pending.append(condition)
        elif not own.restrict(condition):
            own.keep(own.expressions().condition(condition, "WHERE"))
    return own, pending


def _reads_owned(reader: Reader, query: exp.Expr, ctes: dict[str, Cte]) -> bool:
    """Whether a table in a query's FROM is, or may be, owned."""
    for table in query.find_all(exp.Table):
        cte = ctes.get(table.name.lower())
        if cte is not None and _reads_owned(reader, cte.query, cte.around):
            return True
        info = next((i for n, i in reader.catalog.items() if n.lower() == table.name.lower()), None)
        if cte is None and info is not None and info.private:
            return True
    return False


def _names_of(query: exp.Select) -> set[str]:
    """What a SELECT calls the items of its own FROM."""
    source = query.args.get("from_")
    items = [source.this] if source is not None else []
    return {i.alias_or_name.lower() for i in (*items, *(j.this for j in query.args.get("joins") or []))}


def owner_correlation(rows: Rows, query: exp.Select) -> bool:
    """Whether a sub-query's WHERE looks at columns of the SELECT around it."""
    if not _reads_owned(rows.reader, query, rows.ctes):
        return False
    inner = _names_of(query)
    for condition in conjuncts(query):
        for column in condition.find_all(exp.Column):
            if column.table and column.table.lower() not in inner and rows.scope.source(column.table) is not None:
                return True
    return False


def _without_owner(rows: Rows, query: exp.Select) -> tuple[exp.Select, exp.Column]:
    """A correlated sub-query without its `t.id = this.id`, all of its correlation, and its own column of the two."""
    query = query.copy()
    inner = _names_of(query)
    stay: list[exp.Expr] = []
    owner: exp.Column | None = None
    for condition in conjuncts(query):
        outside = [c for c in condition.find_all(exp.Column) if c.table and c.table.lower() not in inner]
        if not outside:
            stay.append(condition)
            continue
        side = condition.this if condition.this in outside else condition.args.get("expression")
        other = condition.args.get("expression") if side is condition.this else condition.this
        owners = units_of(rows.relation)
        read = rows.scope.column(side) if isinstance(condition, exp.EQ) and isinstance(side, exp.Column) else None
        if not (isinstance(read, Column) and read.name in owners and isinstance(other, exp.Column)):
            raise rows.reader.refuse(
                "a correlated sub-query may look outside for the owner alone: WHERE t.id = this.id.",
                condition,
                remedy=Rewrite("t.id = this.id"),
            )
        if owner is not None:
            raise rows.reader.refuse(
                "a correlated sub-query is tied to the owner once: WHERE t.id = this.id. Write a second condition over "
                "the sub-query's own columns: t.other = t.id.",
                condition,
                remedy=Rewrite("t.other = t.id"),
            )
        stay.append(exp.Not(this=exp.Is(this=other.copy(), expression=exp.Null())))
        owner = other.copy()
    if owner is None:
        raise rows.reader.refuse(
            "a correlated sub-query is tied to the owner: WHERE t.id = this.id.",
            query,
            remedy=Rewrite("WHERE t.id = this.id"),
        )
    query.set("where", exp.Where(this=exp.and_(*stay)) if stay else None)
    return query, owner


def _per_owner(reader: Reader, query: exp.Select, owner: exp.Column, node: exp.Expr) -> exp.Select:
    """A sub-query's aggregate, grouped by its unit column. It has one row, so that DISTINCT changes nothing."""
    check_clauses(reader, query)
    if query.args.get("group") is not None:
        raise reader.refuse(
            "a scalar sub-query has no GROUP BY, but WHERE t.id = this.id.",
            node,
            remedy=Rewrite("WHERE t.id = this.id"),
        )
    grouped = query.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=[owner.copy()]))
    return grouped


def conjuncts(select: exp.Select) -> list[exp.Expr]:
    """The conditions of WHERE, taken apart at AND."""
    where = select.args.get("where")
    return list(split_at_and(where.this)) if where is not None else []


def read_from(reader: Reader, select: exp.Select, ctes: dict[str, Cte], *, where: bool = True) -> Rows | None:
    """The owned rows that FROM and WHERE leave; None where FROM has no owned table."""
    items = items_of(reader, select, ctes)
    if items is None:
        return None
    scope = Scope(reader.text, [item.source for item in items])
    for item in items:
        for name in item.using:
            merge(reader, scope, item, name)
    # The columns of a semi or anti join's right side are seen by its ON alone.
    seen = Scope(reader.text, [i.source for i in items if i.how not in ("semi", "anti")], scope.merged, scope.sides)
    conditions = conjuncts(select) if where else []
    plain = [c for c in conditions if not list(c.find_all(exp.Query))]
    nested = [c for c in conditions if list(c.find_all(exp.Query))]
    simple = ExpressionReader(reader.text, scope.column, lambda n: _refuse_aggregate(reader, n), moments=reader.moments)
    outside = ExpressionReader(reader.text, seen.column, lambda n: _refuse_aggregate(reader, n), moments=reader.moments)
    pool = [(c, outside.condition(c, "WHERE")) for c in plain]
    relation, kept = joined(reader, items, pool, simple)
    rows = Rows(reader, relation, seen, ctes, kept)
    plainly = all_of([condition for _, condition in pool])
    if plainly is not None:
        rows.keep(plainly)
    for condition_node in nested:
        if not rows.restrict(condition_node):
            rows.keep(rows.expressions().condition(condition_node, "WHERE"))
    return rows


def _refuse_aggregate(reader: Reader, node: exp.Expr) -> Expression:
    raise reader.refuse(
        "an aggregate or window cannot stand here; conditions on answers go into HAVING.",
        node,
        remedy=Rewrite("HAVING"),
    )
