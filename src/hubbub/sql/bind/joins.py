"""The items of FROM and the joins between them: by the owner, by a path to the owner, or with public rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import (
    Cte,
    PrivateRelation,
    PublicQuery,
    Reader,
    everything,
    renamed,
    same_units,
    too_many_names,
    under_names,
)
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.scope import Scope, Source, TableColumns, find_name
from hubbub.sql.bind.zoned import moments_of
from hubbub.sql.text.hints import clause_refused
from hubbub.sql.text.locate import span_of
from hubbub.sql.text.repairs import texts_of
from hubbub.tables.expressions import Call, Column, Compare, Expression, Logic, columns_of
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import (
    Filter,
    Join,
    PublicRelation,
    Relation,
    Scan,
    units_of,
)
from hubbub.tables.repeats import met

__all__ = ["all_of", "items_of", "joined", "merge", "owner_equality", "split_at_and"]


@dataclass(frozen=True)
class Paired:
    """The two columns that USING makes one. node: the item of FROM that brings the second."""

    left: Expression
    right: Expression
    node: exp.Expr


@dataclass
class Item:
    """One item of FROM: what it is, how it is joined, and on what."""

    node: exp.Expr
    source: Source
    relation: Relation | PublicRelation
    how: str = "inner"
    on: list[exp.Expr | Paired] = field(default_factory=list)
    using: list[str] = field(default_factory=list)

    @property
    def owned(self) -> bool:
        return not isinstance(self.relation, PublicRelation)

    @property
    def names(self) -> frozenset[str]:
        columns = self.source.columns
        if isinstance(columns, TableColumns):  # each reads itself alone
            return frozenset(f"{columns.place}.{name}" for name in columns)
        return frozenset[str]().union(*map(columns_of, columns.values()))


def split_at_and(node: exp.Expr) -> Iterator[exp.Expr]:
    stack = [node]
    while stack:
        top = stack.pop()
        while isinstance(top, exp.Paren):
            top = top.this
        if isinstance(top, exp.And):
            stack += [top.expression, top.this]
        else:
            yield top


def all_of(terms: list[Expression]) -> Expression | None:
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else Logic("AND", tuple(terms))


_HOWS = {"": "inner", "INNER": "inner", "CROSS": "inner", "SEMI": "semi", "ANTI": "anti", "OUTER": ""}


def items_of(reader: Reader, select: exp.Select, ctes: dict[str, Cte]) -> list[Item] | None:
    """The items of FROM, each resolved; None where none of them is owned."""
    source = select.args.get("from_")
    if source is None:
        return None
    joins = select.args.get("joins") or []
    resolved = [_resolve_item(reader, node, ctes) for node in (source.this, *(j.this for j in joins))]
    if not any(isinstance(r, Scan | PrivateRelation) for r in resolved):
        return None
    items = [
        _item(reader, node, what) for node, what in zip((source.this, *(j.this for j in joins)), resolved, strict=True)
    ]
    names = [i.source.alias.lower() for i in items]
    if len(set(names)) < len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise reader.refuse(
            f"two tables are called {twice!r}: give one an alias: {twice} AS {twice}_2.",
            source,
            remedy=Rewrite(f"{twice} AS {twice}_2"),
        )
    for item, join in zip(items[1:], joins, strict=True):
        _join_kind(reader, item, join)
    return items


def _resolve_item(reader: Reader, node: exp.Expr, ctes: dict[str, Cte]) -> PrivateRelation | PublicQuery | Scan | str:
    if isinstance(node, exp.Table):
        for name, value in node.args.items():
            if value and name not in ("this", "alias", "db", "catalog"):
                word = {"sample": "SAMPLE", "pivots": "PIVOT", "joins": "a join in parentheses"}.get(name, name.upper())
                says, ways = clause_refused(word)
                raise reader.refuse(says, node, remedy=ways)
        return reader.named(node, ctes)
    if isinstance(node, exp.Subquery):
        return reader.resolve(node, ctes)
    if isinstance(node, exp.Values):
        return _listed(reader, node)
    raise reader.refuse(f"{node.key.upper()} is not supported in FROM.", node)


def _listed(reader: Reader, node: exp.Values) -> PublicQuery:
    """VALUES, whose rows stand in the question: public."""
    constant = exp.Tuple | exp.Literal | exp.Boolean | exp.Null | exp.Neg | exp.Paren | exp.Cast | exp.DataType
    cells = (part for row in node.expressions for part in row.walk())
    inside = next((part for part in cells if not isinstance(part, constant)), None)
    if inside is not None:
        names = [c for row in node.expressions for c in row.find_all(exp.Column) if not c.table]
        ways = texts_of(reader.text, sorted(names, key=lambda c: c.this.meta.get("start", 0)))
        hint = "".join(f" Write {way.example}." for way in ways)
        raise reader.refuse(
            f"VALUES lists constants: texts, numbers, dates, TRUE, FALSE and NULL.{hint}", inside, remedy=ways
        )
    listed = node.copy()
    if listed.args.get("alias") is None:
        listed.set("alias", exp.TableAlias(this=exp.to_identifier("listed")))
    return PublicQuery(exp.select("*").from_(listed))


def _item(reader: Reader, node: exp.Expr, what: PrivateRelation | PublicQuery | Scan | str) -> Item:
    alias = node.alias_or_name or f"query{reader.place('q')}"
    names = [c.name for c in (node.args.get("alias") or exp.TableAlias()).args.get("columns") or ()]
    if isinstance(what, Scan):
        scanned = renamed(reader, PrivateRelation(what, _columns(reader, what)), names, node)
        return Item(node, Source(alias, scanned.columns), what)
    if isinstance(what, PrivateRelation):
        owned = renamed(reader, what, names, node)
        return Item(node, Source(alias, owned.columns), owned.relation)
    tree = what.tree if isinstance(what, PublicQuery) else everything(what)
    leaf = reader.leaf(tree, node)
    columns: dict[str, Expression] = {name: leaf.column(name) for name in leaf.columns}
    if names:
        if len(names) > len(columns):
            raise too_many_names(reader, len(names), len(columns), node)
        columns = under_names(names, columns)
    return Item(node, Source(alias, columns), leaf)


def _columns(reader: Reader, scan: Scan) -> TableColumns:
    """The columns of a table; of one with a zone, the time that clocks show there."""
    info = reader.catalog[scan.table]
    shown = {}
    for name in (n for n, kind in scan.columns.items() if kind is Kind.TIMESTAMP):
        column, what = scan.column(name), scan.declared.get(name)
        moments = moments_of(column, name, what, zoned=name in info.zoned, hidden=name == scan.unit)
        reader.moments[column.name], shown[name] = moments, moments.shown
    return TableColumns(info, scan, shown)


def _join_kind(reader: Reader, item: Item, join: exp.Join) -> None:
    for name, value in join.args.items():
        if value and name not in ("this", "on", "using", "side", "kind"):
            word = str(value) if isinstance(value, str) else name.upper()
            raise reader.refuse(
                f"{word} JOIN is not supported; write the condition: ON a.id = b.id.",
                join,
                remedy=Rewrite("ON a.id = b.id"),
            )
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if kind not in _HOWS or (kind in ("SEMI", "ANTI") and side not in ("", "LEFT")):
        raise reader.refuse(
            f"{kind or side} JOIN is not supported; write JOIN ... ON a.id = b.id.",
            join,
            remedy=Rewrite("ON a.id = b.id"),
        )
    item.how = _HOWS[kind] if not side or kind in ("SEMI", "ANTI") else side.lower()
    item.on = list(split_at_and(join.args["on"])) if join.args.get("on") is not None else []
    item.using = [i.name for i in join.args.get("using") or []]


def merge(reader: Reader, scope: Scope, item: Item, name: str) -> None:
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
    sides = [item.source] if find_name(name, scope.merged) is not None else [*before.sources, item.source]
    scope.sides |= {(side.alias, own) for side in sides if (own := side.named(name)) is not None}
    scope.merged[name] = merged
    item.on.append(Paired(left, right, item.node))


def _unseen(reader: Reader, item: Item, place: int, hidden: frozenset[str]) -> QueryError:
    """What refuses a condition of ON that names a table which is joined later, or one that only its own ON sees.
    Whether the condition moves there, or that join here, changes which rows stay: who wrote it knows.
    """
    term = item.on[place]
    span = None if isinstance(term, Paired) else span_of(term)
    there = Rewrite(f"ON ... AND {'...' if span is None else reader.text[span[0] : span[1] + 1]}")
    if hidden:
        says = f"only the ON of a SEMI or ANTI JOIN sees its table: put the condition there, {there.example}."
    else:
        says = f"ON names a table that is joined later: put its condition there, {there.example}; or join that before."
    return reader.refuse(says, item.node, remedy=there)


def joined(
    reader: Reader, items: list[Item], pool: list[tuple[exp.Expr, Expression]], read: ExpressionReader
) -> tuple[Relation, PublicRelation | None]:
    """The items of FROM as one relation. Conditions of WHERE that tie owners are taken out of `pool`."""
    conditions = [[_condition(read, c) for c in item.on] for item in items]
    kept = _public_first(items)
    if all(item.how == "inner" for item in items):
        return _all_inner(reader, items, [c for of_item in conditions for c in of_item], pool), kept
    return _one_by_one(reader, items, conditions, pool), kept


def _all_inner(
    reader: Reader, items: list[Item], free: list[Expression], pool: list[tuple[exp.Expr, Expression]]
) -> Relation:
    """Inner joins, in any order in which each has the owner of those before it. free: the conditions of all ON."""
    rest = list(items)
    first = next(i for i in rest if i.owned)
    rest.remove(first)
    relation, names = first.relation, first.names if rest else frozenset()
    assert not isinstance(relation, PublicRelation)
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
        relation = _join(reader, relation, chosen, usable, pool, names)
    for condition in free:
        relation = Filter(relation, condition)
    return relation


def _one_by_one(
    reader: Reader, items: list[Item], conditions: list[list[Expression]], pool: list[tuple[exp.Expr, Expression]]
) -> Relation:
    """Joins of all kinds, each with what stands before it."""
    relation = items[0].relation
    if isinstance(relation, PublicRelation):
        raise reader.refuse(
            "people's rows stand on the left: write FROM people LEFT JOIN public. A public table on the left is for "
            "GROUP BY on its columns, with LEFT JOIN of one table of people.",
            items[0].node,
            remedy=Rewrite("FROM people LEFT JOIN public"),
        )
    known, hidden = items[0].names, frozenset[str]()
    for place, (item, on) in enumerate(zip(items[1:], conditions[1:], strict=True), 1):
        seen = known | item.names
        early = next((i for i, term in enumerate(on) if not columns_of(term) <= seen), None)
        if early is not None:
            raise _unseen(reader, item, early, columns_of(on[early]) & hidden)
        # A later RIGHT or FULL JOIN brings rows back that lack these columns: WHERE must still take them out.
        brought_back = any(later.how in ("right", "full") for later in items[place + 1 :])
        relation = _join(reader, relation, item, on, list(pool) if brought_back else pool, seen)
        if item.how in ("semi", "anti"):
            hidden |= item.names
        else:
            known = seen
    return relation


def _condition(read: ExpressionReader, on: exp.Expr | Paired) -> Expression:
    if isinstance(on, Paired):
        return Compare("=", *read.aligned(on.left, on.right, on.node))
    return read.condition(on, "ON")


def _public_first(items: list[Item]) -> PublicRelation | None:
    """`public LEFT JOIN owned` and `owned RIGHT JOIN public`: an inner join whose public keys are all answered."""
    if len(items) != 2:
        return None
    a, b = items
    if isinstance(a.relation, PublicRelation) and b.owned and b.how == "left":
        b.how = "inner"
        return a.relation
    if a.owned and isinstance(b.relation, PublicRelation) and b.how == "right":
        b.how = "inner"
        return b.relation
    return None


def _ties(
    left: Relation | PublicRelation,
    right: Relation | PublicRelation,
    free: list[Expression],
    pool: list[tuple[exp.Expr, Expression]],
) -> bool:
    return owner_equality(left, right, [*free, *(c for _, c in pool)])[0]


def owner_equality(
    left: Relation | PublicRelation, right: Relation | PublicRelation, terms: list[Expression]
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


def _top(node: Relation | PublicRelation) -> tuple[Scan, ...]:
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


def _stands_in(node: Relation | PublicRelation, name: str) -> bool:
    return any(s.place == name.partition(".")[0] for s in _top(node))


def _no_owner(reader: Reader, item: Item) -> QueryError:
    return reader.refuse(
        "tables about people are joined on their unit: ON a.id = b.id (with more conditions beside it by AND). Other "
        "joins would let one person's row meet another's.",
        item.node,
        remedy=Rewrite("ON a.id = b.id"),
    )


def _join(
    reader: Reader,
    left: Relation,
    item: Item,
    on: list[Expression],
    pool: list[tuple[exp.Expr, Expression]],
    known: frozenset[str],
) -> Relation:
    """known: the columns of both sides."""
    how, right = item.how, item.relation
    if isinstance(right, PublicRelation):
        if how in ("full", "right"):
            raise reader.refuse(
                f"{how.upper()} JOIN with a public table would make rows that no one owns; use LEFT or INNER JOIN.",
                item.node,
                remedy=Rewrite("INNER JOIN"),
            )
        one = _looked_up(right, on)
        return Join(left, right, how, all_of(on), by_unit=False, one=one)  # type: ignore[arg-type]
    equal, rest = owner_equality(left, right, on)
    if not equal and how == "inner":
        equal, others = owner_equality(left, right, [c for _, c in pool])
        pool[:] = [c for c in pool if any(c[1] is o for o in others)]
    if not equal:
        raise _no_owner(reader, item)
    if how == "inner":
        rest = [*rest, *_met_in_where(known - item.names, item.names, pool)]
    same_units(reader, left, right, item.node)
    if how == "right":
        return Join(right, left, "left", all_of(rest), by_unit=True)
    return Join(left, right, how, all_of(rest), by_unit=True)  # type: ignore[arg-type]


def _met_in_where(
    left: frozenset[str], right: frozenset[str], pool: list[tuple[exp.Expr, Expression]]
) -> list[Expression]:
    """Takes out of `pool` what WHERE compares of both sides, o.k = c.k: in an inner join the same as in ON, where an
    engine looks such rows up. Above a join by the owner alone, it would first meet each of an owner's rows with each.
    """

    def across(term: Expression) -> bool:
        match term:
            case Compare(op="=", left=a, right=b):
                x, y = columns_of(a), columns_of(b)
                return bool(x and y) and ((x <= left and y <= right) or (x <= right and y <= left))
        return False

    taken = [c for c in pool if across(c[1])]
    pool[:] = [c for c in pool if c not in taken]
    return [term for _, term in taken]


def _looked_up(leaf: PublicRelation, on: list[Expression]) -> bool:
    """Whether no two rows of a public relation can meet the same owned row: an equality on a key of it."""
    # Of one kind: beside another one the engine casts, and two values of the key may become one.
    names = tuple(name for name, _ in met(leaf, all_of(on), exactly=True))
    return bool(names) and leaf.unique(names)
