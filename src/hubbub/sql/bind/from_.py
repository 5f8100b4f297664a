"""FROM and WHERE over owned rows: which tables meet, by which rule, and which rows stay.

Conditions are taken apart at their ANDs. Owned tables are joined where a condition says that their owners are equal
(or follows the declared path to the owner); public and released relations are joined to the owned rows one row at a
time; EXISTS and IN with a sub-query become semi and anti joins, never what SQL makes of them with NULLs of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.sql.bind.context import Cte, Outer, Owned, Reader, everything
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.scope import Scope, Source
from hubbub.tables.expressions import Call, Column, Compare, Expression, IsNull, Literal, Logic, columns_of
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import (
    Filter,
    Join,
    Leaf,
    Relation,
    Scan,
    single,
    units_of,
)

__all__ = ["Rows", "conjuncts", "owner_correlation", "read_from"]


@dataclass
class Item:
    """One item of FROM: what it is, how it is joined, and on what."""

    node: exp.Expr
    source: Source
    relation: Relation | Leaf
    how: str = "inner"
    on: list[exp.Expr] = field(default_factory=list)
    using: list[str] = field(default_factory=list)

    @property
    def owned(self) -> bool:
        return not isinstance(self.relation, Leaf)

    @property
    def names(self) -> frozenset[str]:
        return frozenset[str]().union(*map(columns_of, self.source.columns.values()))


@dataclass
class Rows:
    """The owned rows of one SELECT while it is read: the relation grows as scalar sub-queries are met.

    kept: the public relation whose keys are all answered (`public LEFT JOIN owned`), if any.
    """

    reader: Reader
    relation: Relation
    scope: Scope
    ctes: dict[str, Cte]
    kept: Leaf | None = None

    def expressions(self) -> ExpressionReader:
        """A reader of row expressions, sub-queries included."""
        return ExpressionReader(self.reader.text, self.scope.column, self._no_aggregate, subquery=self._subquery)

    def _no_aggregate(self, node: exp.Expr) -> Expression:
        word = "a window function" if isinstance(node, exp.Window) else "an aggregate"
        raise self.reader.refuse(f"{word} cannot stand here; conditions on answers go into HAVING.", node)

    def keep(self, condition: Expression) -> None:
        self.relation = Filter(self.relation, condition)

    # -- sub-queries in expressions -------------------------------------------------------------------------

    def _subquery(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Subquery):
            return self._scalar(node)
        if isinstance(node, exp.Exists):
            return Compare(">", Call("COALESCE", (self._count_of(node.this, node), Literal(0))), Literal(0))
        query = node.args["query"]
        query = query.this if isinstance(query, exp.Subquery) else query
        wrapped = self._in_as_exists(node.this, query, node)
        return Compare(">", Call("COALESCE", (self._count_of(wrapped, node), Literal(0))), Literal(0))

    def _scalar(self, node: exp.Subquery) -> Expression:
        """A scalar: one value for all rows (its own release, or public), or one of the row's owner."""
        query = node.this
        correlated = isinstance(query, exp.Select) and owner_correlation(self, query)
        if correlated:
            return self._of_owner(query, node)
        found = self.reader.resolve(query.copy(), self.ctes)
        if isinstance(found, Owned):
            raise self.reader.refuse("a scalar sub-query over people's rows has to be an aggregate.", node)
        if len(found.tree.selects) != 1:
            raise self.reader.refuse("a scalar sub-query has one column.", node)
        leaf = self.reader.leaf(exp.select(exp.alias_(exp.Subquery(this=found.tree), "value")), node)
        self.relation = Join(self.relation, leaf, "left", None, by_unit=False, one=True)
        name = next(iter(leaf.columns))
        if leaf.columns[name] is Kind.OTHER:
            raise self.reader.refuse("this sub-query gives a value of a type that questions cannot use.", node)
        return leaf.column(name)

    def _of_owner(self, query: exp.Select, node: exp.Expr) -> Expression:
        """(SELECT AVG(x) FROM t WHERE t.id = outer.id): an aggregate of the same owner's rows."""
        inner = _without_owner(self, query)
        found = self.reader.resolve(_per_owner(self.reader, inner, self.ctes, node), self.ctes)
        if not isinstance(found, Owned) or len(found.columns) != 1 or not single(found.relation):
            raise self.reader.refuse(
                "a sub-query of the same owner's rows gives one aggregate, such as (SELECT MAX(x) FROM t WHERE t.id = "
                "this.id).",
                node,
            )
        self.reader.same_units(self.relation, found.relation, node)
        self.relation = Join(self.relation, found.relation, "left", None, by_unit=True)
        value = next(iter(found.columns.values()))
        counts = any(isinstance(e, exp.Count) for e in query.expressions)
        return Call("COALESCE", (value, Literal(0))) if counts else value

    def _count_of(self, query: exp.Expr, node: exp.Expr) -> Expression:
        """How many rows of a correlated sub-query the row's owner has."""
        if not isinstance(query, exp.Select) or not owner_correlation(self, query):
            raise self.reader.refuse(
                "inside an expression, EXISTS and IN look at the same owner's rows: WHERE t.id = this.id. On its own "
                "in WHERE, IN may also list public values.",
                node,
            )
        inner = _without_owner(self, query)
        inner.set("expressions", [exp.alias_(exp.Count(this=exp.Star(), big_int=True), "n")])
        found = self.reader.resolve(_per_owner(self.reader, inner, self.ctes, node), self.ctes)
        if not isinstance(found, Owned):
            raise self.reader.refuse(
                "this sub-query is tied to the owner by its own unit column: t.id = this.id.", node
            )
        self.reader.same_units(self.relation, found.relation, node)
        self.relation = Join(self.relation, found.relation, "left", None, by_unit=True)
        return next(iter(found.columns.values()))

    def _in_as_exists(self, value: exp.Expr, query: exp.Expr, node: exp.Expr) -> exp.Select:
        if not isinstance(query, exp.Select) or len(query.expressions) != 1:
            raise self.reader.refuse("IN takes a sub-query of one column.", node)
        query = query.copy()
        item = query.expressions[0]
        equal = exp.EQ(this=item.unalias(), expression=value.copy())
        return query.where(equal, copy=False)

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
        readers = ExpressionReader(self.reader.text, _both(rows.scope, self.scope), self._no_aggregate)
        terms = [readers.condition(c, "WHERE") for c in pending]
        if value is not None:
            assert isinstance(query, exp.Select)
            if len(query.expressions) != 1:
                raise self.reader.refuse("IN takes a sub-query of one column.", node)
            item = query.expressions[0].unalias()
            reader = self.expressions()
            terms.append(Compare("=", *reader.aligned(reader.read(value), rows.expressions().read(item), node)))
        equal, rest = _owner_equality(self.relation, rows.relation, terms)
        if not equal:
            raise self.reader.refuse(
                "a sub-query over people's rows is tied to the owner: its WHERE says t.id = this.id (or IN compares "
                "the unit columns). Anything else would let one person's row decide about another's.",
                node,
            )
        self.reader.same_units(self.relation, rows.relation, node)
        if value is not None and negated:
            # NOT IN is never true for an unknown value; owners are never unknown.
            others = [t for t in rest if t is not terms[-1]]
            if len(others) < len(rest):
                raise self.reader.refuse("NOT IN over people's rows compares the unit columns.", node)
        on = _all(rest)
        self.relation = Join(self.relation, rows.relation, how, on, by_unit=True)  # type: ignore[arg-type]

    def _in_outer(self, query: exp.Expr, value: exp.Expr | None, how: str, node: exp.Expr) -> None:
        """IN or EXISTS of a query that is public or released."""
        found = self.reader.resolve(query.copy(), self.ctes)
        if isinstance(found, Owned):
            raise self.reader.refuse(
                "a sub-query over people's rows is tied to the owner: its WHERE says t.id = this.id (or IN compares "
                "the unit columns). Anything else would let one person's row decide about another's.",
                node,
            )
        if value is None:
            leaf = self.reader.leaf(_counted(found.tree), node)
            self.relation = Join(self.relation, leaf, "left", None, by_unit=False, one=True)
            n = leaf.column(next(iter(leaf.columns)))
            self.keep(Compare("=" if how == "anti" else ">", n, Literal(0)))
            return
        leaf = self.reader.leaf(found.tree, node)
        if len(leaf.columns) != 1:
            raise self.reader.refuse("IN takes a sub-query of one column.", node)
        left = self.expressions().read(value)
        inside = leaf.column(next(iter(leaf.columns)))
        reader = self.expressions()
        a, b = reader.aligned(left, inside, node)
        if how == "semi":
            self.relation = Join(self.relation, leaf, "semi", Compare("=", a, b), by_unit=False)
            return
        # NOT IN is not true where the value, or any of the listed ones, is NULL; an empty list keeps every row.
        unknown = Logic("OR", (Compare("=", a, b), IsNull(b), IsNull(a)))
        self.relation = Join(self.relation, leaf, "anti", unknown, by_unit=False)


def _counted(tree: exp.Query) -> exp.Select:
    return exp.select(exp.alias_(exp.Count(this=exp.Star(), big_int=True), "n")).from_(
        exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier("counted")))
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
            found = rows.reader.resolve(query.copy(), rows.ctes)
            if isinstance(found, Outer):
                return None
            inner = Rows(rows.reader, found.relation, Scope(rows.reader.text, [Source("", found.columns)]), rows.ctes)
            query.set("expressions", [exp.column(n, quoted=True) for n in found.columns])
            return inner, []
    if any(isinstance(e, exp.AggFunc) for item in query.expressions for e in item.find_all(exp.AggFunc)):
        return None
    own = read_from(rows.reader, query, rows.ctes, where=False)
    if own is None:
        return None
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


def _without_owner(rows: Rows, query: exp.Select) -> exp.Select:
    """A correlated sub-query without its `t.id = this.id`, which must be all of its correlation."""
    query = query.copy()
    inner = _names_of(query)
    stay = []
    tied = False
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
                "a correlated sub-query may look outside for the owner alone: WHERE t.id = this.id.", condition
            )
        if tied:
            raise rows.reader.refuse(
                "a correlated sub-query is tied to the owner once: WHERE t.id = this.id. Write a second condition over "
                "the sub-query's own columns: t.other = t.id.",
                condition,
            )
        tied = True
        stay.append(exp.Not(this=exp.Is(this=other.copy(), expression=exp.Null())))
        query.meta["owner"] = other.copy()
    if not tied:
        raise rows.reader.refuse("a correlated sub-query is tied to the owner: WHERE t.id = this.id.", query)
    query.set("where", exp.Where(this=exp.and_(*stay)) if stay else None)
    return query


def _per_owner(reader: Reader, query: exp.Select, ctes: dict[str, Cte], node: exp.Expr) -> exp.Select:
    """A sub-query's aggregate, grouped by its unit column."""
    if query.args.get("group") is not None:
        raise reader.refuse("a scalar sub-query has no GROUP BY.", node)
    owner = query.meta["owner"]
    grouped = query.copy()
    grouped.set("group", exp.Group(expressions=[owner.copy()]))
    return grouped


def conjuncts(select: exp.Select) -> list[exp.Expr]:
    """The conditions of WHERE, taken apart at AND."""
    where = select.args.get("where")
    return list(_split(where.this)) if where is not None else []


def _split(node: exp.Expr) -> Iterator[exp.Expr]:
    stack = [node]
    while stack:
        top = stack.pop()
        while isinstance(top, exp.Paren):
            top = top.this
        if isinstance(top, exp.And):
            stack += [top.expression, top.this]
        else:
            yield top


def _all(terms: list[Expression]) -> Expression | None:
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else Logic("AND", tuple(terms))


def read_from(reader: Reader, select: exp.Select, ctes: dict[str, Cte], *, where: bool = True) -> Rows | None:
    """The owned rows that FROM and WHERE leave; None where FROM has no owned table."""
    items = _items(reader, select, ctes)
    if items is None:
        return None
    scope = Scope(reader.text, [item.source for item in items])
    for item in items:
        for name in item.using:
            _merge(reader, scope, item, name)
    # The columns of a semi or anti join's right side are seen by its ON alone.
    seen = Scope(reader.text, [i.source for i in items if i.how not in ("semi", "anti")], scope.merged)
    conditions = conjuncts(select) if where else []
    plain = [c for c in conditions if not list(c.find_all(exp.Query))]
    nested = [c for c in conditions if list(c.find_all(exp.Query))]
    simple = ExpressionReader(reader.text, scope.column, lambda n: _refuse_aggregate(reader, n))
    outside = ExpressionReader(reader.text, seen.column, lambda n: _refuse_aggregate(reader, n))
    pool = [(c, outside.condition(c, "WHERE")) for c in plain]
    relation, kept = _joined(reader, items, pool, simple)
    rows = Rows(reader, relation, seen, ctes, kept)
    plainly = _all([condition for _, condition in pool])
    if plainly is not None:
        rows.keep(plainly)
    for condition_node in nested:
        if not rows.restrict(condition_node):
            rows.keep(rows.expressions().condition(condition_node, "WHERE"))
    return rows


def _refuse_aggregate(reader: Reader, node: exp.Expr) -> Expression:
    raise reader.refuse("an aggregate or window cannot stand here; conditions on answers go into HAVING.", node)


_HOWS = {"": "inner", "INNER": "inner", "CROSS": "inner", "SEMI": "semi", "ANTI": "anti", "OUTER": ""}


def _items(reader: Reader, select: exp.Select, ctes: dict[str, Cte]) -> list[Item] | None:
    """The items of FROM, each resolved; None where none of them is owned."""
    source = select.args.get("from_")
    if source is None:
        return None
    joins = select.args.get("joins") or []
    resolved = [_resolve_item(reader, node, ctes) for node in (source.this, *(j.this for j in joins))]
    if not any(isinstance(r, Scan | Owned) for r in resolved):
        return None
    items = [
        _item(reader, node, what) for node, what in zip((source.this, *(j.this for j in joins)), resolved, strict=True)
    ]
    names = [i.source.alias.lower() for i in items]
    if len(set(names)) < len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise reader.refuse(f"two tables are called {twice!r}: give one an alias.", source)
    for item, join in zip(items[1:], joins, strict=True):
        _join_kind(reader, item, join)
    return items


def _resolve_item(reader: Reader, node: exp.Expr, ctes: dict[str, Cte]) -> Owned | Outer | Scan | str:
    if isinstance(node, exp.Table):
        for name, value in node.args.items():
            if value and name not in ("this", "alias", "db", "catalog"):
                word = {"sample": "SAMPLE", "pivots": "PIVOT", "joins": "a join in parentheses"}.get(name, name.upper())
                raise reader.refuse(f"{word} is not supported in a private question.", node)
        return reader.named(node, ctes)
    if isinstance(node, exp.Subquery):
        return reader.resolve(node, ctes)
    raise reader.refuse(f"{node.key.upper()} is not supported in FROM.", node)


def _item(reader: Reader, node: exp.Expr, what: Owned | Outer | Scan | str) -> Item:
    alias = node.alias_or_name or f"query{reader.place('q')}"
    names = [c.name for c in (node.args.get("alias") or exp.TableAlias()).args.get("columns") or ()]
    if isinstance(what, Scan):
        scanned = Owned(what, {name: what.column(name) for name in what.columns})
        scanned = reader.renamed(scanned, names, node)
        return Item(node, Source(alias, scanned.columns), what)
    if isinstance(what, Owned):
        renamed = reader.renamed(what, names, node)
        return Item(node, Source(alias, renamed.columns), renamed.relation)
    tree = what.tree if isinstance(what, Outer) else everything(what)
    leaf = reader.leaf(tree, node)
    columns: dict[str, Expression] = {name: leaf.column(name) for name in leaf.columns}
    if names:
        if len(names) > len(columns):
            raise reader.refuse(f"{len(names)} names for {len(columns)} columns.", node)
        old = list(columns)
        columns = {**dict(zip(names, columns.values(), strict=False)), **{n: columns[n] for n in old[len(names) :]}}
    return Item(node, Source(alias, columns), leaf)


def _join_kind(reader: Reader, item: Item, join: exp.Join) -> None:
    for name, value in join.args.items():
        if value and name not in ("this", "on", "using", "side", "kind"):
            word = str(value) if isinstance(value, str) else name.upper()
            raise reader.refuse(f"{word} JOIN is not supported; write the condition with ON.", join)
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if kind not in _HOWS or (kind in ("SEMI", "ANTI") and side not in ("", "LEFT")):
        raise reader.refuse(f"{kind or side} JOIN is not supported.", join)
    item.how = _HOWS[kind] if not side or kind in ("SEMI", "ANTI") else side.lower()
    item.on = list(_split(join.args["on"])) if join.args.get("on") is not None else []
    item.using = [i.name for i in join.args.get("using") or []]


def _merge(reader: Reader, scope: Scope, item: Item, name: str) -> None:
    """USING (name): equal on both sides, and one column from then on."""
    at = scope.sources.index(item.source)
    before = Scope(reader.text, scope.sources[:at], dict(scope.merged))
    column = exp.column(name, quoted=True)
    left = before.column(column)
    right = Scope(reader.text, [item.source]).column(column)
    if item.how == "full":
        merged: Expression = Call("COALESCE", (left, right))
    else:
        merged = right if item.how == "right" else left
    scope.merged[name] = merged
    item.on.append(exp.EQ(this=_fixed(left), expression=_fixed(right)))


def _fixed(expression: Expression) -> exp.Expr:
    """A piece of SQL that stands for an expression read already."""
    node = exp.Null()
    node.meta["expression"] = expression
    return node


def _joined(
    reader: Reader, items: list[Item], pool: list[tuple[exp.Expr, Expression]], read: ExpressionReader
) -> tuple[Relation, Leaf | None]:
    """The items of FROM as one relation. Conditions of WHERE that tie owners are taken out of `pool`."""
    conditions = [[_condition(read, c) for c in item.on] for item in items]
    kept = _public_first(items)
    inner = all(item.how == "inner" for item in items)
    if inner:
        free = [c for of_item in conditions for c in of_item]
        rest = list(items)
        first = next(i for i in rest if i.owned)
        rest.remove(first)
        relation, names = first.relation, first.names
        assert not isinstance(relation, Leaf)
        while rest:
            chosen = next((i for i in rest if i.owned and _ties(relation, i.relation, free, pool)), None)
            chosen = chosen or next((i for i in rest if not i.owned), None)
            if chosen is None:
                raise _no_owner(reader, rest[0])
            rest.remove(chosen)
            names |= chosen.names
            usable = [c for c in free if columns_of(c) <= names]
            free = [c for c in free if not columns_of(c) <= names]
            if not chosen.owned:
                more = [c for c in pool if columns_of(c[1]) <= names and columns_of(c[1]) & chosen.names]
                usable += [c for _, c in more]
                pool[:] = [c for c in pool if c not in more]
            relation = _join(reader, relation, chosen, usable, pool)
        for condition in free:
            relation = Filter(relation, condition)
        return relation, kept
    relation_ = items[0].relation
    if isinstance(relation_, Leaf):
        raise reader.refuse(
            "people's rows stand on the left: write FROM people LEFT JOIN public. A public table on the left is for "
            "GROUP BY on its columns, with LEFT JOIN of one table of people.",
            items[0].node,
        )
    known = items[0].names
    for item, on in zip(items[1:], conditions[1:], strict=True):
        known |= item.names
        if any(not columns_of(term) <= known for term in on):
            raise reader.refuse("ON names a table that is joined later; put its condition there.", item.node)
        relation_ = _join(reader, relation_, item, on, pool)
    return relation_, kept


def _condition(read: ExpressionReader, node: exp.Expr) -> Expression:
    if isinstance(node, exp.EQ) and "expression" in node.this.meta:
        left, right = node.this.meta["expression"], node.expression.meta["expression"]
        return Compare("=", *read.aligned(left, right, node))
    return read.condition(node, "ON")


def _public_first(items: list[Item]) -> Leaf | None:
    """`public LEFT JOIN owned` and `owned RIGHT JOIN public`: an inner join whose public keys are all answered."""
    if len(items) != 2:
        return None
    a, b = items
    if isinstance(a.relation, Leaf) and b.owned and b.how == "left":
        b.how = "inner"
        return a.relation
    if a.owned and isinstance(b.relation, Leaf) and b.how == "right":
        b.how = "inner"
        return b.relation
    return None


def _ties(
    left: Relation | Leaf, right: Relation | Leaf, free: list[Expression], pool: list[tuple[exp.Expr, Expression]]
) -> bool:
    return _owner_equality(left, right, [*free, *(c for _, c in pool)])[0]


def _owner_equality(
    left: Relation | Leaf, right: Relation | Leaf, terms: list[Expression]
) -> tuple[bool, list[Expression]]:
    """Whether conditions say that the owners of both sides are equal, and the conditions beside that one.

    The owners are equal where unit columns are compared, or where a declared path to the owner is followed: its key
    leads to the very rows that the owner was taken from.
    """
    a, b = units_of(left), units_of(right)
    paths = {(f"{s.place}.{s.path.column}", s.path.table, s.path.key) for s in (*_top(left), *_top(right)) if s.path}
    tables = {s.place: s.table for s in (*_top(left), *_top(right))}
    for term in terms:
        match term:
            case Compare(op="=", left=Column(name=x), right=Column(name=y)):
                if (x in a and y in b) or (y in a and x in b):
                    return True, [t for t in terms if t is not term]
                for p, q in ((x, y), (y, x)):
                    place, _, column = q.partition(".")
                    apart = (_stands_in(left, p) and _stands_in(right, q)) or (
                        _stands_in(left, q) and _stands_in(right, p)
                    )
                    if apart and (p, tables.get(place), column) in paths:
                        return True, terms
    return False, terms


def _top(node: Relation | Leaf) -> tuple[Scan, ...]:
    """The scans whose columns a relation shows: through filters, joins and windows."""
    match node:
        case Scan():
            return (node,)
        case Join(left=left, how=("semi" | "anti")):
            return _top(left)
        case Join(left=left, right=right):
            return (*_top(left), *_top(right))
        case Filter(source=source):
            return _top(source)
    return ()


def _stands_in(node: Relation | Leaf, name: str) -> bool:
    return any(s.place == name.partition(".")[0] for s in _top(node))


def _no_owner(reader: Reader, item: Item) -> QueryError:
    return reader.refuse(
        "tables about people are joined on their unit: ON a.id = b.id (with more conditions beside it by AND). Other "
        "joins would let one person's row meet another's.",
        item.node,
    )


def _join(
    reader: Reader, left: Relation, item: Item, on: list[Expression], pool: list[tuple[exp.Expr, Expression]]
) -> Relation:
    how, right = item.how, item.relation
    if isinstance(right, Leaf):
        if how in ("full", "right"):
            raise reader.refuse(
                f"{how.upper()} JOIN with a public table would make rows that no one owns; use LEFT or INNER JOIN.",
                item.node,
            )
        one = _looked_up(right, on)
        return Join(left, right, how, _all(on), by_unit=False, one=one)  # type: ignore[arg-type]
    equal, rest = _owner_equality(left, right, on)
    if not equal and how == "inner":
        equal, others = _owner_equality(left, right, [c for _, c in pool])
        pool[:] = [c for c in pool if any(c[1] is o for o in others)]
    if not equal:
        raise _no_owner(reader, item)
    reader.same_units(left, right, item.node)
    if how == "right":
        return Join(right, left, "left", _all(rest), by_unit=True)
    return Join(left, right, how, _all(rest), by_unit=True)  # type: ignore[arg-type]


def _looked_up(leaf: Leaf, on: list[Expression]) -> bool:
    """Whether no two rows of a public relation can meet the same owned row: an equality on a key of it."""
    names = []
    for term in on:
        match term:
            case Compare(op="=", left=x, right=y):
                for side, other in ((x, y), (y, x)):
                    # Of one kind: beside another one the engine casts, and two values of the key may become one.
                    own = isinstance(side, Column) and side.name.partition(".")[0] == leaf.place
                    own = own and side.kind is other.kind
                    if own and all(n.partition(".")[0] != leaf.place for n in columns_of(other)):
                        assert isinstance(side, Column)
                        names.append(side.name.partition(".")[2])
    return bool(names) and leaf.unique(tuple(sorted(set(names))))
