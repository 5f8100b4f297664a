"""The private aggregate: GROUP BY and aggregates over owned rows become a question, the rest SQL over its release.

Every aggregate becomes the column `a0`, `a1`, ... of the table `releasedN`, every term of GROUP BY `k0`, ...; what
is around them (ratios, HAVING, ORDER BY, windows over the answer) stays as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import PublicQuery
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.from_ import Rows
from hubbub.sql.bind.group_by import same_without_distinct
from hubbub.sql.bind.groups import Groups, read_groups
from hubbub.sql.bind.kinds import wrong_kind
from hubbub.sql.bind.outer import resolve_inside
from hubbub.sql.bind.unmatched import refuse_unmatched
from hubbub.sql.bind.weighted import weighted
from hubbub.sql.text.arguments import unread
from hubbub.sql.text.hints import instead, ways
from hubbub.sql.text.locate import written
from hubbub.sql.text.repairs import called_otherwise
from hubbub.tables.aggregate_query import Aggregate, AggregateQuery, Key, Output
from hubbub.tables.aggregates import Function, forms, names, spelled
from hubbub.tables.aggregates.count import COUNT_DISTINCT, COUNT_ROWS, COUNT_UNITS, COUNT_VALUES
from hubbub.tables.aggregates.quantile import QUANTILE
from hubbub.tables.expressions import Case, Column, Expression, Literal, Not
from hubbub.tables.growth import too_large
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind
from hubbub.tables.relations import scans, units_of
from hubbub.tables.repeats import repeats_too_much

__all__ = ["arguments_of", "function_of", "private", "released_table"]


def private(rows: Rows, node: exp.Select) -> PublicQuery:
    """The question that a SELECT asks, and its outer part.

    Raises QueryError for what has no private answer, or would show rows.
    """
    return _Private(rows, node, read_groups(rows, node)).read()


@dataclass
class _Private:
    rows: Rows
    node: exp.Select
    groups: Groups
    aggregates: list[Aggregate] = field(default_factory=list)

    def read(self) -> PublicQuery:
        reader, node = self.rows.reader, self.node
        groups = self.groups
        items, taken = [], set[str]()
        outputs: list[tuple[str, exp.Expr]] = []
        computed = []
        known: dict[str, exp.Expr] = {}
        for item in node.expressions:
            shown, name, what = self._item(item, taken, known)
            items.append(exp.alias_(shown, name, quoted=True))
            computed.append(shown)
            outputs.append((name, what))
            # As in DuckDB, a name given earlier in SELECT may be used later, unless it is a column's.
            if not self.rows.scope.knows(exp.column(name, quoted=True)):
                known[name.lower()] = what
        tree = exp.Select(expressions=items)
        self._read_clauses(tree, outputs)
        if not self.aggregates:
            raise reader.refuse(
                "every answer is an aggregate, such as COUNT(*) or AVG(x); rows of people are never shown.",
                node.expressions[0] if node.expressions else node,
                remedy=Rewrite("COUNT(*)"),
            )
        question = AggregateQuery(
            self.rows.relation, tuple(groups.keys), tuple(self.aggregates), groups.sets, tuple(groups.names)
        )
        reason = too_large(question) or repeats_too_much(question)
        if reason is not None:
            raise reader.refuse(reason, node)
        number, places = reader.ask(question)
        self._place_aggregates(tree, places)
        for division in list(tree.find_all(exp.IntDiv)):
            # Sums are doubles here, whose `//` keeps its fraction.
            quotient = exp.Div(this=exp.paren(division.this.copy()), expression=exp.paren(division.expression.copy()))
            division.replace(exp.Anonymous(this="trunc", expressions=[quotient]))
        tree.set("from_", exp.From(this=released_table(number)))
        rowwise = None
        plain = not any(node.args.get(n) for n in ("qualify", "distinct", "windows"))
        if plain and not any(list(c.find_all(exp.Window, exp.Query)) for c in computed):
            rowwise = exp.Select(expressions=[i.copy() for i in tree.expressions])
        question = reader.questions[number]
        outputs_read = tuple(Output(name, number, self._meaning(what, question, places)) for name, what in outputs)
        return PublicQuery(tree, outputs_read, rowwise)

    def _read_clauses(self, tree: exp.Select, outputs: list[tuple[str, exp.Expr]]) -> None:
        """HAVING, ORDER BY and the like, over what is released."""
        for name in ("having", "qualify", "order", "limit", "offset", "distinct", "windows"):
            clause = self.node.args.get(name)
            if clause is None:
                continue
            shown_names = {n.lower(): e for n, e in outputs}
            copies = [c.copy() for c in clause] if isinstance(clause, list) else [clause.copy()]
            if name == "order":
                _all_columns(copies[0], len(outputs))
                _by_position(copies[0], list(shown_names))
            above = [self._above(c, shown_names) for c in copies]
            changed = above if isinstance(clause, list) else above[0]
            if name == "having":
                assert isinstance(changed, exp.Having)
                tree.set("where", exp.Where(this=changed.this))
            else:
                tree.set(name, changed)

    def _meaning(self, what: exp.Expr, question: AggregateQuery, places: list[int]) -> Key | Aggregate | None:
        if isinstance(what, exp.Column) and what.table == "r":
            at = int(what.name[1:])
            return question.keys[at] if what.name[0] == "k" else question.aggregates[places[at]]
        return None

    def _place_aggregates(self, tree: exp.Select, places: list[int]) -> None:
        """The columns a0, a1, ... under the numbers that the question gives them."""
        for column in tree.find_all(exp.Column):
            if column.table == "r" and column.name[0] == "a" and column.meta.get("own"):
                column.set("this", exp.to_identifier(f"a{places[int(column.name[1:])]}", quoted=True))

    # -- above the aggregate ------------------------------------------------------------------------------------

    def _item(self, item: exp.Expr, taken: set[str], known: Mapping[str, exp.Expr]) -> tuple[exp.Expr, str, exp.Expr]:
        """One column of the answer: its SQL over the release, and its name."""
        reader = self.rows.reader
        inner = item.unalias()
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(item, exp.Alias) and unread(item) is not None:
            raise reader.refuse(f"{unread(item)} is not supported here.", item)
        star = inner.this if isinstance(inner, exp.Column) else inner
        if isinstance(star, exp.Star):
            raise reader.refuse(
                "'*' would show rows of people; ask for aggregates such as COUNT(*).",
                inner,
                word="*",
                remedy=Rewrite("COUNT(*)"),
            )
        shown = self._above(inner.copy(), known)
        name = item.alias if isinstance(item, exp.Alias) else self._default_name(shown, inner)
        if name.lower() in taken and isinstance(item, exp.Alias):
            raise reader.refuse(
                f'two columns of the answer are named {name!r}; write AS "{name}_2".',
                item,
                remedy=Rewrite(f'AS "{name}_2"'),
            )
        unique, i = name, 2
        while unique.lower() in taken:
            unique, i = f"{name}_{i}", i + 1
        taken.add(unique.lower())
        return shown, unique, shown

    def _default_name(self, shown: exp.Expr, asked: exp.Expr) -> str:
        if not (isinstance(shown, exp.Column) and shown.table == "r"):
            return "value"
        at = int(shown.name[1:])
        if shown.name[0] == "k":
            plain, known = asked.name if isinstance(asked, exp.Column) else "", self.groups.names[at]
            return (known if not plain or known.lower() == plain.lower() else plain) or "key"
        aggregate = self.aggregates[at]
        word = aggregate.function.names.word
        named = self.rows.scope.names_of(aggregate.argument) if isinstance(aggregate.argument, Column) else ()
        return f"{word}_{named[0]}" if named else word

    def _above(self, node: exp.Expr, names: Mapping[str, exp.Expr]) -> exp.Expr:
        """A piece of SQL with its aggregates and keys replaced by columns of the release, its sub-queries resolved.

        names: the columns of the answer, which ORDER BY, HAVING and QUALIFY may use, and what each is.
        """
        reader = self.rows.reader
        if isinstance(node, exp.Subquery | exp.Exists | exp.Query):
            return self._nested(node)
        if isinstance(node, exp.Window):
            return self._window(node, names)
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        whole_key = self._key_of(node)
        if whole_key is not None:
            return whole_key
        if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
            return self._aggregate(node)
        if isinstance(node, exp.Anonymous):
            self._check_called(node)
        if isinstance(node, exp.Column):
            if not node.table and node.name.lower() in names:
                # What the name stands for: beside the release's own columns the name itself could mean another thing.
                return exp.paren(names[node.name.lower()].copy())
            if self.rows.scope.knows(node):
                raise reader.refuse(
                    f"the column {node.name!r} is neither in GROUP BY nor inside an aggregate; rows of people are "
                    f"never shown. Write GROUP BY {node.sql()}.",
                    node,
                    remedy=Rewrite(f"GROUP BY {node.sql()}"),
                )
            self.rows.scope.column(node)  # refuses the unknown name, with a hint
        self._change_children(node, names)
        return node

    def _check_called(self, node: exp.Anonymous) -> None:
        """Raises QueryError for a function of rows that is no aggregate: its name is misspelt, or there is none."""
        star = any(isinstance(argument, exp.Star) for argument in node.expressions)
        if not star and all(
            any(isinstance(p, exp.AggFunc | exp.Query) for p in _up_to(column, node))
            or not self.rows.scope.knows(column)
            or any(self._key_of(p) is not None for p in (column, *_up_to(column, node)))
            for column in node.find_all(exp.Column)
        ):
            return
        name = str(node.this).upper()
        raise self.rows.reader.refuse(
            f"there is no aggregate {name}. {instead(name, names())}Allowed: {forms()}.",
            node,
            word=f"{node.this}(",
            remedy=called_otherwise(self.rows.reader.text, name, ways(name, names())),
        )

    def _window(self, node: exp.Window, names: Mapping[str, exp.Expr]) -> exp.Expr:
        """A window function over the rows of the answer: it stays what it is, and what it looks at is released."""
        self._check_windowed(node)
        inner = node.this
        while isinstance(inner, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            if isinstance(inner, exp.Filter):
                inner.expression.replace(self._above(inner.expression, names))
            inner = inner.this
        self._change_children(inner, names)
        for part in ("partition_by", "order"):
            value = node.args.get(part)
            for child in value if isinstance(value, list) else [value] if value is not None else []:
                child.replace(self._above(child, names))
        return node

    def _check_windowed(self, node: exp.Window) -> None:
        """Raises QueryError for a window function of a column that only the rows below the aggregate have."""
        inner = node.this
        while isinstance(inner, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            inner = inner.this
        word = written(inner, self.rows.reader.text)
        for column in inner.find_all(exp.Column):
            above = [p for p in _up_to(column, inner) if isinstance(p, exp.AggFunc | exp.Query)]
            keyed = any(self._key_of(p) is not None for p in (column, *_up_to(column, inner)))
            if not above and not keyed and self.rows.scope.knows(column):
                above_it = Rewrite(f"{word}(SUM({column.name})) OVER (...)")
                raise self.rows.reader.refuse(
                    f"{word}(...) OVER (...) works on the rows of the answer, which have no column {column.name!r}. "
                    f"Aggregate it first: {above_it.in_python()}; or take the window to a sub-query of the rows, "
                    "partitioned by the unit.",
                    column,
                    remedy=(above_it,),
                )

    def _change_children(self, node: exp.Expr, names: Mapping[str, exp.Expr]) -> None:
        for value in list(node.args.values()):
            for child in list(value) if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr) and not isinstance(child, exp.Identifier | exp.DataType):
                    changed = self._above(child, names)
                    if changed is not child:
                        child.replace(changed)

    def _nested(self, node: exp.Expr) -> exp.Expr:
        holder = exp.Paren(this=node)
        resolve_inside(self.rows.reader, holder, self.rows.ctes)
        inner = holder.this
        assert isinstance(inner, exp.Expr)
        return inner.pop()

    def _released(self, name: str) -> exp.Column:
        column = exp.column(name, "r", quoted=True)
        column.meta["own"] = True
        return column

    def _key_of(self, node: exp.Expr) -> exp.Column | None:
        """The released column of a piece of SQL that stands in GROUP BY, word for word or not."""
        scope = self.rows.scope
        if isinstance(node, exp.Column):
            if not isinstance(node.this, exp.Identifier) or not scope.knows(node):
                return None
            read: Expression = scope.find(node)
        else:
            if isinstance(node, exp.Literal | exp.AggFunc | exp.Identifier | exp.Order | exp.Ordered):
                return None
            if all(isinstance(e, Column) for e in self.groups.written) or not isinstance(node, exp.Condition):
                return None
            if next(node.find_all(exp.AggFunc, exp.Window, exp.Query), None) is not None:
                return None
            try:
                read = self.rows.expressions().read(node)
            except QueryError:
                return None
        return self._released(f"k{self.groups.written.index(read)}") if read in self.groups.written else None

    def _grouping(self, node: exp.Expr) -> exp.Expr:
        """GROUPING(a, b): which of the keys a row sums over, as bits."""
        bits: list[exp.Expr] = []
        for term in node.expressions:
            column = self._key_of(term)
            if column is None:
                ways = tuple(Rewrite(f"GROUPING({name})") for name in self.groups.names if name)
                hint = " or ".join(way.example for way in ways)
                said = f"GROUPING takes terms of GROUP BY{hint and f': {hint}'}."
                raise self.rows.reader.refuse(said, node, remedy=ways)
            at = column.name[1:]
            bits.append(self._released(f"g{at}") if self.groups.wide else exp.Literal.number(0))
        total: exp.Expr = bits[0] if bits else exp.Literal.number(0)
        for bit in bits[1:]:
            total = exp.Add(this=exp.Mul(this=exp.Paren(this=total), expression=exp.Literal.number(2)), expression=bit)
        return exp.Paren(this=total)

    # -- aggregates ---------------------------------------------------------------------------------------------

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        aggregate = self._read_aggregate(node)
        for one in aggregate if isinstance(aggregate, list) else [aggregate]:
            refuse_unmatched(self.rows, one, node)
        if isinstance(aggregate, list):
            return exp.Array(expressions=[self._column_of(weighted(one, self.rows, node)) for one in aggregate])
        return self._column_of(weighted(aggregate, self.rows, node))

    def _column_of(self, aggregate: Aggregate) -> exp.Column:
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return self._released(f"a{self.aggregates.index(aggregate)}")

    def _read_aggregate(self, node: exp.Expr) -> Aggregate | list[Aggregate]:
        reader, rows = self.rows.reader, self.rows.expressions()
        condition: Expression | None = None
        whole = node
        if isinstance(node, exp.Filter):
            condition = rows.condition(node.expression.this, "FILTER")
            node = node.this
        if isinstance(node, exp.ApproxDistinct):
            node = exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True)
        function = function_of(node)
        if function is None and type(node) not in _FORMS:
            raise self._unsupported(node, whole)
        for part in (node, *(c for c in (node.this,) if isinstance(c, exp.Star | exp.Distinct))):
            modifier = unread(part) if not isinstance(part, exp.WithinGroup) and type(part) not in _SHARES else None
            if modifier is not None:
                raise reader.refuse(f"{modifier} is not supported here.", whole)

        def kept(value: Expression) -> Expression:
            return value if condition is None else Case((condition,), (value,), Literal(None))

        kind = type(node)
        if isinstance(node, exp.Count):
            return self._count(node, condition, kept)
        if isinstance(node, exp.CountIf):
            met = rows.condition(node.this, "COUNT_IF")
            return Aggregate(COUNT_VALUES, (kept(Case((met,), (Literal(1),), Literal(None))),))
        if isinstance(node, exp.WithinGroup) or kind in _SHARES:
            return self._quantiles(node, rows, kept)
        if isinstance(node, exp.Window) or function is None:
            raise reader.refuse("this window function is not supported here.", node)
        given = arguments_of(node)
        if isinstance(node.this, exp.Distinct) and function.names.sql in ("MIN", "MAX"):
            raise same_without_distinct(reader, node, function.names.sql)
        if any(isinstance(n, exp.Distinct) for n in given):
            said = f"DISTINCT inside {function.names.sql} is not supported; group by the value first"
            raise reader.refuse(f"{said}: {_BY_VALUE.example}.", node, remedy=_BY_VALUE)
        if len(given) < function.arity:
            way = Rewrite(f"{function.names.sql}({'x' if function.arity == 1 else 'x, y'})")
            number = "one argument" if function.arity == 1 else "two arguments"
            raise reader.refuse(f"{function.names.sql} takes {number}: {way.example}.", node, remedy=way)
        if condition is not None and function.arity == 0:
            raise reader.refuse(f"FILTER is not supported for {function.names.sql}; write WHERE.", node, remedy=_WHERE)
        arguments = tuple(kept(self._argument(n, function, rows)) for n in given[: function.arity])
        constants = tuple(self._constant(n, rows) for n in given[function.arity :])
        try:
            return function.made(arguments, constants)
        except QueryError as error:
            raise reader.refuse(str(error), node, remedy=error.remedies) from None

    def _constant(self, node: exp.Expr, rows: ExpressionReader) -> object:
        """The value of a constant argument; the expression itself where it is not one."""
        read = rows.read(node)
        return read.value if isinstance(read, Literal) else read

    def _unsupported(self, node: exp.Expr, whole: exp.Expr) -> QueryError:
        reader = self.rows.reader
        name = written(node, reader.text)
        called = f"{name}(".lower()
        return reader.refuse(
            f"the aggregate {name} is not supported. {instead(name, names())}Allowed: {forms()}.",
            whole,
            word=called if called in reader.text.lower() else None,
            remedy=called_otherwise(reader.text, name, ways(name, names())),
        )

    def _argument(self, node: exp.Expr, function: Function, rows: ExpressionReader, called: str = "") -> Expression:
        """An argument of a kind that the function takes; a condition counts as 1 and 0 in some."""
        read, where = rows.read(node), called or function.names.sql
        if read.kind is Kind.BOOLEAN and function.conditions:
            return Case((read, Not(read)), (Literal(1), Literal(0)), Literal(None))
        if read.kind in function.kinds or read.kind is Kind.NULL:
            return read
        if read.kind in TEMPORAL:
            days = Rewrite(f"{where}(DATE_DIFF('day', DATE '2020-01-01', ...))")
            raise self.rows.reader.refuse(
                f"{where} needs a number, and this is a {read.kind.value}. Of dates and times there are MIN, MAX, "
                f"MEDIAN and QUANTILE_CONT; or make it a number: {days.in_python()}.",
                node,
                remedy=(days,),
            )
        also = ", a date or a time" if function.kinds & TEMPORAL else ""
        says, way = wrong_kind(f"{where} needs a number{also}", read.kind, NUMERIC)
        typed = " If it holds numbers, declare that: under `types`, for a CSV." if read.kind is Kind.TEXT else ""
        raise self.rows.reader.refuse(f"{says}{typed}", node, remedy=way)

    def _count(self, node: exp.Count, condition: Expression | None, kept) -> Aggregate:  # type: ignore[no-untyped-def]
        rows = self.rows.expressions()
        if isinstance(node.this, exp.Star) or node.this is None:
            if condition is None:
                return Aggregate(COUNT_ROWS)
            return Aggregate(COUNT_VALUES, (kept(Literal(1)),))
        if not isinstance(node.this, exp.Distinct):
            argument = rows.read(node.this)
            if isinstance(argument, Literal) and argument.value is not None and condition is None:
                return Aggregate(COUNT_ROWS)
            return Aggregate(COUNT_VALUES, (kept(argument),))
        if len(node.this.expressions) != 1:
            raise self.rows.reader.refuse(
                "COUNT(DISTINCT ...) takes one expression, such as CONCAT(a, '-', b).",
                node,
                remedy=Rewrite("CONCAT(a, '-', b)"),
            )
        counted, owners = node.this.expressions[0], units_of(self.rows.relation)
        # A unit's own column may be of a type that no expression can use.
        named = isinstance(counted, exp.Column) and isinstance(counted.this, exp.Identifier)
        column = self.rows.scope.find(counted) if named else None
        owner = isinstance(column, Column) and column.name in owners
        argument = column if owner and column is not None else rows.read(counted)
        if isinstance(argument, Column) and argument.name in owners:
            if condition is None:
                return Aggregate(COUNT_UNITS)
            return Aggregate(COUNT_UNITS, (kept(Literal(1)),))
        match argument:
            case Case(conditions=conditions, values=values, default=default) if all(
                (isinstance(v, Column) and v.name in owners) or v == Literal(None) for v in (*values, default)
            ):
                flags = tuple(Literal(1) if isinstance(v, Column) else v for v in values)
                end = Literal(1) if isinstance(default, Column) else default
                return Aggregate(COUNT_UNITS, (kept(Case(conditions, flags, end)),))
        if scans(self.rows.relation)[0].each_row and not owners and argument.kind is Kind.OTHER:
            raise self.rows.reader.refuse("COUNT(DISTINCT ...) of this column is not supported.", node)
        return Aggregate(COUNT_DISTINCT, (kept(argument),))

    def _quantiles(self, node: exp.Expr, rows: ExpressionReader, kept) -> Aggregate | list[Aggregate]:  # type: ignore[no-untyped-def]
        reader = self.rows.reader
        if isinstance(node, exp.WithinGroup):
            inner, order = node.this, node.expression
            ordered = order.expressions[0] if isinstance(order, exp.Order) and len(order.expressions) == 1 else None
            if type(inner) not in (exp.PercentileCont, exp.PercentileDisc) or ordered is None:
                raise reader.refuse(
                    "WITHIN GROUP is for PERCENTILE_CONT(q) ... (ORDER BY x).",
                    node,
                    remedy=Rewrite("PERCENTILE_CONT(q)"),
                )
            shares, argument_node, down = inner.this, ordered.this, bool(ordered.args.get("desc"))
        elif isinstance(node, exp.Median):
            shares, argument_node, down = exp.Literal.number("0.5"), node.this, False
        else:
            shares, argument_node, down = node.args.get("expression") or node.args.get("quantile"), node.this, False
        argument = kept(self._argument(argument_node, QUANTILE, rows, "a quantile"))
        listed = shares.expressions if isinstance(shares, exp.Array | exp.Tuple) else [shares]
        aggregates = []
        for share in listed:
            number = rows.read(share) if isinstance(share, exp.Expr) else None
            value = number.value if isinstance(number, Literal) else None
            if not isinstance(value, int | Fraction) or isinstance(value, bool) or not 0 <= value <= 1:
                raise reader.refuse(
                    "a quantile's share is a constant between 0 and 1, such as 0.5.", node, remedy=Rewrite("0.5")
                )
            fraction = Fraction(value)
            aggregates.append(Aggregate(QUANTILE, (argument,), 1 - fraction if down else fraction))
        return aggregates if isinstance(shares, exp.Array | exp.Tuple) else aggregates[0]


_BY_VALUE = Rewrite("SELECT x, COUNT(*) AS n FROM t GROUP BY x")
_WHERE = Rewrite("WHERE")
_SHARES = (exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
_FORMS = frozenset({exp.Count, exp.CountIf, exp.WithinGroup, exp.Window, *_SHARES})
"""What is read by its form, and not as a name with arguments."""


def function_of(node: exp.Expr) -> Function | None:
    """The function that a call names, if it is one of ours."""
    if isinstance(node, exp.AnonymousAggFunc):
        return spelled(str(node.this).upper())
    return spelled(*node.sql_names()) if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous) else None


def arguments_of(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call, in order."""
    if isinstance(node, exp.AnonymousAggFunc):
        return list(node.expressions)
    own = [v for v in (node.args.get("this"), node.args.get("expression")) if isinstance(v, exp.Expr)]
    return [*own, *node.expressions]


def _by_position(order: exp.Expr, names: list[str]) -> None:
    """ORDER BY a name of the answer, as its position: as in SQL, such a name goes before a key's."""
    for term in order.expressions:
        by = term.this if isinstance(term, exp.Ordered) else term
        if isinstance(by, exp.Column) and not by.table and by.name.lower() in names:
            by.replace(exp.Literal.number(names.index(by.name.lower()) + 1))


def _up_to(node: exp.Expr, top: exp.Expr) -> Iterator[exp.Expr]:
    """What stands between a node and `top`, without both."""
    above = node.parent
    while above is not None and above is not top:
        yield above
        above = above.parent


def _all_columns(order: exp.Expr, count: int) -> None:
    """ORDER BY ALL, written out: the columns by their positions."""
    terms = []
    for term in order.expressions:
        by = term.this if isinstance(term, exp.Ordered) else term
        if isinstance(by, exp.Var) and by.name.upper() == "ALL":
            for at in range(1, count + 1):
                terms.append(term.copy())
                terms[-1].set("this", exp.Literal.number(at))
        else:
            terms.append(term)
    order.set("expressions", terms)


def released_table(number: int) -> exp.Table:
    alias = exp.TableAlias(this=exp.to_identifier("r", quoted=True))
    return exp.Table(this=exp.to_identifier(f"released{number}", quoted=True), alias=alias)
