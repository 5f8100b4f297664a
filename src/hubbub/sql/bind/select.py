"""One SELECT, or a set operation: owned, outer, or the private aggregate in which one becomes the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.sql.bind.aggregate import private
from hubbub.sql.bind.context import Cte, Outer, Owned, Reader
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.from_ import Rows, read_from
from hubbub.sql.bind.scope import Scope
from hubbub.sql.text.arguments import unread
from hubbub.sql.text.locate import in_words, written
from hubbub.tables.expressions import Case, Column, Expression, Literal, common_kind, comparable, whole
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.relations import (
    Combine,
    Distinct,
    Filter,
    Inner,
    PerUnit,
    Relation,
    Window,
    WindowCall,
    scans,
    units_of,
)

__all__ = ["group_term", "has_aggregate", "no_order", "select", "set_operation"]

_REFUSED = {
    "laterals": "LATERAL",
    "sample": "SAMPLE",
    "into": "INTO",
    "hint": "a hint",
    "pivots": "PIVOT",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "prewhere": "PREWHERE",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "locks": "FOR UPDATE",
    "kind": "SELECT AS",
    "settings": "SETTINGS",
    "format": "FORMAT",
    "options": "OPTION",
}
_READ = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_", "distinct"}
_READ |= {"qualify", "windows"}


def select(reader: Reader, node: exp.Select, ctes: dict[str, Cte], outer: Scope | None) -> Owned | Outer:
    """What one SELECT is.

    Raises QueryError for whatever it may not hold.
    """
    rows = read_from(reader, node, ctes)
    if rows is None:
        return Outer(outer_tree(reader, node, ctes))
    _check_clauses(reader, node)
    if _aggregates(node):
        per_unit = _per_unit(rows, node)
        return per_unit if per_unit is not None else private(rows, node)
    if rows.kept is not None:
        raise reader.refuse("a public table LEFT JOIN people's rows is for GROUP BY on its columns.", node)
    return _projection(rows, node)


def _check_clauses(reader: Reader, node: exp.Select) -> None:
    for name, value in node.args.items():
        if not value or name in _READ:
            continue
        word = _REFUSED.get(name, name.strip("_").upper())
        place = value[0] if isinstance(value, list) else value
        raise reader.refuse(
            f"{word} is not supported in a private question.",
            place if isinstance(place, exp.Expr) else None,
            word=word if word.isupper() else None,
        )
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise reader.refuse("DISTINCT ON is not supported; use a window partitioned by the unit.", distinct)
    for name in ("group", "order", "limit", "offset"):
        clause = node.args.get(name)
        if clause is not None:
            for part in (clause, *(clause.expressions if isinstance(clause, exp.Order) else ())):
                modifier = unread(part)
                if modifier is not None:
                    raise reader.refuse(f"{modifier} is not supported here.", part)


def _aggregates(node: exp.Select) -> bool:
    """Whether a SELECT groups its rows: GROUP BY, HAVING, or an aggregate that is no window's function."""
    if node.args.get("group") is not None or node.args.get("having") is not None:
        return True
    return any(has_aggregate(item) for item in node.expressions)


def has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inner = node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.Filter) else node.this
        parts = [*_children(inner), *(node.args.get("partition_by") or [])]
        parts += [node.args["order"]] if node.args.get("order") else []
        return any(map(has_aggregate, parts))
    if isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping):
        return True
    return any(map(has_aggregate, _children(node)))


def _children(node: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for value in node.args.values():
        found += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
    return found


# -- outer ------------------------------------------------------------------------------------------------------


def outer_tree(reader: Reader, node: exp.Query, ctes: dict[str, Cte]) -> exp.Query:
    """A query over public and released tables: its sub-queries resolved, its WITH moved to the top."""
    copy = node.copy()
    copy.set("with_", None)
    for child in _children(copy):
        _resolve_inside(reader, child, ctes)
    return copy


def _resolve_inside(reader: Reader, node: exp.Expr, ctes: dict[str, Cte]) -> None:
    if isinstance(node, exp.Select | exp.SetOperation):
        found = reader.resolve(node, ctes)
        if isinstance(found, Owned):
            raise reader.refuse(
                "rows of people are never shown: this part reads them without an aggregate.", _first_shown(node)
            )
        node.replace(found.tree)
        return
    if isinstance(node, exp.Table):
        _outer_table(reader, node, ctes)
        return
    for child in _children(node):
        _resolve_inside(reader, child, ctes)


def _first_shown(node: exp.Expr) -> exp.Expr:
    selects = node.selects if isinstance(node, exp.Query) else []
    return selects[0] if selects else node


def _outer_table(reader: Reader, node: exp.Table, ctes: dict[str, Cte]) -> None:
    found = reader.named(node, ctes)
    if isinstance(found, str):
        name = found
    elif isinstance(found, Outer):
        name = found.tree.args["from_"].this.name
    else:
        raise reader.refuse("rows of people are never shown: this part reads them without an aggregate.", node)
    if node.name != name:
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        node.set("this", exp.to_identifier(name, quoted=True))


# -- projections and windows --------------------------------------------------------------------------------------


def _projection(rows: Rows, node: exp.Select) -> Owned:
    """Columns of the same rows: expressions, windows over one owner's rows, DISTINCT within the owner."""
    reader = rows.reader
    no_order(reader, node)
    for name in ("limit", "offset"):
        if node.args.get(name) is not None:
            raise reader.refuse(
                f"{name.upper()} below an aggregate would let one person's row decide whether another's is there.",
                node.args[name],
                word=name,
            )
    windows = _Windows(rows, node)
    columns: dict[str, Expression] = {}
    for item in node.expressions:
        for name, expression in _item(rows, item, windows.reader()):
            unique, i = name, 1
            while unique in columns:
                unique, i = f"{name}_{i}", i + 1
            columns[unique] = expression
    qualify = node.args.get("qualify")
    if qualify is not None:
        named = {n.lower(): e for n, e in columns.items()}

        def column(at: exp.Column) -> Expression:
            if not at.table and not rows.scope.knows(at) and at.name.lower() in named:
                return named[at.name.lower()]
            return rows.scope.column(at)

        condition = windows.reader(column).condition(qualify.this, "QUALIFY")
        windows.attach()
        rows.keep(condition)
    windows.attach()
    relation = rows.relation
    if node.args.get("distinct") is not None:
        relation, columns = _distinct(reader, relation, columns)
    return Owned(relation, columns)


def no_order(reader: Reader, node: exp.Query) -> None:
    """Refuse an order of rows that nobody sees. Where an order means something it stands in a window's OVER."""
    if node.args.get("order") is not None and not (node.args.get("limit") or node.args.get("offset")):
        raise reader.refuse(
            "ORDER BY below an aggregate orders rows that nobody sees: leave it out, or order the answer, outside.",
            node.args["order"],
            word="ORDER BY",
        )


def _item(rows: Rows, item: exp.Expr, read: ExpressionReader) -> list[tuple[str, Expression]]:
    """The columns of one term of SELECT: one, or those of a star."""
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        scope = rows.scope
        if isinstance(item, exp.Column):
            source = scope.source(item.table)
            if source is None:
                raise rows.reader.refuse(f"{item.table!r}: no such table in this question.", item)
            scope = Scope(rows.reader.text, [source])
        left_out = {c.name.lower() for c in star.args.get("except_") or []}
        for name, value in star.args.items():
            if value and name != "except_":
                raise rows.reader.refuse(f"{name.strip('_').upper()} is not supported here.", item)
        return [(name, e) for name, e in scope.every().items() if name.lower() not in left_out]
    if isinstance(item, exp.Alias):
        read.only_known_arguments(item)
    name = item.alias_or_name or f"column{len(rows.reader.text)}"
    return [(name, read.read(item.unalias()))]


def _distinct(
    reader: Reader, relation: Relation, columns: dict[str, Expression]
) -> tuple[Relation, dict[str, Expression]]:
    place = reader.place("d")
    named = tuple((f"{place}.{i}", expression) for i, expression in enumerate(columns.values()))
    of_result = {name: Column(own, _kind(e), name) for (own, e), name in zip(named, columns, strict=True)}
    return Distinct(relation, named), dict(of_result)


def _kind(node: Expression) -> Kind:
    """The kind of a column that holds an expression: whole numbers stay whole."""
    return Kind.INTEGER if node.kind in NUMERIC and whole(node) else node.kind


_WINDOWED: dict[type[exp.Expr], tuple[str, int]] = {
    exp.RowNumber: ("ROW_NUMBER", 0),
    exp.Rank: ("RANK", 0),
    exp.DenseRank: ("DENSE_RANK", 0),
    exp.Lag: ("LAG", 1),
    exp.Lead: ("LEAD", 1),
    exp.FirstValue: ("FIRST_VALUE", 1),
    exp.First: ("FIRST_VALUE", 1),
    exp.LastValue: ("LAST_VALUE", 1),
    exp.Last: ("LAST_VALUE", 1),
    exp.Sum: ("SUM", 1),
    exp.Avg: ("AVG", 1),
    exp.Min: ("MIN", 1),
    exp.Max: ("MAX", 1),
    exp.Count: ("COUNT", 1),
}


@dataclass
class _Windows:
    """The window functions of one SELECT: each becomes a column, computed below the projection."""

    rows: Rows
    node: exp.Select
    found: list[tuple[str, WindowCall]] = field(default_factory=list)
    place: str = ""

    def reader(self, column: object = None) -> ExpressionReader:
        return ExpressionReader(
            self.rows.reader.text,
            column or self.rows.scope.column,  # type: ignore[arg-type]
            self._window,
            subquery=self.rows._subquery,
        )

    def attach(self) -> None:
        if self.found:
            self.rows.relation = Window(self.rows.relation, tuple(self.found))
            self.found, self.place = [], ""

    def _window(self, node: exp.Expr) -> Expression:
        reader = self.rows.reader
        if not isinstance(node, exp.Window):
            raise reader.refuse("an aggregate cannot stand here; conditions on answers go into HAVING.", node)
        node = self._with_name(node)
        function = node.this
        if isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            raise reader.refuse("IGNORE NULLS and FILTER are not supported in windows.", node)
        if type(function) not in _WINDOWED:
            raise reader.refuse(f"the window function {written(function, reader.text)} is not supported.", node)
        name, takes = _WINDOWED[type(function)]
        rows = self.rows.expressions()
        arguments: tuple[Expression, ...] = ()
        if isinstance(function, exp.Count) and isinstance(function.this, exp.Star):
            name, takes = "COUNT_ROWS", 0
        if takes:
            if isinstance(function.this, exp.Distinct):
                raise reader.refuse("DISTINCT is not supported in windows.", node)
            arguments = (rows.read(function.this),)
            for extra in ("offset", "default"):
                value = function.args.get(extra)
                if value is not None:
                    arguments = (*arguments, rows.read(value))
        if name in ("LAG", "LEAD") and len(arguments) > 1:
            offset = arguments[1].value if isinstance(arguments[1], Literal) else None
            if not isinstance(offset, int) or isinstance(offset, bool) or abs(offset) > 10**6:
                raise reader.refuse(f"{name} takes a constant whole number up to 1,000,000 as its offset.", node)
        if len(arguments) > 2 and not comparable(arguments[0].kind, arguments[2].kind):
            raise reader.refuse(f"{name}: the value and its default must be of one kind.", node)
        if name in ("SUM", "AVG") and arguments[0].kind not in NUMERIC:
            raise reader.refuse(f"{name} needs a number.", node)
        partition = tuple(rows.read(p) for p in node.args.get("partition_by") or [])
        owners = units_of(self.rows.relation)
        if not any(isinstance(p, Column) and p.name in owners for p in partition):
            unit = scans(self.rows.relation)[0].unit
            hint = f": PARTITION BY {unit}" if unit else ""
            raise reader.refuse(
                f"a window over people's rows is partitioned by the unit{hint}. Otherwise one person's row would "
                "change what is computed for another.",
                node,
            )
        order = self._order(node, rows)
        call = WindowCall(name, arguments, partition, order, _frame(reader, node), _window_kind(name, arguments))
        self.place = self.place or reader.place("w")
        for own, known in self.found:
            if known == call:
                return Column(own, call.kind, in_words(node))
        own = f"{self.place}.{len(self.found)}"
        self.found.append((own, call))
        return Column(own, call.kind, in_words(node))

    def _with_name(self, node: exp.Window) -> exp.Window:
        """A window that is named in the WINDOW clause, written out."""
        name = node.args.get("alias")
        if name is None:
            return node
        for named in self.node.args.get("windows") or []:
            if named.name.lower() == name.name.lower():
                full = node.copy()
                full.set("alias", None)
                for part in ("partition_by", "order", "spec"):
                    if named.args.get(part) is not None and full.args.get(part) is None:
                        value = named.args[part]
                        full.set(part, [v.copy() for v in value] if isinstance(value, list) else value.copy())
                return full
        raise self.rows.reader.refuse(f"there is no window {name.name!r}.", node)

    def _order(self, node: exp.Window, rows: ExpressionReader) -> tuple[tuple[Expression, bool, bool], ...]:
        clause = node.args.get("order")
        return tuple(
            (rows.read(t.this), bool(t.args.get("desc")), bool(t.args.get("nulls_first")))
            for t in (clause.expressions if clause is not None else ())
        )


def _window_kind(name: str, arguments: tuple[Expression, ...]) -> Kind:
    if name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "COUNT", "COUNT_ROWS"):
        return Kind.INTEGER
    if name == "AVG":
        return Kind.NUMBER
    return common_kind(_kind(a) for i, a in enumerate(arguments) if i != 1)


def _frame(reader: Reader, node: exp.Window) -> str:
    """The frame of a window, from its parts alone."""
    spec = node.args.get("spec")
    if spec is None:
        return ""
    kind = str(spec.args.get("kind") or "").upper()
    ends = []
    for end in ("start", "end"):
        value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
        if value is None:
            ends.append("CURRENT ROW")
        elif isinstance(value, str):
            ends.append(f"{value.upper()} {side}".strip())
        elif (
            isinstance(value, exp.Literal)
            and not value.is_string
            and str(value.this).isdigit()
            and len(str(value.this)) < 10
            and kind == "ROWS"
        ):
            ends.append(f"{value.this} {side}")
        else:
            raise reader.refuse("a frame counts ROWS by whole numbers.", node)
    known = {"UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", "CURRENT ROW"}
    fine = all(e in known or e.split()[0].isdigit() for e in ends) and kind in ("ROWS", "RANGE")
    if not fine or spec.args.get("exclude"):
        raise reader.refuse("this frame is not supported; use ROWS or RANGE BETWEEN ... AND ...", node)
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}"


# -- per-unit aggregation -----------------------------------------------------------------------------------------


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


def _per_unit(rows: Rows, node: exp.Select) -> Owned | None:
    """GROUP BY the unit, and perhaps more: one row per owner and key. None where the unit is not among the keys."""
    reader, group = rows.reader, node.args.get("group")
    if group is None or rows.kept is not None:
        return None
    plain = rows.expressions()
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
    place = reader.place("u")
    keys: list[tuple[str, Expression]] = []
    for term in terms:
        # A unit's own column may be of a type that no expression can use.
        own = isinstance(term, exp.Column) and _is_owner(rows, term, owners)
        read = rows.scope.find(term) if own and isinstance(term, exp.Column) else plain.read(term)
        if all(read != e for _, e in keys):
            keys.append((f"{place}.k{len(keys)}", read))
    inner: list[tuple[str, Inner]] = []

    def known(at: exp.Expr) -> Expression | None:
        if isinstance(at, exp.Literal) or has_aggregate(at) or list(at.find_all(exp.Query)):
            return None
        if not isinstance(at, exp.Column) and all(isinstance(e, Column) for _, e in keys):
            return None
        if any(not rows.scope.knows(c) for c in at.find_all(exp.Column)):
            return None
        read = plain.read(at)
        return next((Column(name, _kind(e), in_words(at)) for name, e in keys if e == read), None)

    def column(at: exp.Column) -> Expression:
        raise reader.refuse(f"the column {at.name!r} is neither in GROUP BY nor inside an aggregate.", at)

    def aggregate(at: exp.Expr) -> Expression:
        found = _inner(rows, at)
        for name, one in inner:
            if one == found:
                return Column(name, found.kind, in_words(at))
        name = f"{place}.{len(inner)}"
        inner.append((name, found))
        return Column(name, found.kind, in_words(at))

    above = ExpressionReader(reader.text, column, aggregate, known)
    columns: dict[str, Expression] = {}
    for item in node.expressions:
        if isinstance(item, exp.Star):
            raise reader.refuse("'*' beside GROUP BY: name the columns.", item)
        columns[item.alias_or_name or f"column{len(columns)}"] = above.read(item.unalias())
    having = node.args.get("having")
    named = {n.lower(): e for n, e in columns.items()}

    def column_or_name(at: exp.Column) -> Expression:
        return named[at.name.lower()] if not at.table and at.name.lower() in named else column(at)

    filtering = ExpressionReader(reader.text, column_or_name, aggregate, known)
    condition = filtering.condition(having.this, "HAVING") if having is not None else None
    for name in ("limit", "offset", "qualify"):
        if node.args.get(name) is not None:
            raise reader.refuse(f"{name.upper()} is not supported in a group by the unit.", node.args[name], word=name)
    relation: Relation = PerUnit(rows.relation, tuple(keys), tuple(inner))
    if condition is not None:
        relation = Filter(relation, condition)
    if node.args.get("distinct") is not None:
        relation, columns = _distinct(reader, relation, columns)
    return Owned(relation, columns)


def _is_owner(rows: Rows, node: exp.Column, owners: frozenset[str]) -> bool:
    if not rows.scope.knows(node):
        return False
    read = rows.scope.find(node)
    return isinstance(read, Column) and read.name in owners


def group_term(rows: Rows, term: exp.Expr, select: exp.Select) -> exp.Expr:
    """What a term of GROUP BY names: itself, or a column of SELECT by position or alias."""
    while isinstance(term, exp.Paren):
        term = term.this
    if isinstance(term, exp.Literal) and not term.is_string and str(term.this).isdigit():
        place = int(term.this)
        if not 1 <= place <= len(select.expressions):
            raise rows.reader.refuse(f"GROUP BY {place}: SELECT has {len(select.expressions)} columns.", term)
        chosen: exp.Expr = select.expressions[place - 1].unalias()
        return chosen
    if isinstance(term, exp.Column) and not rows.scope.knows(term):
        named = [i for i in select.expressions if isinstance(i, exp.Alias) and i.alias.lower() == term.name.lower()]
        if named and not term.table:
            return named[0].unalias()
    return term


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
            raise reader.refuse("DISTINCT is supported in COUNT of one column.", node)
        function, argument_node = "COUNT_DISTINCT", argument_node.expressions[0]
    modifier = unread(node)
    if modifier is not None:
        raise reader.refuse(f"{modifier} is not supported here.", node)
    argument = read.read(argument_node)
    if function in ("SUM", "AVG", "MEDIAN") and argument.kind not in (*NUMERIC, Kind.NULL):
        raise reader.refuse(f"{function} needs a number.", node)
    if function in ("ALL", "ANY") and argument.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise reader.refuse("BOOL_AND and BOOL_OR need conditions.", node)
    if condition is not None:
        argument = _where(condition, argument, None)
    kind = {
        "COUNT": Kind.INTEGER,
        "COUNT_DISTINCT": Kind.INTEGER,
        "AVG": Kind.NUMBER,
        "MEDIAN": Kind.NUMBER,
        "ALL": Kind.BOOLEAN,
        "ANY": Kind.BOOLEAN,
    }.get(function, _kind(argument))
    return Inner(function, argument, kind)  # type: ignore[arg-type]


def _where(condition: Expression, value: Expression, also: Expression | None) -> Expression:
    kept: Expression = Case((condition,), (value,), Literal(None))
    return kept if also is None else Case((also,), (kept,), Literal(None))


# -- set operations -----------------------------------------------------------------------------------------------


def set_operation(reader: Reader, node: exp.SetOperation, ctes: dict[str, Cte]) -> Owned | Outer:
    """UNION, INTERSECT, EXCEPT: of owned relations of one unit space, or of releases and public tables."""
    word = type(node).__name__.upper()
    sides = [reader.resolve(side.copy(), ctes) for side in (node.this, node.expression)]
    left, right = sides
    if isinstance(left, Outer) and isinstance(right, Outer):
        copy = node.copy()
        copy.set("with_", None)
        copy.set("this", left.tree)
        copy.set("expression", right.tree)
        for name in ("order", "limit", "offset"):
            if copy.args.get(name) is not None:
                _resolve_inside(reader, copy.args[name], ctes)
        return Outer(copy)
    if not (isinstance(left, Owned) and isinstance(right, Owned)):
        raise reader.refuse(f"{word} of people's rows with public or released ones is not supported.", node, word=word)
    no_order(reader, node)
    for name, value in node.args.items():
        if value and name not in ("this", "expression", "distinct", "with_"):
            raise reader.refuse(f"{name.strip('_').upper()} is not supported with {word} of people's rows.", node)
    reader.same_units(left.relation, right.relation, node)
    if scans(left.relation)[0].each_row or scans(right.relation)[0].each_row:
        raise reader.refuse(f"{word} needs rows with a unit column; here each row is a unit of its own.", node)
    if len(left.columns) != len(right.columns):
        raise reader.refuse(f"{word}: {len(left.columns)} columns and {len(right.columns)}.", node)
    place = reader.place("s")
    columns = []
    for i, (name, x, y) in enumerate(zip(left.columns, left.columns.values(), right.columns.values(), strict=True)):
        if not comparable(x.kind, y.kind):
            raise reader.refuse(f"{word}: the column {name!r} has two kinds of values.", node)
        kind = common_kind((_kind(x), _kind(y)))
        columns.append(Column(f"{place}.{i}", kind, name))
    op = f"{word}{'' if node.args.get('distinct') else ' ALL'}"
    relation = Combine(
        op,  # type: ignore[arg-type]
        left.relation,
        right.relation,
        tuple(columns),
        tuple(left.columns.values()),
        tuple(right.columns.values()),
    )
    return Owned(relation, dict(zip(left.columns, columns, strict=True)))
